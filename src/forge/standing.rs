//! What a fix has shown, and why one is not delivered: the words that rules, servers and people share.

/// What a run has shown about its fix. What has shown more comes later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FixStanding {
    /// It is unknown, and the user wants it all the same.
    Unverified,
    /// It passes, and people have to look at what that says: the run changed what its checks are judged by, or the parts of
    /// the fix were verified each alone.
    ToReview,
    /// It passes.
    Verified,
}

impl FixStanding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Unverified, Self::ToReview, Self::Verified];

    /// Returns the word that is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unverified => "unverified",
            Self::ToReview => "to_review",
            Self::Verified => "verified",
        }
    }

    /// Tells whether a pull request with it is a draft.
    pub fn needs_draft(self) -> bool {
        self != Self::Verified
    }
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
