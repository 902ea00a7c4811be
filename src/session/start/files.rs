//! Makes the files that a run has from its beginning.

use std::io;

use crate::files::replace::replace;
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::writer::Journal;
use crate::session::context::Session;
use crate::session::end::finish;
use crate::session::error::Error;
use crate::session::options::RunOptions;
use crate::session::prepare::claim::cannot_save;

/// Makes the files of a new run, and removes them again if one of them fails.
pub(super) fn open(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> Result<Journal, Error> {
    let journal =
        begin_files(files, options, session).and_then(|()| Journal::create(files, session.redactor.clone()));
    journal.map_err(|error| {
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
