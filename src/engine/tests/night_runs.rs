//! A maintain loop that ends with its first clean cycle, and what is said at the start of a run.

use super::resumed::folded;
use super::*;
use crate::engine::past::Standing;

const TIDY: &str = "maintain: true\nstates:\n  check: {action: x, on_yes: done, on_no: fix}\n  fix: {action: y, next: check}\n  done: {terminal: true}\n";

/// A run that ends with its first clean cycle, if it is a night.
pub(super) fn start_of(is_night: bool) -> Start {
    let mut start = start(false);
    if is_night {
        start.event.until_clean = true;
        start.event.warnings = vec!["one".to_owned(), "two".to_owned()];
    }
    start
}

fn until_clean(max_cycles: Option<u32>, text: &str, script: &str) -> String {
    let mut machine = machine(text);
    machine.limits.cycles = max_cycles;
    let mut start = start(true);
    start.event.until_clean = true;
    traced(&events(&machine, start, &world(script)))
}

#[test]
fn the_first_clean_cycle_is_the_last_one() {
    assert_snapshot!(until_clean(None, TIDY, ""), @"
    1/1 check: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 1 iterations, 1 steps: cycle 1 needed no fix
    ");
    assert_snapshot!(until_clean(None, TIDY, "x: 1, 0, 0"), @"
    1/1 check: x (1) → no → fix [Verdict for no]
    1/2 fix: y (0) → check [Next]
    2/3 check: x (0) → yes → done [Verdict for yes]
     → check [Maintain]
    3/4 check: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 3 iterations, 4 steps: cycle 2 needed no fix
    ");
}

#[test]
fn a_cycle_in_which_anything_failed_is_not_clean() {
    // An action that fails without being judged counts as well, and so does a retry that did it.
    let fails = "maintain: true\nstates:\n  a: {action: x, next: b}\n  b: {action: y, on_yes: done}\n  done: {terminal: true}\n";
    let retries = "maintain: true\nstates:\n  a: {action: x, on_yes: done, on_no: $current, max_retries: 2, on_retry_exhausted: done}\n  done: {terminal: true}\n";
    for text in [fails, retries] {
        let trace = until_clean(None, text, "x: 1, 0");
        assert!(trace.contains("success (0)") && trace.ends_with(": cycle 2 needed no fix\n"), "{trace}");
    }
    let trace =
        until_clean(None, &retries.replace("on_no", "timeout: 9, on_timeout: done, on_no"), "x: timeout, 0");
    assert!(trace.ends_with(": cycle 2 needed no fix\n"), "{trace}");
}

#[test]
fn only_a_success_is_a_clean_end() {
    let text =
        "maintain: true\nstates:\n  a: {action: x, on_yes: END}\n  END: {terminal: true, outcome: OUTCOME}\n";
    for (outcome, expected) in [
        ("success", "success (0) by Terminal in end after 1 iterations, 1 steps: cycle 1 needed no fix\n"),
        ("failure", "failure (1) by Terminal in end after 2 iterations, 2 steps: ended in `end`\n"),
        (
            "blocked",
            "blocked (5) by Terminal in end after 2 iterations, 2 steps: ended in `end`: a person is needed\n",
        ),
    ] {
        let trace = until_clean(Some(2), &text.replace("END", "end").replace("OUTCOME", outcome), "");
        assert!(trace.ends_with(expected), "{trace}");
    }
}

#[test]
fn the_caps_are_what_they_are() {
    let trace = until_clean(Some(2), TIDY, "x: 1, 0, 1, 0");
    assert!(
        trace.ends_with("in done after 4 iterations, 6 steps: ended in `done`, and cycle 2 needed a fix\n"),
        "{trace}"
    );
    let trace = until_clean(None, &format!("max_steps: 3\n{TIDY}"), "x: 1, 0, 0");
    assert!(trace.contains("= exhausted (3) by MaxSteps in check"), "{trace}");
    let trace = until_clean(Some(1), TIDY.trim_start_matches("maintain: true\n"), "x: 1, 0");
    assert!(trace.ends_with(": ended in `done`, and cycle 1 needed a fix\n"), "{trace}");
}

#[test]
fn a_cycle_is_one_cycle_however_often_it_is_left() {
    let machine = machine(TIDY);
    let script = "x: 1, 0, 0";
    let all = events(&machine, start_of(true), &world(script));
    let at = |event: &Event| (event.clone(), Duration::ZERO);
    for cut in 1..all.len() {
        let past = folded(&machine, &all[..cut].iter().map(at).collect::<Vec<_>>());
        let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
        let entered = |events: &[Event]| events.iter().filter(|event| is_check(event)).count();
        // What was answered before the cut is answered no more; a step that was cut off is answered again.
        let is_open = all[..cut].iter().rposition(is_check) > all[..cut].iter().rposition(is_done);
        let answered = entered(&all[..cut]) - usize::from(is_open);
        let answers = ["1", "0", "0"][answered.min(2)..].join(", ");
        let script = format!("x: {answers}");
        let world = world(&script);
        let mut engine = Engine::resume(&machine, start_of(true), past, how, Duration::ZERO);
        let end = loop {
            let input = match engine.next() {
                Next::Done(end) => break end.clone(),
                Next::Begin => Input::Begin,
                Next::Run(request) => Input::ActionDone(world.answer(&request.text)),
                other => panic!("{other:?}"),
            };
            engine.handle(input, Duration::ZERO).unwrap();
        };
        assert_eq!(
            (end.reason.as_str(), end.steps, end.cycles),
            ("cycle 2 needed no fix", 4, 2),
            "cut {cut}"
        );
    }
}

fn is_check(event: &Event) -> bool {
    matches!(event, Event::StateEnter { state, .. } if state.as_str() == "check")
}

fn is_done(event: &Event) -> bool {
    matches!(event, Event::ActionComplete(_))
}

#[test]
fn what_is_to_be_said_is_said_first_and_once() {
    // Also where the run begins in a terminal, whose own warnings come later.
    for text in [TIDY, "states:\n  done: {terminal: true, action: x}\n"] {
        let machine = machine(text);
        let all = events(&machine, start_of(true), &world(""));
        let said =
            |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
        assert!(matches!(&all[1], Event::Warning { state: None, message } if message == "one"), "{all:?}");
        assert!(matches!(&all[2], Event::Warning { state: None, message } if message == "two"), "{all:?}");
        assert_eq!(said(&all), 2);
        assert!(all.iter().any(|event| matches!(event, Event::ActionStart { .. })), "{all:?}");
        for cut in 1..4 {
            let before: Vec<_> = all[..cut].iter().map(|event| (event.clone(), Duration::ZERO)).collect();
            let past = folded(&machine, &before);
            let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
            let mut engine = Engine::resume(&machine, start_of(true), past, how, Duration::ZERO);
            let after = engine.handle(Input::Begin, Duration::ZERO).unwrap();
            assert_eq!(said(&all[..cut]) + said(&after), 2, "cut {cut}");
        }
    }
}
