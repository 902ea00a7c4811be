//! The colours of what YAML takes for plain texts: templates, and the words of the shell in commands.

use std::ops::Range;

use ls_types::{SemanticToken, SemanticTokenType, SemanticTokensLegend};

use super::outline::entries;
use super::text_document::{ColumnUnit, TextDocument};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Entry, FileId, Node, NodeValue};
use crate::definition::yaml;
use crate::shell::command::is_assignment;
use crate::shell::lexer;
use crate::shell::token::TokenKind as ShellTokenKind;

/// What a part of a text is, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SemanticKind {
    /// `${` and `}`, and what is between the names.
    Mark,
    /// The first name of a template.
    Namespace,
    /// Another name of a template.
    Variable,
    /// How a value is written into a text, such as `:shell`.
    Quoting,
    /// The program that a command runs.
    Command,
    /// A word that the shell keeps to itself.
    Keyword,
    /// A text in quotes.
    Quoted,
    /// `&&`, `|` and the like.
    Connector,
}

/// All kinds, in the order of the legend.
const KINDS: [(SemanticKind, SemanticTokenType); 8] = [
    (SemanticKind::Mark, SemanticTokenType::MACRO),
    (SemanticKind::Namespace, SemanticTokenType::NAMESPACE),
    (SemanticKind::Variable, SemanticTokenType::VARIABLE),
    (SemanticKind::Quoting, SemanticTokenType::DECORATOR),
    (SemanticKind::Command, SemanticTokenType::FUNCTION),
    (SemanticKind::Keyword, SemanticTokenType::KEYWORD),
    (SemanticKind::Quoted, SemanticTokenType::STRING),
    (SemanticKind::Connector, SemanticTokenType::OPERATOR),
];

/// Words of the shell behind which a command begins.
const OPENING_WORDS: [&str; 8] = ["if", "then", "elif", "else", "do", "while", "until", "!"];

/// Other words of the shell.
const CLOSING_WORDS: [&str; 6] = ["fi", "done", "esac", "for", "case", "exit"];

/// Returns the names of the kinds.
pub(super) fn legend() -> SemanticTokensLegend {
    let token_types = KINDS.iter().map(|(_, name)| name.clone()).collect();
    SemanticTokensLegend { token_types, token_modifiers: Vec::new() }
}

/// A coloured part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ColouredPart {
    range: Range<usize>,
    kind: SemanticKind,
}

/// Returns the colours of a document, each counted from the one before, as the protocol has it.
pub(super) fn tokens(document: &TextDocument, unit: ColumnUnit) -> Vec<SemanticToken> {
    let mut all = Vec::new();
    let (mut line, mut column) = (0, 0);
    for part in parts(document.text()) {
        let range = document.range(&part.range, unit);
        // A client need not be able to show a token that goes over several lines.
        if range.start.line != range.end.line {
            continue;
        }
        let delta_line = range.start.line - line;
        let delta_start =
            if delta_line == 0 { range.start.character - column } else { range.start.character };
        (line, column) = (range.start.line, range.start.character);
        all.push(SemanticToken {
            delta_line,
            delta_start,
            length: range.end.character - range.start.character,
            token_type: part.kind as u32,
            token_modifiers_bitset: 0,
        });
    }
    all
}

/// Finds the coloured parts of a text in their order. None lies in another one or goes over the end of a line.
fn parts(text: &str) -> Vec<ColouredPart> {
    let mut all = templates(text);
    let tree = yaml::parse(text, FileId(0), &mut Diagnostics::default());
    let mut shell = Vec::new();
    if let Some(tree) = &tree {
        let groups = ["states", "state_defs", "fragments"];
        let states = groups.iter().filter_map(|group| tree.get(group)).flat_map(entries);
        states.filter_map(action).for_each(|action| of_shell(text, action.span.range.clone(), &mut shell));
    }
    all.sort_by_key(|part| (part.range.start, part.range.end));
    // A template stands above the shell text that it is in.
    let taken = covered(&all);
    let is_free = |part: &ColouredPart| {
        let next = taken.partition_point(|other| other.end <= part.range.start);
        taken.get(next).is_none_or(|other| part.range.end <= other.start)
    };
    all.extend(shell.into_iter().filter(is_free));
    all.sort_by_key(|part| (part.range.start, part.range.end));
    all
}

/// Returns what parts in their order cover, as ranges apart from each other.
fn covered(parts: &[ColouredPart]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for part in parts {
        match ranges.last_mut() {
            Some(last) if part.range.start <= last.end => last.end = last.end.max(part.range.end),
            Some(_) | None => ranges.push(part.range.clone()),
        }
    }
    ranges
}

/// Returns the shell text of a state.
fn action(state: &Entry) -> Option<&Node> {
    let kind = state.value.get("action_type").and_then(Node::as_scalar).map(|kind| kind.text.as_str());
    let action = state.value.get("action")?;
    // What begins with a slash is a command of an agent.
    let is_shell = matches!(&action.value, NodeValue::Scalar(scalar) if !scalar.text.starts_with('/'));
    (is_shell && kind.is_none_or(|kind| kind == "shell")).then_some(action)
}

