//! After a run: the reports, made from its journal alone, and what the CI system is told.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::base::name::LoopName;
use crate::bundle::names;
use crate::ci::Provider;
use crate::ci::github::reporter::{FinalReport, Reporter};
use crate::ci::job::Job;
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::engine::Start;
use crate::engine::event::{Event, Stamped};
use crate::engine::outcome::Outcome;
use crate::files::read;
use crate::files::replace::{replace, replace_with};
use crate::journal::files::RunFiles;
use crate::journal::{fault, reader};
use crate::report::annotations::{self, Annotation, Checkout, Level};
use crate::report::digest::{Digest, NotRun, ReportPaths};
use crate::report::formats::FORMATS;

use super::audience::Audience;
use super::bundler::{Bundler, Saver};
use super::context::Session;
use super::environment::PARENT;
use super::nights;
use super::options::RunOptions;
use super::upload::Uploader;

/// How long the end of a run waits for the network.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same after an interruption: who asked for it kills the process soon.
const SHORT_PATIENCE: Duration = Duration::from_secs(3);

/// Where and how the results of a run are published.
pub(crate) struct Publication {
    provider: Provider,
    /// A directory that was asked for; otherwise the reports are with the files of the run.
    directory: Option<PathBuf>,
    artifact_name: String,
    root: PathBuf,
    workspace: PathBuf,
    running: RunFiles,
    /// Nobody has to save a run that there was no reason for.
    saver: Option<Rc<Saver>>,
    uploader: Option<Rc<Uploader>>,
    reporter: Option<Reporter>,
}

/// What became of the publication of a run.
pub(crate) struct Published {
    /// What could not be published.
    pub(crate) warnings: Vec<String>,
    /// Whether the files were uploaded; nothing where that is not our business.
    pub(crate) uploaded: Option<bool>,
    /// Whether every report was written.
    pub(crate) is_whole: bool,
}

impl Publication {
    pub(crate) fn new(
        options: &RunOptions,
        provider: Provider,
        (root, name): (&Path, &LoopName),
        files: &RunFiles,
        bundler: Option<Bundler>,
        session: &Session<'_>,
    ) -> Self {
        let root = root.to_owned();
        let job = provider.job();
        let directory = options.report_dir.as_deref().map(|directory| session.path(directory));
        let reports = directory.clone().unwrap_or_else(|| files.report());
        let artifact_name = artifact_name(&job, &name.file_stem(), files);
        let uploader = Uploader::find(options.upload, &artifact_name, session).map(Rc::new);
        let saver = bundler.map(|bundler| Saver::new(bundler, files.clone(), reports, uploader.clone()));
        Self {
            provider,
            directory,
            artifact_name,
            workspace: job.workspace.unwrap_or_else(|| root.clone()),
            root,
            running: files.clone(),
            saver: saver.map(Rc::new),
            uploader,
            reporter: None,
        }
    }

    /// Returns who saves the run while it goes on.
    pub(crate) fn saver(&self) -> Option<Rc<Saver>> {
        self.saver.clone()
    }

    /// Says that the run has begun, where people look at its commit.
    pub(crate) fn begin(&mut self, options: &RunOptions, loop_name: &str, session: &Session<'_>) {
        let directory = shown(&self.root, &self.workspace);
        let subject = ReportedRun {
            loop_name: loop_name.to_owned(),
            instance: self.running.instance().to_owned(),
            directory: if Path::new(&directory).is_absolute() { String::new() } else { directory },
        };
        let wanted = wanted(&options.commit, session);
        let (env, token) = (&session.env.lookup(), session.env.token());
        let request = ReportRequest { env, token, options: &wanted, subject: &subject };
        let (reporter, warnings) = self.provider.report(request);
        for warning in warnings {
            session.talk.warning(&warning);
        }
        self.reporter = reporter;
    }

