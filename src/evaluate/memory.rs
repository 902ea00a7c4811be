//! What an evaluator keeps from one visit of a state to the next: a value that the journal holds.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads what [`remembered`] wrote; an unreadable memory counts as absent.
pub(super) fn recalled<T: DeserializeOwned>(memory: Option<&Value>) -> Option<T> {
    // A resumed run may have the memory of an earlier version, or of another evaluator in an edited loop.
    memory.and_then(|memory| T::deserialize(memory).ok())
}

/// Writes a memory.
pub(super) fn remembered(memory: &impl Serialize) -> Option<Value> {
    serde_json::to_value(memory).ok()
}
