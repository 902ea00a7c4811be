//! The judges of a run: the files that decide what a check says without being the work. Here stands what they are, and
//! what a run did to them; who asks, and what follows, is the business of others.
//!
//! ```text
//!   a loop's `judges:`  ──┐
//!   the commands of checks├──▶ which files are judges ──▶ start tree against final tree ──▶ JudgesFound
//!   catalog/judges.toml ──┘
//! ```
//!
//! All of it is pure: trees are read through [`tree::Tree`]. The reasons are in `docs/design/judges.md`.

mod added_tests;
mod assess;
pub mod bytecode;
mod command_words;
pub mod compare;
mod compared;
pub mod declared;
mod entry_points;
pub mod found_judges;
pub mod ignore_lists;
pub mod instructions;
mod judge_catalog;
mod judge_parts;
mod known_values;
mod makefile;
mod named_modules;
pub mod pattern;
mod read_words;
mod restored_parts;
mod search_path;
mod source_lines;
mod suppressions;
mod task_runners;
mod test_cases;
mod test_changes;
pub mod tree;
mod unnamed_modules;
