//! Claims: records which runs are alive, and reserves paths for each of them.
//!
//! A claim is a file that its run keeps locked for as long as it lives, in the git directory or in `.loops/.running`
//! (see `place`): `<instance>.lock` while
//! it runs, `<instance>.wait` while it stands in the queue. The kernel drops the lock when the process ends, however
//! it ends, so a claim is valid if, and only if, its lock is held; files that a killed process left behind
//! are invalid, and the next run that makes a claim removes them. A file is written before it
//! gets its name, and locked before that, so a visible claim is always complete and locked.
//!
//! Comparing all claims and adding one happens under one short lock, `.mutex` beside them, which waiting runs do not
//! hold. All functions are given `.loops/.running`.
//!
//! For other modules:
//!
//! - [`take`] is called before the first event of a new or resumed run, and returns the runs in the way.
//! - [`Claim`] is kept until the last file of the run is written. Dropping it releases it.
//! - [`find`] tells whether a run is alive, [`live`] which ones are; both look at locks, never at process ids.
//! - [`watch`] blocks until a run has ended.

pub mod claim_place;
pub(crate) mod claim_record;
pub(crate) mod rule;

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use claim_record::{ClaimRecord, Pass};
pub use rule::{ClaimStanding, Live};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::files::read::{self, Unread};

/// The lock under which claims are compared and taken.
const MUTEX: &str = ".mutex";

/// The largest claim that is read, in bytes.
const MAX_RECORD: u64 = read::MIB;

/// How long to wait for it. Others hold it for milliseconds, unless one was suspended (SIGSTOP) while it held it.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often, and at what interval, a run has to be in the way before a new one is refused. A run that was killed
/// while it forked leaves its lock to the child until that calls `exec`, so the first look may mislead.
const TRIES: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(10);

/// The same where the process of every such run is gone, on a machine that has more to do than it can.
const TRIES_AFTER_DEATH: u32 = 60;
const BETWEEN_AFTER_DEATH: Duration = Duration::from_millis(50);

/// The prefix of files that will become claims when they are renamed.
const UNBORN: &str = ".claim-";

const HOLDS: &str = ".lock";
const WAITS: &str = ".wait";

/// A request for a claim.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The content of the claim. [`take`] fills in the order of arrival, the ancestors and the secret.
    pub record: ClaimRecord,
    /// The pass from the environment, if an action of another run started this one.
    pub pass: Option<Pass>,
    /// Whether it waits for its turn.
    pub queue: bool,
}

/// The result of a request.
#[derive(Debug)]
#[must_use]
pub enum Taken {
    /// It may begin.
    Held(Claim),
    /// It waits for its turn.
    Queued(Ticket),
    /// It may not begin: these runs, at least one, are in the way.
    Refused(Vec<Live>),
    /// It may not wait: these runs wait for the run that started it.
    Circle(Vec<Live>),
    /// Another process runs it already.
    Runs(Live),
}

/// The right to run, until it is dropped.
#[derive(Debug)]
pub struct Claim {
    /// Dropped to release the claim.
    _file: LockedClaim,
    pass: Pass,
    ancestors: Vec<String>,
}

impl Claim {
    /// Returns what the actions of the run carry in their environment.
    pub fn pass(&self) -> &Pass {
        &self.pass
    }

    /// Returns the runs around it, whose actions have started it.
    pub fn ancestors(&self) -> &[String] {
        &self.ancestors
    }
}

/// A place in the queue.
#[derive(Debug)]
pub struct Ticket {
    directory: PathBuf,
    record: ClaimRecord,
    file: LockedClaim,
    pass: Pass,
}

/// The result of looking at the queue.
#[derive(Debug)]
#[must_use]
pub enum QueueTurn {
    /// The run may begin.
    Now(Claim),
    /// These runs, at least one, come first.
    Later(Box<Ticket>, Vec<Live>),
}

