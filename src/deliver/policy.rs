//! What may be delivered: fixes of runs that verified something, without changes that no machine should make unseen.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::protected_paths::{Deliverable, deliverable};
use crate::base::relative::{RelativePath, folded, is_held_everywhere};
use crate::base::text::{one_line, plural};
use crate::engine::changes::{ChangedFile, FileMode};
use crate::engine::event::LoopComplete;
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::verification::{JudgesStanding, Reason, Verification, VerifiedExtent};
use crate::forge::change::FileChange;
use crate::forge::standing::{FixStanding, Refusal};
use crate::judges::found_judges::JudgesState;
use crate::report::digest::Digest;

/// The most files that one delivery changes.
pub const MOST_FILES: usize = 100;

/// The most bytes that the changed files have together.
pub const MOST_BYTES: u64 = 4 << 20;

/// What is delivered although it is not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// What nothing verified.
    pub unverified: bool,
    /// What only a change of the judges speaks against.
    pub judges: bool,
}

/// Tells whether the fix of a run may be delivered. One that nothing verified may where that is accepted, as a draft: but not
/// what a run has left unfinished that somebody stopped, or that goes on elsewhere, and nothing that would mix the fix with
/// the work of others.
///
/// # Errors
/// Why it may not.
pub fn of_run(digest: &Digest, accepted: Accepted) -> Result<FixStanding, Refusal> {
    let Some(end) = digest.end() else {
        return Err(Refusal::new(if digest.start().is_some() {
            "the run has not ended, or was killed before it could say how"
        } else {
            "the run never began"
        }));
    };
    if goes_on(end) {
        let outcome = end.outcome.word();
        return Err(Refusal::new(format!(
            "the run is not finished ({outcome}): continue it, and deliver it when it has ended"
        )));
    }
    let Some(changes) = digest.changes() else {
        let why = one_line(digest.changes_unknown().unwrap_or("its journal does not say it"), 300);
        return Err(Refusal::new(format!("it is not known what the run changed: {why}")));
    };
    if !changes.before.is_empty() {
        return Err(Refusal {
            why: "the run began with changes that no commit has, and the fix cannot be told from them: run it again on a \
                  clean checkout"
                .to_owned(),
            paths: changes.before.iter().map(|file| file.path.clone()).collect(),
        });
    }
    let of_another: Vec<_> = changes.files.iter().filter(|file| file.run.is_some()).collect();
    if !of_another.is_empty() {
        return Err(Refusal {
            why: "another run changed files at the same time, and the fix cannot be told from them: run it again alone"
                .to_owned(),
            paths: of_another.into_iter().map(|file| file.path.clone()).collect(),
        });
    }
    let why_not = |file: &ChangedFile| {
        let why = file.not_in_patch.as_deref()?;
        Some(format!("{}: {}", file.path, one_line(why, 200)))
    };
    let missing: Vec<String> = changes.files.iter().filter_map(why_not).collect();
    if !missing.is_empty() {
        let why =
            "the run changed what no patch can hold, and without it the fix is not the one that was checked";
        return Err(Refusal { why: why.to_owned(), paths: missing });
    }
    let Some(verification) = end.verification.as_deref() else {
        return unverified(accepted, || {
            "its journal does not say on which tree it was verified, as one of an earlier version".to_owned()
        });
    };
    // The trees are compared because a step behind the last check may have changed files.
    if is_verified(end, verification) && verification.tree.as_ref() == Some(&changes.end.tree) {
        let is_whole = verification.extent == VerifiedExtent::Whole;
        let is_plain = is_whole && verification.judges.state != JudgesStanding::Confirmed;
        return Ok(if is_plain { FixStanding::Verified } else { FixStanding::ToReview });
    }
    // Where there is another reason as well, accepting the judges would settle nothing.
    if verification.spoils_success && verification.reasons == [Reason::JudgesChanged] {
        return if accepted.judges { Ok(FixStanding::ToReview) } else { unconfirmed(verification, accepted) };
    }
    unverified(accepted, || match verification.why().filter(|_| verification.is_refuted()) {
        Some(why) => one_line(&why, 300),
        None if end.outcome == Outcome::Success => "nothing verified its success".to_owned(),
        None => format!("it ended as {}", end.outcome.word()),
    })
}

