//! People in the loop: what a run asks, who answers, and how it goes on.

mod closed;
mod comments;
mod environments;
mod forgeries;
mod gitlab_notes;
mod notify;
mod questions;
mod steering;
mod until_done;
