//! A client for programs that are built without the feature `github`: each request fails at once, and says why.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "everything has the face of the real client"
)]

use std::io::Read;
use std::time::Duration;

use http::{Request, Response};

use super::lost::Lost;

/// The address of a proxy that nobody uses.
#[derive(Clone, Debug)]
pub(in crate::ci::github) struct Proxy;

impl Proxy {
    pub(in crate::ci::github) fn parse(_address: &str, _except: &str) -> Option<Self> {
        Some(Self)
    }
}

/// A client that sends nothing.
#[derive(Clone, Debug)]
pub(in crate::ci::github) struct Client;

impl Client {
    pub(in crate::ci::github) fn new(_: Option<&Proxy>, _: Duration, _: Option<Duration>) -> Self {
        Self
    }
    pub(in crate::ci::github) fn send(&self, _: Request<Option<&[u8]>>) -> Result<Response<Body>, Lost> {
        Err(Lost::Impossible("this ll-loop was built without the feature `github`".to_owned()))
    }
}

/// The body of an answer that never comes.
#[derive(Debug)]
pub(in crate::ci::github) struct Body;

impl Body {
    pub(in crate::ci::github) fn length(&self) -> Option<u64> {
        None
    }
    pub(in crate::ci::github) fn read_up_to(&mut self, _limit: u64) -> Result<Vec<u8>, Lost> {
        Ok(Vec::new())
    }
    pub(in crate::ci::github) fn into_reader(self) -> impl Read {
        std::io::empty()
    }

    pub(in crate::ci::github) fn lost(error: std::io::Error) -> Lost {
        Lost::Unanswered(error.to_string())
    }
}
