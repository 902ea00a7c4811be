//! Asks a program something at the start of a run, and waits for it no longer than a person would: an engine that hangs must
//! not hold up the run, nor `doctor`.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::process::clock::Clock;

/// How long a program may take to answer that only has to say something.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// How long one may take that has something to do.
pub(super) const WORK: Duration = Duration::from_mins(1);

/// Runs a program to its end and to that of all that it printed, within one limit for all of it.
///
/// # Errors
/// It cannot be started, or the time is over: then it has ended with everything that it started.
pub(super) fn answer_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    let clock = Clock::start();
    let mut child = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, answers) = channel();
    // Both at once: a program that fills one pipe waits while the other is read.
    read(child.stdout.take(), AnswerStream::Out, sender.clone());
    read(child.stderr.take(), AnswerStream::Err, sender);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        match answers.recv_timeout(limit.saturating_sub(clock.elapsed())) {
            Ok((AnswerStream::Out, bytes)) => stdout = bytes,
            Ok((AnswerStream::Err, bytes)) => stderr = bytes,
            Err(_) => return Err(given_up(&mut child, limit)),
        }
    }
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Output { status, stdout, stderr });
        }
        if limit.saturating_sub(clock.elapsed()).is_zero() {
            return Err(given_up(&mut child, limit));
        }
        // It has nothing more to say, and mostly ends in a moment.
        std::thread::sleep(MOMENT);
    }
}

/// The time between two looks at a program that has said its last word.
const MOMENT: Duration = Duration::from_millis(1);

/// Where a program printed something.
#[derive(Clone, Copy)]
enum AnswerStream {
    Out,
    Err,
}

fn read(
    pipe: Option<impl Read + Send + 'static>,
    printed: AnswerStream,
    sender: Sender<(AnswerStream, Vec<u8>)>,
) {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _cut_off = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _given_up = sender.send((printed, bytes));
    });
}

fn given_up(child: &mut Child, limit: Duration) -> io::Error {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _gone = kill_process_group(group, Signal::KILL);
    }
    let _reaped = child.wait();
    io::Error::new(io::ErrorKind::TimedOut, format!("it did not answer within {} s", limit.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_is_printed_comes_back_with_the_exit_code() {
        let said = answer_within(&mut shell("echo one; echo two >&2; exit 3"), WORK).unwrap();
        assert_eq!(
            (said.status.code(), &*said.stdout, &*said.stderr),
            (Some(3), &b"one\n"[..], &b"two\n"[..])
        );
    }

    #[test]
    fn who_does_not_answer_is_given_up_with_all_that_it_started() {
        let limit = Duration::from_millis(200);
        for script in [
            "trap '' TERM; sleep 600",
            "sleep 600 & wait",
            "sleep 600 & exit 0",
            // It has nothing more to say, and stays.
            "exec >&- 2>&-; sleep 2",
            // The time is that of both outputs together.
            "sleep 0.15; exec >&-; sleep 0.15",
        ] {
            let why = answer_within(&mut shell(script), limit).unwrap_err();
            assert_eq!(why.kind(), io::ErrorKind::TimedOut, "{script}");
        }
    }
}
