//! Asks the server of GitHub what became of the deliveries of every repository on a board.

use super::board_rows::FleetBoard;
use crate::base::text::one_line;
use crate::base::time::Timestamp;
use crate::context::Session;
use crate::context::error::Error;
use crate::forge::github::api::ApiError;
use crate::forge::github::delivery_list;
use crate::forge::github::repository::RepositoryName;
use crate::forge::github::workflow_job::WorkflowJob;

/// The server of a name that has none.
const GITHUB: &str = "github.com";

impl Session<'_> {
    /// Adds what became of the deliveries since the first run of each repository to a board. What the server does not say is a warning,
    /// and stays unknown.
    ///
    /// # Errors
    /// There is no token, or no server that could be asked.
    pub(crate) fn fetch_deliveries(&self, board: &mut FleetBoard, now: Timestamp) -> Result<(), Error> {
        let api = self.delivery_api()?;
        let server = WorkflowJob::read(&self.env.lookup()).server_url.filter(|url| !url.is_empty());
        let host = server.as_deref().map_or(GITHUB, host_of);
        // Copied, since the board is changed while they are gone through.
        let all: Vec<(String, Timestamp)> =
            board.repositories().into_iter().map(|(name, first)| (name.to_owned(), first)).collect();
        for (shown, first) in all {
            let Some(repository) = on_server(&shown, host) else { continue };
            match delivery_list::list(&api, &repository, Some(first), now) {
                Ok(mut list) => {
                    // Under the name on the board, which may begin with its server.
                    list.repository = shown;
                    self.know(board, &list);
                }
                Err(error) => {
                    let (shown, why) = (one_line(&shown, 100), one_line(&error.to_string(), 400));
                    self.talk.warning(&format!("what became of the deliveries of {shown} is unknown: {why}"));
                    // A server that is down, or a token that is used up, would fail for all others, too.
                    if !is_of_repository(&error) {
                        self.talk.warning("no other repository is asked for");
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the server of an address.
fn host_of(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/')
}

/// Returns a repository that is on a server, or of which nobody says where it is.
fn on_server(repository: &str, host: &str) -> Option<RepositoryName> {
    let own = repository.strip_prefix(host).and_then(|rest| rest.strip_prefix('/'));
    RepositoryName::parse(own.unwrap_or(repository))
}

/// Tells whether another repository could be answered for.
fn is_of_repository(error: &ApiError) -> bool {
    matches!(
        error,
        ApiError::Denied { .. }
            | ApiError::NotFound { .. }
            | ApiError::Gone { .. }
            | ApiError::Refused { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repositories_of_the_server_are_asked_for() {
        let found = |name: &str| on_server(name, host_of("https://github.com/")).map(|name| name.to_string());
        assert_eq!(found("github.com/octo/site").as_deref(), Some("octo/site"));
        assert_eq!(found("octo/site").as_deref(), Some("octo/site"));
        assert_eq!(found("git.example/octo/site"), None);
        assert_eq!(found("site"), None);
    }
}
