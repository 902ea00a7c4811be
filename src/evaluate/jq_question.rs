//! A question about printed JSON that takes more than a path: a jq expression. Expressions can run for ever and take any
//! memory, so whoever performs a run answers them elsewhere than in its own process.

use serde_json::Value;

use super::observation::Stop;
use crate::base::explanation::Explanation;

/// A jq expression and the text that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The expression.
    pub filter: String,
    /// The JSON document.
    pub text: String,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Queried {
    /// The one value that the expression yields, or why there is none.
    pub result: Result<Value, Explanation>,
    /// Why it did not come to its own end, if it did not.
    pub stop: Option<Stop>,
}

/// The longest value that an expression may yield, in bytes of JSON: it stands in an event of the run.
pub const LONGEST_VALUE: usize = 256 * 1024;

/// Says that a value cannot be judged because of its length.
pub(super) fn too_long(path: &str, length: usize) -> String {
    format!(
        "the value at `{path}` has {length} bytes, and at most {LONGEST_VALUE} are compared; ask for less of it"
    )
}
