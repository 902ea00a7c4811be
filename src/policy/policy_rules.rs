//! The rules of a policy as they are written. A rule that is not written allows everything.

use serde_json::{Value, json};

use crate::base::decode::{Bounds, Decode, Definitions, Least, choice, ranged, record, text};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::base::sandbox::{HostPattern, Port, SandboxNet};
use crate::base::text::one_line;
use crate::definition::schema::AtMost;
use crate::policy::ledger_place::LedgerPlace;
use crate::policy::version_range::VersionRange;

record! {
    /// What runs may do at most. A repository can be stricter, and never less strict.
    pub struct PolicyRules {
        /// The CLIs of agents that may be asked, such as `claude`; a `*` at the end stands for any end.
        hosts: Option<Vec<NamePattern>>,
        /// The models that may be asked, by the names that loops and services have for them, such as `opus` and `claude-opus-*`.
        models: Option<Vec<NamePattern>>,
        /// How far agents are confined at least.
        sandbox: Option<SandboxRule>,
        /// Who holds the key of the service that agents ask.
        broker: Option<BrokerRule>,
        /// What models may cost.
        caps: Option<CapRules>,
        /// The ways in which fixes may be delivered; `[]` allows none.
        deliver: Option<Vec<DeliveryMode>>,
        /// How many people have to have approved a run by comments before its fix is delivered.
        approvals: Option<AtMost>,
        /// Whether `--allow-untrusted` may be given.
        allow_untrusted: Option<bool>,
        /// Whether `--pass-token` may be given.
        pass_token: Option<bool>,
        /// The repositories whose loops may be added and run, such as `octo-org/*`.
        sources: Option<Vec<NamePattern>>,
        /// The hosts whose addresses may be notified, such as `hooks.slack.com`. Commands are not.
        notify: Option<Vec<HostPattern>>,
        /// The versions of ll-loop that may be used, such as `>=1.2, <2`.
        versions: Option<VersionRange>,
        /// Where the spending of a day is kept, which `caps.day` counts: `git`, `git=REMOTE` or an `https://` address.
        ledger: Option<LedgerPlace>,
    }
}

choice! {
    /// Who holds the key of the service that agents ask.
    pub enum BrokerRule {
        /// The broker; where it cannot, nobody is asked.
        Required = "required",
    }
}

choice! {
    /// A way in which a fix is delivered.
    pub enum DeliveryMode {
        /// A pull request.
        Pr = "pr",
        /// A branch.
        Branch = "branch",
        /// A commit on a pull request.
        Commit = "commit",
        /// Suggestions in a review.
        Suggest = "suggest",
        /// A file.
        Patch = "patch",
    }
}

record! {
    /// What models may cost at most.
    pub struct CapRules {
        /// A run, with everything that goes on from it.
        run: Option<RunCapRules>,
        /// All runs of a day together, in UTC. It needs a `ledger`.
        day: Option<DayCapRules>,
    }
}

record! {
    /// What the models of all runs of a day may take at most.
    pub struct DayCapRules {
        /// US dollars.
        cost_usd: Option<CapUsd>,
    }
}

record! {
    /// What the models of one run may take at most.
    pub struct RunCapRules {
        /// US dollars.
        cost_usd: Option<CapUsd>,
        /// Tokens, in and out.
        tokens: Option<AtMost>,
        /// Calls of a host, judges included.
        calls: Option<AtMost>,
    }
}

ranged! {
    /// The most that something may cost, in US dollars; it may be nothing.
    pub struct CapUsd(f64) in Bounds {
        expected: "a number from 0 to 1,000,000",
        is_whole: false,
        least: Least::At(0.0),
        most: Some(1e6),
    }
}

choice! {
    /// How far actions are confined at least.
    pub enum SandboxLeast {
        /// They write files of the scope and of the run.
        Workspace = "workspace",
        /// The same, without the home of the user and without a network.
        Strict = "strict",
    }
}

choice! {
    /// Which actions are confined.
    pub enum LeastConfined {
        /// Prompts, and what runs after one, in every run that may ask an agent.
        Agents = "agents",
        /// All of every run.
        Everything = "everything",
    }
}

record! {
    /// How actions are confined at least, in detail.
    pub struct SandboxRuleKeys {
        /// How far.
        mode: SandboxLeast = SandboxLeast::Workspace,
        /// Which actions.
        of: LeastConfined = LeastConfined::Agents,
        /// What a loop may let them reach: `none`, or the names of hosts. Without it, any names in `workspace` and nothing in
        /// `strict`.
        net: Option<SandboxNet>,
        /// The paths beside the scope that a loop may let them write, with everything below, written as loops write them.
        write: Vec<String> = Vec::new(),
        /// The ports of this machine's loopback that a loop may let them reach.
        forward: Vec<Port> = Vec::new(),
    }
}

/// How actions are confined at least: a mode, or more.
#[derive(Clone, Debug, PartialEq)]
pub struct SandboxRule(pub SandboxRuleKeys);

impl Decode for SandboxRule {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if matches!(node.value, NodeValue::Map(_)) {
            return SandboxRuleKeys::decode(node, path, out).map(Self);
        }
        let mode = SandboxLeast::decode(node, path, out)?;
        // The same as the defaults of a mapping that says nothing but the mode.
        let (of, net, write, forward) = (LeastConfined::Agents, None, Vec::new(), Vec::new());
        Some(Self(SandboxRuleKeys { mode, of, net, write, forward }))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [SandboxLeast::schema(definitions), SandboxRuleKeys::schema(definitions)]})
    }
}

/// A name, or the beginning of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    start: String,
    is_open: bool,
}

impl NamePattern {
    /// Reads a pattern; nothing where a star stands anywhere but at its end, or there is nothing to read.
    pub fn parse(text: &str) -> Option<Self> {
        let (start, is_open) = text.strip_suffix('*').map_or((text, false), |start| (start, true));
        let is_fit = !text.is_empty() && !start.contains('*');
        is_fit.then(|| Self { start: start.to_owned(), is_open })
    }

    /// Tells whether a name is meant.
    pub fn allows(&self, name: &str) -> bool {
        if self.is_open { name.starts_with(&self.start) } else { name == self.start }
    }

    /// Returns it as it is written.
    pub fn word(&self) -> String {
        let star = if self.is_open { "*" } else { "" };
        format!("{}{star}", self.start)
    }
}

impl Decode for NamePattern {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let written = text(node, path, "a name", out)?;
        let pattern = Self::parse(written);
        if pattern.is_none() {
            let message = format!("`{}` is neither a name nor the beginning of one", one_line(written, 80));
            let finding = Diagnostic::error("policy", FindingPlace::Value(path.clone()), message);
            out.push(finding.help("a `*` stands at the end, as in `claude-*`"));
        }
        pattern
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "pattern": r"^[^*]+\*?$|^\*$", "description": "A name, or the beginning of names and a `*`."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_the_end_of_a_name() {
        for (text, name, is_allowed) in [
            ("claude", "claude", true),
            ("claude", "claude-x", false),
            ("claude-*", "claude-opus", true),
            ("claude-*", "claude", false),
            ("*", "anything", true),
        ] {
            let pattern = NamePattern::parse(text).unwrap();
            assert_eq!(pattern.allows(name), is_allowed, "{text} {name}");
            assert_eq!(NamePattern::parse(&pattern.word()), Some(pattern));
        }
        for none in ["", "*x", "a*b", "**"] {
            assert_eq!(NamePattern::parse(none), None, "{none}");
        }
    }
}
