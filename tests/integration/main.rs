//! Black-box tests of the real program: what a user types, and what comes of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;
#[cfg(target_os = "linux")]
mod confined;
mod fake_host;
#[path = "../support/leaks.rs"]
mod leaks;

mod agents;
mod architecture;
mod bundles;
mod cheats;
mod ci;
mod definition;
mod deliver;
mod docs;
mod editor;
mod evidence;
mod fanout;
mod fleet;
mod forge;
mod hostile;
mod inspect;
mod legs;
mod locking;
mod people;
mod policy;
mod reuse;
mod runs;
mod sandbox;
mod setup;
mod shared_loops;
mod telemetry;
mod testing;
