//! Tells passes that are the same: a run that does the same thing fifty times says it once.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::engine::event::{Event, RouteReason, Stamped};
use crate::engine::outcome::TerminatedBy;

/// A pass with more events than this is the same as no other.
// The marks of such a pass take 80 KB.
const LONGEST: usize = 10_000;

/// How many passes are shown before those that are the same are held back.
pub(super) const SHOWN: u32 = 2;

/// How many bytes are held back at most.
// As much as the log shows of one step. Beyond that, lines are shown rather than kept in memory.
const MOST_HELD: usize = 4 * 1024 * 1024;

/// The last passes of a loop, by what everybody can see of them: states, verdicts, outputs, and the working tree where
/// the loop looks at it.
#[derive(Clone, Debug, Default)]
pub struct Passes {
    depth: u32,
    iteration: u32,
    /// The marks of the events of the last pass.
    previous: Vec<u64>,
    /// How many passes in a row were like that one.
    same: u32,
    current: Vec<u64>,
    /// Whether the pass that goes on is like the last one so far.
    is_alike: bool,
    /// Whether no further pass counts: a cap was met, or the loop works on tasks, which are never the same.
    is_over: bool,
}

impl Passes {
    /// Looks at the passes of the loop at this depth.
    pub fn at(depth: u32) -> Self {
        Self { depth, ..Self::default() }
    }

    /// Returns how many passes at the end were the same; 1 when the last one was like no other.
    pub fn same(&self) -> u32 {
        self.same
    }

    /// Takes the next event. Where it ends a pass, tells whether that was the same as the one before it.
    pub fn event(&mut self, stamped: &Stamped) -> Option<bool> {
        let is_own = stamped.depth == self.depth;
        if self.is_over || stamped.depth < self.depth {
            return None;
        }
        let ended = if is_own { self.turn(&stamped.event) } else { None };
        if let Some(mark) = mark(stamped).filter(|_| !self.is_over) {
            self.is_alike &= self.previous.get(self.current.len()) == Some(&mark);
            if self.current.len() <= LONGEST {
                self.current.push(mark);
            }
        }
        ended
    }

    /// Ends the pass where an event of the loop itself does.
    fn turn(&mut self, event: &Event) -> Option<bool> {
        if let Event::LoopStart(start) = event {
            self.is_over = start.board.is_some();
        } else if let Event::LoopResume(_) = event {
            // A pass that was interrupted has two parts, and cannot be compared as one.
            *self = Self::at(self.depth);
        } else if let Event::StateEnter { iteration, .. } = event
            && *iteration != self.iteration
        {
            let has_begun = self.iteration > 0;
            self.iteration = *iteration;
            return has_begun.then(|| self.close());
        } else if let Event::Route { reason: RouteReason::Cap, .. } = event {
            self.is_over = true;
            return Some(self.close());
        } else if let Event::LoopComplete(end) = event {
            self.is_over = true;
            return (end.terminated_by == TerminatedBy::MaxIterations).then(|| self.close());
        }
        None
    }

    fn close(&mut self) -> bool {
        let is_same =
            self.is_alike && self.current.len() == self.previous.len() && self.current.len() < LONGEST;
        self.same = if is_same { self.same.saturating_add(1) } else { 1 };
        self.previous = std::mem::take(&mut self.current);
        self.is_alike = true;
        is_same
    }
}

/// Returns what everybody can see of an event, as a number. What differs by itself from pass to pass, such as times and
/// costs, is not part of it.
fn mark(stamped: &Stamped) -> Option<u64> {
    // A number in place of the event: a pass may have printed megabytes.
    let mut hasher = DefaultHasher::new();
    stamped.depth.hash(&mut hasher);
    match &stamped.event {
        Event::StateEnter { state, .. } => (0, state).hash(&mut hasher),
        Event::ActionComplete(complete) => {
            let seen = &complete.seen;
            (1, seen.exit_code, seen.signal, &seen.failure).hash(&mut hasher);
            for text in [&seen.stdout, &seen.stderr] {
                (text.as_str(), text.bytes()).hash(&mut hasher);
            }
        }
        Event::Evaluate { verdict, tree, .. } => (2, verdict, format!("{tree:?}")).hash(&mut hasher),
        Event::Route { from, to, .. } => (3, from, to).hash(&mut hasher),
        Event::SubLoopComplete(complete) => (4, &complete.verdict, complete.exit_code).hash(&mut hasher),
        Event::Warning { message, .. } | Event::Message { text: message, .. } => {
            (5, message).hash(&mut hasher);
        }
        Event::ActionError { error, .. } | Event::LoopError { error, .. } => (6, error).hash(&mut hasher),
        Event::Signal { .. } => 7.hash(&mut hasher),
        Event::Handoff(_) => 8.hash(&mut hasher),
        Event::LoopTimeout { .. } => 9.hash(&mut hasher),
        Event::Stall { .. } => 10.hash(&mut hasher),
        Event::LoopStart(_)
        | Event::LoopResume(_)
        | Event::Approval(_)
        | Event::CallFailed(_)
        | Event::LoopComplete(_)
        | Event::ActionStart { .. }
        | Event::SubLoopStart { .. }
        | Event::VerdictTree { .. }
        | Event::ClosingPassStart(_)
        | Event::ClosingPassCheck(_)
        | Event::ClosingPassProof(_)
        | Event::Reused(_)
        | Event::ClosingPassEnd(_)
        | Event::Judge { .. }
        | Event::Sandbox(_)
        | Event::Board(_)
        | Event::Retry { .. }
        | Event::Backoff { .. } => return None,
    }
    Some(hasher.finish())
}

