//! Reads again what the actions of a run printed, action by action, from its log file.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crate::files::read;
use crate::report::log_file::{self, END};
use crate::report::{OutputLine, Stream};

/// A line that an action printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Where it was printed.
    pub(crate) stream: Stream,
    /// The text, without its line end.
    pub(crate) text: String,
}

impl Line {
    fn of(kept: &str) -> Self {
        let OutputLine { stream, text } = log_file::printed(kept);
        Self { stream, text: text.to_owned() }
    }

    /// Returns it as sinks take it.
    pub(crate) fn shown(&self) -> OutputLine<'_> {
        OutputLine { stream: self.stream, text: &self.text }
    }

    /// Tells whether the log file ended with it, because it was full.
    pub(crate) fn is_end(&self) -> bool {
        self.text.starts_with(END)
    }
}

/// What the actions of a run printed, in the order of the log file. The headers are those of its actions, each with the
/// number of the event that began it.
pub(crate) struct Printed<'h> {
    file: Option<BufReader<File>>,
    headers: std::iter::Peekable<std::slice::Iter<'h, (u64, String)>>,
}

impl<'h> Printed<'h> {
    pub(crate) fn open(log: &Path, headers: &'h [(u64, String)]) -> Self {
        // A run whose log is gone is shown without it.
        let file = read::open(log).ok().map(BufReader::new);
        let mut printed = Self { file, headers: headers.iter().peekable() };
        printed.up_to_next();
        printed
    }

    /// Returns the lines of the action that began with this event.
    pub(crate) fn of(&mut self, seq: u64) -> Vec<Line> {
        while self.headers.next_if(|(other, _)| *other < seq).is_some() {
            self.up_to_next();
        }
        match self.headers.next_if(|(other, _)| *other == seq) {
            Some(_) => self.up_to_next(),
            None => Vec::new(),
        }
    }

    /// Returns the lines before the next header, and passes that.
    fn up_to_next(&mut self) -> Vec<Line> {
        // The text of an action can have several lines. The first one has the time.
        let header = self.headers.peek().map(|(_, header)| header.as_str()).unwrap_or_default();
        let (mut first, mut more) = (None, 0);
        if !header.is_empty() {
            (first, more) = (header.split('\n').next(), header.matches('\n').count());
        }
        let Some(file) = &mut self.file else { return Vec::new() };
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while file.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if line.last() == Some(&b'\n') {
                line.pop();
            }
            if first.map(str::as_bytes) == Some(line.as_slice()) {
                let mut rest = Vec::new();
                while more > 0 && file.read_until(b'\n', &mut rest).is_ok_and(|read| read > 0) {
                    more -= 1;
                }
                break;
            }
            lines.push(Line::of(&String::from_utf8_lossy(&line)));
            line.clear();
        }
        lines
    }
}
