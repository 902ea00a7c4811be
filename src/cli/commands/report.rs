//! `ll-loop report`: what a run looked like, made again from its journal or from its bundle.

use std::path::Path;

use clap::builder::PossibleValuesParser;

use crate::bundle::names;
use crate::bundle::open::{self, Bundle, LIMITS, OpenError};
use crate::ci::Provider;
use crate::cli::args::RenderArgs;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::journal::reader;
use crate::report::annotations::{Checkout, annotations};
use crate::report::digest::Digest;
use crate::report::formats::{self, FORMATS};

use super::finish;
use super::incoming;
use super::runs::Places;

/// The format that is no file of the report directory: annotations for the log of GitHub Actions.
const GITHUB: &str = "github";

/// Reads the name of a format.
pub(in crate::cli) fn parser() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|format| format.name).chain([GITHUB]))
}

pub(in crate::cli) fn report(args: &RenderArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let digest = match Path::new(&args.name) {
        path if path.is_file() || path.is_dir() => {
            of_bundle(path).map_err(|error| incoming::unusable(&args.name, &error))?
        }
        _ => of_run(&args.name, env, output)?,
    };
    output.data(&match formats::by_name(&args.format) {
        Some(format) => (format.render)(&digest),
        None => commands(&digest),
    });
    Ok(0)
}

fn of_run(name: &str, env: &Env, output: &Output) -> Result<Digest, CliError> {
    let places = Places::here()?;
    let asked = places.asked(name);
    let Some(run) = places.all()?.into_iter().rfind(|run| asked.is(run)) else {
        return Err(asked.nothing("there was no run of", "`ll-loop history` lists the runs there were"));
    };
    let mut files = run.files.clone();
    if finish::is_due(&run) {
        // What is shown needs no file: that one cannot be written is no reason not to show it.
        match finish::finish(&run, None, env, output) {
            Ok(finished) => files = finished.files,
            Err(error) => output.warning(error.message()),
        }
    }
    read(&files.journal()).map_err(|error| CliError::failed(format!("run {}", run.files.instance()), &error))
}

fn of_bundle(path: &Path) -> Result<Digest, OpenError> {
    let (found, unpacked) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = open::locate(path, found.path(), LIMITS)?;
    Bundle::open(&path, LIMITS)?.extract(unpacked.path())?;
    read(&unpacked.path().join(names::JOURNAL)).map_err(|error| OpenError::Damaged(error.to_string()))
}

fn read(journal: &Path) -> Result<Digest, reader::ReadError> {
    let mut digest = Digest::default();
    reader::read(journal, |event| digest.event(&event))?;
    Ok(digest)
}

/// Writes the annotations of a run as GitHub Actions reads them.
fn commands(digest: &Digest) -> String {
    let Some(github) = Provider::by_name(GITHUB, &|_| None) else { return String::new() };
    let dialect = github.dialect();
    let tree = Checkout { root: "", exists: &|path: &str| Path::new(path).is_file() };
    annotations(digest, &tree).iter().map(|annotation| dialect.annotation(annotation) + "\n").collect()
}
