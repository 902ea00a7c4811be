//! Finds the bundles of a plan's runs, wherever jobs have left them, and reads each as untrusted input.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{ITEMS, PLAN};
use crate::base::explanation::Explanation;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::base::time::millis;
use crate::bundle::manifest::Manifest;
use crate::bundle::merged::RESULT;
use crate::bundle::open::LIMITS;
use crate::bundle::opened::OpenedBundle;
use crate::bundle::{EXTENSION, names};
use crate::context::Session;
use crate::context::error::Error;
use crate::engine::changes::{StartTree, TreeIds};
use crate::engine::event::LoopComplete;
use crate::engine::verification::Verification;
use crate::evaluate::model::Usage;
use crate::fanout::item::ItemId;
use crate::fanout::item_plan::Plan;
use crate::fanout::merged_runs::{BundledRun, MergeContent, MergeInput};
use crate::fanout::put_off::{self, PutOff};
use crate::files::unzip::{Archive, UnzipError};
use crate::files::{read, transient};
use crate::report::digest::Digest;
use crate::report::formats::junit;

/// How deep bundles may lie in the directories that are given.
// A leg has a directory for each item, and a download adds one for the artifact; what lies deeper counts as missing.
const DEPTH: usize = 8;

/// How many files are looked at.
// Twenty for each item of the largest plan. With more, a wrong directory was given, such as a whole disk.
const MOST_FILES: usize = 200_000;

/// How many notes of legs one artifact can have.
// A leg leaves one; an artifact that somebody else made may hold any number, of up to 4 MiB each.
const MOST_NOTES: usize = 1000;

/// The exit code of a run whose process was killed, as a shell says it.
const KILLED: u8 = 137;

/// What was found, and what is told of it.
pub(super) struct Collected {
    /// What the merge decides by.
    pub(super) readings: Vec<MergeInput>,
    /// What is known of each beside that, at the same place.
    pub(super) facts: Vec<Option<Facts>>,
    /// What legs say of the items for which they had no time left.
    pub(super) put_off: Vec<PutOff>,
}

/// What is told of a run.
pub(super) struct Facts {
    /// The file with the bundle.
    pub(super) source: BundlePlace,
    /// How it ended, in a sentence.
    pub(super) sentence: String,
    /// What verified it, and what did not.
    pub(super) verification: Option<Verification>,
    /// Whether it changed anything, as far as it knows.
    pub(super) is_changed: bool,
    /// The tree of the commit, if the run began on nothing else and changed nothing.
    pub(super) unchanged: Option<TreeIds>,
    /// What its models cost.
    pub(super) usage: Usage,
    /// Its states as JUnit has them.
    pub(super) suite: junit::Suite,
}

/// Where a bundle lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BundlePlace {
    /// The file.
    pub(super) file: PathBuf,
    /// Its name in that file, which is an artifact then.
    pub(super) inside: Option<String>,
}

impl BundlePlace {
    /// Opens the bundle.
    pub(super) fn open(&self) -> Result<OpenedBundle, Explanation> {
        let Some(name) = &self.inside else {
            return OpenedBundle::open(&self.file).map_err(Explanation::from);
        };
        let scratch = transient::directory("")?;
        let copy = scratch.path().join(format!("bundle.{EXTENSION}"));
        self.copy_to(&copy, name)?;
        // What it needs of the copy is unpacked by then.
        OpenedBundle::open(&copy).map_err(Explanation::from)
    }

    /// Copies the bundle.
    pub(super) fn copy(&self, to: &Path) -> Result<(), Explanation> {
        match &self.inside {
            None => read::copy(&self.file, to).map_err(Explanation::from),
            Some(name) => self.copy_to(to, name),
        }
    }

    fn copy_to(&self, to: &Path, name: &str) -> Result<(), Explanation> {
        let mut archive = archive(&self.file)?;
        let mut content = archive.read(name)?;
        let mut copy = File::create(to)?;
        io::copy(&mut content, &mut copy).map(drop).map_err(Explanation::from)
    }

