//! What `init` takes from the lines by which workflows call a check: what stands around them, and what they cannot do without.

use super::init::{assert_has, written};

const HOOKS: &str = "repos:\n  - repo: https://github.com/pre-commit/pre-commit-hooks\n    hooks:\n      - id: trailing-whitespace\n";

#[test]
fn hooks_that_nothing_runs_give_way_to_what_the_ci_checks() {
    let of = |steps: &str, hooks: &str, more: &[(&str, &str)]| {
        let jobs = format!("  lint:\n    runs-on: ubuntu-latest\n    steps:\n{steps}");
        written(&jobs, &[&[(".pre-commit-config.yaml", hooks)], more].concat()).0
    };
    let own = "      - run: codespell\n";
    let text = of(own, HOOKS, &[]);
    assert_has(
        &text,
        &["codespell", "no workflow calls it, and whether the files pass was not tried"],
        &["\n    action: pre-commit"],
    );
    for (steps, hooks, more) in [
        ("      - run: codespell\n      - run: pre-commit run --all-files\n", HOOKS.to_owned(), &[][..]),
        ("      - run: codespell\n      - uses: pre-commit/action@v3\n", HOOKS.to_owned(), &[]),
        (own, format!("ci:\n  skip: []\n{HOOKS}"), &[]),
        (
            own,
            HOOKS.to_owned(),
            &[("README.md", "[![pre-commit.ci](https://results.pre-commit.ci/badge)](x)\n")],
        ),
        (own, HOOKS.to_owned(), &[("tox.ini", "[testenv:hooks]\ncommands = pre-commit run\n")]),
        // Where the CI looks for nothing, the hooks are all that there is.
        ("      - run: echo x\n", HOOKS.to_owned(), &[]),
    ] {
        let text = of(steps, &hooks, more);
        assert_has(&text, &["\n    action: pre-commit run --all-files"], &["no workflow calls it"]);
    }
}

#[test]
fn what_the_ci_calls_on_a_terminal_alone_is_called_on_one() {
    let of = |steps: &str| {
        let jobs = format!("  test:\n    runs-on: ubuntu-latest\n    steps:\n{steps}");
        written(
            &jobs,
            &[("package.json", "{\"scripts\": {\"test\": \"bin/x test\"}}"), ("bin/x", "#!/bin/sh\n")],
        )
    };
    let on_terminal = "      - shell: 'script -q -e -c \"bash {0}\"'\n        env: {TERM: linux}\n        run: |\n          bash --version\n          time ./bin/x --verbose test\n";
    let (text, workflow) = of(on_terminal);
    assert_has(&text, &["TERM=linux script -q -e -c \"npm test\" /dev/null"], &[]);
    // Nothing is there to be installed.
    assert_has(&workflow, &[], &["npm install", "npm ci"]);
    let (text, _) = of(&format!("{on_terminal}      - run: bin/x test\n"));
    assert_has(&text, &["action: bin/x test"], &["/dev/null"]);
}

#[test]
fn a_task_is_called_with_the_toolchain_and_the_variables_that_all_its_lines_have() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@stable\n      - run: make test\n      - run: cargo test --doc\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@master\n        with: {toolchain: '1.98', components: clippy}\n      - run: make lint\n        env: {RUSTFLAGS: -D warnings, OTHER: x}\n  fmt:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@master\n        with: {toolchain: '1.98', components: rustfmt}\n      - run: cargo fmt --check\n";
    let of = |version: &str| {
        let manifest = format!("[package]\nname = \"x\"\nrust-version = \"{version}\"\n");
        written(
            jobs,
            &[
                ("Cargo.toml", manifest.as_str()),
                ("Makefile", "lint:\n\tcargo clippy\ntest:\n\tcargo test\n"),
            ],
        )
    };
    let (text, workflow) = of("1.85");
    assert_has(
        &text,
        &[
            "RUSTFLAGS='-D warnings' RUSTUP_TOOLCHAIN=1.98 make lint",
            "action: make test",
            "action: cargo +1.98 fmt --check",
        ],
        &[],
    );
    assert_has(
        &workflow,
        &["run: rustup toolchain install 1.98 --profile minimal --component clippy --component rustfmt\n"],
        &["rustup default"],
    );
    // With the number of the oldest one that is supported, people see whether that still works.
    assert_has(&of("1.98").0, &["make lint"], &["+1.98 fmt"]);
}

