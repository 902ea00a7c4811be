//! Compares the judges of two trees.

use super::declared::Declared;
use super::found::{JudgesFound, JudgesState};
use super::tree::Tree;

/// The command of a state that observes.
#[derive(Clone, Copy, Debug)]
pub struct CheckCommand<'a> {
    /// The state.
    pub state: &'a str,
    /// The text, with what is known of its templates filled in.
    pub text: &'a str,
    /// The program that reads the text, and its arguments before the text, as in `shell:`.
    pub shell: &'a [String],
    /// The directory in which it is run, from the root of the repository; empty for the root.
    pub directory: &'a str,
    /// The directories of its `PATH` that lie in the tree, in order, from the root of the repository.
    pub search: &'a [String],
}

/// Two trees, and what has to be known of a loop to tell its judges.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// What the loop says.
    pub declared: &'a Declared,
    /// The commands of its states that observe.
    pub commands: &'a [CheckCommand<'a>],
    /// The loop file and all that it imports, where they lie in the repository.
    pub loop_files: &'a [String],
    /// The paths that differ between the two trees, tracked or not, in any order. Of ignored paths only those that
    /// [`programs`] names have to be in it.
    pub changed: &'a [String],
    /// The tree of the start.
    pub start: &'a dyn Tree,
    /// The final tree.
    pub end: &'a dyn Tree,
}

/// Returns the paths of programs that checks run and that may be ignored by git: what stands there at the start has to
/// be kept by whoever makes the tree of the start, as no commit has it.
pub fn programs(_commands: &[CheckCommand<'_>], _start: &dyn Tree) -> Vec<String> {
    Vec::new()
}

/// Tells what became of the judges.
pub fn look(_comparison: &Comparison<'_>) -> JudgesFound {
    // No rule is known yet, and unknown is not unchanged.
    JudgesFound { state: JudgesState::Unknown, ..JudgesFound::unchanged() }
}
