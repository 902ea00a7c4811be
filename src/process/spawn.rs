//! One child in a process group of its own: started, read, timed, and never left behind.
//!
//! The child is the leader of its group. It ends by itself, or by SIGTERM to the group, a grace, and SIGKILL to
//! the group. The last KILL always comes, so that nothing the child left in its group survives it. A grandchild that
//! left the group may hold the pipes open; it is drained for a moment and then left alone.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Access;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep_until};

use super::capture::{Capture, KEPT};
use super::guard_pipe::Guard;
use super::signal::{Cancel, EndRequest};
use crate::evaluate::observation::{Observation, Stop, Stream, TIMEOUT_CODE};

/// How long a group may take to obey SIGTERM.
pub const GRACE: Duration = Duration::from_secs(5);

/// How long the pipes are read after the child has exited, twice: before and after the last KILL.
const DRAIN: Duration = Duration::from_millis(100);

/// How long a program may take to end that has said its last word.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a killed child may take to vanish; longer only happens in a broken kernel or file system.
const REAP: Duration = Duration::from_secs(2);

/// What to start.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// The directory it starts in, if that is not our own.
    ///
    /// Naming it costs: the child is then started with `fork` instead of the much cheaper `posix_spawn`.
    pub cwd: Option<PathBuf>,
    /// What it can read from standard input; the end of the file when there is nothing.
    pub stdin: Option<Vec<u8>>,
    /// Who ends its group if this process cannot.
    pub guard: Guard,
}

/// What the reader of an output makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There may be more.
    More,
    /// There may be more, and there has to be before this moment, if one is named.
    Before(Option<Instant>),
    /// The program has said its last word. It gets a moment to end, and counts as having ended well.
    Enough,
    /// The program has to be stopped.
    Stop(Stop),
}

/// How long it may run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessLimits {
    /// The time after which it is stopped, and what that means.
    pub end: Option<(Duration, Stop)>,
    /// The silence after which it is stopped.
    pub idle: Option<Duration>,
    /// The time by which its reader has to have heard of it. The reader then says until when it may be silent.
    pub first: Option<Duration>,
}

/// How a program ended.
pub struct ProcessEnd {
    /// What was seen of it.
    pub seen: Observation,
    /// Whether it ended by itself and left processes in its group, which were ended with it.
    pub left_others: bool,
}

/// Runs a program to its end. Every chunk of output is handed on as it comes; the end of each stream is kept.
pub async fn run(
    program: &Program,
    limits: ProcessLimits,
    cancel: &mut Cancel,
    output: &mut dyn FnMut(Stream, &[u8]) -> Heard,
) -> Observation {
    run_group(program, limits, cancel, output).await.seen
}

/// Runs a program to its end, and tells what it left at work.
pub async fn run_group(
    program: &Program,
    limits: ProcessLimits,
    cancel: &mut Cancel,
    output: &mut dyn FnMut(Stream, &[u8]) -> Heard,
) -> ProcessEnd {
    let started = Instant::now();
    let stdin = if program.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
    let child = match spawn(program, stdin) {
        Ok(child) => child,
        Err(error) => {
            let seen = Observation::not_started(explain(program, &error));
            return ProcessEnd { seen, left_others: false };
        }
    };
    let group = child.id();
    let end = Running::new(child, limits, started).attend(program.stdin.as_deref(), cancel, output).await;
    program.guard.ended(group);
    end
}

/// Starts a program in a group of its own.
pub(super) fn spawn(program: &Program, stdin: Stdio) -> io::Result<Child> {
    let (name, arguments) = program.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program.executable(name)?);
    if let Some(cwd) = &program.cwd {
        command.current_dir(cwd);
    }
    command
        // The path was looked up; programs such as busybox go by the name that they were called by.
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(program.env.iter().map(|(key, value)| (key, value)))
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .inspect(|child| program.guard.began(child.id()))
}

