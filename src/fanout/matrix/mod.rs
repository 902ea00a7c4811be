//! The legs of a plan in the form in which a CI system starts jobs: one format a file, one line here each.

pub use format::{Fleet, Format, Place};

mod buildkite;
pub(crate) mod format;
mod github;
mod gitlab;
mod json;
mod k8s;
#[cfg(test)]
mod samples;

/// The formats.
pub const FORMATS: &[&dyn Format] =
    &[&github::Github, &gitlab::Gitlab, &buildkite::Buildkite, &k8s::Kubernetes, &json::Json];
