//! What several lines of a job make together, and where they are made: `ll-loop init` takes all of it, or names it.

use super::init::{Layout, assert_has, assert_layouts, project, workflow_of, written};

const LAYOUTS: &[Layout] = &[
    (
        "targets of CMake, each with what configures and builds before it",
        &[
            ("CMakeLists.txt", "project(x)\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  targets:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        target: [ci_cpplint, offline_data]\n    steps:\n      - run: cmake -S . -B build -DX_CI=On\n      - run: cmake --build build --target ${{ matrix.target }}\n  whole:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cmake -B out -G Ninja\n      - run: cmake --build out --parallel\n      - run: cmake --build out --target unit_tests\n      - run: cmake --build out --target install\n  unknown:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cmake -B b $FLAGS\n      - run: cmake --build b --target check\n",
            ),
        ],
        &[
            (
                "lint",
                "build=$(mktemp -d) && cmake -S . -B \"$build\" -DX_CI=On && cmake --build \"$build\" --target ci_cpplint",
                ".github/workflows/ci.yml:10",
                "",
            ),
            (
                "build",
                "build=$(mktemp -d) && cmake -S . -B \"$build\" -DX_CI=On && cmake --build \"$build\" --target offline_data",
                ".github/workflows/ci.yml:10",
                "",
            ),
            (
                "test",
                "build=$(mktemp -d) && cmake -B \"$build\" -G Ninja && cmake --build \"$build\" --parallel && cmake --build \"$build\" --target unit_tests",
                ".github/workflows/ci.yml:16",
                "",
            ),
        ],
    ),
    (
        "what makes files anew, and the question to git behind it",
        &[
            ("Makefile", "generate:\n\tx\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  drift:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm ci\n      - run: |\n          make generate\n          go mod tidy\n          git diff --exit-code\n  format:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo fmt\n      - run: git diff --exit-code -- src\n  behind:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n      - run: git diff --exit-code HEAD\n  unknown:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make generate\n      - run: protoc $FILES\n      - run: git diff --quiet\n",
            ),
        ],
        &[
            (
                "lint",
                "make generate && go mod tidy && git diff --exit-code",
                ".github/workflows/ci.yml:8",
                "",
            ),
            ("format", "cargo fmt && git diff --exit-code -- src", ".github/workflows/ci.yml:14", ""),
            ("test", "cargo test", ".github/workflows/ci.yml:19", ""),
        ],
    ),
    (
        "make without a task, plain and with settings",
        &[
            ("Makefile", "all: x\nx:\n\tcc x.c\n"),
            ("docs/Makefile", "help:\n\techo\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make CFLAGS='-Werror' TLS=yes\n      - run: make CFLAGS=-Werror\n      - run: make\n        working-directory: docs\n",
            ),
        ],
        &[("build", "make CFLAGS=-Werror", ".github/workflows/ci.yml:7", "")],
    ),
    (
        "scripts that build or look at what tests have reached, behind the checks of their job",
        &[
            ("scripts/check", "ruff check .\n"),
            ("scripts/test", "coverage run -m pytest\n"),
            ("scripts/build", "python -m build\n"),
            ("scripts/coverage", "coverage report --fail-under=100\n"),
            ("scripts/build-image", "docker push x\n"),
            (".ci.vet.sh", "go vet ./...\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: scripts/check\n      - run: scripts/build\n      - run: scripts/test\n      - run: scripts/coverage\n      - run: scripts/build-image\n      - run: ./.ci.vet.sh\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - run: scripts/build\n",
            ),
        ],
        &[
            ("lint_check", "scripts/check", ".github/workflows/ci.yml:6", ""),
            ("lint_ci_vet_sh", "./.ci.vet.sh", ".github/workflows/ci.yml:11", ""),
            ("build", "scripts/build", ".github/workflows/ci.yml:7", ""),
            ("test", "scripts/test", ".github/workflows/ci.yml:8", ""),
            ("test_coverage", "scripts/coverage", ".github/workflows/ci.yml:9", ""),
        ],
    ),
    (
        "tests of the sources that another job has packed, by the tool that the CI calls",
        &[
            ("x.cabal", "test-suite all\n"),
            ("stack.yaml", "resolver: x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  pack:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n      - run: cabal sdist\n  test:\n    needs: pack\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        ghc: ['9.4.7', '9.6.6', latest]\n        include:\n          - ghc: latest\n            flags: --allow-newer\n    steps:\n      - uses: actions/download-artifact@v8\n        with: {name: source, path: source/}\n      - uses: haskell-actions/setup@v2\n        with: {ghc-version: '${{ matrix.ghc }}'}\n      - run: |\n          cd source\n          tar xvf source.tar.gz --strip-components=1\n      - run: |\n          cd source\n          cabal test ${{ matrix.flags }}\n",
            ),
        ],
        &[("test", "cabal test", ".github/workflows/ci.yml:27", "")],
    ),
    (
        "a task that looks at the format, which no workflow calls",
        &[
            ("Makefile", "fmt-check:\n\tgofmt -d .\ntest:\n\tgo test ./...\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: staticcheck ./...\n      - run: make test\n",
            ),
        ],
        &[
            ("lint", "staticcheck ./...", ".github/workflows/ci.yml:6", ""),
            ("test", "make test", "Makefile:3 (test)", ""),
        ],
    ),
    (
        "a task by the name of one that a build of CMake has",
        &[
            ("Makefile", "test:\n\t./x\n"),
            ("CMakeLists.txt", "enable_testing()\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          mkdir -p build\n          cd build\n          cmake .. || (rm -rf * && cmake ..)\n          cmake --build .\n          make test\n",
            ),
        ],
        &[(
            "test",
            "build=$(mktemp -d) && cmake -S . -B \"$build\" && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure --no-tests=error",
            ".github/workflows/ci.yml:11",
            "",
        )],
    ),
];

