//! Questions for a model, their answers and their cost. The layer `run` does the asking.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::observation::Stop;
use crate::base::explanation::Explanation;
use crate::base::text::plural;

/// A question whose answer has a form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The whole text.
    pub prompt: String,
    /// The JSON Schema that the answer has to satisfy.
    pub schema: Value,
    /// The model; none leaves it to the loop, and then to the host.
    pub model: Option<String>,
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelAnswer {
    /// The answer, or why there is none.
    pub reply: Result<Value, Explanation>,
    /// Why the call did not come to its own end, if it did not.
    pub stop: Option<Stop>,
    /// What it cost.
    pub usage: Usage,
}

/// What calls of models cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// How many calls.
    pub calls: u32,
    /// Tokens that went in, those from a cache included.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// The price in US dollars; none when some call had none.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "read_price")]
    pub cost_usd: Option<f64>,
    /// The price of those calls that had one, in US dollars, where others had none.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "read_price")]
    pub priced_usd: Option<f64>,
    /// The model that answered.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<String>,
    /// The session, for the host's own tools.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session: Option<String>,
    /// What the host says that the whole session took, where a later call will say how much that has become.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub session_total: Option<ConversationUsage>,
    /// What it did at the wire, where that was looked at.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub wire: Option<WireUsage>,
}

/// What calls did at the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireUsage {
    /// Requests for words of a model that were answered.
    pub requests: u32,
    /// Requests that were not let through.
    pub refused: u32,
    /// Requests that the service failed to answer.
    pub failed: u32,
}

/// What a host says that a whole conversation took. What it does not count in this way is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConversationUsage {
    /// Tokens that went in.
    pub input_tokens: u64,
    /// Tokens that came out.
    pub output_tokens: u64,
    /// The price in US dollars.
    pub cost_usd: f64,
}

/// Returns a price as one, if it is: a call takes no money out of what was spent, and none costs more than there is.
pub fn price(cost: f64) -> Option<f64> {
    (cost.is_finite() && cost >= 0.0).then_some(cost)
}

/// Reads a price; nothing where it is none that anybody could have paid.
///
/// # Errors
/// It is not a number.
pub fn read_price<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<f64>::deserialize(from)?.and_then(price))
}

impl Usage {
    /// Returns all tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns what all calls cost, in US dollars; nothing where one of them had no price.
    pub fn known_cost(&self) -> Option<f64> {
        if self.calls == 0 { Some(0.0) } else { self.cost_usd }
    }

    /// Returns what all calls cost at the least, in US dollars: one that has no price adds nothing.
    pub fn least_cost(&self) -> f64 {
        self.cost_usd.or(self.priced_usd).unwrap_or(0.0)
    }

    /// Makes of the dearest calls so far the dearest with another one. Its tokens and its price may be those of two
    /// calls.
    pub fn raise_to(&mut self, call: &Self) {
        // What several calls took together, as those of a sub-loop did, is what one of them took at least on average.
        let calls = call.calls.max(1);
        let (input, output) = (call.input_tokens / u64::from(calls), call.output_tokens / u64::from(calls));
        if input.saturating_add(output) > self.tokens() {
            (self.input_tokens, self.output_tokens) = (input, output);
        }
        let cost = call.cost_usd.map(|cost| cost / f64::from(calls));
        self.cost_usd = match (self.cost_usd, cost) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }

    /// Tells whether no model was called.
    pub fn is_nothing(&self) -> bool {
        self.calls == 0
    }

    /// Says it in a few words, if somebody was asked.
    pub fn sentence(&self) -> Option<String> {
        if self.is_nothing() {
            return None;
        }
        let calls = plural(self.calls, "model call");
        let cost = self.cost_usd.map_or_else(String::new, |cost| format!(", ${cost:.2}"));
        let wire = self.wire.map_or_else(String::new, |wire| {
            let refused =
                if wire.refused == 0 { String::new() } else { format!(", {} refused", wire.refused) };
            format!(", key with the broker ({}{refused})", plural(wire.requests, "request"))
        });
        Some(format!("{calls}, {}{cost}{wire}", plural(self.tokens(), "token")))
    }

