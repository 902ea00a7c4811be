//! How the workflow that `ll-loop init` writes makes its job ready: as those are that make the same checks.

use super::init::{assert_has, workflow_of, written};

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

#[test]
fn the_list_of_packages_alone_installs_nothing() {
    let jobs = "  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          sudo apt-get update\n          sudo apt-get install -y ${{ matrix.packages }}\n      - run: make test\n";
    let workflow = workflow_of(jobs, &[("Makefile", "test:\n\tx\n")]);
    assert_has(&workflow, &[], &["apt-get"]);
}

#[test]
fn what_is_for_some_jobs_of_a_matrix_is_for_the_checks_that_these_make() {
    let jobs = "  test:\n    runs-on: ${{ matrix.os }}\n    strategy:\n      matrix:\n        os: [ubuntu-20.04, ubuntu-latest, windows-latest]\n        python: ['3.9', '3.14']\n    steps:\n      - if: matrix.os == 'ubuntu-20.04'\n        run: sudo apt-get install libtinfo5\n      - if: ${{ startsWith(matrix.os, 'ubuntu') && matrix.python != '3.9' }}\n        run: sudo apt-get install libnew\n      - if: matrix.python == '3.9'\n        run: pip install backports\n      - if: matrix.coverage\n        run: pip install coverage\n      - run: pip install pytest\n      - run: pytest\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - if: matrix.linter == 'mypy'\n        run: pip install mypy\n      - if: matrix.linter == 'mypy'\n        run: mypy src\n";
    let workflow = workflow_of(jobs, &[]);
    assert_has(
        &workflow,
        &["install libnew\n", "run: pip install pytest\n", "run: pip install mypy\n"],
        &["libtinfo5", "backports", "coverage"],
    );
}

#[test]
fn where_each_job_of_a_matrix_has_a_task_what_they_install_is_for_all() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        task: [lint, test]\n    steps:\n      - if: matrix.task == 'test'\n        run: sudo apt-get install libfoo\n      - run: make ${{ matrix.task }}\n";
    let workflow = workflow_of(jobs, &[("Makefile", "lint:\n\tx\ntest:\n\ty\n")]);
    assert_has(&workflow, &["run: sudo apt-get install libfoo\n"], &[]);
}

#[test]
fn packages_of_a_container_are_installed_in_it_before_the_checkout() {
    let of = |container: &str| {
        let jobs = format!(
            "  all:\n    runs-on: ubuntu-latest\n{container}    steps:\n      - run: apk add --no-cache git bash\n      - uses: actions/checkout@v6\n      - run: apk add make\n      - run: make test\n"
        );
        workflow_of(&jobs, &[("Makefile", "test:\n\tx\n")])
    };
    let workflow = of("    container: alpine:3\n");
    let at = |sign: &str| workflow.find(sign).unwrap_or_else(|| panic!("{sign} in\n{workflow}"));
    let in_order = [
        "run: apk add --no-cache git bash\n",
        "uses: actions/checkout@",
        "run: apk add make\n",
        "little-loops/",
    ];
    assert!(in_order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{workflow}");
    assert_has(&of(""), &[], &["apk add"]);
}

#[test]
fn beside_a_channel_the_released_version_is_the_newest() {
    let of = |sdk: &str| {
        let jobs = format!(
            "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        sdk: {sdk}\n    steps:\n      - uses: dart-lang/setup-dart@v1\n        with: {{sdk: '${{{{ matrix.sdk }}}}'}}\n      - run: dart test\n"
        );
        workflow_of(&jobs, &[("pubspec.yaml", "name: x\n")])
    };
    assert_has(&of("['3.4', dev]"), &["uses: dart-lang/setup-dart@"], &["sdk:"]);
    assert_has(&of("['3.4', '3.9']"), &["sdk: \"3.9\"\n"], &[]);
    assert_has(&of("['3.4', stable, dev]"), &["sdk: stable\n"], &[]);
    assert_has(&of("[dev]"), &["sdk: dev\n"], &[]);
}

#[test]
fn a_tool_of_python_comes_with_a_project_that_declares_it() {
    let of = |requirements: &str| {
        let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install -r requirements.txt\n      - run: pytest -q\n";
        workflow_of(jobs, &[("requirements.txt", requirements)])
    };
    assert_has(&of("requests\npytest>=8\n"), &[], &["install pytest"]);
    assert_has(&of("requests\npytest-cov\n"), &["run: python -m pip install pytest\n"], &[]);
}

#[test]
fn a_job_has_the_terraform_that_its_tests_call() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: hashicorp/setup-terraform@v3\n        with: {terraform_wrapper: false}\n      - run: make testacc\n";
    let workflow =
        workflow_of(jobs, &[("go.mod", "module x\n"), ("Makefile", "testacc:\n\tTF_ACC=1 go test ./...\n")]);
    assert_has(
        &workflow,
        &["uses: hashicorp/setup-terraform@", "terraform_wrapper: \"false\"\n", "uses: actions/setup-go@"],
        &[],
    );
}

