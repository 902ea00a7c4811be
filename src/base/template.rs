//! `${namespace.path}` in texts: parsed once at load, rendered just before use.
//!
//! Only braces that begin with a known namespace are ours. Everything else (`$HOME`, `${x%%.*}`, `${arr[@]}`)
//! belongs to the shell and passes untouched. Inserted text is never scanned again.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::composed::Composed;
use super::diagnostic::nearest;
use super::path::Segment;

/// The longest rendered template, in bytes: as much as is kept of an output.
pub const LONGEST: usize = 8 * MIB;

const MIB: usize = 1024 * 1024;

/// How much texts that are needed together may still become.
#[derive(Debug)]
pub struct Room(usize);

impl Room {
    /// Makes room for texts of [`LONGEST`] bytes in all.
    pub fn new() -> Self {
        Self(LONGEST)
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Namespace {
    /// The loop's own variables.
    Context,
    /// Results stored by earlier states.
    Captured,
    /// The result of the last executed state.
    Prev,
    /// The last evaluation.
    Result,
    /// The state that is being executed.
    State,
    /// The run.
    Loop,
    /// The environment.
    Env,
    /// Parameters of a fragment.
    Param,
    /// The message log.
    Messages,
    /// The criteria of the work.
    Criteria,
    /// The task board.
    Board,
}

/// What is known of the result of a state: below `prev` and below each name of `captured`.
pub const RESULT_FIELDS: [&str; 9] = [
    "output",
    "json",
    "stderr",
    "exit_code",
    "duration_ms",
    "verdict",
    "state",
    "failure_type",
    "timeout_kind",
];

/// Reads `last(3)`, the one thing that can be asked of `messages`.
pub fn last_messages(call: &str) -> Option<usize> {
    call.strip_prefix("last(")?.strip_suffix(')')?.parse().ok()
}

impl Namespace {
    /// Every namespace, in the order of the reference.
    pub const ALL: [Self; 11] = [
        Self::Context,
        Self::Captured,
        Self::Prev,
        Self::Result,
        Self::State,
        Self::Loop,
        Self::Env,
        Self::Param,
        Self::Messages,
        Self::Criteria,
        Self::Board,
    ];

    /// Returns the word that stands before the first dot.
    pub fn word(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Captured => "captured",
            Self::Prev => "prev",
            Self::Result => "result",
            Self::State => "state",
            Self::Loop => "loop",
            Self::Env => "env",
            Self::Param => "param",
            Self::Messages => "messages",
            Self::Criteria => "criteria",
            Self::Board => "board",
        }
    }

    /// Returns the names below the namespace, where they are the same in every run.
    pub fn fields(self) -> Option<&'static [&'static str]> {
        Some(match self {
            Self::Prev => &RESULT_FIELDS,
            Self::Result => &["verdict", "details"],
            Self::State => &["name", "iteration", "step", "attempt"],
            Self::Loop => {
                &["name", "run_id", "started_at", "elapsed_ms", "elapsed", "run_dir", "continuation"]
            }
            Self::Criteria => &["unmet", "next_step"],
            Self::Context | Self::Captured | Self::Env | Self::Param | Self::Messages | Self::Board => {
                return None;
            }
        })
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|namespace| namespace.word() == word)
    }

    /// Tells whether the namespace alone, without a path, has a value.
    fn stands_alone(self) -> bool {
        matches!(self, Self::Context | Self::Messages)
    }
}

/// What is inserted when a value is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateFallback {
    /// Nothing: the run ends with an error.
    Required,
    /// `${x?}`: an empty text.
    Empty,
    /// `${x:default=text}`: this text.
    WhenMissing(String),
    /// `${x:-text}`: this text, also for an empty value.
    WhenMissingOrEmpty(String),
}

/// One `${…}` of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// Where it stands in the text of the template, in bytes, with its braces.
    pub span: Range<usize>,
    /// Where its value comes from.
    pub namespace: Namespace,
    /// The path below the namespace.
    pub path: Vec<Segment>,
    /// What to do without a value.
    pub fallback: TemplateFallback,
    /// Whether the value is quoted for the shell.
    pub shell_quoted: bool,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.namespace.word())?;
        for segment in &self.path {
            match segment {
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, ".{index}")?,
            }
        }
        Ok(())
    }
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Where, as a byte range of the text.
    pub span: Range<usize>,
    /// What is wrong.
    pub kind: TemplateErrorKind,
}

