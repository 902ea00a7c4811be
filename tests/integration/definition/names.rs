//! Loops by their names: short command lines, directories of loops, and names that must not lead anywhere else.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::common::{CHECK_FIX, Project, Ran, events, git};
use crate::fake_host;

/// A loop that writes down who it is.
fn marks(what: &str) -> String {
    format!(
        "name: kid\ndescription: d\ninitial: s\nstates:\n  s: {{action: 'echo {what} >> order', on_yes: done, on_no: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, description: d}}\n"
    )
}

fn calls(name: &str) -> String {
    format!(
        "name: main\ndescription: d\ninitial: a\nstates:\n  a: {{loop: '{name}', on_yes: done, on_no: failed, on_error: oops}}\n  done: {{terminal: true}}\n  failed: {{terminal: true, description: d}}\n  oops: {{terminal: true, outcome: blocked, description: d}}\n"
    )
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_word_run_may_be_left_out() {
    let project = Project::with_loop(CHECK_FIX).file(".loops/dir/kid.yaml", &marks("kid"));
    project.run(&["main"]).code(0);
    project.run(&["--color", "never", "main", "--max-iterations", "3", "--quiet"]).code(0);
    project.run(&["r", "main"]).code(0);
    project.run(&["dir/kid"]).code(0);
    project.run(&[".loops/dir/kid.yaml"]).code(0);
    assert_eq!(project.read("order"), "kid\nkid\n");
    assert_eq!(project.run(&["h", "main"]).code(0).stdout.lines().count(), 3);
    for alias in [&["val", "main"][..], &["s", "main"], &["l"], &["st"]] {
        project.run(alias).code(0);
    }
    project.run(&["res", "main"]).code(2).says("has ended");
    project.run(&["vlidate", "--deep"]).code(2).says("did you mean the command `validate`?");
    project.run(&["mian"]).code(2).says("`mian` is neither a command nor a loop").says("the loop `main`?");
    project.run(&["../kid"]).code(2).says("there is no file `../kid`");
}

#[test]
fn in_ci_a_loop_that_is_not_there_is_reported_and_a_mistyped_command_is_not() {
    let project = Project::with_loop(CHECK_FIX).in_github_job();
    project.run(&["mian", "--report-dir", "reports"]).code(2).says("::error");
    assert!(project.read("out").contains("\ninvalid\n"), "{}", project.read("out"));
    assert!(project.exists("reports"));
    let project = Project::with_loop(CHECK_FIX).in_github_job();
    project.run(&["vlidate"]).code(2);
    assert_eq!(project.read("out"), "");
}

#[test]
fn a_loop_with_the_name_of_a_command_is_run_by_its_full_command_line() {
    let project = Project::new().file(".loops/list.yaml", &marks("list")).file(".loops/s.yaml", &marks("s"));
    for (name, file) in [("list", ".loops/list.yaml"), ("s", ".loops/s.yaml")] {
        project.run(&["run", name]).code(0);
        let ran = project.run(&["validate", name, "--strict"]).code(2).says("shadowed-by-command");
        ran.says(file).says(&format!("run it with `ll-loop run {name}`"));
    }
    assert_eq!(project.read("order"), "list\ns\n");
    project.run(&["validate", "list"]).code(0);
}

#[test]
fn two_loops_of_one_name_share_nothing() {
    let project = Project::new()
        .file(".loops/a/kid.yaml", &marks("a"))
        .file(".loops/b/kid.yml", &marks("b"))
        .file(".loops/a__kid.yaml", &marks("plain"));
    project.run(&["run", "a/kid"]).code(0);
    let events = project.events();
    assert_eq!(events[0]["loop"], "a/kid");
    project.run(&["history", "a/kid"]).code(0).says("a__kid-").says("success");
    for other in ["b/kid", "a__kid"] {
        project.run(&["history", other]).code(2).says(&format!("no run of `{other}`"));
    }
    project.run(&["history", "kid"]).code(2).says("did you mean `a/kid`?");
    project.run(&["run", "a__kid"]).code(0);
    project.run(&["run", "b/kid"]).code(0);
    for name in ["a/kid", "b/kid", "a__kid", ".loops/a/kid.yaml"] {
        assert_eq!(project.run(&["history", name]).code(0).stdout.lines().count(), 1, "{name}");
        project.run(&["status", name]).code(0).says("completed");
        project.run(&["logs", name]).code(0);
        project.run(&["stop", name]).code(1);
    }
    let kept = fs::read_dir(project.at(".loops/.history")).unwrap().map(|entry| entry.unwrap().file_name());
    let is_of_loop = |name: &std::ffi::OsString| !name.to_string_lossy().starts_with('.');
    assert_eq!(kept.filter(is_of_loop).count(), 3);
    let listed = lines(&project.run(&["list", "--json"]).code(0));
    let names: Vec<_> = listed.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a/kid", "a__kid", "b/kid"]);
    let row = json!({
        "name": "a/kid", "path": ".loops/a/kid.yaml", "description": "d", "category": null, "labels": [],
        "visibility": "public", "last_outcome": "success", "running": false,
    });
    assert_eq!(listed[0], row);
}

#[test]
fn reports_and_bundles_of_a_loop_in_a_directory_have_plain_file_names() {
    let project = Project::new().file(".loops/web/tidy.yaml", &marks("tidy")).in_github_job();
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "x"]);
    project.run(&["web/tidy", "--report-dir", "reports", "--on-change", "report", "--no-strict"]).code(0);
    for entry in fs::read_dir(project.at("reports")).unwrap() {
        assert!(!entry.unwrap().path().is_dir());
    }
    let junit = project.read("reports/junit.xml");
    assert!(
        junit.contains("name=\"web/tidy\"") && junit.contains("file=\".loops/web/tidy.yaml\""),
        "{junit}"
    );
    let result: Value = serde_json::from_str(&project.read("reports/result.json")).unwrap();
    assert_eq!(result["loop"], "web/tidy");
    assert!(project.read("summary").contains("web/tidy"));
    let bundles = fs::read_dir(project.at("reports")).unwrap().map(|entry| entry.unwrap().file_name());
    let bundles: Vec<_> =
        bundles.map(|name| name.into_string().unwrap()).filter(|name| name.contains(".llz")).collect();
    assert!(bundles.iter().all(|name| name.starts_with("web__tidy-")), "{bundles:?}");
    let state = project.run_files(".state.json").remove(0);
    assert!(state.file_name().unwrap().to_string_lossy().starts_with("web__tidy-"), "{}", state.display());
}

