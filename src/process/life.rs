//! Tells whether a process that a file names still lives: its number alone says little, for another one may have come to
//! have it, and other machines and containers count for themselves.

/// Returns the name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns when this process began, for [`is_over`].
#[cfg(target_os = "linux")]
pub fn started() -> String {
    began(std::process::id()).map(|began| began.to_string()).unwrap_or_default()
}

/// Returns when this process began, which this system does not say.
#[cfg(not(target_os = "linux"))]
pub fn started() -> String {
    String::new()
}

/// Tells whether a process of this machine is known to have ended. What cannot be known is not.
#[cfg(target_os = "linux")]
pub fn is_over(pid: u32, started: &str) -> bool {
    let (Some(then), Some(now)) = (Began::parse(started), began(std::process::id())) else { return false };
    if then.boot != now.boot {
        return true;
    }
    // Another container has its own numbers.
    then.namespace == now.namespace && began(pid).is_none_or(|began| began.ticks != then.ticks)
}

/// Tells whether a process of this machine is known to have ended.
#[cfg(not(target_os = "linux"))]
pub fn is_over(pid: u32, _started: &str) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// When a process began: since which start of the machine, by whose count, and how long after.
#[cfg(target_os = "linux")]
struct Began {
    boot: String,
    namespace: String,
    ticks: u64,
}

#[cfg(target_os = "linux")]
impl std::fmt::Display for Began {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.boot, self.namespace, self.ticks)
    }
}

#[cfg(target_os = "linux")]
impl Began {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (boot, namespace, ticks) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { boot: boot.to_owned(), namespace: namespace.to_owned(), ticks: ticks.parse().ok()? })
    }
}

/// Returns when a process began; nothing for one that is not there, or that has ended and was not waited for.
#[cfg(target_os = "linux")]
fn began(pid: u32) -> Option<Began> {
    let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may have any character.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let boot = fs_err::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs_err::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    Some(Began { boot: boot.trim().to_owned(), namespace, ticks: fields.get(19)?.parse().ok()? })
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
        let began = began(child.id()).unwrap().to_string();
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
