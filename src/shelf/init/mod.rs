//! `init`: writes a first loop for a repository from what that says about its own checks, and the workflow that runs it.

mod attempt;
mod walk;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use similar::TextDiff;

pub(crate) use super::upkeep::write::Ci;
use super::upkeep::write::{Trials, Tried, loop_text, source, workflow};
use super::upkeep::{PlannedLoop, Repository, loops};
use crate::base::time::{human, millis};
use crate::definition::load::DIRECTORY;
use crate::files::place;
use crate::files::read::{self, MIB};
use crate::files::replace::replace;
use crate::session::context::Session;
use crate::session::error::Error;

/// What somebody wants of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InitOptions {
    /// Whether each check is tried.
    pub(crate) tries: bool,
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
pub(crate) struct Begun {
    root: PathBuf,
    loops: Vec<PlannedLoop>,
    trials: Trials,
    files: Vec<(String, &'static str)>,
}

/// Writes a first loop for the repository around the working directory.
pub(crate) fn init(options: InitOptions, session: &Session<'_>) -> Result<Begun, Error> {
    let root = place::repository(&session.cwd).unwrap_or(&session.cwd).to_owned();
    let repository = walk::read(&root, session)?;
    let loops = loops(&repository);
    if loops.is_empty() {
        return Err(Error::refused("nothing here says how this repository checks itself").with_hint(
            "tasks, workflows and configured tools were looked for, in the repository and in its packages; `ll-loop catalog` \
             lists ready loops, and `ll-loop add NAME` copies one",
        ));
    }
    let trials = if options.tries { attempt::all(&root, &loops, session)? } else { Trials::new() };
    if let Some(why) = none_left(&loops, &trials) {
        return Err(Error::refused(format!("no check of this repository can run here: {why}"))
            .with_hint("install what they need, or leave out `--try`"));
    }
    let files = texts(&repository, &loops, &trials, options);
    let files = write(&root, files, options.force, session)?;
    Ok(Begun { root, loops, trials, files })
}

/// Says why there is nothing to write, if no check could run.
fn none_left(loops: &[PlannedLoop], trials: &Trials) -> Option<String> {
    let mut checks = loops.iter().flat_map(|planned| &planned.plan.checks);
    let why = checks.clone().find_map(|check| match trials.get(&check.finding.command) {
        Some(Tried::Not(why)) => Some(format!("{}: {why}", check.finding.command)),
        Some(Tried::Ran { .. }) | None => None,
    });
    why.filter(|_| checks.all(|check| matches!(trials.get(&check.finding.command), Some(Tried::Not(_)))))
}

fn texts(
    repository: &Repository,
    loops: &[PlannedLoop],
    trials: &Trials,
    options: InitOptions,
) -> Vec<(String, String)> {
    let of_loop = |planned: &PlannedLoop| {
        let text = loop_text(&planned.name, &planned.plan, &planned.packages, trials);
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
        let named: Vec<_> = loops
            .iter()
            .map(|planned| (planned.name.clone(), &planned.plan, planned.packages.clone()))
            .collect();
        let (path, text) = workflow(ci, repository, &named);
        files.push((path.to_owned(), text));
    }
    files
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

impl Begun {
    /// Returns what people are told: what was found and where, what was written, and what comes next.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        for planned in &self.loops {
            let _ = writeln!(out, "{}", planned.name);
            for check in &planned.plan.checks {
                let tried = match self.trials.get(&check.finding.command) {
                    Some(Tried::Ran { exit, took }) => {
                        format!("  (ran, exit {exit}, {})", human(*took))
                    }
                    Some(Tried::Not(why)) => format!("  (left out: {why})"),
                    None => String::new(),
                };
                let fix = check.fix.as_ref().map(|fix| format!(", mended by {}", fix.command));
                let _ = writeln!(
                    out,
                    "  {:<10} {}{}{tried}\n             {}",
                    check.name,
                    check.finding.command,
                    fix.unwrap_or_default(),
                    source(&check.finding.evidence)
                );
            }
        }
        for (path, action) in &self.files {
            let _ = writeln!(out, "{action} {path}");
        }
        let run = self.next().iter().map(|argv| argv.join(" ")).collect::<Vec<_>>().join("`, then `");
        let _ = writeln!(out, "next: `{run}`");
        out
    }

    fn next(&self) -> Vec<Vec<String>> {
        let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let Some(first) = self.loops.first() else { return Vec::new() };
        let mut run = argv(&["ll-loop", "run", &first.name]);
        if let [package, ..] = first.packages.as_slice() {
            run.extend(argv(&["--param", &format!("path={package}")]));
        }
        vec![argv(&["ll-loop", "validate"]), run]
    }

    /// Returns the same for programs.
    pub(crate) fn json(&self) -> Value {
        let loops = self.loops.iter().map(|planned| {
            let states = planned.plan.checks.iter().map(|check| {
                let evidence = &check.finding.evidence;
                let tried = self.trials.get(&check.finding.command).map(|tried| match tried {
                    Tried::Ran { exit, took } => {
                        json!({"exit": exit, "duration_ms": millis(*took), "reason": null})
                    }
                    Tried::Not(why) => json!({"exit": null, "duration_ms": null, "reason": why}),
                });
                json!({
                    "name": check.name,
                    "command": check.finding.command,
                    "evidence": {"file": evidence.file, "line": evidence.line, "task": evidence.task},
                    "tried": tried,
                })
            });
            json!({
                "name": planned.name,
                "path": format!("{DIRECTORY}/{}.yaml", planned.name),
                "states": states.collect::<Vec<_>>(),
            })
        });
        json!({
            "files": self.files.iter().map(|(path, action)| json!({"path": path, "action": action})).collect::<Vec<_>>(),
            "loops": loops.collect::<Vec<_>>(),
            "next": self.next(),
            "root": self.root.display().to_string(),
        })
    }
}