#[test]
fn a_check_whose_service_only_its_job_knows_is_offered() {
    let of = |image: &str| {
        format!(
            "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n  test:\n    runs-on: ubuntu-latest\n    services:\n      redis:\n        image: {image}\n    steps:\n      - run: make test\n"
        )
    };
    let files = &[("Makefile", "test:\n\tx\n")];
    let (text, workflow) = written(&of("redis:7"), files);
    assert_has(&text, &["action: make test"], &[]);
    assert_has(&workflow, &["image: redis:7"], &[]);
    let (text, _) = written(&of("${{ vars.IMAGE }}"), files);
    assert_has(&text, &["codespell", "\n#   make test # Makefile:1 (test)\n"], &["\n    action: make test"]);
}

#[test]
fn what_installs_for_a_check_comes_with_what_it_needs_before() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          sudo install -d -m 0755 /etc/apt/keyrings\n          wget -qO- https://x.test/key | sudo gpg --dearmor -o /etc/apt/keyrings/x.gpg\n          echo \"deb [signed-by=/etc/apt/keyrings/x.gpg] https://x.test/ /\" | sudo tee /etc/apt/sources.list.d/x.list\n          sudo add-apt-repository -y ppa:x/y\n          sudo apt-get update\n          # From /etc/apt/sources.list.d.\n          sudo apt-get install -y zsh\n      - uses: ruby/setup-ruby@v1\n        with: {ruby-version: 3.4.6}\n      - run: make test\n";
    let files = &[("Makefile", "test:\n\tx\n"), (".tool-versions", "ruby 3.4.0\n"), ("Gemfile", "x\n")];
    let (_, workflow) = written(jobs, files);
    let lines = [
        "run: sudo install -d -m 0755 /etc/apt/keyrings\n",
        "wget -qO- https://x.test/key | sudo gpg --dearmor -o /etc/apt/keyrings/x.gpg",
        "| sudo tee /etc/apt/sources.list.d/x.list",
        "run: \"sudo add-apt-repository -y ppa:x/y\"\n",
        "run: sudo apt-get update\n",
        "run: sudo apt-get install -y zsh\n",
    ];
    assert_has(&workflow, &lines, &["# From"]);
    let places: Vec<_> = lines.iter().map(|line| workflow.find(line)).collect();
    assert!(places.is_sorted(), "{workflow}");
    assert_has(&workflow, &["ruby-version: \"3.4.6\"\n"], &[]);
}

#[test]
fn a_language_is_set_up_once_by_the_action_of_its_jobs() {
    let of = |action: &str, with: &str, run: &str, file: &str| {
        let jobs = format!(
            "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: {action}\n        with: {{{with}}}\n      - run: {run}\n"
        );
        written(&jobs, &[(file, "x\n")]).1
    };
    let workflow = of("others/setup-zig@v2", "version: 0.15.1", "zig build test", "build.zig");
    assert_has(&workflow, &["uses: others/setup-zig@v2 "], &["mlugg/setup-zig"]);
}

#[test]
fn a_variable_of_some_checks_stands_before_their_commands() {
    let jobs = "  lint:\n    runs-on: ubuntu-latest\n    env:\n      OF_ALL: x\n    steps:\n      - run: codespell\n  test:\n    runs-on: ubuntu-latest\n    env:\n      OF_ALL: x\n    steps:\n      - run: cargo test\n        env:\n          OF_TESTS: a b\n";
    let (text, workflow) = written(jobs, &[]);
    assert_has(&text, &["    action: codespell\n", "      OF_TESTS='a b' cargo test\n"], &[]);
    assert_has(&workflow, &["      OF_ALL: \"x\"\n"], &["OF_TESTS"]);
}

