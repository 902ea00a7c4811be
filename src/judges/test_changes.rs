//! What happened to a test, or to any judge that is read line by line: nothing that counts, more of it, or something else.

use std::sync::LazyLock;

use regex::Regex;

use super::judge_catalog::{Before, CATALOG, Language};
use super::judge_parts::is_grown;
use super::source_lines::{SourceLine, source_lines};
use super::test_cases::{CountedLine, are_whole_cases, indentation};
use super::tree::extension;

/// What happened to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextChange {
    /// Nothing that counts: outside of texts, blanks at the end of lines, empty lines, words in comments.
    Nothing,
    /// New lines that are whole cases, and all that was there is there still.
    Grown,
    /// New lines that take away from what was there.
    Weakened(&'static str),
    /// Something else.
    Edited,
}

/// What a comment looks like that tools obey.
static OBEYED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^\s*[!+@*\[]|go:|\+build|@\w|\w\s*[:=]\s*\w*(?:ignore|skip|disable|off|on|enable|allow|true|false)|noqa|nolint|-\*-")
        .expect("it is a constant")
});

/// What begins a text whose lines may look like comments: a here-document, or a variable of many lines of a Makefile.
static LONG_TEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)<<[-~]?["'\\]?[A-Za-z_]|<<-? +["'\\]?[A-Z_]+\b|^\s*(?:override\s+|export\s+)?define\s"#)
        .expect("it is a constant")
});

/// What begins a text of many lines in YAML.
static BLOCK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?m)(?:^|[\s:-])[|>][-+0-9]*[ \t]*(?:#.*)?$").expect("it is a constant"));

/// A line that begins what has a name.
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\s*(?:async\s+)?(?:export\s+)?(?:public\s+)?(?:def|class|function|sub)\s+\w+)")
        .expect("it is a constant")
});

/// Compares two texts of a file.
pub(super) fn compare(path: &str, start: &str, end: &str) -> TextChange {
    let language = CATALOG.language(path);
    let is_whole = language.is_none() || [start, end].into_iter().any(|text| has_long_text(path, text));
    let lines = |text| if is_whole { all(text) } else { counted(text, language) };
    let (start, end) = (lines(start), lines(end));
    if start == end {
        return TextChange::Nothing;
    }
    if !is_grown(&start, &end) {
        return TextChange::Edited;
    }
    if let Some(why) = weakened(&start, &end, language) {
        return TextChange::Weakened(why);
    }
    let are_cases = language.is_none_or(|language| are_whole_cases(&start, &end, &CATALOG.cases(language)));
    if are_cases { TextChange::Grown } else { TextChange::Edited }
}

/// Tells why a new test has a say in more than itself.
pub(super) fn of_others(path: &str, text: &str) -> Option<&'static str> {
    let language = CATALOG.language(path)?;
    let lines = counted(text, Some(language));
    let mut rows = CATALOG.weakenings.iter().filter(|row| row.of_others && row.is_of(Some(language)));
    let row = rows.find(|row| lines.iter().any(|line| row.pattern.is_match(&line.code)))?;
    Some(&row.what)
}

/// Tells whether a file of code has a line that does something.
pub(super) fn is_empty(path: &str, text: &str) -> bool {
    counted(text, CATALOG.language(path)).is_empty()
}

/// Tells whether a file has a text of many lines that is not told from code and comments.
fn has_long_text(path: &str, text: &str) -> bool {
    LONG_TEXT.is_match(text) || (matches!(extension(path), Some("yaml" | "yml")) && BLOCK.is_match(text))
}

/// Returns all lines, each with all that it has.
fn all(text: &str) -> Vec<CountedLine> {
    text.split('\n').map(CountedLine::of_text).collect()
}

/// Returns the lines that count.
fn counted(text: &str, language: Option<&Language>) -> Vec<CountedLine> {
    let Some(language) = language else {
        let lines = text.lines().map(|line| CountedLine::of_text(line.trim_end()));
        return lines.filter(|line| !line.code.is_empty()).collect();
    };
    let mut lines: Vec<CountedLine> = Vec::new();
    for source in source_lines(text, language) {
        let line = line(&source);
        match lines.last_mut() {
            // An empty line within a text is part of what the text says.
            Some(before) if source.ends_in_text && line.code.trim().is_empty() => {
                before.code.push('\n');
                before.code.push_str(&line.code);
            }
            Some(_) | None if line.code.is_empty() => {}
            Some(_) | None => lines.push(line),
        }
    }
    lines
}

