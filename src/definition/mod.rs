//! The file as written: found, read, decoded, and shown again when something is wrong with it.

pub mod source;
pub mod yaml;
