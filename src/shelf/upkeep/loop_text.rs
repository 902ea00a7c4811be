//! Writes the loop that was planned, in a form that formatters and linters of YAML leave as it is: no spaces in braces, of
//! which Prettier and yamllint think differently, and no blank in the first line, which is too long for yamllint otherwise.

use std::fmt::Write as _;

use super::chosen_commands::{Check, Plan};
use super::found_repository::{Evidence, Finding, Repository};
use super::loop_reuse::LoopReuse;
use super::trial::{Trials, Tried};
use super::unused::by_reason;
use super::yaml_style::quoted;
use crate::base::text::one_line;
use crate::tools::recognise_line;

/// The commit that the program was built from. While there is no release, nothing else names a version.
pub(super) const COMMIT: Option<&str> = option_env!("LL_LOOP_COMMIT");

/// Writes a loop. With `packages`, it checks one directory, which its parameter names.
pub fn loop_text(
    name: &str,
    plan: &Plan,
    packages: &[String],
    trials: &Trials,
    repository: &Repository,
) -> String {
    let is_check = |check: &&Check| !matches!(trials.of(&check.finding), Some(Tried::Changed { .. }));
    let checks: Vec<&Check> = plan.checks.iter().filter(is_check).collect();
    let words: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    let mut out = format!(
        "# yaml-language-server:$schema=https://raw.githubusercontent.com/little-loops/ll-loop/{}/schema/loop.schema.json\nname: {}\n",
        COMMIT.unwrap_or("main"),
        quoted(name)
    );
    let described = format!("checks what this repository checks: {}", named_in_part(&words));
    let _ = writeln!(out, "description: {}", quoted(&described));
    let first = checks.first().map_or("done", |check| check.name.as_str());
    // Strict, as the steps of GitHub are: a failure within a line or a pipe must not end as a success.
    let hours = plan.allowed_hours();
    let _ = writeln!(out, "initial: {first}\ntimeout: {hours}h\nshell: [bash, -euo, pipefail, -c]");
    if let [first, ..] = packages {
        // Commands get the package in a variable: text put into a command would be read as shell.
        let described = quoted(&format!("the package, such as {first}"));
        let _ = writeln!(
            out,
            "parameters:\n  path:\n    type: string\n    required: true\n    description: {described}\nenv:\n  LL_PATH: ${{context.path}}"
        );
    }
    let reuse = LoopReuse::of(checks.iter().copied(), packages, repository);
    out.push_str(&reuse.map_or_else(String::new, |reuse| reuse.text()));
    out.push_str("states:\n");
    for (at, check) in checks.iter().enumerate() {
        let next = checks.get(at + 1).map_or("done", |next| next.name.as_str());
        let written = WrittenCheck {
            check,
            next,
            has_packages: !packages.is_empty(),
            tried: trials.of(&check.finding),
        };
        written.states(&mut out);
    }
    out.push_str("  done:\n    terminal: true\n");
    out.push_str("  failed:\n    terminal: true\n    outcome: failure\n    description: a check failed; see its output above\n");
    comments(&mut out, plan, trials);
    out
}

/// Names the first checks, and says how many more there are: a loop can have dozens, and a list shows this in one line.
fn named_in_part(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names.split_at_checked(SHOWN) {
        Some((shown, more)) if more.len() > 1 => format!("{} and {} more", shown.join(", "), more.len()),
        Some(_) | None => names.join(", "),
    }
}

/// Writes what is not a state, and why.
fn comments(out: &mut String, plan: &Plan, trials: &Trials) {
    for check in &plan.checks {
        if let Some(Tried::Changed { path, .. }) = trials.of(&check.finding) {
            let _ = writeln!(out, "# No check, because it changed {}:", one_line(path, 200));
            comment(out, &check.finding.command, &check.finding.evidence);
        }
    }
    for (why, commands) in by_reason(&plan.unused) {
        let _ = writeln!(out, "# Not added, because {why}:");
        for one in commands {
            comment(out, &one.call(), &one.evidence);
        }
    }
}

