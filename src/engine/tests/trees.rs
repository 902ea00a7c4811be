//! On which trees verdicts fall, and what that makes of the end of a run.

use super::super::changes::{
    ChangeKind, ChangedFile, Changes, KnownStart, SeenTree, StartTree, TreeChanges, TreeIds,
};
use super::super::past::{Past, Standing};
use super::super::verification::{Confirmed, Reason, Verification};
use super::generated::{any_loop_of, chosen};
use super::resumed::{folded, unsaved};
use super::*;
use crate::base::object::ObjectId;
use crate::machine::OnChange;

/// A tree that is known by a number.
fn ids(number: u32) -> TreeIds {
    let id = |number: u32| ObjectId::parse(&format!("{number:040x}")).unwrap();
    TreeIds { commit: id(0), tree: id(number), index: None, rest: None }
}

fn known(strict: bool) -> Start {
    let tree = KnownStart {
        ids: ids(0),
        stands_for: None,
        entries: vec![],
        before: vec![],
        unseen: vec![],
        ignored: vec![],
        place: None,
        known_index: None,
    };
    let start = start(strict);
    let event = LoopStart {
        tree: Some(StartTree::Known(Box::new(tree))),
        on_change: OnChange::Report,
        ..start.event
    };
    Start { event, ..start }
}

fn changes(now: u32) -> Changes {
    let file = ChangedFile {
        path: "a".to_owned(),
        from: None,
        kind: ChangeKind::Modified,
        size: Some(1),
        tracked: true,
        lines: None,
        run: None,
        not_in_patch: None,
    };
    Changes::Known(Box::new(TreeChanges {
        start: ids(0),
        end: ids(now),
        files: if now == 0 { vec![] } else { vec![file] },
        more: 0,
        commits: vec![],
        before: vec![],
        as_committed: now == 0,
        patch: None,
        no_patch: None,
        unseen: vec![],
    }))
}

/// Runs a loop in a world where each command exits with what `code` says of it, and changes the tree where its text has a
/// `!`. Returns the end and how often the tree was looked at before.
fn run(text: &str, strict: bool, mut code: impl FnMut(&str) -> i32) -> (event::LoopComplete, usize) {
    let machine = machine(text);
    let mut engine = Engine::new(&machine, known(strict));
    let (mut now, mut looks) = (0, 0);
    for _ in 0..5_000 {
        let input = match engine.next() {
            Next::Done(end) => return (end.clone(), looks),
            Next::Begin => Input::Begin,
            Next::Yield => Input::Yielded,
            Next::Wait(_) => Input::WaitDone,
            Next::Survey(_) => Input::Surveyed(super::tree('a')),
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => {
                looks += 1;
                Input::Looked(SeenTree::Known(ids(now)))
            }
            Next::SetAside(_) => Input::SetAside(Ok(())),
            Next::Restore(request) => {
                now = u32::from_str_radix(request.tree.tree.as_str(), 16).unwrap();
                Input::Restored(Ok(RestoredTree::default()))
            }
            Next::Measure(_) => Input::Measured(changes(now).into()),
            Next::Run(request) => {
                now += u32::from(request.text.contains('!'));
                Input::ActionDone(Observation::exited(code(&request.text), ""))
            }
            other => panic!("{other:?}"),
        };
        engine.handle(input, Duration::ZERO).unwrap();
    }
    panic!("no end")
}

fn verification(end: &event::LoopComplete) -> &Verification {
    end.verification.as_deref().unwrap()
}

const FIX: &str = "states:
  check: {action: make check, on_yes: done, on_no: fix}
  fix: {action: fix!, next: check}
  done: {terminal: true}";

