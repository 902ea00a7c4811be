//! From a tree to records: every problem of a document in one pass, each with its place.
//!
//! A record is declared once, with [`record!`]; the struct, the decoder and the JSON Schema are made from that
//! declaration, so they cannot disagree. [`choice!`] is the same for words, [`tagged!`] for records that name their
//! kind under `type`.

use std::hash::Hash;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use super::name::{LoopName, MAX_LENGTH, StateName, VarName};
use super::node::{Entry, Node, NodeValue, Scalar, ScalarStyle, ScalarValue};
use super::path::{DocPath, Segment};
use super::template::Template;
use super::text::one_line;
use super::time::{DurationError, MAX_DURATION, duration_from_secs, parse_duration};

/// Records that a schema refers to, by name.
pub type Definitions = Map<String, Value>;

/// A value that can be read from a tree.
pub trait Decode: Sized {
    /// Reads the value. Everything that is wrong goes to `out`; without a value there is at least one error, and with
    /// one there may be errors, too, about parts of it that were left out.
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self>;

    /// Returns the value of a key that is not there, if it may be absent.
    fn absent() -> Option<Self> {
        None
    }

    /// Returns the JSON Schema of what [`Decode::decode`] accepts.
    fn schema(definitions: &mut Definitions) -> Value;
}

/// A record made by [`record!`].
pub trait Record: Decode {
    /// The keys it knows, for suggestions.
    const KEYS: &'static [&'static str];

    /// Reads the record from a mapping in which `tag` belongs to somebody else.
    fn decode_beside(tag: Option<&str>, node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self>;

    /// Returns its schema as it is, not as a reference.
    fn object_schema(definitions: &mut Definitions) -> Value;
}

/// The key of a mapping.
pub trait DecodeKey: Sized + Eq + Hash {
    /// Reads a key, or says what is wrong with it.
    fn decode_key(text: &str) -> Result<Self, String>;

    /// Returns the JSON Schema of a key.
    fn key_schema() -> Value;
}

/// Returns the name by which people know a place: its last key.
pub fn subject(path: &DocPath) -> String {
    match path.segments() {
        [] => String::from("the file"),
        [.., Segment::Key(key)] => format!("`{}`", one_line(key, 60)),
        [.., Segment::Key(key), Segment::Index(index)] => format!("`{}[{index}]`", one_line(key, 60)),
        [.., Segment::Index(index)] => format!("item {index}"),
    }
}

/// Reports a value of the wrong type. `expected` is a noun with its article.
pub fn wrong_type(node: &Node, path: &DocPath, expected: &str, out: &mut Diagnostics) {
    let found = match &node.value {
        NodeValue::Map(_) => String::from("a mapping"),
        NodeValue::List(_) => String::from("a list"),
        NodeValue::Scalar(scalar) => described(scalar),
    };
    let message = format!("{} must be {expected}, not {found}", subject(path));
    let mut finding = Diagnostic::error("wrong-type", Place::Value(path.clone()), message);
    if let Some(scalar) = node.as_scalar() {
        let meant = ScalarValue::of_plain(scalar.text.trim());
        let unquoted = expected.contains("number")
            && matches!(meant, ScalarValue::Int(_) | ScalarValue::Float(_))
            || expected.contains("true") && matches!(meant, ScalarValue::Bool(_));
        if unquoted && scalar.style == ScalarStyle::Quoted {
            finding = finding.help("remove the quotes");
        } else if expected.contains("true") {
            match scalar.text.to_lowercase().as_str() {
                "yes" | "on" | "y" | "1" => finding = finding.help("write `true`"),
                "no" | "off" | "n" | "0" => finding = finding.help("write `false`"),
                _ => {}
            }
        }
    }
    out.push(finding);
}

fn described(scalar: &Scalar) -> String {
    let text = one_line(&scalar.text, 40);
    match scalar.value {
        ScalarValue::Null => String::from("empty"),
        ScalarValue::Bool(_) | ScalarValue::Int(_) | ScalarValue::Float(_) => format!("`{text}`"),
        ScalarValue::String => format!("the text `{text}`"),
    }
}

/// Returns the text of any single value, or reports why there is none.
pub fn text<'n>(node: &'n Node, path: &DocPath, expected: &str, out: &mut Diagnostics) -> Option<&'n str> {
    match node.as_scalar() {
        Some(scalar) if scalar.value != ScalarValue::Null => Some(&scalar.text),
        _ => {
            wrong_type(node, path, expected, out);
            None
        }
    }
}

/// Returns the schema of any single value that is taken by its text.
pub fn text_schema() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

impl Decode for bool {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if let Some(ScalarValue::Bool(value)) = node.as_scalar().map(|scalar| &scalar.value) {
            return Some(*value);
        }
        wrong_type(node, path, "`true` or `false`", out);
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "boolean"})
    }
}

impl Decode for String {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        text(node, path, "a text", out).map(ToOwned::to_owned)
    }

    fn schema(_: &mut Definitions) -> Value {
        text_schema()
    }
}

impl Decode for i32 {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let int = match node.as_scalar().map(|scalar| &scalar.value) {
            Some(ScalarValue::Int(int)) => Self::try_from(*int).ok(),
            _ => None,
        };
        if int.is_none() {
            wrong_type(node, path, "a whole number", out);
        }
        int
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "integer", "minimum": Self::MIN, "maximum": Self::MAX})
    }
}

