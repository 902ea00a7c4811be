//! From what a file says to a plain loop: parents, fragments, short forms and paradigms are worked in here, on the
//! tree, so that every value keeps the place where it was written, in whichever file.
//!
//! Nothing is read here; whoever calls hands over the files that are asked for.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::schema::{Composition, Loop, Parameter};
use super::source::Sources;
use super::tree::{Level, entries, entries_mut, entry, items, map, merge, plain, put, take, text, weight};
use super::yaml::{self, MAX_SIZE};
use super::{classic, paradigm};
use crate::base::decode::{Decode, Record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use crate::base::name::VarName;
use crate::base::node::{Entry, Node, NodeValue, Scalar, Span};
use crate::base::path::DocPath;

/// A definition is made of at most this many files.
const MAX_FILES: usize = 50;

/// Together they have at most this many bytes.
const MAX_BYTES: usize = 2 * MAX_SIZE;

/// What is copied into a loop has at most this many values.
const MAX_COPIED: usize = 2 * yaml::MAX_NODES;

/// What is copied into a loop has at most this many bytes of text.
const MAX_COPIED_TEXT: usize = 4 * MAX_SIZE;

/// What kind of file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A loop to inherit from.
    Parent,
    /// A library of fragments.
    Library,
}

/// A file that another one names.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'r> {
    /// What kind of file.
    pub kind: Kind,
    /// How it is named.
    pub name: &'r str,
    /// The file that names it.
    pub from: &'r Path,
}

/// A file that was found and read.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// What it is known by: the same file always by the same path.
    pub path: PathBuf,
    /// The file as people know it.
    pub shown: String,
    /// What it holds.
    pub text: String,
}

/// Finds and reads files, or says why it cannot.
pub type Fetch<'f> = dyn FnMut(&Reference<'_>) -> Result<Fetched, String> + 'f;

/// What came of a file.
pub struct Resolved {
    /// The plain loop.
    pub tree: Node,
    /// Whether everything is in it; otherwise what it lacks may come from what could not be worked in.
    pub complete: bool,
    /// Whether parts of it come from elsewhere, so that one place may be met several times.
    pub composed: bool,
}

/// Works everything into the tree of a loop file, which has to be the only one of the sources.
pub fn resolve(
    tree: Node,
    path: &Path,
    sources: &mut Sources,
    fetch: &mut Fetch<'_>,
    out: &mut Diagnostics,
) -> Resolved {
    let paths = vec![path.to_owned()];
    let mut resolver = Resolver {
        sources,
        fetch,
        out,
        paths,
        read: HashMap::new(),
        copied: (0, 0),
        complete: true,
        composed: false,
    };
    let tree = resolver.all(tree);
    Resolved { tree, complete: resolver.complete, composed: resolver.composed }
}

/// A partial state and what it wants to be told.
#[derive(Clone)]
struct Fragment {
    state: Node,
    parameters: IndexMap<VarName, Parameter>,
    /// The parameters as they were written, for their defaults.
    written: Option<Node>,
}

struct Resolver<'r, 'f> {
    sources: &'r mut Sources,
    fetch: &'r mut Fetch<'f>,
    out: &'r mut Diagnostics,
    /// The path of each file, by its number.
    paths: Vec<PathBuf>,
    read: HashMap<PathBuf, Option<Node>>,
    copied: (usize, usize),
    complete: bool,
    composed: bool,
}

impl Resolver<'_, '_> {
    fn all(&mut self, tree: Node) -> Node {
        if !matches!(tree.value, NodeValue::Map(_)) {
            return tree;
        }
        let name = self.sources.iter().next().map(|source| source.name().to_owned()).unwrap_or_default();
        let mut chain = vec![(self.paths[0].clone(), name)];
        let mut tree = self.inherit(tree, &mut chain);
        self.misspelt(&tree);
        self.flow(&mut tree);
        let mut tree = self.paradigm(tree);
        let library = self.library(&mut tree);
        if let Some(states) = entries_mut(&mut tree).iter_mut().find(|entry| entry.key == "states") {
            for state in entries_mut(&mut states.value) {
                self.fragment(state, &library);
            }
        }
        let mut found = Diagnostics::default();
        let before = tree.clone();
        classic::translate(&mut tree, &mut found);
        self.report(&before, found);
        tree
    }

    /// Reports something about a place in a file.
    fn error(&mut self, code: &'static str, span: &Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, Place::At(span.clone()), message)
    }

