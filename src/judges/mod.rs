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

pub mod compare;
pub mod declared;
pub mod found;
pub mod pattern;
pub mod tree;
