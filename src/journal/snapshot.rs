//! `state.json`: where a run stands, for people and other tools. Written anew after every batch, whole or not at all;
//! never read back by ll-loop itself, which folds the journal.

use std::io::{self, Write as _};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::base::redact::Redactor;
use crate::base::time::{Timestamp, millis};
use crate::engine::Engine;
use crate::engine::event::TAIL;
use crate::engine::execution;
use crate::engine::outcome::Outcome;
use crate::engine::result::StateResult;
use crate::engine::run::{Pending, Phase, Run};
use crate::evaluate::Evaluate;

use super::fault;
use super::files::RunFiles;

/// The version of the format. Readers refuse a newer one.
pub const SCHEMA: u32 = 1;

/// How many messages, the last ones, are in the file: the cost of a step must not grow with the length of the run.
const MESSAGES: usize = 100;

/// What the file says that the engine does not know.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The claimed paths.
    pub scope: Vec<String>,
    /// The process.
    pub pid: u32,
    /// The machine.
    pub host: String,
}

/// Makes the content of the file, without secrets.
pub fn snapshot(
    engine: &Engine<'_>,
    around: &Surroundings,
    now: Timestamp,
    last_seq: u64,
    redactor: &Redactor,
) -> Value {
    let (run, start) = (engine.run(), engine.start());
    let complete = match run.phase() {
        Phase::Done(complete) => Some(complete),
        Phase::Pending(_) | Phase::Deciding(_) => None,
    };
    let current = run.current().unwrap_or_else(|| engine.machine().name_of(engine.machine().initial));
    let mut content = json!({
        "schema": SCHEMA,
        "loop": start.event.r#loop,
        "instance": start.event.run_id,
        "status": status(complete.map(|complete| complete.outcome)),
        "outcome": complete.map(|complete| complete.outcome.word()),
        "current_state": current,
        "iteration": run.iteration(),
        "step": run.step(),
        "cycle": run.cycle(),
        "attempt": run.attempt(),
        "captured": captured(run, redactor),
        "prev": run.prev().map(|prev| result(prev, redactor)),
        "last_result": run.evaluation().map(|seen| json!({ "verdict": seen.verdict, "details": seen.details })),
        "context": start.context,
        "messages": run.messages().iter().rev().take(MESSAGES).rev().collect::<Vec<_>>(),
        "message_count": run.message_count(),
        "counters": counters(engine),
        "budget": run.usage(),
        "handoffs": run.handoffs(),
        "continuation_prompt": run.handoff().and_then(|handoff| handoff.continuation.as_ref()),
        "started_at": start.at,
        "updated_at": now,
        "elapsed_ms": millis(engine.elapsed()),
        "definition_sha256": start.event.definition_sha256,
        "overrides": start.event.overrides,
        "scope": around.scope,
        "pid": around.pid,
        "host": around.host,
        "last_seq": last_seq,
    });
    if let (Some(board), Some(fields)) = (board(engine), content.as_object_mut()) {
        fields.insert("board".to_owned(), board);
    }
    redactor.json(&mut content);
    content
}

/// Replaces the file. Half a file is never seen: the new one takes the place of the old one in one step.
///
/// The two change places, and the old one is written over the next time. Renaming over a file would do the same, but
/// some file systems (ext4) then start to write the disk at once, which takes ten times as long as everything else
/// here. Nobody needs that: what a crash of the machine may lose is in the journal.
pub fn write(files: &RunFiles, content: &Value) -> io::Result<()> {
    let (target, spare) = (files.state(), files.spare_state());
    let mut bytes = serde_json::to_vec(content)?;
    bytes.push(b'\n');
    let mut file = fs_err::OpenOptions::new().write(true).create(true).truncate(false).open(&spare)?;
    fault::point();
    fault::write(bytes.len() as u64)?;
    file.write_all(&bytes)?;
    file.set_len(bytes.len() as u64)?;
    drop(file);
    fault::point();
    swap(&spare, &target).or_else(|_| fs_err::rename(&spare, &target))?;
    fault::point();
    Ok(())
}

/// Lets two files change places. Fails when one is not there, or where the file system cannot do it.
#[cfg(target_os = "linux")]
fn swap(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Lets two files change places: not here.
#[cfg(not(target_os = "linux"))]
fn swap(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the word for how a run stands.
pub fn status(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "running",
        Some(Outcome::Success) => "completed",
        Some(Outcome::Handoff) => "awaiting_continuation",
        Some(Outcome::Interrupted) => "interrupted",
        Some(Outcome::Timeout) => "timed_out",
        Some(
            Outcome::Failure
            | Outcome::Exhausted
            | Outcome::Stopped
            | Outcome::Error
            | Outcome::Blocked
            | Outcome::OverBudget
            | Outcome::Unavailable,
        ) => "failed",
    }
}

fn captured(run: &Run, redactor: &Redactor) -> Value {
    let captured = run.captured().iter().map(|(name, seen)| (name.clone(), result(seen, redactor)));
    Value::Object(captured.collect())
}

/// Streams are cut to their ends: the cost of a step must not grow with what earlier steps printed.
fn result(result: &StateResult, redactor: &Redactor) -> Value {
    let seen = &result.seen;
    let output = seen.stdout.without_line_end();
    json!({
        "state": result.state,
        "output": redactor.tail(output, TAIL),
        "stderr": redactor.tail(seen.stderr.without_line_end(), TAIL),
        "exit_code": seen.exit_code,
        "duration_ms": millis(seen.duration),
        "verdict": result.verdict,
        "truncated": output.len() > TAIL || seen.stdout.is_truncated(),
        "output_bytes": seen.stdout.bytes(),
    })
}

fn counters(engine: &Engine<'_>) -> Value {
    let run = engine.run();
    let edges: Map<String, Value> =
        run.edges().iter().map(|((from, to), count)| (format!("{from} -> {to}"), json!(count))).collect();
    let convergence: Map<String, Value> = run
        .memories()
        .iter()
        .map(|(id, memory)| (engine.machine().step(*id), memory))
        .filter(|(step, _)| matches!(step.evaluate, Some(Evaluate::Convergence(_))))
        .map(|(step, memory)| (step.name.to_string(), memory.clone()))
        .collect();
    let stall: Map<String, Value> = run
        .streaks()
        .map(|(id, visits)| (engine.machine().step(id).name.to_string(), visits.into()))
        .collect();
    json!({
        "retries": run.attempt().saturating_sub(1),
        "edges": edges,
        "convergence": convergence,
        "stall": stall,
    })
}

/// The task board and how far its work is, in the words of those who plan work.
fn board(engine: &Engine<'_>) -> Option<Value> {
    if !engine.machine().has_board() {
        return None;
    }
    let board = engine.run().board();
    let (has_begun, end) = match engine.run().phase() {
        Phase::Pending(Pending::Start) => (false, None),
        Phase::Pending(_) | Phase::Deciding(_) => (true, None),
        Phase::Done(end) => (true, Some(end)),
    };
    Some(execution::shown(has_begun, board, end))
}
