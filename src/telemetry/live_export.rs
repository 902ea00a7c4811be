//! Exports a run to the collectors that the environment names, when it has ended: for a bounded time, and without a word on
//! how it ended.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::exporter_settings::{OtlpTarget, SettingsFault, TelemetrySignal, resource, target};
use super::otlp_export::{RunExport, of_last_part, trace_requests};
use super::otlp_sender::OtlpSender;
use super::trace_span::Attribute;
use crate::base::lookup::Lookup;
use crate::engine::event::Stamped;
use crate::forge::webhook::WebhookFault;
use crate::journal::files::RunFiles;
use crate::journal::reader;

/// The longest time that the end of a run waits for collectors, whatever the environment says.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A run that has ended, as its files have it.
#[derive(Clone, Debug)]
pub struct ExportedRun {
    /// Its files.
    pub files: RunFiles,
    /// An event that could not be written.
    pub unwritten: Option<Stamped>,
    /// Whether its process was killed, so that its journal has no end.
    pub is_killed: bool,
}

/// Returns what is wrong with the variables, so that it can be said when a run begins.
pub fn settings_fault(env: Lookup<'_>) -> Option<SettingsFault> {
    let [traces, metrics] =
        [TelemetrySignal::Traces, TelemetrySignal::Metrics].map(|signal| target(signal, env).err());
    // Most of what is wrong is wrong for both.
    traces.or(metrics)
}

/// Exports the last part of a run, where the environment asks for it.
///
/// # Errors
/// A collector did not take it, or the time was over.
pub fn export(run: ExportedRun, env: Lookup<'_>) -> Result<(), WebhookFault> {
    // What is wrong with the variables was said when the run began.
    let [traces, metrics] =
        [TelemetrySignal::Traces, TelemetrySignal::Metrics].map(|signal| target(signal, env).ok().flatten());
    if traces.is_none() && metrics.is_none() {
        return Ok(());
    }
    let sender = OtlpSender::from_env(env, LONGEST_WAIT)?;
    let work = ExportWork { run, traces, metrics, resource: resource(env), sender };
    // In a thread of its own, which is left where it hangs: a system may look for the name of a server for ever.
    let (tell, told) = channel();
    let thread = thread::Builder::new().name("export".to_owned());
    let spawned = thread.spawn(move || {
        let _given_up = tell.send(work.perform());
    });
    if spawned.is_err() {
        return Err(WebhookFault::TooLong);
    }
    told.recv_timeout(LONGEST_WAIT).unwrap_or(Err(WebhookFault::TooLong))
}

/// What is done in the thread.
struct ExportWork {
    run: ExportedRun,
    traces: Option<OtlpTarget>,
    metrics: Option<OtlpTarget>,
    resource: Vec<Attribute>,
    sender: OtlpSender,
}

impl ExportWork {
    fn perform(self) -> Result<(), WebhookFault> {
        let Self { run, traces, metrics, resource, sender } = self;
        let mut export = RunExport::default();
        // What can be read of a journal that breaks off was so.
        let _broken_off = reader::read(&run.files.journal(), |event| export.event(&event));
        run.unwritten.iter().for_each(|event| export.event(event));
        if run.is_killed {
            export.was_killed();
        }
        if export.is_unsampled() {
            return Ok(());
        }
        let of_metrics = metrics.zip(export.metrics(&resource));
        if let Some(target) = traces {
            sender.send(&target, &trace_requests(&resource, &of_last_part(export.into_spans())))?;
        }
        of_metrics.map_or(Ok(()), |(target, request)| sender.send(&target, &[request]))
    }
}
