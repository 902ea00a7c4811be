//! The log of a run in CI: a flat group per step that holds what its action printed, and after it, visible without
//! opening the group, what the step came to. What actions print can issue no command.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use console::Style;

use super::closing::{advice, headline};
use super::dialect::Dialect;
use super::digest::{EndKind, changed_tree};
use super::loop_level::LoopViews;
use super::passes::{Released, Repeats};
use super::reading_place::Reader;
use super::silence::SilenceMeter;
use super::stages::{self, RoleStage};
use super::step::Step;
use super::wording::{self, Heading};
use super::{OutputLine, Sink};
use crate::base::sum::Sum;
use crate::base::text::{coloured, is_line_end, plural};
use crate::base::time::{Timestamp, human, millis};
use crate::engine::event::{BoardEvent, Event, RouteReason, Shown, Stamped};

/// Bytes of one step's output that are shown as they come; the log file of the run holds the rest.
pub const MAX_LIVE: u64 = 4 * 1024 * 1024;

/// Lines of the deciding step that stand open at the end of a failed run.
const SHOWN_AT_END: usize = 30;

const MAX_TITLE: usize = 200;

/// The sign of a run that goes on elsewhere.
const HANDED_OFF: &str = "⏸";

/// A sink that writes the log of a CI system.
pub struct CiLog {
    out: Box<dyn Write>,
    dialect: Box<dyn Dialect>,
    colour: bool,
    levels: LoopViews,
    repeats: Repeats,
    open: OpenGroups,
    live: u64,
    held: u64,
    /// Whether what runs is shown only if it fails.
    is_silent: bool,
    silence: SilenceMeter,
    /// Whether the run waits before the next piece of work.
    is_waiting: bool,
    /// When the last event happened.
    now: Timestamp,
    /// Lines of output since the last event.
    lines: u64,
    tokens: Tokens,
    /// What a replay of this log has to know, as far as it was not asked for yet.
    shown: Vec<Shown>,
}

/// The tokens that end blocks of output.
#[derive(Default)]
struct Tokens {
    /// Those of a log that is shown again.
    known: VecDeque<String>,
    /// That of the last block. No action knew it while it printed.
    last: Option<String>,
    /// Whether a replay will know that of the block that is open.
    is_told: bool,
}

impl Tokens {
    /// Returns the token of the next block; none for a random one.
    fn next(&mut self, is_end: bool) -> Option<String> {
        // The journal is complete when the end is shown. What is quoted there was printed before the last token was
        // told to anybody, so it cannot hold what is made from that.
        let at_end =
            || self.last.as_ref().map(|last| Sum::of(last.as_bytes()).to_string().chars().take(32).collect());
        if is_end && self.last.is_some() { at_end() } else { self.known.pop_front() }
    }
}

/// What has to be closed before the log goes back to others.
#[derive(Default)]
struct OpenGroups {
    group: bool,
    block: bool,
    /// The end of the run, which nothing closes: everything from there on is seen.
    end: bool,
}

impl CiLog {
    /// Makes a log that speaks `dialect` on `out`.
    pub fn new(out: Box<dyn Write>, dialect: Box<dyn Dialect>, colour: bool) -> Self {
        Self {
            out,
            dialect,
            colour,
            levels: LoopViews::new(),
            repeats: Repeats::default(),
            open: OpenGroups::default(),
            live: 0,
            held: 0,
            is_silent: false,
            silence: SilenceMeter::default(),
            is_waiting: false,
            now: Timestamp::from_millis(0),
            lines: 0,
            tokens: Tokens::default(),
            shown: Vec::new(),
        }
    }

    /// Ends blocks with these tokens, to show a log again.
    #[must_use]
    pub fn with_tokens(mut self, tokens: impl IntoIterator<Item = String>) -> Self {
        self.tokens.known.extend(tokens);
        self
    }

    /// Notes how the log looks, for whoever shows it again.
    #[must_use]
    pub fn of_look(mut self, look: Shown) -> Self {
        self.shown.push(look);
        self
    }

