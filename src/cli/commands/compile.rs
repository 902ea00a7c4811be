//! `ll-loop compile`: a loop as a plain state machine that runs identically.

use std::path::Path;

use crate::cli::args::CompileArgs;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::definition::emit;
use crate::files::replace::deliver;

use super::prepare::{drawn, find, prepare};

pub(in crate::cli) fn compile(args: &CompileArgs, output: &Output) -> Result<u8, CliError> {
    let prepared = prepare(find(&args.name, &args.reach)?, |_| {}, output)?;
    if !prepared.findings.is_empty() {
        output.talk(&drawn(&prepared.findings, &prepared.loaded, output));
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
        return Err(CliError::invalid(message).help("name another file"));
    }
    let failed = |error| CliError::failed("cannot write the loop", &error);
    deliver(target, text).map_err(failed)?;
    Ok(0)
}

/// Tells whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    match (fs_err::canonicalize(one), fs_err::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), _) | (_, Err(_)) => false,
    }
}
