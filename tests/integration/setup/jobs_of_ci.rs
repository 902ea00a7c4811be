//! Which jobs and steps of a workflow `ll-loop init` takes for checks, and how it prepares for them.

use super::init::{Layout, assert_layouts, project};

const LAYOUTS: &[Layout] = &[
    (
        "what never runs, or is written for another shell",
        &[
            ("check.ps1", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  off:\n    if: ${{ false }}\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - if: false\n        run: cargo fmt --check\n      - shell: pwsh\n        run: |\n          ./check.ps1\n          dotnet test\n      - shell: python\n        run: ruff check\n",
            ),
        ],
        &[("test", "dotnet test", ".github/workflows/ci.yml:16", "")],
    ),
    (
        "programs of one name in several places, and tests of sources that another job has built",
        &[
            ("test", "x\n"),
            ("web/test", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./test\n      - run: ./web/test\n      - run: vendor/bin/phpunit\n      - run: phpunit\n      - uses: bnjbvr/cargo-machete@v1\n      - run: mvn -B verify -Dmaven.main.skip=true\n",
            ),
        ],
        &[
            ("lint", "cargo machete", ".github/workflows/ci.yml:10", ""),
            ("test", "./test", ".github/workflows/ci.yml:6", ""),
            ("test_2", "./web/test", ".github/workflows/ci.yml:7", ""),
            ("test_phpunit", "vendor/bin/phpunit", ".github/workflows/ci.yml:8", ""),
        ],
    ),
    (
        "what may fail, always or for some values of a matrix, and what runs where a label is put",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  may:\n    continue-on-error: true\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo audit\n  test:\n    runs-on: ubuntu-latest\n    continue-on-error: ${{ matrix.task == 'lint-new' }}\n    strategy:\n      matrix:\n        task: [lint, lint-new]\n    steps:\n      - run: just ${{ matrix.task }}\n      - run: cargo test\n      - run: cargo fmt --check\n        continue-on-error: true\n  labelled:\n    if: contains(github.event.pull_request.labels.*.name, 'slow')\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test --release\n",
        )],
        &[
            ("lint", "just lint", ".github/workflows/ci.yml:15", ""),
            ("test", "cargo test", ".github/workflows/ci.yml:16", ""),
        ],
    ),
    (
        "what needs what its job has fetched or handed on, and a place of one machine",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  fetched:\n    runs-on: ubuntu-latest\n    steps:\n      - run: eslint .\n      - uses: actions/download-artifact@v4\n      - run: cargo nextest run\n  linked:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          npm link\n          pytest\n  local:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./gradlew publishToMavenLocal\n      - run: ./gradlew detekt\n  place:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./gradlew check -Pjdk=/opt/hostedtoolcache/jdk/8\n",
        )],
        &[("lint", "eslint .", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "tests that write a file about themselves, which git ignores or not",
        &[
            (".gitignore", "*.xml\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: go test -race -coverprofile=\"coverage.out\" ./... -coverpkg=./...\n      - run: pytest --cov-report=xml --cov-report html:docs/cov\n",
            ),
        ],
        &[
            ("test_go", "go test -race ./...", ".github/workflows/ci.yml:6", ""),
            ("test_pytest", "pytest --cov-report=xml", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "a job that writes into files of the repository, and a script that does",
        &[
            (".npmrc", "x\n"),
            ("Makefile", "test:\n\tx\n"),
            ("scripts/check-docs.sh", "make docs\ncp out.md docs/api.md\ngit diff --exit-code\n"),
            ("scripts/check-links.sh", "grep -r http docs\n"),
            ("docs/api.md", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: eslint .\n      - run: echo registry=x >> .npmrc\n      - run: prettier --check .\n      - run: make test\n  scripts:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./scripts/check-docs.sh\n      - run: ./scripts/check-links.sh\n",
            ),
        ],
        &[
            ("lint_eslint", "eslint .", ".github/workflows/ci.yml:6", ""),
            ("lint_check_links_sh", "./scripts/check-links.sh", ".github/workflows/ci.yml:14", ""),
            ("test", "make test", "Makefile:1 (test)", ""),
        ],
    ),
    (
        "one suite of tests with many properties, and tests that a property selects",
        &[
            ("pom.xml", "<project/>\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./gradlew test -Pplatform=a\n      - run: ./gradlew test\n      - run: ./gradlew test -Pplatform=b -Dx=y\n      - run: ./gradlew check -Pplatform=a\n      - run: mvn -B test -Dtest=A\n      - run: mvn -B test -Dtest=B\n",
            ),
        ],
        &[
            ("test_gradle", "./gradlew test", ".github/workflows/ci.yml:7", ""),
            ("test_gradle_check", "./gradlew check -Pplatform=a", ".github/workflows/ci.yml:9", ""),
            ("test_maven", "mvn -B test -Dtest=A", ".github/workflows/ci.yml:10", ""),
            ("test_maven_2", "mvn -B test -Dtest=B", ".github/workflows/ci.yml:11", ""),
        ],
    ),
    (
        "an action whose inputs stand in the middle of its command, with a matrix of which a part may fail",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  deny:\n    runs-on: ubuntu-latest\n    continue-on-error: ${{ matrix.checks == 'advisories' }}\n    strategy:\n      matrix:\n        checks: [advisories, bans licenses]\n    steps:\n      - uses: EmbarkStudios/cargo-deny-action@v2\n        with:\n          arguments: --exclude-unpublished\n          command: check ${{ matrix.checks }}\n          command-arguments: --hide-inclusion-graph\n  more:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: EmbarkStudios/cargo-deny-action@v2\n        with: {manifest-path: more/Cargo.toml}\n",
        )],
        &[
            (
                "lint_cargo",
                "cargo deny --exclude-unpublished check bans licenses --hide-inclusion-graph",
                ".github/workflows/ci.yml:10",
                "",
            ),
            (
                "lint_cargo_deny",
                "cargo deny --manifest-path=more/Cargo.toml --all-features check",
                ".github/workflows/ci.yml:18",
                "",
            ),
        ],
    ),
    (
        "scripts that only say that they build: with tests, without, and with more",
        &[
            (
                "build-all.sh",
                "for one in */; do\n  BUILD=\"./gradlew clean check\"\n  (cd $one && $BUILD)\ndone\n",
            ),
            ("build.sh", "cargo build\n# cargo test\n"),
            ("build-release.sh", "cargo test\ncargo publish\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./build.sh\n      - run: ./build-release.sh\n      - run: ./build-all.sh\n",
            ),
        ],
        &[("test", "./build-all.sh", ".github/workflows/ci.yml:8", "")],
    ),
];

