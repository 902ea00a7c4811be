//! A call that is going on: what it may ask for, and what it took so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Uri;
use tokio::sync::Notify;

use super::asked::WorstCase;
use super::cassette::WireCassette;
use super::cassette_faults::{NotKept, WireMiss};
use super::dollars::Dollars;
use super::ledger::{Admission, Hold, Ledger, Shortage, WireCaps};
use super::meter::{Charge, Reading, charge};
use super::model_service::{ServiceApi, ServiceKey};
use super::prices::PriceList;
use super::wire_report::{ServiceFailure, WireReport};
use crate::policy::Policy;

/// After how many failures in a row no more is asked of a service in a call. CLIs try again by themselves, some for minutes.
const MOST_FAILURES: u32 = 8;

/// How long is waited for the last words of answers when a call is over.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a call may ask for, and of whom.
#[derive(Clone, Debug)]
pub struct CallTerms {
    /// The API of the service.
    pub api: ServiceApi,
    /// Its base address.
    pub base: Uri,
    /// The key for it.
    pub key: ServiceKey,
    /// What the call may take.
    pub caps: WireCaps,
    /// What models cost.
    pub prices: Arc<PriceList>,
    /// What binds the run from above.
    pub policy: Arc<Policy>,
    /// What keeps its requests, or answers them in the place of the service.
    pub cassette: Option<Arc<WireCassette>>,
}

/// A call that is going on.
#[derive(Debug)]
pub(super) struct AdmittedCall {
    pub(super) terms: CallTerms,
    state: Mutex<WireState>,
    /// Something was settled.
    settled: Notify,
}

#[derive(Debug, Default)]
struct WireState {
    ledger: Ledger,
    report: WireReport,
    is_unpriced: bool,
    /// Failures since the last answer.
    in_a_row: u32,
    last_failure: Option<ServiceFailure>,
    /// What is kept for requests that are on their way.
    open: Vec<(u64, Hold, WorstCase)>,
    next: u64,
    /// Whether the service is known not to count tokens.
    is_uncounted: bool,
}

/// A request that was let through. It is charged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenRequest(u64);

impl AdmittedCall {
    pub(super) fn new(terms: CallTerms) -> Self {
        let state = WireState { ledger: Ledger::new(terms.caps), ..WireState::default() };
        Self { terms, state: Mutex::new(state), settled: Notify::new() }
    }

    /// Lets a request through that takes at most so much, as soon as it is known whether it may be.
    pub(super) async fn admit(&self, worst: &WorstCase) -> Result<OpenRequest, Shortage> {
        self.as_soon_as(|| self.try_admit(worst).transpose()).await
    }

