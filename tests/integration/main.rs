//! Black-box tests of the real program: what a user types, and what comes of it.
#![cfg_attr(
    not(all(feature = "github", feature = "jq", feature = "mcp")),
    allow(dead_code, unused_imports, reason = "what is left out is not tested")
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;
mod early_values;
mod fake_host;
#[path = "../support/leaks.rs"]
mod leaks;

mod accounts;
mod acp;
mod action_inputs;
mod advice;
mod agents;
mod architecture;
mod artifact;
mod artifact_output;
mod asked;
mod background;
mod bad_input;
mod bad_journals;
mod board;
mod bounds;
mod bundle;
#[cfg(feature = "github")]
mod caps;
mod catalog;
mod catalogue_shapes;
mod chain;
mod changes;
mod ci_mode;
mod compile;
mod composition;
mod crash;
mod criteria;
#[cfg(feature = "github")]
mod deliver;
mod docs;
mod doctor;
mod fanout;
mod files;
mod fragments;
mod full_disk;
mod git_server;
#[cfg(all(feature = "github", target_os = "linux"))]
mod guard;
mod hooks;
mod hostile_bundles;
mod hostile_files;
mod hosts;
mod html_report;
mod init;
mod kept_files;
#[cfg(feature = "github")]
mod killed;
mod known_runs;
#[cfg(target_os = "linux")]
mod leases;
mod left_behind;
#[cfg(feature = "github")]
mod legs;
mod libraries;
mod limits;
mod locks;
#[cfg(feature = "mcp")]
mod many_runs;
mod mcp;
mod mutations;
mod names;
mod nightly;
mod on_change;
mod paths;
mod predecessor_keys;
mod processes;
mod provided;
mod providers;
mod redaction;
mod relay;
mod replay;
mod reported;
mod reports;
mod resume;
mod rewind;
mod run;
mod secrets;
mod seeds;
#[cfg(feature = "github")]
mod servers;
mod shared_loops;
mod show_and_schema;
mod snapshots;
mod stall;
mod streams;
mod sub_loops;
mod teamwork;
#[cfg(feature = "github")]
mod unbegun;
mod unreported;
mod untrusted;
mod validate;
mod web;
mod why;
mod worktree;
mod worst_files;
