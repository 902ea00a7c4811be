//! Signals as a request to end: the first one gently, the second one at once. A lease that is lost asks in the same way.

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::patience::Listening;

/// A signal that ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGINT.
    Int,
    /// SIGTERM.
    Term,
    /// SIGHUP.
    Hup,
    /// SIGQUIT.
    Quit,
    /// SIGXFSZ, which a write beyond the limit for files brings.
    Xfsz,
}

/// What asks a run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAsker {
    /// A signal.
    Signal(EndSignal),
    /// The lease of its scope, which is lost.
    Lease,
}

impl From<EndSignal> for StopAsker {
    fn from(signal: EndSignal) -> Self {
        Self::Signal(signal)
    }
}

/// Whether, and how urgently, somebody wants the run to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndRequest {
    /// Nobody does.
    #[default]
    None,
    /// End in order.
    Gently(StopAsker),
    /// End now, children without grace.
    Now(StopAsker),
}

impl EndRequest {
    /// Returns what is asked after one more signal. The first one names the outcome, the second one only hurries; that
    /// one more write failed does not.
    fn after(self, received: EndSignal) -> Self {
        match (self, received) {
            (Self::None, _) => Self::Gently(received.into()),
            (asked, EndSignal::Xfsz) => asked,
            (Self::Gently(first) | Self::Now(first), _) => Self::Now(first),
        }
    }
}

/// What may ask a run to end because its time is over, whether anybody is told or not: a process that was stopped for an
/// hour hears of it with its first look.
pub trait Fence: fmt::Debug + Send + Sync {
    /// Returns what is asked now.
    fn request(&self) -> EndRequest;
    /// Returns the time until more may be asked, if nothing happens before.
    fn left(&self) -> Duration;
}

/// The longest time between two looks at a fence: the timers of a machine that sleeps do not go on.
const LOOK: Duration = Duration::from_secs(1);

/// The shortest one.
const SHORTEST_LOOK: Duration = Duration::from_millis(5);

/// Follows the requests to end.
#[derive(Clone, Debug)]
pub struct Cancel {
    asked: watch::Receiver<EndRequest>,
    fence: Option<Arc<dyn Fence>>,
}

impl Cancel {
    /// Makes one that never asks, with the handle that could.
    pub fn channel() -> (watch::Sender<EndRequest>, Self) {
        let (sender, receiver) = watch::channel(EndRequest::None);
        (sender, Self { asked: receiver, fence: None })
    }

    /// Returns the same that also follows a fence.
    #[must_use]
    pub fn fenced(self, fence: Option<Arc<dyn Fence>>) -> Self {
        Self { fence, ..self }
    }

    /// Returns the request in force.
    pub fn request(&self) -> EndRequest {
        let told = *self.asked.borrow();
        let fenced = self.fence.as_ref().map_or(EndRequest::None, |fence| fence.request());
        match (told, fenced) {
            (told, EndRequest::None) | (told @ EndRequest::Now(_), _) => told,
            (EndRequest::None, fenced) => fenced,
            (EndRequest::Gently(asker), EndRequest::Gently(_)) => EndRequest::Gently(asker),
            (EndRequest::Gently(asker), EndRequest::Now(_)) => EndRequest::Now(asker),
        }
    }

    /// Returns what asks the run to end, if something does.
    pub fn asker(&self) -> Option<StopAsker> {
        match self.request() {
            EndRequest::None => None,
            EndRequest::Gently(asker) | EndRequest::Now(asker) => Some(asker),
        }
    }

    /// Tells whether the run is to end.
    pub fn is_asked(&self) -> bool {
        self.request() != EndRequest::None
    }

    /// Returns the signal that asked, if one did.
    pub fn signal(&self) -> Option<EndSignal> {
        match self.asker() {
            Some(StopAsker::Signal(signal)) => Some(signal),
            Some(StopAsker::Lease) | None => None,
        }
    }

