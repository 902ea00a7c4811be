//! Reads a run for its export: its spans and metrics, from its journal or its bundle.

use std::time::Duration;

use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::telemetry::exporter_settings::{self, OtlpTarget, TelemetrySignal, resource};
use crate::telemetry::otlp_export::{RunExport, trace_requests};
use crate::telemetry::otlp_sender::OtlpSender;
use crate::telemetry::trace_span::TraceSpan;
use crate::telemetry::{otlp_request, perfetto};

/// How long a collector may take that somebody names, who waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is written of a run for a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportedSignal {
    /// Its spans.
    Traces,
    /// Its metrics.
    Metrics,
}

impl Session<'_> {
    /// Writes a run for `ui.perfetto.dev`.
    ///
    /// # Errors
    /// There is no such run, or its journal or bundle cannot be read.
    pub(crate) fn perfetto(&self, name: Option<&str>) -> Result<String, Error> {
        Ok(perfetto::render(&self.spans(name)?))
    }

    /// Writes a run as OTLP in JSON.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn otlp_json(&self, name: Option<&str>, signal: ExportedSignal) -> Result<String, Error> {
        let resource = resource(&self.env.lookup());
        let request = match signal {
            ExportedSignal::Traces => otlp_request::traces(&resource, &self.spans(name)?),
            ExportedSignal::Metrics => {
                let metrics = self.run_export(name)?.metrics(&resource);
                metrics.ok_or_else(|| Error::refused("the journal of the run has no events"))?
            }
        };
        Ok(request.json().to_string() + "\n")
    }

    /// Sends the spans and the metrics of a run to a collector.
    ///
    /// # Errors
    /// There is no such run, the address is invalid, or the collector did not take it.
    pub(crate) fn send_otlp(&self, name: Option<&str>, collector: &str) -> Result<(), Error> {
        let env = &self.env.lookup();
        let [traces, metrics] = targets(collector, &|name| env(name))?;
        let run = self.run_export(name)?;
        let resource = resource(env);
        let of_metrics: Vec<_> = run.metrics(&resource).into_iter().collect();
        let of_traces = trace_requests(&resource, &run.into_spans());
        let sent = OtlpSender::from_env(env, PATIENCE).and_then(|sender| {
            sender.send(&traces, &of_traces).and_then(|()| sender.send(&metrics, &of_metrics))
        });
        sent.map_err(|why| {
            Error::failed("the collector did not take the run", &why).of_kind(Kind::Unavailable)
        })
    }

    fn spans(&self, name: Option<&str>) -> Result<Vec<TraceSpan>, Error> {
        self.run_export(name).map(RunExport::into_spans)
    }

    fn run_export(&self, name: Option<&str>) -> Result<RunExport, Error> {
        let mut run = RunExport::default();
        let (digest, _source) = self.read_run_events(name, &mut |event| run.event(event))?;
        if digest.is_killed() {
            run.was_killed();
        }
        Ok(run)
    }
}

/// Returns where both signals go: below the address, as below that of `OTEL_EXPORTER_OTLP_ENDPOINT`, with the protocol and the
/// headers of the environment.
fn targets(collector: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<[OtlpTarget; 2], Error> {
    let base = collector.trim_end_matches('/').trim_end_matches("/v1/traces").to_owned();
    let given = |name: &str| match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(base.clone()),
        // A collector that is named on the command line gets this run, whatever the environment says of runs that end.
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
        | "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
        | "OTEL_SDK_DISABLED"
        | "OTEL_TRACES_EXPORTER"
        | "OTEL_METRICS_EXPORTER" => None,
        other => env(other),
    };
    let target = |signal| {
        let target = exporter_settings::target(signal, &given).map_err(|fault| match fault {
            exporter_settings::SettingsFault::Address(_) => {
                Error::refused("`--to` takes an address that begins with http:// or https://, or `-`")
            }
            fault @ (exporter_settings::SettingsFault::Protocol { .. }
            | exporter_settings::SettingsFault::Headers(_)
            | exporter_settings::SettingsFault::Timeout(_)) => Error::refused(fault.to_string()),
        })?;
        Ok(target.expect("an address was given"))
    };
    Ok([target(TelemetrySignal::Traces)?, target(TelemetrySignal::Metrics)?])
}
