//! A run that was asked to end before its last event is interrupted, wherever the request comes, and goes on as if
//! nobody had asked: loops with every kind of work, answers and requests at random.

use super::generated::{any_loop_of, chosen};
use super::resumed::folded;
use super::*;
use crate::engine::event::LoopComplete;
use crate::engine::past::Standing;
use crate::engine::run::Deciding;

/// A loop of a few states with every kind of work, of route and of end.
fn any_loop_of_every_kind() -> impl Strategy<Value = String> {
    let shapes = vec![
        "action: x, next: @",
        "action: x, next: @, on_error: @, timeout: 9, on_timeout: @",
        "next: @",
        "action: x, on_yes: @, on_no: @, on_error: @, timeout: 9",
        "action: x, on_yes: @",
        "action: x, on_yes: @, on_no: $current, on_error: $current, max_retries: 2, retry_delay: 1s, on_retry_exhausted: @",
        "action: x, evaluate: {type: classify}, route: {go: @, back: @, blocked: @, _error: @}",
        "action: x, evaluate: {type: diff_stall}, on_yes: @, on_no: @, on_error: @",
        "evaluate: {type: criteria}, route: {done: @, continue: @, inactive: @, _: @}",
        "loop: kid, on_success: @, on_failure: @",
        "loop: kid, on_success: @",
        "action_type: prompt, action: ask, on_yes: @, on_no: @, on_error: @",
        "action_type: prompt, action: ask, next: @",
        "action_type: mcp_tool, action: server/tool, on_success: @, on_tool_error: @, on_error: @",
        "action_type: board, action: next, on_done: @, on_task: @, on_stuck: @, on_error: @",
    ];
    any_loop_of(shapes, top, "  done: {terminal: true, action: bye}\n  failed: {terminal: true}\n")
}

fn top(mut switches: [bool; 7], target: &str) -> String {
    // One of the two kinds of stall at most.
    switches[5] &= !switches[4];
    let lines = [
        format!("on_error: {target}"),
        format!("on_max_iterations: {target}"),
        "backoff: 1".to_owned(),
        "maintain: true\nmaintain_delay: 1h".to_owned(),
        format!("stall: {{window: 2, action: {target}}}"),
        "stall: {window: 2}".to_owned(),
        "timeout: 7".to_owned(),
    ];
    format!("max_iterations: 4\nmax_steps: 15\n{}", chosen(switches, lines))
}

fn any_answer() -> impl Strategy<Value = Observation> {
    prop_oneof![
        8 => answer(),
        1 => prop_oneof![Just("FATAL_ERROR: all is lost"), Just("LOOP_STOP: enough"), Just("CONTEXT_HANDOFF: b")]
            .prop_map(|line| Observation::exited(0, format!("{line}\n"))),
    ]
}

/// How the work ends that runs when the request comes.
#[derive(Clone, Copy, Debug)]
enum WorkEnd {
    /// It is stopped.
    Stopped,
    /// It comes to its own end all the same.
    Ends,
}

/// The facts of a world in which everything depends on the step alone, so that a step that is done again comes to the
/// same.
struct FactsByStep<'a>(&'a [Observation]);

