//! Whether an agent may stop working, and why.

use super::state::CriteriaState;

/// After this many rounds in a row at the same criterion the work counts as stuck (spec page 06: the circuit
/// breaker of the state file).
pub const STUCK_AFTER: u32 = 5;

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// There is no work, or it was ended.
    Inactive,
    /// Every criterion is met, and the agent says so.
    Done,
    /// The same criterion stays unmet.
    Stuck,
    /// There is something to do.
    Continue,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriteriaDecision {
    /// Whether the agent may stop.
    pub stop: bool,
    /// How far the work is.
    pub progress: Progress,
    /// Why, if `progress` does not say it.
    pub reason: Option<String>,
    /// The criteria that are not met, in the order of the file.
    pub unmet: Vec<String>,
}

impl CriteriaDecision {
    fn new(progress: Progress, reason: Option<String>) -> Self {
        Self { stop: progress != Progress::Continue, progress, reason, unmet: Vec::new() }
    }

    /// Decides by the content of a file, or without a file.
    pub fn about(file: Option<&[u8]>) -> Self {
        match file.map(CriteriaState::read) {
            None => Self::new(Progress::Inactive, None),
            Some(Err(_)) => Self::invalid(),
            Some(Ok(state)) => decide(&state, STUCK_AFTER),
        }
    }

    /// Decides about an unreadable file: the agent may stop, because it cannot be held up for a broken file.
    pub fn invalid() -> Self {
        Self::new(Progress::Inactive, Some("invalid state file".to_owned()))
    }
}

/// Decides, with the breaker at so many rounds. The first rule that matches decides.
pub fn decide(state: &CriteriaState, stuck_after: u32) -> CriteriaDecision {
    let unmet: Vec<String> = state.unmet().map(str::to_owned).collect();
    let has_criteria = state.criteria().next().is_some();
    let (progress, reason) = if state.has_ended() {
        (Progress::Inactive, None)
    // Before what is unmet, which would hold an agent for ever at work that does not move.
    } else if state.stuck_count() >= f64::from(stuck_after) {
        (Progress::Stuck, Some(stuck(state)))
    } else if has_criteria && unmet.is_empty() && state.is_signalled() {
        (Progress::Done, None)
    } else if !unmet.is_empty() {
        (Progress::Continue, Some(format!("unmet criteria: {}", unmet.join(", "))))
    } else if has_criteria {
        (Progress::Continue, Some("all criteria are met, but exit_signal is not set".to_owned()))
    } else if state.is_signalled() {
        (Progress::Continue, Some("no criteria are recorded in criteriaStatus".to_owned()))
    } else {
        let reason = "no criteria are recorded in criteriaStatus, and exit_signal is not set";
        (Progress::Continue, Some(reason.to_owned()))
    };
    CriteriaDecision { unmet, ..CriteriaDecision::new(progress, reason) }
}

