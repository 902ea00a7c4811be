//! Reads a policy: its text becomes rules, each with the line on which it stands. What is not understood is never skipped, for
//! it could be the rule that matters.

use crate::base::decode::{Decode as _, unsaid};
use crate::base::diagnostic::{Diagnostics, FindingPlace, Severity};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::base::text::{one_line, plural};
use crate::definition::source_text::Sources;
use crate::definition::yaml;
use crate::policy::policy_rules::PolicyRules;

/// The largest policy, in bytes: it is written into the journal of each run that it binds.
pub const MOST_BYTES: usize = 64 << 10;

/// A policy that was read.
#[derive(Clone, Debug)]
pub struct PolicyDocument {
    origin: String,
    text: String,
    rules: PolicyRules,
    tree: Node,
    sources: Sources,
}

/// A policy that cannot be read. Nothing is run under it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the policy {origin} cannot be read: {why}")]
pub struct UnreadablePolicy {
    /// Where it stands: a file or a variable.
    pub origin: String,
    /// Why not.
    pub why: String,
    /// What to write.
    pub help: Option<String>,
}

impl UnreadablePolicy {
    /// Says why one cannot be read.
    pub fn new(origin: impl Into<String>, why: impl Into<String>) -> Self {
        Self { origin: origin.into(), why: why.into(), help: None }
    }
}

impl PolicyDocument {
    /// Reads the text of a policy that stands in a file or variable of this name.
    ///
    /// # Errors
    /// It is too large, no YAML, or says something that is no rule.
    pub fn read(origin: &str, text: &str) -> Result<Self, UnreadablePolicy> {
        // Some editors put a byte order mark in front.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() > MOST_BYTES {
            return Err(UnreadablePolicy::new(origin, format!("it is larger than {} KiB", MOST_BYTES >> 10)));
        }
        let mut sources = Sources::default();
        let id = sources.add(origin, text);
        let mut findings = Diagnostics::default();
        let tree = yaml::parse(text, id, &mut findings);
        let rules = tree.as_ref().and_then(|tree| {
            // Looked for by itself, because a key without a value is read as one that is not there.
            unsaid(tree, &DocPath::root(), "policy", &mut findings);
            PolicyRules::decode(tree, &DocPath::root(), &mut findings)
        });
        let Some((rules, tree)) = rules.zip(tree.clone()).filter(|_| findings.is_empty()) else {
            return Err(unreadable(origin, &findings, &sources, tree.as_ref()));
        };
        Ok(Self { origin: origin.to_owned(), text: text.to_owned(), rules, tree, sources })
    }

    /// Returns the file or variable that it stands in.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns what is written there.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns what it says.
    pub fn rules(&self) -> &PolicyRules {
        &self.rules
    }

    /// Returns where a rule stands, such as `caps.run.tokens`: the file or variable, and the line.
    pub fn place(&self, rule: &str) -> String {
        let path = rule.split('.').fold(DocPath::root(), |path, key| path.key(key));
        match line(&FindingPlace::Key(path), &self.sources, Some(&self.tree)) {
            Some(line) => format!("{}:{line}", self.origin),
            None => self.origin.clone(),
        }
    }

    /// Returns the rules that it has, in its order: their names, and their values in one line of JSON.
    pub fn written(&self) -> Vec<(String, String)> {
        let NodeValue::Map(entries) = &self.tree.value else { return Vec::new() };
        entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json().to_string())).collect()
    }
}

fn line(place: &FindingPlace, sources: &Sources, tree: Option<&Node>) -> Option<usize> {
    let span = sources.locate(place, tree)?;
    Some(sources.get(span.file)?.position(span.range.start).line)
}

fn unreadable(
    origin: &str,
    findings: &Diagnostics,
    sources: &Sources,
    tree: Option<&Node>,
) -> UnreadablePolicy {
    // What is only a warning in a loop can be the rule that matters here.
    let worst = findings.iter().find(|finding| finding.severity == Severity::Error);
    let Some(first) = worst.or_else(|| findings.iter().next()) else {
        return UnreadablePolicy::new(origin, "it has no rules");
    };
    if first.code == "empty-file" {
        let help = "remove it, or write a rule, such as `hosts: [claude]`";
        return UnreadablePolicy {
            help: Some(help.to_owned()),
            ..UnreadablePolicy::new(origin, "it is empty")
        };
    }
    let at = line(&first.place, sources, tree).map(|line| format!("line {line}: ")).unwrap_or_default();
    let more = match findings.total() - 1 {
        0 => String::new(),
        more => format!(", and {} more", plural(more as u64, "mistake")),
    };
    let why = format!("{at}{}{more}", one_line(&first.message, 300));
    UnreadablePolicy { help: first.help.clone(), ..UnreadablePolicy::new(origin, why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        PolicyDocument::read("P", text).unwrap_err().why
    }

    #[test]
    fn a_rule_is_found_by_its_line() {
        let read =
            PolicyDocument::read("P", "# above\nhosts: [claude]\ncaps:\n  run:\n    tokens: 5\n").unwrap();
        assert_eq!(read.place("hosts"), "P:2");
        assert_eq!(read.place("caps.run.tokens"), "P:5");
        let written: Vec<String> =
            read.written().into_iter().map(|(rule, value)| format!("{rule} {value}")).collect();
        assert_eq!(written, [r#"hosts ["claude"]"#, r#"caps {"run":{"tokens":5}}"#]);
    }

    #[test]
    fn what_is_not_understood_is_never_skipped() {
        for (text, expected) in [
            ("", "it is empty"),
            ("# nothing\n", "it is empty"),
            ("host: [claude]\n", "line 1: "),
            ("caps: {run: {cost: 1}}\n", "line 1: "),
            ("hosts: [a]\nhosts: [b]\n", "line 2: "),
            ("hosts:\n", "line 1: `hosts` has no value"),
            ("caps:\n  run:\n    tokens:\n", "line 3: `caps.run.tokens` has no value"),
            ("hosts: claude\n", "line 1: `hosts` must be a list"),
            ("caps: {run: {tokens: -1}}\n", "line 1: "),
            ("caps: {run: {tokens: .nan}}\n", "line 1: "),
            ("sandbox: off\n", "line 1: "),
            ("sandbox: read-only\n", "line 1: "),
            ("hosts: ['a*b']\n", "line 1: `a*b` is neither"),
            ("- hosts\n", "line 1: "),
            ("hosts: [claude\n", "line "),
            ("a\u{0}b", "line 1"),
        ] {
            assert!(why(text).starts_with(expected), "{text:?}: {}", why(text));
        }
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d]\n";
        assert!(PolicyDocument::read("P", bomb).is_err());
        assert!(why(&"#".repeat(MOST_BYTES + 1)).contains("larger than 64 KiB"));
    }
}
