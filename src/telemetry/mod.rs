//! Runs in the traces and metrics that others collect: spans made of the events of a run, and how they are written.
//!
//! ```text
//! events ─▶ run_spans ─▶ TraceSpan ─┬─▶ otlp_request ─▶ WireMessage ─▶ protobuf or JSON   OpenTelemetry
//! digest ─▶ metrics ────────────────┘
//!                        TraceSpan ───▶ perfetto                              ui.perfetto.dev
//! ```

pub mod exporter_settings;
pub mod live_export;
pub mod otlp_export;
pub mod otlp_request;
pub mod otlp_sender;
pub mod perfetto;
pub mod run_spans;
pub mod span_words;
pub mod trace_span;
pub mod wire_message;
