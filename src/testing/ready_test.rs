//! A case that can be played, and what is not as it is expected.

use std::collections::BTreeMap;

use super::always::Always;
use super::case_report::CaseFailure;
use super::expected::{AskedText, SeenRun, Snapshots, compare};
use super::facts::broken;
use super::play::{AskedRecord, Play, Played, PlayedEnd, play};
use super::prepare::ReadyCase;
use super::scripted::MockScript;
use super::tested_loop::{LoopUnderTest, LoopVariant};
use super::written::LoopCase;
use crate::base::explanation::Explanation;
use crate::base::path::DocPath;
use crate::machine::Machine;

/// A case that can be played.
pub(crate) struct ReadyTest {
    pub(crate) case: LoopCase,
    pub(crate) ready: ReadyCase,
    pub(crate) place: DocPath,
    /// Its line in the test file.
    pub(crate) line: usize,
    /// Whether the program wrote it, and no person has looked at it since.
    pub(crate) is_generated: bool,
}

impl ReadyTest {
    /// Plays the case on a loop, or on a mutant of it.
    pub(crate) fn play(
        &self,
        variant: &LoopVariant,
        subject: &mut LoopUnderTest,
        most_turns: u32,
    ) -> Result<Played, Explanation> {
        let ReadyCase { start, placement, tree, mocks } = self.ready.clone();
        let machine = variant.settled(&start)?;
        let mut script = MockScript::new(&mocks);
        let loops = &mut subject.library;
        Ok(play(Play { machine, start, placement, tree, loops, script: &mut script, most_turns }))
    }

    /// Returns everything that is not as it is expected of a run.
    pub(crate) fn failures(
        &self,
        played: &Played,
        always: &[Always],
        machine: &Machine,
        snapshots: &mut dyn Snapshots,
    ) -> Vec<CaseFailure> {
        let mut failures = Vec::new();
        let end = match &played.end {
            PlayedEnd::Complete(end) => Some(end.as_ref()),
            // A case may be about what a kill leaves: only what it expects can fail it.
            PlayedEnd::Killed => None,
            PlayedEnd::Gap(gap) => {
                failures.push(CaseFailure::Gap(gap.clone()));
                None
            }
            PlayedEnd::Endless => {
                failures.push(CaseFailure::Endless);
                None
            }
            PlayedEnd::NotResumable(why) => {
                failures.push(CaseFailure::NotResumable(why.clone()));
                None
            }
        };
        if let Some(expected) = &self.case.expect {
            let asked: Vec<AskedText> = played.asked.iter().map(asked_text).collect();
            let captured: BTreeMap<String, String> = played
                .captured
                .iter()
                .map(|(name, result)| (name.clone(), result.seen.stdout.without_line_end().to_owned()))
                .collect();
            let host = self.case.host();
            let run = SeenRun { events: &played.events, end, asked: &asked, captured: &captured, host };
            let place = self.place.key("expect");
            let differs = compare(expected, run, &self.case.name, &place, snapshots);
            failures.extend(differs.into_iter().map(CaseFailure::Differs));
        }
        let broken = broken(always, machine, self.ready.placement.as_ref(), &played.events);
        failures.extend(broken.into_iter().map(CaseFailure::Broken));
        failures
    }
}

fn asked_text(record: &AskedRecord) -> AskedText {
    let AskedRecord { state, kind, text, env, .. } = record.clone();
    AskedText { state, kind, text, env }
}
