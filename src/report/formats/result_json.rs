//! A run as JSON: the outputs, and what every other format shows, for programs.

use serde_json::{Map, Value, json};

use super::outputs::outputs;
use crate::base::time::millis;
use crate::board::{Task, TaskStatus};
use crate::engine::check_history::CheckHistory;
use crate::engine::execution;
use crate::evaluate::model::Usage;
use crate::report::board_work::BoardWork;
use crate::report::digest::Digest;
use crate::report::nights;
use crate::report::step::{ActionResult, Step};
use crate::report::unbegun_run::{Mistake, Unbegun};

/// The version of this format; it grows when a reader has to know.
const SCHEMA: u32 = 1;

/// Writes the run.
pub fn render(digest: &Digest) -> String {
    let outputs: Map<String, Value> =
        outputs(digest).into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect();
    let end = digest.end();
    let mut value = json!({
        "schema": SCHEMA,
        "loop": digest.loop_name(),
        "file": digest.file(),
        "started_at": digest.began(),
        "sentence": digest.sentence(),
        "complete": end.is_some() || digest.not_run().is_some() || digest.unbegun().is_some(),
        "not_run": digest.not_run().map(|not_run| json!({"scope": not_run.scope, "since": not_run.since})),
        "not_begun": digest.unbegun().map(not_begun),
        "reason": end.map(|end| &end.reason),
        "awaiting": digest.awaiting(),
        "approvals": digest.approvals(),
        "terminated_by": end.map(|end| end.terminated_by),
        "signal": end.and_then(|end| end.signal),
        "on_change": digest.start().filter(|start| start.tree.is_some()).map(|start| start.on_change.word()),
        "changes": digest.changes(),
        "changes_unknown": digest.changes_unknown(),
        "verified": end.map(|end| end.verified),
        "verification": digest.verification(),
        "closing_pass": digest.closing_pass(),
        "strict": digest.start().map(|start| start.strict),
        "usage": digest.usage(),
        "sandbox": digest.confined().rows().collect::<Vec<_>>(),
        "max_iterations": digest.start().map(|start| start.max_iterations),
        "nights": over_the_nights(digest),
        "outputs": outputs,
        "deciding_step": digest.deciding_step().map(|step| step.number),
        "states": states(digest),
        "edges": edges(digest),
        "steps_omitted": digest.omitted(),
        "steps": digest.steps().map(step).collect::<Vec<_>>(),
        "warnings": digest.warnings().iter()
            .map(|warning| json!({"state": warning.state, "message": warning.message})).collect::<Vec<_>>(),
        "warnings_omitted": digest.more_warnings(),
    });
    if let Some(reused) = digest.reused() {
        value["reused"] = json!(reused);
    }
    let flaky = digest.flaky_checks();
    if !flaky.is_empty() {
        value["flaky"] = flaky.iter().map(flaky_check).collect();
    }
    if let Some(start) = digest.start().filter(|start| !start.checks.quarantined.is_empty()) {
        value["quarantine"] = json!(start.checks.quarantined);
    }
    if let (Some(work), Some(fields)) = (digest.work(), value.as_object_mut()) {
        fields.extend(on_the_board(digest, work));
    }
    // An object of plain values always has a text.
    let text = serde_json::to_string_pretty(&value).expect("a JSON value has a text");
    text + "\n"
}

/// Writes how a check wavers.
fn flaky_check(check: &CheckHistory) -> Value {
    let CheckHistory { state, failed, of, taken_back: _, is_here } = check;
    json!({"state": state, "failed": failed, "of": of, "on_these_inputs": is_here, "words": check.words()})
}

/// Writes why the run could not begin.
fn not_begun(unbegun: &Unbegun) -> Value {
    let mistake = |mistake: &Mistake| {
        let Mistake { message, help, file, line, column } = mistake;
        json!({"message": message, "help": help, "file": file, "line": line, "column": column})
    };
    let mistakes: Vec<Value> = unbegun.mistakes.iter().map(mistake).collect();
    json!({"message": unbegun.message, "help": unbegun.help, "mistakes": mistakes})
}

