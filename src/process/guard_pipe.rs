//! The pipe between a run and its guard, a process that outlives it: if the process of the run is killed, the kernel
//! closes the pipe, and the guard ends what the run had started.
//!
//! Every line is shorter than what a pipe takes at once, and the run never waits for the guard.

use std::collections::BTreeSet;
use std::io::{BufRead, Write as _};
use std::process::ChildStdin;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::groups::Groups;

/// The most characters of a place.
const MAX_PLACE: usize = 200;

/// How often the guard looks whether a group has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Who is told what a run starts: the guard, by the run's end of the pipe, and the record for those who come later.
/// Without them, what they are told goes nowhere.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pipe: Option<Arc<ChildStdin>>,
    record: Option<Arc<Groups>>,
}

impl Guard {
    /// Makes the end of a pipe, which must not wait for its reader from now on.
    pub fn on(pipe: ChildStdin) -> std::io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&pipe)?;
        rustix::fs::fcntl_setfl(&pipe, flags | rustix::fs::OFlags::NONBLOCK)?;
        Ok(Self { pipe: Some(Arc::new(pipe)), record: None })
    }

    /// Tells a record, too.
    #[must_use]
    pub fn with_record(self, record: Groups) -> Self {
        Self { record: Some(Arc::new(record)), ..self }
    }

    /// Says that a process group was started.
    pub(super) fn began(&self, group: Option<u32>) {
        self.say('+', group);
        if let Some(record) = &self.record {
            record.began(group);
        }
    }

    /// Says that a process group has ended.
    pub(super) fn ended(&self, group: Option<u32>) {
        if let Some(record) = &self.record {
            record.ended(group);
        }
        self.say('-', group);
    }

    /// Tells whether the run has started a group that has not ended. Without a record, that is not known, and each is one.
    pub(super) fn has(&self, group: i32) -> bool {
        self.record.as_ref().is_none_or(|record| record.has(group))
    }

    fn say(&self, what: char, group: Option<u32>) {
        if let Some(group) = group {
            self.write(&format!("{what}{group}\n"));
        }
    }

    /// Says where the run is, as in ``state `test` ``.
    pub fn is_in(&self, place: &str) {
        let place: String = place.chars().filter(|c| !c.is_control()).take(MAX_PLACE).collect();
        self.write(&format!("@{place}\n"));
    }

    /// Says that the lease of the run points at this object, or is about to.
    pub fn holds(&self, oid: &str) {
        self.write(&format!("={oid}\n"));
    }

    /// Says that the run is over: there is nothing to do when the pipe closes.
    pub fn goodbye(&self) {
        self.write(".\n");
    }

    fn write(&self, line: &str) {
        if let Some(pipe) = &self.pipe {
            // A guard that is gone or does not read is no reason to stop.
            let _lost = pipe.as_ref().write_all(line.as_bytes());
        }
    }
}

/// What a run was doing when its process was killed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// The process groups that had not ended.
    pub groups: BTreeSet<i32>,
    /// Where it was.
    pub place: Option<String>,
    /// Where its lease may be, the latest last: a renewal is told before it is made.
    pub lease: Vec<String>,
}

/// Listens to a run until it is over; returns what it left behind, if it was killed.
pub fn listen(run: impl BufRead) -> Option<LeftBehind> {
    let mut left = LeftBehind::default();
    for line in run.lines() {
        let Ok(line) = line else { break };
        // Zero would mean the group of the guard itself, and one everybody: to signal group 1 is
        // `kill(-1)`.
        let group = || line[1..].parse().ok().filter(|group| *group > 1);
        match line.as_bytes().first() {
            Some(b'+') => left.groups.extend(group()),
            Some(b'-') => left.groups.retain(|known| Some(*known) != group()),
            Some(b'@') => left.place = Some(line[1..].to_owned()),
            Some(b'=') => left.lease.push(line[1..].to_owned()),
            Some(b'.') => return None,
            Some(_) | None => {}
        }
    }
    Some(left)
}

/// Ends process groups: SIGTERM, this grace, SIGKILL. Returns how long that took.
#[expect(
    clippy::disallowed_methods,
    reason = "this process has nothing else to do, and no run whose clock it could use"
)]
pub fn end(groups: &BTreeSet<i32>, grace: Duration) -> Duration {
    let mut groups: Vec<Pid> = groups.iter().filter_map(|group| Pid::from_raw(*group)).collect();
    let signal = |groups: &[Pid], signal| {
        for group in groups {
            let _gone = kill_process_group(*group, signal);
        }
    };
    signal(&groups, Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < grace {
        groups.retain(|group| test_kill_process_group(*group).is_ok());
        if groups.is_empty() {
            return asked.elapsed();
        }
        sleep(LOOK);
    }
    signal(&groups, Signal::KILL);
    asked.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(told: &str, groups: &[i32], place: Option<&str>) {
        let groups = groups.iter().copied().collect();
        let left = LeftBehind { groups, place: place.map(str::to_owned), lease: Vec::new() };
        assert_eq!(listen(told.as_bytes()), Some(left), "{told:?}");
    }

    #[test]
    fn what_was_left_is_what_began_and_did_not_end() {
        check("", &[], None);
        check("@a\n+12\n", &[12], Some("a"));
        check("@a\n+12\n-12\n@b\n+13\n+14\n", &[13, 14], Some("b"));
        check("+12\n-1", &[12], None);
        // Not everybody's processes, and nothing that is not a number.
        check("+0\n+1\n+-1\n+\n+x\n\n", &[], None);
        check("@é x\n", &[], Some("é x"));
        assert_eq!(listen("@a\n+12\n.\n".as_bytes()), None);
        assert_eq!(listen("=a1\n=b2\n".as_bytes()).unwrap().lease, ["a1", "b2"]);
    }
}
