//! Begins the journal of a run that is rewound from another one: with that run's events up to a step, and with the streams
//! beside its journal that they name. What came later is not looked at, and the other run is not touched.

use std::io::{self, BufWriter, Write as _};

use super::files::RunFiles;
use super::reader::{self, ReadError};
use super::{fault, streams};
use crate::base::time::Timestamp;
use crate::engine::event::{Event, Parent, Stamped};
use crate::evaluate::observation::Stream;
use crate::files::read;

/// Why a journal could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum InheritError {
    /// The journal of the other run cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the journal of a new run, which begins at `now` and whose first events are those of `from` up to the one that
/// `parent` names.
pub fn inherit(from: &RunFiles, parent: &Parent, to: &RunFiles, now: Timestamp) -> Result<(), InheritError> {
    fault::write(1)?;
    let path = to.journal();
    let mut file = BufWriter::new(fs_err::OpenOptions::new().write(true).create_new(true).open(path)?);
    let mut written = Ok(());
    reader::read_until(&from.journal(), parent.seq, |stamped| {
        // The reader cannot be stopped from here, so the first failure is kept until it is through.
        if written.is_ok() {
            written = copy(&stamped, from, to).and_then(|()| line(stamped, parent, to, now, &mut file));
        }
    })?;
    written?;
    file.flush()?;
    fault::point();
    Ok(file.get_ref().sync_data()?)
}

fn line(
    mut stamped: Stamped,
    parent: &Parent,
    to: &RunFiles,
    now: Timestamp,
    file: &mut impl io::Write,
) -> io::Result<()> {
    stamped.inherited = true;
    if let Event::LoopStart(start) = &mut stamped.event {
        to.instance().clone_into(&mut start.run_id);
        if stamped.depth == 0 {
            // Runs are listed by the time of their first event, and this one begins now.
            stamped.ts = now;
            start.parent = Some(parent.clone());
        }
    }
    serde_json::to_writer(&mut *file, &stamped)?;
    file.write_all(b"\n")
}

/// Copies the streams that an event names. One that is gone is missed when somebody asks for it.
fn copy(stamped: &Stamped, from: &RunFiles, to: &RunFiles) -> io::Result<()> {
    let Event::ActionComplete(complete) = &stamped.event else { return Ok(()) };
    let seen = complete.clone().numbered(stamped.seq).seen;
    for (text, stream) in [(&seen.stdout, Stream::Stdout), (&seen.stderr, Stream::Stderr)] {
        let Some(stored) = text.elsewhere() else { continue };
        let place = |files: &RunFiles| streams::path(&files.streams(), stored.event, stream);
        if place(from).symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            fs_err::create_dir_all(to.streams())?;
            fault::write(stored.length)?;
            read::copy(&place(from), &place(to))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::name::LoopName;
    use crate::base::redact::Redactor;
    use crate::engine::event::ActionComplete;
    use crate::evaluate::observation::Observation;
    use crate::journal::writer::{EventTime, Journal};

    #[test]
    fn it_begins_with_the_events_up_to_there_and_with_the_streams_that_they_name() {
        let directory = tempfile::TempDir::with_prefix("ll-journal-").unwrap();
        let (name, at) = (LoopName::parse("demo").unwrap(), Timestamp::from_millis(0));
        let files = |random| RunFiles::new(directory.path(), &name, at, random);
        let (from, to) = (files(1), files(2));
        from.make_directory().unwrap();
        let mut journal = Journal::create(&from, Redactor::default()).unwrap();
        let complete = |step: u32| {
            let seen = Observation::exited(0, format!("{step}{}", "x".repeat(20_000)));
            Event::ActionComplete(ActionComplete { step, seen, usage: None })
        };
        let events = (1..=3).map(complete).collect();
        journal
            .append(events, EventTime { now: at, elapsed: Duration::ZERO }, std::slice::from_ref(&name))
            .unwrap();
        let before = fs_err::read(from.journal()).unwrap();

        let parent = Parent { run: from.instance().to_owned(), seq: 2 };
        inherit(&from, &parent, &to, at).unwrap();
        let mut seen = Vec::new();
        let whole = reader::read_whole(&to.journal(), |stamped| seen.push(stamped)).unwrap();
        assert_eq!((whole.last_seq, seen.len()), (2, 2));
        assert!(seen.iter().all(|stamped| stamped.inherited));
        let streams = |files: &RunFiles| fs_err::read_dir(files.streams()).unwrap().count();
        assert_eq!((streams(&from), streams(&to)), (3, 2));
        assert_eq!(fs_err::read(from.journal()).unwrap(), before);
        let Event::ActionComplete(second) = seen[1].event.clone() else { panic!() };
        let stored = second.numbered(2).seen.stdout.elsewhere().unwrap();
        let text = streams::Streams::new(to.streams()).read(stored, Stream::Stdout).unwrap();
        assert_eq!(text.len(), 20_001);
        // A run that is there already is not written over.
        assert!(inherit(&from, &parent, &to, at).is_err());
    }
}
