//! What is known of the name or key under a cursor, and the symbols of a document.

use std::fmt::Write as _;
use std::ops::Range;

use ls_types::{
    DocumentSymbol, Hover, HoverContents, MarkupContent, MarkupKind, Range as LspRange, SymbolKind,
};

use super::key_meanings::KeyMeanings;
use super::outline::{LoopOutline, NameKind, NameUse, entries};
use super::text_document::{ColumnUnit, TextDocument};
use crate::base::node::{Entry, Node};
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

    /// Returns the state under a cursor, wherever it is made.
    pub(super) fn state_at(&self, byte: usize) -> Option<&str> {
        let name = self.outline.at(byte).filter(|name| self.outline.meaning(name) == NameKind::State)?;
        Some(&name.name)
    }

    /// Says what a state does that this document makes.
    pub(super) fn hover_of_state(&self, name: &str) -> Option<Hover> {
        let value = self.about_state(name)?;
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
        Some(Hover { contents, range: None })
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
                // Only names in templates have no keys, and these are no transitions.
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

/// Takes the meaning of Markdown off a text that somebody else has written.
fn screened(text: &str) -> String {
    text.chars().flat_map(|c| [Some('\\').filter(|_| c.is_ascii_punctuation()), Some(c)]).flatten().collect()
}

/// Writes a name as code, whatever is in it.
pub(super) fn code(name: &str) -> String {
    // A run of backticks that is longer than any in the text cannot be closed by the text.
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // Markdown takes one blank off at each end, so that a backtick may stand at the edge.
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

    #[test]
    fn the_symbols_are_the_states() {
        let document = TextDocument::new(TEXT.to_owned());
        let symbols =
            ReadDocument::of(&document, ColumnUnit::Utf8, KeyMeanings::of_loops()).unwrap().symbols();
        let names: Vec<_> = symbols[0].children.iter().flatten().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["check", "done"]);
    }
}
