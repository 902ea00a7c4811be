//! Cuts a shell text into words and operators, in one pass: what is quoted, substituted, commented out or a
//! here-document is inside of a word, or nowhere.

use std::ops::Range;

/// A part of a shell text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Where it stands.
    pub(super) range: Range<usize>,
    /// What a word in it reads.
    pub(super) reads: Reads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word with nothing in it that is quoted or substituted, which can be a keyword.
    Plain,
    /// Any other word.
    Word,
    /// `((…))`, as one piece.
    Arithmetic,
    /// A redirection, with its target. `opens` tells whether it opens a file that need not be there.
    Redirection {
        opens: bool,
    },
    Operator(Operator),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// The end of a line, or `;`.
    End,
    /// `&`
    Background,
    And,
    Or,
    Pipe,
    Open,
    Close,
    /// `;;`, `;&` or `;;&`
    CaseEnd,
}

/// What a word looks at besides its own letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    /// The output of commands.
    pub(super) commands: bool,
    /// How the command before it ended.
    pub(super) end: End,
    /// `$!`: the command in the background before it.
    pub(super) background: bool,
}

/// What a word says about the end of the command before it, the most last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    #[default]
    Nothing,
    /// Its exit code, `$?`.
    Code,
    /// That of each part of a pipeline, `PIPESTATUS`.
    EachCode,
}

/// What is open around a place in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `"…"`
    Double,
    /// `$(…)`, `<(…)`, `=(…)`
    Paren,
    /// `${…}`
    Brace,
    /// `` `…` ``
    Backtick,
}

impl Reads {
    fn ends(&mut self, does: bool, end: End) {
        self.end = self.end.max(if does { end } else { End::Nothing });
    }
}

/// A here-document whose text begins with the next line.
struct HereDocument {
    end: String,
    /// Whether tabs before the last line do not count.
    is_indented: bool,
}

pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
    waiting: Vec<HereDocument>,
}