    /// Says where the run is read about.
    #[must_use]
    pub fn read_by(mut self, reader: Reader) -> Self {
        self.levels.digest.reader = reader;
        self
    }

    fn show(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::LoopStart(_) if self.levels.is_nested() => Ok(()),
            Event::StateEnter { .. }
            | Event::SubLoopComplete(_)
            | Event::VerdictTree { .. }
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Message { .. } => Ok(()),
            Event::SubLoopStart { .. } => self.sub_loop(),
            Event::ActionStart { .. } => self.action_start(),
            Event::ActionComplete(_) => self.action_complete(),
            Event::Board(event) => self.operated(event),
            Event::Evaluate { .. } => {
                self.levels.verdict_due = true;
                self.close_group()
            }
            Event::Route { reason: RouteReason::Maintain, .. }
            | Event::ClosingPassEnd(_)
            | Event::Reused(_) => {
                self.close_group()?;
                self.say(event)
            }
            Event::Route { to, .. } => {
                self.levels.verdict_due = false;
                self.verdict(Some(to.as_str()))
            }
            Event::Retry { .. } if self.levels.digest.work().is_some() => {
                self.pending_verdict()?;
                self.say(event)
            }
            Event::ActionError { .. } | Event::LoopError { .. } | Event::LoopTimeout { .. } => {
                self.pending_verdict()?;
                self.say(event)
            }
            Event::ClosingPassStart(_) => self.open_pass(event),
            Event::ClosingPassCheck(_) | Event::ClosingPassProof(_) => {
                self.close_block()?;
                self.say(event)
            }
            Event::LoopStart(_)
            | Event::LoopResume(_)
            | Event::Approval(_)
            | Event::Retry { .. }
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::CallFailed(_)
            | Event::Signal { .. }
            | Event::Handoff(_)
            | Event::Stall { .. } => self.say(event),
            Event::LoopComplete(_) if self.levels.is_nested() => self.close_group(),
            Event::LoopComplete(_) => self.finish(),
        }
    }

    /// Writes the line of an event.
    fn say(&mut self, event: &Event) -> io::Result<()> {
        match wording::line(event, &self.levels) {
            Some(line) => self.line(line.sign, &line.alone()),
            None => Ok(()),
        }
    }

    /// Opens the group of an action. With a task board, one without a role is shown only if it fails.
    fn action_start(&mut self) -> io::Result<()> {
        let digest = &self.levels.digest;
        self.is_silent = digest.work().is_some() && digest.unfinished().is_some_and(stages::is_silent);
        if !self.is_silent {
            // What cuts it off leaves no verdict, and still came to something.
            self.levels.verdict_due |= self.levels.digest.work().is_some();
            return self.open_group();
        }
        // The action can read the token of the block before.
        self.tokens.last = None;
        let number = self.levels.digest.unfinished().map_or(0, |step| step.number);
        self.levels.recent.begin(number);
        Ok(())
    }

    fn action_complete(&mut self) -> io::Result<()> {
        let failed = self.levels.digest.unfinished().filter(|step| !stages::is_silent(step));
        if let (true, Some(step)) = (std::mem::take(&mut self.is_silent), failed) {
            // Nothing of it was shown as it came, so that the end of what it printed is taken from its event.
            let printed = step.output();
            self.open_group()?;
            printed.lines().try_for_each(|line| self.quote(line))?;
        }
        self.close_group()
    }

    /// Says what an operation on the board came to, as far as that is not what comes next.
    fn operated(&mut self, event: &BoardEvent) -> io::Result<()> {
        let Some(work) = self.levels.digest.work() else {
            return Ok(());
        };
        let line = |turn| (stages::sign(turn), format!("{}{}", self.levels.prefix, stages::turn(turn, work)));
        let lines: Vec<_> = work.turns().iter().map(line).collect();
        lines.iter().try_for_each(|(sign, line)| self.line(sign, line))?;
        stages::notes(&event.notes).iter().try_for_each(|note| self.line("!", note))
    }

    /// Says that another loop begins. Its steps are groups like any others: groups do not nest.
    fn sub_loop(&mut self) -> io::Result<()> {
        match self.levels.digest.unfinished().map(|step| self.title(step)) {
            Some(title) => self.line("▸", &title),
            None => Ok(()),
        }
    }

    /// Returns `[2/20] fix`.
    fn place(&self, step: &Step) -> String {
        let Heading { count, place, .. } = wording::heading(step, &self.levels, MAX_TITLE);
        format!("{count} {place}")
    }

    fn title(&self, step: &Step) -> String {
        if let Some(work) = self.levels.digest.work().filter(|_| step.role().is_some()) {
            return format!("{}{}", self.levels.prefix, stages::title(step, work));
        }
        wording::heading(step, &self.levels, MAX_TITLE).to_string()
    }

    fn open_group(&mut self) -> io::Result<()> {
        self.close_group()?;
        (self.live, self.held) = (0, 0);
        let Some(step) = self.levels.digest.unfinished() else {
            return Ok(());
        };
        let title = self.title(step);
        let number = step.number;
        self.levels.recent.begin(number);
        // The title holds the text of the action, into which templates put what earlier actions printed.
        let title = self.dialect.untrusted(&title).into_owned();
        let title = self.dialect.group_start(&title, self.now);
        self.raw(&title)?;
        self.open.group = true;
        Ok(())
    }

    /// Opens the group of the closing pass.
    fn open_pass(&mut self, event: &Event) -> io::Result<()> {
        self.close_group()?;
        (self.live, self.held) = (0, 0);
        let Some(line) = wording::line(event, &self.levels) else { return Ok(()) };
        let title = self.dialect.untrusted(&line.alone()).into_owned();
        let title = self.dialect.group_start(&title, self.now);
        self.raw(&title)?;
        self.open.group = true;
        Ok(())
    }

    fn close_group(&mut self) -> io::Result<()> {
        self.close_block()?;
        if self.open.group {
            if self.held > 0 {
                self.line("│", &format!("… {} more in the log file of the run", size(self.held)))?;
            }
            self.open.group = false;
            if let Some(end) = self.dialect.group_end(self.now) {
                self.raw(&end)?;
            }
        }
        Ok(())
    }

    fn open_block(&mut self) -> io::Result<()> {
        if self.open.block {
            return Ok(());
        }
        // Set before the line is written, so that a line that is written in part is closed as well.
        self.open.block = true;
        let token = self.tokens.next(self.open.end);
        let start = self.dialect.block_start(token);
        self.tokens.is_told = false;
        if let Some(token) = self.dialect.token() {
            self.tokens.last = Some(token.to_owned());
        }
        match start {
            Some(start) => self.raw(&start),
            None => Ok(()),
        }
    }

    fn close_block(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.open.block) {
            return Ok(());
        }
        self.tell_token();
        match self.dialect.block_end() {
            Some(end) => self.raw(&end),
            None => Ok(()),
        }
    }

    fn tell_token(&mut self) {
        if let Some(token) =
            self.dialect.token().filter(|_| !std::mem::replace(&mut self.tokens.is_told, true))
        {
            self.shown.push(Shown::Token(token.to_owned()));
        }
    }

    fn pending_verdict(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.levels.verdict_due) { self.verdict(None) } else { Ok(()) }
    }

    fn verdict(&mut self, to: Option<&str>) -> io::Result<()> {
        self.close_group()?;
        let Some(step) = self.levels.digest.unfinished() else {
            return Ok(());
        };
        if let Some(work) = self.levels.digest.work() {
            let words = RoleStage::of(step, work).words;
            let has_group = step.action.as_ref().is_some_and(|action| !action.kind.has_steps());
            let place = if has_group { String::new() } else { format!("{}: ", self.place(step)) };
            let (mark, is_shown) = (step.mark(), !step.is_operation() && !stages::is_silent(step));
            return if is_shown { self.line(mark, &format!("{place}{words}")) } else { Ok(()) };
        }
        let has_group = step.action.as_ref().is_some_and(|action| !action.kind.has_steps());
        let place = if has_group { String::new() } else { format!("{}: ", self.place(step)) };
        let arrow = to.map_or_else(String::new, |to| format!(" → {to}"));
        let (mark, line) = (step.mark(), format!("{place}{}{arrow}", step.verdict_line()));
        self.line(mark, &line)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close_group()?;
        if let Some(step) = self.levels.digest.deciding_step() {
            let lines = self.levels.recent.of(step, SHOWN_AT_END);
            // A stage need not belong to the task that was worked on last.
            let is_stage = self.levels.digest.work().is_some() && step.role().is_some();
            let title = if is_stage { stages::running(step) } else { self.title(step) };
            let verdict = format!("{} {}", step.mark(), step.verdict_line());
            self.ending("──", &format!("the step that decided: {title}"))?;
            for line in &lines {
                self.quote(line)?;
            }
            self.close_block()?;
            self.line("──", &verdict)?;
        }
        let Some(end) = self.levels.digest.end() else {
            return Ok(());
        };
        let (headline, sentence) = (headline(end), self.levels.digest.sentence());
        let mark = match self.levels.digest.end_kind() {
            EndKind::Success | EndKind::NotRun => "✓",
            EndKind::HandedOff => HANDED_OFF,
            EndKind::Failure | EndKind::Error => "✗",
        };
        let progress = self.levels.digest.work().and_then(stages::progress);
        self.ending(mark, &headline)?;
        if let Some(progress) = progress {
            self.line("  ", &progress)?;
        }
        self.line(" ".repeat(2).as_str(), &sentence)?;
        changed_tree::closing(&self.levels.digest).iter().try_for_each(|line| self.line("  ", line))?;
        match advice(&self.levels.digest) {
            Some(advice) => self.line("  ", &advice.to_string()),
            None => Ok(()),
        }
    }

    /// Writes a line of an action's output, as many lines as a reader of the log would see in it.
    fn quote(&mut self, text: &str) -> io::Result<()> {
        self.open_block()?;
        // For the runner of GitHub a carriage return ends a line too, and a command could stand behind it.
        for piece in text.split(is_line_end) {
            let clean = self.dialect.untrusted(piece);
            let coloured = if self.colour { coloured(piece, &clean) } else { None };
            let line = format!("│ {}", coloured.as_deref().unwrap_or(&clean));
            self.raw(&line)?;
        }
        Ok(())
    }

    /// Writes a line of the end of the run, which is seen without opening anything.
    fn ending(&mut self, mark: &str, text: &str) -> io::Result<()> {
        let line = self.own(mark, text);
        let line = if self.open.end { line } else { self.dialect.in_the_open(line) };
        self.open.end = true;
        self.raw(&line)
    }

    /// Writes a line of our own, in the open group or between groups.
    fn line(&mut self, mark: &str, text: &str) -> io::Result<()> {
        let line = self.own(mark, text);
        let is_inside = self.open.group || self.open.end;
        let line = if is_inside { line } else { self.dialect.between_groups(line) };
        self.raw(&line)
    }

    /// Makes a line of our own; what it quotes cannot leave it, and it begins with a sign that no command has.
    fn own(&self, mark: &str, text: &str) -> String {
        let mark = if mark.trim().is_empty() { "·" } else { mark };
        let text = self.dialect.untrusted(text).into_owned();
        let style = match mark {
            "✓" => Style::new().green(),
            "✗" => Style::new().red(),
            HANDED_OFF => Style::new().yellow(),
            _ => Style::new(),
        };
        style.force_styling(self.colour).apply_to(format!("{mark} {text}")).to_string()
    }

    fn raw(&mut self, line: &str) -> io::Result<()> {
        if !self.repeats.is_holding() {
            return self.write(line);
        }
        match self.repeats.hold(line.to_owned()) {
            Some(released) => self.release(released),
            None => Ok(()),
        }
    }

    /// Writes what was held back.
    fn release(&mut self, Released { notice, lines }: Released) -> io::Result<()> {
        if let Some(notice) = notice {
            let notice = self.dialect.between_groups(self.own("", &notice));
            self.write(&notice)?;
        }
        lines.iter().try_for_each(|line| self.write(line))
    }

    /// Writes a line that somebody sees now.
    fn write(&mut self, line: &str) -> io::Result<()> {
        self.silence.end();
        writeln!(self.out, "{line}")
    }
}

