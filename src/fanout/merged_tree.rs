//! Brings the changes of verified items together, as objects of a scratch repository: the checkout stays as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::base::file_mode::FileMode;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::territory::ScopePath;
use crate::bundle::opened::OpenedBundle;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::{self, DIRECTORY};
use crate::engine::changes::{EntryContent, KnownStart, LineCount, StartTree};
use crate::fanout::item::ItemId;
use crate::fanout::item_plan::{Item, Plan};
use crate::files::aside::Placed;
use crate::files::transient;
use crate::git::call::Call;
use crate::git::error::TreeError;
use crate::git::raw_diff;
use crate::git::runner::Git;
use crate::repository;
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::Workspace;

/// The tree that the changes of verified items make together.
pub(super) struct MergedTree {
    pub(super) workspace: Workspace,
    /// The commit of the plan.
    pub(super) base: ObjectId,
    /// Its files.
    pub(super) base_tree: ObjectId,
    /// The files with all changes.
    pub(super) tree: ObjectId,
    /// Who changed each path.
    changed: BTreeMap<String, BTreeSet<ItemId>>,
    /// The directory of the loops, from the top of the repository.
    prefix: String,
    /// Changes outside of the scope of their item.
    pub(super) outside: Vec<(ItemId, String)>,
}

/// Why the changes of an item were not taken.
pub(super) enum Untaken {
    /// They do not fit those of another item.
    Conflict {
        /// The other items.
        with: Vec<ItemId>,
        /// The files.
        files: Vec<String>,
    },
    /// They are not at hand, or it is unknown what they are.
    Unknown(String),
}

impl MergedTree {
    /// Begins with the commit of a plan.
    pub(super) fn new(plan: &Plan, session: &Session<'_>) -> Result<Self, Error> {
        let checkout = repository::at(&session.cwd, session);
        let workspace = Workspace::new(&plan.commit, &checkout, None, session)?;
        let absent = |_| {
            Error::refused(format!("the commit {} of the plan is not in this repository", plan.commit))
                .with_hint("merge in a checkout of that commit")
        };
        let base_tree = workspace.tree_of(&plan.commit).map_err(absent)?;
        Ok(Self {
            workspace,
            base: plan.commit.clone(),
            tree: base_tree.clone(),
            base_tree,
            changed: BTreeMap::new(),
            prefix: prefix(session),
            outside: Vec::new(),
        })
    }

    /// Tells whether something in the scope of an item was changed by another one.
    pub(super) fn meets_others(&self, item: &Item) -> bool {
        let scope = self.scope_of(item);
        self.changed_by_others(item).any(|path| scope.iter().any(|scope| scope.holds(&root().join(path))))
    }

    /// Returns what other items than this one changed, from the top of the repository.
    pub(super) fn changed_by_others<'t>(&'t self, item: &'t Item) -> impl Iterator<Item = &'t str> {
        let by_another = |by: &BTreeSet<ItemId>| by.iter().any(|by| *by != item.id);
        self.changed.iter().filter(move |(_, by)| by_another(by)).map(|(path, _)| path.as_str())
    }

    /// Returns what the changed files are to hold.
    pub(super) fn placed(&self) -> Result<Vec<Placed>, Error> {
        let unread = |why: TreeError| Error::refused(format!("the merged files cannot be read: {why}"));
        let git = self.workspace.git();
        let bytes = |call: &Call| git.bytes(call, &[]).map_err(|error| unread(error.into()));
        // No renames: each path is put in place by itself.
        let raw = Call::new("diff-tree").with(&["-r", "-z", "--raw", "--no-renames", "--no-abbrev"]);
        let raw = bytes(&raw.id(&self.base_tree).id(&self.tree))?;
        let placed =
            raw_diff::read(&raw).map_err(|error| unread(error.into()))?.into_iter().map(|difference| {
                let path = gitpath::to_text(&difference.path);
                let content = match difference.new {
                    None => None,
                    Some((FileMode::Repository, _)) => {
                        return Err(Error::refused(format!("`{path}` is a repository of its own")));
                    }
                    Some((mode, id)) => Some((mode, bytes(&Call::new("cat-file").with(&["blob"]).id(&id))?)),
                };
                Ok(Placed { path, content })
            });
        placed.collect()
    }

