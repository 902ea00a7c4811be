//! Compares a run that was played with what a case expects of it.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use serde_json::Value;

use super::asked::AskedKind;
use super::snapshot_file::{KeptText, SnapshotKey};
use super::written::{CaseExpectation, Delivery, TextParts, TextRules};
use crate::base::path::DocPath;
use crate::base::text::one_line;
use crate::deliver::policy::{self, Accepted};
use crate::engine::changes::{ChangedFile, Changes, FileMode};
use crate::engine::event::{Event, LoopComplete, RouteReason, Stamped};
use crate::engine::outcome::TerminatedBy;
use crate::evaluate::number_bounds::ExitStatus;
use crate::forge::change::{FileChange, FileSide};
use crate::forge::standing::Refusal;
use crate::report::digest::Digest;
use crate::report::formats::outputs;

/// How much of a text is shown where it is not what was expected.
const SHOWN: usize = 400;

/// Something that is not as it is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where in the test file it is expected.
    pub place: DocPath,
    /// What it is about.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What there was.
    pub actual: String,
}

/// What was asked for in a run, as far as expectations depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedText {
    /// The state, as tests know it.
    pub state: String,
    /// What kind of work.
    pub kind: AskedKind,
    /// What would have been run, asked or shown.
    pub text: String,
    /// The environment beyond that of the run.
    pub env: Vec<(String, String)>,
}

/// A run, as expectations look at it.
#[derive(Clone, Copy)]
pub struct SeenRun<'r> {
    /// Everything that happened.
    pub events: &'r [Stamped],
    /// How it ended, if it did.
    pub end: Option<&'r LoopComplete>,
    /// What was asked for.
    pub asked: &'r [AskedText],
    /// What was captured, by name.
    pub captured: &'r BTreeMap<String, String>,
    /// The host that its agents belong to.
    pub host: &'r str,
}

/// Snapshots that are compared, and those that are new.
pub trait Snapshots {
    /// Returns the text that was kept, if there is one.
    fn kept(&self, key: &SnapshotKey) -> Option<String>;

    /// Takes a text that is to be kept from now on.
    fn keep(&mut self, snapshot: KeptText);

    /// Tells whether texts that differ are kept in place of the old ones.
    fn is_updated(&self) -> bool;
}

/// Returns the states that a run entered, with the terminal that it came to, and those of earlier rounds.
pub fn path(events: &[Stamped]) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let outer = events.iter().filter(|stamped| stamped.depth == 0);
    let mut came: Option<&str> = None;
    for stamped in outer {
        if let Event::StateEnter { state, .. } = &stamped.event {
            path.push(state.to_string());
            came = None;
        } else if let Event::Route { from, to, reason, .. } = &stamped.event {
            // The end of a round: a terminal that is left again is not entered as other states are.
            if *reason == RouteReason::Maintain {
                path.push(from.to_string());
            }
            came = Some(to.as_str());
        } else if let Event::LoopComplete(end) = &stamped.event
            && came == Some(end.final_state.as_str())
            && is_at_terminal(end.terminated_by)
        {
            // Every end names a final state, also that of a cap or a signal. It was entered where a way led to it as an end.
            path.push(end.final_state.to_string());
        }
    }
    path
}

fn is_at_terminal(by: TerminatedBy) -> bool {
    // The last two were at a success terminal, and lost their success to what was found there.
    matches!(by, TerminatedBy::Terminal | TerminatedBy::UncommittedChanges | TerminatedBy::NotConfirmed)
}

/// Compares a run with what is expected of it.
pub fn compare(
    expected: &CaseExpectation,
    run: SeenRun<'_>,
    case: &str,
    place: &DocPath,
    snapshots: &mut dyn Snapshots,
) -> Vec<Mismatch> {
    let mut comparison = CaseComparison { run, case, place, snapshots, found: Vec::new() };
    comparison.end(expected);
    comparison.way(expected);
    comparison.texts(expected);
    comparison.facts(expected);
    comparison.found
}

struct CaseComparison<'c> {
    run: SeenRun<'c>,
    case: &'c str,
    place: &'c DocPath,
    snapshots: &'c mut dyn Snapshots,
    found: Vec<Mismatch>,
}

