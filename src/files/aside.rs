//! Puts files of the working tree aside while the checks of the closing pass are asked with the judges of the start, and
//! puts them back byte for byte. What is done is on record before it is done, so that the next process can finish it after
//! any kill: a file is put back where it still is as the pass left it, and what somebody edited since stays.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::read::{self, Unread};
use super::replace;
use crate::base::file_mode::FileMode;
use crate::base::gitpath;
use crate::base::text::hex;

/// The name of the record in the directory of what was put aside.
const RECORD: &str = "record.json";

/// The largest file that is put aside, and the largest record.
const LARGEST: u64 = 64 << 20;

/// How often another second is waited for: on a file system whose times stand still it never comes.
const MOST_SECONDS: usize = 5;

/// What a path is to hold while checks are asked.
#[derive(Clone)]
pub struct Placed {
    /// The path from the top of the working tree, escaped as git does it.
    pub path: String,
    /// What is to stand there; nothing for a file that is taken out of the way.
    pub content: Option<(FileMode, Vec<u8>)>,
}

/// What was put aside, on disk.
#[derive(Serialize, Deserialize)]
struct AsideRecord {
    top: PathBuf,
    files: Vec<AsideFile>,
    /// The directories that were made for files, the outermost first.
    made: Vec<PathBuf>,
}

/// One path of it.
#[derive(Serialize, Deserialize)]
struct AsideFile {
    path: String,
    /// What stood there, whose content lies under this number beside the record.
    was: Option<Occupant>,
    /// What stands there meanwhile.
    placed: Option<Occupant>,
    /// Whether it stood where a directory is needed meanwhile.
    #[serde(default)]
    was_in_the_way: bool,
}

/// What stands at a path, so that it can be known again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Occupant {
    is_link: bool,
    /// The bits of the permissions; those of a link mean nothing.
    mode: u32,
    sha256: String,
}

impl Occupant {
    fn of(path: &Path) -> io::Result<Option<(Self, Vec<u8>)>> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (is_link, bytes) = if metadata.is_symlink() {
            (true, path.read_link()?.as_os_str().as_bytes().to_vec())
        } else if metadata.is_file() {
            (false, read::bytes(path, LARGEST)?)
        } else {
            return Err(io::Error::other(format!("{} is neither a file nor a link", path.display())));
        };
        let mode = if is_link { 0 } else { metadata.permissions().mode() & 0o7777 };
        Ok(Some((Self::new(is_link, mode, &bytes), bytes)))
    }

    fn new(is_link: bool, mode: u32, bytes: &[u8]) -> Self {
        Self { is_link, mode, sha256: hex(&Sha256::digest(bytes)) }
    }

    fn file_mode(&self) -> FileMode {
        match self.mode & 0o111 {
            _ if self.is_link => FileMode::Link,
            0 => FileMode::File,
            _ => FileMode::Executable,
        }
    }
}

