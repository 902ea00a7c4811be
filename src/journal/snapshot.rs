//! `state.json`: the present state of a run, for people and other tools. Replaced as a whole after every batch of
//! events; never read back by ll-loop itself, which folds the journal.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::Path;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value};

use super::fault;
use super::files::RunFiles;
use crate::base::name::{LoopName, StateName};
use crate::base::redact::Redactor;
use crate::base::time::{Timestamp, millis};
use crate::engine::changes::TreeChanges;
use crate::engine::event::{Overrides, TAIL};
use crate::engine::outcome::Outcome;
use crate::engine::question::Awaiting;
use crate::engine::run::{Pending, Phase};
use crate::engine::state_result::StateResult;
use crate::engine::verification::Verification;
use crate::engine::{Engine, execution};
use crate::evaluate::Evaluate;
use crate::evaluate::model::Usage;
use crate::evaluate::verdict::Verdict;
use crate::files::read;

/// The version of the format. Readers refuse a newer one.
pub const SCHEMA: u32 = 1;

/// How many of the last messages are in the file: the cost of a step must not grow with the length of the run.
const MESSAGES: usize = 100;

/// The fields of the file that the engine does not know.
#[derive(Clone, Debug, Serialize)]
pub struct Surroundings {
    /// The claimed paths.
    pub scope: Vec<String>,
    /// The process.
    pub pid: u32,
    /// The machine.
    pub host: String,
}

/// The content of the file, without secrets.
pub struct Snapshot(Vec<u8>);

impl Snapshot {
    /// Describes the present state of a run.
    pub fn of(
        engine: &Engine<'_>,
        around: &Surroundings,
        now: Timestamp,
        last_seq: u64,
        redactor: &Redactor,
    ) -> io::Result<Self> {
        let fields = StateFields::of(engine, around, now, last_seq, redactor);
        // Straight to text where nothing has to be hidden: a tree of values costs more in each step.
        let mut bytes = if redactor.is_empty() {
            serde_json::to_vec(&fields)?
        } else {
            let mut value = serde_json::to_value(&fields)?;
            redactor.json(&mut value);
            serde_json::to_vec(&value)?
        };
        bytes.push(b'\n');
        Ok(Self(bytes))
    }
}

/// The fields of the file, in their order.
#[derive(Serialize)]
struct StateFields<'r> {
    schema: u32,
    r#loop: &'r LoopName,
    instance: &'r str,
    status: &'static str,
    outcome: Option<&'static str>,
    current_state: &'r StateName,
    iteration: u32,
    step: u32,
    cycle: u32,
    attempt: u32,
    captured: IndexMap<&'r str, ShownResult<'r>>,
    prev: Option<ShownResult<'r>>,
    last_result: Option<LastResult<'r>>,
    context: &'r Map<String, Value>,
    messages: &'r [String],
    message_count: u64,
    counters: Counters<'r>,
    budget: &'r Usage,
    handoffs: u32,
    continuation_prompt: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    awaiting: Option<&'r Awaiting>,
    started_at: Timestamp,
    updated_at: Timestamp,
    elapsed_ms: u64,
    changes: Option<&'r TreeChanges>,
    verification: Option<&'r Verification>,
    definition_sha256: &'r str,
    overrides: &'r Overrides,
    #[serde(flatten)]
    around: &'r Surroundings,
    last_seq: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    board: Option<Value>,
}

/// What a state did. Streams are cut to their ends: the cost of a step must not grow with what earlier steps printed.
#[derive(Serialize)]
struct ShownResult<'r> {
    state: &'r StateName,
    output: Cow<'r, str>,
    stderr: Cow<'r, str>,
    exit_code: i32,
    duration_ms: u64,
    verdict: Option<&'r Verdict>,
    truncated: bool,
    output_bytes: u64,
}

/// The verdict of the last state.
#[derive(Serialize)]
struct LastResult<'r> {
    verdict: &'r Verdict,
    details: &'r Map<String, Value>,
}

#[derive(Serialize)]
struct Counters<'r> {
    retries: u32,
    edges: IndexMap<String, u32>,
    convergence: IndexMap<&'r str, &'r Value>,
    stall: IndexMap<&'r str, u32>,
}

