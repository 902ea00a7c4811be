//! The names of a project: which file means what by them, and where else the same is meant.
//!
//! Two files mean the same by a name if one takes the other over, by `from` or `import`, and both have it. Tests, workflows and
//! states that run a sub-loop have names of other loops.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::outline::{LoopOutline, NameKind, NameOwner, NameUse};
use super::text_document::TextDocument;
use crate::base::node::Node;

/// Whose a file is, which decides about who may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKeeper {
    /// The project.
    Project,
    /// Another repository, of which it is a copy.
    Copy,
    /// This program.
    Program,
}

/// Where a loop has its name from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopHome {
    /// The `.loops` that it is in.
    pub(super) loops: PathBuf,
    /// Its path from there, without the extension.
    pub(super) name: String,
}

/// A file that was read, with what its names lead to.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    pub(super) document: TextDocument,
    pub(super) outline: LoopOutline,
    pub(super) keeper: FileKeeper,
    /// Absent for what is elsewhere, and for what is no loop.
    pub(super) home: Option<LoopHome>,
    /// Whether it holds tests of a loop.
    pub(super) is_test: bool,
    /// The loop and the libraries that it takes over.
    pub(super) parents: Vec<PathBuf>,
    /// The files of the loops and libraries that it names, by these names.
    pub(super) named: BTreeMap<String, PathBuf>,
}

/// Every file of a project that has names.
#[derive(Clone, Debug, Default)]
pub(super) struct ProjectNames {
    pub(super) files: BTreeMap<PathBuf, NamedFile>,
    /// Files that cannot be parsed just now, with their texts.
    pub(super) unread: BTreeMap<PathBuf, String>,
}

/// What a name stands for, in all of the files that mean it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameTarget {
    pub(super) kind: NameKind,
    pub(super) name: String,
    /// The files whose own name it is; of a loop or a library, the file itself.
    pub(super) files: BTreeSet<PathBuf>,
}

/// A name in one of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlacedName<'n> {
    pub(super) path: &'n Path,
    pub(super) range: Range<usize>,
    pub(super) is_definition: bool,
}

impl ProjectNames {
    /// Returns the name at a place of a file.
    pub(super) fn at(&self, path: &Path, byte: usize) -> Option<&NameUse> {
        self.files.get(path)?.outline.at(byte)
    }

    /// Returns what a name in a file stands for.
    pub(super) fn target(&self, path: &Path, name: &NameUse) -> Option<NameTarget> {
        if matches!(name.kind, NameKind::Loop | NameKind::Library) {
            let files = BTreeSet::from([self.file_named(path, name)?.to_owned()]);
            return Some(NameTarget { kind: name.kind, name: name.name.clone(), files });
        }
        let owner = self.owner(path, &name.owner)?;
        let kind = self.meaning(&owner, name);
        let mut above = std::iter::once(owner.clone()).chain(self.ancestors(&owner));
        let start = above.find(|file| self.has(file, kind, &name.name))?;
        Some(NameTarget { kind, name: name.name.clone(), files: self.sharing(start, kind, &name.name) })
    }

