//! `paradigm: agents`, with a host that says what a test wants: the calls in their order, what becomes of each task, and
//! how the run ends.

use std::fs;

use serde_json::{Value, json};

use crate::common::{Project, Ran, events};
use crate::fake_host;
use crate::runs::crash::thorough;

mod breaker;
mod going_on;
mod hostile;
mod narrow;
mod onlookers;
mod prompts;
mod replays;
mod rules;

/// A host that answers by phase. `script/PHASE@TASK` goes before `script/PHASE`, and with `.N` behind it is the answer
/// to the Nth call of that kind. What begins with a brace is the answer; anything else is a script. It writes down what it
/// was asked.
const HOST: &str = r#"#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
mkdir -p calls
phase=$LL_AGENT_PHASE
call=$phase${LL_AGENT_TASK:+ $LL_AGENT_TASK}
[ "$LL_AGENT_ROLE" ] || call="nobody $call"
echo "$call" >> calls/log
total=$(wc -l < calls/log)
cat > "calls/$total.stdin"
printf '%s\n' "$@" > "calls/$total.argv"
name=$phase${LL_AGENT_TASK:+@$LL_AGENT_TASK}
file=
for one in "$name" ${LL_AGENT_TASK:+"$phase"}; do
  n=$(( $(cat "calls/count-$one" 2>/dev/null || echo 0) + 1 )); echo $n > "calls/count-$one"
  [ "$file" ] && continue
  for candidate in "script/$one.$n" "script/$one"; do [ -e "$candidate" ] && { file=$candidate; break; }; done
done
text=$(cat "$file")
case $text in
  '{'*) printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s%s","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5},"result":"","structured_output":%s}\n' "$total" "$text" ;;
  *) . "$file" ;;
esac
"#;

/// A loop with these keys besides its goal. Waits are short.
fn agents(keys: &str) -> Project {
    let standard = "limits: {retry_base_delay: 1ms, call_retries: 1}\n";
    let limits = if keys.contains("limits:") { "" } else { standard };
    let project =
        Project::with_loop(&format!("paradigm: agents\nname: main\ngoal: reach it\n{limits}{keys}\n"));
    fake_host::program(&project, "bin/claude", HOST);
    let project = project
        .file("script/implement", &json!({"status": "complete", "summary": "wrote it"}).to_string())
        .file("script/fix", &json!({"status": "fixed", "summary": "mended it"}).to_string())
        .file("script/test", &tested(0))
        .file("script/verify_plan", &scored(90))
        .file("script/verify_step", &scored(90))
        .file("script/verify_goal", &scored(90))
        .file("script/replan", &parts(&["part a", "part b"]));
    fake_host::found(project)
}

impl Project {
    /// Sets an answer of the host.
    fn says(self, name: &str, answer: impl AsRef<str>) -> Self {
        self.file(&format!("script/{name}"), answer.as_ref())
    }

    /// Sets the plan: each task with the places of the tasks that it waits for.
    fn plans(self, tasks: &[(&str, &[i64])]) -> Self {
        self.says("plan", plan(tasks))
    }

