//! `ll-loop replay`: the log of a run again, byte for byte.

use crate::common::{CHECK_FIX, Project, Ran, signal, wait_for};
use crate::runs::board::TASKS;
use crate::runs::rewind::{KINDS, repository};

const PROVIDERS: &[&str] = &[
    "github",
    "gitea",
    "forgejo",
    "gitlab",
    "azure",
    "buildkite",
    "teamcity",
    "circleci",
    "jenkins",
    "travis",
    "drone",
    "woodpecker",
    "bitbucket",
    "appveyor",
    "plain",
];

/// Prints what is hostile to one system or another, on both streams, and what looks like a line of the log file.
const HOSTILE: &str = r"
name: main
description: x
initial: check
max_iterations: 3
states:
  check:
    action: |
      printf '::error::x\n##[error]y\n##vso[task.complete]z\n\033[31mred\033[0m\r\033[0Ksection_end:1:x\n'
      echo '==> 2026-01-01T00:00:00.000Z check → make' >&2
      printf 'a\rb\n\nno end'
      exit 1
    on_yes: done
    on_no: fix
  fix: {action: 'echo fixed; echo also >&2', next: check}
  done: {terminal: true}
";

/// The same pass again and again, of which most are held back.
const ALIKE: &str = "\
name: main
description: x
initial: check
max_iterations: 9
states:
  check: {action: 'echo same; exit 1', on_yes: done, on_no: fix}
  fix: {action: 'echo no help', next: check}
  done: {terminal: true}
";

