//! Lines of a source, with what is a comment and what is a text told apart: a suppression counts in the one and never in
//! the other.

use super::judge_catalog::Language;

/// A line of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceLine {
    /// What is not a comment.
    pub(super) code: String,
    /// The same without what stands within quotes.
    pub(super) bare: String,
    /// The comments.
    pub(super) comment: String,
    /// Whether it ends within a text, to which its blanks belong.
    pub(super) ends_in_text: bool,
}

/// What is open at a place.
#[derive(Clone, Copy)]
enum Inside<'l> {
    Code,
    LineComment,
    Comment {
        close: &'l str,
    },
    Text {
        close: &'l str,
        escape: &'l str,
        /// Whether it may have several lines.
        is_long: bool,
    },
}

struct Cutter<'t> {
    text: &'t str,
    at: usize,
    inside: Inside<'t>,
    line: SourceLine,
    lines: Vec<SourceLine>,
}

/// Cuts a source into lines.
pub(super) fn source_lines<'t>(text: &'t str, language: &'t Language) -> Vec<SourceLine> {
    let line = SourceLine::default();
    let mut cutter = Cutter { text, at: 0, inside: Inside::Code, line, lines: Vec::new() };
    while cutter.at < text.len() {
        cutter.step(language);
    }
    if cutter.line != SourceLine::default() {
        cutter.lines.push(cutter.line);
    }
    cutter.lines
}

impl<'t> Cutter<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn step(&mut self, language: &'t Language) {
        let inside = self.inside;
        match inside {
            Inside::Comment { close } if self.rest().starts_with(close) => {
                self.inside = Inside::Code;
                self.skip(close.len());
            }
            // Before the end of the text is looked for, as an escaped quote does not end it.
            Inside::Text { escape, .. } if !escape.is_empty() && self.rest().starts_with(escape) => {
                self.take_text();
                self.take_text();
            }
            Inside::Text { close, .. } if self.rest().starts_with(close) => {
                self.inside = Inside::Code;
                self.take_quote(close.len());
            }
            Inside::Code if self.opens(language) => {}
            Inside::Code | Inside::LineComment | Inside::Comment { .. } | Inside::Text { .. } => self.take(),
        }
    }

    /// Takes what opens a comment or a text, if something here does.
    fn opens(&mut self, language: &'t Language) -> bool {
        let rest = self.rest();
        // Block comments come first: in many languages their sign begins like that of a line
        // comment.
        if let Some([open, close]) = language.block.iter().find(|[open, _]| rest.starts_with(open.as_str())) {
            self.skip(open.len());
            self.inside = Inside::Comment { close };
            return true;
        }
        // Long texts come first: `"""` begins with `"`.
        let long = language.long.iter().map(|text| (text, true));
        let short = language.texts.iter().map(|text| (text, false));
        if let Some(([open, close, escape], is_long)) =
            long.chain(short).find(|([open, ..], _)| rest.starts_with(open.as_str()))
        {
            self.take_quote(open.len());
            self.inside = Inside::Text { close, escape, is_long };
            return true;
        }
        let before = self.text[..self.at].chars().next_back();
        // In a shell, `a#b` has no comment in it.
        let may_begin = !language.begins || before.is_none_or(char::is_whitespace);
        if let Some(open) = language.line.iter().find(|open| may_begin && rest.starts_with(open.as_str())) {
            self.skip(open.len());
            self.inside = Inside::LineComment;
            return true;
        }
        let letter = language.letters.then(|| letter(rest)).flatten();
        if let Some(length) = letter {
            self.line.code.push_str(&rest[..length]);
            self.at += length;
        }
        letter.is_some()
    }

    /// Goes over signs, and over the line that begins with them.
    fn skip(&mut self, length: usize) {
        if self.rest()[..length].starts_with('\n') {
            self.end_line();
        }
        self.at += length;
    }

    fn take_quote(&mut self, length: usize) {
        let quote = &self.rest()[..length];
        self.line.code.push_str(quote);
        self.line.bare.push_str(quote);
        self.at += length;
    }

    /// Takes a sign of a text.
    fn take_text(&mut self) {
        let Some(sign) = self.rest().chars().next() else { return };
        if sign == '\n' {
            self.end_line();
        } else {
            self.line.code.push(sign);
        }
        self.at += sign.len_utf8();
    }

    fn take(&mut self) {
        let Some(sign) = self.rest().chars().next() else { return };
        match (sign, self.inside) {
            ('\n', Inside::LineComment | Inside::Text { is_long: false, .. }) => {
                // A text that is not closed on its line is closed by it, so that one stray quote
                // does not swallow the file.
                self.end_line();
                self.inside = Inside::Code;
            }
            ('\n', _) => self.end_line(),
            (_, Inside::Code) => {
                self.line.code.push(sign);
                self.line.bare.push(sign);
            }
            (_, Inside::Text { .. }) => self.line.code.push(sign),
            (_, Inside::LineComment | Inside::Comment { .. }) => self.line.comment.push(sign),
        }
        self.at += sign.len_utf8();
    }

    fn end_line(&mut self) {
        self.line.ends_in_text = matches!(self.inside, Inside::Text { .. });
        self.lines.push(std::mem::take(&mut self.line));
    }
}

