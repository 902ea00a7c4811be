//! Moves the lines of a conversation with an agent that is talked to while it works: from its standard output to the
//! conversation, and from there to its standard input. What the lines mean is decided in [`crate::host`].

use std::cell::RefCell;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::assembly::Assembly;
use super::complaints::Complaints;
use super::lines::LineCollector;
use super::ticking::{show, while_ticking};
use super::world::World;
use crate::base::redact::Redactor;
use crate::base::time::human;
use crate::engine::request::Setting;
use crate::evaluate::model::Usage;
use crate::evaluate::observation::{Observation, Stop, Stream, TIMEOUT_CODE, Text};
use crate::host::{Failure, HostConversation};
use crate::process::clock::Clock;
use crate::process::running_child::RunningService;
use crate::process::signal::{Cancel, EndRequest};
use crate::process::spawn::Program;
use crate::report::Sinks;

/// How long an agent may take to answer that it has stopped its work.
const LEAVE: Duration = Duration::from_secs(2);

/// How long is read what a program printed before it ended, where something that it started holds its output open.
const DRAIN: Duration = Duration::from_millis(200);

/// An agent that leaves more than this unread does not read.
const MOST_UNREAD: usize = 64 * 1024 * 1024;

/// How much is read at once.
const READ: usize = 64 * 1024;

/// Talks to an agent until it has answered, or there is a reason not to wait for it, and ends its process.
pub(super) async fn talk(
    conversation: Box<dyn HostConversation>,
    program: &Program,
    setting: &Setting,
    is_over: &dyn Fn(&Usage) -> bool,
    world: &mut World,
) -> (Observation, Box<dyn HostConversation>) {
    let clock = Clock::start();
    let mut service = match RunningService::start(program) {
        Ok(service) => service,
        Err(why) => return (Observation::not_started(why), conversation),
    };
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (service.stdin.take(), service.stdout.take(), service.stderr.take())
    else {
        return (Observation::not_started("its pipes are not there"), conversation);
    };
    // In a cell, because the sinks are shown lines in one branch of a wait and told of the time in
    // another.
    let sinks = RefCell::new(&mut world.sinks);
    let mut pump = Pump {
        conversation,
        stdin: Some(stdin),
        unread: Vec::new(),
        stdout: Some(stdout),
        stderr: Some(stderr),
        assembly: Assembly::default(),
        spoken: LineCollector::new(),
        complaints: Complaints::new(),
        last: Instant::now(),
        start: world.agents.patience.unreached,
        redactor: &world.redactor,
        sinks: &sinks,
    };
    let (stop, exit_code) =
        while_ticking(&sinks, pump.attend(service, setting, is_over, &mut world.cancel)).await;
    let Pump { conversation, complaints, .. } = pump;
    let seen = Observation {
        stdout: Text::whole(conversation.said()),
        stderr: Text::whole(complaints.kept()),
        duration: clock.elapsed(),
        stop,
        ..Observation::exited(exit_code, "")
    };
    (seen, conversation)
}

/// The two ends of a conversation.
struct Pump<'p, 's> {
    conversation: Box<dyn HostConversation>,
    stdin: Option<ChildStdin>,
    /// What the agent has not read yet.
    unread: Vec<u8>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    assembly: Assembly,
    spoken: LineCollector,
    complaints: Complaints,
    /// When the agent said something the last time.
    last: Instant,
    /// How long it may take until it can be prompted.
    start: Duration,
    redactor: &'p Redactor,
    sinks: &'p RefCell<&'s mut Sinks>,
}

impl Pump<'_, '_> {
    /// Talks, ends the process, and reads what it still says; returns why it was stopped, and how it ended.
    async fn attend(
        &mut self,
        mut service: RunningService,
        setting: &Setting,
        is_over: &dyn Fn(&Usage) -> bool,
        cancel: &mut Cancel,
    ) -> (Option<Stop>, i32) {
        let (stop, status) = self.converse(&mut service, setting, is_over, cancel).await;
        // The end of its input tells an agent to end. Updates may follow its answer, so it is heard until then.
        self.stdin = None;
        let ending = async {
            match stop {
                Some(_) => service.stop(cancel).await,
                None => service.end(cancel).await,
            }
        };
        tokio::pin!(ending);
        // It is read while it ends, or a full pipe would keep it from ending.
        loop {
            tokio::select! {
                () = &mut ending => break,
                () = self.exchange(), if self.is_open() => {}
            }
        }
        self.drain().await;
        self.finish();
        let exit_code = match (stop, status) {
            // The codes of a shell, so that this end looks like that of any other action.
            (Some(Stop::Cancelled), _) => 130,
            (Some(Stop::Budget), _) => 1,
            (Some(_), _) => TIMEOUT_CODE,
            (None, Some(code)) => code,
            // It was ended by us, after it had answered.
            (None, None) => 0,
        };
        (stop, exit_code)
    }

