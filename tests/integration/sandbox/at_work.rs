//! What has to work in a sandbox.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use super::{As, confined, give_away, one, output_of, possible, project, run_as};
use crate::common::{git, wait_for};
use crate::fake_host;

#[test]
fn git_works_but_for_what_names_programs() {
    let script = "set -e
        echo more >> src/work.txt; git add -A; git commit -qm one
        git switch -qc other; echo other > other.txt; git add -A; git commit -qm two
        git switch -q main; echo main > main.txt; git add -A; git commit -qm three
        git merge -q other -m merged; git rebase -q HEAD~1
        git stash list; git gc -q; git worktree add -q ../tree 2> /dev/null || git worktree add -q \"$LL_RUN_DIR/tree\"
        git tag v1; git log -1 --format='%an <%ae>'; git status --short | head
        git show --stat --format= HEAD~2 | cat";
    for who in possible() {
        let project = project(&one("workspace", script));
        give_away(&project);
        let ran = run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        let output = output_of(&project);
        assert!(output.contains("Somebody <somebody@example.org>"), "{output} {}", ran.all());
        let files = git(&project, &["-c", "safe.directory=*", "ls-files"]);
        assert_eq!(
            files.lines().collect::<Vec<_>>(),
            [".github/workflows/ci.yml", ".loops/main.yaml", "main.txt", "other.txt", "src/work.txt"]
        );
    }
}

#[test]
fn a_commit_in_a_linked_working_tree_has_nothing_of_what_stands_in_for_protected_files() {
    for who in possible() {
        let project = project(&one("workspace", "echo made > made; git add -A && git commit -qm one"));
        git(&project, &["worktree", "add", "-q", "-b", "other", "tree"]);
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        command.current_dir(project.at("tree"));
        run_as(command, who).code(0);
        let files = git(&project, &["-c", "safe.directory=*", "ls-tree", "-r", "--name-only", "other"]);
        assert_eq!(
            files.lines().collect::<Vec<_>>(),
            [".github/workflows/ci.yml", ".loops/main.yaml", "made", "src/work.txt"]
        );
    }
}

#[test]
fn a_server_and_its_client_work_and_end_with_the_action() {
    let script = "python3 -m http.server 8123 --bind 127.0.0.1 > /dev/null 2>&1 &
        for i in $(seq 100); do python3 -c 'import urllib.request as u; u.urlopen(\"http://127.0.0.1:8123/src/work.txt\").read()' 2> /dev/null && break; sleep 0.1; done
        python3 -c 'import urllib.request as u; print(u.urlopen(\"http://127.0.0.1:8123/src/work.txt\").read())'
        python3 -c 'import multiprocessing as m; print(sum(m.Pool(2).map(abs, [1, -2])))'
        setsid sh -c 'while :; do date > alive; sleep 0.1; done' > /dev/null 2>&1 &
        sleep 0.3; echo of-tmp > /tmp/x; echo of-home > ~/x; cat /tmp/x ~/x";
    for who in possible() {
        let project = project(&one("workspace", script));
        give_away(&project);
        run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        let output = output_of(&project);
        for said in ["b'work\\n'", "\n3\n", "of-tmp", "of-home"] {
            assert!(output.contains(said), "{said}: {output}");
        }
        let before = project.read("alive");
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(project.read("alive"), before, "a daemon outlives its action");
    }
}

#[test]
fn an_end_of_the_run_reaches_the_action_which_may_take_its_time() {
    for who in possible() {
        let script = "trap 'echo heard > heard; exit 3' TERM; touch begun; while :; do sleep 0.05; done";
        let project = project(&one("workspace", script));
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        if who == As::Somebody && rustix::process::getuid().is_root() {
            use std::os::unix::process::CommandExt as _;
            command.uid(super::SOMEBODY).gid(super::SOMEBODY);
        }
        let mut run = command.spawn().unwrap();
        wait_for(|| project.exists("begun") || run.try_wait().unwrap().is_some());
        let pid = rustix::process::Pid::from_child(&run);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        run.wait().unwrap();
        assert!(project.exists("heard"));
        assert_eq!(confined(&project).len(), 1);
    }
}

