//! What models take on a day, over all runs that a policy binds: `caps.day` and its `ledger`.
//!
//! A run that can call a model has a part of the day's rest promised before it begins ([`day_reservation`]), so that two runs at once
//! never spend the same dollar, and what it took takes the place of the promise when it is over. Both are lines of a ledger
//! ([`day_ledger`]) that is kept where the repository's jobs can only add to it ([`ledger_store`]). Where it is not there, cannot be
//! read, or lacks a line that this machine has seen ([`seen_lines`]), no model is called.

pub(crate) mod day_ledger;
pub(crate) mod day_reservation;
pub(crate) mod day_standing;
pub(crate) mod git_ledger;
pub(crate) mod ledger_store;
pub(crate) mod seen_lines;
pub(crate) mod web_ledger;
