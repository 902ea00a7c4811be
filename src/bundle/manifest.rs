//! What a bundle says about itself. Somebody else may have written it, so that every value is of a type that only the
//! parser makes: an id is an id, a path stays below its directory, and a line is nothing but shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::names;
use crate::base::name::{InstanceName, LoopName, StateName};
use crate::base::object::ObjectId;
use crate::base::parsed::parsed;
use crate::base::relative::{Line, RelativePath};
use crate::base::sum::Sum;
use crate::base::time::Timestamp;
use crate::engine::event::Assignment;
use crate::engine::outcome::Outcome;

/// The version of the format that this program writes. A newer one is refused, an older one is read.
pub const SCHEMA: u32 = 1;

/// The file that names all others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub schema: u32,
    /// What wrote it.
    pub written_by: Line,
    /// When.
    pub written_at: Timestamp,
    /// The loop.
    pub r#loop: LoopName,
    /// The id of the run.
    pub instance: InstanceName,
    /// The loop file, as seen from the directory of the run; absent where it lies outside, so that only the machine of the
    /// run has it.
    pub file: Option<RelativePath>,
    /// Digest of the loop file and everything it pulled in.
    pub definition_sha256: Sum,
    /// The item of a plan that it works on, in its last attempt.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub assignment: Option<Assignment>,
    /// The plan whose items it brings together, where it is a merge and not a run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub merges: Option<Sum>,
    /// The repository, as `host/owner/name`, where there is one to name.
    pub repository: Option<Line>,
    /// The job that wrote it, as people can look it up.
    pub job: Option<Line>,
    /// How the run ended; absent while it goes on, or when it was killed.
    pub outcome: Option<Outcome>,
    /// Whether it can go on.
    pub resumable: bool,
    /// Where it stands.
    pub state: Option<StateName>,
    /// The pass.
    pub iteration: u32,
    /// The state execution.
    pub step: u32,
    /// The number of the last event.
    pub last_seq: u64,
    /// What the run made of the working tree; absent where there is no git repository.
    pub tree: Option<SavedTree>,
    /// Its tree snapshots; absent where it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub snapshots: Option<SavedSnapshots>,
    /// Files that are not in it, and why.
    pub left_out: Vec<LeftOut>,
    /// Every other file in it.
    pub files: Vec<ManifestEntry>,
}

/// A file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestEntry {
    /// Its name in the bundle.
    pub name: EntryName,
    /// Its length in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: Sum,
}

/// Why a text is not the name of a file in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bundle cannot contain a file with this name")]
pub struct EntryError;

parsed!(
    /// The name of a file in a bundle: one that [`super::pack`] gives, and no other.
    EntryName, EntryError, |text| {
        let single = [names::JOURNAL, names::STATE, names::LOG, names::TREE, names::SNAPSHOTS];
        let below = [names::STREAMS, names::RUN_DIR, names::REPORTS, names::LOOPS];
        let is_ours = single.contains(&text) || below.iter().any(|below| text.starts_with(below));
        if is_ours && RelativePath::parse(text).is_ok() { Ok(()) } else { Err(EntryError) }
    }
);

/// A file that a bundle does not carry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path in the repository, or in the bundle.
    pub path: Line,
    /// Why.
    pub why: Line,
}

impl LeftOut {
    /// Says why a file is not carried, whatever it is called.
    pub fn new(path: &str, why: &str) -> Self {
        Self { path: Line::of(path), why: Line::of(why) }
    }

    /// Tells whether it is of the working tree, and not of the other files of the run.
    pub fn is_of_tree(&self) -> bool {
        let beside = [names::STREAMS, names::RUN_DIR, names::REPORTS, names::LOOPS];
        !beside.iter().any(|beside| self.path.as_str().starts_with(beside))
    }
}

/// A working tree, as the objects of a git bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTree {
    /// The commit that a checkout has to be at, to become this tree.
    pub base: ObjectId,
    /// The commit at which the run left it: the same, unless the loop commits.
    pub head: ObjectId,
    /// A commit of all files as they were, on top of `head`.
    pub commit: ObjectId,
    /// The tree of that commit.
    pub tree: ObjectId,
    /// A commit of the index; absent when it held a conflict or a secret.
    pub index: Option<ObjectId>,
    /// Whether the bundle has a file with objects; not when nothing was changed, or when the changes may not be carried.
    pub changed: bool,
    /// Why the changes are not carried, if they are not.
    pub missing: Option<Line>,
}

/// Why a text is not the name of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the name of a tree snapshot")]
pub struct SnapshotError;

parsed!(
    /// What a tree snapshot is called: the number of a step, such as `12` or `2.1`, or `end`.
    SnapshotName, SnapshotError, |text| {
        let is_number = |part: &str| {
            !part.is_empty() && !part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_name = text == "end" || (text.len() <= 200 && text.split('.').all(is_number));
        if is_name { Ok(()) } else { Err(SnapshotError) }
    }
);

/// Tree snapshots, as the objects of a git bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSnapshots {
    /// The commit that a clone has to have.
    pub base: ObjectId,
    /// The snapshots.
    pub refs: BTreeMap<SnapshotName, ObjectId>,
}
