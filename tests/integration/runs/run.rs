//! `ll-loop run`: progress, options and results as a person sees them.

use insta::assert_snapshot;

use crate::common::{CHECK_FIX, Project};

/// Replaces times, which differ from run to run.
fn timeless(text: &str) -> String {
    let text = regex::Regex::new(r"\b\d+(\.\d+)?(ms|s)\b").unwrap().replace_all(text, "TIME");
    regex::Regex::new(r"-\d{8}T\d{6}-[0-9a-f]{6}").unwrap().replace_all(&text, "-ID").into_owned()
}

#[test]
fn progress_reads_like_a_story() {
    let ran = Project::with_loop(CHECK_FIX).run(&["run", "main"]).code(0);
    assert_snapshot!(timeless(&ran.stdout), @r"
    [1/20] check → echo looking; test -f flag
           ✗ no (exit 1, TIME)
           → fix
    [1/20] fix → touch flag
           ✓ exit 0 (TIME)
           → check
    [2/20] check → echo looking; test -f flag
           ✓ yes (exit 0, TIME)
           → done

    Loop completed: done (2 iterations, TIME)
    ");
    assert_eq!(ran.stderr, "");
}

#[test]
fn quiet_and_verbose_say_less_and_more() {
    let quiet = Project::with_loop(CHECK_FIX).run(&["run", "main", "--quiet"]).code(0);
    assert_eq!(timeless(&quiet.stdout).trim(), "Loop completed: done (2 iterations, TIME)");
    let verbose = Project::with_loop(CHECK_FIX).run(&["run", "main", "-v"]).code(0);
    assert!(verbose.stdout.contains("│ looking"), "{}", verbose.stdout);
}

#[test]
fn a_path_behaves_like_a_name() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", ".loops/main.yaml"]).code(0);
    let absolute = project.at(".loops/main.yaml");
    project.run(&["run", absolute.to_str().unwrap()]).code(0);
    assert_eq!(project.run_files(".state.json").len(), 2);
    assert!(
        project
            .run_files(".state.json")
            .iter()
            .all(|path| path.to_string_lossy().contains(".history/main/main-"))
    );
}

#[test]
fn a_name_is_found_from_a_directory_below() {
    let project = Project::with_loop(CHECK_FIX);
    std::fs::create_dir_all(project.at(".git")).unwrap();
    std::fs::create_dir_all(project.at("src/deep")).unwrap();
    let ran = project.command(&["run", "main"]).current_dir(project.at("src/deep")).output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    assert!(project.exists("flag"), "actions run where the loop is at home");
}

