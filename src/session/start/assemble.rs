//! Assembles the start of a run in one way whether the run begins or goes on.

use std::time::Duration;

use crate::base::time::Timestamp;
use crate::engine::Start;
use crate::engine::event::LoopStart;
use crate::journal::files::RunFiles;
use crate::session::context::Session;
use crate::session::options::RunOptions;
use crate::session::prepare::consent::Decided;

/// Assembles the start of a run that first began at `at`, and has taken so long until now.
pub(super) fn assemble(
    event: LoopStart,
    (at, taken): (Timestamp, Duration),
    files: &RunFiles,
    options: &RunOptions,
    decided: &Decided,
    session: &Session<'_>,
) -> Start {
    Start {
        env: session.env.all().clone(),
        run_dir: files.scratch().to_string_lossy().into_owned(),
        deadline: options.deadline.map(|deadline| taken + RunOptions::before_the_end(deadline)),
        budget: decided.budget,
        on_handoff: decided.on_handoff,
        ..Start::of(event, at, files.instance())
    }
}
