//! Lets each item of a leg begin on the tree on which the leg began: what an earlier item left in the checkout is put aside,
//! and put back when the leg is over, where nothing else stands there by then. Its bundle has it in any case.
//!
//! What items left is on record before it is touched, so that another leg of the plan, or another attempt, knows it from the
//! work of people, which is never put aside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::item::ItemId;
use super::item_plan::Plan;
use super::whole_tree::WholeTree;
use crate::base::name::LoopName;
use crate::base::sum::Sum;
use crate::base::text::{head, listed_in_part};
use crate::base::time::Timestamp;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::DIRECTORY;
use crate::engine::changes::{EntryContent, TreeEntry};
use crate::files::aside::{self, Placed};
use crate::files::read;
use crate::files::replace::replace;
use crate::git::call::Call;
use crate::git::own_index::SavedIndex;
use crate::journal::files::RunFiles;
use crate::process::clock::Clock;
use crate::repository;
use crate::run::leg_start::{IgnoredJudges, ItemStart};

/// The record of what items left, in the directory in which it is put aside.
const RECORD: &str = "left.json";

/// The largest record that is read.
// A larger one counts as absent: what it lists is then taken for the work of people, and stays where it is.
const MAX_RECORD: u64 = 64 << 20;

/// The checkout in which the items of a leg run.
pub(super) struct LegTree<'s> {
    session: &'s Session<'s>,
    root: PathBuf,
    /// Where reports go, which are not work of items.
    own: Vec<PathBuf>,
    /// Where things are put aside.
    home: PathBuf,
    /// What items left, in this leg and before it.
    left: LeftRecord,
    /// The tree as the leg found it.
    began: WholeTree,
    /// What differed then from the commit, besides what items had left.
    before: Contents,
    committed: Contents,
    /// The branch that was checked out, if one was.
    branch: Option<String>,
    /// The index as the leg found it. An item may write there that what it changed is what it was.
    index: SavedIndex,
    /// What git ignores and decides about checks all the same, as the leg found it.
    ignored: IgnoredJudges,
    /// When the leg began.
    since: Timestamp,
}

/// Where the ignored files of an item are put aside, and programs that others left, in the directory for all of them.
const IGNORED: &str = "ignored";
const PROGRAMS: &str = "programs";

/// What items of a plan left in a checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LeftRecord {
    plan_id: Sum,
    items: BTreeMap<String, Contents>,
}

/// What stands at paths.
type Contents = BTreeMap<String, EntryContent>;

impl<'s> LegTree<'s> {
    /// Looks at the checkout, and puts aside what items of the plan left there before.
    pub(super) fn begin(
        plan: &Plan,
        root: &Path,
        own: &[PathBuf],
        session: &'s Session<'s>,
    ) -> Result<Self, Error> {
        let home = home(plan, root);
        let left = LeftRecord::read(&home, plan.plan_id);
        for item in left.items.keys() {
            // A leg that was killed left it there.
            aside::put_back(&home.join(item)).map_err(|error| unfinished(&error))?;
        }
        let since = Clock::start().now();
        let name = LoopName::parse("leg").expect("it is a name");
        // What the first run would write into the list of ignored files is there from the beginning.
        let _best_effort = RunFiles::fresh(&root.join(DIRECTORY), &name, since).make_directory();
        let git = repository::at(root, session);
        let index =
            SavedIndex::of(&git).map_err(|why| Error::refused(format!("the index is not known: {why}")))?;
        let began = WholeTree::look(root, own, session)?;
        let ignored = IgnoredJudges::look(&git, &began.top)
            .map_err(|why| Error::refused(format!("what git ignores is not known: {why}")))?;
        let committed = began.committed()?;
        // Only while the content is the one on record: somebody may have edited the file since.
        let is_left = |left: &Contents, entry: &TreeEntry| left.get(&entry.path) == Some(&entry.content);
        let is_of_item = |entry: &&TreeEntry| left.items.values().any(|left| is_left(left, entry));
        let others = began.start.entries.iter().filter(|entry| !is_of_item(entry));
        let before = others.map(|entry| (entry.path.clone(), entry.content.clone())).collect();
        // A detached HEAD, as jobs often have it, is on no branch, and git says so by failing.
        let branch = git.line(&Call::new("symbolic-ref").with(&["--quiet"]).revision("HEAD")).ok();
        let tree = Self {
            session,
            root: root.to_owned(),
            own: own.to_vec(),
            home,
            left,
            began,
            before,
            committed,
            branch,
            index,
            ignored,
            since,
        };
        for (item, left) in &tree.left.items {
            let there = tree.began.start.entries.iter().filter(|entry| is_left(left, entry));
            tree.set_aside(item, &there.map(|entry| (entry.path.clone(), entry.content.clone())).collect())?;
        }
        Ok(tree)
    }

