//! The progress of a run for a person at a terminal. It writes to a given stream and never prints; a terminal
//! that went away is an error value like any other.

mod screen;

use std::io::{self, Write};
use std::time::Duration;

use console::{Style, truncate_str};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use screen::{MIN_WIDTH, Screen, SharedScreen};

use super::board_work::TaskChange;
use super::closing::{advice, headline};
use super::digest::{EndKind, changed_tree};
use super::loop_level::LoopViews;
use super::passes::{Released, Repeats};
use super::reading_place::Reader;
use super::silence::SilenceMeter;
use super::stages::{self, RoleStage};
use super::step::{Step, StepStanding};
use super::{OutputLine, Sink, wording};
use crate::base::text::{coloured, head, is_direction, is_line_end, one_line, plain};
use crate::base::time::{human, millis};
use crate::engine::event::{BoardEvent, Event, RouteReason, Shown, Stamped};

/// How much a console says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The last words only.
    Quiet,
    /// Every step, and the end of the output of the one that decided a failed run.
    Normal,
    /// Every step with all that it prints.
    Verbose,
}

impl Verbosity {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Normal => "normal",
            Self::Verbose => "verbose",
        }
    }

    /// Reads the word for it.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Quiet, Self::Normal, Self::Verbose].into_iter().find(|verbosity| verbosity.word() == word)
    }
}

/// How a console looks. All of it is decided by the caller.
#[derive(Clone, Copy, Debug)]
pub struct ConsoleOptions {
    /// How much it says.
    pub verbosity: Verbosity,
    /// Whether it may use colour.
    pub colour: bool,
    /// The columns of the window; none for a file or a pipe, where only texts of the loop are cut.
    pub width: Option<usize>,
    /// Whether there is a person in front of it: a spinner shows passing time.
    pub interactive: bool,
}

/// A sink that writes for people.
pub struct Console {
    out: SharedScreen,
    look: ConsoleOptions,
    levels: LoopViews,
    repeats: Repeats,
    spinner: Option<ProgressBar>,
    /// How long nothing was written, where no spinner shows that the run goes on.
    silence: SilenceMeter,
    /// Lines of output since the last event.
    lines: u64,
    /// How it looks, until somebody asked.
    shown: Vec<Shown>,
}

/// Columns of a text that is cut where there is no window.
const LOG_WIDTH: usize = 120;

const INDENT: &str = "       ";
const SHOWN_AT_END: usize = 15;

/// Columns for the state and for the role of a stage.
const NAME_COLUMN: usize = 12;
const ROLE_COLUMN: usize = 11;

/// Bytes of the line beside the spinner, which is cut to the window.
const MAX_BESIDE: usize = 400;

/// Columns of a spinner for itself and the passing time.
const CLOCK_COLUMNS: usize = 10;

/// Columns of a spinner for what runs.
const MAX_RUNNING: usize = 40;

/// An action is cut to the window; this bounds the work on texts that are far longer.
const MAX_ACTION: usize = 1000;

