//! Requests over the network: the only place that names the HTTP library.

pub(crate) mod lost;
pub(crate) mod network;

pub(super) use lost::LostAnswer;
pub(super) use network::{Body, Client, Proxy};
