//! What is known of the name or key under a cursor, where else it stands, and the symbols of a document.

use std::fmt::Write as _;
use std::ops::Range;

use ls_types::{
    DocumentSymbol, Hover, HoverContents, MarkupContent, MarkupKind, Range as LspRange, SymbolKind, TextEdit,
};

use super::key_meanings::KeyMeanings;
use super::outline::{LoopOutline, NameKind, NameUse, entries};
use super::text_document::{ColumnUnit, TextDocument};
use crate::base::name::{StateName, VarName};
use crate::base::node::{Entry, Node, Scalar, ScalarValue};
use crate::base::text::one_line;

/// The longest line that is shown of an action.
const LONGEST: usize = 300;

/// The most lines that are shown of an action.
const MOST_LINES: usize = 10;

/// A document that was read, and what its columns count.
pub(super) struct ReadDocument<'d> {
    document: &'d TextDocument,
    outline: LoopOutline,
    unit: ColumnUnit,
    meanings: KeyMeanings<'static>,
}

impl<'d> ReadDocument<'d> {
    /// Reads a document. In one that cannot be parsed nothing is known.
    pub(super) fn of(
        document: &'d TextDocument,
        unit: ColumnUnit,
        meanings: KeyMeanings<'static>,
    ) -> Option<Self> {
        Some(Self { document, outline: LoopOutline::of(document.text())?, unit, meanings })
    }

    fn range(&self, bytes: &Range<usize>) -> LspRange {
        self.document.range(bytes, self.unit)
    }

    /// Returns the name under a cursor.
    pub(super) fn name_at(&self, byte: usize) -> Option<&NameUse> {
        self.outline.at(byte)
    }

    /// Returns where the name under a cursor is made.
    pub(super) fn definitions(&self, byte: usize) -> Vec<LspRange> {
        let Some(name) = self.outline.at(byte) else { return Vec::new() };
        let made = self.outline.uses(name).filter(|found| found.is_definition);
        made.map(|found| self.range(&found.range)).collect()
    }

    /// Returns where the name under a cursor stands.
    pub(super) fn references(&self, byte: usize, with_definitions: bool) -> Vec<LspRange> {
        let Some(name) = self.outline.at(byte) else { return Vec::new() };
        let uses = self.outline.uses(name).filter(|found| with_definitions || !found.is_definition);
        uses.map(|found| self.range(&found.range)).collect()
    }

    /// Returns the name under a cursor that can be given another one.
    pub(super) fn renamed(&self, byte: usize) -> Option<(LspRange, &str)> {
        let name = self.outline.at(byte).filter(|name| self.is_ours(name))?;
        Some((self.range(&name.range), &name.name))
    }

    /// Tells whether a name is made in this document, and no other one takes it from there unseen.
    fn is_ours(&self, name: &NameUse) -> bool {
        !matches!(name.kind, NameKind::Loop | NameKind::Library)
            && self.outline.uses(name).any(|found| found.is_definition)
    }

    /// Returns the edits that give the name under a cursor another one.
    ///
    /// # Errors
    /// No such thing can have the name, or another one has it.
    pub(super) fn rename(&self, byte: usize, to: &str) -> Result<Vec<TextEdit>, RenameError> {
        let name = self.outline.at(byte).filter(|name| self.is_ours(name)).ok_or(RenameError::NoName)?;
        let kind = self.outline.meaning(name);
        let is_valid = match kind {
            NameKind::State => StateName::parse(to).is_ok(),
            NameKind::Capture | NameKind::Variable => {
                VarName::parse(to).is_ok() && !to.contains(['.', '}', ':'])
            }
            NameKind::Fragment | NameKind::Loop | NameKind::Library => !to.trim().is_empty(),
        };
        if !is_valid || to != one_line(to, 200) {
            return Err(RenameError::Unfit { name: to.to_owned() });
        }
        if self.outline.definitions(kind).any(|other| other.name == to) {
            return Err(RenameError::Taken { name: to.to_owned() });
        }
        let edit = |found: &NameUse| TextEdit {
            range: self.range(&found.range),
            new_text: self.written(&found.range, to),
        };
        Ok(self.outline.uses(name).map(edit).collect())
    }

