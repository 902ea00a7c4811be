//! How the workflow that `ll-loop init` writes makes its job ready: as those are that make the same checks.

use super::init::project;

/// Writes a workflow for these files, one of which is a workflow with these jobs, and returns it.
fn workflow_of(jobs: &str, files: &[(&str, &str)]) -> String {
    let ci = format!("on: push\njobs:\n{jobs}");
    let project = project(&[&[(".github/workflows/ci.yml", ci.as_str())], files].concat());
    project.run(&["init", "--ci", "github"]).code(0);
    project.read(".github/workflows/ll-loop.yml")
}

fn assert_has(workflow: &str, parts: &[&str], others: &[&str]) {
    for part in parts {
        assert!(workflow.contains(part), "{part} in\n{workflow}");
    }
    for other in others {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn a_tool_of_go_is_not_bound_to_the_go_of_the_project_and_has_the_version_that_ci_names() {
    let of = |with: &str| {
        let jobs = format!(
            "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: golangci/golangci-lint-action@v6\n{with}"
        );
        workflow_of(&jobs, &[("go.mod", "module x\n")])
    };
    let path = "github.com/golangci/golangci-lint";
    for (with, expected) in [
        ("", format!("run: GOTOOLCHAIN=auto go install {path}/v2/cmd/golangci-lint@latest\n")),
        (
            "        with: {version: latest}\n",
            format!("run: GOTOOLCHAIN=auto go install {path}/v2/cmd/golangci-lint@latest\n"),
        ),
        (
            "        with: {version: v2.4}\n",
            format!("run: GOTOOLCHAIN=auto go install {path}/v2/cmd/golangci-lint@v2.4\n"),
        ),
        // Sources of the first major version do not compile with a newer Go.
        (
            "        with: {version: v1.64.8}\n",
            format!("run: GOTOOLCHAIN=go1.24.13 go install {path}/cmd/golangci-lint@v1.64.8\n"),
        ),
        (
            "        with: {version: 'v1.6; x'}\n",
            format!("run: GOTOOLCHAIN=auto go install {path}/v2/cmd/golangci-lint@latest\n"),
        ),
    ] {
        assert_has(&of(with), &[expected.as_str(), "uses: actions/setup-go@"], &[]);
    }
}

#[test]
fn the_tests_of_cmake_have_what_their_own_job_has() {
    let jobs = "  docs:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install sphinx\n  build:\n    runs-on: ubuntu-latest\n    env:\n      TZ: Europe/Kyiv\n    steps:\n      - run: |\n          sudo apt-get update\n          sudo apt-get install -y libfoo-dev\n      - run: cmake -B build -DCMAKE_BUILD_TYPE=${{ matrix.type }}\n      - working-directory: ${{runner.workspace}}/build\n        run: ctest -C ${{matrix.build_type}} -j `nproc`\n";
    let workflow = workflow_of(jobs, &[("CMakeLists.txt", "enable_testing()\n")]);
    assert_has(
        &workflow,
        &["run: sudo apt-get install -y libfoo-dev\n", "TZ: \"Europe/Kyiv\"\n"],
        &["sphinx"],
    );
}

