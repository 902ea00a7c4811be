//! The pure run: what was observed goes in, what happened and what to do next come out.

pub mod event;
pub mod outcome;
