//! Looks for secrets in files, so that none leaves the machine in one.

use std::io::Read as _;
use std::path::Path;

use super::read;
use crate::base::redact::Redactor;

/// Looks for a secret in a file, piece by piece.
pub fn holds_secret(redactor: &Redactor, path: &Path) -> std::io::Result<bool> {
    const PIECE: usize = 1 << 20;
    let mut file = read::open(path)?;
    let mut piece = Vec::with_capacity(PIECE + redactor.longest());
    loop {
        let read = (&mut file).take(PIECE as u64).read_to_end(&mut piece)?;
        if redactor.finds(&piece) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        // A secret may lie across the border of two pieces.
        let seen = piece.len().saturating_sub(redactor.longest());
        piece.drain(..seen);
    }
}
