//! What an action did, as seen from outside: the facts that every evaluator judges.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::sum::Sum;
use crate::base::text;

/// Which stream something was printed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a stream printed, as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    kept: SharedText,
    bytes: u64,
    truncated: bool,
    stored: Option<Place>,
    // Boxed, because only a text that is stored has one, and every result holds two texts.
    sum: Option<Box<Sum>>,
}

/// A text that has many owners and may be megabytes, from some byte on.
#[derive(Clone, Debug, Default)]
struct SharedText {
    whole: Arc<String>,
    from: usize,
}

impl SharedText {
    fn as_str(&self) -> &str {
        &self.whole[self.from..]
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Arc::new(text).into()
    }
}

impl From<Arc<String>> for SharedText {
    fn from(whole: Arc<String>) -> Self {
        Self { whole, from: 0 }
    }
}

impl PartialEq for SharedText {
    // What stands before `from` was cut off, and is not part of the text.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for SharedText {}

/// The number of an event, and the bytes that were stored for it.
type Place = (u64, u64);

/// Where a text stands of which only the end is at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredText {
    /// The number of the event that has its end; 0 when that is not known.
    pub event: u64,
    /// The bytes that were stored.
    pub length: u64,
    /// Their digest; none in journals from before there was one.
    pub sum: Option<Sum>,
}

impl Text {
    /// Makes a text that was kept whole.
    pub fn whole(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { bytes: text.len() as u64, kept: text.into(), ..Self::default() }
    }

    /// Makes a text of which only the end was kept; `bytes` is what was printed in all.
    pub fn end_of(kept: String, bytes: u64) -> Self {
        Self { kept: kept.into(), bytes, truncated: true, ..Self::default() }
    }

    /// Makes a text whose end is at hand and which stands elsewhere as far as it was kept; `truncated` tells whether
    /// more was printed than that.
    pub fn stored(end: String, bytes: u64, truncated: bool, stored: StoredText) -> Self {
        let StoredText { event, length, sum } = stored;
        let (stored, sum) = (Some((event, length)), sum.map(Box::new));
        Self { kept: end.into(), bytes, truncated, stored, sum }
    }

    /// Notes the digest of what was stored of the text.
    pub fn note_sum(&mut self, sum: Sum) {
        self.sum = Some(Box::new(sum));
    }

    /// Returns the digest of what was stored of the text, where it is known.
    pub fn sum(&self) -> Option<Sum> {
        self.sum.as_deref().copied()
    }

    /// Says which event a stored text belongs to.
    #[must_use]
    pub fn of_event(mut self, event: u64) -> Self {
        if let Some((of, _)) = &mut self.stored {
            *of = event;
        }
        self
    }

    /// Returns where the text stands, while only its end is at hand.
    pub fn elsewhere(&self) -> Option<StoredText> {
        self.stored.map(|(event, length)| StoredText { event, length, sum: self.sum() })
    }

    /// Returns the bytes that are kept, here or elsewhere.
    pub fn length(&self) -> u64 {
        self.stored.map_or(self.as_str().len() as u64, |(_, length)| length)
    }

    /// Takes the text back from where it was stored.
    pub fn restore(&mut self, kept: Arc<String>) {
        (self.kept, self.stored, self.sum) = (kept.into(), None, None);
    }

    /// Returns the same with other words for what was kept, as when secrets are hidden.
    #[must_use]
    pub fn with(&self, kept: String) -> Self {
        Self { kept: kept.into(), ..self.clone() }
    }

    /// Returns the same without the first bytes of what was kept, and copies nothing. They have to end a character.
    #[must_use]
    pub fn without_first(&self, bytes: usize) -> Self {
        let SharedText { whole, from } = &self.kept;
        let kept = SharedText { whole: Arc::clone(whole), from: from + bytes };
        Self { kept, ..self.clone() }
    }

    /// Returns what was kept.
    pub fn as_str(&self) -> &str {
        self.kept.as_str()
    }

    /// Returns what was kept without the line ends at its end, as `${captured.x.output}` shows it.
    pub fn without_line_end(&self) -> &str {
        self.as_str().trim_end_matches(['\n', '\r'])
    }

    /// Returns the text without what stands before its last `limit` bytes.
    #[must_use]
    pub fn shortened(&self, limit: usize) -> Self {
        if self.as_str().len() <= limit && self.stored.is_none() {
            return self.clone();
        }
        Self::end_of(text::tail(self.as_str(), limit).to_owned(), self.bytes)
    }

    /// Returns how many bytes were printed in all.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Tells whether more was printed than kept.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// Why an action did not come to its own end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Its own `timeout` passed.
    Timeout,
    /// It was silent for its `idle_timeout`.
    IdleTimeout,
    /// The `timeout` of the whole run passed.
    LoopTimeout,
    /// The deadline of the job came.
    Deadline,
    /// Somebody asked the run to end.
    Cancelled,
    /// The budget for models was met while it ran.
    Budget,
    /// There is no host for the model.
    Missing,
    /// The host of the model is not set up, or down after retries.
    Unavailable,
    /// The quota of the model is used up for longer than the run can wait.
    Quota,
    /// The answer was to be recorded, and could not be.
    NotRecorded,
}

