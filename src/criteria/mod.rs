//! When a piece of work is done, goes on, or is stuck: one file, and the same answer for an evaluator, a hook and a
//! command.
//!
//! `.loop/state.json` names the criteria of the work and says which are met. Agents, hooks, people and loops read it,
//! and [`decide`] is the one place that says what it means. What it means after another round of checks, [`advance`]
//! says. Both take the file as it is: a key that nobody here knows stays where it was.

pub mod advance;
pub mod decision;
pub mod edit;
pub mod hook;
pub mod message;
pub mod state;

pub use advance::advance;
pub use decision::{Decision, Progress, decide};
pub use message::resume_message;
pub use state::State;
