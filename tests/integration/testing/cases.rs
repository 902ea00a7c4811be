//! `ll-loop test`: cases, bounds, snapshots, mutants, walks and old runs.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Project, Ran, git, wait_for};
use crate::fake_host::{self, prints};

/// A loop whose actions would be seen if they ran.
const LOOP: &str = "\
name: tidy
initial: check
max_iterations: 4
states:
  check: { action: touch ran; make check, timeout: 1m, on_yes: done, on_no: fix, on_error: broken }
  fix: { action: touch ran; make fix, next: check }
  done: { terminal: true }
  broken: { terminal: true, outcome: failure }
";

const CASES: &str = "\
loop: tidy
cases:
  - name: nothing to do
    mocks: { check: { exit: 0 } }
    expect: { outcome: success, verified: true, path: [check, done], commands: { check: touch ran; make check } }
  - name: it is mended
    mocks:
      check: [{ exit: 1 }, { exit: 0 }]
      fix: { exit: 0, writes: { notes.md: fine } }
    expect: { outcome: success, path: [check, fix, check, done], changed: [notes.md] }
  - name: it goes round
    mocks: { check: { exit: 1 }, fix: { exit: 0 } }
    expect: { terminated_by: max_iterations, iterations: 4 }
  - name: the check takes too long
    mocks: { check: { timed_out: true } }
    expect: { path: [check, broken] }
";

fn project(cases: &str) -> Project {
    Project::new().file(".loops/tidy.yaml", LOOP).file(".loops/tests/tidy.test.yaml", cases)
}

fn only(case: &str) -> String {
    format!("loop: tidy\ncases:\n  - {case}\n")
}

fn json(project: &Project, arguments: &[&str], code: i32) -> Value {
    let all: Vec<&str> = ["test", "--format", "json"].iter().chain(arguments).copied().collect();
    serde_json::from_str(&project.run(&all).code(code).stdout).unwrap()
}

#[test]
fn cases_pass_and_nothing_is_run() {
    let project = project(CASES);
    let ran = project.run(&["test", "--min-edges", "100"]).code(0);
    assert_eq!(ran.stdout, "✓ tidy: 4 cases, 4 of 4 ways taken\n");
    assert!(!project.exists("ran") && !project.exists("notes.md") && !project.exists(".loops/.history"));
    for name in ["tidy", ".loops/tests", ".loops/tests/tidy.test.yaml", ".loops/tidy.yaml"] {
        project.run(&["test", name]).code(0).says("4 cases");
    }
    project.run(&["test", "--case", "it *"]).code(0).says("2 cases");
    project.run(&["validate"]).code(0);
    project.run(&["validate", ".loops/tests/tidy.test.yaml"]).code(0);
}

#[test]
fn what_is_not_as_expected_is_shown_beside_it() {
    let project = project(&only(
        "{name: wrong, mocks: {check: [{exit: 1}, {exit: 0}], fix: {exit: 0}}, expect: {path: [check, done], verified: false}}",
    ));
    let ran = project.run(&["test"]).code(1);
    for text in ["✗ tidy / wrong", "expected  found", "fix", "verified: expected false"] {
        assert!(ran.stdout.contains(text), "{text} in\n{}", ran.stdout);
    }
    project.run(&["test", "--junit", "out/junit.xml"]).code(1);
    assert!(project.read("out/junit.xml").contains("tidy / wrong"));
    let annotated = project.run(&["test", "--format", "github"]).code(1).stdout;
    assert!(annotated.contains("::error file=.loops/tests/tidy.test.yaml,line=3"), "{annotated}");
}

#[test]
fn what_has_no_mock_is_not_run_but_fails() {
    for mocks in ["{}", "{check: [{exit: 1}], fix: {exit: 0}}"] {
        let project = project(&only(&format!("{{name: gap, mocks: {mocks}}}")));
        project.run(&["test"]).code(1).says("touch ran; make check");
        assert!(!project.exists("ran"));
    }
}