    /// Waits until a signal that has arrived is known. Somebody else receives it, and that takes two turns: one in
    /// which the runtime hears of it, and one in which it is received.
    pub async fn catch_up(&self) {
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the request is another than `known`; forever, if no request can come any more.
    pub async fn differs_from(&mut self, known: EndRequest) -> EndRequest {
        let mut is_heard = true;
        loop {
            let request = self.request();
            if request != known {
                return request;
            }
            let look = self.fence.as_ref().map(|fence| fence.left().clamp(SHORTEST_LOOK, LOOK));
            tokio::select! {
                changed = self.asked.changed(), if is_heard => is_heard = changed.is_ok(),
                () = tokio::time::sleep(look.unwrap_or(Duration::ZERO)), if look.is_some() => {}
                else => return std::future::pending().await,
            }
        }
    }
}

/// Listens for signals for as long as the runtime lives. A hang-up that was ignored when we were started, as under
/// `nohup`, stays ignored.
pub fn listen() -> io::Result<Cancel> {
    let (sender, cancel) = Cancel::channel();
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut quit = signal(SignalKind::quit())?;
    // By default this signal kills with a core dump. Once it is listened for, the write fails
    // instead, and the run can say why it ends.
    let mut xfsz = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let mut hup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    let listening = Listening::begin();
    tokio::spawn(async move {
        let _until_the_runtime_ends = listening;
        loop {
            let hangup = async {
                match &mut hup {
                    Some(hup) => hup.recv().await,
                    None => std::future::pending().await,
                }
            };
            let received = tokio::select! {
                _ = int.recv() => EndSignal::Int,
                _ = term.recv() => EndSignal::Term,
                _ = hangup => EndSignal::Hup,
                _ = quit.recv() => EndSignal::Quit,
                _ = xfsz.recv() => EndSignal::Xfsz,
            };
            sender.send_modify(|request| *request = request.after(received));
        }
    });
    Ok(cancel)
}

/// Lets this process hear how its children end, whoever has started it. Where the signal that tells of it is ignored, which
/// whoever is started inherits, the system forgets how a child ended, and nobody can wait for one.
///
/// # Errors
/// The signal cannot be listened for.
pub fn hear_of_children() -> io::Result<()> {
    if ignored().is_some_and(|mask| mask & bit(SignalKind::child()) == 0) {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // The handler stays when the runtime is gone. Who is started inherits none, and so hears of children as usual.
    signal(SignalKind::child()).map(drop)
}

fn ignores_hangup() -> bool {
    ignored().is_some_and(|mask| mask & bit(SignalKind::hangup()) != 0)
}

/// Reads the mask of ignored signals, where the system shows it.
fn ignored() -> Option<u64> {
    let status = fs_err::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

/// Returns the bit of a signal in such a mask: that of signal 1 is the lowest.
fn bit(signal: SignalKind) -> u64 {
    1 << (signal.as_raw_value() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_names_the_end_and_the_second_one_hurries() {
        let asked =
            |signals: &[EndSignal]| signals.iter().fold(EndRequest::None, |asked, one| asked.after(*one));
        assert_eq!(asked(&[EndSignal::Quit]), EndRequest::Gently(EndSignal::Quit.into()));
        assert_eq!(asked(&[EndSignal::Int, EndSignal::Term]), EndRequest::Now(EndSignal::Int.into()));
        assert_eq!(asked(&[EndSignal::Xfsz, EndSignal::Term]), EndRequest::Now(EndSignal::Xfsz.into()));
        // Every write to a file that is full brings one.
        assert_eq!(asked(&[EndSignal::Xfsz; 9]), EndRequest::Gently(EndSignal::Xfsz.into()));
        assert_eq!(asked(&[EndSignal::Term, EndSignal::Xfsz]), EndRequest::Gently(EndSignal::Term.into()));
    }

    /// Time that a test moves on.
    #[derive(Debug, Default)]
    struct TestFence(std::sync::Mutex<EndRequest>);

    impl Fence for TestFence {
        fn request(&self) -> EndRequest {
            *self.0.lock().unwrap()
        }
        fn left(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn a_fence_asks_beside_signals_and_who_asks_first_names_the_end() {
        let fence = Arc::new(TestFence::default());
        let tell = |request| *fence.0.lock().unwrap() = request;
        let (sender, cancel) = Cancel::channel();
        let mut cancel = cancel.fenced(Some(Arc::<TestFence>::clone(&fence)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut next = |known| runtime.block_on(cancel.differs_from(known));
        tell(EndRequest::Gently(StopAsker::Lease));
        assert_eq!(next(EndRequest::None), EndRequest::Gently(StopAsker::Lease));
        tell(EndRequest::Now(StopAsker::Lease));
        assert_eq!(next(EndRequest::Gently(StopAsker::Lease)), EndRequest::Now(StopAsker::Lease));
        let term = StopAsker::Signal(EndSignal::Term);
        sender.send_replace(EndRequest::Gently(term));
        assert_eq!(next(EndRequest::None), EndRequest::Now(term), "the hurry is that of the lease");
        tell(EndRequest::None);
        assert_eq!(next(EndRequest::None), EndRequest::Gently(term));
        // Where no request can come any more, time goes on.
        drop(sender);
        tell(EndRequest::Now(StopAsker::Lease));
        assert_eq!(next(EndRequest::Gently(term)), EndRequest::Now(term));
    }
}
