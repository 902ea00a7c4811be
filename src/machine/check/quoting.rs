//! Tells for each template in a shell text what stands around it. A value that is quoted for the shell is one word
//! where a word can stand, and nowhere else: within quotes, its own quotes end the ones around it.

use std::ops::Range;

/// What stands around a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Around {
    /// Nothing: a word can stand there.
    Nothing,
    /// `"…"`
    DoubleQuotes,
    /// `'…'` or `$'…'`
    SingleQuotes,
    /// `` `…` ``
    Backticks,
    /// `$((…))` or `((…))`
    Arithmetic,
    /// The lines below `<<EOF`.
    HereDocument,
    /// `# …`
    Comment,
    /// The words of `eval`, which are read a second time.
    Eval,
    /// A backslash, which takes the quote that the value begins with.
    Backslash,
}

impl Around {
    /// Says where the template stands.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Nothing => "as a word of a command",
            Self::DoubleQuotes => "within double quotes",
            Self::SingleQuotes => "within single quotes",
            Self::Backticks => "within backticks",
            Self::Arithmetic => "within arithmetic",
            Self::HereDocument => "within a here-document",
            Self::Comment => "within a comment",
            Self::Eval => "behind `eval`",
            Self::Backslash => "behind a backslash",
        }
    }
}

/// What is open at a place of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Double,
    Single,
    /// `$'…'`
    Escaped,
    Backtick,
    /// `$(…)`, `<(…)` or `(…)`
    Paren,
    /// `$((…))`, with the parentheses that are open in it.
    Arithmetic(u32),
    /// `${…}`
    Brace,
}

struct HereDocument {
    end: String,
    is_indented: bool,
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    open: Vec<Open>,
    waiting: Vec<HereDocument>,
    /// The templates that are not met yet, the next one last.
    templates: Vec<Range<usize>>,
    found: Vec<Around>,
    /// Where the simple command begins.
    command: usize,
}

/// Returns what stands around each of the templates of a text, which are in order.
pub(super) fn around(text: &str, templates: &[Range<usize>]) -> Vec<Around> {
    let templates = templates.iter().rev().cloned().collect();
    let mut scanner = Scanner {
        text: text.as_bytes(),
        at: 0,
        open: Vec::new(),
        waiting: Vec::new(),
        templates,
        found: Vec::new(),
        command: 0,
    };
    while scanner.at < scanner.text.len() {
        scanner.step();
    }
    scanner.found
}

