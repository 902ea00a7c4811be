//! The authoring forms beside the plain state machine: each is a few keys that stand for states.
//!
//! A form is one file and one row. It turns its own keys into states whose values keep the places of what
//! they came from; every other key of the file stays as it is, and states of the file are laid over those of the form.

use serde_json::Value;

use super::assembled_tree::{MergeLevel, entries, map, merge};
use super::schema::{Loop, Paradigm};
use crate::base::decode::{Decode, Definitions, Record};
use crate::base::diagnostic::{Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;

pub mod agents;
pub mod convergence_paradigm;
pub mod criteria_paradigm;
pub mod goal;
pub mod imperative;
pub mod invariants;

mod paradigm_parts;

/// A form: what it is called, its own keys, and what they stand for.
struct ParadigmForm {
    keys: &'static [&'static str],
    /// Turns the keys into a loop of their own, or says why it cannot.
    expand: fn(&Node, &mut Diagnostics) -> Option<Node>,
    schema: fn(&mut Definitions) -> Value,
    /// Whether the loop has to be given a name.
    named: bool,
    /// The key whose values name files that the form wants to have read.
    files: Option<&'static str>,
}

/// Returns the row of a form; a plain state machine is written out already.
fn row(paradigm: Paradigm) -> Option<ParadigmForm> {
    Some(match paradigm {
        Paradigm::Fsm => return None,
        Paradigm::Goal => ParadigmForm {
            keys: goal::Goal::KEYS,
            expand: goal::expand,
            schema: goal::Goal::object_schema,
            named: false,
            files: None,
        },
        Paradigm::Convergence => ParadigmForm {
            keys: convergence_paradigm::Convergence::KEYS,
            expand: convergence_paradigm::expand,
            schema: convergence_paradigm::Convergence::object_schema,
            named: true,
            files: None,
        },
        Paradigm::Invariants => ParadigmForm {
            keys: invariants::Invariants::KEYS,
            expand: invariants::expand,
            schema: invariants::Invariants::object_schema,
            named: true,
            files: None,
        },
        Paradigm::Imperative => ParadigmForm {
            keys: imperative::Imperative::KEYS,
            expand: imperative::expand,
            schema: imperative::schema,
            named: true,
            files: None,
        },
        Paradigm::Criteria => ParadigmForm {
            keys: criteria_paradigm::Criteria::KEYS,
            expand: criteria_paradigm::expand,
            schema: criteria_paradigm::Criteria::object_schema,
            named: true,
            files: None,
        },
        Paradigm::Agents => ParadigmForm {
            keys: agents::Agents::KEYS,
            expand: agents::expand,
            schema: agents::Agents::object_schema,
            named: true,
            files: Some("prompts"),
        },
    })
}

fn row_of(word: &str) -> Option<ParadigmForm> {
    row(*Paradigm::ALL.iter().find(|paradigm| paradigm.word() == word)?)
}

/// What became of a loop.
pub(super) enum Expanded {
    /// It is a plain state machine.
    Plain,
    /// It was written out.
    Loop(Node),
    /// It could not be; this is what remains of it.
    Rest(Node),
}

/// Returns the keys of a form beyond those of every loop.
pub(super) fn keys(word: &str) -> &'static [&'static str] {
    row_of(word).map_or(&[], |row| row.keys)
}

/// Returns the key of a form whose values name files. Their texts are to stand there when it is expanded.
pub(super) fn files(word: &str) -> Option<&'static str> {
    row_of(word)?.files
}

/// Returns each form with the schema of its keys, except those that every loop has.
pub(super) fn schemas(definitions: &mut Definitions) -> Vec<(&'static str, Value)> {
    let schema = |paradigm: &Paradigm| {
        let row = row(*paradigm)?;
        let mut schema = (row.schema)(definitions);
        if let Some(required) = schema["required"].as_array_mut().filter(|_| row.named) {
            required.push("name".into());
        }
        Some((paradigm.word(), schema))
    };
    Paradigm::ALL.iter().filter_map(schema).collect()
}

/// Writes out what a form stands for. Findings are about the tree that is given.
pub(super) fn expand(tree: &Node, out: &mut Diagnostics) -> Expanded {
    let at = DocPath::root().key("paradigm");
    let Some(word) = tree.get("paradigm").filter(|word| !word.is_null()) else {
        return Expanded::Plain;
    };
    let Some(paradigm) = Paradigm::decode(word, &at, out) else {
        // Without a form no key is known, and to report them all would bury the one mistake.
        return Expanded::Rest(map(&tree.span, Vec::new()));
    };
    let Some(row) = row(paradigm) else {
        return Expanded::Plain;
    };
    let (own, mut rest): (Vec<_>, Vec<_>) =
        entries(tree).iter().cloned().partition(|entry| row.keys.contains(&entry.key.as_str()));
    rest.retain(|entry| entry.key != "paradigm");
    // What every loop has is read with the loop, even where a form uses it.
    rest.extend(own.iter().filter(|entry| Loop::KEYS.contains(&entry.key.as_str())).cloned());
    let rest = map(&tree.span, rest);
    let mut found = Diagnostics::default();
    let expanded = (row.expand)(&map(&tree.span, own), &mut found);
    let failed = found.has_errors();
    for finding in found.iter() {
        let mut finding = finding.clone();
        // What the form lacks is told at the word that chose it, which says why it is needed.
        if finding.place == FindingPlace::File {
            finding.place = FindingPlace::Value(at.clone());
            finding = finding.label(format!("a loop of this form needs {}", needed(&row)));
        }
        out.push(finding);
    }
    match expanded.filter(|_| !failed) {
        Some(expanded) => Expanded::Loop(merge(expanded, rest, MergeLevel::Loop)),
        None => Expanded::Rest(rest),
    }
}

fn needed(row: &ParadigmForm) -> String {
    let schema = (row.schema)(&mut Definitions::new());
    let required = schema["required"].as_array().into_iter().flatten();
    let names: Vec<_> = required.filter_map(Value::as_str).map(|key| format!("`{key}`")).collect();
    names.join(" and ")
}
