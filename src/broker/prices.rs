//! What models cost: the table in `catalog/prices.toml`, and what a loop says in its place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::dollars::Dollars;
use super::tokens::TokenCounts;

/// The prices of a model, and what bounds the price of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelPrice {
    usual: Rates,
    /// What a request costs that reads more tokens than this.
    long: Option<(u64, Rates)>,
    /// The longest answer to a request that names no limit, in tokens.
    pub longest: u64,
    /// The most tokens that the model reads.
    pub window: u64,
}

/// The prices of a token of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rates {
    input: Dollars,
    cached: Dollars,
    written: Dollars,
    written_for_an_hour: Dollars,
    output: Dollars,
}

/// How long a request keeps in a cache what it sends, which costs more than to send it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheUse {
    /// Not at all, as far as the request says.
    #[default]
    None,
    /// For some minutes.
    Minutes,
    /// For an hour.
    Hour,
}

/// What a loop says that a model costs, in US dollars for a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct GivenPrice {
    /// Tokens that are read.
    pub input: f64,
    /// Tokens that are written.
    pub output: f64,
}

/// The longest answer of a model of which nothing but its price is known, in tokens: that of no model is longer.
pub(super) const MOST_WRITTEN: u64 = 128_000;

/// The most that such a model reads, in tokens.
// The largest window of any model in the table.
pub(super) const MOST_READ: u64 = 1_050_000;

/// What it costs to write a token to a cache, by what it costs to read it, where that is dearer; for some minutes and for
/// an hour.
const WRITTEN: f64 = 1.25;
const WRITTEN_FOR_AN_HOUR: f64 = 2.0;

impl ModelPrice {
    /// Makes the prices of a model of what a loop says. Tokens from a cache cost as much as others there.
    fn given(price: GivenPrice, model: &str) -> Self {
        let GivenPrice { input, output } = price;
        let known = TABLE.models.get(undated(model));
        let is_dearer = match known {
            Some(known) => known.usual.written > known.usual.input,
            // What is not known counts at the dearer side: a cap may be reached too early, and is never passed.
            None => true,
        };
        let times = |factor| Dollars::per_token(if is_dearer { input * factor } else { input });
        let usual = Rates {
            input: Dollars::per_token(input),
            cached: Dollars::per_token(input),
            written: times(WRITTEN),
            written_for_an_hour: times(WRITTEN_FOR_AN_HOUR),
            output: Dollars::per_token(output),
        };
        let (longest, window) =
            known.map_or((MOST_WRITTEN, MOST_READ), |known| (known.longest, known.window));
        Self { usual, long: None, longest, window }
    }

    /// Returns what an answer costs that took so many tokens.
    pub fn of(&self, counts: &TokenCounts) -> Dollars {
        let rates = match self.long {
            Some((above, long)) if counts.read() > above => long,
            Some(_) | None => self.usual,
        };
        [
            rates.input.times(counts.input),
            rates.cached.times(counts.cached),
            rates.written.times(counts.written),
            rates.written_for_an_hour.times(counts.written_for_an_hour),
            rates.output.times(counts.output),
        ]
        .into_iter()
        .fold(Dollars::ZERO, Dollars::plus)
    }

    /// Returns the most that a request can cost that reads and writes at most so many tokens.
    pub fn at_most(&self, read: u64, output: u64, cache: CacheUse) -> Dollars {
        let counts = match cache {
            CacheUse::None => TokenCounts { input: read, output, ..TokenCounts::default() },
            CacheUse::Minutes => TokenCounts { written: read, output, ..TokenCounts::default() },
            CacheUse::Hour => TokenCounts { written_for_an_hour: read, output, ..TokenCounts::default() },
        };
        self.of(&counts)
    }
}

/// The prices that hold in a run.
#[derive(Clone, Debug, Default)]
pub struct PriceList {
    given: BTreeMap<String, ModelPrice>,
}

impl PriceList {
    /// Makes a list of what a loop says, which goes before the table.
    pub fn new(given: impl IntoIterator<Item = (String, GivenPrice)>) -> Self {
        let priced = |(model, price): (String, GivenPrice)| {
            let price = ModelPrice::given(price, &model);
            (model, price)
        };
        Self { given: given.into_iter().map(priced).collect() }
    }

    /// Finds the price of a model; none where it is unknown.
    pub fn find(&self, model: &str) -> Option<ModelPrice> {
        let known = |name: &str| self.given.get(name).copied().or_else(|| TABLE.models.get(name).copied());
        // The whole name first: a version may have a price of its own.
        known(model).or_else(|| known(undated(model)))
    }
}

/// Tells of which day the prices of the table are.
pub fn as_of() -> &'static str {
    &TABLE.as_of
}

/// Returns the name of a model without the date of its version: `-20250929` or `-2025-08-07`, or `-latest`.
fn undated(model: &str) -> &str {
    let ends = |form: &str| {
        let at = model.len().checked_sub(form.len()).filter(|at| model.is_char_boundary(*at))?;
        let fits = |(byte, form): (u8, u8)| if form == b'9' { byte.is_ascii_digit() } else { byte == form };
        model[at..].bytes().zip(form.bytes()).all(fits).then_some(&model[..at])
    };
    ["-latest", "-99999999", "-9999-99-99"].into_iter().find_map(ends).unwrap_or(model)
}

