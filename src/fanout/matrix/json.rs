//! The jobs as plain JSON, for whatever starts them.

use serde_json::json;

use super::format::{Fleet, Format, TooMuch};

pub(super) struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<String, TooMuch> {
        Ok(json!({ "include": fleet.jobs }).to_string())
    }
}
