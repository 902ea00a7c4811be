//! Makes commits that GitHub signs: through a branch, or out of blobs and trees for what a branch cannot take.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::api::ApiError;
use super::super::graphql::Document;
use super::access::{Permission, RepositoryAccess, object};
use super::refs::{Refs, TRIES};
use crate::base::object::ObjectId;
use crate::engine::changes::FileMode;
use crate::forge::change::{FileChange, FileSide};
use crate::forge::forge_trait::{Commit, FileContents, ForgeError, ForgeErrorKind, NewCommit};

const CREATE: Document = Document::mutation(
    "createCommitOnBranch",
    "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }",
);

/// A commit on the server.
pub(super) struct FoundCommit {
    pub(super) commit: Commit,
    /// Whether the server vouches for its signature.
    pub(super) signed: bool,
}

#[derive(Deserialize)]
struct Read {
    sha: String,
    tree: MadeObject,
    #[serde(default)]
    parents: Vec<MadeObject>,
    #[serde(default)]
    message: String,
    verification: Option<CommitVerification>,
}

#[derive(Deserialize)]
struct CommitVerification {
    verified: bool,
}

/// An object that was made, by its id.
#[derive(Deserialize)]
struct MadeObject {
    sha: String,
}

/// Returns a commit.
pub(super) fn get(access: RepositoryAccess<'_>, id: &ObjectId) -> Result<FoundCommit, ForgeError> {
    let path = access.path(&format!("/git/commits/{id}"));
    let read = || {
        let request = format!("GET {path}");
        let read: Read = access.api.get(&path, &[])?;
        let commit = Commit {
            id: object(&request, &read.sha)?,
            tree: object(&request, &read.tree.sha)?,
            parents: read
                .parents
                .iter()
                .map(|parent| object(&request, &parent.sha))
                .collect::<Result<_, _>>()?,
            message: read.message,
        };
        let signed = read.verification.is_some_and(|verification| verification.verified);
        Ok(FoundCommit { commit, signed })
    };
    read().map_err(|error| access.failed(error, Permission::Contents))
}

/// Tells whether a branch can take the changes: `createCommitOnBranch` knows only files that are not executable.
pub(super) fn fits_branch(changes: &[FileChange]) -> bool {
    let sides = changes.iter().flat_map(|change| [&change.old, &change.new]).flatten();
    // GitHub writes every addition as a plain file, so modes and links would be lost.
    sides.into_iter().all(|side| side.mode == FileMode::File)
}

/// Makes a commit on a branch of our own that stands at its parent, and returns its id.
pub(super) fn on_branch(
    access: RepositoryAccess<'_>,
    refs: &Refs<'_>,
    branch: &str,
    name: &str,
    commit: &NewCommit<'_>,
    contents: &dyn FileContents,
) -> Result<ObjectId, ForgeError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CommitData {
        create_commit_on_branch: CommitPayload,
    }
    #[derive(Deserialize)]
    struct CommitPayload {
        commit: Oid,
    }
    #[derive(Deserialize)]
    struct Oid {
        oid: String,
    }
    let mut additions = Vec::new();
    let mut deletions = Vec::new();
    for change in commit.changes {
        match &change.new {
            Some(new) => additions.push(json!({ "path": change.path, "contents": encoded(contents, new)? })),
            None => deletions.push(json!({ "path": change.path })),
        }
    }
    // GraphQL wants the headline and the body apart, and puts an empty line between them.
    let (headline, body) = commit.message.split_once('\n').unwrap_or((commit.message, ""));
    let input = json!({ "input": {
        "branch": { "repositoryNameWithOwner": access.repository.to_string(), "branchName": branch },
        // The branch is new, and only a commit of ours can have moved it.
        "expectedHeadOid": commit.parent,
        "message": { "headline": headline, "body": body.trim_matches('\n') },
        "fileChanges": { "additions": additions, "deletions": deletions },
    } });
    let mut tried = 0;
    loop {
        tried += 1;
        let made = access.api.graphql::<CommitData>(CREATE, &input);
        let error =
            match made.and_then(|data| object(CREATE.name(), &data.create_commit_on_branch.commit.oid)) {
                Ok(id) => return Ok(id),
                Err(error) => error,
            };
        // Nobody else knows the branch: if it moved, it moved to our commit.
        match refs.find(name) {
            Ok(Some(head)) if head != *commit.parent => return Ok(head),
            Ok(Some(_)) if matches!(error, ApiError::Unavailable { .. }) && tried < TRIES => {}
            _ => return Err(access.failed(error, Permission::Contents)),
        }
    }
}

/// Makes a commit that no ref points at yet, and returns its id. It has no author and no committer of ours, because
/// GitHub signs only what it writes in its own name.
pub(super) fn from_objects(
    access: RepositoryAccess<'_>,
    commit: &NewCommit<'_>,
    contents: &dyn FileContents,
) -> Result<ObjectId, ForgeError> {
    // All of these may be made again: the same content has the same id, and what nothing points at does no harm.
    let post = |below: &str, body: &Value| {
        let path = access.path(below);
        let made = access.api.post_again::<MadeObject>(&path, body);
        let id = made.and_then(|made| object(&format!("POST {path}"), &made.sha));
        id.map_err(|error| access.failed(error, Permission::Contents))
    };
    let base = get(access, commit.parent)?.commit.tree;
    // What was anywhere among the changed files is there already.
    let mut there: BTreeSet<&str> =
        commit.changes.iter().filter_map(|change| Some(change.old.as_ref()?.id.as_str())).collect();
    let mut entries = Vec::new();
    for FileChange { path, old, new } in commit.changes {
        let Some(new) = new else {
            let mode = old.as_ref().map_or(FileMode::File, |old| old.mode);
            // A null removes the path from the tree.
            entries.push(json!({ "path": path, "mode": mode.word(), "type": kind(mode), "sha": null }));
            continue;
        };
        // A submodule is a commit of another repository, and so no object here.
        if new.mode != FileMode::Repository && there.insert(new.id.as_str()) {
            let blob = json!({ "content": encoded(contents, new)?, "encoding": "base64" });
            post("/git/blobs", &blob)?;
        }
        entries.push(json!({ "path": path, "mode": new.mode.word(), "type": kind(new.mode), "sha": new.id }));
    }
    let tree = post("/git/trees", &json!({ "base_tree": base, "tree": entries }))?;
    // Neither author nor committer, or GitHub would not sign.
    post("/git/commits", &json!({ "message": commit.message, "tree": tree, "parents": [commit.parent] }))
}

fn encoded(contents: &dyn FileContents, side: &FileSide) -> Result<String, ForgeError> {
    let content = contents.blob(&side.id);
    content
        .map(|content| STANDARD.encode(content))
        .map_err(|reason| ForgeError::new(ForgeErrorKind::Failed, reason))
}

/// What git calls an object of a mode.
fn kind(mode: FileMode) -> &'static str {
    match mode {
        FileMode::File | FileMode::Executable | FileMode::Link => "blob",
        FileMode::Repository => "commit",
    }
}
