//! The tools whose configuration lies in a repository, and what a language's own toolchain checks.

use Purpose::{Format, Lint, Test};

use super::repository::{Evidence, Finding, Purpose, Repository, line_of};
use super::tasks::python;

/// What a command is about, whether it is a fix, and the command.
type Asked = (Purpose, bool, &'static str);

/// How the programs of a language are called.
#[derive(Clone, Copy)]
enum Caller {
    Itself,
    Python,
    Node,
}

/// A tool: the files that configure it, or a section of a file; what it is called for.
struct Tool {
    files: &'static [&'static str],
    section: Option<(&'static str, &'static str)>,
    caller: Caller,
    checks: &'static [Asked],
}

const fn tool(
    files: &'static [&'static str],
    section: Option<(&'static str, &'static str)>,
    caller: Caller,
    checks: &'static [Asked],
) -> Tool {
    Tool { files, section, caller, checks }
}

/// Every tool that is known.
const TOOLS: &[Tool] = &[
    tool(
        &["clippy.toml", ".clippy.toml"],
        Some(("Cargo.toml", "[lints.clippy]")),
        Caller::Itself,
        &[
            (Lint, false, "cargo clippy --all-targets -- -D warnings"),
            (Lint, true, "cargo clippy --all-targets --fix --allow-dirty --allow-staged"),
        ],
    ),
    tool(
        &["ruff.toml", ".ruff.toml"],
        Some(("pyproject.toml", "[tool.ruff")),
        Caller::Python,
        &[(Lint, false, "ruff check"), (Lint, true, "ruff check --fix")],
    ),
    tool(
        &[],
        Some(("pyproject.toml", "[tool.ruff.format]")),
        Caller::Python,
        &[(Format, false, "ruff format --check"), (Format, true, "ruff format")],
    ),
    tool(
        &[],
        Some(("pyproject.toml", "[tool.black]")),
        Caller::Python,
        &[(Format, false, "black --check ."), (Format, true, "black .")],
    ),
    tool(&[".flake8"], Some(("setup.cfg", "[flake8]")), Caller::Python, &[(Lint, false, "flake8")]),
    tool(
        &["mypy.ini", ".mypy.ini"],
        Some(("pyproject.toml", "[tool.mypy]")),
        Caller::Python,
        &[(Lint, false, "mypy .")],
    ),
    tool(
        &["pyrightconfig.json"],
        Some(("pyproject.toml", "[tool.pyright]")),
        Caller::Python,
        &[(Lint, false, "pyright")],
    ),
    tool(
        &["pytest.ini", "conftest.py", "tests/conftest.py"],
        Some(("pyproject.toml", "[tool.pytest")),
        Caller::Python,
        &[(Test, false, "pytest")],
    ),
    tool(
        &[
            "eslint.config.js",
            "eslint.config.mjs",
            "eslint.config.cjs",
            "eslint.config.ts",
            ".eslintrc.json",
            ".eslintrc.js",
            ".eslintrc.cjs",
            ".eslintrc.yml",
        ],
        Some(("package.json", "\"eslintConfig\"")),
        Caller::Node,
        &[(Lint, false, "eslint ."), (Lint, true, "eslint --fix .")],
    ),
    tool(
        &["biome.json", "biome.jsonc"],
        None,
        Caller::Node,
        &[(Lint, false, "biome check ."), (Lint, true, "biome check --write .")],
    ),
    tool(
        &[
            ".prettierrc",
            ".prettierrc.json",
            ".prettierrc.yml",
            ".prettierrc.yaml",
            ".prettierrc.js",
            "prettier.config.js",
            "prettier.config.mjs",
        ],
        Some(("package.json", "\"prettier\"")),
        Caller::Node,
        &[(Format, false, "prettier --check ."), (Format, true, "prettier --write .")],
    ),
    tool(&["tsconfig.json"], None, Caller::Node, &[(Lint, false, "tsc --noEmit")]),
    tool(
        &[".markdownlint.json", ".markdownlint.yaml", ".markdownlint.yml"],
        None,
        Caller::Node,
        &[(Lint, false, "markdownlint ."), (Lint, true, "markdownlint --fix .")],
    ),
    tool(
        &[".markdownlint-cli2.yaml", ".markdownlint-cli2.jsonc"],
        None,
        Caller::Node,
        &[(Lint, false, "markdownlint-cli2"), (Lint, true, "markdownlint-cli2 --fix")],
    ),
    tool(
        &[".golangci.yml", ".golangci.yaml", ".golangci.toml"],
        None,
        Caller::Itself,
        &[(Lint, false, "golangci-lint run"), (Lint, true, "golangci-lint run --fix")],
    ),
    tool(
        &[".rubocop.yml"],
        None,
        Caller::Itself,
        &[(Lint, false, "bundle exec rubocop"), (Lint, true, "bundle exec rubocop --autocorrect")],
    ),
    tool(&[".rspec"], None, Caller::Itself, &[(Test, false, "bundle exec rspec")]),
    tool(
        &["phpstan.neon", "phpstan.neon.dist"],
        None,
        Caller::Itself,
        &[(Lint, false, "vendor/bin/phpstan analyse")],
    ),
    tool(
        &[".php-cs-fixer.php", ".php-cs-fixer.dist.php"],
        None,
        Caller::Itself,
        &[
            (Format, false, "vendor/bin/php-cs-fixer fix --dry-run"),
            (Format, true, "vendor/bin/php-cs-fixer fix"),
        ],
    ),
    tool(&["phpunit.xml", "phpunit.xml.dist"], None, Caller::Itself, &[(Test, false, "vendor/bin/phpunit")]),
    tool(&[".tflint.hcl"], None, Caller::Itself, &[(Lint, false, "tflint")]),
    tool(
        &[".yamllint", ".yamllint.yml", ".yamllint.yaml"],
        None,
        Caller::Itself,
        &[(Lint, false, "yamllint .")],
    ),
];