impl Scanner<'_> {
    fn follows(&self, word: &str) -> bool {
        self.text[self.at..].starts_with(word.as_bytes())
    }

    /// Takes a template, if one begins here.
    fn template(&mut self, around: Around) -> bool {
        let Some(range) = self.templates.last().filter(|range| range.start == self.at) else { return false };
        self.at = range.end;
        self.templates.pop();
        self.found.push(around);
        true
    }

    fn around(&self) -> Around {
        if self.open.contains(&Open::Backtick) {
            return Around::Backticks;
        }
        let inner = self.open.iter().rev().find(|open| **open != Open::Brace);
        match inner {
            Some(Open::Double) => Around::DoubleQuotes,
            Some(Open::Single | Open::Escaped) => Around::SingleQuotes,
            Some(Open::Arithmetic(_)) => Around::Arithmetic,
            Some(Open::Backtick) => Around::Backticks,
            Some(Open::Paren | Open::Brace) | None if self.is_eval() => Around::Eval,
            Some(Open::Paren | Open::Brace) | None => Around::Nothing,
        }
    }

    fn is_eval(&self) -> bool {
        let command = self.text.get(self.command..self.at).unwrap_or_default();
        let mut words = command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.next() == Some(b"eval".as_slice())
    }

    fn step(&mut self) {
        let around = self.around();
        if self.template(around) {
            return;
        }
        let byte = self.text[self.at];
        match self.open.last().copied() {
            Some(Open::Escaped) if byte == b'\\' => self.escaped(Around::SingleQuotes),
            Some(Open::Single | Open::Escaped) => self.close(byte == b'\''),
            _ if byte == b'\\' => self.escaped(Around::Backslash),
            Some(Open::Double) => match byte {
                b'"' => self.close(true),
                b'`' => self.begin(Open::Backtick, 1),
                b'$' => self.dollar(true),
                _ => self.at += 1,
            },
            Some(Open::Backtick) if byte == b'`' => self.close(true),
            Some(Open::Brace) if byte == b'}' => self.close(true),
            Some(Open::Arithmetic(0)) if self.follows("))") => {
                self.open.pop();
                self.at += 2;
            }
            Some(Open::Arithmetic(depth)) if matches!(byte, b'(' | b')') => {
                self.open.pop();
                let depth = if byte == b'(' { depth + 1 } else { depth.saturating_sub(1) };
                self.begin(Open::Arithmetic(depth), 1);
            }
            Some(Open::Paren) if byte == b')' => self.close(true),
            inside => self.command_byte(byte, inside),
        }
    }

    fn command_byte(&mut self, byte: u8, inside: Option<Open>) {
        let is_command = !matches!(inside, Some(Open::Brace | Open::Arithmetic(_)));
        let is_quoted_brace = inside == Some(Open::Brace) && self.open.contains(&Open::Double);
        match byte {
            b'\'' if !is_quoted_brace => self.begin(Open::Single, 1),
            b'"' => self.begin(Open::Double, 1),
            b'`' => self.begin(Open::Backtick, 1),
            b'$' => self.dollar(false),
            b'(' if is_command && self.follows("((") && self.begins_word() => {
                self.begin(Open::Arithmetic(0), 2);
            }
            b'(' if is_command => self.begin(Open::Paren, 1),
            b'#' if is_command && self.begins_word() => self.comment(),
            b'<' if is_command && self.follows("<<") && !self.follows("<<<") => self.here_document(),
            b'<' if self.follows("<<<") => self.at += 3,
            b'\n' => {
                self.at += 1;
                self.here_documents();
                self.command = self.at;
            }
            b';' | b'&' | b'|' | b'{' | b'!' if is_command => {
                self.at += 1;
                self.command = self.at;
            }
            _ => self.at += 1,
        }
    }

    /// Goes over a backslash and what it stands before.
    fn escaped(&mut self, around: Around) {
        self.at += 1;
        if !self.template(around) {
            self.at += 1;
        }
    }

    fn close(&mut self, does: bool) {
        if does {
            self.open.pop();
        }
        self.at += 1;
    }

    fn begin(&mut self, open: Open, length: usize) {
        self.open.push(open);
        self.at += length;
        if matches!(open, Open::Paren | Open::Backtick) {
            self.command = self.at;
        }
    }

    fn dollar(&mut self, is_quoted: bool) {
        // `$${` is how a loop file writes the `${` of the shell.
        if self.follows("$${") {
            self.at += 1;
        }
        if self.follows("$((") {
            self.begin(Open::Arithmetic(0), 3);
        } else if self.follows("$(") {
            self.begin(Open::Paren, 2);
        } else if self.follows("${") {
            self.begin(Open::Brace, 2);
        } else if self.follows("$'") && !is_quoted {
            self.begin(Open::Escaped, 2);
        } else {
            self.at += 1;
        }
    }

    /// Tells whether a word begins here.
    fn begins_word(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.text[at]);
        before.is_none_or(|byte| byte.is_ascii_whitespace() || b";&|()".contains(&byte))
    }

    fn comment(&mut self) {
        while self.at < self.text.len() && self.text[self.at] != b'\n' {
            if !self.template(Around::Comment) {
                self.at += 1;
            }
        }
    }

    /// Reads `<<WORD`; its lines begin below.
    fn here_document(&mut self) {
        self.at += 2;
        let is_indented = self.text.get(self.at) == Some(&b'-');
        self.at += usize::from(is_indented);
        while matches!(self.text.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let word = self.text[self.at..].iter();
        let length =
            word.take_while(|byte| !byte.is_ascii_whitespace() && !b";&|()<>".contains(byte)).count();
        // A template in the word itself is met on the way.
        let end = self.text[self.at..self.at + length].iter().copied().filter(|b| !b"'\"\\".contains(b));
        let end = String::from_utf8_lossy(&end.collect::<Vec<_>>()).into_owned();
        if end.is_empty() {
            return;
        }
        self.waiting.push(HereDocument { end, is_indented });
        let stop = self.at + length;
        while self.at < stop {
            if !self.template(Around::HereDocument) {
                self.at += 1;
            }
        }
    }

    /// Goes over the lines of the here-documents that were named in the line before.
    fn here_documents(&mut self) {
        for HereDocument { end, is_indented } in std::mem::take(&mut self.waiting) {
            while self.at < self.text.len() {
                let from = self.at;
                while self.at < self.text.len() && self.text[self.at] != b'\n' {
                    if !self.template(Around::HereDocument) {
                        self.at += 1;
                    }
                }
                let line = String::from_utf8_lossy(&self.text[from..self.at]).into_owned();
                self.at = (self.at + 1).min(self.text.len());
                let line = if is_indented { line.trim_start_matches('\t') } else { line.as_str() };
                if line == end {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::template::Template;

    fn found(text: &str) -> Vec<Around> {
        let template = Template::parse(text).unwrap();
        let spans: Vec<_> = template.expressions().map(|expression| expression.span.clone()).collect();
        let found = around(text, &spans);
        assert_eq!(found.len(), spans.len(), "{text}");
        found
    }

    #[test]
    fn what_stands_around_a_template_is_known() {
        use Around::*;
        for (text, expected) in [
            ("a ${prev}", Nothing),
            ("a \"b\" 'c' ${prev}", Nothing),
            ("a \"b ${prev}\"", DoubleQuotes),
            ("a 'b ${prev}'", SingleQuotes),
            ("a $'b\\'${prev}'", SingleQuotes),
            ("a \"$(b ${prev})\"", Nothing),
            ("a \"$(b \"${prev}\")\"", DoubleQuotes),
            ("a `b ${prev}`", Backticks),
            ("a \"`b '${prev}'`\"", Backticks),
            ("a $((1 + ${prev}))", Arithmetic),
            ("if (( ${prev} > 1 )); then a; fi", Arithmetic),
            ("a $(( (1) + ${prev} ))", Arithmetic),
            ("a $((1 + $(b ${prev})))", Nothing),
            ("a $${B:-${prev}}", Nothing),
            ("a \"$${B:-${prev}}\"", DoubleQuotes),
            ("cat <<EOF\nx ${prev}\nEOF\n", HereDocument),
            ("cat <<'EOF'\nx ${prev}\nEOF\n", HereDocument),
            ("cat <<-\"EOF\" > f; b\n\tx ${prev}\n\tEOF\n", HereDocument),
            ("cat <<EOF\nx\nEOF\na ${prev}", Nothing),
            ("a \"$(cat <<EOF\n${prev}\nEOF\n)\"", HereDocument),
            ("a <<< ${prev}", Nothing),
            ("a <<< \"${prev}\"", DoubleQuotes),
            ("# it's ${prev}", Comment),
            ("a # ${prev}", Comment),
            ("a b#${prev}", Nothing),
            ("# it's\na ${prev}", Nothing),
            ("eval ${prev}", Eval),
            ("a; eval b ${prev}", Eval),
            ("eval a; b ${prev}", Nothing),
            ("a it\\'s ${prev}", Nothing),
            ("a \"it's\" ${prev}", Nothing),
            ("case x in a) b ${prev};; esac", Nothing),
            ("a | { b ${prev}; }", Nothing),
            ("a \\${prev}", Backslash),
            ("a \"\\${prev}\"", Backslash),
            ("a $'\\${prev}'", SingleQuotes),
        ] {
            // `prev` alone has no path.
            let text = text.replace("${prev}", "${prev.output:shell}");
            assert_eq!(found(&text), [expected], "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_template_is_met_once(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("${prev.output}"), Just("'"), Just("\""), Just("`"), Just("$("), Just(")"), Just("(("),
                    Just("))"), Just("<<E\n"), Just("\nE\n"), Just("$${"), Just("}"), Just("#"), Just(" "), Just("\\"),
                    Just("é"), Just("\n"), Just("$'"), Just("<<"),
                ],
                0..24,
            )
        ) {
            let text = parts.concat();
            if let Ok(template) = Template::parse(&text) {
                let spans: Vec<_> = template.expressions().map(|expression| expression.span.clone()).collect();
                prop_assert_eq!(around(&text, &spans).len(), spans.len());
            }
        }
    }
}
