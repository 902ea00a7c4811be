//! Which trees the verdicts of a run fell on, and whether its end stands on them.

use super::Engine;
use super::changes::{Changes, Measured, SeenTree};
use super::event::{Event, LoopComplete};
use super::outcome::{Outcome, TerminatedBy};
use super::request::{ActionRequest, CheckPurpose, JudgingRequest, ObservingCommand, Setting};
use super::run::{Deciding, Phase};
use super::verification::{
    FinalTree, Ground, Grounding, JudgesRecord, MOST_NAMED, Observers, VerdictTree, Verification,
};
use super::waiting::{FoundTree, LookFor, PassWork, Waiting, WorkRequest};
use crate::base::name::StateName;
use crate::base::object::ObjectId;
use crate::evaluate::verdict::Observes;
use crate::judges::found_judges::JudgesFound;
use crate::machine::known_checks::writes;
use crate::machine::observations::{self, observes_tree};
use crate::machine::{Action, OnChange, Step};

impl From<SeenTree> for FinalTree {
    fn from(tree: SeenTree) -> Self {
        match tree {
            SeenTree::Known(ids) => Self::Known(ids),
            SeenTree::Unknown { unknown } => Self::Unknown(unknown),
        }
    }
}

impl ObservingCommand {
    fn of(state: &StateName, ran: &ActionRequest) -> Self {
        let Setting { cwd, env, .. } = &ran.setting;
        let (text, shell) = (ran.text.clone(), ran.shell.clone());
        Self { state: state.clone(), text, cwd: cwd.clone(), env: env.clone(), shell }
    }
}

