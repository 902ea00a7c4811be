//! Numbers in what was printed: strict about everything but blanks, because a number that was read wrongly is a wrong
//! verdict.

use regex::Regex;
use serde_json::{Value, json};

use super::judged_text::excerpt;

/// Reads a text as a number: surrounding blanks are fine; units, separators and further words are not. Of several lines,
/// all have to be the same number: `grep -c … || echo 0` prints `0` twice.
pub(super) fn number_in(text: &str) -> Option<f64> {
    let mut numbers = text.trim().lines().map(number_on);
    let first = numbers.next()??;
    numbers.all(|number| number == Some(first)).then_some(first)
}

/// Reads a line as a number.
fn number_on(line: &str) -> Option<f64> {
    let text = line.trim();
    // `parse` alone would also take `NaN`, which is neither better nor worse than any number.
    let plain = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e' | 'E'));
    // As C and Python print it.
    let infinite = matches!(text.trim_start_matches(['+', '-']), "inf" | "infinity");
    if plain || infinite { text.parse().ok() } else { None }
}

/// Reads the whole text as a number, or the last `KEY = NUMBER` in it.
pub(super) fn number_of(text: &str, key: Option<&str>) -> Option<f64> {
    match key {
        Some(key) => last_assignment(text, key).and_then(number_in),
        None => number_in(text),
    }
}

/// Says that [`number_of`] found none.
pub(super) fn no_number(text: &str, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("no `{key} = NUMBER` in the output"),
        None => format!("`{}` is not a number", excerpt(text)),
    }
}

/// Finds the last `key = number`, blanks around the sign allowed.
fn last_assignment<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    // So that `score` is found neither in `best_score` nor in `test.score`.
    let pattern = format!(r"(?:^|[^\w.]){}\s*[=:]\s*([-+0-9.eE]+)", regex::escape(key));
    let found = Regex::new(&pattern).ok()?.captures_iter(text).last()?;
    found.get(1).map(|number| number.as_str())
}

/// Writes a number as JSON, whole ones without a fraction.
pub(super) fn number(value: f64) -> Value {
    // Up to there every whole number is exact.
    #[expect(clippy::cast_possible_truncation, reason = "the value is whole and far from the limits")]
    if value.fract() == 0.0 && value.abs() < 1e15 {
        json!(value as i64)
    } else if value.is_finite() {
        json!(value)
    } else {
        // JSON has no number for it.
        json!(value.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_strict_about_everything_but_blanks() {
        for (text, expected) in [
            (" 5\n", 5.0),
            ("-1.5e3", -1500.0),
            ("inf", f64::INFINITY),
            ("0\n0\n", 0.0),
            ("7\r\n 7\n7.0", 7.0),
        ] {
            assert_eq!(number_in(text), Some(expected), "{text}");
        }
        for text in [
            "", "5 errors", "85%", "1,000", "0x10", "1_000", "a\n5", "nan", "5\n6", "0\n0\n1", "0\n\n0",
            "0\n0 0",
        ] {
            assert_eq!(number_in(text), None, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_written_whole() {
        assert_eq!(number(42.0).to_string(), "42");
        assert_eq!(number(0.5).to_string(), "0.5");
        assert_eq!(number(f64::NEG_INFINITY).to_string(), "\"-inf\"");
    }
}
