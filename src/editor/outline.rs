//! What a loop file names: its states, captures, variables and fragments, where they are made and where they are used.
//! Names of other loops that it uses, such as their parameters, say so.
//!
//! It reads the text as written, with nothing expanded, so that every name has its place under the cursor.

use std::ops::Range;

use crate::base::diagnostic::Diagnostics;
use crate::base::node::{Entry, FileId, Node, NodeValue};
use crate::base::text::up_to;
use crate::definition::yaml;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    State,
    /// A result that is kept.
    Capture,
    /// A variable of `context`, or a parameter.
    Variable,
    Fragment,
    /// Another loop.
    Loop,
    /// A library of fragments.
    Library,
}

/// Whose name it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum NameOwner {
    /// That of the file it stands in, or of those that it takes over.
    #[default]
    ThisFile,
    /// That of another loop.
    Loop {
        /// The other one, as it is called here.
        named: String,
        /// States of it that run sub-loops, one within the other: the innermost owns the name.
        through: Vec<String>,
    },
}

/// A name in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameUse {
    /// The bytes of the name itself, without quotes.
    pub(super) range: Range<usize>,
    pub(super) kind: NameKind,
    pub(super) name: String,
    /// Whether the name is made here.
    pub(super) is_definition: bool,
    /// The keys that lead here, such as `states`, `check` and `on_yes`.
    pub(super) keys: Vec<String>,
    pub(super) owner: NameOwner,
    /// Whether it stands within a longer text, such as a template, where no quotes belong around it.
    pub(super) is_part: bool,
}

impl NameUse {
    /// Tells whether a cursor at this byte is in the name, or behind it.
    pub(super) fn touches(&self, byte: usize) -> bool {
        self.range.start <= byte && byte <= self.range.end
    }

    /// Returns the state in which the name is used, if that is in one.
    pub(super) fn within(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [first, state, _, ..] if STATES.contains(&first.as_str()) => Some(state),
            _ => None,
        }
    }
}

/// The mappings whose keys are states.
const STATES: [&str; 2] = ["states", "state_defs"];

/// The keys of a loop that name a state.
const OF_LOOP: [&str; 8] = [
    "initial",
    "on_error",
    "on_timeout",
    "on_blocked",
    "on_max_iterations",
    "on_max_steps",
    "on_resume",
    "on_stall",
];

/// The words that stand in the place of a state and name none.
const NO_STATES: [&str; 2] = ["$current", "stop"];

/// The namespaces of templates whose names are made in the same file.
const NAMESPACES: [(&str, NameKind); 2] = [("captured", NameKind::Capture), ("context", NameKind::Variable)];

/// A loop file as a list of names, with its tree.
#[derive(Clone, Debug)]
pub(super) struct LoopOutline {
    pub(super) tree: Node,
    /// Every name, in the order of the text.
    pub(super) names: Vec<NameUse>,
}

impl LoopOutline {
    /// Reads a text. One that cannot be parsed has no outline.
    pub(super) fn of(text: &str) -> Option<Self> {
        // Editors keep a byte order mark to themselves; one in the middle of a text is not ours to count.
        if text.starts_with('\u{feff}') {
            return None;
        }
        let tree = yaml::parse(text, FileId(0), &mut Diagnostics::default())?;
        let mut reader = OutlineReader { text, names: Vec::new() };
        reader.of_loop(&tree);
        reader.templates();
        Some(Self::from_names(tree, reader.names))
    }

    /// Puts names in the order of the text.
    pub(super) fn from_names(tree: Node, mut names: Vec<NameUse>) -> Self {
        names.sort_by_key(|name| (name.range.start, name.range.end));
        // What an alias stands for was met where it is written.
        names.dedup_by(|one, other| one.range == other.range && one.kind == other.kind);
        Self { tree, names }
    }

    /// Returns the name under a cursor.
    pub(super) fn at(&self, byte: usize) -> Option<&NameUse> {
        self.names.iter().find(|name| name.touches(byte))
    }

    /// Returns what a name stands for in the end. A result that no capture names is kept under the name of its state.
    pub(super) fn meaning(&self, of: &NameUse) -> NameKind {
        let is_state = of.kind == NameKind::Capture
            && !of.is_definition
            && !self.defines(NameKind::Capture, &of.name)
            && self.defines(NameKind::State, &of.name);
        if is_state { NameKind::State } else { of.kind }
    }

    fn defines(&self, kind: NameKind, name: &str) -> bool {
        self.definitions(kind).any(|definition| definition.name == name)
    }

    /// Returns where names of a kind are made.
    pub(super) fn definitions(&self, kind: NameKind) -> impl Iterator<Item = &NameUse> {
        self.names.iter().filter(move |name| name.is_definition && name.kind == kind)
    }

    /// Returns what a state says.
    pub(super) fn state(&self, name: &str) -> Option<&Node> {
        STATES.iter().find_map(|key| self.tree.get(key)?.get(name))
    }
}

/// Collects the names of a text.
struct OutlineReader<'t> {
    text: &'t str,
    names: Vec<NameUse>,
}