#[test]
fn lines_that_belong_together_are_one_check() {
    assert_layouts(LAYOUTS);
}

#[test]
fn what_is_checked_in_a_container_is_named_where_other_checks_are_made_without() {
    let jobs = "  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n  test:\n    runs-on: ubuntu-latest\n    container: example/browsers:1\n    env:\n      HOME: /root\n    steps:\n      - run: npm run e2e:test\n      - run: pytest\n";
    let files = [("package.json", "{\"scripts\": {\"e2e:test\": \"x\"}}"), ("test_x.py", "import pytest\n")];
    let (text, workflow) = written(jobs, &files);
    let why = "# Not added, because the CI calls it only in an image, which has what it needs:\n";
    assert_has(
        &text,
        &["action: codespell\n", why, "#   npm run e2e:test # ", "#   pytest # "],
        &["action: npm", "action: pytest"],
    );
    assert_has(&workflow, &[], &["HOME", "container:"]);
    // All of it in one container is as it was.
    let jobs = jobs.replace(
        "  lint:\n    runs-on: ubuntu-latest\n",
        "  lint:\n    runs-on: ubuntu-latest\n    container: example/browsers:1\n",
    );
    let (text, workflow) = written(&jobs, &files);
    assert_has(&text, &["action: \"npm run e2e:test\"\n", "action: pytest\n"], &[]);
    assert_has(&workflow, &["container: example/browsers:1"], &["HOME"]);
}

#[test]
fn actions_are_pinned_as_the_repository_pins_them() {
    let (one, other) = ("a".repeat(40), "b".repeat(40));
    let jobs = format!(
        "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@{one} # v7.0.1\n      - uses: actions/setup-node@v6\n      - run: npm test\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: \"actions/checkout@{other}\" # v6\n      - run: npm run lint\n  more:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@{one} # v7.0.1\n      - run: npm run check\n"
    );
    let workflow = workflow_of(
        &jobs,
        &[("package.json", "{\"scripts\": {\"test\": \"x\", \"lint\": \"y\", \"check\": \"z\"}}")],
    );
    let checkout = format!("- uses: actions/checkout@{one} # v7.0.1\n");
    // What only has a tag there is pinned as before.
    assert_has(
        &workflow,
        &[&checkout, "uses: actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # "],
        &[],
    );
}

