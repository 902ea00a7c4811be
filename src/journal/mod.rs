//! Durable events: what a run did, written before anything follows from it, readable after a kill.

pub mod claim;
pub mod files;
pub mod reader;
pub mod snapshot;
pub mod writer;
