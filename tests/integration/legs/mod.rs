//! Several runs of one loop in one run of a workflow: legs of a matrix, steps of a job, callers of a reusable workflow. Each
//! keeps what is its own, and what they share is as good as the worst of them.

mod forge;

use forge::Forge;

use crate::ci::ci_mode::outputs;
use crate::common::{Project, Ran, signal, wait_for};
use crate::inspect::advice::{advised, pasted};

/// Passes, fails or hands off as the variable `DO` says; whoever goes on passes.
const LOOP: &str = r#"name: main
initial: work
states:
  work:
    action: 'if [ "$DO" = hand-off ]; then echo "CONTEXT_HANDOFF: later"; fi; echo "$LEG" > leg.txt'
    next: check
  check: {action: 'touch begun.txt; if [ "$DO" = wait ]; then sleep 60; fi; test "$DO" != fail', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
"#;

fn repository() -> Forge {
    Forge::with(&[(".loops/main.yaml", LOOP), (".gitignore", "*.txt\n")])
}

/// The legs, what each does, and its exit code.
const LEGS: [(&str, &str, i32); 3] = [("linux", "pass", 0), ("mac", "fail", 1), ("win", "hand-off", 75)];

fn matrix(os: &str) -> String {
    format!("{{\n  \"os\": \"{os}\",\n  \"node\": 20\n}}")
}

/// Runs three legs that come out as `LEGS` says, and stores their reports.
fn three_legs(forge: &Forge) {
    for (os, does, code) in LEGS {
        let job = forge.leg(&matrix(os)).env("DO", does).env("LEG", os);
        let _ran = job.run(&["action"]).code(code);
        assert_eq!(forge.store(&job), format!("ll-loop-main-check.20_{os}-r77-a1"));
    }
}

/// Returns the states of the statuses, each with its context.
fn shown(forge: &Forge) -> Vec<(String, String)> {
    forge.statuses().into_iter().map(|(context, state, _)| (context, state)).collect()
}

#[test]
fn each_leg_of_a_matrix_has_its_own() {
    let forge = repository();
    three_legs(&forge);
    let of = |os: &str, state: &str| (format!("ll-loop/main (check.20_{os})"), state.to_owned());
    assert_eq!(shown(&forge), [of("linux", "success"), of("mac", "failure"), of("win", "pending")]);
}

/// Runs several legs of a caller's matrix at once, which nothing tells apart, and returns how they ended.
fn at_once(forge: &Forge, does: &[&str], prepare: impl Fn(Project) -> Project) -> Vec<Ran> {
    let jobs: Vec<Project> = does.iter().map(|does| prepare(forge.leg("null").env("DO", *does))).collect();
    let started: Vec<_> = jobs
        .iter()
        .map(|job| {
            let mut command = job.command(&["action"]);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap()
        })
        .collect();
    started.into_iter().map(|child| Ran::of(&child.wait_with_output().unwrap())).collect()
}

#[test]
fn callers_that_end_at_the_same_time_are_red_if_one_is() {
    for round in 0..12 {
        let forge = repository();
        let does = if round % 2 == 0 { ["fail", "pass"] } else { ["pass", "fail"] };
        let ran = at_once(&forge, &does, |job| job);
        let codes: Vec<_> = ran.iter().map(|ran| ran.code.unwrap()).collect();
        assert_eq!(codes.iter().sum::<i32>(), 1, "{codes:?}");
        let (_, state, description) = forge.statuses().remove(0);
        assert_eq!((forge.statuses().len(), state.as_str()), (1, "failure"), "{description}");
        let states = forge.states();
        let red = states.iter().position(|state| state == "failure").unwrap();
        assert!(!states[red..].contains(&"success".to_owned()), "{states:?}");
    }
}

#[test]
fn of_twenty_callers_one_that_fails_counts() {
    let forge = repository();
    let mut does = ["pass"; 20];
    does[7] = "fail";
    let ran = at_once(&forge, &does, |job| job);
    assert_eq!(ran.iter().filter(|ran| ran.code == Some(0)).count(), 19);
    assert_eq!(shown(&forge), [("ll-loop/main".to_owned(), "failure".to_owned())]);
}

#[test]
fn twenty_callers_that_all_pass_come_out_green() {
    let forge = repository();
    let ran = at_once(&forge, &["pass"; 20], |job| job);
    assert!(ran.iter().all(|ran| ran.code == Some(0)));
    assert_eq!(shown(&forge), [("ll-loop/main".to_owned(), "success".to_owned())]);
}

const PULL: &str = r#"{"pull_request": {"number": 7, "head": {"ref": "fix", "sha": "SHA", "repo": {"full_name": "octo/project"}}, "base": {"ref": "main", "sha": "3333333333333333333333333333333333333333"}}}"#;

fn on_pull_request(forge: &Forge, job: Project) -> Project {
    let path = job.at("event.json").display().to_string();
    job.file("event.json", &PULL.replace("SHA", forge.sha()))
        .env("GITHUB_EVENT_NAME", "pull_request")
        .env("GITHUB_EVENT_PATH", path)
        .env("INPUT_CHECK", "true")
        .env("INPUT_COMMENT", "true")
}

#[test]
fn check_runs_and_comments_of_callers_are_as_bad_as_the_worst() {
    for round in 0..6 {
        let forge = repository();
        let does = if round % 2 == 0 { ["fail", "pass", "pass"] } else { ["pass", "pass", "fail"] };
        let _ran = at_once(&forge, &does, |job| on_pull_request(&forge, job));
        let checks = forge.checks();
        assert_eq!(checks.len(), 3);
        assert!(checks.iter().all(|(_, conclusion)| conclusion == "failure"), "{checks:?}");
        let comments = forge.comments();
        assert!(comments.len() == 1 && comments[0].contains("## ❌ `main`"), "{comments:?}");
    }
}

#[test]
fn an_attempt_starts_afresh() {
    let forge = repository();
    let _first = at_once(&forge, &["pass", "fail"], |job| on_pull_request(&forge, job));
    // Only the job that failed is run again.
    let ran = at_once(&forge, &["pass"], |job| on_pull_request(&forge, job).env("GITHUB_RUN_ATTEMPT", "2"));
    assert_eq!(ran[0].code, Some(0), "{}", ran[0].all());
    assert_eq!(shown(&forge), [("ll-loop/main".to_owned(), "success".to_owned())]);
    assert!(forge.comments()[0].contains("## ✅ `main`"), "{:?}", forge.comments());
}

#[test]
fn a_caller_that_is_killed_or_interrupted_counts() {
    use rustix::process::Signal;
    for (sent, says) in [(Signal::INT, "interrupted"), (Signal::KILL, "killed")] {
        let forge = repository();
        let first = forge.leg("null").env("DO", "wait");
        let child = first.start_until(&["action"], "begun.txt");
        wait_for(|| forge.states() == ["pending"]);
        signal(&child, sent);
        let _ended = child.wait_with_output().unwrap();
        wait_for(|| forge.states().last().is_some_and(|state| state == "error"));
        let ran = at_once(&forge, &["pass"], |job| job);
        assert_eq!(ran[0].code, Some(0));
        let (_, state, description) = forge.statuses().remove(0);
        assert_eq!(state, "error", "{description}");
        assert!(description.contains(says) && description.contains("pass `key`"), "{description}");
    }
}

/// Runs the loop in a step of a job, and stores its reports. Returns the name of the artifact.
#[track_caller]
fn step(forge: &Forge, job: &Project, code: i32) -> String {
    job.write("out", "");
    let _ran = job.run(&["action"]).code(code);
    forge.store(job)
}

#[test]
fn steps_of_a_job_have_their_own_artifacts_and_share_a_status() {
    let forge = repository();
    let red = forge.job().env("DO", "fail");
    assert_eq!(step(&forge, &red, 1), "ll-loop-main-check-r77-a1");
    let green = red.env("DO", "pass");
    assert_eq!(step(&forge, &green, 0), "ll-loop-main-check+2-r77-a1");
    assert_eq!(shown(&forge), [("ll-loop/main".to_owned(), "failure".to_owned())]);
    // What an earlier attempt left on the machine is not counted.
    let again = green.env("GITHUB_RUN_ATTEMPT", "2");
    assert_eq!(step(&forge, &again, 0), "ll-loop-main-check-r77-a2");
    assert_eq!(shown(&forge), [("ll-loop/main".to_owned(), "success".to_owned())]);
}

#[test]
fn a_loop_in_two_directories_of_a_job_has_an_artifact_in_each() {
    let forge =
        Forge::with(&[("a/.loops/main.yaml", LOOP), ("b/.loops/main.yaml", LOOP), (".gitignore", "*.txt\n")]);
    let job = forge.leg("null").env("INPUT_WORKING_DIRECTORY", "a");
    assert_eq!(step(&forge, &job, 0), "ll-loop-main-check-r77-a1");
    let job = job.env("INPUT_WORKING_DIRECTORY", "b");
    assert_eq!(step(&forge, &job, 0), "ll-loop-main-check+2-r77-a1");
}

#[test]
fn steps_that_run_at_the_same_time_have_keys_of_their_own() {
    let forge = repository();
    let temp = tempfile::tempdir().unwrap();
    let in_temp = |job: Project| job.env("RUNNER_TEMP", temp.path().display().to_string());
    let jobs: Vec<Project> = (0..8).map(|_| in_temp(forge.leg(&matrix("mac")))).collect();
    let mut started: Vec<_> = jobs
        .iter()
        .map(|job| job.command(&["action"]).stdout(std::process::Stdio::null()).spawn().unwrap())
        .collect();
    for child in &mut started {
        assert!(child.wait().unwrap().success());
    }
    let mut names: Vec<String> = jobs.iter().map(|job| outputs(&job.read("out"))["key"].clone()).collect();
    names.sort();
    let expected: Vec<String> = std::iter::once("check.20_mac".to_owned())
        .chain((2..=8).map(|number| format!("check.20_mac+{number}")))
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn without_a_place_to_count_the_second_step_says_that_nothing_is_stored() {
    let prepare: [fn(Project) -> Project; 3] = [
        |job| job.env("RUNNER_TEMP", "/dev/null/temp"),
        |job| job.env("RUNNER_TEMP", "/proc/temp"),
        |job| job.env("RUNNER_TEMP", ""),
    ];
    for prepare in prepare {
        let forge = repository();
        let job = forge.with_artifacts(prepare(forge.job()));
        let _ran = job.run(&["action", "all"]).code(0);
        let stored = ["ll-loop-main-check-r77-a1".to_owned()];
        assert_eq!(forge.artifacts(), stored);
        job.write("out", "");
        let ran = job.run(&["action", "all"]).code(0);
        let _ran = ran.says("has stored `ll-loop-main-check-r77-a1` already").says("pass `key`");
        assert_eq!(forge.artifacts(), stored);
        assert_eq!(outputs(&job.read("out"))["artifact-name"], "");
    }
}

#[test]
fn a_step_that_was_killed_keeps_its_key() {
    use rustix::process::Signal;
    let forge = repository();
    let job = forge.leg(&matrix("mac")).env("DO", "wait");
    let child = job.start_until(&["action"], "begun.txt");
    wait_for(|| forge.states() == ["pending"]);
    signal(&child, Signal::KILL);
    let _ended = child.wait_with_output().unwrap();
    wait_for(|| forge.states().last().is_some_and(|state| state == "error"));
    let early = outputs(&job.read("out"));
    let second = job.env("DO", "pass");
    assert_eq!(step(&forge, &second, 0), "ll-loop-main-check.20_mac+2-r77-a1");
    let save =
        second.env("INPUT_RUN", early["run-id"].clone()).env("INPUT_REPORT_DIR", early["report-dir"].clone());
    save.write("out", "");
    let _ran = save.run(&["action", "save"]).code(0);
    let saved = outputs(&save.read("out"));
    assert_eq!((&*saved["key"], &*saved["exit-code"]), ("check.20_mac", "137"));
    assert_eq!(saved["artifact-name"], "ll-loop-main-check.20_mac-r77-a1");
    let of = |key: &str, state: &str| (format!("ll-loop/main ({key})"), state.to_owned());
    assert_eq!(shown(&forge), [of("check.20_mac", "error"), of("check.20_mac+2", "success")]);
}

/// What a run that passes, and one that fails, come to where these requests about statuses are refused.
fn refused(methods: &[&'static str], status: u16, does: &str, key: &str) -> (Forge, Vec<String>) {
    let forge = repository();
    for method in methods {
        forge.refuse(method, "/statuses", status);
    }
    let ran = forge.leg(key).env("DO", does).run(&["action"]).code(i32::from(does == "fail"));
    let is_said = |line: &&str| line.starts_with("::notice title=github") || line.contains("warning: ");
    let all = ran.all();
    let said = all.lines().filter(is_said).filter(|line| !line.contains("ll-loop validate"));
    let said = said.map(str::to_owned).collect();
    (forge, said)
}

#[test]
fn an_api_that_refuses_changes_no_run_and_is_told_of_once() {
    for status in [403, 404, 422, 429, 500] {
        for does in ["pass", "fail"] {
            for methods in [&["POST"][..], &["GET", "POST"]] {
                let (forge, said) = refused(methods, status, does, "null");
                assert_eq!((forge.states().len(), said.len()), (0, 1), "{status} {does}: {said:?}");
            }
        }
    }
}

#[test]
fn without_a_look_at_other_runs_a_shared_name_is_never_green() {
    for status in [403, 422, 429, 500] {
        let (forge, said) = refused(&["GET"], status, "fail", "null");
        assert_eq!((forge.states(), said.len()), (vec!["pending".into(), "failure".into()], 1), "{said:?}");
        let (forge, said) = refused(&["GET"], status, "pass", "null");
        let expected = "success, but runs that may share this status cannot be read: pass `key`";
        let pending = ("ll-loop/main".to_owned(), "pending".to_owned(), expected.to_owned());
        assert_eq!(forge.statuses(), [pending], "{status}");
        assert!(
            said.len() == 1 && said[0].contains("whether other runs share the status is not known"),
            "{said:?}"
        );
        // A name with a key is the run's own.
        let (forge, said) = refused(&["GET"], status, "pass", &matrix("mac"));
        assert_eq!((forge.states(), said.len()), (vec!["pending".into(), "success".into()], 1), "{said:?}");
    }
    // A server without the list is one on which nobody can look.
    let (forge, said) = refused(&["GET"], 404, "pass", "null");
    assert_eq!((forge.states(), said.len()), (vec!["pending".into(), "success".into()], 0), "{said:?}");
}

#[test]
fn legs_that_were_given_one_name_share_it_however_many_statuses_there_are() {
    let forge = repository();
    let leg =
        |os: &str, does: &str| forge.leg(&matrix(os)).env("INPUT_STATUS_CONTEXT", "quality").env("DO", does);
    let _red = leg("mac", "fail").run(&["action"]).code(1);
    forge.crowd(250);
    let _green = leg("linux", "pass").run(&["action"]).code(0).says("pass `key`");
    assert!(shown(&forge).contains(&("quality".to_owned(), "failure".to_owned())));
}

#[test]
fn whatever_a_key_is_it_breaks_nothing() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(120_000));
    let keys = [
        &deep,
        &large,
        "a\n::error::boo\n::set-output name=x::y",
        "../../etc/passwd",
        "\"quoted\" 'single' `tick`",
        "+2",
        "a+2",
        "a+99999999999",
        "\u{202e}evil\u{202c}",
        "🦀🦀🦀",
        "{\"a\":\"\"}",
        "{\"a\":[],\"b\":null,\"c\":{}}",
        "[]",
        "[1,2]",
        "null",
        "{}",
        "true",
        "\"\"",
        "--> <script>",
        "a\r\nb",
        "\u{1b}[31mred",
        "a | b",
        "check.20_mac",
        "check",
        "C:\\x*?",
        "x".repeat(61).as_str(),
        "é".repeat(40).as_str(),
        "{\"a\":1,\"a\":2}",
        "%0A%0D",
        "..",
        ".",
        "-rf",
    ]
    .map(str::to_owned);
    for key in &keys {
        let forge = repository();
        let job = on_pull_request(&forge, forge.leg(key));
        let ran = job.run(&["action"]).code(0);
        let shown: String = key.chars().take(80).collect();
        let all = ran.all();
        assert!(
            !all.lines().any(|line| line.starts_with("::error") || line.starts_with("::set-output")),
            "{all}"
        );
        assert!(!all.contains(['\u{202e}', '\u{1b}']), "{shown:?}: {all}");
        let name = forge.store(&job);
        let is_safe = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        assert!(name.chars().all(is_safe) && name.chars().count() < 110, "{shown:?}: {name}");
        let (context, state, _) = forge.statuses().remove(0);
        let rest = context.strip_prefix("ll-loop/main").unwrap();
        let inner = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(")")).unwrap_or(rest);
        assert!(inner.chars().all(is_safe), "{shown:?}: {context}");
        assert_eq!(state, "success", "{shown:?}");
        let marker = forge.comments()[0].lines().next().unwrap().to_owned();
        let inner =
            marker.strip_prefix("<!-- ll-loop/main").and_then(|rest| rest.strip_suffix(" -->")).unwrap();
        assert!(!inner.contains("--") && !inner.contains(['<', '>']), "{shown:?}: {marker}");
    }
}

