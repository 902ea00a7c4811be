//! What the last runs of this checkout said in a state. Their journals are read as they are, and nothing is written.

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
    let runs = Places::of(session).all().unwrap_or_default();
    let own = runs.iter().rev().filter(|run| listed_runs::known_as(run) == loop_name);
    own.take(SHOWN)
        .filter_map(|run| {
            let journal = run.files.journal();
            fs_err::metadata(&journal).ok().filter(|found| found.len() <= LONGEST)?;
            let mut digest = Digest::of([]);
            reader::read(&journal, |event| digest.event(&event)).ok()?;
            let verdicts = digest.states().get(state)?.verdicts.clone();
            let run = run.files.instance().to_string();
            (!verdicts.is_empty()).then(|| SaidInRun { run, verdicts: verdicts.into_iter().collect() })
        })
        .collect()
}
