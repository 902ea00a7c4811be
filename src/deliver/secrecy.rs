//! What must not be published: the secrets of this job, and what looks like anybody's credential. A place is named, and
//! what stands there never is.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::leaks;
use super::leaks::{Leak, LeakPlace};
use crate::base::object::ObjectId;
use crate::base::text::{one_line, plural};
use crate::context::Session;
use crate::engine::changes::FileMode;
use crate::forge::change::{FileChange, FileSide};
use crate::forge::standing::Refusal;
use crate::forge::suggestion::hunks;
use crate::repository::delivery_stop::DeliveryStop;
use crate::repository::workspace::{Workspace, broken};

/// The most bytes of a file that is searched.
const MOST_SEARCHED: u64 = 64 << 20;

/// The most bytes of files that are read at once.
const MOST_AT_ONCE: u64 = 16 << 20;

/// What is known of secrets in a fix.
#[derive(Clone, Debug)]
pub(super) enum Secrecy {
    /// It holds none.
    Clean,
    /// It holds some.
    Held(Vec<Refusal>),
    /// It is too large to be searched.
    Unknown,
}

/// A search for secrets in what a fix brings: contents, targets of links, names.
struct SecretSearch<'s> {
    workspace: &'s Workspace,
    changes: &'s [FileChange],
    allowed: &'s BTreeSet<LeakPlace>,
    session: &'s Session<'s>,
    /// The files with a secret of this job.
    of_job: Vec<String>,
    /// Where else something looks like a secret.
    others: Vec<String>,
}

/// Looks for secrets in a fix. Nothing at an allowed place is one, unless it is a secret of this job.
pub(super) fn of_changes(
    workspace: &Workspace,
    changes: &[FileChange],
    allowed: &BTreeSet<LeakPlace>,
    session: &Session<'_>,
) -> Result<Secrecy, DeliveryStop> {
    let (of_job, others) = (Vec::new(), Vec::new());
    let mut search = SecretSearch { workspace, changes, allowed, session, of_job, others };
    search.names();
    let is_all = search.contents()?;
    let found = search.refusals();
    Ok(match (found.is_empty(), is_all) {
        (false, _) => Secrecy::Held(found),
        (true, true) => Secrecy::Clean,
        // Refuses no delivery, because the policy refuses a file of this size anyway; but no patch
        // of it is kept.
        (true, false) => Secrecy::Unknown,
    })
}

/// Refuses texts about a fix that hold something that looks like a secret; each has a name for people.
pub(super) fn check_texts(texts: &[(&str, &str)], session: &Session<'_>) -> Result<(), DeliveryStop> {
    let mut places = Vec::new();
    for (name, text) in texts {
        let found = leaks::find(text.as_bytes());
        places
            .extend(found.iter().map(|leak| format!("{name}, line {}: {}", leak.lines.start(), kind(leak))));
        if session.redactor.finds(text.as_bytes()) {
            places.push(format!("{name}: a secret of this job"));
        }
    }
    if places.is_empty() {
        return Ok(());
    }
    Err(DeliveryStop::about("what the run says of its fix holds a secret, which is not published", places))
}

/// Shows a text without anything in it that is secret, or looks so.
pub(super) fn without_secrets(text: &str, session: &Session<'_>) -> String {
    match session.redactor.text(text) {
        Cow::Borrowed(text) => leaks::masked(text),
        Cow::Owned(text) => leaks::masked(&text),
    }
}

fn kind(leak: &Leak) -> String {
    format!("{} ({})", leak.what, leak.rule)
}

