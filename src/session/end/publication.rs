//! Publishes a run: makes its reports from its journal alone, and gives the results to the CI system.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::bundler::{Bundler, Saver, file_name};
use super::next_run::{UNSTORED, subject};
use super::notify::NoticeFacts;
use super::upload::Uploader;
use super::{kept_nights, whereabouts};
use crate::base::advised_command;
use crate::base::explanation::Explanation;
use crate::base::name::LoopName;
use crate::base::run_key::RunKey;
use crate::base::text::one_line;
use crate::bundle::{names, statements};
use crate::ci::Provider;
use crate::ci::job::Job;
use crate::ci::reported::{FinalReport, ReportOptions, ReportRequest, Reporter, Unreported};
use crate::context::audience::Audience;
use crate::context::environment::PARENT;
use crate::context::options::{RunOptions, Storing};
use crate::context::{Session, key_of_run};
use crate::engine::Start;
use crate::engine::event::{Event, LoopComplete, Stamped};
use crate::engine::outcome::Outcome;
use crate::files::replace::{replace, replace_with};
use crate::files::{links, read};
use crate::forge::github::artifacts::PREFIX;
use crate::journal::files::RunFiles;
use crate::journal::reader::ReadError;
use crate::journal::{fault, reader};
use crate::process::signal::{Cancel, EndRequest};
use crate::report::advice;
use crate::report::annotations::{self, Annotation, AnnotationLevel, Checkout};
use crate::report::detail::Detail;
use crate::report::digest::{Digest, NotRun, ReportPaths};
use crate::report::formats::FORMATS;
use crate::report::formats::outputs::outputs;
use crate::report::leg_annotations::LegAnnotations;
use crate::report::reading_place::{Reader, RunDownload};
use crate::report::unbegun_run::{Hindrance, Unbegun};
use crate::session::read::{asked_flips, page_detail};
use crate::telemetry::live_export::{self, ExportedRun};

/// How long the end of a run waits for the network.
const PATIENCE: Duration = Duration::from_secs(30);

/// The same after an interruption. GitHub kills the process 10 seconds after SIGINT.
const SHORT_PATIENCE: Duration = Duration::from_secs(3);

/// The outputs that say where the run is stored.
const OF_STORE: [&str; 2] = ["artifact-name", "resume-from"];

/// Where and how the results of a run are published.
pub(crate) struct Publication {
    provider: Provider,
    /// The directory that was asked for; without one, the reports go to the files of the run.
    directory: Option<PathBuf>,
    key: Option<RunKey>,
    /// Where this machine keeps the nights of which this run may be one.
    nights: PathBuf,
    artifact_name: String,
    /// The items of a merge that have pages of their own.
    item_pages: BTreeSet<String>,
    /// Whether it is an item of a leg, which says itself where all reports are.
    is_item: bool,
    /// Whether it is a job of a CI system, whose machine is gone when it is over.
    is_in_ci: bool,
    /// The annotations of that leg.
    annotations: Option<LegAnnotations>,
    storing: Storing,
    root: PathBuf,
    workspace: PathBuf,
    running: RunFiles,
    /// Saves the run; absent for a run that was not needed.
    saver: Option<Rc<Saver>>,
    reader: Reader,
    uploader: Option<Rc<Uploader>>,
    reporter: Option<Box<dyn Reporter>>,
}

/// How far a run has come when it is reported for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It begins.
    Beginning,
    /// It is over: it never began, or the process that began it is gone.
    Over,
}

/// How a run ended, as far as its reports are concerned.
pub(crate) enum ReportedEnd<'e> {
    /// As its journal says, and the last event, where that could not be written to it.
    Journaled { files: &'e RunFiles, unwritten: Option<&'e Stamped> },
    /// Its process was killed after what its journal says.
    Killed { files: &'e RunFiles },
    /// It was not needed.
    NotNeeded(NotRun),
    /// It could not begin.
    Unbegun(Unbegun),
}

