//! Reads a journal back, line by line. A torn last line is what a crash leaves, and is passed over; anything else
//! that cannot be read is an error with its line.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::light;
use crate::base::time::Timestamp;
use crate::engine::event::{Event, LoopStart, SCHEMA, Stamped};
use crate::files::read;

/// The longest line that is read, in bytes; events are far shorter.
// A journal may come from a bundle that anybody made, and a line is held in memory as a whole.
pub const MAX_LINE: u64 = 64 * read::MIB;

/// Why a journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read the journal {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line before the last one is not an event.
    #[error("line {line} of the journal {} is not an event", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// A line is longer than the limit.
    #[error("line {line} of the journal {} is longer than {} MiB", path.display(), MAX_LINE / read::MIB)]
    Long {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A line holds more values than any event has.
    #[error("line {line} of the journal {} holds more values than any event has", path.display())]
    Overfull {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The number of a line does not follow that of the line before.
    #[error("line {line} of the journal {} has the number {found} where {expected} comes next", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The number that was expected.
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// Only a newer version knows the event.
    #[error("line {line} of the journal {} was written by a newer version of ll-loop: {what}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The sign of the newer version.
        what: String,
    },
}

impl ReadError {
    /// Says where the journal breaks off, without its path.
    pub fn place(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("the journal cannot be read ({source})"),
            Self::Line { line, .. } => format!("line {line} of the journal is not an event"),
            Self::Long { line, .. } => format!("line {line} of the journal is too long"),
            Self::Overfull { line, .. } => {
                format!("line {line} of the journal holds more values than any event has")
            }
            Self::Order { line, .. } => format!("line {line} of the journal does not follow the line before"),
            Self::Newer { line, .. } => format!("line {line} of the journal was written by a newer version"),
        }
    }
}

/// The complete part of a journal, after which new events are appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// The number of the last event.
    pub last_seq: u64,
    /// The length of all complete events, in bytes.
    pub length: u64,
    /// Whether the last event lacks its line end.
    pub is_open: bool,
}

/// Calls `each` with every event in order. Skips events of kinds that this version does not know.
pub fn read(path: &Path, mut each: impl FnMut(Stamped)) -> Result<(), ReadError> {
    Lines::open(path)?.each_shown(&mut each)
}

/// Does the same with a journal that is in memory; `path` is where it comes from.
pub fn read_bytes(journal: &[u8], path: &Path, mut each: impl FnMut(Stamped)) -> Result<(), ReadError> {
    Lines::of(journal, path).each_shown(&mut each)
}

/// Reads the events of a journal up to this one, and nothing behind it. Each has to be known and in order.
pub fn read_until(path: &Path, last: u64, mut each: impl FnMut(Stamped)) -> Result<(), ReadError> {
    let mut lines = Lines::open(path)?;
    let mut whole = Whole::default();
    while whole.last_seq < last
        && let Some(event) = lines.following(&mut whole)?
    {
        each(event);
    }
    Ok(())
}

/// Reads a journal to which events will be appended: every event has to be known and in order.
pub fn read_whole(path: &Path, mut each: impl FnMut(Stamped)) -> Result<Whole, ReadError> {
    let mut lines = Lines::open(path)?;
    let mut whole = Whole::default();
    while let Some(event) = lines.following(&mut whole)? {
        each(event);
    }
    Ok(whole)
}

/// The content of a line.
enum LineContent {
    Event(Box<Stamped>),
    Unknown { event: String },
    Torn,
}

struct Lines<R> {
    path: PathBuf,
    file: R,
    buffer: Vec<u8>,
    line: usize,
    offset: u64,
    is_open: bool,
    /// Whether texts may end early, because nothing goes on from them: they are for people.
    is_to_be_shown: bool,
}

impl Lines<BufReader<File>> {
    fn open(path: &Path) -> Result<Self, ReadError> {
        let unread = |error: read::Unread| ReadError::Io { path: path.to_owned(), source: error.into() };
        let file = read::open(path).map_err(unread)?;
        Ok(Self::of(BufReader::with_capacity(256 * 1024, file), path))
    }
}

