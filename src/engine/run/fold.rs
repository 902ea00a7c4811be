//! What each event changes in what is known about a run.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    ContinuationReader, Deciding, Detour, Ending, Evaluation, KnownConversation, METRICS, Pending, Phase,
    Rounds, Run, SpecialVisit, Streak,
};
use crate::base::name::StateName;
use crate::board::Board;
use crate::engine::bounds::{ALL_CAPTURES, ALL_MESSAGES, MOST_MESSAGES, Overflow};
use crate::engine::calls::Calls;
use crate::engine::changes::SeenTree;
use crate::engine::event::{
    BoardEvent, Event, Handoff, RouteReason, StallSeen, SubLoopComplete, TAIL, TreeState,
};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::question::OpenQuestion;
use crate::engine::state_result::StateResult;
use crate::engine::verification::{LastVerdict, VerdictTree};
use crate::evaluate::model::Usage;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::{Observes, Verdict};
use crate::machine::{Machine, OnHandoff, Routes, SignalKind, Step, StepId, Target};

impl Rounds {
    fn after(self, reason: RouteReason) -> Self {
        let again =
            Self { unjudged: 0, passes: 0, failures: 0, all: self.all.saturating_add(1), is_due: true };
        match reason {
            RouteReason::Unjudged => Self { unjudged: self.unjudged.saturating_add(1), ..again },
            RouteReason::Repeat => Self { passes: self.passes.saturating_add(1), ..again },
            RouteReason::Flaky => Self { failures: self.failures.saturating_add(1), ..again },
            RouteReason::Verdict
            | RouteReason::Next
            | RouteReason::Error
            | RouteReason::RetryExhausted
            | RouteReason::Maintain
            | RouteReason::Cap
            | RouteReason::Stall => Self { all: self.all, ..Self::default() },
        }
    }
}

