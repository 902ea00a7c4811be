//! When an earlier run stands for a new one, what others see of that, and when none does.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{LOOP, git, made, project};
use crate::common::{Project, Ran, git as git_says};

#[test]
fn a_run_that_finds_the_same_is_not_made_and_reports_like_any_other() {
    let project = project();
    let first = project.run(&["run", "main"]).code(0);
    assert!(first.all().contains("no earlier run is known"), "{}", first.all());
    let second = project.run(&["run", "main", "--report-dir", ".git/reports"]).code(0);
    assert_eq!(made(&project), 1, "{}", second.all());
    assert!(
        // `local.env` is an input that git ignores.
        second.all().contains("verified on tree ") && second.all().contains("same inputs, some in no commit"),
        "{}",
        second.all()
    );
    let reports = project.path().join(".git/reports");
    let read = |name: &str| std::fs::read_to_string(reports.join(name)).unwrap();
    let result: Value = serde_json::from_str(&read("result.json")).unwrap();
    assert_eq!(result["verified"], true);
    assert_eq!(result["verification"]["checks"][0]["confirmed"], "reused");
    assert_eq!(result["outputs"]["reused"], "true");
    assert_eq!(result["outputs"]["reused-from"], result["reused"]["run"]);
    assert!(
        read("junit.xml").contains("<testcase name=\"check\"") && !read("junit.xml").contains("<skipped")
    );
    assert!(read("outputs.env").contains("reused=true\n"));
    assert!(read("summary.md").contains("reused from run"));
    std::fs::remove_dir_all(reports).unwrap();
    // The journal of a run that was not made is one like any other.
    project.run(&["why"]).code(0);
    let history = project.run(&["history", "main"]).code(0);
    assert!(history.stdout.contains("success"), "{}", history.all());
    drop(project.run(&["stats"]).code(0).says("reused    1 run, which saved "));
}

/// A repository all of whose inputs are tracked.
fn tracked() -> Project {
    let project = project();
    project.write(".loops/main.yaml", &LOOP.replace("src/, local.env", "src/"));
    git(&project, &["commit", "-qam", "tracked inputs"]);
    project
}

#[test]
fn a_commit_is_named_only_where_it_has_what_was_verified() {
    let project = tracked();
    project.run(&["run", "main"]).code(0);
    let ran = project.run(&["run", "main", "--reuse-only"]).code(0);
    let head = git_says(&project, &["rev-parse", "HEAD"]);
    assert!(ran.all().contains(&format!("verified at {}, same inputs", &head[..12])), "{}", ran.all());
    project.write("src/new", "");
    project.run(&["run", "main"]).code(0);
    let ran = project.run(&["run", "main", "--reuse-only"]).code(0);
    assert!(!ran.all().contains("verified at "), "{}", ran.all());
    assert!(ran.all().contains("same inputs, some in no commit"), "{}", ran.all());
    // The file is in a commit now, but not in the one at which it was verified.
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-qm", "new"]);
    let ran = project.run(&["run", "main", "--reuse-only"]).code(0);
    assert!(!ran.all().contains("verified at ") && ran.all().contains("verified on tree "), "{}", ran.all());
}

#[test]
fn the_tree_on_which_a_check_passed_is_the_one_of_the_earlier_run() {
    let project = tracked();
    let tree = |ran: Ran| {
        let all = ran.all();
        let (_, rest) = all.rsplit_once("on tree ").unwrap();
        rest[..12].to_owned()
    };
    let passed = tree(project.run(&["run", "main"]).code(0));
    project.write("other.md", "changed\n");
    let ran = project.run(&["run", "main", "--reuse-only"]).code(0);
    ran.says("in an earlier run on tree").says(&passed);
    let ran = project.run(&["run", "main", "--reuse-only"]).code(0);
    ran.says("the run begins with 1 tracked file that differs from the commit: `other.md`");
}

