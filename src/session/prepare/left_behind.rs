//! What runs leave behind that are killed: processes that work on, and what stood in for protected paths while one of them
//! was confined. They are on record while a run lives, and are ended
//! before the next run begins, so that never two agents work in one tree.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::text::{listed_in_part, plural};
use crate::context::Session;
use crate::definition::load::DIRECTORY;
use crate::files::{aside, read};
use crate::journal::claim::{self, claim_place};
use crate::journal::files::RunFiles;
use crate::process::groups::{self, Groups};
use crate::process::guard_pipe::Guard;
use crate::process::spawn::GRACE;
use crate::repository::worktree;
use crate::reuse::planted::RecordsBefore;
use crate::reuse::store::{ReuseStore, StoreError};
use crate::sandbox::protected::Masks;

const RECORD: &str = ".groups";

const MASKS: &str = ".masks";

const REUSABLE: &str = ".reusable";

/// The largest record that is read, in bytes.
const MAX_RECORD: u64 = read::MIB;

/// Names the record of a run. It lies with the claims, out of the reach of actions that clean the working tree.
fn record(files: &RunFiles) -> PathBuf {
    claim_place::of(&RunFiles::running(files.loops())).join(format!("{}{RECORD}", files.instance()))
}

/// Names the note of what stands in for protected paths.
pub(crate) fn masks(files: &RunFiles) -> PathBuf {
    record(files).with_extension(MASKS.trim_start_matches('.'))
}

/// Names the note of what lay in the store of reuse when a run began.
pub(crate) fn reusable(files: &RunFiles) -> PathBuf {
    record(files).with_extension(REUSABLE.trim_start_matches('.'))
}

/// Has what a run starts recorded. Without a record, what a killed run leaves behind is its guard's to end.
pub(crate) fn recorded(guard: Guard, files: &RunFiles) -> Guard {
    match Groups::record(&record(files)) {
        Ok(groups) => guard.with_record(groups),
        Err(_) => guard,
    }
}

/// Removes the record of a run that has ended.
pub(crate) fn forget(files: &RunFiles) {
    let _absent = std::fs::remove_file(record(files));
    let _absent = std::fs::remove_file(masks(files));
}

/// Finds the process groups that a killed run has left behind, as far as its record tells.
pub(crate) fn groups(files: &RunFiles) -> BTreeSet<i32> {
    let record = read::bytes(&record(files), MAX_RECORD).ok();
    let left = record.and_then(|record| groups::find_left(&record, files.instance()));
    left.into_iter().flatten().collect()
}

/// Returns the files with such an ending that there are, each with the run that it is of.
fn files_of_runs(running: &Path, ending: &str) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(claim_place::of(running)).into_iter().flatten().flatten();
    let of_run = |path: PathBuf| Some((path.file_name()?.to_str()?.strip_suffix(ending)?.to_owned(), path));
    entries.filter_map(|entry| of_run(entry.path())).collect()
}

/// Returns the records that there are: of which run, where, and what is in it.
fn records(running: &Path) -> Vec<(String, PathBuf, Vec<u8>)> {
    let record = |(run, path): (String, PathBuf)| {
        // One that cannot be read still tells that the run has started something.
        let record = read::bytes(&path, MAX_RECORD).unwrap_or_default();
        (run, path, record)
    };
    files_of_runs(running, RECORD).into_iter().map(record).collect()
}

/// Removes the results from a store of reuse that came while runs worked which were killed. `own` is one that the caller finishes.
///
/// # Errors
/// It is not known who lives, or a result cannot be removed.
pub(crate) fn remove_planted(
    store: &ReuseStore,
    own: Option<&str>,
    session: &Session<'_>,
) -> Result<(), StoreError> {
    let running = RunFiles::running(store.loops());
    let notes = files_of_runs(&running, REUSABLE);
    if notes.is_empty() {
        return Ok(());
    }
    let live = claim::live(&running)?;
    for (run, note) in notes {
        if own != Some(run.as_str()) && live.iter().any(|live| live.instance == run) {
            continue;
        }
        let Some(records) = RecordsBefore::left(store.clone(), &note) else { continue };
        let removed = records.remove_others()?;
        if removed > 0 {
            session.talk.note(&planted(removed, &format!("while actions of {run} worked, which was killed")));
        }
        let _gone = std::fs::remove_file(note);
    }
    Ok(())
}

/// Says that records were removed which came into the store at that time.
pub(crate) fn planted(count: usize, when: &str) -> String {
    format!(
        "removed {} from the store of reuse, written {when}: it may be an action's own word",
        plural(count as u64, "record")
    )
}

/// Returns the runs that were killed before they started anything, as far as their claims are still there.
pub(crate) fn unstarted(running: &Path) -> Vec<String> {
    let started: Vec<String> = records(running).into_iter().map(|(run, ..)| run).collect();
    claim::dead(running).into_iter().flatten().filter(|run| !started.contains(run)).collect()
}

/// Ends what is left of runs that were killed. The caller holds the claim of `own`, which may be one of them.
pub(crate) fn end(running: &Path, own: &str, session: &Session<'_>) {
    // Before it is asked who lives: a run has its claim before its record, so one that begins meanwhile is not in here.
    let records = records(running);
    let _best_effort = claim::outlive_children(running);
    // Where it is not known who lives, what is left stays: nothing is put back under a run that works with it.
    let Ok(live) = claim::live(running) else { return };
    // First of all: what still works could write into the files that are put back.
    for (run, path, record) in &records {
        if run != own && live.iter().any(|live| live.instance == *run) {
            continue;
        }
        let ended = groups::end_left(record, run, GRACE);
        if let Some(count @ 1..) = ended {
            let what = if count == 1 { "an action was".to_owned() } else { format!("{count} actions were") };
            session.talk.warning(&format!("the run {run} was killed, and {what} still at work: ended"));
        }
        // Once nothing of it works any more, nothing is mounted there.
        let note = path.with_extension(MASKS.trim_start_matches('.'));
        Masks::noted(&note).remove();
        let _absent = std::fs::remove_file(note);
        // Where its process ids mean nothing, as in another container, the record stays for a command that knows them.
        if ended.is_some() || run == own {
            let _gone = std::fs::remove_file(path);
        }
    }
    if let Some(home) = running.parent().and_then(Path::parent) {
        let is_live = |run: &str| run == own || live.iter().any(|live| live.instance == run);
        worktree::remove_unbegun(home, &home.join(DIRECTORY), is_live, session);
    }
    for (run, edited) in
        aside::recover(running, |run| run != own && live.iter().any(|live| live.instance == run))
    {
        session.talk.warning(&put_back(
            &format!("the run {run} was killed while checks were made once more"),
            edited,
        ));
    }
    for (_, edited) in aside::recover_merges(running) {
        session.talk.warning(&put_back(
            "a merge was killed while it asked checks with the changes of all items",
            edited,
        ));
    }
}

/// Says what became of what somebody had put aside who was killed.
fn put_back(begin: &str, edited: io::Result<Vec<String>>) -> String {
    match edited {
        Ok(edited) if edited.is_empty() => format!("{begin}: its files are as they were before"),
        Ok(edited) => format!(
            "{begin}: its files are as they were before, but for those that somebody edited since, which stay: {}",
            listed_in_part(&edited)
        ),
        Err(error) => format!("{begin}, and its files cannot be put back: {error}"),
    }
}
