//! A loop file is code: in jobs that strangers can set off, only the repository's own is run.

use crate::common::{Project, git};

const LOOP: &str = "\
name: main
initial: a
states:
  a: {action: touch ran, next: b}
  b: {loop: inner, on_success: done, on_failure: done}
  done: {terminal: true}
";

const INNER: &str =
    "name: inner\ninitial: a\nstates: {a: {action: 'true', on_yes: done}, done: {terminal: true}}\n";

const PAYLOAD: &str = r#"{
  "pull_request": {
    "number": 7,
    "head": {"ref": "fix", "sha": "HEAD", "repo": {"full_name": "mallory/project"}},
    "base": {"ref": "main", "sha": "BASE", "repo": {"full_name": "octo/project"}}
  },
  "workflow_run": {"head_sha": "HEAD", "head_repository": {"full_name": "mallory/project"}},
  "repository": {"full_name": "octo/project"}
}"#;

/// A repository with a commit of its own, and one of a fork on top; the own one is checked out.
fn job(event: &str) -> Project {
    let project = Project::with_loop(LOOP).file(".loops/inner.yaml", INNER);
    git(&project, &["init", "--quiet", "--initial-branch=main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "own"]);
    let base = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "--quiet", "-b", "fork"]);
    project.write(".loops/main.yaml", &LOOP.replace("touch ran", "touch stolen"));
    git(&project, &["commit", "--quiet", "-am", "fork"]);
    let head = git(&project, &["rev-parse", "HEAD"]);
    git(&project, &["checkout", "--quiet", "main"]);
    let payload = PAYLOAD.replace("HEAD", &head).replace("BASE", &base);
    project.write(".git/event.json", &payload);
    let path = project.at(".git/event.json").to_string_lossy().into_owned();
    project
        .env("GITHUB_EVENT_NAME", event)
        .env("GITHUB_EVENT_PATH", path)
        .env("GITHUB_REPOSITORY", "octo/project")
        .env("GITHUB_SHA", base)
}

#[test]
fn the_repositorys_own_commit_is_run() {
    for event in ["pull_request_target", "workflow_run", "issue_comment"] {
        let project = job(event);
        project.run(&["run", "main"]).code(0);
        assert!(project.exists("ran"));
        // What a run leaves behind is no reason to refuse the next one.
        project.run(&["run", "main"]).code(0);
    }
}

#[test]
fn a_strangers_commit_is_refused_before_anything_runs() {
    for (event, why) in [
        ("pull_request_target", "comes from the repository mallory/project"),
        ("workflow_run", "comes from the repository mallory/project"),
        ("issue_comment", "is not known to be a commit of this repository's own branches"),
    ] {
        let project = job(event);
        git(&project, &["checkout", "--quiet", "fork"]);
        let ran = project.run(&["run", "main"]).code(2);
        let ran = ran.says(&format!(".loops/main.yaml is not run: the event `{event}`")).says(why);
        let ran = ran.says("help: leave `ref` and `repository` out of actions/checkout");
        assert!(!project.exists("stolen") && !project.exists(".loops/.running"), "{}", ran.all());
        project.run(&["run", "--no-ci", "main"]).code(2).says(why);
        project.run(&["run", "main", "--allow-untrusted"]).code(0);
        assert!(project.exists("stolen"));
    }
}

#[test]
fn a_strangers_commit_is_run_where_the_job_has_no_secrets() {
    let project = job("pull_request");
    git(&project, &["checkout", "--quiet", "fork"]);
    project.run(&["run", "main"]).code(0);
}

/// Puts something in the place of what the trusted commit has, and returns what is said about it.
#[track_caller]
fn check(change: impl FnOnce(&Project), why: &str) {
    let project = job("pull_request_target");
    change(&project);
    project.run(&["run", "main"]).code(2).says(why);
    assert!(!project.exists("ran") && !project.exists("stolen"));
    project.run(&["run", "main", "--allow-untrusted"]).code(0);
}

#[test]
fn other_files_in_the_trusted_commit_are_refused() {
    check(
        |project| drop(git(project, &["checkout", "fork", "--", ".loops"])),
        ".loops/main.yaml is not what it is in the commit",
    );
    check(
        |project| project.write(".loops/inner.yaml", &INNER.replace("'true'", "touch stolen")),
        ".loops/inner.yaml is not what it is",
    );
    check(|project| project.write(".loops/new.yaml", INNER), ".loops/new.yaml is not what it is");
    check(
        |project| {
            project.write(".git/info/exclude", "new.yaml\n");
            project.write(".loops/new.yaml", INNER);
        },
        ".loops/new.yaml is not what it is",
    );
    check(
        |project| {
            git(project, &["rm", "--quiet", "--cached", ".loops/main.yaml"]);
            project.write(".git/info/exclude", "main.yaml\n");
        },
        "the loop is not all of the commit",
    );
    check(
        |project| drop(std::fs::rename(project.at(".git"), project.at("git-dir"))),
        "what is checked out in",
    );
}