/// The ways in which a template can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateErrorKind {
    /// A template inside a template.
    #[error("templates cannot be nested")]
    Nested,
    /// No closing brace.
    #[error("`${{` is not closed")]
    Unclosed,
    /// A word before a dot that is not a namespace.
    #[error("unknown namespace `{word}`")]
    UnknownNamespace {
        /// The word.
        word: String,
        /// The namespace that is probably meant.
        nearest: Option<&'static str>,
    },
    /// A namespace without a path, or with a broken one.
    #[error("`{0}` has no readable path")]
    Path(String),
    /// A suffix after `:` that does not exist.
    #[error("unknown suffix `{0}`")]
    Suffix(String),
}

impl TemplateErrorKind {
    /// Returns what to write instead.
    pub fn help(&self) -> String {
        match self {
            Self::Nested => {
                "resolve the inner value in an earlier state or in `context`, and name it here".into()
            }
            Self::Unclosed => "add `}`, or write `$${` for a literal `${`".into(),
            Self::UnknownNamespace { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::UnknownNamespace { nearest: None, .. } => {
                let words: Vec<_> = Namespace::ALL.iter().map(|n| format!("`{}`", n.word())).collect();
                format!("the namespaces are {}; write `$${{` for a literal `${{`", words.join(", "))
            }
            Self::Path(word) => {
                format!("write `${{{word}.NAME}}`, or `$${{{word}}}` for a shell variable of that name")
            }
            Self::Suffix(_) => "the suffixes are `:-TEXT`, `:default=TEXT`, `?` and `:shell`".into(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Expression(Expression),
}

/// A parsed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<TemplatePart>,
}

impl Template {
    /// Parses a text, collecting every error in it.
    pub fn parse(source: &str) -> Result<Self, Vec<TemplateError>> {
        let mut errors = Vec::new();
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        while let Some(found) = source[at..].find('$') {
            text.push_str(&source[at..at + found]);
            at += found;
            if source[at..].starts_with("$${") {
                text.push_str("${");
                at += 3;
                continue;
            }
            // `$HOME`, `$(...)` and the like belong to the shell.
            let scanned = if source[at..].starts_with("${") { scan(source, at) } else { Scanned::Foreign };
            match scanned {
                Scanned::Foreign => {
                    text.push('$');
                    at += 1;
                }
                Scanned::Ours(expression) => {
                    if !text.is_empty() {
                        parts.push(TemplatePart::Text(std::mem::take(&mut text)));
                    }
                    at = expression.span.end;
                    parts.push(TemplatePart::Expression(expression));
                }
                Scanned::Wrong(error) => {
                    // Past its `${` at least, so that whatever is broken the scan goes on.
                    at = error.span.end.max(at + 2);
                    errors.push(error);
                }
            }
        }
        text.push_str(&source[at..]);
        if !text.is_empty() {
            parts.push(TemplatePart::Text(text));
        }
        if errors.is_empty() { Ok(Self { source: source.to_owned(), parts }) } else { Err(errors) }
    }

    /// Makes a template that is exactly this text.
    pub fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        // The source is as a file would have it: read once more, it gives the same text.
        Self { source: text.replace("${", "$${"), parts: vec![TemplatePart::Text(text)] }
    }

    /// Returns the text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the text if it needs no value at all.
    pub fn as_literal(&self) -> Option<Cow<'_, str>> {
        match self.parts.as_slice() {
            [] => Some(Cow::Borrowed("")),
            [TemplatePart::Text(text)] => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    /// Returns every expression of ours, in order.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Expression(expression) => Some(expression),
            TemplatePart::Text(_) => None,
        })
    }

    /// Inserts values from `scope`. A text that would become longer than [`LONGEST`] is an error.
    pub fn render(&self, scope: &dyn Scope) -> Result<String, RenderError> {
        self.render_within(&mut Room::new(), scope)
    }

