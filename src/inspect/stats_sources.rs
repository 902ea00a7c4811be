//! Finds the runs that statistics are about, here or where somebody has put them, and reads each of them once.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::run_files::{RunFilesFound, is_journal};
use crate::base::name::LoopName;
use crate::base::sum::Sum;
use crate::base::text::one_line;
use crate::base::time::{Since, Timestamp};
use crate::bundle::names;
use crate::bundle::open::{self, Bundle, LIMITS, OpenError};
use crate::context::error::{Error, Kind};
use crate::context::options::RunOptions;
use crate::context::{Session, key_of_run};
use crate::engine::event::SCHEMA;
use crate::files::{read, transient};
use crate::forge::github::artifacts::RunsMeant;
use crate::journal::known::KnownRun;
use crate::journal::{journal_ends, reader};
use crate::process::clock::Clock;
use crate::report::run_stats::{RunFold, RunNumbers, Stats};
use crate::session::end::killed;
use crate::session::read::fetch::{ArtifactRequest, artifact};
use crate::session::read::listed_runs::{Places, known_as};

/// The largest result of a merge that is read.
const MOST_RESULT: u64 = 64 * read::MIB;

/// Which runs are meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunsAsked {
    /// Those of this loop, or this run.
    pub(crate) name: Option<String>,
    /// Those that began since then.
    pub(crate) since: Option<Since>,
    /// Those in this directory or artifact, and not those of this checkout.
    pub(crate) from: Option<String>,
    /// The repository of the artifact.
    pub(crate) repository: Option<String>,
}

impl Session<'_> {
    /// Reads what runs have in common. What cannot be read is a warning.
    pub(crate) fn stats(&self, asked: &RunsAsked) -> Result<Stats, Error> {
        let since = asked.since.map(|since| since.from(Clock::start().now()));
        let mut stats = Stats::default();
        let mut add = |run: &RunNumbers| {
            if since.is_none_or(|since| run.began >= Some(since)) {
                stats.add(run);
            }
        };
        self.each_run(asked, &mut add)?;
        if let Some(from) = asked.from.as_ref().filter(|from| artifact(from).is_none()) {
            for item in reused_items(&self.path(Path::new(from))) {
                let is_wanted = asked.name.as_ref().is_none_or(|name| *name == item.loop_name);
                if is_wanted && since.is_none_or(|since| item.began >= Some(since)) {
                    stats.add_reused_item(&item.loop_name, item.saved);
                }
            }
        }
        if stats.is_empty() {
            let of = asked.name.as_ref().map_or_else(String::new, |name| format!(" of `{name}`"));
            let since = since.map_or_else(String::new, |since| format!(" since {since}"));
            let place = asked.from.as_ref().map_or_else(String::new, |from| format!(" in {from}"));
            let hint = match asked.from {
                Some(_) => {
                    "runs are bundles (`<run>.llz`) or journals (`events.jsonl`), as they lie in the report directory of a run"
                }
                None => "`ll-loop history` lists the runs",
            };
            let nothing = format!("there is no run{of}{place} that has ended{since} and can be read");
            return Err(Error::refused(nothing).with_hint(hint));
        }
        Ok(stats)
    }

    /// Reads the numbers of each run. What cannot be read is a warning.
    ///
    /// # Errors
    /// The runs that are asked for are not there.
    pub(super) fn each_run(&self, asked: &RunsAsked, add: &mut impl FnMut(&RunNumbers)) -> Result<(), Error> {
        if let Some(from) = &asked.from {
            return brought(from, asked, add, self);
        }
        let since = asked.since.map(|since| since.from(Clock::start().now()));
        here(asked, since, add, self)
    }
}

/// Reads the runs of this checkout that are not going on.
fn here(
    asked: &RunsAsked,
    since: Option<Timestamp>,
    add: &mut impl FnMut(&RunNumbers),
    session: &Session<'_>,
) -> Result<(), Error> {
    let places = Places::of(session);
    let mut runs = places.all()?;
    runs.retain(|run| !run.status.is_live());
    if let Some(name) = &asked.name {
        let asked = places.asked(name);
        runs.retain(|run| asked.is(run));
        if runs.is_empty() {
            return Err(asked.nothing("no run of", "`ll-loop history` lists the runs"));
        }
    }
    // One that was over by then is not read.
    let is_over = |run: &KnownRun, since| run.ends.last.is_some_and(|(last, _)| last < since);
    runs.retain(|run| !since.is_some_and(|since| is_over(run, since)));
    for run in &runs {
        match numbers(&run.files.journal(), killed::is_killed(run)) {
            Ok(mut numbers) => {
                // Journals of earlier versions have the name that is written in the loop file, which users do not know.
                numbers.loop_name = known_as(run);
                add(&numbers);
            }
            Err(error) => left_out(run.files.instance(), &error.sentence(), session),
        }
    }
    Ok(())
}

