//! Whose work a state file is about: that of a run, which knows it better than the file does, or of a session of an
//! agent or a person, who keep it there.

use serde_json::{Value, json};

use super::exact_json::Json;
use super::state::CriteriaState;

/// Whose work it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A run's.
    Run(OwningRun),
    /// A session's, by its id where it is known.
    Session(Option<String>),
}

/// A run, and the process by which one can tell whether it lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwningRun {
    /// The run.
    pub instance: String,
    /// The machine that it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// When that process began, in words that mean something on that machine alone: another process may come to have
    /// its number.
    pub started: String,
}

impl Owner {
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Run(OwningRun { instance, host, pid, started }) => {
                json!({"run": instance, "host": host, "pid": pid, "started": started})
            }
            Self::Session(id) => json!({"session": id}),
        }
    }
}

impl CriteriaState {
    /// Returns whose work it is, if the file says so.
    pub fn owner(&self) -> Option<Owner> {
        let owner = self.document().get("owner")?;
        let text = |key: &str| owner.get(key).and_then(Json::as_str).map(str::to_owned);
        let Some(instance) = text("run") else {
            return owner.get("session").map(|id| Owner::Session(id.as_str().map(str::to_owned)));
        };
        let Some(Json::Number(pid)) = owner.get("pid") else { return None };
        Some(Owner::Run(OwningRun {
            instance,
            host: text("host")?,
            pid: pid.parse().ok()?,
            started: text("started")?,
        }))
    }

    /// Tells whether the work was ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.status(), "completed" | "cancelled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_work_it_is_is_read_as_it_was_written() {
        let run = OwningRun {
            instance: "main-1".to_owned(),
            host: "here".to_owned(),
            pid: 7,
            started: "then".to_owned(),
        };
        for owner in [Owner::Run(run), Owner::Session(None), Owner::Session(Some("a \"b\"".to_owned()))] {
            let mut state = CriteriaState::begin("s", &[], &[]);
            state.give_to(&owner);
            assert_eq!(CriteriaState::read(state.text().as_bytes()).unwrap().owner(), Some(owner));
        }
    }

    #[test]
    fn what_names_nobody_is_nobodys() {
        for owner in [
            "null",
            "7",
            "{}",
            "\"main\"",
            r#"{"run": "a"}"#,
            r#"{"run": "a", "host": "h", "pid": -1, "started": "s"}"#,
            r#"{"run": "a", "host": "h", "pid": 1e400, "started": "s"}"#,
            r#"{"run": "a", "host": "h", "pid": 1}"#,
        ] {
            let text = format!(r#"{{"owner": {owner}}}"#);
            assert_eq!(CriteriaState::read(text.as_bytes()).unwrap().owner(), None, "{owner}");
        }
    }
}
