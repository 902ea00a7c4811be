//! A run that comes from another machine: its bundle is found, checked, and put where a run is left.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::base::name::LoopName;
use crate::base::text::one_line;
use crate::bundle::manifest::Manifest;
use crate::bundle::names;
use crate::bundle::open::{self, Bundle, LIMITS, OpenError};
use crate::bundle::place::{Comparison, arrange, compare, place};
use crate::bundle::tree::{self, RestoreError};
use crate::ci::github::api::Api;
use crate::ci::github::artifacts::PREFIX;
use crate::ci::github::lease::{Holder, Point, Taken, take};
use crate::ci::github::repository::Repository;
use crate::cli::args::ResumeArgs;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::definition::load::{self, DIRECTORY};
use crate::engine::event::LoopStart;
use crate::engine::outcome::Outcome;
use crate::journal::ends;
use crate::journal::files::RunFiles;

use super::bundle::{here, job};
use super::fetch::{Asked, artifact, prefix};
use super::git;
use super::prepare::Prepared;
use super::run::host;

/// A run that was unpacked and is not yet here.
pub(super) struct Incoming {
    manifest: Manifest,
    /// Where it was unpacked, beside the place where it goes.
    unpacked: TempDir,
    /// Its files there.
    there: RunFiles,
    shown: String,
    /// The directory of the loops that it belongs to.
    pub(super) root: PathBuf,
    /// Its files, once it is here.
    pub(super) files: RunFiles,
    /// How it began.
    pub(super) began: LoopStart,
    /// The repository on GitHub that it comes from: other jobs could go on with it as well.
    remote: Option<(Api, Repository)>,
}

impl Incoming {
    /// Gets a run from wherever it is: a path, or an artifact on GitHub.
    pub(super) fn get(from: &str, args: &ResumeArgs, env: &Env, output: &Output) -> Result<Self, CliError> {
        let Some(what) = artifact(from) else { return Self::open(Path::new(from), from) };
        let loop_name = args.name.as_ref().and_then(|name| LoopName::parse(name).ok());
        let prefix = loop_name.map_or_else(|| PREFIX.to_owned(), |name| prefix(&name));
        let asked = Asked {
            what,
            run: None,
            repository: args.repo.as_deref(),
            prefix: &prefix,
            allow_untrusted: args.manner.allow_untrusted,
            env,
            output,
        };
        let local = asked.local()?;
        let incoming = Self::open(&local.path, &local.shown)?;
        // Without a token nobody can be kept from it.
        let remote = env.token().map(|_| asked.remote()).transpose()?;
        Ok(Self { remote, ..incoming })
    }

    /// Checks a bundle and unpacks it. Nothing of the checkout is changed yet.
    pub(super) fn open(path: &Path, shown: &str) -> Result<Self, CliError> {
        let cwd =
            Env::cwd().map_err(|error| CliError::failed("cannot tell the working directory", &error))?;
        let scratch = TempDir::with_prefix("ll-incoming-").map_err(|error| unusable(shown, &error.into()))?;
        let bundle = open::locate(path, scratch.path(), LIMITS).and_then(|path| Bundle::open(&path, LIMITS));
        let bundle = bundle.map_err(|error| unusable(shown, &error))?;
        let file = bundle.manifest.file.clone().ok_or_else(|| {
            CliError::invalid("the loop file of the bundle is outside of its checkout")
                .help("only a run of a loop in its repository goes on on another machine")
        })?;
        let mut homes = load::ancestors(&cwd).into_iter();
        let root = homes.find(|root| load::find(file.as_str(), root).is_ok()).ok_or_else(|| {
            CliError::invalid(format!("the loop file `{file}` of the bundle is not in this checkout")).help(
                "resume in a checkout of the commit that the run was about; a bundle brings no commands",
            )
        })?;
        let loops = root.join(DIRECTORY);
        let unusable = |error: OpenError| unusable(shown, &error);
        let instance = bundle.manifest.instance.clone();
        let files = RunFiles::of(&loops, instance.as_str())
            .ok_or_else(|| unusable(OpenError::Damaged("it does not name its run".to_owned())))?;
        files.make_directory().map_err(|error| unusable(error.into()))?;
        let unpacked = tempfile::Builder::new().prefix(".incoming-").tempdir_in(files.directory());
        let unpacked = unpacked.map_err(|error| unusable(error.into()))?;
        let manifest = bundle.extract(unpacked.path()).map_err(unusable)?;
        let there = arrange(unpacked.path(), &files).map_err(|error| unusable(error.into()))?;
        let ends = ends::ends(&there.journal()).map_err(|error| unusable(error.into()))?;
        let is_the_same = |start: &LoopStart| {
            start.run_id == instance.as_str()
                && start.source.file == file.as_str()
                && start.r#loop == manifest.r#loop
                && start.definition_sha256 == manifest.definition_sha256.to_string()
        };
        let last = ends.last.map(|(_, seq)| seq);
        let began = ends.start.map(|(_, start)| start).filter(is_the_same);
        let began = began.filter(|_| last == Some(manifest.last_seq));
        let began =
            began.ok_or_else(|| unusable(OpenError::Damaged("its journal is of another run".to_owned())))?;
        Ok(Self { manifest, unpacked, there, shown: shown.to_owned(), root, files, began, remote: None })
    }

