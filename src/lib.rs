//! ll-loop: YAML finite-state machines that check, fix and verify, in CI and at home.
//!
//! The way through the code is the way of a run: a loop file becomes a [`definition`], the definition a checked
//! [`machine`], the [`engine`] walks it and says what happened as events, and sinks in [`report`] show them.
//!
//! ```text
//!   cli           the command line; nobody imports it
//!    ├── editor     loops in an editor: the language server, and what it shares with `validate`
//!    ├── doctor     what works on this machine
//!    ├── evidence   what of a run can be checked elsewhere
//!    ├── inspect    looks at runs: why, diff, replay, repro, statistics, reports
//!    ├── fleet      the loops of many repositories on one page
//!    ├── shelf      the loops of a project: copies, the catalogue, a first loop
//!    ├── testing    tests of loops: mocks, coverage, mutants, old runs
//!    ├── fanout     a plan over many jobs, and what their runs prove together
//!    ├── deliver    what is brought to people of a run, and whether
//!    ├── steering   people steer runs from a pull request
//!    └── session    a run from the name of its loop to its reports
//!         ├── lock      scopes of runs, where several machines could work on them
//!         ├── reuse_refs  results of runs as refs of a repository
//!         ├── spending  what models take on a day, over all runs that a policy binds
//!         ├── repository  git in the directories of a session: working trees, scratch repositories
//!         ├── context   what a session works with: environment, options, errors, whom it tells
//!         ├── ci        providers: log, detection, status, check, comment
//!         ├── bundle    a run in one file
//!         ├── forge     servers that keep repositories
//!         ├── reuse     what need not be run again
//!         ├── policy    what somebody above the repository allows
//!         ├── telemetry runs in the traces and metrics of others
//!         └── run       the driver: performs what the engine asks
//!              ├── git       git, called in one way
//!              ├── host      the CLIs of agents
//!              ├── sandbox   keeps actions in
//!              ├── broker    between them and their services
//!              ├── process   children and signals
//!              ├── journal   durable events
//!              └── report    sinks, digest, formats
//!    ├────▶ engine      the pure run
//!    ├────▶ machine     compiled and checked
//!    └────▶ definition  the file as written
//!               statement   what is claimed of a run, in the words of in-toto
//!               people      whether a comment on a server answers a run
//!               evaluate    what a verdict is and how output becomes one
//!               lease       who may work on a scope, where several machines could
//!               judges      which files decide what a check says, and what a run did to them
//!               guidance    what a repository says to agents
//!               criteria    when a piece of work is done, goes on or is stuck
//!               board       the tasks of a run that plans its own work
//!               shell       shell text, cut into words and commands
//!               tools       which command lines are checks, and how tools say that they could not run
//!               files       read up to a limit, replaced whole, unzipped with suspicion
//!               base        names, time, templates, diagnostics, redaction
//! ```
//!
//! # To embed a run
//!
//! A [`Session`] has an environment, a directory and somebody to talk to. It finds, checks, runs, resumes and reports
//! loops, and reads nothing else of the process around it.
//!
//! ```
//! use ll_loop::{BeginOptions, Begun, Environment, OutputLine, Session, Sink, Stamped, Talk, Watched};
//!
//! struct Printer;
//!
//! impl Sink for Printer {
//!     fn name(&self) -> &'static str {
//!         "the printer"
//!     }
//!     fn event(&mut self, event: &Stamped) -> std::io::Result<()> {
//!         println!("{} at {}", event.seq, event.ts);
//!         Ok(())
//!     }
//!     fn output(&mut self, line: OutputLine<'_>) -> std::io::Result<()> {
//!         println!("  {}", line.text);
//!         Ok(())
//!     }
//! }
//!
//! struct Program;
//!
//! impl Talk for Program {
//!     fn watch(&self, _run: &Watched<'_>) -> Option<Box<dyn Sink>> {
//!         Some(Box::new(Printer))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! # std::fs::create_dir(directory.join(".loops"))?;
//! # let text = "name: tidy\ninitial: check\nstates:\n  check: {action: 'echo fine', on_yes: done}\n  done: {terminal: true}\n";
//! # std::fs::write(directory.join(".loops/tidy.yaml"), text)?;
//! let environment = Environment::of([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
//! let session = Session::new(&environment, directory, &Program)?;
//! let prepared = session.prepare(session.find("tidy", false)?)?;
//! if let Begun::Ready(run) = prepared.begin(BeginOptions::default(), &session)? {
//!     let ended = run.run()?;
//!     assert!(ended.complete.verified);
//!     assert_eq!(ended.exit_code(), 0);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The house
//!
//! A feature is one room, and purity is a property of files: what decides, plans and puts into words knows no process,
//! file, clock or network, wherever it stands. A test in `tests/integration/architecture` lists those files, and sees
//! that no arrow leads up and that neither files nor folders name each other in circles.

