//! The files of a run that its own actions clean, stash, commit, cut off or forge.

use std::fs;

use serde_json::Value;

use crate::common::{Project, Ran, git};

/// A repository with a loop whose second action works with git, or against the files of the run.
fn repository(action: &str) -> Project {
    let action = serde_json::to_string(action).unwrap();
    let text = format!(
        "name: main
initial: first
max_iterations: 5
states:
  first: {{action: 'echo one', next: second}}
  second: {{action: {action}, next: third}}
  third: {{action: 'echo three', on_yes: done, on_no: done}}
  done: {{terminal: true}}
"
    );
    let project = Project::with_loop(&text).file("tracked", "one\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "one"]);
    project
}

/// The words with which an action commits where nobody is known.
const GIT: &str = "git -c user.name=a -c user.email=a@example.org";

#[test]
fn what_agents_do_with_git_leaves_a_run_alone() {
    for action in [
        "git clean -fd",
        "git clean -fd .loops",
        "echo x >> tracked; git stash -u",
        "git add -A && git commit -m all --allow-empty",
        "git add -A . ; git reset --hard",
        "git rm -rq --cached .loops/main.yaml; git clean -fd -e main.yaml",
    ] {
        let project = repository(&action.replace("git ", &format!("{GIT} ")));
        let ran = project.run(&["run", "main", "--on-change", "report"]).code(0);
        assert_eq!(project.end()["outcome"], "success", "{action}: {}", ran.all());
        let known = git(&project, &["ls-files", ".loops", ":!.loops/main.yaml", ":!.loops/.gitignore"]);
        assert_eq!(known, "", "{action}");
    }
}

/// Where the journal is while the action works.
const JOURNAL: &str = ".loops/.running/*.events.jsonl";

fn lost(action: &str) -> (Project, Ran) {
    let project = repository(&action.replace("JOURNAL", JOURNAL));
    let ran = project.run(&["run", "main", "--report-dir", "report"]).code(4);
    let result: Value = serde_json::from_str(&project.read("report/result.json")).unwrap();
    assert_eq!(
        (&result["outputs"]["outcome"], &result["terminated_by"]),
        (&"error".into(), &"journal_lost".into()),
        "{action}: {result}"
    );
    assert_eq!(result["outputs"]["verified"], "false", "{action}");
    (project, ran)
}

#[test]
fn a_journal_that_is_taken_away_ends_the_run_and_is_put_back() {
    for action in
        ["git clean -fdx", "rm -rf .loops/.running", "rm JOURNAL", "mv JOURNAL elsewhere", "git stash -a"]
    {
        let (project, ran) = lost(&action.replace("git ", &format!("{GIT} ")));
        let ran = ran.says("the journal was removed while the run worked");
        let _ran = ran.says("keep the actions of the loop away from the files in `.loops/.running`");
        let kinds: Vec<_> =
            project.events().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect();
        assert_eq!(kinds[0], "loop_start", "{action}");
        assert_eq!(kinds.last().unwrap(), "loop_complete", "{action}");
        assert!(project.read("report/junit.xml").contains("first"), "{action}");
    }
}

#[test]
fn what_is_left_of_a_journal_is_reported_and_goes_on() {
    let forged = r#"echo '{"event":"loop_complete","ts":"2026-01-01T00:00:00.000Z","seq":6,"outcome":"success","terminated_by":"terminal","final_state":"done","iterations":1,"steps":1,"duration_ms":1,"verified":true,"exit_code":0,"reason":"forged"}' >> JOURNAL"#;
    let cut = "f=$(echo JOURNAL); test -e again || { touch again; head -c -20 $f > half; cat half > $f; }";
    let emptied = "test -e again || { touch again; : > JOURNAL; }";
    let forged = format!("test -e again || {{ touch again; {forged}; }}");
    for (action, why) in [
        (cut, "the journal was truncated"),
        (emptied, "was truncated"),
        (&forged, "another process wrote into"),
    ] {
        let (project, ran) = lost(action);
        let _ran = ran.says(why);
        assert!(
            !fs::read_to_string(&project.run_files(".events.jsonl")[0]).unwrap().contains("forged\""),
            "{action}"
        );
        let ran = project.run(&["resume", "main"]).code(0);
        assert_eq!(project.end()["final_state"], "done", "{action}: {}", ran.all());
    }
}

#[test]
fn a_claim_outlives_the_cleaning_of_the_working_tree() {
    let inner = format!(
        "{} run other 2> refusal; echo $? > code; rm -rf .loops/.running",
        crate::common::LL_LOOP.as_str()
    );
    let project = repository(&format!("rm -rf .loops/.running; env -u LL_LOOP_PARENT {inner}"));
    project.write(".loops/other.yaml", "name: other\ninitial: a\nstates: {a: {action: 'echo ran > other', on_yes: b}, b: {terminal: true}}\n");
    project.run(&["run", "main"]).code(4);
    assert_eq!(project.read("code").trim(), "73", "{}", project.read("refusal"));
    assert!(!project.exists("other"));
}
