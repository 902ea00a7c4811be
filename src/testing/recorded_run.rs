//! A run as its journal tells it, to be played again on the loop as it is now.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use super::asked::{AskedPlace, AskedWork, Gap, GapReason, Script, SubLoopAnswer, WorkAnswer};
use super::mock::Interruption;
use super::virtual_tree::TreeEffects;
use crate::base::explanation::Explanation;
use crate::base::redact::MASK;
use crate::engine::event::{Event, LoopComplete, LoopStart, Stamped, TreeState};
use crate::engine::loop_stack::LoopStack;
use crate::engine::outcome::Signal;
use crate::engine::request::{AskRequest, SubLoopRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::{Observation, Stop};

/// Something that was done in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedWork {
    /// The state, with those around it.
    pub key: String,
    /// What was run.
    pub text: String,
    /// What was observed; nothing where the process was killed before.
    pub seen: Option<Observation>,
    /// What models cost.
    pub usage: Usage,
    /// What the judge answered.
    pub reply: Option<Result<Value, Explanation>>,
    /// The verdict.
    pub verdict: Option<String>,
    /// Whether a look at the tree decided.
    pub looked_at_tree: bool,
    /// When it began.
    pub at: String,
}

impl RecordedWork {
    /// Tells why what it came to is not known as it was: only its end was kept, or a part of it is hidden.
    pub fn doubt(&self) -> Option<&'static str> {
        let seen = self.seen.as_ref()?;
        let texts = [&seen.stdout, &seen.stderr];
        if texts.iter().any(|text| text.is_truncated() || text.elsewhere().is_some()) {
            return Some("only the end of what it printed was kept");
        }
        if texts.iter().any(|text| text.as_str().contains(MASK)) {
            return Some("a secret is hidden in what it printed");
        }
        self.looked_at_tree.then_some("it looked at the working tree, which is not there any more")
    }
}

/// A run as its journal tells it.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// How it began.
    pub start: LoopStart,
    /// Everything that was done in it, in order.
    pub works: Vec<RecordedWork>,
    /// How it ended, if it did.
    pub end: Option<LoopComplete>,
    /// The signals that interrupted it, in order.
    pub signals: Vec<Option<Signal>>,
    /// How often it was resumed.
    pub resumes: usize,
}

impl RecordedRun {
    /// Reads the events of a run; none where it did not begin.
    pub fn of(events: &[Stamped]) -> Option<Self> {
        let Event::LoopStart(start) = &events.first()?.event else { return None };
        let mut reading = RunReading::default();
        let (mut end, mut signals, mut resumes) = (None, Vec::new(), 0);
        for stamped in events {
            reading.take(stamped);
            // How a sub-loop ends says nothing of how the run does.
            if stamped.depth > 0 {
                continue;
            }
            if let Event::LoopComplete(complete) = &stamped.event {
                end = Some(complete.clone());
                signals.push(complete.signal);
            } else if let Event::LoopResume(_) = &stamped.event {
                resumes += 1;
                end = None;
            }
        }
        Some(Self { start: start.clone(), works: reading.works, end, signals, resumes })
    }

    /// Tells whether somebody can go on with it.
    pub fn is_left(&self) -> bool {
        self.end.as_ref().is_none_or(LoopComplete::is_resumable)
    }
}

/// A journal that is being read.
#[derive(Default)]
struct RunReading {
    loops: LoopStack<ReadState>,
    works: Vec<RecordedWork>,
    /// The work that goes on.
    open: Option<usize>,
}

/// The state that a loop is in.
struct ReadState {
    name: String,
    /// Its last work.
    last: Option<usize>,
}

impl RunReading {
    fn take(&mut self, stamped: &Stamped) {
        let depth = stamped.depth;
        if let Event::StateEnter { state, .. } = &stamped.event {
            self.loops.begin(depth, ReadState { name: state.to_string(), last: None });
        } else if let Event::ActionStart { state, action, .. } = &stamped.event {
            let around = self.loops.levels().iter().take(depth as usize).map(|around| around.name.as_str());
            let key = around.chain([state.as_str()]).collect::<Vec<_>>().join("/");
            self.begin(depth, key, action.clone(), stamped);
        } else if let Event::ActionComplete(complete) = &stamped.event {
            if let Some(work) = self.open.take().and_then(|at| self.works.get_mut(at)) {
                work.seen = Some(complete.clone().numbered(stamped.seq).seen);
                work.usage = complete.usage.clone().unwrap_or_default();
            }
        } else if let Event::Judge { usage, error, .. } = &stamped.event {
            let at = self.current(depth, stamped);
            if let Some(work) = self.works.get_mut(at) {
                // A mock has one cost. Beside work it is that of the work, which has been told already.
                if work.seen.is_none() {
                    work.usage = usage.clone();
                }
                work.reply = error.clone().map(|why| Err(Explanation::new(why)));
            }
        } else if let Event::Evaluate { verdict, confidence, details, tree, .. } = &stamped.event {
            let Some(work) = self.last(depth).and_then(|at| self.works.get_mut(at)) else {
                return;
            };
            work.verdict = Some(verdict.to_string());
            work.looked_at_tree |= matches!(tree, Some(TreeState::Seen(_)));
            if work.reply.is_none() {
                let raw = details.get("raw").filter(|raw| raw.is_object()).cloned();
                // An answer that does not say how sure it is counts as sure.
                let made = || {
                    let reason = details.get("reason").cloned().unwrap_or_else(|| json!(""));
                    json!({"verdict": verdict, "confidence": confidence.unwrap_or(1.0), "reason": reason})
                };
                work.reply = Some(Ok(raw.unwrap_or_else(made)));
            }
        }
    }

