//! Formats runs for commands: in one line, in detail, and as JSON.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::base::advised_command;
use crate::base::text::one_line;
use crate::base::time::{Timestamp, human};
use crate::board::Board;
use crate::cli::output::Output;
use crate::engine::execution;
use crate::journal::awaiting::awaiting;
use crate::journal::claim::ClaimStanding;
use crate::journal::known::{KnownRun, RunStatus, state_now, state_problem};
use crate::journal::reader;
use crate::report::board_work::BoardWork;
use crate::report::digest::Digest;
use crate::report::stages;

/// The most tasks that are listed.
const MAX_TASKS: usize = 100;

/// Shows a run in one line, to people or to programs.
pub(super) fn show(run: &KnownRun, as_json: bool, now: Timestamp, output: &Output) {
    if as_json {
        output.json(json(run));
    } else {
        output.data(&line(run, now));
    }
}

/// Returns one line about a run.
pub(super) fn line(run: &KnownRun, now: Timestamp) -> String {
    format!("{}  {}", run.files.instance(), standing(run, now))
}

/// Returns one line about a run that is over, with its date.
pub(super) fn dated(run: &KnownRun, now: Timestamp) -> String {
    // As wide as a date, so that the columns stay.
    let date = run.started().map_or_else(|| "unknown date    ".to_owned(), Timestamp::minute);
    format!("{date}  {}  {}", run.files.instance(), standing(run, now))
}

/// Returns how a run stands, where, and how long it took, as the rest of a line.
fn standing(run: &KnownRun, now: Timestamp) -> String {
    let mut out = word(run);
    if let Some(place) = &run.ends.place {
        let _ = write!(out, "  {}, iteration {}, step {}", place.state, place.iteration, place.step);
    }
    match (run.started(), &run.ends.complete) {
        (_, Some(complete)) => {
            let duration = std::time::Duration::from_millis(complete.duration_ms);
            let _ = write!(out, "  took {}", human(duration));
        }
        (Some(started), None) if run.status.is_live() => {
            let _ = write!(out, "  for {}", human(now.since(started)));
        }
        (_, None) => {}
    }
    out.push('\n');
    out
}

/// Returns the status, and the outcome where that says more.
fn word(run: &KnownRun) -> String {
    let word = run.status.word();
    match run.status {
        RunStatus::Ended(outcome)
            if matches!(word, "completed" | "failed") && outcome.word() != "failure" =>
        {
            format!("{word} ({})", outcome.word())
        }
        RunStatus::Unsaved => format!("{word} (error)"),
        RunStatus::Queued | RunStatus::Running | RunStatus::Crashed | RunStatus::Ended(_) => word.to_owned(),
    }
}

/// Formats the details of a run for a person.
pub(super) fn details(run: &KnownRun, now: Timestamp) -> String {
    let mut out = format!("{}: {}\n", run.files.instance(), word(run));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<10} {}", one_line(value, 400));
    };
    let at = |time: Timestamp| format!("{time}, {} ago", human(now.since(time)));
    match &run.ends.start {
        Some((_, start)) => row("loop", &format!("{} ({})", run.name, start.source.file)),
        None => row("loop", &run.name),
    }
    if let Some(place) = &run.ends.place {
        let iteration = match &run.ends.start {
            Some((_, start)) => format!("{} of at most {}", place.iteration, start.max_iterations),
            None => place.iteration.to_string(),
        };
        let pass = place.pass.as_ref().map_or_else(String::new, |pass| format!(", {pass}"));
        row("state", &format!("{}, iteration {iteration}, step {}{pass}", place.state, place.step));
    }
    if let Some(started) = run.started() {
        row(if run.status == RunStatus::Queued { "queued" } else { "started" }, &at(started));
    }
    if let Some((last, _)) = run.ends.last {
        row("last event", &at(last));
    }
    if let Some(complete) = &run.ends.complete {
        row("because", &complete.reason);
    }
    if let Some(awaiting) = awaiting(run) {
        row("asks", &awaiting.shown());
        row("open until", &format!("{}, code {}", awaiting.until.minute(), awaiting.code));
    }
    if let Some(record) = run.claim.as_ref().and_then(|claim| claim.record.as_ref()) {
        row("process", &format!("{} on {}", record.pid, record.host));
        row("scope", &record.territory.shown().join(", "));
    }
    if run.files.log().exists() {
        row("log", &run.files.log().display().to_string());
    }
    if run.files.worktree().exists() {
        row("worktree", &run.files.worktree().display().to_string());
    }
    if let Some(why) = &run.unreadable {
        row("journal", &format!("cannot be read: {why}"));
    }
    if let Some(problem) = state_problem(run) {
        row("state.json", &format!("{problem}; this is what the journal says"));
    }
    let work = board(run).and_then(|board| serde_json::from_value::<Board>(board).ok()).map(BoardWork::on);
    if let Some(standing) = work.as_ref().and_then(stages::standing) {
        row("tasks", &standing);
    }
    for line in work.iter().flat_map(|work| stages::tree(work, MAX_TASKS)) {
        let _ = writeln!(out, "    {line}");
    }
    if let Some(advice) = advice(run) {
        let _ = writeln!(out, "  {:<10} {}", "next", one_line(&advice, 2000));
    }
    out
}

