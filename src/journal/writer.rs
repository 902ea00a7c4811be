//! Appends events: a batch is one write, and a batch that cannot be written whole leaves no trace.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::base::time::Timestamp;
use crate::engine::event::{ActionComplete, Event, Stamped, is_long};
use crate::evaluate::observation::{Observation, Stream, Text};

use super::files::RunFiles;
use super::reader::Whole;
use super::{fault, streams};

/// The journal of one run.
///
/// Every batch reaches the kernel before anything follows from it, so a killed process loses nothing. The disk is
/// told to keep it at the points where a run may be left for good; a machine that loses power in between loses what
/// its disk had not written yet, which in CI is the machine.
pub struct Journal {
    file: File,
    length: u64,
    seq: u64,
    redactor: Redactor,
    streams: PathBuf,
}

impl Journal {
    /// Begins the journal of a new run.
    pub fn create(files: &RunFiles, redactor: Redactor) -> io::Result<Self> {
        let path = files.journal();
        let file = fs_err::OpenOptions::new().append(true).create_new(true).open(path)?.into_parts().0;
        fault::point();
        Ok(Self { file, length: 0, seq: 0, redactor, streams: files.streams() })
    }

    /// Goes on with the journal of an earlier run. Half a line at its end is cut off: nothing is written behind it.
    pub fn go_on(files: &RunFiles, redactor: Redactor, whole: Whole) -> io::Result<Self> {
        let mut file = fs_err::OpenOptions::new().append(true).open(files.journal())?.into_parts().0;
        let mut length = whole.length;
        file.set_len(length)?;
        fault::point();
        if whole.is_open {
            file.write_all(b"\n")?;
            length += 1;
        }
        Ok(Self { file, length, seq: whole.last_seq, redactor, streams: files.streams() })
    }

    /// Appends events and returns them as they were written: numbered, dated by the clock and by the time that the run
    /// has taken, without secrets. `path` names the loops that are running, the outermost first.
    pub fn append(
        &mut self,
        events: Vec<Event>,
        (ts, at): (Timestamp, Duration),
        path: &[LoopName],
    ) -> io::Result<Vec<Stamped>> {
        let depth = u32::try_from(path.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let path = if depth == 0 { &[] } else { path };
        let mut lines = Vec::with_capacity(events.len() * 256);
        let mut written = Vec::with_capacity(events.len());
        let mut seq = self.seq;
        for event in events {
            seq += 1;
            let event = if let Event::ActionComplete(complete) = event {
                let complete = self.clean(complete);
                self.keep_streams(&complete, seq)?;
                Event::ActionComplete(complete)
            } else {
                event
            };
            let stamped = self.without_secrets(Stamped { ts, seq, at, depth, path: path.to_vec(), event })?;
            serde_json::to_writer(&mut lines, &stamped)?;
            lines.push(b'\n');
            written.push(stamped);
        }
        fault::torn(&mut self.file, &lines);
        if let Err(error) = self.file.write_all(&lines) {
            // A reader tolerates half a line at the end, but it should not have to.
            let _best_effort = self.file.set_len(self.length);
            return Err(error);
        }
        fault::point();
        self.seq = seq;
        self.length += lines.len() as u64;
        Ok(written)
    }

    /// Asks the disk to keep what was written so far.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Returns the number of the last event.
    pub fn last_seq(&self) -> u64 {
        self.seq
    }

    /// Returns what hides secrets in what is written elsewhere.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Hides secrets in whole streams, before anything is cut: the end of a cut secret would be none any more.
    fn clean(&self, complete: ActionComplete) -> ActionComplete {
        if self.redactor.is_empty() {
            return complete;
        }
        let clean = |text: &Text| {
            let clean = self.redactor.text(text.as_str());
            // What came before is lost, and with it perhaps the beginning of a secret.
            let is_cut = text.is_truncated() && text.elsewhere().is_none();
            let kept = if is_cut { self.redactor.whole_end(&clean, usize::MAX) } else { &clean };
            text.with(kept.to_owned())
        };
        let ActionComplete { step, seen, usage } = complete;
        let (stdout, stderr) = (clean(&seen.stdout), clean(&seen.stderr));
        ActionComplete { step, seen: Observation { stdout, stderr, ..seen }, usage }
    }

    fn without_secrets(&self, stamped: Stamped) -> io::Result<Stamped> {
        if self.redactor.is_empty() {
            return Ok(stamped);
        }
        let mut value = serde_json::to_value(&stamped)?;
        self.redactor.json(&mut value);
        if let Ok(clean) = serde_json::from_value(value) {
            return Ok(clean);
        }
        // Someone's password is a word of the format, such as `success`.
        let mut value = serde_json::to_value(&stamped)?;
        self.redactor.json_but_words(&mut value);
        Ok(serde_json::from_value(value)?)
    }

    /// Writes streams that are longer than an event can carry to files of their own, before the event that has
    /// their ends, named by the number of that event.
    fn keep_streams(&self, complete: &ActionComplete, seq: u64) -> io::Result<()> {
        let seen = &complete.seen;
        for (text, stream) in [(&seen.stdout, Stream::Stdout), (&seen.stderr, Stream::Stderr)] {
            if is_long(text) {
                fs_err::create_dir_all(&self.streams)?;
                fault::point();
                fs_err::write(streams::path(&self.streams, seq, stream), text.as_str().as_bytes())?;
                fault::point();
            }
        }
        Ok(())
    }
}
