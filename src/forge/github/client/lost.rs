//! Why a request came to nothing.

/// Why there is no answer. The texts hold no address, because an address may be signed.
#[derive(Debug)]
pub(crate) enum LostAnswer {
    /// The request never left, so any request may be made again.
    Unsent(String),
    /// It may have arrived.
    Unanswered(String),
    /// Another try would fail in the same way.
    Impossible(String),
}
