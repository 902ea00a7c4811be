//! What a comparison of commits does not show: links, which lead to files that change elsewhere, and files that the index
//! tells git not to look at. A loop that looks at such a thing is run, whatever changed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::base::territory::ScopePath;
use crate::base::text::one_line;
use crate::files::links;
use crate::git::runner::Git;
use crate::git::tracked_files;

/// The paths of a working tree of which git tells less than there is.
pub(crate) struct UnwatchedPaths {
    top: ScopePath,
    /// Links that git tracks, each with the place that it leads to.
    links: Vec<(ScopePath, ScopePath)>,
    /// Files that the index tells git not to look at.
    flagged: Vec<ScopePath>,
    /// Why the index could not be read, if it could not.
    unread: Option<String>,
}

impl UnwatchedPaths {
    /// Looks at the index of the working tree whose top this is.
    pub(crate) fn look(git: &Git, top: &ScopePath) -> Self {
        let mut found = Self { top: top.clone(), links: Vec::new(), flagged: Vec::new(), unread: None };
        let directory = PathBuf::from(top.to_string());
        let printed = match git.at(&directory).bytes(&tracked_files::call(), &[]) {
            Ok(printed) => printed,
            Err(why) => return Self { unread: Some(one_line(&why.to_string(), 200)), ..found },
        };
        for file in tracked_files::read(&printed) {
            let place = top.join(&String::from_utf8_lossy(file.path));
            // A name that is not UTF-8 is found by its bytes alone.
            let there = directory.join(OsStr::from_bytes(file.path));
            if file.mode() == LINK
                && let Ok(target) = there.read_link()
            {
                let around = there.parent().unwrap_or(Path::new("/"));
                let leads = links::real(&around.join(target)).to_string_lossy().into_owned();
                found.links.push((place, leads.into()));
            } else if !file.is_seen() && there.symlink_metadata().is_ok() {
                found.flagged.push(place);
            }
        }
        found
    }

    /// Returns the links through which somebody may have named these paths: where one of them leads elsewhere now, the path
    /// is another one than before.
    pub(crate) fn ways_to<'l>(&'l self, scope: &'l [ScopePath]) -> impl Iterator<Item = &'l ScopePath> {
        let leads = |target: &ScopePath| scope.iter().any(|path| target.holds(path));
        self.links.iter().filter(move |(_, target)| leads(target)).map(|(link, _)| link)
    }

    /// Says why it is unknown what changed in a scope, if it is.
    pub(crate) fn why(&self, scope: &[ScopePath]) -> Option<String> {
        if let Some(why) = &self.unread {
            return Some(format!("what changed in the scope is unknown: {why}"));
        }
        let is_inside = |path: &ScopePath| scope.iter().any(|scope| scope.holds(path));
        let shown = |path: &ScopePath| one_line(&path.seen_from(&self.top), 200);
        if let Some((link, target)) =
            self.links.iter().find(|(link, target)| is_inside(link) && !is_inside(target))
        {
            return Some(format!(
                "what changed in `{}` of the scope is unknown: it is a link to `{}`, which is outside of it",
                shown(link),
                shown(target)
            ));
        }
        let flagged = self.flagged.iter().find(|path| is_inside(path))?;
        let path = shown(flagged);
        Some(format!(
            "what changed in `{path}` of the scope is unknown: the index tells git not to look at it"
        ))
    }
}

/// The mode of a link.
const LINK: &[u8] = b"120000";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::git::call::Call;

    #[test]
    fn a_link_whose_name_is_not_utf8_is_seen() {
        let place = tempfile::tempdir().unwrap();
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        let git = Git::new(place.path(), BTreeMap::from([("PATH".to_owned(), path)]));
        git.line(&Call::new("init").with(&["--quiet"])).unwrap();
        let link = place.path().join(OsStr::from_bytes(b"odd\xff"));
        if std::os::unix::fs::symlink("/etc", link).is_err() {
            // Not every system takes such a name.
            return;
        }
        git.line(&Call::new("add").path(".")).unwrap();
        let top: ScopePath = place.path().to_string_lossy().into_owned().into();
        let found = UnwatchedPaths::look(&git, &top);
        assert!(found.why(&[top]).unwrap().contains("it is a link to `"));
    }
}
