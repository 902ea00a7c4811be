//! A coder that changes what its work is judged by: the run goes on with the loop as it was, and says what changed.

use super::*;
use crate::common::git;

/// A repository in which the coder runs a script, with a command that tests.
fn repository(check: &str, script: &str) -> Project {
    let implements = format!("{script}\necho '{}'", result(&json!({"status": "complete", "summary": "s"})));
    let project = one(&format!("roles: {{tester: {{check: {check:?}}}}}")).says("implement", implements);
    project.write("check.sh", "exit 1\n");
    project.write("tests/a.sh", "exit 0\n");
    project.write(".gitignore", "calls/\nbin/\nscript/\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "start"]);
    project
}

#[test]
fn a_coder_that_edits_the_check_script_and_the_loop_file_is_told_on() {
    let script = "echo 'exit 0' > check.sh; sed -i 's/goal: reach it/goal: something else/; s/check: .*/check: exit 1}}/' .loops/main.yaml";
    let project = repository("bash ./check.sh", script);
    let ran = project.works(0);
    let told = project.told(project.asked().iter().position(|call| call == "verify_step one").unwrap() + 1);
    assert!(
        told.contains("files that changed since the run began: `.loops/main.yaml` and `check.sh`."),
        "{told}"
    );
    assert!(told.contains("Goal of the whole work:\nreach it\n"), "{told}");
    for said in [
        "`.loops/main.yaml` is not what it was when the run began; the run goes on with the loop as it was",
        "`check.sh` is not what it was when the run began, and tests are run by it",
    ] {
        assert_eq!(ran.all().matches(said).count(), 1, "{said}: {}", ran.all());
        let summary = project.run(&["report", "main", "--format", "summary"]).stdout;
        let (_, said) = said.rsplit_once('`').unwrap();
        assert!(summary.contains(said), "{summary}");
    }
    assert_eq!(project.read("check.sh"), "exit 0\n", "it stays: a test may need it");
}

#[test]
fn a_check_script_that_is_made_or_removed_is_another_one_too() {
    for script in [
        "echo 'exit 0' > new.sh",
        "git rm -q check.sh; echo 'exit 0' > new.sh",
        "chmod +x check.sh; cp tests/a.sh new.sh",
    ] {
        let project = repository("sh new.sh || sh check.sh", script);
        let ran = project.works(0);
        assert!(ran.all().contains("`new.sh` is not what it was"), "{script}: {}", ran.all());
        assert_eq!(
            ran.all().contains("`check.sh` is not what it was"),
            script.contains("check.sh"),
            "{script}"
        );
    }
}

#[test]
fn nothing_is_said_of_other_files_nor_of_what_was_changed_before_the_run() {
    let project =
        repository("bash check.sh && bash tests/a.sh tests", "echo x > other; echo '# more' > tests/b.sh");
    project.write("check.sh", "exit 0\n");
    let ran = project.works(0);
    assert!(!ran.all().contains("is not what it was"), "{}", ran.all());
    assert!(!project.told(4).contains("since the run began"), "{}", project.told(4));
}

/// What is put back is not a change of the rules.
#[test]
fn it_is_said_again_in_a_run_that_goes_on() {
    let project = repository("bash check.sh", "echo 'exit 0' > check.sh")
        .says("verify_step.1", "kill -9 $PPID; sleep 0.2; exit 1");
    assert_eq!(project.run(&["run", "main", "--no-ci", "--yes"]).code, None);
    let ran = project.resumes(0);
    assert!(ran.all().contains("`check.sh` is not what it was when the run began"), "{}", ran.all());
}
