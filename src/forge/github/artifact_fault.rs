//! What can go wrong with artifacts, and what to do about it. No message holds an address, because addresses are signed.

use std::io;

use super::api::{ApiError, UNAVAILABLE};

/// Why an artifact was not stored, found or fetched.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// No service takes this name.
    #[error("`{name}` is not a valid artifact name: {reason}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// What the runner says about its service makes no sense.
    #[error("the runner's access to the artifact service cannot be used: {0}")]
    Access(String),
    /// The name is taken, and artifacts never change.
    #[error("another job or step of this run has stored `{name}` already; they share this name")]
    Conflict {
        /// The name.
        name: String,
    },
    /// The account has no storage left.
    #[error("there is no storage left for artifacts: {message}")]
    Quota {
        /// What the service says.
        message: String,
    },
    /// 401 or 403.
    #[error("the artifact service refuses the runner's token: {message}")]
    Denied {
        /// What the service says.
        message: String,
    },
    /// The service speaks another version of the protocol.
    #[error("the server has no artifact service of version 4")]
    Unsupported,
    /// Any other unsuccessful status.
    #[error("{what} was refused with status {status}: {message}")]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// The status.
        status: u16,
        /// What the service says.
        message: String,
    },
    /// The service has trouble, or cannot be reached, also after several tries.
    #[error("{what} failed: {reason}")]
    Unavailable {
        /// What was asked for.
        what: &'static str,
        /// The result of the last try.
        reason: String,
    },
    /// There is no such artifact.
    #[error("there is no artifact {0}")]
    Absent(String),
    /// There are some of other keys alone.
    #[error("there is no run with the key `{key}`, but {}", shown(names))]
    OtherKey {
        /// The key.
        key: String,
        /// The artifacts that there are.
        names: Vec<String>,
    },
    /// Nothing says which is meant.
    #[error("there are runs with several keys: {}", shown(names))]
    SeveralKeys {
        /// The artifacts that there are.
        names: Vec<String>,
    },
    /// There was one.
    #[error("the artifact `{name}` has expired")]
    Expired {
        /// The name.
        name: String,
    },
    /// What came is not what was stored.
    #[error("the artifact has the digest {found} and should have {expected}")]
    Digest {
        /// What the service says.
        expected: String,
        /// What came.
        found: String,
    },
    /// It is larger than the caller wants.
    #[error("the artifact has more than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// A local file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The REST API.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl ArtifactError {
    /// Returns what to do about it.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Name { .. } => r#"use 1 to 255 characters, and none of `" : < > | * ? \ /`"#,
            Self::Conflict { .. } => {
                "an artifact never changes: pass `key`, so that each has a name of its own"
            }
            Self::Quota { .. } => {
                "delete old artifacts, give `--retention-days`, or look at the billing of the account"
            }
            Self::Denied { .. } => "the token is that of one job: it is not valid after the job has ended",
            Self::Unsupported => {
                "GitHub Enterprise Server has version 3 alone: upload the directory with actions/upload-artifact@v3"
            }
            Self::Unavailable { .. } => UNAVAILABLE,
            Self::Expired { .. } => {
                "artifacts are kept for `retention-days`: run it again, or keep them longer"
            }
            Self::OtherKey { .. } => {
                "name the one that is meant: `--key KEY` (input `key`), or `--from artifact:NAME` (input `resume-from`)"
            }
            Self::SeveralKeys { .. } => "name the one that is meant: `--key KEY`, or `artifact:NAME`",
            Self::Digest { .. } => "do not use it; try again, and if it stays so, make the artifact again",
            Self::Api(error) => return error.help(),
            Self::Access(_)
            | Self::Refused { .. }
            | Self::Absent(_)
            | Self::TooLarge { .. }
            | Self::Io(_) => return None,
        };
        Some(help.to_owned())
    }

    /// Tells whether it is the service that is not there now, and nothing wrong with what was asked.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Unsupported => true,
            Self::Api(error) => error.is_unavailable(),
            Self::Name { .. }
            | Self::Access(_)
            | Self::Conflict { .. }
            | Self::Quota { .. }
            | Self::Denied { .. }
            | Self::Refused { .. }
            | Self::Absent(_)
            | Self::OtherKey { .. }
            | Self::SeveralKeys { .. }
            | Self::Expired { .. }
            | Self::Digest { .. }
            | Self::TooLarge { .. }
            | Self::Io(_) => false,
        }
    }

    /// Tells whether what was asked for is not there.
    pub fn is_absent(&self) -> bool {
        matches!(
            self,
            Self::Absent(_)
                | Self::OtherKey { .. }
                | Self::Expired { .. }
                | Self::Api(ApiError::NotFound { .. } | ApiError::Gone { .. })
        )
    }
}

/// Lists names, but not hundreds of them.
fn shown(names: &[String]) -> String {
    const MOST: usize = 8;
    let listed: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(MOST) {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}
