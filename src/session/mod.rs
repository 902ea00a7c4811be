//! A run from the name of a loop to its reports. Commands call it once their command lines are parsed; programs that
//! embed ll-loop call it directly.
//!
//! Types enforce the order: [`Session::find`](context::Session::find) and
//! [`Session::prepare`](context::Session::prepare) make a [`Prepared`](prepare::prepared::Prepared) loop,
//! [`Prepared::begin`](prepare::prepared::Prepared::begin) or [`Session::resume`](context::Session::resume) a run that is
//! [`Ready`](end::ready::Ready), and [`Ready::run`](end::ready::Ready::run) drives it until it has [`Ended`](end::ready::Ended).
//!
//! Nothing here reads the command line, the terminal or the environment of the process, or changes
//! its working directory.

pub mod audience;
pub mod context;
pub mod criteria;
pub mod end;
pub mod environment;
pub mod error;
pub mod git;
pub mod interrupts;
pub mod key;
pub mod options;
pub mod prepare;
pub mod read;
pub mod secrets;
pub mod start;
pub mod stop_run;
pub mod talk;