    fn shown(&self, session: &Session<'_>) -> String {
        let file = self.file.strip_prefix(&session.cwd).unwrap_or(&self.file).display().to_string();
        let shown = match &self.inside {
            Some(name) => format!("{file}: {name}"),
            None => file,
        };
        one_line(&shown, 300)
    }

    /// Returns the directories around the bundle, in the file system and in an artifact, the nearest first.
    fn around(&self) -> Vec<String> {
        let parts = |path: &Path| -> Vec<String> {
            path.iter().map(|part| part.to_string_lossy().into_owned()).collect()
        };
        let mut all = parts(&self.file);
        all.extend(self.inside.iter().flat_map(|name| parts(Path::new(name))));
        all.reverse();
        all
    }
}

fn archive(path: &Path) -> Result<Archive<File>, UnzipError> {
    Archive::open(read::open(path).map_err(io::Error::from)?, LIMITS)
}

/// Reads all bundles in these files and directories.
pub(super) fn collect(paths: &[PathBuf], plan: &Plan, session: &Session<'_>) -> Result<Collected, Error> {
    let mut files = Vec::new();
    let mut merged = BTreeSet::new();
    for path in paths {
        let path = session.path(path);
        if path.join(PLAN).is_file() && path.join(RESULT).is_file() {
            merged.insert(path.join(ITEMS));
        }
        let unusable = |error: io::Error| {
            Error::refused(format!("cannot read the reports of the legs: {error}"))
                .with_hint("give the directories to which the legs wrote, or their bundles")
        };
        // A path that was named may be a link, which the caller chose; those inside are not followed.
        if fs::metadata(&path).map_err(unusable)?.is_dir() {
            below(&path, DEPTH, &mut files).map_err(unusable)?;
        } else {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(Error::refused(format!("there are more than {MOST_FILES} files"))
                .with_hint("give the directories with the reports of the legs alone"));
        }
    }
    // A directory is listed in any order, and may be named beside one that it lies in.
    files.sort();
    files.dedup();
    let mut collected = Collected { readings: Vec::new(), facts: Vec::new(), put_off: Vec::new() };
    // The same bundle may lie in the workspace and in an artifact.
    let mut seen: BTreeSet<Sum> = BTreeSet::new();
    for file in files {
        collected.put_off.extend(notes(&file));
        if is_note(&file) {
            continue;
        }
        for source in sources(file) {
            let source = match source {
                Ok(source) => source,
                Err((source, why)) => {
                    let found = lost(&source, why, plan);
                    let shown = source.shown(session);
                    collected.add(MergeInput { shown, found, is_of_merge: false }, None);
                    continue;
                }
            };
            let (found, facts) = read(&source, plan, &mut seen);
            if let Some(found) = found {
                let is_of_merge = source.file.parent().is_some_and(|parent| merged.contains(parent));
                collected.add(MergeInput { shown: source.shown(session), found, is_of_merge }, facts);
            }
        }
    }
    Ok(collected)
}

impl Collected {
    fn add(&mut self, reading: MergeInput, facts: Option<Facts>) {
        self.readings.push(reading);
        self.facts.push(facts);
    }
}

/// Lists the bundles and the archives below a directory. Links are not followed.
fn below(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, entry.path());
        let is_wanted =
            path.extension().is_some_and(|end| end == EXTENSION || end == "zip") || is_note(&path);
        // An artifact may hold links that lead out of it or in a circle. A link is neither of the two kinds here.
        if kind.is_dir() && depth > 0 {
            below(&path, depth - 1, found)?;
        } else if kind.is_file() && is_wanted {
            found.push(path);
        }
        if found.len() > MOST_FILES {
            // The caller refuses that many, so there is no reason to count the rest.
            break;
        }
    }
    Ok(())
}

fn is_note(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == put_off::FILE)
}

