//! Comments and markers that keep a check from looking, and which of them are new.

use std::collections::BTreeMap;

use super::judge_catalog::{CATALOG, SuppressionRow, Where};
use super::source_lines::{SourceLine, source_lines};

/// Characters of a line that are shown.
const SHOWN: usize = 200;

/// A suppression in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SuppressionMark {
    /// The line, from 1.
    pub(super) line: usize,
    /// That line, as it is shown.
    pub(super) text: String,
    /// What suppresses: the comment, or the line of code.
    sign: String,
    /// The words of the code on that line.
    words: Vec<String>,
}

/// Returns the suppressions of a file, in order.
pub(super) fn marks(path: &str, text: &str, is_judge: bool) -> Vec<SuppressionMark> {
    let Some(language) = CATALOG.language(path) else { return Vec::new() };
    let is_of = |row: &&SuppressionRow| {
        (row.languages.is_empty() || row.languages.contains(&language.name)) && (is_judge || !row.judges)
    };
    let rows: Vec<&SuppressionRow> = CATALOG.suppressions.iter().filter(is_of).collect();
    let written: Vec<&str> = text.split('\n').collect();
    let lines = source_lines(text, language);
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let row = rows.iter().find(|row| row.is_in(line))?;
        let shown = written.get(at).map_or("", |line| line.trim());
        Some(SuppressionMark {
            line: at + 1,
            text: shown.chars().take(SHOWN).collect(),
            // In code, the words within quotes do not count: a text that speaks of a suppression is
            // none.
            sign: squeezed(if row.place == Where::Comment { &line.comment } else { &line.bare }),
            words: words(&line.code),
        })
    });
    found.collect()
}

impl SuppressionRow {
    fn is_in(&self, line: &SourceLine) -> bool {
        let text = match self.place {
            Where::Comment => &line.comment,
            Where::Code => &line.bare,
        };
        !text.is_empty() && self.pattern.is_match(text)
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

fn words(code: &str) -> Vec<String> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.sort();
    words.dedup();
    words
}

/// The suppressions of two trees.
#[derive(Debug, Default)]
pub(super) struct MarkCounts {
    /// Those of the start that no line of the end has, by what they suppress with.
    gone: BTreeMap<String, Vec<SuppressionMark>>,
    /// Those of the end that no line of the start has, each with its file.
    new: Vec<(String, SuppressionMark)>,
}

impl MarkCounts {
    /// Counts those of a file in both trees.
    pub(super) fn count(&mut self, path: &str, start: Vec<SuppressionMark>, end: Vec<SuppressionMark>) {
        let mut left = start;
        for mark in end {
            // Moved or indented anew, it is the same.
            let same = left.iter().position(|old| squeezed(&old.text) == squeezed(&mark.text));
            match same {
                Some(at) => drop(left.remove(at)),
                None => self.new.push((path.to_owned(), mark)),
            }
        }
        for mark in left {
            self.gone.entry(mark.sign.clone()).or_default().push(mark);
        }
    }

    /// Returns those that are new: one whose line was edited, or moved to another file, is not.
    pub(super) fn fresh(mut self) -> Vec<(String, SuppressionMark)> {
        let is_new = |(_, mark): &(String, SuppressionMark)| {
            let Some(gone) = self.gone.get_mut(&mark.sign) else { return true };
            let Some(at) = gone.iter().position(|old| is_alike(old, mark)) else { return true };
            // Each old one excuses one new one, so that copies of a suppression are new.
            gone.remove(at);
            false
        };
        self.new.into_iter().filter(is_new).collect()
    }
}

/// Tells whether two suppressions stand on what is the same line, edited.
fn is_alike(one: &SuppressionMark, other: &SuppressionMark) -> bool {
    let common = one.words.iter().filter(|word| other.words.contains(word)).count();
    let all = one.words.len() + other.words.len() - common;
    // Markers in lines of their own have few words, and stand where they stood.
    // At least two fifths of all words are common.
    common * 5 >= all * 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The name of a file of a language, which shows as such.
    fn file(language: &str) -> &'static str {
        match language {
            "python" => "a.py",
            "rust" => "a.rs",
            "js" => "a.ts",
            "go" => "a.go",
            "java" => "A.java",
            "csharp" => "A.cs",
            "cpp" => "a.cc",
            "ruby" => "a.rb",
            "php" => "a.php",
            "shell" => "a.sh",
            "terraform" => "a.tf",
            "elixir" => "a.ex",
            "sql" => "a.sql",
            "swift" => "a.swift",
            other => panic!("{other}"),
        }
    }

    fn first(row: &SuppressionRow) -> &'static str {
        file(row.languages.first().map_or("python", String::as_str))
    }

    #[test]
    fn each_row_finds_its_examples_and_no_others() {
        for row in &CATALOG.suppressions {
            let path = first(row);
            let is_found = |line: &String| {
                let lines = source_lines(line, CATALOG.language(path).unwrap());
                lines.iter().any(|line| row.is_in(line))
            };
            for line in &row.examples {
                assert!(is_found(line), "{}, {path}: {line}", row.what);
                assert_eq!(marks(path, line, true).len(), 1, "{path}: {line}");
            }
            for line in &row.others {
                assert!(!is_found(line), "{path}: {line}");
            }
            assert!(!row.examples.is_empty() && !row.others.is_empty());
        }
    }

    fn new(path: &str, start: &str, end: &str) -> Vec<usize> {
        let mut counts = MarkCounts::default();
        counts.count(path, marks(path, start, false), marks(path, end, false));
        counts.fresh().iter().map(|(_, mark)| mark.line).collect()
    }

    #[test]
    fn a_suppression_is_new_where_no_line_had_it() {
        assert_eq!(new("a.py", "x = 1\n", "x = 1  # noqa\n"), [1]);
        assert_eq!(new("a.py", "a\nx = f(1)  # noqa\n", "x = g(1)  # noqa\na\n"), [] as [usize; 0]);
        assert_eq!(new("a.py", "a = b(c)\nx = f(1)  # noqa\n", "a = b(c)  # noqa\nx = f(1)\n"), [1]);
        assert_eq!(new("a.py", "x=1  # noqa\n", "x = 1  # noqa\n"), [] as [usize; 0]);
    }

    #[test]
    fn one_that_moves_to_another_file_is_not_new() {
        let mut counts = MarkCounts::default();
        counts.count("a.rs", marks("a.rs", "#[allow(dead_code)]\n", false), Vec::new());
        counts.count("b.rs", Vec::new(), marks("b.rs", "\n#[allow(dead_code)]\n", false));
        assert_eq!(counts.fresh(), []);
    }

    proptest! {
        #[test]
        fn nothing_within_quotes_is_found(row in 0..CATALOG.suppressions.len(), example in 0_usize..8) {
            let row = &CATALOG.suppressions[row];
            let path = first(row);
            let line = &row.examples[example % row.examples.len()];
            if !line.contains(['"', '\\']) {
                let text = format!("x = \"{line}\"\n");
                prop_assert_eq!(marks(path, &text, true), []);
            }
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in any::<Vec<u8>>(), path in prop::sample::select(vec!["a.py", "a.rs", "a.ts", "a.rb"])) {
            let text = String::from_utf8_lossy(&bytes);
            for mark in marks(path, &text, true) {
                prop_assert!(mark.line >= 1);
            }
        }
    }
}