/// Finds the parts of templates.
fn templates(text: &str) -> Vec<ColouredPart> {
    let mut all = Vec::new();
    let mut stop = 0;
    let mut begins = text.match_indices("${").map(|(at, _)| at).peekable();
    while let Some(at) = begins.next() {
        // Each part of a line is looked through once, however many templates have no end.
        if stop <= at {
            stop = text[at..].find(['}', '\n']).map_or(text.len(), |end| at + end);
        }
        let is_innermost = begins.peek().is_none_or(|next| stop < *next);
        if !is_innermost || !text[stop..].starts_with('}') || text[..at].ends_with('$') {
            continue;
        }
        let line = &text[at..=stop];
        let end = stop - at;
        let mut push = |range: Range<usize>, kind| {
            if !range.is_empty() {
                all.push(ColouredPart { range, kind });
            }
        };
        push(at..at + 2, SemanticKind::Mark);
        let inside = &line[2..end];
        let path = inside.find([':', '?', '|', ' ']).unwrap_or(inside.len());
        let names = &inside[..path];
        let first = names.find('.').unwrap_or(names.len());
        push(at + 2..at + 2 + first, SemanticKind::Namespace);
        push((at + 3 + first).min(at + 2 + path)..at + 2 + path, SemanticKind::Variable);
        push(at + 2 + path..at + end, SemanticKind::Quoting);
        push(at + end..at + end + 1, SemanticKind::Mark);
    }
    all
}

/// Colours a command: the programs that it runs, words of the shell itself, quoted words, and what stands between commands.
fn of_shell(text: &str, value: Range<usize>, all: &mut Vec<ColouredPart>) {
    let written = &text[value.clone()];
    let is_quoted = written.starts_with(['"', '\'']);
    let is_block = written.starts_with(['|', '>']);
    let first = match written.find('\n').filter(|_| is_block) {
        Some(header) => header + 1,
        None => usize::from(is_quoted),
    };
    let end = written.len() - usize::from(is_quoted && written.len() > 1);
    let Some(command) = written.get(first..end) else { return };
    let mut begins = true;
    for token in lexer::tokens(command).into_iter().flatten() {
        let word = &command[token.range.clone()];
        let kind = match token.kind {
            ShellTokenKind::Operator(_) => {
                begins = true;
                Some(SemanticKind::Connector).filter(|_| !word.trim().is_empty())
            }
            ShellTokenKind::Plain if begins && OPENING_WORDS.contains(&word) => Some(SemanticKind::Keyword),
            ShellTokenKind::Plain if begins && CLOSING_WORDS.contains(&word) => {
                begins = false;
                Some(SemanticKind::Keyword)
            }
            // Behind an assignment the program is still to come.
            ShellTokenKind::Plain | ShellTokenKind::Word if begins && is_assignment(word) => None,
            ShellTokenKind::Plain if begins => {
                begins = false;
                Some(SemanticKind::Command)
            }
            ShellTokenKind::Word => {
                begins = false;
                let is_whole = word.starts_with(['"', '\'']) && word.ends_with(['"', '\'']);
                Some(SemanticKind::Quoted).filter(|_| is_whole)
            }
            ShellTokenKind::Plain | ShellTokenKind::Arithmetic | ShellTokenKind::Redirection { .. } => None,
        };
        let start = value.start + first;
        let range = start + token.range.start..start + token.range.end;
        all.extend(kind.filter(|_| !word.contains('\n')).map(|kind| ColouredPart { range, kind }));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> Vec<String> {
        parts(text).into_iter().map(|part| format!("{:?} {}", part.kind, &text[part.range])).collect()
    }

    #[test]
    fn a_kind_is_its_place_in_the_legend() {
        assert!(KINDS.iter().zip(0..).all(|((kind, _), place)| *kind as u32 == place));
    }

    #[test]
    fn templates_and_commands_are_coloured() {
        let text = "states:\n  a:\n    action: |\n      FOO=1 make ${context.limit:shell} 'x y' && echo $HOME # so\n";
        assert_eq!(
            shown(text),
            [
                "Command make",
                "Mark ${",
                "Namespace context",
                "Variable limit",
                "Quoting :shell",
                "Mark }",
                "Quoted 'x y'",
                "Connector &&",
                "Command echo",
            ]
        );
        assert_eq!(
            shown("states:\n  a: {action: 'if true; fi'}\n"),
            ["Keyword if", "Command true", "Connector ;", "Keyword fi"]
        );
        assert_eq!(shown("states:\n  a: {action: \"$${x}\", action_type: prompt}\n"), Vec::<String>::new());
    }

    proptest! {
        #[test]
        fn no_part_lies_in_another(action in "[-a-z${}'\"#;|&() .:\n🐎]{0,60}") {
            let text = format!("states:\n  a:\n    action: |\n      x{}\n", action.replace('\n', "\n      "));
            let found = parts(&text);
            prop_assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start), "{found:?}");
            prop_assert!(found.iter().all(|part| text.get(part.range.clone()).is_some()));
        }
    }
}
