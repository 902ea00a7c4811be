//! The clock: the one place that looks at the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::base::time::Timestamp;

/// The wall clock for stamps, and a steady clock for spans, so that a wall clock that jumps ends no run early.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the place they are allowed in")]
impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the wall-clock time.
    #[expect(clippy::unused_self, reason = "who has no clock has no time")]
    pub fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