#[test]
fn a_file_that_is_wrong_is_drawn_and_the_others_are_played() {
    for (case, code) in [
        ("{name: x, mocks: {check: {verdict: maybe}}}", "mock"),
        ("{name: x, mocks: {chekc: {exit: 0}}}", "mock"),
        ("{name: x, mocks: {check: {exit: 0, timed_out: true}}}", "mock"),
        ("{name: x, given: {now: soon}, mocks: {}}", "test-start"),
        ("{name: x, given: {state: nowhere}, mocks: {}}", "mock"),
        ("{name: x, expect: {never: [nowhere]}}", "test-case"),
    ] {
        let project = project(CASES).file(".loops/tests/bad.test.yaml", &only(case));
        let ran = project.run(&["test"]).code(2);
        assert!(ran.stdout.contains(&format!("[{code}]")), "{case}\n{}", ran.stdout);
        assert!(ran.stdout.contains("✓ tidy: 4 cases"), "{}", ran.stdout);
        project.run(&["validate"]).code(2).says(code);
    }
    // The cases beside the one that is wrong are played, and nobody says otherwise.
    let beside = only("{name: x, mocks: {chekc: {exit: 0}}}")
        + "  - {name: red, mocks: {check: {exit: 0}}, expect: {outcome: failure}}\n";
    let ran = project(&beside).run(&["test"]).code(2);
    assert!(ran.stdout.contains("✗ tidy / red (.loops/tests/tidy.test.yaml:4)"), "{}", ran.stdout);
    let last = "✗ .loops/tests/tidy.test.yaml: 1 case played, 1 failed; what is wrong in it was not tested\n";
    assert!(ran.stdout.ends_with(last), "{}", ran.stdout);
    let wrong = project(&only("{name: x, mocks: {chekc: {exit: 0}}}")).run(&["test"]).code(2);
    assert!(wrong.stdout.ends_with("nothing of it was tested\n"), "{}", wrong.stdout);
    let none = Project::new().file(".loops/tidy.yaml", LOOP);
    none.run(&["test"]).code(2);
    none.run(&["test", "tidy"]).code(2);
    project(CASES).run(&["test", "--case", "nothing like this"]).code(2);
}

#[test]
fn ways_that_no_case_takes_are_shown_bounded_and_generated() {
    let project = project(&only("{name: good, mocks: {check: {exit: 0}}, expect: {path: [check, done]}}"));
    project.run(&["test", "--coverage"]).code(0).says("no test takes the way");
    project.run(&["test", "--min-edges", "100"]).code(1);
    project.run(&["test", "--generate", "--ci", "tidy"]).code(2);
    project.run(&["test", "--generate", "tidy"]).code(0);
    assert!(project.read(".loops/tests/tidy.test.yaml").contains("# generated"));
    project.run(&["test", "--min-edges", "100"]).code(0).says("nobody has looked at it yet");
    let lcov = project.run(&["test", "--format", "lcov"]).code(0).stdout;
    assert!(lcov.contains("SF:.loops/tidy.yaml") && lcov.contains("DA:"), "{lcov}");
}

#[test]
fn mutants_that_no_case_notices_are_shown() {
    let killed = |report: &Value| report["files"][0]["mutants"]["killed"].as_u64().unwrap();
    let good = json(&project(CASES), &["--mutate", "--min-killed", "80"], 0);
    assert!(killed(&good) > 5, "{good}");
    let weak = project(&only("{name: weak, mocks: {check: {exit: 0}}}"));
    assert!(killed(&json(&weak, &["--mutate"], 0)) < 3);
    weak.run(&["test", "--mutate", "--min-killed", "90"]).code(1).says("no test notices it");
}

