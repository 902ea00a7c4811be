//! GitHub, and Gitea and Forgejo, which speak almost the same API.

pub mod answers;
pub mod api;
pub mod artifact_fault;
pub mod artifacts;
mod blob;
pub(crate) mod client;
pub mod code_origin;
pub mod contents;
pub mod deliver;
pub mod delivery_list;
pub mod environment_reviews;
#[cfg(test)]
mod fake;
pub mod gitea;
pub mod github_server;
pub(in crate::forge) mod graphql;
pub mod http;
pub mod other_run;
pub mod pull_comments;
pub mod pull_head;
pub mod pull_list;
pub mod repository;
pub mod results;
pub mod review;
pub mod takeover;
pub mod team_members;
#[cfg(test)]
pub(crate) mod testing;
pub mod workflow_control;
pub mod workflow_event;
pub mod workflow_job;
pub(crate) mod workflow_run;
