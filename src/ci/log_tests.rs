//! What the log of a run looks like in each CI system.

use std::io;

use insta::assert_snapshot;

use super::Provider;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::report::ci_log::{CiLog, MAX_LIVE};
use crate::report::testing::{Buffer, Journal, failing, show, succeeding};
use crate::report::{OutputLine, Sink, Stream};

fn log(provider: &str) -> (CiLog, Buffer) {
    let buffer = Buffer::default();
    let dialect = Provider::by_name(provider, &|_| None).unwrap().dialect();
    (CiLog::new(Box::new(buffer.clone()), dialect, false), buffer)
}

/// The log with every random token as `TOKEN`.
fn shown(provider: &str, journal: &Journal) -> String {
    let (mut log, buffer) = log(provider);
    show(&mut log, journal).unwrap();
    drop(log);
    let mut text = buffer.text();
    while let Some((_, rest)) =
        text.split_once("::stop-commands::").filter(|(_, rest)| !rest.starts_with("TOKEN"))
    {
        let token = rest.lines().next().unwrap().to_owned();
        text = text.replace(&token, "TOKEN").replacen("::stop-commands::TOKEN", "::stop::TOKEN", 1);
    }
    text
}

#[test]
fn a_success_on_github() {
    assert_snapshot!(shown("github", &succeeding()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ::group::[1/20] check → mypy src/
    ::stop::TOKEN
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, 2.3s) → fix
    ::group::[1/20] fix → ruff check --fix src/
    ::endgroup::
    ✓ exit 0 (2.3s) → check
    ::group::[2/20] check → mypy src/
    ::stop::TOKEN
    │ Success: no issues found
    ::TOKEN::
    ::endgroup::
    ✓ yes (exit 0, 2.3s) → done
    ✓ Loop completed: done (2 iterations, 7.0s)
    · success: `check` said yes
    "#);
}

#[test]
fn a_failure_on_github_ends_with_the_step_that_decided() {
    assert_snapshot!(shown("github", &failing()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ::group::[1/20] check → mypy src/
    ::stop::TOKEN
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, 2.3s) → fix
    ::group::[1/20] fix → ruff check --fix src/
    ::endgroup::
    ✓ exit 0 (2.3s) → check
    ::group::[2/20] check → mypy src/
    ::stop::TOKEN
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, 2.3s) → fix
    ::group::[2/20] fix → ruff check --fix src/
    ::endgroup::
    ✓ exit 0 (2.3s) → check
    ::group::[3/20] check → mypy src/
    ::stop::TOKEN
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ::TOKEN::
    ::endgroup::
    ✗ no (exit 1, 2.3s) → failed
    ── the step that decided: [3/20] check → mypy src/
    ::stop::TOKEN
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ::TOKEN::
    ── ✗ no (exit 1, 2.3s)
    ✗ Loop failed: failed (3 iterations, 11.8s)
    · failure: `check` said no in 3 of 3 iterations
    "#);
}

#[test]
fn a_failure_elsewhere() {
    assert_snapshot!(shown("plain", &failing()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ==> [1/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ✗ no (exit 1, 2.3s) → fix
    ==> [1/20] fix → ruff check --fix src/
    ✓ exit 0 (2.3s) → check
    ==> [2/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ✗ no (exit 1, 2.3s) → fix
    ==> [2/20] fix → ruff check --fix src/
    ✓ exit 0 (2.3s) → check
    ==> [3/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ✗ no (exit 1, 2.3s) → failed
    ── the step that decided: [3/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ── ✗ no (exit 1, 2.3s)
    ✗ Loop failed: failed (3 iterations, 11.8s)
    · failure: `check` said no in 3 of 3 iterations
    "#);
}

#[test]
fn a_state_without_an_action_is_a_line() {
    let mut journal = Journal::start();
    journal.enter("choose", 1).judge("yes").route(Some("yes"), "done");
    journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
    assert_snapshot!(shown("github", &journal), @r"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ✓ [1/20] choose: yes → done
    ✓ Loop completed: done (1 iteration, 20ms)
    · success: `choose` said yes
    ");
}

#[test]
fn what_is_open_is_closed_whatever_happens() {
    let mut journal = Journal::start();
    journal.enter("fix", 1).act("sleep 9");
    let begun = |journal: &Journal| {
        let (mut log, buffer) = log("github");
        show(&mut log, journal).unwrap();
        log.output(OutputLine { stream: Stream::Stdout, text: "half" }).unwrap();
        (log, buffer)
    };
    let closed = |text: &str| {
        let token = text.split_once("::stop-commands::").unwrap().1.lines().next().unwrap().to_owned();
        assert!(text.contains(&format!("│ half\n::{token}::\n::endgroup::\n")), "{text}");
    };
    let (log, buffer) = begun(&journal);
    drop(log);
    closed(&buffer.text());

    let (mut log, buffer) = begun(&journal);
    journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "fix", false);
    log.event(journal.events.last().unwrap()).unwrap();
    closed(&buffer.text());
}

#[test]
fn a_step_that_prints_without_end_does_not_fill_the_log() {
    let mut journal = Journal::start();
    journal.enter("fix", 1).act("yes");
    let (mut log, buffer) = log("plain");
    show(&mut log, &journal).unwrap();
    let text = "y".repeat(1023);
    for _ in 0..3 * MAX_LIVE / 1024 {
        log.output(OutputLine { stream: Stream::Stdout, text: &text }).unwrap();
    }
    log.event(journal.done(0, "", "").events.last().unwrap()).unwrap();
    assert!(buffer.text().len() < 5 * 1024 * 1024);
    assert!(buffer.text().ends_with("│ … 8.0 MiB more in the log file of the run\n"));
}

#[test]
fn a_closed_pipe_is_an_error() {
    let dialect = Provider::by_name("github", &|_| None).unwrap().dialect();
    let mut log = CiLog::new(Box::new(Buffer::closed_after(200)), dialect, false);
    assert_eq!(show(&mut log, &failing()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
