//! Proves what always holds: walks every way that the model check knows, with as much memory as a sentence asks for, and finds
//! the shortest way that breaks it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::always::{Always, RunFacts, RunMoment, SentenceClaim};
use crate::base::name::StateName;
use crate::evaluate::verdict::Verdict;
use crate::machine::explore::{BOUND, Passage, PassageDetour, Situation, passages, restarts};
use crate::machine::routing::{Departure, Move, moves};
use crate::machine::{Action, Machine, Step, StepId, Target};

/// The result of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Proof {
    /// It holds on every way.
    Proven,
    /// It does not hold on this one.
    Broken(Vec<WalkStep>),
    /// The model cannot tell, and why.
    Unknown(String),
}

/// A step of a walk through the model.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkStep {
    /// The state.
    pub state: StateName,
    /// How it is left; nothing for the last one.
    pub departure: Option<Departure>,
}

/// Looks whether a sentence holds on every way of a machine.
pub fn prove(always: &Always, machine: &Machine) -> Proof {
    if let Some(proof) = at_once(&always.claim, machine) {
        return proof;
    }
    let counts = matches!(
        always.claim,
        SentenceClaim::Visits(..) | SentenceClaim::AgentCalls(_) | SentenceClaim::ModelCalls(_)
    );
    walked(&always.claim, machine, counts)
}

/// Looks once more, on the ways alone that the caps on passes and steps leave: there are more situations to tell apart.
pub fn prove_in_passes(always: &Always, machine: &Machine) -> Proof {
    at_once(&always.claim, machine).unwrap_or_else(|| walked(&always.claim, machine, true))
}

fn walked(claim: &SentenceClaim, machine: &Machine, counts: bool) -> Proof {
    let all: Vec<Vec<Move>> = machine.steps().map(|(id, _)| moves(machine, id)).collect();
    ProofWalk { machine, claim, all, counts }.run()
}

/// Answers what follows from the settings of a loop alone, or cannot be known.
fn at_once(claim: &SentenceClaim, machine: &Machine) -> Option<Proof> {
    let budget = machine.budget;
    match claim {
        SentenceClaim::Cost(_) => {
            let why = "what a call costs is known when it was made; it is looked at in every case";
            Some(Proof::Unknown(why.to_owned()))
        }
        SentenceClaim::AgentCalls(most) | SentenceClaim::ModelCalls(most) => {
            // The budget counts calls of agents and of judges together, so it bounds either.
            if budget.calls.is_some_and(|calls| calls <= *most) {
                return Some(Proof::Proven);
            }
            let inner = machine.steps().find(|(_, step)| matches!(step.action, Some(Action::SubLoop(_))));
            inner.map(|(_, step)| {
                Proof::Unknown(format!("`{}` runs another loop, which may ask as well", step.name))
            })
        }
        SentenceClaim::Enter(..)
        | SentenceClaim::Leave(..)
        | SentenceClaim::Never(_)
        | SentenceClaim::Before(..)
        | SentenceClaim::Visits(..) => None,
    }
}

/// A place in the model, with what the sentence has to remember.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct WalkNode {
    situation: Situation,
    /// What the states said that the sentence asks about.
    verdicts: BTreeMap<StateName, Verdict>,
    /// How often the states were entered that it names, as far as it matters.
    visits: BTreeMap<StateName, u32>,
    agent_calls: u32,
    judge_calls: u32,
    /// The pass, and the states of it, where passes are counted.
    pass: Option<ProofPass>,
}

/// How far a run is, where it is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ProofPass {
    iteration: u32,
    visited: BTreeSet<StepId>,
    steps: u32,
    last: Option<StepId>,
    attempt: u32,
}

struct ProofWalk<'w> {
    machine: &'w Machine,
    claim: &'w SentenceClaim,
    all: Vec<Vec<Move>>,
    counts: bool,
}

/// How a walk came to a node.
type WalkArrival = Option<(usize, Option<Departure>)>;

