//! Walks through the commands of a shell text and finds those whose failure nobody sees.

use std::ops::Range;

use crate::shell::command::is_assignment;
use crate::shell::token::{CommandEnd, ShellOperator, ShellToken, TokenKind};

/// Compound commands inside of each other; what is deeper is not looked at.
// The walk recurses for each of them, and a text of a stranger must not end its stack.
const DEEPEST: usize = 50;

/// What a shell does about commands that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// `-e`
    pub(super) errexit: bool,
    /// `-o pipefail`
    pub(super) pipefail: bool,
}

/// Why nobody sees a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaskReason {
    /// Another command follows.
    Sequence,
    /// It runs in the background.
    Background,
    /// It is not the last of a pipeline.
    Pipeline,
    /// The last command always succeeds in its place.
    Replaced,
}

/// A command whose failure nobody sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Masked {
    pub(super) why: MaskReason,
    /// The command.
    pub(super) range: Range<usize>,
}

/// What comes of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upshot {
    /// It can fail, and what follows goes on.
    CanFail,
    /// It does not fail.
    Succeeds,
    /// Nothing follows it.
    Leaves,
}

/// Commands that are joined by `&&` and `||`.
struct Joined {
    result: Upshot,
    /// The first and the last token.
    tokens: Range<usize>,
    /// The commands that something else replaces when they fail, up to the last `||`.
    replaced: Option<Range<usize>>,
    /// The parts of pipelines that can fail unseen.
    piped: Vec<Range<usize>>,
}

/// Commands up to the end of what they are a part of.
struct CommandList {
    last: Option<Joined>,
}

impl CommandList {
    fn result(&self) -> Option<Upshot> {
        Some(self.last.as_ref()?.result)
    }
}

impl Upshot {
    /// Returns what comes of it in a shell of its own, which alone it can leave.
    fn of_another_shell(self) -> Self {
        if self == Self::Leaves { Self::CanFail } else { self }
    }
}

/// Returns the commands of a text whose failure nobody sees, in order. A text that is not shell text has none.
pub(super) fn masked(text: &str, tokens: &[ShellToken], options: Options) -> Vec<Masked> {
    let mut walk = CommandWalk { text, tokens, at: 0, options, found: Vec::new(), muted: 0, depth: 0 };
    // What is not understood to its end may be anything, so nothing is said about it.
    let Some(list) = walk.list() else { return Vec::new() };
    if walk.at < tokens.len() || always_fails(text, tokens) {
        return Vec::new();
    }
    if let Some(replaced) = list.last.and_then(|joined| joined.replaced) {
        walk.found.push(Masked { why: MaskReason::Replaced, range: walk.span(replaced) });
    }
    walk.found.sort_by_key(|masked| masked.range.start);
    walk.found
}

/// Tells whether a text ends with a failure, and nowhere else: where everything fails, no failure is hidden.
fn always_fails(text: &str, tokens: &[ShellToken]) -> bool {
    let is_end = |token: &&ShellToken| token.kind == TokenKind::Operator(ShellOperator::End);
    let words: Vec<_> =
        tokens.iter().rev().skip_while(is_end).map(|token| &text[token.range.clone()]).take(3).collect();
    let is_separate = |before: Option<&&str>| before.is_none_or(|before| matches!(*before, ";" | "\n"));
    let fails = match words[..] {
        ["false", ..] => is_separate(words.get(1)),
        [code, "exit", ..] => code.parse::<u8>().is_ok_and(|code| code != 0) && is_separate(words.get(2)),
        _ => false,
    };
    let leaves = |token: &&ShellToken| matches!(&text[token.range.clone()], "exit" | "return" | "exec");
    fails && tokens.iter().filter(leaves).count() <= 1
}

struct CommandWalk<'t> {
    text: &'t str,
    tokens: &'t [ShellToken],
    at: usize,
    options: Options,
    found: Vec<Masked>,
    /// How many conditions are around: whether one of their commands fails is what they ask.
    muted: usize,
    depth: usize,
}

impl<'t> CommandWalk<'t> {
    fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn is(&self, operator: ShellOperator) -> bool {
        self.kind() == Some(TokenKind::Operator(operator))
    }

