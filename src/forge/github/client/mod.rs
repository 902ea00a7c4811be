//! Requests over the network: the only place that names the HTTP library.

pub(crate) mod lost;
pub(crate) mod network;

pub(crate) use lost::LostAnswer;
pub(super) use network::HttpProxy;
pub(crate) use network::{Body, Client};
