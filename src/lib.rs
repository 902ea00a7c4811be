//! ll-loop: YAML finite-state machines that check, fix and verify, in CI and at home.
//!
//! The way through the code is the way of a run: a loop file becomes a [`definition`], the definition a checked
//! [`machine`], the [`engine`] walks it and says what happened as events, and sinks in [`report`] show them.
//!
//! ```text
//!   cli            composition root; nobody imports it
//!    ├── run       the driver: performs what the engine asks
//!    │    ├── host      the CLIs of agents
//!    │    ├── process   children and signals
//!    │    ├── journal   durable events ◀── bundle   a run in one file
//!    │    └── report    sinks, digest, formats ◀── ci   providers
//!    ├────▶ engine      the pure run
//!    ├────▶ machine     compiled and checked
//!    └────▶ definition  the file as written
//!               evaluate    what a verdict is and how output becomes one
//!               criteria    when a piece of work is done, goes on or is stuck
//!               board       the tasks of a run that plans its own work
//!               files       read up to a limit, replaced whole, unzipped with suspicion
//!               base        names, time, templates, diagnostics, redaction
//! ```
//!
//! `base`, `board`, `criteria`, `evaluate`, `definition` (but for its loader), `machine` and `engine` know no process, file, clock
//! or network; a test in `tests/integration/architecture` keeps it so.

pub mod base;
pub mod board;
pub mod bundle;
pub mod ci;
pub mod cli;
pub mod criteria;
pub mod definition;
pub mod engine;
pub mod evaluate;
pub mod files;
pub mod host;
pub mod journal;
pub mod machine;
pub mod process;
pub mod report;
pub mod run;