impl Program {
    /// Finds the program on the child's own `PATH`. Left to the standard library, a changed `PATH` also costs a `fork`.
    fn executable(&self, name: &str) -> io::Result<PathBuf> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let path = self.env.iter().find(|(key, _)| key == "PATH").map(|(_, path)| path.as_str());
        find(name, path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_there(&self, name: &str) -> bool {
        let from = self.cwd.as_deref().unwrap_or(Path::new(""));
        self.executable(name).is_ok_and(|path| from.join(path).is_file())
    }
}

/// Finds a program on a `PATH`, or on that of a system where none is set.
pub fn find(name: &str, path: Option<&str>) -> Option<PathBuf> {
    // An empty entry of `PATH` means the working directory, and so a program of the checkout.
    let directories = path.unwrap_or("/usr/bin:/bin").split(':').filter(|directory| !directory.is_empty());
    let mut candidates = directories.map(|directory| Path::new(directory).join(name));
    // To `access`, a directory that may be entered is executable.
    candidates.find(|path| rustix::fs::access(path, Access::EXEC_OK).is_ok() && path.is_file())
}

/// Says why a program could not be started.
pub(super) fn explain(program: &Program, error: &io::Error) -> String {
    let name = program.argv.first().map_or("", String::as_str);
    if error.kind() != io::ErrorKind::NotFound {
        return format!("cannot start `{name}`: {error}");
    }
    // The system says no more than that something is not there.
    let why = match &program.cwd {
        Some(cwd) if !cwd.is_dir() => format!("there is no directory `{}` any more", cwd.display()),
        Some(_) | None if program.is_there(name) => {
            "the interpreter or loader that it needs is not there".to_owned()
        }
        Some(_) | None if name.contains('/') => "there is no such file".to_owned(),
        Some(_) | None => "no such program on PATH".to_owned(),
    };
    format!("cannot start `{name}`: {why}")
}

/// Writes what a child can read and closes the pipe. A child that does not want to read it all is not to blame.
async fn write(stdin: Option<ChildStdin>, input: Option<&[u8]>) {
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        let _unread = stdin.write_all(input).await;
    }
}

/// Where a child stands between its start and its last trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildPhase {
    /// It runs.
    Running,
    /// It has said its last word, and is ended at this time.
    Done { until: Instant },
    /// It was asked to end, and is killed at this time.
    Asked { kill_at: Instant },
    /// Its group was killed; waiting for it to vanish.
    Killed { give_up_at: Instant },
    /// It exited; its pipes are read until this time, then its group is killed.
    Exited { drain_until: Instant },
    /// The group is gone too; what is left in the pipes is read until this time.
    Draining { until: Instant },
}

struct Running {
    child: Child,
    group: Option<Pid>,
    limits: ProcessLimits,
    started: Instant,
    last_output: Instant,
    /// When it is stopped, unless its reader hears more of it.
    silent_until: Option<Instant>,
    phase: ChildPhase,
    stop: Option<Stop>,
    is_done: bool,
    /// Whether it had to be asked to end after that.
    is_sent_off: bool,
    /// Whether something of its group outlived it.
    left_others: bool,
    status: Option<ExitStatus>,
}

impl Running {
    fn new(child: Child, limits: ProcessLimits, started: Instant) -> Self {
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let phase = ChildPhase::Running;
        Self {
            child,
            group,
            limits,
            started,
            last_output: started,
            silent_until: limits.first.map(|first| started + first),
            phase,
            stop: None,
            is_done: false,
            is_sent_off: false,
            left_others: false,
            status: None,
        }
    }