/// Changes something, and expects that the check is made again, or that it is not.
#[track_caller]
fn after(project: &Project, what: &str, is_made: bool, change: impl FnOnce(&Project)) {
    change(project);
    let before = made(project);
    let ran = project.run(&["run", "main"]).code(0);
    assert_eq!(made(project) > before, is_made, "{what}: {}", ran.all());
    if is_made {
        project.run(&["run", "main", "--reuse-only"]).code(0);
        assert_eq!(made(project), before + 1, "{what}");
    }
}

#[test]
fn whatever_the_check_may_read_is_in_the_key() {
    let project = project();
    let mode = |path: &str, mode| {
        std::fs::set_permissions(project.at(path), PermissionsExt::from_mode(mode)).unwrap();
    };
    after(&project, "the first run", true, |_| {});
    after(&project, "what is no input", false, |p| p.write("other.md", "y\n"));
    after(&project, "an input", true, |p| p.write("src/b.txt", "c\n"));
    after(&project, "back", false, |p| p.write("src/b.txt", "b\n"));
    after(&project, "line ends alone", true, |p| p.write("src/b.txt", "b\r\n"));
    after(&project, "a mode", true, |_| mode("src/b.txt", 0o755));
    after(&project, "a program", true, |p| {
        p.write("src/run", "");
        mode("src/run", 0o755);
    });
    after(&project, "a program that its owner cannot run", true, |_| mode("src/run", 0o655));
    after(&project, "a new file", true, |p| p.write("src/deep/new.txt", ""));
    after(&project, "it goes", false, |p| std::fs::remove_file(p.at("src/deep/new.txt")).unwrap());
    after(&project, "a link in its place", true, |p| {
        std::fs::remove_file(p.at("src/b.txt")).unwrap();
        std::os::unix::fs::symlink("a.txt", p.at("src/b.txt")).unwrap();
    });
    after(&project, "an ignored file that is named", true, |p| p.write("local.env", "A=2\n"));
    after(&project, "the script of the check", true, |p| {
        p.write("check.sh", &format!("{}# x\n", super::CHECK));
    });
    after(&project, "a test that nobody named", true, |p| p.write("tests/test_new.py", "assert True\n"));
    after(&project, "a tool", true, |p| p.write("tool.version", "2\n"));
    after(&project, "a comment in the loop", false, |p| {
        p.write(".loops/main.yaml", &format!("# said\n{}", super::LOOP));
    });
    after(&project, "a sentence in the loop", true, |p| {
        p.write(".loops/main.yaml", &super::LOOP.replace("description: checks", "description: checks all"));
    });
    // What the index says is not believed.
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "all"]);
    after(&project, "a commit of the same", false, |_| {});
    git(&project, &["update-index", "--assume-unchanged", "src/a.txt"]);
    after(&project, "a file that git is told not to look at", true, |p| p.write("src/a.txt", "good too\n"));
}

#[test]
fn values_variables_and_options_are_in_the_key() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    for arguments in [
        &["run", "main", "--reuse-only", "--param", "level=2"][..],
        &["run", "main", "--reuse-only", "--context", "x=1"],
        &["run", "main", "--reuse-only", "-n", "7"],
    ] {
        let ran = project.run(arguments).code(2);
        assert!(ran.all().contains("nothing was run: not reused"), "{}", ran.all());
    }
    project.run(&["run", "main", "--reuse-only", "--param", "level=1"]).code(0);
    let project = project.env("MODE", "fast");
    let ran = project.run(&["run", "main", "--reuse-only"]).code(2);
    assert!(ran.all().contains("a variable of the environment"), "{}", ran.all());
    project.env("OTHER", "x").run(&["run", "main"]).code(0);
}

#[test]
fn a_miss_says_what_differs() {
    let project = project();
    project.run(&["run", "main"]).code(0);
    project.write("src/b.txt", "more\n");
    let ran = project.run(&["run", "main"]).code(0);
    assert!(ran.all().contains("not reused: src/b.txt changed since run main-"), "{}", ran.all());
}