impl Console {
    /// Makes a console that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>, look: ConsoleOptions) -> Self {
        Self {
            out: SharedScreen::new(out),
            look,
            levels: LoopViews::new(),
            repeats: Repeats::default(),
            spinner: None,
            silence: SilenceMeter::default(),
            lines: 0,
            shown: Vec::new(),
        }
    }

    /// Writes what was held back.
    fn release(&mut self, Released { notice, lines }: Released) -> io::Result<()> {
        let notice = notice.map(|notice| self.style().dim().apply_to(notice).to_string());
        notice.into_iter().chain(lines).try_for_each(|line| self.write(&line))
    }

    /// Says where people can read about the run.
    #[must_use]
    pub fn read_by(mut self, reader: Reader) -> Self {
        self.levels.digest.reader = reader;
        self
    }

    /// Notes how the log looks, for whoever shows it again.
    #[must_use]
    pub fn of_look(mut self, look: Shown) -> Self {
        self.shown.push(look);
        self
    }

    fn show(&mut self, event: &Event) -> io::Result<()> {
        if self.look.verbosity == Verbosity::Quiet {
            let is_end = matches!(event, Event::LoopComplete(_)) && !self.levels.is_nested();
            return if is_end { self.finish() } else { Ok(()) };
        }
        // With a task board, the work is shown by task and stage, not by state.
        let by_task = self.levels.digest.work().is_some();
        match event {
            Event::LoopResume(_) | Event::Approval(_) => match wording::line(event, &self.levels) {
                Some(line) => self.line(&line.alone()),
                None => Ok(()),
            },
            Event::SubLoopStart { .. } if !by_task => self.head(),
            Event::LoopStart(_)
            | Event::StateEnter { .. }
            | Event::SubLoopStart { .. }
            | Event::SubLoopComplete(_)
            | Event::Message { .. }
            | Event::VerdictTree { .. }
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Signal { .. }
            | Event::Handoff(_)
            | Event::LoopTimeout { .. } => Ok(()),
            Event::Board(event) => self.operated(event),
            Event::ActionStart { .. } if by_task => self.stage_begins(),
            Event::ActionStart { .. } => {
                let number = self.levels.digest.unfinished().map_or(0, |step| step.number);
                self.levels.recent.begin(number);
                self.head()?;
                self.spin("");
                Ok(())
            }
            Event::ActionComplete(_) => {
                self.stop_spinner();
                let closing = self.levels.digest.unfinished().is_some_and(|step| step.closing);
                if closing { self.verdict() } else { Ok(()) }
            }
            Event::Route { reason: RouteReason::Maintain, .. }
            | Event::Retry { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::CallFailed(_)
            | Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::ClosingPassEnd(_)
            | Event::Reused(_)
            | Event::Stall { .. } => self.note(event),
            Event::Evaluate { .. } | Event::Route { .. } if by_task => self.stage(),
            Event::Evaluate { .. } => {
                self.levels.verdict_due = false;
                self.verdict()
            }
            Event::Route { .. } => {
                if std::mem::take(&mut self.levels.verdict_due) {
                    self.verdict()?;
                }
                self.note(event)
            }
            Event::ActionError { .. } | Event::LoopError { .. } if by_task => {
                self.stop_spinner();
                if self.levels.digest.unfinished().is_some_and(|step| step.result.is_some()) {
                    self.stage()?;
                }
                self.note(event)
            }
            Event::ActionError { .. } | Event::LoopError { .. } => {
                if !self.levels.headed {
                    self.head()?;
                }
                self.note(event)
            }
            Event::LoopComplete(_) if self.levels.is_nested() => Ok(()),
            Event::LoopComplete(_) => self.finish(),
        }
    }

    /// Shows a stage that the end of the run cut off.
    fn cut_off(&mut self) -> io::Result<()> {
        let has_begun = self.levels.digest.unfinished().is_some_and(|step| step.role().is_some());
        if has_begun && self.levels.digest.work().is_some() { self.stage() } else { Ok(()) }
    }

    fn stage_begins(&mut self) -> io::Result<()> {
        let Some(step) = self.levels.digest.unfinished() else {
            return Ok(());
        };
        let (number, running) = (step.number, one_line(&stages::running(step), MAX_RUNNING));
        let is_closing = step.closing;
        let action = step.action_line(MAX_ACTION).unwrap_or_default();
        self.levels.recent.begin(number);
        if is_closing {
            self.head()?;
        } else if self.look.verbosity == Verbosity::Verbose {
            // What it prints comes before its result.
            let place = format!("{}{}{running}", self.margin(), self.levels.prefix);
            let line = wording::began(place, &action);
            self.begins(&line)?;
        }
        self.spin(&running);
        Ok(())
    }

    /// Writes the result of a stage, once: `implement   coder      ✓ complete (34.0s)`.
    fn stage(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.levels.verdict_due) {
            return Ok(());
        }
        let is_verbose = self.look.verbosity == Verbosity::Verbose;
        let (Some(step), Some(work)) = (self.levels.digest.unfinished(), self.levels.digest.work()) else {
            return Ok(());
        };
        let is_shown = !stages::is_silent(step) || (is_verbose && step.result.is_some());
        if step.is_operation() || !is_shown {
            return Ok(());
        }
        let RoleStage { name, role, words } = RoleStage::of(step, work);
        let name = pad(&format!("{}{name}", self.levels.prefix), NAME_COLUMN);
        let (name, role) = (self.style().bold().apply_to(name), pad(&role, ROLE_COLUMN));
        let words = self.standing(step).apply_to(format!("{} {words}", step.mark()));
        self.line(&format!("{}{name} {role} {words}", self.margin()))
    }

    /// Writes the result of an operation on the board, unless the next line shows it.
    fn operated(&mut self, event: &BoardEvent) -> io::Result<()> {
        let Some(work) = self.levels.digest.work() else {
            return Ok(());
        };
        let style = |turn: &TaskChange| match turn {
            TaskChange::Planned(_) | TaskChange::Split(..) => self.style(),
            TaskChange::Began(_) => self.style().bold(),
            TaskChange::Completed(_) => self.style().green(),
            TaskChange::Failed(_) => self.style().red(),
        };
        let turns = work.turns().iter();
        let lines: Vec<String> = turns
            .map(|turn| style(turn).apply_to(format!("{}{}", self.levels.prefix, stages::turn(turn, work))))
            .map(|line| line.to_string())
            .collect();
        lines.iter().try_for_each(|line| self.line(line))?;
        // What is said about an attempt stands with it, though the task may not be worked on any more.
        let margin = if stages::are_about_an_attempt(&event.notes) { "  " } else { self.margin() };
        stages::notes(&event.notes).iter().try_for_each(|note| self.line(&format!("{margin}! {note}")))
    }

    /// What belongs to a state or to a task stands below it.
    fn margin(&self) -> &'static str {
        match self.levels.digest.work() {
            None => INDENT,
            Some(work) if work.board().current().is_some() => "  ",
            Some(_) => "",
        }
    }

    /// Writes `[1/20] check → mypy src/`, in a sub-loop with the loops on the way there.
    fn head(&mut self) -> io::Result<()> {
        self.levels.headed = true;
        let Some(step) = self.levels.digest.unfinished() else {
            return Ok(());
        };
        let heading = wording::heading(step, &self.levels, MAX_ACTION);
        let count = self.style().dim().apply_to(&heading.count);
        let place = self.style().bold().apply_to(&heading.place);
        self.begins(&format!("{count} {}", heading.began(place)))
    }

    fn verdict(&mut self) -> io::Result<()> {
        if !self.levels.headed {
            self.head()?;
        }
        let Some(step) = self.levels.digest.unfinished() else {
            return Ok(());
        };
        let line = format!("{} {}", step.mark(), step.verdict_line());
        let line = self.standing(step).apply_to(line).to_string();
        self.line(&format!("{INDENT}{line}"))
    }

    /// Writes the line of an event below its state or task. A task does not say which of its states it is about, and a
    /// warning need not be about the state that it comes up in.
    fn note(&mut self, event: &Event) -> io::Result<()> {
        let Some(line) = wording::line(event, &self.levels) else {
            return Ok(());
        };
        let (sign, is_task) = (line.sign, self.levels.digest.work().is_some());
        let names_state = is_task || matches!(event, Event::Warning { .. });
        let text = if names_state { line.alone() } else { line.below_its_state() };
        self.line(&format!("{}{sign} {text}", self.margin()))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stop_spinner();
        let Some(end) = self.levels.digest.end() else {
            return Ok(());
        };
        let good = self.levels.digest.is_success() && end.verified;
        let style = if good { self.style().green() } else { self.style().yellow() };
        let is_red = !matches!(self.levels.digest.end_kind(), EndKind::Success | EndKind::HandedOff);
        let style = if is_red { self.style().red() } else { style };
        let mut lines = Vec::new();
        // With `--verbose` the output stands above already.
        if self.look.verbosity == Verbosity::Normal {
            lines.extend(self.deciding_output());
        }
        if self.look.verbosity > Verbosity::Quiet {
            lines.push(String::new());
        }
        lines.push(style.bold().apply_to(headline(end)).to_string());
        lines.extend(self.levels.digest.work().and_then(stages::progress));
        lines.extend(changed_tree::closing(&self.levels.digest));
        if !good {
            lines.push(self.levels.digest.sentence());
            lines.extend(advice(&self.levels.digest).map(|advice| advice.to_string()));
        }
        // Not cut to the window as other lines are: advice holds a command, which must be whole to
        // be pasted.
        lines.iter().try_for_each(|line| self.out.line(line))
    }

    fn deciding_output(&self) -> Vec<String> {
        // Without a result there is nothing but the error, which stands above.
        let Some(step) = self.levels.digest.deciding_step().filter(|step| step.result.is_some()) else {
            return Vec::new();
        };
        let lines = self.levels.recent.of(step, SHOWN_AT_END);
        // What was said about the state stands above, and stands below once more as the end of the run.
        let is_said = |line: &String| step.error.as_ref().is_some_and(|error| error.contains(line.as_str()));
        if lines.iter().all(is_said) {
            return Vec::new();
        }
        let title = format!("the last lines of {}:", one_line(step.state.as_str(), 120));
        let quoted = lines.iter().flat_map(|line| self.quoted(line)).map(|line| self.cut(&line));
        [String::new(), title].into_iter().chain(quoted).collect()
    }

    fn style(&self) -> Style {
        Style::new().force_styling(self.look.colour)
    }

    fn standing(&self, step: &Step) -> Style {
        match step.standing() {
            StepStanding::Passing => self.style().green(),
            StepStanding::Failing => self.style().red(),
            StepStanding::Open => self.style().dim(),
        }
    }

    /// Cuts a line to the window. A file has none, and whoever reads it later wants all of it.
    fn cut(&self, line: &str) -> String {
        match self.look.width {
            Some(width) => truncate_str(line, width.max(MIN_WIDTH), "…").into_owned(),
            None => line.to_owned(),
        }
    }

    /// Returns the columns for what need not be seen whole anywhere, such as the text of an action.
    fn columns(&self) -> usize {
        self.look.width.unwrap_or(LOG_WIDTH).max(MIN_WIDTH)
    }

    /// Writes a line with the text of an action, which the loop file has as well.
    fn begins(&mut self, line: &str) -> io::Result<()> {
        let line = truncate_str(line, self.columns(), "…").into_owned();
        self.line(&line)
    }

    /// Writes a line, with the spinner out of the way.
    fn line(&mut self, line: &str) -> io::Result<()> {
        let line = self.cut(line);
        if !self.repeats.is_holding() {
            return self.write(&line);
        }
        match self.repeats.hold(line) {
            Some(released) => self.release(released),
            None => Ok(()),
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.silence.end();
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| self.out.line(line)),
            None => self.out.line(line),
        }
    }

    /// Shows passing time, and what runs where no line above says it.
    fn spin(&mut self, running: &str) {
        if !self.look.interactive {
            return;
        }
        let screen = Screen { out: self.out.clone(), width: self.columns() };
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen), 10);
        let spinner = ProgressBar::with_draw_target(None, target);
        let prefix = if running.is_empty() { "" } else { "{prefix} " };
        let template = format!("{}{{spinner}} {prefix}{{elapsed}} {{msg}}", self.margin());
        if let Ok(style) = ProgressStyle::with_template(&template) {
            spinner.set_style(style);
        }
        spinner.set_prefix(running.to_owned());
        self.spinner = Some(spinner);
    }

    /// Shows the last line of output that says anything, as much as fits.
    fn show_beside_spinner(&self, text: &str) {
        let Some(spinner) = &self.spinner else { return };
        let before = self.margin().len() + console::measure_text_width(&spinner.prefix()) + CLOCK_COLUMNS;
        let room = self.columns().saturating_sub(before);
        let line = one_line(head(text, MAX_BESIDE), MAX_BESIDE);
        let line = truncate_str(&line, room, "…");
        if !line.is_empty() {
            spinner.set_message(self.style().dim().apply_to(line).to_string());
        }
    }

    /// Returns a line of output as it is shown: free of escapes but for colours, in as many lines as a terminal would
    /// make of it.
    fn quoted(&self, text: &str) -> Vec<String> {
        let shown = |piece: &str| {
            // What turns the direction of reading could make a line of output look like one of ours.
            let clean: String = plain(piece).chars().filter(|c| !is_direction(*c)).collect();
            let shown = if self.look.colour { coloured(piece, &clean) } else { None };
            // How many columns a tab takes depends on where it stands, and the line is cut by its columns.
            shown.unwrap_or(clean).replace('\t', "    ")
        };
        text.split(is_line_end).map(|piece| format!("{INDENT}│ {}", shown(piece))).collect()
    }

    fn stop_spinner(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

impl Sink for Console {
    fn name(&self) -> &'static str {
        "the console"
    }

    fn event(&mut self, stamped: &Stamped) -> io::Result<()> {
        self.lines = 0;
        if let Event::Backoff { .. } | Event::StateEnter { .. } | Event::ActionStart { .. } = stamped.event {
            self.silence.begin();
        }
        if matches!(stamped.event, Event::LoopComplete(_)) && self.look.verbosity > Verbosity::Quiet {
            self.cut_off()?;
        }
        // `--verbose` is for those who want to see everything.
        let is_terse = self.look.verbosity == Verbosity::Normal;
        if let Some(released) = is_terse.then(|| self.repeats.event(stamped)).flatten() {
            self.release(released)?;
        }
        self.levels.event(stamped);
        if matches!(stamped.event, Event::StateEnter { .. }) {
            (self.levels.headed, self.levels.verdict_due) = (false, true);
        }
        self.show(&stamped.event)?;
        self.out.flush()
    }

    fn past(&mut self, stamped: &Stamped) {
        self.levels.event(stamped);
    }

    fn output(&mut self, line: OutputLine<'_>) -> io::Result<()> {
        self.lines += 1;
        self.levels.recent.push(line.text);
        if self.look.verbosity < Verbosity::Verbose {
            self.show_beside_spinner(line.text);
            return Ok(());
        }
        self.silence.end();
        // Never cut: `--verbose` is for copying the output.
        for line in self.quoted(line.text) {
            match &self.spinner {
                Some(spinner) => spinner.suspend(|| self.out.line(&line))?,
                None => self.out.line(&line)?,
            }
        }
        Ok(())
    }

    fn shown(&mut self, _is_over: bool) -> Vec<Shown> {
        std::mem::take(&mut self.shown)
    }

    fn still(&mut self, took: Duration) -> io::Result<()> {
        // What is held back until a pass is over has to wait; this cannot.
        self.write(&format!("{}… still running, {}", self.margin(), human(took)))
    }

    fn tick(&mut self, running: Duration) -> io::Result<()> {
        // A spinner shows the time itself, and `--quiet` is for the last words alone.
        let is_watched = self.look.interactive || self.look.verbosity == Verbosity::Quiet;
        if let Some(took) = self.silence.tick(running).filter(|_| !is_watched) {
            self.shown.push(Shown::Still { lines: self.lines, took_ms: millis(took) });
            self.still(took)?;
        }
        if let Some(spinner) = &self.spinner {
            spinner.tick();
        }
        self.out.flush()
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.stop_spinner();
        let held = self.repeats.release();
        let _written = held.map(|released| self.release(released));
    }
}

