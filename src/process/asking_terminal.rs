//! The terminal on which a person can be asked while a run goes on. Nothing waits here, so that time and signals count.

use std::io::{self, IsTerminal as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A line longer than this comes in parts. Linux itself keeps no longer one of a terminal.
const LINE: usize = 4096;

/// Tells whether somebody can type.
pub fn is_there() -> bool {
    io::stdin().is_terminal()
}

/// Returns what was typed, up to the end of a line, if there is something; empty when the terminal is closed.
pub fn typed() -> io::Result<Option<String>> {
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut ready, Some(&at_once))? == 0 {
        return Ok(None);
    }
    let mut line = [0; LINE];
    // Past the buffer of `Stdin`: what lies in there, `poll` does not see.
    let read = rustix::io::read(&stdin, &mut line)?;
    Ok(Some(String::from_utf8_lossy(&line[..read]).into_owned()))
}