impl ReportedEnd<'_> {
    /// Folds what is known of it, with the reason if the journal cannot be read to its end.
    fn digest(self) -> (Digest, Option<ReadError>) {
        // A journal that breaks off is still reported: what was read up to there is true, and the digest says where it ends.
        let read = |files: &RunFiles| {
            let mut digest = Digest::default();
            digest.of_files(files.stem());
            let read = reader::read(&files.journal(), |event| digest.event(&event));
            if let Err(error) = &read {
                digest.breaks_off(error.place());
            }
            (digest, read.err())
        };
        match self {
            Self::Journaled { files, unwritten } => {
                let (mut digest, incomplete) = read(files);
                if let Some(event) = unwritten {
                    digest.event(event);
                }
                (digest, incomplete)
            }
            Self::Killed { files } => {
                let (mut digest, incomplete) = read(files);
                digest.was_killed();
                (digest, incomplete)
            }
            Self::NotNeeded(not_run) => (Digest::of_none(not_run), None),
            Self::Unbegun(unbegun) => (Digest::of_unbegun(unbegun), None),
        }
    }
}

/// The result of publishing a run.
pub(crate) struct Published {
    /// Whether the files were uploaded; absent if uploading was not asked for.
    pub(crate) uploaded: Option<bool>,
    /// Whether every report was written.
    pub(crate) is_whole: bool,
    /// The last lines about the run: where its reports are, and how to see more of it.
    pub(crate) more: Vec<String>,
    /// Where the run is read about, now that it is known what there is.
    pub(crate) reader: Reader,
    /// What others may be told of it.
    pub(crate) news: Option<NoticeFacts>,
}

/// The outcome of a run that is still to be told at its commit.
struct Farewell {
    reporter: Box<dyn Reporter>,
    report: FinalReport,
    provider: Provider,
}

impl Farewell {
    /// Waits for the server, whatever happens meanwhile.
    fn tell(self, session: &Session<'_>) {
        let limit = self.limit();
        say_untold(self.reporter.end(self.report, limit), &self.provider, session);
    }

    /// Waits for the server no longer than somebody who wants the run to stop does.
    async fn tell_unless_stopped(self, cancel: &mut Cancel, session: &Session<'_>) {
        let limit = self.limit();
        let Self { reporter, report, provider } = self;
        let (told, untold) = tokio::sync::oneshot::channel();
        let wait = move || {
            // Nobody listens any more where the run was asked to stop.
            let _given_up = told.send(reporter.end(report, limit));
        };
        if let Err(error) = thread::Builder::new().name("farewell".to_owned()).spawn(wait) {
            session.talk.warning(&format!("the outcome was not reported: {error}"));
            return;
        }
        tokio::select! {
            untold = untold => say_untold(untold.unwrap_or_default(), &provider, session),
            () = given_up(cancel, limit) => session.talk.warning(&format!(
                "{} may not know how the run ended: it was not waited for any longer",
                provider.name()
            )),
        }
    }

    /// Returns how long the server is waited for.
    fn limit(&self) -> Duration {
        let digest = &self.report.digest;
        let is_interrupted = digest.end().is_some_and(|end| end.signal.is_some())
            || digest.unbegun().is_some_and(|unbegun| unbegun.hindrance == Hindrance::Interrupted);
        if is_interrupted { SHORT_PATIENCE } else { PATIENCE }
    }
}

/// Waits until a server that may be waited for so long need not be: when somebody asked to stop some time ago, or hurries.
async fn given_up(cancel: &mut Cancel, limit: Duration) {
    let mut known = cancel.request();
    if known == EndRequest::None {
        known = cancel.differs_from(known).await;
        if let EndRequest::Now(_) = known {
            return;
        }
    }
    let hurried = cancel.differs_from(known);
    if limit > SHORT_PATIENCE {
        let _hurried_or_over = tokio::time::timeout(SHORT_PATIENCE, hurried).await;
    } else {
        // The wait is short by itself.
        hurried.await;
    }
}

/// Says what could not be reported. Missing permissions of the token are a notice and not a warning: on the pull request of a fork they
/// are missing by design.
fn say_untold(untold: Unreported, provider: &Provider, session: &Session<'_>) {
    if let Some(message) = untold.notice {
        let (level, title) = (AnnotationLevel::Notice, provider.name().to_owned());
        let notice = Annotation { level, title, message, location: None };
        session.talk.ci_line(&provider.dialect().annotation(&notice), provider);
    }
    for warning in &untold.warnings {
        session.talk.warning(warning);
    }
}

