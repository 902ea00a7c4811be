//! What somebody who uses a verdict asks of it: the file of `ll-loop verify --policy`, and its published schema.

use std::time::Duration;

use serde_json::Value;

use crate::base::decode::{Decode as _, choice, record, unsaid};
use crate::base::diagnostic::{Diagnostics, Severity};
use crate::base::path::DocPath;
use crate::definition::json_schema::published_policy;
use crate::definition::source_text::Sources;
use crate::definition::{render, yaml};

/// Where the schema of these files is published.
const SCHEMA_ID: &str = "https://little-loops.github.io/ll-loop/verdict-policy.schema.json";

record! {
    /// What is asked of verdicts before something is done with what they are about.
    pub(crate) struct VerdictPolicy {
        /// The loops that must have verified it: those at the top of the repository by their names, others by their files from there.
        /// Without them, any one has to have.
        loops: Vec<String> = Vec::new(),
        /// What may have become of the files that decide what the checks say. Without it, whatever a verified run may do.
        judges: Option<Vec<AcceptedJudges>>,
        /// The modes in which agents, and all that ran after one, must have been sandboxed. Without it, it may have been none.
        sandbox: Option<Vec<AcceptedSandbox>>,
        /// Whether no agent may have had a key.
        no_key: bool = false,
        /// How many people must have approved the tree, each by an account that a server knows.
        approvals: RequiredApprovals = RequiredApprovals(0),
        /// How old the verdict may be.
        max_age: Option<Duration>,
        /// Who must have signed it.
        signer: Option<RequiredSigner>,
    }
}

record! {
    /// The workflow that must have signed a verdict.
    pub(crate) struct RequiredSigner {
        /// Its file: `OWNER/NAME/.github/workflows/FILE.yml`.
        workflow: String,
        /// The branch or tag that it must have come from, in full: `refs/heads/main`, `refs/tags/v1`.
        git_ref as "ref": Option<String>,
    }
}

choice! {
    /// What may have become of the files that decide what checks say.
    pub(crate) enum AcceptedJudges {
        /// They are as they were at the start.
        Unchanged = "unchanged",
        /// There are more of them.
        Added = "added",
        /// They were changed, and the checks pass with those of the start as well.
        Confirmed = "confirmed",
    }
}

choice! {
    /// How actions may have been confined.
    pub(crate) enum AcceptedSandbox {
        /// Writing in the scope alone.
        Workspace = "workspace",
        /// The same, without the home of the user and without a network.
        Strict = "strict",
    }
}

/// A number of people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequiredApprovals(pub(crate) u32);

impl crate::base::decode::Decode for RequiredApprovals {
    fn decode(node: &crate::base::node::Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let number = f64::decode(node, path, out)?;
        let most = f64::from(u16::MAX);
        let whole = (number.fract() == 0.0 && (0.0..=most).contains(&number)).then(|| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is whole and small"
            )]
            let number = number as u32;
            Self(number)
        });
        if whole.is_none() {
            crate::base::decode::wrong_type(node, path, "a number of people", out);
        }
        whole
    }

    fn schema(_: &mut crate::base::decode::Definitions) -> Value {
        serde_json::json!({"type": "integer", "minimum": 0, "maximum": u16::MAX})
    }
}

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PolicyError(String);

impl VerdictPolicy {
    /// Asks for nothing but a verified success.
    pub(crate) fn none() -> Self {
        Self {
            loops: Vec::new(),
            judges: None,
            sandbox: None,
            no_key: false,
            approvals: RequiredApprovals(0),
            max_age: None,
            signer: None,
        }
    }

    /// Reads a file that people know by this name.
    ///
    /// # Errors
    /// Every mistake in it, drawn: an unknown or repeated key is one.
    pub(crate) fn read(shown: &str, text: &str) -> Result<Self, PolicyError> {
        let mut sources = Sources::default();
        // Some editors of Windows write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let id = sources.add(shown, text);
        let mut findings = Diagnostics::default();
        let tree = yaml::parse(text, id, &mut findings);
        // For a loop, the reader would say what one needs.
        if findings.iter().any(|finding| finding.code == "empty-file") {
            return Err(PolicyError(format!(
                "{shown} is empty: write what has to be so, such as `judges: [unchanged]`"
            )));
        }
        let policy = tree.as_ref().and_then(|tree| {
            // Looked for by itself, because a key without a value is read as one that is not there.
            unsaid(tree, &DocPath::root(), "policy", &mut findings);
            Self::decode(tree, &DocPath::root(), &mut findings)
        });
        // What is only a warning in a loop may be a rule that somebody meant to set.
        let is_clean = findings.count(Severity::Error) == 0 && findings.count(Severity::Warning) == 0;
        policy
            .filter(|_| is_clean)
            .ok_or_else(|| PolicyError(render::to_text(&findings, &sources, tree.as_ref(), false)))
    }
}

/// Returns the JSON Schema of these files.
pub(crate) fn json_schema() -> Value {
    published_policy::<VerdictPolicy>(SCHEMA_ID, "Policy for verdicts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_and_nothing_is_guessed() {
        let text = "loops: [a, b]\njudges: [unchanged, added]\nsandbox: [strict]\nno_key: true\napprovals: 2\nmax_age: 7d\n\
                    signer: {workflow: o/r/.github/workflows/check.yml, ref: refs/tags/v1}\n";
        let policy = VerdictPolicy::read("p.yaml", text).unwrap();
        assert_eq!((policy.loops.len(), policy.no_key, policy.approvals.0), (2, true, 2));
        assert_eq!(policy.max_age, Some(Duration::from_hours(7 * 24)));
        assert_eq!(policy.signer.unwrap().git_ref.as_deref(), Some("refs/tags/v1"));
        for wrong in [
            "",
            "- a",
            "x: 1",
            "loops: [a]\nloops: [b]",
            "no_key: maybe",
            "no_key: \"true\"",
            "approvals: -1",
            "approvals: 1.5",
            "approvals: two",
            "max_age: soon",
            "judges: [fine]",
            "judges: [changed]",
            "sandbox: [off]",
            "signer: {ref: x}",
            "signer: {workflow: x, who: y}",
            "loops: a: b",
            "No_key: true",
            "approvals: 99999999999",
            "signer: {workflow: x, workflow: y}",
            "loops: {a: b}",
            "judges: unchanged: 1",
            "loops:",
            "judges:",
            "sandbox: ~",
            "no_key:",
            "approvals:",
            "max_age:",
            "signer:",
            "signer: {workflow: x, ref: }",
        ] {
            assert!(VerdictPolicy::read("p.yaml", wrong).is_err(), "{wrong:?}");
        }
        let empty = VerdictPolicy::read("p.yaml", "# loops: [a]\n").unwrap_err();
        assert!(!empty.to_string().contains("initial"), "{empty}");
        assert!(!json_schema().to_string().contains("null"));
    }
}
