//! The closing pass: checks that passed on another tree than the last one are made once more before a success is
//! believed. It is neither an iteration nor a step, and it asks no model. The events of it change nothing in what is known about
//! a run: a run that is cut off in the middle of it decides on its end again, and makes the pass again.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Map;

use super::changes::{StartTree, TreeIds};
use super::common::unjudged_verdict;
use super::event::{
    ClosingPassCheck, ClosingPassEnd, ClosingPassProof, ClosingPassStart, Event, LoopComplete, PassResult,
    TAIL,
};
use super::going_pass::{GoingPass, ProofRun, RefusedCheck};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{ActionRequest, AsideRequest, Recheck, RestoreRequest, RestoredTree};
use super::state_result::StateResult;
use super::verification::{CheckRecord, Confirmed, JudgesStanding, Reason, Verification};
use super::waiting::{PassWork, Waiting};
use super::{Engine, bounds};
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::path::Segment;
use crate::base::template::{Expression, Namespace, Template};
use crate::base::text::{listed_in_part, one_line, plural};
use crate::base::time::millis;
use crate::evaluate::observation::{Observation, Stop};
use crate::evaluate::verdict::{Observes, Verdict};
use crate::evaluate::{Evaluate, Judged, Judging};
use crate::judges::found_judges::{AddedTest, JudgesFound, JudgesState};
use crate::machine::{Action, ActionSetting, Step};

/// What it means that a check of a closing pass failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// The check is known to waver, and is made again.
    MadeAgain,
    /// People have excused it: the check is in quarantine.
    Excused,
    /// It counts against the run.
    Counts,
}