#[test]
fn what_git_was_told_not_to_look_at_is_compared_all_the_same() {
    let stolen = LOOP.replace("touch ran", "touch stolen");
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        check(
            |project| {
                git(project, &["update-index", flag, ".loops/main.yaml", ".loops/inner.yaml"]);
                project.write(".loops/main.yaml", &stolen);
            },
            ".loops/main.yaml is not what it is in the commit",
        );
        check(
            |project| {
                git(project, &["update-index", flag, ".loops/main.yaml", ".loops/inner.yaml"]);
                project.write(".loops/inner.yaml", &INNER.replace("'true'", "touch stolen"));
            },
            ".loops/inner.yaml is not what it is in the commit",
        );
    }
    // A file with the size and the times that the index knows.
    check(
        |project| {
            let file = project.at(".loops/main.yaml");
            let other = LOOP.replace("touch ran", "touch ra2");
            let times = std::fs::metadata(&file).unwrap().modified().unwrap();
            git(project, &["config", "core.trustctime", "false"]);
            git(project, &["config", "core.checkStat", "minimal"]);
            std::thread::sleep(std::time::Duration::from_millis(1100));
            git(project, &["update-index", "--refresh"]);
            project.write(".git/touch", "");
            std::fs::write(&file, other).unwrap();
            std::fs::File::options().append(true).open(&file).unwrap().set_modified(times).unwrap();
        },
        ".loops/main.yaml is not what it is in the commit",
    );
    // The commit of the fork in the place of the trusted one, for whoever asks git.
    check(
        |project| {
            git(project, &["replace", "main", "fork"]);
            git(project, &["checkout", "fork", "--", ".loops"]);
        },
        ".loops/main.yaml is not what it is in the commit",
    );
    // A filter that makes the trusted file of any.
    check(
        |project| {
            git(project, &["config", "filter.same.clean", "git cat-file blob HEAD:.loops/main.yaml"]);
            project.write(".git/info/attributes", ".loops/main.yaml filter=same\n");
            project.write(".loops/main.yaml", &stolen);
            git(project, &["add", ".loops/main.yaml"]);
        },
        ".loops/main.yaml is not what it is in the commit",
    );
}

#[test]
fn what_a_loop_pulls_in_is_compared_too() {
    const WITH_IMPORT: &str = "\
name: main
initial: a
import: [parts.yaml]
states:
  a: {fragment: act}
  done: {terminal: true}
";
    const PARTS: &str = "fragments:\n  act: {action: touch ran, next: done}\n";
    let project = job("pull_request_target");
    project.write(".loops/main.yaml", WITH_IMPORT);
    project.write(".loops/parts.yaml", PARTS);
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "parts"]);
    let own = git(&project, &["rev-parse", "HEAD"]);
    let project = project.env("GITHUB_SHA", own);
    project.run(&["run", "main"]).code(0);
    std::fs::remove_file(project.at("ran")).unwrap();
    git(&project, &["update-index", "--assume-unchanged", ".loops/parts.yaml"]);
    project.write(".loops/parts.yaml", &PARTS.replace("touch ran", "touch stolen"));
    project.run(&["run", "main"]).code(2).says(".loops/parts.yaml is not what it is in the commit");
    assert!(!project.exists("ran") && !project.exists("stolen"));
}

#[test]
fn a_checkout_beside_the_trusted_one_is_refused() {
    let project = job("pull_request_target");
    git(&project, &["clone", "--quiet", "--branch", "fork", ".", "theirs"]);
    project.run(&["run", "theirs/.loops/main.yaml"]).code(2).says("the loop is not all of the commit");
    let theirs = project.command(&["run", "main"]).current_dir(project.at("theirs")).output().unwrap();
    crate::common::Ran::of(&theirs).code(2).says("comes from the repository mallory/project");
    assert!(!project.exists("stolen") && !project.exists("theirs/stolen"));
}

