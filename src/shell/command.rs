//! The simple commands of a shell text, in order, whatever they are a part of.

use std::ops::Range;

use super::lexer::{OPENERS, tokens};
use super::token::{ShellOperator, ShellToken, TokenKind};

/// Substitutions inside of each other; what is deeper is not looked at.
// Each level cuts the text within it anew, so that a text of nothing but levels would take its length squared.
const DEEPEST: usize = 8;

/// Words that close something, or come between its parts; a command can follow.
const CLOSERS: [&str; 5] = ["}", "fi", "done", "esac", "then"];

/// A command: its words, and what stands around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Its words, without redirections, keywords and the assignments before them. There is at least one.
    pub words: Vec<CommandWord>,
    /// Where it stands, from its first word to its last.
    pub range: Range<usize>,
    /// What follows it; nothing at the end of the text or of a substitution.
    pub after: Option<ShellOperator>,
    /// The files that it reads its input from.
    pub inputs: Vec<CommandWord>,
    /// Whether it stands on the top of the text: in no substitution, condition, loop or group.
    pub is_plain: bool,
    /// What becomes of what it prints.
    pub output: CommandOutput,
}

/// What becomes of what a command prints, unless it is piped into the command behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// It is shown, or thrown away.
    Shown,
    /// It goes to a file.
    Written(String),
    /// It becomes a part of another command, or of a variable.
    Substituted,
}

/// A word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWord {
    /// Where it stands.
    pub range: Range<usize>,
    /// What the command is given, where that does not depend on anything. A pattern of files stays as it is.
    pub value: Option<String>,
}

impl SimpleCommand {
    /// The values of its words, as far as they are known.
    pub fn values(&self) -> Vec<Option<&str>> {
        self.words.iter().map(|word| word.value.as_deref()).collect()
    }
}

/// Returns the simple commands of a text, those in its substitutions, too. A text that is not shell text has none.
pub fn commands(text: &str) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    collect(text, 0, 0, &mut found);
    // A command in a substitution is found before the one that the substitution is a part of.
    found.sort_by_key(|command| (command.range.start, command.range.end));
    found
}

/// Returns the commands of a text that is nothing but commands joined by `&&`: no pipeline, no substitution, nothing
/// that could keep one of them from being run or from being asked.
pub fn joined_by_and(text: &str) -> Option<Vec<SimpleCommand>> {
    let tokens = tokens(text.trim())?;
    let is_simple = |token: &ShellToken| match token.kind {
        TokenKind::Plain | TokenKind::Word | TokenKind::Redirection { .. } => token.bodies.is_empty(),
        TokenKind::Operator(operator) => operator == ShellOperator::And,
        TokenKind::Arithmetic => false,
    };
    if !tokens.iter().all(is_simple) {
        return None;
    }
    let found = commands(text.trim());
    let joins = tokens.iter().filter(|token| matches!(token.kind, TokenKind::Operator(_))).count();
    // A lone assignment is not among the commands, so that one side of a join would have none.
    (found.len() == joins + 1 && found.iter().all(|command| command.is_plain)).then_some(found)
}

/// Tells whether a text asks whoever calls it for a line: a `read` that nothing in the text feeds.
pub fn reads_input(text: &str) -> bool {
    let commands = commands(text);
    let is_fed =
        text.contains('<') || commands.iter().any(|command| command.after == Some(ShellOperator::Pipe));
    !is_fed && commands.iter().any(|command| command.values().first() == Some(&Some("read")))
}

/// Collects the commands of a text that stands at a place of another one.
fn collect(text: &str, offset: usize, depth: usize, found: &mut Vec<SimpleCommand>) {
    if depth > DEEPEST {
        return;
    }
    let Some(tokens) = tokens(text) else { return };
    let mut open =
        Building { text, offset, depth, words: Vec::new(), inputs: Vec::new(), groups: 0, written: None };
    for token in &tokens {
        open.take(token, found);
        for body in &token.bodies {
            collect(&text[body.clone()], offset + body.start, depth + 1, found);
        }
    }
    open.end(None, found);
}

/// The command that is being read.
struct Building<'t> {
    text: &'t str,
    offset: usize,
    depth: usize,
    words: Vec<CommandWord>,
    inputs: Vec<CommandWord>,
    /// Compound commands around it.
    groups: usize,
    /// The file that takes what it prints.
    written: Option<String>,
}

