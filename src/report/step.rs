//! One state execution as people see it, and the fold that makes it from events. The live sinks and the digest
//! share both, so that they never disagree about what a step came to.

pub mod tracker;

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::base::name::StateName;
use crate::base::text;
use crate::base::time::{Timestamp, human};
use crate::board::NoteKind;
use crate::engine::event::{
    ActionKind, BoardEvent, LoopComplete, RouteReason, SubLoopComplete, TAIL, TreeState,
};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::evaluate::observation::{Observation, Stop, Text};
use crate::evaluate::verdict::{Observes, Verdict};

/// Characters of an action's text that are kept; the whole text is in the journal.
const MAX_ACTION: usize = 4 * 1024;

/// How many details of a verdict are shown, and how long each may be.
const MAX_DETAILS: usize = 4;
const MAX_DETAIL: usize = 60;

/// The end of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last bytes, as printed.
    pub text: String,
    /// What was printed in all.
    pub bytes: u64,
}

impl Tail {
    fn of(text: &Text) -> Self {
        Self { text: text::tail(text.as_str(), TAIL).to_owned(), bytes: text.bytes() }
    }

    fn cut(&self, limit: usize) -> Self {
        Self { text: text::tail(&self.text, limit).to_owned(), bytes: self.bytes }
    }

    /// Tells whether more was printed than is here.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.text.len() as u64
    }
}

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    /// The exit code; 128 + N when killed by signal N, 124 after a timeout.
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long it ran.
    pub duration: Duration,
    /// Why it did not come to its own end.
    pub stop: Option<Stop>,
    /// Why it could not be started.
    pub failure: Option<String>,
    /// Whether it did what it was asked to, by its exit code.
    pub succeeded: bool,
    /// The end of standard output.
    pub stdout: Tail,
    /// The end of standard error.
    pub stderr: Tail,
}

impl ActionResult {
    fn of(seen: &Observation) -> Self {
        Self {
            exit_code: seen.exit_code,
            signal: seen.signal,
            duration: seen.duration,
            stop: seen.stop,
            failure: seen.failure.clone(),
            succeeded: seen.succeeded(),
            stdout: Tail::of(&seen.stdout),
            stderr: Tail::of(&seen.stderr),
        }
    }

    /// A sub-loop stands for the action: its end is the result, what decided it is the output.
    fn of_sub_loop(complete: &SubLoopComplete, decided: Option<&Step>) -> Self {
        let seen = Observation {
            duration: Duration::from_millis(complete.duration_ms),
            failure: complete.error.clone(),
            ..Observation::exited(complete.exit_code, "")
        };
        let inner = decided.and_then(|step| step.result.clone());
        let (stdout, stderr) = inner.map(|result| (result.stdout, result.stderr)).unwrap_or_default();
        Self { stdout, stderr, ..Self::of(&seen) }
    }

    /// Tells whether the action took longer than it may.
    pub fn timed_out(&self) -> bool {
        self.stop.is_some_and(Stop::is_own_timeout)
    }
}

/// What an evaluator said.
#[derive(Clone, Debug, PartialEq)]
pub struct StepJudgement {
    /// The evaluator.
    pub evaluator: String,
    /// Its verdict.
    pub verdict: Verdict,
    /// What that says about the work.
    pub observes: Observes,
    /// What it saw: the details that fit into a line.
    pub details: Map<String, Value>,
}

impl StepJudgement {
    /// The board answers its operations itself; where it could not make one, it says why.
    fn of_operation(event: &BoardEvent) -> Self {
        let refused = event.notes.iter().find(|note| note.kind == NoteKind::Refused);
        let details = refused.map(|note| ("refused".to_owned(), Value::from(text::head(&note.text, 400))));
        Self {
            evaluator: "board".to_owned(),
            verdict: event.verdict.clone(),
            // What comes next in a plan says nothing about the work.
            observes: if event.verdict.is_error() { Observes::Failing } else { Observes::Nothing },
            details: details.into_iter().collect(),
        }
    }
}

/// Where a step led.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routed {
    /// The next state or terminal.
    pub to: StateName,
    /// The verdict by which it was chosen.
    pub verdict: Option<Verdict>,
    /// The rule by which it was chosen.
    pub reason: RouteReason,
}

/// An action as it was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnouncedAction {
    /// The text after interpolation, or its beginning.
    pub text: String,
    /// What kind of action.
    pub kind: ActionKind,
    /// Who does it, where the loop says so.
    pub role: Option<String>,
}

