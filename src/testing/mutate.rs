//! Runs the cases of a loop on its mutants, and tells which of them no case has noticed.

use super::always::Always;
use super::case_player::CasePlayer;
use super::counterexample::{HeldClaim, hold};
use super::kept_snapshots::KeptSnapshots;
use super::likeness::are_alike;
use super::mutant_report::{MutantReport, Survivor};
use super::mutants::{LoopMutant, SkippedLine, mutants, skipped};
use super::play::MOST_TURNS;
use super::ready_test::ReadyTest;
use super::tested_loop::{LoopUnderTest, LoopVariant};
use crate::process::clock::Clock;

/// Which mutants are run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct MutantSelection {
    /// The part of them that this process runs, from 1, and how many parts there are.
    pub(crate) shard: Option<(usize, usize)>,
    /// The lines of the files of the loop that a change touches; everything without.
    pub(crate) changed: Option<Vec<(String, std::ops::RangeInclusive<usize>)>>,
}

impl MutantSelection {
    fn takes(&self, index: usize, line: Option<&(String, usize)>) -> bool {
        // By the place among all mutants, so that shards share nothing and leave nothing out.
        let in_shard = self.shard.is_none_or(|(part, of)| index % of == part - 1);
        let in_diff = self.changed.as_ref().is_none_or(|changed| {
            line.is_some_and(|(file, line)| {
                changed.iter().any(|(known, lines)| known == file && lines.contains(line))
            })
        });
        in_shard && in_diff
    }
}

/// Runs the cases that people wrote on every mutant.
pub(crate) fn run(
    tests: &[ReadyTest],
    subject: &mut LoopUnderTest,
    always: &[Always],
    snapshots: &KeptSnapshots,
    selection: &MutantSelection,
) -> MutantReport {
    let clock = Clock::start();
    let own = subject.own.clone();
    let tests: Vec<&ReadyTest> = tests.iter().filter(|test| !test.is_generated).collect();
    let (tree, sources) = (subject.loaded.tree.clone(), subject.loaded.sources.clone());
    let skips = skipped(&sources);
    let mut report = MutantReport::default();
    // A case that fails anyway would seem to kill every mutant.
    if let Some(name) = first_failure(&tests, &own, subject, always, snapshots, MOST_TURNS) {
        report.unusable = Some(format!("the case `{name}` fails without a mutant"));
        return report;
    }
    let turns = most_turns(&tests, &own, subject);
    // Where no run can begin by itself, the cases alone tell mutants apart.
    let player = CasePlayer::of(subject).ok();
    for (index, mutant) in mutants(&tree, &own.machine).into_iter().enumerate() {
        let line = mutant.line(&tree, &sources);
        if !selection.takes(index, line.as_ref()) {
            continue;
        }
        if let Some(skip) = skip(&skips, line.as_ref()) {
            if !report.skipped.contains(skip) {
                report.skipped.push(skip.clone());
            }
            continue;
        }
        let Some(mutated) = made(&mutant, subject) else {
            report.invalid += 1;
            continue;
        };
        // Asked before it is played: no test could kill it, and that is no fault of the tests.
        if are_alike(&own.machine, &mutated.machine) {
            report.equal += 1;
            continue;
        }
        let is_killed = first_failure(&tests, &mutated, subject, always, snapshots, turns).is_some()
            || player.as_ref().is_some_and(|player| breaks(always, &mutated, player, subject));
        if is_killed {
            report.killed += 1;
        } else {
            let (file, line) = line.map_or((None, None), |(file, line)| (Some(file), Some(line)));
            let difference = mutant.difference(&tree, &sources);
            report.survivors.push(Survivor { what: mutant.what, file, line, difference });
        }
    }
    report.took = clock.elapsed();
    report
}

/// Tells whether a run of a mutant breaks what always holds.
fn breaks(
    always: &[Always],
    mutated: &LoopVariant,
    player: &CasePlayer,
    subject: &mut LoopUnderTest,
) -> bool {
    always.iter().any(|always| matches!(hold(always, mutated, player, subject), HeldClaim::Broken(_)))
}

fn skip<'s>(skips: &'s [SkippedLine], line: Option<&(String, usize)>) -> Option<&'s SkippedLine> {
    let (file, line) = line?;
    skips.iter().find(|skip| skip.file == *file && skip.line == *line)
}

/// Makes a mutant, if it is a loop that can run.
fn made(mutant: &LoopMutant, subject: &LoopUnderTest) -> Option<LoopVariant> {
    LoopVariant::of(mutant.definition(&subject.loaded.tree, &subject.loaded.definition.name)?)
}

/// Returns the name of the first case that fails on a machine.
fn first_failure(
    tests: &[&ReadyTest],
    variant: &LoopVariant,
    subject: &mut LoopUnderTest,
    always: &[Always],
    snapshots: &KeptSnapshots,
    turns: u32,
) -> Option<String> {
    // A mutant must not write the texts that the loop is compared with.
    let mut frozen = snapshots.frozen();
    let mut fails = |test: &&&ReadyTest| match test.play(variant, subject, turns) {
        Ok(played) => !test.failures(&played, always, &variant.machine, &mut frozen).is_empty(),
        // The loop itself can be made with these values, so a mutant that cannot is told from it.
        Err(_) => true,
    };
    tests.iter().find(|test| fails(test)).map(|test| test.case.name.clone())
}

/// Returns how many turns a mutant may take: many times more than the loop itself needs.
fn most_turns(tests: &[&ReadyTest], own: &LoopVariant, subject: &mut LoopUnderTest) -> u32 {
    let events = tests.iter().filter_map(|test| test.play(own, subject, MOST_TURNS).ok());
    let longest = events.map(|played| played.events.len()).max().unwrap_or(0);
    let longest = u32::try_from(longest).unwrap_or(MOST_TURNS);
    // A mutant may go round more often and still end. The 500 are for cases of a few events.
    longest.saturating_mul(10).saturating_add(500).min(MOST_TURNS)
}