    fn push(&mut self, finding: Diagnostic) {
        self.out.push(finding);
    }

    /// Reports findings about a tree that is not the one that comes of all this: their places are looked up now.
    fn report(&mut self, tree: &Node, found: Diagnostics) {
        for finding in found.iter() {
            let mut finding = finding.clone();
            let at = |place: &Place| self.sources.locate(place, Some(tree)).map(Place::At);
            finding.place = at(&finding.place).unwrap_or(finding.place);
            finding.related = finding.related.map(|(place, remark)| (at(&place).unwrap_or(place), remark));
            self.out.push(finding);
        }
    }

    /// Reads a value of a tree, if it is there.
    fn value<T: Decode>(&mut self, tree: &Node, path: &DocPath) -> Option<T> {
        let node = tree.at(path).filter(|node| !node.is_null())?;
        let mut found = Diagnostics::default();
        let value = T::decode(node, path, &mut found);
        self.complete &= value.is_some();
        self.report(tree, found);
        value
    }

    /// Pays for a copy; says so when it is one too many.
    fn pay(&mut self, node: &Node, span: &Span) -> bool {
        let (values, bytes) = weight(node);
        let before = self.copied;
        self.copied = (before.0 + values, before.1 + bytes);
        let within = |(values, bytes): (usize, usize)| values <= MAX_COPIED && bytes <= MAX_COPIED_TEXT;
        if !within(self.copied) && within(before) {
            let message = "the loop becomes too large with all that it takes from elsewhere";
            let finding = self.error("limit", span, message);
            self.push(finding.help(format!("at most {MAX_COPIED} values are copied into a loop")));
        }
        self.complete &= within(self.copied);
        within(self.copied)
    }

    /// Reads another file.
    fn file(&mut self, kind: Kind, name: &str, span: &Span) -> Result<(PathBuf, Option<Node>), String> {
        let from = self.paths.get(usize::from(span.file.0)).cloned().unwrap_or_default();
        let fetched = (self.fetch)(&Reference { kind, name, from: &from })?;
        if let Some(known) = self.read.get(&fetched.path) {
            let known = known.clone().filter(|tree| self.pay(tree, span));
            return Ok((fetched.path, known));
        }
        let bytes: usize = self.sources.iter().map(|source| source.text().len()).sum();
        if self.paths.len() >= MAX_FILES {
            return Err(format!("it is one file too many; a loop is made of at most {MAX_FILES}"));
        }
        if bytes + fetched.text.len() > MAX_BYTES {
            return Err("all files together are larger than 8 MiB".to_owned());
        }
        let text = fetched.text.strip_prefix('\u{feff}').unwrap_or(&fetched.text);
        let file = self.sources.add(fetched.shown, text);
        self.paths.push(fetched.path.clone());
        self.composed = true;
        let mut found = Diagnostics::default();
        let tree = yaml::parse(text, file, &mut found);
        let at = |place: Place| match place {
            Place::Bytes(range) => Place::At(Span { file, range }),
            Place::File => Place::At(Span { file, range: 0..0 }),
            other => other,
        };
        for finding in found.iter() {
            let mut finding = finding.clone();
            finding.place = at(finding.place);
            finding.related = finding.related.map(|(place, remark)| (at(place), remark));
            self.out.push(finding);
        }
        let tree = tree.filter(|tree| self.pay(tree, span));
        if let Some(Node { value: NodeValue::List(_) | NodeValue::Scalar(_), span }) = &tree {
            let finding = self.error("wrong-type", span, "this file must be a mapping");
            self.push(finding);
        }
        let tree = tree.filter(|tree| matches!(tree.value, NodeValue::Map(_)));
        self.read.insert(fetched.path.clone(), tree.clone());
        Ok((fetched.path, tree))
    }

