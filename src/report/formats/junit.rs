//! A run as JUnit XML: a case per state, its repeats as reruns, or per task where the run works on a task board, and a
//! last case for the outcome. Whatever an action printed, the file is well-formed: one forbidden character would make readers refuse all of it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::DateTime;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestRerun, TestSuite};

use crate::base::name::StateName;
use crate::base::text::{first_line, head, one_line, plain, plural};
use crate::base::time::Timestamp;
use crate::board::{Task, TaskId, TaskStatus};
use crate::engine::check_history::{CheckHistory, QuarantinedCheck};
use crate::engine::event::ClosingPassCheck;
use crate::engine::outcome::Outcome;
use crate::engine::reused::{ReusedRun, ReusedState};
use crate::evaluate::verdict::Verdict;
use crate::report::board_work::BoardWork;
use crate::report::digest::closing_rows::{ClosingRow, ClosingStanding};
use crate::report::digest::{Digest, EndKind, StateCount, green};
use crate::report::shown_steps;
use crate::report::step::{Step, StepStanding};
use crate::report::unbegun_run::Unbegun;
use crate::report::why::{Why, chain_text as shown_why};

/// Bytes of XML per case.
pub const MAX_CASE: usize = 64 * 1024;

/// Bytes of XML per file.
// GitLab reads no report of 30 MB or more.
pub const MAX_FILE: usize = 5 * 1024 * 1024;

/// Bytes of XML of all suites of a file together: GitLab reads none of more than 30 MB.
pub const MAX_SUM: usize = 25 * 1024 * 1024;

/// The property with the number of cases that a suite had no room for.
const LEFT_OUT: &str = "ll.cases_left_out";

const MAX_RERUNS: usize = 40;
const OUTCOME: &str = "loop outcome";

/// Characters of a task in the name of its case.
const MAX_TASK: usize = 160;

/// What a case costs beside its texts: tags and attributes.
const MARKUP: usize = 512;

/// What is known of one run.
pub type Suite = TestSuite;

/// Writes the report.
pub fn render(digest: &Digest) -> String {
    file([suite(digest)])
}

/// Writes a report of several suites. Cases for which there is no room are left out, and counted.
pub fn file(suites: impl IntoIterator<Item = TestSuite>) -> String {
    file_within(MAX_SUM, suites)
}

fn file_within(most: usize, suites: impl IntoIterator<Item = TestSuite>) -> String {
    let report = report_of(suites);
    let text = text_of(&report);
    if text.len() <= most { text } else { text_of(&report_of(shortened(report.test_suites, most))) }
}

fn report_of(suites: impl IntoIterator<Item = TestSuite>) -> Report {
    let mut report = Report::new("ll-loop");
    let mut took = Duration::ZERO;
    for suite in suites {
        took += suite.time.unwrap_or(Duration::ZERO);
        // The suites of a merge come in the order of its plan, and not in that of their times.
        report.timestamp = report.timestamp.into_iter().chain(suite.timestamp).min();
        report.add_test_suite(suite);
    }
    report.set_time(took);
    report
}

fn text_of(report: &Report) -> String {
    let text = report.to_string().expect("writing to memory does not fail");
    format!("{}\n", text.trim_end())
}

/// Returns an upper bound of what a suite takes in a file, in bytes.
fn size_of(suite: TestSuite) -> usize {
    text_of(&report_of([suite])).len()
}

fn is_red(case: &TestCase) -> bool {
    matches!(case.status, TestCaseStatus::NonSuccess { .. })
}

/// Leaves cases out until all suites fit in so many bytes. A suite of which no case is left is left out with them.
fn shortened(mut suites: Vec<TestSuite>, most: usize) -> Vec<TestSuite> {
    let taken_out = |suite: &mut TestSuite| {
        let cases = std::mem::take(&mut suite.test_cases);
        (suite.tests, suite.skipped, suite.errors, suite.failures) = (0, 0, 0, 0);
        cases
    };
    let cases: Vec<Vec<TestCase>> = suites.iter_mut().map(taken_out).collect();
    let mut places = Vec::new();
    for (at, cases) in cases.iter().enumerate() {
        // What is red goes first, and then what suites end with, as those of runs do with the outcome.
        let rank = |number: usize, case: &TestCase| (!is_red(case), number + 1 < cases.len());
        places.extend(cases.iter().enumerate().map(|(number, case)| (rank(number, case), at, number)));
    }
    places.sort_unstable();
    let heads: Vec<usize> = suites.iter().map(|suite| size_of(suite.clone()) + MARKUP).collect();
    let (mut kept, mut begun) = (BTreeSet::new(), BTreeSet::new());
    // What is said of the others has its room.
    let mut room = most.saturating_sub(MAX_CASE);
    for (_, at, number) in places {
        let mut alone = TestSuite::new("");
        alone.add_test_case(cases[at][number].clone());
        let head = if begun.contains(&at) { 0 } else { heads[at] };
        if let Some(rest) = room.checked_sub(head + size_of(alone)) {
            room = rest;
            begun.insert(at);
            kept.insert((at, number));
        }
    }
    let (mut all, mut red) = (0, 0);
    for (at, (suite, cases)) in suites.iter_mut().zip(cases).enumerate() {
        let mut left_out = 0;
        for (number, case) in cases.into_iter().enumerate() {
            if kept.contains(&(at, number)) {
                suite.add_test_case(case);
            } else {
                left_out += 1;
                red += u64::from(is_red(&case));
            }
        }
        all += left_out;
        if left_out > 0 {
            leave_out(suite, left_out);
        }
    }
    suites.retain(|suite| suite.tests > 0);
    suites.push(left_out_suite(all, red));
    suites
}

/// Says in a suite that cases of it are left out, perhaps with others before.
fn leave_out(suite: &mut TestSuite, count: u64) {
    let is_count = |property: &Property| property.name.as_str() == LEFT_OUT;
    let known = suite.properties.iter().find(|property| is_count(property));
    let known = known.and_then(|property| property.value.as_str().parse::<u64>().ok()).unwrap_or(0);
    suite.properties.retain(|property| !is_count(property));
    suite.add_property(Property::new(LEFT_OUT, (known + count).to_string()));
}

/// Says in a suite of its own what a file has no room for. Where something red is not there, it is red.
fn left_out_suite(all: u64, red: u64) -> TestSuite {
    let mut status = if red > 0 {
        TestCaseStatus::non_success(NonSuccessKind::Failure)
    } else {
        TestCaseStatus::skipped()
    };
    let are = if all == 1 { "is" } else { "are" };
    let of_red = if red > 0 { format!(", {red} of them red") } else { String::new() };
    let words = format!("{} {are} left out{of_red}: CI systems read no larger file", plural(all, "case"));
    status.set_message(words).set_type("left out");
    let mut suite = TestSuite::new("ll-loop");
    suite.add_test_case(TestCase::new("cases left out", status));
    suite
}

