//! `ll-loop validate`: checks loop files without running anything.

use crate::base::diagnostic::Severity;
use crate::ci::Provider;
use crate::cli::exit;
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::definition::load::{self, Located};
use crate::machine::check::injection;
use crate::session::check::Checked;
use crate::session::context::Session;
use crate::session::error::Error;
use clap::{Args, ValueEnum};

use crate::report::reader::Reader;
use crate::session::prepared::reaching;
use crate::session::whereabouts;

use found::Reports;

mod found;
mod github;
mod json;
mod sarif;
mod text;

/// Writes all findings.
type Write = fn(&Reports, &Output);

/// The formats; each has one line.
const FORMATS: [(Findings, Write); 4] = [
    (Findings::Text, text::write),
    (Findings::Json, json::write),
    (Findings::Sarif, sarif::write),
    (Findings::Github, github::write),
];

/// The arguments of `validate`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ValidateArgs {
    /// Names or files of loops. The default is all loops of the repository
    #[arg(value_name = "LOOP")]
    pub(super) loops: Vec<String>,
    /// Let warnings fail, too
    #[arg(long)]
    pub(super) strict: bool,
    /// Explore every sequence of verdicts, and show the shortest way to each bad end
    #[arg(long)]
    pub(super) deep: bool,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Findings::Text)]
    pub(super) format: Findings,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Findings {
    /// For people
    Text,
    /// One object per line
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

pub(in crate::cli) fn validate(
    args: &ValidateArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let workspace = Provider::detect(&session.env.lookup()).job().workspace;
    let root = whereabouts::repository(&session.cwd, workspace.as_deref());
    let home = whereabouts::relative(&session.cwd, &root);
    let reader = Reader { home, ..Reader::default() };
    let mut reports = Reports { files: Vec::new(), unread: Vec::new(), root, reader };
    for located in located(args, session)? {
        match located.and_then(|located| session.check(&located, args.deep)) {
            Ok(report) if args.strict => {
                let findings = report.findings.raised(injection::CODE);
                reports.files.push(Checked { findings, ..report });
            }
            Ok(report) => reports.files.push(report),
            Err(error) => reports.unread.push(error),
        }
    }
    if let Some((_, write)) = FORMATS.iter().find(|(format, _)| *format == args.format) {
        write(&reports, output);
    }
    for error in &reports.unread {
        output.failure(error);
    }
    let bar = if args.strict { Severity::Warning } else { Severity::Error };
    let failed =
        !reports.unread.is_empty() || reports.files.iter().any(|report| report.findings.count(bar) > 0);
    Ok(if failed { exit::INVALID } else { 0 })
}

fn located(args: &ValidateArgs, session: &Session<'_>) -> Result<Vec<Result<Located, Error>>, Error> {
    if !args.loops.is_empty() {
        return Ok(args.loops.iter().map(|name| session.find(name, args.reach.allow_outside)).collect());
    }
    let all: Vec<_> = load::list(&session.cwd)
        .into_iter()
        .map(|listed| Ok(reaching(listed.located, args.reach.allow_outside)))
        .collect();
    if all.is_empty() {
        let help = "name a loop file, or make `.loops/NAME.yaml`";
        return Err(Error::refused("no loops here").with_hint(help));
    }
    Ok(all)
}