    /// Returns the calls, in order.
    fn asked(&self) -> Vec<String> {
        let log = fs::read_to_string(self.at("calls/log")).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Returns what the host was told in the nth call, from 1.
    fn told(&self, call: usize) -> String {
        self.read(&format!("calls/{call}.stdin"))
    }

    /// Returns each task with its status.
    fn tasks(&self) -> Vec<String> {
        let board = self.state()["board"].clone();
        let tasks = board["tasks"].as_array().unwrap().iter();
        tasks
            .map(|task| format!("{} {}", task["id"].as_str().unwrap(), task["status"].as_str().unwrap()))
            .collect()
    }

    #[track_caller]
    fn works(&self, code: i32) -> Ran {
        self.run(&["run", "main", "--no-ci", "--yes"]).code(code)
    }

    #[track_caller]
    fn resumes(&self, code: i32) -> Ran {
        self.run(&["resume", "main", "--no-ci", "--yes"]).code(code)
    }

    fn execution(&self) -> String {
        self.state()["board"]["execution"].as_str().unwrap().to_owned()
    }
}

fn plan(tasks: &[(&str, &[i64])]) -> String {
    let tasks = tasks.iter().map(|(description, dependencies)| {
        json!({"description": description, "complexity": "simple", "dependencies": dependencies,
               "verificationCriteria": [format!("{description} works")]})
    });
    json!({"tasks": tasks.collect::<Vec<_>>()}).to_string()
}

fn parts(descriptions: &[&str]) -> String {
    let parts = descriptions.iter().map(|one| json!({"description": one, "complexity": "simple"}));
    json!({"analysis": "too big", "subtasks": parts.collect::<Vec<_>>()}).to_string()
}

fn scored(score: i32) -> String {
    json!({"score": score, "feedback": format!("about {score}")}).to_string()
}

fn tested(failed: u32) -> String {
    let status = if failed == 0 { "passed" } else { "failed" };
    let failures = vec![json!({"testName": "t1", "error": "it is red", "file": "a.rs"}); failed as usize];
    json!({"status": status, "testsRun": 3, "testsPassed": 3 - failed, "testsFailed": failed, "failures": failures,
           "fixPlan": "make it green"})
    .to_string()
}

/// What a run of one task asks when everything goes well.
const ONE: [&str; 6] = ["plan", "verify_plan", "implement one", "test one", "verify_step one", "verify_goal"];

fn one(keys: &str) -> Project {
    agents(keys).plans(&[("one", &[])])
}

/// Returns `ONE` with something else between the review of the plan and the verification of the goal.
fn around(calls: &[&str]) -> Vec<String> {
    let calls = ["plan", "verify_plan"].iter().chain(calls).chain(&["verify_goal"]);
    calls.map(|call| (*call).to_owned()).collect()
}

#[test]
fn a_goal_is_reached_task_by_task() {
    let project = agents("").plans(&[("one", &[]), ("two", &[0])]);
    project.works(0);
    let work =
        ["implement one", "test one", "verify_step one", "implement two", "test two", "verify_step two"];
    assert_eq!(project.asked(), around(&work));
    assert_eq!(project.tasks(), ["1 completed", "2 completed"]);
    let end = project.end();
    assert_eq!((&end["final_state"], &end["verified"]), (&json!("completed"), &json!(true)));
    assert_eq!(project.execution(), "completed");
    assert_eq!(project.state()["budget"]["calls"], 9);
}

#[test]
fn every_call_has_its_prompt_its_form_and_its_role() {
    let project = agents("constraints: [no new services]").plans(&[("one", &[]), ("two", &[0])]);
    project.works(0);
    for (call, parts) in [
        (1, &["reach it", "- no new services", "3 to 8 tasks in dependency order"][..]),
        (2, &["reach it", "1. one (simple)", "- one works", "2. two (simple), after 1"]),
        (3, &["Task 1 (simple): one", "- one works", "- none yet"]),
        (4, &["Task 1 (simple): one", "wrote it"]),
        (
            5,
            &[
                "judged by:\n- one works",
                "wrote it",
                "not known: this is not a git repository",
                "\"testsRun\":3",
            ],
        ),
        (6, &["Task 2 (simple): two", "- 1 one: wrote it"]),
        (9, &["- 1 one: wrote it\n- 2 two: wrote it"]),
    ] {
        let told = project.told(call);
        for part in parts {
            assert!(told.contains(part), "{call}: no {part:?} in {told}");
        }
        let argv = project.read(&format!("calls/{call}.argv"));
        assert!(argv.contains("\n--json-schema\n{\"type\":\"object\""), "{argv}");
        assert!(!argv.contains("reach it"), "{argv}");
    }
    assert!(project.asked().iter().all(|call| !call.contains("nobody")));
}

/// The tester is told what was done last: by the fix, where there was one.
#[test]
fn the_tester_is_told_of_the_last_fix() {
    let done = json!({"status": "complete", "summary": "wrote it", "filesModified": ["a.rs"], "testsAdded": ["t.rs"]});
    let fixed =
        json!({"status": "fixed", "summary": "mended it", "filesModified": ["b.rs"], "testsAdded": ["u.rs"]});
    let project = agents("")
        .plans(&[("one", &[]), ("two", &[])])
        .says("implement", done.to_string())
        .says("fix", fixed.to_string())
        .says("test@one.1", tested(1));
    project.works(0);
    let calls = project.asked();
    let told = |n: usize, call: &str| {
        let place = calls.iter().enumerate().filter(|(_, asked)| *asked == call).nth(n).unwrap().0;
        project.told(place + 1)
    };
    for (told, there, absent) in [
        (told(0, "test one"), ["wrote it", "a.rs", "t.rs"], "mended it"),
        (told(1, "test one"), ["mended it", "b.rs", "u.rs"], "wrote it"),
        (told(0, "test two"), ["wrote it", "a.rs", "t.rs"], "mended it"),
    ] {
        let (_, about) = told.split_once("What the coder says was done last:").unwrap();
        assert!(there.iter().all(|part| about.contains(part)) && !about.contains(absent), "{told}");
    }
    let argv =
        project.read(&format!("calls/{}.argv", calls.iter().position(|call| call == "fix one").unwrap() + 1));
    assert!(argv.contains("testsAdded"), "{argv}");
}

#[test]
fn the_facts_of_the_goal_count_the_tests() {
    let project = agents("").plans(&[("one", &[]), ("two", &[])]);
    project.works(0);
    let told = project.told(project.asked().len());
    assert!(
        told.contains("- task 1: 3 run, 3 passed, 0 failed\n- task 2: 3 run, 3 passed, 0 failed"),
        "{told}"
    );
    let project = one("roles: {tester: {check: 'echo 12 passed in 0.1s; echo a warning >&2'}}");
    project.works(0);
    let told = project.told(project.asked().len());
    for part in [
        "- nobody counted them",
        "run once more over everything, and passed. It printed:\n12 passed in 0.1s\na warning",
    ] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

/// Rule 1: the score decides, and words count only where there is none.
#[test]
fn the_score_decides() {
    for (answer, is_approved) in [
        (json!({"score": 70, "feedback": "f", "approved": false, "recommendation": "reject"}), Some(true)),
        (json!({"score": 69.9, "feedback": "f", "approved": true, "recommendation": "approve"}), Some(false)),
        (json!({"score": 0, "feedback": "f", "approved": true}), Some(false)),
        (json!({"feedback": "f", "approved": true}), Some(true)),
        (json!({"feedback": "f", "recommendation": "approve"}), Some(true)),
        (json!({"score": null, "feedback": "f", "approved": true, "issues": null}), Some(true)),
        (
            json!({"score": 80, "feedback": "f", "recommendation": "APPROVE!", "escalationLevel": "?"}),
            Some(true),
        ),
        (json!({"feedback": "f", "approved": false}), Some(false)),
        (json!({"feedback": "f", "recommendation": "revise"}), Some(false)),
        (json!({"feedback": "neither"}), None),
        (json!({"score": 101, "feedback": "too much"}), None),
        (json!({"score": -1, "feedback": "too little"}), None),
        (json!({"score": "90", "feedback": "a text"}), None),
        (json!({"score": 90}), None),
    ] {
        let project = one("").says("verify_goal", answer.to_string());
        let (code, state) = match is_approved {
            Some(true) => (0, "completed"),
            Some(false) => (1, "failed"),
            None => (69, "verify_goal"),
        };
        project.works(code);
        assert_eq!(project.end()["final_state"], state, "{answer}");
        assert_eq!(project.tasks(), ["1 completed"]);
    }
}

#[test]
fn thresholds_are_the_loop_s_own() {
    let project = one("review: {approve: 95, revise: 91}").says("verify_goal", scored(94));
    project.works(1);
    assert!(project.told(2).contains("95 or more: the plan is approved. From 91 on"), "{}", project.told(2));
    let project = one("review: {approve: 20, revise: 10}").says("verify_step", scored(20));
    project.works(0);
}

/// Rule 2.
#[test]
fn a_plan_is_revised_with_the_feedback_of_its_review() {
    let project = one("").says("plan.1", plan(&[("vague", &[]), ("vaguer", &[])])).says(
        "verify_plan.1",
        json!({"score": 55, "feedback": "say how", "issues": ["no tests"], "missingElements": ["docs"]})
            .to_string(),
    );
    project.works(0);
    assert_eq!(project.asked()[..4], ["plan", "verify_plan", "plan", "verify_plan"]);
    let told = project.told(3);
    for part in
        ["was not approved", "Reminder: say how", "Issues:\n- no tests", "Missing:\n- docs", "2. vaguer"]
    {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    assert_eq!(project.tasks(), ["1 completed"], "the new plan replaces the old one");
}

#[test]
fn a_plan_that_no_review_approves_is_worked_on_by_default() {
    let project = one("").says("verify_plan", scored(40));
    project.works(0);
    let mut expected = ["plan", "verify_plan"].repeat(3);
    expected.extend(&ONE[2..]);
    assert_eq!(project.asked(), expected);
    assert_eq!(
        project.state()["board"]["planning"]["approval"],
        "not approved; the loop goes on all the same"
    );
}

#[test]
fn a_lower_threshold_judges_the_last_review_again() {
    for (score, code, state) in [(50, 0, "completed"), (49, 1, "aborted")] {
        let project = one("review: {on_plan_rejected: lower_threshold}").says("verify_plan", scored(score));
        project.works(code);
        assert_eq!(project.end()["final_state"], state);
        let planning: Vec<_> = ["plan", "verify_plan"].repeat(3);
        assert_eq!(project.asked()[..6], planning);
        assert_eq!(project.asked().len(), if code == 0 { 10 } else { 6 });
    }
}

#[test]
fn a_rejected_plan_can_end_the_run() {
    let project = one("review: {on_plan_rejected: abort}").says("verify_plan", scored(65));
    project.works(1);
    assert_eq!((project.asked().len(), project.end()["final_state"].clone()), (6, json!("aborted")));
    assert_eq!(project.execution(), "aborted");
}

#[test]
fn a_plan_may_go_without_review_and_tasks_without_verification() {
    let project = one("review: {plan: false, steps: false}");
    project.works(0);
    assert_eq!(project.asked(), ["plan", "implement one", "test one", "verify_goal"]);
    assert_eq!(project.state()["board"]["planning"]["approval"], "not reviewed");
}

/// Rule 3.
#[test]
fn tasks_wait_for_what_they_depend_on() {
    let project = agents("review: {steps: false}").plans(&[("one", &[2]), ("two", &[]), ("three", &[1])]);
    project.works(0);
    let done: Vec<_> = project.asked().into_iter().filter(|call| call.starts_with("implement")).collect();
    assert_eq!(done, ["implement two", "implement three", "implement one"]);
}

#[test]
fn dependencies_that_cannot_be_kept_are_dropped_and_said() {
    let project = agents("").plans(&[("one", &[1, 9, 0]), ("two", &[0])]);
    let ran = project.works(0);
    for said in
        ["task 1 does not wait for the task at place 9", "task 1 does not wait for the task at place 0"]
    {
        assert!(ran.all().contains(said), "{}", ran.all());
    }
    assert!(ran.all().contains("task 2 does not wait for the task at place 0: that task waits for this one"));
    let done: Vec<_> = project.asked().into_iter().filter(|call| call.starts_with("implement")).collect();
    assert_eq!(done, ["implement two", "implement one"]);
}

#[test]
fn work_that_nobody_can_begin_is_a_failure() {
    let project = agents("limits: {attempts_before_replan: 1, max_replan_depth: 0, retry_base_delay: 0}")
        .plans(&[("one", &[]), ("two", &[0]), ("three", &[])])
        .says("verify_step@one", scored(10));
    let ran = project.works(1).says("task 2 cannot begin any more: task 1 is not completed");
    assert!(!ran.all().contains("implement two"));
    assert_eq!(project.tasks(), ["1 failed", "2 pending", "3 completed"]);
    assert_eq!(
        (project.end()["final_state"].clone(), project.execution()),
        (json!("failed"), "failed".to_owned())
    );
    assert!(!project.asked().contains(&"verify_goal".to_owned()));
}

/// Rule 4.
#[test]
fn a_fix_is_tested_again_until_it_holds() {
    let project = one("").says("test.1", tested(2)).says("test.2", tested(1));
    project.works(0);
    let work = ["implement one", "test one", "fix one", "test one", "fix one", "test one", "verify_step one"];
    assert_eq!(project.asked(), around(&work));
    let told = project.told(7);
    for part in ["- t1: it is red: a.rs", "make it green", "This is fix 2 of 3", "Fix 1: mended it"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

#[test]
fn fixes_come_to_an_end() {
    let limits =
        "limits: {max_fix_cycles: 2, attempts_before_replan: 1, max_replan_depth: 0, abort_failed_ratio: 1}";
    let project = one(limits).says("test", tested(1));
    project.works(1);
    let attempt = ["implement one", "test one", "fix one", "test one", "fix one", "test one"];
    assert_eq!(project.asked()[2..], attempt);
    assert_eq!(project.tasks(), ["1 failed"]);
    let project = one(&limits.replace("max_fix_cycles: 2", "max_fix_cycles: 0")).says("test", tested(1));
    project.works(1);
    assert_eq!(project.asked()[2..], ["implement one", "test one"]);
}

#[test]
fn a_claim_proves_nothing() {
    let limits = "limits: {max_fix_cycles: 1, attempts_before_replan: 1, max_replan_depth: 0}";
    // The coder says that it is fixed, and the tests do not.
    let project = one(limits).says("test", tested(1));
    project.works(1);
    assert_eq!(project.asked()[2..], ["implement one", "test one", "fix one", "test one"]);
    // The coder says that it still fails, and the tests pass.
    let project = one(limits)
        .says("test.1", tested(1))
        .says("fix", json!({"status": "still_failing", "summary": "no idea"}).to_string());
    project.works(0);
    // The tester says passed, and counts or lists a failure.
    for claims in [
        json!({"status": "passed", "testsRun": 2, "testsPassed": 1, "testsFailed": 1}),
        json!({"status": "passed", "testsRun": 2, "testsPassed": 2, "testsFailed": 0, "failures": [{"error": "e"}]}),
    ] {
        let project = one(limits).says("test", claims.to_string());
        project.works(1);
        assert_eq!(project.asked()[2..], ["implement one", "test one", "fix one", "test one"]);
    }
}

#[test]
fn what_stops_the_coder_or_the_tester_fails_the_attempt() {
    let blocked = |call: &str, status: &str| {
        let mut answer = json!({"status": status, "summary": "no", "blockReason": "no access"});
        if call == "test" {
            answer = json!({"status": status, "testsRun": 0, "testsPassed": 0, "testsFailed": 0});
        }
        one("")
            .says("test.1", tested(u32::from(call == "fix")))
            .says(&format!("{call}.1"), answer.to_string())
    };
    for (call, status, first) in [
        ("implement", "blocked", &["implement one"][..]),
        ("implement", "needs_clarification", &["implement one"]),
        ("test", "blocked", &["implement one", "test one"]),
        ("fix", "blocked", &["implement one", "test one", "fix one"]),
    ] {
        let project = blocked(call, status);
        project.works(0);
        let again = ["implement one", "test one", "verify_step one"];
        let work: Vec<_> = first.iter().chain(&again).copied().collect();
        assert_eq!(project.asked(), around(&work), "{call} {status}");
    }
    let project = blocked("implement", "blocked");
    project.works(0);
    let told = project.told(4);
    assert!(told.contains("attempt 2 of 3") && told.contains("- no access"), "{told}");
}

#[test]
fn work_that_is_not_approved_is_tried_again_with_its_feedback() {
    for score in [69, 10] {
        let project = one("").says("verify_step.1", scored(score));
        project.works(0);
        let attempt = ["implement one", "test one", "verify_step one"];
        assert_eq!(project.asked(), around(&attempt.repeat(2)));
        assert!(project.told(6).contains(&format!("about {score}")), "{}", project.told(6));
    }
}

/// Rule 5.
#[test]
fn a_task_that_keeps_failing_is_split_and_completes_with_its_parts() {
    let project = agents("").plans(&[("one", &[]), ("two", &[0])]).says("verify_step@one", scored(30));
    project.works(0);
    let attempt = ["implement one", "test one", "verify_step one"];
    let mut work: Vec<String> = attempt.repeat(3).into_iter().map(str::to_owned).collect();
    work.push("replan one".to_owned());
    for task in ["part a", "part b", "two"] {
        work.extend(["implement", "test", "verify_step"].map(|call| format!("{call} {task}")));
    }
    let work: Vec<&str> = work.iter().map(String::as_str).collect();
    assert_eq!(project.asked(), around(&work));
    assert_eq!(project.tasks(), ["1 completed", "1.1 completed", "1.2 completed", "2 completed"]);
    let told = project.told(12);
    assert!(
        told.contains("- Correction: about 30\n- Correction: about 30\n- Correction: about 30"),
        "{told}"
    );
    // A part is judged by what the whole is judged by.
    assert!(project.told(15).contains("judged by:\n- one works"), "{}", project.told(15));
}

#[test]
fn tasks_are_split_to_the_depth_of_the_limit() {
    let limits = "limits: {attempts_before_replan: 1, retry_base_delay: 0}";
    let project = one(limits)
        .says("verify_step@one", scored(0))
        .says("verify_step@part a.1", scored(0))
        .says("verify_step@part a.2", scored(0));
    project.works(0);
    let replans: Vec<_> = project.asked().into_iter().filter(|call| call.starts_with("replan")).collect();
    assert_eq!(replans, ["replan one", "replan part a", "replan part a"]);
    let expected = ["1", "1.1", "1.1.1", "1.1.1.1", "1.1.1.2", "1.1.2", "1.2"];
    assert_eq!(project.tasks(), expected.map(|id| format!("{id} completed")));
    // At the last level nothing is split any more.
    let limits = "limits: {attempts_before_replan: 1, max_replan_depth: 1, retry_base_delay: 0}";
    let project = one(limits).says("verify_step@one", scored(0)).says("verify_step@part a", scored(0));
    project.works(1);
    assert_eq!(project.tasks(), ["1 blocked", "1.1 failed", "1.2 completed"]);
    assert_eq!(project.end()["final_state"], "failed");
}

#[test]
fn a_split_that_comes_to_nothing_fails_no_task() {
    let limits = "limits: {attempts_before_replan: 1, call_retries: 1, retry_base_delay: 0}";
    let project = agents(limits)
        .plans(&[("one", &[]), ("two", &[])])
        .says("verify_step@one.1", scored(0))
        .says("replan", parts(&["only one"]));
    project.works(69);
    assert_eq!(project.tasks(), ["1 in_progress", "2 pending"]);
    assert_eq!(project.asked().iter().filter(|call| *call == "replan one").count(), 3);
}

/// Rule 6.
#[test]
fn when_most_tasks_failed_nothing_goes_on() {
    let limits = "limits: {max_replan_depth: 0, retry_base_delay: 0}";
    let tasks: &[(&str, &[i64])] = &[("one", &[]), ("two", &[]), ("three", &[])];
    let project = agents(limits).plans(tasks).says("verify_step", scored(0));
    project.works(1);
    let mut expected = vec!["plan", "verify_plan"];
    expected.extend(["implement one", "test one", "verify_step one"].repeat(3));
    expected.extend(["implement two", "test two", "verify_step two"].repeat(3));
    assert_eq!(project.asked(), expected);
    assert_eq!(project.tasks(), ["1 failed", "2 failed", "3 pending"]);
    assert_eq!(
        (project.end()["final_state"].clone(), project.execution()),
        (json!("aborted"), "aborted".to_owned())
    );
}

#[test]
fn passes_without_a_completed_task_come_to_an_end() {
    let limits = "limits: {attempts_before_replan: 9, max_goal_iterations: 2, retry_base_delay: 0}";
    let project = one(limits).says("verify_step", scored(60));
    project.works(1);
    assert_eq!(project.asked()[2..], ["implement one", "test one", "verify_step one"].repeat(2));
    assert_eq!(project.end()["final_state"], "failed");
}

/// Rule 7.
#[test]
fn the_supervisor_can_raise_its_voice() {
    let issues = |count: usize| vec!["bad"; count];
    for (answer, level, prefix) in [
        (json!({"score": 69, "feedback": "f"}), "remind", "Reminder: f"),
        (json!({"score": 49, "feedback": "f"}), "correct", "Correction: f"),
        (json!({"score": 29, "feedback": "f"}), "refocus", "Refocus on the task: f"),
        (json!({"score": 60, "feedback": "f", "issues": issues(4)}), "remind", "Reminder: f"),
        (json!({"score": 60, "feedback": "f", "issues": issues(5)}), "critical", "Critical: f"),
    ] {
        let project = one("").says("verify_step.1", answer.to_string());
        project.works(0);
        let escalated = project.events().into_iter().find_map(|event| {
            let notes = event["notes"].as_array()?.clone();
            notes.into_iter().find(|note| note["kind"] == "escalation")
        });
        let said = format!("the supervisor says {level} about task 1");
        assert_eq!(escalated.unwrap()["text"], said, "{answer}");
        assert!(project.told(6).contains(&format!("- {prefix}")), "{}", project.told(6));
    }
    // What is approved raises no voice, however much there is to say.
    let project =
        one("").says("verify_step", json!({"score": 75, "feedback": "f", "issues": issues(9)}).to_string());
    project.works(0);
}

#[test]
fn the_supervisor_can_abort() {
    let abort = json!({"score": 60, "feedback": "f", "issues": vec!["bad"; 6]}).to_string();
    for (call, expected) in [("verify_plan", 2), ("verify_step", 5)] {
        let project = one("").says(call, &abort);
        project.works(1);
        assert_eq!(
            (project.asked().len(), project.end()["final_state"].clone()),
            (expected, json!("aborted"))
        );
    }
    let project = one("").says("verify_goal", &abort);
    project.works(1).says("the supervisor says abort about the goal");
    assert_eq!(
        (project.end()["final_state"].clone(), project.execution()),
        (json!("aborted"), "aborted".to_owned())
    );
    let claimed = json!({"score": 60, "feedback": "f", "escalationLevel": "abort"}).to_string();
    let project = one("").says("verify_step", &claimed);
    project.works(1);
    assert_eq!(project.end()["final_state"], "aborted");
}

/// Rule 8.
#[test]
fn the_goal_is_verified_when_every_task_is_completed_and_both_count() {
    let project = one("").says("verify_goal", scored(69));
    project.works(1);
    assert_eq!(project.asked(), ONE);
    assert_eq!((project.tasks(), project.execution()), (vec!["1 completed".to_owned()], "failed".to_owned()));
}

/// Rule 9.
#[test]
fn time_is_bounded_for_calls_and_for_the_whole() {
    let limits = "limits: {call_timeout: 300ms, call_retries: 0, retry_base_delay: 0}";
    let project = one(limits).says("implement", "sleep 20");
    project.works(69).says("gave no usable answer 3 times in a row: it took too long");
    assert_eq!(project.tasks(), ["1 in_progress"]);
    let project = one("timeout: 1500ms").says("implement", "sleep 20");
    let ran = project.run(&["run", "main", "--no-ci", "--yes"]);
    assert_eq!(ran.code, Some(124), "{}", ran.all());
    assert_eq!(
        (project.end()["outcome"].clone(), project.execution()),
        (json!("timeout"), "aborted".to_owned())
    );
}

/// Answers that are none, in every call: nothing is approved, completed or passed by them.
#[test]
fn what_is_no_answer_does_nothing() {
    for (bad, what) in [
        ("exit 1", "a crash"),
        ("exit 0", "nothing"),
        ("echo prose", "prose"),
        (
            "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"All done! It works.\"}'",
            "prose as a result",
        ),
        ("{}", "an empty object"),
        ("{\"status\": \"great\", \"score\": \"high\", \"tasks\": []}", "another form"),
        (
            "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"structured_output\":{\"score\":99'",
            "a half",
        ),
        ("kill -9 $$", "a kill"),
    ] {
        for (call, before, tasks) in [
            ("plan", 0, &[][..]),
            ("verify_plan", 1, &["1 pending"]),
            ("implement", 2, &["1 in_progress"]),
            ("test", 3, &["1 in_progress"]),
            ("verify_step", 4, &["1 in_progress"]),
            ("verify_goal", 5, &["1 completed"]),
        ] {
            let limits = "limits: {call_retries: 1, retry_base_delay: 0, attempts_before_replan: 1, max_replan_depth: 0}";
            let project = one(limits).says(call, bad);
            project.works(69);
            assert_eq!(project.asked().len(), before + 3, "{what} in {call}: {:?}", project.asked());
            assert_eq!(project.tasks(), tasks, "{what} in {call}");
        }
    }
}

#[test]
fn a_call_that_came_to_nothing_is_made_again() {
    let project = one(
        "limits: {call_retries: 2, retry_base_delay: 0}\nroles: {coder: {model: big, fallback_model: small}}",
    )
    .says("implement.1", "exit 1")
    .says("implement.2", "echo prose");
    project.works(0);
    let work = ["implement one", "implement one", "implement one", "test one", "verify_step one"];
    assert_eq!(project.asked(), around(&work));
    let argv = |call: usize| project.read(&format!("calls/{call}.argv"));
    assert!(
        argv(3).contains("--model\nbig\n") && argv(3).contains("--fallback-model\nsmall\n"),
        "{}",
        argv(3)
    );
    assert!(argv(4).contains("--model\nsmall\n") && !argv(4).contains("--fallback-model"), "{}", argv(4));
}

#[test]
fn conversations_last_as_long_as_the_loop_says() {
    let resumed = |project: &Project, call: usize| {
        let argv = project.read(&format!("calls/{call}.argv"));
        argv.lines().skip_while(|word| *word != "--resume").nth(1).map(str::to_owned)
    };
    let tasks: &[(&str, &[i64])] = &[("one", &[]), ("two", &[])];
    // Calls 3 and 5 are the coder's for the first task, 8 for the second one.
    for (session, expected) in [
        ("task", [None, Some("s3"), None]),
        ("run", [None, Some("s3"), Some("s5")]),
        ("call", [None, None, None]),
    ] {
        let keys = format!("roles: {{coder: {{session: {session}}}}}");
        let project = agents(&keys).plans(tasks).says("test@one.1", tested(1));
        project.works(0);
        let found = [3, 5, 8].map(|call| resumed(&project, call));
        assert_eq!(found.each_ref().map(Option::as_deref), expected, "{session}");
    }
    // A conversation in which a call failed is over.
    let project = one("").says("test.1", tested(1)).says("fix.1", "exit 1");
    project.works(0);
    assert_eq!([3, 5, 6].map(|call| resumed(&project, call)), [None, Some("s3".to_owned()), None]);
}

#[test]
fn a_command_tests_in_place_of_an_agent() {
    let project =
        one("roles: {tester: {check: 'echo tests ran; test -e fixed || { echo broken >&2; exit 1; }'}}")
            .says(
                "fix",
                format!("touch fixed; echo '{}'", result(&json!({"status": "fixed", "summary": "s"}))),
            );
    project.works(0);
    assert_eq!(project.asked(), around(&["implement one", "fix one", "verify_step one"]));
    assert!(project.told(4).contains("Every failure:\ntests ran\nbroken"), "{}", project.told(4));
    assert!(project.told(5).contains("What the tests said:\ntests ran"), "{}", project.told(5));
}

#[test]
fn a_command_that_did_not_test_fails_the_attempt() {
    let limits = "limits: {attempts_before_replan: 1, max_replan_depth: 0}\n";
    for check in ["exit 126", "no-such-command-here", "kill -9 $$"] {
        let project = one(&format!("{limits}roles: {{tester: {{check: '{check}'}}}}"));
        project.works(1);
        assert_eq!(project.asked(), ["plan", "verify_plan", "implement one"], "{check}");
        assert_eq!(project.tasks(), ["1 failed"]);
    }
}

#[test]
fn the_command_tests_everything_once_more_before_the_goal_is_judged() {
    let goal = |keys: &str, ends: &str| {
        let check = format!(
            "echo \"$LL_AGENT_ROLE $LL_AGENT_PHASE ${{LL_AGENT_TASK-no task}}\" >> told; case $LL_AGENT_PHASE in verify_goal) {ends};; esac"
        );
        one(&format!("roles: {{tester: {{check: '{check}'{keys}}}}}"))
    };
    let fine = goal("", "true");
    fine.works(0);
    assert_eq!(fine.asked(), around(&["implement one", "verify_step one"]));
    assert_eq!(fine.read("told"), "tester test one\ntester verify_goal no task\n");
    for (keys, ends, code) in [
        ("", "echo a later task broke it; exit 101", 1),
        (", check_is: in_front", "exit 1", 1),
        (", no: [1]", "exit 1", 1),
        (", no: [1]", "exit 2", 4),
        ("", "exit 127", 4),
        ("", "kill -9 $$", 4),
    ] {
        let project = goal(keys, ends);
        drop(project.works(code));
        assert!(!project.asked().contains(&"verify_goal".to_owned()), "{ends}");
        assert_eq!(project.tasks(), ["1 completed"], "{ends}");
        assert_eq!(project.end()["verified"], false, "{ends}");
    }
    let late = goal("", "test -e mended").plans(&[("one", &[])]);
    drop(late.run(&["run", "main", "--no-ci", "--yes", "--no-llm"]).code(75));
    late.resumes(1);
}

#[test]
fn any_exit_code_of_a_tool_is_a_failed_test_unless_codes_are_listed() {
    for (keys, calls) in [
        ("check: 'exit 101'", &["implement one", "fix one"][..]),
        ("check: 'exit 2', no: 2", &["implement one", "fix one"]),
        ("check: 'exit 3', no: [1, 2]", &["implement one"]),
    ] {
        let limits = "limits: {max_fix_cycles: 1, attempts_before_replan: 1, max_replan_depth: 0}\n";
        let project = one(&format!("{limits}roles: {{tester: {{{keys}}}}}"));
        drop(project.works(1));
        assert_eq!(project.asked()[2..], *calls, "{keys}");
    }
}

#[test]
fn a_command_can_test_before_an_agent_does() {
    let project = one("roles: {tester: {check: 'test -e fixed', check_is: in_front}}")
        .says("fix", format!("touch fixed; echo '{}'", result(&json!({"status": "fixed", "summary": "s"}))));
    project.works(0);
    assert_eq!(project.asked(), around(&["implement one", "fix one", "test one", "verify_step one"]));
    assert!(
        project.told(6).contains("\"testsRun\":3"),
        "the supervisor hears of the agent: {}",
        project.told(6)
    );
}

/// The line by which the host ends a call with this answer.
fn result(answer: &Value) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "structured_output": answer})
}

#[test]
fn prompts_can_be_replaced() {
    let project = one("prompts: {implement: prompts/do.md}")
        .file(".loops/prompts/do.md", "Do ${board.task} for ${context.goal}.\n");
    project.works(0);
    assert_eq!(project.told(3), "Do one for reach it.");
    let project = one("prompts: {implement: prompts/do.md}").file("prompts/do.md", "Do it from here.");
    project.works(0);
    assert_eq!(project.told(3), "Do it from here.");
    let project = one("prompts: {implement: prompts/none.md}");
    project.run(&["validate", "main"]).code(2).says("the file of `implement` cannot be read");
    let project = one("prompts: {implement: p.md}").file(".loops/p.md", "Do ${bord.task}.");
    project.run(&["validate", "main"]).code(2).says("p.md:1:4");
    let project = one("prompts: {implement: p.md}").file(".loops/p.md", "Do ${board.taks}.");
    project.run(&["validate", "main"]).code(2).says("p.md:1:4").says("did you mean `board.task`?");
}

#[test]
fn what_children_are_told_says_who_they_are() {
    let project = one("roles: {tester: {check: 'env | grep ^LL_AGENT_ | sort >> told; true'}}");
    project.works(0);
    assert_eq!(
        project.read("told"),
        "LL_AGENT_PHASE=test\nLL_AGENT_ROLE=tester\nLL_AGENT_TASK=one\nLL_AGENT_PHASE=verify_goal\nLL_AGENT_ROLE=tester\n"
    );
}

#[test]
fn the_facts_come_from_the_working_tree() {
    let project = one("").says(
        "implement",
        format!(
            "echo new > added; echo more >> kept; echo '{}'",
            result(&json!({"status": "complete", "summary": "s"}))
        ),
    );
    project.write("kept", "as it was\n");
    project.write(".gitignore", "calls/\nbin/\nscript/\n");
    crate::common::git(&project, &["init", "-q"]);
    crate::common::git(&project, &["add", "-A"]);
    crate::common::git(&project, &["commit", "-qm", "start"]);
    project.write("stray", "not known to git\n");
    let before = crate::common::git(&project, &["count-objects"]);
    project.works(0);
    for call in [5, 6] {
        let told = project.told(call);
        assert!(told.contains("kept  | 1 +") && told.contains("added | 1 +"), "{told}");
        assert!(!told.contains("stray"), "what was there before is not work: {told}");
    }
    assert_eq!(crate::common::git(&project, &["count-objects"]), before, "the repository is left alone");
}

/// A repository with work in it that was not committed, and a script for one call.
fn watched(call: &str, script: &str, answer: &str) -> Project {
    let implements = format!(
        "echo new > added; echo more >> kept; rm gone; echo '{}'",
        result(&json!({"status": "complete", "summary": "s"}))
    );
    let project = one(
        "limits: {retry_base_delay: 1ms, call_retries: 1, attempts_before_replan: 1, max_replan_depth: 0}",
    )
    .says("implement", implements)
    .says(
        &format!("{call}.1"),
        format!("{script}\necho '{}'", result(&serde_json::from_str(answer).unwrap())),
    );
    for (path, text) in
        [("kept", "as it was\n"), ("gone", "x\n"), ("sub/deep", "deep\n"), ("link", "a file\n")]
    {
        project.write(path, text);
    }
    project.write(".gitignore", "calls/\nbin/\nscript/\nignored/\n");
    crate::common::git(&project, &["init", "-q", "-b", "main"]);
    crate::common::git(&project, &["add", "-A"]);
    crate::common::git(&project, &["commit", "-qm", "start"]);
    project.write("stray", "not known to git\n");
    project
}

/// What is in the tree, what is staged, and where it stands.
fn everything(project: &Project) -> String {
    let git = |arguments: &[&str]| crate::common::git(project, arguments);
    let head = git(&["log", "--format=%H %s"]) + &git(&["symbolic-ref", "HEAD"]);
    let files = git(&["ls-files", "-co", "--exclude-standard"]);
    let shown = |path: &str| format!("{path}: {:?}\n", fs::read_to_string(project.at(path)).ok());
    let files: String = files.lines().filter(|path| !path.starts_with(".loops/")).map(shown).collect();
    format!("{head}\n{}\n{files}", git(&["diff", "--cached"]))
}

#[test]
fn what_an_onlooker_changes_is_put_back_and_its_call_fails() {
    let undisturbed = watched("verify_step", "true", &scored(90));
    undisturbed.works(0);
    let commit = "git add -A && git -c user.name=t -c user.email=t@example.org commit -qm mine";
    for (script, why) in [
        ("echo mine >> kept", "the supervisor changed `kept`, which was put back"),
        ("echo mine > added", "the supervisor changed `added`"),
        ("rm stray added", "the supervisor changed `added`, `stray`"),
        ("echo mine > own; mkdir -p a/b; echo mine > a/b/c", "the supervisor changed `a/b/c`, `own`"),
        ("rm -r sub; echo file > sub", "the supervisor changed `sub`, `sub/deep`"),
        ("rm link; ln -s kept link", "the supervisor changed `link`"),
        ("chmod +x kept; printf 'a\\0b' > stray", "the supervisor changed `kept`, `stray`"),
        (commit, "the supervisor made commits, which were taken back"),
        ("git checkout -q -b other", "the supervisor made commits"),
        ("git checkout -q --detach; echo mine > own", "the supervisor made commits and changed `own`"),
        (
            "rm -r sub; ln -s /tmp sub; printf x > ./-f; printf x > \":(top)y\"; mkdir \"a\nb\"; echo x > \"a\nb/c\"; printf x > kept",
            "the supervisor changed `-f`, `:(top)y`",
        ),
        ("git stash -q -u", "the supervisor changed `added`, `gone`, `kept`, `stray`"),
    ] {
        let project = watched("verify_step", script, &scored(90));
        let ran = project.works(0);
        let asked = ["implement one", "test one", "verify_step one", "verify_step one"];
        assert_eq!(project.asked(), around(&asked), "{script}");
        assert!(ran.stdout.contains(why) || ran.stderr.contains(why), "{script}: {}", ran.stdout);
        let (is, was) = (everything(&project), everything(&undisturbed));
        // The first line has the id of the commit, which is another one in each repository.
        assert!(is.lines().skip(1).eq(was.lines().skip(1)), "{script}: {is}\n{was}");
        assert_eq!(crate::common::git(&project, &["rev-list", "--count", "HEAD"]), "1", "{script}");
        let is_said = project
            .events()
            .into_iter()
            .any(|event| event["event"] == "action_complete" && event.to_string().contains(why));
        assert!(is_said, "{script}");
    }
}

#[test]
fn outside_of_what_the_run_claims_others_may_work() {
    let commit = "echo theirs > theirs; git add theirs; git -c user.name=t -c user.email=t@example.org commit -qm theirs";
    let project = watched("verify_step", &format!("{commit}; echo mine > sub/deep"), &scored(90));
    let text = project.read(".loops/main.yaml");
    project.write(".loops/main.yaml", &format!("{text}scope: [sub]\n"));
    drop(project.works(0).says("the supervisor changed `sub/deep`, which was put back"));
    assert_eq!(crate::common::git(&project, &["log", "-1", "--format=%s"]), "theirs");
    assert_eq!(
        (project.read("theirs"), project.read("sub/deep")),
        ("theirs\n".to_owned(), "deep\n".to_owned())
    );
}

#[test]
fn what_does_not_matter_may_change_while_somebody_looks() {
    for script in ["mkdir ignored; echo x > ignored/x", "git add -A", "touch kept", "git status > /dev/null"]
    {
        let project = watched("verify_step", script, &scored(90));
        let ran = project.works(0);
        assert_eq!(project.asked().len(), ONE.len(), "{script}: {}", ran.stdout);
        assert_eq!(crate::common::git(&project, &["diff", "--cached"]), "", "{script}");
    }
}

#[test]
fn new_files_of_a_tester_are_removed_and_its_answer_counts() {
    let project = watched("test", "echo report > report.xml; mkdir -p out; echo x > out/x", &tested(0));
    let ran = project.works(0);
    assert_eq!(project.asked(), ONE);
    assert!(!project.exists("report.xml") && !project.exists("out") && project.exists("added"));
    drop(ran.says("the tester left `out/x`, `report.xml`, removed again"));
    let project = watched("test", "echo report > report.xml; echo mine >> added", &tested(0));
    let ran = project.works(0);
    let asked = ["implement one", "test one", "test one", "verify_step one"];
    assert_eq!(project.asked(), around(&asked), "{}", ran.stdout);
    assert_eq!(project.read("added"), "new\n");
    assert!(!project.exists("report.xml"));
}

#[test]
fn what_a_command_that_tests_changes_is_said_and_stays() {
    let project = one("roles: {tester: {check: 'echo x > left'}}");
    project.write(".gitignore", "calls/\nbin/\nscript/\n");
    crate::common::git(&project, &["init", "-q"]);
    drop(project.works(0).says("the test changed `left`"));
    assert_eq!(project.read("left"), "x\n");
}

#[test]
fn facts_are_known_without_a_commit_and_answers_are_no_work() {
    let writes =
        format!("echo new > added; echo '{}'", result(&json!({"status": "complete", "summary": "s"})));
    let project = one("").says("implement", writes).file(".gitignore", "calls/\nbin/\nscript/\n");
    crate::common::git(&project, &["init", "-q"]);
    project.run(&["run", "main", "--no-ci", "--yes", "--record", "answers"]).code(0);
    let told = project.told(5);
    assert!(told.contains("added | 1 +") && !told.contains("answers/"), "{told}");
    fs::remove_file(project.at("added")).unwrap();
    fs::remove_dir_all(project.at("calls")).unwrap();
    project.run(&["run", "main", "--no-ci", "--replay", "answers"]).code(0);
    assert!(project.asked().is_empty() && project.exists("added"));
}

/// Rule 10: killed in each phase, a run goes on, and what is completed is never done again.
#[test]
fn a_killed_run_goes_on() {
    let tasks: &[(&str, &[i64])] = &[("one", &[]), ("two", &[])];
    let first = ["implement one", "test one", "verify_step one"];
    let second = ["implement two", "test two", "verify_step two"];
    let all = |calls: &[&[&str]]| -> Vec<String> {
        calls.iter().flat_map(|calls| calls.iter().map(|call| (*call).to_owned())).collect()
    };
    let plan = &["plan"][..];
    let planned = &["plan", "verify_plan"][..];
    let goal = &["verify_goal"][..];
    for (killed, expected) in [
        ("plan.1", all(&[plan, planned, &first, &second, goal])),
        ("verify_plan.1", all(&[planned, &["verify_plan"], &first, &second, goal])),
        ("implement@two.1", all(&[planned, &first, &["implement two"], &second, goal])),
        ("test@two.1", all(&[planned, &first, &["implement two", "test two"], &second, goal])),
        ("verify_step@two.1", all(&[planned, &first, &second, &second, goal])),
        ("verify_goal.1", all(&[planned, &first, &second, goal, goal])),
    ] {
        let project = agents("").plans(tasks).says(killed, "kill -9 $PPID; sleep 0.2; exit 1");
        let ran = project.run(&["run", "main", "--no-ci", "--yes"]);
        assert_eq!(ran.code, None, "{killed}: {}", ran.all());
        project.resumes(0);
        assert_eq!(project.asked(), expected, "{killed}");
        assert_eq!(project.tasks(), ["1 completed", "2 completed"]);
    }
}

/// Also between the calls, and in the commands that look at the working tree.
#[test]
fn a_run_that_is_killed_at_a_write_goes_on() {
    let step = if thorough() { 1 } else { 9 };
    for point in (4..14).chain((14..200).step_by(step)) {
        let project = one("");
        let mut command = project.command(&["run", "main", "--no-ci", "--yes"]);
        if command.env("LL_FAULT", point.to_string()).output().unwrap().status.code().is_some() {
            assert!(point > 60, "{point}");
            return;
        }
        let resumed = project.run(&["resume", "main", "--no-ci", "--yes"]);
        if resumed.stderr.contains("before its first step") || resumed.stderr.contains("has ended") {
            continue;
        }
        assert_eq!(resumed.code, Some(0), "killed at {point}: {}", resumed.all());
        assert_eq!(project.tasks(), ["1 completed"], "killed at {point}");
    }
}

#[test]
fn a_run_that_is_killed_in_a_fix_or_a_split_begins_the_task_anew() {
    let kill = "kill -9 $PPID; sleep 0.2; exit 1";
    let project = one("").says("test.1", tested(1)).says("fix.1", kill);
    assert_eq!(project.run(&["run", "main", "--no-ci", "--yes"]).code, None);
    project.resumes(0).says("task 1 begins anew: it was in_progress");
    assert_eq!(project.asked()[2..5], ["implement one", "test one", "fix one"]);
    assert_eq!(project.asked()[5..], ONE[2..]);
    assert!(project.told(6).contains("attempt 1 of 3"), "{}", project.told(6));

    let project = one("limits: {attempts_before_replan: 1, retry_base_delay: 0}")
        .says("verify_step@one.1", scored(0))
        .says("replan.1", kill);
    assert_eq!(project.run(&["run", "main", "--no-ci", "--yes"]).code, None);
    project.resumes(0);
    assert_eq!(project.asked()[6..], ONE[2..]);
    assert_eq!(project.tasks(), ["1 completed"]);
}

#[test]
fn a_killed_revision_is_done_again_with_its_feedback() {
    let project =
        one("").says("verify_plan.1", scored(55)).says("plan.2", "kill -9 $PPID; sleep 0.2; exit 1");
    assert_eq!(project.run(&["run", "main", "--no-ci", "--yes"]).code, None);
    project.resumes(0);
    assert_eq!(project.asked()[..5], ["plan", "verify_plan", "plan", "plan", "verify_plan"]);
    assert!(project.told(4).contains("Reminder: about 55"), "{}", project.told(4));
}

#[test]
fn an_interrupted_run_is_saved_and_goes_on() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let project = one("").says("implement.1", format!("kill -{signal} $PPID; sleep 30"));
        let ran = project.run(&["run", "main", "--no-ci", "--yes"]);
        assert_eq!(ran.code, Some(code), "{}", ran.all());
        assert_eq!(project.execution(), "paused");
        project.resumes(0);
        assert_eq!(
            project.asked(),
            around(&["implement one", "implement one", "test one", "verify_step one"])
        );
    }
}

