//! Bytes from one socket to another, both ways, until both sides have ended.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

/// A connection, over either kind of socket.
pub(super) trait Connection: Read + Write + Send + Sized + 'static {
    /// Returns a second handle.
    fn twin(&self) -> io::Result<Self>;
    /// Ends one direction, or both.
    fn end(&self, how: Shutdown);
}

impl Connection for TcpStream {
    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self, how: Shutdown) {
        let _gone = self.shutdown(how);
    }
}

impl Connection for UnixStream {
    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self, how: Shutdown) {
        let _gone = self.shutdown(how);
    }
}

/// Carries bytes both ways until both directions have ended.
pub(super) fn carry(one: impl Connection, other: impl Connection) -> io::Result<()> {
    let (from, to) = (one.twin()?, other.twin()?);
    let back = thread::spawn(move || one_way(other, one));
    one_way(from, to);
    let _panicked = back.join();
    Ok(())
}

fn one_way(mut from: impl Connection, mut to: impl Connection) {
    let ended = io::copy(&mut from, &mut to);
    to.end(Shutdown::Write);
    if ended.is_err() {
        // The reader is gone, so reading more is pointless.
        from.end(Shutdown::Both);
        to.end(Shutdown::Both);
    }
}
