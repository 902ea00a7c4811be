//! A state that is entered again by itself: because it has to pass more often, or because its check could not judge.

use super::*;
use crate::engine::check_history::QuarantinedCheck;

const ENDS: &str = "  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";

/// The states that a run enters, and the outcome.
fn walked(states: &str, script: &str) -> String {
    let machine = machine(&format!("states:\n{states}\n{ENDS}"));
    let events = events(&machine, start(true), &world(script));
    let shown = events.iter().filter_map(|event| match event {
        Event::StateEnter { state, .. } => Some(state.to_string()),
        Event::Retry { attempt, max_retries, .. } => Some(format!("(try {attempt} after {max_retries})")),
        Event::LoopComplete(end) => Some(format!("= {} in {}", end.outcome.word(), end.final_state)),
        _ => None,
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_state_passes_so_often_in_a_row_before_it_is_left() {
    let state = "  a: {action: x, repeat: {passes: 3}, on_yes: done, on_no: bad}";
    assert_eq!(walked(state, ""), "a a a = success in done");
    assert_eq!(walked(state, "x: 0, 0, 1"), "a a a = failure in bad");
    // Each failure begins the row anew.
    let again = state.replace("on_no: bad", "on_no: $current");
    assert_eq!(walked(&again, "x: 0, 0, 1, 0, 0, 0"), "a a a a a a = success in done");
    let other = format!("{}\n  b: {{action: y, next: a}}", state.replace("on_no: bad", "on_no: b"));
    assert_eq!(walked(&other, "x: 0, 0, 1, 0, 0, 0"), "a a a b a a a = success in done");
    let once = state.replace("passes: 3", "passes: 1");
    assert_eq!(walked(&once, ""), "a = success in done");
}

#[test]
fn a_repetition_is_a_step_and_a_pass() {
    let text =
        format!("states:\n  a: {{action: x, repeat: {{passes: 3}}, on_yes: done, on_no: bad}}\n{ENDS}");
    assert_snapshot!(trace(&text, ""), @"
    1/1 a: x (0) → yes → a [Repeat for yes]
    2/2#2 a: x (0) → yes → a [Repeat for yes]
    3/3#3 a: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 3 iterations, 3 steps: ended in `done`
    ");
}

#[test]
fn repetitions_are_no_retries() {
    let state = "  a: {action: x, repeat: {passes: 3}, on_yes: done, on_no: $current, max_retries: 1, on_retry_exhausted: bad}";
    assert_eq!(walked(state, "x: 0, 0, 1, 0, 0, 0"), "a a a (try 2 after 1) a a a = success in done");
    assert_eq!(walked(state, "x: 0, 0, 1, 1"), "a a a (try 2 after 1) a = failure in bad");
}

#[test]
fn repetitions_are_no_stall() {
    let text = format!(
        "stall: {{window: 2}}\nstates:\n  a: {{action: x, repeat: {{passes: 4}}, on_yes: b, on_no: bad}}\n  b: {{action: y, on_yes: done}}\n{ENDS}"
    );
    let events = events(&machine(&text), start(true), &world("").with_trees("a"));
    let Some(Event::LoopComplete(end)) = events.last() else { panic!() };
    assert_eq!((end.outcome, end.steps), (Outcome::Success, 5));
}

#[test]
fn a_judge_that_cannot_judge_is_asked_twice_more_and_then_it_is_an_error() {
    let state =
        |routes: &str| format!("  a: {{action: x, evaluate: {{type: classify}}, route: {{{routes}}}}}");
    let never = "x: 0 cannot_judge";
    assert_eq!(walked(&state("yes: done, no: bad, _error: bad"), never), "a a a = failure in bad");
    // Neither `_` nor `no` is its way, and without a way the run ends.
    assert_eq!(walked(&state("yes: done, no: bad, _: done"), never), "a a a = error in a");
    assert_eq!(walked(&state("yes: done, no: bad, cannot_judge: bad"), never), "a = failure in bad");
    // Every other verdict begins the count anew.
    let later = "x: 0 cannot_judge, 0 cannot_judge, 0 maybe, 0 cannot_judge, 0 cannot_judge, 0 yes";
    assert_eq!(walked(&state("yes: done, maybe: $current"), later), "a a a a a a = success in done");
}

#[test]
fn tries_that_nobody_could_judge_are_no_retries() {
    let state = "  a: {action: x, evaluate: {type: classify}, on_yes: done, on_no: $current, on_error: bad, max_retries: 1, on_retry_exhausted: bad}";
    let script = "x: 0 cannot_judge, 0 no, 0 yes";
    assert_eq!(walked(state, script), "a a (try 2 after 1) a = success in done");
}

#[test]
fn a_run_that_was_left_in_a_repetition_goes_on_in_it() {
    let text =
        format!("states:\n  a: {{action: x, repeat: {{passes: 3}}, on_yes: done, on_no: bad}}\n{ENDS}");
    let machine = machine(&text);
    let all = events(&machine, start(true), &world(""));
    for cut in 0..all.len() {
        let run = refolded(&machine, &all[..cut]);
        let entries = |events: &[Event]| {
            events.iter().filter(|event| matches!(event, Event::StateEnter { .. })).count()
        };
        assert!(run.step() as usize == entries(&all[..cut]), "{cut}");
    }
    assert_eq!(refolded(&machine, &all).step(), 3);
}

#[test]
fn a_verdict_that_the_model_is_not_sure_of_takes_the_way_of_its_word() {
    let state =
        |routes: &str| format!("  a: {{action: x, evaluate: {{type: classify}}, route: {{{routes}}}}}");
    let script = "x: 0 yes_uncertain";
    assert_eq!(walked(&state("yes: done, _: bad"), script), "a = failure in done");
    assert_eq!(walked(&state("yes: done, yes_uncertain: bad"), script), "a = failure in bad");
    assert_eq!(walked(&state("no: done, _: bad"), script), "a = failure in bad");
}

#[test]
fn a_no_without_a_way_takes_the_one_of_errors() {
    for (routes, expected) in [
        ("on_yes: done, on_error: bad", "a = failure in bad"),
        ("route: {yes: done, _error: bad}", "a = failure in bad"),
        ("route: {yes: done, _: done, _error: bad}", "a = failure in done"),
        ("on_yes: done, on_no: done, on_error: bad", "a = failure in done"),
        ("on_yes: done", "a = error in a"),
    ] {
        assert_eq!(walked(&format!("  a: {{action: x, {routes}}}"), "x: 1"), expected, "{routes}");
    }
    // The loop's own route for errors is not taken by a `no`.
    let text = format!("on_error: bad\nstates:\n  a: {{action: x, on_yes: done}}\n{ENDS}");
    let events = events(&machine(&text), start(true), &world("x: 1"));
    assert!(matches!(events.last(), Some(Event::LoopComplete(end)) if end.outcome == Outcome::Error));
}

#[test]
fn a_check_that_fails_is_made_again_so_often_and_these_are_no_retries() {
    let always = "  a: {action: x, check: true, flaky: {again: 2, always: true}, on_yes: done, on_no: bad}";
    assert_eq!(walked(always, "x: 1, 1, 0"), "a a a = success in done");
    assert_eq!(walked(always, "x: 1, 1, 1, 0"), "a a a = failure in bad");
    // It is not known to waver.
    let known = always.replace(", always: true", "");
    assert_eq!(walked(&known, "x: 1, 0"), "a = failure in bad");
    let retried = always.replace("on_no: bad", "on_no: $current, max_retries: 1, on_retry_exhausted: bad");
    assert_eq!(walked(&retried, "x: 1, 1, 1, 1, 1, 1, 0"), "a a a (try 2 after 1) a a a = failure in bad");
}

/// The end of a run in which the check `a` is in quarantine.
fn excused(states: &str, script: &str) -> String {
    let machine = machine(&format!("states:\n{states}\n{ENDS}"));
    let mut start = start(true);
    let state = StateName::parse("a").unwrap();
    let text = |text: &str| text.to_owned();
    let (owner, until, reason) = (text("ann"), text("2999-12-31"), text("times out"));
    start.event.checks.quarantined.push(QuarantinedCheck { state, owner, until, reason });
    let events = events(&machine, start, &world(script));
    let Some(Event::LoopComplete(end)) = events.last() else { panic!() };
    let reasons = end.verification.iter().flat_map(|verification| &verification.reasons);
    let reasons: Vec<&str> = reasons.map(|reason| reason.word()).collect();
    format!("{} in {} verified {} {}", end.outcome.word(), end.final_state, end.verified, reasons.join(" "))
}

#[test]
fn a_failure_that_is_excused_verifies_nothing_and_hides_nothing() {
    let a = "  a: {action: x, check: true, on_yes: done, on_no: bad}";
    assert_eq!(excused(a, "x: 1").trim(), "success in done verified false quarantined");
    assert_eq!(excused(a, "x: 0").trim(), "success in done verified true");
    // A command that is not there has not failed as a check does.
    assert!(excused(a, "x: 127").starts_with("error"), "{}", excused(a, "x: 127"));
    // No check says that its failure may be excused.
    let other = a.replace("check: true", "check: false");
    assert!(excused(&other, "x: 1").starts_with("failure in bad"));
}
