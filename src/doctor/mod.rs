//! `ll-loop doctor`: finds out what works on this machine, what the loops here need of it, and what to do about the rest.

mod here;
mod machine;
mod policy_rows;
mod program_answers;
pub(crate) mod row;
mod tools;

pub(crate) use row::{DoctorRow, RowState};

use crate::context::Session;
use crate::context::error::Error;
use crate::policy::Policy;

/// Looks at everything.
pub(crate) fn examine(policy: &Result<Policy, Error>, session: &Session<'_>) -> Vec<DoctorRow> {
    let needs = here::needs(session);
    let mut rows = machine::rows(session);
    rows.extend(tools::rows(&needs, session));
    rows.extend(here::rows(&needs, session));
    rows.extend(policy_rows::rows(policy));
    rows
}