#[test]
fn a_run_of_a_loop_in_a_directory_is_bundled_and_goes_on_elsewhere() {
    let text = "name: x\ndescription: d\ninitial: a\nstates:\n  a: {action: 'echo one >> order', next: b}\n  b: {action: 'test -e go || { echo \"CONTEXT_HANDOFF: later\"; exit 0; }', next: done}\n  done: {terminal: true}\n";
    let project = Project::new().file(".loops/web/tidy.yaml", text).file(".gitignore", "order\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "x"]);
    project.run(&["run", "web/tidy"]).code(75);
    project.run(&["bundle", "web/tidy", "--output", "run.llz"]).code(0);
    fs::remove_dir_all(project.at(".loops/.running")).unwrap();
    project.write("go", "");
    project.run(&["resume", "web/tidy", "--from", "run.llz"]).code(0);
    assert_eq!(project.read("order"), "one\n");
    project.run(&["history", "web/tidy"]).code(0).says("completed");
}

#[test]
fn a_sub_loop_is_found_by_its_path_or_beside_its_caller_and_told_apart_in_the_journal() {
    let project = Project::with_loop(&calls("web/main"))
        .file(".loops/web/main.yaml", &calls("near"))
        .file(".loops/web/near.yaml", &marks("near"));
    project.run(&["validate", "--strict"]).code(0);
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("order"), "near\n");
    let journal = events(&project.run_files(".events.jsonl")[0]);
    let begun = journal.iter().filter(|event| event["event"] == "loop_start");
    let begun: Vec<_> = begun.map(|event| event["loop"].as_str().unwrap()).collect();
    assert_eq!(begun, ["main", "web/main", "web/near"]);
    // A loop of this name in `.loops` is found first.
    project.write(".loops/near.yaml", &marks("far"));
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("order"), "near\nfar\n");
}

