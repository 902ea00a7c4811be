//! Tells whether a process that a file names still lives: its number alone says little, for another one may have come to
//! have it, and other machines and containers count for themselves.

use super::proc_table::{Process, ProcessNamespace};

/// Returns the name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns when this process began, for [`is_over`]; nothing where the system does not say.
pub fn started() -> String {
    Began::of(std::process::id()).map_or_else(String::new, |began| began.to_string())
}

/// Returns the numbers of the processes around this one, the nearest first, as far as this namespace shows them.
pub fn ancestors() -> Vec<u32> {
    let parent = |process: &Process| Process::of(process.parent);
    let all = std::iter::successors(Process::current(), parent).skip(1);
    // No chain is longer; a number that came again while it was followed could make a circle.
    all.take(MOST_ANCESTORS).filter_map(|process| u32::try_from(process.id).ok()).collect()
}

/// How many processes around this one are looked at.
const MOST_ANCESTORS: usize = 1_000;

/// Tells whether a process of this machine is known to have ended. What cannot be known is not.
#[cfg(target_os = "linux")]
pub fn is_over(pid: u32, started: &str) -> bool {
    let (Some(then), Ok(here)) = (Began::parse(started), ProcessNamespace::now()) else { return false };
    if then.here.boot != here.boot {
        return true;
    }
    // Another container has its own numbers.
    then.here.namespace == here.namespace && Began::of(pid).is_none_or(|began| began.ticks != then.ticks)
}

/// Tells whether a process of this machine is known to have ended.
#[cfg(not(target_os = "linux"))]
pub fn is_over(pid: u32, _started: &str) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// When a process began: by whose count, and how long after the start of the machine.
struct Began {
    here: ProcessNamespace,
    ticks: u64,
}

impl std::fmt::Display for Began {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.here.boot, self.here.namespace, self.ticks)
    }
}

impl Began {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (boot, namespace, ticks) = (parts.next()?, parts.next()?, parts.next()?);
        let here = ProcessNamespace { boot: boot.to_owned(), namespace: namespace.to_owned() };
        Some(Self { here, ticks: ticks.parse().ok()? })
    }

    /// Returns nothing for a process that is not there.
    fn of(pid: u32) -> Option<Self> {
        let process = Process::of(i32::try_from(pid).ok()?)?;
        Some(Self { here: ProcessNamespace::now().ok()?, ticks: process.start })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_over_when_it_ended_or_its_number_is_anothers() {
        let own = started();
        assert!(!is_over(std::process::id(), &own));
        let parts: Vec<&str> = own.split('/').collect();
        let [boot, namespace, ticks] = parts.as_slice() else { panic!("{own}") };
        assert!(is_over(std::process::id(), &format!("{boot}/{namespace}/1")), "another one with its number");
        assert!(
            is_over(std::process::id(), &format!("earlier/{namespace}/{ticks}")),
            "before the machine started"
        );
        assert!(!is_over(std::process::id(), &format!("{boot}/1/1")), "in another container");
        assert!(!is_over(1, ""), "nothing is known");
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let began = Began::of(child.id()).unwrap().to_string();
        assert!(!is_over(child.id(), &began));
        child.kill().unwrap();
        // It has ended when it can be waited for, and not before.
        while !is_over(child.id(), &began) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_over(child.id(), &began));
    }
}
