//! Distinguishes runs that a person watches from runs in CI, which have stricter defaults.

use crate::ci::Provider;

/// A person or a CI system, to whom a run is shown. In CI, a run is strict, asks no model unless allowed, and is
/// reported.
#[derive(Clone, Debug, Default)]
pub enum Audience {
    /// A person at a terminal, or a pipe.
    #[default]
    Person,
    /// A CI system.
    Ci(Provider),
}

impl Audience {
    /// Returns the CI system, where it is one.
    pub fn provider(&self) -> Option<&Provider> {
        match self {
            Self::Person => None,
            Self::Ci(provider) => Some(provider),
        }
    }

    /// Tells whether it is a CI system.
    pub fn is_ci(&self) -> bool {
        matches!(self, Self::Ci(_))
    }
}
