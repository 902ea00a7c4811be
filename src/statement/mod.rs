//! What is claimed of a run in the words of in-toto, so that a verdict can be checked where the run is not known: two
//! statements, each a function of the digest and of the bundle that holds the run. `docs/evidence.md` says what they mean.
//!
//! [`simple_verdict`] is for whoever asks only whether: a Simple Verification Result, made of a verified success alone.
//! [`verdict_details`] is for whoever asks how, and is made of every run. Both name the [`subjects`].

pub(crate) mod in_toto;
pub(crate) mod property;
pub(crate) mod simple_verdict;
pub(crate) mod subjects;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod verdict_details;

/// The file with the simple verdict, among the reports of a verified success.
pub(crate) const VERDICT_FILE: &str = "verdict.intoto.json";

/// The file with the details, among the reports of every run.
pub(crate) const DETAILS_FILE: &str = "verdict-details.intoto.json";
