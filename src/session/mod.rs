//! A run from the name of a loop to its reports. Commands call it once their command lines are parsed; programs that
//! embed ll-loop call it directly.
//!
//! Types enforce the order: [`Session::find`](context::Session::find) and
//! [`Session::prepare`](context::Session::prepare) make a [`Prepared`](prepared::Prepared) loop,
//! [`Prepared::begin`](prepared::Prepared::begin) or [`Session::resume`](context::Session::resume) a run that is
//! [`Ready`](ready::Ready), and [`Ready::run`](ready::Ready::run) drives it until it has [`Ended`](ready::Ended).
//!
//! Nothing here reads the command line, the terminal or the environment of the process, or changes
//! its working directory.

pub mod audience;
pub mod begin;
pub mod branch;
mod bundle;
pub mod bundler;
pub(crate) mod catalog;
pub mod changed;
pub mod changes;
pub mod check;
pub mod choose;
pub mod claim;
pub mod consent;
mod contained;
pub mod context;
pub mod criteria;
pub mod deliver;
mod detail;
mod diff;
pub mod dispatch;
pub(crate) mod doctor;
pub mod environment;
pub mod error;
pub(crate) mod fanout;
pub mod fetch;
pub mod files;
pub mod finish;
pub mod fold;
pub mod git;
pub mod guard;
pub mod incoming;
pub(crate) mod init;
pub mod interrupts;
pub mod job_record;
pub mod key;
pub mod killed;
mod left_behind;
pub mod library;
pub mod lines;
mod lock;
pub mod mistakes;
pub mod nights;
mod opened;
pub mod options;
mod otherwise;
pub mod prepared;
mod printed;
pub mod publish;
mod pushed_refs;
pub mod ready;
pub mod relay;
pub(crate) mod replay;
pub mod report;
mod repro;
mod repro_script;
pub mod resume;
pub mod rewind;
mod rewound;
pub mod runs;
mod scratch;
pub mod secrets;
mod snapshots;
pub mod start;
pub mod stats;
pub mod stop;
pub mod successor;
pub mod talk;
mod tree;
pub mod trust;
pub mod unbegun;
pub mod upload;
pub mod variables;
pub mod vendor;
pub mod whereabouts;
mod why;
pub mod worktree;
