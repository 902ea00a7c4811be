//! The guard of a run in CI, or of one that asks an agent: a process of this program that does what is left when the process of the run is killed and
//! no step follows. It ends the actions, gives back the lease and sets the status of the commit. The token reaches it through
//! the pipe.

use std::fs::File;
use std::io::{self, BufRead, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::finish;
use super::next_run::subject;
use super::notify::{KilledNotice, NoticeSender};
use super::publication::wanted;
use crate::ci::Provider;
use crate::ci::reported::{ReportOptions, ReportRequest, ReportedRun};
use crate::context::audience::Audience;
use crate::context::options::RunOptions;
use crate::context::{Session, key_of_run};
use crate::engine::event::Stamped;
use crate::engine::whereabouts::Whereabouts;
use crate::files::read;
use crate::journal::claim::claim_place;
use crate::journal::files::RunFiles;
use crate::lock::{LeaseCharge, Lock};
use crate::machine::NotifyRule;
use crate::process::guard_pipe::{self, Guard};
use crate::process::spawn::GRACE;
use crate::report::Sink;
use crate::session::prepare::left_behind;

/// How long the guard tries to set the status, counted from the kill. Then it is gone.
const PATIENCE: Duration = Duration::from_secs(9);

/// How long the next command waits for a guard that is at work.
// Longer than a guard takes, and short enough that one that hangs does not hold up the job.
const TURN: Duration = Duration::from_secs(15);

/// What the guard has to know from the beginning.
#[derive(Serialize, Deserialize)]
struct GuardCharge {
    /// The CI system, if the run is in one.
    provider: Option<String>,
    loops: PathBuf,
    subject: ReportedRun,
    status: Option<bool>,
    context: Option<String>,
    sha: Option<String>,
    token: Option<String>,
    /// What others are told of the kill.
    #[serde(default)]
    notice: Option<KilledNotice>,
    /// The lease of the run, if it has one.
    #[serde(default)]
    lease: Option<LeaseCharge>,
}

/// The guard of a run, as the run knows it. It is dismissed when this is dropped.
pub(crate) struct Watchman {
    child: Option<Child>,
    pipe: Guard,
    lock: PathBuf,
}

impl Watchman {
    /// Starts the guard of a run, if it needs one. At a terminal a person sees what goes on, but an agent that lives on would
    /// go on spending, and a lease that stays keeps others from their work.
    pub(crate) fn start(
        options: &RunOptions,
        notify: Option<&NotifyRule>,
        asks_agents: bool,
        lock: Option<&Lock>,
        loop_name: &str,
        files: &RunFiles,
        session: &Session<'_>,
    ) -> Option<Self> {
        let provider = match &options.audience {
            Audience::Ci(provider) => Some(provider.name().to_owned()),
            Audience::Person if asks_agents || lock.is_some() => None,
            Audience::Person => return None,
        };
        let program = session.guard.as_ref()?;
        let ReportOptions { status, context, sha, .. } = wanted(&options.commit, session);
        let key = key_of_run::of_run(options, files.stem(), session);
        let sender = NoticeSender {
            notify,
            options,
            instance: files.instance(),
            key: key.as_ref(),
            root: files.loops(),
        };
        let charge = GuardCharge {
            provider,
            loops: files.loops().to_owned(),
            subject: subject(loop_name, files.instance(), key.as_ref(), session),
            status,
            context,
            sha,
            token: session.env.token().map(str::to_owned),
            notice: sender.if_killed(loop_name, session),
            lease: lock.map(Lock::charge),
        };
        match start(program, &charge, files, session) {
            Ok((child, pipe)) => {
                if let Some(lock) = lock {
                    // Each renewal moves the ref of the lease, and the guard can give back only the one that it was told of last.
                    lock.tell(pipe.clone());
                }
                Some(Self { child: Some(child), pipe, lock: lock_file(files) })
            }
            Err(error) => {
                session.talk.warning(&format!("if this process is killed, nobody ends its actions: {error}"));
                None
            }
        }
    }

    /// Returns the end of the pipe for those who start processes.
    pub(crate) fn pipe(&self) -> Guard {
        self.pipe.clone()
    }

    /// Returns the sink that tells the guard where the run is.
    pub(crate) fn sink(&self) -> impl Sink + use<> {
        Places { guard: self.pipe.clone(), place: Whereabouts::default() }
    }
}

impl Drop for Watchman {
    fn drop(&mut self) {
        // Without a goodbye the guard takes the run for killed, which it is.
        if thread::panicking() {
            return;
        }
        self.pipe.goodbye();
        let _absent = std::fs::remove_file(&self.lock);
        // Nobody waits for it, but for a program that embeds runs it must not stay behind as a zombie.
        if let Some(mut child) = self.child.take() {
            let _unreaped = thread::Builder::new().spawn(move || child.wait());
        }
    }
}

fn start(
    program: &[String],
    charge: &GuardCharge,
    files: &RunFiles,
    session: &Session<'_>,
) -> io::Result<(Child, Guard)> {
    let (name, arguments) = program.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut line = serde_json::to_vec(charge)?;
    line.push(b'\n');
    // Locked before there is a guard, and held by it through its output as long as it lives: whoever finds the run killed
    // waits for a guard that has not even come to its first line.
    let held = File::create(lock_file(files))?;
    held.lock()?;
    let mut child = Command::new(name)
        .arg0("ll-loop")
        .args(arguments)
        .env_clear()
        // Other processes of the user can read it in `/proc`, so the token comes through the pipe.
        .envs(session.env.for_actions(false))
        .stdin(Stdio::piped())
        // A step ends when no process holds its output any more.
        .stdout(held)
        .stderr(Stdio::null())
        .spawn()?;
    let mut pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    pipe.write_all(&line)?;
    Ok((child, Guard::on(pipe)?))
}

/// Names the file that the guard holds a lock of while it lives.
fn lock_file(files: &RunFiles) -> PathBuf {
    claim_place::of(&RunFiles::running(files.loops())).join(format!(".{}.guard", files.instance()))
}

/// Waits for the guard of a run that was killed to have done its work.
pub(crate) fn wait_for(files: &RunFiles) {
    let path = lock_file(files);
    let Ok(file) = read::open(&path) else { return };
    let (sender, gone) = channel();
    // In a thread, because nothing ends the wait for a lock in time.
    thread::spawn(move || {
        let _late = sender.send(file.lock_shared().is_ok());
    });
    if gone.recv_timeout(TURN).is_ok() {
        let _absent = std::fs::remove_file(path);
    }
}

/// Tells the guard where the run is.
struct Places {
    guard: Guard,
    place: Whereabouts,
}

impl Sink for Places {
    fn name(&self) -> &'static str {
        "the guard"
    }

    fn event(&mut self, stamped: &Stamped) -> io::Result<()> {
        if stamped.depth == 0
            && self.place.event(&stamped.event)
            && let Some(place) = self.place.words()
        {
            self.guard.is_in(&place);
        }
        Ok(())
    }
}

