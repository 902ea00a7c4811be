//! A run from the name of a loop to its reports. Commands call it once their command lines are parsed; programs that
//! embed ll-loop call it directly.
//!
//! Types enforce the order: [`Session::find`](crate::context::Session::find) and
//! [`Session::prepare`](crate::context::Session::prepare) make a [`Prepared`](prepare::prepared::Prepared) loop,
//! [`Prepared::begin`](prepare::prepared::Prepared::begin) or [`Session::resume`](crate::context::Session::resume) a run that is
//! [`Ready`](end::ready::Ready), and [`Ready::run`](end::ready::Ready::run) drives it until it has [`Ended`](end::ready::Ended).
//!
//! Nothing here reads the command line, the terminal or the environment of the process, or changes
//! its working directory.

pub mod criteria;
pub mod end;
pub mod prepare;
pub mod read;
pub mod start;
pub mod stop_run;
