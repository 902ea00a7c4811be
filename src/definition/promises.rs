//! Keys that promise protection. Whoever writes one where it does nothing, or with nothing in it, believes to be protected:
//! that is an error, never a warning. Files are looked at as they are written, since what is laid over another file with
//! nothing in it would remove a promise without a word.

use super::assembled_tree::{entries, items};
use super::schema::{Loop, State};
use crate::base::decode::Record;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, is_slip};
use crate::base::node::{Entry, Node, NodeValue};

/// The keys.
const PROMISES: [&str; 5] = ["sandbox", "broker", "judges", "approvers", "reuse"];

/// Keys below which the author chooses the names.
const NAMED_BY_AUTHOR: [&str; 7] = ["context", "env", "param", "parameters", "params", "with", "answer"];

/// Keys below which names of states stand, and below those their keys.
const STATES: [&str; 3] = ["states", "state_defs", "fragments"];

/// Tells whether a key is one of them.
pub(super) fn is_promise(key: &str) -> bool {
    PROMISES.contains(&key)
}

/// Finds promises that do nothing, in a file as it is written: those with nothing in them, and those below a key that has no
/// effect.
pub(super) fn in_vain(tree: &Node, out: &mut Diagnostics) {
    empty(tree, out);
    below_idle_keys::<Loop>(tree, out);
    for states in STATES.into_iter().filter_map(|key| tree.get(key)) {
        for state in entries(states) {
            below_idle_keys::<State>(&state.value, out);
        }
    }
}

fn below_idle_keys<R: Record>(record: &Node, out: &mut Diagnostics) {
    for Entry { key, value, .. } in entries(record).iter().filter(|entry| R::is_without_effect(&entry.key)) {
        without_effect(key, value, out);
    }
}

fn empty(tree: &Node, out: &mut Diagnostics) {
    for item in items(tree) {
        empty(item, out);
    }
    for Entry { key, key_span, value } in entries(tree) {
        if is_promise(key) {
            if holds_nothing(value) {
                let message = match value.as_scalar() {
                    Some(_) => format!("`{key}` is empty, and protects nothing"),
                    None => format!("something in `{key}` is empty, and protects nothing"),
                };
                let place = FindingPlace::At(key_span.clone());
                out.push(Diagnostic::error("empty-promise", place, message).help(help(key)));
            }
        } else if STATES.contains(&key.as_str()) {
            // Names of states are passed over, because a state may well be called `reuse`.
            for state in entries(value) {
                empty(&state.value, out);
            }
        } else if !NAMED_BY_AUTHOR.contains(&key.as_str()) {
            // Not below names of the author's own: a variable called `sandbox` promises nothing.
            empty(value, out);
        }
    }
}

fn help(key: &str) -> String {
    match key {
        "sandbox" => {
            "write what confines, as `sandbox: workspace`; `sandbox: off` says that nothing does".to_owned()
        }
        _ => format!("write what `{key}` is, or remove the key"),
    }
}

/// Tells whether a value, or something in it, is not there or blank.
fn holds_nothing(value: &Node) -> bool {
    match &value.value {
        NodeValue::Scalar(scalar) => value.is_null() || scalar.text.trim().is_empty(),
        NodeValue::List(items) => items.iter().any(holds_nothing),
        NodeValue::Map(entries) => entries.iter().any(|entry| holds_nothing(&entry.value)),
    }
}

/// Finds promises among what stands below a key that has no effect, also where they are misspelt.
pub(super) fn without_effect(idle: &str, settings: &Node, out: &mut Diagnostics) {
    for item in items(settings) {
        without_effect(idle, item, out);
    }
    for Entry { key, key_span, value } in entries(settings) {
        if let Some(meant) = meant(key) {
            let place = FindingPlace::At(key_span.clone());
            let message = format!("`{key}` protects nothing below `{idle}`, which has no effect");
            let help = format!("write `{meant}` at the top of the loop or on a state");
            out.push(Diagnostic::error("unknown-key", place, message).help(help));
        }
        without_effect(idle, value, out);
    }
}

/// Finds promises at the top of a library, of which a loop takes the fragments alone.
pub(super) fn beside_fragments(library: &Node, out: &mut Diagnostics) {
    for Entry { key, key_span, .. } in entries(library) {
        if let Some(meant) = meant(key) {
            let place = FindingPlace::At(key_span.clone());
            let message = format!("`{key}` protects nothing in a library of fragments");
            let help = format!("write `{meant}` in the loop; only `fragments` are read here");
            out.push(Diagnostic::error("no-effect", place, message).help(help));
        }
    }
}

/// Tells whether a value with this name is meant as a promise, or has one in it, also where it is misspelt.
pub(super) fn is_in(name: &str, value: &Node) -> bool {
    meant(name).is_some() || first_key(value).is_some()
}

/// Returns the first key of a tree that is meant as a promise, also where it is misspelt.
pub fn first_key<'n>(tree: &'n Node) -> Option<&'n str> {
    let in_items = items(tree).iter().find_map(first_key);
    let of_entry = |entry: &'n Entry| match meant(&entry.key) {
        Some(_) => Some(entry.key.as_str()),
        None => first_key(&entry.value),
    };
    in_items.or_else(|| entries(tree).iter().find_map(of_entry))
}

/// Returns the promise that a key is meant to be.
pub fn meant(key: &str) -> Option<&'static str> {
    // `Sand-Box` and `sand_box` are meant alike.
    let letters: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    // Other settings have names like `resume`, so no more than one slip.
    PROMISES.into_iter().find(|promise| is_slip(&letters, promise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::node::FileId;
    use crate::definition::yaml;

    fn below_config(tree: &Node, out: &mut Diagnostics) {
        without_effect("config", tree, out);
    }

    fn found(text: &str, find: fn(&Node, &mut Diagnostics)) -> usize {
        let mut found = Diagnostics::default();
        let tree = yaml::parse(text, FileId(0), &mut Diagnostics::default()).unwrap();
        find(&tree, &mut found);
        found.iter().count()
    }

    #[test]
    fn a_promise_with_nothing_in_it_is_found_wherever_it_stands() {
        for text in [
            "sandbox:",
            "sandbox: null",
            "sandbox: {mode: ~}",
            "judges: {files: [' ']}",
            "reuse: {inputs: ['']}",
            "approvers: {users: [a, null]}",
            "states: {a: {sandbox: null}}",
            "fragments: {a: {approvers: }}",
            "roles: {tester: {sandbox: ''}}",
            "flow: [{a: {sandbox: null}}]",
            "x: &n null\nbroker: *n",
        ] {
            assert_eq!(found(text, empty), 1, "{text}");
        }
        for text in [
            "sandbox: off",
            "judges: []",
            "reuse: {inputs: [a]}",
            "states: {sandbox: }",
            "context: {sandbox: null}",
            "states: {a: {env: {sandbox: }, with: {reuse: null}}}",
        ] {
            assert_eq!(found(text, empty), 0, "{text}");
        }
    }

    #[test]
    fn a_promise_among_settings_without_effect_is_found_however_it_is_spelt() {
        for text in [
            "sandbox: strict",
            "Sandboxs: strict",
            "san_dbox: x",
            "a: [{BROKER: auto}]",
            "jugdes: []",
            "a: {b: {re-use: x}}",
        ] {
            assert_eq!(found(text, below_config), 1, "{text}");
        }
        assert_eq!(found("{agents: [{Broker: auto}], reuse: {sandbox: strict}}", below_config), 3);
        assert_eq!(
            found("{handoff_threshold: 3, name: sandbox, resume: {worker: x, rules: []}}", below_config),
            0
        );
    }
}
