//! What git is told about where we are.

use std::collections::BTreeMap;

/// Variables that name a repository. A hook of git sets them, and everything would work in the checkout again.
const REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
];

/// Returns an environment in which git finds the repository by its directory alone.
pub(super) fn without_repository(mut env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    env.retain(|name, _| !REPOSITORY.contains(&name.as_str()));
    env
}
