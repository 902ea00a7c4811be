//! The store: `.loops/.reuse/LOOP/DEFINITION-KEY-ORIGIN.json`. Nothing is read there through a link, and no file that git
//! tracks, for whoever wrote the commit would have written the record. Beside the records of a loop lie the verdicts of its
//! checks: `.loops/.reuse/LOOP/ORIGIN.verdicts`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::eviction::{StoredFile, evicted};
use super::key::KeyParts;
use super::origin::RunOrigin;
use super::record::{LARGEST, NotTaken, ReuseRecord, WantedRecord};
use super::record_difference::RecordDifference;
use super::verdict_table::VerdictTable;
use crate::base::name::LoopName;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::files::file_name::file_name;
use crate::files::read;
use crate::files::replace::{create, replace};
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::runner::Git;

/// The folder in `.loops`.
pub const FOLDER: &str = ".reuse";

/// How many records of a loop are compared, the newest first, to say what differs.
const MOST_COMPARED: usize = 8;

/// How many digits of the digest of a definition stand in a name.
const DIGITS: usize = 16;

/// The extension of the verdicts of checks.
const VERDICTS: &str = "verdicts";

/// The file by which two runs that end at the same time take turns.
const TURN: &str = "verdicts.lock";

/// What keeps git from taking records for the user's files.
const IGNORE: &str = "# Written by ll-loop: results of runs are not part of the repository.\n*\n";

/// The store of a directory with loops.
#[derive(Clone, Debug)]
pub struct ReuseStore {
    loops: PathBuf,
    git: Git,
}

/// What was found for a key.
pub enum FoundRecord {
    /// A record that may be taken.
    Hit(Box<ReuseRecord>),
    /// None.
    Miss {
        /// Why each record of this key was not taken.
        refused: Vec<NotTaken>,
        /// What differs from the nearest other one.
        nearest: Option<RecordDifference>,
    },
}

/// A record as `reuse list` shows it.
pub struct ListedRecord {
    /// Its file, below the store.
    pub file: String,
    /// What is in it.
    pub record: Result<ReuseRecord, NotTaken>,
}

impl ReuseStore {
    /// Makes the store of `.loops`, whose repository git looks at.
    pub fn new(loops: &Path, git: &Git) -> Self {
        Self { loops: loops.to_owned(), git: git.at(loops.parent().unwrap_or(loops)) }
    }

    /// Returns the `.loops` that it is of.
    pub fn loops(&self) -> &Path {
        &self.loops
    }

    /// Returns the folder.
    pub fn folder(&self) -> PathBuf {
        self.loops.join(FOLDER)
    }

