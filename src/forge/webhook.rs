//! Posts one document to an address that somebody named: whoever is there may hang, refuse, lead elsewhere or say anything, and
//! nothing comes of it but whether it was taken.

use std::time::Duration;

use http::{Request, Uri};
use serde_json::Value;

use super::github::client::LostAnswer;
use super::github::http::Transport;
use crate::base::lookup::Lookup;
use crate::base::text::one_line;

/// How long it may take altogether.
const WHOLE: Duration = Duration::from_secs(10);

/// Why a document was not taken. No part of the address is shown: it may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookFault {
    /// It is no address.
    #[error("it is not an address that something can be posted to")]
    Address,
    /// The environment says something about the network that cannot be.
    #[error("{0}")]
    Setup(String),
    /// It leads elsewhere.
    #[error("it leads elsewhere, which is not followed")]
    Redirect,
    /// It refuses.
    #[error("it answers with the status {0}")]
    Status(u16),
    /// There was no time left.
    #[error("it took too long")]
    TooLong,
    /// Nobody answers.
    #[error("no answer: {0}")]
    Lost(String),
}

/// Returns the host of an address, where it has one.
pub fn host(address: &str) -> Option<String> {
    Some(address.parse::<Uri>().ok()?.host()?.to_ascii_lowercase())
}

/// Posts a document. What is answered is not read.
///
/// # Errors
/// It was not taken, as far as anybody knows.
pub fn post(address: &str, document: &Value, env: Lookup<'_>) -> Result<(), WebhookFault> {
    let body = document.to_string();
    let request = Request::post(address)
        .header("Content-Type", "application/json")
        .header("User-Agent", "ll-loop")
        .body(Some(body.as_bytes()))
        .map_err(|_| WebhookFault::Address)?;
    WebhookSender::from_env(env)?.send(request, WHOLE)
}

/// Sends requests by the proxy that the environment names.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    transport: Transport,
}

impl WebhookSender {
    /// Reads how the network is reached.
    ///
    /// # Errors
    /// The environment says something about the network that cannot be.
    pub fn from_env(env: Lookup<'_>) -> Result<Self, WebhookFault> {
        let transport = Transport::from_env(env).map_err(|why| WebhookFault::Setup(why.to_string()))?;
        Ok(Self { transport })
    }

    /// Sends a request that may take so long altogether, but for the name of its server: how long a system looks for that is
    /// nobody's to say. What is answered is not read.
    ///
    /// # Errors
    /// It was not taken, as far as anybody knows.
    pub fn send(&self, request: Request<Option<&[u8]>>, whole: Duration) -> Result<(), WebhookFault> {
        let answer = self.transport.client(Some(whole)).send(request);
        match answer.map(|answer| answer.status().as_u16()) {
            Ok(200..=299) => Ok(()),
            Ok(300..=399) => Err(WebhookFault::Redirect),
            Ok(status) => Err(WebhookFault::Status(status)),
            Err(LostAnswer::Impossible(why) | LostAnswer::Unsent(why) | LostAnswer::Unanswered(why)) => {
                Err(WebhookFault::Lost(one_line(&why, 200)))
            }
        }
    }
}
