//! Runs of tests that end verified, and their trees.

use std::sync::LazyLock;

use super::subjects::BundleFile;
use crate::base::object::ObjectId;
use crate::base::sum::Sum;
use crate::engine::changes::{Changes, KnownStart, StartTree, TreeChanges, TreeIds};
use crate::engine::event::{Event, LoopComplete, LoopStart};
use crate::engine::outcome::{Outcome, TerminatedBy};
use crate::engine::verification::{CheckRecord, Confirmed, JudgesRecord, Verification, VerifiedExtent};
use crate::evaluate::verdict::Verdict;
use crate::report::testing::{Journal, state};

/// A bundle that nobody opens.
pub(crate) static BUNDLE: LazyLock<BundleFile> =
    LazyLock::new(|| BundleFile { name: "run.llz".to_owned(), sum: Sum::of(b"run") });

pub(crate) fn id(letter: char) -> ObjectId {
    ObjectId::parse(&letter.to_string().repeat(40)).unwrap()
}

/// The commit `c` with the tree `d`.
pub(crate) fn ids() -> TreeIds {
    TreeIds { commit: id('c'), tree: id('d'), index: Some(id('d')), rest: None }
}

/// A run whose check passed on the tree of its commit, before its end.
pub(crate) fn checked() -> Journal {
    let mut journal = Journal::start();
    let start = KnownStart {
        ids: ids(),
        stands_for: None,
        entries: Vec::new(),
        before: Vec::new(),
        unseen: Vec::new(),
        ignored: Vec::new(),
        place: None,
        known_index: None,
    };
    begun(&mut journal).tree = Some(StartTree::Known(Box::new(start)));
    journal.step(("check", 1), "make", (0, ""), "yes", "done");
    journal
}

/// The same with its end.
pub(crate) fn verified() -> Journal {
    let mut journal = checked();
    succeed(&mut journal);
    journal
}

/// Ends a run verified, on the tree of its commit.
pub(crate) fn succeed(journal: &mut Journal) {
    journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
    let end = ended(journal);
    end.changes = Some(Changes::Known(Box::new(TreeChanges::none(ids()))));
    end.verification = Some(Box::new(Verification {
        tree: Some(id('d')),
        checks: vec![CheckRecord {
            state: state("check"),
            verdict: Verdict::new("yes"),
            tree: Some(id('d')),
            confirmed: Confirmed::InRun,
        }],
        judges: JudgesRecord::unchanged(),
        suppressions: Vec::new(),
        reasons: Vec::new(),
        stale: Vec::new(),
        unknown: None,
        dirty_start: None,
        extent: VerifiedExtent::Whole,
        proves_nothing: Vec::new(),
        spoils_success: false,
    }));
}

pub(crate) fn begun(journal: &mut Journal) -> &mut LoopStart {
    let first = &mut journal.events.first_mut().unwrap().event;
    let Event::LoopStart(start) = first else { panic!("a run begins with its start, not with {first:?}") };
    start
}

pub(crate) fn ended(journal: &mut Journal) -> &mut LoopComplete {
    let last = &mut journal.events.last_mut().unwrap().event;
    let Event::LoopComplete(end) = last else { panic!("a run ends with its end, not with {last:?}") };
    end
}

pub(crate) fn verification(journal: &mut Journal) -> &mut Verification {
    ended(journal).verification.as_mut().unwrap()
}

pub(crate) fn tree_changes(journal: &mut Journal) -> &mut TreeChanges {
    match ended(journal).changes.as_mut().unwrap() {
        Changes::Known(changes) => changes,
        Changes::Unknown { unknown } => panic!("{unknown}"),
    }
}
