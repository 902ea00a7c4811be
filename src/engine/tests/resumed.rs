//! A run that was left at any point and goes on does what it would have done: loops, answers and cuts at random.

use super::explored::any_loop;
use super::generated::answer_commands;
use super::*;
use crate::engine::event::Stamped;
use crate::engine::past::{Past, Standing};

/// A loop that remembers: captures, messages, values, waits.
pub(super) fn any_loop_with_memories() -> impl Strategy<Value = String> {
    (any_loop(), any::<[bool; 3]>()).prop_map(|(text, [waits, captures, measures])| {
        let seen = "x ${state.step}.${state.attempt}.${state.iteration} ${prev.output?} ${messages?}";
        let captured = format!("action: '{seen} ${{captured.c.output?}}', append_to_messages: 'm${{state.step}}'");
        let mut text = text.replace("action: x", &captured);
        if captures {
            text = text.replacen("append_to_messages", "capture: c, append_to_messages", 2);
        }
        if measures {
            let convergence = "evaluate: {type: convergence, toward: 0}, on_target: done, on_progress: s0, on_stall: failed";
            let state = format!("  m0: {{action: 'x ${{state.step}}', {convergence}, on_error: s0}}\n  done:");
            text = text.replacen("  done:", &state, 1).replace("next: done", "next: m0");
        }
        // After `maintain` of the generated text, or alone.
        if waits { format!("backoff: 1\n{text}") } else { text }
    })
}

/// Answers by the step, so that a step that runs again is answered again in the same way.
pub(super) struct ByStep<'a>(pub(super) &'a [Observation]);

impl ByStep<'_> {
    /// Drives a run for so many turns; every fact comes at a time that the step decides.
    pub(super) fn drive(&self, engine: &mut Engine<'_>, turns: usize) -> (Vec<(Event, Duration)>, Vec<Run>) {
        let (mut all, mut runs) = (Vec::new(), Vec::new());
        for _ in 0..turns {
            let step = engine.run().step() as usize;
            let survey = || tree(if step.is_multiple_of(5) { 'b' } else { 'a' });
            let command = || {
                let closing = matches!(engine.run().phase(), Phase::Pending(Pending::Closing(_)));
                let answer = &self.0[(step + usize::from(closing)) % self.0.len()];
                let number = Observation::exited(0, format!("{}\n", 90_usize.saturating_sub(step)));
                let is_measured = engine.run().current().is_some_and(|state| state.as_str() == "m0");
                if is_measured { number } else { answer.clone() }
            };
            let Some(input) = answer_commands(engine, survey, command) else { break };
            let now = Duration::from_secs(step as u64);
            let events = engine.handle(input, now).unwrap();
            all.extend(events.into_iter().map(|event| (event, now)));
            runs.push(engine.run().clone());
        }
        (all, runs)
    }
}

/// Writes events down and reads them again, as a journal does.
pub(super) fn written(events: &[(Event, Duration)]) -> Vec<(Event, Duration)> {
    let line = |(event, at): &(Event, Duration)| {
        let stamped = Stamped { at: *at, ..Stamped::new(Timestamp::from_millis(0), 1, event.clone()) };
        let line = serde_json::to_vec(&stamped).unwrap();
        let back = Stamped::from_line(&line).unwrap();
        assert_eq!(serde_json::from_slice::<Stamped>(&line).unwrap(), back);
        (back.event, back.at)
    };
    events.iter().map(line).collect()
}

pub(super) fn folded(machine: &Machine, events: &[(Event, Duration)]) -> Past {
    let Some(((Event::LoopStart(start), _), rest)) = events.split_first() else { panic!("no beginning") };
    let mut past = Past::new(machine, start.clone(), IndexMap::new());
    for (event, at) in rest {
        past.event(machine, event, *at);
    }
    past
}

/// Returns the end of a run whose next events could not be written.
pub(super) fn unsaved(machine: &Machine, run: &Run) -> event::LoopComplete {
    let at = run.current().unwrap_or_else(|| machine.name_of(machine.initial)).clone();
    event::LoopComplete {
        iterations: run.iteration(),
        steps: run.step(),
        cycles: run.cycle(),
        reason: "the journal cannot be written".to_owned(),
        ..event::LoopComplete::new(Outcome::Error, TerminatedBy::JournalLost, at)
    }
}

