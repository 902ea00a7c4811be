//! Before a run begins: it claims its scope, waits for its turn, or says who is in the way.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::base::territory::{ScopePath, Territory};
use crate::base::time::{Timestamp, human};
use crate::cli::env::{Env, PARENT};
use crate::cli::error::CliError;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::journal::claim::{self, Claim, Live, Pass, Record, Standing, Taken, Ticket, Turn, Wanted};
use crate::journal::files::RunFiles;
use crate::journal::known;
use crate::machine::context;
use crate::process::signal::{Cancel, Request};
use crate::run::clock::Clock;

use super::prepare::Prepared;
use super::run::host;

/// Resolves the scope of a loop to the paths that it stands for in this run.
pub(super) fn territory(
    prepared: &Prepared,
    context: &Map<String, Value>,
    env: &Env,
    redactor: &Redactor,
) -> Result<Territory, CliError> {
    let root = &prepared.located.root;
    let mut paths = Vec::new();
    for scope in &prepared.loaded.definition.scope {
        let text = context::render(scope, context, env.all()).map_err(|error| {
            CliError::invalid(format!("the scope `{}`: {error}", scope.source()))
                .help("a scope is needed before the run begins; it can use `${context.…}` and `${env.…}`")
        })?;
        let path = real(&root.join(text)).to_string_lossy().into_owned();
        paths.push(ScopePath::from(redactor.text(&path).into_owned()));
    }
    Ok(Territory { tree: ScopePath::from(real(root).to_string_lossy().into_owned()), paths })
}

/// Follows the links in a path as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = known.canonicalize() {
            return rest.into_iter().rev().fold(real, |path: PathBuf, part: Component<'_>| path.join(part));
        }
        let (Some(parent), Some(last)) = (known.parent(), known.components().next_back()) else {
            return path.to_owned();
        };
        rest.push(last);
        known = parent;
    }
}

/// Says what a run claims.
pub(super) fn wanted(
    files: &RunFiles,
    name: &LoopName,
    territory: &Territory,
    env: &Env,
    now: Timestamp,
) -> Wanted {
    let record = Record {
        instance: files.instance().to_owned(),
        r#loop: name.to_string(),
        territory: territory.clone(),
        pid: std::process::id(),
        host: host(),
        since: now,
        place: 0,
        ancestors: Vec::new(),
        secret: String::new(),
    };
    Wanted { record, pass: env.get(PARENT).and_then(Pass::parse), queue: false }
}

/// Adds to the environment of actions what makes a run that they start known as a descendant of this one.
pub(super) fn passed_on(mut env: BTreeMap<String, String>, claim: &Claim) -> BTreeMap<String, String> {
    env.insert(PARENT.to_owned(), claim.pass().to_text());
    env
}

/// Claims what a run wants, and waits for it if it may.
pub(super) async fn take(
    wanted: Wanted,
    queue: bool,
    files: &RunFiles,
    cancel: &mut Cancel,
    output: &Output,
) -> Result<Claim, CliError> {
    files.make_directory().map_err(|error| cannot_save(&error))?;
    if let Some(loops) = files.directory().parent() {
        // What a killed run did not tidy up is in nobody's way.
        let _best_effort = known::settle(loops);
    }
    let territory = wanted.record.territory.clone();
    match claim::take(files.directory(), Wanted { queue, ..wanted }).map_err(|error| cannot_save(&error))? {
        Taken::Held(claim) => Ok(claim),
        Taken::Queued(ticket) => wait(ticket, &territory, files, cancel, output).await,
        Taken::Refused(ahead) => {
            let stop = ahead.first().map(|run| run.instance.as_str()).unwrap_or_default();
            Err(locked(in_the_way(&ahead, &territory)).help(format!(
                "wait for it with `--queue`, end it with `ll-loop stop {stop}`, or give the loops scopes that do not overlap"
            )))
        }
        Taken::Circle(ahead) => Err(locked(format!(
            "{}, and waits for the run from which this one was started",
            in_the_way(&ahead, &territory)
        ))
        .help("the two would wait for each other for ever; give the outer loops the scopes that their inner loops need")),
        Taken::Runs(run) => Err(locked(format!("the run {} {}{}", run.instance, doing(&run), by_whom(&run)))
            .help(format!("follow it with `ll-loop logs -f {0}`, or end it with `ll-loop stop {0}`", run.instance))),
    }
}

