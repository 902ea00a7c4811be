//! Writes copies and the lock file: all of a change or nothing of it, one process at a time, and never over edits.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::gather::is_twin;
use super::unusable;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::context::error::{Error, Kind};
use crate::definition::vendored::{CopiedFile, LOCK, LockFile, LockedLoop, SharedName};
use crate::files::place::{named, resolved};
use crate::files::read::{self, MIB, Unread};
use crate::files::replace;

/// A loop that is added, or taken anew.
pub(super) struct LoopChange {
    pub(super) name: SharedName,
    /// What the lock file said before.
    pub(super) before: Option<LockedLoop>,
    /// What it says then.
    pub(super) after: LockedLoop,
    /// The texts of the files.
    pub(super) files: BTreeMap<String, String>,
    /// The digests of edited files, whose edits are in the texts.
    pub(super) edited: BTreeMap<String, Sum>,
}

/// Reads the lock file, or begins one.
pub(super) fn lock(loops: &Path) -> Result<LockFile, Error> {
    LockFile::read(loops).map(Option::unwrap_or_default).map_err(|error| unusable(&error))
}

/// Returns the digest of a file of a copy, if it is there.
pub(super) fn digest(copy: &CopiedFile) -> Result<Option<Sum>, Error> {
    match read::bytes(&copy.file(), MIB) {
        Ok(bytes) => Ok(Some(Sum::of(&bytes))),
        Err(Unread::Absent) => Ok(None),
        // No copied file has this digest, so that it counts as edited.
        Err(Unread::TooLarge { .. } | Unread::NotUtf8 { .. }) => Ok(Some(Sum::of(b"\0"))),
        Err(unread @ (Unread::NotAFile(_) | Unread::Io(_))) => {
            Err(cannot("read", &copy.file(), &io::Error::from(unread)))
        }
    }
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::failed(format!("cannot {what} `{}`", path.display()), error)
}

/// Writes changes.
pub(super) fn write(loops: &Path, changes: &[LoopChange]) -> Result<(), Error> {
    fs_err::create_dir_all(loops).map_err(|error| cannot("make", loops, &error))?;
    // Whoever holds the directory writes; it is let go with the process.
    let held = read::directory(loops).map_err(|error| cannot("open", loops, &error))?;
    held.lock().map_err(|error| cannot("lock", loops, &error))?;
    // Read anew now that others are kept out: another process may have written since.
    let before = lock(loops)?;
    let after = changed(&before, changes)?;
    check_shared(&after)?;
    // All files are looked at before the first one is written, so that a refusal leaves nothing half done.
    let mut writes: Vec<(PathBuf, &str)> = Vec::new();
    for change in changes {
        for (path, text) in &change.files {
            let copy = CopiedFile::new(loops, change.name.repository(), path);
            check_place(loops, &copy)?;
            let there = digest(&copy)?;
            let new = Sum::of(text.as_bytes());
            if there == Some(new) {
                continue;
            }
            let is_replaceable = there.is_none_or(|there| {
                before.holds(change.name.repository(), path, there) == Some(true)
                    || change.edited.get(path) == Some(&there)
            });
            if !is_replaceable {
                return Err(in_the_way(&copy));
            }
            writes.push((copy.file(), text));
        }
    }
    for (file, text) in &writes {
        let directory = file.parent().unwrap_or(loops);
        fs_err::create_dir_all(directory).map_err(|error| cannot("make", directory, &error))?;
        replace::replace(file, text).map_err(|error| cannot("write", file, &error))?;
    }
    // What was copied and is not named is not run: a process that dies here has done no harm.
    let file = loops.join(LOCK);
    replace::replace(&file, after.text()).map_err(|error| cannot("write", &file, &error))?;
    // Last: until the new lock file is in place, runs read the old files.
    remove_unused(loops, &before, &after);
    Ok(())
}

