//! The outcome of a run in one sentence: what decided it, in the words of its events.

use super::changed_tree::Caveat;
use super::{Digest, NotRun, SentencePart};
use crate::base::name::StateName;
use crate::base::text;
use crate::engine::event::LoopComplete;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::verification::Verification;

impl Digest {
    /// Returns the outcome in one sentence, with names in backticks.
    pub fn sentence(&self) -> String {
        let quote = |part| match part {
            SentencePart::Words(words) => words,
            SentencePart::Name(name) => format!("`{name}`"),
        };
        self.sentence_parts().into_iter().map(quote).collect()
    }

    /// Returns the outcome in one sentence.
    pub fn sentence_parts(&self) -> Vec<SentencePart> {
        if let Some(not_run) = &self.not_run {
            return not_run.sentence();
        }
        if let Some(unbegun) = &self.unbegun {
            return vec![SentencePart::Words(unbegun.sentence())];
        }
        let Some(end) = &self.end else {
            return self.incomplete();
        };
        let mut sentence = Sentence::default();
        sentence.words(end.outcome.word());
        if end.outcome == Outcome::Success && !end.verified {
            sentence.words(" (unverified)");
        }
        sentence.words(": ");
        self.explain(end, &mut sentence);
        if let Some(caveat) = self.caveat().filter(|caveat| matches!(caveat, Caveat::Changes(_))) {
            sentence.words("; ").words(&caveat.words());
        }
        sentence.0
    }

    fn explain(&self, end: &LoopComplete, sentence: &mut Sentence) {
        if self.is_merge() {
            // No step stands for all items.
            sentence.words(&text::one_line(&end.reason, 1000));
            return;
        }
        match end.outcome {
            Outcome::Success if end.verified && self.is_until_clean() => {
                sentence.words(&text::one_line(&end.reason, 300))
            }
            Outcome::Success if end.verified && self.reused().is_some() => {
                sentence.words(&text::one_line(&end.reason, 300))
            }
            Outcome::Success if end.verified => match self.tracker.passing() {
                Some(step) => sentence.name(&step.state).words(" ").words(&step.said()),
                None => sentence.words("ended at ").name(&end.final_state),
            },
            Outcome::Success | Outcome::Failure if self.refutation().is_some() => {
                sentence.words(&text::one_line(&end.reason, 300))
            }
            Outcome::Success => self.explain_unverified(end, sentence),
            Outcome::Failure if end.terminated_by == TerminatedBy::UncommittedChanges => {
                sentence.words(&text::one_line(&end.reason, 300))
            }
            Outcome::Failure | Outcome::Blocked => self.explain_deciding(end, sentence),
            Outcome::Exhausted => {
                sentence.words(&self.cap(end));
                if self.deciding_step().is_some() {
                    sentence.words("; ");
                    self.explain_deciding(end, sentence);
                }
                // The reason of a stall, which `cap` returns, says it already.
                let is_stall = end.terminated_by == TerminatedBy::Stall;
                match self.same_passes().filter(|_| !is_stall) {
                    Some(same) => {
                        let all = same == end.iterations;
                        let which = if all { "all".to_owned() } else { format!("the last {same}") };
                        sentence.words(&format!("; {which} passes had the same verdicts and outputs"));
                        if self.changed_nothing() {
                            sentence.words(", and nothing changed between the last two");
                        } else if self.has_changed_the_tree() {
                            sentence.words(", but the working tree changed");
                        }
                    }
                    None if !is_stall && self.changed_nothing() => {
                        sentence.words("; nothing changed between the last two");
                    }
                    None => {}
                }
                sentence
            }
            Outcome::Error => match self.tracker.trouble() {
                Some((state, error)) => sentence.name(state).words(": ").words(&text::one_line(error, 300)),
                None if matches!(
                    end.terminated_by,
                    TerminatedBy::FatalError
                        | TerminatedBy::Handoff
                        | TerminatedBy::NotRecorded
                        | TerminatedBy::JournalLost
                ) =>
                {
                    sentence.name(&end.final_state).words(": ").words(&text::one_line(&end.reason, 300))
                }
                None => self.explain_deciding(end, sentence),
            },
            Outcome::Timeout => sentence
                .words("in ")
                .name(&end.final_state)
                .words(&format!(" after {}", crate::base::time::human(self.duration()))),
            Outcome::Handoff => match &self.handoff {
                Some((state, _)) if let Some(awaiting) = self.awaiting() => {
                    let why =
                        if awaiting.asked_anew { ", as the answer was to another question: " } else { ": " };
                    sentence.words("waiting for a person in ").name(state).words(why).words(&awaiting.shown())
                }
                Some((state, reason)) => {
                    sentence.words("saved in ").name(state).words(": ").words(&text::one_line(reason, 300))
                }
                None => sentence.words("saved in ").name(&end.final_state),
            },
            Outcome::Interrupted if end.terminated_by == TerminatedBy::Killed => match self.step_count() {
                0 => sentence.words("killed before the first step"),
                _ if let Some(pass) = &end.killed_in_pass => {
                    sentence.words(&text::one_line(&format!("killed in {pass}"), 300))
                }
                _ => sentence.words("killed in state ").name(&end.final_state),
            },
            Outcome::Interrupted => {
                sentence.words(end.signal.map_or("asked to end", |signal| signal.name()));
                sentence.words(" in ").name(&end.final_state)
            }
            Outcome::Stopped
            | Outcome::OverBudget
            | Outcome::Unavailable
            | Outcome::LeaseLost
            | Outcome::Cancelled => {
                let reason = text::one_line(&end.reason, 300);
                if reason.is_empty() {
                    sentence.words("in ").name(&end.final_state)
                } else {
                    sentence.words(&reason)
                }
            }
        };
    }

