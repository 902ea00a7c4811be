//! The task board of a run that plans its own work: its tasks, their status, and which comes next.
//!
//! States work on it through operations, each of which is decided here: [`apply`] takes a board and an operation, and
//! returns the new board, the verdict that chooses the next state, and notes for people. It knows no
//! process, file, clock or chance; the same operations make the same board, everywhere and always.

pub(crate) mod apply;
pub(crate) mod board_change;
pub(crate) mod bound;
pub(crate) mod limits;
pub(crate) mod operation;
mod planner_answers;
pub(crate) mod task;
pub(crate) mod task_texts;
#[cfg(test)]
mod tests;

pub use apply::apply;
pub use board_change::BoardChange;
pub use bound::{AgentCalls, CallBound, MOST_PARTS, MOST_TASKS};
pub use limits::Limits;
pub use operation::{ANSWER, Note, NoteKind, Operation, OperationKind};
pub use task::{Board, Task, TaskCount, TaskId, TaskStatus};
pub use task_texts::FIELDS;
