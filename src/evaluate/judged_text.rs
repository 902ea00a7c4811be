//! The text that an evaluator judges: what its `source` says, or else what the action printed.

use std::borrow::Cow;

use serde_json::json;

use super::evaluator::{Judged, Judging};
use super::field::FieldError;
use super::observation::Observation;
use super::verdict::Verdict;
use crate::base::template::Template;

/// The text to judge, or the judgement of an action that crashed before it printed any.
pub(super) enum JudgedText<'a> {
    Text(Cow<'a, str>),
    Crashed(Judged),
}

/// Takes `source`, or else what the action printed. An action that crashed said nothing that could be judged.
pub(super) fn subject<'a>(
    source: Option<&Template>,
    judging: Judging<'a>,
) -> Result<JudgedText<'a>, FieldError> {
    match (source, judging.seen) {
        (Some(source), _) => Ok(JudgedText::Text(Cow::Owned(source.render(judging.scope)?))),
        (None, Some(seen)) if seen.crashed() => Ok(JudgedText::Crashed(Judged::new(
            Verdict::error(),
            json!({ "exit_code": seen.exit_code, "error": format!("the action failed (exit {})", seen.exit_code) }),
        ))),
        (None, seen) => Ok(JudgedText::Text(printed(seen))),
    }
}

pub(super) fn printed(seen: Option<&Observation>) -> Cow<'_, str> {
    Cow::Borrowed(seen.map_or("", |seen| seen.stdout.as_str()))
}

/// Shortens a text for a message.
pub(super) fn excerpt(text: &str) -> String {
    crate::base::text::one_line(text, 60)
}