    /// Tells whether the run was to end with its first clean cycle.
    fn is_until_clean(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.until_clean)
    }

    fn explain_unverified<'s>(&self, end: &LoopComplete, sentence: &'s mut Sentence) -> &'s mut Sentence {
        match self.tracker.failing() {
            Some(step) => sentence
                .name(&step.state)
                .words(" ")
                .words(&step.said())
                .words(" and nothing passed after it"),
            None => match self.verification().and_then(Verification::why) {
                Some(why) => sentence.words(&text::one_line(&why, 300)),
                None => sentence.words("ended at ").name(&end.final_state).words(" and nothing was checked"),
            },
        }
    }

    fn explain_deciding<'s>(&self, end: &LoopComplete, sentence: &'s mut Sentence) -> &'s mut Sentence {
        let Some(step) = self.deciding_step() else {
            sentence.words("ended at ").name(&end.final_state);
            return if end.verified { sentence } else { sentence.words(" and nothing passed") };
        };
        sentence.name(&step.state).words(" ").words(&step.said());
        let Some(verdict) = step.verdict() else {
            return sentence;
        };
        // After a single visit, `in 1 of 1 iterations` would say nothing.
        let Some(visited) = self.states.get(&step.state).filter(|visited| visited.visits > 1) else {
            return sentence;
        };
        let same = visited.verdicts.get(verdict.as_str()).copied().unwrap_or(1);
        match end.cycles {
            // Every task has its own attempts: there are no passes over all of the work.
            0 | 1 if self.work.is_none() => {
                sentence.words(&format!(" in {same} of {} iterations", end.iterations))
            }
            _ => sentence.words(&format!(" {same} of {} times", visited.visits)),
        }
    }

    fn cap(&self, end: &LoopComplete) -> String {
        match end.terminated_by {
            TerminatedBy::MaxIterations => {
                let cap = self.start.as_ref().map_or(end.iterations, |start| start.max_iterations);
                format!("met the cap of {}", text::plural(cap, "iteration"))
            }
            TerminatedBy::MaxSteps => {
                format!("met the cap of steps after {}", text::plural(end.steps, "step"))
            }
            TerminatedBy::MaxEdgeRevisits => "the same edge was taken too often".to_owned(),
            TerminatedBy::Terminal
            | TerminatedBy::UncommittedChanges
            | TerminatedBy::NotConfirmed
            | TerminatedBy::Error
            | TerminatedBy::Blocked
            | TerminatedBy::Timeout
            | TerminatedBy::Handoff
            | TerminatedBy::LeaseLost
            | TerminatedBy::Cancelled
            | TerminatedBy::Stall
            | TerminatedBy::FatalError
            | TerminatedBy::LoopStop
            | TerminatedBy::Budget
            | TerminatedBy::Unavailable
            | TerminatedBy::NotRecorded
            | TerminatedBy::JournalLost
            | TerminatedBy::Killed
            | TerminatedBy::Interrupted => text::one_line(&end.reason, 300),
        }
    }

    fn incomplete(&self) -> Vec<SentencePart> {
        let mut sentence = Sentence::default();
        if let Some(why) = &self.broken_off {
            sentence.words(&format!("incomplete: {why}; how the run went on after "));
            match self.unfinished() {
                Some(step) => sentence.name(&step.state).words(&format!(" (step {})", step.number)),
                None => sentence.words("its beginning"),
            };
            sentence.words(" is not known");
            return sentence.0;
        }
        sentence.words("incomplete: the journal ends ");
        match self.unfinished() {
            Some(step) => sentence.words("in ").name(&step.state).words(&format!(" (step {})", step.number)),
            None => sentence.words("before the first step"),
        };
        sentence.words(", so the run was killed or is still running");
        sentence.0
    }
}

impl NotRun {
    fn sentence(&self) -> Vec<SentencePart> {
        let mut sentence = Sentence::default();
        sentence.words("success (not in scope): nothing was run or verified, because nothing changed in ");
        for (index, path) in self.scope.iter().enumerate() {
            sentence.words(if index == 0 { "" } else { ", " });
            sentence.0.push(SentencePart::Name(text::one_line(path, 120)));
        }
        sentence.words(&format!(" since {}", text::one_line(&self.since, 120)));
        sentence.0
    }
}

#[derive(Default)]
struct Sentence(Vec<SentencePart>);

impl Sentence {
    fn words(&mut self, words: &str) -> &mut Self {
        match self.0.last_mut() {
            Some(SentencePart::Words(before)) => before.push_str(words),
            Some(SentencePart::Name(_)) | None => self.0.push(SentencePart::Words(words.to_owned())),
        }
        self
    }

    fn name(&mut self, state: &StateName) -> &mut Self {
        self.0.push(SentencePart::Name(text::one_line(state.as_str(), 120)));
        self
    }
}