/// Decides about a run that verified nothing.
fn unverified(accepted: Accepted, what: impl Fn() -> String) -> Result<FixStanding, Refusal> {
    if accepted.unverified {
        return Ok(FixStanding::Unverified);
    }
    Err(Refusal::new(format!(
        "the run verified no fix: {}. `--unverified` delivers its changes as a draft",
        what()
    )))
}

/// Decides about a run that changed its judges, which nothing confirms.
fn unconfirmed(verification: &Verification, accepted: Accepted) -> Result<FixStanding, Refusal> {
    if accepted.unverified {
        return Ok(FixStanding::Unverified);
    }
    let doubtful = verification.judges.files.iter().filter(|file| file.kind.state() >= JudgesState::Changed);
    let suppressed = verification.suppressions.iter().map(|one| format!("{}:{}", one.path, one.line));
    Err(Refusal {
        why: "the run verified no fix: it changed what its checks are judged by, and nothing confirms that it passes without \
              that. `--allow-judges` delivers it as a draft that names them"
            .to_owned(),
        paths: doubtful.map(|file| file.path.clone()).chain(suppressed).collect(),
    })
}

/// Tells whether a run is to go on: another job takes it up, or somebody stopped it in the middle of its work. One that
/// came to a limit of its own has ended, although more time or money could take it further.
fn goes_on(end: &LoopComplete) -> bool {
    match end.outcome {
        Outcome::Handoff | Outcome::Interrupted | Outcome::LeaseLost => true,
        // Its events could not be written, and it is resumed from those that were.
        Outcome::Error => end.terminated_by == TerminatedBy::JournalLost,
        Outcome::Success
        | Outcome::Failure
        | Outcome::Exhausted
        | Outcome::Stopped
        | Outcome::Cancelled
        | Outcome::Blocked
        | Outcome::OverBudget
        | Outcome::Unavailable
        | Outcome::Timeout => false,
    }
}

/// A verified success, or a run whose only fault is what it changed.
fn is_verified(end: &LoopComplete, verification: &Verification) -> bool {
    let only_changed = end.terminated_by == TerminatedBy::UncommittedChanges;
    end.verified && verification.holds() && (end.outcome == Outcome::Success || only_changed)
}

/// Refuses changes that no machine may make. Exactly the paths in `allowed` are let through, but never those of
/// workflows and loops.
pub fn of_changes(changes: &[FileChange], allowed: &BTreeSet<String>) -> Vec<Refusal> {
    let mut refused = Vec::new();
    let mut refuse = |why: &str, is_meant: &dyn Fn(&FileChange) -> bool| {
        let paths: Vec<String> =
            changes.iter().filter(|change| is_meant(change)).map(|change| change.path.clone()).collect();
        if !paths.is_empty() {
            refused.push(Refusal { why: why.to_owned(), paths });
        }
    };
    let protected = |change: &FileChange| deliverable(&change.path);
    refuse("workflows and loops are never changed by a delivery", &|change| {
        protected(change) == Deliverable::Never
    });
    refuse(
        "files that people have to change themselves; `--allow-path` allows each by its name",
        &|change| protected(change) == Deliverable::ByName && !allowed.contains(&change.path),
    );
    refuse("other repositories inside of this one cannot be delivered", &|change| {
        [&change.old, &change.new].into_iter().flatten().any(|side| side.mode == FileMode::Repository)
    });
    refuse("names that are not plain paths on every system cannot be delivered", &|change| {
        // What stands there already is no matter of the fix, and a path may be allowed by its name.
        let is_odd =
            || is_new_name(change) && !is_held_everywhere(&change.path) && !allowed.contains(&change.path);
        RelativePath::parse(&change.path).is_err() || is_odd()
    });
    // What only became executable has no new contents.
    let is_new = |change: &&FileChange| match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.id != new.id,
        (None, Some(_)) | (_, None) => true,
    };
    let sizes = changes.iter().filter(is_new).filter_map(|change| change.new.as_ref()).map(|new| new.size);
    let bytes = sizes.fold(0, u64::saturating_add);
    if changes.len() > MOST_FILES {
        let files = plural(changes.len() as u64, "file");
        refused.push(Refusal::new(format!("the fix changes {files}; at most {MOST_FILES} are delivered")));
    }
    if bytes > MOST_BYTES {
        let most = MOST_BYTES >> 20;
        refused.push(Refusal::new(format!(
            "the changed files have {bytes} bytes together; at most {most} MiB are delivered"
        )));
    }
    refused
}

/// Tells whether a fix adds a file.
fn is_new_name(change: &FileChange) -> bool {
    change.old.is_none() && change.new.is_some()
}

