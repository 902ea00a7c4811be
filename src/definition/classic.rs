//! Translates keys of the classic dialect into those of the current one.

use std::collections::HashSet;

use super::assembled_tree::{entries, entries_mut, entry, given, map, put, take, text};
use super::promises;
use super::schema::Loop;
use crate::base::decode::Record as _;
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, nearest};
use crate::base::node::{Entry, Node};
use crate::evaluate::verdict::Verdict;

/// Translates a plain loop in place.
pub(super) fn translate(tree: &mut Node, out: &mut Diagnostics) {
    circuit(tree, out);
    config(tree, out);
    let Some(states) = tree.get("states") else { return };
    // Hardly any loop has a `check_condition`, and collecting the names goes through all states.
    let uses = entries(states).iter().any(|state| state.value.get("check_condition").is_some());
    let sources: HashSet<String> = if uses { results(states) } else { HashSet::new() };
    if let Some(states) = entries_mut(tree).iter_mut().find(|entry| entry.key == "states") {
        for state in entries_mut(&mut states.value) {
            check_condition(&mut state.value, &sources, out);
            convergence(&mut state.value);
        }
    }
}

/// Returns every name under which a result can be found.
fn results(states: &Node) -> HashSet<String> {
    let names = entries(states).iter().flat_map(|state| {
        let capture = state.value.get("capture").and_then(Node::as_scalar);
        [Some(state.key.clone()), capture.map(|scalar| scalar.text.clone())]
    });
    names.flatten().collect()
}

/// `check_condition` decides on what an earlier state left: its output, or its exit code.
fn check_condition(state: &mut Node, sources: &HashSet<String>, out: &mut Diagnostics) {
    let Some(mut condition) = take(state, "check_condition") else { return };
    if let Some(other) = ["evaluate", "condition"].into_iter().find(|key| given(state, key).is_some()) {
        let message = format!("`check_condition` and `{other}` both say how the state decides");
        out.push(
            Diagnostic::error("duplicate-key", FindingPlace::At(condition.key_span), message)
                .help("keep one"),
        );
        return;
    }
    let word =
        |key: &str| condition.value.get(key).and_then(Node::as_scalar).map(|scalar| scalar.text.clone());
    let field = if word("type").as_deref() == Some("exit_code") { "exit_code" } else { "output" };
    let written = condition.value.get("source").map(|source| source.span.clone());
    // A template is already what the current dialect wants; only a bare name of a state has to be written as one.
    if let (Some(source), Some(span)) = (word("source").filter(|source| !source.contains("${")), written) {
        if !sources.contains(&source) {
            let message = format!("the state `{source}` is not defined");
            let near = nearest(&source, sources.iter().map(String::as_str));
            let finding = Diagnostic::error("unknown-state", FindingPlace::At(span), message);
            out.push(match near {
                Some(near) => finding.meant(&source, near),
                None => finding.help("name the state whose result decides"),
            });
        }
        if let Some(entry) = entries_mut(&mut condition.value).iter_mut().find(|entry| entry.key == "source")
        {
            entry.value = text(&entry.value.span, format!("${{captured.{source}.{field}}}"));
        }
    }
    put(state, Entry { key: "evaluate".to_owned(), ..condition });
}

