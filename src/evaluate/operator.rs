//! The six comparisons that evaluators offer.

use std::cmp::Ordering;

use serde_json::{Number, Value};

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
        match (self, value, target) {
            (Self::Eq, value, target) => Some(are_equal(value, target)),
            (Self::Ne, value, target) => Some(!are_equal(value, target)),
            (_, Value::Number(value), Value::Number(target)) => {
                let order = order(value, target)?;
                Some(match self {
                    Self::Lt => order.is_lt(),
                    Self::Le => order.is_le(),
                    Self::Gt => order.is_gt(),
                    Self::Ge => order.is_ge(),
                    Self::Eq | Self::Ne => return None,
                })
            }
            (Self::Lt | Self::Le | Self::Gt | Self::Ge, _, _) => None,
        }
    }
}

/// Tells whether two values are the same, where `1` is `1.0`, at any depth.
fn are_equal(value: &Value, target: &Value) -> bool {
    match (value, target) {
        (Value::Number(value), Value::Number(target)) => order(value, target) == Some(Ordering::Equal),
        (Value::Array(values), Value::Array(targets)) => {
            values.len() == targets.len()
                && values.iter().zip(targets).all(|(value, target)| are_equal(value, target))
        }
        (Value::Object(values), Value::Object(targets)) => {
            let is_there = |(key, value): (&String, &Value)| {
                targets.get(key).is_some_and(|target| are_equal(value, target))
            };
            values.len() == targets.len() && values.iter().all(is_there)
        }
        _ => value == target,
    }
}

/// Orders two numbers. Whole ones are compared as such: as floats, ids and sizes that differ in their last digits would be one.
fn order(value: &Number, target: &Number) -> Option<Ordering> {
    match (whole(value), whole(target)) {
        (Some(value), Some(target)) => Some(value.cmp(&target)),
        _ => value.as_f64()?.partial_cmp(&target.as_f64()?),
    }
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i128() {
        return Some(whole);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the limits")]
    Some(float as i128)
}

/// Far below the greatest `i128`, and above all that JSON's readers take for whole.
const EXACT: f64 = 1e30;

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
        assert_eq!(Operator::Eq.values(&json!({"a": [1.0]}), &json!({"a": [1]})), Some(true));
        assert_eq!(Operator::Ne.values(&json!([1]), &json!([1, 2])), Some(true));
        let large = json!(9_007_199_254_740_993_u64);
        assert_eq!(Operator::Eq.values(&large, &json!(9_007_199_254_740_992_u64)), Some(false));
        assert_eq!(Operator::Gt.values(&large, &json!(9_007_199_254_740_992.0)), Some(true));
        assert_eq!(Operator::Lt.values(&json!("x"), &json!("y")), None);
    }
}