impl Publication {
    pub(crate) fn new(
        options: &RunOptions,
        provider: Provider,
        root: &Path,
        name: &LoopName,
        files: &RunFiles,
        bundler: Option<Bundler>,
        session: &Session<'_>,
    ) -> Self {
        let root = root.to_owned();
        let job = provider.job();
        let reader = whereabouts::reader(&root, files, options, session);
        let directory = options.report_dir.as_deref().map(|directory| session.path(directory));
        let reports = directory.clone().unwrap_or_else(|| files.report());
        let key = key_of_run::of_run(options, files.stem(), session);
        let artifact_name = artifact_name(&job, key.as_ref(), &name.file_stem(), files);
        let uploader =
            Uploader::find(options.storing, &artifact_name, files.instance(), session).map(Rc::new);
        let saver = bundler.map(|bundler| Saver::new(bundler, files.clone(), reports, uploader.clone()));
        Self {
            provider,
            directory,
            key,
            nights: kept_nights::kept(files, options, session),
            artifact_name,
            item_pages: BTreeSet::new(),
            is_item: options.assignment.is_some(),
            is_in_ci: options.audience.is_ci(),
            annotations: options.annotations.clone(),
            storing: options.storing,
            workspace: job.workspace.unwrap_or_else(|| root.clone()),
            root,
            running: files.clone(),
            saver: saver.map(Rc::new),
            reader,
            uploader,
            reporter: None,
        }
    }

    /// Returns the name of the artifact with the reports.
    pub(crate) fn artifact_name(&self) -> &str {
        &self.artifact_name
    }

    /// Says which items of a merge have pages of their own in the directory of the reports.
    pub(crate) fn has_pages_of(&mut self, items: BTreeSet<String>) {
        self.item_pages = items;
    }

    /// Returns what saves the run while it goes on.
    pub(crate) fn saver(&self) -> Option<Rc<Saver>> {
        self.saver.clone()
    }

    /// Reports at the commit that the run has begun, or prepares to report its end.
    pub(crate) fn begin(
        &mut self,
        options: &RunOptions,
        loop_name: &str,
        stage: Stage,
        session: &Session<'_>,
    ) {
        let subject = subject(loop_name, self.running.instance(), self.key.as_ref(), session);
        let wanted = wanted(&options.commit, session);
        let (env, token) = (&session.env.lookup(), session.env.token());
        let request =
            ReportRequest { env, token, options: &wanted, subject: &subject, is_over: stage == Stage::Over };
        let (reporter, warnings) = self.provider.report(request);
        for warning in warnings {
            session.talk.warning(&warning);
        }
        self.reporter = reporter;
    }

    /// Gives the CI system the paths of the reports before they are made, so that later steps find them even if
    /// this process is killed.
    pub(crate) fn announce(&self, session: &Session<'_>) {
        let directory = self.directory(&self.running);
        // Now, so that the paths that are announced exist even if the process is killed before its reports are made.
        if let Err(error) = fs_err::create_dir_all(&directory) {
            session.talk.warning(&format!("cannot write reports: {error}"));
        }
        let places = self.places(&directory);
        // Nothing is stored yet, and a killed run stores nothing: a later step must not look for an artifact that never was.
        let places = if self.uploader.is_some() { places.unstored() } else { places };
        let ReportPaths { run_id, key, report_dir, artifact_name, .. } = places;
        let mut early = vec![("run-id", run_id), ("key", key)];
        if !self.is_item {
            early.extend([("report-dir", report_dir), ("artifact-name", artifact_name.clone())]);
            early.extend(self.left_to_a_later_step(artifact_name));
        }
        if let Err(error) = self.provider.announce(&early) {
            session
                .talk
                .warning(&format!("cannot tell {} where the reports are: {error}", self.provider.name()));
        }
    }

    /// Writes the history of nights before the run starts, so that a run that is killed does not lose it.
    pub(crate) fn remember(&self, start: &Start) -> Vec<String> {
        let began = Stamped::new(start.at, 1, Event::LoopStart(start.event.clone()));
        kept_nights::keep(&Digest::of([&began]), &self.directory(&self.running), &self.nights)
    }

