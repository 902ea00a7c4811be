//! Sends a run to its collectors, for a bounded time altogether. Whoever is there may hang, refuse, lead elsewhere or say
//! anything: nothing comes of it but whether a request was taken.

use std::time::Duration;

use http::Request;

use super::exporter_settings::OtlpTarget;
use super::otlp_export::encoded;
use super::wire_message::WireMessage;
use crate::base::lookup::Lookup;
use crate::forge::webhook::{WebhookFault, WebhookSender};
use crate::process::clock::Clock;

/// Sends requests one after the other, within a time.
#[derive(Clone, Debug)]
pub struct OtlpSender {
    webhook: WebhookSender,
    clock: Clock,
    whole: Duration,
}

impl OtlpSender {
    /// Reads how the network is reached, and begins to count.
    ///
    /// # Errors
    /// The environment says something about the network that cannot be.
    pub fn from_env(env: Lookup<'_>, whole: Duration) -> Result<Self, WebhookFault> {
        Ok(Self { webhook: WebhookSender::from_env(env)?, clock: Clock::start(), whole })
    }

    /// Sends requests to a collector until one is not taken.
    ///
    /// # Errors
    /// One was not taken, or the time is over.
    pub fn send(&self, target: &OtlpTarget, requests: &[WireMessage]) -> Result<(), WebhookFault> {
        requests.iter().try_for_each(|request| self.send_one(target, request))
    }

    fn send_one(&self, target: &OtlpTarget, request: &WireMessage) -> Result<(), WebhookFault> {
        let body = encoded(request, target.encoding);
        let left = self.whole.saturating_sub(self.clock.elapsed());
        if left.is_zero() {
            return Err(WebhookFault::TooLong);
        }
        let mut post = Request::post(target.address.clone())
            .header("Content-Type", target.encoding.media_type())
            .header("User-Agent", concat!("ll-loop/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &target.headers {
            post = post.header(name, value);
        }
        let post = post.body(Some(body.as_slice())).map_err(|_request| WebhookFault::Address)?;
        // The time of the environment is that of each request, and ours is that of all of them.
        self.webhook.send(post, left.min(target.timeout.unwrap_or(left)))
    }
}
