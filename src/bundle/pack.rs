//! Writes a bundle: the files of a run as they are, each with its digest, and what the run made of the working tree.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::manifest::{
    EntryName, LeftOut, Manifest, ManifestEntry, SCHEMA, SavedSnapshots, SavedTree, SnapshotName,
};
use super::names;
use super::snapshots::{self, SnapshotOptions};
use super::tree::{self, MadeTree, TreeOptions};
use crate::base::name::{InstanceName, StateName};
use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::base::relative::{Line, RelativePath};
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::event::{Assignment, LoopComplete};
use crate::files::secret::holds_secret;
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
        // A run can go on without its tree: whoever resumes it is told what is missing.
        Err(why) => (None, vec![LeftOut::new(".", &format!("the working tree: {why}"))]),
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
    let mut sources = sources(contents)?;
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
        let Ok(name) = EntryName::parse(&source.name) else {
            left_out.push(LeftOut::new(&source.name, "a bundle cannot contain a file with this name"));
            continue;
        };
        if let Some(why) = source.check(contents.tree.redactor)? {
            left_out.push(LeftOut::new(&source.name, why));
            continue;
        }
        let entry = digest(name, &source)?;
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
    let manifest =
        manifest(contents, tree, snapshots, left_out, kept.iter().map(|(entry, _)| entry.clone()).collect())?;
    // Within the scratch directory beside the target, so that the last step is a rename.
    let part = scratch.path().join("part");
    write(&part, &manifest, &kept)?;
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
    /// Says why it cannot go along.
    fn check(&self, redactor: &Redactor) -> io::Result<Option<&'static str>> {
        let is_file = fs::symlink_metadata(&self.path)?.is_file();
        if !is_file {
            return Ok(Some("it is not a regular file"));
        }
        let held = self.foreign && !redactor.is_empty() && holds_secret(redactor, &self.path)?;
        Ok(held.then_some("it holds a secret"))
    }
}

fn sources(contents: &BundleContents<'_>) -> io::Result<Vec<PackedFile>> {
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
        walk(&directory, "", &mut below)?;
        let below = below.into_iter().filter(|(name, _)| prefix != names::REPORTS || is_report(name));
        all.extend(below.map(|(name, path)| PackedFile { name: format!("{prefix}{name}"), path, foreign }));
    }
    Ok(all)
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

/// Lists the files below a directory in order, by names that every system can write. Links are not followed.
fn walk(directory: &Path, prefix: &str, found: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // So the same run makes the same list on every file system.
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{name}/"), found)?;
        } else {
            found.push((name, entry.path()));
        }
    }
    Ok(())
}

fn digest(name: EntryName, source: &PackedFile) -> io::Result<ManifestEntry> {
    let mut file = BufReader::with_capacity(1 << 16, read::open(&source.path)?);
    let mut digest = Sha256::new();
    let size = io::copy(&mut file, &mut Hashing(&mut digest))?;
    Ok(ManifestEntry { name, size, sha256: Sum::end(digest) })
}

/// Feeds a digest.
pub(super) struct Hashing<'d>(pub(super) &'d mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

fn write(target: &Path, manifest: &Manifest, kept: &[(ManifestEntry, PackedFile)]) -> Result<(), PackError> {
    let mut zip = ZipWriter::new(BufWriter::new(fs::File::create(target)?));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        // An interrupted job has seconds for this.
        .compression_level(Some(1));
    zip.start_file(names::MANIFEST, options)?;
    zip.write_all(&serde_json::to_vec_pretty(manifest).map_err(io::Error::from)?)?;
    for (entry, source) in kept {
        let file = read::open(&source.path).map_err(io::Error::from)?;
        let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
        // An entry of 4 GiB or more needs ZIP64, which has to be said before its data.
        let options = options.large_file(entry.size > u64::from(u32::MAX)).unix_permissions(if executable {
            0o755
        } else {
            0o644
        });
        zip.start_file(entry.name.as_str(), options)?;
        // What is written on meanwhile is as long as it was when it was looked at.
        io::copy(&mut file.take(entry.size), &mut zip)?;
    }
    zip.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}