/// Returns the task board of a run that has one, as it is in `state.json`; where that does not agree with the
/// journal, as the journal tells it.
fn board(run: &KnownRun) -> Option<Value> {
    run.ends.start.as_ref().filter(|(_, start)| start.board.is_some())?;
    if let Some(mut state) = state_now(run) {
        return state.get_mut("board").map(Value::take);
    }
    // Only the tasks are shown, and the steps of a long run would fill the memory.
    let mut digest = Digest::without_steps(0);
    reader::read(&run.files.journal(), |event| digest.event(&event)).ok()?;
    let board = digest.work()?.board();
    Some(execution::shown(digest.has_begun(), board, digest.end()))
}

/// Returns the advice for a run: what can be done with it.
fn advice(run: &KnownRun) -> Option<String> {
    let resume = advised_command::resume(run.files.instance());
    if !run.status.is_resumable() && run.is_to_be_finished() {
        return Some(format!("its process ended before the run was reported; `{resume}` does the rest"));
    }
    if let Some(awaiting) = awaiting(run) {
        let answer = advised_command::answer(run.files.instance()).option("--code", &awaiting.code);
        return Some(format!("`{answer}` answers it, as does `reject` or a text instead of `approve`"));
    }
    let gone = if run.status == RunStatus::Crashed { "its process is gone; " } else { "" };
    (run.status.is_resumable() && run.unreadable.is_none()).then(|| format!("{gone}`{resume}` continues it"))
}

/// Returns the same for programs.
pub(super) fn json(run: &KnownRun) -> Value {
    let start = run.ends.start.as_ref().map(|(_, start)| start);
    let place = run.ends.place.as_ref();
    let complete = run.ends.complete.as_ref();
    let record = run.claim.as_ref().and_then(|claim| claim.record.as_ref());
    let path = |path: PathBuf| path.exists().then(|| path.display().to_string());
    json!({
        "instance": run.files.instance(),
        "loop": run.name,
        "file": start.map(|start| &start.source.file),
        "status": run.status.word(),
        "live": run.status.is_live(),
        "resumable": run.status.is_resumable(),
        "outcome": complete.map(|complete| complete.outcome.word()),
        "exit_code": complete.map(|complete| complete.exit_code),
        "verified": complete.map(|complete| complete.verified),
        "reason": complete.map(|complete| &complete.reason),
        "awaiting": awaiting(run),
        "current_state": place.map(|place| &place.state),
        "iteration": place.map(|place| place.iteration),
        "step": place.map(|place| place.step),
        "max_iterations": start.map(|start| start.max_iterations),
        "parent": start.and_then(|start| start.parent.as_ref()),
        "started_at": run.started(),
        "updated_at": run.ends.last.map(|(at, _)| at),
        "duration_ms": complete.map(|complete| complete.duration_ms),
        "waiting": run.claim.as_ref().is_some_and(|claim| claim.standing == ClaimStanding::Waits),
        "pid": record.map(|record| record.pid),
        "host": record.map(|record| &record.host),
        "scope": record.map(|record| record.territory.shown()),
        "board": board(run),
        "journal": path(run.files.journal()),
        "state": path(run.files.state()),
        "state_problem": state_problem(run),
        "log": path(run.files.log()),
        "worktree": path(run.files.worktree()),
    })
}
