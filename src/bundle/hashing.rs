//! Digests of what passes by, on its way out or in.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

/// Feeds a digest with what is written.
pub(super) struct Hashing<'d>(pub(super) &'d mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads, and feeds a digest with what was read.
pub(super) struct HashedReader<'d, R> {
    pub(super) reader: R,
    pub(super) digest: &'d mut Sha256,
}

impl<R: Read> Read for HashedReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}
