//! `ll-loop doctor`: shows what works on this machine, and what to do about what does not.

use std::fmt::Write as _;

use clap::Args;
use serde_json::json;

use crate::cli::exit;
use crate::cli::output::Output;
use crate::context::error::Error;
use crate::context::{Session, binding};
use crate::doctor;
use crate::doctor::DoctorRow;

/// The arguments of `doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 where the loops here have what they need, 69 where something is missing, 2 where the policy cannot be read."
)]
pub(in crate::cli) struct DoctorArgs {
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

pub(in crate::cli) fn doctor(args: &DoctorArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let policy = binding::here(session);
    let rows = doctor::examine(&policy, session);
    let missed: Vec<&DoctorRow> = rows.iter().filter(|row| row.is_missed()).collect();
    if args.json {
        output.json(json!({
            "version": env!("CARGO_PKG_VERSION"),
            "ready": missed.is_empty(),
            "rows": rows.iter().map(DoctorRow::json).collect::<Vec<_>>(),
        }));
    } else {
        output.data(&table(&rows));
        output.data(&if missed.is_empty() {
            "\nthe loops here have what they need\n".to_owned()
        } else {
            let names: Vec<&str> = missed.iter().map(|row| row.name.as_str()).collect();
            format!("\nthe loops here need what does not work: {}\n", names.join(", "))
        });
    }
    // Whatever else works: no loop runs under a policy that cannot be read.
    policy?;
    Ok(if missed.is_empty() { 0 } else { exit::UNAVAILABLE })
}

/// Draws the rows, in areas, with the fix below what does not work.
fn table(rows: &[DoctorRow]) -> String {
    let width = rows.iter().map(|row| console::measure_text_width(&row.name)).max().unwrap_or(0);
    let mut area = "";
    rows.iter().fold(String::new(), |mut out, row| {
        if row.area != area {
            area = row.area;
            let _ = writeln!(out, "{}{area}", if out.is_empty() { "" } else { "\n" });
        }
        let blanks = width - console::measure_text_width(&row.name);
        let state = match row.state {
            doctor::RowState::Fact => "-",
            doctor::RowState::Works | doctor::RowState::Fails | doctor::RowState::Absent => row.state.word(),
        };
        let _ = writeln!(out, "  {}{:blanks$}  {state:<6}  {}", row.name, "", row.said);
        let indent = width + 12;
        if row.is_missed()
            && let Some(needed) = &row.needed
        {
            let _ = writeln!(out, "{:indent$}needed: {needed}", "");
        }
        if let Some(fix) = &row.fix {
            let _ = writeln!(out, "{:indent$}fix: {fix}", "");
        }
        out
    })
}
