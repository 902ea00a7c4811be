//! `ll-loop guard`: what a run in CI starts beside itself, for when it is killed.

use std::io;

use super::query;
use crate::cli::background;
use crate::context::Session;
use crate::context::error::Error;

/// The name of the command.
const COMMAND: &str = "guard";

/// Guards the run at the other end of standard input.
#[expect(
    clippy::disallowed_methods,
    reason = "this process has to outlive the directory that it was started in"
)]
pub(in crate::cli) fn guard(session: &Session<'_>) -> Result<u8, Error> {
    // No signal for the run, and no terminal or workspace that goes away, reaches this process.
    background::leave_session();
    let _stays = std::env::set_current_dir("/");
    let guarded = session.guard(io::BufReader::new(io::stdin()));
    guarded.map(|()| 0).map_err(|error| Error::failed("cannot guard the run", &error))
}

/// Returns the command that starts this program as a guard.
pub(in crate::cli) fn argv() -> Vec<String> {
    let program = query::helper().argv.into_iter().next();
    program.into_iter().chain([COMMAND.to_owned()]).collect()
}