    /// Puts aside what an item has left, so that the next one does not see it.
    pub(super) fn after(&mut self, item: &ItemId, is_last: bool) -> Result<(), Error> {
        // Nothing begins after the last item, so what that one leaves may stay.
        if !is_last {
            self.set_ignored_aside(item)?;
        }
        // Before the look: git goes by the times in the index, and an item may have written them there to hide a change.
        self.index
            .put_back()
            .map_err(|why| Error::refused(format!("the index cannot be made what it was: {why}")))?;
        let now = WholeTree::look(&self.root, &self.own, self.session)?;
        self.check_out(&now)?;
        // What its commits have is a difference to the commit that is checked out now.
        let now = if now.start.ids == self.began.start.ids {
            now
        } else {
            WholeTree::look(&self.root, &self.own, self.session)?
        };
        let left = self.differences(&now);
        if left.is_empty() {
            return Ok(());
        }
        self.left.items.insert(item.to_string(), left.clone());
        self.left.save(&self.home)?;
        if is_last { Ok(()) } else { self.set_aside(item.as_str(), &left) }
    }

    fn set_ignored_aside(&self, item: &ItemId) -> Result<(), Error> {
        let left = self.ignored.left(&repository::at(&self.root, self.session));
        let left = left.map_err(|why| Error::refused(format!("what git ignores is not known: {why}")))?;
        if left.is_empty() {
            return Ok(());
        }
        let aside = self.home.join(IGNORED).join(item.as_str());
        aside::put_aside(&aside, &self.began.top, &left).map_err(|error| unfinished(&error))
    }

    /// Tells where an item begins.
    pub(super) fn start_of(&self, item: &ItemId) -> ItemStart {
        ItemStart { since: self.since, aside: self.home.join(PROGRAMS).join(item.as_str()) }
    }

    /// Puts back what an item had left itself, because its run goes on here.
    pub(super) fn before_resuming(&self, item: &ItemId) -> Result<(), Error> {
        self.bring_back(item.as_str())?;
        let ignored = self.home.join(IGNORED).join(item.as_str());
        aside::put_back(&ignored).map(drop).map_err(|error| unfinished(&error))
    }

    /// Forgets what an item left before, because it begins anew. Its bundles have it.
    pub(super) fn before_beginning(&mut self, item: &ItemId) {
        self.left.items.remove(item.as_str());
        let _absent = fs_err::remove_dir_all(self.home.join(item.as_str()));
    }

    /// Puts everything back where the tree is as the leg found it, and names what stays aside.
    pub(super) fn end(self) {
        let mut kept = Vec::new();
        for item in self.left.items.keys() {
            match self.bring_back(item) {
                // What could not be put back is not lost: the bundle of the item holds it as well.
                Ok(stayed) => kept.extend(stayed),
                Err(error) => self.session.talk.warning(error.message()),
            }
        }
        // What git ignores is in no bundle.
        for entry in [IGNORED, PROGRAMS].into_iter().flat_map(|folder| read_dir(&self.home.join(folder))) {
            match aside::put_back(&entry) {
                Ok(stayed) if stayed.is_empty() => {}
                Ok(stayed) => self.session.talk.note(&format!(
                    "of what items left and git ignores, these files are gone, because others left something there as well: {}",
                    listed_in_part(&stayed)
                )),
                Err(error) => self.session.talk.warning(unfinished(&error).message()),
            }
        }
        if !kept.is_empty() {
            self.session.talk.note(&format!(
                "of what items left, these files are in their bundles alone, because others left something there as well: {}",
                listed_in_part(&kept)
            ));
        }
        if let Err(error) = self.left.save(&self.home) {
            self.session.talk.warning(error.message());
        }
    }

    /// Leaves aside for good what items left.
    pub(super) fn forget(self) {
        let _best_effort = fs_err::remove_dir_all(&self.home);
    }

    fn bring_back(&self, item: &str) -> Result<Vec<String>, Error> {
        aside::put_back(&self.home.join(item)).map_err(|error| unfinished(&error))
    }

