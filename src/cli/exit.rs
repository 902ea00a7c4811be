//! Exit codes of the program itself; those of runs are defined with the outcomes.

use std::process::ExitCode;

use crate::context::error::{Error, Kind};

/// Nothing was run: wrong usage, an invalid loop file, or a refusal.
pub(super) const INVALID: u8 = 2;

/// A service did not answer, even after several tries (`EX_UNAVAILABLE` of sysexits.h).
pub(super) const UNAVAILABLE: u8 = 69;

/// Another process holds what this one needs.
pub(super) const LOCKED: u8 = 73;

/// Something failed outside of the loop, such as writing a file.
pub(super) const ERROR: u8 = 4;

/// A chain of runs reached its limit before the work was done.
pub(super) const NOT_CONTINUED: u8 = 1;

/// A file would change that was only to be checked.
pub(super) const WOULD_CHANGE: u8 = 1;

/// A criterion is not met.
pub(super) const UNMET: u8 = 1;

/// The work is stuck.
pub(super) const LIMIT: u8 = 3;

/// The named thing does not exist.
pub(super) const ABSENT: u8 = 1;

/// Returns the code of a message of the command line parser: 0 for help, 2 for a mistake.
pub(super) fn of_clap(message: &clap::Error) -> ExitCode {
    match message.exit_code() {
        0 => ExitCode::SUCCESS,
        // Whatever number the parser has for a mistake: 2 is what is promised.
        _ => ExitCode::from(INVALID),
    }
}

/// Returns the exit code of an error.
pub(super) fn of(error: &Error) -> u8 {
    match error.kind() {
        Kind::Refused | Kind::Over => INVALID,
        Kind::Locked | Kind::Taken | Kind::GoneOn => LOCKED,
        Kind::Unavailable => UNAVAILABLE,
        Kind::Absent => ABSENT,
        Kind::Interrupted(signal) => signal.exit_code(),
        Kind::Failed => ERROR,
    }
}