#[test]
fn a_dry_run_shows_and_touches_nothing() {
    let project = Project::with_loop(CHECK_FIX);
    let ran = project.run(&["run", "main", "--dry-run", "--max-iterations", "3", "--context", "a=b"]).code(0);
    assert_snapshot!(ran.stdout, @r#"
    would run main (.loops/main.yaml), at most 3 iterations
      context.a = "b"

    ▶ check  echo looking; test -f flag
        ├─ no → fix
        └─ yes → done
      fix  touch flag
        └─ next → check
      done  ■ success

    nothing was run
    "#);
    assert!(!project.exists("flag") && !project.exists(".loops/.running"));
}

#[test]
fn every_outcome_has_its_exit_code() {
    let check = |states: &str, code: i32, outcome: &str| {
        let project =
            Project::with_loop(&format!("name: main\ninitial: a\nmax_iterations: 2\nstates:\n{states}"));
        project.run(&["run", "main"]).code(code);
        let end = project.end();
        assert_eq!(
            (end["outcome"].as_str(), end["exit_code"].as_i64()),
            (Some(outcome), Some(code.into())),
            "{end}"
        );
    };
    let done = "  done: {terminal: true}\n";
    check(&format!("  a: {{action: 'true', on_yes: done}}\n{done}"), 0, "success");
    check("  a: {action: 'true', on_yes: failed}\n  failed: {terminal: true}\n", 1, "failure");
    check(&format!("  a: {{action: 'false', on_yes: done, on_no: a}}\n{done}"), 3, "exhausted");
    check(&format!("  a: {{action: exit 7, on_yes: done}}\n{done}"), 4, "error");
    check("  a: {action: 'true', on_yes: escalate}\n  escalate: {terminal: true}\n", 5, "blocked");
    let project = Project::with_loop(&format!(
        "name: main\ninitial: a\ntimeout: 0.3\nstates:\n  a: {{action: sleep 20, on_yes: done}}\n{done}"
    ));
    project.run(&["run", "main"]).code(124);
    assert_eq!(project.state()["status"], "timed_out");
}

#[test]
fn options_reach_the_run() {
    let text = "\
name: main
initial: a
parameters:
  count: {type: integer, required: true}
  mode: {type: enum, values: [fast, slow], default: fast}
required_inputs: [input]
context: {greeting: 'hello ${context.who}', who: nobody}
states:
  a: {action: \"echo '${context.greeting} ${context.count} ${context.mode} ${context.input}' > out.txt\", next: done}
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    project.run(&["run", "main", "in put", "--param", "count=3", "--context", "who=world"]).code(0);
    assert_eq!(project.read("out.txt"), "hello world 3 fast in put\n");
    let refused = |arguments: &[&str], message: &str| {
        let project = Project::with_loop(text);
        project.run(&[&["run", "main"], arguments].concat()).code(2).says(message);
        assert!(!project.exists("out.txt"));
    };
    refused(
        &["x", "--param", "count=many"],
        "the parameter `count` must be an integer, and `\"many\"` is not",
    );
    refused(&["x", "--param", "count=1", "--param", "mode=odd"], "must be one of fast, slow");
    refused(&["x"], "the input `count` is required");
    refused(&["--param", "count=1"], "the input `input` is required");
    refused(&["x", "--param", "cuont=1"], "unknown parameter `cuont`, did you mean `count`?");
}

#[test]
fn context_values_refer_to_each_other_but_not_in_circles() {
    let text = |context: &str| {
        format!(
            "name: main\ninitial: a\ncontext: {context}\nstates:\n  a: {{action: 'echo ${{context.a}} > out', next: done}}\n  done: {{terminal: true}}\n"
        )
    };
    let project = Project::with_loop(&text("{a: '${context.b}/x', b: '${env.HOME}'}"));
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("out").trim(), format!("{}/x", project.path().display()));
    Project::with_loop(&text("{a: '${context.b}', b: '${context.a}'}"))
        .run(&["run", "main"])
        .code(2)
        .says("refer to each other in a circle: a → b → a");
}

#[test]
fn what_is_given_on_the_command_line_is_data() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'printf %s ${context.x:shell} > out', next: done}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text);
    let hostile = "${env.HOME} $(touch pwned) `id` \"'; rm -rf x";
    project.run(&["run", "main", "--context", &format!("x={hostile}")]).code(0);
    assert_eq!(project.read("out"), hostile);
    assert!(!project.exists("pwned"));
}

#[test]
fn strictness_is_a_choice() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'false', on_yes: done, on_no: done}\n  done: {terminal: true}\n";
    Project::with_loop(text).run(&["run", "main"]).code(0).says("unverified");
    Project::with_loop(text).run(&["run", "main", "--strict"]).code(1);
    Project::with_loop(text).run(&["run", "--ci", "main"]).code(1);
    Project::with_loop(text).run(&["run", "--ci", "main", "--no-strict"]).code(0);
    Project::with_loop(text).env("CI", "true").run(&["run", "main"]).code(1);
    Project::with_loop(text).env("CI", "true").run(&["run", "main", "--no-ci"]).code(0);
}

#[test]
fn colour_is_asked_for_or_not_there() {
    let project = || Project::with_loop(CHECK_FIX);
    let colours = |project: Project, arguments: &[&str]| {
        project.run(&[&["run", "main"], arguments].concat()).stdout.contains('\u{1b}')
    };
    assert!(!colours(project(), &[]));
    assert!(colours(project(), &["--color", "always"]));
    assert!(!colours(project().env("NO_COLOR", "1").env("GITHUB_ACTIONS", "true"), &[]));
    assert!(colours(project().env("FORCE_COLOR", "1"), &[]));
    assert!(!colours(project().env("FORCE_COLOR", "1"), &["--color", "never"]));
}

#[test]
fn a_long_command_runs_from_a_file() {
    let text = "\
name: main
initial: a
states:
  a: {action: \"head -c 300000 /dev/zero | tr '\\\\0' k\", capture: big, next: b}
  b:
    action: |
      cat > out.txt <<'EOF'
      ${captured.big.output}
      EOF
    next: done
  done: {terminal: true}
";
    let project = Project::with_loop(text);
    project.run(&["run", "main"]).code(0);
    assert_eq!(project.read("out.txt").trim_end().len(), 300_000);
}
