//! A run that ended, and whose process died before everything that follows from an end: its reports are made and its
//! files move to the history, by the next command that meets it.
//!
//! A file beside the journal says what is still to do. It is there from the beginning of a run until all of it is done.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::territory::{ScopePath, Territory};
use crate::ci::Provider;
use crate::definition::load;
use crate::engine::event::{LoopComplete, LoopStart};
use crate::engine::past::Standing;
use crate::engine::{Engine, Start};
use crate::journal::claim::{self, Claim, Taken};
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::known::{KnownRun, Status, state_now};
use crate::journal::snapshot::{self, Snapshot};
use crate::report::Sinks;
use crate::run::clock::Clock;

use super::bundler::Bundler;
use super::claim::surroundings;
use super::context::Session;
use super::error::Error;
use super::error::Kind;
use super::fold::fold;
use super::options::RunOptions;
use super::prepared::{Prepared, refused};
use super::publish::{Publication, publisher};

/// What is still to do after the end of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Due {
    /// The version of the format.
    schema: u32,
    /// Whether there are to be reports.
    reports: bool,
    /// Where they were asked for; otherwise they are with the files of the run.
    report_dir: Option<PathBuf>,
}

/// The version of the format.
const SCHEMA: u32 = 1;

/// Writes down, before a run begins or goes on, what is to be done after its end.
pub(crate) fn begin(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> io::Result<()> {
    let report_dir = options.report_dir.as_deref().map(|directory| session.path(directory));
    let due = Due { schema: SCHEMA, reports: options.is_published(), report_dir };
    fault::write(1)?;
    fs_err::write(files.unreported(), serde_json::to_vec(&due)?)?;
    fault::point();
    Ok(())
}

/// Says that everything is done.
pub(crate) fn end(files: &RunFiles) {
    fault::point();
    let _absent = fs_err::remove_file(files.unreported());
}

/// Tells whether a run ended, and something of what follows was not done.
pub(crate) fn is_due(run: &KnownRun) -> bool {
    let has_ended = matches!(run.status, Status::Ended(_) | Status::Unsaved) && run.ends.start.is_some();
    let is_in_its_place = run.status.is_resumable() || run.files.is_archived();
    has_ended && (run.files.unreported().exists() || !is_in_its_place)
}

/// A run for which everything is done.
pub(crate) struct Finished {
    /// Its files, where they are now.
    pub(crate) files: RunFiles,
    /// How it ended.
    pub(crate) complete: LoopComplete,
}

/// Does what was not done after the end of a run, and says so. With options, those are told who would have
/// been; without, there are the files alone.
pub(crate) fn finish(
    run: &KnownRun,
    options: Option<&RunOptions>,
    session: &Session<'_>,
) -> Result<Finished, Error> {
    let (Some((_, began)), Some(complete)) = (&run.ends.start, &run.ends.complete) else {
        return Err(Error::refused(format!("the run {} has not ended", run.files.instance())));
    };
    let claim = claimed(run, began, session)?;
    let files = moved(run, complete, session);
    let due = due(&files);
    let mut material = Material::find(&files, began, session);
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
        reported.report_dir = reported.report_dir.or_else(|| due.and_then(|due| due.report_dir));
        let (directory, whole) = report(&files, began, (&reported, options.is_some()), material, session);
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

/// Takes the run for this process, which claims no path: nothing is run.
fn claimed(run: &KnownRun, began: &LoopStart, session: &Session<'_>) -> Result<Claim, Error> {
    let loops = run.files.loops();
    let tree = ScopePath::from(loops.parent().unwrap_or(loops).to_string_lossy().into_owned());
    let territory = Territory { tree, paths: Vec::new() };
    let now = Clock::start().now();
    let wanted = super::claim::wanted(&run.files, &began.r#loop, &territory, session, now);
    let running = RunFiles::running(loops);
    let failed = |error: io::Error| Error::failed("cannot finish the run", &error);
    fs_err::create_dir_all(&running).map_err(failed)?;
    match claim::take(&running, wanted).map_err(failed)? {
        Taken::Held(claim) => Ok(claim),
        Taken::Queued(_) | Taken::Refused(_) | Taken::Circle(_) | Taken::Runs(_) => {
            let message = format!("another process finishes the run {}", run.files.instance());
            Err(Error::refused(message).of_kind(Kind::Locked).with_hint("try again when it is done"))
        }
    }
}

/// Moves the files of a run with nothing left to resume to the history, if they are not there.
fn moved(run: &KnownRun, complete: &LoopComplete, session: &Session<'_>) -> RunFiles {
    let archived = run.files.archived();
    // Another process may have moved them since they were seen.
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

fn due(files: &RunFiles) -> Option<Due> {
    let text = match fs_err::read(files.unreported()) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(_) => Vec::new(),
    };
    // One that cannot be read was cut short: reports that nobody wanted do no harm.
    Some(serde_json::from_slice(&text).unwrap_or(Due { schema: SCHEMA, reports: true, report_dir: None }))
}

/// Makes the reports. Returns where they are, and whether they are whole.
fn report(
    files: &RunFiles,
    began: &LoopStart,
    (options, is_told): (&RunOptions, bool),
    material: Material,
    session: &Session<'_>,
) -> (PathBuf, bool) {
    let Material { root, loops } = material;
    let bundler = match &loops {
        Ok((prepared, territory)) => Some(Bundler::new(prepared, territory, session)),
        Err(why) => {
            session.talk.warning(&format!("there is no bundle: {why}"));
            None
        }
    };
    let provider = publisher(options).unwrap_or_else(|| Provider::detect(&|_| None));
    let mut publication =
        Publication::new(options, provider, (&root, &began.r#loop), files, bundler, session);
    let directory = publication.directory(files);
    if is_told {
        publication.announce(session);
        publication.begin(options, began.r#loop.as_str(), session);
    }
    let published = publication.publish(files, None, session);
    for warning in &published.warnings {
        session.talk.warning(warning);
    }
    (directory, published.is_whole)
}

/// What a run was made from, as far as it is still there.
struct Material {
    /// The directory in which it worked.
    root: PathBuf,
    /// Its loops and its scope, or why they cannot be read.
    loops: Result<(Prepared, Territory), String>,
}

impl Material {
    fn find(files: &RunFiles, began: &LoopStart, session: &Session<'_>) -> Self {
        let home = files.loops().parent().unwrap_or(files.loops());
        let worktree = files.worktree();
        let root = if worktree.is_dir() { worktree } else { home.to_owned() };
        let loops = || {
            let located = load::find(&began.source.file, home).map_err(|error| refused(&error))?;
            let mut prepared = session.at(home).prepare(located)?;
            prepared.work_in(root.clone());
            let territory = super::claim::territory(&prepared, &began.context, session, &session.redactor)?;
            Ok((prepared, territory))
        };
        let loops = loops().map_err(|error: Error| error.message().to_owned());
        Self { root, loops }
    }
}

/// Brings `state.json` to where the journal ends, when the process died between the two. One that cannot be made again is
/// removed: it would say that the run goes on.
fn keep_state(run: &KnownRun, material: &mut Material, session: &Session<'_>) {
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

/// Folds the journal to what `state.json` says at its end.
fn state(
    run: &KnownRun,
    (prepared, territory): &mut (Prepared, Territory),
    session: &Session<'_>,
) -> Option<Snapshot> {
    let mut folded = fold(&run.files, prepared, false, &mut Sinks::default()).ok()?;
    let level = folded.left.take_outermost()?;
    let event = level.past.start().clone();
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
