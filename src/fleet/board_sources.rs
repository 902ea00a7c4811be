//! Reads the runs of a board: report directories, bundles, artifacts that were downloaded, or folders of them. All that they say is
//! a claim of whoever wrote them: links are not followed, and what cannot be read is a warning.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::board_rows::{FleetBoard, FleetRun};
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::inspect::run_files::{RunFilesFound, is_journal};
use crate::journal::reader;
use crate::process::clock::Clock;
use crate::report::digest::Digest;
use crate::report::work_counts::WorkCounts;

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

impl Session<'_> {
    /// Reads a board, and says what time it is.
    ///
    /// # Errors
    /// A source is not there, or none has a run.
    pub(crate) fn fleet(&self, sources: &[BoardSource]) -> Result<(FleetBoard, Timestamp), Error> {
        let mut runs: BTreeMap<(String, String), ReadRun> = BTreeMap::new();
        let mut left_out = 0;
        for source in sources {
            let path = self.path(&source.path);
            let found = RunFilesFound::below(&path).map_err(|error| {
                let shown = format!("cannot read the runs in {}", source.path.display());
                Error::failed(shown, &error).of_kind(Kind::Refused)
            })?;
            if !found.is_whole {
                self.talk.warning(&format!("{} has more runs than are read", source.path.display()));
            }
            for file in &found.files {
                let named = source.repository.clone().unwrap_or_else(|| repository_of(&path, file));
                match read(file, source.repository.as_deref(), &named) {
                    Ok(Some(read)) => keep(read, &mut runs),
                    Ok(None) => {}
                    Err(why) => {
                        left_out += 1;
                        if left_out <= MOST_WARNINGS {
                            let why = one_line(&why.to_string(), 400);
                            self.talk.warning(&format!("{} is left out: {why}", file.display()));
                        }
                    }
                }
            }
        }
        if left_out > MOST_WARNINGS {
            self.talk.warning(&format!("{} more files are left out", left_out - MOST_WARNINGS));
        }
        if runs.is_empty() {
            let hint = "runs are bundles (`<run>.llz`) or journals (`events.jsonl`), as they lie in the report directory of a run";
            return Err(Error::refused("there is no run that can be read").with_hint(hint));
        }
        let mut board = FleetBoard::default();
        for read in runs.into_values() {
            board.add(read.run);
        }
        Ok((board, Clock::start().now()))
    }
}

fn keep(read: ReadRun, runs: &mut BTreeMap<(String, String), ReadRun>) {
    let key = (read.run.repository.clone(), read.run.run_id.clone());
    if runs.get(&key).is_none_or(|known| known.last_seq < read.last_seq) {
        runs.insert(key, read);
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

/// Reads a run. Who names a repository knows better than the run.
fn read(file: &Path, given: Option<&str>, by_folder: &str) -> Result<Option<ReadRun>, UnreadRun> {
    let mut last_seq = 0;
    let (digest, counts, claimed) = if is_journal(file) {
        let (mut digest, mut counts) = (Digest::without_steps(0), WorkCounts::default());
        reader::read(file, |event| {
            last_seq = event.seq;
            digest.event(&event);
            counts.event(&event);
        })?;
        let origin = digest.start().and_then(|start| start.trace.as_deref());
        let claimed = origin.and_then(|origin| origin.repository.as_ref()).map(|line| named(line.as_str()));
        (digest, counts, claimed)
    } else {
        let opened = OpenedBundle::open(file)?;
        last_seq = opened.manifest.last_seq;
        let claimed = opened.manifest.repository.as_ref().map(ToString::to_string);
        let counts = opened.digest.counts().clone();
        (opened.digest, counts, claimed)
    };
    let repository = given.map(str::to_owned).or(claimed).unwrap_or_else(|| by_folder.to_owned());
    Ok(FleetRun::of(&digest, &counts, &repository).map(|run| ReadRun { run, last_seq }))
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