#[test]
fn a_run_is_not_resumed_with_a_strangers_commit() {
    let slow = LOOP.replace("touch ran", "touch ran; sleep 60");
    let project = job("pull_request_target");
    project.write(".loops/main.yaml", &slow);
    git(&project, &["commit", "--quiet", "-am", "slow"]);
    let project = {
        let own = git(&project, &["rev-parse", "HEAD"]);
        project.env("GITHUB_SHA", own)
    };
    let child = project.start_until(&["run", "main"], "ran");
    crate::common::signal(&child, rustix::process::Signal::TERM);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(143));
    git(&project, &["checkout", "--quiet", "fork"]);
    project
        .run(&["resume", "main", "--accept-changes"])
        .code(2)
        .says("comes from the repository mallory/project");
    assert!(!project.exists("stolen"));
}

#[test]
fn the_action_agrees_by_its_input() {
    let project = job("workflow_run").env("INPUT_LOOP", "main").env("INPUT_ALLOW_UNTRUSTED", "true");
    git(&project, &["checkout", "--quiet", "fork"]);
    project.run(&["action"]).code(0);
    assert!(project.exists("stolen"));
}

const PASTES: &str = "\
name: main
description: d
initial: look
states:
  look: {action: git log -1 --format=%s, capture: title, next: tell}
  tell: {action: 'touch ran; echo ${captured.title}', next: done}
  done: {terminal: true, action: 'echo ${env.TITLE}'}
";

/// A job of the repository's own commit with this loop, on an event.
fn reading(event: &str, text: &str) -> Project {
    let project = job(event);
    project.write(".loops/main.yaml", text);
    git(&project, &["commit", "--quiet", "-am", "another"]);
    let own = git(&project, &["rev-parse", "HEAD"]);
    project.env("GITHUB_SHA", own)
}

#[test]
fn a_loop_that_pastes_what_strangers_write_is_refused_with_every_place() {
    for event in [
        "pull_request",
        "pull_request_target",
        "pull_request_review",
        "pull_request_review_comment",
        "issues",
        "issue_comment",
        "discussion",
        "discussion_comment",
        "workflow_run",
    ] {
        let project = reading(event, PASTES).env("TITLE", "x");
        for more in [&[][..], &["--allow-untrusted"], &["--no-ci"]] {
            let ran = project.run(&[&["run", "main"], more].concat()).code(2);
            let ran = ran.says(&format!("strangers can set off the event `{event}`, and in 2 places"));
            let ran = ran
                .says("error[template-injection]: `${captured.title}`")
                .says("error[template-injection]: `${env.TITLE}`");
            ran.says("write `${captured.title:shell}`");
            assert!(!project.exists("ran") && !project.exists(".loops/.running"));
        }
        project.write(
            ".loops/main.yaml",
            &PASTES.replace("title}", "title:shell}").replace("TITLE}", "TITLE:shell}"),
        );
        git(&project, &["commit", "--quiet", "-am", "mended"]);
        let own = git(&project, &["rev-parse", "HEAD"]);
        project.env("GITHUB_SHA", own).run(&["run", "main"]).code(0);
    }
}

#[test]
fn where_only_colleagues_write_pasting_is_a_warning() {
    for event in ["push", "schedule", "workflow_dispatch", "merge_group"] {
        let ran = reading(event, PASTES).env("TITLE", "x").run(&["run", "main"]).code(0);
        ran.says("has 2 warnings");
    }
    // A pull request of the repository's own.
    let project = reading("pull_request", PASTES).env("TITLE", "x");
    let payload = std::fs::read_to_string(project.at(".git/event.json")).unwrap();
    project.write(".git/event.json", &payload.replace("mallory", "octo"));
    project.run(&["run", "main"]).code(0);
}

#[test]
fn a_given_value_is_refused_where_it_could_write_a_command() {
    const GIVEN: &str = "\
name: main
description: d
initial: tell
context: {title: none, input: none}
states:
  tell: {action: 'touch ran; echo ${context.title} ${context.input}', next: done}
  done: {terminal: true}
";
    let project = reading("issues", GIVEN);
    for (given, code) in [
        (&["--context", "title=v1.2/a_b"][..], 0),
        (&["--context", "title=a b"], 2),
        (&["--context", "title=$(id)"], 2),
        (&["a;b"], 2),
        (&["ab"], 0),
        (&["--context", "other=a b"], 0),
    ] {
        drop(std::fs::remove_file(project.at("ran")));
        project.run(&[&["run", "main"], given].concat()).code(code);
        assert_eq!(project.exists("ran"), code == 0, "{given:?}");
    }
    reading("push", GIVEN).run(&["run", "main", "--context", "title=a b"]).code(0);
}

