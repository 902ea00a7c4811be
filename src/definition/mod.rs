//! The file as written: found, read, decoded, and shown again when something is wrong with it.

pub mod load;
pub mod publish;
pub mod render;
pub mod schema;
pub mod source;
pub mod yaml;