    /// Tells how a run ended: writes every format, informs the CI system, and reports it at the commit. Says what could not
    /// be told.
    pub(crate) fn tell(self, ending: ReportedEnd<'_>, session: &Session<'_>) -> Published {
        let (published, farewell) = self.tell_here(ending, session);
        if let Some(farewell) = farewell {
            farewell.tell(session);
        }
        published
    }

    /// The same, but that requests to stop shorten the wait for the server.
    pub(crate) async fn tell_unless_stopped(
        self,
        ending: ReportedEnd<'_>,
        cancel: &mut Cancel,
        session: &Session<'_>,
    ) -> Published {
        let (published, farewell) = self.tell_here(ending, session);
        if let Some(farewell) = farewell {
            farewell.tell_unless_stopped(cancel, session).await;
        }
        published
    }

    /// Tells all but the commit, which waits for a server, and returns what to tell there.
    fn tell_here(self, ending: ReportedEnd<'_>, session: &Session<'_>) -> (Published, Option<Farewell>) {
        let (files, unwritten) = match &ending {
            ReportedEnd::Journaled { files, unwritten } => ((*files).clone(), *unwritten),
            ReportedEnd::Killed { files } => ((*files).clone(), None),
            // Its reports go where those of archived runs are.
            ReportedEnd::NotNeeded(_) | ReportedEnd::Unbegun(_) => (self.running.archived(), None),
        };
        let mut warnings = Vec::new();
        let (digest, incomplete) = ending.digest();
        let told = self.publish(digest, unwritten, &files, &mut warnings, session);
        warnings.extend(incomplete.map(|error| format!("the reports are incomplete: {error}")));
        for warning in &warnings {
            session.talk.warning(warning);
        }
        told
    }

    /// Tells how a run ended at the commit alone, and writes nothing.
    pub(crate) fn tell_commit(mut self, unbegun: Unbegun, session: &Session<'_>) {
        let Some(reporter) = self.reporter.take() else { return };
        let report = FinalReport { digest: Digest::of_unbegun(unbegun), annotations: Vec::new() };
        let farewell = Farewell { reporter, report, provider: self.provider };
        farewell.tell(session);
    }

