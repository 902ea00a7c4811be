//! The servers that keep repositories: one trait for what a delivery asks of them, and a room for each kind.

pub mod archive;
pub mod change;
pub mod forge_trait;
pub mod git_remote;
pub mod github;
pub mod gitlab;
pub mod marker;
pub mod merge_request_notes;
pub mod message;
pub mod names;
pub mod review_text;
pub mod standing;
pub mod suggestion;
pub mod webhook;
