//! A world for the engine that costs nothing: every answer is a number from a sequence that is the same each time.

use std::collections::BTreeMap;
use std::time::Duration;

use ll_loop::internals::base::explanation::Explanation;
use ll_loop::internals::base::name::LoopName;
use ll_loop::internals::base::time::Timestamp;
use ll_loop::internals::definition::load;
use ll_loop::internals::engine::changes::{Changes, SeenTree};
use ll_loop::internals::engine::event::{Event, Llm, LoopStart, SCHEMA, Source, Stamped};
use ll_loop::internals::engine::outcome::Signal;
use ll_loop::internals::engine::question::{AskedAbout, People};
use ll_loop::internals::engine::request::{Input, Next, RestoredTree};
use ll_loop::internals::engine::{Engine, Start};
use ll_loop::internals::evaluate::jq_question::Queried;
use ll_loop::internals::evaluate::model::{ModelAnswer, Usage};
use ll_loop::internals::evaluate::observation::{Observation, Text};
use ll_loop::internals::evaluate::survey::Survey;
use ll_loop::internals::machine::compile::compile;
use ll_loop::internals::machine::{Budget, Machine, OnChange};
use serde_json::{Map, json};

/// When runs begin here.
const BEGAN: i64 = 1_763_682_527_000;

/// Makes the machine of a loop, and the variables that it begins with, where the text is a whole loop.
pub fn machine(text: &str) -> Option<(LoopName, Machine)> {
    let loaded = load::decode("loop.yaml", text, String::new()).ok()?;
    Some((loaded.definition.name.clone(), compile(&loaded.definition).0?))
}

/// Returns how a run of this loop begins.
pub fn start(name: &LoopName) -> LoopStart {
    LoopStart {
        parent: None,
        assignment: None,
        merges: None,
        place: None,
        trace: None,
        r#loop: name.clone(),
        run_id: format!("{name}-1"),
        definition_sha256: "0".repeat(64),
        max_iterations: 20,
        inputs: Vec::new(),
        llm: Llm::Off,
        strict: false,
        no_closing_pass: false,
        policy: Vec::new(),
        checks: Box::default(),
        until_clean: false,
        board: None,
        warnings: Vec::new(),
        nights: Vec::new(),
        source: Source { file: format!(".loops/{name}.yaml"), ..Source::default() },
        commit: None,
        context: Map::new(),
        tree: None,
        on_change: OnChange::Report,
        overrides: Box::default(),
        schema: SCHEMA,
    }
}

/// Returns what an engine is told that begins, or goes on, so.
pub fn told(event: LoopStart) -> Start {
    Start {
        at: Timestamp::from_millis(BEGAN),
        context: event.context.clone(),
        env: BTreeMap::from([("HOME".to_owned(), "/home/x".to_owned())]),
        key: event.run_id.clone(),
        run_dir: "/run".to_owned(),
        deadline: None,
        timeout: None,
        budget: Budget::default(),
        on_handoff: None,
        people: People::Here,
        job: None,
        approvals: Vec::new(),
        merged_head: None,
        shares_tree: false,
        reused: None,
        captured: indexmap(),
        event,
    }
}

fn indexmap<T: Default>() -> T {
    T::default()
}

/// What actions print: what evaluators like, and what they do not.
const OUTPUTS: &[&str] = &[
    "",
    "3 errors\n",
    "0\n",
    "12.5\n",
    "{\"count\": 3, \"ok\": true}\n",
    "[1,2]\n",
    "src/a.rs:3:4: error: odd\n",
    "NaN\n",
    "done\n",
    "yes",
    "-7",
    "1e400\n",
    "CONTEXT_HANDOFF: go on with b\n",
    "{\"verdict\": \"yes\", \"confidence\": 0.9}\n",
];