/// Puts files aside, and what is to be there in their place. Nothing is changed before `directory` can undo it.
pub fn put_aside(directory: &Path, top: &Path, all: &[Placed]) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    let mut record = AsideRecord { top: top.to_owned(), files: Vec::new(), made: Vec::new() };
    let cleared_paths = in_the_way(top, all);
    let cleared = cleared_paths.iter().map(|path| Placed { path: path.clone(), content: None });
    let known = |placed: &&Placed| !cleared_paths.contains(&placed.path);
    let all: Vec<Placed> = cleared.chain(all.iter().filter(known).cloned()).collect();
    for (number, placed) in all.iter().enumerate() {
        let path = at(top, &placed.path);
        let is_below = |way: &String| path.starts_with(at(top, way)) && *way != placed.path;
        let is_behind = |folder: &Path| cleared_paths.iter().any(|way| folder.starts_with(at(top, way)));
        // What is seen through a link that goes stands elsewhere.
        let was = if cleared_paths.iter().any(is_below) { None } else { Occupant::of(&path)? };
        if let Some((_, bytes)) = &was {
            durable(&directory.join(number.to_string()), bytes)?;
        }
        let was = was.map(|(standing, _)| standing);
        let usual = was.as_ref().filter(|was| !was.is_link).map_or(0o644, |was| was.mode & !0o111);
        let standing = placed.content.as_ref().map(|(mode, bytes)| {
            // Executable for whoever may read it, as a checkout by git would make it.
            let bits =
                if *mode == FileMode::Executable { usual | (((usual >> 2) | 0o100) & 0o111) } else { usual };
            let is_link = *mode == FileMode::Link;
            Occupant::new(is_link, if is_link { 0 } else { bits }, bytes)
        });
        if standing.is_some() {
            let missing = path.ancestors().skip(1).take_while(|folder| is_behind(folder) || !folder.exists());
            let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
            missing.reverse();
            record.made.extend(
                missing.into_iter().filter(|folder| !record.made.contains(folder)).collect::<Vec<_>>(),
            );
        }
        let was_in_the_way = cleared_paths.contains(&placed.path);
        record.files.push(AsideFile { path: placed.path.clone(), was, placed: standing, was_in_the_way });
    }
    durable(&directory.join(RECORD), &serde_json::to_vec(&record)?)?;
    // A file survives a crash of the machine only if the entry in its directory does.
    read::directory(directory)?.sync_all()?;
    for (file, placed) in record.files.iter().zip(&all) {
        if let Some(folder) = at(top, &file.path).parent().filter(|_| file.placed.is_some()) {
            fs_err::create_dir_all(folder)?;
        }
        let bytes = placed.content.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        swap(directory, &at(top, &file.path), file.placed.as_ref(), bytes)?;
    }
    Ok(())
}

/// Puts everything back that still is as it was placed, and returns the paths that somebody edited since, which stay.
/// Nothing is done where nothing is put aside.
pub fn put_back(directory: &Path) -> io::Result<Vec<String>> {
    undone(directory, false)
}

/// Puts everything back, whatever stands there: by who put it aside, and knows that nobody but the checks has written
/// there meanwhile.
pub fn take_back(directory: &Path) -> io::Result<Vec<String>> {
    undone(directory, true)
}

/// Returns what is not as it was placed, while it is put aside. What was only taken out of the way may be made anew by a check.
pub fn replaced(directory: &Path) -> io::Result<Vec<String>> {
    let Some(record) = record(directory)? else { return Ok(Vec::new()) };
    let is_replaced = |file: &&AsideFile| {
        file.placed.as_ref().is_some_and(|placed| {
            let now = Occupant::of(&at(&record.top, &file.path));
            !now.is_ok_and(|now| now.is_some_and(|(standing, _)| standing == *placed))
        })
    };
    Ok(record.files.iter().filter(is_replaced).map(|file| file.path.clone()).collect())
}

/// A file that is put aside.
pub struct PutAside {
    /// The path from the top of the working tree, escaped as git does it.
    pub path: String,
    /// What is to stand there again; nothing where a file was placed that was not there.
    pub was: Option<(FileMode, Vec<u8>)>,
}

/// Returns what [`put_back`] would put back, and changes nothing.
pub fn to_put_back(directory: &Path) -> io::Result<Vec<PutAside>> {
    let Some(record) = record(directory)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (number, file) in record.files.iter().enumerate() {
        let now = Occupant::of(&at(&record.top, &file.path)).map(|found| found.map(|(standing, _)| standing));
        if now.is_ok_and(|now| now != file.was && now == file.placed) {
            let of = |was: &Occupant| {
                Ok((was.file_mode(), read::bytes(&directory.join(number.to_string()), LARGEST)?))
            };
            let was =
                file.was.as_ref().map(of).transpose().map_err(|error: Unread| io::Error::from(error))?;
            all.push(PutAside { path: file.path.clone(), was });
        }
    }
    Ok(all)
}