impl CaseComparison<'_> {
    #[expect(clippy::needless_pass_by_value, reason = "texts are made for it")]
    fn differs(&mut self, keys: &[&str], what: &str, expected: impl ToString, actual: impl ToString) {
        let place = keys.iter().fold(self.place.clone(), |place, key| place.key(*key));
        let (expected, actual) = (expected.to_string(), actual.to_string());
        self.found.push(Mismatch { place, what: what.to_owned(), expected, actual });
    }

    fn same<T: PartialEq + ToString>(&mut self, key: &str, expected: Option<T>, actual: Option<T>) {
        let Some(expected) = expected else { return };
        if Some(&expected) != actual.as_ref() {
            let actual =
                actual.map_or_else(|| "none: the run did not end".to_owned(), |actual| actual.to_string());
            self.differs(&[key], key, expected, actual);
        }
    }

    fn end(&mut self, expected: &CaseExpectation) {
        let end = self.run.end;
        self.same("outcome", expected.outcome.clone(), end.map(|end| end.outcome.word().to_owned()));
        let by = end.and_then(|end| {
            let word = serde_json::to_value(end.terminated_by).ok()?;
            word.as_str().map(str::to_owned)
        });
        self.same("terminated_by", expected.terminated_by.clone(), by);
        self.same("final_state", expected.final_state.clone(), end.map(|end| end.final_state.clone()));
        self.same("verified", expected.verified, end.map(|end| end.verified));
        let code = expected.exit_code.map(ExitStatus::get);
        self.same("exit_code", code, end.map(|end| i32::from(end.exit_code)));
        self.same("iterations", expected.iterations.map(|most| most.0), end.map(|end| end.iterations));
        self.same("steps", expected.steps.map(|most| most.0), end.map(|end| end.steps));
        if let Some(rules) = &expected.reason {
            let reason = end.map(|end| end.reason.clone()).unwrap_or_default();
            self.text(&["reason"], "reason", rules, &[reason]);
        }
    }

    fn way(&mut self, expected: &CaseExpectation) {
        let actual = path(self.run.events);
        if let Some(path) = expected.path.as_ref().filter(|path| **path != actual) {
            self.differs(&["path"], "path", path.join(" → "), actual.join(" → "));
        }
        for (at, state) in expected.never.iter().enumerate() {
            if actual.iter().any(|entered| entered == state.as_str()) {
                let place = self.place.key("never").index(at);
                let (expected, actual) = (format!("`{state}` is never entered"), actual.join(" → "));
                self.found.push(Mismatch { place, what: "never".to_owned(), expected, actual });
            }
        }
        for (state, visits) in &expected.visits {
            let count = actual.iter().filter(|entered| *entered == state.as_str()).count();
            if count != visits.0 as usize {
                self.differs(&["visits", state.as_str()], &format!("visits of {state}"), visits.0, count);
            }
        }
    }

    fn texts(&mut self, expected: &CaseExpectation) {
        let asked = self.run.asked;
        let of = |state: &str, kinds: &[AskedKind]| -> Vec<String> {
            let meant = asked.iter().filter(|one| one.state == state && kinds.contains(&one.kind));
            meant.map(|one| one.text.clone()).collect()
        };
        for (state, rules) in &expected.commands {
            let texts = of(state, &[AskedKind::Command, AskedKind::Tool]);
            self.text(&["commands", state], &format!("what {state} runs"), rules, &texts);
        }
        for (state, rules) in &expected.prompts {
            let kinds = [AskedKind::Prompt, AskedKind::Judge, AskedKind::Person, AskedKind::Learning];
            self.text(&["prompts", state], &format!("what {state} asks"), rules, &of(state, &kinds));
        }
        for (state, variables) in &expected.env {
            self.env(state, variables);
        }
        for (name, rules) in &expected.captures {
            let text = self.run.captured.get(name).cloned();
            self.text(&["captures", name], &format!("the capture {name}"), rules, text.as_slice());
        }
        if let Some(rules) = &expected.log {
            let log = log(self.run.events);
            self.text(&["log"], "the log", rules, &[log]);
        }
    }

    fn env(&mut self, state: &str, variables: &IndexMap<String, String>) {
        let asked = self.run.asked;
        let visits: Vec<_> = asked.iter().filter(|one| one.state == state).collect();
        for (name, value) in variables {
            let what = format!("{name} of {state}");
            if visits.is_empty() {
                self.differs(&["env", state, name], &what, value, "nothing: it ran nothing");
            }
            for visit in &visits {
                let found = visit.env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
                if found != Some(value) {
                    let actual = found.cloned().unwrap_or_else(|| "not set".to_owned());
                    self.differs(&["env", state, name], &what, value, actual);
                    break;
                }
            }
        }
    }

    /// Compares the texts of a state; there has to be one at least.
    fn text(&mut self, keys: &[&str], what: &str, rules: &TextRules, texts: &[String]) {
        let listed = match rules {
            TextRules::Every(_) => None,
            TextRules::Listed(listed) => Some(listed.len()),
        };
        if texts.is_empty() || listed.is_some_and(|count| count != texts.len()) {
            let expected = listed.map_or_else(|| "a text".to_owned(), |count| format!("{count} texts"));
            self.differs(keys, what, expected, format!("{} texts", texts.len()));
            return;
        }
        for (index, text) in texts.iter().enumerate() {
            let Some(parts) = rules.of(index) else { continue };
            let what = if texts.len() > 1 { format!("{what} ({})", index + 1) } else { what.to_owned() };
            // Later visits mostly differ for the same reason, so one of them is enough.
            if !self.parts(keys, &what, parts, text, index) {
                return;
            }
        }
    }

    fn parts(&mut self, keys: &[&str], what: &str, parts: &TextParts, text: &str, index: usize) -> bool {
        let before = self.found.len();
        let shown = one_line(text, SHOWN);
        // A block scalar of YAML ends with a line end, which the text that is meant need not have.
        if let Some(is) = parts.is.as_ref().filter(|is| is.trim_end() != text.trim_end()) {
            self.differs(keys, what, one_line(is, SHOWN), &shown);
        }
        for part in parts.contains.iter().flat_map(|parts| &parts.0).filter(|part| !text.contains(*part)) {
            self.differs(keys, what, format!("… {} …", one_line(part, SHOWN)), &shown);
        }
        for part in parts.lacks.iter().flat_map(|parts| &parts.0).filter(|part| text.contains(*part)) {
            self.differs(keys, what, format!("nothing of `{}`", one_line(part, SHOWN)), &shown);
        }
        if parts.snapshot {
            self.snapshot(keys, what, text, index);
        }
        self.found.len() == before
    }

    fn snapshot(&mut self, keys: &[&str], what: &str, text: &str, index: usize) {
        let key = SnapshotKey::new(self.case, keys, index);
        let snapshot = KeptText { key: key.clone(), text: text.to_owned() };
        match self.snapshots.kept(&key) {
            // The file of snapshots ends each text with a line end, whether it had one or not.
            Some(kept) if kept.trim_end() == text.trim_end() => {}
            Some(_) | None if self.snapshots.is_updated() => self.snapshots.keep(snapshot),
            Some(kept) => {
                self.differs(keys, what, first_difference(&kept, text), first_difference(text, &kept));
            }
            None => self.differs(keys, what, "a snapshot, which `--update` writes", one_line(text, SHOWN)),
        }
    }

    fn facts(&mut self, expected: &CaseExpectation) {
        let mut digest = Digest::default();
        self.run.events.iter().for_each(|stamped| digest.event(stamped));
        if let Some(cost) = expected.cost {
            let actual = digest.usage().least_cost();
            // Prices are added as binary fractions, so 0.1 and 0.2 are not exactly 0.3.
            if (cost - actual).abs() > 1e-9 {
                self.differs(&["cost"], "cost", cost, actual);
            }
        }
        for (who, count) in &expected.calls {
            self.calls(who, count.0 as usize);
        }
        let all: BTreeMap<&str, String> = outputs::outputs(&digest).into_iter().collect();
        for (name, rules) in &expected.outputs {
            let text = all.get(name.as_str()).cloned();
            self.text(&["outputs", name], &format!("the output {name}"), rules, text.as_slice());
        }
        let changes = self.run.end.and_then(|end| end.changes.as_ref()).and_then(Changes::known);
        if let Some(expected) = &expected.changed {
            let path = |file: &ChangedFile| file.path.clone();
            let mut actual: Vec<String> =
                changes.map(|changes| changes.files.iter().map(path).collect()).unwrap_or_default();
            let mut wanted = expected.clone();
            // Which file changed first is not known, so their order means nothing.
            actual.sort();
            wanted.sort();
            if actual != wanted {
                self.differs(&["changed"], "changed files", wanted.join(", "), actual.join(", "));
            }
        }
        if let Some(expected) = &expected.verification {
            let of_end = self.run.end.and_then(|end| end.verification.as_ref());
            let actual =
                of_end.and_then(|verification| serde_json::to_value(verification).ok()).unwrap_or_default();
            if let Some((key, wanted, found)) = unlike("", expected, &actual) {
                self.differs(&["verification"], &format!("verification{key}"), wanted, found);
            }
        }
        if let Some(deliver) = expected.deliver {
            let actual = delivery(&digest);
            let is_refused = actual.is_err();
            if is_refused != (deliver == Delivery::Refused) {
                let why = actual
                    .map_or_else(|refusal| format!("refused: {}", said(&refusal)), |()| "pr".to_owned());
                self.differs(&["deliver"], "deliver", deliver.word(), why);
            }
        }
    }

    fn calls(&mut self, who: &str, expected: usize) {
        let kinds: &[AskedKind] = match who {
            "judges" => &[AskedKind::Judge],
            "tools" => &[AskedKind::Tool],
            "people" => &[AskedKind::Person],
            "commands" => &[AskedKind::Command],
            "models" => &[AskedKind::Prompt, AskedKind::Judge],
            "agents" => &[AskedKind::Prompt],
            host if host == self.run.host => &[AskedKind::Prompt],
            // Names are checked when the file is read: this is another host, to which no agent of this case belongs.
            _ => &[],
        };
        let actual = self.run.asked.iter().filter(|one| kinds.contains(&one.kind)).count();
        if actual != expected {
            self.differs(&["calls", who], &format!("calls of {who}"), expected, actual);
        }
    }
}

