//! The commands of the criteria as the state file names them, and what their exit codes mean.
//!
//! A command is a text, or an object with the command under `check` and under `no` the exit codes that mean that the
//! criterion is not met.

use super::exact_json::Json;
use super::state::CriteriaState;

/// A command that tells whether a criterion is met.
#[derive(Clone, Debug, PartialEq)]
pub struct CriterionCheck<'s> {
    /// The criterion.
    pub name: &'s str,
    /// The command.
    pub command: &'s str,
    /// The exit codes that mean that it is not met, as they are written; without them, those by which a tool says that
    /// it failed.
    pub no: Option<&'s Json>,
}

impl CriteriaState {
    /// Returns the criteria that a command tells about, with the command.
    pub fn checks(&self) -> impl Iterator<Item = CriterionCheck<'_>> {
        let checks = self.document().get("checks").and_then(Json::as_object).into_iter().flatten();
        checks.filter_map(|(name, check)| {
            let (command, no) = match check {
                Json::Text(command) => (command.as_str(), None),
                Json::Object(keys) => {
                    let no = keys.get("no").filter(|no| **no != Json::Null);
                    (keys.get("check")?.as_str()?, no)
                }
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::List(_) => return None,
            };
            Some(CriterionCheck { name, command, no })
        })
    }
}