/// Returns the suite of a run that there is not. One that goes on later is none that failed.
pub fn absent(name: &str, why: &str, is_later: bool) -> TestSuite {
    let mut suite = TestSuite::new(clean(name));
    let mut status =
        if is_later { TestCaseStatus::skipped() } else { TestCaseStatus::non_success(NonSuccessKind::Error) };
    status.set_message(clean(why)).set_type(if is_later { "handoff" } else { "missing" });
    suite.add_test_case(TestCase::new(OUTCOME, status));
    suite
}

/// Returns the suite of an item that is not run, because an earlier run has verified the same.
pub fn reused(name: &str, run: &ReusedRun) -> TestSuite {
    let mut suite = TestSuite::new(clean(name));
    suite.add_properties(of_earlier(run));
    suite.add_test_cases(run.states.iter().map(|state| case_of_earlier(run, state)));
    let mut outcome = TestCase::new(OUTCOME, TestCaseStatus::success());
    outcome.set_time(Duration::ZERO);
    suite.add_test_case(outcome);
    suite
}

/// Returns a suite of something that is red and no run.
pub fn red(name: &str, kind: &str, why: &str) -> TestSuite {
    let mut suite = TestSuite::new(clean(name));
    add_red(&mut suite, kind, why);
    suite
}

/// Adds a case that failed.
pub fn add_red(suite: &mut TestSuite, kind: &str, why: &str) {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(clean(why)).set_type(clean(kind));
    suite.add_test_case(TestCase::new(kind, status));
}

/// A case of something that is not a run.
pub struct PlainCase {
    /// Its name.
    pub name: String,
    /// How long it took.
    pub took: Duration,
    /// What kind of failure it is, and what is said of it; none where it passed.
    pub failure: Option<(String, String)>,
}

/// Makes a suite of such cases.
pub fn plain_suite(name: &str, cases: impl IntoIterator<Item = PlainCase>) -> TestSuite {
    let mut suite = TestSuite::new(clean(name));
    let mut took = Duration::ZERO;
    for PlainCase { name, took: time, failure } in cases {
        let status = match failure {
            None => TestCaseStatus::success(),
            Some((kind, text)) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                let first = first_line(&text).to_owned();
                status.set_message(clean(&first)).set_type(clean(&kind)).set_description(clean(&text));
                status
            }
        };
        let mut case = TestCase::new(clean(&name), status);
        case.set_time(time);
        took += time;
        suite.add_test_case(case);
    }
    suite.set_time(took);
    suite
}

/// Returns what a check printed: standard error after standard output, as of a step.
fn printed(check: &ClosingPassCheck) -> String {
    let texts = [&check.stdout, &check.stderr].map(|text| text.trim_end());
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A check that was made once more at the end, with its attempts.
fn closing_case(digest: &Digest, row: &ClosingRow<'_>) -> TestCase {
    let check = row.last;
    let said = green::once_more(check);
    let is_later = digest.end_kind() == EndKind::HandedOff;
    let mut budget = ByteBudget { left: MAX_CASE - 8 * MARKUP };
    let mut status = match row.standing() {
        ClosingStanding::Passed => TestCaseStatus::success(),
        ClosingStanding::Quarantined => skipped(&format!("{said}; it is in quarantine"), &mut budget),
        ClosingStanding::Failed if is_later => {
            skipped(&format!("{said}; the run goes on later"), &mut budget)
        }
        ClosingStanding::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(clean(&said)).set_type(clean(check.verdict.as_str()));
            status.set_description(budget.end_of(&printed(check), 12 * 1024));
            status
        }
    };
    let left_out = row.earlier.len().saturating_sub(MAX_RERUNS);
    status.add_reruns(row.earlier.iter().skip(left_out).map(|check| attempt(check, &mut budget)));
    let mut case = TestCase::new(clean(&format!("closing pass: {}{}", check.check, check.without())), status);
    case.set_time(Duration::from_millis(check.duration_ms));
    let quarantine = digest.start().and_then(|start| start.checks.quarantine(&check.state));
    if let Some(quarantine) = quarantine.filter(|_| row.standing() == ClosingStanding::Quarantined) {
        case.add_property(Property::new("ll.quarantined", attribute(&quarantine.words())));
    }
    case
}

/// An attempt of a check of the closing pass that failed, and after which it was made again.
fn attempt(check: &ClosingPassCheck, budget: &mut ByteBudget) -> TestRerun {
    let message = attribute(&green::once_more(check));
    budget.spend(&message);
    let mut rerun = TestRerun::new(NonSuccessKind::Failure);
    rerun.set_time(Duration::from_millis(check.duration_ms)).set_type(attribute(check.verdict.as_str()));
    rerun.set_description(budget.end_of(&printed(check), 1024)).set_message(message);
    rerun
}

/// Returns the suite of a run.
pub fn suite(digest: &Digest) -> TestSuite {
    let mut suite = TestSuite::new(clean(digest.loop_name()));
    suite.set_time(digest.duration());
    suite.timestamp = digest.began().and_then(timestamp);
    suite.add_properties(properties(digest));
    let last = outcome_case(digest);
    // What comes below whatever the cases cost, the outcome above all, has its room.
    let mut room = MAX_FILE - 2 * MAX_CASE;
    let mut left_out = 0_u64;
    for (case, size) in cases(digest) {
        match room.checked_sub(size) {
            Some(rest) => {
                room = rest;
                suite.add_test_case(case);
            }
            None => left_out += 1,
        }
    }
    for row in digest.closing_rows() {
        suite.add_test_case(closing_case(digest, &row));
    }
    if left_out > 0 {
        leave_out(&mut suite, left_out);
    }
    suite.add_test_case(last);
    suite
}

fn properties(digest: &Digest) -> Vec<Property> {
    let mut properties = vec![
        Property::new("ll.run_id", clean(digest.run_id())),
        Property::new("ll.outcome", digest.outcome_word()),
        Property::new("ll.file", clean(&digest.file_in_repository())),
    ];
    if let Some(start) = digest.start() {
        properties.push(Property::new("ll.definition_sha256", clean(&start.definition_sha256)));
    }
    if let Some(changes) = digest.changes() {
        properties.push(Property::new("ll.changed_files", changes.count().to_string()));
        properties.push(Property::new("ll.commit", changes.start.commit.as_str()));
    }
    if let Some(caveat) = digest.caveat() {
        properties.push(Property::new("ll.caveat", clean(&caveat.words())));
    }
    if let Some(green) = digest.green() {
        properties.push(Property::new("ll.verification", clean(&green)));
    }
    properties.extend(digest.reused().into_iter().flat_map(of_earlier));
    if digest.omitted() > 0 {
        properties.push(Property::new("ll.steps_omitted", digest.omitted().to_string()));
    }
    properties
}

/// Says which earlier run stands for one.
fn of_earlier(reused: &ReusedRun) -> [Property; 2] {
    [
        Property::new("ll.reused_from", clean(&one_line(&reused.run, 200))),
        Property::new("ll.reused_commit", reused.commit.as_str()),
    ]
}

