//! Where a run was made, and whose records it may take: what a pull request brought along is not known to the branch that it
//! is for, so that branch does not rely on it.

use serde::{Deserialize, Serialize};

/// What set off a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OriginEvent {
    /// A person at their machine.
    Local,
    /// A push, to whatever branch.
    Push,
    /// A merge queue.
    MergeGroup,
    /// The time.
    Schedule,
    /// A person with write access.
    Dispatch,
    /// A pull or merge request.
    PullRequest,
    /// Something else in CI, or a CI system that does not say.
    Other,
}

impl OriginEvent {
    /// Tells whether its runs are made of what the repository itself has taken in.
    fn is_of_repository(self) -> bool {
        match self {
            Self::Push | Self::MergeGroup | Self::Schedule | Self::Dispatch => true,
            Self::Local | Self::PullRequest | Self::Other => false,
        }
    }
}

/// Where a run was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOrigin {
    /// The repository.
    pub repository: String,
    /// What set it off.
    pub event: OriginEvent,
    /// The branch that it is about, where that is known.
    pub branch: Option<String>,
}

impl RunOrigin {
    /// Tells whether a run made here may take a record made there.
    pub fn may_take(&self, other: &Self) -> bool {
        if self.repository != other.repository {
            return false;
        }
        match self.event {
            // Whoever can write into the store here can change the tools as well.
            OriginEvent::Local => true,
            OriginEvent::PullRequest => {
                let is_own = other.event == OriginEvent::PullRequest
                    // Two branches that are unknown need not be the same.
                    && self.branch.is_some()
                    && self.branch == other.branch;
                other.event.is_of_repository() || is_own
            }
            OriginEvent::Other => other.event.is_of_repository() || other.event == OriginEvent::Other,
            OriginEvent::Push | OriginEvent::MergeGroup | OriginEvent::Schedule | OriginEvent::Dispatch => {
                other.event.is_of_repository()
            }
        }
    }

    /// Returns a word that tells the records of this origin from others with the same key: neither replaces the other.
    pub fn class(&self) -> String {
        match (self.event, &self.branch) {
            (OriginEvent::PullRequest, Some(branch)) => {
                // The word stands in the names of files and refs, where a branch with slashes would be a folder.
                let sum = crate::base::sum::Sum::of(branch.as_bytes()).to_string();
                format!("branch-{}", &sum[..12])
            }
            (OriginEvent::PullRequest, None) => "request".to_owned(),
            (OriginEvent::Local, _) => "local".to_owned(),
            (OriginEvent::Other, _) => "ci".to_owned(),
            (event, _) => {
                debug_assert!(event.is_of_repository(), "the others are named above");
                "repository".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [OriginEvent; 7] = [
        OriginEvent::Local,
        OriginEvent::Push,
        OriginEvent::MergeGroup,
        OriginEvent::Schedule,
        OriginEvent::Dispatch,
        OriginEvent::PullRequest,
        OriginEvent::Other,
    ];

    fn origin(event: OriginEvent, branch: &str) -> RunOrigin {
        RunOrigin { repository: "o/r".to_owned(), event, branch: Some(branch.to_owned()) }
    }

    #[test]
    fn a_branch_takes_nothing_that_a_pull_request_has_left() {
        let main = origin(OriginEvent::Push, "main");
        let taken: Vec<_> = ALL.into_iter().filter(|event| main.may_take(&origin(*event, "main"))).collect();
        let of_repository =
            [OriginEvent::Push, OriginEvent::MergeGroup, OriginEvent::Schedule, OriginEvent::Dispatch];
        assert_eq!(taken, of_repository);
        let request = origin(OriginEvent::PullRequest, "topic");
        assert!(request.may_take(&origin(OriginEvent::PullRequest, "topic")));
        assert!(!request.may_take(&origin(OriginEvent::PullRequest, "other")));
        assert!(request.may_take(&main));
        assert!(!request.may_take(&origin(OriginEvent::Local, "topic")));
    }

    #[test]
    fn nobody_takes_what_another_repository_has_left() {
        for event in ALL {
            let elsewhere = RunOrigin { repository: "o/fork".to_owned(), ..origin(event, "main") };
            assert!(!origin(event, "main").may_take(&elsewhere), "{event:?}");
        }
    }
}