#[test]
fn what_is_hidden_is_not_there_and_what_is_written_more_is() {
    for who in possible() {
        let beside = tempfile::TempDir::with_prefix_in("ll-beside-", env!("CARGO_TARGET_TMPDIR")).unwrap();
        let beside_path = beside.path().to_string_lossy().into_owned();
        let rules = format!("{{write: ['{beside_path}'], hide: [secrets, src/hidden.txt]}}");
        let project =
            project(&one(&rules, &format!("cat secrets/key src/hidden.txt; echo made > {beside_path}/made")));
        project.write("secrets/key", "SECRET");
        project.write("src/hidden.txt", "SECRET");
        give_away(&project);
        std::fs::set_permissions(beside.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        assert!(!output_of(&project).contains("SECRET"));
        assert!(beside.path().join("made").exists());
    }
}

#[test]
fn exit_codes_signals_and_missing_programs_are_those_of_the_action() {
    for who in possible() {
        for (action, code) in [("exit 7", 7), ("kill -KILL $$", 137), ("no-such-program-here", 127)] {
            let project = project(&one("workspace", action));
            give_away(&project);
            let _any = run_as(project.command(&["run", "main", "--no-ci"]), who);
            let events = project.events();
            let ended = events.iter().find(|event| event["event"] == "action_complete").unwrap();
            assert_eq!(ended["exit_code"], code, "{action} {ended}");
        }
    }
}

#[test]
fn a_program_on_path_is_found_wherever_it_lies() {
    for who in possible() {
        let beside = tempfile::TempDir::with_prefix_in("ll-programs-", "/tmp").unwrap();
        let program = beside.path().join("of-an-installer");
        std::fs::write(&program, "#!/bin/sh\necho found\n").unwrap();
        for path in [beside.path(), &program] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let project = project(&one("workspace", "of-an-installer"));
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", beside.path().display()));
        run_as(command, who).code(0);
        assert!(output_of(&project).contains("found"));
    }
}

#[test]
fn what_stood_in_for_protected_files_is_gone_after_a_run_that_was_killed() {
    for who in possible() {
        let project = project(&one("workspace", "touch begun; if test -e second; then exit 0; fi; sleep 60"));
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci"]);
        if who == As::Somebody && rustix::process::getuid().is_root() {
            use std::os::unix::process::CommandExt as _;
            command.uid(super::SOMEBODY).gid(super::SOMEBODY);
        }
        let mut run = command.spawn().unwrap();
        wait_for(|| project.exists("begun") || run.try_wait().unwrap().is_some());
        run.kill().unwrap();
        run.wait().unwrap();
        project.write("second", "");
        run_as(project.command(&["run", "main", "--no-ci"]), who).code(0);
        for mask in [".npmrc", ".codex", "AGENTS.md"] {
            assert!(!project.exists(mask), "{mask} is left");
        }
    }
}

#[test]
fn what_the_command_line_asked_for_holds_when_the_run_is_resumed() {
    for who in possible() {
        let text = one("workspace", "touch begun; test -e second || exec sleep 60");
        let text = text.replace("    sandbox: workspace\n", "");
        let project = project(&text);
        give_away(&project);
        let mut command = project.command(&["run", "main", "--no-ci", "--sandbox", "strict"]);
        if who == As::Somebody && rustix::process::getuid().is_root() {
            use std::os::unix::process::CommandExt as _;
            command.uid(super::SOMEBODY).gid(super::SOMEBODY);
        }
        let mut run = command.spawn().unwrap();
        wait_for(|| project.exists("begun") || run.try_wait().unwrap().is_some());
        let pid = rustix::process::Pid::from_child(&run);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        run.wait().unwrap();
        project.write("second", "");
        run_as(project.command(&["resume", "main", "--no-ci"]), who).code(0);
        assert!(confined(&project).iter().all(|event| event["mode"] == "strict"));
        assert_eq!(confined(&project).len(), 2);
    }
}

/// A host whose agent tries to change what it is to look at, and says what it could.
const LOOKER: &str = r#"#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
cat > /dev/null
open=
for attempt in 'echo x > new' 'echo x >> src/work.txt' 'rm src/work.txt' 'mv src elsewhere' 'chmod 777 src/work.txt' \
    'touch src/work.txt' 'ln -s / src/link' 'mkdir made' 'git add -A && git commit --allow-empty -qm x' 'git stash' 'git tag x' \
    'git branch x' 'echo x > .git/HEAD' 'echo x > .git/hooks/pre-commit' 'echo x > CLAUDE.md' 'git gc -q'; do
    bash -c "$attempt" > /dev/null 2>&1 && open="$open [$attempt]"
done
work=no; cat src/work.txt > /tmp/copy && git log --oneline > /tmp/log && git diff --quiet HEAD -- src && work=yes
echo '{"type":"result","subtype":"success","is_error":false,"result":"works: '$work' open:'"$open"'","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

#[test]
fn who_only_looks_finds_a_tree_that_cannot_be_written() {
    for who in possible() {
        let text = "name: main\ndescription: one look\ninitial: look\nbudget: {llm_calls: 1}\nstates:\n  look: {action_type: prompt, \
                    action: Look at it., role: supervisor, next: done}\n  done: {terminal: true}\n";
        let project = fake_host::found(project(text));
        fake_host::program(&project, "bin/claude", LOOKER);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-qm", "host"]);
        let before = git(&project, &["for-each-ref"]);
        give_away(&project);
        let flags =
            ["run", "main", "--llm", "--yes", "--no-ci", "--host", "claude", "--sandbox", "workspace"];
        let ran = run_as(project.command(&flags), who).code(0);
        let output = output_of(&project);
        assert!(output.contains("works: yes open:") && !output.contains("open: ["), "{output} {}", ran.all());
        let safe = ["-c", "safe.directory=*"];
        assert_eq!(git(&project, &[&safe[..], &["status", "--short"]].concat()), "");
        assert_eq!(git(&project, &[&safe[..], &["for-each-ref"]].concat()), before);
    }
}

/// A host whose agent writes down that it has found something out.
const LEARNER: &str = r#"#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
[ "$1" = login ] && exit 0
cat > /dev/null; mkdir -p .ll/learning-tests; printf -- '---\nstatus: proven\n---\n' > .ll/learning-tests/some-api.md
echo '{"type":"result","subtype":"success","is_error":false,"result":"it is proven","usage":{"input_tokens":1,"output_tokens":1}}'
"#;

#[test]
fn a_command_behind_an_agent_that_learns_is_confined_like_one_behind_a_prompt() {
    for who in possible().into_iter().filter(|who| *who == As::Somebody) {
        let text = "name: main\ndescription: one look\ninitial: know\nbudget: {llm_calls: 1}\nstates:\n  \
                    know: {type: learning, learning: {targets_csv: Some API, max_retries_expr: '1'}, on_yes: work, \
                    on_blocked: stuck}\n  work: {action: 'true', on_yes: done, on_no: stuck}\n  done: {terminal: true}\n  \
                    stuck: {terminal: true, outcome: blocked}\n";
        let project = fake_host::found(project(text));
        fake_host::program(&project, "bin/claude", LEARNER);
        give_away(&project);
        let flags = ["run", "main", "--ci=plain", "--llm", "--yes", "--host", "claude", "--broker", "off"];
        let ran = run_as(project.command(&flags), who).code(0);
        assert_eq!(confined(&project).len(), 2, "{}", ran.all());
    }
}
