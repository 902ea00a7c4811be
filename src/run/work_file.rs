//! The state file of a piece of work: where it is, whose work it is about, and how it is changed without anything being
//! lost. Runs, hooks and `ll-loop criteria` share it.
//!
//! Whoever writes it holds the lock of its directory, and reads it under that lock. The lock is the kernel's, so that it
//! ends with its process, and needs no file that somebody could take for a change of the tree.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::shared_file;
use crate::base::own::UNFINISHED;
use crate::criteria::decision::STUCK_AFTER;
use crate::criteria::state::{Invalid, MAX_BYTES};
use crate::criteria::work_owner::{Owner, OwningRun};
use crate::criteria::{self, CriteriaDecision, CriteriaState, Progress};
use crate::files::{place, read};
use crate::process::life;

/// Where the state of a piece of work is, below its directory.
pub const STATE: &str = ".loop/state.json";

/// How long to wait for other writers, each of which needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the state file that belongs to a directory, and what it holds: the nearest one up to the root of the
/// repository, or else that of the project. Without any there is nothing in the first place.
pub fn find(directory: &Path, project: Option<&Path>) -> (PathBuf, io::Result<Option<Vec<u8>>>) {
    let directory = place::named(directory);
    let root = place::repository(&directory);
    let above = directory.ancestors().take_while(|above| root.is_none_or(|root| above.starts_with(root)));
    // Outside of a repository nothing says where a project ends, so only the directory itself
    // counts.
    let above = above.take(if root.is_some() { usize::MAX } else { 1 });
    let places = above.chain(project).map(|directory| directory.join(STATE));
    for path in places {
        let found = shared_file::read(&path);
        if !matches!(found, Ok(None)) {
            return (path, found);
        }
    }
    (directory.join(STATE), Ok(None))
}

/// Returns the directory in which the work is done that a state file is about, if the file says so by its place.
pub fn directory_of_work(path: &Path) -> Option<PathBuf> {
    let path = place::named(path);
    path.ends_with(STATE).then(|| path.ancestors().nth(2).map(Path::to_owned)).flatten()
}

/// Returns this process as the owner of the work of a run.
pub fn this_run(instance: &str) -> OwningRun {
    OwningRun {
        instance: instance.to_owned(),
        host: life::host(),
        pid: std::process::id(),
        started: life::started(),
    }
}

/// Who keeps others from a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkHolder {
    /// Nobody: there is none, or it has ended.
    Nobody,
    /// A run that lives, or that runs on a machine of which nothing is known here.
    Run(OwningRun),
    /// A run that was killed.
    Gone(OwningRun),
    /// A session, or a person.
    Session,
}

impl WorkHolder {
    /// Tells who holds the work that a state is about.
    pub fn of(state: &CriteriaState) -> Self {
        match state.owner() {
            _ if state.has_ended() => Self::Nobody,
            // A pid says something only on the host that gave it.
            Some(Owner::Run(run)) if run.host == life::host() && life::is_over(run.pid, &run.started) => {
                Self::Gone(run)
            }
            Some(Owner::Run(run)) => Self::Run(run),
            Some(Owner::Session(_)) | None => Self::Session,
        }
    }
}

/// Decides about work that goes on only as long as somebody does it: what a killed run left holds nobody up.
pub fn decide(state: &CriteriaState) -> CriteriaDecision {
    let decision = criteria::decide(state, STUCK_AFTER);
    let WorkHolder::Gone(run) = WorkHolder::of(state) else { return decision };
    let reason = format!("the run {} was killed", run.instance);
    CriteriaDecision { stop: true, progress: Progress::Inactive, reason: Some(reason), ..decision }
}

/// A state file that nobody else writes meanwhile.
pub struct LockedStateFile {
    path: PathBuf,
    _directory: File,
}

impl LockedStateFile {
    /// Waits for other writers. Makes the directory of the file where it is missing.
    pub fn wait_for(path: &Path) -> io::Result<Self> {
        loop {
            // The file may be kept elsewhere in the repository: whoever comes by the link waits for the same lock.
            let target = shared_file::target(path)?;
            let parent = shared_file::directory(&target);
            fs_err::create_dir_all(parent)?;
            let directory = locked(read::directory(parent)?)?;
            // Somebody may have removed it meanwhile, and another one made it anew.
            let (held, named) = (directory.metadata()?, std::fs::metadata(parent));
            if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                sweep(parent);
                return Ok(Self { path: path.to_owned(), _directory: directory });
            }
        }
    }

    /// Reads the file, if there is one.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        shared_file::read(&self.path)
    }

    /// Replaces the file, with one that can be read again.
    pub fn write(&self, state: &CriteriaState) -> io::Result<()> {
        let text = state.text();
        if text.len() > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, Invalid::Large.to_string()));
        }
        shared_file::replace(&self.path, &text)
    }
}