impl Stop {
    /// Tells whether the action itself took too long, as opposed to the run being ended around it.
    pub fn is_own_timeout(self) -> bool {
        matches!(self, Self::Timeout | Self::IdleTimeout)
    }

    /// Tells whether the run was ended around the action, so that it came to no result.
    pub fn is_end_of_run(self) -> bool {
        !self.is_own_timeout()
    }
}

/// Why a call of an agent came to no answer: one word for each kind, so that two failures can be compared whatever
/// their messages say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The call failed.
    Failed,
    /// The answer was not in the form that was asked for, by the judgement of the host.
    Form,
    /// The host ended it because it took too many turns.
    OutOfTurns,
    /// The host ended it because what it may cost was spent.
    OverBudget,
    /// The service was overloaded or could not be reached, each time.
    Transient,
    /// The quota is used up.
    Quota,
    /// The host is not there.
    Missing,
    /// The host is not set up.
    Unavailable,
    /// The output has another shape than that of any version we know.
    Misunderstood,
}

impl Cause {
    /// Returns the word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Form => "form",
            Self::OutOfTurns => "out_of_turns",
            Self::OverBudget => "over_budget",
            Self::Transient => "transient",
            Self::Quota => "quota",
            Self::Missing => "missing",
            Self::Unavailable => "unavailable",
            Self::Misunderstood => "misunderstood",
        }
    }
}

/// The exit code that stands for a timeout, as in `timeout(1)`.
pub const TIMEOUT_CODE: i32 = 124;

/// The exit code that stands for something that is not there, as in a shell: a program, a server, a tool.
pub const NOT_FOUND_CODE: i32 = 127;

/// What an action did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Standard output.
    pub stdout: Text,
    /// Standard error.
    pub stderr: Text,
    /// The exit code; 128 + N when killed by signal N, 124 after a timeout.
    pub exit_code: i32,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// How long it ran.
    pub duration: Duration,
    /// Why it did not come to its own end, if it did not.
    pub stop: Option<Stop>,
    /// Why it could not be started, if it could not.
    pub failure: Option<String>,
    /// The kind of that failure, for a call of an agent.
    pub cause: Option<Cause>,
}

impl Observation {
    /// Makes the observation of an action that ended by itself.
    pub fn exited(exit_code: i32, stdout: impl Into<String>) -> Self {
        Self {
            stdout: Text::whole(stdout),
            stderr: Text::default(),
            exit_code,
            signal: None,
            duration: Duration::ZERO,
            stop: None,
            failure: None,
            cause: None,
        }
    }

    /// Makes the observation of an action that could not be started.
    pub fn not_started(why: impl Into<String>) -> Self {
        Self { failure: Some(why.into()), ..Self::exited(NOT_FOUND_CODE, "") }
    }

    /// Returns the same with shorter streams.
    #[must_use]
    pub fn shortened(&self, limit: usize) -> Self {
        Self { stdout: self.stdout.shortened(limit), stderr: self.stderr.shortened(limit), ..self.clone() }
    }

    /// Returns why it could not be started, in words; one that could be needs none.
    pub fn why_not_started(&self) -> String {
        self.failure.clone().unwrap_or_default()
    }

    /// Tells whether the action took longer than it may.
    pub fn timed_out(&self) -> bool {
        self.stop.is_some_and(Stop::is_own_timeout)
    }

    /// Tells whether the run was ended around the action.
    pub fn was_cut_short(&self) -> bool {
        self.stop.is_some_and(Stop::is_end_of_run)
    }

    /// Tells whether the action did what it was asked to, by its exit code.
    pub fn succeeded(&self) -> bool {
        self.exit_code == 0 && self.stop.is_none() && self.failure.is_none()
    }

    /// Tells whether the action crashed rather than answered: a code of 2 or more, or a signal.
    pub fn crashed(&self) -> bool {
        // Exit code 1 is how `grep -c`, linters and their like report what they found.
        self.failure.is_some() || self.signal.is_some() || !(0..=1).contains(&self.exit_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_its_beginning_is_one_like_any_other() {
        let text = Text::end_of("é: what was said\n".into(), 99);
        let cut = text.without_first("é: ".len());
        assert_eq!((cut.as_str(), cut.length(), cut.bytes()), ("what was said\n", 14, 99));
        assert_eq!(cut, Text::end_of("what was said\n".into(), 99));
        assert_eq!(cut.without_first(5).without_line_end(), "was said");
        assert_eq!(cut.shortened(5).as_str(), "said\n");
    }
}
