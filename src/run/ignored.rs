//! Files that no tree of git holds and that decide what checks say all the same: the program in a virtual environment, a
//! `phpunit.xml` that everybody has for himself. What they are when a run begins is kept beside its journal, so that the
//! end can be compared with it, and can be asked with it once more.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::base::gitpath;
use crate::base::own::is_own;
use crate::base::text::hex;
use crate::engine::changes::{FileMode, IgnoredFile, KeptFile};
use crate::files::file_time::FileTime;
use crate::files::{gitdir, read, replace};
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::in_run::GitCalls;
use crate::judges::bytecode::{self, Compiled, is_bytecode};
use crate::judges::compare::is_obeyed_by_name;
use crate::judges::ignore_lists::lists_something;
use crate::judges::tree::{At, FileAt};

/// The longest file whose content is kept. A longer one is known by what changes with its content.
const LONGEST: u64 = read::MIB;

/// Where a checkout has what it tells git of files.
pub(super) const INFO: &str = ".git/info/";

/// The list of a checkout's own of what git leaves out.
const EXCLUDE: &str = ".git/info/exclude";

/// How deep folders are looked into that git does not track at all, and how many entries of them in all.
const DEEPEST: usize = 3;
const MOST: usize = 20_000;

/// Where Python has what it compiles, and how many files of such folders are looked at in all.
const BYTECODE: &str = "__pycache__";
const MOST_COMPILED: usize = 20_000;

/// Folders of dependencies and products: what lies in them configures nothing outside of them.
const CLOSED: [&str; 23] = [
    ".git",
    ".gradle",
    ".mypy_cache",
    ".next",
    ".nox",
    ".nuxt",
    ".pytest_cache",
    ".ruff_cache",
    ".terraform",
    ".tox",
    ".venv",
    "Pods",
    "_build",
    "bower_components",
    "build",
    "deps",
    "dist",
    "env",
    "node_modules",
    "obj",
    "target",
    "vendor",
    "venv",
];

/// The call that lists what git does not track.
pub(super) fn list() -> Call {
    Call::new("ls-files").with(&["--others", "--directory", "--full-name", "-z"]).path(":/")
}

/// Lists what git does not track. A folder that holds nothing tracked is named as such, and not looked into.
pub(super) async fn untracked(git: &mut GitCalls, root: &Path) -> Result<Vec<u8>, GitError> {
    let list = list();
    git.run(root, &list).await
}

/// Returns the files of such a list that are obeyed because of their names, from the top of the tree.
pub(super) fn by_name(untracked: &[u8], top: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    // It has no entry in git's list, and is obeyed all the same.
    // Tools that ask git what to leave out heed this list, too. Without entries it ignores nothing, whatever comments the git of
    // this machine put there.
    if read::text(&place(top, EXCLUDE), LONGEST).is_ok_and(|text| lists_something(&text)) {
        found.insert(EXCLUDE.to_owned());
    }
    let mut folders = VecDeque::new();
    for path in untracked.split(|byte| *byte == 0).filter(|path| !path.is_empty() && !is_own(path)) {
        match path.strip_suffix(b"/") {
            Some(folder) => folders.push_back((PathBuf::from(OsStr::from_bytes(folder)), 0)),
            None => found.extend(obeyed(path, top)),
        }
    }
    let left = Allowance { entries: MOST, compiled: MOST_COMPILED };
    look_into(folders, top, left, &mut found);
    found
}

fn obeyed(path: &[u8], top: &Path) -> Option<String> {
    let path = gitpath::to_text(path);
    let is_obeyed = if is_bytecode(&path) { stands_alone(&path, top) } else { is_obeyed_by_name(&path) };
    is_obeyed.then_some(path)
}

/// Tells whether something that Python has compiled may be made of something else than its source: it says nothing of it, or says
/// the time and the length of a source that was written to afterwards, whose time was then set back.
pub(super) fn stands_alone(path: &str, top: &Path) -> bool {
    let compiled = place(top, path);
    let header = read::head(&compiled, bytecode::HEADER as u64).map(<[u8; bytecode::HEADER]>::try_from);
    // One that is gone or too short is not run.
    let (Ok(Ok(header)), Ok(compiled)) = (header, compiled.metadata()) else { return false };
    match Compiled::of(header) {
        Compiled::Unchecked => true,
        Compiled::OfDigest => false,
        Compiled::OfTime { time, length } => {
            let source = bytecode::source(path).map(|source| place(top, &source));
            let Some(Ok(source)) = source.map(|source| source.symlink_metadata()) else { return false };
            let is_of_it = lower(source.mtime().cast_unsigned()) == time && lower(source.len()) == length;
            let written = |metadata: &std::fs::Metadata| (metadata.ctime(), metadata.ctime_nsec());
            is_of_it && written(&source) >= written(&compiled)
        }
    }
}

