//! The rules of the board, each by itself, and what holds for every board that random work leads to.

use indexmap::IndexMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::task::{Planning, Task};
use super::*;

fn limits() -> Limits {
    Limits::default()
}

/// Works on a board like a loop does: `params` are texts, or JSON where they are not text.
fn act(board: &mut Board, limits: &Limits, word: &str, params: &Value) -> (&'static str, Vec<Note>) {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let params: IndexMap<_, _> =
        params.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
    let operation = OperationKind::parse(word).unwrap().with(&params).unwrap();
    let (after, verdict, notes) = apply(board.clone(), limits, operation);
    let mut folded = board.clone();
    folded.take(&BoardChange::between(board, &after));
    assert_eq!(folded, after, "the change tells all of {word}");
    *board = after;
    (verdict, notes)
}

fn says(board: &mut Board, limits: &Limits, word: &str, params: &Value) -> &'static str {
    act(board, limits, word, params).0
}

/// Returns a plan with these tasks, each with the tasks that it waits for.
fn plan(tasks: &[(&str, &[i64])]) -> Value {
    let tasks = tasks.iter().map(|(description, dependencies)| {
        json!({"description": description, "complexity": "simple", "dependencies": dependencies})
    });
    json!({"answer": {"tasks": tasks.collect::<Vec<_>>()}})
}

fn parts(count: usize) -> Value {
    let part = json!({"description": "part", "complexity": "simple"});
    json!({"answer": {"analysis": "x", "subtasks": vec![part; count]}})
}

/// A board with an approved plan.
fn planned(tasks: &[(&str, &[i64])]) -> Board {
    let mut board = Board::default();
    assert_eq!(says(&mut board, &limits(), "load", &plan(tasks)), "loaded");
    assert_eq!(says(&mut board, &limits(), "approve", &json!({"because": "approved"})), "approved");
    board
}

fn statuses(board: &Board) -> Vec<String> {
    board.tasks.iter().map(|task| format!("{} {}", task.id, task.status.word())).collect()
}

/// Works through a board, every attempt with this end, and returns the tasks in the order of their attempts.
fn order(
    board: &mut Board,
    limits: &Limits,
    mut end: impl FnMut(&str) -> bool,
) -> (Vec<String>, &'static str) {
    let mut order = Vec::new();
    loop {
        let next = says(board, limits, "next", &json!({}));
        let Some(id) = board.current().map(|task| task.id.to_string()) else { return (order, next) };
        order.push(id.clone());
        if end(&id) {
            assert_eq!(says(board, limits, "pass", &json!({"summary": "did it"})), "passed");
            continue;
        }
        match says(board, limits, "fail", &json!({"feedback": "no"})) {
            "retry" => {}
            "replan" => assert_eq!(says(board, limits, "split", &parts(2)), "split"),
            "give_up" => match says(board, limits, "give_up", &json!({})) {
                "given_up" => {}
                abort => return (order, abort),
            },
            other => return (order, other),
        }
    }
}

#[test]
fn tasks_are_done_in_the_order_of_the_plan_as_far_as_they_can_be() {
    let mut board = planned(&[("a", &[1]), ("b", &[]), ("c", &[0])]);
    assert_eq!(order(&mut board, &limits(), |_| true), (vec!["2".into(), "1".into(), "3".into()], "done"));
    assert!(board.is_completed());
}

#[test]
fn what_cannot_be_waited_for_is_dropped_and_said() {
    let mut board = Board::default();
    let (verdict, notes) =
        act(&mut board, &limits(), "load", &plan(&[("a", &[0, 7, -1, 1, 1]), ("b", &[0])]));
    assert_eq!(verdict, "loaded");
    let said: Vec<_> = notes.iter().map(|note| (note.kind, note.text.as_str())).collect();
    assert_eq!(
        said,
        [
            (NoteKind::DroppedEdge, "task 1 does not wait for the task at place 0: it is the task itself"),
            (NoteKind::DroppedEdge, "task 1 does not wait for the task at place 7: there is no such task"),
            (NoteKind::DroppedEdge, "task 1 does not wait for the task at place -1: there is no such task"),
            (
                NoteKind::BrokenCycle,
                "task 2 does not wait for the task at place 0: that task waits for this one"
            ),
        ]
    );
    assert_eq!(board.tasks[0].dependencies.len(), 1);
}

