//! Signals as a request to end: the first one gently, the second one at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

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

/// Whether, and how urgently, somebody wants the run to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// Nobody does.
    #[default]
    None,
    /// End in order.
    Gently(EndSignal),
    /// End now, children without grace.
    Now(EndSignal),
}

impl Request {
    /// Returns what is asked after one more signal. The first one names the outcome, the second one only hurries; that
    /// one more write failed does not.
    fn after(self, received: EndSignal) -> Self {
        match (self, received) {
            (Self::None, _) => Self::Gently(received),
            (asked, EndSignal::Xfsz) => asked,
            (Self::Gently(first) | Self::Now(first), _) => Self::Now(first),
        }
    }
}

/// Follows the requests to end.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Receiver<Request>);

impl Cancel {
    /// Makes one that never asks, with the handle that could.
    pub fn channel() -> (watch::Sender<Request>, Self) {
        let (sender, receiver) = watch::channel(Request::None);
        (sender, Self(receiver))
    }

    /// Returns the request in force.
    pub fn request(&self) -> Request {
        *self.0.borrow()
    }

    /// Returns the signal that asked, if one did.
    pub fn signal(&self) -> Option<EndSignal> {
        match self.request() {
            Request::None => None,
            Request::Gently(signal) | Request::Now(signal) => Some(signal),
        }
    }

    /// Waits until a signal that has arrived is known. Somebody else receives it, and that takes two turns: one in
    /// which the runtime hears of it, and one in which it is received.
    pub async fn catch_up(&self) {
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the request is another than `known`; forever, if nobody can ask any more.
    pub async fn differs_from(&mut self, known: Request) -> Request {
        match self.0.wait_for(|request| *request != known).await {
            Ok(request) => *request,
            Err(_) => std::future::pending().await,
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
    let mut xfsz = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
    let mut hup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    tokio::spawn(async move {
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

/// Reads the mask of ignored signals, where the system shows it.
fn ignores_hangup() -> bool {
    const HANGUP_BIT: u64 = 1;
    fs_err::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .is_some_and(|mask| mask & HANGUP_BIT != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_names_the_end_and_the_second_one_hurries() {
        let asked =
            |signals: &[EndSignal]| signals.iter().fold(Request::None, |asked, one| asked.after(*one));
        assert_eq!(asked(&[EndSignal::Quit]), Request::Gently(EndSignal::Quit));
        assert_eq!(asked(&[EndSignal::Int, EndSignal::Term]), Request::Now(EndSignal::Int));
        assert_eq!(asked(&[EndSignal::Xfsz, EndSignal::Term]), Request::Now(EndSignal::Xfsz));
        // Every write to a file that is full brings one.
        assert_eq!(asked(&[EndSignal::Xfsz; 9]), Request::Gently(EndSignal::Xfsz));
        assert_eq!(asked(&[EndSignal::Term, EndSignal::Xfsz]), Request::Gently(EndSignal::Term));
    }
}
