//! Appends events: a batch is one write, and a batch that cannot be written completely is removed again. Disk space
//! is reserved at the beginning of a run, so that it can record its end even on a full disk.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::files::RunFiles;
use super::reader::Whole;
use super::witness::{self, Witness};
use super::{fault, reserve, streams};
use crate::base::name::LoopName;
use crate::base::redact::Redactor;
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::event::{ActionComplete, Event, Shown, Stamped, TAIL, is_long};
use crate::evaluate::observation::{Observation, Stream, Text};
use crate::files::file_time::FileTime;

/// The space in the journal itself that is reserved for the end of the run, where file sizes are limited (`ulimit
/// -f`).
const LAST_WORDS: u64 = 4 * 1024;

/// The journal of one run.
///
/// Every batch reaches the kernel before anything follows from it, so a killed process loses nothing. The disk is
/// synced only at points where a run may stop for good; a machine that loses power in between loses what
/// its disk had not written yet, which in CI is the machine.
pub struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    seq: u64,
    witness: Witness,
    redactor: Redactor,
    streams: PathBuf,
    reserve: PathBuf,
    /// The largest size that a file may have here.
    limit: u64,
    space: Space,
    /// What the next event carries beside itself.
    shown: Vec<Shown>,
}

/// When events happen.
#[derive(Clone, Copy, Debug)]
pub struct EventTime {
    /// By the wall clock.
    pub now: Timestamp,
    /// How long the run has taken until then.
    pub elapsed: Duration,
}

impl Journal {
    /// Begins the journal of a new run.
    pub fn create(files: &RunFiles, redactor: Redactor) -> io::Result<Self> {
        let path = files.journal();
        // First of all: a run that could not write its end must not begin.
        let limit = reserve::keep(&files.reserve())?;
        fault::write(1)?;
        // Never an existing file: that would be the journal of another run.
        fs_err::OpenOptions::new().append(true).create_new(true).open(&path)?;
        let file = witness::open(&path)?;
        fault::point();
        let (streams, reserve, witness) = (files.streams(), files.reserve(), Witness::default());
        Ok(Self {
            path,
            file,
            length: 0,
            seq: 0,
            witness,
            redactor,
            streams,
            reserve,
            limit,
            space: Space::whole(),
            shown: Vec::new(),
        })
    }

    /// Continues the journal of an earlier process. Cuts off an incomplete last line, so that no event is appended
    /// to it.
    pub fn go_on(files: &RunFiles, redactor: Redactor, whole: Whole) -> io::Result<Self> {
        let limit = reserve::keep(&files.reserve())?;
        let path = files.journal();
        let mut file = witness::open(&path)?;
        let mut length = whole.length;
        file.set_len(length)?;
        fault::point();
        if whole.is_open {
            fault::write(1)?;
            file.write_all(b"\n")?;
            length += 1;
        }
        let (streams, reserve, seq) = (files.streams(), files.reserve(), whole.last_seq);
        let space = Space::beside(&streams)?;
        let witness = Witness::of(&file, length)?;
        Ok(Self {
            path,
            file,
            length,
            seq,
            witness,
            redactor,
            streams,
            reserve,
            limit,
            space,
            shown: Vec::new(),
        })
    }

    /// Gives the next event what was shown that does not follow from events.
    pub fn remember(&mut self, shown: Vec<Shown>) {
        self.shown.extend(shown);
    }

    /// Appends events and returns them as written: numbered, with the time of the clock and the time that the run
    /// has taken, without secrets. `path` names the loops that are running, the outermost first.
    ///
    /// Writes all of them, with the streams beside the journal, or none. Syncs the disk after the last
    /// event of a run.
    pub fn append(
        &mut self,
        events: Vec<Event>,
        at: EventTime,
        path: &[LoopName],
    ) -> io::Result<Vec<Stamped>> {
        self.put(events, at, path, LAST_WORDS)
    }

    /// Appends the end of a run whose other events could not be written, in the reserved space.
    pub fn append_last_words(
        &mut self,
        events: Vec<Event>,
        at: EventTime,
        path: &[LoopName],
    ) -> io::Result<Vec<Stamped>> {
        reserve::release(&self.reserve);
        self.put(events, at, path, 0)
    }

    /// Returns when the journal was written last, by the clock of its file system.
    pub fn changed(&self) -> Option<FileTime> {
        self.witness.changed()
    }

    /// Puts a journal that somebody else removed or changed back in its place, as far as it is what was written.
    pub fn restore(&mut self) -> io::Result<()> {
        if self.witness.check(&self.file, &self.path).is_err() {
            (self.file, self.length, self.seq) = self.witness.restore(&self.file, &self.path)?;
        }
        Ok(())
    }

