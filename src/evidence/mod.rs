//! What of a run can be checked elsewhere: `docs/evidence.md`.
//!
//! [`verify`] finds the bundle of a verdict and makes of it anew what is claimed, for nothing that came with it is believed.
//! [`claim`], [`verdict_policy`] and [`policy_check`] decide, and [`signature_tools`] reads what `gh` and `cosign` say; these know no file and no process.

pub(crate) mod claimed_statement;
mod expected_commit;
mod gathered;
pub(crate) mod policy_check;
mod signature_search;
pub(crate) mod signature_tools;
mod status_artifact;
pub(crate) mod verdict_check;
pub(crate) mod verdict_policy;
pub(crate) mod verify_report;