#[test]
fn only_what_a_change_starts_and_a_shell_reads_is_a_check() {
    assert_layouts(LAYOUTS);
}

#[test]
fn a_token_that_sets_something_up_is_handed_on_and_an_old_toolchain_that_no_check_needs_is_not_installed() {
    let project = project(&[(
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@stable\n      - uses: example/setup-protoc@v3\n        with: {token: '${{ secrets.GITHUB_TOKEN }}'}\n      - run: cargo test\n  old:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@master\n        with: {toolchain: 1.74.0}\n      - uses: example/setup-protoc@v3\n        with: {token: '${{ github.token }}'}\n      - run: cargo test\n",
    )]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let action = "uses: example/setup-protoc@v3 # zizmor: ignore[unpinned-uses]\n        with:\n          token: \"${{ github.token }}\"\n";
    assert!(workflow.contains(action), "{workflow}");
    assert!(!workflow.contains("1.74"), "{workflow}");
}

#[test]
fn a_check_that_no_job_makes_with_the_usual_toolchain_names_its_own() {
    let project = project(&[(
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix: {rust: [stable, nightly]}\n    steps:\n      - uses: dtolnay/rust-toolchain@master\n        with: {toolchain: '${{ matrix.rust }}'}\n      - run: cargo test\n  odd:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@nightly\n        with: {components: 'miri, rust-src'}\n      - run: cargo miri test\n      - run: cargo test\n  format:\n    runs-on: ubuntu-latest\n    steps:\n      - run: rustup default nightly\n      - run: cargo fmt --check\n  old:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@1.74.0\n      - run: cargo check\n",
    )]);
    project.run(&["init"]).code(0);
    let text = project.read(".loops/tidy.yaml");
    for command in ["cargo +nightly fmt --check", "cargo test", "cargo +nightly miri test"] {
        assert!(text.contains(&format!("    action: {command}\n")), "{command} in\n{text}");
    }
    assert!(!text.contains("action: cargo check"), "{text}");
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let install = "run: rustup toolchain install nightly --profile minimal --component miri --component rust-src --component rustfmt\n";
    assert!(workflow.contains(install), "{workflow}");
    for other in ["rustup default", "1.74", "cargo-miri"] {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn a_file_of_the_repository_says_which_toolchain_cargo_is_of() {
    let project = project(&[
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.88\"\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: dtolnay/rust-toolchain@nightly\n      - run: cargo test\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let text = project.read(".loops/tidy.yaml");
    assert!(text.contains("    action: cargo test\n"), "{text}");
}

#[test]
fn what_is_left_out_is_named() {
    let project = project(&[
        ("a/package.json", "{\"scripts\": {\"test\": \"vitest run\"}}"),
        ("b/package.json", "{}"),
        ("a/fixtures/c/package.json", "{}"),
    ]);
    let ran = project.run(&["init"]).code(0);
    assert!(ran.stdout.contains("left out b: nothing says how it is checked\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("fixtures"), "{}", ran.stdout);
}

#[test]
fn all_versions_that_a_job_lists_are_set_up() {
    let project = project(&[
        ("global.json", "{}\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/setup-dotnet@v5\n        with:\n          dotnet-version: |\n            9.0.x\n            8.0.x\n      - uses: actions/setup-java@v5\n        with:\n          distribution: zulu\n          java-version: |\n            8\n            17\n      - run: dotnet test\n      - run: mvn verify\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    for part in [
        "          global-json-file: global.json\n          dotnet-version: |\n            8.0.x\n            9.0.x\n",
        "          distribution: zulu\n          java-version: |\n            8\n            17\n",
    ] {
        assert!(workflow.contains(part), "{part} in\n{workflow}");
    }
}
