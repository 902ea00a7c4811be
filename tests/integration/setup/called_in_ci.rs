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
    assert_has(
        &text,
        &["codespell", "(Makefile:1 (test)):\n#   action: make test\n"],
        &["\n    action: make test"],
    );
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
