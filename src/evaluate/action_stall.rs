//! `action_stall`: whether the loop does the same thing again and again.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::judged_text::{excerpt, printed};
use super::memory::{recalled, remembered};
use super::number_bounds::VisitCount;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;
use crate::base::text::hex;

record! {
    /// Tells whether the tracked values are the same as at the last visits of this state.
    pub struct ActionStall {
        /// What is compared: texts with `${…}`, names of values such as `captured.plan`, `action` for the text of the
        /// action and `output` for what it printed. Without any, the action and its output together.
        track: Vec<Template> = Vec::new(),
        /// How many times in a row the values may repeat before it means no.
        max_repeat: Field<VisitCount> = Field::Literal(VisitCount::TWO),
    }
}

/// What is remembered from visit to visit. The values may be long or secret: a digest tells whether they are the same.
#[derive(Serialize, Deserialize)]
struct ActionMemory {
    values: String,
    count: i32,
}

/// Where a bare name is looked for, in this order.
// The order of the predecessor, whose loops write such names.
const PLACES: [&str; 4] = ["context", "captured", "prev", "result"];

impl Evaluator for ActionStall {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let max_repeat = self.max_repeat.resolve(judging.scope)?.get();
        let mut digest = Sha256::new();
        // With its length, so that no two lists of values look the same.
        let mut add = |value: &str| {
            digest.update(value.len().to_le_bytes());
            digest.update(value);
        };
        // Both, because the same command with another output is not a repetition.
        if self.track.is_empty() {
            add(judging.action.unwrap_or(""));
            add(&printed(judging.seen));
        }
        for tracked in &self.track {
            let value = match tracked.as_literal() {
                None => Some(tracked.render(judging.scope)?.into()),
                Some(name) => named(&name, judging),
            };
            // A misspelt name would be the same at each visit, and look like a stall.
            let Some(value) = value else {
                let name = excerpt(tracked.source());
                return Ok(Judged::error(format!("nothing has the name `{name}` that is tracked")));
            };
            add(&value);
        }
        let values = hex(&digest.finalize());
        let count = match recalled::<ActionMemory>(judging.memory) {
            Some(last) if last.values == values => last.count.saturating_add(1),
            _ => 0,
        };
        let details = json!({ "repeat_count": count, "max_repeat": max_repeat, "changed": count == 0 });
        let judged = Judged::new(Verdict::yes_if(count < max_repeat), details);
        Ok(judged.remembering(remembered(&ActionMemory { values, count })))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["repeat_count", "max_repeat", "changed"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let max_repeat = self.max_repeat.as_template().map(|count| ("max_repeat", count));
        self.track.iter().map(|tracked| ("track", tracked)).chain(max_repeat).collect()
    }
}

/// Finds the value of a name that is written without `${…}`.
fn named<'a>(name: &str, judging: Judging<'a>) -> Option<Cow<'a, str>> {
    match name {
        "action" => return judging.action.map(Cow::Borrowed),
        "output" => return Some(printed(judging.seen)),
        _ => {}
    }
    let paths = std::iter::once(name.to_owned()).chain(PLACES.iter().map(|place| format!("{place}.{name}")));
    let mut values = paths.filter_map(|path| {
        let template = Template::parse(&format!("${{{path}}}")).ok()?;
        // A name outside our namespaces, such as `${HOME}`, is left for the shell.
        if template.as_literal().is_some() { None } else { template.render(judging.scope).ok() }
    });
    values.next().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestVisits, judge};

    fn verdicts(spec: &str, visits: &[(&str, &str)]) -> String {
        let mut memory = TestVisits::of(spec);
        let words = visits.iter().map(|(action, output)| {
            memory.action = Some((*action).to_owned());
            memory.judge(output, 0).verdict.to_string()
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_action_and_its_output_are_tracked_by_default() {
        let same = [("a", "1"), ("a", "1"), ("a", "1"), ("a", "2")];
        assert_eq!(verdicts("type: action_stall", &same), "yes yes no yes");
        assert_eq!(verdicts("{type: action_stall, max_repeat: 1}", &same), "yes no no yes");
        assert_eq!(verdicts("type: action_stall", &[("a", "1"), ("b", "1"), ("a", "1")]), "yes yes yes");
    }

    #[test]
    fn values_can_be_named_or_written() {
        let spec = |track: &str| format!("{{type: action_stall, track: [{track}], max_repeat: 1}}");
        let visits = [("a", "1"), ("a", "2"), ("b", "2")];
        assert_eq!(verdicts(&spec("action"), &visits), "yes no yes");
        assert_eq!(verdicts(&spec("output"), &visits), "yes yes no");
        assert_eq!(verdicts(&spec("action, output"), &visits), "yes yes yes");
        for same in ["word", "context.word", "'${context.word} x'"] {
            assert_eq!(verdicts(&spec(same), &visits), "yes no no", "{same}");
        }
    }

    #[test]
    fn what_has_no_value_is_no_repetition() {
        assert_eq!(judge("{type: action_stall, track: [nope]}", "", 0), "error");
        let unresolved = judge("{type: action_stall, track: ['${context.nope}']}", "", 0);
        assert!(unresolved.starts_with("unresolved: "), "{unresolved}");
    }
}
