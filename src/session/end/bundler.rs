//! Writes a run into one file, from which another machine can resume it: on request, at checkpoints while the run
//! goes on, and at its end.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::upload::Uploader;
use crate::base::advised_command;
use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::base::repository_address::repository;
use crate::base::territory::Territory;
use crate::base::text::one_line;
use crate::bundle::manifest::SnapshotName;
use crate::bundle::pack::{BundleContents, PackError, PackedBundle, pack};
use crate::bundle::tree::{MadeTree, TreeOptions};
use crate::bundle::{EXTENSION, IS_A_LOOP};
use crate::ci::job_page;
use crate::context::Session;
use crate::definition::load::DIRECTORY;
use crate::engine::event::Assignment;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::journal::{fault, journal_ends};
use crate::process::clock::Clock;
use crate::repository;
use crate::run::tree_snapshots::Moment;
use crate::session::prepare::library;
use crate::session::prepare::prepared::Prepared;
use crate::session::read::run_snapshots;

/// At most so many of the files that were left out are named in warnings.
const NAMED: usize = 5;

/// Returns the commit of the checkout.
pub(crate) fn commit(prepared: &Prepared, session: &Session<'_>) -> Option<String> {
    let git = repository::at(&prepared.located.root, session);
    git.line(&repository::head()).ok()
}

/// Returns the name of a run's bundle.
pub(crate) fn file_name(files: &RunFiles) -> String {
    format!("{}.{EXTENSION}", files.instance())
}

/// What a bundle is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// Another machine goes on with the run.
    Resume,
    /// What runs have left together is delivered.
    Delivery,
}

impl Purpose {
    /// Says what cannot be done without the bundle.
    fn missed(self) -> &'static str {
        match self {
            Self::Resume => "only this machine can go on with the run",
            Self::Delivery => "nothing of it can be delivered",
        }
    }
}

/// Writes the bundle of one run.
pub(crate) struct Bundler {
    git: Git,
    scope: Vec<PathBuf>,
    loops: PathBuf,
    texts: Vec<(String, String)>,
    definition: Vec<PathBuf>,
    redactor: Redactor,
    repository: Option<String>,
    job: Option<String>,
    assignment: Option<Assignment>,
    made: Option<MadeTree>,
    purpose: Purpose,
    clock: Clock,
}

impl Bundler {
    pub(crate) fn new(prepared: &Prepared, territory: &Territory, session: &Session<'_>) -> Self {
        let root = &prepared.located.root;
        let git = repository::at(root, session);
        let mut texts = library::texts(&prepared.loaded.sources);
        texts.extend(prepared.library.texts());
        texts.sort();
        // The library may have read files that the loop has as well.
        texts.dedup_by(|one, other| one.0 == other.0);
        Self {
            scope: territory.paths.iter().map(|path| PathBuf::from(path.to_string())).collect(),
            loops: root.join(DIRECTORY),
            definition: prepared.definition(),
            texts,
            redactor: session.redactor.clone(),
            repository: here(&git, session),
            job: job_page::of_job(&session.env.lookup()),
            assignment: None,
            made: None,
            purpose: Purpose::Resume,
            clock: Clock::start(),
            git,
        }
    }

    /// Writes the bundle of what several runs have left together. The repository is that of the checkout.
    pub(crate) fn of_merge(made: Option<MadeTree>, loops: PathBuf, session: &Session<'_>) -> Self {
        let git = repository::at(&session.cwd, session);
        Self {
            scope: Vec::new(),
            loops,
            definition: Vec::new(),
            texts: Vec::new(),
            redactor: session.redactor.clone(),
            repository: here(&git, session),
            job: job_page::of_job(&session.env.lookup()),
            assignment: None,
            made,
            purpose: Purpose::Delivery,
            clock: Clock::start(),
            git,
        }
    }

    /// Names the item of a plan that the run works on.
    #[must_use]
    pub(crate) fn working_on(self, assignment: Option<Assignment>) -> Self {
        Self { assignment, ..self }
    }

    /// Writes the bundle of a run among its reports.
    pub(crate) fn write(&self, files: &RunFiles, reports: &Path) -> Result<PackedBundle, PackError> {
        self.write_to(files, reports, &reports.join(file_name(files)))
    }

