//! Whom a run is shown to: a person, or a CI system.

use crate::ci::Provider;

/// Whom a run is shown to. In CI it is strict, asks no model unless told to, and is reported.
#[derive(Clone, Debug, Default)]
pub enum Audience {
    /// A person at a terminal, or a pipe.
    #[default]
    Person,
    /// A CI system.
    Ci(Provider),
}

impl Audience {
    /// Tells whether it is a CI system.
    pub fn is_ci(&self) -> bool {
        matches!(self, Self::Ci(_))
    }
}
