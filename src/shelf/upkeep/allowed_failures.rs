//! What may fail in a workflow without failing it: a job, a step, or the jobs of some values of a matrix. Nobody keeps such checks
//! green.

use super::lined_yaml;
use crate::base::node::Node;

/// What `continue-on-error` says of a job or a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MayFail {
    /// Nothing, or what only the job knows.
    Unsaid,
    /// It may fail.
    Always,
    /// It may where a matrix has one of these values.
    Where(Vec<ValueCondition>),
}

/// A condition about a value of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ValueCondition {
    key: String,
    way: Comparison,
    text: String,
}

/// How the value is compared with the text of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Is,
    IsNot,
    Begins,
    Ends,
    Contains,
}

impl MayFail {
    /// Reads a job or a step.
    pub(super) fn of(node: &Node) -> Self {
        lined_yaml::text(node.get("continue-on-error")).map_or(Self::Unsaid, Self::of_text)
    }

    fn of_text(text: &str) -> Self {
        let plain = text.trim().trim_start_matches("${{").trim_end_matches("}}").trim();
        let parts: Vec<&str> = plain.split("||").map(str::trim).filter(|part| *part != "false").collect();
        if parts == ["true"] {
            return Self::Always;
        }
        // Of several conditions at once, one value says too little.
        let conditions: Option<Vec<_>> = parts.into_iter().map(ValueCondition::of).collect();
        match conditions {
            Some(conditions) if !conditions.is_empty() => Self::Where(conditions),
            Some(_) | None => Self::Unsaid,
        }
    }

    /// Tells whether the jobs of this value may fail.
    pub(super) fn holds_for(&self, key: &str, value: &str) -> bool {
        match self {
            Self::Unsaid => false,
            Self::Always => true,
            Self::Where(conditions) => conditions.iter().any(|one| one.key == key && one.holds_for(value)),
        }
    }
}

impl ValueCondition {
    /// Reads `matrix.rust == 'nightly'`, `startsWith(matrix.rust, 'nightly')` or `matrix.experimental`.
    fn of(text: &str) -> Option<Self> {
        let calls = [
            ("startsWith(", Comparison::Begins),
            ("endsWith(", Comparison::Ends),
            ("contains(", Comparison::Contains),
        ];
        let of_call = calls.into_iter().find_map(|(begin, way)| {
            let (key, text) = text.strip_prefix(begin)?.strip_suffix(')')?.split_once(',')?;
            Some((key, way, text))
        });
        let of_sign = || {
            let signs = [("==", Comparison::Is), ("!=", Comparison::IsNot)];
            signs.into_iter().find_map(|(sign, way)| {
                let (key, text) = text.split_once(sign)?;
                Some((key, way, text))
            })
        };
        let of_truth = || {
            Some(match text.strip_prefix('!') {
                Some(key) => (key, Comparison::IsNot, "true"),
                None => (text, Comparison::Is, "true"),
            })
        };
        let (key, way, compared) = of_call.or_else(of_sign).or_else(of_truth)?;
        let key = key.trim().strip_prefix("matrix.")?;
        let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let compared = compared.trim().trim_matches('\'');
        (is_name && !compared.contains(['\'', '&', '('])).then(|| Self {
            key: key.to_owned(),
            way,
            text: compared.to_owned(),
        })
    }

    fn holds_for(&self, value: &str) -> bool {
        match self.way {
            Comparison::Is => value == self.text,
            Comparison::IsNot => value != self.text,
            Comparison::Begins => value.starts_with(&self.text),
            Comparison::Ends => value.ends_with(&self.text),
            Comparison::Contains => value.contains(&self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_says_which_values_may_fail() {
        for (text, value, expected) in [
            ("true", "stable", true),
            ("${{ true }}", "stable", true),
            ("false", "stable", false),
            ("${{ matrix.rust == 'nightly' }}", "nightly", true),
            ("${{ matrix.rust == 'nightly' }}", "stable", false),
            ("${{ matrix.rust != 'stable' || false }}", "beta", true),
            (
                "${{ startsWith(matrix.rust, 'nightly') || matrix.rust == 'beta' }}",
                "nightly-2026-01-01",
                true,
            ),
            ("${{ contains(matrix.rust, 'dev') }}", "3.15-dev", true),
            ("${{ matrix.rust }}", "true", true),
            ("${{ !matrix.rust }}", "true", false),
            ("${{ matrix.other == 'nightly' }}", "nightly", false),
            ("${{ matrix.rust == 'nightly' && matrix.os == 'x' }}", "nightly", false),
            ("${{ github.event_name == 'push' }}", "push", false),
        ] {
            assert_eq!(MayFail::of_text(text).holds_for("rust", value), expected, "{text} and {value}");
        }
    }
}
