//! What the classic dialect says in its own way about a state, said as the current one does.

use std::collections::HashSet;

use super::schema::Loop;
use super::tree::{entries, entries_mut, entry, map, put, take, text};
use crate::base::decode::Record as _;
use crate::base::diagnostic::{Diagnostic, Diagnostics, Place, nearest};
use crate::base::node::{Entry, Node};
use crate::base::path::DocPath;

/// Translates a plain loop in place. Findings are about the tree as it was.
pub(super) fn translate(tree: &mut Node, out: &mut Diagnostics) {
    circuit(tree, out);
    config(tree);
    let Some(states) = tree.get("states") else { return };
    let sources: HashSet<String> = entries(states)
        .iter()
        .flat_map(|state| {
            let capture = state.value.get("capture").and_then(Node::as_scalar);
            [Some(state.key.clone()), capture.map(|scalar| scalar.text.clone())]
        })
        .flatten()
        .collect();
    let path = DocPath::root().key("states");
    if let Some(states) = entries_mut(tree).iter_mut().find(|entry| entry.key == "states") {
        for state in entries_mut(&mut states.value) {
            let path = path.key(state.key.clone());
            check_condition(&mut state.value, &sources, &path, out);
            convergence(&mut state.value);
        }
    }
}

/// `check_condition` decides on what an earlier state left: its output, or its exit code.
fn check_condition(state: &mut Node, sources: &HashSet<String>, path: &DocPath, out: &mut Diagnostics) {
    let Some(mut condition) = take(state, "check_condition").filter(|entry| !entry.value.is_null()) else {
        return;
    };
    let path = path.key("check_condition");
    if let Some(other) = ["evaluate", "condition"].into_iter().find(|key| state.get(key).is_some()) {
        let message = format!("`check_condition` and `{other}` both say how the state decides");
        out.push(Diagnostic::error("duplicate-key", Place::Key(path), message).help("keep one"));
        return;
    }
    let word =
        |key: &str| condition.value.get(key).and_then(Node::as_scalar).map(|scalar| scalar.text.clone());
    let field = if word("type").as_deref() == Some("exit_code") { "exit_code" } else { "output" };
    if let Some(source) = word("source").filter(|source| !source.contains("${")) {
        if !sources.contains(&source) {
            let message = format!("the state `{source}` is not defined");
            let near = nearest(&source, sources.iter().map(String::as_str));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "name the state whose result decides".to_owned(),
            };
            out.push(
                Diagnostic::error("unknown-state", Place::Value(path.key("source")), message).help(help),
            );
        }
        if let Some(entry) = entries_mut(&mut condition.value).iter_mut().find(|entry| entry.key == "source")
        {
            entry.value = text(&entry.value.span, format!("${{captured.{source}.{field}}}"));
        }
    }
    put(state, Entry { key: "evaluate".to_owned(), ..condition });
}

/// `on_target`, `on_progress` and `on_stall` alone say that a number is driven towards `context.target`.
fn convergence(state: &mut Node) {
    if ["evaluate", "condition", "next", "loop"].into_iter().any(|key| state.get(key).is_some()) {
        return;
    }
    let way = |entry: &&Entry| matches!(entry.key.as_str(), "on_target" | "on_progress" | "on_stall");
    let Some(at) = entries(state).iter().find(way).map(|entry| entry.key_span.clone()) else {
        return;
    };
    let judge = vec![
        entry("type", text(&at, "convergence")),
        entry("target", text(&at, "${context.target}")),
        entry("tolerance", text(&at, "${context.tolerance:-0}")),
    ];
    put(state, entry("evaluate", map(&at, judge)));
}

/// The stall detector of the predecessor.
fn circuit(tree: &mut Node, out: &mut Diagnostics) {
    let Some(circuit) = take(tree, "circuit") else { return };
    let known = Loop::KEYS.contains(&"stall") && tree.get("stall").is_none();
    let (message, help) = match circuit.value.get("repeated_failure") {
        Some(detector) if known => {
            let window =
                detector.get("window").cloned().unwrap_or_else(|| super::tree::plain(&circuit.key_span, "3"));
            let action = match detector.get("on_repeated_failure") {
                Some(action) if action.as_scalar().is_some_and(|scalar| scalar.text != "abort") => {
                    action.clone()
                }
                _ => text(&circuit.key_span, "stop"),
            };
            let stall = map(&circuit.value.span, vec![entry("window", window), entry("action", action)]);
            put(tree, Entry { key: "stall".to_owned(), key_span: circuit.key_span.clone(), value: stall });
            ("`circuit` is taken as `stall`", "write `stall: {window: 3, action: stop}`")
        }
        _ => ("`circuit` has no effect here", "`max_edge_revisits` and `max_steps` bound a run"),
    };
    let place = Place::At(circuit.key_span);
    out.push(Diagnostic::note("no-effect", place, message).help(help));
}

/// The part of the predecessor's settings that a loop has a key for.
fn config(tree: &mut Node) {
    let config = tree.get("config");
    let under = |key: &str| config?.get(key)?.get("max_continuations");
    let found = under("automation").or_else(|| under("continuation"));
    let Some(found) = found.cloned() else { return };
    if Loop::KEYS.contains(&"max_handoffs") && tree.get("max_handoffs").is_none() {
        put(tree, entry("max_handoffs", found));
    }
}