/// One state execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u32,
    /// The state, or the terminal whose closing action it is.
    pub state: StateName,
    /// The pass.
    pub iteration: u32,
    /// The consecutive entry into the state.
    pub attempt: u32,
    /// Whether it is the closing action of a terminal, which decides nothing.
    pub closing: bool,
    /// When it was entered.
    pub started: Timestamp,
    /// What was run, if anything was.
    pub action: Option<AnnouncedAction>,
    /// The working tree before it, where it was looked at.
    pub tree: Option<TreeState>,
    /// How that ended, if it did.
    pub result: Option<ActionResult>,
    /// What the evaluator said, if one was asked.
    pub judged: Option<StepJudgement>,
    /// Where it led, if anywhere.
    pub route: Option<Routed>,
    /// Why the run ended here in an error.
    pub error: Option<String>,
    /// The outcome of the run that ended in the middle of this step.
    pub cut: Option<Outcome>,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStanding {
    /// It went well: the work passed, or an action without an evaluator exited with 0.
    Passing,
    /// It did not.
    Failing,
    /// Neither: not finished, nothing observed, or a closing action.
    Open,
}

impl Step {
    /// Tells what the step came to.
    pub fn standing(&self) -> StepStanding {
        if self.closing {
            return StepStanding::Open;
        }
        if self.error.is_some() {
            return StepStanding::Failing;
        }
        if let Some(judged) = &self.judged {
            return match judged.observes {
                Observes::Passing => StepStanding::Passing,
                Observes::Failing => StepStanding::Failing,
                Observes::Nothing => StepStanding::Open,
            };
        }
        // Without an evaluator, the verdict is the one by which the route was chosen, such as `timeout`.
        if self.verdict().is_some_and(Verdict::is_failing) {
            return StepStanding::Failing;
        }
        match &self.result {
            Some(result) if result.succeeded => match self.cut {
                None => StepStanding::Passing,
                // The action itself said that it is all over.
                Some(Outcome::Error) => StepStanding::Failing,
                Some(_) => StepStanding::Open,
            },
            Some(result) => match result.stop {
                // It was stopped because the run ended, which says nothing about the work.
                Some(Stop::Cancelled | Stop::Deadline | Stop::Quota | Stop::Budget) => StepStanding::Open,
                Some(
                    Stop::Timeout
                    | Stop::IdleTimeout
                    | Stop::LoopTimeout
                    | Stop::Missing
                    | Stop::Unavailable
                    | Stop::NotRecorded,
                )
                | None => StepStanding::Failing,
            },
            None => StepStanding::Open,
        }
    }

    /// Returns what the step says about the work. An action without an evaluator says nothing when it goes well.
    pub fn observes(&self) -> Observes {
        match (self.standing(), &self.judged) {
            (StepStanding::Failing, _) => Observes::Failing,
            (StepStanding::Passing, Some(_)) => Observes::Passing,
            (StepStanding::Passing | StepStanding::Open, _) => Observes::Nothing,
        }
    }

    /// Returns the verdict, be it an evaluator's or the one that the route was chosen by.
    pub fn verdict(&self) -> Option<&Verdict> {
        let routed = || self.route.as_ref().and_then(|route| route.verdict.as_ref());
        self.judged.as_ref().map(|judged| &judged.verdict).or_else(routed)
    }

    /// Returns how long the action ran.
    pub fn duration(&self) -> Duration {
        self.result.as_ref().map_or(Duration::ZERO, |result| result.duration)
    }

