//! Copies what a run has made into the working tree, before that is looked at for the last time: what is copied is a
//! change like any other. It never fails the run.

use std::io;
use std::path::{Path, PathBuf};

use super::world::World;
use crate::base::explanation::Explanation;
use crate::base::relative::RelativePath;
use crate::engine::Engine;
use crate::engine::artifact_request::ArtifactRequest;
use crate::files::place::resolved;
use crate::files::{read, transient};

/// Copies the artifact of a run that has come to its end, if it has one, and notes what became of it.
pub(super) fn leave(engine: &Engine<'_>, world: &mut World) {
    // A sub-loop leaves nothing: what it makes is for the run around it.
    if world.path.len() > 1 {
        return;
    }
    let Some(request) = engine.artifact() else { return };
    let left = request.map_err(Explanation::from).and_then(|request| copy(&request, &world.root));
    let hidden = |text: String| world.redactor.text(&text).into_owned();
    world.artifact = Some(left.map(hidden).map_err(|why| Explanation::new(hidden(why.to_string()))));
}

/// Copies a file, and returns where it is now.
fn copy(request: &ArtifactRequest, root: &Path) -> Result<String, Explanation> {
    if request.is_template {
        return Err(Explanation::new("`artifact_mode: template` is not supported"));
    }
    let from = below(&root.join(&request.run_dir), &request.from, "the directory of the run")?;
    // Both places may be links that an action made, so all of them are followed before anything is
    // read or written.
    let to = below(root, &request.to, "the working tree")?;
    let failed =
        |error: io::Error| Explanation::new(format!("`{}` to `{}`: {error}", request.from, request.to));
    let mut source = read::open(&from).map_err(|unread| failed(unread.into()))?;
    let directory = to.parent().unwrap_or(root);
    fs_err::create_dir_all(directory).map_err(failed)?;
    // Whoever looks sees all of it or nothing.
    let mut target = transient::file_in(0o600, directory).map_err(failed)?;
    io::copy(&mut source, &mut target).map_err(failed)?;
    // Whoever may read the file in the directory of the run may read the copy.
    let readers = source.metadata().map_err(failed)?.permissions();
    target.as_file().set_permissions(readers).map_err(failed)?;
    target.persist(&to).map_err(|error| failed(error.error))?;
    Ok(request.to.clone())
}

/// Returns the place of a file that lies below a directory also when all links are followed.
fn below(directory: &Path, path: &str, what: &str) -> Result<PathBuf, Explanation> {
    let refused = |why: &str| format!("`{path}`: {why}");
    let relative =
        RelativePath::parse(path).map_err(|error| Explanation::new(refused(&error.to_string())))?;
    let place = resolved(&directory.join(relative.as_str()));
    let inside = place.strip_prefix(resolved(directory)).ok();
    match inside {
        // A hook that lies there would run with the next command of git.
        Some(inside) if !inside.components().any(|part| part.as_os_str() == ".git") => Ok(place),
        Some(_) => Err(Explanation::new(refused("a link on the way to it leads into `.git`"))),
        None => Err(Explanation::new(refused(&format!("a link on the way to it leads out of {what}")))),
    }
}