impl<R: io::BufRead> Lines<R> {
    fn of(file: R, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file,
            buffer: Vec::new(),
            line: 0,
            offset: 0,
            is_open: false,
            is_to_be_shown: false,
        }
    }

    /// Calls `each` with every event that is known, for people.
    fn each_shown(&mut self, each: &mut impl FnMut(Stamped)) -> Result<(), ReadError> {
        self.is_to_be_shown = true;
        while let Some(found) = self.next()? {
            match found {
                LineContent::Event(event) => each(*event),
                // What only a later version knows does not change what is shown; a resume refuses it.
                LineContent::Unknown { .. } | LineContent::Torn => {}
            }
        }
        Ok(())
    }

    /// Returns the event that follows what is known, if it is whole.
    fn following(&mut self, known: &mut Whole) -> Result<Option<Stamped>, ReadError> {
        let Some(found) = self.next()? else { return Ok(None) };
        let (path, line) = (self.path.clone(), self.line);
        let event = match found {
            LineContent::Torn => return Ok(None),
            LineContent::Unknown { event } => {
                return Err(ReadError::Newer { path, line, what: format!("`{event}` is an unknown event") });
            }
            LineContent::Event(event) => *event,
        };
        if let Event::LoopStart(LoopStart { schema, .. }) = &event.event
            && *schema > SCHEMA
        {
            let what = format!("its schema is {schema}, and this one knows {SCHEMA}");
            return Err(ReadError::Newer { path, line, what });
        }
        let expected = known.last_seq + 1;
        if event.seq != expected {
            return Err(ReadError::Order { path, line, expected, found: event.seq });
        }
        *known = Whole { last_seq: expected, length: self.offset, is_open: self.is_open };
        Ok(Some(event))
    }

    fn next(&mut self) -> Result<Option<LineContent>, ReadError> {
        self.buffer.clear();
        self.line += 1;
        let read = whole_line(&mut self.file, &mut self.buffer);
        let read = read.map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
        let Some(read) = read else {
            return Err(ReadError::Long { path: self.path.clone(), line: self.line });
        };
        if read == 0 {
            return Ok(None);
        }
        self.offset += read;
        self.is_open = self.buffer.last() != Some(&b'\n');
        if self.is_to_be_shown && !self.lighten() {
            if self.is_open {
                return Ok(Some(LineContent::Torn));
            }
            return Err(ReadError::Overfull { path: self.path.clone(), line: self.line });
        }
        let read = Stamped::from_line(&self.buffer);
        // Half a character, which a program of another language cut, is no reason to lose an event.
        let read = read.or_else(|error| match without_halves(&self.buffer) {
            Some(line) => Stamped::from_line(&line),
            None => Err(error),
        });
        match read {
            Ok(event) => Ok(Some(LineContent::Event(Box::new(event)))),
            Err(_) if self.is_open => Ok(Some(LineContent::Torn)),
            Err(source) => match of_a_later_version(&self.buffer) {
                Some(event) => Ok(Some(LineContent::Unknown { event })),
                None => Err(ReadError::Line { path: self.path.clone(), line: self.line, source }),
            },
        }
    }
}

impl<R> Lines<R> {
    /// Cuts the texts of the line where they are longer than in any event, and tells whether the line can be read.
    fn lighten(&mut self) -> bool {
        let light = match light::lightened(&self.buffer) {
            Ok(Cow::Borrowed(_)) => return true,
            Ok(Cow::Owned(light)) => light,
            Err(light::Overfull) => return false,
        };
        self.buffer = light;
        true
    }
}

/// Reads a line with its end and returns its length, or `None` if it is too long.
pub(super) fn whole_line(file: &mut impl io::BufRead, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
    let read = file.take(MAX_LINE).read_until(b'\n', line)? as u64;
    Ok((read < MAX_LINE || line.last() == Some(&b'\n')).then_some(read))
}

/// Returns a line in which each lone surrogate is U+FFFD; nothing if there is none.
fn without_halves(line: &[u8]) -> Option<Vec<u8>> {
    const UNKNOWN: &[u8] = b"\\ufffd";
    let half = |at: usize| {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        (0xd800..0xe000).contains(&unit).then_some(unit)
    };
    let (mut out, mut at, mut is_changed) = (Vec::with_capacity(line.len()), 0, false);
    while let Some(byte) = line.get(at) {
        let length = match (half(at), half(at + 6)) {
            // A high and a low half together are a character.
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(_), _) => {
                out.extend(UNKNOWN);
                (at, is_changed) = (at + 6, true);
                continue;
            }
            (None, _) if *byte == b'\\' => 2,
            (None, _) => 1,
        };
        out.extend(line.get(at..at + length).unwrap_or(&line[at..]));
        at += length;
    }
    is_changed.then_some(out)
}