    fn put(
        &mut self,
        events: Vec<Event>,
        at: EventTime,
        path: &[LoopName],
        headroom: u64,
    ) -> io::Result<Vec<Stamped>> {
        self.witness.check(&self.file, &self.path)?;
        let mut kept = Vec::new();
        // Streams of a batch that fails are removed below, so they take no space either.
        let space = self.space;
        let written = self.write(events, at, path, headroom, &mut kept);
        if written.is_err() {
            self.space = space;
            // Readers tolerate half a batch at the end, but a resume must not continue from the middle of one.
            let _best_effort = self.file.set_len(self.length);
            self.witness.took_back(&self.file, self.length);
            for path in kept {
                let _best_effort = fs_err::remove_file(path);
            }
        }
        written
    }

    fn write(
        &mut self,
        events: Vec<Event>,
        EventTime { now: ts, elapsed: at }: EventTime,
        path: &[LoopName],
        headroom: u64,
        kept: &mut Vec<PathBuf>,
    ) -> io::Result<Vec<Stamped>> {
        let depth = u32::try_from(path.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let path = if depth == 0 { &[] } else { path };
        let mut lines = Vec::with_capacity(events.len() * 256);
        let mut written = Vec::with_capacity(events.len());
        let mut seq = self.seq;
        for event in events {
            seq += 1;
            let was_full = self.space.is_full;
            let (event, sums) = if let Event::ActionComplete(complete) = event {
                let mut complete = self.clean(complete);
                let sums = self.keep_streams(&mut complete, seq, kept)?;
                (Event::ActionComplete(complete), sums)
            } else {
                (event, [None, None])
            };
            let mut stamped = self.without_secrets(Stamped {
                ts,
                seq,
                at,
                depth,
                path: path.to_vec(),
                inherited: false,
                // What was shown came before the whole batch, so its first event carries it.
                shown: if written.is_empty() { self.shown.clone() } else { Vec::new() },
                event,
            })?;
            if let Event::ActionComplete(complete) = &mut stamped.event {
                complete.note_sums(sums);
            }
            written.push(stamped);
            if self.space.is_full && !was_full {
                seq += 1;
                let event = Event::Warning { state: None, message: full() };
                let path = path.to_vec();
                written.push(Stamped {
                    ts,
                    seq,
                    at,
                    depth,
                    path,
                    inherited: false,
                    shown: Vec::new(),
                    event,
                });
            }
        }
        for stamped in &written {
            serde_json::to_writer(&mut lines, stamped)?;
            lines.push(b'\n');
        }
        let length = self.length + lines.len() as u64;
        self.fits(length + headroom)?;
        fault::torn(&mut self.file, &lines)?;
        self.file.write_all(&lines)?;
        self.witness.wrote(&lines, seq, &self.file)?;
        // Only now: the last words of a run carry it where the batch could not be written.
        self.shown.clear();
        fault::point();
        let is_end = |stamped: &Stamped| depth == 0 && matches!(stamped.event, Event::LoopComplete(_));
        if written.last().is_some_and(is_end) {
            fault::write(0)?;
            self.file.sync_data()?;
            fault::point();
        }
        // Only now: of a batch that fails, neither its numbers nor its length count.
        self.seq = seq;
        self.length = length;
        Ok(written)
    }

    /// Refuses a batch that exceeds the limit of file sizes, for which the system would send SIGXFSZ.
    fn fits(&self, length: u64) -> io::Result<()> {
        if length > self.limit { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
    }

    /// Returns the number of the last event.
    pub fn last_seq(&self) -> u64 {
        self.seq
    }

    /// Returns the redactor, for texts that are written elsewhere.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Redacts whole streams before they are cut, because a part of a secret is not recognized.
    fn clean(&self, complete: ActionComplete) -> ActionComplete {
        if self.redactor.is_empty() {
            return complete;
        }
        let clean = |text: &Text| {
            let clean = self.redactor.text(text.as_str());
            // The beginning of the stream is lost, and perhaps that of a secret with it.
            let is_cut = text.is_truncated() && text.elsewhere().is_none();
            let kept = if is_cut { self.redactor.whole_end(&clean, usize::MAX) } else { &clean };
            match &clean {
                Cow::Borrowed(all) => text.without_first(all.len() - kept.len()),
                Cow::Owned(_) => text.with(kept.to_owned()),
            }
        };
        let ActionComplete { step, seen, usage } = complete;
        let (stdout, stderr) = (clean(&seen.stdout), clean(&seen.stderr));
        ActionComplete { step, seen: Observation { stdout, stderr, ..seen }, usage }
    }

    fn without_secrets(&self, stamped: Stamped) -> io::Result<Stamped> {
        if self.redactor.is_empty() {
            return Ok(stamped);
        }
        let mut value = serde_json::to_value(&stamped)?;
        self.redactor.json(&mut value);
        if let Ok(clean) = serde_json::from_value(value) {
            return Ok(clean);
        }
        // A password may equal a word of the format, such as `success`.
        let mut value = serde_json::to_value(&stamped)?;
        self.redactor.json_but_words(&mut value);
        Ok(serde_json::from_value(value)?)
    }

    /// Writes streams that are longer than an event can carry to files of their own, before the event that has
    /// their ends, named by the number of that event, and returns their digests. Of those for which no space is left,
    /// the ends are left.
    fn keep_streams(
        &mut self,
        complete: &mut ActionComplete,
        seq: u64,
        kept: &mut Vec<PathBuf>,
    ) -> io::Result<[Option<Sum>; 2]> {
        let seen = &mut complete.seen;
        let mut sums = [None, None];
        let texts = [(&mut seen.stdout, Stream::Stdout), (&mut seen.stderr, Stream::Stderr)];
        for (sum, (text, stream)) in sums.iter_mut().zip(texts) {
            if !is_long(text) {
                continue;
            }
            let length = text.as_str().len() as u64;
            if !self.space.takes(length) {
                *text = text.shortened(TAIL);
                continue;
            }
            self.fits(length)?;
            fs_err::create_dir_all(&self.streams)?;
            fault::point();
            let path = streams::path(&self.streams, seq, stream);
            kept.push(path.clone());
            *sum = Some(streams::write(&path, text.as_str())?);
            fault::point();
        }
        Ok(sums)
    }
}

/// The most that the streams of a run may take beside its journal, in bytes.
// A loop that runs all night must not fill the disk of its machine.
const MOST_STORED: u64 = 1024 * 1024 * 1024;

fn full() -> String {
    format!(
        "the outputs of this run fill the {} MiB that there are for them beside its journal: of further ones the last {} KiB are stored, which is what a resumed run sees",
        MOST_STORED / 1024 / 1024,
        TAIL / 1024
    )
}

/// The space that is left for the streams of a run.
#[derive(Clone, Copy, Debug)]
struct Space {
    bytes: u64,
    most: u64,
    /// Whether a stream did not fit.
    is_full: bool,
}

impl Space {
    fn whole() -> Self {
        Self { bytes: 0, most: MOST_STORED, is_full: false }
    }

    /// Counts the streams that an earlier process of the run stored.
    fn beside(directory: &Path) -> io::Result<Self> {
        let mut bytes = 0;
        match fs_err::read_dir(directory) {
            Ok(entries) => {
                for entry in entries {
                    bytes += entry?.metadata()?.len();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(Self { bytes, ..Self::whole() })
    }

    /// Takes space for a stream, if enough is left.
    fn takes(&mut self, bytes: u64) -> bool {
        let fits = self.bytes + bytes <= self.most;
        if fits {
            self.bytes += bytes;
        } else {
            self.is_full = true;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::reader;

    #[test]
    fn of_outputs_for_which_there_is_no_room_the_ends_are_stored() {
        let directory = tempfile::TempDir::with_prefix("ll-journal-").unwrap();
        let (name, at) = (LoopName::parse("demo").unwrap(), Timestamp::from_millis(0));
        let files = RunFiles::new(directory.path(), &name, at, 1);
        files.make_directory().unwrap();
        let mut journal = Journal::create(&files, Redactor::default()).unwrap();
        journal.space.most = 50_000;
        let complete = |step: u32| {
            let seen = Observation::exited(0, format!("{step}{}", "x".repeat(20_000)));
            Event::ActionComplete(ActionComplete { step, seen, usage: None })
        };
        let append = |steps: &[u32], journal: &mut Journal| {
            let events = steps.iter().map(|step| complete(*step)).collect();
            journal
                .append(events, EventTime { now: at, elapsed: Duration::ZERO }, std::slice::from_ref(&name))
                .unwrap()
        };
        let mut written = append(&[1], &mut journal);
        written.extend(append(&[2, 3, 4], &mut journal));
        let numbers: Vec<_> = written.iter().map(|stamped| stamped.seq).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert!(matches!(&written[3].event, Event::Warning { .. }), "said once: {:?}", written[3].event);
        let stored = fs_err::read_dir(files.streams()).unwrap().count();
        assert_eq!(stored, 2, "the first two");
        let Event::ActionComplete(third) = &written[2].event else { panic!() };
        assert_eq!(third.seen.stdout.as_str().len(), TAIL);
        assert!(third.seen.stdout.is_truncated() && third.seen.stdout.elsewhere().is_none());

        let whole =
            reader::Whole { length: files.journal().metadata().unwrap().len(), last_seq: 5, is_open: false };
        let journal = Journal::go_on(&files, Redactor::default(), whole).unwrap();
        assert_eq!(journal.space.bytes, 2 * 20_001);
    }
}
