//! Another name for something, in every file that names it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::outline::{NameKind, NameUse};
use super::project_names::{FileKeeper, NameTarget, ProjectNames};
use super::repair_edit::RepairEdit;
use crate::base::name::{LoopName, StateName, VarName};
use crate::base::node::{Scalar, ScalarValue};
use crate::base::text::one_line;

/// Why a name cannot become another one.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum RenameError {
    #[error("there is no name here that a file of this project makes")]
    NoName,
    #[error("`{name}` cannot be a name here")]
    Unfit { name: String },
    #[error("`{name}` is there already")]
    Taken { name: String },
    #[error("`{}` has this name as well, and is not ours to change", file.display())]
    NotOurs { file: PathBuf },
    #[error("`{}` cannot be read as it is now, and may have this name as well", file.display())]
    Unread { file: PathBuf },
    #[error("`{}` names the loop by its path", file.display())]
    ByPath { file: PathBuf },
    #[error("this editor does not rename files")]
    NoFiles,
}

/// A file that gets another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MovedFile {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
}

/// What is written to give something another name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RenamePlan {
    pub(super) edits: BTreeMap<PathBuf, Vec<RepairEdit>>,
    pub(super) moved: Vec<MovedFile>,
}

/// Returns the place of the name under a cursor, if it can be given another one.
pub(super) fn renamed(names: &ProjectNames, path: &Path, byte: usize) -> Option<(Range<usize>, String)> {
    let name = names.at(path, byte)?;
    // An editor opens no field for a name that could not be written afterwards.
    let target = found(names, path, name).ok()?;
    (target.kind != NameKind::Library).then(|| (name.range.clone(), name.name.clone()))
}

/// Plans another name for what is under a cursor.
///
/// # Errors
/// No such thing can have the name, another one has it, or a file would have to be changed that must not be.
pub(super) fn rename(
    names: &ProjectNames,
    path: &Path,
    byte: usize,
    to: &str,
) -> Result<RenamePlan, RenameError> {
    let name = names.at(path, byte).ok_or(RenameError::NoName)?;
    let target = found(names, path, name)?;
    match target.kind {
        NameKind::Loop => return loop_renamed(names, &target, to),
        NameKind::Library => return Err(RenameError::NoName),
        NameKind::State | NameKind::Capture | NameKind::Variable | NameKind::Fragment => {}
    }
    if !is_fit(target.kind, to) {
        return Err(unfit(to));
    }
    let family = target.files.iter().flat_map(|file| names.family(file));
    let mut outlines = family.filter_map(|file| names.files.get(&file)).map(|file| &file.outline);
    if outlines.any(|outline| outline.definitions(target.kind).any(|other| other.name == to)) {
        return Err(RenameError::Taken { name: to.to_owned() });
    }
    Ok(RenamePlan { edits: edits(names, &target, |_, _| Ok(to.to_owned()))?, moved: Vec::new() })
}

/// Returns what a name stands for, if something of this project makes it and every file can follow.
fn found(names: &ProjectNames, path: &Path, name: &NameUse) -> Result<NameTarget, RenameError> {
    let target = names.target(path, name).ok_or(RenameError::NoName)?;
    let is_file = matches!(target.kind, NameKind::Loop | NameKind::Library);
    let uses = names.uses(&target);
    if !is_file && !uses.iter().any(|found| found.is_definition) {
        return Err(RenameError::NoName);
    }
    let others = uses.iter().map(|found| found.path).chain(target.files.iter().map(PathBuf::as_path));
    for file in others {
        if names.files.get(file).is_none_or(|known| known.keeper != FileKeeper::Project) {
            return Err(RenameError::NotOurs { file: file.to_owned() });
        }
    }
    // Searched as a plain text, which may find too much: a refusal is better than half a rename.
    match names.unread.iter().find(|(_, text)| text.contains(&target.name)) {
        Some((file, _)) => Err(RenameError::Unread { file: file.clone() }),
        None => Ok(target),
    }
}

