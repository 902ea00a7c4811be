//! Copies the log of a run to standard output while it grows.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use super::output::Output;
use crate::files::read::{self, Unread};
use crate::journal::claim;
use crate::journal::known::KnownRun;
use crate::report::log_file;

/// The most bytes that are shown. Logs of runs are about half as long at most.
const MAX_LOG: u64 = 128 * read::MIB;

/// The longest line in bytes; longer ones are shown in parts.
const MAX_LINE: usize = 1024 * 1024;

/// How often `--follow` looks for new lines.
const LOOK: Duration = Duration::from_millis(200);

/// Copies the log until the run has ended. The file stays open, so it may move to the history meanwhile.
pub(super) fn show(run: &KnownRun, follow: bool, output: &Output) -> io::Result<()> {
    let (mut log, mut part) = (None, Vec::new());
    loop {
        // Checked before the log is read, so that the last lines are not missed.
        let is_live = follow && claim::find(run.files.directory(), run.files.instance())?.is_some();
        // A run that has just begun may have none yet, so it is looked for again.
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
        // The last line of a log need not have an end.
        if !is_live {
            return output.copy(&as_printed(&part));
        }
        std::thread::sleep(LOOK);
    }
}

fn opened(run: &KnownRun) -> io::Result<Option<File>> {
    // The run may have ended and moved its files since it was found.
    for path in [run.files.log(), run.files.archived().log()] {
        match read::open(&path) {
            Ok(file) => return Ok(Some(file)),
            Err(Unread::Absent) => {}
            Err(unread) => return Err(unread.into()),
        }
    }
    Ok(None)
}

/// Skips the beginning of a log that is longer than runs write, for something else wrote it.
fn skip(log: &mut File, output: &Output) -> io::Result<()> {
    let length = log.metadata()?.len();
    if length > MAX_LOG {
        let (whole, last) = (length / read::MIB, MAX_LOG / read::MIB);
        output.warning(&format!("the log has {whole} MiB; this is the end of it, {last} MiB"));
        log.seek(SeekFrom::Start(length - MAX_LOG))?;
    }
    Ok(())
}

/// Returns lines of the log without what tells the streams apart.
fn as_printed(lines: &[u8]) -> String {
    String::from_utf8_lossy(lines).split_inclusive('\n').map(|line| log_file::printed(line).text).collect()
}

/// Shows new lines of the log once they are complete, or too long to wait for.
fn copy(log: &mut File, part: &mut Vec<u8>, output: &Output) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let length = log.read(&mut bytes)?;
        if length == 0 {
            return Ok(());
        }
        // A sparse file reads as zeros where it has holes.
        part.extend(bytes[..length].iter().filter(|byte| **byte != 0));
        let end = part.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        if let Some(end) = end.or((part.len() > MAX_LINE).then_some(part.len())) {
            output.copy(&as_printed(&part[..end]))?;
            part.drain(..end);
        }
    }
}