#[test]
fn a_task_is_tried_again_then_split_and_completes_with_its_parts() {
    let mut board = planned(&[("a", &[]), ("b", &[0])]);
    let (order, end) = order(&mut board, &limits(), |id| id != "1");
    assert_eq!((order.join(" "), end), ("1 1 1 1.1 1.2 2".to_owned(), "done"));
    assert_eq!(statuses(&board), ["1 completed", "1.1 completed", "1.2 completed", "2 completed"]);
}

#[test]
fn nothing_is_split_deeper_than_the_limit() {
    let limits = Limits { attempts: 1, depth: 3, failed_ratio: 1.0, ..limits() };
    let mut board = planned(&[("a", &[])]);
    let (order, end) = order(&mut board, &limits, |id| ["1.1.1.2", "1.1.2", "1.2"].contains(&id));
    assert_eq!((order.join(" "), end), ("1 1.1 1.1.1 1.1.1.1 1.1.1.2 1.1.2 1.2".to_owned(), "stuck"));
    assert!(board.tasks.iter().all(|task| task.id.depth() <= 3));
}

#[test]
fn what_waits_for_a_failed_task_is_unreachable() {
    let limits = Limits { attempts: 1, depth: 0, ..limits() };
    let mut board = planned(&[("a", &[]), ("b", &[0]), ("c", &[])]);
    says(&mut board, &limits, "next", &json!({}));
    says(&mut board, &limits, "fail", &json!({"error": "it broke"}));
    let (verdict, notes) = act(&mut board, &limits, "give_up", &json!({}));
    assert_eq!((verdict, notes[0].kind), ("given_up", NoteKind::Unreachable));
    assert_eq!(order(&mut board, &limits, |_| true), (vec!["3".into()], "stuck"));
    assert_eq!(statuses(&board), ["1 failed", "2 pending", "3 completed"]);
    let unreachable: Vec<_> =
        board.unreachable().into_iter().map(|(task, on)| (task.as_str(), on.as_str())).collect();
    assert_eq!(unreachable, [("2", "1")]);
}

#[test]
fn more_failed_leaves_than_the_share_end_the_work() {
    let limits = Limits { attempts: 1, depth: 0, ..limits() };
    let mut board = planned(&[("a", &[]), ("b", &[]), ("c", &[]), ("d", &[])]);
    let (order, end) = order(&mut board, &limits, |_| false);
    assert_eq!((order.join(" "), end), ("1 2 3".to_owned(), "abort"));
}

#[test]
fn passes_without_anything_completed_are_bounded() {
    // Another try at a task is a pass.
    let limits = Limits { attempts: 9, idle_passes: 2, ..limits() };
    let mut board = planned(&[("a", &[]), ("b", &[])]);
    assert_eq!(order(&mut board, &limits, |_| false), (vec!["1".into(), "1".into()], "stuck"));
    // So is every task that comes to its end without being completed; one that is completed begins a new row.
    let limits = Limits { attempts: 2, idle_passes: 3, failed_ratio: 1.0, ..super::Limits::default() };
    let mut board = planned(&[("a", &[])]);
    let (order, end) = order(&mut board, &limits, |id| id == "1.1");
    let expected = "1 1 1.1 1.2 1.2 1.2.1 1.2.1 1.2.1.1 1.2.1.1";
    assert_eq!((order.join(" "), end), (expected.to_owned(), "stuck"));
}

#[test]
fn with_the_standard_limits_a_task_can_be_split_as_deep_as_they_say() {
    let mut board = planned(&[("a", &[])]);
    let fails = ["1", "1.1", "1.1.1"];
    let (order, end) = order(&mut board, &limits(), |id| !fails.contains(&id));
    assert_eq!(order[..9].join(" "), "1 1 1 1.1 1.1 1.1 1.1.1 1.1.1 1.1.1");
    assert_eq!((end, board.is_completed()), ("done", true));
}

#[test]
fn fixes_are_counted_in_each_attempt() {
    let limits = Limits { fix_cycles: 1, ..limits() };
    let mut board = planned(&[("a", &[])]);
    for _ in 0..2 {
        assert_eq!(says(&mut board, &limits, "next", &json!({})), "task");
        let failed = json!({"answer": {"failures": [{"testName": "t", "error": "e"}], "fixPlan": "mend it"}});
        assert_eq!(says(&mut board, &limits, "tick", &failed), "again");
        let text = |field| board.text(&limits, field).unwrap();
        assert_eq!(
            (text("failures"), text("fix_plan"), text("round")),
            ("- t: e".into(), "mend it".into(), "1".into())
        );
        let again = json!({"output": "still red", "fix": "changed x"});
        assert_eq!(says(&mut board, &limits, "tick", &again), "enough");
        assert_eq!(board.text(&limits, "failures").unwrap(), "still red");
        assert_eq!(board.text(&limits, "fixes").unwrap(), "Fix 1: changed x");
        assert_eq!(says(&mut board, &limits, "fail", &json!({"output": "still red"})), "retry");
    }
    assert_eq!(board.tasks[0].history, ["still red", "still red"]);
}

