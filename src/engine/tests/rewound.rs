//! A run that begins again in front of a step of another one does what that one did, or would have done if it had been
//! resumed: loops, answers and cuts at random.

use super::event::{LoopResume, ResumeReason};
use super::resumed::{ByStep, any_loop_with_memories, folded, timeless, unsaved, written};
use super::*;
use crate::engine::past::Standing;

type Events = [(Event, Duration)];

/// Returns the steps that were entered, each with what came before it was entered for the last time.
fn steps(events: &Events) -> BTreeMap<u32, usize> {
    let entered = |(at, (event, _)): (usize, &(Event, Duration))| match event {
        Event::StateEnter { step, .. } => Some((*step, at)),
        _ => None,
    };
    events.iter().enumerate().filter_map(entered).collect()
}

fn open(standing: Standing) -> Box<LoopResume> {
    match standing {
        Standing::Open(how) => how,
        other => panic!("{other:?}"),
    }
}

/// Goes on with a run that begins again in front of a step.
fn rewound<'m>(machine: &'m Machine, before: &Events, is_night: bool) -> Engine<'m> {
    let past = folded(machine, before);
    let how = open(past.rewound(machine));
    Engine::resume(machine, night_runs::start_of(is_night), past, how, Duration::ZERO)
}

/// Returns everything that is known about a run that has ended, but for how long it took, where it stood when it ended, and
/// whether the step that was done once more was to hear what a hand-off left to say: nothing was left here.
fn known(engine: &Engine<'_>) -> String {
    let mut all = format!("{:?}", engine.run());
    for (key, end) in
        [("duration_ms: ", ","), ("stood: ", ", iteration"), ("continuation_reader: ", ", board")]
    {
        let (before, after) = all.split_once(key).unwrap();
        let (_, after) = after.split_once(end).unwrap();
        all = format!("{before}{after}");
    }
    all
}

