//! The directory: its loops and what they need, where their runs are kept, its repository, its disk, and the CI system.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::row::{DoctorRow, RowState};
use crate::base::text::{one_line, plural};
use crate::ci::{Provider, is_ci};
use crate::context::Session;
use crate::definition::load::{self, DIRECTORY, LoadError};
use crate::git::call::Call;
use crate::machine::{Action, ApprovalAction, compile};
use crate::repository;
use crate::shell::command::commands;
use crate::tools::{Tool, recognise};

const AREA: &str = "directory";

/// Less room than this ends runs sooner or later: journals, logs and snapshots are written all the time.
const LITTLE: u64 = 100 << 20;

/// What the loops of the directory are, and what they need beside a shell.
#[derive(Default)]
pub(super) struct Needs {
    loops: u64,
    /// The first of those that cannot be used, and how many they are.
    broken: Option<(String, u64)>,
    /// Why an agent is needed.
    pub(super) agent: Option<String>,
    /// The first loop that asks a person.
    asks: Option<String>,
    /// The first loop that lets teams answer.
    pub(super) teams: Option<String>,
    /// Why a repository of git is needed.
    pub(super) worktree: Option<String>,
    /// The programs of checks that are called by themselves, each with its tool and why it is needed.
    pub(super) checks: BTreeMap<String, (&'static Tool, String)>,
}

/// Reads the loops that are found from here.
pub(super) fn needs(session: &Session<'_>) -> Needs {
    let mut needs = Needs::default();
    // In CI, no agent is asked unless somebody says so.
    let asks = !is_ci(&session.env.lookup());
    // One that a nearer file hides is not run by its name.
    for listed in load::list(&session.cwd).into_iter().filter(|listed| listed.hidden_by.is_none()) {
        let name = one_line(&listed.name, 100);
        let loaded = match listed.located.and_then(|located| load::load(&located)) {
            Ok(loaded) => loaded,
            // Other YAML may lie beside the loops, and a library is not run by itself: neither counts as a broken loop.
            Err(LoadError::Rejected { rejected, .. }) if !rejected.is_loop => continue,
            Err(LoadError::Library { .. }) => continue,
            Err(_) => {
                needs.break_by(name);
                continue;
            }
        };
        let (Some(machine), _) = compile::compile(&loaded.definition) else {
            needs.break_by(name);
            continue;
        };
        needs.loops += 1;
        for (_, step) in machine.steps() {
            if asks && !machine.llm.is_forbidden && step.can_ask() {
                needs.agent.get_or_insert_with(|| format!("the loop `{name}` may ask an agent"));
            }
            if let Some(Action::Approval(_)) = &step.action {
                needs.asks.get_or_insert_with(|| name.clone());
            }
            if let Some(Action::Approval(ApprovalAction { approvers: Some(approvers), .. })) = &step.action
                && !approvers.teams.is_empty()
            {
                needs.teams.get_or_insert_with(|| name.clone());
            }
            if let Some((program, tool)) = step.action.as_ref().and_then(called) {
                let why = || (tool, format!("the loop `{name}` checks with it"));
                needs.checks.entry(program).or_insert_with(why);
            }
            if matches!(&step.action, Some(Action::SubLoop(sub)) if sub.worktree.is_some()) {
                needs.worktree.get_or_insert_with(|| format!("the loop `{name}` works in a worktree"));
            }
        }
    }
    needs
}

/// Returns the known tool that an action calls by itself, with the word by which it does. What another program finds, as `npx` does,
/// need not be on `PATH`.
fn called(action: &Action) -> Option<(String, &'static Tool)> {
    let Action::Shell(shell) = action else { return None };
    let commands = commands(shell.text.source());
    let words: Vec<String> = commands
        .iter()
        .find(|command| command.is_plain)?
        .values()
        .into_iter()
        .map_while(|word| word.map(str::to_owned))
        .collect();
    let program = words.first()?.clone();
    let tool = recognise(&words)?.tool;
    // A path is not looked up on `PATH`, and may be made by the loop itself.
    (!program.contains('/') && tool.programs().contains(&program)).then_some((program, tool))
}

impl Needs {
    fn break_by(&mut self, name: String) {
        self.broken.get_or_insert((name, 0)).1 += 1;
    }
}

pub(super) fn rows(needs: &Needs, session: &Session<'_>) -> Vec<DoctorRow> {
    let root = load::ancestors(&session.cwd).into_iter().find(|root| root.join(DIRECTORY).is_dir());
    let root = root.unwrap_or_else(|| session.cwd.clone());
    let lookup = session.env.lookup();
    let ci =
        if is_ci(&lookup) { Provider::detect(&lookup).name() } else { "none: runs are shown to a person" };
    let mut rows = vec![
        DoctorRow::new("ci", "provider", RowState::Fact, ci),
        loops(needs),
        state(root.join(DIRECTORY), needs, session),
        repository(needs, session),
        disk(&root, needs),
    ];
    rows.extend(needs.teams.as_deref().map(|name| team_token(name, session)));
    // Elsewhere the token of a job may ask.
    let is_gitea = session.env.get("GITEA_ACTIONS").is_some()
        || [".gitea", ".forgejo"].iter().any(|home| root.join(home).is_dir());
    rows.extend(needs.asks.as_deref().filter(|_| is_gitea).map(answer_token));
    rows
}

/// Tells whether the members of teams can be read, without which comments of theirs are refused.
fn team_token(name: &str, session: &Session<'_>) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new("ci", "team token", state, said);
    let needs = format!("the loop `{name}` lets teams answer");
    match session.env.team_token() {
        Some(_) => row(RowState::Fact, format!("{needs}, and `LL_TEAM_TOKEN` is set")),
        None => row(RowState::Fact, format!("{needs}, and no `LL_TEAM_TOKEN` is set here"))
            .fix("give workflows a token that may read the members of teams, as `team-token`"),
    }
}

/// Tells that comments are refused on Gitea with the token of a job.
fn answer_token(name: &str) -> DoctorRow {
    let said = format!(
        "the loop `{name}` asks people, and on Gitea and Forgejo the token of a job may not ask who may write"
    );
    DoctorRow::new("ci", "token for comments", RowState::Fact, said)
        .fix("give `commands.yml` and `chain.yml` the token of a person who administers the repository, as `token`")
}

fn loops(needs: &Needs) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new(AREA, "loops", state, said);
    let found = plural(needs.loops, "loop");
    match &needs.broken {
        Some((name, count)) => {
            row(RowState::Fails, format!("{found}, and {count} with errors, such as `{name}`"))
                .fix("`ll-loop validate` shows them")
        }
        None if needs.loops == 0 => row(RowState::Absent, "none here".to_owned())
            .fix("`ll-loop init` writes one from the checks of the repository"),
        None => row(RowState::Works, found),
    }
}

