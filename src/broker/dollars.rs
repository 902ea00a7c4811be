//! Money as whole numbers, so that no sum of small prices drifts past a cap.

/// An amount of US dollars in picodollars. A price per million tokens that is given in cents is a whole number of them per
/// token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dollars(u64);

// 18 million dollars still fit into 64 bits.
const PICO: f64 = 1e12;

impl Dollars {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Reads an amount of US dollars that is spent, rounded up.
    pub fn spent(usd: f64) -> Self {
        Self(whole((usd * PICO).ceil()))
    }

    /// Reads an amount of US dollars that may be spent, rounded down.
    pub fn allowed(usd: f64) -> Self {
        Self(whole((usd * PICO).floor()))
    }

    /// Reads the price of a token from that of a million of them, in US dollars, rounded up.
    pub fn per_token(usd_per_million: f64) -> Self {
        // Prices have few decimals, and what binary fractions add to them is not part of the price.
        Self(whole((usd_per_million * 1e6 - 1e-3).ceil()))
    }

    /// Returns the price of so many.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Adds another amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Takes another amount away, down to nothing.
    #[must_use]
    pub fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns it in US dollars.
    #[expect(clippy::cast_precision_loss, reason = "up to 9,000 dollars are exact, and more are only shown")]
    pub fn usd(self) -> f64 {
        self.0 as f64 / PICO
    }
}

/// Returns a number without a fraction; nothing for NaN and for negative ones, and the largest for one that is too large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "this conversion saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_in_cents_are_exact() {
        for (million, pico) in
            [(3.0, 3_000_000), (0.25, 250_000), (0.025, 25_000), (18.75, 18_750_000), (0.1, 100_000)]
        {
            assert_eq!(Dollars::per_token(million), Dollars(pico));
        }
        assert!(Dollars::per_token(0.000_000_1) > Dollars::ZERO);
    }

    #[test]
    fn odd_amounts_are_safe_ones() {
        for odd in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            assert_eq!((Dollars::spent(odd), Dollars::allowed(odd)), (Dollars::ZERO, Dollars::ZERO));
        }
        let endless = Dollars::allowed(f64::INFINITY);
        assert_eq!(endless.plus(Dollars::allowed(1.0)).times(9), endless);
        assert_eq!(Dollars::allowed(1.0).less(endless), Dollars::ZERO);
    }
}
