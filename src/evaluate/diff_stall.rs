//! `diff_stall`: whether the working tree changed since this state was visited last.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::evaluator::{Evaluator, Judged, Judging, Verdicts};
use super::field::{Field, FieldError};
use super::memory::{recalled, remembered};
use super::number_bounds::VisitCount;
use super::survey::Survey;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::template::Template;

record! {
    /// Tells whether the work changes anything: tracked, staged and untracked files, and commits.
    pub struct DiffStall {
        /// The files and directories that count, relative to the directory of the run; the whole repository when
        /// there are none.
        scope: Vec<Template> = Vec::new(),
        /// How many visits in a row without a change mean no.
        max_stall: Field<VisitCount> = Field::Literal(VisitCount::ONE),
    }
}

/// What is remembered from visit to visit.
#[derive(Serialize, Deserialize)]
struct DiffMemory {
    tree: Survey,
    count: i32,
}

impl Evaluator for DiffStall {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let max_stall = self.max_stall.resolve(judging.scope)?.get();
        let tree = match judging.survey {
            Some(Ok(tree)) => tree.clone(),
            // A tree that cannot be compared is not one that stayed the same.
            Some(Err(why)) => {
                return Ok(Judged::error(format!("the working tree cannot be compared: {why}")));
            }
            None => return Ok(Judged::error("nobody looked at the working tree")),
        };
        let last: Option<DiffMemory> = recalled(judging.memory);
        // On the first visit, nothing can have stalled yet.
        let count = match last {
            Some(last) if last.tree == tree => last.count.saturating_add(1),
            _ => 0,
        };
        let details = json!({ "stall_count": count, "max_stall": max_stall, "diff_changed": count == 0 });
        let judged = Judged::new(Verdict::yes_if(count < max_stall), details);
        Ok(judged.remembering(remembered(&DiffMemory { tree, count })))
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["stall_count", "max_stall", "diff_changed"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let max_stall = self.max_stall.as_template().map(|count| ("max_stall", count));
        self.scope.iter().map(|scope| ("scope", scope)).chain(max_stall).collect()
    }

    fn survey(&self) -> Option<&[Template]> {
        Some(&self.scope)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestVisits;
    use super::*;
    use crate::base::explanation::Explanation;

    fn tree(digest: &str) -> Survey {
        Survey { head: None, digest: digest.to_owned() }
    }

    /// Judges one visit after another; a word is the tree of that visit, `!` one that cannot be looked at.
    fn verdicts(spec: &str, trees: &str) -> String {
        let mut visits = TestVisits::of(spec);
        let words = trees.split(' ').map(|word| {
            visits.survey =
                Some(if word == "!" { Err(Explanation::new("no repository")) } else { Ok(tree(word)) });
            visits.judge("", 0).verdict.to_string()
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_visit_and_every_change_is_yes() {
        assert_eq!(verdicts("type: diff_stall", "a b b b c c"), "yes yes no no yes no");
        assert_eq!(verdicts("{type: diff_stall, max_stall: 2}", "a a a b b b"), "yes yes no yes yes no");
    }

    #[test]
    fn without_a_tree_it_is_an_error_that_forgets_nothing() {
        assert_eq!(verdicts("type: diff_stall", "! a ! a"), "error yes error no");
        let mut visits = TestVisits::of("type: diff_stall");
        visits.survey = Some(Err(Explanation::new("no git repository")));
        let error = visits.judge("", 0).details["error"].clone();
        assert_eq!(error, "the working tree cannot be compared: no git repository");
    }

    #[test]
    fn a_commit_alone_is_a_change() {
        let mut visits = TestVisits::of("type: diff_stall");
        for (head, expected) in [("1", "yes"), ("1", "no"), ("2", "yes")] {
            visits.survey = Some(Ok(Survey { head: Some(head.to_owned()), digest: "same".to_owned() }));
            assert_eq!(visits.judge("", 0).verdict.as_str(), expected);
        }
    }

    #[test]
    fn details_are_fixed() {
        let mut visits = TestVisits::of("{type: diff_stall, max_stall: 2}");
        visits.survey = Some(Ok(tree("a")));
        let first = visits.judge("", 0).details;
        assert_eq!(json!(first), json!({"stall_count": 0, "max_stall": 2, "diff_changed": true}));
        let second = visits.judge("", 0).details;
        assert_eq!(json!(second), json!({"stall_count": 1, "max_stall": 2, "diff_changed": false}));
    }
}
