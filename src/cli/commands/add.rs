//! `ll-loop add`: copies a loop of the catalogue into a repository.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::output::Output;
use crate::session::catalog::{self, Added};
use crate::session::context::Session;
use crate::session::error::Error;

/// The arguments of `add`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AddArgs {
    /// A loop that `ll-loop catalog` lists
    #[arg(value_name = "LOOP")]
    what: String,
    /// The file to write, instead of `.loops/NAME.yaml`
    #[arg(long = "as", value_name = "PATH")]
    to: Option<PathBuf>,
}

pub(in crate::cli) fn add(args: &AddArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    of_catalog(&args.what, args.to.as_deref(), session, output)
}

fn of_catalog(name: &str, to: Option<&Path>, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let entry = catalog::named(name, session)?;
    let (did, path) = match catalog::add(&entry, to, session)? {
        Added::Written(path) => ("wrote", path),
        Added::Unchanged(path) => ("unchanged:", path),
    };
    output.data(&format!("{did} {}\n", catalog::shown(&path, session)));
    output.talk(&format!("run it with `{}`\n", catalog::run(&entry, &path, session)));
    Ok(0)
}