    /// Writes and says it all. An event that could not be written comes beside the digest that has it.
    fn publish(
        mut self,
        mut digest: Digest,
        unwritten: Option<&Stamped>,
        files: &RunFiles,
        warnings: &mut Vec<String>,
        session: &Session<'_>,
    ) -> (Published, Option<Farewell>) {
        let directory = self.directory(files);
        digest.places = self.places(&directory);
        digest.reader = self.reader.clone();
        digest.otherwise = asked_flips::of_run(files, &digest, session);
        // A run that did not begin leaves nothing that nobody asked for.
        let is_written = digest.unbegun().is_none() || self.directory.is_some();
        let closer =
            |digest: &Digest| digest.start().map(|_| page_detail::of_run(files, unwritten, digest, session));
        let write = |digest: &Digest| write_all(&directory, digest, closer(digest), files);
        let written = if is_written { write(&digest) } else { Ok(()) };
        if !is_written {
            digest.places = ReportPaths::default();
            self.uploader = None;
        }
        let is_whole = written.is_ok();
        if let Err(error) = written {
            self.link_what_exists(&mut digest.places);
            let advice = match digest.unbegun() {
                Some(_) => String::new(),
                None if digest.is_merge() => "; merge again when there is room".to_owned(),
                None => {
                    format!(
                        "; `{}` makes them when there is room",
                        advised_command::report(self.running.instance())
                    )
                }
            };
            warnings.push(format!("not every report was written: {error}{advice}"));
        }
        warnings.extend(kept_nights::keep(&digest, &directory, &self.nights));
        // After the reports, which the bundle has in it, and before the statement, which names the digest of the bundle.
        let saved = self.saver.as_deref().map(|saver| saver.finish(files, &directory)).unwrap_or_default();
        warnings.extend(saved.warnings);
        let lost = saved.unsaved.filter(|_| is_handed_off(&digest) && !digest.is_merge());
        if lost.is_some() {
            // No other machine can go on with it, and nothing may say that one can.
            digest.reader.remote = None;
            digest.places.resume_from.clear();
            warnings.extend(write(&digest).err().map(|error| error.to_string()));
            self.link_what_exists(&mut digest.places);
        }
        if is_written {
            let stated = statements::write(&digest, saved.bundle.as_deref(), &directory);
            warnings.extend(stated.err().map(|error| format!("the verdict was not written down: {error}")));
        }
        let (repository, roots) = self.repository();
        let exists = |path: &str| repository.join(path).is_file();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        // Cloned, since the digest changes below while the checkout is still in use.
        let tree = Checkout { roots: &roots, home: &digest.reader.home.clone(), exists: &exists };
        let mut log = Vec::new();
        let stored = digest.places.clone();
        if self.uploader.is_some() {
            // If this process is killed while it uploads, nothing is looked for that is not there.
            digest.places = stored.unstored();
        }
        // A path in the directory of the reports leads nowhere from the page of a job.
        let pages = std::mem::take(&mut digest.places.item_pages);
        digest.is_annotated_by_leg = self.annotations.is_some();
        let mut failed = self.provider.publish(&digest, &tree, &mut log);
        digest.places.item_pages = pages;
        let name = digest.places.artifact_name.clone();
        if let Some(left) = self.left_to_a_later_step(name) {
            failed.extend(self.provider.announce(&[left]).err());
        }
        // Collected first and then printed in one place, since only the session knows where the log of the CI system is.
        String::from_utf8_lossy(&log).lines().for_each(|line| session.talk.ci_line(line, &self.provider));
        let first =
            self.annotations.as_ref().and_then(|leg| leg.item(annotations::annotations(&digest, &tree)));
        if let Some(first) = first {
            session.talk.ci_line(&self.provider.dialect().annotation(&first), &self.provider);
        }
        for error in failed {
            warnings.push(format!("cannot give {} all results: {error}", self.provider.name()));
        }
        let stored_by_us = self.store(&directory, warnings, session);
        match &stored_by_us {
            Some(Ok(())) => {
                digest.places = stored;
                let told = outputs(&digest).into_iter().filter(|(name, _)| OF_STORE.contains(name));
                if let Err(error) = self.provider.announce(&told.collect::<Vec<_>>()) {
                    warnings.push(format!("cannot give {} all results: {error}", self.provider.name()));
                }
            }
            // What is in the files is for those who find them there.
            Some(Err(why)) => {
                warnings.extend(write(&digest).err().map(|e| e.to_string()));
                warnings.extend(self.say_unstored(&digest, why.as_str(), session));
            }
            None => warnings.extend(self.nothing_stored(&digest)),
        }
        let lost = lost.filter(|_| self.is_in_ci);
        if let Some(why) = &lost {
            warnings.extend(self.say_failed(&digest, why.clone(), session));
        }
        // The bundle may have failed to be written above, or may not have been allowed to be.
        if matches!(digest.reader.remote, Some(RunDownload::Bundle(_)))
            && !directory.join(file_name(files)).exists()
        {
            // Without a bundle, no other machine has the run.
            digest.reader.remote = None;
        }
        let more = advice::more(
            &digest.reader,
            &digest.places,
            digest.end().is_some_and(LoopComplete::is_verified_success),
        );
        let reader = digest.reader.clone();
        let news = NoticeFacts::of(&digest);
        // Last, because it depends on the upload: a status must not promise that a hand-off can be taken that was not stored.
        let farewell = self.reporter.take().map(|reporter| {
            let all = annotations::all(&digest, &tree);
            let provider = self.provider.clone();
            Farewell { reporter, report: FinalReport { digest, annotations: all }, provider }
        });
        let uploaded = if lost.is_some() { Some(false) } else { stored_by_us.map(|stored| stored.is_ok()) };
        (Published { uploaded, is_whole, more, reader, news }, farewell)
    }

    /// Takes back the places of reports that are not there.
    fn link_what_exists(&self, places: &mut ReportPaths) {
        let there = |place: &str| self.workspace.join(place).exists();
        let places = [&mut places.junit, &mut places.summary];
        places.into_iter().filter(|place| !there(place)).for_each(String::clear);
    }

    /// Returns the output by which a later step of the action knows that it has to upload the reports, and under which name.
    fn left_to_a_later_step(&self, artifact_name: String) -> Option<(&'static str, String)> {
        let is_left = matches!(self.storing, Storing::LaterStep) && !artifact_name.is_empty();
        is_left.then_some(("upload-name", artifact_name))
    }