struct PriceTable {
    as_of: String,
    models: BTreeMap<String, ModelPrice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceFile {
    as_of: String,
    model: Vec<PriceRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    ids: Vec<String>,
    input: f64,
    output: f64,
    cached: f64,
    written: Option<f64>,
    longest: u64,
    window: u64,
    long: Option<LongRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongRow {
    above: u64,
    input: f64,
    output: f64,
    cached: f64,
    written: Option<f64>,
}

impl Rates {
    fn of(input: f64, output: f64, cached: f64, written: Option<f64>) -> Self {
        // An hour costs more than some minutes by what reading costs: 2 instead of 1.25 times as much.
        let hour = written.map_or(input, |_| input * WRITTEN_FOR_AN_HOUR);
        Self {
            input: Dollars::per_token(input),
            cached: Dollars::per_token(cached),
            written: Dollars::per_token(written.unwrap_or(input)),
            written_for_an_hour: Dollars::per_token(hour),
            output: Dollars::per_token(output),
        }
    }
}

impl PriceRow {
    fn price(&self) -> ModelPrice {
        let long = self
            .long
            .as_ref()
            .map(|long| (long.above, Rates::of(long.input, long.output, long.cached, long.written)));
        let usual = Rates::of(self.input, self.output, self.cached, self.written);
        ModelPrice { usual, long, longest: self.longest, window: self.window }
    }
}

static TABLE: LazyLock<PriceTable> = LazyLock::new(|| {
    let file: PriceFile =
        toml::from_str(include_str!("../../catalog/prices.toml")).expect("a test reads the same file");
    let rows = file.model.iter().flat_map(|row| row.ids.iter().map(|id| (id.clone(), row.price())));
    PriceTable { as_of: file.as_of, models: rows.collect() }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_date_and_sensible_rows() {
        assert_eq!(as_of().len(), "2026-11-06".len());
        for (model, price) in &TABLE.models {
            let input = price.at_most(1_000, 0, CacheUse::None);
            let output = price.at_most(0, 1_000, CacheUse::None);
            assert!(Dollars::ZERO < input && input < output, "{model}");
            assert!(
                price.at_most(1_000, 0, CacheUse::Hour) >= price.at_most(1_000, 0, CacheUse::Minutes),
                "{model}"
            );
            assert!(
                price.longest < price.window && price.longest <= MOST_WRITTEN && price.window <= MOST_READ,
                "{model}"
            );
        }
    }

    #[test]
    fn a_version_of_a_model_costs_what_the_model_costs() {
        let list = PriceList::default();
        let known = |model| list.find(model).is_some();
        assert!(
            known("claude-sonnet-4-5-20250929") && known("gpt-5-2025-08-07") && known("claude-opus-5-latest")
        );
        assert_eq!(list.find("claude-opus-4-5"), list.find("claude-opus-4-5-20251101"));
        assert_ne!(list.find("claude-opus-4-1"), list.find("claude-opus-4-5"));
        assert!(
            !known("gpt-5-some")
                && !known("")
                && !known("é-20250929")
                && !known("9")
                && !known("claude-opus-4-5-2")
        );
    }

    #[test]
    fn a_loop_knows_better() {
        let price = GivenPrice { input: 1.0, output: 2.0 };
        let list = PriceList::new([("gpt-5".to_owned(), price), ("mine".to_owned(), price)]);
        let counts = TokenCounts { input: 1_000_000, output: 1_000_000, ..TokenCounts::default() };
        for model in ["gpt-5", "mine", "gpt-5-2025-08-07"] {
            assert_eq!(list.find(model).unwrap().of(&counts), Dollars::spent(3.0));
        }
    }

    #[test]
    fn what_is_not_known_of_a_model_counts_at_the_dearer_side() {
        let price = GivenPrice { input: 1.0, output: 2.0 };
        let most = |model: &str, cache| {
            let list = PriceList::new([(model.to_owned(), price)]);
            list.find(model).unwrap().at_most(1_000_000, 0, cache)
        };
        for model in ["mine", "gpt-99-sol", "claude-opus-99"] {
            assert_eq!(most(model, CacheUse::None), Dollars::spent(1.0), "{model}");
            assert_eq!(most(model, CacheUse::Minutes), Dollars::spent(1.25), "{model}");
            assert_eq!(most(model, CacheUse::Hour), Dollars::spent(2.0), "{model}");
        }
        // The table knows that what it writes to a cache costs no more.
        assert_eq!(most("gpt-5", CacheUse::Minutes), Dollars::spent(1.0));
    }

    #[test]
    fn much_that_is_read_costs_more_for_each() {
        let price = PriceList::default().find("gemini-2.5-pro").unwrap();
        let of = |input| price.of(&TokenCounts { input, ..TokenCounts::default() });
        assert_eq!((of(200_000), of(300_000)), (Dollars::spent(0.25), Dollars::spent(0.75)));
    }
}
