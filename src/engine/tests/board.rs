//! States that work on the task board, and what the engine has for those who work there.

use super::*;
use crate::engine::past::{Past, Standing};

const BOARD: &str = "on_resume: recover
board: {attempts_before_replan: 2, max_replan_depth: 0}
states:
  load: {action: load, action_type: board, params: {answer: '${context.plan}'}, on_loaded: approve, on_error: bad}
  approve: {action: approve, action_type: board, params: {because: asked}, on_approved: next}
  next: {action: next, action_type: board, on_task: work, on_done: done, on_stuck: bad}
  work: {action: 'do ${board.id}', role: coder, on_yes: pass, on_no: fail}
  pass: {action: pass, action_type: board, params: {summary: '${prev.output}'}, on_passed: next}
  fail:
    action: fail
    action_type: board
    params: {output: '${prev.output}'}
    on_retry: next
    on_replan: give_up
    on_give_up: give_up
    on_stuck: bad
    on_abort: bad
  give_up: {action: give_up, action_type: board, on_given_up: next, on_abort: bad}
  recover: {action: recover, action_type: board, on_plan: load, on_review: approve, on_next: next}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}
";

fn planned(plan: &Value) -> Start {
    let context = Map::from_iter([("plan".to_owned(), plan.to_string().into())]);
    Start { context, ..start(false) }
}

fn plan() -> Value {
    json!({"tasks": [{"description": "a"}, {"description": "b", "dependencies": [0]}]})
}

fn statuses(run: &Run) -> Vec<&'static str> {
    run.board().tasks.iter().map(|task| task.status.word()).collect()
}

