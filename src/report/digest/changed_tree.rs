//! Says what a run did to the working tree, and whether its success is one of the commit that it is reported at.

use super::Digest;
use super::closing_rows::ClosingRow;
use crate::base::text::{one_line, plural};
use crate::engine::changes::{ChangedFile, Changes, StartTree, TreeChanges};
use crate::engine::outcome::Outcome;

/// How many files the last lines of a log name.
const NAMED: usize = 5;

impl Digest {
    /// Returns what the run did to the working tree; nothing before its end, and where it is not known.
    pub fn changes(&self) -> Option<&TreeChanges> {
        self.end()?.changes.as_ref()?.known()
    }

    /// Returns why it is unknown what the run did to the working tree, if it is.
    pub fn changes_unknown(&self) -> Option<&str> {
        match self.end()?.changes.as_ref()? {
            Changes::Known(_) => None,
            Changes::Unknown { unknown } => Some(unknown),
        }
    }

    /// Returns the commit at which the run began, as its journal says it.
    pub fn commit(&self) -> Option<&str> {
        let start = self.start()?;
        match &start.tree {
            Some(StartTree::Known(tree)) => Some(tree.ids.commit.as_str()),
            Some(StartTree::Unknown { .. }) | None => start.commit.as_deref(),
        }
    }

    /// Says what keeps the success of this run from being one of the commit that its checkout was at.
    pub fn caveat(&self) -> Option<Caveat> {
        let end = self.end().filter(|end| end.outcome == Outcome::Success)?;
        let changes = match end.changes.as_ref()? {
            Changes::Unknown { unknown } => return Some(Caveat::Unknown(one_line(unknown, 200))),
            Changes::Known(changes) => changes,
        };
        let others = changes.files.iter().find_map(|file| file.run.as_deref());
        // What failed at first may have been mended by a file that is in no commit. What a check that passed at once leaves
        // beside the tracked files mended nothing.
        let is_mended_beside = !self.mends().fixed().is_empty() && changes.leave_untracked();
        // What is certain comes before what is not known, and what the run did itself before what others did.
        if changes.are_uncommitted() || is_mended_beside {
            Some(Caveat::Changes(changes.words()))
        } else if !changes.before.is_empty() {
            let count = changes.before.len() as u64;
            Some(Caveat::Before(plural(count, "file")))
        } else if let Some(run) = others {
            Some(Caveat::Another(one_line(run, 100)))
        } else {
            changes.unseen.first().map(|unseen| Caveat::Unknown(one_line(unseen, 200)))
        }
    }

    /// The same for a report at a commit, which may be another one.
    pub fn caveat_at(&self, sha: &str) -> Option<Caveat> {
        let elsewhere = || {
            let Some(StartTree::Known(start)) = &self.start()?.tree else { return None };
            let is_success = self.end()?.outcome == Outcome::Success;
            let commit = start.ids.commit.as_str();
            let is_there =
                // A job of a pull request checks out a merge, which stands for the head that it merges.
                commit == sha || start.stands_for.as_ref().is_some_and(|head| head.as_str() == sha);
            (is_success && !is_there).then(|| Caveat::Elsewhere(commit.to_owned()))
        };
        elsewhere().or_else(|| self.caveat())
    }
}

/// What keeps a success from being one of the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caveat {
    /// The run changed these, and the commit does not have the changes.
    Changes(String),
    /// These differed from the commit when the run began.
    Before(String),
    /// Another run changed files meanwhile.
    Another(String),
    /// Another commit was checked out.
    Elsewhere(String),
    /// What the run changed is unknown.
    Unknown(String),
}

impl Caveat {
    /// Returns what stands behind the word `success`.
    pub fn words(&self) -> String {
        match self {
            Self::Changes(what) => format!("with changes to {what}, not part of this commit"),
            Self::Before(what) => format!("with {what} that differed from this commit from the beginning"),
            Self::Another(run) => format!("while run {run} changed files beside it"),
            Self::Elsewhere(commit) => {
                format!("of commit {}, not of this one", commit.get(..12).unwrap_or(commit))
            }
            Self::Unknown(why) => format!("of a tree that is not known: {why}"),
        }
    }

    /// Tells whether it is known that the commit alone was not what succeeded.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Changes(_) | Self::Before(_) | Self::Another(_) => true,
            Self::Elsewhere(_) | Self::Unknown(_) => false,
        }
    }
}

/// Describes a changed file: `modified src/a.rs (+3 −1)`.
pub fn line(file: &ChangedFile) -> String {
    let path = one_line(&file.path, 200);
    let from = file.from.as_ref().map_or_else(String::new, |from| format!(" from {}", one_line(from, 200)));
    let lines =
        file.lines.map_or_else(String::new, |lines| format!(" (+{} −{})", lines.added, lines.removed));
    let run = file.run.as_ref().map_or_else(String::new, |run| format!(" by run {}", one_line(run, 100)));
    format!("{} {path}{from}{lines}{run}", file.kind.word())
}

/// Returns the last lines of a log about what its green means and what the run changed.
pub fn closing(digest: &Digest) -> Vec<String> {
    let mut lines: Vec<String> = digest.closing_rows().iter().map(ClosingRow::words).collect();
    lines.extend(digest.green());
    let Some(changes) = digest.changes().filter(|changes| !changes.is_nothing()) else { return lines };
    if !changes.files.is_empty() {
        let named: Vec<String> = changes.files.iter().take(NAMED).map(line).collect();
        let more = changes.count().saturating_sub(named.len() as u64);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        lines.push(format!("changed {}: {}{more}", plural(changes.count(), "file"), named.join(", ")));
    }
    if changes.head_moved() {
        let made = match changes.commits.len() as u64 {
            0 => "no new commits".to_owned(),
            count => plural(count, "new commit"),
        };
        let short = |id: &str| id.get(..12).unwrap_or(id).to_owned();
        let (from, to) = (short(changes.start.commit.as_str()), short(changes.end.commit.as_str()));
        lines.push(format!("HEAD went from {from} to {to}: {made}"));
    }
    if let Some(why) = &changes.no_patch {
        lines.push(format!("no `changes.patch`: {}", one_line(why, 200)));
    }
    let left_out = changes.files.iter().filter(|file| file.not_in_patch.is_some());
    lines.extend(left_out.take(NAMED).map(|file| {
        let why = file.not_in_patch.as_deref().unwrap_or("");
        format!("not in `changes.patch`: {}: {why}", one_line(&file.path, 200))
    }));
    lines
}
