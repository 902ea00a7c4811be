//! What a policy refuses: which rule it is, where it stands, and what it allows in its place.

/// A refusal by a rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy forbids {what}: `{rule}` ({place}) {allows}")]
pub struct PolicyRefusal {
    /// What is refused.
    pub what: String,
    /// The rule, such as `caps.run`.
    pub rule: &'static str,
    /// The file or variable that it stands in, and the line.
    pub place: String,
    /// What the rule allows, as a predicate: `allows claude`.
    pub allows: String,
}

impl PolicyRefusal {
    /// Says whom to ask: the repository cannot lift it.
    pub fn help(&self) -> String {
        format!("a repository cannot change that; whoever keeps {} can", self.keeper())
    }

    /// Returns the file or variable, without the line.
    fn keeper(&self) -> &str {
        let is_line = |line: &str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
        // Origins may have colons as well, so only a number behind the last one is a line.
        match self.place.rsplit_once(':') {
            Some((keeper, line)) if is_line(line) => keeper,
            Some(_) | None => &self.place,
        }
    }
}