/// Returns events without times: the clock of a step that begins once more is not set back.
pub(super) fn timeless(events: &[(Event, Duration)]) -> Vec<Event> {
    let without = |(event, _): &(Event, Duration)| match event {
        Event::LoopComplete(end) => {
            Event::LoopComplete(event::LoopComplete { duration_ms: 0, ..end.clone() })
        }
        event => event.clone(),
    };
    events.iter().map(without).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whatever_is_cut_off_is_done_and_nothing_else(
        text in any_loop_with_memories(),
        answers in prop::collection::vec(answer(), 1..30),
        is_night in any::<bool>(),
    ) {
        let machine = machine(&text);
        let world = ByStep(&answers);
        let (all, runs) = world.drive(&mut Engine::new(&machine, night_runs::start_of(is_night)), 40);
        let all = written(&all);
        let whole = folded(&machine, &all);
        prop_assert_eq!(Some(whole.run()), runs.last().as_ref().copied(), "{}", text);
        for (cut, lost) in (1..all.len()).flat_map(|cut| [(cut, false), (cut, true)]) {
            let mut past = folded(&machine, &all[..cut]);
            let (elapsed, fold) = (past.elapsed(), past.clone());
            if lost {
                past.event(&machine, &Event::LoopComplete(unsaved(&machine, fold.run())), elapsed);
                prop_assert!(matches!(past.run().phase(), Phase::Done(_)));
            }
            let how = match past.standing(&machine) {
                Standing::Open(how) => how,
                Standing::Over(_) => { prop_assert_eq!(cut, all.len()); continue; }
                Standing::Lost(state) => panic!("lost in {state}"),
            };
            prop_assert_eq!(how.step, fold.run().step());
            prop_assert!(!lost || how.reason == event::ResumeReason::JournalLost);
            let mut engine = Engine::resume(&machine, night_runs::start_of(is_night), past, how, Duration::ZERO);
            prop_assert_eq!(engine.elapsed(), elapsed);
            let (again, _) = world.drive(&mut engine, 45);
            let mut again = written(&again);
            let resumed = again.remove(0).0;
            prop_assert!(matches!(resumed, Event::LoopResume(_)), "{resumed:?}");
            // The step that was running begins once more; everything else goes on behind the cut.
            let entered = all[..cut].iter().rposition(|(event, _)| matches!(event, Event::StateEnter { .. }));
            let closing = all[..cut].iter().rposition(|(event, _)| matches!(event, Event::ActionStart { .. }));
            let from = match fold.run().phase() {
                Phase::Pending(Pending::Action(_)) | Phase::Deciding(run::Deciding::Act(_)) => entered.unwrap(),
                Phase::Pending(Pending::Closing(_)) => closing.unwrap(),
                _ => cut,
            };
            let expected = &all[from..];
            let common = expected.len().min(again.len());
            prop_assert_eq!(timeless(&again[..common]), timeless(&expected[..common]), "cut {} of\n{}", cut, text);
            prop_assert!(common == expected.len(), "{} of {} after cut {} of\n{}", common, expected.len(), cut, text);
        }
    }

    #[test]
    fn a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(
        text in any_loop_with_memories(),
        answers in prop::collection::vec(answer(), 1..30),
        is_night in any::<bool>(),
        at in 1..30_usize,
    ) {
        let machine = machine(&text);
        let world = ByStep(&answers);
        let (all, _) = world.drive(&mut Engine::new(&machine, night_runs::start_of(is_night)), 40);
        let mut engine = Engine::new(&machine, night_runs::start_of(is_night));
        let (mut first, _) = world.drive(&mut engine, at);
        if matches!(engine.next(), Next::Done(_)) {
            return Ok(());
        }
        let now = engine.elapsed();
        let mut cut = engine.cancel(Signal::Term, now);
        if matches!(engine.next(), Next::Run(_)) {
            let cancelled = Observation { stop: Some(Stop::Cancelled), ..Observation::exited(143, "half") };
            cut.extend(engine.handle(Input::ActionDone(cancelled), now).unwrap());
        }
        first.extend(cut.into_iter().map(|event| (event, now)));
        let Next::Done(end) = engine.next() else { return Ok(()) };
        prop_assert_eq!(end.outcome, Outcome::Interrupted);
        let first = written(&first);
        let past = folded(&machine, &first);
        prop_assert_eq!(past.run(), engine.run());
        let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
        prop_assert_eq!(how.reason, event::ResumeReason::Interrupted);
        let mut engine = Engine::resume(&machine, night_runs::start_of(is_night), past, how, Duration::ZERO);
        let (again, _) = world.drive(&mut engine, 45);
        // Every event of the whole run, with the step that was cut off once.
        let mut both: Vec<Event> = Vec::new();
        for (event, _) in first.into_iter().chain(written(&again)) {
            match &event {
                Event::LoopResume(_) | Event::Backoff { .. } => continue,
                Event::LoopComplete(end) if end.outcome == Outcome::Interrupted => continue,
                Event::ActionComplete(done) if done.seen.was_cut_short() => continue,
                Event::StateEnter { step, .. } => {
                    let same = |event: &Event| matches!(event, Event::StateEnter { step: other, .. } if other == step);
                    if let Some(entered) = both.iter().position(same) {
                        both.truncate(entered);
                    }
                }
                Event::ActionStart { state, .. } => {
                    // A closing action that was cut off begins once more.
                    let same = |event: &Event| matches!(event, Event::ActionStart { state: other, .. } if other == state);
                    if both.last().is_some_and(same) {
                        both.pop();
                    }
                }
                _ => {}
            }
            both.push(event);
        }
        let expected = all.into_iter().map(|(event, _)| event).filter(|event| !matches!(event, Event::Backoff { .. }));
        let expected = timeless(&written(&expected.map(|event| (event, Duration::ZERO)).collect::<Vec<_>>()));
        let both = timeless(&both.into_iter().map(|event| (event, Duration::ZERO)).collect::<Vec<_>>());
        let common = expected.len().min(both.len());
        prop_assert_eq!(&both[..common], &expected[..common], "{}", text);
        prop_assert!(common == expected.len(), "{}", text);
    }
}

