//! Cuts a shell text into words and operators, in one pass, and tells for each template what stands around it. A value
//! that is quoted for the shell is one word where a word can stand, and nowhere else: within quotes, its own quotes end
//! the ones around it.

use std::ops::Range;

use super::token::{CommandEnd, Reads, ShellOperator, ShellToken, TemplateQuotes, TokenKind};

/// Words after which a command begins.
pub(super) const OPENERS: [&str; 11] =
    ["!", "{", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc"];

/// Cuts a text into its parts; nothing comes of one in which something stays open.
pub fn tokens(text: &str) -> Option<Vec<ShellToken>> {
    let lexer = Lexer::run(text, &[]);
    lexer.is_whole.then_some(lexer.tokens)
}

/// Returns what stands around each of the templates of a text, which are in order.
pub fn around(text: &str, templates: &[Range<usize>]) -> Vec<TemplateQuotes> {
    Lexer::run(text, templates).found
}

/// What is open at a place of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenContext {
    /// `"…"`
    Double,
    /// `'…'`
    Single,
    /// `$'…'`
    Escaped,
    /// `` `…` ``
    Backtick,
    /// `$(…)`, `<(…)`
    Substitution,
    /// `(…)`, `=(…)`
    Paren,
    /// `$((…))`, with the parentheses that are open in it.
    Arithmetic(u32),
    /// `${…}`
    Brace,
}

impl OpenContext {
    fn is_read_as_commands(self) -> bool {
        matches!(self, Self::Substitution | Self::Backtick)
    }
}

/// Something open, and what holds again when it is closed. What is asked of everything around is kept in each, so that a
/// text takes no longer for being nested deeply.
struct Frame {
    open: OpenContext,
    /// The innermost that is no `${…}`, if there is one.
    base: Option<OpenContext>,
    /// Whether it is within backticks.
    is_in_backticks: bool,
    /// Whether it is within something that is read as commands.
    is_in_commands: bool,
    /// Where its content begins.
    from: usize,
    /// Where the simple command around it begins.
    command: usize,
}

/// A here-document whose text begins with the next line.
struct HereDocument {
    end: Vec<u8>,
    /// Whether tabs before the last line do not count.
    is_indented: bool,
}

/// What is known of a word.
struct LexedWord {
    reads: Reads,
    /// Whether it is what it looks like.
    is_plain: bool,
    bodies: Vec<Range<usize>>,
}

impl LexedWord {
    fn ends(&mut self, does: bool, end: CommandEnd) {
        self.reads.end = self.reads.end.max(if does { end } else { CommandEnd::Nothing });
    }
}

struct Lexer<'t> {
    source: &'t str,
    text: &'t [u8],
    at: usize,
    tokens: Vec<ShellToken>,
    open: Vec<Frame>,
    waiting: Vec<HereDocument>,
    /// Where the simple command begins.
    command: usize,
    /// The templates that are not met yet, the next one last.
    templates: Vec<Range<usize>>,
    found: Vec<TemplateQuotes>,
    /// Whether everything was closed so far.
    is_whole: bool,
}