/// Returns the cases of the tasks where there are some, else of the states, each with an upper bound of its size.
fn cases(digest: &Digest) -> Vec<(TestCase, usize)> {
    if let Some(work) = digest.work().filter(|work| !work.board().tasks.is_empty()) {
        // A task that was split is done by its parts, and a case of its own would count the work twice.
        let leaves: Vec<&Task> = work.board().leaves().collect();
        let unreachable = work.board().unreachable();
        // However many failed, each of them has its place.
        let most = (MAX_FILE / 4 / leaves.len().max(1)).clamp(256, 12 * 1024);
        let case = |task: &Task| task_case(digest, work, task, unreachable.get(&task.id).copied(), most);
        return leaves.into_iter().map(case).collect();
    }
    // A step without an end has no count; the closing action of a terminal is shown only if it was cut off.
    let cut = || digest.steps().last().filter(|step| step.cut.is_some());
    let only_begun = digest.unfinished().or_else(cut).map(|step| &step.state);
    let only_begun = only_begun.filter(|state| !digest.states().contains_key(*state));
    let never = StateCount::default();
    if let Some(reused) = digest.reused() {
        return reused.states.iter().map(|state| reused_case(digest, reused, state)).collect();
    }
    // Folded once for all cases.
    let flaky = digest.flaky_checks();
    let states = digest.states().iter().chain(only_begun.map(|state| (state, &never)));
    states
        .filter(|(state, _)| is_shown(digest, state))
        .map(|(state, count)| state_case(digest, state, count, &flaky))
        .collect()
}

/// Returns the case of a state of an earlier run that stands for this one.
fn reused_case(digest: &Digest, reused: &ReusedRun, state: &ReusedState) -> (TestCase, usize) {
    let mut case = case_of_earlier(reused, state);
    place(&mut case, digest, Some(&state.state));
    (case, 2 * MARKUP)
}

fn case_of_earlier(reused: &ReusedRun, state: &ReusedState) -> TestCase {
    let mut case = TestCase::new(clean(state.state.as_str()), TestCaseStatus::success());
    case.set_time(Duration::ZERO);
    case.add_property(Property::new("ll.reused_from", attribute(&reused.run)));
    case.add_property(Property::new("ll.reused_duration_ms", state.duration_ms.to_string()));
    case
}

/// Tells whether a state has a case: one that has only kept a task board was not there to be tested.
fn is_shown(digest: &Digest, state: &StateName) -> bool {
    let mut visits = digest.steps().filter(|step| step.state == *state).peekable();
    visits.peek().is_none() || visits.any(|step| !shown_steps::is_bookkeeping(digest, step))
}

/// Returns the case of a task and an upper bound of its size.
fn task_case(
    digest: &Digest,
    work: &BoardWork,
    task: &Task,
    awaited: Option<&TaskId>,
    most: usize,
) -> (TestCase, usize) {
    let mut budget = ByteBudget { left: MAX_CASE - 4 * MARKUP };
    let (effort, why) = (work.effort(&task.id), work.reason(task));
    let is_over = digest.end().is_some();
    let status = match task.status {
        TaskStatus::Completed => TestCaseStatus::success(),
        // As with states: one failed case would make the suite of a successful run red.
        TaskStatus::Failed if digest.is_success() => {
            let why = one_line(why.unwrap_or("failed"), 200);
            skipped(&format!("{why}; the run went on and succeeded"), &mut budget)
        }
        TaskStatus::Failed => task_failure(why, most, &mut budget),
        TaskStatus::InProgress if !is_over => not_finished(),
        TaskStatus::InProgress if digest.end().is_some_and(|end| is_cut_off_by(end.outcome)) => {
            cut_off(digest, &mut budget)
        }
        TaskStatus::InProgress | TaskStatus::Blocked => skipped("not finished", &mut budget),
        TaskStatus::Pending => match awaited {
            Some(awaited) => skipped(&format!("unreachable: waits for task {awaited}"), &mut budget),
            None => skipped("not reached", &mut budget),
        },
    };
    let name = clean(&one_line(&format!("{} {}", task.id, one_line(&task.description, MAX_TASK)), 240));
    budget.spend(&name);
    let mut case = TestCase::new(name, status);
    place(&mut case, digest, None);
    case.set_time(effort.duration);
    case.add_property(Property::new("ll.attempts", effort.attempts.to_string()));
    case.add_property(Property::new("ll.calls", effort.usage.calls.to_string()));
    let size = MAX_CASE - budget.left;
    (case, size)
}

fn task_failure(why: Option<&str>, most: usize, budget: &mut ByteBudget) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let message = clean(&one_line(why.unwrap_or("failed"), 300));
    budget.spend(&message);
    status.set_message(message).set_type("failed");
    if let Some(why) = why {
        status.set_description(budget.end_of(why, most));
    }
    status
}

fn skipped(message: &str, budget: &mut ByteBudget) -> TestCaseStatus {
    let message = attribute(message);
    budget.spend(&message);
    let mut status = TestCaseStatus::skipped();
    status.set_message(message);
    status
}

