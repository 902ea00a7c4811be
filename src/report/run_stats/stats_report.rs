//! Shows what runs have in common: to people with trends, and to programs as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{LoopStats, ReuseCounts, StateStats, Stats, TrendPoint, cost, share};
use crate::base::text::{one_line, plural};
use crate::base::time::{human, millis};

/// How many of the last runs a trend shows.
const TREND: usize = 30;

/// The bars of a trend, the lowest first.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The columns of a name in a table.
const NAME: usize = 24;

/// Writes the numbers for programs.
pub fn json(stats: &Stats) -> Value {
    let slowest = stats.slowest();
    let slowest = slowest
        .iter()
        .map(|slow| json!({"loop": slow.loop_name, "state": slow.state, "total_ms": millis(slow.total)}));
    json!({
        "loops": stats.loops.iter().map(|(name, stats)| of_loop(name, stats)).collect::<Vec<_>>(),
        "slowest": slowest.collect::<Vec<_>>(),
    })
}

fn of_loop(name: &str, stats: &LoopStats) -> Value {
    let runs = stats.runs.len() as u64;
    let outcomes: Map<String, Value> =
        stats.outcomes.iter().map(|(word, count)| ((*word).to_owned(), json!(count))).collect();
    let of_state = |(name, numbers): (&_, &StateStats)| {
        json!({
            "state": name,
            "visits": numbers.visits.count,
            "median_ms": numbers.visits.durations.median(),
            "p90_ms": numbers.visits.durations.percentile(90),
            "total_ms": millis(numbers.visits.total),
            "flaky": share(numbers.flaky, numbers.runs),
        })
    };
    let mut of_loop = json!({
        "loop": name,
        "runs": runs,
        "outcomes": outcomes,
        "verified": share(stats.verified, stats.successes),
        "flaky": share(stats.flaky, runs),
        "median_ms": stats.durations.median(),
        "p90_ms": stats.durations.percentile(90),
        "passes": {"median": stats.passes.median()},
        "cost_usd": cost(&stats.usage),
        "states": stats.states.iter().map(of_state).collect::<Vec<_>>(),
    });
    if stats.reuse != ReuseCounts::default() {
        let ReuseCounts { runs, items, saved, proved, refuted } = stats.reuse;
        of_loop["reused"] = json!({
            "runs": runs, "items": items, "saved_ms": millis(saved), "proved": proved, "refuted": refuted,
        });
    }
    of_loop
}

/// Writes the numbers for people.
pub fn text(stats: &Stats) -> String {
    let loops: Vec<String> = stats.loops.iter().map(|(name, stats)| loop_text(name, stats)).collect();
    let mut out = loops.join("\n");
    let slowest = stats.slowest();
    if !slowest.is_empty() {
        out.push_str("\nmost time went into\n");
    }
    for slow in slowest {
        let (of, name) = (one_line(slow.loop_name, 80), one_line(slow.state.as_str(), 80));
        let _ = writeln!(out, "  {:>9}  {of}: {name}", human(slow.total));
    }
    out
}

fn loop_text(name: &str, stats: &LoopStats) -> String {
    let runs = stats.in_order();
    let last = &runs[runs.len().saturating_sub(TREND)..];
    let outcomes: Vec<String> =
        stats.outcomes.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let counted = std::iter::once(plural(runs.len() as u64, "run")).chain(outcomes);
    let mut out = format!("{}: {}\n", one_line(name, 200), counted.collect::<Vec<_>>().join(", "));
    let mut row = |name: &str, value: &str, trend: &str| {
        let line = format!("  {name:<9} {value:<38}  {trend}");
        let _ = writeln!(out, "{}", line.trim_end());
    };
    let ends: String = last.iter().map(|run| if run.is_success { '✓' } else { '✗' }).collect();
    let count = last.len() as u64;
    row("outcomes", &format!("of the last {}", plural(count, "run")), &ends);
    match share(stats.verified, stats.successes) {
        Some(verified) => row("verified", &format!("{} of the successes", percent(verified)), ""),
        None => row("verified", "no success yet", ""),
    }
    row(
        "flaky",
        &format!("{} of the runs", percent(share(stats.flaky, runs.len() as u64).unwrap_or(0.0))),
        "",
    );
    let duration = |ms: Option<u64>| human(Duration::from_millis(ms.unwrap_or(0)));
    let (median, p90) = (stats.durations.median(), stats.durations.percentile(90));
    let times = format!("median {}, p90 {}", duration(median), duration(p90));
    row("actions", &times, &trend(last, |run| Some(run.acted_ms)));
    if let Some(passes) = stats.passes.median() {
        let until = format!("median {passes} until clean");
        row("passes", &until, &trend(last, |run| run.passes.map(u64::from)));
    }
    if let Some(sum) = stats.usage.sentence() {
        row("cost", &sum, &trend(last, |run| run.cost.map(cents)));
    }
    if let Some(reused) = reused(&stats.reuse) {
        row("reused", &reused, "");
    }
    out.push_str(&table(stats));
    out
}