/// Takes the lock of a directory. The kernel wakes those who wait in the order in which they came.
fn locked(file: File) -> io::Result<File> {
    if file.try_lock().is_ok() {
        return Ok(file);
    }
    let (sender, receiver) = mpsc::channel();
    // In a thread, because only the kernel ends the wait. When nobody waits any more, the file is closed again.
    std::thread::spawn(move || {
        let locked = loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => break locked,
            }
        };
        let _nobody_waits = sender.send(locked.map(|()| file));
    });
    receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "another process has kept its directory locked for too long",
        ))
    })
}

/// Removes what writers left behind that were killed: nobody else writes now.
fn sweep(directory: &Path) {
    // Elsewhere a file of that name may be somebody's own.
    if !directory.ends_with(".loop") {
        return;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        let _gone = std::fs::remove_file(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    #[test]
    fn the_nearest_file_up_to_the_root_of_the_repository_counts() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at(STATE), "outside");
        for name in ["repository/.git", "repository/a/b", "project", "plain/a"] {
            fs_err::create_dir_all(at(name)).unwrap();
        }
        let found = |from: &str| find(&at(from), Some(&at("project"))).1.unwrap();
        assert_eq!(found("repository/a/b"), None);
        write(&at("project").join(STATE), "project");
        assert_eq!(found("repository/a/b").unwrap(), b"project");
        write(&at("repository").join(STATE), "root");
        assert_eq!(found("repository/a/b").unwrap(), b"root");
        assert_eq!(found("repository").unwrap(), b"root");
        write(&at("repository/a").join(STATE), "a");
        assert_eq!(found("repository/a/b").unwrap(), b"a");
        assert_eq!(found("repository/a/../absent").unwrap(), b"root");
        // Without a repository there is no root to look up to.
        assert_eq!(found("plain/a").unwrap(), b"project");
        // What cannot be read is not passed over.
        fs_err::create_dir_all(at("repository/a/b").join(STATE)).unwrap();
        assert!(find(&at("repository/a/b"), None).1.is_err());
    }

    #[test]
    fn the_work_is_done_where_the_directory_lies() {
        let of = |path: &str| directory_of_work(Path::new(path));
        assert_eq!(of("/a/b/.loop/state.json"), Some(PathBuf::from("/a/b")));
        assert_eq!(of("/a/b/other.json"), None);
    }

    #[test]
    fn one_writer_comes_after_the_other_by_whatever_name() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs_err::create_dir_all(at(".git")).unwrap();
        fs_err::create_dir_all(at("kept")).unwrap();
        fs_err::create_dir_all(at(".loop")).unwrap();
        fs_err::write(at("kept/state.json"), "{}").unwrap();
        symlink("../kept/state.json", at(STATE)).unwrap();
        let first = LockedStateFile::wait_for(&at(STATE)).unwrap();
        assert!(File::open(at("kept")).unwrap().try_lock().is_err());
        drop(first);
        let second = LockedStateFile::wait_for(&at("kept/state.json")).unwrap();
        assert_eq!(second.read().unwrap().unwrap(), b"{}");
    }

    #[test]
    fn what_a_killed_writer_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(&at(".loop/.ll-loop-half"), "{");
        write(&at(".loop/mine"), "");
        drop(LockedStateFile::wait_for(&at(STATE)).unwrap());
        assert!(!at(".loop/.ll-loop-half").exists() && at(".loop/mine").exists());
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(STATE);
        let file = LockedStateFile::wait_for(&path).unwrap();
        let error = file.write(&CriteriaState::begin(&"x".repeat(MAX_BYTES), &[], &[])).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 4194304 bytes");
        assert!(!path.exists());
    }

    #[test]
    fn work_is_held_by_whoever_lives() {
        let begun = |owner: Owner| {
            let mut state = CriteriaState::begin("s", &[], &[]);
            state.give_to(&owner);
            state
        };
        let run = this_run("main-1");
        let mut state = begun(Owner::Run(run.clone()));
        assert_eq!(WorkHolder::of(&state), WorkHolder::Run(run.clone()));
        state.end_with("timeout");
        assert_eq!(WorkHolder::of(&state), WorkHolder::Nobody);
        let elsewhere = OwningRun { host: "elsewhere".to_owned(), pid: 1, ..run.clone() };
        assert_eq!(WorkHolder::of(&begun(Owner::Run(elsewhere.clone()))), WorkHolder::Run(elsewhere));
        #[cfg(target_os = "linux")]
        {
            let gone = OwningRun { started: "before/1/1".to_owned(), ..run };
            assert_eq!(WorkHolder::of(&begun(Owner::Run(gone.clone()))), WorkHolder::Gone(gone));
        }
        assert_eq!(WorkHolder::of(&begun(Owner::Session(None))), WorkHolder::Session);
        assert_eq!(WorkHolder::of(&CriteriaState::read(b"{}").unwrap()), WorkHolder::Session);
    }
}