/// Returns what of a number a header of Python has room for.
fn lower(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// How much may still be looked at. It is for all folders together, so that a hostile tree cannot multiply it.
struct Allowance {
    entries: usize,
    compiled: usize,
}

/// Looks into folders that git does not track, as far as it may be looked. Those near the top come first: a tool is called there.
fn look_into(
    mut open: VecDeque<(PathBuf, usize)>,
    top: &Path,
    mut left: Allowance,
    found: &mut BTreeSet<String>,
) {
    while let Some((folder, depth)) = open.pop_front() {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let is_compiled = name.as_deref() == Some(BYTECODE);
        if !is_compiled && (depth == DEEPEST || name.is_some_and(|name| CLOSED.contains(&name.as_str()))) {
            continue;
        }
        let left = if is_compiled { &mut left.compiled } else { &mut left.entries };
        for entry in std::fs::read_dir(top.join(&folder)).into_iter().flatten().flatten() {
            let Some(fewer) = left.checked_sub(1) else { break };
            *left = fewer;
            let path = folder.join(entry.file_name());
            match entry.file_type() {
                // Links to folders are not followed; a link itself may be a file that is obeyed.
                Ok(kind) if kind.is_dir() => {
                    if !is_compiled {
                        open.push_back((path, depth + 1));
                    }
                }
                Ok(_) => found.extend(obeyed(path.as_os_str().as_bytes(), top)),
                Err(_) => {}
            }
        }
    }
}

/// Describes what stands at paths, and keeps it in a directory.
pub(super) fn kept<'p>(
    paths: impl IntoIterator<Item = &'p String>,
    top: &Path,
    store: &Path,
) -> std::io::Result<Vec<IgnoredFile>> {
    let keep = |path: &String| {
        // A file that is too long is known by its digest alone.
        let found = FileOnDisk::at(&place(top, path))?;
        if let Some(FileOnDisk { file, bytes: Some(bytes) }) = &found {
            fs_err::create_dir_all(store)?;
            // What git does not track may be secret.
            fs_err::set_permissions(store, std::fs::Permissions::from_mode(0o700))?;
            // By its digest, so that equal files are kept once, and one that is there already is
            // the right one.
            replace::create(&store.join(&file.sha256), bytes)?;
        }
        Ok(IgnoredFile { path: path.clone(), found: found.map(|found| found.file) })
    };
    paths.into_iter().map(keep).collect()
}

/// Returns the paths at which something else stands than when the run began.
pub(super) fn changed(ignored: &[IgnoredFile], named: &BTreeSet<String>, top: &Path) -> BTreeSet<String> {
    let differs = |path: &str, was: Option<&KeptFile>| match FileOnDisk::at(&place(top, path)) {
        Ok(found) => found.as_ref().map(|found| &found.file) != was,
        // What cannot be read may have changed.
        Err(_) => true,
    };
    let known: BTreeMap<&str, Option<&KeptFile>> =
        ignored.iter().map(|file| (file.path.as_str(), file.found.as_ref())).collect();
    let new =
        named.iter().filter(|path| !known.contains_key(path.as_str())).map(|path| (path.as_str(), None));
    let all = known.iter().map(|(path, was)| (*path, *was)).chain(new);
    all.filter(|(path, was)| differs(path, *was)).map(|(path, _)| path.to_owned()).collect()
}

/// Returns what stood at a path when the run began.
pub(super) fn at_start(file: Option<&KeptFile>, store: &Path) -> At {
    let Some(file) = file else { return At::Nothing };
    match read::bytes(&store.join(&file.sha256), LONGEST) {
        // Somebody else may have written there.
        Ok(bytes) if hex(&Sha256::digest(&bytes)) == file.sha256 => {
            At::File(FileAt { mode: file.mode, bytes, is_ignored: true })
        }
        Ok(_) | Err(_) => At::Unreadable,
    }
}

/// Returns what stands at a path now, where no tree of git has it.
pub(super) fn at_end(path: &str, top: &Path) -> At {
    match FileOnDisk::at(&place(top, path)) {
        Ok(None) => At::Nothing,
        Ok(Some(FileOnDisk { file, bytes: Some(bytes) })) => {
            At::File(FileAt { mode: file.mode, bytes, is_ignored: true })
        }
        // It is too long for a text, and there.
        Ok(Some(FileOnDisk { file, bytes: None })) => {
            At::File(FileAt { mode: file.mode, bytes: file.sha256.into_bytes(), is_ignored: true })
        }
        Err(_) => At::Unreadable,
    }
}