impl FactsByStep<'_> {
    fn fact(&self, engine: &Engine<'_>) -> Option<Input> {
        let step = engine.run().step() as usize;
        let closing = matches!(engine.run().phase(), Phase::Pending(Pending::Closing(_)));
        let seen = &self.0[(step + usize::from(closing)) % self.0.len()];
        Some(match engine.next() {
            Next::Done(_) => return None,
            Next::Begin => Input::Begin,
            Next::Wait(_) => Input::WaitDone,
            Next::Yield => Input::Yielded,
            Next::Run(_) | Next::Call(_) | Next::Approve(_) => Input::ActionDone(seen.clone()),
            Next::Prompt(_) | Next::Learn(_) => Input::PromptDone(seen.clone(), call()),
            Next::Ask(request) => {
                Input::Answered(answered(&Observation::exited(0, ["yes", "no"][step % 2]), request))
            }
            Next::ReadContinuation => Input::Continuation(Some("what was written down".to_owned())),
            Next::SubLoop(request) => Input::SubLoopDone(sub_loop_end(request, seen)),
            Next::Survey(_) => Input::Surveyed(tree('a')),
            Next::LookForQuestion => unreachable!("somebody is at the terminal"),
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => Input::Looked(super::changes::looked()),
            Next::SetAside(_) => Input::SetAside(Ok(())),
            Next::Restore(_) => Input::Restored(Ok(RestoredTree::default())),
            Next::Measure(request) => Input::Measured(super::changes::changed(&request.start).into()),
            Next::Read(_) => {
                let file = step
                    .is_multiple_of(2)
                    .then(|| br#"{"active": true, "criteria": {"a": {"met": false}}}"#.to_vec());
                Input::FileRead(Ok(file))
            }
            Next::Query(_) => {
                Input::Queried(Queried { result: Ok(serde_json::json!(step % 2)), stop: seen.stop })
            }
        })
    }

    /// Drives a run for so many turns; every fact comes at a time that the step decides.
    fn drive(&self, engine: &mut Engine<'_>, turns: usize) -> Vec<Event> {
        let mut all = Vec::new();
        for _ in 0..turns {
            let Some(fact) = self.fact(engine) else { break };
            let now = Duration::from_secs(u64::from(engine.run().step()));
            all.extend(engine.handle(fact, now).unwrap());
        }
        all
    }

    /// Asks a run to end, and lets it.
    fn end(&self, engine: &mut Engine<'_>, work: WorkEnd, asker: Asker) -> Vec<Event> {
        let now = engine.elapsed();
        let mut all = engine.cancel(asker, now);
        for _ in 0..10 {
            let Some(fact) = self.fact(engine) else { break };
            let fact = match (work, fact) {
                (WorkEnd::Stopped, Input::ActionDone(_)) => Input::ActionDone(stopped()),
                (WorkEnd::Stopped, Input::PromptDone(..)) => Input::PromptDone(stopped(), call()),
                (WorkEnd::Stopped, Input::SubLoopDone(Ok(end))) => {
                    let complete = LoopComplete {
                        outcome: Outcome::Interrupted,
                        terminated_by: TerminatedBy::Interrupted,
                        ..end.complete
                    };
                    Input::SubLoopDone(Ok(request::SubLoopEnd { complete, ..end }))
                }
                (_, fact) => fact,
            };
            all.extend(engine.handle(fact, now).unwrap());
        }
        all
    }
}

fn stopped() -> Observation {
    Observation { stop: Some(Stop::Cancelled), ..Observation::exited(143, "half") }
}

fn with_models() -> Start {
    let start = start(true);
    Start { event: LoopStart { llm: Llm::On, ..start.event }, ..start }
}

/// What of an end does not depend on when it came.
fn told(end: &LoopComplete) -> LoopComplete {
    LoopComplete { duration_ms: 0, reason: String::new(), ..end.clone() }
}