    /// Says that the reports were not stored: as an error where another job was to go on with the run.
    fn say_unstored(&self, digest: &Digest, why: &str, session: &Session<'_>) -> Option<String> {
        self.say_failed(digest, format!("the reports of the run are not stored: {why}"), session)
    }

    /// Says that another job cannot go on with the run: as an error where one was to.
    fn say_failed(&self, digest: &Digest, message: String, session: &Session<'_>) -> Option<String> {
        let is_handed_off = is_handed_off(digest);
        let level = if is_handed_off { AnnotationLevel::Error } else { AnnotationLevel::Warning };
        let said = Annotation { level, title: digest.loop_name().to_owned(), message, location: None };
        session.talk.ci_line(&self.provider.dialect().annotation(&said), &self.provider);
        // A run that ended needs no files to be believed; only a hand-off that cannot be taken changes the exit code.
        let code = is_handed_off.then(|| ("exit-code", UNSTORED.to_string()))?;
        let told = self.provider.announce(&[code]).err()?;
        Some(format!("cannot give {} all results: {told}", self.provider.name()))
    }

    /// Uploads the files of the run, if that was asked for and the runner allows it, or says why it did not work.
    fn store(
        &self,
        directory: &Path,
        warnings: &mut Vec<String>,
        session: &Session<'_>,
    ) -> Option<Result<(), Explanation>> {
        let stored = self.uploader.as_ref()?.store(directory.to_owned());
        let dialect = self.provider.dialect();
        for line in stored.secrets.iter().filter_map(|secret| dialect.mask(secret)) {
            session.talk.ci_line(&line, &self.provider);
        }
        warnings.extend(stored.warnings);
        Some(stored.failed.map_or(Ok(()), |why| Err(Explanation::new(why))))
    }

    /// Warns that a run that could go on cannot be reached by another job.
    fn nothing_stored(&self, digest: &Digest) -> Option<String> {
        let is_missed = matches!(self.storing, Storing::Ours(_)) && self.provider.stores_artifacts();
        let can_go_on = digest.end().is_some_and(LoopComplete::is_resumable);
        (is_missed && can_go_on).then(|| {
            "the files of the run are not stored, because this step has no access to artifacts; another job can only go on with the run if a later step uploads the report directory".to_owned()
        })
    }

    /// Returns the root of the repository, and the ways in which tools write it: with links followed, as the run knows
    /// it, and as the job does.
    fn repository(&self) -> (PathBuf, Vec<String>) {
        let repository = links::repository(&self.root, Some(&self.workspace));
        // `home` is the way from the top of the repository down to the root, so as many steps up lead back to the top.
        let up = Path::new(&self.reader.home).components().count();
        let known = self.root.ancestors().nth(up).unwrap_or(&self.root).to_owned();
        let followed = self.workspace.canonicalize().unwrap_or_else(|_| self.workspace.clone());
        let below = repository.strip_prefix(&followed).unwrap_or(Path::new(""));
        let ways = [&repository, &known, &self.workspace.join(below)];
        let roots = ways.map(|root| root.to_string_lossy().trim_end_matches('/').to_owned());
        (repository, roots.into())
    }

    /// Returns the directory of the reports.
    pub(crate) fn directory(&self, files: &RunFiles) -> PathBuf {
        self.directory.clone().unwrap_or_else(|| files.report())
    }

    fn places(&self, directory: &Path) -> ReportPaths {
        let shown = |path: &Path| shown(path, &self.workspace);
        let file = |name: &str| {
            let format = FORMATS.iter().find(|format| format.name == name);
            format.map_or_else(String::new, |format| shown(&directory.join(format.file_name)))
        };
        let stores = self.provider.stores_artifacts();
        let is_stored = !stores || self.uploader.is_some() || matches!(self.storing, Storing::LaterStep);
        let artifact_name = if is_stored { self.artifact_name.clone() } else { String::new() };
        let resume_from = match (stores, is_stored) {
            (true, true) => format!("artifact:{artifact_name}"),
            (true, false) => String::new(),
            (false, _) => shown(directory),
        };
        ReportPaths {
            key: self.key.as_ref().and_then(RunKey::shown).unwrap_or_default(),
            run_id: self.running.instance().to_owned(),
            report_dir: shown(directory),
            junit: file("junit"),
            summary: file("summary"),
            patch: shown(&directory.join(names::PATCH)),
            artifact_name,
            resume_from,
            item_pages: self.item_pages.clone(),
        }
    }
}

