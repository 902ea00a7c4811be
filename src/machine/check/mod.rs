//! Looks at a whole machine for what no single key shows. One file a family of rules; this one is their list.

use crate::base::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::base::name::StateName;
use crate::base::path::DocPath;
use crate::definition::schema::Loop;
use crate::evaluate::verdict::Verdict;

use super::routing::{Key, Move, moves};
use super::{Machine, Step, StepId, Target};

mod cycles;
mod deep;
mod ends;
mod flow;
mod injection;
mod models;
mod reach;
mod values;
mod verdicts;

use flow::Flow;
pub use models::fate;

/// A rule: it looks at a machine and says what it finds.
type Rule = fn(&Subject<'_>, &mut Diagnostics);

/// The rules, in the order in which they speak.
const RULES: [Rule; 13] = [
    description,
    reach::unreachable,
    reach::no_end,
    cycles::cycles,
    verdicts::impossible,
    verdicts::unhandled,
    ends::unverified_success,
    ends::silent_failure,
    injection::injection,
    models::needed,
    values::undefined,
    values::board,
    values::unset,
];

/// Rules whose findings the walk through every run says better.
const SUPERSEDED: [&str; 2] = ["no-end", "unhandled-verdict"];

/// Returns every warning and note about a machine; none of them blocks by itself.
pub fn check(machine: &Machine, definition: &Loop) -> Diagnostics {
    apply(&Subject::new(machine, definition))
}

/// The same, and what a walk through everything that can happen shows.
pub fn check_deeply(machine: &Machine, definition: &Loop) -> Diagnostics {
    let subject = Subject::new(machine, definition);
    let mut findings = Diagnostics::default();
    for finding in apply(&subject).iter().filter(|finding| !SUPERSEDED.contains(&finding.code)) {
        findings.push(finding.clone());
    }
    deep::walk(&subject, &mut findings);
    findings
}

fn apply(subject: &Subject<'_>) -> Diagnostics {
    let mut findings = Diagnostics::default();
    for rule in RULES {
        rule(subject, &mut findings);
    }
    findings
}

/// A machine, the definition it was made from, and what can follow what in it.
struct Subject<'m> {
    machine: &'m Machine,
    definition: &'m Loop,
    moves: Vec<Vec<Move>>,
    flow: Flow,
}

impl<'m> Subject<'m> {
    fn new(machine: &'m Machine, definition: &'m Loop) -> Self {
        let moves: Vec<_> = machine.steps().map(|(_, step)| moves(machine, step)).collect();
        let flow = Flow::new(machine, &moves);
        Self { machine, definition, moves, flow }
    }

    /// Returns what can come after a step.
    fn moves(&self, id: StepId) -> &[Move] {
        &self.moves[id.0]
    }

    /// Returns every step with what can come after it.
    fn steps(&self) -> impl Iterator<Item = (StepId, &'m Step, &[Move])> {
        self.machine.steps().map(|(id, step)| (id, step, self.moves(id)))
    }

    fn name(&self, target: Target) -> &'m StateName {
        self.machine.name_of(target)
    }

    /// Returns the place of the key that holds the route of a verdict: `route` comes before `on_…`.
    fn route(&self, step: &Step, verdict: &Verdict) -> DocPath {
        let path = state(&step.name);
        let Some(written) = self.definition.states.get(&step.name) else { return path };
        let is_meant = |word: &&String| Verdict::canonical(word) == *verdict;
        if let Some(word) = written.route.keys().find(is_meant) {
            return path.key("route").key(word);
        }
        match written.on.keys().find(is_meant) {
            Some(word) => path.key(format!("on_{word}")),
            None => path,
        }
    }

    /// Returns the place of the key of a way.
    fn way(&self, step: &Step, key: &Key) -> DocPath {
        let path = state(&step.name);
        match key {
            Key::Next => path.key("next"),
            Key::On(verdict) => self.route(step, verdict),
            Key::AnyError => path.key("route").key("_error"),
            Key::AnyOther => path.key("route").key("_"),
            Key::Loop(key) => DocPath::root().key(*key),
        }
    }

    /// Returns the place of the key by which a move leads where it does.
    fn place_of(&self, step: &Step, one: &Move) -> Place {
        Place::Key(match &one.way {
            _ if one.is_exhausted => state(&step.name).key("on_retry_exhausted"),
            Some(way) => self.way(step, &way.key),
            None => state(&step.name),
        })
    }
}

fn state(name: &StateName) -> DocPath {
    DocPath::root().key("states").key(name.as_str())
}

fn description(subject: &Subject<'_>, findings: &mut Diagnostics) {
    if subject.definition.description.is_none() {
        let place = Place::Key(DocPath::root().key("name"));
        let help = "add `description: …`; `show` and the reports print it";
        findings.push(Diagnostic::warning("no-description", place, "the loop has no description").help(help));
    }
}

#[cfg(test)]
mod tests;
