//! Plays the journals of runs on the loop as it is now: which of them would go another way, and which could not be resumed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value};

use super::asked::GapReason;
use super::expected::path;
use super::old_run_report::{OldRunReport, OldRunResult};
use super::play::{MOST_TURNS, Play, Played, PlayedEnd, play};
use super::prepare::RUN_DIR;
use super::recorded_run::{JournalScript, RecordedRun, RecordedWork};
use super::tested_loop::LoopUnderTest;
use crate::base::explanation::Explanation;
use crate::bundle::EXTENSION;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::engine::Start;
use crate::engine::event::{Event, LoopStart, Stamped};
use crate::engine::past::Standing;
use crate::evaluate::observation::{StoredText, Stream, Text};
use crate::files::file_name::file_name;
use crate::forge::github::artifacts::RunsMeant;
use crate::journal::reader;
use crate::journal::streams::Streams;
use crate::machine::provided::Provided;
use crate::machine::{Action, Machine, Target, run_variables};
use crate::run::replay::{KnownMachine, Replay};
use crate::session::prepare::variables::given_again;
use crate::session::read::fetch::{ArtifactRequest, artifact};
use crate::session::read::listed_runs::Places;
use crate::session::read::run_ref;

/// The word that means all runs of this checkout.
const HISTORY: &str = "history";

/// How the names of journals end.
const JOURNAL: &str = ".events.jsonl";

/// How deep directories of journals may be nested.
const DEEPEST: usize = 6;

/// A run that was found.
pub(crate) struct OldRun {
    /// What people know it by.
    pub(crate) name: String,
    pub(crate) events: Vec<Stamped>,
    pub(crate) recorded: RecordedRun,
}

/// Finds the runs that are meant: all of this checkout, one by its id, those in a directory, a bundle, or an artifact.
///
/// # Errors
/// There are none, or one cannot be read.
pub(crate) fn find(which: &str, session: &Session<'_>) -> Result<Vec<OldRun>, Error> {
    if which == HISTORY {
        let all = Places::of(session).all()?;
        // Of many journals one that cannot be read is left out; one that is named alone is an error.
        let runs = all.iter().filter_map(|run| of_journal(&run.files.journal(), &run.files.streams()).ok());
        return some(runs.collect(), which);
    }
    if let Some(what) = artifact(which) {
        let runs = RunsMeant::of_loop(None, None);
        let request =
            ArtifactRequest { what, run: None, repository: None, runs, allow_untrusted: false, session };
        let local = request.local()?;
        return Ok(vec![of_bundle(&local.path, which)?]);
    }
    let path = session.path(Path::new(which));
    if path.is_dir() {
        let mut found = Vec::new();
        walk(&path, 0, &mut found);
        // File systems list a directory in any order, and the report has one.
        found.sort();
        let read = |path: &PathBuf| of_file(path).ok();
        return some(found.iter().filter_map(read).collect(), which);
    }
    if path.is_file() {
        return Ok(vec![of_file(&path)?]);
    }
    let run = run_ref::here(Some(which), session)?;
    Ok(vec![of_journal(&run.files.journal(), &run.files.streams())?])
}

fn some(runs: Vec<OldRun>, which: &str) -> Result<Vec<OldRun>, Error> {
    if runs.is_empty() {
        let error = Error::refused(format!("there are no runs in `{which}`"));
        return Err(error.with_hint("name `history`, a run, a bundle, or a directory with journals"));
    }
    Ok(runs)
}

fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if depth > DEEPEST {
        return;
    }
    for entry in fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        let name = file_name(&path);
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, depth + 1, found),
            Ok(kind) if kind.is_file() && (is_bundle(&path) || name.ends_with(JOURNAL)) => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

fn is_bundle(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == EXTENSION)
}

fn of_file(path: &Path) -> Result<OldRun, Error> {
    if is_bundle(path) {
        return of_bundle(path, &path.display().to_string());
    }
    let name = file_name(path);
    let stem = name.strip_suffix(JOURNAL).unwrap_or(&name);
    of_journal(path, &path.with_file_name(format!("{stem}.streams")))
}

fn of_bundle(path: &Path, shown: &str) -> Result<OldRun, Error> {
    let opened =
        OpenedBundle::open(path).map_err(|error| Error::failed(format!("cannot open {shown}"), &error))?;
    let journal = opened.journal();
    let streams = journal.with_file_name("streams");
    of_journal(&journal, &streams)
}

