//! Writes down what is claimed of a run, beside its bundle: only then is the digest of that known.

use std::io;
use std::path::Path;

use super::open;
use crate::files::file_name::file_name;
use crate::files::replace::replace;
use crate::report::digest::Digest;
use crate::statement::subjects::BundleFile;
use crate::statement::{DETAILS_FILE, VERDICT_FILE, simple_verdict, verdict_details};

/// Writes the statements of a run, and removes those of an earlier one that it does not have.
pub(crate) fn write(digest: &Digest, bundle: Option<&Path>, directory: &Path) -> io::Result<()> {
    let bundle = bundle.map(subject).transpose()?;
    let verdict = simple_verdict::of(digest, bundle.as_ref()).map(|statement| statement.text());
    let details = verdict_details::of(digest, bundle.as_ref()).map(|statement| statement.text());
    let mut all = Ok(());
    for (name, text) in [(VERDICT_FILE, verdict), (DETAILS_FILE, details)] {
        let path = directory.join(name);
        let written = match text {
            Some(text) => replace(&path, text),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        if let Err(error) = written {
            // That of an earlier run would be taken for this one's.
            match fs_err::remove_file(&path) {
                Err(absent) if absent.kind() == io::ErrorKind::NotFound => {}
                removed => all = all.and(removed),
            }
            if error.kind() != io::ErrorKind::NotFound {
                all = all.and(Err(error));
            }
        }
    }
    all
}

/// Names a bundle by its digest.
fn subject(path: &Path) -> io::Result<BundleFile> {
    let name = file_name(path);
    Ok(BundleFile { name, sum: open::digest(path)? })
}
