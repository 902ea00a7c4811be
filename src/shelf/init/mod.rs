//! `init`: writes a first loop for a repository from what that says about its own checks, and the workflow that runs it.

mod attempt;
mod walk;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::TextDiff;

use super::formatter_ignores;
pub(crate) use super::upkeep::Ci;
use super::upkeep::{
    Check, Plan, PlannedLoop, Reason, Repository, Trials, Tried, UnusedCommand, UnusedPackage, WorkflowLoop,
    by_reason, in_style, is_yaml, loop_text, loops, note_of_words, source, test_text, workflow,
};
use crate::base::diagnostic::{Diagnostics, Severity};
use crate::base::own::OF_RUNS;
use crate::base::text::one_line;
use crate::base::time::{human, millis};
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{self, DIRECTORY};
use crate::files::place;
use crate::files::read::{self, MIB};
use crate::files::replace::replace;
use crate::machine::{check, compile};

/// What somebody wants of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitOptions {
    /// Whether each check is tried.
    pub(crate) tries: bool,
    /// Whether tools mend what they find, also where the repository has no task for that.
    pub(crate) mends: bool,
    /// For which CI system a workflow is written.
    pub(crate) ci: WantedCi,
    /// Whether files of the same names are replaced.
    pub(crate) force: bool,
}

/// For which CI system a workflow is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedCi {
    /// The one that is there, or else GitHub.
    Found,
    /// This one.
    Named(Ci),
    /// None.
    None,
}

