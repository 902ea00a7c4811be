//! Nights of a maintain loop in CI: each ends with its first clean cycle, and knows of those before it.

use std::fs;

use ll_loop::internals::base::time::Timestamp;
use ll_loop::internals::process::clock::Clock;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ci::reported::Github;
use crate::common::{Project, Ran, git, signal};

/// Finds the file `broken` and removes it; fails once for each file `flake`.
const TIDY: &str = "\
name: main
description: keeps the tree tidy
initial: lint
maintain: true
states:
  lint: {action: 'test ! -e broken', on_yes: test, on_no: mend}
  mend: {action: rm broken, next: lint}
  test: {action: '! rm flake', on_yes: done, on_no: $current, max_retries: 2, on_retry_exhausted: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

/// What comes and goes without being a change of the tree.
const IGNORED: &str = "broken\nflake\nsummary\nreports\n/kept\n/earlier\ngo\n";

const HISTORY: &str = ".loops/.history/main/nights.json";

fn on_github(text: &str) -> Project {
    let project = Project::with_loop(text).file("summary", "").file(".gitignore", IGNORED);
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    let summary = project.at("summary").to_string_lossy().into_owned();
    project
        .env("CI", "true")
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", summary)
        .env("NO_COLOR", "1")
}

/// Runs one night over these files, and returns what the log of the job says.
#[track_caller]
fn night(project: &Project, files: &[&str], more: &[&str]) -> Ran {
    for file in files {
        project.write(file, "");
    }
    project.write("summary", "");
    project.run(&[&["run", "main", "--report-dir", "reports"], more].concat())
}

fn json(project: &Project, path: &str) -> Value {
    serde_json::from_str(&project.read(path)).unwrap()
}

fn result(project: &Project) -> Value {
    json(project, "reports/result.json")
}

/// Returns the annotations on a log.
fn annotations(ran: &Ran) -> Vec<&str> {
    let is_one =
        |line: &&str| ["::notice", "::warning", "::error"].iter().any(|level| line.starts_with(level));
    ran.stdout.lines().filter(is_one).collect()
}

/// Writes down that the loop had one night, so many hours ago.
fn had_a_night(project: &Project, hours: i64) {
    let at = Timestamp::from_millis(Clock::start().now().as_millis() - hours * 3600 * 1000);
    let night = json!({
        "run_id": "main-before", "at": at, "outcome": "success", "verified": true, "cycles": 1,
        "fixed": [], "flaky": [], "left": [],
    });
    project.write(HISTORY, &json!({"schema": 1, "loop": "main", "nights": [night]}).to_string());
}

#[test]
fn a_night_goes_on_until_a_whole_cycle_needed_no_fix() {
    let project = on_github(TIDY);
    let ran = night(&project, &["broken"], &[]).code(0);
    ran.says("↻ again from lint").says("success: cycle 2 needed no fix");
    let result = result(&project);
    let tonight = &result["nights"]["tonight"];
    assert_eq!(
        (&tonight["fixed"], &tonight["flaky"], &tonight["left"]),
        (&json!(["lint"]), &json!([]), &json!([]))
    );
    assert_eq!((&tonight["cycles"], &tonight["outcome"]), (&json!(2), &json!("success")));
    assert_eq!(result["sentence"], "success: cycle 2 needed no fix");
    let summary = project.read("summary");
    assert!(
        summary.contains("### Over the nights") && summary.contains("| success | 2 | `lint` |  |  |"),
        "{summary}"
    );
    assert_eq!(json(&project, HISTORY)["nights"], json!([tonight]));
    assert_eq!(project.read("reports/nights.json"), project.read(HISTORY));
}

#[test]
fn a_clean_night_is_quiet() {
    let project = on_github(TIDY);
    for times in 1..=3 {
        let ran = night(&project, &[], &[]).code(0);
        assert_eq!((annotations(&ran), ran.stderr.as_str()), (vec![], ""), "{}", ran.all());
        let summary = project.read("summary");
        assert!(summary.lines().count() <= 9 && summary.contains("cycle 1 needed no fix"), "{summary}");
        assert!(summary.contains(&format!("{times} clean night")), "{summary}");
        // One line on what the green means, and neither tables nor steps.
        assert!(
            summary.matches("verified by `test` on tree").count() == 1 && !summary.contains('|'),
            "{summary}"
        );
        assert_eq!(result(&project)["nights"]["clean_in_a_row"], times);
    }
    assert_eq!(result(&project)["nights"]["known"], 3);
}

#[test]
fn the_caps_end_a_night_as_before() {
    let text = TIDY
        .replace("initial: lint", "initial: spoil")
        .replace("states:\n", "states:\n  spoil: {action: touch broken, next: lint}\n");
    let project = on_github(&text);
    let ran = night(&project, &[], &["--max-cycles", "3"]).code(0);
    ran.says("success: ended in `done`, and cycle 3 needed a fix");
    assert_eq!(result(&project)["nights"]["tonight"]["cycles"], 3);
    let ran = night(&project, &[], &["--max-iterations", "4"]).code(3);
    ran.says("exhausted: met the cap of 4 iterations");
    let nights = json(&project, HISTORY)["nights"].clone();
    assert_eq!((&nights[0]["outcome"], &nights[1]["outcome"]), (&json!("success"), &json!("exhausted")));
}

#[test]
fn a_night_that_is_handed_off_is_the_same_night_when_it_goes_on() {
    let slow = "mend: {action: 'until test -e go || ! test -d \"$PWD\"; do sleep 0.02; done; rm broken', next: lint}";
    let project = on_github(&TIDY.replace("mend: {action: rm broken, next: lint}", slow));
    night(&project, &["broken"], &["--deadline", "4s"]).code(75);
    let left = json(&project, HISTORY)["nights"].clone();
    assert_eq!((&left[0]["outcome"], &left[0]["left"]), (&json!("handoff"), &json!(["lint"])));
    project.write("go", "");
    // Another night may happen before the first one goes on.
    night(&project, &[], &[]).code(0);
    project
        .run(&["resume", "main", "--report-dir", "reports"])
        .code(0)
        .says("success: cycle 2 needed no fix");
    let ended = json(&project, HISTORY)["nights"].clone();
    assert_eq!(ended.as_array().unwrap().len(), 2);
    assert_eq!(ended[0]["run_id"], left[0]["run_id"]);
    assert_eq!((&ended[0]["outcome"], &ended[0]["fixed"]), (&json!("success"), &json!(["lint"])));
}

#[test]
fn what_comes_back_night_after_night_is_said() {
    let project = on_github(TIDY);
    let ran = night(&project, &["broken", "flake"], &[]).code(0);
    assert_eq!(annotations(&ran), [""; 0]);
    let ran = night(&project, &["broken"], &[]).code(0);
    assert_eq!(
        annotations(&ran),
        [
            "::notice file=.loops/main.yaml,line=6,title=main%3A recurring::`lint` was fixed in 2 of the last 2 nights"
        ]
    );
    let ran = night(&project, &["broken", "flake"], &[]).code(0);
    let said = annotations(&ran);
    assert!(said[0].ends_with("::`lint` was fixed in 3 of the last 3 nights"), "{said:?}");
    assert!(
        said[1].ends_with("line=8,title=main%3A recurring::`test` was flaky in 2 of the last 3 nights"),
        "{said:?}"
    );
    let summary = project.read("summary");
    assert!(summary.contains("- `test` was flaky in 2 of the last 3 nights"), "{summary}");
    assert_eq!(summary.matches("| success | 2 |").count(), 3, "{summary}");
    let recurring = result(&project)["nights"]["recurring"].clone();
    assert_eq!(recurring[0], json!({"state": "lint", "nights": 3, "of": 3, "fixed": 3, "flaky": 0}));
    // The journal alone is enough to say it again.
    let again = project.run(&["report", "main", "--format", "github"]).code(0);
    assert_eq!(again.stdout.lines().collect::<Vec<_>>(), said);
    // A night with nothing to do is not quiet as long as something comes back.
    let ran = night(&project, &[], &[]).code(0);
    assert_eq!(annotations(&ran).len(), 2);
}

#[test]
fn a_night_that_did_not_happen_is_reported_by_the_next() {
    for (hours, scheduled, every, expected) in [
        (
            73,
            true,
            None,
            Some("2 nights did not happen: one is due every 1 day, and the last one began 3d 1h ago"),
        ),
        (25, true, None, None),
        (73, false, None, None),
        (73, false, Some("24h"), Some("2 nights did not happen")),
        (73, true, Some("72h"), None),
    ] {
        let mut project = on_github(TIDY);
        if scheduled {
            project = project.env("GITHUB_EVENT_NAME", "schedule");
        }
        had_a_night(&project, hours);
        let every: Vec<&str> = every.iter().flat_map(|every| ["--every", every]).collect();
        let ran = night(&project, &[], &every).code(0);
        let Some(expected) = expected else {
            assert_eq!(annotations(&ran), [""; 0]);
            continue;
        };
        let said = annotations(&ran);
        assert!(said[0].starts_with("::warning") && said[0].contains(expected), "{said:?}");
        assert!(ran.stdout.contains(&format!("! warning: {expected}")), "{}", ran.stdout);
        assert!(project.read("summary").contains(expected), "{}", project.read("summary"));
        assert!(result(&project)["warnings"][0]["message"].as_str().unwrap().starts_with(expected));
    }
}

#[test]
fn a_history_that_cannot_be_used_is_a_warning_and_begins_anew() {
    let of_another = json!({"schema": 1, "loop": "other", "nights": []}).to_string();
    for (text, why) in [
        ("{\"schema\": 1, ", "it is damaged"),
        ("{\"schema\": 9}", "a later version of ll-loop wrote it (format 9; this one knows 1)"),
        (&of_another, "it is about the loop `other`"),
    ] {
        let project = on_github(TIDY).file(HISTORY, text);
        let ran = night(&project, &[], &[]).code(0);
        let said = annotations(&ran);
        assert!(said.len() == 1 && said[0].starts_with("::warning") && said[0].contains(why), "{said:?}");
        assert_eq!(json(&project, HISTORY)["nights"].as_array().unwrap().len(), 1);
        assert_eq!(annotations(&night(&project, &[], &[]).code(0)), [""; 0]);
    }
}

#[test]
fn the_nights_before_are_found_wherever_they_were_kept() {
    let last = on_github(TIDY);
    night(&last, &["broken"], &[]).code(0);
    let reports = last.at("reports");
    let bundle = fs::read_dir(&reports).unwrap().map(|entry| entry.unwrap().path());
    let bundle = bundle.into_iter().find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap();
    // The artifact of a job, as it is downloaded, and as it is unpacked with nothing but the bundle in it.
    let artifact = last.at("artifact.zip");
    let mut zip = zip::ZipWriter::new(fs::File::create(&artifact).unwrap());
    zip.start_file("reports/nights.json", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, last.read("reports/nights.json").as_bytes()).unwrap();
    zip.finish().unwrap();
    let unpacked = last.at("unpacked/deep");
    fs::create_dir_all(&unpacked).unwrap();
    fs::copy(&bundle, unpacked.join("a.llz")).unwrap();
    for from in [&reports.join("nights.json"), &reports, &bundle, &artifact, &last.at("unpacked")] {
        let project = on_github(TIDY);
        let ran = night(&project, &["broken"], &["--previous", from.to_str().unwrap()]).code(0);
        assert_eq!(annotations(&ran).len(), 1, "{}\n{}", from.display(), ran.all());
        ran.says("`lint` was fixed in 2 of the last 2 nights");
        assert_eq!(json(&project, HISTORY)["nights"].as_array().unwrap().len(), 2);
    }
    // A bundle is not believed when a byte of it is another one.
    let mut bytes = fs::read(&bundle).unwrap();
    let name = b"report/nights.json";
    let at = bytes.windows(name.len()).rposition(|found| found == name).unwrap();
    bytes[at] ^= 1;
    fs::write(&bundle, bytes).unwrap();
    let project = on_github(TIDY);
    let ran = night(&project, &[], &["--previous", bundle.to_str().unwrap()]).code(0);
    assert!(annotations(&ran)[0].contains("the nights before this one are not known"), "{}", ran.all());
}

#[test]
fn the_first_night_has_none_before_it() {
    let project = on_github(TIDY).env("GITHUB_EVENT_NAME", "schedule");
    let ran = night(&project, &[], &["--previous", "not/there"]).code(0);
    assert_eq!(annotations(&ran), [""; 0]);
    assert!(ran.stderr.contains("this is the first night"), "{}", ran.stderr);
}

#[test]
fn a_night_that_was_killed_is_known_and_loses_nothing() {
    let slow = "mend: {action: 'touch begun; until test -e go || ! test -d \"$PWD\"; do sleep 0.02; done; rm broken', next: lint}";
    let project = on_github(&TIDY.replace("mend: {action: rm broken, next: lint}", slow));
    had_a_night(&project, 24);
    project.write("broken", "");
    let child = project.start_until(&["run", "main", "--report-dir", "reports"], "begun");
    signal(&child, Signal::KILL);
    let _killed = child.wait_with_output().unwrap();
    // The action ends with its run, and somebody else mends what it was about to.
    fs::remove_file(project.at("broken")).unwrap();
    for kept in ["reports/nights.json", HISTORY] {
        let nights = json(&project, kept)["nights"].clone();
        assert_eq!((nights.as_array().unwrap().len(), &nights[0]["run_id"]), (2, &json!("main-before")));
        assert_eq!(nights[1].get("outcome"), None);
    }
    let ran = night(&project, &[], &["--every", "24h"]).code(0);
    assert_eq!(annotations(&ran), [""; 0]);
    assert_eq!(result(&project)["nights"]["known"], 3);
}

#[test]
fn runs_are_forgotten_and_nights_are_not() {
    let project = on_github(TIDY);
    night(&project, &["broken"], &[]).code(0);
    let history = project.run(&["history", "--json"]).code(0);
    assert_eq!(history.stdout.lines().count(), 1, "{}", history.all());
    project.run(&["history", "--prune", "--keep", "0"]).code(0).says("1 run forgotten, 0 kept");
    let left: Vec<_> = fs::read_dir(project.at(".loops/.history/main"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["nights.json"]);
    night(&project, &["broken"], &[]).code(0).says("`lint` was fixed in 2 of the last 2 nights");
}

#[test]
fn only_a_maintain_loop_in_ci_has_nights() {
    let once = on_github(&TIDY.replace("maintain: true\n", ""));
    let ran = night(&once, &[], &["--previous", "x", "--every", "1h"]).code(0);
    ran.says("`--previous` has no effect: only a maintain loop in CI has nights")
        .says("`--every` has no effect");
    assert_eq!(result(&once)["nights"], Value::Null);
    assert!(!once.exists(HISTORY) && !once.exists("reports/nights.json"));
    let at_home = on_github(TIDY);
    night(&at_home, &[], &["--no-ci", "--max-cycles", "2"]).code(0);
    assert_eq!(at_home.end()["cycles"], 2);
    assert!(!at_home.exists(HISTORY));
}

#[test]
fn the_nights_before_are_fetched_from_github() {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    let night_of = |github: &Github| {
        let project = on_github(TIDY).file("broken", "");
        let project = project
            .env("GITHUB_API_URL", github.address())
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_REPOSITORY_ID", "1")
            .env("GITHUB_TOKEN", "ghs_geheim")
            .env("LL_RETRY_WAIT", "1ms");
        let ran = night(&project, &[], &["--previous", "run:latest", "--no-status"]).code(0);
        (ran, result(&project)["nights"].clone())
    };
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("/repos/o/r/actions/{at}")));

    // The first night: there is an artifact, and it is of another loop.
    let first = Github::silent();
    let row = |name: &str| {
        json!({
            "id": 5, "name": name, "expired": false,
            "workflow_run": {"id": 7, "repository_id": 1, "head_repository_id": 1},
        })
    };
    first.mount(get("artifacts").respond_with(answer(json!({"artifacts": [row("ll-loop-other-x-r7-a1")]}))));
    let (ran, _) = night_of(&first);
    ran.says("begins with `ll-loop-main-` and has not expired: this is the first night");

    // The second one: the artifact is the report directory of the first.
    let before = on_github(TIDY).file("broken", "");
    assert_eq!(night(&before, &[], &[]).code, Some(0));
    let zip = before.at("artifact.zip");
    let packed = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-c", zip.to_str().unwrap(), "nights.json"])
        .current_dir(before.at("reports"))
        .status();
    assert!(packed.unwrap().success());
    let second = Github::silent();
    let of_main = answer(json!({"artifacts": [row("ll-loop-main-x-r7-a1")]}));
    second.mount(get("artifacts").respond_with(of_main.clone()));
    second.mount(get("runs/7/artifacts").respond_with(of_main));
    let location = format!("{}/blob?sig=geheim", second.address());
    second.mount(
        get("artifacts/5/zip").respond_with(ResponseTemplate::new(302).insert_header("location", location)),
    );
    let blob = ResponseTemplate::new(200).set_body_bytes(fs::read(zip).unwrap());
    second.mount(Mock::given(method("GET")).and(path("/blob")).respond_with(blob));
    let (_, nights) = night_of(&second);
    assert_eq!(nights["recurring"][0]["state"], "lint", "{nights}");

    // A repository that the token does not see.
    let (ran, _) = night_of(&Github::silent());
    ran.says("this is the first night");
}

