//! Stands between the CLIs of agents and the services that they ask: the key of a service stays in this process, and what
//! is asked of it is counted, and refused where it could cost more than what is left.
//!
//! A CLI gets an address on loopback and a token of its call. What it asks there goes on to the service with the key, if
//! the path is one of its API and the budget has room for the most that it can cost; the answer comes back as it comes, and
//! what it took is read on the way.

mod admitted;
pub mod asked;
pub mod cassette;
pub mod cassette_faults;
pub mod conversation;
pub mod count;
pub mod dollars;
mod door;
#[cfg(test)]
mod fault_tests;
pub mod host_row;
#[cfg(test)]
mod hostile_tests;
mod key_mask;
pub mod ledger;
pub mod meter;
pub mod model_service;
pub mod prices;
pub mod tokens;
pub mod upstream;
pub mod wire_report;

pub use admitted::CallTerms;
pub use cassette::{CassetteUse, WireCassette};
pub use conversation::Wording;
pub use dollars::Dollars;
pub use door::{Broker, CallPass};
pub use host_row::{CallSettings, KeyHolder, NeededSetting, Wiring, credentials, holder, keyless, services};
pub use ledger::WireCaps;
pub use prices::{GivenPrice, PriceList, as_of};
#[cfg(test)]
pub use tokens::TokenCounts;
pub use upstream::Upstream;
pub use wire_report::WireReport;
