//! From what a file says to a plain loop: parents, fragments, short forms and paradigms are worked in here, on the
//! tree, so that every value keeps the place where it was written, in whichever file.
//!
//! Nothing is read here; the caller hands over the requested files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use indexmap::IndexMap;

use super::assembled_tree::{
    CopyCost, MergeLevel, entries, entries_mut, entry, given, items, map, merge, plain, put, take, text,
};
use super::builtin::{Builtin, is_builtin, rename_loops};
use super::schema::{Composition, Loop, Parameter};
use super::source_text::{SourceFile, Sources};
use super::vendored::CopiedFile;
use super::yaml::{self, MAX_SIZE};
use super::{classic, fragments, paradigm, promises};
use crate::base::advised_command::CommandLine;
use crate::base::decode::{Decode, MAX_ADVICE, Record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair, Severity, nearest};
use crate::base::explanation::Explanation;
use crate::base::name::VarName;
use crate::base::node::{Entry, FileId, Node, NodeValue, Scalar, Span};
use crate::base::path::DocPath;
use crate::base::text::{listed_in_part, up_to};

/// A definition is made of at most this many files.
// Each file can name others, so without a bound a stranger's loop could go on reading for ever.
const MAX_FILES: usize = 50;

/// Together they have at most this many bytes.
const MAX_BYTES: usize = 2 * MAX_SIZE;

/// What is copied into a loop has at most this many values.
const MAX_COPIED: usize = 2 * yaml::MAX_NODES;

/// The most states of a loop, including those that short forms expand to.
pub const MAX_STATES: usize = 2_000;

/// The lists of which each item becomes states.
const SHORT_FORMS: [&str; 3] = ["flow", "steps", "constraints"];

/// A loop imports at most this many libraries.
const MAX_IMPORTS: usize = MAX_FILES;

/// The required parameters that a run has the values for, where a state gives none.
const OF_RUNS: [(&str, &str); 4] = [
    ("run_dir", "${context.run_dir}"),
    ("loop_name", "${loop.name}"),
    ("started_at", "${loop.started_at}"),
    ("input_hash", "${context.input_hash}"),
];

/// What is copied into a loop has at most this many bytes of text.
const MAX_COPIED_TEXT: usize = 4 * MAX_SIZE;

/// What kind of file is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceKind {
    /// A loop to inherit from.
    Parent,
    /// A library of fragments.
    Library,
    /// A text that is taken as it is.
    Text,
}

/// A file that another one names.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'r> {
    /// What kind of file.
    pub kind: ReferenceKind,
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
pub type Fetch<'f> = dyn FnMut(&Reference<'_>) -> Result<Fetched, Explanation> + 'f;

/// The result of a file.
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
        copied: CopyCost::default(),
        complete: true,
        composed: false,
    };
    let tree = resolver.all(tree);
    Resolved { tree, complete: resolver.complete, composed: resolver.composed }
}

/// Reads the tree of a file.
pub(super) fn parse(text: &str, file: FileId, path: &Path, out: &mut Diagnostics) -> Option<Node> {
    let mut tree = yaml::parse(text, file, out)?;
    if let Some(file) = Builtin::at(path) {
        file.keep_names(&mut tree);
    } else if file != FileId(0)
        && let Some(copy) = CopiedFile::at(path)
    {
        // Merged into another file, names would be looked up beside that one; the loop file itself keeps its place.
        rename_loops(&mut tree, |name| Some(copy.within(name)));
    }
    Some(tree)
}

/// A fragment as it was written, and where it comes from.
struct Written {
    key_span: Span,
    value: Node,
    /// The library, and where it is imported; nothing for one of the loop itself.
    library: Option<(String, Span)>,
    read: FileReading,
}

/// The result of a fragment when the first state asked for it.
enum FileReading {
    /// No state has.
    Unasked,
    /// It is not usable, which was said.
    Failed,
    /// It is there.
    Read(Rc<Fragment>),
}

/// A partial state and its parameters.
struct Fragment {
    state: Node,
    parameters: IndexMap<VarName, Parameter>,
    /// The parameters as they were written, for their defaults.
    written: Option<Node>,
}

/// Makes a finding about a place in a file.
fn error(code: &'static str, span: &Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, FindingPlace::At(span.clone()), message)
}

struct Resolver<'r, 'f> {
    sources: &'r mut Sources,
    fetch: &'r mut Fetch<'f>,
    out: &'r mut Diagnostics,
    /// The path of each file, by its number.
    paths: Vec<PathBuf>,
    read: HashMap<PathBuf, Option<Node>>,
    copied: CopyCost,
    complete: bool,
    composed: bool,
}

impl Resolver<'_, '_> {
    fn all(&mut self, tree: Node) -> Node {
        if !matches!(tree.value, NodeValue::Map(_)) {
            return tree;
        }
        let name = self.sources.iter().next().map_or_else(String::new, |source| source.name().to_owned());
        let mut chain = vec![(self.paths[0].clone(), name)];
        let mut tree = self.inherit(tree, &mut chain);
        self.misspelt(&mut tree);
        // Before anything is expanded: each item becomes at least one state.
        self.short_forms(&mut tree);
        self.flow(&mut tree);
        let mut tree = self.paradigm(tree);
        let mut library = self.library(&mut tree);
        if let Some(states) = entries_mut(&mut tree).iter_mut().find(|entry| entry.key == "states") {
            let count = entries(&states.value).len();
            if count > MAX_STATES {
                let message = format!("the loop has {count} states, and may have {MAX_STATES}");
                let finding = error("limit", &states.key_span, message);
                self.push(finding.help("let it run other loops: `loop: NAME` in a state"));
                // Each of them would be looked at, and be about all others.
                let NodeValue::Map(states) = &mut states.value.value else { return tree };
                states.truncate(MAX_STATES);
                self.complete = false;
            }
            for state in entries_mut(&mut states.value) {
                self.fragment(state, &mut library);
            }
        }
        self.unused(&library);
        // Last, because parents, fragments and forms may bring keys of the classic dialect.
        classic::translate(&mut tree, self.out);
        tree
    }

