//! `paradigm: invariants`: checks that have to hold one after the other, each with what restores it.

use std::collections::HashMap;

use super::paradigm_parts::{Judge, Work, done, empty, identifier, to};
use crate::base::decode::{Decode as _, record};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::{Node, NodeValue};
use crate::base::path::DocPath;
use crate::definition::assembled_tree::{entry, items, map};

record! {
    /// What has to hold.
    pub struct Invariants {
        /// The constraints, in the order in which they are checked.
        constraints: Vec<Constraint>,
    }
}

record! {
    /// A check and what restores it.
    pub struct Constraint {
        /// The name, for the states of the constraint.
        name: String,
        /// The check.
        check: Work,
        /// What restores it.
        fix: Work,
        /// How the result of the check is judged.
        evaluator or "evaluate": Option<Judge>,
    }
}

pub(super) fn expand(own: &Node, out: &mut Diagnostics) -> Option<Node> {
    let constraints = Invariants::decode(own, &DocPath::root(), out)?.constraints;
    let path = DocPath::root().key("constraints");
    let written = own.get("constraints")?;
    if constraints.is_empty() {
        empty(&path, "constraint", out);
        return None;
    }
    let names = names(&constraints, &path, out)?;
    let mut states = Vec::new();
    for (index, (constraint, at)) in constraints.iter().zip(items(written)).enumerate() {
        let (check, fix) = (format!("check_{}", names[index]), format!("fix_{}", names[index]));
        let next = names.get(index + 1).map_or("all_valid".to_owned(), |next| format!("check_{next}"));
        let (check_at, fix_at) = (at.get("check")?, at.get("fix")?);
        let judge = constraint.evaluator.as_ref().map(|judge| judge.entry("evaluate"));
        let routes = judge.into_iter().chain([to("on_yes", &next, check_at), to("on_no", &fix, check_at)]);
        let routes = routes.chain(constraint.check.check(check_at));
        states.push(constraint.check.state(&check, check_at, routes.collect()));
        states.push(constraint.fix.state(&fix, fix_at, vec![to("next", &check, fix_at)]));
    }
    let first = format!("check_{}", names[0]);
    let mut end = done("all_valid", written);
    if let NodeValue::Map(keys) = &mut end.value.value {
        keys.push(to("on_maintain", &first, written));
    }
    states.push(end);
    Some(map(&own.span, vec![to("initial", &first, written), entry("states", map(&written.span, states))]))
}

/// Returns the name of each constraint as it stands in the names of its states.
fn names(constraints: &[Constraint], path: &DocPath, out: &mut Diagnostics) -> Option<Vec<String>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let names: Vec<_> = constraints.iter().map(|constraint| identifier(&constraint.name)).collect();
    for (index, name) in names.iter().enumerate() {
        let place = FindingPlace::Value(path.index(index).key("name"));
        let written = &constraints[index].name;
        if name.is_empty() {
            let message = format!("`{written}` has no letters or digits to name states by");
            out.push(Diagnostic::error("name", place, message));
        } else if let Some(first) = seen.insert(name.clone(), index) {
            let message = format!("two constraints are named `{name}`");
            let other = FindingPlace::Value(path.index(first).key("name"));
            out.push(Diagnostic::error("name", place, message).related(other, "the other one"));
        }
    }
    (!out.has_errors()).then_some(names)
}