impl OutlineReader<'_> {
    fn of_loop(&mut self, tree: &Node) {
        for Entry { key, value, .. } in entries(tree) {
            let keys = [key.as_str()];
            match key.as_str() {
                key if OF_LOOP.contains(&key) => self.target(value, &keys),
                key if STATES.contains(&key) => {
                    for state in entries(value) {
                        self.key(NameKind::State, state, &keys);
                        self.of_state(&state.value, &[key, &state.key]);
                    }
                }
                "fragments" => {
                    for fragment in entries(value) {
                        self.key(NameKind::Fragment, fragment, &keys);
                        self.of_state(&fragment.value, &["fragments", &fragment.key]);
                    }
                }
                "context" | "parameters" => {
                    for variable in entries(value) {
                        self.key(NameKind::Variable, variable, &keys);
                    }
                }
                "stall" => value.get("action").into_iter().for_each(|action| self.target(action, &keys)),
                "artifact_output" => self.of_artifact(value, &keys),
                "flow" => items(value).iter().for_each(|item| self.of_flow(item)),
                "from" => self.value(NameKind::Loop, value, &keys),
                "name" => {
                    self.value(NameKind::Loop, value, &keys);
                    // A value that is not a name adds none, and the last one is then of another key.
                    self.names
                        .iter_mut()
                        .rev()
                        .take(1)
                        .for_each(|name| name.is_definition |= name.keys == keys);
                }
                "import" => items(value).iter().for_each(|item| self.value(NameKind::Library, item, &keys)),
                _ => {}
            }
        }
    }

    fn of_state(&mut self, state: &Node, around: &[&str]) {
        for Entry { key, value, .. } in entries(state) {
            let keys = [around, &[key]].concat();
            match key.as_str() {
                "next" => self.target(value, &keys),
                "route" => {
                    for way in entries(value) {
                        self.target(&way.value, &[keys.as_slice(), &[&way.key]].concat());
                    }
                }
                "check_condition" => {
                    value.get("source").into_iter().for_each(|source| self.target(source, &keys));
                }
                "capture" => {
                    self.value(NameKind::Capture, value, &keys);
                    self.names.iter_mut().rev().take(1).for_each(|name| {
                        name.is_definition = name.kind == NameKind::Capture && name.keys == keys;
                    });
                }
                "fragment" => self.value(NameKind::Fragment, value, &keys),
                "with" => self.of_sub_loop(state, value, &keys),
                "loop" => self.value(NameKind::Loop, value, &keys),
                key if key.starts_with("on_") => self.target(value, &keys),
                _ => {}
            }
        }
    }

    /// Reads what a state gives to the parameters of its sub-loop.
    fn of_sub_loop(&mut self, state: &Node, given: &Node, keys: &[&str]) {
        let Some(named) = state.get("loop").and_then(Node::as_scalar).map(|named| named.text.clone()) else {
            return;
        };
        let owner = NameOwner::Loop { named, through: Vec::new() };
        for parameter in entries(given) {
            let Some((range, name)) = written_key(self.text, parameter) else { continue };
            let (kind, is_definition) = (NameKind::Variable, false);
            let keys = keys.iter().map(|key| (*key).to_owned()).collect();
            let owner = owner.clone();
            self.names.push(NameUse { range, kind, name, is_definition, keys, owner, is_part: false });
        }
    }

    fn of_artifact(&mut self, value: &Node, keys: &[&str]) {
        let all: &[Node] = if items(value).is_empty() { std::slice::from_ref(value) } else { items(value) };
        let ends = all.iter().filter_map(|artifact| artifact.get("on")).flat_map(items);
        ends.for_each(|end| self.target(end, keys));
    }

    /// Reads `name` or `name?yes:no`.
    fn of_flow(&mut self, item: &Node) {
        let Some((start, text)) = self.written(item) else { return };
        let mut at = start;
        for (index, part) in text.split_inclusive(['?', ':']).enumerate() {
            let name = part.trim_end_matches(['?', ':']);
            let trimmed = name.trim();
            let begin = at + (name.len() - name.trim_start().len());
            at += part.len();
            if !trimmed.is_empty() && !NO_STATES.contains(&trimmed) {
                self.names.push(NameUse {
                    range: begin..begin + trimmed.len(),
                    kind: NameKind::State,
                    name: trimmed.to_owned(),
                    is_definition: index == 0,
                    keys: vec!["flow".to_owned()],
                    owner: NameOwner::ThisFile,
                    is_part: trimmed != text,
                });
            }
        }
    }

    /// Adds a name in the place of a state.
    fn target(&mut self, value: &Node, keys: &[&str]) {
        if value.as_scalar().is_some_and(|scalar| !NO_STATES.contains(&scalar.text.as_str())) {
            self.value(NameKind::State, value, keys);
        }
    }

    /// Adds a value that is a name. One that a run puts together has no value yet.
    fn value(&mut self, kind: NameKind, value: &Node, keys: &[&str]) {
        let Some((start, text)) = self.written(value) else { return };
        if text.is_empty() || text.contains("${") {
            return;
        }
        self.push(kind, start, text.to_owned(), keys, false);
    }

    /// Adds the key of a mapping as the place where its name is made.
    fn key(&mut self, kind: NameKind, entry: &Entry, keys: &[&str]) {
        let Some((range, name)) = written_key(self.text, entry) else { return };
        self.push(kind, range.start, name, keys, true);
    }

    fn push(&mut self, kind: NameKind, start: usize, name: String, keys: &[&str], is_definition: bool) {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let (range, owner) = (start..start + name.len(), NameOwner::ThisFile);
        // What has no key of its own is in a template.
        let is_part = keys.is_empty();
        self.names.push(NameUse { range, kind, name, is_definition, keys, owner, is_part });
    }

    fn written<'n>(&self, value: &'n Node) -> Option<(usize, &'n str)> {
        written_value(self.text, value)
    }

    /// Adds the names in templates, wherever they stand.
    fn templates(&mut self) {
        for (at, _) in self.text.match_indices("${") {
            // `$${` stands for the two characters themselves.
            if self.text[..at].ends_with('$') {
                continue;
            }
            let inside = &self.text[at + 2..];
            for (namespace, kind) in NAMESPACES {
                let rest = inside.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('.'));
                let Some(rest) = rest else { continue };
                let name = up_to(rest, &['.', '}', ':', '?', '[', '\n', '"', '\'']);
                if !name.is_empty() {
                    let start = at + 2 + namespace.len() + 1;
                    self.push(kind, start, name.to_owned(), &[], false);
                }
            }
        }
    }
}

