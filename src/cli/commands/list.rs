//! `ll-loop list`: lists the loops of this repository with how they ended last, or the runs that are alive.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use console::measure_text_width;
use serde_json::{Value, json};

use super::runs::show;
use crate::base::text::{one_line, plural};
use crate::cli::flags::ReachFlags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{self, DIRECTORY, LoadError, Loaded, Located};
use crate::journal::awaiting::awaiting;
use crate::journal::known::KnownRun;
use crate::process::clock::Clock;
use crate::session::prepare::prepared::reaching;
use crate::session::read::listed_runs::{Places, known_as};

/// The longest description in a line of a list.
const MAX_DESCRIPTION: usize = 100;

/// The arguments of `list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// List the running runs instead of the loops
    #[arg(long, conflicts_with_all = ["label", "category"])]
    pub(super) running: bool,
    /// List the runs that wait for an answer instead of the loops, with their questions
    #[arg(long, conflicts_with_all = ["label", "category", "running"])]
    pub(super) awaiting: bool,
    /// List only loops with this label; if repeated, with all of the labels
    #[arg(long, short, value_name = "LABEL", action = ArgAction::Append)]
    pub(super) label: Vec<String>,
    /// List only loops of this category
    #[arg(long, short, value_name = "CATEGORY")]
    pub(super) category: Option<String>,
    #[command(flatten)]
    pub(super) reach: ReachFlags,
    /// Write one JSON object per line
    #[arg(long)]
    pub(super) json: bool,
}

/// A loop, as it is listed.
struct ListedLoop {
    name: String,
    path: String,
    description: Option<String>,
    category: Option<String>,
    labels: Vec<String>,
    visibility: Option<String>,
    last: Last,
}

/// What is known of the runs of a loop.
#[derive(Default)]
struct Last {
    /// How the last run that ended did so.
    outcome: Option<&'static str>,
    is_running: bool,
    /// The file of the newest run.
    file: Option<String>,
}

pub(in crate::cli) fn list(args: &ListArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if args.running {
        return running(args, session, output);
    }
    if args.awaiting {
        return waiting(args, session, output);
    }
    let mut runs = last_runs(&Places::of(session).all()?);
    let mut rows = Vec::new();
    // By its name another file is found, so a hidden one cannot be run by it.
    for listed in load::list(&session.cwd).into_iter().filter(|listed| listed.hidden_by.is_none()) {
        let located = match listed.located {
            Ok(located) => reaching(located, args.reach.allow_outside),
            Err(error) => {
                output.warning(&error.to_string());
                continue;
            }
        };
        let loaded = match load::load(&located) {
            Ok(loaded) => Some(loaded),
            // Other YAML and libraries of fragments may lie in `.loops` as well; nothing is wrong with them.
            Err(LoadError::Rejected { rejected, .. }) if !rejected.is_loop => continue,
            Err(LoadError::Library { .. }) => continue,
            Err(error) => {
                output.warning(&format!("{} cannot be read: {error}", located.shown));
                None
            }
        };
        // By directory as well: a `.loops` further up may have another loop with this name.
        let last = runs.remove(&(located.root.join(DIRECTORY), listed.name.clone())).unwrap_or_default();
        rows.push(row(listed.name, &located, loaded, last));
    }
    // Loops of other files, while they run.
    rows.extend(
        runs.into_iter().filter(|(_, last)| last.is_running).map(|((_, name), last)| elsewhere(name, last)),
    );
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    if rows.is_empty() {
        output.talk(
            "no loops here; `ll-loop init` writes a first one, and a loop is a file `.loops/NAME.yaml`\n",
        );
    }
    // Behind the message: loops that no filter fits are here all the same.
    rows.retain(|row| {
        let is_of_category =
            args.category.as_ref().is_none_or(|category| row.category.as_ref() == Some(category));
        is_of_category && args.label.iter().all(|label| row.labels.contains(label))
    });
    if args.json {
        for row in &rows {
            output.json(row.json());
        }
    } else {
        output.data(&table(&rows));
    }
    Ok(0)
}

fn row(name: String, located: &Located, loaded: Option<Loaded>, last: Last) -> ListedLoop {
    let definition = loaded.map(|loaded| loaded.definition);
    let (description, category, labels, visibility) = definition
        .map(|known| (known.description, known.category, known.labels, known.visibility))
        .unwrap_or_default();
    ListedLoop { name, path: located.shown.clone(), description, category, labels, visibility, last }
}

fn elsewhere(name: String, last: Last) -> ListedLoop {
    let path = last.file.clone().unwrap_or_default();
    ListedLoop { name, path, description: None, category: None, labels: Vec::new(), visibility: None, last }
}

/// Returns what is known of the runs of each loop, by the directory that they are kept in and its name.
fn last_runs(in_order: &[KnownRun]) -> BTreeMap<(PathBuf, String), Last> {
    let mut last: BTreeMap<_, Last> = BTreeMap::new();
    for run in in_order {
        let of_loop = last.entry((run.files.loops().to_owned(), known_as(run))).or_default();
        // A run that goes on has no outcome yet; that of the one before stays.
        of_loop.outcome = run.ends.complete.as_ref().map(|end| end.outcome.word()).or(of_loop.outcome);
        of_loop.is_running |= run.status.is_live();
        of_loop.file = run.ends.start.as_ref().map(|(_, start)| start.source.file.clone());
    }
    last
}

impl ListedLoop {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "path": self.path,
            "description": self.description,
            "category": self.category,
            "labels": self.labels,
            "visibility": self.visibility.as_deref().unwrap_or("public"),
            "last_outcome": self.last.outcome,
            "running": self.last.is_running,
        })
    }

    fn cells(&self) -> [String; 4] {
        let last = if self.last.is_running { "running" } else { self.last.outcome.unwrap_or("-") };
        let text = |text: &Option<String>| text.as_deref().map(|text| one_line(text, MAX_DESCRIPTION));
        let category = text(&self.category).unwrap_or_else(|| "-".to_owned());
        [
            one_line(&self.name, MAX_DESCRIPTION * 2),
            last.to_owned(),
            category,
            text(&self.description).unwrap_or_default(),
        ]
    }
}

/// Draws rows below each other: name, last outcome, category and description.
fn table(rows: &[ListedLoop]) -> String {
    let cells: Vec<_> = rows.iter().map(ListedLoop::cells).collect();
    // In columns of the terminal: a letter may take two of them, or none.
    let width = |column: usize| cells.iter().map(|row| measure_text_width(&row[column])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), 0];
    cells.iter().fold(String::new(), |mut out, row| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let blanks = width.saturating_sub(measure_text_width(cell)) + 2;
            let _ = write!(line, "{cell}{:blanks$}", "");
        }
        let _ = writeln!(out, "{}", line.trim_end());
        out
    })
}

fn waiting(args: &ListArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let runs = Places::of(session).open()?;
    let mut is_empty = true;
    for (run, awaiting) in runs.iter().filter_map(|run| Some((run, awaiting(run)?))) {
        is_empty = false;
        let instance = run.files.instance();
        if args.json {
            output.json(json!({"instance": instance, "loop": run.name, "awaiting": awaiting}));
        } else {
            output.data(&format!(
                "{instance}  {}  until {}  {}\n",
                awaiting.code,
                awaiting.until.minute(),
                awaiting.shown()
            ));
        }
    }
    if is_empty {
        output.talk("no run here waits for an answer\n");
    }
    Ok(0)
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
