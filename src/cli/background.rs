//! `run --background`: starts the program again in a session of its own, and waits until that process
//! reports that its run has begun, so that the caller sees every error that comes before.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::base::advised_command;
use crate::cli::exit;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::environment::{DETACHED, Environment};
use crate::context::error::{Error, Kind};
use crate::context::interrupts::Interrupts;
use crate::context::talk::Watched;
use crate::engine::event::Stamped;
use crate::process::signal::{Cancel, EndRequest, EndSignal, StopAsker};
use crate::report::Sink;

/// The message of the process in the background when its first event is written.
#[derive(Debug, Serialize, Deserialize)]
struct BegunMessage {
    begun: String,
    pid: u32,
}

/// Starts the run in the background, and returns when it has begun or failed to.
pub(in crate::cli) fn start(session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    // Before the child is there, so that no signal is lost in between.
    let interrupts = Interrupts::listen(&session.stop_by)?;
    interrupts.block_on(follow(interrupts.cancel(), output))
}

async fn follow(mut cancel: Cancel, output: &Output) -> Result<u8, Error> {
    let failed =
        // Nothing was run, which is the exit code of a refusal.
        |error: io::Error| Error::failed("cannot start in the background", &error).of_kind(Kind::Refused);
    let mut child = spawn().map_err(failed)?;
    let Some(stdout) = child.stdout.take() else { return Err(failed(io::ErrorKind::BrokenPipe.into())) };
    let mut lines = BufReader::new(stdout).lines();
    let mut known = EndRequest::None;
    loop {
        tokio::select! {
            line = lines.next_line() => match line.map_err(failed)? {
                Some(line) => match serde_json::from_str::<BegunMessage>(&line) {
                    Ok(begun) => {
                        say(&begun, output);
                        return Ok(0);
                    }
                    // What the run says before it begins, such as whom it waits for.
                    Err(_) => output.data(&format!("{line}\n")),
                },
                // The pipe was closed without the message: the process ended before its run began.
                None => return child.wait().await.map(code).map_err(failed),
            },
            request = cancel.differs_from(known) => {
                known = request;
                pass_on(&child, request);
            }
        }
    }
}

/// Starts the same command line again. Until the run begins, its messages go to the caller's standard error.
fn spawn() -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        // Written over in the environment that a child would inherit.
        .envs(crate::process::private::hidden().cloned())
        .env(DETACHED, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
}

fn say(begun: &BegunMessage, output: &Output) {
    let BegunMessage { begun: instance, pid } = begun;
    // Alone on standard output, so that a script can take it; what people read is on the other stream.
    output.data(&format!("{instance}\n"));
    output.talk(&format!(
        "runs in the background as process {pid}\n  follow  {}\n  look    {}\n  end     {}\n",
        advised_command::follow(instance),
        advised_command::status(instance),
        advised_command::stop(instance)
    ));
}

/// Passes on signals to a run that waits for its turn, as if it were in the foreground.
fn pass_on(child: &Child, request: EndRequest) {
    let signal = match request {
        EndRequest::None => return,
        EndRequest::Gently(asker) | EndRequest::Now(asker) => match asker {
            StopAsker::Signal(EndSignal::Int) => Signal::INT,
            StopAsker::Signal(EndSignal::Term) => Signal::TERM,
            StopAsker::Signal(EndSignal::Hup) => Signal::HUP,
            StopAsker::Signal(EndSignal::Quit) => Signal::QUIT,
            StopAsker::Signal(EndSignal::Xfsz) => Signal::XFSZ,
            // Only the run itself has one.
            StopAsker::Lease => return,
        },
    };
    // One without an id has ended, of which its pipe tells.
    if let Some(pid) = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
        let _gone = kill_process(pid, signal);
    }
}

fn code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    // As shells say that a signal has ended a program.
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(exit::ERROR)
}

/// Leaves the session of the caller, and with it the terminal, so that a hang-up there does not reach this process.
pub(in crate::cli) fn leave_session() {
    // `setsid` fails for the leader of a process group, which has left the session already.
    let _left = rustix::process::setsid();
}

/// Tells whether this process is the one in the background.
pub(in crate::cli) fn is_here(env: &Environment) -> bool {
    env.get(DETACHED).is_some()
}

/// Tells the caller with the first event that the run has begun. From then on, writes to the log what would have
/// gone to the terminal.
pub(in crate::cli) struct Announcement {
    line: Option<String>,
    log: PathBuf,
}

impl Announcement {
    pub(in crate::cli) fn new(run: &Watched<'_>) -> Self {
        let begun = BegunMessage { begun: run.instance.to_owned(), pid: std::process::id() };
        Self { line: serde_json::to_string(&begun).ok(), log: run.log.to_owned() }
    }
}

impl Sink for Announcement {
    fn name(&self) -> &'static str {
        "the announcement in the background"
    }

    fn event(&mut self, _event: &Stamped) -> io::Result<()> {
        let Some(line) = self.line.take() else { return Ok(()) };
        let mut stdout = io::stdout().lock();
        // The caller may have exited; that does not stop the run.
        let _gone = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
        redirect(&self.log)
    }
}

fn redirect(log: &Path) -> io::Result<()> {
    // Without the log the output goes nowhere: the pipe to the caller breaks as soon as that ends.
    let log =
        File::options().append(true).open(log).or_else(|_| File::options().write(true).open("/dev/null"))?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}
