//! Where links to folders lead. A check reads what lies behind one as if it lay there, and git lists nothing of it in that place: so
//! all of it that counts has to be in the key by its own path.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::chosen_files::{Choice, ChosenFiles, ListedTree};
use super::input_files::{ReadFiles, place};
use super::input_patterns::{as_read, is_within};
use super::no_key::NoKey;
use crate::base::file_mode::FileMode;
use crate::base::gitpath;

/// A look for what lies behind links and is in no key.
pub struct LinkSearch<'k> {
    /// The top of the working tree, with all links followed.
    pub top: &'k Path,
    /// What git lists.
    pub tree: &'k ListedTree,
    /// By what the files of the key were chosen.
    pub choice: &'k Choice<'k>,
    /// The files of the key.
    pub chosen: &'k ChosenFiles,
}

impl LinkSearch<'_> {
    /// Sees to it that whatever is read through links is in the key, and returns these links, for without them it is not read.
    ///
    /// # Errors
    /// Something is not, or a folder cannot be looked into.
    pub fn followed(&self, read: &ReadFiles) -> Result<BTreeSet<String>, NoKey> {
        let inputs = read.inputs.iter().map(|(path, file)| (path, file.mode));
        let judges = read.judges.iter().filter_map(|(path, file)| Some((path, file.as_ref()?.mode)));
        let read = inputs.chain(judges).filter(|(_, mode)| *mode == FileMode::Link).map(|(path, _)| path);
        let listed = [&self.tree.links, &self.tree.untracked, &self.tree.named].into_iter().flatten();
        let paths: BTreeSet<&String> = listed.chain(read).collect();
        let mut followed = BTreeSet::new();
        for path in paths {
            let is_judge = self.chosen.judges.contains(path);
            if (is_judge || self.choice.inputs.may_reach(path)) && self.leads_to_folder(path) {
                self.follow(path, is_judge, &mut followed)?;
            }
        }
        Ok(followed)
    }

    fn leads_to_folder(&self, path: &str) -> bool {
        let place = place(self.top, path);
        place.is_symlink() && place.is_dir()
    }

    /// Sees to it that what lies behind a link is in the key, and what lies behind links there.
    fn follow(&self, link: &str, is_judge: bool, followed: &mut BTreeSet<String>) -> Result<(), NoKey> {
        let unseen = || NoKey::UnseenBehindLink(link.to_owned());
        followed.insert(link.to_owned());
        let mut left: Vec<(String, PathBuf)> = vec![(link.to_owned(), place(self.top, link))];
        let mut seen: BTreeSet<String> = BTreeSet::new();
        while let Some((alias, behind)) = left.pop() {
            let real =
                behind.canonicalize().map_err(|why| NoKey::Unreadable { path: link.to_owned(), why })?;
            // Of what lies elsewhere, nothing is listed.
            let folder = real.strip_prefix(self.top).map_err(|_| unseen())?;
            let folder = gitpath::to_text(folder.as_os_str().as_bytes());
            if !seen.insert(folder.clone()) {
                continue;
            }
            let by_link = |path: &str| {
                let path = &*as_read(path);
                let below = path.strip_prefix(folder.as_str()).unwrap_or(path);
                format!("{alias}/{}", below.trim_start_matches('/'))
            };
            let counts = |path: &str| is_judge || self.choice.inputs.hold(&by_link(path));
            let mut is_listed = self.are_repositories_seen(&folder).ok_or_else(unseen)?;
            for path in self.below(&folder) {
                is_listed = true;
                if self.leads_to_folder(path) {
                    left.push((by_link(path), place(self.top, path)));
                    followed.insert(path.clone());
                } else if counts(path) && !self.is_chosen(path) && self.choice.is_work(self.tree, path) {
                    return Err(unseen());
                }
            }
            // What git ignores as a whole is not listed either.
            if !is_listed && !is_empty(&real) {
                return Err(unseen());
            }
        }
        Ok(())
    }

    /// Returns the files that git lists below a folder.
    fn below(&self, folder: &str) -> impl Iterator<Item = &String> {
        let begin = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let sets = [&self.tree.tracked, &self.tree.untracked, &self.tree.named];
        sets.into_iter().flat_map(move |set| {
            let (own, other) = (begin.clone(), begin.clone());
            let plain = set.range(begin.clone()..).take_while(move |path| path.starts_with(&own));
            // Paths that are not UTF-8 stand elsewhere in the order.
            let quoted = set.range("\"".to_owned()..).take_while(|path| path.starts_with('"'));
            let quoted = quoted.filter(move |path| !other.is_empty() && as_read(path).starts_with(&other));
            plain.chain(quoted)
        })
    }

    /// Tells whether a submodule is or has the folder; nothing where one that is not in the key may be read.
    fn are_repositories_seen(&self, folder: &str) -> Option<bool> {
        let touches = |path: &&String| is_within(path, folder) || is_within(folder, path);
        if self.tree.nested.iter().any(|path| touches(&path) && self.choice.is_work(self.tree, path)) {
            return None;
        }
        let mut submodules = self.tree.submodules.keys().filter(touches);
        let is_any = submodules.clone().next().is_some();
        submodules.all(|path| self.chosen.submodules.contains_key(path)).then_some(is_any)
    }

    fn is_chosen(&self, path: &str) -> bool {
        self.chosen.inputs.contains(path) || self.chosen.judges.contains(path)
    }
}

/// Tells whether a folder is known to be empty.
fn is_empty(folder: &Path) -> bool {
    fs_err::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}
