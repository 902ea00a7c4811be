//! How long the holder of a lease may go on without a word from the server: it has to be done before anybody else may
//! think that it is gone.
//!
//! Others take a lease over when they have not seen it change for its whole time. They cannot have seen a renewal before
//! it was begun, so the holder counts from the *start* of its last good renewal.

use std::time::Duration;

/// The longest time that actions get to end by themselves.
const LONGEST_GRACE: Duration = Duration::from_secs(5);

/// Whether, and how urgently, a holder has to end what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It may go on.
    None,
    /// It has to end, and there is time to end in order.
    Gently,
    /// It has to end at once.
    Now,
}

/// The time that the holder of a lease has. Once that was over it stays over: what was told to end is not called back.
#[derive(Clone, Debug)]
pub struct LeaseFence {
    ttl: Duration,
    /// When the last good renewal began.
    good: Duration,
    is_lost: bool,
    is_taken: bool,
}

impl LeaseFence {
    /// Begins with the moment before the lease was made or renewed.
    pub fn new(ttl: Duration, good: Duration) -> Self {
        Self { ttl, good, is_lost: false, is_taken: false }
    }

    /// Returns when the next renewal is due.
    pub fn renew_at(&self) -> Duration {
        // After a renewal that failed there is time for another before the end is asked for.
        self.good + self.ttl / 3
    }

    /// Returns when actions are asked to end, unless the lease is renewed before: they get at most 5 s, and always less
    /// than a third of the time of the lease.
    pub fn gently_at(&self) -> Duration {
        // A quarter and the last twelfth are a third, so that a renewal that failed at the first third can be tried again.
        self.now_at().saturating_sub((self.ttl / 4).min(LONGEST_GRACE))
    }

    /// Returns when actions are killed: so early that nothing is left of them when others may begin.
    pub fn now_at(&self) -> Duration {
        // The last twelfth of the time is left for the kill to take effect.
        self.good + self.ttl.saturating_sub(self.ttl / 12)
    }

    /// Takes a renewal that began at `start` and is known to be good `now`. One that comes when the end was asked for is
    /// too late, and changes nothing.
    pub fn renewed(&mut self, start: Duration, now: Duration) {
        if self.at(now) == Urgency::None {
            self.good = self.good.max(start);
        }
    }

    /// Takes that somebody else has the lease, or removed it.
    pub fn taken(&mut self) {
        self.is_lost = true;
        self.is_taken = true;
    }

    /// Tells whether somebody else has the lease, or removed it.
    pub fn is_taken(&self) -> bool {
        self.is_taken
    }

    /// Tells how urgent the end is now.
    pub fn at(&mut self, now: Duration) -> Urgency {
        // Kept, because actions that were told to end cannot be told to go on.
        self.is_lost |= now >= self.gently_at();
        match (self.is_taken || now >= self.now_at(), self.is_lost) {
            (true, _) => Urgency::Now,
            (false, true) => Urgency::Gently,
            (false, false) => Urgency::None,
        }
    }

    /// Returns the time until the end becomes more urgent by itself.
    pub fn left(&self, now: Duration) -> Duration {
        let next = if self.is_lost { self.now_at() } else { self.gently_at() };
        next.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_minute_is_renewed_three_times_and_ends_before_it_is_over() {
        let mut fence = LeaseFence::new(s(60), s(100));
        assert_eq!((fence.renew_at(), fence.gently_at(), fence.now_at()), (s(120), s(150), s(155)));
        assert_eq!(fence.at(s(149)), Urgency::None);
        // The answer came late, but the server may have had it since 120.
        fence.renewed(s(120), s(149));
        assert_eq!((fence.at(s(169)), fence.left(s(169))), (Urgency::None, s(1)));
        assert_eq!((fence.at(s(170)), fence.left(s(170))), (Urgency::Gently, s(5)));
        fence.renewed(s(165), s(171));
        assert_eq!((fence.at(s(174)), fence.at(s(175))), (Urgency::Gently, Urgency::Now));
        let mut fence = LeaseFence::new(s(60), s(100));
        fence.taken();
        assert_eq!(fence.at(s(100)), Urgency::Now);
    }

    proptest! {
        #[test]
        fn nothing_goes_on_for_a_whole_time_after_the_last_good_renewal_began(
            ttl in 1..86_400_u64,
            renewals in prop::collection::vec((0..50_000_u64, 0..50_000_u64), 0..20),
        ) {
            let ttl = s(ttl);
            let (mut fence, mut now) = (LeaseFence::new(ttl, Duration::ZERO), Duration::ZERO);
            let mut good = Duration::ZERO;
            let mut worst = Urgency::None;
            for (wait, took) in renewals {
                let start = now + Duration::from_millis(wait);
                now = start + Duration::from_millis(took);
                let was = fence.at(now);
                prop_assert!(was >= worst, "it was called back");
                worst = was;
                fence.renewed(start, now);
                if was == Urgency::None {
                    good = start;
                }
                prop_assert!(fence.now_at() < good + ttl);
                prop_assert!(fence.gently_at() < fence.now_at());
                prop_assert!(fence.now_at().saturating_sub(fence.gently_at()) < ttl / 3);
                prop_assert!(fence.renew_at() + ttl / 6 <= fence.gently_at(), "there is time for another try");
                prop_assert_eq!(fence.clone().at(good + ttl), Urgency::Now);
            }
        }
    }
}
