//! `ll-loop continue`: starts another run of the workflow, which resumes a run that was handed off. It is a
//! separate command because in an action the files of the run are uploaded by a later step, after the run; the next
//! run must not begin before that.

use clap::Args;

use crate::ci::Provider;
use crate::ci::chain::NextRun;
use crate::cli::exit;
use crate::cli::flags::{self, ChainFlags, CommitFlags, KeyFlag};
use crate::context::error::Error;
use crate::context::{Session, key_of_run};
use crate::engine::outcome::Outcome;
use crate::journal::awaiting::awaiting;
use crate::journal::known::{KnownRun, RunStatus};
use crate::session::end::next_run::{dispatch, subject};
use crate::session::end::publication::wanted;
use crate::session::read::run_ref;

/// The runner's word for a step that succeeded.
const UPLOADED: &str = "success";

/// The arguments of `continue`.
#[derive(Clone, Debug, Default, Args)]
pub(in crate::cli) struct ContinueArgs {
    /// A run, or a loop (whose last run is taken)
    #[arg(value_name = "LOOP|RUN")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) commit: CommitFlags,
    #[command(flatten)]
    pub(super) key: KeyFlag,
    #[command(flatten)]
    pub(super) chain: ChainFlags,
    /// The outcome of the step that uploaded the files of the run
    #[arg(long, value_name = "OUTCOME", default_value = "success")]
    pub(super) upload: String,
}

pub(in crate::cli) fn go_on(args: &ContinueArgs, session: &Session<'_>) -> Result<u8, Error> {
    let run = handed_off(&args.name, session)?;
    if let Some(awaiting) = awaiting(&run) {
        // No runner waits for a person.
        let message = format!("nothing is started: the run waits for a person: {}", awaiting.shown());
        session.talk.note(&message);
        return Ok(0);
    }
    let provider = Provider::detect(&session.env.lookup());
    // Without its files another run would have nothing to go on with.
    let link = (args.upload == UPLOADED).then(|| flags::link(&args.chain));
    let wanted = wanted(&flags::commit(&args.commit), session);
    let key = key_of_run::of_job(args.key.key.as_deref(), provider.job().id.as_ref());
    let subject = subject(&run.name, run.files.instance(), key.as_ref(), session);
    Ok(match dispatch(&provider, &wanted, &subject, link, session) {
        NextRun::Started { .. } => 0,
        NextRun::ChainEnded { .. } => exit::NOT_CONTINUED,
        NextRun::NotStarted(_) => exit::ERROR,
    })
}

/// Finds the run, which must have been handed off.
fn handed_off(name: &str, session: &Session<'_>) -> Result<KnownRun, Error> {
    let run = run_ref::here(Some(name), session)?;
    if run.status == RunStatus::Ended(Outcome::Handoff) {
        return Ok(run);
    }
    let (instance, status) = (run.files.instance(), run.status.word());
    Err(Error::refused(format!("the run {instance} was not handed off, it is {status}"))
        .with_hint("only a run with the exit code 75 goes on in another run of the workflow"))
}