impl Engine<'_> {
    /// Returns what has to be known to tell the judges of the run.
    pub fn judges_asked_for(&self) -> JudgingRequest {
        let observing = self.machine.steps().map(|(_, step)| step).filter(|step| observes_tree(step));
        let own = observing.filter_map(|step| self.observing_command(step));
        // Of a loop that was run, the checks that passed are known by what they ran.
        let inner =
            self.inner.iter().flat_map(|(state, checks)| checks.iter().map(move |check| (state, check)));
        let inner = inner.map(|(state, check)| ObservingCommand::of(state, &check.request));
        let source = &self.start.event.source;
        JudgingRequest {
            declared: self.machine.judges.clone(),
            commands: own.chain(inner).collect(),
            loop_files: std::iter::once(&source.file).chain(&source.others).cloned().collect(),
            chooses_loops: self.machine.steps().any(|(_, step)| chooses_loop(step)),
        }
    }

    /// Returns the command of a state that observes, as it ran last, or else as far as it is known.
    fn observing_command(&self, step: &Step) -> Option<ObservingCommand> {
        let Some(Action::Shell(shell)) = &step.action else { return None };
        let ran = self.requests.get(&step.name).cloned().or_else(|| self.request_again(step));
        if let Some(ran) = ran {
            return Some(ObservingCommand::of(&step.name, &ran));
        }
        Some(ObservingCommand {
            state: step.name.clone(),
            text: shell.text.source().to_owned(),
            cwd: shell.setting.cwd.as_ref().and_then(|cwd| Some(cwd.as_literal()?.into_owned())),
            env: Vec::new(),
            shell: shell.shell.clone(),
        })
    }

    /// Returns the state whose verdict has to be given its tree before this event: it passed, and what comes next may be
    /// an action on the way to a success.
    pub(super) fn look_before(&mut self, event: &Event) -> Option<StateName> {
        let (Event::Route { to, .. }, Phase::Deciding(Deciding::Leave(id, _))) = (event, self.run.phase())
        else {
            return None;
        };
        let id = *id;
        let step = self.machine.step(id);
        let is_pending = self
            .run
            .verdicts()
            .get(&step.name)
            .is_some_and(|last| last.observes == Observes::Passing && last.tree == VerdictTree::Standing);
        if !is_pending || !self.start.sees_tree() || !observes_tree(step) {
            return None;
        }
        let to = self.machine.find(to)?;
        let machine = self.machine;
        let matters = *self.matters.entry((id, to)).or_insert_with(|| observations::matters(machine, id, to));
        matters.then(|| step.name.clone())
    }

    /// Returns how the tree has to be looked at before a check begins, where it is not known yet which one it finds: the check
    /// writes files itself, or an action has come that may have changed what it is judged by.
    pub(super) fn look_before_check(&mut self, work: &WorkRequest) -> Option<LookFor> {
        let Phase::Deciding(Deciding::Act(id)) = self.run.phase() else { return None };
        let step = self.machine.step(*id);
        let request = match work {
            WorkRequest::Action(request) if step.is_check => request,
            WorkRequest::Action(_)
            | WorkRequest::Prompt(_)
            | WorkRequest::Tool(_)
            | WorkRequest::Approval(_)
            | WorkRequest::Learning(_)
            | WorkRequest::SubLoop(..) => {
                self.has_acted = true;
                return None;
            }
        };
        if !self.start.sees_tree() || self.cancel.is_some() || self.found.contains_key(&step.name) {
            return None;
        }
        let state = step.name.clone();
        if writes(&request.text) {
            return Some(LookFor::Check(state));
        }
        self.has_acted.then(|| LookFor::Judges(state, request.clone()))
    }

    /// Returns what the check is made for that goes on, if one does.
    pub fn check_purpose(&self) -> Option<CheckPurpose> {
        if matches!(self.waiting, Waiting::Closing(PassWork::Check(..))) {
            return Some(CheckPurpose::ClosingPass);
        }
        let acting = self.run.acting().map(|id| self.machine.step(id));
        let is_check = acting.is_some_and(|step| step.is_check) && self.start.sees_tree();
        is_check.then_some(CheckPurpose::State)
    }

    /// Takes that nobody knows which tree the check that goes on has found, and why.
    pub fn doubt_check(&mut self, unknown: String) {
        if let Some(id) = self.run.acting() {
            let state = self.machine.step(id).name.clone();
            self.found.insert(state, FoundTree::Seen(SeenTree::Unknown { unknown }));
        }
    }

    /// Returns the trees on which verdicts fell that count at the end.
    pub(super) fn seen_trees(&self) -> Vec<ObjectId> {
        let passing = self.grounds().filter(|ground| ground.last.observes == Observes::Passing);
        let mut trees: Vec<ObjectId> = Vec::new();
        for ground in passing {
            match &ground.last.tree {
                VerdictTree::Seen(ids) if !trees.contains(&ids.tree) => trees.push(ids.tree.clone()),
                VerdictTree::Seen(_)
                | VerdictTree::Standing
                | VerdictTree::Unseen(_)
                | VerdictTree::Passed
                | VerdictTree::Left => {}
            }
        }
        trees
    }

    /// Tells whether somebody may have changed the tree, where it is known, before this part of the run.
    pub fn is_tree_doubtful(&self) -> bool {
        self.run.is_tree_changed() || (self.run.is_tree_doubtful() && self.start.sees_tree())
    }

    /// Tells whether a verdict that passed may be about another tree than the one that there is now: an action or a pause
    /// came after it, whether or not the tree was seen before.
    pub(super) fn rests_on_earlier_tree(&self) -> bool {
        self.grounds().any(|ground| {
            ground.last.observes == Observes::Passing && ground.last.tree != VerdictTree::Standing
        })
    }

    /// Returns what is known at the end of a tree that was unknown at the start. Nothing is said about it, unless a verdict that
    /// counts fell elsewhere: nobody knows whether what was checked there is what has come here.
    pub(super) fn unknown_since_start(&self, why: &str) -> FinalTree {
        let mut counting = self.grounds().filter(|ground| ground.is_check || ground.is_last);
        let fell_elsewhere = counting
            .any(|ground| ground.last.observes == Observes::Passing && ground.last.tree == VerdictTree::Left);
        if fell_elsewhere { FinalTree::Unknown(why.to_owned()) } else { FinalTree::None }
    }

    /// Tells whether a success of the run may stand: something passed last, or failed and is excused.
    pub(super) fn may_stand(&self) -> bool {
        self.run.is_verified() || self.run.is_excused()
    }

    /// Returns the verdicts that the end of the run may rest on.
    pub(super) fn grounds(&self) -> impl Iterator<Item = Ground<'_>> {
        let last = self.run.last_observed();
        self.run.verdicts().iter().map(move |(state, verdict)| Ground {
            state,
            last: verdict,
            is_check: self.step_of(state).is_some_and(is_check),
            is_last: last == Some(state),
        })
    }

    /// Returns who has said that the work is good.
    pub(super) fn observers(&self) -> Observers {
        let passing = self.grounds().filter(|ground| ground.last.observes == Observes::Passing);
        let passed: Vec<StateName> = passing.map(|ground| ground.state.clone()).collect();
        let is_of_agent = |state: &StateName| {
            self.step_of(state).is_some_and(|step| step.action.as_ref().is_some_and(Action::asks_agent))
        };
        Observers { are_agents: !passed.is_empty() && passed.iter().all(is_of_agent), passed }
    }

    /// Returns the end that the run has come to, or another one where somebody wants it to end.
    pub(super) fn still_wanted(&self, end: LoopComplete) -> LoopComplete {
        let Event::LoopComplete(end) = self.unless_asked_to_end(Event::LoopComplete(end)) else {
            unreachable!("the end of a run stays an end")
        };
        end
    }

    /// Adds to the end of a run what it did to the tree, and ends it where its success stands on that tree.
    pub(super) fn measured(&mut self, end: LoopComplete, measured: Measured, events: &mut Vec<Event>) {
        let Measured { changes, since, judges } = measured;
        let tree = match &changes {
            Changes::Known(changes) => FinalTree::Known(changes.end.clone()),
            Changes::Unknown { unknown } => FinalTree::Unknown(unknown.clone()),
        };
        let end = end.on_tree(changes, self.start.event.on_change);
        self.conclude(end, &tree, Grounding { since, judges }, events);
    }

    /// Ends the run on a tree, or begins the closing pass that its end needs.
    pub(super) fn conclude(
        &mut self,
        end: LoopComplete,
        tree: &FinalTree,
        grounding: Grounding,
        events: &mut Vec<Event>,
    ) {
        let Grounding { since, judges } = grounding;
        let mut verification = Verification::of(self.grounds(), self.may_stand(), tree);
        for stale in &mut verification.stale {
            let Some(since) = since.iter().find(|since| stale.tree.as_ref() == Some(&since.tree)) else {
                continue;
            };
            stale.files = since.files.iter().take(MOST_NAMED).cloned().collect();
            stale.more = since.more + since.files.len().saturating_sub(MOST_NAMED) as u64;
        }
        match &judges {
            Some(found) => verification.judge(found, &self.observers(), self.machine.judges.rules.may),
            // Nobody looked.
            None => verification.judges = JudgesRecord::default(),
        }
        if let Some(how) = self.dirty_start().filter(|_| self.run.is_verified()) {
            verification.began_elsewhere(how);
        }
        let judges = judges.unwrap_or_else(JudgesFound::unchanged);
        let pass = match tree {
            FinalTree::Known(tree) => self.pass_for(&end, &verification, tree, &judges),
            FinalTree::None | FinalTree::Unknown(_) => None,
        };
        if let Some(pass) = pass {
            self.begin_pass(pass, events);
        } else {
            let end = self.with(end, verification);
            self.record(Event::LoopComplete(self.unless_clean(end)), events);
        }
    }

    /// Says how the run, as an item of a plan, did not begin on the tree of the plan.
    fn dirty_start(&self) -> Option<String> {
        let assignment = self.start.event.assignment.as_ref()?;
        self.start.event.tree.as_ref()?.departs_from(&assignment.differs)
    }

    /// Says what verified the end of a run, which may turn a success into a failure.
    pub(super) fn with(&self, mut end: LoopComplete, mut verification: Verification) -> LoopComplete {
        end.verified = verification.holds();
        let is_success = end.outcome == Outcome::Success;
        verification.spoils_success = verification.is_refuted()
            && (is_success || end.terminated_by == TerminatedBy::UncommittedChanges);
        if let Some(why) = verification.why().filter(|_| is_success) {
            let fails_on_change = self.start.event.on_change == OnChange::Fail;
            let is_unknown = verification.unknown.is_some();
            end.reason = format!("ended in `{}` unverified: {why}", end.final_state);
            if is_unknown && fails_on_change {
                end.terminated_by = TerminatedBy::UncommittedChanges;
            }
            let fails =
                verification.is_refuted() && (self.start.event.strict || (is_unknown && fails_on_change));
            end.unproven = fails && self.start.event.strict && end.terminated_by == TerminatedBy::Terminal;
            if fails {
                end.outcome = Outcome::Failure;
                end.exit_code = end.outcome.exit_code(end.signal);
            }
        }
        end.verification = Some(Box::new(verification));
        end
    }
}

/// Tells whether a step runs a loop whose name is known only when it runs.
fn chooses_loop(step: &Step) -> bool {
    matches!(&step.action, Some(Action::SubLoop(chosen)) if chosen.name.as_literal().is_none())
}

/// Tells whether what a step said has to hold at the end of a run: it is a check, or a loop with checks of its own.
fn is_check(step: &Step) -> bool {
    step.is_check || matches!(step.action, Some(Action::SubLoop(_)))
}