    /// Writes a name as it has to be at a place: in quotes where it would be read as something else.
    fn written(&self, range: &Range<usize>, name: &str) -> String {
        let text = self.document.text();
        match text[..range.start].chars().next_back() {
            Some('\'') => name.replace('\'', "''"),
            Some('"') => name.replace('\\', "\\\\").replace('"', "\\\""),
            // In a template it is a part of a text.
            Some('.') => name.to_owned(),
            _ if is_plain(name) => name.to_owned(),
            _ => format!("'{}'", name.replace('\'', "''")),
        }
    }

    /// Says what is under a cursor.
    pub(super) fn hover(&self, byte: usize) -> Option<Hover> {
        let name = self.outline.at(byte);
        let named = name.and_then(|name| Some((self.about(name)?, name.range.clone())));
        let (text, range) = named.or_else(|| self.about_key(byte))?;
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text });
        Some(Hover { contents, range: Some(self.range(&range)) })
    }

    fn about(&self, name: &NameUse) -> Option<String> {
        match self.outline.meaning(name) {
            NameKind::State => self.about_state(&name.name),
            NameKind::Capture => {
                let makers =
                    self.outline.definitions(NameKind::Capture).filter(|other| other.name == name.name);
                let makers: Vec<String> = makers.filter_map(NameUse::within).map(code).collect();
                (!makers.is_empty())
                    .then(|| format!("**{}**: what {} printed", screened(&name.name), makers.join(" or ")))
            }
            NameKind::Variable => {
                let (key, value) = ["context", "parameters"]
                    .iter()
                    .find_map(|key| Some((*key, self.outline.tree.get(key)?.get(&name.name)?)))?;
                let what = if key == "context" { "variable" } else { "parameter" };
                let value = one_line(&value.to_json().to_string(), LONGEST);
                Some(format!("{what} **{}**\n\n{}", screened(&name.name), fenced("json", &value)))
            }
            NameKind::Fragment | NameKind::Loop | NameKind::Library => None,
        }
    }

    /// Says what a state does, what leads there, and where it leads.
    fn about_state(&self, name: &str) -> Option<String> {
        let state = self.outline.state(name)?;
        let text = |key: &str| state.get(key).and_then(Node::as_scalar).map(|scalar| scalar.text.as_str());
        let is_terminal = text("terminal") == Some("true");
        let mut out = format!("{} **{}**", if is_terminal { "terminal" } else { "state" }, screened(name));
        if let Some(description) = text("description") {
            let _ = write!(out, "\n\n{}", screened(&one_line(description, LONGEST)));
        }
        if let Some(action) = text("action") {
            let lines: Vec<String> =
                action.lines().take(MOST_LINES).map(|line| one_line(line, LONGEST)).collect();
            let _ = write!(out, "\n\n{}", fenced("sh", &lines.join("\n")));
        }
        let mut lines = Vec::new();
        let from = self.outline.names.iter().filter(|found| found.name == name && !found.is_definition);
        for found in from.filter(|found| found.kind == NameKind::State) {
            match (found.within(), found.keys.last()) {
                (Some(state), Some(key)) => lines.push(format!("- from {} by {}", code(state), code(key))),
                (None, Some(key)) => lines.push(format!("- by {} of the loop", code(key))),
                (_, None) => {}
            }
        }
        let within = self.outline.names.iter().filter(|found| found.within() == Some(name));
        for found in within.filter(|found| found.kind == NameKind::State) {
            let key = found.keys.last().map_or("", String::as_str);
            lines.push(format!("- {} leads to {}", code(key), code(&found.name)));
        }
        if !lines.is_empty() {
            let _ = write!(out, "\n\n{}", lines.join("\n"));
        }
        Some(out)
    }

    /// Says what the key under a cursor means, or the evaluator that is chosen there.
    fn about_key(&self, byte: usize) -> Option<(String, Range<usize>)> {
        let found = key_at(&self.outline.tree, byte, &mut Vec::new())?;
        let keys: Vec<&str> = found.keys.iter().map(String::as_str).collect();
        let meanings = self.meanings;
        let word =
            found.value.filter(|_| keys.last() == Some(&"type")).and_then(|word| meanings.of_evaluator(word));
        let meaning = word.or_else(|| meanings.meaning(&keys).filter(|_| found.value.is_none()))?;
        let name = found.value.or_else(|| keys.last().copied())?;
        Some((format!("**{}**: {meaning}", screened(name)), found.range))
    }

    /// Returns the states, fragments, variables and parameters, in the order of the text.
    pub(super) fn symbols(&self) -> Vec<DocumentSymbol> {
        let groups = [
            ("context", SymbolKind::VARIABLE),
            ("parameters", SymbolKind::TYPE_PARAMETER),
            ("fragments", SymbolKind::MODULE),
            ("states", SymbolKind::FUNCTION),
            ("state_defs", SymbolKind::FUNCTION),
        ];
        let mut symbols = Vec::new();
        for group in entries(&self.outline.tree) {
            let Some((_, kind)) = groups.iter().find(|(key, _)| *key == group.key) else { continue };
            let children =
                entries(&group.value).iter().map(|entry| self.symbol(entry, *kind, None)).collect();
            symbols.push(self.symbol(group, SymbolKind::NAMESPACE, Some(children)));
        }
        symbols
    }

    fn symbol(
        &self,
        entry: &Entry,
        kind: SymbolKind,
        children: Option<Vec<DocumentSymbol>>,
    ) -> DocumentSymbol {
        let text =
            |key: &str| entry.value.get(key).and_then(Node::as_scalar).map(|scalar| scalar.text.as_str());
        let is_terminal = text("terminal") == Some("true");
        let detail = text("description").or_else(|| text("action")).or_else(|| text("loop"));
        let key = &entry.key_span.range;
        // What an alias stands for is written elsewhere.
        let end = entry.value.span.range.end.max(key.end);
        let end = if entry.value.span.range.start < key.start { key.end } else { end };
        #[expect(deprecated, reason = "the field has to be given")]
        DocumentSymbol {
            // The protocol wants a name.
            name: if entry.key.is_empty() { "''".to_owned() } else { entry.key.clone() },
            detail: detail.map(|detail| one_line(detail, 80)),
            kind: if is_terminal { SymbolKind::EVENT } else { kind },
            tags: None,
            deprecated: None,
            range: self.range(&(key.start..end)),
            selection_range: self.range(key),
            children,
        }
    }
}

