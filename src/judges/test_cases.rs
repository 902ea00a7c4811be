//! New lines in a test that was there. Only whole cases, and rows of a table of cases, surely take nothing away from the
//! others; an import, a helper, a hook or half a case may.

use std::ops::Range;

use super::judge_catalog::{CATALOG, CaseRow};

/// A line of a test that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CountedLine {
    /// What is not a comment, and the comment if tools obey it.
    pub(super) code: String,
    /// The code without what stands within quotes.
    pub(super) bare: String,
    /// Whether it has a comment that tools obey.
    pub(super) is_obeyed: bool,
}

impl CountedLine {
    /// A line of a file that is not in a language.
    pub(super) fn of_text(line: &str) -> Self {
        Self { code: line.to_owned(), bare: line.to_owned(), is_obeyed: false }
    }
}

/// Returns how many bytes of blanks a line begins with.
pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Tells whether all new lines are whole cases or rows of tables. All lines of the start have to be in the end.
pub(super) fn are_whole_cases(start: &[CountedLine], end: &[CountedLine], rows: &[&CaseRow]) -> bool {
    let insertion = Insertion { end, rows };
    // Which of several equal lines is the new one cannot be known: one reading that takes nothing away is enough.
    [from_the_top(start, end), from_the_bottom(start, end)].iter().any(|new| insertion.are_whole(new))
}

/// Returns which lines of the end are new, where those of the start are found as early as they can be.
fn from_the_top(start: &[CountedLine], end: &[CountedLine]) -> Vec<bool> {
    let mut old = start.iter().peekable();
    end.iter().map(|line| old.next_if(|next| *next == line).is_none()).collect()
}

fn from_the_bottom(start: &[CountedLine], end: &[CountedLine]) -> Vec<bool> {
    let mut old = start.iter().rev().peekable();
    let mut new: Vec<bool> =
        end.iter().rev().map(|line| old.next_if(|next| *next == line).is_none()).collect();
    new.reverse();
    new
}

/// The end of a test, into which lines were put.
struct Insertion<'a> {
    end: &'a [CountedLine],
    rows: &'a [&'a CaseRow],
}

