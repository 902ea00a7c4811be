//! The policy in force: all documents that bind a run. Each question is asked of each of them, so that what several allow is
//! what all of them do.

use crate::base::sandbox::{HostPattern, SandboxRules};
use crate::base::text::{listed_in_part, one_line, plural};
use crate::definition::schema::AtMost;
use crate::policy::ledger_place::LedgerPlace;
use crate::policy::policy_document::{PolicyDocument, UnreadablePolicy};
use crate::policy::policy_refusal::PolicyRefusal;
use crate::policy::policy_rules::{CapUsd, DeliveryMode, NamePattern, RunCapRules};
use crate::policy::sandbox_floor::{self, SandboxFloor};

/// All documents that bind a run; none binds nothing.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    documents: Vec<PolicyDocument>,
}

/// What a run may take at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCaps {
    /// US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens, in and out.
    pub tokens: Option<u32>,
    /// Calls.
    pub calls: Option<u32>,
}

/// What all runs of a day may take, and where it is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct DayCap {
    /// US dollars.
    pub cost_usd: f64,
    /// The ledger of the same document; without one, nothing can be counted.
    pub ledger: Option<LedgerPlace>,
    /// The file or variable that it stands in, and the line.
    pub place: String,
}

impl DayCap {
    /// The name of the rule.
    pub const RULE: &'static str = "caps.day.cost_usd";

    /// Returns the refusal of a run on a day on which so much was spent or is promised already.
    pub fn refusal(&self, taken_usd: f64) -> PolicyRefusal {
        PolicyRefusal {
            what: format!("another run that can call a model today, with ${taken_usd:.2} spent or reserved"),
            rule: Self::RULE,
            place: self.place.clone(),
            allows: format!("allows ${:.2} a day", self.cost_usd),
        }
    }
}

/// Where a notice goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticeAddress<'a> {
    /// The name of the host.
    pub host: &'a str,
    /// The port.
    pub port: u16,
}

/// An option that opens what is closed otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// `--allow-untrusted`.
    AllowUntrusted,
    /// `--pass-token`.
    PassToken,
}

impl Policy {
    /// Adds a document. One that is there already changes nothing.
    pub fn add(&mut self, document: PolicyDocument) {
        let is_same =
            |known: &PolicyDocument| (known.origin(), known.text()) == (document.origin(), document.text());
        // What the runs around have on record is mostly what binds here as well.
        if !self.documents.iter().any(is_same) {
            self.documents.push(document);
        }
    }