impl Decode for f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a larger whole number is read as JSON and YAML readers do"
    )]
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match node.as_scalar().map(|scalar| &scalar.value) {
            Some(ScalarValue::Int(int)) => Some(*int as Self),
            Some(ScalarValue::Float(float)) if float.is_finite() => Some(*float),
            _ => {
                wrong_type(node, path, "a number", out);
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "number"})
    }
}

/// Reads a span of time that may be zero.
pub fn duration(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Duration> {
    let read = match node.as_scalar() {
        Some(Scalar { value: ScalarValue::String, text, .. }) => parse_duration(text),
        #[expect(clippy::cast_precision_loss, reason = "durations that large are refused anyway")]
        Some(Scalar { value: ScalarValue::Int(seconds), .. }) => duration_from_secs(*seconds as f64),
        Some(Scalar { value: ScalarValue::Float(seconds), .. }) => duration_from_secs(*seconds),
        _ => {
            wrong_type(node, path, DURATION, out);
            return None;
        }
    };
    read.map_err(|error| out.push(duration_finding(path, &error))).ok()
}

const DURATION: &str = "a number of seconds or a duration such as `5m`";

fn duration_finding(path: &DocPath, error: &DurationError) -> Diagnostic {
    let subject = subject(path);
    let message = match error {
        DurationError::Unreadable(text) => {
            format!("{subject} must be {DURATION}, not the text `{}`", one_line(text, 40))
        }
        DurationError::NotPositive => format!("{subject} must be more than zero"),
        DurationError::TooLong => format!("{subject} can be at most ten years"),
    };
    Diagnostic::error("duration", Place::Value(path.clone()), message)
        .help("write seconds (`90`, `0.5`) or a duration (`250ms`, `5m`, `1h30m`)")
}

/// Returns the schema of a span of time; `zero` tells whether nothing may pass.
pub fn duration_schema(zero: bool) -> Value {
    let limit = if zero { "minimum" } else { "exclusiveMinimum" };
    let unit = "(ns|nsec|us|usec|µs|ms|msec|millis|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)";
    let pattern = format!(r"^\s*([0-9]+(\.[0-9]+)?|([0-9]+\s*{unit}\s*)+)\s*$");
    json!({"anyOf": [
        {"type": "number", limit: 0, "maximum": MAX_DURATION.as_secs()},
        {"type": "string", "pattern": pattern},
    ]})
}

impl Decode for Duration {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let duration = duration(node, path, out)?;
        if duration.is_zero() {
            out.push(duration_finding(path, &DurationError::NotPositive));
            return None;
        }
        Some(duration)
    }

    fn schema(_: &mut Definitions) -> Value {
        duration_schema(false)
    }
}

impl Decode for Template {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let source = text(node, path, "a text", out)?;
        template(source, path, out)
    }

    fn schema(_: &mut Definitions) -> Value {
        text_schema()
    }
}

/// Reads a template that stands at this path; each of its mistakes is a finding.
pub fn template(source: &str, path: &DocPath, out: &mut Diagnostics) -> Option<Template> {
    let errors = match Template::parse(source) {
        Ok(template) => return Some(template),
        Err(errors) => errors,
    };
    for error in errors {
        let place = Place::Within(path.clone(), error.span);
        out.push(Diagnostic::error("template", place, error.kind.to_string()).help(error.kind.help()));
    }
    None
}

macro_rules! decode_name {
    ($name:ident, $reserved:literal) => {
        impl Decode for $name {
            fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
                let name = text(node, path, "a name", out)?;
                let place = || Place::Value(path.clone());
                Self::parse(name)
                    .map_err(|error| out.push(Diagnostic::error("name", place(), error.to_string())))
                    .ok()
            }

            fn schema(_: &mut Definitions) -> Value {
                let mut schema = Self::key_schema();
                schema["type"] = json!(["string", "number", "boolean"]);
                schema
            }
        }

        impl DecodeKey for $name {
            fn decode_key(text: &str) -> Result<Self, String> {
                Self::parse(text).map_err(|error| error.to_string())
            }

            fn key_schema() -> Value {
                let inside = r"/\\{}\x00-\x1f\x7f-\x9f";
                let pattern = format!("^[^{}{inside}][^{inside}]*$", $reserved);
                json!({"pattern": pattern, "maxLength": MAX_LENGTH})
            }
        }
    };
}

decode_name!(LoopName, r"$.\-");
decode_name!(StateName, "$");
decode_name!(VarName, "$");

impl DecodeKey for String {
    fn decode_key(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn key_schema() -> Value {
        json!({})
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let items = match &node.value {
            NodeValue::List(items) => items,
            NodeValue::Scalar(_) if node.is_null() => return Some(Self::new()),
            NodeValue::Scalar(_) | NodeValue::Map(_) => {
                wrong_type(node, path, "a list", out);
                return None;
            }
        };
        let read: Vec<_> =
            items.iter().enumerate().map(|(index, item)| T::decode(item, &path.index(index), out)).collect();
        read.into_iter().collect()
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"type": ["array", "null"], "items": T::schema(definitions)})
    }
}