    /// Returns the last work of the state that a loop is in.
    fn last(&self, depth: u32) -> Option<usize> {
        self.loops.at(depth)?.last
    }

    fn begin(&mut self, depth: u32, key: String, text: String, stamped: &Stamped) {
        let at = self.works.len();
        self.works.push(RecordedWork {
            key,
            text,
            seen: None,
            usage: Usage::default(),
            reply: None,
            verdict: None,
            looked_at_tree: false,
            at: stamped.ts.to_string(),
        });
        self.open = Some(at);
        if let Some(state) = self.loops.at_mut(depth) {
            state.last = Some(at);
        }
    }

    /// Returns the work that a judge is asked about: that of the state, or none but the question itself.
    fn current(&mut self, depth: u32, stamped: &Stamped) -> usize {
        if let Some(at) = self.last(depth) {
            return at;
        }
        let key =
            self.loops.path(depth).iter().map(|state| state.name.as_str()).collect::<Vec<_>>().join("/");
        self.begin(depth, key, String::new(), stamped);
        // A judge alone is no action: no `ActionComplete` that follows belongs to it.
        self.open = None;
        self.works.len() - 1
    }
}

/// Answers as a journal tells.
pub struct JournalScript {
    works: VecDeque<RecordedWork>,
    /// The last answer.
    current: Option<RecordedWork>,
    signals: VecDeque<Option<Signal>>,
    resumes: usize,
}

impl JournalScript {
    /// Answers with what a run came to.
    pub fn new(run: &RecordedRun) -> Self {
        Self {
            works: run.works.iter().cloned().collect(),
            current: None,
            signals: run.signals.iter().copied().collect(),
            resumes: run.resumes,
        }
    }

    /// Returns what was answered last.
    pub fn current(&self) -> Option<&RecordedWork> {
        self.current.as_ref()
    }

    /// Tells whether everything was answered.
    pub fn is_done(&self) -> bool {
        self.works.is_empty()
    }

    fn next(&mut self, place: &AskedPlace<'_>, text: &str) -> Result<RecordedWork, Gap> {
        let key = place.key();
        let gap = |why| Gap { state: key.clone(), text: text.to_owned(), why };
        match self.works.front() {
            None => Err(gap(GapReason::Unknown("the journal ends here".to_owned()))),
            Some(work) if work.key != key => Err(gap(GapReason::Parted)),
            Some(_) => {
                let work = self.works.pop_front().ok_or_else(|| gap(GapReason::Parted))?;
                self.current = Some(work.clone());
                Ok(work)
            }
        }
    }
}

impl Script for JournalScript {
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let recorded = self.next(&place, &work.text())?;
        let (seen, interruption) = match recorded.seen {
            None => (Observation::exited(0, ""), Some(Interruption::Killed)),
            Some(seen) if seen.stop == Some(Stop::Cancelled) => {
                let signal = self.signals.iter().flatten().next().copied().unwrap_or(Signal::Int);
                (seen, Some(Interruption::Asked(signal)))
            }
            Some(seen) => (seen, None),
        };
        Ok(WorkAnswer {
            takes: seen.duration,
            seen,
            usage: recorded.usage,
            effects: TreeEffects::default(),
            is_late: false,
            interruption,
        })
    }

    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap> {
        let is_current = self.current.as_ref().is_some_and(|work| work.key == place.key());
        let work = match &self.current {
            Some(work) if is_current => work.clone(),
            Some(_) | None => self.next(&place, &request.question.prompt)?,
        };
        let unknown = || Err(Explanation::new("the journal does not say what the judge answered"));
        let reply = work.reply.unwrap_or_else(unknown);
        let usage = Usage { calls: 1, cost_usd: Some(0.0), ..Usage::default() };
        Ok((ModelAnswer { reply, stop: None, usage }, Duration::ZERO))
    }

    fn sub_loop(&mut self, _: AskedPlace<'_>, _: &SubLoopRequest) -> Result<SubLoopAnswer, Gap> {
        // The journal has the work of its states as well.
        Ok(SubLoopAnswer::Played)
    }

    fn resumes(&mut self, _: &str) -> bool {
        self.signals.pop_front();
        let goes_on = self.resumes > 0;
        self.resumes = self.resumes.saturating_sub(1);
        goes_on
    }
}
