//! Appends events: a batch is one write, and a batch that cannot be written whole leaves no trace.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use serde_json::Value;

use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::base::time::Timestamp;
use crate::engine::event::{ActionComplete, Event, Stamped, TAIL};
use crate::evaluate::observation::Text;

use super::files::RunFiles;

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
        let file = fs_err::OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self { file: file.into_parts().0, length: 0, seq: 0, redactor, streams: files.streams() })
    }

    /// Appends events and returns them as they were written: numbered, dated, without secrets. `path` names the loops
    /// that are running, the outermost first.
    pub fn append(
        &mut self,
        events: Vec<Event>,
        at: Timestamp,
        path: &[LoopName],
    ) -> io::Result<Vec<Stamped>> {
        let depth = u32::try_from(path.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let path = if depth == 0 { &[] } else { path };
        let mut lines = Vec::with_capacity(events.len() * 256);
        let mut written = Vec::with_capacity(events.len());
        for event in events {
            if let Event::ActionComplete(complete) = &event {
                self.keep_streams(complete, self.seq + 1)?;
            }
            self.seq += 1;
            let stamped = Stamped { ts: at, seq: self.seq, depth, path: path.to_vec(), event };
            let stamped = self.without_secrets(stamped)?;
            serde_json::to_writer(&mut lines, &stamped)?;
            lines.push(b'\n');
            written.push(stamped);
        }
        if let Err(error) = self.file.write_all(&lines) {
            // A reader tolerates half a line at the end, but it should not have to.
            let _best_effort = self.file.set_len(self.length);
            return Err(error);
        }
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

    /// Hides secrets in a value before it is written elsewhere.
    pub fn redact(&self, value: &mut Value) {
        self.redactor.json(value);
    }

    fn without_secrets(&self, stamped: Stamped) -> io::Result<Stamped> {
        if self.redactor.is_empty() {
            return Ok(stamped);
        }
        let mut value = serde_json::to_value(&stamped)?;
        self.redactor.json(&mut value);
        Ok(serde_json::from_value(value)?)
    }

    /// Writes streams that are longer than an event can carry to files of their own, before the event that has
    /// their ends, named by the number of that event.
    fn keep_streams(&self, complete: &ActionComplete, seq: u64) -> io::Result<()> {
        for (stream, name) in [(&complete.seen.stdout, "stdout"), (&complete.seen.stderr, "stderr")] {
            if is_long(stream) {
                fs_err::create_dir_all(&self.streams)?;
                let path = self.streams.join(format!("{seq:06}.{name}"));
                fs_err::write(path, self.redactor.text(stream.as_str()).as_bytes())?;
            }
        }
        Ok(())
    }
}

fn is_long(text: &Text) -> bool {
    text.as_str().len() > TAIL
}
