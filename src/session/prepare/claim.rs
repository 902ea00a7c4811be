//! Claims the scope of a run before it begins, waits for its turn, or says which run is in the way.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use super::left_behind;
use super::prepared::Prepared;
use crate::base::advised_command;
use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::base::sum::Sum;
use crate::base::territory::{ScopePath, Territory};
use crate::base::time::{Timestamp, human};
use crate::context::Session;
use crate::context::environment::PARENT;
use crate::context::error::{Error, Kind};
use crate::engine::event::PolicyRecord;
use crate::files::links::real;
use crate::journal::claim::{
    self, Claim, ClaimRecord, ClaimRequest, ClaimStanding, Live, Pass, QueueTurn, Taken, Ticket,
};
use crate::journal::files::RunFiles;
use crate::journal::known;
use crate::journal::snapshot::Surroundings;
use crate::machine::run_variables;
use crate::process::clock::Clock;
use crate::process::life::host;
use crate::process::signal::{Cancel, EndRequest};

/// Resolves the scope of a loop to the paths that it means in this run.
pub(crate) fn territory(
    prepared: &Prepared,
    context: &Map<String, Value>,
    session: &Session<'_>,
    redactor: &Redactor,
) -> Result<Territory, Error> {
    let scope = match &prepared.scope {
        Some(planned) => planned.clone(),
        None => own_scope(prepared, context, session)?,
    };
    Ok(of_paths(prepared, scope, redactor))
}

/// Returns what a run claims whose scope are these paths, as seen from its directory.
pub(crate) fn of_paths(
    prepared: &Prepared,
    scope: impl IntoIterator<Item = String>,
    redactor: &Redactor,
) -> Territory {
    let root = &prepared.located.root;
    let path = |path: String| {
        // With links followed: two names of one directory would not meet otherwise.
        let path = real(&root.join(path)).to_string_lossy().into_owned();
        ScopePath::from(redactor.text(&path).into_owned())
    };
    let paths = scope.into_iter().map(path).collect();
    Territory { tree: ScopePath::from(real(root).to_string_lossy().into_owned()), paths }
}

/// Returns the scope that a loop gives itself.
fn own_scope(
    prepared: &Prepared,
    context: &Map<String, Value>,
    session: &Session<'_>,
) -> Result<Vec<String>, Error> {
    let env = session.env.for_templates();
    let rendered = prepared.loaded.definition.scope.iter().map(|scope| {
        run_variables::render(scope, context, &env).map_err(|error| {
            Error::refused(format!("the scope `{}`: {error}", scope.source())).with_hint(
                "a scope is needed before the run begins; it can use `${context.…}` and `${env.…}`",
            )
        })
    });
    rendered.collect()
}

/// Describes what a run claims.
pub(crate) fn wanted(
    files: &RunFiles,
    name: &LoopName,
    territory: &Territory,
    policy: Vec<PolicyRecord>,
    session: &Session<'_>,
    now: Timestamp,
) -> ClaimRequest {
    let record = ClaimRecord {
        instance: files.instance().to_owned(),
        r#loop: name.to_string(),
        territory: territory.clone(),
        pid: std::process::id(),
        host: host(),
        since: now,
        // Like the ancestors and the secret, filled in by `take`, which sees under its lock who came earlier.
        place: 0,
        ancestors: Vec::new(),
        secret: String::new(),
        policy,
    };
    ClaimRequest { record, pass: session.env.get(PARENT).and_then(Pass::parse), queue: false }
}

/// Returns for `state.json` what a run has claimed, and the machine that it runs on.
pub(crate) fn surroundings(territory: &Territory) -> Surroundings {
    Surroundings { scope: territory.shown(), pid: std::process::id(), host: host() }
}

/// Returns a name for this machine and a directory on it, which says neither.
pub(crate) fn place(directory: &Path) -> String {
    let directory = real(directory);
    Sum::of(format!("{}\n{}", host(), directory.display()).as_bytes()).to_string()
}

/// Adds to the environment of actions what makes a run that they start known as a descendant of this one.
pub(crate) fn passed_on(mut env: BTreeMap<String, String>, claim: &Claim) -> BTreeMap<String, String> {
    env.insert(PARENT.to_owned(), claim.pass().to_text());
    env
}

