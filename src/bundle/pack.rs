//! Writes a bundle: the files of a run as they are, each with its digest, and what the run made of the working tree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::hashing::{HashedReader, Hashing};
use super::manifest::{
    EntryName, LeftOut, Manifest, ManifestEntry, SCHEMA, SavedSnapshots, SavedTree, SnapshotName,
};
use super::names;
use super::open::{LIMITS, MOST_MANIFEST};
use super::snapshots::{self, SnapshotOptions};
use super::tree::{self, MadeTree, TreeOptions};
use crate::base::name::{InstanceName, StateName};
use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::base::relative::{Line, RelativePath};
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::event::{Assignment, LoopComplete};
use crate::files::secret::why_kept_back;
use crate::files::unzip::UnzipLimits;
use crate::files::{read, transient};
use crate::journal::files::RunFiles;
use crate::journal::journal_ends;
use crate::journal::streams::StreamDigests;
use crate::statement::{DETAILS_FILE, VERDICT_FILE};

/// What a bundle is made from.
pub struct BundleContents<'c> {
    /// The files of the run.
    pub files: &'c RunFiles,
    /// The reports that are there.
    pub reports: &'c Path,
    /// The loop files: their names as seen from the directory of the run, and what they say.
    pub loops: &'c [(String, String)],
    /// What is kept of the working tree.
    pub tree: TreeOptions<'c>,
    /// The tree that counts instead, if it is in no checkout.
    pub made: Option<&'c MadeTree>,
    /// The tree snapshots of the run.
    pub snapshots: &'c BTreeMap<SnapshotName, ObjectId>,
    /// The item of a plan that the run works on; without one, the one with which it began.
    pub assignment: Option<Assignment>,
    /// The repository, as `host/owner/name`, where there is one to name.
    pub repository: Option<String>,
    /// The job, as people can look it up.
    pub job: Option<String>,
    /// The time.
    pub now: Timestamp,
}

/// A bundle that was written.
#[derive(Debug)]
pub struct PackedBundle {
    /// What is not in it, to be said.
    pub left_out: Vec<LeftOut>,
    /// Why the changes of the working tree are not in it, if they are not.
    pub tree_missing: Option<String>,
}

/// What a bundle may hold beside its manifest, so that it can be opened again.
const MOST: UnzipLimits = UnzipLimits { entries: LIMITS.entries - 1, bytes: LIMITS.bytes - MOST_MANIFEST };

/// How many parts of `LL_RUN_DIR` that are left out are named.
const MOST_PARTS: usize = 100;

/// How often a bundle is written anew because files were changed meanwhile.
const MOST_TRIES: usize = 10;

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The archive cannot be written.
    #[error(transparent)]
    Zip(#[from] zip::result::ZipError),
    /// There is nothing that could go on.
    #[error("the run has not begun")]
    NotBegun,
}

