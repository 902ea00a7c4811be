//! A run as `ui.perfetto.dev` and `chrome://tracing` open it: the JSON of trace events.

use serde_json::{Map, Value, json};

use super::trace_span::{Attribute, AttributeValue, TraceSpan, nanoseconds};

/// Writes spans. Each part of the run is a process of its own, and arrows lead from one to the next.
pub fn render(spans: &[TraceSpan]) -> String {
    let mut events = Vec::new();
    for span in spans {
        if span.part_begins() {
            let name = format!("{}, part {}", span.name, span.part);
            events.push(json!({"ph": "M", "name": "process_name", "pid": span.part, "args": {"name": name}}));
            events.push(
                json!({"ph": "M", "name": "thread_name", "pid": span.part, "tid": 1, "args": {"name": "steps"}}),
            );
        }
        events.push(event(span));
        events.extend(arrow(span, spans));
    }
    let value = json!({"traceEvents": events, "displayTimeUnit": "ms"});
    value.to_string() + "\n"
}

fn event(span: &TraceSpan) -> Value {
    let start = microseconds(span, false);
    json!({
        "ph": "X",
        "name": span.name,
        "cat": category(span),
        "pid": span.part,
        "tid": 1,
        "ts": start,
        "dur": microseconds(span, true) - start,
        "args": args(&span.attributes),
    })
}

/// Leads from the end of the span that this one goes on with, where that is there too.
fn arrow(span: &TraceSpan, spans: &[TraceSpan]) -> Vec<Value> {
    let mut events = Vec::new();
    for link in &span.links {
        let Some(from) = spans.iter().find(|other| (other.trace, other.id) == (link.trace, link.span)) else {
            continue;
        };
        let id = span.id.to_string();
        let both = [("s", from.part, microseconds(from, true)), ("f", span.part, microseconds(span, false))];
        events.extend(both.map(|(ph, pid, at)| {
            json!({"ph": ph, "bp": "e", "id": id, "name": "goes on", "cat": "link", "pid": pid, "tid": 1, "ts": at})
        }));
    }
    events
}

fn category(span: &TraceSpan) -> &'static str {
    if span.part_begins() {
        "run"
    } else if span.said("gen_ai.operation.name").is_some() {
        "agent"
    } else {
        "step"
    }
}

fn microseconds(span: &TraceSpan, is_end: bool) -> u64 {
    nanoseconds(if is_end { span.end } else { span.start }) / 1000
}

fn args(attributes: &[Attribute]) -> Value {
    let value = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => json!(text),
        AttributeValue::Whole(number) => json!(number),
        AttributeValue::Real(number) => json!(number),
        AttributeValue::Flag(flag) => json!(flag),
    };
    let pair = |attribute: &Attribute| (attribute.name.clone(), value(&attribute.value));
    Value::Object(attributes.iter().map(pair).collect::<Map<_, _>>())
}
