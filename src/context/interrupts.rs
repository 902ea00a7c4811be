//! Receives requests to stop a run, from signals or from an embedding program.

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::error::Error;
use crate::process::signal::{self, Cancel, EndRequest, EndSignal};

/// What may stop a run before its end.
#[derive(Clone, Debug, Default)]
pub enum StopBy {
    /// Nothing.
    #[default]
    Nobody,
    /// Signals to this process: SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXFSZ.
    Signals,
    /// The owner of the [`StopHandle`].
    Handle(Stopped),
}

/// Stops a run, from any thread. The first request stops it in order, the second one at once.
#[derive(Debug)]
pub struct StopHandle(watch::Sender<EndRequest>);

/// The end of a [`StopHandle`] that a session is given.
#[derive(Clone, Debug)]
pub struct Stopped(Cancel);

impl StopHandle {
    /// Makes a handle, and what a session is given.
    pub fn new() -> (Self, StopBy) {
        let (sender, cancel) = Cancel::channel();
        (Self(sender), StopBy::Handle(Stopped(cancel)))
    }

    /// Asks the run to stop, as SIGTERM does.
    pub fn stop(&self) {
        self.0.send_modify(|request| {
            *request = match request {
                EndRequest::None => EndRequest::Gently(EndSignal::Term.into()),
                EndRequest::Gently(asker) | EndRequest::Now(asker) => EndRequest::Now(*asker),
            };
        });
    }
}

/// Collects requests to stop from the moment it is made.
pub(crate) struct Interrupts {
    runtime: Runtime,
    cancel: Cancel,
}

impl Interrupts {
    pub(crate) fn listen(to: &StopBy) -> Result<Self, Error> {
        // One thread: what a run works with is not made for several.
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

    /// Returns a token that is cancelled by the requests.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Waits for some work.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}