/// Writes the bundle of a run. It appears under its name whole or not at all.
pub fn pack(contents: &BundleContents<'_>, target: &Path) -> Result<PackedBundle, PackError> {
    let directory = target.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let scratch = transient::directory_in(transient::PACKED, directory)?;
    let objects = scratch.path().join("objects");
    let kept = match contents.made {
        Some(made) => tree::keep_made(made, contents.tree.redactor, &objects).map(Some),
        None => tree::keep(&contents.tree, &objects),
    };
    let (tree, mut left_out) = match kept {
        Ok(Some(kept)) => (Some(kept.saved), kept.left_out),
        Ok(None) => (None, Vec::new()),
        // Whoever has the tree can go on with the run: elsewhere it is refused, unless somebody agrees.
        Err(why) => (None, vec![LeftOut::new(names::WORKING_TREE, &format!("the working tree: {why}"))]),
    };
    let stands = scratch.path().join("snapshots");
    let snapshots = tree.as_ref().map_or(Ok((None, Vec::new())), |tree| {
        let TreeOptions { git, definition, redactor, .. } = &contents.tree;
        let (base, snapshots) = (&tree.base, contents.snapshots);
        snapshots::keep(&SnapshotOptions { git, base, snapshots, definition, redactor }, &stands)
    });
    let snapshots = match snapshots {
        Ok((saved, without)) => {
            // The same file is mostly left out of the tree as well, and is named once.
            left_out.extend(without.into_iter().filter(|left| !left_out.contains(left)).collect::<Vec<_>>());
            saved
        }
        Err(why) => {
            left_out.push(LeftOut::new(names::SNAPSHOTS, &format!("the tree snapshots: {why}")));
            None
        }
    };
    let tree_missing = tree.as_ref().and_then(|tree| tree.missing.as_ref().map(ToString::to_string));
    let mut sources = sources(contents);
    if tree.as_ref().is_some_and(|tree| tree.changed) {
        sources.push(PackedFile { name: names::TREE.to_owned(), path: objects, foreign: false });
    }
    if snapshots.is_some() {
        sources.push(PackedFile { name: names::SNAPSHOTS.to_owned(), path: stands, foreign: false });
    }
    sources.extend(loops(contents, scratch.path())?);
    let mut kept = Vec::new();
    let mut named = StreamDigests::in_journal(&contents.files.journal()).ok();
    for source in sources {
        let stream = named.as_mut().zip(source.name.strip_prefix(names::STREAMS));
        if stream.as_ref().is_some_and(|(named, name)| !named.has(name)) {
            continue;
        }
        let entry = match source.entry(contents.tree.redactor) {
            Ok(entry) => entry,
            // The journal is the run: a bundle without it is none.
            Err(left) if source.name == names::JOURNAL => {
                return Err(io::Error::other(format!("`{}`: {}", left.path, left.why)).into());
            }
            Err(left) => {
                left_out.push(left);
                continue;
            }
        };
        // A file that was changed is not passed to another machine as the one that the run wrote.
        match stream.and_then(|(named, name)| named.take(name, entry.size, Some(entry.sha256))) {
            Some(why) => left_out.push(LeftOut::new(&source.name, &why)),
            None => kept.push((entry, source)),
        }
    }
    for name in named.into_iter().flat_map(StreamDigests::left) {
        let gone = LeftOut::new(&format!("{}{name}", names::STREAMS), "it is gone");
        if !left_out.iter().any(|left| left.path == gone.path) {
            left_out.push(gone);
        }
    }
    bound(&mut kept, &mut left_out, MOST);
    // Within the scratch directory beside the target, so that the last step is a rename.
    let part = scratch.path().join("part");
    let mut tries = 0..MOST_TRIES;
    let manifest = loop {
        let files = kept.iter().map(|(entry, _)| entry.clone()).collect();
        let manifest = manifest(contents, tree.clone(), snapshots.clone(), left_out.clone(), files)?;
        let changed = write(&part, &manifest, &kept)?;
        if changed.is_empty() {
            break manifest;
        }
        let is_journal = |number: &usize| kept[*number].0.name.as_str() == names::JOURNAL;
        if changed.iter().any(is_journal) || tries.next().is_none() {
            return Err(io::Error::other("files of the run are changed while they are packed").into());
        }
        // From behind, so that the numbers of the others stay.
        for number in changed.into_iter().rev() {
            let (_, source) = kept.remove(number);
            left_out.push(LeftOut::new(&source.name, "it was changed while it was packed"));
        }
    };
    fs::rename(&part, target)?;
    Ok(PackedBundle { left_out: manifest.left_out, tree_missing })
}

/// A file on its way into a bundle.
struct PackedFile {
    name: String,
    path: PathBuf,
    /// Whether it was written by somebody else, and may hold anything.
    foreign: bool,
}

impl PackedFile {
    /// Returns its entry, or why it cannot go along. What an action keeps may be somebody else's, as what a container of
    /// root wrote, or go away in this moment; the rest goes along all the same.
    fn entry(&self, redactor: &Redactor) -> Result<ManifestEntry, LeftOut> {
        let left = |why: &str| LeftOut::new(&self.name, why);
        let unread = |error: io::Error| {
            if error.kind() == io::ErrorKind::NotFound {
                left("it is gone")
            } else {
                left(&format!("it cannot be read: {}", error.kind()))
            }
        };
        let metadata = fs::symlink_metadata(&self.path).map_err(unread)?;
        if metadata.is_dir() {
            return Err(left("it is a directory that cannot be read"));
        }
        if !metadata.is_file() {
            return Err(left("it is not a regular file"));
        }
        // Two such names may look the same, and no archive has one name twice.
        if self.name.contains(char::REPLACEMENT_CHARACTER) {
            return Err(left("its name is not UTF-8"));
        }
        let name = EntryName::parse(&self.name);
        let name = name.map_err(|_| left("a bundle cannot contain a file with this name"))?;
        if self.foreign
            && let Some(why) = why_kept_back(redactor, &self.path).map_err(unread)?
        {
            return Err(left(why));
        }
        digest(name, self).map_err(unread)
    }
}

