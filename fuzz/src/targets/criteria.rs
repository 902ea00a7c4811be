//! The state file of criteria, as models and people write it: whatever it says, whoever asks gets an answer, and what is
//! written back is JSON that says the same.

use std::borrow::Cow;

use ll_loop::internals::criteria::decision::STUCK_AFTER;
use ll_loop::internals::criteria::spec::Spec;
use ll_loop::internals::criteria::{
    CriteriaDecision, CriteriaState, Progress, advance, decide, hook, resume_message,
};
use serde_json::Value;

use crate::bytes::Plan;
use crate::{Target, note};

/// See above.
pub const TARGET: Target = Target {
    name: "criteria",
    run,
    seeds,
    words: &[
        "\"criteriaStatus\"",
        "\"exit_signal\"",
        "\"status\"",
        "\"in_progress\"",
        "\"completed\"",
        "\"cancelled\"",
        "\"circuitBreaker\"",
        "\"stuckCount\"",
        "\"lastUnmet\"",
        "\"iteration\"",
        "\"steps\"",
        "\"remainingSteps\"",
        "\"completedSteps\"",
        "\"spec\"",
        "\"checks\"",
        "\"criteria\"",
        "true",
        "false",
        "null",
        "1e999",
        "-1",
        "\"5\"",
        "18446744073709551615",
        "{}",
        "[]",
        "\u{feff}",
        "\\ud800",
        "\\u0000",
        "\\n",
        "\u{2028}",
        "__proto__",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        r#"{"spec":"Do it","criteria":["a","b"],"criteriaStatus":{"a":true,"b":false},"exit_signal":false,"steps":["x","y"],"completedSteps":["x"],"remainingSteps":["y"],"iteration":3,"status":"in_progress","circuitBreaker":{"stuckCount":2,"lastUnmet":"b"}}"#,
        r#"{"criteriaStatus":{"a":true},"exit_signal":true}"#,
        r#"{"criteriaStatus":{"a":false},"circuitBreaker":{"stuckCount":"5","lastUnmet":"a"},"checks":{"a":"make test"}}"#,
        r#"{"status":"completed"}"#,
        r#"{"iteration":1.5,"steps":{},"criteriaStatus":[],"remainingSteps":[{"a":1}]}"#,
        "# Do it\n\n## Criteria\n- [x] a\n- b\n\n## Steps\n1. x\n   - y\n",
        "[]",
        "",
    ];
    // The first byte decides what the checks of a round find.
    texts.iter().map(|text| [b"\x05", text.as_bytes()].concat()).collect()
}

fn run(data: &[u8]) {
    let mut plan = Plan::new(data);
    let found = plan.byte();
    let bytes = plan.rest();
    let decision = CriteriaDecision::about(Some(bytes));
    answered(&decision, None);
    let spec = Spec::read(&String::from_utf8_lossy(bytes));
    note((spec.criteria.len().min(3), spec.steps.len().min(3)));
    let Ok(state) = CriteriaState::read(bytes) else {
        assert!(
            decision.stop && decision.progress == Progress::Inactive,
            "nobody is held up by a broken file"
        );
        return;
    };
    assert_eq!(decision, decide(&state, STUCK_AFTER));
    assert_eq!(decision.stop, decision.progress != Progress::Continue);
    assert_eq!(
        decision.stop,
        decision.reason.is_none() || decision.progress == Progress::Stuck,
        "{decision:?}"
    );
    answered(&decision, Some(&state));
    kept(&state);
    round(state, found);
}

/// A hook is answered by one JSON object on one line.
fn answered(decision: &CriteriaDecision, state: Option<&CriteriaState>) {
    note((decision.progress == Progress::Stuck, decision.stop, decision.unmet.len().min(3)));
    let message = state.and_then(resume_message);
    for answer in [hook::HookDialect::Seed, hook::HookDialect::Claude] {
        let stop = [answer.to_stop(decision, None), answer.to_stop(decision, Some("run it"))];
        for text in stop.into_iter().chain([answer.to_resume(message.clone()), answer.to_let_go("go")]) {
            assert!(!text.contains('\n'), "an answer is one line: {text:?}");
            let value: Value = serde_json::from_str(&text).expect("an answer is JSON");
            assert!(value.is_object(), "{text}");
        }
    }
    let blocks = hook::HookDialect::Claude.to_stop(decision, None).contains(r#""block""#);
    assert!(!(blocks && decision.stop), "whoever may stop is not held up");
}

/// What is written is what was read.
fn kept(state: &CriteriaState) {
    let text = state.text();
    let again = CriteriaState::read(text.as_bytes()).expect("what was written can be read");
    assert_eq!(again.text(), text);
    assert_eq!(decide(&again, STUCK_AFTER), decide(state, STUCK_AFTER));
}

/// After a round of checks the file still says something, and a criterion that was found met is met.
fn round(mut state: CriteriaState, found: u8) {
    let criteria: Vec<String> = state.criteria().map(|(name, _)| name.to_owned()).collect();
    let results: Vec<(String, bool)> =
        criteria.iter().enumerate().map(|(at, name)| (name.clone(), found >> (at % 8) & 1 == 1)).collect();
    for _ in 0..STUCK_AFTER + 2 {
        let before = state.stuck_count();
        state = advance(state, &results);
        for (name, is_met) in &results {
            assert!(state.criteria().any(|(known, met)| known == name && met == *is_met));
        }
        assert!(
            state.stuck_count() >= 0.0
                && (state.stuck_count() > 0.0 || before.is_nan() || state.stuck_count() == 0.0)
        );
        kept(&state);
    }
    if results.iter().any(|(_, is_met)| !is_met) && !matches!(state.status(), "completed" | "cancelled") {
        assert_eq!(decide(&state, STUCK_AFTER).progress, Progress::Stuck, "rounds without progress end");
    }
    let step = state.next_step().map(Cow::into_owned);
    if let Some(step) = step {
        let was_left = state.list("remainingSteps").len();
        if state.step_done(&step) {
            assert_eq!(state.list("remainingSteps").len() + 1, was_left);
        }
    }
    state.signal(true);
    for (name, _) in &results {
        assert!(state.set(name, true));
    }
    if !criteria.is_empty() && state.stuck_count() < f64::from(STUCK_AFTER) {
        assert!(decide(&state, STUCK_AFTER).stop, "what is met and signalled is done");
    }
    state.end("completed");
    assert_eq!(decide(&state, STUCK_AFTER).progress, Progress::Inactive);
    kept(&state);
}
