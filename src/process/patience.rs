//! How long this process waits for a call that it makes in one go, with nothing else done meanwhile: the thread that
//! receives signals for a run is the one that waits. So signals are noticed by a thread of their own as well, and what
//! hangs, as git does in front of a pipe that an action left in the place of a file, is ended soon after the first one.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// How long a call may take. The longest that are made fill a worktree or pack the objects of a large repository.
const LIMIT: Duration = Duration::from_mins(10);

/// The same once somebody wants the process to end, or once a call has taken too long. GitHub waits 10 seconds before it
/// kills, and reports are still to be written.
const SHORT_LIMIT: Duration = Duration::from_secs(3);

/// The same after both: what hung once would hang again.
const SHORTEST_LIMIT: Duration = Duration::from_millis(20);

/// Whether a signal asked this process to end.
static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether a call took too long.
static SPENT: AtomicBool = AtomicBool::new(false);

/// How many parts of this process receive signals and act upon them.
static LISTENING: AtomicUsize = AtomicUsize::new(0);

/// Returns how long a call may take, as it is now.
pub fn limit() -> Duration {
    limit_when(ASKED.load(Ordering::Relaxed), SPENT.load(Ordering::Relaxed))
}

fn limit_when(is_asked: bool, is_spent: bool) -> Duration {
    match (is_asked, is_spent) {
        (false, false) => LIMIT,
        (true, true) => SHORTEST_LIMIT,
        (true, false) | (false, true) => SHORT_LIMIT,
    }
}

/// Notes that a call took too long.
pub fn spend() {
    SPENT.store(true, Ordering::Relaxed);
}

/// Stands for somebody who receives signals, until it is dropped.
pub(super) struct Listening(());

impl Listening {
    /// Begins to notice signals on a thread of its own.
    pub(super) fn begin() -> Self {
        static NOTICED: Once = Once::new();
        LISTENING.fetch_add(1, Ordering::SeqCst);
        NOTICED.call_once(|| {
            // Without the thread, calls are waited for as if nobody had asked.
            let _unnoticed = thread::Builder::new().name("signals".to_owned()).spawn(notice);
        });
        Self(())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        LISTENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Notices signals for as long as the process lives.
fn notice() {
    let Ok(runtime) = Builder::new_current_thread().enable_io().build() else { return };
    runtime.block_on(async {
        let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return;
        };
        loop {
            let received = tokio::select! {
                _ = int.recv() => SignalKind::interrupt(),
                _ = term.recv() => SignalKind::terminate(),
            };
            ASKED.store(true, Ordering::Relaxed);
            if LISTENING.load(Ordering::SeqCst) == 0 {
                end(received);
            }
        }
    });
}

/// Ends the process as the signal would have done, had nobody ever listened: once that is so, the system leaves it at
/// that.
#[expect(clippy::exit, clippy::disallowed_methods, reason = "no caller is there to return an exit code to")]
fn end(by: SignalKind) {
    std::process::exit(128 + by.as_raw_value());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_to_end_or_waited_in_vain_waits_no_longer_than_what_kills_it() {
        assert_eq!(limit_when(false, false), LIMIT);
        assert!(limit_when(true, false) < Duration::from_secs(10));
        assert!(limit_when(true, true) < limit_when(true, false));
        assert_eq!(limit_when(false, true), SHORT_LIMIT);
    }
}
