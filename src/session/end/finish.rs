//! Finishes a run that ended but whose process died before it had reported and archived it. The next command that
//! meets such a run makes its reports and moves its files to the history.
//!
//! A file beside the journal says what is still to do. It exists from the beginning of a run until all of that is
//! done.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bundler::Bundler;
use super::job_record::{JobRecord, RecoveredReports};
use super::publication::{Publication, ReportedEnd, Stage, publisher};
use crate::base::explanation::Explanation;
use crate::base::territory::{ScopePath, Territory};
use crate::ci::Provider;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::options::RunOptions;
use crate::definition::load;
use crate::engine::event::{LoopComplete, LoopStart};
use crate::engine::past::Standing;
use crate::engine::{Engine, Start};
use crate::files::read::{self, Unread};
use crate::files::replace::replace;
use crate::journal::claim::{self, Claim, Taken};
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::known::{KnownRun, state_now};
use crate::journal::snapshot::{self, Snapshot};
use crate::process::clock::Clock;
use crate::report::Sinks;
use crate::session::prepare::claim::surroundings;
use crate::session::prepare::left_behind;
use crate::session::prepare::prepared::{Prepared, refused};
use crate::session::prepare::reuse_decision::unreachable;
use crate::session::read::refolded::fold;

/// What is still to do after the end of a run, as the file beside the journal holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PendingReports {
    /// The version of the format.
    schema: u32,
    /// Whether reports were asked for.
    pub(crate) reports: bool,
    /// The directory that was asked for; without one, they go to the files of the run.
    pub(crate) report_dir: Option<PathBuf>,
    /// The CI job in which the run is.
    #[serde(default)]
    pub(crate) job: Option<JobRecord>,
    /// Whether the guard of the run has set the status since the process of the run was killed.
    #[serde(default)]
    pub(crate) is_status_set: bool,
    /// How much was made up for since the process of the run was killed.
    #[serde(default)]
    pub(crate) killed: RecoveredReports,
}

/// The version of the format.
const SCHEMA: u32 = 1;

