//! From a tree to records: every problem of a document in one pass, each with its place.
//!
//! A record is declared once, with [`record!`]; the struct, the decoder and the JSON Schema are made from that
//! declaration, so they cannot disagree. [`choice!`] is the same for words, [`tagged!`] for records that name their
//! kind under `type`.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair, nearest};
use super::explanation::Explanation;
use super::name::{LoopName, MAX_LENGTH, StateName, VarName};
use super::node::{Entry, Node, NodeValue, Scalar, ScalarStyle, ScalarValue};
use super::path::{DocPath, Segment};
use super::template::{Template, TemplateErrorKind};
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

    /// What `null` means under a key of the language.
    const NULL: Null = Null::NotGiven;

    /// Returns what `null` means under a name that the author of the file chose.
    fn named_null() -> NamedNull<Self> {
        NamedNull::Wrong
    }

    /// Returns the JSON Schema of what [`Decode::decode`] accepts.
    fn schema(definitions: &mut Definitions) -> Value;
}

/// What `null` means under a key of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Null {
    /// The key counts as absent. Where nothing at all is written, somebody may have forgotten the value.
    NotGiven,
    /// The key counts as absent, and nothing at all is an ordinary way to write that it holds nothing.
    Nothing,
    /// It is a value.
    Value,
}

/// What `null` means under a name that the author of the file chose.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedNull<T> {
    /// A value.
    Value(T),
    /// The name counts as absent.
    NotGiven,
    /// A mistake.
    Wrong,
}

/// A record made by [`record!`].
pub trait Record: Decode {
    /// The keys it knows, for suggestions.
    const KEYS: &'static [&'static str];

    /// Reads the record from a mapping in which the key of `tag` belongs to somebody else.
    fn decode_beside(tag: Option<&Tag>, node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self>;

    /// Returns its schema as it is, not as a reference.
    fn object_schema(definitions: &mut Definitions) -> Value;

    /// Tells whether a key loads without effect, whatever is below it.
    fn is_without_effect(key: &str) -> bool;
}

/// The key of a mapping.
pub trait DecodeKey: Sized + Eq + Hash {
    /// Reads a key, or says what is wrong with it.
    fn decode_key(text: &str) -> Result<Self, Explanation>;

    /// Returns the JSON Schema of a key.
    fn key_schema() -> Value;
}

/// Returns the name by which people know a place: its last key.
pub fn subject(path: &DocPath) -> String {
    // A key is a text of the file: on one line and cut, it can neither forge nor flood a message.
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
    let mut finding = Diagnostic::error("wrong-type", FindingPlace::Value(path.clone()), message);
    if matches!(node.value, NodeValue::List(_)) && expected == "a mapping" {
        finding = finding.help("write `NAME: …` for each of them, without the dash");
    }
    if let Some(scalar) = node.as_scalar() {
        let is_truth = matches!(ScalarValue::of_plain(scalar.text.trim()), ScalarValue::Bool(_));
        if scalar.text.contains("${") {
            let is_number = expected.contains("number");
            finding = finding.help(if is_number { NO_TEMPLATE } else { NO_TEMPLATE_HERE });
        } else if expected.contains("true") && is_truth && scalar.style == ScalarStyle::Quoted {
            finding =
                finding.help("remove the quotes").repair(Repair::Rewrite(scalar.text.trim().to_owned()));
        } else if expected.contains("true") {
            // Booleans in YAML 1.1 or by habit: what is meant is clear, but YAML 1.2 reads a text or a number.
            match scalar.text.to_lowercase().as_str() {
                "yes" | "on" | "y" | "1" => {
                    finding = finding.help("write `true`").repair(Repair::Rewrite("true".to_owned()));
                }
                "no" | "off" | "n" | "0" => {
                    finding = finding.help("write `false`").repair(Repair::Rewrite("false".to_owned()));
                }
                _ => {}
            }
        }
    }
    out.push(finding);
}

/// What to do about a template where a number is wanted.
const NO_TEMPLATE: &str = "write the number itself: it is needed before a template has a value";

/// The same where anything else is wanted.
const NO_TEMPLATE_HERE: &str = "write it out: it is needed before a template has a value";

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

/// Returns the number that stands in a place, plain or in quotes. A text that is not a number yields nothing.
pub fn number(node: &Node) -> Option<ScalarValue> {
    let scalar = node.as_scalar()?;
    // Programs that write YAML put numbers into quotes, too, which does not make texts of them where a number is wanted.
    let value = match (&scalar.value, scalar.style) {
        (ScalarValue::String, ScalarStyle::Quoted | ScalarStyle::Block) => {
            ScalarValue::of_plain(scalar.text.trim())
        }
        (value, _) => value.clone(),
    };
    matches!(value, ScalarValue::Int(_) | ScalarValue::Float(_)).then_some(value)
}

/// Returns the schema of a number in quotes.
fn quoted_number_schema(is_whole: bool) -> Value {
    let whole = "0|[1-9][0-9]*|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+";
    // Only a whole number may not begin with a zero before other digits.
    let with_a_fraction = r"([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+";
    let any = if is_whole { whole.to_owned() } else { format!("{whole}|{with_a_fraction}") };
    json!({"type": "string", "pattern": format!(r"^\s*[-+]?({any})\s*$")})
}

