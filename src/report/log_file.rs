//! The log file: everything the actions printed, as far as it fits.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use super::{OutputLine, Sink, Stream, wording};
use crate::engine::event::{Event, Stamped};
use crate::files::read;

/// The most that one run writes.
const LIMIT: u64 = 64 * 1024 * 1024;

/// What a line of standard error begins with: a character that terminals show nothing of.
const STDERR: char = '\u{1f}';

/// What a line of standard output begins with that would otherwise begin like one with a mark.
const STDOUT: char = '\u{1e}';

/// What the line begins with that ends a log file which is full.
pub const END: &str = "[the log ends here: ";

/// Returns the line before the output of the action that an event begins.
pub fn header(event: &Stamped) -> Option<String> {
    let Event::ActionStart { state, action, .. } = &event.event else { return None };
    Some(format!("==> {} {}", event.ts, wording::began(state.as_str(), action)))
}

/// Returns a line of the file as its action printed it.
pub fn printed(line: &str) -> OutputLine<'_> {
    match (line.strip_prefix(STDERR), line.strip_prefix(STDOUT)) {
        (Some(text), _) => OutputLine { stream: Stream::Stderr, text },
        (None, Some(text)) => OutputLine { stream: Stream::Stdout, text },
        (None, None) => OutputLine { stream: Stream::Stdout, text: line },
    }
}

/// Returns the mark of a line, if it needs one.
fn mark(line: OutputLine<'_>) -> Option<char> {
    match line.stream {
        Stream::Stderr => Some(STDERR),
        Stream::Stdout => line.text.starts_with([STDERR, STDOUT]).then_some(STDOUT),
    }
}

/// A sink that keeps what the actions print, with a line before each of them.
pub struct LogFile {
    file: BufWriter<File>,
    left: u64,
}

impl LogFile {
    /// Begins the log of a run, or goes on with that of its earlier part.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Appended to: a run in the background writes here what would have gone to the terminal.
        let file = read::append(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: BufWriter::new(file), left: LIMIT.saturating_sub(length) })
    }

    fn line(&mut self, mark: Option<char>, text: &str) -> io::Result<()> {
        let length = (mark.map_or(0, char::len_utf8) + text.len()) as u64 + 1;
        if self.left == 0 {
            return Ok(());
        }
        if length > self.left {
            // A shorter line that would still fit is not written either: nothing would show the gap before it.
            self.left = 0;
            return writeln!(self.file, "{END}{} MiB are enough]", LIMIT >> 20);
        }
        self.left -= length;
        if let Some(mark) = mark {
            write!(self.file, "{mark}")?;
        }
        self.file.write_all(text.as_bytes())?;
        self.file.write_all(b"\n")
    }
}

impl Sink for LogFile {
    fn name(&self) -> &'static str {
        "the log file"
    }

    fn event(&mut self, event: &Stamped) -> io::Result<()> {
        match &event.event {
            Event::ActionStart { .. } => header(event).map_or(Ok(()), |header| self.line(None, &header)),
            // What an action printed is in the file before the run goes on.
            Event::ActionComplete(_) | Event::LoopComplete(_) => self.file.flush(),
            Event::LoopStart(_)
            | Event::LoopResume(_)
            | Event::Approval(_)
            | Event::StateEnter { .. }
            | Event::Evaluate { .. }
            | Event::Board(_)
            | Event::Route { .. }
            | Event::Retry { .. }
            | Event::Message { .. }
            | Event::VerdictTree { .. }
            | Event::ClosingPassStart(_)
            | Event::ClosingPassCheck(_)
            | Event::ClosingPassProof(_)
            | Event::Reused(_)
            | Event::ClosingPassEnd(_)
            | Event::Backoff { .. }
            | Event::Warning { .. }
            | Event::Handoff(_)
            | Event::Judge { .. }
            | Event::Sandbox(_)
            | Event::Signal { .. }
            | Event::SubLoopStart { .. }
            | Event::SubLoopComplete(_)
            | Event::Stall { .. }
            | Event::ActionError { .. }
            | Event::CallFailed(_)
            | Event::LoopError { .. }
            | Event::LoopTimeout { .. } => Ok(()),
        }
    }

    fn output(&mut self, line: OutputLine<'_>) -> io::Result<()> {
        self.line(mark(line), line.text)
    }

    fn tick(&mut self, _running: Duration) -> io::Result<()> {
        // A reader who follows the file sees the lines of an action while it runs.
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_printed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.log");
        let texts = ["plain", "", "\u{1f}marked", "\u{1e}so", "\u{1e}\u{1f}both"];
        let lines: Vec<_> = [Stream::Stdout, Stream::Stderr]
            .into_iter()
            .flat_map(|stream| texts.map(|text| OutputLine { stream, text }))
            .collect();
        let mut log = LogFile::open(&path).unwrap();
        for line in &lines {
            log.output(*line).unwrap();
        }
        drop(log);
        let kept = fs_err::read_to_string(path).unwrap();
        assert_eq!(kept.lines().map(printed).collect::<Vec<_>>(), lines);
        assert!(kept.starts_with("plain\n"), "what needs no mark has none");
    }
}
