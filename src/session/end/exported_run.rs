//! Exports a run that has ended to the collectors that the environment names. What goes wrong with that is a warning.

use crate::base::text::one_line;
use crate::context::Session;
use crate::telemetry::live_export::{self, ExportedRun};

/// Exports a run to the collectors that the environment names.
pub(super) fn export(run: ExportedRun, session: &Session<'_>) {
    if let Err(why) = live_export::export(run, &session.env.lookup()) {
        let why = one_line(&session.redactor.text(&why.to_string()), 300);
        let message =
            "the run was not exported, or not whole, to the collector of OTEL_EXPORTER_OTLP_ENDPOINT";
        session.talk.warning(&format!("{message}: {why}"));
    }
}
