//! `run --worktree`: where the work is done, and that none of it is lost. With real repositories.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::common::{Project, Ran, signal};

const IDENTITY: [&str; 4] = ["-c", "user.name=n", "-c", "user.email=e@example.com"];

fn git(project: &Project, directory: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(IDENTITY).args(arguments).current_dir(project.at(directory));
    let ran = Ran::of(&command.env("HOME", project.path()).output().unwrap());
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.all());
    ran.stdout.trim_end().to_owned()
}

/// A repository with one commit and a loop whose action is like this.
fn repository(action: &str) -> Project {
    let project = Project::with_loop(&looped(action)).file("file", "committed\n");
    git(&project, ".", &["init", "-q", "-b", "trunk"]);
    git(&project, ".", &["add", "file"]);
    git(&project, ".", &["commit", "-q", "-m", "first"]);
    project
}

fn looped(action: &str) -> String {
    format!(
        "name: main\ndescription: d\ninitial: a\nstates:\n  a: {{action: '{action}', on_yes: done, on_no: failed, on_error: failed}}\n  done: {{terminal: true}}\n  failed: {{terminal: true}}\n"
    )
}

/// Returns the worktrees below `.loops`, as paths within the project.
fn trees(project: &Project) -> Vec<String> {
    let entries = fs::read_dir(project.at(".loops/.worktrees")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name != ".gitignore").map(|name| format!(".loops/.worktrees/{name}")).collect()
}

fn branches(project: &Project) -> usize {
    git(project, ".", &["branch", "--list", "ll-loop/*"]).lines().count()
}

#[test]
fn the_work_is_done_beside_the_checkout_and_kept() {
    let project = repository("pwd > where; echo changed >> file; git rev-parse --abbrev-ref HEAD > branch");
    fs::write(project.at("file"), "committed\nnot committed\n").unwrap();
    let ran = project.run(&["run", "main", "--worktree"]).code(0);
    let tree = trees(&project).remove(0);
    let instance = tree.rsplit('/').next().unwrap().to_owned();
    assert_eq!(project.read("file"), "committed\nnot committed\n", "the checkout is as it was");
    assert!(!project.exists("where"));
    assert_eq!(project.read(&format!("{tree}/file")), "committed\nchanged\n");
    assert!(project.read(&format!("{tree}/where")).trim().ends_with(&tree));
    assert_eq!(project.read(&format!("{tree}/branch")).trim(), format!("ll-loop/{instance}"));
    let ran = ran.says("uncommitted change").says("not included").says("3 files not committed");
    ran.says(&format!("git worktree remove {}", project.at(&tree).display()));
    // The run belongs to the checkout.
    assert!(project.exists(&format!(".loops/.history/main/{instance}.events.jsonl")));
    assert!(!project.exists(&format!("{tree}/.loops/.running")));
    project
        .run(&["status", "main"])
        .code(0)
        .says("completed")
        .says(&format!("worktree   {}", project.at(&tree).display()));
    let status = git(&project, ".", &["status", "--porcelain", "--", ".loops"]);
    assert!(!status.contains("worktree") && !status.contains(".running"), "{status}");
}

#[test]
fn commits_are_kept_on_the_branch() {
    let project =
        repository("echo more >> file; git -c user.name=n -c user.email=e@example.com commit -qam second");
    let ran = project.run(&["run", "main", "--worktree"]).code(0).says("1 commit");
    let branch = ran.all().split("git merge ").nth(1).unwrap().split(',').next().unwrap().to_owned();
    git(&project, ".", &["merge", "-q", &branch]);
    assert_eq!(project.read("file"), "committed\nmore\n");
}

#[test]
fn an_unused_worktree_goes_with_its_branch_wherever_the_checkout_is_by_then() {
    let project = repository(
        "git -C ../../.. -c user.name=n -c user.email=e@example.com commit -q --amend --allow-empty -m other",
    );
    let ran = project.run(&["run", "main", "--worktree"]).code(0).says("nothing was changed in the worktree");
    assert!(!ran.all().contains("git worktree remove"), "{}", ran.all());
    assert_eq!((trees(&project).len(), branches(&project)), (0, 0));
}

#[test]
fn a_worktree_goes_only_when_there_is_nothing_in_it() {
    let project = repository("true");
    let ran = project.run(&["run", "main", "--worktree"]).code(0).says("nothing was changed in the worktree");
    assert!(!ran.all().contains("not included"), "{}", ran.all());
    assert_eq!((trees(&project).len(), branches(&project)), (0, 0));
    for (action, kept) in [
        ("echo x > new", "1 file not committed"),
        (
            "echo ignored > .gitignore; git add .gitignore; git -c user.name=n -c user.email=e@example.com commit -qm i; echo x > ignored",
            "1 commit, 1 file not committed",
        ),
        (
            "git checkout -q --detach; git -c user.name=n -c user.email=e@example.com commit -q --allow-empty -m x",
            "1 commit",
        ),
        ("rm file; exit 1", "1 file not committed"),
    ] {
        project.write(".loops/main.yaml", &looped(action));
        let before = trees(&project).len();
        let ran = project.run(&["run", "main", "--worktree"]);
        assert!(ran.all().contains(kept), "{action}: {}", ran.all());
        assert_eq!((trees(&project).len(), branches(&project)), (before + 1, before + 1), "{action}");
    }
}