impl Session<'_> {
    /// Guards a run: returns when the run is over, or when everything is done that its end left to do.
    ///
    /// # Errors
    /// The run did not say what to guard.
    pub fn guard(&self, mut run: impl BufRead) -> io::Result<()> {
        let mut line = String::new();
        run.read_line(&mut line)?;
        let mut charge: GuardCharge = serde_json::from_str(&line)?;
        let files =
            RunFiles::of(&charge.loops, &charge.subject.instance).ok_or(io::ErrorKind::InvalidInput)?;
        // Now, as long as the files of the job are there.
        let last_word = charge.last_word(self);
        let Some(mut left) = guard_pipe::listen(run) else { return Ok(()) };
        // The run may have been killed before it could say that a group began.
        left.groups.extend(left_behind::groups(&files));
        let (sender, told) = channel();
        let text = match &left.place {
            Some(place) => format!("killed in {place}"),
            None => "killed before the first step".to_owned(),
        };
        // While the processes are ended: the runner may not leave time for one after the other.
        let notified = charge.notify(text.clone(), self);
        let is_telling = last_word.is_some();
        if let Some(say) = last_word {
            thread::spawn(move || {
                let _late = sender.send(say(&text));
            });
        }
        let took = guard_pipe::end(&left.groups, GRACE);
        // Only now: with the lease, another run may begin on the same files.
        if let Some(lease) = &charge.lease {
            lease.give_back(&left.lease, self);
        }
        if is_telling && told.recv_timeout(PATIENCE.saturating_sub(took)).is_ok_and(|told| told.is_ok()) {
            finish::status_is_set(&files);
        }
        let _late = notified.map(|notified| notified.recv_timeout(PATIENCE.saturating_sub(took)));
        let _absent = std::fs::remove_file(lock_file(&files));
        Ok(())
    }
}

impl GuardCharge {
    /// Begins to tell whoever wants to know that the run was killed. Returns what says that it is over.
    fn notify(&mut self, sentence: String, session: &Session<'_>) -> Option<Receiver<()>> {
        let notice = self.notice.take()?;
        let (token, env) = (self.token.clone(), session.env.clone());
        let (sender, told) = channel();
        thread::spawn(move || {
            notice.tell(&sentence, token.as_deref(), &env.lookup());
            let _late = sender.send(());
        });
        Some(told)
    }

    /// Prepares to set the status of the commit.
    fn last_word(&self, session: &Session<'_>) -> Option<crate::ci::service::LastWord> {
        let options = ReportOptions {
            status: self.status,
            context: self.context.clone(),
            sha: self.sha.clone(),
            ..ReportOptions::default()
        };
        let env = &session.env.lookup();
        let token = self.token.as_deref();
        Provider::by_name(self.provider.as_deref()?, env)?.last_word(ReportRequest {
            env,
            token,
            options: &options,
            subject: &self.subject,
            is_over: true,
        })
    }
}