fn of_a_later_version(line: &[u8]) -> Option<String> {
    /// What every event has. The rest is passed over, and not taken into memory, whatever it is.
    #[derive(Deserialize)]
    struct EventHeader {
        event: String,
        // Time and number have to be there: without them, the line is damaged, and not of a later version.
        #[serde(rename = "ts")]
        _ts: Timestamp,
        #[serde(rename = "seq")]
        _seq: u64,
    }
    Some(serde_json::from_slice::<EventHeader>(line).ok()?.event)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn line_of(error: &ReadError) -> usize {
        match error {
            ReadError::Line { line, .. }
            | ReadError::Long { line, .. }
            | ReadError::Overfull { line, .. }
            | ReadError::Order { line, .. }
            | ReadError::Newer { line, .. } => *line,
            ReadError::Io { .. } => panic!("{error}"),
        }
    }

    fn check(text: &str, expected: Result<usize, usize>) {
        let mut count = 0;
        let read = read(file(text).path(), |_| count += 1);
        let seen = read.map(|()| count).map_err(|error| line_of(&error));
        assert_eq!(seen, expected, "{text}");
    }

    fn check_whole(text: &str, expected: Result<(u64, usize, bool), usize>) {
        let seen = read_whole(file(text).path(), |_| {}).map_err(|error| line_of(&error));
        let expected =
            expected.map(|(last_seq, length, is_open)| Whole { last_seq, length: length as u64, is_open });
        assert_eq!(seen, expected, "{text}");
    }

    const ENTER: &str = r#"{"event":"state_enter","ts":"2026-01-01T00:00:00.000Z","seq":1,"state":"a","iteration":1,"step":1,"attempt":1}"#;

    fn second() -> String {
        ENTER.replace("\"seq\":1", "\"seq\":2")
    }

    #[test]
    fn a_torn_last_line_is_passed_over_and_nothing_else_is() {
        check("", Ok(0));
        check(&format!("{ENTER}\n{ENTER}\n"), Ok(2));
        check(&format!("{ENTER}\n{}", &ENTER[..40]), Ok(1));
        check(&format!("{ENTER}\n{}\n{ENTER}\n", &ENTER[..40]), Err(2));
    }

    #[test]
    fn events_and_fields_of_later_versions_are_ignored() {
        let later = r#"{"event":"teleport","ts":"2026-01-01T00:00:00.000Z","seq":2,"where":"x"}"#;
        let more = ENTER.replace(r#""attempt":1"#, r#""attempt":1,"mood":"fine""#);
        check(&format!("{later}\n{more}\n"), Ok(1));
        check_whole(&format!("{ENTER}\n{later}\n"), Err(2));
        // Without a time or a number it is not an event.
        for bad in [later.replace("2026-01-01T00:00:00.000Z", "now"), later.replace(":2,", ":[],")] {
            check(&format!("{ENTER}\n{bad}\n{ENTER}\n"), Err(2));
        }
    }

    #[test]
    fn who_writes_on_knows_where_the_whole_events_end() {
        let (one, two) = (ENTER.len() + 1, second().len() + 1);
        check_whole("", Ok((0, 0, false)));
        check_whole(&format!("{ENTER}\n{}\n", second()), Ok((2, one + two, false)));
        check_whole(&format!("{ENTER}\n{}", &second()[..50]), Ok((1, one, false)));
        // Only the end of the line is missing: the event is whole.
        check_whole(&format!("{ENTER}\n{}", second()), Ok((2, one + two - 1, true)));
    }

    #[test]
    fn a_line_that_was_taken_out_or_doubled_is_noticed() {
        check_whole(&format!("{ENTER}\n{ENTER}\n"), Err(2));
        check_whole(&format!("{}\n", second()), Err(1));
    }

    #[test]
    fn half_a_character_loses_no_event() {
        let warning = |message: &str| {
            let line = r#"{"event":"warning","ts":"2026-01-01T00:00:00.000Z","seq":1,"message":"MESSAGE"}"#;
            line.replace("MESSAGE", message)
        };
        let message_of = |message: &str| {
            let mut found = Vec::new();
            read(file(&format!("{}\n", warning(message))).path(), |stamped| found.push(stamped.event))
                .unwrap();
            let [Event::Warning { message, .. }] = found.as_slice() else { panic!("{found:?}") };
            message.clone()
        };
        assert_eq!(message_of(r"a\ud800b\udc00\ud800"), "a\u{fffd}b\u{fffd}\u{fffd}");
        assert_eq!(message_of(r"\ud83d\ude00\ud83d"), "\u{1f600}\u{fffd}");
        assert_eq!(message_of(r"\\ud800\udfff"), "\\ud800\u{fffd}");
        check(&format!("{}\n{ENTER}\n", warning(r"a\ud8")), Err(1));
    }

    #[test]
    fn a_newer_journal_is_not_understood() {
        let start = r#"{"event":"loop_start","ts":"2026-01-01T00:00:00.000Z","seq":1,"loop":"a","run_id":"a-1","definition_sha256":"","max_iterations":1,"inputs":[],"llm":"off","strict":false,"source":{"file":"","lines":{}},"schema":99}"#;
        check_whole(&format!("{start}\n"), Err(1));
    }
}
