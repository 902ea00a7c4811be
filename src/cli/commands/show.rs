//! `ll-loop show`: a loop as a graph.

use std::fmt::Write as _;

use crate::cli::args::{Graph, ShowArgs};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::machine::graph;

use super::prepare::{Prepared, find, prepare};

pub(in crate::cli) fn show(args: &ShowArgs, _env: &Env, output: &Output) -> Result<u8, CliError> {
    let prepared = prepare(find(&args.name, &args.reach)?, |_| {}, output)?;
    let text = match args.format {
        Graph::Text => text(&prepared),
        Graph::Mermaid => graph::mermaid(&prepared.machine),
        Graph::Dot => graph::dot(&prepared.machine),
    };
    output.data(&text);
    Ok(0)
}

fn text(prepared: &Prepared) -> String {
    let definition = &prepared.loaded.definition;
    let mut out = format!("{}  ({})\n", definition.name, prepared.located.shown);
    if let Some(description) = &definition.description {
        let _ = writeln!(out, "{}", description.trim());
    }
    let _ = writeln!(out, "at most {} iterations\n", definition.max_iterations.get());
    out.push_str(&graph::text(&prepared.machine));
    if !definition.commands.is_empty() {
        out.push_str("\ncommands:\n");
        for hint in &definition.commands {
            let _ = writeln!(out, "  {}  # {}", hint.cmd, hint.comment);
        }
    }
    out
}
