//! What a run that begins or goes on may take of the day, where a policy caps that: asked after all else that can refuse it.

use std::path::Path;

use crate::context::Session;
use crate::context::error::Error;
use crate::engine::event::{ActionKind, Event, Stamped};
use crate::journal::files::RunFiles;
use crate::journal::known::{self, RunStatus};
use crate::journal::reader;
use crate::report::run_stats::RunFold;
use crate::session::end::ready::Resumed;
use crate::session::prepare::consent::Decided;
use crate::session::prepare::prepared::Prepared;
use crate::spending::day_reservation::{self, DayReservation, KilledRun, SpendingRequest};

/// A run that goes on, as far as its cost is concerned.
pub(super) struct ResumedSpending<'r> {
    pub(super) files: &'r RunFiles,
    pub(super) resumed: &'r Resumed,
    pub(super) decided: &'r Decided,
}

/// Reserves what a run that begins may take, unless it calls no model.
pub(super) fn of_beginning(
    prepared: &Prepared,
    decided: &Decided,
    files: &RunFiles,
    is_reused: bool,
    session: &Session<'_>,
) -> Result<Option<DayReservation>, Error> {
    if is_reused {
        return Ok(None);
    }
    reserved(prepared, decided, files, Some(0.0), session)
}

/// Reserves what a run that goes on may take, unless it calls no model.
pub(super) fn of_resumed(
    prepared: &Prepared,
    run: &ResumedSpending<'_>,
    session: &Session<'_>,
) -> Result<Option<DayReservation>, Error> {
    let ResumedSpending { files, resumed, decided } = run;
    let below = resumed.left.iter().map(|level| &level.past);
    let levels = std::iter::once(&resumed.past).chain(below);
    // Where one level does not know its cost, the sum is not known either.
    let before = levels.map(|level| level.run().usage().known_cost()).sum::<Option<f64>>();
    reserved(prepared, decided, files, before, session)
}

fn reserved(
    prepared: &Prepared,
    decided: &Decided,
    files: &RunFiles,
    before: Option<f64>,
    session: &Session<'_>,
) -> Result<Option<DayReservation>, Error> {
    if !decided.can_call_models {
        return Ok(None);
    }
    let of_loop = prepared.machine.budget.cost_usd;
    let budget = decided.budget.cost_usd.into_iter().chain(of_loop).reduce(f64::min);
    let checkout = prepared.located.root.as_path();
    let mut killed = killed_runs(files.loops());
    // It goes on, so nothing else of it is alive.
    killed.retain(|killed| killed.run != files.instance());
    let known = before.filter(|_| !has_cut_call(&files.journal()));
    killed.extend(known.map(|usd| KilledRun { run: files.instance().to_owned(), usd }));
    let request = SpendingRequest { run: files.instance(), checkout, budget, before, killed: &killed };
    let reserved = day_reservation::reserve(&prepared.policy, &request, session)?;
    if let Some(reserved) = &reserved {
        session.talk.note(&reserved.sentence());
    }
    Ok(reserved)
}

/// Returns what the journals say of the runs of a checkout whose processes were killed.
fn killed_runs(loops: &Path) -> Vec<KilledRun> {
    // Where they cannot be listed, all that was promised to them counts.
    let runs = known::open(loops).into_iter().flatten();
    let killed = runs.filter(|run| run.status == RunStatus::Crashed);
    killed
        .filter_map(|run| {
            Some(KilledRun { run: run.files.instance().to_owned(), usd: cost(&run.files.journal())? })
        })
        .collect()
}

/// Returns what a journal says that its run took, where it knows all of it.
fn cost(journal: &Path) -> Option<f64> {
    let (mut fold, mut calls) = (RunFold::default(), CutCalls::default());
    let each = |event: Stamped| {
        calls.event(&event);
        fold.event(&event);
    };
    reader::read(journal, each).ok()?;
    fold.was_killed();
    let usage = fold.numbers()?;
    usage.usage().known_cost().filter(|_| !calls.any())
}

/// Tells whether a kill may have cut off a call of a run: what that took is in no journal.
fn has_cut_call(journal: &Path) -> bool {
    let mut calls = CutCalls::default();
    // A run that begins has no journal, and what cannot be read is found by whoever opens it.
    let _as_far_as_it_goes = reader::read(journal, |event| calls.event(&event));
    calls.any()
}

/// Looks in a journal for calls of models that have no end in it.
#[derive(Debug, Default)]
struct CutCalls {
    is_under_way: bool,
    was_cut: bool,
}

impl CutCalls {
    fn event(&mut self, stamped: &Stamped) {
        let event = &stamped.event;
        // What is said beside the work ends no call, and what a rewound run inherited is of another one.
        if stamped.inherited || matches!(event, Event::Warning { .. } | Event::Sandbox(_)) {
            return;
        }
        // It stays unknown for ever, also where the run has gone on since.
        self.was_cut |= self.is_under_way && matches!(event, Event::LoopResume(_));
        let is_agent =
            matches!(event, Event::ActionStart { kind: ActionKind::Prompt | ActionKind::Learning, .. });
        // A judge is asked between the action and the verdict, and only its end is an event.
        let is_judged =
            matches!(event, Event::StateEnter { .. } | Event::ActionComplete(_) | Event::Judge { .. });
        self.is_under_way = is_agent || is_judged;
    }

    fn any(&self) -> bool {
        self.was_cut || self.is_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::name::StateName;
    use crate::base::time::Timestamp;

    #[track_caller]
    fn check(kind: ActionKind, is_cut: bool) {
        let state = StateName::parse("work").unwrap();
        let action = Event::ActionStart {
            state: state.clone(),
            action: "work".to_owned(),
            kind,
            role: None,
            session: None,
            tree: None,
        };
        let said = Event::Warning { state: Some(state), message: "odd".to_owned() };
        let mut calls = CutCalls::default();
        for event in [action, said] {
            calls.event(&Stamped::new(Timestamp::from_millis(0), 1, event));
        }
        assert_eq!(calls.any(), is_cut, "{kind:?}");
    }

    #[test]
    fn a_call_without_an_end_was_cut() {
        check(ActionKind::Prompt, true);
        check(ActionKind::Learning, true);
        check(ActionKind::Shell, false);
    }
}
