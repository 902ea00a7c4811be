//! What git ignores in the checkout of a leg and what decides about checks all the same: each item begins with it as it was
//! when the leg began. Otherwise an item could be judged by the `pytest.ini` or the `.venv/bin/pytest` that another one left.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::ignored::{self, INFO};
use super::installed_programs::is_known_to_a_package;
use super::judging::{self, JudgingPlace, SearchVariables};
use crate::base::explanation::Explanation;
use crate::base::gitpath;
use crate::base::time::Timestamp;
use crate::engine::changes::IgnoredFile;
use crate::engine::request::JudgingRequest;
use crate::files::aside::{self, Placed};
use crate::files::{gitdir, links, transient};
use crate::git::call::Call;
use crate::git::runner::Git;
use crate::judges::compare::is_obeyed_by_name;
use crate::judges::tree::At;

/// The ignored files that are obeyed because of their names, as they are when a leg begins.
pub struct IgnoredJudges {
    top: PathBuf,
    known: Vec<IgnoredFile>,
    /// What they hold.
    store: TempDir,
}

impl IgnoredJudges {
    /// Looks at those of a checkout.
    ///
    /// # Errors
    /// Git does not list them, or one cannot be read.
    pub fn look(git: &Git, top: &Path) -> Result<Self, Explanation> {
        let store = transient::directory("ll-ignored-")?;
        let known = ignored::kept(&named(git, top)?, top, store.path())?;
        Ok(Self { top: top.to_owned(), known, store })
    }

    /// Returns what stood where something else stands now.
    ///
    /// # Errors
    /// Git does not list them, or what one held cannot be read any more.
    pub fn left(&self, git: &Git) -> Result<Vec<Placed>, Explanation> {
        let known: BTreeMap<&str, &IgnoredFile> =
            self.known.iter().map(|file| (file.path.as_str(), file)).collect();
        let changed = ignored::changed(&self.known, &named(git, &self.top)?, &self.top);
        // In a worktree the list belongs to the repository, and so to other checkouts as well.
        let is_there = |path: &String| !path.starts_with(INFO) || self.top.join(".git").is_dir();
        let placed = changed.into_iter().filter(is_there).map(|path| {
            let found = known.get(path.as_str()).and_then(|file| file.found.as_ref());
            let content = match ignored::at_start(found, self.store.path()) {
                At::File(file) => Some((file.mode, file.bytes)),
                At::Nothing => None,
                At::Unreadable => {
                    return Err(Explanation::new(format!("`{path}` as it was cannot be read")));
                }
            };
            Ok(Placed { path, content })
        });
        placed.collect()
    }
}

fn named(git: &Git, top: &Path) -> Result<BTreeSet<String>, Explanation> {
    let listed = git.at(top).bytes(&ignored::list(), &[])?;
    Ok(ignored::by_name(&listed, top))
}

/// Where an item of a leg begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemStart {
    /// When the leg began.
    pub since: Timestamp,
    /// Where programs are put aside that came since.
    pub aside: PathBuf,
}

impl ItemStart {
    /// Puts programs aside that the checks of an item would run, that git does not track, and that another item has put there.
    /// Those of packages stay: what installs them may do so once for all items.
    ///
    /// # Errors
    /// Git does not say what it tracks, or a file cannot be put aside.
    pub fn set_programs_aside(
        &self,
        judging: &JudgingRequest,
        git: &Git,
        root: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(), Explanation> {
        let Some(around) = gitdir::around(root) else { return Ok(()) };
        let (top, root) = (links::real(&around.root), links::real(root));
        let Ok(inside) = root.strip_prefix(&top) else { return Ok(()) };
        let inside = gitpath::to_text(inside.as_os_str().as_bytes());
        let place = JudgingPlace { top: &top, inside: &inside, env: SearchVariables::of(env) };
        let mut paths = judging::programs(judging, &place);
        paths.retain(|path| {
            !path.starts_with('/')
                // Those are put back by their content, not taken away.
                && !is_obeyed_by_name(path)
                && ignored::changed_at(path, &top).is_some_and(|changed| changed.timestamp() >= self.since)
                // Nothing is known of the moments of another item.
                && !is_known_to_a_package(path, &top, &|_| true)
        });
        if paths.is_empty() {
            return Ok(());
        }
        // Asked of git in one call, as a file that it tracks is work of the commit.
        let list = Call::new("ls-files").with(&["-z"]).paths(paths.iter().cloned()).literal();
        let tracked = git.at(&top).bytes(&list, &[])?;
        let tracked: BTreeSet<String> =
            tracked.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(gitpath::to_text).collect();
        let others = paths.into_iter().filter(|path| !tracked.contains(path));
        let placed: Vec<Placed> = others.map(|path| Placed { path, content: None }).collect();
        if !placed.is_empty() {
            aside::put_aside(&self.aside, &top, &placed)?;
        }
        Ok(())
    }
}