/// Walks on for at most so many facts, each answered as the sequence says, and returns what happened.
pub fn walk(
    engine: &mut Engine<'_>,
    sequence: &mut impl FnMut() -> u8,
    most: usize,
) -> Vec<(Duration, Event)> {
    let mut all = Vec::new();
    for _ in 0..most {
        let now = engine.elapsed() + Duration::from_millis(u64::from(sequence()) * 7);
        let input = match engine.next() {
            Next::Done(_) => break,
            Next::Begin => Input::Begin,
            _ if sequence() == 255 => {
                let events = engine.cancel(Signal::Term, now);
                all.extend(events.into_iter().map(|event| (now, event)));
                continue;
            }
            Next::Run(_) | Next::Call(_) | Next::Approve(_) => Input::ActionDone(seen(sequence)),
            Next::Prompt(_) | Next::Learn(_) => Input::PromptDone(seen(sequence), usage(sequence)),
            Next::Ask(_) => Input::Answered(answer(sequence)),
            Next::ReadContinuation => {
                Input::Continuation(sequence().is_multiple_of(2).then(|| "go on".to_owned()))
            }
            Next::SubLoop(_) => Input::SubLoopDone(Err(Explanation::new("there is none here"))),
            Next::Survey(_) => Input::Surveyed(match sequence() % 3 {
                0 => Err(Explanation::new("no repository")),
                which => Ok(Survey { head: None, digest: which.to_string() }),
            }),
            Next::Read(_) => Input::FileRead(match sequence() % 3 {
                0 => Err(Explanation::new("denied")),
                1 => Ok(None),
                _ => Ok(Some(br#"{"criteriaStatus":{"a":true},"exit_signal":true}"#.to_vec())),
            }),
            Next::Query(_) => Input::Queried(Queried {
                result: match sequence() % 3 {
                    0 => Err(Explanation::new("no answer")),
                    1 => Ok(json!(null)),
                    _ => Ok(json!(1)),
                },
                stop: None,
            }),
            Next::LookForQuestion => {
                let nowhere = SeenTree::Unknown { unknown: "no repository".to_owned() };
                Input::AskedAbout(AskedAbout::of(&nowhere, Timestamp::from_millis(0)))
            }
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => Input::Looked(SeenTree::Unknown { unknown: "no repository".to_owned() }),
            Next::SetAside(_) => Input::SetAside(Ok(())),
            Next::Restore(_) => Input::Restored(Ok(RestoredTree::default())),
            Next::Measure(_) => {
                Input::Measured(Changes::Unknown { unknown: "no repository".to_owned() }.into())
            }
            Next::Wait(_) => Input::WaitDone,
            Next::Yield => Input::Yielded,
        };
        let events = engine.handle(input, now).expect("every request above has its own answer");
        all.extend(events.into_iter().map(|event| (now, event)));
    }
    all
}

fn seen(sequence: &mut impl FnMut() -> u8) -> Observation {
    let code = [0, 0, 0, 1, 1, 2, 124, 127, 137, -1][usize::from(sequence()) % 10];
    let output = OUTPUTS[usize::from(sequence()) % OUTPUTS.len()];
    let stderr = Text::whole(OUTPUTS[usize::from(sequence()) % OUTPUTS.len()]);
    Observation { stderr, duration: Duration::from_millis(3), ..Observation::exited(code, output) }
}

fn usage(sequence: &mut impl FnMut() -> u8) -> Usage {
    Usage { calls: 1, input_tokens: sequence().into(), output_tokens: sequence().into(), ..Usage::default() }
}

fn answer(sequence: &mut impl FnMut() -> u8) -> ModelAnswer {
    let reply = match sequence() % 4 {
        0 => Err(Explanation::new("it is not there")),
        1 => Ok(json!({"verdict": "yes", "confidence": 0.8, "reason": "it is"})),
        2 => Ok(json!({"verdict": "no"})),
        _ => Ok(json!({"verdict": 3, "confidence": "high"})),
    };
    ModelAnswer { reply, stop: None, usage: usage(sequence) }
}

/// Returns the journal of a run of this loop, as it would be written.
pub fn journal(name: &LoopName, machine: &Machine, seed: u8) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let mut sequence = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let mut engine = Engine::new(machine, told(start(name)));
    let mut text = Vec::new();
    for (seq, (at, event)) in walk(&mut engine, &mut sequence, 25).into_iter().enumerate() {
        let ts = Timestamp::from_millis(BEGAN + i64::try_from(at.as_millis()).unwrap_or_default());
        let stamped = Stamped { at, ..Stamped::new(ts, seq as u64 + 1, event) };
        serde_json::to_writer(&mut text, &stamped).expect("an event is JSON");
        text.push(b'\n');
    }
    text
}
