//! The comments of a pull request: reads them, reacts to one, and keeps one of ours up to date.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, ApiError};
use super::github_server::Flavour;
use super::graphql::Document;
use super::repository::RepositoryName;
use crate::base::time::Timestamp;
use crate::people::command_starts::PossibleCommand;

/// The permission that writing needs.
const NEEDS: &str = "pull-requests: write";

/// Who writes with the token of an app, which REST does not say.
const VIEWER: Document = Document::query("the owner of the token", "query { viewer { login } }");

#[derive(Deserialize)]
struct ViewerAnswer {
    viewer: CommentingUser,
}

/// A comment, as the list has it.
#[derive(Clone, Debug, Deserialize)]
pub struct PullComment {
    /// Its id.
    pub id: u64,
    /// Its text.
    #[serde(default)]
    body: Option<String>,
    user: Option<CommentingUser>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Clone, Debug, Deserialize)]
struct CommentingUser {
    #[serde(default)]
    id: u64,
    login: String,
}

impl PullComment {
    /// Returns its text.
    pub fn body(&self) -> &str {
        self.body.as_deref().unwrap_or("")
    }

    /// Returns the id of its author, if there is one still.
    pub fn author(&self) -> Option<u64> {
        self.user.as_ref().map(|user| user.id)
    }

    /// Tells whether it was surely edited. In the second in which it was written, that cannot be seen here.
    pub fn was_edited(&self) -> bool {
        self.created_at != self.updated_at
    }

    /// Returns it as what may be a command, if its author is known.
    pub fn possible_command(&self) -> Option<PossibleCommand<'_>> {
        Some(PossibleCommand { id: self.id, author: self.author()?, body: self.body() })
    }

    fn is_by(&self, name: &str) -> bool {
        self.user.as_ref().is_some_and(|user| user.login == name)
    }
}

/// What a reaction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// It was seen.
    Eyes,
    /// It was done.
    Up,
    /// It was refused.
    Down,
}

/// Returns all comments of a pull request, the oldest first.
///
/// # Errors
/// The server does not answer.
pub fn list(api: &Api, repository: &RepositoryName, number: u64) -> Result<Vec<PullComment>, ApiError> {
    let path = repository.path(&format!("/issues/{number}/comments"));
    api.list::<Vec<PullComment>>(&path, &[]).collect()
}

/// Finds the first comment that the token wrote, of those that look like it: everybody can copy the mark of one.
///
/// # Errors
/// The server does not answer.
pub fn own<'c>(
    api: &Api,
    comments: &'c [PullComment],
    looks_like_it: impl Fn(&str) -> bool,
) -> Result<Option<&'c PullComment>, ApiError> {
    let mut alike = comments.iter().filter(|comment| looks_like_it(comment.body())).peekable();
    // Most often there is none, and then nobody has to be asked who we are.
    if alike.peek().is_none() {
        return Ok(None);
    }
    let us = own_name(api)?;
    Ok(alike.find(|comment| comment.is_by(&us)))
}

/// Returns the name under which the token writes. The token of a job may not ask that.
///
/// # Errors
/// The server does not answer.
pub fn own_name(api: &Api) -> Result<String, ApiError> {
    let flavour = api.server().flavour();
    let of_job = || bot(flavour).to_owned();
    match api.get::<CommentingUser>("/user", &[]) {
        Ok(user) => Ok(user.login),
        // A job's token belongs to an app, which has no user to ask for; but it may be that of another app.
        Err(ApiError::Denied { .. }) if flavour == Flavour::Github => {
            let asked = api.graphql::<ViewerAnswer>(VIEWER, &json!({}));
            Ok(asked.map_or_else(|_unknown| of_job(), |answer| answer.viewer.login))
        }
        Err(ApiError::Denied { .. } | ApiError::NotFound { .. }) => Ok(of_job()),
        Err(error) => Err(error),
    }
}

/// Returns the name under which the token of a job writes.
pub fn bot(flavour: Flavour) -> &'static str {
    match flavour {
        Flavour::Github => "github-actions[bot]",
        Flavour::Gitea => "gitea-actions",
        Flavour::Forgejo => "forgejo-actions",
    }
}

/// Reacts to a comment. A second reaction of the same kind changes nothing.
///
/// # Errors
/// The token may not.
pub fn react(
    api: &Api,
    repository: &RepositoryName,
    comment: u64,
    reaction: Reaction,
) -> Result<(), ApiError> {
    let content = match reaction {
        Reaction::Eyes => "eyes",
        Reaction::Up => "+1",
        Reaction::Down => "-1",
    };
    let path = repository.path(&format!("/issues/comments/{comment}/reactions"));
    let body = json!({ "content": content });
    // A second reaction of one kind is the first one again, so a lost answer does no harm.
    api.post_again::<Value>(&path, &body).map(drop).map_err(|error| error.needing(NEEDS))
}

/// Writes a comment, in place of one if there is one.
///
/// # Errors
/// The token may not.
pub fn write(
    api: &Api,
    repository: &RepositoryName,
    number: u64,
    there: Option<u64>,
    text: &str,
) -> Result<(), ApiError> {
    let body = json!({ "body": text });
    let written = match there {
        Some(id) => api.patch::<Value>(&repository.path(&format!("/issues/comments/{id}")), &body),
        None => api.post::<Value>(&repository.path(&format!("/issues/{number}/comments")), &body),
    };
    written.map(drop).map_err(|error| error.needing(NEEDS))
}