    /// Adds what a run has on record, as pairs of origins and texts.
    ///
    /// # Errors
    /// One of them cannot be read by this version.
    pub fn add_recorded<'r>(
        &mut self,
        recorded: impl IntoIterator<Item = (&'r str, &'r str)>,
    ) -> Result<(), UnreadablePolicy> {
        for (origin, text) in recorded {
            self.add(PolicyDocument::read(origin, text)?);
        }
        Ok(())
    }

    /// Returns the documents.
    pub fn documents(&self) -> &[PolicyDocument] {
        &self.documents
    }

    /// Tells whether nothing binds.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Says whether the CLI of an agent may be asked.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn host(&self, name: &str) -> Result<(), PolicyRefusal> {
        let listed = |document: &'_ PolicyDocument| document.rules().hosts.clone();
        self.listed("hosts", &format!("the host `{name}`"), name, listed)
    }

    /// Says whether a model may be asked; without a name, the host would choose one.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn model(&self, name: Option<&str>) -> Result<(), PolicyRefusal> {
        let Some(name) = name else { return self.no_model("a prompt that names no model") };
        let listed = |document: &'_ PolicyDocument| document.rules().models.clone();
        self.listed("models", &format!("the model `{name}`"), name, listed)
    }

    /// Says whether a model may be asked that only the run will know: by then, it is too late to refuse the run.
    ///
    /// # Errors
    /// A document says which ones may be asked.
    pub fn late_model(&self, written: &str) -> Result<(), PolicyRefusal> {
        self.no_model(&format!("the model `{}`, which only the run will know", one_line(written, 100)))
    }

    fn no_model(&self, what: &str) -> Result<(), PolicyRefusal> {
        self.each(|document| match &document.rules().models {
            Some(allowed) => Err(refusal(document, "models", what.to_owned(), allowing(allowed))),
            None => Ok(()),
        })
    }

    /// Says whether loops of another repository may be added and run: `owner/name`.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn source(&self, repository: &str) -> Result<(), PolicyRefusal> {
        // Servers do not tell cases apart.
        let name = repository.to_ascii_lowercase();
        let listed = |document: &'_ PolicyDocument| {
            let lower = |pattern: &NamePattern| NamePattern::parse(&pattern.word().to_ascii_lowercase());
            Some(document.rules().sources.as_ref()?.iter().filter_map(lower).collect())
        };
        self.listed("sources", &format!("loops of `{repository}`"), &name, listed)
    }

    /// Says whether an address may be notified; none stands for a command.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn notify(&self, address: Option<&NoticeAddress<'_>>) -> Result<(), PolicyRefusal> {
        self.each(|document| {
            let Some(allowed) = &document.rules().notify else { return Ok(()) };
            let is_allowed =
                address.is_some_and(|to| allowed.iter().any(|host| host.allows(to.host, to.port)));
            if is_allowed {
                return Ok(());
            }
            let what = match address {
                Some(to) => format!("`notify` to `{}`", to.host),
                None => "`notify` by a command, or to something other than an `https://` address".to_owned(),
            };
            let allows = match allowed.as_slice() {
                [] => "allows none".to_owned(),
                hosts => format!("allows {}", listed_in_part(hosts.iter().map(HostPattern::word))),
            };
            Err(refusal(document, "notify", what, allows))
        })
    }

    /// Says whether a fix may be delivered in a way.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn deliver(&self, mode: DeliveryMode) -> Result<(), PolicyRefusal> {
        self.each(|document| match &document.rules().deliver {
            Some(allowed) if !allowed.contains(&mode) => {
                let allows = match allowed.as_slice() {
                    [] => "allows none".to_owned(),
                    modes => format!("allows {}", listed_in_part(modes.iter().map(|mode| mode.word()))),
                };
                Err(refusal(document, "deliver", format!("`--to {}`", mode.word()), allows))
            }
            Some(_) | None => Ok(()),
        })
    }

    /// Says whether so many people who approved a run are enough for its fix to be delivered.
    ///
    /// # Errors
    /// A document asks for more.
    pub fn approvals(&self, given: u32) -> Result<(), PolicyRefusal> {
        self.each(|document| match document.rules().approvals.map(AtMost::get) {
            Some(needed) if given < needed => {
                let what = format!("delivering a run with {}", plural(given, "approval"));
                Err(refusal(document, "approvals", what, format!("asks for {needed}")))
            }
            Some(_) | None => Ok(()),
        })
    }

    /// Says whether a switch may be given: `allow_untrusted`, `pass_token`.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn switch(&self, switch: Switch) -> Result<(), PolicyRefusal> {
        self.each(|document| {
            let (rule, option, said) = match switch {
                Switch::AllowUntrusted => {
                    ("allow_untrusted", "--allow-untrusted", document.rules().allow_untrusted)
                }
                Switch::PassToken => ("pass_token", "--pass-token", document.rules().pass_token),
            };
            if said != Some(false) {
                return Ok(());
            }
            Err(refusal(document, rule, format!("`{option}`"), "says no".to_owned()))
        })
    }

    /// Says whether a version of this program may be used.
    ///
    /// # Errors
    /// A document does not allow it.
    pub fn version(&self, version: &str) -> Result<(), PolicyRefusal> {
        self.each(|document| match &document.rules().versions {
            Some(range) if !range.allows(version) => {
                let allows = format!("allows {}", one_line(range.word(), 80));
                Err(refusal(document, "versions", format!("ll-loop {version}"), allows))
            }
            Some(_) | None => Ok(()),
        })
    }

    /// Returns the refusal of a key that is not with the broker, if a document asks for that.
    pub fn broker_refusal(&self, what: &str) -> Option<PolicyRefusal> {
        let document = self.documents.iter().find(|document| document.rules().broker.is_some())?;
        Some(refusal(document, "broker", what.to_owned(), "asks for the broker".to_owned()))
    }

    /// Says whether a loop may ask for this sandbox.
    ///
    /// # Errors
    /// It is less strict than a document.
    pub fn sandbox(&self, said: &SandboxRules, place: &str) -> Result<(), PolicyRefusal> {
        self.each(|document| {
            let Some(rule) = &document.rules().sandbox else { return Ok(()) };
            let Some((what, allows)) = sandbox_floor::looser(said, &rule.0) else { return Ok(()) };
            Err(refusal(document, "sandbox", format!("`{what}` of {place}"), allows))
        })
    }

    /// Returns how far actions are confined where a loop says nothing.
    pub fn sandbox_floor(&self) -> Option<SandboxFloor> {
        let of = |document: &PolicyDocument| Some(SandboxFloor::of(&document.rules().sandbox.as_ref()?.0));
        self.documents.iter().filter_map(of).reduce(SandboxFloor::and)
    }

    /// Returns the refusal of something that goes against the sandbox of the policy, if it asks for one.
    pub fn sandbox_refusal(&self, what: &str) -> Option<PolicyRefusal> {
        let document = self.documents.iter().find(|document| document.rules().sandbox.is_some())?;
        let floor = document.rules().sandbox.as_ref().map(|rule| SandboxFloor::of(&rule.0))?;
        Some(refusal(document, "sandbox", what.to_owned(), format!("asks for `{}`", floor.mode.word())))
    }

    /// Returns what a run may take: the least of all documents.
    pub fn run_caps(&self) -> RunCaps {
        let rules = self.documents.iter().filter_map(run_caps);
        // No run may take more than all of a day.
        let of_day = self.documents.iter().filter_map(day_cap).reduce(f64::min);
        let most = RunCaps { cost_usd: of_day, ..RunCaps::default() };
        rules.fold(most, |caps, rules| RunCaps {
            cost_usd: least(caps.cost_usd, rules.cost_usd.map(CapUsd::get)),
            tokens: least(caps.tokens, rules.tokens.map(AtMost::get)),
            calls: least(caps.calls, rules.calls.map(AtMost::get)),
        })
    }

    /// Returns what all runs of a day may take: every cap with the ledger of its own document. A ledger that another document
    /// names counts for nothing, for whoever wrote that one could choose an empty one.
    pub fn day_caps(&self) -> Vec<DayCap> {
        let of = |document: &PolicyDocument| {
            let cost_usd = day_cap(document)?;
            Some(DayCap {
                cost_usd,
                ledger: document.rules().ledger.clone(),
                place: document.place(DayCap::RULE),
            })
        };
        self.documents.iter().filter_map(of).collect()
    }

    /// Returns the refusal of something that would take a cap on cost its meaning, if there is such a cap.
    pub fn cost_refusal(&self, what: &str) -> Option<PolicyRefusal> {
        let of_run =
            |document: &PolicyDocument| run_caps(document).is_some_and(|caps| caps.cost_usd.is_some());
        let of_day = |document: &PolicyDocument| day_cap(document).is_some();
        let rule_of = |document| match document {
            document if of_run(document) => Some((document, "caps.run.cost_usd")),
            document if of_day(document) => Some((document, DayCap::RULE)),
            _ => None,
        };
        let (document, rule) = self.documents.iter().find_map(rule_of)?;
        let allows = "counts what models are known to cost";
        Some(refusal(document, rule, what.to_owned(), allows.to_owned()))
    }

    /// Asks every document; the first that refuses is heard.
    fn each(
        &self,
        ask: impl FnMut(&PolicyDocument) -> Result<(), PolicyRefusal>,
    ) -> Result<(), PolicyRefusal> {
        self.documents.iter().try_for_each(ask)
    }

    /// Asks every document that lists what is allowed.
    fn listed(
        &self,
        rule: &'static str,
        what: &str,
        name: &str,
        of: impl Fn(&PolicyDocument) -> Option<Vec<NamePattern>>,
    ) -> Result<(), PolicyRefusal> {
        self.each(|document| match of(document) {
            Some(allowed) if !allowed.iter().any(|pattern| pattern.allows(name)) => {
                Err(refusal(document, rule, what.to_owned(), allowing(&allowed)))
            }
            Some(_) | None => Ok(()),
        })
    }
}