    /// Inserts values from `scope` into one of several texts that have their room together. It ends where a value
    /// does not fit any more, before it is inserted.
    pub fn render_within(&self, room: &mut Room, scope: &dyn Scope) -> Result<String, RenderError> {
        let mut out = String::with_capacity(self.source.len());
        // What is written out takes its room first, so that what does not fit is always a value.
        room.0 = room.0.saturating_sub(self.written());
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Expression(expression) => {
                    let value = expression.render(scope, room.0)?;
                    room.0 -= value.len();
                    out.push_str(&value);
                }
            }
        }
        Ok(out)
    }

    /// Inserts values from `scope`, and keeps what others printed apart from the words of the author: it takes no room,
    /// as it is bounded afterwards.
    pub fn compose_within(&self, room: &mut Room, scope: &dyn Scope) -> Result<Composed, RenderError> {
        let mut out = Composed::default();
        room.0 = room.0.saturating_sub(self.written());
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_own(text),
                TemplatePart::Expression(expression)
                    if scope.is_printed(expression.namespace, &expression.path) =>
                {
                    out.push_printed(&expression.render(scope, usize::MAX)?);
                }
                TemplatePart::Expression(expression) => {
                    let value = expression.render(scope, room.0)?;
                    room.0 -= value.len();
                    out.push_own(&value);
                }
            }
        }
        Ok(out)
    }

    /// Returns the length of what is not inserted.
    fn written(&self) -> usize {
        let texts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text.len(),
            TemplatePart::Expression(_) => 0,
        });
        texts.sum()
    }
}

impl Expression {
    fn render<'s>(&self, scope: &'s dyn Scope, room: usize) -> Result<Cow<'s, str>, RenderError> {
        let too_long = || RenderError::TooLong { expression: self.to_string() };
        let text = match (scope.get(self.namespace, &self.path), &self.fallback) {
            (Ok(found), TemplateFallback::WhenMissingOrEmpty(default)) => match found.into_text() {
                text if text.is_empty() => Cow::Owned(default.clone()),
                text => text,
            },
            (Ok(found), _) => found.into_text(),
            (Err(_), TemplateFallback::Empty) => Cow::Borrowed(""),
            (
                Err(_),
                TemplateFallback::WhenMissing(default) | TemplateFallback::WhenMissingOrEmpty(default),
            ) => Cow::Owned(default.clone()),
            (Err(missing), TemplateFallback::Required) => {
                return Err(RenderError::Missing { expression: self.to_string(), missing });
            }
        };
        // Asked before the quoting, which copies the text, and once more behind it, since quotes make it longer.
        if text.len() > room {
            return Err(too_long());
        }
        let text = if self.shell_quoted { Cow::Owned(shell_quote(&text)) } else { text };
        if text.len() > room { Err(too_long()) } else { Ok(text) }
    }
}

/// Quotes a text so that a shell reads it as one word.
pub fn shell_quote(text: &str) -> String {
    // No argument of a program can hold a NUL, and `shlex` refuses to quote it.
    let text = text.replace('\0', "");
    shlex::try_quote(&text).map_or_else(|_| String::from("''"), Cow::into_owned)
}

/// A value found in a scope.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// A text, inserted as it is.
    Text(Cow<'a, str>),
    /// Data: scalars as their text, null as nothing, maps and lists as JSON.
    Json(Cow<'a, Value>),
}

impl<'a> Found<'a> {
    /// Returns the value as it is inserted into a text.
    pub fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            Self::Json(Cow::Borrowed(Value::String(text))) => Cow::Borrowed(text),
            Self::Json(Cow::Owned(Value::String(text))) => Cow::Owned(text),
            Self::Json(value) => Cow::Owned(match value.as_ref() {
                Value::Null => String::new(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                    value.to_string()
                }
            }),
        }
    }
}

/// There is nothing at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// The nearest path that does exist.
    pub nearest: Option<String>,
    /// Why, when there is more to say than that it is missing.
    pub why: Option<String>,
}