#[test]
fn a_run_that_can_be_continued_keeps_its_worktree() {
    let project = repository("touch $HOME/begun; sleep 60");
    let child = project.start_until(&["run", "main", "--worktree"], "begun");
    signal(&child, Signal::TERM);
    Ran::of(&child.wait_with_output().unwrap()).code(143).says("nothing was changed yet");
    assert_eq!((trees(&project).len(), branches(&project)), (1, 1));
}

#[test]
fn a_run_in_a_worktree_that_is_interrupted_in_its_terminal_goes_on_there() {
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'echo work > new', on_yes: done}\n  done: {terminal: true, action: 'cat new >> $HOME/bye; touch $HOME/said; test -e $HOME/go || sleep 60'}\n";
    let project = repository("true").file(".loops/main.yaml", text);
    let child = project.start_until(&["run", "main", "--worktree"], "said");
    signal(&child, Signal::QUIT);
    Ran::of(&child.wait_with_output().unwrap()).code(131).says("1 file not committed");
    assert_eq!(project.end()["outcome"], "interrupted");
    project.write("go", "");
    project.run(&["resume", "main"]).code(0);
    assert_eq!(project.read("bye"), "work\nwork\n");
    assert_eq!((trees(&project).len(), project.exists("new")), (1, false));
}

#[test]
fn runs_in_worktrees_meet_neither_the_checkout_nor_each_other() {
    let project =
        repository("touch $HOME/begun; until test -e $HOME/go || ! test -d $PWD; do sleep 0.02; done");
    let checkout = project.start_until(&["run", "main"], "begun");
    fs::remove_file(project.at("begun")).unwrap();
    let one = project.start_until(&["run", "main", "--worktree"], "begun");
    fs::remove_file(project.at("begun")).unwrap();
    // It comes back with the first event, which may be before the action begins.
    project.run(&["run", "main", "--worktree", "--background"]).code(0).says("works in ");
    crate::common::wait_for(|| project.exists("begun"));
    project.run(&["run", "main"]).code(73);
    assert_eq!(project.run(&["list", "--running"]).code(0).stdout.lines().count(), 3);
    project.write("go", "");
    for child in [checkout, one] {
        Ran::of(&child.wait_with_output().unwrap()).code(0);
    }
    project.run(&["logs", "-f"]).code(0);
    crate::common::wait_for(|| trees(&project).is_empty());
}

#[test]
fn a_loop_of_a_directory_works_in_the_same_directory() {
    let project = repository("true").file("sub/.loops/inner.yaml", &looped("pwd > where")).file("sub/x", "");
    git(&project, ".", &["add", "sub/x"]);
    git(&project, ".", &["commit", "-q", "-m", "sub"]);
    let mut command = project.command(&["run", "inner", "--worktree"]);
    Ran::of(&command.current_dir(project.at("sub")).output().unwrap()).code(0);
    let tree = fs::read_dir(project.at("sub/.loops/.worktrees")).unwrap().map(|entry| entry.unwrap().path());
    let tree = tree.filter(|path| path.is_dir()).collect::<Vec<_>>().remove(0);
    assert!(fs::read_to_string(tree.join("sub/where")).unwrap().trim().ends_with("/sub"));
}

#[test]
fn the_variables_of_a_hook_do_not_lead_back_to_the_checkout() {
    let project = repository(
        "git -c user.name=n -c user.email=e@example.com commit -q --allow-empty -m x; git rev-parse --show-toplevel > $HOME/top",
    );
    let mut command = project.command(&["run", "main", "--worktree"]);
    command
        .env("GIT_DIR", project.at(".git"))
        .env("GIT_INDEX_FILE", project.at(".git/index"))
        .env("GIT_PREFIX", "");
    Ran::of(&command.output().unwrap()).code(0).says("1 commit");
    assert!(project.read("top").contains(".loops/.worktrees/"));
    assert_eq!(git(&project, ".", &["rev-list", "--count", "trunk"]), "1");
}

#[test]
fn where_there_is_nothing_to_begin_with_nothing_is_run() {
    let project = Project::with_loop(&looped("touch ran"));
    let refused = |project: &Project, says: &str, help: &str| {
        project.run(&["run", "main", "--worktree"]).code(2).says(says).says(help);
        assert!(!project.exists("ran") && project.run_files(".events.jsonl").is_empty());
    };
    refused(&project, "needs a git repository", "git init");
    git(&project, ".", &["init", "-q"]);
    refused(&project, "there is none yet", "commit first");
    git(&project, ".", &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::write(project.at(".loops/.worktrees"), "a file where a directory has to be").unwrap();
    refused(&project, "cannot make a worktree", "git worktree list");
    assert_eq!(branches(&project), 0);
    fs::remove_file(project.at(".loops/.worktrees")).unwrap();
    let mut command = project.command(&["run", "main", "--worktree"]);
    let ran = Ran::of(&command.env("PATH", "/nowhere").stdin(Stdio::null()).output().unwrap());
    ran.code(2).says("git cannot be started");
}
