//! `ll-loop bundle`: puts a run into one file, for another machine; and the same at the end of every published run.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::base::object::ObjectId;
use crate::base::redact::Redactor;
use crate::base::territory::Territory;
use crate::base::text::one_line;
use crate::bundle::EXTENSION;
use crate::bundle::manifest::repository;
use crate::bundle::pack::{Contents, PackError, PackedBundle, pack};
use crate::bundle::tree::TreeOptions;
use crate::cli::args::BundleArgs;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::definition::load::{self, DIRECTORY};
use crate::journal::ends;
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::known::KnownRun;
use crate::process::git::{Call, Git};
use crate::run::clock::Clock;

use super::claim;
use super::finish;
use super::git;
use super::prepare::{Prepared, prepare, refused};
use super::resume::{Chosen, choose, never_began};
use super::sub_loops;
use super::upload::Uploader;

/// How many files that were left out are named.
const NAMED: usize = 5;

pub(in crate::cli) fn bundle(args: &BundleArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let run = match choose(&args.name, output)? {
        Chosen::Left(_, run) | Chosen::Unfinished(run) => run,
    };
    let mut files = run.files.clone();
    if finish::is_due(&run) {
        files = finish::finish(&run, None, env, output)?.files;
    }
    let KnownRun { ends, .. } = *run;
    let Some((_, began)) = ends.start else { return Err(never_began(files.instance(), &args.name)) };
    let loops = files.loops();
    let root = loops.parent().unwrap_or(loops);
    let located = load::find(&began.source.file, root).map_err(|error| refused(&error))?;
    let mut prepared = prepare(located, |_| {}, output)?;
    if files.worktree().is_dir() {
        prepared.located.root = files.worktree();
    }
    let redactor = Redactor::new(env.secrets());
    let territory = claim::territory(&prepared, &began.context, env, &redactor)?;
    let target = args.output.clone().unwrap_or_else(|| PathBuf::from(file_name(&files)));
    let packed =
        Bundler::new(env, &prepared, &territory, &redactor).write_to(&files, &files.report(), &target);
    let packed = packed.map_err(|error| CliError::failed("there is no bundle", &error))?;
    for warning in warnings(&packed) {
        output.warning(&warning);
    }
    output.data(&format!("{}\n", target.display()));
    Ok(0)
}

/// Returns the commit of the checkout.
pub(super) fn commit(prepared: &Prepared, env: &Env) -> Option<String> {
    let git = git::at(&prepared.located.root, env);
    git.line(&git::head()).ok()
}

/// Returns the name of a run's bundle.
fn file_name(files: &RunFiles) -> String {
    format!("{}.{EXTENSION}", files.instance())
}

/// Writes the bundle of one run, as often as it is asked to.
pub(super) struct Bundler {
    git: Git,
    scope: Vec<PathBuf>,
    loops: PathBuf,
    texts: Vec<(String, String)>,
    definition: Vec<PathBuf>,
    redactor: Redactor,
    repository: Option<String>,
    job: Option<String>,
    clock: Clock,
}

impl Bundler {
    pub(super) fn new(env: &Env, prepared: &Prepared, territory: &Territory, redactor: &Redactor) -> Self {
        let root = &prepared.located.root;
        let git = git::at(root, env);
        let mut texts = sub_loops::texts(&prepared.loaded.sources);
        texts.extend(prepared.library.texts());
        texts.sort();
        texts.dedup_by(|one, other| one.0 == other.0);
        Self {
            scope: territory.paths.iter().map(|path| PathBuf::from(path.to_string())).collect(),
            loops: root.join(DIRECTORY),
            definition: prepared.definition(root),
            texts,
            redactor: redactor.clone(),
            repository: here(&git, env),
            job: job(env),
            clock: Clock::start(),
            git,
        }
    }

    /// Writes the bundle of a run among its reports.
    pub(super) fn write(&self, files: &RunFiles, reports: &Path) -> Result<PackedBundle, PackError> {
        self.write_to(files, reports, &reports.join(file_name(files)))
    }

