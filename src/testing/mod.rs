//! Tests of loops: runs of the real engine in which no action is run, and what authors expect of them.
//!
//! A test file says what each state comes to in place of its work. Its cases are played on the engine that runs loops, with a
//! clock that only mocks move and a tree in memory.
//!
//! ```
//! use ll_loop::testing::play_cases;
//! use ll_loop::{Environment, Session, Silence};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! # std::fs::create_dir(directory.join(".loops"))?;
//! # let text = "name: tidy\ninitial: check\nstates:\n  check: {action: make, on_yes: done}\n  done: {terminal: true}\n";
//! # std::fs::write(directory.join(".loops/tidy.yaml"), text)?;
//! let environment = Environment::of([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into());
//! let session = Session::new(&environment, directory, &Silence)?;
//! let cases = "
//! loop: tidy
//! cases:
//!   - name: the check passes
//!     mocks: { check: { exit: 0 } }
//!     expect: { outcome: success, verified: true, path: [check, done] }
//! ";
//! let played = play_cases(cases, &session)?;
//! assert!(played.failed.is_empty(), "{}", played.text);
//! # Ok(())
//! # }
//! ```

// What is `pub` in a file of this room is for the other files of it: the room itself is public.
#![expect(unreachable_pub, reason = "see above")]

mod always;
mod asked;
mod case_player;
mod case_report;
mod case_text;
mod changed_lines;
mod choices;
mod counterexample;
pub(crate) mod edges;
mod embedded;
mod expected;
mod facts;
mod file_report;
mod from_run;
mod fuzz;
mod fuzz_report;
mod generate;
mod kept_snapshots;
mod likeness;
mod mock;
mod mock_witness;
mod mutant_report;
mod mutants;
mod mutate;
mod old_run_report;
pub(crate) mod old_runs;
mod play;
mod prepare;
mod proof;
mod queries;
mod ready_test;
mod real_report;
mod real_work;
mod recorded_run;
pub(crate) mod rerun;
mod results_ci;
mod results_json;
mod results_text;
mod scripted;
mod snapshot_file;
pub(crate) mod suite;
mod test_file;
mod test_worktree;
mod tested_loop;
mod virtual_tree;
mod ways;
pub(crate) mod writing;
mod written;

pub use embedded::{PlayedCases, play_cases};
pub(crate) use file_report::SuiteReport;
pub(crate) use results_ci::{annotations, junit, lcov};
pub(crate) use results_json::object;
pub(crate) use results_text::write as text;

use crate::definition::json_schema::published;

/// Returns the JSON Schema of test files, made from the records that they are read with.
pub(crate) fn json_schema() -> serde_json::Value {
    published::<written::TestFile>(SCHEMA_ID, "Test file of a loop")
}

/// Where the schema of test files is published.
const SCHEMA_ID: &str = "https://little-loops.github.io/ll-loop/test.schema.json";
