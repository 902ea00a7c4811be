//! What a run knows of its own journal, to see that nobody else removed, cut or wrote it: an agent that cleans up may
//! remove the files of the run that asked it, and one that cheats may write the end that it wants.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::files::file_time::FileTime;
use crate::files::{read, replace};

/// What happened to a journal that others do not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Tampered {
    /// The file is gone, or another one has its name.
    #[error("the journal was removed while the run worked")]
    Removed,
    /// It is shorter than what was written.
    #[error("the journal was truncated while the run worked: {length} bytes of {expected} are left")]
    Cut {
        /// What is there, in bytes.
        length: u64,
        /// What was written, in bytes.
        expected: u64,
    },
    /// It holds what the run has not written.
    #[error("another process wrote into the journal while the run worked")]
    Written,
}

/// What was written to a journal so far.
#[derive(Default)]
pub(super) struct Witness {
    batches: Vec<Batch>,
    /// When the file changed last, by the clock of its file system. Unlike the time of its content, no program can set it.
    changed: Option<FileTime>,
    /// The first batch, with the event that says what the run is.
    first: Vec<u8>,
}

/// Events that were written at once.
#[derive(Clone, Copy)]
struct Batch {
    /// Where it ends in the file, in bytes.
    end: u64,
    /// The number of its last event.
    last_seq: u64,
    // 64 bits: other events with the same digest are not found while the run goes on.
    sum: [u8; 8],
}

impl Witness {
    /// Sees a journal for the first time that an earlier process wrote, with all events in order.
    pub(super) fn of(file: &File, length: u64) -> io::Result<Self> {
        let mut all = Self::default();
        let mut lines = BufReader::new(From { file, offset: 0, end: length });
        let (mut line, mut seq) = (Vec::new(), 0);
        while lines.read_until(b'\n', &mut line)? > 0 {
            // How an earlier process grouped them is unknown, so each line counts as a batch.
            seq += 1;
            all.note(&line, seq);
            line.clear();
        }
        all.changed = Some(FileTime::of(&file.metadata()?));
        Ok(all)
    }

    /// Sees what the run itself has written.
    pub(super) fn wrote(&mut self, lines: &[u8], last_seq: u64, file: &File) -> io::Result<()> {
        self.note(lines, last_seq);
        self.changed = Some(FileTime::of(&file.metadata()?));
        Ok(())
    }

    /// Returns when the run, or one before it, has written last.
    pub(super) fn changed(&self) -> Option<FileTime> {
        self.changed
    }

    fn note(&mut self, lines: &[u8], last_seq: u64) {
        if self.batches.is_empty() {
            lines.clone_into(&mut self.first);
        }
        let end = self.length() + lines.len() as u64;
        self.batches.push(Batch { end, last_seq, sum: sum(lines) });
    }

    /// Sees that the run itself removed what it could not write whole, behind this length in bytes.
    pub(super) fn took_back(&mut self, file: &File, length: u64) {
        self.batches.retain(|batch| batch.end <= length);
        self.changed = file.metadata().ok().map(|metadata| FileTime::of(&metadata));
    }

    /// Returns the length of all that was written, in bytes.
    fn length(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.end)
    }

    /// Compares the journal with what was written.
    pub(super) fn check(&mut self, file: &File, path: &Path) -> io::Result<()> {
        let (open, expected) = (file.metadata()?, self.length());
        // A link under its name is another file, whatever it leads to.
        let named = std::fs::symlink_metadata(path);
        if !named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())) {
            return Err(io::Error::other(Tampered::Removed));
        }
        let length = open.len();
        if length < expected {
            return Err(io::Error::other(Tampered::Cut { length, expected }));
        }
        let now = Some(FileTime::of(&open));
        // The content is only read where the time differs: otherwise each step would cost more than the last.
        if length > expected || (now != self.changed && self.intact(file)?.end < expected) {
            return Err(io::Error::other(Tampered::Written));
        }
        // Otherwise somebody changed its owner, or made a link.
        self.changed = now;
        Ok(())
    }

    /// Returns the last batch up to which the file is what was written.
    fn intact(&self, file: &File) -> io::Result<Batch> {
        let mut intact = Batch { end: 0, last_seq: 0, sum: [0; 8] };
        let mut lines = Vec::new();
        for batch in &self.batches {
            lines.resize(usize::try_from(batch.end - intact.end).unwrap_or(usize::MAX), 0);
            match file.read_exact_at(&mut lines, intact.end) {
                Ok(()) if sum(&lines) == batch.sum => intact = *batch,
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok(intact)
    }

    /// Puts the journal in its place again, as far as it is what was written: the open file lives on without a name. Of
    /// one with nothing left, the beginning is written once more. Returns the file, its length and its last event.
    pub(super) fn restore(&mut self, file: &File, path: &Path) -> io::Result<(File, u64, u64)> {
        let intact = self.intact(file)?;
        let kept = self.batches.iter().take_while(|batch| batch.end <= intact.end).count().max(1);
        self.batches.truncate(kept);
        if let Some(directory) = path.parent() {
            fs_err::create_dir_all(directory)?;
        }
        replace::replace_with(path, |new| match intact.end {
            0 => new.write_all(&self.first),
            end => io::copy(&mut From { file, offset: 0, end }, new).map(drop),
        })?;
        let new = open(path)?;
        self.took_back(&new, self.length());
        Ok((new, self.length(), self.batches.last().map_or(0, |batch| batch.last_seq)))
    }
}

/// Opens a journal so that it can be appended to, and compared.
pub(super) fn open(path: &Path) -> io::Result<File> {
    read::open_with(path, fs_err::OpenOptions::new().append(true).read(true), rustix::fs::OFlags::empty())
}

fn sum(lines: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&Sha256::digest(lines)[..8]);
    sum
}

