//! A working tree in memory: what mocks write is seen by everything that looks at a tree, and by nothing else.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::file_mode::FileMode;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::relative::{PathError, RelativePath};
use crate::base::sum::Sum;
use crate::base::text::first_line;
use crate::engine::changes::{
    ChangeKind, ChangedFile, ChangedSince, Changes, KnownStart, LineCount, MadeCommit, Measured, TreeChanges,
    TreeIds, TreePlace,
};
use crate::engine::request::{AsideRequest, JudgingRequest, MeasureRequest};
use crate::engine::verification::MOST_NAMED;
use crate::evaluate::survey::Survey;
use crate::judges::compare::{CheckCommand, TreeComparison, look};
use crate::judges::found_judges::JudgesFound;
use crate::judges::tree::FileAt;

/// Files by their paths.
type Files = BTreeMap<String, FileAt>;

/// A working tree with a commit under it.
#[derive(Clone, Debug)]
pub struct VirtualTree {
    files: Files,
    /// The files of ll-loop itself, such as those of the run: they are never work.
    own: Files,
    committed: Files,
    commit: ObjectId,
    commits: Vec<MadeCommit>,
    /// Every tree that somebody has looked at, by its id.
    seen: BTreeMap<ObjectId, Files>,
    /// What the closing pass put aside.
    aside: Option<Files>,
}

/// What an action does to the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeEffects {
    /// Files that are written, with their content.
    pub writes: Vec<(String, String)>,
    /// Files that are deleted.
    pub deletes: Vec<String>,
    /// The message of the commit that is made of everything.
    pub commits: Option<String>,
}

/// Tells whether a path leads out of the repository, or into what git keeps there.
pub(super) fn leads_out(path: &str) -> bool {
    matches!(RelativePath::parse(path), Err(PathError::Absolute | PathError::Upwards | PathError::Git))
}

/// Says so.
pub(super) fn outside(path: &str) -> String {
    format!("`{path}` is not a path in the repository")
}

fn file(text: &str) -> FileAt {
    FileAt { mode: FileMode::File, bytes: text.as_bytes().to_vec(), is_ignored: false }
}

// Not the ids of git: they are only compared with each other. No path holds a NUL, so no two trees come to one text.
fn id_of(what: &str, files: &Files) -> ObjectId {
    let all: Vec<u8> = files
        .iter()
        .flat_map(|(path, file)| {
            [path.as_bytes(), b"\0", Sum::of(&file.bytes).to_string().as_bytes()].concat()
        })
        .collect();
    let text = Sum::of(&[what.as_bytes(), b"\0", &all].concat()).to_string();
    ObjectId::parse(&text).expect("a digest has 64 hexadecimal digits")
}

