//! `ll-loop list`: the loops of this repository.

use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::definition::load;

pub(in crate::cli) fn list(_env: &Env, output: &Output) -> Result<u8, CliError> {
    let cwd = Env::cwd().map_err(|error| CliError::failed("cannot tell the working directory", &error))?;
    let loops = load::list(&cwd);
    if loops.is_empty() {
        output.talk("no loops here; a loop is a file `.loops/NAME.yaml`\n");
    }
    for listed in loops {
        output.data(&format!("{}\n", listed.name));
    }
    Ok(0)
}
