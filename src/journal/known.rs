//! Lists the runs of a `.loops` directory with their status, which follows from the end of the journal and
//! from the lock of the claim. `state.json` is a copy for others and plays no part.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::claim::{self, ClaimStanding, Live};
use super::files::RunFiles;
use super::journal_ends::{self, Ends};
use super::snapshot;
use crate::base::explanation::Explanation;
use crate::base::format::{self, Unfit};
use crate::base::time::Timestamp;
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::files::read::{self, Unread};

/// The largest `state.json` that is read, in bytes.
const MAX_STATE: u64 = 64 * read::MIB;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// It waits for its turn.
    Queued,
    /// It runs.
    Running,
    /// Its process ended without recording an outcome.
    Crashed,
    /// It ended.
    Ended(Outcome),
    /// It ended with an error because its events could not be written, and can be resumed from the last one.
    Unsaved,
}

impl RunStatus {
    /// Derives the status: of a live run from its claim, of any other run from the last event of its journal.
    pub fn of(claim: Option<ClaimStanding>, end: Option<Outcome>) -> Self {
        match (claim, end) {
            (Some(ClaimStanding::Holds), _) => Self::Running,
            (Some(ClaimStanding::Waits), _) => Self::Queued,
            (None, Some(outcome)) => Self::Ended(outcome),
            (None, None) => Self::Crashed,
        }
    }

    /// Returns the word that is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Crashed => "crashed",
            Self::Ended(outcome) => snapshot::status(Some(outcome)),
            Self::Unsaved => snapshot::status(Some(Outcome::Error)),
        }
    }

    /// Tells whether the run is alive.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }

    /// Tells whether a later process can continue it.
    pub fn is_resumable(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Crashed | Self::Unsaved => true,
            Self::Ended(outcome) => outcome.is_resumable(),
        }
    }
}

/// A run whose files exist.
#[derive(Clone, Debug)]
pub struct KnownRun {
    /// Its files.
    pub files: RunFiles,
    /// The loop.
    pub name: String,
    /// Its status.
    pub status: RunStatus,
    /// The ends of its journal.
    pub ends: Ends,
    /// Why its journal cannot be read, if it cannot.
    pub unreadable: Option<String>,
    /// Its claim, while it lives.
    pub claim: Option<Live>,
}

impl KnownRun {
    /// Returns when it began, if known.
    pub fn started(&self) -> Option<Timestamp> {
        let claimed = || Some(self.claim.as_ref()?.record.as_ref()?.since);
        self.ends.start.as_ref().map(|(at, _)| *at).or_else(claimed)
    }

    /// Tells whether it ended, and its reports or its archiving are still to do.
    pub fn is_to_be_finished(&self) -> bool {
        let has_ended =
            matches!(self.status, RunStatus::Ended(_) | RunStatus::Unsaved) && self.ends.start.is_some();
        let is_in_its_place = self.status.is_resumable() || self.files.is_archived();
        has_ended && (self.files.unreported().exists() || !is_in_its_place)
    }

