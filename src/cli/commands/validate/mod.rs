//! `ll-loop validate`: checks loop files without running anything.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use found::{Reports, UnreadableFile};
use loop_names::Same;

use crate::base::diagnostic::{Diagnostic, FindingPlace};
use crate::ci::Provider;
use crate::cli::exit;
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::definition::load::{self, DIRECTORY, Listed, Located};
use crate::machine::check::injection;
use crate::report::reading_place::Reader;
use crate::session::context::Session;
use crate::session::end::whereabouts;
use crate::session::error::Error;
use crate::session::prepare::loop_check::{Checked, Checker};
use crate::session::prepare::prepared::{reaching, refused};

mod findings_text;
mod found;
mod github;
mod json;
mod loop_names;
mod sarif;
mod tests_of_loops;

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
    let mut all = Checker::default();
    let mut named = args.loops.clone();
    let tests = tests_of_loops::check(&mut named, session);
    let is_tests_alone = named.is_empty() && !args.loops.is_empty();
    let subjects = if is_tests_alone { Vec::new() } else { subjects(&named, args, session)? };
    let mut whole = Vec::new();
    for subject in subjects {
        let path = subject.located.as_ref().map(|located| located.path.clone()).unwrap_or_default();
        match subject.located.and_then(|located| all.check(&located, args.deep)) {
            Ok(checked) if !checked.is_ours && !subject.is_named => {}
            Ok(mut checked) => {
                loop_names::check(&mut checked, &subject.same, commands);
                tests.note(&mut checked, &path);
                if args.strict {
                    checked.findings = checked.findings.raised(injection::CODE);
                }
                whole.push((checked, subject.is_named));
            }
            Err(error) => reports.unread.push(UnreadableFile { asked: subject.asked, error }),
        }
    }
    let parents = parents(&whole);
    for (mut checked, is_named) in whole {
        if !is_named && parents.contains(&checked.shown) {
            checked.findings = checked.findings.filtered(|finding| !is_left_to_children(finding));
        }
        reports.add(checked);
    }
    for file in tests.files {
        match file {
            Ok(checked) => reports.add(checked),
            Err((asked, error)) => reports.unread.push(UnreadableFile { asked, error }),
        }
    }
    if reports.files.is_empty() && reports.unread.is_empty() {
        return Err(no_loops());
    }
    let write = FORMATS.iter().find(|(format, _)| *format == args.format).map(|(_, write)| *write);
    if let Some(write) = if args.json { Some(json::write_loops as Write) } else { write } {
        write(&reports, output);
    }
    for unread in &reports.unread {
        output.failure(&unread.error);
    }
    Ok(if reports.are_valid() { 0 } else { exit::INVALID })
}

/// Returns the files that others of these take over, by the names of their findings.
fn parents(all: &[(Checked, bool)]) -> BTreeSet<String> {
    let taken = |(checked, _): &(Checked, bool)| -> Vec<String> {
        checked.sources.iter().skip(1).map(|source| source.name().to_owned()).collect()
    };
    all.iter().flat_map(taken).collect()
}

/// Tells whether a finding is about a key of a whole loop that a file may leave to those that take it over.
fn is_left_to_children(finding: &Diagnostic) -> bool {
    let is_of_whole = match &finding.place {
        FindingPlace::File => true,
        FindingPlace::Value(path) | FindingPlace::Key(path) => path.segments().is_empty(),
        FindingPlace::Bytes(_) | FindingPlace::At(_) | FindingPlace::Within(..) => false,
    };
    finding.code == "missing-key" && is_of_whole
}

/// A file to check.
struct FileToCheck {
    /// What was asked for, or the name of the file.
    asked: String,
    located: Result<Located, Error>,
    /// Whether a user named this very file, and not a directory around it.
    is_named: bool,
    /// Files whose names are too much like that of this one.
    same: Same,
}

/// Returns the files to check, each once.
fn subjects(named: &[String], args: &ValidateArgs, session: &Session<'_>) -> Result<Vec<FileToCheck>, Error> {
    let outside = args.reach.allow_outside;
    let mut subjects = Vec::new();
    for asked in named {
        let located = session.find(asked, outside);
        match directory(asked, &located, session) {
            Some(directory) => {
                let below = load::list_below(&directory, &session.cwd);
                if below.is_empty() {
                    let error = Error::refused(format!("there are no loops in the directory `{asked}`"));
                    subjects.push(FileToCheck::named(asked, Err(error)));
                }
                subjects.extend(FileToCheck::listed(below, outside));
            }
            None => subjects.push(FileToCheck::named(asked, located)),
        }
    }
    if named.is_empty() {
        subjects = FileToCheck::listed(load::list(&session.cwd), outside);
        if subjects.is_empty() {
            return Err(no_loops());
        }
    }
    let mut seen = HashSet::new();
    subjects
        .retain(|subject| subject.located.as_ref().map_or(true, |located| seen.insert(located.path.clone())));
    Ok(subjects)
}

fn no_loops() -> Error {
    Error::refused("no loops here").with_hint("`ll-loop init` writes a first one; a loop is a file `.loops/NAME.yaml`, and any other file is named by its path")
}

/// Returns the directory that a text names which does not name a loop.
fn directory(asked: &str, located: &Result<Located, Error>, session: &Session<'_>) -> Option<PathBuf> {
    if let Ok(located) = located {
        return Some(located.path.clone()).filter(|path| path.is_dir());
    }
    let named = load::ancestors(&session.cwd).into_iter().map(|root| root.join(DIRECTORY).join(asked));
    std::iter::once(session.cwd.join(asked)).chain(named).find(|path| path.is_dir())
}

impl FileToCheck {
    fn named(asked: &str, located: Result<Located, Error>) -> Self {
        Self { asked: asked.to_owned(), located, is_named: true, same: Same::default() }
    }

    fn listed(all: Vec<Listed>, outside: bool) -> Vec<Self> {
        let same = loop_names::same(&all);
        let subject = |(listed, same): (Listed, Same)| {
            let located = listed.located.map(|located| reaching(located, outside));
            let located = located.map_err(|error| refused(&error));
            Self { asked: listed.name, located, is_named: false, same }
        };
        all.into_iter().zip(same).map(subject).collect()
    }
}
