//! Starts a run, anew or where it was left: its scope, its tree, its lock and its files.

mod answer_server;
mod answered;
pub mod begin;
pub mod changed_since;
pub mod changes_on_resume;
mod comment_answers;
pub(crate) mod day_spending;
pub mod entering;
pub mod incoming;
mod job_approvals;
pub mod resume;
mod rewind_origin;
pub mod rewound_run;
mod start_tree;