/// Writes down what is to be done after the end of a run, before it begins or goes on.
pub(crate) fn begin(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> io::Result<()> {
    let report_dir = options.report_dir.as_deref().map(|directory| session.path(directory));
    let due = PendingReports {
        schema: SCHEMA,
        reports: options.is_published(),
        report_dir,
        job: JobRecord::of(files, options, session),
        is_status_set: false,
        killed: RecoveredReports::Nothing,
    };
    fault::write(1)?;
    keep(files, &due)?;
    fault::point();
    Ok(())
}

/// Writes down what is still to do.
pub(crate) fn keep(files: &RunFiles, due: &PendingReports) -> io::Result<()> {
    replace(&files.unreported(), serde_json::to_vec(due)?)
}

/// Notes that the status of a killed run was set, if its files are still there.
pub(crate) fn status_is_set(files: &RunFiles) {
    if let Some(pending) = due(files) {
        let _gone = keep(files, &PendingReports { is_status_set: true, ..pending });
    }
}

/// Notes that everything is done.
pub(crate) fn end(files: &RunFiles) {
    fault::point();
    let _absent = fs_err::remove_file(files.unreported());
}

/// A run for which everything is done.
pub(crate) struct Finished {
    /// Its files, where they are now.
    pub(crate) files: RunFiles,
    /// How it ended.
    pub(crate) complete: LoopComplete,
}

/// Does what is still to do after the end of a run, and says so. With options, the run is reported as it would have
/// been; without, only the files are written. `directory` is where the job was told that its reports are, and takes the
/// place of the one that the run was begun with.
pub(crate) fn finish(
    run: &KnownRun,
    options: Option<&RunOptions>,
    directory: Option<&Path>,
    session: &Session<'_>,
) -> Result<Finished, Error> {
    let (Some((_, began)), Some(complete)) = (&run.ends.start, &run.ends.complete) else {
        return Err(Error::refused(format!("the run {} has not ended", run.files.instance())));
    };
    // First, because two commands may meet the same run at once.
    let claim = claimed(run, began, session)?;
    let files = moved(run, complete, session);
    // Read where it is now: it moves with the other files of the run.
    let due = due(&files);
    let mut material = RunMaterials::find(&files, began, session);
    keep_state(&KnownRun { files: files.clone(), ..run.clone() }, &mut material, session);
    let mut done = Vec::new();
    if !run.files.is_archived() && files.is_archived() {
        done.push("its files are in the history now".to_owned());
    }
    let is_wanted =
        due.as_ref().is_some_and(|due| due.reports) || options.is_some_and(RunOptions::is_published);
    let mut is_whole = true;
    if due.is_some() && is_wanted {
        let mut reported = options.cloned().unwrap_or_default();
        reported.report_dir = directory
            .map(Path::to_owned)
            .or(reported.report_dir)
            .or_else(|| due.and_then(|due| due.report_dir));
        let (directory, whole) = report(&files, began, &reported, options.is_some(), material, session);
        is_whole = whole;
        done.push(format!("its reports are in {}", directory.display()));
    }
    if is_whole {
        end(&files);
    }
    drop(claim);
    let what = if done.is_empty() { "nothing was left to do".to_owned() } else { done.join(", and ") };
    let (instance, outcome) = (files.instance(), complete.outcome.word());
    session.talk.note(&format!("the run {instance} had ended ({outcome}), and its process was gone: {what}"));
    Ok(Finished { files, complete: complete.clone() })
}

/// Claims the run for this process, with an empty scope, for no action is run.
pub(crate) fn claimed(run: &KnownRun, began: &LoopStart, session: &Session<'_>) -> Result<Claim, Error> {
    let loops = run.files.loops();
    let tree = ScopePath::from(loops.parent().unwrap_or(loops).to_string_lossy().into_owned());
    let territory = Territory { tree, paths: Vec::new() };
    let now = Clock::start().now();
    let wanted = crate::session::prepare::claim::wanted(
        &run.files,
        &began.r#loop,
        &territory,
        began.policy.clone(),
        session,
        now,
    );
    let running = RunFiles::running(loops);
    let failed = |error: io::Error| Error::failed("cannot finish the run", &error);
    fs_err::create_dir_all(&running).map_err(failed)?;
    match claim::take(&running, wanted).map_err(failed)? {
        Taken::Held(claim) => {
            // What the killed process has started must not go on writing while the reports are made.
            left_behind::end(&running, run.files.instance(), session);
            let planted =
                left_behind::remove_planted(&session.reuse_store(), Some(run.files.instance()), session);
            if let Err(why) = planted {
                session.talk.warning(&unreachable(&why));
            }
            Ok(claim)
        }
        Taken::Queued(_) | Taken::Refused(_) | Taken::Circle(_) | Taken::Runs(_) => {
            let message = format!("another process finishes the run {}", run.files.instance());
            Err(Error::refused(message).of_kind(Kind::Taken).with_hint("try again when it is done"))
        }
    }
}

/// Moves the files of a run that cannot be resumed to the history, unless they are there already.
fn moved(run: &KnownRun, complete: &LoopComplete, session: &Session<'_>) -> RunFiles {
    let archived = run.files.archived();
    // Another process may have moved them after we listed them.
    if archived.journal().exists() {
        return archived;
    }
    if complete.is_resumable() {
        return run.files.clone();
    }
    run.files.release();
    run.files.archive().unwrap_or_else(|error| {
        session.talk.warning(&format!("the files of the run stay in .running: {error}"));
        run.files.clone()
    })
}

pub(crate) fn due(files: &RunFiles) -> Option<PendingReports> {
    let text = match read::bytes(&files.unreported(), read::MIB) {
        Ok(text) => text,
        Err(Unread::Absent) => return None,
        Err(_) => Vec::new(),
    };
    // A file that cannot be read was cut short by a crash. Reports that were not asked for do no harm.
    Some(serde_json::from_slice(&text).unwrap_or(PendingReports {
        schema: SCHEMA,
        reports: true,
        report_dir: None,
        job: None,
        is_status_set: false,
        killed: RecoveredReports::Nothing,
    }))
}

/// Makes the reports. Returns their directory, and whether they are complete.
fn report(
    files: &RunFiles,
    began: &LoopStart,
    options: &RunOptions,
    is_told: bool,
    material: RunMaterials,
    session: &Session<'_>,
) -> (PathBuf, bool) {
    let RunMaterials { root, loops } = material;
    let bundler = bundler(&loops, session);
    // Without a CI system to tell, the reports are the same files.
    let provider = publisher(options).unwrap_or_else(|| Provider::detect(&|_| None));
    let mut publication = Publication::new(options, provider, &root, &began.r#loop, files, bundler, session);
    let directory = publication.directory(files);
    if is_told {
        publication.announce(session);
        publication.begin(options, began.r#loop.as_str(), Stage::Over, session);
    }
    let published = publication.tell(ReportedEnd::Journaled { files, unwritten: None }, session);
    if is_told {
        published.more.iter().for_each(|line| session.talk.closing(line, &options.audience));
    }
    (directory, published.is_whole)
}

/// Returns what writes the bundle of a run, unless its loops cannot be read.
pub(crate) fn bundler(
    loops: &Result<(Prepared, Territory), Explanation>,
    session: &Session<'_>,
) -> Option<Bundler> {
    match loops {
        Ok((prepared, territory)) => Some(Bundler::new(prepared, territory, session)),
        Err(why) => {
            session.talk.warning(&format!("cannot write a bundle: {why}"));
            None
        }
    }
}

/// The directory and the loops of a run, if they still exist.
pub(crate) struct RunMaterials {
    /// The directory in which it worked.
    pub(crate) root: PathBuf,
    /// Its loops and its scope, or why they cannot be read.
    pub(crate) loops: Result<(Prepared, Territory), Explanation>,
}

impl RunMaterials {
    pub(crate) fn find(files: &RunFiles, began: &LoopStart, session: &Session<'_>) -> Self {
        let home = files.loops().parent().unwrap_or(files.loops());
        let worktree = files.worktree();
        let root = if worktree.is_dir() { worktree } else { home.to_owned() };
        let loops = read_again(files, began, session).map_err(|error| Explanation::new(error.message()));
        Self { root, loops }
    }
}

/// Reads the loops and the scope of a run again, from where it was left.
pub(crate) fn read_again(
    files: &RunFiles,
    began: &LoopStart,
    session: &Session<'_>,
) -> Result<(Prepared, Territory), Error> {
    let home = files.loops().parent().unwrap_or(files.loops());
    let located = load::find(&began.source.file, home).map_err(|error| refused(&error))?;
    let mut prepared = session.at(home).prepare(located)?;
    if files.worktree().is_dir() {
        prepared.work_in(files.worktree());
    }
    prepared.scope.clone_from(&began.overrides.scope);
    let territory =
        crate::session::prepare::claim::territory(&prepared, &began.context, session, &session.redactor)?;
    Ok((prepared, territory))
}

/// Makes `state.json` match the end of the journal, if the process died between writing the two. If that fails, the
/// file is removed, because it would say that the run goes on.
fn keep_state(run: &KnownRun, material: &mut RunMaterials, session: &Session<'_>) {
    if state_now(run).is_some() {
        return;
    }
    let content = material.loops.as_mut().ok().and_then(|loops| state(run, loops, session));
    let kept = content.and_then(|content| snapshot::write(&run.files, &content).ok());
    if kept.is_none() {
        let _absent = fs_err::remove_file(run.files.state());
    }
    let _absent = fs_err::remove_file(run.files.spare_state());
}

/// Folds the journal into the last content of `state.json`.
fn state(
    run: &KnownRun,
    (prepared, territory): &mut (Prepared, Territory),
    session: &Session<'_>,
) -> Option<Snapshot> {
    let mut folded = fold(&run.files, prepared, false, &mut Sinks::default()).ok()?;
    let level = folded.left.take_outermost()?;
    let event = level.past.start().clone();
    // Events folded by another machine would make a state that never was.
    if event.definition_sha256 != prepared.loaded.digest {
        return None;
    }
    let start = Start::of(event, level.at, run.files.instance());
    let machine = &prepared.machine;
    let engine = match level.past.standing(machine) {
        Standing::Over(end) => Engine::ended(machine, start, level.past, end),
        Standing::Open(how) => Engine::resume(machine, start, level.past, how, Duration::ZERO),
        Standing::Lost(_) => return None,
    };
    let (now, _) = run.ends.last?;
    Snapshot::of(&engine, &surroundings(territory), now, folded.whole.last_seq, &session.redactor).ok()
}