    /// Says where the reports will be before there are any, so that later steps find them even when this process is
    /// killed.
    pub(crate) fn announce(&self, session: &Session<'_>) {
        let directory = self.directory(&self.running);
        if let Err(error) = fs_err::create_dir_all(&directory) {
            session.talk.warning(&format!("there will be no reports: {error}"));
        }
        if let Err(error) = self.provider.announce(&self.places(&directory)) {
            session
                .talk
                .warning(&format!("{} was not told where the reports are: {error}", self.provider.name()));
        }
    }

    /// Keeps what is known of the nights before anything is done, so that a run that is killed does not lose it.
    pub(crate) fn remember(&self, start: &Start) -> Vec<String> {
        let began = Stamped::new(start.at, 1, Event::LoopStart(start.event.clone()));
        nights::keep(&Digest::of([&began]), &self.directory(&self.running), &self.running)
    }

    /// Writes every format and tells the CI system. Returns what could not be published. `unwritten` is the end of the
    /// run, where the journal could not take it.
    pub(crate) fn publish(
        self,
        files: &RunFiles,
        unwritten: Option<&Stamped>,
        session: &Session<'_>,
    ) -> Published {
        let mut digest = Digest::default();
        let read = reader::read(&files.journal(), |event| digest.event(&event));
        if let Some(event) = unwritten {
            digest.event(event);
        }
        let mut published = self.tell(digest, files, session);
        published.warnings.extend(read.err().map(|error| format!("the reports are incomplete: {error}")));
        published
    }

    /// The same for a run that there was no reason for. Its reports are where those of runs are that are over.
    pub(crate) fn publish_none(self, not_run: NotRun, session: &Session<'_>) -> Vec<String> {
        let files = self.running.archived();
        self.tell(Digest::of_none(not_run), &files, session).warnings
    }

    fn tell(mut self, mut digest: Digest, files: &RunFiles, session: &Session<'_>) -> Published {
        let mut warnings = Vec::new();
        let directory = self.directory(files);
        digest.places = self.places(&directory);
        let written = write_all(&directory, &digest, files);
        let is_whole = written.is_ok();
        if let Err(error) = written {
            // Nobody is sent to a file that is not there.
            let there = |place: &str| self.workspace.join(place).exists();
            let places = [&mut digest.places.junit, &mut digest.places.summary];
            places.into_iter().filter(|place| !there(place)).for_each(String::clear);
            let instance = self.running.instance();
            warnings.push(format!(
                "not every report was written: {error}; `ll-loop report {instance}` makes them when there is room"
            ));
        }
        warnings.extend(nights::keep(&digest, &directory, files));
        warnings.extend(self.saver.iter().flat_map(|saver| saver.finish(files, &directory)));
        let root = self.root.to_string_lossy();
        let exists = |path: &str| self.root.join(path).is_file();
        let tree = Checkout { root: &root, exists: &exists };
        let mut log = Vec::new();
        let failed = self.provider.publish(&digest, &tree, &mut log);
        String::from_utf8_lossy(&log).lines().for_each(|line| session.talk.ci_line(line));
        for error in failed {
            warnings.push(format!("{} was not told everything: {error}", self.provider.name()));
        }
        let uploaded = self.uploader.as_ref().map(|uploader| uploader.store(directory));
        let uploaded = uploaded.map(|stored| {
            let dialect = self.provider.dialect();
            for line in stored.secrets.iter().filter_map(|secret| dialect.mask(secret)) {
                session.talk.ci_line(&line);
            }
            warnings.extend(stored.warnings);
            stored.done
        });
        if let Some(reporter) = self.reporter.take() {
            let all = annotations::all(&digest, &tree);
            warnings.extend(self.end(reporter, FinalReport { digest, annotations: all }, session));
        }
        Published { warnings, uploaded, is_whole }
    }