fn resumed_after(text: &str, script: &str, is_last: impl Fn(&Event) -> bool) -> (String, String) {
    let machine = machine(text);
    let all = events(&machine, start(false), &world(script));
    let at = Duration::from_secs(1);
    let cut = all.iter().position(is_last).unwrap() + 1;
    let cut: Vec<_> = all[..cut].iter().map(|event| (event.clone(), at)).collect();
    let past = folded(&machine, &cut);
    let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
    let why = format!("{:?} in {} ({}/{})", how.reason, how.from_state, how.iteration, how.step);
    let mut engine = Engine::resume(&machine, start(false), past, how, Duration::ZERO);
    let world = world(script);
    let mut again = Vec::new();
    for _ in 0..100 {
        let input = match engine.next() {
            Next::Done(_) => break,
            Next::Begin => Input::Begin,
            Next::Run(request) => Input::ActionDone(world.answer(&request.text)),
            Next::Wait(_) => Input::WaitDone,
            other => panic!("{other:?}"),
        };
        again.extend(engine.handle(input, at).unwrap());
    }
    (why, traced(&again))
}

#[test]
fn an_action_that_was_cut_short_is_no_result() {
    let text = "states:\n  a: {action: one, capture: c, next: b}\n  b: {action: 'two ${captured.c.output}', capture: c, next: done}\n  done: {terminal: true}\n";
    let script = "one: 0 first\ntwo first: deadline, 0 second";
    let (why, trace) = resumed_after(text, script, |event| matches!(event, Event::LoopComplete(_)));
    assert_eq!(why, "Handoff in b (1/2)");
    assert_snapshot!(trace, @"
    1/2 b: two first (Deadline) handoff: the deadline of this job came after 1.0s, pause
    = handoff (75, unverified) by Handoff in b after 1 iterations, 2 steps: the deadline of this job came after 1.0s
    ");
}

#[test]
fn an_error_is_the_end_also_when_its_last_line_is_missing() {
    let text = "states:\n  a: {action: x, on_yes: done}\n  done: {terminal: true}\n";
    let (why, trace) = resumed_after(text, "x: 1", |event| matches!(event, Event::LoopError { .. }));
    assert_eq!(why, "Crash in a (1/1)");
    assert_snapshot!(trace, @"= error (4, unverified) by Error in a after 1 iterations, 1 steps: no route for the verdict `no` (exit 1); the routes are `yes`");
}

#[test]
fn the_words_of_a_handoff_reach_the_work() {
    let text = "states:\n  a: {action: 'x ${loop.continuation}', next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    all.extend(
        engine
            .handle(Input::ActionDone(Observation::exited(0, "CONTEXT_HANDOFF: item 7\n")), Duration::ZERO)
            .unwrap(),
    );
    all.extend(engine.handle(Input::Continuation(None), Duration::ZERO).unwrap());
    assert!(matches!(engine.next(), Next::Done(end) if end.outcome == Outcome::Handoff));
    let all: Vec<_> = all.into_iter().map(|event| (event, Duration::ZERO)).collect();
    // A hand-off that is not written to its end says the same.
    let signal = all.iter().position(|(event, _)| matches!(event, Event::Signal { .. })).unwrap();
    for cut in signal + 1..all.len() {
        let past = folded(&machine, &all[..cut]);
        let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
        assert_eq!(how.continuation.as_deref(), Some("item 7"), "{cut}");
    }
    let past = folded(&machine, &all);
    assert_eq!(past.run().left_to_say(), Some("item 7"));
    let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
    assert_eq!((how.reason, how.continuation.as_deref()), (event::ResumeReason::Handoff, Some("item 7")));
    let mut engine = Engine::resume(&machine, start(false), past, how, Duration::ZERO);
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let Next::Run(request) = engine.next() else { panic!() };
    assert_eq!(request.text, "x item 7");
    assert_eq!((engine.run().handoffs(), engine.run().left_to_say()), (1, None));
}

