//! What a run has from its beginning, in one way whether it begins or goes on: its files, and its start.

use std::io;
use std::time::Duration;

use super::job_approvals;
use crate::base::time::Timestamp;
use crate::ci::is_ci;
use crate::ci::strangers::why_nobody_is_asked;
use crate::context::Session;
use crate::context::audience::Audience;
use crate::context::error::Error;
use crate::context::options::RunOptions;
use crate::engine::Start;
use crate::engine::event::LoopStart;
use crate::engine::question::People;
use crate::files::replace::replace;
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::writer::Journal;
use crate::session::end::finish;
use crate::session::prepare::claim::{cannot_save, place};
use crate::session::prepare::consent::Decided;

/// Makes the files of a new run, and removes them again if one of them fails.
pub(super) fn open(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> Result<Journal, Error> {
    let journal =
        begin_files(files, options, session).and_then(|()| Journal::create(files, session.redactor.clone()));
    journal.map_err(|error| {
        // Without a journal there is no run, and the mark would have later commands finish one.
        finish::end(files);
        files.release();
        cannot_save(&error)
    })
}

/// Makes the files beside the journal.
pub(super) fn begin_files(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> io::Result<()> {
    files.make_scratch()?;
    fault::write(1)?;
    replace(&files.pid(), format!("{}\n", std::process::id()))?;
    finish::begin(files, options, session)
}

/// Returns whom a run may ask: a person who is there, or one who answers later.
fn people(audience: &Audience, session: &Session<'_>) -> People {
    match audience {
        Audience::Person => People::Here,
        Audience::Ci(_) => why_nobody_is_asked(&session.env.lookup()).map_or(People::Later, People::Nobody),
    }
}

/// Assembles the start of a run that first began at `at`, and has taken so long until now.
pub(super) fn assemble(
    event: LoopStart,
    at: Timestamp,
    taken: Duration,
    files: &RunFiles,
    options: &RunOptions,
    decided: &Decided,
    session: &Session<'_>,
) -> Start {
    Start {
        env: session.env.for_templates(),
        run_dir: files.scratch().to_string_lossy().into_owned(),
        // The engine counts from the beginning of the run, a deadline of the job from now.
        deadline: options.deadline.map(|deadline| taken + RunOptions::before_the_end(deadline)),
        budget: decided.budget,
        on_handoff: decided.on_handoff,
        people: people(&options.audience, session),
        job: is_ci(&session.env.lookup()).then(|| place(files.loops())),
        approvals: job_approvals::read(options, session),
        ..Start::of(event, at, files.instance())
    }
}
