//! `ll-loop deliver`: brings what a run has fixed to people.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::flags::LockFlags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::deliver::leaks::LeakPlace;
use crate::deliver::{DeliverOptions, Done};
use crate::policy::DeliveryMode;

/// It is not delivered.
// As for a run that is blocked: a person is needed.
const REFUSED: u8 = 5;

/// Where a fix is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// One pull request for the loop and the base, kept up to date
    Pr,
    /// The branch of that pull request, without one
    Branch,
    /// A commit on top of the pull request of this job
    Commit,
    /// A review with suggestions, for a pull request from a fork
    Suggest,
    /// The file `changes.patch`
    Patch,
}

/// The arguments of `deliver`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(in crate::cli) struct DeliverArgs {
    /// The run: a bundle, an artifact (`artifact:NAME`, `run:ID`, `run:latest`), or a run of this machine by its loop or id
    #[arg(value_name = "RUN|BUNDLE")]
    what: String,
    /// Where the fix goes
    #[arg(long, value_enum, default_value_t = To::Pr)]
    to: To,
    /// The branch that is to have the fix. The default is that of the pull request, or that of the job
    #[arg(long, value_name = "BRANCH")]
    base: Option<String>,
    /// Push the branch to this remote of the checkout, or to this address, with your own git. Only with `--to branch`
    #[arg(long, value_name = "REMOTE")]
    remote: Option<String>,
    /// Refuse unless the server vouches for the signature of the commit
    #[arg(long)]
    require_signed: bool,
    /// Deliver a run that was not verified, as a draft that says so
    #[arg(long)]
    unverified: bool,
    /// Deliver a run that changed the judges of its checks, as a draft that names them. Where there are no drafts, the message
    /// says it
    #[arg(long)]
    allow_judges: bool,
    /// With `--to commit`: push even if the token starts no checks
    #[arg(long)]
    accept_no_checks: bool,
    /// Deliver a change of this protected path; give it once for each
    #[arg(long = "allow-path", value_name = "PATH")]
    allow_paths: Vec<String>,
    /// Deliver what looks like a secret and is an example, in this line of this file; give it once for each
    #[arg(long = "allow-secret", value_name = "PATH:LINE")]
    allow_secrets: Vec<LeakPlace>,
    /// Keep `changes.patch` in this directory
    #[arg(long, value_name = "DIR")]
    report_dir: Option<PathBuf>,
    #[command(flatten)]
    lock: LockFlags,
    /// With `--lock`: wait for others who have locked what is delivered, instead of failing
    #[arg(long)]
    queue: bool,
    /// Say what would be done, and write nothing to the server
    #[arg(long)]
    dry_run: bool,
}

pub(in crate::cli) fn deliver(
    args: &DeliverArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    args.lock.check()?;
    let options = DeliverOptions {
        what: args.what.clone(),
        way: match args.to {
            To::Pr => DeliveryMode::Pr,
            To::Branch => DeliveryMode::Branch,
            To::Commit => DeliveryMode::Commit,
            To::Suggest => DeliveryMode::Suggest,
            To::Patch => DeliveryMode::Patch,
        },
        base: args.base.clone(),
        remote: args.remote.clone(),
        require_signed: args.require_signed,
        unverified: args.unverified,
        allow_judges: args.allow_judges,
        accept_no_checks: args.accept_no_checks,
        allow_paths: args.allow_paths.clone(),
        allow_secrets: args.allow_secrets.clone(),
        report_dir: args.report_dir.clone(),
        dry_run: args.dry_run,
        lock: args.lock.options(),
        queue: args.queue,
    };
    let delivery = session.deliver(&options)?;
    for line in delivery.lines() {
        output.data(&format!("{line}\n"));
    }
    Ok(if matches!(delivery.done, Done::Refused { .. }) { REFUSED } else { 0 })
}
