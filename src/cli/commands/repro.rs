//! `ll-loop repro`: a shell where a step of a run stood, or a script that makes the step again.

use std::process::Command;

use clap::Args;

use crate::base::template::shell_quote;
use crate::base::text::one_line;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::process::asking_terminal;
use crate::report::numbers::StepNumber;

/// The arguments of `repro`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReproArgs {
    /// A run by its id or the beginning of it, a loop, whose last run is taken, or a bundle; the last run without
    #[arg(value_name = "RUN|BUNDLE")]
    pub(super) name: Option<String>,
    /// The step: `12`, or `2.1` for the first step of the sub-loop that step 2 ran. The default is the one that decided
    #[arg(long, value_name = "N")]
    pub(super) step: Option<StepNumber>,
    /// Print a script that makes the step again in any clone, and has its exit code
    #[arg(long)]
    pub(super) script: bool,
}

pub(in crate::cli) fn repro(args: &ReproArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let name = args.name.as_deref();
    let repro = session.repro(name, args.step.as_ref())?;
    if args.script {
        output.data(&repro.script(session)?);
        return Ok(0);
    }
    let worktree = repro.worktree()?;
    let directory = repro.directory(&worktree);
    let shown = match repro.command() {
        Ok((shell, text)) => {
            let words = shell.iter().map(String::as_str).chain([text]).map(shell_quote);
            format!("it ran {}", one_line(&words.collect::<Vec<_>>().join(" "), 2000))
        }
        Err(what) => format!("it {what}"),
    };
    output.talk(&format!("step {} ({}): {shown}\n", repro.step, repro.state));
    // Without a terminal a shell is of no use, but a script can use the directory.
    if !(output.is_terminal && asking_terminal::is_there()) {
        output.data(&format!("{}\n", directory.display()));
        return Ok(0);
    }
    let shell = session.env.get("SHELL").filter(|shell| !shell.is_empty()).unwrap_or("/bin/sh");
    output.talk(&format!(
        "in {}, with the captures and the environment of the step; `exit` ends it\n",
        directory.display()
    ));
    // The environment of the step alone: what this one adds could make it pass.
    let ended = Command::new(shell).current_dir(&directory).env_clear().envs(repro.env(session)).status();
    ended.map_err(|error| Error::failed(format!("cannot start {shell}"), &error))?;
    if repro.close(&worktree) {
        output.talk("nothing was changed in the worktree, which is removed\n");
    } else {
        output.talk(&format!("the worktree stays in {}\n", worktree.path.display()));
    }
    Ok(0)
}
