//! Takes over a run from another machine: finds its bundle, checks it, and unpacks it among the unfinished runs.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::base::advised_command;
use crate::base::name::LoopName;
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::text::one_line;
use crate::bundle::manifest::{Manifest, SnapshotName};
use crate::bundle::names;
use crate::bundle::open::{self, Bundle, LIMITS, OpenError};
use crate::bundle::tree::{self, RestoreError};
use crate::bundle::unpacked_files::{RunComparison, arrange, compare, place};
use crate::ci::job_page;
use crate::context::error::{BundledRun, Error, Kind};
use crate::context::options::RunOptions;
use crate::context::{Session, key_of_run};
use crate::definition::load::{self, DIRECTORY};
use crate::engine::changes::StartTree;
use crate::engine::event::LoopStart;
use crate::engine::outcome::Outcome;
use crate::files::transient;
use crate::forge::git_remote::GitRemote;
use crate::forge::github::api::Api;
use crate::forge::github::artifacts::RunsMeant;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::takeover::{ApiRefs, Point, TakeoverError, TakeoverOutcome, TakingJob, take};
use crate::forge::github::workflow_job::WorkflowJob;
use crate::git::error::TreeError;
use crate::git::runner::Git;
use crate::journal::files::RunFiles;
use crate::journal::journal_ends;
use crate::process::life::host;
use crate::report::advice::loop_of;
use crate::repository::pushed_refs::PushedRefs;
use crate::run::tree_snapshots::Moment;
use crate::session::end::bundler::here;
use crate::session::prepare::prepared::{Prepared, changed};
use crate::session::read::fetch::{ArtifactRequest, artifact};
use crate::session::read::run_snapshots;
use crate::{bundle, repository};

/// A run that was unpacked, and not yet moved to the directory of runs.
pub(crate) struct Incoming {
    manifest: Manifest,
    /// Where it was unpacked: beside its final place, so that it can be renamed.
    unpacked: TempDir,
    /// Its files there.
    there: RunFiles,
    shown: String,
    /// The directory with the `.loops` that it belongs to.
    pub(crate) root: PathBuf,
    /// Where its files will be.
    pub(crate) files: RunFiles,
    /// How it began.
    pub(crate) began: LoopStart,
    /// The name of the artifact that it was.
    pub(crate) artifact: Option<String>,
    /// The repository on GitHub that it comes from, from which other jobs could take it as well.
    remote: Option<(Api, RepositoryName)>,
}

impl Incoming {
    /// Gets a run from a path or from an artifact on GitHub.
    pub(crate) fn get(
        from: &str,
        name: Option<&str>,
        repository: Option<&str>,
        options: &RunOptions,
        session: &Session<'_>,
    ) -> Result<Self, Error> {
        let Some(what) = artifact(from) else {
            return Self::open(&session.path(Path::new(from)), from, session);
        };
        let loop_name = name.and_then(|name| LoopName::parse(name).ok());
        let stem = loop_name.map(|name| name.file_stem());
        let runs = RunsMeant::of_loop(stem.as_deref(), key_of_run::wanted(options, stem.as_deref(), session));
        let allow_untrusted = options.allow_untrusted;
        let asked = ArtifactRequest { what, run: None, repository, runs, allow_untrusted, session };
        let local = asked.local()?;
        let incoming = Self::open(&local.path, &local.shown, session)?;
        // What keeps other jobs away is a ref on GitHub, which needs a token.
        let remote = session.env.token().map(|_| asked.remote()).transpose()?;
        Ok(Self { artifact: local.artifact.clone(), remote, ..incoming })
    }

