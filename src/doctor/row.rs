//! What is told of one thing that was looked at, in a table or as JSON.

use serde_json::{Value, json};

/// How something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowState {
    /// It works.
    Works,
    /// It is there, and does not work.
    Fails,
    /// It is not there.
    Absent,
    /// It says how things are, and cannot fail.
    Fact,
}

impl RowState {
    /// Returns its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Fails => "fails",
            Self::Absent => "absent",
            Self::Fact => "fact",
        }
    }
}

/// A row of the table: one thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DoctorRow {
    /// What it belongs to.
    pub(crate) area: &'static str,
    /// What was looked at.
    pub(crate) name: String,
    /// How it was found.
    pub(crate) state: RowState,
    /// What there is to say, in one line.
    pub(crate) said: String,
    /// What to do where it does not work.
    pub(crate) fix: Option<String>,
    /// Why the loops here need it; nothing where they do not.
    pub(crate) needed: Option<String>,
}

impl DoctorRow {
    /// Makes a row that needs no mending.
    pub(super) fn new(
        area: &'static str,
        name: impl Into<String>,
        state: RowState,
        said: impl Into<String>,
    ) -> Self {
        Self { area, name: name.into(), state, said: said.into(), fix: None, needed: None }
    }

    /// Says what to do.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Says why the loops here need it, if they do.
    pub(super) fn needed(mut self, by: Option<impl Into<String>>) -> Self {
        self.needed = by.map(Into::into);
        self
    }

    /// Tells whether the loops here cannot run for want of it.
    pub(crate) fn is_missed(&self) -> bool {
        self.needed.is_some() && matches!(self.state, RowState::Fails | RowState::Absent)
    }

    /// Returns the row for programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "area": self.area,
            "name": self.name,
            "state": self.state.word(),
            "said": self.said,
            "fix": self.fix,
            "needed": self.needed,
        })
    }
}