#[test]
fn a_plan_is_reviewed_so_often_and_its_feedback_reaches_the_planner() {
    let mut board = Board::default();
    let feedback =
        json!({"feedback": "too vague", "answer": {"issues": ["no tests"], "missingElements": []}});
    for (review, expected) in ["again", "again", "enough"].into_iter().enumerate() {
        let tasks: &[(&str, &[i64])] = if review == 0 { &[("a", &[]), ("b", &[])] } else { &[("c", &[])] };
        says(&mut board, &limits(), "load", &plan(tasks));
        assert_eq!(says(&mut board, &limits(), "tick", &feedback), expected);
        let told = board.text(&limits(), "revision").unwrap();
        assert!(told.contains("too vague\nIssues:\n- no tests"), "{told}");
    }
    assert_eq!(board.tasks.len(), 1);
    says(&mut board, &limits(), "approve", &json!({"because": "skipped"}));
    assert_eq!(board.text(&limits(), "revision").unwrap(), "");
}

#[test]
fn the_level_abort_ends_the_work() {
    let abort = json!({"feedback": "no", "level": "abort"});
    let mut board = Board::default();
    says(&mut board, &limits(), "load", &plan(&[("a", &[])]));
    let (verdict, notes) = act(&mut board, &limits(), "tick", &abort);
    assert_eq!((verdict, notes[0].kind), ("abort", NoteKind::Escalation));
    let mut board = planned(&[("a", &[])]);
    says(&mut board, &limits(), "next", &json!({}));
    assert_eq!(says(&mut board, &limits(), "fail", &abort), "abort");
}

#[test]
fn a_run_goes_on_where_its_planning_was() {
    let recover = |board: &mut Board| says(board, &limits(), "recover", &json!({}));
    let mut board = Board::default();
    assert_eq!(recover(&mut board), "plan");
    says(&mut board, &limits(), "load", &plan(&[("a", &[])]));
    assert_eq!(recover(&mut board), "review");
    says(&mut board, &limits(), "tick", &json!({"feedback": "no"}));
    assert_eq!(recover(&mut board), "plan");
    says(&mut board, &limits(), "load", &plan(&[("a", &[]), ("b", &[])]));
    says(&mut board, &limits(), "approve", &json!({}));
    assert_eq!(recover(&mut board), "next");
    says(&mut board, &limits(), "next", &json!({}));
    says(&mut board, &limits(), "pass", &json!({"summary": "did it"}));
    says(&mut board, &limits(), "next", &json!({}));
    assert_eq!(recover(&mut board), "next");
    assert_eq!(statuses(&board), ["1 completed", "2 pending"]);
    assert_eq!(board.tasks[1].attempts, 0);
}

#[test]
fn an_operation_without_a_place_changes_nothing() {
    for word in ["pass", "fail", "tick", "give_up", "approve", "split"] {
        let mut board = if word == "approve" { Board::default() } else { planned(&[("a", &[])]) };
        let before = board.clone();
        let told = if word == "split" { parts(2) } else { json!({}) };
        let (verdict, notes) = act(&mut board, &limits(), word, &told);
        assert_eq!((verdict, notes.last().unwrap().kind), ("error", NoteKind::Refused), "{word}");
        assert_eq!(board, before);
    }
    for answer in [json!({"tasks": []}), json!({"tasks": [{"description": " "}]})] {
        let mut board = Board::default();
        assert_eq!(says(&mut board, &limits(), "load", &json!({"answer": answer})), "error");
        assert_eq!(board, Board::default());
    }
    for (kind, answer) in [
        (OperationKind::Load, "prose"),
        (OperationKind::Load, "{}"),
        (OperationKind::Split, "{\"subtasks\": 1}"),
    ] {
        let params = IndexMap::from([("answer".to_owned(), answer.to_owned())]);
        assert!(kind.with(&params).unwrap_err().as_str().starts_with("the answer is not a plan"));
    }
}

