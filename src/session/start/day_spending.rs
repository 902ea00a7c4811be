//! What a run that begins or goes on may take of the day, where a policy caps that: asked after all else that can refuse it.

use std::path::Path;

use crate::context::Session;
use crate::context::error::Error;
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
    killed.extend(before.map(|usd| KilledRun { run: files.instance().to_owned(), usd }));
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

fn cost(journal: &Path) -> Option<f64> {
    let mut fold = RunFold::default();
    reader::read(journal, |event| fold.event(&event)).ok()?;
    fold.was_killed();
    fold.numbers()?.usage().known_cost()
}
