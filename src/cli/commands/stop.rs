//! `ll-loop stop`: ends a run as SIGTERM does, and sees it end.

use clap::Args;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::Signal;

use crate::base::text::plural;
use crate::cli::output::Output;
use crate::journal::claim::{self, Live};
use crate::journal::known::KnownRun;
use crate::process::owner::{self, Sent};
use crate::session::context::Session;
use crate::session::error::{Error, Kind};

use crate::session::runs::{Asked, Places};

use super::runs::line;

/// How long a run may take to end its actions in order, which is their grace and a little more.
const GENTLY: Duration = Duration::from_secs(8);

/// How long it may take when it is asked again, and kills them.
const AT_ONCE: Duration = Duration::from_secs(7);

/// Who is stopped.
#[derive(Debug, Args)]
pub(in crate::cli) struct StopArgs {
    /// A loop that runs once, or a run
    #[arg(value_name = "NAME|INSTANCE")]
    pub(super) name: String,
}

pub(in crate::cli) fn stop(args: &StopArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let places = Places::of(session);
    let asked = places.asked(&args.name);
    let (live, left): (Vec<_>, Vec<_>) =
        places.all()?.into_iter().filter(|run| asked.is(run)).partition(|run| run.status.is_live());
    let run = match live.as_slice() {
        [] => return Err(nothing(asked, &left)),
        [run] => run,
        several => {
            let names: Vec<_> = several.iter().map(|run| run.files.instance()).collect();
            return Err(Error::refused(format!(
                "`{}` is {}",
                args.name,
                plural(several.len() as u64, "run")
            ))
            .with_hint(format!("name one of them: {}", names.join(", "))));
        }
    };
    end(run)?;
    let now = crate::run::clock::Clock::start().now();
    let instance = run.files.instance();
    match places.all()?.iter().find(|run| run.files.instance() == instance) {
        Some(ended) => output.data(&line(ended, now)),
        None => output.data(&format!("{instance}  left the queue\n")),
    }
    Ok(0)
}

fn nothing(asked: Asked, over: &[KnownRun]) -> Error {
    match over.last() {
        Some(run) => {
            let instance = run.files.instance();
            Error::refused(format!(
                "nothing to stop: run {instance} has ended already ({})",
                run.status.word()
            ))
            .of_kind(Kind::Absent)
            .with_hint(format!("`ll-loop status {instance}` says more"))
        }
        None => asked.nothing("nothing runs by the name", "`ll-loop list --running` shows what does"),
    }
}

/// Asks a run to end, again when it takes too long, and waits for it.
fn end(run: &KnownRun) -> Result<(), Error> {
    for patience in [GENTLY, AT_ONCE] {
        let Some(live) = ask(run)? else { return Ok(()) };
        if is_gone_within(run, live, patience)? {
            return Ok(());
        }
    }
    let pid = run.claim.as_ref().and_then(|claim| claim.record.as_ref()).map(|record| record.pid);
    let pid = pid.unwrap_or_default();
    Err(Error::refused(format!("run {} does not end", run.files.instance())).of_kind(Kind::Failed).with_hint(
        format!("`kill -9 {pid}` ends it, but perhaps not what it started; its journal stays whole"),
    ))
}

fn alive(run: &KnownRun) -> Result<Option<Live>, Error> {
    claim::find(run.files.directory(), run.files.instance()).map_err(|error| unseen(&error))
}

fn unseen(error: &std::io::Error) -> Error {
    Error::failed("cannot look at the runs", error)
}

/// Sends the request to end, and returns whom it was sent to; nobody, when the run is gone.
fn ask(run: &KnownRun) -> Result<Option<Live>, Error> {
    let instance = run.files.instance();
    let mut before = None;
    loop {
        let Some(live) = alive(run)? else { return Ok(None) };
        let Some(record) = &live.record else {
            return Err(Error::refused(format!("the claim of run {instance} cannot be read"))
                .of_kind(Kind::Failed)
                .with_hint("a later version may have written it; stop the run with that one"));
        };
        // A suspended process would not see the request before somebody wakes it up.
        let signals = [Signal::TERM, Signal::CONT];
        match owner::signal(record.pid, &claim::file(run.files.directory(), &live), &signals) {
            Ok(Sent::Yes | Sent::Gone) => return Ok(Some(live)),
            // A run that leaves the queue in this moment keeps its lock under another name.
            Ok(Sent::Stranger) if before.replace(live.standing) != Some(live.standing) => {}
            Ok(Sent::Stranger) => {
                let other =
                    format!("run {instance} is alive, but process {} here is another one", record.pid);
                return Err(Error::refused(format!("{other}; nothing was stopped"))
                    .of_kind(Kind::Failed)
                    .with_hint(format!(
                        "it runs on `{}`, perhaps in a container: stop it there",
                        record.host
                    )));
            }
            Err(error) => {
                let what = format!("cannot stop run {instance} (process {})", record.pid);
                return Err(Error::failed(what, &error).with_hint("stop it as the user who started it"));
            }
        }
    }
}

fn is_gone_within(run: &KnownRun, live: Live, patience: Duration) -> Result<bool, Error> {
    let (sender, receiver) = mpsc::channel();
    let directory: &Path = run.files.directory();
    let (directory, instance) = (directory.to_owned(), run.files.instance().to_owned());
    std::thread::spawn(move || {
        let mut next = Ok(Some(live));
        while let Ok(Some(live)) = next {
            claim::watch(&directory, &live);
            next = claim::find(&directory, &instance);
        }
        let _nobody_waits = sender.send(next);
    });
    match receiver.recv_timeout(patience) {
        Ok(Ok(_)) => Ok(true),
        Ok(Err(error)) => Err(unseen(&error)),
        Err(_) => Ok(false),
    }
}
