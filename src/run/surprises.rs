//! What surprises people in a run, and is said once in it.

/// What is said once in a run, because many think otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surprises {
    /// That nothing goes on behind the end of an action.
    pub(super) background: bool,
    /// That an action has no standard input.
    pub(super) input: bool,
    /// That a command is one of the host, if it is one at all.
    pub(super) command: bool,
}
