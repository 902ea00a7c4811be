//! `ll-loop fmt`: writes loops in one form.

use std::io::{self, Read as _};

use clap::Args;

use crate::cli::exit;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::yaml::MAX_SIZE;
use crate::editor::format;
use crate::editor::formatted_files::{self, FormattedFile};
use crate::editor::write_back;

/// The arguments of `fmt`.
#[derive(Debug, Args)]
pub(in crate::cli) struct FmtArgs {
    /// Names or files of loops, libraries or tests, or directories; `-` reads a text and prints it. The default is all of the
    /// repository
    #[arg(value_name = "LOOP|DIR|-")]
    pub(super) loops: Vec<String>,
    /// Write nothing, and name what would change: exit code 1 if something would
    #[arg(long)]
    pub(super) check: bool,
}

/// What stands for the text that is read from standard input.
const STANDARD_INPUT: &str = "-";

pub(in crate::cli) fn fmt(args: &FmtArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    if args.loops.iter().any(|name| name == STANDARD_INPUT) {
        return if args.loops.len() == 1 {
            standard_input(args.check, output)
        } else {
            Err(Error::refused("`-` is the only text where it is given"))
        };
    }
    let files = formatted_files::files(&args.loops, session)?;
    let (mut changed, mut is_unreadable) = (0_u64, false);
    for file in &files {
        let shown = file.strip_prefix(&session.cwd).unwrap_or(file).display().to_string();
        match formatted_files::formatted(file, session) {
            Ok(FormattedFile::Same) => {}
            // Other YAML may lie beside loops. Where somebody names it, more is expected.
            Ok(FormattedFile::Other) if args.loops.is_empty() => {}
            Ok(FormattedFile::Other) => {
                let why = format!("`{shown}` is left as it is: it is no loop, no library and no test");
                session.talk.note(&why);
            }
            Ok(FormattedFile::Changed(text)) => {
                changed += 1;
                if !args.check {
                    write_back::write(file, &text)?;
                }
                output.data(&format!("{shown}\n"));
            }
            Ok(FormattedFile::Left(why)) => {
                is_unreadable = true;
                let error = Error::refused(format!("`{shown}` is left as it is: {why}"));
                output.failure(&error.with_hint(format!("`ll-loop validate {shown}` may say more")));
            }
            Err(error) => {
                is_unreadable = true;
                output.failure(&error);
            }
        }
    }
    Ok(match () {
        // It outweighs a change: what cannot be read may have to change as well.
        () if is_unreadable => exit::INVALID,
        () if args.check && changed > 0 => exit::WOULD_CHANGE,
        () => 0,
    })
}

/// Reads a text, and prints it in its form, as editors want it. One that cannot be formatted is printed nowhere, so that nobody
/// takes half of it for all.
fn standard_input(is_check: bool, output: &Output) -> Result<u8, Error> {
    let mut text = String::new();
    // One byte more than is allowed tells a text that is too large from one that just fits.
    let mut input = io::stdin().lock().take(MAX_SIZE as u64 + 1);
    input.read_to_string(&mut text).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidData {
            Error::refused("the text is not UTF-8")
        } else {
            Error::failed("cannot read standard input", &error)
        }
    })?;
    if text.len() > MAX_SIZE {
        return Err(Error::refused(format!("the text is larger than {MAX_SIZE} bytes")));
    }
    let left = |why| Error::refused(format!("the text is left as it is: {why}"));
    let formatted = format::formatted(&text).map_err(left)?;
    if !is_check {
        let printed = output.exactly(&formatted);
        if printed.map_err(|error| Error::failed("cannot write to standard output", &error))? {
            return Ok(0);
        }
        return Err(Error::refused(
            "the text is left as it is: it holds a secret, or signs that cannot be printed",
        )
        .with_hint("`ll-loop fmt FILE` writes the file itself"));
    }
    if formatted == text {
        return Ok(0);
    }
    output.data("-\n");
    Ok(exit::WOULD_CHANGE)
}
