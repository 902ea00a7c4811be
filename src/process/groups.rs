//! The record of the process groups that a run has started. Whoever goes on after the run was killed ends what is left
//! of them first, so that never two agents work in one tree. On systems without `/proc` nothing is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use super::proc_table::{Process, ProcessNamespace, processes};

/// The variable by which processes of a run are known, also those whose start could not be recorded any more.
pub(super) const MARK: &str = "LL_LOOP_RUN";

/// How often processes that are to end are looked for.
const BETWEEN: Duration = Duration::from_millis(20);

/// How long killed processes may take to vanish.
const REAP: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct GroupRecord {
    here: ProcessNamespace,
    /// The session of the run. An action that left it wanted to stay.
    session: i32,
    /// The groups, each with the start of its leader in clock ticks since the system came up.
    groups: BTreeMap<i32, u64>,
}

/// The groups that a run has started and that have not ended.
#[derive(Debug)]
pub struct Groups {
    file: File,
    here: ProcessNamespace,
    session: i32,
    alive: Mutex<BTreeMap<i32, u64>>,
}

impl Groups {
    /// Begins the record of a run.
    ///
    /// # Errors
    /// The file cannot be written, or the system does not tell about its processes.
    pub fn record(path: &Path) -> io::Result<Self> {
        let here = ProcessNamespace::now()?;
        let session = Process::current().ok_or(io::ErrorKind::Unsupported)?.session;
        let file = File::create(path)?;
        let groups = Self { file, here, session, alive: Mutex::default() };
        groups.write(&BTreeMap::new())?;
        Ok(groups)
    }

    /// Records that a group has begun.
    pub(super) fn began(&self, group: Option<u32>) {
        let Some(group) = group.and_then(|group| i32::try_from(group).ok()) else { return };
        let Some(process) = Process::of(group) else { return };
        let mut alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        alive.insert(group, process.start);
        // Without the record, the group is still known by the environment of its processes.
        let _best_effort = self.write(&alive);
    }

    /// Forgets a group that has ended. That is written down with the next one: an old one is nobody's.
    pub(super) fn ended(&self, group: Option<u32>) {
        let Some(group) = group.and_then(|group| i32::try_from(group).ok()) else { return };
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).remove(&group);
    }

    /// Tells whether a group has begun and not ended.
    pub(super) fn has(&self, group: i32) -> bool {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&group)
    }

    /// Writes the record over the one before.
    fn write(&self, groups: &BTreeMap<i32, u64>) -> io::Result<()> {
        let record = GroupRecord { here: self.here.clone(), session: self.session, groups: groups.clone() };
        // Written over what was there, not truncated first: a kill in between would leave an empty
        // record.
        self.file.write_all_at(&serde_json::to_vec(&record)?, 0)
    }
}

/// Finds what is left of the processes of a run that was killed; `None` where the numbers of its record mean nothing: on
/// another machine, in another container, after a restart.
pub fn find_left(record: &[u8], run: &str) -> Option<BTreeSet<i32>> {
    // What stands behind it is left of a longer one.
    let record = serde_json::Deserializer::from_slice(record).into_iter::<GroupRecord>().next()?.ok()?;
    left(&record, run)
}

/// Ends what is left of the processes of a run that was killed, and returns how many groups there were, if that is
/// known.
pub fn end_left(record: &[u8], run: &str, grace: Duration) -> Option<usize> {
    let left = || find_left(record, run);
    let found = left()?;
    let mut still = found.clone();
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, REAP)] {
        for group in still.iter().filter_map(|group| Pid::from_raw(*group)) {
            let _gone = kill_process_group(group, signal);
        }
        let mut waited = Duration::ZERO;
        while !still.is_empty() && waited < patience {
            sleep(BETWEEN);
            waited += BETWEEN;
            still = left()?;
        }
    }
    Some(found.len())
}

/// Finds the groups of a run that was killed.
fn left(record: &GroupRecord, run: &str) -> Option<BTreeSet<i32>> {
    ProcessNamespace::now().ok().filter(|here| *here == record.here)?;
    let processes: Vec<Process> = processes().collect();
    let leader = |group: i32| processes.iter().find(|process| process.id == group);
    let is_recorded = |group: i32| {
        record
            .groups
            .get(&group)
            .is_some_and(|start| leader(group).is_some_and(|leader| leader.start == *start))
    };
    let ours = Process::current()?.group;
    // No run has made the group zero, whose leader is outside of this namespace.
    let others = processes.iter().filter(|process| process.group != ours && process.group != 0);
    let left = others.filter(|process| {
        is_recorded(process.group)
            || (process.session == record.session && process.has_in_its_environment(MARK, run))
    });
    Some(left.map(|process| process.group).collect())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::*;

    const RUN: &str = "main-20260101T000000-00000a";

    fn end(record: &Path) -> Option<usize> {
        end_left(&std::fs::read(record).unwrap(), RUN, Duration::from_secs(5))
    }

    fn begin(script: &str, run: Option<&str>) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env_clear().env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        command.stdout(Stdio::piped()).process_group(0).envs(run.map(|run| (MARK, run)));
        command.spawn().unwrap()
    }

    fn has_ended(mut child: Child) -> bool {
        let has_ended = child.try_wait().unwrap().is_some();
        let _ended = child.kill();
        child.wait().unwrap();
        has_ended
    }

    #[test]
    fn what_a_killed_run_left_is_ended_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("groups");
        let groups = Groups::record(&path).unwrap();
        assert_eq!(end(&path), Some(0));
        let recorded = begin("exec sleep 600", None);
        groups.began(Some(recorded.id()));
        // The run was killed before it could record this one.
        let marked = begin("exec sleep 600", Some(RUN));
        let of_another = begin("exec sleep 600", Some("main-20260101T000000-00000b"));
        let over = begin("exec sleep 600", None);
        groups.began(Some(over.id()));
        groups.ended(Some(over.id()));
        groups.began(None);
        groups.began(Some(recorded.id()));
        assert_eq!(end(&path), Some(2));
        assert!(has_ended(recorded) && has_ended(marked));
        assert!(!has_ended(of_another) && !has_ended(over));
        assert_eq!(end(&path), Some(0));
    }

    #[test]
    fn a_number_that_means_another_process_now_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("groups");
        let groups = Groups::record(&path).unwrap();
        let child = begin("exec sleep 600", None);
        let id = i32::try_from(child.id()).unwrap();
        let start = Process::of(id).unwrap().start;
        let other = |expected: Option<usize>, change: fn(&mut GroupRecord)| {
            groups.began(Some(child.id()));
            let mut text = serde_json::Deserializer::from_reader(File::open(&path).unwrap());
            let mut record = GroupRecord::deserialize(&mut text).unwrap();
            assert_eq!(record.groups, BTreeMap::from([(id, start)]));
            change(&mut record);
            std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
            assert_eq!(end(&path), expected);
        };
        other(Some(0), |record| record.groups.values_mut().for_each(|start| *start -= 1));
        other(None, |record| record.here.boot.push('x'));
        other(None, |record| record.here.namespace.push('x'));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(end(&path), None);
        assert!(!has_ended(child));
    }
}
