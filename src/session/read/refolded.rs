//! Folds the journal of an unfinished run into the state in which the run goes on.

use std::rc::Rc;
use std::time::Duration;

use crate::base::advised_command;
use crate::base::time::Timestamp;
use crate::context::error::{Error, Kind};
use crate::engine::event::LoopStart;
use crate::journal::files::RunFiles;
use crate::journal::reader::{ReadError, Whole, read_whole};
use crate::journal::streams::Streams;
use crate::report::Sinks;
use crate::run::replay::{KnownMachine, Left, Replay, ReplayError};
use crate::session::prepare::prepared::{Prepared, changed};

/// An unfinished run, read from its journal.
pub(crate) struct Folded {
    /// The complete lines of the journal, after which new events are written.
    pub(crate) whole: Whole,
    /// The sub-loops that the run was in.
    pub(crate) left: Left,
    /// The time of the last event.
    pub(crate) last: Option<Timestamp>,
    /// How long the run had taken until then.
    pub(crate) elapsed: Duration,
}

/// Folds the journal, and replays it to the sinks, which need to know the earlier events. Writes nothing.
pub(crate) fn fold(
    files: &RunFiles,
    prepared: &mut Prepared,
    accept_changes: bool,
    sinks: &mut Sinks,
) -> Result<Folded, Error> {
    let Prepared { machine, loaded, library, located, .. } = prepared;
    let outermost = KnownMachine { machine: Rc::new(machine.clone()), digest: loaded.digest.clone() };
    let mut find =
        |name: &str, around: &LoopStart, begun: &LoopStart| library.find(name, around, &begun.context);
    let mut replay = Replay::new(outermost, &mut find);
    let (mut last, mut elapsed, mut failed) = (None, Duration::ZERO, None);
    let whole = read_whole(&files.journal(), |stamped| {
        sinks.past(&stamped);
        (last, elapsed) = (Some(stamped.ts), elapsed.max(stamped.at));
        // The rest is still read, since a damaged journal is the better reason than an event that does not fit.
        if failed.is_none() {
            failed = replay.event(stamped).err();
        }
    });
    let whole = whole.map_err(|error| broken(&error))?;
    if let Some(error) = failed {
        return Err(unfit(files, &error));
    }
    if !accept_changes && !replay.changed().is_empty() {
        return Err(changed(&replay.changed().join("`, `")));
    }
    let mut streams = Streams::new(files.streams());
    let left = replay.finish(|stored, stream| streams.read(stored, stream));
    let left = left.map_err(|error| {
        let name = &located.shown;
        Error::failed("the output of an earlier state, which a later one may use, cannot be read", &error)
            .with_hint(format!(
                "put the file back as it was, or start a new run with `{}`",
                advised_command::run(name)
            ))
            .of_kind(Kind::Refused)
    })?;
    Ok(Folded { whole, left, last, elapsed })
}

fn broken(error: &ReadError) -> Error {
    let refused = Error::failed("the run cannot be resumed", error).of_kind(Kind::Refused);
    match error {
        ReadError::Newer { .. } => {
            refused.with_hint("use the version of ll-loop that began the run, or a newer one")
        }
        ReadError::Line { .. }
        | ReadError::Long { .. }
        | ReadError::Overfull { .. }
        | ReadError::Order { .. } => {
            refused.with_hint("the journal was changed by hand or damaged; put it back, or start a new run")
        }
        ReadError::Io { .. } => refused,
    }
}

fn unfit(files: &RunFiles, error: &ReplayError) -> Error {
    Error::failed(format!("the run {} cannot be resumed", files.instance()), error).of_kind(Kind::Refused)
}
