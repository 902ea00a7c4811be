//! What may fail in a workflow without failing it: a job, a step, or the jobs of some values of a matrix. Nobody keeps such checks
//! green.

use super::lined_yaml;
use super::matrix_condition::MatrixCondition;
use crate::base::node::Node;

/// What `continue-on-error` says of a job or a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MayFail {
    /// Nothing, or what only the job knows.
    Unsaid,
    /// It may fail.
    Always,
    /// It may where a matrix has one of these values.
    Where(Vec<MatrixCondition>),
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
        let conditions: Option<Vec<_>> = parts.into_iter().map(MatrixCondition::of).collect();
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
