//! `ll-loop update`: takes newer versions of the loops that were copied from other repositories.

use std::time::Duration;

use clap::Args;

use crate::base::time::parse_duration;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::vendored::Copies;
use crate::shelf::copies;
use crate::shelf::copies::update_copies;
use crate::shelf::copies::update_copies::UpdateOptions;

/// The arguments of `update`.
#[derive(Debug, Args)]
pub(in crate::cli) struct UpdateArgs {
    /// One loop, such as `vendor:OWNER/REPOSITORY/PATH.yaml`. The default is all of them
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Take only commits that `update` has first seen so long ago
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    cool_down: Option<Duration>,
    /// Merge what is new with edits of the copies
    #[arg(long)]
    merge: bool,
    /// Show what is new, and write nothing
    #[arg(long)]
    check: bool,
    /// Take also what a tag leads to that has moved
    #[arg(long)]
    accept_changes: bool,
}

pub(in crate::cli) fn update(args: &UpdateArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let options = UpdateOptions {
        name: args.name.clone(),
        cool_down: args.cool_down,
        merge: args.merge,
        check: args.check,
        copies: Copies::accepted_if(args.accept_changes),
    };
    let updated = update_copies::update(&options, session)?;
    // Some copies may have been taken before one was refused.
    output.data(&copies::printed(&updated.text, session));
    updated.refused.map_or(Ok(0), Err)
}
