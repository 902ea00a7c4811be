//! The content of a claim's file: the run that holds the claim, and its scope.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::base::territory::Territory;
use crate::base::text::hex;
use crate::base::time::Timestamp;
use crate::engine::event::PolicyRecord;

/// The content of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// The run.
    pub instance: String,
    /// The loop.
    pub r#loop: String,
    /// The claimed paths.
    pub territory: Territory,
    /// The process of the run.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// When the claim was made.
    pub since: Timestamp,
    /// The position in the order of arrival, among the runs that were alive at that time.
    pub place: u64,
    /// The runs whose actions started it, the outermost first.
    pub ancestors: Vec<String>,
    /// The digest of the secret that its actions inherit.
    pub secret: String,
    /// What binds it from above, and with it whatever its actions start.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub policy: Vec<PolicyRecord>,
}

/// What the actions of a run carry in their environment, to prove that a run they start is its descendant: the
/// instance, and a secret that is in no file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The run whose action it is.
    pub instance: String,
    /// The secret.
    pub secret: String,
}

impl Pass {
    /// Makes the pass of a new claim.
    pub fn new(instance: &str) -> Self {
        Self { instance: instance.to_owned(), secret: uuid::Uuid::new_v4().simple().to_string() }
    }

    /// Parses it from the environment.
    pub fn parse(text: &str) -> Option<Self> {
        let (instance, secret) = text.rsplit_once(':')?;
        Some(Self { instance: instance.to_owned(), secret: secret.to_owned() })
    }

    /// Writes it for the environment.
    pub fn to_text(&self) -> String {
        format!("{}:{}", self.instance, self.secret)
    }

    /// Returns the digest of the secret, for the claim.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(&self.secret))
    }

    /// Tells whether this is the pass that the run with this claim gave to its actions.
    pub fn is_of(&self, record: &ClaimRecord) -> bool {
        self.instance == record.instance && self.digest() == record.secret
    }
}