/// Reads a journal, with what stands beside it as far as that is there.
fn of_journal(journal: &Path, streams: &Path) -> Result<OldRun, Error> {
    let mut events = Vec::new();
    reader::read(journal, |event| events.push(event))
        .map_err(|error| Error::failed(format!("cannot read {}", journal.display()), &error))?;
    let mut streams = Streams::new(streams.to_owned());
    for stamped in &mut events {
        let seq = stamped.seq;
        if let Event::ActionComplete(complete) = &mut stamped.event {
            *complete = complete.clone().numbered(seq);
            restore(&mut complete.seen.stdout, Stream::Stdout, &mut streams);
            restore(&mut complete.seen.stderr, Stream::Stderr, &mut streams);
        }
    }
    let none = || Error::refused(format!("the journal {} has no beginning", journal.display()));
    let recorded = RecordedRun::of(&events).ok_or_else(none)?;
    Ok(OldRun { name: recorded.start.run_id.clone(), events, recorded })
}

fn restore(text: &mut Text, stream: Stream, streams: &mut Streams) {
    // Where the streams are gone, the text stays marked as kept elsewhere, and `doubt` says so.
    if let Some(stored) = text.elsewhere()
        && let Ok(whole) = streams.read(stored, stream)
    {
        text.restore(whole);
    }
}

/// Plays a run on the loop as it is now.
pub(crate) fn check(run: &OldRun, subject: &mut LoopUnderTest, session: &Session<'_>) -> OldRunReport {
    let recorded = &run.recorded;
    let mut report = OldRunReport {
        run: run.name.clone(),
        loop_name: recorded.start.r#loop.to_string(),
        is_left: recorded.is_left(),
        result: OldRunResult::Same,
    };
    // A run that is over is never resumed, so that it could not be is no loss.
    if recorded.is_left()
        && let Err(why) = variables(run, subject, session).and_then(|_| can_go_on(run, subject))
    {
        report.result = OldRunResult::NotResumable(why.into());
        return report;
    }
    let (played, script) = match again(run, subject, session) {
        Ok(played) => played,
        Err(why) => {
            report.result = OldRunResult::Unknown(why.into());
            return report;
        }
    };
    report.result = compared(run, &played, &script, &subject.own.machine);
    report
}

/// Returns the variables of a run with the loop as it is now, as a resume makes them: those that it had, where the loop is
/// the same.
fn variables(
    run: &OldRun,
    subject: &LoopUnderTest,
    session: &Session<'_>,
) -> Result<Map<String, Value>, Explanation> {
    let start = &run.recorded.start;
    if start.definition_sha256 == subject.loaded.digest {
        return Ok(start.context.clone());
    }
    let (machine, overrides) = (&subject.own.machine, &start.overrides);
    let provided = Provided::new(&subject.texts(), RUN_DIR).at_most(overrides.max_iterations);
    let given = given_again(overrides, &overrides.context, machine.input_key.as_str(), provided);
    run_variables::resolve(machine, &given, &session.env.for_templates()).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Explanation::new(errors.join("; "))
    })
}

/// Tells whether a run that was left could go on with the loop as it is now, or why not.
fn can_go_on(run: &OldRun, subject: &mut LoopUnderTest) -> Result<(), Explanation> {
    let machine = subject.own.settled(&Start::of(run.recorded.start.clone(), run.events[0].ts, ""))?;
    let known = KnownMachine { machine, digest: subject.loaded.digest.clone() };
    let library = &mut subject.library;
    let mut find =
        |name: &str, around: &LoopStart, begun: &LoopStart| library.find(name, around, &begun.context);
    let mut replay = Replay::new(known, &mut find);
    for event in &run.events {
        replay.event(event.clone())?;
    }
    // What they printed was read already, as far as it is there.
    let none = |_: StoredText, _: Stream| -> std::io::Result<std::sync::Arc<String>> {
        Ok(std::sync::Arc::default())
    };
    let left = replay.finish(none)?;
    for level in left.iter() {
        if let Standing::Lost(state) = level.standing() {
            return Err(Explanation::new(format!(
                "it stands in `{state}`, which the loop `{}` does not have any more",
                level.machine.name
            )));
        }
    }
    Ok(())
}

fn again(
    run: &OldRun,
    subject: &mut LoopUnderTest,
    session: &Session<'_>,
) -> Result<(Played, JournalScript), Explanation> {
    let recorded = &run.recorded;
    let event = LoopStart {
        definition_sha256: subject.loaded.digest.clone(),
        // The tree of that time is not here; the play puts its own in this place.
        tree: None,
        context: variables(run, subject, session)?,
        ..recorded.start.clone()
    };
    let mut start = Start::of(event, run.events[0].ts, &recorded.start.run_id);
    // As on a resume: templates see the environment of the process that goes on.
    start.env = session.env.for_templates();
    let settled = subject.own.settled(&start)?;
    let mut machine = Machine::clone(&settled);
    let overrides = &recorded.start.overrides;
    // What was said on the command line held for that run, whatever the loop says now.
    if let Some(limit) = overrides.max_iterations {
        machine.limits.iterations.limit = limit;
    }
    machine.limits.cycles = overrides.max_cycles.or(machine.limits.cycles);
    let mut script = JournalScript::new(recorded);
    let machine = Rc::new(machine);
    let played = play(Play::from_the_start(machine, start, &mut subject.library, &mut script, MOST_TURNS));
    Ok((played, script))
}