impl Insertion<'_> {
    fn are_whole(&self, new: &[bool]) -> bool {
        let mut at = 0;
        while at < new.len() {
            let length = new[at..].iter().take_while(|is_new| **is_new).count();
            if length > 0 && !self.slid(new, at..at + length).into_iter().any(|run| self.is_whole(run)) {
                return false;
            }
            at += length + 1;
        }
        true
    }

    /// Returns the places of a run of new lines that make the same end, up to the next run.
    fn slid(&self, new: &[bool], run: Range<usize>) -> Vec<Range<usize>> {
        let is_old = |at: usize| new.get(at).is_some_and(|is_new| !is_new);
        let mut found = vec![run.clone()];
        let mut up = run.clone();
        while up.start > 0 && is_old(up.start - 1) && self.end[up.start - 1] == self.end[up.end - 1] {
            up = up.start - 1..up.end - 1;
            found.push(up.clone());
        }
        let mut down = run;
        while is_old(down.end) && self.end[down.start] == self.end[down.end] {
            down = down.start + 1..down.end + 1;
            found.push(down.clone());
        }
        found
    }

    fn is_whole(&self, run: Range<usize>) -> bool {
        let after = self.end.get(run.end);
        let lines = &self.end[run.clone()];
        let base = indentation(&lines[0].code);
        let swallows = after.is_some_and(|next| indentation(&next.code) > base);
        let is_led = self.statement_before(run.start).is_some_and(|line| self.is_ahead(line));
        let are_cases = !swallows && !is_led && self.are_cases(lines, base);
        are_cases || lines.iter().all(|line| self.is_row_ahead(line)) || self.are_rows(run)
    }

    fn are_cases(&self, lines: &[CountedLine], base: usize) -> bool {
        let mut cases = Cases { depth: 0, marked: None, is_open: false, is_begun: false };
        lines.iter().all(|line| cases.take(line, base, self.rows).is_some())
            && cases.depth == 0
            && cases.marked.is_none()
    }

    /// Returns the first line of the statement in front of a line.
    fn statement_before(&self, at: usize) -> Option<&CountedLine> {
        let mut closed = 0_usize;
        self.end[..at].iter().rev().find(|line| {
            for sign in line.bare.chars().rev() {
                match sign {
                    ')' | ']' | '}' => closed += 1,
                    '(' | '[' | '{' => closed = closed.saturating_sub(1),
                    _ => {}
                }
            }
            closed == 0
        })
    }

    fn is_ahead(&self, line: &CountedLine) -> bool {
        self.rows.iter().any(|row| is_of(row.ahead.as_ref(), line))
    }

    /// Tells whether a line in front of a case is one more row for it.
    fn is_row_ahead(&self, line: &CountedLine) -> bool {
        self.rows.iter().any(|row| is_of(row.rows.as_ref(), line))
    }

    /// Tells whether lines are rows of a table of cases: values in brackets, in a list that says what it is.
    fn are_rows(&self, run: Range<usize>) -> bool {
        let Some(table) = self.innermost(run.start) else { return false };
        if !CATALOG.tables.is_match(&self.end[table].code) {
            return false;
        }
        let mut depth = 0_usize;
        for line in &self.end[run] {
            let bare = line.bare.trim();
            if depth == 0 && !bare.starts_with(['(', '[', '{']) {
                return false;
            }
            let Some(next) = depth_behind(depth, bare) else { return false };
            depth = next;
            if depth == 0 && !bare.ends_with(',') {
                return false;
            }
        }
        depth == 0
    }

    /// Returns the line that opens the list in which a line stands.
    fn innermost(&self, to: usize) -> Option<usize> {
        let mut open = Vec::new();
        for (at, line) in self.end[..to].iter().enumerate() {
            for sign in line.bare.chars() {
                match sign {
                    '(' | '[' | '{' => open.push((at, sign)),
                    ')' | ']' | '}' => drop(open.pop()),
                    _ => {}
                }
            }
        }
        open.pop().filter(|(_, sign)| *sign != '(').map(|(at, _)| at)
    }
}

/// Cases that are read line by line.
struct Cases {
    /// Brackets that are open.
    depth: usize,
    /// Whether the lines in front of a case have marked it, where there are such lines.
    marked: Option<bool>,
    /// Whether a case has begun, and its body may follow.
    is_open: bool,
    /// Whether one has begun at all.
    is_begun: bool,
}

impl Cases {
    /// Takes a line, if it belongs to a case.
    fn take(&mut self, line: &CountedLine, indent: usize, rows: &[&CaseRow]) -> Option<()> {
        let bare = line.bare.trim();
        let is_text = bare.is_empty() && !line.is_obeyed;
        let is_outer = self.depth == 0 && indentation(&line.code) <= indent && !is_text;
        if is_outer && !self.takes_outer(line, indent, rows) {
            return None;
        }
        if !is_outer && !self.is_begun && self.marked.is_none() {
            return None;
        }
        self.depth = depth_behind(self.depth, bare)?;
        Some(())
    }

    fn takes_outer(&mut self, line: &CountedLine, indent: usize, rows: &[&CaseRow]) -> bool {
        let bare = line.bare.trim();
        let was_open = std::mem::replace(&mut self.is_open, false);
        if indentation(&line.code) < indent || bare.is_empty() {
            return false;
        }
        let closes = matches!(bare, "end" | "}" | "};" | "})" | "});");
        if was_open && self.marked.is_none() && (bare.starts_with('{') || closes) {
            return true;
        }
        let begins = |row: &&&CaseRow| {
            row.begins.is_match(&line.bare) && (row.marks.is_none() || self.marked == Some(true))
        };
        if rows.iter().any(|row| begins(&row)) && !continues(bare) {
            (self.marked, self.is_open, self.is_begun) = (None, true, true);
            return true;
        }
        let is_ahead = rows.iter().any(|row| is_of(row.ahead.as_ref(), line));
        let is_mark = rows.iter().any(|row| is_of(row.marks.as_ref(), line));
        if is_ahead {
            self.marked = Some(is_mark || self.marked == Some(true));
        }
        is_ahead
    }
}