/// Returns where the text of a value begins, if it is written as it is.
pub(super) fn written_value<'n>(text: &str, value: &'n Node) -> Option<(usize, &'n str)> {
    let read = value.as_scalar()?.text.as_str();
    let range = &value.span.range;
    let written = text.get(range.clone())?;
    let inner = written.strip_prefix(['\'', '"']).unwrap_or(written);
    let start = range.start + written.len() - inner.len();
    inner.starts_with(read).then_some((start, read))
}

/// Returns the bytes of a key without its quotes, and the key, if it is written as it is.
pub(super) fn written_key(text: &str, entry: &Entry) -> Option<(Range<usize>, String)> {
    let range = &entry.key_span.range;
    let written = text.get(range.clone())?;
    let at = range.start + written.find(&entry.key).filter(|_| !entry.key.is_empty())?;
    Some((at..at + entry.key.len(), entry.key.clone()))
}

/// Returns the entries of a mapping; anything else has none.
pub(super) fn entries(node: &Node) -> &[Entry] {
    match &node.value {
        NodeValue::Map(entries) => entries,
        NodeValue::List(_) | NodeValue::Scalar(_) => &[],
    }
}

/// Returns the items of a list; anything else has none.
pub(super) fn items(node: &Node) -> &[Node] {
    match &node.value {
        NodeValue::List(items) => items,
        NodeValue::Map(_) | NodeValue::Scalar(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: x
context: {limit: 3}
initial: 'check'
states:
  check: &c
    action: echo ${captured.out.output} ${context.limit} $${captured.no}
    on_yes: done
    route: {no: fix, _: $current}
  fix:
    action: echo ${captured.check}
    capture: out
    next: check
  copy: {<<: *c, fragment: f}
  done: {terminal: true}
fragments:
  f: {on_error: done, loop: tidy}
stall: {window: 2, action: stop}
";

    fn uses(text: &str, at: &str, nth: usize) -> Vec<(usize, bool)> {
        let outline = LoopOutline::of(text).unwrap();
        let byte = text.match_indices(at).nth(nth).unwrap().0;
        let name = outline.at(byte).unwrap();
        let line = |range: &Range<usize>| text[..range.start].matches('\n').count() + 1;
        let kind = outline.meaning(name);
        let uses =
            outline.names.iter().filter(|other| other.name == name.name && outline.meaning(other) == kind);
        uses.map(|found| (line(&found.range), found.is_definition)).collect()
    }

    #[test]
    fn every_use_of_a_name_is_found_once() {
        // From the definition, from a use in quotes, and from a template, which names the result of the state.
        let check = [(3, false), (5, true), (10, false), (12, false)];
        assert_eq!(uses(TEXT, "check: &c", 0), check);
        assert_eq!(uses(TEXT, "check'", 0), check);
        assert_eq!(uses(TEXT, "check}", 0), check);
        assert_eq!(uses(TEXT, "done", 0), [(7, false), (14, true), (16, false)]);
        assert_eq!(uses(TEXT, "out.output", 0), [(6, false), (11, true)]);
        assert_eq!(uses(TEXT, "limit}", 0), [(2, true), (6, false)]);
        assert_eq!(uses(TEXT, "f}", 0), [(13, false), (16, true)]);
    }

    #[test]
    fn states_of_a_flow_are_found_in_their_lines() {
        let text = "name: f\nflow: [a, 'b?done:a', done]\nstate_defs:\n  a: {action: x}\n";
        assert_eq!(uses(text, "done", 1), [(2, false), (2, true)]);
        assert_eq!(uses(text, "a, ", 0), [(2, true), (2, false), (4, true)]);
    }
}
