//! Writes the jobs of GitLab that run the loops. They are the steps of the workflow in an image, which has one language, no
//! `sudo`, and less beside it than a runner of GitHub.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::chosen_commands::Plan;
use super::ci::CiContents;
use super::found_repository::Repository;
use super::loop_text::COMMIT;
use super::script_lines::without_assignments;
use super::setup::{SetUp, SetUpStep, UV, steps, unbound};
use super::workflow_loop::WorkflowLoop;
use super::yaml_style::quoted;
use crate::tools::recognise_line;

/// Writes a job for each loop.
pub(super) fn gitlab(repository: &Repository, contents: &CiContents, loops: &[WorkflowLoop<'_>]) -> String {
    let mut out = String::new();
    for one in loops {
        let (name, packages) = (&one.planned.name, &one.planned.packages);
        let steps = steps(repository, contents, one.settled, packages.first().map(String::as_str));
        let image = contents.image.clone().unwrap_or_else(|| image(one.settled, &steps).to_owned());
        let _ = write!(
            out,
            "{}:\n  image: {}\n  timeout: {} minutes\n  interruptible: true\n  before_script:\n",
            quoted(&format!("ll-loop {name}")),
            quoted(&image),
            one.minutes()
        );
        let mut missing = missing(&steps, &image);
        // The repository's own image has what its jobs call.
        if contents.image.is_none() {
            missing.extend(of_runners(one.settled, &steps));
        }
        if !missing.is_empty() {
            let _ = writeln!(
                out,
                "    - if command -v apt-get; then apt-get update -qq && apt-get install -qq --yes {0}; else apk add {0}; fi",
                missing.join(" ")
            );
        }
        // pipx puts programs into this folder, which images do not search.
        if missing.contains(&PIPX) {
            out.push_str("    - export PATH=\"$HOME/.local/bin:$PATH\"\n");
        }
        for step in &steps {
            let Some(command) = in_image(&step.does, &image) else { continue };
            let below = if packages.is_empty() {
                step.directory.clone()
            } else {
                format!("$PACKAGE/{}", step.directory)
            };
            let line = if below.is_empty() {
                command.clone()
            } else {
                format!("(cd \"{}\" && {command})", below.trim_end_matches('/'))
            };
            let _ = writeln!(out, "    - {}", quoted(&line));
        }
        if COMMIT.is_none() {
            out.push_str("    # There is no release yet: put a program that you have built in the place of these two lines.\n");
        }
        out.push_str("    - curl --proto '=https' -fsSLO https://github.com/little-loops/ll-loop/releases/latest/download/install.sh\n    - sh install.sh --to .\n");
        let parameter = if packages.is_empty() { "" } else { " --param \"path=$PACKAGE\"" };
        let _ = write!(
            out,
            "  script:\n    - ./ll-loop run {} --ci --report-dir ll-loop-report{parameter}\n",
            quoted(name)
        );
        if !packages.is_empty() {
            out.push_str("  parallel:\n    matrix:\n      - PACKAGE:\n");
            for package in packages {
                let _ = writeln!(out, "          - {}", quoted(package));
            }
        }
        out.push_str("  artifacts:\n    when: always\n    paths: [ll-loop-report]\n    reports:\n      junit: ll-loop-report/junit.xml\n");
    }
    out
}

/// What installs tools of Python where pip is not there, or installs nothing for all.
const PIPX: &str = "pipx";

/// What runners of GitHub have and images do not: programs, and their packages.
const OF_RUNNERS: [(&str, &str); 4] =
    [("cmake", "cmake"), ("ctest", "cmake"), ("jq", "jq"), ("ninja", "ninja-build")];

/// Returns the packages that an image lacks for these steps.
fn missing(steps: &[SetUpStep], image: &str) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if !image.starts_with("python") && steps.iter().any(|step| uses_pipx(&step.does)) {
        missing.push(PIPX);
    }
    // ll-loop itself comes with curl.
    if image.starts_with("swift") {
        missing.extend(["ca-certificates", "curl"]);
    }
    missing
}

/// Returns the packages with what the checks call as if they were on a runner of GitHub.
fn of_runners(plan: &Plan, steps: &[SetUpStep]) -> BTreeSet<&'static str> {
    let is_called =
        |program: &str| plan.checks.iter().any(|check| called(&check.finding.command).contains(&program));
    let is_installed = |program: &str| {
        steps.iter().any(|step| {
            matches!(&step.does, SetUp::Run(command) if command.split(' ').any(|word| word == program))
        })
    };
    let lacks = |program: &str| is_called(program) && !is_installed(program);
    OF_RUNNERS.iter().filter(|(program, _)| lacks(program)).map(|(_, package)| *package).collect()
}

/// Returns the programs that a command line calls by their names.
fn called(command: &str) -> Vec<&str> {
    let mut is_first = true;
    let mut called = Vec::new();
    for word in command.split_whitespace() {
        if is_first && word != "sudo" {
            called.push(word);
        }
        is_first = word == "sudo" || is_operator(word);
    }
    called
}

/// Tells whether a word of a command line has another command behind it.
fn is_operator(word: &str) -> bool {
    matches!(word, "&&" | "||" | "|" | ";" | "!")
}

fn uses_pipx(does: &SetUp) -> bool {
    matches!(does, SetUp::Run(command) if command.starts_with("pipx "))
        || matches!(does, SetUp::Action { action, .. } if action.name == UV.name)
}