    pub(crate) fn write_to(
        &self,
        files: &RunFiles,
        reports: &Path,
        target: &Path,
    ) -> Result<PackedBundle, PackError> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (reports, target) = (absolute(reports), absolute(target));
        // The user's `.gitignore` need not cover these files, which would then count as changes of the working tree.
        let ours = [
            reports.clone(),
            target.clone(),
            files.directory().to_owned(),
            RunFiles::running(&self.loops),
            RunFiles::archive_of_all(&self.loops),
            self.loops.join(".gitignore"),
        ];
        let start = journal_ends::ends(&files.journal())?.start.map(|(_, start)| start);
        // The items of a leg have their reports side by side.
        let of_leg =
            start.as_ref().and_then(|start| start.assignment.as_ref()).and_then(|_| reports.parent());
        let ours: Vec<PathBuf> = ours.into_iter().chain(of_leg.map(Path::to_owned)).collect();
        let base = start.and_then(|start| start.began_at());
        // A bundle without snapshots still lets the run go on.
        let found = run_snapshots::all(&self.git, files.instance()).into_iter().flatten();
        let named =
            |(moment, id): (Moment, ObjectId)| Some((SnapshotName::parse(&moment.to_string()).ok()?, id));
        let snapshots = found.filter_map(named).collect();
        let tree = TreeOptions {
            git: self.git.clone(),
            base,
            scope: &self.scope,
            ours: &ours,
            definition: &self.definition,
            redactor: &self.redactor,
            aside: &files.aside(),
        };
        let contents = BundleContents {
            files,
            reports: &reports,
            loops: &self.texts,
            tree,
            snapshots: &snapshots,
            made: self.made.as_ref(),
            assignment: self.assignment.clone(),
            repository: self.repository.clone(),
            job: self.job.clone(),
            now: self.clock.now(),
        };
        fault::write(1)?;
        pack(&contents, &target)
    }
}

/// Writes the bundle of one run among its reports, at checkpoints and at its end.
pub(crate) struct Saver {
    bundler: Bundler,
    files: RunFiles,
    reports: PathBuf,
    uploader: Option<Rc<Uploader>>,
    /// Why the last checkpoint failed.
    failed: RefCell<Option<String>>,
}

/// A run that was saved at its end.
#[derive(Debug, Default)]
pub(crate) struct SavedRun {
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
    /// Its bundle, if it was written: what lies there otherwise is one of an earlier moment.
    pub(crate) bundle: Option<PathBuf>,
    /// Why there is none, if there should be one.
    pub(crate) unsaved: Option<String>,
}

impl Saver {
    pub(crate) fn new(
        bundler: Bundler,
        files: RunFiles,
        reports: PathBuf,
        uploader: Option<Rc<Uploader>>,
    ) -> Self {
        Self { bundler, files, reports, uploader, failed: RefCell::default() }
    }

    /// Saves the run in its present state.
    pub(crate) fn checkpoint(&self) {
        let saved = self.bundler.write(&self.files, &self.reports);
        if let (Ok(_), Some(uploader)) = (&saved, &self.uploader) {
            uploader.checkpoint(&self.reports.join(file_name(&self.files)));
        }
        // A checkpoint that succeeds makes up for one that failed before it.
        self.failed.replace(saved.err().map(|error| error.to_string()));
    }

    /// Saves the run at its end.
    pub(crate) fn finish(&self, files: &RunFiles, reports: &Path) -> SavedRun {
        let failed = self.failed.take().map(|why| format!("the last checkpoint failed: {why}"));
        let (mut bundle, mut unsaved) = (None, None);
        let at_the_end = match self.bundler.write(files, reports) {
            Ok(mut packed) => {
                // A run that is over is not resumed, and a first loop is not committed yet.
                let is_missed = |why: &str| !files.is_archived() || why != IS_A_LOOP;
                packed.left_out.retain(|left| is_missed(left.why.as_str()));
                bundle = Some(reports.join(file_name(files)));
                warnings(&packed)
            }
            // A run that never began leaves nothing that could go on, so nothing is missed.
            Err(PackError::NotBegun) => Vec::new(),
            Err(error) => {
                // The log has named the file already.
                let goes_on = self.bundler.purpose == Purpose::Resume && !files.is_archived();
                let here = goes_on.then(|| advised_command::resume(files.instance()));
                let here = here.map_or_else(String::new, |command| format!(", with `{command}`"));
                let why =
                    format!("cannot write a bundle, so {}{here}: {error}", self.bundler.purpose.missed());
                unsaved = Some(why.clone());
                vec![why]
            }
        };
        SavedRun { warnings: failed.into_iter().chain(at_the_end).collect(), bundle, unsaved }
    }
}

/// Warns of what a bundle does not contain.
pub(crate) fn warnings(packed: &PackedBundle) -> Vec<String> {
    let missing = packed.tree_missing.iter();
    let missing =
        missing.map(|why| format!("the bundle does not carry the changes of the working tree: {why}"));
    let named = packed.left_out.iter().take(NAMED);
    let named =
        named.map(|file| format!("not in the bundle: {}: {}", one_line(file.path.as_str(), 200), file.why));
    let more = packed.left_out.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("not in the bundle: {more} more; its manifest names them"));
    missing.chain(named).chain(more).collect()
}

/// Returns the URL of the repository: that of the CI job, or that of the remote.
pub(crate) fn here(git: &Git, session: &Session<'_>) -> Option<String> {
    let of_github = || {
        let job = WorkflowJob::read(&session.env.lookup());
        Some(format!("{}/{}", job.server_url.filter(|url| !url.is_empty())?, job.repository?))
    };
    of_github()
        .or_else(|| git.line(&Call::new("remote").with(&["get-url", "origin"])).ok())
        .and_then(|url| repository(&url))
}
