//! Makes a case of a run: what its actions came to becomes mocks, with where they come from.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::case_text::CaseText;
use super::expected::path;
use super::prepare::{FindInner, StateWork, work_of};
use super::recorded_run::{RecordedRun, RecordedWork};
use crate::base::sum::Sum;
use crate::base::text::tail;
use crate::engine::event::Stamped;
use crate::evaluate::observation::Observation;
use crate::machine::{Action, Machine};

/// How much of an output a mock keeps, in bytes.
// A test file is read by people. The end is kept, where most tools say how it went.
const KEPT: usize = 2_000;

/// How many digits of a digest are written.
// It only tells commands of one loop apart, and stands in every mock.
const DIGITS: usize = 12;

/// Makes a case of a run of this machine and of the loops below it.
pub fn case(run: &RecordedRun, events: &[Stamped], machine: &Machine, find: &mut FindInner<'_>) -> CaseText {
    let mut mocks: IndexMap<String, Vec<Value>> = IndexMap::new();
    for work in &run.works {
        let state = work_of(&work.key, machine, find);
        mocks.entry(work.key.clone()).or_default().push(mock(work, run, state.as_ref()));
    }
    let mut expect = Map::new();
    if let Some(end) = &run.end {
        expect.insert("outcome".to_owned(), end.outcome.word().into());
    }
    expect.insert("path".to_owned(), path(events).into());
    // Only what was given: the other values are defaults, which the loop has by itself.
    let given =
        run.start.inputs.iter().filter_map(|name| Some((name.clone(), run.start.context.get(name)?.clone())));
    let given: Map<String, Value> = given.collect();
    let declared = |name: &String| machine.parameters.keys().any(|known| known.as_str() == name);
    let (params, context): (Map<_, _>, Map<_, _>) = given.into_iter().partition(|(name, _)| declared(name));
    let given = [("params", params), ("context", context)];
    CaseText {
        name: format!("as in {}", run.start.run_id),
        given: given
            .into_iter()
            .filter(|(_, map)| !map.is_empty())
            .map(|(key, map)| (key.to_owned(), map.into()))
            .collect(),
        mocks,
        expect,
        ..CaseText::default()
    }
}

fn mock(work: &RecordedWork, run: &RecordedRun, state: Option<&StateWork>) -> Value {
    let mut mock = Map::new();
    let action = state.and_then(|state| state.action.as_ref());
    let is_judged = state.is_some_and(|state| state.is_judged);
    match &work.seen {
        None => {
            mock.insert("killed".to_owned(), true.into());
            mock.insert("resume".to_owned(), (run.resumes > 0).into());
        }
        Some(seen) => observed(seen, action, &mut mock),
    }
    let judge = work.reply.as_ref().and_then(|reply| reply.as_ref().ok()).filter(|_| is_judged);
    if let Some(reply) = judge {
        for key in ["verdict", "confidence", "reason"] {
            if let Some(value) = reply.get(key) {
                mock.insert(key.to_owned(), value.clone());
            }
        }
    }
    let digest: String = Sum::of(work.text.as_bytes()).to_string().chars().take(DIGITS).collect();
    mock.insert("from".to_owned(), json!({"run": run.start.run_id, "at": work.at, "digest": digest}));
    Value::Object(mock)
}

/// Writes what an action came to in the keys of its kind.
fn observed(seen: &Observation, action: Option<&Action>, mock: &mut Map<String, Value>) {
    let out = tail(seen.stdout.without_line_end(), KEPT);
    if seen.timed_out() {
        mock.insert("timed_out".to_owned(), true.into());
        return;
    }
    match action {
        Some(Action::Prompt(prompt)) => {
            let answers = prompt.answer.as_ref().and_then(|_| serde_json::from_str::<Value>(out).ok());
            match answers {
                Some(answers) => drop(mock.insert("answers".to_owned(), answers)),
                None => drop(mock.insert("says".to_owned(), out.into())),
            }
            if seen.exit_code != 0 {
                mock.insert("exit".to_owned(), seen.exit_code.into());
            }
        }
        Some(Action::Approval(_)) => {
            let verdict = match (seen.exit_code, out.is_empty()) {
                (0, true) => "approve",
                (0, false) => "edit",
                _ => "reject",
            };
            mock.insert("verdict".to_owned(), verdict.into());
            if !out.is_empty() {
                mock.insert("text".to_owned(), out.into());
            }
        }
        Some(Action::Tool(_)) => match seen.exit_code {
            0 => drop(mock.insert("result".to_owned(), out.into())),
            127 => drop(mock.insert("not_found".to_owned(), true.into())),
            _ => drop(mock.insert("is_error".to_owned(), out.into())),
        },
        Some(Action::Learning(_)) => {
            mock.insert("verdict".to_owned(), if seen.exit_code == 0 { "yes" } else { "blocked" }.into());
        }
        Some(Action::Shell(_) | Action::SubLoop(_) | Action::Board(_)) | None => {
            match (&seen.failure, seen.signal) {
                (Some(why), _) => drop(mock.insert("not_started".to_owned(), why.clone().into())),
                (None, Some(signal)) => drop(mock.insert("signal".to_owned(), signal.to_string().into())),
                (None, None) => drop(mock.insert("exit".to_owned(), seen.exit_code.into())),
            }
            if !out.is_empty() && seen.failure.is_none() {
                mock.insert("stdout".to_owned(), out.into());
            }
            let err = tail(seen.stderr.without_line_end(), KEPT);
            if !err.is_empty() {
                mock.insert("stderr".to_owned(), err.into());
            }
        }
    }
}
