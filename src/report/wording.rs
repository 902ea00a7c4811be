//! The words for each event, for every sink and for what is shown later: who shows a line decides where it stands and
//! whether it is shown, and chooses none of its words. What a step came to is worded in [`super::step`], the work on a
//! task board in [`super::stages`], and the end of a run in [`super::closing`].

use std::fmt;
use std::time::Duration;

use super::digest::closing_rows::ClosingStanding;
use super::loop_level::LoopView;
use super::stages;
use super::step::Step;
use crate::base::name::StateName;
use crate::base::text::{listed_in_part, one_line, plural};
use crate::base::time::human;
use crate::engine::closing_pass;
use crate::engine::event::{
    CallFailed, ClosingPassEnd, Event, LoopResume, LoopStart, ResumeReason, RouteReason,
};

/// Characters of a line; the journal has the rest.
const MAX_LINE: usize = 1000;

/// Characters of a state's name.
const MAX_NAME: usize = 120;

/// A line about an event.
pub(super) struct Line {
    /// The sign in front.
    pub(super) sign: &'static str,
    /// What kind of news it is, where a name for it helps: `error`.
    topic: &'static str,
    state: Option<String>,
    words: String,
}

impl Line {
    fn new(sign: &'static str, words: &str) -> Self {
        Self { sign, topic: "", state: None, words: one_line(words, MAX_LINE) }
    }

    fn topic(self, topic: &'static str) -> Self {
        Self { topic, ..self }
    }

    fn about(self, state: &StateName) -> Self {
        Self { state: Some(one_line(state.as_str(), MAX_NAME)), ..self }
    }

    /// Returns the text for a place where the state stands above it.
    pub(super) fn below_its_state(self) -> String {
        self.words
    }

    /// Returns the text for a place where it stands alone: `error in check: it crashed`.
    pub(super) fn alone(self) -> String {
        let Self { topic, state, words, .. } = self;
        match (topic, state) {
            ("", None) => words,
            ("", Some(state)) => format!("{state}: {words}"),
            (topic, None) => format!("{topic}: {words}"),
            (topic, Some(state)) => format!("{topic} in {state}: {words}"),
        }
    }
}

/// Puts an event into words; nothing for one that is part of a step, whose line is about the whole of it.
pub(super) fn line(event: &Event, level: &LoopView) -> Option<Line> {
    let line = match event {
        Event::LoopStart(start) => Line::new("▶", &started(start)),
        Event::Approval(approval) => Line::new("▶", &approval.sentence()),
        Event::LoopResume(resume) => Line::new("▶", &resumed(resume, level)),
        Event::Route { to, reason: RouteReason::Maintain, .. } => Line::new("↻", &format!("again from {to}")),
        Event::Route { to, .. } => Line::new("→", to.as_str()),
        Event::Retry { state, attempt, max_retries } => {
            // The first attempt was no retry.
            Line::new("↻", &format!("retry {} of {max_retries}", attempt.saturating_sub(1))).about(state)
        }
        Event::Backoff { state, duration_ms } => {
            Line::new("…", &format!("waiting {} before {state}", human(Duration::from_millis(*duration_ms))))
        }
        Event::Warning { state, message } => warning(state.as_ref(), message),
        Event::Signal { state, signal, text } => {
            Line::new("!", &format!("{} {text}", signal.word())).topic("signal").about(state)
        }
        Event::Handoff(handoff) => Line::new("→", &handoff.message).topic("handoff").about(&handoff.state),
        // The sentence names the state.
        Event::Stall { state, window, seen } => Line::new("!", &seen.sentence(state, *window)).topic("stall"),
        Event::ActionError { state, error } | Event::LoopError { state, error } => {
            Line::new("✗", error).topic("error").about(state)
        }
        Event::CallFailed(CallFailed { state, error, in_a_row, .. }) => {
            let words =
                format!("no usable answer, {} in a row: {}", plural(*in_a_row, "time"), one_line(error, 300));
            Line::new("!", &words).about(state)
        }
        Event::LoopTimeout { state, elapsed_ms } => {
            let elapsed = human(Duration::from_millis(*elapsed_ms));
            Line::new("✗", &format!("timeout of the loop in {state} after {elapsed}"))
        }
        Event::Reused(reused) => Line::new("✓", &reused.words_by_run()),
        Event::ClosingPassStart(start) => Line::new("↻", &closing_pass::words(start)),
        Event::ClosingPassCheck(check) => {
            let sign = match ClosingStanding::of(check) {
                ClosingStanding::Passed => "✓",
                ClosingStanding::Failed if check.is_refusal() => "✗",
                ClosingStanding::Quarantined | ClosingStanding::Failed => "•",
            };
            let again = if check.made_again { ", and is made again" } else { "" };
            let took = human(Duration::from_millis(check.duration_ms));
            Line::new(
                sign,
                &format!("{} once more{}: {} ({took}){again}", check.check, check.without(), check.verdict),
            )
        }
        Event::ClosingPassProof(proof) => {
            let tests = listed_in_part(&proof.tests);
            let took = human(Duration::from_millis(proof.duration_ms));
            let check = &proof.check;
            if proof.passed {
                Line::new("!", &format!("{check} passes without the work, with {tests} ({took})"))
            } else {
                Line::new("✓", &format!("{check} without the work says no to {tests} ({took})"))
            }
        }
        Event::ClosingPassEnd(end) => return passed(end),
        Event::StateEnter { .. }
        | Event::ActionStart { .. }
        | Event::ActionComplete(_)
        | Event::Evaluate { .. }
        | Event::VerdictTree { .. }
        | Event::Judge { .. }
        | Event::Sandbox(_)
        | Event::Message { .. }
        | Event::SubLoopStart { .. }
        | Event::SubLoopComplete(_)
        | Event::Board(_)
        | Event::LoopComplete(_) => return None,
    };
    Some(line)
}