    fn new(files: RunFiles, live: Option<&Live>) -> Self {
        let journal = files.journal();
        let (ends, unreadable) = match journal_ends::ends(&journal) {
            Ok(ends) => (ends, None),
            // A run that waits, or has just begun, has no journal.
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Ends::default(), None),
            Err(error) => (Ends::default(), Some(error.to_string())),
        };
        let claimed = || Some(live?.record.as_ref()?.r#loop.clone());
        let name = ends.start.as_ref().map(|(_, start)| start.r#loop.to_string()).or_else(claimed);
        let end = ends.complete.as_ref().map(|complete| complete.outcome);
        let is_resumable = ends.complete.as_ref().is_some_and(LoopComplete::is_resumable);
        let mut status = RunStatus::of(live.map(|live| live.standing), end);
        // Both end as an error; the last event tells whether the run failed or only its journal.
        if status == RunStatus::Ended(Outcome::Error) && is_resumable {
            status = RunStatus::Unsaved;
        }
        Self {
            name: name.unwrap_or_else(|| files.stem().to_owned()),
            status,
            ends,
            unreadable,
            claim: live.cloned(),
            files,
        }
    }
}

/// Returns the runs that are alive or unfinished, in the order in which they began.
pub fn open(loops: &Path) -> io::Result<Vec<KnownRun>> {
    let directory = RunFiles::running(loops);
    // Claims before journals: a run that ends in between counts as alive, and not as crashed.
    let live = claim::live(&directory)?;
    let mut instances: BTreeSet<String> = journals(&directory)?.into_iter().collect();
    instances.extend(live.iter().map(|run| run.instance.clone()));
    let of = |instance: &String| live.iter().find(|run| run.instance == *instance);
    let runs = instances.iter().filter_map(|instance| {
        let files = RunFiles::of(loops, instance)?;
        let run = KnownRun::new(files, of(instance));
        // Its files may have moved since they were listed.
        (run.claim.is_some() || run.files.journal().exists()).then_some(run)
    });
    Ok(in_order(runs.collect()))
}

/// Returns the runs in the history, in the order in which they began.
pub fn archived(loops: &Path) -> io::Result<Vec<KnownRun>> {
    let live = claim::live(&RunFiles::running(loops))?;
    let mut all = Vec::new();
    for directory in directories(&RunFiles::archive_of_all(loops))? {
        for instance in journals(&directory)? {
            let files = RunFiles::of(loops, &instance).map(|files| files.archived_in(&directory));
            let live = live.iter().find(|run| run.instance == instance);
            all.extend(files.map(|files| KnownRun::new(files, live)));
        }
    }
    Ok(in_order(all))
}

/// Sorts runs by their beginning.
pub fn in_order(mut runs: Vec<KnownRun>) -> Vec<KnownRun> {
    runs.sort_by_cached_key(|run| (run.started(), run.files.instance().to_owned()));
    runs
}

fn journals(directory: &Path) -> io::Result<Vec<String>> {
    let names = names(directory)?;
    Ok(names.iter().filter_map(|name| Some(name.strip_suffix(".events.jsonl")?.to_owned())).collect())
}

fn directories(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = names(directory)?.into_iter().map(|name| directory.join(name));
    Ok(paths.filter(|path| path.is_dir()).collect())
}

/// Returns the names in a directory, in order; one that does not exist has none.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Archives runs whose processes were killed after the last event, before they archived the run themselves.
pub fn settle(loops: &Path) -> io::Result<()> {
    for instance in claim::dead(&RunFiles::running(loops))? {
        let Some(files) = RunFiles::of(loops, &instance) else { continue };
        let run = KnownRun::new(files, None);
        // One that can be resumed stays, because a resume looks for it here.
        if !run.status.is_resumable() {
            run.files.release();
            // Another run may do the same at the same time.
            let _moved = run.files.archive();
        }
    }
    Ok(())
}

/// Checks `state.json`, and returns what is wrong with it. The journal has everything, so nothing is lost.
pub fn state_problem(run: &KnownRun) -> Option<String> {
    state(run).err().map(|why| why.to_string())
}

/// Reads `state.json`, if it exists and matches the last event of the journal. That of a run that is alive may be
/// a little older or newer.
pub fn state_now(run: &KnownRun) -> Option<Value> {
    let state = state(run).ok().flatten()?;
    let is_new = state["last_seq"].as_u64() == run.ends.last.map(|(_, seq)| seq);
    (is_new || run.status.is_live()).then_some(state)
}

/// Reads `state.json`, or says what is wrong with it. `None` when the file does not exist yet.
fn state(run: &KnownRun) -> Result<Option<Value>, Explanation> {
    let path = run.files.state();
    let text = match read::text(&path, MAX_STATE) {
        Ok(text) => text,
        Err(Unread::Absent) => {
            // A run that is alive writes the journal first, so the copy may be about to come.
            let is_missing = run.ends.last.is_some() && !run.status.is_live();
            return if is_missing { Err(Explanation::new("it is missing")) } else { Ok(None) };
        }
        Err(error) => return Err(Explanation::new(format!("it cannot be read: {error}"))),
    };
    let state: Value =
        serde_json::from_str(&text).map_err(|error| Explanation::new(format!("it is damaged: {error}")))?;
    match disagreement(&state, run.files.instance(), &run.ends, run.status) {
        Some(problem) => Err(Explanation::new(problem)),
        None => Ok(Some(state)),
    }
}

/// Compares the copy with the journal. The copy may be one batch of events behind, but never ahead.
fn disagreement(state: &Value, instance: &str, ends: &Ends, status: RunStatus) -> Option<String> {
    match format::check(state, snapshot::SCHEMA) {
        Ok(()) => {}
        Err(Unfit::Unknown) => return Some("it has no `schema`".to_owned()),
        Err(Unfit::Newer(schema)) => {
            let ours = snapshot::SCHEMA;
            return Some(format!("a later version wrote it (schema {schema}; this one knows {ours})"));
        }
    }
    if state["instance"].as_str() != Some(instance) {
        return Some("it is the state of another run".to_owned());
    }
    if status.is_live() {
        // The file changes while a run is alive.
        return None;
    }
    let last = ends.last.map(|(_, seq)| seq);
    let is_ahead = state["last_seq"].as_u64() > last;
    let is_other = state["last_seq"].as_u64() == last
        && ends.complete.is_some()
        && state["status"].as_str() != Some(status.word());
    (is_ahead || is_other)
        .then(|| Explanation::new("it does not agree with the journal; was it edited?"))
        .map(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_alive_is_what_the_claim_says() {
        let check = |claim, end, expected: &str, resumable| {
            let status = RunStatus::of(claim, end);
            assert_eq!((status.word(), status.is_resumable()), (expected, resumable));
        };
        check(Some(ClaimStanding::Holds), None, "running", false);
        check(Some(ClaimStanding::Holds), Some(Outcome::Interrupted), "running", false);
        check(Some(ClaimStanding::Waits), None, "queued", false);
        check(None, None, "crashed", true);
        check(None, Some(Outcome::Success), "completed", false);
        check(None, Some(Outcome::Failure), "failed", false);
        check(None, Some(Outcome::Interrupted), "interrupted", true);
        check(None, Some(Outcome::Timeout), "timed_out", true);
        check(None, Some(Outcome::Handoff), "awaiting_continuation", true);
    }

    #[track_caller]
    fn check(state: &Value, expected: Option<&str>) {
        let ends = Ends { last: Some((Timestamp::from_millis(0), 7)), ..Ends::default() };
        let found = disagreement(state, "a", &ends, RunStatus::Crashed);
        assert_eq!(
            found
                .as_deref()
                .map(|text| text.split([' ', ';']).take(4).collect::<Vec<_>>().join(" "))
                .as_deref(),
            expected
        );
    }

    #[test]
    fn a_copy_that_is_wrong_is_told_apart() {
        check(&json!({"schema": 1, "instance": "a", "last_seq": 7}), None);
        check(&json!({"schema": 1, "instance": "a", "last_seq": 3}), None);
        check(&json!({"schema": 1, "instance": "a", "last_seq": 8}), Some("it does not agree"));
        check(&json!({"schema": 2, "instance": "a", "last_seq": 7}), Some("a later version wrote"));
        check(&json!({"schema": 1, "instance": "b", "last_seq": 7}), Some("it is the state"));
        check(&json!([]), Some("it has no `schema`"));
        check(&json!({"instance": "a"}), Some("it has no `schema`"));
    }
}