/// A part of a file, read without moving the place at which others read or write.
struct From<'a> {
    file: &'a File,
    offset: u64,
    end: u64,
}

impl io::Read for From<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.offset).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..most], self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A journal of three batches.
    fn journal() -> (tempfile::TempDir, PathBuf, File, Witness) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("running/main.events.jsonl");
        fs_err::create_dir(path.parent().unwrap()).unwrap();
        fs_err::write(&path, "").unwrap();
        let mut file = open(&path).unwrap();
        let mut witness = Witness::default();
        for (seq, lines) in [(2, "start\nenter\n"), (3, "action\n"), (4, "evaluate\n")] {
            file.write_all(lines.as_bytes()).unwrap();
            witness.wrote(lines.as_bytes(), seq, &file).unwrap();
        }
        (directory, path, file, witness)
    }

    const ALL: &str = "start\nenter\naction\nevaluate\n";

    fn check(does: impl Fn(&Path), why: Tampered, text: &str, last: u64) {
        let (_directory, path, file, mut witness) = journal();
        witness.check(&file, &path).unwrap();
        does(&path);
        let error = witness.check(&file, &path).unwrap_err();
        assert_eq!(error.to_string(), why.to_string());
        let (mut new, length, seq) = witness.restore(&file, &path).unwrap();
        assert_eq!((fs_err::read_to_string(&path).unwrap().as_str(), seq), (text, last));
        assert_eq!(length, text.len() as u64);
        witness.check(&new, &path).unwrap();
        new.write_all(b"end\n").unwrap();
        witness.wrote(b"end\n", seq + 1, &new).unwrap();
        witness.check(&new, &path).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), text.to_owned() + "end\n");
    }

    #[test]
    fn what_was_removed_is_put_back() {
        check(|path| fs_err::remove_file(path).unwrap(), Tampered::Removed, ALL, 4);
        check(|path| fs_err::remove_dir_all(path.parent().unwrap()).unwrap(), Tampered::Removed, ALL, 4);
        check(|path| fs_err::rename(path, path.with_extension("old")).unwrap(), Tampered::Removed, ALL, 4);
        check(
            |path| {
                fs_err::remove_file(path).unwrap();
                fs_err::write(path, ALL).unwrap();
            },
            Tampered::Removed,
            ALL,
            4,
        );
    }

    #[test]
    fn of_what_was_cut_off_the_rest_stays() {
        let cut = |length: u64| {
            move |path: &Path| {
                fs_err::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
            }
        };
        let why = |length| Tampered::Cut { length, expected: ALL.len() as u64 };
        check(cut(22), why(22), "start\nenter\naction\n", 3);
        check(cut(19), why(19), "start\nenter\naction\n", 3);
        check(cut(0), why(0), "start\nenter\n", 2);
    }

    #[test]
    fn what_others_wrote_is_taken_out() {
        let write = |text: &'static str| move |path: &Path| fs_err::write(path, text).unwrap();
        check(write("start\nenter\naction\nevaluate\nforged\n"), Tampered::Written, ALL, 4);
        check(write("start\nenter\naction\nforged!!\n"), Tampered::Written, "start\nenter\naction\n", 3);
        check(write("START\nenter\naction\nevaluate\n"), Tampered::Written, "start\nenter\n", 2);
        let why = Tampered::Cut { length: 26, expected: 28 };
        check(write("start\nenter\naction\nforged\n"), why, "start\nenter\naction\n", 3);
    }

    #[test]
    fn a_new_owner_or_another_name_changes_nothing() {
        use std::os::unix::fs::PermissionsExt as _;

        let (directory, path, file, mut witness) = journal();
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        fs_err::hard_link(&path, directory.path().join("other")).unwrap();
        witness.check(&file, &path).unwrap();
        let mut resumed = Witness::of(&file, ALL.len() as u64).unwrap();
        resumed.check(&file, &path).unwrap();
        fs_err::write(&path, "").unwrap();
        let (_, length, seq) = resumed.restore(&file, &path).unwrap();
        assert_eq!((length, seq), (6, 1));
    }
}
