//! What a call may still take: what was spent, and the most that requests can take which are on their way. No request is let
//! through that could pass a cap.

use super::asked::{NoPrice, WorstCase};
use super::dollars::Dollars;
use super::meter::Charge;

/// The caps of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCaps {
    /// What it may cost.
    pub cost: Option<Dollars>,
    /// How many tokens it may take.
    pub tokens: Option<u64>,
    /// Whether a request of unknown price may be made although the cost is capped.
    pub allows_unpriced: bool,
}

/// What was spent, and what may be spent by what is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    caps: WireCaps,
    cost: Dollars,
    tokens: u64,
    held: Hold,
}

/// What is kept for a request that is on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    cost: Dollars,
    tokens: u64,
}

/// Whether a request may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Now(Hold),
    /// Perhaps later: it depends on what those take that are on their way.
    Later,
    /// It may not.
    Never(Shortage),
}

/// Why a request may not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// It could cost more than what is left.
    #[error("it can cost up to ${:.6}, and ${:.6} of the budget is left", most.usd(), left.usd())]
    Cost {
        /// The most that it can cost.
        most: Dollars,
        /// What is left.
        left: Dollars,
    },
    /// It could take more tokens than are left.
    #[error("it can take up to {most} tokens, and {left} of the budget are left")]
    Tokens {
        /// The most that it can take.
        most: u64,
        /// What is left.
        left: u64,
    },
    /// Its price is unknown.
    #[error("the cost is capped, and {0}")]
    Unpriced(NoPrice),
}

impl Ledger {
    /// Begins with caps and nothing spent.
    pub fn new(caps: WireCaps) -> Self {
        Self { caps, ..Self::default() }
    }

    /// Decides whether a request may be made that takes at most so much; if so, that is kept for it.
    pub fn admit(&mut self, worst: &WorstCase) -> Admission {
        let most = match (&worst.cost, self.caps.cost) {
            (Ok(priced), _) => priced.most,
            (Err(why), Some(_)) if !self.caps.allows_unpriced => {
                return Admission::Never(Shortage::Unpriced(why.clone()));
            }
            // An unknown price keeps nothing back: here, the cost has no cap, or the loop allows that.
            (Err(_), _) => Dollars::ZERO,
        };
        let hold = Hold { cost: most, tokens: worst.read.saturating_add(worst.output) };
        // First as if nothing else were on its way: what is too much by itself would wait for room
        // for ever.
        if let Some(shortage) = self.shortage(hold, Hold::default()) {
            return Admission::Never(shortage);
        }
        // What is on its way may take less than is kept for it.
        if self.shortage(hold, self.held).is_some() {
            return Admission::Later;
        }
        self.held.cost = self.held.cost.plus(hold.cost);
        self.held.tokens = self.held.tokens.saturating_add(hold.tokens);
        Admission::Now(hold)
    }

    /// Says what is short for a request while so much is kept for others.
    fn shortage(&self, of: Hold, held: Hold) -> Option<Shortage> {
        if let Some(cap) = self.caps.cost {
            let left = cap.less(self.cost).less(held.cost);
            if of.cost > left {
                return Some(Shortage::Cost { most: of.cost, left });
            }
        }
        let left = self.caps.tokens?.saturating_sub(self.tokens).saturating_sub(held.tokens);
        (of.tokens > left).then_some(Shortage::Tokens { most: of.tokens, left })
    }

    /// Ends what was kept for a request, and takes what it is charged.
    pub fn settle(&mut self, hold: Hold, charge: &Charge) {
        self.held.cost = self.held.cost.less(hold.cost);
        self.held.tokens = self.held.tokens.saturating_sub(hold.tokens);
        self.cost = charge.cost.map_or(self.cost, |cost| self.cost.plus(cost));
        self.tokens = self.tokens.saturating_add(charge.counts.all());
    }

    /// Returns what was spent.
    pub fn spent(&self) -> Dollars {
        self.cost
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::broker::asked::PricedRequest;
    use crate::broker::prices::{CacheUse, GivenPrice, PriceList};
    use crate::broker::tokens::TokenCounts;

    fn worst(read: u64, output: u64) -> WorstCase {
        let list = PriceList::new([("m".to_owned(), GivenPrice { input: 1.0, output: 2.0 })]);
        let price = list.find("m").unwrap();
        let most = price.at_most(read, output, CacheUse::None);
        WorstCase { read, output, cost: Ok(PricedRequest { price, most }) }
    }

    fn unpriced() -> WorstCase {
        WorstCase { read: 1, output: 1, cost: Err(NoPrice::Model("x".to_owned())) }
    }

    #[test]
    fn who_could_fit_later_waits_and_who_cannot_is_refused() {
        let caps = WireCaps { cost: Some(Dollars::allowed(0.000_3)), ..WireCaps::default() };
        let mut ledger = Ledger::new(caps);
        let Admission::Now(first) = ledger.admit(&worst(100, 50)) else { panic!() };
        assert_eq!(ledger.admit(&worst(100, 50)), Admission::Later);
        assert!(matches!(ledger.admit(&worst(100, 150)), Admission::Never(Shortage::Cost { .. })));
        ledger.settle(first, &Charge { cost: Some(Dollars::allowed(0.000_01)), ..Charge::default() });
        assert!(matches!(ledger.admit(&worst(100, 50)), Admission::Now(_)));
    }

    #[test]
    fn what_has_no_price_is_refused_where_the_cost_is_capped() {
        let capped = WireCaps { cost: Some(Dollars::allowed(1.0)), ..WireCaps::default() };
        assert!(matches!(Ledger::new(capped).admit(&unpriced()), Admission::Never(Shortage::Unpriced(_))));
        let allowed = WireCaps { allows_unpriced: true, ..capped };
        for caps in [allowed, WireCaps::default()] {
            assert!(matches!(Ledger::new(caps).admit(&unpriced()), Admission::Now(_)));
        }
    }

    proptest! {
        #[test]
        fn no_order_of_requests_passes_a_cap(
            requests in prop::collection::vec((0..500_u64, 0..500_u64, any::<prop::sample::Index>(), 0..=100_u64), 1..60),
            cost in 0..3_000_u32, tokens in 0..4_000_u64,
        ) {
            let cost = Dollars::allowed(f64::from(cost) / 1e6);
            let caps = WireCaps { cost: Some(cost), tokens: Some(tokens), allows_unpriced: false };
            let mut ledger = Ledger::new(caps);
            let mut held: Vec<(Hold, WorstCase)> = Vec::new();
            for (read, output, which, part) in requests {
                let asked = worst(read, output);
                if let Admission::Now(hold) = ledger.admit(&asked) {
                    held.push((hold, asked));
                }
                if part < 50 && !held.is_empty() {
                    let (hold, asked) = held.swap_remove(which.index(held.len()));
                    let counts = TokenCounts {
                        input: asked.read * part / 50, output: asked.output, ..TokenCounts::default()
                    };
                    let cost = asked.cost.unwrap().price.of(&counts);
                    ledger.settle(hold, &Charge { counts, cost: Some(cost), oddity: None });
                }
            }
            for (hold, asked) in held {
                let counts = TokenCounts { input: asked.read, output: asked.output, ..TokenCounts::default() };
                ledger.settle(hold, &Charge { counts, cost: Some(asked.cost.unwrap().most), oddity: None });
            }
            prop_assert!(ledger.cost <= cost && ledger.tokens <= tokens);
            prop_assert_eq!(ledger.held, Hold::default());
        }
    }
}
