//! Holds what the model says of a sentence against the engine: a way that breaks it counts where a run shows that it does.

use super::always::Always;
use super::case_player::CasePlayer;
use super::case_text::CaseText;
use super::facts::broken;
use super::proof::{Proof, WalkStep, prove, prove_in_passes};
use super::tested_loop::{LoopUnderTest, LoopVariant};

/// The result of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeldClaim {
    /// It holds on every way of the model.
    Proven,
    /// A run breaks it.
    Broken(Box<Counterexample>),
    /// Neither is known, and why.
    Unknown(String),
}

/// A run that breaks a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Counterexample {
    /// The way through the model.
    pub(super) way: Vec<WalkStep>,
    /// The run, as a case.
    pub(super) case: CaseText,
}

/// Looks whether a sentence holds on every way of a loop, or a run breaks it.
pub(super) fn hold(
    always: &Always,
    variant: &LoopVariant,
    player: &CasePlayer,
    subject: &mut LoopUnderTest,
) -> HeldClaim {
    let mut last = Vec::new();
    // The model counts passes only where it has to: the first way may be one that the caps keep a run from.
    for proof in [prove, prove_in_passes] {
        let way = match proof(always, &variant.machine) {
            Proof::Proven => return HeldClaim::Proven,
            Proof::Unknown(why) => return HeldClaim::Unknown(why),
            Proof::Broken(way) => way,
        };
        if let Some(case) = shown(always, &way, variant, player, subject) {
            return HeldClaim::Broken(Box::new(Counterexample { way, case }));
        }
        last = way;
    }
    HeldClaim::Unknown(format!("the model has a way that breaks it, and no run shows it: {}", words(&last)))
}

/// Returns the case of a way, if playing it breaks the sentence.
fn shown(
    always: &Always,
    way: &[WalkStep],
    variant: &LoopVariant,
    player: &CasePlayer,
    subject: &mut LoopUnderTest,
) -> Option<CaseText> {
    let machine = variant.settled(&player.start).ok()?;
    let case = CaseText::of_walk(format!("breaks: {}", always.text), way, &machine)?;
    let run = player.play(&case, &machine, subject)?;
    let is_broken = !broken(std::slice::from_ref(always), &machine, None, &run.events).is_empty();
    // The mark is for cases that are written into files; this one is shown, and pasted by a person.
    is_broken.then_some(CaseText { comment: None, ..case })
}

/// Writes a way through the model: `check (no) → fix`.
pub(super) fn words(way: &[WalkStep]) -> String {
    let shown = |step: &WalkStep| match &step.departure {
        Some(departure) => format!("{} ({})", step.state, departure.verdict),
        None => step.state.to_string(),
    };
    way.iter().map(shown).collect::<Vec<_>>().join(" → ")
}
