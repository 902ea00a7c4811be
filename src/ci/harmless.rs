//! Keeps what a command prints from being obeyed: in the log of a job, a line of a loop file, of a name or of what an
//! action printed may be a command for the CI system.

use std::borrow::Cow;
use std::fmt::Write as _;

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
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let disarmed = dialect.disarmed(line);
        match syntax {
            Syntax::Text => out.push_str(&disarmed),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ci::Provider;

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
