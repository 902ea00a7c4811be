//! Puts the files of a bundle where the files of a run are, so that it is left here as it was left there.

use std::io;
use std::path::Path;

use fs_err as fs;

use super::names;
use crate::files::read;
use crate::journal::files::RunFiles;
use crate::journal::{fault, journal_ends};

/// How the run that comes in stands to the one that is here already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunComparison {
    /// It is not here, or not as far: the one that comes in takes its place.
    Ahead,
    /// It is here, and as far.
    Same,
    /// It is here, and has gone on since.
    Behind,
    /// It went another way here since.
    Apart,
}

/// Names what was unpacked as the files of a run are named, so that it can be looked at as one.
pub fn arrange(unpacked: &Path, files: &RunFiles) -> io::Result<RunFiles> {
    let incoming = files.clone().archived_in(unpacked);
    let moves = [
        (names::STREAMS, incoming.streams()),
        (names::RUN_DIR, incoming.scratch()),
        (names::LOG, incoming.log()),
        (names::JOURNAL, incoming.journal()),
    ];
    for (name, to) in moves {
        let from = unpacked.join(name);
        if from.exists() {
            fs::rename(from, to)?;
        }
    }
    Ok(incoming)
}

/// Compares a run that comes in with the one that is here.
pub fn compare(incoming: &RunFiles, files: &RunFiles) -> io::Result<RunComparison> {
    let (incoming, here) = (incoming.journal(), files.journal());
    if !here.exists() {
        return Ok(RunComparison::Ahead);
    }
    let length = fs::metadata(&incoming)?.len().min(fs::metadata(&here)?.len());
    if !begin_alike(&incoming, &here, length)? {
        // What a kill leaves of a last line does not count.
        let last = |path: &Path| Ok::<_, io::Error>(journal_ends::ends(path)?.last.map(|(_, seq)| seq));
        let is_part = fs::metadata(&here)?.len() == length && last(&here)? < last(&incoming)?;
        return Ok(if is_part { RunComparison::Ahead } else { RunComparison::Apart });
    }
    let is_longer = |path: &Path| Ok::<_, io::Error>(fs::metadata(path)?.len() > length);
    Ok(match (is_longer(&incoming)?, is_longer(&here)?) {
        (true, _) => RunComparison::Ahead,
        (false, true) => RunComparison::Behind,
        (false, false) => RunComparison::Same,
    })
}

fn begin_alike(one: &Path, other: &Path, length: u64) -> io::Result<bool> {
    use io::Read as _;
    let open = |path: &Path| Ok::<_, io::Error>(io::BufReader::new(read::open(path)?).take(length).bytes());
    for (one, other) in open(one)?.zip(open(other)?) {
        if one? != other? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Moves the files of a run to their places. The journal goes last: before it is here, the run is not here.
pub fn place(incoming: &RunFiles, files: &RunFiles) -> io::Result<()> {
    files.make_directory()?;
    let moves = [
        (incoming.streams(), files.streams()),
        (incoming.scratch(), files.scratch()),
        (incoming.log(), files.log()),
        (incoming.journal(), files.journal()),
    ];
    for (from, to) in moves {
        // A rename does not replace a directory that has files in it. One that the run has no more would be taken for its own.
        if to.is_dir() {
            fs::remove_dir_all(&to)?;
        }
        if from.exists() {
            fault::point();
            fs::rename(from, to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_the_run_has_no_more_does_not_stay() {
        let (here, unpacked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = RunFiles::of(&here.path().join(".loops"), "main-20260101T000000-0123ab").unwrap();
        files.make_directory().unwrap();
        for stale in [files.scratch(), files.streams()] {
            fs::create_dir_all(&stale).unwrap();
            fs::write(stale.join("stale"), "of an earlier step").unwrap();
        }
        fs::write(files.journal(), "{}\n").unwrap();
        fs::write(unpacked.path().join(names::JOURNAL), "{}\n{}\n").unwrap();
        place(&arrange(unpacked.path(), &files).unwrap(), &files).unwrap();
        assert!(!files.scratch().exists() && !files.streams().exists());
        assert_eq!(fs::read_to_string(files.journal()).unwrap(), "{}\n{}\n");
    }
}
