//! Writes files of loops back into their places.

use std::path::Path;

use crate::context::error::Error;
use crate::files::place::resolved;
use crate::files::replace;

/// Writes a file whole. A link stays one, and the file that it leads to is written.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(file: &Path, text: &str) -> Result<(), Error> {
    replace::replace(&resolved(file), text)
        .map_err(|error| Error::failed(format!("cannot write `{}`", file.display()), &error))
}