impl<'r> StateFields<'r> {
    fn of(
        engine: &'r Engine<'_>,
        around: &'r Surroundings,
        now: Timestamp,
        last_seq: u64,
        redactor: &Redactor,
    ) -> Self {
        let (run, start) = (engine.run(), engine.start());
        let ended = match run.phase() {
            Phase::Done(complete) => Some(complete),
            Phase::Pending(_) | Phase::Deciding(_) => None,
        };
        let outcome = ended.map(|end| end.outcome);
        let captured = run.captured().iter();
        let messages = run.messages();
        let last = run.evaluation();
        Self {
            schema: SCHEMA,
            r#loop: &start.event.r#loop,
            instance: &start.event.run_id,
            status: status(outcome),
            outcome: outcome.map(Outcome::word),
            current_state: run
                .current()
                .unwrap_or_else(|| engine.machine().name_of(engine.machine().initial)),
            iteration: run.iteration(),
            step: run.step(),
            cycle: run.cycle(),
            attempt: run.attempt(),
            captured: captured.map(|(name, seen)| (name.as_str(), ShownResult::of(seen, redactor))).collect(),
            prev: run.prev().map(|prev| ShownResult::of(prev, redactor)),
            last_result: last.map(|last| LastResult { verdict: &last.verdict, details: &last.details }),
            context: &start.context,
            messages: &messages[messages.len().saturating_sub(MESSAGES)..],
            message_count: run.message_count(),
            counters: Counters::of(engine),
            budget: run.usage(),
            handoffs: run.handoffs(),
            continuation_prompt: run.handoff().and_then(|handoff| handoff.continuation.as_deref()),
            awaiting: run.question().map(|question| &question.awaiting),
            started_at: start.at,
            updated_at: now,
            elapsed_ms: millis(engine.elapsed()),
            changes: ended.and_then(|end| end.changes.as_ref()?.known()),
            verification: ended.and_then(|end| end.verification.as_deref()),
            definition_sha256: &start.event.definition_sha256,
            overrides: &start.event.overrides,
            around,
            last_seq,
            board: board(engine),
        }
    }
}

impl<'r> ShownResult<'r> {
    fn of(result: &'r StateResult, redactor: &Redactor) -> Self {
        let seen = &result.seen;
        let output = seen.stdout.without_line_end();
        Self {
            state: &result.state,
            // Not a plain tail: a cut within a secret would leave a half that is not recognized.
            output: redactor.tail(output, TAIL),
            stderr: redactor.tail(seen.stderr.without_line_end(), TAIL),
            exit_code: seen.exit_code,
            duration_ms: millis(seen.duration),
            verdict: result.verdict.as_ref(),
            truncated: output.len() > TAIL || seen.stdout.is_truncated(),
            output_bytes: seen.stdout.bytes(),
        }
    }
}

impl<'r> Counters<'r> {
    fn of(engine: &'r Engine<'_>) -> Self {
        let (run, machine) = (engine.run(), engine.machine());
        let steps = run.memories().iter().map(|(id, memory)| (machine.step(*id), memory));
        let convergence = steps.filter(|(step, _)| matches!(step.evaluate, Some(Evaluate::Convergence(_))));
        Self {
            retries: run.attempt().saturating_sub(1),
            edges: run
                .edges()
                .iter()
                .map(|((from, to), count)| (format!("{from} -> {to}"), *count))
                .collect(),
            convergence: convergence.map(|(step, memory)| (step.name.as_str(), memory)).collect(),
            stall: run.streaks().map(|(id, visits)| (machine.step(id).name.as_str(), visits)).collect(),
        }
    }
}

/// Replaces the file in one step, so that readers never see half a file.
///
/// Two files swap their names, and the old one is overwritten the next time. Renaming over a file would do the
/// same, but some file systems (ext4) then start to write the disk at once, which takes ten times as long as
/// everything else here. That durability is not needed: after a crash of the machine, the journal has what is lost
/// here.
pub fn write(files: &RunFiles, Snapshot(bytes): &Snapshot) -> io::Result<()> {
    let (target, spare) = (files.state(), files.spare_state());
    let options = &mut fs_err::OpenOptions::new();
    // Overwritten in place: truncating it first would be one more transaction of the file system.
    let mut file = read::open_with(
        &spare,
        options.write(true).create(true).truncate(false),
        rustix::fs::OFlags::empty(),
    )?;
    fault::point();
    fault::write(bytes.len() as u64)?;
    file.write_all(bytes)?;
    // Only if the length changes: ext4 makes a transaction of every call, which costs more than the write.
    if file.metadata()?.len() > bytes.len() as u64 {
        file.set_len(bytes.len() as u64)?;
    }
    drop(file);
    fault::point();
    swap(&spare, &target).or_else(|_| fs_err::rename(&spare, &target))?;
    fault::point();
    Ok(())
}

/// Swaps the names of two files. Fails if one does not exist, or if the file system does not support it.
#[cfg(target_os = "linux")]
fn swap(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Not supported on this system.
#[cfg(not(target_os = "linux"))]
fn swap(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns the word for the status of a run.
pub fn status(outcome: Option<Outcome>) -> &'static str {
    match outcome {
        None => "running",
        Some(Outcome::Success) => "completed",
        Some(Outcome::Handoff) => "awaiting_continuation",
        Some(Outcome::Interrupted | Outcome::LeaseLost) => "interrupted",
        Some(Outcome::Timeout) => "timed_out",
        Some(
            Outcome::Failure
            | Outcome::Exhausted
            | Outcome::Stopped
            | Outcome::Cancelled
            | Outcome::Error
            | Outcome::Blocked
            | Outcome::OverBudget
            | Outcome::Unavailable,
        ) => "failed",
    }
}

/// The task board and its progress.
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