/// Says how many passes are not shown: `… 46 passes like this one`.
pub fn like(count: u64) -> String {
    let passes = if count == 1 { "pass" } else { "passes" };
    format!("… {count} {passes} like this one")
}

/// Holds the lines of a pass back for as long as it is like the two before it.
#[derive(Default)]
pub(super) struct Repeats {
    passes: Passes,
    held: Option<VecDeque<String>>,
    bytes: usize,
    left_out: u32,
}

/// What was held back and is to be shown now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Released {
    /// What stands for the passes that are left out, if any are.
    pub(super) notice: Option<String>,
    pub(super) lines: VecDeque<String>,
}

impl Repeats {
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Takes the next event, before it is shown; returns what is to be shown before it.
    pub(super) fn event(&mut self, stamped: &Stamped) -> Option<Released> {
        let ended = self.passes.event(stamped);
        if let (Some(held), Some(true)) = (&mut self.held, ended) {
            // The pass was the same to its end, so that its lines need not be shown at all.
            held.clear();
            self.bytes = 0;
            self.left_out = self.left_out.saturating_add(1);
        }
        let is_alike = self.passes.is_alike && !self.passes.is_over && ended != Some(false);
        if self.held.is_some() && !is_alike {
            return self.release();
        }
        if self.held.is_none() && ended == Some(true) && is_alike && self.passes.same >= SHOWN {
            self.held = Some(VecDeque::new());
        }
        None
    }

    /// Takes a line in place of the reader; returns everything when that becomes too much.
    pub(super) fn hold(&mut self, line: String) -> Option<Released> {
        self.bytes += line.len();
        self.held.as_mut()?.push_back(line);
        if self.bytes > MOST_HELD { self.release() } else { None }
    }

    /// Returns everything that is held back.
    pub(super) fn release(&mut self) -> Option<Released> {
        let lines = self.held.take()?;
        let left_out = std::mem::take(&mut self.left_out);
        self.bytes = 0;
        Some(Released { notice: (left_out > 0).then(|| like(left_out.into())), lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::event::ActionComplete;
    use crate::evaluate::observation::Observation;
    use crate::report::testing::{Journal, state};

    /// Passes with one state that prints these letters, one a pass.
    fn journal(texts: &str) -> Vec<Stamped> {
        let mut journal = Journal::of("x", 50);
        let mut step = 0;
        for text in texts.chars() {
            step += 1;
            let (a, iteration) = (state("a"), step);
            journal.push(Event::StateEnter { state: a.clone(), iteration, step, attempt: 1 });
            let seen = Observation::exited(1, text.to_string());
            journal.push(Event::ActionComplete(ActionComplete { step, seen, usage: None }));
            let reason = RouteReason::Next;
            journal.push(Event::Route { from: a.clone(), to: a, verdict: None, reason });
        }
        journal.events.clone()
    }

    /// What a reader sees: each pass by its letter, and a number for those that are left out.
    fn shown(texts: &str, end: Option<Event>) -> String {
        let mut repeats = Repeats::default();
        let mut out = String::new();
        let mut events = journal(texts);
        let last = events.last().unwrap().clone();
        events.extend(end.map(|event| Stamped { event, ..last }));
        let write = |released: Released, out: &mut String| {
            out.extend(released.notice.iter().map(|notice| format!("({notice})")));
            out.extend(released.lines);
        };
        for stamped in &events {
            if let Some(released) = repeats.event(stamped) {
                write(released, &mut out);
            }
            let Event::ActionComplete(complete) = &stamped.event else { continue };
            let line = complete.seen.stdout.as_str().to_owned();
            if !repeats.is_holding() {
                out.push_str(&line);
            } else if let Some(released) = repeats.hold(line) {
                write(released, &mut out);
            }
        }
        if let Some(released) = repeats.release() {
            write(released, &mut out);
        }
        out
    }

    fn handoff() -> Event {
        Event::LoopTimeout { state: state("a"), elapsed_ms: 1 }
    }

    #[test]
    fn passes_that_are_the_same_are_said_once() {
        for (texts, expected) in [
            ("a", "a"),
            ("aa", "aa"),
            ("abcabc", "abcabc"),
            ("aab", "aab"),
            // What is held back is shown as soon as it is known to be of another pass.
            ("aaab", "aa(… 1 pass like this one)b"),
            ("aaaaaab", "aa(… 4 passes like this one)b"),
            ("baaaaacccc", "baa(… 3 passes like this one)cc(… 1 pass like this one)c"),
        ] {
            assert_eq!(shown(texts, None), expected, "{texts}");
        }
    }

    #[test]
    fn what_ends_a_run_is_shown_with_its_last_pass() {
        assert_eq!(shown("aaaa", Some(handoff())), "aa(… 1 pass like this one)a");
    }

    #[test]
    fn passes_at_the_end_are_counted() {
        for (texts, expected) in [("a", 0), ("aa", 1), ("aaa", 2), ("aaaab", 4), ("aabbb", 2)] {
            let mut passes = Passes::default();
            let _ended: Vec<_> = journal(texts).iter().map(|stamped| passes.event(stamped)).collect();
            assert_eq!(passes.same(), expected, "the last one goes on: {texts}");
        }
    }
}