impl ProofWalk<'_> {
    fn run(&self) -> Proof {
        let mut nodes: Vec<(WalkNode, WalkArrival)> = Vec::new();
        let mut known: BTreeMap<WalkNode, usize> = BTreeMap::new();
        let mut open = VecDeque::new();
        let start = Situation { at: self.machine.initial, verified: false, capped: false };
        let begin = WalkNode {
            situation: start,
            verdicts: BTreeMap::new(),
            visits: BTreeMap::new(),
            agent_calls: 0,
            judge_calls: 0,
            pass: self.counts.then(|| ProofPass { iteration: 1, ..ProofPass::default() }),
        };
        let mut next = vec![(begin, None)];
        loop {
            for (node, came) in next.drain(..) {
                let Some(node) = self.enter(node) else { continue };
                let index = nodes.len();
                if self.is_broken(self.entered(&node), &node) {
                    nodes.push((node, came));
                    return Proof::Broken(self.way(&nodes, index));
                }
                if known.contains_key(&node) {
                    continue;
                }
                if index >= BOUND {
                    return Proof::Unknown(format!("there are more than {BOUND} situations"));
                }
                known.insert(node.clone(), index);
                nodes.push((node, came));
                open.push_back(index);
            }
            let Some(here) = open.pop_front() else { return Proof::Proven };
            let node = nodes[here].0.clone();
            match self.leave(&node) {
                Ok(left) => next.extend(left.into_iter().map(|(node, by)| (node, Some((here, by))))),
                Err(departure) => {
                    let mut way = self.way(&nodes, here);
                    if let Some(last) = way.last_mut() {
                        last.departure = Some(departure);
                    }
                    return Proof::Broken(way);
                }
            }
        }
    }

    fn entered(&self, node: &WalkNode) -> RunMoment<'_> {
        RunMoment::Enter(self.machine.name_of(node.situation.at))
    }

    fn is_broken(&self, moment: RunMoment<'_>, node: &WalkNode) -> bool {
        let known = RunFacts {
            verified: node.situation.verified,
            verdicts: node.verdicts.clone(),
            visits: node.visits.clone(),
            agent_calls: node.agent_calls,
            judge_calls: node.judge_calls,
            // Sentences about cost are answered before any walk.
            cost: 0.0,
        };
        self.claim.is_broken(moment, &known)
    }

    /// Counts an entry; none where a cap keeps the run from it.
    fn enter(&self, mut node: WalkNode) -> Option<WalkNode> {
        let name = self.machine.name_of(node.situation.at);
        if let Target::Step(id) = node.situation.at {
            if let Some(pass) = &mut node.pass {
                count(pass, id, self.machine, node.situation.capped)?;
            }
            let step = self.machine.step(id);
            let (agents, judges) = calls(step);
            if self.counts {
                // One call above the bound breaks the sentence already; to tell more apart would make the situations endless.
                node.agent_calls = node.agent_calls.saturating_add(agents).min(self.most().saturating_add(1));
                node.judge_calls = node.judge_calls.saturating_add(judges).min(self.most().saturating_add(1));
            }
        }
        if let Some(most) = self.remembered(name) {
            let visits = node.visits.entry(name.clone()).or_default();
            *visits = visits.saturating_add(1).min(most);
        }
        Some(node)
    }

    /// Returns the number that the sentence counts to.
    fn most(&self) -> u32 {
        match self.claim {
            SentenceClaim::Visits(_, most)
            | SentenceClaim::AgentCalls(most)
            | SentenceClaim::ModelCalls(most) => *most,
            SentenceClaim::Enter(..)
            | SentenceClaim::Leave(..)
            | SentenceClaim::Never(_)
            | SentenceClaim::Before(..)
            | SentenceClaim::Cost(_) => 0,
        }
    }

    /// Returns how many visits of a state have to be told apart.
    fn remembered(&self, name: &StateName) -> Option<u32> {
        match self.claim {
            SentenceClaim::Before(first, _) if first == name => Some(1),
            SentenceClaim::Visits(state, most) if state == name => Some(most.saturating_add(1)),
            SentenceClaim::Before(..)
            | SentenceClaim::Visits(..)
            | SentenceClaim::Enter(..)
            | SentenceClaim::Leave(..)
            | SentenceClaim::Never(_)
            | SentenceClaim::AgentCalls(_)
            | SentenceClaim::ModelCalls(_)
            | SentenceClaim::Cost(_) => None,
        }
    }

    /// Returns every node that comes next, or the departure that breaks the sentence.
    fn leave(&self, node: &WalkNode) -> Result<Vec<(WalkNode, Option<Departure>)>, Departure> {
        let mut next = Vec::new();
        let mut go = |node: &WalkNode, to: Situation, by: Option<Departure>| {
            next.push((WalkNode { situation: to, ..node.clone() }, by));
        };
        match node.situation.at {
            Target::End(id) => {
                for (to, _) in restarts(self.machine, id, node.situation) {
                    let mut again = node.clone();
                    if let Some(pass) = &mut again.pass {
                        *pass = ProofPass { iteration: 1, ..ProofPass::default() };
                    }
                    go(&again, to, None);
                }
            }
            Target::Step(id) => {
                let step = self.machine.step(id);
                for passage in passages(self.machine, id, &self.all[index(self.machine, id)], node.situation)
                {
                    if !self.may_pass(&passage, step, node) {
                        continue;
                    }
                    let departure = passage.by.departure.clone();
                    let mut left = node.clone();
                    // Only what the sentence asks about: each further verdict that is remembered multiplies the situations.
                    if self.claim.judged().contains(&&step.name) {
                        left.verdicts.insert(step.name.clone(), departure.verdict.clone());
                    }
                    left.situation.verified = passage.to.verified;
                    if self.is_broken(RunMoment::Leave(&step.name), &left) {
                        return Err(departure);
                    }
                    go(&left, passage.to, Some(departure));
                }
                // A run can be killed in any state, and goes on there when it is resumed.
                if let Some(at) = self.machine.on_resume.filter(|_| !node.situation.capped) {
                    go(node, Situation { at, ..node.situation }, None);
                }
            }
        }
        Ok(next)
    }

    /// Tells whether a way can be taken with these counts.
    fn may_pass(&self, passage: &Passage<'_>, step: &Step, node: &WalkNode) -> bool {
        let Some(pass) = &node.pass else { return true };
        match passage.detour {
            Some(PassageDetour::Cap("max_iterations")) => {
                pass.iteration >= self.machine.limits.iterations.limit
            }
            Some(PassageDetour::Cap(_)) => {
                self.machine.limits.steps.is_none_or(|cap| pass.steps >= cap.limit)
            }
            // A stall depends on trees and outputs, of which the model knows nothing: it may come at any time.
            Some(PassageDetour::Stall) => true,
            None => {
                let Some(retry) = &step.retry else { return true };
                let usual = passage.by.way.as_ref().map(|way| way.to);
                let is_again = usual.is_some_and(|to| self.machine.name_of(to) == &step.name);
                // The way of `on_retry_exhausted` opens exactly when the tries are used up, and the usual way back closes.
                !is_again || passage.by.is_exhausted == (pass.attempt > retry.max)
            }
        }
    }

    /// Returns the way to a node.
    fn way(&self, nodes: &[(WalkNode, WalkArrival)], to: usize) -> Vec<WalkStep> {
        let mut way = Vec::new();
        let (mut at, mut departure) = (to, None);
        loop {
            let (node, came) = &nodes[at];
            way.push(WalkStep { state: self.machine.name_of(node.situation.at).clone(), departure });
            let Some((before, by)) = came else { break };
            (at, departure) = (*before, by.clone());
        }
        way.reverse();
        way
    }
}