    fn push(&mut self, finding: Diagnostic) {
        self.out.push(finding);
    }

    /// Reports findings about a tree that is not the one that comes of all this: their places are looked up now.
    fn report(&mut self, tree: &Node, found: &Diagnostics) {
        self.out.extend(self.sources.placed(found, tree));
    }

    /// Reads a value of a tree, if it is there.
    fn value<T: Decode>(&mut self, tree: &Node, path: &DocPath) -> Option<T> {
        let node = tree.at(path).filter(|node| !node.is_null())?;
        let mut found = Diagnostics::default();
        let value = T::decode(node, path, &mut found);
        self.complete &= value.is_some();
        self.report(tree, &found);
        value
    }

    /// Pays for a copy; says so when it is one too many.
    fn pay(&mut self, node: &Node, span: &Span) -> bool {
        let before = self.copied;
        self.copied = before.and(CopyCost::of(node));
        let within = |cost: CopyCost| cost.values <= MAX_COPIED && cost.bytes <= MAX_COPIED_TEXT;
        // The limit is reported once, at the copy that crossed it.
        if !within(self.copied) && within(before) {
            let message = "the loop becomes too large with all that it takes from elsewhere";
            let finding = error("limit", span, message);
            self.push(finding.help(format!("at most {MAX_COPIED} values are copied into a loop")));
        }
        self.complete &= within(self.copied);
        within(self.copied)
    }

    /// Reads another file.
    fn file(
        &mut self,
        kind: ReferenceKind,
        name: &str,
        span: &Span,
    ) -> Result<(PathBuf, Option<Node>), Explanation> {
        let fetched = self.fetched(kind, name, span)?;
        if let Some(known) = self.read.get(&fetched.path) {
            // A file that was read before is copied again, which has to be paid for like the first time.
            let known = known.clone().filter(|tree| self.pay(tree, span));
            return Ok((fetched.path, known));
        }
        let (file, text) = self.source(&fetched)?;
        let mut found = Diagnostics::default();
        let tree = parse(text, file, &fetched.path, &mut found);
        // The parser reports bytes of the text that it read; without a file they would mean those of the loop file.
        let at = |place: FindingPlace| match place {
            FindingPlace::Bytes(range) => FindingPlace::At(Span { file, range }),
            FindingPlace::File => FindingPlace::At(Span { file, range: 0..0 }),
            FindingPlace::Value(_)
            | FindingPlace::Key(_)
            | FindingPlace::Within(..)
            | FindingPlace::At(_) => place,
        };
        for finding in found.iter() {
            let mut finding = finding.clone();
            finding.place = at(finding.place);
            finding.related = finding.related.map(|(place, remark)| (at(place), remark));
            self.out.push(finding);
        }
        let tree = tree.filter(|tree| self.pay(tree, span));
        if let Some(Node { value: NodeValue::List(_) | NodeValue::Scalar(_), span }) = &tree {
            let finding = error("wrong-type", span, "this file must be a mapping");
            self.push(finding);
        }
        let tree = tree.filter(|tree| matches!(tree.value, NodeValue::Map(_)));
        // Also a file that is unusable, so that its errors are reported once.
        self.read.insert(fetched.path.clone(), tree.clone());
        Ok((fetched.path, tree))
    }

    /// Finds a file that another one names.
    fn fetched(&mut self, kind: ReferenceKind, name: &str, span: &Span) -> Result<Fetched, Explanation> {
        let from = self.paths.get(usize::from(span.file.0)).cloned();
        let from = from.ok_or_else(|| Explanation::new("it is not known which file names it"))?;
        (self.fetch)(&Reference { kind, name, from: &from })
    }