impl<'t> Lexer<'t> {
    fn run(source: &'t str, templates: &[Range<usize>]) -> Self {
        let mut lexer = Self {
            source,
            text: source.as_bytes(),
            at: 0,
            tokens: Vec::new(),
            open: Vec::new(),
            waiting: Vec::new(),
            command: 0,
            templates: templates.iter().rev().cloned().collect(),
            found: Vec::new(),
            is_whole: true,
        };
        while let Some(byte) = lexer.byte(0) {
            lexer.next(byte);
        }
        lexer
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn follows(&self, text: &str) -> bool {
        self.text[self.at..].starts_with(text.as_bytes())
    }

    /// Goes on, and no further than the text.
    fn skip(&mut self, length: usize) {
        self.at = (self.at + length).min(self.text.len());
    }

    fn begins_template(&self) -> bool {
        self.templates.last().is_some_and(|range| range.start == self.at)
    }

    /// Takes a template, if one begins here.
    fn template(&mut self, around: TemplateQuotes) -> bool {
        let Some(range) = self.templates.last().filter(|range| range.start == self.at) else { return false };
        self.at = range.end;
        self.templates.pop();
        self.found.push(around);
        true
    }

    fn around(&self) -> TemplateQuotes {
        if self.open.last().is_some_and(|frame| frame.is_in_backticks) {
            return TemplateQuotes::Backticks;
        }
        match self.open.last().and_then(|frame| frame.base) {
            Some(OpenContext::Double) => TemplateQuotes::DoubleQuotes,
            Some(OpenContext::Single | OpenContext::Escaped) => TemplateQuotes::SingleQuotes,
            Some(OpenContext::Arithmetic(_)) => TemplateQuotes::Arithmetic,
            Some(OpenContext::Backtick) => TemplateQuotes::Backticks,
            Some(OpenContext::Substitution | OpenContext::Paren | OpenContext::Brace) | None
                if self.is_eval() =>
            {
                TemplateQuotes::Eval
            }
            Some(OpenContext::Substitution | OpenContext::Paren | OpenContext::Brace) | None => {
                TemplateQuotes::Nothing
            }
        }
    }

    fn is_eval(&self) -> bool {
        let command = self.text.get(self.command..self.at).unwrap_or(&[]);
        let mut words = command.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.next() == Some(b"eval".as_slice())
    }

    /// Takes what begins between two words.
    fn next(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' => self.skip(1),
            b'\\' if self.byte(1) == Some(b'\n') => self.skip(2),
            b'#' => self.comment(),
            b'\n' => {
                self.operator(ShellOperator::End, 1);
                self.here_documents();
                self.command = self.at;
            }
            b';' if self.follows(";;&") => self.operator(ShellOperator::CaseEnd, 3),
            b';' if self.follows(";;") || self.follows(";&") => self.operator(ShellOperator::CaseEnd, 2),
            b';' => self.operator(ShellOperator::End, 1),
            b'&' if self.follows("&&") => self.operator(ShellOperator::And, 2),
            b'&' if self.follows("&>") => self.redirection(),
            b'&' => self.operator(ShellOperator::Background, 1),
            b'|' if self.follows("||") => self.operator(ShellOperator::Or, 2),
            b'|' if self.follows("|&") => self.operator(ShellOperator::Pipe, 2),
            b'|' => self.operator(ShellOperator::Pipe, 1),
            b'(' if self.follows("((") => self.word(TokenKind::Arithmetic, Some(OpenContext::Arithmetic(0))),
            b'(' => self.operator(ShellOperator::Open, 1),
            b')' => self.operator(ShellOperator::Close, 1),
            b'<' | b'>' if self.byte(1) == Some(b'(') => {
                self.word(TokenKind::Word, Some(OpenContext::Substitution));
            }
            b'<' | b'>' => self.redirection(),
            _ => self.word(TokenKind::Plain, None),
        }
    }

    fn operator(&mut self, operator: ShellOperator, length: usize) {
        let range = self.at..self.at + length;
        self.at = range.end;
        self.command = self.at;
        let kind = TokenKind::Operator(operator);
        self.tokens.push(ShellToken { kind, range, reads: Reads::default(), bodies: Vec::new() });
    }

    /// Takes a word, which may begin with two signs that open something. A number right before a redirection is no
    /// word.
    fn word(&mut self, kind: TokenKind, opening: Option<OpenContext>) {
        let start = self.at;
        if let Some(open) = opening {
            self.begin(open, 2);
        }
        let mut word = self.skip_word();
        word.reads.commands |= opening == Some(OpenContext::Substitution);
        let range = start..self.at;
        let written = &self.source[range.clone()];
        let is_descriptor =
            written.bytes().all(|byte| byte.is_ascii_digit()) && matches!(self.byte(0), Some(b'<' | b'>'));
        if is_descriptor {
            return;
        }
        let kind = if kind == TokenKind::Plain && !word.is_plain { TokenKind::Word } else { kind };
        if kind == TokenKind::Plain && OPENERS.contains(&written) {
            self.command = self.at;
        }
        self.tokens.push(ShellToken { kind, range, reads: word.reads, bodies: word.bodies });
    }

