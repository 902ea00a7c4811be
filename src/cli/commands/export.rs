//! `ll-loop export`: a run for the tools that others look at traces and metrics with.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::inspect::run_export::ExportedSignal;

/// Standard output, where an address could stand.
const STDOUT: &str = "-";

/// The arguments of `export`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    #[command(subcommand)]
    format: ExportFormat,
}

#[derive(Debug, Subcommand)]
enum ExportFormat {
    /// Spans and metrics for a collector of OpenTelemetry
    Otlp(OtlpArgs),
    /// Trace events for <https://ui.perfetto.dev> and `chrome://tracing`
    Perfetto(PerfettoArgs),
}

#[derive(Debug, Args)]
struct OtlpArgs {
    /// A run by its id or the beginning of it, a loop (whose last run is taken), or a bundle; the last run without it
    #[arg(value_name = "RUN|BUNDLE")]
    name: Option<String>,
    /// The address of a collector, below which are `v1/traces` and `v1/metrics`; `-` prints JSON
    #[arg(long, value_name = "URL|-", default_value = STDOUT)]
    to: String,
    /// Print the metrics, and not the spans
    #[arg(long)]
    metrics: bool,
    /// Write the JSON to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct PerfettoArgs {
    /// A run by its id or the beginning of it, a loop (whose last run is taken), or a bundle; the last run without it
    #[arg(value_name = "RUN|BUNDLE")]
    name: Option<String>,
    /// Write it to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) fn export(args: &ExportArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let (text, file) = match &args.format {
        ExportFormat::Otlp(OtlpArgs { name, to, metrics, output: file }) => {
            if to != STDOUT {
                if *metrics || file.is_some() {
                    let message = "`--to URL` sends spans and metrics, and writes nothing";
                    return Err(Error::refused(message).with_hint("leave `--metrics` and `--output` out"));
                }
                session.send_otlp(name.as_deref(), to)?;
                return Ok(0);
            }
            let signal = if *metrics { ExportedSignal::Metrics } else { ExportedSignal::Traces };
            (session.otlp_json(name.as_deref(), signal)?, file)
        }
        ExportFormat::Perfetto(PerfettoArgs { name, output: file }) => {
            (session.perfetto(name.as_deref())?, file)
        }
    };
    match file {
        Some(file) => session.write_report(file, &text)?,
        None => output.data(&text),
    }
    Ok(0)
}
