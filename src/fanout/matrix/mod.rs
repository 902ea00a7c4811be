//! The legs of a plan in the form in which a CI system starts jobs: one format a file, one line here each.

pub use job_format::{Fleet, JobSite, MatrixFormat};

mod buildkite_jobs;
mod github_matrix;
mod gitlab_jobs;
pub(crate) mod job_format;
mod k8s;
mod plain_json;
#[cfg(test)]
mod samples;

/// The formats.
pub const FORMATS: &[&dyn MatrixFormat] = &[
    &github_matrix::GithubMatrix,
    &gitlab_jobs::GitlabMatrix,
    &buildkite_jobs::BuildkiteMatrix,
    &k8s::Kubernetes,
    &plain_json::JsonMatrix,
];