    /// Talks until the agent has answered, has ended, or has to be stopped.
    async fn converse(
        &mut self,
        service: &mut RunningService,
        setting: &Setting,
        is_over: &dyn Fn(&Usage) -> bool,
        cancel: &mut Cancel,
    ) -> (Option<Stop>, Option<i32>) {
        let started = Instant::now();
        let mut left = None;
        let mut known = EndRequest::None;
        loop {
            // One that answered while it was told to stop has answered, and still counts as
            // stopped.
            if self.conversation.is_done() {
                return (left.map(|(stop, _)| stop), None);
            }
            let mut stop = None;
            let wake = left.map_or_else(|| self.wake_at(started, setting), |(_, until)| Some(until));
            tokio::select! {
                () = self.exchange(), if self.is_open() => {
                    if left.is_none() && is_over(self.conversation.usage()) {
                        stop = Some(Stop::Budget);
                    }
                }
                status = service.ended() => {
                    self.drain().await;
                    // An agent may have answered in the last thing that it printed.
                    let broke_off = !self.conversation.is_done();
                    return (left.map(|(stop, _)| stop), broke_off.then(|| status.map_or(1, code)));
                }
                request = cancel.differs_from(known) => {
                    known = request;
                    match request {
                        // A second request does not wait for an answer to the first.
                        EndRequest::Now(_) => return (Some(Stop::Cancelled), None),
                        EndRequest::Gently(_) | EndRequest::None if left.is_some() => {}
                        EndRequest::Gently(_) => stop = Some(Stop::Cancelled),
                        EndRequest::None => {}
                    }
                }
                () = sleep_until(wake.unwrap_or(started)), if wake.is_some() => {
                    if let Some((stop, _)) = left {
                        return (Some(stop), None);
                    }
                    stop = self.late(started, setting);
                }
            }
            if let Some(stop) = stop {
                // Told to stop, it can still say what it did; the process is ended only if it does
                // not.
                if !self.conversation.leave() {
                    return (Some(stop), None);
                }
                left = Some((stop, Instant::now() + LEAVE));
            }
        }
    }

    /// When something has to happen although nothing was heard.
    fn wake_at(&self, started: Instant, setting: &Setting) -> Option<Instant> {
        let end = setting.end.map(|(limit, _)| started + limit);
        let idle = setting.idle.map(|limit| self.last.max(self.complaints.last) + limit);
        let start = (!self.conversation.is_under_way()).then_some(started + self.start);
        end.into_iter().chain(idle).chain(start).min()
    }

    /// Says why the agent is late. One that does not begin is not set up.
    fn late(&mut self, started: Instant, setting: &Setting) -> Option<Stop> {
        let now = Instant::now();
        match setting.end {
            Some((limit, stop)) if now >= started + limit => Some(stop),
            _ if setting.idle.is_some_and(|limit| now >= self.last.max(self.complaints.last) + limit) => {
                Some(Stop::IdleTimeout)
            }
            _ => {
                let awaited = self.conversation.awaits();
                let why = format!("it did not answer `{awaited}` within {}", human(self.start));
                self.conversation.give_up(Failure::Unavailable(why));
                None
            }
        }
    }

    /// Tells whether anything can still be heard.
    fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// Writes or reads a piece, whatever is possible first. Nothing is lost where the caller stops waiting.
    async fn exchange(&mut self) {
        let words = self.conversation.words();
        if self.stdin.is_some() {
            // Without its input, nobody will read these words.
            self.unread.extend_from_slice(words.as_bytes());
        }
        if self.unread.len() > MOST_UNREAD {
            let why = "it does not read the answers to its requests".to_owned();
            self.conversation.give_up(Failure::Failed(why));
            self.unread.clear();
        }
        let mut buffer = vec![0; READ];
        let Self { stdin, stdout, stderr, unread, complaints, redactor, sinks, .. } = self;
        let (can_write, can_hear, can_read) =
            (stdin.is_some() && !unread.is_empty(), stdout.is_some(), stderr.is_some());
        tokio::select! {
            written = write(stdin, unread), if can_write => {
                if let Some(count) = written {
                    drop(unread.drain(..count));
                } else {
                    *stdin = None;
                    unread.clear();
                }
            }
            heard = read(stdout, &mut buffer), if can_hear => match heard {
                Some(count) => self.hear(&buffer[..count]),
                None => *stdout = None,
            },
            is_open = complain(complaints, stderr, redactor, sinks), if can_read => {
                if !is_open {
                    *stderr = None;
                }
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.last = Instant::now();
        let Self { conversation, assembly, spoken, redactor, sinks, .. } = self;
        assembly.push(bytes, &mut |line| {
            conversation.line(line, &mut |said| {
                spoken.line(said, redactor, &mut |text| show(sinks, Stream::Stdout, text));
            });
        });
    }

    /// Reads what a program that has ended left behind.
    async fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while self.is_open() {
            tokio::select! {
                () = self.exchange() => {}
                () = sleep_until(until) => break,
            }
        }
    }

    fn finish(&mut self) {
        let Self { conversation, assembly, spoken, complaints, redactor, sinks, .. } = self;
        let mut shown = |text: &str| show(sinks, Stream::Stdout, text);
        assembly.finish(&mut |line| {
            conversation.line(line, &mut |said| spoken.line(said, redactor, &mut shown));
        });
        conversation.close(&mut |said| spoken.line(said, redactor, &mut shown));
        spoken.finish(redactor, &mut shown);
        complaints.finish(redactor, sinks);
    }
}

async fn write(stdin: &mut Option<ChildStdin>, unread: &[u8]) -> Option<usize> {
    stdin.as_mut()?.write(unread).await.ok()
}

async fn read(stdout: &mut Option<ChildStdout>, buffer: &mut [u8]) -> Option<usize> {
    stdout.as_mut()?.read(buffer).await.ok().filter(|count| *count > 0)
}

async fn complain(
    complaints: &mut Complaints,
    stderr: &mut Option<ChildStderr>,
    redactor: &Redactor,
    sinks: &RefCell<&mut Sinks>,
) -> bool {
    match stderr {
        Some(stderr) => complaints.read(stderr, redactor, sinks).await,
        None => false,
    }
}

/// Returns the exit code of a process, or what a shell makes of the signal that ended it.
fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    // A process that a signal ended has no exit code of its own.
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1)
}