#[expect(clippy::cast_precision_loss, reason = "a larger whole number is read as JSON and YAML readers do")]
fn as_float(number: &ScalarValue) -> Option<f64> {
    match number {
        ScalarValue::Int(int) => Some(*int as f64),
        // YAML has `.inf` and `.nan`; JSON, in which values are kept, has neither.
        ScalarValue::Float(float) => Some(*float).filter(|float| float.is_finite()),
        ScalarValue::Null | ScalarValue::Bool(_) | ScalarValue::String => None,
    }
}

impl Decode for f64 {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let read = number(node).as_ref().and_then(as_float);
        if read.is_none() {
            wrong_type(node, path, "a number", out);
        }
        read
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"anyOf": [{"type": "number"}, quoted_number_schema(false)]})
    }
}

/// The numbers that a key takes.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What they are, as a noun with its article.
    pub expected: &'static str,
    /// Whether they have no fraction.
    pub is_whole: bool,
    /// The least of them.
    pub least: Least,
    /// The greatest of them.
    pub most: Option<f64>,
}

/// The lower end of a range.
#[derive(Clone, Copy, Debug)]
pub enum Least {
    /// This number.
    At(f64),
    /// Any number above this one.
    Above(f64),
}

impl Bounds {
    /// Makes the range of whole numbers from one to another.
    pub const fn whole(least: f64, most: f64, expected: &'static str) -> Self {
        Self { expected, is_whole: true, least: Least::At(least), most: Some(most) }
    }

    /// Tells whether a number is one of them.
    pub fn contain(&self, number: f64) -> bool {
        let is_enough = match self.least {
            Least::At(least) => number >= least,
            Least::Above(least) => number > least,
        };
        is_enough && self.most.is_none_or(|most| number <= most) && (!self.is_whole || number.fract() == 0.0)
    }

    fn schema(&self) -> Value {
        let mut plain = json!({"type": if self.is_whole { "integer" } else { "number" }});
        match self.least {
            Least::At(least) => plain["minimum"] = limit(least),
            Least::Above(least) => plain["exclusiveMinimum"] = limit(least),
        }
        if let Some(most) = self.most {
            plain["maximum"] = limit(most);
        }
        json!({"anyOf": [plain, quoted_number_schema(self.is_whole)]})
    }
}

fn limit(limit: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the limits of whole numbers are small")]
    if limit.fract() == 0.0 { json!(limit as i64) } else { json!(limit) }
}

/// A number that has to lie in a range.
pub trait Ranged: Sized {
    /// The range.
    const BOUNDS: Bounds;

    /// Makes the value of a number in the range.
    fn of_number(number: f64) -> Self;
}

impl<T: Ranged> Decode for T {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let bounds = Self::BOUNDS;
        let written = number(node).filter(|number| !bounds.is_whole || matches!(number, ScalarValue::Int(_)));
        let Some(number) = written.as_ref().and_then(as_float) else {
            wrong_type(node, path, bounds.expected, out);
            return None;
        };
        if !bounds.contain(number) {
            let text = node.as_scalar().map_or_else(String::new, |scalar| one_line(scalar.text.trim(), 40));
            let message = format!("{} must be {}, not {text}", subject(path), bounds.expected);
            out.push(Diagnostic::error("range", FindingPlace::Value(path.clone()), message));
            return None;
        }
        Some(Self::of_number(number))
    }

    fn schema(_: &mut Definitions) -> Value {
        Self::BOUNDS.schema()
    }
}

