//! The gate where there is nothing that it could start.

use std::io;
use std::path::Path;

/// Refuses: nothing orders it here.
///
/// # Errors
/// Always.
pub fn gate(_: &Path) -> io::Result<u8> {
    Err(io::ErrorKind::Unsupported.into())
}
