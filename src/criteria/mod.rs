//! Decides whether a piece of work is done, in progress or stuck: from one file, with the same answer for an
//! evaluator, a hook and a command.
//!
//! `.loop/state.json` names the criteria of the work and says which are met. Agents, hooks, people and loops read it,
//! and [`decide`] alone interprets it. [`advance`] computes it after another round of
//! checks. Both keep unknown keys where they were.

pub mod advance;
pub mod check_commands;
pub mod decision;
pub mod edit;
pub mod exact_json;
pub mod hook;
pub mod session_message;
pub mod spec;
pub mod state;
pub mod work_owner;

pub use advance::advance;
pub use decision::{CriteriaDecision, Progress, decide};
pub use session_message::resume_message;
pub use state::CriteriaState;
