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
    /// Has small pieces sent as they come: what waits for the rest of one waits 40 ms for the other side to confirm the first.
    fn send_at_once(&self);
}

impl Connection for TcpStream {
    fn send_at_once(&self) {
        let _slower = self.set_nodelay(true);
    }

    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self, how: Shutdown) {
        let _gone = self.shutdown(how);
    }
}

impl Connection for UnixStream {
    /// It always does.
    fn send_at_once(&self) {}

    fn twin(&self) -> io::Result<Self> {
        self.try_clone()
    }

    fn end(&self, how: Shutdown) {
        let _gone = self.shutdown(how);
    }
}

/// Carries bytes both ways until both directions have ended.
pub(super) fn carry(one: impl Connection, other: impl Connection) -> io::Result<()> {
    one.send_at_once();
    other.send_at_once();
    let (from, to) = (one.twin()?, other.twin()?);
    let back = thread::spawn(move || one_way(other, one));
    one_way(from, to);
    let _panicked = back.join();
    Ok(())
}

fn one_way(mut from: impl Connection, mut to: impl Connection) {
    let ended = io::copy(&mut from, &mut to);
    // The other direction stays open: an answer may come after the whole request.
    to.end(Shutdown::Write);
    if ended.is_err() {
        // The reader is gone, so reading more is pointless.
        from.end(Shutdown::Both);
        to.end(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_is_carried_does_not_wait_for_more() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (inside, _) = listener.accept().unwrap();
        let (door, mut outside) = UnixStream::pair().unwrap();
        let seen = inside.try_clone().unwrap();
        let carrying = thread::spawn(|| carry(inside, door));
        client.write_all(b"asked").unwrap();
        let mut said = [0; 5];
        outside.read_exact(&mut said).unwrap();
        assert!(&said == b"asked" && seen.nodelay().unwrap());
        outside.write_all(b"told").unwrap();
        drop((outside, seen));
        let mut told = String::new();
        client.read_to_string(&mut told).unwrap();
        assert_eq!(told, "told");
        client.shutdown(Shutdown::Both).unwrap();
        carrying.join().unwrap().unwrap();
    }
}
