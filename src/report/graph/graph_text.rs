//! Graphs as text: for a terminal, for what draws Mermaid, and for Graphviz.

use std::fmt::Write as _;

use super::graph_model::{DrawnState, Edge, Graph};
use crate::base::text::one_line;

/// Draws a graph for a terminal: every state with its action and its ways out.
pub fn text(graph: &Graph) -> String {
    let mut out = String::new();
    for (index, state) in graph.states.iter().enumerate() {
        let start = if index == graph.initial { "▶" } else { " " };
        let meaning = state.meaning.map(|meaning| format!("■ {meaning}"));
        let what = meaning.or_else(|| state.work.clone()).map(|what| one_line(&what, 60));
        let standing = state.standing().map(|standing| format!("[{standing}]"));
        let check = state.is_check.then(|| "(check)".to_owned());
        let parts = [Some(state.name.clone()), what, check, standing].into_iter().flatten();
        let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
        let _ = writeln!(out, "{start} {}", parts.join("  "));
        let ways: Vec<&Edge> = graph.edges.iter().filter(|edge| edge.from == index).collect();
        for (at, edge) in ways.iter().enumerate() {
            let branch = if at + 1 == ways.len() { "└─" } else { "├─" };
            let back = if edge.to == index { " ↺" } else { "" };
            let times = if edge.count > 0 { format!("  ×{}", edge.count) } else { String::new() };
            let to = &graph.states[edge.to].name;
            let _ = writeln!(out, "    {branch} {} → {to}{back}{times}", edge.label);
        }
    }
    out
}

/// Draws a graph as a Mermaid state diagram.
pub fn mermaid(graph: &Graph) -> String {
    let mut out = String::from("stateDiagram-v2\n");
    let aliases = aliases(graph);
    for (state, alias) in graph.states.iter().zip(&aliases) {
        let _ = writeln!(out, "    state \"{}\" as {alias}", quoted(&named(state)));
    }
    if let Some(initial) = aliases.get(graph.initial) {
        let _ = writeln!(out, "    [*] --> {initial}");
    }
    for edge in &graph.edges {
        let _ =
            writeln!(out, "    {} --> {}: {}", aliases[edge.from], aliases[edge.to], quoted(&edge.counted()));
    }
    for (state, alias) in graph.states.iter().zip(&aliases) {
        if state.is_end {
            let _ = writeln!(out, "    {alias} --> [*]");
        }
    }
    let visited: Vec<&str> = visited(graph, &aliases).collect();
    if !visited.is_empty() {
        out.push_str("    classDef visited stroke-width:3px\n");
        let _ = writeln!(out, "    class {} visited", visited.join(","));
    }
    out
}

/// Draws a graph in the language of Graphviz.
pub fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph loop {\n    rankdir=LR\n    node [shape=box, style=rounded]\n");
    let aliases = aliases(graph);
    for (state, alias) in graph.states.iter().zip(&aliases) {
        let shape = if state.is_end { ", shape=doublecircle" } else { "" };
        let drawn = drawn(graph, state.visits > 0 || state.end.is_some());
        let _ = writeln!(out, "    {alias} [label=\"{}\"{shape}{drawn}]", quoted(&named(state)));
    }
    if let Some(initial) = aliases.get(graph.initial) {
        let _ = writeln!(out, "    start [shape=point]\n    start -> {initial}");
    }
    for edge in &graph.edges {
        let _ = writeln!(
            out,
            "    {} -> {} [label=\"{}\"{}]",
            aliases[edge.from],
            aliases[edge.to],
            quoted(&edge.counted()),
            drawn(graph, edge.count > 0)
        );
    }
    out.push_str("}\n");
    out
}

/// Returns how Graphviz tells what a run came by from what it did not.
fn drawn(graph: &Graph, was_there: bool) -> &'static str {
    match (graph.has_run, was_there) {
        (false, _) => "",
        (true, true) => ", penwidth=2",
        (true, false) => ", color=gray, fontcolor=gray",
    }
}

fn named(state: &DrawnState) -> String {
    state.standing().map_or_else(|| state.name.clone(), |standing| format!("{} ({standing})", state.name))
}

fn visited<'a>(graph: &'a Graph, aliases: &'a [String]) -> impl Iterator<Item = &'a str> {
    let states = graph.states.iter().zip(aliases);
    states.filter(|(state, _)| state.visits > 0).map(|(_, alias)| alias.as_str())
}

/// Returns a name for every state that both languages take: `s` and a number for a step, `e` and one for a terminal.
fn aliases(graph: &Graph) -> Vec<String> {
    let (mut steps, mut ends) = (0..graph.states.len(), 0..graph.states.len());
    let mut alias = |state: &DrawnState| {
        let (letter, numbers) = if state.is_end { ('e', &mut ends) } else { ('s', &mut steps) };
        format!("{letter}{}", numbers.next().unwrap_or(0))
    };
    graph.states.iter().map(&mut alias).collect()
}

/// Names may hold anything that is printable; both languages take it between quotes once quotes are gone. A journal may
/// hold anything at all.
fn quoted(text: &str) -> String {
    one_line(text, 400).replace('\\', "/").replace('"', "'").replace([':', ';', '#'], " ")
}
