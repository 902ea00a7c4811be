//! Runs in the metrics and traces of others.

mod prometheus;
