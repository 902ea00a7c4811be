//! The commands: one file each, with its arguments and what it does.

pub(super) mod action;
pub(super) mod artifact;
pub(super) mod bundle;
pub(super) mod compile;
pub(super) mod completions;
pub(super) mod criteria;
pub(super) mod deliver;
pub(super) mod diff;
pub(super) mod doctor;
pub(super) mod explain;
pub(super) mod go_on;
pub(super) mod guard;
pub(super) mod history;
pub(super) mod hook;
pub(super) mod list;
pub(super) mod logs;
pub(super) mod man;
pub(super) mod publish;
pub(super) mod query;
pub(super) mod replay;
pub(super) mod report;
pub(super) mod repro;
pub(super) mod resume;
pub(super) mod rewind;
pub(super) mod run;
pub(super) mod schema;
pub(super) mod show;
pub(super) mod stats;
pub(super) mod status;
pub(super) mod stop;
pub(super) mod supervise;
pub(super) mod validate;
pub(super) mod version;
pub(super) mod why;

mod runs;