    /// Looks at once, and whenever something was settled, until there is something to see.
    async fn as_soon_as<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            // From here on nothing is missed.
            settled.as_mut().enable();
            if let Some(seen) = look() {
                return seen;
            }
            settled.await;
        }
    }

    fn try_admit(&self, worst: &WorstCase) -> Result<Option<OpenRequest>, Shortage> {
        let mut state = self.state();
        match state.ledger.admit(worst) {
            Admission::Later => Ok(None),
            Admission::Never(shortage) => Err(shortage),
            Admission::Now(hold) => {
                let open = state.next;
                state.next += 1;
                state.open.push((open, hold, worst.clone()));
                Ok(Some(OpenRequest(open)))
            }
        }
    }

    /// Counts a request that was not let through.
    pub(super) fn refuse(&self, shortage: Shortage) {
        let mut state = self.state();
        state.report.refused += 1;
        state.report.shortage.get_or_insert(shortage);
    }

    /// Counts a request for a model that may not be asked. The call goes on: its CLI may ask another one.
    pub(super) fn forbid(&self) {
        self.state().report.refused += 1;
    }

    /// Takes what was read of an answer.
    pub(super) fn answered(&self, open: OpenRequest, reading: &Reading) {
        let mut state = self.state();
        (state.in_a_row, state.last_failure) = (0, None);
        state.report.gave_up = None;
        state.report.model = reading.model.clone().or(state.report.model.take());
        state.settle(open, |worst| charge(worst, reading));
        // Unlocked first: those that are woken up take the same lock.
        drop(state);
        self.settled.notify_waiters();
    }

    /// Takes that a request failed. One that may have been answered counts as the most that it can take.
    pub(super) fn failed(&self, open: Option<OpenRequest>, failure: ServiceFailure) {
        let mut state = self.state();
        state.report.failed += 1;
        state.in_a_row += 1;
        state.last_failure = Some(failure);
        // Its CLI is told so in a way in which it does not ask once more.
        state.report.gave_up = Some(failure).filter(|failure| failure.has_no_answer());
        match (open, failure) {
            (None, _) => {}
            (Some(open), ServiceFailure::Unanswered) => {
                state.settle(open, |worst| charge(worst, &Reading::default()));
            }
            // Services charge nothing for what they answer with an error or never got.
            (Some(open), ServiceFailure::Status(_) | ServiceFailure::Unreached) => state.release(open),
        }
        drop(state);
        self.settled.notify_waiters();
    }

    /// Ends a request that the service has refused, which costs nothing.
    pub(super) fn declined(&self, open: OpenRequest) {
        self.state().release(open);
        self.settled.notify_waiters();
    }

    /// Takes that a recording has no answer to a request.
    pub(super) fn missed(&self, miss: WireMiss) {
        self.state().report.missed.get_or_insert(miss);
    }

    /// Takes that an answer was not kept.
    pub(super) fn not_kept(&self, why: NotKept) {
        self.state().report.not_kept.get_or_insert(why);
    }

    /// Returns what the service fails with, where it did so too often to be asked once more.
    pub(super) fn given_up(&self) -> Option<ServiceFailure> {
        let mut state = self.state();
        let failure = state.last_failure.filter(|_| state.in_a_row >= MOST_FAILURES)?;
        state.report.gave_up = Some(failure);
        Some(failure)
    }

    /// Tells whether it is worth asking the service how many tokens a request has.
    pub(super) fn counts_tokens(&self) -> bool {
        !self.state().is_uncounted
    }

    /// Keeps in mind that the service does not count tokens.
    pub(super) fn does_not_count(&self) {
        self.state().is_uncounted = true;
    }

    /// Ends the call. What is still on its way counts as the most that it can take.
    pub(super) async fn end(&self) -> WireReport {
        let all_settled = self.as_soon_as(|| self.state().open.is_empty().then_some(()));
        let _in_time = tokio::time::timeout(LAST_WORDS, all_settled).await;
        let mut state = self.state();
        while let Some((open, ..)) = state.open.first() {
            let open = OpenRequest(*open);
            state.settle(open, |worst| charge(worst, &Reading::default()));
        }
        // A sum with an unknown part is unknown.
        let priced = state.ledger.spent();
        let cost = (!state.is_unpriced).then_some(priced);
        WireReport { cost, priced, ..state.report.clone() }
    }

    fn state(&self) -> MutexGuard<'_, WireState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WireState {
    fn take(&mut self, OpenRequest(open): OpenRequest) -> Option<(Hold, WorstCase)> {
        let at = self.open.iter().position(|(of, ..)| *of == open)?;
        let (_, hold, worst) = self.open.remove(at);
        Some((hold, worst))
    }

    fn settle(&mut self, open: OpenRequest, charged: impl FnOnce(&WorstCase) -> Charge) {
        let Some((hold, worst)) = self.take(open) else { return };
        let charge = charged(&worst);
        self.ledger.settle(hold, &charge);
        self.is_unpriced |= charge.cost.is_none();
        let report = &mut self.report;
        report.requests += 1;
        report.counts = report.counts.plus(charge.counts);
        report.oddities.extend(charge.oddity);
    }

    fn release(&mut self, open: OpenRequest) {
        if let Some((hold, _)) = self.take(open) {
            self.ledger.settle(hold, &Charge { cost: Some(Dollars::ZERO), ..Charge::default() });
        }
    }
}