/// Claims what a run wants, and waits for it if it may.
pub(crate) async fn take(
    wanted: ClaimRequest,
    queue: bool,
    files: &RunFiles,
    cancel: &mut Cancel,
    session: &Session<'_>,
) -> Result<Claim, Error> {
    files.make_directory().map_err(|error| cannot_save(&error))?;
    if let Some(loops) = files.directory().parent() {
        // Archives runs that were killed after their end; the claim does not depend on it.
        let _best_effort = known::settle(loops);
    }
    let territory = wanted.record.territory.clone();
    let claim = match claim::take(files.directory(), ClaimRequest { queue, ..wanted }).map_err(|error| cannot_save(&error))? {
        Taken::Held(claim) => Ok(claim),
        Taken::Queued(ticket) => wait(ticket, &territory, files, cancel, session).await,
        Taken::Refused(ahead) => {
            let ends = ahead.first().map(|run| format!(", end it with `{}`", advised_command::stop(&run.instance)));
            Err(locked(in_the_way(&ahead, &territory)).with_hint(format!(
                "wait for it with `--queue`{}, or give the loops scopes that do not overlap",
                ends.unwrap_or_default()
            )))
        }
        Taken::Circle(ahead) => Err(locked(format!(
            "{}, and waits for the run from which this one was started",
            in_the_way(&ahead, &territory)
        ))
        .with_hint("the two would wait for each other for ever; give the outer loops the scopes that their inner loops need")),
        Taken::Runs(run) => Err(locked(format!("the run {} {}{}", run.instance, doing(&run), by_whom(&run)))
            .of_kind(Kind::Taken)
            .with_hint(format!("follow it with `{}`, or end it with `{}`", advised_command::follow(&run.instance), advised_command::stop(&run.instance)))),
    }?;
    // Under the claim and before anything else, so that no action of a killed run works beside those of this one.
    left_behind::end(files.directory(), files.instance(), session);
    Ok(claim)
}

/// Stands in the queue.
async fn wait(
    mut ticket: Ticket,
    territory: &Territory,
    files: &RunFiles,
    cancel: &mut Cancel,
    session: &Session<'_>,
) -> Result<Claim, Error> {
    let clock = Clock::start();
    let mut said = None;
    loop {
        let ahead = match ticket.look().map_err(|error| cannot_save(&error))? {
            QueueTurn::Now(claim) => {
                session.talk.note(&format!("the scope is free after {}", human(clock.elapsed())));
                return Ok(claim);
            }
            QueueTurn::Later(same, ahead) => {
                ticket = *same;
                ahead
            }
        };
        let first = first(&ahead).map(|run| run.instance.clone());
        // The wait is looked at again whenever a run ends, so only a change of who is in front is worth a line.
        if said != first {
            session.talk.note(&format!("waiting: {}", in_the_way(&ahead, territory)));
            said = first;
        }
        // Of the runs ahead, the last one in the queue is likely to end last, so wait for that one.
        let longest =
            ahead.into_iter().max_by_key(|run| run.record.as_ref().map_or(0, |record| record.place));
        let Some(longest) = longest else { continue };
        tokio::select! {
            () = gone(files.directory(), longest) => {}
            _ = cancel.differs_from(EndRequest::None) => {
                let kind = cancel.signal().map_or(Kind::Failed, |signal| Kind::Interrupted(crate::run::named(signal)));
                return Err(Error::refused("interrupted while waiting; nothing was run").of_kind(kind));
            }
        }
    }
}

/// Waits until a run has ended, in a thread of its own: waiting for a file lock blocks, and only the kernel ends
/// the wait.
pub(crate) async fn gone(directory: &Path, run: Live) {
    let (sender, receiver) = oneshot::channel();
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        claim::watch(&directory, &run);
        let _nobody_waits = sender.send(());
    });
    let _gone = receiver.await;
}

/// Returns the run that messages name: a running one, or else a waiting one.
fn first(ahead: &[Live]) -> Option<&Live> {
    ahead.iter().find(|run| run.standing == ClaimStanding::Holds).or(ahead.first())
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
        ClaimStanding::Holds => "holds",
        ClaimStanding::Waits => "came earlier and waits for",
    };
    format!(
        "run {} of the loop `{}` {claims} {overlap} (process {}, since {}){more}",
        run.instance, record.r#loop, record.pid, record.since
    )
}

fn by_whom(run: &Live) -> String {
    let named =
        |record: &ClaimRecord| format!(": process {} on {}, since {}", record.pid, record.host, record.since);
    run.record.as_ref().map(named).unwrap_or_default()
}

fn doing(run: &Live) -> &'static str {
    match run.standing {
        ClaimStanding::Holds => "is running",
        ClaimStanding::Waits => "waits for its turn",
    }
}

fn locked(message: String) -> Error {
    Error::refused(message).of_kind(Kind::Locked)
}

/// Returns the error of a run that is refused because its files cannot be written.
pub(crate) fn cannot_save(error: &io::Error) -> Error {
    let refused = Error::failed("cannot save the run", error).of_kind(Kind::Refused);
    if error.kind() == io::ErrorKind::Unsupported {
        return refused.with_hint("the file system of `.loops` has no file locks, without which two runs could meet; keep `.loops` on another one");
    }
    refused.with_hint("a run that cannot be saved is not started; make `.loops` writable, or free some space")
}