/// Says what a closing pass came to where that does not follow from its checks.
fn passed(end: &ClosingPassEnd) -> Option<Line> {
    let named = listed_in_part(&end.put_back);
    if let Some(why) = &end.failed {
        return Some(Line::new("!", &format!("the closing pass was not made: {why}")).topic("warning"));
    }
    if let Some(why) = &end.unknown {
        return Some(
            Line::new("!", &format!("the tree after the closing pass is not known: {why}")).topic("warning"),
        );
    }
    (!end.put_back.is_empty()).then(|| {
        Line::new(
            "!",
            &format!("the checks of the closing pass changed files, which are as they were: {named}"),
        )
        .topic("warning")
    })
}

/// Puts a warning into words.
pub(super) fn warning(state: Option<&StateName>, message: &str) -> Line {
    let line = Line::new("!", message).topic("warning");
    match state {
        Some(state) => line.about(state),
        None => line,
    }
}

fn started(start: &LoopStart) -> String {
    // The work on a board is bounded by the board.
    let cap = start.board.is_none().then(|| plural(start.max_iterations, "iteration"));
    let cap = cap.map_or_else(String::new, |cap| format!("at most {cap}, "));
    format!("{}: {cap}run {}", start.r#loop, start.run_id)
}

fn resumed(resume: &LoopResume, level: &LoopView) -> String {
    let place = format!("{}{}", level.prefix, resume.from_state);
    let (count, progress) = match level.digest.work() {
        None => (format!("[{}/{}] ", resume.iteration, level.max_iterations), None),
        Some(work) => (String::new(), stages::progress(work)),
    };
    let progress = progress.map_or_else(String::new, |progress| format!("; {progress}"));
    if resume.reason == ResumeReason::Rewound {
        let parent = level.digest.start().and_then(|start| start.parent.as_ref());
        let from = parent.map_or_else(String::new, |parent| format!(" from {}", parent.run));
        return format!("{count}begins again in {place}: rewound{from}{progress}");
    }
    format!("{count}goes on in {place}: the run {}{progress}", resume.reason.words())
}

/// The beginning of a step in words: `[2/20] fix → ruff check --fix src/`.
pub(super) struct Heading {
    /// The pass, or `[end]` for the closing action of a terminal.
    pub(super) count: String,
    /// The state, in a sub-loop with the loops on the way there.
    pub(super) place: String,
    action: Option<String>,
}

/// Puts the beginning of a step into words, with so many characters of its action.
pub(super) fn heading(step: &Step, level: &LoopView, limit: usize) -> Heading {
    let of_pass = || format!("[{}/{}]", step.iteration, level.max_iterations);
    let count = if step.closing { "[end]".to_owned() } else { of_pass() };
    let place = format!("{}{}", level.prefix, one_line(step.state.as_str(), MAX_NAME));
    Heading { count, place, action: step.action_line(limit) }
}

impl Heading {
    /// Says what begins, with the place as it was made to look.
    pub(super) fn began(&self, place: impl fmt::Display) -> String {
        match &self.action {
            Some(action) => began(place, action),
            None => place.to_string(),
        }
    }
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.began(&self.place))
    }
}

/// Says that an action begins: `fix → ruff check --fix src/`.
pub(super) fn began(place: impl fmt::Display, action: &str) -> String {
    format!("{place} → {action}")
}
