//! What is sent to a collector: requests of OTLP for spans and for metrics, by the numbers of opentelemetry-proto 1.x.

use super::trace_span::{
    Attribute, AttributeValue, SCHEMA_URL, SCOPE, SpanLink, SpanStatus, TraceSpan, nanoseconds,
};
use super::wire_message::{WireMessage, WireValue};
use crate::base::time::Timestamp;
use crate::report::metrics::{Metric, MetricKind, MetricPoint};

/// `STATUS_CODE_ERROR`
const FAILED: u64 = 2;

/// `AGGREGATION_TEMPORALITY_DELTA`: a run counts from its beginning, and nothing adds its counts to those of other runs but the
/// backend.
const DELTA: u64 = 1;

/// The bounds of durations, in seconds: a run takes a second, or a night.
const BOUNDS: [f64; 12] = [1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 28800.0];

/// From when to when the values of metrics are.
#[derive(Clone, Copy, Debug)]
pub struct MetricSpan {
    /// When the run began.
    pub began: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
}

/// Makes the request for spans.
pub fn traces(resource: &[Attribute], spans: &[TraceSpan]) -> WireMessage {
    let scoped = WireMessage::default()
        .with(1, "scope", WireValue::Message(scope()))
        .with_messages(2, "spans", spans.iter().map(span))
        .with_text(3, "schemaUrl", SCHEMA_URL);
    let of_resource = WireMessage::default()
        .with(1, "resource", WireValue::Message(with_attributes(resource)))
        .with_messages(2, "scopeSpans", [scoped])
        .with_text(3, "schemaUrl", SCHEMA_URL);
    WireMessage::default().with_messages(1, "resourceSpans", [of_resource])
}

/// Makes the request for metrics.
pub fn metrics(resource: &[Attribute], metrics: &[Metric], over: MetricSpan) -> WireMessage {
    let scoped = WireMessage::default()
        .with(1, "scope", WireValue::Message(scope()))
        .with_messages(2, "metrics", metrics.iter().map(|known| metric(known, over)))
        .with_text(3, "schemaUrl", SCHEMA_URL);
    let of_resource = WireMessage::default()
        .with(1, "resource", WireValue::Message(with_attributes(resource)))
        .with_messages(2, "scopeMetrics", [scoped])
        .with_text(3, "schemaUrl", SCHEMA_URL);
    WireMessage::default().with_messages(1, "resourceMetrics", [of_resource])
}

fn scope() -> WireMessage {
    WireMessage::default().with_text(1, "name", SCOPE).with_text(2, "version", env!("CARGO_PKG_VERSION"))
}

fn with_attributes(attributes: &[Attribute]) -> WireMessage {
    WireMessage::default().with_messages(1, "attributes", attributes.iter().map(attribute))
}

fn attribute(attribute: &Attribute) -> WireMessage {
    let (number, name, value) = match &attribute.value {
        AttributeValue::Text(text) => (1, "stringValue", WireValue::Text(text.clone())),
        AttributeValue::Flag(flag) => (2, "boolValue", WireValue::Flag(*flag)),
        AttributeValue::Whole(number) => (3, "intValue", WireValue::Whole(*number)),
        AttributeValue::Real(number) => (4, "doubleValue", WireValue::Real(*number)),
    };
    let value = WireMessage::default().with(number, name, value);
    WireMessage::default().with_text(1, "key", &attribute.name).with(2, "value", WireValue::Message(value))
}

