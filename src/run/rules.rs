//! What the work is judged by, and who works may change all the same: the loop file, and the files that the command
//! names which tests. The run goes on with the loop as it was loaded; that such a file is not what it was when the run
//! began is said in the log, and to the supervisor. It fails nothing: a new test may well need a line in the script
//! that runs the tests.

use std::collections::BTreeSet;
use std::path::Path;

use super::committed_judges::CommittedJudges;
use super::look_error::LookError;
use crate::base::text::listed;
use crate::engine::Start;
use crate::engine::changes::{EntryContent, KnownIndex, KnownStart, StartTree};
use crate::git::call::Call;
use crate::git::in_run::GitCalls;

/// How many words of a command are looked at.
const MOST_WORDS: usize = 50;

/// The files by which work is judged, and the tree in which they were as they were meant to be.
#[derive(Default)]
pub struct Rules {
    start: Option<KnownStart>,
    loop_file: String,
    /// What commands that test have named.
    named: BTreeSet<String>,
    /// Those of them that changed.
    changed: Vec<String>,
    /// The judges among the files of the commit, once they were asked for.
    pub(super) committed_judges: Option<CommittedJudges>,
}

impl Rules {
    /// Those of a run that begins, or goes on, like this.
    pub(super) fn of(start: &Start) -> Self {
        let tree = match &start.event.tree {
            Some(StartTree::Known(known)) => Some(known.as_ref().clone()),
            Some(StartTree::Unknown { .. }) | None => None,
        };
        Self { start: tree, loop_file: start.event.source.file.clone(), ..Self::default() }
    }

    /// Returns the tree on which the run began, as far as it is known.
    pub(super) fn start(&self) -> Option<&KnownStart> {
        self.start.as_ref()
    }

    /// Returns the judges that were there when the run began and that git does not track.
    pub(super) fn unlisted_judges(&self) -> impl Iterator<Item = &String> {
        let all = self.start.iter().flat_map(|start| &start.ignored);
        all.filter(|file| file.found.is_some()).map(|file| &file.path)
    }

    /// Returns the index as it was when the run began.
    pub(super) fn known_index(&self) -> Option<&KnownIndex> {
        self.start.as_ref()?.known_index.as_ref()
    }

    /// Puts another one in its place.
    pub(super) fn know_index(&mut self, index: KnownIndex) {
        if let Some(start) = &mut self.start {
            start.known_index = Some(index);
        }
    }

    /// Takes note of the files that a command names.
    pub(super) fn name(&mut self, command: &str) {
        let is_between = |c: char| c.is_whitespace() || "\"'`;|&()<>={}".contains(c);
        let words = command.split(is_between).map(|word| word.strip_prefix("./").unwrap_or(word));
        let is_path =
            // Options, absolute paths and those that lead outside name nothing of the work.
            |word: &&str| !word.is_empty() && !word.starts_with(['-', '/', '.', '$']) && !word.contains("..");
        self.named.extend(words.filter(is_path).take(MOST_WORDS).map(str::to_owned));
    }

    /// Returns what a supervisor is told in addition.
    pub(super) fn told(&self) -> Option<String> {
        (!self.changed.is_empty()).then(|| {
            format!(
                "\n\nThe work is judged by files that changed since the run began: {}. Look at what changed there, and \
                 whether the task asked for it.\n",
                listed(&self.changed, "and")
            )
        })
    }