impl Run {
    /// Takes the next event. An event that does not fit the phase changes nothing: the engine never makes one.
    pub(in crate::engine) fn apply(&mut self, machine: &Machine, event: &Event) {
        match event {
            Event::LoopStart(start) => {
                self.iteration_cap = start.max_iterations;
                self.arrive(machine.initial);
            }
            Event::LoopResume(resume) => self.resume(machine, resume),
            Event::Approval(approval) => {
                // An answer without a question is one to a state that was left meanwhile.
                if let Some(question) = &mut self.question {
                    question.take(approval);
                }
            }
            Event::StateEnter { state, iteration, step, attempt } => {
                let id = match machine.find(state) {
                    Some(Target::Step(id)) => Some(id),
                    Some(Target::End(_)) | None => None,
                };
                self.enter(id, state, *iteration, *step, *attempt);
            }
            Event::ActionStart { state, action, session, kind, .. } => match machine.find(state) {
                Some(Target::Step(id)) => {
                    self.act();
                    if self.continuation_reader == ContinuationReader::NextPrompt && kind.asks_agent() {
                        self.continuation_reader = ContinuationReader::Nobody;
                    }
                    self.action = Some(action.clone());
                    // The text is enough to make a check once more after a resume, when its request
                    // is gone.
                    if machine.step(id).is_check {
                        self.texts.insert(state.clone(), action.clone());
                    }
                    self.session.clone_from(session);
                    self.phase = Phase::Pending(Pending::Action(id));
                }
                Some(Target::End(id)) => {
                    self.act();
                    self.current = Some(state.clone());
                    self.phase = Phase::Pending(Pending::Closing(id));
                }
                None => {}
            },
            Event::ActionComplete(complete) => {
                self.spend(complete.usage.as_ref());
                self.converse(&complete.seen, complete.usage.as_ref());
                self.complete(machine, &complete.seen);
            }
            Event::SubLoopStart { state, .. } => {
                self.act();
                // Until it ends, nothing may refer to how it ended before.
                self.sub_loops.shift_remove(state);
                // What it costs is counted as it goes on, and once more in the sum at its end.
                self.before_sub_loop = Some((self.step, self.usage.clone()));
                if let Some(Target::Step(id)) = machine.find(state) {
                    self.phase = Phase::Pending(Pending::SubLoop(id));
                }
            }
            Event::SubLoopComplete(complete) => {
                self.spend(Some(&complete.usage));
                self.complete_sub_loop(machine, complete);
            }
            Event::Judge { usage, .. } => self.spend(Some(usage)),
            Event::Board(event) => self.operate(event),
            Event::Signal { state, signal, text } => self.signalled(state, *signal, text),
            Event::Evaluate { verdict, observes, details, memory, tree, warnings, .. } => {
                self.warnings.extend(warnings.iter().cloned());
                self.evaluate(machine, verdict, *observes, details, memory.as_ref(), tree.as_ref());
            }
            // A run that is cut off in the middle of it makes it again.
            Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::Reused(_)
            | Event::ClosingPassEnd(_)
            | Event::Sandbox(_) => {}
            Event::VerdictTree { state, tree } => self.place_verdict(state, tree),
            Event::Stall { state, window, seen } => self.stalled(machine, state, *window, seen),
            Event::Retry { .. } => self.retry_announced = true,
            Event::Message { text, .. } => {
                self.add_message(text);
                self.visit = SpecialVisit::Noted;
            }
            Event::Route { from, to, verdict, reason } => {
                self.route(machine, from, to, verdict.as_ref(), *reason);
            }
            Event::Backoff { duration_ms, .. } => {
                if let Phase::Deciding(Deciding::Arrive { to, .. }) = self.phase {
                    let wait = Duration::from_millis(*duration_ms);
                    self.phase = Phase::Pending(Pending::Backoff { to, wait });
                }
            }
            // A warning without a state is one of those with which the run began.
            Event::Warning { state: None, .. } => self.warned += 1,
            Event::Warning { state: Some(_), .. } => match self.unsaid() {
                Some(bound) => drop(self.exceeded.insert(bound, true)),
                None if self.warnings.pop_front().is_some() => {}
                None => self.warn_of_closing(),
            },
            Event::Handoff(handoff) => self.hand_off(handoff),
            Event::ActionError { state, error } => self.fail_to_begin(state, error),
            Event::CallFailed(failed) => {
                self.is_call_counted = true;
                self.calls.failed(failed);
            }
            Event::LoopError { state, error } => {
                self.observe(state, &Verdict::error(), Observes::Failing);
                self.end(Outcome::Error, TerminatedBy::Error, state, error);
            }
            Event::LoopTimeout { state, elapsed_ms } => {
                self.suspend();
                let elapsed = crate::base::time::human(Duration::from_millis(*elapsed_ms));
                let reason = format!("the loop's timeout passed after {elapsed}, in `{state}`");
                self.end(Outcome::Timeout, TerminatedBy::Timeout, state, &reason);
            }
            Event::LoopComplete(complete) => {
                self.suspend_at(complete);
                // What was cancelled cannot be answered any more.
                if complete.outcome == Outcome::Cancelled {
                    self.question = None;
                }
                // The end may name a terminal that was not entered yet; a resume goes on from where
                // the run stood.
                self.stood = self.current.replace(complete.final_state.clone());
                self.phase = Phase::Done(complete.clone());
            }
        }
    }