#[test]
fn without_agents_the_run_is_handed_off_before_the_first_call() {
    for keys in ["limits: {call_retries: 0}", "review: {plan: false}", ""] {
        let project = one(keys);
        project.run(&["run", "main", "--no-ci", "--no-llm"]).code(75).says("`plan` needs an agent");
        assert!(project.asked().is_empty());
    }
    let project = one("");
    project.run(&["run", "main", "--no-ci", "--no-llm"]).code(75);
    assert_eq!(
        (project.end()["outcome"].clone(), project.execution()),
        (json!("handoff"), "paused".to_owned())
    );
    project.run(&["resume", "main", "--no-ci", "--llm", "--yes"]).code(0);
    assert_eq!(project.asked(), ONE);
}

#[test]
fn recorded_answers_need_no_agent() {
    let project = one("").says("test.1", tested(1));
    project.run(&["run", "main", "--no-ci", "--yes", "--record", "answers"]).code(0);
    let asked = project.asked();
    fs::remove_dir_all(project.at("calls")).unwrap();
    fs::remove_dir_all(project.at(".loops/.history")).unwrap();
    project.run(&["run", "main", "--no-ci", "--replay", "answers"]).code(0);
    assert!(project.asked().is_empty());
    assert_eq!(project.tasks(), ["1 completed"]);
    assert_eq!(asked, around(&["implement one", "test one", "fix one", "test one", "verify_step one"]));
}

