//! The rules of a run as traces: a loop, a scripted world, and every event that follows.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test picks the events it is about")]

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::LazyLock;

use generated::answer_commands;
use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::event::Llm;
use super::outcome::{Asker, Outcome, Signal, TerminatedBy};
use super::request::{AskRequest, RestoredTree, SurveyRequest};
use super::*;
use crate::base::explanation::Explanation;
use crate::base::text::up_to;
use crate::base::time::millis;
use crate::definition::load;
use crate::evaluate::jq_question::Queried;
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop, StoredText, Text};
use crate::evaluate::survey::{Survey, Surveyed};
use crate::machine::Target;
use crate::machine::compile::compile;

mod asked_models;
mod board;
mod cancelled;
mod changes;
mod explored;
mod generated;
mod night_runs;
mod resumed;
mod rewound;
mod rounds;
mod supposed;
mod trees;

/// Compiles the text of a loop without its name and `initial`; the first state is the initial one.
fn machine(text: &str) -> Machine {
    let first = text.lines().skip_while(|line| *line != "states:").nth(1).unwrap_or_default();
    let first = up_to(first.trim(), &[':']).trim_matches('\'');
    let text = format!("name: demo\ninitial: {first}\n{text}");
    let loaded =
        load::decode("demo.yaml", &text, String::new()).unwrap_or_else(|e| panic!("{:#?}", e.findings));
    let (machine, problems) = compile(&loaded.definition);
    machine.unwrap_or_else(|| panic!("{problems:#?}"))
}

fn start(strict: bool) -> Start {
    Start {
        event: LoopStart {
            max_iterations: 50,
            strict,
            ..LoopStart::new(crate::base::name::LoopName::parse("demo").unwrap(), "demo-1")
        },
        shares_tree: false,
        reused: None,
        at: Timestamp::from_millis(0),
        context: Map::new(),
        env: BTreeMap::from([("HOME".to_owned(), "/home/x".to_owned())]),
        key: "demo-1".to_owned(),
        run_dir: "/run".to_owned(),
        deadline: None,
        timeout: None,
        budget: Budget::default(),
        on_handoff: None,
        people: People::Here,
        job: None,
        approvals: Vec::new(),
        merged_head: None,
        captured: IndexMap::new(),
    }
}

/// What the world answers: for an action text the exit codes and outputs in turn, the last one for ever.
struct TestWorld<'w> {
    answers: RefCell<BTreeMap<&'w str, VecDeque<Observation>>>,
    /// Each a letter for the tree of one survey after the other, the last one for ever; `!` for none.
    surveys: RefCell<VecDeque<char>>,
    asked: RefCell<Vec<Vec<String>>>,
    seconds_per_action: u64,
}

/// Reads `text: code [output], code, timeout, …` lines.
fn world(script: &str) -> TestWorld<'_> {
    let answers = script.lines().filter_map(|line| line.split_once(": ")).map(|(text, answers)| {
        let answers = answers.split(", ").map(|answer| match answer.split_once(' ') {
            _ if answer == "timeout" => {
                Observation { stop: Some(Stop::Timeout), ..Observation::exited(124, "") }
            }
            _ if answer == "loop-timeout" => {
                Observation { stop: Some(Stop::LoopTimeout), ..Observation::exited(124, "") }
            }
            _ if answer == "deadline" => {
                Observation { stop: Some(Stop::Deadline), ..Observation::exited(124, "") }
            }
            _ if answer == "missing" => Observation::not_started("no such program"),
            Some((code, output)) => Observation::exited(code.parse().unwrap(), format!("{output}\n")),
            None => Observation::exited(answer.parse().unwrap(), ""),
        });
        (text.trim(), answers.collect())
    });
    TestWorld {
        answers: RefCell::new(answers.collect()),
        surveys: RefCell::new(VecDeque::from(['!'])),
        asked: RefCell::default(),
        seconds_per_action: 1,
    }
}

/// Returns the survey of a tree that is known by a letter; capitals have another commit.
fn tree(letter: char) -> Surveyed {
    if letter == '!' {
        return Err(Explanation::new("no git repository"));
    }
    let head = Some(if letter.is_uppercase() { "2" } else { "1" }.to_owned());
    Ok(Survey { head, digest: letter.to_lowercase().to_string() })
}

impl TestWorld<'_> {
    fn with_trees(self, letters: &str) -> Self {
        Self { surveys: RefCell::new(letters.chars().collect()), ..self }
    }

    fn survey(&self, request: &SurveyRequest) -> Surveyed {
        self.asked.borrow_mut().push(request.scope.clone());
        let mut surveys = self.surveys.borrow_mut();
        tree(if surveys.len() > 1 { surveys.pop_front().unwrap() } else { surveys[0] })
    }

    /// Returns what a file says: the answers of its name.
    fn file(&self, path: &str) -> Option<Vec<u8>> {
        let is_there = self.answers.borrow().contains_key(path);
        is_there.then(|| self.answer(path).stdout.as_str().as_bytes().to_vec())
    }

    /// Answers a query as a scripted answer says whose name is the expression.
    fn query(&self, request: &request::QueryRequest) -> Queried {
        let seen = self.answer(&request.query.filter);
        let value = serde_json::from_str(seen.stdout.without_line_end());
        Queried { result: value.map_err(|_| Explanation::new("no answer")), stop: seen.stop }
    }

    fn answer(&self, text: &str) -> Observation {
        match self.answers.borrow_mut().get_mut(text) {
            Some(answers) if answers.len() > 1 => answers.pop_front().unwrap(),
            Some(answers) => answers[0].clone(),
            None => Observation::exited(0, ""),
        }
    }
}

/// Runs to the end and returns the events.
fn events(machine: &Machine, start: Start, world: &TestWorld<'_>) -> Vec<Event> {
    let mut engine = Engine::new(machine, start);
    let mut all = Vec::new();
    let mut now = Duration::ZERO;
    for _ in 0..10_000 {
        let input = match engine.next() {
            Next::Done(_) => return all,
            Next::Begin => Input::Begin,
            Next::Yield => Input::Yielded,
            Next::Survey(request) => Input::Surveyed(world.survey(request)),
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => Input::Looked(changes::looked()),
            Next::SetAside(_) => Input::SetAside(Ok(())),
            Next::Restore(_) => Input::Restored(Ok(RestoredTree::default())),
            Next::Measure(request) => Input::Measured(changes::changed(&request.start).into()),
            Next::Read(path) => Input::FileRead(Ok(world.file(path))),
            Next::Query(request) => Input::Queried(world.query(request)),
            Next::Wait(wait) => {
                now += wait;
                Input::WaitDone
            }
            Next::Run(request) => {
                let seen = world.answer(&request.text);
                let limit = request.setting.end.map_or(Duration::MAX, |(limit, _)| limit);
                now += Duration::from_secs(world.seconds_per_action).min(limit);
                Input::ActionDone(seen)
            }
            Next::SubLoop(request) => {
                let seen = world.answer(&request.name);
                Input::SubLoopDone(sub_loop_end(request, &seen))
            }
            Next::Prompt(request) => Input::PromptDone(world.answer(&request.text), call()),
            Next::Call(request) => Input::ActionDone(world.answer(&request.tool)),
            Next::Approve(request) => Input::ActionDone(world.answer(&request.text)),
            Next::Learn(request) => Input::PromptDone(world.answer(&request.targets.join(",")), call()),
            Next::Ask(request) => Input::Answered(answered(&world.answer("judge"), request)),
            Next::ReadContinuation => Input::Continuation(Some("what was written down".to_owned())),
            Next::LookForQuestion => unreachable!("somebody is at the terminal"),
        };
        all.extend(engine.handle(input, now).unwrap());
    }
    panic!("no end after 10000 turns: {:?}", &all[all.len() - 5..]);
}

/// What every call of a model costs: ten cents and a hundred tokens.
fn call() -> Usage {
    Usage { calls: 1, input_tokens: 90, output_tokens: 10, cost_usd: Some(0.1), ..Usage::default() }
}

/// Takes the output of a scripted answer as the verdict of a judge.
fn answered(seen: &Observation, request: &AskRequest) -> ModelAnswer {
    assert!(request.question.prompt.contains("<action_output>"));
    let verdict = seen.stdout.without_line_end();
    let reply = json!({"verdict": verdict, "confidence": 0.9, "reason": "because"});
    let reply = if seen.exit_code == 0 { Ok(reply) } else { Err(Explanation::new(verdict)) };
    ModelAnswer { reply, stop: seen.stop, usage: call() }
}

/// Lets a sub-loop end as a scripted answer says: its exit code names the outcome, its output is a capture `kid`.
fn sub_loop_end(
    request: &request::SubLoopRequest,
    seen: &Observation,
) -> Result<request::SubLoopEnd, Explanation> {
    let outcome = match seen.exit_code {
        0 => Outcome::Success,
        1 => Outcome::Failure,
        4 => Outcome::Error,
        5 => Outcome::Blocked,
        124 => Outcome::Timeout,
        _ => return Err(Explanation::new("there is no such loop")),
    };
    let name = crate::base::name::StateName::parse("end").unwrap();
    let complete = event::LoopComplete {
        iterations: 1,
        steps: 2,
        cycles: 1,
        duration_ms: 1000,
        verified: true,
        ..event::LoopComplete::new(outcome, outcome::TerminatedBy::Terminal, name.clone())
    };
    let mut captured = request.around.as_ref().map(|around| around.captured.clone()).unwrap_or_default();
    captured.insert("kid".to_owned(), StateResult { state: name, seen: seen.clone(), verdict: None });
    let output = seen.stdout.clone();
    Ok(request::SubLoopEnd {
        complete,
        captured,
        sub_loops: IndexMap::new(),
        output,
        handoff: None,
        usage: Usage::default(),
        rechecks: None,
        had_ended: false,
    })
}