    /// Goes to the end of a word.
    fn skip_word(&mut self) -> LexedWord {
        let start = self.at;
        let mut word = LexedWord { reads: Reads::default(), is_plain: true, bodies: Vec::new() };
        while let Some(byte) = self.byte(0) {
            if self.open.is_empty() && self.ends_word(byte, start) {
                break;
            }
            self.step(byte, &mut word);
        }
        if !self.open.is_empty() {
            self.is_whole = false;
            self.open.clear();
        }
        word
    }

    /// Tells whether a word that began at `start` ends here, where nothing is open in it.
    fn ends_word(&self, byte: u8, start: usize) -> bool {
        match byte {
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>' => true,
            // Of an array, or of a pattern.
            b'(' => self.at == start || !b"=@?*+!".contains(&self.text[self.at - 1]),
            _ => false,
        }
    }

    /// Takes the next piece of a word.
    fn step(&mut self, byte: u8, word: &mut LexedWord) {
        // Before all else: the braces and quotes of a template are not the shell's.
        if self.begins_template() {
            word.is_plain = false;
            let around = self.around();
            self.template(around);
            return;
        }
        match self.open.last().map(|frame| frame.open) {
            Some(OpenContext::Escaped) if byte == b'\\' => self.escaped(TemplateQuotes::SingleQuotes),
            Some(OpenContext::Single | OpenContext::Escaped) if byte == b'\'' => self.close(word),
            Some(OpenContext::Single | OpenContext::Escaped) => self.skip(1),
            _ if byte == b'\\' => {
                // A line that goes on changes nothing in a word.
                word.is_plain &= self.byte(1) == Some(b'\n');
                self.escaped(TemplateQuotes::Backslash);
            }
            // Whatever quotes stand in between, the next backtick ends it.
            Some(OpenContext::Backtick) if byte == b'`' => self.close(word),
            Some(OpenContext::Backtick) => self.skip(1),
            Some(OpenContext::Double) => match byte {
                b'"' => self.close(word),
                b'`' => self.backtick(word),
                b'$' => self.dollar(word, true),
                _ => self.skip(1),
            },
            Some(OpenContext::Brace) if byte == b'}' => self.close(word),
            Some(OpenContext::Arithmetic(depth)) if matches!(byte, b'(' | b')') => {
                self.parenthesis(depth, byte);
            }
            Some(OpenContext::Paren | OpenContext::Substitution) if byte == b')' => self.close(word),
            inside => self.unquoted(byte, inside, word),
        }
    }

    /// Takes a sign that stands within no quotes.
    fn unquoted(&mut self, byte: u8, inside: Option<OpenContext>, word: &mut LexedWord) {
        // Within parentheses of a word, which are not cut into tokens.
        let is_command = matches!(inside, Some(OpenContext::Paren | OpenContext::Substitution));
        match byte {
            b'\'' if !self.is_quoted_brace() => {
                word.is_plain = false;
                self.begin(OpenContext::Single, 1);
            }
            b'"' => {
                word.is_plain = false;
                self.begin(OpenContext::Double, 1);
            }
            b'`' => self.backtick(word),
            b'$' => self.dollar(word, self.is_quoted_brace()),
            b'(' if is_command && self.follows("((") && self.begins_word() => {
                self.begin(OpenContext::Arithmetic(0), 2);
            }
            b'(' if is_command || inside.is_none() => {
                word.is_plain = false;
                self.begin(OpenContext::Paren, 1);
            }
            // Within a word, `#` is a letter.
            b'#' if is_command && self.begins_word() => self.comment(),
            // No lines follow below a here-string.
            b'<' if is_command && self.follows("<<<") => self.skip(3),
            b'<' if is_command && self.follows("<<") => {
                self.skip(2);
                self.here_document();
            }
            b'<' | b'>' if is_command && self.byte(1) == Some(b'(') => {
                self.begin(OpenContext::Substitution, 2);
            }
            b'\n' if is_command => {
                self.skip(1);
                self.here_documents();
                self.command = self.at;
            }
            b';' | b'&' | b'|' | b'{' | b'!' if is_command => {
                self.skip(1);
                self.command = self.at;
            }
            _ => self.skip(1),
        }
    }

