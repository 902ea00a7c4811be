//! `ll-loop validate`: findings with places, and an exit code that means something.

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project};

#[test]
fn a_good_file_is_good() {
    let ran = Project::with_loop(CHECK_FIX).run(&["validate", "main"]).code(0);
    assert_eq!(ran.stdout, "✓ .loops/main.yaml\n");
}

#[test]
fn warnings_fail_only_when_asked() {
    let text = "\
name: main
description: d
initial: a
states:
  a: {action: echo x, capture: out, next: b}
  b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
  island: {next: done}
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    let ran = project.run(&["validate", "main"]).code(0);
    assert_snapshot!(ran.stdout, @r#"
    warning[unhandled-verdict]: `b` has no route for the verdict `no`
     --> .loops/main.yaml:6:3
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |   ^
      |
      = help: add `on_no`, or `_` in `route` for any other; without it the run ends with an error

    warning[template-injection]: `${captured.out.output}` is pasted into a shell command unquoted
     --> .loops/main.yaml:6:21
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |                     ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write `${captured.out.output:shell}`, or read "$LL_CAPTURED_OUT" in the command

    warning[impossible-verdict]: `b` never gives the verdict `progress` (exit_code)
     --> .loops/main.yaml:6:60
      |
    6 |   b: {action: 'echo ${captured.out.output}', on_yes: done, on_progress: done}
      |                                                            ^^^^^^^^^^^
      |
      = help: it can give `yes` or `no`, and `error` or `timeout` when the action fails

    warning[unreachable]: the state `island` is never reached
     --> .loops/main.yaml:7:3
      |
    7 |   island: {next: done}
      |   ^^^^^^
      |
      = help: route to it from another state, or remove it

    ✓ .loops/main.yaml: 4 warnings
    "#);
    project.run(&["validate", "main", "--strict"]).code(2);
}

#[test]
fn all_loops_are_validated_when_none_is_named() {
    let project = Project::with_loop(CHECK_FIX)
        .file(".loops/bad.yaml", "name: bad\ninitial: a\nstates: {a: {next: b}}\n");
    let ran = project.run(&["validate"]).code(2);
    assert!(
        ran.stdout.contains("✓ .loops/main.yaml") && ran.stdout.contains("✗ .loops/bad.yaml"),
        "{}",
        ran.stdout
    );
}

#[test]
fn findings_are_data_when_asked() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: x, on_sucess: b}\n  b: {terminal: true}\n",
    );
    let ran = project.run(&["validate", "main", "--format", "json"]).code(2);
    let findings: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let unknown = findings.iter().find(|finding| finding["code"] == "unknown-key").unwrap();
    assert_eq!((&unknown["line"], &unknown["column"]), (&4.into(), &18.into()), "{unknown}");
    assert_eq!(unknown["severity"], "error");
}

const BAD: &str = "\
name: bad
description: d
initial: a
states:
  a: {action: 'echo ${captured.a:shell}', on_sucess: b, on_no: b, route: {yes: b, success: b}}
  b: {terminal: true}
";

const DOUBTFUL: &str = "\
name: doubtful
description: d
initial: check
states:
  check: {action: make, on_yes: done, on_no: fix}
  fix: {action: make fix, next: done}
  done: {terminal: true}
";

