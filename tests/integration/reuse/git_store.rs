//! `--reuse-store git`: jobs that share no folder share what they have verified by refs of a repository.

use std::process::Command;

use tempfile::TempDir;

use super::{CHECK, git, made, project};
use crate::common::Project;

const RUN: [&str; 5] = ["run", "main", "--ci=plain", "--reuse-store", "git"];

/// A repository on a server.
fn server() -> TempDir {
    let server = TempDir::new().unwrap();
    let done = Command::new("git").args(["init", "-q", "--bare"]).arg(server.path()).status().unwrap();
    assert!(done.success());
    server
}

/// The checkout of a job of a push.
fn job(server: &TempDir, of: Option<&Project>) -> Project {
    let place = server.path().to_str().unwrap();
    match of {
        None => {
            let project = project();
            project.write("check.sh", &format!("{CHECK}[ -z \"$BROKEN\" ]\n"));
            git(&project, &["commit", "-q", "-a", "-m", "check"]);
            git(&project, &["remote", "add", "origin", place]);
            git(&project, &["push", "-q", "origin", "main"]);
            project
        }
        Some(of) => {
            let project = Project::new();
            git(&project, &["init", "-q", "-b", "main"]);
            git(&project, &["remote", "add", "origin", place]);
            git(&project, &["fetch", "-q", "origin", "main"]);
            git(&project, &["reset", "-q", "--hard", "FETCH_HEAD"]);
            project.write("local.env", &of.read("local.env"));
            project
        }
    }
}

fn push_job(server: &TempDir, of: Option<&Project>) -> Project {
    job(server, of).env("GITHUB_EVENT_NAME", "push")
}

fn refs(server: &TempDir) -> Vec<String> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(server.path())
        .args(["for-each-ref", "--format=%(refname)", "refs/ll-loop/"])
        .output()
        .unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn what_one_job_has_verified_another_one_takes() {
    let server = server();
    let first = push_job(&server, None);
    first.run(&RUN).code(0);
    let kept = refs(&server);
    assert_eq!(kept.len(), 1);
    assert!(kept[0].starts_with("refs/ll-loop/reuse/") && kept[0].contains("/repository-"), "{kept:?}");
    let second = push_job(&server, Some(&first));
    drop(second.run(&RUN).code(0).says("same inputs, some in no commit, by run main-"));
    assert_eq!(made(&second), 0);
    // A person takes what jobs have left, and leaves nothing there.
    let before = refs(&server).len();
    let person = job(&server, Some(&first));
    drop(person.run(&["run", "main", "--reuse-store", "git"]).code(0));
    person.write("src/b.txt", "other\n");
    person.run(&["run", "main", "--reuse-store", "git"]).code(0);
    assert_eq!(refs(&server).len(), before);
}

#[test]
fn a_ref_that_holds_something_else_is_a_miss() {
    let server = server();
    let first = push_job(&server, None);
    first.run(&RUN).code(0);
    let kept = refs(&server).remove(0);
    // Whoever may push there may push anything.
    git(&first, &["push", "-q", "--force", "origin", &format!("HEAD:{kept}")]);
    let second = push_job(&server, Some(&first));
    second.run(&RUN).code(0);
    assert_eq!(made(&second), 1);
}

#[test]
fn a_server_that_cannot_be_reached_is_a_miss_and_never_the_verdict() {
    let server = server();
    let first = push_job(&server, None);
    first.run(&RUN).code(0);
    let second = push_job(&server, Some(&first));
    let ran = second.run(&["run", "main", "--ci=plain", "--reuse-store", "git=/nowhere/to/be/found"]).code(0);
    drop(ran.says("the results of other jobs cannot be used").says("not kept for other jobs"));
    assert_eq!(made(&second), 1);
    let none = second.run(&["run", "main", "--ci=plain", "--reuse-store", "git=upstream"]).code(0);
    drop(none.says("has no remote `upstream`"));
}

#[test]
fn a_record_that_was_proved_wrong_is_taken_by_nobody() {
    let server = server();
    let first = push_job(&server, None);
    first.run(&RUN).code(0);
    assert_eq!(refs(&server).len(), 1);
    // Scheduled runs prove the earlier one, and what the check reads is not named.
    let second = job(&server, Some(&first)).env("GITHUB_EVENT_NAME", "schedule").env("BROKEN", "1");
    drop(second.run(&RUN).code(1).says("had verified the same inputs, and this one does not"));
    assert_eq!(refs(&server), [""; 0]);
}