/// Returns the lock file with the changes.
fn changed(before: &LockFile, changes: &[LoopChange]) -> Result<LockFile, Error> {
    let mut after = before.clone();
    for change in changes {
        let at = after.loops.iter().position(|one| one.source == change.after.source);
        let there = at.map(|at| &after.loops[at]);
        // Another process may have made the very same change.
        let is_same = there.is_some_and(|there| {
            (&there.commit, &there.reference, &there.files, &there.merged)
                == (&change.after.commit, &change.after.reference, &change.after.files, &change.after.merged)
        });
        if there != change.before.as_ref() && !is_same {
            let message = format!("another process has changed what `{}` is meanwhile", change.name);
            return Err(Error::refused(message).of_kind(Kind::Locked).with_hint("try it again"));
        }
        match at {
            Some(at) => after.loops[at] = change.after.clone(),
            None => after.loops.push(change.after.clone()),
        }
    }
    // By name, so that the text depends on what was added and not on when.
    after.loops.sort_by(|one, other| one.source.cmp(&other.source));
    Ok(after)
}

/// Makes sure that a file which several loops share is the same for all of them, wherever it is checked out.
fn check_shared(lock: &LockFile) -> Result<(), Error> {
    let mut known: BTreeMap<String, (Sum, String)> = BTreeMap::new();
    for one in &lock.loops {
        let Ok(name) = one.name() else { continue };
        for path in one.files.keys() {
            let Some(digest) = one.digest(path) else { continue };
            let whole = format!("{}/{path}", name.repository());
            if let Some((_, owner)) = known.get(&whole).filter(|(other, _)| *other != digest) {
                let message = format!(
                    "`{}` is part of `{owner}` and of `{name}`, and not the same at both commits",
                    one_line(&whole, 300)
                );
                let help = "take both at the same commit: `ll-loop update` without a name takes all, or add both with one REF";
                return Err(Error::refused(message).with_hint(help));
            }
            if let Some(twin) = known.keys().find(|other| is_twin(other, &whole)) {
                let (twin, whole) = (one_line(twin, 300), one_line(&whole, 300));
                let message = format!(
                    "`{twin}` and `{whole}` differ in upper and lower case alone, and are one file on some machines"
                );
                return Err(Error::refused(message));
            }
            known.insert(whole, (digest, name.to_string()));
        }
    }
    Ok(())
}

/// Refuses a place that a link leads to, or away from.
fn check_place(loops: &Path, copy: &CopiedFile) -> Result<(), Error> {
    let file = named(&copy.file());
    let below = file.strip_prefix(named(loops)).unwrap_or(&file);
    if resolved(&file) == resolved(loops).join(below) {
        return Ok(());
    }
    let message = format!("a link is in the way of `{copy}`: it leads to `{}`", resolved(&file).display());
    Err(Error::refused(message).with_hint("remove the link: copies are plain files in `.loops/vendor`"))
}

fn in_the_way(copy: &CopiedFile) -> Error {
    Error::refused(format!("`{copy}` is there already, and is not what `.loops/lock.json` names"))
        .with_hint("keep your edits with `ll-loop update --merge`, or remove the file and try it again")
}

/// Removes the files that no loop is made of any more, unless somebody has edited them. What cannot be removed stays.
fn remove_unused(loops: &Path, before: &LockFile, after: &LockFile) {
    let files = |lock: &LockFile| -> BTreeSet<(String, String)> {
        let of_loop = |one: &LockedLoop| {
            let repository = one.name().map_or_else(|_| String::new(), |name| name.repository().to_owned());
            one.files.keys().map(|path| (repository.clone(), path.clone())).collect::<Vec<_>>()
        };
        lock.loops.iter().flat_map(of_loop).collect()
    };
    for (repository, path) in files(before).difference(&files(after)) {
        let copy = CopiedFile::new(loops, repository, path);
        let is_ours = check_place(loops, &copy).is_ok()
            && matches!(digest(&copy), Ok(Some(there)) if before.holds(repository, path, there) == Some(true));
        if !is_ours || fs_err::remove_file(copy.file()).is_err() {
            continue;
        }
        let above = copy.file();
        let directories = above.ancestors().skip(1).take_while(|directory| *directory != loops);
        for directory in directories {
            if fs_err::remove_dir(directory).is_err() {
                break;
            }
        }
    }
}
