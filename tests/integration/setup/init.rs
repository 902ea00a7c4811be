//! `ll-loop init`: what it finds in layouts like those of real projects, what it writes, and what it refuses.

use serde_json::Value;

use crate::common::{Project, git};

/// A layout: its name, its files, and the checks that are found, each with its command, its evidence and its fix.
pub(super) type Layout = (
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, &'static str, &'static str, &'static str)],
);

const LAYOUTS: &[Layout] = &[
    (
        "just, whose tests watch, and a recipe that ends",
        &[
            (
                "justfile",
                "watch +args='x':\n  cargo watch --clear --exec '{{ args }}'\n\ntest: (watch 'test --all')\n\nlint:\n  cargo clippy\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test --all\n",
            ),
        ],
        &[
            ("lint", "just lint", "justfile:6 (lint)", ""),
            ("test", "cargo test --all", ".github/workflows/ci.yml:6", ""),
        ],
    ),
    (
        "rake, whose tasks have names of their own",
        &[
            ("Gemfile", "source 'https://rubygems.org'\n"),
            (
                "Rakefile",
                "RSpec::Core::RakeTask.new(:spec) do |t|\nend\nRuboCop::RakeTask.new(:internal_investigation)\n",
            ),
        ],
        &[
            ("lint", "bundle exec rake internal_investigation", "Rakefile:3 (lint)", ""),
            ("test", "bundle exec rake spec", "Rakefile:1 (test)", ""),
        ],
    ),
    (
        "tox, whose commands are for a factor each",
        &[(
            "tox.ini",
            "[tox]\nenv_list = 3.1{0-5}-tests\n\n[testenv]\ncommands =\n    tests: pytest {posargs:-n auto}\n    mypy: mypy src\n",
        )],
        &[("test", "tox -e py-tests", "tox.ini:4 (test)", "")],
    ),
    (
        "tox that nobody calls, beside what the CI calls",
        &[
            ("tox.ini", "[testenv]\ncommands = pytest\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: poetry run pytest -q tests\n",
            ),
        ],
        &[("test", "poetry run pytest -q tests", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "tox that the CI calls in its own way",
        &[
            ("tox.ini", "[testenv]\ncommands = pytest\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: uvx tox -e py${{ matrix.python }}\n      - run: pytest -q\n",
            ),
        ],
        &[("test", "tox -e py", "tox.ini:1 (test)", "")],
    ),
    (
        "make, whose parts the CI names",
        &[
            ("Makefile", "test-all: test-a test-b\n\ntest-a:\n\tgo test ./...\n\ntest-b:\n\tneeds-much\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make test-a\n",
            ),
        ],
        &[("test", "make test-a", "Makefile:3 (test-a)", "")],
    ),
    (
        "parts of the tests that the CI leaves alone, a directory that only the job knows, and one check written in two ways",
        &[
            ("justfile", "test-quine:\n  cargo run\n\ntest-completions:\n  ./x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test --all\n      - run: cargo test --all\n      - run: go test ./...\n        working-directory: ${{ matrix.module }}\n      - run: pytest tests/\n      - run: pytest tests\n",
            ),
        ],
        &[
            ("test_cargo", "cargo test --all", ".github/workflows/ci.yml:6", ""),
            ("test_pytest", "pytest tests/", ".github/workflows/ci.yml:10", ""),
        ],
    ),
    (
        "workflows that no change starts",
        &[
            ("README.md", "x\n"),
            (
                ".github/workflows/nightly.yml",
                "on:\n  schedule: [{cron: '0 0 * * *'}]\n  workflow_dispatch:\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm build\n",
            ),
            (
                ".github/workflows/docset.yml",
                "on:\n  push: {tags: ['*']}\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n",
            ),
            (
                ".github/workflows/ci.yml",
                "on: [push, pull_request]\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: typos\n",
            ),
        ],
        &[("lint", "typos", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "a matrix of tasks, a version that is left out, and the place of the checkout",
        &[
            ("README.md", "x\n"),
            ("test/after.sh", ""),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        task: [rubocop, spec]\n        python-version: ['3.9', '3.14']\n    steps:\n      - run: bundle exec rake ${{ matrix.task }}\n      - run: hatch test --python ${{ matrix.python-version }} --parallel\n      - run: bazel --bazelrc=$GITHUB_WORKSPACE/ci.bazelrc test //...\n      - if: steps.changes.outputs.lib == 'true'\n        run: sh test/test_after.sh\n",
            ),
            ("test/test_after.sh", "x\n"),
        ],
        &[
            ("lint", "bundle exec rake rubocop", ".github/workflows/ci.yml:10", ""),
            ("test_spec", "bundle exec rake spec", ".github/workflows/ci.yml:10", ""),
            ("test_hatch", "hatch test --parallel", ".github/workflows/ci.yml:11", ""),
            ("test_bazel", "bazel --bazelrc=./ci.bazelrc test //...", ".github/workflows/ci.yml:12", ""),
        ],
    ),
    (
        "tasks of a program of the repository",
        &[
            ("Cargo.toml", "[workspace]\n"),
            (".cargo/config.toml", "[alias]\nxtask = \"run --package xtask --\"\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo xtask format --check\n      - run: cargo xtask clippy\n      - run: cargo xtask test-libs\n      - run: cargo xtask release\n",
            ),
        ],
        &[
            ("lint", "cargo xtask clippy", ".github/workflows/ci.yml:7", ""),
            ("format", "cargo xtask format --check", ".github/workflows/ci.yml:6", ""),
            ("test", "cargo xtask test-libs", ".github/workflows/ci.yml:8", ""),
        ],
    ),
    (
        "RSpec without a task",
        &[
            ("Gemfile", "source 'https://rubygems.org'\n"),
            (".rspec", "--color\n"),
            ("spec/dry/types_spec.rb", "x\n"),
        ],
        &[("test", "bundle exec rspec", ".rspec:1", "")],
    ),
    (
        "Kotlin for many platforms, with tests in directories of their own",
        &[
            ("build.gradle.kts", "plugins { kotlin(\"multiplatform\") }\n"),
            ("core/common/test/DateTest.kt", "x\n"),
        ],
        &[("test", "gradle allTests", "build.gradle.kts:1", "")],
    ),
    (
        "Gradle, with a step for Windows and a job for it",
        &[
            ("build.gradle", "plugins {}\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ${{ matrix.os }}\n    steps:\n      - if: matrix.os != 'windows-latest'\n        run: ./gradlew check\n      - if: matrix.os == 'windows-latest'\n        run: ./gradlew check -Dkwasm=false\n  win:\n    runs-on: windows-latest\n    steps:\n      - run: cargo test\n",
            ),
        ],
        &[("test", "./gradlew check", ".github/workflows/ci.yml:7", "")],
    ),
    (
        "a task that mends what one linter finds, and another linter beside it",
        &[
            ("Gemfile", "source 'https://rubygems.org'\n"),
            ("Makefile", "lint:\n\tbundle exec standardrb --fix\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: bundle exec standardrb\n      - run: bundle exec brakeman\n",
            ),
        ],
        &[
            ("lint_standardrb", "bundle exec standardrb", ".github/workflows/ci.yml:6", "make lint"),
            ("lint_brakeman", "bundle exec brakeman", ".github/workflows/ci.yml:7", ""),
        ],
    ),
    (
        "a script whose name says format, and that calls what writes",
        &[(
            "package.json",
            "{\"scripts\": {\n\"format\": \"nx format:write\",\n\"format:write\": \"nx format:write\",\n\"format:check\": \"nx format:check\"}}\n",
        )],
        &[("format", "npm run format:check", "package.json:4 (format:check)", "npm run format")],
    ),
    (
        "an action with arguments of its own",
        &[
            ("README.md", "x\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - uses: lycheeverse/lychee-action@v2\n        with: {args: \"--offline '*.md'\"}\n",
            ),
        ],
        &[("lint", "lychee --offline '*.md'", ".github/workflows/ci.yml:6", "")],
    ),
    (
        "Zig, with its format in the workflow",
        &[
            ("build.zig", "pub fn build(b: *std.Build) void {\n    _ = b.step(\"test\", \"x\");\n}\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: zig fmt --check .\n",
            ),
        ],
        &[
            ("format", "zig fmt --check .", ".github/workflows/ci.yml:6", ""),
            ("test", "zig build test", "build.zig:2", ""),
        ],
    ),
    (
        "Dart, with its tests",
        &[("pubspec.yaml", "name: x\n"), ("test/x_test.dart", "void main() {}\n")],
        &[("test", "dart test", "pubspec.yaml:1", "")],
    ),
    (
        "OCaml, with its tests",
        &[("dune-project", "(lang dune 3.0)\n"), ("test/dune", "(test\n (name x))\n")],
        &[("test", "dune runtest", "dune-project:1", "")],
    ),
    (
        "Bazel, with its tests",
        &[("MODULE.bazel", "module(name = \"x\")\n"), ("lib/BUILD", "cc_test(\n    name = \"x\",\n)\n")],
        &[("test", "bazel test //...", "MODULE.bazel:1", "")],
    ),
    (
        "Rust, with clippy in its workflow",
        &[
            ("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n"),
            (
                ".github/workflows/ci.yml",
                "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo clippy --all-targets -- -D warnings\n      - run: |\n          cargo build\n          cargo test --workspace\n",
            ),
        ],
        &[
            ("lint", "cargo clippy --all-targets -- -D warnings", ".github/workflows/ci.yml:6", ""),
            ("test", "cargo test --workspace", ".github/workflows/ci.yml:9", ""),
        ],
    ),
    (
        "Rust, with tests and nothing else",
        &[("Cargo.toml", "[package]\n"), ("src/lib.rs", "#[test]\nfn x() {}\n"), ("clippy.toml", "")],
        &[("test", "cargo test", "Cargo.toml:1", "")],
    ),
    (
        "Python, where pytest is declared and ruff is only configured",
        &[
            (
                "pyproject.toml",
                "[project]\nname = \"x\"\n\n[tool.ruff]\nline-length = 100\n\n[dependency-groups]\ndev = [\n  \"pytest>=8\",\n]\n",
            ),
            ("uv.lock", "version = 1\n"),
            ("tests/test_x.py", "def test_x(): pass\n"),
        ],
        &[("test", "uv run python -m pytest", "pyproject.toml:9", "")],
    ),
    (
        "Python, with tox and flake8",
        &[
            (
                "tox.ini",
                "[tox]\nenvlist = py\n\n[testenv]\ncommands = pytest\n\n[testenv:lint]\ncommands = flake8\n",
            ),
            ("setup.cfg", "[flake8]\n"),
        ],
        &[("lint", "tox -e lint", "tox.ini:7 (lint)", ""), ("test", "tox -e py", "tox.ini:4 (test)", "")],
    ),
    (
        "Gradle, where ktlint is called by spotless and Kotlin is built for many platforms",
        &[
            (
                "build.gradle",
                "plugins {\n  alias(libs.plugins.spotless)\n}\nspotless {\n  ktlint('1')\n}\nkotlin {\n  jvm()\n}\n",
            ),
            ("src/commonMain/kotlin/A.kt", ""),
            ("src/commonTest/kotlin/ATest.kt", ""),
        ],
        &[
            ("format", "gradle spotlessCheck", "build.gradle:2 (format:check)", "gradle spotlessApply"),
            ("test", "gradle jvmTest", "build.gradle:1", ""),
        ],
    ),
    (
        "a Makefile whose fix is about another part",
        &[(
            "Makefile",
            "static-stan:\n\tstan\nstatic-psalm:\n\tpsalm\nstatic-codestyle-fix:\n\tcs\ntest:\n\tunit\n",
        )],
        &[
            ("static_stan", "make static-stan", "Makefile:1 (static-stan)", ""),
            ("static_psalm", "make static-psalm", "Makefile:3 (static-psalm)", ""),
            ("test", "make test", "Makefile:7 (test)", ""),
        ],
    ),
    (
        "tasks that CI calls, with what else it runs",
        &[
            (
                "package.json",
                "{\n\"packageManager\": \"pnpm@10.0.0\",\n\"scripts\": {\n\"format\": \"turbo run format\",\n\"format:fix\": \"turbo run \
                 format -- --write\",\n\"lint\": \"turbo run lint\",\n\"lint:fix\": \"turbo run lint -- --fix\",\n\"typecheck\": \"turbo \
                 run typecheck\"\n}\n}\n",
            ),
            (
                ".github/workflows/ci.yml",
                "jobs:\n  check:\n    steps:\n      - run: pnpm lint\n      - run: pnpm typecheck\n      - run: pnpm format\n",
            ),
        ],
        &[
            ("lint", "pnpm run lint", "package.json:6 (lint)", "pnpm run lint:fix"),
            ("lint_typecheck", "pnpm typecheck", ".github/workflows/ci.yml:5", ""),
            ("format", "pnpm run format", "package.json:4 (format)", "pnpm run format:fix"),
        ],
    ),
    (
        "the runner of tasks that CI calls comes before another one",
        &[
            ("tox.ini", "[testenv]\ncommands = test\n"),
            ("pyproject.toml", "[tool.pdm.scripts]\ntest = \"pytest\"\n"),
            (".github/workflows/ci.yml", "jobs:\n  test:\n    steps:\n      - run: pdm run pytest -n auto\n"),
        ],
        &[("test", "pdm run pytest -n auto", ".github/workflows/ci.yml:4", "")],
    ),
    (
        "nothing that another build system runs, or that has to be configured before",
        &[
            ("Makefile.am", ""),
            ("a/BUILD", ""),
            ("a/a_test.py", "import unittest\n"),
            (
                ".github/workflows/ci.yml",
                "jobs:\n  test:\n    steps:\n      - run: make check\n      - run: cargo fmt --check\n",
            ),
        ],
        &[("format", "cargo fmt --check", ".github/workflows/ci.yml:5", "")],
    ),
    (
        "JavaScript, with scripts",
        &[
            (
                "package.json",
                "{\n  \"scripts\": {\n    \"lint\": \"eslint .\",\n    \"lint:fix\": \"eslint . --fix\",\n    \"format:check\": \"prettier --check .\",\n    \"format\": \"prettier --write .\",\n    \"test\": \"vitest run\",\n    \"test:watch\": \"vitest --watch\"\n  }\n}\n",
            ),
            ("package-lock.json", "{}"),
        ],
        &[
            ("lint", "npm run lint", "package.json:3 (lint)", "npm run lint:fix"),
            ("format", "npm run format:check", "package.json:5 (format:check)", "npm run format"),
            ("test", "npm test", "package.json:7 (test)", ""),
        ],
    ),
    (
        "Go, with golangci-lint by its action, in a directory of its own",
        &[
            ("go.mod", "module x\n"),
            ("x_test.go", "package x\n"),
            ("web/package.json", "{}"),
            (
                ".github/workflows/ci.yml",
                "jobs:\n  lint:\n    steps:\n      - uses: golangci/golangci-lint-action@v8\n      - run: npm test\n        working-directory: ./web\n",
            ),
        ],
        &[
            ("lint", "golangci-lint run", ".github/workflows/ci.yml:4", ""),
            ("test", "npm test", ".github/workflows/ci.yml:5", ""),
        ],
    ),
    (
        "Java, with Gradle and Spotless",
        &[
            ("build.gradle.kts", "plugins {\n  java\n  id(\"com.diffplug.spotless\")\n}\n"),
            ("gradlew", "#!/bin/sh\n"),
            ("src/test/java/a/b/c/d/e/f/XTest.java", ""),
        ],
        &[
            (
                "format",
                "./gradlew spotlessCheck",
                "build.gradle.kts:3 (format:check)",
                "./gradlew spotlessApply",
            ),
            ("test", "./gradlew test", "build.gradle.kts:1", ""),
        ],
    ),
    (
        "Java, with Maven",
        &[("pom.xml", "<project/>\n"), ("mvnw", "#!/bin/sh\n"), ("src/test/java/XTest.java", "")],
        &[("test", "./mvnw --batch-mode test", "pom.xml:1", "")],
    ),
    (
        ".NET",
        &[("App.sln", ""), ("src/App.Tests/App.Tests.csproj", "<PackageReference Include=\"xunit\"/>")],
        &[("test", "dotnet test", "App.sln:1", "")],
    ),
    (
        "Ruby, with Rake, and RuboCop only configured",
        &[
            ("Rakefile", "require \"rake\"\ntask :test do\nend\n"),
            (".rubocop.yml", "AllCops:\n"),
            ("Gemfile", ""),
        ],
        &[("test", "bundle exec rake test", "Rakefile:2 (test)", "")],
    ),
    (
        "Ruby, where `spec` is a document that is written",
        &[("Rakefile", "task spec: \"SPEC.rdoc\"\ntask test: %w[spec]\n")],
        &[("test", "bundle exec rake test", "Rakefile:2 (test)", "")],
    ),
    (
        "PHP, with Composer's scripts",
        &[(
            "composer.json",
            "{\n \"scripts\": {\n  \"lint\": \"phpstan\",\n  \"test\": \"phpunit\"\n }\n}\n",
        )],
        &[
            ("lint", "composer run-script lint", "composer.json:3 (lint)", ""),
            ("test", "composer run-script test", "composer.json:4 (test)", ""),
        ],
    ),
    (
        "C++, with CMake",
        &[("CMakeLists.txt", "project(x)\nenable_testing()\n")],
        &[(
            "test",
            "build=$(mktemp -d) && cmake -S . -B \"$build\" && cmake --build \"$build\" --parallel && ctest --test-dir \"$build\" --output-on-failure --no-tests=error",
            "CMakeLists.txt:2",
            "",
        )],
    ),
    (
        "documents of MkDocs",
        &[("mkdocs.yml", "site_name: x\n"), ("docs/index.md", "# x\n")],
        &[("build", "mkdocs build --strict --site-dir \"$(mktemp -d)\"", "mkdocs.yml:1", "")],
    ),
    (
        "hooks of pre-commit, which mend what they find",
        &[(".pre-commit-config.yaml", "repos: []\n")],
        &[("lint", "pre-commit run --all-files", ".pre-commit-config.yaml:1 (lint)", "")],
    ),
    (
        "a Makefile before all else",
        &[
            (
                "Makefile",
                "VERSION := 1\n.PHONY: lint\nlint:\n\truff check\nfmt:\n\truff format\nfmt-check:\n\truff format --check\ntest: lint\n\tpytest\nwatch:\n\tpytest --watch\ncheck-tag:\n\ttrue\n",
            ),
            ("pyproject.toml", "[tool.ruff]\n"),
        ],
        &[
            ("lint", "make lint", "Makefile:3 (lint)", ""),
            ("format", "make fmt-check", "Makefile:7 (fmt-check)", "make fmt"),
            ("test", "make test", "Makefile:9 (test)", ""),
        ],
    ),
    (
        "a justfile with a fix for everything",
        &[(
            "justfile",
            "check:\n    cargo clippy\n\nfix:\n    cargo clippy --fix\n\ntest filter=\"\":\n    cargo test {{filter}}\n",
        )],
        &[
            ("lint", "just check", "justfile:1 (check)", "just fix"),
            ("test", "just test", "justfile:7 (test)", ""),
        ],
    ),
    (
        "go-task and mise",
        &[
            ("Taskfile.yml", "version: '3'\ntasks:\n  lint: golangci-lint run\n"),
            ("mise.toml", "[tasks.test]\nrun = \"go test\"\n"),
        ],
        &[
            ("lint", "task lint", "Taskfile.yml:3 (lint)", ""),
            ("test", "mise run test", "mise.toml:1 (test)", ""),
        ],
    ),
];

fn begun(project: &Project, arguments: &[&str]) -> Value {
    let ran = project.run(&[&["init", "--json"], arguments].concat()).code(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

pub(super) fn project(files: &[(&str, &str)]) -> Project {
    let project = files.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
    git(&project, &["init", "-q", "-b", "trunk"]);
    project
}

#[test]
fn what_a_repository_uses_becomes_its_loop() {
    assert_layouts(LAYOUTS);
}

/// Lets `init` write the loop and the workflow of a repository with these files, one of which is a workflow with these jobs; returns both.
pub(super) fn written(jobs: &str, files: &[(&str, &str)]) -> (String, String) {
    let ci = format!("on: push\njobs:\n{jobs}");
    let project = project(&[&[(".github/workflows/ci.yml", ci.as_str())], files].concat());
    project.run(&["init", "--ci", "github"]).code(0);
    (project.read(".loops/tidy.yaml"), project.read(".github/workflows/ll-loop.yml"))
}

/// Does the same, and returns the workflow alone.
pub(super) fn workflow_of(jobs: &str, files: &[(&str, &str)]) -> String {
    written(jobs, files).1
}

#[track_caller]
pub(super) fn assert_has(text: &str, parts: &[&str], others: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    for other in others {
        assert!(!text.contains(other), "{other} in\n{text}");
    }
}

/// Lets `init` find the checks of each layout, and writes them to a loop that is right.
pub(super) fn assert_layouts(layouts: &[Layout]) {
    for (name, files, expected) in layouts {
        let project = project(files);
        let begun = begun(&project, &[]);
        let states = begun["loops"][0]["states"].as_array().unwrap();
        let text = project.read(".loops/tidy.yaml");
        let seen: Vec<_> = states
            .iter()
            .map(|state| (state["name"].as_str().unwrap(), state["command"].as_str().unwrap()))
            .collect();
        assert_eq!(
            seen,
            expected.iter().map(|(name, command, ..)| (*name, *command)).collect::<Vec<_>>(),
            "{name}"
        );
        for (state, _, evidence, fix) in *expected {
            assert!(text.contains(&format!("  # {evidence}\n  {state}:\n")), "{name}: {evidence} in\n{text}");
            let has_fix = text.contains(&format!("\n  fix_{state}:\n"));
            assert_eq!(has_fix, !fix.is_empty(), "{name}: the fix of {state} in\n{text}");
            assert!(fix.is_empty() || text.contains(fix), "{name}: {fix} in\n{text}");
        }
        let valid = project.run(&["validate", "--deep", "--strict"]).code(0);
        assert!(!valid.all().contains("warning"), "{name}: {}", valid.all());
        assert_eq!(begun["files"][1]["path"], ".github/workflows/ll-loop.yml", "{name}");
        assert_eq!(self::begun(&project, &[])["files"][0]["action"], "unchanged", "{name}");
    }
}

#[test]
fn packages_with_equal_commands_share_a_loop() {
    let package = "{\"scripts\": {\"lint\": \"eslint .\", \"test\": \"vitest run\"}, \"devDependencies\": {\"vitest\": \"*\"}}";
    let names: Vec<String> = (0..400).map(|at| format!("packages/p {at:03}/package.json")).collect();
    let mut files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), package)).collect();
    files.extend([
        ("services/api/go.mod", "module api\n"),
        ("services/api/x_test.go", "package api\n"),
        ("services/$x/go.mod", "module x\n"),
        ("package.json", "{\"workspaces\": [\"packages/*\"]}"),
    ]);
    let project = project(&files);
    let begun = begun(&project, &[]);
    let names: Vec<&str> =
        begun["loops"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tidy", "services/api/tidy"]);
    let text = project.read(".loops/tidy.yaml");
    assert!(text.contains("      cd \"$LL_PATH\" && npm run lint\n"), "{text}");
    assert_eq!(begun["left_out"][0]["package"], "services/$x", "{begun}");
    project.run(&["validate", "--deep", "--strict"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    assert!(
        workflow.contains("per-path: \"packages/*\"") && !workflow.contains("packages/p 399"),
        "{workflow}"
    );
    // What a leg installs, it installs in each of its packages, which the plan names.
    assert!(workflow.contains("            (cd \"$package\" && npm install)\n"), "{workflow}");
    assert!(!workflow.contains("      - run: npm install"), "{workflow}");
    assert!(project.read(".loops/services/api/tidy.yaml").contains("# services/api/go.mod:1"));
}

#[test]
fn a_leg_finds_the_packages_that_the_plan_gives_it() {
    let package = "{\"scripts\": {\"test\": \"vitest run\"}, \"devDependencies\": {\"vitest\": \"*\"}}";
    let names: Vec<String> = (0..300).map(|at| format!("packages/p {at:03}/package.json")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), package)).collect();
    let project = project(&files);
    project.run(&["init"]).code(0);
    git(&project, &["add", "-A"]);
    git(&project, &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "loops"]);
    project.run(&["plan", "tidy", "--per-path", "packages/*", "--legs", "4"]).code(0);
    let workflow = project.read(".github/workflows/ll-loop.yml");
    let line = workflow.lines().find_map(|line| line.trim().strip_prefix("PATHS: \"")).unwrap();
    let filter = line.trim_end_matches('"');
    let mut found = std::collections::BTreeSet::new();
    for leg in ["l01", "l02", "l03", "l04"] {
        let jq = project.program("jq", &["-r", "--arg", "leg", leg, filter, "plan.json"]).output().unwrap();
        let paths = String::from_utf8(jq.stdout).unwrap();
        assert!(paths.lines().count() > 50, "{leg}: {paths}");
        found.extend(paths.lines().map(str::to_owned));
    }
    assert_eq!(found.len(), 300, "{found:?}");
}

#[test]
fn what_another_machine_checks_is_not_written_for_linux() {
    let swift = |job: &str| {
        let workflow = format!("on: push\njobs:\n{job}");
        let project = project(&[
            ("Package.swift", "// swift-tools-version:6.0\n"),
            ("Tests/XTests/x.swift", "import XCTest\n"),
            (".github/workflows/ci.yml", &workflow),
        ]);
        begun(&project, &[]);
        project.read(".github/workflows/ll-loop.yml")
    };
    let job = |name: &str, label: &str| {
        format!(
            "  {name}:\n    runs-on: {label}\n    steps:\n      - uses: actions/checkout@v4\n      - run: swift test\n"
        )
    };
    assert!(swift(&job("mac", "macos-15")).contains("    runs-on: macos-15\n"));
    let both = job("mac", "macos-15") + &job("linux", "ubuntu-latest");
    assert!(swift(&both).contains("    runs-on: ubuntu-24.04\n"));
}

#[test]
fn nothing_is_overwritten_and_nothing_is_written_by_halves() {
    let project = project(&[("Makefile", "test:\n\ttrue\n"), (".github/workflows/ll-loop.yml", "mine\n")]);
    let ran = project.run(&["init"]).code(2);
    assert!(ran.stderr.contains("-mine") && ran.stderr.contains("`--force`"), "{}", ran.stderr);
    assert!(!project.exists(".loops/tidy.yaml"));
    project.write(".loops/other.yaml", "mine\n");
    project.run(&["init", "--force"]).code(0);
    assert_eq!(project.read(".loops/other.yaml"), "mine\n");
    assert!(project.read(".github/workflows/ll-loop.yml").contains("loop: tidy"));
}

#[test]
fn where_nothing_is_found_nothing_is_written() {
    let project = project(&[("notes.txt", "x\n")]);
    let ran = project.run(&["init"]).code(2);
    assert!(
        ran.stderr.contains("nothing here says") && ran.stderr.contains("ll-loop catalog"),
        "{}",
        ran.stderr
    );
    assert!(!project.exists(".loops/tidy.yaml") && !project.exists(".github"));
    // What cannot be read says nothing, and that is said.
    project.write("package.json", "{ broken");
    assert!(project.run(&["init"]).code(2).stderr.contains("package.json is not valid JSON"));
}

#[test]
fn a_tool_that_is_only_configured_is_offered_and_never_added() {
    let project = project(&[
        ("package.json", "{\"scripts\": {\"test\": \"true\"}}"),
        (".prettierrc", "{}"),
        ("eslint.config.js", ""),
    ]);
    begun(&project, &[]);
    let text = project.read(".loops/tidy.yaml");
    assert!(!text.contains("\n  lint:") && !text.contains("\n  format:"), "{text}");
    let offered = "# Not added, because only its configuration is there:\n";
    let command = "#   npx --no-install prettier --check . # .prettierrc:1\n";
    assert!(text.contains(offered) && text.contains(command), "{text}");
}

#[test]
fn what_is_offered_looks_at_files_and_says_what_speaks_for_it() {
    let project = project(&[
        (".clang-format", "x\n"),
        ("CMakeLists.txt", "option(X_TESTS \"x\" OFF)\nif(X_TESTS)\n  enable_testing()\nendif()\n"),
        ("Makefile", "lint:\n\tx\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: git ls-files '*.h' | xargs clang-format-20 -i\n",
        ),
    ]);
    begun(&project, &[]);
    let text = project.read(".loops/tidy.yaml");
    for offered in [
        "# Not added, because a workflow names it, in no line that is a check by itself:\n#   git ls-files -z '*.c' '*.cc' '*.cpp' '*.h' '*.hpp' | xargs -0 -r clang-format --dry-run --Werror # .clang-format:1\n",
        "# Not added, because its tests are off by default, and no workflow is known to switch them on:\n#   build=$(mktemp -d) && cmake -S . -B \"$build\" -DX_TESTS=ON && ",
    ] {
        assert!(text.contains(offered), "{offered} in\n{text}");
    }
    assert!(!text.contains("\n  test:"), "{text}");
}

#[test]
fn what_a_script_of_the_repository_calls_is_not_offered() {
    let project = project(&[
        ("scripts/check", "#!/bin/sh\nset -x\n${PREFIX}ruff check src\n"),
        (
            "pyproject.toml",
            "[tool.ruff]\n[tool.mypy]\n[tool.black]\n[tool.hatch.envs.style.scripts]\ncheck = \"black --check .\"\n",
        ),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: scripts/check\n",
        ),
    ]);
    let begun = begun(&project, &[]);
    let offered = begun["loops"][0]["offered"].as_array().unwrap();
    let commands: Vec<&str> = offered.iter().filter_map(|one| one["command"].as_str()).collect();
    assert_eq!(commands, ["mypy ."]);
}

#[test]
fn a_check_is_tried_in_a_copy() {
    let project = project(&[(
        "Makefile",
        "lint:\n\t@echo warned >&2; echo looked; grep -q tidy notes\nfix:\n\techo tidy >> notes\nfmt-check:\n\techo changed >> notes\ntest:\n\tno-such-program-anywhere\n",
    )]);
    let project = project.file("notes", "x\n");
    git(&project, &["add", "-A"]);
    let ran = project.run(&["init", "--json", "--try"]).code(4);
    let begun: Value = serde_json::from_str(&ran.stdout).unwrap();
    let tried: Vec<&Value> =
        begun["loops"][0]["states"].as_array().unwrap().iter().map(|state| &state["tried"]).collect();
    assert_eq!(tried[0]["exit"], 2, "make has its own code for what failed");
    assert_eq!(tried[0]["last"].as_array().map(Vec::len), Some(3), "both streams: {}", tried[0]["last"]);
    assert!(tried[1]["reason"].as_str().unwrap().contains("it changed notes"), "{tried:?}");
    assert!(tried[2]["reason"].as_str().unwrap().contains("could not run"), "{tried:?}");
    assert_eq!(begun["not_checked"], serde_json::json!(["test"]));
    for line in ["trying lint: make lint", "lint: failed with exit code 2 in ", "tried all checks in "] {
        assert!(ran.stderr.contains(line), "{line} in {}", ran.stderr);
    }
    assert_eq!(project.read("notes"), "x\n", "the repository is not touched");
    let text = project.read(".loops/tidy.yaml");
    assert!(text.contains("  # Makefile:1 (lint); it failed on the tree that init saw\n"), "{text}");
    assert!(!text.contains("fix_lint"), "what fails before anybody changed anything is not mended: {text}");
    assert!(text.contains("\n  test:\n"), "what could not run stays: {text}");
    assert!(text.contains("# No check, because it changed notes"), "{text}");
    project.run(&["validate", "--deep", "--strict"]).code(0);
    project.run(&["run", "tidy"]).code(1);
    project.write("notes", "tidy\n");
    project.run(&["run", "tidy"]).code(4);
    project.write("notes", "x\n");
    let again = project.run(&["init", "--try"]).code(4);
    assert!(again.stdout.contains("unchanged .loops/tidy.yaml"), "{}", again.stdout);
    assert!(again.stdout.contains("NOT CHECKED: test could not run"), "{}", again.stdout);
    assert!(
        project.run(&["init", "--try", "--mend", "--force"]).code(4).stdout.contains("fixed by make fix")
    );
}

#[test]
fn the_same_command_is_tried_in_each_group_of_packages() {
    let project = project(&[
        ("a/package.json", "{}\n"),
        ("a/Makefile", "test:\n\t@true\n"),
        ("b/package.json", "{}\n"),
        ("b/Makefile", "lint:\n\t@true\ntest:\n\t@false\n"),
    ]);
    git(&project, &["add", "-A"]);
    let ran = project.run(&["init", "--json", "--try"]).code(0);
    let begun: Value = serde_json::from_str(&ran.stdout).unwrap();
    let exits = |at: usize| {
        let states = begun["loops"][at]["states"].as_array().unwrap();
        states.iter().map(|state| state["tried"]["exit"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((exits(0), exits(1)), (vec![0], vec![0, 2]), "{begun}");
}

#[test]
fn where_no_toolchain_is_installed_what_is_missing_is_named_once() {
    let project = project(&[
        ("composer.json", "{\"scripts\": {\"lint\": \"x\", \"test\": \"y\"}}"),
        ("few/README", ""),
    ]);
    for name in ["bash", "sh", "git"] {
        let places = ["/usr/local/bin", "/usr/bin", "/bin"].map(|at| std::path::Path::new(at).join(name));
        let there = places.into_iter().find(|file| file.exists()).unwrap();
        std::os::unix::fs::symlink(there, project.at(&format!("few/{name}"))).unwrap();
    }
    let ran = project.command(&["init", "--try"]).env("PATH", project.at("few")).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert_eq!(ran.status.code(), Some(4), "{said}");
    for part in [
        "NOT CHECKED: lint, test could not run: ",
        "  install `composer`, or put it on PATH\n",
        "next: install what is missing, and try again: `ll-loop init --try --force`\n",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    let make = self::project(&[("Makefile", "test:\n\t@gotest-not-here ./...\n")]);
    let said = make.run(&["init", "--try"]).code(4).stdout;
    assert!(said.contains("install `gotest-not-here`, or put it on PATH"), "{said}");
    let maven = self::project(&[
        ("pom.xml", "<project/>"),
        ("src/test/XTest.java", "x"),
        (
            "mvnw",
            "#!/bin/sh\necho 'The java/javac command does not exist in PATH nor is JAVA_HOME set'; exit 1\n",
        ),
    ]);
    std::fs::set_permissions(maven.at("mvnw"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    maven.run(&["init", "--try"]).code(4);
}

#[test]
fn what_git_ignores_is_no_change_and_a_format_is_added_where_it_holds() {
    let project = project(&[
        ("package.json", "{\"scripts\": {\"test\": \"echo run >> log.egg-info\"}}"),
        (".gitignore", "*.egg-info\n"),
        ("log.egg-info", "x\n"),
    ]);
    let begun = begun(&project, &["--try"]);
    assert_eq!(begun["loops"][0]["states"][0]["tried"]["exit"], 0, "{begun}");
}

#[test]
fn a_package_that_is_missing_is_no_finding_of_the_check() {
    let project = project(&[(
        "Makefile",
        "lint:\n\t@echo 'npm error npx canceled due to missing packages and no YES option: [\"eslint@9\"]'; exit 1\n",
    )]);
    let project = project.file("package.json", "{}").file("pnpm-lock.yaml", "");
    let ran = project.run(&["init", "--try"]).code(4);
    assert!(ran.stdout.contains("run `pnpm install` first"), "{}", ran.stdout);
    let ran = project.run(&["run", "tidy"]).code(4);
    assert!(ran.all().contains("it could not run: npm error npx canceled"), "{}", ran.all());
}

#[test]
fn a_workflow_is_made_of_what_the_repository_says() {
    let project = project(&[
        ("package.json", "{\"packageManager\": \"pnpm@9.1.0\", \"scripts\": {\"test\": \"true\"}}"),
        ("pnpm-lock.yaml", ""),
        (".nvmrc", "22\n"),
        ("requirements.txt", "x\n"),
    ]);
    begun(&project, &[]);
    let text = project.read(".github/workflows/ll-loop.yml");
    for part in [
        "permissions:\n  contents: read",
        "concurrency:",
        "timeout-minutes: 75",
        "node-version-file: .nvmrc",
        "- run: pnpm install --frozen-lockfile",
        "There is no release yet",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("pip"), "nothing of Python is called: {text}");
}

#[test]
fn a_workflow_installs_what_no_runner_has_and_what_a_workspace_has_once() {
    let project = project(&[
        ("package.json", "{\"packageManager\": \"pnpm@9.1.0\", \"scripts\": {\"lint\": \"true\"}}"),
        ("pnpm-lock.yaml", ""),
        ("docs/package.json", "{\"scripts\": {\"test\": \"true\"}}"),
        ("Cargo.toml", "[package]\n"),
        ("test/requirements.txt", "pytest\n"),
        ("test/test_x.py", "x\n"),
        (
            ".github/workflows/ci.yml",
            "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pnpm i\n      - run: pnpm lint\n      - run: cargo deny check\n      - uses: DavidAnson/markdownlint-cli2-action@v1\n      - run: pnpm build\n        working-directory: docs\n",
        ),
    ]);
    begun(&project, &[]);
    let text = project.read(".github/workflows/ll-loop.yml");
    for part in [
        "uses: pnpm/action-setup",
        "- run: pnpm i\n",
        "- run: cargo install cargo-deny --locked\n",
        "- run: npm install --global markdownlint-cli2 # zizmor: ignore[adhoc-packages]\n",
        "- run: python -m pip install -r test/requirements.txt\n",
    ] {
        assert_eq!(text.matches(part).count(), 1, "{part} in\n{text}");
    }
    assert!(!text.contains("working-directory: docs"), "the workspace has one lock file: {text}");
}

#[test]
fn no_name_of_a_task_leaves_its_place() {
    let hostile = "{\"scripts\": {\"lint\": \"true\", \"lint:$(touch pwned)\": \"x\", \"test\\n- run: evil\": \"x\", \"test:${{ github.token }}\": \"x\", \"test:${context.x}\": \"x\", \"test:\\u202e\": \"x\"}}";
    let project = project(&[
        ("package.json", hostile),
        ("packages/$(touch pwned)/go.mod", "module x\n"),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: cargo test ${{ inputs.x }}\n      - run: cargo test; touch pwned\n",
        ),
    ]);
    let begun = begun(&project, &["--try"]);
    assert_eq!(begun["loops"][0]["states"].as_array().map(Vec::len), Some(1), "{begun}");
    // What is left out is named in a comment.
    let texts = [".loops/tidy.yaml", ".github/workflows/ll-loop.yml"].map(|file| project.read(file));
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'));
    let all = lines.collect::<Vec<_>>().join("\n");
    for text in ["pwned", "evil", "github.token", "context.x", "\u{202e}"] {
        assert!(!all.contains(text), "{text} in\n{all}");
    }
    assert!(!project.exists("pwned"));
}

#[test]
fn a_workflow_is_written_for_the_system_that_is_there() {
    let project =
        project(&[("Makefile", "test:\n\ttrue\n"), (".gitlab-ci.yml", "x: {script: [make build]}\n")]);
    assert_eq!(begun(&project, &[])["files"][1]["path"], ".gitlab/ll-loop.gitlab-ci.yml");
    assert!(project.run(&["init"]).code(0).stdout.contains("- local: .gitlab/ll-loop.gitlab-ci.yml"));
    assert!(project.read(".gitlab/ll-loop.gitlab-ci.yml").contains("ll-loop run tidy --ci"));
    let alone = self::project(&[("Makefile", "test:\n\ttrue\n")]);
    assert_eq!(begun(&alone, &["--ci", "none"])["files"].as_array().map(Vec::len), Some(3));
    assert_eq!(begun(&alone, &["--ci", "gitlab"])["files"][1]["path"], ".gitlab-ci.yml");
    // What it has written itself says nothing of how the repository is checked.
    for _ in 0..2 {
        alone.run(&["init", "--ci", "gitlab"]).code(0);
    }
}

#[test]
fn a_task_that_fails_is_a_no_though_its_code_is_beyond_those_of_others() {
    let project = project(&[("Taskfile.yml", "tasks:\n  lint: x\n"), ("bin/task", "#!/bin/sh\nexit 201\n")]);
    std::fs::set_permissions(project.at("bin/task"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    begun(&project, &["--ci", "none"]);
    assert!(project.read(".loops/tidy.yaml").contains("\"no\": [1-125, 201]"));
    let path = format!("{}:/usr/bin:/bin", project.at("bin").display());
    let ran = project.command(&["run", "tidy"]).env("PATH", path).output().unwrap();
    assert_eq!(ran.status.code(), Some(1), "{ran:?}");
}

#[test]
fn an_image_without_python_gets_what_installs_its_tools() {
    let ci = (
        ".github/workflows/ci.yml",
        "on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n      - run: typos\n",
    );
    let of = |files: &[(&str, &str)]| {
        let project = project(files);
        begun(&project, &["--ci", "gitlab"]);
        project.read(".gitlab-ci.yml")
    };
    let rust = of(&[ci, ("Cargo.toml", "[package]\n"), ("src/lib.rs", "#[test]\nfn x() {}\n")]);
    assert!(
        rust.contains("apt-get install -qq --yes pipx;") && rust.contains("- pipx install typos"),
        "{rust}"
    );
    let python = of(&[ci, ("pyproject.toml", "[tool.pytest.ini_options]\n"), ("test_x.py", "x\n")]);
    assert!(!python.contains("pipx") && python.contains("- pip install typos"), "{python}");
}

#[test]
fn an_image_has_the_language_of_the_steps_and_what_a_runner_has_besides() {
    let of = |steps: &str, files: &[(&str, &str)]| {
        let ci = format!("on: push\njobs:\n  all:\n    runs-on: ubuntu-latest\n    steps:\n{steps}");
        let project = project(&[&[(".github/workflows/ci.yml", ci.as_str())], files].concat());
        begun(&project, &["--ci", "gitlab"]);
        project.read(".gitlab-ci.yml")
    };
    // A script says nothing of a language; what is installed for it does.
    let scripts = of(
        "      - uses: actions/setup-python@v5\n      - run: pip install -r requirements.txt\n      - run: scripts/check\n",
        &[("scripts/check", "#!/bin/sh\n"), ("requirements.txt", "x\n")],
    );
    assert!(scripts.contains("image: \"python:3\""), "{scripts}");
    let mix = of("      - run: mix format --check-formatted\n", &[("mix.exs", "x\n")]);
    assert!(mix.contains("elixir:1"), "{mix}");
    let native = of(
        "      - run: |\n          sudo apt-get update\n          sudo apt-get install doxygen\n      - run: cmake -B build\n      - run: ctest --test-dir build\n",
        &[("CMakeLists.txt", "enable_testing()\nadd_test(x x)\n")],
    );
    assert!(!native.contains("sudo") && native.contains("apt-get install --yes doxygen"), "{native}");
    assert!(native.contains("--yes cmake;"), "{native}");
}

#[test]
fn it_works_below_the_top_and_without_git_and_goes_through_no_link() {
    let project = project(&[("Makefile", "test:\n\ttrue\n"), ("src/deep/x", "")]);
    let ran =
        project.command(&["init", "--ci", "none"]).current_dir(project.at("src/deep")).output().unwrap();
    assert!(ran.status.success() && project.exists(".loops/tidy.yaml"));
    let bare = Project::new().file("Makefile", "test:\n\ttrue\n");
    bare.run(&["init", "--ci", "none"]).code(0);
    let linked = Project::new().file("Makefile", "test:\n\ttrue\n").file("elsewhere/x", "");
    std::fs::remove_dir_all(linked.at(".loops")).unwrap();
    std::os::unix::fs::symlink("elsewhere", linked.at(".loops")).unwrap();
    let ran = linked.run(&["init", "--ci", "none"]).code(2);
    assert!(ran.stderr.contains("is a link"), "{}", ran.stderr);
    assert!(!linked.exists("elsewhere/tidy.yaml"));
}

#[test]
fn files_of_runs_are_ignored_once_and_yaml_is_as_the_repository_writes_it() {
    let project = project(&[
        ("Makefile", "test:\n\ttrue\n"),
        (".prettierrc", "{\"tabWidth\": 4, \"singleQuote\": true}"),
        (".gitignore", "dist"),
        ("biome.json", "{}"),
        (".editorconfig", "root = true\n"),
    ]);
    assert_eq!(
        begun(&project, &[])["files"][3],
        serde_json::json!({"path": ".gitignore", "action": "extended"})
    );
    let ignored =
        "dist\n\n# Runs of ll-loop\n.loops/.running/\n.loops/.history/\n.loops/.worktrees/\n.loops/.reuse/\n";
    assert_eq!(project.read(".gitignore"), ignored);
    assert_eq!(begun(&project, &[])["files"][3]["action"], "unchanged");
    let text = project.read(".loops/tidy.yaml");
    assert!(
        text.contains("        evaluate:\n            type: exit_code\n            'no': nonzero\n"),
        "{text}"
    );
    project.run(&["validate", "--deep", "--strict"]).code(0);
    project.run(&["run", "tidy"]).code(0);
    for name in [".gitignore", ".editorconfig", "biome.json", ".markdownlint-cli2.jsonc"] {
        assert!(project.exists(&format!(".loops/.running/{name}")), "{name} keeps a tool out");
        assert!(project.exists(&format!(".loops/.history/{name}")), "{name} keeps a tool out");
    }
}
