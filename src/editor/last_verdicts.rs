//! What the last runs of this checkout said in a state. Their journals are read as they are, and nothing is written.

use std::collections::BTreeMap;

use crate::base::name::StateName;
use crate::context::Session;
use crate::files::read::MIB;
use crate::journal::reader;
use crate::report::digest::Digest;
use crate::session::read::listed_runs::{self, Places};

/// So many runs are shown.
const SHOWN: usize = 3;

/// A longer journal is left alone: somebody waits for the answer.
const LONGEST: u64 = 4 * MIB;

/// What a run said in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SaidInRun {
    pub(super) run: String,
    /// Each verdict, with how often it came.
    pub(super) verdicts: Vec<(String, u64)>,
}

/// Returns what the last runs of a loop said in a state, the latest first. A run that did not come there is left out.
pub(super) fn of_state(loop_name: &str, state: &StateName, session: &Session<'_>) -> Vec<SaidInRun> {
    let said = |(run, digest): (String, Digest)| {
        let verdicts = digest.states().get(state)?.verdicts.clone();
        (!verdicts.is_empty()).then(|| SaidInRun { run, verdicts: verdicts.into_iter().collect() })
    };
    last(loop_name, SHOWN, session).into_iter().filter_map(said).collect()
}

/// Returns what the last run of a loop said in each state.
pub(super) fn of_last_run(loop_name: &str, session: &Session<'_>) -> BTreeMap<String, String> {
    let Some((_, digest)) = last(loop_name, 1, session).pop() else { return BTreeMap::new() };
    let said = digest.states().iter().filter(|(_, count)| !count.verdicts.is_empty());
    said.map(|(state, count)| {
        let verdicts = count.verdicts.iter().map(|(verdict, count)| counted(verdict, *count));
        (state.to_string(), verdicts.collect::<Vec<_>>().join(", "))
    })
    .collect()
}

/// Says how often a verdict came.
pub(super) fn counted(verdict: &str, count: u64) -> String {
    if count == 1 { verdict.to_owned() } else { format!("{verdict} {count} times") }
}

/// Returns the last runs of a loop whose journals can be read, the latest first.
fn last(loop_name: &str, most: usize, session: &Session<'_>) -> Vec<(String, Digest)> {
    // Whoever lists the runs says why they cannot be listed.
    let Ok(runs) = Places::of(session).all() else { return Vec::new() };
    let own = runs.iter().rev().filter(|run| listed_runs::known_as(run) == loop_name);
    let read = own.take(most).filter_map(|run| {
        let journal = run.files.journal();
        fs_err::metadata(&journal).ok().filter(|found| found.len() <= LONGEST)?;
        let mut digest = Digest::of([]);
        reader::read(&journal, |event| digest.event(&event)).ok()?;
        Some((run.files.instance().to_string(), digest))
    });
    read.collect()
}
