//! Tries the checks of a repository, each once, in a copy of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::evaluate::observation::{Observation, Stop};
use crate::files::{read, transient};
use crate::process::guard::Guard;
use crate::process::signal::Cancel;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::session::context::Session;
use crate::session::error::Error;
use crate::shelf::upkeep::PlannedLoop;
use crate::shelf::upkeep::write::{Trials, Tried};

/// How long a check may take.
const LIMIT: Duration = Duration::from_mins(5);

/// Tries every check.
pub(super) fn all(root: &Path, loops: &[PlannedLoop], session: &Session<'_>) -> Result<Trials, Error> {
    let failed =
        |error: std::io::Error| Error::failed("cannot copy the repository to try its checks", &error);
    let place = transient::directory("").map_err(failed)?;
    let copy = place.path().join("copy");
    copied(root, &copy).map_err(failed)?;
    let mut trials = Trials::new();
    for planned in loops {
        let directory = planned.packages.first().map_or_else(|| copy.clone(), |package| copy.join(package));
        for check in &planned.plan.checks {
            let command = &check.finding.command;
            if !trials.contains_key(command) {
                let before = seen(&directory);
                let ran = run(command, &directory, session);
                let changed = changes(&before, &seen(&directory));
                trials.insert(command.clone(), tried(ran, changed));
            }
        }
    }
    Ok(trials)
}

fn tried(ran: Result<Observation, String>, changed: Option<PathBuf>) -> Tried {
    let seen = match ran {
        Ok(seen) => seen,
        Err(why) => return Tried::Not(format!("it could not run: {why}")),
    };
    let printed = format!("{}\n{}", seen.stdout.as_str(), seen.stderr.as_str());
    let of_make = ["Error 126", "Error 127"].iter().any(|sign| printed.contains(sign));
    match (seen.stop, &seen.failure, seen.exit_code) {
        (Some(_), ..) => Tried::Not("it took more than 5 minutes".to_owned()),
        (None, Some(why), _) => Tried::Not(format!("it could not run: {why}")),
        (None, None, code @ (126 | 127)) => Tried::Not(format!("it could not run: exit {code}")),
        (None, None, _) if of_make => Tried::Not("it could not run: make did not find a program".to_owned()),
        (None, None, _) if seen.signal.is_some() => Tried::Not("it was killed by a signal".to_owned()),
        (None, None, exit) => match changed {
            Some(path) => Tried::Not(format!("it changed {}, so it is no check", path.display())),
            None => Tried::Ran { exit, took: seen.duration },
        },
    }
}

fn run(command: &str, directory: &Path, session: &Session<'_>) -> Result<Observation, String> {
    let program = Program {
        argv: ["sh", "-c", command].map(str::to_owned).to_vec(),
        env: session.env.for_actions(false).into_iter().collect(),
        cwd: Some(directory.to_owned()),
        stdin: None,
        guard: Guard::default(),
    };
    let limits = ProcessLimits { end: Some((LIMIT, Stop::Timeout)), ..ProcessLimits::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let (_never, mut cancel) = Cancel::channel();
    Ok(runtime.block_on(spawn::run(&program, limits, &mut cancel, &mut |_, _| Heard::More)))
}

/// Copies a directory with everything in it, ignored files as well; blocks are shared where the file system can.
fn copied(from: &Path, to: &Path) -> std::io::Result<()> {
    fs_err::create_dir_all(to)?;
    for entry in fs_err::read_dir(from)? {
        let entry = entry?;
        let (path, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            copied(&path, &target)?;
        } else if kind.is_symlink() {
            fs_err::os::unix::fs::symlink(fs_err::read_link(&path)?, &target)?;
        } else if kind.is_file() {
            read::copy(&path, &target)?;
        }
    }
    Ok(())
}

/// Returns the files of a directory with what is in them, but for those that tools keep for themselves.
fn seen(directory: &Path) -> BTreeMap<PathBuf, (u64, Option<std::time::SystemTime>)> {
    const KEPT: [&str; 8] =
        [".git", "node_modules", "target", "build", "dist", "__pycache__", ".venv", "coverage"];
    let (mut files, mut open) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(place) = open.pop() {
        let Ok(entries) = fs_err::read_dir(&place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir()
                && !KEPT.contains(&name.as_ref())
                && !name.ends_with("_cache")
                && !name.starts_with('.')
            {
                open.push(entry.path());
            } else if kind.is_file()
                && let Ok(metadata) = entry.metadata()
            {
                files.insert(entry.path(), (metadata.len(), metadata.modified().ok()));
            }
        }
    }
    files
}

/// Returns a file that was there before and is another one now. A new one may be what a test leaves behind.
fn changes(
    before: &BTreeMap<PathBuf, (u64, Option<std::time::SystemTime>)>,
    after: &BTreeMap<PathBuf, (u64, Option<std::time::SystemTime>)>,
) -> Option<PathBuf> {
    let changed = before.iter().find(|(path, was)| after.get(*path) != Some(was));
    changed.and_then(|(path, _)| path.file_name()).map(PathBuf::from)
}