#[test]
fn a_loop_of_check_and_fix_pays_nothing_for_the_trees_of_its_verdicts() {
    let mut codes = [1, 0].into_iter();
    let (end, looks) = run(FIX, true, |text| if text == "make check" { codes.next().unwrap() } else { 0 });
    assert_eq!((end.outcome, end.verified, looks), (Outcome::Success, true, 0));
    let check = &verification(&end).checks[0];
    assert_eq!((check.confirmed, check.tree.as_ref()), (Confirmed::InRun, Some(&ids(1).tree)));
}

#[test]
fn what_changes_after_the_last_check_makes_it_stale() {
    let text = FIX.replace("on_yes: done", "on_yes: last") + "\n  last: {action: git stash!, next: done}";
    let text = text.replace("make check,", "make check, check: false,");
    for strict in [true, false] {
        let (end, looks) = run(&text, strict, |_| 0);
        assert_eq!((end.verified, looks), (false, 1));
        assert_eq!(verification(&end).reasons, [Reason::Stale]);
        let expected = if strict { Outcome::Failure } else { Outcome::Success };
        assert_eq!(end.outcome, expected);
        assert!(
            end.reason.starts_with("ended in `done` unverified: `check` passed on another tree"),
            "{}",
            end.reason
        );
    }
    let declared = text.replace("done: {terminal: true}", "done: {terminal: true, outcome: success}");
    assert_eq!(run(&declared, true, |_| 0).0.outcome, Outcome::Failure);
}

#[test]
fn what_a_terminal_does_counts() {
    let text = FIX
        .replace("make check,", "make check, check: false,")
        .replace("done: {terminal: true}", "done: {terminal: true, action: spoil!}");
    let (end, looks) = run(&text, true, |_| 0);
    assert_eq!((end.outcome, end.verified, looks), (Outcome::Failure, false, 1));
}

#[test]
fn an_action_that_changes_nothing_makes_nothing_stale() {
    let text = FIX.replace("on_yes: done", "on_yes: last") + "\n  last: {action: echo, next: done}";
    let (end, looks) = run(&text, true, |_| 0);
    assert_eq!((end.outcome, end.verified, looks), (Outcome::Success, true, 1));
}

/// The start of a loop that works on the tree of the run around it.
fn shared() -> Start {
    Start { shares_tree: true, ..start(false) }
}

#[test]
fn a_sub_loop_does_not_rest_on_a_verdict_whose_tree_could_not_be_seen() {
    let text = FIX.replace("on_yes: done", "on_yes: last") + "\n  last: {action: spoil!, next: done}";
    let machine = machine(&text.replace("make check,", "make check, check: false,"));
    let mut engine = Engine::new(&machine, shared());
    let mut looks = 0;
    let end = loop {
        let input = match engine.next() {
            Next::Done(end) => break end.clone(),
            Next::Begin => Input::Begin,
            Next::Run(_) => Input::ActionDone(Observation::exited(0, "")),
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => {
                looks += 1;
                let unseen = SeenTree::Unknown { unknown: "git is gone".to_owned() };
                Input::Looked(if looks == 1 { unseen } else { SeenTree::Known(ids(1)) })
            }
            other => panic!("{other:?}"),
        };
        engine.handle(input, Duration::ZERO).unwrap();
    };
    assert_eq!((end.verified, looks), (false, 2));
    assert_eq!(verification(&end).reasons, [Reason::Stale]);
}

/// Runs a check that passes, and returns the run as it is when nothing after its verdict was written down.
fn left_after_verdict(machine: &Machine, start: Start) -> Past {
    let mut engine = Engine::new(machine, start);
    let mut all = engine.handle(Input::Begin, Duration::ZERO).unwrap();
    let seen = Input::ActionDone(Observation::exited(0, ""));
    all.extend(engine.handle(seen, Duration::ZERO).unwrap());
    let judged = all.iter().position(|event| matches!(event, Event::Evaluate { .. })).unwrap();
    let known: Vec<_> = all.into_iter().take(judged + 1).map(|event| (event, Duration::ZERO)).collect();
    folded(machine, &known)
}