#[test]
fn what_is_not_known_makes_no_key_and_nothing_is_kept() {
    for (what, change, said) in [
        ("a pattern without a file", "rm -r src; mkdir -p x; echo good > x/a", "holds no file"),
        ("a tool that fails", "echo exit 3 >> tool", "failed with exit code 3"),
        ("a tool that is gone", "rm tool", "cannot be started"),
        ("a pipe", "rm src/b.txt; mkfifo src/b.txt", "b.txt"),
        ("a link in the place of a folder", "mv src elsewhere; ln -s elsewhere src", "`src` is a link"),
        ("a repository inside", "git init -q src/inner; touch src/inner/x", "a repository of its own"),
        (
            "a repository in a folder that git ignores",
            "echo src/out/ >> .gitignore; git init -q src/out/inner; touch src/out/inner/x",
            "a repository of its own",
        ),
    ] {
        let project = project();
        let changed = project.program("sh", &["-ec", change]).output().unwrap();
        assert!(changed.status.success(), "{what}");
        for _ in 0..2 {
            let ran = project.run(&["run", "main"]);
            assert!(ran.all().contains(said) && ran.all().contains("no key"), "{what}: {}", ran.all());
        }
        assert_eq!(made(&project), 2, "{what}");
        assert!(!project.exists(".loops/.reuse"), "{what}");
        assert!(project.run(&["reuse", "key", "main"]).code(2).all().contains(said), "{what}");
    }
}

#[test]
fn a_run_that_changes_something_or_is_not_verified_is_not_kept() {
    for (what, action) in [
        ("a change", "sh check.sh && echo x >> other.md"),
        ("a change of an input", "sh check.sh && echo x >> src/b.txt"),
        ("a failure", "sh check.sh && false"),
    ] {
        let project = project();
        let text = super::LOOP.replace("sh check.sh", action);
        project.write(".loops/main.yaml", &text);
        let _ran = project.run(&["run", "main"]);
        assert!(made(&project) > 0, "{what}");
        assert!(project.run(&["reuse", "list"]).code(0).stdout.is_empty(), "{what}");
    }
}

#[test]
fn it_proves_itself_and_takes_back_what_was_wrong() {
    let project = project();
    let text = super::LOOP
        .replace("1000000000", "1")
        .replace("sh check.sh", "sh check.sh && test ! -e .git/undeclared");
    project.write(".loops/main.yaml", &text);
    project.run(&["run", "main"]).code(0);
    let ran = project.run(&["run", "main"]).code(0);
    assert_eq!(made(&project), 2);
    assert!(ran.all().contains("this one is made to prove it"), "{}", ran.all());
    project.write(".git/undeclared", "");
    let ran = project.run(&["run", "main"]).code(1);
    let why = "`check` failed once more, so that `inputs`, `tools` and `env` do not name all that it reads; 1 result";
    assert!(ran.all().contains(why), "{}", ran.all());
    assert_eq!(made(&project), 4, "once more than the run itself");
    drop(project.run(&["stats"]).code(0).says("2 runs made to prove one, 1 of them wrong"));
    assert!(project.run(&["reuse", "list"]).code(0).stdout.is_empty());
    std::fs::remove_file(project.at(".git/undeclared")).unwrap();
    let ran = project.run(&["run", "main"]).code(0);
    assert!(ran.all().contains("no earlier run is known"), "{}", ran.all());
}

#[test]
fn it_tells_a_check_that_wavers_from_inputs_that_nobody_has_named() {
    let project = project();
    let wavers = "sh check.sh && { test ! -e .git/wavers || { rm .git/wavers; false; }; }";
    let text = super::LOOP.replace("1000000000", "1").replace("sh check.sh", wavers);
    project.write(".loops/main.yaml", &text);
    project.run(&["run", "main"]).code(0);
    project.write(".git/wavers", "");
    let ran = project.run(&["run", "main"]).code(1);
    let why = "`check` is flaky, for it has failed and passed on these inputs; 1 result";
    assert!(ran.all().contains(why), "{}", ran.all());
    drop(project.run(&["stats", "--flaky"]).code(0).says("check is flaky: failed 1 of 3"));
}