impl Engine<'_> {
    /// Returns the checks of this run that passed last, with those of the loops that it ran, where all of them can be
    /// made once more, and with them all that its success rests on.
    pub fn rechecks(&self) -> Option<Vec<Recheck>> {
        // What was observed last counts even where it is no check: without it, the others say less than the run did.
        let passed = self.grounds().filter(|ground| {
            (ground.is_check || ground.is_last) && ground.last.observes == Observes::Passing
        });
        let mut all = Vec::new();
        for ground in passed {
            // The loop around this one has other values, by which its verdict would not be the same.
            if self.step_of(ground.state).is_some_and(is_judged_by_values) {
                return None;
            }
            // A loop that passed without a check of its own has nothing that could be made once more.
            all.extend(self.rechecks_of(ground.state).filter(|checks| !checks.is_empty())?);
        }
        Some(all)
    }

    /// Returns how the verdict of a state can be confirmed, if it can.
    pub(super) fn rechecks_of(&self, state: &StateName) -> Option<Vec<Recheck>> {
        // The checks of a loop that a state runs confirm that state.
        let step = self.step_of(state)?;
        if let Some(inner) = self.inner.get(state) {
            let around = |inner: &Recheck| Recheck {
                state: state.clone(),
                name: format!("{state}/{}", inner.name),
                ..inner.clone()
            };
            return Some(inner.iter().map(around).collect());
        }
        if !step.is_check || expressions(step).any(is_about_visit) || self.asks_query(step) {
            return None;
        }
        let request = match self.requests.get(state) {
            Some(request) => request.clone(),
            // After a resume, the request is not in memory, and is made again from what the journal
            // has.
            // An earlier part of the run made it. What its surroundings were then is not kept.
            None if !has_lasting_surroundings(step) => return None,
            None => self.request_again(step)?,
        };
        let memory = match self.machine.find(state)? {
            crate::machine::Target::Step(id) => self.run.memories().get(&id).cloned(),
            crate::machine::Target::End(_) => None,
        };
        Some(vec![Recheck {
            state: state.clone(),
            name: state.to_string(),
            step: step.clone(),
            request,
            memory,
        }])
    }

    /// Returns another check that runs the same command and is judged in the same way, for one that cannot be made once more
    /// because what its surroundings were is not kept: the check of a task of an agent is that of the goal.
    fn twin(&self, state: &StateName) -> Option<Vec<Recheck>> {
        let step = self.step_of(state).filter(|step| step.is_check)?;
        let Some(Action::Shell(own)) = &step.action else { return None };
        let is_twin = |other: &&Step| match &other.action {
            Some(Action::Shell(shell)) => {
                let is_same_command = (&shell.text, &shell.shell, &shell.setting.cwd)
                    == (&own.text, &own.shell, &own.setting.cwd)
                    && env_beside_task(&shell.setting).eq(env_beside_task(&own.setting));
                other.is_check
                    && other.name != step.name
                    && is_same_command
                    && other.evaluate == step.evaluate
            }
            Some(
                Action::Prompt(_)
                | Action::Tool(_)
                | Action::SubLoop(_)
                | Action::Board(_)
                | Action::Approval(_)
                | Action::Learning(_),
            )
            | None => false,
        };
        let twins = self.machine.steps().map(|(_, step)| step).filter(is_twin);
        let mut rechecks = twins.filter_map(|twin| self.rechecks_of(&twin.name));
        let in_its_place = |recheck: Recheck| Recheck { state: state.clone(), ..recheck };
        rechecks
            .find(|checks| !checks.is_empty())
            .map(|checks| checks.into_iter().map(in_its_place).collect())
    }

    /// Tells whether a check is judged with a query, which takes a process of its own: a closing pass runs checks alone.
    fn asks_query(&self, step: &Step) -> bool {
        let seen = Observation::exited(0, "");
        let result = StateResult { state: step.name.clone(), seen, verdict: None };
        let scope = self.scope_of_check(step, &result);
        let query = |evaluate: &Evaluate| evaluate.query(Judging::of_end(&result.seen, &scope)).is_some();
        step.evaluate.as_ref().is_some_and(query)
    }

    pub(super) fn request_again(&self, step: &Step) -> Option<ActionRequest> {
        let Some(Action::Shell(shell)) = &step.action else { return None };
        let text = match self.run.text_of(&step.name) {
            Some(text) if bounds::is_whole(text) => text.to_owned(),
            // What stands in the journal is not what ran, unless the author wrote it like that.
            Some(text) => {
                let written = shell.text.as_literal().filter(|written| bounds::in_event(written) == text);
                written?.into_owned()
            }
            None => self.render(&shell.text).ok()?,
        };
        let setting = self.setting(&shell.setting).ok()?;
        let role = step.role.as_ref().map(ToString::to_string);
        Some(ActionRequest { shell: shell.shell.clone(), text, role, setting })
    }

    /// Returns the closing pass that an end needs, if it needs one that can be made.
    pub(super) fn pass_for(
        &self,
        end: &LoopComplete,
        verification: &Verification,
        tree: &TreeIds,
        judges: &JudgesFound,
    ) -> Option<GoingPass> {
        let is_curable = |reason: &Reason| match reason {
            Reason::Stale => true,
            Reason::JudgesChanged => {
                judges.state == JudgesState::Changed
                    && judges.can_be_put_back
                    && !verification.has_judges_beyond_checks(judges, &self.observers())
            }
            Reason::Unobserved
            | Reason::TreeUnknown
            | Reason::NotConfirmed
            | Reason::DirtyStart
            | Reason::Quarantined => false,
        };
        let is_wanted = end.outcome == Outcome::Success
            // A run that was asked to end makes no more checks.
            && self.cancel.is_none()
            && self.machine.makes_closing_pass
            && !self.start.event.no_closing_pass
            && verification.reasons.iter().all(is_curable);
        let proof = is_wanted.then(|| self.proof(verification, judges)).flatten();
        if !is_wanted || (verification.reasons.is_empty() && proof.is_none()) {
            return None;
        }
        let are_changed = verification.reasons.contains(&Reason::JudgesChanged);
        let doubted = if are_changed { verification.doubted(judges) } else { Vec::new() };
        let (mut left, mut with_judges) = (VecDeque::new(), VecDeque::new());
        for check in &verification.checks {
            let again = || {
                let own = self.rechecks_of(&check.state).filter(|checks| !checks.is_empty());
                own.or_else(|| self.twin(&check.state))
            };
            let is_stale = is_stale(verification, &check.state);
            // A check that no judge concerns is asked as things stand, even where it is stale.
            if doubted.contains(&check.state) && (is_stale || check.confirmed != Confirmed::No) {
                with_judges.extend(again()?);
            } else if is_stale {
                // What the run did to the judges of others is its work.
                left.extend(again()?);
            }
        }
        let aside = are_changed.then(|| self.aside(judges)).flatten();
        // Only for those that say no: most fixes need no second try.
        let again = aside.clone().filter(|_| !judges.second_try.are_none()).map(|mut again| {
            again.put_back.extend(judges.second_try.to_put_back.iter().cloned());
            again.hide.extend(judges.second_try.to_hide.iter().cloned());
            again
        });
        if are_changed && (aside.is_none() || with_judges.is_empty()) {
            return None;
        }
        Some(GoingPass {
            end: end.clone(),
            verification: verification.clone(),
            tree: tree.clone(),
            aside,
            left,
            with_judges,
            again,
            proofs: proof.into_iter().collect(),
            proving: None,
            proves_nothing: Vec::new(),
            made: Vec::new(),
            made_again: BTreeMap::new(),
            excused: Vec::new(),
            is_aside: false,
            without_added: false,
            refused: Vec::new(),
            failed: None,
            cut: None,
            has_restored: false,
        })
    }

    /// Returns how the tests that were added are run without the work of the run, where somebody wants to know and the
    /// checks that run them can be made once more.
    fn proof(&self, verification: &Verification, judges: &JudgesFound) -> Option<ProofRun> {
        let wanted = judges.to_prove.as_ref()?;
        let Some(StartTree::Known(start)) = &self.start.event.tree else { return None };
        let is_meant = |check: &&CheckRecord| {
            wanted.tests.iter().any(|test| test.checks.iter().any(|of| of.as_str() == check.state.as_str()))
        };
        let states = verification.checks.iter().filter(is_meant).map(|check| &check.state);
        let checks: Vec<Recheck> = states.filter_map(|state| self.rechecks_of(state)).flatten().collect();
        let start = AsideRequest {
            start: start.ids.clone(),
            ignored: start.ignored.clone(),
            put_back: wanted.work.clone(),
            hide: wanted.others.clone(),
            in_part: Vec::new(),
        };
        let proof = ProofRun { tests: wanted.tests.clone(), start, checks, passed: 0, is_answered: true };
        (!proof.checks.is_empty()).then_some(proof)
    }

    fn aside(&self, judges: &JudgesFound) -> Option<AsideRequest> {
        let Some(StartTree::Known(start)) = &self.start.event.tree else { return None };
        Some(AsideRequest {
            start: start.ids.clone(),
            ignored: start.ignored.clone(),
            put_back: judges.to_put_back.clone(),
            hide: judges.to_hide.clone(),
            in_part: judges.in_part.clone(),
        })
    }

    /// Takes whether the judges of the start are in their places.
    pub(super) fn set_aside(&mut self, placed: Result<(), Explanation>) {
        if let Some(pass) = self.pass.as_mut() {
            match placed {
                // A proof tells something about tests, and never fails a run.
                // It decides nothing.
                Err(_) if pass.proving.is_some() => pass.leave_proofs(),
                placed => pass.failed = placed.err().map(|why| why.to_string()),
            }
        }
    }

    /// Begins a closing pass.
    pub(super) fn begin_pass(&mut self, pass: GoingPass, events: &mut Vec<Event>) {
        let all = pass.left.iter().chain(&pass.with_judges);
        let checks = all.map(|check| check.name.clone()).collect();
        let reasons = pass.verification.reasons.clone();
        let aside = || pass.aside.iter();
        let put_back = aside().flat_map(AsideRequest::put_back).cloned().collect();
        let hidden = aside().flat_map(|aside| &aside.hide).cloned().collect();
        let to_prove =
            pass.proofs.iter().flat_map(|proof| &proof.tests).map(|test| test.path.clone()).collect();
        let start = ClosingPassStart { checks, reasons, put_back, hidden, to_prove };
        self.record(Event::ClosingPassStart(start), events);
        self.pass = Some(Box::new(pass));
    }

    /// Returns what a closing pass waits for.
    pub(super) fn pass_work(&mut self) -> Option<Waiting> {
        let is_late = self.pass.as_ref().and_then(|pass| self.out_of_time(&pass.end.final_state)).is_some();
        let is_cancelled = self.cancel.is_some();
        let pass = self.pass.as_mut()?;
        if is_late || is_cancelled {
            pass.leave_proofs();
        }
        // A pass without a check that is still to be made is over, and cannot be cut short.
        if pass.cut.is_none() && !(pass.left.is_empty() && pass.with_judges.is_empty()) {
            pass.cut = if is_cancelled { Some(Stop::Cancelled) } else { is_late.then_some(Stop::Deadline) };
        }
        let is_next_stage = pass.cut.is_none() && pass.failed.is_none() && pass.left.is_empty();
        // The judges are put aside only when all checks that are asked as things stand were asked.
        if let Some(aside) = is_next_stage.then(|| pass.next_aside()).flatten() {
            return Some(Waiting::Closing(PassWork::SetAside(aside)));
        }
        let next = pass.left.pop_front().filter(|_| pass.cut.is_none() && pass.failed.is_none());
        Some(if let Some(check) = next {
            let timeout = check.step.action.as_ref().and_then(Action::timeout);
            let end = self.end_of_action(timeout);
            let mut request = check.request.clone();
            request.setting.end = end;
            Waiting::Closing(PassWork::Check(Box::new(check), request))
        } else {
            debug_assert!(!pass.has_restored, "a pass ends when the tree is as it was");
            pass.has_restored = true;
            Waiting::Closing(PassWork::Restore(RestoreRequest { tree: pass.tree.clone() }))
        })
    }

    /// Takes the end of a check of the pass.
    pub(super) fn rechecked(&mut self, check: Recheck, seen: &Observation, events: &mut Vec<Event>) {
        if self.pass.as_ref().is_some_and(|pass| pass.proving.is_some()) {
            self.tried(&check, seen, events);
            return;
        }
        if let Some(pass) = self.pass.as_mut() {
            pass.made.push(check.state.clone());
        }
        let stop = seen.stop.filter(|stop| match stop {
            // An own timeout is a verdict on the check; all others end the run.
            Stop::Timeout | Stop::IdleTimeout => false,
            Stop::LoopTimeout
            | Stop::Deadline
            | Stop::Cancelled
            | Stop::Budget
            | Stop::Missing
            | Stop::Unavailable
            | Stop::Quota
            | Stop::NotRecorded => true,
        });
        if let (Some(stop), Some(pass)) = (stop, self.pass.as_mut()) {
            pass.cut = Some(stop);
            return;
        }
        let judged = self.judged_again(&check, seen);
        let passed = check.step.observes(&judged.verdict) == Observes::Passing;
        let output = one_line(last_line(seen), 300);
        let refusal = (!passed).then(|| self.refusal(&check, &judged.verdict));
        let is_excused = refusal == Some(Refusal::Excused);
        let event = ClosingPassCheck {
            state: check.state.clone(),
            check: check.name.clone(),
            without_added: self.pass.as_ref().is_some_and(|pass| pass.without_added),
            made_again: refusal == Some(Refusal::MadeAgain),
            action: one_line(&check.request.text, 2000),
            verdict: if is_excused { Verdict::quarantined() } else { judged.verdict },
            passed,
            exit_code: seen.exit_code,
            duration_ms: millis(seen.duration),
            details: judged.details,
            stdout: seen.stdout.shortened(TAIL).as_str().to_owned(),
            stderr: seen.stderr.shortened(TAIL).as_str().to_owned(),
        };
        let verdict = event.verdict.clone();
        let said = format!("{} says {verdict}", check.name);
        let said = if output.is_empty() { said } else { format!("{said}: {output}") };
        self.record(Event::ClosingPassCheck(Box::new(event)), events);
        if let Some(refusal) = refusal {
            self.said_no(check, refusal, said);
        }
    }

    /// Returns what it means that a check of the pass failed, which is what it means in the loop: one that wavers is made
    /// again, and one in quarantine is excused.
    fn refusal(&self, check: &Recheck, verdict: &Verdict) -> Refusal {
        // Of the checks of a loop inside, this run knows no history.
        let is_own = check.state == check.step.name;
        let before = self.pass.as_ref().map_or(0, |pass| pass.attempts_before(&check.name));
        if is_own && self.is_made_again(&check.step, verdict, before) {
            Refusal::MadeAgain
        } else if is_own && self.excuse(&check.step, verdict).is_some() {
            Refusal::Excused
        } else {
            Refusal::Counts
        }
    }

    /// Takes that a check of the pass failed.
    fn said_no(&mut self, check: Recheck, refusal: Refusal, said: String) {
        let Some(pass) = self.pass.as_mut() else { return };
        match refusal {
            Refusal::MadeAgain => {
                let before = pass.attempts_before(&check.name);
                pass.made_again.insert(check.name.clone(), before + 1);
                pass.left.push_front(check);
            }
            Refusal::Excused => pass.excused.push(check.state),
            Refusal::Counts => pass.refused.push(RefusedCheck { check, said }),
        }
    }

    /// Takes the end of a check that was made without the work of the run.
    fn tried(&mut self, check: &Recheck, seen: &Observation, events: &mut Vec<Event>) {
        let judged = self.judged_again(check, seen);
        // A check that was ended from outside proves neither.
        let passed = seen.stop.is_none() && check.step.observes(&judged.verdict) == Observes::Passing;
        let Some(proof) = self.pass.as_mut().and_then(|pass| pass.proving.as_mut()) else { return };
        proof.passed += usize::from(passed);
        proof.is_answered &= seen.stop.is_none();
        let event = ClosingPassProof {
            tests: proof.tests.iter().flat_map(AddedTest::names).collect(),
            check: check.name.clone(),
            verdict: judged.verdict,
            passed,
            exit_code: seen.exit_code,
            duration_ms: millis(seen.duration),
        };
        self.record(Event::ClosingPassProof(event), events);
    }

    pub(super) fn judged_again(&self, check: &Recheck, seen: &Observation) -> Judged {
        let failed =
            |verdict: Verdict| Judged { verdict, details: Map::new(), memory: None, warnings: Vec::new() };
        if let Some(verdict) = unjudged_verdict(seen) {
            return failed(verdict);
        }
        let Some(evaluate) = &check.step.evaluate else { return failed(Verdict::error()) };
        let result = StateResult { state: check.step.name.clone(), seen: seen.clone(), verdict: None };
        let scope = self.scope_of_check(&check.step, &result);
        let judging = Judging {
            action: Some(&check.request.text),
            memory: check.memory.as_ref(),
            ..Judging::of_end(seen, &scope)
        };
        evaluate.judge(judging).unwrap_or_else(|error| Judged::error(error.to_string()))
    }

    /// Ends a closing pass, after which the tree is as it was before, but for what is named.
    pub(super) fn end_pass(&mut self, restored: Result<RestoredTree, Explanation>, events: &mut Vec<Event>) {
        let Some(pass) = self.pass.take() else { return };
        let GoingPass {
            mut end, mut verification, cut, refused, failed, made, excused, proves_nothing, ..
        } = *pass;
        let (RestoredTree { put_back, replaced, written }, unknown) = match restored {
            Ok(restored) => (restored, None),
            Err(why) => (RestoredTree::default(), Some(why)),
        };
        // A check that says no says it whatever judged it; a yes of other judges confirms nothing.
        let others = replaced.first().map(|path| {
            format!("`{path}` was not what was put there when the checks had been made once more")
        });
        let others = others.or_else(|| {
            written.map(|path| {
                format!("`{path}` was written to while the checks were made once more, beside a process that an action had left running")
            })
        });
        let failed = failed.or_else(|| others.filter(|_| refused.is_empty()));
        let result = match (cut, refused.is_empty() && excused.is_empty()) {
            (Some(_), _) => PassResult::CutShort,
            (None, _) if failed.is_some() => PassResult::NotMade,
            (None, true) => PassResult::Confirmed,
            (None, false) => PassResult::NotConfirmed,
        };
        self.record(
            Event::ClosingPassEnd(ClosingPassEnd {
                result,
                put_back,
                failed: failed.clone(),
                unknown: unknown.as_ref().map(ToString::to_string),
            }),
            events,
        );
        if let Some(stop) = cut {
            self.cut_off(stop, &end.final_state, events);
            // What cuts a pass short decides the end of the run; the pass is made again when it
            // goes on.
            return;
        }
        end.duration_ms = millis(self.now);
        if failed.is_none() {
            let states: Vec<StateName> = refused.iter().map(|refused| refused.check.state.clone()).collect();
            verification.after_pass(&made, &states);
            verification.excuse(&excused);
        }
        verification.proves_nothing = proves_nothing;
        if let Some(why) = unknown {
            verification.reasons.push(Reason::TreeUnknown);
            verification.unknown = Some(why.into());
        }
        let end = match refused.first() {
            Some(refused) => not_confirmed(end, verification, self.run.not_carried(), &refused.said),
            None => self.with(end, verification),
        };
        self.record(Event::LoopComplete(self.unless_clean(end)), events);
    }

    /// The time of the run, or of its job, was over in the middle of the pass.
    fn cut_off(&mut self, stop: Stop, state: &StateName, events: &mut Vec<Event>) {
        if self.cancel.is_some() {
            // What is decided next is that the run was asked to end.
            return;
        }
        let late = self.out_of_time(state);
        let event = match (stop, late) {
            (Stop::LoopTimeout, _) => {
                Event::LoopTimeout { state: state.clone(), elapsed_ms: millis(self.now) }
            }
            (_, Some(event)) => event,
            (_, None) => self.hand_off(state),
        };
        self.record(event, events);
    }
}