#[test]
fn a_budget_holds_over_all_calls() {
    let project = one("budget: {llm_calls: 4}");
    project.works(6);
    assert_eq!(project.asked(), ONE[..4]);
    assert_eq!(
        (project.end()["outcome"].clone(), project.execution()),
        (json!("over_budget"), "paused".to_owned())
    );
}

#[test]
fn a_loop_may_have_another_shell() {
    let project = one("shell: [python3, -c]\nroles: {tester: {check: 'print(1 + 1)'}}");
    project.works(0);
    assert!(project.told(4).contains("What the tests said:\n2"), "{}", project.told(4));
}

#[test]
fn the_compiled_loop_runs_and_can_be_edited() {
    let project = one("roles: {coder: {model: big}}");
    let compiled = project.run(&["compile", "main"]).code(0).stdout;
    assert!(!compiled.contains("paradigm:"), "{compiled}");
    project.write(".loops/main.yaml", &compiled);
    project.run(&["validate", "main"]).code(0);
    project.works(0);
    assert_eq!(project.asked(), ONE);
    let project = one("").file(
        ".loops/main.yaml",
        &compiled
            .replace("on_task: mark", "on_task: hello")
            .replace("states:\n", "states:\n  hello: {action: touch hello, next: mark}\n"),
    );
    project.works(0);
    assert!(project.exists("hello"));
}

