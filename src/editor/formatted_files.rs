//! The files of a project in their one form: which there are, and which would change.

use std::path::{Path, PathBuf};

use super::format::{self, Unformatted};
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::builtin::is_builtin;
use crate::definition::load;
use crate::definition::vendored::CopiedFile;
use crate::definition::yaml::MAX_SIZE;
use crate::testing::suite;

/// What formatting makes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FormattedFile {
    /// It has its form.
    Same,
    /// It would have this text.
    Changed(String),
    /// It is left as it is.
    Left(Unformatted),
    /// It is no loop, no library and no test.
    Other,
}

/// Returns the files that are meant, each once: loops, libraries and tests, without copies of other repositories.
///
/// # Errors
/// A name means no file.
pub(crate) fn files(named: &[String], session: &Session<'_>) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    if named.is_empty() {
        files.extend(load::list(&session.cwd).into_iter().map(|listed| listed.path));
        files.extend(suite::listed(session).into_iter().map(|place| place.path));
    }
    for name in named {
        let given = session.path(Path::new(name));
        if given.is_dir() {
            files.extend(load::list_below(&given, &session.cwd).into_iter().map(|listed| listed.path));
        } else if let Some(test) = suite::at_path(Path::new(name), session) {
            files.push(test.path);
        } else {
            files.push(session.find(name, false)?.path);
        }
    }
    files.retain(|file| CopiedFile::at(file).is_none() && !is_builtin(&file.display().to_string()));
    files.sort();
    files.dedup();
    Ok(files)
}

/// Formats a file, and writes nothing.
///
/// # Errors
/// The file cannot be read, or a link leads to it out of the repository.
pub(crate) fn formatted(file: &Path, session: &Session<'_>) -> Result<FormattedFile, Error> {
    // Before it is read: neither the content nor an error may tell what lies outside.
    if !load::is_within(file, &session.cwd) {
        let shown = file.strip_prefix(&session.cwd).unwrap_or(file).display();
        return Err(Error::refused(format!("`{shown}` lies outside of the repository"))
            .with_hint("links are followed; name the file where it lies"));
    }
    let text = session.unsaved.text(file, MAX_SIZE as u64);
    let text = text.map_err(|error| Error::failed(format!("cannot read `{}`", file.display()), &error))?;
    if !suite::is_test_file(file) && !load::is_loop_or_library(&text) {
        return Ok(FormattedFile::Other);
    }
    Ok(match format::formatted(&text) {
        Ok(made) if made == text => FormattedFile::Same,
        Ok(made) => FormattedFile::Changed(made),
        Err(why) => FormattedFile::Left(why),
    })
}