/// `on_target`, `on_progress` and `on_stall` alone say that a number is driven towards `context.target`. Beside a way
/// for `yes` or `no` they are a mistake.
fn convergence(state: &mut Node) {
    let decides_otherwise = |entry: &Entry| match entry.key.strip_prefix("on_").map(Verdict::canonical) {
        Some(verdict) => matches!(verdict.as_str(), "yes" | "no"),
        None => matches!(entry.key.as_str(), "evaluate" | "condition" | "next" | "loop" | "route"),
    };
    let is_given = |entry: &&Entry| !entry.value.is_null();
    if entries(state).iter().filter(is_given).any(decides_otherwise) {
        return;
    }
    let way = |entry: &&Entry| matches!(entry.key.as_str(), "on_target" | "on_progress" | "on_stall");
    let Some(at) = entries(state).iter().filter(is_given).find(way).map(|entry| entry.key_span.clone())
    else {
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
    let known = Loop::KEYS.contains(&"stall") && given(tree, "stall").is_none();
    let (message, help) = match circuit.value.get("repeated_failure") {
        Some(detector) if known => {
            // The default of the predecessor is 3 as well.
            let window = given(detector, "window")
                .cloned()
                .unwrap_or_else(|| super::assembled_tree::plain(&circuit.key_span, "3"));
            let action = match given(detector, "on_repeated_failure") {
                // The predecessor ends the run by `abort`, where we say `stop`; any other word is the name of a state in both.
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
    let place = FindingPlace::At(circuit.key_span);
    out.push(Diagnostic::note("no-effect", place, message).help(help));
}

/// The part of the predecessor's settings that a loop has a key for.
fn config(tree: &mut Node, out: &mut Diagnostics) {
    let Some(written) = entries(tree).iter().find(|entry| entry.key == "config") else { return };
    let place = FindingPlace::At(written.key_span.clone());
    promises::without_effect("config", &written.value, out);
    let config = Some(&written.value);
    let under = |key: &str| config?.get(key)?.get("max_continuations");
    let found = under("automation").or_else(|| under("continuation"));
    let known = Loop::KEYS.contains(&"max_handoffs") && given(tree, "max_handoffs").is_none();
    let has = |path: &str| path.split('.').try_fold(&written.value, |node, key| node.get(key)).is_some();
    let gone = CONFIG_GONE.into_iter().filter(|(path, _)| has(path));
    let gone: Vec<_> = gone.map(|(path, became)| format!("; `{path}`: {became}")).collect();
    let gone = gone.concat();
    let (message, help) = match found.cloned().filter(|_| known) {
        Some(found) => {
            put(tree, entry("max_handoffs", found));
            ("`config` is taken as `max_handoffs`", "write `max_handoffs: 10`")
        }
        None => ("`config` has no effect here", "remove it; its parts are keys of the loop"),
    };
    out.push(Diagnostic::note("no-effect", place, message).help(format!("{help}{gone}")));
}

/// Parts of the predecessor's settings that no key stands for, and what became of each.
const CONFIG_GONE: [(&str, &str); 3] = [
    (
        "handoff_threshold",
        "the host of an agent keeps its own context; the line `CONTEXT_HANDOFF:` of a prompt and `--deadline` hand a run off",
    ),
    (
        "commands.confidence_gate",
        "it had none there either: write `min_confidence` in the `llm_structured` that is to be sure",
    ),
    ("confidence_gate", "write `min_confidence` in the `llm_structured` that is to be sure"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::node::FileId;
    use crate::definition::{emit, yaml};

    /// Translates the states of a loop and returns the given one with its keys, or what was found.
    fn state(text: &str) -> String {
        let text = format!("states:\n  first: {{action: x, capture: out, next: it}}\n  it: {text}\n");
        let mut tree = yaml::parse(&text, FileId(0), &mut Diagnostics::default()).unwrap();
        let mut found = Diagnostics::default();
        translate(&mut tree, &mut found);
        let said = |finding: &Diagnostic| format!("{}: {}", finding.code, finding.message);
        let found = found.iter().map(said).collect::<Vec<_>>().join("\n");
        if found.is_empty() {
            emit::to_yaml(&tree).split("  it:\n").nth(1).unwrap().to_owned()
        } else {
            found
        }
    }

    #[test]
    fn a_condition_is_about_the_result_of_a_state() {
        insta::assert_snapshot!(state("{check_condition: {type: exit_code, source: first}, on_met: a}"), @"
        evaluate:
          type: exit_code
          source: '${captured.first.exit_code}'
        on_met: a
        ");
        insta::assert_snapshot!(state("{check_condition: {type: output_contains, source: out, pattern: p}, on_met: a}"), @"
        evaluate:
          type: output_contains
          source: '${captured.out.output}'
          pattern: p
        on_met: a
        ");
        insta::assert_snapshot!(state("{check_condition: {type: output_numeric, source: '${context.n}', target: 1}, on_met: a}"), @"
        evaluate:
          type: output_numeric
          source: '${context.n}'
          target: 1
        on_met: a
        ");
        insta::assert_snapshot!(state("{check_condition: {type: exit_code, source: frist}, on_met: a}"), @"unknown-state: the state `frist` is not defined");
        insta::assert_snapshot!(state("{check_condition: {type: exit_code}, condition: {type: exit_code}, on_met: a}"), @"duplicate-key: `check_condition` and `condition` both say how the state decides");
    }

    #[test]
    fn ways_of_a_number_alone_make_it_converge() {
        insta::assert_snapshot!(state("{action: x, on_target: a, on_progress: b, on_stall: c}"), @"
        action: x
        evaluate:
          type: convergence
          target: '${context.target}'
          tolerance: '${context.tolerance:-0}'
        on_target: a
        on_progress: b
        on_stall: c
        ");
        insta::assert_snapshot!(state("{action: x, on_yes: a, on_progress: b}"), @"
        action: x
        on_yes: a
        on_progress: b
        ");
        insta::assert_snapshot!(state("{action: x, evaluate: {type: diff_stall}, on_stall: b}"), @"
        action: x
        evaluate:
          type: diff_stall
        on_stall: b
        ");
    }
}