impl<K: DecodeKey, T: Decode> Decode for IndexMap<K, T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let entries = match &node.value {
            NodeValue::Map(entries) => entries,
            NodeValue::Scalar(_) if node.is_null() => return Some(Self::new()),
            NodeValue::Scalar(_) | NodeValue::List(_) => {
                wrong_type(node, path, "a mapping", out);
                return None;
            }
        };
        // What cannot be read is reported and left out, so that the rest can be looked at.
        Some(entries.iter().filter_map(|entry| decode_entry(entry, &entry.key, path, out)).collect())
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({
            "type": ["object", "null"],
            "propertyNames": K::key_schema(),
            "additionalProperties": T::schema(definitions),
        })
    }
}

/// Reads one entry of a mapping whose keys are free; `key` is the part of the key that counts.
fn decode_entry<K: DecodeKey, T: Decode>(
    entry: &Entry,
    key: &str,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<(K, T)> {
    let path = path.key(&entry.key);
    let key = K::decode_key(key)
        .map_err(|message| out.push(Diagnostic::error("name", Place::Key(path.clone()), message)))
        .ok();
    let value = T::decode(&entry.value, &path, out);
    Some((key?, value?))
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if !node.is_null() {
            return T::decode(node, path, out).map(Some);
        }
        if node.as_scalar().is_some_and(|scalar| scalar.text.is_empty()) {
            let message = format!("{} has no value", subject(path));
            let finding = Diagnostic::warning("empty-value", Place::Key(path.clone()), message);
            out.push(finding.help("give it one, or remove the key"));
        }
        Some(None)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [T::schema(definitions), {"type": "null"}]})
    }
}

impl Decode for Value {
    fn decode(node: &Node, _: &DocPath, _: &mut Diagnostics) -> Option<Self> {
        Some(node.to_json())
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({})
    }
}

/// To look for what may be meant takes time, and nobody reads more advice than this.
pub const MAX_ADVICE: usize = 100;

/// The keys of a mapping while a record takes them one by one.
pub struct Fields<'n, 'p> {
    entries: &'n [Entry],
    taken: Vec<bool>,
    path: &'p DocPath,
    vocabulary: &'static Vocabulary,
}

/// The keys that a record has something to say about.
#[derive(Debug)]
pub struct Vocabulary {
    /// The keys it reads, with their aliases.
    pub known: &'static [&'static str],
    /// The keys that load without effect; a `*` at one end stands for any text.
    pub ignored: &'static [&'static str],
}

impl<'n, 'p> Fields<'n, 'p> {
    /// Opens a mapping; `tag` is a key that somebody else has read.
    pub fn open(
        tag: Option<&str>,
        node: &'n Node,
        path: &'p DocPath,
        vocabulary: &'static Vocabulary,
        out: &mut Diagnostics,
    ) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            wrong_type(node, path, "a mapping", out);
            return None;
        };
        let taken = entries.iter().map(|entry| Some(entry.key.as_str()) == tag).collect();
        Some(Self { entries, taken, path, vocabulary })
    }

    /// Reads the value under `names[0]` or one of its aliases.
    pub fn take<T: Decode>(
        &mut self,
        names: &[&str],
        default: Option<fn() -> T>,
        out: &mut Diagnostics,
    ) -> Option<T> {
        let mut first: Option<&Entry> = None;
        for (entry, taken) in self.entries.iter().zip(&mut self.taken) {
            if *taken || !names.contains(&entry.key.as_str()) {
                continue;
            }
            *taken = true;
            let Some(first) = first else {
                first = Some(entry);
                continue;
            };
            let message = format!("`{}` and `{}` mean the same", first.key, entry.key);
            let finding = Diagnostic::error("duplicate-key", Place::Key(self.path.key(&entry.key)), message);
            out.push(
                finding
                    .related(Place::Key(self.path.key(&first.key)), "it stands here first")
                    .help("keep one"),
            );
        }
        match (first, default) {
            // A broken value that may be absent counts as absent, so that the rest can be looked at.
            (Some(entry), default) => T::decode(&entry.value, &self.path.key(&entry.key), out)
                .or_else(|| default.map_or_else(T::absent, |default| Some(default()))),
            (None, Some(default)) => Some(default()),
            (None, None) => T::absent().or_else(|| {
                if self.is_misspelt(names) {
                    // The key that it was written as is a finding already.
                    return None;
                }
                let (place, of) = match self.path.segments() {
                    [] => (Place::File, String::new()),
                    _ => (Place::Key(self.path.clone()), format!(" in {}", subject(self.path))),
                };
                let message = format!("the key `{}` is missing{of}", names[0]);
                out.push(Diagnostic::error("missing-key", place, message));
                None
            }),
        }
    }

    /// Tells whether one of these keys is probably meant by one that nobody knows.
    fn is_misspelt(&self, names: &[&str]) -> bool {
        let known = || self.vocabulary.known.iter().copied();
        let is_unknown = |key: &&str| known().all(|known| known != *key) && !self.vocabulary.ignores(key);
        let rest = self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        let unknown = rest.map(|(entry, _)| entry.key.as_str()).filter(is_unknown);
        unknown.take(MAX_ADVICE).any(|key| nearest(key, known()).is_some_and(|near| names.contains(&near)))
    }

    /// Reads every value whose key begins with `prefix` and means nothing else, under the rest of the key.
    #[expect(clippy::unnecessary_wraps, reason = "a key that is missing is told apart from all others alike")]
    pub fn take_prefixed<K: DecodeKey, T: Decode>(
        &mut self,
        prefix: &str,
        out: &mut Diagnostics,
    ) -> Option<IndexMap<K, T>> {
        let mut read = IndexMap::new();
        for (entry, taken) in self.entries.iter().zip(&mut self.taken) {
            let Some(rest) = entry.key.strip_prefix(prefix).filter(|rest| !rest.is_empty()) else {
                continue;
            };
            if *taken || self.vocabulary.mentions_below(prefix, &entry.key) {
                continue;
            }
            *taken = true;
            read.extend(decode_entry(entry, rest, self.path, out));
        }
        Some(read)
    }

    /// Reports the keys that nobody took.
    pub fn close(self, out: &mut Diagnostics) {
        let rest = self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        for (count, (entry, _)) in rest.enumerate() {
            let place = Place::Key(self.path.key(&entry.key));
            out.push(self.vocabulary.finding(&entry.key, place, count < MAX_ADVICE));
        }
    }
}