/// Why a name cannot become another one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum RenameError {
    #[error("there is no name here that this file makes")]
    NoName,
    #[error("`{name}` cannot be a name here")]
    Unfit { name: String },
    #[error("`{name}` is there already")]
    Taken { name: String },
}

/// The key at a place.
struct KeyAt<'t> {
    keys: Vec<String>,
    range: Range<usize>,
    /// The word under the key, if the cursor is on that.
    value: Option<&'t str>,
}

fn key_at<'t>(node: &'t Node, byte: usize, keys: &mut Vec<String>) -> Option<KeyAt<'t>> {
    let holds = |range: &Range<usize>| range.start <= byte && byte <= range.end;
    for Entry { key, key_span, value } in entries(node) {
        keys.push(key.clone());
        if holds(&key_span.range) {
            return Some(KeyAt { keys: keys.clone(), range: key_span.range.clone(), value: None });
        }
        if holds(&value.span.range) {
            if let Some(scalar) = value.as_scalar() {
                return Some(KeyAt {
                    keys: keys.clone(),
                    range: value.span.range.clone(),
                    value: Some(&scalar.text),
                });
            }
            if let Some(found) = key_at(value, byte, keys) {
                return Some(found);
            }
        }
        keys.pop();
    }
    super::outline::items(node)
        .iter()
        .filter(|item| holds(&item.span.range))
        .find_map(|item| key_at(item, byte, keys))
}

