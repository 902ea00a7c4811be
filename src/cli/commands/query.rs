//! `ll-loop answer-query`: evaluates a jq expression in a process of its own, so that no expression can harm the run.

use std::io;
use std::path::{Path, PathBuf};

use crate::context::error::Error;
use crate::run::{Helper, serve};

/// The name of the command.
const COMMAND: &str = "answer-query";

/// The running program, even if its file was replaced or removed since it started.
const OURSELVES: &str = "/proc/self/exe";

/// Answers a query from standard input.
pub(in crate::cli) fn answer() -> Result<u8, Error> {
    serve(io::stdin().lock(), io::stdout().lock())
        .map(|()| 0)
        .map_err(|error| Error::failed("cannot answer the query", &error))
}

/// Returns the command that starts this program to answer a query.
pub(in crate::cli) fn helper() -> Helper {
    let ourselves = Path::new(OURSELVES);
    // macOS has no `/proc`.
    let program = if ourselves.exists() { Ok(ourselves.to_owned()) } else { std::env::current_exe() };
    // PATH is the last resort; it most often leads to the same program.
    Helper::of(&program.unwrap_or_else(|_| PathBuf::from("ll-loop")), COMMAND)
}
