//! The broker of a run: opened with the first call of an agent, and asked after each what the call did at the wire.

use std::io;
use std::sync::Arc;

use crate::base::text::plural;
use crate::broker::{
    Broker, CallPass, CallSettings, CallTerms, Dollars, PriceList, Upstream, WireCaps, WireCassette,
    WireReport, Wiring,
};
use crate::evaluate::model::Usage;
use crate::host::Failure;
use crate::machine::Budget;
use crate::policy::Policy;

/// Holds the key of the service that agents ask, and lets their calls ask it.
#[derive(Debug)]
pub struct Brokerage {
    wiring: Wiring,
    prices: Arc<PriceList>,
    upstream: Upstream,
    policy: Arc<Policy>,
    /// What the tokens of calls begin with.
    tokens: String,
    broker: Option<Broker>,
    /// What keeps the requests of calls, or answers them.
    cassette: Option<Arc<WireCassette>>,
    /// Whether it was said that a host counts in another way.
    has_differed: bool,
}

/// A call that may ask the service, and what its CLI is told.
#[derive(Debug)]
pub(super) struct AdmittedAgent {
    pub(super) pass: CallPass,
    pub(super) settings: CallSettings,
}

impl Brokerage {
    /// Makes one that is not asked yet, whose tokens begin with a text that is masked.
    pub fn new(
        wiring: Wiring,
        prices: PriceList,
        upstream: Upstream,
        policy: Arc<Policy>,
        tokens: String,
    ) -> Self {
        let prices = Arc::new(prices);
        Self { wiring, prices, upstream, policy, tokens, broker: None, cassette: None, has_differed: false }
    }

    /// Tells whether it does not know yet what keeps the requests of calls.
    pub(super) fn lacks_cassette(&self) -> bool {
        self.cassette.is_none()
    }

    /// Has the requests of calls kept, or answered from a recording.
    pub(super) fn insert(&mut self, cassette: Arc<WireCassette>) {
        self.cassette = Some(cassette);
    }

    /// Lets a call ask for what is left of a budget. What is recorded costs nothing.
    pub(super) fn admit(&mut self, caps: WireCaps) -> io::Result<AdmittedAgent> {
        // Opened only when somebody asks: most runs ask nobody.
        let broker = match self.broker.take() {
            Some(broker) => broker,
            None => Broker::open(self.upstream.clone(), self.tokens.clone())?,
        };
        let broker = self.broker.insert(broker);
        let Wiring { key, base, .. } = &self.wiring;
        let replays = self.cassette.as_ref().is_some_and(|cassette| cassette.replays());
        let terms = CallTerms {
            api: self.wiring.api(),
            base: base.clone(),
            key: key.clone(),
            caps: if replays { WireCaps::default() } else { caps },
            prices: Arc::clone(&self.prices),
            policy: Arc::clone(&self.policy),
            cassette: self.cassette.clone(),
        };
        let pass = broker.admit(terms);
        // Loopback alone: no other machine is to reach it.
        let settings =
            self.wiring.call_settings(&format!("http://127.0.0.1:{}", broker.port()), pass.token());
        Ok(AdmittedAgent { pass, settings })
    }

    /// Says that somebody asked without the token of a call, if somebody did since this was asked last.
    pub(super) fn strangers(&self) -> Option<String> {
        let count = self.broker.as_ref().map(Broker::take_strangers).filter(|count| *count > 0)?;
        let requests = plural(count, "request");
        Some(format!("the broker refused {requests} without the token of a call that is going on"))
    }

    /// Says once how a host counts in another way than its service.
    pub(super) fn difference(&mut self, host: &Usage, wire: &WireReport) -> Option<String> {
        let difference = difference(host, wire).filter(|_| !self.has_differed)?;
        self.has_differed = true;
        Some(difference)
    }
}

/// Returns what a call may still take.
pub(super) fn caps(left: Budget, spent: &Usage) -> WireCaps {
    let cost = left.cost_usd.map(|left| Dollars::allowed(left).less(Dollars::spent(spent.least_cost())));
    WireCaps {
        cost,
        tokens: left.tokens.map(|left| left.saturating_sub(spent.tokens())),
        // That the host keeps to a cap by itself does not count: its agent has the token of the call, and can ask without it.
        allows_unpriced: left.allows_unpriced,
    }
}

