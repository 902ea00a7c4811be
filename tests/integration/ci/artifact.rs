//! `ll-loop artifact`, as far as it goes without a service; `tests/artifacts` has one.

use crate::common::{Project, Ran};

/// A token for the run `RUN` and the job `JOB`, not signed.
const TOKEN: &str = "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6UlVOOkpPQiJ9.c2ln";

/// A project in a job whose services nobody answers for.
fn job() -> Project {
    Project::new()
        .file("report/summary.md", "all is well\n")
        .env("ACTIONS_RUNTIME_TOKEN", TOKEN)
        .env("ACTIONS_RESULTS_URL", "http://127.0.0.1:9/")
        .env("GITHUB_API_URL", "http://127.0.0.1:9")
        .env("GITHUB_REPOSITORY", "o/r")
        .env("LL_RETRY_WAIT", "1ms")
}

#[track_caller]
fn check(project: &Project, arguments: &[&str], code: i32, says: &[&str]) {
    let mut all = vec!["artifact"];
    all.extend(arguments);
    let ran = says.iter().fold(project.run(&all).code(code), |ran: Ran, text| ran.says(text));
    assert_eq!(ran.stdout, "");
    assert!(!project.exists("to"), "something was unpacked");
}

#[test]
fn what_is_wrong_with_the_arguments_is_said_before_anybody_is_asked() {
    let project = job();
    check(&project, &["upload", "x"], 2, &["<PATH>"]);
    check(&project, &["upload", "x", "report", "--retention-days", "0"], 2, &["retention-days"]);
    check(&project, &["upload", "a/b", "report"], 2, &["`a/b` is not a valid artifact name", "none of `\""]);
    check(&project, &["upload", "x", "absent"], 2, &["absent", "No such file"]);
    check(&project, &["upload", "x", ".loops"], 2, &["there is no file in `.loops`"]);
    check(&project, &["download", "x"], 2, &["--to"]);
    check(&project, &["download", "run:now", "--to", "to"], 2, &["invalid run `run:now`", "`run:latest`"]);
    check(&project, &["download", "a?b", "--to", "to"], 2, &["`a?b` is not a valid artifact name"]);
    check(&project, &["download", "x", "--to", "to", "--repo", "o"], 2, &["invalid repository `o`"]);
    let both = ["download", "run:latest", "--to", "to", "--run", "1"];
    check(&project, &both, 2, &["`run:latest` and `--run` both name a run"]);
}

#[test]
fn a_service_that_is_not_there_is_69_and_says_what_to_do() {
    let here = Project::new().file("report/summary.md", "all is well\n");
    check(
        &here,
        &["upload", "x", "report"],
        69,
        &["this job offers no artifact service", "actions/upload-artifact"],
    );
    let server = Project::new()
        .file("report/summary.md", "all is well\n")
        .env("GITHUB_SERVER_URL", "https://github.corp.example");
    check(&server, &["upload", "x", "report"], 69, &["actions/upload-artifact@v3"]);
    check(&here, &["download", "x", "--to", "to"], 2, &["no repository was given", "GITHUB_REPOSITORY"]);
    let down = job();
    check(&down, &["upload", "x", "report"], 69, &["cannot store `x`", "githubstatus"]);
    check(&down, &["download", "x", "--to", "to"], 69, &["cannot fetch `x`", "githubstatus"]);
    check(&down, &["download", "run:7", "--to", "to"], 69, &["cannot fetch `run:7`"]);
    check(&down, &["download", "run:latest", "--to", "to"], 69, &["cannot fetch `run:latest`"]);
}

#[test]
fn a_token_that_says_nothing_is_an_error_and_is_not_shown() {
    let project = job().env("ACTIONS_RUNTIME_TOKEN", "geheim.geheim.geheim");
    let ran = project.run(&["artifact", "upload", "x", "report"]).code(4);
    let ran = ran.says("`ACTIONS_RUNTIME_TOKEN` does not name a run with artifacts");
    assert!(!ran.all().contains("geheim"), "{}", ran.all());
}
