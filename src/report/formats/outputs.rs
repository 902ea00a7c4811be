//! The outputs of a run for the next step of a job: an ordered list of keys and values. A value that does not exist
//! in this version or for this run is empty.

use std::fmt::Write as _;

use crate::base::text::{is_line_end, one_line};
use crate::base::time::millis;
use crate::engine::event::LoopComplete;
use crate::engine::outcome::Outcome;
use crate::report::digest::Digest;

/// Returns the outputs in their order.
pub fn outputs(digest: &Digest) -> Vec<(&'static str, String)> {
    let end = digest.end();
    let of_end = |value: Option<String>| value.unwrap_or_default();
    // A run that was skipped or could not begin has no end, and nothing verified it.
    let none_code = digest.not_run().map(|_| 0).or(digest.unbegun().map(|unbegun| unbegun.exit_code));
    let of_run = |value: Option<String>, otherwise: &str| match none_code {
        Some(_) => otherwise.to_owned(),
        None => of_end(value),
    };
    let places = &digest.places;
    let resume_from = Some(&places.resume_from).filter(|_| end.is_some_and(LoopComplete::is_resumable));
    vec![
        ("outcome", digest.outcome_word().to_owned()),
        ("exit-code", of_end(end.map(|end| end.exit_code).or(none_code).map(|code| code.to_string()))),
        ("verified", of_run(digest.verified_word().map(str::to_owned), "false")),
        ("reused", of_run(end.map(|_| digest.reused().is_some().to_string()), "false")),
        ("reused-from", digest.reused().map(|reused| one_line(&reused.run, 200)).unwrap_or_default()),
        ("final-state", of_end(end.map(|end| end.final_state.to_string()))),
        ("iterations", digest.iterations().to_string()),
        ("steps", digest.step_count().to_string()),
        ("duration-ms", millis(digest.duration()).to_string()),
        ("run-id", digest.run_id().to_owned()),
        ("handoff", of_run(end.map(|end| (end.outcome == Outcome::Handoff).to_string()), "false")),
        ("awaiting", digest.awaiting().map(|awaiting| awaiting.code.clone()).unwrap_or_default()),
        ("continuation", digest.continuation().unwrap_or("").to_owned()),
        ("key", places.key.clone()),
        ("artifact-name", places.artifact_name.clone()),
        ("resume-from", resume_from.cloned().unwrap_or_default()),
        ("report-dir", places.report_dir.clone()),
        ("junit", places.junit.clone()),
        ("summary", places.summary.clone()),
        ("cost-usd", cost(digest)),
        ("changed-files", of_end(digest.changes().map(|changes| changes.count().to_string()))),
        ("patch", of_end(digest.changes().and_then(|changes| changes.patch).map(|_| places.patch.clone()))),
    ]
}

/// Returns the cost in US dollars; nothing where no agent was asked, or one did not say what it costs.
fn cost(digest: &Digest) -> String {
    let usage = digest.usage();
    usage.cost_usd.filter(|_| usage.calls > 0).map_or_else(String::new, |cost| format!("{cost:.4}"))
}

/// Writes the outputs, one `key=value` per line.
pub fn render(digest: &Digest) -> String {
    outputs(digest).iter().fold(String::new(), |mut out, (key, value)| {
        // A line end in a value would begin another key, chosen by whoever wrote the value.
        let _ = writeln!(out, "{key}={}", value.replace(is_line_end, " "));
        out
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::report::testing::{Journal, failing, not_run};

    #[test]
    fn every_key_is_there_whatever_happened() {
        assert_snapshot!(render(&failing().digest()), @"
        outcome=failure
        exit-code=1
        verified=false
        reused=false
        reused-from=
        final-state=failed
        iterations=3
        steps=5
        duration-ms=11820
        run-id=fix-types-20251120T234847-1f2e
        handoff=false
        awaiting=
        continuation=
        key=
        artifact-name=
        resume-from=
        report-dir=
        junit=
        summary=
        cost-usd=
        changed-files=
        patch=
        ");
        assert_snapshot!(render(&not_run()), @"
        outcome=success
        exit-code=0
        verified=false
        reused=false
        reused-from=
        final-state=
        iterations=0
        steps=0
        duration-ms=0
        run-id=
        handoff=false
        awaiting=
        continuation=
        key=
        artifact-name=
        resume-from=
        report-dir=
        junit=
        summary=
        cost-usd=
        changed-files=
        patch=
        ");
        assert_snapshot!(render(&Journal::start().enter("check", 1).digest()), @"
        outcome=incomplete
        exit-code=
        verified=
        reused=
        reused-from=
        final-state=
        iterations=1
        steps=1
        duration-ms=5
        run-id=fix-types-20251120T234847-1f2e
        handoff=
        awaiting=
        continuation=
        key=
        artifact-name=
        resume-from=
        report-dir=
        junit=
        summary=
        cost-usd=
        changed-files=
        patch=
        ");
    }
}