/// Goes on with a run of which nothing says that the tree was changed.
fn gone_on(machine: &Machine, start: Start, past: Past) -> Engine<'_> {
    let Standing::Open(how) = past.standing(machine) else { panic!("it is over") };
    let mut engine = Engine::resume(machine, start, past, how, Duration::ZERO);
    engine.handle(Input::Begin, Duration::ZERO).unwrap();
    engine
}

const CHECK: &str = "states:
  check: {action: make check, check: false, on_yes: done}
  done: {terminal: true}";

#[test]
fn a_sub_loop_that_goes_on_after_a_kill_looks_at_the_tree_before_it_ends() {
    let machine = machine(CHECK);
    let mut engine = gone_on(&machine, shared(), left_after_verdict(&machine, shared()));
    assert!(matches!(engine.next(), Next::Look));
    engine.handle(Input::Looked(SeenTree::Known(ids(1))), Duration::ZERO).unwrap();
    let Next::Done(end) = engine.next() else { panic!("it has not ended") };
    assert_eq!((end.verified, verification(end).reasons.as_slice()), (false, &[Reason::Stale][..]));
}

#[test]
fn a_run_whose_journal_was_lost_goes_on_without_the_tree_of_its_last_verdict() {
    let machine = machine(CHECK);
    let mut past = left_after_verdict(&machine, known(false));
    let lost = unsaved(&machine, past.run());
    past.event(&machine, &Event::LoopComplete(lost), Duration::ZERO);
    let mut engine = gone_on(&machine, known(false), past);
    assert!(engine.is_tree_doubtful() && matches!(engine.next(), Next::Measure(_)));
    engine.handle(Input::Measured(changes(1).into()), Duration::ZERO).unwrap();
    let Next::Done(end) = engine.next() else { panic!("it has not ended") };
    assert_eq!((end.verified, verification(end).reasons.as_slice()), (false, &[Reason::Stale][..]));
}

#[test]
fn a_sub_loop_that_had_ended_when_its_run_was_left_is_about_an_unknown_tree() {
    let machine = machine("states:\n  work: {loop: kid, on_success: done}\n  done: {terminal: true}\n");
    for had_ended in [false, true] {
        let mut engine = Engine::new(&machine, known(true));
        engine.handle(Input::Begin, Duration::ZERO).unwrap();
        let Next::SubLoop(request) = engine.next() else { panic!("nothing is run") };
        let end = sub_loop_end(request, &Observation::exited(0, "")).unwrap();
        let end = request::SubLoopEnd { had_ended, ..end };
        engine.handle(Input::SubLoopDone(Ok(end)), Duration::ZERO).unwrap();
        assert!(matches!(engine.next(), Next::Measure(_)));
        engine.handle(Input::Measured(changes(1).into()), Duration::ZERO).unwrap();
        let Next::Done(end) = engine.next() else { panic!("it has not ended") };
        assert_eq!(end.verified, !had_ended);
        assert_eq!(verification(end).reasons.contains(&Reason::Stale), had_ended);
    }
}

/// Runs a loop inside of another one, and returns the checks that confirm it: none where they cannot be made once more.
fn rechecks(states: &str) -> Option<Vec<String>> {
    let machine = machine(&format!("states:\n{states}  done: {{terminal: true}}\n"));
    let mut engine = Engine::new(&machine, shared());
    loop {
        let input = match engine.next() {
            Next::Done(_) => break,
            Next::Begin => Input::Begin,
            Next::Run(_) => Input::ActionDone(Observation::exited(0, "good")),
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => Input::Looked(SeenTree::Known(ids(0))),
            other => panic!("{other:?}"),
        };
        engine.handle(input, Duration::ZERO).unwrap();
    }
    engine.rechecks().map(|checks| checks.into_iter().map(|check| check.name).collect())
}

