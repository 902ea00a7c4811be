//! What is wrong with the value of an option. The parser of the command line shows it behind the option and the value.

/// A value that an option does not take, with what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misread(pub(super) &'static str);
