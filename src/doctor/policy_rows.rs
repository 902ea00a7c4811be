//! What somebody above the repository allows here.

use super::row::{DoctorRow, RowState};
use crate::context::binding::{self, ShownRule};
use crate::context::error::Error;
use crate::policy::Policy;

const AREA: &str = "policy";

pub(super) fn rows(policy: &Result<Policy, Error>) -> Vec<DoctorRow> {
    let policy = match policy {
        Ok(policy) => policy,
        Err(error) => {
            let row = DoctorRow::new(AREA, "policy", RowState::Fails, error.message());
            let fix = error.hint().unwrap_or("mend it");
            return vec![row.fix(fix).needed(Some("nothing is run under rules that are not known"))];
        }
    };
    let row = |shown: ShownRule| {
        let ShownRule { rule, value, place } = shown;
        DoctorRow::new(AREA, rule, RowState::Fact, format!("{value} ({place})"))
    };
    let rows: Vec<_> = binding::shown(policy).into_iter().map(row).collect();
    if rows.is_empty() {
        vec![DoctorRow::new(AREA, "policy", RowState::Fact, "none is in force here")]
    } else {
        rows
    }
}
