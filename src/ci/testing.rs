//! What every provider's log is tested with: a run whose action prints what it likes.

use std::sync::LazyLock;

use proptest::prelude::*;
use regex::Regex;

use super::plain::one_clean_line;
use crate::base::text::is_line_end;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::report::ci_log::CiLog;
use crate::report::dialect::Dialect;
use crate::report::testing::{Buffer, Journal};
use crate::report::{OutputLine, Sink as _, Stream};

/// A log, and how many steps of it have a group.
pub(super) struct TestLog {
    pub(super) log: String,
    pub(super) steps: usize,
}

/// Shows a failing run of two steps whose actions are called `action` and print `lines`, and makes sure that what they
/// print is still there: every character of it that can be seen, in its order.
#[track_caller]
pub(super) fn show<D: Dialect + Default + 'static>(action: &str, lines: &[&str]) -> TestLog {
    let log = logged::<D>(action, lines, false);
    // Colours are all that a log with colours has more.
    let coloured = logged::<D>(action, lines, true);
    assert_eq!(COLOUR.replace_all(&coloured, ""), log, "{lines:?}");
    let seen = |text: &str| text.split_whitespace().collect::<String>();
    for piece in lines.iter().flat_map(|line| line.split(is_line_end)) {
        let wanted = format!("│{}", seen(&one_clean_line(piece)));
        let count = log.lines().filter(|line| seen(line) == wanted).count();
        assert!(count >= 2, "{piece:?} is not there:\n{log}");
    }
    TestLog { log, steps: 2 }
}

/// What chooses a colour, as ECMA-48 writes it (SGR).
pub(super) static COLOUR: LazyLock<Regex> = LazyLock::new(|| Regex::new("\u{1b}\\[[0-9;]*m").unwrap());

fn logged<D: Dialect + Default + 'static>(action: &str, lines: &[&str], colour: bool) -> String {
    let buffer = Buffer::default();
    let mut log = CiLog::new(Box::new(buffer.clone()), Box::new(D::default()), colour);
    let mut journal = Journal::start();
    for (state, next) in [("fix", "check"), ("check", "failed")] {
        journal.enter(state, 1).act(action);
        journal.events.drain(..).for_each(|event| log.event(&event).unwrap());
        for text in lines {
            log.output(OutputLine { stream: Stream::Stderr, text }).unwrap();
        }
        journal.done(1, &lines.join("\n"), "").judge("no").route(Some("no"), next);
    }
    journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
    journal.events.drain(..).for_each(|event| log.event(&event).unwrap());
    drop(log);
    buffer.text()
}

/// Lines made of the pieces that a system's commands are made of, of what hides and splits, and of anything else.
pub(super) fn hostile(pieces: &'static [&'static str]) -> impl Strategy<Value = String> {
    const HIDING: &[&str] = &[
        " ",
        "\t",
        "\r",
        "\n",
        "\u{200b}",
        "\u{ad}",
        "\u{feff}",
        "\u{301}",
        "\u{1b}[31m",
        "\u{1b}[",
        "\u{1b}",
        "\u{9b}",
        "\u{7}",
        "\0",
        "\u{85}",
        "\u{2028}",
        "\u{2029}",
        "\u{a0}",
        "\u{202e}",
        "│ ",
        "· ",
        "x",
    ];
    let piece = prop_oneof![
        3 => proptest::sample::select(pieces).prop_map(str::to_owned),
        2 => proptest::sample::select(HIDING).prop_map(str::to_owned),
        1 => ".{0,4}",
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}