#[test]
fn texts_are_kept_beside_the_tests_and_never_written_in_ci() {
    let case = "{name: text, mocks: {check: {exit: 0}}, expect: {commands: {check: {snapshot: true}}}}";
    let project = project(&only(case));
    project.run(&["test", "--ci"]).code(1);
    assert!(!project.exists(".loops/tests/tidy.snapshots"));
    project.run(&["test", "--update"]).code(0);
    assert!(project.read(".loops/tests/tidy.snapshots").contains("touch ran; make check"));
    project.write(".loops/tidy.yaml", &LOOP.replace("make check", "make all"));
    project.run(&["test"]).code(1).says("make all");
}

#[test]
fn what_always_holds_is_proven_and_walked() {
    let with = |sentence: &str| project(&format!("{CASES}always: [{sentence}]\n"));
    with("enter done implies verified").run(&["test", "--fuzz", "500", "--seed", "7"]).code(0);
    let project = with("never broken");
    let ran = project.run(&["test", "--case", "nothing to do"]).code(1);
    assert!(ran.stdout.contains("never broken") && ran.stdout.contains("mocks:"), "{}", ran.stdout);
}

#[test]
fn a_run_that_is_killed_again_is_resumed_again() {
    let mocks = "{check: [{killed: true, resume: true}, {killed: true, resume: true}, {exit: 0}]}";
    let case = format!(
        "{{name: killed, mocks: {mocks}, expect: {{outcome: success, path: [check, check, check, done]}}}}"
    );
    project(&only(&case)).run(&["test"]).code(0);
}

#[test]
fn walks_are_given_what_a_loop_needs() {
    let text = "name: tidy\ninitial: show\nparameters: { times: { type: integer, required: true } }\ncontext: { home: \
                \"${env.HOME}\", from: \"${env.HERE:-here}\" }\nstates:\n  show: { action: \"echo ${context.times} \
                ${context.home:shell} ${context.from:shell}\", on_yes: done }\n  done: { terminal: true }\n";
    let cases = only("{name: shows, given: {params: {times: 1}, env: {HOME: /}}, mocks: {show: {exit: 0}}}");
    let project = Project::new().file(".loops/tidy.yaml", text).file(".loops/tests/tidy.test.yaml", &cases);
    let ran = project.run(&["test", "--fuzz", "20"]).code(0);
    assert!(ran.stdout.contains("20 walks"), "{}", ran.stdout);
}

#[test]
fn walks_do_not_resume_for_ever_what_has_spent_its_budget() {
    let text = "name: tidy\ninitial: fix\nbudget: { llm_calls: 2 }\nstates:\n  fix: { action_type: prompt, action: mend it, \
                next: check }\n  check: { action: make check, on_yes: done, on_no: fix }\n  done: { terminal: true }\n";
    let cases =
        only("{name: spent, mocks: {fix: {says: done}, check: {exit: 1}}, expect: {outcome: over_budget}}");
    let project = Project::new().file(".loops/tidy.yaml", text).file(".loops/tests/tidy.test.yaml", &cases);
    project.run(&["test", "--fuzz", "2000", "--seed", "4"]).code(0).says("2000 walks");
}

/// Returns the case that a run of tests printed, as an item of a list.
fn printed_case(stdout: &str) -> String {
    let lines = stdout.lines().skip_while(|line| !line.trim_start().starts_with("- name:"));
    lines.take_while(|line| line.starts_with("        ")).flat_map(|line| [&line[6..], "\n"]).collect()
}

#[test]
fn what_breaks_a_sentence_can_be_played() {
    let text = LOOP.replace("max_iterations: 4", "max_iterations: 4\non_max_iterations: broken");
    for sentence in ["never broken", "visits fix <= 1", "fix before done"] {
        let always = format!("always: [{sentence}]\n");
        let project = project(&format!("loop: tidy\n{always}")).file(".loops/tidy.yaml", &text);
        let ran = project.run(&["test"]).code(1);
        let case = printed_case(&ran.stdout);
        project.write(".loops/tests/tidy.test.yaml", &format!("loop: tidy\ncases:\n{case}{always}"));
        let ran = project.run(&["test", "--case", "breaks*"]).code(1);
        assert!(ran.stdout.contains(&format!("`{sentence}` does not hold")), "{case}\n{}", ran.stdout);
    }
}