fn sources(contents: &BundleContents<'_>) -> Vec<PackedFile> {
    let files = contents.files;
    let ours = |name: &str, path: PathBuf| PackedFile { name: name.to_owned(), path, foreign: false };
    let mut all = vec![ours(names::JOURNAL, files.journal())];
    let optional = [(names::STATE, files.state()), (names::LOG, files.log())];
    all.extend(optional.into_iter().filter(|(_, path)| path.exists()).map(|(name, path)| ours(name, path)));
    for (prefix, directory, foreign) in [
        (names::STREAMS, files.streams(), false),
        (names::RUN_DIR, files.scratch(), true),
        (names::REPORTS, contents.reports.to_owned(), false),
    ] {
        let mut below = Vec::new();
        walk(&directory, "", &mut below);
        let below = below.into_iter().filter(|(name, _)| prefix != names::REPORTS || is_report(name));
        all.extend(below.map(|(name, path)| PackedFile { name: format!("{prefix}{name}"), path, foreign }));
    }
    all
}

/// Writes the texts of the loop files down as they were when they were read.
fn loops(contents: &BundleContents<'_>, scratch: &Path) -> io::Result<Vec<PackedFile>> {
    let numbered = contents.loops.iter().enumerate();
    let written = numbered.map(|(number, (name, text))| {
        let path = scratch.join(format!("loop-{number}"));
        fs::write(&path, text)?;
        // A name that leads elsewhere would be refused on the way in.
        let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
        Ok(PackedFile { name: format!("{}{}", names::LOOPS, parts.join("/")), path, foreign: true })
    });
    written.collect()
}

/// Tells whether a file of the report directory is a report: the rest is there for people who have no bundle, or is about
/// the bundle itself.
fn is_report(name: &str) -> bool {
    let others = [names::JOURNAL, names::STATE, names::LOG, VERDICT_FILE, DETAILS_FILE];
    !others.contains(&name) && !name.starts_with(".ll-bundle-") && !is_bundle(Path::new(name))
}

fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == super::EXTENSION)
}

/// Lists the files below a directory in order, by names that every system can write. Links are not followed. A directory
/// that cannot be read is listed itself.
fn walk(directory: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) {
    let listed = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut entries = match listed {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(_) => {
            found.push((prefix.trim_end_matches('/').to_owned(), directory.to_owned()));
            return;
        }
    };
    // So the same run makes the same list on every file system.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), &format!("{name}/"), found);
        } else {
            found.push((name, entry.path()));
        }
    }
}

/// How much of a bound a file takes.
type Weight = fn(&ManifestEntry) -> u64;

/// Leaves out what of `LL_RUN_DIR` is more than a bundle may hold: whole parts of it, the largest first, for half of a
/// directory of installed packages is of no use.
fn bound(kept: &mut Vec<(ManifestEntry, PackedFile)>, left_out: &mut Vec<LeftOut>, most: UnzipLimits) {
    let files = format!("with it, the bundle would hold more than {} files", most.entries);
    let bytes = format!("with it, the bundle would hold more than {} MiB", most.bytes >> 20);
    let bounds: [(u64, String, Weight); 2] =
        [(most.entries as u64, files, |_| 1), (most.bytes, bytes, |entry| entry.size)];
    for (most, why, weight) in bounds {
        let beyond = parts_beyond(kept, most, weight);
        kept.retain(|(entry, _)| part(entry).is_none_or(|part| !beyond.contains(part)));
        let named = beyond.iter().take(MOST_PARTS);
        left_out.extend(named.map(|part| LeftOut::new(&format!("{}{part}", names::RUN_DIR), &why)));
        let more = beyond.len().saturating_sub(MOST_PARTS);
        if more > 0 {
            left_out.push(LeftOut::new(names::RUN_DIR, &format!("{more} more parts of it: {why}")));
        }
    }
}