/// Returns every input but this one and those that answer the same request.
fn other_inputs(fitting: &Input) -> Vec<Input> {
    let seen = Observation::exited(0, "");
    let queried = Queried { result: Ok(serde_json::json!(1)), stop: None };
    let answer = ModelAnswer { reply: Ok(serde_json::json!({})), stop: None, usage: call() };
    let mut all = vec![
        Input::Begin,
        Input::ActionDone(seen.clone()),
        Input::PromptDone(seen, call()),
        Input::Answered(answer),
        Input::Continuation(None),
        Input::SubLoopDone(Err(Explanation::new("none"))),
        Input::Surveyed(tree('a')),
        Input::FileRead(Ok(None)),
        Input::Queried(queried),
        Input::WaitDone,
        Input::Yielded,
    ];
    let is_fitting = |input: &Input| std::mem::discriminant(input) == std::mem::discriminant(fitting);
    assert!(all.iter().any(is_fitting));
    all.retain(|input| !is_fitting(input));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_a_run_does_not_wait_for_is_refused_and_changes_nothing(
        text in any_loop_of_every_kind(),
        answers in prop::collection::vec(any_answer(), 1..12),
    ) {
        let machine = machine(&text);
        let world = FactsByStep(&answers);
        let mut engine = Engine::new(&machine, with_models());
        for _ in 0..60 {
            let Some(fact) = world.fact(&engine) else { break };
            let (run, next) = (engine.run().clone(), format!("{:?}", engine.next()));
            for other in other_inputs(&fact) {
                let now = engine.elapsed();
                prop_assert_eq!(engine.handle(other, now), Err(UnexpectedInput));
                prop_assert_eq!(engine.run(), &run);
                prop_assert_eq!(format!("{:?}", engine.next()), next.clone());
            }
            let now = Duration::from_secs(u64::from(engine.run().step()));
            prop_assert!(engine.handle(fact, now).is_ok());
        }
    }

    #[test]
    fn a_run_that_is_asked_to_end_before_its_last_event_is_interrupted_and_goes_on_to_the_same_end(
        text in any_loop_of_every_kind(),
        answers in prop::collection::vec(any_answer(), 1..12),
    ) {
        const TURNS: usize = 120;
        let machine = machine(&text);
        let world = FactsByStep(&answers);
        let mut whole = Engine::new(&machine, with_models());
        world.drive(&mut whole, TURNS);
        let Next::Done(expected) = whole.next() else { panic!("no end after {TURNS} turns of\n{text}") };
        for at in 0.. {
            let mut engine = Engine::new(&machine, with_models());
            world.drive(&mut engine, at);
            if matches!(engine.next(), Next::Done(_)) {
                break;
            }
            let (term, lease) = (Asker::Signal(Signal::Term), Asker::Lease);
            for (work, asker) in [(WorkEnd::Stopped, term), (WorkEnd::Ends, term), (WorkEnd::Stopped, lease), (WorkEnd::Ends, lease)] {
                let mut engine = Engine::new(&machine, with_models());
                let mut events = world.drive(&mut engine, at);
                let before = events.len();
                events.extend(world.end(&mut engine, work, asker));
                let after = &events[before..];
                let begins = |event: &Event| matches!(event, Event::StateEnter { .. } | Event::ActionStart { .. } | Event::SubLoopStart { .. });
                prop_assert!(!after.iter().any(begins), "{work:?} at {at}: {after:?} of\n{text}");
                let Some((Event::LoopComplete(end), others)) = events.split_last() else {
                    panic!("no end after {after:?} at {at} of\n{text}")
                };
                prop_assert!(!others.iter().any(|event| matches!(event, Event::LoopComplete(_))));
                let expected_end = match asker {
                    Asker::Signal(signal) => (Outcome::Interrupted, TerminatedBy::Interrupted, 143, Some(signal)),
                    Asker::Lease => (Outcome::LeaseLost, TerminatedBy::LeaseLost, 73, None),
                    Asker::ClosedPull | Asker::StoppedQuestion => {
                        (Outcome::Cancelled, TerminatedBy::Cancelled, 3, None)
                    }
                };
                prop_assert_eq!(
                    (end.outcome, end.terminated_by, end.exit_code, end.signal),
                    expected_end,
                    "{:?} at {}: {:?} of\n{}", work, at, after, text
                );
                let timed: Vec<_> = events.iter().map(|event| (event.clone(), engine.elapsed())).collect();
                let past = folded(&machine, &timed);
                let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
                let mut again = Engine::resume(&machine, with_models(), past, how, Duration::ZERO);
                world.drive(&mut again, TURNS);
                let Next::Done(end) = again.next() else { panic!("no end when resumed at {at} of\n{text}") };
                // Whose time is over when it goes on does not begin anything once more.
                let is_same = told(end) == told(expected) || machine.limits.timeout.is_some();
                prop_assert!(is_same, "{end:?}, not {expected:?}: {work:?} at {at} of\n{text}");
            }
        }
    }

    #[test]
    fn a_run_that_goes_on_and_is_asked_to_end_at_once_says_that_it_went_on_and_ends(
        text in any_loop_of_every_kind(),
        answers in prop::collection::vec(any_answer(), 1..12),
        at in 1..30_usize,
    ) {
        let machine = machine(&text);
        let world = FactsByStep(&answers);
        let mut engine = Engine::new(&machine, with_models());
        let events = world.drive(&mut engine, at);
        for cut in 1..events.len() {
            let timed: Vec<_> = events[..cut].iter().map(|event| (event.clone(), Duration::ZERO)).collect();
            let past = folded(&machine, &timed);
            // An end that is written down is one, also when its last line is missing.
            let is_decided = matches!(past.run().phase(), Phase::Deciding(Deciding::End(_)));
            let Standing::Open(how) = past.standing(&machine) else { continue };
            let mut engine = Engine::resume(&machine, with_models(), past, how, Duration::ZERO);
            let mut after = engine.cancel(Signal::Hup, Duration::ZERO);
            prop_assert!(after.is_empty(), "{after:?}");
            after.extend(world.end(&mut engine, WorkEnd::Stopped, Asker::Lease));
            prop_assert!(matches!(after.first(), Some(Event::LoopResume(_))), "{after:?} after {cut} of\n{text}");
            let Some(Event::LoopComplete(end)) = after.last() else { panic!("no end: {after:?} after {cut} of\n{text}") };
            prop_assert!(is_decided || end.outcome == Outcome::Interrupted, "{after:?} after {cut} of\n{text}");
        }
    }
}

