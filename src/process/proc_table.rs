//! What Linux tells of processes in `/proc`. Elsewhere there is nothing to read, and no process is found.

use std::io;

use serde::{Deserialize, Serialize};

/// Where numbers of processes mean what they meant when they were written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProcessNamespace {
    pub(super) boot: String,
    /// The namespace of process ids, which a container has of its own.
    pub(super) namespace: String,
}

impl ProcessNamespace {
    /// Tells where this process is.
    ///
    /// # Errors
    /// There is no `/proc`, or it is that of another namespace, where the same numbers mean other processes.
    pub(super) fn now() -> io::Result<Self> {
        if fs_err::read_link("/proc/self")?.to_str() != Some(&std::process::id().to_string()) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "/proc is that of another namespace"));
        }
        let namespace = fs_err::read_link("/proc/self/ns/pid")?;
        Ok(Self {
            boot: fs_err::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned(),
            namespace: namespace.to_string_lossy().into_owned(),
        })
    }
}

/// A process that lives.
pub(super) struct Process {
    pub(super) id: i32,
    /// Who started it, or has taken it over.
    pub(super) parent: i32,
    /// Zero if its leader is outside of this namespace, as for what `docker exec` starts in a container.
    pub(super) group: i32,
    /// Zero if its leader is outside of this namespace.
    pub(super) session: i32,
    /// When it began, in clock ticks since the system came up.
    pub(super) start: u64,
}

impl Process {
    /// Looks this process up. The calls for its group and session are not used: in `rustix` they panic, or worse, where
    /// the leader is outside of this namespace.
    pub(super) fn current() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// Looks a process up. Zombies do not count.
    pub(super) fn of(id: i32) -> Option<Self> {
        Self::parse(id, &text(&format!("/proc/{id}/stat"))?)
    }

    /// Reads `/proc/ID/stat`: `ID (NAME) STATE PARENT GROUP SESSION …`, where the name can hold anything.
    fn parse(id: i32, stat: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [status, parent, group, session, ..] = words[..] else { return None };
        if matches!(status, "Z" | "X") {
            return None;
        }
        let (parent, group, session) = (parent.parse().ok()?, group.parse().ok()?, session.parse().ok()?);
        // `starttime` is field 22 in proc(5); these words begin with field 3.
        Some(Self { id, parent, group, session, start: words.get(19)?.parse().ok()? })
    }

    /// Returns the name of its program, as long as it is there.
    pub(super) fn name(&self) -> Option<String> {
        Some(text(&format!("/proc/{}/comm", self.id))?.trim().to_owned())
    }

    /// Tells whether a variable had this value when its program was started.
    pub(super) fn has_in_its_environment(&self, variable: &str, value: &str) -> bool {
        let wanted = format!("{variable}={value}");
        let has = |all: Vec<u8>| all.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        std::fs::read(format!("/proc/{}/environ", self.id)).is_ok_and(has)
    }
}

/// Reads a file of `/proc`. The name of a process may be of any bytes: the kernel cuts it after 15 of them, through a
/// character too.
fn text(path: &str) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// Returns all processes that there are.
pub(super) fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::of(entry.file_name().to_str()?.parse().ok()?))
}

/// Returns the numbers of the children of this process's first thread, to which processes come that lost their parent; those
/// that have ended and were not buried are among them. Where the kernel does not list them, all processes are looked at.
pub(super) fn child_ids(of: i32) -> Vec<i32> {
    match std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")) {
        Ok(list) => list.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
        Err(_) => children(of).iter().map(|child| child.id).collect(),
    }
}

/// Returns the children of a process that live.
pub(super) fn children(of: i32) -> Vec<Process> {
    processes().filter(|process| process.parent == of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_hold_anything() {
        let stat = "7 (a) Z 1 (b) S 6 70 71 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 0 0";
        let process = Process::parse(7, stat).unwrap();
        assert_eq!((process.parent, process.group, process.session, process.start), (6, 70, 71, 12345));
        let attached = Process::parse(7, &stat.replace("70 71", "0 0")).unwrap();
        assert_eq!((attached.group, attached.session), (0, 0));
        assert!(Process::parse(7, "7 (a) Z 1 70 71").is_none() && Process::parse(7, "").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_whose_name_is_cut_through_a_character_is_found() {
        use std::os::unix::process::CommandExt as _;

        let directory = tempfile::tempdir().unwrap();
        // The second byte of the last letter is the sixteenth of the name.
        let program = directory.path().join("aufr\u{e4}umen-all\u{e4}");
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg0("sleep").arg("60").spawn().unwrap();
        let process = Process::of(i32::try_from(child.id()).unwrap());
        let name = process.as_ref().and_then(Process::name);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(name.as_deref(), Some("aufr\u{e4}umen-all\u{fffd}"));
    }
}