/// A repository whose loop could be run.
fn repository(cases: &str) -> Project {
    let text = LOOP.replace("touch ran; make check", "test -f ok").replace("touch ran; make fix", "touch ok");
    let project = project(cases).file(".loops/tidy.yaml", &text);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "all"]);
    project
}

#[test]
fn a_state_is_run_truly_on_what_the_others_write() {
    let case = "{name: real, mocks: {check: [{exit: 1}, {exit: 0}], fix: {exit: 0, writes: {ok: here}}}, expect: {path: [check, \
                fix, check, done], changed: [ok]}}";
    let project = repository(&only(case));
    project.run(&["test", "--real", "check"]).code(0).says("2 commands ran truly");
    project.run(&["test", "--real", "fix"]).code(0).says("1 command ran truly");
    project.run(&["test", "--real", "done"]).code(2).says("nothing ran truly");
    assert!(!project.exists("ok"));
    // Each case begins on the commit.
    let two = format!("loop: tidy\ncases:\n  - {case}\n  - {}\n", case.replace("name: real", "name: again"));
    project.write(".loops/tests/tidy.test.yaml", &two);
    project.run(&["test", "--real", "check"]).code(0).says("4 commands ran truly");
    let links_out = case.replace("writes: {ok: here}", "writes: {../ok: here}");
    project.write(".loops/tests/tidy.test.yaml", &only(&links_out));
    project.run(&["test", "--real", "check"]).code(2).says("not a path in the repository");
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_large_file_that_a_command_writes_is_written() {
    // More than is kept of it.
    let fix = "yes | head -c 1200000 > ok";
    let case = "{name: real, mocks: {check: [{exit: 1}, {exit: 0}], fix: {exit: 0}}, expect: {path: [check, fix, check, done], \
                changed: [ok]}}";
    let project = repository(&only(case));
    let text = LOOP.replace("touch ran; make check", "test -f ok").replace("touch ran; make fix", fix);
    project.write(".loops/tidy.yaml", &text);
    git(&project, &["commit", "-qam", "large"]);
    project.run(&["test", "--real", "fix"]).code(0).says("1 command ran truly");
}

#[test]
fn only_what_a_change_touches_is_mutated() {
    let project = project(CASES);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "all"]);
    project.run(&["test", "--mutate", "--in-diff", "HEAD", "--min-killed", "100"]).code(0).says("no mutants");
    let total = |arguments: &[&str]| {
        let report = json(&project, arguments, 0);
        let mutants = &report["files"][0]["mutants"];
        mutants["killed"].as_u64().unwrap() + mutants["survived"].as_u64().unwrap()
    };
    let all = total(&["--mutate"]);
    let parts: u64 = ["1/3", "2/3", "3/3"].map(|part| total(&["--mutate", "--shard", part])).iter().sum();
    assert_eq!(parts, all);
    let text = project.read(".loops/tidy.yaml").replace("max_iterations: 4", "max_iterations: 5");
    project.write(".loops/tidy.yaml", &text);
    let changed = total(&["--mutate", "--in-diff", "HEAD", "--case", "[!i]*"]);
    assert!((1..all).contains(&changed), "{changed} of {all}");
    project.write("sub/file", "");
    let mut below = project.command(&["test", "--mutate", "--in-diff", "HEAD", "--case", "[!i]*"]);
    let below = Ran::of(&below.current_dir(project.at("sub")).output().unwrap());
    assert!(!below.stdout.contains("no mutants"), "{}", below.stdout);
    // A loop that git does not know yet is new as a whole.
    project.write(".loops/other.yaml", &LOOP.replace("name: tidy", "name: other"));
    project.write(".loops/tests/other.test.yaml", &CASES.replace("loop: tidy", "loop: other"));
    project.run(&["test", "other", "--mutate", "--in-diff", "HEAD"]).code(0).says("mutants killed");
}