    /// Lays a loop over the one it inherits from, and that one over its own, as long as there is one.
    fn inherit(&mut self, mut tree: Node, chain: &mut Vec<(PathBuf, String)>) -> Node {
        let name: Option<String> = self.value(&tree, &DocPath::root().key("from"));
        let taken = take(&mut tree, "from");
        let (Some(name), Some(Entry { value: Node { span, .. }, .. })) = (name, taken) else {
            return tree;
        };
        let way = |last: &str| {
            let names = chain.iter().map(|(_, name)| name.as_str()).chain([last]);
            names.collect::<Vec<_>>().join(" → ")
        };
        match self.file(Kind::Parent, &name, &span) {
            Err(why) => {
                let message = format!("the loop `{name}` to inherit from cannot be read: {why}");
                let mut finding = self.error("no-parent", &span, message);
                if chain.len() > 1 {
                    finding = finding.help(format!("it is asked for by {}", way(&name)));
                }
                self.push(finding);
                self.complete = false;
                tree
            }
            Ok((path, _)) if chain.iter().any(|(open, _)| *open == path) => {
                let message = format!("the loop inherits from itself: {}", way(&name));
                let finding = self.error("from-cycle", &span, message);
                self.push(finding.help("remove one of the `from` lines"));
                self.complete = false;
                tree
            }
            Ok((_, None)) => {
                self.complete = false;
                tree
            }
            Ok((path, Some(parent))) => {
                let shown = self.sources.iter().last().map(|source| source.name().to_owned());
                chain.push((path, shown.unwrap_or(name)));
                let parent = self.inherit(parent, chain);
                chain.pop();
                merge(parent, tree, Level::Loop)
            }
        }
    }

    /// The keys that are worked in here are no keys of a plain loop, so nobody else could tell what was meant.
    fn misspelt(&mut self, tree: &Node) {
        let form = tree.get("paradigm").and_then(Node::as_scalar).map(|scalar| scalar.text.as_str());
        let ours: Vec<&str> =
            Composition::KEYS.iter().chain(form.map_or(&[][..], paradigm::keys)).copied().collect();
        for entry in entries(tree) {
            let key = entry.key.as_str();
            if ours.contains(&key) || Loop::KEYS.contains(&key) {
                continue;
            }
            let near = nearest(key, ours.iter().chain(Loop::KEYS).copied());
            if let Some(near) = near.filter(|near| ours.contains(near)) {
                let finding = self.error("unknown-key", &entry.key_span, format!("unknown key `{key}`"));
                self.push(finding.help(format!("did you mean `{near}`?")));
            }
        }
    }

    /// Writes the states out that `flow` names in a line each.
    fn flow(&mut self, tree: &mut Node) {
        let flow: Option<Vec<String>> = self.value(tree, &DocPath::root().key("flow"));
        let written = take(tree, "flow");
        let bodies = take(tree, "state_defs");
        let (Some(flow), Some(written)) = (flow, written) else {
            if let Some(bodies) = bodies {
                let message = "`state_defs` has no effect without `flow`";
                let place = Place::At(bodies.key_span);
                self.push(Diagnostic::warning("no-effect", place, message).help("write it as `states`"));
            }
            return;
        };
        let message = "`flow` is a short form; its states were written out";
        let help = "`ll-loop compile` prints them";
        self.push(Diagnostic::note("expanded", Place::At(written.key_span.clone()), message).help(help));
        let name = |item: &str| item.split('?').next().unwrap_or_default().trim().to_owned();
        let mut states = Vec::new();
        for (index, (item, node)) in flow.iter().zip(items(&written.value)).enumerate() {
            let span = &node.span;
            let routes = match item.split_once('?').map(|(_, routes)| routes.split_once(':')) {
                None => match flow.get(index + 1) {
                    Some(next) => vec![entry("next", text(span, name(next)))],
                    None => vec![entry("terminal", plain(span, "true"))],
                },
                Some(Some((yes, no))) if !yes.trim().is_empty() && !no.trim().is_empty() => {
                    vec![entry("on_yes", text(span, yes.trim())), entry("on_no", text(span, no.trim()))]
                }
                Some(_) => {
                    let finding = self.error("flow", span, format!("`{item}` is no entry of a flow"));
                    self.push(
                        finding.help("write `STATE`, or `STATE?YES:NO` with the two states that follow"),
                    );
                    self.complete = false;
                    continue;
                }
            };
            states.push(Entry { key: name(item), key_span: span.clone(), value: map(span, routes) });
        }
        let span = written.value.span.clone();
        let (Some(first), true) = (states.first().map(|state| state.key.clone()), self.complete) else {
            if flow.is_empty() {
                let finding = self.error("flow", &span, "the flow is empty");
                self.push(finding.help("name at least one state"));
            }
            self.complete = false;
            return;
        };
        let mut states = map(&span, states);
        for over in bodies.into_iter().chain(take(tree, "states")) {
            states = merge(states, over.value, Level::States);
        }
        put(tree, Entry { key: "states".to_owned(), key_span: written.key_span, value: states });
        if tree.get("initial").is_none() {
            put(tree, entry("initial", text(&span, first)));
        }
    }