#[test]
fn a_part_is_judged_by_what_the_whole_is_judged_by() {
    let mut board = Board::default();
    let whole = json!({"description": "a", "complexity": "complex", "verificationCriteria": ["it works"]});
    says(&mut board, &limits(), "load", &json!({"answer": {"tasks": [whole]}}));
    says(&mut board, &limits(), "approve", &json!({}));
    says(&mut board, &limits(), "next", &json!({}));
    let mut answer = parts(2);
    answer["answer"]["verificationCriteria"] = json!(["both parts fit"]);
    says(&mut board, &limits(), "split", &answer);
    says(&mut board, &limits(), "next", &json!({}));
    assert_eq!(board.text(&limits(), "criteria").unwrap(), "- it works\n- both parts fit");
    let brief = board.text(&limits(), "brief").unwrap();
    assert_eq!(brief, "Task 1.1 (simple): part\nIt is a part of task 1: a");
    for field in FIELDS {
        assert!(board.text(&limits(), field).is_some(), "{field}");
    }
}

#[test]
fn the_bound_counts_every_call_once() {
    let calls = AgentCalls { reviews: true, tests: true, verifies: true, retries: 0 };
    let limits = Limits { plan_revisions: 2, fix_cycles: 1, attempts: 2, depth: 1, ..limits() };
    // 2 plans and 2 reviews; 15 tasks and 75 parts, twice, with 5 calls; 15 splits; the goal.
    assert_eq!(CallBound::of(&limits, calls).all(), 4 + 90 * 2 * 5 + 15 + 1);
    let calls = AgentCalls { reviews: false, tests: false, verifies: false, retries: 2 };
    assert_eq!(CallBound::of(&limits, calls).all(), 3 * (1 + 90 * 2 * 2 + 15 + 1));
}

fn some_limits() -> impl Strategy<Value = Limits> {
    (1..4_u32, 0..3_u32, 1..4_u32, 0..3_u32, 1..6_u32, 0.0..=1.0_f64).prop_map(
        |(plan_revisions, fix_cycles, attempts, depth, idle_passes, failed_ratio)| Limits {
            plan_revisions,
            fix_cycles,
            attempts,
            depth,
            idle_passes,
            failed_ratio,
        },
    )
}

/// A plan with any dependencies, sensible or not.
fn some_plan() -> impl Strategy<Value = Value> {
    let task = prop::collection::vec(-2..8_i64, 0..4);
    prop::collection::vec(task, 1..7).prop_map(|tasks| {
        let tasks = tasks
            .into_iter()
            .map(|on| json!({"description": "t", "complexity": "simple", "dependencies": on}));
        json!({"answer": {"tasks": tasks.collect::<Vec<_>>()}})
    })
}

/// What holds for every board that the operations make.
fn assert_sound(board: &Board, limits: &Limits) {
    let in_progress = board.tasks.iter().filter(|task| task.status == TaskStatus::InProgress).count();
    assert!(in_progress <= 1, "one task at a time");
    for task in &board.tasks {
        let parts: Vec<_> = board.parts(&task.id).collect();
        assert!(
            task.status != TaskStatus::Blocked || !parts.is_empty(),
            "{} is blocked without parts",
            task.id
        );
        if !parts.is_empty() {
            let all = parts.iter().all(|part| part.status == TaskStatus::Completed);
            assert_eq!(task.status == TaskStatus::Completed, all, "{} completes with its parts", task.id);
        }
        assert!(task.attempts <= limits.attempts, "{} is tried too often", task.id);
        assert!(task.rounds <= limits.fix_cycles, "{} is fixed too often", task.id);
        assert!(task.id.depth() <= limits.depth, "{} lies too deep", task.id);
        if let Some(parent) = task.id.parent() {
            assert!(board.task(&parent).is_some(), "{} has lost its parent", task.id);
        }
    }
    assert!(board.planning.reviews <= limits.plan_revisions, "reviewed too often");
    let leaves: Vec<_> = board.leaves().map(|task| &task.id).collect();
    let by_hand: Vec<_> = board
        .tasks
        .iter()
        .filter(|task| board.parts(&task.id).next().is_none())
        .map(|task| &task.id)
        .collect();
    assert_eq!(leaves, by_hand);
}

/// Where a loop goes on after an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum BoardStage {
    Plan,
    Review,
    Next,
    Task,
    End(&'static str),
}