impl Building<'_> {
    fn take(&mut self, token: &ShellToken, found: &mut Vec<SimpleCommand>) {
        let text = &self.text[token.range.clone()];
        match token.kind {
            TokenKind::Operator(operator) => {
                self.end(Some(operator), found);
                match operator {
                    ShellOperator::Open => self.groups += 1,
                    ShellOperator::Close => self.groups = self.groups.saturating_sub(1),
                    ShellOperator::End
                    | ShellOperator::Background
                    | ShellOperator::And
                    | ShellOperator::Or
                    | ShellOperator::Pipe
                    | ShellOperator::CaseEnd => {}
                }
            }
            // In quotes, or behind another word, a keyword is a word like any other.
            TokenKind::Plain if self.words.is_empty() && self.is_keyword(text) => {}
            TokenKind::Redirection { .. } => {
                let is_file = text.starts_with('<') && !text.starts_with("<<") && !text.starts_with("<&");
                if is_file {
                    let target = text[1..].trim_start();
                    let start = token.range.end - target.len();
                    self.inputs.push(self.word(start..token.range.end));
                }
                // `1>` and `&>` write standard output as well; `2>` does not.
                let output = text.trim_start_matches(['1', '&']).strip_prefix('>');
                let target = output.map(|target| target.trim_start_matches(['>', '|']).trim_start());
                let target = target.and_then(literal);
                let is_file = |target: &String| !target.starts_with('&') && !target.starts_with("/dev/");
                self.written = target.filter(is_file).or(self.written.take());
            }
            TokenKind::Plain | TokenKind::Word if self.words.is_empty() && is_assignment(text) => {}
            TokenKind::Plain | TokenKind::Word => self.words.push(self.word(token.range.clone())),
            TokenKind::Arithmetic => {}
        }
    }

    /// Tells whether a word at the beginning of a command does not belong to it, and keeps count of what it opens.
    fn is_keyword(&mut self, word: &str) -> bool {
        match word {
            "if" | "while" | "until" | "{" | "case" | "for" | "select" => self.groups += 1,
            "fi" | "done" | "}" | "esac" => self.groups = self.groups.saturating_sub(1),
            _ => {}
        }
        OPENERS.contains(&word) || CLOSERS.contains(&word)
    }

    fn word(&self, range: Range<usize>) -> CommandWord {
        let value = literal(&self.text[range.clone()]);
        CommandWord { range: self.offset + range.start..self.offset + range.end, value }
    }

    fn end(&mut self, after: Option<ShellOperator>, found: &mut Vec<SimpleCommand>) {
        let words = std::mem::take(&mut self.words);
        let inputs = std::mem::take(&mut self.inputs);
        let written = self.written.take();
        let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
        let range = first.range.start..last.range.end;
        let is_plain = self.depth == 0 && self.groups == 0;
        let output = match written {
            Some(file) => CommandOutput::Written(file),
            None if self.depth > 0 => CommandOutput::Substituted,
            None => CommandOutput::Shown,
        };
        found.push(SimpleCommand { words, range, after, inputs, is_plain, output });
    }
}

/// Returns what a word is for the command that gets it, where nothing in it is substituted.
fn literal(word: &str) -> Option<String> {
    let mut value = String::new();
    let mut quote = None;
    let mut signs = word.chars();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (Some(open), _) if open == sign => quote = None,
            (Some('\''), _) => value.push(sign),
            (_, '$' | '`') => return None,
            (None, '\'' | '"') => quote = Some(sign),
            (None, '\\') => match signs.next() {
                Some('\n') | None => {}
                Some(next) => value.push(next),
            },
            (Some(_), '\\') => match signs.next() {
                Some('\n') | None => {}
                Some(next @ ('"' | '\\' | '$' | '`')) => value.push(next),
                // Before any other sign within double quotes, a backslash is a letter.
                Some(next) => value.extend(['\\', next]),
            },
            (Some(_) | None, _) => value.push(sign),
        }
    }
    Some(value)
}

/// Tells whether a word sets a variable: `NAME=…`, `NAME+=…` or `NAME[…]=…`.
pub fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let all = commands(text);
        let words = all.iter().map(|command| {
            let words: Vec<&str> = command.values().iter().map(|value| value.unwrap_or("?")).collect();
            format!("{}{}", words.join(" "), if command.is_plain { "" } else { "*" })
        });
        words.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_command_that_asks_somebody_is_known() {
        for (text, expected) in [
            ("read -p 'sure? ' answer && test \"$answer\" = y", true),
            ("echo x; read line", true),
            ("while read -r line; do echo \"$line\"; done < list", false),
            ("git ls-files | while read -r file; do echo \"$file\"; done", false),
            ("cat read", false),
            ("echo 'read'", false),
        ] {
            assert_eq!(reads_input(text), expected, "{text}");
        }
    }

    #[test]
    fn commands_are_found_wherever_they_stand() {
        for (text, expected) in [
            ("a b", "a b"),
            ("X=1 a 'b c' \"d\"e\\ f", "a b c de f"),
            ("a && b || c; d &\ne", "a | b | c | d | e"),
            ("if a; then b; else c; fi; d", "a* | b* | c* | d"),
            ("{ a; }; (b); c", "a* | b* | c"),
            ("a \"$(b 'c')\" `d`", "a ? ? | b c* | d*"),
            ("a > x 2>&1 < y", "a"),
            ("a \"$X\" $(b $(c))", "a ? ? | b ?* | c*"),
            ("cat <<EOF\na b\nEOF\nc", "cat | c"),
            ("! a | time b", "a | b"),
            ("'a", ""),
            ("", ""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_chain_is_commands_and_nothing_else() {
        for (text, count) in [("a", 1), ("a b && c\n", 2), ("a && b && c > log", 3)] {
            assert_eq!(joined_by_and(text).map(|commands| commands.len()), Some(count), "{text}");
        }
        for text in ["", "a; b", "a || b", "a | b", "a $(b)", "(a)", "if a && b", "a &", "X=1 && a", "a\nb"] {
            assert_eq!(joined_by_and(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_command_reads_is_known() {
        let all = commands("sh < ./check.sh; bash <<< 'a'");
        assert_eq!(all[0].inputs[0].value.as_deref(), Some("./check.sh"));
        assert!(all[1].inputs.is_empty());
    }
}