#[test]
fn the_board_chooses_the_work_and_is_no_observation() {
    let trace =
        traced(&events(&machine(BOARD), planned(&plan()), &world("do 1: 1 red, 0 green\ndo 2: 0 fine")));
    assert_snapshot!(trace, @"
    1/1 load load → loaded → approve [Verdict for loaded]
    1/2 approve approve → approved → next [Verdict for approved]
    1/3 next next → task → work [Verdict for task]
    1/4 work: do 1 (1) → no → fail [Verdict for no]
    1/5 fail fail → retry → next [Verdict for retry]
    2/6 next next → task → work [Verdict for task]
    2/7 work: do 1 (0) → yes → pass [Verdict for yes]
    2/8 pass pass → passed → next [Verdict for passed]
    3/9 next next → task → work [Verdict for task]
    3/10 work: do 2 (0) → yes → pass [Verdict for yes]
    3/11 pass pass → passed → next [Verdict for passed]
    4/12 next next → done → done [Verdict for done]
    = success (0) by Terminal in done after 4 iterations, 12 steps: ended in `done`
    ");
}

#[test]
fn what_the_board_cannot_do_speaks_against_the_work() {
    let trace = traced(&events(&machine(BOARD), planned(&json!("prose")), &world("")));
    assert_snapshot!(trace, @"
    1/1 load load → error → bad [Verdict for error]
    = failure (1, unverified) by Terminal in bad after 1 iterations, 1 steps: ended in `bad`
    ");
    let text = BOARD.replace("on_error: bad}", "on_error: done}");
    let end = events(&machine(&text), planned(&json!({"tasks": []})), &world("")).pop().unwrap();
    let Event::LoopComplete(end) = end else { panic!() };
    assert_eq!((end.final_state.as_str(), end.verified), ("done", false));
}

/// Cuts a run after any number of its events, as they would be read from a journal, and lets it go on.
#[test]
fn a_run_that_was_left_anywhere_goes_on_where_it_says() {
    let machine = machine(BOARD);
    let world = |script| world(script);
    let all = events(&machine, planned(&plan()), &world("do 1: 0 green\ndo 2: 0 fine"));
    let done_1 =
        all.iter().position(|event| matches!(event, Event::Board(event) if event.operation == "pass"));
    for cut in 1..all.len() {
        let Event::LoopStart(begun) = &all[0] else { panic!() };
        let mut past = Past::new(&machine, begun.clone(), IndexMap::new());
        for event in &all[1..cut] {
            let read: Event = serde_json::from_value(serde_json::to_value(event).unwrap()).unwrap();
            past.event(&machine, &read, Duration::from_secs(1));
        }
        let Standing::Open(how) = past.standing(&machine) else { panic!("cut {cut}") };
        let mut engine = Engine::resume(&machine, planned(&plan()), past, how, Duration::ZERO);
        let mut actions = Vec::new();
        loop {
            let input = match engine.next() {
                Next::Done(end) => {
                    assert_eq!(end.outcome, Outcome::Success, "cut {cut}");
                    break;
                }
                Next::Begin => Input::Begin,
                Next::Run(request) => {
                    actions.push(request.text.clone());
                    Input::ActionDone(Observation::exited(0, "again"))
                }
                other => panic!("{other:?}"),
            };
            let _events = engine.handle(input, Duration::from_secs(2)).unwrap();
        }
        assert_eq!(statuses(engine.run()), ["completed", "completed"], "cut {cut}");
        let again = actions.iter().any(|text| text == "do 1");
        assert_eq!(
            again,
            cut <= done_1.unwrap(),
            "cut {cut}: what is completed is not done again: {actions:?}"
        );
    }
}

#[test]
fn an_end_that_was_reached_is_not_left_again() {
    let machine = machine(BOARD);
    let all = events(&machine, planned(&plan()), &world(""));
    let Event::LoopStart(begun) = &all[0] else { panic!() };
    let mut past = Past::new(&machine, begun.clone(), IndexMap::new());
    all[1..all.len() - 1].iter().for_each(|event| past.event(&machine, event, Duration::ZERO));
    let Standing::Open(how) = past.standing(&machine) else { panic!() };
    let mut engine = Engine::resume(&machine, planned(&plan()), past, how, Duration::ZERO);
    let went_on = engine.handle(Input::Begin, Duration::from_secs(1)).unwrap();
    let [Event::LoopResume(_), Event::LoopComplete(end)] = &went_on[..] else { panic!("{went_on:?}") };
    assert_eq!((end.final_state.as_str(), end.outcome), ("done", Outcome::Success));
}

#[test]
fn the_wait_before_a_retry_doubles() {
    let text = "states:\n  a: {action: x, max_retries: 3, retry_delay: 2s, on_retry_exhausted: bad, on_yes: done, on_no: $current}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let waits: Vec<_> = events(&machine(text), start(false), &world("x: 1"))
        .into_iter()
        .filter_map(|event| match event {
            Event::Backoff { duration_ms, .. } => Some(duration_ms),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [2000, 4000, 8000]);
}

#[test]
fn a_way_back_into_the_state_is_none_where_no_model_may_be_asked() {
    let text = "states:\n  ask: {action: /x, on_yes: done, on_error: $current, max_retries: 2, on_retry_exhausted: done}\n  done: {terminal: true}\n";
    let all = events(&machine(text), start(false), &world(""));
    assert!(matches!(all.last(), Some(Event::LoopComplete(end)) if end.outcome == Outcome::Handoff));
}

/// What prompts are asked with, each time that one is asked; the last answer goes for every further one.
fn asked(machine: &Machine, answers: &[(i32, Option<&str>)]) -> Vec<request::PromptRequest> {
    let llm = LoopStart { llm: Llm::On, ..start(false).event };
    let mut engine = Engine::new(machine, Start { event: llm, ..start(false) });
    let mut asked = Vec::new();
    loop {
        let input = match engine.next() {
            Next::Done(_) => return asked,
            Next::Begin => Input::Begin,
            Next::Prompt(request) => {
                let (code, session) = answers.get(asked.len()).or(answers.last()).unwrap();
                asked.push(request.clone());
                let usage = Usage { session: session.map(str::to_owned), ..call() };
                Input::PromptDone(Observation::exited(*code, "said"), usage)
            }
            Next::Wait(_) => Input::WaitDone,
            other => panic!("{other:?}"),
        };
        let _events = engine.handle(input, Duration::ZERO).unwrap();
    }
}

#[test]
fn prompts_of_one_name_continue_each_other_until_one_fails() {
    let text = "states:
  a: {action: /x, session: one, next: b}
  b: {action: /y, session: one, next: c}
  c: {action: /z, next: d, on_error: d}
  d: {action: /x, session: one, next: done}
  done: {terminal: true}\n";
    let sessions = |answers: &[(i32, Option<&str>)]| -> Vec<_> {
        let id = |request: request::PromptRequest| request.session.map(|session| session.id);
        asked(&machine(text), answers).into_iter().map(id).collect()
    };
    let goes_on = |id: &str| Some(Some(id.to_owned()));
    let well = [(0, Some("s1")), (0, Some("s2")), (0, Some("other")), (0, None)];
    assert_eq!(sessions(&well), [Some(None), goes_on("s1"), None, goes_on("s2")]);
    let badly = [(0, Some("s1")), (1, Some("s1")), (0, None), (0, None)];
    assert_eq!(sessions(&badly), [Some(None), goes_on("s1"), None, Some(None)]);
}

#[test]
fn another_try_is_asked_of_the_other_model() {
    let text = "states:\n  a: {action: /x, model: big, fallback_model: small, next: done, on_error: a, max_retries: 2, on_retry_exhausted: done}\n  done: {terminal: true}\n";
    let models: Vec<_> = asked(&machine(text), &[(1, None), (1, None), (0, None)])
        .into_iter()
        .map(|request| (request.model.unwrap(), request.fallback_model))
        .collect();
    let small = || ("small".to_owned(), None);
    assert_eq!(models, [("big".to_owned(), Some("small".to_owned())), small(), small()]);
    // To enter a state again is no other try, unless tries are bounded.
    let text = text.replace(", max_retries: 2, on_retry_exhausted: done", "");
    let again: Vec<_> =
        asked(&machine(&text), &[(1, None), (0, None)]).into_iter().map(|one| one.model.unwrap()).collect();
    assert_eq!(again, ["big", "big"]);
}

#[test]
fn a_new_cycle_begins_new_conversations() {
    let text =
        "maintain: true\nstates:\n  a: {action: /x, session: one, next: done}\n  done: {terminal: true}\n";
    let mut machine = machine(text);
    machine.limits.cycles = Some(2);
    let asked = asked(&machine, &[(0, Some("s1"))]);
    let sessions: Vec<_> = asked.into_iter().map(|request| request.session.unwrap().id).collect();
    assert_eq!(sessions, [None, None]);
}
