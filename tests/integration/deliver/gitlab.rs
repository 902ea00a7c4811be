//! Deliveries from jobs of GitLab, whose token may push and see no merge request.

use std::fs;

use super::scene::{BRANCH_REF, DELIVERED, TIDY};
use crate::common::{Project, git};
use crate::forge::git_server::{Access, Bare, GitServer};

/// The token of the job.
const JOB_TOKEN: &str = "glcbt-64_job";

/// A project on GitLab that keeps what pushes say.
fn scene() -> (GitServer, Bare) {
    let server = GitServer::start();
    let bare = server.repositories.create("group/project");
    server.repositories.admit(JOB_TOKEN, Access::Write);
    bare.commits("main", &[(".loops/tidy.yaml", Some(TIDY)), ("src/a.txt", Some("wrong\n"))], "first");
    bare.hook(
        "pre-receive",
        "n=0\nwhile [ \"$n\" -lt \"${GIT_PUSH_OPTION_COUNT:-0}\" ]; do eval \"echo \\\"\\$GIT_PUSH_OPTION_$n\\\"\"; n=$((n+1)); done > said",
    );
    (server, bare)
}

fn job(server: &GitServer, bare: &Bare) -> Project {
    let project = Project::new();
    fs::remove_dir(project.at(".loops")).unwrap();
    git(&project, &["clone", "-q", &format!("file://{}", bare.path.display()), "."]);
    git(&project, &["remote", "set-url", "origin", &server.url("group/project")]);
    project.write(".git/info/exclude", "/reports\n/kept\n/*.llz\n");
    project
        .env("CI", "true")
        .env("GITLAB_CI", "true")
        .env("CI_SERVER_URL", server.web.url())
        .env("CI_PROJECT_PATH", "group/project")
        .env("CI_COMMIT_BRANCH", "main")
        .env("CI_JOB_TOKEN", JOB_TOKEN)
}

/// Runs the loop and delivers what it fixed, in two jobs; returns how the second ended, and what it said.
fn night(server: &GitServer, bare: &Bare) -> (Option<i32>, String) {
    let ran = job(server, bare);
    let begun = ran.run(&["run", "tidy", "--report-dir", "reports", "--on-change", "report"]);
    assert_eq!(begun.code, Some(0), "{}", begun.all());
    let mut files = fs::read_dir(ran.at("reports")).unwrap().map(|entry| entry.unwrap().path());
    let bundle = files.find(|path| path.extension().is_some_and(|end| end == "llz")).unwrap();
    let job = job(server, bare);
    fs::copy(bundle, job.at("fix.llz")).unwrap();
    let ended = job.run(&["deliver", "fix.llz", "--report-dir", "kept"]);
    (ended.code, ended.all())
}

#[test]
fn a_push_with_the_token_of_the_job_opens_the_merge_request() {
    let (server, bare) = scene();
    let (code, said) = night(&server, &bare);
    assert_eq!(code, Some(0), "{said}");
    let refs = bare.refs();
    assert!(refs.contains_key(BRANCH_REF), "{refs:#?}\n{said}");
    assert_eq!(refs.get(BRANCH_REF), refs.get(DELIVERED), "{said}");
    assert_eq!(bare.file(BRANCH_REF, "src/a.txt").as_deref().map(str::trim), Some("right"));
    let options = fs::read_to_string(bare.path.join("said")).unwrap();
    let begins: Vec<&str> = options.lines().map(|line| line.split('=').next().unwrap()).collect();
    let expected =
        ["merge_request.create", "merge_request.target", "merge_request.title", "merge_request.description"];
    assert_eq!(begins, expected, "{options}");
    assert!(options.contains("merge_request.target=main\n"), "{options}");
    // What cannot be known is said, and no secret is.
    assert!(said.contains("the token may not read merge requests"), "{said}");
    assert!(!said.contains(JOB_TOKEN), "{said}");

    // The second night pushes nothing, so that the merge request stays as it is.
    fs::remove_file(bare.path.join("said")).unwrap();
    let (code, said) = night(&server, &bare);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("unchanged"), "{said}");
    assert_eq!(bare.refs(), refs);
    assert!(!bare.path.join("said").exists());

    // A person's commit is never overwritten.
    bare.commits("ll-loop/tidy/main", &[("b.txt", Some("mine\n"))], "mine");
    let refs = bare.refs();
    let (code, said) = night(&server, &bare);
    assert_eq!(code, Some(5), "{said}");
    assert_eq!(bare.refs(), refs);
}

#[test]
fn a_project_that_takes_no_push_of_its_jobs_is_told_which_setting_helps() {
    let (server, bare) = scene();
    server.repositories.admit(JOB_TOKEN, Access::Read);
    let (code, said) = night(&server, &bare);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("Allow Git push requests to the repository"), "{said}");
    assert_eq!(bare.refs().len(), 1, "{said}");
}
