//! Requests over the network, or what stands in their place in a program that is built without them: the only place that
//! names the HTTP library.

#[cfg(not(feature = "github"))]
mod absent;
mod lost;
#[cfg(feature = "github")]
mod network;

#[cfg(not(feature = "github"))]
pub(super) use absent::{Body, Client, Proxy};
pub(super) use lost::Lost;
#[cfg(feature = "github")]
pub(super) use network::{Body, Client, Proxy};