#[test]
fn a_state_that_is_gone_is_named() {
    let before = machine(
        "states:\n  a: {action: x, next: b}\n  b: {action: y, next: done}\n  done: {terminal: true}\n",
    );
    let after = machine(
        "states:\n  a: {action: x, next: c}\n  c: {action: y, next: done}\n  done: {terminal: true}\n",
    );
    let all = events(&before, start(false), &world(""));
    let at = Duration::ZERO;
    for (cut, lost) in [(5, true), (6, true), (7, true), (4, false)] {
        let cut: Vec<_> = all[..cut].iter().map(|event| (event.clone(), at)).collect();
        let standing = folded(&after, &cut).standing(&after);
        assert_eq!(
            matches!(&standing, Standing::Lost(state) if state.as_str() == "b"),
            lost,
            "{standing:?} of {cut:?}"
        );
    }
}

/// A journal may come out of a bundle, and a bundle from anybody.
#[test]
fn numbers_that_cannot_grow_stay_what_they_are() {
    let machine = machine("states:\n  a: {action: x, on_yes: done, on_no: a}\n  done: {terminal: true}\n");
    let state = machine.name_of(machine.initial).clone();
    let most = Event::StateEnter { state, iteration: 1, step: u32::MAX, attempt: u32::MAX };
    let events = [Event::LoopStart(start(false).event), most].map(|event| (event, Duration::ZERO));
    let past = folded(&machine, &events);
    let Standing::Open(how) = past.standing(&machine) else { panic!("it is not over") };
    let mut engine = Engine::resume(&machine, start(false), past, how, Duration::ZERO);
    drop(engine.handle(Input::Begin, Duration::ZERO).unwrap());
    drop(engine.handle(Input::ActionDone(Observation::exited(1, "")), Duration::ZERO).unwrap());
    assert_eq!(engine.run().step(), u32::MAX);
}

#[test]
fn a_run_that_was_killed_in_a_wait_goes_on_where_its_loop_says() {
    let text = "backoff: 60\non_resume: back\nstates:
  a: {action: x, on_yes: done, on_no: a}
  back: {action: y, on_yes: done}
  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let seen = Input::ActionDone(Observation::exited(1, ""));
    all.extend(engine.handle(seen, Duration::ZERO).unwrap());
    assert!(matches!(engine.next(), Next::Wait(_)));
    let all: Vec<_> = all.into_iter().map(|event| (event, Duration::ZERO)).collect();
    let past = folded(&machine, &all);
    let Standing::Open(how) = past.standing(&machine) else { panic!("it is over") };
    let mut engine = Engine::resume(&machine, start(false), past, how, Duration::ZERO);
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let Next::Run(request) = engine.next() else { panic!("it still waits") };
    assert_eq!(request.text, "y");
}
