//! Runs in a CI system: what they are told by it, and what it is told.

mod action_inputs;
mod artifact;
mod chain;
pub(crate) mod ci_mode;
mod nightly;
mod providers;
pub(crate) mod relay;
pub(crate) mod reported;
mod untrusted;