#[test]
fn a_sub_loop_that_is_broken_is_a_warning_and_one_that_is_missing_an_error() {
    let broken =
        Project::with_loop(&calls("kid")).file(".loops/kid.yaml", "name: kid\ninitial: gone\nstates: {}\n");
    broken.run(&["validate", "main"]).code(0).says("warning[sub-loop]").says("gives the verdict `error`");
    broken.run(&["run", "main"]).code(5);
    assert_eq!(broken.end()["final_state"], "oops");
    let missing = Project::with_loop(&calls("kit")).file(".loops/kid.yaml", &marks("kid"));
    for command in ["validate", "run"] {
        missing.run(&[command, "main"]).code(2).says("error[sub-loop]").says("did you mean `kid`?");
    }
}

#[test]
fn chains_and_rings_of_loops_are_walked_once() {
    // Each runs the next one twice: as many ways as there are, each loop is looked at once.
    let twice = |next: &str| {
        format!(
            "name: x\ndescription: d\ninitial: a\nstates:\n  a: {{loop: {next}, on_yes: b, on_no: done}}\n  b: {{loop: {next}, on_yes: done, on_no: done}}\n  done: {{terminal: true}}\n"
        )
    };
    let project = Project::new().file(".loops/l40.yaml", CHECK_FIX);
    for number in 0..40 {
        project.write(&format!(".loops/l{number}.yaml"), &twice(&format!("l{}", number + 1)));
    }
    project.run(&["validate"]).code(0).says("41 files, none with errors");
    let ring = Project::with_loop(
        &calls("b").replace("on_no: failed", "on_no: a").replace("on_yes: done", "on_yes: a"),
    )
    .file(
        ".loops/b.yaml",
        &calls("main").replace("on_no: failed", "on_no: a").replace("on_yes: done", "on_yes: a"),
    );
    ring.run(&["validate", "main"]).says("main → b → main");
}

#[test]
fn no_name_leads_out_of_the_directory_of_loops() {
    for name in ["../kid", "x/../../kid", "../../kid", "sub/", "sub//kid", "/kid"] {
        let project = Project::with_loop(&calls(name))
            .file("kid.yaml", &marks("kid"))
            .file(".loops/sub/kid.yaml", &marks("kid"));
        project.run(&["run", "main"]).code(2);
        project.run(&["run", name]).code(2);
        project.run(&[name]).code(2);
        project.write(".loops/from.yaml", &format!("name: from\nfrom: '{name}'\n"));
        project.run(&["run", "from"]).code(2);
        assert!(!project.exists("order"), "{name}");
    }
    let project = Project::new().file("kid.yaml", &marks("kid"));
    project.write(".loops/from.yaml", "name: from\nfrom: ../kid\n");
    project.run(&["run", "from"]).code(2).says("a name never leads out of `.loops`");
    project.write(".loops/from.yaml", "name: from\ndescription: d\nfrom: ../kid.yaml\n");
    project.run(&["run", "from"]).code(0);
}