#[test]
fn where_the_run_has_changed_the_inputs_nothing_is_made_once_more() {
    let project = project();
    let text = super::LOOP
        .replace("1000000000", "1")
        .replace(
            "on_no: failed}",
            "on_no: fix}\n  fix: {action: 'echo x >> src/b.txt; false', on_yes: failed, on_no: failed}",
        )
        .replace("sh check.sh", "sh check.sh && test ! -e .git/undeclared");
    project.write(".loops/main.yaml", &text);
    project.run(&["run", "main"]).code(0);
    project.write(".git/undeclared", "");
    let ran = project.run(&["run", "main"]).code(1);
    assert!(ran.all().contains("either `inputs`, `tools` and `env`"), "{}", ran.all());
    assert_eq!(made(&project), 2);
}

#[test]
fn a_loop_that_asks_somebody_cannot_be_reused() {
    for (state, said) in [
        ("check: {action: 'fix it', action_type: prompt, on_yes: done, on_no: done}", "asks an agent"),
        (
            "check: {action: x, evaluate: {type: llm_structured}, on_yes: done, on_no: done}",
            "judged by a model",
        ),
        ("check: {action: 'ok?', action_type: human_approval, on_yes: done, on_no: done}", "asks a person"),
        ("check: {action: 's/t', action_type: mcp_tool, on_yes: done, on_no: done}", "a tool of a server"),
        ("check: {loop: other, on_yes: done, on_no: done}", "which it runs, asks an agent"),
    ] {
        let text = format!(
            "name: main\ndescription: x\ninitial: check\nreuse: {{inputs: [src/]}}\nstates:\n  {state}\n  done: {{terminal: true}}\n"
        );
        let other = "name: other\ndescription: x\ninitial: a\nstates:\n  a: {action: x, action_type: prompt, on_yes: b, on_no: b}\n  b: {terminal: true}\n";
        let project = Project::with_loop(&text).file(".loops/other.yaml", other);
        let ran = project.run(&["validate", "main"]).code(2);
        assert!(ran.all().contains("cannot be reused") && ran.all().contains(said), "{said}: {}", ran.all());
    }
}

#[test]
fn the_same_loop_in_another_directory_has_another_key() {
    let text = super::LOOP.replace("tools: [./tool -V], ", "").replace("sh check.sh", "test -d .");
    let project = project().file("src/deep/.loops/main.yaml", &text);
    project.write(".loops/main.yaml", &text);
    let key = |directory: &str| {
        let mut command = project.program(crate::common::LL_LOOP.as_str(), &["reuse", "key", "main"]);
        Ran::of(&command.current_dir(project.at(directory)).output().unwrap()).code(0).stdout
    };
    assert_eq!(key("."), key("src"));
    assert_ne!(key("."), key("src/deep"));
}

