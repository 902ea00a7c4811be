//! `ll-loop board`: the loops of many repositories on one page.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::flags;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::fleet::board_sources::BoardSource;
use crate::fleet::{board_json, board_page};

/// The arguments of `board`.
#[derive(Debug, Args)]
pub(in crate::cli) struct BoardArgs {
    /// Report directories, bundles, artifacts that were downloaded, or folders of them
    #[arg(value_name = "DIR|BUNDLE", required_unless_present = "repo")]
    sources: Vec<PathBuf>,
    /// The runs in a directory or bundle are those of this repository, whatever they say
    #[arg(long, value_name = "NAME=DIR", value_parser = flags::pair, action = ArgAction::Append)]
    repo: Vec<(String, String)>,
    /// Ask the server of GitHub what became of what runs delivered since the first run of each repository
    #[arg(long)]
    fetch: bool,
    /// Write JSON instead of the page
    #[arg(long)]
    json: bool,
    /// Write it to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(in crate::cli) fn board(args: &BoardArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let named = args
        .repo
        .iter()
        .map(|(name, path)| BoardSource { repository: Some(name.clone()), path: PathBuf::from(path) });
    let unnamed = args.sources.iter().map(|path| BoardSource { repository: None, path: path.clone() });
    let sources: Vec<BoardSource> = named.chain(unnamed).collect();
    let (mut board, now) = session.fleet(&sources)?;
    if args.fetch {
        session.fetch_deliveries(&mut board, now)?;
    }
    let text = if args.json {
        format!("{:#}\n", board_json::json(&board, now))
    } else {
        board_page::render(&board, now)
    };
    match &args.output {
        Some(file) => session.write_report(file, &text)?,
        None => output.data(&text),
    }
    Ok(0)
}