/// Writes how the tasks stand, and what those cost who work on them.
fn on_the_board(digest: &Digest, work: &BoardWork) -> Map<String, Value> {
    let task = |task: &Task| {
        let effort = work.effort(&task.id);
        let mut fields = Map::from_iter([
            ("id".to_owned(), json!(task.id)),
            ("description".to_owned(), json!(task.description)),
            ("status".to_owned(), json!(task.status)),
            ("attempts".to_owned(), json!(effort.attempts)),
            ("calls".to_owned(), json!(effort.usage.calls)),
        ]);
        let why = work.reason(task).filter(|_| task.status != TaskStatus::Completed);
        fields.extend(why.map(|why| ("reason".to_owned(), json!(why))));
        Value::Object(fields)
    };
    let spent =
        |usage: &Usage| json!({"calls": usage.calls, "tokens": usage.tokens(), "cost_usd": usage.cost_usd});
    let roles: Map<String, Value> =
        work.roles().iter().map(|(role, usage)| (role.clone(), spent(usage))).collect();
    Map::from_iter([
        ("execution".to_owned(), execution::word(digest.has_begun(), work.board(), digest.end()).into()),
        ("tasks".to_owned(), work.board().tasks.iter().map(task).collect()),
        ("roles".to_owned(), Value::Object(roles)),
        ("without_role".to_owned(), spent(work.others())),
    ])
}

/// Writes what this night came to, and what it has in common with those before; null for a run that is not a nightly one.
fn over_the_nights(digest: &Digest) -> Value {
    let Some(history) = nights::of(digest) else { return Value::Null };
    json!({
        "tonight": history.nights().last(),
        "known": history.nights().len(),
        "clean_in_a_row": history.clean_in_a_row(),
        "recurring": history.recurring(),
    })
}

fn states(digest: &Digest) -> Value {
    let count = |(state, count): (&_, &crate::report::digest::StateCount)| {
        json!({
            "state": state,
            "visits": count.visits,
            "passing": count.passing,
            "failing": count.failing,
            "duration_ms": millis(count.duration),
            "verdicts": count.verdicts,
        })
    };
    digest.states().iter().map(count).collect()
}

fn edges(digest: &Digest) -> Value {
    let edge = |((from, to), edge): (&(_, _), &crate::report::taken_edges::EdgeCount)| json!({"from": from, "to": to, "count": edge.count, "verdicts": edge.verdicts});
    digest.edges().iter().map(edge).collect()
}