/// Cuts a text into its parts; nothing comes of one in which something stays open.
pub(super) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new(), waiting: Vec::new() };
    while let Some(byte) = lexer.byte(0) {
        lexer.next(byte)?;
    }
    Some(lexer.tokens)
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn follows(&self, text: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    fn next(&mut self, byte: u8) -> Option<()> {
        match byte {
            b' ' | b'\t' => self.at += 1,
            b'\\' if self.byte(1) == Some(b'\n') => self.at += 2,
            b'#' => self.skip_line(),
            b'\n' => {
                self.operator(Operator::End, 1);
                self.skip_here_documents();
            }
            b';' if self.follows(";;&") => self.operator(Operator::CaseEnd, 3),
            b';' if self.follows(";;") || self.follows(";&") => self.operator(Operator::CaseEnd, 2),
            b';' => self.operator(Operator::End, 1),
            b'&' if self.follows("&&") => self.operator(Operator::And, 2),
            b'&' if self.follows("&>") => self.redirection()?,
            b'&' => self.operator(Operator::Background, 1),
            b'|' if self.follows("||") => self.operator(Operator::Or, 2),
            b'|' if self.follows("|&") => self.operator(Operator::Pipe, 2),
            b'|' => self.operator(Operator::Pipe, 1),
            b'(' if self.follows("((") => self.word(Kind::Arithmetic)?,
            b'(' => self.operator(Operator::Open, 1),
            b')' => self.operator(Operator::Close, 1),
            b'<' | b'>' if self.byte(1) == Some(b'(') => self.word(Kind::Word)?,
            b'<' | b'>' => self.redirection()?,
            _ => self.word(Kind::Plain)?,
        }
        Some(())
    }

    fn operator(&mut self, operator: Operator, length: usize) {
        let range = self.at..self.at + length;
        self.at = range.end;
        self.tokens.push(Token { kind: Kind::Operator(operator), range, reads: Reads::default() });
    }

    fn skip_line(&mut self) {
        self.at += self.text.as_bytes()[self.at..].iter().take_while(|byte| **byte != b'\n').count();
    }

    /// Takes a word. A number right before a redirection is no word.
    fn word(&mut self, kind: Kind) -> Option<()> {
        let start = self.at;
        let (reads, is_plain) = self.skip_word()?;
        let range = start..self.at;
        let written = &self.text.as_bytes()[range.clone()];
        let is_descriptor =
            written.iter().all(u8::is_ascii_digit) && matches!(self.byte(0), Some(b'<' | b'>'));
        let kind = if kind == Kind::Plain && !is_plain { Kind::Word } else { kind };
        if !is_descriptor {
            self.tokens.push(Token { kind, range, reads });
        }
        Some(())
    }

    /// Goes to the end of a word; returns what it reads, and whether it is what it looks like.
    fn skip_word(&mut self) -> Option<(Reads, bool)> {
        let start = self.at;
        let (mut reads, mut open, mut is_plain, mut doubles) = (Reads::default(), Vec::new(), true, 0_usize);
        while let Some(byte) = self.byte(0) {
            let inside = open.last().copied();
            if inside.is_none() && matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')') {
                break;
            }
            match (byte, inside) {
                (b'\\', _) => {
                    // A line that goes on changes nothing in a word.
                    is_plain &= self.byte(1) == Some(b'\n');
                    self.at += 2;
                    continue;
                }
                (b'"', Some(Open::Double)) => {
                    doubles -= 1;
                    open.pop();
                }
                (b'"', None | Some(Open::Paren | Open::Brace)) => {
                    doubles += 1;
                    open.push(Open::Double);
                    is_plain = false;
                }
                (b'\'', None | Some(Open::Paren)) => self.skip_quoted(&mut is_plain)?,
                (b'\'', Some(Open::Brace)) if doubles == 0 => self.skip_quoted(&mut is_plain)?,
                (b')', Some(Open::Paren)) | (b'}', Some(Open::Brace)) | (b'`', Some(Open::Backtick)) => {
                    open.pop();
                }
                (b'`', _) => {
                    open.push(Open::Backtick);
                    (reads.commands, is_plain) = (true, false);
                }
                (b'(', Some(Open::Paren)) => open.push(Open::Paren),
                (b'(', None) => {
                    let before = if self.at > start { self.text.as_bytes()[self.at - 1] } else { b'(' };
                    let is_part = matches!(before, b'=' | b'@' | b'?' | b'*' | b'+' | b'!');
                    if self.at > start && !is_part {
                        break;
                    }
                    open.push(Open::Paren);
                    is_plain = false;
                }
                (b'<' | b'>', None) => {
                    if self.at > start || self.byte(1) != Some(b'(') {
                        break;
                    }
                    self.at += 1;
                    open.push(Open::Paren);
                    (reads.commands, is_plain) = (true, false);
                }
                (b'#', Some(Open::Paren)) if self.begins_comment() => {
                    self.skip_line();
                    continue;
                }
                (b'$', Some(Open::Backtick)) => {}
                (b'$', _) => {
                    is_plain = false;
                    self.dollar(&mut reads, &mut open, doubles > 0)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.text.len());
        open.is_empty().then_some((reads, is_plain))
    }

    /// Goes to the quote that ends a text which began with one.
    fn skip_quoted(&mut self, is_plain: &mut bool) -> Option<()> {
        *is_plain = false;
        let rest = &self.text.as_bytes()[self.at + 1..];
        self.at += 1 + rest.iter().position(|byte| *byte == b'\'')?;
        Some(())
    }

    /// Tells whether a `#` is the first sign of a word.
    fn begins_comment(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.text.as_bytes().get(at));
        matches!(before, Some(b' ' | b'\t' | b'\n' | b';'))
    }

    /// Takes a `$` and what belongs to it.
    fn dollar(&mut self, reads: &mut Reads, open: &mut Vec<Open>, is_quoted: bool) -> Option<()> {
        // `$${` is how a loop file writes the `${` of the shell.
        if self.follows("$${") {
            self.at += 1;
        }
        match self.byte(1) {
            Some(b'(') => {
                open.push(Open::Paren);
                reads.commands = true;
                self.at += 2;
            }
            Some(b'{') => {
                open.push(Open::Brace);
                reads.ends(self.follows("${?"), End::Code);
                reads.background |= self.follows("${!}");
                reads.ends(self.follows("${PIPESTATUS"), End::EachCode);
                self.at += 2;
            }
            Some(b'\'') if !is_quoted => {
                self.at += 2;
                while self.byte(0)? != b'\'' {
                    self.at += if self.byte(0) == Some(b'\\') { 2 } else { 1 };
                }
                self.at += 1;
            }
            Some(b'?') => {
                reads.ends(true, End::Code);
                self.at += 2;
            }
            Some(b'!') => {
                reads.background = true;
                self.at += 2;
            }
            _ => {
                reads.ends(self.follows("$PIPESTATUS"), End::EachCode);
                self.at += 1;
            }
        }
        Some(())
    }

    fn redirection(&mut self) -> Option<()> {
        const SIGNS: [&str; 11] = ["<<<", "<<-", "<<", "<>", "<&", "<", "&>>", "&>", ">>", ">|", ">&"];
        let start = self.at;
        let sign = SIGNS.iter().find(|sign| self.follows(sign)).map_or(">", |sign| *sign);
        self.at += sign.len();
        while matches!(self.byte(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        let from = self.at;
        let (reads, _) = self.skip_word()?;
        let target = &self.text[from..self.at];
        if matches!(sign, "<<" | "<<-") {
            let end = target.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
            self.waiting.push(HereDocument { end, is_indented: sign == "<<-" });
        }
        let is_text = matches!(sign, "<<" | "<<-" | "<<<");
        let is_device = matches!(target, "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty");
        let is_descriptor =
            matches!(sign, ">&" | "<&") && target.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
        let kind = Kind::Redirection { opens: !(is_text || is_device || is_descriptor) };
        self.tokens.push(Token { kind, range: start..self.at, reads });
        Some(())
    }

    /// Goes over the texts of the here-documents that were named in the line before. One that does not end goes to
    /// the end.
    fn skip_here_documents(&mut self) {
        for HereDocument { end, is_indented } in std::mem::take(&mut self.waiting) {
            while self.at < self.text.len() {
                let from = self.at;
                self.skip_line();
                let line = &self.text[from..self.at];
                self.at = (self.at + 1).min(self.text.len());
                let line = if is_indented { line.trim_start_matches('\t') } else { line };
                if line == end {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens: words as they are, operators by name.
    fn cut(text: &str) -> String {
        let Some(tokens) = tokens(text) else { return "open".to_owned() };
        let words = tokens.iter().map(|token| match token.kind {
            Kind::Plain | Kind::Word | Kind::Arithmetic => format!("[{}]", &text[token.range.clone()]),
            Kind::Redirection { opens: true } => "file".to_owned(),
            Kind::Redirection { opens: false } => "redirected".to_owned(),
            Kind::Operator(operator) => format!("{operator:?}"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operators_are_found_outside_of_quotes_only() {
        for (text, expected) in [
            ("a b;c&d", "[a] [b] End [c] Background [d]"),
            ("a&&b||c|d|&e", "[a] And [b] Or [c] Pipe [d] Pipe [e]"),
            ("'a; b' \"c | d\" e\\;f", "['a; b'] [\"c | d\"] [e\\;f]"),
            ("a $(b; c | d) `e; f`", "[a] [$(b; c | d)] [`e; f`]"),
            ("\"$(a \"b; c\" ')')\" d", "[\"$(a \"b; c\" ')')\"] [d]"),
            ("a # b; c\nd#e", "[a] End [d#e]"),
            ("a \\\n  b", "[a] [b]"),
            ("${a:-b; c} $${d%;*};e", "[${a:-b; c}] [$${d%;*}] End [e]"),
            ("\"${a:-'}\";b", "[\"${a:-'}\"] End [b]"),
            ("$'a\\'; b';c", "[$'a\\'; b'] End [c]"),
            ("a=(b c) d", "[a=(b c)] [d]"),
            ("(a) f() b", "Open [a] Close [f] Open Close [b]"),
            ("((1 << 2)); a", "[((1 << 2))] End [a]"),
            ("diff <(a; b) c", "[diff] [<(a; b)] [c]"),
            ("a) b;; c;& d;;&", "[a] Close [b] CaseEnd [c] CaseEnd [d] CaseEnd"),
            ("$(a # it's\n b); c", "[$(a # it's\n b)] End [c]"),
            ("é 'ü; ö' \\ß;ä", "[é] ['ü; ö'] [\\ß] End [ä]"),
        ] {
            assert_eq!(cut(text), expected, "{text}");
        }
    }

    #[test]
    fn redirections_take_their_targets() {
        for (text, expected) in [
            ("a > b 2>&1", "[a] file redirected"),
            ("a >/dev/null 2> /dev/null", "[a] redirected redirected"),
            ("a &>b", "[a] file"),
            ("a <<< 'b; c'", "[a] redirected"),
            ("a < b >>c", "[a] file file"),
            ("a <<X; b\nc; d\nX\ne", "[a] redirected End [b] End [e]"),
            ("a <<-'X'\n\tc | d\n\tX\ne", "[a] redirected End [e]"),
            ("a <<X <<Y\n1\nX\n2\nY\nb", "[a] redirected redirected End [b]"),
            ("a <<X\nno end; b", "[a] redirected End"),
        ] {
            assert_eq!(cut(text), expected, "{text}");
        }
    }

    #[test]
    fn what_stays_open_is_left_alone() {
        for text in ["a 'b", "a \"b", "a $(b", "a ${b", "a `b", "a=(b", "$'a", "$'a\\"] {
            assert_eq!(cut(text), "open", "{text}");
        }
    }
}
