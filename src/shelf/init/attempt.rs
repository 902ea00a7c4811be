//! Tries the checks of a repository, each once, in a copy of it. While it does, it says so: a stranger waits here for the first time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::base::text::one_line;
use crate::base::time::human;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::interrupts::Interrupts;
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::files::{read, transient};
use crate::git::call::Call;
use crate::process::guard_pipe::Guard;
use crate::process::spawn::{self, Heard, ProcessLimits, Program};
use crate::repository;
use crate::shelf::upkeep::{Check, Planned, Repository, Trials, Tried, install_of};
use crate::tools::{CouldNotRun, Lack, could_not_run};

/// How long a check may take.
const LIMIT: Duration = Duration::from_mins(5);

/// How many of the last lines of a check are kept.
const LAST: usize = 5;

/// How much of the end of the output is looked at, in bytes.
const MAX_KEPT: usize = 64 << 10;

/// The longest line that is shown.
const MAX_SHOWN: usize = 160;

/// Tries every check.
pub(super) fn all(
    root: &Path,
    repository: &Repository,
    planned: &Planned,
    session: &Session<'_>,
) -> Result<Trials, Error> {
    let failed =
        |error: std::io::Error| Error::failed("cannot copy the repository to try its checks", &error);
    let attempt = CheckTrial { repository, session, interrupts: Interrupts::listen(&session.stop_by)? };
    session.talk.note("copying the working tree, to try the checks in the copy");
    let place = transient::directory("").map_err(failed)?;
    let copy = place.path().join("copy");
    attempt.copied(root, &copy, true).map_err(failed)?;
    // A copy that was broken off ends without an error.
    attempt.stopped()?;
    let mut trials = Trials::default();
    for planned in &planned.loops {
        // Packages of one loop have equal commands, so that one of them shows whether these run.
        let package = planned.packages.first().map(String::as_str);
        for check in planned.plan.checks.iter().chain(&planned.plan.tentative) {
            if trials.of(&check.finding).is_none() {
                let below = copy.join(package.unwrap_or("")).join(&check.finding.directory);
                let tried = attempt.check(check, &copy, &below, package)?;
                trials.note(&check.finding, tried);
            }
        }
    }
    session.talk.note(&format!("tried all checks in {}", human(trials.took())));
    Ok(trials)
}

/// A try of the checks of a repository.
struct CheckTrial<'a, 's> {
    repository: &'a Repository,
    session: &'a Session<'s>,
    interrupts: Interrupts,
}

impl CheckTrial<'_, '_> {
    fn check(&self, check: &Check, copy: &Path, below: &Path, package: Option<&str>) -> Result<Tried, Error> {
        let talk = self.session.talk;
        let command = one_line(&check.finding.command, MAX_SHOWN);
        talk.note(&format!("trying {}: {command}", check.name));
        // Anew before each check, so that none is blamed for what an earlier one has changed.
        let before = self.seen(copy);
        let (seen, printed) = self.run(&check.finding.command, below);
        talk.progress("");
        self.stopped()?;
        let changed = changed(&before, &self.seen(copy));
        let changed = changed.map(|path| path.strip_prefix(copy).unwrap_or(&path).display().to_string());
        let tried = self.tried(check, &seen, &printed, changed, package);
        talk.note(&format!("{}: {} in {}", check.name, said(&tried), human(tried.took())));
        Ok(tried)
    }

