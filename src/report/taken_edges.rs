//! The way that a run took, as edges between states: all of them, and those between the steps that people see.

use std::hash::Hash;

use indexmap::IndexMap;

use super::step::Step;
use crate::base::name::StateName;

/// A state or an edge counts so many different verdicts; the rest is counted together.
const MAX_VERDICTS: usize = 16;

/// A run counts so many states, more than a loop has, and so many edges between them. Only a journal that no loop of ours
/// wrote names more, which are not counted: it must not take more memory the longer it is.
pub(super) const MAX_STATES: usize = 4_000;
const MAX_EDGES: usize = 4 * MAX_STATES;

/// Tells whether an entry may be counted: there is room for one more, or it is counted already.
pub(super) fn has_room<K: Hash + Eq, V>(counts: &IndexMap<K, V>, key: &K, most: usize) -> bool {
    counts.len() < most || counts.contains_key(key)
}

/// How often a state followed another, by both.
pub(super) type Edges = IndexMap<(StateName, StateName), EdgeCount>;

/// Counts an edge once more.
pub(super) fn count_edge(edges: &mut Edges, from: &StateName, to: &StateName, word: &str) {
    let edge = (from.clone(), to.clone());
    if has_room(edges, &edge, MAX_EDGES) {
        edges.entry(edge).or_default().add(word);
    }
}

/// How often a state followed another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EdgeCount {
    /// In all.
    pub count: u64,
    /// By the verdict that chose it.
    pub verdicts: IndexMap<String, u64>,
}

impl EdgeCount {
    /// Counts it once more.
    pub(super) fn add(&mut self, word: &str) {
        self.count += 1;
        count(&mut self.verdicts, word);
    }
}

/// The edges between the steps that people see, in a loop that names roles: what keeps the board between two of them is
/// part of the edge.
#[derive(Clone, Debug, Default)]
pub(super) struct VisibleEdges {
    left: Option<(StateName, String)>,
    edges: Edges,
}

impl VisibleEdges {
    /// Takes a route: the step that it leaves, and the word by which it was chosen.
    pub(super) fn route(&mut self, from: &StateName, word: &str, step: Option<&Step>) {
        if step.is_some_and(|step| step.state == *from && step.keeps_the_board()) {
            return;
        }
        self.reach(from);
        self.left = Some((from.clone(), word.to_owned()));
    }

    /// Takes the end of the run.
    pub(super) fn reach(&mut self, state: &StateName) {
        if let Some((from, word)) = self.left.take() {
            count_edge(&mut self.edges, &from, state, &word);
        }
    }

    pub(super) fn edges(&self) -> &Edges {
        &self.edges
    }
}

/// Counts a word once more.
pub(super) fn count(counts: &mut IndexMap<String, u64>, word: &str) {
    let word = if counts.len() < MAX_VERDICTS || counts.contains_key(word) { word } else { "others" };
    *counts.entry(word.to_owned()).or_default() += 1;
}