    async fn attend(
        mut self,
        input: Option<&[u8]>,
        cancel: &mut Cancel,
        output: &mut dyn FnMut(Stream, &[u8]) -> Heard,
    ) -> ProcessEnd {
        let writing = write(self.child.stdin.take(), input);
        tokio::pin!(writing);
        let mut is_writing = input.is_some();
        let mut stdout = Pipe::new(Stream::Stdout, self.child.stdout.take());
        let mut stderr = Pipe::new(Stream::Stderr, self.child.stderr.take());
        let mut known = EndRequest::None;
        loop {
            let finished = self.status.is_some() && stdout.is_closed() && stderr.is_closed();
            if finished {
                // A child of it that closed its outputs may still be in the group.
                self.left_others |= self.kill_group();
                break;
            }
            let wake = self.wake_at();
            tokio::select! {
                read = stdout.read(), if !stdout.is_closed() => {
                    self.last_output = Instant::now();
                    let heard = stdout.take(&read, output);
                    self.on_heard(heard);
                }
                read = stderr.read(), if !stderr.is_closed() => {
                    self.last_output = Instant::now();
                    let heard = stderr.take(&read, output);
                    self.on_heard(heard);
                }
                () = &mut writing, if is_writing => is_writing = false,
                status = self.child.wait(), if self.status.is_none() => {
                    // How it ended is lost where somebody else has waited for it. It never counts as having ended well, and
                    // is not waited for again.
                    self.status = Some(status.unwrap_or_else(|_| lost()));
                    self.phase = ChildPhase::Exited { drain_until: Instant::now() + DRAIN };
                }
                request = cancel.differs_from(known) => {
                    known = request;
                    self.on_request(request);
                }
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    if !self.on_time() {
                        break;
                    }
                }
            }
        }
        // Who shows the output may have been held up for longer than the pipes are read.
        stdout.drain(output).await;
        stderr.drain(output).await;
        let left_others = self.left_others && self.stop.is_none() && !self.is_done;
        ProcessEnd { seen: self.observation(stdout.capture, stderr.capture), left_others }
    }

    /// When something has to happen next although nothing was heard.
    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            ChildPhase::Running => {
                let end = self.limits.end.map(|(limit, _)| self.started + limit);
                let idle = self.limits.idle.map(|limit| self.last_output + limit);
                end.into_iter().chain(idle).chain(self.silent_until).min()
            }
            ChildPhase::Done { until: at }
            | ChildPhase::Asked { kill_at: at }
            | ChildPhase::Killed { give_up_at: at }
            | ChildPhase::Exited { drain_until: at }
            | ChildPhase::Draining { until: at } => Some(at),
        }
    }

    /// Acts on passed time; tells whether there is still something to wait for.
    fn on_time(&mut self) -> bool {
        let now = Instant::now();
        match self.phase {
            ChildPhase::Running => {
                if let Some((limit, stop)) = self.limits.end
                    && now >= self.started + limit
                {
                    self.ask_to_end(stop);
                } else if self.limits.idle.is_some_and(|limit| now >= self.last_output + limit) {
                    self.ask_to_end(Stop::IdleTimeout);
                } else if self.silent_until.is_some_and(|until| now >= until) {
                    self.ask_to_end(Stop::Unavailable);
                }
                true
            }
            ChildPhase::Done { until } if now >= until => {
                self.is_sent_off = true;
                self.signal_group(Signal::TERM);
                self.phase = ChildPhase::Asked { kill_at: now + GRACE };
                true
            }
            ChildPhase::Asked { kill_at } if now >= kill_at => {
                self.kill_group();
                self.phase = ChildPhase::Killed { give_up_at: now + REAP };
                true
            }
            ChildPhase::Exited { drain_until } if now >= drain_until => {
                self.left_others |= self.kill_group();
                self.phase = ChildPhase::Draining { until: now + DRAIN };
                true
            }
            ChildPhase::Killed { give_up_at: at } | ChildPhase::Draining { until: at } => now < at,
            ChildPhase::Done { .. } | ChildPhase::Asked { .. } | ChildPhase::Exited { .. } => true,
        }
    }

    fn on_request(&mut self, request: EndRequest) {
        match (request, self.phase) {
            (EndRequest::None, _)
            | (EndRequest::Gently(_), ChildPhase::Asked { .. })
            | (_, ChildPhase::Killed { .. } | ChildPhase::Exited { .. } | ChildPhase::Draining { .. }) => {}
            (EndRequest::Gently(_), ChildPhase::Running | ChildPhase::Done { .. }) => {
                self.ask_to_end(Stop::Cancelled);
            }
            (
                EndRequest::Now(_),
                ChildPhase::Running | ChildPhase::Done { .. } | ChildPhase::Asked { .. },
            ) => {
                // A timeout that came before the signal stays the reason.
                self.stop.get_or_insert(Stop::Cancelled);
                self.kill_group();
                self.phase = ChildPhase::Killed { give_up_at: Instant::now() + REAP };
            }
        }
    }

    fn on_heard(&mut self, heard: Heard) {
        match (heard, self.phase) {
            (Heard::Enough, ChildPhase::Running) => {
                self.is_done = true;
                self.phase = ChildPhase::Done { until: Instant::now() + FAREWELL };
            }
            (Heard::Stop(stop), ChildPhase::Running) => self.ask_to_end(stop),
            (Heard::Before(until), _) => self.silent_until = until,
            (Heard::More | Heard::Enough | Heard::Stop(_), _) => {}
        }
    }

    fn ask_to_end(&mut self, stop: Stop) {
        self.stop = Some(stop);
        self.signal_group(Signal::TERM);
        self.phase = ChildPhase::Asked { kill_at: Instant::now() + GRACE };
    }

    /// Ends what is left of the group; tells whether anything was.
    fn kill_group(&self) -> bool {
        self.signal_group(Signal::KILL)
    }

    /// Signals the group; tells whether there was one. It may be gone already, which is what we want. Its number cannot belong
    /// to anybody else in the moment between the leader's end and this call: process ids are handed out in turn.
    fn signal_group(&self, signal: Signal) -> bool {
        self.group.is_some_and(|group| kill_process_group(group, signal).is_ok())
    }

    fn observation(&self, stdout: Capture, stderr: Capture) -> Observation {
        use std::os::unix::process::ExitStatusExt as _;
        let signal = match self.status {
            Some(status) => status.signal(),
            // It did not even vanish when it was killed.
            None => Some(Signal::KILL.as_raw()),
        };
        let code =
            self.status.and_then(|status| status.code()).or(signal.map(|number| 128 + number)).unwrap_or(1);
        let timed_out = self.stop.is_some_and(|stop| stop != Stop::Cancelled && stop != Stop::Budget);
        let (code, signal) = match signal {
            // We ended it, after it had said that it was done. Who hears the signal may end with a code of its own.
            signal if self.is_done && self.stop.is_none() && (self.is_sent_off || signal.is_some()) => {
                (0, None)
            }
            signal => (code, signal),
        };
        Observation {
            stdout: stdout.into_text(),
            stderr: stderr.into_text(),
            exit_code: if timed_out { TIMEOUT_CODE } else { code },
            signal,
            duration: self.started.elapsed(),
            stop: self.stop,
            failure: None,
            cause: None,
        }
    }
}

