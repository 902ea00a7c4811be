//! `ll-loop compile`: a loop as a plain state machine that runs identically.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::emit;
use crate::files::replace::deliver;

/// The arguments of `compile`.
#[derive(Debug, Args)]
pub(in crate::cli) struct CompileArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// Write the loop to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
}

pub(in crate::cli) fn compile(
    args: &CompileArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    let prepared = session.prepare(session.find(&args.name, args.reach.allow_outside)?)?;
    if !prepared.findings.is_empty() {
        session.show(&prepared.findings, &prepared.loaded);
    }
    let text = emit::to_yaml(&prepared.loaded.tree);
    let Some(target) = &args.output else {
        if output.redactor.finds(text.as_bytes()) {
            output.warning("the loop holds a secret of the environment, which is printed as `***`");
        }
        output.data(&text);
        return Ok(0);
    };
    if is_same(target, &prepared.located.path) {
        let message = format!("`{}` is the loop itself; it would be overwritten", target.display());
        return Err(Error::refused(message).with_hint("name another file"));
    }
    let failed = |error| Error::unwritten("cannot write the loop", &error);
    deliver(target, text).map_err(failed)?;
    Ok(0)
}

/// Tells whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs_err::canonicalize(one), fs_err::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        // A file that is not there yet is not the loop.
        (Err(_), _) | (_, Err(_)) => false,
    }
}