    /// Checks a bundle and unpacks it. Does not change the checkout yet.
    pub(crate) fn open(path: &Path, shown: &str, session: &Session<'_>) -> Result<Self, Error> {
        let scratch = transient::directory("ll-incoming-").map_err(|error| unusable(shown, &error.into()))?;
        let bundle = open::locate(path, scratch.path(), LIMITS).and_then(|path| Bundle::open(&path, LIMITS));
        let bundle = bundle.map_err(|error| unusable(shown, &error))?;
        if bundle.manifest.merges.is_some() {
            return Err(no_run(shown));
        }
        let known = || BundledRun { loop_name: bundle.manifest.r#loop.clone(), sha: None };
        let file = bundle.manifest.file.clone().ok_or_else(|| {
            Error::refused("the loop file of the bundle is outside of its checkout")
                .with_hint("only a run of a loop inside its repository can go on on another machine")
                .of_bundled(known())
        })?;
        let mut homes = load::ancestors(&session.cwd).into_iter();
        let root = homes.find(|root| load::find(file.as_str(), root).is_ok()).ok_or_else(|| {
            Error::refused(format!("the loop file `{file}` of the bundle is not in this checkout"))
                .with_hint(
                    "resume in a checkout of the commit that the run was about; a bundle brings no commands",
                )
                .of_bundled(known())
        })?;
        let loops = root.join(DIRECTORY);
        let unusable = |error: OpenError| unusable(shown, &error);
        let instance = bundle.manifest.instance.clone();
        let files = RunFiles::of(&loops, instance.as_str())
            .ok_or_else(|| unusable(OpenError::Damaged("it does not name its run".to_owned())))?;
        files.make_directory().map_err(|error| unusable(error.into()))?;
        let unpacked = transient::directory_in(transient::INCOMING, files.directory());
        let unpacked = unpacked.map_err(|error| unusable(error.into()))?;
        let manifest = bundle.extract(unpacked.path()).map_err(unusable)?;
        let there = arrange(unpacked.path(), &files).map_err(|error| unusable(error.into()))?;
        let ends = journal_ends::ends(&there.journal()).map_err(|error| unusable(error.into()))?;
        // The manifest says what is claimed and taken over, the journal what goes on: a forged bundle could mix two runs.
        let is_the_same = |start: &LoopStart| {
            start.run_id == instance.as_str()
                && start.source.file == file.as_str()
                && start.r#loop == manifest.r#loop
                && start.definition_sha256 == manifest.definition_sha256.to_string()
        };
        let last = ends.last.map(|(_, seq)| seq);
        let began = ends.start.map(|(_, start)| start).filter(is_the_same);
        // A takeover is known by this number: with a wrong one, two jobs could take over the same point of a run.
        let began = began.filter(|_| last == Some(manifest.last_seq));
        let began =
            began.ok_or_else(|| unusable(OpenError::Damaged("its journal is of another run".to_owned())))?;
        let shown = shown.to_owned();
        Ok(Self { manifest, unpacked, there, shown, root, files, began, artifact: None, remote: None })
    }

    /// Says which run it is, and at which commit it has been reported: the one on which it began, or the head of the pull request
    /// that this one merges.
    pub(crate) fn bundled(&self) -> BundledRun {
        let sha = match &self.began.tree {
            Some(StartTree::Known(start)) => {
                Some(start.stands_for.clone().unwrap_or_else(|| start.ids.commit.clone()))
            }
            Some(StartTree::Unknown { .. }) | None => None,
        };
        BundledRun { loop_name: self.manifest.r#loop.clone(), sha }
    }

    /// Refuses a run that cannot go on here, before anything is claimed.
    pub(crate) fn check(
        &self,
        prepared: &Prepared,
        source: &str,
        name: Option<&str>,
        accept: bool,
        session: &Session<'_>,
    ) -> Result<(), Error> {
        if let Some(name) = name
            && !self.is_of(name, session)
        {
            let found = &self.manifest.r#loop;
            return Err(Error::refused(format!("the bundle is of a run of `{found}`, and not of `{name}`"))
                .with_hint(format!(
                    "to go on with it, name that loop: `{}`",
                    advised_command::resume(found.as_str()).option("--from", source)
                )));
        }
        let Manifest { instance, repository, resumable, outcome, .. } = &self.manifest;
        // A loop that says how it goes on can be taken up again after a failure; any other one that ended is over, so that a
        // later job does not repeat what failed in an earlier one.
        let is_reopened = prepared.machine.on_resume.is_some() && *outcome != Some(Outcome::Success);
        if !resumable && !is_reopened {
            let outcome = outcome.map_or("ended", Outcome::word);
            let name = loop_of(&self.began);
            return Err(Error::refused(format!(
                "the run {instance} of `{name}` has ended ({outcome}), and nothing is left to do"
            ))
            .of_kind(Kind::Over)
            .with_hint(format!("start a new one with `{}`", advised_command::run(name))));
        }
        let git = repository::at(&self.root, session);
        // Where one of both is unknown, nothing is refused: a checkout without a remote may still be the right one.
        if let (Some(theirs), Some(ours)) = (repository, here(&git, session))
            && theirs.as_str() != ours
            && !accept
        {
            return Err(Error::refused(format!(
                "the bundle is of the repository {theirs}, and this one is {ours}"
            ))
            .with_hint("resume in a checkout of the same repository, or agree with `--accept-changes`"));
        }
        if self.began.definition_sha256 != prepared.loaded.digest && !accept {
            return Err(changed(self.began.r#loop.as_str()));
        }
        Ok(())
    }

    /// Tells whether a user's text, the name or file of a loop or a run id, means this run.
    fn is_of(&self, name: &str, session: &Session<'_>) -> bool {
        let Manifest { r#loop, instance, .. } = &self.manifest;
        let same_file = || {
            let named = load::find(name, &session.cwd).ok()?.path.canonicalize().ok()?;
            Some(named == load::find(&self.began.source.file, &self.root).ok()?.path.canonicalize().ok()?)
        };
        name == r#loop.as_str() || instance.as_str().starts_with(name) || same_file().unwrap_or(false)
    }

    /// Restores the changes of the checkout, and moves the files of the run into place. The run has to be claimed.
    /// Before anything is written, `rehearse` checks that it can go on; its result is returned, if it was called.
    pub(crate) fn settle<R>(
        self,
        definition: &[PathBuf],
        session: &Session<'_>,
        accept: bool,
        rehearse: impl FnOnce(&RunFiles) -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let instance = self.files.instance();
        let failed =
            |error: io::Error| Error::failed(format!("the run {instance} cannot be put here"), &error);
        // `compare` looks only at runs that are not in the history.
        if self.files.archived().journal().exists() {
            return Err(gone_on(instance, "has ended here since"));
        }
        match compare(&self.there, &self.files).map_err(|error| failed(error).of_kind(Kind::Refused))? {
            RunComparison::Ahead => {}
            RunComparison::Same => {
                session
                    .talk
                    .note(&format!("the run {instance} is here already, as far as in {}", self.shown));
                return Ok(None);
            }
            RunComparison::Behind => {
                return Err(gone_on(instance, "has gone on here since the bundle was written"));
            }
            RunComparison::Apart => {
                return Err(gone_on(instance, "went on here and elsewhere, in different ways"));
            }
        }
        // First, so that a run that is refused here stays free for another job.
        let without_tree = self.without_tree();
        if let Some(error) = without_tree.as_ref().filter(|_| !accept) {
            return Err(not_restored(error));
        }
        let git = repository::at(&self.root, session);
        let objects = self.unpacked.path().join(names::TREE);
        let objects = objects.exists().then_some(objects.as_path());
        if let Some(saved) = &self.manifest.tree
            && let Err(error) = tree::check(&git, saved, objects, definition)
            && !(accept && matches!(error, RestoreError::Missing(_)))
        {
            return Err(not_restored(&error));
        }
        let rehearsed = rehearse(&self.there)?;
        // Before anything is written: of two jobs that want the run, one changes nothing.
        self.take_over(session)?;
        if let Some(saved) = &self.manifest.tree {
            match tree::restore(&git, saved, objects) {
                Ok(()) => {}
                Err(error @ RestoreError::Missing(_)) if accept => session.talk.warning(&error.to_string()),
                Err(error) => return Err(not_restored(&error)),
            }
        }
        if let Some(error) = &without_tree {
            session.talk.warning(&error.to_string());
        }
        if let Err(why) = self
            .take_snapshots(&git, definition)
            .and_then(|found| run_snapshots::refer(&git, instance, &found))
        {
            session.talk.warning(&format!("the tree snapshots of the bundle are not taken over: {why}"));
        }
        let others = self.manifest.left_out.iter().filter(|left| left.path.as_str() != names::WORKING_TREE);
        for left_out in others {
            session.talk.warning(&format!("not carried over: {}: {}", left_out.path, left_out.why));
        }
        // Last: with its files in place the run is here, and another process could go on with it.
        place(&self.there, &self.files).map_err(failed)?;
        let job = self.manifest.job.as_ref().map_or_else(String::new, |job| format!(", left by {job}"));
        session.talk.note(&format!("took over {instance} from {}{job}", self.shown));
        Ok(Some(rehearsed))
    }

    /// Returns the files of the working tree that the bundle does not bring, each with the reason.
    pub(crate) fn not_carried(&self) -> Vec<String> {
        let of_tree = self.manifest.left_out.iter().filter(|left| left.is_of_tree());
        of_tree.map(|left| format!("{}: {}", left.path, left.why)).collect()
    }

    /// Says why nothing is known of what the run made of its working tree, although there may be changes.
    fn without_tree(&self) -> Option<RestoreError> {
        let Manifest { tree: None, left_out, .. } = &self.manifest else { return None };
        let named = left_out.iter().find(|left| left.path.as_str() == names::WORKING_TREE);
        let why = match (named, &self.began.tree) {
            (Some(left), _) => left.why.clone(),
            (None, Some(StartTree::Known(_))) => {
                Line::of("the run began in a git repository, and nothing of it is there")
            }
            (None, Some(StartTree::Unknown { .. }) | None) => return None,
        };
        Some(RestoreError::Missing(why))
    }

    /// Takes the objects of the run's tree snapshots into the repository, and returns what they are called. No ref is
    /// made.
    pub(crate) fn take_snapshots(
        &self,
        git: &Git,
        definition: &[PathBuf],
    ) -> Result<BTreeMap<Moment, ObjectId>, TreeError> {
        let Some(saved) = &self.manifest.snapshots else { return Ok(BTreeMap::new()) };
        bundle::snapshots::take(git, saved, &self.unpacked.path().join(names::SNAPSHOTS), definition)?;
        let named = |(name, id): (&SnapshotName, &ObjectId)| Some((Moment::of(name.as_str())?, id.clone()));
        Ok(saved.refs.iter().filter_map(named).collect())
    }

    /// Returns the files of the run as they were unpacked.
    pub(crate) fn there(&self) -> &RunFiles {
        &self.there
    }

    /// Takes the run for this job alone, if other jobs can reach it.
    fn take_over(&self, session: &Session<'_>) -> Result<(), Error> {
        let Some((api, repository)) = &self.remote else { return Ok(()) };
        let base = self.manifest.tree.as_ref().map(|tree| tree.base.as_str());
        let job = WorkflowJob::read(&session.env.lookup());
        // A ref that is made by the API must point at a commit that the server has.
        let Some(commit) = base.or(job.sha.as_deref()) else { return Ok(()) };
        let instance = self.files.instance();
        let point = Point { repository, instance, seq: self.manifest.last_seq };
        let us = TakingJob::new(
            job.run_id.clone().unwrap_or_default(),
            job.run_attempt.as_ref().and_then(|attempt| attempt.parse().ok()).unwrap_or(1),
            job_page::of_job(&session.env.lookup()).unwrap_or_else(host),
        );
        match taken(api, commit, point, &us, session) {
            Ok(TakeoverOutcome::Ours) => Ok(()),
            Ok(TakeoverOutcome::Theirs(holder)) => Err(Error::refused(format!(
                "another job has taken the run {instance}: {}",
                one_line(&holder.url, 300)
            ))
            .of_kind(Kind::Taken)
            .with_hint("follow it there; when it is over and left the run unfinished, take the run from it")),
            Err(error) => {
                let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
                session.talk.warning(&format!(
                    "nothing keeps another job from going on with this run: {error}{help}"
                ));
                Ok(())
            }
        }
    }
}

/// Takes a run in the way that the server has.
fn taken(
    api: &Api,
    commit: &str,
    point: Point<'_>,
    us: &TakingJob,
    session: &Session<'_>,
) -> Result<TakeoverOutcome, TakeoverError> {
    match GitRemote::of(api, point.repository, &session.env.lookup()) {
        Some(remote) => take(api, &PushedRefs::new(remote, commit, session)?, point, us),
        None => take(api, &ApiRefs::new(api, point, commit), point, us),
    }
}

/// Refuses the merge of a plan, whose steps are items, where a run is meant.
pub(crate) fn no_run(shown: &str) -> Error {
    Error::refused(format!("{} is a merge of many runs", one_line(shown, 300))).with_hint(
        "`ll-loop run --plan PLAN --rerun MERGED` runs what is not verified; each item has a bundle of its own in `items/`",
    )
}

pub(crate) fn unusable(shown: &str, error: &OpenError) -> Error {
    let refused = Error::refused(format!("cannot use the bundle {shown}: {error}"));
    match error {
        OpenError::Io(_) => refused,
        OpenError::NotABundle(_) => {
            refused.with_hint("a bundle is a file `<run>.llz` in the report directory of a run")
        }
        OpenError::Several(_) => refused.with_hint("name the one that is meant"),
        OpenError::Newer { .. } => {
            refused.with_hint("use the version of ll-loop that wrote it, or a newer one")
        }
        OpenError::TooLarge(_) | OpenError::Damaged(_) | OpenError::Foreign(_) | OpenError::Refused(_) => {
            refused.with_hint("fetch it again from the job that wrote it; nothing was changed here")
        }
    }
}

fn gone_on(instance: &str, how: &str) -> Error {
    Error::refused(format!("the run {instance} {how}"))
        .of_kind(Kind::GoneOn)
        .with_hint(format!("`{}` shows how it stands here", advised_command::status(instance)))
}

fn not_restored(error: &RestoreError) -> Error {
    let refused = Error::refused(error.to_string());
    match error {
        RestoreError::NoRepository => refused.with_hint("resume in a checkout of the same repository"),
        RestoreError::Elsewhere { base, .. } => refused.with_hint(format!(
            "check that commit out first: `git checkout {base}`, or `ref: {base}` of actions/checkout; in a clone \
             without it, `git fetch origin {base}`"
        )),
        RestoreError::Missing(_) => {
            refused.with_hint("bring the changes here in another way and go on with `--accept-changes`")
        }
        RestoreError::Dirty(_) => refused.with_hint("commit or stash them, or resume in a fresh checkout"),
        RestoreError::Unfit(_) => refused.with_hint(
            "a loop and what it pulls in come from the checkout; bring such changes there in another way",
        ),
        RestoreError::Damaged(_) => refused.with_hint("fetch the bundle again from the job that wrote it"),
    }
}
