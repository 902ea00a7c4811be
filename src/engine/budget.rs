//! What models may still cost. A call is not begun when one like the dearest so far would not fit any more.

use crate::evaluate::model::Usage;
use crate::machine::Budget;

/// Puts two caps on the same spending together.
pub(super) fn both(one: Budget, other: Budget) -> Budget {
    fn least<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other < one { other } else { one }),
            (one, other) => one.or(other),
        }
    }
    Budget {
        cost_usd: least(one.cost_usd, other.cost_usd),
        tokens: least(one.tokens, other.tokens),
        calls: least(one.calls, other.calls),
        allows_unpriced: one.allows_unpriced || other.allows_unpriced,
    }
}

/// After so many calls that a kill cut off, nothing is left of a cap on cost or tokens.
const MOST_CUT_OFF: u32 = 7;

/// Returns what is held against caps: what calls said that they cost, and for each one that a kill cut off as much as the dearest, and
/// at least half of what was left for it, all of which it may have spent. So a chain of jobs that are killed spends no more than
/// twice the cap, and the first kill leaves something to go on with.
pub(super) fn charged(budget: Budget, usage: &Usage, cut_off: &Usage) -> Usage {
    let mut all = usage.clone();
    all.add(cut_off);
    let times = cut_off.calls.min(MOST_CUT_OFF);
    if times == 0 {
        return all;
    }
    if let (Some(cap), Some(cost)) = (budget.cost_usd, all.cost_usd) {
        let rest = (cap - usage.least_cost()).max(0.0);
        let left = if times == MOST_CUT_OFF { 0.0 } else { (0..times).fold(rest, |left, _| left / 2.0) };
        all.cost_usd = Some(cost.max(usage.least_cost() + rest - left));
    }
    if let Some(cap) = budget.tokens {
        let rest = cap.saturating_sub(usage.tokens());
        let left = if times == MOST_CUT_OFF { 0 } else { rest >> times };
        let more = (usage.tokens() + (rest - left)).saturating_sub(all.tokens());
        all.input_tokens = all.input_tokens.saturating_add(more);
    }
    all
}

/// Returns what is left of a budget.
pub(super) fn left(budget: Budget, spent: &Usage) -> Budget {
    Budget {
        cost_usd: budget.cost_usd.map(|cap| (cap - spent.least_cost()).max(0.0)),
        tokens: budget.tokens.map(|cap| cap.saturating_sub(spent.tokens())),
        calls: budget.calls.map(|cap| cap.saturating_sub(spent.calls)),
        allows_unpriced: budget.allows_unpriced,
    }
}

/// Returns why no other call may begin, if none may.
pub(super) fn met(budget: Budget, spent: &Usage, dearest: &Usage) -> Option<String> {
    let left = left(budget, spent);
    if let (Some(cap), Some(0)) = (budget.calls, left.calls) {
        return Some(format!("stopped at {} of {cap} model calls", spent.calls));
    }
    if let (Some(cap), Some(rest)) = (budget.tokens, left.tokens)
        // The dearest call so far is the best guess at the next one: begun with less, it would pass
        // the cap in the middle.
        && (rest == 0 || rest < dearest.tokens())
    {
        let why = reserve(rest > 0, &format!("{} tokens", dearest.tokens()));
        return Some(format!("stopped at {} of {cap} tokens{why}", spent.tokens()));
    }
    if let (Some(cap), Some(rest)) = (budget.cost_usd, left.cost_usd) {
        if spent.calls == 0 {
            return None;
        }
        // A price that is not known cannot be held against a cap, and zero would be a guess in the wrong direction.
        if spent.cost_usd.is_none() && !budget.allows_unpriced {
            let why = "a call had no price, so the cap on cost cannot be kept";
            return Some(format!("{why}; `unpriced: allow` under `budget` lets it go on"));
        }
        let cost = spent.least_cost();
        let one = dearest.cost_usd.unwrap_or(0.0);
        if rest <= 0.0 || rest < one {
            let why = reserve(rest > 0.0, &format!("${one:.2}"));
            return Some(format!("stopped at ${cost:.2} of ${cap:.2}{why}"));
        }
    }
    None
}