impl Vocabulary {
    /// Tells whether a key with this prefix is spoken for by its name or by a narrower pattern. A pattern for ends of
    /// keys is not narrower: `on_ok` is a key with the prefix `on_`, whatever `*_ok` means elsewhere.
    fn mentions_below(&self, prefix: &str, key: &str) -> bool {
        let narrower = self.ignored.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => start.starts_with(prefix) && key.starts_with(start),
            None => *pattern == key,
        });
        narrower || self.known.contains(&key)
    }

    fn ignores(&self, key: &str) -> bool {
        self.ignored.iter().any(|pattern| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => key.ends_with(end),
            (None, Some(start)) => key.starts_with(start),
            (None, None) => *pattern == key,
        })
    }

    fn finding(&self, key: &str, place: Place, advise: bool) -> Diagnostic {
        let shown = one_line(key, 60);
        if self.ignores(key) {
            return Diagnostic::note("no-effect", place, format!("`{shown}` has no effect here"));
        }
        let finding = Diagnostic::error("unknown-key", place, format!("unknown key `{shown}`"));
        if !advise || key.len() > MAX_LENGTH {
            return finding;
        }
        let others = self.known.iter().copied().filter(|known| *known != key);
        if let Some(near) = nearest(key, others) {
            return finding.help(format!("did you mean `{near}`?"));
        }
        let mut known = self.known.to_vec();
        known.sort_unstable();
        let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
        finding.help(format!("the keys here are {}", known.join(", ")))
    }
}

/// Reports a word that is none of the known ones.
pub fn unknown_word(word: &str, known: &[&'static str], path: &DocPath, out: &mut Diagnostics) {
    let place = Place::Value(path.clone());
    let shown = one_line(word, 60);
    let message = format!("{} cannot be `{shown}`", subject(path));
    let words: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
    let near = if word.len() > MAX_LENGTH { None } else { nearest(word, known.iter().copied()) };
    let help = match (near, words.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, [word]) => format!("the only value is {word}"),
        (None, words) => format!("the values are {}", words.join(", ")),
    };
    out.push(Diagnostic::error("unknown-word", place, message).help(help));
}

/// Reads the `type` of a tagged record; the position in `names` tells which record follows.
pub fn tag(node: &Node, names: &[&'static str], path: &DocPath, out: &mut Diagnostics) -> Option<usize> {
    if !matches!(node.value, NodeValue::Map(_)) {
        wrong_type(node, path, "a mapping with a `type`", out);
        return None;
    }
    let Some(tag) = node.get("type") else {
        let message = format!("the key `type` is missing in {}", subject(path));
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let finding = Diagnostic::error("missing-key", Place::Key(path.clone()), message);
        out.push(finding.help(format!("the types are {}", names.join(", "))));
        return None;
    };
    let path = path.key("type");
    let word = text(tag, &path, "a word", out)?;
    let found = names.iter().position(|name| *name == word);
    if found.is_none() {
        unknown_word(word, names, &path, out);
    }
    found
}

/// Returns the text of doc comments as one description.
pub fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Returns the schema of a record from the schemas of its keys.
pub fn object_schema(
    description: &str,
    properties: Map<String, Value>,
    patterns: &Map<String, Value>,
    required: &[&str],
    vocabulary: &Vocabulary,
) -> Value {
    let mut properties = properties;
    let mut patterns = patterns.clone();
    let ignored = json!({"description": "Loads without effect.", "deprecated": true});
    for pattern in vocabulary.ignored {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => drop(patterns.insert(format!("{end}$"), ignored.clone())),
            (None, Some(start)) => drop(patterns.insert(format!("^{start}"), ignored.clone())),
            (None, None) => drop(properties.insert((*pattern).to_owned(), ignored.clone())),
        }
    }
    let mut schema = json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "additionalProperties": false,
    });
    if !patterns.is_empty() {
        schema["patternProperties"] = Value::Object(patterns);
    }
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// Returns a pattern for keys with a prefix that are not spoken for, neither by name nor by another pattern.
pub fn prefix_pattern(prefix: &str, vocabulary: &Vocabulary) -> String {
    let rest = |key: &&'static str| key.strip_prefix(prefix).map(ToOwned::to_owned);
    let known = vocabulary.known.iter().filter_map(rest);
    let known = known.map(|key| format!("{key}$"));
    let ignored = vocabulary.ignored.iter().filter_map(|pattern| {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => Some(format!(".*{end}$")),
            (None, Some(start)) => start.strip_prefix(prefix).map(ToOwned::to_owned),
            (None, None) => pattern.strip_prefix(prefix).map(|key| format!("{key}$")),
        }
    });
    let others: Vec<_> = known.chain(ignored).collect();
    if others.is_empty() { format!("^{prefix}.") } else { format!("^{prefix}(?!{}).", others.join("|")) }
}

