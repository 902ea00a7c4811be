//! What a fix has shown, and why one is not delivered: the words that rules, servers and people share.

/// What a run has shown about its fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixStanding {
    /// It passes.
    Verified,
    /// Nobody knows, and the user wants it all the same.
    Unverified,
}

/// Why something is not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// A sentence for people.
    pub why: String,
    /// The files that it is about.
    pub paths: Vec<String>,
}

impl Refusal {
    /// Makes a refusal that is about no file.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), paths: Vec::new() }
    }
}