    fn tried(
        &self,
        check: &Check,
        seen: &Observation,
        printed: &str,
        changed: Option<String>,
        package: Option<&str>,
    ) -> Tried {
        let took = seen.duration;
        let not = |why: String, advice: String| Tried::CouldNotRun { why, advice, took };
        let words = shlex::split(&check.finding.command);
        match (seen.stop, &seen.failure, seen.exit_code) {
            (Some(_), ..) => {
                // What was cut off has said neither yes nor no.
                let minutes = LIMIT.as_secs() / 60;
                return not(format!("it took more than {minutes} minutes"), "run it by itself".to_owned());
            }
            (None, Some(why), _) => return not(why.clone(), Lack::Program.advice().to_owned()),
            (None, None, _) if seen.signal.is_some() => {
                return not("a signal ended it".to_owned(), "run it by itself".to_owned());
            }
            (None, None, _) => {}
        }
        let code = seen.exit_code;
        let last: Vec<String> = last_lines(printed);
        if let Some(found) = could_not_run(words.as_deref(), code, printed) {
            let missing = missing_program(&found.said).or_else(|| missing_program(printed));
            let advice = match missing.filter(|_| found.lacks == Lack::Program) {
                Some(program) => self.install(program, check, package),
                None => self.advice(&found, check, package),
            };
            return not(found.said, advice);
        }
        // With these codes a shell says that it cannot start a program, or does not find it.
        if matches!(code, 126 | 127) {
            let why = last.last().cloned().unwrap_or_else(|| format!("exit {code}"));
            let program = words.iter().flatten().next().map_or("", String::as_str);
            let advice = self.install(missing_program(&why).unwrap_or(program), check, package);
            return not(why, advice);
        }
        // Hooks change files on purpose, and are asked again by the loop.
        match changed.filter(|_| !check.mends_itself()) {
            Some(path) => Tried::Changed { path, took },
            None => Tried::Ran { exit: code, took, last },
        }
    }

    /// Says what brings a program that is not there: what the repository depends on, in the words of the repository, unless it is
    /// what that is installed with, or what the check itself calls.
    fn install(&self, program: &str, check: &Check, package: Option<&str>) -> String {
        let begins = |command: &str| {
            let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
            !program.contains('/') && words.next() == Some(program)
        };
        let install = install_of(self.repository, &check.finding, package);
        match install.filter(|install| !begins(install) && !begins(&check.finding.command)) {
            Some(install) => format!("run `{install}` first"),
            None => format!("install `{program}`, or put it on PATH"),
        }
    }

    /// Says what to do about a check that could not run, in the words of the repository where it has some.
    fn advice(&self, found: &CouldNotRun, check: &Check, package: Option<&str>) -> String {
        let install = install_of(self.repository, &check.finding, package);
        let is_missing = matches!(found.lacks, Lack::Packages | Lack::Program);
        match install.filter(|_| is_missing) {
            Some(install) => format!("run `{install}` first"),
            None => found.lacks.advice().to_owned(),
        }
    }

    /// Runs a command as the loop will: with the same shell. The end of what it printed is returned in the order of time, whichever
    /// stream it went to: a reader wants the last of both.
    fn run(&self, command: &str, directory: &Path) -> (Observation, String) {
        let program = Program {
            argv: ["bash", "-euo", "pipefail", "-c", command].map(str::to_owned).to_vec(),
            env: self.session.env.for_actions(false).into_iter().collect(),
            cwd: Some(directory.to_owned()),
            stdin: None,
            guard: Guard::default(),
        };
        let limits = ProcessLimits { end: Some((LIMIT, Stop::Timeout)), ..ProcessLimits::default() };
        let mut cancel = self.interrupts.cancel();
        let talk = self.session.talk;
        let mut end: Vec<u8> = Vec::new();
        let mut show = |_: Stream, bytes: &[u8]| {
            end.extend_from_slice(bytes);
            // Not at each piece: what is kept is moved.
            if end.len() > 2 * MAX_KEPT {
                end.drain(..end.len() - MAX_KEPT);
            }
            let text = String::from_utf8_lossy(bytes);
            if let Some(line) = text.lines().map(str::trim).rfind(|line| !line.is_empty()) {
                talk.progress(&one_line(line, MAX_SHOWN));
            }
            Heard::More
        };
        let seen = self.interrupts.block_on(spawn::run(&program, limits, &mut cancel, &mut show));
        (seen, String::from_utf8_lossy(&end).into_owned())
    }

    /// Ends the try if somebody asked for that: nothing is written, and the copy goes.
    fn stopped(&self) -> Result<(), Error> {
        let cancel = self.interrupts.cancel();
        self.interrupts.block_on(cancel.catch_up());
        match cancel.signal() {
            Some(signal) => {
                let error = Error::refused("interrupted, and nothing was written");
                Err(error.of_kind(Kind::Interrupted(crate::run::named(signal))))
            }
            None => Ok(()),
        }
    }