#[test]
fn a_step_that_installs_by_its_name_comes_whole_and_no_release_of_what_is_checked() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - name: Install Abseil\n        run: |\n          get abseil\n          tar xf abseil.tar.gz\n      - run: sudo sysctl -w vm.mmap_rnd_bits=28\n      - run: tflint --recursive\n      - run: make test\n  docs:\n    runs-on: ubuntu-latest\n    steps:\n      - name: Install the docs\n        run: get docs\n      - run: ./publish\n  version:\n    runs-on: ubuntu-latest\n    steps:\n      - run: tflint -v\n";
    let files =
        [("Makefile", "test:\n\tx\n"), ("go.mod", "module github.com/terraform-linters/tflint\n\ngo 1.24\n")];
    let (text, workflow) = written(jobs, &files);
    assert_has(
        &workflow,
        &["run: get abseil && tar xf abseil.tar.gz\n", "run: sudo sysctl -w vm.mmap_rnd_bits=28\n"],
        &["tflint@latest", "get docs"],
    );
    assert_has(&text, &["action: tflint --recursive\n"], &["action: tflint -v"]);
}

#[test]
fn a_toolchain_takes_no_installs_of_another_language() {
    let jobs = "  docs:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install -r docs/requirements.txt\n      - run: ./publish\n";
    let files =
        [("go.mod", "module x\n"), ("x_test.go", "package x\n"), ("docs/requirements.txt", "sphinx\n")];
    assert_has(&workflow_of(jobs, &files), &["uses: actions/setup-go@"], &["pip install"]);
}

#[test]
fn the_hooks_have_what_the_job_installs_that_runs_them() {
    let jobs = "  hooks:\n    runs-on: ubuntu-latest\n    steps:\n      - run: uv sync --locked\n      - run: uv run prek run --from-ref origin/$BASE --to-ref HEAD\n        continue-on-error: true\n  test:\n    runs-on: ubuntu-latest\n    env: {UV_NO_SYNC: 'true'}\n    steps:\n      - run: uv sync --no-dev --group tests\n      - run: uv run pytest\n";
    let files = [
        (".pre-commit-config.yaml", "repos: []\n"),
        ("uv.lock", "x\n"),
        ("pyproject.toml", "[project]\nname = \"x\"\n"),
    ];
    assert_has(&workflow_of(jobs, &files), &["run: uv sync --locked\n"], &["UV_NO_SYNC"]);
}

#[test]
fn a_loop_may_take_as_long_as_the_jobs_together_whose_checks_it_makes() {
    let job = |name: &str, minutes: u32| {
        format!(
            "  {name}:\n    runs-on: ubuntu-latest\n    timeout-minutes: {minutes}\n    steps:\n      - run: make {name}\n"
        )
    };
    let jobs = job("lint", 20) + &job("test", 90) + &job("other", 300);
    let (text, workflow) = written(&jobs, &[("Makefile", "lint:\n\tx\ntest:\n\ty\nother:\n\tz\n")]);
    assert_has(&text, &["timeout: 2h\n"], &[]);
    assert_has(&workflow, &["timeout-minutes: 135\n"], &[]);
}

#[test]
fn an_action_stands_for_its_command_with_its_inputs_in_its_version() {
    let commit = "0123456789012345678901234567890123456789";
    for (version, expected) in
        [("v1.26.0", "typos==1.26.0"), (&format!("{commit} # v1.27.3"), "typos==1.27.3")]
    {
        let jobs = format!(
            "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with: {{fetch-depth: 2}}\n      - uses: crate-ci/typos@{version}\n        with: {{files: README.md src/}}\n"
        );
        let (text, workflow) = written(&jobs, &[("README.md", "x\n"), ("src/x", "x\n")]);
        assert_has(&text, &["action: typos README.md src/\n"], &[]);
        assert_has(&workflow, &[expected, "fetch-depth: 2\n"], &[]);
    }
}

#[test]
fn what_makes_or_clears_something_is_no_check() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: phpstan analyse\n      - run: phpstan clear-result-cache\n      - run: php tests/generate-reflection-test.php\n";
    let (text, _) = written(jobs, &[("tests/generate-reflection-test.php", "x\n")]);
    assert_has(
        &text,
        &["action: phpstan analyse\n", "#   php tests/generate-reflection-test.php # "],
        &["action: phpstan clear", "action: php tests"],
    );
}