/// Refuses files that a fix adds beside others of the tree whose names differ from theirs in case alone: on Windows and macOS, one of
/// the two is lost.
///
/// # Errors
/// The files.
pub fn of_names(changes: &[FileChange], tree: &[String], allowed: &BTreeSet<String>) -> Result<(), Refusal> {
    let plain = |path: &str| path.split('/').map(folded).collect::<Vec<_>>().join("/");
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    for path in tree {
        *names.entry(plain(path)).or_default() += 1;
    }
    let is_twin = |change: &&FileChange| names.get(&plain(&change.path)).is_some_and(|count| *count > 1);
    let added = changes.iter().filter(|change| is_new_name(change) && !allowed.contains(&change.path));
    let paths: Vec<String> = added.filter(is_twin).map(|change| change.path.clone()).collect();
    if paths.is_empty() {
        return Ok(());
    }
    let why = "names that differ from another one in case alone cannot be delivered: on some systems both are one file";
    Err(Refusal { why: why.to_owned(), paths })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::object::ObjectId;
    use crate::engine::changes::{ChangeKind, Changes, TreeChanges, TreeIds};
    use crate::engine::event::Event;
    use crate::forge::change::FileSide;
    use crate::report::testing::Journal;

    fn side(mode: FileMode, size: u64) -> FileSide {
        FileSide { mode, id: ObjectId::parse(&"1".repeat(40)).unwrap(), size }
    }

    fn change(path: &str) -> FileChange {
        FileChange { path: path.to_owned(), old: None, new: Some(side(FileMode::File, 1)) }
    }

    #[track_caller]
    fn check(path: &str, allowed: &[&str], refused: bool) {
        let allowed = allowed.iter().map(|path| (*path).to_owned()).collect();
        let found = of_changes(&[change(path)], &allowed);
        assert_eq!(!found.is_empty(), refused, "{path} {allowed:?}: {found:?}");
        // What goes away is changed as well.
        let gone = FileChange { old: change(path).new, ..change(path) };
        assert_eq!(
            !of_changes(&[FileChange { new: None, ..gone }], &allowed).is_empty(),
            refused,
            "{path} goes"
        );
    }

    #[test]
    fn protected_files_are_refused_however_they_are_written() {
        for path in [
            ".github/workflows/ci.yml",
            ".GitHub/x",
            ".gitea/workflows/a.yml",
            ".forgejo/workflows/a.yml",
            ".github",
            "github~1/x",
            "gi7eba~1",
            ".loops/a.yaml",
            "sub/.loops/tmp/x",
            ".LOOPS/x",
        ] {
            check(path, &[], true);
            check(path, &[path], true);
        }
        for path in [
            ".gitmodules",
            ".gitlab-ci.yml",
            "Cargo.lock",
            "sub/Cargo.LOCK",
            "package-lock.json",
            "a/b/go.sum",
            "CODEOWNERS",
            "docs/CODEOWNERS",
            "CLAUDE.md",
            "x/claude.md",
            "AGENTS.md",
            "sub/.claude/settings.json",
            ".Claude/x",
            "Cargo.lock.",
            "Cargo\u{200c}.lock",
            "CARGO~1.LOC",
            "package-lock.json::$DATA",
            "PACKAG~1.JSO",
            "CLAUDE~1.MD",
            "AGENTS.md ",
            "CODEOW~1",
            "requirements-dev.lock",
            "a/.terraform.lock.hcl",
            "docs/codeowners",
            "GITMOD~1",
            ".circleci/config.yml",
            "azure-pipelines.release.yaml",
            "build/azure-pipelines.yml",
            "ci/Jenkinsfile",
            "Jenkinsfile.release",
            "BITBUCKET-pipelines.yml",
            ".buildkite/pipeline.yml",
            ".woodpecker.yaml",
            ".woodpecker/a.yml",
            ".drone.yml",
            ".travis.yml",
            "appveyor.yml",
            ".appveyor.yml",
            ".teamcity/settings.kts",
            ".gitlab/ci/a.yml",
            ".gitlab-ci/a.yml",
            ".cirrus.yml",
            ".semaphore/semaphore.yml",
            "codefresh.yml",
            "\u{200c}.circleci/x",
            ".claude.json",
            "sub/.mcp.json",
            "a/b/GEMINI.md",
            ".cursor/rules/x",
            "web/.npmrc",
            ".cargo/config.toml",
            "lefthook.yml",
            ".hu\u{17f}ky/pre-commit",
        ] {
            check(path, &[], true);
            check(path, &[path], false);
            check(path, &["other", "*", &format!("./{path}")], true);
        }
        for path in [
            "src/main.rs",
            "a/CODEOWNERS",
            "docs/x/CODEOWNERS",
            "lock",
            "block",
            "clock.rs",
            "src/lock.rs",
            "docs.lock/x",
            "package.json",
            "agents/x.md",
            ".cargo/registry/x",
            "sub/.travis.yml",
            "docs/appveyor.yml",
            "travis.yml",
            ".gitlab/issue_templates/x.md",
            "Cargo.toml",
            "github/x",
            "a.github/x",
            "sub/.github/x",
            "claude.mdx",
            "loops/x.yaml",
            ".gitignore",
            "é",
        ] {
            check(path, &[], false);
        }
    }

    #[test]
    fn a_delivery_has_bounds() {
        let none = BTreeSet::new();
        let of = |count: usize, size: u64| {
            let named = (0..count).map(|number| FileChange {
                new: Some(side(FileMode::File, size)),
                ..change(&format!("f{number}"))
            });
            of_changes(&named.collect::<Vec<_>>(), &none).len()
        };
        assert_eq!((of(100, 1), of(101, 1)), (0, 1));
        assert_eq!((of(4, 1 << 20), of(5, 1 << 20), of(1, MOST_BYTES), of(1, MOST_BYTES + 1)), (0, 1, 0, 1));
        assert_eq!(of(101, 1 << 20), 2);
    }

    #[test]
    fn other_repositories_and_odd_names_are_refused() {
        let none = BTreeSet::new();
        let module = side(FileMode::Repository, 0);
        let gone = FileChange { path: "m".to_owned(), old: Some(module.clone()), new: None };
        let comes = FileChange { path: "m".to_owned(), old: None, new: Some(module) };
        let becomes = FileChange { new: comes.new.clone(), old: change("m").new, path: "m".to_owned() };
        let odd = ["a\nb", "a\u{1b}[2J", "../a", "/a", ".git/config", "a\\b", "a\u{2028}b", ""].map(change);
        for odd in [gone, comes, becomes].into_iter().chain(odd) {
            assert_eq!(of_changes(std::slice::from_ref(&odd), &none).len(), 1, "{odd:?}");
        }
    }

    #[test]
    fn names_that_some_system_cannot_hold_are_refused_where_a_fix_adds_them() {
        for path in ["CON", "src/aux.txt", "a:b", "x.", "tr "] {
            let allowed = BTreeSet::from([path.to_owned()]);
            assert_eq!(of_changes(&[change(path)], &BTreeSet::new()).len(), 1, "{path}");
            assert!(of_changes(&[change(path)], &allowed).is_empty(), "{path}");
            let there = FileChange { old: Some(side(FileMode::File, 2)), ..change(path) };
            assert!(of_changes(&[there], &BTreeSet::new()).is_empty(), "{path}");
        }
        let tree = ["src/AB", "src/ab", "c", "d"].map(str::to_owned);
        let refused = |path: &str, allowed: &[&str]| {
            let allowed = allowed.iter().map(|path| (*path).to_owned()).collect();
            of_names(&[change(path)], &tree, &allowed).is_err()
        };
        assert!(refused("src/AB", &[]) && !refused("src/AB", &["src/AB"]) && !refused("c", &[]));
    }

    #[test]
    fn what_has_no_new_contents_does_not_count() {
        let large = side(FileMode::File, MOST_BYTES + 1);
        let executable = FileSide { mode: FileMode::Executable, ..large.clone() };
        let other = FileSide { id: ObjectId::parse(&"2".repeat(40)).unwrap(), ..large.clone() };
        let refused = |old: Option<&FileSide>, new: Option<&FileSide>| {
            let change = FileChange { path: "a".to_owned(), old: old.cloned(), new: new.cloned() };
            !of_changes(&[change], &BTreeSet::new()).is_empty()
        };
        assert!(!refused(Some(&large), Some(&executable)) && !refused(Some(&large), None));
        assert!(refused(Some(&large), Some(&other)) && refused(None, Some(&large)));
        let endless = FileSide { size: u64::MAX, ..other };
        let changes = ["a", "b"].map(|path| FileChange { new: Some(endless.clone()), ..change(path) });
        assert_eq!(of_changes(&changes, &BTreeSet::new()).len(), 1);
    }

    fn ended(outcome: Outcome, by: TerminatedBy, verified: bool) -> Digest {
        with(outcome, by, verified, |_| {})
    }

    /// The digest of a run that ended so, and changed `a`.
    fn with(
        outcome: Outcome,
        by: TerminatedBy,
        verified: bool,
        change: impl FnOnce(&mut TreeChanges),
    ) -> Digest {
        whole(outcome, by, verified, change, |_| {})
    }

    fn whole(
        outcome: Outcome,
        by: TerminatedBy,
        verified: bool,
        change: impl FnOnce(&mut TreeChanges),
        edit: impl FnOnce(&mut LoopComplete),
    ) -> Digest {
        let mut journal = Journal::start();
        journal.step(("check", 1), "x", (0, ""), "yes", "done").end(outcome, by, "done", verified);
        let ids = |letter: &str| {
            let id = ObjectId::parse(&letter.repeat(40)).unwrap();
            TreeIds { commit: id.clone(), tree: id, index: None, rest: None }
        };
        let mut changes = TreeChanges {
            start: ids("a"),
            end: ids("b"),
            files: vec![changed("a")],
            more: 0,
            commits: Vec::new(),
            before: Vec::new(),
            as_committed: false,
            patch: None,
            no_patch: None,
            unseen: Vec::new(),
        };
        change(&mut changes);
        let Some(Event::LoopComplete(end)) = journal.events.last_mut().map(|last| &mut last.event) else {
            panic!("the run has ended")
        };
        let tree = changes.end.tree.clone();
        end.verification = Some(Box::new(if verified {
            Verification::verified_on(tree)
        } else {
            Verification::refused_on(tree, Reason::Unobserved)
        }));
        end.changes = Some(Changes::Known(Box::new(changes)));
        edit(end);
        journal.digest()
    }

    fn changed(path: &str) -> ChangedFile {
        ChangedFile {
            path: path.to_owned(),
            from: None,
            kind: ChangeKind::Modified,
            size: Some(1),
            tracked: true,
            lines: None,
            run: None,
            not_in_patch: None,
        }
    }

    #[test]
    fn a_verified_success_is_delivered_and_nothing_else_without_being_asked_for() {
        use Outcome as O;
        use TerminatedBy as By;
        for unverified in [false, true] {
            let of = |digest: &Digest| of_run(digest, accepting(unverified)).map_err(|refusal| refusal.why);
            assert_eq!(of(&ended(O::Success, By::Terminal, true)), Ok(FixStanding::Verified));
            assert_eq!(of(&ended(O::Failure, By::UncommittedChanges, true)), Ok(FixStanding::Verified));
        }
        for (outcome, by, verified) in [
            (O::Success, By::Terminal, false),
            (O::Failure, By::UncommittedChanges, false),
            (O::Failure, By::Terminal, true),
            (O::Exhausted, By::MaxIterations, true),
            (O::Stopped, By::LoopStop, false),
            (O::Error, By::Error, false),
            (O::Blocked, By::Blocked, false),
            (O::Timeout, By::Timeout, true),
            (O::OverBudget, By::Budget, false),
            (O::Unavailable, By::Unavailable, false),
        ] {
            let digest = ended(outcome, by, verified);
            let why = of_run(&digest, Accepted::default()).unwrap_err().why;
            assert!(why.starts_with("the run verified no fix") && why.contains("`--unverified`"), "{why}");
            assert_eq!(of_run(&digest, accepting(true)), Ok(FixStanding::Unverified), "{outcome:?}");
        }
    }

    fn accepting(unverified: bool) -> Accepted {
        Accepted { unverified, ..Accepted::default() }
    }

    /// A run that ended so, with what verified it.
    fn with_verification(outcome: Outcome, edit: impl FnOnce(&mut LoopComplete)) -> Digest {
        whole(outcome, TerminatedBy::Terminal, true, |_| {}, edit)
    }

    #[test]
    fn what_holds_for_another_tree_or_for_none_is_not_delivered() {
        let refused = |edit: fn(&mut LoopComplete)| {
            let why =
                of_run(&with_verification(Outcome::Success, edit), Accepted::default()).unwrap_err().why;
            assert!(why.starts_with("the run verified no fix"), "{why}");
        };
        refused(|end| end.verification = None);
        refused(|end| {
            let tree = ObjectId::parse(&"c".repeat(40)).unwrap();
            end.verification = Some(Box::new(Verification::verified_on(tree)));
        });
        for reason in Reason::ALL {
            let digest = with_verification(Outcome::Success, |end| {
                let tree = ObjectId::parse(&"b".repeat(40)).unwrap();
                end.verification = Some(Box::new(Verification::refused_on(tree, reason)));
            });
            assert!(of_run(&digest, Accepted::default()).is_err(), "{reason:?}");
        }
    }

    #[test]
    fn judges_that_changed_are_for_people_to_look_at() {
        let of = |outcome: Outcome, accepted: Accepted, edit: fn(&mut Verification)| {
            let digest = with_verification(outcome, |end| {
                let tree = ObjectId::parse(&"b".repeat(40)).unwrap();
                let mut verification = Verification::verified_on(tree);
                edit(&mut verification);
                end.verified = verification.holds();
                end.verification = Some(Box::new(verification));
            });
            of_run(&digest, accepted).map_err(|refusal| refusal.why)
        };
        let changed = |verification: &mut Verification| {
            verification.judges.state = JudgesStanding::Changed;
            verification.reasons = vec![Reason::JudgesChanged];
            verification.spoils_success = true;
        };
        let judges = Accepted { judges: true, ..Accepted::default() };
        // Strictly, such a run is a failure.
        for outcome in [Outcome::Success, Outcome::Failure] {
            let why = of(outcome, Accepted::default(), changed).unwrap_err();
            assert!(why.contains("`--allow-judges`"), "{why}");
            assert_eq!(of(outcome, judges, changed), Ok(FixStanding::ToReview));
        }
        // A loop that ended in a failure of its own, or for which something else speaks, does not belong here.
        let failed = |verification: &mut Verification| {
            verification.reasons = vec![Reason::JudgesChanged];
        };
        assert!(of(Outcome::Failure, judges, failed).is_err());
        let stale = |verification: &mut Verification| {
            verification.reasons = vec![Reason::Stale, Reason::JudgesChanged];
            verification.spoils_success = true;
        };
        assert!(of(Outcome::Success, judges, stale).is_err());
        let confirmed =
            |verification: &mut Verification| verification.judges.state = JudgesStanding::Confirmed;
        assert_eq!(of(Outcome::Success, Accepted::default(), confirmed), Ok(FixStanding::ToReview));
        // The loop says `may: change`, so that nothing speaks against it.
        let may_change =
            |verification: &mut Verification| verification.judges.state = JudgesStanding::Changed;
        assert_eq!(of(Outcome::Success, Accepted::default(), may_change), Ok(FixStanding::Verified));
        let alone = |verification: &mut Verification| verification.extent = VerifiedExtent::EachAlone;
        assert_eq!(of(Outcome::Success, Accepted::default(), alone), Ok(FixStanding::ToReview));
    }

    #[test]
    fn a_run_that_goes_on_is_delivered_when_it_has_ended() {
        let mut killed = Journal::start();
        killed.step(("check", 1), "x", (0, ""), "yes", "fix");
        let mut at_rest = killed.digest();
        at_rest.was_killed();
        let check = |digest: &Digest| {
            for unverified in [false, true] {
                assert!(of_run(digest, accepting(unverified)).is_err());
            }
        };
        check(&ended(Outcome::Handoff, TerminatedBy::Handoff, true));
        check(&ended(Outcome::Interrupted, TerminatedBy::Interrupted, true));
        check(&ended(Outcome::Error, TerminatedBy::JournalLost, true));
        check(&killed.digest());
        check(&at_rest);
        check(&Digest::default());
    }

    #[test]
    fn a_fix_that_is_not_known_whole_and_alone_is_refused() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "x", (0, ""), "yes", "done");
        let untold = journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true).digest();
        let check = |digest: &Digest, paths: &[&str]| {
            for unverified in [false, true] {
                assert_eq!(of_run(digest, accepting(unverified)).unwrap_err().paths, paths);
            }
        };
        check(&untold, &[]);
        let success =
            |change: fn(&mut TreeChanges)| with(Outcome::Success, TerminatedBy::Terminal, true, change);
        check(&success(|changes| changes.before = vec![changed("b")]), &["b"]);
        check(&success(|changes| changes.files[0].run = Some("other".to_owned())), &["a"]);
        check(&success(|changes| changes.files[0].not_in_patch = Some("a\nb".to_owned())), &["a: a…"]);
    }
}