fn is_of(pattern: Option<&super::judge_catalog::Pattern>, line: &CountedLine) -> bool {
    pattern.is_some_and(|pattern| pattern.is_match(&line.bare))
}

/// Tells whether something stands behind the end of a statement.
fn continues(bare: &str) -> bool {
    let mut depth = 0_usize;
    for (at, sign) in bare.char_indices() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 && at + 1 < bare.len() => return true,
            _ => {}
        }
    }
    false
}

/// Returns how many brackets are open behind a line; none if it closes one that was not opened in the new lines.
fn depth_behind(depth: usize, bare: &str) -> Option<usize> {
    bare.chars().try_fold(depth, |depth, sign| match sign {
        '(' | '[' | '{' => Some(depth + 1),
        ')' | ']' | '}' => depth.checked_sub(1),
        _ => Some(depth),
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_changes::{TextChange, compare};
    use super::*;

    fn file(language: &str) -> &'static str {
        match language {
            "python" => "a.py",
            "rust" => "a.rs",
            "js" => "a.ts",
            "go" => "a_test.go",
            "java" => "A.java",
            "csharp" => "A.cs",
            "cpp" => "a.cc",
            "ruby" => "a.rb",
            "php" => "a.php",
            "shell" => "a.bats",
            "elixir" => "a.exs",
            "swift" => "a.swift",
            "zig" => "a.zig",
            other => panic!("{other}"),
        }
    }

    #[test]
    fn each_row_knows_whole_cases_from_everything_else() {
        for row in &CATALOG.cases {
            let path = file(&row.language);
            for text in &row.examples {
                assert_eq!(compare(path, "", text), TextChange::Grown, "{}: {text}", row.what);
            }
            for text in &row.others {
                assert_ne!(compare(path, "", text), TextChange::Grown, "{}: {text}", row.what);
            }
        }
    }

    #[test]
    fn new_lines_are_whole_where_they_stand() {
        let rust = "mod tests {\n    #[test]\n    fn a() {\n        f();\n    }\n}\n";
        let more = "mod tests {\n    #[test]\n    fn a() {\n        f();\n    }\n\n    #[test]\n    fn b() {\n        g();\n    }\n}\n";
        let python = "@pytest.mark.parametrize('a', [\n    (1, 2),\n])\ndef test_a(a):\n    f(a)\n";
        for (path, start, end, is_whole) in [
            ("a.rs", rust, more.to_owned(), true),
            ("a.py", python, python.replace("(1, 2),\n", "(1, 2),\n    (3, 4),\n"), true),
            ("a.py", python, python.replace("def test_a", "def test_b():\n    g()\ndef test_a"), false),
            ("a.py", "def test_a():\n    f()\n", "def test_a():\ndef test_b():\n    f()\n".to_owned(), false),
            (
                "a.py",
                "assert f() == [\n    (1, 2),\n]\n",
                "assert f() == [\n    (1, 2),\n    (3, 4),\n]\n".to_owned(),
                false,
            ),
            (
                "a.py",
                "def test_a():\n    f()\n",
                "def test_b():\n    '''\ndef test_a():\n    f()\n    '''\n".to_owned(),
                false,
            ),
            (
                "a.go",
                "x := []struct{ a int }{\n\t{1},\n}\n",
                "x := []struct{ a int }{\n\t{1},\n\t{2},\n}\n".to_owned(),
                true,
            ),
            (
                "a.ts",
                "it('a', () => {\n  f();\n});\n",
                "it('a', () => {\n  g();\n  f();\n});\n".to_owned(),
                false,
            ),
        ] {
            assert_eq!(compare(path, start, &end) == TextChange::Grown, is_whole, "{path}: {end}");
        }
    }
}
