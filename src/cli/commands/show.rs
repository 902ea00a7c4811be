//! `ll-loop show`: draws a loop as a graph.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};

use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::machine::graph;
use crate::session::context::Session;
use crate::session::error::Error;
use crate::session::prepared::Prepared;

/// The arguments of `show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// The format of the graph
    #[arg(long, value_enum, default_value_t = Graph::Text)]
    pub(super) format: Graph,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
}

/// The formats of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Graph {
    /// For a terminal
    Text,
    /// For GitHub, GitLab and others that draw Mermaid
    Mermaid,
    /// For Graphviz
    Dot,
}

pub(in crate::cli) fn show(args: &ShowArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let prepared = session.prepare(session.find(&args.name, args.reach.allow_outside)?)?;
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
    let _ = writeln!(out, "at most {} iterations\n", prepared.machine.limits.iterations.limit);
    out.push_str(&graph::text(&prepared.machine));
    if !definition.commands.is_empty() {
        out.push_str("\ncommands:\n");
        for hint in &definition.commands {
            let _ = writeln!(out, "  {}  # {}", hint.cmd, hint.comment);
        }
    }
    out
}
