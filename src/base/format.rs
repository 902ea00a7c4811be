//! Checks the version in the `schema` field of ll-loop's files, before anything else is read: a later version may
//! have other fields.

use serde_json::Value;

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It names no version.
    Unknown,
    /// It is of a later version than the one that is known.
    Newer(u64),
}

/// Checks that a document is of a version that is known; older ones are.
pub fn check(document: &Value, known: u32) -> Result<(), Unfit> {
    match document["schema"].as_u64() {
        None => Err(Unfit::Unknown),
        Some(found) if found > u64::from(known) => Err(Unfit::Newer(found)),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_is_older_the_same_later_or_none() {
        assert_eq!(check(&json!({"schema": 1}), 2), Ok(()));
        assert_eq!(check(&json!({"schema": 2}), 2), Ok(()));
        assert_eq!(check(&json!({"schema": 3}), 2), Err(Unfit::Newer(3)));
        for none in [json!({}), json!({"schema": "1"}), json!({"schema": -1}), json!([]), json!(null)] {
            assert_eq!(check(&none, 2), Err(Unfit::Unknown), "{none}");
        }
    }
}