/// A success that the check of the commit itself does not confirm.
fn not_confirmed(
    mut end: LoopComplete,
    verification: Verification,
    not_carried: &[String],
    said: &str,
) -> LoopComplete {
    end.verified = false;
    end.outcome = Outcome::Failure;
    end.terminated_by = TerminatedBy::NotConfirmed;
    end.exit_code = end.outcome.exit_code(None);
    end.reason = if not_carried.is_empty() {
        format!("the commit's own check says no: {said}")
    } else {
        // The commit is not to blame where a part of the work is missing.
        let missing = listed_in_part(not_carried);
        format!(
            "a check that was made once more says no: {said}; not carried over from where the run was left: {missing}"
        )
    };
    end.verification = Some(Box::new(verification));
    end
}

impl Verification {
    /// Takes that these checks failed in the closing pass, and that people have excused it.
    fn excuse(&mut self, excused: &[StateName]) {
        for check in self.checks.iter_mut().filter(|check| excused.contains(&check.state)) {
            (check.verdict, check.confirmed) = (Verdict::quarantined(), Confirmed::No);
        }
        if !excused.is_empty() {
            self.reasons.push(Reason::Quarantined);
            // What was not confirmed with the judges of the start does not vouch for those of the end.
            if self.judges.state == JudgesStanding::Confirmed {
                self.judges.state = JudgesStanding::Changed;
                self.reasons.push(Reason::JudgesChanged);
            }
        }
    }

