//! Computes the state after a round of checks.

use serde_json::json;

use super::exact_json::{Json, Object};
use super::state::CriteriaState;

/// Returns the state with what the checks of a round found.
///
/// A round that ends at the same first unmet criterion as the one before brings the breaker one step nearer; any
/// other round begins to count anew. While something is unmet, another round begins.
#[must_use]
pub fn advance(state: CriteriaState, results: &[(String, bool)]) -> CriteriaState {
    let CriteriaState(mut map) = state;
    let status = object(&mut map, "criteriaStatus");
    for (name, is_met) in results {
        status.insert(name.clone(), Json::Bool(*is_met));
    }
    let mut state = CriteriaState(map);
    let unmet = state.unmet().next().map(str::to_owned);
    let is_stuck = unmet.as_deref() == Some(state.last_unmet());
    let count = if is_stuck { whole(state.stuck_count()).saturating_add(1) } else { 0 };
    if unmet.is_some() {
        let iteration = whole(state.iteration()).saturating_add(1);
        state.0.insert("iteration".to_owned(), json!(iteration).into());
    }
    let breaker = object(&mut state.0, "circuitBreaker");
    breaker.insert("stuckCount".to_owned(), json!(count).into());
    breaker.insert("lastUnmet".to_owned(), json!(unmet.unwrap_or_default()).into());
    state
}

/// Returns an object of the state, made where there was none.
pub(super) fn object<'m>(map: &'m mut Object, key: &str) -> &'m mut Object {
    let value = map.entry(key.to_owned()).or_insert(Json::Null);
    if value.as_object().is_none() {
        *value = Json::Object(Object::new());
    }
    match value {
        Json::Object(object) => object,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
            unreachable!("it was made one")
        }
    }
}

/// Returns the whole part of a count.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(text: &str) -> CriteriaState {
        CriteriaState::read(text.as_bytes()).unwrap()
    }

    /// Runs rounds of the criteria `a` and `b`; a word names what is met. Returns the count after each round.
    #[track_caller]
    fn check(rounds: &str, expected: &str) {
        let mut state = state(r#"{"criteriaStatus": {"a": false, "b": false}}"#);
        let counts = rounds.split(' ').map(|met| {
            let results = ["a", "b"].map(|name| (name.to_owned(), met.contains(name)));
            state = advance(state.clone(), &results);
            state.stuck_count().to_string()
        });
        assert_eq!(counts.collect::<Vec<_>>().join(" "), expected, "{rounds}");
    }

    #[test]
    fn the_breaker_counts_rounds_at_the_same_criterion() {
        check("- - - - - -", "0 1 2 3 4 5");
        check("- b - b", "0 1 2 3");
        check("- - a a - -", "0 1 0 1 0 1");
        check("- - ab - -", "0 1 0 0 1");
    }

    #[test]
    fn what_nobody_knows_stays_where_it_was() {
        let before = state(
            r#"{"x": [1], "circuitBreaker": {"y": 2, "stuckCount": "4", "lastUnmet": "a"}, "iteration": "7",
                "criteriaStatus": {"z": true, "a": 0}, "status": "in_progress"}"#,
        );
        let after = advance(before, &[("a".to_owned(), false)]);
        let expected = json!({"x": [1], "circuitBreaker": {"y": 2, "stuckCount": 5, "lastUnmet": "a"}, "iteration": 8,
            "criteriaStatus": {"z": true, "a": false}, "status": "in_progress"});
        assert_eq!(after.to_value().to_string(), expected.to_string());
    }

    #[test]
    fn what_is_broken_is_mended() {
        let after = advance(
            state(r#"{"circuitBreaker": 7, "criteriaStatus": [true], "iteration": {}}"#),
            &[("a".to_owned(), true)],
        );
        let expected = json!({"circuitBreaker": {"stuckCount": 0, "lastUnmet": ""}, "criteriaStatus": {"a": true},
            "iteration": {}});
        assert_eq!(after.to_value(), expected);
    }

    #[test]
    fn a_criterion_without_a_name_counts_as_any_other() {
        let once = advance(state("{}"), &[(String::new(), false)]);
        assert_eq!(once.unmet().collect::<Vec<_>>(), [""]);
        assert_eq!(once.iteration().to_string(), "2");
        let rounds = |count| {
            let unmet = [(String::new(), false)];
            (0..count).fold(once.clone(), |state, _| advance(state, &unmet))
        };
        assert!(rounds(5).stuck_count() >= 5.0, "the breaker trips");
        assert!(rounds(1).stuck_count() < 5.0);
    }
}