impl VirtualTree {
    /// Makes the tree of a commit with these files.
    pub fn of<'f>(files: impl IntoIterator<Item = (&'f String, &'f String)>) -> Self {
        let files = files.into_iter().map(|(path, text)| (path.clone(), file(text)));
        let (own, files): (Files, Files) = files.partition(|(path, _)| is_own(path.as_bytes()));
        let commit = id_of("commit", &files);
        let committed = files.clone();
        Self { files, own, committed, commit, commits: Vec::new(), seen: BTreeMap::new(), aside: None }
    }

    /// Returns its files as an action would write them.
    pub fn given(&self) -> TreeEffects {
        let text = |file: &FileAt| String::from_utf8_lossy(&file.bytes).into_owned();
        let all = self.files.iter().chain(&self.own);
        let writes = all.map(|(path, file)| (path.clone(), text(file))).collect();
        TreeEffects { writes, ..TreeEffects::default() }
    }

    /// Does what an action does.
    pub fn take(&mut self, effects: &TreeEffects) {
        for (path, text) in &effects.writes {
            self.part_with(path).insert(path.clone(), file(text));
        }
        for path in &effects.deletes {
            self.part_with(path).remove(path);
        }
        if let Some(message) = &effects.commits {
            self.committed = self.files.clone();
            // The number tells apart commits of the same files with the same message, such as one that undoes another.
            self.commit = id_of(&format!("commit {} {message}", self.commits.len() + 1), &self.files);
            let subject = first_line(message).to_owned();
            self.commits.push(MadeCommit { sha: self.commit.clone(), subject });
        }
    }

    fn part_with(&mut self, path: &str) -> &mut Files {
        if is_own(path.as_bytes()) { &mut self.own } else { &mut self.files }
    }

    /// Returns the content of a file.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        // What reads a file may name it in either form.
        let path = path.strip_prefix("./").unwrap_or(path);
        let found = self.files.get(path).or_else(|| self.own.get(path));
        found.map(|file| file.bytes.clone())
    }

    /// Looks at the tree, and remembers what was seen.
    pub fn look(&mut self) -> TreeIds {
        let tree = id_of("tree", &self.files);
        self.seen.entry(tree.clone()).or_insert_with(|| self.files.clone());
        // Mocks stage nothing, so the index is always what was committed.
        TreeIds { commit: self.commit.clone(), index: Some(id_of("tree", &self.committed)), tree, rest: None }
    }

    /// Looks at it as a run does that begins here.
    pub fn start(&mut self) -> KnownStart {
        let place = Some(TreePlace { inside: String::new(), left_out: None, untold: None });
        KnownStart {
            ids: self.look(),
            stands_for: None,
            entries: Vec::new(),
            before: Vec::new(),
            unseen: Vec::new(),
            ignored: Vec::new(),
            place,
            known_index: None,
        }
    }

    /// Looks at the part below these paths; at everything when there are none.
    pub fn survey(&self, scope: &[String]) -> Survey {
        let is_within = |path: &str| {
            scope.is_empty()
                || scope.iter().any(|scope| {
                    let scope = scope.trim_start_matches("./").trim_end_matches('/');
                    let below = path.strip_prefix(scope);
                    matches!(scope, "" | ".")
                        || below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
        };
        let differs = |path: &&String| self.files.get(*path) != self.committed.get(*path);
        let paths: BTreeSet<&String> = self.files.keys().chain(self.committed.keys()).collect();
        let changed = paths.into_iter().filter(differs).filter(|path| is_within(path));
        let changed =
            // What is gone differs from what was emptied.
            changed.map(|path| (path.clone(), self.files.get(path).cloned().unwrap_or_else(|| file("\0"))));
        let digest = id_of("survey", &changed.collect()).to_string();
        Survey { head: Some(self.commit.to_string()), digest }
    }

    /// Compares the tree with those before it.
    pub fn measure(&mut self, request: &MeasureRequest) -> Measured {
        let end = self.look();
        let start = self.seen.get(&request.start.ids.tree).cloned().unwrap_or_default();
        let changes = self.changes(&request.start.ids, &start, end);
        let since = request.verdicts.iter().filter_map(|tree| self.since(tree)).collect();
        let judges = request.judging.as_ref().map(|judging| self.judged(judging, &start, &changes));
        Measured { changes: Changes::Known(Box::new(changes)), since, judges }
    }

    /// Returns the paths of the files that are not as they were when the run began on this tree.
    fn changes(&self, start: &TreeIds, before: &Files, end: TreeIds) -> TreeChanges {
        let files = self.between(before);
        let tracked = |file: &&ChangedFile| file.tracked;
        let as_committed = start.commit == end.commit
            && files.iter().filter(tracked).all(|file| {
                self.files.get(&file.path).map(|file| &file.bytes)
                    == self.committed.get(&file.path).map(|file| &file.bytes)
            });
        let (mut tracked_files, untracked): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.tracked);
        tracked_files.extend(untracked);
        TreeChanges {
            start: start.clone(),
            end,
            // Its length is not read: outputs and the summary ask only whether there is a patch.
            patch: (!tracked_files.is_empty()).then_some(1),
            files: tracked_files,
            more: 0,
            commits: self.commits.clone(),
            before: Vec::new(),
            as_committed,
            no_patch: None,
            unseen: Vec::new(),
        }
    }

    fn between(&self, before: &Files) -> Vec<ChangedFile> {
        let paths: BTreeSet<&String> = before.keys().chain(self.files.keys()).collect();
        let differs = |path: &&String| before.get(*path) != self.files.get(*path);
        paths.into_iter().filter(differs).map(|path| self.changed(path, before.get(path))).collect()
    }

    fn changed(&self, path: &str, before: Option<&FileAt>) -> ChangedFile {
        let after = self.files.get(path);
        let is_committed = self.committed.contains_key(path);
        let kind = match (before, after) {
            (None, _) if is_committed => ChangeKind::Added,
            (None, _) => ChangeKind::Untracked,
            (Some(_), None) => ChangeKind::Deleted,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        let count = |file: Option<&FileAt>| {
            file.map_or(0, |file| String::from_utf8_lossy(&file.bytes).lines().count() as u64)
        };
        ChangedFile {
            path: path.to_owned(),
            from: None,
            kind,
            size: after.map(|file| file.bytes.len() as u64),
            tracked: before.is_some() || is_committed,
            lines: Some(LineCount { added: count(after), removed: count(before) }),
            run: None,
            not_in_patch: None,
        }
    }

    fn since(&self, tree: &ObjectId) -> Option<ChangedSince> {
        let before = self.seen.get(tree)?;
        let mut files: Vec<String> = self.between(before).into_iter().map(|file| file.path).collect();
        let more = files.len().saturating_sub(MOST_NAMED) as u64;
        files.truncate(MOST_NAMED);
        Some(ChangedSince { tree: tree.clone(), files, more })
    }

    fn judged(&self, request: &JudgingRequest, start: &Files, changes: &TreeChanges) -> JudgesFound {
        if changes.count() == 0 {
            return JudgesFound::unchanged();
        }
        let commands: Vec<CheckCommand<'_>> = request
            .commands
            .iter()
            .map(|command| CheckCommand {
                state: command.state.as_str(),
                text: &command.text,
                directory: command
                    .cwd
                    .as_deref()
                    .unwrap_or_default()
                    .trim_start_matches("./")
                    .trim_end_matches('/'),
                search: &[],
                libraries: &[],
                variables: &[],
                shell: &command.shell,
            })
            .collect();
        let paths: Vec<String> = changes.files.iter().map(|file| file.path.clone()).collect();
        look(&TreeComparison {
            declared: &request.declared,
            commands: &commands,
            loop_files: &request.loop_files,
            changed: &paths,
            start,
            end: &self.files,
        })
    }

    /// Puts files as they were when the run began, and others out of the way.
    pub fn set_aside(&mut self, request: &AsideRequest) {
        let start = self.seen.get(&request.start.tree).cloned().unwrap_or_default();
        // A pass may set aside twice: the first time the tree is still as the run has left it.
        self.aside.get_or_insert_with(|| self.files.clone());
        for path in request.put_back.iter().chain(&request.hide) {
            // A file that was not there at the start is put back by being removed, as one is that is hidden.
            match start.get(path).filter(|_| request.put_back.contains(path)) {
                Some(file) => drop(self.files.insert(path.clone(), file.clone())),
                None => drop(self.files.remove(path)),
            }
        }
        for part in &request.in_part {
            if let Some(file) = self.files.get_mut(&part.path) {
                file.bytes = part.text.clone().into_bytes();
            }
        }
    }

    /// Makes the tree what it was before the closing pass.
    pub fn restore(&mut self) {
        if let Some(files) = self.aside.take() {
            self.files = files;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> VirtualTree {
        let owned: Vec<(String, String)> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        VirtualTree::of(owned.iter().map(|(path, text)| (path, text)))
    }

    fn writes(path: &str, text: &str) -> TreeEffects {
        TreeEffects { writes: vec![(path.to_owned(), text.to_owned())], ..TreeEffects::default() }
    }

    fn measured(tree: &mut VirtualTree, start: &KnownStart) -> TreeChanges {
        let request =
            MeasureRequest { start: start.clone(), verdicts: Vec::new(), judging: None, is_late: false };
        tree.measure(&request).changes.known().unwrap().clone()
    }

    #[test]
    fn what_is_written_is_a_change_until_it_is_undone() {
        let mut tree = tree(&[("a", "1")]);
        let start = tree.start();
        tree.take(&writes("a", "2"));
        tree.take(&writes("new", "x"));
        let changes = measured(&mut tree, &start);
        let kinds: Vec<_> = changes.files.iter().map(|file| (file.path.as_str(), file.kind)).collect();
        assert_eq!(kinds, [("a", ChangeKind::Modified), ("new", ChangeKind::Untracked)]);
        assert!(changes.are_uncommitted());
        tree.take(&writes("a", "1"));
        tree.take(&TreeEffects { deletes: vec!["new".to_owned()], ..TreeEffects::default() });
        assert!(measured(&mut tree, &start).is_nothing());
    }

    #[test]
    fn what_a_run_keeps_for_itself_is_no_change() {
        let mut tree = tree(&[(".loop/state.json", "{}")]);
        let start = tree.start();
        let history = ".loops/.running/x.dir/history";
        tree.take(&writes(history, "3"));
        tree.take(&writes(".loop/state.json", "[]"));
        assert!(measured(&mut tree, &start).is_nothing());
        assert_eq!(tree.read(history).as_deref(), Some(&b"3"[..]));
        assert_eq!(tree.read("./.loop/state.json").as_deref(), Some(&b"[]"[..]));
    }

    #[test]
    fn a_commit_moves_the_head() {
        let mut tree = tree(&[("a", "1")]);
        let start = tree.start();
        tree.take(&TreeEffects { commits: Some("Mend a\n\nwhy".to_owned()), ..writes("a", "2") });
        let changes = measured(&mut tree, &start);
        assert!(changes.head_moved());
        assert_eq!(changes.commits[0].subject, "Mend a");
    }

    #[test]
    fn a_survey_sees_its_scope_alone() {
        let mut tree = tree(&[("src/a", "1"), ("srcs/b", "1")]);
        let within = |tree: &VirtualTree, scope: &str| tree.survey(&[scope.to_owned()]).digest;
        let before = (within(&tree, "src"), within(&tree, "."));
        tree.take(&writes("srcs/b", "2"));
        assert_eq!(within(&tree, "src/"), before.0);
        assert_ne!(within(&tree, "."), before.1);
    }
}