/// Why a template cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It needs a value that is not there.
    #[error("`${{{expression}}}` has no value{}", explanation(missing))]
    Missing {
        /// The expression without braces.
        expression: String,
        /// What is known about the absence.
        missing: Missing,
    },
    /// A value does not fit into it any more.
    #[error("`${{{expression}}}` does not fit: the text would be longer than {} MiB", LONGEST / MIB)]
    TooLong {
        /// The expression without braces.
        expression: String,
    },
}

#[cfg(test)]
impl RenderError {
    /// Returns the expression that has no value, or whose value does not fit, without braces.
    pub fn expression(&self) -> &str {
        match self {
            Self::Missing { expression, .. } | Self::TooLong { expression } => expression,
        }
    }
}

fn explanation(missing: &Missing) -> String {
    let why = missing.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let nearest =
        missing.nearest.as_ref().map_or_else(String::new, |near| format!(" (the nearest is `${{{near}}}`)"));
    format!("{why}{nearest}")
}

/// What a template can see while it is rendered.
pub trait Scope {
    /// Looks a value up.
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing>;

    /// Tells whether a value is only the end of what it was.
    fn is_cut(&self, _namespace: Namespace, _path: &[Segment]) -> bool {
        false
    }

    /// Tells whether a value was printed by an agent, a command or the run itself, and not written by the author.
    fn is_printed(&self, _namespace: Namespace, _path: &[Segment]) -> bool {
        false
    }
}