/// Stands in the queue.
async fn wait(
    mut ticket: Ticket,
    territory: &Territory,
    files: &RunFiles,
    cancel: &mut Cancel,
    output: &Output,
) -> Result<Claim, CliError> {
    let clock = Clock::start();
    let mut said = None;
    loop {
        let ahead = match ticket.look().map_err(|error| cannot_save(&error))? {
            Turn::Now(claim) => {
                output.talk(&format!("the scope is free after {}\n", human(clock.elapsed())));
                return Ok(claim);
            }
            Turn::Later(same, ahead) => {
                ticket = *same;
                ahead
            }
        };
        let first = first(&ahead).map(|run| run.instance.clone());
        if said != first {
            output.talk(&format!("waiting: {}\n", in_the_way(&ahead, territory)));
            said = first;
        }
        // Of those who come before, the last one in the queue is likely to be the last one to go.
        let longest =
            ahead.into_iter().max_by_key(|run| run.record.as_ref().map_or(0, |record| record.place));
        let Some(longest) = longest else { continue };
        tokio::select! {
            () = gone(files.directory(), longest) => {}
            _ = cancel.differs_from(Request::None) => {
                let signal = cancel.signal().map_or(exit::ERROR, |signal| crate::run::named(signal).exit_code());
                return Err(CliError::invalid("interrupted while waiting; nothing was run").code(signal));
            }
        }
    }
}

/// Waits until a run is gone, in a thread of its own: the kernel wakes it up, and nothing else can.
pub(super) async fn gone(directory: &Path, run: Live) {
    let (sender, receiver) = oneshot::channel();
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        claim::watch(&directory, &run);
        let _nobody_waits = sender.send(());
    });
    let _gone = receiver.await;
}

/// Returns who is named: who runs, before who waits.
fn first(ahead: &[Live]) -> Option<&Live> {
    ahead.iter().find(|run| run.standing == Standing::Holds).or(ahead.first())
}

fn in_the_way(ahead: &[Live], territory: &Territory) -> String {
    let Some(run) = first(ahead) else { return String::from("another run is in the way") };
    let more = match ahead.len() - 1 {
        0 => String::new(),
        more => format!("; {more} more before this one"),
    };
    let Some(record) = &run.record else {
        return format!(
            "run {}, which this version cannot read the claim of, {}{more}",
            run.instance,
            doing(run)
        );
    };
    let (ours, theirs) = match territory.meets(&record.territory) {
        Some((ours, theirs)) => (ours.seen_from(&territory.tree), theirs.seen_from(&record.territory.tree)),
        None => Default::default(),
    };
    let overlap =
        if ours == theirs { format!("`{ours}`") } else { format!("`{theirs}`, which overlaps `{ours}`") };
    let claims = match run.standing {
        Standing::Holds => "holds",
        Standing::Waits => "came earlier and waits for",
    };
    format!(
        "run {} of the loop `{}` {claims} {overlap} (process {}, since {}){more}",
        run.instance, record.r#loop, record.pid, record.since
    )
}

fn by_whom(run: &Live) -> String {
    let named =
        |record: &Record| format!(": process {} on {}, since {}", record.pid, record.host, record.since);
    run.record.as_ref().map(named).unwrap_or_default()
}

fn doing(run: &Live) -> &'static str {
    match run.standing {
        Standing::Holds => "is running",
        Standing::Waits => "waits for its turn",
    }
}

fn locked(message: String) -> CliError {
    CliError::invalid(message).code(exit::LOCKED)
}

/// Says that the files of a run cannot be written, so that there is none.
pub(super) fn cannot_save(error: &io::Error) -> CliError {
    let refused = CliError::failed("cannot save the run", error).before_the_run();
    if error.kind() == io::ErrorKind::Unsupported {
        return refused.help("the file system of `.loops` has no file locks, without which two runs could meet; keep `.loops` on another one");
    }
    refused.help("a run that cannot be saved is not started; make `.loops` writable, or free some space")
}
