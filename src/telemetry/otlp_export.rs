//! What is exported of a run: its spans and its metrics, folded from its events in one pass, and written for a collector.

use super::exporter_settings::OtlpEncoding;
use super::otlp_request::{self, MetricSpan};
use super::run_spans::RunSpans;
use super::trace_span::{Attribute, TraceSpan};
use super::wire_message::WireMessage;
use crate::engine::event::{Event, Stamped};
use crate::report::digest::Digest;
use crate::report::metrics;

/// How many spans are in a request: collectors refuse what is too long.
const SPANS_PER_REQUEST: usize = 2_000;

/// Folds a journal for its export.
#[derive(Clone, Debug, Default)]
pub struct RunExport {
    spans: RunSpans,
    part: Digest,
    beginning: Option<Box<Stamped>>,
}

impl RunExport {
    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let is_own = stamped.depth == 0 && !stamped.inherited;
        if is_own && matches!(stamped.event, Event::LoopStart(_)) {
            self.beginning = Some(Box::new(stamped.clone()));
        }
        if is_own && matches!(stamped.event, Event::LoopResume(_)) {
            // What the parts before have counted, they have exported.
            self.part = Digest::default();
            // A digest is of a run that has started, whichever part of it is meant.
            self.beginning.iter().for_each(|start| self.part.event(start));
        }
        self.spans.event(stamped);
        self.part.event(stamped);
    }

    /// Says that the process of a run without an end is gone.
    pub fn was_killed(&mut self) {
        self.spans.was_killed();
        self.part.was_killed();
    }

    /// Tells whether somebody around the run said that its trace is not recorded.
    pub fn is_unsampled(&self) -> bool {
        self.spans.is_unsampled()
    }

    /// Returns the request for the metrics of its last part.
    pub fn metrics(&self, resource: &[Attribute]) -> Option<WireMessage> {
        let (began, ended) = self.part.began().zip(self.part.seen_until())?;
        let found = metrics::metrics(&self.part);
        Some(otlp_request::metrics(resource, &found, MetricSpan { began, ended }))
    }

    /// Returns all spans, each after the one around it.
    pub fn into_spans(self) -> Vec<TraceSpan> {
        self.spans.into_spans()
    }
}

/// Returns the spans of the last part alone: those before were exported when they ended.
pub fn of_last_part(mut spans: Vec<TraceSpan>) -> Vec<TraceSpan> {
    let last = spans.iter().map(|span| span.part).max();
    spans.retain(|span| Some(span.part) == last);
    spans
}

/// Makes the requests for spans.
pub fn trace_requests(resource: &[Attribute], spans: &[TraceSpan]) -> Vec<WireMessage> {
    spans.chunks(SPANS_PER_REQUEST).map(|some| otlp_request::traces(resource, some)).collect()
}

/// Writes a request.
pub fn encoded(request: &WireMessage, encoding: OtlpEncoding) -> Vec<u8> {
    match encoding {
        OtlpEncoding::Protobuf => request.protobuf(),
        OtlpEncoding::Json => request.json().to_string().into_bytes(),
    }
}