/// The job in which a leg goes on.
fn later(forge: &Forge, key: &str, from: &str) -> Project {
    forge.leg(key).env("GITHUB_JOB", "later").env("INPUT_RESUME_FROM", from)
}

#[test]
fn of_the_legs_of_a_later_job_only_the_one_that_was_handed_off_goes_on() {
    for from in ["run:77", "run:latest"] {
        let forge = repository();
        three_legs(&forge);
        for (os, state) in [("linux", "success"), ("mac", "failure")] {
            let ran = later(&forge, &matrix(os), from).run(&["action"]).code(2);
            let _ran = ran.says(&format!("has ended ({state}), and nothing is left to do"));
        }
        let job = later(&forge, &matrix("win"), from).env("LEG", "win");
        let _ran = job.run(&["action"]).code(0).says("from the artifact ll-loop-main-check.20_win-r77-a1");
        assert_eq!(job.read("leg.txt"), "win\n");
        // It is the run that was handed off, which is not pending any more, and its files have a name of their own.
        let of = |os: &str, state: &str| (format!("ll-loop/main (check.20_{os})"), state.to_owned());
        assert_eq!(shown(&forge), [of("linux", "success"), of("mac", "failure"), of("win", "success")]);
        assert_eq!(forge.store(&job), "ll-loop-main-later.20_win-r77-a1");
    }
}

