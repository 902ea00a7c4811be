//! Exit codes of the program itself; those of a run are with its outcome.

use std::process::ExitCode;

use crate::session::error::{Error, Kind};

/// Usage, an unreadable or invalid loop file, a refusal: nothing was run.
pub(super) const INVALID: u8 = 2;

/// A service is down or not there, also after several tries.
pub(super) const UNAVAILABLE: u8 = 69;

/// Another process has what this one needs.
pub(super) const LOCKED: u8 = 73;

/// Something went wrong that no loop is to blame for.
pub(super) const ERROR: u8 = 4;

/// A chain of runs is at its end, and the work is not done.
pub(super) const NOT_CONTINUED: u8 = 1;

/// A criterion is not met.
pub(super) const UNMET: u8 = 1;

/// Nothing moves any more.
pub(super) const LIMIT: u8 = 3;

/// What was asked about is not there.
pub(super) const ABSENT: u8 = 1;

/// Prints what the command line parser has to say, and returns its code: 0 for help, 2 for a mistake.
pub(super) fn of_clap(message: &clap::Error) -> ExitCode {
    let _closed = message.print();
    match message.exit_code() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(INVALID),
    }
}

/// Returns the exit code of an error.
pub(super) fn of(error: &Error) -> u8 {
    match error.kind() {
        Kind::Refused => INVALID,
        Kind::Locked => LOCKED,
        Kind::Unavailable => UNAVAILABLE,
        Kind::Absent => ABSENT,
        Kind::Interrupted(signal) => signal.exit_code(),
        Kind::Failed => ERROR,
    }
}