    fn write_to(&self, files: &RunFiles, reports: &Path, target: &Path) -> Result<PackedBundle, PackError> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (reports, target) = (absolute(reports), absolute(target));
        // Not everything that we write is ignored where a user keeps the reports.
        let ours = [
            reports.clone(),
            target.clone(),
            files.directory().to_owned(),
            RunFiles::running(&self.loops),
            RunFiles::archive_of_all(&self.loops),
            self.loops.join(".gitignore"),
        ];
        let base = ends::ends(&files.journal())?.start.and_then(|(_, start)| start.commit);
        let base = base.and_then(|base| ObjectId::parse(&base).ok());
        let tree = TreeOptions {
            git: self.git.clone(),
            base,
            scope: &self.scope,
            ours: &ours,
            definition: &self.definition,
            redactor: &self.redactor,
        };
        let contents = Contents {
            files,
            reports: &reports,
            loops: &self.texts,
            tree,
            repository: self.repository.clone(),
            job: self.job.clone(),
            now: self.clock.now(),
        };
        fault::write(1)?;
        pack(&contents, &target)
    }
}

/// Writes the bundle of one run among its reports, now and then while it goes on, and at its end.
pub(super) struct Saver {
    bundler: Bundler,
    files: RunFiles,
    reports: PathBuf,
    uploader: Option<Rc<Uploader>>,
    /// Why the last checkpoint failed.
    failed: RefCell<Option<String>>,
}

impl Saver {
    pub(super) fn new(
        bundler: Bundler,
        files: RunFiles,
        reports: PathBuf,
        uploader: Option<Rc<Uploader>>,
    ) -> Self {
        Self { bundler, files, reports, uploader, failed: RefCell::default() }
    }

    /// Saves the run as it stands.
    pub(super) fn checkpoint(&self) {
        let saved = self.bundler.write(&self.files, &self.reports);
        if let (Ok(_), Some(uploader)) = (&saved, &self.uploader) {
            uploader.checkpoint(&self.reports.join(file_name(&self.files)));
        }
        self.failed.replace(saved.err().map(|error| error.to_string()));
    }

    /// Saves the run as it ended, and returns what a person should know.
    pub(super) fn finish(&self, files: &RunFiles, reports: &Path) -> Vec<String> {
        let failed = self.failed.take().map(|why| format!("the last checkpoint failed: {why}"));
        let at_the_end = match self.bundler.write(files, reports) {
            Ok(packed) => warnings(&packed),
            Err(PackError::NotBegun) => Vec::new(),
            Err(error) => {
                vec![format!("there is no bundle, so only this machine can go on with the run: {error}")]
            }
        };
        failed.into_iter().chain(at_the_end).collect()
    }
}

/// Says what a bundle does not carry.
fn warnings(packed: &PackedBundle) -> Vec<String> {
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

/// Names the repository that we are in, where it has a name.
pub(super) fn here(git: &Git, env: &Env) -> Option<String> {
    let of_github = || Some(format!("{}/{}", env.get("GITHUB_SERVER_URL")?, env.get("GITHUB_REPOSITORY")?));
    of_github()
        .or_else(|| git.line(&Call::new("remote").with(&["get-url", "origin"])).ok())
        .and_then(|url| repository(&url))
}

/// Returns where people look the job up.
pub(super) fn job(env: &Env) -> Option<String> {
    let of_github = || {
        let (server, repository) = (env.get("GITHUB_SERVER_URL")?, env.get("GITHUB_REPOSITORY")?);
        let (run, attempt) = (env.get("GITHUB_RUN_ID")?, env.get("GITHUB_RUN_ATTEMPT").unwrap_or("1"));
        Some(format!("{server}/{repository}/actions/runs/{run}/attempts/{attempt}"))
    };
    let others = ["CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "BUILD_URL"];
    of_github().or_else(|| others.iter().find_map(|name| env.get(name)).map(str::to_owned))
}
