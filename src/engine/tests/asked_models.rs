//! States that need a model, signals and hand-offs, and what models may cost.

use super::resumed::folded;
use super::*;
use crate::engine::past::Standing;

const FIX: &str = "states:\n  fix: {action: /fix it, on_yes: done, on_no: fix}\n  done: {terminal: true}\n";

fn with_llm(llm: Llm) -> Start {
    let start = start(false);
    Start { event: LoopStart { llm, ..start.event }, ..start }
}

fn trace_with(text: &str, script: &str, start: Start) -> String {
    traced(&events(&machine(text), start, &world(script)))
}

#[test]
fn a_prompt_is_judged_by_a_model() {
    let trace = trace_with(FIX, "judge: 0 no, 0 yes", with_llm(Llm::On));
    assert_snapshot!(trace, @"
    1/1 fix: /fix it (0) asked → no → fix [Verdict for no]
    2/2#2 fix: /fix it (0) asked → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 2 iterations, 2 steps: ended in `done`
    ");
}

#[test]
fn a_prompt_that_failed_is_an_error_and_nobody_is_asked() {
    let text = "states:\n  fix: {action: /fix it, on_yes: done, on_error: oops}\n  done: {terminal: true}\n  oops: {terminal: true, outcome: failure}\n";
    assert_snapshot!(trace_with(text, "/fix it: missing", with_llm(Llm::On)), @"
    1/1 fix: /fix it (127) → oops [Verdict for error]
    = failure (1, unverified) by Terminal in oops after 1 iterations, 1 steps: ended in `oops`
    ");
}

#[test]
fn a_judge_without_an_answer_is_an_error() {
    let text = "states:\n  fix: {action: /fix it, route: {yes: done, _error: oops}}\n  done: {terminal: true}\n  oops: {terminal: true}\n";
    assert_snapshot!(trace_with(text, "judge: 1 it broke", with_llm(Llm::On)), @"
    1/1 fix: /fix it (0) asked (it broke) → error → oops [Error for error]
    = success (0, unverified) by Terminal in oops after 1 iterations, 1 steps: ended in `oops` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn without_a_model_the_ways_are_blocked_then_error_then_a_hand_off() {
    let off = |routes: &str| {
        let text = format!(
            "states:\n  fix: {{action: /fix it, {routes}}}\n  done: {{terminal: true}}\n  other: {{terminal: true}}\n"
        );
        trace_with(&text, "", with_llm(Llm::Off))
    };
    assert_snapshot!(off("on_yes: done, on_error: done, on_blocked: other"), @"
    1/1 fix → blocked → other [Verdict for blocked]
    = success (0, unverified) by Terminal in other after 1 iterations, 1 steps: ended in `other` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(off("on_yes: done, route: {_error: other}"), @"
    1/1 fix → blocked → other [Error for blocked]
    = success (0, unverified) by Terminal in other after 1 iterations, 1 steps: ended in `other` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(off("next: done, on_error: other"), @"
    1/1 fix → blocked → other [Error for blocked]
    = success (0, unverified) by Terminal in other after 1 iterations, 1 steps: ended in `other` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(off("next: done, on_blocked: other"), @"
    1/1 fix → blocked → other [Verdict for blocked]
    = success (0, unverified) by Terminal in other after 1 iterations, 1 steps: ended in `other` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(off("route: {yes: done, _: other}"), @"
    1/1 fix handoff: `fix` needs an agent, and none may be asked here (llm_disabled), pause
    = handoff (75, unverified) by Handoff in fix after 1 iterations, 1 steps: `fix` needs an agent, and none may be asked here (llm_disabled)
    ");
}

#[test]
fn without_a_model_a_command_that_one_would_judge_is_not_run() {
    let text = "states:\n  look: {action: ls, evaluate: {type: llm_structured}, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace_with(text, "", with_llm(Llm::Off)), @"
    1/1 look handoff: `look` needs an agent, and none may be asked here (llm_disabled), pause
    = handoff (75, unverified) by Handoff in look after 1 iterations, 1 steps: `look` needs an agent, and none may be asked here (llm_disabled)
    ");
    let forbidden = format!("llm: {{enabled: false}}\n{text}");
    assert_snapshot!(trace_with(&forbidden, "", with_llm(Llm::On)), @"
    1/1 look handoff: `look` needs an agent, and none may be asked here (llm_disabled), pause
    = handoff (75, unverified) by Handoff in look after 1 iterations, 1 steps: `look` needs an agent, and none may be asked here (llm_disabled)
    ");
}

#[test]
fn signals_go_before_routes() {
    let text = "states:\n  work: {action: work, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let said = |line: &str| trace_with(text, &format!("work: 0 {line}"), start(false));
    assert_snapshot!(said("CONTEXT_HANDOFF: item 7"), @"
    1/1 work: work (0) signal handoff: item 7 handoff: `work` asked for a fresh session: item 7 (item 7), pause
    = handoff (75, unverified) by Handoff in work after 1 iterations, 1 steps: `work` asked for a fresh session: item 7
    ");
    assert_snapshot!(said("CONTEXT_HANDOFF: Ready for fresh session"), @"
    1/1 work: work (0) signal handoff: Ready for fresh session handoff: `work` asked for a fresh session: what was written down (what was written down), pause
    = handoff (75, unverified) by Handoff in work after 1 iterations, 1 steps: `work` asked for a fresh session: what was written down
    ");
    assert_snapshot!(said("FATAL_ERROR: the disk burns"), @"
    1/1 work: work (0) signal error: the disk burns
    = error (4, unverified) by FatalError in work after 1 iterations, 1 steps: the disk burns
    ");
    assert_snapshot!(said("LOOP_STOP: enough"), @"
    1/1 work: work (0) signal stop: enough
    = stopped (3, unverified) by LoopStop in work after 1 iterations, 1 steps: enough
    ");
    let endless = said(&format!("FATAL_ERROR: {}", "x".repeat(1 << 20)));
    assert!(endless.len() < 10_000, "{} bytes were said", endless.len());
    let deaf = format!("signals: [stop]\n{text}");
    assert_snapshot!(trace_with(&deaf, "work: 0 FATAL_ERROR: x", start(false)), @"
    1/1 work: work (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 1 iterations, 1 steps: ended in `done`
    ");
}

#[test]
fn the_loop_or_the_command_line_says_who_continues() {
    let text =
        "on_handoff: terminate\nstates:\n  work: {action: work, next: done}\n  done: {terminal: true}\n";
    let script = "work: 0 CONTEXT_HANDOFF: item 7";
    assert_snapshot!(trace_with(text, script, start(false)), @"
    1/1 work: work (0) signal handoff: item 7 handoff: `work` asked for a fresh session: item 7 (item 7), terminate
    = error (4, unverified) by Handoff in work after 1 iterations, 1 steps: `work` asked for a fresh session: item 7
    ");
    let spawn = Start { on_handoff: Some(OnHandoff::Spawn), ..start(false) };
    assert_snapshot!(trace_with(text, script, spawn), @"
    1/1 work: work (0) signal handoff: item 7 handoff: `work` asked for a fresh session: item 7 (item 7), spawn
    = handoff (75, unverified) by Handoff in work after 1 iterations, 1 steps: `work` asked for a fresh session: item 7
    ");
}

#[test]
fn a_budget_ends_the_run_before_the_call_that_would_not_fit() {
    let trace =
        |budget: &str| trace_with(&format!("budget: {budget}\n{FIX}"), "judge: 0 no", with_llm(Llm::On));
    assert_snapshot!(trace("{llm_calls: 3}"), @"
    1/1 fix: /fix it (0) asked → no → fix [Verdict for no]
    2/2#2 fix: /fix it (0)
    = over_budget (6, unverified) by Budget in fix after 2 iterations, 2 steps: stopped at 3 of 3 model calls
    ");
    assert_snapshot!(trace("{cost_usd: 0.25}"), @"
    1/1 fix: /fix it (0) asked → no → fix [Verdict for no]
    2/2#2 fix
    = over_budget (6, unverified) by Budget in fix after 2 iterations, 2 steps: stopped at $0.20 of $0.25, because a call took up to $0.10
    ");
    let capped = Start { budget: Budget { tokens: Some(150), ..Budget::default() }, ..with_llm(Llm::On) };
    assert_snapshot!(trace_with(FIX, "judge: 0 no", capped), @"
    1/1 fix: /fix it (0)
    = over_budget (6, unverified) by Budget in fix after 1 iterations, 1 steps: stopped at 100 of 150 tokens, because a call took up to 100 tokens
    ");
}

#[test]
fn a_closing_prompt_is_left_out_without_a_model() {
    let text = "states:\n  a: {action: x, next: done}\n  done: {terminal: true, action: /say bye}\n";
    assert_snapshot!(trace_with(text, "", with_llm(Llm::Off)), @"
    1/1 a: x (0) → done [Next]
     warning: the closing action was not run: it needs an agent, and none may be asked here
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed
    ");
    assert_snapshot!(trace_with(text, "", with_llm(Llm::On)), @"
    1/1 a: x (0) → done [Next]
    closing done: /say bye (0)
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed
    ");
}

#[test]
fn a_call_that_a_kill_cut_off_counts_for_the_caps_of_who_goes_on() {
    let machine = machine(&format!("budget: {{llm_calls: 2}}\n{FIX}"));
    let all = events(&machine, with_llm(Llm::On), &world("judge: 0 yes"));
    let is_call = |event: &Event| matches!(event, Event::ActionStart { .. });
    let cut = all.iter().position(is_call).unwrap() + 1;
    let mut kept: Vec<(Event, Duration)> =
        all[..cut].iter().map(|event| (event.clone(), Duration::ZERO)).collect();
    let mut ends = Vec::new();
    for _ in 0..2 {
        let past = folded(&machine, &kept);
        let Standing::Open(how) = past.standing(&machine) else { panic!("{past:?}") };
        let mut engine = Engine::resume(&machine, with_llm(Llm::On), past, how, Duration::ZERO);
        let events = engine.handle(Input::Begin, Duration::ZERO).unwrap();
        // The next kill comes in the middle of the call as well.
        kept.extend(events.into_iter().map(|event| (event, Duration::ZERO)));
        ends.push(match engine.next() {
            Next::Prompt(_) => "asked".to_owned(),
            Next::Done(end) => end.reason.clone(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(ends, ["asked", "stopped at 2 of 2 model calls"]);
}
