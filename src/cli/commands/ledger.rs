//! `ll-loop ledger`: shows how the day stands that a policy caps, and begins the ledger in which it is counted.

use clap::Args;
use serde_json::json;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::spending::day_standing::DayStanding;

/// The arguments of `ledger`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 where the day can be counted, 2 where no policy caps it, or the ledger to begin is there, 69 where a \
                  ledger is missing, cannot be read or has shrunk."
)]
pub(in crate::cli) struct LedgerArgs {
    /// Begin the ledger that the policy names; once, by whoever keeps the policy
    #[arg(long)]
    begin: bool,
    /// Write one JSON object
    #[arg(long, conflicts_with = "begin")]
    json: bool,
}

pub(in crate::cli) fn ledger(args: &LedgerArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if args.begin {
        for begun in session.begin_ledgers()? {
            output.data(&format!("the ledger {begun} has begun\n"));
        }
        return Ok(0);
    }
    let standings = session.day_standings()?;
    if args.json {
        output.json(json!({"days": standings.iter().map(DayStanding::json).collect::<Vec<_>>()}));
        return Ok(0);
    }
    for standing in &standings {
        output.data(&format!(
            "{}: ${:.2} of ${:.2} taken on {}, ${:.2} left ({})\n",
            standing.ledger,
            standing.taken_usd(),
            standing.cap_usd,
            standing.day,
            standing.left_usd(),
            standing.place,
        ));
        for line in standing.lines() {
            output.data(&format!("  {line}\n"));
        }
    }
    Ok(0)
}