impl Sink for CiLog {
    fn name(&self) -> &'static str {
        "the CI log"
    }

    fn event(&mut self, stamped: &Stamped) -> io::Result<()> {
        (self.now, self.lines) = (stamped.ts, 0);
        if let Event::Backoff { .. } | Event::StateEnter { .. } | Event::ActionStart { .. } = stamped.event {
            self.silence.begin();
            self.is_waiting = matches!(stamped.event, Event::Backoff { .. });
        }
        // Before the digest takes the event: after it, the step that these lines are about is no
        // longer the current one.
        if matches!(stamped.event, Event::StateEnter { .. }) {
            self.close_group()?;
            self.pending_verdict()?;
        }
        if matches!(stamped.event, Event::LoopComplete(_)) {
            self.pending_verdict()?;
        }
        if let Some(released) = self.repeats.event(stamped) {
            self.release(released)?;
        }
        self.levels.event(stamped);
        self.show(&stamped.event)?;
        self.out.flush()
    }

    fn past(&mut self, stamped: &Stamped) {
        self.levels.event(stamped);
    }

    fn output(&mut self, line: OutputLine<'_>) -> io::Result<()> {
        self.lines += 1;
        // Also what is not shown here: the end of the run quotes the last lines of the step that
        // decided.
        self.levels.recent.push(line.text);
        if self.is_silent {
            return Ok(());
        }
        let bytes = line.text.len() as u64 + 1;
        if self.live + bytes > MAX_LIVE {
            self.held += bytes;
            return Ok(());
        }
        self.live += bytes;
        self.quote(line.text)
    }

    fn shown(&mut self, is_over: bool) -> Vec<Shown> {
        if is_over && self.open.block {
            self.tell_token();
        }
        std::mem::take(&mut self.shown)
    }

    fn ends(&mut self) {
        // The token of the last block is made from one that the journal has, which can be that of no block.
        if self.tokens.last.is_none()
            && let Some(token) = self.tokens.known.pop_front().or_else(|| self.dialect.new_token())
        {
            self.shown.push(Shown::Token(token.clone()));
            self.tokens.last = Some(token);
        }
    }

    fn still(&mut self, took: Duration) -> io::Result<()> {
        let what = if self.is_waiting { "waiting" } else { "running" };
        let text = format!("still {what}, {}", human(took));
        if self.repeats.is_holding() {
            // The group that would be around it is held back.
            let line = self.dialect.between_groups(self.own("…", &text));
            self.write(&line)
        } else {
            self.line("…", &text)
        }
    }

    fn tick(&mut self, running: Duration) -> io::Result<()> {
        if let Some(took) = self.silence.tick(running) {
            self.shown.push(Shown::Still { lines: self.lines, took_ms: millis(took) });
            self.still(took)?;
        }
        self.out.flush()
    }
}

impl Drop for CiLog {
    /// Gives the log back as it was found, also when the run did not come to its end.
    fn drop(&mut self) {
        // What is held back belongs into the group that is closed next.
        let held = self.repeats.release().map_or(Ok(()), |released| self.release(released));
        let closed = held.and_then(|()| self.close_group()).and_then(|()| self.out.flush());
        // A log that failed while it was closed cannot report that.
        drop(closed);
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => plural(bytes, "byte"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{}.{} MiB", bytes / 1_048_576, bytes % 1_048_576 * 10 / 1_048_576),
    }
}
