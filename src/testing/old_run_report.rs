//! The results of old runs on the loop as it is now.

/// The result of an old run on the loop as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRunReport {
    /// The run.
    pub run: String,
    /// Its loop.
    pub loop_name: String,
    /// Whether somebody may still go on with it.
    pub is_left: bool,
    /// Its result.
    pub result: OldRunResult,
}

/// How an old run compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OldRunResult {
    /// It goes the same way.
    Same,
    /// It goes another way.
    Parts {
        /// The step at which it does, from 1.
        step: usize,
        /// The state before.
        after: Option<String>,
        /// Where it came to then; nothing where it ended.
        then: Option<String>,
        /// Where it comes to now.
        now: Option<String>,
    },
    /// It could not be resumed.
    NotResumable(String),
    /// It is unknown.
    Unknown(String),
}

impl OldRunReport {
    /// Tells whether it is a reason not to change the loop like this: the run waits to be gone on with, and could not be.
    pub fn is_lost(&self) -> bool {
        self.is_left && matches!(self.result, OldRunResult::NotResumable(_))
    }

    /// Says how it ended.
    pub fn sentence(&self) -> String {
        let left = if self.is_left { ", which is not over" } else { "" };
        let said = match &self.result {
            OldRunResult::Same => "the same way".to_owned(),
            OldRunResult::Parts { step, after, then, now } => {
                let named = |state: &Option<String>| {
                    state.as_ref().map_or_else(|| "its end".to_owned(), |state| format!("`{state}`"))
                };
                let after = after.as_ref().map_or_else(String::new, |state| format!(", after `{state}`"));
                format!(
                    "parts at step {step}{after}: it came to {}, and comes to {} now",
                    named(then),
                    named(now)
                )
            }
            OldRunResult::NotResumable(why) => format!("could not be resumed: {why}"),
            OldRunResult::Unknown(why) => format!("unknown: {why}"),
        };
        format!("{} ({}){left}: {said}", self.run, self.loop_name)
    }

    /// Returns one word for it.
    pub fn word(&self) -> &'static str {
        match self.result {
            OldRunResult::Same => "same",
            OldRunResult::Parts { .. } => "parts",
            OldRunResult::NotResumable(_) => "not_resumable",
            OldRunResult::Unknown(_) => "unknown",
        }
    }
}
