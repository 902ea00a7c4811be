//! Writes the jobs of GitLab that run the loops. They are the steps of the workflow in an image, which has one language, no
//! `sudo`, and less beside it than a runner of GitHub.

use std::fmt::Write as _;

use super::chosen_commands::Plan;
use super::ci::CiContents;
use super::found_repository::Repository;
use super::loop_text::COMMIT;
use super::setup::{SetUp, UV, steps};
use super::workflow::{MINUTES, WorkflowLoop};
use super::yaml_style::quoted;
use crate::tools::recognise;

/// Writes a job for each loop.
pub(super) fn gitlab(repository: &Repository, contents: &CiContents, loops: &[WorkflowLoop<'_>]) -> String {
    let mut out = String::new();
    for one in loops {
        let (name, packages) = (&one.planned.name, &one.planned.packages);
        let image = contents.image.clone().unwrap_or_else(|| image(one.settled).to_owned());
        let _ = write!(
            out,
            "{}:\n  image: {}\n  timeout: {MINUTES} minutes\n  interruptible: true\n  before_script:\n",
            quoted(&format!("ll-loop {name}")),
            quoted(&image)
        );
        let all = steps(repository, contents, one.settled, packages.first().map(String::as_str));
        if !image.starts_with("python") && all.iter().any(|step| uses_pipx(&step.does)) {
            out.push_str(PIPX);
        }
        for step in all {
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

/// What brings pipx into an image of another language than Python, where pip is not there or installs nothing for all.
const PIPX: &str = "    - if command -v apt-get; then apt-get update -qq && apt-get install -qq --yes pipx; else apk add pipx; fi
    - export PATH=\"$HOME/.local/bin:$PATH\"
";

fn uses_pipx(does: &SetUp) -> bool {
    matches!(does, SetUp::Run(command) if command.starts_with("pipx "))
        || matches!(does, SetUp::Action { action, .. } if action.name == UV.name)
}

/// Returns what a step is in an image, which has its language, but not the actions of GitHub.
fn in_image(does: &SetUp, image: &str) -> Option<String> {
    let pip = if image.starts_with("python") { "pip install" } else { "pipx install" };
    match does {
        SetUp::Run(command) => Some(command.replacen("pipx install", pip, 1)),
        SetUp::LocalAction { .. } => None,
        SetUp::Action { action, with } => match action.name {
            "astral-sh/setup-uv" => Some(format!("{pip} uv")),
            "pnpm/action-setup" => Some("npm install --global pnpm".to_owned()),
            // On GitHub the action does that.
            "ruby/setup-ruby" if with.iter().any(|(key, _)| *key == "bundler-cache") => {
                Some("bundle install".to_owned())
            }
            "oven-sh/setup-bun" => Some("npm install --global bun".to_owned()),
            _ => None,
        },
    }
}

/// Returns an image with what the checks of a loop need, by the language of the first that says one.
fn image(plan: &Plan) -> &'static str {
    let language = plan.checks.iter().find_map(|check| {
        let words = shlex::split(&check.finding.command)?;
        let name = recognise(&words)?.tool.ecosystem.as_str();
        IMAGES.iter().find(|(language, _)| *language == name).map(|(_, image)| *image)
    });
    language.unwrap_or("buildpack-deps:bookworm")
}

/// An image of each language, with curl.
const IMAGES: [(&str, &str); 10] = [
    ("rust", "rust:1"),
    ("python", "python:3"),
    ("node", "node:lts"),
    ("deno", "denoland/deno:debian"),
    ("go", "golang:1"),
    ("java", "maven:3-eclipse-temurin-21"),
    ("dotnet", "mcr.microsoft.com/dotnet/sdk:10.0"),
    ("ruby", "ruby:3"),
    ("php", "composer:2"),
    ("terraform", "hashicorp/terraform:latest"),
];
