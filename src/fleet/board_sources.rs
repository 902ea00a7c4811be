//! Reads the runs of a board: report directories, bundles, artifacts that were downloaded, or folders of them. All that they say is
//! a claim of whoever wrote them: links are not followed, and what cannot be read is a warning.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::board_rows::{FleetBoard, FleetRun};
use crate::base::text::{one_line, plural};
use crate::base::time::Timestamp;
use crate::bundle::journal_only::JournalOnly;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::engine::event::Stamped;
use crate::files::read;
use crate::inspect::run_files::{RunFilesFound, is_journal};
use crate::journal::reader;
use crate::process::clock::Clock;
use crate::report::delivery_fates::{DeliveryList, SCHEMA};
use crate::report::digest::Digest;
use crate::report::work_counts::WorkCounts;

/// The largest file that says what became of deliveries, in bytes.
const MOST_DELIVERIES: u64 = 8 << 20;

/// The most warnings about files that cannot be read.
const MOST_WARNINGS: usize = 20;

/// A place with runs, and the repository whose they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoardSource {
    /// The repository, where somebody says it.
    pub(crate) repository: Option<String>,
    /// The directory or bundle.
    pub(crate) path: PathBuf,
}

/// A run that was read, and how far its journal goes: a run that is there several times counts as it was last.
struct ReadRun {
    run: FleetRun,
    last_seq: u64,
}

/// What was read of the sources.
#[derive(Default)]
struct ReadSources {
    /// By repository and id.
    runs: BTreeMap<(String, String), ReadRun>,
    /// By repository, in small letters: the latest that was asked.
    deliveries: BTreeMap<String, DeliveryList>,
    left_out: usize,
}

impl ReadSources {
    fn keep(&mut self, read: ReadRun) {
        let key = (read.run.repository.clone(), read.run.run_id.clone());
        if self.runs.get(&key).is_none_or(|known| known.last_seq < read.last_seq) {
            self.runs.insert(key, read);
        }
    }

    fn keep_deliveries(&mut self, list: DeliveryList) {
        // GitHub does not tell capitals from small letters in the names of repositories.
        let key = list.repository.to_ascii_lowercase();
        if self.deliveries.get(&key).is_none_or(|known| known.at < list.at) {
            self.deliveries.insert(key, list);
        }
    }

    fn leave_out(&mut self, file: &Path, why: &dyn std::error::Error, session: &Session<'_>) {
        self.left_out += 1;
        if self.left_out <= MOST_WARNINGS {
            let why = one_line(&why.to_string(), 400);
            session.talk.warning(&format!("{} is left out: {why}", file.display()));
        }
    }
}

