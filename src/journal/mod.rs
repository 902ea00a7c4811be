//! Durable events: what a run did, written before anything follows from it, readable after a kill.

pub mod claim;
pub mod ends;
pub mod fault;
pub mod files;
pub mod known;
pub mod reader;
mod reserve;
pub mod retention;
pub mod snapshot;
pub mod streams;
pub mod writer;
