//! Whether judges were written to since the run began, told from their times as a check is about to begin. A judge that says yes and
//! puts itself back while it runs is the same in both trees that are compared at the end, so the tree that such a check finds is
//! looked at before; where no judge was written to, nothing has to be.

use std::time::Duration;

use super::committed_judges::CommittedJudges;
use super::followed_action::FollowedAction;
use super::ignored;
use super::measure;
use super::world::World;
use crate::base::gitpath;
use crate::engine::request::{ActionRequest, Input};
use crate::git::in_run::GitCalls;
use crate::git::tree_list;

/// The longest time for listing the files of a commit.
const LIMIT: Duration = Duration::from_mins(1);

/// Looks at the tree that a check is about to find, unless its judges are known to stand as they stood when the run began.
pub(super) async fn look(request: &ActionRequest, world: &mut World) -> Input {
    if are_moved(request, world).await {
        Input::Looked(Box::pin(measure::look(world)).await)
    } else {
        Input::JudgesStand
    }
}

/// Tells whether a judge of a check was written to since the run began. What is not known counts.
async fn are_moved(request: &ActionRequest, world: &mut World) -> bool {
    // Nothing is known of the moments of an earlier part of the run.
    let Some(began) = world.moments.began else { return true };
    let Some(action) = FollowedAction::of(request, &world.root, &world.env) else { return true };
    let (top, of_check) = (action.top.clone(), action.followed.obeyed.clone());
    // It is asked for once more when the check begins.
    world.followed = Some(action);
    let is_later = |path: &String| ignored::changed_at(path, &top).is_some_and(|at| at >= began);
    if of_check.iter().chain(world.rules.unlisted_judges()).any(is_later) {
        return true;
    }
    if world.rules.committed_judges.is_none() {
        world.rules.committed_judges = listed(world).await;
    }
    world.rules.committed_judges.as_ref().is_none_or(|judges| judges.are_moved(&top, began))
}

async fn listed(world: &World) -> Option<CommittedJudges> {
    Some(CommittedJudges::among(committed_files(world).await?.into_iter()))
}

/// Asks git which files the commit has on which the run began.
pub(super) async fn committed_files(world: &World) -> Option<Vec<String>> {
    let commit = &world.rules.start()?.ids.commit;
    let mut git = GitCalls::new(world.own_env.clone(), world.cancel.clone(), LIMIT);
    let printed = git.run(&world.root, &tree_list::names(commit)).await.ok()?;
    Some(printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(gitpath::to_text).collect())
}