/// Says for what earlier runs stood, and whether they were right.
fn reused(counts: &ReuseCounts) -> Option<String> {
    let ReuseCounts { runs, items, saved, proved, refuted } = *counts;
    let some = |count: u64, what: &str| (count > 0).then(|| plural(count, what));
    let stood: Vec<String> = [some(runs, "run"), some(items, "item")].into_iter().flatten().collect();
    let stood = (!stood.is_empty()).then(|| format!("{}, which saved {}", stood.join(" and "), human(saved)));
    let checked = (proved + refuted > 0).then(|| {
        let wrong = if refuted == 0 { "none".to_owned() } else { refuted.to_string() };
        format!("{} made to prove one, {wrong} of them wrong", plural(proved + refuted, "run"))
    });
    let all: Vec<String> = [stood, checked].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn table(stats: &LoopStats) -> String {
    // Characters and not columns, because `{:<width$}` counts them as well.
    let width = stats.states.keys().map(|name| one_line(name.as_str(), NAME).chars().count()).max();
    let width = width.unwrap_or(0).max("state".len());
    let mut out = format!(
        "\n  {:<width$}  {:>6}  {:>9}  {:>9}  {:>9}  {:>5}\n",
        "state", "visits", "median", "p90", "total", "flaky"
    );
    for (name, state) in &stats.states {
        let of = |ms: Option<u64>| ms.map_or_else(|| "-".to_owned(), |ms| human(Duration::from_millis(ms)));
        let durations = &state.visits.durations;
        let _ = writeln!(
            out,
            "  {:<width$}  {:>6}  {:>9}  {:>9}  {:>9}  {:>5}",
            one_line(name.as_str(), NAME),
            state.visits.count,
            of(durations.median()),
            of(durations.percentile(90)),
            // Without an action there is a dash here too, and no time of zero.
            of(durations.median().map(|_| millis(state.visits.total))),
            percent(share(state.flaky, state.runs).unwrap_or(0.0)),
        );
    }
    out
}

/// Draws the last runs as bars between nothing and the highest of them. A run that has no such number leaves a gap.
fn trend(runs: &[&TrendPoint], number: impl Fn(&TrendPoint) -> Option<u64>) -> String {
    let numbers: Vec<Option<u64>> = runs.iter().map(|run| number(run)).collect();
    sparkline(&numbers)
}

fn sparkline(numbers: &[Option<u64>]) -> String {
    let highest = numbers.iter().flatten().max().copied().unwrap_or(0).max(1);
    let top = BARS.len() as u64 - 1;
    let bar = |number: &Option<u64>| {
        let Some(number) = number else { return ' ' };
        // A journal may claim any duration, and a product of `u64` could overflow.
        let height = u128::from(*number) * u128::from(top) / u128::from(highest);
        usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or(BARS[7])
    };
    numbers.iter().map(bar).collect()
}

/// Returns hundredths of a cent, for a trend.
fn cents(cost: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a price is neither negative nor huge, and a cast saturates"
    )]
    let hundredths = (cost * 10_000.0) as u64;
    hundredths
}

/// Writes a share; one that is not quite nothing or everything is not shown as that.
fn percent(share: f64) -> String {
    let rounded = (share * 100.0).round();
    match share {
        share if share > 0.0 && rounded < 1.0 => "<1%".to_owned(),
        share if share < 1.0 && rounded > 99.0 => ">99%".to_owned(),
        _ => format!("{rounded}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_reaches_from_nothing_to_its_highest_number() {
        let drawn = |numbers: &[u64]| sparkline(&numbers.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(drawn(&[]), "");
        assert_eq!(drawn(&[0, 0]), "▁▁");
        assert_eq!(drawn(&[5, 5]), "██");
        assert_eq!(drawn(&[0, 1, 2, 3, 4, 5, 6, 7]), "▁▂▃▄▅▆▇█");
        assert_eq!(drawn(&[u64::MAX, u64::MAX / 2]), "█▄");
        assert_eq!(sparkline(&[Some(1), None, Some(1)]), "█ █");
    }

    #[test]
    fn a_share_is_rounded_but_never_to_nothing_or_all() {
        let shown: Vec<String> =
            [0.0, 0.001, 0.006, 0.5, 0.994, 0.999, 1.0].into_iter().map(percent).collect();
        assert_eq!(shown.join(" "), "0% <1% 1% 50% 99% >99% 100%");
    }
}
