//! What sinks hear of while something is performed: lines of output, and that time passes.

use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Duration;

use crate::evaluate::observation::Stream;
use crate::report::{OutputLine, Sinks};

/// How often sinks are told that time passes.
const TICK: Duration = Duration::from_millis(100);

/// Shows a line of output.
pub(super) fn show(sinks: &RefCell<&mut Sinks>, stream: Stream, text: &str) {
    sinks.borrow_mut().output(OutputLine { stream, text });
}

/// Does some work, and tells the sinks meanwhile that time passes.
pub(super) async fn while_ticking<T>(sinks: &RefCell<&mut Sinks>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        done = work => done,
        never = tick(sinks) => match never {},
    }
}

/// Tells the sinks that time passes, for ever.
pub(super) async fn tick(sinks: &RefCell<&mut Sinks>) -> Infallible {
    let mut interval = tokio::time::interval(TICK);
    loop {
        interval.tick().await;
        sinks.borrow_mut().tick();
    }
}