    /// Adds what another call cost. The model and the session are those of the later one.
    pub fn add(&mut self, other: &Self) {
        // The absent cost of nothing must not make the sum unknown.
        if other.calls == 0 {
            return;
        }
        // Infinity cannot be written as JSON.
        let least = (self.least_cost() + other.least_cost()).min(f64::MAX);
        // Where nothing was called before, the absent cost is not an unknown one. A sum with an unknown part is unknown: a cap
        // must not take it for less than it is.
        let is_known = other.cost_usd.is_some() && (self.calls == 0 || self.cost_usd.is_some());
        self.cost_usd = is_known.then_some(least);
        self.priced_usd = (!is_known && least > 0.0).then_some(least);
        self.calls = self.calls.saturating_add(other.calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.model = other.model.clone().or(self.model.take());
        self.session = other.session.clone().or(self.session.take());
        self.wire = match (self.wire, other.wire) {
            (Some(one), Some(more)) => Some(one.and(more)),
            (one, other) => one.or(other),
        };
    }
}

impl WireUsage {
    fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            refused: self.refused.saturating_add(other.refused),
            failed: self.failed.saturating_add(other.failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(cost: Option<f64>) -> Usage {
        Usage { calls: 1, input_tokens: 10, output_tokens: 1, cost_usd: cost, ..Usage::default() }
    }

    #[test]
    fn a_price_that_is_missing_once_is_missing() {
        let sum = |calls: &[Option<f64>]| {
            let mut sum = Usage::default();
            for cost in calls {
                sum.add(&call(*cost));
            }
            (sum.calls, sum.tokens(), sum.cost_usd)
        };
        assert_eq!(sum(&[]), (0, 0, None));
        assert_eq!(sum(&[Some(0.5), Some(0.25)]), (2, 22, Some(0.75)));
        assert_eq!(sum(&[Some(0.5), None, Some(0.5)]), (3, 33, None));
    }

    #[test]
    fn the_dearest_call_is_not_the_last_one() {
        let mut dearest = Usage::default();
        for (tokens, cost) in [(5, Some(0.5)), (90, None), (7, Some(0.2))] {
            dearest.raise_to(&Usage { input_tokens: tokens, cost_usd: cost, ..Usage::default() });
        }
        assert_eq!((dearest.tokens(), dearest.cost_usd), (90, Some(0.5)));
        // Thirty calls for six dollars are no call for six dollars.
        let together = Usage { calls: 30, input_tokens: 3000, cost_usd: Some(6.0), ..Usage::default() };
        let mut dearest = Usage { calls: 1, cost_usd: Some(0.1), ..Usage::default() };
        dearest.raise_to(&together);
        assert_eq!((dearest.tokens(), dearest.cost_usd), (100, Some(0.2)));
    }

    #[test]
    fn no_price_makes_the_sum_smaller_or_endless() {
        let mut sum = call(Some(f64::MAX));
        sum.add(&call(Some(f64::MAX)));
        assert_eq!(sum.cost_usd, Some(f64::MAX));
        let read = |cost: &str| {
            let text =
                format!(r#"{{"calls": 1, "input_tokens": 1, "output_tokens": 1, "cost_usd": {cost}}}"#);
            serde_json::from_str::<Usage>(&text).unwrap().cost_usd
        };
        assert_eq!([read("0.5"), read("0"), read("-0.5"), read("null")], [Some(0.5), Some(0.0), None, None]);
    }

    #[test]
    fn a_cost_is_said_in_a_few_words() {
        assert_eq!(Usage::default().sentence(), None);
        assert_eq!(call(Some(0.5)).sentence().unwrap(), "1 model call, 11 tokens, $0.50");
        assert_eq!(call(None).sentence().unwrap(), "1 model call, 11 tokens");
    }
}