/// Returns what stands for an end that nobody can tell any more: that of a process that was killed.
fn lost() -> ExitStatus {
    use std::os::unix::process::ExitStatusExt as _;
    ExitStatus::from_raw(Signal::KILL.as_raw())
}

/// One of the two pipes of a child.
struct Pipe<R> {
    stream: Stream,
    reader: Option<R>,
    buffer: Vec<u8>,
    capture: Capture,
}

/// Most actions print little; the buffer grows with what comes, up to what a pipe holds.
const SMALLEST_READ: usize = 4 * 1024;
const LARGEST_READ: usize = 64 * 1024;

/// What the largest pipe of an unprivileged process holds, so that all of what a child wrote before its end is no more.
const LARGEST_PIPE: usize = 1024 * 1024;

impl<R: AsyncRead + AsFd + Unpin> Pipe<R> {
    fn new(stream: Stream, reader: Option<R>) -> Self {
        Self { stream, reader, buffer: vec![0; SMALLEST_READ], capture: Capture::new(KEPT) }
    }

    fn is_closed(&self) -> bool {
        self.reader.is_none()
    }

    async fn read(&mut self) -> io::Result<usize> {
        match &mut self.reader {
            Some(reader) => reader.read(&mut self.buffer).await,
            None => Ok(0),
        }
    }

    /// Takes what lies in the pipe, and waits for no more.
    async fn drain(&mut self, output: &mut dyn FnMut(Stream, &[u8]) -> Heard) {
        let mut taken = 0;
        while taken < LARGEST_PIPE && self.has_more() {
            let read = self.read().await;
            taken += read.as_ref().map_or(0, |count| *count);
            let _over = self.take(&read, output);
        }
    }