/// Returns the parts of `LL_RUN_DIR` without which all files together have a weight that is allowed, as far as there are any.
fn parts_beyond(kept: &[(ManifestEntry, PackedFile)], most: u64, weight: Weight) -> BTreeSet<String> {
    let mut total = 0u64;
    let mut parts: BTreeMap<&str, u64> = BTreeMap::new();
    for (entry, _) in kept {
        let weight = weight(entry);
        total = total.saturating_add(weight);
        if let Some(part) = part(entry) {
            let of_part = parts.entry(part).or_default();
            *of_part = of_part.saturating_add(weight);
        }
    }
    let mut parts: Vec<(&str, u64)> = parts.into_iter().collect();
    parts.sort_by_key(|(_, weight)| Reverse(*weight));
    let mut beyond = BTreeSet::new();
    for (part, weight) in parts {
        if total <= most {
            break;
        }
        total = total.saturating_sub(weight);
        beyond.insert(part.to_owned());
    }
    beyond
}

/// Returns the file or directory right below `LL_RUN_DIR` that an entry belongs to.
fn part(entry: &ManifestEntry) -> Option<&str> {
    let below = entry.name.as_str().strip_prefix(names::RUN_DIR)?;
    Some(below.split_once('/').map_or(below, |(part, _)| part))
}

fn digest(name: EntryName, source: &PackedFile) -> io::Result<ManifestEntry> {
    let mut file = BufReader::with_capacity(1 << 16, read::open(&source.path)?);
    let mut digest = Sha256::new();
    let size = io::copy(&mut file, &mut Hashing(&mut digest))?;
    Ok(ManifestEntry { name, size, sha256: Sum::end(digest) })
}

fn manifest(
    contents: &BundleContents<'_>,
    tree: Option<SavedTree>,
    snapshots: Option<SavedSnapshots>,
    left_out: Vec<LeftOut>,
    files: Vec<ManifestEntry>,
) -> Result<Manifest, PackError> {
    let ends = journal_ends::ends(&contents.files.journal())?;
    let (Some((_, start)), Some((_, last_seq))) = (ends.start, ends.last) else {
        return Err(PackError::NotBegun);
    };
    let outcome = ends.complete.as_ref().map(|complete| complete.outcome);
    let (iteration, step) = ends.place.as_ref().map_or((0, 0), |place| (place.iteration, place.step));
    Ok(Manifest {
        schema: SCHEMA,
        written_by: Line::of(concat!("ll-loop ", env!("CARGO_PKG_VERSION"))),
        written_at: contents.now,
        r#loop: start.r#loop,
        instance: InstanceName::parse(contents.files.instance()).map_err(io::Error::other)?,
        file: RelativePath::parse(&start.source.file).ok(),
        definition_sha256: Sum::parse(&start.definition_sha256).map_err(io::Error::other)?,
        assignment: contents.assignment.clone().or(start.assignment.map(|assignment| *assignment)),
        merges: start.merges,
        repository: contents.repository.as_deref().map(Line::of),
        job: contents.job.as_deref().map(Line::of),
        outcome,
        resumable: ends.complete.as_ref().is_none_or(LoopComplete::is_resumable),
        state: ends.place.and_then(|place| StateName::parse(&place.state).ok()),
        iteration,
        step,
        last_seq,
        tree,
        snapshots,
        left_out,
        files,
    })
}

