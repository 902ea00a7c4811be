//! Runs in the metrics and traces of others.

mod live;
mod otlp;
mod prometheus;
