//! Advice is runnable where it is read: each command that is printed is run as it is printed, and does what it says.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::json;

use crate::common::{Project, Ran, git, path_with_ll_loop, signal};
use crate::fake_host::{self, prints};

/// Hands off until somebody lets it go on, and needs its parameters to succeed.
const LOOP: &str = r#"
name: main
initial: check
parameters:
  token: {type: string, required: true}
  who: {type: string, default: nobody}
states:
  check: {action: 'test -f ok', on_yes: work, on_no: work}
  work:
    action: 'if [ -n "$LET_GO" ]; then touch ok; else echo "CONTEXT_HANDOFF: later"; fi'
    next: last
  last:
    action: |
      test ${context.who:shell} = 'it is me; $(really)' && test -f ok && t=${context.token:shell} && test "${t%-*}" = geheim
    on_yes: done
    on_no: failed
  done: {terminal: true}
  failed: {terminal: true}
"#;

const WHO: &str = "who=it is me; $(really)";

/// Runs a command as somebody does who pastes it into a shell.
pub(crate) fn pasted(project: &Project, directory: &str, command: &str) -> Ran {
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(project.at(directory))
        .env_clear()
        .env("PATH", path_with_ll_loop())
        .env("HOME", project.path())
        .env("LET_GO", "1")
        .env("GITHUB_TOKEN", "ghs_geheim")
        .env("LL_RETRY_WAIT", "1ms")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran::of(&output)
}

/// Returns the commands that a text has in backticks.
fn commands(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|part| part.contains("ll-loop ")).map(str::to_owned).collect()
}

/// Returns the command that goes on.
#[track_caller]
pub(crate) fn advised(text: &str) -> String {
    let found = text.lines().find(|line| line.contains("continue with `"));
    commands(found.unwrap_or_else(|| panic!("no advice in\n{text}"))).remove(0)
}

/// A repository whose loop is in a directory, and a clone of it.
fn cloned() -> Project {
    let project = Project::new();
    project.write("one/tools/my lint/.loops/main.yaml", LOOP);
    let one = ["-C", "one"];
    git(&project, &[&one[..], &["init", "-q"]].concat());
    git(&project, &[&one[..], &["add", "-A"]].concat());
    git(&project, &[&one[..], &["commit", "-q", "-m", "first"]].concat());
    git(&project, &["clone", "-q", "one", "two"]);
    for checkout in ["one", "two"] {
        let _absent = Command::new("git")
            .args(["-C", checkout, "remote", "remove", "origin"])
            .current_dir(project.path())
            .output();
        git(&project, &["-C", checkout, "remote", "add", "origin", "https://github.com/o/r"]);
    }
    project
}

/// Runs the loop in a job until it is handed off.
fn in_job(project: &Project, variables: &[(&str, &str)]) -> Ran {
    let arguments = ["run", "main", "--param", "token=geheim-12345", "--param", WHO];
    in_checkout(project.command(&arguments), project, variables)
}

/// The same through the action, whose next step stores the reports.
fn in_action(project: &Project, variables: &[(&str, &str)]) -> Ran {
    let mut command = project.command(&["action"]);
    command.env("INPUT_LOOP", "main").env("INPUT_PARAMS", format!("token=geheim-12345\n{WHO}"));
    in_checkout(command, project, variables)
}

fn in_checkout(mut command: Command, project: &Project, variables: &[(&str, &str)]) -> Ran {
    command.current_dir(project.at("one/tools/my lint")).env("CI", "true").env("NO_COLOR", "1");
    command.env("MY_TOKEN", "geheim-12345").envs(variables.iter().copied());
    Ran::of(&command.output().unwrap()).code(75)
}

fn bundle(project: &Project) -> std::path::PathBuf {
    let running = fs::read_dir(project.at("one/tools/my lint/.loops/.running")).unwrap();
    let report = running
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "report"));
    let mut files = fs::read_dir(report.unwrap()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap()
}

/// Makes the artifact of the job: its report directory with the bundle in it.
fn artifact(project: &Project) -> std::path::PathBuf {
    use std::io::Write as _;

    let (bundle, zip) = (bundle(project), project.at("artifact.zip"));
    let mut writer = zip::ZipWriter::new(fs::File::create(&zip).unwrap());
    let name = bundle.file_name().unwrap().to_string_lossy().into_owned();
    writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
    writer.write_all(&fs::read(&bundle).unwrap()).unwrap();
    writer.finish().unwrap();
    zip
}

