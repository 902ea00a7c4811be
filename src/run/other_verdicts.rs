//! What would have been with another verdict, over a whole journal: the loops of the run are folded again, and at each verdict
//! the machine is asked what another one would have led to. Nothing is run.

use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;

use super::replay::{Find, KnownMachine};
use crate::base::name::StateName;
use crate::engine::event::{Event, LoopComplete, LoopStart, Stamped};
use crate::engine::loop_stack::LoopStack;
use crate::engine::outcome::TerminatedBy;
use crate::engine::past::Past;
use crate::engine::suppose::{Course, VerdictMoment, around};
use crate::machine::Machine;
use crate::report::digest::flips::{Flip, Otherwise};
use crate::report::digest::visits::is_verdict;
use crate::report::numbers::{Numbering, StepNumber};

/// How many verdicts are looked at, the last ones.
pub const MOST: u64 = 200;

/// Which verdicts are looked at.
#[derive(Clone, Debug)]
pub enum ExaminedVerdicts {
    /// The last ones of so many.
    LastOf(u64),
    /// Those of a step.
    Step(StepNumber),
}

/// A loop of the run. One whose definition is not what it was is passed over, with all that it ran.
struct RejudgedLoop {
    known: Option<KnownMachine>,
    past: Option<Past>,
    began: Duration,
    runs: Option<String>,
    /// An action without a verdict, until one is chosen.
    unjudged: Option<VerdictMoment>,
    /// Where the flips of the visit that is going on begin.
    visit: usize,
}

/// Folds a journal.
pub struct Suppositions<'f> {
    outermost: KnownMachine,
    find: &'f mut Find<'f>,
    looked: ExaminedVerdicts,
    numbering: Numbering,
    levels: LoopStack<RejudgedLoop>,
    verdicts: u64,
    flips: Vec<Flip>,
    /// How the run ended.
    end: Option<LoopComplete>,
    unknown: Option<String>,
}

impl<'f> Suppositions<'f> {
    /// Begins with the machine of the run itself.
    pub fn new(outermost: KnownMachine, find: &'f mut Find<'f>, looked: ExaminedVerdicts) -> Self {
        Self {
            outermost,
            find,
            looked,
            numbering: Numbering::default(),
            levels: LoopStack::default(),
            verdicts: 0,
            flips: Vec::new(),
            end: None,
            unknown: None,
        }
    }

    /// Takes the next event of the journal.
    pub fn event(&mut self, stamped: &Stamped) {
        let depth = stamped.depth;
        let number = self.numbering.event(stamped);
        if let Event::LoopStart(start) = &stamped.event {
            self.begin(start, depth, stamped.at);
            return;
        }
        // Counted also where nothing is looked at, so that the last ones are known.
        self.verdicts += u64::from(is_verdict(&stamped.event));
        if let Some(number) = number.filter(|number| self.is_looked_at(number))
            && let Some(moment) = self.moment(depth, &stamped.event)
        {
            self.suppose(depth, &number, &moment);
        }
        self.take(depth, stamped);
    }

    /// Returns the results, the latest step first.
    pub fn finish(self) -> Otherwise {
        let mut flips = self.flips;
        if let Some(end) = self.end {
            // On another way to the same end, nothing would have ended otherwise.
            let same = Course::Ends(Box::new(end));
            flips.retain(|flip| !flip.course.is_like(&same));
        }
        // Of one verdict, the others stand in the order of the loop.
        flips.reverse();
        flips.chunk_by_mut(|one, next| one.step == next.step).for_each(<[Flip]>::reverse);
        let earlier = match self.looked {
            ExaminedVerdicts::LastOf(all) => all.saturating_sub(MOST),
            ExaminedVerdicts::Step(_) => 0,
        };
        Otherwise { flips, earlier, unknown: self.unknown }
    }

