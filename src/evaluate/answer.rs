//! The form that an answer has to have.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::base::path::DocPath;

/// A JSON Schema for the answer to a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Form(Value);

impl Form {
    /// Returns the schema.
    pub fn schema(&self) -> &Value {
        &self.0
    }
}

impl Decode for Form {
    fn decode(node: &Node, _: &DocPath, _: &mut Diagnostics) -> Option<Self> {
        Some(Self(node.to_json()))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "object"})
    }
}