fn record(directory: &Path) -> io::Result<Option<AsideRecord>> {
    match read::bytes(&directory.join(RECORD), LARGEST) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(Unread::Absent) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn undone(directory: &Path, is_certain: bool) -> io::Result<Vec<String>> {
    let Some(record) = record(directory)? else {
        // Without a record nothing was changed.
        let _absent = std::fs::remove_dir_all(directory);
        return Ok(Vec::new());
    };
    let mut edited = Vec::new();
    // A link comes back when the directory that stood in its place is gone.
    let (ways, files): (Vec<_>, Vec<_>) =
        record.files.iter().enumerate().partition(|(_, file)| file.was_in_the_way);
    undo(directory, is_certain, &record.top, files, &mut edited)?;
    for folder in record.made.iter().rev() {
        let _not_empty = std::fs::remove_dir(folder);
    }
    undo(directory, is_certain, &record.top, ways, &mut edited)?;
    // The record goes first: without it, nothing is put back again.
    fs_err::remove_file(directory.join(RECORD))?;
    let _best_effort = std::fs::remove_dir_all(directory);
    Ok(edited)
}

fn undo(
    directory: &Path,
    is_certain: bool,
    top: &Path,
    files: Vec<(usize, &AsideFile)>,
    edited: &mut Vec<String>,
) -> io::Result<()> {
    for (number, file) in files {
        // What is seen there is elsewhere, and nothing is written or removed through a link.
        if is_barred(top, &file.path) {
            edited.extend(file.was.is_some().then(|| file.path.clone()));
            continue;
        }
        let path = at(top, &file.path);
        let now = Occupant::of(&path).map(|found| found.map(|(standing, _)| standing));
        match now {
            Ok(now) if now == file.was => {}
            Ok(now) if now == file.placed || is_certain => {
                let bytes = match &file.was {
                    Some(_) => read::bytes(&directory.join(number.to_string()), LARGEST)?,
                    None => Vec::new(),
                };
                if let Some(folder) = path.parent().filter(|_| file.was.is_some()) {
                    // Git keeps no empty directories, and neither does who cleans up after a check.
                    fs_err::create_dir_all(folder)?;
                }
                swap(directory, &path, file.was.as_ref(), &bytes)?;
            }
            Ok(_) | Err(_) => edited.push(file.path.clone()),
        }
    }
    Ok(())
}

/// Returns what stands where a directory has to be: a link to another one, or a file. Nothing may be written through it.
fn in_the_way(top: &Path, all: &[Placed]) -> Vec<String> {
    let mut found = Vec::new();
    for placed in all.iter().filter(|placed| placed.content.is_some()) {
        let path = at(top, &placed.path);
        let outermost = parents(top, &path).filter(|parent| is_no_directory(parent)).last();
        if let Some(way) = outermost.and_then(|way| way.strip_prefix(top).ok()) {
            let way = gitpath::to_text(way.as_os_str().as_bytes());
            if !found.contains(&way) {
                found.push(way);
            }
        }
    }
    found
}

/// Tells whether something that is no directory stands on the way to a path.
fn is_barred(top: &Path, path: &str) -> bool {
    parents(top, &at(top, path)).any(is_no_directory)
}

/// Returns the directories that a path leads through, the innermost first.
fn parents<'p>(top: &'p Path, path: &'p Path) -> impl Iterator<Item = &'p Path> {
    path.ancestors().skip(1).take_while(move |folder| *folder != top)
}

fn is_no_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir())
}

/// Finishes what killed runs have left in the directory of all runs. Returns each run with the paths that stay as somebody
/// edited them.
pub fn recover(running: &Path, is_live: impl Fn(&str) -> bool) -> Vec<(String, io::Result<Vec<String>>)> {
    let entries = std::fs::read_dir(running).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(run) = name.strip_suffix(SUFFIX) else { continue };
        if !is_live(run) && entry.path().join(RECORD).exists() {
            all.push((run.to_owned(), put_back(&entry.path())));
        }
    }
    all
}

/// How the directory is named in which a run puts files aside, after the run.
pub const SUFFIX: &str = ".aside";

/// The same for a merge, after the plan.
pub const OF_MERGES: &str = ".merged";

/// Tells that a merge is at work with a directory, for as long as it is kept.
pub struct AtWork {
    path: PathBuf,
    /// Keeps the lock, which ends with the process.
    _file: std::fs::File,
}

