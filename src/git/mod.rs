//! Git, called in one way: which words a call has, what differs between two trees, what the working tree says.

pub mod call;
pub(crate) mod diff;
pub(crate) mod status;
