//! Merges the edits of this project with those of the repository that a loop comes from, as git merges files.

use std::path::Path;

use crate::base::explanation::Explanation;
use crate::base::text::one_line;
use crate::context::Session;
use crate::context::error::Error;
use crate::files::transient;
use crate::git::call::Call;
use crate::git::runner::Git;

/// A file in three versions.
pub(super) struct Versions<'v> {
    /// As it is here.
    pub(super) ours: &'v str,
    /// As it was when it was copied.
    pub(super) base: &'v str,
    /// As it is there now.
    pub(super) theirs: &'v str,
}

/// Returns the file with the edits of both.
pub(super) fn merge(path: &str, versions: &Versions<'_>, session: &Session<'_>) -> Result<String, Error> {
    let Versions { ours, base, theirs } = *versions;
    if ours == theirs || base == theirs {
        return Ok(ours.to_owned());
    }
    if ours == base {
        return Ok(theirs.to_owned());
    }
    let directory = transient::directory("")
        .map_err(|error| Error::failed("cannot make a temporary directory", &error))?;
    let names = ["ours", "base", "theirs"];
    for (name, text) in names.iter().zip([ours, base, theirs]) {
        fs_err::write(directory.path().join(name), text)
            .map_err(|error| Error::failed("cannot write a temporary file", &error))?;
    }
    with_git(directory.path(), names, session).map_err(|why| {
        let message =
            format!("the edits of `{}` and those of its repository do not go together", one_line(path, 200));
        let message = match why {
            Apart::Both => message,
            Apart::Failed(why) => format!("{message}: {why}"),
        };
        Error::refused(message).with_hint("undo the edits, take the new version, and make them again")
    })
}

/// Why there is no file with the edits of both.
enum Apart {
    /// Both changed the same lines.
    Both,
    /// Git could not merge them.
    Failed(Explanation),
}

fn with_git(directory: &Path, names: [&str; 3], session: &Session<'_>) -> Result<String, Apart> {
    let git = Git::own(directory, session.env.for_ourselves());
    let merged = git
        .judged(&Call::new("merge-file").with(&["-p", "-q"]).paths(names))
        .map_err(|why| Apart::Failed(why.into()))?;
    if !merged.is_yes {
        return Err(Apart::Both);
    }
    String::from_utf8(merged.printed).map_err(|error| Apart::Failed(error.into()))
}
