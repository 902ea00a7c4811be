//! Streams that are too long for the journal: in files beside it, named by the event that has their ends.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::evaluate::observation::{Stored, Stream};

/// Names the file of a stream.
pub(super) fn path(directory: &Path, event: u64, stream: Stream) -> PathBuf {
    let ending = match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    };
    directory.join(format!("{event:06}.{ending}"))
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

    /// Reads a stream. One that is not as long as it was is another one.
    pub fn read(&mut self, stored: Stored, stream: Stream) -> io::Result<Arc<String>> {
        let path = path(&self.directory, stored.event, stream);
        if let Some(known) = self.known.get(&path) {
            return Ok(Arc::clone(known));
        }
        let text = fs_err::read_to_string(&path)?;
        if text.len() as u64 != stored.length {
            let (is, was) = (text.len(), stored.length);
            let what = format!("`{}` has {is} bytes, and had {was}", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let text = Arc::new(text);
        self.known.insert(path, Arc::clone(&text));
        Ok(text)
    }
}
