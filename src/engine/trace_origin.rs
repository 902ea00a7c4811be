//! In which trace a run stands, as it is recorded when it begins or goes on, and the ids of its spans: whoever exports it
//! later, on any machine, finds those that its actions were told.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::base::relative::Line;
use crate::base::trace_id::{SpanId, TraceId, TraceParent};

/// Where a part of a run was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceOrigin {
    /// The trace.
    pub trace: TraceId,
    /// The span around it, where somebody said which.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parent: Option<SpanId>,
    /// Whether somebody said that the trace is not recorded.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_unsampled: bool,
    /// The page of the job.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub page: Option<Line>,
    /// The address of the repository.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub repository: Option<Line>,
    /// The branch, tag or pull request.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ref_name: Option<Line>,
    /// The commit that the CI system names.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revision: Option<Line>,
}

impl TraceOrigin {
    /// Returns the origin of a run of which nothing was recorded: its trace follows from its id.
    pub fn of_run(run_id: &str) -> Self {
        Self::of_trace(TraceId::of(&["ll-loop run", run_id]))
    }

    /// Returns the origin of which only the trace is known.
    pub fn of_trace(trace: TraceId) -> Self {
        Self {
            trace,
            parent: None,
            is_unsampled: false,
            page: None,
            repository: None,
            ref_name: None,
            revision: None,
        }
    }

    /// Reads what a journal has of it. An id in which somebody's password was found and hidden is no id any more, and then
    /// the spans follow from the run: its journal is worth more than its trace.
    ///
    /// # Errors
    /// It is not even JSON.
    pub fn read_if_whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Self>>, D::Error> {
        Ok(Option::<Value>::deserialize(from)?.and_then(|value| serde_json::from_value(value).ok()))
    }

    /// Returns the id of a part of a run, from 1.
    pub fn run_span(&self, run_id: &str, part: u32) -> SpanId {
        SpanId::of(&[&self.trace.to_string(), "run", run_id, &part.to_string()])
    }

    /// Returns the id of a step by its key, in a part of its loop, from 1: a step that was cut off is in two.
    pub fn step_span(&self, key: &str, part: u32) -> SpanId {
        SpanId::of(&[&self.trace.to_string(), "step", key, &part.to_string()])
    }

    /// Returns what an action of a step is told.
    pub fn told(&self, key: &str, part: u32) -> TraceParent {
        TraceParent { trace: self.trace, span: self.step_span(key, part), is_sampled: !self.is_unsampled }
    }
}