#[test]
fn links_and_other_files_are_no_loops() {
    let project = Project::with_loop(CHECK_FIX)
        .file(".loops/lib/common.yaml", "fragments: {f: {action: make}}\n")
        .file(".loops/data.yml", "colours: [red]\n")
        .file(".loops/tests/t.yaml", "[")
        .file(".loops/vendor/o/v.yaml", "[")
        .file(".loops/runs/r.yaml", "[")
        .file("outside/broken.yaml", "[");
    symlink("../outside", project.at(".loops/out")).unwrap();
    symlink(".", project.at(".loops/around")).unwrap();
    assert_eq!(project.run(&["validate"]).code(0).stdout.lines().last(), Some("2 files, none with errors"));
    assert_eq!(project.run(&["list"]).code(0).stdout.lines().count(), 1);
    project.run(&["validate", ".loops/data.yml"]).code(2);
    project.run(&["validate", "lib"]).code(0).says(".loops/lib/common.yaml");
    project.write(".loops/other/x.yaml", "colours: [red]\n");
    project.run(&["validate", "other"]).code(2).says("no loops here");
    project.write(".loops/typo.yaml", "name: typo\nstats: {}\n");
    project.run(&["validate"]).code(2).says(".loops/typo.yaml");
}

#[test]
fn names_that_are_too_much_alike_are_a_warning() {
    let project = Project::new()
        .file(".loops/Tidy.yaml", &marks("a"))
        .file(".loops/tidy.yaml", &marks("b"))
        .file(".loops/tidy.yml", &marks("c"));
    let ran = project.run(&["validate"]).code(0);
    ran.says("the loops `Tidy` and `tidy` differ only in upper and lower case")
        .says("this file is not found by its name, which is that of `tidy.yaml`");
    project.run(&["run", "TIDY"]).code(2).says("did you mean `Tidy`?");
    project.run(&["run", ".loops/tidy.yml"]).code(0);
    project.run(&["history", "tidy"]).code(2);
    let odd = Project::new().file(".loops/a{b}.yaml", &marks("a"));
    odd.run(&["validate"])
        .code(2)
        .says("there is no loop named `.loops/a{b}.yaml`")
        .says("cannot contain '{'");
    odd.run(&["list"]).code(0).says("cannot contain '{'");
}

#[test]
fn many_files_end_with_one_line_and_only_errors_are_shown_when_asked() {
    let project = Project::with_loop(CHECK_FIX)
        .file(
            ".loops/web/bad.yaml",
            "name: bad\ndescription: d\ninitial: a\nstates: {a: {action: x, next: b}}\n",
        )
        .file(".loops/web/warned.yaml", &CHECK_FIX.replace("description: fixes a flag\n", ""));
    let closing = "3 files, 1 with errors, 1 warning";
    assert_eq!(project.run(&["validate"]).code(2).stdout.lines().last(), Some(closing));
    let ran = project.run(&["validate", "--errors-only"]).code(2);
    assert!(!ran.stdout.contains("warning[") && !ran.stdout.contains('✓'), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().last(), Some(closing));
    for directory in ["web", ".loops/web", ".loops/web/"] {
        let ran = project.run(&["validate", directory]).code(2);
        assert_eq!(ran.stdout.lines().last(), Some("2 files, 1 with errors, 1 warning"), "{directory}");
    }
    let all = project.run(&["validate", "web", ".", "main"]).code(2);
    assert_eq!(all.stdout.lines().last(), Some(closing));
    project.run(&["validate", "--errors-only", "--strict"]).code(2).says("cannot be used with");
    fs::create_dir(project.at("empty")).unwrap();
    project.run(&["validate", "empty"]).code(2).says("no loops in the directory `empty`");
    project.run(&["validate", "main", "gone"]).code(2).says("2 files, 1 with errors");
}