#[test]
fn tests_run_again_when_a_file_changes() {
    let project = project(CASES);
    let (out, err) = (project.at("out.log"), project.at("err.log"));
    let open = |path: &Path| std::fs::File::create(path).unwrap();
    let mut command = project.command(&["test", "--watch"]);
    let mut watching = command.stdout(open(&out)).stderr(open(&err)).spawn().unwrap();
    let says = |file: &str, text: &str| wait_for(|| project.read(file).contains(text));
    says("out.log", "4 cases");
    project.write(".loops/tidy.yaml", &LOOP.replace("make fix", "make it"));
    says("err.log", ".loops/tidy.yaml changed");
    // An editor may replace a file in two steps.
    std::fs::remove_file(project.at(".loops/tests/tidy.test.yaml")).unwrap();
    says("err.log", "no tests any more");
    project.write(".loops/tests/tidy.test.yaml", &only("{name: one, mocks: {check: {exit: 0}}}"));
    says("out.log", "1 case");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn a_case_in_the_middle_can_be_resumed_and_knows_no_past() {
    let case = "{name: middle, given: {state: check, verified: true, counts: {iteration: 3}}, mocks: {check: [{killed: true, \
                resume: true}, {exit: 0}]}, expect: {outcome: success, path: [check, check, done], iterations: 3}}";
    let always = "always: [fix before done, enter check implies verified]\n";
    let project = project(&format!("{}{always}", only(case)));
    let ran = project.run(&["test"]);
    assert!(!ran.stdout.contains("✗ tidy / middle"), "{}", ran.stdout);
}

#[test]
fn the_ends_of_earlier_rounds_are_entered_too() {
    let text = "name: tidy\ninitial: check\nmaintain: true\nstates:\n  check: { action: make check, on_yes: done, \
                on_no: failed }\n  done: { terminal: true }\n  failed: { terminal: true }\n";
    let project = Project::new().file(".loops/tidy.yaml", text);
    for (expected, code) in [
        ("{path: [check, failed, check, done], visits: {failed: 1, done: 1}}", 0),
        ("{never: [failed]}", 1),
        ("{path: [check, check, done]}", 1),
    ] {
        let case =
            format!("{{name: rounds, mocks: {{check: [{{exit: 1}}, {{exit: 0}}]}}, expect: {expected}}}");
        project.write(".loops/tests/tidy.test.yaml", &only(&case));
        project.run(&["test"]).code(code);
    }
}

#[test]
fn the_files_of_a_run_are_no_change() {
    let text = "name: tidy\ninitial: fix\nstates:\n  fix: { action: make fix, next: check }\n  check: { action: make \
                check, on_yes: done }\n  done: { terminal: true }\n";
    let case = "{name: own, mocks: {fix: {writes: {.loops/.running/test.dir/count: \"1\", notes.md: x}}, check: {exit: 0}}, \
                expect: {outcome: success, changed: [notes.md]}}";
    let project = Project::new().file(".loops/tidy.yaml", text);
    project.write(".loops/tests/tidy.test.yaml", &only(case));
    project.run(&["test"]).code(0);
}

#[test]
fn calls_are_counted_for_the_host_that_is_asked() {
    let text = "name: tidy\ninitial: fix\nstates:\n  fix: { action_type: prompt, action: mend it, next: check }\n  check: { \
                action: make check, on_yes: done, on_no: fix }\n  done: { terminal: true }\n";
    let case = |given: &str, calls: &str| {
        let mocks = "mocks: {fix: {says: done}, check: {exit: 0}}";
        only(&format!("{{name: asks, given: {given}, {mocks}, expect: {{calls: {calls}}}}}"))
    };
    let project = Project::new().file(".loops/tidy.yaml", text);
    for (given, calls, code) in [
        ("{}", "{claude: 1, codex: 0, agents: 1}", 0),
        ("{host: codex}", "{claude: 0, codex: 1, agents: 1}", 0),
        ("{host: codex}", "{claude: 1}", 1),
        ("{}", "{clade: 1}", 2),
        ("{host: nobody}", "{agents: 1}", 2),
    ] {
        project.write(".loops/tests/tidy.test.yaml", &case(given, calls));
        project.run(&["test"]).code(code);
    }
}

#[test]
fn what_would_be_delivered_follows_the_rules_of_deliveries() {
    for (writes, deliver, code) in [
        ("{notes.md: fine}", "pr", 0),
        ("{notes.md: fine}", "refused", 1),
        ("{.github/workflows/ci.yml: fine}", "refused", 0),
        ("{.github/workflows/ci.yml: fine}", "pr", 1),
        ("{}", "refused", 0),
    ] {
        let mocks = format!("{{check: [{{exit: 1}}, {{exit: 0}}], fix: {{exit: 0, writes: {writes}}}}}");
        let case = format!("{{name: delivers, mocks: {mocks}, expect: {{deliver: {deliver}}}}}");
        project(&only(&case)).run(&["test"]).code(code);
    }
}

#[test]
fn a_name_without_tests_is_answered_with_what_to_do() {
    let none = Project::new().file(".loops/tidy.yaml", LOOP);
    none.run(&["test", "tidy"]).code(2).says("--generate tidy");
    none.run(&["test", "typos"]).code(2).says("ll-loop add typos");
    none.run(&["test", "nothing"]).code(2).says("no loop");
}

#[test]
fn old_runs_are_played_on_the_loop_as_it_is_now() {
    let text = LOOP.replace("make check", "test -f ok").replace("make fix", "touch ok");
    let project = Project::new().file(".loops/tidy.yaml", &text);
    project.run(&["run", "tidy"]).code(0);
    project.run(&["test", "--replay", "history"]).code(0).says("the same way");
    project.write(".loops/tidy.yaml", &text.replace("on_no: fix", "on_no: broken"));
    project.run(&["test", "--replay", "history"]).code(0).says("parts at step");
    project.write(".loops/tidy.yaml", &text);
    project.run(&["test", "--from", "tidy"]).code(0);
    project.run(&["test"]).code(0).says("1 case");
}

#[test]
fn a_case_of_a_run_has_what_came_of_prompts_in_loops_below() {
    let inner = "name: inner\ninitial: fix\nstates:\n  fix: {action: /fix it, on_yes: test, on_no: bad}
  test: {action: 'true', on_yes: done, on_no: bad}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let outer = "name: main\ninitial: sub\nstates:\n  sub: {loop: inner, on_yes: done, on_no: bad}
  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "did it"});
    let mut judged = result.clone();
    judged["structured_output"] = json!({"verdict": "yes", "confidence": 0.9, "reason": "it says so"});
    let project = fake_host::project(&["claude"], outer, &[prints(&[result]), prints(&[judged])])
        .file(".loops/inner.yaml", inner);
    project.run(&["run", "main", "--no-ci"]).code(0);
    let printed = project.run(&["test", "--from", "main", "--stdout"]).code(0).stdout;
    for part in ["sub/fix:", "says: \"did it\"", "verdict: \"yes\"", "sub/test:", "exit: 0"] {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    project.run(&["test", "--from", "main"]).code(0);
    project.run(&["test"]).code(0).says("1 case");
}

