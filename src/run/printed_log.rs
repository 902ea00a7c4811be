//! Reads again what the actions of a run printed, action by action, from its log file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use crate::files::read;
use crate::report::log_file::{self, END};
use crate::report::{OutputLine, Stream};

/// A line that an action printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PrintedLine {
    /// Where it was printed.
    pub(crate) stream: Stream,
    /// The text, without its line end.
    pub(crate) text: String,
}

impl PrintedLine {
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

/// The longest line that is read as one, in bytes. Ours are shorter; the log in a bundle is a stranger's.
const LONGEST: u64 = 1 << 20;

/// What the actions of a run printed, in the order of the log file, line by line: a log may be larger than the memory that a
/// report should take. The headers are those of its actions, each with the number of the event that began it.
pub(crate) struct PrintedLog<'h> {
    file: Option<BufReader<File>>,
    /// Those that were not passed yet.
    headers: &'h [(u64, String)],
    /// The action whose lines come next in the file.
    at: Option<u64>,
    /// The action whose lines are asked for.
    wanted: Option<u64>,
}

impl<'h> PrintedLog<'h> {
    pub(crate) fn open(log: &Path, headers: &'h [(u64, String)]) -> Self {
        // A run whose log is gone is shown without it.
        let file = read::open(log).ok().map(BufReader::new);
        Self { file, headers, at: None, wanted: None }
    }

    /// Goes to the lines of the action that began with this event. Those of earlier ones that were not read are passed.
    pub(crate) fn begin(&mut self, seq: u64) {
        while self.headers.first().is_some_and(|(next, _)| *next <= seq) {
            while self.read_line().is_some() {}
        }
        self.wanted = Some(seq);
    }

    /// Returns the next line of the file, or nothing where the next action begins.
    fn read_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let read = self.file.as_mut().map(|file| file.take(LONGEST).read_until(b'\n', &mut line));
        if !read.is_some_and(|read| read.is_ok_and(|read| read > 0)) {
            self.file = None;
            self.headers = &[];
            return None;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        match self.headers.split_first() {
            Some(((seq, header), rest)) if header.split('\n').next().map(str::as_bytes) == Some(&line) => {
                // The text of an action can have several lines. The first one has the time.
                header.matches('\n').for_each(|_| self.pass_line());
                (self.at, self.headers) = (Some(*seq), rest);
                None
            }
            _ => Some(line),
        }
    }

    fn pass_line(&mut self) {
        let _at_the_end = self.file.as_mut().map(|file| file.skip_until(b'\n'));
    }
}

/// The lines of the action that was gone to.
impl Iterator for PrintedLog<'_> {
    type Item = PrintedLine;

    fn next(&mut self) -> Option<PrintedLine> {
        if self.wanted.is_none() || self.wanted != self.at {
            return None;
        }
        self.read_line().map(|line| PrintedLine::of(&String::from_utf8_lossy(&line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> Vec<(u64, String)> {
        [(3, "==> a"), (5, "==> b\nand more"), (9, "==> c")].map(|(seq, text)| (seq, text.to_owned())).into()
    }

    fn texts(printed: &mut PrintedLog<'_>, seq: u64) -> Vec<String> {
        printed.begin(seq);
        printed.map(|line| line.text).collect()
    }

    fn log(text: &str) -> tempfile::TempPath {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), text).unwrap();
        file.into_temp_path()
    }

    const LOG: &str = "before\n==> a\none\ntwo\n==> b\nand more\nthree\n==> c\nfour";

    #[test]
    fn each_action_has_its_lines() {
        let (log, headers) = (log(LOG), headers());
        let mut printed = PrintedLog::open(&log, &headers);
        assert_eq!(texts(&mut printed, 2), [""; 0]);
        assert_eq!(texts(&mut printed, 3), ["one", "two"]);
        assert_eq!(texts(&mut printed, 4), [""; 0], "no action began there");
        assert_eq!(texts(&mut printed, 5), ["three"]);
        assert_eq!(texts(&mut printed, 9), ["four"]);
        assert_eq!(texts(&mut printed, 10), [""; 0]);
    }

    #[test]
    fn what_is_not_read_is_passed() {
        let (log, headers) = (log(LOG), headers());
        let mut printed = PrintedLog::open(&log, &headers);
        printed.begin(3);
        assert_eq!(printed.next().map(|line| line.text).as_deref(), Some("one"));
        assert_eq!(texts(&mut printed, 9), ["four"]);
    }

    #[test]
    fn an_action_that_is_not_in_the_log_has_no_lines() {
        let (log, headers) = (log("==> a\none\n"), headers());
        let mut printed = PrintedLog::open(&log, &headers);
        assert_eq!((texts(&mut printed, 3), texts(&mut printed, 5)), (vec!["one".to_owned()], Vec::new()));
        let mut gone = PrintedLog::open(Path::new("/no/such/log"), &headers);
        assert_eq!(texts(&mut gone, 3), [""; 0]);
    }

    #[test]
    fn a_line_without_an_end_is_read_in_pieces() {
        let endless = "x".repeat(3 << 20);
        let (log, headers) = (log(&format!("==> a\n{endless}")), headers());
        let mut printed = PrintedLog::open(&log, &headers);
        let lines = texts(&mut printed, 3);
        assert_eq!((lines.len(), lines.concat()), (3, endless));
    }
}