/// Puts what a host says that a call took together with what its service says, which counts.
pub(super) fn together(host: Usage, wire: &WireReport) -> Usage {
    let seen = Some(wire.usage());
    if wire.requests == 0 {
        // What asked nothing and says nothing cost nothing.
        let nothing = wire.cost.filter(|_| host.tokens() == 0).map(Dollars::usd);
        return Usage { cost_usd: host.cost_usd.or(nothing), wire: seen, ..host };
    }
    // Where one request has no price, the host may know it. What the others cost is known all the same, and it is the least.
    let priced = Some(wire.priced.usd()).filter(|priced| *priced > 0.0);
    let said = host.cost_usd.map(|said| said.max(wire.priced.usd()));
    Usage {
        // What asked has made a call, whatever its host counts.
        calls: host.calls.max(1),
        // The service bills by its own counts, so these win over what the CLI says.
        input_tokens: wire.counts.read(),
        output_tokens: wire.counts.output,
        cost_usd: wire.cost.map(Dollars::usd).or(said),
        priced_usd: priced.filter(|_| wire.cost.is_none() && said.is_none()),
        model: host.model.or_else(|| wire.model.clone()),
        wire: seen,
        ..host
    }
}

/// Returns why a call failed: for what happened at the wire where that ended it, and else for what the host says.
pub(super) fn why(failure: Failure, wire: &WireReport) -> Failure {
    match (&wire.shortage, wire.gave_up) {
        (Some(shortage), _) => Failure::OverBudget(format!("a request was not let through: {shortage}")),
        (None, Some(failure)) => Failure::Transient(format!("{failure}, {} times", wire.failed)),
        (None, None) => failure,
    }
}

/// Says how what a host says differs from what its service says.
fn difference(host: &Usage, wire: &WireReport) -> Option<String> {
    if host.tokens() == 0 {
        return None;
    }
    if wire.requests == 0 {
        let tokens = plural(host.tokens(), "token");
        return Some(format!("it says that it took {tokens}, and none of its requests came to the broker"));
    }
    let (read, output) = (wire.counts.read(), wire.counts.output);
    if (host.input_tokens, host.output_tokens) != (read, output) {
        return Some(format!(
            "it says that it read {} and wrote {} tokens; what went to its service and back was {read} and {output}, which \
             counts",
            host.input_tokens, host.output_tokens
        ));
    }
    let Some(cost) = wire.cost else {
        let (said, least) = (host.cost_usd?, wire.priced.usd());
        return (said < least).then(|| {
            format!("it says that it cost ${said:.6}; the requests whose price is known here cost ${least:.6}, which counts")
        });
    };
    let (said, known) = (host.cost_usd?, cost.usd());
    // A hundredth more or less is rounding.
    ((said - known).abs() > 0.01 * known.max(0.000_1)).then(|| {
        format!("it says that it cost ${said:.6}; by the prices that are known here it was ${known:.6}, which counts")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::TokenCounts;

    fn wire(requests: u32, input: u64, output: u64) -> WireReport {
        let counts = TokenCounts { input, output, ..TokenCounts::default() };
        WireReport { requests, counts, ..WireReport::default() }
    }

    fn host(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { calls: 1, input_tokens, output_tokens, cost_usd: Some(0.5), ..Usage::default() }
    }

    #[test]
    fn what_went_over_the_wire_counts() {
        let of = together(host(1, 1), &wire(2, 100, 20));
        assert_eq!((of.calls, of.input_tokens, of.output_tokens, of.cost_usd), (1, 100, 20, Some(0.5)));
        let of = together(host(7, 3), &wire(0, 0, 0));
        assert_eq!((of.input_tokens, of.output_tokens), (7, 3));
        let priced = WireReport { cost: Some(Dollars::spent(0.25)), ..wire(1, 1, 1) };
        assert_eq!(together(host(1, 1), &priced).cost_usd, Some(0.25));
    }

    #[test]
    fn what_has_a_price_counts_beside_what_has_none() {
        let partly = |usd: f64| WireReport { priced: Dollars::spent(usd), ..wire(2, 100, 20) };
        assert_eq!(together(host(1, 1), &partly(0.75)).cost_usd, Some(0.75));
        assert_eq!(together(host(1, 1), &partly(0.25)).cost_usd, Some(0.5));
        let silent = Usage { cost_usd: None, ..host(1, 1) };
        let of = together(silent, &partly(0.75));
        assert_eq!((of.cost_usd, of.priced_usd, of.least_cost()), (None, Some(0.75), 0.75));
    }

    #[test]
    fn a_difference_is_said() {
        let says = |host: &Usage, wire: &WireReport| difference(host, wire).unwrap_or_default();
        assert_eq!(says(&host(100, 20), &wire(1, 100, 20)), "");
        assert_eq!(says(&host(0, 0), &wire(1, 100, 20)), "");
        assert!(says(&host(100, 19), &wire(1, 100, 20)).contains("100 and 20, which counts"));
        assert!(says(&host(100, 19), &wire(0, 0, 0)).contains("none of its requests"));
        let priced = WireReport { cost: Some(Dollars::spent(0.25)), ..wire(1, 100, 20) };
        assert!(says(&host(100, 20), &priced).contains("$0.250000"));
        let partly = WireReport { priced: Dollars::spent(0.75), ..wire(1, 100, 20) };
        assert!(says(&host(100, 20), &partly).contains("$0.750000, which counts"));
    }
}
