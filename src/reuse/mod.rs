//! What a run need not do again: the key over everything that its checks read, the results of earlier runs by their keys, and
//! whether one of them may stand for a new run.
//!
//! ```text
//!   a loop's `reuse:` ──▶ which files, tools and variables ──▶ KeyParts ──▶ ReuseKey
//!                                                                             │
//!   .loops/.reuse/ ──▶ ReuseRecord, as untrusted data ──▶ may it be taken? ◀──┘
//! ```
//!
//! The rules are pure files; [`keyed_tree`], [`tool_output`] and [`store`] read and write what they are about.

pub mod chosen_files;
pub mod eviction;
pub mod flaky_checks;
pub mod ignored_sources;
pub mod input_files;
pub mod input_patterns;
pub mod key;
pub mod keyed_tree;
pub mod linked_folders;
pub mod loop_findings;
pub mod no_key;
pub mod origin;
pub mod planted;
pub mod quarantine;
pub mod quarantine_file;
pub mod record;
pub mod record_difference;
pub mod run_values;
pub mod store;
pub mod tool_output;
pub mod undeclared;
pub mod verdict_table;
pub mod verifying;
