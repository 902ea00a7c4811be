//! Keeps the history of a maintain loop in CI: reads the earlier nights at the start, and adds this one for the next.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::explanation::Explanation;
use crate::base::name::LoopName;
use crate::base::sum::Sum;
use crate::base::text::{head, one_line};
use crate::base::time::Timestamp;
use crate::bundle::earlier_report;
use crate::ci::Provider;
use crate::context::error::Kind;
use crate::context::options::{BeginOptions, RunOptions};
use crate::context::{Session, key_of_run};
use crate::engine::night::Night;
use crate::files::replace::replace;
use crate::forge::github::artifacts::{RunsMeant, Series};
use crate::forge::github::workflow_event::workflow_file;
use crate::forge::github::workflow_job::WorkflowJob;
use crate::journal::files::RunFiles;
use crate::report::digest::Digest;
use crate::report::nights::{FILE, History, MAX_FILE, of};
use crate::session::read::fetch::{ArtifactRequest, Local, artifact};

/// How often a scheduled job is expected to run, unless `--every` says otherwise.
const DAY: Duration = Duration::from_hours(24);

/// The digits that tell the series of nights on one machine apart.
const SERIES: usize = 8;

/// What is known when a night begins.
#[derive(Default)]
pub(crate) struct EarlierNights {
    /// The nights before, the oldest first.
    pub(crate) nights: Vec<Night>,
    /// Warnings about them, for the report.
    pub(crate) warnings: Vec<String>,
}

/// Warns of options about nights that have no effect on this run.
pub(crate) fn warn_of_no_effect(options: &BeginOptions, session: &Session<'_>) {
    for (is_given, option) in [(options.previous.is_some(), "previous"), (options.every.is_some(), "every")] {
        if is_given {
            session
                .talk
                .warning(&format!("`--{option}` has no effect: only a maintain loop in CI has nights"));
        }
    }
}

/// Finds the earlier nights at the path or in the artifact that the command line names. If it does not exist,
/// this is the first night. Neither that nor any other failure keeps the loop from running.
pub(crate) fn previous(options: &BeginOptions, name: &LoopName, session: &Session<'_>) -> Option<Local> {
    let text = options.previous.as_deref()?;
    let Some(what) = artifact(text) else { return Some(Local::path(text, session)) };
    let allow_untrusted = options.run.allow_untrusted;
    let key = key_of_run::of_run(&options.run, &name.file_stem(), session);
    let series = Some(series(session));
    let runs = RunsMeant { series, ..RunsMeant::of_loop(Some(&name.file_stem()), key) };
    let asked = ArtifactRequest { what, run: None, repository: None, runs, allow_untrusted, session };
    match asked.local() {
        Ok(local) => Some(local),
        Err(error) if error.kind() == Kind::Absent => {
            session.talk.note(&format!("{}: this is the first night", error.message()));
            None
        }
        Err(error) => {
            session.talk.warning(&format!("the nights before this one are not known: {}", error.message()));
            None
        }
    }
}

/// Returns the runs among which this one has its place.
fn series(session: &Session<'_>) -> Series {
    let env = &session.env.lookup();
    let (workflow, event) = (workflow_file(env), WorkflowJob::read(env).event_name);
    Series::new(workflow.as_deref(), event.as_deref().unwrap_or(""))
}

/// Returns where this machine keeps the nights of the series that a run of a job belongs to.
pub(crate) fn kept(files: &RunFiles, options: &RunOptions, session: &Session<'_>) -> PathBuf {
    let job = Provider::detect(&session.env.lookup()).job().id;
    let key = job.and_then(|_| key_of_run::of_run(options, files.stem(), session));
    let series = key.map(|key| {
        let Series { workflow, occasion } = series(session);
        let whole = format!("{}\0{occasion}\0{key}", workflow.unwrap_or_default());
        head(&Sum::of(whole.as_bytes()).to_string(), SERIES).to_owned()
    });
    files.nights(series.as_deref())
}

/// Returns how often a night is due, if that is known.
pub(crate) fn due(options: &BeginOptions, session: &Session<'_>) -> Option<Duration> {
    let is_scheduled = WorkflowJob::read(&session.env.lookup()).event_name.as_deref() == Some("schedule");
    options.every.or(is_scheduled.then_some(DAY))
}

/// Reads the earlier nights from where the caller says, or else from what this machine kept. A failure
/// does not keep the loop from running.
pub(crate) fn before(
    previous: Option<&Local>,
    every: Option<Duration>,
    kept: &Path,
    name: &LoopName,
    now: Timestamp,
    session: &Session<'_>,
) -> EarlierNights {
    let path = previous.map_or(kept, |previous| previous.path.as_path());
    let history = match read(path, name) {
        Ok(Some(history)) => history,
        Ok(None) => {
            if previous.is_some() {
                session
                    .talk
                    .note(&format!("there is no {FILE} in {}: this is the first night", path.display()));
            }
            return EarlierNights::default();
        }
        Err(why) => {
            let why = one_line(why.as_str(), 300);
            let warning = format!("the nights before this one are not known: {}: {why}", path.display());
            return EarlierNights { nights: Vec::new(), warnings: vec![warning] };
        }
    };
    let missed = every.and_then(|every| history.missed(every, now));
    EarlierNights { nights: history.nights().to_vec(), warnings: missed.into_iter().collect() }
}

/// Reads the nights of a loop from a path on this machine: the file itself, or a report directory, a bundle or an
/// artifact that has it. Returns nothing if it has no such file.
pub(crate) fn read(path: &Path, name: &LoopName) -> Result<Option<History>, Explanation> {
    let bytes = earlier_report::read(path, FILE, MAX_FILE)?;
    let history = bytes.map(|bytes| History::read(&bytes, name)).transpose();
    history.map_err(Explanation::from)
}

/// Keeps the nights up to this one among the reports, and here for a machine that stays. Returns what could not be
/// kept.
pub(crate) fn keep(digest: &Digest, reports: &Path, here: &Path) -> Vec<String> {
    let (Some(history), Some(start)) = (of(digest), digest.start()) else { return Vec::new() };
    let name = &start.r#loop;
    // Another run may have added a night since this one began.
    let kept = read(here, name).ok().flatten();
    let kept = kept.iter().flat_map(History::nights);
    let all = history.nights().iter().chain(kept).chain(history.nights().last());
    let all = History::new(name.clone(), all.cloned());
    // Both are tried: a runner that is thrown away leaves only its reports, and a machine that stays reads its own file.
    let written = [write(&reports.join(FILE), &history), write(here, &all)];
    let failed = written.into_iter().filter_map(Result::err);
    failed.map(|error| format!("the next night will not know of this one: {error}")).collect()
}

/// Writes the file, and the directory around it.
fn write(path: &Path, history: &History) -> io::Result<()> {
    fs_err::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    replace(path, history.to_json())
}