/// Returns a text with spaces behind it up to a column.
fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(console::measure_text_width(text));
    format!("{text}{}", " ".repeat(missing))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::super::Stream;
    use super::super::testing::{Buffer, Journal, failing, plan, planned, show, succeeding, working};
    use super::*;
    use crate::engine::event::{ActionKind, LoopResume, ResumeChanges, ResumeReason, RouteReason};
    use crate::engine::outcome::{Outcome, TerminatedBy};
    use crate::evaluate::observation::{Observation, Stop};

    const LOOK: ConsoleOptions =
        ConsoleOptions { verbosity: Verbosity::Normal, colour: false, width: Some(80), interactive: false };

    fn shown(journal: &Journal, look: ConsoleOptions) -> String {
        let buffer = Buffer::default();
        let mut console = Console::new(Box::new(buffer.clone()), look);
        show(&mut console, journal).unwrap();
        drop(console);
        buffer.text()
    }

    #[test]
    fn a_success() {
        assert_snapshot!(shown(&succeeding(), LOOK), @r"
        [1/20] check → mypy src/
               ✗ no (exit 1, 2.3s)
               → fix
        [1/20] fix → ruff check --fix src/
               ✓ exit 0 (2.3s)
               → check
        [2/20] check → mypy src/
               ✓ yes (exit 0, 2.3s)
               → done

        Loop completed: done (2 iterations, 7.0s)
        ");
    }

    #[test]
    fn a_failure_shows_what_was_printed_last() {
        assert_snapshot!(shown(&failing(), LOOK), @r#"
        [1/20] check → mypy src/
               ✗ no (exit 1, 2.3s)
               → fix
        [1/20] fix → ruff check --fix src/
               ✓ exit 0 (2.3s)
               → check
        [2/20] check → mypy src/
               ✗ no (exit 1, 2.3s)
               → fix
        [2/20] fix → ruff check --fix src/
               ✓ exit 0 (2.3s)
               → check
        [3/20] check → mypy src/
               ✗ no (exit 1, 2.3s)
               → failed

        the last lines of check:
               │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
               │ src/app.py:9:5: error: Missing return statement  [return]
               │ Found 2 errors in 1 file (checked 4 source files)

        Loop failed: failed (3 iterations, 11.8s)
        failure: `check` said no in 3 of 3 iterations
        "#);
    }

    #[test]
    fn work_on_a_board_is_told_by_task_and_stage() {
        assert_snapshot!(shown(&working(), LOOK), @"
        plan         planner     ✓ yes (2.3s)
        1 task planned
        review       supervisor  ✗ partial 62 (2.3s): too vague
        ! the supervisor says remind about the plan
        plan         planner     ✓ yes (revision 1 of 2, 2.3s)
        3 tasks planned
        review       supervisor  ✓ 85 (revision 1 of 2, 2.3s)
        task 1 of 3: Add the login form
          implement    coder       ✓ complete (2.3s)
          test         tester      ✗ no (2.3s): 2 failures
          fix          coder       ✓ fixed (round 1 of 3, 2.3s)
          test         tester      ✓ yes (round 1 of 3, 2.3s)
          verify       supervisor  ✓ 85 (round 1 of 3, 2.3s)
        task 1 completed
        task 2 of 3: Store sessions
          implement    coder       ✓ complete (2.3s)
          verify       supervisor  ✗ no 20 (2.3s): sessions are lost
          ! the supervisor says refocus about task 2
          ! task 2 failed in attempt 1: sessions are lost
        task 2 of 3, attempt 2: Store sessions
          implement    coder       ✓ complete (2.3s)
          verify       supervisor  ✗ no 20 (2.3s): sessions are lost
          ! the supervisor says refocus about task 2
          ! task 2 failed in attempt 2: sessions are lost
          replan       planner     ✓ yes (2.3s)
        task 2 split into 2 parts
        task 2.1: Pick a store
          implement    coder       ✓ complete (2.3s)
        task 2.1 completed
        task 2.2: Write to it
          implement    coder       ✗ blocked (2.3s): no disk
          ! task 2.2 failed in attempt 1: no disk
        task 2.2, attempt 2: Write to it
          implement    coder       ✗ blocked (2.3s): no disk
          ! task 2.2 failed in attempt 2: no disk
        task 2.2 failed
        ! task 3 cannot begin any more: task 2 is not completed

        the last lines of implement:
               │ implement prints

        Loop failed: failed (1 iteration, 42.8s)
        2 of 4 tasks completed, 1 failed, 1 unreachable
        failure: `implement` said blocked 2 of 6 times
        ");
    }

    #[test]
    fn verbose_shows_what_every_stage_prints() {
        let mut journal = planned(&[("Add the form", &[])]);
        journal.operate("next", "next", &json!({})).stage("implement", "coder", "complete", &json!({}));
        journal.next("facts", 1, "git diff --stat", 0, "verify");
        assert_snapshot!(shown(&journal, ConsoleOptions { verbosity: Verbosity::Verbose, ..LOOK }), @"
        plan (planner) → do plan
               │ plan prints
        plan         planner     ✓ yes (2.3s)
        1 task planned
        review (supervisor) → do review
               │ review prints
        review       supervisor  ✗ partial 62 (2.3s): too vague
        ! the supervisor says remind about the plan
        plan (planner) → do plan
               │ plan prints
        plan         planner     ✓ yes (revision 1 of 2, 2.3s)
        1 task planned
        review (supervisor) → do review
               │ review prints
        review       supervisor  ✓ 85 (revision 1 of 2, 2.3s)
        task 1 of 1: Add the form
          implement (coder) → do implement
               │ implement prints
          implement    coder       ✓ complete (2.3s)
          facts → git diff --stat
          facts                    ✓ exit 0 (2.3s)
        ");
        journal.operate("pass", "pass", &json!({}));
        journal.end(Outcome::Success, TerminatedBy::Terminal, "completed", true);
        assert_snapshot!(shown(&journal, ConsoleOptions { verbosity: Verbosity::Quiet, ..LOOK }), @"
        Loop completed: completed (1 iteration, 14.2s)
        1 of 1 task completed
        ");
    }

    #[test]
    fn everything_that_can_happen_to_a_stage() {
        let mut journal = planned(&[("Add the form", &[]), ("Use it", &[0])]);
        journal.operate("next", "next", &json!({})).begin("implement", "coder");
        journal.seen(Observation::not_started("no such model")).judge("error");
        let implement = || super::super::testing::state("implement");
        journal.push(Event::Retry { state: implement(), attempt: 2, max_retries: 3 });
        journal.push(Event::Backoff { state: implement(), duration_ms: 1500 });
        journal.stage("implement", "coder", "complete", &json!({}));
        // What fails is a line, whoever did it.
        journal.next("facts", 1, "git diff --stat", 128, "verify");
        journal.operate("split", "split", &json!({"answer": {"subtasks": []}}));
        journal.push(Event::Warning { state: Some(implement()), message: "odd\u{1b}[2J\rthing".into() });
        journal
            .begin("test", "tester")
            .seen(Observation { stop: Some(Stop::Cancelled), ..Observation::exited(143, "") });
        journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "test", false);
        journal.push(Event::LoopResume(LoopResume {
            from_state: super::super::testing::state("recover"),
            iteration: 1,
            step: 16,
            reason: ResumeReason::Interrupted,
            continuation: None,
            keeps_sessions: false,
            tree_changed: false,
            changes: ResumeChanges::default(),
        }));
        journal.operate("recover", "recover", &json!({})).operate("next", "next", &json!({}));
        journal.enter("implement", 1);
        journal.push(Event::LoopError {
            state: implement(),
            error: "`${captured.x.output}` has no value".into(),
        });
        journal.end(Outcome::Error, TerminatedBy::Error, "implement", false);
        assert_snapshot!(shown(&journal, LOOK), @"
        plan         planner     ✓ yes (2.3s)
        1 task planned
        review       supervisor  ✗ partial 62 (2.3s): too vague
        ! the supervisor says remind about the plan
        plan         planner     ✓ yes (revision 1 of 2, 2.3s)
        2 tasks planned
        review       supervisor  ✓ 85 (revision 1 of 2, 2.3s)
        task 1 of 2: Add the form
          implement    coder       ✗ error (failed, 0ms): no such model
          ↻ implement: retry 1 of 3
          … waiting 1.5s before implement
          implement    coder       ✓ complete (2.3s)
          facts                    ✗ exit 128 (2.3s)
          ! the plan has no tasks
          ! warning in implement: odd…
          test         tester      • stopped (0ms)

        Loop interrupted by SIGTERM in test (1 iteration, 14.3s)
        0 of 2 tasks completed
        interrupted: SIGTERM in `test`
        continue with `ll-loop resume build-20251120T234847-1f2e`
        goes on in recover: the run was interrupted; 0 of 2 tasks completed
        ! task 1 begins anew: it was in_progress
        task 1 of 2: Add the form
          ✗ error in implement: `${captured.x.output}` has no value

        Loop ended by an error in implement (1 iteration, 14.3s)
        0 of 2 tasks completed
        error: `implement`: `${captured.x.output}` has no value
        ");
        let digest = journal.digest();
        let cut_off = digest.steps().filter(|step| step.state.as_str() == "test").count();
        assert_eq!((cut_off, digest.states()[&super::super::testing::state("test")].visits), (1, 1));
        assert!(digest.unfinished().is_none());
    }

    #[test]
    fn a_description_is_one_line_that_moves_nothing() {
        let hostile = "::error::x\u{1b}[2J`|<b>\r\n\u{202e}##[error]";
        let mut journal = planned(&[(hostile, &[]), (hostile, &[0])]);
        journal.operate("next", "next", &json!({}));
        journal.stage("test", hostile, "no", &json!({"reason": hostile}));
        journal.operate("fail", "fail", &json!({"feedback": hostile}));
        let text = shown(&journal, LOOK);
        assert!(text.lines().all(|line| console::measure_text_width(line) <= 80), "{text}");
        assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || is_direction(c))), "{text}");
        assert!(text.contains("task 1 of 2: ::error::x`|<b>…\n"), "{text}");
    }

    #[test]
    fn the_spinner_says_which_stage_runs() {
        let buffer = Buffer::default();
        let mut console =
            Console::new(Box::new(buffer.clone()), ConsoleOptions { interactive: true, ..LOOK });
        let mut journal = Journal::on_board();
        journal.operate("load", "load", &plan(&[("a", &[])])).operate("next", "next", &json!({}));
        journal.begin("implement", "coder");
        show(&mut console, &journal).unwrap();
        console.tick(Duration::ZERO).unwrap();
        drop(console);
        assert!(buffer.text().contains("implement (coder)"), "{:?}", buffer.text());
        assert!(!screen(&buffer.text()).contains("implement"), "{}", screen(&buffer.text()));
    }

    #[test]
    fn verbose_shows_all_and_quiet_the_last_words() {
        assert_snapshot!(shown(&succeeding(), ConsoleOptions { verbosity: Verbosity::Verbose, ..LOOK }), @r#"
        [1/20] check → mypy src/
               │ src/app.py:3: error: Name "foo" is not defined  [name-defined]
               │ src/app.py:9:5: error: Missing return statement  [return]
               │ Found 2 errors in 1 file (checked 4 source files)
               ✗ no (exit 1, 2.3s)
               → fix
        [1/20] fix → ruff check --fix src/
               ✓ exit 0 (2.3s)
               → check
        [2/20] check → mypy src/
               │ Success: no issues found
               ✓ yes (exit 0, 2.3s)
               → done

        Loop completed: done (2 iterations, 7.0s)
        "#);
        assert_snapshot!(shown(&failing(), ConsoleOptions { verbosity: Verbosity::Quiet, ..LOOK }), @r"
        Loop failed: failed (3 iterations, 11.8s)
        failure: `check` said no in 3 of 3 iterations
        ");
    }

    #[test]
    fn a_narrow_window_and_wide_characters() {
        let mut journal = Journal::start();
        journal.step(("prüfen", 1), "echo 日本語のとても長い行 && make test", (0, ""), "yes", "done");
        let text = shown(&journal, ConsoleOptions { width: Some(20), ..LOOK });
        assert_snapshot!(text, @r"
        [1/20] prüfen → ech…
               ✓ yes (exit …
               → done
        ");
        assert!(text.lines().all(|line| console::measure_text_width(line) <= 20));
        let colour = shown(&journal, ConsoleOptions { width: Some(30), colour: true, ..LOOK });
        assert!(colour.lines().all(|line| console::measure_text_width(line) <= 30), "{colour}");
        assert_snapshot!(colour.replace('\u{1b}', "^"), @r"
        ^[2m[1/20]^[0m ^[1mprüfen^[0m → echo 日本語の…
               ^[32m✓ yes (exit 0, 2.3s)^[0m
               → done
        ");
    }

    #[test]
    fn everything_that_can_happen_between_steps() {
        let mut journal = Journal::start();
        journal.enter("route", 1).judge("yes").route(Some("yes"), "slow");
        journal.enter("slow", 1).act("sleep 9").seen(Observation {
            stop: Some(Stop::Timeout),
            duration: std::time::Duration::from_secs(5),
            ..Observation::exited(124, "")
        });
        let slow = || super::super::testing::state("slow");
        journal.judge("timeout");
        journal.push(Event::Retry { state: slow(), attempt: 2, max_retries: 3 });
        journal.push(Event::Backoff { state: slow(), duration_ms: 1500 });
        journal.enter("slow", 2).act("sleep 9").seen(Observation::not_started("no such shell: `zsh`"));
        journal.judge("error");
        journal.push(Event::Warning { state: Some(slow()), message: "odd\u{1b}[2J\rthing".into() });
        journal.push(Event::Route {
            from: slow(),
            to: super::super::testing::state("failed"),
            verdict: None,
            reason: RouteReason::Error,
        });
        let state = super::super::testing::state("failed");
        journal
            .push(Event::ActionStart {
                state,
                action: "notify".into(),
                kind: ActionKind::Shell,
                role: None,
                session: None,
                tree: None,
            })
            .done(1, "", "");
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        assert_snapshot!(shown(&journal, LOOK), @r"
        [1/20] route
               ✓ yes
               → slow
        [1/20] slow → sleep 9
               ✗ timeout (timed out, 5.0s)
               ↻ retry 1 of 3
               … waiting 1.5s before slow
        [2/20] slow → sleep 9
               ✗ error (not started, 0ms)
               ! warning in slow: odd…
               → failed
        [end] failed → notify
               • exit 1 (2.3s)

        the last lines of slow:
               │ no such shell: `zsh`

        Loop failed: failed (2 iterations, 7.4s)
        failure: `slow` said error in 1 of 2 iterations
        ");
    }

    #[test]
    fn every_outcome_has_its_last_words() {
        let mut said = String::new();
        for (outcome, terminated_by) in [
            (Outcome::Success, TerminatedBy::Terminal),
            (Outcome::Exhausted, TerminatedBy::MaxIterations),
            (Outcome::Exhausted, TerminatedBy::MaxSteps),
            (Outcome::Error, TerminatedBy::Error),
            (Outcome::Blocked, TerminatedBy::Blocked),
            (Outcome::Timeout, TerminatedBy::Timeout),
            (Outcome::Handoff, TerminatedBy::Handoff),
            (Outcome::Stopped, TerminatedBy::LoopStop),
            (Outcome::Error, TerminatedBy::FatalError),
            (Outcome::OverBudget, TerminatedBy::Budget),
            (Outcome::Unavailable, TerminatedBy::Unavailable),
            (Outcome::Interrupted, TerminatedBy::Interrupted),
        ] {
            let mut journal = Journal::start();
            journal.step(("check", 1), "make", (1, ""), "no", "fix");
            journal.end(outcome, terminated_by, "fix", false);
            said += &shown(&journal, ConsoleOptions { verbosity: Verbosity::Quiet, ..LOOK });
        }
        assert_snapshot!(said, @"
        Loop completed, unverified: fix (1 iteration, 2.3s)
        success (unverified): `check` said no and nothing passed after it
        Loop exhausted in fix (1 iteration, 2.3s)
        exhausted: met the cap of 20 iterations; `check` said no
        raise `max_iterations`, or look at why the check never passes
        Loop exhausted in fix (1 iteration, 2.3s)
        exhausted: met the cap of steps after 1 step; `check` said no
        raise `max_steps`, or look at why it needs so many
        Loop ended by an error in fix (1 iteration, 2.3s)
        error: `check` said no
        Loop blocked in fix (1 iteration, 2.3s)
        blocked: `check` said no
        a person has to look at it
        Loop timed out in fix (1 iteration, 2.3s)
        timeout: in `fix` after 2.3s
        continue with `ll-loop resume fix-types-20251120T234847-1f2e --timeout 60s`
        Loop saved in fix (1 iteration, 2.3s)
        handoff: saved in `fix`
        continue with `ll-loop resume fix-types-20251120T234847-1f2e`
        Loop stopped in fix (1 iteration, 2.3s)
        stopped: in `fix`
        Loop ended by an error in fix (1 iteration, 2.3s)
        error: `fix`: 
        Loop over its budget in fix (1 iteration, 2.3s)
        over_budget: in `fix`
        raise the `budget` of the loop, and continue with `ll-loop resume fix-types-20251120T234847-1f2e --accept-changes`
        Loop unable to go on in fix (1 iteration, 2.3s)
        unavailable: in `fix`
        continue with `ll-loop resume fix-types-20251120T234847-1f2e`
        Loop interrupted by SIGTERM in fix (1 iteration, 2.3s)
        interrupted: SIGTERM in `fix`
        continue with `ll-loop resume fix-types-20251120T234847-1f2e`
        ");
    }

    #[test]
    fn a_closed_pipe_is_an_error() {
        for bytes in [0, 30, 100] {
            let mut console = Console::new(Box::new(Buffer::closed_after(bytes)), LOOK);
            assert_eq!(show(&mut console, &failing()).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        }
        let mut console =
            Console::new(Box::new(Buffer::closed_after(30)), ConsoleOptions { interactive: true, ..LOOK });
        let mut journal = Journal::start();
        journal.enter("a", 1).act("b");
        let result = show(&mut console, &journal)
            .and_then(|()| console.tick(Duration::ZERO))
            .and_then(|()| console.tick(Duration::ZERO));
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    proptest::proptest! {
        #[test]
        fn nothing_from_outside_moves_the_cursor(
            text in "(\\PC|\u{1b}|\\[|2J|\r|\n|\u{7}|\u{9b}|\u{202e}){0,20}"
        ) {
            let mut journal = Journal::start();
            journal.step(("check", 1), &text, (1, &text), &text, "failed");
            journal.push(Event::Warning { state: None, message: text.clone() });
            journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", true);
            for verbosity in [Verbosity::Quiet, Verbosity::Normal, Verbosity::Verbose] {
                let written = shown(&journal, ConsoleOptions { verbosity, ..LOOK });
                proptest::prop_assert!(!written.chars().any(|c| c != '\n' && (c.is_control() || is_direction(c))));
            }
        }
    }

    #[test]
    fn an_error_before_the_action_names_its_state() {
        let mut journal = Journal::start();
        journal.enter("fix", 1);
        let error = "`${captured.x.output}` has no value".to_owned();
        journal.push(Event::LoopError { state: super::super::testing::state("fix"), error });
        journal.end(Outcome::Error, TerminatedBy::Error, "fix", false);
        assert_snapshot!(shown(&journal, LOOK), @r"
        [1/20] fix
               ✗ `${captured.x.output}` has no value

        Loop ended by an error in fix (1 iteration, 15ms)
        error: `fix`: `${captured.x.output}` has no value
        ");
    }

    /// What a terminal shows in the end, for the few sequences that the spinner uses.
    fn screen(written: &str) -> String {
        let mut lines = vec![String::new()];
        let mut row = 0;
        let mut rest = written;
        while let Some(c) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("\r\u{1b}[2K") {
                lines[row].clear();
                rest = after;
                continue;
            }
            if let Some(after) = rest.strip_prefix("\u{1b}[") {
                let (count, after) = after.split_at(after.find(|c: char| c.is_alphabetic()).unwrap());
                let count: usize = count.parse().unwrap();
                match after.chars().next().unwrap() {
                    'A' => row -= count,
                    'B' => row += count,
                    other => panic!("unexpected sequence {other}"),
                }
                rest = &after[1..];
                continue;
            }
            match c {
                '\n' => row += 1,
                c => lines[row].push(c),
            }
            if lines.len() == row {
                lines.push(String::new());
            }
            rest = &rest[c.len_utf8()..];
        }
        lines.iter().map(|line| line.trim_end().to_owned() + "\n").collect::<String>().trim_end().to_owned()
            + "\n"
    }

    /// What stands on the terminal while an action runs that printed `lines`.
    fn beside_spinner(lines: &[&str], look: ConsoleOptions) -> String {
        let buffer = Buffer::default();
        let mut console =
            Console::new(Box::new(buffer.clone()), ConsoleOptions { interactive: true, ..look });
        let mut journal = Journal::start();
        show(&mut console, journal.enter("check", 1).act("make")).unwrap();
        for text in lines {
            console.output(OutputLine { stream: Stream::Stdout, text }).unwrap();
        }
        // Drawing is limited in time, and this is not.
        console.spinner.as_ref().unwrap().force_draw();
        let kept = screen(&buffer.text());
        drop(console);
        kept
    }

    #[test]
    fn the_last_line_of_output_stands_beside_the_spinner() {
        let kept = beside_spinner(&["one", "\u{1b}[31mtwo\u{1b}[2J\tthree\u{202e}", "  "], LOOK);
        assert!(kept.lines().last().unwrap().ends_with("0s two three"), "{kept}");
        let long = beside_spinner(&["x".repeat(5000).as_str()], LOOK);
        assert!(long.lines().all(|line| console::measure_text_width(line) <= 80), "{long}");
        assert!(long.lines().last().unwrap().contains("xxxx"), "{long}");
    }

    #[test]
    fn colours_of_tools_stay_where_there_are_colours() {
        let buffer = Buffer::default();
        let look = ConsoleOptions { verbosity: Verbosity::Verbose, colour: true, ..LOOK };
        let mut console = Console::new(Box::new(buffer.clone()), look);
        let text = "\u{1b}[32mgreen\u{1b}[2J \u{1b}]0;title\u{7}text";
        console.output(OutputLine { stream: Stream::Stdout, text }).unwrap();
        assert_eq!(buffer.text(), "       │ \u{1b}[32mgreen text\u{1b}[0m\n");
    }

    #[test]
    fn the_spinner_leaves_nothing_behind() {
        let buffer = Buffer::default();
        let look = ConsoleOptions { interactive: true, verbosity: Verbosity::Verbose, ..LOOK };
        let mut console = Console::new(Box::new(buffer.clone()), look);
        for stamped in &succeeding().events {
            console.event(stamped).unwrap();
            for text in ["one", "two"] {
                console.tick(Duration::ZERO).unwrap();
                console.output(OutputLine { stream: Stream::Stdout, text }).unwrap();
            }
        }
        drop(console);
        let text = buffer.text();
        assert!(text.contains('⠁') || text.contains("0s"), "{text:?}");
        let kept = screen(&text);
        assert!(kept.contains("[1/20] check → mypy src/\n       │ one\n       │ two\n"), "{kept}");
        assert!(!kept.contains("0s\n") && !kept.contains('⠁'), "{kept}");
    }
}
