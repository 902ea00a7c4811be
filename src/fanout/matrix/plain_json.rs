//! The jobs as plain JSON, for whatever starts them.

use serde_json::json;

use super::job_format::{Fleet, MatrixFormat, TooMuch};

pub(super) struct JsonMatrix;

impl MatrixFormat for JsonMatrix {
    fn name(&self) -> &'static str {
        "json"
    }

    fn has_commands(&self) -> bool {
        false
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch> {
        Ok((!fleet.jobs.is_empty()).then(|| json!({ "include": fleet.jobs }).to_string()))
    }
}