/// Reads what legs say of items that they did not begin, as a file or in an artifact. Anything else counts for nothing.
fn notes(file: &Path) -> Vec<PutOff> {
    let read = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
    if is_note(file) {
        return crate::files::read::bytes(file, put_off::MAX_FILE)
            .ok()
            .and_then(|bytes| read(&bytes))
            .into_iter()
            .collect();
    }
    if file.extension().is_none_or(|end| end != "zip") {
        return Vec::new();
    }
    // What is wrong with the file is said when its bundles are looked for.
    let Ok(mut archive) = archive(file) else { return Vec::new() };
    let names: Vec<String> = archive.entries().iter().map(|entry| entry.name.clone()).collect();
    let mut found = Vec::new();
    for name in names.iter().filter(|name| is_note(Path::new(name))).take(MOST_NOTES) {
        let mut bytes = Vec::new();
        let content = archive.read(name).ok().map(|content| content.take(put_off::MAX_FILE));
        if content.is_some_and(|mut content| content.read_to_end(&mut bytes).is_ok()) {
            found.extend(read(&bytes));
        }
    }
    found
}

/// Returns the bundles that a file is or has, or what keeps it from being read.
fn sources(file: PathBuf) -> Vec<Result<BundlePlace, (BundlePlace, Option<String>)>> {
    let is_bundle = file.extension().is_some_and(|end| end == EXTENSION);
    let whole = BundlePlace { file, inside: None };
    let archive = match archive(&whole.file) {
        Ok(archive) => archive,
        // What is called a bundle has to be one; another archive may be anything.
        Err(error) if is_bundle => return vec![Err((whole, Some(error.to_string())))],
        Err(UnzipError::NotZip) => return vec![Err((whole, None))],
        Err(error) => return vec![Err((whole, Some(error.to_string())))],
    };
    let names = || archive.entries().iter().map(|entry| entry.name.as_str());
    // A merge keeps the bundles of its items as `.zip`, so the name alone does not tell.
    if is_bundle || names().any(|name| name == names::MANIFEST) {
        return vec![Ok(whole)];
    }
    let inside = |name: &str| Path::new(name).extension().is_some_and(|end| end == EXTENSION);
    let found: Vec<_> = names()
        .filter(|name| inside(name))
        .map(|name| Ok(BundlePlace { file: whole.file.clone(), inside: Some(name.to_owned()) }))
        .collect();
    if found.is_empty() { vec![Err((whole, None))] } else { found }
}

/// Returns what stands for a file that is not read: one with a fault hides an item, another archive does not.
fn lost(source: &BundlePlace, why: Option<String>, plan: &Plan) -> MergeContent {
    match why {
        Some(why) => unreadable(source, &why, plan),
        None => MergeContent::Foreign { why: "it is not a bundle".to_owned() },
    }
}

fn unreadable(source: &BundlePlace, why: &str, plan: &Plan) -> MergeContent {
    // The content cannot say which item it is, but a leg leaves each in a directory of its name.
    let around = source.around();
    let named = around.iter().find_map(|part| {
        let name = part.strip_suffix(".zip").unwrap_or(part);
        ItemId::parse(name).ok().filter(|id| plan.item(id).is_some())
    });
    // `…-r77-a2`, as the artifact of a job is called.
    let attempt = around.iter().find_map(|part| {
        let name = part.strip_suffix(".zip").unwrap_or(part);
        let (before, attempt) = name.rsplit_once("-a")?;
        before.rsplit_once("-r")?;
        attempt.parse().ok()
    });
    MergeContent::Unreadable { why: one_line(why, 300), item: named, attempt }
}

