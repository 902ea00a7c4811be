//! Reads, makes, moves and deletes refs. Several are moved at once or not at all, and only from where they stood.

use std::cell::OnceCell;

use serde::Deserialize;
use serde_json::{Value, json};

use super::super::api::ApiError;
use super::super::graphql::Document;
use super::access::{Permission, RepositoryAccess, object, path_of_ref};
use crate::base::object::ObjectId;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind, RefMove};

/// How often a change is tried whose answer was lost.
pub(super) const TRIES: u32 = 3;

/// What `updateRefs` takes for a ref that is not there, or is to go.
const ABSENT: &str = "0000000000000000000000000000000000000000";

const UPDATE: Document = Document::mutation(
    "updateRefs",
    "mutation($input: UpdateRefsInput!) { updateRefs(input: $input) { clientMutationId } }",
);

/// A ref, and what it points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRef {
    /// Its whole name.
    pub(super) name: String,
    pub(super) id: ObjectId,
}

#[derive(Deserialize)]
struct ListedRef {
    #[serde(rename = "ref")]
    name: String,
    object: RefTarget,
}

#[derive(Deserialize)]
struct RefTarget {
    sha: String,
}

/// Describes how a ref is moved; `None` where it is not there.
fn update(name: &str, from: Option<&ObjectId>, to: Option<&ObjectId>) -> Value {
    let id = |id: Option<&ObjectId>| id.map_or(ABSENT, ObjectId::as_str).to_owned();
    // Forced, as the new commit need not go on from the old one; `beforeOid` alone keeps others
    // from being overwritten.
    json!({ "name": name, "beforeOid": id(from), "afterOid": id(to), "force": true })
}

/// The refs of a repository.
#[derive(Debug)]
pub(super) struct Refs<'a> {
    access: RepositoryAccess<'a>,
    /// What GraphQL calls the repository.
    node: OnceCell<String>,
}

impl<'a> Refs<'a> {
    pub(super) fn new(access: RepositoryAccess<'a>) -> Self {
        Self { access, node: OnceCell::new() }
    }