/// What was found and written.
pub(crate) struct InitResult {
    root: PathBuf,
    loops: Vec<BegunLoop>,
    left_out: Vec<UnusedPackage>,
    trials: Trials,
    files: Vec<(String, &'static str)>,
    /// A file that pins the actions of workflows, which does not know those of a new one.
    actions_lock: Option<String>,
}

/// A loop that was written.
struct BegunLoop {
    planned: PlannedLoop,
    /// What is left of the plan after the try.
    settled: Plan,
}

/// The exit code where a check could not be tried: nothing is known of what it would have said.
const NOT_CHECKED: u8 = 4;

/// Writes a first loop for the repository around the working directory.
pub(crate) fn init(options: InitOptions, session: &Session<'_>) -> Result<InitResult, Error> {
    let root = place::repository(&session.cwd).unwrap_or(&session.cwd).to_owned();
    let repository = walk::read(&root, session)?;
    let planned = loops(&repository, options.mends);
    let trials = if options.tries && !planned.loops.is_empty() {
        attempt::all(&root, &repository, &planned, session)?
    } else {
        Trials::default()
    };
    let settled = |planned: PlannedLoop| {
        let settled = planned.plan.clone().settled(&trials, options.mends);
        BegunLoop { planned, settled }
    };
    let loops: Vec<BegunLoop> = planned.loops.into_iter().map(settled).collect();
    if loops.iter().all(|one| checks(&one.settled, &trials).next().is_none()) {
        let of_loops = loops.into_iter().flat_map(|one| one.settled.unused);
        return Err(nothing(&repository, &of_loops.chain(planned.unused).collect::<Vec<_>>()));
    }
    let texts = texts(&repository, &loops, &trials, options);
    for (path, text) in &texts {
        ensure_valid(path, text)?;
    }
    // The loops first: where one of the files differs, `.gitignore` is not touched either.
    let mut files = write(&root, texts, options.force, session)?;
    let words = note_of_words(&repository, &OF_RUNS.join(" "));
    files.push((formatter_ignores::FILE.to_owned(), formatter_ignores::ignore_runs(&root, &words, session)?));
    let is_lock = |path: &&str| path.starts_with(".github/") && path.ends_with("actions.lock");
    let actions_lock = repository.paths().find(is_lock).map(str::to_owned);
    let has_workflow = files.iter().any(|(path, _)| path.starts_with(".github/"));
    let actions_lock = actions_lock.filter(|_| has_workflow);
    Ok(InitResult { root, loops, left_out: planned.left_out, trials, files, actions_lock })
}

/// Returns the checks that become states.
fn checks<'p>(plan: &'p Plan, trials: &'p Trials) -> impl Iterator<Item = &'p Check> {
    plan.checks.iter().filter(|check| !matches!(trials.of(&check.finding), Some(Tried::Changed { .. })))
}

/// The most commands that are shown with the reason for which they are no checks. The loop has all of them.
const MOST_SHOWN: usize = 8;

/// Returns the lines that say what was seen and is no check, and how many more there are.
fn shown(unused: &[UnusedCommand], indentation: &str) -> (String, usize) {
    let (mut out, mut room) = (String::new(), MOST_SHOWN);
    for (why, commands) in by_reason(unused) {
        if room == 0 {
            break;
        }
        let _ = writeln!(out, "{indentation}not added: {why}");
        for one in commands.iter().take(room) {
            let call = one_line(&one.call(), MOST_OF_COMMAND);
            let _ = writeln!(out, "{indentation}  {call}  ({})", source(&one.evidence));
        }
        room = room.saturating_sub(commands.len());
    }
    (out, unused.len().saturating_sub(MOST_SHOWN))
}

/// How much of a command is shown that is no check.
const MOST_OF_COMMAND: usize = 120;

/// Says that nothing was found, what was seen, and what there is for a repository of documents.
fn nothing(repository: &Repository, unused: &[UnusedCommand]) -> Error {
    let is_document = |path: &str| [".md", ".rst", ".adoc"].iter().any(|end| path.ends_with(end));
    let hint = if repository.paths().any(is_document) {
        "tasks, workflows and tests were looked for, in the repository and in its packages. For documents there are ready loops: \
         `ll-loop add file-hygiene` needs git alone, `ll-loop add markdown`, `ll-loop add typos` and `ll-loop add links` need a tool each"
    } else {
        "tasks, workflows and tests were looked for, in the repository and in its packages; `ll-loop catalog` lists ready loops, and \
         `ll-loop add NAME` copies one"
    };
    // A tool of which there is only a configuration says nothing of the repository.
    let of_ci: Vec<UnusedCommand> =
        unused.iter().filter(|one| one.why != Reason::OnlyConfigured).cloned().collect();
    let (lines, more) = shown(&of_ci, "  ");
    let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
    let seen = format!("\n{lines}{more}");
    Error::refused(format!("nothing here says how this repository checks itself{}", seen.trim_end()))
        .with_hint(hint)
}

fn texts(
    repository: &Repository,
    loops: &[BegunLoop],
    trials: &Trials,
    options: InitOptions,
) -> Vec<(String, String)> {
    let of_loop = |one: &BegunLoop| {
        let BegunLoop { planned, settled } = one;
        let text = loop_text(&planned.name, settled, &planned.packages, trials, repository);
        (format!("{DIRECTORY}/{}.yaml", planned.name), text)
    };
    let mut files: Vec<(String, String)> = loops.iter().map(of_loop).collect();
    let ci = match options.ci {
        WantedCi::Found if repository.has(".gitlab-ci.yml") => Some(Ci::Gitlab),
        WantedCi::Found => Some(Ci::Github),
        WantedCi::Named(ci) => Some(ci),
        WantedCi::None => None,
    };
    if let Some(ci) = ci {
        let named: Vec<_> =
            loops.iter().map(|one| WorkflowLoop { planned: &one.planned, settled: &one.settled }).collect();
        let (path, text) = workflow(ci, repository, &named);
        files.push((path.to_owned(), text));
    }
    let tests = |one: &BegunLoop| {
        let text = test_text(&one.planned.name, &one.settled, &one.planned.packages, trials);
        (format!("{DIRECTORY}/tests/{}.test.yaml", one.planned.name), text)
    };
    files.extend(loops.iter().map(tests));
    files.into_iter().map(|(path, text)| (path.clone(), in_style(repository, &path, &text))).collect()
}

/// Holds what was made against what reads it: a file that is refused later is not written.
fn ensure_valid(path: &str, text: &str) -> Result<(), Error> {
    let is_loop = path.starts_with(DIRECTORY) && !path.starts_with(&format!("{DIRECTORY}/tests/"));
    let problem = if is_loop {
        problem_of_loop(path, text)
    } else {
        (!is_yaml(text)).then(|| "it is not YAML".to_owned())
    };
    match problem {
        None => Ok(()),
        Some(problem) => {
            let shown = one_line(&problem, 300);
            Err(Error::refused(format!("what would be written to `{path}` is invalid, so nothing is written: {shown}"))
                .with_hint("this is a fault of ll-loop: please report it, with the task or the workflow that it is about"))
        }
    }
}

/// Returns the first error of a loop file.
fn problem_of_loop(path: &str, text: &str) -> Option<String> {
    let first = |findings: &Diagnostics| {
        findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
            .map(|finding| finding.message.clone())
    };
    match load::decode(path, text, String::new()) {
        Err(rejected) => Some(first(&rejected.findings).unwrap_or_else(|| "it is no loop".to_owned())),
        Ok(loaded) => {
            let (machine, mut findings) = compile::compile(&loaded.definition);
            if let Some(machine) = machine {
                findings.extend(check::check_deeply(&machine, &loaded.definition));
            }
            first(&findings)
        }
    }
}

/// Writes the files, all of them or none.
fn write(
    root: &Path,
    files: Vec<(String, String)>,
    force: bool,
    session: &Session<'_>,
) -> Result<Vec<(String, &'static str)>, Error> {
    let (mut differ, mut todo) = (Vec::new(), Vec::new());
    for (path, text) in files {
        let file = root.join(&path);
        // A link in the tree may lead anywhere, and `--force` would replace what is there.
        let linked = file.ancestors().take_while(|above| *above != root).find(|above| above.is_symlink());
        if let Some(link) = linked {
            return Err(Error::refused(format!(
                "`{}` is a link, and nothing is written through it",
                link.display()
            )));
        }
        let action = if fs_err::symlink_metadata(&file).is_err() {
            "written"
        } else {
            let there = read::text(&file, MIB)
                .map_err(|error| Error::refused(format!("`{path}` is in the way: {error}")))?;
            if there == text {
                "unchanged"
            } else if force {
                "replaced"
            } else {
                let diff = TextDiff::from_lines(&there, &text);
                session.talk.warning(&format!(
                    "`{path}` differs from what would be written:\n{}",
                    diff.unified_diff().header(&path, "init")
                ));
                differ.push(path);
                continue;
            }
        };
        todo.push((path, text, action));
    }
    if !differ.is_empty() {
        return Err(Error::refused(format!(
            "{} exists and differs, so nothing is written",
            differ.join(", ")
        ))
        .with_hint("`--force` replaces it"));
    }
    for (path, text, action) in &todo {
        if *action != "unchanged" {
            let file = root.join(path);
            let made =
                file.parent().map_or(Ok(()), fs_err::create_dir_all).and_then(|()| replace(&file, text));
            made.map_err(|error| Error::failed(format!("cannot write `{path}`"), &error))?;
        }
    }
    Ok(todo.into_iter().map(|(path, _, action)| (path, action)).collect())
}

impl InitResult {
    /// Returns how the command ends: a check that could not be tried is not a success.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.not_checked().next().is_some() { NOT_CHECKED } else { 0 }
    }