    fn begin(&mut self, start: &LoopStart, depth: u32, at: Duration) {
        if !self.levels.reaches(depth) {
            return;
        }
        let around = self.levels.around(depth).next();
        let known = match around {
            None => Ok(self.outermost.clone()),
            // The variables of the loop around it decide which loop is meant.
            Some(RejudgedLoop { past: Some(past), runs: Some(name), .. }) => {
                (self.find)(name, past.start(), start)
            }
            // Why it is passed over is said already.
            Some(_) => return self.levels.begin(depth, RejudgedLoop::passed_over(at)),
        };
        let level = match known {
            Ok(known) if known.digest == start.definition_sha256 => {
                let known = adjusted(known, start);
                let past = Past::new(&known.machine, start.clone(), IndexMap::new());
                RejudgedLoop { known: Some(known), past: Some(past), ..RejudgedLoop::passed_over(at) }
            }
            Ok(_) => {
                self.unknown.get_or_insert(format!("the loop `{}` is not what it was then", start.r#loop));
                RejudgedLoop::passed_over(at)
            }
            Err(why) => {
                self.unknown.get_or_insert(why.into());
                RejudgedLoop::passed_over(at)
            }
        };
        self.levels.begin(depth, level);
    }

    /// Returns the verdict that falls with this event, and what there was before.
    fn moment(&mut self, depth: u32, event: &Event) -> Option<VerdictMoment> {
        let level = self.levels.at_mut(depth)?;
        let (known, past) = (level.known.as_ref()?, level.past.as_ref()?);
        if let Event::ActionComplete(complete) = event {
            level.unjudged = VerdictMoment::unjudged(past, &known.machine, complete);
        }
        if matches!(event, Event::Route { .. } | Event::LoopError { .. }) {
            return level.unjudged.take();
        }
        VerdictMoment::of(past, &known.machine, event)
    }

    fn is_looked_at(&self, number: &StepNumber) -> bool {
        match &self.looked {
            ExaminedVerdicts::LastOf(all) => self.verdicts.saturating_add(MOST) > *all,
            ExaminedVerdicts::Step(step) => step == number,
        }
    }

    fn suppose(&mut self, depth: u32, number: &StepNumber, moment: &VerdictMoment) {
        let known = self.levels.at(depth).and_then(|level| level.known.as_ref());
        let Some(machine) = known.map(|known| Rc::clone(&known.machine)) else {
            return;
        };
        let others = moment.otherwise(&machine);
        let actual = moment.course(&machine, moment.verdict());
        let actual = actual.and_then(|course| self.outward(depth, course));
        for (instead, course) in others {
            let Some(course) = self.outward(depth, course) else { continue };
            // The actual course is worked out in the same way, so that like is compared with like.
            if actual.as_ref().is_some_and(|actual| actual.is_like(&course)) {
                continue;
            }
            let state: StateName = moment.state(&machine).clone();
            let (step, verdict) = (number.clone(), moment.verdict().clone());
            self.flips.push(Flip { step, state, verdict, instead, course });
        }
    }

    /// Follows the end of a sub-loop into the loops around it.
    fn outward(&self, depth: u32, mut course: Course) -> Option<Course> {
        for level in self.levels.around(depth) {
            // Only an end leads outwards; a state that is entered stays within its loop.
            let Course::Ends(end) = &course else { return Some(course) };
            course = around(level.past.as_ref()?, &level.known.as_ref()?.machine, end)?;
        }
        Some(course)
    }

    fn take(&mut self, depth: u32, stamped: &Stamped) {
        let (flips, event) = (self.flips.len(), &stamped.event);
        let is_resume = matches!(event, Event::LoopResume(_));
        let end = if let Event::LoopComplete(end) = event { Some(end) } else { None };
        // A resume takes the end back that came before it.
        if depth == 0 && (is_resume || end.is_some()) {
            self.end = end.cloned();
        }
        let Some(level) = self.levels.at_mut(depth) else { return };
        if let (Some(known), Some(past)) = (&mut level.known, &mut level.past) {
            past.event(&known.machine, event, stamped.at.saturating_sub(level.began));
            if is_resume && past.start().definition_sha256 != known.digest {
                self.unknown.get_or_insert("the loop was changed before the run was resumed".to_owned());
                (level.known, level.past) = (None, None);
            } else if is_resume {
                *known = adjusted(known.clone(), past.start());
            }
        }
        if let Event::SubLoopStart { r#loop, .. } = event {
            level.runs = Some(r#loop.clone());
        } else if let Event::StateEnter { .. } = event {
            (level.visit, level.unjudged) = (flips, None);
        } else if let Event::Route { .. } = event {
            // The state is left, and with it whatever loop it ran.
            self.levels.leave_inner(depth);
        } else if end.is_some_and(|end| {
            matches!(
                end.terminated_by,
                TerminatedBy::Interrupted
                    | TerminatedBy::LeaseLost
                    | TerminatedBy::Cancelled
                    | TerminatedBy::JournalLost
            )
        }) {
            // Whatever the verdict had been, the run was to end here.
            self.flips.truncate(level.visit);
        }
    }
}

impl RejudgedLoop {
    fn passed_over(began: Duration) -> Self {
        Self { known: None, past: None, began, runs: None, unjudged: None, visit: 0 }
    }
}

/// Sets the limits of a machine to those of the run.
fn adjusted(known: KnownMachine, start: &LoopStart) -> KnownMachine {
    let mut machine = Rc::clone(&known.machine);
    adjust(Rc::make_mut(&mut machine), start);
    KnownMachine { machine, ..known }
}

/// Sets the limits of a machine to those that a run began with, or goes on with.
pub fn adjust(machine: &mut Machine, start: &LoopStart) {
    machine.limits.iterations.limit = start.max_iterations;
    if start.overrides.max_cycles.is_some() {
        machine.limits.cycles = start.overrides.max_cycles;
    }
    if let Some(timeout) = start.overrides.timeout_ms {
        machine.limits.timeout = Some(Duration::from_millis(timeout));
    }
}
