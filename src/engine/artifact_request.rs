//! What a run leaves in the working tree when it has come to its end.

use serde_json::Value;

use super::Engine;
use super::outcome::{Outcome, TerminatedBy};
use super::waiting::Waiting;
use crate::base::template::RenderError;
use crate::base::text::after_last;
use crate::machine::{Meaning, Target};

/// A file that is to be copied, with every template resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactRequest {
    /// The directory of the run, as the loop knows it.
    pub run_dir: String,
    /// The file, below that directory.
    pub from: String,
    /// Where it is copied to, below the working tree.
    pub to: String,
    /// Whether it is a template, which is not copied.
    pub is_template: bool,
}

impl Engine<'_> {
    /// Returns what is to be copied at the end that the run has come to, if anything is.
    pub fn artifact(&self) -> Option<Result<ArtifactRequest, RenderError>> {
        let artifact = self.machine.artifact.as_ref()?;
        let end = match &self.waiting {
            Waiting::Measuring(_, end) => end,
            Waiting::Nothing(end) => end,
            Waiting::Start
            | Waiting::Resume(_)
            | Waiting::Work(_)
            | Waiting::Continuation(..)
            | Waiting::Backoff(_)
            | Waiting::Judging(..)
            | Waiting::Looking(_)
            | Waiting::Closing(_)
            | Waiting::Turn(_) => return None,
        };
        let Some(Target::End(id)) = self.machine.find(&end.final_state) else { return None };
        let is_good = end.terminated_by == TerminatedBy::Terminal
            && end.outcome != Outcome::Failure
            && self.machine.end(id).meaning != Meaning::Failure;
        let is_meant = artifact.on.is_empty() || artifact.on.contains(&end.final_state);
        (is_good && is_meant).then(|| {
            let from = self.render(&artifact.from)?;
            let to = match &artifact.to {
                Some(to) => self.render(to)?,
                None => self.usual_place(&from),
            };
            let given = self.start.context.get("run_dir").and_then(Value::as_str);
            let run_dir = given.filter(|given| !given.is_empty()).unwrap_or(&self.start.run_dir);
            Ok(ArtifactRequest { run_dir: run_dir.to_owned(), from, to, is_template: artifact.is_template })
        })
    }

    /// Returns where a file is copied to when the loop does not say.
    fn usual_place(&self, from: &str) -> String {
        let name = after_last(from, &['/']);
        let ending = name.rsplit_once('.').map_or_else(String::new, |(_, ending)| format!(".{ending}"));
        let start = &self.start.event;
        // The id of the run keeps two runs from writing over each other's file.
        format!("artifacts/{}-{}{ending}", start.run_id, start.r#loop.file_stem())
    }
}