#[test]
fn every_bad_end_is_shown_with_the_way_there_when_asked() {
    let project = Project::with_loop(DOUBTFUL);
    assert_eq!(project.run(&["validate", "main"]).code(0).stdout, "✓ .loops/main.yaml\n");
    let ran = project.run(&["validate", "main", "--deep"]).code(0);
    assert_snapshot!(ran.stdout, @"
    note[dead-end]: an error in `check` ends the run: check
     --> .loops/main.yaml:5:3
      |
    5 |   check: {action: make, on_yes: done, on_no: fix}
      |   ^^^^^
      |
      = help: that is an outcome of its own (exit 4); add `on_error` if there is more to do

    warning[unverified-path]: a run can end in `done` with nothing verified: check (no) → fix → done
     --> .loops/main.yaml:7:3
      |
    7 |   done: {terminal: true}
      |   ^^^^
      |
      = help: under `--strict` that is a failure; judge once more before the end, or write `outcome: success`

    ✓ .loops/main.yaml: 1 warning
    ");
    project.run(&["validate", "main", "--deep", "--strict"]).code(2);
}

#[test]
fn code_scanning_gets_sarif() {
    let project = Project::with_loop(BAD).file(".loops/doubtful file.yaml", DOUBTFUL);
    let ran = project
        .run(&["validate", "main", ".loops/doubtful file.yaml", "--deep", "--format", "sarif"])
        .code(2);
    let log: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!((&driver["name"], &driver["version"]), (&"ll-loop".into(), &env!("CARGO_PKG_VERSION").into()));
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let rules = driver["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 4, "{results:#?}");
    for rule in rules {
        assert!(rule["help"]["text"].as_str().unwrap().contains("Fix: "), "{rule}");
        assert!(!rule["shortDescription"]["text"].as_str().unwrap().is_empty(), "{rule}");
    }
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let place = &result["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!([".loops/main.yaml", ".loops/doubtful%20file.yaml"].contains(&uri), "{uri}");
        let region = |key: &str| place["region"][key].as_u64().unwrap();
        assert!(region("startLine") >= 1 && region("startColumn") >= 1, "{place}");
        let (start, end) =
            ((region("startLine"), region("startColumn")), (region("endLine"), region("endColumn")));
        assert!(start <= end, "{place}");
    }
    let duplicate = results.iter().find(|result| result["ruleId"] == "duplicate-route").unwrap();
    assert!(duplicate["relatedLocations"][0]["message"]["text"].is_string(), "{duplicate}");
}

#[test]
fn what_cannot_be_read_is_in_every_format() {
    let project = Project::with_loop(CHECK_FIX);
    let sarif = project.run(&["validate", "main", "nothing", "--format", "sarif"]).code(2);
    let log: serde_json::Value = serde_json::from_str(&sarif.stdout).unwrap();
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let text = invocation["toolConfigurationNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(text.contains("`nothing`"), "{text}");
    let github = project.run(&["validate", "main", "nothing", "--format", "github"]).code(2);
    assert!(github.stdout.starts_with("::error title=unreadable::"), "{}", github.stdout);
}

#[test]
fn pull_requests_get_annotations() {
    let text = BAD.replace("description: d", "description: d, 100%");
    let ran = Project::with_loop(&text).run(&["validate", "main", "--format", "github"]).code(2);
    assert_snapshot!(ran.stdout, @"
    ::error file=.loops/main.yaml,line=5,col=43,title=unknown-key::unknown key `on_sucess`%0Ahelp: did you mean `on_success`?
    ::error file=.loops/main.yaml,line=5,col=83,title=duplicate-route::two routes for the verdict `yes`%0Ahelp: `success`, `pass` and `met` mean `yes`; `failure`, `fail` and `unmet` mean `no`; keep one
    ");
    let warned = Project::with_loop(&DOUBTFUL.replace("fix: {action: make fix,", "'a,b:\\n::c%': {"))
        .run(&["validate", "main", "--format", "github"]);
    assert!(warned.stdout.lines().all(|line| line.starts_with("::")), "{}", warned.stdout);
}

#[test]
fn a_code_is_explained() {
    let project = Project::new();
    let ran = project.run(&["explain", "unknown-key"]).code(0);
    assert!(ran.stdout.starts_with("unknown-key\n\nError. "), "{}", ran.stdout);
    project.run(&["explain", "unknown-keys"]).code(2).says("did you mean `unknown-key`?");
    project.run(&["explain", "zzz"]).code(2).says("`ll-loop explain` lists every code");
    let list = project.run(&["explain"]).code(0).stdout;
    assert!(list.lines().count() > 30 && list.lines().all(|line| line.contains("  ")), "{list}");
}

#[test]
fn a_command_that_fails_unseen_is_found_where_it_stands() {
    let text = "\
name: main
description: d
initial: a
states:
  a:
    action: |
      echo lint
      make lint
      make test | tee log
    on_yes: b
    on_no: failed
  b: {action: 'make docs || true', next: c, on_error: failed}
  c: {action: make pack; make sign, next: d}
  d: {action: make pack; make sign, shell: [bash, -euo, pipefail, -c], on_yes: e, on_no: failed}
  e: {action: make list; make count, evaluate: {type: output_numeric, target: 3}, on_yes: done, on_no: failed}
  done: {terminal: true, action: rm -r x; true}
  failed: {terminal: true, description: it failed}
";
    let project = Project::with_loop(text);
    let ran = project.run(&["validate", "main", "--format", "json"]).code(0);
    let found: Vec<_> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|finding| finding["code"] == "masked-failure")
        .map(|finding| (finding["line"].clone(), finding["column"].clone(), finding["severity"].clone()))
        .collect();
    assert_eq!(
        found,
        [(8.into(), 7.into(), "warning".into()), (12.into(), 16.into(), "warning".into())],
        "{}",
        ran.stdout
    );
    drop(project.run(&["validate", "main", "--strict"]).code(2));
    drop(project.run(&["explain", "masked-failure"]).code(0).says("fails unseen"));
}

#[test]
fn a_parent_leaves_to_its_children_what_they_bring() {
    let states = "states:\n  check: {action: make, on_yes: done}\n  done: {terminal: true}\n";
    let project = Project::new()
        .file(".loops/base.yaml", &format!("name: base\n{states}"))
        .file(".loops/child.yaml", "from: base.yaml\nname: child\ninitial: check\n");
    project.run(&["validate"]).code(0);
    // By itself it is not a loop, and nobody takes over another one that lacks the key.
    project.run(&["validate", "base"]).code(2).says("`initial` is missing");
    project.write(".loops/alone.yaml", &format!("name: alone\n{states}"));
    project.run(&["validate"]).code(2).says("alone.yaml");
}
