//! The metrics of a run, each with one row that names it everywhere: as OpenTelemetry and as Prometheus know it.

use std::time::Duration;

use super::digest::Digest;
use super::work_counts::{CountedVerdict, counted_name};
use crate::base::time::Timestamp;
use crate::evaluate::model::Usage;

/// What a metric is called, counts in and stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// Its name in OpenTelemetry.
    pub name: &'static str,
    /// Its name in Prometheus, with the unit at the end.
    pub prometheus: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// What it says.
    pub help: &'static str,
    /// What its values are.
    pub kind: MetricKind,
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A time that something took.
    Duration,
    /// Something that is as it is.
    Level,
    /// How much there was in this run.
    Count,
}

/// A value with what it is about.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    /// Names and values of labels, in their order.
    pub labels: Vec<(&'static str, String)>,
    /// The value, in the unit of the metric.
    pub value: f64,
}

/// A metric of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it is.
    pub row: MetricRow,
    /// Its values.
    pub points: Vec<MetricPoint>,
}

const DURATION: MetricRow = MetricRow {
    name: "ll.run.duration",
    prometheus: "ll_loop_run_duration_seconds",
    unit: "s",
    help: "How long the run took, without the pauses between its parts.",
    kind: MetricKind::Duration,
};

const ENDED: MetricRow = MetricRow {
    name: "ll.run.end_time",
    prometheus: "ll_loop_run_end_timestamp_seconds",
    unit: "s",
    help: "When the run ended, in seconds since 1970.",
    kind: MetricKind::Level,
};

const VERDICTS: MetricRow = MetricRow {
    name: "ll.run.verdicts",
    prometheus: "ll_loop_run_verdicts",
    unit: "{verdict}",
    help: "How often a verdict fell in a state.",
    kind: MetricKind::Count,
};

const CALLS: MetricRow = MetricRow {
    name: "ll.agent.calls",
    prometheus: "ll_loop_run_agent_calls",
    unit: "{call}",
    help: "Calls of agents and models.",
    kind: MetricKind::Count,
};

const TOKENS: MetricRow = MetricRow {
    name: "ll.agent.tokens",
    prometheus: "ll_loop_run_agent_tokens",
    unit: "{token}",
    help: "Tokens that agents and models took and gave.",
    kind: MetricKind::Count,
};

const COST: MetricRow = MetricRow {
    name: "ll.agent.cost",
    prometheus: "ll_loop_run_agent_cost_usd",
    unit: "{USD}",
    help: "What agents and models cost, in US dollars; absent where one did not say it.",
    kind: MetricKind::Count,
};

const REUSE: MetricRow = MetricRow {
    name: "ll.run.reuse_hits",
    prometheus: "ll_loop_run_reuse_hits",
    unit: "{hit}",
    help: "Whether an earlier run stood for this one: 1 or 0.",
    kind: MetricKind::Count,
};

/// Returns the metrics of a run. One that has no values is not there.
pub fn metrics(digest: &Digest) -> Vec<Metric> {
    let of_loop = ("loop", counted_name(digest.loop_name()));
    let one = |value: f64| vec![MetricPoint { labels: vec![of_loop.clone()], value }];
    let verified = match (digest.end(), digest.not_run(), digest.unbegun()) {
        (Some(end), ..) => end.verified.to_string(),
        (None, Some(_), _) | (None, None, Some(_)) => "false".to_owned(),
        (None, None, None) => "unknown".to_owned(),
    };
    let took = vec![MetricPoint {
        labels: vec![of_loop.clone(), ("outcome", digest.outcome_word().to_owned()), ("verified", verified)],
        value: seconds(digest.duration()),
    }];
    // Without an end, the last event only says how far the journal reaches.
    let ended = digest.end().and(digest.seen_until());
    let metrics = [
        (DURATION, took),
        (ENDED, ended.into_iter().flat_map(|at| one(since_1970(at))).collect()),
        (VERDICTS, verdicts(digest)),
        (CALLS, by_model(digest, |usage| vec![(None, Some(f64::from(usage.calls)))])),
        (
            TOKENS,
            by_model(digest, |usage| {
                vec![
                    (Some("input"), Some(whole(usage.input_tokens))),
                    (Some("output"), Some(whole(usage.output_tokens))),
                ]
            }),
        ),
        (COST, by_model(digest, |usage| vec![(None, usage.cost_usd)])),
        (REUSE, one(f64::from(u8::from(digest.reused().is_some())))),
    ];
    let metrics = metrics.into_iter().map(|(row, points)| Metric { row, points });
    metrics.filter(|metric| !metric.points.is_empty()).collect()
}

fn verdicts(digest: &Digest) -> Vec<MetricPoint> {
    let point = |(counted, count): (&CountedVerdict, &u64)| MetricPoint {
        labels: vec![
            ("loop", counted.loop_name.clone()),
            ("state", counted.state.clone()),
            ("verdict", counted.verdict.clone()),
        ],
        value: whole(*count),
    };
    digest.counts().verdicts().iter().map(point).collect()
}

/// A value of a model, and what kind of token it counts, where it counts tokens.
type ModelValue = (Option<&'static str>, Option<f64>);

fn by_model(digest: &Digest, values: impl Fn(&Usage) -> Vec<ModelValue>) -> Vec<MetricPoint> {
    let mut points = Vec::new();
    for (model, usage) in digest.counts().models() {
        for (kind, value) in values(usage) {
            // A cost that is unknown is absent: as zero it would make every sum look complete.
            let Some(value) = value else { continue };
            let mut labels = vec![("loop", counted_name(digest.loop_name())), ("model", model.clone())];
            labels.extend(kind.map(|kind| ("type", kind.to_owned())));
            points.push(MetricPoint { labels, value });
        }
    }
    points
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

fn since_1970(at: Timestamp) -> f64 {
    seconds(at.since_epoch())
}

/// Returns a count as metrics have it.
#[expect(clippy::cast_precision_loss, reason = "metrics are floating-point; a count beyond 2^53 is rounded")]
fn whole(count: u64) -> f64 {
    count as f64
}