fn stuck(state: &CriteriaState) -> String {
    let count = state.stuck_count();
    match state.last_unmet() {
        "" => format!("circuit breaker: {count} rounds without progress"),
        last => format!("circuit breaker: {count} rounds without progress at: {last}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// What is said about a file: `ok`, `ok: why` or `no: why`.
    fn said(file: &[u8]) -> String {
        let CriteriaDecision { stop, reason, .. } = CriteriaDecision::about(Some(file));
        let word = if stop { "ok" } else { "no" };
        reason.map_or(word.to_owned(), |reason| format!("{word}: {reason}"))
    }

    #[track_caller]
    fn check(table: &[(&str, &str)]) {
        for (file, expected) in table {
            assert_eq!(said(file.as_bytes()), *expected, "{file}");
        }
    }

    const INVALID: &str = "ok: invalid state file";
    const NOTHING: &str = "no: no criteria are recorded in criteriaStatus, and exit_signal is not set";
    const UNRECORDED: &str = "no: no criteria are recorded in criteriaStatus";
    const UNSIGNALLED: &str = "no: all criteria are met, but exit_signal is not set";

    #[test]
    fn without_a_file_there_is_no_work() {
        let decision = CriteriaDecision::about(None);
        assert_eq!((decision.stop, decision.progress, decision.reason), (true, Progress::Inactive, None));
    }

    #[test]
    fn what_is_no_state_holds_nobody_up() {
        check(
            &[
                "",
                " ",
                "\n",
                "\0",
                "\u{feff}",
                "null",
                "true",
                "false",
                "0",
                "-1.5e3",
                "\"text\"",
                "[]",
                "[{}]",
                "[true]",
                "{",
                "}",
                "{]",
                "{}{}",
                "{} {}",
                "{}\n{}",
                "{},",
                "{\"a\"}",
                "{\"a\":}",
                "{\"a\":1,}",
                "{a:1}",
                "{'a':1}",
                "{\"a\":01}",
                "{\"a\":NaN}",
                "{\"a\":\"\\x\"}",
                "{\"a\":\"\u{1}\"}",
                "{\"a\":\"\\ud800\"}",
                "// no\n{}",
                "# no\n{}",
                "---\nstatus: in_progress\n",
                "<state/>",
                "{\"status\":\"in_progress\"} trailing",
                "{\"status\":\"in_prog",
                "tru",
                "nul",
            ]
            .map(|file| (file, INVALID)),
        );
        assert_eq!(said(b"\xff\xfe{\x00}\x00"), INVALID);
        assert_eq!(said(b"{\"status\":\"\xff\"}"), INVALID);
        assert_eq!(said(format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000)).as_bytes()), INVALID);
        assert_eq!(said("{\"a\":".repeat(200_000).as_bytes()), INVALID);
        assert_eq!(said(&vec![b' '; 10_000_000]), INVALID);
        let nested = format!(r#"{{"x":{}{},"status":"completed"}}"#, "[".repeat(100), "]".repeat(100));
        assert_eq!(said(nested.as_bytes()), "ok");
    }

    #[test]
    fn an_end_is_written_exactly() {
        check(&[
            (r#"{"status":"completed"}"#, "ok"),
            (r#"{"status":"cancelled"}"#, "ok"),
            (r#"{"status":"completed","criteriaStatus":{"a":false}}"#, "ok"),
            (r#"{"status":"cancelled","circuitBreaker":{"stuckCount":9}}"#, "ok"),
            ("\u{feff}{\"status\":\"completed\"}", "ok"),
            ("{\r\n\"status\":\"completed\"\r\n}\r\n", "ok"),
            ("\n\n\t{\"status\" : \"completed\"}\n\n", "ok"),
            (r#"{"status":"in_progress","status":"completed"}"#, "ok"),
            (r#"{"status":"\u0063ompleted"}"#, "ok"),
            (r#"{"status":"Completed"}"#, NOTHING),
            (r#"{"status":"completed "}"#, NOTHING),
            (r#"{"status":"complete"}"#, NOTHING),
            (r#"{"status":"canceled"}"#, NOTHING),
            (r#"{"status":"done"}"#, NOTHING),
            (r#"{"status":""}"#, NOTHING),
            (r#"{"status":null}"#, NOTHING),
            (r#"{"status":true}"#, NOTHING),
            (r#"{"status":["completed"]}"#, NOTHING),
            (r#"{"status":{"completed":true}}"#, NOTHING),
            (r#"{"Status":"completed"}"#, NOTHING),
            (r#"{"state":{"status":"completed"}}"#, NOTHING),
            (r#"{"status":"completed","status":"in_progress"}"#, NOTHING),
            ("{}", NOTHING),
            // A number of any size is one.
            (r#"{"a":1e999}"#, NOTHING),
        ]);
    }

    #[test]
    fn the_breaker_trips_at_five() {
        let stuck = |count: &str| {
            format!(r#"{{"circuitBreaker":{{"stuckCount":{count}}},"criteriaStatus":{{"a":false}}}}"#)
        };
        for (count, shown) in [
            ("5", "5"),
            ("6", "6"),
            ("5.0", "5"),
            ("5.5", "5.5"),
            ("50e-1", "5"),
            ("\"5\"", "5"),
            ("\"12\"", "12"),
            ("\" 5\"", "5"),
            ("\"5.0\"", "5"),
            ("\"05\"", "5"),
            ("\"+5\"", "5"),
            ("4294967296", "4294967296"),
        ] {
            let expected = format!("ok: circuit breaker: {shown} rounds without progress");
            assert_eq!(said(stuck(count).as_bytes()), expected, "{count}");
        }
        for count in [
            "0",
            "4",
            "4.999",
            "-5",
            "null",
            "true",
            "[5]",
            "{}",
            "\"4\"",
            "\"five\"",
            "\"\"",
            "\"5 times\"",
            "\"inf\"",
            "\"NaN\"",
            "\"0x9\"",
            "\"5,0\"",
        ] {
            assert_eq!(said(stuck(count).as_bytes()), "no: unmet criteria: a", "{count}");
        }
        check(&[
            (
                r#"{"circuitBreaker":{"stuckCount":5,"lastUnmet":"a b"}}"#,
                "ok: circuit breaker: 5 rounds without progress at: a b",
            ),
            (
                r#"{"circuitBreaker":{"stuckCount":5,"lastUnmet":7}}"#,
                "ok: circuit breaker: 5 rounds without progress",
            ),
            (
                r#"{"circuitBreaker":{"stuckCount":5},"criteriaStatus":{"a":true},"exit_signal":true}"#,
                "ok: circuit breaker: 5 rounds without progress",
            ),
            (r#"{"circuitBreaker":5}"#, NOTHING),
            (r#"{"circuitBreaker":[5]}"#, NOTHING),
            (r#"{"circuitBreaker":null}"#, NOTHING),
            (r#"{"stuckCount":5}"#, NOTHING),
            (r#"{"circuitBreaker":{"stuck_count":5}}"#, NOTHING),
        ]);
    }

    #[test]
    fn only_true_is_met() {
        for value in [
            "false",
            "\"true\"",
            "\"false\"",
            "1",
            "0",
            "{}",
            "[]",
            "[true]",
            "null",
            "\"\"",
            "{\"met\":true}",
        ] {
            let file = format!(r#"{{"criteriaStatus":{{"a":{value},"b":true}},"exit_signal":true}}"#);
            assert_eq!(said(file.as_bytes()), "no: unmet criteria: a", "{value}");
            let file = format!(r#"{{"criteriaStatus":{{"a":true}},"exit_signal":{value}}}"#);
            assert_eq!(said(file.as_bytes()), UNSIGNALLED, "{value}");
        }
        check(&[
            (r#"{"criteriaStatus":{"a":true},"exit_signal":true}"#, "ok"),
            (r#"{"criteriaStatus":{"a":true,"b":true},"exit_signal":true,"status":"in_progress"}"#, "ok"),
            (r#"{"criteriaStatus":{"":true},"exit_signal":true}"#, "ok"),
            (r#"{"criteriaStatus":{"a":true}}"#, UNSIGNALLED),
            (r#"{"criteriaStatus":{"a":true},"exitSignal":true}"#, UNSIGNALLED),
            (r#"{"criteriaStatus":{"a":false},"exit_signal":true}"#, "no: unmet criteria: a"),
            (r#"{"criteriaStatus":{"b":false,"a":false},"exit_signal":false}"#, "no: unmet criteria: b, a"),
            (r#"{"criteriaStatus":{"a":false,"b":true,"c":false}}"#, "no: unmet criteria: a, c"),
            (r#"{"criteriaStatus":{"a":false,"a":true},"exit_signal":true}"#, "ok"),
            (r#"{"criteriaStatus":{"a":true,"a":false},"exit_signal":true}"#, "no: unmet criteria: a"),
            (r#"{"criteriaStatus":{},"exit_signal":true}"#, UNRECORDED),
            (r#"{"criteriaStatus":[true],"exit_signal":true}"#, UNRECORDED),
            (r#"{"criteriaStatus":true,"exit_signal":true}"#, UNRECORDED),
            (r#"{"criteriaStatus":null,"exit_signal":true}"#, UNRECORDED),
            (r#"{"criteria":["a"],"exit_signal":true}"#, UNRECORDED),
            (r#"{"exit_signal":true}"#, UNRECORDED),
            (r#"{"criteriaStatus":{}}"#, NOTHING),
        ]);
    }

    #[test]
    fn names_come_out_as_they_are() {
        for name in [
            "say \"hi\"",
            "a\nb",
            "\u{1b}[31m",
            "\0",
            "\\",
            "é",
            "日本",
            "🦀",
            "\u{202e}x",
            "a, b",
            " ",
            "${x}",
            "$(x)",
            "%s",
        ] {
            let file = json!({"criteriaStatus": {name: false}}).to_string();
            assert_eq!(said(file.as_bytes()), format!("no: unmet criteria: {name}"));
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            prop::sample::select(vec!["in_progress", "completed", "5", "a"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let key = prop_oneof![
                any::<String>(),
                prop::sample::select(vec![
                    "status",
                    "criteriaStatus",
                    "exit_signal",
                    "circuitBreaker",
                    "stuckCount"
                ])
                .prop_map(str::to_owned),
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..5)
                    .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
            ]
        })
    }

    proptest! {
        #[test]
        fn whoever_may_not_stop_is_told_why(value in value()) {
            let decision = CriteriaDecision::about(Some(value.to_string().as_bytes()));
            prop_assert!(decision.stop || decision.reason.is_some_and(|reason| !reason.is_empty()));
            prop_assert_eq!(decision.stop, decision.progress != Progress::Continue);
        }

        #[test]
        fn bytes_of_any_kind_are_decided_about(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let decision = CriteriaDecision::about(Some(&bytes));
            prop_assert!(decision.stop || decision.reason.is_some());
        }

        #[test]
        fn meeting_a_criterion_never_takes_the_leave_back(
            met in prop::collection::vec(any::<bool>(), 1..6),
            which in any::<prop::sample::Index>(),
            signal in any::<bool>(),
            count in 0..8,
        ) {
            let said = |met: &[bool]| {
                let status: Map<_, _> =
                    met.iter().enumerate().map(|(index, met)| (index.to_string(), json!(met))).collect();
                let file = json!({"criteriaStatus": status, "exit_signal": signal,
                    "circuitBreaker": {"stuckCount": count}});
                CriteriaDecision::about(Some(file.to_string().as_bytes())).stop
            };
            let mut more = met.clone();
            more[which.index(met.len())] = true;
            prop_assert!(said(&more) || !said(&met));
        }
    }
}
