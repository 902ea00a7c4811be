//! What the statements of a run are about: its commit, its tree, and the bundle that holds it.

use super::in_toto::Subject;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::engine::changes::{KnownStart, StartTree};
use crate::report::digest::Digest;

/// The digest of a commit, as in-toto names its algorithm.
pub(crate) const COMMIT: &str = "gitCommit";

/// The digest of a tree.
pub(crate) const TREE: &str = "gitTree";

/// The digest of a file.
pub(crate) const FILE: &str = "sha256";

/// The bundle of a run, as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundleFile {
    /// Its name.
    pub(crate) name: String,
    /// Its digest.
    pub(crate) sum: Sum,
}

/// Returns the tree on which a run ended; none where it is unknown.
pub(crate) fn tree(digest: &Digest) -> Option<&ObjectId> {
    digest.verification()?.tree.as_ref()
}

/// Returns that tree where it holds the loop: of another one, somebody could have said anything.
pub(crate) fn attested_tree(digest: &Digest) -> Option<&ObjectId> {
    tree(digest).filter(|_| holds_loop(digest))
}

/// Returns the commit at which a run began, where its tree is the one on which the run ended and holds the loop: where nothing
/// differed from it at the start, nothing changed since, and nothing was out of sight. A commit that the run made itself is not a
/// subject: the journal does not say what is in it.
pub(crate) fn commit(digest: &Digest) -> Option<&ObjectId> {
    let start = start(digest)?;
    let changes = digest.changes()?;
    let is_clean = start.entries.is_empty() && start.before.is_empty() && start.unseen.is_empty();
    let is_same = changes.is_nothing() && start.ids == changes.start && changes.start == changes.end;
    let is_seen = changes.unseen.is_empty() && changes.before.is_empty() && changes.end.rest.is_none();
    let is_whole = is_clean && is_same && is_seen && changes.as_committed;
    (is_whole && attested_tree(digest) == Some(&changes.end.tree)).then_some(&start.ids.commit)
}

/// Returns the directory in which a run began, from the top of the working tree; none where it is unknown.
pub(crate) fn directory(digest: &Digest) -> Option<&str> {
    Some(&start(digest)?.place.as_ref()?.inside)
}

/// Tells whether the tree on which a run began holds the files of its loop. What git ignores, or lies elsewhere, may say anything of
/// whatever commit there is.
fn holds_loop(digest: &Digest) -> bool {
    let (Some(begun), Some(start)) = (digest.start(), start(digest)) else { return false };
    let inside = directory(digest).unwrap_or_default();
    let is_held = |file: &String| {
        gitpath::from_top(inside, file)
            .is_some_and(|path| start.ignored.iter().all(|ignored| ignored.path != path))
    };
    std::iter::once(&begun.source.file).chain(&begun.source.others).all(is_held)
}

fn start(digest: &Digest) -> Option<&KnownStart> {
    match &digest.start()?.tree {
        Some(StartTree::Known(start)) => Some(start),
        Some(StartTree::Unknown { .. }) | None => None,
    }
}

/// Returns everything that is known of commit, tree and bundle.
pub(crate) fn of(digest: &Digest, bundle: Option<&BundleFile>) -> Vec<Subject> {
    let commit = commit(digest).map(|id| Subject::new("commit", COMMIT, id.as_str()));
    let tree = attested_tree(digest).map(|id| Subject::new("tree", TREE, id.as_str()));
    let bundle = bundle.map(|file| Subject::new(&file.name, FILE, &file.sum.to_string()));
    [commit, tree, bundle].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BUNDLE, begun, id, tree_changes, verification, verified};
    use super::*;
    use crate::engine::changes::{ChangeKind, ChangedFile, IgnoredFile, TreeIds};
    use crate::report::testing::Journal;

    fn named(journal: &Journal) -> Vec<String> {
        let all = of(&journal.digest(), Some(&BUNDLE));
        all.iter().flat_map(|subject| subject.digest.keys().cloned()).collect()
    }

    fn start(journal: &mut Journal) -> &mut crate::engine::changes::KnownStart {
        match begun(journal).tree.as_mut().unwrap() {
            StartTree::Known(start) => start,
            StartTree::Unknown { unknown } => panic!("{unknown}"),
        }
    }

    #[test]
    fn a_run_on_its_commit_is_about_commit_tree_and_bundle() {
        let journal = verified();
        assert_eq!(named(&journal), [COMMIT, TREE, FILE]);
        let digest = journal.digest();
        assert_eq!((commit(&digest), tree(&digest)), (Some(&id('c')), Some(&id('d'))));
    }

    #[test]
    fn a_commit_with_another_tree_is_no_subject() {
        #[track_caller]
        fn check(change: impl FnOnce(&mut Journal)) {
            let mut journal = verified();
            change(&mut journal);
            assert_eq!(named(&journal), [TREE, FILE]);
        }
        let file = || ChangedFile {
            path: "a".into(),
            from: None,
            kind: ChangeKind::Modified,
            size: None,
            tracked: true,
            lines: None,
            run: None,
            not_in_patch: None,
        };
        check(|journal| tree_changes(journal).files.push(file()));
        check(|journal| tree_changes(journal).more = 1);
        check(|journal| tree_changes(journal).before.push(file()));
        check(|journal| tree_changes(journal).unseen.push("a submodule".into()));
        check(|journal| tree_changes(journal).as_committed = false);
        check(|journal| {
            tree_changes(journal).end = TreeIds { commit: id('e'), ..tree_changes(journal).end.clone() }
        });
        check(|journal| tree_changes(journal).end.rest = Some("a".into()));
        check(|journal| start(journal).before.push(file()));
        check(|journal| start(journal).unseen.push("a filter".into()));
        check(|journal| verification(journal).tree = Some(id('e')));
    }

    #[test]
    fn a_loop_that_the_commit_does_not_have_says_nothing_of_it() {
        let mut journal = verified();
        let source = begun(&mut journal).source.clone();
        let ignored = |path: &str| IgnoredFile { path: path.to_owned(), found: None };
        start(&mut journal).ignored.push(ignored("phpunit.xml"));
        assert_eq!(named(&journal), [COMMIT, TREE, FILE]);
        start(&mut journal).ignored.push(ignored(&source.file));
        assert_eq!(named(&journal), [FILE]);
        start(&mut journal).ignored.pop();
        begun(&mut journal).source.others.push("/elsewhere/part.yaml".into());
        assert_eq!(named(&journal), [FILE]);
    }

    #[test]
    fn where_no_tree_is_known_the_bundle_alone_is_left() {
        let mut journal = verified();
        begun(&mut journal).tree = Some(StartTree::Unknown { unknown: "no".into() });
        assert_eq!(named(&journal), [FILE]);
        let mut journal = verified();
        verification(&mut journal).tree = None;
        assert_eq!(named(&journal), [FILE]);
        assert_eq!(of(&Journal::start().digest(), None), []);
    }
}