    /// Looks for a record that a run may take.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(
        &self,
        wanted: &WantedRecord<'_>,
        parts: &KeyParts,
        tracked: &TrackedRecords,
    ) -> Result<FoundRecord, StoreError> {
        let name = &wanted.machine.name;
        let folder = self.folder().join(name.file_stem());
        let mut files = self.files(&folder)?;
        files.retain(|file| !is_verdicts(&file.place));
        if files.is_empty() {
            return Ok(FoundRecord::Miss { refused: Vec::new(), nearest: None });
        }
        files.sort_by_key(|file| std::cmp::Reverse(file.written));
        let key = wanted.key.to_string();
        let mut refused = Vec::new();
        let mut hit: Option<ReuseRecord> = None;
        // The name only narrows the search: the key is made again from what is in the record.
        for file in files.iter().filter(|file| file_name(&file.place).contains(&key)) {
            let taken =
                Self::taken(&file.place, tracked).and_then(|record| record.check(wanted).map(|()| record));
            match taken {
                // By the time in the record: that of its file may be when a cache or a fetch brought it.
                Ok(record) if hit.as_ref().is_none_or(|known| known.run.when < record.run.when) => {
                    hit = Some(record);
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        if let Some(hit) = hit {
            return Ok(FoundRecord::Hit(Box::new(hit)));
        }
        let others =
            files.iter().take(MOST_COMPARED).filter_map(|file| Self::taken(&file.place, tracked).ok());
        let others = others.filter(|record| wanted.origin.may_take(&record.origin));
        let differences = others.filter_map(|record| RecordDifference::between(&record, parts));
        Ok(FoundRecord::Miss { refused, nearest: differences.min_by_key(RecordDifference::count) })
    }

    fn taken(file: &Path, tracked: &TrackedRecords) -> Result<ReuseRecord, NotTaken> {
        if tracked.contains(file) {
            return Err(NotTaken::Tracked);
        }
        ReuseRecord::parse(&content(file).map_err(|why| NotTaken::Unreadable(why.to_string()))?)
    }

    /// Keeps a record, and lets the oldest ones go where there is no more room.
    ///
    /// # Errors
    /// It cannot be written, or git tracks what is in its place.
    pub fn keep(&self, record: &ReuseRecord) -> Result<(), StoreError> {
        let name = LoopName::parse(&record.r#loop).map_err(|_| StoreError::NoName)?;
        let folder = self.folder().join(name.file_stem());
        self.make(&folder)?;
        let class = record.origin.class();
        let sum = record.sums.definition.to_string();
        let file = folder.join(format!("{}-{}-{class}.json", &sum[..DIGITS], record.key()));
        // Asked anew, because the run may have changed what git tracks.
        if self.tracked()?.contains(&file) {
            return Err(StoreError::Tracked);
        }
        let text = record.to_bytes().map_err(io::Error::from)?;
        if text.len() as u64 > LARGEST {
            return Err(StoreError::TooLarge);
        }
        replace(&file, text)?;
        for gone in evicted(self.all()?) {
            // Another run may have removed it meanwhile.
            let _absent = fs_err::remove_file(gone.place);
        }
        Ok(())
    }

    /// Returns the verdicts of the checks of a loop that a run may take, and why others are not taken.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn verdicts(
        &self,
        name: &LoopName,
        origin: &RunOrigin,
        tracked: &TrackedRecords,
        now: Timestamp,
    ) -> Result<(Vec<VerdictTable>, Vec<NotTaken>), StoreError> {
        let files = self.files(&self.folder().join(name.file_stem()))?;
        let files: Vec<_> = files.into_iter().filter(|file| is_verdicts(&file.place)).collect();
        let (mut tables, mut refused) = (Vec::new(), Vec::new());
        for file in files {
            match Self::table(&file.place, tracked, now) {
                Ok(table) if table.r#loop == name.as_str() && origin.may_take(&table.origin) => {
                    tables.push(table);
                }
                Ok(_) => {}
                Err(why) => refused.push(why),
            }
        }
        Ok((tables, refused))
    }

    fn table(file: &Path, tracked: &TrackedRecords, now: Timestamp) -> Result<VerdictTable, NotTaken> {
        if tracked.contains(file) {
            return Err(NotTaken::Tracked);
        }
        let bytes = content(file).map_err(|why| NotTaken::Unreadable(why.to_string()))?;
        VerdictTable::parse(&bytes, now)
    }

    /// Adds verdicts to those of the runs of the same origin. What is there and cannot be read is replaced.
    ///
    /// # Errors
    /// They cannot be written, or git tracks what is in their place.
    pub fn keep_verdicts(
        &self,
        name: &LoopName,
        origin: &RunOrigin,
        add: impl FnOnce(&mut VerdictTable),
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let folder = self.folder().join(name.file_stem());
        self.make(&folder)?;
        let turn = fs_err::File::create(folder.join(TURN))?;
        // Held until the table is in its place, because it is read, added to and replaced.
        turn.file().lock()?;
        let tracked = self.tracked()?;
        let file = folder.join(format!("{}.{VERDICTS}", origin.class()));
        if tracked.contains(&file) {
            return Err(StoreError::Tracked);
        }
        let is_ours = |table: &VerdictTable| {
            table.r#loop == name.as_str()
                && table.origin.class() == origin.class()
                && table.origin.repository == origin.repository
        };
        let known = Self::table(&file, &tracked, now).ok().filter(is_ours);
        let mut table = known.unwrap_or_else(|| VerdictTable::new(origin.clone(), name.as_str()));
        add(&mut table);
        let bytes = table.to_bytes().map_err(io::Error::from)?.ok_or(StoreError::TooLarge)?;
        replace(&file, bytes)?;
        Ok(())
    }

    /// Returns the verdicts of all loops that can be read.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn all_verdicts(&self, now: Timestamp) -> Result<Vec<VerdictTable>, StoreError> {
        let tracked = self.tracked()?;
        let files = self.all()?.into_iter().filter(|file| is_verdicts(&file.place));
        Ok(files.filter_map(|file| Self::table(&file.place, &tracked, now).ok()).collect())
    }

    /// Removes every record of a definition. Returns how many there were.
    ///
    /// # Errors
    /// The store cannot be read, or a record cannot be removed.
    pub fn drop_definition(&self, name: &LoopName, definition: Sum) -> Result<usize, StoreError> {
        let folder = self.folder().join(name.file_stem());
        let sum = definition.to_string();
        let tracked = self.tracked()?;
        let mut count = 0;
        for file in self.files(&folder)? {
            if file_name(&file.place).starts_with(&sum[..DIGITS]) && !tracked.contains(&file.place) {
                fs_err::remove_file(&file.place)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns every record, by loop and file.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self) -> Result<Vec<ListedRecord>, StoreError> {
        let tracked = self.tracked()?;
        let below = self.folder();
        let mut all: Vec<ListedRecord> = self
            .all()?
            .into_iter()
            .filter(|file| !is_verdicts(&file.place))
            .map(|file| ListedRecord {
                file: file.place.strip_prefix(&below).unwrap_or(&file.place).to_string_lossy().into_owned(),
                record: Self::taken(&file.place, &tracked),
            })
            .collect();
        all.sort_by(|one, other| one.file.cmp(&other.file));
        Ok(all)
    }

    /// Removes the records that `goes` says. Returns how many.
    ///
    /// # Errors
    /// The store cannot be read, or a record cannot be removed.
    pub fn prune(&self, goes: impl Fn(&Result<ReuseRecord, NotTaken>) -> bool) -> Result<usize, StoreError> {
        let tracked = self.tracked()?;
        self.remove_untracked(&tracked, |place| goes(&Self::taken(place, &tracked)))
    }

    /// Removes the records at the places that `goes` says. Returns how many.
    pub(super) fn remove(&self, goes: impl Fn(&Path) -> bool) -> Result<usize, StoreError> {
        self.remove_untracked(&self.tracked()?, goes)
    }

    fn remove_untracked(
        &self,
        tracked: &TrackedRecords,
        goes: impl Fn(&Path) -> bool,
    ) -> Result<usize, StoreError> {
        let mut count = 0;
        for place in self.records()? {
            // A file that git tracks is the user's to remove.
            if !tracked.contains(&place) && goes(&place) {
                fs_err::remove_file(&place)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the places of all records.
    pub(super) fn records(&self) -> Result<Vec<PathBuf>, StoreError> {
        let files = self.all()?.into_iter().map(|file| file.place);
        Ok(files.filter(|place| !is_verdicts(place)).collect())
    }

    /// Makes the folder of a loop. A link in its place leads elsewhere, and is left alone.
    fn make(&self, folder: &Path) -> Result<(), StoreError> {
        fs_err::create_dir_all(folder)?;
        // Afterwards, because `create_dir_all` takes a link to a directory for one that is there.
        for directory in [self.loops.as_path(), &self.folder(), folder] {
            unlinked_directory(directory)?;
        }
        create(&self.folder().join(".gitignore"), IGNORE)?;
        Ok(())
    }

    /// Returns the files of all loops.
    fn all(&self) -> Result<Vec<StoredFile<PathBuf>>, StoreError> {
        let below = self.folder();
        let mut all = Vec::new();
        for entry in entries(&below)? {
            if entry.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                all.extend(self.files(&entry)?);
            }
        }
        Ok(all)
    }

    /// Returns the files of a folder.
    fn files(&self, folder: &Path) -> Result<Vec<StoredFile<PathBuf>>, StoreError> {
        for directory in [self.loops.as_path(), &self.folder(), folder] {
            match unlinked_directory(directory) {
                Ok(()) => {}
                Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Vec::new());
                }
                Err(error) => return Err(error),
            }
        }
        let is_ours = |path: &PathBuf| {
            path.extension()
                .is_some_and(|extension| [OsStr::new("json"), OsStr::new(VERDICTS)].contains(&extension))
        };
        let files = entries(folder)?.into_iter().filter(is_ours);
        let stored = files.filter_map(|place| {
            let metadata = place.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
            let written =
                metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000);
            Some(StoredFile { place, bytes: metadata.len(), written })
        });
        Ok(stored.collect())
    }

    /// Returns the files of the store that git tracks: by its index, or by the commit, in case somebody took them out of the
    /// index.
    ///
    /// # Errors
    /// Git does not say, or tracks the folder as something else.
    pub fn tracked(&self) -> Result<TrackedRecords, StoreError> {
        // At the same time, because each call waits for a process.
        let (by_index, by_commit) = std::thread::scope(|scope| {
            let by_commit = scope.spawn(|| self.committed());
            let by_index = Call::new("ls-files").with(&["-z"]).path(self.path_for_git()).literal();
            let by_index = self.git.bytes(&by_index, &[]).map(|printed| self.places(&printed));
            (by_index, by_commit.join().expect("calling git does not panic"))
        });
        self.all_tracked(by_index?, by_commit?)
    }

    /// Returns the files of the store that the commit has.
    ///
    /// # Errors
    /// Git does not say.
    pub fn committed(&self) -> Result<BTreeSet<PathBuf>, StoreError> {
        let list = Call::new("ls-tree").with(&["-r", "-z", "--name-only"]).revision("HEAD");
        let list = list.path(self.path_for_git()).literal();
        let printed = self.git.bytes(&list, &[]).or_else(|why| self.unless_empty(why))?;
        Ok(self.places(&printed))
    }

    /// Returns the same as [`ReuseStore::tracked`], where it is known what of the store, and of what holds it, the index and the commit
    /// have.
    ///
    /// # Errors
    /// The folder is tracked as something else.
    pub fn all_tracked(
        &self,
        by_index: BTreeSet<PathBuf>,
        by_commit: BTreeSet<PathBuf>,
    ) -> Result<TrackedRecords, StoreError> {
        let (root, folder) = (self.root(), self.folder());
        let tracked: BTreeSet<PathBuf> = by_index.into_iter().chain(by_commit).collect();
        // A submodule that is the folder, or holds it, is as good as tracked files.
        if folder.ancestors().take_while(|above| *above != root).any(|above| tracked.contains(above)) {
            return Err(StoreError::Tracked);
        }
        Ok(TrackedRecords(tracked))
    }

    /// Returns the directory that paths of git begin in.
    fn root(&self) -> &Path {
        self.loops.parent().unwrap_or(&self.loops)
    }

    /// Returns the path of the folder as git is asked for it.
    fn path_for_git(&self) -> String {
        let folder = self.folder();
        folder.strip_prefix(self.root()).unwrap_or(&folder).to_string_lossy().into_owned()
    }

    /// Reads paths that git printed.
    fn places(&self, printed: &[u8]) -> BTreeSet<PathBuf> {
        let paths = printed.split(|byte| *byte == 0);
        paths.map(|path| self.root().join(OsStr::from_bytes(path))).collect()
    }

    /// Where there is no commit yet, none has a record. A commit that cannot be read may have one.
    fn unless_empty(&self, error: GitError) -> Result<Vec<u8>, GitError> {
        let head = Call::new("rev-parse").with(&["--verify", "--quiet"]).revision("HEAD^{commit}");
        match self.git.line(&head) {
            Err(why) if why.is_of_no_object() => Ok(Vec::new()),
            Ok(_) | Err(_) => Err(error),
        }
    }
}

/// The files of a store that git tracks, as it was asked once for a command that changes none of that.
#[derive(Debug)]
pub struct TrackedRecords(BTreeSet<PathBuf>);

impl TrackedRecords {
    fn contains(&self, file: &Path) -> bool {
        self.0.contains(file)
    }
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Git does not say which files it tracks.
    #[error("git does not say which files it tracks: {0}")]
    Git(#[from] GitError),
    /// It would be read or written through a link.
    #[error("`{0}` is a link")]
    Link(String),
    /// Git tracks it.
    #[error("git tracks files of it")]
    Tracked,
    /// A record would be larger than any that is read.
    #[error("the record is larger than 4 MiB")]
    TooLarge,
    /// The loop has no name.
    #[error("the loop has no name")]
    NoName,
}

fn unlinked_directory(directory: &Path) -> Result<(), StoreError> {
    let metadata = fs_err::symlink_metadata(directory)?;
    if metadata.is_symlink() {
        return Err(StoreError::Link(directory.display().to_string()));
    }
    if metadata.is_dir() { Ok(()) } else { Err(io::Error::from(io::ErrorKind::NotADirectory).into()) }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    match fs_err::read_dir(directory) {
        Ok(entries) => Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Reads a record that is no link.
fn content(file: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    // A byte more than the largest, by which a longer file is known as too large.
    read::unlinked(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_verdicts(path: &Path) -> bool {
    path.extension() == Some(OsStr::new(VERDICTS))
}