    /// Takes what the closing pass came to: every verdict that was stale is confirmed now, but for those of these states.
    fn after_pass(&mut self, made: &[StateName], refused: &[StateName]) {
        let with_judges = self.reasons.contains(&Reason::JudgesChanged);
        // Whatever came of them, these two reasons are answered now.
        self.reasons.retain(|reason| !matches!(reason, Reason::Stale | Reason::JudgesChanged));
        if !refused.is_empty() {
            self.reasons.push(Reason::NotConfirmed);
        } else if with_judges {
            self.judges.state = JudgesStanding::Confirmed;
            let asked =
                // A check that the pass did not ask keeps what it had.
                |check: &&mut CheckRecord| check.confirmed == Confirmed::InRun && made.contains(&check.state);
            for check in self.checks.iter_mut().filter(asked) {
                check.confirmed = Confirmed::ClosingPass;
            }
        }
        for stale in std::mem::take(&mut self.stale) {
            let record = self.checks.iter_mut().find(|check| check.state == stale.state);
            match record {
                Some(record) if !refused.contains(&stale.state) => record.confirmed = Confirmed::ClosingPass,
                Some(_) | None => self.stale.push(stale),
            }
        }
    }
}

/// Returns what the evaluator of a step asks for.
fn expressions(step: &Step) -> impl Iterator<Item = &Expression> {
    let templates = step.evaluate.iter().flat_map(|evaluate| evaluate.templates());
    templates.flat_map(|(_, template)| template.expressions())
}