#[test]
fn the_checks_of_a_loop_confirm_it_only_with_what_it_observed_last() {
    let (check, look) = ("make check", "./look, check: false");
    for (first, last, expected) in
        [(look, check, Some("b")), (check, check, Some("a b")), (check, look, None)]
    {
        let states = format!("  a: {{action: {first}, on_yes: b}}\n  b: {{action: {last}, on_yes: done}}\n");
        let found = rechecks(&states).map(|names| names.join(" "));
        assert_eq!(found.as_deref(), expected, "{states}");
    }
}

/// A check that is judged by what it has captured, or by whatever else, before something changes the tree.
fn captured(source: &str) -> String {
    let evaluate = format!("{{type: output_contains, source: '${{{source}}}', pattern: good}}");
    format!(
        "states:
  before: {{action: echo good, capture: before, next: check}}
  check: {{action: make check, check: true, capture: out, evaluate: {evaluate}, on_yes: last, on_no: failed}}
  last: {{action: spoil!, next: done}}
  done: {{terminal: true}}
  failed: {{terminal: true}}"
    )
}

#[test]
fn a_check_that_is_made_once_more_is_judged_by_what_it_prints_then() {
    let ended = |source: &str, again: &str| {
        let machine = machine(&captured(source));
        let mut engine = Engine::new(&machine, known(true));
        let (mut now, mut prints) = (0, VecDeque::from(["good", again]));
        loop {
            let input = match engine.next() {
                Next::Done(end) => break end.clone(),
                Next::Begin => Input::Begin,
                Next::LookForJudges(_) => Input::JudgesStand,
                Next::Look => Input::Looked(SeenTree::Known(ids(now))),
                Next::Measure(_) => Input::Measured(changes(now).into()),
                Next::Restore(_) => Input::Restored(Ok(RestoredTree::default())),
                Next::Run(request) if request.text == "make check" => {
                    Input::ActionDone(Observation::exited(0, prints.pop_front().unwrap()))
                }
                Next::Run(request) => {
                    now += u32::from(request.text.contains('!'));
                    Input::ActionDone(Observation::exited(0, "good"))
                }
                other => panic!("{other:?}"),
            };
            engine.handle(input, Duration::ZERO).unwrap();
        }
    };
    for source in ["captured.out.output", "captured.check.output"] {
        assert!(ended(source, "good").verified, "{source}");
        assert_eq!(ended(source, "bad").terminated_by, TerminatedBy::NotConfirmed, "{source}");
    }
    // What came before a check at its visit is not kept, so nothing can confirm it.
    let end = ended("prev.output", "good");
    assert_eq!((end.verified, verification(&end).reasons.as_slice()), (false, &[Reason::Stale][..]));
}

