//! Why a delivery stops before its end.

use crate::context::error::{Error, Kind};
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind};
use crate::forge::standing::Refusal;

/// Why a delivery stops.
#[derive(Clone, Debug)]
pub(crate) enum DeliveryStop {
    /// There is nothing to write, and why.
    Unchanged(String),
    /// It must not be delivered.
    Refused(Vec<Refusal>),
    /// Somebody else was faster.
    Raced(String),
    /// It failed.
    Failed(Error),
}

impl DeliveryStop {
    /// Refuses in a sentence.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::about(why, Vec::new())
    }

    /// Refuses because of files.
    pub(crate) fn about(why: impl Into<String>, paths: Vec<String>) -> Self {
        Self::Refused(vec![Refusal { why: why.into(), paths }])
    }
}

impl From<Error> for DeliveryStop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ForgeError> for DeliveryStop {
    fn from(ForgeError { kind, message, help }: ForgeError) -> Self {
        let failed = |kind| {
            let error = Error::refused(message.clone()).of_kind(kind);
            Self::Failed(match &help {
                Some(help) => error.with_hint(help),
                None => error,
            })
        };
        match kind {
            ForgeErrorKind::Raced => Self::Raced(message),
            ForgeErrorKind::Declined => {
                Self::refused(help.iter().fold(message, |message, help| format!("{message}: {help}")))
            }
            ForgeErrorKind::Locked => failed(Kind::Locked),
            ForgeErrorKind::Unavailable => failed(Kind::Unavailable),
            ForgeErrorKind::Failed => failed(Kind::Failed),
        }
    }
}

impl std::fmt::Display for DeliveryStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unchanged(why) | Self::Raced(why) => f.write_str(why),
            Self::Refused(why) => {
                let sentences: Vec<&str> = why.iter().map(|refusal| refusal.why.as_str()).collect();
                f.write_str(&sentences.join("; "))
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}
