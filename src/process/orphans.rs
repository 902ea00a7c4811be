//! Processes that lost their parent: they come to this one, so that nothing that it has started is out of its reach.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait, waitpid};

use super::groups::MARK;
use super::guard_pipe::Guard;
use super::proc_table::{Process, child_ids, children};

/// How often those are looked for that come when others have ended.
const ROUNDS: usize = 1_000;

/// How long they may take to end once they were asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether they have.
const BETWEEN: Duration = Duration::from_millis(20);

/// Lets them come here from now on, where the system can do that.
///
/// # Errors
/// The system refuses.
pub fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

/// Ends every process below this one at once, each as soon as it has come here.
pub fn end_all() {
    // Bounded, because a process may fork faster than its children are killed.
    for _ in 0..ROUNDS {
        let left = children(own());
        if left.is_empty() {
            return;
        }
        for child in left.iter().filter_map(|child| Pid::from_raw(child.id)) {
            let _gone = kill_process(child, Signal::KILL);
        }
        if wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

fn own() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// A process that an action has left running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftProcess {
    /// Its number.
    pub id: i32,
    /// The name of its program.
    pub name: String,
}

/// A process that came here.
#[derive(Clone, Copy, Debug)]
struct KnownOrphan {
    start: u64,
    is_told: bool,
}

/// The processes that the actions of a run have left running, as far as they came here.
#[derive(Debug, Default)]
pub struct Orphans {
    /// Whether they come here at all.
    is_adopting: bool,
    /// When each began, and whether that was said.
    known: BTreeMap<i32, KnownOrphan>,
    /// Those that had ended when they were looked for last, and had not been waited for.
    dead: BTreeSet<i32>,
    /// Those that were there before any of them could come, as a shell has left them that became this process.
    before: BTreeMap<i32, u64>,
}

impl Orphans {
    /// Lets them come here from now on. Where the system cannot do that, there are none.
    pub fn adopted() -> Self {
        let before = child_ids(own()).into_iter().filter_map(Process::of);
        let before = before.map(|process| (process.id, process.start)).collect();
        Self { is_adopting: cfg!(target_os = "linux") && adopt().is_ok(), before, ..Self::default() }
    }

    /// Returns those that were not returned before. What the run itself has started is told to its guard until it has
    /// ended.
    pub fn come(&mut self, guard: &Guard, run: &str) -> Vec<LeftProcess> {
        let gone = self.notice(guard, run);
        let mut dead = BTreeSet::new();
        for id in gone {
            self.bury(id, &mut dead);
        }
        self.dead = dead;
        let mut new = Vec::new();
        for (id, known) in self.known.iter_mut().filter(|(_, known)| !known.is_told) {
            let process = Process::of(*id).filter(|process| process.start == known.start);
            // One that ends in this moment is left behind by nobody.
            if let Some(name) = process.and_then(|process| process.name()) {
                known.is_told = true;
                new.push(LeftProcess { id: *id, name });
            }
        }
        new
    }

    /// Tells whether one of them lives, or may: a process in a group of its own may be one that has hidden whose it is.
    pub fn are_any(&mut self, guard: &Guard, run: &str) -> bool {
        self.notice(guard, run);
        let is_foreign = |process: &Process| !guard.has(process.group) && !self.is_of_program(process);
        self.is_adopting
            && child_ids(own()).into_iter().filter_map(Process::of).any(|process| is_foreign(&process))
    }

    /// Tells whether a process belongs to this program and to nothing that it runs.
    fn is_of_program(&self, process: &Process) -> bool {
        let is_here = Process::current().is_none_or(|here| process.group == here.group);
        is_here || self.before.get(&process.id) == Some(&process.start)
    }

    /// Tells whether a process is one of a run. One in another session than this program has left that of its action, whatever it
    /// says in its environment: nothing that this program starts for itself does so.
    fn is_left(&self, process: &Process, guard: &Guard, run: &str) -> bool {
        let has_left = || Process::current().is_some_and(|here| process.session != here.session);
        !guard.has(process.group)
            && !self.is_of_program(process)
            && (process.has_in_its_environment(MARK, run) || has_left())
    }

    /// Looks who came here, and buries those of them that have ended since: nobody else does while an action goes on, and
    /// what is not buried counts against the processes that a user may have. Returns the other children that have ended,
    /// for which somebody else may wait.
    pub fn notice(&mut self, guard: &Guard, run: &str) -> Vec<i32> {
        let mut others = Vec::new();
        if !self.is_adopting {
            return others;
        }
        for id in child_ids(own()) {
            let Some(process) = Process::of(id) else {
                if self.known.contains_key(&id) {
                    let _buried = Pid::from_raw(id).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
                } else {
                    others.push(id);
                }
                continue;
            };
            let start = process.start;
            if self.known.get(&id).is_some_and(|known| known.start == start) {
                continue;
            }
            self.known.remove(&id);
            if self.is_left(&process, guard, run) {
                self.known.insert(id, KnownOrphan { start, is_told: false });
            }
        }
        others
    }

    /// Buries one that has ended. What this process waits for itself is gone before it is looked for a second time.
    fn bury(&self, id: i32, dead: &mut BTreeSet<i32>) {
        if self.dead.contains(&id) {
            let _buried = Pid::from_raw(id).map(|pid| waitpid(Some(pid), WaitOptions::NOHANG));
        } else {
            dead.insert(id);
        }
    }

    /// Ends them, and those that come when they have ended: asks them to, and after a while lets nothing survive.
    pub fn end(&mut self, guard: &Guard, run: &str) {
        let mut waited = Duration::ZERO;
        let mut asked = BTreeSet::new();
        for _ in 0..ROUNDS {
            let _more = self.come(guard, run);
            self.known
                .retain(|id, known| Process::of(*id).is_some_and(|process| process.start == known.start));
            if self.known.is_empty() {
                return;
            }
            let is_late = waited >= GRACE;
            for id in self.known.keys().copied() {
                if is_late || asked.insert(id) {
                    signal(id, if is_late { Signal::KILL } else { Signal::TERM });
                }
            }
            sleep(BETWEEN);
            waited += BETWEEN;
        }
    }
}

/// Signals a process, and its group where it leads one.
fn signal(id: i32, signal: Signal) {
    let Some(pid) = Pid::from_raw(id) else { return };
    let leads = Process::of(id).is_some_and(|process| process.group == id);
    let _gone = if leads { kill_process_group(pid, signal) } else { kill_process(pid, signal) };
}
