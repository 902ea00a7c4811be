//! `ll-loop stop`: stops a run as SIGTERM does, and waits for its end.

use clap::Args;

use super::runs::line;
use crate::base::advised_command;
use crate::base::text::plural;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::journal::known::KnownRun;
use crate::session::read::listed_runs::{Places, RunQuery};
use crate::session::stop_run;

/// The arguments of `stop`.
#[derive(Debug, Args)]
pub(in crate::cli) struct StopArgs {
    /// A run, or a loop with one running run; by default, the one that is running
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: Option<String>,
}

pub(in crate::cli) fn stop(args: &StopArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let places = Places::of(session);
    let asked = args.name.as_deref().map(|name| places.asked(name));
    let is_asked = |run: &KnownRun| asked.as_ref().is_none_or(|asked| asked.is(run));
    let (live, left): (Vec<_>, Vec<_>) =
        places.all()?.into_iter().filter(is_asked).partition(|run| run.status.is_live());
    let run = match live.as_slice() {
        [] => return Err(nothing(asked, &left)),
        [run] => run,
        // Which one is meant is not guessed: a run that was stopped by mistake has to be resumed.
        several => {
            let names: Vec<_> = several.iter().map(|run| run.files.instance()).collect();
            let several = plural(several.len() as u64, "run");
            let message = match &args.name {
                Some(name) => format!("`{name}` is {several}"),
                None => format!("{several} can be stopped"),
            };
            return Err(Error::refused(message).with_hint(format!("name one of them: {}", names.join(", "))));
        }
    };
    stop_run::end(run)?;
    let now = crate::process::clock::Clock::start().now();
    let instance = run.files.instance();
    // Listed anew, as only now it is known how the run ended.
    match places.all()?.iter().find(|run| run.files.instance() == instance) {
        Some(ended) => output.data(&line(ended, now)),
        // A run that only waited for its turn has written nothing.
        None => output.data(&format!("{instance}  left the queue\n")),
    }
    Ok(0)
}

fn nothing(asked: Option<RunQuery>, over: &[KnownRun]) -> Error {
    let Some(asked) = asked else {
        return Error::refused("nothing to stop: no run is running")
            .of_kind(Kind::Absent)
            .with_hint("`ll-loop history` lists the runs that ended");
    };
    match over.last() {
        Some(run) => {
            let instance = run.files.instance();
            Error::refused(format!(
                "nothing to stop: run {instance} has ended already ({})",
                run.status.word()
            ))
            .of_kind(Kind::Absent)
            .with_hint(format!("`{}` says more", advised_command::status(instance)))
        }
        None => asked.nothing("no running run is named", "`ll-loop list --running` shows what does"),
    }
}