    /// Refuses a run that cannot go on here, before anything is claimed.
    pub(super) fn check(&self, prepared: &Prepared, env: &Env, args: &ResumeArgs) -> Result<(), CliError> {
        let accept = args.accept_changes;
        if let Some(name) = &args.name
            && !self.is_of(name)
        {
            let found = &self.manifest.r#loop;
            return Err(CliError::invalid(format!(
                "the bundle is of a run of `{found}`, and not of `{name}`"
            ))
            .help(format!("to go on with it, name that loop: `ll-loop resume {found} --from …`")));
        }
        let Manifest { instance, repository, resumable, outcome, .. } = &self.manifest;
        if !resumable {
            let outcome = outcome.map_or("ended", Outcome::word);
            return Err(CliError::invalid(format!(
                "the run {instance} has ended ({outcome}), and nothing is left to do"
            ))
            .help("start a new one with `ll-loop run`"));
        }
        let git = git::at(&self.root, env);
        if let (Some(theirs), Some(ours)) = (repository, here(&git, env))
            && theirs.as_str() != ours
            && !accept
        {
            return Err(CliError::invalid(format!(
                "the bundle is of the repository {theirs}, and this one is {ours}"
            ))
            .help("resume in a checkout of the same repository, or agree with `--accept-changes`"));
        }
        if self.began.definition_sha256 != prepared.loaded.digest && !accept {
            return Err(super::resume::changed(self.began.r#loop.as_str()));
        }
        Ok(())
    }

    /// Tells whether a user means this run by the name of a loop, its file, or a run.
    fn is_of(&self, name: &str) -> bool {
        let Manifest { r#loop, instance, .. } = &self.manifest;
        let same_file = || {
            let named = load::find(name, &Env::cwd().ok()?).ok()?.path.canonicalize().ok()?;
            Some(named == load::find(&self.began.source.file, &self.root).ok()?.path.canonicalize().ok()?)
        };
        name == r#loop.as_str() || instance.as_str().starts_with(name) || same_file().unwrap_or(false)
    }

    /// Makes the checkout what it was, and puts the files of the run in their places. The run has to be claimed. Before
    /// anything is written, `rehearse` tells whether it can go on; what it found is returned, where it was asked.
    pub(super) fn settle<R>(
        self,
        definition: &[PathBuf],
        (env, output): (&Env, &Output),
        accept: bool,
        rehearse: impl FnOnce(&RunFiles) -> Result<R, CliError>,
    ) -> Result<Option<R>, CliError> {
        let instance = self.files.instance();
        let failed =
            |error: io::Error| CliError::failed(format!("the run {instance} cannot be put here"), &error);
        if self.files.archived().journal().exists() {
            return Err(gone_on(instance, "has ended here since"));
        }
        match compare(&self.there, &self.files).map_err(|error| failed(error).before_the_run())? {
            Comparison::Ahead => {}
            Comparison::Same => {
                output.talk(&format!("the run {instance} is here already, as far as in {}\n", self.shown));
                return Ok(None);
            }
            Comparison::Behind => {
                return Err(gone_on(instance, "has gone on here since the bundle was written"));
            }
            Comparison::Apart => {
                return Err(gone_on(instance, "went on here and elsewhere, in different ways"));
            }
        }
        // What is refused anyhow is not taken from another job.
        let git = git::at(&self.root, env);
        let objects = self.unpacked.path().join(names::TREE);
        let objects = objects.exists().then_some(objects.as_path());
        if let Some(saved) = &self.manifest.tree
            && let Err(error) = tree::check(&git, saved, objects, definition)
            && !(accept && matches!(error, RestoreError::Missing(_)))
        {
            return Err(not_restored(&error));
        }
        let rehearsed = rehearse(&self.there)?;
        self.lease(env, output)?;
        if let Some(saved) = &self.manifest.tree {
            match tree::restore(&git, saved, objects) {
                Ok(()) => {}
                Err(error @ RestoreError::Missing(_)) if accept => output.warning(&error.to_string()),
                Err(error) => return Err(not_restored(&error)),
            }
        }
        for left_out in &self.manifest.left_out {
            output.warning(&format!("not carried over: {}: {}", left_out.path, left_out.why));
        }
        place(&self.there, &self.files).map_err(failed)?;
        let job = self.manifest.job.as_ref().map(|job| format!(", left by {job}")).unwrap_or_default();
        output.talk(&format!("took over {instance} from {}{job}\n", self.shown));
        Ok(Some(rehearsed))
    }

    /// Takes the run for this job alone, where other jobs can get it as well.
    fn lease(&self, env: &Env, output: &Output) -> Result<(), CliError> {
        let Some((api, repository)) = &self.remote else { return Ok(()) };
        let base = self.manifest.tree.as_ref().map(|tree| tree.base.as_str());
        let Some(commit) = base.or_else(|| env.get("GITHUB_SHA")) else { return Ok(()) };
        let instance = self.files.instance();
        let point = Point { repository, instance, seq: self.manifest.last_seq, commit };
        let us = Holder::new(
            env.get("GITHUB_RUN_ID").unwrap_or_default().to_owned(),
            env.get("GITHUB_RUN_ATTEMPT").and_then(|attempt| attempt.parse().ok()).unwrap_or(1),
            job(env).unwrap_or_else(host),
        );
        match take(api, &point, &us) {
            Ok(Taken::Ours) => Ok(()),
            Ok(Taken::Theirs(holder)) => Err(CliError::invalid(format!(
                "another job has taken the run {instance}: {}",
                one_line(&holder.url, 300)
            ))
            .code(exit::LOCKED)
            .help("follow it there; when it is over and left the run unfinished, take the run from it")),
            Err(error) => {
                let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
                output.warning(&format!(
                    "nothing keeps another job from going on with this run: {error}{help}"
                ));
                Ok(())
            }
        }
    }
}

pub(super) fn unusable(shown: &str, error: &OpenError) -> CliError {
    let refused = CliError::invalid(format!("cannot use the bundle {shown}: {error}"));
    match error {
        OpenError::Io(_) => refused,
        OpenError::NotABundle(_) => {
            refused.help("a bundle is a file `<run>.llz` in the report directory of a run")
        }
        OpenError::Several(_) => refused.help("name the one that is meant"),
        OpenError::Newer { .. } => refused.help("use the version of ll-loop that wrote it, or a newer one"),
        OpenError::TooLarge(_) | OpenError::Damaged(_) | OpenError::Foreign(_) | OpenError::Refused(_) => {
            refused.help("fetch it again from the job that wrote it; nothing was changed here")
        }
    }
}

fn gone_on(instance: &str, how: &str) -> CliError {
    CliError::invalid(format!("the run {instance} {how}"))
        .code(exit::LOCKED)
        .help(format!("`ll-loop status {instance}` shows how it stands here"))
}

fn not_restored(error: &RestoreError) -> CliError {
    let refused = CliError::invalid(error.to_string());
    match error {
        RestoreError::NoRepository => refused.help("resume in a checkout of the same repository"),
        RestoreError::Elsewhere { base, .. } => refused.help(format!(
            "check that commit out first: `git checkout {base}`, or `ref: {base}` of actions/checkout; in a clone \
             without it, `git fetch origin {base}`"
        )),
        RestoreError::Missing(_) => {
            refused.help("bring the changes here in another way and go on with `--accept-changes`")
        }
        RestoreError::Dirty(_) => refused.help("commit or stash them, or resume in a fresh checkout"),
        RestoreError::Unfit(_) => refused.help(
            "a loop and what it pulls in come from the checkout; bring such changes there in another way",
        ),
        RestoreError::Damaged(_) => refused.help("fetch the bundle again from the job that wrote it"),
    }
}
