//! The clock: the one place that looks at the time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::base::time::Timestamp;

/// The wall clock for stamps, and a steady clock for spans, so that a wall clock that jumps ends no run early.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

/// Returns the time since some fixed moment of this machine. It also goes on while the machine sleeps, unlike that of
/// [`Clock`]: what others were promised for a minute is over after a minute.
pub fn steady() -> Duration {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    // Elsewhere this one does not stop.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    clock_gettime(clock).try_into().unwrap_or(Duration::ZERO)
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
