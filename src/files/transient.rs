//! Temporary files and directories. All of a process lie in one directory whose lock dies with it, so that what a killed
//! process has left is known as such: the next command removes it. What has to lie beside its final place has the
//! name of that directory in its own, and the place is noted there first.

use std::ffi::OsStr;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile, TempDir};

use super::read;
use crate::base::own::UNFINISHED;

/// What the names of the directories of processes begin with. Not with a dot: tools pass over what is hidden, and `init --try` runs
/// those of a repository in a copy that lies in such a directory.
const HOMES: &str = "ll-loop-tmp-";

/// What the names of bundles begin with that are still packed.
pub const PACKED: &str = ".ll-bundle-";

/// What the names of bundles begin with that are unpacked among the runs.
pub const INCOMING: &str = ".incoming-";

/// The file with the directories in which there may be more. Without it, a directory is not ours.
const ELSEWHERE: &str = "elsewhere";

/// The largest one that is read, in bytes.
const MOST_ELSEWHERE: u64 = 16 * read::MIB;

/// How many letters and digits are beyond guessing.
const RANDOM: usize = 16;

/// How often a directory is made anew that another process took for a dead one before its lock was held.
const TRIES: usize = 5;

/// The directory of this process.
static HOME: Mutex<Option<TempRoot>> = Mutex::new(None);

#[derive(Debug)]
struct TempRoot {
    path: PathBuf,
    /// What names elsewhere have in them.
    mark: String,
    /// Directories that are noted.
    noted: Vec<PathBuf>,
    /// Keeps the lock. Children do not inherit it.
    _held: File,
}

impl TempRoot {
    /// Makes one that only this user can look into.
    fn make() -> io::Result<Self> {
        for _ in 0..TRIES {
            let path = made_in(&places())?.keep();
            let mark = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(HOMES));
            let Some(mark) = mark.map(str::to_owned) else { continue };
            let Ok(held) = read::directory(&path) else { continue };
            // A sweep may have taken the directory for a dead one's before the lock was held.
            if held.try_lock().is_err() || !is_at(&held, &path) {
                continue;
            }
            File::create_new(path.join(ELSEWHERE))?;
            return Ok(Self { path, mark, noted: Vec::new(), _held: held });
        }
        Err(io::Error::other("another process removes temporary directories"))
    }

    /// Notes a directory, before anything is made in it.
    fn note(&mut self, directory: &Path) -> io::Result<()> {
        let directory = std::path::absolute(directory)?;
        if self.noted.contains(&directory) {
            return Ok(());
        }
        let line = [directory.as_os_str().as_bytes(), b"\0"].concat();
        read::append(&self.path.join(ELSEWHERE))?.write_all(&line)?;
        self.noted.push(directory);
        Ok(())
    }
}

/// Returns where temporary files may lie, the first that can be used: `TMPDIR`, and what every system has.
fn places() -> Vec<PathBuf> {
    let mut all = vec![std::env::temp_dir()];
    let usual = ["/tmp", "/var/tmp"].map(PathBuf::from);
    all.extend(usual.into_iter().filter(|place| *place != std::env::temp_dir()));
    all
}

