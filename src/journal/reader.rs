//! Reads a journal back, line by line. A torn last line is what a crash leaves, and is passed over; anything else
//! that cannot be read is an error with its line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::engine::event::Stamped;

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
    /// A line that is no event, before the end.
    #[error("line {line} of the journal {} is not an event", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
}

/// Calls `each` with every event in order. Events of kinds that this version does not know are passed over.
pub fn read(path: &Path, mut each: impl FnMut(Stamped)) -> Result<(), ReadError> {
    let io = |source| ReadError::Io { path: path.to_owned(), source };
    let mut lines = BufReader::new(File::open(path).map_err(io)?);
    let mut buffer = Vec::new();
    let mut line = 0;
    loop {
        buffer.clear();
        line += 1;
        if lines.read_until(b'\n', &mut buffer).map_err(io)? == 0 {
            return Ok(());
        }
        let is_torn = buffer.last() != Some(&b'\n');
        match serde_json::from_slice::<Stamped>(&buffer) {
            Ok(event) => each(event),
            Err(_) if is_torn || is_of_a_later_version(&buffer) => {}
            Err(source) => return Err(ReadError::Line { path: path.to_owned(), line, source }),
        }
    }
}

fn is_of_a_later_version(line: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(line)
        .is_ok_and(|value| ["event", "ts", "seq"].iter().all(|key| value.get(key).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<usize, usize>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut count = 0;
        let read = read(file.path(), |_| count += 1);
        let seen = match read {
            Ok(()) => Ok(count),
            Err(ReadError::Line { line, .. }) => Err(line),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(seen, expected, "{text}");
    }

    const ENTER: &str = r#"{"event":"state_enter","ts":"2026-01-01T00:00:00.000Z","seq":1,"state":"a","iteration":1,"step":1,"attempt":1}"#;

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
    }
}
