//! `ll-loop reuse`: the key of a run, and the results that are kept by their keys.

use std::fmt::Write as _;
use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};

use crate::base::sum::Sum;
use crate::base::text::{one_line, plural};
use crate::base::time::parse_duration;
use crate::cli::flags::{ReachFlags, pair};
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::context::options::BeginOptions;
use crate::process::clock::Clock;
use crate::reuse::key::{KeyFile, KeyParts};
use crate::reuse::record::{NotTaken, ReuseRecord};
use crate::reuse::store::{ListedRecord, StoreError};

/// The commands about reuse.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ReuseArgs {
    /// Print the key that a run of a loop would have
    Key(KeyArgs),
    /// List the results that are kept for later runs
    List,
    /// Remove results that are kept: those that cannot be taken any more, or all
    Prune(PruneArgs),
}

/// The arguments of `reuse prune`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PruneArgs {
    /// Remove results that are older
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,
    /// Remove all of them
    #[arg(long, conflicts_with = "older_than")]
    all: bool,
}

/// The arguments of `reuse key`.
#[derive(Debug, Args)]
pub(in crate::cli) struct KeyArgs {
    /// The name of a loop in `.loops/`, or the path of a loop file
    #[arg(value_name = "LOOP")]
    name: String,
    /// The input of the loop, stored under its `input_key`
    input: Option<String>,
    /// Set a context value
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    context: Vec<(String, String)>,
    /// Set a declared parameter
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, action = ArgAction::Append)]
    param: Vec<(String, String)>,
    /// Print what the key is made of, too
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    reach: ReachFlags,
}

pub(in crate::cli) fn reuse(args: &ReuseArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    match args {
        ReuseArgs::Key(args) => key(args, session, output),
        ReuseArgs::List => list(session, output),
        ReuseArgs::Prune(args) => prune(args, session, output),
    }
}

fn failed(error: &StoreError) -> Error {
    Error::failed("cannot use the results of earlier runs", error)
}

fn list(session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let all = session.reuse_store().list().map_err(|error| failed(&error))?;
    if all.is_empty() {
        output.talk("no results are kept\n");
    }
    let mut text = String::new();
    for ListedRecord { file, record } in &all {
        let _ = match record {
            Ok(ReuseRecord { run, r#loop, .. }) => writeln!(
                text,
                "{}  {}  {} by run {} ({})",
                short(&run.key.to_string()),
                one_line(r#loop, 60),
                run.words(),
                one_line(&run.run, 120),
                run.when
            ),
            Err(why) => writeln!(text, "{}  not taken: {why}", one_line(file, 200)),
        };
    }
    output.data(&text);
    Ok(0)
}

/// How long results are kept that no option says anything about: the default of `max_age`.
const USUAL_AGE: Duration = Duration::from_hours(30 * 24);

fn prune(args: &PruneArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let (now, most) = (Clock::start().now(), args.older_than.unwrap_or(USUAL_AGE));
    let goes = |record: &Result<ReuseRecord, NotTaken>| match record {
        Ok(record) => args.all || now.since(record.run.when) > most,
        // What cannot be taken is of no use, however new it is.
        Err(_) => true,
    };
    let count = session.reuse_store().prune(goes).map_err(|error| failed(&error))?;
    output.talk(&format!("removed {}\n", plural(count as u64, "result")));
    Ok(0)
}

fn key(args: &KeyArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let options = BeginOptions {
        input: args.input.clone(),
        context: args.context.clone(),
        params: args.param.clone(),
        ..BeginOptions::default()
    };
    let prepared = session.prepare(session.find(&args.name, args.reach.allow_outside)?)?;
    let parts = prepared.bind(options, session)?.reuse_key()?;
    let mut text = format!("{}\n", parts.key());
    if args.explain {
        explain(&parts, &mut text);
    }
    output.data(&text);
    Ok(0)
}

/// Writes what a key is made of. Values are secrets now and then, so that their digests alone are shown.
fn explain(parts: &KeyParts, text: &mut String) {
    text.push('\n');
    for (name, sum) in parts.sums().named() {
        let _ = writeln!(text, "{name:<9} {sum}");
    }
    let file = |file: &KeyFile| format!("{} {}", file.mode.word(), short(&file.content.to_string()));
    section("inputs", parts.inputs.iter().map(|(path, of)| (path, file(of))), text);
    let judge = |of: &Option<KeyFile>| of.as_ref().map_or_else(|| "not there".to_owned(), file);
    section("judges", parts.judges.iter().map(|(path, of)| (path, judge(of))), text);
    section("tools", parts.tools.iter().map(|(command, sum)| (command, short(&sum.to_string()))), text);
    let value = |sum: &Option<Sum>| sum.map_or_else(|| "not set".to_owned(), |sum| short(&sum.to_string()));
    section("env", parts.env.iter().map(|(name, sum)| (name, value(sum))), text);
    section("platform", parts.platform.iter().map(|(name, value)| (name, one_line(value, 80))), text);
}

fn short(sum: &str) -> String {
    sum.chars().take(12).collect()
}

fn section<'n>(name: &str, rows: impl Iterator<Item = (&'n String, String)>, text: &mut String) {
    let mut rows = rows.peekable();
    if rows.peek().is_some() {
        let _ = writeln!(text, "\n{name}:");
    }
    for (of, value) in rows {
        let _ = writeln!(text, "  {value}  {}", one_line(of, 200));
    }
}