/// Reads a span of time that may be zero.
pub fn duration(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Duration> {
    let seconds = number(node).as_ref().and_then(as_float);
    let read = match (seconds, node.as_scalar()) {
        (Some(seconds), _) => duration_from_secs(seconds),
        (None, Some(Scalar { value: ScalarValue::String, text, .. })) => parse_duration(text),
        (None, _) => {
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
    let is_template = matches!(error, DurationError::Unreadable(text) if text.contains("${"));
    let help = if is_template {
        NO_TEMPLATE
    } else {
        "write seconds (`90`, `0.5`) or a duration (`250ms`, `5m`, `1h30m`)"
    };
    Diagnostic::error("duration", FindingPlace::Value(path.clone()), message).help(help)
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

    /// A variable without a value is empty.
    fn named_null() -> NamedNull<Self> {
        NamedNull::Value(Self::literal(""))
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
        let place = FindingPlace::Within(path.clone(), error.span);
        let finding = Diagnostic::error("template", place, error.kind.to_string());
        out.push(match &error.kind {
            TemplateErrorKind::UnknownNamespace { word, nearest: Some(near) } => finding.meant(word, near),
            TemplateErrorKind::UnknownNamespace { nearest: None, .. }
            | TemplateErrorKind::Nested
            | TemplateErrorKind::Unclosed
            | TemplateErrorKind::Path(_)
            | TemplateErrorKind::Suffix(_) => finding.help(error.kind.help()),
        });
    }
    None
}

macro_rules! decode_name {
    ($name:ident, $reserved:literal, $further:literal) => {
        impl Decode for $name {
            fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
                let name = text(node, path, "a name", out)?;
                let place = || FindingPlace::Value(path.clone());
                Self::parse(name)
                    .map_err(|error| {
                        let finding = Diagnostic::error("name", place(), error.to_string());
                        let is_made = name.contains("${");
                        out.push(if is_made { finding.help(NO_TEMPLATE_HERE) } else { finding });
                    })
                    .ok()
            }

            fn schema(_: &mut Definitions) -> Value {
                let mut schema = Self::key_schema();
                schema["type"] = json!(["string", "number", "boolean"]);
                schema
            }
        }

        impl DecodeKey for $name {
            fn decode_key(text: &str) -> Result<Self, Explanation> {
                Self::parse(text).map_err(Explanation::from)
            }

            fn key_schema() -> Value {
                // The characters that `name` refuses: they would break a path, a template or a line of a log.
                let inside = r"/\\{}\x00-\x1f\x7f-\x9f";
                let part = format!("[^{}{inside}][^{inside}]*", $reserved);
                let further = $further.replace("PART", &part);
                let pattern = format!("^{part}{further}$");
                json!({"pattern": pattern, "maxLength": MAX_LENGTH})
            }
        }
    };
}

// A part that begins with a dot or a hyphen would be hidden, lead upwards, or be taken for an option.
decode_name!(LoopName, r"$.\-", "(/PART)*");
decode_name!(StateName, "$", "");
decode_name!(VarName, "$", "");

impl DecodeKey for String {
    fn decode_key(text: &str) -> Result<Self, Explanation> {
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
        // All items are read, and only then does a broken one fail the list, so that each of them is reported.
        let read: Vec<_> =
            items.iter().enumerate().map(|(index, item)| T::decode(item, &path.index(index), out)).collect();
        read.into_iter().collect()
    }

    const NULL: Null = Null::Nothing;

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

    const NULL: Null = Null::Nothing;

    fn schema(definitions: &mut Definitions) -> Value {
        let value = T::schema(definitions);
        json!({
            "type": ["object", "null"],
            "propertyNames": K::key_schema(),
            "additionalProperties": match T::named_null() {
                NamedNull::Value(_) | NamedNull::NotGiven => or_null(value),
                NamedNull::Wrong => value,
            },
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
        .map_err(|message| out.push(Diagnostic::error("name", FindingPlace::Key(path.clone()), message)))
        .ok();
    let value = match T::named_null() {
        NamedNull::Value(value) if entry.value.is_null() => Some(value),
        NamedNull::NotGiven if entry.value.is_null() => None,
        NamedNull::Value(_) | NamedNull::NotGiven | NamedNull::Wrong => T::decode(&entry.value, &path, out),
    };
    // Only after both were read: a name that is refused must not hide what is wrong below it.
    Some((key?, value?))
}

/// Finds keys without a value in a policy: somebody who wrote one meant something.
pub fn unsaid(node: &Node, path: &DocPath, code: &'static str, out: &mut Diagnostics) {
    let NodeValue::Map(entries) = &node.value else { return };
    for entry in entries {
        let path = path.key(entry.key.as_str());
        if entry.value.is_null() {
            let message = format!("`{path}` has no value");
            let finding = Diagnostic::error(code, FindingPlace::Key(path), message);
            out.push(finding.help("write a value, `[]` for none of a list, or remove the key"));
        } else {
            unsaid(&entry.value, &path, code, out);
        }
    }
}

/// Makes of a schema one that takes no `null`, for files that are read with [`unsaid`].
pub fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(record) => {
            if let Some(Value::Array(types)) = record.get_mut("type") {
                types.retain(|one| one != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    record.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(any)) = record.get_mut("anyOf") {
                any.retain(|one| *one != json!({"type": "null"}));
            }
            record.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns a schema that takes `null` as well.
fn or_null(mut schema: Value) -> Value {
    let Some(object) = schema.as_object_mut() else { return schema };
    // Beside these, a further type would still let no `null` through.
    let is_listed = object.contains_key("enum") || object.contains_key("const");
    match object.get_mut("type").filter(|_| !is_listed) {
        Some(Value::Array(types)) => {
            if !types.contains(&"null".into()) {
                types.push("null".into());
            }
            return schema;
        }
        Some(one @ Value::String(_)) => {
            *one = json!([one, "null"]);
            return schema;
        }
        _ => {}
    }
    // An empty schema takes everything, `null` as well.
    if object.is_empty() {
        return schema;
    }
    match object.get_mut("anyOf") {
        Some(Value::Array(any)) => {
            let null = json!({"type": "null"});
            if !any.contains(&null) {
                any.push(null);
            }
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

impl<T: Decode> Decode for Option<T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        if node.is_null() { Some(None) } else { T::decode(node, path, out).map(Some) }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        or_null(T::schema(definitions))
    }
}

impl Decode for Value {
    fn decode(node: &Node, _: &DocPath, _: &mut Diagnostics) -> Option<Self> {
        Some(node.to_json())
    }

    const NULL: Null = Null::Value;

    fn named_null() -> NamedNull<Self> {
        NamedNull::Value(Self::Null)
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
    tag: Option<&'p Tag>,
}

/// The keys that a record has something to say about.
#[derive(Debug)]
pub struct Vocabulary {
    /// The keys it reads, with their aliases.
    pub known: &'static [&'static str],
    /// The keys that load without effect; a `*` at one end stands for any text.
    pub ignored: &'static [&'static str],
    /// The keys that load without an effect somebody may rely on, and what is missed.
    pub missed: &'static [(&'static str, &'static str)],
    /// The keys of the predecessor that are refused, and what to write in their place.
    pub refused: &'static [(&'static str, &'static str)],
}

/// What tells apart the records of a [`tagged!`] enum, as one of them sees it.
#[derive(Debug)]
pub struct Tag {
    /// The key that somebody else has read.
    pub key: &'static str,
    /// Its word.
    pub word: &'static str,
    /// The words of all records with the keys of each.
    pub records: &'static [(&'static str, &'static [&'static str])],
}

impl Tag {
    /// Returns the word of another record that has a key.
    fn owner_of(&self, key: &str) -> Option<&'static str> {
        let mut others = self.records.iter().filter(|(word, _)| *word != self.word);
        others.find(|(_, keys)| keys.contains(&key)).map(|(word, _)| *word)
    }
}

impl<'n, 'p> Fields<'n, 'p> {
    /// Opens a mapping; the key of `tag` is one that somebody else has read.
    pub fn open(
        tag: Option<&'p Tag>,
        node: &'n Node,
        path: &'p DocPath,
        vocabulary: &'static Vocabulary,
        out: &mut Diagnostics,
    ) -> Option<Self> {
        let NodeValue::Map(entries) = &node.value else {
            wrong_type(node, path, "a mapping", out);
            return None;
        };
        let taken = entries.iter().map(|entry| tag.is_some_and(|tag| entry.key == tag.key)).collect();
        Some(Self { entries, taken, path, vocabulary, tag })
    }

    /// Reads the value under `names[0]` or one of its aliases.
    pub fn take<T: Decode>(
        &mut self,
        names: &[&str],
        default: Option<fn() -> T>,
        out: &mut Diagnostics,
    ) -> Option<T> {
        let (mut first, mut empty): (Option<&Entry>, Option<&Entry>) = (None, None);
        for (entry, taken) in self.entries.iter().zip(&mut self.taken) {
            if *taken || !names.contains(&entry.key.as_str()) {
                continue;
            }
            *taken = true;
            // It counts as absent, so an alias with a value beside it is no contradiction.
            if entry.value.is_null() && T::NULL != Null::Value {
                empty = Some(entry);
                continue;
            }
            let Some(first) = first else {
                first = Some(entry);
                continue;
            };
            let message = format!("`{}` and `{}` mean the same", first.key, entry.key);
            let finding =
                Diagnostic::error("duplicate-key", FindingPlace::Key(self.path.key(&entry.key)), message);
            out.push(
                finding
                    .related(FindingPlace::Key(self.path.key(&first.key)), "it stands here first")
                    .help("keep one"),
            );
        }
        if first.is_none() && T::NULL == Null::NotGiven {
            empty.inspect(|entry| note_empty(entry, self.path, out));
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
                    [] => (FindingPlace::File, String::new()),
                    _ => (FindingPlace::Key(self.path.clone()), format!(" in {}", subject(self.path))),
                };
                let (place, message) = match empty {
                    Some(entry) => (
                        FindingPlace::Key(self.path.key(&entry.key)),
                        format!("the key `{}` has no value", entry.key),
                    ),
                    None => (place, format!("the key `{}` is missing{of}", names[0])),
                };
                out.push(Diagnostic::error("missing-key", place, message));
                None
            }),
        }
    }

    /// Tells whether one of these keys is probably meant by an unknown one.
    fn is_misspelt(&self, names: &[&str]) -> bool {
        let known = || self.vocabulary.known.iter().copied();
        let is_unknown = |key: &&str| known().all(|known| known != *key) && !self.vocabulary.ignores(key);
        let rest = self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        let unknown = rest.map(|(entry, _)| entry.key.as_str()).filter(is_unknown);
        // Bounded like the advice itself, and asked for every key that is missing.
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
            if entry.value.is_null() {
                note_empty(entry, self.path, out);
            }
            read.extend(decode_entry(entry, rest, self.path, out));
        }
        Some(read)
    }

    /// Reports the keys that were not taken.
    pub fn close(self, out: &mut Diagnostics) {
        let rest = self.entries.iter().zip(&self.taken).filter(|(_, taken)| !**taken);
        for (count, (entry, _)) in rest.enumerate() {
            let place = FindingPlace::Key(self.path.key(&entry.key));
            out.push(match self.tag.and_then(|tag| Some((tag, tag.owner_of(&entry.key)?))) {
                Some((tag, owner)) => {
                    let message = format!("`{}` has no effect with `{}: {}`", entry.key, tag.key, tag.word);
                    let help = format!("it is a key of `{owner}`; remove it, or change the `{}`", tag.key);
                    Diagnostic::warning("no-effect", place, message).help(help)
                }
                None => self.vocabulary.finding(&entry.key, place, count < MAX_ADVICE),
            });
        }
    }
}

