//! A run from the name of a loop to its reports: what the commands do once their command lines are read, and what a
//! program does that embeds ll-loop.
//!
//! The order is kept by types: [`Session::find`] and [`Session::prepare`] make a [`Prepared`] loop,
//! [`Prepared::begin`] or [`Session::resume`] a run that is [`Ready`], and [`Ready::run`] lets it go until it has
//! [`Ended`]. Nothing here reads the command line, the terminal or the environment of the process, and nothing changes
//! its working directory.

pub mod audience;
pub(crate) mod begin;
pub(crate) mod bundle;
pub(crate) mod bundler;
pub(crate) mod changed;
pub(crate) mod changes;
pub mod check;
pub(crate) mod choose;
pub(crate) mod claim;
pub(crate) mod consent;
pub mod context;
pub(crate) mod dispatch;
pub mod environment;
pub mod error;
pub(crate) mod fetch;
pub(crate) mod files;
pub(crate) mod finish;
pub(crate) mod fold;
pub(crate) mod git;
pub(crate) mod incoming;
pub(crate) mod interrupts;
pub(crate) mod library;
pub(crate) mod lines;
pub(crate) mod nights;
pub mod options;
pub(crate) mod prepared;
pub(crate) mod publish;
pub(crate) mod ready;
pub(crate) mod resume;
pub(crate) mod runs;
pub(crate) mod secrets;
pub(crate) mod successor;
pub mod talk;
pub(crate) mod trust;
pub(crate) mod upload;
pub(crate) mod variables;
pub(crate) mod worktree;

pub use begin::{Begun, Bound, NotNeeded};
pub use context::Session;
pub use environment::Environment;
pub use error::{Error, Kind};
pub use interrupts::{StopBy, StopHandle};
pub use options::{BeginOptions, ResumeOptions, RunOptions, Which};
pub use prepared::Prepared;
pub use ready::{Ended, Ready};
pub use resume::GoesOn;
pub use talk::{Silence, Talk};
