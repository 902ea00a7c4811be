//! Keeps a lease while a run goes on: renews it in a thread of its own, and removes it at the end.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::remote::{LeaseRemote, Swapped};
use crate::base::explanation::Explanation;
use crate::base::object::ObjectId;
use crate::lease::fence::{LeaseFence, Urgency};
use crate::lease::lease_record::{LeaseName, LeaseRecord};
use crate::process::clock::steady;
use crate::process::guard_pipe::Guard;
use crate::process::signal::{self, EndRequest, StopAsker};

/// How long the removal at the end may take. A lease that stays is over after its time.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long to wait before the removal is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// How long one sleeps at once: the timers of a machine that sleeps do not go on.
const SLEEP: Duration = Duration::from_secs(1);

/// A lease that is renewed until it is released or dropped.
pub(super) struct LeaseKeeper {
    shared: Arc<KeeperShared>,
    stop: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<JoinHandle<KeeperResult>>,
    name: LeaseName,
}

/// What the thread and the run share.
#[derive(Debug)]
struct KeeperShared {
    state: Mutex<KeeperState>,
    woken: Condvar,
}

#[derive(Debug)]
struct KeeperState {
    fence: LeaseFence,
    /// What the ref points at, as far as this process knows.
    oid: ObjectId,
    /// Why the last renewal failed.
    trouble: Option<Explanation>,
    is_over: bool,
    /// Who gives the lease back if this process is killed.
    guard: Guard,
}

