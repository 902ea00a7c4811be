//! Whether somebody is in a team that a loop names: asked with a token of its own, because that of a job may not read teams.

use crate::context::job_server::JobServer;
use crate::forge::github::api::ApiError;
use crate::forge::github::team_members::is_member;
use crate::machine::Approvers;
use crate::people::ruling::{CommentFacts, PermissionFacts, TeamMembership};

impl JobServer {
    /// Tells whether the author of a comment is in one of the teams that may answer. Nobody is asked about somebody who may answer
    /// without that, or to whom it would not help.
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
