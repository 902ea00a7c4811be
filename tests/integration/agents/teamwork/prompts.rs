//! What agents are sent: what others printed is bounded, whatever it is, and the words of the author are whole.

use super::*;

const KIB: usize = 1024;

/// The most that a prompt is without the words of the author.
const MOST: usize = 96 * KIB;

/// Every prompt of a run, with the name of its call.
fn told(project: &Project) -> Vec<(String, String)> {
    let calls = project.asked().into_iter().enumerate();
    calls.map(|(index, call)| (call, project.told(index + 1))).collect()
}

#[track_caller]
fn bounded(project: &Project) -> Vec<(String, String)> {
    let told = told(project);
    for (call, told) in &told {
        assert!(told.len() <= MOST, "{call} is sent {} bytes", told.len());
    }
    told
}

/// A command that prints so many bytes, and then this line.
fn noise(bytes: usize, last: &str) -> String {
    format!("head -c {bytes} /dev/zero | tr '\\0' x | fold -w 99; echo; echo '{last}'")
}

#[test]
fn a_supervisor_is_sent_the_end_of_four_megabytes_of_test_output() {
    let check = format!("{}; {{ {}; }} >&2", noise(4_000_000, "all is fine"), noise(4_000_000, "a warning"));
    let project = one(&format!("roles: {{tester: {{check: {check:?}}}}}"));
    project.works(0);
    let told = bounded(&project);
    let (_, told) = told.iter().find(|(call, _)| call == "verify_step one").unwrap();
    assert!((2 * 15 * KIB..34 * KIB).contains(&told.len()), "{}", told.len());
    assert_eq!(told.matches("[only the last 16 KiB of 3").count(), 2, "what is left out is said");
    assert!(told.contains("\nall is fine\n") && told.contains("\na warning\n"));
}

#[test]
fn a_coder_is_sent_the_end_of_what_a_failed_test_printed_and_everybody_why_it_failed() {
    let check = format!("[ -e fixed ] && exit; {}; exit 1", noise(300_000, "E   assert 3 == 4"));
    let check = check.replace("; exit 1", "; echo 1 failed in 0.12s; exit 1");
    let project = one(&format!(
        "roles: {{tester: {{check: {check:?}}}}}\nlimits: {{max_fix_cycles: 1, attempts_before_replan: 2, retry_base_delay: 1ms}}"
    ));
    let project = project.says("fix", json!({"status": "fixed", "summary": "tried"}).to_string());
    let ran = project.works(1);
    let told = bounded(&project);
    let of = |wanted: &str| &told.iter().find(|(call, _)| call == wanted).unwrap().1;
    assert!(of("fix one").contains("\nE   assert 3 == 4\n1 failed in 0.12s"), "{}", of("fix one"));
    assert!(of("fix one").contains("[only the last 16 KiB of "));
    let second = &told.iter().filter(|(call, _)| call == "implement one").nth(1).unwrap().1;
    assert!(second.contains("- E   assert 3 == 4\n"), "{second}");
    let report = project.run(&["report", "main", "--format", "junit"]);
    for text in [&ran.stdout, &report.stdout] {
        assert!(text.contains("E   assert 3 == 4"), "{text}");
    }
    drop(ran.says("task 1 failed in attempt 1: E   assert 3 == 4"));
}

/// Answers that are as long as a form allows, from everybody.
#[test]
fn long_answers_make_no_long_prompts() {
    let long = |word: &str| format!("{word} {}", "é blah".repeat(600));
    let tasks: Vec<_> = (0..15)
        .map(|task| {
            let criteria: Vec<_> = (0..30).map(|criterion| long(&format!("criterion {criterion}"))).collect();
            json!({"description": long(&format!("task {task}")), "complexity": "simple", "verificationCriteria": criteria})
        })
        .collect();
    let plan = json!({"tasks": tasks, "risks": [long("risk")], "assumptions": [long("assumption")]});
    let issues: Vec<_> = (0..4).map(|_| long("issue")).collect();
    let rejects =
        json!({"score": 60, "feedback": long("feedback"), "issues": issues, "missingElements": issues});
    let failures = vec![json!({"testName": long("t"), "error": long("e"), "file": long("f")}); 5];
    let fails = json!({"status": "failed", "testsRun": 5, "testsPassed": 0, "testsFailed": 5, "failures": failures,
                       "fixPlan": [long("do"), long("then")]});
    let wrote = json!({"status": "complete", "summary": long("wrote"), "filesModified": vec![long("file"); 9],
                       "testsAdded": vec![long("test"); 9]});
    let limits = "limits: {max_fix_cycles: 2, attempts_before_replan: 2, max_replan_depth: 1, max_goal_iterations: 3, retry_base_delay: 1ms, call_retries: 0}";
    let project = agents(limits)
        .says("plan", plan.to_string())
        .says("verify_plan.1", rejects.to_string())
        .says("implement", wrote.to_string())
        .says("fix", json!({"status": "fixed", "summary": long("mended")}).to_string())
        .says("test", fails.to_string())
        .says("test.5", tested(0))
        .says("verify_step", rejects.to_string());
    drop(project.run(&["run", "main", "--no-ci", "--yes"]));
    let told = bounded(&project);
    for wanted in ["verify_plan", "plan", "implement", "fix", "test", "replan"] {
        assert!(told.iter().any(|(call, _)| call.starts_with(wanted)), "{wanted} in {:?}", project.asked());
    }
    let (_, plan) = &told[1];
    for task in 0..15 {
        assert!(plan.contains(&format!("{}. task {task} é", task + 1)), "{plan}");
    }
}

#[test]
fn the_words_of_the_author_are_whole() {
    let goal = format!("begin {} end", "g".repeat(200_000));
    let project = one(&format!("constraints: [{}]", "c".repeat(60_000)));
    project.write("long.md", &format!("{} ${{captured.tests.output?}}", "p".repeat(150_000)));
    let text = project.read(".loops/main.yaml").replace("goal: reach it", &format!("goal: {goal}"));
    project.write(".loops/main.yaml", &format!("{text}\nprompts: {{verify_step: long.md}}\n"));
    project.works(0);
    let told = told(&project);
    assert!(told[0].1.contains(&goal) && told[0].1.contains(&"c".repeat(60_000)));
    let (_, verify) = told.iter().find(|(call, _)| call == "verify_step one").unwrap();
    assert!(verify.starts_with(&"p".repeat(150_000)) && verify.contains("\"testsRun\":3"));
}

#[test]
fn a_plain_prompt_is_bounded_as_well() {
    let text = "name: main\ndescription: d\ninitial: noise\nstates:\n  noise: {action: 'NOISE', next: ask, capture: noise}\n  \
                ask: {action: 'about ${captured.noise.output} and ${prev.output}', action_type: prompt, context: {more: '${captured.noise}'}, next: done}\n  \
                done: {terminal: true}\n";
    let project = Project::with_loop(&text.replace("'NOISE'", &format!("{:?}", noise(900_000, "the end"))));
    fake_host::program(&project, "bin/claude", HOST);
    let project = fake_host::found(project).says(".1", json!({}).to_string());
    drop(project.run(&["run", "main", "--no-ci", "--yes"]));
    let argv = project.read("calls/1.argv") + &project.told(1);
    assert!(
        argv.contains("about [only the last 16 KiB of ") && argv.contains("\nthe end and [only"),
        "{argv}"
    );
    assert!((40 * KIB..50 * KIB).contains(&argv.len()), "{}", argv.len());
}