impl Ticket {
    /// Checks whether it is this run's turn.
    pub fn look(mut self) -> io::Result<QueueTurn> {
        let _mutex = lock(&claim_place::of(&self.directory))?;
        let live = alive(scan(&self.directory)?);
        let ahead = rule::in_the_way(&self.record, &live);
        if !ahead.is_empty() {
            let ahead = ahead.into_iter().cloned().collect();
            return Ok(QueueTurn::Later(Box::new(self), ahead));
        }
        // The file is renamed and stays locked, so processes that wait for its lock go on waiting.
        self.file.rename(name(&self.record.instance, HOLDS))?;
        Ok(QueueTurn::Now(Claim { _file: self.file, pass: self.pass, ancestors: self.record.ancestors }))
    }
}

/// Claims what a run wants, before its first event.
pub fn take(directory: &Path, wanted: ClaimRequest) -> io::Result<Taken> {
    let (mut tries, mut most) = (1, TRIES);
    while tries < most {
        let taken = try_to_take(directory, wanted.clone())?;
        let ahead = match &taken {
            Taken::Refused(ahead) => ahead.as_slice(),
            Taken::Runs(same) => std::slice::from_ref(same),
            Taken::Held(_) | Taken::Queued(_) | Taken::Circle(_) => return Ok(taken),
        };
        let are_dead = ahead.iter().all(is_dead);
        most = if are_dead { TRIES_AFTER_DEATH } else { TRIES };
        tries += 1;
        std::thread::sleep(if are_dead { BETWEEN_AFTER_DEATH } else { BETWEEN });
    }
    try_to_take(directory, wanted)
}

/// Waits until no run is known as alive because of a child that it left when it was killed.
pub fn outlive_children(directory: &Path) -> io::Result<()> {
    for _ in 1..TRIES_AFTER_DEATH {
        if !live(directory)?.iter().any(is_dead) {
            break;
        }
        std::thread::sleep(BETWEEN_AFTER_DEATH);
    }
    Ok(())
}

