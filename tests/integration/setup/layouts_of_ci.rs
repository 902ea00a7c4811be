//! What `ll-loop init` takes from the workflows of a repository, in layouts like those of real projects.

use super::init::{Layout, assert_layouts, project, written};

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
        "tests that a job with a key makes, a script with a capital in its name, and what only measures",
        &[
            ("Makefile", "testacc:\n\tx\nacceptance:\n\ty\n"),
            ("tools/checkLicense.py", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python tools/checkLicense.py\n      - run: vendor/bin/phpunit --coverage-clover clover.xml\n      - run: make testacc\n        env: {API_KEY: '${{ secrets.API_KEY }}'}\n      - run: make acceptance\n        env: {TOKEN: '${{ secrets.GITHUB_TOKEN }}'}\n",
            ),
        ],
        &[
            ("lint", "python tools/checkLicense.py", ".github/workflows/ci.yml:6", ""),
            ("test_phpunit", "vendor/bin/phpunit", ".github/workflows/ci.yml:7", ""),
            ("test_acceptance", "make acceptance", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "tests of CMake behind an option, which a job switches on among what only it knows",
        &[
            (
                "CMakeLists.txt",
                "option(X_DEVELOPMENT_BUILD \"x\" OFF)\nif(X_DEVELOPMENT_BUILD)\n  include(CTest)\nendif()\n",
            ),
            ("MODULE.bazel", "module(name = \"x\")\n"),
            ("tests/BUILD", "cc_test(\n  name = \"x\",\n)\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  bazel:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bazelisk build --compilation_mode=${{ matrix.mode }} //...\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - working-directory: ${{ runner.workspace }}\n        run: |\n          cmake -Bbuild -H$GITHUB_WORKSPACE \\\n            -DCMAKE_BUILD_TYPE=${{ matrix.type }} \\\n            -DX_DEVELOPMENT_BUILD=ON \\\n            -G Ninja\n      - working-directory: ${{ runner.workspace }}/build\n        run: ctest -j `nproc`\n",
            ),
        ],
        &[(
            "test",
            "build=$(mktemp -d) && cmake -S . -B \"$build\" -DX_DEVELOPMENT_BUILD=ON && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure --no-tests=error",
            ".github/workflows/ci.yml:17",
            "",
        )],
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
                "build=$(mktemp -d) && cmake -S . -B \"$build\" && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure --no-tests=error",
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
    (
        "what the workflows call beside tasks that do something else",
        &[
            ("Makefile", "lint: typos\n\t$(GOLANGCI_LINT) run\ntypos:\n\ttypos\n"),
            ("README.md", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: golangci/golangci-lint-action@v8\n      - uses: crate-ci/typos@v1\n      - uses: zizmorcore/zizmor-action@v0\n        with: {persona: pedantic, advanced-security: false}\n      - uses: docker://rhysd/actionlint:1.7.12\n        with: {args: -color}\n",
            ),
        ],
        &[
            ("lint", "make lint", "Makefile:1 (lint)", ""),
            ("lint_zizmor", "zizmor . --persona pedantic", ".github/workflows/ci.yml:8", ""),
            ("lint_actionlint", "actionlint -color", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "environments of tox that only the workflows name together, and a factor",
        &[
            (
                "tox.ini",
                "[testenv]\ncommands = pytest\n\n[testenv:docs-{build,doctests}]\ncommands = x\n\n[testenv:typing-ty]\ncommands = ty\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: tox run -e docs-doctests,changelog\n      - run: tox run -f typing\n      - run: tox run\n",
            ),
        ],
        &[
            ("lint", "tox -e typing-ty", "tox.ini:7 (typing-ty)", ""),
            ("test", "tox -e py", "tox.ini:1 (test)", ""),
            ("test_docs_doctests", "tox run -e docs-doctests,changelog", ".github/workflows/ci.yml:6", ""),
        ],
    ),
    (
        "tasks whose names only a workflow makes checks, hooks that nothing calls, and documents that it builds",
        &[
            (
                ".pre-commit-config.yaml",
                "repos:\n  - repo: https://github.com/x/ruff-pre-commit\n    hooks:\n      - id: ruff-check\n",
            ),
            ("noxfile.py", "@nox.session\ndef docs(session):\n    x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bundle exec rake confirm_config documentation_syntax_check\n      - run: npm run eclint\n      - run: ruff check .\n      - run: pipx run nox -s docs\n      - run: task acceptance\n      - run: npm run lint-release\n",
            ),
        ],
        &[
            (
                "lint_confirm_config",
                "bundle exec rake confirm_config documentation_syntax_check",
                ".github/workflows/ci.yml:6",
                "",
            ),
            ("lint_eclint", "npm run eclint", ".github/workflows/ci.yml:7", ""),
            ("lint_ruff", "ruff check .", ".github/workflows/ci.yml:8", ""),
            ("build", "pipx run nox -s docs", ".github/workflows/ci.yml:9", ""),
            ("test", "task acceptance", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "signs of the shell in quotes, and checks of the manager itself",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: yarn test-types --target '>=5.4 <6.0'\n      - run: yarn constraints\n      - run: yarn dedupe --check\n      - run: yarn test-types '${{ matrix.x }}'\n      - run: yarn test > log.txt\n",
        )],
        &[
            ("lint_yarn", "yarn constraints", ".github/workflows/ci.yml:7", ""),
            ("lint_yarn_dedupe", "yarn dedupe --check", ".github/workflows/ci.yml:8", ""),
            ("test", "yarn test-types --target '>=5.4 <6.0'", ".github/workflows/ci.yml:6", ""),
        ],
    ),
    (
        "a job that checks another repository out, and one that has its own elsewhere",
        &[
            ("README.md", "x\n"),
            (
                ".github/workflows/a.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with: {repository: 'else/${{ matrix.project }}'}\n      - uses: actions/checkout@v6\n        with: {path: own}\n      - run: poetry run pytest -q tests/\n",
            ),
            (
                ".github/workflows/b.yml",
                "on: push\ndefaults:\n  run:\n    working-directory: own.role\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with: {path: own.role}\n      - run: yamllint .\n      - run: molecule test\n      - run: ls\n",
            ),
            (
                ".github/workflows/c.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/checkout@v6\n        with: {repository: '${{ github.event.pull_request.head.repo.full_name }}'}\n      - run: poetry run pytest -q tests\n",
            ),
        ],
        &[
            ("lint", "yamllint .", ".github/workflows/b.yml:11", ""),
            ("test_molecule", "molecule test", ".github/workflows/b.yml:12", ""),
            ("test_pytest", "poetry run pytest -q tests", ".github/workflows/c.yml:8", ""),
        ],
    ),
    (
        "jobs of other machines by their matrix, of other events, and a lock file that an earlier line makes",
        &[
            ("README.md", "x\n"),
            ("bin/bats", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  win:\n    runs-on: ${{ matrix.os }}\n    strategy:\n      matrix:\n        os: [windows-2022, windows-2025]\n    steps:\n      - run: bats -T test\n  tag:\n    if: startsWith(github.ref, 'refs/tags/')\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: time ./bin/bats --pretty test/\n      - run: bats test --pretty\n      - if: github.event_name == 'workflow_dispatch'\n        run: cargo clippy\n      - if: github.event_name == 'push' || github.event_name == 'release'\n        run: cargo fmt --check\n      - run: cargo check --locked\n",
            ),
        ],
        &[
            ("format", "cargo fmt --check", ".github/workflows/ci.yml:23", ""),
            ("test", "./bin/bats --pretty test/", ".github/workflows/ci.yml:18", ""),
        ],
    ),
    (
        "places of the repository that a matrix names, options of its first job, and the variables that a tool heeds",
        &[
            ("Cargo.toml", "[workspace]\n"),
            ("more/Cargo.toml", "[package]\n"),
            ("web/package.json", "{\"scripts\": {\"odd\": \"x\"}}"),
            (
                ".github/workflows/ci.yml",
                "on: push\nenv:\n  RUSTFLAGS: -D warnings\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        at: [., more]\n        rust: ['1.80', stable]\n        include:\n          - {rust: stable, features: --features a}\n          - {rust: nightly, features: '--features a,b'}\n    steps:\n      - run: cargo clippy --manifest-path ${{ matrix.at }}/Cargo.toml\n      - run: cargo fmt --check\n        working-directory: ${{ matrix.at }}\n      - run: cargo test ${{ matrix.features }} --all\n        env: {RUSTFLAGS: --cfg odd, SECRET: '${{ secrets.X }}'}\n      - run: cargo deny check\n        working-directory: ${{ matrix.elsewhere }}\n  web:\n    runs-on: ubuntu-latest\n    defaults:\n      run:\n        working-directory: ${{ matrix.package }}\n    strategy:\n      matrix:\n        package: [web, gone]\n    steps:\n      - run: npx tsc --noEmit\n",
            ),
        ],
        &[
            (
                "lint_cargo",
                "RUSTFLAGS='-D warnings' cargo clippy --manifest-path ./Cargo.toml",
                ".github/workflows/ci.yml:15",
                "",
            ),
            (
                "lint_cargo_clippy",
                "RUSTFLAGS='-D warnings' cargo clippy --manifest-path more/Cargo.toml",
                ".github/workflows/ci.yml:15",
                "",
            ),
            ("format_cargo", "cargo fmt --check", ".github/workflows/ci.yml:16", ""),
            ("format_more", "cargo fmt --check", ".github/workflows/ci.yml:16", ""),
            (
                "test",
                "RUSTFLAGS='--cfg odd' cargo test --features a --all",
                ".github/workflows/ci.yml:18",
                "",
            ),
        ],
    ),
    (
        "what a job looks at after it has changed what it had checked out, or with a toolchain of its own",
        &[
            ("Cargo.toml", "[package]\n"),
            ("Cargo.lock", "x\n"),
            ("check-action.sh", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy\n      - run: cargo +nightly update -Z minimal-versions\n      - run: cargo check --locked\n      - run: cargo test --all\n  msrv:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo +1.80 check\n      - run: cargo +nightly fmt --check\n  action:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ./\n      - run: ./check-action.sh\n",
            ),
        ],
        &[
            ("lint", "cargo clippy", ".github/workflows/ci.yml:6", ""),
            ("format", "cargo +nightly fmt --check", ".github/workflows/ci.yml:14", ""),
            // Where no other job has tests.
            ("test", "cargo test --all", ".github/workflows/ci.yml:9", ""),
        ],
    ),
    (
        "what only some jobs of a matrix have, and versions of it",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        java: [17, 21]\n        rust: [stable, nightly]\n        include:\n          - {java: 11, more: -x}\n    steps:\n      - run: mvn verify javadoc:jar ${{ matrix.more || '' }}\n      - run: ./gradlew -Pof.java=${{ matrix.java }} build --scan\n      - run: cargo +${{ matrix.rust }} test\n      - run: cargo test --features=${{ matrix.rust }}\n",
        )],
        &[
            ("test_maven", "mvn verify javadoc:jar", ".github/workflows/ci.yml:12", ""),
            ("test_gradle", "./gradlew build --scan", ".github/workflows/ci.yml:13", ""),
            ("test_cargo", "cargo test", ".github/workflows/ci.yml:14", ""),
        ],
    ),
    (
        "suites of a matrix whose tasks begin alike, a script that checks by its name, and a place that an earlier line makes",
        &[
            ("check_reproducibility.sh", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        suite: [unit, e2e, '24']\n    steps:\n      - run: pnpm run test:ci:${{ matrix.suite }}\n      - run: ./check_reproducibility.sh\n      - run: mkdir -p results/\n      - run: bats test --output results\n",
            ),
        ],
        &[
            ("lint", "./check_reproducibility.sh", ".github/workflows/ci.yml:10", ""),
            ("test_ci_unit", "pnpm run test:ci:unit", ".github/workflows/ci.yml:9", ""),
            ("test_ci_e2e", "pnpm run test:ci:e2e", ".github/workflows/ci.yml:9", ""),
        ],
    ),
    (
        "tasks that are not called where a template or another option names them, and options that an action repeats",
        &[
            (
                "Taskfile.yml",
                "tasks:\n  default:\n    cmds:\n      - task: acceptance\n  acceptance:\n    cmds:\n      - go test -tags=acceptance ./...\n  test:\n    cmds:\n      - go test ./... -run {{default \".\" .PATTERN}}\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: task test\n      - run: task acceptance\n      - uses: JohnnyMorganz/stylua-action@v4\n        with: {args: --color always --check .}\n      - run: mdbook test --library-path x/target/debug/deps\n",
            ),
        ],
        &[
            ("format", "stylua --color always --check .", ".github/workflows/ci.yml:8", ""),
            ("test", "task test", "Taskfile.yml:8 (test)", ""),
            ("test_acceptance", "task acceptance", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "tasks that change files, by themselves or by what runs before them, and the others of a line that calls one",
        &[
            (
                "Makefile",
                "lint: tidy spell go-vet\ngo-vet:\n\tgo vet ./...\ntidy:\n\tgo mod tidy\nspell:\n\tmisspell -w docs\nconfirm-licenses:\n\ttrue\n",
            ),
            (
                "composer.json",
                "{\"scripts\": {\"analyse\": \"composer require --dev a/b && phpstan analyse\", \"test\": \"pest\"}}",
            ),
            ("package.json", "{\"scripts\": {\"build\": \"rimraf lib && tsc\"}}"),
            ("lib/a.js", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make confirm-licenses lint\n      - run: npm run build\n      - run: composer run-script analyse\n",
            ),
        ],
        &[
            ("lint", "make confirm-licenses go-vet", ".github/workflows/ci.yml:6", ""),
            ("test", "composer run-script test", "composer.json:1 (test)", ""),
        ],
    ),
    (
        "projects of sbt and properties of Gradle that a matrix names",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        scala: [2.13, 3]\n        project: [onNative, onJVM]\n        mode: [REFLECT, KSP]\n    steps:\n      - run: sbt githubWorkflowCheck\n      - run: sbt 'project ${{ matrix.project }}' '++ ${{ matrix.scala }}' headerCheckAll scalafmtCheckAll 'project /' scalafmtSbtCheck\n      - run: sbt 'project ${{ matrix.project }}' '++ ${{ matrix.scala }}' test\n      - run: sbt 'project ${{ matrix.project }}' '++ ${{ matrix.scala }}' doc\n      - run: ./gradlew build check --stacktrace -Ptests=${{ matrix.mode }}\n",
        )],
        &[
            ("lint", "sbt githubWorkflowCheck", ".github/workflows/ci.yml:11", ""),
            (
                "format_sbt",
                "sbt 'project onNative' headerCheckAll scalafmtCheckAll 'project /' scalafmtSbtCheck",
                ".github/workflows/ci.yml:12",
                "",
            ),
            (
                "format_sbt_2",
                "sbt 'project onJVM' headerCheckAll scalafmtCheckAll 'project /' scalafmtSbtCheck",
                ".github/workflows/ci.yml:12",
                "",
            ),
            ("test_sbt", "sbt 'project onNative' test", ".github/workflows/ci.yml:13", ""),
            ("test_sbt_2", "sbt 'project onJVM' test", ".github/workflows/ci.yml:13", ""),
            (
                "test_gradle",
                "./gradlew build check --stacktrace -Ptests=REFLECT",
                ".github/workflows/ci.yml:15",
                "",
            ),
        ],
    ),
    (
        "what gives way to plainer calls: by what an earlier step says, or has prepared on the machine",
        &[
            ("README.md", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: zig build check test --summary all\n      - uses: bytecodealliance/actions/wasmtime/setup@v1\n      - run: zig build check test -Dtarget=wasm32-wasi -fwasmtime --summary all\n  coverage:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          wget https://example.com/kcov.tar.gz\n          sudo tar xf kcov.tar.gz -C /\n      - run: zig build test -Dcoverage -Duse-llvm --summary all\n  odd:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo RUSTC_BOOTSTRAP=1 >> $GITHUB_ENV\n      - run: typos\n      - run: cargo test --features in-tree\n      - id: bats\n        uses: bats-core/bats-action@v4\n      - run: bats ./tests\n        env: {BATS_LIB_PATH: '${{ steps.bats.outputs.lib-path }}'}\n      - run: mix test\n        env: {GITHUB_TOKEN: '${{ steps.app.outputs.token }}'}\n",
            ),
        ],
        &[
            ("lint", "typos", ".github/workflows/ci.yml:20", ""),
            ("test_zig", "zig build check test --summary all", ".github/workflows/ci.yml:6", ""),
            // Nothing else tests with cargo.
            ("test_cargo", "cargo test --features in-tree", ".github/workflows/ci.yml:21", ""),
            ("test_mix", "mix test", ".github/workflows/ci.yml:26", ""),
        ],
    ),
    (
        "tests that a task passes over, and a variable of the step",
        &[
            (
                "deno.json",
                "{\"tasks\": {\n\"test\": \"deno test -A --doc --ignore=tools/\",\n\"test:tools\": \"deno test -A --doc tools/\"}}",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: deno task test\n      - run: deno task test:tools\n      - run: cargo clippy $FLAGS -- -D \"${LEVEL}\"\n        env: {FLAGS: --all-targets --locked, LEVEL: warnings}\n",
            ),
            ("Cargo.lock", "x\n"),
        ],
        &[
            (
                "lint",
                "cargo clippy --all-targets --locked -- -D \"warnings\"",
                ".github/workflows/ci.yml:8",
                "",
            ),
            ("test", "deno task test", "deno.json:2 (test)", ""),
            ("test_tools", "deno task test:tools", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "tests of a collection of Ansible, which is nowhere installed",
        &[
            ("galaxy.yml", "name: x\n"),
            ("justfile", "lint:\n  x\n"),
            ("tests/unit/test_x.py", "import unittest\n"),
        ],
        &[("lint", "just lint", "justfile:1 (lint)", "")],
    ),
    (
        "tests of Mill, Babashka, Leiningen and Nimble",
        &[
            ("mill", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ./mill -i mill.scalalib.scalafmt.ScalafmtModule/checkFormatAll __.sources\n      - run: ./mill -i -k __.test\n      - run: bb test :clj-all\n      - run: lein test\n      - run: nimble test\n",
            ),
        ],
        &[
            (
                "format",
                "./mill -i mill.scalalib.scalafmt.ScalafmtModule/checkFormatAll __.sources",
                ".github/workflows/ci.yml:6",
                "",
            ),
            ("test_mill", "./mill -i -k __.test", ".github/workflows/ci.yml:7", ""),
            ("test_bb", "bb test :clj-all", ".github/workflows/ci.yml:8", ""),
            ("test_lein", "lein test", ".github/workflows/ci.yml:9", ""),
            ("test_nimble", "nimble test", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "a flake of Nix with checks",
        &[("flake.nix", "{\n  outputs = { self }: {\n    checks = { };\n  };\n}\n")],
        &[("test", "nix flake check", "flake.nix:3", "")],
    ),
    (
        "a script that only calls others does what they do",
        &[(
            "package.json",
            "{\n  \"scripts\": {\n    \"format\": \"npm run format:code && run-s format:imports\",\n    \"format:ci\": \"npm run format:code:ci\",\n    \"format:code\": \"prettier -w .\",\n    \"format:code:ci\": \"prettier --check .\",\n    \"format:imports\": \"biome check --write\"\n  }\n}\n",
        )],
        &[("format", "npm run format:ci", "package.json:4 (format:ci)", "npm run format")],
    ),
    (
        "what needs a server that an earlier line has started, or a line of which a part is not understood",
        &[
            ("Makefile", "test: start-server\n\tvendor/bin/phpunit\n"),
            ("test/runner.rb", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: mkdir -p out && cargo fmt --check\n      - run: ./install --all && ruby test/runner.rb\n      - run: |\n          node tests/server.js &\n          vendor/bin/phpstan analyse\n      - run: vendor/bin/phpunit\n",
            ),
        ],
        &[
            ("format", "cargo fmt --check", ".github/workflows/ci.yml:6", ""),
            ("test", "make test", "Makefile:1 (test)", ""),
        ],
    ),
    (
        "a shell that has gone elsewhere",
        &[
            ("api/go.mod", "module api\n"),
            ("web/x.rs", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: |\n          cd api && go vet ./...\n          go test ./...\n          cd ../web\n          cargo fmt --check\n          cd \"$ELSEWHERE\"\n          cargo clippy\n",
            ),
        ],
        &[
            ("lint", "go vet ./...", ".github/workflows/ci.yml:7", ""),
            ("format", "cargo fmt --check", ".github/workflows/ci.yml:10", ""),
            ("test", "go test ./...", ".github/workflows/ci.yml:8", ""),
        ],
    ),
    (
        "a workflow that others call, with what each of them gives it",
        &[
            (
                ".github/workflows/ci.yml",
                "on: pull_request\njobs:\n  unit:\n    uses: ./.github/workflows/script.yml\n    strategy:\n      matrix:\n        part: [unit]\n    with:\n      script: test-${{ matrix.part }}\n  types:\n    uses: ./.github/workflows/script.yml\n    with:\n      script: typecheck\n  nightly:\n    if: github.event_name == 'schedule'\n    uses: ./.github/workflows/script.yml\n    with:\n      script: test-all\n",
            ),
            (
                ".github/workflows/script.yml",
                "on:\n  workflow_call:\n    inputs:\n      script:\n        type: string\n      manager:\n        type: string\n        default: pnpm\njobs:\n  run:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ${{ inputs.manager }} run ${{ inputs.script }}\n",
            ),
        ],
        &[
            ("lint", "pnpm run typecheck", ".github/workflows/script.yml:13", ""),
            ("test", "pnpm run test-unit", ".github/workflows/script.yml:13", ""),
        ],
    ),
    (
        "what does not run for a proposed change, or cannot fail there",
        &[
            (
                ".github/workflows/ci.yml",
                "on: [push, pull_request]\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: zizmorcore/zizmor-action@v1\n      - run: cargo test\n      - if: failure()\n        run: cargo nextest run\n  clippy:\n    if: github.event_name != 'pull_request'\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy\n",
            ),
            (
                ".github/workflows/after.yml",
                "on:\n  push:\n    branches: [main]\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo fmt --check\n",
            ),
        ],
        &[("test", "cargo test", ".github/workflows/ci.yml:7", "")],
    ),
    (
        "a scanner whose findings fail its job, tests on a screen, and each part of the tests in a line of its own",
        &[(
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: zizmorcore/zizmor-action@v1\n        with:\n          advanced-security: false\n      - run: xvfb-run -s \"-screen 0 1024x768x24\" dart test --total-shards 2 --shard-index 0\n      - run: xvfb-run -s \"-screen 0 1024x768x24\" dart test --total-shards 2 --shard-index 1\n",
        )],
        &[
            ("lint", "zizmor .", ".github/workflows/ci.yml:6", ""),
            ("test", "xvfb-run -s \"-screen 0 1024x768x24\" dart test", ".github/workflows/ci.yml:9", ""),
        ],
    ),
];

#[test]
fn what_the_workflows_run_becomes_the_loop() {
    assert_layouts(LAYOUTS);
}

#[test]
fn a_job_is_prepared_as_those_are_that_run_its_checks() {
    let jobs = "on: push\njobs:\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - run: python -m pip install tox\n      - uses: ./.github/actions/other\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: ./.github/actions/prepare\n        with: {tools: cargo-nextest}\n      - uses: ./.github/actions/nowhere\n      - uses: taiki-e/install-action@v2\n        with: {tool: 'cargo-hack@1.2, just'}\n      - uses: dtolnay/rust-toolchain@v1\n        with: {toolchain: nightly, components: 'rustfmt, clippy'}\n      - run: npm install -g ./x-*.tgz\n      - run: npm i -g wallet\n      - run: task setup\n      - run: task test\n";
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
        "uses: ./.github/actions/prepare # zizmor: ignore[self-repository]\n        with:\n          tools: cargo-nextest\n",
        "run: npm install --global @go-task/cli",
        "run: task setup\n",
        "run: cargo install cargo-hack --locked\n",
        "run: rustup toolchain install nightly --profile minimal --component rustfmt --component clippy\n",
    ];
    assert!(in_order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{workflow}");
    assert!(workflow.contains("run: npm i -g wallet # zizmor: ignore[adhoc-packages]\n"), "{workflow}");
    for other in ["actions/other", "actions/nowhere", "tox", "cargo install just", ".tgz"] {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn a_job_has_what_its_tasks_and_tools_call() {
    let jobs = "on: push\nenv:\n  NODE: 24.x\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/setup-node@v6\n        with: {node-version: '${{ env.NODE }}'}\n      - uses: oven-sh/setup-bun@v2\n      - uses: actions/setup-java@v5\n        with: {java-version-file: .github/java-version}\n      - run: uv sync --all-extras\n      - run: task lint\n      - run: task test\n  docs:\n    runs-on: ubuntu-latest\n    steps:\n      - run: uv sync --group docs\n      - run: poetry install\n      - run: RUSTFLAGS=-Dwarnings cargo nextest run\n      - run: sbt test\n      - run: helm plugin install https://example.com/x --version \"${OF}\"\n        env: {OF: 1.2.3}\n      - run: ct lint --all\n      - run: nimble test\n      - run: bb test\n";
    let taskfile = "version: '3'\ntasks:\n  lint:\n    cmds:\n      - golangci-lint run\n      - ruff check\n  test:\n    cmds:\n      - go install example.com/actionlint@latest\n      - actionlint\n";
    let project = project(&[
        ("Taskfile.yml", taskfile),
        ("bb.edn", "{}\n"),
        (".github/java-version", "23\n"),
        (".github/workflows/ci.yml", jobs),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let at = |sign: &str| workflow.find(sign).unwrap_or_else(|| panic!("{sign} in\n{workflow}"));
    for part in [
        "node-version: \"24.x\"\n",
        "uses: oven-sh/setup-bun@",
        "java-version-file: .github/java-version\n",
        "uses: sbt/setup-sbt@",
        "uses: helm/chart-testing-action@",
        "uses: jiro4989/setup-nim-action@",
        "uses: DeLaGuardo/setup-clojure@",
        "bb: latest\n",
        "run: uv sync --all-extras\n",
        "run: uv sync --group docs --inexact\n",
        "run: cargo install cargo-nextest --locked\n",
        "golangci-lint",
        "helm plugin install https://example.com/x --version",
    ] {
        at(part);
    }
    assert!(at("run: pipx install poetry\n") < at("run: poetry install\n"), "{workflow}");
    for other in ["ruff", "run: go install github.com/rhysd", "chart-testing/v3"] {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn a_job_has_the_services_of_those_that_make_its_checks() {
    let project = project(&[
        ("Gemfile", "source 'https://rubygems.org'\n"),
        ("Rakefile", "task :test do\nend\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\nenv:\n  LEVEL: 1\njobs:\n  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        pg: ['17', '16']\n    services:\n      # The store.\n      db:\n        image: postgres:${{ matrix.pg }}\n        ports:\n          - 5432:5432\n        options: >-\n          --health-cmd pg_isready\n\n    steps:\n      - run: bundle exec rake test\n        env:\n          DATABASE_URL: postgres://localhost:5432\n          LEVEL: 2\n          TOKEN: ${{ secrets.TOKEN }}\n  other:\n    runs-on: ubuntu-latest\n    services:\n      redis:\n        image: redis\n    steps:\n      - run: bundle exec rake deploy\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let expected = "    services:\n      db:\n        image: postgres:17 # zizmor: ignore[unpinned-images]\n        ports:\n          - 5432:5432\n        options: >-\n          --health-cmd pg_isready\n    env:\n      DATABASE_URL: \"postgres://localhost:5432\"\n      LEVEL: \"2\"\n    steps:\n";
    assert!(workflow.contains(expected), "{workflow}");
    assert!(!workflow.contains("redis"), "{workflow}");
}

#[test]
fn a_job_has_the_versions_variables_and_container_of_those_that_make_its_checks() {
    let jobs = "on: push\nenv:\n  VERSION: 1\njobs:\n  test:\n    runs-on: ubuntu-latest\n    container: example/${{ matrix.image }}:1\n    strategy:\n      matrix:\n        image: [ci, old]\n        python: ['3.9', '3.10', '3.15-dev']\n    env:\n      LEVEL: 2\n    steps:\n      - uses: actions/setup-python@v6\n        with: {python-version: '${{ matrix.python }}', allow-prereleases: true}\n      - run: echo ${{ env.VERSION }}\n      - run: scripts/install-deps\n      - run: scripts/install --prefix x\n      - run: pnpm install --frozen-lockfile\n      - run: pytest -q\n        env:\n          NODE_ENV: test\n          PORT: '80'\n  other:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: actions/setup-python@v6\n        with: {python-version: '3.14'}\n      - run: ./deploy\n";
    let project = project(&[
        ("scripts/install-deps", "x\n"),
        ("package.json", "{}\n"),
        (".github/workflows/ci.yml", jobs),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    for part in [
        "    container: example/ci:1 # zizmor: ignore[unpinned-images]\n",
        "    env:\n      PORT: \"80\"\n      LEVEL: \"2\"\n    steps:\n",
        "python-version: \"3.10\"\n          allow-prereleases: \"true\"\n",
        "run: scripts/install-deps\n",
    ] {
        assert!(workflow.contains(part), "{part} in\n{workflow}");
    }
    for other in ["VERSION", "NODE_ENV", "3.14", "--prefix"] {
        assert!(!workflow.contains(other), "{other} in\n{workflow}");
    }
}

#[test]
fn a_shell_of_gitlab_stays_where_it_went() {
    let project = project(&[
        ("api/sub/x.go", "package sub\n"),
        (
            ".gitlab-ci.yml",
            "all:\n  before_script:\n    - cd api\n  script:\n    - cd sub\n    - staticcheck ./...\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let text = project.read(".loops/tidy.yaml");
    assert!(
        text.contains("  # .gitlab-ci.yml:6\n  lint:\n    action: cd api/sub && staticcheck ./...\n"),
        "{text}"
    );
}

#[test]
fn a_job_has_the_toolchain_and_the_managers_that_its_checks_need() {
    let jobs = "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        editor: [8.1, 9.0]\n    steps:\n      - uses: dtolnay/rust-toolchain@nightly\n      - uses: example/setup-editor@v1\n        with: {version: '${{ matrix.editor }}'}\n      - run: pnpm install\n      - run: go install example.com/tool@v1\n      - run: cargo test\n  below:\n    runs-on: ubuntu-latest\n    defaults:\n      run:\n        working-directory: rack\n    steps:\n      - run: bundle exec rake test\n";
    let project = project(&[
        ("Cargo.toml", "[package]\n"),
        ("rack/Gemfile", "source 'https://rubygems.org'\n"),
        ("rack/Rakefile", "task :test do\nend\n"),
        (".github/workflows/ci.yml", jobs),
    ]);
    project.run(&["init"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let at = |sign: &str| workflow.find(sign).unwrap_or_else(|| panic!("{sign} in\n{workflow}"));
    assert!(at("uses: pnpm/action-setup@") < at("run: pnpm install\n"), "{workflow}");
    assert!(
        at("uses: actions/setup-go@") < at("run: GOTOOLCHAIN=auto go install example.com/tool@v1\n"),
        "{workflow}"
    );
    assert!(
        at("run: rustup toolchain install nightly --profile minimal") < at("run: rustup default nightly\n"),
        "{workflow}"
    );
    at("          bundler-cache: \"true\"\n          working-directory: rack\n");
    at(
        "uses: example/setup-editor@v1 # zizmor: ignore[unpinned-uses]\n        with:\n          version: \"9.0\"\n",
    );
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

#[test]
fn a_tool_whose_name_begins_like_another_one_does_not_stand_for_it() {
    let project = project(&[
        ("package.json", "{\"scripts\": {\"test\": \"true\"}}"),
        (".markdownlint.json", "{}"),
        ("pyproject.toml", "[tool.ty]\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: typos\n      - run: npx --no-install markdownlint-cli2\n",
        ),
    ]);
    project.run(&["init"]).code(0);
    let text = project.read(".loops/tidy.yaml");
    assert!(text.contains("#   ty check # pyproject.toml:1\n"), "`typos` is not `ty`: {text}");
    assert!(!text.contains("#   npx --no-install markdownlint "), "its settings are read already: {text}");
}

#[test]
fn a_job_of_gitlab_installs_the_gems_that_an_action_installs_on_github() {
    let project =
        project(&[("Gemfile", "source 'https://rubygems.org'\n"), ("Rakefile", "task :test do\nend\n")]);
    project.run(&["init", "--ci", "gitlab"]).code(0);
    let jobs = project.read(".gitlab-ci.yml");
    assert!(jobs.contains("    - bundle install\n"), "{jobs}");
}

#[test]
fn the_tests_of_cmake_are_built_as_their_job_builds_them() {
    let jobs = "  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        std: [17]\n    steps:\n      - run: cmake -B b -DX_WARNINGS=ON -DCMAKE_CXX_STANDARD=${{ matrix.std }} -DCMAKE_CXX_COMPILER=g++-9 -DX_DIR=/opt/x\n      - run: ctest --test-dir b\n";
    let (text, _) = written(jobs, &[("CMakeLists.txt", "enable_testing()\n")]);
    assert!(text.contains("cmake -S . -B \"$build\" -DCMAKE_CXX_STANDARD=17 -DX_WARNINGS=ON && "), "{text}");
}
