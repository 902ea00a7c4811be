//! What a loop says of its judges, under the key `judges`.

use serde_json::{Value, json};

use super::pattern::PathPattern;
use crate::base::decode::{Decode, Definitions, choice, record};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;

choice! {
    /// What a run may do to its judges and still be verified without asking them as they were.
    pub enum MayChange {
        /// Nothing, not even add a test.
        Nothing = "none",
        /// Add tests.
        Add = "add",
        /// Anything: the purpose of the loop is to change them. `verified` then speaks of the tree alone.
        Change = "change",
    }
}

choice! {
    /// What a suppression means that a run has added.
    pub enum OnSuppression {
        /// A judge that changed, which cannot be put back.
        Fail = "fail",
        /// Every report names it.
        Report = "report",
    }
}

record! {
    /// The files that decide what a check says without being the work, and what a run may do to them.
    pub struct JudgeRules {
        /// Patterns of paths, as in `.gitignore`, besides what ll-loop knows by itself.
        files: Vec<PathPattern> = Vec::new(),
        /// What a run may do to judges and still be verified.
        may: MayChange = MayChange::Add,
        /// What a comment or marker means that keeps a check from looking, when a run has added it.
        suppressions: OnSuppression = OnSuppression::Fail,
        /// Whether added tests are run on the start tree, where one that passes proves nothing.
        prove_added: Option<bool>,
    }
}

/// What a loop says of its judges.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// What is said, or what holds where nothing is.
    pub rules: JudgeRules,
    /// Whether the loop says that there are none: `judges: []`.
    pub are_none: bool,
}

impl Declared {
    /// Says in one line what a loop says of its judges; nothing where it says nothing.
    pub fn words(&self) -> Option<String> {
        if self.are_none {
            return Some("none, not even those that are known by their names".to_owned());
        }
        if *self == Self::default() {
            return None;
        }
        let JudgeRules { files, may, suppressions, prove_added } = &self.rules;
        let files = files.iter().map(|file| format!("`{}`", file.source()));
        let may = match may {
            MayChange::Nothing => Some("none of them may change, and none may be added"),
            MayChange::Add => None,
            MayChange::Change => Some("they may change, so that `verified` speaks of the tree alone"),
        };
        let suppressions = match suppressions {
            OnSuppression::Fail => None,
            OnSuppression::Report => Some("suppressions are reported alone"),
        };
        let proven =
            prove_added.filter(|is_proven| *is_proven).map(|_| "added tests have to prove something");
        let rules = [may, suppressions, proven].into_iter().flatten().map(str::to_owned);
        Some(files.chain(rules).collect::<Vec<_>>().join(", "))
    }
}

impl Default for Declared {
    fn default() -> Self {
        let rules = JudgeRules {
            files: Vec::new(),
            may: MayChange::Add,
            suppressions: OnSuppression::Fail,
            prove_added: None,
        };
        Self { rules, are_none: false }
    }
}

impl Decode for Declared {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match &node.value {
            NodeValue::List(items) => {
                let files = Vec::decode(node, path, out)?;
                let rules = JudgeRules { files, ..Self::default().rules };
                // `judges: []` is the way to say that there are none.
                Some(Self { rules, are_none: items.is_empty() })
            }
            NodeValue::Map(_) => {
                let rules = JudgeRules::decode(node, path, out)?;
                Some(Self { rules, are_none: false })
            }
            NodeValue::Scalar(_) => {
                crate::base::decode::wrong_type(node, path, "a list of patterns, or a mapping", out);
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [Vec::<PathPattern>::schema(definitions), JudgeRules::schema(definitions)]})
    }
}