    /// Returns the word at this place, if it could be a keyword.
    fn plain(&self) -> Option<&'t str> {
        let token = self.tokens.get(self.at).filter(|token| token.kind == TokenKind::Plain)?;
        Some(&self.text[token.range.clone()])
    }

    /// Returns the part of the text that some tokens take.
    fn span(&self, tokens: Range<usize>) -> Range<usize> {
        let (first, last) = (&self.tokens[tokens.start], &self.tokens[tokens.end - 1]);
        first.range.start..last.range.end
    }

    fn take(&mut self, word: &str) -> Option<()> {
        (self.plain()? == word).then(|| self.at += 1)
    }

    fn skip_ends(&mut self) {
        while self.is(ShellOperator::End) {
            self.at += 1;
        }
    }

    /// Goes over line ends, as they may stand where a command has to follow.
    fn skip_lines(&mut self) {
        while self.tokens.get(self.at).is_some_and(|token| self.text[token.range.clone()] == *"\n") {
            self.at += 1;
        }
    }

    /// Tells whether a list ends here, because of what it is a part of.
    fn is_closed(&self) -> bool {
        const CLOSERS: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];
        match self.kind() {
            None | Some(TokenKind::Operator(ShellOperator::Close | ShellOperator::CaseEnd)) => true,
            _ => self.plain().is_some_and(|word| CLOSERS.contains(&word)),
        }
    }

    /// Takes commands to the end of their list, and reports those in it that fail unseen. Nothing comes of what is no
    /// shell text.
    fn list(&mut self) -> Option<CommandList> {
        let mut last: Option<(Joined, bool)> = None;
        loop {
            self.skip_ends();
            if self.is_closed() {
                break;
            }
            // Taken before the command, which may itself be the `set` that changes it.
            let errexit = self.options.errexit;
            let joined = self.joined()?;
            if let Some((before, was_fatal)) = last.take() {
                self.followed(&before, was_fatal, &joined.tokens);
            }
            if self.is(ShellOperator::Background) {
                self.at += 1;
                self.left_behind(&joined, errexit);
                // `&` itself succeeds at once.
                let result = Upshot::Succeeds;
                last = Some((Joined { result, replaced: None, piped: Vec::new(), ..joined }, errexit));
                continue;
            }
            let is_separated = self.is(ShellOperator::End);
            last = Some((joined, errexit));
            if !is_separated {
                break;
            }
        }
        if let Some((joined, _)) = &last {
            self.piped(joined, None);
        }
        Some(CommandList { last: last.map(|(joined, _)| joined) })
    }

    /// Reports a command that another one follows.
    fn followed(&mut self, before: &Joined, was_fatal: bool, next: &Range<usize>) {
        let mut reads = self.tokens[next.clone()].iter().map(|token| token.reads);
        // The next command may read the exit code, as `$?` does.
        let is_seen = reads.any(|reads| reads.end > CommandEnd::Nothing);
        self.piped(before, Some(next));
        if before.result == Upshot::CanFail && !was_fatal && !is_seen {
            self.report(MaskReason::Sequence, before.tokens.clone());
        }
    }

    /// Reports a command that goes on in the background, unless what follows asks for it.
    fn left_behind(&mut self, joined: &Joined, errexit: bool) {
        let is_end = |token: &&ShellToken| {
            matches!(token.kind, TokenKind::Operator(ShellOperator::End | ShellOperator::Background))
        };
        let reads = self.tokens[self.at..].iter().take_while(|token| !is_end(token));
        let is_kept = reads.map(|token| token.reads).any(|reads| reads.background);
        let is_last = self.at >= self.tokens.len();
        if joined.result == Upshot::CanFail && !is_kept && (is_last || !errexit) {
            self.report(MaskReason::Background, joined.tokens.clone());
        }
    }

    /// Reports the parts of pipelines, unless the next command looks at each.
    fn piped(&mut self, joined: &Joined, next: Option<&Range<usize>>) {
        let mut reads = next.map_or(&[][..], |next| &self.tokens[next.clone()]).iter();
        if !reads.any(|token| token.reads.end == CommandEnd::EachCode) {
            for part in joined.piped.clone() {
                self.report(MaskReason::Pipeline, part);
            }
        }
    }

    fn report(&mut self, why: MaskReason, tokens: Range<usize>) {
        if self.muted == 0 {
            let range = self.span(tokens);
            self.found.push(Masked { why, range });
        }
    }

    /// Takes commands that are joined by `&&` and `||`.
    fn joined(&mut self) -> Option<Joined> {
        let start = self.at;
        let (mut result, mut piped) = self.pipeline()?;
        let mut replaced = None;
        loop {
            let is_or = self.is(ShellOperator::Or);
            if !is_or && !self.is(ShellOperator::And) {
                return Some(Joined { result, tokens: start..self.at, replaced, piped });
            }
            let end = self.at;
            self.at += 1;
            self.skip_lines();
            let (then, more) = self.pipeline()?;
            replaced = (is_or && result == Upshot::CanFail && then == Upshot::Succeeds).then_some(start..end);
            if replaced.is_some() {
                // Whatever failed before was meant to be passed over.
                piped.clear();
            }
            piped.extend(more);
            result = match (is_or, result, then) {
                (false, Upshot::Succeeds, then) => then,
                (false, Upshot::CanFail, _) | (true, Upshot::CanFail, Upshot::CanFail) => Upshot::CanFail,
                (true, Upshot::CanFail | Upshot::Succeeds, _) => Upshot::Succeeds,
                (_, Upshot::Leaves, _) => Upshot::Leaves,
            };
        }
    }

    /// Takes a pipeline; returns what comes of it, and its parts that can fail unseen.
    fn pipeline(&mut self) -> Option<(Upshot, Vec<Range<usize>>)> {
        let mut is_asked = false;
        while let Some(word @ ("!" | "time")) = self.plain() {
            // Whoever asks with `!` reads the answer, and `set -e` passes over it.
            is_asked |= word == "!";
            self.at += 1;
        }
        let (mut parts, mut hidden) = (0, Vec::new());
        loop {
            let start = self.at;
            let result = self.command()?;
            parts += 1;
            if !self.is(ShellOperator::Pipe) {
                // With `pipefail`, a part that fails decides even where the last one cannot fail.
                let fails = !hidden.is_empty() && self.options.pipefail && result == Upshot::Succeeds;
                let result = if fails { Upshot::CanFail } else { result };
                // Each part of a pipeline is a subshell, and `exit` leaves only that.
                let result = if parts > 1 { result.of_another_shell() } else { result };
                let seen = is_asked || self.options.pipefail;
                return Some((
                    if is_asked { Upshot::CanFail } else { result },
                    if seen { Vec::new() } else { hidden },
                ));
            }
            if result != Upshot::Succeeds {
                hidden.push(start..self.at);
            }
            self.at += 1;
            self.skip_lines();
        }
    }

    fn command(&mut self) -> Option<Upshot> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let result = self.command_here();
        self.depth -= 1;
        result
    }

    fn command_here(&mut self) -> Option<Upshot> {
        let result = match (self.kind()?, self.plain()) {
            (TokenKind::Operator(ShellOperator::Open), _) => {
                self.at += 1;
                // A subshell cannot change the options of the shell around it.
                let options = self.options;
                let list = self.list()?;
                self.options = options;
                self.is(ShellOperator::Close).then(|| self.at += 1)?;
                list.result()?.of_another_shell()
            }
            (TokenKind::Operator(_), _) => return None,
            // `((0))` fails, because a value of zero counts as false.
            (TokenKind::Arithmetic, _) => {
                self.at += 1;
                Upshot::CanFail
            }
            (_, Some("{")) => {
                self.at += 1;
                let list = self.list()?;
                self.take("}")?;
                list.result()?
            }
            (_, Some("if")) => self.branches()?,
            (_, Some("while" | "until")) => {
                self.at += 1;
                self.condition()?;
                self.body()?
            }
            (_, Some("for" | "select")) => {
                while self.plain() != Some("do") {
                    self.kind()?;
                    self.at += 1;
                }
                self.body()?
            }
            (_, Some("case")) => self.cases()?,
            (_, Some("function")) => {
                self.at += 2;
                if self.is(ShellOperator::Open) {
                    self.at += 2;
                }
                return self.function();
            }
            (_, Some("[[")) => {
                while self.take("]]").is_none() {
                    self.kind()?;
                    self.at += 1;
                }
                Upshot::CanFail
            }
            _ => return self.simple(),
        };
        let mut opens = false;
        while let Some(TokenKind::Redirection { opens: this }) = self.kind() {
            opens |= this;
            self.at += 1;
        }
        Some(if opens && result == Upshot::Succeeds { Upshot::CanFail } else { result })
    }

    /// Takes a list that is asked whether it succeeds.
    fn condition(&mut self) -> Option<()> {
        self.muted += 1;
        let list = self.list();
        self.muted -= 1;
        list?.result().map(drop)
    }

    /// Takes the body of a loop.
    fn body(&mut self) -> Option<Upshot> {
        self.take("do")?;
        let list = self.list()?;
        self.take("done")?;
        Some(one_of(&[list.result()?]))
    }

    fn branches(&mut self) -> Option<Upshot> {
        let mut results = Vec::new();
        self.at += 1;
        loop {
            self.condition()?;
            self.take("then")?;
            results.push(self.list()?.result()?);
            if self.take("elif").is_some() {
                continue;
            }
            if self.take("else").is_some() {
                results.push(self.list()?.result()?);
            }
            self.take("fi")?;
            return Some(one_of(&results));
        }
    }

    fn cases(&mut self) -> Option<Upshot> {
        self.at += 2;
        self.skip_ends();
        self.take("in")?;
        let mut results = Vec::new();
        loop {
            self.skip_ends();
            if self.take("esac").is_some() {
                return Some(one_of(&results));
            }
            while !self.is(ShellOperator::Close) {
                self.kind()?;
                self.at += 1;
            }
            self.at += 1;
            results.extend(self.list()?.result());
            if self.is(ShellOperator::CaseEnd) {
                self.at += 1;
            }
        }
    }

    /// Takes the body of a function. What it does to options is done when it is called.
    fn function(&mut self) -> Option<Upshot> {
        self.skip_ends();
        let options = self.options;
        self.command()?;
        self.options = options;
        Some(Upshot::Succeeds)
    }

    fn simple(&mut self) -> Option<Upshot> {
        let start = self.at;
        let (mut opens, mut runs) = (false, false);
        let mut words = Vec::new();
        while let Some(kind) = self.kind() {
            let token = &self.tokens[self.at];
            match kind {
                TokenKind::Operator(ShellOperator::Open) if self.at == start + 1 => {
                    self.at += 1;
                    self.is(ShellOperator::Close).then(|| self.at += 1)?;
                    return self.function();
                }
                TokenKind::Operator(ShellOperator::Open) => return None,
                TokenKind::Operator(_) => break,
                TokenKind::Redirection { opens: this } => opens |= this,
                TokenKind::Plain | TokenKind::Word | TokenKind::Arithmetic => {
                    words.push(&self.text[token.range.clone()]);
                }
            }
            runs |= token.reads.commands;
            self.at += 1;
        }
        if self.at == start {
            return None;
        }
        let assigned = words.iter().take_while(|word| is_assignment(word)).count();
        let result = match words.get(assigned..) {
            // Assignments alone succeed; a command within one of them is looked at below.
            None | Some([]) => Upshot::Succeeds,
            Some([name, arguments @ ..]) => {
                self.obey(name, arguments);
                result_of(name, arguments)
            }
        };
        // Opening a file for a redirection can fail, and so can a command within a word.
        Some(if result == Upshot::Succeeds && (opens || runs) { Upshot::CanFail } else { result })
    }

    /// Does what `set` and a trap for errors say.
    fn obey(&mut self, name: &str, arguments: &[&str]) {
        match name {
            "set" => self.options = self.options.after(arguments),
            // A trap for errors sees what `set -e` would end on.
            "trap" if arguments.last() == Some(&"ERR") => self.options.errexit = arguments[0] != "-",
            _ => {}
        }
    }
}

