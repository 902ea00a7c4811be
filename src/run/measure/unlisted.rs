//! Finds what lies in a working tree and git neither lists nor holds: pipes and sockets, and what is named `.git` without being
//! a repository. A check may ask for it like for any other file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::FileType;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::file_identity::identity;
use crate::base::gitpath;
use crate::base::own::is_own;
use crate::base::territory::ScopePath;
use crate::base::text::hex;
use crate::engine::changes::{EntryContent, TreeEntry};
use crate::git::call::Call;
use crate::git::in_run::GitCalls;
use crate::git::tracked_files;
use crate::run::area::Area;
use crate::run::look_error::LookError;

/// What stands for the content of a pipe, a socket or a device.
pub(super) const NO_FILE: &str = "no file";

/// The name in which git looks at nothing.
pub(super) const DOT_GIT: &str = ".git";

/// How deep folders are looked into of which git lists no file. Each step costs a call.
const DEEPEST: usize = 16;

/// How many files of a folder with the name `.git` are looked at.
const MOST_FILES: usize = 20_000;

/// Something of which git says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unlisted {
    /// A folder without a file that git lists.
    Folder,
    /// A pipe, a socket or a device.
    NoFile,
    /// A file or folder named `.git` where git knows no repository.
    DotGit,
}

/// What is known of a working tree when it is searched.
pub(super) struct Searched<'s> {
    /// Its top.
    pub(super) top: &'s Path,
    /// The part of it that is the work of the run.
    pub(super) area: &'s Area,
    /// The files that git tracks, as it lists them.
    pub(super) tracked: &'s [u8],
    /// The files that it does not track and does not ignore; repositories end with a slash.
    pub(super) untracked: &'s BTreeSet<Vec<u8>>,
}

impl Searched<'_> {
    /// Returns what git says nothing of, with a digest of what it is.
    pub(super) async fn unlisted(&self, git: &mut GitCalls) -> Result<Vec<TreeEntry>, LookError> {
        let here = ScopePath::from(self.top.to_string_lossy().into_owned());
        let scope: Vec<&ScopePath> = self.area.territory.paths.iter().collect();
        let meets = |path: &[u8]| {
            let path = here.join(&String::from_utf8_lossy(path));
            scope.iter().any(|scope| scope.holds(&path) || path.holds(scope))
        };
        let (folders, closed) = self.known();
        let mut found = BTreeMap::new();
        let mut open = vec![Vec::new()];
        while let Some(folder) = open.pop() {
            git.left()?;
            for (path, unlisted) in self.entries(&folder) {
                let is_folder = unlisted == Unlisted::Folder;
                if closed.contains(path.as_slice()) || !meets(&path) {
                    continue;
                }
                if is_folder && folders.contains(path.as_slice()) {
                    open.push(path);
                } else {
                    found.insert(path, unlisted);
                }
            }
        }
        let found = self.not_ignored(git, found).await?;
        let within = |path: &[u8]| {
            let path = here.join(&String::from_utf8_lossy(path));
            scope.iter().any(|scope| scope.holds(&path))
        };
        found
            .into_iter()
            .filter(|(path, _)| within(path))
            .map(|(path, what)| self.entry(&path, what))
            .collect()
    }

    /// Returns the folders in which git lists files, and what is a repository of its own.
    fn known(&self) -> (BTreeSet<&[u8]>, BTreeSet<&[u8]>) {
        let (mut folders, mut closed) = (BTreeSet::new(), BTreeSet::new());
        let mut add = |path| above(path, &mut folders);
        for file in tracked_files::read(self.tracked) {
            add(file.path);
            if file.is_submodule() {
                closed.insert(file.path);
            }
        }
        for path in self.untracked {
            let repository = path.strip_suffix(b"/");
            closed.extend(repository);
            add(repository.unwrap_or(path));
        }
        (folders, closed)
    }

    /// Returns what a folder has besides files that git lists, with the paths from the top.
    fn entries(&self, folder: &[u8]) -> Vec<(Vec<u8>, Unlisted)> {
        // One that is gone or cannot be read has nothing that git could list either.
        let Ok(entries) = std::fs::read_dir(below(self.top, folder)) else { return Vec::new() };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Ok(file_type) = entry.file_type() else { continue };
            let Some(unlisted) = unlisted(name.as_bytes(), file_type) else { continue };
            let path = joined(folder, name.as_bytes());
            let is_top = folder.is_empty() && unlisted == Unlisted::DotGit;
            if !is_top && !is_own(&path) && !self.area.is_own(&entry.path()) {
                found.push((path, unlisted));
            }
        }
        found
    }

    /// Leaves out what git ignores, and looks into folders of which it lists no file.
    async fn not_ignored(
        &self,
        git: &mut GitCalls,
        mut found: BTreeMap<Vec<u8>, Unlisted>,
    ) -> Result<BTreeMap<Vec<u8>, Unlisted>, LookError> {
        let mut kept = BTreeMap::new();
        for _step in 0..DEEPEST {
            if found.is_empty() {
                return Ok(kept);
            }
            for path in ignored(git, self.top, &found).await? {
                found.remove(&path);
            }
            let mut next = BTreeMap::new();
            for (path, unlisted) in found {
                git.left()?;
                if unlisted == Unlisted::Folder {
                    next.extend(self.entries(&path));
                } else {
                    kept.insert(path, unlisted);
                }
            }
            found = next;
        }
        // Deeper than this, only what is empty as far as git knows.
        match found.keys().next() {
            None => Ok(kept),
            Some(path) => Err(LookError::unfit(format!(
                "`{}` lies in {DEEPEST} folders of which git lists no file",
                gitpath::to_text(path)
            ))),
        }
    }

    fn entry(&self, path: &[u8], what: Unlisted) -> Result<TreeEntry, LookError> {
        let digest = match what {
            Unlisted::NoFile | Unlisted::Folder => NO_FILE.to_owned(),
            Unlisted::DotGit => content(&below(self.top, path))?,
        };
        Ok(TreeEntry { path: gitpath::to_text(path), tracked: false, content: EntryContent::Digest(digest) })
    }
}