/// Tells whether runs can be written. Nothing is written to find out.
fn state(loops: PathBuf, needs: &Needs, session: &Session<'_>) -> DoctorRow {
    let running = loops.join(".running");
    // Before the first run `.running` is not there, and is made in the other one.
    let place = [running, loops].into_iter().find(|place| place.is_dir());
    let row = |state, said: String| DoctorRow::new(AREA, "state", state, said);
    let Some(place) = place else {
        return row(RowState::Fact, format!("no {DIRECTORY} here yet"));
    };
    let shown = place.strip_prefix(&session.cwd).unwrap_or(&place);
    let shown = one_line(&shown.to_string_lossy(), 100);
    match rustix::fs::access(&place, rustix::fs::Access::WRITE_OK) {
        Ok(()) => row(RowState::Works, format!("{shown} can be written")),
        Err(error) => row(RowState::Fails, format!("{shown} cannot be written: {error}"))
            .fix("let this user write there; runs keep their journals in it"),
    }
    .needed((needs.loops > 0).then_some("runs are kept there"))
}

fn repository(needs: &Needs, session: &Session<'_>) -> DoctorRow {
    let git = repository::at(&session.cwd, session);
    let row = |state, said: String| DoctorRow::new(AREA, "repository", state, said);
    let inside = git.line(&Call::new("rev-parse").with(&["--is-inside-work-tree"]));
    let row = match inside.as_deref() {
        Ok("true") => {
            // It fails where a commit is checked out without a branch, as most jobs of CI do.
            let branch = git.line(&Call::new("symbolic-ref").with(&["--quiet", "--short", "HEAD"]));
            let branch = branch.map_or_else(|_| "no branch".to_owned(), |branch| one_line(&branch, 60));
            let status = git.line(&Call::new("status").with(&["--porcelain", "-z", "--no-renames"]));
            let changed = status.map(|status| plural(repository::changed(&status).count() as u64, "change"));
            let listed = git.line(&Call::new("worktree").with(&["list", "--porcelain"]));
            let trees = listed.map(|listed| {
                let count = |mark| listed.lines().filter(|line| line.starts_with(mark)).count() as u64;
                (plural(count("worktree "), "working tree"), count("prunable"))
            });
            let failed = |why: &dyn std::fmt::Display, fix| {
                row(RowState::Fails, one_line(&why.to_string(), 120)).fix(fix)
            };
            match (changed, trees) {
                (Err(why), _) => failed(&why, "`git status` says more"),
                (Ok(_), Err(why)) => failed(&why, "`git worktree list` says more"),
                (Ok(changed), Ok((trees, 0))) => {
                    row(RowState::Works, format!("{branch}, {changed}, {trees}"))
                }
                (Ok(changed), Ok((trees, gone))) => {
                    row(RowState::Fails, format!("{branch}, {changed}, {trees}, {gone} of them gone"))
                        .fix("`git worktree prune` forgets those that are gone")
                }
            }
        }
        Ok(_) => row(RowState::Fails, "inside of a git directory".to_owned()).fix("go to the working tree"),
        Err(_) => {
            row(RowState::Absent, "not in a git repository, or git does not trust its owner".to_owned())
                .fix("`git init`, or `git config --global --add safe.directory DIR`")
        }
    };
    // Working trees that are gone are in no one's way.
    let is_usable = inside.as_deref() == Ok("true");
    row.needed(needs.worktree.as_ref().filter(|_| !is_usable))
}

fn disk(root: &std::path::Path, needs: &Needs) -> DoctorRow {
    let row = |state, said: String| DoctorRow::new(AREA, "disk", state, said);
    match rustix::fs::statvfs(root) {
        Err(error) => row(RowState::Fails, error.to_string()),
        Ok(found) => {
            // Not `f_bfree`, a part of which only root may use.
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let said = format!("{} MiB free", free >> 20);
            if found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
                row(RowState::Fails, "it is read-only".to_owned())
                    .fix("mount it for writing; runs are kept there")
            } else if free < LITTLE {
                row(RowState::Fails, said).fix("make room; `ll-loop history --prune` removes old runs")
            } else {
                row(RowState::Works, said)
            }
        }
    }
    .needed((needs.loops > 0).then_some("runs are kept there"))
}