fn is_fit(kind: NameKind, to: &str) -> bool {
    let is_valid = match kind {
        NameKind::State => StateName::parse(to).is_ok(),
        // Within a template, these characters would end the name.
        NameKind::Capture | NameKind::Variable => VarName::parse(to).is_ok() && !to.contains(['.', '}', ':']),
        NameKind::Fragment | NameKind::Loop | NameKind::Library => !to.trim().is_empty(),
    };
    // A line end or an unseen character would break the files that it is written into.
    is_valid && to == one_line(to, 200)
}

/// Plans another name for a loop: its file, its tests, and whoever names it. It keeps its directory, from which the names of other
/// files count.
fn loop_renamed(names: &ProjectNames, target: &NameTarget, to: &str) -> Result<RenamePlan, RenameError> {
    let file = target.files.first().ok_or(RenameError::NoName)?;
    let home = names.files.get(file).and_then(|known| known.home.as_ref()).ok_or(RenameError::NoName)?;
    let directory = |name: &str| name.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    if LoopName::parse(to).is_err() || directory(to) != directory(&home.name) {
        return Err(unfit(to));
    }
    let new = match file.extension() {
        Some(extension) => home.loops.join(format!("{to}.{}", extension.to_string_lossy())),
        None => home.loops.join(to),
    };
    // `a.yaml` and `a.yml` are the same loop to those who name it.
    if names.files.keys().any(|known| known.with_extension("") == new.with_extension("")) {
        return Err(RenameError::Taken { name: to.to_owned() });
    }
    let last = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    let edits = edits(names, target, |path, name| {
        if name.is_definition {
            // The key `name` may say something else than the file.
            let known = [(home.name.clone(), to.to_owned()), (last(&home.name), last(to))];
            let written = known.into_iter().find(|(old, _)| *old == name.name).map(|(_, new)| new);
            return Ok(written.unwrap_or_else(|| name.name.clone()));
        }
        if name.name == home.name {
            Ok(to.to_owned())
        } else {
            Err(RenameError::ByPath { file: path.to_owned() })
        }
    })?;
    let mut moved = vec![MovedFile { from: file.clone(), to: new }];
    let tests = |name: &str| home.loops.join("tests").join(format!("{name}.test.yaml"));
    let (from, to) = (tests(&home.name), tests(to));
    if names.files.contains_key(&from) {
        moved.push(MovedFile { from, to });
    }
    Ok(RenamePlan { edits, moved })
}

/// Writes a new name at every place of a target.
fn edits(
    names: &ProjectNames,
    target: &NameTarget,
    new: impl Fn(&Path, &NameUse) -> Result<String, RenameError>,
) -> Result<BTreeMap<PathBuf, Vec<RepairEdit>>, RenameError> {
    let mut all: BTreeMap<PathBuf, Vec<RepairEdit>> = BTreeMap::new();
    for found in names.uses(target) {
        let file = &names.files[found.path];
        let is_here = |name: &&NameUse| name.range == found.range;
        let Some(name) = file.outline.names.iter().find(is_here) else { continue };
        let new = new(found.path, name)?;
        if new != name.name {
            let text = written(file.document.text(), name, &new)?;
            all.entry(found.path.to_owned()).or_default().push(RepairEdit { range: found.range, text });
        }
    }
    Ok(all)
}

/// Writes a name as it has to be at a place: in quotes where it would be read as something else.
///
/// # Errors
/// It stands within a longer text, and would end it.
fn written(text: &str, place: &NameUse, name: &str) -> Result<String, RenameError> {
    if place.is_part {
        let is_word = name.chars().all(is_of_word);
        return if is_word { Ok(name.to_owned()) } else { Err(unfit(name)) };
    }
    Ok(match text[..place.range.start].chars().next_back() {
        Some('\'') => name.replace('\'', "''"),
        Some('"') => name.replace('\\', "\\\\").replace('"', "\\\""),
        _ if is_plain(name) => name.to_owned(),
        _ => format!("'{}'", name.replace('\'', "''")),
    })
}

fn unfit(name: &str) -> RenameError {
    RenameError::Unfit { name: one_line(name, 100) }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// Tells whether a name is read as a text without quotes.
fn is_plain(name: &str) -> bool {
    Scalar::plain(name.to_owned()).value == ScalarValue::String
        && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_of_word)
}