fn below(top: &Path, path: &[u8]) -> PathBuf {
    if path.is_empty() { top.to_owned() } else { top.join(std::ffi::OsStr::from_bytes(path)) }
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Adds the folders above a path.
fn above<'p>(path: &'p [u8], folders: &mut BTreeSet<&'p [u8]>) {
    let mut path = path;
    while let Some(end) = path.iter().rposition(|byte| *byte == b'/') {
        path = &path[..end];
        // With one, those above it are known as well.
        if !folders.insert(path) {
            return;
        }
    }
}

fn unlisted(name: &[u8], file_type: FileType) -> Option<Unlisted> {
    if name == DOT_GIT.as_bytes() {
        return Some(Unlisted::DotGit);
    }
    if file_type.is_dir() {
        return Some(Unlisted::Folder);
    }
    let is_no_file = file_type.is_fifo()
        || file_type.is_socket()
        || file_type.is_block_device()
        || file_type.is_char_device();
    is_no_file.then_some(Unlisted::NoFile)
}

/// Asks git which of some paths it ignores.
async fn ignored(
    git: &mut GitCalls,
    top: &Path,
    found: &BTreeMap<Vec<u8>, Unlisted>,
) -> Result<Vec<Vec<u8>>, LookError> {
    let paths: Vec<u8> = found.keys().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
    let ask = Call::new("check-ignore").with(&["-z", "--stdin"]);
    match git.feed(top, &ask, paths).await {
        Ok(printed) => Ok(printed.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()),
        // It has this code where it ignores none of them.
        Err(why) if why.failure().is_some_and(|failure| failure.code == Some(1)) => Ok(Vec::new()),
        Err(why) => Err(why.into()),
    }
}

/// Describes a file or folder by what is in it.
fn content(place: &Path) -> Result<String, LookError> {
    let mut open = vec![place.to_owned()];
    let mut parts = BTreeSet::new();
    while let Some(path) = open.pop() {
        // What vanishes meanwhile is as good as deleted.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        if metadata.is_dir() {
            let entries = std::fs::read_dir(&path).map(|entries| entries.flatten().map(|entry| entry.path()));
            open.extend(entries.into_iter().flatten());
        }
        let inside = path.strip_prefix(place).unwrap_or(&path).as_os_str().as_bytes().to_vec();
        let identity = if metadata.is_file() { identity(&metadata) } else { String::new() };
        parts.insert((inside, identity));
        if parts.len() > MOST_FILES {
            return Err(LookError::unfit(format!("there are more than {MOST_FILES} files in a `.git`")));
        }
    }
    let mut digest = Sha256::new();
    for (path, identity) in parts {
        for part in [path.as_slice(), identity.as_bytes()] {
            digest.update(part.len().to_le_bytes());
            digest.update(part);
        }
    }
    Ok(hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_above_a_path_are_known_once() {
        let mut folders = BTreeSet::new();
        for path in [b"a/b/c".as_slice(), b"a/b/d", b"e"] {
            above(path, &mut folders);
        }
        assert_eq!(folders, BTreeSet::from([b"a".as_slice(), b"a/b"]));
    }

    #[test]
    fn what_is_named_like_a_repository_is_known_by_what_is_in_it() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join(DOT_GIT);
        std::fs::create_dir(&place).unwrap();
        let empty = content(&place).unwrap();
        std::fs::write(place.join("f"), "x").unwrap();
        let one = content(&place).unwrap();
        std::fs::write(place.join("f"), "longer").unwrap();
        assert!(empty != one && one != content(&place).unwrap());
        assert_eq!(unlisted(b".git", top.path().metadata().unwrap().file_type()), Some(Unlisted::DotGit));
    }
}