fn line(line: &SourceLine) -> CountedLine {
    let code = if line.ends_in_text { line.code.as_str() } else { line.code.trim_end() };
    let is_obeyed = OBEYED.is_match(&line.comment);
    let code = if is_obeyed { format!("{code}#{}", line.comment.trim()) } else { code.to_owned() };
    CountedLine { code, bare: line.bare.trim_end().to_owned(), is_obeyed }
}

/// Tells why new lines take something away from those that were there.
fn weakened(start: &[CountedLine], end: &[CountedLine], language: Option<&Language>) -> Option<&'static str> {
    let mut old = start.iter().peekable();
    for (at, line) in end.iter().enumerate() {
        if old.peek().is_some_and(|next| *next == line) {
            old.next();
            continue;
        }
        let next_old = old.peek().map(|next| next.code.as_str());
        let line = line.code.as_str();
        let is_before = next_old.is_some_and(|next| indentation(next) >= indentation(line));
        let is_within = is_before && !next_old.is_some_and(is_closer);
        let counts = |before: Before| match before {
            Before::End => true,
            Before::Line => is_within,
            Before::Anything => is_before,
        };
        let mut rows = CATALOG.weakenings.iter().filter(|row| row.is_of(language) && counts(row.before));
        if let Some(row) = rows.find(|row| row.pattern.is_match(line)) {
            return Some(&row.what);
        }
        let name = NAMED.find(line).map(|name| name.as_str());
        let is_named_twice = name.is_some_and(|name| {
            let again =
                |other: &&CountedLine| NAMED.find(&other.code).is_some_and(|found| found.as_str() == name);
            start.iter().any(|other| again(&other)) && end.iter().filter(again).count() > 1
        });
        if is_named_twice && at > 0 {
            return Some("takes the place of a test of the same name");
        }
    }
    None
}

fn is_closer(line: &str) -> bool {
    line.trim_start().starts_with(['}', ')', ']'])
        || matches!(line.trim(), "end" | "fi" | "done" | "esac" | "else")
        || NAMED.is_match(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_to_a_test_is_known() {
        use TextChange::*;
        let twice = "takes the place of a test of the same name";
        let test = "def test_a():\n    x = 1\n    assert x == 1\n";
        for (path, start, end, expected) in [
            ("a.py", test, "def test_a():\n    x = 1  # one\n\n    assert x == 1\n", Nothing),
            ("a.py", test, &*format!("{test}\ndef test_b():\n    assert f()\n"), Grown),
            ("a.py", test, "def test_a():\n    x = 1\n    assert x == 2\n", Edited),
            ("a.py", test, "def test_a():\n    x = 1\n", Edited),
            (
                "a.py",
                test,
                "def test_a():\n    x = 1\n    return\n    assert x == 1\n",
                Weakened("leaves a test before its end"),
            ),
            ("a.py", test, &*format!("def helper():\n    return\n{test}"), Edited),
            ("a.py", test, &*format!("{test}\ndef test_a():\n    pass\n"), Weakened(twice)),
            (
                "a.py",
                test,
                &*format!("import calc\ncalc.add = lambda a, b: 3\n{test}"),
                Weakened("replaces what a test calls"),
            ),
            (
                "a.ts",
                "it('a', () => {\n  f();\n});\n",
                "it('a', () => {\n  return;\n  f();\n});\n",
                Weakened("leaves a test before its end"),
            ),
            (
                "a.go",
                "package a\n// b\n",
                "//go:build never\npackage a\n",
                Weakened("keeps what follows from being read"),
            ),
            ("a.txt", "a\nb\n", "a\nb  \n\n", Edited),
            ("a.py", "A = '''a\n\nb\n'''\n", "A = '''a\nb\n'''\n", Edited),
            ("a.py", "A = '''a  \nb\n'''\n", "A = '''a\nb\n'''\n", Edited),
            ("a.py", "A = '''a\nb'''\n", "A = '''a\nb'''  \n\n# c\n", Nothing),
            ("a.sh", "diff o - <<'EOF'\n# a\nEOF\n", "diff o - <<'EOF'\n# b\nEOF\n", Edited),
            ("a.sh", "# a\nf\n", "# b\nf\n", Nothing),
            ("a.yaml", "a: |\n  # a\n", "a: |\n  # b\n", Edited),
            ("a.yaml", "a: 1 # a\n", "a: 1 # b\n", Nothing),
            ("a.txt", "a\nb\n", "b\na\n", Edited),
        ] {
            assert_eq!(compare(path, start, end), expected, "{end}");
        }
    }
}