/// Returns the length of a letter in single quotes, such as `'"'`, if one stands here: it opens no text.
fn letter(rest: &str) -> Option<usize> {
    let mut signs = rest.strip_prefix('\'')?.char_indices();
    let (_, first) = signs.next()?;
    let end = if first == '\\' {
        signs.next()?;
        // At most an escape such as `'\u{10ffff}'`. Without a bound, a lifetime of Rust would look
        // for its end all through the file.
        signs.take(9).find(|(_, sign)| *sign == '\'')?.0
    } else {
        signs.next().filter(|(_, sign)| *sign == '\'')?.0
    };
    Some(end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::judge_catalog::CATALOG;
    use super::*;

    fn shown(path: &str, text: &str) -> String {
        let lines = source_lines(text, CATALOG.language(path).unwrap());
        let lines = lines.iter().map(|line| format!("{}|{}", line.bare.trim(), line.comment.trim()));
        lines.collect::<Vec<_>>().join(" / ")
    }

    #[test]
    fn comments_and_texts_are_told_apart() {
        for (path, text, expected) in [
            ("a.py", "x = 'a # b'  # c\n", "x = ''|c"),
            ("a.py", "\"\"\"\n# a\n\"\"\"\nb # c", "\"\"\"| / | / \"\"\"| / b|c"),
            ("a.py", "x = 'it\\'s' # a", "x = ''|a"),
            ("a.py", "x = 'open\ny # a", "x = '| / y|a"),
            ("a.rs", "let a = '\"'; // b", "let a = ;|b"),
            ("a.rs", "fn a<'b>(c: &'b str) {} // d", "fn a<'b>(c: &'b str) {}|d"),
            ("a.rs", "r#\"a \" // b\"#; /* c\nd */ e", "r#\"\"#;|c / e|d"),
            ("a.js", "a = `// b\n// c`; // d", "a = `| / `;|d"),
            ("a.go", "a := `\\`; // b", "a := ``;|b"),
            ("a.sh", "a#b # c", "a#b|c"),
            ("a.rb", "a\n=begin\nb\n=end\nc", "a| / | / |b / | / c|"),
            ("a.html", "a <!-- b\nc --> d", "a|b / d|c"),
        ] {
            assert_eq!(shown(path, text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn there_are_as_many_lines_as_in_the_text(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("\""), Just("'"), Just("`"), Just("\\"), Just("#"), Just("//"), Just("/*"), Just("*/"),
                    Just("\n"), Just("\"\"\""), Just("é"), Just("a"), Just(" "), Just("r#\""), Just("\"#"),
                ],
                0..30,
            ),
            at in 0_usize..18,
        ) {
            let text = parts.concat();
            let language = &CATALOG.languages[at % CATALOG.languages.len()];
            let lines = source_lines(&text, language);
            prop_assert!(lines.len() <= text.lines().count());
        }
    }
}
