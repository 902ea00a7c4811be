//! The metrics of a run as a text file. What Prometheus' own parser reads of it is in `tests/packaging`.

use crate::common::{CHECK_FIX, Project};

#[test]
fn a_run_leaves_its_metrics_among_its_reports() {
    let project = Project::with_loop(CHECK_FIX);
    project.run(&["run", "main", "--report-dir", "reports"]).code(0);
    let metrics = project.read("reports/metrics.prom");
    for line in [
        r#"ll_loop_run_verdicts{loop="main",state="check",verdict="no"} 1"#,
        r#"ll_loop_run_verdicts{loop="main",state="check",verdict="yes"} 1"#,
        r#"ll_loop_run_reuse_hits{loop="main"} 0"#,
    ] {
        assert!(metrics.lines().any(|known| known == line), "{line} is not in\n{metrics}");
    }
    assert!(
        metrics.contains(r#"ll_loop_run_duration_seconds{loop="main",outcome="success",verified="true"} "#)
    );
    assert!(!metrics.contains("cost_usd"), "no agent was asked: {metrics}");
    let shown = project.run(&["report", "main", "--format", "prometheus"]).code(0);
    assert_eq!(shown.stdout, metrics);
}

#[test]
fn a_run_that_could_not_begin_has_metrics_too() {
    let project = Project::with_loop("name: main\ninitial: nowhere\nstates:\n  done: {terminal: true}\n");
    project.run(&["run", "main", "--report-dir", "reports"]).code(2);
    let metrics = project.read("reports/metrics.prom");
    let duration = metrics.lines().find(|line| line.starts_with("ll_loop_run_duration_seconds{")).unwrap();
    assert!(duration.contains(r#"loop="main""#) && duration.contains(r#"verified="false""#), "{duration}");
}