#[test]
fn a_program_that_its_job_has_built_is_no_check_of_others() {
    let jobs = "  own:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          gem build\n          gem install ./x-*.gem --no-document\n      - run: rubocop\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n";
    let (text, _) = written(jobs, &[("Gemfile", "x\n")]);
    assert_has(
        &text,
        &[
            "action: codespell\n",
            "an earlier line of its job has put a build where it finds it:\n#   rubocop # ",
        ],
        &["action: rubocop"],
    );
}

#[test]
fn a_reason_is_that_of_the_place_which_says_most() {
    let jobs = "  mac:\n    runs-on: macos-15\n    steps:\n      - run: ./prove x\n  linux:\n    runs-on: ubuntu-latest\n    steps:\n      - run: codespell\n      - run: ./prove x\n      - name: Look at the tables\n        shell: python\n        run: |\n          import os\n          print(os.name)\n      - run: reno lint .  # of the notes\n      - run: check \"$(pwd)\"\n      - run: typos || { echo no; exit 1; }\n      - run: |\n          ./server --daemonize yes\n          pytest -q\n";
    let (text, _) = written(jobs, &[]);
    assert_has(
        &text,
        &[
            "action: codespell\n",
            "action: typos\n",
            "# Not added, because it names what an earlier line of its job has made or fetched:\n#   ./prove x # .github/workflows/ci.yml:11\n",
            "# Not added, because it is not known what it checks:\n#   reno lint . # ",
            "# Not added, because it is written for another shell:\n#   Look at the tables # ",
            "# Not added, because it takes a value from another command:\n#   check \"$(pwd)\" # ",
            "# Not added, because its job has started something before that still runs:\n#   ./server --daemonize yes # ",
            "#   pytest -q # ",
        ],
        &["macOS", "import os", "print(os"],
    );
}

#[test]
fn what_an_earlier_line_of_a_script_makes_is_made_before_the_check_behind_it() {
    let jobs = "  book:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          cargo run --package make-book\n          mdbook build book/en\n          mdbook build book/zh\n  docs:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          ./scripts/docs.sh\n          if [[ $(git diff --stat) != '' ]]; then\n            git diff --color\n            exit 1\n          else\n            echo -e '\\033[0;32mup to date'\n          fi\n  sums:\n    runs-on: ubuntu-latest\n    steps:\n      - run: go generate ./...\n      - run: test -z \"$(git status --porcelain)\"\n  header:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./gen_header.sh --verify\n  each:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        script: [profile, spec]\n    steps:\n      - run: bash script/${{ matrix.script }}\n";
    let files = [
        ("scripts/docs.sh", "docker run docs\n"),
        ("gen_header.sh", "x\n"),
        ("script/profile", "x\n"),
        ("script/spec", "x\n"),
        ("Cargo.toml", "[workspace]\n"),
    ];
    let (text, _) = written(jobs, &files);
    assert_has(
        &text,
        &[
            "action: cargo run --package make-book && mdbook build book/en && mdbook build book/zh\n",
            "action: ./scripts/docs.sh && git diff --exit-code\n",
            "go generate ./... && test -z ",
            "action: ./gen_header.sh --verify\n",
        ],
        &["action: mdbook", "action: ./scripts/docs.sh\n", "script/profile && "],
    );
}

#[test]
fn a_task_of_make_is_what_its_recipe_does_where_its_name_does_not_say() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n      - run: make ci\n      - run: make both\n      - run: make other\n";
    let makefile = "init:\n\tpython -m pip install -r dev.txt\nci:\n\t@echo tests\n\tpython -m pytest tests\nboth:\n\truff check .\n\tpytest -q\nother:\n\truff check .\n\t./deploy\n";
    let files = [("Makefile", makefile), ("dev.txt", "pytest\n")];
    let (text, workflow) = written(jobs, &files);
    let why = "# Not added, because by the names of its tasks it is not known to check anything:\n#   make other # ";
    assert_has(&text, &["action: make ci\n", "action: make both\n", why], &["action: make other"]);
    assert_has(&workflow, &["- run: make\n"], &[]);
}

