//! `ll-loop man`: writes the manual pages, one for the program and one for each command.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use crate::base::time::Timestamp;
use crate::cli::output::Output;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::files::replace::replace;
use crate::process::clock::Clock;

/// The time of what is built, in seconds since 1970, for builds that give the same files again.
const BUILT: &str = "SOURCE_DATE_EPOCH";

/// The arguments of `man`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ManArgs {
    /// Where to put the pages; made where it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

pub(in crate::cli) fn man(
    args: &ManArgs,
    command: Command,
    env: &Environment,
    output: &Output,
) -> Result<u8, Error> {
    let shown = args.dir.display();
    // There would be a page about `help`, and one for each command below it.
    let mut command = command.disable_help_subcommand(true);
    // Commands know the names of their pages only when they are built.
    command.build();
    fs_err::create_dir_all(&args.dir)
        .and_then(|()| write(&command, &date(env), &args.dir))
        .map_err(|error| Error::failed(format!("cannot write manual pages into {shown}"), &error))?;
    output.talk(&format!("the manual pages are in {shown}; `man -l {shown}/ll-loop.1` shows the first\n"));
    Ok(0)
}

/// Returns the date of the pages: that of the build where one says it, or else today.
fn date(env: &Environment) -> String {
    let built = env.get(BUILT).and_then(|seconds| seconds.parse::<i64>().ok());
    let built = built.and_then(|seconds| seconds.checked_mul(1000)).map(Timestamp::from_millis);
    built.unwrap_or_else(|| Clock::start().now()).minute().chars().take(10).collect()
}

fn write(command: &Command, date: &str, dir: &Path) -> io::Result<()> {
    // Hidden commands are called by ourselves alone.
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write(command, date, dir)?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(date)
        .source(concat!("ll-loop ", env!("CARGO_PKG_VERSION")))
        .manual("ll-loop");
    let mut page = Vec::new();
    man.render(&mut page)?;
    let page = tidied(&String::from_utf8_lossy(&page));
    replace(&dir.join(format!("{name}.1")), page)
}

/// Removes what formatters warn of, and keeps the lines of tables as they are.
fn tidied(page: &str) -> String {
    page.replace(".br\n\n.br\n", ".sp\n").replace("\n.SH EXTRA\n", "\n.SH NOTES\n.nf\n")
}