/// Writes events as one line a step: `1/2 check: test → no → fix`.
fn traced(events: &[Event]) -> String {
    let mut out = String::new();
    for event in events {
        let _ = match event {
            Event::LoopStart(_) | Event::LoopResume(_) => Ok(()),
            Event::Reused(reused) => write!(out, "{}", reused.words()),
            Event::Approval(given) => write!(out, " {}", given.sentence()),
            Event::StateEnter { state, iteration, step, attempt } => {
                write!(
                    out,
                    "{iteration}/{step}{} {state}",
                    if *attempt > 1 { format!("#{attempt}") } else { String::new() }
                )
            }
            Event::ActionStart { state, action, .. } if out.ends_with(&format!(" {state}")) => {
                write!(out, ": {action}")
            }
            Event::ActionStart { state, action, .. } => write!(out, "closing {state}: {action}"),
            Event::ActionComplete(complete) if complete.seen.stop.is_some() => {
                write!(out, " ({:?})", complete.seen.stop.unwrap())
            }
            Event::ActionComplete(complete) => write!(out, " ({})", complete.seen.exit_code),
            Event::Evaluate { verdict, .. } => write!(out, " → {verdict}"),
            Event::Board(event) => write!(out, " {} → {}", event.operation, event.verdict),
            Event::Route { to, reason, verdict, .. } => {
                let verdict = verdict.as_ref().map_or_else(String::new, |verdict| format!(" for {verdict}"));
                writeln!(out, " → {to} [{reason:?}{verdict}]")
            }
            Event::Retry { attempt, max_retries, .. } => {
                writeln!(out, "retry {attempt} after {max_retries} at most")
            }
            Event::SubLoopStart { r#loop, .. } => write!(out, " runs {loop}"),
            Event::SubLoopComplete(end) => write!(out, " ({})", end.exit_code),
            Event::Message { text, .. } => write!(out, " says {text:?}"),
            Event::Backoff { duration_ms, .. } => writeln!(out, "wait {duration_ms}ms"),
            Event::VerdictTree { .. } => write!(out, " (looked)"),
            Event::Sandbox(_) => write!(out, " (confined)"),
            Event::ClosingPassStart(start) => writeln!(out, "closing pass: {}", start.checks.join(", ")),
            Event::ClosingPassCheck(check) => writeln!(out, "{} → {}", check.check, check.verdict),
            Event::ClosingPassProof(proof) => {
                writeln!(out, "{} without the work → {}", proof.check, proof.verdict)
            }
            Event::ClosingPassEnd(end) => writeln!(out, "closing pass: {:?}", end.result),
            Event::Stall { state, window, seen } => write!(out, " stall: {}", seen.sentence(state, *window)),
            Event::Warning { message, .. } => write!(out, " warning: {message}"),
            Event::Judge { error, .. } => {
                write!(out, " asked{}", error.as_ref().map_or_else(String::new, |why| format!(" ({why})")))
            }
            Event::Signal { signal, text, .. } => write!(out, " signal {}: {text}", signal.word()),
            Event::Handoff(handoff) => {
                let told =
                    handoff.continuation.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
                write!(out, " handoff: {}{told}, {}", handoff.message, handoff.behavior.word())
            }
            Event::CallFailed(failed) => write!(out, " failed {} in a row", failed.in_a_row),
            Event::ActionError { error, .. } => write!(out, " action error: {error}"),
            Event::LoopError { error, .. } => write!(out, " error: {error}"),
            Event::LoopTimeout { elapsed_ms, .. } => write!(out, " loop timeout after {elapsed_ms}ms"),
            Event::LoopComplete(end) => {
                let verified = if end.verified { "" } else { ", unverified" };
                let line = if out.is_empty() || out.ends_with('\n') { "" } else { "\n" };
                writeln!(
                    out,
                    "{line}= {} ({}{verified}) by {:?} in {} after {} iterations, {} steps: {}",
                    end.outcome.word(),
                    end.exit_code,
                    end.terminated_by,
                    end.final_state,
                    end.iterations,
                    end.steps,
                    end.reason
                )
            }
        };
    }
    out
}

fn trace(text: &str, script: &str) -> String {
    traced(&events(&machine(text), start(false), &world(script)))
}

fn trace_strict(text: &str, script: &str) -> String {
    traced(&events(&machine(text), start(true), &world(script)))
}

const CHECK_FIX: &str = "\
max_iterations: 3
states:
  check: {action: test, on_yes: done, on_no: fix}
  fix: {action: repair, next: check}
  done: {terminal: true}
";

#[test]
fn check_and_fix_share_an_iteration() {
    assert_snapshot!(trace(CHECK_FIX, "test: 1, 0"), @r"
    1/1 check: test (1) → no → fix [Verdict for no]
    1/2 fix: repair (0) → check [Next]
    2/3 check: test (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 2 iterations, 3 steps: ended in `done`
    ");
}

#[test]
fn the_cap_on_iterations_ends_the_run_where_a_new_pass_would_begin() {
    assert_snapshot!(trace(CHECK_FIX, "test: 1"), @r"
    1/1 check: test (1) → no → fix [Verdict for no]
    1/2 fix: repair (0) → check [Next]
    2/3 check: test (1) → no → fix [Verdict for no]
    2/4 fix: repair (0) → check [Next]
    3/5 check: test (1) → no → fix [Verdict for no]
    3/6 fix: repair (0) → check [Next]
    = exhausted (3, unverified) by MaxIterations in fix after 3 iterations, 6 steps: max_iterations (3) reached before `check`
    ");
}

#[test]
fn a_terminal_on_the_last_permitted_step_is_success() {
    let text = "max_iterations: 1\nmax_steps: 1\nstates:\n  a: {action: x, on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 0"), @r"
    1/1 a: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 1 iterations, 1 steps: ended in `done`
    ");
    assert_snapshot!(trace(text, "x: 1"), @r"
    1/1 a: x (1) → no → a [Verdict for no]
    = exhausted (3, unverified) by MaxIterations in a after 1 iterations, 1 steps: max_iterations (1) reached before `a`
    ");
}

#[test]
fn the_handler_of_a_cap_runs_once() {
    let text = "\
max_steps: 2
on_max_steps: report
states:
  a: {action: x, on_yes: done, on_no: b}
  b: {action: y, next: a}
  report: {action: tell, next: a}
  done: {terminal: true}
";
    assert_snapshot!(trace(text, "x: 1"), @r"
    1/1 a: x (1) → no → b [Verdict for no]
    1/2 b: y (0) → a [Next]
     → report [Cap]
    1/3 report: tell (0)
    = exhausted (3, unverified) by MaxSteps in report after 1 iterations, 3 steps: max_steps (2) reached before `report`
    ");
}

#[test]
fn an_edge_may_be_revisited_so_often() {
    let text = "max_edge_revisits: 2\nstates:\n  a: {action: x, on_yes: done, on_no: b}\n  b: {next: a}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 1"), @r"
    1/1 a: x (1) → no → b [Verdict for no]
    1/2 b → a [Next]
    2/3 a: x (1) → no → b [Verdict for no]
    2/4 b → a [Next]
    3/5 a: x (1) → no → b [Verdict for no]
    = exhausted (3, unverified) by MaxEdgeRevisits in a after 3 iterations, 5 steps: the way from `a` to `b` was taken 3 times
    ");
}

#[test]
fn a_success_that_nothing_verified_is_said_and_fails_in_strict_mode() {
    let text = "states:\n  test: {action: t, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "t: 1"), @r"
    1/1 test: t (1) → no → done [Verdict for no]
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(trace_strict(text, "t: 1"), @r"
    1/1 test: t (1) → no → done [Verdict for no]
    = failure (1, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
    let declared = text.replace("terminal: true", "terminal: true, outcome: success");
    assert_snapshot!(trace_strict(&declared, "t: 1"), @r"
    1/1 test: t (1) → no → done [Verdict for no]
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done`, which the loop declares a success
    ");
}

#[test]
fn a_fix_that_exits_with_zero_verifies_nothing() {
    let text = "states:\n  check: {action: t, on_yes: done, on_no: fix}\n  fix: {action: f, next: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace_strict(text, "t: 1"), @r"
    1/1 check: t (1) → no → fix [Verdict for no]
    1/2 fix: f (0) → done [Next]
    = failure (1, unverified) by Terminal in done after 1 iterations, 2 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn an_action_without_evaluation_that_fails_casts_doubt() {
    let text = "states:\n  a: {action: x, next: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace_strict(text, "x: 1"), @r"
    1/1 a: x (1) → done [Next]
    = failure (1, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn terminals_mean_what_they_say() {
    let text = |end: &str| format!("states:\n  a: {{action: x, next: {end}}}\n  {end}: {{terminal: true}}\n");
    assert_snapshot!(trace(&text("build_failed"), ""), @r"
    1/1 a: x (0) → build_failed [Next]
    = failure (1, unverified) by Terminal in build_failed after 1 iterations, 1 steps: ended in `build_failed`
    ");
    assert_snapshot!(trace(&text("escalate"), ""), @r"
    1/1 a: x (0) → escalate [Next]
    = blocked (5, unverified) by Terminal in escalate after 1 iterations, 1 steps: ended in `escalate`: a person is needed
    ");
}

#[test]
fn a_closing_action_runs_once_and_changes_nothing() {
    let text = "states:\n  a: {action: x, next: done}\n  done: {terminal: true, action: 'notify ${captured.a.exit_code}'}\n";
    assert_snapshot!(trace(text, "notify 0: 3"), @r"
    1/1 a: x (0) → done [Next]
    closing done: notify 0 (3) warning: the closing action failed (exit 3)
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed
    ");
    let broken = text.replace("captured.a.exit_code", "captured.zz");
    assert_snapshot!(trace(&broken, ""), @r"
    1/1 a: x (0) → done [Next]
     warning: the closing action was not run: `${captured.zz}` has no value: `zz` was not captured on the way here
    = success (0, unverified) by Terminal in done after 1 iterations, 1 steps: ended in `done` unverified: nothing passed
    ");
}

#[test]
fn error_routes_come_in_their_order() {
    let states = "  good: {terminal: true}\n  caught: {terminal: true}\n  other: {terminal: true}\n  wide: {terminal: true}\n";
    let text = |top: &str, route: &str| format!("{top}states:\n  a: {{action: x, {route}}}\n{states}");
    let ends = |top: &str, route: &str, answer: &str| {
        let events = events(&machine(&text(top, route)), start(false), &world(&format!("x: {answer}")));
        match events.last() {
            Some(Event::LoopComplete(end)) => format!("{} {}", end.outcome.word(), end.final_state),
            other => panic!("{other:?}"),
        }
    };
    let wide = "on_error: wide\n";
    for (top, route, answer, expected) in [
        ("", "route: {'yes': good, _error: caught, _: other}", "2", "success caught"),
        ("", "route: {'yes': good, error: caught, _error: other}", "5", "success caught"),
        ("", "route: {'yes': good, _: other}", "2", "success other"),
        (wide, "route: {'yes': good, _: other}", "2", "success wide"),
        (wide, "on_yes: good, on_no: other", "1", "success other"),
        ("", "on_yes: good, on_error: caught", "1", "success caught"),
        ("", "on_yes: good, on_error: caught", "timeout", "success caught"),
        ("", "on_yes: good, on_error: caught, on_timeout: other", "timeout", "success other"),
        ("on_timeout: wide\n", "on_yes: good, on_error: caught", "timeout", "success caught"),
        ("on_timeout: wide\non_error: other\n", "on_yes: good", "timeout", "success wide"),
        (wide, "on_yes: good", "timeout", "success wide"),
        ("", "on_yes: good", "timeout", "error a"),
        ("", "on_yes: good", "missing", "error a"),
        ("", "on_yes: good, on_error: caught", "missing", "success caught"),
        ("", "next: good, on_error: caught", "1", "success caught"),
        ("", "next: good, on_error: caught, on_timeout: other", "timeout", "success other"),
        ("", "next: good", "7", "success good"),
        (wide, "next: good", "7", "success good"),
        ("", "evaluate: {type: classify}, on_yes: good", "0 blocked", "blocked a"),
        ("on_blocked: wide\n", "evaluate: {type: classify}, on_yes: good", "0 blocked", "success wide"),
        ("", "evaluate: {type: classify}, on_deploy: good", "0 deploy", "success good"),
    ] {
        assert_eq!(ends(top, route, answer), expected, "{top}{route} {answer}");
    }
}

#[test]
fn no_way_out_names_the_ways_there_are() {
    let text = "states:\n  a: {action: x, on_yes: done, on_blocked: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 1"), @"
    1/1 a: x (1) → no error: no route for the verdict `no` (exit 1); the routes are `blocked`, `yes`
    = error (4, unverified) by Error in a after 1 iterations, 1 steps: no route for the verdict `no` (exit 1); the routes are `blocked`, `yes`
    ");
}

#[test]
fn an_error_without_a_route_names_its_exit_code_and_the_ways_on() {
    let end = |evaluate: &str, answer: &str| {
        let text = format!(
            "states:\n  a: {{action: x, {evaluate}on_yes: done, on_no: done}}\n  done: {{terminal: true}}\n"
        );
        let all = events(&machine(&text), start(false), &world(answer));
        let Some(Event::LoopComplete(end)) = all.last() else { panic!("{all:?}") };
        end.reason.clone()
    };
    let listed = "evaluate: {type: exit_code, no: [1, 3-9]}, ";
    for (evaluate, answer, code, advice) in [
        (
            "",
            "x: 101",
            "(exit 101)",
            "add `on_error`, or write `evaluate: {type: exit_code, \"no\": [1, 101]}` if 101 is an answer of this tool",
        ),
        (
            listed,
            "x: 2",
            "(exit 2)",
            "add `on_error`, or write `\"no\": [1, 3-9, 2]` if 2 is an answer of this tool",
        ),
        ("", "x: 127", "(exit 127)", "install what it calls, or correct the name; or add `on_error`"),
        ("", "x: missing", "(no such program)", "add `on_error`"),
        ("evaluate: {type: output_numeric, target: 1}, ", "x: 2", "(exit 2)", "add `on_error`"),
    ] {
        let expected = format!("the routes are `no`, `yes`; {advice}");
        let reason = end(evaluate, answer);
        assert!(reason.contains(code) && reason.ends_with(&expected), "{reason}");
    }
}

#[test]
fn a_timed_out_action_takes_its_error_route() {
    let text = "states:\n  slow: {action: x, on_yes: done, on_no: done, on_error: rescue}\n  rescue: {action: y, next: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: timeout"), @r"
    1/1 slow: x (Timeout) → rescue [Error for error]
    1/2 rescue: y (0) → done [Next]
    = success (0, unverified) by Terminal in done after 1 iterations, 2 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn current_enters_the_state_again() {
    let text = "states:\n  a: {action: x, on_yes: done, on_no: done, on_error: $current}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 2, 2, 0"), @r"
    1/1 a: x (2) → error → a [Verdict for error]
    2/2#2 a: x (2) → error → a [Verdict for error]
    3/3#3 a: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 3 iterations, 3 steps: ended in `done`
    ");
}

#[test]
fn retries_are_bounded_and_hopeless_codes_are_not_retried() {
    let text = "\
states:
  a: {action: x, on_yes: done, on_no: a, on_error: $current, max_retries: 2, on_retry_exhausted: gone, retryable_exit_codes: [7]}
  gone: {terminal: true}
  done: {terminal: true}
";
    assert_snapshot!(trace(text, "x: 1, 7, 1"), @r"
    1/1 a: x (1) → no → a [Verdict for no]
    retry 2 after 2 at most
    2/2#2 a: x (7) → error → a [Verdict for error]
    retry 3 after 2 at most
    3/3#3 a: x (1) → no → gone [RetryExhausted for no]
    = success (0, unverified) by Terminal in gone after 3 iterations, 3 steps: ended in `gone` unverified: nothing passed since the last failing observation
    ");
    assert_snapshot!(trace(text, "x: 3"), @r"
    1/1 a: x (3) → error → gone [RetryExhausted for error]
    = success (0, unverified) by Terminal in gone after 1 iterations, 1 steps: ended in `gone` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn backoff_waits_before_a_new_pass_and_never_before_a_terminal() {
    let text = "backoff: 1.5\nstates:\n  a: {action: x, on_yes: done, on_no: b}\n  b: {next: a}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 1, 0"), @r"
    1/1 a: x (1) → no → b [Verdict for no]
    1/2 b → a [Next]
    wait 1500ms
    2/3 a: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 2 iterations, 3 steps: ended in `done`
    ");
}

#[test]
fn the_timeout_of_the_loop_bounds_waits_and_actions() {
    let text = "timeout: 3\nbackoff: 10\nstates:\n  a: {action: x, on_yes: done, on_no: a}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "x: 1"), @r"
    1/1 a: x (1) → no → a [Verdict for no]
    wait 10000ms
     loop timeout after 3000ms
    = timeout (124, unverified) by Timeout in a after 1 iterations, 1 steps: the loop's timeout passed after 3.0s, in `a`
    ");
    assert_snapshot!(trace(text, "x: loop-timeout"), @r"
    1/1 a: x (LoopTimeout) loop timeout after 1000ms
    = timeout (124, unverified) by Timeout in a after 1 iterations, 1 steps: the loop's timeout passed after 1.0s, in `a`
    ");
}

#[test]
fn the_deadline_of_the_job_hands_the_run_over() {
    let machine = machine(CHECK_FIX);
    let start = Start { deadline: Some(Duration::from_secs(2)), ..start(false) };
    assert_snapshot!(traced(&events(&machine, start, &world("test: 1"))), @"
    1/1 check: test (1) → no → fix [Verdict for no]
    1/2 fix: repair (0) → check [Next]
     handoff: the deadline of this job came after 2.0s, pause
    = handoff (75, unverified) by Handoff in check after 1 iterations, 2 steps: the deadline of this job came after 2.0s
    ");
}

#[test]
fn an_action_gets_the_least_of_what_is_left() {
    let text = "timeout: 10\ndefault_timeout: 60\nstates:\n  a: {action: x, next: b}\n  b: {action: y, timeout: 4, next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    let limit = |engine: &Engine<'_>| match engine.next() {
        Next::Run(request) => request.setting.end,
        other => panic!("{other:?}"),
    };
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    assert_eq!(limit(&engine), Some((Duration::from_secs(10), Stop::LoopTimeout)));
    engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::from_secs(3)).unwrap();
    assert_eq!(limit(&engine), Some((Duration::from_secs(4), Stop::Timeout)));
}

#[test]
fn a_maintain_loop_starts_again_and_counts_cycles_apart() {
    let text = "maintain: true\nmaintain_delay: 5\nmax_steps: 4\nstates:\n  a: {action: x, next: b}\n  b: {action: y, next: done}\n  done: {terminal: true, on_maintain: b}\n";
    assert_snapshot!(trace(text, ""), @"
    1/1 a: x (0) → b [Next]
    1/2 b: y (0) → done [Next]
     → b [Maintain]
    wait 5000ms
    2/3 b: y (0) → done [Next]
     → b [Maintain]
    wait 5000ms
    3/4 b: y (0) → done [Next]
     → b [Maintain]
    = exhausted (3, unverified) by MaxSteps in b after 3 iterations, 4 steps: max_steps (4) reached before `b`
    ");
}

#[test]
fn templates_see_what_happened() {
    let text = "\
states:
  a: {action: one, capture: first, append_to_messages: 'a said ${captured.first}', next: b}
  b: {action: 'two ${captured.first.output} ${prev.state} ${state.name} ${state.step} ${loop.name} ${env.HOME} ${loop.elapsed_ms}', on_yes: c}
  c: {action: 'three ${result.verdict} ${result.details.exit_code} ${prev.exit_code} ${messages} ${captured.b.output}', next: done}
  done: {terminal: true}
";
    assert_snapshot!(trace(text, "one: 0 hello\ntwo hello a b 2 demo /home/x 1000: 0 second"), @r#"
    1/1 a: one (0) says "a said hello" → b [Next]
    1/2 b: two hello a b 2 demo /home/x 1000 (0) → yes → c [Verdict for yes]
    1/3 c: three yes 0 0 a said hello second (0) → done [Next]
    = success (0) by Terminal in done after 1 iterations, 3 steps: ended in `done`
    "#);
}

#[test]
fn an_output_that_is_json_can_be_looked_into() {
    let answer = r#"{"status":"done","tasks":[{"description":"it's one"},2],"none":null}"#;
    for (output, path, expected) in [
        (answer, "captured.out.json.status", "b: see done (0)"),
        (answer, "captured.a.json.tasks.0.description", "b: see it's one (0)"),
        (answer, "prev.json.tasks[1]", "b: see 2 (0)"),
        (answer, "prev.json.tasks", r#"b: see [{"description":"it's one"},2] (0)"#),
        (answer, "prev.json.none:-nothing", "b: see nothing (0)"),
        (answer, "prev.json", &format!("b: see {answer} (0)")),
        (r#"so: ```json {"a":1} ```"#, "prev.json", "so: ```json"),
        (r#""word""#, "prev.json", r#"b: see "word" (0)"#),
        (answer, "prev.json.statu", "has no value (the nearest is `${prev.json.status}`)"),
        (
            "I am done",
            "captured.out.json.status",
            "the output is not JSON: I am done (the nearest is `${captured.out.output}`)",
        ),
        ("", "prev.json.status", "the output is empty, and no JSON"),
        ("I am done", "prev.json.status:-unknown", "b: see unknown (0)"),
    ] {
        let text = format!(
            "states:\n  a: {{action: one, capture: out, next: b}}\n  b: {{action: \"see ${{{path}}}\", next: done}}\n  done: {{terminal: true}}\n"
        );
        let trace = trace(&text, &format!("one: 0 {output}"));
        assert!(trace.contains(expected), "{output} {path}: {trace}");
    }
}

#[test]
fn a_missing_value_ends_the_run_and_names_everything() {
    let text = "states:\n  a: {action: 'x ${prev.output}', next: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, ""), @"
    1/1 a error: in `action`: `${prev.output}` has no value: no state with an action ran before this one
    = error (4, unverified) by Error in a after 1 iterations, 1 steps: in `action`: `${prev.output}` has no value: no state with an action ran before this one
    ");
}

#[test]
fn work_that_cannot_be_made_takes_the_way_of_errors() {
    let ends = "  good: {terminal: true}\n  bad: {terminal: true}\n";
    let ran = |top: &str, state: &str| {
        trace(
            &format!(
                "{top}states:\n  b: {{action: y, capture: c, next: a}}\n  a: {{{state}}}\n  show: {{action: 'seen ${{prev.output}} ${{captured.c}} ${{result.verdict}}', next: good}}\n{ends}"
            ),
            "y: 0 kept",
        )
    };
    assert_snapshot!(ran("", "action: 'echo ${env.NONE}', on_yes: bad, on_error: show"), @"
    1/1 b: y (0) → a [Next]
    1/2 a action error: in `action`: `${env.NONE}` has no value: the environment variable is not set → show [Verdict for error]
    1/3 show: seen kept kept error (0) → good [Next]
    = success (0, unverified) by Terminal in good after 1 iterations, 3 steps: ended in `good` unverified: nothing passed since the last failing observation
    ");
    for (top, state) in [
        ("", "action: 'echo ${env.NONE}', route: {'yes': bad, _error: show}"),
        ("", "action: 'echo ${env.NONE}', next: bad, on_error: show"),
        ("on_error: show\n", "action: 'echo ${env.NONE}', next: bad"),
        ("on_error: show\n", "action: 'echo ${env.NONE}', on_yes: bad"),
        ("", "action: x, env: {A: '${env.NONE}'}, on_yes: bad, on_error: show"),
        ("", "action: x, cwd: '${env.NONE}', on_yes: bad, on_error: show"),
        ("", "action: '${state.name}', action_type: mcp_tool, on_yes: bad, on_error: show"),
        ("", "loop: kid, with: {a: '${env.NONE}'}, on_yes: bad, on_error: show"),
        ("", "loop: '${env.NONE}', on_yes: bad, on_error: show"),
    ] {
        let trace = ran(top, state);
        assert!(trace.contains("action error: in `"), "{state}\n{trace}");
        assert!(trace.contains(": seen kept kept error (0) → good"), "{state}\n{trace}");
    }
    // Without a way for it the run ends, `next` or not.
    for state in ["action: 'echo ${env.NONE}', next: good", "action: 'echo ${env.NONE}', on_yes: good"] {
        let trace = ran("", state);
        assert!(trace.contains("error (4,") && trace.contains("${env.NONE}"), "{trace}");
    }
}

#[test]
fn work_that_cannot_be_made_is_tried_as_often_as_any() {
    let text = "states:\n  a: {action: 'echo ${env.NONE}', max_retries: 2, on_retry_exhausted: done, on_yes: done, on_error: $current}\n  done: {terminal: true}\n";
    let trace = trace(text, "");
    assert_eq!(trace.matches("action error").count(), 3, "{trace}");
    assert!(trace.contains("RetryExhausted") && trace.contains("success (0, unverified)"), "{trace}");
}

#[test]
fn a_tool_that_is_not_there_is_an_error_unless_it_has_a_way_of_its_own() {
    let text = "states:\n  a: {action: x, evaluate: {type: mcp_result}, on_success: good, WAYS}\n  good: {terminal: true}\n  bad: {terminal: true}\n";
    let absent = "x: 127";
    for (ways, end) in [
        ("on_error: bad", "in bad"),
        ("on_error: bad, on_not_found: good", "in good"),
        ("route: {_error: bad, _: good}", "in bad"),
    ] {
        let trace = trace(&text.replace("WAYS", ways), absent);
        assert!(trace.contains("not_found") && trace.contains(end), "{trace}");
    }
}

#[test]
fn convergence_remembers_across_other_states() {
    let text = "\
states:
  measure: {action: m, evaluate: {type: convergence, toward: 0}, route: {target: done, progress: apply, stall: stuck}}
  apply: {action: f, next: measure}
  stuck: {terminal: true}
  done: {terminal: true}
";
    assert_snapshot!(trace(text, "m: 0 9, 0 5, 0 5"), @r"
    1/1 measure: m (0) → progress → apply [Verdict for progress]
    1/2 apply: f (0) → measure [Next]
    2/3 measure: m (0) → progress → apply [Verdict for progress]
    2/4 apply: f (0) → measure [Next]
    3/5 measure: m (0) → stall → stuck [Verdict for stall]
    = failure (1, unverified) by Terminal in stuck after 3 iterations, 5 steps: ended in `stuck`
    ");
}

fn trace_on(text: &str, script: &str, trees: &str) -> String {
    traced(&events(&machine(text), start(false), &world(script).with_trees(trees)))
}

const LOOK: &str = "\
states:
  work: {action: w, next: look}
  look: {action: l, evaluate: {type: diff_stall, scope: ['src', '${loop.name}/']}, on_yes: work, on_no: stuck}
  stuck: {terminal: true}
";

#[test]
fn diff_stall_asks_for_the_tree_and_compares_it_with_the_last_visit() {
    assert_snapshot!(trace_on(LOOK, "", "aab"), @"
    1/1 work: w (0) → look [Next]
    1/2 look: l (0) → yes → work [Verdict for yes]
    2/3 work: w (0) → look [Next]
    2/4 look: l (0) → no → stuck [Verdict for no]
    = failure (1, unverified) by Terminal in stuck after 2 iterations, 4 steps: ended in `stuck`
    ");
    let world = world("").with_trees("aa");
    events(&machine(LOOK), start(false), &world);
    assert_eq!(world.asked.borrow()[0], ["src", "demo/"]);
    assert_eq!(world.asked.borrow().len(), 2);
}

#[test]
fn a_tree_that_cannot_be_seen_is_an_error_of_diff_stall() {
    assert_snapshot!(trace_on(LOOK, "", "!"), @"
    1/1 work: w (0) → look [Next]
    1/2 look: l (0) → error error: no route for the verdict `error` (exit 0): the working tree cannot be compared: no git repository; the routes are `no`, `yes`; add `on_error`
    = error (4, unverified) by Error in look after 1 iterations, 2 steps: no route for the verdict `error` (exit 0): the working tree cannot be compared: no git repository; the routes are `no`, `yes`; add `on_error`
    ");
}

#[test]
fn what_an_evaluator_remembers_is_its_states_own_and_in_the_events() {
    let text = "\
states:
  a: {action: x, evaluate: {type: score_stall}, on_yes: b, on_no: done}
  b: {action: y, evaluate: {type: score_stall, direction: minimize}, on_yes: a, on_no: done}
  done: {terminal: true}
";
    let all = events(&machine(text), start(false), &world("x: 0 5, 0 6, 0 6\ny: 0 5, 0 4"));
    let memories = all.iter().filter_map(|event| match event {
        Event::Evaluate { memory, .. } => memory.as_ref().map(ToString::to_string),
        _ => None,
    });
    let expected = [
        r#"{"best":5.0,"count":0}"#,
        r#"{"best":5.0,"count":0}"#,
        r#"{"best":6.0,"count":0}"#,
        r#"{"best":4.0,"count":0}"#,
        r#"{"best":6.0,"count":1}"#,
    ];
    assert_eq!(memories.collect::<Vec<_>>(), expected);
}

/// Folds events alone, as a later process does with a journal.
fn refolded(machine: &Machine, events: &[Event]) -> Run {
    let mut run = Run::new();
    for event in events {
        let line = serde_json::to_string(event).unwrap();
        run.apply(machine, &serde_json::from_str(&line).unwrap());
    }
    run
}

#[test]
fn a_journal_alone_restores_what_evaluators_and_the_stall_detector_know() {
    let text = "stall: {window: 9}\nmax_iterations: 4\nstates:\n  a: {action: x, evaluate: {type: convergence, target: 0}, route: {target: done, _: a}}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    for _ in 0..3 {
        all.extend(engine.handle(Input::ActionDone(Observation::exited(0, "5\n")), Duration::ZERO).unwrap());
        all.extend(engine.handle(Input::Surveyed(tree('a')), Duration::ZERO).unwrap());
    }
    let again = refolded(&machine, &all);
    assert_eq!(again.memories(), engine.run().memories());
    let Some(Target::Step(id)) = machine.find(&crate::base::name::StateName::parse("a").unwrap()) else {
        panic!()
    };
    assert_eq!(again.memories().get(&id), Some(&serde_json::json!(5.0)));
    assert_eq!(again.streak(id), engine.run().streak(id));
    assert_eq!(again.streak(id).unwrap().visits, 2, "the first visit made progress, and the verdict changed");
}

#[test]
fn aliases_lead_the_answers_of_a_tool_and_of_nobody_else() {
    let end = |evaluate: &str, routes: &str, answer: &str| {
        let text = format!(
            "states:\n  a: {{action: x, evaluate: {{type: {evaluate}}}, {routes}}}\n  good: {{terminal: true}}\n  bad: {{terminal: true}}\n"
        );
        let all = events(&machine(&text), start(false), &world(&format!("x: {answer}")));
        match all.last() {
            Some(Event::LoopComplete(end)) => end.final_state.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let (fine, broken) = (r#"0 {"isError":false}"#, r#"0 {"isError":true}"#);
    for (routes, answer, expected) in [
        ("on_yes: good, on_no: bad", fine, "good"),
        ("on_success: good, on_no: bad", fine, "good"),
        ("on_yes: good, on_no: bad", broken, "bad"),
        ("on_yes: good, on_tool_error: bad", broken, "bad"),
        ("on_yes: bad, on_tool_error: good, on_no: bad", broken, "good"),
        ("on_yes: good, on_not_found: bad", "127", "bad"),
        ("on_yes: good, on_timeout: bad", "124", "bad"),
    ] {
        assert_eq!(end("mcp_result", routes, answer), expected, "{routes} {answer}");
    }
    assert_eq!(end("classify", "on_yes: good, on_tool_error: bad", "0 success"), "a");
}

const STALLING: &str = "\
stall: {window: 3}
states:
  check: {action: test, on_yes: done, on_no: fix}
  fix: {action: repair, next: check}
  done: {terminal: true}
";

#[test]
fn visits_that_change_nothing_are_a_stall() {
    assert_snapshot!(trace_on(STALLING, "test: 1", "a"), @"
    1/1 check: test (1) → no → fix [Verdict for no]
    1/2 fix: repair (0) → check [Next]
    2/3 check: test (1) → no → fix [Verdict for no]
    2/4 fix: repair (0) → check [Next]
    3/5 check: test (1) → no stall: nothing changed in the last 3 visits of `check`: same verdict `no`, same working tree, no new commit
    = exhausted (3, unverified) by Stall in check after 3 iterations, 5 steps: nothing changed in the last 3 visits of `check`: same verdict `no`, same working tree, no new commit
    ");
}

#[test]
fn a_change_of_tree_commit_verdict_or_number_is_no_stall() {
    for trees in ["aabbccdd", "aaAAaaAA", "a!a!a!a!", "aaa"] {
        let text = format!("max_iterations: 8\n{STALLING}");
        let all =
            events(&machine(&text), start(false), &world("test: 1").with_trees(&format!("{trees}xyzuvw")));
        let Some(Event::LoopComplete(end)) = all.last() else { panic!() };
        assert_eq!(end.terminated_by == TerminatedBy::Stall, trees == "aaa", "{trees} {end:?}");
    }
}

#[test]
fn a_stall_leads_to_its_state_once() {
    let text = STALLING
        .replace("{window: 3}", "{window: 2, action: rethink}")
        .replace("  done:", "  rethink: {action: think, next: check}\n  done:");
    assert_snapshot!(trace_on(&text, "test: 1", "a"), @"
    1/1 check: test (1) → no → fix [Verdict for no]
    1/2 fix: repair (0) → check [Next]
    2/3 check: test (1) → no stall: nothing changed in the last 2 visits of `check`: same verdict `no`, same working tree, no new commit → rethink [Stall for no]
    2/4 rethink: think (0) → check [Next]
    3/5 check: test (1) → no → fix [Verdict for no]
    3/6 fix: repair (0) → check [Next]
    4/7 check: test (1) → no stall: nothing changed in the last 2 visits of `check`: same verdict `no`, same working tree, no new commit
    = exhausted (3, unverified) by Stall in check after 4 iterations, 7 steps: nothing changed in the last 2 visits of `check`: same verdict `no`, same working tree, no new commit
    ");
}

#[test]
fn a_terminal_is_entered_although_nothing_changed() {
    let text = "stall: {window: 2}\nstates:\n  a: {action: x, on_yes: done, on_no: a, max_retries: 1, on_retry_exhausted: gone}\n  gone: {terminal: true}\n  done: {terminal: true}\n";
    assert_snapshot!(trace_on(text, "x: 1", "a"), @"
    1/1 a: x (1) → no → a [Verdict for no]
    retry 2 after 1 at most
    2/2#2 a: x (1) → no → gone [RetryExhausted for no]
    = success (0, unverified) by Terminal in gone after 2 iterations, 2 steps: ended in `gone` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn a_maintain_loop_that_stays_clean_does_not_stall() {
    let text = "stall: {window: 2}\nmaintain: true\nmax_steps: 5\nstates:\n  a: {action: x, on_yes: b, on_no: b}\n  b: {action: x, on_yes: done, on_no: b}\n  done: {terminal: true}\n";
    let all = events(&machine(text), start(false), &world("").with_trees("a"));
    assert!(!all.iter().any(|event| matches!(event, Event::Stall { .. })));
}

#[test]
fn a_file_is_read_anew_at_each_visit() {
    let text = "states:\n  a: {evaluate: {type: criteria, source: '${state.name}.json'}, on_continue: b, on_done: done, on_inactive: gone}\n  b: {action: x, evaluate: {type: criteria}, on_inactive: a}\n  done: {terminal: true}\n  gone: {terminal: true}\n";
    let open = r#"{"criteriaStatus":{"c":false}}"#;
    let script = format!("a.json: 0 {open}, 0 {}, 0 {open}", open.replace("}}", "},\"exit_signal\":true}"));
    let script = format!("{script}, 0 {}", r#"{"criteriaStatus":{"c":true},"exit_signal":true}"#);
    let all = events(&machine(text), start(false), &world(&script));
    let verdicts: Vec<_> = all
        .iter()
        .filter_map(|event| match event {
            Event::Evaluate { verdict, .. } => Some(verdict.as_str()),
            _ => None,
        })
        .collect();
    let round = ["continue", "inactive"];
    assert_eq!(verdicts, [&round[..], &round, &round, &["done"]].concat());
}

#[test]
fn a_request_to_end_does_not_wait_for_a_survey() {
    let machine = machine(STALLING);
    let mut engine = Engine::new(&machine, start(false));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(1, "")), Duration::ZERO).unwrap();
    assert!(matches!(engine.next(), Next::Survey(_)));
    engine.cancel(Signal::Term, Duration::ZERO);
    let Next::Done(end) = engine.next() else { panic!() };
    assert_eq!((end.outcome, end.final_state.as_str()), (Outcome::Interrupted, "check"));
    assert_eq!(engine.handle(Input::Surveyed(tree('a')), Duration::ZERO), Err(UnexpectedInput));
}

#[test]
fn the_timeout_of_the_loop_bounds_surveys() {
    let machine = machine(&format!("timeout: 10\n{STALLING}"));
    let mut engine = Engine::new(&machine, start(false));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(1, "")), Duration::from_secs(4)).unwrap();
    let Next::Survey(request) = engine.next() else { panic!() };
    assert_eq!(request.limit, Some(Duration::from_secs(6)));
    engine
        .handle(Input::Surveyed(Err(Explanation::new("it took more than 6.0s"))), Duration::from_secs(10))
        .unwrap();
    let Next::Done(end) = engine.next() else { panic!() };
    assert_eq!((end.outcome, end.final_state.as_str()), (Outcome::Timeout, "check"));
}

#[test]
fn a_maintain_loop_that_did_its_cycles_ends_in_its_terminal() {
    let text = "maintain: true\nmaintain_delay: 5\nstates:\n  a: {action: x, on_yes: done, on_no: broken_failed}\n  broken_failed: {terminal: true}\n  done: {terminal: true}\n";
    let mut machine = machine(text);
    machine.limits.cycles = Some(2);
    assert_snapshot!(traced(&events(&machine, start(false), &world("x: 1, 0"))), @"
    1/1 a: x (1) → no → broken_failed [Verdict for no]
     → a [Maintain]
    wait 5000ms
    2/2 a: x (0) → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 2 iterations, 2 steps: ended in `done`
    ");
    assert_snapshot!(traced(&events(&machine, start(false), &world("x: 0, 1"))), @"
    1/1 a: x (0) → yes → done [Verdict for yes]
     → a [Maintain]
    wait 5000ms
    2/2 a: x (1) → no → broken_failed [Verdict for no]
    = failure (1, unverified) by Terminal in broken_failed after 2 iterations, 2 steps: ended in `broken_failed`
    ");
}

#[test]
fn the_wait_of_a_maintain_loop_can_be_interrupted() {
    let machine = machine(
        "maintain: true\nmaintain_delay: 1h\nstates:\n  a: {action: x, next: done}\n  done: {terminal: true}\n",
    );
    let mut engine = Engine::new(&machine, start(false));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::ZERO).unwrap();
    assert!(matches!(engine.next(), Next::Wait(wait) if wait == Duration::from_hours(1)));
    engine.cancel(Signal::Int, Duration::from_secs(1));
    let Next::Done(end) = engine.next() else { panic!() };
    assert_eq!((end.outcome, end.cycles, end.steps), (Outcome::Interrupted, 2, 1));
}

#[test]
fn the_end_of_a_sub_loop_is_a_verdict() {
    let ends = |routes: &str, code: &str| {
        let text = format!(
            "states:\n  p: {{loop: kid, {routes}}}\n  good: {{terminal: true}}\n  bad: {{terminal: true}}\n  other: {{terminal: true}}\n"
        );
        let events = events(&machine(&text), start(false), &world(&format!("kid: {code}")));
        match events.last() {
            Some(Event::LoopComplete(end)) => format!("{} {}", end.outcome.word(), end.final_state),
            other => panic!("{other:?}"),
        }
    };
    for (routes, code, expected) in [
        ("on_success: good, on_failure: bad", "0", "success good"),
        ("on_yes: good, on_no: bad", "1", "success bad"),
        ("on_success: good, on_failure: bad", "4", "success bad"),
        ("on_success: good, on_failure: bad", "124", "success bad"),
        ("on_success: good, on_failure: bad", "5", "success bad"),
        ("on_success: good, on_failure: bad", "99", "success bad"),
        ("on_success: good, on_failure: bad, on_error: other", "4", "success other"),
        ("on_success: good, on_failure: bad, on_timeout: other", "124", "success other"),
        ("on_success: good, on_failure: bad, on_blocked: other", "5", "success other"),
        ("route: {success: good, failure: bad, _: other}", "0", "success good"),
        ("route: {success: good, _: other}", "1", "success other"),
        ("route: {success: good, error: bad, _: other}", "99", "success bad"),
        ("on_success: good", "1", "error p"),
        ("on_success: good", "5", "blocked p"),
        ("next: good", "1", "success good"),
        ("next: good, on_error: bad", "1", "success bad"),
    ] {
        assert_eq!(ends(routes, code), expected, "{routes} {code}");
    }
}

#[test]
fn a_sub_loop_on_its_own_gives_no_captures_back() {
    let text = |given: &str| {
        format!(
            "states:\n  a: {{action: one, capture: first, next: p}}\n  p: {{loop: kid, {given}on_success: b}}\n  b: {{action: 'two ${{captured.kid?}} ${{captured.p.output}} ${{result.details.final_state}}', next: done}}\n  done: {{terminal: true}}\n"
        )
    };
    assert_snapshot!(trace(&text("context_passthrough: true, "), "kid: 0 out"), @"
    1/1 a: one (0) → p [Next]
    1/2 p runs kid (0) → success → b [Verdict for success]
    1/3 b: two out out end (0) → done [Next]
    = success (0) by Terminal in done after 1 iterations, 3 steps: ended in `done`
    ");
    assert_snapshot!(trace(&text(""), "kid: 0 out"), @"
    1/1 a: one (0) → p [Next]
    1/2 p runs kid (0) → success → b [Verdict for success]
    1/3 b: two  out end (0) → done [Next]
    = success (0) by Terminal in done after 1 iterations, 3 steps: ended in `done`
    ");
}

#[test]
fn a_sub_loop_gets_the_time_that_is_left() {
    let text = "timeout: 10\nstates:\n  a: {action: x, next: p}\n  p: {loop: 'kid-${captured.a.exit_code}', timeout: 60, with: {n: 3, t: '${prev.output}'}, on_success: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(0, "said\n")), Duration::from_secs(4)).unwrap();
    let Next::SubLoop(request) = engine.next() else { panic!() };
    let limit = |taken| request.limit(Duration::from_secs(taken)).map(|limit| limit.as_secs());
    assert_eq!(
        (request.name.as_str(), limit(0), limit(50), limit(58)),
        ("kid-0", Some(6), Some(56), Some(60))
    );
    assert_eq!(Value::Object(request.params.clone()), serde_json::json!({"n": 3, "t": "said"}));
}

#[test]
fn a_request_to_end_ends_waits_and_actions() {
    let machine = machine(CHECK_FIX);
    let mut engine = Engine::new(&machine, start(false));
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    all.extend(engine.cancel(Signal::Term, Duration::from_secs(1)));
    assert!(matches!(engine.next(), Next::Run(_)), "the action is still running");
    let stopped =
        Observation { stop: Some(Stop::Cancelled), signal: Some(15), ..Observation::exited(143, "") };
    all.extend(engine.handle(Input::ActionDone(stopped), Duration::from_secs(2)).unwrap());
    assert_snapshot!(traced(&all), @r"
    1/1 check: test (Cancelled)
    = interrupted (143, unverified) by Interrupted in check after 1 iterations, 1 steps: interrupted by SIGTERM in `check`
    ");
}

#[test]
fn actions_find_their_run_in_the_environment() {
    let text = "env: {A: '${loop.name}'}\nstates:\n  a: {action: one, capture: my-out, next: b}\n  b: {action: two, env: {B: '${captured.my-out}'}, next: done}\n  done: {terminal: true}\n";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, start(false));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(0, "x\0y\n")), Duration::ZERO).unwrap();
    let Next::Run(request) = engine.next() else { panic!() };
    let env: BTreeMap<_, _> = request.setting.env.iter().cloned().collect();
    for (name, value) in [
        ("LL_LOOP_RUN", "demo-1"),
        ("LL_STATE", "b"),
        ("LL_STEP_KEY", "demo-1/2"),
        ("LL_PREV_OUTPUT", "xy"),
        ("LL_CAPTURED_MY_OUT", "xy"),
        ("A", "demo"),
    ] {
        assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
    }
}

/// A loop of three states with every kind of route, and answers drawn at random.
const MAZE: &str = "\
max_iterations: 7
max_steps: 25
backoff: 1
on_error: c
states:
  a: {action: x, on_yes: b, on_no: c, on_timeout: a}
  b: {action: y, evaluate: {type: classify}, route: {go: done, back: a, blocked: stop_failed, _: c}}
  c: {action: z, next: a, on_error: b}
  stop_failed: {terminal: true}
  done: {terminal: true}
";

/// Compiled once, for thousands of runs.
static MAZE_MACHINE: LazyLock<Machine> = LazyLock::new(|| machine(MAZE));

fn answer() -> impl Strategy<Value = Observation> {
    prop_oneof![
        4 => (0..3i32).prop_map(|code| Observation::exited(code, "")),
        3 => prop_oneof![Just("go"), Just("back"), Just("blocked"), Just("no"), Just("?")]
            .prop_map(|word| Observation::exited(0, word)),
        1 => Just(Observation { stop: Some(Stop::Timeout), ..Observation::exited(124, "") }),
        1 => Just(Observation::not_started("gone")),
    ]
}

/// Runs with answers and trees in turn, for ever.
fn events_of(machine: &Machine, answers: &[Observation], trees: &str) -> Vec<Event> {
    let mut engine = Engine::new(machine, start(false));
    let (mut all, mut answers, mut trees) = (Vec::new(), answers.iter().cycle(), trees.chars().cycle());
    loop {
        let survey = || tree(trees.next().unwrap());
        let Some(input) = answer_commands(&engine, survey, || answers.next().unwrap().clone()) else {
            return all;
        };
        all.extend(engine.handle(input, Duration::ZERO).unwrap());
    }
}

/// Whether a success was verified, worked out once more from the events alone and in another way: the last
/// observation that says anything decides.
fn oracle_verified(events: &[Event]) -> bool {
    let mut spoken = Vec::new();
    let mut pending: Option<bool> = None;
    for event in events {
        match event {
            Event::StateEnter { .. } => pending = None,
            Event::ActionComplete(complete) => {
                let silent_failure = !complete.seen.succeeded();
                pending = silent_failure.then_some(false);
            }
            Event::Evaluate { verdict, .. } => {
                let failing = ["no", "error", "timeout", "stall", "blocked", "partial", "tool_error"];
                pending = Some(!failing.contains(&verdict.as_str()));
            }
            Event::ActionError { .. } => pending = Some(false),
            Event::Route { .. } => spoken.extend(pending.take()),
            _ => {}
        }
    }
    spoken.extend(pending);
    spoken.last().copied().unwrap_or(false)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the world answers, a run ends once, within its caps, and never claims more than was seen.
    #[test]
    fn every_run_ends_truthfully(answers in prop::collection::vec(answer(), 1..60), strict in any::<bool>()) {
        let machine = &*MAZE_MACHINE;
        let mut engine = Engine::new(machine, start(strict));
        let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let mut answers = answers.iter().cycle();
        let mut turns = 0;
        loop {
            turns += 1;
            prop_assert!(turns < 500, "no end");
            let command = || answers.next().unwrap().clone();
            let Some(input) = answer_commands(&engine, || tree('!'), command) else { break };
            let followed = engine.handle(input, Duration::from_secs(turns)).unwrap();
            prop_assert!(!followed.is_empty() || matches!(engine.next(), Next::Run(_)));
            all.extend(followed);
        }
        let ends: Vec<_> = all.iter().filter_map(|event| match event {
            Event::LoopComplete(end) => Some(end),
            _ => None,
        }).collect();
        prop_assert_eq!(ends.len(), 1);
        let end = ends[0];
        prop_assert!(matches!(all.last(), Some(Event::LoopComplete(_))));
        prop_assert!(end.steps <= 25 && end.iterations <= 7);
        prop_assert_eq!(end.steps as usize, all.iter().filter(|e| matches!(e, Event::StateEnter { .. })).count());
        prop_assert_eq!(end.verified, oracle_verified(&all));
        if end.outcome == Outcome::Success && strict {
            prop_assert!(end.verified);
        }
        prop_assert_eq!(end.exit_code, end.outcome.exit_code(end.signal));
        prop_assert_eq!(end.duration_ms, millis(engine.elapsed()));
        let mut iteration = 1;
        for event in &all {
            if let Event::StateEnter { iteration: seen, .. } = event {
                prop_assert!(*seen == iteration || *seen == iteration + 1);
                iteration = *seen;
            }
        }
    }

    /// After a request to end no further state is entered, wherever the run is; only an action that is running still
    /// comes to its end.
    #[test]
    fn a_request_to_end_is_obeyed(answers in prop::collection::vec(answer(), 30), at in 0usize..30) {
        let machine = &*MAZE_MACHINE;
        let mut engine = Engine::new(machine, start(false));
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        for seen in answers.iter().take(at) {
            match engine.next() {
                Next::Done(_) => return Ok(()),
                Next::Run(_) => drop(engine.handle(Input::ActionDone(seen.clone()), Duration::ZERO).unwrap()),
                _ => drop(engine.handle(Input::WaitDone, Duration::ZERO).unwrap()),
            }
        }
        let was_over = matches!(engine.next(), Next::Done(_));
        let mut after = engine.cancel(Signal::Int, Duration::ZERO);
        if let Next::Run(_) = engine.next() {
            after.extend(engine.handle(Input::ActionDone(answers[29].clone()), Duration::ZERO).unwrap());
        }
        let Next::Done(end) = engine.next() else {
            return Err(TestCaseError::fail("the run goes on"));
        };
        let entered = after.iter().any(|event| matches!(event, Event::StateEnter { .. }));
        prop_assert!(!entered, "{:?}", after);
        prop_assert!(was_over || end.outcome == Outcome::Interrupted, "{:?}", end);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever else happens, two visits in a row that see different trees are never part of a stall.
    #[test]
    fn no_stall_while_the_tree_changes(
        answers in prop::collection::vec(answer(), 1..40),
        steps in prop::collection::vec(1u8..3, 60),
        window in 2u32..4,
    ) {
        let machine = machine(&format!("stall: {{window: {window}}}\n{MAZE}"));
        let mut engine = Engine::new(&machine, start(false));
        let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let (mut answers, mut steps, mut digest) = (answers.iter().cycle(), steps.iter().cycle(), 0u32);
        loop {
            let survey = || {
                digest += u32::from(*steps.next().unwrap());
                Ok(Survey { head: None, digest: digest.to_string() })
            };
            let command = || answers.next().unwrap().clone();
            let Some(input) = answer_commands(&engine, survey, command) else { break };
            all.extend(engine.handle(input, Duration::ZERO).unwrap());
        }
        let stalled = all.iter().any(|event| matches!(event, Event::Stall { .. }));
        prop_assert!(!stalled);
    }

    /// Events that went through a journal say everything that the run knows, whatever was remembered and compared.
    #[test]
    fn a_journal_is_the_run(answers in prop::collection::vec(answer(), 1..20), trees in "[ab!]{1,3}") {
        let text = MAZE.replace("{action: z, next: a, on_error: b}", "{action: z, evaluate: {type: action_stall}, on_yes: a, on_no: b}");
        let machine = machine(&format!("stall: {{window: 3, action: c}}\n{text}"));
        let all = events_of(&machine, &answers, &trees);
        let again = refolded(&machine, &all);
        let mut run = Run::new();
        for event in &all {
            run.apply(&machine, event);
        }
        prop_assert_eq!(run, again);
    }

    /// A stall is what it says: that many visits of its state, all with the same verdict and the same tree.
    #[test]
    fn a_stall_was_there(answers in prop::collection::vec(answer(), 1..6), trees in "[abA!]{1,4}") {
        let machine = machine(&format!("stall: {{window: 2}}\n{MAZE}"));
        let all = events_of(&machine, &answers, &trees);
        let mut visits: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut state = String::new();
        for event in &all {
            match event {
                Event::StateEnter { state: entered, .. } => state = entered.to_string(),
                Event::Evaluate { verdict, tree, .. } => {
                    visits.entry(state.clone()).or_default().push((verdict.to_string(), format!("{tree:?}")));
                }
                Event::Stall { state, .. } => {
                    let seen = &visits[state.as_str()];
                    prop_assert!(seen.len() >= 2 && seen[seen.len() - 1] == seen[seen.len() - 2], "{:?}", seen);
                }
                _ => {}
            }
        }
    }
}

/// How a strict run of these states ends: its outcome, and whether it is verified.
fn strict_end(text: &str, script: &str) -> String {
    let all = events(&machine(text), start(true), &world(script).with_trees("a"));
    let Some(Event::LoopComplete(end)) = all.last() else { panic!("{all:?}") };
    format!("{} {}", end.outcome.word(), if end.verified { "verified" } else { "unverified" })
}

#[test]
fn a_run_is_verified_by_a_passing_observation_that_no_failing_one_follows() {
    let ends = "  done: {terminal: true}\n  fine: {terminal: true, outcome: success}\n  bad: {terminal: true, outcome: failure}\n";
    for (states, script, expected) in [
        ("  a: {action: x, on_yes: done}", "", "success verified"),
        ("  a: {action: x, next: done}", "", "failure unverified"),
        ("  a: {action: x, next: done}", "x: 3", "failure unverified"),
        ("  a: {action: x, next: fine}", "", "success unverified"),
        ("  a: {on_yes: done}", "", "failure unverified"),
        ("  a: {evaluate: {type: exit_code}, on_yes: done}", "", "failure unverified"),
        ("  a: {action: x, on_yes: b}\n  b: {action: y, next: done}", "", "success verified"),
        ("  a: {action: x, on_yes: b}\n  b: {action: y, next: done}", "y: 1", "failure unverified"),
        ("  a: {action: x, on_yes: b}\n  b: {action: y}", "y: missing", "error unverified"),
        ("  a: {action: x, on_yes: b}\n  b: {action: y, next: done}", "y: deadline", "handoff verified"),
        ("  a: {action: x, on_yes: b}\n  b: {action: y, next: done}", "y: loop-timeout", "timeout verified"),
        ("  a: {action: x, next: done}", "x: deadline", "handoff unverified"),
        ("  a: {action: x, next: b}\n  b: {action: y, next: done}", "y: loop-timeout", "timeout unverified"),
        ("  a: {action: x, next: b}\n  b: {action: x, next: done}", "", "failure unverified"),
        (
            "  a: {action: x, next: b, on_error: b}\n  b: {action: y, on_yes: done}",
            "x: 3",
            "success verified",
        ),
        (
            "  a: {action: x, on_yes: b}\n  b: {action: y, next: done, on_error: done}",
            "y: 3",
            "failure unverified",
        ),
        (
            "  a: {action: x, on_yes: b}\n  b: {action: s/t, action_type: mcp_tool, on_not_found: done}",
            "t: 127",
            "failure unverified",
        ),
        ("  a: {action: x, evaluate: {type: diff_stall}, on_yes: done}", "", "failure unverified"),
        ("  a: {action: x, evaluate: {type: action_stall}, on_yes: done}", "", "failure unverified"),
        ("  a: {action: x, evaluate: {type: score_stall}, on_yes: done}", "x: 0 5", "failure unverified"),
        (
            "  a: {action: x, evaluate: {type: convergence, toward: 0}, on_progress: done}",
            "x: 0 5",
            "failure unverified",
        ),
        (
            "  a: {action: x, evaluate: {type: convergence, toward: 0}, on_target: done}",
            "x: 0 0",
            "success verified",
        ),
        ("  a: {evaluate: {type: criteria}, route: {inactive: done, _: bad}}", "", "failure unverified"),
        (
            "  a: {action: x, evaluate: {type: classify}, route: {cannot_judge: done, _: bad}}",
            "x: 0 cannot_judge",
            "failure unverified",
        ),
        ("  a: {action: x, on_yes: b}\n  b: {loop: kid, on_success: done}", "", "success verified"),
    ] {
        // Every state that has no way for what comes ends with an error.
        let states = states.replace("b: {action: y}", "b: {action: y, on_yes: done}");
        assert_eq!(strict_end(&format!("states:\n{states}\n{ends}"), script), expected, "{states} {script}");
    }
    assert_eq!(strict_end(&format!("states:\n{ends}"), ""), "failure unverified");
}

#[test]
fn a_sub_loop_verifies_what_it_verified() {
    let text = "states:\n  p: {loop: kid, on_success: done}\n  done: {terminal: true}\n";
    for (verified, expected) in [(true, Outcome::Success), (false, Outcome::Failure)] {
        let machine = machine(text);
        let mut engine = Engine::new(&machine, start(true));
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let Next::SubLoop(request) = engine.next() else { panic!() };
        let mut end = sub_loop_end(request, &Observation::exited(0, "")).unwrap();
        end.complete.verified = verified;
        let all = engine.handle(Input::SubLoopDone(Ok(end)), Duration::ZERO).unwrap();
        let Next::Done(end) = engine.next() else { panic!("{all:?}") };
        assert_eq!((end.outcome, end.verified), (expected, verified));
    }
}

#[test]
fn a_sub_loop_on_a_branch_of_its_own_verifies_nothing_here() {
    for (branch, expected) in [("topic", Outcome::Failure), ("", Outcome::Success)] {
        let states = format!("  p: {{loop: kid, worktree: '{branch}', on_success: done}}");
        let machine = machine(&format!("states:\n{states}\n  done: {{terminal: true}}\n"));
        let mut engine = Engine::new(&machine, start(true));
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let Next::SubLoop(request) = engine.next() else { panic!() };
        let end = sub_loop_end(request, &Observation::exited(0, "")).unwrap();
        let all = engine.handle(Input::SubLoopDone(Ok(end)), Duration::ZERO).unwrap();
        let Next::Done(end) = engine.next() else { panic!("{all:?}") };
        assert_eq!((end.outcome, end.verified), (expected, expected == Outcome::Success));
    }
}

#[test]
fn journals_of_earlier_versions_are_read() {
    let stamp = r#""ts":"2026-01-01T00:00:00.000Z","seq":1"#;
    let line = format!(
        r#"{{"event":"sub_loop_complete",{stamp},"state":"p","loop":"kid","verdict":"success","exit_code":0,"outcome":"success","final_state":"end","steps":2,"duration_ms":1}}"#
    );
    let Event::SubLoopComplete(end) = event::Stamped::from_line(line.as_bytes()).unwrap().event else {
        panic!()
    };
    assert!(!end.verified, "what is not known is not verified");
    let line = format!(r#"{{"event":"evaluate",{stamp},"type":"exit_code","verdict":"yes","details":{{}}}}"#);
    let event = event::Stamped::from_line(line.as_bytes()).unwrap().event;
    assert!(matches!(event, Event::Evaluate { observes: None, .. }));
    let machine = machine("states:\n  a: {action: x, on_yes: done}\n  done: {terminal: true}\n");
    let mut all = events(&machine, start(true), &world(""));
    let index = all.iter().position(|event| matches!(event, Event::Evaluate { .. })).unwrap();
    all[index] = event;
    let timed: Vec<_> = all[..=index].iter().map(|event| (event.clone(), Duration::ZERO)).collect();
    assert!(resumed::folded(&machine, &timed).run().is_verified());
}

/// Loads and compiles a whole file, and writes it again as `ll-loop compile` does.
fn compiled(text: &str) -> (Machine, String) {
    let loaded = load::decode("demo.yaml", text, String::new())
        .unwrap_or_else(|e| panic!("{text}\n{:#?}", e.findings));
    let (machine, problems) = compile(&loaded.definition);
    let machine = machine.unwrap_or_else(|| panic!("{text}\n{problems:#?}"));
    (machine, crate::definition::emit::to_yaml(&loaded.tree))
}

/// Commands as people write them, and as nobody should.
const COMMANDS: [&str; 8] = [
    "make",
    "grep -c 'a: b' x || echo 0 # none",
    "one\n\n  two\nthree",
    "say \"it's\" \\n",
    "two\nlines\n",
    "- 1.10",
    "yes",
    "\ttab {a, b} [c] & *d !e % @f `g`",
];

fn a_command() -> impl Strategy<Value = String> {
    prop::sample::select(COMMANDS.as_slice()).prop_map(|command| Value::from(command).to_string())
}

fn a_classic_file() -> impl Strategy<Value = String> {
    let c = a_command;
    let goal = (c(), prop::option::of(c())).prop_map(|(a, b)| {
        format!(
            "paradigm: goal\ngoal: Be done\ntools: [{a}{}]\n",
            b.map_or_else(String::new, |b| format!(", {b}"))
        )
    });
    let convergence = (c(), c(), 0..3, prop::option::of(0..3), any::<bool>()).prop_map(|(a, b, toward, tolerance, down)| {
        let tolerance = tolerance.map_or_else(String::new, |tolerance| format!("tolerance: {tolerance}.50\n"));
        let direction = if down { "" } else { "direction: maximize\n" };
        format!("paradigm: convergence\nname: n\ncheck: {a}\ntoward: {toward}\nusing: {b}\n{tolerance}{direction}")
    });
    let invariants = prop::collection::vec((c(), c()), 1..4).prop_map(|all| {
        let items = all.iter().enumerate();
        let items = items.map(|(n, (a, b))| format!("  - {{name: its-{n}, check: {a}, fix: {b}}}\n"));
        format!("paradigm: invariants\nname: n\nconstraints:\n{}", items.collect::<String>())
    });
    let imperative =
        (prop::collection::vec(c(), 1..4), c(), any::<bool>()).prop_map(|(steps, check, until)| {
            let condition = if until {
                format!("until: {{check: {check}, evaluator: {{type: output_numeric, target: 1.0}}}}")
            } else {
                "condition: {type: exit_code, target: 0}".to_owned()
            };
            format!("paradigm: imperative\nname: n\nsteps: [{}]\n{condition}\n", steps.join(", "))
        });
    let form = prop_oneof![goal, convergence, invariants, imperative];
    (form, c(), 1..6_u32, 0..3_u32).prop_map(|(form, words, passes, wait)| {
        format!(
            "{form}max_iterations: {passes}\nbackoff: {wait}\ncontext: {{words: {words}, tree: {{a: [1.10, null, {{b: {words}}}], e: {{}}}}}}\n\
             description: {words}\nenv: {{A: {words}}}\n"
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_is_compiled_runs_as_what_it_was_compiled_from(
        text in a_classic_file(),
        answers in prop::collection::vec((0..3_i32, 0..5_u32), COMMANDS.len() * 3),
    ) {
        let (machine, plain) = compiled(&text);
        let (again, plain_again) = compiled(&plain);
        prop_assert_eq!(&machine, &again, "{}", plain);
        prop_assert_eq!(&plain, &plain_again);
        let run = |machine: &Machine| {
            let script = COMMANDS.iter().zip(answers.chunks(3));
            let answers = script.map(|(command, answers)| {
                let answers = answers.iter().map(|(code, out)| Observation::exited(*code, format!("{out}\n")));
                (*command, answers.collect())
            });
            let world = TestWorld { answers: RefCell::new(answers.collect()), ..world("") };
            let given = crate::machine::run_variables::Given::default();
            let context = crate::machine::run_variables::resolve(machine, &given, &BTreeMap::new()).unwrap();
            format!("{:?}", events(machine, Start { context, ..start(false) }, &world))
        };
        prop_assert_eq!(run(&machine), run(&again));
    }
}

#[test]
fn parameters_are_worked_out_where_they_are_used() {
    let text = "max_iterations: 2\nfragments:\n  say:\n    action: echo ${param.what} ${param.n}${param.none?}\n    \
        parameters: {what: {type: string, required: true}, n: {type: integer, default: 3}, none: {type: string}}\nstates:\n  \
        a: {fragment: say, with: {what: '${state.name}-${state.step}'}, next: b}\n  \
        b: {fragment: say, with: {what: '${captured.a.verdict}${context.no}', n: 4}, next: done}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, ""), @"
    1/1 a: echo a-1 3 (0) → b [Next]
    1/2 b error: in `action`: `${param.what}` has no value: `${context.no}` has no value
    = error (4, unverified) by Error in b after 1 iterations, 2 steps: in `action`: `${param.what}` has no value: `${context.no}` has no value
    ");
}

#[test]
fn classic_words_decide_on_an_earlier_state() {
    let text = "max_iterations: 3\nstates:\n  probe: {action: p, capture_exit: true, next: work}\n  work: {action: w, next: judge}\n  \
        judge: {check_condition: {type: exit_code, source: probe, target: 0}, on_met: done, on_unmet: probe}\n  done: {terminal: true}\n";
    assert_snapshot!(trace(text, "p: 1, 0\nw: 1"), @"
    1/1 probe: p (1) → work [Next]
    1/2 work: w (1) → judge [Next]
    1/3 judge → no → probe [Verdict for no]
    2/4 probe: p (0) → work [Next]
    2/5 work: w (1) → judge [Next]
    2/6 judge → yes → done [Verdict for yes]
    = success (0) by Terminal in done after 2 iterations, 6 steps: ended in `done`
    ");
}

const ROUND_AND_ROUND: &str =
    "max_iterations: 1000000\ntimeout: 10s\nstates:\n  a: {next: b}\n  b: {next: a}\n";

#[test]
fn a_run_without_work_looks_up_from_time_to_time() {
    let machine = machine(ROUND_AND_ROUND);
    let ended = |cancel: Option<Signal>, now: Duration| {
        let mut engine = Engine::new(&machine, start(false));
        let mut input = Input::Begin;
        for _ in 0..10 {
            assert!(
                engine.handle(input, Duration::ZERO).unwrap().len() <= 2000,
                "it goes on without looking up"
            );
            assert!(matches!(engine.next(), Next::Yield));
            input = Input::Yielded;
        }
        let steps = engine.run().step();
        match cancel {
            Some(signal) => engine.cancel(signal, now),
            None => engine.handle(Input::Yielded, now).unwrap(),
        };
        assert!(engine.run().step() <= steps + 1, "it went on");
        let Next::Done(end) = engine.next() else { panic!() };
        end.terminated_by
    };
    assert_eq!(ended(Some(Signal::Term), Duration::ZERO), TerminatedBy::Interrupted);
    assert_eq!(ended(None, Duration::from_secs(10)), TerminatedBy::Timeout);
}

#[test]
fn a_run_without_work_comes_to_its_end() {
    let machine = machine("max_iterations: 3000\nstates:\n  a: {next: b}\n  b: {next: a}\n");
    let events = events(&machine, start(false), &world(""));
    let Some(Event::LoopComplete(end)) = events.last() else { panic!() };
    assert_eq!((end.iterations, end.terminated_by), (3000, TerminatedBy::MaxIterations));
}

/// The states of a loop that adds a message in every pass.
fn talkative(message: &str) -> String {
    format!("max_iterations: 1000000\nstates:\n  a: {{append_to_messages: '{message}', next: a}}\n")
}

#[test]
fn of_many_messages_the_last_ones_are_kept() {
    let machine = machine(&talkative("${state.step}"));
    let start =
        Start { event: LoopStart { max_iterations: 1_000_000, ..start(false).event }, ..start(false) };
    let mut engine = Engine::new(&machine, start);
    let mut events = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    while engine.run().step() < 25_000 {
        events.extend(engine.handle(Input::Yielded, Duration::ZERO).unwrap());
    }
    let messages = engine.run().messages();
    assert_eq!(messages.len(), 10_000);
    assert_eq!(messages.last().unwrap(), &engine.run().message_count().to_string());
    let warnings = events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
    assert_eq!(warnings, 1, "once is enough");
}

#[test]
fn many_long_messages_take_bounded_memory() {
    let machine = machine(&talkative("${context.long}"));
    let context = Map::from_iter([("long".to_owned(), json!("x".repeat(1_000_000)))]);
    let start =
        Start { event: LoopStart { max_iterations: 1000, ..start(false).event }, context, ..start(false) };
    let mut engine = Engine::new(&machine, start);
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    while engine.run().step() < 500 {
        engine.handle(Input::Yielded, Duration::ZERO).unwrap();
    }
    let kept: usize = engine.run().messages().iter().map(String::len).sum();
    assert!((3 << 20..=4 << 20).contains(&kept), "{kept}");
    assert!(engine.run().messages()[0].contains("cut"), "{}", &engine.run().messages()[0][..100]);
}

#[test]
fn what_a_template_becomes_is_bounded_and_the_value_is_named() {
    let paste = "${captured.big}".repeat(1000);
    let text = format!(
        "states:\n  a: {{action: print, capture: big, next: b}}\n  b: {{action: 'echo {paste}', next: c}}\n  c: {{terminal: true}}\n"
    );
    let machine = machine(&text);
    let world = world("");
    world.answers.borrow_mut().insert("print", VecDeque::from([Observation::exited(0, "x".repeat(1 << 20))]));
    let trace = traced(&events(&machine, start(false), &world));
    assert!(
        trace.len() < 100_000 && trace.contains("in `action`: `${captured.big}`"),
        "{}",
        &trace[..2000.min(trace.len())]
    );
    assert!(trace.contains("8 MiB"));
}

#[test]
fn of_captures_that_are_too_much_the_oldest_are_shortened() {
    let mut states = String::new();
    for n in 0..5 {
        let _ = writeln!(states, "  s{n}: {{action: a{n}, capture: c{n}, next: s{}}}", n + 1);
    }
    let machine = machine(&format!("states:\n{states}  s5: {{terminal: true}}\n"));
    let mut engine = Engine::new(&machine, start(false));
    let mut events = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    while let Next::Run(_) = engine.next() {
        // What stands elsewhere counts as well.
        let stdout = Text::stored(
            "the end".to_owned(),
            100 << 20,
            false,
            StoredText { event: 0, length: 100 << 20, sum: None },
        );
        let seen = Observation { stdout, ..Observation::exited(0, "") };
        events.extend(engine.handle(Input::ActionDone(seen), Duration::ZERO).unwrap());
    }
    let whole = |name: &str| !engine.run().capture(name).unwrap().seen.stdout.is_truncated();
    assert_eq!(["c0", "c1", "c2", "c3", "c4"].map(whole), [false, false, false, true, true]);
    let warnings = events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
    assert_eq!(warnings, 1, "once is enough");
    assert!(matches!(engine.next(), Next::Done(_)));
}

/// A state that asks for more than a path.
const QUERYING: &str = "timeout: 100s\nstates:\n  a:\n    action: work\n    timeout: 7s\n    \
    evaluate: {type: output_json, path: '.n | length', target: 3}\n    on_yes: done\n    on_no: a\n    on_error: b\n  \
    b: {next: done}\n  done: {terminal: true}\n";

#[test]
fn a_query_is_answered_by_the_world() {
    assert_snapshot!(trace(QUERYING, "work: 0 text\n.n | length: 0 4, 0 oops, 0 3"), @r"
    1/1 a: work (0) → no → a [Verdict for no]
    2/2#2 a: work (0) → error → b [Verdict for error]
    2/3 b → done [Next]
    = success (0, unverified) by Terminal in done after 2 iterations, 3 steps: ended in `done` unverified: nothing passed since the last failing observation
    ");
}

#[test]
fn a_query_has_the_time_of_its_state_and_ends_with_the_run() {
    let machine = machine(QUERYING);
    let ended = |stop: Stop, after: u64| {
        let mut engine =
            Engine::new(&machine, Start { deadline: Some(Duration::from_secs(99)), ..start(false) });
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        engine.handle(Input::ActionDone(Observation::exited(0, "{}")), Duration::from_secs(95)).unwrap();
        let Next::Query(request) = engine.next() else { panic!() };
        assert_eq!(request.end, Some((Duration::from_secs(4), Stop::Deadline)));
        assert_eq!((&*request.query.filter, &*request.query.text), (".n | length", "{}"));
        if stop == Stop::Cancelled {
            engine.cancel(Signal::Int, Duration::from_secs(after));
        }
        let queried = Queried { result: Err(Explanation::new("stopped")), stop: Some(stop) };
        let answered = engine.handle(Input::Queried(queried), Duration::from_secs(after));
        assert_eq!(answered.is_err(), stop == Stop::Cancelled, "a request to end does not wait for it");
        let Next::Done(end) = engine.next() else { panic!() };
        end.terminated_by
    };
    assert_eq!(ended(Stop::Deadline, 99), TerminatedBy::Handoff);
    assert_eq!(ended(Stop::LoopTimeout, 100), TerminatedBy::Timeout);
    assert_eq!(ended(Stop::Cancelled, 96), TerminatedBy::Interrupted);
}
