//! What is fuzzed: plain functions of bytes, which libFuzzer calls (`fuzz_targets/`) and the driver on stable
//! (`driver.rs`). A body panics when a promise is broken, and only then.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher as _};

pub mod bytes;
pub mod mutate;
pub mod repository;
pub mod targets;
pub mod world;

/// Something that is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of its file in `fuzz_targets/`.
    pub name: &'static str,
    /// Tries an input. It panics when a promise is broken.
    pub run: fn(&[u8]),
    /// Returns inputs to begin with: honest ones, which get far.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words that mean something in its inputs.
    pub words: &'static [&'static str],
}

/// Everything that is fuzzed.
pub const TARGETS: &[Target] = &[
    targets::loading::TARGET,
    targets::templates::TARGET,
    targets::journal::TARGET,
    targets::bundle::TARGET,
    targets::hosts::TARGET,
    targets::redaction::TARGET,
    targets::criteria::TARGET,
    targets::events::TARGET,
];

/// Returns the target of this name.
pub fn by_name(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

thread_local! {
    static NOTED: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes something that an input led to: the driver keeps inputs that led to something new. It stands in for the
/// coverage that libFuzzer measures.
pub fn note(what: impl Hash) {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    NOTED.with_borrow_mut(|noted| noted.insert(hasher.finish()));
}

/// Takes what was noted since the last call.
pub fn take_notes() -> BTreeSet<u64> {
    NOTED.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fuzzing_begins_with_keeps_every_promise() {
        for target in TARGETS {
            for seed in (target.seeds)() {
                (target.run)(&seed);
            }
        }
    }
}
