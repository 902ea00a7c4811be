//! A run that ended, and whose process died before everything that follows from an end: its reports are made and its
//! files move to the history, by the next command that meets it.
//!
//! A file beside the journal says what is still to do. It is there from the beginning of a run until all of it is done.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::base::territory::{ScopePath, Territory};
use crate::ci::Provider;
use crate::cli::args::Manner;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::definition::load;
use crate::engine::event::{LoopComplete, LoopStart};
use crate::engine::{Engine, Start};
use crate::journal::claim::{self, Claim, Taken};
use crate::journal::fault;
use crate::journal::files::RunFiles;
use crate::journal::known::{KnownRun, Status, state_now};
use crate::journal::reader::read_whole;
use crate::journal::snapshot::{self, Snapshot};
use crate::journal::streams::Streams;
use crate::machine::Budget;
use crate::run::clock::Clock;
use crate::run::replay::{Known, Replay};

use super::bundle::Bundler;
use super::prepare::{Prepared, prepare, refused};
use super::publish::Publication;
use super::run::{Face, absolute, is_published, publisher, surroundings};

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
pub(super) fn begin(files: &RunFiles, manner: &Manner, face: &Face) -> io::Result<()> {
    let report_dir = manner.report_dir.as_deref().map(absolute);
    let due = Due { schema: SCHEMA, reports: is_published(manner, face), report_dir };
    fault::write(1)?;
    fs_err::write(files.unreported(), serde_json::to_vec(&due)?)?;
    fault::point();
    Ok(())
}

/// Says that everything is done.
pub(super) fn end(files: &RunFiles) {
    fault::point();
    let _absent = fs_err::remove_file(files.unreported());
}

/// Tells whether a run ended, and something of what follows was not done.
pub(super) fn is_due(run: &KnownRun) -> bool {
    let has_ended = matches!(run.status, Status::Ended(_) | Status::Unsaved) && run.ends.start.is_some();
    let is_in_its_place = run.status.is_resumable() || run.files.is_archived();
    has_ended && (run.files.unreported().exists() || !is_in_its_place)
}

/// A run for which everything is done.
pub(super) struct Finished {
    /// Its files, where they are now.
    pub(super) files: RunFiles,
    /// How it ended.
    pub(super) complete: LoopComplete,
}

/// Does what was not done after the end of a run, and says so. With a manner and a face, those are told who would have
/// been; without, there are the files alone.
pub(super) fn finish(
    run: &KnownRun,
    telling: Option<(&Manner, &Face)>,
    env: &Env,
    output: &Output,
) -> Result<Finished, CliError> {
    let (Some((_, began)), Some(complete)) = (&run.ends.start, &run.ends.complete) else {
        return Err(CliError::invalid(format!("the run {} has not ended", run.files.instance())));
    };
    let claim = claimed(run, began, env)?;
    let files = moved(run, complete, output);
    let due = due(&files);
    let mut material = Material::find(&files, began, env, output);
    keep_state(&KnownRun { files: files.clone(), ..run.clone() }, &mut material, output);
    let mut done = Vec::new();
    if !run.files.is_archived() && files.is_archived() {
        done.push("its files are in the history now".to_owned());
    }
    let nobody = Manner::default();
    let (manner, face) = telling.unwrap_or((&nobody, &Face::Person));
    let is_wanted = due.as_ref().is_some_and(|due| due.reports) || is_published(manner, face);
    let mut is_whole = true;
    if due.is_some() && is_wanted {
        let asked = manner.report_dir.as_deref().map(absolute);
        let mut manner = manner.clone();
        manner.report_dir = asked.or_else(|| due.and_then(|due| due.report_dir));
        manner.report.uploading.no_upload |= telling.is_none();
        let told = (&manner, telling.map(|(_, face)| face));
        let (directory, whole) = report(&files, began, told, material, (env, output));
        is_whole = whole;
        done.push(format!("its reports are in {}", directory.display()));
    }
    if is_whole {
        end(&files);
    }
    drop(claim);
    let what = if done.is_empty() { "nothing was left to do".to_owned() } else { done.join(", and ") };
    let (instance, outcome) = (files.instance(), complete.outcome.word());
    output.talk(&format!("the run {instance} had ended ({outcome}), and its process was gone: {what}\n"));
    Ok(Finished { files, complete: complete.clone() })
}