    /// Writes out what a paradigm stands for.
    fn paradigm(&mut self, tree: Node) -> Node {
        let mut found = Diagnostics::default();
        let expanded = paradigm::expand(&tree, &mut found);
        self.report(&tree, found);
        match expanded {
            paradigm::Expanded::Plain => tree,
            paradigm::Expanded::Loop(expanded) => expanded,
            paradigm::Expanded::Rest(rest) => {
                self.complete = false;
                rest
            }
        }
    }

    /// Collects the fragments: what is imported first, then the loop's own.
    fn library(&mut self, tree: &mut Node) -> IndexMap<String, Fragment> {
        let mut library = IndexMap::new();
        let imports: Option<Vec<String>> = self.value(tree, &DocPath::root().key("import"));
        let written = take(tree, "import");
        let written = written.as_ref().map(|entry| items(&entry.value)).unwrap_or_default();
        for (name, node) in imports.iter().flatten().zip(written) {
            match self.file(Kind::Library, name, &node.span) {
                Ok((_, Some(file))) => {
                    if file.get("fragments").is_none() {
                        let message = format!("`{name}` has no `fragments`");
                        self.push(Diagnostic::warning("no-effect", Place::At(node.span.clone()), message));
                    }
                    self.fragments(&file, &mut library);
                }
                Ok((_, None)) => self.complete = false,
                Err(why) => {
                    let message = format!("the library `{name}` cannot be read: {why}");
                    let finding = self.error("no-library", &node.span, message);
                    self.push(finding.help("libraries are found relative to the file that imports them"));
                    self.complete = false;
                }
            }
        }
        self.fragments(tree, &mut library);
        take(tree, "fragments");
        library
    }

    fn fragments(&mut self, file: &Node, library: &mut IndexMap<String, Fragment>) {
        let Some(fragments) = file.get("fragments") else { return };
        if !matches!(fragments.value, NodeValue::Map(_)) && !fragments.is_null() {
            let finding = self.error("wrong-type", &fragments.span, "`fragments` must be a mapping");
            self.push(finding);
        }
        for Entry { key, value, .. } in entries(fragments) {
            let path = DocPath::root().key("fragments").key(key.clone());
            if !matches!(value.value, NodeValue::Map(_)) {
                let finding =
                    self.error("wrong-type", &value.span, format!("the fragment `{key}` must be a mapping"));
                self.push(finding);
                self.complete = false;
                continue;
            }
            let parameters = self.value(file, &path.key("parameters")).unwrap_or_default();
            let mut state = value.clone();
            take(&mut state, "description");
            let written = take(&mut state, "parameters").map(|entry| entry.value);
            if let Some(nested) = take(&mut state, "fragment") {
                let message = format!("the fragment `{key}` inherits from another one");
                let finding = self.error("nested-fragment", &nested.key_span, message);
                self.push(finding.help("fragments cannot be nested; write the keys out here"));
            }
            library.insert(key.clone(), Fragment { state, parameters, written });
        }
    }

    /// Lays a state over its fragment.
    fn fragment(&mut self, state: &mut Entry, library: &IndexMap<String, Fragment>) {
        let Some(wanted) = take(&mut state.value, "fragment").filter(|wanted| !wanted.value.is_null()) else {
            self.stray_with(&state.value);
            return;
        };
        self.composed = true;
        let span = wanted.value.span.clone();
        let name = wanted.value.as_scalar().map(|scalar| scalar.text.clone()).unwrap_or_default();
        let Some(fragment) = library.get(&name) else {
            let known: Vec<_> = library.keys().map(String::as_str).collect();
            let mut finding = self.error("unknown-fragment", &span, format!("there is no fragment `{name}`"));
            let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            finding = match (nearest(&name, known.iter().copied()), known.is_empty()) {
                (Some(near), _) => finding.help(format!("did you mean `{near}`? The fragments are {list}")),
                (None, false) => finding.help(format!("the fragments are {list}")),
                (None, true) => finding.help("add it under `fragments`, or `import` the file that has it"),
            };
            self.push(finding);
            self.complete = false;
            return;
        };
        if !self.pay(&fragment.state, &span) {
            return;
        }
        let given = take(&mut state.value, "with");
        let own = std::mem::replace(&mut state.value, plain(&span, ""));
        let mut merged = merge(fragment.state.clone(), own, Level::State);
        self.bind(&mut merged, given, &name, fragment, &span);
        state.value = merged;
    }