#[test]
fn a_task_that_the_ci_does_without_is_no_check_untried() {
    let linter = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: golangci-lint run\n      - run: make test\n";
    let other = ("Makefile", "lint:\n\tgolint ./...\ntest:\n\tgo test ./...\n");
    let (text, _) = written(linter, &[other]);
    assert_has(
        &text,
        &[
            "action: golangci-lint run",
            "action: make test",
            "not tried:\n#   make lint # Makefile:1 (lint)\n",
        ],
        &["action: make lint"],
    );
    // One that calls what the CI calls is the repository's own way to call it.
    let same = ("Makefile", "lint:\n\tgolangci-lint run\ntest:\n\tgo test ./...\n");
    let (text, _) = written(linter, &[same]);
    assert_has(&text, &["action: make lint"], &["#   make lint"]);
}

#[test]
fn a_task_that_the_ci_calls_in_an_image_needs_that() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n      - run: |\n          docker run --rm -v $PWD:/x \\\n            image make test\n";
    let (text, _) = written(jobs, &[("Makefile", "test:\n\tzsh a.zsh\n")]);
    assert_has(
        &text,
        &[
            "# Not added, because the CI calls it only in an image, which has what it needs:\n#   make test # Makefile:1",
        ],
        &["action: make test"],
    );
}

#[test]
fn a_step_for_another_interpreter_is_no_check() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        python: ['3.14', 'pypy3.11']\n    steps:\n      - run: tox -e py\n      - run: tox -e ci-pypy3\n        if: \"startsWith(matrix.python, 'pypy')\"\n";
    let (text, _) = written(jobs, &[("tox.ini", "[testenv]\ncommands = pytest\n")]);
    assert_has(
        &text,
        &[
            "action: tox -e py\n",
            "only jobs of its matrix with another interpreter run it:\n#   tox -e ci-pypy3 # ",
        ],
        &["action: tox -e ci-pypy3"],
    );
}

#[test]
fn what_must_not_be_found_is_looked_for() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: '! grep -rn x src'\n";
    let (text, _) = written(jobs, &[]);
    assert_has(&text, &["! grep -rn x src"], &["#   ! grep"]);
}

#[test]
fn behind_a_line_that_writes_into_a_file_of_the_repository_a_script_is_another_check() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: rubocop\n      - run: |\n          echo x > .rubocop.yml\n          rubocop --only a\n";
    let (text, _) = written(jobs, &[(".rubocop.yml", "x\n")]);
    assert_has(
        &text,
        &[
            "action: rubocop\n",
            "because its job has changed before what it had checked out:\n#   rubocop --only a # ",
        ],
        &["action: rubocop --only a"],
    );
}

#[test]
fn the_history_is_that_of_the_jobs_whose_checks_are_made() {
    let of = |jobs: &str| written(jobs, &[]).1;
    let lint = "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n      - run: codespell\n";
    let other = "  pack:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with:\n          fetch-depth: 0\n      - run: ./pack\n";
    assert_has(&of(&format!("{lint}{other}")), &["persist-credentials"], &["fetch-depth"]);
    let deep = other.replace("./pack", "cargo test");
    assert_has(&of(&format!("{lint}{deep}")), &["fetch-depth: 0"], &[]);
}

#[test]
fn what_is_written_carries_the_licence_that_something_looks_for() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n";
    let header = "# Copyright X\n# SPDX-License-Identifier: MIT\n";
    let (text, workflow) = written(jobs, &[(".copywrite.hcl", "x\n"), ("a.yml", header)]);
    assert!(text.contains(header) && workflow.contains(header), "{text}\n{workflow}");
}