/// Makes a directory in the first of some places where that can be.
fn made_in(places: &[PathBuf]) -> io::Result<TempDir> {
    let mut first = None;
    for place in places {
        let made = Builder::new().prefix(HOMES).rand_bytes(RANDOM).permissions(private()).tempdir_in(place);
        match made {
            Ok(made) => return Ok(made),
            // What is wrong with the place that was asked for says the most.
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Does something with the directory of this process, which is made when it is needed.
fn with_home<R>(what: impl FnOnce(&mut TempRoot) -> io::Result<R>) -> io::Result<R> {
    // A panic elsewhere leaves the list of directories as good as it was.
    let mut home = HOME.lock().unwrap_or_else(PoisonError::into_inner);
    // An action, or the system on its rounds through `/tmp`, may have removed it.
    if home.as_ref().is_none_or(|home| !home.path.is_dir()) {
        *home = Some(TempRoot::make()?);
    }
    match home.as_mut() {
        Some(home) => what(home),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Nobody else looks in.
fn private() -> Permissions {
    Permissions::from_mode(0o700)
}

/// Makes a temporary directory.
pub fn directory(prefix: &str) -> io::Result<TempDir> {
    with_home(|home| Builder::new().prefix(prefix).permissions(private()).tempdir_in(&home.path))
}

/// Makes a temporary file.
pub fn file(prefix: &str, suffix: &str) -> io::Result<NamedTempFile> {
    with_home(|home| Builder::new().prefix(prefix).suffix(suffix).tempfile_in(&home.path))
}

/// Makes a directory beside the place that its content will have. `prefix` is one of those that are looked for.
pub fn directory_in(prefix: &str, directory: &Path) -> io::Result<TempDir> {
    Builder::new().prefix(&marked(prefix, directory)).permissions(private()).tempdir_in(directory)
}

/// Makes a file beside the place that it will have.
pub fn file_in(mode: u32, directory: &Path) -> io::Result<NamedTempFile> {
    let prefix = marked(UNFINISHED, directory);
    Builder::new().prefix(&prefix).permissions(Permissions::from_mode(mode)).tempfile_in(directory)
}

/// Returns the beginning of a name in a directory. Where nothing temporary can be made, no file has it.
fn marked(prefix: &str, directory: &Path) -> String {
    let mark = with_home(|home| {
        home.note(directory)?;
        Ok(format!("{prefix}{}-", home.mark))
    });
    mark.unwrap_or_else(|_| prefix.to_owned())
}

/// Removes what this process has: it ends.
pub fn leave() {
    let home = HOME.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(home) = home {
        // The next command sweeps what could not be removed.
        let _left_to_others = std::fs::remove_dir_all(&home.path);
    }
}

/// Removes what processes have left that were killed.
pub fn sweep() {
    let entries = places().into_iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if let Some(mark) = name.to_str().and_then(|name| name.strip_prefix(HOMES)) {
            let _another_time = sweep_home(&entry.path(), mark);
        }
    }
}

/// Removes the directory of a process that is dead, and what it noted. The lock is held meanwhile.
fn sweep_home(path: &Path, mark: &str) -> io::Result<()> {
    if !is_ours(path) {
        return Ok(());
    }
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // In `/tmp` anybody can put a link in the place of a directory.
    let held = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    match held.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let elsewhere = path.join(ELSEWHERE);
    if !is_ours(&elsewhere) {
        // It is empty where its process had no time for more.
        return std::fs::remove_dir(path);
    }
    let noted = read::bytes(&elsewhere, MOST_ELSEWHERE).ok();
    let directories = noted.iter().flat_map(|noted| noted.split(|byte| *byte == 0));
    for directory in directories.filter(|directory| !directory.is_empty()) {
        sweep_marked(Path::new(OsStr::from_bytes(directory)), mark);
    }
    // What it started may not have heard yet, and write on.
    (0..TRIES)
        .try_for_each(|_| match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => Err(removed),
        })
        .err()
        .unwrap_or(Ok(()))
}

/// Removes what a dead process had begun in a directory.
fn sweep_marked(directory: &Path, mark: &str) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let begun = [UNFINISHED, PACKED, INCOMING].iter().find_map(|prefix| name.strip_prefix(prefix));
        let is_its =
            begun.is_some_and(|rest| rest.strip_prefix(mark).is_some_and(|rest| rest.starts_with('-')));
        if !is_its || !is_ours(&entry.path()) {
            continue;
        }
        let _another_time = match entry.file_type() {
            Ok(kind) if kind.is_dir() => std::fs::remove_dir_all(entry.path()),
            Ok(kind) if kind.is_file() => std::fs::remove_file(entry.path()),
            Ok(_) | Err(_) => Ok(()),
        };
    }
}

/// Tells whether something belongs to this user, and is not a link.
fn is_ours(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|found| !found.is_symlink() && found.uid() == rustix::process::geteuid().as_raw())
}

/// Tells whether a path still names an open directory.
fn is_at(open: &File, path: &Path) -> bool {
    let both = open.metadata().and_then(|open| Ok((open, std::fs::symlink_metadata(path)?)));
    both.is_ok_and(|(open, named)| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_place_cannot_be_used_the_next_one_is() {
        let (gone, there) = (PathBuf::from("/nonexistent/temporary"), tempfile::tempdir().unwrap());
        let made = made_in(&[gone.clone(), there.path().to_owned()]).unwrap();
        assert_eq!(made.path().parent(), Some(there.path()));
        let error = made_in(&[gone]).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/temporary"), "{error}");
        assert!(places().contains(&PathBuf::from("/var/tmp")));
    }

    #[test]
    fn nobody_else_looks_in_and_what_is_elsewhere_is_noted_first() {
        let place = tempfile::tempdir().unwrap();
        let made = directory("ll-test-").unwrap();
        let home = made.path().parent().unwrap();
        let beside = directory_in(PACKED, place.path()).unwrap();
        for path in [made.path(), home, beside.path()] {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", path.display());
        }
        let mark = home.file_name().unwrap().to_str().unwrap().strip_prefix(HOMES).unwrap();
        let name = beside.path().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("{PACKED}{mark}-")), "{name}");
        let noted = read::bytes(&home.join(ELSEWHERE), read::MIB).unwrap();
        assert!(noted.split(|byte| *byte == 0).any(|path| path == place.path().as_os_str().as_bytes()));
        // This process lives.
        sweep();
        assert!(made.path().exists() && beside.path().exists());
    }
}