    /// Looks which of the files changed since the run began, and returns what is to be said of those of which it was not
    /// said yet. `git` sees the working tree as it is, in an index of our own.
    pub(super) async fn look(&mut self, git: &mut GitCalls, top: &Path, root: &Path) -> Vec<String> {
        let Some(start) = &self.start else { return Vec::new() };
        // The run may be reached through a link, and git names paths from the real top.
        let (Ok(root), Ok(real_top)) = (root.canonicalize(), top.canonicalize()) else { return Vec::new() };
        let Ok(prefix) = root.strip_prefix(&real_top) else { return Vec::new() };
        let below = |file: &String| prefix.join(file).to_string_lossy().into_owned();
        let files = std::iter::once(&self.loop_file).chain(&self.named);
        let files = files.filter(|file| !file.is_empty() && Path::new(file).is_relative());
        let files: Vec<_> = files.map(below).collect();
        // A hint that cannot be had fails nothing.
        let Ok(changed) = changed(git, top, start, &files).await else { return Vec::new() };
        let loop_file = below(&self.loop_file);
        let new = changed.iter().filter(|file| !self.changed.contains(file));
        let remarks = new.map(|file| {
            let follows = if *file == loop_file {
                "; the run goes on with the loop as it was"
            } else {
                ", and tests are run by it"
            };
            format!("`{file}` is not what it was when the run began{follows}")
        });
        let remarks = remarks.collect();
        self.changed = changed;
        remarks
    }
}

/// Returns those files, by their paths from the root of the repository, that are not as they were.
async fn changed(
    git: &mut GitCalls,
    top: &Path,
    start: &KnownStart,
    files: &[String],
) -> Result<Vec<String>, LookError> {
    let now = Call::new("ls-files").with(&["-s", "-z"]).paths(files).literal();
    let now = entries(&git.run(top, &now).await?, files);
    let then = Call::new("ls-tree").with(&["-z", "--full-tree"]).id(&start.ids.commit).paths(files).literal();
    let then = entries(&git.run(top, &then).await?, files);
    let is_changed = |file: &&String| {
        let committed = then.iter().find(|entry| entry.path == **file);
        let now = now.iter().find(|entry| entry.path == **file);
        // A file that differed from the commit at the start is compared with what it was then.
        let started = start.entries.iter().find(|entry| entry.path == **file).map(|entry| &entry.content);
        match started {
            None => now.map(RulesEntry::id) != committed.map(RulesEntry::id),
            Some(EntryContent::Gone) => now.is_some(),
            Some(EntryContent::Object { mode, id }) => {
                now.map(RulesEntry::id) != Some((mode.word(), id.as_str()))
            }
            // Too large or a repository: its content was never read.
            Some(EntryContent::Digest(_)) => false,
        }
    };
    Ok(files.iter().filter(is_changed).cloned().collect())
}

/// A file of a tree or of an index.
struct RulesEntry {
    mode: String,
    id: String,
    path: String,
}

impl RulesEntry {
    fn id(&self) -> (&str, &str) {
        (&self.mode, &self.id)
    }
}

/// Reads `MODE ID STAGE`, a tab and the path, or `MODE TYPE ID`, a tab and the path, with a NUL behind each.
fn entries(listed: &[u8], files: &[String]) -> Vec<RulesEntry> {
    let listed = String::from_utf8_lossy(listed);
    let read = |line: &str| {
        let (facts, path) = line.split_once('\t')?;
        let words: Vec<_> = facts.split(' ').collect();
        let (mode, id) = match words[..] {
            [_, "tree" | "commit", _] => return None,
            [mode, "blob", id] | [mode, id, _] => (mode, id),
            _ => return None,
        };
        let (mode, id, path) = (mode.to_owned(), id.to_owned(), path.to_owned());
        files.contains(&path).then_some(RulesEntry { mode, id, path })
    };
    listed.split('\0').filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_names_are_found_among_its_words() {
        let mut rules = Rules::default();
        rules.name(
            "set -e; FOO=bar ./check.sh --fast 'tests/run all' && bash tests/more.sh | tee /tmp/x ../y $Z",
        );
        let named: Vec<_> = rules.named.iter().map(String::as_str).collect();
        assert_eq!(
            named,
            ["FOO", "all", "bar", "bash", "check.sh", "set", "tee", "tests/more.sh", "tests/run"]
        );
        assert_eq!(rules.told(), None);
    }
}
