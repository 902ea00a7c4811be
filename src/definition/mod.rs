//! The file as written: found, read, decoded, and shown again when something is wrong with it.

pub mod builtin;
mod classic;
pub mod early;
pub mod emit;
mod fragments;
pub(crate) mod listing;
pub mod load;
pub mod paradigm;
pub mod publish;
pub mod render;
pub mod resolve;
pub mod schema;
pub mod source;
mod tree;
pub mod vendored;
pub mod yaml;