#[test]
fn a_leg_whose_artifact_is_gone_takes_no_other() {
    for from in ["run:77", "run:latest"] {
        let forge = repository();
        three_legs(&forge);
        forge.delete("ll-loop-main-check.20_win-r77-a1");
        for job in ["check", "later"] {
            let job = later(&forge, &matrix("win"), from).env("GITHUB_JOB", job).env("LEG", "win");
            let ran = job.run(&["action"]).code(1);
            assert!(!job.exists("leg.txt") && !ran.all().contains("took over"), "{}", ran.all());
        }
    }
}

#[test]
fn a_run_that_goes_on_with_the_same_key_keeps_its_status_and_gets_a_name() {
    let forge = repository();
    let first = forge.leg("web").env("DO", "hand-off");
    assert_eq!(step(&forge, &first, 75), "ll-loop-main-web-r77-a1");
    let job = later(&forge, "web", "run:77");
    assert_eq!(step(&forge, &job, 0), "ll-loop-main-web+2-r77-a1");
    assert_eq!(shown(&forge), [("ll-loop/main (web)".to_owned(), "success".to_owned())]);
}

/// Pastes a command into a shell at home.
fn at_home(forge: &Forge, command: &str) -> (Project, Ran) {
    let home = forge.clone();
    let ran = pasted(&home, ".", &format!("export GITHUB_API_URL={}; {command}", forge.address()));
    (home, ran)
}

