//! One repository on the server, and what an error of the API means for a delivery to it.

use super::super::api::{Api, ApiError};
use super::super::repository::RepositoryName;
use crate::base::object::ObjectId;
use crate::base::text::percent_encoded;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind};

/// A repository, and the client that reaches it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RepositoryAccess<'a> {
    pub(super) api: &'a Api,
    pub(super) repository: &'a RepositoryName,
}

/// What a token has to be allowed for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// Commits and refs.
    Contents,
    /// Pull requests.
    Pulls,
}

impl Permission {
    fn word(self) -> &'static str {
        match self {
            Self::Contents => "contents: write",
            Self::Pulls => "pull-requests: write",
        }
    }
}

impl RepositoryAccess<'_> {
    /// Returns the path of something in the repository.
    pub(super) fn path(&self, below: &str) -> String {
        self.repository.path(below)
    }

    /// Says what an error means for a delivery.
    pub(super) fn failed(&self, error: ApiError, needs: Permission) -> ForgeError {
        let needs = needs.word();
        let error = error.needing(needs);
        let kind = if error.is_unavailable() {
            ForgeErrorKind::Unavailable
        } else if is_stale(&error) {
            ForgeErrorKind::Raced
        } else {
            ForgeErrorKind::Failed
        };
        let message = error.to_string();
        // The token of a job can never change workflow files, whatever permissions the job has.
        let help = if is_about_workflows(&message) {
            Some(
                "use the token of an app or a person with the permission `workflows`: \
                 the token of a job cannot have it"
                    .to_owned(),
            )
        } else if let ApiError::NotFound { .. } = error {
            let repository = self.repository;
            Some(format!("look whether the token may see `{repository}`, and has `{needs}`"))
        } else {
            error.help()
        };
        ForgeError { kind, message, help }
    }
}

/// Tells whether a ref was elsewhere than the request said.
fn is_stale(error: &ApiError) -> bool {
    matches!(error, ApiError::Rejected { kind: Some(kind), .. } if kind.starts_with("STALE_"))
}

/// GitHub speaks of a "`workflows` permission" to apps, and of a "`workflow` scope" to persons.
fn is_about_workflows(message: &str) -> bool {
    message.contains("`workflows` permission") || message.contains("`workflow` scope")
}

/// Reads the id of an object that the server names.
pub(super) fn object(request: &str, id: &str) -> Result<ObjectId, ApiError> {
    ObjectId::parse(id)
        .map_err(|error| ApiError::Unreadable { request: request.to_owned(), reason: error.to_string() })
}

/// Writes the name of a ref, without `refs/`, as part of a path.
pub(super) fn path_of_ref(name: &str) -> String {
    let short = name.strip_prefix("refs/").unwrap_or(name);
    short.split('/').map(percent_encoded).collect::<Vec<_>>().join("/")
}