#[test]
fn a_terminal_whose_action_was_stopped_is_finished_by_the_next_part_of_the_run() {
    let text =
        "maintain: true\nstates:\n  a: {action: x, on_yes: done}\n  done: {terminal: true, action: bye}\n";
    let mut machine = machine(text);
    machine.limits.cycles = Some(1);
    let mut engine = Engine::new(&machine, start(true));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    all.extend(engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::ZERO).unwrap());
    all.extend(engine.cancel(Signal::Term, Duration::ZERO));
    all.extend(engine.handle(Input::ActionDone(stopped()), Duration::ZERO).unwrap());
    assert_snapshot!(traced(&all), @"
    1/1 a: x (0) → yes → done [Verdict for yes]
    closing done: bye (Cancelled)
    = interrupted (143) by Interrupted in done after 1 iterations, 1 steps: interrupted by SIGTERM in `done`
    ");
    let timed: Vec<_> = all.into_iter().map(|event| (event, Duration::ZERO)).collect();
    let past = folded(&machine, &timed);
    let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
    assert_eq!(how.from_state.as_str(), "done");
    let mut engine = Engine::resume(&machine, start(true), past, how, Duration::ZERO);
    let mut again = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    again.extend(engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::ZERO).unwrap());
    assert_snapshot!(traced(&again), @"
    closing done: bye (0)
    = success (0) by Terminal in done after 1 iterations, 1 steps: ended in `done`
    ");
}

#[test]
fn what_a_hand_off_says_is_kept_when_the_run_is_asked_to_end_meanwhile() {
    let text = "states:\n  a: {action: 'x ${loop.continuation}', next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let said = Observation::exited(0, "CONTEXT_HANDOFF: item 7\n");
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    all.extend(engine.handle(Input::ActionDone(said), Duration::ZERO).unwrap());
    all.extend(engine.cancel(Signal::Term, Duration::ZERO));
    all.extend(engine.handle(Input::Continuation(None), Duration::ZERO).unwrap());
    let Next::Done(end) = engine.next() else { panic!("{all:?}") };
    assert_eq!(end.outcome, Outcome::Interrupted);
    let timed: Vec<_> = all.into_iter().map(|event| (event, Duration::ZERO)).collect();
    let past = folded(&machine, &timed);
    let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
    assert_eq!(how.continuation.as_deref(), Some("item 7"));
}