fn span(span: &TraceSpan) -> WireMessage {
    let mut message = WireMessage::default()
        .with(1, "traceId", WireValue::Id(span.trace.bytes().to_vec()))
        .with(2, "spanId", WireValue::Id(span.id.bytes().to_vec()));
    if let Some(parent) = span.parent {
        message = message.with(4, "parentSpanId", WireValue::Id(parent.bytes().to_vec()));
    }
    message = message
        .with_text(5, "name", &span.name)
        .with(6, "kind", WireValue::Choice(span.kind.number()))
        .with(7, "startTimeUnixNano", WireValue::Fixed(nanoseconds(span.start)))
        .with(8, "endTimeUnixNano", WireValue::Fixed(nanoseconds(span.end)))
        .with_messages(9, "attributes", span.attributes.iter().map(attribute));
    if !span.links.is_empty() {
        message = message.with_messages(13, "links", span.links.iter().map(link));
    }
    if let SpanStatus::Failed(why) = &span.status {
        let status =
            WireMessage::default().with_text(2, "message", why).with(3, "code", WireValue::Choice(FAILED));
        message = message.with(15, "status", WireValue::Message(status));
    }
    message
}

fn link(link: &SpanLink) -> WireMessage {
    WireMessage::default()
        .with(1, "traceId", WireValue::Id(link.trace.bytes().to_vec()))
        .with(2, "spanId", WireValue::Id(link.span.bytes().to_vec()))
        .with_messages(4, "attributes", link.attributes.iter().map(attribute))
}

fn metric(metric: &Metric, over: MetricSpan) -> WireMessage {
    let Metric { row, points } = metric;
    let message = WireMessage::default()
        .with_text(1, "name", row.name)
        .with_text(2, "description", row.help)
        .with_text(3, "unit", row.unit);
    let numbers = || points.iter().map(|point| number_point(point, over));
    match row.kind {
        MetricKind::Level => message.with(
            5,
            "gauge",
            WireValue::Message(WireMessage::default().with_messages(1, "dataPoints", numbers())),
        ),
        MetricKind::Count => {
            let sum = WireMessage::default()
                .with_messages(1, "dataPoints", numbers())
                .with(2, "aggregationTemporality", WireValue::Choice(DELTA))
                .with(3, "isMonotonic", WireValue::Flag(true));
            message.with(7, "sum", WireValue::Message(sum))
        }
        MetricKind::Duration => {
            let histogram = WireMessage::default()
                .with_messages(1, "dataPoints", points.iter().map(|point| duration_point(point, over)))
                .with(2, "aggregationTemporality", WireValue::Choice(DELTA));
            message.with(9, "histogram", WireValue::Message(histogram))
        }
    }
}

fn point_attributes(point: &MetricPoint) -> Vec<WireMessage> {
    let of_label = |(name, value): &(&'static str, String)| attribute(&Attribute::new(name, value.as_str()));
    point.labels.iter().map(of_label).collect()
}

fn number_point(point: &MetricPoint, over: MetricSpan) -> WireMessage {
    WireMessage::default()
        .with(2, "startTimeUnixNano", WireValue::Fixed(nanoseconds(over.began)))
        .with(3, "timeUnixNano", WireValue::Fixed(nanoseconds(over.ended)))
        .with(4, "asDouble", WireValue::Real(point.value))
        .with_messages(7, "attributes", point_attributes(point))
}

/// Writes one duration as a histogram of one.
fn duration_point(point: &MetricPoint, over: MetricSpan) -> WireMessage {
    // By the specification, a bound belongs to the bucket below it.
    let bucket = BOUNDS.iter().position(|bound| point.value <= *bound).unwrap_or(BOUNDS.len());
    let counts = (0..=BOUNDS.len()).map(|index| u64::from(index == bucket)).collect();
    WireMessage::default()
        .with(2, "startTimeUnixNano", WireValue::Fixed(nanoseconds(over.began)))
        .with(3, "timeUnixNano", WireValue::Fixed(nanoseconds(over.ended)))
        .with(4, "count", WireValue::Fixed(1))
        .with(5, "sum", WireValue::Real(point.value))
        .with(6, "bucketCounts", WireValue::FixedList(counts))
        .with(7, "explicitBounds", WireValue::RealList(BOUNDS.to_vec()))
        .with_messages(9, "attributes", point_attributes(point))
}
