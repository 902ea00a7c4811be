//! The key of a run: what tells it from the other runs of its loop in the same CI run, such as the legs of a matrix.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::slug::{MAX, is_safe, slug};

/// What tells a run from the other runs of its loop in the same CI run. Its text can be part of a file name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunKey {
    base: String,
    number: u32,
    is_chosen: bool,
    /// The key of the run that this one continues, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continued: Option<String>,
    /// The matrix, by which the same leg is known in other jobs.
    #[serde(skip)]
    matrix: Option<String>,
}

impl RunKey {
    /// Makes the key of a job. `given` is the matrix of the job as JSON, or a key that somebody chose.
    ///
    /// No job is named with a dot, and values are joined by `_`: a text that would leave open where a value ends has a
    /// digest of the whole.
    pub fn new(given: Option<&str>, job: &str) -> Self {
        let given = given.map(str::trim).filter(|given| !given.is_empty());
        match (given, given.and_then(|given| serde_json::from_str(given).ok())) {
            (Some(_), Some(Value::Object(matrix))) if !matrix.is_empty() => Self::of_matrix(matrix, job),
            // `toJSON(matrix)` is `null` in a job without a matrix.
            (None, _) | (_, Some(Value::Null | Value::Object(_))) => {
                Self::plain(&slug(job, job, false), false)
            }
            (Some(given), _) => match numbered(given) {
                Some((base, number)) => Self { number, ..Self::plain(base, true) },
                None => Self::plain(&slug(given, given, false), true),
            },
        }
    }

    fn plain(base: &str, is_chosen: bool) -> Self {
        Self { base: base.to_owned(), number: 1, is_chosen, continued: None, matrix: None }
    }

    fn of_matrix(matrix: serde_json::Map<String, Value>, job: &str) -> Self {
        // Runners do not agree on the order of the values, but the keys have one.
        let sorted: BTreeMap<String, Value> = matrix.into_iter().collect();
        let values: Vec<String> = sorted.values().map(text).collect();
        let is_ambiguous =
            values.len() > 1 && values.iter().any(|value| value.is_empty() || value.contains('_'));
        let readable = format!("{job}.{}", values.join("_"));
        let matrix = serde_json::to_string(&sorted).expect("JSON values have a text");
        // The NUL, which is in no name of a job, keeps a job and its matrix apart.
        let key = Self::plain(&slug(&readable, &format!("{job}\0{matrix}"), is_ambiguous), true);
        Self { matrix: Some(matrix), ..key }
    }

    /// Tells whether this is the key of the same leg of a matrix in another job.
    pub fn is_of_same_leg(&self, other: &str) -> bool {
        let Some((matrix, (job, _))) = self.matrix.as_deref().zip(other.split_once('.')) else {
            return false;
        };
        let base = numbered(other).map_or(other, |(base, _)| base);
        Self::new(Some(matrix), job).base == base
    }

    /// Returns the key of a run that continues the one with the key `other`, and is reported in its place.
    #[must_use]
    pub fn continuing(self, other: &str) -> Self {
        // No job has a dot in its name: somebody chose such a key, or it is that of a leg.
        let is_another = other != self.to_string() && other.contains('.');
        Self { continued: is_another.then(|| other.to_owned()), ..self }
    }

    /// Returns the key of a run that continues one with the same key in the same CI run, where no two things have one
    /// name.
    #[must_use]
    pub fn after_itself(self) -> Self {
        Self { continued: self.shown(), number: self.number + 1, ..self }
    }

