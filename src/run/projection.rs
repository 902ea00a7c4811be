//! Writes how the work of a run stands to `.loop/state.json`, for hooks and people. It goes one way: the run knows by its
//! journal, and reads nothing from there.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::criteria::State;
use crate::engine::event::{Event, Stamped};
use crate::report::Sink;

use super::shared_file::{self, STATE};

/// Keeps the file.
pub struct Projection {
    path: PathBuf,
}

impl Projection {
    /// Makes one for a run in a directory.
    pub fn new(root: &Path) -> Self {
        Self { path: root.join(STATE) }
    }
}

impl Sink for Projection {
    fn name(&self) -> &'static str {
        STATE
    }

    fn event(&mut self, event: &Stamped) -> io::Result<()> {
        let Event::Evaluate { r#type, details, .. } = &event.event else { return Ok(()) };
        match details.get("state") {
            Some(Value::Object(state)) if r#type == "criteria" => {
                shared_file::replace(&self.path, &State::of(state.clone()).text())
            }
            Some(_) | None => Ok(()),
        }
    }
}