/// Collects the schema of a record, key by key.
#[derive(Debug, Default)]
pub struct ObjectSchema {
    /// The keys with names.
    pub properties: Map<String, Value>,
    /// The keys with a prefix.
    pub patterns: Map<String, Value>,
    /// The keys that must be there.
    pub required: Vec<&'static str>,
}

impl ObjectSchema {
    /// Adds a key with its aliases.
    pub fn add<T: Decode>(
        &mut self,
        names: &[&'static str],
        has_default: bool,
        description: &str,
        definitions: &mut Definitions,
    ) {
        let mut schema = T::schema(definitions);
        if let Value::Object(map) = &mut schema {
            map.insert("description".into(), description.into());
        }
        for name in names {
            self.properties.insert((*name).to_owned(), schema.clone());
        }
        // A required key with an alias would need an `anyOf`; there is none.
        if !has_default && T::absent().is_none() && names.len() == 1 {
            self.required.push(names[0]);
        }
    }

    /// Adds the keys with a prefix.
    #[allow(
        clippy::extra_unused_type_parameters,
        reason = "the keys are named as they are where they are read"
    )]
    pub fn add_prefixed<K: DecodeKey, T: Decode>(
        &mut self,
        prefix: &str,
        description: &str,
        vocabulary: &Vocabulary,
        definitions: &mut Definitions,
    ) {
        let mut schema = T::schema(definitions);
        if let Value::Object(map) = &mut schema {
            map.insert("description".into(), description.into());
        }
        self.patterns.insert(prefix_pattern(prefix, vocabulary), schema);
    }
}

/// Returns the type of the values of a map, so that a prefixed field can be declared by the map it fills.
pub trait Prefixed: Sized {
    /// Reads all keys with the prefix.
    fn take(fields: &mut Fields<'_, '_>, prefix: &str, out: &mut Diagnostics) -> Option<Self>;

    /// Adds the keys to a schema.
    fn add(
        schema: &mut ObjectSchema,
        prefix: &str,
        description: &str,
        vocabulary: &Vocabulary,
        definitions: &mut Definitions,
    );
}

impl<K: DecodeKey, T: Decode> Prefixed for IndexMap<K, T> {
    fn take(fields: &mut Fields<'_, '_>, prefix: &str, out: &mut Diagnostics) -> Option<Self> {
        fields.take_prefixed(prefix, out)
    }

    fn add(
        schema: &mut ObjectSchema,
        prefix: &str,
        description: &str,
        vocabulary: &Vocabulary,
        definitions: &mut Definitions,
    ) {
        schema.add_prefixed::<K, T>(prefix, description, vocabulary, definitions);
    }
}

