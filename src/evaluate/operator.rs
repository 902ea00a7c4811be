//! The six comparisons that evaluators offer.

use std::cmp::Ordering;

use serde_json::Value;

use crate::base::decode::choice;

choice! {
    /// How a value is compared with its target.
    pub enum Operator { Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge" }
}

impl Operator {
    /// Compares two numbers; for NaN against a number only `ne` holds.
    pub fn numbers(self, value: f64, target: f64) -> bool {
        match self {
            Self::Eq => {
                // The first lets NaN equal itself, and the second lets 0 equal -0.
                value.total_cmp(&target) == Ordering::Equal
                    || value.partial_cmp(&target) == Some(Ordering::Equal)
            }
            Self::Ne => value.partial_cmp(&target) != Some(Ordering::Equal),
            Self::Lt => value < target,
            Self::Le => value <= target,
            Self::Gt => value > target,
            Self::Ge => value >= target,
        }
    }

    /// Compares two JSON values: numbers as numbers, anything for equality; none where there is no order.
    pub fn values(self, value: &Value, target: &Value) -> Option<bool> {
        if let (Some(value), Some(target)) = (value.as_f64(), target.as_f64()) {
            return Some(self.numbers(value, target));
        }
        match self {
            Self::Eq => Some(value == target),
            Self::Ne => Some(value != target),
            Self::Lt | Self::Le | Self::Gt | Self::Ge => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_compare_as_numbers_and_the_rest_for_equality() {
        assert_eq!(Operator::Eq.values(&json!(1.0), &json!(1)), Some(true));
        assert_eq!(Operator::Ge.values(&json!(2), &json!(2.5)), Some(false));
        assert_eq!(Operator::Eq.values(&json!(1), &json!("1")), Some(false));
        assert_eq!(Operator::Ne.values(&json!(null), &json!([1])), Some(true));
        assert_eq!(Operator::Lt.values(&json!("x"), &json!("y")), None);
    }
}
