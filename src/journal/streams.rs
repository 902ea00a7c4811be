//! Stores streams that are too long for the journal in files beside it, named by the event that has their ends. The
//! event has the digest of the file as well, so that a changed file is noticed.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::base::sum::Sum;
use crate::engine::event::Event;
use crate::evaluate::observation::{StoredText, Stream};
use crate::files::read;

/// The longest stream that is read, in bytes, whatever the journal says.
// As much as all streams of a run may have together (`MOST_STORED`).
const MAX_STREAM: u64 = 1024 * read::MIB;

use super::fault;
use super::reader::{self, ReadError};

/// The bytes that are written at once.
const PIECE: usize = 256 * 1024;

/// Names the file of a stream.
pub(super) fn path(directory: &Path, event: u64, stream: Stream) -> PathBuf {
    directory.join(file_name(event, stream))
}

fn file_name(event: u64, stream: Stream) -> String {
    let ending = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    format!("{event:06}.{ending}")
}

/// Writes a stream, and returns the digest of what was written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<Sum> {
    fault::write(text.len() as u64)?;
    let mut file = fs_err::File::create(path)?;
    let mut digest = Sha256::new();
    for piece in text.as_bytes().chunks(PIECE) {
        digest.update(piece);
        file.write_all(piece)?;
    }
    Ok(Sum::end(digest))
}

/// The lengths and digests of stream files from a journal, by file name.
pub struct StreamDigests(BTreeMap<String, StoredText>);

impl StreamDigests {
    /// Reads them from a journal.
    pub fn in_journal(journal: &Path) -> Result<Self, ReadError> {
        let mut named = BTreeMap::new();
        reader::read(journal, |stamped| {
            let Event::ActionComplete(complete) = stamped.event else { return };
            let seen = complete.numbered(stamped.seq).seen;
            for (text, stream) in [(&seen.stdout, Stream::Stdout), (&seen.stderr, Stream::Stderr)] {
                named.extend(text.elsewhere().map(|stored| (file_name(stored.event, stream), stored)));
            }
        })?;
        Ok(Self(named))
    }

    /// Tells whether an event names this file. If none does, the run was killed before it wrote the event.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Removes the entry of a file, and returns how the file differs from it, if it does.
    pub fn take(&mut self, name: &str, length: u64, sum: Option<Sum>) -> Option<String> {
        differs(self.0.remove(name)?, length, sum)
    }

    /// Returns the names that were not removed.
    pub fn left(self) -> impl Iterator<Item = String> {
        self.0.into_keys()
    }
}

/// Returns how a stream differs from what was written.
fn differs(stored: StoredText, length: u64, sum: Option<Sum>) -> Option<String> {
    if length != stored.length {
        return Some(format!("it has {length} bytes, and had {}", stored.length));
    }
    // A journal from before there were digests has to be believed.
    let was = stored.sum?;
    (sum != Some(was)).then(|| format!("it was changed: its SHA-256 digest is not {was} any more"))
}

/// Reads streams back, each once.
pub struct Streams {
    directory: PathBuf,
    known: HashMap<PathBuf, Arc<String>>,
}

impl Streams {
    /// Makes the reader of a run's streams, which are in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, known: HashMap::new() }
    }

    /// Reads a stream, which has to be what was written.
    pub fn read(&mut self, stored: StoredText, stream: Stream) -> io::Result<Arc<String>> {
        let path = path(&self.directory, stored.event, stream);
        if let Some(known) = self.known.get(&path) {
            return Ok(Arc::clone(known));
        }
        let damaged = |what: &str| {
            let what = format!("{}: {what}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        };
        // Without following links: one in this place could show any file of the machine as an output.
        let metadata = fs_err::symlink_metadata(&path)?;
        if !metadata.is_file() {
            return Err(damaged("it is not a file any more"));
        }
        // The length first, so that a file that has grown is not read only to be refused.
        if let Some(what) = differs(StoredText { sum: None, ..stored }, metadata.len(), None) {
            return Err(damaged(&what));
        }
        let text = read::text(&path, MAX_STREAM)?;
        if let Some(what) = differs(stored, text.len() as u64, Some(Sum::of(text.as_bytes()))) {
            return Err(damaged(&what));
        }
        let text = Arc::new(text);
        self.known.insert(path, Arc::clone(&text));
        Ok(text)
    }
}
