//! What a run that changed the working tree comes to.

use super::super::changes::{
    ChangeKind, ChangedFile, Changes, KnownStart, SeenTree, StartTree, TreeChanges, TreeIds,
};
use super::*;
use crate::base::object::ObjectId;
use crate::machine::OnChange;

const LOOP: &str = "states:\n  check: {action: make check, on_yes: done, on_no: failed}\n  done: {terminal: true}\n  failed: {terminal: true}";

fn ids(letter: char) -> TreeIds {
    let id = ObjectId::parse(&letter.to_string().repeat(40)).unwrap();
    TreeIds { commit: id.clone(), tree: id.clone(), index: Some(id), rest: None }
}

/// A start on a known tree.
fn known(on_change: OnChange) -> Start {
    let start = start(true);
    let tree = KnownStart {
        ids: ids('a'),
        stands_for: None,
        entries: vec![],
        before: vec![],
        unseen: vec![],
        ignored: vec![],
        place: None,
        known_index: None,
    };
    let tree = Some(StartTree::Known(Box::new(tree)));
    Start { event: LoopStart { tree, on_change, ..start.event }, ..start }
}

/// The world of these tests: every run changes one tracked file.
pub(super) fn changed(start: &KnownStart) -> Changes {
    let file = ChangedFile {
        path: "src/a.rs".to_owned(),
        from: None,
        kind: ChangeKind::Modified,
        size: Some(1),
        tracked: true,
        lines: None,
        run: None,
        not_in_patch: None,
    };
    Changes::Known(Box::new(TreeChanges {
        start: start.ids.clone(),
        end: TreeIds { tree: ids('b').tree, ..start.ids.clone() },
        files: vec![file],
        more: 0,
        commits: vec![],
        before: vec![],
        as_committed: false,
        patch: None,
        no_patch: None,
        unseen: vec![],
    }))
}

/// The tree between the first and the last one.
pub(super) fn looked() -> SeenTree {
    SeenTree::Known(ids('b'))
}

fn end(start: Start, exit_code: i32) -> event::LoopComplete {
    let machine = machine(LOOP);
    let script = format!("make check: {exit_code}");
    match events(&machine, start, &world(&script)).pop() {
        Some(Event::LoopComplete(end)) => end,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_success_on_another_tree_is_a_failure_where_that_is_asked_for() {
    let failed = end(known(OnChange::Fail), 0);
    assert_eq!((failed.outcome, failed.exit_code), (Outcome::Failure, 1));
    assert_eq!(failed.terminated_by, TerminatedBy::UncommittedChanges);
    assert!(failed.verified && failed.changes.is_some());
    let reported = end(known(OnChange::Report), 0);
    assert_eq!((reported.outcome, reported.terminated_by), (Outcome::Success, TerminatedBy::Terminal));
    assert!(reported.changes.is_some());
}

#[test]
fn another_end_stays_what_it_is() {
    let failed = end(known(OnChange::Fail), 1);
    assert_eq!((failed.outcome, failed.terminated_by), (Outcome::Failure, TerminatedBy::Terminal));
    assert!(failed.changes.is_some());
}

#[test]
fn a_tree_that_is_not_known_is_not_looked_for() {
    let tree = Some(StartTree::Unknown { unknown: "no git".to_owned() });
    let start = start(true);
    let unknown = Start { event: LoopStart { tree, on_change: OnChange::Fail, ..start.event }, ..start };
    let end = end(unknown, 0);
    assert_eq!(end.outcome, Outcome::Success);
    assert_eq!(end.changes, Some(Changes::Unknown { unknown: "no git".to_owned() }));
}

#[test]
fn a_run_that_is_to_end_while_its_tree_is_looked_at_is_interrupted() {
    let machine = machine(LOOP);
    let mut engine = Engine::new(&machine, known(OnChange::Fail));
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine.handle(Input::ActionDone(Observation::exited(0, "")), Duration::ZERO).unwrap();
    assert!(matches!(engine.next(), Next::Measure(_)));
    assert!(engine.cancel(Signal::Term, Duration::ZERO).is_empty());
    let Next::Measure(request) = engine.next() else { panic!() };
    let changes = changed(&request.start);
    let events = engine.handle(Input::Measured(changes.into()), Duration::ZERO).unwrap();
    let [Event::LoopComplete(end)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((end.outcome, end.exit_code), (Outcome::Interrupted, 143));
    assert!(end.changes.is_some());
    assert!(matches!(engine.next(), Next::Done(_)));
}
