//! `ll-loop add`: copies a loop into a repository, from the catalogue or from another repository.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::output::Output;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load;
use crate::definition::vendored::Copies;
use crate::shelf::catalogue::Added;
use crate::shelf::{catalogue, copies};

/// The arguments of `add`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AddArgs {
    /// A loop that `ll-loop catalog` lists, the path of a loop file, `github:OWNER/REPOSITORY/PATH.yaml@REF`, or the address of
    /// any git repository with a path: `https://HOST/REPOSITORY.git//PATH.yaml@REF`. REF is a branch, a tag, or the 40 digits of a
    /// commit
    #[arg(value_name = "LOOP")]
    what: String,
    /// The file to write, instead of `.loops/NAME.yaml`: of a loop of the catalogue
    #[arg(long = "as", value_name = "PATH")]
    to: Option<PathBuf>,
    /// Take also what a tag leads to that has moved since the loop was copied
    #[arg(long)]
    accept_changes: bool,
}

pub(in crate::cli) fn add(args: &AddArgs, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    // A file that is there is meant, even where its name looks like an address.
    if !copies::is_remote(&args.what) || session.path(Path::new(&args.what)).is_file() {
        return of_file(&args.what, args.to.as_deref(), session, output);
    }
    if args.to.is_some() {
        return Err(Error::refused(
            "a loop of another repository is copied to `.loops/vendor`, and nowhere else",
        )
        .with_hint("leave out `--as`"));
    }
    let text = copies::copied_loop::add(&args.what, Copies::accepted_if(args.accept_changes), session)?;
    output.data(&copies::printed(&text, session));
    Ok(0)
}

fn of_file(name: &str, to: Option<&Path>, session: &Session<'_>, output: &Output) -> Result<u8, Error> {
    // Without an extension it is a name: libraries of the catalogue are in folders as well.
    let is_path = load::is_loop_file(Path::new(name)) || session.path(Path::new(name)).is_file();
    let entry = if is_path {
        catalogue::at_path(Path::new(name), session)?
    } else {
        catalogue::named(name, session)?
    };
    let (did, path) = match catalogue::add(&entry, to, session)? {
        Added::Written(path) => ("wrote", path),
        Added::Unchanged(path) => ("unchanged:", path),
    };
    output.data(&format!("{did} {}\n", catalogue::shown(&path, session)));
    if let Some(Added::Written(tests)) = catalogue::add_tests(&entry, &path, session)? {
        output.data(&format!("wrote {}\n", catalogue::shown(&tests, session)));
    }
    output.talk(&format!("run it with `{}`\n", catalogue::run(&entry, &path, session)));
    Ok(0)
}