/// Notes a key behind which nothing at all is written. `null` says on purpose that there is nothing.
fn note_empty(entry: &Entry, path: &DocPath, out: &mut Diagnostics) {
    if entry.value.as_scalar().is_some_and(|scalar| scalar.text.is_empty()) {
        let path = path.key(&entry.key);
        let message = format!("{} has no value", subject(&path));
        let finding = Diagnostic::warning("empty-value", FindingPlace::Key(path), message);
        out.push(finding.help("give it one, or remove the key").repair(Repair::Remove));
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

    /// Tells whether a key loads without effect.
    pub fn is_without_effect(&self, key: &str) -> bool {
        !self.known.contains(&key)
            && (self.ignores(key) || self.missed.iter().any(|(missed, _)| *missed == key))
    }

    fn ignores(&self, key: &str) -> bool {
        self.ignored.iter().any(|pattern| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => key.ends_with(end),
            (None, Some(start)) => key.starts_with(start),
            (None, None) => *pattern == key,
        })
    }

    fn finding(&self, key: &str, place: FindingPlace, advise: bool) -> Diagnostic {
        let shown = one_line(key, 60);
        if self.ignores(key) {
            let message = format!("`{shown}` has no effect here");
            return Diagnostic::note("no-effect", place, message).repair(Repair::Remove);
        }
        if let Some((_, missed)) = self.missed.iter().find(|(missed, _)| *missed == key) {
            let message = format!("`{shown}` has no effect here: {missed}");
            return Diagnostic::warning("no-effect", place, message);
        }
        if let Some((_, advice)) = self.refused.iter().find(|(refused, _)| *refused == key) {
            let message = format!("`{shown}` is not supported");
            return Diagnostic::error("unsupported", place, message).help(*advice);
        }
        let finding = Diagnostic::error("unknown-key", place, format!("unknown key `{shown}`"));
        // A key of megabytes is not a slip, and comparing it with ours would take seconds.
        if !advise || key.len() > MAX_LENGTH {
            return finding;
        }
        // The prefix of a family, such as `on_`, is listed among the keys and unknown when it stands alone.
        let others = || self.known.iter().copied().filter(|known| *known != key);
        let of_others = OF_OTHERS.iter().filter(|(other, _)| *other == key).map(|(_, ours)| *ours);
        // Only where our key exists: `run` stands for `action` in a state, and for nothing at the top of a loop.
        let meant = of_others.into_iter().find(|ours| self.known.contains(ours));
        if let Some(near) = meant.or_else(|| nearest(key, others())) {
            return finding.meant(key, near).choices([Repair::Remove]);
        }
        let mut known = self.known.to_vec();
        known.sort_unstable();
        let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
        finding.help(format!("the keys here are {}", known.join(", "))).choices([Repair::Remove])
    }
}