#[test]
fn at_home_a_leg_is_named_or_the_only_one() {
    let forge = repository();
    three_legs(&forge);
    for from in ["run:77", "run:latest"] {
        let command = format!("ll-loop resume main --from {from} --repo octo/project");
        let (home, ran) = at_home(&forge, &command);
        assert_ne!(ran.code, Some(0));
        let ran = ran.says("there are runs with several keys").says("`ll-loop-main-check.20_win-r77-a1`");
        assert!(!home.exists("leg.txt"), "{}", ran.all());
        let (_, ran) = at_home(&forge, &format!("{command} --key check.20_bsd"));
        assert_ne!(ran.code, Some(0));
        let _ran = ran.says("check.20_bsd");
    }
    let (home, ran) = at_home(
        &forge,
        "LEG=home ll-loop resume main --from run:latest --repo octo/project --key check.20_win",
    );
    let _ran = ran.code(0).says("completed: done");
    assert_eq!(home.read("leg.txt"), "home\n");

    let forge = repository();
    three_legs(&forge);
    for os in ["linux", "mac"] {
        forge.delete(&format!("ll-loop-main-check.20_{os}-r77-a1"));
    }
    let (_, ran) = at_home(&forge, "ll-loop resume main --from run:77 --repo octo/project");
    let _ran = ran.code(0).says("completed: done");
}