/// Tells whether `deliver` would make a pull request of the work of a run, by its own rules, or why not.
fn delivery(digest: &Digest) -> Result<(), Refusal> {
    // As strictly as `deliver` without flags: a case has nowhere to accept what is not verified.
    policy::of_run(digest, Accepted::default())?;
    let changes = digest.changes().filter(|changes| changes.has_own());
    let changes = changes.ok_or_else(|| Refusal::new("the run changed nothing"))?;
    let change = |file: &ChangedFile| FileChange {
        path: file.path.clone(),
        old: None,
        // The rules look at paths and sizes. Any id will do: a file without an old one counts as new.
        new: file.size.map(|size| FileSide { mode: FileMode::File, id: changes.end.tree.clone(), size }),
    };
    let files: Vec<FileChange> = changes.files.iter().map(change).collect();
    match policy::of_changes(&files, &BTreeSet::new()).into_iter().next() {
        Some(refusal) => Err(refusal),
        None => Ok(()),
    }
}

fn said(refusal: &Refusal) -> String {
    match refusal.paths.first() {
        Some(path) => format!("{} ({path})", refusal.why),
        None => refusal.why.clone(),
    }
}

/// Returns what happened as lines: what ran, what it printed, and where it led.
fn log(events: &[Stamped]) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    for stamped in events {
        if let Event::ActionStart { state, action, .. } = &stamped.event {
            line(&format!("{state}: {action}"));
        } else if let Event::ActionComplete(complete) = &stamped.event {
            complete
                .seen
                .stdout
                .as_str()
                .lines()
                .chain(complete.seen.stderr.as_str().lines())
                .for_each(&mut line);
        } else if let Event::Message { text, .. } | Event::Warning { message: text, .. } = &stamped.event {
            line(text);
        } else if let Event::Route { from, to, .. } = &stamped.event {
            line(&format!("{from} → {to}"));
        } else if let Event::LoopComplete(end) = &stamped.event {
            line(&format!("{}: {}", end.outcome.word(), end.reason));
        }
    }
    out
}

/// Finds the first place where a value lacks what is expected of it: keys that are not mentioned may be anything.
fn unlike(at: &str, expected: &Value, actual: &Value) -> Option<(String, String, String)> {
    match (expected, actual) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, wanted)| {
            // A key that is absent compares as null, so `null` expects that it is not there.
            unlike(&format!("{at}.{key}"), wanted, found.get(key).unwrap_or(&Value::Null))
        }),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            let pairs = wanted.iter().zip(found).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (wanted, found))| unlike(&format!("{at}[{index}]"), wanted, found))
        }
        _ if expected == actual => None,
        _ => Some((
            at.to_owned(),
            one_line(&expected.to_string(), SHOWN),
            one_line(&actual.to_string(), SHOWN),
        )),
    }
}

/// Returns the first line of a text that the other does not have at its place.
fn first_difference(text: &str, other: &str) -> String {
    let mut others = other.lines();
    let line = text.lines().enumerate().find(|(_, line)| others.next() != Some(line));
    line.map_or_else(
        || "no further line".to_owned(),
        |(at, line)| format!("line {}: {}", at + 1, one_line(line, SHOWN)),
    )
}
