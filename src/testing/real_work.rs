//! Runs what is mocked, in a worktree of its own: to see whether mocks still fit, and to run one state truly.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::asked::{AskedPlace, AskedWork, Gap, GapReason, Script, SubLoopAnswer, WorkAnswer};
use super::mock_witness::says;
use super::play::{MOST_TURNS, Play, Played, play};
use super::prepare::ReadyCase;
use super::ready_test::ReadyTest;
use super::real_report::ComparedMock;
use super::scripted::MockScript;
use super::test_worktree::TestWorktree;
use super::tested_loop::LoopUnderTest;
use super::virtual_tree::TreeEffects;
use crate::base::explanation::Explanation;
use crate::engine::request::{ActionRequest, AskRequest, SubLoopRequest};
use crate::evaluate::model::{ModelAnswer, Usage};
use crate::evaluate::observation::Observation;
use crate::machine::Target;

/// Which commands are run truly, and what for.
enum Meant<'m> {
    /// Those of this state, in place of its mocks; how often it was.
    State(&'m str, &'m mut usize),
    /// Each once, beside its mock.
    Compared(&'m mut Vec<ComparedMock>, &'m mut BTreeSet<(String, String)>),
}

/// Runs some commands, and answers everything else from mocks.
struct RealScript<'r, 's> {
    mocks: MockScript<'r>,
    worktree: &'r TestWorktree<'s>,
    meant: Meant<'r>,
    case: &'r str,
}

impl RealScript<'_, '_> {
    /// Answers from a mock, which writes for what is run truly as well.
    fn mocked(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let text = work.text();
        let answer = self.mocks.work(place, work)?;
        self.write(&place, &text, &answer.effects)?;
        Ok(answer)
    }

    fn write(&self, place: &AskedPlace<'_>, text: &str, effects: &TreeEffects) -> Result<(), Gap> {
        self.worktree.take(effects).map_err(|why| Gap {
            state: place.key(),
            text: text.to_owned(),
            why: GapReason::Unknown(format!("its mock cannot write: {why}")),
        })
    }
}

impl Script for RealScript<'_, '_> {
    fn work(&mut self, place: AskedPlace<'_>, work: AskedWork<'_>) -> Result<WorkAnswer, Gap> {
        let AskedWork::Shell(request) = work else { return self.mocked(place, work) };
        match &mut self.meant {
            Meant::State(state, count) if place.key() == *state => {
                **count += 1;
                let (seen, effects) = self.worktree.run(request);
                Ok(WorkAnswer {
                    takes: seen.duration,
                    seen,
                    usage: Usage::default(),
                    effects,
                    is_late: false,
                    interruption: None,
                })
            }
            Meant::State(..) => self.mocked(place, work),
            Meant::Compared(all, seen) => {
                let answer = self.mocks.work(place, work)?;
                let effects = answer.effects.clone();
                let is_new = seen.insert((place.key(), request.text.clone()));
                // A mock that interrupts the run does not say how its command would have ended.
                if is_new && !place.in_closing_pass && answer.interruption.is_none() {
                    // The case goes on from its mock: the run does not see what the command has changed.
                    let (real, _) = self.worktree.run(request);
                    let from = self.mocks.origin(&place);
                    all.push(compared(self.case, place, request, &answer.seen, &real, from));
                }
                // Only now: the command should not find what its own mock says that it writes.
                self.write(&place, request.text.as_str(), &effects)?;
                Ok(answer)
            }
        }
    }

    fn judge(&mut self, place: AskedPlace<'_>, request: &AskRequest) -> Result<(ModelAnswer, Duration), Gap> {
        self.mocks.judge(place, request)
    }

    fn sub_loop(&mut self, place: AskedPlace<'_>, request: &SubLoopRequest) -> Result<SubLoopAnswer, Gap> {
        self.mocks.sub_loop(place, request)
    }

    fn resumes(&mut self, state: &str) -> bool {
        self.mocks.resumes(state)
    }
}

fn compared(
    case: &str,
    place: AskedPlace<'_>,
    request: &ActionRequest,
    mock: &Observation,
    real: &Observation,
    from: Option<String>,
) -> ComparedMock {
    let verdict = |seen: &Observation| {
        let Some(Target::Step(id)) = place.machine.find(place.state) else { return None };
        let step = place.machine.step(id);
        says(step.evaluate.as_ref()?, step, seen).map(|verdict| verdict.to_string())
    };
    ComparedMock {
        case: case.to_owned(),
        state: place.key(),
        text: request.text.clone(),
        exit: (mock.exit_code, real.exit_code),
        verdict: (verdict(mock), verdict(real)),
        shape: (shape(mock.stdout.as_str()), shape(real.stdout.as_str())),
        from,
    }
}

/// Returns what kind of text an output is.
fn shape(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => {
            let keys: Vec<&str> = map.keys().map(String::as_str).collect();
            format!("JSON with {}", keys.join(", "))
        }
        Ok(Value::Array(_)) => "a list in JSON".to_owned(),
        Ok(Value::Number(_)) => "a number".to_owned(),
        // A word such as `true` or `null` is JSON by accident.
        Ok(Value::String(_) | Value::Bool(_) | Value::Null) | Err(_) => "text".to_owned(),
    }
}

/// Plays a case with this state run truly, and counts how often that was.
pub(crate) fn real(
    test: &ReadyTest,
    state: &str,
    count: &mut usize,
    subject: &mut LoopUnderTest,
    worktree: &TestWorktree<'_>,
) -> Result<Played, Explanation> {
    played(test, subject, worktree, Meant::State(state, count))
}

/// Runs the commands of a case once each, and compares what they come to with its mocks.
pub(crate) fn compare(
    test: &ReadyTest,
    subject: &mut LoopUnderTest,
    worktree: &TestWorktree<'_>,
    all: &mut Vec<ComparedMock>,
    seen: &mut BTreeSet<(String, String)>,
) -> Result<(), Explanation> {
    played(test, subject, worktree, Meant::Compared(all, seen)).map(drop)
}

fn played(
    test: &ReadyTest,
    subject: &mut LoopUnderTest,
    worktree: &TestWorktree<'_>,
    meant: Meant<'_>,
) -> Result<Played, Explanation> {
    let ReadyCase { start, placement, tree, mocks } = test.ready.clone();
    worktree.begin(&tree.given())?;
    let machine = subject.own.settled(&start)?;
    let mut script = RealScript { mocks: MockScript::new(&mocks), worktree, meant, case: &test.case.name };
    let loops = &mut subject.library;
    Ok(play(Play { machine, start, placement, tree, loops, script: &mut script, most_turns: MOST_TURNS }))
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn an_output_has_a_shape() {
        for (text, expected) in [
            (" \n", "nothing"),
            ("12\n", "a number"),
            ("{\"a\": 1, \"b\": {}}", "JSON with a, b"),
            ("[1]", "a list in JSON"),
            ("2 failed", "text"),
        ] {
            assert_eq!(shape(text), expected);
        }
    }
}
