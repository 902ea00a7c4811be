//! Whether files were written to while a check was made, beside something that an action had left running: a process can put a judge
//! that says yes, or other work, in the place of what is there, and put that back before anybody looks. The content is what it was
//! then, and the time at which a file changed is not, for no program can set it.
//!
//! A check may write files itself, and does so each time. What it wrote with nothing beside it is known for a loop that leaves
//! processes running on purpose, and counts for nothing there. What any other loop has left is ended before its check is made once more,
//! so that nothing has to be known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::followed_action::FollowedAction;
use super::ignored;
use super::moved_judges::committed_files;
use super::world::World;
use crate::base::own::is_own;
use crate::engine::request::{ActionRequest, CheckPurpose};
use crate::files::file_time::FileTime;
use crate::git::in_run::GitCalls;
use crate::judges::compare::is_by_name;

/// The longest time for listing files that git does not track.
const LIMIT: Duration = Duration::from_mins(1);

/// Files as they were when a check began.
pub(super) struct WatchedCheck {
    purpose: CheckPurpose,
    text: String,
    top: PathBuf,
    /// When each changed last; nothing where none was there.
    files: BTreeMap<String, Option<FileTime>>,
    /// Whether something is there that may write to them and is not the check.
    is_beside: bool,
}

/// Looks at the files that a check may be judged by, where something else could write to them while it is made.
pub(super) async fn begin(
    purpose: Option<CheckPurpose>,
    request: &ActionRequest,
    world: &mut World,
) -> Option<WatchedCheck> {
    let purpose = purpose?;
    let instance = world.files.instance().to_owned();
    if purpose == CheckPurpose::ClosingPass && world.beside_checks.is_doubted {
        world.leftovers.end(&world.guard, &instance);
    }
    let is_beside = world.leftovers.are_any(&world.guard, &instance);
    if !is_beside && !world.leftovers.stays {
        return None;
    }
    let known = world.followed.take().filter(|known| known.is_of(request));
    let action = known.or_else(|| FollowedAction::of(request, &world.root, &world.env))?;
    let top = action.top.clone();
    let committed: BTreeSet<String> = committed_files(world).await?.into_iter().collect();
    let mut git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let untracked = ignored::untracked(&mut git, &world.root).await.unwrap_or_default();
    let mut paths: BTreeSet<String> = ignored::by_name(&untracked, &top);
    let unlisted: BTreeSet<&String> = world.rules.unlisted_judges().collect();
    // What was not there when the run began is made by the check, or is asked for when it ends.
    let was_there = |path: &&String| committed.contains(*path) || unlisted.contains(path);
    paths.extend(action.followed.obeyed.iter().filter(was_there).cloned());
    paths.extend(unlisted.into_iter().cloned());
    // With other work in its place, a check says nothing of what is delivered. Of what stays on purpose, the closing pass cannot be
    // rid, and asks for the judges alone.
    let is_watched = |path: &&String| purpose == CheckPurpose::State || is_by_name(path);
    paths.extend(committed.iter().filter(is_watched).cloned());
    // It is asked for once more when the action begins.
    world.followed = Some(action);
    let at = |path: String| {
        let changed = ignored::changed_at(&path, &top);
        (path, changed)
    };
    let files = paths.into_iter().filter(|path| !is_own(path.as_bytes())).map(at).collect();
    Some(WatchedCheck { purpose, text: request.text.clone(), top, files, is_beside })
}

/// Looks at them once more when the check has ended, and says of a check of the loop why nobody knows what it has found.
pub(super) fn end(watched: WatchedCheck, world: &mut World) -> Option<String> {
    let WatchedCheck { purpose, text, top, files, is_beside } = watched;
    let is_written = |(path, before): (String, Option<FileTime>)| {
        (ignored::changed_at(&path, &top) != before).then_some(path)
    };
    let mut written: BTreeSet<String> = files.into_iter().filter_map(is_written).collect();
    let known = &mut world.beside_checks;
    if !is_beside {
        known.own.entry(text).or_default().append(&mut written);
        return None;
    }
    let own = known.own.get(&text);
    let path = written.into_iter().find(|path| own.is_none_or(|own| !own.contains(path)))?;
    match purpose {
        CheckPurpose::State => {
            known.is_doubted = true;
            Some(format!(
                "`{path}` was written to while the check was made, beside a process that an action had left running"
            ))
        }
        CheckPurpose::ClosingPass => {
            known.written.get_or_insert(path);
            None
        }
    }
}
