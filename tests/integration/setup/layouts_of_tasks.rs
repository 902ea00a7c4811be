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
    (
        "a task whose name is the beginning of one that the workflow calls",
        &[
            ("package.json", "{\"scripts\": {\n\"test\": \"vitest\",\n\"test-unit\": \"vitest run\"\n}}"),
            ("pnpm-lock.yaml", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm run test-unit\n",
            ),
        ],
        &[("test", "pnpm run test-unit", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "a task that a call without a name may run, beside a call of one whose name is longer",
        &[
            ("Makefile", "all: test\n\ntest:\n\tx\n\ntest-e2e:\n\tx\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n      - run: make test-e2e\n",
            ),
        ],
        &[
            ("test", "make test", "Makefile:3 (test)", ""),
            ("test_e2e", "make test-e2e", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "scripts of Node, also without their end, and a task that calls one as the workflow does",
        &[
            ("package.json", "{\"scripts\": {\n\"test\": \"node Makefile.js test\"\n}}"),
            ("Makefile.js", "x\n"),
            ("scripts/verify-size.js", "x\n"),
            ("scripts/build.js", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: node Makefile lint\n      - run: node Makefile mocha\n      - run: node scripts/build.js\n      - run: node scripts/verify-size.js\n      - run: node scripts/verify-nothing.js\n      - run: npm run test:emfile\n      - run: node --version\n",
            ),
        ],
        &[
            ("lint_node", "node Makefile lint", ".github/workflows/ci.yml:6", ""),
            ("lint_node_2", "node scripts/verify-size.js", ".github/workflows/ci.yml:9", ""),
            ("test", "npm test", "package.json:2 (test)", ""),
            ("test_emfile", "npm run test:emfile", ".github/workflows/ci.yml:11", ""),
        ],
    ),
    (
        "checks that look at what was built, and one that another job calls without that",
        &[
            (
                "package.json",
                "{\"scripts\": {\n\"build\": \"tsc\",\n\"lint\": \"eslint .\",\n\"test\": \"vitest run\"\n}}",
            ),
            ("pnpm-lock.yaml", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm build\n      - run: pnpm typecheck\n      - run: pnpm lint\n      - run: pnpm test\n  lint:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm lint\n",
            ),
        ],
        &[
            ("lint", "pnpm run lint", "package.json:3 (lint)", ""),
            ("build", "pnpm build", ".github/workflows/ci.yml:6", ""),
            ("lint_typecheck", "pnpm typecheck", ".github/workflows/ci.yml:7", ""),
            ("test", "pnpm run test", "package.json:4 (test)", ""),
        ],
    ),
    (
        "tasks that others call in quotes",
        &[
            (
                "package.json",
                "{\"scripts\": {\n\"lint\": \"run-p \\\"lint:*\\\"\",\n\"lint:js\": \"eslint .\",\n\"test\": \"concurrently \\\"npm:test-*\\\"\",\n\"test-js\": \"x\"\n}}",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: npm run lint:js\n      - run: npm run test\n      - run: npm run test-js\n",
            ),
        ],
        &[
            ("lint", "npm run lint", "package.json:2 (lint)", ""),
            ("test", "npm test", "package.json:4 (test)", ""),
        ],
    ),
    (
        "tests that need a screen, in a line of its own for each machine",
        &[
            ("package.json", "{\"scripts\": {\n\"lint\": \"x\",\n\"test\": \"vscode-test\"\n}}"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ${{ matrix.os }}\n    strategy:\n      matrix:\n        os: [ubuntu-latest, macos-latest]\n    steps:\n      - run: npm run lint\n      - run: xvfb-run -a npm test\n        if: runner.os == 'Linux'\n      - run: npm test\n        if: runner.os != 'Linux'\n",
            ),
        ],
        &[
            ("lint", "npm run lint", "package.json:2 (lint)", ""),
            ("test", "xvfb-run -a npm test", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "environments of tox that a workflow of others is given",
        &[
            (
                "tox.ini",
                "[testenv]\ncommands = pytest\n\n[testenv:lint]\ncommands = x\n\n[testenv:docs]\ncommands = x\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    uses: example/workflows/.github/workflows/tox.yml@v1\n    with:\n      names: |\n        - linux: lint\n        docs\n        py314-devel\n",
            ),
        ],
        &[
            ("lint", "tox -e lint", "tox.ini:4 (lint)", ""),
            ("build", "tox -e docs", ".github/workflows/ci.yml:8", ""),
            ("test", "tox -e py", "tox.ini:1 (test)", ""),
        ],
    ),
    (
        "an environment whose name says nothing, of a matrix and by Python, steps at the same time, and types that are only looked at",
        &[
            ("tox.ini", "[testenv]\ncommands = pytest\n"),
            ("tests/tsconfig.json", "{\"compilerOptions\": {\n  \"noEmit\": true\n}}"),
            ("tsconfig.json", "{\"compilerOptions\": {}}"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        env: [man, type]\n    steps:\n      - run: python -m tox -e ${{ matrix.env }}\n      - run: tox -e coverage-report\n      - parallel:\n          - run: npx tsc -p tests/tsconfig.json\n          - run: npx tsc -p tsconfig.json\n",
            ),
        ],
        &[
            ("lint_type", "python -m tox -e type", ".github/workflows/ci.yml:9", ""),
            ("lint_tsc", "npx tsc -p tests/tsconfig.json", ".github/workflows/ci.yml:12", ""),
            ("build", "python -m tox -e man", ".github/workflows/ci.yml:9", ""),
            ("test", "tox -e py", "tox.ini:1 (test)", ""),
        ],
    ),
];

#[test]
fn tasks_and_scripts_that_the_workflows_call_become_the_loop() {
    assert_layouts(LAYOUTS);
}