/// Reads the runs in a directory, a file or an artifact. One that is there several times counts once, as it was last.
fn brought(
    from: &str,
    asked: &RunsAsked,
    add: &mut impl FnMut(&RunNumbers),
    session: &Session<'_>,
) -> Result<(), Error> {
    let fetched = artifact(from).map(|what| {
        let loop_name = asked.name.as_deref().and_then(|name| LoopName::parse(name).ok());
        let stem = loop_name.map(|name| name.file_stem());
        let key = key_of_run::wanted(&RunOptions::default(), stem.as_deref(), session);
        let runs = RunsMeant::of_loop(stem.as_deref(), key);
        let repository = asked.repository.as_deref();
        ArtifactRequest { what, run: None, repository, runs, allow_untrusted: false, session }.local()
    });
    let fetched = fetched.transpose()?;
    let path = fetched.as_ref().map_or_else(|| session.path(Path::new(from)), |local| local.path.clone());
    let unusable = |error: io::Error| {
        Error::failed(format!("cannot read the runs in {from}"), &error).of_kind(Kind::Refused)
    };
    let found = RunFilesFound::below(&path).map_err(unusable)?;
    if let Some(unread) = found.unread {
        session.talk.warning(&unread.sentence(from));
    }
    let mut runs: BTreeMap<String, ForeignRun> = BTreeMap::new();
    for file in &found.files {
        match ForeignRun::open(file) {
            Ok(run) if run.is_wanted(asked.name.as_deref()) => match runs.get(&run.id) {
                // A run may be there as a checkpoint as well, which is an earlier part of the same journal.
                Some(known) if known.last_seq >= run.last_seq => {}
                Some(_) | None => drop(runs.insert(run.id.clone(), run)),
            },
            Ok(_) => {}
            Err(error) => {
                let shown =
                    fetched.as_ref().map_or_else(|| file.display().to_string(), |local| local.shown.clone());
                left_out(&shown, &error.sentence(), session);
            }
        }
    }
    // Only when all files are read: a later one may know more of the same run.
    for run in runs.values() {
        add(&run.numbers);
    }
    Ok(())
}

/// An item that a plan left out, because an earlier run stood for it.
struct LeftOutItem {
    loop_name: String,
    /// How long that run took.
    saved: Duration,
    /// When the merge of the plan began.
    began: Option<Timestamp>,
}

/// Reads the results of merges below a directory. The same one may be there several times; whatever is none is passed over.
fn reused_items(from: &Path) -> Vec<LeftOutItem> {
    let results = RunFilesFound::below(from).map_or_else(|_| Vec::new(), |found| found.results);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for text in results.iter().filter_map(|result| read::text(result, MOST_RESULT).ok()) {
        // Results of merges have no id, so that copies of one are known by their bytes.
        if seen.insert(Sum::of(text.as_bytes())) {
            all.extend(serde_json::from_str::<Value>(&text).iter().flat_map(of_merge));
        }
    }
    all
}

/// Returns the items that the plan of a merge left out.
fn of_merge(result: &Value) -> Vec<LeftOutItem> {
    let items = result["items"].as_array().map_or(&[][..], Vec::as_slice);
    let reused = items.iter().filter(|item| item["standing"] == "reused");
    let item = |item: &Value| {
        Some(LeftOutItem {
            loop_name: LoopName::parse(item["loop"].as_str()?).ok()?.to_string(),
            saved: Duration::from_millis(item["reused"]["duration_ms"].as_u64()?),
            began: serde_json::from_value(result["started_at"].clone()).ok(),
        })
    };
    reused.filter_map(item).collect()
}

fn left_out(what: &str, why: &str, session: &Session<'_>) {
    session.talk.warning(&format!("{} is left out: {}", one_line(what, 400), one_line(why, 400)));
}

/// A run from elsewhere. All that it says is a claim of whoever wrote it.
struct ForeignRun {
    id: String,
    last_seq: u64,
    numbers: RunNumbers,
}

impl ForeignRun {
    fn open(file: &Path) -> Result<Self, StatsError> {
        if is_journal(file) {
            return Self::read(file);
        }
        let (found, unpacked) = (transient::directory("")?, transient::directory("")?);
        let bundle = open::locate(file, found.path(), LIMITS)?;
        Bundle::open(&bundle, LIMITS)?.extract(unpacked.path())?;
        Self::read(&unpacked.path().join(names::JOURNAL))
    }

    fn read(journal: &Path) -> Result<Self, StatsError> {
        // Whether the process of a run from elsewhere still runs cannot be known, so that it counts as incomplete.
        let numbers = numbers(journal, false)?;
        let last_seq = journal_ends::ends(journal)?.last.map_or(0, |(_, seq)| seq);
        Ok(Self { id: numbers.run_id.clone(), last_seq, numbers })
    }

    fn is_wanted(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| name == self.numbers.loop_name || name == self.id)
    }
}

/// Why a run has no numbers.
#[derive(Debug, thiserror::Error)]
enum StatsError {
    #[error(transparent)]
    Journal(#[from] reader::ReadError),
    #[error("its journal has no beginning")]
    Headless,
    #[error("a newer version of ll-loop wrote its journal (schema {0}; this one knows {SCHEMA})")]
    Newer(u32),
    #[error(transparent)]
    Bundle(#[from] OpenError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl StatsError {
    /// Says it with its cause, which has the place in the line.
    fn sentence(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

/// Reads the numbers of a run.
fn numbers(journal: &Path, is_killed: bool) -> Result<RunNumbers, StatsError> {
    let mut fold = RunFold::default();
    reader::read(journal, |event| fold.event(&event))?;
    if let Some(schema) = fold.newer_schema() {
        return Err(StatsError::Newer(schema));
    }
    if is_killed {
        fold.was_killed();
    }
    fold.numbers().ok_or(StatsError::Headless)
}