#[test]
fn the_checks_of_loops_below_are_made_again_by_either_name() {
    let inner = "name: inner\ninitial: test\nstates:
  test: {action: make test, check: true, on_yes: done, on_no: bad}
  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let outer = "name: outer\ninitial: sub\nstates:\n  sub: {loop: inner, on_yes: note, on_no: bad}
  note: {action: touch notes.md, next: done}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    for key in ["sub/test", "inner/test"] {
        let case = format!(
            "loop: outer\ncases:\n  - name: again\n    mocks:\n      {key}: {{visits: [{{exit: 0}}], closing_pass: {{exit: 0}}}}
      note: {{exit: 0, writes: {{notes.md: x}}}}\n    expect: {{outcome: success, verified: true}}\n"
        );
        let project = Project::new()
            .file(".loops/inner.yaml", inner)
            .file(".loops/outer.yaml", outer)
            .file(".loops/tests/outer.test.yaml", &case);
        project.run(&["test"]).code(0);
        // The closing pass is what makes it verified.
        project.write(
            ".loops/tests/outer.test.yaml",
            &case.replace("closing_pass: {exit: 0}", "closing_pass: {exit: 1}"),
        );
        project.run(&["test"]).code(1);
    }
}

#[test]
fn a_check_that_is_made_again_in_the_closing_pass_has_its_own_mock_each_time() {
    let text = "name: main\ninitial: test\nstates:
  test: {action: make test, check: true, flaky: {again: 1, always: true}, on_yes: lint, on_no: bad}
  lint: {action: make lint, check: true, on_yes: note, on_no: bad}
  note: {action: touch notes.md, next: done}\n  done: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n";
    let case = "loop: main\ncases:\n  - name: again\n    mocks:
      test: {visits: [{exit: 0}], closing_pass: {exit: 1}}
      lint: {exit: 0}
      note: {exit: 0, writes: {notes.md: x}}
    expect: {outcome: failure}\n";
    let project = Project::with_loop(text).file(".loops/tests/main.test.yaml", case);
    project.run(&["test"]).code(0);
}

