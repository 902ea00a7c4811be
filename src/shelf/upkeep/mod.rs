//! Finds out how a repository checks itself: from its own tasks, what its CI runs, and the tools that it configures. It knows
//! no file system; whoever asks gives it the texts.

mod ci;
pub(crate) mod plan;
pub(crate) mod repository;
mod tasks;
mod tools;
pub mod write;
mod yaml;

pub use plan::{PlannedLoop, loops};
pub use repository::Repository;
