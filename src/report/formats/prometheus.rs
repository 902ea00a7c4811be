//! A run as Prometheus reads it from a text file, for the textfile collector of a node exporter or a Pushgateway.

use std::fmt::Write as _;

use crate::report::digest::Digest;
use crate::report::metrics::{Metric, metrics};

/// Writes the metrics of a run. All are gauges: the file says what one run was like, and the next run replaces it, so
/// that a counter would only seem to be reset.
pub fn render(digest: &Digest) -> String {
    let mut out = String::new();
    for Metric { row, points } in metrics(digest) {
        let _ = writeln!(out, "# HELP {0} {1}\n# TYPE {0} gauge", row.prometheus, row.help);
        for point in points {
            let labels: Vec<String> =
                point.labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let _ = writeln!(out, "{}{{{}}} {}", row.prometheus, labels.join(","), point.value);
        }
    }
    out
}

/// Writes the value of a label, which is one line already.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::report::testing::{failing, not_run, working};

    #[test]
    fn a_run_is_a_handful_of_gauges() {
        assert_snapshot!(render(&failing().digest()), @r#"
        # HELP ll_loop_run_duration_seconds How long the run took, without the pauses between its parts.
        # TYPE ll_loop_run_duration_seconds gauge
        ll_loop_run_duration_seconds{loop="fix-types",outcome="failure",verified="false"} 11.82
        # HELP ll_loop_run_end_timestamp_seconds When the run ended, in seconds since 1970.
        # TYPE ll_loop_run_end_timestamp_seconds gauge
        ll_loop_run_end_timestamp_seconds{loop="fix-types"} 1763682538.825
        # HELP ll_loop_run_verdicts How often a verdict fell in a state.
        # TYPE ll_loop_run_verdicts gauge
        ll_loop_run_verdicts{loop="fix-types",state="check",verdict="no"} 3
        # HELP ll_loop_run_reuse_hits Whether an earlier run stood for this one: 1 or 0.
        # TYPE ll_loop_run_reuse_hits gauge
        ll_loop_run_reuse_hits{loop="fix-types"} 0
        "#);
    }

    #[test]
    fn what_agents_took_is_told_by_model() {
        let text = render(&working().digest());
        let agents: Vec<&str> = text.lines().filter(|line| line.starts_with("ll_loop_run_agent")).collect();
        assert_snapshot!(agents.join("\n"), @r#"
        ll_loop_run_agent_calls{loop="build",model="unknown"} 17
        ll_loop_run_agent_tokens{loop="build",model="unknown",type="input"} 17000
        ll_loop_run_agent_tokens{loop="build",model="unknown",type="output"} 340
        ll_loop_run_agent_cost_usd{loop="build",model="unknown"} 8.5
        "#);
    }

    #[test]
    fn a_run_that_was_not_needed_has_an_outcome_and_no_end() {
        assert_snapshot!(render(&not_run()), @r#"
        # HELP ll_loop_run_duration_seconds How long the run took, without the pauses between its parts.
        # TYPE ll_loop_run_duration_seconds gauge
        ll_loop_run_duration_seconds{loop="fix-types",outcome="success",verified="false"} 0
        # HELP ll_loop_run_reuse_hits Whether an earlier run stood for this one: 1 or 0.
        # TYPE ll_loop_run_reuse_hits gauge
        ll_loop_run_reuse_hits{loop="fix-types"} 0
        "#);
    }

    #[test]
    fn no_label_ends_early() {
        assert_eq!(escaped(r#"a"b\c"#), r#"a\"b\\c"#);
    }
}