/// Reads a bundle. Returns nothing for one that was read before.
fn read(
    source: &BundlePlace,
    plan: &Plan,
    seen: &mut BTreeSet<Sum>,
) -> (Option<MergeContent>, Option<Facts>) {
    let opened = match source.open() {
        Ok(opened) => opened,
        Err(why) => return (Some(unreadable(source, why.as_str(), plan)), None),
    };
    if !seen.insert(opened.sum) {
        return (None, None);
    }
    let OpenedBundle { manifest, digest, .. } = &opened;
    if digest.start().is_some_and(|start| start.merges.is_some()) {
        let why = "it is what an earlier merge made of such bundles".to_owned();
        return (Some(MergeContent::Foreign { why }), None);
    }
    match found(manifest, digest, plan) {
        Ok(run) => {
            // Only a success needs to be told why it does not count.
            let dirty = run.dirty_start.as_ref().filter(|_| run.exit_code == 0);
            let dirty = dirty
                .map(|how| format!("; and it did not begin on the tree of the plan: {}", one_line(how, 200)));
            let facts = Facts {
                source: source.clone(),
                sentence: digest.sentence() + dirty.as_deref().unwrap_or(""),
                verification: digest.verification().cloned(),
                unchanged: unchanged(digest),
                // Unknown changes must not pass for none: the merged tree would be called verified as a whole.
                is_changed: digest.changes().is_none_or(|changes| !changes.is_nothing()),
                usage: digest.usage().clone(),
                suite: junit::suite(digest),
            };
            (Some(MergeContent::Run(Box::new(run))), Some(facts))
        }
        Err(why) => (Some(unreadable(source, why.as_str(), plan)), None),
    }
}

/// Returns the tree of the commit, if a run began on nothing else and changed nothing.
fn unchanged(digest: &Digest) -> Option<TreeIds> {
    let Some(StartTree::Known(start)) = &digest.start()?.tree else { return None };
    let is_plain = start.entries.is_empty() && digest.changes()?.is_nothing();
    is_plain.then(|| start.ids.clone())
}

/// Reads what the merge decides by. The journal counts, and the manifest must not contradict it.
fn found(manifest: &Manifest, digest: &Digest, plan: &Plan) -> Result<BundledRun, Explanation> {
    let start = digest.start().ok_or_else(|| Explanation::new("its journal has no beginning"))?;
    let assignment = start.assignment.as_deref().cloned();
    if manifest.assignment != assignment || manifest.instance.as_str() != digest.run_id() {
        return Err(Explanation::new("its manifest and its journal are about different runs"));
    }
    // A resume may go on with another definition than the first one, and the last one counts.
    let definition = Sum::parse(&start.definition_sha256).ok();
    if definition != Some(manifest.definition_sha256) {
        return Err(Explanation::new("its manifest and its journal are about different definitions"));
    }
    let end = digest.end();
    if manifest.outcome != end.map(|end| end.outcome) {
        return Err(Explanation::new("its manifest and its journal tell of different ends"));
    }
    let commit = match &start.tree {
        Some(StartTree::Known(known)) => Some(known.ids.commit.clone()),
        Some(StartTree::Unknown { .. }) | None => {
            start.commit.as_deref().and_then(|commit| crate::base::object::ObjectId::parse(commit).ok())
        }
    };
    let dirty_start = match &start.tree {
        Some(tree) => tree.departs_from(&plan.differs),
        None => Some("its journal does not say on which tree it began".to_owned()),
    };
    let is_plain = matches!(&start.tree, Some(StartTree::Known(known)) if known.entries.is_empty());
    // What says that it is verified has to say by what.
    let holds = digest.verification().is_some_and(Verification::holds);
    Ok(BundledRun {
        run: one_line(digest.run_id(), 200),
        assignment,
        commit,
        definition_sha256: definition,
        outcome: end.map(|end| end.outcome),
        exit_code: end.map_or(KILLED, |end| end.exit_code),
        verified: end.is_some_and(LoopComplete::is_verified_success) && holds,
        dirty_start,
        began_with_changes: !is_plain,
        entered: digest.step_count() > 0,
        duration_ms: millis(digest.duration()),
    })
}