#[test]
fn a_submodule_of_which_git_does_not_tell_all_makes_no_key() {
    let project = project();
    let inner = "set -e
        git() { command git -c user.name=t -c user.email=t@example.org -c protocol.file.allow=always \"$@\"; }
        git init -q .git/inner; cd .git/inner; echo a > a; echo gen > .gitignore; git add a .gitignore; git commit -q -m a; cd ../..
        git submodule add -q ./.git/inner src/inner; git commit -q -m inner";
    let made_one = project.program("bash", &["-c", inner]).output().unwrap();
    assert!(made_one.status.success(), "{}", String::from_utf8_lossy(&made_one.stderr));
    after(&project, "a submodule", true, |_| {});
    after(&project, "the same submodule", false, |_| {});
    after(&project, "a submodule that is not checked out", true, |p| {
        git(p, &["submodule", "deinit", "-q", "-f", "src/inner"]);
    });
    std::fs::remove_dir(project.at("src/inner")).unwrap();
    project.write("src/inner", "a file in its place");
    let ran = project.run(&["run", "main"]);
    assert!(ran.all().contains("the submodule `src/inner` has changes of its own"), "{}", ran.all());
    std::fs::remove_file(project.at("src/inner")).unwrap();
    after(&project, "the submodule again", false, |p| {
        git(p, &["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init"]);
    });
    after(&project, "a file that a sparse checkout leaves out", true, |p| {
        git(p, &["-C", "src/inner", "update-index", "--skip-worktree", "a"]);
        std::fs::remove_file(p.at("src/inner/a")).unwrap();
    });
    git(&project, &["-C", "src/inner", "update-index", "--no-skip-worktree", "a"]);
    git(&project, &["-C", "src/inner", "checkout", "-q", "--", "a"]);
    project.write("src/inner/gen", "1");
    let ran = project.run(&["run", "main"]);
    assert!(ran.all().contains("git ignores `gen` in the submodule `src/inner`"), "{}", ran.all());
    std::fs::remove_file(project.at("src/inner/gen")).unwrap();
    git(&project, &["-C", "src/inner", "update-index", "--assume-unchanged", "a"]);
    project.write("src/inner/a", "b");
    let ran = project.run(&["run", "main"]);
    assert!(ran.all().contains("tells git not to look at `a`"), "{}", ran.all());
}

#[test]
fn what_a_link_leads_to_is_in_the_key_or_there_is_none() {
    let project = project();
    let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, project.at(path)).unwrap();
    project.write("shared/deep/x", "1");
    after(&project, "a link", true, |_| link("../other.md", "src/link"));
    after(&project, "the file that it leads to", true, |p| p.write("other.md", "y\n"));
    after(&project, "a link that leads nowhere", true, |_| link("../nowhere", "src/nowhere"));
    after(&project, "it leads somewhere", true, |p| p.write("nowhere", ""));
    after(&project, "a link to a folder of inputs", true, |_| link(".", "src/itself"));
    std::fs::remove_file(project.at("src/itself")).unwrap();
    link("../shared", "src/shared");
    let ran = project.run(&["run", "main"]);
    let said = "`src/shared` is a link to a folder, and not all that lies there is an input";
    assert!(ran.all().contains("no key") && ran.all().contains(said), "{}", ran.all());
    let inputs = |inputs: &str| project.write(".loops/main.yaml", &LOOP.replace("src/, local.env", inputs));
    inputs("src/, shared/");
    after(&project, "both folders are inputs", true, |_| {});
    after(&project, "a file behind the link", true, |p| p.write("shared/deep/x", "2"));
    for (what, change) in [
        ("a folder outside of the repository", "rm src/shared; ln -s /etc src/shared"),
        (
            "a folder that git ignores",
            "rm src/shared; echo out/ >> .gitignore; mkdir out; touch out/x; ln -s ../out src/shared",
        ),
        ("the folder of the inputs", "rm src/shared; mv src elsewhere; ln -s elsewhere src; git add -A"),
    ] {
        let changed = project.program("sh", &["-ec", change]).output().unwrap();
        assert!(changed.status.success(), "{what}: {}", String::from_utf8_lossy(&changed.stderr));
        let ran = project.run(&["run", "main"]);
        assert!(ran.all().contains("no key") && ran.all().contains("is a link"), "{what}: {}", ran.all());
    }
}

#[test]
fn a_tracked_input_in_a_folder_of_reports_is_an_input() {
    let project = tracked();
    project.write("src/api/x.txt", "1");
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "api"]);
    let run = ["run", "main", "--report-dir", "src/api"];
    project.run(&run).code(0);
    project.run(&run).code(0);
    assert_eq!(made(&project), 1, "what the run writes there is none");
    project.write("src/api/x.txt", "2");
    project.run(&run).code(0);
    assert_eq!(made(&project), 2);
}