/// Tells whether a name is read as a text without quotes.
fn is_plain(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    Scalar::plain(name.to_owned()).value == ScalarValue::String
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_word)
}

/// Takes the meaning of Markdown off a text that somebody else has written.
fn screened(text: &str) -> String {
    text.chars().flat_map(|c| [Some('\\').filter(|_| c.is_ascii_punctuation()), Some(c)]).flatten().collect()
}

/// Writes a name as code, whatever is in it.
fn code(name: &str) -> String {
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{name}`") } else { format!("{fence} {name} {fence}") }
}

/// Writes a text as a block of code, whatever is in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: x
initial: check
states:
  check:
    description: looks
    action: make `check`
    evaluate: {type: output_numeric, target: 1}
    on_yes: \"done\"
    on_no: check
  done: {terminal: true}
";

    fn hover(at: &str) -> String {
        let document = TextDocument::new(TEXT.to_owned());
        let read = ReadDocument::of(&document, ColumnUnit::Utf8, KeyMeanings::of_loops()).unwrap();
        let found = read.hover(TEXT.find(at).unwrap());
        match found.map(|hover| hover.contents) {
            Some(HoverContents::Markup(markup)) => markup.value,
            _ => String::new(),
        }
    }

    #[test]
    fn states_keys_and_evaluators_are_explained() {
        assert_eq!(hover("initial"), "**initial**: The state where a run starts.");
        let state = hover("check:");
        assert_eq!(
            state,
            "state **check**\n\nlooks\n\n```sh\nmake `check`\n```\n\n- by `initial` of the loop\n- from `check` by `on_no`\n- `on_yes` leads to `done`\n- `on_no` leads to `check`"
        );
        assert!(hover("done\"").starts_with("terminal **done**"));
        assert!(hover("output_numeric").starts_with("**output\\_numeric**: "), "{}", hover("output_numeric"));
        assert_eq!(hover("make"), "");
    }

    fn renamed(at: &str, to: &str) -> Result<String, RenameError> {
        let document = TextDocument::new(TEXT.to_owned());
        let read = ReadDocument::of(&document, ColumnUnit::Utf8, KeyMeanings::of_loops()).unwrap();
        let edits = read.rename(TEXT.find(at).unwrap(), to)?;
        let mut text = TEXT.to_owned();
        for edit in edits.into_iter().rev() {
            let bytes = document.byte(edit.range.start, ColumnUnit::Utf8)
                ..document.byte(edit.range.end, ColumnUnit::Utf8);
            text.replace_range(bytes, &edit.new_text);
        }
        Ok(text)
    }

    #[test]
    fn a_state_is_renamed_everywhere_and_written_so_that_it_is_read_again() {
        assert_eq!(renamed("done", "fine").unwrap(), TEXT.replace("done", "fine"));
        let quoted = renamed("done: {", "true").unwrap();
        assert_eq!(quoted, TEXT.replace("\"done\"", "\"true\"").replace("done:", "'true':"));
        assert_eq!(renamed("done", "check"), Err(RenameError::Taken { name: "check".to_owned() }));
        assert_eq!(renamed("done", "a/b"), Err(RenameError::Unfit { name: "a/b".to_owned() }));
        assert_eq!(renamed("make", "x"), Err(RenameError::NoName));
    }

    #[test]
    fn the_symbols_are_the_states() {
        let document = TextDocument::new(TEXT.to_owned());
        let symbols =
            ReadDocument::of(&document, ColumnUnit::Utf8, KeyMeanings::of_loops()).unwrap().symbols();
        let names: Vec<_> = symbols[0].children.iter().flatten().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["check", "done"]);
    }
}
