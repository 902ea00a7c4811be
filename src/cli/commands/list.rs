//! `ll-loop list`: lists the loops of this repository, or its runs.

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use crate::base::text::plural;
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::definition::load::{self, Listed, LoadError, Loaded};
use crate::run::clock::Clock;
use crate::session::context::Session;
use crate::session::error::Error;
use crate::session::prepared::reaching;
use crate::session::runs::Places;

use super::runs::show;

/// The arguments of `list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// List the running runs instead of the loops
    #[arg(long, conflicts_with = "label")]
    pub(super) running: bool,
    /// List only loops with this label; if repeated, with all of the labels
    #[arg(long, short, value_name = "LABEL", action = ArgAction::Append)]
    pub(super) label: Vec<String>,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
    /// Write one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
}

pub(in crate::cli) fn list(args: &ListArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if args.running {
        return running(args, session, output);
    }
    let loops = load::list(&session.cwd);
    if loops.is_empty() {
        output.talk("no loops here; a loop is a file `.loops/NAME.yaml`\n");
    }
    for listed in loops {
        // Names are known without reading the files.
        if args.label.is_empty() && !args.json {
            output.data(&format!("{}\n", listed.name));
            continue;
        }
        let loaded = load::load(&reaching(listed.located.clone(), args.reach.allow_outside));
        if matches!(loaded, Err(LoadError::Library { .. })) {
            continue;
        }
        if let Err(error) = &loaded {
            output.warning(&format!("{} cannot be read: {error}", listed.located.shown));
        }
        let loaded = loaded.ok();
        let labels = loaded.as_ref().map(|loaded| loaded.definition.labels.as_slice()).unwrap_or_default();
        if args.label.iter().all(|label| labels.contains(label)) {
            if args.json {
                output.json(shown(&listed, loaded.as_ref()));
            } else {
                output.data(&format!("{}\n", listed.name));
            }
        }
    }
    Ok(0)
}

fn shown(listed: &Listed, loaded: Option<&Loaded>) -> Value {
    let definition = loaded.map(|loaded| &loaded.definition);
    json!({
        "name": listed.name,
        "path": listed.located.shown,
        "loop": definition.map(|definition| definition.name.as_str()),
        "description": definition.and_then(|definition| definition.description.as_ref()),
        "category": definition.and_then(|definition| definition.category.as_ref()),
        "labels": definition.map(|definition| &definition.labels),
    })
}

fn running(args: &ListArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let (live, left): (Vec<_>, Vec<_>) =
        Places::of(session).open()?.into_iter().partition(|run| run.status.is_live());
    let now = Clock::start().now();
    for run in &live {
        show(run, args.json, now, output);
    }
    let left = left.len() as u64;
    match (live.is_empty(), left) {
        (false, 0) => {}
        (true, 0) => output.talk("nothing runs here\n"),
        (_, left) => {
            let (were, none) = (
                if left == 1 { "was" } else { "were" },
                if live.is_empty() { "nothing runs here; " } else { "" },
            );
            output.talk(&format!(
                "{none}{} {were} left before the end, see `ll-loop status`\n",
                plural(left, "other run")
            ));
        }
    }
    Ok(0)
}
