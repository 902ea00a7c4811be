//! Recorded answers are found again elsewhere and at another time, and not when anything else differs.

use super::*;
use crate::common::git;

/// Prints what test runners do: paths, times, addresses and numbers of processes, and after that much more than is
/// shown; fails until it was fixed.
const CHECK: &str = r#"#!/bin/bash
rule=${WIDTH:-=====}
echo "$rule test session starts $rule"
echo "rootdir: $PWD, pid $$, started $(date)"
for n in $(seq "${LINES:-900}"); do echo "$PWD/tests/test_$n.py:3: in f took ${TOOK:-0.1s}"; done
echo "E   assert <C object at 0x$RANDOM> == 4" >&2
if [ -e fixed ]; then echo "$rule 3 passed in $TOOK $rule"; exit; fi
echo "$rule ${FAILED:-1} failed in $TOOK $rule"
exit 1
"#;

/// A repository with a loop in which a test fails twice, a task is split, and its parts are done.
fn repository(took: &str, width: &str) -> Project {
    let limits = "limits: {max_fix_cycles: 1, attempts_before_replan: 2, max_replan_depth: 1, retry_base_delay: 1ms, call_retries: 0}";
    let project = one(&format!("roles: {{tester: {{check: ./check}}}}\n{limits}"))
        .says(
            "implement@part a",
            format!("touch fixed\necho '{}'", result(&json!({"status": "complete", "summary": "s"}))),
        )
        .env("TOOK", took)
        .env("WIDTH", width);
    fake_host::program(&project, "check", CHECK);
    project.write(".gitignore", "calls/\nbin/\nscript/\nanswers/\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "start"]);
    project
}

/// A recorded run.
fn recorded(took: &str) -> Project {
    let project = repository(took, "=====");
    project.run(&["run", "main", "--no-ci", "--yes", "--record", "answers"]).code(0);
    project
}

/// Another clone with the recording, and without an agent.
fn elsewhere(from: &Project, took: &str, width: &str) -> Project {
    let clone = repository(took, width);
    fs::remove_file(clone.at("bin/claude")).unwrap();
    let copied =
        std::process::Command::new("cp").arg("-r").args([from.at("answers"), clone.at("answers")]).status();
    assert!(copied.unwrap().success());
    clone
}

const REPLAY: [&str; 5] = ["run", "main", "--no-ci", "--replay", "answers"];

#[test]
fn a_recording_is_replayed_at_another_place_and_time() {
    let project = recorded("0.12s");
    assert!(project.asked().iter().any(|call| call == "replan one"), "{:?}", project.asked());
    for (took, width) in [("0.12s", "====="), ("165.31s (0:02:45)", "="), ("2 minutes", "====")] {
        let clone = elsewhere(&project, took, width);
        clone.run(&REPLAY).code(0);
        assert!(clone.asked().is_empty());
        assert_eq!(clone.tasks(), project.tasks());
        assert_eq!(clone.tasks(), ["1 completed", "1.1 completed", "1.2 completed"]);
    }
}

#[test]
fn another_result_is_another_call_and_the_difference_is_shown() {
    let project = recorded("0.12s");
    let clone = elsewhere(&project, "7.5s", "=").env("FAILED", "2");
    let ran = clone.run(&["run", "main", "--no-ci", "-v", "--replay", "answers"]);
    assert_eq!(ran.code, Some(69), "{}", ran.all());
    let differences: Vec<_> =
        ran.stdout.lines().filter(|line| line.contains("- recorded") || line.contains("+ asked")).collect();
    assert_eq!(differences.len(), 2, "{differences:?}");
    assert!(
        differences[0].contains("1 failed in <time>") && differences[1].contains("2 failed in <time>"),
        "{differences:?}"
    );
}

#[test]
fn a_recording_of_an_earlier_version_is_read_or_said_to_be_one() {
    let text = "name: main\ndescription: d\ninitial: ask\nstates:\n  ask: {action: do it, action_type: prompt, next: done}\n  \
                done: {terminal: true}\n";
    // The name is a digest of the call, as the version before made it.
    let recording = |prompt: &str| {
        json!({"schema": 1, "tree": "none", "answers": [{"output": "did it", "exit_code": 0, "usage": {"calls": 1, "input_tokens": 0, "output_tokens": 0}}],
               "request": {"kind": "prompt", "prompt": prompt, "agent": null, "tools": [], "model": null}})
    };
    let digest = |content: &Value| {
        use sha2::Digest as _;
        let whole = json!([content["request"], content["tree"]]).to_string();
        let digest = sha2::Sha256::digest(whole.as_bytes());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]).take(24);
        digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect::<String>()
    };
    for (prompt, code) in [("do it", 0), ("do that", 69)] {
        let content = recording(prompt);
        let project = Project::with_loop(text)
            .file(&format!("answers/{}.json", digest(&content)), &content.to_string())
            .env("GIT_CEILING_DIRECTORIES", "/");
        let ran = project.run(&["run", "main", "--no-ci", "-v", "--replay", "answers"]).code(code);
        let is_said = ran.stdout.contains("make the recording anew with `--record`");
        assert_eq!(is_said, code != 0, "{}", ran.all());
    }
}

#[test]
fn directories_and_times_of_the_run_itself_do_not_count_either() {
    let text = "name: main\ndescription: d\ninitial: noise\nstates:\n  \
                noise: {action: 'echo took $TOOK in $PWD and $LL_RUN_DIR', next: ask, capture: noise}\n  \
                ask: {action: 'in ${loop.run_dir} ${context.run_dir} ${loop.run_id} since ${loop.started_at} for ${loop.elapsed}: ${captured.noise.output}', action_type: prompt, next: judge}\n  \
                judge: {action: 'echo took $TOOK; echo all is well', evaluate: {type: llm_structured}, on_yes: done, on_no: failed}\n  \
                failed: {terminal: true, outcome: failure}\n  done: {terminal: true}\n";
    let project = |took: &str| {
        let project = Project::with_loop(text).env("TOOK", took).env("LL_RETRY_WAIT", "20ms");
        fake_host::program(&project, "bin/claude", HOST);
        fake_host::found(project).env("TOOK", took)
    };
    let one = project("0.1s")
        .says(".1", json!({}).to_string())
        .says(".2", json!({"verdict": "yes", "confidence": 0.9, "reason": "it says so"}).to_string());
    one.run(&["run", "main", "--no-ci", "--yes", "--record", "answers"]).code(0);
    assert_eq!(one.asked().len(), 2);
    let other = project("3 minutes");
    fs::remove_file(other.at("bin/claude")).unwrap();
    fs::rename(one.at("answers"), other.at("answers")).unwrap();
    other.run(&["run", "main", "--no-ci", "-v", "--replay", "answers"]).code(0);
    let third = project("3 minutes").file(".loops/main.yaml", &text.replace("all is well", "all is lost"));
    fs::rename(other.at("answers"), third.at("answers")).unwrap();
    third
        .run(&["run", "main", "--no-ci", "-v", "--replay", "answers"])
        .code(69)
        .says("+ asked    prompt: all is lost");
}
