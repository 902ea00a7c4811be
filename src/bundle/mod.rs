//! A run in one file: everything that another machine needs to go on with it, and nothing that it would obey.
//!
//! A bundle (`.llz`) is a zip with a manifest that names every other file with its size and digest. It is written by
//! [`pack`], looked at and taken apart by [`open`], and what it says about the working tree is in [`tree`]. The loop
//! file in it is for people: a run goes on with the one of the checkout, and only if it is the same. [`report`] reads one
//! report of an earlier run.

mod brought;
pub mod earlier_report;
mod hashing;
pub(crate) mod journal_only;
pub mod manifest;
pub mod merged;
mod objects;
pub mod open;
pub(crate) mod opened;
pub mod pack;
pub mod snapshots;
pub(crate) mod statements;
pub mod tree;
pub mod unpacked_files;

/// The ending of a bundle's file name.
pub const EXTENSION: &str = "llz";

/// Why a loop is in no bundle.
pub const IS_A_LOOP: &str = "it is a loop, and loops come from the checkout";

/// The names of files in a bundle; those of the journal, the state and the log are also those in a report directory.
pub(crate) mod names {
    pub(crate) const MANIFEST: &str = "manifest.json";
    pub(crate) const JOURNAL: &str = "events.jsonl";
    pub(crate) const STATE: &str = "state.json";
    pub(crate) const LOG: &str = "output.log";
    pub(crate) const PATCH: &str = "changes.patch";
    pub(crate) const TREE: &str = "tree.bundle";
    pub(crate) const SNAPSHOTS: &str = "snapshots.bundle";
    pub(crate) const STREAMS: &str = "streams/";
    pub(crate) const RUN_DIR: &str = "run-dir/";
    pub(crate) const REPORTS: &str = "report/";
    pub(crate) const LOOPS: &str = "loops/";
    /// What the whole working tree is called where it is left out.
    pub(crate) const WORKING_TREE: &str = ".";
}