/// Writes the archive. Returns the files, by their numbers, that were no longer what the manifest says of them.
fn write(
    target: &Path,
    manifest: &Manifest,
    kept: &[(ManifestEntry, PackedFile)],
) -> Result<Vec<usize>, PackError> {
    let mut zip = ZipWriter::new(BufWriter::new(fs::File::create(target)?));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        // An interrupted job has seconds for this.
        .compression_level(Some(1));
    zip.start_file(names::MANIFEST, options)?;
    zip.write_all(&serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?)?;
    let mut changed = Vec::new();
    for (number, (entry, source)) in kept.iter().enumerate() {
        let Ok(file) = read::open(&source.path) else {
            changed.push(number);
            continue;
        };
        let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
        // An entry of 4 GiB or more needs ZIP64, which has to be said before its data.
        let options = options.large_file(entry.size > u64::from(u32::MAX)).unix_permissions(if executable {
            0o755
        } else {
            0o644
        });
        zip.start_file(entry.name.as_str(), options)?;
        let mut digest = Sha256::new();
        // What is written on meanwhile is as long as it was when it was looked at.
        let mut reader = HashedReader { reader: file.take(entry.size), digest: &mut digest };
        let size = io::copy(&mut reader, &mut zip)?;
        // Whoever opens a bundle refuses all of it for one file that is not the one of the manifest.
        if size != entry.size || Sum::end(digest) != entry.sha256 {
            changed.push(number);
        }
    }
    zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(directory: &Path, name: &str) -> PackedFile {
        PackedFile { name: format!("{}{name}", names::RUN_DIR), path: directory.join(name), foreign: true }
    }

    // Other systems take no such name.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_go_along_is_left_out_by_itself() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;

        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("plain"), "1").unwrap();
        fs::write(place.path().join(OsStr::from_bytes(b"odd\xff")), "2").unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("folder/below"), "3").unwrap();
        let mut found = Vec::new();
        walk(place.path(), "", &mut found);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["folder/below", "odd\u{fffd}", "plain"]);
        let entry = |name: &str| file(place.path(), name).entry(&Redactor::default());
        assert_eq!(entry("plain").unwrap().sha256, Sum::of(b"1"));
        for (name, why) in [
            ("absent", "it is gone"),
            ("folder", "it is a directory that cannot be read"),
            ("/dev/null", "it is not a regular file"),
        ] {
            assert_eq!(entry(name).unwrap_err().why.as_str(), why);
        }
        let (name, path) = found.swap_remove(1);
        let odd = PackedFile { name: format!("{}{name}", names::RUN_DIR), path, foreign: true };
        assert_eq!(odd.entry(&Redactor::default()).unwrap_err().why.as_str(), "its name is not UTF-8");
    }

    #[test]
    fn a_file_that_changes_between_the_digest_and_the_archive_is_named() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let names = ["changed", "gone", "longer", "same"];
        let kept: Vec<_> = names
            .into_iter()
            .map(|name| {
                fs::write(at(name), "as it was").unwrap();
                let source = file(place.path(), name);
                (source.entry(&Redactor::default()).unwrap(), source)
            })
            .collect();
        fs::write(at("changed"), "as it is!").unwrap();
        fs::remove_file(at("gone")).unwrap();
        fs::write(at("longer"), "as it was, and more").unwrap();
        let manifest: Manifest = serde_json::from_value(json!({
            "schema": SCHEMA, "written_by": "ll-loop", "written_at": "2026-01-01T00:00:00.000Z", "loop": "main",
            "instance": "main-20260101T000000-abcdef", "file": null, "definition_sha256": "0".repeat(64),
            "repository": null, "job": null, "outcome": null, "resumable": true, "state": null, "iteration": 1,
            "step": 1, "last_seq": 1, "tree": null, "left_out": [], "files": [],
        }))
        .unwrap();
        assert_eq!(write(&at("part"), &manifest, &kept).unwrap(), [0, 1]);
    }

    #[test]
    fn what_no_bundle_may_hold_is_left_out_by_whole_directories() {
        let all = [
            ("venv/a", 1),
            ("venv/b", 1),
            ("venv/lib/c", 1),
            ("notes", 1),
            ("dump/core", 90),
            ("dump/log", 9),
        ];
        let kept = |entries, bytes| {
            let entry = |(name, size): (&str, u64)| {
                let source = file(Path::new("/"), name);
                let name = EntryName::parse(&source.name).unwrap();
                (ManifestEntry { name, size, sha256: Sum::of(b"") }, source)
            };
            let mut kept: Vec<_> = all.into_iter().map(entry).collect();
            let mut left_out = Vec::new();
            bound(&mut kept, &mut left_out, UnzipLimits { entries, bytes });
            let kept: Vec<String> = kept.iter().map(|(_, source)| source.name.clone()).collect();
            let left_out: Vec<String> = left_out.iter().map(|left| left.path.to_string()).collect();
            (kept.join(" "), left_out.join(" "))
        };
        assert_eq!(kept(6, 103).1, "");
        let (stay, gone) = kept(5, 103);
        assert_eq!(
            (stay.as_str(), gone.as_str()),
            ("run-dir/notes run-dir/dump/core run-dir/dump/log", "run-dir/venv")
        );
        let (stay, gone) = kept(6, 102);
        assert_eq!(gone, "run-dir/dump");
        assert!(stay.ends_with("run-dir/venv/lib/c run-dir/notes"), "{stay}");
        assert_eq!(kept(1, 2), ("run-dir/notes".to_owned(), "run-dir/dump run-dir/venv".to_owned()));
    }
}
