//! Names the texts that are kept beside a test file, and lays them out in one file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Which text is kept: the case, the expectation, and the visit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotKey(String);

impl SnapshotKey {
    /// Makes the key of a text with this number, from 0.
    pub fn new(case: &str, keys: &[&str], index: usize) -> Self {
        // A key is one line of the file.
        let case = case.replace(['\n', '\r'], " ");
        let visit = if index == 0 { String::new() } else { format!(" ({})", index + 1) };
        Self(format!("{case} / {}{visit}", keys.join(".")))
    }
}

/// A text that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptText {
    /// Which.
    pub key: SnapshotKey,
    /// The text.
    pub text: String,
}

/// What stands in front of the key of each text.
const HEAD: &str = "=== ";

/// What stands in front of a line of a text that would be taken for a key.
const ESCAPE: char = '\\';

/// Reads the texts of a file.
pub fn read(file: &str) -> BTreeMap<SnapshotKey, String> {
    let mut all = BTreeMap::new();
    let mut current: Option<(SnapshotKey, String)> = None;
    for line in file.lines() {
        if let Some(key) = line.strip_prefix(HEAD) {
            all.extend(current.take());
            current = Some((SnapshotKey(key.to_owned()), String::new()));
        } else if let Some((_, text)) = &mut current {
            text.push_str(line.strip_prefix(ESCAPE).unwrap_or(line));
            text.push('\n');
        }
    }
    all.extend(current);
    all
}

/// Lays texts out in a file.
pub fn write(all: &BTreeMap<SnapshotKey, String>) -> String {
    let mut out = String::new();
    for (SnapshotKey(key), text) in all {
        let _ = writeln!(out, "{HEAD}{key}");
        for line in text.lines() {
            // A line that begins with the mark gets another one, as reading takes one away.
            let escape = if line.starts_with(HEAD) || line.starts_with(ESCAPE) { "\\" } else { "" };
            let _ = writeln!(out, "{escape}{line}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_were_written() {
        let texts = ["one\n\ntwo\n", "=== no key\n\\ escaped\n", ""];
        let all: BTreeMap<_, _> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| (SnapshotKey::new("a case", &["prompts", "fix"], index), (*text).to_owned()))
            .collect();
        assert_eq!(read(&write(&all)), all);
    }
}
