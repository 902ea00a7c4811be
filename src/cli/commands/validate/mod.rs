//! `ll-loop validate`: checks loop files without running anything.

use clap::{Args, ValueEnum};
use found::Reports;

use crate::ci::Provider;
use crate::cli::exit;
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::binding::{self, ShownRule};
use crate::context::error::Error;
use crate::editor::fix::{self, FixScope, MadeRepair};
use crate::editor::project_check::{self, CheckOptions};
use crate::report::reading_place::Reader;
use crate::session::end::whereabouts;

mod findings_text;
mod found;
mod github;
mod json;
mod sarif;

/// Writes all findings.
type Write = fn(&Reports, &Output);

/// The formats; each has one line.
const FORMATS: [(FindingsFormat, Write); 4] = [
    (FindingsFormat::Text, findings_text::write),
    (FindingsFormat::Json, json::write),
    (FindingsFormat::Sarif, sarif::write),
    (FindingsFormat::Github, github::write),
];

/// The arguments of `validate`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches of a command line")]
pub(in crate::cli) struct ValidateArgs {
    /// Names or files of loops, or directories with loops. The default is all loops of the repository
    #[arg(value_name = "LOOP|DIR")]
    pub(super) loops: Vec<String>,
    /// Let warnings fail, too
    #[arg(long)]
    pub(super) strict: bool,
    /// Explore every sequence of verdicts, and show the shortest way to each bad end
    #[arg(long)]
    pub(super) deep: bool,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = FindingsFormat::Text)]
    pub(super) format: FindingsFormat,
    /// Write one JSON object per loop, with all that was found in it
    #[arg(long, short, conflicts_with = "format")]
    pub(super) json: bool,
    /// Show no warnings, no notes, and no files without errors
    #[arg(long, conflicts_with = "strict")]
    pub(super) errors_only: bool,
    /// Repair what has one answer, where a run does the same afterwards, and write the files
    #[arg(long)]
    pub(super) fix: bool,
    /// With --fix: also make repairs that change what a run does, such as quoting a text for the shell
    #[arg(long = "unsafe", requires = "fix")]
    pub(super) is_unsafe: bool,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FindingsFormat {
    /// For people
    Text,
    /// One object per line
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// Annotations of GitHub Actions
    Github,
}

/// Checks loops; one with a name among the words for `commands` gets a warning.
pub(in crate::cli) fn validate(
    args: &ValidateArgs,
    commands: &[String],
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let workspace = Provider::detect(&session.env.lookup()).job().workspace;
    let root = crate::files::links::repository(&session.cwd, workspace.as_deref());
    let home = whereabouts::relative(&session.cwd, &root);
    let reader = Reader { home, ..Reader::default() };
    let mut reports = Reports {
        files: Vec::new(),
        counts: Vec::new(),
        unread: Vec::new(),
        root,
        reader,
        is_strict: args.strict,
        errors_only: args.errors_only,
    };
    let options = CheckOptions {
        named: &args.loops,
        outside: args.reach.allow_outside,
        deep: args.deep,
        strict: args.strict,
        commands,
    };
    // First, so that only what is left is found.
    if args.fix {
        let scope = if args.is_unsafe { FixScope::All } else { FixScope::Same };
        for made in fix::fix(&options, scope, session)? {
            let MadeRepair { file, line, message, code } = made;
            session.talk.note(&format!("repaired {file}:{line}: {message} [{code}]"));
        }
    }
    let project = project_check::check(&options, session);
    if project.files.is_empty() && project.unread.is_empty() {
        return Err(no_loops());
    }
    let in_force = binding::shown(&project.policy);
    project.files.into_iter().for_each(|file| reports.add(file.checked));
    reports.unread = project.unread;
    let write = FORMATS.iter().find(|(format, _)| *format == args.format).map(|(_, write)| *write);
    if let Some(write) = if args.json { Some(json::write_loops as Write) } else { write } {
        write(&reports, output);
    }
    for unread in &reports.unread {
        output.failure(&unread.error);
    }
    // Others read the standard output of these formats.
    for ShownRule { rule, value, place } in in_force {
        session.talk.note(&format!("policy in force: {rule}: {value} ({place})"));
    }
    Ok(if reports.are_valid() { 0 } else { exit::INVALID })
}

fn no_loops() -> Error {
    Error::refused("no loops here").with_hint("`ll-loop init` writes a first one; a loop is a file `.loops/NAME.yaml`, and any other file is named by its path")
}
