//! What tells that a file was written, without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use sha2::{Digest as _, Sha256};

use crate::base::text::hex;

/// Describes a file by everything that changes with its content.
pub(super) fn identity(metadata: &Metadata) -> String {
    let parts = [
        metadata.len().to_string(),
        metadata.ino().to_string(),
        format!("{}.{}", metadata.mtime(), metadata.mtime_nsec()),
        format!("{}.{}", metadata.ctime(), metadata.ctime_nsec()),
        metadata.mode().to_string(),
    ];
    hex(&Sha256::digest(parts.join(" ")))
}
