//! The catalogue: the loops that the program brings along, listed, and copied into a project that makes them its own.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use similar::TextDiff;

use super::formatter_ignores;
use crate::base::advised_command;
use crate::base::diagnostic::nearest;
use crate::base::name::VarName;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::builtin::Builtin;
use crate::definition::load::{self, DIRECTORY};
use crate::definition::schema::{ActionType, Loop, Parameter};
use crate::definition::source_text::SourceFile;
use crate::files::place;
use crate::files::read::{self, MIB};
use crate::files::replace::create;

/// The endings of loop files.
const EXTENSIONS: [&str; 2] = ["yaml", "yml"];

/// The largest file that a loop is compared with, in bytes.
const MAX_COMPARED: u64 = MIB;

/// A loop of the catalogue.
#[derive(Clone, Debug)]
pub(crate) struct CatalogueEntry {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Whether it hands work to an agent.
    pub(crate) needs_agent: bool,
    pub(crate) parameters: IndexMap<VarName, Parameter>,
    pub(crate) text: String,
    /// Its tests.
    pub(crate) tests: Option<String>,
}

/// What became of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// The file was written.
    Written(PathBuf),
    /// The very same file was there.
    Unchanged(PathBuf),
}

/// Returns the whole catalogue, in the order of the names.
pub(crate) fn entries(session: &Session<'_>) -> Result<Vec<CatalogueEntry>, Error> {
    Builtin::catalogue().map(|file| entry(file, session)).collect()
}

/// Finds a loop of the catalogue by its name.
pub(crate) fn named(name: &str, session: &Session<'_>) -> Result<CatalogueEntry, Error> {
    let Some(file) = Builtin::catalogued(name) else {
        let meant = nearest(name, Builtin::catalogue().map(Builtin::name));
        let hint = match meant {
            Some(near) => format!("did you mean `{near}`? `ll-loop catalog` lists all"),
            None => "`ll-loop catalog` lists all; one of another repository is added as \
                     `github:OWNER/REPOSITORY/PATH.yaml@REF`"
                .to_owned(),
        };
        return Err(Error::refused(format!("there is no `{name}` in the catalogue")).with_hint(hint));
    };
    entry(file, session)
}

/// Reads a loop file that a path names, with the tests that lie beside it.
///
/// # Errors
/// It is not a loop, or not the whole of one: what it takes over from other files would not be copied.
pub(crate) fn at_path(path: &Path, session: &Session<'_>) -> Result<CatalogueEntry, Error> {
    let located = session.find(&path.to_string_lossy(), true)?;
    let cannot =
        |error: &dyn std::error::Error| Error::refused(format!("cannot add `{}`: {error}", located.shown));
    let loaded = load::load(&located).map_err(|error| cannot(&error))?;
    let others: Vec<&str> = loaded.sources.iter().skip(1).map(SourceFile::name).collect();
    if !others.is_empty() {
        return Err(Error::refused(format!(
            "`{}` is made of other files, too: {}",
            located.shown,
            others.join(", ")
        ))
        .with_hint("`ll-loop compile LOOP` writes it as one file, which can be added"));
    }
    // As written: what was loaded has neither comments nor layout.
    let text = read::text(&located.path, MIB).map_err(|error| cannot(&error))?;
    let name = located.path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    let beside = located.path.with_file_name("tests").join(format!("{name}.test.yaml"));
    Ok(made(name, loaded.definition, text, read::text(&beside, MIB).ok()))
}

fn made(name: String, definition: Loop, text: String, tests: Option<String>) -> CatalogueEntry {
    let asks =
        |action: Option<ActionType>| matches!(action, Some(ActionType::Prompt | ActionType::SlashCommand));
    CatalogueEntry {
        name,
        description: definition.description.unwrap_or_default(),
        needs_agent: definition.states.values().any(|state| asks(state.action_type)),
        parameters: definition.parameters,
        text,
        tests,
    }
}

fn entry(file: Builtin, session: &Session<'_>) -> Result<CatalogueEntry, Error> {
    let located = session.find(&file.place().to_string_lossy(), false)?;
    let loaded = load::load(&located)
        .map_err(|error| Error::failed(format!("cannot read `{}`", file.name()), &error))?;
    let tests = file.tests().map(str::to_owned);
    Ok(made(file.name().to_owned(), loaded.definition, file.text().to_owned(), tests))
}