/// Keys of other programs, and ours that mean the same.
const OF_OTHERS: [(&str, &str); 22] = [
    ("run", "action"),
    ("command", "action"),
    ("cmd", "action"),
    ("exec", "action"),
    ("script", "action"),
    ("prompt", "action"),
    ("start", "initial"),
    ("entry", "initial"),
    ("first", "initial"),
    ("initial_state", "initial"),
    ("jobs", "states"),
    ("steps", "states"),
    ("nodes", "states"),
    ("goto", "next"),
    ("then", "next"),
    ("to", "next"),
    ("working-directory", "cwd"),
    ("working_directory", "cwd"),
    ("environment", "env"),
    ("vars", "context"),
    ("variables", "context"),
    ("retries", "max_retries"),
];

/// Reports an unknown word.
pub fn unknown_word(word: &str, known: &[&'static str], path: &DocPath, out: &mut Diagnostics) {
    let place = FindingPlace::Value(path.clone());
    let shown = one_line(word, 60);
    let message = format!("{} cannot be `{shown}`", subject(path));
    let words: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
    let near = if word.len() > MAX_LENGTH { None } else { nearest(word, known.iter().copied()) };
    let finding = Diagnostic::error("unknown-word", place, message);
    out.push(match (near, words.as_slice()) {
        _ if word.contains("${") => finding.help(NO_TEMPLATE_HERE),
        (Some(near), _) => finding.meant(word, near),
        (None, [word]) => finding.help(format!("the only value is {word}")),
        (None, words) => {
            finding.help(format!("the values are {}", words.join(", "))).or_meant(word, known.iter().copied())
        }
    });
}

/// Reads the `type` of a tagged record; the position in `names` tells which record follows.
pub fn tag(
    node: &Node,
    names: &[&'static str],
    refused: &[(&'static str, &'static str)],
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<usize> {
    if !matches!(node.value, NodeValue::Map(_)) {
        wrong_type(node, path, "a mapping with a `type`", out);
        return None;
    }
    let Some(tag) = node.get("type").filter(|tag| !tag.is_null()) else {
        let message = format!("the key `type` is missing in {}", subject(path));
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let finding = Diagnostic::error("missing-key", FindingPlace::Key(path.clone()), message);
        out.push(finding.help(format!("the types are {}", names.join(", "))));
        return None;
    };
    let path = path.key("type");
    let word = text(tag, &path, "a word", out)?;
    let found = names.iter().position(|name| *name == word);
    if found.is_none() && !is_refused(word, refused, &path, out) {
        unknown_word(word, names, &path, out);
    }
    found
}

/// Reports a word of the predecessor that is refused.
pub fn is_refused(
    word: &str,
    refused: &[(&'static str, &'static str)],
    path: &DocPath,
    out: &mut Diagnostics,
) -> bool {
    let Some((_, advice)) = refused.iter().find(|(refused, _)| *refused == word) else { return false };
    let message = format!("`{word}` is not supported");
    out.push(Diagnostic::error("unsupported", FindingPlace::Value(path.clone()), message).help(*advice));
    true
}

/// Returns the text of doc comments as one description.
pub fn description(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Returns the schema of a record from the schemas of its keys.
pub fn object_schema(description: &str, schema: ObjectSchema, vocabulary: &Vocabulary) -> Value {
    let ObjectSchema { mut properties, mut patterns, prefixes, required } = schema;
    let ignored = json!({"description": "Loads without effect.", "deprecated": true});
    // Nothing is escaped, since no key of the language has a sign with a meaning in patterns.
    for pattern in vocabulary.ignored {
        match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
            (Some(end), _) => drop(patterns.insert(end_pattern(end, &prefixes), ignored.clone())),
            (None, Some(start)) => drop(patterns.insert(format!("^{start}"), ignored.clone())),
            (None, None) => drop(properties.insert((*pattern).to_owned(), ignored.clone())),
        }
    }
    for (key, missed) in vocabulary.missed {
        let description = format!("Loads without effect: {missed}.");
        properties.insert((*key).to_owned(), json!({"description": description, "deprecated": true}));
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

/// Returns a pattern for keys with an end that have none of these prefixes, each of which says more than an end.
fn end_pattern(end: &str, prefixes: &[String]) -> String {
    if prefixes.is_empty() { format!("{end}$") } else { format!("^(?!({}).).*{end}$", prefixes.join("|")) }
}

/// Returns a pattern for keys with a prefix that are not spoken for, neither by name nor by a narrower pattern.
pub fn prefix_pattern(prefix: &str, vocabulary: &Vocabulary) -> String {
    let rest = |key: &&'static str| key.strip_prefix(prefix).map(ToOwned::to_owned);
    let known = vocabulary.known.iter().filter_map(rest);
    let known = known.map(|key| format!("{key}$"));
    let ignored = vocabulary.ignored.iter().filter_map(|pattern| match pattern.strip_suffix('*') {
        Some(start) => start.strip_prefix(prefix).map(ToOwned::to_owned),
        None => pattern.strip_prefix(prefix).map(|key| format!("{key}$")),
    });
    let others: Vec<_> = known.chain(ignored).collect();
    // A key has to satisfy every pattern that it matches, so this one leaves out what others describe.
    if others.is_empty() { format!("^{prefix}.") } else { format!("^{prefix}(?!{}).", others.join("|")) }
}

/// Collects the schema of a record, key by key.
#[derive(Debug, Default)]
pub struct ObjectSchema {
    /// The keys with names.
    pub properties: Map<String, Value>,
    /// The keys with a prefix.
    pub patterns: Map<String, Value>,
    /// The prefixes.
    pub prefixes: Vec<String>,
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
        let may_be_absent = has_default || T::absent().is_some();
        let schema = T::schema(definitions);
        let mut schema = if may_be_absent { or_null(schema) } else { schema };
        if let Value::Object(map) = &mut schema {
            map.insert("description".into(), description.into());
        }
        for name in names {
            self.properties.insert((*name).to_owned(), schema.clone());
        }
        // A required key with an alias would need an `anyOf`; there is none.
        if !may_be_absent && names.len() == 1 {
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
        let mut schema = or_null(T::schema(definitions));
        if let Value::Object(map) = &mut schema {
            map.insert("description".into(), description.into());
        }
        self.patterns.insert(prefix_pattern(prefix, vocabulary), schema);
        self.prefixes.push(prefix.to_owned());
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
/// `or "alias"` adds a second name. After the struct, `ignored [...]` lists keys that load without effect, `missed
/// ["key" = "what is missed"]` those whose effect may be missed, and `refused ["key" = "advice"]` those that are an error.
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
        $(missed [$($missed:literal = $loss:literal),* $(,)?])?
        $(refused [$($refused:literal = $advice:literal),* $(,)?])?
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
                missed: &[$($(($missed, $loss)),*)?],
                refused: &[$($(($refused, $advice)),*)?],
            };

            impl d::Record for $name {
                fn is_without_effect(key: &str) -> bool {
                    VOCABULARY.is_without_effect(key)
                }

                const KEYS: &'static [&'static str] =
                    &[$($crate::base::decode::record!(@key $field $(as $key)? $(prefix $prefix)?), $($alias,)*)*];

                fn decode_beside(
                    tag: Option<&d::Tag>,
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
                    d::object_schema(&d::description(&[$($doc),*]), schema, &VOCABULARY)
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

/// Declares an enum of words. After it, `refused ["word" = "advice"]` lists words of the predecessor that are an error.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident = $word:literal),* $(,)?
        }
        $(refused [$($refused:literal = $advice:literal),* $(,)?])?
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
                        let refused = &[$($(($refused, $advice)),*)?];
                        if !$crate::base::decode::is_refused(other, refused, path, out) {
                            $crate::base::decode::unknown_word(other, Self::WORDS, path, out);
                        }
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
/// asked for. After it, `refused ["word" ["key"] = "advice"]` lists words of the predecessor that are an error, with
/// keys of theirs.
macro_rules! tagged {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis enum $name:ident: $trait:ident {
            $($(#[doc = $variant_doc:literal])* $variant:ident($record:ty) = $word:literal),* $(,)?
        }
        $(refused [$($refused:literal [$($refused_key:literal),*] = $advice:literal),* $(,)?])?
    ) => {
        $crate::base::decode::tagged! {
            $(#[doc = $doc])*
            $visibility enum $name {
                $($(#[doc = $variant_doc])* $variant($record) = $word),*
            }
            $(refused [$($refused [$($refused_key),*] = $advice),*])?
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
        $(refused [$($refused:literal [$($refused_key:literal),*] = $advice:literal),* $(,)?])?
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility enum $name {
            $($(#[doc = $variant_doc])* $variant($record),)*
        }

        impl $name {
            /// Every type, in the order of the reference.
            $visibility const NAMES: &'static [&'static str] = &[$($word),*];

            /// The keys of each.
            const RECORDS: &'static [(&'static str, &'static [&'static str])] = &[
                $(($word, <$record as $crate::base::decode::Record>::KEYS),)*
                $($(($refused, &[$($refused_key),*])),*)?
            ];

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
                use $crate::base::decode::{Record, Tag, tag};
                let refused = &[$($(($refused, $advice)),*)?];
                let word = Self::NAMES[tag(node, Self::NAMES, refused, path, out)?];
                let tag = Tag { key: "type", word, records: Self::RECORDS };
                match word {
                    $($word => <$record>::decode_beside(Some(&tag), node, path, out).map(Self::$variant),)*
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
                    let schema = tagged_schema(&description(&[$($doc),*]), Self::NAMES, variants, Self::RECORDS);
                    definitions.insert(name.to_owned(), schema);
                }
                serde_json::json!({"$ref": format!("#/$defs/{name}")})
            }
        }
    };
}

/// Declares a number that has to lie in a range.
macro_rules! ranged {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis struct $name:ident($inner:vis $number:ty) in $bounds:expr
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        $visibility struct $name($inner $number);

        impl $name {
            /// Returns the number.
            $visibility const fn get(self) -> $number {
                self.0
            }
        }

        impl $crate::base::decode::Ranged for $name {
            const BOUNDS: $crate::base::decode::Bounds = $bounds;

            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::unnecessary_cast,
                reason = "it lies in the range"
            )]
            fn of_number(number: f64) -> Self {
                Self(number as $number)
            }
        }
    };
}

pub(crate) use choice;
pub(crate) use ranged;
pub(crate) use record;
pub(crate) use tagged;

/// Returns the schema of records told apart by `type`: the word decides which one has to fit.
pub fn tagged_schema(
    description: &str,
    names: &[&str],
    variants: Vec<(&str, String, Value)>,
    records: &[(&str, &[&str])],
) -> Value {
    let keys: BTreeSet<&str> = records.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
    let branches = variants.into_iter().map(|(name, description, mut schema)| {
        schema["description"] = description.into();
        // The loader only warns about a key of another type, so the schema must not refuse it.
        for key in &keys {
            if schema["properties"].get(*key).is_none() {
                schema["properties"][*key] =
                    json!({"description": format!("Has no effect with `{name}`."), "deprecated": true});
            }
        }
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
            parts as prefix "on_": IndexMap<String, Size>,
            /// One part that is known.
            on_top: Option<bool>,
            /// Words on it.
            labels: Vec<String> = Vec::new(),
        }
        ignored ["old", "*_ok", "rate_*", "on_rate"]
        missed ["lock" = "it can be opened"]
        refused ["battery" = "wind it up"]
    }

    ranged! {
        /// A size.
        struct Size(i32) in Bounds::whole(1.0, 100.0, "a whole number from 1 to 100")
    }

    choice! {
        /// What toys are made of.
        enum Material { Wood = "wood", Tin = "tin" }
    }

    record! {
        /// A ball.
        struct Ball {
            /// Its size.
            size: Size,
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
            self.size.get() * 2
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
        refused ["brick" ["weight"] = "throw a `ball`"]
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
                let help = finding.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
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
            parts: IndexMap::from([("yes".to_owned(), Size(3))]),
            on_top: Some(true),
            labels: vec!["x".to_owned(), "5".to_owned()],
        };
        assert_eq!(toy, Some(expected));
        assert_eq!(Material::Wood.word(), "wood");
    }

    #[test]
    fn every_problem_is_told_at_once() {
        check::<Toy>(
            &json!({"nmae": "x", "mass": "two", "weight": 3, "material": "woood", "on_yes": "x", "labels": 4}),
            &[
                "duplicate-key: `mass` and `weight` mean the same (keep one)",
                "wrong-type: `mass` must be a number, not the text `two`",
                "unknown-word: `material` cannot be `woood` (did you mean `wood`?)",
                "wrong-type: `on_yes` must be a whole number from 1 to 100, not the text `x`",
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
    fn what_is_missed_is_a_warning_and_what_is_refused_an_error() {
        check::<Toy>(
            &json!({"name": "x", "lock": true, "battery": 1}),
            &[
                "no-effect: `lock` has no effect here: it can be opened",
                "unsupported: `battery` is not supported (wind it up)",
            ],
        );
        let (_, out) = read::<Toy>(&json!({"name": "x", "lock": true}));
        assert_eq!(out.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Warning]);
    }

    #[test]
    fn null_is_not_given() {
        let all = json!({
            "name": "x", "mass": null, "weight": 3, "material": null, "on_top": null, "labels": null,
            "on_yes": null
        });
        let (_, out) = read::<Toy>(&json!({"name": "x", "on_yes": null}));
        assert!(out.has_errors(), "a type says whether it may be absent under a name: {out:?}");
        let mut without = all;
        without.as_object_mut().unwrap().remove("on_yes");
        let (toy, out) = read::<Toy>(&without);
        let codes: Vec<_> = out.iter().map(|finding| finding.code).collect();
        assert!(codes.is_empty(), "{out:?}");
        assert_eq!(toy.map(|toy| (toy.weight, toy.kind, toy.labels)), Some((3.0, None, Vec::new())));
        check::<Toy>(&json!({"name": null}), &["missing-key: the key `name` has no value"]);
        check::<Flying>(
            &json!({"type": null}),
            &["missing-key: the key `type` is missing in the file (the types are `ball`, `kite`)"],
        );
    }

    #[test]
    fn null_is_a_value_where_the_names_are_the_authors() {
        let env = read::<IndexMap<String, Template>>(&json!({"A": null})).0.unwrap();
        assert_eq!(env["A"].source(), "");
        assert_eq!(read::<IndexMap<String, Value>>(&json!({"a": null})).0.unwrap()["a"], Value::Null);
    }

    #[test]
    fn a_number_in_quotes_is_a_number() {
        assert_eq!(read::<f64>(&json!(" 1.5 ")).0, Some(1.5));
        assert_eq!(read::<Size>(&json!("7")).0, Some(Size(7)));
        assert_eq!(read::<Duration>(&json!("60")).0, Some(Duration::from_mins(1)));
        let help = "write the number itself: it is needed before a template has a value";
        for text in ["three", "", "7 apples", "1_000", "1.5"] {
            check::<Size>(
                &json!(text),
                &[&format!(
                    "wrong-type: the file must be a whole number from 1 to 100, not the text `{text}`"
                )],
            );
        }
        check::<Size>(
            &json!("${context.n}"),
            &[&format!(
                "wrong-type: the file must be a whole number from 1 to 100, not the text `${{context.n}}` ({help})"
            )],
        );
        let expected = "a number of seconds or a duration such as `5m`";
        check::<Duration>(
            &json!("${context.n}"),
            &[&format!("duration: the file must be {expected}, not the text `${{context.n}}` ({help})")],
        );
    }

    #[test]
    fn a_number_out_of_its_range_is_an_error_that_names_the_range() {
        for number in [json!(0), json!(101), json!("-3"), json!(u64::MAX)] {
            let shown = number.as_str().map_or_else(|| number.to_string(), str::to_owned);
            check::<Size>(
                &number,
                &[&format!("range: the file must be a whole number from 1 to 100, not {shown}")],
            );
        }
        assert_eq!(
            Size::schema(&mut Definitions::new())["anyOf"][0],
            json!({"type": "integer", "minimum": 1, "maximum": 100})
        );
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
        assert_eq!(ball, Some(Flying::Ball(Ball { size: Size(3) })));
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
            &[
                "no-effect: `size` has no effect with `type: kite` (it is a key of `ball`; remove it, or change the `type`)",
            ],
        );
        check::<Flying>(
            &json!({"type": "kite", "siz": 3}),
            &["unknown-key: unknown key `siz` (the keys here are `string`)"],
        );
        check::<Flying>(
            &json!({"type": "brick", "size": 3}),
            &["unsupported: `brick` is not supported (throw a `ball`)"],
        );
        check::<Flying>(
            &json!({"type": "ball", "size": 3, "weight": 3}),
            &[
                "no-effect: `weight` has no effect with `type: ball` (it is a key of `brick`; remove it, or change the `type`)",
            ],
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
        check::<Size>(&json!(1.5), &["wrong-type: the file must be a whole number from 1 to 100, not `1.5`"]);
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
            [("on_yes", true), ("on_top", false), ("on_topper", true), ("on_x_ok", true), ("on_", false)]
        {
            assert_eq!(regex.is_match(key).unwrap(), expected, "{key} {pattern}");
        }
    }

    #[test]
    fn a_number_in_quotes_is_one_for_the_schema_and_for_the_decoder() {
        let pattern = |is_whole: bool| {
            let schema = quoted_number_schema(is_whole);
            fancy_regex::Regex::new(schema["pattern"].as_str().unwrap()).unwrap()
        };
        let (whole, any) = (pattern(true), pattern(false));
        for text in [
            "0", "7", "-7", "+7", "007", "-007", "00", "0x10", "-0xfF", "0o17", "0o18", "0b11", "0x", "0X10",
            "1.5", "007.5", "0.5", ".5", "5.", ".", "-.5", "1e3", "1E+3", "1.e3", ".5e-3", "007e1", "0e1",
            "1e", "1_000", "--1", "+-1", "0x+1", "0x-1", "1e3.5", " 7 ", "\t1.5\n", ".inf", "-.inf", ".nan",
            "inf", "nan", "infinity", "", "-", "a", "1a", "1 2",
        ] {
            let read = number(&tree(&json!(text)));
            assert_eq!(
                whole.is_match(text).unwrap(),
                matches!(read, Some(ScalarValue::Int(_))),
                "{text:?} {read:?}"
            );
            let finite = read.as_ref().and_then(as_float).is_some();
            assert_eq!(any.is_match(text).unwrap(), finite, "{text:?} {read:?}");
        }
    }

    static VOCABULARY_FOR_TEST: Vocabulary =
        Vocabulary { known: &["on_top", "on_"], ignored: &["*_ok"], missed: &[], refused: &[] };

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