    /// Copies a directory with everything in it, ignored files as well; blocks are shared where the file system can. What an
    /// earlier `init` wrote is not part of the tree that is tried.
    fn copied(&self, from: &Path, to: &Path, is_top: bool) -> std::io::Result<()> {
        fs_err::create_dir_all(to)?;
        for entry in fs_err::read_dir(from)? {
            let entry = entry?;
            let (path, target, kind) = (entry.path(), to.join(entry.file_name()), entry.file_type()?);
            if is_top && entry.file_name() == crate::definition::load::DIRECTORY {
                continue;
            }
            if kind.is_dir() {
                if self.stopped().is_err() {
                    return Ok(());
                }
                self.copied(&path, &target, false)?;
            } else if kind.is_symlink() {
                // A link stays a link: followed, it could lead out of the tree, or into a circle.
                fs_err::os::unix::fs::symlink(fs_err::read_link(&path)?, &target)?;
            } else if kind.is_file() {
                // Nothing but files: a pipe or a device could be read forever.
                read::copy(&path, &target)?;
            }
        }
        Ok(())
    }

    /// Returns the files that belong to the repository, each with what tells that it is another one now. What git ignores does
    /// not belong to it.
    fn seen(&self, copy: &Path) -> SeenFiles {
        let list = Call::new("ls-files").with(&["-z", "--cached", "--others", "--exclude-standard"]);
        // Without a `.git` of its own, git would look for a repository above the copy.
        let listed = copy
            .join(".git")
            .exists()
            .then(|| repository::at(copy, self.session).bytes(&list, &[]).ok())
            .flatten();
        let paths: Vec<PathBuf> = match listed {
            Some(bytes) => String::from_utf8_lossy(&bytes)
                .split('\0')
                .filter(|path| !path.is_empty())
                .map(|path| copy.join(path))
                .collect(),
            None => walked(copy),
        };
        let stamped = paths.into_iter().filter_map(|path| {
            let metadata = fs_err::symlink_metadata(&path).ok()?;
            // Length and time tell a change without reading every file twice for each check.
            Some((path, (metadata.len(), metadata.modified().ok())))
        });
        stamped.collect()
    }
}

/// The files of a directory, each with its length and the time of its last change.
type SeenFiles = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Returns the files of a directory that no git knows, but for those that tools keep for themselves.
fn walked(directory: &Path) -> Vec<PathBuf> {
    const KEPT: [&str; 8] =
        [".git", "node_modules", "target", "build", "dist", "__pycache__", ".venv", "coverage"];
    let (mut files, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(place) = open.pop() {
        let Ok(entries) = fs_err::read_dir(&place) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else { continue };
            let is_kept = KEPT.contains(&name.as_ref()) || name.ends_with("_cache") || name.starts_with('.');
            if kind.is_dir() && !is_kept {
                open.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files
}

/// Returns a file that was there before and is another one now. A new one may be what a test leaves behind.
fn changed(before: &SeenFiles, after: &SeenFiles) -> Option<PathBuf> {
    before.iter().find(|(path, was)| after.get(*path) != Some(was)).map(|(path, _)| path.clone())
}

/// Returns the program that a shell, or make, did not find, by the last line that says so.
fn missing_program(printed: &str) -> Option<&str> {
    printed.lines().rev().find_map(missing_in)
}

fn missing_in(line: &str) -> Option<&str> {
    let line = line.trim_end();
    // make starts simple commands without a shell, and says this of a program that is not there.
    let of_make = line.strip_suffix(": No such file or directory").filter(|_| line.starts_with("make"));
    let ends = [": command not found", ": not found", ": Command not found"];
    let before = of_make.or_else(|| ends.into_iter().find_map(|end| line.strip_suffix(end)))?;
    let name = before.rsplit(": ").next()?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

fn last_lines(printed: &str) -> Vec<String> {
    let lines: Vec<String> =
        printed.lines().map(|line| one_line(line, MAX_SHOWN)).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LAST)..].to_vec()
}

fn said(tried: &Tried) -> String {
    match tried {
        Tried::Ran { exit: 0, .. } => "passed".to_owned(),
        Tried::Ran { exit, .. } => format!("failed with exit code {exit}"),
        Tried::CouldNotRun { why, .. } => format!("could not run ({why})"),
        Tried::Changed { path, .. } => format!("changed {path}"),
    }
}
