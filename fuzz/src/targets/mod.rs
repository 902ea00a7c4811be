//! One file for each thing that is fuzzed.

pub mod bundle;
pub mod criteria;
pub mod events;
pub mod hosts;
pub mod journal;
pub mod loading;
pub mod redaction;
pub mod templates;
