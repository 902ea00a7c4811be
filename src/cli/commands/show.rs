//! `ll-loop show`: draws a loop as a graph, and the way of a run through it.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::base::advised_command;
use crate::base::text::plural;
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::definition::load::Located;
use crate::definition::render;
use crate::report::digest::Digest;
use crate::report::graph::{self, Graph};
use crate::report::html::playground::{self, ShownFinding};
use crate::session::prepare::loop_check::Checker;
use crate::session::prepare::prepared::Prepared;
use crate::session::start::incoming::no_run;

/// The arguments of `show`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShowArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    pub(super) name: String,
    /// The format of the graph
    #[arg(long, value_enum, default_value_t = GraphFormat::Text)]
    pub(super) format: GraphFormat,
    /// Draw the way of a run into it: a run of this loop, or a bundle of one
    #[arg(long, value_name = "RUN|BUNDLE")]
    pub(super) run: Option<String>,
    /// Print a page without network on which the loop can be walked: choose verdicts, and see where they lead
    #[arg(long, conflicts_with_all = ["format", "run"])]
    pub(super) html: bool,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
}

/// The formats of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum GraphFormat {
    /// For a terminal
    Text,
    /// For GitHub, GitLab and others that draw Mermaid
    Mermaid,
    /// For Graphviz
    Dot,
    /// A picture of its own, for browsers and documents
    Svg,
}

pub(in crate::cli) fn show(args: &ShowArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let located = session.find(&args.name, args.reach.allow_outside)?;
    if args.html {
        output.data(&page(located, session)?);
        return Ok(0);
    }
    let prepared = session.prepare(located)?;
    let mut drawn = Graph::of_machine(&prepared.machine);
    if let Some(run) = &args.run {
        drawn = drawn.with_run(&walked(run, &prepared, session)?);
    }
    let text = match args.format {
        GraphFormat::Text => text(&prepared, &drawn),
        GraphFormat::Mermaid => graph::mermaid(&drawn),
        GraphFormat::Dot => graph::dot(&drawn),
        GraphFormat::Svg => graph::standalone(&drawn).ok_or_else(|| too_large(&drawn))?,
    };
    output.data(&text);
    Ok(0)
}

/// Makes the page on which a loop can be walked, with what the check finds in it.
fn page(located: Located, session: &Session<'_>) -> Result<String, Error> {
    let checked = Checker::default().check(&located, true)?;
    let found = render::to_json(&checked.findings, &checked.sources, checked.tree.as_ref());
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let shown = found.iter().map(|finding| ShownFinding {
        severity: word(finding, "severity"),
        code: word(finding, "code"),
        message: match finding["help"].as_str() {
            Some(help) => format!("{}; {help}", word(finding, "message")),
            None => word(finding, "message"),
        },
        place: format!("{}:{}", word(finding, "file"), finding["line"]),
    });
    let shown: Vec<ShownFinding> = shown.collect();
    let prepared = session.prepare(located)?;
    Ok(playground::playground(&prepared.machine, &shown))
}

/// Reads what a run of this loop did.
fn walked(run: &str, prepared: &Prepared, session: &Session<'_>) -> Result<Digest, Error> {
    let digest = session.digest(Some(run))?;
    let asked = prepared.located.name.as_ref().unwrap_or(&prepared.loaded.definition.name);
    let Some(start) = digest.start() else {
        return Err(Error::refused(format!("nothing was run in `{run}`")).of_kind(Kind::Absent));
    };
    if digest.is_merge() {
        return Err(no_run(run));
    }
    // A file outside of `.loops` is known by the name that it gives itself.
    if start.r#loop != *asked && start.r#loop != prepared.loaded.definition.name {
        return Err(Error::refused(format!("`{run}` is a run of `{}`, not of `{asked}`", start.r#loop))
            .with_hint(format!(
                "`{}` lists the runs of `{asked}`",
                advised_command::history(asked.as_str())
            )));
    }
    if start.definition_sha256 != prepared.loaded.digest {
        session.talk.warning(
            "the loop has changed since that run: states and ways that it no longer has are drawn, too",
        );
    }
    Ok(digest)
}

fn too_large(graph: &Graph) -> Error {
    let (states, ways) = (graph.states.len() as u64, graph.edges.len() as u64);
    let size = format!("{} and {}", plural(states, "state"), plural(ways, "way"));
    Error::refused(format!("a picture of {size} cannot be read"))
        .with_hint("`--format dot` is for Graphviz, which takes it")
}

fn text(prepared: &Prepared, drawn: &Graph) -> String {
    let definition = &prepared.loaded.definition;
    let mut out = format!("{}  ({})\n", definition.name, prepared.located.shown);
    if let Some(description) = &definition.description {
        let _ = writeln!(out, "{}", description.trim());
    }
    let _ = writeln!(out, "at most {} iterations\n", prepared.machine.limits.iterations.limit);
    out.push_str(&graph::text(drawn));
    if let Some(words) = prepared.machine.judges.words() {
        let _ = writeln!(out, "\njudges: {words}");
    }
    if !definition.commands.is_empty() {
        out.push_str("\ncommands:\n");
        for hint in &definition.commands {
            let _ = writeln!(out, "  {}  # {}", hint.cmd, hint.comment);
        }
    }
    out
}