fn run_caps(document: &PolicyDocument) -> Option<&RunCapRules> {
    document.rules().caps.as_ref()?.run.as_ref()
}

/// Returns what all runs of a day may cost, in US dollars.
fn day_cap(document: &PolicyDocument) -> Option<f64> {
    document.rules().caps.as_ref()?.day.as_ref()?.cost_usd.map(CapUsd::get)
}

fn least<T: PartialOrd + Copy>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        // Caps are read within bounds, so that none of them is NaN.
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// Says what a list allows.
fn allowing(allowed: &[NamePattern]) -> String {
    if allowed.is_empty() {
        return "allows none".to_owned();
    }
    format!("allows {}", listed_in_part(allowed.iter().map(NamePattern::word)))
}

fn refusal(document: &PolicyDocument, rule: &'static str, what: String, allows: String) -> PolicyRefusal {
    PolicyRefusal { what, rule, place: document.place(rule), allows }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::sandbox::SandboxMode;

    const ALL: &[&str] = &[
        "hosts: [claude, codex]",
        "hosts: ['c*']",
        "hosts: []",
        "models: [opus, 'claude-*']\nversions: '>=1, <3'",
        "models: [haiku]",
        "sandbox: workspace",
        "sandbox: {mode: strict, net: [example.com], write: [/a]}",
        "sandbox: {of: everything, net: ['*.example.com', example.com], write: [/a/b, /c]}",
        "caps: {run: {cost_usd: 5, tokens: 100}}",
        "caps: {run: {cost_usd: 2.5, calls: 3}}\nbroker: required",
        "caps: {day: {cost_usd: 3}}\nledger: git",
        "caps: {day: {cost_usd: 6}}",
        "deliver: [pr, patch]\napprovals: 2",
        "deliver: [patch, branch]\napprovals: 1\npass_token: true",
        "allow_untrusted: false\npass_token: false",
        "sources: ['octo/*']\nnotify: [example.com]\nversions: '<2'",
        "sources: [octo/loops, other/loops]\nnotify: ['*.example.com', example.com]",
    ];

    fn of(which: &[usize]) -> Policy {
        let mut policy = Policy::default();
        for index in which {
            policy.add(PolicyDocument::read(&format!("P{index}"), ALL[index % ALL.len()]).unwrap());
        }
        policy
    }

    /// Everything that can be asked, and whether it is allowed.
    fn answers(policy: &Policy) -> Vec<bool> {
        let mut all: Vec<bool> =
            ["claude", "codex", "cursor", "gemini"].iter().map(|host| policy.host(host).is_ok()).collect();
        all.extend(
            [Some("opus"), Some("haiku"), Some("claude-x"), None]
                .iter()
                .map(|model| policy.model(*model).is_ok()),
        );
        for mode in [SandboxMode::Off, SandboxMode::ReadOnly, SandboxMode::Workspace, SandboxMode::Strict] {
            for write in [vec![], vec!["/a/b".to_owned()], vec!["/c".to_owned()]] {
                all.push(policy.sandbox(&SandboxRules { write, ..SandboxRules::of(mode) }, "x").is_ok());
            }
        }
        all.extend(
            [DeliveryMode::Pr, DeliveryMode::Patch, DeliveryMode::Branch]
                .iter()
                .map(|mode| policy.deliver(*mode).is_ok()),
        );
        all.extend((0..4).map(|given| policy.approvals(given).is_ok()));
        all.extend(
            [Switch::AllowUntrusted, Switch::PassToken].iter().map(|switch| policy.switch(*switch).is_ok()),
        );
        all.extend(
            ["octo/loops", "Octo/x", "other/loops"].iter().map(|source| policy.source(source).is_ok()),
        );
        let address = |host| NoticeAddress { host, port: 443 };
        all.extend(
            ["example.com", "a.example.com"].iter().map(|host| policy.notify(Some(&address(host))).is_ok()),
        );
        all.extend(["1.0.0", "2.1.0", "3.0.0"].iter().map(|version| policy.version(version).is_ok()));
        let caps = policy.run_caps();
        all.extend((0..8).map(|dollars| caps.cost_usd.is_none_or(|cap| f64::from(dollars) <= cap)));
        all.extend((0..200).step_by(50).map(|tokens| caps.tokens.is_none_or(|cap| tokens <= cap)));
        all.extend((0..5).map(|calls| caps.calls.is_none_or(|cap| calls <= cap)));
        all.push(policy.broker_refusal("x").is_none());
        all.push(policy.cost_refusal("x").is_none());
        all.push(policy.day_caps().iter().all(|cap| cap.ledger.is_some()));
        all.extend(
            (0..8).map(|dollars| policy.day_caps().iter().all(|cap| f64::from(dollars) <= cap.cost_usd)),
        );
        let floor = policy.sandbox_floor();
        all.push(floor.is_none());
        all.push(floor.is_none_or(|floor| floor.mode != SandboxMode::Strict));
        all.push(floor.is_none_or(|floor| !floor.of_everything));
        all
    }

    proptest! {
        #[test]
        fn several_allow_what_each_of_them_does(
            one in prop::collection::vec(0..ALL.len(), 0..4), other in prop::collection::vec(0..ALL.len(), 0..4),
            third in prop::collection::vec(0..ALL.len(), 0..3),
        ) {
            let both = |one: &[usize], other: &[usize]| of(&[one, other].concat());
            let together = answers(&both(&one, &other));
            let expected: Vec<bool> = answers(&of(&one)).iter().zip(answers(&of(&other))).map(|(one, other)| *one && other).collect();
            // So it is never looser than either, and it is idempotent, commutative and associative.
            prop_assert_eq!(&together, &expected);
            prop_assert_eq!(&together, &answers(&both(&other, &one)));
            prop_assert_eq!(answers(&of(&one)), answers(&both(&one, &one)));
            let left = both(&[one.clone(), other.clone()].concat(), &third);
            let right = both(&one, &[other, third].concat());
            prop_assert_eq!(answers(&left), answers(&right));
        }
    }
}