#[test]
fn each_loop_is_an_object_with_its_violations() {
    let project = Project::with_loop(CHECK_FIX).file(
        ".loops/web/bad.yaml",
        "name: x\ninitial: a\nstates:\n  a: {action: x, on_yes: gone, on_no: b}\n  b: {terminal: true}\n",
    );
    let ran = project.run(&["validate", "--json", "main", "web/bad", "missing"]).code(2);
    let objects = lines(&ran);
    let good = json!({"loop": "main", "file": ".loops/main.yaml", "valid": true, "violations": []});
    assert_eq!(objects[0], good);
    assert_eq!((&objects[1]["loop"], &objects[1]["valid"]), (&"web/bad".into(), &false.into()));
    let violations = objects[1]["violations"].as_array().unwrap();
    let gone = violations.iter().find(|found| found["severity"] == "error").unwrap();
    assert_eq!(
        (&gone["path"], &gone["code"]),
        (&"states.a.on_yes".into(), &"unknown-state".into()),
        "{gone}"
    );
    assert_eq!((&gone["line"], &gone["column"]), (&4.into(), &26.into()));
    assert_eq!((&objects[2]["loop"], &objects[2]["valid"]), (&"missing".into(), &false.into()));
    assert_eq!(objects[2]["violations"][0]["path"], "");
    let strict = lines(&project.run(&["validate", "-j", "--strict", "web/bad"]).code(2));
    assert_eq!(strict[0]["valid"], false);
    project.run(&["validate", "--json", "--format", "sarif"]).code(2);
}

#[test]
fn what_validate_refuses_run_refuses_and_nothing_else() {
    let broken = [
        "stall: {window: 0}",
        "timeout: soon",
        "max_iterations: 0",
        "on_error: gone",
        "from: gone",
        "import: [gone.yaml]",
        "parameters: {p: {type: colour}}",
        "nonsense: 1",
        "labels: x",
        "shell: zsh",
        "signals: [stop]",
        "category: x",
        "description: x",
        "on_handoff: spawn",
        "max_steps: 3",
    ];
    for line in broken {
        let project =
            Project::with_loop(&format!("{line}\n{}", CHECK_FIX.replace("description: fixes a flag\n", "")));
        let validated = project.run(&["validate", "main"]).code;
        let ran = project.run(&["run", "main", "--dry-run"]).code;
        assert_eq!(validated, ran, "{line}");
    }
}

#[test]
fn the_command_line_chooses_models_for_what_names_none() {
    let text = "name: main\ndescription: d\ninitial: a\nllm: {model: of-file}\nstates:\n  a: {action: fix it, action_type: prompt, next: b}\n  b: {action: fix it, action_type: prompt, model: own, next: done}\n  done: {terminal: true}\n";
    let answer = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done", "session_id": "s"});
    let project = fake_host::project(&["claude"], text, &[fake_host::prints(&[answer])]);
    project.run(&["run", "main", "--llm", "--yes", "--model", "small", "--no-strict"]).code(0);
    assert!(project.read("calls/1.argv").contains("--model\nsmall\n"), "{}", project.read("calls/1.argv"));
    assert!(project.read("calls/2.argv").contains("--model\nown\n"), "{}", project.read("calls/2.argv"));
    assert_eq!(project.state()["overrides"]["model"], "small");
}

#[test]
fn the_command_line_chooses_the_model_that_judges_also_in_loops_below() {
    let kid = "name: kid\ndescription: d\ninitial: a\nllm: {model: of-file}\nstates:\n  a: {action: 'echo x', evaluate: {type: llm_structured, prompt: good?}, on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    let answer = json!({"type": "result", "subtype": "success", "is_error": false, "session_id": "s",
        "structured_output": {"verdict": "yes", "confidence": 0.9, "reason": "r"}, "result": ""});
    for (arguments, model) in [(&["--llm-model", "judge"][..], "judge"), (&[], "of-file")] {
        let project = fake_host::project(
            &["claude"],
            &calls("kid"),
            &[fake_host::prints(std::slice::from_ref(&answer))],
        );
        project.write(".loops/kid.yaml", kid);
        project.run(&[&["run", "main", "--llm", "--yes"], arguments].concat()).code(0);
        let argv = project.read("calls/1.argv");
        assert!(argv.contains(&format!("--model\n{model}\n")), "{argv}");
    }
}