#[test]
fn a_state_of_the_file_is_laid_over_one_of_the_form() {
    let project = one("states: {implement: {timeout: 1m, env: {EXTRA: '1'}}}").says(
        "implement",
        format!("echo $EXTRA > extra; echo '{}'", result(&json!({"status": "complete", "summary": "s"}))),
    );
    project.works(0);
    assert_eq!(project.read("extra"), "1\n");
}

#[test]
fn a_dry_run_says_how_many_calls_there_can_be() {
    let limits = "limits: {max_plan_revisions: 2, max_fix_cycles: 1, attempts_before_replan: 2, max_replan_depth: 1, call_retries: 0}";
    let project = one(limits);
    project.run(&["run", "main", "--dry-run"]).code(0).says("at most 2760 calls of agents");
    assert!(project.asked().is_empty());
    let with_check =
        format!("{limits}\nroles: {{tester: {{check: 'true'}}}}\nreview: {{plan: false, steps: false}}");
    // A plan; 15 tasks and 75 parts, twice, with an implementation and a fix; 15 splits; the goal; each up to three times.
    one(&with_check)
        .run(&["run", "main", "--dry-run"])
        .code(0)
        .says(&format!("at most {} calls", 3 * (1 + 90 * 2 * 2 + 15 + 1)));
}

