//! Stands in the place of jq in programs that are built without it.

use serde_json::Value;

const WHY: &str = "this ll-loop was built without the feature `jq`; use a path such as `.a.b[0]`";

/// Says that the expression cannot be executed.
pub fn run(_filter: &str, _text: &str) -> Result<Value, String> {
    Err(WHY.to_owned())
}

/// Says that the expression cannot be read.
pub fn check(_filter: &str) -> Result<(), String> {
    Err(WHY.to_owned())
}
