//! Chooses the run to resume that a user names by its loop, its id, or the beginning of its id.

use std::path::{Path, PathBuf};

use super::listed_runs::{ambiguous, known_as};
use crate::base::advised_command;
use crate::base::diagnostic::nearest;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::definition::load::{self, DIRECTORY};
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::journal::claim;
use crate::journal::files::RunFiles;
use crate::journal::known::{self, KnownRun, RunStatus};
use crate::report::advice::loop_of;

/// A run to resume, or one that ended and only has to be finished.
pub(crate) enum Chosen {
    /// It can be resumed; its `.loops` is in this directory.
    Left(PathBuf, Box<KnownRun>),
    /// It ended, and its reports or its archiving are still to do.
    Unfinished(Box<KnownRun>),
}

/// Finds a run by its id, by its loop or the file of its loop, or by the beginning of its id.
pub(crate) fn choose(name: &str, session: &Session<'_>) -> Result<Chosen, Error> {
    let file = load::find(name, &session.cwd).ok().and_then(|located| located.path.canonicalize().ok());
    let unreadable = |error| Error::failed("cannot look for runs", &error).of_kind(Kind::Refused);
    let mut others = Vec::new();
    for root in load::ancestors(&session.cwd) {
        let loops = root.join(DIRECTORY);
        let is_meant =
            |run: &KnownRun| run.files.instance() == name || of_loop(run, name, (&root, file.as_deref()));
        // A child of a killed run has its lock until it calls exec, and until then the run looks alive.
        claim::outlive_children(&RunFiles::running(&loops)).map_err(unreadable)?;
        let open = known::open(&loops).map_err(unreadable)?;
        let archived = known::archived(&loops).map_err(unreadable)?;
        let all = || open.iter().chain(&archived);
        let mut meant: Vec<KnownRun> = all().filter(|run| is_meant(run)).cloned().collect();
        // A whole name comes first: the same text may be the beginning of other ids.
        if meant.is_empty() {
            let begins = |run: &&KnownRun| run.files.instance().starts_with(name);
            let of = |runs: &[KnownRun]| runs.iter().filter(begins).cloned().collect::<Vec<_>>();
            meant = Some(of(&open)).filter(|open| !open.is_empty()).unwrap_or_else(|| of(&archived));
            if let [one, other, ..] = meant.as_slice() {
                return Err(ambiguous(name, [one, other]));
            }
        }
        let mut meant = known::in_order(meant);
        // A run may move to the history between the two listings.
        meant.dedup_by(|later, earlier| later.files.instance() == earlier.files.instance());
        if meant.is_empty() {
            others.extend(open);
            continue;
        }
        return newest(meant, root, session);
    }
    Err(nothing_there(name, file.is_some(), &others))
}

/// Takes the newest of these runs that anything can be done about.
fn newest(mut runs: Vec<KnownRun>, root: PathBuf, session: &Session<'_>) -> Result<Chosen, Error> {
    let has_begun = |run: &KnownRun| run.ends.start.is_some();
    let is_success = |run: &KnownRun| run.status == RunStatus::Ended(Outcome::Success);
    let is_unfinished = |run: &KnownRun| !run.status.is_resumable() && run.is_to_be_finished();
    let was_left = |run: &KnownRun| run.status.is_resumable() && has_begun(run);
    let last = runs.iter().rposition(|run| !run.status.is_live() && has_begun(run));
    // A success leaves nothing to do, but an older run that was left may.
    let is_done = |at: &usize| is_success(&runs[*at]) && !is_unfinished(&runs[*at]);
    let older = || runs.iter().rposition(was_left);
    let taken = last.and_then(|last| if is_done(&last) { older().or(Some(last)) } else { Some(last) });
    let taken = runs.remove(taken.unwrap_or(runs.len() - 1));
    if is_unfinished(&taken) {
        return Ok(Chosen::Unfinished(Box::new(taken)));
    }
    if taken.status.is_live() || !has_begun(&taken) || is_success(&taken) {
        return Err(cannot_go_on(&taken));
    }
    runs.retain(was_left);
    say_others(&taken, &runs, session);
    Ok(Chosen::Left(root, Box::new(taken)))
}

fn of_loop(run: &KnownRun, name: &str, (root, file): (&Path, Option<&Path>)) -> bool {
    let Some((_, start)) = &run.ends.start else { return run.name == name };
    let is_of_file = |file: &Path| root.join(&start.source.file).canonicalize().is_ok_and(|of| of == file);
    known_as(run) == name || file.is_some_and(is_of_file)
}

fn say_others(newest: &KnownRun, others: &[KnownRun], session: &Session<'_>) {
    if others.is_empty() {
        return;
    }
    let names: Vec<_> = others.iter().rev().map(|run| run.files.instance()).collect();
    session.talk.note(&format!(
        "{} runs can go on; taking the newest, {}\n  to continue another one, name it: {}",
        others.len() + 1,
        newest.files.instance(),
        names.join(", ")
    ));
}

fn cannot_go_on(run: &KnownRun) -> Error {
    let instance = run.files.instance();
    let name = run.ends.start.as_ref().map_or(run.name.as_str(), |(_, start)| loop_of(start));
    match (run.status, &run.ends.complete) {
        (RunStatus::Running | RunStatus::Queued, _) => {
            Error::refused(format!("the run {instance} is running")).of_kind(Kind::Taken).with_hint(format!(
                "follow it with `{}`, or end it with `{}`",
                advised_command::follow(instance),
                advised_command::stop(instance)
            ))
        }
        (RunStatus::Ended(_), Some(end)) => over(instance, name, end),
        (RunStatus::Ended(_) | RunStatus::Unsaved | RunStatus::Crashed, _) => never_began(instance, name),
    }
}

pub(crate) fn over(instance: &str, name: &str, end: &LoopComplete) -> Error {
    let (outcome, state) = (end.outcome.word(), &end.final_state);
    let message =
        format!("the run {instance} of `{name}` has ended ({outcome} in {state}), and nothing is left to do");
    Error::refused(message)
        .of_kind(Kind::Over)
        .with_hint(format!("start a new one with `{}`", advised_command::run(name)))
}

pub(crate) fn never_began(instance: &str, name: &str) -> Error {
    Error::refused(format!("the run {instance} ended before its first step, and nothing was done"))
        .with_hint(format!("start a new one with `{}`", advised_command::run(name)))
}

fn nothing_there(name: &str, is_loop: bool, others: &[KnownRun]) -> Error {
    if is_loop {
        return Error::refused(format!("there is no run of `{name}` to resume"))
            .with_hint(format!("start one with `{}`", advised_command::run(name)));
    }
    let loops = others.iter().map(|run| run.name.as_str());
    let names: Vec<&str> = loops.chain(others.iter().map(|run| run.files.instance())).collect();
    let refused = Error::refused(format!("no run and no loop is named `{name}`"));
    match nearest(name, names.iter().copied()) {
        Some(near) => refused.with_hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => refused.with_hint("nothing here was interrupted, handed off or killed"),
        None => refused.with_hint(format!("these can be resumed: {}", names.join(", "))),
    }
}