/// Tells whether somebody else was to go on with a run.
fn is_handed_off(digest: &Digest) -> bool {
    digest.end().is_some_and(|end| end.outcome == Outcome::Handoff)
}

/// Returns the provider that a run is reported to, if any.
pub(crate) fn publisher(options: &RunOptions) -> Option<Provider> {
    match &options.audience {
        Audience::Ci(provider) => Some(provider.clone()),
        // In an empty environment the plain provider is found, which writes the files and tells no CI system.
        Audience::Person => options.report_dir.as_ref().map(|_| Provider::detect(&|_| None)),
    }
}

/// Returns the reports that are asked for. A run that an action of another run started is a part of that run, and
/// reported only when asked for.
pub(crate) fn wanted(commit: &ReportOptions, session: &Session<'_>) -> ReportOptions {
    let status = commit.status.or_else(|| session.env.get(PARENT).map(|_| false));
    ReportOptions { status, ..commit.clone() }
}

/// Writes every report that it can. If one fails, its file is removed: an earlier run's report, or half of
/// this one's, would mislead.
fn write_all(
    directory: &Path,
    digest: &Digest,
    mut detail: Option<Detail>,
    files: &RunFiles,
) -> io::Result<()> {
    fs_err::create_dir_all(directory)?;
    let mut all = Ok(());
    for format in FORMATS {
        let closer = if format.looks_closer() { detail.take() } else { None };
        let (path, text) = (directory.join(format.file_name), format.write(digest, closer));
        fault::point();
        // The others are still written: they are independent of each other, and each one that exists helps.
        if let Err(error) = fault::write(text.len() as u64).and_then(|()| replace(&path, text)) {
            let _absent = fs_err::remove_file(path);
            all = all.and(Err(error));
        }
    }
    all?;
    if !files.patch().exists() {
        // That of an earlier run would be taken for this one's.
        let _absent = std::fs::remove_file(directory.join(names::PATCH));
    }
    // The upload takes one directory, so everything is put there: linked where possible, which costs no space.
    for (file, name) in [
        (files.journal(), names::JOURNAL),
        (files.state(), names::STATE),
        (files.log(), names::LOG),
        (files.patch(), names::PATCH),
    ] {
        let copy = directory.join(name);
        if file.exists() {
            // An earlier part of the run may have left a copy; `state.json` is replaced, so an old link shows an
            // old state.
            let _absent = std::fs::remove_file(&copy);
            fs_err::hard_link(&file, &copy).or_else(|_| copied(&file, &copy))?;
        }
    }
    Ok(())
}

/// Links a file, or copies it where links do not work.
fn copied(file: &Path, copy: &Path) -> io::Result<()> {
    let mut file = read::open(file)?;
    replace_with(copy, |copy| io::copy(&mut file, copy).map(drop))
}

/// Writes a path as later steps of the job need it: relative, if it is below the workspace.
fn shown(path: &Path, workspace: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // One of both may lead through a link, as below `/tmp` on macOS; unresolved, they would share no beginning.
    let absolute = absolute.canonicalize().unwrap_or(absolute);
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    absolute.strip_prefix(&workspace).unwrap_or(&absolute).to_string_lossy().into_owned()
}

/// Names the artifact so that no two jobs and attempts of a run collide.
fn artifact_name(job: &Job, key: Option<&RunKey>, name: &str, files: &RunFiles) -> String {
    match job.id.as_ref().zip(key) {
        Some((id, key)) => format!("{PREFIX}{name}-{}", id.name_for(key)),
        None => format!("{PREFIX}{}", files.instance()),
    }
}

/// Exports a run that has ended to the collectors that the environment names. What goes wrong with that is a warning.
pub(super) fn export(run: ExportedRun, session: &Session<'_>) {
    if let Err(why) = live_export::export(run, &session.env.lookup()) {
        let why = one_line(&session.redactor.text(&why.to_string()), 300);
        let message =
            "the run was not exported, or not whole, to the collector of OTEL_EXPORTER_OTLP_ENDPOINT";
        session.talk.warning(&format!("{message}: {why}"));
    }
}
