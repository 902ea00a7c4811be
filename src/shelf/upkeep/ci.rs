//! What the workflows of a repository run already.

use Purpose::{Format, Lint, Test};

use super::repository::{Evidence, Finding, Purpose, Repository};
use super::yaml;
use crate::base::node::Node;

/// Commands that are known, by how they begin, and what else is in them; the first that fits counts.
const KNOWN: &[(&str, &str, Purpose, bool)] = &[
    ("cargo clippy", "--fix", Lint, true),
    ("cargo clippy", "", Lint, false),
    ("cargo fmt", "--check", Format, false),
    ("cargo nextest", "", Test, false),
    ("cargo test", "", Test, false),
    ("ruff check", "--fix", Lint, true),
    ("ruff check", "", Lint, false),
    ("ruff format", "--check", Format, false),
    ("ruff format", "--diff", Format, false),
    ("black", "--check", Format, false),
    ("mypy", "", Lint, false),
    ("pyright", "", Lint, false),
    ("flake8", "", Lint, false),
    ("pylint", "", Lint, false),
    ("pytest", "", Test, false),
    ("python -m pytest", "", Test, false),
    ("python -m unittest", "", Test, false),
    ("golangci-lint", "", Lint, false),
    ("go vet", "", Lint, false),
    ("staticcheck", "", Lint, false),
    ("go test", "", Test, false),
    ("eslint", "", Lint, false),
    ("npx eslint", "", Lint, false),
    ("npx tsc", "--noEmit", Lint, false),
    ("prettier", "--check", Format, false),
    ("npx prettier", "--check", Format, false),
    ("npm run lint", "", Lint, false),
    ("npm test", "", Test, false),
    ("npm run test", "", Test, false),
    ("pnpm lint", "", Lint, false),
    ("pnpm run lint", "", Lint, false),
    ("pnpm test", "", Test, false),
    ("yarn lint", "", Lint, false),
    ("yarn test", "", Test, false),
    ("make lint", "", Lint, false),
    ("make test", "", Test, false),
    ("just lint", "", Lint, false),
    ("just test", "", Test, false),
    ("tox", "", Test, false),
    ("nox", "", Test, false),
    ("bundle exec rubocop", "", Lint, false),
    ("bundle exec rspec", "", Test, false),
    ("bundle exec rake test", "", Test, false),
    ("vendor/bin/phpstan", "", Lint, false),
    ("vendor/bin/phpunit", "", Test, false),
    ("vendor/bin/php-cs-fixer", "--dry-run", Format, false),
    ("dotnet format", "--verify-no-changes", Format, false),
    ("dotnet test", "", Test, false),
    ("./gradlew check", "", Test, false),
    ("./gradlew test", "", Test, false),
    ("./mvnw", "verify", Test, false),
    ("./mvnw", "test", Test, false),
    ("mvn", "verify", Test, false),
    ("mvn", "test", Test, false),
    ("ctest", "", Test, false),
    ("terraform fmt", "-check", Format, false),
    ("terraform validate", "", Lint, false),
    ("tflint", "", Lint, false),
    ("markdownlint", "", Lint, false),
    ("npx markdownlint", "", Lint, false),
    ("shellcheck", "", Lint, false),
    ("yamllint", "", Lint, false),
    ("pre-commit run", "--all-files", Lint, false),
];

/// How other programs begin a command; what they call is behind it.
const CALLERS: [&str; 4] = ["uv run ", "poetry run ", "pdm run ", "pipenv run "];

/// Returns what the workflows run, each command once.
pub(super) fn run(repository: &Repository) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for path in repository.paths().filter(|path| is_workflow(path)) {
        let Some(text) = repository.text(path) else { continue };
        let Some(root) = yaml::parse(text) else { continue };
        for (script, byte) in scripts(&root) {
            // A block begins on the line behind its sign.
            let is_block = text.get(byte..).is_some_and(|rest| rest.starts_with(['|', '>']));
            let first = yaml::line(text, byte) + usize::from(is_block);
            for (at, line) in script.lines().enumerate() {
                let evidence = Evidence { file: path.to_owned(), line: first + at, task: None };
                let known = of_line(line.trim()).map(|(purpose, is_fix, command)| Finding {
                    purpose: Some(purpose),
                    is_fix,
                    command,
                    evidence,
                });
                found.extend(known.filter(|one| found.iter().all(|other| other.command != one.command)));
            }
        }
    }
    found
}

fn is_workflow(path: &str) -> bool {
    let ending = path.rsplit('.').next();
    path == ".gitlab-ci.yml"
        || (path.starts_with(".github/workflows/") && matches!(ending, Some("yml" | "yaml")))
}

/// Returns the scripts of all jobs, with the places where they stand.
fn scripts(root: &Node) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut add = |node: Option<&Node>| {
        let texts = yaml::items(node).iter().chain(node);
        found.extend(
            texts.filter_map(|node| Some((yaml::text(Some(node))?.to_owned(), node.span.range.start))),
        );
    };
    for job in yaml::entries(root.get("jobs")) {
        for step in yaml::items(job.value.get("steps")) {
            add(step.get("run"));
        }
    }
    // Of GitLab, every key may be a job.
    for job in yaml::entries(Some(root)) {
        add(job.value.get("script"));
    }
    found
}

/// Returns what a line is, if it is one command that is known, and needs nothing of the job around it.
fn of_line(line: &str) -> Option<(Purpose, bool, String)> {
    let is_plain = !line.contains(['$', '|', ';', '&', '>', '<', '\\', '`', '#', '"', '\'', '(']);
    if !is_plain || line.len() > 200 || line.contains("--watch") {
        return None;
    }
    let called = CALLERS.into_iter().find_map(|caller| line.strip_prefix(caller)).unwrap_or(line);
    let begins =
        |begin: &str| called.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    let known = KNOWN.iter().find(|(begin, with, ..)| begins(begin) && called.contains(with));
    known.map(|(_, _, purpose, is_fix)| (*purpose, *is_fix, line.to_owned()))
}
