//! A machine as a graph: what can be reached, and how it is drawn.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Machine, Meaning, StepId, Target};

/// A way from one state to another, with the words for which it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it begins.
    pub from: Target,
    /// Where it leads.
    pub to: Target,
    /// The verdicts, or `next`.
    pub label: String,
}

/// Returns every way, those with the same ends joined, in the order of the file.
pub fn edges(machine: &Machine) -> Vec<Edge> {
    let mut edges: Vec<Edge> = Vec::new();
    let mut add =
        |from, to, word: String| match edges.iter_mut().find(|edge| edge.from == from && edge.to == to) {
            Some(edge) => {
                edge.label.push_str(", ");
                edge.label.push_str(&word);
            }
            None => edges.push(Edge { from, to, label: word }),
        };
    for (id, step) in machine.steps() {
        for (word, to) in step.routes.ways() {
            add(Target::Step(id), to, word);
        }
        if let Some(retry) = &step.retry {
            add(Target::Step(id), retry.exhausted, "retries exhausted".to_owned());
        }
    }
    if machine.maintain.is_some() {
        for (id, end) in machine.ends() {
            add(Target::End(id), end.on_maintain.unwrap_or(machine.initial), "maintain".to_owned());
        }
    }
    edges
}

/// Returns every target that some run can reach, loop-level routes and handlers included.
pub fn reachable(machine: &Machine) -> BTreeSet<Target> {
    let edges = edges(machine);
    let fallback = machine.fallback;
    let handlers = [
        fallback.on_error,
        fallback.on_timeout,
        fallback.on_blocked,
        machine.limits.iterations.handler,
        machine.limits.steps.and_then(|cap| cap.handler),
        machine.stall.and_then(|stall| stall.to),
    ];
    spread([machine.initial].into_iter().chain(handlers.into_iter().flatten()).collect(), |target| {
        edges.iter().filter(move |edge| edge.from == target).map(|edge| edge.to).collect()
    })
}

/// Returns every target from which an end can be reached.
pub fn can_end(machine: &Machine) -> BTreeSet<Target> {
    let edges = edges(machine);
    spread(machine.ends().map(|(id, _)| Target::End(id)).collect(), |target| {
        edges.iter().filter(move |edge| edge.to == target).map(|edge| edge.from).collect()
    })
}

/// Tells whether some run can end without entering any of these steps.
pub fn can_end_without(machine: &Machine, avoided: &BTreeSet<StepId>) -> bool {
    let edges = edges(machine);
    let is_avoided = |target: Target| matches!(target, Target::Step(id) if avoided.contains(&id));
    let reached = spread(vec![machine.initial], |target| {
        let from = edges.iter().filter(move |edge| edge.from == target && !is_avoided(target));
        from.map(|edge| edge.to).collect()
    });
    reached.iter().any(|target| matches!(target, Target::End(_)))
}

fn spread(start: Vec<Target>, next: impl Fn(Target) -> Vec<Target>) -> BTreeSet<Target> {
    let mut reached = BTreeSet::new();
    let mut open = start;
    while let Some(target) = open.pop() {
        if reached.insert(target) {
            open.extend(next(target));
        }
    }
    reached
}

/// Draws the machine for a terminal: every state with its action and its ways out.
pub fn text(machine: &Machine) -> String {
    let mut out = String::new();
    let edges = edges(machine);
    let targets =
        machine.steps().map(|(id, _)| Target::Step(id)).chain(machine.ends().map(|(id, _)| Target::End(id)));
    for target in targets {
        let start = if target == machine.initial { "▶" } else { " " };
        let what = match target {
            Target::Step(id) => {
                machine.step(id).action.as_ref().map(|action| action.text().source().to_owned())
            }
            Target::End(id) => Some(format!("■ {}", meaning(machine.end(id).meaning))),
        };
        let what =
            what.map(|what| format!("  {}", crate::base::text::one_line(&what, 60))).unwrap_or_default();
        let _ = writeln!(out, "{start} {}{what}", machine.name_of(target));
        let ways: Vec<_> = edges.iter().filter(|edge| edge.from == target).collect();
        for (index, edge) in ways.iter().enumerate() {
            let branch = if index + 1 == ways.len() { "└─" } else { "├─" };
            let back = if edge.to == target { " ↺" } else { "" };
            let _ = writeln!(out, "    {branch} {} → {}{back}", edge.label, machine.name_of(edge.to));
        }
    }
    out
}

/// Draws the machine as a Mermaid state diagram.
pub fn mermaid(machine: &Machine) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    for (alias, target) in aliases(machine) {
        let _ = writeln!(out, "    state \"{}\" as {alias}", quoted(machine.name_of(target).as_str()));
    }
    let _ = writeln!(out, "    [*] --> {}", alias(machine.initial));
    for edge in edges(machine) {
        let _ = writeln!(out, "    {} --> {}: {}", alias(edge.from), alias(edge.to), quoted(&edge.label));
    }
    for (id, _) in machine.ends() {
        let _ = writeln!(out, "    {} --> [*]", alias(Target::End(id)));
    }
    out
}

/// Draws the machine in the language of Graphviz.
pub fn dot(machine: &Machine) -> String {
    let mut out = String::from("digraph loop {\n    rankdir=LR\n    node [shape=box, style=rounded]\n");
    for (alias, target) in aliases(machine) {
        let shape = if matches!(target, Target::End(_)) { ", shape=doublecircle" } else { "" };
        let _ = writeln!(out, "    {alias} [label=\"{}\"{shape}]", quoted(machine.name_of(target).as_str()));
    }
    let _ = writeln!(out, "    start [shape=point]\n    start -> {}", alias(machine.initial));
    for edge in edges(machine) {
        let _ = writeln!(
            out,
            "    {} -> {} [label=\"{}\"]",
            alias(edge.from),
            alias(edge.to),
            quoted(&edge.label)
        );
    }
    out.push_str("}\n");
    out
}

fn aliases(machine: &Machine) -> impl Iterator<Item = (String, Target)> {
    let steps = machine.steps().map(|(id, _)| Target::Step(id));
    steps.chain(machine.ends().map(|(id, _)| Target::End(id))).map(|target| (alias(target), target))
}

fn alias(target: Target) -> String {
    match target {
        Target::Step(id) => format!("s{}", id.0),
        Target::End(id) => format!("e{}", id.0),
    }
}

/// Names may hold anything that is printable; both languages take it between quotes once quotes are gone.
fn quoted(text: &str) -> String {
    text.replace('\\', "/").replace('"', "'").replace([':', ';', '#'], " ")
}

fn meaning(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Success | Meaning::DeclaredSuccess => "success",
        Meaning::Failure => "failure",
        Meaning::Blocked => "blocked",
    }
}