impl KeeperShared {
    fn state(&self) -> MutexGuard<'_, KeeperState> {
        // No holder panics, and what it holds is whole at any time.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a moment, or until all is over.
    fn wait_until(&self, moment: Duration) -> bool {
        let mut state = self.state();
        loop {
            let left = moment.saturating_sub(steady());
            if state.is_over || left.is_zero() {
                return !state.is_over;
            }
            let waited = self.woken.wait_timeout(state, left.min(SLEEP));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl signal::Fence for KeeperShared {
    fn request(&self) -> EndRequest {
        match self.state().fence.at(steady()) {
            Urgency::None => EndRequest::None,
            Urgency::Gently => EndRequest::Gently(StopAsker::Lease),
            Urgency::Now => EndRequest::Now(StopAsker::Lease),
        }
    }

    fn left(&self) -> Duration {
        self.state().fence.left(steady())
    }
}

/// What the thread has when it ends.
struct KeeperResult {
    remote: LeaseRemote,
    /// A renewal that may or may not have reached the server.
    pending: Option<ObjectId>,
}

impl LeaseKeeper {
    /// Begins to renew a lease that is held with this record.
    pub(super) fn start(
        remote: LeaseRemote,
        record: LeaseRecord,
        oid: ObjectId,
        good: Duration,
    ) -> std::io::Result<Self> {
        let name = LeaseName::of(&record.scopes);
        let fence = LeaseFence::new(record.ttl(), good);
        let state = KeeperState { fence, oid, trouble: None, is_over: false, guard: Guard::default() };
        let shared = Arc::new(KeeperShared { state: Mutex::new(state), woken: Condvar::new() });
        let stop = remote.stop();
        let renewer = Renewer { shared: Arc::clone(&shared), remote, record, name: name.clone() };
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(move || renewer.run())?;
        Ok(Self { shared, stop, thread: Some(thread), name })
    }

    /// Returns what asks the run to end when its lease is lost.
    pub(super) fn fence(&self) -> Arc<dyn signal::Fence> {
        Arc::<KeeperShared>::clone(&self.shared)
    }

    /// Tells a guard where the lease is, from now on.
    pub(super) fn tell(&self, guard: Guard) {
        let mut state = self.shared.state();
        guard.holds(state.oid.as_str());
        state.guard = guard;
    }

    /// Returns why it is lost, if it is.
    pub(super) fn lost(&self) -> Option<Explanation> {
        let mut state = self.shared.state();
        if state.fence.at(steady()) == Urgency::None {
            return None;
        }
        Some(if state.fence.is_taken() {
            Explanation::new("another one has taken it over, or somebody removed it")
        } else {
            match &state.trouble {
                Some(why) => Explanation::new(format!("it was not renewed in time: {why}")),
                None => Explanation::new(
                    "it was not renewed in time: this process was stopped, or its machine slept",
                ),
            }
        })
    }

    /// Returns the name of its ref, and what that points at as far as this process knows.
    pub(super) fn known(&self) -> (LeaseName, ObjectId) {
        (self.name.clone(), self.shared.state().oid.clone())
    }

    /// Ends the renewals and removes the lease. Returns what went wrong.
    pub(super) fn release(&mut self) -> Option<Explanation> {
        let thread = self.thread.take()?;
        self.shared.state().is_over = true;
        self.shared.woken.notify_all();
        // A renewal that is under way is broken off: the end need not wait for its answer.
        self.stop.store(true, Ordering::Relaxed);
        let Ok(KeeperResult { mut remote, pending }) = thread.join() else {
            return Some(Explanation::new("the thread that renewed it died"));
        };
        // The same stop would keep the removal from the server.
        remote.anew();
        let (oid, is_taken) = {
            let state = self.shared.state();
            (state.oid.clone(), state.fence.is_taken())
        };
        if is_taken {
            return None;
        }
        remove(&remote, &self.name, oid, pending.as_ref()).err()
    }
}

/// Removes the lease from where it is known to be, or from where the last renewal may have moved it.
fn remove(
    remote: &LeaseRemote,
    name: &LeaseName,
    mut from: ObjectId,
    pending: Option<&ObjectId>,
) -> Result<(), Explanation> {
    let until = steady() + FAREWELL;
    loop {
        let left = until.saturating_sub(steady());
        match remote.swap(name, Some(&from), None, left) {
            Ok(Swapped::Other(Some(at))) if at != from && Some(&at) == pending => from = at,
            Ok(Swapped::Done | Swapped::Other(_)) => return Ok(()),
            Err(why) if left < PAUSE * 2 => return Err(why),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        let _best_effort = self.release();
    }
}

/// The thread.
struct Renewer {
    shared: Arc<KeeperShared>,
    remote: LeaseRemote,
    record: LeaseRecord,
    name: LeaseName,
}

impl Renewer {
    fn run(mut self) -> KeeperResult {
        let ttl = self.record.ttl();
        // A renewal that was tried is tried again, so that one that came through all the same is known again; and counts
        // from the first try.
        let mut pending: Option<(ObjectId, Duration)> = None;
        let mut next = self.shared.state().fence.renew_at();
        while self.shared.wait_until(next) {
            let begun = steady();
            let left = {
                let mut state = self.shared.state();
                if state.fence.at(begun) != Urgency::None {
                    break;
                }
                state.fence.left(begun)
            };
            let (new, since) = match pending.take() {
                Some(pending) => pending,
                None => match self.next() {
                    Ok(new) => (new, begun),
                    Err(why) => {
                        self.shared.state().trouble = Some(why);
                        next = begun + ttl / 12;
                        continue;
                    }
                },
            };
            let oid = {
                let mut state = self.shared.state();
                // If the lease is lost before it answers, this is the reason that is told.
                state.trouble.get_or_insert_with(|| Explanation::new("the server did not answer"));
                // Before the ref is moved: if this process is killed in between, the guard knows
                // both places.
                state.guard.holds(new.as_str());
                state.oid.clone()
            };
            // A call that hangs is given up while there is time for another before actions have to end.
            let swapped = self.remote.swap(&self.name, Some(&oid), Some(&new), left.min(ttl / 3));
            let now = steady();
            let mut state = self.shared.state();
            match swapped {
                Ok(Swapped::Done) => {
                    state.fence.renewed(since, now);
                    state.oid = new;
                    state.trouble = None;
                    next = state.fence.renew_at();
                }
                Ok(Swapped::Other(_)) => {
                    state.fence.taken();
                    break;
                }
                Err(why) => {
                    state.trouble = Some(why);
                    pending = Some((new, since));
                    // Soon enough for another try before actions are asked to end.
                    next = now + ttl / 12;
                }
            }
        }
        KeeperResult { remote: self.remote, pending: pending.map(|(oid, _)| oid) }
    }

    fn next(&mut self) -> Result<ObjectId, Explanation> {
        self.record.n += 1;
        self.remote.commit(&self.record)
    }
}