/// Returns events without the words with which a part of a run begins.
fn done(events: &Events) -> Vec<Event> {
    let mut events = timeless(events);
    events.retain(|event| !matches!(event, Event::LoopResume(_)));
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn in_front_of_any_step_a_run_goes_on_as_the_one_before(
        text in any_loop_with_memories(),
        answers in prop::collection::vec(answer(), 1..30),
        is_night in any::<bool>(),
    ) {
        let machine = machine(&text);
        let world = ByStep(&answers);
        let mut engine = Engine::new(&machine, night_runs::start_of(is_night));
        let (all, _) = world.drive(&mut engine, 40);
        let is_over = matches!(engine.next(), Next::Done(_));
        let all = written(&all);
        for (step, at) in steps(&all) {
            let mut again = rewound(&machine, &all[..at], is_night);
            prop_assert_eq!(again.run().step() + 1, step);
            let (events, _) = world.drive(&mut again, 45);
            prop_assert!(
                matches!(&events[0].0, Event::LoopResume(how) if how.reason == ResumeReason::Rewound)
            );
            let (events, expected) = (done(&written(&events)), done(&all[at..]));
            let common = expected.len().min(events.len());
            prop_assert_eq!(&events[..common], &expected[..common], "step {} of\n{}", step, text);
            prop_assert!(common == expected.len(), "step {} of\n{}", step, text);
            if is_over {
                prop_assert_eq!(known(&again), known(&engine), "step {} of\n{}", step, text);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn in_front_of_the_last_step_a_run_goes_on_as_if_it_were_resumed(
        text in any_loop_with_memories(),
        answers in prop::collection::vec(answer(), 1..30),
        is_night in any::<bool>(),
        cut in any::<prop::sample::Index>(),
        interrupted in 1..30_usize,
    ) {
        let machine = machine(&text);
        let world = ByStep(&answers);
        let (all, _) = world.drive(&mut Engine::new(&machine, night_runs::start_of(is_night)), 40);
        let all = written(&all);
        // Killed after an event, its journal lost after that event, or interrupted.
        let killed = all[..=cut.index(all.len() - 1)].to_vec();
        let past = folded(&machine, &killed);
        let end = (Event::LoopComplete(unsaved(&machine, past.run())), past.elapsed());
        let lost = killed.iter().cloned().chain([end]).collect();
        let mut engine = Engine::new(&machine, night_runs::start_of(is_night));
        let (mut first, _) = world.drive(&mut engine, interrupted);
        let now = engine.elapsed();
        first.extend(engine.cancel(Signal::Int, now).into_iter().map(|event| (event, now)));
        first.extend(world.drive(&mut engine, 10).0);
        for left in [killed, lost, written(&first)] {
            let Some((step, at)) = steps(&left).pop_last() else { continue };
            let past = folded(&machine, &left);
            let Standing::Open(how) = past.standing(&machine) else { continue };
            let mut resumed = Engine::resume(&machine, night_runs::start_of(is_night), past, how, Duration::ZERO);
            let (after, _) = world.drive(&mut resumed, 45);
            let mut rewound = rewound(&machine, &left[..at], is_night);
            let (again, _) = world.drive(&mut rewound, 45);
            if !matches!((resumed.next(), rewound.next()), (Next::Done(_), Next::Done(_))) {
                continue;
            }
            // What the run that was resumed had done of that step before, the other one does once more.
            let (after, again) = (done(&written(&after)), done(&written(&again)));
            let common = after.len().min(again.len());
            let ends = (&again[again.len() - common..], &after[after.len() - common..]);
            prop_assert_eq!(ends.0, ends.1, "step {} of\n{}", step, text);
            // A run that goes on after a verdict did not see the tree on which that fell; one that does the step again does.
            let known = |engine: &Engine<'_>| {
                let known = known(engine).replace("tree: Passed", "tree: Standing");
                // Nor is its tree in doubt, which is put back.
                known.replace("is_tree_doubtful: true", "is_tree_doubtful: false")
            };
            prop_assert_eq!(known(&rewound), known(&resumed), "step {} of\n{}", step, text);
        }
    }
}

/// Runs a loop of commands to its end, and returns its events.
fn whole(machine: &Machine, script: &str) -> Vec<(Event, Duration)> {
    let at = Duration::from_secs(1);
    events(machine, start(false), &world(script)).into_iter().map(|event| (event, at)).collect()
}

/// Goes on in front of a step with these captures; returns what is asked for first.
fn asked(machine: &Machine, all: &Events, step: u32, captured: &[(&str, &str)]) -> String {
    let past = folded(machine, &all[..steps(all)[&step]]);
    let mut how = open(past.rewound(machine));
    how.changes.captured =
        captured.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let mut engine = Engine::resume(machine, start(false), past, how, Duration::ZERO);
    let events = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let events: Vec<_> = events.into_iter().map(|event| (event, Duration::ZERO)).collect();
    // Whoever reads its journal finds it there.
    let whole = all[..steps(all)[&step]].iter().cloned().chain(written(&events)).collect::<Vec<_>>();
    assert_eq!(folded(machine, &whole).run(), engine.run());
    match engine.next() {
        Next::Run(request) => request.text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_the_step_that_is_run_again_and_not_where_a_run_goes_on_that_was_left() {
    let text = "on_resume: a\nstates:\n  a: {action: one, next: b}\n  b: {action: two, next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let all = whole(&machine, "");
    assert_eq!(asked(&machine, &all, 2, &[]), "two");
    assert_eq!(asked(&machine, &all, 1, &[]), "one");
}

#[test]
fn a_capture_is_what_somebody_set_it_to_until_it_is_captured_again() {
    let text = "max_iterations: 3\nstates:\n  a: {action: one, capture: c, next: b}\n  b: {action: 'two ${captured.c.output} ${captured.a.output?} ${captured.c.exit_code} ${captured.later.output?}', on_yes: a, on_no: d}\n  d: {action: x, capture: later, next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let all = whole(&machine, "one: 3 first, 4 second");
    assert_eq!(asked(&machine, &all, 2, &[]), "two first first 3 ");
    assert_eq!(asked(&machine, &all, 2, &[("c", "mine")]), "two mine first 3 ");
    assert_eq!(asked(&machine, &all, 2, &[("a", "mine"), ("later", "soon")]), "two first mine 3 soon");
    assert_eq!(asked(&machine, &all, 2, &[("nothing", "x")]), "two first first 3 ");
    assert_eq!(asked(&machine, &all, 4, &[("c", "mine")]), "two mine second 4 ");
    let past = folded(&machine, &all[..steps(&all)[&2]]);
    let state = |name| past.run().state_of_capture(&machine, name).map(|state| state.as_str().to_owned());
    assert_eq!(
        ["c", "a", "later", "d", "x"].map(state),
        [Some("a".to_owned()), Some("a".to_owned()), Some("d".to_owned()), Some("d".to_owned()), None]
    );
}

#[test]
fn what_a_hand_off_left_to_say_is_heard_again_by_the_step_that_heard_it() {
    let text = "states:\n  a: {action: 'x ${loop.continuation?}', next: b}\n  b: {action: y, next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let said = Observation::exited(0, "CONTEXT_HANDOFF: item 7\n");
    all.extend(engine.handle(Input::ActionDone(said), Duration::ZERO).unwrap());
    all.extend(engine.handle(Input::Continuation(None), Duration::ZERO).unwrap());
    let timed =
        |events: &[Event]| -> Vec<_> { events.iter().map(|event| (event.clone(), Duration::ZERO)).collect() };
    let past = folded(&machine, &timed(&all));
    let how = open(past.standing(&machine));
    let mut engine = Engine::resume(&machine, start(false), past, how, Duration::ZERO);
    all.extend(engine.handle(Input::Begin, Duration::ZERO).unwrap());
    all.extend(engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::ZERO).unwrap());
    let all = timed(&all);
    assert_eq!(asked(&machine, &all, 1, &[]), "x item 7");
    assert_eq!(asked(&machine, &all, 2, &[]), "y");
}