    /// Tells whether the innermost is a `${…}` within double quotes, where a single quote is a letter.
    fn is_quoted_brace(&self) -> bool {
        let innermost = self.open.last();
        innermost
            .is_some_and(|frame| frame.open == OpenContext::Brace && frame.base == Some(OpenContext::Double))
    }

    /// Goes over a backslash and what it stands before.
    fn escaped(&mut self, around: TemplateQuotes) {
        self.skip(1);
        if !self.template(around) {
            self.skip(1);
        }
    }

    fn begin(&mut self, open: OpenContext, length: usize) {
        self.skip(length);
        let around = self.open.last();
        let frame = Frame {
            open,
            base: if open == OpenContext::Brace { around.and_then(|around| around.base) } else { Some(open) },
            is_in_backticks: open == OpenContext::Backtick
                || around.is_some_and(|around| around.is_in_backticks),
            is_in_commands: around
                .is_some_and(|around| around.is_in_commands || around.open.is_read_as_commands()),
            from: self.at,
            command: self.command,
        };
        self.open.push(frame);
        if open == OpenContext::Paren || open.is_read_as_commands() {
            self.command = self.at;
        }
    }

    fn close(&mut self, word: &mut LexedWord) {
        if let Some(frame) = self.open.pop() {
            self.command = frame.command;
            // What is inside of another one is read with it.
            if frame.open.is_read_as_commands() && !frame.is_in_commands {
                word.bodies.push(frame.from..self.at);
            }
        }
        self.skip(1);
    }

    fn backtick(&mut self, word: &mut LexedWord) {
        (word.reads.commands, word.is_plain) = (true, false);
        self.begin(OpenContext::Backtick, 1);
    }

    /// Takes a parenthesis within `((…))`.
    fn parenthesis(&mut self, depth: u32, byte: u8) {
        let is_end = byte == b')' && depth == 0;
        let is_whole = self.follows("))");
        let Some(frame) = self.open.last_mut() else { return };
        if !is_end {
            frame.open = OpenContext::Arithmetic(if byte == b'(' { depth + 1 } else { depth - 1 });
            frame.base = Some(frame.open);
        } else if is_whole {
            self.command = frame.command;
            self.open.pop();
            self.skip(1);
        } else {
            // It was `( (…) … )`: commands, the inner parentheses of which end here.
            let is_substitution = frame.from >= 3 && self.text[frame.from - 3] == b'$';
            frame.open = if is_substitution { OpenContext::Substitution } else { OpenContext::Paren };
            frame.base = Some(frame.open);
            frame.from -= 1;
        }
        self.skip(1);
    }

    /// Takes a `$` and what belongs to it.
    fn dollar(&mut self, word: &mut LexedWord, is_quoted: bool) {
        word.is_plain = false;
        // `$${` is how a loop file writes the `${` of the shell.
        if self.follows("$${") {
            self.skip(1);
        }
        match self.byte(1) {
            Some(b'(') if self.follows("$((") => self.begin(OpenContext::Arithmetic(0), 3),
            Some(b'(') => {
                word.reads.commands = true;
                self.begin(OpenContext::Substitution, 2);
            }
            Some(b'{') => {
                word.ends(self.follows("${?"), CommandEnd::Code);
                word.ends(self.follows("${PIPESTATUS"), CommandEnd::EachCode);
                word.reads.background |= self.follows("${!}");
                self.begin(OpenContext::Brace, 2);
            }
            // Within double quotes, a single quote behind `$` is a letter.
            Some(b'\'') if !is_quoted => self.begin(OpenContext::Escaped, 2),
            Some(b'?') => {
                word.ends(true, CommandEnd::Code);
                self.skip(2);
            }
            Some(b'!') => {
                word.reads.background = true;
                self.skip(2);
            }
            _ => {
                word.ends(self.follows("$PIPESTATUS"), CommandEnd::EachCode);
                self.skip(1);
            }
        }
    }