fn index(machine: &Machine, id: StepId) -> usize {
    machine.steps().position(|(known, _)| known == id).unwrap_or(0)
}

/// Counts an entry of a step as the engine does; none where a cap is met.
fn count(pass: &mut ProofPass, id: StepId, machine: &Machine, is_capped: bool) -> Option<()> {
    let limits = machine.limits;
    if pass.visited.contains(&id) {
        pass.iteration += 1;
        pass.visited.clear();
    }
    pass.visited.insert(id);
    pass.steps += 1;
    pass.attempt = if pass.last == Some(id) { pass.attempt + 1 } else { 1 };
    pass.last = Some(id);
    let fits =
        pass.iteration <= limits.iterations.limit && limits.steps.is_none_or(|cap| pass.steps <= cap.limit);
    if limits.steps.is_none() {
        // Nothing depends on it.
        pass.steps = 0;
    }
    // Nor on this: tries count only where a state has `max_retries`.
    if machine.step(id).retry.is_none() {
        (pass.attempt, pass.last) = (0, None);
    }
    // The handler of a cap runs although the cap was met.
    (fits || is_capped).then_some(())
}

/// Returns how often a step asks agents and judges at a visit.
fn calls(step: &Step) -> (u32, u32) {
    let agents = match &step.action {
        Some(Action::Prompt(_)) => 1,
        Some(Action::Learning(learning)) => {
            // As many as there may be: a proof has to hold also where nothing is known yet.
            let targets = u32::try_from(learning.targets.len()).unwrap_or(u32::MAX).max(1);
            targets.saturating_mul(learning.tries)
        }
        Some(
            Action::Shell(_) | Action::SubLoop(_) | Action::Tool(_) | Action::Board(_) | Action::Approval(_),
        )
        | None => 0,
    };
    (agents, u32::from(step.evaluate.as_ref().is_some_and(|evaluate| evaluate.asks())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::decode::Decode as _;
    use crate::base::diagnostic::Diagnostics;
    use crate::base::node::FileId;
    use crate::base::path::DocPath;
    use crate::definition::{load, yaml};
    use crate::machine::compile::compile;

    const LOOP: &str = "\
name: demo
initial: check
max_iterations: 3
states:
  check: { action: test, on_yes: deploy, on_no: fix }
  fix: { action: /fix, next: check }
  deploy: { action: ship, on_yes: done, on_no: failed }
  done: { terminal: true }
  failed: { terminal: true, outcome: failure }
";

    fn proof(text: &str, sentence: &str) -> Proof {
        let loaded = load::decode("demo.yaml", text, String::new()).unwrap();
        let machine = compile(&loaded.definition).0.unwrap();
        let mut found = Diagnostics::default();
        let node = yaml::parse(&format!("a: '{sentence}'"), FileId(0), &mut found).unwrap();
        let always = Always::decode(node.get("a").unwrap(), &DocPath::root(), &mut found).unwrap();
        prove(&always, &machine)
    }

    #[track_caller]
    fn broken(sentence: &str, way: &str) {
        let Proof::Broken(steps) = proof(LOOP, sentence) else {
            panic!("{sentence}: {:?}", proof(LOOP, sentence))
        };
        let shown = |step: &WalkStep| match &step.departure {
            Some(departure) => format!("{} ({})", step.state, departure.verdict),
            None => step.state.to_string(),
        };
        assert_eq!(steps.iter().map(shown).collect::<Vec<_>>().join(" "), way, "{sentence}");
    }

    #[test]
    fn what_holds_on_every_way_is_proven() {
        for sentence in [
            "enter deploy implies verified",
            "enter deploy implies verdict of check is yes",
            "check before fix",
            "enter fix implies not verified",
            "agent calls <= 3",
            "visits check <= 3",
            "visits deploy <= 1",
        ] {
            assert_eq!(proof(LOOP, sentence), Proof::Proven, "{sentence}");
        }
    }

    #[test]
    fn the_shortest_way_that_breaks_a_sentence_is_found() {
        broken("never fix", "check (no) fix");
        broken("fix before deploy", "check (yes) deploy");
        broken("agent calls <= 1", "check (no) fix (yes) check (no) fix");
        broken("visits check <= 2", "check (no) fix (yes) check (no) fix (yes) check");
        broken("leave deploy implies verified", "check (yes) deploy (no)");
    }

    #[test]
    fn what_the_model_cannot_know_is_said() {
        assert!(matches!(proof(LOOP, "cost <= 1"), Proof::Unknown(_)));
        let capped = LOOP.replace("max_iterations: 3", "max_iterations: 9\nbudget: { llm_calls: 2 }");
        assert_eq!(proof(&capped, "model calls <= 2"), Proof::Proven);
    }
}