    /// Returns the sign in front of the verdict.
    pub fn mark(&self) -> &'static str {
        match self.standing() {
            StepStanding::Passing => "✓",
            StepStanding::Failing => "✗",
            StepStanding::Open => "•",
        }
    }

    /// Returns the action as one line.
    pub fn action_line(&self, limit: usize) -> Option<String> {
        self.action.as_ref().map(|action| text::one_line(&action.text, limit))
    }

    /// Returns the verdict in a word or a few.
    pub fn word(&self) -> String {
        if let Some(verdict) = self.verdict() {
            return text::one_line(verdict.as_str(), 120);
        }
        match &self.result {
            Some(result) => self.ended(result),
            None if self.error.is_some() => "error".to_owned(),
            None if self.closing => "end".to_owned(),
            None if self.route.is_some() => "next".to_owned(),
            None => "not finished".to_owned(),
        }
    }

    /// Returns the verdict with what it rests on: `no (exit 1, 2.3s)`.
    pub fn verdict_line(&self) -> String {
        let word = self.word();
        let mut facts = Vec::new();
        if let Some(result) = &self.result {
            let ended = self.ended(result);
            if ended != word {
                facts.push(ended);
            }
        }
        facts.extend(self.detail_facts());
        if self.result.is_some() {
            facts.push(human(self.duration()));
        }
        if facts.is_empty() { word } else { format!("{word} ({})", facts.join(", ")) }
    }

    /// Returns what the step did, as a verb: `said no`, `exited 1`.
    pub fn said(&self) -> String {
        if let Some(verdict) = self.verdict() {
            return format!("said {}", text::one_line(verdict.as_str(), 120));
        }
        match (&self.result, &self.error) {
            (_, Some(error)) => format!("failed: {}", text::one_line(error, 300)),
            (Some(result), None) => match (&result.failure, result.stop, result.signal) {
                (Some(why), ..) if self.is_prompt() => format!("failed: {}", text::one_line(why, 300)),
                (Some(why), ..) => format!("could not be started: {}", text::one_line(why, 300)),
                (None, Some(Stop::Timeout | Stop::IdleTimeout), _) => "timed out".to_owned(),
                (None, Some(_), _) => "was stopped".to_owned(),
                (None, None, Some(signal)) => format!("was killed by signal {signal}"),
                (None, None, None) => format!("exited {}", result.exit_code),
            },
            (None, None) => "did not finish".to_owned(),
        }
    }

    /// Returns the step with shorter ends of its streams.
    #[must_use]
    pub fn with_tails(&self, limit: usize) -> Self {
        let mut step = self.clone();
        if let Some(result) = &mut step.result {
            result.stdout = result.stdout.cut(limit);
            result.stderr = result.stderr.cut(limit);
        }
        step
    }

    /// Returns the end of what the action printed, for people: escapes stripped, standard error after standard
    /// output, with a first line that says how much is missing.
    pub fn output(&self) -> String {
        let Some(result) = &self.result else {
            return self.error.as_deref().map_or_else(String::new, |error| text::plain(error).into_owned());
        };
        let mut shown = String::new();
        for tail in [&result.stdout, &result.stderr] {
            let clean = text::plain(&tail.text).replace("\r\n", "\n").replace('\r', "\n");
            if clean.trim().is_empty() {
                continue;
            }
            if tail.is_cut() {
                let missing = tail.bytes - tail.text.len() as u64;
                let _ = writeln!(shown, "… {} before this", text::plural(missing, "byte"));
            }
            shown.push_str(clean.trim_end());
            shown.push('\n');
        }
        for why in [&result.failure, &self.error].into_iter().flatten() {
            let _ = writeln!(shown, "{}", text::plain(why));
        }
        shown
    }

    /// Returns who does the work, where the loop says so.
    pub fn role(&self) -> Option<&str> {
        self.action.as_ref().and_then(|action| action.role.as_deref())
    }

    /// Tells whether the step is an operation on the task board.
    pub fn is_operation(&self) -> bool {
        self.action.as_ref().is_some_and(|action| action.kind.is_operation())
    }

    /// Tells whether the step does nothing for anybody but a task board, in a loop that has one and names roles. A step
    /// that failed or was cut off is always of interest.
    pub fn keeps_the_board(&self) -> bool {
        let is_sub_loop = self.action.as_ref().is_some_and(|action| action.kind == ActionKind::SubLoop);
        let is_over = self.standing() != StepStanding::Failing && self.cut.is_none() && !self.closing;
        is_over && self.role().is_none() && !is_sub_loop
    }

    /// Tells whether an agent did the work, which can fail after it was started.
    fn is_prompt(&self) -> bool {
        self.action.as_ref().is_some_and(|action| action.kind.asks_agent())
    }

    /// Says how the action ended: `exit 1`, `timed out`.
    pub(super) fn ended(&self, result: &ActionResult) -> String {
        match (&result.failure, result.stop, result.signal) {
            (_, Some(Stop::Timeout), _) => "timed out".to_owned(),
            (_, Some(Stop::IdleTimeout), _) => "timed out in silence".to_owned(),
            (_, Some(Stop::LoopTimeout), _) => "stopped by the loop's timeout".to_owned(),
            (_, Some(Stop::Deadline), _) => "stopped by the deadline".to_owned(),
            (_, Some(Stop::Budget), _) => "stopped by the budget".to_owned(),
            (_, Some(Stop::Quota), _) => "stopped by a quota".to_owned(),
            (_, Some(Stop::Missing | Stop::Unavailable), _) => "unavailable".to_owned(),
            (_, Some(Stop::NotRecorded), _) => "not recorded".to_owned(),
            (_, Some(Stop::Cancelled), _) => "stopped".to_owned(),
            (Some(_), None, _) if self.is_prompt() => "failed".to_owned(),
            (Some(_), None, _) => "not started".to_owned(),
            (None, None, Some(signal)) => format!("signal {signal}"),
            (None, None, None) => format!("exit {}", result.exit_code),
        }
    }

    fn detail_facts(&self) -> Vec<String> {
        let Some(judged) = &self.judged else {
            return Vec::new();
        };
        let fact = |(key, value): (&String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            format!("{} {}", text::one_line(key, 30), text::one_line(&value, MAX_DETAIL))
        };
        judged.details.iter().map(fact).collect()
    }
}

