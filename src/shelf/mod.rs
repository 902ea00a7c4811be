//! The loops of a project: where they come from, what the program brings along, and what a repository needs for its first.

pub(crate) mod catalogue;
pub mod copies;
mod formatter_ignores;
pub(crate) mod init;
pub mod upkeep;