/// Returns the case of a state and an upper bound of its size.
fn state_case(
    digest: &Digest,
    state: &StateName,
    count: &StateCount,
    flaky: &[CheckHistory],
) -> (TestCase, usize) {
    let visits: Vec<&Step> = digest.steps().filter(|step| step.state == *state).collect();
    let failed: Vec<&Step> =
        visits.iter().copied().filter(|step| step.standing() == StepStanding::Failing).collect();
    let mut budget = ByteBudget { left: MAX_CASE - 8 * MARKUP };
    // A state may have the name of the last case, and readers tell cases apart by their names.
    let name = if state.as_str() == OUTCOME { format!("{OUTCOME} (state)") } else { clean(state.as_str()) };
    let unfinished = digest.unfinished().filter(|step| step.state == *state);
    let last = unfinished.map(Step::standing).or(count.last);
    let is_cut_off = visits.last().is_some_and(|step| step.cut.is_some());
    let (status, reruns) = match (last, failed.split_last()) {
        _ if is_cut_off => (cut_off(digest, &mut budget), &failed[..]),
        (Some(StepStanding::Open), _) if unfinished.is_some() => (not_finished(), &failed[..]),
        (Some(StepStanding::Failing), _) if digest.is_success() => {
            (passed_over(visits.last().copied(), "the run went on and succeeded"), &failed[..0])
        }
        (Some(StepStanding::Failing), _) if digest.end_kind() == EndKind::HandedOff => {
            (passed_over(visits.last().copied(), "the run goes on later"), &failed[..0])
        }
        (Some(StepStanding::Failing), Some((last, earlier))) => (failure(last, &mut budget), earlier),
        (Some(StepStanding::Failing), None) => {
            (TestCaseStatus::non_success(NonSuccessKind::Failure), &failed[..])
        }
        (Some(StepStanding::Open), _) if excused(digest, state, &visits).is_some() => {
            (passed_over(visits.last().copied(), "it is in quarantine"), &failed[..0])
        }
        // What nothing has judged has not failed.
        (Some(StepStanding::Passing | StepStanding::Open) | None, _) => {
            (TestCaseStatus::success(), &failed[..])
        }
    };
    // What something was done about is not a repeat of the same.
    let is_success = matches!(status, TestCaseStatus::Success { .. });
    let flaky = flaky.iter().find(|check| check.state == *state);
    // That a check was made again mends nothing.
    let mended: Vec<String> = digest
        .mends()
        .mended_by(state)
        .filter(|by| flaky.is_none() || **by != *state)
        .map(|by| one_line(by.as_str(), 120))
        .collect();
    let is_repeat = |step: &Step| (flaky.is_some() && mended.is_empty()) || digest.mends().is_flaky(step);
    let reruns: Vec<&Step> = reruns.iter().copied().filter(|step| !is_success || is_repeat(step)).collect();
    let mut case = TestCase::new(name, status);
    place(&mut case, digest, Some(state));
    case.set_time(count.duration);
    case.timestamp = visits.first().and_then(|step| timestamp(step.started));
    if let Some(printed) = visits.last().map(|step| step.output()).filter(|printed| !printed.is_empty()) {
        // With the 12 KiB of a failure, this leaves a third of the case to the reruns.
        case.set_system_out(budget.end_of(&printed, 24 * 1024));
    }
    case.status.add_reruns(repeats(&reruns, &mut budget));
    case.add_property(Property::new("ll.visits", count.visits.to_string()));
    case.add_property(Property::new("ll.failing", count.failing.to_string()));
    if let Some(flaky) = flaky {
        case.add_property(Property::new("ll.flaky", attribute(&flaky.words())));
    }
    if let Some(quarantine) = excused(digest, state, &visits) {
        case.add_property(Property::new("ll.quarantined", attribute(&quarantine.words())));
    }
    if is_success && !mended.is_empty() {
        case.add_property(Property::new("ll.mended_by", attribute(&mended.join(", "))));
    }
    let size = MAX_CASE - budget.left;
    (case, size)
}

/// Returns the quarantine by which the last failure of a state was excused.
fn excused<'d>(digest: &'d Digest, state: &StateName, visits: &[&Step]) -> Option<&'d QuarantinedCheck> {
    let is_excused = visits.last().and_then(|step| step.verdict()).is_some_and(Verdict::is_quarantined);
    digest.start().filter(|_| is_excused)?.checks.quarantine(state)
}

/// A run that succeeded has no failed case: a state that said no on the way was a branch that was taken. One that was
/// handed off has none yet.
fn passed_over(step: Option<&Step>, what: &str) -> TestCaseStatus {
    let said = step.map_or_else(|| "did not pass".to_owned(), Step::said);
    let mut status = TestCaseStatus::skipped();
    status.set_message(attribute(&format!("{said}; {what}")));
    status
}

/// A run that ends in the middle of something says why. What is saved for later, or stopped on purpose, is not done;
/// what was ended from outside is broken off.
fn cut_off(digest: &Digest, budget: &mut ByteBudget) -> TestCaseStatus {
    let is_skipped =
        digest.end().is_some_and(|end| matches!(end.outcome, Outcome::Handoff | Outcome::Stopped));
    let mut status = if is_skipped {
        TestCaseStatus::skipped()
    } else {
        TestCaseStatus::non_success(NonSuccessKind::Error)
    };
    let message = attribute(&digest.sentence());
    budget.spend(&message);
    status.set_message(message).set_type(digest.outcome_word());
    status
}

/// Tells whether a run with this outcome may have ended in the middle of what it was about.
fn is_cut_off_by(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Handoff
        | Outcome::Interrupted
        | Outcome::LeaseLost
        | Outcome::Cancelled
        | Outcome::Timeout
        | Outcome::OverBudget
        | Outcome::Unavailable
        | Outcome::Stopped
        | Outcome::Error => true,
        Outcome::Success | Outcome::Failure | Outcome::Exhausted | Outcome::Blocked => false,
    }
}

/// The journal of a killed run stops in the middle of a step.
fn not_finished() -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message("was not finished").set_type("incomplete");
    status
}

fn failure(step: &Step, budget: &mut ByteBudget) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind(step));
    let message = attribute(&step.verdict_line());
    budget.spend(&message);
    let action = step.action_line(1000).map_or_else(String::new, |action| format!("{action}\n"));
    let body = format!("{message}\n{action}{}", step.output());
    status
        .set_message(message)
        .set_type(attribute(&step.word()))
        .set_description(budget.end_of(&body, 12 * 1024));
    status
}

/// Returns the runs before the last one, the latest where not all fit.
fn repeats(failed: &[&Step], budget: &mut ByteBudget) -> Vec<TestRerun> {
    let mut repeats: Vec<TestRerun> = Vec::new();
    for step in failed.iter().rev().take(MAX_RERUNS) {
        let message = attribute(&step.verdict_line());
        if budget.left < 2 * MARKUP + cost(&message) {
            break;
        }
        budget.left -= MARKUP;
        budget.spend(&message);
        let mut rerun = TestRerun::new(kind(step));
        rerun.timestamp = timestamp(step.started);
        rerun.set_time(step.duration()).set_type(attribute(&step.word()));
        rerun
            .set_description(budget.end_of(&format!("{message}\n{}", step.output()), 1024))
            .set_message(message);
        repeats.push(rerun);
    }
    repeats.reverse();
    repeats
}

fn outcome_case(digest: &Digest) -> TestCase {
    let sentence = digest.sentence();
    let mut status = match digest.end_kind() {
        EndKind::Success => TestCaseStatus::success(),
        EndKind::HandedOff | EndKind::NotRun => TestCaseStatus::skipped(),
        EndKind::Failure => TestCaseStatus::non_success(NonSuccessKind::Failure),
        EndKind::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
    };
    status.set_message(attribute(&sentence)).set_type(digest.outcome_word());
    let why = Why::of(digest).filter(|_| digest.end_kind() != EndKind::Success);
    let why = why.map_or_else(String::new, |why| head(&shown_why::chain(&why), MAX_CASE / 8).to_owned());
    let counts = match digest.unbegun() {
        Some(unbegun) => head(&unbegun.details(), MAX_CASE / 4).to_owned(),
        None => {
            format!("{}, {}", plural(digest.iterations(), "iteration"), plural(digest.step_count(), "step"))
        }
    };
    let text = if why.is_empty() { format!("{sentence}\n") } else { why };
    status.set_description(clean(&format!("{text}{counts}\n")));
    let mut case = TestCase::new(OUTCOME, status);
    place(&mut case, digest, digest.deciding_step().map(|step| &step.state));
    if let Some(line) = digest.unbegun().and_then(Unbegun::line) {
        case.extra.insert("line".into(), line.to_string().into());
    }
    // The states have the time already, and readers add the cases up.
    case.set_time(Duration::ZERO);
    case.set_system_out(clean(&format!("{sentence}\n{counts}\n")));
    case
}

