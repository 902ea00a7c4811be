//! Reads the state file leniently, because models and people write it by hand.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::exact_json::{Json, Object};
use crate::base::text::plural;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The mark that some editors put in front of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of the file. Values of a wrong type count as missing.
#[derive(Clone, Debug, PartialEq)]
pub struct CriteriaState(pub(super) Object);

/// Why a file is not a valid state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is too large to be one.
    #[error("it is larger than {}", plural(MAX_BYTES as u64, "byte"))]
    Large,
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Syntax(String),
    /// It is JSON, but not an object.
    #[error("it is not a JSON object")]
    Type,
}

impl CriteriaState {
    /// Reads the content of a file.
    pub fn read(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() > MAX_BYTES {
            return Err(Invalid::Large);
        }
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        match Json::read(bytes).map_err(|error| Invalid::Syntax(error.to_string()))? {
            Json::Object(entries) => Ok(Self(entries)),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => {
                Err(Invalid::Type)
            }
        }
    }

    /// Makes a state of an object.
    pub fn of(map: &Map<String, Value>) -> Self {
        Self(map.iter().map(|(key, value)| (key.clone(), Json::from(value))).collect())
    }

    /// Returns everything it says, in the order of the file.
    pub fn document(&self) -> &Object {
        &self.0
    }

    /// Returns the same as a value of serde.
    pub fn to_value(&self) -> Value {
        Json::Object(self.0.clone()).to_value()
    }

    /// Writes it as a file: for people as long as it stays readable that way, and with the same order each time.
    pub fn text(&self) -> String {
        let document = Json::Object(self.0.clone());
        let text = format!("{document:#}\n");
        // Set for people, a file near the limit would grow beyond it, and could not be read again.
        if text.len() > MAX_BYTES { format!("{document}\n") } else { text }
    }

    /// Returns the status; empty when there is none.
    pub fn status(&self) -> &str {
        self.0.get("status").and_then(Json::as_str).unwrap_or("")
    }

    /// Returns what the work is about, if the file says so.
    pub fn spec(&self) -> Option<&str> {
        self.0.get("spec")?.as_str()
    }

    /// Returns each criterion, and whether it is met. Nothing but the boolean `true` says that.
    pub fn criteria(&self) -> impl Iterator<Item = (&str, bool)> {
        let status = self.0.get("criteriaStatus").and_then(Json::as_object).into_iter().flatten();
        status.map(|(name, met)| (name.as_str(), *met == Json::Bool(true)))
    }

    /// Returns the criteria that are not met, in the order of the file.
    pub fn unmet(&self) -> impl Iterator<Item = &str> {
        self.criteria().filter(|(_, is_met)| !is_met).map(|(name, _)| name)
    }

    /// Tells whether the agent says that the work is done.
    pub fn is_signalled(&self) -> bool {
        self.0.get("exit_signal") == Some(&Json::Bool(true))
    }

    /// Returns how many rounds in a row ended at the same criterion.
    pub fn stuck_count(&self) -> f64 {
        self.breaker("stuckCount").and_then(number).unwrap_or(0.0)
    }

    /// Returns the first criterion that was unmet after the last round; empty when there was none.
    pub fn last_unmet(&self) -> &str {
        self.breaker("lastUnmet").and_then(Json::as_str).unwrap_or("")
    }

    /// Returns the number of the round.
    pub fn iteration(&self) -> f64 {
        self.0.get("iteration").and_then(number).unwrap_or(1.0)
    }

    /// Returns the entries of a list, such as `steps`.
    pub fn list(&self, key: &str) -> &[Json] {
        self.0.get(key).and_then(Json::as_list).unwrap_or(&[])
    }

    /// Returns the step that comes next, if one is left.
    pub fn next_step(&self) -> Option<Cow<'_, str>> {
        self.list("remainingSteps").first().map(|step| match step.as_str() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(step.to_string()),
        })
    }

    fn breaker(&self, key: &str) -> Option<&Json> {
        self.0.get("circuitBreaker")?.get(key)
    }
}

/// Reads a number, or a string that is one.
fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(text) => text.parse().ok(),
        Json::Text(text) => {
            let text = text.trim();
            // `parse` takes `inf` and `nan` for numbers as well.
            let is_digit = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
            text.parse().ok().filter(|_| text.bytes().all(is_digit))
        }
        Json::Null | Json::Bool(_) | Json::List(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_no_state() {
        assert_eq!(CriteriaState::read(b"[]"), Err(Invalid::Type));
        assert_eq!(CriteriaState::read(&vec![b' '; MAX_BYTES + 1]), Err(Invalid::Large));
        let error = CriteriaState::read(b"{").unwrap_err().to_string();
        assert!(error.starts_with("it is not JSON: EOF"), "{error}");
        assert_eq!(Invalid::Large.to_string(), "it is larger than 4194304 bytes");
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let text = "{\n  \"z\": [],\n  \"a\": {\n    \"\\u0001\": 1.50\n  }\n}\n";
        assert_eq!(CriteriaState::read(text.as_bytes()).unwrap().text(), text);
    }

    #[test]
    fn what_was_read_can_be_read_when_it_was_written() {
        let entries: Vec<_> = (0..360_000).map(|at| format!("\"{at:06}\":0")).collect();
        let text = format!("{{{}}}", entries.join(","));
        assert!(text.len() < MAX_BYTES && text.len() + 3 * entries.len() > MAX_BYTES);
        let state = CriteriaState::read(text.as_bytes()).unwrap();
        assert_eq!(state.text().trim_end(), text);
    }

    #[test]
    fn a_string_of_digits_is_a_number() {
        for (text, expected) in [
            ("5", Some(5.0)),
            ("\"5\"", Some(5.0)),
            ("\" 5.5 \"", Some(5.5)),
            ("\"-1\"", Some(-1.0)),
            ("\"inf\"", None),
            ("\"five\"", None),
            ("\"\"", None),
            ("true", None),
            ("[5]", None),
        ] {
            assert_eq!(number(&Json::read(text.as_bytes()).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn a_step_need_not_be_a_text() {
        let state = CriteriaState::read(br#"{"remainingSteps": [{"n": 1}, "b"]}"#).unwrap();
        assert_eq!(state.next_step().as_deref(), Some(r#"{"n":1}"#));
    }
}