#[test]
fn a_loop_that_makes_no_sense_is_refused() {
    for (keys, why) in [
        ("review: {approve: 40}", "are not thresholds"),
        ("review: {approve: 140}", "`approve` must be a number from 0 to 100"),
        ("limits: {abort_failed_ratio: 2}", "`abort_failed_ratio` must be a number from 0 to 1"),
        ("limits: {attempts_before_replan: 0}", "must be a whole number from 1"),
        ("roles: {codr: {}}", "unknown key `codr`"),
        ("roles: {coder: {session: forever}}", "cannot be `forever`"),
        ("prompts: {think: x.md}", "unknown key `think`"),
    ] {
        agents(keys).run(&["validate", "main"]).code(2).says(why);
    }
    one("").run(&["run", "main", "--no-ci", "--yes", ""]).code(2).says("goal");
    let project = Project::with_loop("paradigm: agents\nname: main\ngoal: ''\n");
    project.run(&["validate", "main"]).code(2).says("needs at least one word");
}

#[test]
fn the_journal_alone_has_the_board() {
    let project = agents("")
        .plans(&[("one", &[]), ("two", &[])])
        .says("implement@two.1", "kill -9 $PPID; sleep 0.2; exit 1");
    assert_eq!(project.run(&["run", "main", "--no-ci", "--yes"]).code, None);
    for state in project.run_files(".state.json") {
        fs::remove_file(state).unwrap();
    }
    project.resumes(0);
    let done = project.asked().iter().filter(|call| *call == "implement one").count();
    assert_eq!(done, 1);
    let journal = &project.run_files(".events.jsonl")[0];
    assert!(events(journal).iter().any(|event| event["event"] == "board"));
}
