//! `ll-loop continue`, and the same at the end of a run: another run of the workflow goes on with a run that was handed
//! off. It is a command of its own because in an action the files of the run are uploaded by a later step, after the
//! run; the next run must not begin before that.

use std::io::{self, Write as _};

use crate::ci::Provider;
use crate::ci::github::dispatch::{ChainLink, NextRun};
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::cli::args::{ChainArgs, ContinueArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::engine::outcome::Outcome;
use crate::journal::known::{KnownRun, Status};
use crate::report::annotations::{Annotation, Level};

use super::publish::wanted;
use super::runs::Places;

/// What the runner calls the outcome of a step that did its work.
const UPLOADED: &str = "success";

pub(in crate::cli) fn go_on(args: &ContinueArgs, env: &Env, output: &Output) -> Result<u8, CliError> {
    let run = handed_off(&args.name)?;
    let provider = Provider::detect(&env.lookup());
    let link = (args.upload == UPLOADED).then(|| link(&args.chain));
    let wanted = wanted(&args.commit, env);
    let subject = subject(&run.name, run.files.instance());
    Ok(match start(&provider, env, &wanted, &subject, link, output) {
        NextRun::Started { .. } => 0,
        NextRun::ChainEnded { .. } => exit::NOT_CONTINUED,
        NextRun::NotStarted(_) => exit::ERROR,
    })
}

pub(super) fn link(args: &ChainArgs) -> ChainLink {
    ChainLink { depth: args.chain_depth, max: args.max_chain }
}

pub(super) fn subject(loop_name: &str, instance: &str) -> ReportedRun {
    ReportedRun { loop_name: loop_name.to_owned(), instance: instance.to_owned(), ..ReportedRun::default() }
}

/// Starts the next run, and says what became of it.
pub(super) fn start(
    provider: &Provider,
    env: &Env,
    wanted: &ReportOptions,
    subject: &ReportedRun,
    link: Option<ChainLink>,
    output: &Output,
) -> NextRun {
    let request = ReportRequest { env: &env.lookup(), token: env.token(), options: wanted, subject };
    let (next, warning) = provider.go_on(request, link);
    if let Some(warning) = warning {
        output.warning(&warning);
    }
    let mut message = next.sentence();
    let level = match &next {
        NextRun::Started { page, .. } => {
            message.extend(page.iter().flat_map(|page| [": ", page.as_str()]));
            Level::Notice
        }
        NextRun::ChainEnded { .. } | NextRun::NotStarted(_) => Level::Error,
    };
    let said = Annotation { level, title: subject.loop_name.clone(), message, location: None };
    let _closed = writeln!(io::stdout(), "{}", provider.dialect().annotation(&said));
    next
}

/// Finds the run, which has to be one that was handed off.
fn handed_off(name: &str) -> Result<KnownRun, CliError> {
    let places = Places::here()?;
    let asked = places.asked(name);
    let run =
        places.all()?.into_iter().rfind(|run| asked.is(run)).ok_or_else(|| {
            asked.nothing("there is no run of", "`ll-loop history` lists the runs there were")
        })?;
    if run.status == Status::Ended(Outcome::Handoff) {
        return Ok(run);
    }
    let (instance, status) = (run.files.instance(), run.status.word());
    Err(CliError::invalid(format!("the run {instance} was not handed off, it is {status}"))
        .help("only a run with the exit code 75 goes on in another run of the workflow"))
}