    fn stray_with(&mut self, state: &Node) {
        if let Some(with) = entries(state).iter().find(|entry| entry.key == "with")
            && state.get("loop").is_none()
        {
            let finding = self.error("unknown-key", &with.key_span, "`with` needs a `fragment` or a `loop`");
            self.push(
                finding.help("it gives values to their parameters; remove it, or name what takes them"),
            );
        }
    }

    /// Gives a fragment its parameters. What it does not declare is for the loop that the state runs, if it runs one.
    fn bind(&mut self, state: &mut Node, given: Option<Entry>, name: &str, fragment: &Fragment, span: &Span) {
        let mut bound: Vec<Entry> = Vec::new();
        let mut rest = Vec::new();
        let with = given.as_ref();
        if let Some(with) =
            with.filter(|with| !matches!(with.value.value, NodeValue::Map(_)) && !with.value.is_null())
        {
            let finding = self.error("wrong-type", &with.value.span, "`with` must be a mapping");
            self.push(finding);
        }
        for binding in with.map(|with| entries(&with.value)).unwrap_or_default() {
            match fragment.parameters.iter().find(|(known, _)| known.as_str() == binding.key) {
                Some((known, parameter)) => bound.extend(self.bound(binding, known, parameter)),
                None if state.get("loop").is_some() => rest.push(binding.clone()),
                None => self.unknown_parameter(binding, name, fragment),
            }
        }
        let is_given = |wanted: &str| with.is_some_and(|with| with.value.get(wanted).is_some());
        for (known, parameter) in fragment.parameters.iter().filter(|(known, _)| !is_given(known.as_str())) {
            let written = fragment.written.as_ref().and_then(|written| written.get(known.as_str()));
            match written.and_then(|written| written.get("default")).filter(|default| !default.is_null()) {
                Some(default) => bound.push(entry(known.as_str(), default.clone())),
                None if parameter.required => {
                    let message = format!("the fragment `{name}` needs the parameter `{known}`");
                    let finding = self.error("missing-parameter", span, message);
                    self.push(finding.help(format!("add `with: {{{known}: …}}`")));
                }
                None => {}
            }
        }
        let at = with.map_or(span, |with| &with.key_span).clone();
        if !bound.is_empty() {
            let own = take(state, "param").map(|entry| entry.value);
            let bound = map(&at, bound);
            let value = own.map_or(bound.clone(), |own| merge(own, bound, Level::Other));
            put(state, Entry { key: "param".to_owned(), key_span: at.clone(), value });
        }
        if !rest.is_empty() {
            let inner = take(state, "with").map(|entry| entry.value);
            let rest = map(&at, rest);
            let value = inner.map_or(rest.clone(), |inner| merge(inner, rest, Level::Other));
            put(state, Entry { key: "with".to_owned(), key_span: at, value });
        }
    }

    /// Checks the type of a value, where it is known.
    fn bound(&mut self, binding: &Entry, name: &VarName, parameter: &Parameter) -> Option<Entry> {
        let is_open = binding.value.as_scalar().is_some_and(|scalar| scalar.text.contains("${"));
        if is_open {
            return Some(binding.clone());
        }
        match parameter.convert(name, &binding.value.to_json()) {
            Ok(value) => {
                let mut binding = binding.clone();
                if let NodeValue::Scalar(scalar) = &mut binding.value.value
                    && !value.is_string()
                {
                    *scalar = Scalar::plain(value.to_string());
                }
                Some(binding)
            }
            Err(why) => {
                let finding = self.error("parameter", &binding.value.span, why);
                self.push(finding);
                None
            }
        }
    }

    fn unknown_parameter(&mut self, binding: &Entry, name: &str, fragment: &Fragment) {
        let message = format!("the fragment `{name}` has no parameter `{}`", binding.key);
        let known: Vec<_> = fragment.parameters.keys().map(VarName::as_str).collect();
        let finding = self.error("unknown-parameter", &binding.key_span, message);
        let finding = match nearest(&binding.key, known.iter().copied()) {
            Some(near) => finding.help(format!("did you mean `{near}`?")),
            None if known.is_empty() => finding.help("it declares no `parameters`; remove the line"),
            None => {
                let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                finding.help(format!("its parameters are {list}"))
            }
        };
        self.push(finding);
    }
}