fn reserve(some_is_left: bool, dearest: &str) -> String {
    if some_is_left { format!(", because a call took up to {dearest}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(calls: u32, tokens: u64, cost: Option<f64>) -> Usage {
        Usage { calls, input_tokens: tokens, cost_usd: cost, ..Usage::default() }
    }

    #[track_caller]
    fn check(budget: Budget, spent: &Usage, dearest: &Usage, expected: Option<&str>) {
        assert_eq!(met(budget, spent, dearest).as_deref(), expected);
    }

    #[test]
    fn nothing_is_met_without_a_cap() {
        check(Budget::default(), &spent(9, 9, None), &spent(1, 9, None), None);
    }

    #[test]
    fn a_call_that_was_cut_off_takes_half_of_what_was_left_for_it() {
        let budget = Budget { cost_usd: Some(2.0), tokens: Some(100), ..Budget::default() };
        let cost = |usage: &Usage| format!("{:.2} {}", usage.least_cost(), usage.tokens());
        for (usage, cut_off, expected) in [
            (Usage::default(), Usage::default(), "0.00 0"),
            (Usage::default(), spent(1, 0, Some(0.0)), "1.00 50"),
            (Usage::default(), spent(2, 0, Some(0.0)), "1.50 75"),
            (Usage::default(), spent(7, 0, Some(0.0)), "2.00 100"),
            (spent(3, 20, Some(1.0)), spent(1, 10, Some(0.25)), "1.50 60"),
            (spent(3, 20, Some(1.0)), spent(1, 70, Some(0.75)), "1.75 90"),
            (spent(3, 200, Some(3.0)), spent(1, 10, Some(0.5)), "3.50 210"),
        ] {
            assert_eq!(cost(&charged(budget, &usage, &cut_off)), expected);
        }
        // Without a cap, only what the dearest call took.
        let none = charged(Budget::default(), &spent(3, 20, Some(1.0)), &spent(1, 10, Some(0.25)));
        assert_eq!(cost(&none), "1.25 30");
        let all = charged(budget, &Usage::default(), &spent(7, 0, Some(0.0)));
        assert!(met(budget, &all, &Usage::default()).is_some());
    }

    #[test]
    fn calls_are_counted() {
        let budget = Budget { calls: Some(2), ..Budget::default() };
        check(budget, &spent(1, 0, None), &spent(1, 0, None), None);
        check(budget, &spent(2, 0, None), &spent(1, 0, None), Some("stopped at 2 of 2 model calls"));
    }

    #[test]
    fn a_call_like_the_dearest_one_has_to_fit() {
        let budget = Budget { cost_usd: Some(3.0), ..Budget::default() };
        check(budget, &spent(1, 0, Some(2.0)), &spent(1, 0, Some(1.0)), None);
        let stopped = "stopped at $2.97 of $3.00, because a call took up to $0.10";
        check(budget, &spent(30, 0, Some(2.97)), &spent(1, 0, Some(0.1)), Some(stopped));
        check(budget, &spent(3, 0, Some(3.5)), &spent(1, 0, Some(1.2)), Some("stopped at $3.50 of $3.00"));
        let budget = Budget { tokens: Some(100), ..Budget::default() };
        let stopped = "stopped at 95 of 100 tokens, because a call took up to 10 tokens";
        check(budget, &spent(9, 95, None), &spent(1, 10, None), Some(stopped));
    }

    #[test]
    fn a_call_without_a_price_breaks_a_cap_on_cost() {
        let budget = Budget { cost_usd: Some(3.0), ..Budget::default() };
        let met = met(budget, &spent(1, 0, None), &spent(0, 0, None)).unwrap();
        assert!(met.starts_with("a call had no price"), "{met}");
        check(Budget { allows_unpriced: true, ..budget }, &spent(1, 0, None), &spent(0, 0, None), None);
        check(budget, &spent(0, 0, None), &spent(0, 0, None), None);
    }

    #[test]
    fn calls_with_a_price_are_capped_beside_one_without() {
        let budget = Budget { cost_usd: Some(3.0), allows_unpriced: true, ..Budget::default() };
        let mut sum = Usage::default();
        for cost in [Some(1.0), None, Some(1.9)] {
            sum.add(&spent(1, 0, cost));
        }
        assert_eq!((sum.cost_usd, sum.least_cost()), (None, 2.9));
        check(budget, &sum, &spent(1, 0, Some(0.1)), None);
        sum.add(&spent(1, 0, Some(0.1)));
        check(budget, &sum, &spent(1, 0, Some(0.1)), Some("stopped at $3.00 of $3.00"));
    }

    #[test]
    fn the_narrower_of_two_caps_counts() {
        let one = Budget { cost_usd: Some(3.0), tokens: Some(5), ..Budget::default() };
        let other = Budget { cost_usd: Some(2.0), calls: Some(1), ..Budget::default() };
        let expected =
            Budget { cost_usd: Some(2.0), tokens: Some(5), calls: Some(1), allows_unpriced: false };
        assert_eq!(both(one, other), expected);
        assert_eq!(both(other, one), expected);
    }
}
