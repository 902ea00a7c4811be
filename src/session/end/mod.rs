//! Ends a run: drives it to its end, reports it, bundles it and hands it off, also where its process was killed.

pub mod bundler;
pub mod contained;
pub mod finish;
pub mod job_record;
pub mod kept_nights;
mod kept_reuse;
pub mod killed;
pub mod next_run;
pub(crate) mod notify;
pub mod publication;
pub mod ready;
pub mod run_guard;
pub mod unbegun_report;
pub mod upload;
pub mod whereabouts;
