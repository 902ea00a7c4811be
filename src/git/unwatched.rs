//! What a comparison of commits does not show: links, which lead to files that change elsewhere, and files that the index
//! tells git not to look at. A loop that looks at such a thing is run, whatever changed.

use std::path::Path;

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
        let git = git.at(Path::new(&top.to_string()));
        let printed = match git.line(&tracked_files::call()) {
            Ok(printed) => printed,
            Err(why) => return Self { unread: Some(one_line(&why.to_string(), 200)), ..found },
        };
        for file in tracked_files::read(printed.as_bytes()) {
            let place = top.join(&String::from_utf8_lossy(file.path));
            let there = place.to_string();
            if file.mode() == LINK
                && let Ok(target) = Path::new(&there).read_link()
            {
                let around = Path::new(&there).parent().unwrap_or(Path::new("/"));
                let leads = links::real(&around.join(target)).to_string_lossy().into_owned();
                found.links.push((place, leads.into()));
            } else if !file.is_seen() && Path::new(&there).symlink_metadata().is_ok() {
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
