//! `ll-loop report`: shows a run in one of the report formats, made from its journal or its bundle.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::ci::Provider;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::files::links::repository;
use crate::report::annotations::{Checkout, annotations};
use crate::report::digest::Digest;
use crate::report::formats::{self, FORMATS, ReportFormat};

/// Annotations for the log of GitHub Actions: a format that the report directory has no file for.
const GITHUB: &str = "github";

/// The arguments of `report`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReportArgs {
    /// A run by its id or the beginning of it, a loop (whose last run is taken), or a bundle; the last run without it
    #[arg(value_name = "LOOP|RUN|BUNDLE")]
    pub(super) name: Option<String>,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = parser())]
    pub(super) format: String,
    /// Mark where another run or bundle differs (html)
    #[arg(long, value_name = "RUN|BUNDLE")]
    pub(super) against: Option<String>,
    /// Write it to a file
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

/// Reads the name of a format.
pub(in crate::cli) fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|format| format.name).chain([GITHUB]))
}

pub(in crate::cli) fn report(args: &ReportArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let format = formats::by_name(&args.format);
    let looks_closer = format.is_some_and(ReportFormat::looks_closer);
    if args.against.is_some() && !looks_closer {
        return Err(Error::refused("only the page can be marked: `--against` goes with `--format html`"));
    }
    let name = args.name.as_deref();
    let (digest, detail) = if looks_closer {
        let (digest, detail) = session.digest_in_detail(name, args.against.as_deref())?;
        (digest, Some(detail))
    } else {
        (session.digest(name)?, None)
    };
    // What could be read is reported all the same.
    let code = if digest.is_broken_off() { exit::ERROR } else { 0 };
    let text = match format {
        Some(format) => format.write(&digest, detail),
        None => commands(&digest, session),
    };
    match &args.output {
        Some(file) => session.write_report(file, &text)?,
        None if format.is_some() => output.data(&text),
        None => output.commands(&text, GITHUB),
    }
    Ok(code)
}

/// Writes the annotations of a run as GitHub Actions reads them.
fn commands(digest: &Digest, session: &Session<'_>) -> String {
    let Some(github) = Provider::by_name(GITHUB, &|_| None) else { return String::new() };
    let dialect = github.dialect();
    let root = repository(&session.cwd, None);
    let home = digest.reader.home.clone();
    let roots = [root.to_string_lossy()];
    let roots: Vec<&str> = roots.iter().map(AsRef::as_ref).collect();
    let tree = Checkout { roots: &roots, home: &home, exists: &|path: &str| root.join(path).is_file() };
    annotations(digest, &tree).iter().map(|annotation| dialect.annotation(annotation) + "\n").collect()
}