/// Tells whether the process of a run is gone, of this machine. In another namespace a process may have another number, so
/// this says nothing about the run: only its lock does.
fn is_dead(run: &Live) -> bool {
    let Some(record) = &run.record else { return false };
    let pid = i32::try_from(record.pid).ok().and_then(Pid::from_raw);
    record.host == rustix::system::uname().nodename().to_string_lossy()
        && pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn try_to_take(directory: &Path, wanted: ClaimRequest) -> io::Result<Taken> {
    let ClaimRequest { mut record, pass, queue } = wanted;
    let place = claim_place::of(directory);
    // Held until the claim is there: between looking and claiming there must be no gap.
    let _mutex = lock(&place)?;
    let found = scan(directory)?;
    sweep(directory, &found);
    let live = alive(found);
    if let Some(same) = live.iter().find(|other| other.instance == record.instance) {
        return Ok(Taken::Runs(same.clone()));
    }
    let places = live.iter().filter_map(|other| other.record.as_ref()).map(|other| other.place);
    record.place = places.max().unwrap_or(0) + 1;
    record.ancestors = pass.iter().flat_map(|pass| ancestors(pass, &live)).collect();
    let pass = Pass::new(&record.instance);
    record.secret = pass.digest();
    let ahead: Vec<Live> = rule::in_the_way(&record, &live).into_iter().cloned().collect();
    if ahead.is_empty() {
        let file = LockedClaim::create(&place, &record, HOLDS)?;
        return Ok(Taken::Held(Claim { _file: file, pass, ancestors: record.ancestors }));
    }
    if !queue {
        return Ok(Taken::Refused(ahead));
    }
    if rule::waits_for_itself(&record, &live) {
        return Ok(Taken::Circle(ahead));
    }
    let file = LockedClaim::create(&place, &record, WAITS)?;
    Ok(Taken::Queued(Ticket { directory: directory.to_owned(), record, file, pass }))
}

/// Names the claim that cannot be read. It is not skipped, because its run may be alive.
fn unusable(path: &Path, unread: Unread) -> io::Error {
    let error = io::Error::from(unread);
    io::Error::new(error.kind(), format!("the claim {} cannot be read: {error}", path.display()))
}

/// Returns the runs that are alive, in the order of arrival.
pub fn live(directory: &Path) -> io::Result<Vec<Live>> {
    Ok(alive(scan(directory)?))
}

/// Returns a run if it is alive.
pub fn find(directory: &Path, instance: &str) -> io::Result<Option<Live>> {
    Ok(live(directory)?.into_iter().find(|run| run.instance == instance))
}

/// Returns the runs whose processes ended without releasing their claims.
pub fn dead(directory: &Path) -> io::Result<Vec<String>> {
    let found = scan(directory)?.into_iter();
    Ok(found.filter(|found| !found.is_live).map(|found| found.run.instance).collect())
}

/// Blocks on the lock of a run until it has ended. Returns early if the system cannot wait, or if
/// the run leaves the queue at this moment, so the caller has to check again.
pub fn watch(directory: &Path, run: &Live) {
    // Shared: many may wait for the end of the same run.
    let waited =
        read::open(&file(directory, run)).map_err(io::Error::from).and_then(|file| file.lock_shared());
    // A file that is gone means a change, to be looked at without a pause. After any other error, the caller would spin.
    if waited.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the file that a run keeps locked.
pub fn file(directory: &Path, run: &Live) -> PathBuf {
    let suffix = match run.standing {
        ClaimStanding::Holds => HOLDS,
        ClaimStanding::Waits => WAITS,
    };
    let name = name(&run.instance, suffix);
    let mut paths = claim_place::all(directory).into_iter().map(|place| place.join(&name));
    paths.find(|path| path.exists()).unwrap_or_else(|| directory.join(&name))
}

fn name(instance: &str, suffix: &str) -> String {
    format!("{instance}{suffix}")
}

/// Returns the runs around a new one, the outermost first, if its pass is that of a live run.
fn ancestors(pass: &Pass, live: &[Live]) -> Vec<String> {
    let mut records = live.iter().filter_map(|run| run.record.as_ref());
    let around = records.find(|record| pass.is_of(record));
    around
        .map_or_else(Vec::new, |record| record.ancestors.iter().chain([&record.instance]).cloned().collect())
}

/// A claim file, its lock held.
#[derive(Debug)]
struct LockedClaim {
    path: PathBuf,
    /// Keeps the lock. Children do not inherit it, because the standard library opens files with `O_CLOEXEC`.
    _file: File,
}

impl LockedClaim {
    fn create(directory: &Path, record: &ClaimRecord, suffix: &str) -> io::Result<Self> {
        // Readable and writable as the umask says: other users open it too, to wait for its lock.
        let mut unborn = tempfile::Builder::new()
            .prefix(UNBORN)
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        unborn.as_file().try_lock()?;
        let mut text = serde_json::to_vec(record)?;
        text.push(b'\n');
        unborn.write_all(&text)?;
        let path = directory.join(name(&record.instance, suffix));
        let file = unborn.persist(&path)?;
        if !is_at(&file, &path) {
            return Err(removed(&path));
        }
        Ok(Self { path, _file: file })
    }

    fn rename(&mut self, name: String) -> io::Result<()> {
        let path = self.path.with_file_name(name);
        fs_err::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }
}

impl Drop for LockedClaim {
    /// Removes the file while its lock is held, so that no process takes it for the claim of a killed run.
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// Tells whether a path still names an open file. The lock of one that was removed meanwhile protects nothing.
fn is_at(file: &File, path: &Path) -> bool {
    let both = file.metadata().and_then(|open| Ok((open, std::fs::metadata(path)?)));
    both.is_ok_and(|(open, named)| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

fn removed(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("somebody removed {} at this moment", path.display()))
}

/// A claim file.
struct FoundClaim {
    run: Live,
    is_live: bool,
    path: PathBuf,
}

/// Reads all claims.
fn scan(directory: &Path) -> io::Result<Vec<FoundClaim>> {
    let mut all = Vec::new();
    for place in claim_place::all(directory) {
        all.extend(scan_place(&place)?);
    }
    Ok(all)
}

fn scan_place(directory: &Path) -> io::Result<Vec<FoundClaim>> {
    let entries = match fs_err::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut all = Vec::new();
    for entry in entries {
        let file_name = entry?.file_name().to_string_lossy().into_owned();
        let suffixes = [(HOLDS, ClaimStanding::Holds), (WAITS, ClaimStanding::Waits)];
        let mut known = suffixes
            .into_iter()
            .filter_map(|(suffix, standing)| Some((file_name.strip_suffix(suffix)?, standing)));
        if let Some((instance, standing)) = known.next() {
            all.extend(look(&directory.join(&file_name), instance, standing)?);
        }
    }
    Ok(all)
}

/// Reads one claim, or returns `None` if it was released in the meantime.
fn look(path: &Path, instance: &str, standing: ClaimStanding) -> io::Result<Option<FoundClaim>> {
    let file = match read::open(path) {
        Ok(file) => file,
        Err(Unread::Absent) => return Ok(None),
        Err(unread) => return Err(unusable(path, unread)),
    };
    // Shared, so that two that look at once do not take each other for the run.
    let is_live = match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    let mut text = String::new();
    let read = file.take(MAX_RECORD).read_to_string(&mut text);
    // Without a record, the run is in the way of every other one (see `rule`): its claim is unknown, not empty.
    let record = read.ok().and_then(|_| serde_json::from_str(&text).ok());
    let run = Live { instance: instance.to_owned(), standing, record };
    Ok(Some(FoundClaim { run, is_live, path: path.to_owned() }))
}

/// Returns the runs that are alive, in the order in which they came.
fn alive(found: Vec<FoundClaim>) -> Vec<Live> {
    let live = found.into_iter().filter(|found| found.is_live).map(|found| found.run);
    let mut live: Vec<Live> = live.collect();
    let place = |run: &Live| run.record.as_ref().map_or(0, |record| record.place);
    live.sort_by_key(|run| (place(run), run.instance.clone(), run.standing == ClaimStanding::Waits));
    // A run that leaves the queue renames its file, so a listing may have both names.
    live.dedup_by(|later, earlier| later.instance == earlier.instance);
    live
}

/// Removes the files of killed runs. Failures are ignored, because dead claims do no harm.
fn sweep(directory: &Path, found: &[FoundClaim]) {
    for dead in found.iter().filter(|found| !found.is_live) {
        let _gone = std::fs::remove_file(&dead.path);
        // Everything else stays, because a killed run can be resumed.
        for left in ["pid", "reserve"] {
            let _gone = std::fs::remove_file(directory.join(format!("{}.{left}", dead.run.instance)));
        }
    }
    // This process holds the lock under which claims are made, so whoever began this file is dead.
    let entries = std::fs::read_dir(claim_place::of(directory)).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNBORN)) {
        let _gone = std::fs::remove_file(entry.path());
    }
}

/// Takes the lock under which claims are compared and taken.
fn lock(directory: &Path) -> io::Result<File> {
    lock_within(directory, PATIENCE)
}

fn lock_within(directory: &Path, patience: Duration) -> io::Result<File> {
    let path = directory.join(MUTEX);
    let open = || -> io::Result<File> {
        let mut options = fs_err::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        read::open_with(&path, &mut options, OFlags::empty())
    };
    let mut file = open()?;
    let mut waited = Duration::ZERO;
    loop {
        // Tried again and again, because the kernel waits for a lock without a limit of time.
        match file.try_lock() {
            Ok(()) if is_at(&file, &path) => return Ok(file),
            Ok(()) => file = open()?,
            Err(TryLockError::WouldBlock) if waited < patience => {
                let pause = Duration::from_millis(1);
                std::thread::sleep(pause);
                waited += pause;
            }
            Err(TryLockError::WouldBlock) => {
                let why = format!("another ll-loop has kept {} locked for too long", path.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
