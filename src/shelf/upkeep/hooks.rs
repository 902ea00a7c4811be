//! Whether the hooks of pre-commit are run for changes, or only stand there for whoever has installed them.

use super::ci_files;
use super::found_repository::{Finding, Repository};
use super::tasks::of_repository;

/// The file of the hooks.
pub(super) const FILE: &str = ".pre-commit-config.yaml";

/// Files of other systems that run something for each change, by how their paths begin.
pub(super) const OF_OTHERS: [&str; 11] = [
    ".circleci/",
    ".travis.yml",
    "azure-pipelines",
    ".azure-pipelines/",
    "Jenkinsfile",
    ".buildkite/",
    ".cirrus.yml",
    ".appveyor.yml",
    "appveyor.yml",
    ".drone.yml",
    ".woodpecker",
];

/// Tells whether a check is all of the hooks, and nothing says that anybody runs them for each change: no workflow, no task and not the
/// service of pre-commit. Then the tree may not pass them.
pub(super) fn are_only_there(repository: &Repository, check: &Finding) -> bool {
    if check.evidence.file != FILE {
        return false;
    }
    let names = |text: &str| text.contains("pre-commit") || text.contains("prek");
    // Its service is told there what to do, and people show its badge.
    let is_key = |line: &str| line.starts_with("ci:");
    let of_service = || {
        repository.text(FILE).is_some_and(|text| text.lines().any(is_key))
            || ["README.md", "README.rst", "README"]
                .iter()
                .any(|file| repository.text(file).is_some_and(|text| text.contains("pre-commit.ci")))
    };
    let of_other_files = || {
        let is_meant = |path: &str| {
            OF_OTHERS.iter().any(|begin| path.starts_with(begin))
                || matches!(path, "tox.ini" | "tox.toml" | "noxfile.py")
        };
        repository.paths().any(|path| is_meant(path) && repository.text(path).is_some_and(names))
    };
    let of_tasks = || of_repository(repository).iter().any(|task| task.file != FILE && names(&task.body));
    !(ci_files::say(repository, &["pre-commit", "prek"]) || of_service() || of_other_files() || of_tasks())
}