impl Step {
    fn new(number: u32, state: &StateName, iteration: u32, started: Timestamp) -> Self {
        Self {
            number,
            state: state.clone(),
            iteration,
            attempt: 1,
            closing: false,
            started,
            action: None,
            tree: None,
            result: None,
            judged: None,
            route: None,
            error: None,
            cut: None,
        }
    }

    /// Tells whether a run that ends like this ends in the middle of the step. A closing action that came to its own
    /// end is over.
    fn is_cut_by(&self, end: &LoopComplete) -> bool {
        let is_over = self.route.is_some() || self.error.is_some();
        let is_stopped =
            self.result.as_ref().is_none_or(|result| result.stop.is_some_and(Stop::is_end_of_run));
        !is_over
            && (is_stopped || !self.closing)
            && match end.outcome {
                Outcome::Handoff
                | Outcome::Interrupted
                | Outcome::LeaseLost
                | Outcome::Cancelled
                | Outcome::Timeout
                | Outcome::OverBudget
                | Outcome::Unavailable
                | Outcome::Stopped => true,
                Outcome::Error => {
                    matches!(
                        end.terminated_by,
                        TerminatedBy::FatalError | TerminatedBy::Handoff | TerminatedBy::JournalLost
                    )
                }
                Outcome::Success | Outcome::Failure | Outcome::Exhausted | Outcome::Blocked => false,
            }
    }
}

/// Keeps the details that fit into a line: a few single values. The exit code stands there anyway.
fn short(details: &Map<String, Value>) -> Map<String, Value> {
    let shown = |(key, value): &(&String, &Value)| {
        key.as_str() != "exit_code" && !value.is_null() && !value.is_object() && !value.is_array()
    };
    let cut = |(key, value): (&String, &Value)| {
        // More than a line has room for: `why` quotes the reasons of an evaluator from here.
        let value = value.as_str().map_or_else(|| value.clone(), |long| text::head(long, 400).into());
        (text::head(key, 120).to_owned(), value)
    };
    details.iter().filter(shown).take(MAX_DETAILS).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::event::Event;
    use crate::report::testing::Journal;

    fn step(seen: Observation, judged: Option<(&str, Value)>) -> Step {
        let mut journal = Journal::start();
        journal.enter("check", 1).act("make").seen(seen);
        if let Some((verdict, details)) = judged {
            let Value::Object(details) = details else { panic!("details are an object") };
            journal.push(Event::evaluated("any", Verdict::new(verdict), None, details, None));
        }
        journal.digest().unfinished().unwrap().clone()
    }

    #[track_caller]
    fn check(step: &Step, mark: &str, line: &str, said: &str) {
        assert_eq!((step.mark(), step.verdict_line().as_str(), step.said().as_str()), (mark, line, said));
    }

    #[test]
    fn a_step_is_told_in_a_line() {
        let exited = |code| Observation::exited(code, "");
        check(&step(exited(0), None), "✓", "exit 0 (0ms)", "exited 0");
        check(&step(exited(2), None), "✗", "exit 2 (0ms)", "exited 2");
        check(&step(exited(1), Some(("no", json!({"exit_code": 1})))), "✗", "no (exit 1, 0ms)", "said no");
        let details = json!({"value": 12, "target": 0, "operator": "eq", "all": [1], "none": null});
        let line = "no (exit 0, value 12, target 0, operator eq, 0ms)";
        check(&step(exited(0), Some(("no", details))), "✗", line, "said no");
        let killed = Observation { signal: Some(9), ..exited(137) };
        check(&step(killed, None), "✗", "signal 9 (0ms)", "was killed by signal 9");
        let stopped = Observation { stop: Some(Stop::Cancelled), ..exited(143) };
        check(&step(stopped, None), "•", "stopped (0ms)", "was stopped");
        let slow = Observation { stop: Some(Stop::IdleTimeout), ..exited(124) };
        check(&step(slow, None), "✗", "timed out in silence (0ms)", "timed out");
        let line = "could not be started: no `zsh`";
        check(&step(Observation::not_started("no `zsh`"), None), "✗", "not started (0ms)", line);
        check(&step(exited(0), Some(("a\u{1b}[2Jb\nc", json!({})))), "✓", "ab… (exit 0, 0ms)", "said ab…");
    }

    #[test]
    fn the_output_says_how_much_is_missing() {
        let mut seen = Observation::exited(1, "x\n".repeat(TAIL));
        seen.stderr = Text::whole("\u{1b}[31mbad\u{1b}[0m\r50%\r\n");
        let output = step(seen, None).output();
        assert!(output.starts_with(&format!("… {TAIL} bytes before this\nx\n")));
        assert!(output.ends_with("x\nbad\n50%\n"));
    }
}
