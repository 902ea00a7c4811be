//! Whether a loop may be run in this job at all. A loop file is code, and some events let strangers choose what is
//! checked out in a job that has the secrets of the repository. In doubt it is not run.

use std::path::Path;

use crate::ci::github::event::{Event, short};
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::definition::load::{self, DIRECTORY};

use super::git::{self, changed};
use super::prepare::Prepared;

const ADVICE: &str = "leave `ref` and `repository` out of actions/checkout, so that the repository's own branch is \
    run; or, when you know what is run, agree with `--allow-untrusted` (input `allow-untrusted: true`)";

/// Refuses a loop that may come from a stranger. `cwd` is where the names of its files are read from.
pub(super) fn check(allowed: bool, env: &Env, prepared: &Prepared, cwd: &Path) -> Result<(), CliError> {
    let event = Event::read(&env.lookup());
    if allowed || !event.is_open_to_outsiders() {
        return Ok(());
    }
    doubt(&event, env, prepared, cwd).map_or(Ok(()), |why| {
        let file = &prepared.located.shown;
        let message = format!(
            "{file} is not run: the event `{}` is open to people without write access, and {why}",
            event.name
        );
        Err(CliError::invalid(message).help(ADVICE))
    })
}

fn doubt(event: &Event, env: &Env, prepared: &Prepared, cwd: &Path) -> Option<String> {
    let root = &prepared.located.root;
    let git = git::at(root, env);
    let head = match git.line(&["rev-parse", "--verify", "HEAD^{commit}"]) {
        Ok(head) => head,
        Err(why) => return Some(format!("what is checked out in {} cannot be told: {why}", root.display())),
    };
    if let Some(doubt) = event.doubt(&head) {
        return Some(doubt);
    }
    // The commit is trusted; a later step may have put other files in the place of its own.
    let of_loop = prepared.loaded.sources.iter().map(|source| cwd.join(source.name()));
    let of_others = prepared.library.texts().map(|(file, _)| root.join(file));
    let files: Vec<String> =
        of_loop.chain(of_others).map(|file| file.to_string_lossy().into_owned()).collect();
    let tracked = ["ls-files", "--error-unmatch", "--"].into_iter().chain(files.iter().map(String::as_str));
    if let Err(why) = git.line(&tracked.collect::<Vec<_>>()) {
        return Some(format!("the loop is not all of the commit {}: {why}", short(&head)));
    }
    let directories = load::ancestors(root).into_iter().map(|above| above.join(DIRECTORY));
    let directories: Vec<String> = directories
        .filter(|directory| directory.is_dir())
        .map(|directory| directory.to_string_lossy().into_owned())
        .collect();
    let status =
        ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignored=matching", "--"];
    let asked = status.into_iter().chain(directories.iter().chain(&files).map(String::as_str));
    match git.line(&asked.collect::<Vec<_>>()) {
        Err(why) => Some(format!("what is changed in {} cannot be told: {why}", root.display())),
        Ok(changes) => changed(&changes)
            .next()
            .map(|file| format!("{file} is not what it is in the commit {}", short(&head))),
    }
}
