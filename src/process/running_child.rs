//! A child that is talked to: started in a group of its own, and ended with everything in that group.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::guard_pipe::Guard;
use super::signal::{Cancel, EndRequest};
use super::spawn::{GRACE, Program, explain, spawn};
use crate::base::explanation::Explanation;

/// How long a service may take to end once nobody talks to it any more.
const FAREWELL: Duration = Duration::from_secs(2);

/// A running service.
pub struct RunningService {
    child: Child,
    group: Option<Pid>,
    guard: Guard,
    /// Its standard input, until a client takes it.
    pub stdin: Option<ChildStdin>,
    /// Its standard output, until a client takes it.
    pub stdout: Option<ChildStdout>,
    /// What it complains about.
    pub stderr: Option<ChildStderr>,
}

impl RunningService {
    /// Starts a program, or says why it cannot be started.
    pub fn start(program: &Program) -> Result<Self, Explanation> {
        let mut child =
            spawn(program, Stdio::piped()).map_err(|error| Explanation::new(explain(program, &error)))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Self { child, group, guard: program.guard.clone(), stdin, stdout, stderr })
    }

    /// Waits until it ends by itself.
    pub async fn ended(&mut self) -> Option<ExitStatus> {
        self.child.wait().await.ok()
    }

    /// Ends it: it has a moment by itself, then SIGTERM, a grace, and SIGKILL to its group, which nothing survives.
    /// Somebody in a hurry gets it at once.
    pub async fn end(mut self, cancel: &mut Cancel) {
        // Servers that are talked to by standard input take its end as the request to leave.
        self.stdin = None;
        if timeout(FAREWELL, self.gone(cancel)).await.is_err() {
            self.ask_to_end(cancel).await;
        }
        self.kill().await;
    }

    /// Ends it as [`Self::end`] does, without the moment by itself.
    pub async fn stop(mut self, cancel: &mut Cancel) {
        self.ask_to_end(cancel).await;
        self.kill().await;
    }

    async fn ask_to_end(&mut self, cancel: &mut Cancel) {
        self.signal(Signal::TERM);
        let _late = timeout(GRACE, self.gone(cancel)).await;
    }

    async fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _late = timeout(FAREWELL, self.child.wait()).await;
        self.guard.ended(self.group.map(|group| group.as_raw_nonzero().get().unsigned_abs()));
    }

    /// Waits until it is gone, or until somebody cannot wait.
    async fn gone(&mut self, cancel: &mut Cancel) {
        tokio::select! {
            _ = self.child.wait() => {}
            () = in_a_hurry(cancel) => {}
        }
    }

    /// Signals the group, which may be gone already.
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            let _gone = kill_process_group(group, signal);
        }
    }
}

async fn in_a_hurry(cancel: &mut Cancel) {
    let mut known = cancel.request();
    while !matches!(known, EndRequest::Now(_)) {
        known = cancel.differs_from(known).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;
    use crate::process::spawn::program;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    #[test]
    fn a_service_is_talked_to_and_ends_when_nobody_does() {
        block_on(async {
            let mut service =
                RunningService::start(&program("while read line; do echo \"got $line\"; done")).unwrap();
            let mut stdin = service.stdin.take().unwrap();
            stdin.write_all(b"one\n").await.unwrap();
            let mut answers = BufReader::new(service.stdout.take().unwrap()).lines();
            assert_eq!(answers.next_line().await.unwrap().as_deref(), Some("got one"));
            drop(stdin);
            assert_eq!(service.ended().await.and_then(|status| status.code()), Some(0));
        });
    }

    #[test]
    fn nothing_of_a_stubborn_service_survives() {
        block_on(async {
            let mut service = RunningService::start(&program(
                "trap '' TERM; sleep 97.531 & echo $!; while :; do sleep 1; done",
            ))
            .unwrap();
            let mut answers = BufReader::new(service.stdout.take().unwrap()).lines();
            let grandchild: i32 = answers.next_line().await.unwrap().unwrap().parse().unwrap();
            let (ask, mut cancel) = Cancel::channel();
            ask.send_replace(EndRequest::Now(crate::process::signal::EndSignal::Int.into()));
            service.end(&mut cancel).await;
            let pid = Pid::from_raw(grandchild).unwrap();
            for _ in 0..200 {
                if rustix::process::test_kill_process(pid).is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            panic!("{grandchild} is still there");
        });
    }

    #[test]
    fn a_program_that_is_not_there_is_said() {
        let missing = Program { argv: vec!["no-such-program".into()], ..program("") };
        let why = RunningService::start(&missing).err();
        assert_eq!(
            why.as_ref().map(Explanation::as_str),
            Some("cannot start `no-such-program`: no such program on PATH")
        );
    }
}