/// Declares a record: a struct, how it is read, and its schema.
///
/// A field is `name: Type`, required unless the type may be absent or a default follows (`= expression`). It is read
/// from the key of its name, or from another one (`as "key"`), or from every key with a prefix (`as prefix "on_"`);
/// `or "alias"` adds a second name. After the struct, `ignored [...]` lists keys that load without effect.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident $(or $alias:literal)* $(as $key:literal)? $(as prefix $prefix:literal)?
                : $type:ty $(= $default:expr)?
            ),* $(,)?
        }
        $(ignored [$($ignored:literal),* $(,)?])?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::struct_field_names, reason = "fields are named like the keys of a file")]
        $visibility struct $name {
            $($(#[doc = $field_doc])* pub $field: $type,)*
        }

        const _: () = {
            use $crate::base::decode as d;

            static VOCABULARY: d::Vocabulary = d::Vocabulary {
                known: <$name as d::Record>::KEYS,
                ignored: &[$($($ignored),*)?],
            };

            impl d::Record for $name {
                const KEYS: &'static [&'static str] =
                    &[$($crate::base::decode::record!(@key $field $(as $key)? $(prefix $prefix)?), $($alias,)*)*];

                fn decode_beside(
                    tag: Option<&str>,
                    node: &$crate::base::node::Node,
                    path: &$crate::base::path::DocPath,
                    out: &mut $crate::base::diagnostic::Diagnostics,
                ) -> Option<Self> {
                    #[allow(unused_mut, reason = "a record may have no keys")]
                    let mut fields = d::Fields::open(tag, node, path, &VOCABULARY, out)?;
                    $(let $field: Option<$type> = $crate::base::decode::record!(
                        @take fields, out, $field $(as $key)? $(prefix $prefix)?, [$($alias),*], $type, $($default)?
                    );)*
                    fields.close(out);
                    Some(Self { $($field: $field?),* })
                }

                fn object_schema(definitions: &mut d::Definitions) -> serde_json::Value {
                    let mut schema = d::ObjectSchema::default();
                    $($crate::base::decode::record!(
                        @schema schema, definitions, &VOCABULARY, d::description(&[$($field_doc),*]),
                        $field $(as $key)? $(prefix $prefix)?, [$($alias),*], $type, $($default)?
                    );)*
                    let d::ObjectSchema { properties, patterns, required } = schema;
                    d::object_schema(&d::description(&[$($doc),*]), properties, &patterns, &required, &VOCABULARY)
                }
            }

            impl d::Decode for $name {
                fn decode(
                    node: &$crate::base::node::Node,
                    path: &$crate::base::path::DocPath,
                    out: &mut $crate::base::diagnostic::Diagnostics,
                ) -> Option<Self> {
                    <Self as d::Record>::decode_beside(None, node, path, out)
                }

                fn schema(definitions: &mut d::Definitions) -> serde_json::Value {
                    let name = stringify!($name);
                    if !definitions.contains_key(name) {
                        let schema = <Self as d::Record>::object_schema(definitions);
                        definitions.insert(name.to_owned(), schema);
                    }
                    serde_json::json!({"$ref": format!("#/$defs/{name}")})
                }
            }
        };
    };

    (@key $field:ident) => { stringify!($field) };
    (@key $field:ident as $key:literal) => { $key };
    (@key $field:ident prefix $prefix:literal) => { $prefix };

    (@take $fields:ident, $out:ident, $field:ident prefix $prefix:literal, [], $type:ty,) => {
        <$type as d::Prefixed>::take(&mut $fields, $prefix, $out)
    };
    (@take $fields:ident, $out:ident, $field:ident $(as $key:literal)?, [$($alias:literal),*], $type:ty,) => {
        $fields.take(&[$crate::base::decode::record!(@key $field $(as $key)?), $($alias),*], None, $out)
    };
    (
        @take $fields:ident, $out:ident, $field:ident $(as $key:literal)?, [$($alias:literal),*], $type:ty,
        $default:expr
    ) => {
        $fields.take(&[$crate::base::decode::record!(@key $field $(as $key)?), $($alias),*], Some(|| $default), $out)
    };

    (
        @schema $schema:ident, $definitions:ident, $vocabulary:expr, $doc:expr,
        $field:ident prefix $prefix:literal, [], $type:ty,
    ) => {
        <$type as d::Prefixed>::add(&mut $schema, $prefix, &$doc, $vocabulary, $definitions)
    };
    (
        @schema $schema:ident, $definitions:ident, $vocabulary:expr, $doc:expr,
        $field:ident $(as $key:literal)?, [$($alias:literal),*], $type:ty, $($default:expr)?
    ) => {
        $schema.add::<$type>(
            &[$crate::base::decode::record!(@key $field $(as $key)?), $($alias),*],
            $crate::base::decode::record!(@has $($default)?),
            &$doc,
            $definitions,
        )
    };

    (@has) => { false };
    (@has $default:expr) => { true };
}

/// Declares an enum of words.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident = $word:literal),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $(#[doc = concat!("`", $word, "`")] $(#[doc = $variant_doc])* $variant,)*
        }

        impl $name {
            /// Every word, in the order of the reference.
            $visibility const WORDS: &'static [&'static str] = &[$($word),*];

            /// Every choice, in the same order.
            $visibility const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the word as it is written in a file.
            $visibility fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Returns what a word stands for.
            $visibility fn by_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|choice| choice.word() == word)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::by_word(&word).ok_or_else(|| serde::de::Error::unknown_variant(&word, Self::WORDS))
            }
        }

        impl $crate::base::decode::Decode for $name {
            fn decode(
                node: &$crate::base::node::Node,
                path: &$crate::base::path::DocPath,
                out: &mut $crate::base::diagnostic::Diagnostics,
            ) -> Option<Self> {
                match $crate::base::decode::text(node, path, "a word", out)? {
                    $($word => Some(Self::$variant),)*
                    other => {
                        $crate::base::decode::unknown_word(other, Self::WORDS, path, out);
                        None
                    }
                }
            }

            fn schema(_: &mut $crate::base::decode::Definitions) -> serde_json::Value {
                serde_json::json!({"enum": Self::WORDS})
            }
        }
    };
}

/// Declares an enum of records that are told apart by the word under `type`.
///
/// With a trait behind its name (`enum Name: Trait`) it stands for the record that it holds wherever that trait is
/// asked for.
macro_rules! tagged {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident: $trait:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident($record:ty) = $word:literal),* $(,)?
        }
    ) => {
        $crate::base::decode::tagged! {
            $(#[doc = $doc])*
            $visibility enum $name {
                $($(#[doc = $variant_doc])* $variant($record) = $word),*
            }
        }

        impl std::ops::Deref for $name {
            type Target = dyn $trait;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$variant(record) => record,)*
                }
            }
        }
    };
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident($record:ty) = $word:literal),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility enum $name {
            $($(#[doc = $variant_doc])* $variant($record),)*
        }

        impl $name {
            /// Every type, in the order of the reference.
            $visibility const NAMES: &'static [&'static str] = &[$($word),*];

            /// Returns the word under `type`.
            $visibility fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $word,)*
                }
            }
        }

        impl $crate::base::decode::Decode for $name {
            fn decode(
                node: &$crate::base::node::Node,
                path: &$crate::base::path::DocPath,
                out: &mut $crate::base::diagnostic::Diagnostics,
            ) -> Option<Self> {
                use $crate::base::decode::{Record, tag};
                let index = tag(node, Self::NAMES, path, out)?;
                match Self::NAMES[index] {
                    $($word => <$record>::decode_beside(Some("type"), node, path, out).map(Self::$variant),)*
                    _ => None,
                }
            }

            fn schema(definitions: &mut $crate::base::decode::Definitions) -> serde_json::Value {
                use $crate::base::decode::{Record, description, tagged_schema};
                let name = stringify!($name);
                if !definitions.contains_key(name) {
                    let variants = vec![$((
                        $word,
                        description(&[$($variant_doc),*]),
                        <$record>::object_schema(definitions),
                    )),*];
                    let schema = tagged_schema(&description(&[$($doc),*]), Self::NAMES, variants);
                    definitions.insert(name.to_owned(), schema);
                }
                serde_json::json!({"$ref": format!("#/$defs/{name}")})
            }
        }
    };
}