/// Copies a loop into the project, or to the path that a person names. A file that differs is never overwritten.
pub(crate) fn add(entry: &CatalogueEntry, to: Option<&Path>, session: &Session<'_>) -> Result<Added, Error> {
    let target = match to {
        Some(path) => chosen(path, session)?,
        None => usual(&entry.name, session),
    };
    let shown = shown(&target, session);
    // A person may name any path; the usual one must not leave `.loops` by a link that the repository brought along.
    if to.is_none() {
        place::stays_at_home(&target, DIRECTORY)
            .map_err(|error| Error::refused(format!("cannot write `{shown}`: {error}")))?;
    }
    // Links are not followed: one that leads nowhere is in the way as well.
    if fs_err::symlink_metadata(&target).is_ok() {
        let there = read::text(&target, MAX_COMPARED)
            .map_err(|error| Error::refused(format!("`{shown}` is in the way: {error}")))?;
        if there == entry.text {
            return Ok(Added::Unchanged(target));
        }
        session.talk.warning(&difference(&there, entry, &shown));
        return Err(Error::refused(format!("`{shown}` exists and differs; it stays as it is")).with_hint(
            format!("move it away, or copy to another name: `ll-loop add {} --as PATH`", entry.name),
        ));
    }
    let failed = |error: &std::io::Error| Error::failed(format!("cannot write `{shown}`"), error);
    if let Some(directory) = target.parent() {
        fs_err::create_dir_all(directory).map_err(|error| failed(&error))?;
    }
    create(&target, &entry.text).map_err(|error| failed(&error))?;
    let root = place::repository(&session.cwd).unwrap_or(&session.cwd);
    // A copy elsewhere is not yet a loop of this project, whose `.gitignore` stays as it is.
    if target.starts_with(root.join(DIRECTORY)) {
        let did = formatter_ignores::ignore_runs(root, "", session)?;
        if did != formatter_ignores::UNCHANGED {
            session.talk.note(&format!("{did} {}", formatter_ignores::FILE));
        }
    }
    Ok(Added::Written(target))
}

/// Copies the tests of a loop that was copied to its usual place. Tests that are there already are left, whatever they say:
/// somebody has made them their own.
pub(crate) fn add_tests(
    entry: &CatalogueEntry,
    copied: &Path,
    session: &Session<'_>,
) -> Result<Option<Added>, Error> {
    let is_usual = usual(&entry.name, session) == copied;
    let Some(text) = entry.tests.as_ref().filter(|_| is_usual) else { return Ok(None) };
    let Some(loops) = copied.parent() else { return Ok(None) };
    let target = loops.join("tests").join(format!("{}.test.yaml", entry.name));
    let shown = shown(&target, session);
    place::stays_at_home(&target, DIRECTORY)
        .map_err(|error| Error::refused(format!("cannot write `{shown}`: {error}")))?;
    if fs_err::symlink_metadata(&target).is_ok() {
        return Ok(Some(Added::Unchanged(target)));
    }
    let failed = |error: &std::io::Error| Error::failed(format!("cannot write `{shown}`"), error);
    fs_err::create_dir_all(loops.join("tests")).map_err(|error| failed(&error))?;
    create(&target, text).map_err(|error| failed(&error))?;
    Ok(Some(Added::Written(target)))
}

/// Returns the place where a loop is found by its name, or the file that has it already.
fn usual(name: &str, session: &Session<'_>) -> PathBuf {
    let repository = place::repository(&session.cwd).unwrap_or(&session.cwd);
    let above = session.cwd.ancestors().take_while(|above| above.starts_with(repository));
    let root = above.into_iter().find(|above| above.join(DIRECTORY).is_dir()).unwrap_or(repository);
    let files = EXTENSIONS.map(|extension| root.join(DIRECTORY).join(format!("{name}.{extension}")));
    let taken = files.iter().find(|file| fs_err::symlink_metadata(file).is_ok());
    taken.unwrap_or(&files[0]).clone()
}

fn chosen(path: &Path, session: &Session<'_>) -> Result<PathBuf, Error> {
    let is_loop = path.extension().is_some_and(|end| EXTENSIONS.iter().any(|extension| end == *extension));
    if !is_loop {
        return Err(Error::refused(format!("`{}` is not a valid loop file name", path.display()))
            .with_hint("end it with `.yaml`"));
    }
    Ok(session.path(path))
}

/// Returns a path as somebody in the working directory writes it.
pub(crate) fn shown(path: &Path, session: &Session<'_>) -> String {
    path.strip_prefix(&session.cwd).unwrap_or(path).display().to_string()
}

/// Returns the command that runs a copy.
pub(crate) fn run(entry: &CatalogueEntry, path: &Path, session: &Session<'_>) -> String {
    let is_usual = usual(&entry.name, session) == path;
    let name = if is_usual { entry.name.clone() } else { shown(path, session) };
    let required = entry.parameters.iter().filter(|(_, parameter)| parameter.required);
    required
        .fold(advised_command::run(&name), |line, (name, _)| line.option("--param", &format!("{name}=…")))
        .to_string()
}

fn difference(there: &str, entry: &CatalogueEntry, shown: &str) -> String {
    let diff = TextDiff::from_lines(there, entry.text.as_str());
    let diff = diff.unified_diff().header(shown, &format!("the new one: {}", entry.name)).to_string();
    format!("`{shown}` differs from what would be added:\n{diff}")
}