/// Works like the loop of the paradigm does, with answers by chance, and left and taken up again here and there.
fn work(limits: &Limits, answers: &[u8], plans: &[Value]) -> (Board, BoardStage) {
    let mut board = Board::default();
    let mut at = BoardStage::Plan;
    let mut plans = plans.iter().cycle();
    for answer in answers {
        if answer % 31 == 0 && !matches!(at, BoardStage::End(_)) {
            let word = says(&mut board, limits, "recover", &json!({}));
            let once = board.clone();
            assert_eq!(says(&mut board, limits, "recover", &json!({})), word);
            assert_eq!(board, once, "to recover twice is to recover once");
            at = match word {
                "plan" => BoardStage::Plan,
                "review" => BoardStage::Review,
                _ => BoardStage::Next,
            };
        }
        let report = json!({"feedback": "no", "level": if answer % 29 == 0 { "abort" } else { "correct" }});
        at = match at {
            BoardStage::Plan => {
                assert_eq!(says(&mut board, limits, "load", plans.next().unwrap()), "loaded");
                BoardStage::Review
            }
            BoardStage::Review if answer % 3 == 0 => {
                says(&mut board, limits, "approve", &json!({}));
                BoardStage::Next
            }
            BoardStage::Review => match says(&mut board, limits, "tick", &report) {
                "again" => BoardStage::Plan,
                "enough" => {
                    says(&mut board, limits, "approve", &json!({"because": "skipped"}));
                    BoardStage::Next
                }
                other => BoardStage::End(other),
            },
            BoardStage::Next => match says(&mut board, limits, "next", &json!({})) {
                "task" => BoardStage::Task,
                other => BoardStage::End(other),
            },
            BoardStage::Task if answer % 4 == 0 => {
                says(&mut board, limits, "pass", &json!({"summary": "did it"}));
                BoardStage::Next
            }
            BoardStage::Task if answer % 4 == 1 && says(&mut board, limits, "tick", &report) == "again" => {
                BoardStage::Task
            }
            BoardStage::Task => match says(&mut board, limits, "fail", &report) {
                "retry" => BoardStage::Next,
                word @ ("replan" | "give_up") => {
                    let is_split = word == "replan" && answer % 5 != 0;
                    let word = if is_split { "split" } else { "give_up" };
                    match says(&mut board, limits, word, &parts(2 + usize::from(answer % 3))) {
                        "abort" => BoardStage::End("abort"),
                        _ => BoardStage::Next,
                    }
                }
                other => BoardStage::End(other),
            },
            BoardStage::End(_) => break,
        };
        assert_sound(&board, limits);
    }
    (board, at)
}

proptest! {
    #[test]
    fn whatever_happens_the_board_is_sound(
        limits in some_limits(),
        answers in prop::collection::vec(any::<u8>(), 0..200),
        plans in prop::collection::vec(some_plan(), 1..4),
    ) {
        let (board, at) = work(&limits, &answers, &plans);
        if at == BoardStage::End("done") {
            prop_assert!(board.leaves().all(|task| task.status == TaskStatus::Completed));
        }
        // Names depend on nothing but the work.
        prop_assert_eq!(work(&limits, &answers, &plans).0, board);
    }

    #[test]
    fn the_work_comes_to_an_end(limits in some_limits(), seed in any::<u64>(), plan in some_plan()) {
        // Without resumes, which begin the counts anew, and without a word that ends it: no multiples of 31 and 29.
        let mut state = seed;
        let answers: Vec<u8> = (0..200_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let answer = (state >> 56) as u8;
            if answer.is_multiple_of(31) || answer.is_multiple_of(29) { 2 } else { answer }
        }).collect();
        let at = work(&limits, &answers, &[plan]).1;
        prop_assert!(matches!(at, BoardStage::End(_)), "{at:?}");
    }

    #[test]
    fn any_board_can_be_taken_up_again(statuses in prop::collection::vec(0..5_u8, 1..12), approved in any::<bool>()) {
        let status = |one: u8| match one {
            0 => TaskStatus::Pending,
            1 => TaskStatus::InProgress,
            2 => TaskStatus::Completed,
            3 => TaskStatus::Failed,
            _ => TaskStatus::Blocked,
        };
        let mut board = planned(&vec![("t", &[][..]); statuses.len()]);
        board.planning = Planning { approval: approved.then(String::new), ..Planning::default() };
        for (task, one) in board.tasks.iter_mut().zip(&statuses) {
            task.status = status(*one);
            task.attempts = 2;
        }
        let completed = |board: &Board| -> Vec<Task> {
            board.tasks.iter().filter(|task| task.status == TaskStatus::Completed).cloned().collect()
        };
        let before = completed(&board);
        says(&mut board, &limits(), "recover", &json!({}));
        prop_assert_eq!(&completed(&board), &before);
        prop_assert!(board.tasks.iter().all(|task| matches!(task.status, TaskStatus::Pending | TaskStatus::Completed)));
        let once = board.clone();
        says(&mut board, &limits(), "recover", &json!({}));
        prop_assert_eq!(board, once);
    }
}
