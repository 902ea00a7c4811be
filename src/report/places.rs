//! Finds the places in the tree that an output names: messages of compilers, stack traces, the summary of pytest. The
//! output is hostile; only files that exist are named, and what is said about them stays text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A longer line is data, not a message.
const MAX_LINE: usize = 2000;

/// How far above a stack its message is looked for, in lines.
const MESSAGE_WITHIN: usize = 20;

/// A place that an output names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPlace {
    /// The file, relative to the root of the repository.
    pub(super) file: String,
    /// The line, where the output has one.
    pub(super) line: Option<u32>,
    /// The column, where the output has one.
    pub(super) column: Option<u32>,
    /// What is said about it.
    pub(super) said: String,
}

type PlacePattern = LazyLock<Option<Regex>>;

/// `src/a.rs:3:5: error: …`, `a.py:3: error: …`, `./main.go:3:5: …`, `a.ts:3:5 - error …`.
static COLONS: PlacePattern =
    LazyLock::new(|| Regex::new(r"^\s*([^\s:()]+):([0-9]{1,7})(?::([0-9]{1,5}))?(?::|\s+-)\s+(\S.*)$").ok());

/// `a.ts(3,5): error TS2322: …`.
static PARENTHESES: PlacePattern =
    LazyLock::new(|| Regex::new(r"^\s*([^\s:()]+)\(([0-9]{1,7})(?:,([0-9]{1,5}))?\)\s*:\s+(\S.*)$").ok());

/// `  --> src/main.rs:3:5` under the line that holds the message.
static ARROW: PlacePattern =
    LazyLock::new(|| Regex::new(r"^\s*-->\s+([^\s:()]+):([0-9]{1,7})(?::([0-9]{1,5}))?\s*$").ok());