fn step(step: &Step) -> Value {
    let result = step.result.as_ref();
    json!({
        "step": step.number,
        "state": step.state,
        "iteration": step.iteration,
        "attempt": step.attempt,
        "closing": step.closing,
        "started_at": step.started,
        "action": step.action.as_ref().map(|action| &action.text),
        "kind": step.action.as_ref().map(|action| action.kind),
        "exit_code": result.map(|result| result.exit_code),
        "signal": result.and_then(|result| result.signal),
        "timed_out": result.map(ActionResult::timed_out),
        "duration_ms": result.map(|result| millis(result.duration)),
        "evaluator": step.judged.as_ref().map(|judged| &judged.evaluator),
        "verdict": step.verdict(),
        "details": step.judged.as_ref().map(|judged| &judged.details),
        "to": step.route.as_ref().map(|route| &route.to),
        "route": step.route.as_ref().map(|route| route.reason),
        "error": step.error,
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::report::testing::{Journal, working};

    #[test]
    fn a_run_on_a_board_is_written_down_with_its_tasks() {
        let value: Value = serde_json::from_str(&render(&working().digest())).unwrap();
        let fields =
            ["execution", "roles", "without_role", "tasks"].map(|key| (key.to_owned(), value[key].clone()));
        assert_snapshot!(format!("{:#}", Value::Object(fields.into_iter().collect())), @r#"
        {
          "execution": "failed",
          "roles": {
            "planner": {
              "calls": 3,
              "tokens": 3060,
              "cost_usd": 1.5
            },
            "supervisor": {
              "calls": 5,
              "tokens": 5100,
              "cost_usd": 2.5
            },
            "coder": {
              "calls": 7,
              "tokens": 7140,
              "cost_usd": 3.5
            },
            "tester": {
              "calls": 2,
              "tokens": 2040,
              "cost_usd": 1.0
            }
          },
          "without_role": {
            "calls": 0,
            "tokens": 0,
            "cost_usd": null
          },
          "tasks": [
            {
              "id": "1",
              "description": "Add the login form",
              "status": "completed",
              "attempts": 1,
              "calls": 5
            },
            {
              "id": "2",
              "description": "Store sessions",
              "status": "blocked",
              "attempts": 2,
              "calls": 5,
              "reason": "sessions are lost"
            },
            {
              "id": "2.1",
              "description": "Pick a store",
              "status": "completed",
              "attempts": 1,
              "calls": 1
            },
            {
              "id": "2.2",
              "description": "Write to it",
              "status": "failed",
              "attempts": 2,
              "calls": 2,
              "reason": "no disk"
            },
            {
              "id": "3",
              "description": "Document it",
              "status": "pending",
              "attempts": 0,
              "calls": 0
            }
          ]
        }
        "#);
    }

    #[test]
    fn a_run_is_written_down_in_full() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy src/", (1, "bad\n"), "no", "fix").enter("fix", 1).act("ruff");
        assert_snapshot!(render(&journal.digest()), @r#"
        {
          "schema": 1,
          "loop": "fix-types",
          "file": ".loops/fix-types.yaml",
          "started_at": "2025-11-20T23:48:47.005Z",
          "sentence": "incomplete: the journal ends in `fix` (step 2), so the run was killed or is still running",
          "complete": false,
          "not_run": null,
          "not_begun": null,
          "reason": null,
          "awaiting": null,
          "approvals": [],
          "terminated_by": null,
          "signal": null,
          "on_change": null,
          "changes": null,
          "changes_unknown": null,
          "verified": null,
          "verification": null,
          "closing_pass": [],
          "strict": true,
          "usage": {
            "calls": 0,
            "input_tokens": 0,
            "output_tokens": 0
          },
          "sandbox": [],
          "max_iterations": 20,
          "nights": null,
          "outputs": {
            "outcome": "incomplete",
            "exit-code": "",
            "verified": "",
            "reused": "",
            "reused-from": "",
            "final-state": "",
            "iterations": "1",
            "steps": "2",
            "duration-ms": "2375",
            "run-id": "fix-types-20251120T234847-1f2e",
            "handoff": "",
            "awaiting": "",
            "continuation": "",
            "key": "",
            "artifact-name": "",
            "resume-from": "",
            "report-dir": "",
            "junit": "",
            "summary": "",
            "cost-usd": "",
            "changed-files": "",
            "patch": ""
          },
          "deciding_step": null,
          "states": [
            {
              "state": "check",
              "visits": 1,
              "passing": 0,
              "failing": 1,
              "duration_ms": 2340,
              "verdicts": {
                "no": 1
              }
            }
          ],
          "edges": [
            {
              "from": "check",
              "to": "fix",
              "count": 1,
              "verdicts": {
                "no": 1
              }
            }
          ],
          "steps_omitted": 0,
          "steps": [
            {
              "step": 1,
              "state": "check",
              "iteration": 1,
              "attempt": 1,
              "closing": false,
              "started_at": "2025-11-20T23:48:47.010Z",
              "action": "mypy src/",
              "kind": "shell",
              "exit_code": 1,
              "signal": null,
              "timed_out": false,
              "duration_ms": 2340,
              "evaluator": "exit_code",
              "verdict": "no",
              "details": {},
              "to": "fix",
              "route": "verdict",
              "error": null
            },
            {
              "step": 2,
              "state": "fix",
              "iteration": 1,
              "attempt": 1,
              "closing": false,
              "started_at": "2025-11-20T23:48:49.375Z",
              "action": "ruff",
              "kind": "shell",
              "exit_code": null,
              "signal": null,
              "timed_out": null,
              "duration_ms": null,
              "evaluator": null,
              "verdict": null,
              "details": null,
              "to": null,
              "route": null,
              "error": null
            }
          ],
          "warnings": [],
          "warnings_omitted": 0
        }
        "#);
    }
}