pub(crate) use choice;
pub(crate) use record;
pub(crate) use tagged;

/// Returns the schema of records told apart by `type`: the word decides which one has to fit.
pub fn tagged_schema(description: &str, names: &[&str], variants: Vec<(&str, String, Value)>) -> Value {
    let branches = variants.into_iter().map(|(name, description, mut schema)| {
        schema["description"] = description.into();
        schema["properties"]["type"] = json!({"const": name});
        json!({"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": schema})
    });
    json!({
        "type": "object",
        "description": description,
        "properties": {"type": {"enum": names}},
        "required": ["type"],
        "allOf": branches.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::diagnostic::Severity;
    use crate::base::node::{FileId, Span};

    record! {
        /// A toy.
        struct Toy {
            /// What it is called.
            name: StateName,
            /// How heavy it is.
            weight or "mass": f64 = 1.0,
            /// What it is made of.
            kind as "material": Option<Material>,
            /// Where its parts go.
            parts as prefix "on_": IndexMap<String, i32>,
            /// One part that is known.
            on_top: Option<bool>,
            /// Words on it.
            labels: Vec<String> = Vec::new(),
        }
        ignored ["old", "*_ok", "rate_*", "on_rate"]
    }

    choice! {
        /// What toys are made of.
        enum Material { Wood = "wood", Tin = "tin" }
    }

    record! {
        /// A ball.
        struct Ball {
            /// Its size.
            size: i32,
        }
    }

    record! {
        /// A kite.
        struct Kite {
            /// Its string.
            string: Option<Template>,
        }
    }

    trait Thing {
        fn weight(&self) -> i32;
    }

    impl Thing for Ball {
        fn weight(&self) -> i32 {
            self.size * 2
        }
    }

    impl Thing for Kite {
        fn weight(&self) -> i32 {
            1
        }
    }

    tagged! {
        /// A thing that flies.
        enum Flying: Thing {
            /// Thrown.
            Ball(Ball) = "ball",
            /// Pulled.
            Kite(Kite) = "kite",
        }
    }

    /// Makes a tree from JSON; places do not matter here.
    fn tree(value: &Value) -> Node {
        let span = Span { file: FileId(0), range: 0..0 };
        let value = match value {
            Value::Array(items) => NodeValue::List(items.iter().map(tree).collect()),
            Value::Object(map) => NodeValue::Map(
                map.iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_span: span.clone(),
                        value: tree(value),
                    })
                    .collect(),
            ),
            Value::String(text) => NodeValue::Scalar(Scalar::string(text.clone(), ScalarStyle::Quoted)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                NodeValue::Scalar(Scalar::plain(value.to_string()))
            }
        };
        Node { value, span }
    }

    fn read<T: Decode>(value: &Value) -> (Option<T>, Diagnostics) {
        let mut out = Diagnostics::default();
        let read = T::decode(&tree(value), &DocPath::root(), &mut out);
        assert!(read.is_some() || out.has_errors(), "nothing was said about {value}");
        (read, out)
    }

    #[track_caller]
    fn check<T: Decode>(value: &Value, expected: &[&str]) {
        let (_, out) = read::<T>(value);
        let shown: Vec<_> = out
            .iter()
            .map(|finding| {
                let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
                format!("{}: {}{help}", finding.code, finding.message)
            })
            .collect();
        assert_eq!(shown, expected, "{value}");
    }

    #[test]
    fn a_record_is_read_whole() {
        let value =
            json!({"name": 1, "mass": 2, "material": "tin", "on_yes": 3, "on_top": true, "labels": ["x", 5]});
        let (toy, out) = read::<Toy>(&value);
        assert!(out.is_empty(), "{out:?}");
        let expected = Toy {
            name: StateName::parse("1").unwrap(),
            weight: 2.0,
            kind: Some(Material::Tin),
            parts: IndexMap::from([("yes".to_owned(), 3)]),
            on_top: Some(true),
            labels: vec!["x".to_owned(), "5".to_owned()],
        };
        assert_eq!(toy, Some(expected));
        assert_eq!(Material::Wood.word(), "wood");
    }

    #[test]
    fn every_problem_is_told_at_once() {
        check::<Toy>(
            &json!({"nmae": "x", "mass": "2", "weight": 3, "material": "woood", "on_yes": "x", "labels": 4}),
            &[
                "duplicate-key: `mass` and `weight` mean the same (keep one)",
                "wrong-type: `mass` must be a number, not the text `2` (remove the quotes)",
                "unknown-word: `material` cannot be `woood` (did you mean `wood`?)",
                "wrong-type: `on_yes` must be a whole number, not the text `x`",
                "wrong-type: `labels` must be a list, not `4`",
                "unknown-key: unknown key `nmae` (did you mean `name`?)",
            ],
        );
    }

    #[test]
    fn keys_without_effect_are_noted_once_each() {
        let value = json!({"name": "x", "old": 1, "this_ok": true, "rate_limit": 2, "on_rate": 3});
        let (toy, out) = read::<Toy>(&value);
        assert!(toy.is_some_and(|toy| toy.parts.is_empty()));
        let codes: Vec<_> = out.iter().map(|finding| (finding.code, finding.severity)).collect();
        assert_eq!(codes, [("no-effect", Severity::Note); 4]);
    }

    #[test]
    fn a_word_is_one_of_those_there_are() {
        check::<Material>(
            &json!("x"),
            &["unknown-word: the file cannot be `x` (the values are `wood`, `tin`)"],
        );
        check::<Flying>(
            &json!({"type": "plane"}),
            &["unknown-word: `type` cannot be `plane` (the values are `ball`, `kite`)"],
        );
    }

    #[test]
    fn a_tag_decides_which_record_is_read() {
        let (ball, out) = read::<Flying>(&json!({"size": 3, "type": "ball"}));
        assert!(out.is_empty());
        assert_eq!(ball.as_ref().map(Flying::name), Some("ball"));
        assert_eq!(ball.as_ref().map(|ball| ball.weight()), Some(6));
        assert_eq!(ball, Some(Flying::Ball(Ball { size: 3 })));
        check::<Flying>(
            &json!({"type": "bal", "size": 3}),
            &["unknown-word: `type` cannot be `bal` (did you mean `ball`?)"],
        );
        check::<Flying>(
            &json!({"size": 3}),
            &["missing-key: the key `type` is missing in the file (the types are `ball`, `kite`)"],
        );
        check::<Flying>(
            &json!({"type": "kite", "size": 3}),
            &["unknown-key: unknown key `size` (the keys here are `string`)"],
        );
        check::<Flying>(&json!({"type": ["kite"]}), &["wrong-type: `type` must be a word, not a list"]);
        check::<Flying>(
            &json!("kite"),
            &["wrong-type: the file must be a mapping with a `type`, not the text `kite`"],
        );
    }

    #[test]
    fn scalars_are_read_by_what_the_key_needs() {
        check::<bool>(
            &json!("true"),
            &["wrong-type: the file must be `true` or `false`, not the text `true` (remove the quotes)"],
        );
        check::<bool>(
            &json!("yes"),
            &["wrong-type: the file must be `true` or `false`, not the text `yes` (write `true`)"],
        );
        check::<i32>(&json!(1.5), &["wrong-type: the file must be a whole number, not `1.5`"]);
        check::<i32>(
            &json!(3_000_000_000_u64),
            &["wrong-type: the file must be a whole number, not `3000000000`"],
        );
        check::<String>(&json!(null), &["wrong-type: the file must be a text, not empty"]);
        check::<StateName>(&json!("a/b"), &["name: a state name cannot contain '/'"]);
        assert_eq!(read::<String>(&json!(true)).0, Some("true".to_owned()));
        assert_eq!(read::<Option<f64>>(&json!(null)).0, Some(None));
        assert_eq!(read::<Vec<f64>>(&json!(null)).0, Some(vec![]));
    }

    #[test]
    fn durations_are_numbers_or_texts_and_more_than_zero() {
        let secs = |value: &Value| read::<Duration>(value).0.map(|duration| duration.as_secs_f64());
        assert_eq!(secs(&json!(90)), Some(90.0));
        assert_eq!(secs(&json!(0.5)), Some(0.5));
        assert_eq!(secs(&json!("1h30m")), Some(5400.0));
        let help = "(write seconds (`90`, `0.5`) or a duration (`250ms`, `5m`, `1h30m`))";
        for value in [json!(0), json!(-5), json!("0s"), json!(1e-12)] {
            check::<Duration>(&value, &[&format!("duration: the file must be more than zero {help}")]);
        }
        check::<Duration>(&json!(1e10), &[&format!("duration: the file can be at most ten years {help}")]);
    }

    #[test]
    fn a_prefix_leaves_other_keys_alone() {
        let pattern = prefix_pattern("on_", &VOCABULARY_FOR_TEST);
        let regex = fancy_regex::Regex::new(&pattern).unwrap();
        for (key, expected) in
            [("on_yes", true), ("on_top", false), ("on_topper", true), ("on_x_ok", false), ("on_", false)]
        {
            assert_eq!(regex.is_match(key).unwrap(), expected, "{key} {pattern}");
        }
    }

    static VOCABULARY_FOR_TEST: Vocabulary = Vocabulary { known: &["on_top", "on_"], ignored: &["*_ok"] };

    #[test]
    fn the_schema_says_what_the_decoder_does() {
        let mut definitions = Definitions::new();
        assert_eq!(Flying::schema(&mut definitions), json!({"$ref": "#/$defs/Flying"}));
        Toy::schema(&mut definitions);
        assert_eq!(definitions["Toy"]["required"], json!(["name"]));
        assert_eq!(definitions["Toy"]["properties"]["material"]["description"], "What it is made of.");
        assert_eq!(definitions["Flying"]["allOf"][0]["then"]["properties"]["type"], json!({"const": "ball"}));
    }
}