    /// Checks out the commit and the index with which the leg began. Commits that an item made are in its bundle.
    fn check_out(&self, now: &WholeTree) -> Result<(), Error> {
        let (began, now) = (&self.began.start.ids, &now.start.ids);
        let git = repository::at(&self.root, self.session);
        let run = |call: Call| {
            git.line(&call).map(drop).map_err(|why| {
                Error::refused(format!(
                    "the commit with which the leg began cannot be checked out again: {why}"
                ))
            })
        };
        let branch = git.line(&Call::new("symbolic-ref").with(&["--quiet"]).revision("HEAD")).ok();
        if branch != self.branch || began.commit != now.commit {
            // By plumbing, which leaves the files alone: they are put aside afterwards, path by path.
            match &self.branch {
                Some(branch) => {
                    run(Call::new("symbolic-ref").revision("HEAD").named(branch, ""))?;
                    run(Call::new("update-ref").named(branch, "").id(&began.commit))?;
                }
                None => {
                    run(Call::new("update-ref").with(&["--no-deref"]).revision("HEAD").id(&began.commit))?;
                }
            }
        }
        match &began.index {
            Some(index) if now.index.as_ref() != Some(index) || began.commit != now.commit => {
                self.began.restore_index()
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns what stands now wherever it is not what stood there when the leg began.
    fn differences(&self, now: &WholeTree) -> Contents {
        let there: BTreeMap<&str, &TreeEntry> =
            now.start.entries.iter().map(|entry| (entry.path.as_str(), entry)).collect();
        // Also what differed at the beginning and no longer does: an item may have undone the work of people.
        let paths: BTreeSet<&str> =
            there.keys().copied().chain(self.before.keys().map(String::as_str)).collect();
        let changed = |path: &str| {
            // A path that the look does not list holds what the commit does.
            let content = there.get(path).map(|entry| &entry.content).or_else(|| self.committed.get(path));
            let content = content.cloned().unwrap_or(EntryContent::Gone);
            (content != self.at_beginning(path)).then(|| (path.to_owned(), content))
        };
        paths.into_iter().filter_map(changed).collect()
    }

    /// Returns what stood at a path when the leg began.
    fn at_beginning(&self, path: &str) -> EntryContent {
        let known = self.before.get(path).or_else(|| self.committed.get(path));
        known.cloned().unwrap_or(EntryContent::Gone)
    }

    fn set_aside(&self, item: &str, left: &Contents) -> Result<(), Error> {
        if left.is_empty() {
            return Ok(());
        }
        // What no file holds cannot be put back either.
        let is_odd = |content: &&EntryContent| matches!(content, EntryContent::Digest(_));
        if let Some((odd, _)) = left.iter().find(|(_, content)| is_odd(content)) {
            return Err(Error::refused(format!("`{odd}` is too large, or a repository of its own")));
        }
        let placed = left.keys().map(|path| {
            let content = self.began.read(path, &self.at_beginning(path))?;
            Ok(Placed { path: path.clone(), content })
        });
        let placed = placed.collect::<Result<Vec<Placed>, Error>>()?;
        aside::put_aside(&self.home.join(item), &self.began.top, &placed).map_err(|error| unfinished(&error))
    }
}

// A folder is made when something is put aside in it, so in most legs neither exists.
fn read_dir(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Forgets what items left in a checkout: it is clean, so that nothing of it is there.
pub(super) fn forget_left(plan: &Plan, root: &Path) {
    let _absent = fs_err::remove_dir_all(home(plan, root));
}

/// Returns the directory for what items of a plan left in a checkout.
fn home(plan: &Plan, root: &Path) -> PathBuf {
    // A part of the id is enough here: the record inside has all of it, and that of another plan is not obeyed.
    let id = plan.plan_id.to_string();
    RunFiles::running(&root.join(DIRECTORY)).join(format!("plan-{}.left", head(&id, 16)))
}

impl LeftRecord {
    /// Reads the record of a plan; none, and one of another plan, is empty.
    fn read(home: &Path, plan_id: Sum) -> Self {
        let text = read::bytes(&home.join(RECORD), MAX_RECORD).ok();
        let found: Option<Self> = text.and_then(|text| serde_json::from_slice(&text).ok());
        found.filter(|found| found.plan_id == plan_id).unwrap_or(Self { plan_id, items: BTreeMap::new() })
    }

    fn save(&self, home: &Path) -> Result<(), Error> {
        if self.items.is_empty() {
            let _absent = fs_err::remove_dir_all(home);
            return Ok(());
        }
        let text = serde_json::to_string(self).expect("paths and ids are JSON");
        fs_err::create_dir_all(home)
            .and_then(|()| replace(&home.join(RECORD), text))
            .map_err(|error| unfinished(&error))
    }
}

fn unfinished(error: &std::io::Error) -> Error {
    Error::failed("what an item left in the checkout cannot be put aside or back", error)
}
