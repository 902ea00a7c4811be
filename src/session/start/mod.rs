//! Starts a run, anew or where it was left: its scope, its tree, its lock and its files.

pub mod begin;
pub mod changed;
pub mod changes;
pub mod entering;
pub mod incoming;
pub mod resume;
pub mod rewind;
mod rewound;
mod tree;
pub(crate) mod unwatched;
pub(crate) mod whole_tree;
