//! Runs that ended and are taken up again: what is kept, and what is asked once more.

use std::fs;

use serde_json::json;

use super::{agents, one, plan, scored, tested};
use crate::common::{Project, git};

/// Makes a project a repository in which nothing but the work is seen.
fn repository(project: Project) -> Project {
    project.write(".gitignore", "calls/\nbin/\nscript/\ntold\nreport/\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "start"]);
    project
}

/// Returns what was asked from the nth call on, from 1.
fn since(project: &Project, call: usize) -> Vec<String> {
    project.asked().split_off(call - 1)
}

fn count(project: &Project) -> usize {
    project.asked().len()
}

#[test]
fn a_run_that_missed_a_service_goes_on_with_the_call_that_nobody_answered() {
    let limits = "limits: {retry_base_delay: 0, attempts_before_replan: 1}";
    for (phase, rest) in [
        ("plan", &["plan", "verify_plan", "implement one"][..]),
        ("verify_plan", &["verify_plan", "implement one"]),
        ("implement", &["implement one", "test one", "fix one"]),
        ("test", &["test one", "verify_step one"]),
        ("fix", &["fix one", "test one", "verify_step one"]),
        ("verify_step", &["verify_step one", "verify_goal"]),
        ("replan", &["replan one", "implement part a"]),
        ("verify_goal", &["verify_goal"]),
    ] {
        let project = repository(one(limits));
        match phase {
            "fix" | "implement" => project.write("script/test.1", &tested(1)),
            "replan" => project.write("script/verify_step.1", &scored(0)),
            _ => {}
        }
        let bad = format!("script/{phase}");
        let good = fs::read_to_string(project.at(&bad)).unwrap();
        project.write(&bad, "exit 1");
        project.works(69);
        let before = count(&project);
        project.write(&bad, &good);
        project.resumes(0);
        assert_eq!(since(&project, before + 1)[..rest.len()], *rest, "{phase}: {:?}", project.asked());
        let attempts = project.state()["board"]["tasks"][0]["attempts"].clone();
        assert_eq!(attempts, 1, "{phase}: a failed call is not an attempt");
    }
}

#[test]
fn a_service_that_stays_dead_costs_three_calls_each_time() {
    let project = one("limits: {retry_base_delay: 0}").says("test", "exit 1");
    project.works(69);
    project.resumes(69);
    assert_eq!(since(&project, 7), ["test one"; 3]);
    project.write("script/test", &tested(0));
    project.resumes(0);
    assert_eq!(since(&project, 10), ["test one", "verify_step one", "verify_goal"]);
}

#[test]
fn a_failed_run_goes_on_with_what_failed_and_keeps_what_is_completed() {
    let limits = "limits: {retry_base_delay: 0, attempts_before_replan: 2, max_replan_depth: 0}";
    let project = agents(limits)
        .plans(&[("one", &[]), ("two", &[]), ("three", &[1])])
        .says("verify_step@two", scored(10));
    project.works(1);
    assert_eq!(project.tasks(), ["1 completed", "2 failed", "3 pending"]);
    let before = count(&project);
    project.write("script/verify_step@two", &scored(90));
    let ran = project.resumes(0);
    assert!(ran.stderr.contains("which did not succeed"), "{}", ran.all());
    let work: Vec<_> = ["two", "three"]
        .iter()
        .flat_map(|task| ["implement", "test", "verify_step"].map(|call| format!("{call} {task}")))
        .chain(["verify_goal".to_owned()])
        .collect();
    assert_eq!(since(&project, before + 1), work);
    assert_eq!(project.tasks(), ["1 completed", "2 completed", "3 completed"]);
    project.resumes(2).says("has ended (success in completed), and nothing is left to do");
}

#[test]
fn an_aborted_run_goes_on() {
    // The supervisor gave up on the task.
    let abort = json!({"score": 10, "feedback": "stop it", "escalationLevel": "abort"}).to_string();
    let project = one("limits: {retry_base_delay: 0}").says("verify_step.1", &abort);
    project.works(1);
    assert_eq!((project.execution(), count(&project)), ("aborted".to_owned(), 5));
    project.resumes(0);
    assert_eq!(since(&project, 6), ["implement one", "test one", "verify_step one", "verify_goal"]);
    // And on the plan: there is another one, with what was said.
    let project =
        one("limits: {retry_base_delay: 0, max_plan_revisions: 1}\nreview: {on_plan_rejected: abort}")
            .says("verify_plan.1", scored(20));
    project.works(1);
    project.resumes(0);
    assert_eq!(since(&project, 3)[..3], ["plan", "verify_plan", "implement one"]);
    assert!(project.told(3).contains("about 20"), "{}", project.told(3));
}

#[test]
fn a_rejected_goal_goes_on_with_a_plan_for_what_is_missing() {
    let rejected = json!({"score": 55, "feedback": "no docs", "issues": ["README is empty"], "missingElements": ["docs"]});
    let project = repository(agents("limits: {retry_base_delay: 0}").plans(&[("one", &[]), ("two", &[0])]))
        .says("verify_goal.1", rejected.to_string())
        .says("plan.2", plan(&[("write docs", &[]), ("print docs", &[0])]))
        .says("verify_plan.2", scored(40))
        .says("plan.3", plan(&[("write docs well", &[])]));
    project.works(1).says("the goal is not reached: Reminder: no docs");
    let before = count(&project);
    project.resumes(0);
    let work = [
        "plan",
        "verify_plan",
        "plan",
        "verify_plan",
        "implement write docs well",
        "test write docs well",
        "verify_step write docs well",
        "verify_goal",
    ];
    assert_eq!(since(&project, before + 1), work);
    for call in [before + 1, before + 3] {
        let told = project.told(call);
        for part in [
            "the goal is not reached:\nReminder: no docs",
            "README is empty",
            "Missing:\n- docs",
            "- 1 one: wrote it\n- 2 two: wrote it",
            "Write only the tasks that are still missing",
        ] {
            assert!(told.contains(part), "{call}: no {part:?} in {told}");
        }
    }
    assert!(project.told(before + 3).contains("about 40"), "{}", project.told(before + 3));
    assert_eq!(project.tasks(), ["1 completed", "2 completed", "3 completed"]);
}

#[test]
fn a_goal_that_somebody_worked_on_is_judged_before_more_is_planned() {
    let project = repository(one("limits: {retry_base_delay: 0}"))
        .says("verify_goal.1", scored(30))
        .says("verify_goal.2", scored(30));
    project.works(1);
    project.write("mended", "by hand\n");
    project.resumes(1);
    assert_eq!(since(&project, 7), ["verify_goal"]);
    project.resumes(0);
    assert_eq!(since(&project, 8)[..2], ["plan", "verify_plan"]);
}

#[test]
fn a_failed_last_test_goes_on_like_a_rejected_goal() {
    let check = "roles: {tester: {check: 'echo tested >> told; [ \"$LL_AGENT_PHASE\" = test ] || test -e docs || { echo docs are missing; exit 3; }'}}";
    let project = repository(one(check)).says("plan.2", plan(&[("docs", &[])])).says(
        "implement@docs",
        format!("touch docs; echo '{}'", super::result(&json!({"status": "complete", "summary": "s"}))),
    );
    project.works(1).says("the goal is not reached: docs are missing");
    assert_eq!(project.asked(), ["plan", "verify_plan", "implement one", "verify_step one"]);
    project.resumes(0);
    assert!(project.told(5).contains("docs are missing"), "{}", project.told(5));
    assert_eq!(
        since(&project, 5),
        ["plan", "verify_plan", "implement docs", "verify_step docs", "verify_goal"]
    );
    // Somebody mended it by hand: the last test comes first, and nothing is planned.
    let project = repository(one(check));
    project.works(1);
    project.write("docs", "by hand\n");
    project.resumes(0);
    assert_eq!(since(&project, 5), ["verify_goal"]);
}

#[test]
fn conversations_are_gone_on_with_on_the_same_machine_and_nowhere_else() {
    let resumed = |project: &Project, call: usize| {
        let argv = project.read(&format!("calls/{call}.argv"));
        argv.lines().skip_while(|word| *word != "--resume").nth(1).map(str::to_owned)
    };
    let project = one("limits: {retry_base_delay: 0, attempts_before_replan: 1, max_replan_depth: 0}")
        .says("verify_step.1", scored(10));
    project.works(1);
    project.resumes(0);
    assert_eq!(project.asked()[5], "implement one");
    assert_eq!(resumed(&project, 6).as_deref(), Some("s3"));
    let elsewhere = one("limits: {retry_base_delay: 0, attempts_before_replan: 1, max_replan_depth: 0}")
        .says("verify_step.1", scored(10));
    elsewhere.works(1);
    let journal = &elsewhere.run_files(".events.jsonl")[0];
    let text = fs::read_to_string(journal).unwrap();
    let place = text.split("\"place\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    fs::write(journal, text.replace(&place, &"0".repeat(64))).unwrap();
    elsewhere.resumes(0);
    assert_eq!((elsewhere.asked()[5].as_str(), resumed(&elsewhere, 6)), ("implement one", None));
}

#[test]
fn a_failed_run_goes_on_from_its_bundle() {
    let project =
        repository(one("limits: {retry_base_delay: 0, attempts_before_replan: 1, max_replan_depth: 0}"))
            .says("verify_step.1", scored(10));
    project.run(&["run", "main", "--no-ci", "--yes", "--report-dir", "report"]).code(1);
    let mut bundle = fs::read_dir(project.at("report")).unwrap().map(|entry| entry.unwrap().path());
    let bundle = bundle.find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap();
    fs::remove_dir_all(project.at(".loops/.history")).unwrap();
    fs::remove_dir_all(project.at(".loops/.running")).unwrap();
    let from = bundle.display().to_string();
    project.run(&["resume", "--from", &from, "--no-ci", "--yes"]).code(0);
    assert_eq!(since(&project, 6), ["implement one", "test one", "verify_step one", "verify_goal"]);
    fs::remove_file(bundle).unwrap();
}