    /// Tells whether a word begins here.
    fn begins_word(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.text[at]);
        before.is_none_or(|byte| byte.is_ascii_whitespace() || b";&|()".contains(&byte))
    }

    fn comment(&mut self) {
        self.line(TemplateQuotes::Comment);
    }

    /// Goes to the end of the line.
    fn line(&mut self, around: TemplateQuotes) {
        while self.byte(0).is_some_and(|byte| byte != b'\n') {
            if !self.template(around) {
                self.skip(1);
            }
        }
    }

    fn redirection(&mut self) {
        // A longer sign stands before the shorter ones that are its beginning.
        const SIGNS: [&str; 10] = ["<<<", "<<", "<>", "<&", "<", "&>>", "&>", ">>", ">|", ">&"];
        let start = self.at;
        let sign = SIGNS.iter().find(|sign| self.follows(sign)).map_or(">", |sign| *sign);
        self.skip(sign.len());
        let kind;
        let mut word = LexedWord { reads: Reads::default(), is_plain: true, bodies: Vec::new() };
        if sign == "<<" {
            self.here_document();
            kind = TokenKind::Redirection { opens: false };
        } else {
            while matches!(self.byte(0), Some(b' ' | b'\t')) {
                self.skip(1);
            }
            let from = self.at;
            // `> >(tee log)`
            if self.byte(1) == Some(b'(') && matches!(self.byte(0), Some(b'<' | b'>')) {
                self.begin(OpenContext::Substitution, 2);
            }
            word = self.skip_word();
            kind = TokenKind::Redirection { opens: opens(sign, &self.source[from..self.at]) };
        }
        self.tokens.push(ShellToken { kind, range: start..self.at, reads: word.reads, bodies: word.bodies });
    }

    /// Reads what follows `<<`; its lines begin below.
    fn here_document(&mut self) {
        let is_indented = self.byte(0) == Some(b'-');
        self.skip(usize::from(is_indented));
        while matches!(self.byte(0), Some(b' ' | b'\t')) {
            self.skip(1);
        }
        let (mut end, mut quote) = (Vec::new(), None);
        while let Some(byte) = self.byte(0) {
            let from = self.at;
            if self.template(TemplateQuotes::HereDocument) {
                end.extend(&self.text[from..self.at]);
                continue;
            }
            match quote {
                Some(open) if open == byte => quote = None,
                None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
                None if byte == b'\\' => {
                    self.skip(1);
                    if self.begins_template() {
                        continue;
                    }
                    end.extend(self.byte(0));
                }
                None if byte.is_ascii_whitespace() || b";&|()<>".contains(&byte) => break,
                Some(_) | None => end.push(byte),
            }
            self.skip(1);
        }
        self.is_whole &= quote.is_none();
        if !end.is_empty() {
            self.waiting.push(HereDocument { end, is_indented });
        }
    }

    /// Goes over the texts of the here-documents that were named in the line before. One that does not end goes to
    /// the end.
    fn here_documents(&mut self) {
        for HereDocument { end, is_indented } in std::mem::take(&mut self.waiting) {
            while self.at < self.text.len() {
                let from = self.at;
                self.line(TemplateQuotes::HereDocument);
                let mut line = &self.text[from..self.at];
                self.skip(1);
                while is_indented && line.first() == Some(&b'\t') {
                    line = &line[1..];
                }
                if line == end {
                    break;
                }
            }
        }
    }
}

/// Tells whether a redirection opens a file that need not be there.
fn opens(sign: &str, target: &str) -> bool {
    let is_device = matches!(target, "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty");
    let is_descriptor =
        matches!(sign, ">&" | "<&") && target.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
    !(sign == "<<<" || is_device || is_descriptor)
}

#[cfg(test)]
mod tests;