    /// Returns every place where something is named.
    pub(super) fn uses(&self, target: &NameTarget) -> Vec<PlacedName<'_>> {
        let mut all = Vec::new();
        for (path, file) in &self.files {
            let names = file.outline.names.iter().filter(|name| self.is_use(path, name, target));
            all.extend(names.map(|name| PlacedName {
                path,
                range: name.range.clone(),
                is_definition: name.is_definition,
            }));
        }
        all
    }

    fn is_use(&self, path: &Path, name: &NameUse, target: &NameTarget) -> bool {
        if matches!(target.kind, NameKind::Loop | NameKind::Library) {
            // Files are compared and not names: one may be named by a path, or without its extension.
            let is_file = matches!(name.kind, NameKind::Loop | NameKind::Library);
            return is_file && self.file_named(path, name).is_some_and(|file| target.files.contains(file));
        }
        if name.name != target.name {
            return false;
        }
        let Some(owner) = self.owner(path, &name.owner) else { return false };
        self.meaning(&owner, name) == target.kind
            && match name.owner {
                NameOwner::ThisFile => target.files.contains(&owner),
                // What a loop takes over is its own to others.
                NameOwner::Loop { .. } => {
                    let mut whole = std::iter::once(owner.clone()).chain(self.ancestors(&owner));
                    whole.any(|file| target.files.contains(&file))
                }
            }
    }

    /// Returns what a state of a loop says: in its file, or in the nearest one that it takes over.
    pub(super) fn state(&self, path: &Path, name: &str) -> Option<(PathBuf, &Node)> {
        let mut whole = std::iter::once(path.to_owned()).chain(self.ancestors(path));
        whole.find_map(|file| {
            let state = self.files.get(&file)?.outline.state(name)?;
            Some((file, state))
        })
    }

    /// Returns the file of the loop or library that a name means.
    pub(super) fn file_named<'p>(&'p self, path: &'p Path, name: &NameUse) -> Option<&'p Path> {
        // A loop names itself as it likes.
        if name.is_definition {
            return Some(path);
        }
        self.files.get(path)?.named.get(&name.name).map(PathBuf::as_path)
    }

    /// Returns the file whose name it is.
    pub(super) fn owner(&self, path: &Path, owner: &NameOwner) -> Option<PathBuf> {
        let NameOwner::Loop { named, through } = owner else { return Some(path.to_owned()) };
        let mut file = self.files.get(path)?.named.get(named)?.clone();
        for state in through {
            let (at, node) = self.state(&file, state)?;
            let inner = &node.get("loop")?.as_scalar()?.text;
            // The name counts from the file in which the state is written, which may be a parent.
            file.clone_from(self.files.get(&at)?.named.get(inner)?);
        }
        Some(file)
    }

    /// Returns what a name means in a file. A result that no capture names is kept under the name of its state.
    fn meaning(&self, path: &Path, name: &NameUse) -> NameKind {
        if name.kind != NameKind::Capture || name.is_definition {
            return name.kind;
        }
        let family: Vec<PathBuf> = self.family(path);
        let makes = |kind| {
            let outlines = family.iter().filter_map(|file| self.files.get(file)).map(|file| &file.outline);
            outlines.into_iter().any(|outline| outline.definitions(kind).any(|made| made.name == name.name))
        };
        if !makes(NameKind::Capture) && makes(NameKind::State) { NameKind::State } else { NameKind::Capture }
    }

    /// Tells whether a file itself has a name.
    fn has(&self, path: &Path, kind: NameKind, name: &str) -> bool {
        let names = self.files.get(path).into_iter().flat_map(|file| &file.outline.names);
        let mut own = names.filter(|own| own.name == name && own.owner == NameOwner::ThisFile);
        own.any(|own| own.kind == kind || self.meaning(path, own) == kind)
    }

    /// Returns the files that mean the same by a name as this one, itself among them.
    fn sharing(&self, start: PathBuf, kind: NameKind, name: &str) -> BTreeSet<PathBuf> {
        let mut open = vec![start];
        let mut all = BTreeSet::new();
        while let Some(file) = open.pop() {
            let family = self.family(&file).into_iter();
            open.extend(
                family.filter(|other| !all.contains(other) && *other != file && self.has(other, kind, name)),
            );
            all.insert(file);
        }
        all
    }

    /// Returns a file, what it takes over, and what takes it over.
    pub(super) fn family(&self, path: &Path) -> Vec<PathBuf> {
        let below = self.files.keys().filter(|other| *other != path);
        let below = below.filter(|other| self.ancestors(other).iter().any(|above| above == path)).cloned();
        std::iter::once(path.to_owned()).chain(self.ancestors(path)).chain(below).collect()
    }

    /// Returns every file that one takes over, the nearest first.
    fn ancestors(&self, path: &Path) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = Vec::new();
        let mut at = 0;
        let mut next = path;
        loop {
            let parents = self.files.get(next).into_iter().flat_map(|file| &file.parents);
            // Files may take each other over by mistake, also in a circle.
            let new: Vec<PathBuf> =
                parents.filter(|parent| **parent != path && !all.contains(parent)).cloned().collect();
            all.extend(new);
            let Some(following) = all.get(at) else { return all };
            next = self.files.get_key_value(following).map_or(path, |(known, _)| known.as_path());
            at += 1;
        }
    }
}