    /// Returns the checks that could not be tried, each with why and what to do.
    fn not_checked(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let checks = self.loops.iter().flat_map(|one| &one.settled.checks);
        checks.filter_map(|check| match self.trials.of(&check.finding) {
            Some(Tried::CouldNotRun { why, advice, .. }) => {
                Some((check.name.as_str(), why.as_str(), advice.as_str()))
            }
            Some(Tried::Ran { .. } | Tried::Changed { .. }) | None => None,
        })
    }

    /// Returns what people are told: what was found and where, what was written, and what comes next.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for one in &self.loops {
            let _ = writeln!(out, "{}", one.planned.name);
            for check in &one.settled.checks {
                self.check(&mut out, check);
            }
            let (lines, more) = shown(&one.settled.unused, "  ");
            out.push_str(&lines);
            if more > 0 {
                let _ = writeln!(out, "  and {more} more, which {DIRECTORY}/{}.yaml names", one.planned.name);
            }
        }
        for left in &self.left_out {
            let _ = writeln!(out, "left out {}: {}", one_line(&left.package, 200), left.why);
        }
        for (path, action) in &self.files {
            let _ = writeln!(out, "{action} {path}");
            if path.starts_with(".gitlab/") {
                let _ = writeln!(out, "to run it, add to .gitlab-ci.yml:\n  include:\n    - local: {path}");
            }
        }
        if let Some(lock) = &self.actions_lock {
            let _ = writeln!(
                out,
                "{lock} pins the actions of workflows: make it anew, so that it has those of ll-loop.yml"
            );
        }
        self.unchecked(&mut out);
        let commands = self.next();
        let shown = commands.iter().map(|argv| {
            let words = argv.iter().map(String::as_str);
            shlex::try_join(words).unwrap_or_else(|_| argv.join(" "))
        });
        let run = shown.collect::<Vec<_>>().join("`, then `");
        if self.is_any_checked() {
            let _ = writeln!(out, "next: `{run}`");
        } else {
            let _ =
                writeln!(out, "next: install what is missing, and try again: `ll-loop init --try --force`");
        }
        out
    }

    /// Tells whether at least one check was tried, or none was to be.
    fn is_any_checked(&self) -> bool {
        let count = self.loops.iter().map(|one| one.settled.checks.len()).sum::<usize>();
        self.not_checked().count() < count
    }

    /// Names the checks that could not run, those with the same reason together.
    fn unchecked(&self, out: &mut String) {
        let mut reasons: Vec<((&str, &str), Vec<&str>)> = Vec::new();
        for (name, why, advice) in self.not_checked() {
            match reasons.iter_mut().find(|(reason, _)| *reason == (why, advice)) {
                Some((_, names)) => names.push(name),
                None => reasons.push(((why, advice), vec![name])),
            }
        }
        for ((why, advice), names) in reasons {
            let _ = writeln!(out, "NOT CHECKED: {} could not run: {why}\n  {advice}", names.join(", "));
        }
    }

    fn check(&self, out: &mut String, check: &Check) {
        let tried = self.trials.of(&check.finding);
        let shown = match tried {
            Some(Tried::Ran { exit: 0, took, .. }) => format!("  (passed in {})", human(*took)),
            Some(Tried::Ran { exit, took, .. }) => {
                format!("  (failed with exit code {exit} in {})", human(*took))
            }
            Some(Tried::CouldNotRun { .. }) => "  (could not run)".to_owned(),
            Some(Tried::Changed { path, .. }) => format!("  (no check: it changed {path})"),
            None => String::new(),
        };
        let fix = check.fix.as_ref().map_or_else(String::new, |fix| format!(", fixed by {}", fix.command));
        let (name, command) = (&check.name, &check.finding.command);
        let below = Some(&check.finding.directory).filter(|directory| !directory.is_empty());
        let below = below.map_or_else(String::new, |directory| format!(" in {directory}"));
        let _ = writeln!(
            out,
            "  {name:<10} {command}{below}{fix}{shown}\n             {}",
            source(&check.finding.evidence)
        );
        if let Some(Tried::Ran { exit, last, .. }) = tried
            && *exit != 0
        {
            for line in last {
                let _ = writeln!(out, "             | {line}");
            }
        }
    }

    fn next(&self) -> Vec<Vec<String>> {
        let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let Some(first) = self.loops.first() else { return Vec::new() };
        let mut run = argv(&["ll-loop", "run", &first.planned.name]);
        if let [package, ..] = first.planned.packages.as_slice() {
            run.extend(argv(&["--param", &format!("path={package}")]));
        }
        vec![argv(&["ll-loop", "validate"]), run]
    }

    /// Returns the same for programs.
    pub(crate) fn json(&self) -> Value {
        let loops = self.loops.iter().map(|one| {
            let states = one.settled.checks.iter().map(|check| self.state(check));
            let offers = one.settled.unused.iter().map(|one| {
                json!({"command": one.call(), "evidence": source(&one.evidence), "reason": one.why.to_string()})
            });
            json!({
                "name": one.planned.name,
                "path": format!("{DIRECTORY}/{}.yaml", one.planned.name),
                "packages": one.planned.packages,
                "states": states.collect::<Vec<_>>(),
                "offered": offers.collect::<Vec<_>>(),
            })
        });
        let left_out =
            self.left_out.iter().map(|left| json!({"package": left.package, "reason": left.why.to_string()}));
        json!({
            "files": self.files.iter().map(|(path, action)| json!({"path": path, "action": action})).collect::<Vec<_>>(),
            "loops": loops.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "not_checked": self.not_checked().map(|(name, ..)| name).collect::<Vec<_>>(),
            "next": self.next(),
            "root": self.root.display().to_string(),
        })
    }

    fn state(&self, check: &Check) -> Value {
        let evidence = &check.finding.evidence;
        let tried = self.trials.of(&check.finding).map(|tried| {
            let duration = millis(tried.took());
            match tried {
                Tried::Ran { exit, last, .. } => json!({"exit": exit, "duration_ms": duration, "reason": null, "last": last}),
                Tried::CouldNotRun { why, advice, .. } => {
                    json!({"exit": null, "duration_ms": duration, "reason": format!("it could not run: {why}"), "advice": advice})
                }
                Tried::Changed { path, .. } => {
                    json!({"exit": null, "duration_ms": duration, "reason": format!("it changed {path}, so it is not a check")})
                }
            }
        });
        json!({
            "name": check.name,
            "command": check.finding.command,
            "directory": check.finding.directory,
            "evidence": {"file": evidence.file, "line": evidence.line, "task": evidence.task},
            "fix": check.fix.as_ref().map(|fix| &fix.command),
            "tried": tried,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_could_read_is_not_written() {
        let of = |action: &str| {
            format!(
                "name: tidy\ninitial: test\nstates:\n  test:\n    action: {action}\n    on_yes: done\n    on_no: done\n  done:\n    terminal: true\n"
            )
        };
        for action in ["\u{1b}[31m", "["] {
            let error = ensure_valid(".loops/tidy.yaml", &of(action)).unwrap_err();
            assert!(error.to_string().contains("`.loops/tidy.yaml` is invalid"), "{action:?}: {error}");
        }
        assert!(ensure_valid(".loops/tidy.yaml", &of("make test")).is_ok());
        assert!(ensure_valid(".gitlab-ci.yml", "a: [").is_err());
        assert!(ensure_valid(".github/workflows/ll-loop.yml", "on: push\n").is_ok());
    }
}