impl AtWork {
    /// Begins work with a directory; nothing where somebody else is at work with it.
    pub fn begin(directory: &Path) -> io::Result<Option<Self>> {
        let path = lock_of(directory);
        fs_err::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let mut options = fs_err::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Through a planted link, the lock would be made in a place of somebody else's choice.
        let file = read::open_with(&path, &mut options, rustix::fs::OFlags::NOFOLLOW)?;
        match file.try_lock() {
            // Whoever was at work before has removed it since, and the next one makes another: this lock would keep nobody away.
            Ok(()) if !is_at(&file, &path) => Ok(None),
            Ok(()) => Ok(Some(Self { path, _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// Tells whether a path still names an open file.
fn is_at(open: &std::fs::File, path: &Path) -> bool {
    let both = open.metadata().and_then(|open| Ok((open, path.symlink_metadata()?)));
    both.is_ok_and(|(open, named)| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

fn lock_of(directory: &Path) -> PathBuf {
    let mut name = directory.as_os_str().to_owned();
    name.push(".lock-of-merge");
    PathBuf::from(name)
}

/// Finishes what killed merges have left in the directory of all runs. Returns each with the paths that stay as somebody
/// edited them.
pub fn recover_merges(running: &Path) -> Vec<(String, io::Result<Vec<String>>)> {
    let entries = std::fs::read_dir(running).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.ends_with(OF_MERGES) || !entry.path().join(RECORD).exists() {
            continue;
        }
        if let Ok(Some(_at_work)) = AtWork::begin(&entry.path()) {
            all.push((name, put_back(&entry.path())));
        }
    }
    all
}

fn at(top: &Path, path: &str) -> PathBuf {
    top.join(OsStr::from_bytes(&gitpath::to_bytes(path)))
}

/// Writes a file that is there after a loss of power.
fn durable(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace::replace_with(path, |file| {
        file.write_all(bytes)?;
        file.sync_all()
    })
}

/// Lets a path hold something else, in one step and with a new time: tools that build would trust what they made of the
/// other content by an old one. Python knows sources by their size and the whole second, so it is another second.
fn swap(directory: &Path, path: &Path, standing: Option<&Occupant>, bytes: &[u8]) -> io::Result<()> {
    let Some(standing) = standing else {
        return match fs_err::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    };
    let new = directory.join("new");
    let _absent = std::fs::remove_file(&new);
    if standing.is_link {
        symlink(OsStr::from_bytes(bytes), &new)?;
    } else {
        durable(&new, bytes)?;
        // Less than a second, once for all files that are swapped together: what they replace was there before. The clock of
        // a file system may be some milliseconds late.
        for _ in 0..MOST_SECONDS {
            let (Some(before), Some(now)) = (changed_at(path), changed_at(&new)) else { break };
            if before.as_secs() != now.as_secs() {
                break;
            }
            std::thread::sleep(
                Duration::from_secs(1).saturating_sub(Duration::from_nanos(now.subsec_nanos().into())),
            );
            durable(&new, bytes)?;
        }
        fs_err::set_permissions(&new, std::fs::Permissions::from_mode(standing.mode))?;
    }
    fs_err::rename(&new, path)
}

/// Returns when a file was changed last, as the file system says it.
fn changed_at(path: &Path) -> Option<Duration> {
    path.symlink_metadata().ok()?.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn of_many_that_come_and_go_one_is_at_work() {
        let place = TempDir::new().unwrap();
        let (directory, inside) = (place.path().join("x.merged"), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let Some(at_work) = AtWork::begin(&directory).unwrap() else { continue };
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two are at work");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(at_work);
                    }
                });
            }
        });
    }

    fn tree() -> TempDir {
        let top = TempDir::new().unwrap();
        for (path, text, mode) in
            [("test.sh", "exit 0\n", 0o755), ("odd.txt", "a\r\nb", 0o640), ("conftest.py", "x", 0o644)]
        {
            std::fs::write(top.path().join(path), text).unwrap();
            std::fs::set_permissions(top.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        symlink("test.sh", top.path().join("link")).unwrap();
        top
    }

    /// Everything that stands in a tree: paths, kinds, modes and contents.
    fn all(top: &Path) -> Vec<(String, Option<Occupant>)> {
        let mut found: Vec<_> = std::fs::read_dir(top)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let standing = if entry.path().is_dir() && !entry.path().is_symlink() {
                    None
                } else {
                    Occupant::of(&entry.path()).unwrap().map(|(standing, _)| standing)
                };
                (entry.file_name().to_string_lossy().into_owned(), standing)
            })
            .collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    fn placed() -> Vec<Placed> {
        let file = |path: &str, content: Option<(FileMode, &str)>| Placed {
            path: path.to_owned(),
            content: content.map(|(mode, text)| (mode, text.as_bytes().to_vec())),
        };
        vec![
            file("test.sh", Some((FileMode::Executable, "exit 1\n"))),
            file("odd.txt", Some((FileMode::File, "c"))),
            file("conftest.py", None),
            file("link", Some((FileMode::Link, "odd.txt"))),
            file("gone/deep/test.py", Some((FileMode::File, "assert True\n"))),
        ]
    }

    #[test]
    fn everything_is_put_back_byte_for_byte() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        let aside = aside.path().join("run.aside");
        let before = all(top.path());
        put_aside(&aside, top.path(), &placed()).unwrap();
        assert_eq!(std::fs::read_to_string(top.path().join("test.sh")).unwrap(), "exit 1\n");
        assert!(!top.path().join("conftest.py").exists() && top.path().join("gone/deep/test.py").exists());
        assert_eq!(put_back(&aside).unwrap(), Vec::<String>::new());
        assert_eq!(all(top.path()), before);
        assert!(!aside.exists());
        // Once more changes nothing.
        assert_eq!(put_back(&aside).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_somebody_edited_since_stays_and_is_named() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        put_aside(aside.path(), top.path(), &placed()).unwrap();
        std::fs::write(top.path().join("odd.txt"), "mine").unwrap();
        std::fs::write(top.path().join("conftest.py"), "mine too").unwrap();
        assert_eq!(put_back(aside.path()).unwrap(), ["odd.txt", "conftest.py"]);
        assert_eq!(std::fs::read_to_string(top.path().join("odd.txt")).unwrap(), "mine");
        assert_eq!(std::fs::read_to_string(top.path().join("test.sh")).unwrap(), "exit 0\n");
    }

    #[test]
    fn everything_has_a_new_time_afterwards() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        let path = top.path().join("test.sh");
        let old = std::fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
        std::fs::File::options().write(true).open(&path).unwrap().set_times(old).unwrap();
        put_aside(aside.path(), top.path(), &placed()).unwrap();
        put_back(aside.path()).unwrap();
        let time = path.metadata().unwrap().modified().unwrap();
        assert_ne!(time, std::time::SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn what_takes_a_place_is_of_another_second() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        let path = top.path().join("test.sh");
        let second_of = |path: &Path| changed_at(path).unwrap().as_secs();
        let first = second_of(&path);
        put_aside(aside.path(), top.path(), &placed()).unwrap();
        let between = second_of(&path);
        assert_ne!(between, first);
        put_back(aside.path()).unwrap();
        assert_ne!(second_of(&path), between);
    }

    #[test]
    fn who_is_certain_takes_back_what_checks_have_written() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        let before = all(top.path());
        put_aside(aside.path(), top.path(), &placed()).unwrap();
        std::fs::write(top.path().join("conftest.py"), "made anew").unwrap();
        assert_eq!(take_back(aside.path()).unwrap(), Vec::<String>::new());
        assert_eq!(all(top.path()), before);
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        std::fs::create_dir(top.path().join("hollow")).unwrap();
        std::fs::write(top.path().join("hollow/test.py"), "pass").unwrap();
        symlink("hollow", top.path().join("tests")).unwrap();
        std::fs::write(top.path().join("spec"), "a file").unwrap();
        let before = all(top.path());
        let file = |path: &str| Placed {
            path: path.to_owned(),
            content: Some((FileMode::File, b"assert False\n".to_vec())),
        };
        let placed = [file("tests/test.py"), file("tests/deep/test.py"), file("spec/a.py")];
        put_aside(aside.path(), top.path(), &placed).unwrap();
        assert!(!top.path().join("tests").is_symlink() && top.path().join("tests/deep/test.py").is_file());
        assert_eq!(std::fs::read_to_string(top.path().join("hollow/test.py")).unwrap(), "pass");
        assert_eq!(put_back(aside.path()).unwrap(), Vec::<String>::new());
        assert_eq!(all(top.path()), before);
        assert_eq!(std::fs::read_to_string(top.path().join("tests/test.py")).unwrap(), "pass");
    }

    #[test]
    fn nothing_is_put_back_through_a_link_that_a_check_made_of_a_directory() {
        let (top, aside, outside) = (tree(), TempDir::new().unwrap(), TempDir::new().unwrap());
        std::fs::create_dir(top.path().join("tests")).unwrap();
        for (path, text) in [("tests/hook", "mine"), ("tests/old.py", "1"), ("spec.py", "2")] {
            std::fs::write(top.path().join(path), text).unwrap();
        }
        let file = |path: &str, text: Option<&str>| Placed {
            path: path.to_owned(),
            content: text.map(|text| (FileMode::File, text.as_bytes().to_vec())),
        };
        let placed = [
            file("tests/hook", Some("first")),
            file("tests/old.py", None),
            file("tests/new.py", Some("")),
            file("spec.py", Some("first")),
        ];
        put_aside(aside.path(), top.path(), &placed).unwrap();
        std::fs::remove_dir_all(top.path().join("tests")).unwrap();
        symlink(outside.path(), top.path().join("tests")).unwrap();
        std::fs::write(outside.path().join("new.py"), "of somebody else").unwrap();
        assert_eq!(take_back(aside.path()).unwrap(), ["tests/hook", "tests/old.py"]);
        assert_eq!(all(outside.path()).len(), 1, "{:?}", all(outside.path()));
        assert_eq!(std::fs::read_to_string(top.path().join("spec.py")).unwrap(), "2");
    }

    #[test]
    fn a_directory_that_is_gone_is_made_again() {
        for back in [put_back, take_back] {
            let (top, aside) = (tree(), TempDir::new().unwrap());
            std::fs::create_dir(top.path().join("tests")).unwrap();
            std::fs::write(top.path().join("tests/conftest.py"), "x").unwrap();
            let hidden = Placed { path: "tests/conftest.py".to_owned(), content: None };
            put_aside(aside.path(), top.path(), &[hidden]).unwrap();
            std::fs::remove_dir(top.path().join("tests")).unwrap();
            assert_eq!(back(aside.path()).unwrap(), Vec::<String>::new());
            assert_eq!(std::fs::read_to_string(top.path().join("tests/conftest.py")).unwrap(), "x");
        }
    }

    #[test]
    fn a_kill_before_a_link_was_cleared_leaves_alone_what_lies_behind_it() {
        let (top, aside) = (tree(), TempDir::new().unwrap());
        std::fs::create_dir(top.path().join("hollow")).unwrap();
        std::fs::write(top.path().join("hollow/test.py"), "pass").unwrap();
        symlink("hollow", top.path().join("tests")).unwrap();
        let file = Placed {
            path: "tests/test.py".to_owned(),
            content: Some((FileMode::File, b"assert False\n".to_vec())),
        };
        put_aside(aside.path(), top.path(), &[file]).unwrap();
        std::fs::remove_dir_all(top.path().join("tests")).unwrap();
        symlink("hollow", top.path().join("tests")).unwrap();
        assert_eq!(take_back(aside.path()).unwrap(), Vec::<String>::new());
        assert_eq!(std::fs::read_to_string(top.path().join("hollow/test.py")).unwrap(), "pass");
    }

    /// What a process leaves that was killed after so many swaps, here and on the way back.
    #[test]
    fn after_a_kill_anywhere_the_tree_is_what_it_was() {
        for done in 0..=placed().len() {
            for undone in 0..=done {
                let (top, aside) = (tree(), TempDir::new().unwrap());
                let before = all(top.path());
                put_aside(aside.path(), top.path(), &placed()).unwrap();
                let record: AsideRecord =
                    serde_json::from_slice(&std::fs::read(aside.path().join(RECORD)).unwrap()).unwrap();
                // The last swaps had not come, and the first ones are undone already.
                for (number, file) in record.files.iter().enumerate() {
                    if number >= done || number < undone {
                        let bytes = std::fs::read(aside.path().join(number.to_string())).unwrap_or_default();
                        swap(aside.path(), &at(top.path(), &file.path), file.was.as_ref(), &bytes).unwrap();
                    }
                }
                assert_eq!(put_back(aside.path()).unwrap(), Vec::<String>::new());
                assert_eq!(all(top.path()), before, "{done} {undone}");
            }
        }
    }
}