/// Returns when a file was changed; nothing where there is none.
pub(super) fn changed_at(path: &str, top: &Path) -> Option<FileTime> {
    place(top, path).symlink_metadata().ok().map(|metadata| FileTime::of(&metadata))
}

/// Returns when the program was changed to which a link of the tree leads out of it; nothing where it leads to none.
pub(super) fn outside_changed_at(path: &str, top: &Path) -> Option<FileTime> {
    let link = place(top, path);
    let target = link.canonicalize().ok().filter(|target| link.is_symlink() && !target.starts_with(top))?;
    target.metadata().ok().map(|metadata| FileTime::of(&metadata))
}

/// Tells what stands outside of the tree: a program, by its path alone.
pub(super) fn outside(path: &str) -> At {
    // Followed, since a program outside is what runs, whatever names lead to it.
    let metadata = Path::new(path).metadata();
    let is_program = |metadata: std::fs::Metadata| metadata.is_file() && metadata.mode() & 0o111 != 0;
    if metadata.is_ok_and(is_program) {
        At::File(FileAt { mode: FileMode::Executable, bytes: Vec::new(), is_ignored: true })
    } else {
        At::Nothing
    }
}

/// Returns where a path from the top of the tree leads.
pub(super) fn place(top: &Path, path: &str) -> PathBuf {
    // A further working tree has no such directory: what is told there is that of the repository.
    if let Some(name) = path.strip_prefix(INFO)
        && let Some(git) = gitdir::around(top)
    {
        return git.shared.join("info").join(name);
    }
    top.join(OsStr::from_bytes(&gitpath::to_bytes(path)))
}

/// What stands at a path.
struct FileOnDisk {
    file: KeptFile,
    /// Its content; none where that is too long.
    bytes: Option<Vec<u8>>,
}

impl FileOnDisk {
    fn at(path: &Path) -> std::io::Result<Option<Self>> {
        let metadata = match path.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let is_executable = metadata.permissions().mode() & 0o111 != 0;
        let (mode, bytes) = if metadata.is_symlink() {
            (FileMode::Link, Some(path.read_link()?.as_os_str().as_bytes().to_vec()))
        } else if !metadata.is_file() {
            // A folder is not a program, and obeyed by no name.
            return Ok(None);
        } else {
            let mode = if is_executable { FileMode::Executable } else { FileMode::File };
            let is_short = metadata.len() <= LONGEST;
            (mode, is_short.then(|| read::bytes(path, LONGEST)).transpose()?)
        };
        let digest = match &bytes {
            Some(bytes) => Sha256::digest(bytes),
            // `ctime` moves with every change, whatever an action does to the other times.
            None => Sha256::digest(format!(
                "{} {} {}.{} {}.{}",
                metadata.len(),
                metadata.ino(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.ctime(),
                metadata.ctime_nsec()
            )),
        };
        Ok(Some(Self { file: KeptFile { mode, sha256: hex(&digest) }, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_near_the_top_is_looked_at_first() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        for path in ["a/deep/1", "a/deep/2", "a/deep/pytest.ini", "b/pytest.ini", "c/pytest.ini"] {
            std::fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
            std::fs::write(top.join(path), "").unwrap();
        }
        let folders = || ["a", "b", "c"].map(|folder| (PathBuf::from(folder), 0)).into();
        let seen = |entries: usize| {
            let mut found = BTreeSet::new();
            look_into(folders(), top, Allowance { entries, compiled: 0 }, &mut found);
            found.into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(seen(2), "b/pytest.ini");
        assert_eq!(seen(3), "b/pytest.ini c/pytest.ini");
        assert_eq!(seen(9), "a/deep/pytest.ini b/pytest.ini c/pytest.ini");
    }

    #[test]
    fn a_link_out_of_the_tree_has_the_time_of_what_it_leads_to() {
        let directory = tempfile::tempdir().unwrap();
        let outside = directory.path().canonicalize().unwrap();
        let top = outside.join("top");
        std::fs::create_dir(&top).unwrap();
        for file in [outside.join("python3"), top.join("inside")] {
            std::fs::write(file, "").unwrap();
        }
        symlink("../python3", top.join("python")).unwrap();
        symlink("inside", top.join("other")).unwrap();
        symlink("nowhere", top.join("gone")).unwrap();
        let changed = FileTime::of(&outside.join("python3").metadata().unwrap());
        assert_eq!(outside_changed_at("python", &top), Some(changed));
        for path in ["other", "gone", "inside", "none"] {
            assert_eq!(outside_changed_at(path, &top), None, "{path}");
        }
    }
}
