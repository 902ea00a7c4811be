//! `ll-loop deliveries`: what became of what runs delivered.

use std::path::PathBuf;

use clap::Args;

use crate::base::time::Since;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::inspect::known_deliveries::DeliveriesAsked;

/// The arguments of `deliveries`.
#[derive(Debug, Args)]
pub(in crate::cli) struct DeliveriesArgs {
    /// A loop; all of them without
    #[arg(value_name = "LOOP")]
    name: Option<String>,
    /// Only pull requests that were opened since then: `7d`, `2026-11-20`, or `2026-11-20T18:00:00Z`
    #[arg(long, value_name = "DURATION|DATE")]
    since: Option<Since>,
    /// What runs have cost is read in a directory with bundles or reports, or in an artifact on GitHub (`run:ID`, `run:latest` or
    /// `artifact:NAME`), and not in this checkout
    #[arg(long, value_name = "DIR|ARTIFACT")]
    from: Option<String>,
    /// The repository on GitHub, if it is not that of the job or of the checkout
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Write JSON: what `board` reads from a file `deliveries.json`
    #[arg(long)]
    json: bool,
    /// Write it to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) fn deliveries(
    args: &DeliveriesArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let asked = DeliveriesAsked {
        name: args.name.clone(),
        since: args.since,
        from: args.from.clone(),
        repository: args.repo.clone(),
    };
    // For a file `deliveries.json`, which `board` reads, the option can be left out.
    let is_json = args.json
        || args.output.as_deref().is_some_and(|file| file.extension().is_some_and(|end| end == "json"));
    let list = session.delivery_list(&asked)?;
    let text = if is_json { format!("{:#}\n", list.json()) } else { list.text() };
    match &args.output {
        Some(file) => session.write_report(file, &text)?,
        None => output.data(&text),
    }
    Ok(0)
}