/// Returns what configured tools check, each with the fix that it has for that.
pub(super) fn configured(repository: &Repository) -> Vec<Finding> {
    TOOLS
        .iter()
        .filter_map(|tool| Some((tool, tool.evidence(repository)?)))
        .flat_map(|(tool, evidence)| tool.findings(repository, &evidence))
        .collect()
}

impl Tool {
    fn evidence(&self, repository: &Repository) -> Option<Evidence> {
        if let Some(file) = repository.first(self.files) {
            return Some(Evidence { file: file.to_owned(), line: 1, task: None });
        }
        let (file, sign) = self.section?;
        let text = repository.text(file)?;
        let has = |line: &str| line.trim_start().starts_with(sign);
        text.lines().any(has).then(|| Evidence {
            file: file.to_owned(),
            line: line_of(text, has),
            task: None,
        })
    }

    fn findings(&self, repository: &Repository, evidence: &Evidence) -> Vec<Finding> {
        let before = match self.caller {
            Caller::Itself => "",
            Caller::Python => python(repository),
            Caller::Node => "npx --no-install ",
        };
        let finding = |(purpose, is_fix, command): &Asked| Finding {
            purpose: Some(*purpose),
            is_fix: *is_fix,
            command: format!("{before}{command}"),
            evidence: evidence.clone(),
        };
        self.checks.iter().map(finding).collect()
    }
}

/// A toolchain: the file that says that it is used, and its own checks.
const TOOLCHAINS: &[(&str, &[Asked])] = &[
    (
        "Cargo.toml",
        &[(Format, false, "cargo fmt --check"), (Format, true, "cargo fmt"), (Test, false, "cargo test")],
    ),
    (
        "go.mod",
        &[
            (Format, false, "test -z \"$(gofmt -l .)\""),
            (Format, true, "gofmt -w ."),
            (Test, false, "go test ./..."),
        ],
    ),
    (
        "CMakeLists.txt",
        &[(
            Test,
            false,
            "cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure",
        )],
    ),
];

/// Returns what the toolchains check whose files are there.
pub(super) fn of_toolchains(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |file: &str, checks: &[Asked]| {
        let evidence = Evidence { file: file.to_owned(), line: 1, task: None };
        findings.extend(checks.iter().map(|(purpose, is_fix, command)| Finding {
            purpose: Some(*purpose),
            is_fix: *is_fix,
            command: (*command).to_owned(),
            evidence: evidence.clone(),
        }));
    };
    for (file, checks) in TOOLCHAINS {
        if repository.has(file) {
            add(file, checks);
        }
    }
    let ends =
        |end: &str| repository.paths().find(|path| path.ends_with(end) && path.matches('/').count() < 2);
    if let Some(file) = ends(".sln").or_else(|| ends(".slnx")).or_else(|| ends(".csproj")) {
        add(
            file,
            &[
                (Format, false, "dotnet format --verify-no-changes"),
                (Format, true, "dotnet format"),
                (Test, false, "dotnet test"),
            ],
        );
    }
    if let Some(file) = ends(".tf") {
        add(
            file,
            &[(Format, false, "terraform fmt -check -recursive"), (Format, true, "terraform fmt -recursive")],
        );
    }
    // Its test runner is part of the language, but only where there are tests for it.
    let is_test = |path: &&str| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with("test_") && name.rsplit('.').next() == Some("py"))
    };
    if let Some(file) = repository.paths().find(is_test) {
        let uses_it = repository.text(file).is_some_and(|text| text.contains("unittest"));
        let command = if uses_it { "python -m unittest discover" } else { "python -m pytest" };
        let is_known = uses_it
            || repository.paths().any(|path| {
                repository
                    .text(path)
                    .is_some_and(|text| path.rsplit('.').next() == Some("txt") && text.contains("pytest"))
            });
        if is_known {
            add(file, &[(Test, false, command)]);
        }
    }
    findings
}
