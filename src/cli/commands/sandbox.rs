//! `ll-loop sandbox-gate` and `ll-loop sandbox-warden`: the two processes beside a confined action. They are started for each
//! of them, so their words are known before the command line is built.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use crate::sandbox::order::{GATE, WARDEN};
use crate::sandbox::{gate, warden};

/// The exit code of a sandbox that did not start. Nobody takes it for that of the action: the gate has left no report.
const NOT_STARTED: u8 = 70;

/// Does what one of them does, where the arguments name one.
pub(crate) fn beside(arguments: &[OsString]) -> Option<ExitCode> {
    let [word, place] = arguments else { return None };
    let does: fn(&Path) -> io::Result<u8> = match word.to_str()? {
        GATE => gate::gate,
        WARDEN => warden::warden,
        _ => return None,
    };
    Some(ExitCode::from(does(Path::new(place)).unwrap_or_else(|error| {
        say(&error);
        NOT_STARTED
    })))
}

#[expect(clippy::print_stderr, reason = "it speaks in the place of an action, without colours or a terminal")]
fn say(error: &io::Error) {
    eprintln!("ll-loop: the sandbox: {error}");
}
