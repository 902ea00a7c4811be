//! Delivers to GitHub and GitHub Enterprise Server: one signed commit, its refs all at once, and one pull request.

mod access;
#[cfg(test)]
mod fake_repository;
mod pulls;
mod refs;
mod signed_commit;
mod temporary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use access::{Permission, RepositoryAccess};
use pulls::GithubPulls;
use refs::{FoundRef, Refs};
use serde::Deserialize;
use serde_json::json;
use signed_commit::FoundCommit;
use temporary::Temporary;

use super::api::Api;
use super::graphql::Document;
use super::repository::RepositoryName;
use crate::base::object::ObjectId;
use crate::forge::forge_trait::{
    Commit, FileContents, Forge, ForgeError, ForgeErrorKind, NewCommit, Pulls, RefMove, WrittenCommit,
};

/// What GitHub does not start workflows for: the token that every job has.
const TOKEN_OF_JOB: &str = "github-actions[bot]";

const VIEWER: Document = Document::query("the owner of the token", "query { viewer { login } }");

/// A repository on GitHub that takes deliveries.
#[derive(Debug)]
pub struct GithubForge<'a> {
    access: RepositoryAccess<'a>,
    refs: Refs<'a>,
    pulls: GithubPulls<'a>,
}

impl<'a> GithubForge<'a> {
    /// Makes the forge of a repository. The token of the client needs `contents: write` and `pull-requests: write`.
    pub fn new(api: &'a Api, repository: &'a RepositoryName) -> Self {
        let access = RepositoryAccess { api, repository };
        Self { access, refs: Refs::new(access), pulls: GithubPulls::new(access) }
    }

    /// Makes a commit on a branch that stands only meanwhile. Where the server makes another one of it than was wanted,
    /// there is none, and the branch is at that one.
    fn commit_on(
        &self,
        temporary: &Temporary<'_>,
        commit: &NewCommit<'_>,
        contents: &dyn FileContents,
    ) -> Result<(FoundRef, Option<FoundCommit>), ForgeError> {
        let name = temporary.name();
        let id =
            signed_commit::on_branch(self.access, &self.refs, temporary.branch(), &name, commit, contents)?;
        // Read back, because the server may make other files of it than were wanted.
        let made = signed_commit::get(self.access, &id)?;
        let is_wanted = is_wanted(&made, commit);
        Ok((FoundRef { name, id }, is_wanted.then_some(made)))
    }

    /// Makes a commit on a temporary branch, which nothing of ours outlives.
    fn write_on_branch(
        &self,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        temporary: &str,
        contents: &dyn FileContents,
    ) -> Result<WrittenCommit, ForgeError> {
        let temporary = Temporary::create(&self.refs, temporary, commit.parent)?;
        let written = self.commit_on(&temporary, commit, contents).and_then(|(branch, made)| {
            let made = match made {
                Some(made) => made,
                // What a branch did not take as it is goes once more as objects, which are stored
                // as they are.
                None => signed_commit::get(
                    self.access,
                    &signed_commit::from_objects(self.access, commit, contents)?,
                )?,
            };
            self.publish(&made, commit, moves, Some(&branch))
        });
        written.map_err(|error| {
            // Only a faster delivery clears the branches of others.
            if error.kind == ForgeErrorKind::Failed && temporary.is_gone() {
                return ForgeError::new(ForgeErrorKind::Raced, "another delivery was faster");
            }
            temporary.remove();
            error
        })
    }

    /// Moves the refs to a commit, if it is as it has to be.
    fn publish(
        &self,
        made: &FoundCommit,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        temporary: Option<&FoundRef>,
    ) -> Result<WrittenCommit, ForgeError> {
        let server = self.name();
        if !is_wanted(made, commit) {
            let (tree, wanted) = (&made.commit.tree, commit.tree);
            let message =
                format!("{server} made a commit with other files: tree {tree} in place of {wanted}");
            return Err(ForgeError::new(ForgeErrorKind::Failed, message));
        }
        // Before any ref moves, so that a commit that must not be used is not left where people see
        // it.
        if commit.require_signed && !made.signed {
            let message = format!("{server} does not sign commits that are made with this token");
            return Err(ForgeError::new(ForgeErrorKind::Declined, message)
                .with_help("use the token of the job or of an app, or deliver without `--require-signed`"));
        }
        self.refs.move_all(moves, &made.commit.id, temporary)?;
        Ok(WrittenCommit { id: made.commit.id.clone(), signed: made.signed })
    }
}

fn is_wanted(made: &FoundCommit, commit: &NewCommit<'_>) -> bool {
    made.commit.tree == *commit.tree && made.commit.parents == [commit.parent.clone()]
}

impl Forge for GithubForge<'_> {
    fn name(&self) -> String {
        self.access.api.server().to_string()
    }

    fn refs(&self, names: &[&str]) -> Result<BTreeMap<String, ObjectId>, ForgeError> {
        let mut found = BTreeMap::new();
        for name in names {
            let id = self.refs.find(name).map_err(|error| self.access.failed(error, Permission::Contents))?;
            found.extend(id.map(|id| ((*name).to_owned(), id)));
        }
        Ok(found)
    }

    fn commit(&self, id: &ObjectId) -> Result<Commit, ForgeError> {
        Ok(signed_commit::get(self.access, id)?.commit)
    }

    fn write(
        &self,
        commit: &NewCommit<'_>,
        moves: &[RefMove],
        temporary: &str,
        contents: &dyn FileContents,
    ) -> Result<WrittenCommit, ForgeError> {
        let written = if signed_commit::fits_branch(commit.changes) {
            self.write_on_branch(commit, moves, temporary, contents)
        } else {
            let id = signed_commit::from_objects(self.access, commit, contents)?;
            self.publish(&signed_commit::get(self.access, &id)?, commit, moves, None)
        }?;
        // Also those that earlier deliveries left when they were killed.
        temporary::clear(&self.refs, temporary);
        Ok(written)
    }

    fn take_back(&self, written: &ObjectId, moves: &[RefMove]) -> Result<(), ForgeError> {
        self.refs.move_back(moves, written).map_err(|error| self.access.failed(error, Permission::Contents))
    }

    fn starts_checks(&self) -> Result<bool, ForgeError> {
        #[derive(Deserialize)]
        struct ViewerData {
            viewer: Viewer,
        }
        #[derive(Deserialize)]
        struct Viewer {
            login: String,
        }
        let data: ViewerData = self
            .access
            .api
            .graphql(VIEWER, &json!({}))
            .map_err(|error| self.access.failed(error, Permission::Contents))?;
        // Workflows are not started by what this user does, or they would start each other for
        // ever.
        Ok(data.viewer.login != TOKEN_OF_JOB)
    }

    fn pulls(&self) -> Option<&dyn Pulls> {
        Some(&self.pulls)
    }
}
