//! Why a run ended as it did: a chain from its outcome back to what an action printed, and what another verdict would have
//! made of it.

pub mod chain_text;
pub mod code;
mod reason_chain;

use code::Code;
use serde_json::{Map, Value};

use super::digest::SentencePart;
use super::digest::flips::Otherwise;
use super::numbers::StepNumber;
use crate::base::name::StateName;
use crate::evaluate::verdict::Verdict;

/// How many lines of evidence stand at the end of a chain.
pub const MOST_LINES: usize = 10;

/// Why a run ended as it did. All texts in it may be of whoever wrote the run: each format has to escape them.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// The instance id.
    pub run: String,
    /// The word for the outcome.
    pub outcome: &'static str,
    /// From the outcome back to the evidence.
    pub chain: Vec<Link>,
    /// What would have been with another verdict.
    pub otherwise: Otherwise,
}

/// A link of the chain: the one before it is so because of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What kind of link.
    pub code: Code,
    /// What it says, for people.
    pub says: Vec<SentencePart>,
    /// The state or terminal it is about.
    pub state: Option<StateName>,
    /// The step it is about.
    pub step: Option<StepNumber>,
    /// The file where that is written.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// The verdict.
    pub verdict: Option<Verdict>,
    /// The evaluator.
    pub evaluator: Option<String>,
    /// What it found: the exit code, and the values that it compared.
    pub numbers: Map<String, Value>,
    /// The last lines of what was printed, or what else speaks for it.
    pub lines: Vec<String>,
}

impl Link {
    /// Returns the place in the loop file, for people.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}