#[test]
fn a_check_of_an_earlier_part_is_made_once_more_only_as_it_was() {
    let machine = machine(
        "context: {word: x}\nstates:
  check: {action: 'make check ${context.word}', check: true, on_yes: done}
  done: {terminal: true}",
    );
    let again = |word: &str| {
        let context = Map::from_iter([("word".to_owned(), json!(word))]);
        let start = || Start { context: context.clone(), ..known(false) };
        let mut engine = gone_on(&machine, start(), left_after_verdict(&machine, start()));
        engine.handle(Input::Measured(changes(1).into()), Duration::ZERO).unwrap();
        match engine.next() {
            Next::Run(request) => Some(request.text.clone()),
            Next::Done(end) => {
                assert_eq!(verification(end).reasons, [Reason::Stale]);
                None
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(again("all").as_deref(), Some("make check all"));
    // The journal has only the ends of the one, and has hidden a part of the other.
    assert_eq!((again(&"x".repeat(70_000)), again("***")), (None, None));
}

#[test]
fn a_check_that_is_judged_with_a_query_is_not_made_once_more() {
    let text = "states:
  check:
    {action: make check, check: true, evaluate: {type: output_json, path: '.n | length', target: 3}, on_yes: last, on_no: failed}
  last: {action: spoil!, next: done}
  done: {terminal: true}
  failed: {terminal: true}";
    let machine = machine(text);
    let mut engine = Engine::new(&machine, known(false));
    let end = loop {
        let input = match engine.next() {
            Next::Done(end) => break end.clone(),
            Next::Begin => Input::Begin,
            Next::LookForJudges(_) => Input::JudgesStand,
            Next::Look => Input::Looked(SeenTree::Known(ids(0))),
            Next::Measure(_) => Input::Measured(changes(1).into()),
            Next::Query(_) => Input::Queried(Queried { result: Ok(json!(3)), stop: None }),
            Next::Run(_) => Input::ActionDone(Observation::exited(0, "{}")),
            other => panic!("{other:?}"),
        };
        engine.handle(input, Duration::ZERO).unwrap();
    };
    assert_eq!((end.outcome, end.verified), (Outcome::Success, false));
    assert_eq!(verification(&end).reasons, [Reason::Stale]);
}

#[test]
fn a_check_of_a_loop_inside_is_not_judged_by_values_of_the_loop_around() {
    let check = |source: &str| {
        let evaluate = format!("{{type: output_contains, source: '${{{source}}}', pattern: good}}");
        format!(
            "  a: {{action: make check, check: true, capture: out, evaluate: {evaluate}, on_yes: done}}\n"
        )
    };
    assert_eq!(rechecks(&check("captured.out.output")), Some(vec!["a".to_owned()]));
    assert_eq!(rechecks(&check("loop.name}good${loop.name")), None);
}

/// Loops whose states look, change the tree or do nothing, with every kind of way.
fn any_loop() -> impl Strategy<Value = String> {
    let shapes = vec![
        "action: cargo test, on_yes: @, on_no: @, on_error: @",
        "action: look, check: false, on_yes: @, on_no: @",
        "action: fix!, next: @",
        "action: fix!, next: @, on_error: @",
        "action: cargo test, repeat: {passes: 2}, on_yes: @, on_no: @",
        "action: cargo test, max_retries: 1, on_retry_exhausted: @, on_yes: @, on_no: @",
        "next: @",
    ];
    let top = |switches: [bool; 4], at: &str| {
        "max_iterations: 6\n".to_owned()
            + &chosen(
                switches,
                [
                    format!("on_max_iterations: {at}"),
                    format!("on_error: {at}"),
                    "stall: {window: 2}".to_owned(),
                    format!("stall: {{window: 2, action: {at}}}"),
                ],
            )
    };
    any_loop_of(shapes, top, "  done: {terminal: true, action: close!}\n  failed: {terminal: true}\n")
}

proptest! {
    #[test]
    fn no_success_rests_on_a_verdict_whose_tree_nobody_looked_at(
        text in any_loop().prop_filter("one stall", |text| text.matches("stall").count() < 2),
        codes in prop::collection::vec(0..3i32, 1..40),
    ) {
        let mut codes = codes.into_iter().cycle();
        let (end, _) = run(&text, false, |_| codes.next().unwrap());
        if end.outcome == Outcome::Success {
            for stale in &verification(&end).stale {
                prop_assert!(stale.tree.is_some(), "{}: {:?}", text, verification(&end));
            }
        }
    }
}

#[test]
fn a_check_that_wavers_has_its_attempts_in_the_closing_pass_too() {
    let text = FIX.replace("on_yes: done", "on_yes: last") + "\n  last: {action: 'write!', next: done}";
    for (again, expected) in [(1, (Outcome::Success, true)), (0, (Outcome::Failure, false))] {
        let wavers = format!("make check, flaky: {{again: {again}, always: true}},");
        let text = if again > 0 { text.replace("make check,", &wavers) } else { text.clone() };
        let mut codes = [0, 1, 0].into_iter();
        let (end, _) = run(&text, true, |text| if text == "make check" { codes.next().unwrap() } else { 0 });
        assert_eq!((end.outcome, end.verified), expected, "{again}");
    }
}
