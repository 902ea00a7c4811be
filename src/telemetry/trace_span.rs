//! What a span is, whatever format it is written in.

use crate::base::time::{Timestamp, millis};
use crate::base::trace_id::{SpanId, TraceId};

/// The version of the conventions that names of attributes follow.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.37.0";

/// Who made the spans, and who writes the metrics.
pub const SCOPE: &str = "ll-loop";

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A whole number.
    Whole(i64),
    /// Any number.
    Real(f64),
    /// Yes or no.
    Flag(bool),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        // OTLP has no larger whole number.
        Self::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for AttributeValue {
    fn from(number: u32) -> Self {
        Self::Whole(i64::from(number))
    }
}

impl From<i32> for AttributeValue {
    fn from(number: i32) -> Self {
        Self::Whole(i64::from(number))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for AttributeValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// An attribute of a span, a resource or a value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: AttributeValue,
}

impl Attribute {
    /// Makes one.
    pub fn new(name: &str, value: impl Into<AttributeValue>) -> Self {
        Self { name: name.to_owned(), value: value.into() }
    }
}

/// What a span is to those around it, with its number in OTLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of something.
    Internal,
    /// The answer to somebody.
    Server,
    /// A question to somebody.
    Client,
}

impl SpanKind {
    /// Returns its number in OTLP.
    pub fn number(self) -> u64 {
        match self {
            Self::Internal => 1,
            Self::Server => 2,
            Self::Client => 3,
        }
    }
}

/// Whether what a span stands for went well, as OpenTelemetry asks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SpanStatus {
    /// Nothing is said.
    #[default]
    Unset,
    /// It failed, and why in a word.
    Failed(String),
}

/// Another span that has to do with one, and is not around it.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanLink {
    /// The trace of the other one.
    pub trace: TraceId,
    /// The other one.
    pub span: SpanId,
    /// What the two have to do with each other.
    pub attributes: Vec<Attribute>,
}

/// A span.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The trace.
    pub trace: TraceId,
    /// Its id.
    pub id: SpanId,
    /// The span around it.
    pub parent: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// What it is to the span around it.
    pub kind: SpanKind,
    /// When it began.
    pub start: Timestamp,
    /// When it ended; never before it began.
    pub end: Timestamp,
    /// What is known about it.
    pub attributes: Vec<Attribute>,
    /// Spans that it goes on with.
    pub links: Vec<SpanLink>,
    /// Whether it went well.
    pub status: SpanStatus,
    /// The part of the run that it is of, from 1.
    pub part: u32,
}

impl TraceSpan {
    /// Says something about it.
    pub fn say(&mut self, name: &str, value: impl Into<AttributeValue>) {
        self.attributes.push(Attribute::new(name, value));
    }

    /// Tells whether it stands for a part of the run itself.
    pub fn part_begins(&self) -> bool {
        self.kind == SpanKind::Server
    }

    /// Returns what is known about it under a name.
    pub fn said(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| &attribute.value)
    }
}

/// Returns a time as OTLP counts it: nanoseconds since 1970.
pub fn nanoseconds(at: Timestamp) -> u64 {
    millis(at.since_epoch()).saturating_mul(1_000_000)
}
