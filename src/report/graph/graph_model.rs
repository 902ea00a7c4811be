//! The states of a loop and the ways between them, of a machine, of a run, or of a machine with what a run did in it.

use std::fmt::Write as _;

use crate::base::text::plural;
use crate::machine::{self, Machine, Meaning, Target};
use crate::report::digest::{Digest, EndKind};
use crate::report::taken_edges::EdgeCount;

/// So many words of one edge are written; the rest is counted.
const MAX_WORDS: usize = 3;

/// A state, as it is drawn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnState {
    /// Its name.
    pub name: String,
    /// What it does, where the loop is known.
    pub work: Option<String>,
    /// What ending here means, for a terminal of a loop that is known.
    pub meaning: Option<&'static str>,
    /// How often the run was here.
    pub visits: u64,
    /// How often it failed here.
    pub failing: u64,
    /// Whether it is a check: its observation may be made again without harm.
    pub is_check: bool,
    /// Whether it is a terminal.
    pub is_end: bool,
    /// How the run ended, if it ended here.
    pub end: Option<DrawnEnd>,
    /// Where a picture of it leads.
    pub link: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawnEnd {
    /// For readers that know only good, bad and broken.
    pub kind: EndKind,
    /// The outcome.
    pub word: &'static str,
}

/// A way from one state to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The index of the state that is left.
    pub from: usize,
    /// The index of the state that follows.
    pub to: usize,
    /// The words for which it is taken.
    pub label: String,
    /// How often the run took it.
    pub count: u64,
}

/// A way, as a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRow<'g> {
    /// The state that is left.
    pub from: &'g str,
    /// The words for which it is left.
    pub words: &'g str,
    /// The state that follows.
    pub to: &'g str,
    /// How often.
    pub count: u64,
}

/// A loop as states and the ways between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The states, in the order of the file, or in that of the first visits.
    pub states: Vec<DrawnState>,
    /// The ways between them.
    pub edges: Vec<Edge>,
    /// The index of the state in which it begins; beyond the last where nothing is known of it.
    pub initial: usize,
    /// Whether a run is drawn into it, so that no count means that the run did not come there.
    pub has_run: bool,
}

impl Graph {
    /// Returns the graph of a loop.
    pub fn of_machine(machine: &Machine) -> Self {
        let targets: Vec<Target> = machine::graph::targets(machine).collect();
        let index = |target: Target| targets.iter().position(|known| *known == target).unwrap_or(0);
        let state = |target: &Target| DrawnState {
            name: machine.name_of(*target).to_string(),
            work: match target {
                Target::Step(id) => machine.step(*id).action.as_ref(),
                Target::End(_) => None,
            }
            .map(|action| action.text().source().to_owned()),
            meaning: match target {
                Target::Step(_) => None,
                Target::End(id) => Some(meaning(machine.end(*id).meaning)),
            },
            is_check: match target {
                Target::Step(id) => machine.step(*id).is_check,
                Target::End(_) => false,
            },
            is_end: matches!(target, Target::End(_)),
            ..DrawnState::default()
        };
        let edges = machine::graph::edges(machine).into_iter();
        let edges =
            edges.map(|way| Edge { from: index(way.from), to: index(way.to), label: way.label, count: 0 });
        Self {
            states: targets.iter().map(state).collect(),
            edges: edges.collect(),
            initial: index(machine.initial),
            has_run: false,
        }
    }

    /// Draws a run into the graph. What it did that the loop does not have, because the loop has changed or because a rule
    /// of the whole loop led there, is added.
    #[must_use]
    pub fn with_run(mut self, digest: &Digest) -> Self {
        self.has_run = true;
        // Without the loop, the run is drawn as people see it; in the picture of the loop, every state has its place.
        let taken = if self.states.is_empty() { digest.shown_edges() } else { digest.edges() };
        for ((from, to), edge) in taken {
            let (from, to) = (self.state(from.as_str()), self.state(to.as_str()));
            // A step counts its visits itself.
            self.states[to].visits += edge.count;
            match self.edges.iter_mut().find(|known| known.from == from && known.to == to) {
                Some(known) => known.count += edge.count,
                None => self.edges.push(Edge { from, to, label: words(edge), count: edge.count }),
            }
        }
        let keeps_all = digest.shown_edges().len() == digest.edges().len();
        for (name, count) in digest.states() {
            // States that only keep the board are not added to a way that leaves them out.
            if keeps_all || self.states.iter().any(|state| state.name == name.as_str()) {
                let state = self.state(name.as_str());
                (self.states[state].visits, self.states[state].failing) = (count.visits, count.failing);
            }
        }
        if let Some(end) = digest.end() {
            let state = self.state(end.final_state.as_str());
            let is_step = digest.states().contains_key(&end.final_state);
            let ended = &mut self.states[state];
            ended.end = Some(DrawnEnd { kind: digest.end_kind(), word: end.outcome.word() });
            // A run may also end in a step, as at a cap.
            ended.is_end |= !is_step;
            // A terminal without an action is no step, so that nothing has counted it.
            ended.visits = ended.visits.max(1);
        }
        self
    }