    /// Returns what a ref points at, if it is there.
    pub(super) fn find(&self, name: &str) -> Result<Option<ObjectId>, ApiError> {
        let path = self.access.path(&format!("/git/ref/{}", path_of_ref(name)));
        let found: ListedRef = match self.access.api.get(&path, &[]) {
            Ok(found) => found,
            // A repository without any commit answers with 409.
            Err(ApiError::NotFound { .. } | ApiError::Refused { status: 409, .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if found.name != name {
            return Ok(None);
        }
        object(&format!("GET {path}"), &found.object.sha).map(Some)
    }

    /// Returns refs whose names begin with this, at most the first page of them.
    pub(super) fn below(&self, prefix: &str) -> Result<Vec<FoundRef>, ApiError> {
        let path = self.access.path(&format!("/git/matching-refs/{}", path_of_ref(prefix)));
        let listed = self.access.api.get::<Vec<ListedRef>>(&path, &[])?;
        let request = format!("GET {path}");
        let listed = listed.into_iter().filter(|listed| listed.name.starts_with(prefix));
        let found = listed.map(|listed| {
            let id = object(&request, &listed.object.sha)?;
            Ok(FoundRef { name: listed.name, id })
        });
        found.collect()
    }

    /// Makes a ref with a name of its own.
    pub(super) fn create(&self, name: &str, at: &ObjectId) -> Result<(), ForgeError> {
        let body = json!({ "ref": name, "sha": at });
        let Err(error) = self.access.api.post_again::<Value>(&self.access.path("/git/refs"), &body) else {
            return Ok(());
        };
        // Of a request that was made again after a lost answer, the second finds what the first made.
        if matches!(error, ApiError::Refused { .. })
            && self.find(name).is_ok_and(|id| id.as_ref() == Some(at))
        {
            return Ok(());
        }
        Err(self.refused(error, [name]))
    }

    /// Deletes a ref, if it is there.
    pub(super) fn delete(&self, name: &str) -> Result<(), ApiError> {
        self.access.api.delete(&self.access.path(&format!("/git/refs/{}", path_of_ref(name))))
    }

    /// Moves all refs to a commit, and deletes the temporary one that stands at some commit, or does nothing. Whatever
    /// the server answers, the refs themselves tell the result.
    pub(super) fn move_all(
        &self,
        moves: &[RefMove],
        to: &ObjectId,
        temporary: Option<&FoundRef>,
    ) -> Result<(), ForgeError> {
        let failed = |error| self.access.failed(error, Permission::Contents);
        let updates = moves.iter().map(|moved| update(&moved.name, moved.from.as_ref(), Some(to)));
        let deletion = temporary.map(|temporary| update(&temporary.name, Some(&temporary.id), None));
        let input = self.input(updates.chain(deletion)).map_err(failed)?;
        let mut lost = None;
        for _ in 0..TRIES {
            let Err(error) = self.access.api.graphql::<Value>(UPDATE, &input) else { return Ok(()) };
            // Where not even that can be seen, the first error is the one to tell.
            let Ok(outcome) = self.outcome(moves, to, temporary) else { return Err(failed(error)) };
            match outcome {
                MoveOutcome::Moved => {
                    // Another delivery can make the same commit in the same second. Then ours did not move anything,
                    // and did not delete this one either.
                    if let Some(temporary) = temporary {
                        drop(self.delete(&temporary.name));
                    }
                    return Ok(());
                }
                MoveOutcome::Elsewhere => {
                    return Err(ForgeError::new(
                        ForgeErrorKind::Raced,
                        format!("refs were moved by somebody else: {error}"),
                    ));
                }
                // Nothing was moved, so the same request can be made again.
                MoveOutcome::Untouched if matches!(error, ApiError::Unavailable { .. }) => lost = Some(error),
                MoveOutcome::Untouched if is_unknown(&error) => {
                    return Err(ForgeError::new(
                        ForgeErrorKind::Failed,
                        format!("{} cannot move several refs at once", self.access.api.server()),
                    )
                    .with_help("use a newer version of GitHub Enterprise Server, or `--to patch`"));
                }
                MoveOutcome::Untouched => {
                    let new = moves.iter().filter(|moved| moved.from.is_none());
                    return Err(self.refused(error, new.map(|moved| moved.name.as_str())));
                }
            }
        }
        Err(lost.map_or_else(
            || ForgeError::new(ForgeErrorKind::Unavailable, "the refs could not be moved"),
            failed,
        ))
    }

    /// Moves all refs from a commit to where they stood before, or does nothing.
    pub(super) fn move_back(&self, moves: &[RefMove], from: &ObjectId) -> Result<(), ApiError> {
        let updates = moves.iter().map(|moved| update(&moved.name, Some(from), moved.from.as_ref()));
        let input = self.input(updates)?;
        self.access.api.graphql::<Value>(UPDATE, &input).map(drop)
    }

    fn input(&self, updates: impl Iterator<Item = Value>) -> Result<Value, ApiError> {
        let updates: Vec<Value> = updates.collect();
        Ok(json!({ "input": { "repositoryId": self.node()?, "refUpdates": updates } }))
    }

    /// Looks at the result of a move.
    fn outcome(
        &self,
        moves: &[RefMove],
        to: &ObjectId,
        temporary: Option<&FoundRef>,
    ) -> Result<MoveOutcome, ApiError> {
        let stand: Vec<Option<ObjectId>> =
            moves.iter().map(|moved| self.find(&moved.name)).collect::<Result<_, _>>()?;
        if stand.iter().all(|id| id.as_ref() == Some(to)) {
            return Ok(MoveOutcome::Moved);
        }
        let is_ours = match temporary {
            Some(temporary) => self.find(&temporary.name)?.as_ref() == Some(&temporary.id),
            // Without a temporary branch there is nothing that only a success of ours would have
            // removed.
            None => true,
        };
        let is_untouched = is_ours && moves.iter().zip(&stand).all(|(moved, id)| moved.from == *id);
        Ok(if is_untouched { MoveOutcome::Untouched } else { MoveOutcome::Elsewhere })
    }

    /// Says why a ref cannot be made: often a branch is in the way, which the server does not tell.
    fn refused<'n>(&self, error: ApiError, new: impl IntoIterator<Item = &'n str>) -> ForgeError {
        if matches!(error, ApiError::Refused { .. } | ApiError::Rejected { .. }) {
            for name in new {
                // The first error is the one that counts.
                let Ok(Some(other)) = self.in_the_way_of(name) else { continue };
                let (other, name) = (called(&other), called(name));
                return ForgeError::new(
                    ForgeErrorKind::Failed,
                    format!("{other} is in the way: {name} cannot exist beside it"),
                )
                .with_help(format!("rename or delete {other}"));
            }
        }
        self.access.failed(error, Permission::Contents)
    }

    /// Returns a ref beside which git cannot have the other one: one is a directory for it.
    fn in_the_way_of(&self, name: &str) -> Result<Option<String>, ApiError> {
        // `refs` and the kind below it are directories always.
        let ends = name.match_indices('/').map(|(at, _)| at).skip(2);
        for end in ends {
            let above = &name[..end];
            if self.find(above)?.is_some() {
                return Ok(Some(above.to_owned()));
            }
        }
        let below = self.below(&format!("{name}/"))?;
        Ok(below.into_iter().next().map(|found| found.name))
    }

    fn node(&self) -> Result<&str, ApiError> {
        #[derive(Deserialize)]
        struct RepositoryNode {
            node_id: String,
        }
        if let Some(node) = self.node.get() {
            return Ok(node);
        }
        let node: RepositoryNode = self.access.api.get(&self.access.path(""), &[])?;
        Ok(self.node.get_or_init(|| node.node_id))
    }
}

/// The result of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveOutcome {
    /// All refs are where they were to be.
    Moved,
    /// All are where they were.
    Untouched,
    /// One of them is somewhere else.
    Elsewhere,
}

/// Names a ref as people know it.
fn called(name: &str) -> String {
    match name.strip_prefix("refs/heads/") {
        Some(branch) => format!("the branch `{branch}`"),
        None => format!("the ref `{name}`"),
    }
}

/// Tells whether the server has no such mutation. Words are all it says: the error has no type.
fn is_unknown(error: &ApiError) -> bool {
    matches!(error, ApiError::Rejected { kind: None, message, .. }
        if message.contains("doesn't exist on type") || message.contains("isn't a defined input type"))
}