impl Options {
    /// Returns the options that hold after these words of `set`, or of a command line of a shell.
    pub(super) fn after(mut self, words: &[&str]) -> Self {
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let is_on = match word.as_bytes().first() {
                Some(b'-') if !word.starts_with("--") => true,
                Some(b'+') => false,
                _ => continue,
            };
            for letter in word[1..].chars() {
                match letter {
                    'e' => self.errexit = is_on,
                    // `-o` takes the next word, also at the end of letters such as `-euo`.
                    'o' => match words.next() {
                        Some(&"errexit") => self.errexit = is_on,
                        Some(&"pipefail") => self.pipefail = is_on,
                        _ => {}
                    },
                    _ => {}
                }
            }
        }
        self
    }
}

/// Returns what comes of a command of which one branch is taken.
fn one_of(results: &[Upshot]) -> Upshot {
    if results.contains(&Upshot::CanFail) { Upshot::CanFail } else { Upshot::Succeeds }
}

/// Returns what comes of a command. The ones that succeed are those that only print, or set something in the shell.
fn result_of(name: &str, arguments: &[&str]) -> Upshot {
    match name {
        ":" | "true" | "echo" | "printf" | "sleep" | "set" | "shopt" | "trap" | "unset" | "umask"
        | "export" | "local" | "declare" | "typeset" | "readonly" | "alias" | "unalias" | "hash" => {
            Upshot::Succeeds
        }
        "/bin/true" | "/usr/bin/true" => Upshot::Succeeds,
        // `a || exit 0` hides the failure of `a` as `a || true` does.
        "exit" if arguments == ["0"] => Upshot::Succeeds,
        "exit" | "return" | "break" | "continue" | "exec" => Upshot::Leaves,
        _ => Upshot::CanFail,
    }
}
