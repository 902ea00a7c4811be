//! Describes for people the files in which two trees differ.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::look::Look;
use super::unlisted::{DOT_GIT, NO_FILE};
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::relative::is_like;
use crate::engine::changes::{ChangeKind, ChangedFile, EntryContent, FileMode, KnownStart, TreeEntry};
use crate::git::raw_diff::Difference;
use crate::judges::compare::is_by_name;

const TOO_LARGE: &str = "it is too large";
const A_REPOSITORY: &str = "it is a repository of its own";
const A_PIPE: &str = "it is a pipe, a socket or a device";
const OF_GIT: &str = "git keeps nothing by this name";

/// Describes a tracked file that differs from the commit before the run.
pub(super) fn before(entry: &TreeEntry, top: &Path) -> ChangedFile {
    let (kind, not_in_patch) = match &entry.content {
        EntryContent::Gone => (ChangeKind::Deleted, None),
        EntryContent::Object { .. } => (ChangeKind::Modified, None),
        EntryContent::Digest(_) => (ChangeKind::Modified, Some(A_REPOSITORY.to_owned())),
    };
    ChangedFile {
        size: size(top, &entry.path),
        path: entry.path.clone(),
        from: None,
        kind,
        tracked: true,
        lines: None,
        run: None,
        not_in_patch,
    }
}

/// Returns a link of the run that stands for a file or a folder of the tree, and leads to what no tree holds: out of the repository, or to
/// what git ignores. Whatever happens there after a verdict, the tree stays the same. New links elsewhere, such as those of a virtual
/// environment, stand for nothing that was looked at before; a judge is told from the one of the start, whatever it leads to.
pub(super) fn link_to_elsewhere<'f>(files: &'f [ChangedFile], look: &Look) -> Option<&'f str> {
    let stands_for_something = |file: &ChangedFile| {
        let below = format!("{}/", file.path);
        file.tracked
            || files.iter().any(|other| other.kind == ChangeKind::Deleted && other.path.starts_with(&below))
    };
    let is_elsewhere = |file: &&ChangedFile| {
        let place = look.top.join(OsStr::from_bytes(&gitpath::to_bytes(&file.path)));
        place.is_symlink()
            && !is_by_name(&file.path)
            && stands_for_something(file)
            && !leads_into(&place, look)
    };
    files.iter().find(is_elsewhere).map(|file| file.path.as_str())
}

/// Tells whether a link leads to a file of the tree, or to a folder with some.
fn leads_into(link: &Path, look: &Look) -> bool {
    let Ok(target) = link.canonicalize() else { return false };
    let Ok(inside) = target.strip_prefix(&look.top) else { return false };
    look.holds(&gitpath::to_text(inside.as_os_str().as_bytes()))
}

fn size(top: &Path, path: &str) -> Option<u64> {
    let metadata = top.join(OsStr::from_bytes(&gitpath::to_bytes(path))).symlink_metadata().ok()?;
    (!metadata.is_dir()).then_some(metadata.len())
}

/// Describes a difference between the two trees.
pub(super) fn between(
    difference: &Difference,
    top: &Path,
    before: &BTreeSet<String>,
    after: &BTreeSet<String>,
) -> ChangedFile {
    let path = gitpath::to_text(&difference.path);
    let from = difference.from.as_deref().map(gitpath::to_text);
    let was_untracked = before.contains(from.as_ref().unwrap_or(&path));
    let is_untracked = after.contains(&path);
    let kind = match (&difference.old, &difference.new) {
        // The kind goes by the paths; what else changed stands in the lines.
        _ if from.is_some() => ChangeKind::Renamed,
        (None, _) if is_untracked => ChangeKind::Untracked,
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        (Some((old, one)), Some((new, other))) if old != new => {
            let are_files = |mode: &FileMode| matches!(mode, FileMode::File | FileMode::Executable);
            match (are_files(old) && are_files(new), one == other) {
                (true, true) => ChangeKind::Mode,
                (true, false) => ChangeKind::Modified,
                (false, _) => ChangeKind::Type,
            }
        }
        (Some(_), Some(_)) => ChangeKind::Modified,
    };
    let tracked = match kind {
        ChangeKind::Untracked => false,
        ChangeKind::Deleted => !was_untracked,
        ChangeKind::Added => true,
        ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Type => !is_untracked,
        // One side that git tracks is enough to be work.
        ChangeKind::Renamed => !was_untracked || !is_untracked,
    };
    ChangedFile {
        size: difference.new.as_ref().and_then(|_| size(top, &path)),
        path,
        from,
        kind,
        tracked,
        lines: difference.lines,
        run: None,
        not_in_patch: of_repository(difference),
    }
}

/// Says why a repository of its own is not in the patch, and which commits it went between: a patch holds neither.
fn of_repository(difference: &Difference) -> Option<String> {
    let commit = |side: &Option<(FileMode, ObjectId)>| {
        let (_, id) = side.as_ref().filter(|(mode, _)| *mode == FileMode::Repository)?;
        Some(id.as_str().chars().take(12).collect::<String>())
    };
    match (commit(&difference.old), commit(&difference.new)) {
        (Some(old), Some(new)) if old != new => Some(format!("{A_REPOSITORY}, moved from {old} to {new}")),
        (None, None) => None,
        _ => Some(A_REPOSITORY.to_owned()),
    }
}

/// Says why no tree holds what a digest stands for.
fn held_by_no_tree(path: &str, full: &Path) -> &'static str {
    if path.split('/').any(|name| is_like(name.as_bytes(), DOT_GIT)) {
        OF_GIT
    } else if full.is_dir() {
        A_REPOSITORY
    } else {
        TOO_LARGE
    }
}

/// Adds what no tree holds and only a digest tells.
pub(super) fn digests(start: &KnownStart, look: &Look, files: &mut Vec<ChangedFile>) {
    let of = |entries: &[TreeEntry]| -> BTreeMap<String, (String, bool)> {
        let digests = entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::Digest(digest) => Some((entry.path.clone(), (digest.clone(), entry.tracked))),
            EntryContent::Gone | EntryContent::Object { .. } => None,
        });
        digests.collect()
    };
    let (before, after) = (of(&start.entries), of(&look.entries));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (was, is) = (before.get(path), after.get(path));
        if was.map(|(digest, _)| digest) == is.map(|(digest, _)| digest) {
            continue;
        }
        let tracked = was.or(is).is_some_and(|(_, tracked)| *tracked);
        let full = look.top.join(OsStr::from_bytes(&gitpath::to_bytes(path)));
        let is_no_file = was.or(is).is_some_and(|(digest, _)| digest == NO_FILE);
        let why = if is_no_file { A_PIPE } else { held_by_no_tree(path, &full) };
        if let Some(known) = files.iter_mut().find(|file| file.path == *path) {
            known.kind = ChangeKind::Modified;
            known.size = size(&look.top, path);
            known.not_in_patch = Some(why.to_owned());
            continue;
        }
        let kind = match (was, is) {
            _ if tracked => ChangeKind::Modified,
            (None, _) => ChangeKind::Untracked,
            (Some(_), None) if !full.exists() => ChangeKind::Deleted,
            (Some(_), _) => ChangeKind::Modified,
        };
        files.push(ChangedFile {
            path: path.clone(),
            from: None,
            kind,
            size: size(&look.top, path),
            tracked,
            lines: None,
            run: None,
            not_in_patch: Some(why.to_owned()),
        });
    }
}
