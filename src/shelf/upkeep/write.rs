//! Writes what was planned: the loop, and the workflow that runs it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::plan::{Check, Plan};
use super::repository::{Evidence, Finding, Repository};
use super::tasks::package_manager;
use crate::base::text::one_line;
use crate::base::time::human;

/// What became of a check that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// It ran.
    Ran {
        /// Its exit code.
        exit: i32,
        /// How long it took.
        took: Duration,
    },
    /// It could not run, or is no check; why.
    Not(String),
}

/// What became of each command that was tried.
pub type Trials = BTreeMap<String, Tried>;

/// Where editors find the schema.
const MODELINE: &str = "# yaml-language-server: $schema=https://raw.githubusercontent.com/little-loops/ll-loop/v1/schema/loop.schema.json";

/// Writes a loop. With `packages`, it checks one directory, which its parameter names.
pub fn loop_text(name: &str, plan: &Plan, packages: &[String], trials: &Trials) -> String {
    let could_run = |check: &&Check| !matches!(trials.get(&check.finding.command), Some(Tried::Not(_)));
    let checks: Vec<&Check> = plan.checks.iter().filter(could_run).collect();
    let words: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let mut out = format!("{MODELINE}\nname: {}\n", quoted(name));
    let _ = writeln!(
        out,
        "description: {}",
        quoted(&format!("checks what this repository checks: {}", words.join(", ")))
    );
    let _ =
        writeln!(out, "initial: {}\ntimeout: 1h", checks.first().map_or("done", |check| check.name.as_str()));
    if let [first, ..] = packages {
        let _ = writeln!(
            out,
            "parameters:\n  path: {{type: string, required: true, description: {}}}\nenv: {{LL_PATH: \"${{context.path}}\"}}",
            quoted(&format!("the package, such as {first}"))
        );
    }
    out.push_str("states:\n");
    for (at, check) in checks.iter().enumerate() {
        let next = checks.get(at + 1).map_or("done", |next| next.name.as_str());
        state(&mut out, check, next, !packages.is_empty(), trials.get(&check.finding.command));
    }
    out.push_str("  done: {terminal: true}\n");
    out.push_str("  failed:\n    terminal: true\n    outcome: failure\n    description: a check fails, and what mends it could not; what it printed stands above\n");
    for check in plan.checks.iter().filter(|check| !could_run(check)) {
        let Some(Tried::Not(why)) = trials.get(&check.finding.command) else { continue };
        let _ = writeln!(
            out,
            "# Not a state, {}: {}  # {}",
            one_line(why, 200),
            one_line(&check.finding.command, 200),
            source(&check.finding.evidence)
        );
    }
    out
}

fn state(out: &mut String, check: &Check, next: &str, has_packages: bool, tried: Option<&Tried>) {
    let ran = match tried {
        Some(Tried::Ran { exit, took }) => format!("; ran, exit {exit}, {}", human(*took)),
        Some(Tried::Not(_)) | None => String::new(),
    };
    let action = |finding: &Finding| {
        let command = &finding.command;
        quoted(&if has_packages { format!("cd \"$LL_PATH\" && {command}") } else { command.clone() })
    };
    let name = &check.name;
    let judged = "    evaluate: {type: exit_code, \"no\": nonzero}\n";
    let on_no = if check.fix.is_some() { format!("fix_{name}") } else { "failed".to_owned() };
    let _ = write!(
        out,
        "  # {}{ran}\n  {name}:\n    action: {}\n{judged}    on_yes: {next}\n    on_no: {on_no}\n",
        source(&check.finding.evidence),
        action(&check.finding)
    );
    let Some(fix) = &check.fix else { return };
    // Whatever a fix exits with, the check judges what it did.
    let _ = write!(
        out,
        "  # {}\n  fix_{name}:\n    action: {}\n{judged}    on_yes: {name}_again\n    on_no: {name}_again\n",
        source(&fix.evidence),
        action(fix)
    );
    let _ = write!(
        out,
        "  {name}_again:\n    action: {}\n{judged}    on_yes: {next}\n    on_no: failed\n",
        action(&check.finding)
    );
}

/// Says where a command was found.
pub fn source(evidence: &Evidence) -> String {
    let task = evidence.task.as_ref().map(|task| format!(" ({})", one_line(task, 80))).unwrap_or_default();
    format!("{}:{}{task}", one_line(&evidence.file, 200), evidence.line)
}

/// Writes a text so that YAML reads it as it is.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ./_-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.');
    let is_word = !matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off");
    if begins && is_word && text.chars().all(is_plain) && !text.ends_with(' ') {
        return text.to_owned();
    }
    Value::from(text).to_string()
}

/// The CI system that a workflow is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ci {
    /// GitHub Actions.
    Github,
    /// GitLab.
    Gitlab,
}

/// The checkout action, by its commit.
const CHECKOUT: &str = "actions/checkout@d23441a48e516b6c34aea4fa41551a30e30af803 # v6.1.0";

/// Writes the workflow for some loops, each with the packages that it is run for.
pub fn workflow(
    ci: Ci,
    repository: &Repository,
    loops: &[(String, &Plan, Vec<String>)],
) -> (&'static str, String) {
    let plans: Vec<&Plan> = loops.iter().map(|(_, plan, _)| *plan).collect();
    let install = install(repository, &plans);
    match ci {
        Ci::Github => (".github/workflows/ll-loop.yml", github(&install, loops)),
        Ci::Gitlab if repository.has(".gitlab-ci.yml") => {
            (".gitlab/ll-loop.gitlab-ci.yml", gitlab(&install, loops))
        }
        Ci::Gitlab => (".gitlab-ci.yml", gitlab(&install, loops)),
    }
}

