//! Answers queries: a jq expression of a loop file may run for ever and take any memory, so it is executed in a process
//! of its own, which is bounded and ended like an action.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::base::time::human;
use crate::engine::request::QueryRequest;
use crate::evaluate::jq;
use crate::evaluate::observation::{Observation, Stop, Stream};
use crate::evaluate::query::{LONGEST_VALUE, Queried, Query};
use crate::process::bounds::{self, Bounds};
use crate::process::spawn::{self, Heard, ProcessLimits, Program};

use super::{World, while_ticking};

/// The memory that a query may take.
const MEMORY: u64 = 1024 * 1024 * 1024;

/// The time of a processor that a query may take, if nobody ends it before. It is for one whose run was killed.
const LONGEST: Duration = Duration::from_hours(1);

/// An answer that is longer is none of ours.
const LONGEST_ANSWER: usize = 2 * LONGEST_VALUE;

/// The program that answers queries: one that calls [`serve`] and nothing else.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program and its arguments.
    pub argv: Vec<String>,
}

impl Default for Helper {
    /// The program of this crate, wherever PATH finds it.
    fn default() -> Self {
        Self::of(Path::new("ll-loop"), "answer-query")
    }
}

impl Helper {
    /// Makes a helper of a program that calls [`serve`] when its first argument is this.
    pub fn of(program: &Path, argument: &str) -> Self {
        Self { argv: vec![program.to_string_lossy().into_owned(), argument.to_owned()] }
    }
}

/// Answers a query, or says why there is no answer.
pub(super) async fn perform(request: &QueryRequest, world: &mut World) -> Queried {
    if world.cancel.signal().is_some() {
        return Queried { result: Err("the run is to end".to_owned()), stop: Some(Stop::Cancelled) };
    }
    let program = Program {
        argv: world.helper.argv.clone(),
        // Expressions can read the environment, which is nobody's business here.
        env: Vec::new(),
        cwd: None,
        stdin: Some(written(&request.query)),
    };
    let limits = ProcessLimits { end: request.end, idle: None };
    let mut answer = Vec::new();
    let mut keep = |stream: Stream, bytes: &[u8]| {
        if stream == Stream::Stdout {
            answer.extend_from_slice(bytes);
        }
        if answer.len() > LONGEST_ANSWER { Heard::Stop(Stop::Timeout) } else { Heard::More }
    };
    let sinks = RefCell::new(&mut world.sinks);
    let seen = while_ticking(&sinks, spawn::run(&program, limits, &mut world.cancel, &mut keep)).await;
    let stop = seen.stop.filter(|stop| stop.is_end_of_run());
    Queried { result: read(&seen, &answer, request), stop }
}

/// Says what came of a query from what the helper did.
fn read(seen: &Observation, answer: &[u8], request: &QueryRequest) -> Result<Value, String> {
    let filter = crate::base::text::one_line(&request.query.filter, 60);
    let failed = |why: &str| Err(format!("`{filter}` {why}"));
    if let Some(why) = &seen.failure {
        return failed(&format!("was not answered: {why}"));
    }
    if answer.len() > LONGEST_ANSWER {
        return failed("was answered at too great length");
    }
    if seen.stop.is_some() {
        let limit = request.end.map(|(limit, _)| human(limit)).unwrap_or_default();
        return failed(&format!("was stopped after {limit}"));
    }
    if let Ok(answer) = serde_json::from_slice::<Result<Value, String>>(answer) {
        return answer;
    }
    match seen.signal {
        // An allocation that fails and a stack that is full both end so.
        Some(signal) => failed(&format!(
            "was ended by signal {signal}: it needs more than {} MiB of memory, or calls itself too deeply",
            MEMORY / 1024 / 1024
        )),
        None => failed(&format!("was not answered (exit {})", seen.exit_code)),
    }
}

/// Writes a query as the helper reads it: who asks and the length of the expression in a line, the expression, the
/// document.
fn written(query: &Query) -> String {
    format!("{} {}\n{}{}", std::process::id(), query.filter.len(), query.filter, query.text)
}

/// Reads back who asks, the expression and the document.
fn understood(text: &str) -> Option<(u32, &str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let (asker, length) = line.split_once(' ')?;
    let (filter, document) = rest.split_at_checked(length.parse().ok()?)?;
    Some((asker.parse().ok()?, filter, document))
}

/// Answers one query, which is read from `input`, and writes the answer to `output`. This process is bounded by it.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    let (parent, filter, document) = understood(&text).ok_or(io::ErrorKind::InvalidInput)?;
    bounds::apply(Bounds { parent, memory: MEMORY, processor: LONGEST })?;
    let answer = jq::run(filter, document);
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_back_as_it_was_written() {
        for (filter, text) in [(".a | 1", "{}"), ("", ""), ("\n3\n", "\n"), (".ключ|.", "é")] {
            let query = Query { filter: filter.to_owned(), text: text.to_owned() };
            assert_eq!(understood(&written(&query)), Some((std::process::id(), filter, text)));
        }
        let broken = ["", "x", "1 9\nab", "1 1\né", "1\na", "x 1\na"];
        assert_eq!(broken.map(understood), [None; 6]);
    }
}
