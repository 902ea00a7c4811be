//! What is known of the tools by which repositories check themselves, from the table `catalog/tools.toml`: which command lines
//! only look, which mend, and how each says that it could not run.
//!
//! `init` and `doctor`, the evaluator `exit_code` and the judging of runs read the one table, so that no two of them
//! disagree on what a check is.

mod not_run;
mod recognise;
mod table;
mod task_names;

pub use not_run::{CouldNotRun, could_not_run, could_not_run_text};
pub use recognise::{Manner, Recognised, pure_check, recognise, recognise_line};
pub use table::{Ecosystem, Lack, Purpose, TOOLS, Tool, ToolCheck, with_places};
pub use task_names::{
    TaskKind, builds_documents, is_other, is_some_check, is_some_test, task_kind, task_part, watches, writes,
};
