//! Makes events durable: each is written before anything follows from it, so that a killed run can be resumed.

pub(crate) mod awaiting;
pub mod claim;
pub mod fault;
pub mod files;
pub mod inherit;
pub mod journal_ends;
pub mod known;
mod light;
pub mod reader;
mod reserve;
pub mod retention;
pub mod snapshot;
pub mod streams;
pub(crate) mod witness;
pub mod writer;

pub use witness::Tampered;
