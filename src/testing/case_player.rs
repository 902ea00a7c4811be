//! Plays cases that the program wrote: what it says of a loop is shown by a run of the engine before anybody reads it.

use std::collections::BTreeMap;
use std::rc::Rc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::case_text::{CaseText, given};
use super::mock::{Mock, MockedState, typed};
use super::play::{Play, Played, play};
use super::prepare::ready;
use super::scripted::{MockScript, MockedTurns, StateMocks};
use super::tested_loop::LoopUnderTest;
use super::written::{CaseStart, LoopCase, WrittenMock};
use crate::base::decode::Decode as _;
use crate::base::diagnostic::Diagnostics;
use crate::base::explanation::Explanation;
use crate::base::name::StateName;
use crate::base::node::FileId;
use crate::base::path::DocPath;
use crate::definition::yaml;
use crate::engine::Start;
use crate::machine::{Machine, Target};

/// The most turns of a run that shows something.
// Less than for cases of people: thousands of walks are taken, and any of them may come to the bound.
pub(super) const SHORT: u32 = 5_000;

/// Plays cases with values for what a loop needs before it begins.
pub(super) struct CasePlayer {
    /// How the runs begin.
    pub(super) start: Start,
}

impl CasePlayer {
    /// Makes values for what a loop needs.
    pub(super) fn of(subject: &LoopUnderTest) -> Result<Self, Explanation> {
        let texts = subject.texts();
        let mut findings = Diagnostics::default();
        let case = LoopCase {
            name: "walk".to_owned(),
            given: case_start(&given(&subject.own.machine)),
            mocks: IndexMap::new(),
            expect: None,
        };
        let tested = subject.tested(&texts);
        let ready = ready(&case, tested, &mut |_, _| None, &DocPath::root(), &mut findings);
        let first = || findings.iter().next().map(|finding| finding.message.clone());
        let why = || Explanation::new(first().unwrap_or_default());
        Ok(Self { start: ready.ok_or_else(why)?.start })
    }

    /// Plays a case on this machine, if its mocks can be read.
    pub(super) fn play(
        &self,
        case: &CaseText,
        machine: &Rc<Machine>,
        subject: &mut LoopUnderTest,
    ) -> Option<Played> {
        let mut mocks = BTreeMap::new();
        for (state, visits) in &case.mocks {
            let name = StateName::parse(state).ok()?;
            let of = match machine.find(&name)? {
                Target::Step(id) => MockedState::step(machine.step(id)),
                Target::End(id) => MockedState::end(machine.end(id)),
            };
            let visits = visits.iter().map(|visit| made(visit, of)).collect::<Option<Vec<_>>>()?;
            let closing_pass = match case.closing.get(state) {
                Some(value) => Some(made(value, of)?),
                None => None,
            };
            mocks.insert(state.clone(), StateMocks { visits: MockedTurns::Listed(visits), closing_pass });
        }
        let mut script = MockScript::new(&mocks);
        let (machine, start) = (Rc::clone(machine), self.start.clone());
        Some(play(Play::from_the_start(machine, start, &mut subject.library, &mut script, SHORT)))
    }
}

/// Reads a mock as a test file is read.
pub(super) fn made(value: &Value, state: MockedState<'_>) -> Option<Mock> {
    let mut found = Diagnostics::default();
    let node = yaml::parse(&format!("mock: {value}"), FileId(0), &mut found)?;
    let written = WrittenMock::decode(node.get("mock")?, &DocPath::root(), &mut found)?;
    let mock = typed(&written, state, &DocPath::root(), &mut found);
    mock.filter(|_| !found.has_errors())
}

fn case_start(given: &Map<String, Value>) -> Option<CaseStart> {
    let mut found = Diagnostics::default();
    let node = yaml::parse(&Value::Object(given.clone()).to_string(), FileId(0), &mut found)?;
    CaseStart::decode(&node, &DocPath::root(), &mut found)
}