#[test]
fn crates_that_an_action_installs_for_a_check_are_installed() {
    let jobs = "  header:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: taiki-e/cache-cargo-install-action@v2\n        with: {tool: cbindgen}\n      - run: cargo test\n      - run: ./header.sh --verify\n";
    let workflow = workflow_of(jobs, &[("Cargo.toml", "[package]\n"), ("header.sh", "cbindgen\n")]);
    assert_has(&workflow, &["run: cargo install cbindgen --locked\n"], &[]);
}

#[test]
fn what_only_jobs_with_a_channel_do_needs_that() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        rust: [stable, nightly]\n        include:\n          - rust: nightly\n            benches: true\n    steps:\n      - uses: dtolnay/rust-toolchain@master\n        with: {toolchain: '${{ matrix.rust }}'}\n      - run: cargo test\n      - run: cargo test --benches\n        if: matrix.benches\n";
    let (text, _) = written(jobs, &[("Cargo.toml", "[package]\n")]);
    let why = "# Not added, because only jobs of its matrix with another interpreter run it:\n#   cargo test --benches # ";
    assert_has(&text, &["action: cargo test\n", why], &["action: cargo test --benches"]);
}

#[test]
fn what_steers_the_install_of_one_job_is_not_that_of_all() {
    let jobs = "  lint:\n    runs-on: ubuntu-latest\n    env: {BUNDLE_WITH: lint, BUNDLE_WITHOUT: 'development:test'}\n    steps:\n      - run: bundle exec rubocop\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bundle exec rspec\n  php:\n    runs-on: ubuntu-latest\n    steps:\n      - run: COMPOSER_ROOT_VERSION=dev-main composer update --no-progress\n      - run: vendor/bin/phpunit\n  python:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n      - run: pytest\n";
    let files = [
        ("Gemfile", "x\n"),
        ("composer.json", "{}"),
        ("Makefile", "init:\n\tpython -m pip install -r dev.txt\n"),
    ];
    let workflow = workflow_of(jobs, &files);
    assert_has(
        &workflow,
        &["run: COMPOSER_ROOT_VERSION=dev-main composer update --no-progress\n", "- run: make\n"],
        &["BUNDLE_WITH", "composer install"],
    );
}

#[test]
fn the_tests_of_a_loop_hold_for_tools_that_say_by_a_code_of_their_own_that_they_did_not_run() {
    let ci = "on: push\njobs:\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: golangci-lint run\n      - run: actionlint\n      - run: zizmor .\n      - run: shellcheck x.sh\n      - run: bundle exec rubocop\n      - run: make test\n";
    let project = project(&[(".github/workflows/ci.yml", ci), ("Makefile", "test:\n\tx\n"), ("x.sh", "x\n")]);
    project.run(&["init"]).code(0);
    project.run(&["test", "tidy"]).code(0);
}

#[test]
fn what_is_synced_leaves_the_lock_file_alone() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        sync:\n          - {name: lowest, flags: --upgrade --resolution lowest-direct}\n          - {name: locked, flags: --frozen}\n    steps:\n      - uses: astral-sh/setup-uv@v7\n        with: {version: 0.9.5}\n      - run: uv sync ${{ matrix.sync.flags }} --all-extras\n      - run: uv run pytest\n";
    let workflow = workflow_of(jobs, &[("uv.lock", "x\n"), ("pyproject.toml", "[project]\n")]);
    assert_has(&workflow, &["run: uv sync --frozen --all-extras\n", "version: \"0.9.5\"\n"], &["--upgrade"]);
}