impl SecretSearch<'_> {
    fn names(&mut self) {
        // The name of a file that goes away was published before.
        for change in self.changes.iter().filter(|change| change.new.is_some()) {
            let path = change.path.as_bytes();
            if self.session.redactor.finds(path) {
                self.of_job.push(format!("{} (its name)", self.shown(&change.path)));
            }
            let shown = self.shown(&change.path);
            let found = leaks::find(path);
            self.others.extend(found.iter().map(|leak| format!("{shown}: its name is {}", kind(leak))));
        }
    }

    /// Looks into all files that are not too large. Tells whether these are all.
    fn contents(&mut self) -> Result<bool, DeliveryStop> {
        let brings = |change: &&FileChange| {
            // A repository inside of this one has no contents here, only the id of its commit.
            change.new.as_ref().is_some_and(|new| {
                new.mode != FileMode::Repository && change.old.as_ref().is_none_or(|old| old.id != new.id)
            })
        };
        let sides =
            self.changes.iter().filter(brings).filter_map(|change| Some((change, change.new.as_ref()?)));
        let (small, large): (Vec<_>, Vec<_>) = sides.partition(|(_, new)| new.size <= MOST_SEARCHED);
        for group in groups(&small) {
            let ids: Vec<&ObjectId> = group.iter().map(|(_, new)| &new.id).collect();
            let blobs = self
                .workspace
                .blobs(&ids)
                .map_err(|why| DeliveryStop::refused(one_line(&why.to_string(), 300)))?;
            for ((change, new), blob) in group.iter().zip(&blobs) {
                self.content(change, new, blob)?;
            }
        }
        Ok(large.is_empty())
    }

    fn content(&mut self, change: &FileChange, new: &FileSide, blob: &[u8]) -> Result<(), DeliveryStop> {
        // Also where it only moved: a secret of this job is in use.
        if self.session.redactor.finds(blob) {
            self.of_job.push(self.shown(&change.path));
        }
        // What only moved is published already.
        let mut sides = self.changes.iter().filter_map(|change| change.old.as_ref());
        let mut found = leaks::find(blob);
        if found.is_empty() || sides.any(|old| old.id == new.id) {
            return Ok(());
        }
        match &change.old {
            Some(old) => {
                let added = self.added(old, new)?;
                // Lines of a leak are counted from 1.
                let is_new = |leak: &Leak| {
                    added
                        .iter()
                        .any(|lines| lines.start < *leak.lines.end() && *leak.lines.start() <= lines.end)
                };
                found.retain(is_new);
            }
            None => self.without_moved(&mut found)?,
        }
        let shown = self.shown(&change.path);
        for leak in found {
            let line = *leak.lines.start();
            if !self.allowed.contains(&LeakPlace { path: change.path.clone(), line }) {
                self.others.push(format!("{shown}:{line}: {}", kind(&leak)));
            }
        }
        Ok(())
    }

    /// Returns the lines that a change adds, counted from zero.
    fn added(&self, old: &FileSide, new: &FileSide) -> Result<Vec<Range<usize>>, DeliveryStop> {
        let diff = self.workspace.plain_diff(&old.id, &new.id).map_err(broken)?;
        Ok(hunks(&diff).into_iter().map(|hunk| hunk.new).filter(|lines| !lines.is_empty()).collect())
    }

    /// Leaves out what stood in files that the fix removes: a file was renamed and changed.
    fn without_moved(&self, found: &mut Vec<Leak>) -> Result<(), DeliveryStop> {
        let gone = self.changes.iter().filter(|change| change.new.is_none());
        let gone = gone.filter_map(|change| change.old.as_ref());
        // What only moved out of a larger one is refused all the same: a false alarm, but no secret gets out.
        let gone = gone.filter(|old| old.mode != FileMode::Repository && old.size <= MOST_AT_ONCE);
        for old in gone {
            if found.is_empty() {
                return Ok(());
            }
            // Where no such search can be made, all of them are reported.
            let Ok(values) = AhoCorasick::new(found.iter().map(|leak| &leak.value)) else { return Ok(()) };
            let blob = self.workspace.blobs(&[&old.id]).map_err(broken)?.concat();
            let known: BTreeSet<Vec<u8>> =
                values.find_overlapping_iter(&blob).map(|found| blob[found.range()].to_vec()).collect();
            found.retain(|leak| !known.contains(&leak.value));
        }
        Ok(())
    }

    fn shown(&self, path: &str) -> String {
        without_secrets(path, self.session)
    }

    fn refusals(self) -> Vec<Refusal> {
        let mut found = Vec::new();
        if !self.of_job.is_empty() {
            let why = "a changed file holds a secret of this job; the patch is not kept either".to_owned();
            found.push(Refusal { why, paths: self.of_job });
        }
        if !self.others.is_empty() {
            let count = plural(self.others.len() as u64, "place");
            let why = format!(
                "the fix holds what looks like a secret in {count}; the patch is not kept either. If it is real, revoke it \
                 and take it out; `--allow-secret PATH:LINE` allows an example at exactly that place"
            );
            found.push(Refusal { why, paths: self.others });
        }
        found
    }
}

/// Divides files into groups that are read at once.
fn groups<'g, 'c>(
    files: &'g [(&'c FileChange, &'c FileSide)],
) -> impl Iterator<Item = &'g [(&'c FileChange, &'c FileSide)]> {
    let mut rest = files;
    std::iter::from_fn(move || {
        let mut bytes = 0_u64;
        let fits = |(_, new): &&(&FileChange, &FileSide)| {
            bytes = bytes.saturating_add(new.size);
            bytes <= MOST_AT_ONCE
        };
        // A file that is larger than a group is a group of its own.
        let count = rest.iter().take_while(fits).count().max(1).min(rest.len());
        let (group, others) = rest.split_at(count);
        rest = others;
        (!group.is_empty()).then_some(group)
    })
}
