//! `ll-loop fmt`: writes loops in one form.

use clap::Args;

use crate::cli::exit;
use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::editor::formatted_files::{self, FormattedFile};
use crate::editor::write_back;

/// The arguments of `fmt`.
#[derive(Debug, Args)]
pub(in crate::cli) struct FmtArgs {
    /// Names or files of loops, libraries or tests, or directories. The default is all of the repository
    #[arg(value_name = "LOOP|DIR")]
    pub(super) loops: Vec<String>,
    /// Write nothing, and name the files that would change: exit code 1 if there are some
    #[arg(long)]
    pub(super) check: bool,
}

pub(in crate::cli) fn fmt(args: &FmtArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    let files = formatted_files::files(&args.loops, session)?;
    let (mut changed, mut is_unreadable) = (0_u64, false);
    for file in &files {
        let shown = file.strip_prefix(&session.cwd).unwrap_or(file).display().to_string();
        match formatted_files::formatted(file, session) {
            Ok(FormattedFile::Same) => {}
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
        () if is_unreadable => exit::INVALID,
        () if args.check && changed > 0 => exit::WOULD_CHANGE,
        () => 0,
    })
}