#[test]
fn the_name_of_a_step_says_that_its_one_command_checks() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install reno\n      - name: Check the notes\n        run: reno lint .\n      - name: Validate the schema\n        run: python docs/schema.py docs\n      - name: UI Tests\n        run: make ui-default\n      - name: Check the links\n        run: nowhere links\n      - name: Check the program\n        run: ./program links\n      - name: Publish and verify\n        run: python docs/publish.py\n      - name: Check twice\n        run: |\n          python docs/one.py\n          python docs/two.py\n";
    let files = [
        ("docs/schema.py", "x\n"),
        ("docs/publish.py", "x\n"),
        ("docs/one.py", "x\n"),
        ("docs/two.py", "x\n"),
        ("Makefile", "ui-default:\n\t./ui\n"),
    ];
    let (text, workflow) = written(jobs, &files);
    assert_has(
        &text,
        &[
            "action: reno lint .\n",
            "action: python docs/schema.py docs\n",
            "action: make ui-default\n",
            "it is not known what it checks:\n#   nowhere links # ",
            "#   ./program links # ",
        ],
        &["action: nowhere", "action: ./program", "action: python docs/publish", "action: python docs/one"],
    );
    assert_has(&workflow, &["run: pip install reno\n"], &[]);
}

#[test]
fn what_installs_programs_for_a_check_comes_with_it() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: sigstore/cosign-installer@0123456789012345678901234567890123456789 # v4\n      - uses: anchore/sbom-action/download-syft@0123456789012345678901234567890123456789\n      - run: sudo snap install snapcraft --classic\n      - run: gem install yard\n      - run: cargo test\n";
    let workflow = workflow_of(jobs, &[("Cargo.toml", "[package]\n")]);
    assert_has(
        &workflow,
        &[
            "uses: sigstore/cosign-installer@0123456789012345678901234567890123456789",
            "uses: anchore/sbom-action/download-syft@0123456789012345678901234567890123456789",
            "run: sudo snap install snapcraft --classic\n",
            "run: gem install yard\n",
        ],
        &[],
    );
}

#[test]
fn a_version_that_is_made_of_the_history_needs_all_of_it() {
    let jobs = "  package:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n        with: {fetch-depth: 0}\n      - run: ./pack\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v4\n      - uses: hynek/setup-cached-uv@v2\n      - run: uv run pytest\n";
    for (manifest, is_deep) in [
        ("[build-system]\nrequires = [\"hatchling\", \"hatch-vcs\"]\n", true),
        ("[build-system]\nrequires = [\"hatchling\"]\n", false),
    ] {
        let workflow = workflow_of(jobs, &[("pyproject.toml", manifest), ("tests/test_a.py", "x\n")]);
        assert_eq!(workflow.contains("fetch-depth: 0"), is_deep, "{workflow}");
        // Another action that does what ours does stands for it.
        assert_has(&workflow, &["uses: hynek/setup-cached-uv@v2"], &["astral-sh/setup-uv"]);
    }
}

#[test]
fn the_variables_of_a_step_stand_before_its_check_alone() {
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test\n      - run: |\n          make generate\n          git diff --exit-code\n        env: {GENERATE_FOR: all of it}\n";
    let (text, workflow) = written(jobs, &[("Makefile", "test:\n\tx\ngenerate:\n\ty\n")]);
    let generated = "GENERATE_FOR='all of it' make generate && GENERATE_FOR='all of it' git diff --exit-code";
    assert_has(&text, &[generated], &[]);
    assert_has(&workflow, &[], &["GENERATE_FOR"]);
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test\n      - run: cmake -B b\n      - run: ctest --test-dir b\n        env: {CTEST_OUTPUT_ON_FAILURE: '1'}\n";
    let (text, _) = written(jobs, &[("Makefile", "test:\n\tx\n"), ("CMakeLists.txt", "enable_testing()\n")]);
    assert_has(&text, &["export CTEST_OUTPUT_ON_FAILURE=1 && build=$(mktemp -d) && cmake "], &[]);
    let jobs = "  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test\n      - run: codespell --strict chromium\n        env: {BROWSER: chromium}\n      - run: ruff check $PLACE\n        env: {PLACE: src}\n";
    let (text, _) = written(jobs, &[("Makefile", "test:\n\tx\n")]);
    assert_has(
        &text,
        &["BROWSER=chromium codespell --strict chromium\n", "action: ruff check src\n"],
        &["PLACE"],
    );
}
