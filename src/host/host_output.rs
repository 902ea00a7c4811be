//! What hosts have in common in how their output is read: documents, objects in a text, excerpts for messages.

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::base::text::{json_in, one_line};

/// Reads the JSON document that a whole output is, or else its last line that is not blank.
pub(super) fn document(stdout: &str) -> Option<Value> {
    let whole = serde_json::from_str(stdout.trim()).ok();
    // Some hosts print notes before the document.
    whole.or_else(|| serde_json::from_str(stdout.lines().rev().find(|line| !line.trim().is_empty())?).ok())
}

/// Reads an object out of the text of a model that ends with it: what follows may take it back, as where it is only quoted.
pub(super) fn object_in(text: &str) -> Option<Value> {
    let text = text.trim_end();
    let is_last_word = serde_json::from_str::<IgnoredAny>(text).is_ok() || text.ends_with("```");
    json_in(text).filter(|value| is_last_word && value.is_object())
}

/// Returns the start of a text for a message.
pub(super) fn excerpt(text: &str) -> String {
    one_line(text, 200)
}