#[test]
fn sub_loops_and_parents_are_looked_at_as_well() {
    const KID: &str = "\
name: inner
description: d
initial: a
parameters: {what: {type: string, default: none}}
states:
  a: {action: 'touch ran; echo ${context.what}', on_yes: done}
  done: {terminal: true}
";
    let main = |call: &str| {
        format!(
            "name: main\ndescription: d\ninitial: a\ncontext: {{which: inner}}\nstates:\n  a: {{action: 'echo \"a b\"', capture: what, next: b}}\n  \
             b: {{{call}, on_success: done, on_failure: done, on_error: done}}\n  done: {{terminal: true}}\n"
        )
    };
    let check = |event: &str, call: &str, kid: &str| {
        let project = job(event);
        project.write(".loops/main.yaml", &main(call));
        project.write(".loops/inner.yaml", kid);
        git(&project, &["commit", "--quiet", "-am", "another"]);
        let own = git(&project, &["rev-parse", "HEAD"]);
        let project = project.env("GITHUB_SHA", own);
        let ran = project.run(&["run", "main"]);
        (ran.code, project.exists("ran"), project.run(&["validate", "main"]).code(0).all())
    };
    // The value of a parameter.
    let (code, has_run, said) = check("issues", "loop: inner, with: {what: '${captured.what}'}", KID);
    assert_eq!((code, has_run), (Some(2), false), "{said}");
    assert!(
        said.contains(
            "warning[template-injection]: in `a` of the loop `inner` (.loops/inner.yaml:6), `${context.what}`"
        ),
        "{said}"
    );
    // A value of the author's own.
    let (code, has_run, said) = check("issues", "loop: inner, with: {what: fine}", KID);
    assert_eq!((code, has_run), (Some(0), true), "{said}");
    assert!(!said.contains("template-injection"), "{said}");
    // Everything.
    let (code, has_run, said) = check("issues", "loop: inner, context_passthrough: true", KID);
    assert_eq!((code, has_run), (Some(2), false), "{said}");
    assert!(said.contains("template-injection"), "{said}");
    // What the sub-loop pastes itself is said of the sub-loop, and refused with the loop around it.
    let own = KID.replace("context.what", "env.HOME");
    let (code, has_run, said) = check("issues", "loop: inner", &own);
    assert_eq!((code, has_run), (Some(2), false), "{said}");
    assert!(!said.contains("template-injection"), "{said}");
    // A name that is known only at run time: it does not begin.
    let (_, has_run, _) = check("issues", "loop: '${context.which}', with: {what: '${captured.what}'}", KID);
    assert!(!has_run);
    let (_, has_run, _) = check("push", "loop: '${context.which}', with: {what: '${captured.what}'}", KID);
    assert!(has_run);
    // A parent and a library of fragments.
    let project = reading("issues", "name: main\nfrom: base\n");
    project.write(".loops/base.yaml", &PASTES.replace("name: main", "name: base"));
    project.write(".loops/parts.yaml", "fragments: {say: {action: 'touch ran; echo ${prev.output}'}}\n");
    project.write(".loops/uses.yaml", "name: uses\ndescription: d\nimport: [parts.yaml]\ninitial: a\nstates: {a: {action: x, on_yes: b, on_no: b, on_error: b}, b: {fragment: say, next: done}, done: {terminal: true}}\n");
    git(&project, &["add", "."]);
    git(&project, &["commit", "--quiet", "-m", "more"]);
    let own = git(&project, &["rev-parse", "HEAD"]);
    let project = project.env("GITHUB_SHA", own);
    project.run(&["run", "main"]).code(2).says(".loops/base.yaml:6:");
    project.run(&["run", "uses"]).code(2).says(".loops/parts.yaml:1:");
    assert!(!project.exists("ran"));
}

#[test]
fn a_run_that_goes_on_is_looked_at_again() {
    let text = "name: main\ndescription: d\ninitial: a\ncontext: {title: none}\nstates:\n  a: {action: 'test -e there', retryable_exit_codes: [1], on_yes: b, on_no: wait}\n  wait: {action: 'echo CONTEXT_HANDOFF: more', next: a}\n  b: {action: 'touch ran; echo ${context.title}', next: done}\n  done: {terminal: true}\n";
    let project = reading("push", text);
    project.run(&["run", "main", "--context", "title=a b"]).code(75);
    let project = project.env("GITHUB_EVENT_NAME", "issues");
    project.run(&["resume", "main"]).code(2).says("`${context.title}`");
    assert!(!project.exists("ran"));
}

#[test]
fn pasting_is_an_error_of_a_strict_validation() {
    let project = Project::with_loop(PASTES);
    project.run(&["validate", "main"]).code(0).says("warning[template-injection]");
    project.run(&["validate", "--strict", "main"]).code(2).says("error[template-injection]");
}