/// Compares how a run went with how it goes now.
fn compared(run: &OldRun, played: &Played, script: &JournalScript, machine: &Machine) -> OldRunResult {
    let (then, now) = (path(&run.events), path(&played.events));
    let parted = then.iter().zip(&now).position(|(one, other)| one != other);
    let at_end = || match &played.end {
        PlayedEnd::Gap(gap) if gap.why == GapReason::Parted => Some(now.len().min(then.len())),
        PlayedEnd::Complete(_) if !script.is_done() || now.len() < then.len() => Some(now.len()),
        // A run that was left could still have gone there: to go further parts only from a run that had ended.
        PlayedEnd::Complete(_) if now.len() > then.len() && !run.recorded.is_left() => Some(then.len()),
        PlayedEnd::Complete(_)
        | PlayedEnd::Gap(_)
        | PlayedEnd::Killed
        | PlayedEnd::Endless
        | PlayedEnd::NotResumable(_) => None,
    };
    let Some(at) = parted.or_else(at_end) else {
        return match &played.end {
            PlayedEnd::NotResumable(why) => OldRunResult::NotResumable(why.clone()),
            PlayedEnd::Endless => OldRunResult::Unknown("it comes to no end".to_owned()),
            // A journal that ends in the middle agrees as far as it tells.
            PlayedEnd::Complete(_) | PlayedEnd::Gap(_) | PlayedEnd::Killed => OldRunResult::Same,
        };
    };
    // Before the two are said to part: the output that decides may not be whole, and then nothing is known.
    if let Some(why) = doubt(script.current(), machine) {
        return OldRunResult::Unknown(why);
    }
    let state = |path: &[String]| path.get(at).cloned();
    // What a sub-loop would do that the journal does not tell of is on no path.
    let elsewhere = match &played.end {
        PlayedEnd::Gap(gap) if gap.why == GapReason::Parted => Some(gap.state.clone()),
        PlayedEnd::Complete(_)
        | PlayedEnd::Gap(_)
        | PlayedEnd::Killed
        | PlayedEnd::Endless
        | PlayedEnd::NotResumable(_) => None,
    };
    OldRunResult::Parts {
        step: at + 1,
        after: at.checked_sub(1).and_then(|at| then.get(at).cloned()),
        then: state(&then),
        now: state(&now).or(elsewhere),
    }
}

/// Returns why what was done last may have come to something else than the journal tells, where that decides.
fn doubt(last: Option<&RecordedWork>, machine: &Machine) -> Option<String> {
    let last = last?;
    let why = last.doubt()?;
    let state = crate::base::name::StateName::parse(last.key.split('/').next()?).ok()?;
    let Some(Target::Step(id)) = machine.find(&state) else { return None };
    let step = machine.step(id);
    // An exit code is whole in the journal, whatever was cut from the output.
    let by_code = matches!(step.evaluate, Some(crate::evaluate::Evaluate::ExitCode(_)) | None)
        && !matches!(step.action, Some(Action::Prompt(_)));
    (!by_code).then(|| format!("`{}`: {why}", last.key))
}

/// Plays all runs that are meant, of these loops where some are named.
///
/// # Errors
/// There are none, or one of the loops cannot be read.
pub(crate) fn check_all(
    which: &str,
    loops: &[String],
    session: &Session<'_>,
) -> Result<Vec<OldRunReport>, Error> {
    // By loop, so that each is read and compiled once for all of its runs.
    let mut by_loop: BTreeMap<String, Vec<OldRun>> = BTreeMap::new();
    for run in find(which, session)? {
        let start = &run.recorded.start;
        let (file, name) = (start.source.file.clone(), start.r#loop.to_string());
        let is_meant = loops.is_empty() || loops.iter().any(|meant| *meant == name || *meant == file);
        if is_meant {
            // By its file first, as two loops may have one name; where that has moved, its name may still find it.
            let is_there = session.path(Path::new(&file)).is_file();
            by_loop.entry(if is_there { file } else { name }).or_default().push(run);
        }
    }
    let mut reports = Vec::new();
    for (name, runs) in by_loop {
        match LoopUnderTest::find(&name, session) {
            Ok(mut subject) => {
                reports.extend(runs.iter().map(|run| check(run, &mut subject, session)));
            }
            Err(error) => reports.extend(runs.iter().map(|run| OldRunReport {
                run: run.name.clone(),
                loop_name: name.clone(),
                is_left: run.recorded.is_left(),
                result: OldRunResult::NotResumable(error.message().to_owned()),
            })),
        }
    }
    Ok(reports)
}