// Without `internals`, most of what is `pub` in a layer is for other layers alone; the compiler then finds what
// none uses.
#![cfg_attr(not(feature = "internals"), allow(unreachable_pub, reason = "see above"))]

#[cfg(not(unix))]
compile_error!("ll-loop does not run on Windows: build it inside of WSL");

mod base;
mod board;
mod broker;
mod bundle;
mod ci;
mod cli;
mod context;
mod criteria;
mod definition;
mod deliver;
mod doctor;
mod editor;
mod engine;
mod evaluate;
mod evidence;
mod fanout;
mod files;
mod fleet;
mod forge;
mod git;
mod guidance;
mod host;
mod inspect;
mod journal;
mod judges;
mod lease;
mod lock;
mod machine;
mod people;
mod policy;
mod process;
mod report;
mod repository;
mod reuse;
mod reuse_refs;
mod run;
mod sandbox;
mod session;
mod shelf;
mod shell;
mod spending;
mod statement;
mod steering;
mod telemetry;
pub mod testing;
mod tools;

pub use base::diagnostic::{Diagnostic, Diagnostics, Severity};
pub use base::name::{LoopName, StateName};
pub use base::time::Timestamp;
pub use ci::Provider;
pub use ci::chain::ChainLink;
pub use ci::reported::ReportOptions;
/// Runs the program: arguments without the program's name first.
pub use cli::main as run_command_line;
pub use context::Session;
pub use context::audience::Audience;
pub use context::environment::Environment;
pub use context::error::{Error, Kind};
pub use context::interrupts::{StopBy, StopHandle, Stopped};
pub use context::options::{BeginOptions, LlmOptions, ResumeOptions, RunOptions, Upload, Which};
pub use context::talk::{Findings, Silence, Talk, Watched};
pub use definition::load::Located;
pub use definition::source_text::Sources;
pub use engine::event::{Event, LoopComplete, Stamped};
pub use engine::outcome::{Outcome, Signal};
pub use evaluate::observation::Stream;
pub use machine::{BrokerUse, Budget, OnChange, OnHandoff};
pub use report::digest::Digest;
pub use report::formats::{FORMATS, ReportFormat};
pub use report::{OutputLine, Sink};
pub use run::recording::Mode;
pub use run::{Helper, serve as answer_query};
pub use session::end::ready::{EndedRun, Ready};
pub use session::prepare::loop_check::{Checked, Checker};
pub use session::prepare::prepared::Prepared;
pub use session::start::begin::{Begun, BoundLoop, SkippedRun};
pub use session::start::resume::Resumption;

/// What our own tests, benchmarks and fuzz targets look at. Nothing here is promised.
#[cfg(feature = "internals")]
#[doc(hidden)]
pub mod internals {
    pub mod base {
        pub use crate::base::*;
    }
    pub mod board {
        pub use crate::board::*;
    }
    pub mod broker {
        pub use crate::broker::*;
    }
    pub mod bundle {
        pub use crate::bundle::*;
    }
    pub mod ci {
        pub use crate::ci::*;
    }
    pub mod criteria {
        pub use crate::criteria::*;
    }
    pub mod definition {
        pub use crate::definition::*;
    }
    pub mod deliver {
        pub use crate::deliver::*;
    }
    pub mod engine {
        pub use crate::engine::*;
    }
    pub mod evaluate {
        pub use crate::evaluate::*;
    }
    pub mod fanout {
        pub use crate::fanout::*;
    }
    pub mod files {
        pub use crate::files::*;
    }
    pub mod fleet {
        pub use crate::fleet::*;
    }
    pub mod forge {
        pub use crate::forge::*;
    }
    pub mod git {
        pub use crate::git::*;
    }
    pub mod guidance {
        pub use crate::guidance::*;
    }
    pub mod host {
        pub use crate::host::*;
    }
    pub mod inspect {
        pub use crate::inspect::*;
    }
    pub mod journal {
        pub use crate::journal::*;
    }
    pub mod judges {
        pub use crate::judges::*;
    }
    pub mod lease {
        pub use crate::lease::*;
    }
    pub mod machine {
        pub use crate::machine::*;
    }
    pub mod people {
        pub use crate::people::*;
    }
    pub mod policy {
        pub use crate::policy::*;
    }
    pub mod process {
        pub use crate::process::*;
    }
    pub mod report {
        pub use crate::report::*;
    }
    pub mod reuse {
        pub use crate::reuse::*;
    }
    pub mod run {
        pub use crate::run::*;
    }
    pub mod sandbox {
        pub use crate::sandbox::*;
    }
    pub mod session {
        pub use crate::session::*;
    }
    pub mod shelf {
        pub use crate::shelf::*;
    }
    pub mod shell {
        pub use crate::shell::*;
    }
    pub mod telemetry {
        pub use crate::telemetry::*;
    }
    pub mod testing {
        pub use crate::testing::*;
    }
    pub mod tools {
        pub use crate::tools::*;
    }
}
