//! By what name runs on different machines know that they work on the same files.

use std::collections::BTreeSet;

use super::item_plan::Plan;
use crate::base::sum::Sum;
use crate::base::text::head;

/// The digits of a name.
// 64 bits: no two scopes of a repository meet by chance.
const DIGITS: usize = 16;

/// Returns the name of these paths, in whatever order they are given: the SHA-256 of their sorted JSON list, cut short.
pub fn scope_hash<'s>(scopes: impl IntoIterator<Item = &'s str>) -> String {
    let sorted: BTreeSet<&str> = scopes.into_iter().collect();
    let text = serde_json::to_string(&sorted).expect("a list of texts is JSON");
    head(&Sum::of(text.as_bytes()).to_string(), DIGITS).to_owned()
}

/// Returns what a workflow of GitHub says so that no two runs of it work on the same files at once: those of a plan leg by
/// leg, and those of a single leg as one. It never holds the name of the workflow, which in a called one is the caller's.
pub fn concurrency(plan: &Plan) -> String {
    let hash = scope_hash(plan.items.iter().flat_map(|item| &item.scope).map(String::as_str));
    let leg = if plan.legs.len() > 1 { "-${{ matrix.leg }}" } else { "" };
    // With the default queue, GitHub cancels the run that waits as soon as another one comes.
    format!("concurrency:\n  group: ll-loop-{hash}{leg}\n  queue: max\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_the_paths_and_not_of_their_order() {
        assert_eq!(scope_hash(["a", "b"]), scope_hash(["b", "a", "b"]));
        assert_ne!(scope_hash(["a", "b"]), scope_hash(["a,b"]));
        assert_ne!(scope_hash(["a\",\"b"]), scope_hash(["a", "b"]));
        assert_eq!(scope_hash([]).len(), 16);
    }
}
