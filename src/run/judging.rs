//! Reads the two trees of a run for the rules that tell its judges, and puts the judges of the start in their places while
//! checks are made once more.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::Path;

use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::engine::changes::{FileMode, TreeChanges, TreeIds};
use crate::engine::request::{AsideRequest, JudgingRequest};
use crate::files::aside::{self, Placed};
use crate::git::call::{Call, Git};
use crate::judges::compare::{TreeComparison, look};
use crate::judges::found::{JudgesFound, JudgesState};
use crate::judges::instructions::CheckCommand;
use crate::judges::tree::{At, FileAt, Tree};

/// The files of a tree by their paths.
type ListedFiles = BTreeMap<String, (FileMode, ObjectId)>;

/// A tree of git, whose files are read as they are asked for.
pub(super) struct GitTree {
    git: Git,
    tree: ObjectId,
    /// Its files, listed when the first is asked for; none where they cannot be.
    files: OnceCell<Option<ListedFiles>>,
    read: RefCell<BTreeMap<String, At>>,
}

impl GitTree {
    pub(super) fn new(git: &Git, tree: &ObjectId) -> Self {
        Self { git: git.clone(), tree: tree.clone(), files: OnceCell::new(), read: RefCell::default() }
    }

    fn listed(&self) -> Option<ListedFiles> {
        let list = Call::new("ls-tree").with(&["-r", "-z", "--full-tree"]).id(&self.tree);
        let printed = self.git.bytes(&list, &[]).ok()?;
        let lines = printed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        lines
            .map(|line| {
                // `100644 blob ID<tab>PATH`
                let tab = line.iter().position(|byte| *byte == b'\t')?;
                let head = std::str::from_utf8(&line[..tab]).ok()?;
                let mut words = head.split(' ');
                let (mode, _kind, id) = (words.next()?, words.next()?, words.next()?);
                let path = gitpath::to_text(&line[tab + 1..]);
                Some((path, (FileMode::parse(mode)?, ObjectId::parse(id).ok()?)))
            })
            .collect()
    }

    fn entry(&self, path: &str) -> Result<Option<(FileMode, ObjectId)>, ()> {
        let files = self.files.get_or_init(|| self.listed());
        files.as_ref().map(|files| files.get(path).cloned()).ok_or(())
    }

    fn reads(&self, path: &str) -> At {
        let (mode, id) = match self.entry(path) {
            Ok(Some(entry)) => entry,
            Ok(None) => return At::Nothing,
            Err(()) => return At::Unreadable,
        };
        let bytes = match mode {
            FileMode::Repository => Ok(id.as_str().as_bytes().to_vec()),
            FileMode::File | FileMode::Executable | FileMode::Link => {
                self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(&id), &[])
            }
        };
        bytes.map_or(At::Unreadable, |bytes| At::File(FileAt { mode, bytes, is_ignored: false }))
    }
}

impl Tree for GitTree {
    fn at(&self, path: &str) -> At {
        if let Some(known) = self.read.borrow().get(path) {
            return known.clone();
        }
        let at = self.reads(path);
        self.read.borrow_mut().insert(path.to_owned(), at.clone());
        at
    }

    fn seen(&self) -> Vec<String> {
        let files = self.files.get_or_init(|| self.listed());
        files.iter().flat_map(BTreeMap::keys).cloned().collect()
    }
}

/// Tells what a run did to its judges. `inside` is where it stands in the working tree.
pub(super) fn judged(
    request: &JudgingRequest,
    changes: &TreeChanges,
    git: &Git,
    inside: &str,
) -> JudgesFound {
    if changes.count() == 0 {
        return JudgesFound::unchanged();
    }
    let joined = |path: &str| match (inside, path) {
        ("", path) => path.to_owned(),
        (inside, "" | ".") => inside.to_owned(),
        (inside, path) => format!("{inside}/{path}"),
    };
    let directories: Vec<String> =
        request.commands.iter().map(|command| joined(command.cwd.as_deref().unwrap_or_default())).collect();
    let commands: Vec<CheckCommand<'_>> = request
        .commands
        .iter()
        .zip(&directories)
        .map(|(command, directory)| CheckCommand {
            state: command.state.as_str(),
            text: &command.text,
            directory: directory.trim_start_matches("./").trim_end_matches('/'),
            search: &[],
        })
        .collect();
    let loop_files = [joined(&request.loop_file)];
    let paths = changes.files.iter().flat_map(|file| [Some(&file.path), file.from.as_ref()]).flatten();
    let touched: Vec<String> = paths.cloned().collect();
    let (start, end) = (GitTree::new(git, &changes.start.tree), GitTree::new(git, &changes.end.tree));
    let found = look(&TreeComparison {
        declared: &request.declared,
        commands: &commands,
        loop_files: &loop_files,
        changed: &touched,
        start: &start,
        end: &end,
    });
    if changes.more > 0 && found.state != JudgesState::Changed {
        // Not every file was looked at.
        return JudgesFound { state: JudgesState::Unknown, ..found };
    }
    found
}

/// Puts the judges of the start in their places.
pub(super) fn set_aside(
    request: &AsideRequest,
    git: &Git,
    top: &Path,
    directory: &Path,
) -> Result<(), String> {
    let TreeIds { tree, .. } = &request.start;
    let start = GitTree::new(git, tree);
    let mut all = Vec::new();
    for path in &request.put_back {
        let content = match start.at(path) {
            At::File(file) if file.mode != FileMode::Repository => Some((file.mode, file.bytes)),
            At::Nothing => None,
            At::File(_) | At::Unreadable => return Err(format!("`{path}` of the start cannot be read")),
        };
        all.push(Placed { path: path.clone(), content });
    }
    let hidden = request.hide.iter().filter(|path| !request.put_back.contains(path));
    all.extend(hidden.map(|path| Placed { path: path.clone(), content: None }));
    aside::put_aside(directory, top, &all).map_err(|error| error.to_string())
}
