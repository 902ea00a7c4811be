//! `ll-loop catalog`: lists the loops that the program brings along, and shows one.

use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::base::name::VarName;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::schema::Parameter;
use crate::shelf::catalogue;
use crate::shelf::catalogue::CatalogueEntry;

/// The arguments of `catalog`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(in crate::cli) struct CatalogArgs {
    #[command(subcommand)]
    command: Option<CatalogCommand>,
    /// Write one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum CatalogCommand {
    /// Print the file of a loop
    Show {
        /// The name of a loop that `ll-loop catalog` lists
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub(in crate::cli) fn catalog(
    args: &CatalogArgs,
    session: &Session<'_>,
    output: &Output,
) -> Result<u8, Error> {
    if let Some(CatalogCommand::Show { name }) = &args.command {
        output.data(&catalogue::named(name, session)?.text);
        return Ok(0);
    }
    let entries = catalogue::entries(session)?;
    if args.json {
        for entry in &entries {
            output.json(json(entry));
        }
    } else {
        output.data(&table(&entries));
        // On the other stream, so that a pipe gets the list alone.
        output.talk("`ll-loop add NAME` copies one into `.loops`; `ll-loop catalog show NAME` prints it\n");
    }
    Ok(0)
}

fn table(entries: &[CatalogueEntry]) -> String {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    let (with_agent, without): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.needs_agent);
    let mut out = String::new();
    let line = |out: &mut String, entry: &CatalogueEntry| {
        let _ = writeln!(out, "{:width$}  {}", entry.name, entry.description);
    };
    for entry in without {
        line(&mut out, entry);
    }
    out.push_str("\nwith an agent:\n");
    for entry in with_agent {
        line(&mut out, entry);
    }
    out
}

fn json(entry: &CatalogueEntry) -> Value {
    let parameters: Vec<_> = entry.parameters.iter().map(|(name, of)| parameter(name, of)).collect();
    json!({
        "name": entry.name,
        "description": entry.description,
        "needs_agent": entry.needs_agent,
        "parameters": parameters,
    })
}

fn parameter(name: &VarName, parameter: &Parameter) -> Value {
    json!({
        "name": name.as_str(),
        "type": parameter.kind,
        "required": parameter.required,
        "default": parameter.default,
        "description": parameter.description,
    })
}