    /// Returns every way as a row, the one that the run took most often on top.
    pub fn rows(&self) -> Vec<EdgeRow<'_>> {
        let name = |index: usize| self.states[index].name.as_str();
        let rows = self.edges.iter();
        let rows = rows.map(|edge| EdgeRow {
            from: name(edge.from),
            words: &edge.label,
            to: name(edge.to),
            count: edge.count,
        });
        let mut rows: Vec<EdgeRow<'_>> = rows.collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.count));
        rows
    }

    /// Gives every state of a run the place that a picture of it leads to.
    #[must_use]
    pub fn with_links(mut self, link: impl Fn(&str) -> String) -> Self {
        for state in self.states.iter_mut().filter(|state| state.visits > 0) {
            state.link = Some(link(&state.name));
        }
        self
    }

    /// Returns the index of a state, which is added if it is not there.
    fn state(&mut self, name: &str) -> usize {
        self.states.iter().position(|state| state.name == name).unwrap_or_else(|| {
            self.states.push(DrawnState { name: name.to_owned(), ..DrawnState::default() });
            self.states.len() - 1
        })
    }
}

impl DrawnState {
    /// Returns what a run did here, in words; nothing if it was not here.
    pub fn standing(&self) -> Option<String> {
        let mut out = String::new();
        if let Some(end) = self.end {
            let _ = write!(out, "{} {}", end.sign(), end.word.replace('_', " "));
        }
        if self.visits > 0 && !(self.is_end && self.end.is_some() && self.visits == 1) {
            let _ = write!(out, "{}{}", separator(&out), plural(self.visits, "visit"));
        }
        if self.failing > 0 {
            let _ = write!(out, "{}{} failed", separator(&out), self.failing);
        }
        Some(out).filter(|out| !out.is_empty())
    }
}

impl DrawnEnd {
    /// Returns a sign for it that needs no colour.
    pub fn sign(self) -> &'static str {
        match self.kind {
            EndKind::Success | EndKind::NotRun => "✓",
            EndKind::HandedOff => "⏸",
            EndKind::Failure | EndKind::Error => "✗",
        }
    }
}

impl Edge {
    /// Returns the words, and how often a run went this way.
    pub fn counted(&self) -> String {
        if self.count == 0 { self.label.clone() } else { format!("{} ×{}", self.label, self.count) }
    }
}

fn separator(before: &str) -> &'static str {
    if before.is_empty() { "" } else { ", " }
}

fn words(edge: &EdgeCount) -> String {
    let mut words: Vec<&str> = edge.verdicts.keys().take(MAX_WORDS).map(String::as_str).collect();
    if edge.verdicts.len() > MAX_WORDS {
        words.push("…");
    }
    words.join(", ")
}

fn meaning(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Success | Meaning::DeclaredSuccess => "success",
        Meaning::Failure => "failure",
        Meaning::Blocked => "blocked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::failing;

    #[test]
    fn the_graph_of_a_run_has_what_it_did() {
        let graph = Graph::default().with_run(&failing().digest());
        let names: Vec<&str> = graph.states.iter().map(|state| state.name.as_str()).collect();
        assert_eq!(names, ["check", "fix", "failed"]);
        assert_eq!(graph.states.iter().map(|state| state.visits).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(graph.states[2].standing().as_deref(), Some("✗ failure"));
        assert!(graph.states[2].is_end);
        let ways = graph
            .edges
            .iter()
            .map(|edge| (names[edge.from], edge.label.as_str(), names[edge.to], edge.count));
        let expected = [("check", "no", "fix", 2), ("fix", "next", "check", 2), ("check", "no", "failed", 1)];
        assert_eq!(ways.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_a_run_did_is_added_to_what_the_loop_has() {
        let state = |name: &str| DrawnState { name: name.to_owned(), ..DrawnState::default() };
        let edge = Edge { from: 0, to: 1, label: "no".to_owned(), count: 0 };
        let known = Graph {
            states: vec![state("check"), state("other")],
            edges: vec![edge],
            initial: 0,
            has_run: false,
        };
        let graph = known.with_run(&failing().digest());
        let visits: Vec<(&str, u64)> =
            graph.states.iter().map(|state| (state.name.as_str(), state.visits)).collect();
        assert_eq!(visits, [("check", 3), ("other", 0), ("fix", 2), ("failed", 1)]);
        assert_eq!(graph.edges.iter().map(|edge| edge.count).collect::<Vec<_>>(), [0, 2, 2, 1]);
    }
}
