//! A run from its beginning to its end, however it comes to that.

mod artifact_output;
mod background;
mod bad_journals;
pub(crate) mod board;
mod changes;
pub(crate) mod crash;
mod files;
mod full_disk;
#[cfg(target_os = "linux")]
mod guard;
mod kept_files;
mod killed;
mod killed_anywhere;
mod killed_closing_pass;
mod left_behind;
mod limits;
pub(crate) mod lying_index;
mod obeyed;
mod on_change;
mod processes;
mod resume;
pub(crate) mod rewind;
mod run;
mod snapshots;
mod stall;
mod streams;
mod sub_loops;
mod unbegun;
mod unreported;
mod verified;
mod worktree;