fn comment(out: &mut String, command: &str, evidence: &Evidence) {
    // A line end within the command would end the comment, and the rest would be read as part of the loop.
    let _ = writeln!(out, "#   {} # {}", one_line(command, 300), source(evidence));
}

/// A check as it is written.
struct WrittenCheck<'p> {
    check: &'p Check,
    /// The state behind it.
    next: &'p str,
    has_packages: bool,
    tried: Option<&'p Tried>,
}

/// Returns how a command is judged. What is no is not what could not run: see the key in `docs/evaluators.md`.
fn judged(command: &str) -> String {
    let found = recognise_line(command);
    // Programs differ in the code of a finding: make ends with 2, cargo with 101.
    let failed = found.and_then(|found| found.tool.failed.as_deref()).unwrap_or("nonzero");
    format!("    evaluate:\n      type: exit_code\n      \"no\": {failed}\n      error_if_not_run: true\n")
}

impl WrittenCheck<'_> {
    fn states(&self, out: &mut String) {
        let (name, next) = (&self.check.name, self.next);
        let again = format!("{name}_again");
        let on_no = match &self.check.fix {
            Some(_) => format!("fix_{name}"),
            None if self.check.mends_itself() => again.clone(),
            None => "failed".to_owned(),
        };
        Self::evidence(out, &self.check.finding, self.mark());
        self.state(out, name, &self.check.finding, &[next, &on_no]);
        if let Some(fix) = &self.check.fix {
            Self::evidence(out, fix, "");
            // Whatever a fix exits with, the check judges what it did.
            self.state(out, &format!("fix_{name}"), fix, &[&again, &again]);
        }
        if on_no != "failed" {
            let why =
                if self.check.fix.is_some() { "" } else { "; it mends what it finds, and is asked again" };
            Self::evidence(out, &self.check.finding, why);
            self.state(out, &again, &self.check.finding, &[next, "failed"]);
        }
    }

    /// Returns what a try has shown that a reader has to know. It is the same each time.
    fn mark(&self) -> &'static str {
        match self.tried {
            Some(Tried::Ran { exit: 0, .. } | Tried::Changed { .. }) | None => "",
            Some(Tried::Ran { .. }) => "; it failed on the tree that init saw",
            Some(Tried::CouldNotRun { .. }) => "; it could not run where init tried it",
        }
    }

    fn evidence(out: &mut String, finding: &Finding, mark: &str) {
        let _ = writeln!(out, "  # {}{mark}", source(&finding.evidence));
    }

    fn state(&self, out: &mut String, name: &str, finding: &Finding, to: &[&str; 2]) {
        let [on_yes, on_no] = to;
        let action = action(finding, self.has_packages);
        let _ = write!(
            out,
            "  {name}:\n    action: {action}\n{}    on_yes: {on_yes}\n    on_no: {on_no}\n",
            judged(&finding.command)
        );
    }
}

/// Writes a command as the value of `action`.
fn action(finding: &Finding, has_packages: bool) -> String {
    let command = in_directory(finding, has_packages);
    if command.contains(['"', '\'', '\\']) {
        // A block needs no quotes, and no formatter prefers others.
        return format!("|\n      {command}");
    }
    quoted(&command)
}

/// Returns a command that goes where it is called first.
pub(super) fn in_directory(finding: &Finding, has_packages: bool) -> String {
    let directory = &finding.directory;
    let below = match (has_packages, directory.is_empty()) {
        (true, true) => "\"$LL_PATH\"".to_owned(),
        (true, false) => format!("\"$LL_PATH\"/{}", word(directory)),
        (false, true) => return finding.command.clone(),
        (false, false) => word(directory),
    };
    format!("cd {below} && {}", finding.command)
}

fn word(text: &str) -> String {
    // Only a NUL byte cannot be quoted, and no path of git holds one.
    shlex::try_quote(text).map_or_else(|_| String::from("."), std::borrow::Cow::into_owned)
}

/// Says where a command was found.
pub fn source(evidence: &Evidence) -> String {
    let task = evidence.task.as_ref().map_or_else(String::new, |task| format!(" ({})", one_line(task, 80)));
    format!("{}:{}{task}", one_line(&evidence.file, 200), evidence.line)
}