    /// Returns the scope of an item, as seen from the top of the repository.
    fn scope_of(&self, item: &Item) -> Vec<ScopePath> {
        let here = root().join(&self.prefix);
        item.scope.iter().map(|path| here.join(path)).collect()
    }

    /// Tells whether anything changed.
    pub(super) fn is_changed(&self) -> bool {
        self.tree != self.base_tree
    }

    /// Writes the patch from the commit to the tree, and returns its bytes.
    pub(super) fn patch(&self, to: &Path) -> Result<u64, TreeError> {
        let file = std::fs::File::create(to)?;
        // By plumbing, with all forms named: what the user has set under `diff.*` must not change the patch.
        let call =
            Call::new("diff-tree").with(&["-p", "--binary", "--full-index", "--no-renames", "--no-color"]);
        self.workspace.git().write_to(&call.id(&self.base_tree).id(&self.tree), &[], file)?;
        Ok(std::fs::metadata(to)?.len())
    }

    /// Counts the lines that came and went, by path; files without lines are not among them.
    pub(super) fn lines(&self) -> Result<BTreeMap<String, LineCount>, TreeError> {
        let call = Call::new("diff-tree").with(&["-r", "-z", "--numstat", "--no-renames"]);
        let printed = self.workspace.git().line(&call.id(&self.base_tree).id(&self.tree))?;
        let counted = printed.split('\0').filter_map(|line| {
            let (added, rest) = line.split_once('\t')?;
            // Of a file without lines, git prints `-` for both numbers, which is dropped below.
            let (removed, path) = rest.split_once('\t')?;
            Some((path.to_owned(), LineCount { added: added.parse().ok()?, removed: removed.parse().ok()? }))
        });
        Ok(counted.collect())
    }

    /// Takes what an item changed.
    pub(super) fn take(&mut self, item: &Item, bundle: &OpenedBundle) -> Result<(), Untaken> {
        let unknown = |why: String| Untaken::Unknown(why);
        let Some(saved) = &bundle.manifest.tree else {
            return Err(unknown("its bundle holds no working tree".to_owned()));
        };
        if let Some(why) = &saved.missing {
            return Err(unknown(format!("its bundle does not hold what it changed: {why}")));
        }
        if saved.base != self.base || saved.head != self.base {
            return Err(unknown("it made commits of its own, and only files are merged".to_owned()));
        }
        let start = match bundle.digest.start().and_then(|start| start.tree.as_ref()) {
            Some(StartTree::Known(start)) => start,
            Some(StartTree::Unknown { unknown: why }) => return Err(unknown(why.clone())),
            None => return Err(unknown("its journal does not say on which tree it began".to_owned())),
        };
        let Some(changes) = bundle.digest.changes() else {
            return Err(unknown("its journal does not say what it changed".to_owned()));
        };
        if changes.is_nothing() {
            return Ok(());
        }
        if !start.entries.is_empty() {
            return Err(unknown("it began with changes that no commit has".to_owned()));
        }
        let stopped = |stop: DeliveryStop| unknown(stop.to_string());
        let fix = self.workspace.take(saved, bundle.objects().as_deref()).map_err(stopped)?;
        // The verdict in the journal is about that tree; other objects would be delivered without one.
        if fix.tree != changes.end.tree {
            return Err(unknown("its bundle holds other files than those that it left".to_owned()));
        }
        let before = self.tree_before(start).map_err(untaken)?;
        if before != start.ids.tree {
            return Err(unknown("its journal does not say how the tree differed when it began".to_owned()));
        }
        self.merge(item, &before, &fix.tree)
    }

