//! An action that was followed through what it runs, once for all who ask before it begins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::judging::{self, JudgingPlace, SearchVariables};
use crate::engine::request::ActionRequest;
use crate::files::{gitdir, links};
use crate::judges::compare::FollowedChecks;

/// An action that was followed.
pub struct FollowedAction {
    request: ActionRequest,
    /// The top of the working tree.
    pub(super) top: PathBuf,
    /// What it runs and obeys.
    pub(super) followed: FollowedChecks,
}

impl FollowedAction {
    /// Follows an action of a run in this directory, where that lies in a working tree. `env` is what actions inherit.
    pub(super) fn of(request: &ActionRequest, root: &Path, env: &BTreeMap<String, String>) -> Option<Self> {
        let around = gitdir::around(root)?;
        let (top, root) = (links::real(&around.root), links::real(root));
        let inside = root.strip_prefix(&top).ok()?.to_str()?;
        let place = JudgingPlace { top: &top, inside, env: SearchVariables::of(env) };
        let followed = judging::followed_action(request, &place);
        Some(Self { request: request.clone(), top, followed })
    }

    /// Tells whether an action is the same, whatever time it has left.
    pub(super) fn is_of(&self, request: &ActionRequest) -> bool {
        let (one, other) = (&self.request, request);
        one.text == other.text
            && one.shell == other.shell
            && one.setting.cwd == other.setting.cwd
            && one.setting.env == other.setting.env
    }
}