    fn add_message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
        self.message_bytes += text.len();
        self.message_count += 1;
        let (mut dropped, mut bytes) = (0, 0);
        // Counted first and drained once: removing from the front one by one would move all others
        // each time.
        while self.messages.len() - dropped > MOST_MESSAGES || self.message_bytes - bytes > ALL_MESSAGES {
            bytes += self.messages[dropped].len();
            dropped += 1;
        }
        if dropped > 0 {
            self.messages.drain(..dropped);
            self.message_bytes -= bytes;
            self.exceeded.entry(Overflow::Messages).or_insert(false);
        }
    }

    pub(in crate::engine) fn arrive(&mut self, to: Target) {
        self.phase = Phase::Deciding(Deciding::Arrive { to, waited: false });
    }

    pub(in crate::engine) fn end(
        &mut self,
        outcome: Outcome,
        by: TerminatedBy,
        state: &StateName,
        reason: &str,
    ) {
        let ending = Ending { outcome, by, state: state.clone(), reason: reason.to_owned(), signal: None };
        self.phase = Phase::Deciding(Deciding::End(ending));
    }

    /// A signal goes before every route.
    fn signalled(&mut self, state: &StateName, signal: SignalKind, text: &str) {
        let bare = format!("`{state}` asked for it");
        let reason = if text.is_empty() { bare.as_str() } else { text };
        match signal {
            SignalKind::Handoff => {
                self.handoffs += 1;
                self.left_to_say = Some(text.to_owned());
                self.phase = Phase::Pending(Pending::Continuation(state.clone(), text.to_owned()));
            }
            SignalKind::Error => self.end(Outcome::Error, TerminatedBy::FatalError, state, reason),
            SignalKind::Stop => self.end(Outcome::Stopped, TerminatedBy::LoopStop, state, reason),
        }
    }

    pub(in crate::engine) fn hand_off(&mut self, handoff: &Handoff) {
        // What leaves nothing to resume has failed.
        let outcome = match handoff.behavior {
            OnHandoff::Terminate => Outcome::Error,
            OnHandoff::Pause | OnHandoff::Spawn => Outcome::Handoff,
        };
        self.suspend();
        self.end(outcome, TerminatedBy::Handoff, &handoff.state, &handoff.message);
        // `end` comes first, as it may set what was left to say.
        self.left_to_say.clone_from(&handoff.continuation);
        self.question = handoff.awaiting.as_deref().map(|awaiting| Box::new(OpenQuestion::of(awaiting)));
        self.handoff = Some(handoff.clone());
    }

    /// An operation on the board observes nothing about the work, unless it failed.
    pub(in crate::engine) fn operate(&mut self, event: &BoardEvent) {
        let Phase::Deciding(Deciding::Act(id)) = self.phase else { return };
        self.board.take(&event.change);
        if event.verdict.is_error() {
            self.observe(&event.state, &event.verdict, Observes::Failing);
        }
        self.phase = Phase::Deciding(Deciding::Leave(id, event.verdict.clone()));
    }

    /// Keeps what the host calls a conversation. One in which a call failed is not gone on with.
    fn converse(&mut self, seen: &Observation, usage: Option<&Usage>) {
        let Some(name) = self.session.take() else { return };
        let known = usage.and_then(|usage| Some((usage.session.clone()?, usage.session_total)));
        // A failed call may have left the conversation in the middle of something.
        match known.filter(|_| seen.succeeded()) {
            Some((id, total)) => self.sessions.insert(name, KnownConversation { id, total }),
            None => self.sessions.remove(&name),
        };
    }

    /// The work of a state could not be made: its verdict is an error, and what earlier states left stays.
    fn fail_to_begin(&mut self, state: &StateName, error: &str) {
        let (Phase::Deciding(Deciding::Act(id)) | Phase::Pending(Pending::Action(id))) = self.phase else {
            return;
        };
        let verdict = Verdict::error();
        self.observe(state, &verdict, Observes::Failing);
        // The first state of a run has no result before it, and templates of its error route may
        // ask for one.
        if self.prev.is_none() {
            let (seen, verdict) = (Observation::not_started(error), Some(verdict.clone()));
            self.prev = Some(StateResult { state: state.clone(), seen, verdict });
        }
        let details = Map::from_iter([("error".to_owned(), error.into())]);
        self.evaluation = Some(Evaluation { verdict: verdict.clone(), details });
        self.visit = SpecialVisit::Unmade;
        self.phase = Phase::Deciding(Deciding::Leave(id, verdict));
    }

    /// Counts what models cost.
    fn spend(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.usage.add(usage);
        self.dearest.raise_to(usage);
    }

    pub(in crate::engine) fn enter(
        &mut self,
        id: Option<StepId>,
        state: &StateName,
        iteration: u32,
        step: u32,
        attempt: u32,
    ) {
        // A pass is a visit to a state that was visited in it before.
        if iteration != self.iteration {
            self.visited.clear();
        }
        self.visited.extend(id);
        self.last_entered = id;
        self.lost = id.is_none().then(|| state.clone());
        self.current = Some(state.clone());
        (self.iteration, self.step, self.attempt) = (iteration, step, attempt);
        self.rounds.is_due = false;
        // The rounds are those of visits in a row.
        if attempt == 1 {
            self.rounds.all = 0;
        }
        // A sub-loop that goes on says at its end what it cost in all.
        if let Some((_, usage)) = self.before_sub_loop.take_if(|(at, _)| *at == step) {
            self.usage = usage;
        }
        self.seen = None;
        self.sub_loop = None;
        self.action = None;
        self.visit = SpecialVisit::Usual;
        self.retry_announced = false;
        self.is_call_counted = false;
        self.restarting = false;
        if let Some(id) = id {
            self.phase = Phase::Deciding(Deciding::Act(id));
        }
    }

    pub(in crate::engine) fn complete(&mut self, machine: &Machine, seen: &Observation) {
        match self.phase {
            Phase::Pending(Pending::Action(id)) => {
                let step = machine.step(id);
                let result = StateResult { state: step.name.clone(), seen: seen.clone(), verdict: None };
                // An action that was cut short has no result: a resumed run still sees the previous one.
                if !seen.was_cut_short() {
                    self.store(machine, step, &result);
                }
                self.seen = Some(result);
                self.phase = Phase::Deciding(Deciding::Judge(id));
            }
            Phase::Pending(Pending::Closing(id)) => {
                let state = machine.end(id).name.clone();
                self.seen = Some(StateResult { state, seen: seen.clone(), verdict: None });
                self.phase = Phase::Deciding(Deciding::Closed(id));
            }
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => {}
        }
    }

    /// The sub-loop stands for the action: its exit code and its last output are the state's.
    fn complete_sub_loop(&mut self, machine: &Machine, complete: &SubLoopComplete) {
        let Phase::Pending(Pending::SubLoop(id)) = self.phase else { return };
        let seen = Observation {
            stdout: complete.output.clone(),
            duration: Duration::from_millis(complete.duration_ms),
            ..Observation::exited(complete.exit_code, "")
        };
        let step = machine.step(id);
        let result = StateResult { state: step.name.clone(), seen, verdict: None };
        if !complete.is_cut_short() {
            for (name, result) in &complete.captured {
                // Before the state's own result, which is the newer one.
                self.captured.insert(name.clone(), result.clone());
            }
            // A loop around this one may ask for what no template here refers to.
            self.sub_loops.insert(step.name.clone(), complete.clone());
            // It counts what it adds, too.
            self.store(machine, step, &result);
        }
        self.seen = Some(result);
        self.sub_loop = Some(complete.clone());
        self.phase = Phase::Deciding(Deciding::Judge(id));
    }

    /// Stores a result under the names by which later states can refer to it. Of a result that no template refers to,
    /// only the end is kept: a hundred states that print much must not add up.
    fn store(&mut self, machine: &Machine, step: &Step, result: &StateResult) {
        if let Some(name) = &step.capture {
            self.captured.insert(name.to_string(), result.clone());
        }
        // The tail is enough for what `why` and the reports show of it.
        let kept = if machine.refers_to(step.name.as_str()) {
            result.clone()
        } else {
            StateResult { seen: result.seen.shortened(TAIL), ..result.clone() }
        };
        self.results.insert(step.name.clone(), kept);
        self.shorten(machine, step);
    }

    /// Keeps the ends of the oldest results when all of them are too much. What this step did is not one of them. What
    /// sub-loops gave back and nothing here refers to comes first.
    fn shorten(&mut self, machine: &Machine, step: &Step) {
        let nested = || self.sub_loops.values().flat_map(SubLoopComplete::results);
        let all = || self.captured.values().chain(self.results.values()).chain(nested());
        let mut taken: u64 = all().map(StateResult::length).sum();
        if taken <= ALL_CAPTURES {
            // Nearly always there is room, and nothing has to be sorted.
            return;
        }
        let names = self.captured.iter_mut().map(|(name, result)| (name.as_str(), result));
        let states = self.results.iter_mut().map(|(state, result)| (state.as_str(), result));
        let (asked, spare): (Vec<_>, Vec<_>) =
            self.sub_loops.iter_mut().partition(|(state, _)| machine.refers_to(state.as_str()));
        let (asked, spare) = (asked.into_iter().flat_map(given_back), spare.into_iter().flat_map(given_back));
        // In the order in which they are missed least.
        for (name, result) in spare.chain(names).chain(states).chain(asked) {
            let is_new =
                name == step.name.as_str() || step.capture.as_ref().is_some_and(|own| own.as_str() == name);
            // Cut or not, a result that is new is what the next state asks for.
            if taken <= ALL_CAPTURES || is_new {
                continue;
            }
            taken -= result.length();
            result.seen = result.seen.shortened(TAIL);
            taken += result.length();
        }
        self.exceeded.entry(Overflow::Captures).or_insert(false);
    }

    fn evaluate(
        &mut self,
        machine: &Machine,
        verdict: &Verdict,
        observes: Option<Observes>,
        details: &Map<String, Value>,
        memory: Option<&Value>,
        tree: Option<&TreeState>,
    ) {
        // An action that was never judged comes here with `Act`, a judged one with `Judge`.
        if let Phase::Deciding(Deciding::Judge(id) | Deciding::Act(id)) = self.phase {
            if let Some(memory) = memory {
                self.memories.insert(id, memory.clone());
            }
            if let Some(tree) = tree {
                self.compare(id, verdict, details, tree);
            }
            self.evaluation = Some(Evaluation { verdict: verdict.clone(), details: details.clone() });
            let of_sub_loop = || self.sub_loop.as_ref().map(SubLoopComplete::observes);
            let observes = observes.or_else(of_sub_loop);
            let step = machine.step(id);
            self.observe(&step.name, verdict, observes.unwrap_or_else(|| step.observes(verdict)));
            self.phase = Phase::Deciding(Deciding::Leave(id, verdict.clone()));
        }
    }

    /// Continues the row of visits that were all the same, or begins a new one.
    fn compare(&mut self, id: StepId, verdict: &Verdict, details: &Map<String, Value>, tree: &TreeState) {
        let metric = METRICS.iter().find_map(|key| details.get(*key)).cloned();
        let seen = StallSeen { verdict: verdict.clone(), metric, tree: tree.clone() };
        let visits = match self.streaks.get(&id) {
            Some(streak) if streak.seen == seen => streak.visits.saturating_add(1),
            _ => 1,
        };
        self.streaks.insert(id, Streak { seen, visits, step: self.step });
    }

    /// The first stall may have a way out; any other one ends the run.
    fn stalled(&mut self, machine: &Machine, state: &StateName, window: u32, seen: &StallSeen) {
        let has_way = machine.stall.is_some_and(|stall| stall.to.is_some());
        if has_way && self.detour == Detour::Unused {
            self.detour = Detour::Due;
        } else {
            let reason = seen.sentence(state, window);
            self.end(Outcome::Exhausted, TerminatedBy::Stall, state, &reason);
        }
    }

    pub(in crate::engine) fn route(
        &mut self,
        machine: &Machine,
        from: &StateName,
        to: &StateName,
        verdict: Option<&Verdict>,
        reason: RouteReason,
    ) {
        *self.edges.entry((from.clone(), to.clone())).or_default() += 1;
        // Leaving the state that asked makes its question pointless.
        self.question = None;
        self.rounds = self.rounds.after(reason);
        match reason {
            RouteReason::Maintain => self.restart(),
            RouteReason::Cap => self.capped = self.capped.or_else(|| self.cap_in_force(machine)),
            RouteReason::Verdict | RouteReason::Next | RouteReason::Error | RouteReason::RetryExhausted => {
                self.leave(machine, from, verdict);
            }
            RouteReason::Unjudged | RouteReason::Repeat | RouteReason::Flaky => {
                self.leave(machine, from, verdict);
                // That it comes to the same again is meant.
                if let Some(Target::Step(id)) = machine.find(from) {
                    self.streaks.remove(&id);
                }
            }
            RouteReason::Stall => {
                self.leave(machine, from, verdict);
                self.streaks.clear();
                self.detour = Detour::Taken;
            }
        }
        match machine.find(to) {
            Some(target) => {
                self.lost = None;
                self.arrive(target);
            }
            None => self.lost = Some(to.clone()),
        }
    }

    fn restart(&mut self) {
        self.cycle += 1;
        // A new cycle is a new run in all that counts towards its end.
        self.attempt = 0;
        self.rounds = Rounds::default();
        self.streaks.clear();
        self.last_entered = None;
        self.trust.is_doubted = false;
        self.restarting = true;
        self.board = Board::default();
        self.sessions.clear();
        self.calls = Calls::default();
    }

    /// Works out which cap made the engine choose a handler, from the same numbers.
    fn cap_in_force(&self, machine: &Machine) -> Option<TerminatedBy> {
        match self.phase {
            Phase::Deciding(Deciding::Arrive { to: Target::Step(id), .. }) => self.cap_before(machine, id),
            Phase::Pending(_) | Phase::Deciding(_) | Phase::Done(_) => None,
        }
    }

    /// Returns the cap that forbids entering a state, if one does.
    pub(in crate::engine) fn cap_before(&self, machine: &Machine, id: StepId) -> Option<TerminatedBy> {
        let limits = machine.limits;
        if self.begins_pass(id) && self.iteration >= self.iteration_cap {
            Some(TerminatedBy::MaxIterations)
        } else if limits.steps.is_some_and(|cap| self.step >= cap.limit) {
            Some(TerminatedBy::MaxSteps)
        } else {
            None
        }
    }

    pub(in crate::engine) fn leave(
        &mut self,
        machine: &Machine,
        from: &StateName,
        verdict: Option<&Verdict>,
    ) {
        let Some(Target::Step(id)) = machine.find(from) else { return };
        if let Some(call) = machine.step(id).call()
            // A visit whose failure was counted was not answered.
            && !self.is_call_counted
        {
            self.calls.answered(call);
        }
        // A visit without an evaluation, as after a timeout, breaks the streak.
        if self.streaks.get(&id).is_some_and(|streak| streak.step != self.step) {
            self.streaks.remove(&id);
        }
        // Taken, not copied: the streams may have megabytes.
        if let Some(mut result) = self.seen.take() {
            let step = machine.step(id);
            self.judge_unevaluated(step, &result.seen, verdict);
            result.verdict = verdict.cloned();
            self.store(machine, step, &result);
            self.prev = Some(result);
        }
    }

    /// An action that no evaluator looked at still speaks when it fails: by its exit code, its timeout, its absence.
    fn judge_unevaluated(&mut self, step: &Step, seen: &Observation, verdict: Option<&Verdict>) {
        // `next` leads on from a failure as well, and the failure would leave no trace otherwise.
        let failed_silently = matches!(step.routes, Routes::Always { .. }) && !seen.succeeded();
        if seen.timed_out() || seen.failure.is_some() {
            let verdict = verdict.cloned().unwrap_or_else(Verdict::error);
            let mut details = Map::from_iter([("exit_code".to_owned(), Value::from(seen.exit_code))]);
            let late = || format!("it took too long: {}", crate::base::time::human(seen.duration));
            let why = seen.failure.clone().unwrap_or_else(late);
            details.insert("error".to_owned(), why.into());
            self.observe(&step.name, &verdict, Observes::Failing);
            self.evaluation = Some(Evaluation { verdict, details });
        } else if failed_silently {
            self.observe(&step.name, &Verdict::error(), Observes::Failing);
        }
    }

    /// Takes what a state says about the work.
    fn observe(&mut self, state: &StateName, verdict: &Verdict, observes: Observes) {
        self.trust.observe(observes);
        match observes {
            Observes::Passing | Observes::Failing => {
                self.verdicts.insert(state.clone(), LastVerdict::new(verdict.clone(), observes));
                self.last_observed = Some(state.clone());
            }
            // It takes the place of what the check may have said before.
            Observes::Nothing if verdict.is_quarantined() => {
                self.verdicts.insert(state.clone(), LastVerdict::new(verdict.clone(), observes));
            }
            Observes::Nothing => {}
        }
    }

    /// An action begins, and whatever was not looked at before it will not be.
    fn act(&mut self) {
        // From here on, the action may change the tree on which that verdict fell.
        for last in self.verdicts.values_mut().filter(|last| last.tree == VerdictTree::Standing) {
            last.tree = VerdictTree::Passed;
        }
    }

    /// Keeps the tree on which a verdict fell.
    fn place_verdict(&mut self, state: &StateName, tree: &SeenTree) {
        let last = self.verdicts.get_mut(state).filter(|last| last.tree == VerdictTree::Standing);
        if let Some(last) = last {
            last.tree = match tree {
                SeenTree::Known(ids) => VerdictTree::Seen(ids.clone()),
                SeenTree::Unknown { unknown } => VerdictTree::Unseen(unknown.clone()),
            };
        }
    }

    /// A run that goes on, without knowing that the tree is still the one that it left.
    pub(super) fn lose_sight(&mut self, is_elsewhere: bool) {
        self.act();
        if is_elsewhere {
            for last in self.verdicts.values_mut().filter(|last| last.tree == VerdictTree::Passed) {
                last.tree = VerdictTree::Left;
            }
        }
    }

    /// A warning about a terminal's action is the last thing before the end.
    fn warn_of_closing(&mut self) {
        if let Phase::Deciding(Deciding::Closed(id) | Deciding::Arrive { to: Target::End(id), .. }) =
            self.phase
        {
            self.phase = Phase::Deciding(Deciding::Finish(id));
        }
    }
}

/// Returns what the sub-loop of a state gave back, with the name of the state.
fn given_back<'r>(
    (state, sub): (&'r StateName, &'r mut SubLoopComplete),
) -> impl Iterator<Item = (&'r str, &'r mut StateResult)> {
    sub.results_mut().into_iter().map(|result| (state.as_str(), result))
}
