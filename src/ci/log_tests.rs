//! What the log of a run looks like in each CI system.

use std::io;
use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::Provider;
use crate::engine::event::Event;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::report::ci_log::{CiLog, MAX_LIVE};
use crate::report::testing::{Buffer, Journal, failing, planned, show, state, succeeding, working};
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
    text.replace('\u{1b}', "ESC").replace('\r', "CR")
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
fn a_success_on_gitlab() {
    assert_snapshot!(shown("gitlab", &succeeding()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ESC[0Ksection_start:1763682527:step_1_1763682527015[collapsed=true]CRESC[0K[1/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ESC[0Ksection_end:1763682529:step_1_1763682527015CRESC[0K
    ✗ no (exit 1, 2.3s) → fix
    ESC[0Ksection_start:1763682529:step_2_1763682529380[collapsed=true]CRESC[0K[1/20] fix → ruff check --fix src/
    ESC[0Ksection_end:1763682531:step_2_1763682529380CRESC[0K
    ✓ exit 0 (2.3s) → check
    ESC[0Ksection_start:1763682531:step_3_1763682531740[collapsed=true]CRESC[0K[2/20] check → mypy src/
    │ Success: no issues found
    ESC[0Ksection_end:1763682534:step_3_1763682531740CRESC[0K
    ✓ yes (exit 0, 2.3s) → done
    ✓ Loop completed: done (2 iterations, 7.0s)
    · success: `check` said yes
    "#);
}

#[test]
fn a_success_on_azure() {
    assert_snapshot!(shown("azure", &succeeding()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ##[group][1/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ##[endgroup]
    ✗ no (exit 1, 2.3s) → fix
    ##[group][1/20] fix → ruff check --fix src/
    ##[endgroup]
    ✓ exit 0 (2.3s) → check
    ##[group][2/20] check → mypy src/
    │ Success: no issues found
    ##[endgroup]
    ✓ yes (exit 0, 2.3s) → done
    ✓ Loop completed: done (2 iterations, 7.0s)
    · success: `check` said yes
    "#);
}

#[test]
fn a_success_on_buildkite() {
    assert_snapshot!(shown("buildkite", &succeeding()), @r#"
    ~~~ ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    --- [1/20] check → mypy src/
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ~~~ ✗ no (exit 1, 2.3s) → fix
    --- [1/20] fix → ruff check --fix src/
    ~~~ ✓ exit 0 (2.3s) → check
    --- [2/20] check → mypy src/
    │ Success: no issues found
    ~~~ ✓ yes (exit 0, 2.3s) → done
    +++ ✓ Loop completed: done (2 iterations, 7.0s)
    · success: `check` said yes
    "#);
}

#[test]
fn a_failure_on_buildkite_is_open_from_the_step_that_decided() {
    assert_snapshot!(shown("buildkite", &short()), @"
    ~~~ ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    --- [1/20] check → mypy src/
    │ --- a
    │ +++ b
    ~~~ ✗ no (exit 1, 2.3s) → failed
    +++ ── the step that decided: [1/20] check → mypy src/
    │ --- a
    │ +++ b
    ── ✗ no (exit 1, 2.3s)
    ✗ Loop failed: failed (1 iteration, 2.3s)
    · failure: `check` said no
    ");
}

#[test]
fn a_success_on_teamcity() {
    assert_snapshot!(shown("teamcity", &succeeding()), @r#"
    ▶ fix-types: at most 20 iterations, run fix-types-20251120T234847-1f2e
    ##teamcity[blockOpened name='|[1/20|] check → mypy src/']
    │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
    │ src/app.py:9:5: error: Missing return statement  [return]
    │ Found 2 errors in 1 file (checked 4 source files)
    ##teamcity[blockClosed name='|[1/20|] check → mypy src/']
    ✗ no (exit 1, 2.3s) → fix
    ##teamcity[blockOpened name='|[1/20|] fix → ruff check --fix src/']
    ##teamcity[blockClosed name='|[1/20|] fix → ruff check --fix src/']
    ✓ exit 0 (2.3s) → check
    ##teamcity[blockOpened name='|[2/20|] check → mypy src/']
    │ Success: no issues found
    ##teamcity[blockClosed name='|[2/20|] check → mypy src/']
    ✓ yes (exit 0, 2.3s) → done
    ✓ Loop completed: done (2 iterations, 7.0s)
    · success: `check` said yes
    "#);
}

/// A check that fails at once.
fn short() -> Journal {
    let mut journal = Journal::start();
    journal.step(("check", 1), "mypy src/", (1, "--- a\n+++ b\n"), "no", "failed");
    journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
    journal
}

#[test]
fn what_has_no_commands_gets_the_plain_log() {
    for name in ["circleci", "jenkins"] {
        assert_eq!(shown(name, &failing()), shown("plain", &failing()));
    }
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
fn a_hand_off_is_yellow() {
    let mut journal = Journal::start();
    journal.step(("check", 1), "mypy", (1, ""), "no", "fix");
    journal.end(Outcome::Handoff, TerminatedBy::Handoff, "fix", false);
    let buffer = Buffer::default();
    let dialect = Provider::by_name("github", &|_| None).unwrap().dialect();
    show(&mut CiLog::new(Box::new(buffer.clone()), dialect, true), &journal).unwrap();
    let text = buffer.text();
    assert!(text.contains("\u{1b}[33m⏸ Loop saved in fix (1 iteration, 2.3s)\u{1b}[0m\n"), "{text:?}");
}

#[test]
fn colours_of_tools_stay_where_they_are_shown_and_end_with_their_line() {
    let printed = "\u{1b}[31mred\u{1b}[0m \u{1b}[2Jand \u{1b}[1mbold";
    let said = |colour: bool| {
        let buffer = Buffer::default();
        let dialect = Provider::by_name("gitlab", &|_| None).unwrap().dialect();
        let mut log = CiLog::new(Box::new(buffer.clone()), dialect, colour);
        show(&mut log, Journal::start().enter("fix", 1).act("make")).unwrap();
        log.output(OutputLine { stream: Stream::Stdout, text: printed }).unwrap();
        drop(log);
        let text = buffer.text();
        text.lines().find(|line| line.starts_with('│')).unwrap().to_owned()
    };
    assert_eq!(said(true), "│ \u{1b}[31mred\u{1b}[0m and \u{1b}[1mbold\u{1b}[0m");
    assert_eq!(said(false), "│ red and bold");
}

#[test]
fn a_minute_without_a_line_is_filled() {
    let (mut log, buffer) = log("github");
    let mut journal = Journal::start();
    show(&mut log, journal.enter("fix", 1).act("sleep 999")).unwrap();
    let tick = |log: &mut CiLog, seconds: u64| log.tick(Duration::from_secs(seconds)).unwrap();
    (0..60).for_each(|second| tick(&mut log, second));
    log.output(OutputLine { stream: Stream::Stdout, text: "half way" }).unwrap();
    (60..=200).for_each(|second| tick(&mut log, second));
    log.event(journal.done(0, "", "").events.last().unwrap()).unwrap();
    let text = buffer.text();
    let between: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("::group::")).collect();
    assert_eq!(between[2..5], ["│ half way", "… still running, 1m 59s", "… still running, 2m 59s"], "{text}");
}

#[test]
fn who_waits_is_said_to_wait() {
    let (mut log, buffer) = log("plain");
    let mut journal = Journal::start();
    journal.push(Event::Backoff { state: state("check"), duration_ms: 100_000 });
    show(&mut log, &journal).unwrap();
    log.tick(Duration::from_mins(1)).unwrap();
    assert!(buffer.text().ends_with("… still waiting, 1m 0s\n"), "{}", buffer.text());
}

#[test]
fn a_closed_pipe_is_an_error() {
    let dialect = Provider::by_name("github", &|_| None).unwrap().dialect();
    let mut log = CiLog::new(Box::new(Buffer::closed_after(200)), dialect, false);
    assert_eq!(show(&mut log, &failing()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn work_on_a_board_is_grouped_by_task_and_stage() {
    assert_snapshot!(shown("github", &working()), @"
    ▶ build: run build-20251120T234847-1f2e
    ::group::plan (planner)
    ::stop::TOKEN
    │ plan prints
    ::TOKEN::
    ::endgroup::
    ✓ yes (2.3s)
    ▸ 1 task planned
    ::group::review (supervisor)
    ::stop::TOKEN
    │ review prints
    ::TOKEN::
    ::endgroup::
    ✗ partial 62 (2.3s): too vague
    ! the supervisor says remind about the plan
    ::group::plan (planner)
    ::stop::TOKEN
    │ plan prints
    ::TOKEN::
    ::endgroup::
    ✓ yes (revision 1 of 2, 2.3s)
    ▸ 3 tasks planned
    ::group::review (supervisor)
    ::stop::TOKEN
    │ review prints
    ::TOKEN::
    ::endgroup::
    ✓ 85 (revision 1 of 2, 2.3s)
    ▸ task 1 of 3: Add the login form
    ::group::task 1/3 Add the login form › implement (coder)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✓ complete (2.3s)
    ::group::task 1/3 Add the login form › test (tester)
    ::stop::TOKEN
    │ test prints
    ::TOKEN::
    ::endgroup::
    ✗ no (2.3s): 2 failures
    ::group::task 1/3 Add the login form › fix (coder, round 1 of 3)
    ::stop::TOKEN
    │ fix prints
    ::TOKEN::
    ::endgroup::
    ✓ fixed (round 1 of 3, 2.3s)
    ::group::task 1/3 Add the login form › test (tester, round 1 of 3)
    ::stop::TOKEN
    │ test prints
    ::TOKEN::
    ::endgroup::
    ✓ yes (round 1 of 3, 2.3s)
    ::group::task 1/3 Add the login form › verify (supervisor, round 1 of 3)
    ::stop::TOKEN
    │ verify prints
    ::TOKEN::
    ::endgroup::
    ✓ 85 (round 1 of 3, 2.3s)
    ✓ task 1 completed
    ▸ task 2 of 3: Store sessions
    ::group::task 2/3 Store sessions › implement (coder)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✓ complete (2.3s)
    ::group::task 2/3 Store sessions › verify (supervisor)
    ::stop::TOKEN
    │ verify prints
    ::TOKEN::
    ::endgroup::
    ✗ no 20 (2.3s): sessions are lost
    ! the supervisor says refocus about task 2
    ! task 2 failed in attempt 1: sessions are lost
    ▸ task 2 of 3, attempt 2: Store sessions
    ::group::task 2/3 Store sessions › implement (coder, attempt 2)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✓ complete (2.3s)
    ::group::task 2/3 Store sessions › verify (supervisor, attempt 2)
    ::stop::TOKEN
    │ verify prints
    ::TOKEN::
    ::endgroup::
    ✗ no 20 (2.3s): sessions are lost
    ! the supervisor says refocus about task 2
    ! task 2 failed in attempt 2: sessions are lost
    ::group::task 2/3 Store sessions › replan (planner, attempt 2)
    ::stop::TOKEN
    │ replan prints
    ::TOKEN::
    ::endgroup::
    ✓ yes (2.3s)
    ▾ task 2 split into 2 parts
    ▸ task 2.1: Pick a store
    ::group::task 2.1 Pick a store › implement (coder)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✓ complete (2.3s)
    ✓ task 2.1 completed
    ▸ task 2.2: Write to it
    ::group::task 2.2 Write to it › implement (coder)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✗ blocked (2.3s): no disk
    ! task 2.2 failed in attempt 1: no disk
    ▸ task 2.2, attempt 2: Write to it
    ::group::task 2.2 Write to it › implement (coder, attempt 2)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ::endgroup::
    ✗ blocked (2.3s): no disk
    ! task 2.2 failed in attempt 2: no disk
    ✗ task 2.2 failed
    ! task 3 cannot begin any more: task 2 is not completed
    ── the step that decided: implement (coder)
    ::stop::TOKEN
    │ implement prints
    ::TOKEN::
    ── ✗ blocked (exit 0, reason no disk, 2.3s)
    ✗ Loop failed: failed (1 iteration, 42.8s)
    · 2 of 4 tasks completed, 1 failed, 1 unreachable
    · failure: `implement` said blocked 2 of 6 times
    ");
}

#[test]
fn what_nobody_in_particular_does_is_shown_where_it_fails() {
    let mut journal = planned(&[("Add the form", &[])]);
    journal.operate("next", "next", &json!({}));
    journal.enter("facts", 1).act("git diff --stat").done(0, "1 file changed\n", "").route(None, "verify");
    journal
        .enter("facts", 1)
        .act("git diff --stat")
        .done(128, "", "not a git repository\n")
        .route(None, "verify");
    journal.begin("test", "tester");
    journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "test", false);
    let text = shown("plain", &journal);
    assert!(!text.contains("1 file changed"), "{text}");
    assert_snapshot!(text[text.find("▸ task").unwrap()..], @"
    ▸ task 1 of 1: Add the form
    ==> [1/500] facts → git diff --stat
    │ not a git repository
    ✗ exit 128 (2.3s)
    ==> task 1/1 Add the form › test (tester)
    • not finished
    ✗ Loop interrupted by SIGTERM in test (1 iteration, 14.2s)
    · 0 of 1 task completed
    · interrupted: SIGTERM in `test`
    · continue with `ll-loop resume build-20251120T234847-1f2e`
    ");
}

#[test]
fn a_description_is_no_command() {
    let hostile = "::error::x\u{1b}[2J##[error]|'<b>##teamcity[x]\n::add-mask::y";
    let mut journal = planned(&[(hostile, &[]), ("b", &[0])]);
    journal.operate("next", "next", &json!({})).stage("test", "tester", "no", &json!({"reason": hostile}));
    journal.operate("fail", "fail", &json!({"feedback": hostile}));
    journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
    for provider in ["github", "azure", "teamcity", "buildkite", "gitlab", "plain"] {
        let text = shown(provider, &journal);
        let obeyed = |line: &&str| {
            line.starts_with("::error") || line.starts_with("::add-mask") || line.starts_with("##[error]")
        };
        assert_eq!(text.lines().find(obeyed), None, "{text}");
        assert!(provider != "teamcity" || !text.contains("##teamcity[x]"), "{text}");
        let in_line = ["azure", "github"].contains(&provider) && text.contains("##[error]");
        assert!(!in_line, "{text}");
    }
}
