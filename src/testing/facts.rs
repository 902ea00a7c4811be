//! Follows a run event by event, and asks the claims of `always` at every moment of it.

use indexmap::IndexMap;

use super::always::{Always, RunFacts, RunMoment, SentenceClaim};
use crate::base::name::StateName;
use crate::engine::event::{Event, Stamped};
use crate::engine::past::Past;
use crate::engine::run::placed::Placement;
use crate::evaluate::verdict::Verdict;
use crate::machine::{Machine, Target};

/// A claim that a run has broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenClaim {
    /// The sentence.
    pub text: String,
    /// The state in which it was broken.
    pub state: String,
    /// The step, from 1.
    pub step: u32,
}

/// Returns the first moment at which each claim is broken in a run of this machine.
///
/// Of a run that began in the middle it is unknown what came before: what depends on that is not asked.
pub fn broken(
    always: &[Always],
    machine: &Machine,
    placement: Option<&Placement>,
    events: &[Stamped],
) -> Vec<BrokenClaim> {
    if always.is_empty() {
        return Vec::new();
    }
    let mut watch = ClaimWatch {
        always,
        known: RunFacts::default(),
        broken: IndexMap::new(),
        step: 0,
        said: None,
        open: None,
        is_resumed: false,
        is_placed: placement.is_some(),
    };
    let mut past: Option<Past> = None;
    for stamped in events {
        watch.spend(&stamped.event);
        if stamped.depth > 0 {
            continue;
        }
        if let (Event::LoopStart(start), None) = (&stamped.event, &past) {
            let mut begun = Past::new(machine, start.clone(), IndexMap::new());
            if let Some(placement) = placement {
                begun.place_at(machine, placement.clone());
                watch.known.verified = placement.is_verified;
            }
            past = Some(begun);
            continue;
        }
        if let Some(past) = &mut past {
            past.event(machine, &stamped.event, stamped.at);
            watch.known.verified = past.run().is_verified();
        }
        watch.follow(&stamped.event, machine);
    }
    watch.broken.into_values().collect()
}

struct ClaimWatch<'a> {
    always: &'a [Always],
    known: RunFacts,
    broken: IndexMap<&'a str, BrokenClaim>,
    step: u32,
    /// What the state said that is about to be left.
    said: Option<Verdict>,
    /// The state that was entered and not left yet.
    open: Option<StateName>,
    /// Whether the run was resumed, and entered no state since.
    is_resumed: bool,
    /// Whether the run began in the middle.
    is_placed: bool,
}

impl ClaimWatch<'_> {
    /// Counts what models cost, in the loops below as well.
    fn spend(&mut self, event: &Event) {
        let usage = if let Event::ActionComplete(complete) = event {
            let usage = complete.usage.as_ref();
            self.known.agent_calls += usage.map_or(0, |usage| usage.calls);
            usage
        } else if let Event::Judge { usage, .. } = event {
            self.known.judge_calls += usage.calls;
            Some(usage)
        } else {
            None
        };
        let Some(usage) = usage else { return };
        self.known.cost += usage.least_cost();
        self.ask(RunMoment::Asked, "");
    }

    fn follow(&mut self, event: &Event, machine: &Machine) {
        if let Event::StateEnter { state, step, .. } = event {
            self.step = *step;
            self.said = None;
            // What a kill cut short is the same visit, made again.
            let is_same = self.is_resumed && self.open.as_ref() == Some(state);
            self.is_resumed = false;
            self.open = Some(state.clone());
            self.enter(state, is_same);
        } else if let Event::LoopResume(_) = event {
            self.is_resumed = true;
        } else if let Event::Evaluate { verdict, .. } = event {
            self.said = Some(verdict.clone());
        } else if let Event::Board(board) = event {
            self.said = Some(board.verdict.clone());
        } else if let Event::Route { from, to, verdict, .. } = event {
            if let Some(said) = self.said.take().or_else(|| verdict.clone()) {
                self.known.verdicts.insert(from.clone(), said);
            }
            self.open = None;
            self.ask(RunMoment::Leave(from), from.as_str());
            // A terminal has no `StateEnter`: the way to it is its entry.
            if let Some(Target::End(_)) = machine.find(to) {
                self.enter(to, false);
            }
        }
    }

    fn enter(&mut self, state: &StateName, is_same: bool) {
        let visits = self.known.visits.entry(state.clone()).or_default();
        *visits += u32::from(!is_same);
        self.ask(RunMoment::Enter(state), state.as_str());
    }

    /// Tells whether everything is known that a sentence asks for.
    fn is_known(&self, claim: &SentenceClaim) -> bool {
        let is_told = |state: &&StateName| self.known.verdicts.contains_key(*state);
        let is_past = matches!(claim, SentenceClaim::Before(..));
        !self.is_placed || (!is_past && claim.judged().iter().all(is_told))
    }

    fn ask(&mut self, moment: RunMoment<'_>, state: &str) {
        let breaks = |claim: &SentenceClaim| self.is_known(claim) && claim.is_broken(moment, &self.known);
        let broken: Vec<&Always> = self.always.iter().filter(|one| breaks(&one.claim)).collect();
        for one in broken {
            let broken = || BrokenClaim { text: one.text.clone(), state: state.to_owned(), step: self.step };
            self.broken.entry(one.text.as_str()).or_insert_with(broken);
        }
    }
}