/// Returns what a step is in an image, which has its language, but not the actions of GitHub.
fn in_image(does: &SetUp, image: &str) -> Option<String> {
    let pip = if image.starts_with("python") { "pip install" } else { "pipx install" };
    match does {
        SetUp::Run(command) => Some(as_root(&command.replacen("pipx install", pip, 1))),
        SetUp::CopiedAction { .. } => None,
        SetUp::Action { action, with } => match action.name {
            "astral-sh/setup-uv" => Some(format!("{pip} uv")),
            "pnpm/action-setup" => Some("npm install --global pnpm".to_owned()),
            // On GitHub the action does that.
            "ruby/setup-ruby" if with.iter().any(|(key, _)| *key == "bundler-cache") => {
                Some("bundle install".to_owned())
            }
            "oven-sh/setup-bun" => Some("npm install --global bun".to_owned()),
            "helm/chart-testing-action" => {
                Some(unbound("go install github.com/helm/chart-testing/v3/ct@latest"))
            }
            _ => None,
        },
    }
}

/// Returns a command as root types it, where nobody answers: an image has no `sudo`, and its apt asks.
fn as_root(command: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    let mut is_first = true;
    // Behind `sudo`, its options.
    let mut is_of_sudo = false;
    for word in command.split(' ') {
        if (is_first && word == "sudo") || (is_of_sudo && word.starts_with('-')) {
            (is_first, is_of_sudo) = (true, true);
            continue;
        }
        is_of_sudo = false;
        is_first = is_operator(word);
        words.push(word);
    }
    let is_told = |word: &&str| {
        matches!(*word, "--yes" | "--assume-yes" | "-qq")
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('y'))
    };
    let asks = matches!(words.first(), Some(&("apt" | "apt-get"))) && !words.iter().any(is_told);
    if let Some(install) = words.iter().position(|word| *word == "install").filter(|_| asks) {
        words.insert(install + 1, "--yes");
    }
    words.join(" ")
}

/// Returns an image with what the checks of a loop need, by the language of the first that says one, else by what is set up for them.
fn image(plan: &Plan, steps: &[SetUpStep]) -> &'static str {
    let image_of =
        |language: &str| IMAGES.iter().find(|(known, _)| *known == language).map(|(_, image)| *image);
    let of_tools = plan
        .checks
        .iter()
        .find_map(|check| image_of(recognise_line(&check.finding.command)?.tool.ecosystem.as_str()));
    let of_steps = || {
        let language = |step: &SetUpStep| match &step.does {
            SetUp::Action { action, .. } => language_of(action.name),
            SetUp::CopiedAction { .. } => None,
            SetUp::Run(command) => called(without_assignments(command)).into_iter().find_map(language_of),
        };
        steps.iter().find_map(language).and_then(image_of)
    };
    of_tools.or_else(of_steps).unwrap_or(WITHOUT_LANGUAGE)
}

/// Returns the language that an action sets up, or whose tools a program is one of.
fn language_of(name: &str) -> Option<&'static str> {
    let language = match name {
        "actions/setup-python" | "astral-sh/setup-uv" | "python" | "python3" | "pip" => "python",
        "actions/setup-node" | "npm" | "yarn" | "pnpm" | "corepack" => "node",
        "actions/setup-go" | "helm/chart-testing-action" | "go" => "go",
        "actions/setup-java" => "java",
        "actions/setup-dotnet" | "dotnet" => "dotnet",
        "ruby/setup-ruby" | "bundle" | "gem" => "ruby",
        "shivammathur/setup-php" | "composer" => "php",
        "hashicorp/setup-terraform" => "terraform",
        "erlef/setup-beam" | "mix" => "elixir",
        "dart-lang/setup-dart" | "dart" => "dart",
        "denoland/setup-deno" => "deno",
        "cargo" | "rustup" => "rust",
        "cabal" | "stack" => "haskell",
        _ => return None,
    };
    Some(language)
}

/// The image of checks that need no language.
const WITHOUT_LANGUAGE: &str = "buildpack-deps:bookworm";

/// An image of each language.
const IMAGES: [(&str, &str); 15] = [
    ("rust", "rust:1"),
    ("python", "python:3"),
    ("node", "node:lts"),
    ("deno", "denoland/deno:debian"),
    ("go", "golang:1"),
    ("java", "maven:3-eclipse-temurin-21"),
    ("dotnet", "mcr.microsoft.com/dotnet/sdk:10.0"),
    ("ruby", "ruby:3"),
    // The image `php` has no composer.
    ("php", "composer:2"),
    ("terraform", "hashicorp/terraform:latest"),
    ("elixir", "elixir:1"),
    ("dart", "dart:stable"),
    ("haskell", "haskell:9"),
    ("swift", "swift:6.0"),
    ("nim", "nimlang/nim:latest"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_no_sudo_and_its_apt_is_not_asked() {
        for (typed, written) in [
            ("sudo apt update", "apt update"),
            ("sudo apt-get install doxygen", "apt-get install --yes doxygen"),
            ("sudo -E apt-get -qq install x && sudo ldconfig", "apt-get -qq install x && ldconfig"),
            (
                "sudo apt-get install -y --no-install-recommends sudo",
                "apt-get install -y --no-install-recommends sudo",
            ),
            ("npm ci", "npm ci"),
            ("make install", "make install"),
        ] {
            assert_eq!(as_root(typed), written);
        }
    }

    #[test]
    fn programs_are_what_stands_at_the_beginning_of_commands() {
        assert_eq!(called("cmake -B build && sudo ctest | jq ."), ["cmake", "ctest", "jq"]);
        assert_eq!(called("echo cmake"), ["echo"]);
    }
}