/// Tells whether a value is another one after the visit in which it was asked for: what there was then is not kept.
fn is_about_visit(expression: &Expression) -> bool {
    match expression.namespace {
        Namespace::Prev | Namespace::Result | Namespace::State => true,
        Namespace::Context
        | Namespace::Env
        | Namespace::Captured
        | Namespace::Loop
        | Namespace::Param
        | Namespace::Messages
        | Namespace::Criteria
        | Namespace::Board => false,
    }
}

/// Returns the environment of a command, without what only tells it which task of the board it is about.
fn env_beside_task(setting: &ActionSetting) -> impl Iterator<Item = (&String, &Template)> {
    let is_of_board = |value: &Template| {
        value.expressions().next().is_some()
            && value.expressions().all(|expression| expression.namespace == Namespace::Board)
    };
    setting.env.iter().filter(move |(_, value)| !is_of_board(value))
}

/// Tells whether the directory and the environment of a command are the same whenever they are asked for in a run.
fn has_lasting_surroundings(step: &Step) -> bool {
    let Some(Action::Shell(shell)) = &step.action else { return true };
    let templates = shell.setting.cwd.iter().chain(shell.setting.env.iter().map(|(_, value)| value));
    templates.flat_map(Template::expressions).all(|expression| match expression.namespace {
        Namespace::Context | Namespace::Env | Namespace::Param => true,
        Namespace::Prev
        | Namespace::Result
        | Namespace::State
        | Namespace::Captured
        | Namespace::Loop
        | Namespace::Messages
        | Namespace::Criteria
        | Namespace::Board => false,
    })
}