#[test]
fn a_case_names_files_of_the_repository_alone() {
    for (case, place) in [
        ("{name: old, given: {files: {../evil: x}}, mocks: {check: {exit: 0}}}", "../evil"),
        ("{name: old, mocks: {check: {exit: 0, writes: {/etc/evil: x}}}}", "/etc/evil"),
        ("{name: old, mocks: {check: {exit: 0, deletes: [.git/config]}}}", ".git/config"),
    ] {
        let project = project(&only(case));
        git(&project, &["init", "-q"]);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "all"]);
        for arguments in
            [&["test"][..], &["test", "--verify-mocks"], &["test", "--real", "check"], &["validate"]]
        {
            let said = format!("`{place}` is not a path in the repository");
            drop(project.run(arguments).code(2).says(&said));
        }
    }
}

#[test]
fn mocks_are_held_against_what_the_commands_do() {
    let text = LOOP.replace("make check", "test -f ok").replace("make fix", "touch ok");
    let project = project(&only("{name: old, mocks: {check: {exit: 0}}}")).file(".loops/tidy.yaml", &text);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "all"]);
    project.run(&["test", "--verify-mocks"]).code(1).says("no longer fit");
    assert!(!project.exists("ran"));
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_action_tests_loops() {
    let project = project(CASES)
        .in_github_job()
        .env("INPUT_COMMAND", "test")
        .env("INPUT_ARGS", "--min-edges 100")
        .env("INPUT_REPORT_DIR", "reports");
    project.run(&["action"]).code(0);
    assert!(project.read("reports/junit.xml").contains("it is mended"));
}

#[test]
fn loops_bring_their_tests() {
    let project = Project::new().file("Makefile", "test:\n\ttrue\n");
    project.run(&["init", "--ci", "none"]).code(0);
    project.run(&["test", "--min-edges", "100"]).code(0);
    project.run(&["add", "typos"]).code(0).says(".loops/tests/typos.test.yaml");
    project.run(&["test", "typos", "--min-edges", "100"]).code(0);
}
