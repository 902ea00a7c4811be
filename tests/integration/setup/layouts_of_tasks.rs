//! What `ll-loop init` makes of the tasks and scripts that a repository and its workflows call, in layouts like those of real
//! projects.

use super::init::{Layout, assert_layouts};

const LAYOUTS: &[Layout] = &[
    (
        "a workflow that is named after a release and checks proposed changes",
        &[
            (
                ".github/workflows/build-release.yml",
                "on:\n  push:\n    branches: [main]\n    tags: ['*']\n  pull_request:\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n  publish:\n    if: startsWith(github.ref, 'refs/tags')\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy\n",
            ),
            (
                ".github/workflows/publish.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo fmt --check\n",
            ),
            (
                ".github/workflows/deploy.yml",
                "on:\n  pull_request:\n    types: [closed]\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo doc\n",
            ),
        ],
        &[("test", "cargo test", ".github/workflows/build-release.yml:10", "")],
    ),
    // more layouts
];

#[test]
fn tasks_and_scripts_that_the_workflows_call_become_the_loop() {
    assert_layouts(LAYOUTS);
}