/// `  File "app/a.py", line 3, in top`: a frame of Python, also within a group of exceptions.
static PYTHON: PlacePattern =
    LazyLock::new(|| Regex::new(r#"^([\s|+]*)File "([^"]+)", line ([0-9]{1,7})(?:, in .*)?\s*$"#).ok());

/// `    at sum (lib/x.js:2:11)`: a frame of Node.js.
static FRAME: PlacePattern =
    LazyLock::new(|| Regex::new(r"^\s+at .*\(([^()]+):([0-9]{1,7}):([0-9]{1,5})\)\s*\{?\s*$").ok());

/// `    at lib/x.js:2:11`: the same without a name, and a frame of Rust.
static BARE_FRAME: PlacePattern =
    LazyLock::new(|| Regex::new(r"^\s+at (?:async )?([^()\s]+):([0-9]{1,7}):([0-9]{1,5})\s*\{?\s*$").ok());

/// Any line of a stack of Node.js or Rust, with a place or without.
static STACK: PlacePattern = LazyLock::new(|| Regex::new(r"^\s+(?:at|[0-9]+:) \S|^\s*stack backtrace:").ok());

/// `thread 'main' panicked at src/lib.rs:3:5:`, with the message in the next line.
static PANIC: PlacePattern = LazyLock::new(|| {
    Regex::new(r"^\s*thread '.*' (?:\([0-9]+\) )?panicked at ([^\s'][^']*):([0-9]{1,7}):([0-9]{1,5}):?\s*$")
        .ok()
});

/// `thread 'main' panicked at 'message', src/lib.rs:3:5`, as it was before Rust 1.73.
static OLD_PANIC: PlacePattern = LazyLock::new(|| {
    Regex::new(r"^\s*thread '.*' panicked at '(.*)', ([^']+):([0-9]{1,7}):([0-9]{1,5})\s*$").ok()
});

/// `FAILED tests/a.py::test_b - assert 1 == 2`, and `ERROR` for a test that did not begin.
static SUMMARY: PlacePattern = LazyLock::new(|| {
    Regex::new(r"^(?:FAILED|ERROR)\s+([^\s:][^:]*?\.\w+)(?:::([^\[\s]+?(?:\[.*?\])?))?(?: - (.*))?$").ok()
});

/// `____ test_b ____`: what pytest says about a test begins.
static SECTION: PlacePattern = LazyLock::new(|| Regex::new(r"^_{3,} (?:ERROR at \w+ of )?(.+?) _{3,}$").ok());

/// `app/a.py:3: in top`, and `app/a.py:3: ` above another frame: a frame of pytest.
static PYTEST_FRAME: PlacePattern =
    LazyLock::new(|| Regex::new(r"^([^\s:()]+):([0-9]{1,7}):(?:\s+in \S.*|\s*)$").ok());

/// The line that says what was thrown.
static THROWN: PlacePattern = LazyLock::new(|| {
    Regex::new(
        r"^\s*(?:Uncaught )?(?:[A-Za-z_$][\w$.]*)?(?:Error|Exception)(?: \[[^\]]*\])?(?::\s.*)?$|^\s*● .*\S",
    )
    .ok()
});

/// Returns the places in the tree that a text names, in their order, with what it says about them. `find` finds a file
/// by a path as tools write it.
pub(super) fn places(text: &str, find: impl Fn(&str) -> Option<String>) -> Vec<NamedPlace> {
    let mut reader = OutputReader {
        find: &find,
        found: Vec::new(),
        before: Vec::new(),
        python: None,
        panic: Panic::None,
        is_in_stack: false,
        section: PytestSection::default(),
        explained: HashSet::new(),
    };
    for line in text.lines().filter(|line| line.len() <= MAX_LINE && !line.trim().is_empty()) {
        reader.line(line);
        reader.before.push(line);
    }
    reader.end();
    reader.found
}

/// A traceback of Python that is being read.
struct Traceback {
    /// How far its frames are indented.
    indent: usize,
    /// The innermost frame in the tree so far.
    innermost: Option<NamedPlace>,
}

/// A panic of Rust that is being read.
enum Panic<'t> {
    None,
    /// In the tree, with its message still to come.
    Here(NamedPlace),
    /// Elsewhere: a frame of its stack may be in the tree. The message may still be to come.
    Elsewhere(Option<&'t str>),
}

/// What pytest says about one test.
#[derive(Default)]
struct PytestSection {
    /// The test, with dots.
    test: String,
    /// The innermost frame in the tree so far.
    innermost: Option<NamedPlace>,
    /// What was thrown.
    thrown: String,
}

struct OutputReader<'f, 't> {
    find: &'f dyn Fn(&str) -> Option<String>,
    found: Vec<NamedPlace>,
    before: Vec<&'t str>,
    python: Option<Traceback>,
    panic: Panic<'t>,
    is_in_stack: bool,
    section: PytestSection,
    /// The tests of pytest about which a place was found.
    explained: HashSet<String>,
}

impl<'t> OutputReader<'_, 't> {
    fn line(&mut self, line: &'t str) {
        // Before anything else: whatever stands below a panic is its message, even if it looks like a place.
        self.message_of_panic(line);
        self.is_in_stack &= matches(&STACK, line);
        // Messages of compilers come last, because a frame of pytest has their form, too.
        let _ = self.python(line)
            || self.frame(line)
            || self.panic(line)
            || self.pytest(line)
            || self.compiler(line);
    }

    fn end(&mut self) {
        if let Some(Traceback { innermost, .. }) = self.python.take() {
            self.found.extend(innermost);
        }
        if let Panic::Here(named) = std::mem::replace(&mut self.panic, Panic::None) {
            self.found.push(named);
        }
        self.end_section();
    }

    /// Reads the frames of a traceback; the first line behind them that is indented less says what was raised.
    fn python(&mut self, line: &str) -> bool {
        if let Some(frame) = captures(&PYTHON, line) {
            let indent = frame[1].len();
            // A frame that is indented otherwise belongs to another traceback.
            let open = self.python.take().filter(|open| open.indent == indent);
            let named = self.named(&frame[2], frame.get(3), None, "").filter(is_own);
            let innermost = named.or(open.and_then(|open| open.innermost));
            self.python = Some(Traceback { indent, innermost });
            return true;
        }
        let Some(open) = &self.python else { return false };
        let lead = line.len() - line.trim_start_matches(|c: char| c.is_whitespace() || c == '|').len();
        // The source line below a frame, or what marks a part of it.
        if lead >= open.indent {
            return true;
        }
        if let Some(Traceback { innermost: Some(named), .. }) = self.python.take() {
            let said = line[lead..].trim().to_owned();
            self.found.push(NamedPlace { said, ..named });
        }
        true
    }

    /// Reads a frame of Node.js or Rust: the first one of a stack that is in the tree is where it happened.
    fn frame(&mut self, line: &str) -> bool {
        if line.trim() == "stack backtrace:" {
            // Where a panic is in the tree, it was named already.
            self.is_in_stack = !matches!(self.panic, Panic::Elsewhere(_));
            return true;
        }
        let Some(frame) = captures(&FRAME, line).or_else(|| captures(&BARE_FRAME, line)) else {
            return false;
        };
        let path = unescaped(frame[1].strip_prefix("file://").unwrap_or(&frame[1]));
        let named = self.named(&path, frame.get(2), frame.get(3), "").filter(is_own);
        if let Some(named) = named.filter(|_| !self.is_in_stack) {
            let said = match std::mem::replace(&mut self.panic, Panic::None) {
                Panic::Elsewhere(said) => said.unwrap_or(""),
                Panic::Here(_) | Panic::None => self.thrown(),
            };
            self.is_in_stack = true;
            self.found.push(NamedPlace { said: said.trim().to_owned(), ..named });
        }
        true
    }

    /// Returns the line above a stack that says what was thrown.
    fn thrown(&self) -> &'t str {
        let above = self.before.iter().rev().take(MESSAGE_WITHIN).filter(|line| !matches(&STACK, line));
        let mut above = above.copied();
        let last = above.clone().next().unwrap_or("");
        above.find(|line| matches(&THROWN, line)).unwrap_or(last).trim()
    }

    fn panic(&mut self, line: &'t str) -> bool {
        let (place, said) = if let Some(panic) = captures(&PANIC, line) {
            (self.named(&panic[1], panic.get(2), panic.get(3), ""), None)
        } else if let Some(panic) = captures(&OLD_PANIC, line) {
            let said = panic.get(1).map_or("", |said| said.as_str());
            (self.named(&panic[2], panic.get(3), panic.get(4), said), Some(said))
        } else {
            return false;
        };
        self.is_in_stack = false;
        self.panic = match (place.filter(is_own), said) {
            (Some(named), Some(_)) => {
                self.found.push(named);
                Panic::None
            }
            (Some(named), None) => Panic::Here(named),
            (None, said) => Panic::Elsewhere(said),
        };
        true
    }

    /// Takes the line below a panic for its message.
    fn message_of_panic(&mut self, line: &'t str) {
        match std::mem::replace(&mut self.panic, Panic::None) {
            Panic::Here(named) => self.found.push(NamedPlace { said: line.trim().to_owned(), ..named }),
            Panic::Elsewhere(said) => self.panic = Panic::Elsewhere(said.or(Some(line))),
            Panic::None => {}
        }
    }

    /// Reads what pytest says about one test, and its summary.
    fn pytest(&mut self, line: &str) -> bool {
        if let Some(section) = captures(&SECTION, line) {
            self.end_section();
            section[1].clone_into(&mut self.section.test);
            return true;
        }
        if line.starts_with("=====") {
            self.end_section();
            return true;
        }
        if !self.section.test.is_empty() {
            // pytest begins every line of an explanation like that, and the first of them says what was thrown.
            if let Some(thrown) = line.strip_prefix("E  ").filter(|_| self.section.thrown.is_empty()) {
                self.section.thrown = thrown.trim().to_owned();
                return true;
            }
            if let Some(frame) = captures(&PYTEST_FRAME, line) {
                let named = self.named(&frame[1], frame.get(2), None, "").filter(is_own);
                self.section.innermost = named.or(self.section.innermost.take());
                return true;
            }
        }
        let Some(summary) = captures(&SUMMARY, line) else { return false };
        let test = summary.get(2).map_or("", |test| test.as_str()).replace("::", ".");
        let said = summary.get(3).map_or("", |said| said.as_str());
        let words = [test.as_str(), said].into_iter().filter(|word| !word.is_empty());
        let Some(named) = self.named(&summary[1], None, None, &words.collect::<Vec<_>>().join(": ")) else {
            return false;
        };
        let is_said =
            |other: &NamedPlace| !said.is_empty() && other.file == named.file && other.said.contains(said);
        // A place that was found before has a line of the file, which the summary of pytest does not have.
        if !self.explained.contains(&test) && !self.found.iter().any(is_said) {
            self.found.push(named);
        }
        true
    }

    /// Keeps what is known of the test of a section: that it was thrown in the tree, or below its innermost frame
    /// there.
    fn end_section(&mut self) {
        let PytestSection { test, innermost, thrown } = std::mem::take(&mut self.section);
        if let Some(named) = innermost.filter(|_| !thrown.is_empty() && !self.explained.contains(&test)) {
            self.explained.insert(test);
            self.found.push(NamedPlace { said: thrown, ..named });
        }
    }

    fn compiler(&mut self, line: &str) -> bool {
        let above = self.before.last().copied().unwrap_or("");
        let inline = || captures(&COLONS, line).or_else(|| captures(&PARENTHESES, line));
        let (place, said) = match captures(&ARROW, line) {
            Some(place) => (place, Cow::Borrowed(above)),
            None => match inline() {
                Some(place) => {
                    let said = place.get(4).map_or("", |said| said.as_str()).to_owned();
                    (place, explained(&said, above))
                }
                None => return false,
            },
        };
        let named = self.named(&place[1], place.get(2), place.get(3), said.trim());
        let is_of_pytest = !self.section.test.is_empty() && above.starts_with("E ");
        if let Some(named) = named.filter(|named| !is_of_pytest || is_own(named)) {
            if is_of_pytest {
                self.explained.insert(self.section.test.clone());
            }
            self.found.push(named);
        }
        true
    }

    fn named(
        &self,
        path: &str,
        line: Option<regex::Match<'_>>,
        column: Option<regex::Match<'_>>,
        said: &str,
    ) -> Option<NamedPlace> {
        let number = |text: regex::Match<'_>| text.as_str().parse::<u32>().ok().filter(|number| *number > 0);
        let line = match line {
            Some(line) => Some(number(line)?),
            None => None,
        };
        let file = (self.find)(path)?;
        Some(NamedPlace { file, line, column: column.and_then(number), said: said.to_owned() })
    }
}

/// Returns what is said with the line before it, where pytest explains what `AssertionError` alone does not.
fn explained<'t>(said: &str, before: &'t str) -> Cow<'t, str> {
    match before.strip_prefix("E ") {
        Some(why) if said.ends_with("Error") => Cow::Owned(format!("{said}: {}", why.trim())),
        Some(_) | None => Cow::Owned(said.to_owned()),
    }
}

/// Tells whether a file is of the repository itself, and not of what was installed into it.
fn is_own(named: &NamedPlace) -> bool {
    const INSTALLED: [&str; 6] = ["node_modules", "site-packages", "dist-packages", ".venv", "venv", ".tox"];
    !named.file.split('/').any(|part| INSTALLED.contains(&part))
}

/// Returns a path of a `file:` URL without its escapes.
fn unescaped(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped =
            digits.filter(|_| *first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &more[2..] } else { more };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(path), Cow::Owned)
}

fn matches(pattern: &PlacePattern, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

fn captures<'t>(pattern: &PlacePattern, line: &'t str) -> Option<Captures<'t>> {
    pattern.as_ref().and_then(|pattern| pattern.captures(line))
}
