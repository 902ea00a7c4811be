//! `ll-loop verify`: says what is claimed of a run, a commit or a tree, by whom, and whether that is enough.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::base::object::ObjectId;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::evidence::verdict_check::VerifyOptions;
use crate::evidence::verify_report;

/// It does not hold.
// A gate tells this from 2, with which nothing could be verified.
const DOES_NOT_HOLD: u8 = 1;

/// How it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyFormat {
    /// Lines for people
    Text,
    /// One JSON object
    Json,
}

/// The arguments of `verify`.
#[derive(Debug, Args)]
pub(in crate::cli) struct VerifyArgs {
    /// A bundle, a statement `*.intoto.json` beside its bundle, a directory of them, an artifact (`artifact:NAME`, `run:ID`), a
    /// run of this machine, or the whole id of a commit or tree
    #[arg(value_name = "BUNDLE|FILE|COMMIT|TREE")]
    what: String,
    /// Look at the verdicts of this loop alone
    #[arg(long = "loop", value_name = "NAME")]
    only: Option<String>,
    /// What has to be so: a YAML file, as `ll-loop schema --verdict-policy` describes it
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Where bundles, statements and attestations are found
    #[arg(long, value_name = "DIR")]
    attestations: Option<PathBuf>,
    /// The repository on GitHub whose workflows may have signed. The default is that of the job, or of the checkout
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Take unsigned verdicts
    #[arg(long)]
    unsigned: bool,
    /// Refuse a run that did not begin at this commit
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,
    /// Write what a tool is to sign to this file, if all of it holds
    #[arg(long, value_name = "FILE")]
    predicate: Option<PathBuf>,
    /// How it is said
    #[arg(long, value_enum, default_value_t = VerifyFormat::Text)]
    format: VerifyFormat,
}

pub(in crate::cli) fn verify(args: &VerifyArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let commit = args.commit.as_deref().map(|text| {
        ObjectId::parse(text).map_err(|error| Error::refused(format!("invalid commit `{text}`: {error}")))
    });
    let verified = session.verify(&VerifyOptions {
        what: args.what.clone(),
        only: args.only.clone(),
        policy: args.policy.clone(),
        attestations: args.attestations.clone(),
        repository: args.repo.clone(),
        unsigned: args.unsigned,
        commit: commit.transpose()?,
        predicate: args.predicate.clone(),
    });
    let verified = verified.map_err(unreadable)?;
    match args.format {
        VerifyFormat::Text => output.data(&verify_report::text(&verified)),
        VerifyFormat::Json => output.pretty_json(verify_report::object(&verified)),
    }
    Ok(if verified.violations.is_empty() { 0 } else { DOES_NOT_HOLD })
}

/// For a gate, whatever cannot be found or read is the same: nothing was verified, and nothing was found wrong either.
fn unreadable(error: Error) -> Error {
    match error.kind() {
        Kind::Absent | Kind::Failed => error.of_kind(Kind::Refused),
        Kind::Refused
        | Kind::Locked
        | Kind::Taken
        | Kind::GoneOn
        | Kind::Over
        | Kind::Unavailable
        | Kind::Interrupted(_) => error,
    }
}