/// Takes the run for this process, which claims no path: nothing is run.
fn claimed(run: &KnownRun, began: &LoopStart, env: &Env) -> Result<Claim, CliError> {
    let loops = run.files.loops();
    let tree = ScopePath::from(loops.parent().unwrap_or(loops).to_string_lossy().into_owned());
    let territory = Territory { tree, paths: Vec::new() };
    let now = Clock::start().now();
    let wanted = super::claim::wanted(&run.files, &began.r#loop, &territory, env, now);
    let running = RunFiles::running(loops);
    let failed = |error: io::Error| CliError::failed("cannot finish the run", &error);
    fs_err::create_dir_all(&running).map_err(failed)?;
    match claim::take(&running, wanted).map_err(failed)? {
        Taken::Held(claim) => Ok(claim),
        Taken::Queued(_) | Taken::Refused(_) | Taken::Circle(_) | Taken::Runs(_) => {
            let message = format!("another process finishes the run {}", run.files.instance());
            Err(CliError::invalid(message).code(exit::LOCKED).help("try again when it is done"))
        }
    }
}

/// Moves the files of a run with nothing left to resume to the history, if they are not there.
fn moved(run: &KnownRun, complete: &LoopComplete, output: &Output) -> RunFiles {
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
        output.warning(&format!("the files of the run stay in .running: {error}"));
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
    (manner, face): (&Manner, Option<&Face>),
    material: Material,
    (env, output): (&Env, &Output),
) -> (PathBuf, bool) {
    let Material { root, loops } = material;
    let bundler = match &loops {
        Ok((prepared, territory)) => Some(Bundler::new(env, prepared, territory, &output.redactor)),
        Err(why) => {
            output.warning(&format!("there is no bundle: {why}"));
            None
        }
    };
    let provider = face.and_then(|face| publisher(face, manner));
    let provider = provider.unwrap_or_else(|| Provider::detect(&|_| None));
    let mut publication =
        Publication::new(manner, provider, (&root, &began.r#loop), files, bundler, (env, output));
    let directory = publication.directory(files);
    if face.is_some() {
        publication.announce(output);
        publication.begin(&manner.report, env, began.r#loop.as_str(), output);
    }
    let published = publication.publish(files, None);
    for warning in &published.warnings {
        output.warning(warning);
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
    fn find(files: &RunFiles, began: &LoopStart, env: &Env, output: &Output) -> Self {
        let home = files.loops().parent().unwrap_or(files.loops());
        let worktree = files.worktree();
        let root = if worktree.is_dir() { worktree } else { home.to_owned() };
        let loops = || {
            let located = load::find(&began.source.file, home).map_err(|error| refused(&error))?;
            let mut prepared = prepare(located, |_| {}, output)?;
            root.clone_into(&mut prepared.located.root);
            let territory = super::claim::territory(&prepared, &began.context, env, &output.redactor)?;
            Ok((prepared, territory))
        };
        let loops = loops().map_err(|error: CliError| error.message().to_owned());
        Self { root, loops }
    }
}

/// Brings `state.json` to where the journal ends, when the process died between the two. One that cannot be made again is
/// removed: it would say that the run goes on.
fn keep_state(run: &KnownRun, material: &mut Material, output: &Output) {
    if state_now(run).is_some() {
        return;
    }
    let content = material.loops.as_mut().ok().and_then(|loops| state(run, loops, output));
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
    output: &Output,
) -> Option<Snapshot> {
    let Prepared { machine, loaded, library, .. } = prepared;
    let outermost = Known { machine: Rc::new(machine.clone()), digest: loaded.digest.clone() };
    let mut find = |name: &str| library.find(name);
    let mut replay = Replay::new(outermost, &mut find);
    let mut is_other = false;
    let whole = read_whole(&run.files.journal(), |stamped| {
        is_other = is_other || replay.event(stamped).is_err();
    });
    let last_seq = whole.ok()?.last_seq;
    is_other = is_other || !replay.changed().is_empty();
    let mut streams = Streams::new(run.files.streams());
    let left = replay.finish(|stored, stream| streams.read(stored, stream));
    let level = left.ok()?.take_outermost()?;
    let event = level.past.start().clone();
    if is_other || event.definition_sha256 != loaded.digest {
        return None;
    }
    let start = Start {
        context: event.context.clone(),
        event,
        at: level.at,
        key: run.files.instance().to_owned(),
        env: BTreeMap::new(),
        run_dir: String::new(),
        deadline: None,
        timeout: None,
        budget: Budget::default(),
        on_handoff: None,
        captured: IndexMap::new(),
    };
    let engine = Engine::resume(machine, start, level.past, None, Duration::ZERO);
    let (now, _) = run.ends.last?;
    let around = surroundings(territory);
    Snapshot::of(&engine, &around, now, last_seq, &output.redactor).ok()
}
