//! Requests over the network: the only place that names the HTTP library.

mod lost;
mod network;

pub(super) use lost::Lost;
pub(super) use network::{Body, Client, Proxy};