#[test]
fn what_the_log_of_a_leg_says_can_be_pasted_at_home() {
    let forge = repository();
    let mut logs = Vec::new();
    for key in
        [matrix("win"), matrix("mac"), "null".to_owned(), "web".to_owned(), "a b; $(touch oops)".to_owned()]
    {
        let job = forge.leg(&key).env("DO", "hand-off").env("LEG", &*key);
        let ran = job.run(&["action"]).code(75);
        let _name = forge.store(&job);
        logs.push((outputs(&job.read("out"))["run-id"].clone(), ran.stdout));
    }
    // The second run of a job.
    let job = forge.leg(&matrix("bsd")).env("DO", "hand-off");
    let _first = step(&forge, &job, 75);
    job.write("out", "");
    let ran = job.run(&["action"]).code(75);
    let _name = forge.store(&job);
    logs.push((outputs(&job.read("out"))["run-id"].clone(), ran.stdout));
    for (instance, log) in logs {
        let command = advised(&log);
        let (home, ran) = at_home(&forge, &command);
        let _ran = ran.code(0).says(&format!("took over {instance}")).says("completed: done");
        assert!(!home.exists("oops"));
    }
}

const ASKS: &str =
    "name: main\ninitial: a\nstates:\n  a: {action: /do-it, next: done}\n  done: {terminal: true}\n";

