//! When commands of the loop ran that no agent had a hand in. What a package manager put into the checkout then, the loop has
//! installed; what came while an agent worked, or by a script that was written since one did, nobody vouches for.

use super::followed_action::FollowedAction;
use super::world::World;
use crate::base::text::after_last;
use crate::engine::request::ActionRequest;
use crate::files::file_time::FileTime;
use crate::host;

/// Programs of agents that are no hosts.
const OTHER_AGENTS: [&str; 8] =
    ["aider", "amp", "claude-code", "copilot", "cursor-agent", "goose", "opencode", "openhands"];

impl World {
    /// Remembers that the run begins.
    pub(super) fn begin(&mut self) {
        self.moments.began = self.now_of_files();
    }

    /// Remembers that an agent works from now on.
    pub(super) fn begin_agent(&mut self) {
        self.doubt();
        if !self.moments.has_agent() {
            let now = self.now_of_files();
            self.moments.begin_agent(now);
        }
    }

    /// Looks at a command that is about to run; tells whether what it installs is installed by the loop.
    pub(super) fn begin_command(&mut self, request: &ActionRequest) -> bool {
        // The journal was written last when it was told of the action.
        self.moments.last_action = self.journal.changed();
        let is_said = agents().any(|agent| request.text.contains(agent));
        // What was followed before it is so no longer when it has run.
        let known = self.followed.take().filter(|known| known.is_of(request));
        if self.moments.first_doubt.is_none() && !is_said {
            return false;
        }
        let Some(FollowedAction { top, followed, .. }) =
            known.or_else(|| FollowedAction::of(request, &self.root, &self.env))
        else {
            return false;
        };
        let is_agent = |program: &String| agents().any(|agent| after_last(program, &['/']) == agent);
        if followed.called.iter().filter_map(|words| words.first()).any(is_agent) {
            self.begin_agent();
            return false;
        }
        let inside = |path: &&String| !path.starts_with('/');
        self.moments.first_doubt.is_some()
            && !followed.obeyed.iter().filter(inside).any(|path| self.moments.may_be_of_agent(path, &top))
    }

    /// Remembers when such a command ran.
    pub(super) fn end_command(&mut self) {
        if let Some((began, ended)) = self.moments.last_action.zip(self.now_of_files()) {
            self.moments.add_command(began, ended);
        }
    }

    /// Remembers that a check has looked, or an agent is about to work, if it is the first time.
    pub(super) fn doubt(&mut self) {
        if self.moments.first_doubt.is_none() {
            self.moments.first_doubt = self.now_of_files();
        }
    }

    fn now_of_files(&self) -> Option<FileTime> {
        FileTime::now_in(self.files.directory()).ok().or_else(|| self.journal.changed())
    }
}

fn agents() -> impl Iterator<Item = &'static str> {
    host::names().chain(OTHER_AGENTS)
}
