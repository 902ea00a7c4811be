//! What a run did when, by the clock of its files, and what that says of files that came since.

use std::path::Path;

use super::ignored;
use crate::files::file_time::FileTime;

/// When the run did what its judges are asked with, in this process, by the clock of its files.
#[derive(Clone, Debug, Default)]
pub struct RunMoments {
    /// The run began; none where an earlier process began it.
    pub began: Option<FileTime>,
    /// The last action began.
    pub last_action: Option<FileTime>,
    /// A check had looked for the first time, or an agent was about to work: what is there by then was not put there to
    /// change what the check says.
    pub first_doubt: Option<FileTime>,
    /// An agent was about to work for the first time.
    first_agent: Option<FileTime>,
    /// When commands of the loop began and ended since the first doubt, but for those that an agent had a hand in.
    commands: Vec<(FileTime, FileTime)>,
}

impl RunMoments {
    /// Tells whether an agent has worked.
    pub(super) fn has_agent(&self) -> bool {
        self.first_agent.is_some()
    }

    /// Remembers when an agent was about to work.
    pub(super) fn begin_agent(&mut self, now: Option<FileTime>) {
        self.first_agent = self.first_agent.or(now);
    }

    /// Remembers when a command of the loop ran.
    pub(super) fn add_command(&mut self, began: FileTime, ended: FileTime) {
        self.commands.push((began, ended));
    }

    /// Tells whether a file is as it was before a check had looked or an agent had worked, or as a command of the loop has left it.
    pub(super) fn vouch_for(&self, file: &Path) -> bool {
        // Without a check that has looked, there is nothing that a fix could have known to please.
        let Some(doubt) = self.first_doubt else { return true };
        let Ok(metadata) = file.symlink_metadata() else { return false };
        let is_good = |at: FileTime| {
            // In the moment at which the command began, it may have been what came before.
            at < doubt || self.commands.iter().any(|(began, ended)| *began < at && at <= *ended)
        };
        // A command that changes the modes of files makes none of them its own.
        is_good(FileTime::of(&metadata)) && FileTime::of_birth(&metadata).is_none_or(is_good)
    }

    /// Tells whether a file may have been written by an agent.
    pub(super) fn may_be_of_agent(&self, path: &str, top: &Path) -> bool {
        let changed = ignored::changed_at(path, top);
        let is_later = changed.zip(self.first_agent).is_some_and(|(changed, agent)| changed >= agent);
        is_later && !self.vouch_for(&ignored::place(top, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::file_time::next_moment;

    fn written(directory: &Path, name: &str) -> std::path::PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, "").unwrap();
        path
    }

    #[test]
    fn what_came_while_an_agent_worked_is_vouched_for_by_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut moments = RunMoments::default();
        let of_agent = written(directory, "anything");
        assert!(moments.vouch_for(&of_agent));
        let before = written(directory, "before");
        moments.first_doubt = Some(next_moment(directory));
        moments.first_agent = moments.first_doubt;
        next_moment(directory);
        let of_agent = written(directory, "agent");
        let began = next_moment(directory);
        next_moment(directory);
        let of_command = written(directory, "command");
        moments.commands.push((began, next_moment(directory)));
        next_moment(directory);
        let later = written(directory, "later");
        for (path, is_vouched) in [(&before, true), (&of_agent, false), (&of_command, true), (&later, false)]
        {
            assert_eq!(moments.vouch_for(path), is_vouched, "{path:?}");
        }
        assert!(
            moments.may_be_of_agent("agent", directory) && !moments.may_be_of_agent("command", directory)
        );
        assert!(!moments.may_be_of_agent("gone", directory));
    }

    #[test]
    fn a_command_that_changes_the_mode_of_a_file_did_not_install_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let mut moments = RunMoments { first_doubt: Some(next_moment(directory)), ..RunMoments::default() };
        let path = written(directory, "fake");
        let began = next_moment(directory);
        next_moment(directory);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        moments.commands.push((began, next_moment(directory)));
        // File systems that do not say when a file was made tell only when it was changed.
        let has_birth = path.metadata().unwrap().created().is_ok();
        assert_eq!(moments.vouch_for(&path), !has_birth);
    }
}