#[test]
fn a_run_of_a_workflow_goes_on_in_a_fresh_clone() {
    let project = cloned();
    let github = crate::ci::reported::Github::silent();
    let workspace = project.at("one").display().to_string();
    let summary = project.at("summary").display().to_string();
    let ran = in_action(
        &project,
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "7"),
            ("GITHUB_JOB", "fix"),
            ("GITHUB_REPOSITORY", "o/r"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_API_URL", &github.address()),
            ("GITHUB_WORKSPACE", &workspace),
            ("GITHUB_STEP_SUMMARY", &summary),
        ],
    );
    crate::bundles::bundle::with_artifact(&github, &artifact(&project), 1);
    assert!(!ran.all().contains("geheim-12345"), "{}", ran.all());
    let command = advised(&ran.stdout);
    let api = github.address();
    let expected = format!(
        "cd 'tools/my lint' && GITHUB_API_URL={api} ll-loop resume --from run:7 --key fix --repo o/r main --strict \
         --context 'token=<secret>'"
    );
    assert_eq!(command, expected);
    // The summary has the same command.
    assert!(project.read("summary").contains(&format!("> {command}\n")), "{}", project.read("summary"));
    let seen = commands(ran.stdout.lines().last().unwrap()).remove(0);
    pasted(&project, "two", &seen).code(0).says("handoff: saved in `work`");
    assert!(project.exists("two/ll-loop-main-fix-r7-a1"), "{seen}");
    // As it is, it would go on with a wrong token: the loop notices, and nothing of it is kept.
    let command = command.replace("<secret>", "geheim-12345");
    pasted(&project, "two", &command).code(0).says("completed: done");
    assert!(project.exists("two/tools/my lint/ok"));
}

/// A step that is not the action and has no artifacts stores nothing that `run:7` could be.
#[test]
fn a_run_that_nobody_stores_is_continued_from_its_bundle() {
    let project = cloned();
    let workspace = project.at("one").display().to_string();
    let job = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_REPOSITORY", "o/r"),
        ("GITHUB_WORKSPACE", &workspace),
    ];
    let command = advised(&in_job(&project, &job).stdout);
    assert!(
        command.starts_with("cd 'tools/my lint' && ll-loop resume --from .loops/.running/main-"),
        "{command}"
    );
}

#[test]
fn a_job_of_another_system_leaves_the_path_of_its_bundle() {
    let project = cloned();
    let workspace = project.at("one").display().to_string();
    let job = [("GITLAB_CI", "true"), ("CI_PIPELINE_ID", "5"), ("CI_PROJECT_DIR", &workspace)];
    let ran = in_job(&project, &job);
    let command = advised(&ran.stdout);
    assert!(
        command.starts_with("cd 'tools/my lint' && ll-loop resume --from .loops/.running/main-"),
        "{command}"
    );
    // Its artifacts are unpacked where they were.
    let report = "tools/my lint/.loops/.running";
    fs::create_dir_all(project.at("two").join(report)).unwrap();
    let copied = Command::new("cp")
        .args(["-R", &format!("one/{report}/."), &format!("two/{report}")])
        .current_dir(project.path())
        .status()
        .unwrap();
    assert!(copied.success());
    for file in fs::read_dir(project.at("two").join(report)).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            fs::remove_file(file).unwrap();
        }
    }
    let seen = commands(ran.stdout.lines().last().unwrap()).remove(0);
    pasted(&project, "two", &seen).code(0).says("handoff: saved in `work`");
    let command = command.replace("<secret>", "geheim-12345");
    pasted(&project, "two", &command).code(0).says("completed: done");
}

#[test]
fn a_run_that_is_begun_again_elsewhere_gets_what_it_got() {
    let project = cloned();
    let summary = project.at("summary").display().to_string();
    let workspace = project.at("one").display().to_string();
    let job =
        [("GITHUB_ACTIONS", "true"), ("GITHUB_STEP_SUMMARY", &summary), ("GITHUB_WORKSPACE", &workspace)];
    in_job(&project, &job);
    let text = project.read("summary");
    let command =
        text.split("### On your machine").nth(1).unwrap().lines().find(|line| line.contains("ll-loop run"));
    let command = command.unwrap().replace("<secret>", "geheim-12345");
    assert!(command.starts_with("cd 'tools/my lint' && ll-loop run main --strict"), "{command}");
    pasted(&project, "two", &command).code(0).says("completed: done");
}

