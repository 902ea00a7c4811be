//! Calls that come to nothing: how many are paid for, and how the run ends.

use serde_json::json;

use super::{agents, around, one, parts, plan, scored, tested};
use crate::common::Project;

const LIMITS: &str = "limits: {retry_base_delay: 0}";

/// A service that is dead in one phase of the work, from the first call on.
fn dead_in(phase: &str, script: &str) -> Project {
    let project = match phase {
        "fix" => one(LIMITS).says("test", tested(1)),
        "replan" => {
            one("limits: {retry_base_delay: 0, attempts_before_replan: 1}").says("verify_step.1", scored(0))
        }
        _ => one(LIMITS),
    };
    project.says(phase, script)
}

#[test]
fn a_service_that_is_dead_costs_three_calls_in_every_phase() {
    for phase in ["plan", "verify_plan", "implement", "test", "fix", "verify_step", "replan", "verify_goal"] {
        let project = dead_in(phase, "exit 1");
        let ran = project.works(69);
        let asked = project.asked();
        let last = asked.iter().rev().take_while(|call| call.split(' ').next() == Some(phase));
        assert_eq!(last.count(), 3, "{phase}: {asked:?}");
        let end = project.end();
        assert_eq!((&end["outcome"], &end["terminated_by"]), (&json!("unavailable"), &json!("unavailable")));
        let reason = end["reason"].as_str().unwrap();
        assert!(reason.contains("gave no usable answer 3 times in a row: claude: it ended"), "{reason}");
        assert!(ran.all().contains("no usable answer, 2 times in a row"), "{}", ran.all());
    }
}

#[test]
fn failures_for_different_causes_are_bounded_by_the_repetitions() {
    let project = one("limits: {retry_base_delay: 0, call_retries: 4}")
        .says("implement.1", "exit 1")
        .says("implement.2", "{}")
        .says("implement.3", "exit 1")
        .says("implement.4", "{}")
        .says("implement.5", "exit 1");
    project.works(69).says("gave no usable answer in 5 calls, the last time: claude");
    assert_eq!(project.asked().len(), 2 + 5);
}

#[test]
fn two_failures_and_an_answer_cost_no_attempt() {
    let project =
        one("limits: {retry_base_delay: 0, attempts_before_replan: 1, max_replan_depth: 0, call_retries: 0}")
            .says("implement.1", "exit 1")
            .says("implement.2", "exit 1")
            .says("test.1", "{}")
            .says("test.2", "echo prose")
            .says("verify_step.1", "exit 1");
    project.works(0);
    assert_eq!(project.state()["board"]["tasks"][0]["attempts"], 1);
    let mut work = vec!["implement one"; 3];
    work.extend(["test one"; 3]);
    work.extend(["verify_step one"; 2]);
    assert_eq!(project.asked(), around(&work));
}

#[test]
fn an_answer_of_the_same_call_begins_the_count_anew() {
    let project = agents(LIMITS)
        .plans(&[("one", &[]), ("two", &[])])
        .says("test@one.1", "exit 1")
        .says("test@one.2", "exit 1")
        .says("test@two.1", "exit 1")
        .says("test@two.2", "exit 1");
    project.works(0);
    assert_eq!(project.tasks(), ["1 completed", "2 completed"]);
}

/// A coder who says that something is in the way has answered.
#[test]
fn an_answer_that_is_no_success_is_an_answer() {
    for status in ["blocked", "needs_clarification"] {
        let project = one("limits: {attempts_before_replan: 4, max_replan_depth: 0, retry_base_delay: 0, max_goal_iterations: 9}")
            .says("implement", json!({"status": status, "summary": "s", "blockReason": "no key"}).to_string());
        project.works(1);
        assert_eq!(project.asked().iter().filter(|call| *call == "implement one").count(), 4);
    }
}

#[test]
fn an_answer_in_the_wrong_form_is_asked_for_again_with_what_was_wrong() {
    let project = one(LIMITS)
        .says("implement.1", json!({"status": "great", "summary": "s"}).to_string())
        .says("test.1", "exit 1");
    project.works(0);
    let again = project.told(4);
    for part in ["could not be used", "does not have the form that was asked for", "great"] {
        assert!(again.contains(part), "no {part:?} in {again}");
    }
    // A process that crashed has said nothing that could be put right.
    assert!(!project.told(6).contains("could not be used"), "{}", project.told(6));
    let project = one(LIMITS).says("plan", json!({"tasks": []}).to_string());
    project.works(69);
    assert_eq!(project.asked(), ["plan"; 3]);
    let project = one(LIMITS).says("plan.1", "echo prose").says("plan.2", plan(&[("one", &[])]));
    project.works(0);
}

#[test]
fn a_split_in_the_wrong_form_splits_nothing() {
    let project = one("limits: {retry_base_delay: 0, attempts_before_replan: 1}")
        .says("verify_step.1", scored(0))
        .says("replan.1", parts(&["only one"]))
        .says("replan.2", "exit 1");
    project.works(0);
    assert_eq!(project.tasks(), ["1 completed", "1.1 completed", "1.2 completed"]);
}

#[test]
fn the_journal_and_the_summary_say_what_failed() {
    let project = dead_in("implement", "exit 1");
    project.run(&["run", "main", "--no-ci", "--yes", "--report-dir", "report"]).code(69);
    let failed: Vec<_> =
        project.events().into_iter().filter(|event| event["event"] == "call_failed").collect();
    assert_eq!(failed.len(), 3);
    assert_eq!(
        (&failed[2]["role"], &failed[2]["phase"], &failed[2]["in_a_row"]),
        (&json!("coder"), &json!("implement"), &json!(3))
    );
    assert!(project.read("report/summary.md").contains("gave no usable answer 3 times in a row"));
}
