//! Who may answer the question of a loop, as its file on a branch says it: the change itself does not.

use crate::base::name::StateName;
use crate::definition::load;
use crate::forge::github::answers;
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::machine::{Approvers, answerers};

/// What a branch says about who may answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BranchApprovers {
    /// Its loop file asks in this state, and names these, or whoever may write.
    Named(Option<Approvers>),
    /// It has no such file.
    NoFile,
    /// The file cannot be read alone.
    NotAlone,
    /// No state of this name asks in it.
    AsksNobody,
}

/// Asks a branch who may answer the question of a state.
///
/// # Errors
/// The server does not answer.
pub(crate) fn on_branch(
    api: &Api,
    repository: &RepositoryName,
    file: &str,
    branch: &str,
    state: &StateName,
) -> Result<BranchApprovers, ApiError> {
    let Some(text) = answers::file_at(api, repository, file, branch)? else {
        return Ok(BranchApprovers::NoFile);
    };
    let Ok(loaded) = load::decode(file, &text, String::new()) else { return Ok(BranchApprovers::NotAlone) };
    let answerers = answerers::of_state(&loaded.definition, state);
    Ok(answerers.map_or(BranchApprovers::AsksNobody, |answerers| BranchApprovers::Named(answerers.named)))
}
