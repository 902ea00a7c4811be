//! The file as written: found, read, decoded, and shown again when something is wrong with it.

mod assembled_tree;
pub mod builtin;
mod classic;
pub mod early_values;
pub mod emit;
mod fragments;
pub mod json_schema;
pub(crate) mod listing;
pub mod load;
pub mod paradigm;
mod promise_schema;
pub mod promises;
pub mod render;
pub mod resolve;
pub mod schema;
pub mod source_text;
pub mod vendored;
pub mod yaml;
