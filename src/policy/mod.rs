//! What somebody above the repository allows its runs: the owner of a machine, or of an organisation.
//!
//! A policy is a document of rules ([`policy_rules`]), read with the place of each ([`policy_document`]). Those that bind a
//! run are asked together ([`in_force`]): what one of them refuses is refused, so that adding a document never allows more.
//! [`policy_source`] finds the documents of a machine and of an environment, [`process_record`] those of the runs around; the rest
//! knows neither.

pub mod in_force;
pub mod ledger_place;
pub mod policy_document;
pub mod policy_refusal;
pub mod policy_rules;
pub mod policy_source;
pub mod process_record;
pub mod sandbox_floor;
pub mod version_range;

pub use in_force::{DayCap, NoticeAddress, Policy, Switch};
pub use ledger_place::LedgerPlace;
pub use policy_document::{PolicyDocument, UnreadablePolicy};
pub use policy_refusal::PolicyRefusal;
pub use policy_rules::DeliveryMode;
pub use sandbox_floor::SandboxFloor;

use crate::definition::json_schema::published_policy;

/// Returns the JSON Schema of policies, made from the records that they are read with.
pub fn json_schema() -> serde_json::Value {
    published_policy::<policy_rules::PolicyRules>(SCHEMA_ID, "Policy from above for runs of ll-loop")
}

/// Where the schema of policies is published.
const SCHEMA_ID: &str = "https://little-loops.github.io/ll-loop/policy.schema.json";
