//! What sinks hear of while something is performed: lines of output, and that time passes.

use std::cell::RefCell;
use std::convert::Infallible;
use std::time::Duration;

use tokio::time::Instant;

use crate::evaluate::observation::Stream;
use crate::report::{OutputLine, Sinks};

/// How often sinks hear that time passes.
const TICK: Duration = Duration::from_millis(100);

/// When they are told for the first time, so that they show what they hold back. A step that ends sooner is shown with
/// its end: waking up for it would make a step of `true` two per cent longer.
const FIRST_TICK: Duration = Duration::from_millis(10);

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
    let began = Instant::now();
    // Not at once: most steps end before anybody could see that time passes.
    let mut interval = tokio::time::interval_at(began + FIRST_TICK, TICK);
    loop {
        let now = interval.tick().await;
        sinks.borrow_mut().tick(now.duration_since(began));
    }
}
