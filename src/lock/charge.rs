//! What the guard of a run is told about its lease, so that it can give it back.

use serde::{Deserialize, Serialize};

/// What the guard of a run has to know to give its lease back. The header is a secret, and goes through a pipe alone.
#[derive(Serialize, Deserialize)]
pub(crate) struct LeaseCharge {
    /// Where the lease is.
    pub(super) url: String,
    /// The header by which that server lets us in, if it needs one.
    pub(super) header: Option<String>,
    /// Whether ids there are of the longer kind.
    pub(super) is_sha256: bool,
    /// The name of the ref.
    pub(super) name: String,
}