impl Session<'_> {
    /// Reads a board, and says what time it is.
    ///
    /// # Errors
    /// A source is not there, or none has a run.
    pub(crate) fn fleet(&self, sources: &[BoardSource]) -> Result<(FleetBoard, Timestamp), Error> {
        let mut all = ReadSources::default();
        for source in sources {
            let path = self.path(&source.path);
            let found = RunFilesFound::below(&path).map_err(|error| {
                let shown = format!("cannot read the runs in {}", source.path.display());
                Error::failed(shown, &error).of_kind(Kind::Refused)
            })?;
            if let Some(unread) = found.unread {
                self.talk.warning(&unread.sentence(&source.path.display().to_string()));
            }
            for file in &found.files {
                let named = source.repository.clone().unwrap_or_else(|| repository_of(&path, file));
                match read_run(file, source.repository.as_deref(), &named) {
                    Ok(Some(read)) => all.keep(read),
                    Ok(None) => {}
                    Err(why) => all.leave_out(file, &why, self),
                }
            }
            for file in &found.deliveries {
                match read_deliveries(file, source.repository.as_deref()) {
                    Ok(list) => all.keep_deliveries(list),
                    Err(why) => all.leave_out(file, &why, self),
                }
            }
        }
        if all.left_out > MOST_WARNINGS {
            self.talk.warning(&format!("{} more files are left out", all.left_out - MOST_WARNINGS));
        }
        if all.runs.is_empty() {
            let hint = "runs are bundles (`<run>.llz`) or journals (`events.jsonl`), as they lie in the report directory of a run";
            return Err(Error::refused("there is no run that can be read").with_hint(hint));
        }
        let mut board = FleetBoard::default();
        // Only now, because of each run just the copy counts that goes furthest.
        for read in all.runs.into_values() {
            board.add(read.run);
        }
        // After the runs, which say what deliveries have cost and of which loops they are.
        all.deliveries.values().for_each(|list| self.know(&mut board, list));
        Ok((board, Clock::start().now()))
    }

    /// Adds what became of the deliveries of a repository to a board.
    pub(super) fn know(&self, board: &mut FleetBoard, list: &DeliveryList) {
        let left_out = board.know(list);
        if left_out > 0 {
            let (count, repository) =
                (plural(left_out as u64, "pull request"), one_line(&list.repository, 100));
            self.talk.warning(&format!("left out of {repository}: {count} of loops without a run here"));
        }
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
enum UnreadRun {
    #[error(transparent)]
    Journal(#[from] reader::ReadError),
    #[error(transparent)]
    Bundle(#[from] crate::bundle::open::OpenError),
}

/// What is counted of a journal.
#[derive(Default)]
struct JournalFold {
    digest: Digest,
    counts: WorkCounts,
    last_seq: u64,
}

impl JournalFold {
    fn new() -> Self {
        // A board shows no steps, and there may be thousands of runs.
        Self { digest: Digest::without_steps(0), ..Self::default() }
    }

    fn event(&mut self, event: &Stamped) {
        self.last_seq = event.seq;
        self.digest.event(event);
        self.counts.event(event);
    }
}

/// Reads a run. Who names a repository knows better than the run.
fn read_run(file: &Path, given: Option<&str>, by_folder: &str) -> Result<Option<ReadRun>, UnreadRun> {
    let mut fold = JournalFold::new();
    let claimed = if is_journal(file) {
        reader::read(file, |event| fold.event(&event))?;
        let origin = fold.digest.start().and_then(|start| start.trace.as_deref());
        origin.and_then(|origin| origin.repository.as_ref()).map(|line| named(line.as_str()))
    } else {
        // In memory where it fits: to unpack thousands of bundles for their journals alone would take long.
        let manifest = if let Some(JournalOnly { manifest, journal }) = JournalOnly::read(file)? {
            reader::read_bytes(&journal, file, |event| fold.event(&event))?;
            manifest
        } else {
            OpenedBundle::open_reading(file, &mut |event| fold.event(event))?.manifest
        };
        manifest.repository.as_ref().map(ToString::to_string)
    };
    let repository = given.map(str::to_owned).or(claimed).unwrap_or_else(|| by_folder.to_owned());
    let JournalFold { digest, counts, last_seq } = fold;
    Ok(FleetRun::of(&digest, &counts, &repository).map(|run| ReadRun { run, last_seq }))
}

/// Why a file with deliveries is not read.
#[derive(Debug, thiserror::Error)]
enum UnreadDeliveries {
    #[error(transparent)]
    File(#[from] read::Unread),
    #[error("it is not what `ll-loop deliveries` writes: {0}")]
    Json(#[from] serde_json::Error),
    #[error("its version of the format is {0}, and this one reads {SCHEMA}")]
    Version(u32),
}

/// Reads what became of deliveries.
fn read_deliveries(file: &Path, given: Option<&str>) -> Result<DeliveryList, UnreadDeliveries> {
    let mut list: DeliveryList = serde_json::from_str(&read::text(file, MOST_DELIVERIES)?)?;
    if list.schema != SCHEMA {
        return Err(UnreadDeliveries::Version(list.schema));
    }
    if let Some(given) = given {
        given.clone_into(&mut list.repository);
    }
    Ok(list)
}

/// Returns the name of a repository as bundles have it: without the scheme of its address.
fn named(address: &str) -> String {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.trim_end_matches('/').trim_end_matches(".git").to_owned()
}

/// Returns the folder of a source that a file is in: where nobody names the repository, that is what people called it.
fn repository_of(source: &Path, file: &Path) -> String {
    let inside = file.strip_prefix(source).unwrap_or(file);
    let first = inside.parent().and_then(|parent| parent.components().next());
    let name = first.map(|first| first.as_os_str().to_string_lossy().into_owned());
    let own = || {
        let directory = if fs::metadata(source).is_ok_and(|metadata| metadata.is_dir()) {
            Some(source)
        } else {
            source.parent()
        };
        directory.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    };
    name.or_else(own).unwrap_or_else(|| "unknown".to_owned())
}
