//! Reports errors of commands that run loops in the same places as runs, where somebody asked for reports.

use super::exit;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::RunOptions;

/// Returns the result; reports an error first, as that of a run that could not begin. `name` is the loop or run, as
/// the caller named it.
pub(super) fn told<T>(
    result: Result<T, Error>,
    name: Option<&str>,
    options: &RunOptions,
    session: &Session<'_>,
) -> Result<T, Error> {
    result.inspect_err(|error| session.report_unbegun(error, exit::of(error), name, options))
}