    /// Says how the run ended, where people look at its commit. What the token may not do is no warning, but a notice:
    /// on the pull request of a fork it is as it should be.
    fn end(&self, reporter: Reporter, report: FinalReport, session: &Session<'_>) -> Vec<String> {
        let is_interrupted = report.digest.end().is_some_and(|end| end.outcome == Outcome::Interrupted);
        let untold = reporter.end(report, if is_interrupted { SHORT_PATIENCE } else { PATIENCE });
        if let Some(notice) = untold.notice {
            let (level, title) = (Level::Notice, self.provider.name().to_owned());
            let notice = Annotation { level, title, message: notice, location: None };
            session.talk.ci_line(&self.provider.dialect().annotation(&notice));
        }
        untold.warnings
    }

    /// Returns where the reports of the run are.
    pub(crate) fn directory(&self, files: &RunFiles) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| files.report())
    }

    fn places(&self, directory: &Path) -> ReportPaths {
        let shown = |path: &Path| shown(path, &self.workspace);
        let file = |name: &str| {
            let format = FORMATS.iter().find(|format| format.name == name);
            format.map(|format| shown(&directory.join(format.file_name))).unwrap_or_default()
        };
        ReportPaths {
            run_id: self.running.instance().to_owned(),
            report_dir: shown(directory),
            junit: file("junit"),
            summary: file("summary"),
            artifact_name: self.artifact_name.clone(),
        }
    }
}

/// Returns who is told about a run, if anybody is.
pub(crate) fn publisher(options: &RunOptions) -> Option<Provider> {
    match &options.audience {
        Audience::Ci(provider) => Some(provider.clone()),
        Audience::Person => options.report_dir.as_ref().map(|_| Provider::detect(&|_| None)),
    }
}

/// Returns what is asked for. A run that an action of another run starts is a part of that one, and
/// reported only when asked for.
pub(crate) fn wanted(commit: &ReportOptions, session: &Session<'_>) -> ReportOptions {
    let status = commit.status.or_else(|| session.env.get(PARENT).map(|_| false));
    ReportOptions { status, ..commit.clone() }
}

/// Writes every report that can be written. One that cannot be is not there: what another run left there, or half of
/// this one, would tell something else.
fn write_all(directory: &Path, digest: &Digest, files: &RunFiles) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    let mut all = Ok(());
    for format in FORMATS {
        let (path, text) = (directory.join(format.file_name), (format.render)(digest));
        fault::point();
        if let Err(error) = fault::write(text.len() as u64).and_then(|()| replace(&path, text)) {
            let _absent = fs_err::remove_file(path);
            all = all.and(Err(error));
        }
    }
    all?;
    // One directory with everything is what gets uploaded; links cost nothing where they work.
    for (file, name) in
        [(files.journal(), names::JOURNAL), (files.state(), names::STATE), (files.log(), names::LOG)]
    {
        let copy = directory.join(name);
        if file.exists() {
            // There may be one of an earlier part of the run, and the state is another file every time.
            let _absent = std::fs::remove_file(&copy);
            fs_err::hard_link(&file, &copy).or_else(|_| copied(&file, &copy))?;
        }
    }
    Ok(())
}

/// Copies a file whose content may be long.
fn copied(file: &Path, copy: &Path) -> io::Result<()> {
    let mut file = read::open(file)?;
    replace_with(copy, |copy| io::copy(&mut file, copy).map(drop))
}

/// Writes a path as later steps need it: relative to the workspace where it lies below.
fn shown(path: &Path, workspace: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let absolute = absolute.canonicalize().unwrap_or(absolute);
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    absolute.strip_prefix(&workspace).unwrap_or(&absolute).to_string_lossy().into_owned()
}

/// Names the artifact so that no two jobs and attempts of a run collide.
fn artifact_name(job: &Job, name: &str, files: &RunFiles) -> String {
    match &job.key {
        Some(key) => format!("ll-loop-{name}-{key}"),
        None => format!("ll-loop-{}", files.instance()),
    }
}
