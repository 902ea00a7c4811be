//! Keeps what a command prints from being obeyed: in the log of a job, a line of a loop file, of a name or of what an
//! action printed may be a command for the CI system.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use crate::report::dialect::Dialect;

/// How a text is written, and so how a character can be written otherwise in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// For people: what a command begins with has a sign before it.
    Text,
    /// As JSON, whose value stays the same.
    Json,
    /// As HTML or XML, whose content stays the same.
    Markup,
}

impl Syntax {
    fn escaped(self, c: char, out: &mut String) {
        let _infallible = match self {
            Self::Text => write!(out, "{c}"),
            Self::Json => write!(out, "\\u{:04x}", u32::from(c)),
            Self::Markup => write!(out, "&#{};", u32::from(c)),
        };
    }
}

/// Returns a text in which no line is a command.
pub fn harmless<'t>(text: &'t str, syntax: Syntax, dialect: &dyn Dialect) -> Cow<'t, str> {
    let is_harmless = |line: &str| dialect.disarmed(line) == line;
    if text.lines().all(is_harmless) {
        // Rarely is there anything to do, and then the text is not copied.
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let disarmed = dialect.disarmed(line);
        match syntax {
            Syntax::Text => out.push_str(&disarmed),
            // In JSON and markup a sign that is put in would change the value.
            Syntax::Json | Syntax::Markup => escaped(line, &disarmed, syntax, &mut out),
        }
    }
    Cow::Owned(out)
}

/// Writes each character otherwise before which the dialect would put something.
fn escaped(line: &str, disarmed: &str, syntax: Syntax, out: &mut String) {
    let mut seen = disarmed.chars();
    for c in line.chars() {
        if seen.next() == Some(c) {
            out.push(c);
            continue;
        }
        syntax.escaped(c, out);
        // What was put there.
        let _found = seen.find(|other| *other == c);
    }
}

/// A stream in which no line is a command for a CI system whose language is not the one that is written.
pub struct HarmlessLines {
    out: Box<dyn Write + Send>,
    dialect: Box<dyn Dialect>,
    /// The beginning of a line: whether it is a command is known at its end.
    begun: Vec<u8>,
}

impl HarmlessLines {
    /// Makes one that writes to `out`, which is read by the system with this dialect.
    pub fn new(out: Box<dyn Write + Send>, dialect: Box<dyn Dialect>) -> Self {
        Self { out, dialect, begun: Vec::new() }
    }

    fn release(&mut self, length: usize) -> io::Result<()> {
        let lines: Vec<u8> = self.begun.drain(..length).collect();
        let lines = String::from_utf8_lossy(&lines);
        self.out.write_all(harmless(&lines, Syntax::Text, self.dialect.as_ref()).as_bytes())
    }
}

impl Write for HarmlessLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        // Part of a line waits, because a mark may come in two writes.
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole > 0 {
            self.release(whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for HarmlessLines {
    fn drop(&mut self) {
        // The last line may have no end.
        let _closed = self.release(self.begun.len()).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::ci::Provider;

    /// A stream that a test can read.
    #[derive(Clone, Default)]
    struct CapturedStream(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedStream {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_command_in_pieces_is_none() {
        let kept = CapturedStream::default();
        let azure = Provider::by_name("azure", &|_| None).unwrap().dialect();
        let mut lines = HarmlessLines::new(Box::new(kept.clone()), azure);
        for piece in ["fine\n│ ##v", "so[task.setvariable]", "x\n##vso[a]", "b"] {
            lines.write_all(piece.as_bytes()).unwrap();
            lines.flush().unwrap();
        }
        let text = || String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text(), "fine\n│ ##vso [task.setvariable]x\n");
        drop(lines);
        assert_eq!(text(), "fine\n│ ##vso [task.setvariable]x\n##vso [a]b");
    }

    const HOSTILE: &str = "::error::a\n \u{200b}:\u{ad}:set-output name=x::y\n##[error]b\nc ##vso[task.setvariable]\n\
        ##teamcity[buildStop]\n--- d\n +++ e\n~~~\n^^^ +++\nsection_start:1:a\ntravis_fold:start:a\n##[a]##[b]\n";

    #[test]
    fn no_line_is_a_command_however_it_is_written() {
        for name in Provider::names() {
            let dialect = Provider::by_name(name, &|_| None).unwrap().dialect();
            for syntax in [Syntax::Text, Syntax::Json, Syntax::Markup] {
                let out = harmless(HOSTILE, syntax, dialect.as_ref());
                for line in out.lines() {
                    assert_eq!(dialect.disarmed(line), line, "{name} {syntax:?}");
                }
            }
        }
    }

    #[test]
    fn json_has_the_same_value_and_other_text_stays() {
        let github = Provider::by_name("github", &|_| None).unwrap().dialect();
        let value = serde_json::json!({"::a": HOSTILE, "b": [HOSTILE]});
        let text = format!("{value:#}");
        let out = harmless(&text, Syntax::Json, github.as_ref());
        assert_ne!(out, text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap(), value);
        let fine = "a :: b\n# [x]\n";
        assert!(matches!(harmless(fine, Syntax::Text, github.as_ref()), Cow::Borrowed(_)));
        assert_eq!(harmless("<p>\n::error::x", Syntax::Markup, github.as_ref()), "<p>\n&#58;:error::x");
    }
}