    /// Makes a file part of the definition, unless that becomes too large.
    fn source<'t>(&mut self, fetched: &'t Fetched) -> Result<(FileId, &'t str), Explanation> {
        let bytes: usize = self.sources.iter().map(|source| source.text().len()).sum();
        if self.paths.len() >= MAX_FILES {
            return Err(Explanation::new(format!(
                "it is one file too many; a loop is made of at most {MAX_FILES}"
            )));
        }
        if bytes + fetched.text.len() > MAX_BYTES {
            return Err(Explanation::new("all files together are larger than 2 MiB"));
        }
        let text = fetched.text.strip_prefix('\u{feff}').unwrap_or(&fetched.text);
        let file = self.sources.add(fetched.shown.clone(), text);
        self.paths.push(fetched.path.clone());
        self.composed = true;
        Ok((file, text))
    }

    /// Lays a loop over the one it inherits from, and that one over its own, as long as there is one.
    fn inherit(&mut self, mut tree: Node, chain: &mut Vec<(PathBuf, String)>) -> Node {
        // Before the merge, in which an empty value would quietly take away what the parent promises.
        promises::in_vain(&tree, self.out);
        let name: Option<String> = self.value(&tree, &DocPath::root().key("from"));
        let taken = take(&mut tree, "from");
        let (Some(name), Some(Entry { value: Node { span, .. }, .. })) = (name, taken) else {
            return tree;
        };
        let way = |last: &str| {
            let names = chain.iter().map(|(_, name)| name.as_str()).chain([last]);
            let mut names: Vec<_> = names.collect();
            // A chain may have fifty files; its two ends say where it comes from and where it broke.
            if names.len() > 8 {
                names.splice(4..names.len() - 3, ["…"]);
            }
            names.join(" → ")
        };
        match self.file(ReferenceKind::Parent, &name, &span) {
            Err(why) => {
                let message = format!("the loop `{name}` to inherit from cannot be read: {why}");
                let mut finding = error("no-parent", &span, message);
                if chain.len() > 1 {
                    finding = finding.help(format!("it is asked for by {}", way(&name)));
                }
                self.push(finding);
                self.complete = false;
                tree
            }
            Ok((path, _)) if chain.iter().any(|(open, _)| *open == path) => {
                let message = format!("the loop inherits from itself: {}", way(&name));
                let finding = error("from-cycle", &span, message);
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
                merge(parent, tree, MergeLevel::Loop)
            }
        }
    }

    /// The keys that are resolved here do not exist in a plain loop, so later stages could not report them.
    fn misspelt(&mut self, tree: &mut Node) {
        let form = tree.get("paradigm").and_then(Node::as_scalar).map(|scalar| scalar.text.as_str());
        let ours: Vec<&str> =
            Composition::KEYS.iter().chain(form.map_or(&[][..], paradigm::keys)).copied().collect();
        let known = |key: &str| ours.contains(&key) || Loop::KEYS.contains(&key);
        let meant = |key: &str| {
            nearest(key, ours.iter().chain(Loop::KEYS).copied()).filter(|near| ours.contains(near))
        };
        let wrong: Vec<_> = entries(tree)
            .iter()
            .filter(|entry| !known(&entry.key))
            .take(MAX_ADVICE)
            .filter_map(|entry| Some((entry.key.clone(), meant(&entry.key)?)))
            .collect();
        for (key, near) in wrong {
            let Some(entry) = take(tree, &key) else { continue };
            let finding = error("unknown-key", &entry.key_span, format!("unknown key `{key}`"));
            self.push(finding.meant(&key, near));
            // It would have given what is missing now.
            self.complete = false;
        }
    }

    /// Cuts lists of which each item becomes states.
    fn short_forms(&mut self, tree: &mut Node) {
        for entry in entries_mut(tree).iter_mut().filter(|entry| SHORT_FORMS.contains(&entry.key.as_str())) {
            let NodeValue::List(items) = &mut entry.value.value else { continue };
            if items.len() > MAX_STATES {
                let count = items.len();
                items.truncate(MAX_STATES);
                let message =
                    format!("`{}` has {count} entries, and a loop may have {MAX_STATES} states", entry.key);
                let finding = error("limit", &entry.key_span, message);
                self.out.push(finding.help("let it run other loops: `loop: NAME` in a state"));
                self.complete = false;
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
                promises::without_effect("state_defs", &bodies.value, self.out);
                let message = "`state_defs` has no effect without `flow`";
                let place = FindingPlace::At(bodies.key_span);
                self.push(Diagnostic::warning("no-effect", place, message).help("write it as `states`"));
            }
            return;
        };
        let message = "`flow` is a short form; its states were written out";
        let file = self.sources.iter().next().map_or("", SourceFile::name);
        let help = format!("`{}` prints them", CommandLine::of("compile").arg(file));
        self.push(
            Diagnostic::note("expanded", FindingPlace::At(written.key_span.clone()), message).help(help),
        );
        let name = |item: &str| up_to(item, &['?']).trim().to_owned();
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
                    let finding = error("flow", span, format!("`{item}` is not an entry of a flow"));
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
                let finding = error("flow", &span, "the flow is empty");
                self.push(finding.help("name at least one state"));
            }
            self.complete = false;
            return;
        };
        let mut states = map(&span, states);
        for over in bodies.into_iter().chain(take(tree, "states")) {
            states = merge(states, over.value, MergeLevel::States);
        }
        put(tree, Entry { key: "states".to_owned(), key_span: written.key_span, value: states });
        if given(tree, "initial").is_none() {
            put(tree, entry("initial", text(&span, first)));
        }
    }

    /// Expands a paradigm.
    fn paradigm(&mut self, mut tree: Node) -> Node {
        let form = tree.get("paradigm").and_then(Node::as_scalar).map(|scalar| scalar.text.clone());
        if let Some(key) = form.and_then(|form| paradigm::files(&form)) {
            self.texts(&mut tree, key);
        }
        let mut found = Diagnostics::default();
        let expanded = paradigm::expand(&tree, &mut found);
        // Beside a key that is misspelt, none is missing.
        let is_lack = |finding: &Diagnostic| match &finding.place {
            FindingPlace::Value(path) | FindingPlace::Key(path) => {
                finding.code == "missing-key" && path.segments().len() <= 1
            }
            FindingPlace::Within(..) | FindingPlace::Bytes(_) | FindingPlace::At(_) | FindingPlace::File => {
                false
            }
        };
        let found = found.filtered(|finding| self.complete || !is_lack(finding));
        self.report(&tree, &found);
        match expanded {
            paradigm::Expanded::Plain => tree,
            paradigm::Expanded::Loop(expanded) => expanded,
            paradigm::Expanded::Rest(rest) => {
                self.complete = false;
                rest
            }
        }
    }

    /// Puts the texts of files in the place of their names.
    fn texts(&mut self, tree: &mut Node, key: &str) {
        let Some(named) = entries_mut(tree).iter_mut().find(|entry| entry.key == key) else { return };
        for entry in entries_mut(&mut named.value) {
            let Some(name) = entry.value.as_scalar().filter(|_| !entry.value.is_null()) else { continue };
            match self.text_file(&name.text.clone(), &entry.value.span) {
                Ok(read) => entry.value = read,
                Err(why) => {
                    let message = format!("the file of `{}` cannot be read: {why}", entry.key);
                    let finding = error("no-file", &entry.value.span, message);
                    self.push(finding.help("the path is relative to this file, or else to the project"));
                    self.complete = false;
                }
            }
        }
    }

    /// Reads a file that is a text.
    fn text_file(&mut self, name: &str, span: &Span) -> Result<Node, Explanation> {
        let fetched = self.fetched(ReferenceKind::Text, name, span)?;
        let (file, whole) = self.source(&fetched)?;
        // A file ends with a line end that its author did not mean as part of the text.
        Ok(text(&Span { file, range: 0..whole.len() }, whole.trim_end()))
    }

    /// Collects the fragments: what is imported first, then the loop's own.
    fn library(&mut self, tree: &mut Node) -> IndexMap<String, Written> {
        let mut library = IndexMap::new();
        let imports: Option<Vec<String>> = self.value(tree, &DocPath::root().key("import"));
        let written = take(tree, "import");
        let written = written.as_ref().map_or(&[][..], |entry| items(&entry.value));
        if let Some(node) = written.get(MAX_IMPORTS) {
            let message =
                format!("the loop imports {} libraries, and may import {MAX_IMPORTS}", written.len());
            let finding = error("limit", &node.span, message);
            self.push(finding.help("put fragments that belong together into one library"));
            self.complete = false;
        }
        for (name, node) in imports.iter().flatten().zip(written).take(MAX_IMPORTS) {
            match self.file(ReferenceKind::Library, name, &node.span) {
                Ok((_, Some(file))) => {
                    if given(&file, "fragments").is_none() {
                        let message = format!("`{name}` has no `fragments`");
                        self.push(Diagnostic::warning(
                            "no-effect",
                            FindingPlace::At(node.span.clone()),
                            message,
                        ));
                    }
                    self.fragments(&file, Some(&node.span), &mut library);
                }
                Ok((_, None)) => self.complete = false,
                Err(why) => {
                    let message = format!("the library `{name}` cannot be read: {why}");
                    let finding = error("no-library", &node.span, message);
                    self.push(finding.help(
                        "libraries are found relative to the file that imports them, or else in the program",
                    ));
                    self.complete = false;
                }
            }
        }
        self.fragments(tree, None, &mut library);
        take(tree, "fragments");
        library
    }

    fn fragments(&mut self, file: &Node, import: Option<&Span>, library: &mut IndexMap<String, Written>) {
        if import.is_some() {
            promises::in_vain(file, self.out);
            if fragments::is_library(file) {
                promises::beside_fragments(file, self.out);
            }
        }
        let Some(fragments) = file.get("fragments") else { return };
        if !matches!(fragments.value, NodeValue::Map(_)) && !fragments.is_null() {
            let finding = error("wrong-type", &fragments.span, "`fragments` must be a mapping");
            self.push(finding);
        }
        let source = self.sources.get(file.span.file);
        let of_library =
            import.zip(source).map(|(import, source)| (source.name().to_owned(), import.clone()));
        for Entry { key, key_span, value } in entries(fragments) {
            let written = Written {
                key_span: key_span.clone(),
                value: value.clone(),
                library: of_library.clone(),
                read: FileReading::Unasked,
            };
            library.insert(key.clone(), written);
        }
    }

    /// Reads a fragment that a state asks for.
    fn read_fragment(&mut self, name: &str, written: &Node) -> FileReading {
        if let Some(finding) = fragments::not_a_mapping(name, written) {
            self.push(finding);
            self.complete = false;
            return FileReading::Failed;
        }
        let parameters = self.value(written, &DocPath::root().key("parameters")).unwrap_or_default();
        let mut state = written.clone();
        // It says what the fragment is, and not the state that takes it over.
        take(&mut state, "description");
        let written = take(&mut state, "parameters").map(|entry| entry.value);
        if let Some(nested) = take(&mut state, "fragment") {
            self.push(fragments::nested(name, &nested));
        }
        FileReading::Read(Rc::new(Fragment { state, parameters, written }))
    }

    /// Warns of mistakes in fragments that no state asks for.
    fn unused(&mut self, library: &IndexMap<String, Written>) {
        // What could not be read may have asked for them.
        if !self.complete {
            return;
        }
        for (name, written) in
            library.iter().filter(|(_, written)| matches!(written.read, FileReading::Unasked))
        {
            let of_program = |(library, _): &(String, Span)| is_builtin(library);
            // Our own libraries are not for the author of this loop to mend.
            if written.library.as_ref().is_some_and(of_program) {
                continue;
            }
            let found = fragments::check(name, &written.value, self.sources);
            let Some(first) = found.iter().find(|finding| finding.severity == Severity::Error) else {
                continue;
            };
            let (place, help) = match &written.library {
                Some((library, import)) => {
                    let command = CommandLine::of("validate").arg(library);
                    (import, Some(format!("`{command}` shows the place")))
                }
                None => (&written.key_span, first.help.clone()),
            };
            let message = format!("no state uses the fragment `{name}`, and it is wrong: {}", first.message);
            let place = FindingPlace::At(place.clone());
            // Whoever will use it believes to be protected.
            let finding = if promises::is_in(name, &written.value) {
                Diagnostic::error("broken-fragment", place, message)
            } else {
                Diagnostic::warning("broken-fragment", place, message)
            };
            self.out.push(match help {
                Some(help) => finding.help(help),
                None => finding,
            });
        }
    }

    /// Lays a state over its fragment.
    fn fragment(&mut self, state: &mut Entry, library: &mut IndexMap<String, Written>) {
        let Some(wanted) = take(&mut state.value, "fragment") else {
            self.stray_with(&mut state.value);
            return;
        };
        self.composed = true;
        let span = wanted.value.span.clone();
        let name = wanted.value.as_scalar().map_or_else(String::new, |scalar| scalar.text.clone());
        let Some(written) = library.get_mut(&name) else {
            self.out.push_with(Severity::Error, || {
                let known = library.keys().map(String::as_str);
                let finding = error("unknown-fragment", &span, format!("there is no fragment `{name}`"));
                let list = listed_in_part(known.clone());
                match (nearest(&name, known), library.is_empty()) {
                    (Some(near), _) => {
                        let help = format!("did you mean `{near}`? The fragments are {list}");
                        finding.meant(&name, near).help(help)
                    }
                    (None, false) => finding.help(format!("the fragments are {list}")),
                    (None, true) => {
                        finding.help("add it under `fragments`, or `import` the file that has it")
                    }
                }
            });
            self.complete = false;
            return;
        };
        // Read for the first state that asks and kept, so that a mistake in it is not told for every state.
        if matches!(written.read, FileReading::Unasked) {
            written.read = self.read_fragment(&name, &written.value);
        }
        let FileReading::Read(fragment) = &written.read else { return };
        let fragment = Rc::clone(fragment);
        if !self.pay(&fragment.state, &span) {
            return;
        }
        let given = take(&mut state.value, "with");
        let own = std::mem::replace(&mut state.value, plain(&span, ""));
        let mut merged = merge(fragment.state.clone(), own, MergeLevel::State);
        self.bind(&mut merged, given.as_ref(), &name, &fragment, &span);
        state.value = merged;
    }

    fn stray_with(&mut self, state: &mut Node) {
        if given(state, "loop").is_some() {
            return;
        }
        if let Some(with) = take(state, "with") {
            let finding = error("unknown-key", &with.key_span, "`with` needs a `fragment` or a `loop`");
            self.push(
                finding.help("it gives values to their parameters; remove it, or name what takes them"),
            );
        }
    }

    /// Gives a fragment its parameters. What it does not declare is for the loop that the state runs, if it runs one.
    fn bind(&mut self, state: &mut Node, with: Option<&Entry>, name: &str, fragment: &Fragment, span: &Span) {
        let mut bound: Vec<Entry> = Vec::new();
        let mut rest = Vec::new();
        if let Some(with) =
            with.filter(|with| !matches!(with.value.value, NodeValue::Map(_)) && !with.value.is_null())
        {
            let finding = error("wrong-type", &with.value.span, "`with` must be a mapping");
            self.push(finding);
        }
        for binding in with.map_or(&[][..], |with| entries(&with.value)) {
            match fragment.parameters.iter().find(|(known, _)| known.as_str() == binding.key) {
                Some((known, parameter)) => bound.extend(self.bound(binding, known, parameter)),
                None if given(state, "loop").is_some() => rest.push(binding.clone()),
                None => self.unknown_parameter(binding, name, fragment),
            }
        }
        // A value that was refused counts as given: that it is wrong was reported already.
        let is_given = |wanted: &str| with.is_some_and(|with| with.value.get(wanted).is_some());
        for (known, parameter) in fragment.parameters.iter().filter(|(known, _)| !is_given(known.as_str())) {
            let written = fragment.written.as_ref().and_then(|written| written.get(known.as_str()));
            match written.and_then(|written| written.get("default")).filter(|default| !default.is_null()) {
                Some(default) => bound.push(entry(known.as_str(), default.clone())),
                None if parameter.required => {
                    if let Some((_, value)) = OF_RUNS.iter().find(|(name, _)| *name == known.as_str()) {
                        bound.push(entry(known.as_str(), text(span, *value)));
                        continue;
                    }
                    let message = format!("the fragment `{name}` needs the parameter `{known}`");
                    let finding = error("missing-parameter", span, message);
                    self.push(finding.help(format!("add `with: {{{known}: …}}`")));
                }
                None => {}
            }
        }
        let at = with.map_or(span, |with| &with.key_span).clone();
        if !bound.is_empty() {
            let own = take(state, "param").map(|entry| entry.value);
            let bound = map(&at, bound);
            let value = own.map_or(bound.clone(), |own| merge(own, bound, MergeLevel::Other));
            put(state, Entry { key: "param".to_owned(), key_span: at.clone(), value });
        }
        if !rest.is_empty() {
            let inner = take(state, "with").map(|entry| entry.value);
            let rest = map(&at, rest);
            let value = inner.map_or(rest.clone(), |inner| merge(inner, rest, MergeLevel::Other));
            put(state, Entry { key: "with".to_owned(), key_span: at, value });
        }
    }

    /// Checks the type of a value, where it is known.
    fn bound(&mut self, binding: &Entry, name: &VarName, parameter: &Parameter) -> Option<Entry> {
        // What a template becomes is known only in the run.
        let is_open = binding.value.as_scalar().is_some_and(|scalar| scalar.text.contains("${"));
        if is_open {
            return Some(binding.clone());
        }
        match parameter.convert(name, &binding.value.to_json()) {
            Ok(value) => {
                // `"3"` for an integer has to become the number, or else it would be a text wherever the parameter is inserted.
                let mut binding = binding.clone();
                if let NodeValue::Scalar(scalar) = &mut binding.value.value
                    && !value.is_string()
                {
                    *scalar = Scalar::plain(value.to_string());
                }
                Some(binding)
            }
            Err(why) => {
                let finding = error("parameter", &binding.value.span, why);
                self.push(finding);
                None
            }
        }
    }

    fn unknown_parameter(&mut self, binding: &Entry, name: &str, fragment: &Fragment) {
        let message = format!("the fragment `{name}` has no parameter `{}`", binding.key);
        let known: Vec<_> = fragment.parameters.keys().map(VarName::as_str).collect();
        let finding = error("unknown-parameter", &binding.key_span, message);
        let finding = match nearest(&binding.key, known.iter().copied()) {
            Some(near) => finding.meant(&binding.key, near),
            None if known.is_empty() => {
                finding.help("it declares no `parameters`; remove the line").repair(Repair::Remove)
            }
            None => {
                let list = listed_in_part(&known);
                finding.help(format!("its parameters are {list}"))
            }
        };
        self.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::definition::{emit, load, render};

    /// Resolves the first file; the others are found by their whole names. Returns the plain loop and what was found.
    fn resolved(files: &[(&str, &str)]) -> (String, String) {
        let mut fetch = |reference: &Reference<'_>| {
            let found = files.iter().find(|(name, _)| *name == reference.name);
            let (name, text) =
                found.ok_or_else(|| Explanation::new(format!("there is no `{}`", reference.name)))?;
            Ok(Fetched { path: PathBuf::from(name), shown: (*name).to_owned(), text: (*text).to_owned() })
        };
        let (name, text) = files[0];
        let (tree, sources, findings) = match load::decode_with(name, text, Path::new(name), &mut fetch) {
            Ok(loaded) => (Some(loaded.tree), loaded.sources, loaded.findings),
            Err(rejected) => (rejected.tree, rejected.sources, rejected.findings),
        };
        let shown = |object: &serde_json::Value| {
            let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            let help = object["help"].as_str().map_or_else(String::new, |help| format!(" ({help})"));
            let place = format!("{}:{}:{}", word("file"), object["line"], object["column"]);
            format!("{place} {}: {}{help}\n", word("code"), word("message"))
        };
        let findings = render::to_json(&findings, &sources, tree.as_ref()).iter().map(shown).collect();
        (tree.as_ref().map(emit::to_yaml).unwrap_or_default(), findings)
    }

    fn plain(files: &[(&str, &str)]) -> String {
        let (text, findings) = resolved(files);
        assert!(!findings.contains("error"), "{findings}");
        text
    }

    fn findings(files: &[(&str, &str)]) -> String {
        resolved(files).1
    }

    const BASE: &str = "name: base\ninitial: a\ncontext: {x: 1, y: [1, 2]}\ntimeout: 5\nstates:\n  a: {action: one, on_pass: done, on_no: done}\n  done: {terminal: true}\n";

    #[test]
    fn a_loop_is_laid_over_its_parent() {
        let child = "name: main\nfrom: base\ntimeout: null\ncontext: {y: [3]}\nstates:\n  a: {on_yes: b}\n  b: {action: two, next: done}\n";
        assert_snapshot!(plain(&[("main", child), ("base", BASE)]), @"
        name: main
        initial: a
        context:
          x: 1
          'y':
            - 3
        states:
          a:
            action: one
            on_yes: b
            on_no: done
          done:
            terminal: true
          b:
            action: two
            next: done
        ");
    }

    #[test]
    fn several_levels_are_laid_over_each_other() {
        let files = [
            ("main", "from: mid\nname: main\n"),
            ("mid", "from: base\nname: mid\ncontext: {z: 3, x: ~}\n"),
            ("base", BASE),
        ];
        assert_snapshot!(plain(&files), @"
        name: main
        initial: a
        context:
          'y':
            - 1
            - 2
          z: 3
        timeout: 5
        states:
          a:
            action: one
            on_pass: done
            on_no: done
          done:
            terminal: true
        ");
    }

    #[test]
    fn what_is_wrong_with_a_parent_is_drawn_there() {
        let files = [
            ("main", "from: mid\nname: main\n"),
            ("mid", "from: base\ntimout: 5\n"),
            ("base", "initial: a\nstates:\n  a: {action: '${contxt.x}', next: b}\n"),
        ];
        assert_snapshot!(findings(&files), @"
        mid:2:1 unknown-key: unknown key `timout` (did you mean `timeout`?)
        base:3:16 template: unknown namespace `contxt` (did you mean `context`?)
        ");
        assert_snapshot!(findings(&[("main", "from: base\nname: main\n"), ("base", "a: [1\n")]), @"base:1:5 yaml-syntax: a `,` or `]` is expected here (close every `[`; a text that holds `,` or `]` needs quotes)");
        assert_snapshot!(findings(&[("main", "from: base\nname: main\n"), ("base", "- a\n")]), @"base:1:1 wrong-type: a loop file must be a mapping, not a list (begin with `name:`, `initial:` and `states:`)");
    }

    #[test]
    fn parents_that_are_missing_or_go_in_circles_are_named_with_the_way_to_them() {
        assert_snapshot!(findings(&[("main", "from: mid\nname: main\n"), ("mid", "from: gone\n")]), @"mid:1:7 no-parent: the loop `gone` to inherit from cannot be read: there is no `gone` (it is asked for by main → mid → gone)");
        assert_snapshot!(findings(&[("main", "from: mid\nname: main\n"), ("mid", "from: main\n")]), @"mid:1:7 from-cycle: the loop inherits from itself: main → mid → main (remove one of the `from` lines)");
        assert_snapshot!(findings(&[("main", "from: [a]\nname: main\n")]), @"main:1:7 wrong-type: `from` must be a text, not a list");
        let deep: Vec<(String, String)> =
            (0..60).map(|n| (format!("l{n}"), format!("from: l{}\n", n + 1))).collect();
        let deep: Vec<(&str, &str)> =
            deep.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_snapshot!(findings(&deep), @"l49:1:7 no-parent: the loop `l50` to inherit from cannot be read: it is one file too many; a loop is made of at most 50 (it is asked for by l0 → l1 → l2 → l3 → … → l48 → l49 → l50)");
    }

    const LIBRARY: &str = "fragments:\n  hello:\n    description: says hello\n    action: echo ${param.who}\n    evaluate: {type: exit_code, target: 0}\n    parameters:\n      who: {type: string, required: true}\n      n: {type: integer, default: 3}\n";

    #[test]
    fn a_state_is_laid_over_its_fragment() {
        let main = "name: main\ninitial: a\nimport: [lib]\nfragments:\n  own: {next: done}\nstates:\n  a: {fragment: hello, with: {who: you, n: '4'}, evaluate: {target: 1}, on_yes: b, on_no: b}\n  b: {fragment: own, action: two}\n  done: {terminal: true}\n";
        assert_snapshot!(plain(&[("main", main), ("lib", LIBRARY)]), @"
        name: main
        initial: a
        states:
          a:
            action: 'echo ${param.who}'
            evaluate:
              type: exit_code
              target: 1
            on_yes: b
            on_no: b
            param:
              who: you
              'n': 4
          b:
            action: two
            next: done
          done:
            terminal: true
        ");
    }

    #[test]
    fn later_libraries_and_then_the_loop_win() {
        let main = "name: main\ninitial: a\nimport: [l1, l2]\nfragments: {c: {action: own}}\nstates:\n  a: {fragment: a, next: b}\n  b: {fragment: b, next: c}\n  c: {fragment: c, next: done}\n  done: {terminal: true}\n";
        let files = [
            ("main", main),
            ("l1", "fragments: {a: {action: first}, b: {action: first}, c: {action: first}}"),
            ("l2", "fragments: {b: {action: second}, c: {action: second}}"),
        ];
        assert_snapshot!(plain(&files), @"
        name: main
        initial: a
        states:
          a:
            action: first
            next: b
          b:
            action: second
            next: c
          c:
            action: own
            next: done
          done:
            terminal: true
        ");
    }

    #[test]
    fn bindings_are_checked_against_what_the_fragment_declares() {
        let main = "name: main\ninitial: a\nimport: [lib]\nstates:\n  a: {fragment: hello, with: {whom: you, n: x}, next: b}\n  b: {fragment: helo, next: c}\n  c: {with: {a: b}, action: x, next: done}\n  done: {terminal: true}\n";
        assert_snapshot!(findings(&[("main", main), ("lib", LIBRARY)]), @r#"
        main:5:17 missing-parameter: the fragment `hello` needs the parameter `who` (add `with: {who: …}`)
        main:5:31 unknown-parameter: the fragment `hello` has no parameter `whom` (did you mean `who`?)
        main:5:45 parameter: the parameter `n` must be an integer, and `"x"` is not
        main:6:17 unknown-fragment: there is no fragment `helo` (did you mean `hello`? The fragments are `hello`)
        main:7:7 unknown-key: `with` needs a `fragment` or a `loop` (it gives values to their parameters; remove it, or name what takes them)
        "#);
    }

    #[test]
    fn a_fragment_that_is_wrong_is_wrong_once() {
        let main = "name: main\ninitial: a\nimport: [lib, gone]\nstates:\n  a: {fragment: f, next: b}\n  b: {fragment: f, next: done}\n  done: {terminal: true}\n";
        let library = "fragments:\n  f:\n    action: x\n    timout: 5\n    fragment: g\n";
        assert_snapshot!(findings(&[("main", main), ("lib", library)]), @"
        main:3:15 no-library: the library `gone` cannot be read: there is no `gone` (libraries are found relative to the file that imports them, or else in the program)
        lib:4:5 unknown-key: unknown key `timout` (did you mean `timeout`?)
        lib:5:5 nested-fragment: the fragment `f` inherits from another one (fragments cannot be nested; write the keys out here)
        ");
    }

    #[test]
    fn a_fragment_that_no_state_uses_is_wrong_where_it_is_imported() {
        let main = "name: main\ninitial: a\nimport: [lib]\nfragments: {own: {on_yes: [b]}}\nstates:\n  a: {fragment: good, next: done}\n  done: {terminal: true}\n";
        let library =
            "fragments:\n  good: {action: x}\n  bad: {action: x, timout: 5, evaluate: {type: exit_cod}}\n";
        assert_snapshot!(findings(&[("main", main), ("lib", library)]), @"
        main:3:10 broken-fragment: no state uses the fragment `bad`, and it is wrong: `type` cannot be `exit_cod` (`ll-loop validate lib` shows the place)
        main:4:13 broken-fragment: no state uses the fragment `own`, and it is wrong: `on_yes` must be a name, not a list
        ");
        let incomplete = main.replace("fragment: good", "fragment: gone");
        assert_snapshot!(findings(&[("main", &incomplete), ("lib", library)]), @"main:6:17 unknown-fragment: there is no fragment `gone` (the fragments are `good`, `bad`, `own`)");
    }

    #[test]
    fn a_run_has_values_for_some_parameters() {
        let main = "name: main\ninitial: a\nfragments:\n  f: {action: x, parameters: {run_dir: {type: string, required: true}, loop_name: {type: string, required: true}}}\nstates:\n  a: {fragment: f, with: {loop_name: mine}, next: done}\n  done: {terminal: true}\n";
        assert_snapshot!(plain(&[("main", main)]), @"
        name: main
        initial: a
        states:
          a:
            action: x
            next: done
            param:
              loop_name: mine
              run_dir: '${context.run_dir}'
          done:
            terminal: true
        ");
    }

    #[test]
    fn many_copies_of_a_large_fragment_are_refused() {
        let large = (0..5_000).map(|n| format!("      V{n}: x\n")).collect::<Vec<_>>().concat();
        let states = (0..100).map(|n| format!("  s{n}: {{fragment: f, next: done}}\n"));
        let states = states.collect::<Vec<_>>().concat();
        let main = format!(
            "name: main\ninitial: s0\nfragments:\n  f:\n    action: x\n    env:\n{large}states:\n{states}  done: {{terminal: true}}\n"
        );
        assert_snapshot!(findings(&[("main", &main)]), @"main:5012:18 limit: the loop becomes too large with all that it takes from elsewhere (at most 50000 values are copied into a loop)");
    }

    #[test]
    fn a_flow_is_written_out() {
        let main = "name: main\nflow: [a, 'b?c:a', c]\nstate_defs:\n  a: {action: one}\n  b: {action: two, on_error: c}\n";
        assert_snapshot!(plain(&[("main", main)]), @"
        name: main
        initial: a
        states:
          a:
            action: one
            next: b
          b:
            action: two
            on_yes: c
            on_no: a
            on_error: c
          c:
            terminal: true
        ");
        assert_snapshot!(findings(&[("main", "name: main\nflow: [a, 'b?c']\n")]), @"
        main:2:1 expanded: `flow` is a short form; its states were written out (`ll-loop compile main` prints them)
        main:2:11 flow: `b?c` is not an entry of a flow (write `STATE`, or `STATE?YES:NO` with the two states that follow)
        ");
        assert_snapshot!(findings(&[("main", "name: main\nflow: []\n")]), @"
        main:2:1 expanded: `flow` is a short form; its states were written out (`ll-loop compile main` prints them)
        main:2:7 flow: the flow is empty (name at least one state)
        ");
    }

    #[test]
    fn every_form_is_written_out() {
        assert_snapshot!(plain(&[("main", "paradigm: goal\ngoal: No type errors in src/\ntools: [mypy src/, {tool: fix, timeout: 5}]\nmax_iterations: 20\n")]), @"
        name: goal-no-type-errors-in-src
        description: No type errors in src/
        initial: evaluate
        max_iterations: 20
        states:
          evaluate:
            action: mypy src/
            on_yes: done
            on_no: fix
            check: true
          fix:
            action: fix
            next: evaluate
            timeout: 5
          done:
            terminal: true
        ");
        assert_snapshot!(plain(&[("main", "paradigm: convergence\nname: n\ncheck: count | sum\ntoward: 0\nusing: fix\n")]), @"
        name: 'n'
        initial: measure
        context:
          metric_cmd: 'count | sum'
          target: 0
          tolerance: 0
        states:
          measure:
            action: '${context.metric_cmd}'
            evaluate:
              type: convergence
              target: '${context.target}'
              tolerance: '${context.tolerance}'
            on_target: done
            on_progress: apply
            on_stall: done
            capture: current_value
            check: true
          apply:
            action: fix
            next: measure
          done:
            terminal: true
        ");
        assert_snapshot!(plain(&[("main", "paradigm: invariants\nname: n\nconstraints: [{name: tests-pass, check: t, fix: f}, {name: lint, check: l, fix: g}]\nmaintain: true\n")]), @"
        name: 'n'
        initial: check_tests_pass
        maintain: true
        states:
          check_tests_pass:
            action: t
            on_yes: check_lint
            on_no: fix_tests_pass
            check: true
          fix_tests_pass:
            action: f
            next: check_tests_pass
          check_lint:
            action: l
            on_yes: all_valid
            on_no: fix_lint
            check: true
          fix_lint:
            action: g
            next: check_lint
          all_valid:
            terminal: true
            on_maintain: check_tests_pass
        ");
        assert_snapshot!(plain(&[("main", "paradigm: imperative\nname: n\nsteps: [one, two]\ncondition: {type: exit_code, target: 0}\nbackoff: 2\n")]), @"
        name: 'n'
        initial: step_0
        backoff: 2
        states:
          step_0:
            action: one
            next: step_1
            capture_exit: true
          step_1:
            action: two
            next: evaluate
          evaluate:
            evaluate:
              type: exit_code
              target: 0
              source: '${captured.step_0.exit_code}'
            on_yes: done
            on_no: step_0
          done:
            terminal: true
        ");
        assert_snapshot!(plain(&[("main", "paradigm: imperative\nname: n\nsteps: [one]\nuntil: {check: test, evaluator: {type: output_contains, pattern: ok}}\n")]), @"
        name: 'n'
        initial: step_0
        states:
          step_0:
            action: one
            next: evaluate
          evaluate:
            action: test
            evaluate:
              type: output_contains
              pattern: ok
            on_yes: done
            on_no: step_0
            check: true
          done:
            terminal: true
        ");
    }

    #[test]
    fn forms_are_wrong_at_their_own_keys() {
        let check = |text: &str| findings(&[("main", text)]);
        assert_snapshot!(check("paradigm: goal\ngoal: g\n"), @"main:1:11 missing-key: the key `tools` is missing");
        assert_snapshot!(check("paradigm: goal\ngoal: g\ntool: [a]\nmax_iteration: 5\n"), @"
        main:3:1 unknown-key: unknown key `tool` (did you mean `tools`?)
        main:4:1 unknown-key: unknown key `max_iteration` (did you mean `max_iterations`?)
        ");
        assert_snapshot!(check("paradigm: goal\ngoal: g\ntools: [a, '${contxt.x}']\n"), @"main:3:13 template: unknown namespace `contxt` (did you mean `context`?)");
        assert_snapshot!(check("paradigm: convergence\ncheck: c\ntoward: low\nusing: u\n"), @"main:3:9 wrong-type: `toward` must be a number, not the text `low`");
        assert_snapshot!(check("paradigm: invariants\nname: n\nconstraints: [{name: a-b, check: c, fix: d}, {name: a_b, check: c}]\n"), @"main:3:46 missing-key: the key `fix` is missing in `constraints[1]`");
        assert_snapshot!(check("paradigm: invariants\nname: n\nconstraints: [{name: a-b, check: c, fix: d}, {name: a_b, check: c, fix: e}]\n"), @"main:3:53 name: two constraints are named `a_b`");
        assert_snapshot!(check("paradigm: imperative\nname: n\nsteps: []\ncondition: {type: exit_code}\n"), @"main:3:8 missing-value: `steps` needs at least one step");
        assert_snapshot!(check("paradigm: imperative\nname: n\nsteps: [a]\ncondition: {type: exit_cod}\n"), @"main:4:19 unknown-word: `type` cannot be `exit_cod` (did you mean `exit_code`?)");
    }
}
