//! `rewind`: what a new run that begins again in front of a step of another one does, what it refuses, and what stays as it
//! is. With real repositories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Project, events, git, signal};
use crate::fake_host;

/// A host that answers each prompt in the same way whenever it is asked, and writes into the working tree.
const HOST: &str = r#"#!/bin/bash
[ "$1" = --version ] && { echo "9.9 (fake)"; exit 0; }
read -r prompt
echo "asked $prompt" >> asked.txt
printf '{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5},"result":"said %s"}\n' "${prompt%%,*}"
"#;

/// A kind of loop: its name, its text without a name, other files, and the arguments of its run.
pub(crate) type Kind =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

/// Every kind of loop: `x` is a file of the repository that actions work on.
pub(crate) const KINDS: &[Kind] = &[
    ("one state after the other", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: echo b >> x, next: c}
  c: {action: grep b x, on_yes: done}
  done: {terminal: true}", &[], &[]),
    ("a check and a fix", "
initial: check
states:
  check: {action: 'test $(wc -l < x) -ge 4', on_yes: done, on_no: fix}
  fix: {action: echo more >> x, next: check}
  done: {terminal: true}", &[], &[]),
    ("captures, messages and the result before", "
initial: a
states:
  a: {action: 'echo one ${state.step}', capture: c, append_to_messages: 'a said ${prev.output?}', next: b}
  b: {action: 'echo \"${captured.c.output} ${prev.output} ${messages}\" >> x; echo two', next: d}
  d: {action: 'echo \"${captured.b.output} ${captured.c.exit_code} ${state.iteration}\" >> x', on_yes: done}
  done: {terminal: true}", &[], &[]),
    ("tries that are used up", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'echo try ${state.attempt} >> x; exit 3', on_yes: done, on_no: failed, on_error: $current, max_retries: 2, on_retry_exhausted: c}
  c: {action: echo c >> x, next: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("a cap on passes", "
initial: a
max_iterations: 3
states:
  a: {action: 'echo pass ${state.iteration} >> x', on_yes: a}
  done: {terminal: true}", &[], &[]),
    ("a cap on steps with a handler", "
initial: a
max_steps: 4
on_max_steps: end
states:
  a: {action: echo a >> x, next: b}
  b: {action: echo b >> x, next: a}
  end: {action: echo end >> x, next: failed}
  failed: {terminal: true}", &[], &[]),
    ("a cap on the revisits of a way", "
initial: a
max_edge_revisits: 2
states:
  a: {action: echo a >> x, next: b}
  b: {action: echo b >> x, on_yes: a, on_no: done}
  done: {terminal: true}", &[], &[]),
    ("a stall with a way out", "
initial: a
stall: {window: 2, action: other}
states:
  a: {action: 'test -e y', on_yes: done, on_no: b}
  b: {action: 'true', next: a}
  other: {action: echo y > y, next: a}
  done: {terminal: true}", &[], &[]),
    ("an error that has a way", "
initial: a
on_error: mend
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'exit 7', evaluate: {type: output_numeric, operator: eq, target: 1}, on_yes: done, on_no: done}
  mend: {action: echo mended >> x, next: c}
  c: {action: 'true', on_yes: done}
  done: {terminal: true}", &[], &[]),
    ("an action that is too late", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'sleep 9', timeout: 200ms, on_yes: done, on_timeout: c}
  c: {action: echo late >> x, next: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("a way for each word", "
initial: a
states:
  a: {action: 'echo go; echo a >> x', evaluate: {type: classify}, route: {go: b, _: failed}}
  b: {action: 'echo back; echo b >> x', evaluate: {type: classify}, route: {go: done, _: c}}
  c: {action: 'true', on_yes: done}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("convergence, which remembers", "
initial: fix
states:
  fix: {action: echo more >> x, next: count}
  count: {action: 'echo $((5 - $(wc -l < x)))', evaluate: {type: convergence, toward: 0}, on_target: done, on_progress: fix, on_stall: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("a tree that does not change", "
initial: a
states:
  a: {action: echo a >> x, next: look}
  look: {action: 'true', evaluate: {type: diff_stall, max_stall: 1}, on_yes: b, on_no: c}
  b: {action: 'true', next: look}
  c: {action: echo stalled >> x, next: failed}
  failed: {terminal: true}", &[], &[]),
    ("a state that has to pass twice", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'echo b >> x; true', repeat: {passes: 2}, on_yes: c, on_no: failed}
  c: {action: 'true', on_yes: done}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("waits between passes", "
initial: a
backoff: 30ms
states:
  a: {action: 'echo a >> x; test $(wc -l < x) -ge 4', on_yes: done, on_no: a}
  done: {terminal: true}", &[], &[]),
    ("an action at the end", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'true', on_yes: done}
  done: {terminal: true, action: 'echo end >> x'}", &[], &[]),
    ("variables and an input", "
initial: a
input_key: what
context: {what: none, more: m}
states:
  a: {action: 'echo ${context.what} ${context.more} >> x', next: b}
  b: {action: 'echo ${context.what} >> x', on_yes: done}
  done: {terminal: true}", &[], &["thing", "--context", "more=other"]),
    ("a sub-loop", "
initial: a
states:
  a: {action: 'echo a >> x; echo from a', capture: c, next: b}
  b: {loop: inner, context_passthrough: true, on_yes: d, on_no: failed}
  d: {action: 'echo \"d ${captured.i.output}\" >> x', on_yes: done}
  done: {terminal: true}
  failed: {terminal: true}", &[(".loops/inner.yaml", "name: inner
description: d
initial: i
states:
  i: {action: 'echo \"i ${captured.c.output}\" >> x; echo from i', capture: i, next: j}
  j: {action: 'true', on_yes: done}
  done: {terminal: true}
")], &[]),
    ("sub-loops in sub-loops", "
initial: a
states:
  a: {loop: outer, on_yes: b, on_no: failed}
  b: {loop: outer, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[(".loops/outer.yaml", "name: outer
description: d
initial: o
states:
  o: {action: echo o >> x, next: p}
  p: {loop: inner, on_yes: done}
  done: {terminal: true}
"), (".loops/inner.yaml", "name: inner
description: d
initial: i
states:
  i: {action: echo i >> x, on_yes: done}
  done: {terminal: true}
")], &[]),
    ("cycles", "
initial: a
maintain: true
states:
  a: {action: 'echo cycle ${state.step} >> x', next: b}
  b: {action: 'true', on_yes: done}
  done: {terminal: true}", &[], &["--max-cycles", "3"]),
    ("a board", "
initial: load
board: {attempts_before_replan: 2, max_replan_depth: 0}
states:
  load:
    action_type: board
    action: load
    params: {answer: '{\"tasks\": [{\"description\": \"one\"}, {\"description\": \"two\"}, {\"description\": \"three\", \"dependencies\": [1]}]}'}
    on_loaded: approve
  approve: {action_type: board, action: approve, on_approved: next}
  next: {action_type: board, action: next, on_task: work, on_done: done, on_stuck: bad}
  work: {role: coder, action: 'echo ${board.id} >> x', next: test}
  test: {role: tester, action: 'test ${board.id} != 2', on_yes: pass, on_no: fail}
  pass: {action_type: board, action: pass, params: {summary: did it}, route: {passed: next}}
  fail:
    action_type: board
    action: fail
    params: {output: the test said no}
    route: {retry: next, replan: give_up, give_up: give_up, stuck: bad, abort: bad}
  give_up: {action_type: board, action: give_up, on_given_up: next, on_abort: bad}
  done: {terminal: true}
  bad: {terminal: true, outcome: failure}", &[], &[]),
    (
        "criteria",
        "
paradigm: criteria
spec: three lines
criteria:
  - {name: long, check: 'test $(wc -l < x) -ge 3'}
  - {name: there, check: test -e x}
using: 'echo line >> x'
max_iterations: 5",
        &[],
        &[],
    ),
    ("prompts within a budget", "
initial: a
budget: {cost_usd: 0.8}
states:
  a: {action_type: prompt, action: 'one, please', capture: c, next: b}
  b: {action_type: prompt, action: 'two after ${captured.c.output}, please', next: d}
  d: {action: 'true', on_yes: e}
  e: {action_type: prompt, action: 'three, please', next: f}
  f: {action_type: prompt, action: 'four, please', next: g}
  g: {action_type: prompt, action: 'five, please', next: done}
  done: {terminal: true}", &[], &["--yes"]),
    ("a conversation", "
initial: a
states:
  a: {action_type: prompt, session: s, action: 'one, please', next: b}
  b: {action: 'true', next: c}
  c: {action_type: prompt, session: s, action: 'two, please', next: done}
  done: {terminal: true}", &[], &["--yes"]),
    ("commits, removed and new files", "
initial: a
states:
  a: {action: 'echo a > new; mkdir d; echo d > d/e', next: b}
  b: {action: 'git add new x && git -c user.name=n -c user.email=e@x commit -qm one', next: c}
  c: {action: 'rm x; echo c >> new; chmod +x new; ln -s new link', next: d}
  d: {action: 'test ! -e x && test \"$(git log --format=%s -1)\" = one', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("a staged file", "
initial: a
states:
  a: {action: 'echo a > y; git add y', next: b}
  b: {action: 'echo b >> y', next: c}
  c: {action: 'cat y >> x', on_yes: done}
  done: {terminal: true}", &[], &[]),
    ("long outputs", "
initial: a
states:
  a: {action: 'seq 1 9000', capture: c, next: b}
  b: {action: 'seq 9001 18000', next: d}
  d: {action: 'wc -c >> x', next: e, env: {C: '1'}}
  e: {evaluate: {type: output_numeric, source: '${captured.c.output}', operator: eq, target: 1}, on_yes: failed, on_no: f, on_error: f}
  f: {action: 'echo ${captured.c.output} | md5sum >> x', on_yes: done}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("files of the run's own", "
initial: a
states:
  a: {action: 'echo a > ${context.run_dir}note', next: b}
  b: {action: 'sleep 0.02; cat ${context.run_dir}note >> x; echo b > ${context.run_dir}more', next: c}
  c: {action: 'sleep 0.02; cat ${context.run_dir}note ${context.run_dir}more >> x', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}", &[], &[]),
    ("JSON that is looked into", "
initial: a
states:
  a: {action: 'echo \"{\\\"n\\\": $(wc -l < x)}\"', evaluate: {type: output_json, path: .n, operator: ge, target: 3}, on_yes: done, on_no: b}
  b: {action: echo b >> x, next: a}
  done: {terminal: true}", &[], &[]),
    ("a run that says that it stops", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'echo \"LOOP_STOP: enough\"; echo b >> x', next: a}
  done: {terminal: true}", &[], &[]),
    ("a run that is handed off", "
initial: a
on_handoff: pause
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'echo b >> x; echo \"CONTEXT_HANDOFF: item 7\"', next: c}
  c: {action: 'echo c >> x', on_yes: done}
  done: {terminal: true}", &[], &[]),
    ("an error at the end", "
initial: a
states:
  a: {action: echo a >> x, next: b}
  b: {action: 'exit 1', on_yes: done}
  done: {terminal: true}", &[], &[]),
];

/// Makes a repository with one commit of `x` and of loops.
pub(crate) fn repository(text: &str, files: &[(&str, &str)]) -> Project {
    let project = Project::with_loop(&format!("name: main\ndescription: d\n{text}\n"));
    fake_host::program(&project, "bin/claude", HOST);
    let project = fake_host::found(project).file("x", "0\n").file(".gitignore", "bin/\n.loop/\n");
    for (path, text) in files {
        project.write(path, text);
    }
    git(&project, &["init", "-q", "-b", "trunk"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    project
}

/// Returns the journals by the ids of their runs, in the order in which the runs began.
fn journals(project: &Project) -> Vec<(String, PathBuf)> {
    let id = |path: &Path| {
        path.file_name().unwrap().to_str().unwrap().trim_end_matches(".events.jsonl").to_owned()
    };
    let mut all: Vec<_> =
        project.run_files(".events.jsonl").into_iter().map(|path| (id(&path), path)).collect();
    all.sort_by_key(|(_, path)| events(path)[0]["ts"].as_str().unwrap().to_owned());
    all
}

/// Returns the run that was made since there were these.
fn newest(project: &Project, before: &[(String, PathBuf)]) -> (String, Vec<Value>) {
    let new: Vec<_> = journals(project).into_iter().filter(|run| !before.contains(run)).collect();
    let [(id, path)] = new.as_slice() else { panic!("{new:?}") };
    (id.clone(), events(path))
}

/// Returns the working tree as git sees it: each file with its mode and what is in it.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        let ran = command.args(arguments).current_dir(directory).output().unwrap();
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    };
    let all = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let mut seen = BTreeMap::new();
    for path in all.split('\0').filter(|path| !path.is_empty() && !path.starts_with(".loops/")) {
        let file = directory.join(path);
        let Ok(metadata) = file.symlink_metadata() else { continue };
        let text = if metadata.is_symlink() {
            format!("link to {}", fs::read_link(&file).unwrap().display())
        } else {
            let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111;
            format!("{mode:o} {}", fs::read_to_string(&file).unwrap())
        };
        seen.insert(path.to_owned(), text);
    }
    seen.insert("HEAD".to_owned(), git(&["log", "--format=%s"]));
    seen
}

/// Leaves out of events when they were, in which directory, and which run's they are. Looks at trees are left out as well: a run that
/// goes on knows nothing of the times of the part before it, so it takes more of them.
fn alike(events: &[Value], names: &[&str]) -> Vec<Value> {
    let is_named =
        |event: &Value, names: &[&str]| event["event"].as_str().is_some_and(|name| names.contains(&name));
    let begins = |event: &Value| is_named(event, &["loop_start", "loop_resume"]) && !event["depth"].is_u64();
    let events = events.iter().filter(|event| !begins(event) && !is_named(event, &["verdict_tree"]));
    let alike = |event: &Value| {
        let text = names.iter().fold(event.to_string(), |text, name| text.replace(name, "THERE"));
        let mut event: Value = serde_json::from_str(&text).unwrap();
        timeless(&mut event);
        event
    };
    events.map(alike).collect()
}

fn timeless(event: &mut Value) {
    if let Some(object) = event.as_object_mut() {
        for key in [
            "ts",
            "at_ms",
            "seq",
            "duration_ms",
            "inherited",
            "shown",
            "changes",
            "tree",
            "context",
            "elapsed_ms",
            "place",
        ] {
            object.remove(key);
        }
        object.values_mut().for_each(timeless);
    } else if let Some(items) = event.as_array_mut() {
        items.iter_mut().for_each(timeless);
    }
}

/// Runs a loop to its end, and then again from each of its steps: the rest is the same, and so is the tree at the end.
fn is_the_same_from_every_step((name, text, more, arguments): &Kind) -> usize {
    let project = repository(text, more);
    let run = [&["run", "main", "--snapshots", "--no-ci"], *arguments].concat();
    let ran = project.run(&run);
    assert_ne!(ran.code, Some(2), "{name}: {}", ran.all());
    let (code, before) = (ran.code.unwrap(), journals(&project));
    let [(parent, journal)] = before.as_slice() else { panic!("{name}: {before:?}") };
    let (all, whole) = (events(journal), fs::read(journal).unwrap());
    let root = project.path().to_str().unwrap();
    let (expected, end) = (alike(&all, &[parent, root]), files(project.path()));
    let is_own = |event: &&Value| event["event"] == "state_enter" && event["depth"].is_null();
    let steps: Vec<u64> = all.iter().filter(is_own).map(|event| event["step"].as_u64().unwrap()).collect();
    assert!(steps.len() > 1, "{name}");
    // Of many, the first ones and the last ones.
    let chosen = steps.iter().enumerate().filter(|(at, _)| *at < 2 || at + 3 > steps.len());
    for step in chosen.map(|(_, step)| step) {
        let known = journals(&project);
        let ran = project.run(&["rewind", parent, "--to", &step.to_string(), "--yes", "--no-ci"]);
        let what = format!("{name}, step {step}: {}", ran.all());
        assert_eq!(ran.code, Some(code), "{what}");
        let (id, events) = newest(&project, &known);
        let worktree = project.at(&format!(".loops/.worktrees/{id}"));
        let first = ran.stderr.lines().find(|line| !line.starts_with("warning: .loops/")).unwrap();
        assert!(first.contains(&id) && first.contains(worktree.to_str().unwrap()), "{what}");
        let seen = alike(&events, &[worktree.to_str().unwrap(), &id, parent, root]);
        for (at, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
            assert_eq!(seen, expected, "event {at} of {what}");
        }
        assert_eq!(seen.len(), expected.len(), "{what}");
        let entered = |event: &Value| {
            event["event"] == "state_enter" && event["step"] == *step && event["depth"].is_null()
        };
        let at = all.iter().rposition(entered).unwrap();
        assert_eq!(events[0]["parent"], json!({"run": parent, "seq": all[at - 1]["seq"]}), "{what}");
        let inherited: Vec<bool> = events.iter().map(|event| event["inherited"] == true).collect();
        assert!(inherited[..at].iter().all(|is| *is) && inherited[at..].iter().all(|is| !is), "{what}");
        if worktree.exists() {
            assert_eq!(files(&worktree), end, "{what}");
        } else {
            assert_eq!(git(&project, &["status", "--porcelain", "--", ":(exclude).loops"]), "", "{what}");
        }
    }
    assert_eq!((fs::read(journal).unwrap(), files(project.path())), (whole, end), "{name}: it was touched");
    steps.len()
}

#[test]
fn from_every_step_of_every_kind_of_loop_the_rest_is_the_same() {
    assert!(KINDS.len() >= 20);
    let steps: usize = KINDS
        .chunks(4)
        .map(|kinds| {
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    kinds.iter().map(|kind| scope.spawn(move || is_the_same_from_every_step(kind))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            })
        })
        .sum();
    assert!(steps > 100, "{steps}");
}

const THREE: &str = "
initial: a
states:
  a: {action: 'echo one', capture: said, next: b}
  b: {action: 'echo \"${captured.said.output}\" >> x', next: c}
  c: {action: 'grep other x', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}";

#[test]
fn a_rewound_run_has_a_patch_also_where_no_commit_has_the_tree_of_the_start() {
    let text = "name: main\ninitial: check\non_change: report\nstates:\n  check: {action: grep -q ok f, check: true, on_yes: done, on_no: fix}\n  fix: {action: echo ok > f, next: check}\n  done: {terminal: true}\n";
    let project = Project::with_loop(text).file("f", "bad\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "-A"]);
    git(&project, &["commit", "-q", "-m", "first"]);
    // Its log lies in the tree, and is another one before the first step than when the run began.
    let log = fs::File::create(project.at("log")).unwrap();
    let mut run = project.command(&["run", "main", "--no-ci", "--snapshots"]);
    assert!(run.stdout(log.try_clone().unwrap()).stderr(log).status().unwrap().success());
    let before = journals(&project);
    let run = &before[0].0;
    let ran = project.run(&["rewind", run, "--to", "2", "--yes"]).code(0);
    assert!(!ran.all().contains("no `changes.patch`"), "{}", ran.all());
    let (_, events) = newest(&project, &before);
    let changes = &events.last().unwrap()["changes"];
    assert!(changes["patch"].as_u64().is_some_and(|length| length > 0), "{changes}");
    let refs = || git(&project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/snap"]);
    assert!(refs().lines().any(|name| name.ends_with(&format!("{run}/start"))), "{}", refs());
    project.run(&["history", "--prune", "--keep", "0"]).code(0);
    assert!(!refs().contains(&format!("{run}/")), "{}", refs());
}

/// Runs a loop with snapshots, and returns the id of the run.
fn ran(project: &Project, more: &[&str]) -> String {
    let _ended = project.run(&[&["run", "main", "--no-ci", "--snapshots"], more].concat());
    journals(project).pop().unwrap().0
}

/// Asserts that a rewind is refused, says this, and makes nothing.
fn is_refused(project: &Project, arguments: &[&str], says: &[&str]) {
    let (runs, refs) = (journals(project), git(project, &["for-each-ref"]));
    let worktrees = git(project, &["worktree", "list"]);
    let ran = project.run(&[&["rewind"], arguments, &["--no-ci"]].concat()).code(2);
    for text in says {
        assert!(ran.stderr.contains(text), "{arguments:?}: no {text:?} in {}", ran.stderr);
    }
    assert_eq!(journals(project), runs, "{arguments:?} made a run");
    assert_eq!(git(project, &["for-each-ref"]), refs, "{arguments:?} made a ref");
    assert_eq!(git(project, &["worktree", "list"]), worktrees, "{arguments:?} made a worktree");
}

#[test]
fn a_capture_is_set_to_another_text() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    let known = journals(&project);
    project.run(&["rewind", &run, "--to", "2", "--set", "captured.said=other", "--yes", "--no-ci"]).code(0);
    let (id, _) = newest(&project, &known);
    assert_eq!(project.read("x"), "0\none\n", "the checkout is not touched");
    project.run(&["replay", &id]).code(0).says("other");
    is_refused(&project, &[&run, "--to", "2", "--set", "said=x", "--yes"], &["captured.NAME=TEXT"]);
    is_refused(&project, &[&run, "--to", "2", "--set", "captured.sad=x", "--yes"], &["sad"]);
}

#[test]
fn what_should_run_once_is_listed_and_nothing_is_made() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    is_refused(&project, &[&run, "--to", "2"], &["2 (b), 3 (c)", "--yes"]);
    let again = THREE
        .replace("next: c}", "next: c, idempotent: true}")
        .replace("on_no: failed}", "on_no: failed, idempotent: true}");
    let project = repository(&again, &[]);
    let run = ran(&project, &[]);
    is_refused(&project, &[&run, "--to", "1"], &["1 (a)"]);
    project.run(&["rewind", &run, "--to", "2", "--no-ci"]).code(1);
}

#[test]
fn a_step_that_is_no_place_to_begin_is_refused() {
    let sub =
        "name: sub\ninitial: s\nstates:\n  s: {action: echo inside, next: done}\n  done: {terminal: true}\n";
    let text = "
initial: a
states:
  a: {action: 'echo one', next: inner}
  inner: {loop: sub, on_success: done, on_failure: failed}
  done: {terminal: true}
  failed: {terminal: true}";
    let project = repository(text, &[(".loops/sub.yaml", sub)]);
    let run = ran(&project, &[]);
    is_refused(&project, &[&run, "--to", "2.1", "--yes"], &["step 2.1", "`--to 2`"]);
    is_refused(&project, &[&run, "--to", "9", "--yes"], &["no step 9", "2 steps"]);
    is_refused(&project, &[&run, "--to", "0", "--yes"], &["0"]);
    is_refused(&project, &["nothing-like-it", "--to", "1", "--yes"], &["nothing-like-it"]);
}

#[test]
fn without_snapshots_the_nearest_are_named() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    let of_two = format!("refs/ll-loop/snap/{run}/2");
    git(&project, &["update-ref", "-d", &of_two]);
    is_refused(
        &project,
        &[&run, "--to", "2", "--yes"],
        &["no tree snapshot of step 2", "`--to 1` and `--to 3`"],
    );
    for step in ["1", "3", "end"] {
        git(&project, &["update-ref", "-d", &format!("refs/ll-loop/snap/{run}/{step}")]);
    }
    is_refused(&project, &[&run, "--to", "2", "--yes"], &["no tree snapshot", "`--snapshots`"]);
}

#[test]
fn without_git_there_is_nothing_to_go_back_to() {
    let project = Project::with_loop(&format!("name: main\ndescription: d\n{THREE}\n")).file("x", "0\n");
    project.run(&["run", "main", "--no-ci"]).code(1);
    let ran = project.run(&["rewind", "main", "--to", "2", "--yes", "--no-ci"]).code(2);
    assert!(ran.stderr.contains("needs a git repository"), "{}", ran.stderr);
    assert_eq!(journals(&project).len(), 1);
}

#[test]
fn a_journal_that_is_damaged_is_not_gone_on_with() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    let (_, journal) = journals(&project).pop().unwrap();
    let text = fs::read_to_string(&journal).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(2);
    fs::write(&journal, lines.join("\n")).unwrap();
    is_refused(&project, &[&run, "--to", "2", "--yes"], &["journal", "comes next"]);
}

#[test]
fn a_run_in_a_bundle_is_rewound_too_and_can_be_rewound_again() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &["--report-dir", "out"]);
    let bundle = format!("out/{run}.llz");
    let refs = git(&project, &["for-each-ref", "--format=%(refname)", "refs/ll-loop/"]);
    for name in refs.lines() {
        git(&project, &["update-ref", "-d", name]);
    }
    let known = journals(&project);
    project
        .run(&["rewind", &bundle, "--to", "3", "--yes", "--no-ci", "--set", "captured.said=other"])
        .code(1);
    let (first, events) = newest(&project, &known);
    assert_eq!(events[0]["parent"]["run"], run.as_str());
    let known = journals(&project);
    project.run(&["rewind", &first, "--to", "2", "--yes", "--no-ci", "--set", "captured.said=other"]).code(0);
    let (_, events) = newest(&project, &known);
    assert_eq!(events[0]["parent"]["run"], first.as_str());
}

#[test]
fn stats_count_what_a_rewound_run_did_itself_and_history_shows_where_it_came_from() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    project.run(&["rewind", &run, "--to", "3", "--yes", "--no-ci"]).code(1);
    let stats: Value = serde_json::from_str(&project.run(&["stats", "--json"]).code(0).stdout).unwrap();
    let visits = |state: &str| {
        let all = stats["loops"][0]["states"].as_array().unwrap();
        all.iter().find(|of| of["state"] == state).unwrap()["visits"].as_u64().unwrap()
    };
    assert_eq!((visits("a"), visits("b"), visits("c")), (1, 1, 2));
    let graph = project.run(&["history", "main", "--graph"]).code(0).stdout;
    let lines: Vec<&str> = graph.lines().collect();
    assert!(lines[1].starts_with("└─") && lines[2].contains(&format!("rewound from {run}")), "{graph}");
}

/// A loop whose second step waits in the checkout for a file, and nowhere else.
const WAITS: &str = "
initial: a
states:
  a: {action: 'echo one >> x', next: b}
  b: {action: 'if test -d .git; then touch begun; while ! test -f go && test -d .git; do sleep 0.02; done; fi', on_yes: done}
  done: {terminal: true}";

#[test]
fn a_run_that_still_runs_is_not_disturbed() {
    let project = repository(WAITS, &[]);
    let mut child = project.start_until(&["run", "main", "--no-ci", "--snapshots"], "begun");
    let (run, journal) = journals(&project).pop().unwrap();
    let before = fs::read(&journal).unwrap();
    let known = journals(&project);
    project.run(&["rewind", &run, "--to", "2", "--yes", "--no-ci"]).code(0);
    let (_, rewound) = newest(&project, &known);
    assert_eq!(rewound[0]["parent"]["run"], run.as_str());
    assert_eq!(fs::read(&journal).unwrap(), before);
    project.write("go", "");
    assert!(child.wait().unwrap().success());
    // A run that is over has its files elsewhere.
    let (_, journal) = journals(&project).into_iter().find(|(id, _)| *id == run).unwrap();
    let events = events(&journal);
    assert!(events.iter().all(|event| event["inherited"].is_null()));
    assert_eq!(events.last().unwrap()["event"], "loop_complete");
}

#[test]
fn a_run_that_was_killed_is_rewound_to_its_last_step_although_its_journal_is_torn() {
    let project = repository(WAITS, &[]);
    let mut child = project.start_until(&["run", "main", "--no-ci", "--snapshots"], "begun");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    project.write("go", "");
    let (run, journal) = journals(&project).pop().unwrap();
    let mut torn = fs::read(&journal).unwrap();
    torn.extend(b"{\"event\": \"evaluate\", \"ver");
    fs::write(&journal, &torn).unwrap();
    for (step, runs) in [("2", 2), ("1", 3)] {
        project.run(&["rewind", &run, "--to", step, "--yes", "--no-ci"]).code(0);
        assert_eq!(project.run_files(".events.jsonl").len(), runs);
    }
    assert_eq!(fs::read(&journal).unwrap(), torn, "it was touched");
}

/// Changes the first event of a journal.
fn began_otherwise(journal: &Path, change: impl Fn(&mut Value)) {
    let text = fs::read_to_string(journal).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut first: Value = serde_json::from_str(first).unwrap();
    change(&mut first);
    fs::write(journal, format!("{first}\n{rest}")).unwrap();
}

#[test]
fn a_journal_names_neither_another_loop_nor_another_place_for_the_new_run() {
    let elsewhere = tempfile::tempdir().unwrap();
    let evil = elsewhere.path().join("evil.yaml");
    fs::write(&evil, format!("name: main\ndescription: d\n{}\n", THREE.replace("echo one", "touch evil")))
        .unwrap();
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    let (_, journal) = journals(&project).pop().unwrap();
    let whole = fs::read(&journal).unwrap();
    began_otherwise(&journal, |start| start["source"]["file"] = evil.to_str().unwrap().into());
    is_refused(&project, &[&run, "--to", "1", "--yes"], &["not what it was when the run began"]);
    fs::write(&journal, &whole).unwrap();
    began_otherwise(&journal, |start| start["run_id"] = "../../../elsewhere".into());
    let known = journals(&project);
    project.run(&["rewind", &run, "--to", "2", "--yes", "--no-ci"]).code(1);
    // The files say whose they are.
    let (id, events) = newest(&project, &known);
    assert_eq!((&events[0]["run_id"], &events[0]["parent"]["run"]), (&json!(id), &json!(run)));
}

#[test]
fn where_no_worktree_can_be_made_nothing_is_made() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    project.write(".loops/.worktrees", "in the way");
    is_refused(&project, &[&run, "--to", "2", "--yes"], &["cannot make a worktree"]);
    fs::remove_file(project.at(".loops/.worktrees")).unwrap();
    // Git has no room for a branch below a branch.
    git(&project, &["branch", "ll-loop"]);
    is_refused(&project, &[&run, "--to", "2", "--yes"], &["cannot make a worktree"]);
    git(&project, &["branch", "-D", "ll-loop"]);
    project.run(&["rewind", &run, "--to", "2", "--yes", "--no-ci"]).code(1);
}

#[test]
fn a_snapshot_that_is_no_commit_of_this_repository_is_refused() {
    let project = repository(THREE, &[]);
    let run = ran(&project, &[]);
    let of_two = format!("refs/ll-loop/snap/{run}/2");
    let blob = git(&project, &["hash-object", "-w", "x"]);
    git(&project, &["update-ref", &of_two, blob.trim()]);
    is_refused(&project, &[&run, "--to", "2", "--yes"], &[]);
    // A commit that stands on none is not a snapshot either.
    let tree = git(&project, &["write-tree"]);
    let commit = git(&project, &["commit-tree", tree.trim(), "-m", "alone"]);
    git(&project, &["update-ref", &of_two, commit.trim()]);
    is_refused(&project, &[&run, "--to", "2", "--yes"], &["does not stand on a commit"]);
}

#[test]
fn a_step_that_was_handed_off_and_resumed_is_begun_with_the_tree_of_its_last_time() {
    let text = "
initial: a
states:
  a: {action: 'echo a >> x', next: b}
  b: {action: 'test -e left || { touch left; echo \"CONTEXT_HANDOFF: item\"; }', next: c}
  c: {action: 'cat x', on_yes: done}
  done: {terminal: true}";
    let project = repository(text, &[]);
    project.run(&["run", "main", "--no-ci", "--snapshots"]).code(75);
    let (run, _) = journals(&project).pop().unwrap();
    project.run(&["resume", &run, "--no-ci"]).code(0);
    // The first time, step 2 would leave the run; the second time, it goes on.
    for (step, code) in [("2", 0), ("1", 75)] {
        let known = journals(&project);
        project.run(&["rewind", &run, "--to", step, "--yes", "--no-ci"]).code(code);
        let (id, _) = newest(&project, &known);
        if code == 75 {
            let resumed = project.run(&["resume", &id, "--no-ci"]).code(0);
            let worktree = project.at(&format!(".loops/.worktrees/{id}"));
            assert_eq!(fs::read_to_string(worktree.join("x")).unwrap(), "0\na\n", "{}", resumed.all());
        }
    }
    assert_eq!(project.read("x"), "0\na\n");
}