#[test]
fn off_is_off_whatever_a_provider_has_set() {
    let providers = [
        ("GITHUB_ACTIONS", "true"),
        ("GITLAB_CI", "true"),
        ("TF_BUILD", "True"),
        ("TEAMCITY_VERSION", "2026.1"),
        ("BUILDKITE", "true"),
        ("CIRCLECI", "true"),
        ("TRAVIS", "true"),
        ("DRONE_BUILD_NUMBER", "7"),
        ("APPVEYOR_BUILD_ID", "7"),
    ];
    let text =
        "name: main\ninitial: a\nstates:\n  a: {action: 'true', next: done}\n  done: {terminal: true}\n";
    // A success that nothing verified is a failure in CI alone.
    for (name, value) in providers {
        let job = Project::with_loop(text).env(name, value);
        let ran = job.run(&["run", "main"]).code(1);
        assert!(ran.all().contains("verified"), "{name}: {}", ran.all());
        for (arguments, ci) in [
            (&["run", "main"][..], "false"),
            (&["run", "main"], "0"),
            (&["run", "main", "--no-ci"], "true"),
            (&["run", "main", "--no-ci"], ""),
        ] {
            let job = Project::with_loop(text).env(name, value).env("CI", ci);
            let ran = job.run(arguments);
            assert_eq!(ran.code, Some(0), "{name} {ci} {arguments:?}: {}", ran.all());
        }
        let job = Project::with_loop(ASKS).env(name, value);
        let _ran = job.run(&["run", "main"]).code(75).says("needs an agent, and none may be asked here");
    }
}