    /// Makes the tree on which a run began: that of the commit, with what differed.
    fn tree_before(&self, start: &KnownStart) -> Result<ObjectId, TreeError> {
        let index = transient::directory("")?;
        let git = self.workspace.git().with("GIT_INDEX_FILE", index.path().join("index"));
        git.line(&Call::new("read-tree").id(&self.base_tree))?;
        let mut lines = Vec::new();
        for entry in &start.entries {
            let (mode, id) = match &entry.content {
                // As many zeros as an id of this repository has digits, which may be one of SHA-256.
                EntryContent::Gone => ("0", "0".repeat(self.base.as_str().len())),
                EntryContent::Object { mode, id } => (mode.word(), id.to_string()),
                // No tree has it, neither this one nor the one at the end.
                EntryContent::Digest(_) => continue,
            };
            lines.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            lines.extend_from_slice(&gitpath::to_bytes(&entry.path));
            lines.push(0);
        }
        git.bytes(&Call::new("update-index").with(&["-z", "--index-info"]), &lines)?;
        // The contents before it came with the bundle of the item that made them, if at all.
        Ok(git.id(&Call::new("write-tree").with(&["--missing-ok"]))?)
    }

    fn merge(&mut self, item: &Item, before: &ObjectId, after: &ObjectId) -> Result<(), Untaken> {
        let own = self.paths(before, after).map_err(untaken)?;
        let merged = if *before == self.tree {
            after.clone()
        } else {
            let git = self.workspace.git();
            // `merge-tree` finds what both sides share by the history of commits, so each tree gets one.
            let base = commit(git, before, &self.base).map_err(untaken)?;
            let (ours, theirs) = (
                commit(git, &self.tree, &base).map_err(untaken)?,
                commit(git, after, &base).map_err(untaken)?,
            );
            self.joined(&ours, &theirs)?
        };
        let scope = self.scope_of(item);
        for path in own {
            if !scope.iter().any(|scope| scope.holds(&root().join(&path))) {
                self.outside.push((item.id.clone(), path.clone()));
            }
            self.changed.entry(path).or_default().insert(item.id.clone());
        }
        self.tree = merged;
        Ok(())
    }

    /// Merges two commits whose parent is the same.
    fn joined(&self, ours: &ObjectId, theirs: &ObjectId) -> Result<ObjectId, Untaken> {
        let call = Call::new("merge-tree").with(&["--write-tree", "-z", "--name-only", "--no-messages"]);
        let judged = self.workspace.git().judged(&call.id(ours).id(theirs)).map_err(untaken)?;
        let printed = String::from_utf8_lossy(&judged.printed).into_owned();
        let mut parts = printed.split('\0').map(str::trim).filter(|part| !part.is_empty());
        let tree = parts.next().and_then(|tree| ObjectId::parse(tree).ok());
        let tree = tree.ok_or_else(|| Untaken::Unknown(format!("git cannot merge it: {}", judged.said)))?;
        if judged.is_yes {
            return Ok(tree);
        }
        let files: Vec<String> = parts.map(str::to_owned).collect();
        let with: BTreeSet<ItemId> =
            files.iter().filter_map(|file| self.changed.get(file)).flatten().cloned().collect();
        let with = with.into_iter().collect();
        Err(Untaken::Conflict { with, files })
    }

    fn paths(&self, before: &ObjectId, after: &ObjectId) -> Result<Vec<String>, TreeError> {
        let call = Call::new("diff-tree").with(&["-r", "-z", "--name-only", "--no-renames"]);
        let printed = self.workspace.git().line(&call.id(before).id(after))?;
        Ok(printed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
    }
}

/// The top of the repository, as paths in it are compared.
fn root() -> ScopePath {
    ScopePath::from(String::new())
}

/// Returns the directory of the loops here, from the top of the repository.
fn prefix(session: &Session<'_>) -> String {
    let mut roots = load::ancestors(&session.cwd).into_iter();
    let root = roots.find(|root| root.join(DIRECTORY).is_dir());
    let git = repository::at(root.as_deref().unwrap_or(&session.cwd), session);
    // Without a repository nothing is merged.
    git.line(&Call::new("rev-parse").with(&["--show-prefix"])).unwrap_or_default()
}

fn commit(git: &Git, tree: &ObjectId, parent: &ObjectId) -> Result<ObjectId, TreeError> {
    Ok(git.id(&Call::new("commit-tree").option_id("-p", parent).with(&["-m", "an item"]).id(tree))?)
}

/// What git cannot read or make is not known.
fn untaken(why: impl std::fmt::Display) -> Untaken {
    Untaken::Unknown(why.to_string())
}
