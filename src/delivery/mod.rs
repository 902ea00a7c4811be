//! What is delivered of a run, to whom, and whether: the part of `ll-loop deliver` that knows no server and no git.
//!
//! A bundle holds a fix. [`policy`] says whether it may leave at all, [`plan`] compares what stands on the server with
//! what would be written, [`message`] and [`body`] are what people read, and [`forge`] is what a server has to be able
//! to do. `docs/deliver.md` is the contract.

pub mod body;
pub mod change;
pub mod forge;
pub mod leaks;
pub mod marker;
pub mod message;
pub mod names;
pub mod plan;
pub mod policy;
pub mod review;
pub mod standing;
pub mod suggestion;