const NESTED: &str = "\
name: main
description: x
initial: first
states:
  first: {action: echo one, next: inner}
  inner: {loop: sub, on_success: last, on_failure: failed}
  last: {action: echo three, on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

const SUB: &str = "\
name: sub
description: x
initial: a
states:
  a: {action: echo two, next: b}
  b: {action: 'test -e /', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

const BROKEN: &str = "\
name: main
description: x
initial: a
states:
  a: {action: 'exit 7', on_yes: done, on_no: b}
  b: {action: 'kill -9 $$', on_yes: done, on_no: failed, on_error: failed}
  done: {terminal: true}
  failed: {terminal: true}
";

const CORPUS: &[&str] = &[CHECK_FIX, HOSTILE, ALIKE, NESTED, BROKEN];

fn project(text: &str) -> Project {
    Project::with_loop(text).file(".loops/sub.yaml", SUB).env("NO_COLOR", "1")
}

fn instance(project: &Project) -> String {
    project.events()[0]["run_id"].as_str().unwrap().to_owned()
}

/// The name by which the loop is run.
fn name(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap()
}

fn replayed(project: &Project, more: &[&str]) -> String {
    let instance = instance(project);
    project.run(&[&["replay", instance.as_str()], more].concat()).code(0).stdout
}

/// The log is the beginning of what was printed; behind it stand annotations, and closing lines about the reports.
#[track_caller]
fn same(ran: &Ran, replayed: &str) {
    assert!(replayed.lines().count() > 3, "{replayed:?}");
    if !ran.stdout.starts_with(replayed) {
        let first = ran.stdout.lines().zip(replayed.lines()).find(|(one, other)| one != other);
        panic!("{first:?}\n{}\n=====\n{replayed}", ran.stdout);
    }
    let rest = &ran.stdout[replayed.len()..];
    let is_ours = |line: &str| line.contains("│ ") || line.contains("[1/") || line.contains("Loop ");
    assert!(!rest.lines().any(is_ours), "{rest}");
}

#[test]
fn every_log_is_shown_again_byte_for_byte() {
    for text in CORPUS {
        for provider in PROVIDERS {
            let project = project(text);
            let ran = project.run(&["run", name(text), &format!("--ci={provider}")]);
            same(&ran, &replayed(&project, &[]));
        }
    }
}

#[test]
fn a_person_sees_again_what_was_on_the_console() {
    for text in CORPUS {
        for more in [&[][..], &["--verbose"], &["--color", "always"]] {
            let project = project(text);
            let ran = project.run(&[&["run", name(text)], more].concat());
            same(&ran, &replayed(&project, &[]));
        }
    }
}

#[test]
fn until_a_step_is_a_prefix_that_ends_with_its_verdict() {
    let project = project(NESTED);
    let ran = project.run(&["run", "main", "--ci=github"]);
    let mut length = 0;
    for (step, arrow) in
        [("1", "→ inner"), ("2.1", "→ b"), ("2.2", "→ done"), ("2", "→ last"), ("3", "→ done")]
    {
        let prefix = replayed(&project, &["--until", step]);
        assert!(ran.stdout.starts_with(&prefix), "{step}: {prefix}");
        assert!(prefix.lines().last().unwrap().ends_with(arrow), "{step}: {prefix}");
        assert!(prefix.len() > length, "{step}");
        length = prefix.len();
    }
    let instance = instance(&project);
    let ran = project.run(&["replay", &instance, "--until", "9"]).code(2);
    assert!(ran.stderr.contains("has no step 9"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    project.run(&["replay", "nothing"]).code(2);
}

#[test]
fn another_provider_shows_it_in_its_own_way() {
    let project = project(CHECK_FIX);
    let _ran = project.run(&["run", name(CHECK_FIX), "--ci=github"]);
    let shown = replayed(&project, &["--ci=buildkite"]);
    assert!(shown.contains("\n--- [1/") && !shown.contains("::group::"), "{shown}");
    project.run(&["replay", &instance(&project), "--ci=cvs"]).code(2);
}

#[test]
fn no_action_can_read_the_token_that_ends_its_block() {
    let text = "\
name: main
description: x
initial: a
states:
  a: {action: 'echo one; cat .loops/.running/*.jsonl', next: b}
  b: {action: 'echo two; cat .loops/.running/*.jsonl', next: done}
  done: {terminal: true}
";
    let project = project(text);
    let ran = project.run(&["run", "main", "--ci=github"]);
    same(&ran, &replayed(&project, &[]));
    let tokens: Vec<&str> =
        ran.stdout.lines().filter_map(|line| line.strip_prefix("::stop-commands::")).collect();
    assert_eq!(tokens.len(), 2, "{}", ran.stdout);
    for token in tokens {
        let (before, _) = ran.stdout.split_once(&format!("::{token}::\n")).unwrap();
        assert_eq!(before.matches(token).count(), 1, "{}", ran.stdout);
    }
    assert!(ran.stdout.contains("state_enter"), "{}", ran.stdout);
}

#[test]
fn what_is_not_kept_is_counted() {
    let project = project(CHECK_FIX);
    let _ran = project.run(&["run", name(CHECK_FIX), "--ci=plain"]);
    let whole = replayed(&project, &[]);
    for log in project.run_files(".log") {
        std::fs::remove_file(log).unwrap();
    }
    let without = replayed(&project, &[]);
    assert_eq!(whole.contains("│ "), without.contains("bytes not kept"), "{without}");
}

#[test]
fn every_part_of_a_resumed_run_is_shown_as_it_was() {
    let text = "\
name: main
description: x
initial: look
states:
  look: {action: echo looking, next: check}
  check: {action: 'echo checking; test -f flag', on_yes: done, on_no: failed}
  done: {terminal: true}
  failed: {terminal: true}
";
    let project = project(text);
    let first = project.run(&["run", "main", "--ci=github"]).code(1);
    project.write("flag", "");
    let second = project.run(&["resume", "main", "--ci=gitlab"]).code(0);
    let shown = replayed(&project, &[]);
    let at = shown.char_indices().map(|(at, _)| at).filter(|at| *at > 0);
    let is_split =
        |at: usize| first.stdout.starts_with(&shown[..at]) && second.stdout.starts_with(&shown[at..]);
    assert!(at.clone().any(is_split), "{shown}\n=====\n{}\n=====\n{}", first.stdout, second.stdout);
    assert!(shown.contains("::group::") && shown.contains("section_start"), "{shown}");
}

#[test]
fn every_kind_of_loop_is_shown_again() {
    for (at, (kind, text, more, arguments)) in KINDS.iter().enumerate() {
        let provider = PROVIDERS[at % PROVIDERS.len()];
        let project = repository(text, more);
        let ran = project.run(&[&["run", "main", &format!("--ci={provider}")], *arguments].concat());
        assert_ne!(ran.code, Some(2), "{kind}: {}", ran.all());
        same(&ran, &replayed(&project, &[]));
    }
}

#[test]
fn the_work_on_a_board_is_shown_again() {
    for more in [&["--ci=github"][..], &["--ci=gitlab"], &[], &["--verbose"]] {
        let project = Project::with_loop(TASKS).env("NO_COLOR", "1");
        let ran = project.run(&[&["run", "main"], more].concat()).code(1);
        same(&ran, &replayed(&project, &[]));
    }
}

#[test]
fn a_run_in_a_bundle_and_one_with_secrets_is_shown_again() {
    let text = "\
name: main
description: x
initial: a
states:
  a: {action: 'echo one $MY_TOKEN two; echo \"$MY_TOKEN\" >&2; exit 1', on_yes: done, on_no: b}
  b: {action: 'printf %s $MY_TOKEN | base64', next: done}
  done: {terminal: true}
";
    let project = project(text).env("MY_TOKEN", "s3cr3t-v4lue-0f-a-t0ken");
    let ran = project.run(&["run", "main", "--ci=github", "--report-dir", "out"]).code(1);
    same(&ran, &replayed(&project, &[]));
    assert!(ran.stdout.contains("one *** two"), "{}", ran.stdout);
    let bundle = format!("out/{}.llz", instance(&project));
    same(&ran, &project.run(&["replay", &bundle]).code(0).stdout);
}

#[test]
fn a_killed_run_is_shown_again_as_far_as_it_came() {
    let text = "\
name: main
description: x
initial: a
states:
  a: {action: 'echo one', next: b}
  b: {action: 'echo two; touch begun; while test -e begun; do sleep 0.02; done', next: done}
  done: {terminal: true}
";
    let project = project(text);
    let mut child = project.start_until(&["run", "main", "--ci=plain"], "begun");
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    std::fs::remove_file(project.at("begun")).unwrap();
    wait_for(|| project.run(&["status"]).stdout.contains("crashed"));
    let shown = replayed(&project, &[]);
    assert!(shown.contains("│ one\n"), "{shown}");
    assert!(!shown.contains("Loop "), "it has no end: {shown}");
}

#[test]
fn which_stream_a_line_was_printed_on_is_kept() {
    let text = "\
name: main
description: x
initial: a
states:
  a: {action: \"echo out; echo err >&2; sleep 0.1; printf '\\\\037looks like it\\n'\", next: done}
  done: {terminal: true}
";
    let project = project(text);
    let ran = project.run(&["run", "main", "--ci=plain"]).code(1);
    same(&ran, &replayed(&project, &[]));
    let log = std::fs::read_to_string(&project.run_files(".log")[0]).unwrap();
    assert!(log.contains("\nout\n") && log.contains("\n\u{1f}err\n"), "{log:?}");
    assert!(log.contains("\n\u{1e}\u{1f}looks like it\n"), "{log:?}");
    let shown = project.run(&["logs", "main"]).code(0).stdout;
    assert!(shown.contains("\nerr\n") && !shown.contains("\u{1f}err"), "{shown:?}");
}
