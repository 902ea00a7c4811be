//! The log of a run, copied to standard output while it grows.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use crate::files::read::{self, Unread};
use crate::journal::claim;
use crate::journal::known::KnownRun;

use super::output::Output;

/// The most that is shown: a run writes a little more than half of it.
const MAX_LOG: u64 = 128 * read::MIB;

/// A longer line is shown in parts.
const MAX_LINE: usize = 1024 * 1024;

/// How often `--follow` looks for more.
const LOOK: Duration = Duration::from_millis(200);

/// Copies the log, and what comes until the run is gone. The file stays open, so it can move to the history meanwhile.
pub(super) fn show(run: &KnownRun, follow: bool, output: &Output) -> io::Result<()> {
    let (mut log, mut part) = (None, Vec::new());
    loop {
        // Looked at before the log is read, so that what is written last is shown, too.
        let is_live = follow && claim::find(run.files.directory(), run.files.instance())?.is_some();
        if log.is_none() {
            log = opened(run)?;
            if let Some(log) = &mut log {
                skip(log, output)?;
            }
        }
        match &mut log {
            Some(log) => copy(log, &mut part, output)?,
            None if !is_live => output.talk("this run has no log\n"),
            None => {}
        }
        if !is_live {
            return output.copy(&String::from_utf8_lossy(&part));
        }
        std::thread::sleep(LOOK);
    }
}

fn opened(run: &KnownRun) -> io::Result<Option<File>> {
    // The run may have ended, and its files moved, since it was found.
    for path in [run.files.log(), run.files.archived().log()] {
        match read::open(&path) {
            Ok(file) => return Ok(Some(file)),
            Err(Unread::Absent) => {}
            Err(unread) => return Err(unread.into()),
        }
    }
    Ok(None)
}

/// Leaves out the beginning of a log that no run of ours wrote.
fn skip(log: &mut File, output: &Output) -> io::Result<()> {
    let length = log.metadata()?.len();
    if length > MAX_LOG {
        let (whole, last) = (length / read::MIB, MAX_LOG / read::MIB);
        output.warning(&format!("the log has {whole} MiB; this is the end of it, {last} MiB"));
        log.seek(SeekFrom::Start(length - MAX_LOG))?;
    }
    Ok(())
}

/// Shows what there is more of the log. Lines are shown when they are whole, or too long to wait for.
fn copy(log: &mut File, part: &mut Vec<u8>, output: &Output) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let length = log.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        // A hole in a file is read as so many zeros.
        part.extend(bytes[..length].iter().filter(|byte| **byte != 0));
        let end = part.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        if let Some(end) = end.or((part.len() > MAX_LINE).then_some(part.len())) {
            output.copy(&String::from_utf8_lossy(&part[..end]))?;
            part.drain(..end);
        }
    }
}
