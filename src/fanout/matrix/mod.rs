//! The legs of a plan in the form in which a CI system starts jobs: one format a file, one line here each.

pub use job_format::{Fleet, MatrixFormat, Place};

mod buildkite;
mod github;
mod gitlab;
pub(crate) mod job_format;
mod json;
mod k8s;
#[cfg(test)]
mod samples;

/// The formats.
pub const FORMATS: &[&dyn MatrixFormat] = &[
    &github::GithubMatrix,
    &gitlab::GitlabMatrix,
    &buildkite::BuildkiteMatrix,
    &k8s::Kubernetes,
    &json::JsonMatrix,
];
