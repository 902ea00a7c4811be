//! What decides who may answer the question of a loop: whom its file names, as a branch says it and not the change itself, and who
//! is in a team that it names.

use crate::base::name::StateName;
use crate::context::job_server::JobServer;
use crate::definition::load;
use crate::forge::github::answers;
use crate::forge::github::api::{Api, ApiError};
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::team_members::is_member;
use crate::machine::{Approvers, answerers};
use crate::people::ruling::{CommentFacts, PermissionFacts, TeamMembership};

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
    Ok(BranchApprovers::of(file, answers::file_at(api, repository, file, branch)?, state))
}

impl BranchApprovers {
    /// Reads them from the text of the loop file, if the branch has one.
    pub(crate) fn of(file: &str, text: Option<String>, state: &StateName) -> Self {
        let Some(text) = text else { return Self::NoFile };
        // The server gave one file, and a loop with `from` or `import` is made of several.
        let Ok(loaded) = load::decode(file, &text, String::new()) else { return Self::NotAlone };
        let answerers = answerers::of_state(&loaded.definition, state);
        answerers.map_or(Self::AsksNobody, |answerers| Self::Named(answerers.named))
    }
}

impl JobServer {
    /// Tells whether the author of a comment is in one of the teams that may answer. The server is asked with a token of its own,
    /// because that of a job may not read teams, and not about somebody who may answer without that, or to whom it would not help.
    ///
    /// # Errors
    /// The server does not answer, or not to this token.
    pub(crate) fn membership(
        &self,
        comment: &CommentFacts,
        permission: Option<&PermissionFacts>,
        approvers: Option<&Approvers>,
    ) -> Result<TeamMembership, ApiError> {
        let Some(named) = approvers.filter(|named| !named.teams.is_empty()) else {
            return Ok(TeamMembership::Outsider);
        };
        let is_of_use =
            permission.is_some_and(|known| known.account == comment.author.id && known.is_collaborator);
        if !is_of_use || named.names_user(&comment.author.name) {
            return Ok(TeamMembership::Outsider);
        }
        let Some(api) = &self.teams else { return Ok(TeamMembership::Unreadable) };
        for team in &named.teams {
            if is_member(api, team, &comment.author)? {
                return Ok(TeamMembership::Member);
            }
        }
        Ok(TeamMembership::Outsider)
    }
}
