//! What is said of another verdict is what a run with that verdict does: loops and answers at random.

use super::explored::any_loop;
use super::generated::answer_commands;
use super::*;
use crate::engine::past::Past;
use crate::engine::suppose::{Course, VerdictMoment};
use crate::evaluate::Evaluate;
use crate::evaluate::verdict::Verdict;
use crate::machine::Step;

/// Runs with an answer for every step, but for one that is answered in another way.
fn run_with(
    machine: &Machine,
    is_night: bool,
    answers: &[Observation],
    instead: Option<(usize, &Observation)>,
) -> Vec<(Event, Duration)> {
    let mut engine = Engine::new(machine, night_runs::start_of(is_night));
    let mut all = Vec::new();
    for _ in 0..40 {
        let step = engine.run().step() as usize;
        let survey = || tree(if step.is_multiple_of(3) { 'b' } else { 'a' });
        let command = || match instead {
            Some((at, answer)) if at == step => answer.clone(),
            _ => answers[step % answers.len()].clone(),
        };
        let Some(input) = answer_commands(&engine, survey, command) else { break };
        let now = Duration::from_secs(step as u64);
        all.extend(engine.handle(input, now).unwrap().into_iter().map(|event| (event, now)));
    }
    all
}

/// Returns what an action does that leads to this verdict.
fn leading_to(step: &Step, verdict: &Verdict) -> Observation {
    match step.evaluate.as_ref().unwrap() {
        Evaluate::Classify(_) => Observation::exited(0, verdict.as_str()),
        _ => Observation::exited(i32::from(verdict.as_str() != "yes"), ""),
    }
}

/// Returns what a run really does after the end of this step.
fn course_of(machine: &Machine, events: &[(Event, Duration)], step: u32) -> Option<Course> {
    let is_it = |event: &Event| matches!(event, Event::StateEnter { step: entered, .. } if *entered == step);
    let at = events.iter().position(|(event, _)| is_it(event))?;
    events[at + 1..].iter().find_map(|(event, _)| match event {
        Event::LoopComplete(end) => Some(Course::Ends(Box::new(end.clone()))),
        Event::StateEnter { state, .. } => {
            let works = |name| match machine.find(name) {
                Some(Target::Step(id)) => machine.step(id).action.is_some(),
                Some(Target::End(_)) | None => false,
            };
            works(state).then(|| Course::Enters(state.clone()))
        }
        _ => None,
    })
}

fn as_people_see_it(course: &Course) -> String {
    match course {
        Course::Ends(end) => {
            format!("{:?} by {:?} in {} ({})", end.outcome, end.terminated_by, end.final_state, end.verified)
        }
        Course::Enters(state) => format!("enters {state}"),
    }
}

/// Returns every moment of a run with the step that it is of.
fn moments(machine: &Machine, events: &[(Event, Duration)]) -> Vec<(u32, VerdictMoment)> {
    let Some(((Event::LoopStart(start), _), rest)) = events.split_first() else { panic!("no beginning") };
    let mut past = Past::new(machine, start.clone(), IndexMap::new());
    let mut found = Vec::new();
    for (event, at) in rest {
        let of_action = match event {
            Event::ActionComplete(complete) => VerdictMoment::unjudged(&past, machine, complete),
            _ => None,
        };
        found.extend(
            VerdictMoment::of(&past, machine, event).or(of_action).map(|moment| (past.run().step(), moment)),
        );
        past.event(machine, event, *at);
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_claimed_of_another_verdict_is_what_a_run_does(
        text in any_loop(),
        answers in prop::collection::vec(answer(), 1..12),
        is_night in any::<bool>(),
    ) {
        let machine = machine(&text);
        let events = run_with(&machine, is_night, &answers, None);
        for (step, moment) in moments(&machine, &events) {
            let Some(Target::Step(id)) = machine.find(moment.state(&machine)) else { panic!() };
            for (verdict, claimed) in moment.otherwise(&machine) {
                prop_assert!(!verdict.is_error() && !verdict.is_timeout() && verdict != *moment.verdict());
                let instead = leading_to(machine.step(id), &verdict);
                let really = run_with(&machine, is_night, &answers, Some((step as usize, &instead)));
                // A run that goes in circles is watched for a while only.
                let Some(happened) = course_of(&machine, &really, step) else { continue };
                prop_assert_eq!(
                    as_people_see_it(&claimed), as_people_see_it(&happened),
                    "step {} `{}` {} -> {} of\n{}", step, machine.step(id).name, moment.verdict(), verdict, text
                );
            }
        }
    }
}

fn otherwise(text: &str, script: &str) -> String {
    let machine = machine(text);
    let events = events(&machine, start(true), &world(script));
    let events: Vec<_> = events.into_iter().map(|event| (event, Duration::ZERO)).collect();
    let mut said = String::new();
    for (step, moment) in moments(&machine, &events) {
        for (verdict, course) in moment.otherwise(&machine) {
            let (state, fell, course) = (moment.state(&machine), moment.verdict(), as_people_see_it(&course));
            let _ = writeln!(said, "{step} {state}: {verdict} instead of {fell}: {course}");
        }
    }
    said
}

#[test]
fn only_what_the_machine_decides_is_claimed() {
    let text = "max_iterations: 3\nstates:\n  check: {action: x, on_yes: done, on_no: fix}\n  fix: {action: y, next: check}\n  done: {terminal: true}\n";
    assert_snapshot!(otherwise(text, "x: 1\ny: 0"), @"
    1 check: yes instead of no: Success by Terminal in done (true)
    3 check: yes instead of no: Success by Terminal in done (true)
    5 check: yes instead of no: Success by Terminal in done (true)
    ");
}

#[test]
fn what_changes_nothing_is_not_said() {
    let text = "states:\n  check: {action: x, on_yes: look, on_no: look}\n  look: {action: x, on_yes: done, on_no: done}\n  done: {terminal: true, outcome: failure}\n";
    assert_snapshot!(otherwise(text, "x: 1"), @"");
}

#[test]
fn an_error_is_no_answer_that_could_have_been_another() {
    let text = "states:\n  sort: {action: x, evaluate: {type: classify}, route: {good: done, bad: failed, _: other, _error: failed}}\n  other: {action: y, next: sort}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n";
    assert_snapshot!(otherwise(text, "x: 0 bad\n"), @"1 sort: good instead of bad: Success by Terminal in done (true)");
}

#[test]
fn a_wait_and_a_pass_without_work_are_followed() {
    let text = "backoff: 1\nstates:\n  check: {action: x, on_yes: on, on_no: again, timeout: 5, on_timeout: failed}\n  on: {next: further}\n  further: {next: done}\n  again: {next: check}\n  done: {terminal: true}\n  failed: {terminal: true, outcome: failure}\n";
    assert_snapshot!(otherwise(text, "x: timeout\n"), @"
    1 check: yes instead of timeout: Success by Terminal in done (true)
    1 check: no instead of timeout: enters check
    ");
}