fn place(case: &mut TestCase, digest: &Digest, state: Option<&StateName>) {
    case.set_classname(clean(digest.loop_name()));
    if digest.file().is_empty() {
        return;
    }
    case.extra.insert("file".into(), attribute(&digest.file_in_repository()).into());
    if let Some(line) = state.and_then(|state| digest.line(state)) {
        case.extra.insert("line".into(), line.to_string().into());
    }
}

/// An error is what did not work, a failure is what worked and said no.
fn kind(step: &Step) -> NonSuccessKind {
    let crashed = step.error.is_some()
        || step.verdict().is_some_and(|verdict| verdict.is_error() || verdict.is_timeout());
    if crashed { NonSuccessKind::Error } else { NonSuccessKind::Failure }
}

fn timestamp(at: Timestamp) -> Option<DateTime<chrono::FixedOffset>> {
    DateTime::from_timestamp_millis(at.as_millis()).map(|at| at.fixed_offset())
}

fn attribute(text: &str) -> String {
    clean(&one_line(text, 1000))
}

/// Returns the text without escapes and without what XML 1.0 cannot hold; quick-junit lets the last two through.
fn clean(text: &str) -> String {
    let text = plain(text).replace("\r\n", "\n").replace('\r', "\n");
    // The library takes tabs for control characters and drops them, which would join the words of a diff.
    text.replace('\t', "    ").replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// What is left of a case's bytes.
struct ByteBudget {
    left: usize,
}

impl ByteBudget {
    /// Returns as much of the end of a text as may be written.
    fn end_of(&mut self, text: &str, limit: usize) -> String {
        let text = clean(text);
        let limit = limit.min(self.left);
        let mut used = 0;
        let fits = text.char_indices().rev().take_while(|(_, c)| {
            used += cost_of(*c);
            used <= limit
        });
        let start = fits.last().map_or(text.len(), |(index, _)| index);
        let end = text[start..].to_owned();
        self.spend(&end);
        end
    }

    fn spend(&mut self, text: &str) {
        self.left = self.left.saturating_sub(cost(text));
    }
}

fn cost(text: &str) -> usize {
    text.chars().map(cost_of).sum()
}

fn cost_of(c: char) -> usize {
    match c {
        // As long as `&quot;`, the longest way to write one of these.
        '<' | '>' | '&' | '"' | '\'' | '\n' | '\t' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::engine::event::Event;
    use crate::engine::outcome::TerminatedBy;
    use crate::report::testing::{Journal, failing, plan, planned, state, succeeding, working};

    fn read(xml: &str) -> Report {
        let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
        assert!(xml.chars().all(allowed));
        Report::deserialize_from_str(xml).unwrap()
    }

    #[test]
    fn tabs_stay_visible() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "go vet", (1, "-\told := 1\n+\tnew := 2\n"), "no", "failed");
        let text = render(&journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false).digest());
        assert!(text.contains("-    old := 1\n+    new := 2"), "{text}");
    }

    #[test]
    fn a_failing_run() {
        assert_snapshot!(render(&failing().digest()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="ll-loop" tests="3" skipped="0" failures="2" errors="0" timestamp="2025-11-20T23:48:47.005+00:00" time="11.820">
            <testsuite name="fix-types" tests="3" skipped="0" errors="0" failures="2" timestamp="2025-11-20T23:48:47.005+00:00" time="11.820">
                <properties>
                    <property name="ll.run_id" value="fix-types-20251120T234847-1f2e"/>
                    <property name="ll.outcome" value="failure"/>
                    <property name="ll.file" value=".loops/fix-types.yaml"/>
                    <property name="ll.definition_sha256" value="0000000000000000000000000000000000000000000000000000000000000000"/>
                </properties>
                <testcase name="check" classname="fix-types" timestamp="2025-11-20T23:48:47.010+00:00" time="7.020" file=".loops/fix-types.yaml" line="6">
                    <properties>
                        <property name="ll.visits" value="3"/>
                        <property name="ll.failing" value="3"/>
                    </properties>
                    <failure message="no (exit 1, 2.3s)" type="no">no (exit 1, 2.3s)
        mypy src/
        src/app.py:3: error: Name &quot;foo&quot; is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        </failure>
                    <rerunFailure timestamp="2025-11-20T23:48:47.010+00:00" time="2.340" message="no (exit 1, 2.3s)" type="no">no (exit 1, 2.3s)
        src/app.py:3: error: Name &quot;foo&quot; is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        </rerunFailure>
                    <rerunFailure timestamp="2025-11-20T23:48:51.735+00:00" time="2.340" message="no (exit 1, 2.3s)" type="no">no (exit 1, 2.3s)
        src/app.py:3: error: Name &quot;foo&quot; is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        </rerunFailure>
                    <system-out>src/app.py:3: error: Name &quot;foo&quot; is not defined  [name-defined]
        src/app.py:9:5: error: Missing return statement  [return]
        Found 2 errors in 1 file (checked 4 source files)
        </system-out>
                </testcase>
                <testcase name="fix" classname="fix-types" timestamp="2025-11-20T23:48:49.375+00:00" time="4.680" file=".loops/fix-types.yaml" line="12">
                    <properties>
                        <property name="ll.visits" value="2"/>
                        <property name="ll.failing" value="0"/>
                    </properties>
                </testcase>
                <testcase name="loop outcome" classname="fix-types" time="0.000" file=".loops/fix-types.yaml" line="6">
                    <failure message="failure: `check` said no in 3 of 3 iterations" type="failure">failure: `check` said no in 3 of 3 iterations [outcome-failure]
        ← it reached `failed` (.loops/fix-types.yaml) [terminal-reached]
        ← step 5: `check` → `failed`, the way for `no` (.loops/fix-types.yaml:6) [route-verdict]
        ← step 5: `check` said no [verdict-failing]
        ← `exit_code`: exit 1, 2.3s [evaluator-exit-code]
        ← `mypy src/` printed last [evidence-output]
            src/app.py:3: error: Name &quot;foo&quot; is not defined  [name-defined]
            src/app.py:9:5: error: Missing return statement  [return]
            Found 2 errors in 1 file (checked 4 source files)
        3 iterations, 5 steps
        </failure>
                    <system-out>failure: `check` said no in 3 of 3 iterations
        3 iterations, 5 steps
        </system-out>
                </testcase>
            </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn a_run_that_goes_on_later_has_no_failed_case() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "mypy", (1, "bad"), "no", "fix").enter("fix", 1).act("ruff");
        let xml = render(&journal.end(Outcome::Handoff, TerminatedBy::Handoff, "fix", false).digest());
        assert!(xml.contains(r#"tests="3" skipped="3" failures="0" errors="0""#), "{xml}");
        assert!(xml.contains(r#"<skipped message="said no; the run goes on later"/>"#), "{xml}");
        assert!(xml.contains(r#"<skipped message="handoff: saved in `fix`" type="handoff"/>"#), "{xml}");
        // What is ended from outside is broken off, and what it had found stands.
        for (outcome, by) in
            [(Outcome::Interrupted, TerminatedBy::Interrupted), (Outcome::Timeout, TerminatedBy::Timeout)]
        {
            let mut journal = Journal::start();
            journal.step(("check", 1), "mypy", (1, "bad"), "no", "fix").enter("fix", 1).act("ruff");
            let xml = render(&journal.end(outcome, by, "fix", false).digest());
            assert!(xml.contains(r#"tests="3" skipped="0" failures="1" errors="2""#), "{xml}");
        }
    }

    #[test]
    fn a_run_on_a_board_has_a_case_for_each_task() {
        assert_snapshot!(render(&working().digest()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="ll-loop" tests="5" skipped="1" failures="2" errors="0" timestamp="2025-11-20T23:48:47.005+00:00" time="42.870">
            <testsuite name="build" tests="5" skipped="1" errors="0" failures="2" timestamp="2025-11-20T23:48:47.005+00:00" time="42.870">
                <properties>
                    <property name="ll.run_id" value="build-20251120T234847-1f2e"/>
                    <property name="ll.outcome" value="failure"/>
                    <property name="ll.file" value=".loops/build.yaml"/>
                    <property name="ll.definition_sha256" value="0000000000000000000000000000000000000000000000000000000000000000"/>
                </properties>
                <testcase name="1 Add the login form" classname="build" time="14.040" file=".loops/build.yaml">
                    <properties>
                        <property name="ll.attempts" value="1"/>
                        <property name="ll.calls" value="5"/>
                    </properties>
                </testcase>
                <testcase name="2.1 Pick a store" classname="build" time="2.340" file=".loops/build.yaml">
                    <properties>
                        <property name="ll.attempts" value="1"/>
                        <property name="ll.calls" value="1"/>
                    </properties>
                </testcase>
                <testcase name="2.2 Write to it" classname="build" time="4.680" file=".loops/build.yaml">
                    <properties>
                        <property name="ll.attempts" value="2"/>
                        <property name="ll.calls" value="2"/>
                    </properties>
                    <failure message="no disk" type="failed">no disk</failure>
                </testcase>
                <testcase name="3 Document it" classname="build" time="0.000" file=".loops/build.yaml">
                    <properties>
                        <property name="ll.attempts" value="0"/>
                        <property name="ll.calls" value="0"/>
                    </properties>
                    <skipped message="unreachable: waits for task 2"/>
                </testcase>
                <testcase name="loop outcome" classname="build" time="0.000" file=".loops/build.yaml">
                    <failure message="failure: `implement` said blocked 2 of 6 times" type="failure">failure: `implement` said blocked 2 of 6 times [outcome-failure]
        ← it reached `failed` (.loops/build.yaml) [terminal-reached]
        ← 2 of 4 tasks are not done [evidence-tasks]
            2.2 Write to it — failed: no disk
            3 Document it — pending
        ← step 38: `next` → `x`, the way for `stuck` [route-verdict]
        ← step 35: `implement` → `x`, the way for `blocked` [route-verdict]
        ← step 35: `implement` said blocked [verdict-failing]
        ← `answer`: exit 0, 2.3s [evaluator-answer]
        ← `do implement` printed last [evidence-output]
            reason: no disk
            implement prints
        1 iteration, 38 steps
        </failure>
                    <system-out>failure: `implement` said blocked 2 of 6 times
        1 iteration, 38 steps
        </system-out>
                </testcase>
            </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn what_was_not_finished_depends_on_how_the_run_ended() {
        let mut journal = planned(&[("a", &[]), ("b", &[0])]);
        journal.operate("next", "next", &json!({})).begin("implement", "coder");
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.errors, report.skipped), (3, 2, 1));
        journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "implement", false);
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.errors, report.skipped), (3, 2, 1));
        let mut journal = planned(&[("a", &[]), ("b", &[0])]);
        journal.operate("next", "next", &json!({})).begin("implement", "coder");
        journal.end(Outcome::Handoff, TerminatedBy::Handoff, "implement", false);
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.errors, report.skipped), (3, 0, 3));
    }

    /// Ends a run that checked once well and has begun something else, and says what became of that.
    #[track_caller]
    fn cut_off(begin: &dyn Fn(&mut Journal), outcome: Outcome, by: TerminatedBy, name: &str, expected: &str) {
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (0, ""), "yes", "fix");
        begin(&mut journal);
        journal.end(outcome, by, name, true);
        let report = read(&render(&journal.digest()));
        let told: Vec<String> = report.test_suites[0]
            .test_cases
            .iter()
            .map(|case| {
                let status = match &case.status {
                    TestCaseStatus::Success { .. } => "passed",
                    TestCaseStatus::Skipped { .. } => "skipped",
                    TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => "failed",
                    TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. } => "error",
                };
                format!("{} {status}", case.name.as_str())
            })
            .collect();
        assert_eq!(told.join(", "), expected);
    }

    #[test]
    fn what_the_end_of_the_run_cut_off_is_no_passed_case() {
        use crate::evaluate::observation::{Observation, Stop};
        let stopped = |stop| Observation { stop: Some(stop), ..Observation::exited(143, "half") };
        let never = |journal: &mut Journal| {
            journal.enter("fix", 1);
        };
        let cancelled = |journal: &mut Journal| {
            journal.enter("fix", 1).act("x").seen(stopped(Stop::Cancelled));
        };
        let late = |journal: &mut Journal| {
            journal.enter("fix", 1).act("x").seen(stopped(Stop::LoopTimeout));
        };
        let ended = |journal: &mut Journal| {
            journal.enter("fix", 1).act("x").done(0, "LOOP_STOP: enough", "");
        };
        let again = |journal: &mut Journal| {
            journal.enter("check", 2).act("x").seen(stopped(Stop::Cancelled));
        };
        let left = |journal: &mut Journal| {
            journal.next("fix", 1, "x", 0, "check");
        };
        cut_off(
            &never,
            Outcome::Handoff,
            TerminatedBy::Handoff,
            "fix",
            "check passed, fix skipped, loop outcome skipped",
        );
        cut_off(
            &ended,
            Outcome::Handoff,
            TerminatedBy::Handoff,
            "fix",
            "check passed, fix skipped, loop outcome skipped",
        );
        cut_off(
            &never,
            Outcome::Interrupted,
            TerminatedBy::Interrupted,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        cut_off(
            &cancelled,
            Outcome::Interrupted,
            TerminatedBy::Interrupted,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        cut_off(
            &again,
            Outcome::Interrupted,
            TerminatedBy::Interrupted,
            "check",
            "check error, loop outcome error",
        );
        cut_off(
            &late,
            Outcome::Timeout,
            TerminatedBy::Timeout,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        cut_off(
            &never,
            Outcome::OverBudget,
            TerminatedBy::Budget,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        cut_off(
            &never,
            Outcome::Unavailable,
            TerminatedBy::Unavailable,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        cut_off(
            &ended,
            Outcome::Stopped,
            TerminatedBy::LoopStop,
            "fix",
            "check passed, fix skipped, loop outcome failed",
        );
        cut_off(
            &ended,
            Outcome::Error,
            TerminatedBy::FatalError,
            "fix",
            "check passed, fix error, loop outcome error",
        );
        // What was finished before is what it was.
        cut_off(
            &left,
            Outcome::Interrupted,
            TerminatedBy::Interrupted,
            "check",
            "check passed, fix passed, loop outcome error",
        );
    }

    #[test]
    fn a_terminal_has_a_case_only_where_its_action_was_cut_off() {
        use crate::engine::event::{ActionKind, Event, LoopResume, ResumeReason};
        use crate::evaluate::observation::{Observation, Stop};
        use crate::report::testing::state;
        let mut journal = Journal::start();
        let closing = || Event::ActionStart {
            state: state("done"),
            action: "notify".into(),
            kind: ActionKind::Shell,
            role: None,
            session: None,
            tree: None,
        };
        journal.step(("check", 1), "make", (0, ""), "yes", "done").push(closing());
        journal.seen(Observation { stop: Some(Stop::Cancelled), ..Observation::exited(143, "") });
        journal.end(Outcome::Interrupted, TerminatedBy::Interrupted, "done", true);
        let digest = journal.digest();
        let report = read(&render(&digest));
        assert_eq!((report.tests, report.errors, report.skipped), (3, 2, 0));
        let case = &report.test_suites[0].test_cases[1];
        let TestCaseStatus::NonSuccess { message, .. } = &case.status else { panic!("{case:?}") };
        assert_eq!(
            (case.name.as_str(), message.as_deref()),
            ("done", Some("interrupted: SIGTERM in `done`"))
        );
        journal.push(Event::LoopResume(LoopResume {
            from_state: state("done"),
            iteration: 1,
            step: 1,
            reason: ResumeReason::Interrupted,
            continuation: None,
            keeps_sessions: false,
            tree_changed: false,
            changes: crate::engine::event::ResumeChanges::default(),
        }));
        journal.push(closing()).done(0, "", "");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let digest = journal.digest();
        assert_eq!(digest.steps().count(), 2, "{:?}", digest.steps().collect::<Vec<_>>());
        let report = read(&render(&digest));
        assert_eq!((report.tests, report.errors, report.skipped), (2, 0, 0));
    }

    #[test]
    fn a_success_that_gave_a_task_up_has_no_failure() {
        let mut journal = planned(&[("a", &[]), ("b", &[])]);
        journal.operate("next", "next", &json!({})).operate("give_up", "give_up", &json!({}));
        journal.operate("next", "next", &json!({})).operate("pass", "pass", &json!({}));
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.failures, report.errors, report.skipped), (3, 0, 0, 1));
    }

    #[test]
    fn many_tasks_fit_into_the_file() {
        let hostile = "<&>'\"\n".repeat(1000);
        let tasks: Vec<(&str, &[i64])> = vec![(hostile.as_str(), &[]); 2000];
        let mut journal = Journal::on_board();
        journal.operate("load", "load", &plan(&tasks)).operate("approve", "approve", &json!({}));
        for _ in 0..40 {
            journal.operate("next", "next", &json!({})).operate(
                "fail",
                "fail",
                &json!({"feedback": hostile}),
            );
            journal.operate("give_up", "give_up", &json!({}));
        }
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        let xml = render(&journal.digest());
        assert!(xml.len() <= MAX_FILE, "{}", xml.len());
        let report = read(&xml);
        let failed = journal.digest().work().unwrap().board().count().failed;
        assert!(failed > 10);
        assert_eq!((report.tests, report.failures), (2001, failed as usize + 1));
    }

    #[test]
    fn what_was_mended_is_not_flaky() {
        let xml = render(&succeeding().digest());
        let report = read(&xml);
        assert_eq!((report.tests, report.failures, report.errors), (3, 0, 0));
        let TestCaseStatus::Success { flaky_runs } = &report.test_suites[0].test_cases[0].status else {
            panic!()
        };
        assert!(flaky_runs.is_empty());
        assert!(xml.contains(r#"<property name="ll.mended_by" value="fix"/>"#), "{xml}");
    }

    #[test]
    fn first_failed_and_later_passed_on_one_tree_is_flaky() {
        let mut journal = Journal::start();
        journal.step(("check", 1), "pytest", (1, ""), "no", "check");
        journal.step(("check", 2), "pytest", (0, ""), "yes", "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let xml = render(&journal.digest());
        let TestCaseStatus::Success { flaky_runs } = &read(&xml).test_suites[0].test_cases[0].status.clone()
        else {
            panic!()
        };
        assert_eq!(flaky_runs.len(), 1);
        assert!(!xml.contains("ll.mended_by"), "{xml}");
    }

    #[test]
    fn a_branch_on_the_way_to_a_success_is_no_failure() {
        let mut journal = Journal::start();
        journal.step(("changed", 1), "git diff --quiet", (1, ""), "no", "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", false);
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.failures, report.errors, report.skipped), (2, 0, 0, 1));
    }

    #[test]
    fn a_killed_run_has_an_error() {
        let report = read(&render(&Journal::start().enter("check", 1).digest()));
        assert_eq!((report.tests, report.errors), (2, 2));
        let mut journal = Journal::start();
        journal.step(("check", 1), "make", (1, ""), "no", "fix");
        let report = read(&render(&journal.digest()));
        assert_eq!((report.tests, report.failures, report.errors), (2, 1, 1));
    }

    #[test]
    fn files_and_cases_are_bounded() {
        let mut journal = Journal::of("long", 1000);
        let output = "<&>'\"\n".repeat(10_000);
        for step in 0..3000_u32 {
            let name = format!("{}{}", "<".repeat(100), step % 450);
            journal.step((&name, step + 1), &"&".repeat(5000), (1, &output), &"\"".repeat(100), "x");
        }
        journal.end(Outcome::Exhausted, TerminatedBy::MaxSteps, "x", false);
        let xml = render(&journal.digest());
        assert!(xml.len() <= MAX_FILE, "{}", xml.len());

        let mut journal = Journal::of("long", 1000);
        for step in 0..450 {
            journal.step(("check", step + 1), "c", (1, &output), "no", "check");
        }
        journal.end(Outcome::Exhausted, TerminatedBy::MaxSteps, "check", false);
        let xml = render(&journal.digest());
        let cases = xml.split("<testcase").skip(1).map(str::len).max().unwrap();
        assert!(cases <= MAX_CASE, "{cases}");
        read(&xml);
    }

    fn closing_check(verdict: &Verdict, made_again: bool) -> ClosingPassCheck {
        let passed = *verdict == Verdict::yes_if(true);
        ClosingPassCheck {
            state: state("check"),
            check: "check".to_owned(),
            without_added: false,
            made_again,
            action: "make".to_owned(),
            verdict: verdict.clone(),
            passed,
            exit_code: i32::from(!passed),
            duration_ms: 5,
            details: serde_json::Map::new(),
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    fn once_more(stdout: &str, stderr: &str) -> String {
        let mut journal = Journal::start();
        journal.push(Event::ClosingPassCheck(Box::new(ClosingPassCheck {
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
            ..closing_check(&Verdict::new("no"), false)
        })));
        journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
        render(&journal.digest())
    }

    #[test]
    fn a_failed_check_of_the_closing_pass_tells_all_that_it_printed() {
        for (stdout, stderr, said) in [
            ("one failed\n", "", ">one failed</failure>"),
            ("", "no such file\n", ">no such file</failure>"),
            ("one failed\n", "it is old\n", ">one failed\nit is old</failure>"),
        ] {
            let xml = once_more(stdout, stderr);
            assert!(xml.contains(said), "{xml}");
            read(&xml);
        }
    }

    #[test]
    fn a_failure_of_the_closing_pass_that_does_not_count_is_none() {
        let (no, yes) = (Verdict::yes_if(false), Verdict::yes_if(true));
        let digest = |checks: Vec<ClosingPassCheck>| {
            let mut journal = Journal::start();
            for check in checks {
                journal.push(Event::ClosingPassCheck(Box::new(check)));
            }
            journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
            journal.digest()
        };
        let excused = digest(vec![closing_check(&Verdict::quarantined(), false)]);
        let report = read(&render(&excused));
        assert_eq!((report.failures, report.skipped), (0, 1));

        let wavering =
            digest(vec![closing_check(&no, true), closing_check(&no, true), closing_check(&yes, false)]);
        let xml = render(&wavering);
        let report = read(&xml);
        assert_eq!((report.tests, report.failures), (2, 0), "{xml}");
        assert_eq!(xml.matches("<flakyFailure").count(), 2, "{xml}");
        assert_eq!(wavering.flaky_words().unwrap(), "flaky: check failed 2 of 3 on these inputs");

        let broken = digest(vec![closing_check(&no, true), closing_check(&no, false)]);
        let xml = render(&broken);
        let report = read(&xml);
        assert_eq!((report.tests, report.failures), (2, 1), "{xml}");
        assert_eq!((xml.matches("<rerunFailure").count(), broken.flaky_words()), (1, None), "{xml}");
    }

    #[test]
    fn suites_that_do_not_fit_in_one_file_say_what_is_left_out() {
        let most = MAX_CASE + 32 * (16 << 10);
        let printed = || "x".repeat(16 << 10);
        let suite = |number: u32| {
            let mut suite = TestSuite::new(format!("s{number}"));
            for at in 0..5 {
                let is_red = number == 7 && at == 0;
                let mut case = TestCase::new(format!("c{at}"), TestCaseStatus::success());
                if is_red {
                    case.status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                }
                case.set_system_out(printed());
                suite.add_test_case(case);
            }
            suite
        };
        let xml = file_within(most, (0..8).map(suite));
        assert!(xml.len() <= most, "{}", xml.len());
        let report = read(&xml);
        let left_out = |suite: &TestSuite| {
            let property = suite.properties.iter().find(|property| property.name.as_str() == LEFT_OUT);
            property.map_or(0, |property| property.value.as_str().parse::<usize>().unwrap())
        };
        let missing: usize = report.test_suites.iter().map(left_out).sum();
        assert!(missing > 0 && report.tests - 1 + missing == 40, "{} {missing}", report.tests);
        // What failed is there, and so is the end of every suite.
        assert_eq!((report.failures, report.skipped), (1, 1));
        for suite in report.test_suites.iter().filter(|suite| suite.name.as_str() != "ll-loop") {
            assert_eq!(suite.test_cases.last().unwrap().name.as_str(), "c4");
        }
        assert!(xml.contains(&format!("{missing} cases are left out")), "{missing}");

        let red = |number: u32| red(&format!("s{number}"), "no", &printed());
        let xml = file_within(most, (0..40).map(red));
        assert!(xml.len() <= most, "{}", xml.len());
        let report = read(&xml);
        let missing = 40 + 1 - report.tests;
        assert!(xml.contains(&format!("{missing} cases are left out, {missing} of them red")), "{missing}");
        // Something red that is not there is red all the same.
        assert_eq!(report.failures, report.tests);
    }

    #[test]
    fn a_state_may_be_called_like_the_outcome() {
        let mut journal = Journal::start();
        journal.step((OUTCOME, 1), "c", (0, ""), "yes", "done");
        journal.end(Outcome::Success, TerminatedBy::Terminal, "done", true);
        let report = read(&render(&journal.digest()));
        let names: Vec<&str> = report.test_suites[0].test_cases.iter().map(|case| &*case.name).collect();
        assert_eq!(names, ["loop outcome (state)", "loop outcome"]);
    }

    proptest! {
        #[test]
        fn whatever_was_printed_the_file_reads_back(output in hostile(), action in hostile(), verdict in hostile()) {
            let mut journal = Journal::start();
            journal.step(("check", 1), &action, (1, &output), &verdict, "fix");
            journal.step(("check", 2), &action, (1, &output), "no", "failed");
            journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
            let report = read(&render(&journal.digest()));
            prop_assert_eq!(report.tests, 2);
            prop_assert_eq!(report.failures, 2);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_a_task_is_called_the_file_reads_back(description in hostile(), why in hostile()) {
            let description = format!("{description}x");
            let mut journal = planned(&[(&description, &[]), (&description, &[0])]);
            journal.operate("next", "next", &json!({})).operate("fail", "fail", &json!({"feedback": why}));
            journal.operate("next", "next", &json!({})).operate("give_up", "give_up", &json!({}));
            journal.end(Outcome::Failure, TerminatedBy::Terminal, "failed", false);
            let report = read(&render(&journal.digest()));
            prop_assert_eq!((report.tests, report.failures, report.skipped), (3, 2, 1));
        }
    }

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = vec![
            "]]>",
            "<![CDATA[",
            "</system-out>",
            "<testcase/>",
            "&amp;",
            "&#0;",
            "\u{fffe}",
            "\u{ffff}",
            "\0",
            "\u{8}",
            "\u{1b}[31m",
            "\u{1b}]8;;x\u{7}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\r",
            "\n",
            "\"",
            "'",
            "--",
            "?>",
            "x",
        ];
        let piece = prop_oneof![3 => proptest::sample::select(pieces).prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
        proptest::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn what_was_not_run_is_skipped() {
        let text = render(&crate::report::testing::not_run());
        assert!(text.contains(r#"tests="1" skipped="1" errors="0" failures="0""#), "{text}");
        assert!(text.contains("<skipped message=\"success (not in scope): nothing was run"), "{text}");
    }
}