#[test]
fn checks_other_workflows_and_other_legs_are_no_nights() {
    use wiremock::matchers::{method, path};
    use wiremock::{Mock, ResponseTemplate};

    use crate::ci::reported::Github;

    let before = on_github(TIDY).file("broken", "");
    assert_eq!(night(&before, &[], &[]).code, Some(0));
    let zip = before.at("artifact.zip");
    let packed = std::process::Command::new("python3")
        .args(["-m", "zipfile", "-c", zip.to_str().unwrap(), "nights.json"])
        .current_dir(before.at("reports"))
        .status();
    assert!(packed.unwrap().success());

    let github = Github::silent();
    let answer = |body: Value| ResponseTemplate::new(200).set_body_json(body);
    let get = |at: &str| Mock::given(method("GET")).and(path(format!("/repos/o/r/actions/{at}")));
    // The newest first: each is like the one before in all but one respect.
    let left = [
        (15, "ll-loop-main-night-r15-a1", "pull_request", ".github/workflows/nightly.yml"),
        (14, "ll-loop-main-night-r14-a1", "schedule", ".github/workflows/weekly.yml"),
        (13, "ll-loop-main-night.b-r13-a1", "schedule", ".github/workflows/nightly.yml"),
        (12, "ll-loop-main-day-r12-a1", "schedule", ".github/workflows/nightly.yml"),
        (11, "ll-loop-main-night-r11-a1", "workflow_dispatch", ".github/workflows/nightly.yml"),
        (10, "ll-loop-main-night-r10-a1", "schedule", ".github/workflows/nightly.yml"),
    ];
    let row = |(run, name): (u64, &str)| {
        let of = json!({"id": run, "repository_id": 1, "head_repository_id": 1});
        json!({"id": run * 10, "name": name, "expired": false, "workflow_run": of})
    };
    let rows: Vec<Value> = left.iter().map(|(run, name, ..)| row((*run, name))).collect();
    github.mount(get("artifacts").respond_with(answer(json!({"artifacts": rows}))));
    for (run, name, event, file) in left {
        let of_run = json!({"id": run, "event": event, "path": file, "status": "completed"});
        github.mount(get(&format!("runs/{run}")).respond_with(answer(of_run)));
        let rows = json!({"artifacts": [row((run, name))]});
        github.mount(get(&format!("runs/{run}/artifacts")).respond_with(answer(rows)));
    }
    let location = format!("{}/blob", github.address());
    let moved = ResponseTemplate::new(302).insert_header("location", location);
    github.mount(get("artifacts/110/zip").respond_with(moved));
    let blob = ResponseTemplate::new(200).set_body_bytes(fs::read(zip).unwrap());
    github.mount(Mock::given(method("GET")).and(path("/blob")).respond_with(blob));

    let in_job = |event: &str| {
        on_github(TIDY)
            .env("GITHUB_API_URL", github.address())
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_REPOSITORY_ID", "1")
            .env("GITHUB_RUN_ID", "20")
            .env("GITHUB_JOB", "night")
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_WORKFLOW_REF", "o/r/.github/workflows/nightly.yml@refs/heads/main")
            .env("GITHUB_TOKEN", "ghs_geheim")
            .env("LL_RETRY_WAIT", "1ms")
    };
    let project = in_job("schedule");
    night(&project, &["broken"], &["--previous", "run:latest", "--no-status"]).code(0);
    assert_eq!(result(&project)["nights"]["recurring"][0]["state"], "lint");
    // On a machine that stays, too, a check is not one of the nights.
    let known = |project: &Project| result(project)["nights"]["known"].clone();
    let project = in_job("schedule");
    night(&project, &[], &["--no-status"]).code(0);
    let (project, mut counts) = (project.env("GITHUB_EVENT_NAME", "pull_request"), vec![]);
    for _ in 0..2 {
        night(&project, &[], &["--no-status"]).code(0);
        counts.push(known(&project));
    }
    let project = project.env("GITHUB_EVENT_NAME", "workflow_dispatch");
    night(&project, &[], &["--no-status"]).code(0);
    counts.push(known(&project));
    night(&project, &[], &["--no-status", "--key", "leg"]).code(0);
    counts.push(known(&project));
    assert_eq!(counts, [1, 2, 2, 1]);
}