fn github(install: &[String], loops: &[(String, &Plan, Vec<String>)]) -> String {
    let action = option_env!("LL_LOOP_COMMIT").unwrap_or("v1");
    let mut out = "name: ll-loop\non:\n  pull_request:\n  push:\n    branches: [main, master]\npermissions:\n  contents: read\njobs:\n".to_owned();
    for (name, _, packages) in loops {
        let job: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let _ = write!(out, "  {job}:\n    runs-on: ubuntu-latest\n");
        if !packages.is_empty() {
            let list: Vec<String> =
                packages.iter().map(|path| Value::from(path.as_str()).to_string()).collect();
            let _ = write!(
                out,
                "    strategy:\n      fail-fast: false\n      matrix:\n        path: [{}]\n",
                list.join(", ")
            );
        }
        let _ = write!(
            out,
            "    steps:\n      - uses: {CHECKOUT}\n        with:\n          persist-credentials: false\n"
        );
        for command in install {
            let _ = writeln!(out, "      - run: {command}");
        }
        let _ = write!(
            out,
            "      - uses: little-loops/ll-loop@{action}\n        with:\n          loop: {}\n",
            quoted(name)
        );
        if !packages.is_empty() {
            out.push_str("          params: path=${{ matrix.path }}\n");
        }
    }
    out
}

fn gitlab(install: &[String], loops: &[(String, &Plan, Vec<String>)]) -> String {
    let mut out = String::new();
    for (name, _, packages) in loops {
        let _ = write!(out, "{}:\n  before_script:\n", quoted(&format!("ll-loop {name}")));
        for command in install {
            let _ = writeln!(out, "    - {command}");
        }
        out.push_str("    - curl --proto '=https' -fsSLO https://github.com/little-loops/ll-loop/releases/latest/download/install.sh\n    - sh install.sh --to .\n");
        out.push_str("  script:\n");
        if packages.is_empty() {
            let _ = writeln!(out, "    - ./ll-loop run {} --ci --report-dir ll-loop-report", quoted(name));
        } else {
            let _ = writeln!(
                out,
                "    - ./ll-loop run {} --ci --report-dir ll-loop-report --param \"path=$PACKAGE\"",
                quoted(name)
            );
            let list: Vec<String> =
                packages.iter().map(|path| Value::from(path.as_str()).to_string()).collect();
            let _ = write!(out, "  parallel:\n    matrix:\n      - PACKAGE: [{}]\n", list.join(", "));
        }
        out.push_str("  artifacts:\n    when: always\n    paths: [ll-loop-report]\n    reports:\n      junit: ll-loop-report/junit.xml\n");
    }
    out
}

/// Programs that a runner lacks, and what installs them.
const LACKING: &[(&str, &str)] = &[
    ("uv", "pipx install uv"),
    ("just", "pipx install rust-just"),
    ("task", "npm install --global @go-task/cli"),
    ("poetry", "pipx install poetry"),
    ("pdm", "pipx install pdm"),
    ("hatch", "pipx install hatch"),
    ("nox", "pipx install nox"),
    ("tox", "pipx install tox"),
    ("pre-commit", "pipx install pre-commit"),
    ("yamllint", "pipx install yamllint"),
    ("ruff", "pip install ruff"),
    ("black", "pip install black"),
    ("mypy", "pip install mypy"),
    ("flake8", "pip install flake8"),
    ("pytest", "pip install pytest"),
];

fn install(repository: &Repository, plans: &[&Plan]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let findings = || {
        plans
            .iter()
            .flat_map(|plan| &plan.checks)
            .flat_map(|check| [Some(&check.finding), check.fix.as_ref()])
            .flatten()
    };
    let calls = |program: &str| findings().any(|one| one.command.split_whitespace().next() == Some(program));
    for (program, command) in LACKING {
        if calls(program) {
            out.push((*command).to_owned());
        }
    }
    let has_any = |files: &[&str]| repository.first(files).is_some();
    let dependencies = [
        (has_any(&["uv.lock"]), "uv sync"),
        (has_any(&["poetry.lock"]), "poetry install"),
        (has_any(&["requirements.txt"]), "pip install -r requirements.txt"),
        (has_any(&["requirements-dev.txt"]), "pip install -r requirements-dev.txt"),
        (has_any(&["Gemfile"]), "bundle install"),
        (has_any(&["composer.json"]), "composer install --no-interaction"),
    ];
    out.extend(
        dependencies.into_iter().filter(|(is_there, _)| *is_there).map(|(_, command)| command.to_owned()),
    );
    if repository.has("package.json") {
        let command =
            match (package_manager(repository), has_any(&["package-lock.json", "npm-shrinkwrap.json"])) {
                ("pnpm", _) => "corepack enable && pnpm install --frozen-lockfile",
                ("yarn", _) => "corepack enable && yarn install --immutable",
                ("bun", _) => "npm install --global bun && bun install --frozen-lockfile",
                (_, true) => "npm ci",
                (_, false) => "npm install",
            };
        out.push(command.to_owned());
    }
    out
}