    /// Returns the key of the run of the loop with this number, counted from 1, in the job.
    #[must_use]
    pub fn nth(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// Returns the number of the run of the loop in the job. A key that was given with one keeps it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the key as people see it beside the loop; nothing for a job that has neither a matrix nor a key of its
    /// own.
    pub fn shown(&self) -> Option<String> {
        self.continued.clone().or_else(|| self.is_chosen.then(|| self.to_string()))
    }

    /// Tells whether somebody has to name the key to mean this run.
    pub fn is_special(&self) -> bool {
        self.is_chosen || self.number > 1
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        // No job has a plus in its name, and in a given key it is replaced.
        if self.number > 1 { write!(f, "+{}", self.number) } else { Ok(()) }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Splits `x+2` into the key and its number, as a message of ours shows it.
fn numbered(given: &str) -> Option<(&str, u32)> {
    let (base, number) = given.rsplit_once('+')?;
    let number = number.parse().ok().filter(|number| *number > 1)?;
    (!base.is_empty() && base.len() <= MAX && base.chars().all(is_safe)).then_some((base, number))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(given: Option<&str>, job: &str, text: &str, shown: Option<&str>) {
        let key = RunKey::new(given, job);
        assert_eq!(key.to_string(), text);
        assert_eq!(key.shown().as_deref(), shown);
    }

    #[test]
    fn a_key_is_that_of_the_job_its_matrix_or_its_own() {
        check(None, "test", "test", None);
        check(Some(" "), "test", "test", None);
        // GitHub says `null` without a matrix, and act `{}`.
        check(Some("null"), "unit_tests", "unit_tests", None);
        check(Some("{}"), "test", "test", None);
        let matrix = "{\n  \"os\": \"ubuntu-24.04\",\n  \"node\": 20\n}";
        check(Some(matrix), "test", "test.20_ubuntu-24.04", Some("test.20_ubuntu-24.04"));
        check(
            Some(r#"{"node":20,"os":"ubuntu-24.04"}"#),
            "test",
            "test.20_ubuntu-24.04",
            Some("test.20_ubuntu-24.04"),
        );
        check(Some("web"), "test", "web", Some("web"));
        check(Some("\"web\""), "test", "-web--bde14896", Some("-web--bde14896"));
        check(Some("7"), "test", "7", Some("7"));
        check(Some("api/web"), "test", "api-web-5cdecc3e", Some("api-web-5cdecc3e"));
        check(Some("../x"), "test", "..-x-d6b96a97", Some("..-x-d6b96a97"));
    }

    #[test]
    fn the_second_run_of_a_loop_in_a_job_has_a_number() {
        let second = RunKey::new(None, "test").nth(2);
        assert_eq!((second.to_string(), second.shown()), ("test+2".to_owned(), None));
        assert!(second.is_special());
        let again = RunKey::new(Some("test+2"), "other");
        assert_eq!((again.to_string().as_str(), again.number()), ("test+2", 2));
        // Not a number of ours.
        assert_eq!(RunKey::new(Some("c+1"), "x").number(), 1);
        assert_ne!(RunKey::new(Some("c++2"), "x").to_string(), "c++2");
    }

    #[test]
    fn a_leg_is_known_in_another_job() {
        let leg = |os: &str, job: &str| RunKey::new(Some(&format!(r#"{{"os":"{os}","node":20}}"#)), job);
        for os in ["win", "node:20", "a_b", &"x".repeat(90)] {
            let other = leg(os, "check").to_string();
            assert!(leg(os, "later").is_of_same_leg(&other), "{other}");
            assert!(!leg("mac", "later").is_of_same_leg(&other), "{other}");
            assert!(leg(os, "later").is_of_same_leg(&leg(os, "check").nth(2).to_string()));
        }
        assert!(!RunKey::new(None, "later").is_of_same_leg("check.20_win"));
        let going_on = leg("win", "later").continuing("check.20_win");
        assert_eq!(
            (going_on.to_string().as_str(), going_on.shown().as_deref()),
            ("later.20_win", Some("check.20_win"))
        );
        let again = RunKey::new(Some("web"), "later").after_itself();
        assert_eq!((again.to_string().as_str(), again.shown().as_deref()), ("web+2", Some("web")));
        assert_eq!(RunKey::new(None, "later").continuing("check").shown(), None);
    }

    #[test]
    fn keys_that_look_alike_are_not_the_same() {
        let alike = [
            (Some(r#"{"a":"x_y","b":"z"}"#), "test"),
            (Some(r#"{"a":"x","b":"y_z"}"#), "test"),
            (Some(r#"{"a":"","b":"x"}"#), "test"),
            (Some(r#"{"a":"x","b":""}"#), "test"),
            (Some(r#"{"a":"x"}"#), "test"),
            (Some(r#"{"a":["x"]}"#), "test"),
            (Some(r#"{"a":"x/y"}"#), "test"),
            (Some(r#"{"a":"x-y"}"#), "test"),
            (None, "test-x"),
            (None, "test_x"),
            (None, "test"),
        ];
        let keys: BTreeSet<String> =
            alike.iter().map(|(given, job)| RunKey::new(*given, job).to_string()).collect();
        assert_eq!(keys.len(), alike.len(), "{keys:?}");
    }

    proptest! {
        #[test]
        fn a_key_is_a_name_of_a_file(given in ".{0,200}", job in "[A-Za-z_][A-Za-z0-9_-]{0,90}") {
            let key = RunKey::new(Some(&given), &job).to_string();
            prop_assert!(!key.is_empty() && key.chars().all(|c| is_safe(c) || c == '+'), "{key}");
            prop_assert!(key.len() <= MAX + 11);
            // It is its own key where it is given.
            prop_assert_eq!(RunKey::new(Some(&key), "other").to_string(), key);
        }

        #[test]
        fn legs_never_share_a_key(
            one in prop::collection::btree_map("[a-c]", "[xy_.-]{0,3}", 2..=2),
            other in prop::collection::btree_map("[a-c]", "[xy_.-]{0,3}", 2..=2),
        ) {
            let key = |matrix| RunKey::new(Some(&serde_json::to_string(matrix).unwrap()), "job").to_string();
            let same_values = one.values().eq(other.values());
            prop_assert_eq!(key(&one) == key(&other), one == other || (same_values && one.values().all(|v| !v.contains('_') && !v.is_empty())));
        }
    }
}