/// Finds a value below `root`, or says which neighbour of the missing key exists.
pub fn walk<'v>(prefix: &str, root: &'v Value, path: &[Segment]) -> Result<&'v Value, Missing> {
    let mut value = root;
    let mut at = prefix.to_owned();
    for segment in path {
        let next = match (value, segment) {
            (Value::Object(map), Segment::Key(key)) => map.get(key),
            // In a path every number is read as an index, and it may be a key all the same.
            (Value::Object(map), Segment::Index(index)) => map.get(&index.to_string()),
            (Value::Array(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        };
        value = match (next, segment) {
            (Some(next), _) => next,
            (None, Segment::Key(key)) => {
                return Err(Missing { nearest: neighbour(&at, value, key), why: None });
            }
            (None, Segment::Index(_)) => return Err(Missing { nearest: Some(at), why: None }),
        };
        at = match segment {
            Segment::Key(key) => format!("{at}.{key}"),
            Segment::Index(index) => format!("{at}.{index}"),
        };
    }
    Ok(value)
}

fn neighbour(at: &str, value: &Value, wanted: &str) -> Option<String> {
    match value {
        Value::Object(map) => {
            let near = nearest(wanted, map.keys().map(String::as_str))
                .or_else(|| map.keys().next().map(String::as_str));
            near.map(|key| format!("{at}.{key}"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Some(at.to_owned())
        }
    }
}

enum Scanned {
    Foreign,
    Ours(Expression),
    Wrong(TemplateError),
}

/// Reads what begins with `${` at `start`.
fn scan(source: &str, start: usize) -> Scanned {
    let body = &source[start + 2..];
    let lead = body.len() - body.trim_start_matches(' ').len();
    let word: &str = {
        let rest = &body[lead..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    };
    let namespace = Namespace::parse(word);
    let after = &body[lead + word.len()..];
    let looks_ours = match after.chars().next() {
        // In bash no dot can follow a name, so this is ours even where the word before it is misspelt.
        Some('.') => !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit()),
        // These are expansions of a shell as well, so only a word that we know makes them ours.
        Some('[' | ':' | '?' | '}' | ' ') | None => namespace.is_some(),
        Some(_) => false,
    };
    if !looks_ours {
        return Scanned::Foreign;
    }
    let wrong = |length: usize, kind| Scanned::Wrong(TemplateError { span: start..start + 2 + length, kind });
    let close = after.find('}');
    // Only before the first closing brace: what comes behind it is an expression of its own.
    if let Some(inner) = after.find("${").filter(|inner| close.is_none_or(|close| *inner < close)) {
        let length = close.map_or(inner, |close| close + 1) + lead + word.len();
        return wrong(length, TemplateErrorKind::Nested);
    }
    let Some(close) = close else {
        return wrong(lead + word.len(), TemplateErrorKind::Unclosed);
    };
    let length = lead + word.len() + close + 1;
    let Some(namespace) = namespace else {
        let nearest = nearest(word, Namespace::ALL.map(Namespace::word));
        return wrong(length, TemplateErrorKind::UnknownNamespace { word: word.to_owned(), nearest });
    };
    match expression(namespace, after[..close].trim_end(), start..start + 2 + length) {
        Ok(expression) => Scanned::Ours(expression),
        Err(kind) => wrong(length, kind),
    }
}

fn expression(namespace: Namespace, text: &str, span: Range<usize>) -> Result<Expression, TemplateErrorKind> {
    let broken = || TemplateErrorKind::Path(namespace.word().to_owned());
    let mut path = Vec::new();
    let mut rest = text;
    loop {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[', ':', '?']).unwrap_or(after.len());
            let key = &after[..end];
            if key.is_empty() || key.contains(char::is_whitespace) {
                return Err(broken());
            }
            path.push(key.parse().map_or_else(|_| Segment::Key(key.to_owned()), Segment::Index));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix('[') {
            let (inside, behind) = after.split_once(']').ok_or_else(broken)?;
            let quoted = inside.strip_prefix(['"', '\'']).and_then(|text| text.strip_suffix(['"', '\'']));
            path.push(match (quoted, inside.parse()) {
                (Some(key), _) => Segment::Key(key.to_owned()),
                (None, Ok(index)) => Segment::Index(index),
                (None, Err(_)) => return Err(broken()),
            });
            rest = behind;
        } else {
            break;
        }
    }
    if path.is_empty() && !namespace.stands_alone() {
        return Err(broken());
    }
    let (fallback, shell_quoted) = suffixes(rest)?;
    Ok(Expression { span, namespace, path, fallback, shell_quoted })
}

/// Reads `?`, `:shell`, `:-text` and `:default=text`; a default takes the rest, but for a closing `:shell`.
fn suffixes(text: &str) -> Result<(TemplateFallback, bool), TemplateErrorKind> {
    let mut fallback = TemplateFallback::Required;
    let mut shell_quoted = false;
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('?') {
            fallback = TemplateFallback::Empty;
            rest = after;
        } else if let Some(default) = rest.strip_prefix(":-").or_else(|| rest.strip_prefix(":default=")) {
            let (default, quoted) = match default.strip_suffix(":shell") {
                Some(default) => (default, true),
                None => (default, shell_quoted),
            };
            let or_empty = rest.starts_with(":-");
            let make =
                if or_empty { TemplateFallback::WhenMissingOrEmpty } else { TemplateFallback::WhenMissing };
            return Ok((make(default.to_owned()), quoted));
        } else if let Some(after) = rest.strip_prefix(":shell") {
            shell_quoted = true;
            rest = after;
        } else {
            return Err(TemplateErrorKind::Suffix(rest.to_owned()));
        }
    }
    Ok((fallback, shell_quoted))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    struct Example(Value);

    impl Scope for Example {
        fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
            let root = self.0.get(namespace.word()).ok_or_else(Missing::default)?;
            walk(namespace.word(), root, path).map(|value| Found::Json(Cow::Borrowed(value)))
        }
    }

    fn check(template: &str, expected: &str) {
        let scope = Example(json!({
            "context": {"a": 1, "t": "5", "b": true, "n": null, "d": {"x": [1, 2]}, "sp": "a b'c", "e": "", "odd key": "o"},
            "messages": "m1\nm2",
        }));
        let shown = match Template::parse(template) {
            Ok(parsed) => parsed.render(&scope).unwrap_or_else(|e| format!("render: {e}")),
            Err(errors) => format!("parse: {}", errors[0].kind),
        };
        assert_eq!(shown, expected, "{template}");
    }

    #[test]
    fn values_are_inserted() {
        check("${context.a}", "1");
        check("x${context.t}y${context.b}", "x5ytrue");
        check("[${context.n}]", "[]");
        check("${context.d}", r#"{"x":[1,2]}"#);
        check("${context.d.x}", "[1,2]");
        check("${context.d.x.1} ${context.d.x[0]}", "2 1");
        check("${context[\"odd key\"]}", "o");
        check("${ context.a }", "1");
        check("${messages}", "m1\nm2");
    }

    #[test]
    fn suffixes_decide_about_missing_values() {
        check("[${context.zz?}]", "[]");
        check("${context.zz:-dflt}", "dflt");
        check("${context.e:-dflt}", "dflt");
        check("[${context.e:default=dflt}]", "[]");
        check("[${context.zz:default=}]", "[]");
        check("${context.zz:default=a:b?}", "a:b?");
        check("${context.u:-http://h:80/a?b=c}", "http://h:80/a?b=c");
        check("${context.zz?:shell}", "''");
        check("${context.zz:-a b:shell}", "'a b'");
        check("${context.sp:shell}", "\"a b'c\"");
    }

    #[test]
    fn the_shells_own_syntax_passes() {
        for text in [
            "$HOME $1 $(date) $$ $ {x} ${x}",
            "${x:-y} ${#x} ${!x} ${arr[@]} ${x%%.*} ${} ${x/a/b}",
            "${state%x}",
            "$",
            "a$",
        ] {
            check(text, text);
        }
        check("${V:-${context.a}}", "${V:-1}");
    }

    #[test]
    fn a_doubled_dollar_is_literal() {
        check("$${context.x} ${context.a}", "${context.x} 1");
        check("$${X:-y}", "${X:-y}");
        check("$$${context.a}", "$${context.a}");
    }

    #[test]
    fn mistakes_are_found_at_load() {
        check("${context.${context.a}}", "parse: templates cannot be nested");
        check("${context.a:default=${context.t}}", "parse: templates cannot be nested");
        check("${contxt.a}", "parse: unknown namespace `contxt`");
        check("${context.a", "parse: `${` is not closed");
        check("${state}", "parse: `state` has no readable path");
        check("${context.a:upper}", "parse: unknown suffix `:upper`");
    }

    #[test]
    fn a_missing_value_names_its_neighbour() {
        check("${context.tt}", "render: `${context.tt}` has no value (the nearest is `${context.t}`)");
        check("${context.d.y}", "render: `${context.d.y}` has no value (the nearest is `${context.d.x}`)");
        check(
            "${context.d.x.7}",
            "render: `${context.d.x.7}` has no value (the nearest is `${context.d.x}`)",
        );
    }

    #[test]
    fn inserted_text_is_not_scanned_again() {
        let scope = Example(json!({"context": {"evil": "${context.a}", "a": "x"}}));
        let template = Template::parse("${context.evil}").unwrap();
        assert_eq!(template.render(&scope).unwrap(), "${context.a}");
    }

    #[test]
    fn a_text_grows_to_a_limit_and_no_further() {
        let scope =
            Example(json!({"context": {"mib": "x".repeat(1 << 20), "quotes": "'$".repeat(3 << 19), "a": 1}}));
        let render = |source: &str| Template::parse(source).unwrap().render(&scope);
        assert_eq!(render(&"${context.mib}".repeat(8)).unwrap().len(), LONGEST);
        let error = render(&format!("{}${{context.a}}", "${context.mib}".repeat(8))).unwrap_err();
        assert_eq!(error.to_string(), "`${context.a}` does not fit: the text would be longer than 8 MiB");
        assert_eq!(render(&"${context.mib}".repeat(100_000)).unwrap_err().expression(), "context.mib");
        assert!(render("${context.quotes:shell}").is_err(), "quotes count as well");
        assert!(render(&"x".repeat(LONGEST)).is_ok());
    }

    #[test]
    fn texts_that_are_needed_together_share_their_room() {
        let scope = Example(json!({"context": {"half": "x".repeat(LONGEST / 2)}}));
        let (mut room, template) = (Room::new(), Template::parse("${context.half}").unwrap());
        let fits = [(); 3].map(|()| template.render_within(&mut room, &scope).is_ok());
        assert_eq!(fits, [true, true, false]);
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_literals_survive(text in "[${}a-c.:?\\[\\]é ]{0,40}") {
            drop(Template::parse(&text));
            let literal = Template::literal(text.clone());
            let again = Template::parse(literal.source()).unwrap();
            prop_assert_eq!(again.render(&Example(json!({}))).unwrap(), literal.render(&Example(json!({}))).unwrap());
        }
    }
}
