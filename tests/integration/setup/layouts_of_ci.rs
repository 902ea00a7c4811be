//! What `ll-loop init` takes from the workflows of a repository, in layouts like those of real projects.

use super::init::{Layout, assert_layouts, project};

const LAYOUTS: &[Layout] = &[
    (
        "a task that writes, and names what it has written",
        &[(
            "Taskfile.yml",
            "version: '3'\ntasks:\n  fmt:\n    cmds:\n      - gofumpt -w -l .\n  test:\n    cmds:\n      - go test ./...\n",
        )],
        &[("test", "task test", "Taskfile.yml:6 (test)", "")],
    ),
    (
        "goals of Maven and tasks of Gradle, which are about what they do",
        &[
            ("pom.xml", "<project/>\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: mvn -B compile\n      - run: mvn -B verify\n      - run: ./gradlew detekt\n",
            ),
        ],
        &[
            ("lint", "./gradlew detekt", ".github/workflows/ci.yml:8", ""),
            ("build", "mvn -B compile", ".github/workflows/ci.yml:6", ""),
            ("test", "mvn -B verify", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "the same check, called in two ways, measured or not, and for some files alone",
        &[
            ("mix.exs", "x\n"),
            ("test/a_test.exs", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: vendor/bin/phpunit --coverage-text\n      - run: vendor/bin/phpunit --no-coverage\n      - run: mix test\n      - run: mix test test/a_test.exs\n      - run: pnpm run build\n      - run: pnpm build\n",
            ),
        ],
        &[
            ("build", "pnpm run build", ".github/workflows/ci.yml:10", ""),
            ("test_phpunit", "vendor/bin/phpunit --coverage-text", ".github/workflows/ci.yml:6", ""),
            ("test_mix", "mix test", ".github/workflows/ci.yml:8", ""),
        ],
    ),
    (
        "a check of something else, which the workflow calls with each change",
        &[
            ("Makefile", "lint:\n\tx\ncheck-license:\n\tx\ncheck-tag:\n\tx\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make lint\n      - run: make check-license\n",
            ),
        ],
        &[
            ("lint", "make lint", "Makefile:1 (lint)", ""),
            ("lint_check_license", "make check-license", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "scripts of the repository: by their task, their directory and their job",
        &[
            ("knife", "x\n"),
            ("bin/forbid", "x\n"),
            ("bin/install-tools", "x\n"),
            ("test/warnings.sh", "x\n"),
            ("test/setup.sh", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./bin/install-tools\n      - run: ./bin/forbid\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./knife lint --check\n      - run: ./knife update\n      - run: ./bin/forbid-nothing\n      - run: test/setup.sh\n      - run: bash test/warnings.sh\n",
            ),
        ],
        &[
            ("lint_forbid", "./bin/forbid", ".github/workflows/ci.yml:7", ""),
            ("lint_knife", "./knife lint --check", ".github/workflows/ci.yml:11", ""),
            ("test", "bash test/warnings.sh", ".github/workflows/ci.yml:15", ""),
        ],
    ),
    (
        "what a line hands to others, and what an earlier one has made",
        &[
            ("tests/pathological/test.php", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: vendor/bin/phpcs -q --report=checkstyle | cs2pr\n      - run: cargo test 2>&1 | tee log.txt\n      - run: uvx twine check ./dist/*\n      - run: php tests/pathological/test.php\n      - run: __test__/verify-tree.sh tree-test main\n      - run: hatch run +py=${{ matrix.py || matrix.python }} test:with-coverage\n",
            ),
            ("__test__/verify-tree.sh", "x\n"),
        ],
        &[
            ("lint", "vendor/bin/phpcs -q --report=checkstyle", ".github/workflows/ci.yml:6", ""),
            ("test_cargo", "cargo test", ".github/workflows/ci.yml:7", ""),
            ("test_php", "php tests/pathological/test.php", ".github/workflows/ci.yml:9", ""),
            ("test_with_coverage", "hatch run test:with-coverage", ".github/workflows/ci.yml:11", ""),
        ],
    ),
    (
        "a build that the tests need, by a task",
        &[
            ("justfile", "e2e-tests:\n  x\nbuild:\n  x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: just build\n      - run: just e2e-tests\n",
            ),
        ],
        &[
            ("build", "just build", ".github/workflows/ci.yml:6", ""),
            ("test", "just e2e-tests", "justfile:1 (e2e-tests)", ""),
        ],
    ),
    (
        "a workflow that only another one at night calls",
        &[
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n  tests:\n    uses: ./.github/workflows/called.yml\n",
            ),
            (
                ".github/workflows/called.yml",
                "on:\n  workflow_call:\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy\n",
            ),
            (
                ".github/workflows/night.yml",
                "on:\n  schedule:\n    - cron: '1 1 * * *'\njobs:\n  all:\n    uses: ./.github/workflows/of-night.yml\n",
            ),
            (
                ".github/workflows/of-night.yml",
                "on: workflow_call\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test --workspace\n",
            ),
        ],
        &[
            ("lint", "cargo clippy", ".github/workflows/called.yml:7", ""),
            ("test", "cargo test", ".github/workflows/ci.yml:6", ""),
        ],
    ),
    (
        "an action that repeats a command, which is a part of the tests",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: nick-fields/retry@v3\n        with:\n          command: yarn test-ci --max-workers ${{ steps.cpu.outputs.count }} --shard=${{ matrix.shard }}\n      - run: npx vitest run --shard=${{ matrix.a }}/${{ matrix.b }}\n",
        )],
        &[("test", "yarn test-ci", ".github/workflows/ci.yml:8", "")],
    ),
    (
        "tests of CMake, whose steps follow one another, beside those of Bazel",
        &[
            ("CMakeLists.txt", "project(x)\ninclude(CTest)\n"),
            ("MODULE.bazel", "module(name = \"x\")\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bazel test //...\n      - run: cmake -S . -B build\n      - run: cmake --build build\n      - run: ctest --output-on-failure\n        working-directory: build\n",
            ),
        ],
        &[
            ("test_bazel", "bazel test //...", ".github/workflows/ci.yml:6", ""),
            (
                "test_ctest",
                "build=$(mktemp -d) && cmake -S . -B \"$build\" && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure",
                ".github/workflows/ci.yml:9",
                "",
            ),
        ],
    ),
    (
        "tasks of a program of the repository, which a matrix names",
        &[
            (".cargo/config.toml", "[alias]\nxtask = \"run --package xtask --\"\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        backend: [one, two]\n    steps:\n      - run: cargo xtask test-backend ${{ matrix.backend }}\n",
            ),
        ],
        &[
            ("test_cargo", "cargo xtask test-backend one", ".github/workflows/ci.yml:9", ""),
            ("test_cargo_xtask", "cargo xtask test-backend two", ".github/workflows/ci.yml:9", ""),
        ],
    ),
    (
        "actions of tools, with what their inputs say",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: DavidAnson/markdownlint-cli2-action@v20\n        with:\n          globs: |\n            '**/*.md'\n            !target\n      - uses: codespell-project/actions-codespell@v2\n        with:\n          check_hidden: true\n          check_filenames: false\n          ignore_words_file: .ignored\n      - uses: DavidAnson/markdownlint-cli2-action@v20\n      - uses: DavidAnson/markdownlint-cli2-action@v20\n        with:\n          globs: \"a\\u001b[31m\"\n",
        )],
        &[
            (
                "lint_markdownlint_cli2",
                "npx --no-install markdownlint-cli2 '**/*.md' '!target'",
                ".github/workflows/ci.yml:6",
                "",
            ),
            (
                "lint_codespell",
                "codespell --check-hidden --ignore-words .ignored",
                ".github/workflows/ci.yml:11",
                "",
            ),
            (
                "lint_markdownlint_cli2_2",
                "npx --no-install markdownlint-cli2 '*.{md,markdown}'",
                ".github/workflows/ci.yml:16",
                "",
            ),
        ],
    ),
    (
        "tox by its own file, which the workflows call in their own way",
        &[
            (
                "tox.toml",
                "[env_run_base]\ncommands = [[\"pytest\"]]\n\n[env.type]\ncommands = [[\"mypy\"]]\n\n[env.docs]\ncommands = [[\"x\"]]\n",
            ),
            ("pyproject.toml", "[tool.pytest.ini_options]\n"),
            ("tests/test_x.py", "def test_x(): pass\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python -m pip install tox\n      - run: tox -e type --skip-pkg-install\n      - run: tox -e ${{ matrix.py }}\n",
            ),
        ],
        &[("lint", "tox -e type", "tox.toml:4 (type)", ""), ("test", "tox -e py", "tox.toml:2 (test)", "")],
    ),
    (
        "tox that the project depends on, with its plugins",
        &[
            (
                "pyproject.toml",
                "[tool.tox.env_run_base]\nrunner = \"uv-venv-lock-runner\"\ncommands = [[\"pytest\"]]\n\n[tool.tox.env.typing]\ncommands = [[\"mypy\"]]\n\n[tool.mypy]\n\n[dependency-groups]\ndev = [\n  \"tox\",\n  \"tox-uv\",\n]\n",
            ),
            ("uv.lock", "version = 1\n"),
        ],
        &[
            ("lint", "uv run tox -e typing", "pyproject.toml:5 (typing)", ""),
            ("test", "uv run tox -e py", "pyproject.toml:3 (test)", ""),
        ],
    ),
    (
        "sessions of nox that the workflows call, however they start it",
        &[
            (
                "noxfile.py",
                "@nox.session\ndef tests(session):\n    x\n\n@nox.session\ndef property_tests(session):\n    x\n\n@nox.session\ndef old_tests(session):\n    x\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pipx run nox -s tests\n      - run: uvx nox --session property_tests -- -v\n",
            ),
        ],
        &[
            ("tests", "nox -s tests", "noxfile.py:2 (tests)", ""),
            ("property_tests", "nox -s property_tests", "noxfile.py:6 (property_tests)", ""),
        ],
    ),
    (
        "hooks of pre-commit beside a runner that only knows parts of them",
        &[
            (
                "tox.ini",
                "[testenv:typing-ty]\ncommands = ty\n\n[testenv:typing-pyright]\ncommands = pyright\n",
            ),
            (".pre-commit-config.yaml", "repos: []\n"),
        ],
        &[
            ("typing_ty", "tox -e typing-ty", "tox.ini:1 (typing-ty)", ""),
            ("typing_pyright", "tox -e typing-pyright", "tox.ini:4 (typing-pyright)", ""),
            ("lint", "pre-commit run --all-files", ".pre-commit-config.yaml:1 (lint)", ""),
        ],
    ),
    (
        "a tool of a package, which its manager calls as it does a script",
        &[
            (
                "package.json",
                "{\n\"packageManager\": \"bun@1.2.0\",\n\"scripts\": {\n\"lint\": \"eslint .\"\n}\n}\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bun run lint\n      - run: bun run editorconfig-checker -format github-actions\n",
            ),
        ],
        &[
            ("lint", "bun run lint", "package.json:4 (lint)", ""),
            (
                "lint_editorconfig_checker",
                "bun run editorconfig-checker -format github-actions",
                ".github/workflows/ci.yml:7",
                "",
            ),
        ],
    ),
];

#[test]
fn what_the_workflows_run_becomes_the_loop() {
    assert_layouts(LAYOUTS);
}

#[test]
fn a_job_is_prepared_as_those_are_that_run_its_checks() {
    let jobs = "on: push\njobs:\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python -m pip install tox\n      - uses: ./.github/actions/other\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ./.github/actions/prepare\n        with: {tools: cargo-nextest}\n      - uses: ./.github/actions/nowhere\n      - uses: taiki-e/install-action@v2\n        with: {tool: 'cargo-hack@1.2, just'}\n      - uses: dtolnay/rust-toolchain@v1\n        with: {toolchain: nightly, components: 'rustfmt, clippy'}\n      - run: task setup\n      - run: task test\n";
    let project = project(&[
        ("Taskfile.yml", "version: '3'\ntasks:\n  test: go test ./...\n  setup: go mod tidy\n"),
        (".github/actions/prepare/action.yml", "runs: {using: composite, steps: []}\n"),
        (".github/actions/other/action.yml", "runs: {using: composite, steps: []}\n"),
        (".github/workflows/ci.yml", jobs),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let at = |sign: &str| workflow.find(sign).unwrap_or_else(|| panic!("{sign} in\n{workflow}"));
    let in_order = [
        "uses: ./.github/actions/prepare\n        with:\n          tools: cargo-nextest\n",
        "run: npm install --global @go-task/cli",
        "run: task setup\n",
        "run: cargo install cargo-hack --locked\n",
        "run: rustup toolchain install nightly --profile minimal --component rustfmt --component clippy\n",
    ];
    assert!(in_order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{workflow}");
    for other in ["actions/other", "actions/nowhere", "tox", "cargo install just"] {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn tests_of_the_toolchain_find_what_they_depend_on() {
    let project = project(&[
        ("pyproject.toml", "[build-system]\n\n[tool.pytest.ini_options]\n"),
        ("tests/test_x.py", "def test_x(): pass\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: sudo apt-get install libx\n      - run: python -m pip install tox\n      - run: tox -e ${{ matrix.py }}\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    for line in ["sudo apt-get install libx", "python -m pip install -e ."] {
        assert!(workflow.contains(&format!("- run: {line}\n")), "{line} in\n{workflow}");
    }
    assert!(!workflow.contains("install tox"), "{workflow}");
}