    fn has_more(&self) -> bool {
        let Some(reader) = &self.reader else { return false };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(reader, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    fn take(&mut self, read: &io::Result<usize>, output: &mut dyn FnMut(Stream, &[u8]) -> Heard) -> Heard {
        match read {
            Ok(0) | Err(_) => {
                self.reader = None;
                Heard::More
            }
            Ok(count) => {
                let count = *count;
                let bytes = &self.buffer[..count];
                self.capture.push(bytes);
                let heard = output(self.stream, bytes);
                if count == self.buffer.len() && count < LARGEST_READ {
                    self.buffer.resize(count * 2, 0);
                }
                heard
            }
        }
    }
}

/// A script of bash, as tests start it.
#[cfg(test)]
pub(super) fn program(script: &str) -> Program {
    Program {
        argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        cwd: None,
        stdin: None,
        guard: Guard::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::signal::EndSignal;

    #[expect(clippy::disallowed_methods, reason = "tests look at the real clock")]
    fn observe(script: &str, limits: ProcessLimits) -> (Observation, Duration) {
        let started = std::time::Instant::now();
        let (_ask, mut cancel) = Cancel::channel();
        let seen = runtime().block_on(run(&program(script), limits, &mut cancel, &mut |_, _| Heard::More));
        (seen, started.elapsed())
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn after(millis: u64, stop: Stop) -> ProcessLimits {
        ProcessLimits { end: Some((Duration::from_millis(millis), stop)), idle: None, first: None }
    }

    #[test]
    fn output_and_exit_code_are_seen() {
        let (seen, _) = observe("echo out; echo err >&2; exit 3", ProcessLimits::default());
        assert_eq!((seen.stdout.as_str(), seen.stderr.as_str(), seen.exit_code), ("out\n", "err\n", 3));
        assert_eq!((seen.stop, seen.signal), (None, None));
    }

    #[test]
    fn a_command_that_reads_stdin_gets_its_end_at_once() {
        let (seen, _) = observe("cat; echo done", ProcessLimits::default());
        assert_eq!(seen.stdout.as_str(), "done\n");
    }

    #[test]
    fn death_by_signal_is_128_and_the_number() {
        let (seen, _) = observe("kill -9 $$", ProcessLimits::default());
        assert_eq!((seen.exit_code, seen.signal, seen.crashed()), (137, Some(9), true));
    }

    /// Some hosts stay when they are done, and end with a code of their own when they are sent off.
    #[test]
    fn who_was_done_ends_well_however_it_ends() {
        let done = |script: &str| {
            let (_ask, mut cancel) = Cancel::channel();
            let (program, limits) = (program(script), ProcessLimits::default());
            runtime().block_on(run(&program, limits, &mut cancel, &mut |_, _| Heard::Enough))
        };
        for leave in ["exit 143", "exit 1"] {
            let seen = done(&format!("trap '{leave}' TERM; echo done; while :; do sleep 0.05; done"));
            assert_eq!((seen.exit_code, seen.signal, seen.stop), (0, None, None), "{leave}");
        }
        // By itself, it ends as it wants to.
        assert_eq!(done("echo done; exit 3").exit_code, 3);
    }

    #[test]
    fn a_timeout_ends_the_group() {
        let (seen, took) = observe("sleep 300 & sleep 300", after(100, Stop::Timeout));
        assert_eq!((seen.exit_code, seen.stop), (124, Some(Stop::Timeout)));
        assert!(took < Duration::from_mins(1), "{took:?}");
    }

    #[test]
    fn output_before_a_timeout_is_kept_even_without_a_line_end() {
        let (seen, _) = observe("printf partial; sleep 30", after(300, Stop::Timeout));
        assert_eq!(seen.stdout.as_str(), "partial");
    }

    #[test]
    fn who_ignores_the_request_is_killed_after_the_grace() {
        let (seen, took) = observe("trap '' TERM; while :; do sleep 0.05; done", after(50, Stop::Timeout));
        assert_eq!((seen.exit_code, seen.signal), (124, Some(9)));
        assert!(took >= GRACE, "{took:?}");
    }

    #[test]
    fn silence_ends_an_action_and_output_keeps_it() {
        let idle =
            |millis| ProcessLimits { end: None, idle: Some(Duration::from_millis(millis)), first: None };
        let (seen, _) = observe("sleep 30", idle(100));
        assert_eq!(seen.stop, Some(Stop::IdleTimeout));
        let (seen, _) = observe("for i in 1 2 3 4; do echo $i; sleep 0.3; done", idle(1500));
        assert_eq!((seen.exit_code, seen.stop), (0, None));
    }

    #[test]
    fn a_grandchild_in_the_group_neither_holds_the_state_up_nor_survives() {
        let (seen, took) = observe("sleep 300 & echo $!", ProcessLimits::default());
        assert_eq!(seen.exit_code, 0);
        assert!(took < Duration::from_mins(1), "{took:?}");
        let pid: i32 = seen.stdout.as_str().trim().parse().unwrap();
        let alive =
            || std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
        // A killed process vanishes when it is next scheduled, not when the signal is sent.
        assert!((0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !alive()
        }));
    }

    #[test]
    fn a_grandchild_outside_the_group_that_holds_the_pipe_is_left() {
        let (seen, took) = observe("setsid sleep 30 & echo now", ProcessLimits::default());
        assert_eq!((seen.stdout.as_str(), seen.exit_code), ("now\n", 0));
        assert!(took < Duration::from_secs(20), "{took:?}");
    }

    #[test]
    fn a_command_that_closes_its_streams_is_waited_for() {
        let (seen, took) = observe("exec >&- 2>&-; sleep 0.5; exit 7", ProcessLimits::default());
        assert_eq!(seen.exit_code, 7);
        assert!(took >= Duration::from_millis(500));
    }

    #[test]
    fn much_output_is_bounded_and_its_end_kept() {
        let (seen, _) =
            observe("head -c 20000000 /dev/zero | tr '\\0' x; printf END", ProcessLimits::default());
        assert_eq!(seen.stdout.bytes(), 20_000_003);
        assert!(seen.stdout.as_str().len() == KEPT && seen.stdout.as_str().ends_with("xEND"));
    }

    #[test]
    fn a_flood_does_not_defeat_the_timeout() {
        let (seen, took) = observe("yes", after(200, Stop::Timeout));
        assert_eq!(seen.stop, Some(Stop::Timeout));
        assert!(took < Duration::from_mins(1), "{took:?}");
    }

    #[test]
    fn a_missing_program_is_an_observation() {
        let (_ask, mut cancel) = Cancel::channel();
        let missing = Program { argv: vec!["no-such-program".into()], ..program("") };
        let seen =
            runtime().block_on(run(&missing, ProcessLimits::default(), &mut cancel, &mut |_, _| Heard::More));
        assert_eq!(seen.failure.as_deref(), Some("cannot start `no-such-program`: no such program on PATH"));
    }

    #[test]
    fn what_a_child_wrote_is_read_by_whoever_is_slow_although_others_hold_the_pipe() {
        let (_ask, mut cancel) = Cancel::channel();
        let script = program("setsid sleep 30 & head -c 60000 /dev/zero | tr '\\0' x; echo END");
        let mut slow = |_: Stream, _: &[u8]| {
            std::thread::sleep(2 * DRAIN);
            Heard::More
        };
        let seen = runtime().block_on(run(&script, ProcessLimits::default(), &mut cancel, &mut slow));
        assert_eq!(seen.stdout.as_str().len(), 60_004);
        assert!(seen.stdout.as_str().ends_with("xEND\n"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        use std::os::unix::fs::PermissionsExt as _;

        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        fs_err::write(&script, "#!/nonexistent/python\n").unwrap();
        fs_err::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let why = |name: &str, cwd: Option<&str>| {
            let program = Program {
                argv: vec![name.to_owned()],
                cwd: cwd.map(|cwd| directory.path().join(cwd)),
                ..program("")
            };
            let error = runtime().block_on(async { spawn(&program, Stdio::null()).map(drop) }).unwrap_err();
            let said = explain(&program, &error);
            said.split_once("`: ").map(|(_, why)| why.to_owned()).unwrap()
        };
        assert_eq!(why("./script", Some("")), "the interpreter or loader that it needs is not there");
        assert_eq!(why("./absent", Some("")), "there is no such file");
        assert_eq!(why("absent", None), "no such program on PATH");
        assert!(why("sh", Some("gone")).starts_with("there is no directory `"));
    }

    #[test]
    fn a_request_ends_it_gently_and_a_second_one_at_once() {
        let cancelled = |script: &str, requests: &[EndRequest]| {
            let (ask, mut cancel) = Cancel::channel();
            let requests = requests.to_vec();
            runtime().block_on(async {
                let asking = async {
                    for request in requests {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        ask.send_replace(request);
                    }
                    std::future::pending::<()>().await;
                };
                let program = program(script);
                let mut ignored = |_: Stream, _: &[u8]| Heard::More;
                tokio::select! {
                    seen = run(&program, ProcessLimits::default(), &mut cancel, &mut ignored) => seen,
                    () = asking => unreachable!(),
                }
            })
        };
        let seen = cancelled(
            "trap 'exit 9' TERM; while :; do sleep 0.05; done",
            &[EndRequest::Gently(EndSignal::Int.into())],
        );
        assert_eq!((seen.exit_code, seen.stop), (9, Some(Stop::Cancelled)));
        let stubborn = "trap '' TERM; while :; do sleep 0.05; done";
        let seen = cancelled(
            stubborn,
            &[EndRequest::Gently(EndSignal::Int.into()), EndRequest::Now(EndSignal::Int.into())],
        );
        assert_eq!((seen.exit_code, seen.stop), (137, Some(Stop::Cancelled)));
        assert!(seen.duration < GRACE);
    }
}