/// Tells whether the evaluator of a step asks for more than what the step itself does, and what its author wrote.
fn is_judged_by_values(step: &Step) -> bool {
    let is_of_step = |name: &str| {
        step.name.as_str() == name || step.capture.as_ref().is_some_and(|capture| capture.as_str() == name)
    };
    let is_own = |expression: &Expression| match expression.namespace {
        Namespace::Captured => {
            matches!(expression.path.as_slice(), [Segment::Key(name), ..] if is_of_step(name))
        }
        Namespace::Param => step.params.values().all(|value| value.as_template().is_none()),
        Namespace::Context
        | Namespace::Env
        | Namespace::Prev
        | Namespace::Result
        | Namespace::State
        | Namespace::Loop
        | Namespace::Messages
        | Namespace::Criteria
        | Namespace::Board => false,
    };
    !expressions(step).all(is_own)
}

fn is_stale(verification: &Verification, state: &StateName) -> bool {
    verification.stale.iter().any(|stale| stale.state == *state)
}

/// Returns the last line that says something.
fn last_line(seen: &Observation) -> &str {
    let of = |text: &str| text.trim_end().lines().next_back().map_or(0, str::len);
    let (out, err) = (seen.stdout.as_str().trim_end(), seen.stderr.as_str().trim_end());
    // Tools complain on their error output; only without that is the last line of the other one
    // told.
    let text = if err.is_empty() { out } else { err };
    &text[text.len() - of(text)..]
}

/// Says in a few words what a pass is made for.
pub fn words(start: &ClosingPassStart) -> String {
    let with = match start.put_back.len() + start.hidden.len() {
        0 => "on the tree that the run ended on".to_owned(),
        count => format!("with the judges of the start ({})", plural(count as u64, "file")),
    };
    let again = format!("{} once more, {with}", listed_in_part(&start.checks));
    let proof = format!("the tests that were added, without the work ({})", listed_in_part(&start.to_prove));
    match (start.checks.is_empty(), start.to_prove.is_empty()) {
        (true, false) => format!("closing pass: {proof}"),
        (_, true) => format!("closing pass: {again}"),
        (false, false) => format!("closing pass: {again}; {proof}"),
    }
}
