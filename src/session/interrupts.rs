//! Who may ask a run to end, and the place where runs wait.

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::process::signal::{self, Cancel, EndSignal, Request};

use super::error::Error;

/// Who may ask a run to end before it is over.
#[derive(Clone, Debug, Default)]
pub enum StopBy {
    /// Nobody.
    #[default]
    Nobody,
    /// Signals to this process: SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXFSZ.
    Signals,
    /// Who holds the other end.
    Handle(Stopped),
}

/// Asks a run to end, from any thread. A run ends in order when it is asked once, and at once when it is asked again.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<Request>);

/// The end of a [`StopHandle`] that a session is given.
#[derive(Clone, Debug)]
pub struct Stopped(Cancel);

impl StopHandle {
    /// Makes a handle, and what a session is given.
    pub fn new() -> (Self, StopBy) {
        let (sender, cancel) = Cancel::channel();
        (Self(sender), StopBy::Handle(Stopped(cancel)))
    }

    /// Asks the run to end, as SIGTERM does.
    pub fn stop(&self) {
        self.0.send_modify(|request| {
            *request = match request {
                Request::None => Request::Gently(EndSignal::Term),
                Request::Gently(signal) | Request::Now(signal) => Request::Now(*signal),
            };
        });
    }
}

/// Requests to end are heard from the moment it is made.
pub(crate) struct Interrupts {
    runtime: Runtime,
    cancel: Cancel,
}

impl Interrupts {
    pub(crate) fn listen(to: &StopBy) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::failed("cannot start", &error))?;
        let cancel = match to {
            StopBy::Nobody => Cancel::channel().1,
            StopBy::Signals => runtime
                .block_on(async { signal::listen() })
                .map_err(|error| Error::failed("cannot listen for signals", &error))?,
            StopBy::Handle(Stopped(cancel)) => cancel.clone(),
        };
        Ok(Self { runtime, cancel })
    }

    /// Returns what follows the requests.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for some work.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}