#[test]
fn beside_its_files_a_run_goes_on_by_its_name() {
    let project = Project::with_loop(
        "name: main\ninitial: wait\nstates:\n  wait: {action: 'echo looking; touch begun; while ! test -f go; do sleep 0.02; done', on_yes: done}\n  done: {terminal: true}\n",
    );
    // The loop is named by a path from elsewhere.
    project.write("elsewhere/x", "");
    for directory in [".", "elsewhere"] {
        let _absent = fs::remove_file(project.at("begun"));
        let mut command = project.command(&["run", "../.loops/main.yaml", "--allow-outside"]);
        if directory == "." {
            command = project.command(&["run", "main"]);
        }
        command.current_dir(project.at(directory)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        crate::common::wait_for(|| project.exists("begun"));
        signal(&child, Signal::TERM);
        let ran = Ran::of(&child.wait_with_output().unwrap()).code(143);
        let last = ran.stdout.lines().last().unwrap();
        let seen = commands(last);
        assert_eq!(seen.len(), 2, "{last}");
        pasted(&project, directory, &seen[0]).code(0).says("interrupted: SIGTERM in `wait`");
        pasted(&project, directory, &seen[1]).code(0).says("looking");
        project.write("go", "");
        pasted(&project, directory, &advised(&ran.stdout)).code(0).says("completed: done");
        fs::remove_file(project.at("go")).unwrap();
    }
}

#[test]
fn a_run_out_of_time_gets_more_of_it() {
    let project = Project::with_loop(
        "name: main\ninitial: wait\ntimeout: 1\nstates:\n  wait: {action: 'test -f go || sleep 60', on_yes: done}\n  done: {terminal: true}\n",
    );
    let ran = project.run(&["run", "main"]).code(124);
    project.write("go", "");
    pasted(&project, ".", &advised(&ran.stdout)).code(0).says("completed: done");
}

#[test]
fn what_status_says_can_be_done_can_be() {
    let project = Project::with_loop(LOOP);
    project.run(&["run", "main", "--param", "token=geheim-12345", "--param", WHO]).code(75);
    let ran = project.run(&["status", "main"]).code(0);
    let command = commands(ran.stdout.lines().find(|line| line.contains("continues it")).unwrap()).remove(0);
    pasted(&project, ".", &command).code(0).says("completed: done");
}

#[test]
fn the_help_of_an_error_helps() {
    let project = Project::with_loop(
        "name: main\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done}\n  done: {terminal: true}\n",
    );
    let ran = project.run(&["resume", "main"]).code(2).says("there is no run of `main`");
    pasted(&project, ".", &commands(&ran.stderr).pop().unwrap()).code(0);
    let ran = project.run(&["resume", "main"]).code(2).says("nothing is left to do");
    pasted(&project, ".", &commands(&ran.stderr).pop().unwrap()).code(0).says("completed: done");
}

#[test]
fn a_run_over_its_budget_gets_more_of_it() {
    let looping = |more: &str| {
        format!(
            "name: main\ninitial: one\n{more}states:\n  one: {{action: /a, next: two}}\n  two: {{action: /b, next: check}}\n  check: {{action: 'true', on_yes: done}}\n  done: {{terminal: true}}\n"
        )
    };
    let answer =
        prints(&[json!({"type": "result", "subtype": "success", "is_error": false, "result": "fine"})]);
    let answers = [answer.clone(), answer];
    let project = fake_host::project(&["claude"], &looping(""), &answers);
    let ran = project.run(&["run", "main", "-y", "--max-llm-calls", "1"]).code(6);
    let command = advised(&ran.stdout.replace("continue with twice of it:", "continue with"));
    assert!(command.ends_with("--max-llm-calls 2"), "{command}");
    let path = format!("PATH={}:$PATH; {command} -y", project.at("bin").display());
    pasted(&project, ".", &path).code(0).says("completed: done");

    let project = fake_host::project(&["claude"], &looping("budget: {llm_calls: 1}\n"), &answers);
    let ran = project.run(&["run", "main", "-y"]).code(6).says("raise the `budget` of the loop");
    let command =
        commands(ran.stdout.lines().find(|line| line.contains("raise the")).unwrap()).pop().unwrap();
    project.write(".loops/main.yaml", &looping("budget: {llm_calls: 2}\n"));
    let path = format!("PATH={}:$PATH; {command} -y", project.at("bin").display());
    pasted(&project, ".", &path).code(0).says("completed: done");
}
