//! Copies of loops from other repositories: where they lie, what their names mean, and whether they are still what
//! was added.
//!
//! A copy lies in `.loops/vendor/OWNER/REPOSITORY/PATH`, and `.loops/lock.json` has the digest of each file. A name in a
//! copy means another file of the same copy, or a file of the program, and never one of the project.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::listing::{DIRECTORY, EXTENSIONS, VENDOR, without_extension};
use crate::base::explanation::Explanation;
use crate::base::gitpath;
use crate::base::parsed::parsed;
use crate::base::relative::RelativePath;
use crate::base::sum::Sum;
use crate::base::text::{is_direction, one_line};
use crate::base::time::Timestamp;
use crate::files::place::{named, resolved};
use crate::files::read::{self, Unread};

/// What the name of a copy begins with.
pub const COPY: &str = "vendor:";

/// What the name of a loop on GitHub begins with, which only `ll-loop add` takes.
pub const REMOTE: &str = "github:";

/// What the name of a loop of any other git repository begins with in the lock file, which has its address beside it.
pub const OF_GIT: &str = "git:";

/// The file that says what the copies are.
pub const LOCK: &str = "lock.json";

/// What stands between a copy and a name in it. No path of a copy holds it.
pub const WITHIN: char = '#';

/// The version of the lock file that is read and written.
const VERSION: u32 = 1;

/// The most bytes of a lock file.
// Room for tens of thousands of files. A pull request of a stranger can bring this file, so reading it has a bound.
const MAX_LOCK: u64 = 4 * read::MIB;

/// Why a text does not name a file of a repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedNameError {
    /// Something is missing.
    #[error("it is not of the form `OWNER/REPOSITORY/PATH`")]
    Form,
    /// GitHub has no such owner or repository.
    #[error("no owner or repository has this name")]
    Repository,
    /// The path leads elsewhere, or holds what no terminal shows.
    #[error("{0}")]
    Path(String),
    /// It is not the path of a loop file.
    #[error("a loop file ends in `.yaml` or `.yml`")]
    Extension,
}

fn check_shared(text: &str) -> Result<(), SharedNameError> {
    let mut parts = text.splitn(3, '/');
    let (Some(owner), Some(name), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(SharedNameError::Form);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    // No repository on GitHub has a longer name.
    let is_part = |part: &str| !part.is_empty() && part.len() <= 100 && part.chars().all(is_plain);
    if !is_part(owner) || !is_part(name) {
        return Err(SharedNameError::Repository);
    }
    RelativePath::parse(text).map_err(|error| SharedNameError::Path(error.to_string()))?;
    // People decide by this path whether to trust the file, so it has to read as what it is.
    if let Some(turn) = path.chars().find(|c| is_direction(*c) || *c == WITHIN) {
        return Err(SharedNameError::Path(format!("a path from elsewhere cannot contain {turn:?}")));
    }
    without_extension(path).map(drop).ok_or(SharedNameError::Extension)
}

parsed!(
    /// A loop file of a repository: `OWNER/REPOSITORY/PATH.yaml`.
    SharedName, SharedNameError, check_shared
);

impl SharedName {
    /// Returns `OWNER/REPOSITORY`.
    pub fn repository(&self) -> &str {
        let text = self.as_str();
        let end = text.match_indices('/').nth(1).map_or(text.len(), |(at, _)| at);
        &text[..end]
    }

    /// Returns the path in the repository.
    pub fn path(&self) -> &str {
        self.as_str().splitn(3, '/').nth(2).unwrap_or("")
    }
}

/// A file that is a copy, by where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// The `.loops` that it is in.
    loops: PathBuf,
    /// `OWNER/REPOSITORY`.
    repository: String,
    /// Its path in the repository.
    path: String,
}

/// Whether a copy may be used that is not what was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copies {
    /// Each has to be what the lock file says.
    #[default]
    Locked,
    /// They are taken as they are: a person allowed it.
    AsTheyAre,
}

impl Copies {
    /// Takes them as they are, if a person allowed it.
    pub fn accepted_if(allowed: bool) -> Self {
        if allowed { Self::AsTheyAre } else { Self::Locked }
    }
}

/// Why a copy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// It is not copied yet, and nothing is fetched for a run.
    #[error("`{0}` is on GitHub, and a loop file names only what is here")]
    Remote(String),
    /// No copy can have this name.
    #[error("`{name}` names no copy: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        why: SharedNameError,
    },
    /// There is no such copy.
    #[error("there is no copy `{0}`")]
    Absent(String),
    /// A copy names something that is not in it.
    #[error("there is no `{name}` in the copy of `{repository}`")]
    NotInCopy {
        /// What is named.
        name: String,
        /// The repository.
        repository: String,
    },
    /// There is no lock file.
    #[error("there is no `{}`, which says what the copies are", .0.display())]
    NoLock(PathBuf),
    /// The lock file cannot be read.
    #[error("`{}` cannot be read: {why}", file.display())]
    BadLock {
        /// The file.
        file: PathBuf,
        /// Why not.
        why: String,
    },
    /// The lock file does not know it.
    #[error("`{0}` is not in `.loops/lock.json`: nobody has added it")]
    Unknown(String),
    /// It is not what was added.
    #[error("`{0}` was edited: it is not the file that `.loops/lock.json` names")]
    Edited(String),
    /// It lies elsewhere.
    #[error("`{0}` is a link, and a copy is a plain file")]
    Link(String),
}

impl CopyError {
    /// Returns what to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Remote(name) => {
                let (name, reference) = name.split_once('@').unwrap_or((name, "REF"));
                let copy = name.replacen(REMOTE, COPY, 1);
                format!("add it once with `ll-loop add {name}@{reference}`, and name the copy: `{copy}`")
            }
            Self::BadName { .. } => format!("write `{COPY}OWNER/REPOSITORY/PATH.yaml`"),
            Self::Absent(name) => {
                format!("add it with `ll-loop add {}@REF`", name.replacen(COPY, REMOTE, 1))
            }
            Self::NotInCopy { .. } => {
                "names in a copy mean files of the same copy, or of ll-loop itself; ask its authors to mend it"
                    .to_owned()
            }
            Self::NoLock(_) | Self::BadLock { .. } => {
                "take it back from the history of the repository, or add the loops again; with `--accept-changes` a run takes them \
                 as they are"
                    .to_owned()
            }
            Self::Unknown(_) => {
                "add it from where it comes, or move it out of `.loops/vendor`; with `--accept-changes` a run takes it as it is"
                    .to_owned()
            }
            Self::Edited(_) => {
                "keep the edits with `ll-loop update --merge`, or undo them; with `--accept-changes` a run takes it as it is"
                    .to_owned()
            }
            Self::Link(_) => "remove the link, and add the loop again".to_owned(),
        }
    }
}

/// What a name in a copy is meant to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// A loop to inherit from.
    Parent,
    /// A library of fragments.
    Library,
    /// A text that is taken as it is.
    Text,
    /// A loop that a state runs.
    Loop,
}

impl CopiedFile {
    /// Tells whether a file is a copy, by its name, or by where its links lead.
    pub fn at(path: &Path) -> Option<Self> {
        Self::by_name(&named(path)).or_else(|| Self::by_name(&resolved(path)))
    }

    fn by_name(path: &Path) -> Option<Self> {
        let parts: Vec<Component<'_>> = path.components().collect();
        let is = |part: Component<'_>, name: &str| part.as_os_str() == name;
        let at = parts.windows(2).position(|pair| is(pair[0], DIRECTORY) && is(pair[1], VENDOR))?;
        let text = |part: &Component<'_>| part.as_os_str().to_string_lossy().into_owned();
        let below: Vec<String> = parts[at + 2..].iter().map(text).collect();
        let [owner, name, path @ ..] = &below[..] else { return None };
        (!path.is_empty()).then(|| Self {
            loops: parts[..=at].iter().collect(),
            repository: format!("{owner}/{name}"),
            path: path.join("/"),
        })
    }

    /// Returns where a file of a repository is copied to in a `.loops`.
    pub fn new(loops: &Path, repository: &str, path: &str) -> Self {
        Self { loops: loops.to_owned(), repository: repository.to_owned(), path: path.to_owned() }
    }

    /// Returns the directory that the whole copy is in.
    pub fn root(&self) -> PathBuf {
        self.loops.join(VENDOR).join(&self.repository)
    }

    /// Returns the file.
    pub fn file(&self) -> PathBuf {
        self.root().join(&self.path)
    }

    /// Returns another file of the same copy.
    #[must_use]
    pub fn sibling(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// Returns its path in the repository.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Writes a name so that it means in any file what it means in this one: a project has no say in what it takes over.
    pub fn within(&self, name: &str) -> String {
        format!("{self}{WITHIN}{name}")
    }

    /// Returns `OWNER/REPOSITORY`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns where the file may be that a name in this one means, the likeliest first: paths in the repository.
    pub fn places(&self, naming: Naming, name: &str) -> Result<Vec<String>, Explanation> {
        let shown = one_line(name, 100);
        if name.starts_with(COPY) || name.starts_with(REMOTE) {
            return Err(Explanation::new(format!(
                "a shared loop takes only files of its own repository, and not `{shown}`"
            )));
        }
        let directory = self.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let outside =
            || Explanation::new(format!("`{shown}` leads out of the repository `{}`", self.repository));
        if name.is_empty() || Path::new(name).is_absolute() {
            return Err(outside());
        }
        let beside = below(directory, name);
        let above = std::iter::successors(Some(directory), |directory| {
            let shorter = directory.rsplit_once('/').map_or("", |(above, _)| above);
            (!directory.is_empty()).then_some(shorter)
        });
        let in_loops = above.filter_map(|above| below(&below(above, DIRECTORY)?, name));
        let at_top = below("", name);
        let bare: Vec<String> = match naming {
            Naming::Parent => beside.into_iter().chain(in_loops).collect(),
            Naming::Library => beside.into_iter().collect(),
            Naming::Text => beside.into_iter().chain(at_top).collect(),
            // As in a project, where `.loops` comes before the directory of the caller.
            Naming::Loop => in_loops.chain(beside).chain(at_top).collect(),
        };
        if bare.is_empty() {
            return Err(outside());
        }
        let with_extensions = bare.into_iter().flat_map(|path| {
            let longer = EXTENSIONS.map(|extension| format!("{path}.{extension}"));
            std::iter::once(path).chain(longer)
        });
        Ok(with_extensions.collect())
    }

    /// Finds the file that a name in this one means.
    pub fn find(&self, naming: Naming, name: &str) -> Result<Option<Self>, Explanation> {
        let places = self.places(naming, name)?.into_iter().map(|path| self.sibling(&path));
        Ok(places.into_iter().find(|copy| copy.file().is_file()))
    }

    /// Compares the text of the file with the one that was added.
    pub fn check(&self, text: &str, copies: Copies) -> Result<(), CopyError> {
        let shown = self.shown();
        // `.loops` itself may be a link; one below it could bring in any file, and is refused even where edits are accepted.
        let home = resolved(&self.loops).join(VENDOR).join(&self.repository).join(&self.path);
        if resolved(&self.file()) != home {
            return Err(CopyError::Link(shown));
        }
        match copies {
            Copies::AsTheyAre => Ok(()),
            Copies::Locked => {
                let lock = LockFile::read(&self.loops)?.ok_or_else(|| CopyError::NoLock(shown_lock()))?;
                match lock.holds(&self.repository, &self.path, Sum::of(text.as_bytes())) {
                    Some(true) => Ok(()),
                    Some(false) => Err(CopyError::Edited(shown)),
                    None => Err(CopyError::Unknown(shown)),
                }
            }
        }
    }

    /// Returns its name for people.
    fn shown(&self) -> String {
        one_line(&format!("{DIRECTORY}/{VENDOR}/{}/{}", self.repository, self.path), 300)
    }
}

fn shown_lock() -> PathBuf {
    Path::new(DIRECTORY).join(LOCK)
}

/// Returns the path that a name means in a directory of a repository, unless it leads out of that.
fn below(directory: &str, name: &str) -> Option<String> {
    gitpath::folded(directory, name).filter(|path| !path.is_empty())
}

/// What the copies are: `.loops/lock.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    version: u32,
    /// The loops that were added, in the order of their names.
    pub loops: Vec<LockedLoop>,
}

impl Default for LockFile {
    fn default() -> Self {
        Self { version: VERSION, loops: Vec::new() }
    }
}

/// A loop that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedLoop {
    /// `github:` or `git:`, and its name.
    pub source: String,
    /// The server that it was fetched from; of a git repository, its address.
    pub server: String,
    /// `refs/tags/…`, `refs/heads/…`, or the commit.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that was copied.
    pub commit: String,
    /// When this commit was first seen.
    pub seen: Timestamp,
    /// Newer commits, and when they were first seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<String, Timestamp>,
    /// The files as they are in the repository.
    pub files: BTreeMap<String, Sum>,
    /// The files that have edits of this project, which were merged with those of the repository.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub merged: BTreeMap<String, Sum>,
}

impl LockedLoop {
    /// Returns its name.
    pub fn name(&self) -> Result<SharedName, SharedNameError> {
        let name = self.source.strip_prefix(REMOTE).or_else(|| self.source.strip_prefix(OF_GIT));
        SharedName::parse(name.ok_or(SharedNameError::Form)?)
    }

    /// Tells whether it comes from a git repository by its address, and not from GitHub's API.
    pub fn is_of_git(&self) -> bool {
        self.source.starts_with(OF_GIT)
    }

    /// Returns the digest that a file of it has to have here.
    pub fn digest(&self, path: &str) -> Option<Sum> {
        self.merged.get(path).or_else(|| self.files.get(path)).copied()
    }
}

impl LockFile {
    /// Reads the lock file of a `.loops`, if there is one.
    pub fn read(loops: &Path) -> Result<Option<Self>, CopyError> {
        let bad = |why: String| CopyError::BadLock { file: shown_lock(), why };
        match read::text(&loops.join(LOCK), MAX_LOCK) {
            Ok(text) => Self::parse(&text).map(Some).map_err(|why| bad(why.to_string())),
            Err(Unread::Absent) => Ok(None),
            Err(unread) => Err(bad(std::io::Error::from(unread).to_string())),
        }
    }

    /// Reads the text of a lock file, or says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Explanation> {
        let lock: Self = serde_json::from_str(text)
            .map_err(|error| Explanation::new(one_line(&error.to_string(), 200)))?;
        if lock.version != VERSION {
            return Err(Explanation::new(format!(
                "it has version {}, and this ll-loop reads {VERSION}",
                lock.version
            )));
        }
        match lock.odd() {
            Some(odd) => Err(Explanation::new(odd)),
            None => Ok(lock),
        }
    }

    /// Returns what cannot be in a lock file that ll-loop has written.
    fn odd(&self) -> Option<String> {
        for one in &self.loops {
            let shown = one_line(&one.source, 200);
            let name = match one.name() {
                Ok(name) => name,
                Err(why) => return Some(format!("`{shown}` names no loop: {why}")),
            };
            if !one.files.contains_key(name.path()) {
                return Some(format!("`{shown}` is not among its own files"));
            }
            // `update` writes to these paths and removes them, so none may lead out of the copy.
            let paths = one.files.keys().chain(one.merged.keys());
            if let Some(path) = paths.into_iter().find(|path| RelativePath::parse(path).is_err()) {
                return Some(format!("`{}` is not a path inside a repository", one_line(path, 200)));
            }
            if !is_commit(&one.commit) {
                return Some(format!("`{shown}` has no commit"));
            }
            if !is_reference(&one.reference) {
                return Some(format!("`{shown}` has no branch, tag or commit"));
            }
        }
        None
    }

    /// Writes it as it stands in the file.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).map_or_else(|error| error.to_string(), |text| text + "\n")
    }

    /// Tells whether a copied file has the digest that it has to have; nothing where no loop has such a file.
    pub fn holds(&self, repository: &str, path: &str, digest: Sum) -> Option<bool> {
        let of_repository =
            self.loops.iter().filter(|one| one.name().is_ok_and(|name| name.repository() == repository));
        // Several loops of a repository may have brought the same file.
        let wanted: Vec<Sum> = of_repository.filter_map(|one| one.digest(path)).collect();
        // Where two loops want different digests, no text can be right for both, and the file counts as edited.
        (!wanted.is_empty()).then(|| wanted.iter().all(|wanted| *wanted == digest))
    }
}

/// Tells whether a text is a whole ref, or the id of a commit.
fn is_reference(text: &str) -> bool {
    let name = text.strip_prefix("refs/heads/").or(text.strip_prefix("refs/tags/"));
    let is_odd = |c: char| c.is_control() || c.is_whitespace();
    is_commit(text)
        || name.is_some_and(|name| !name.is_empty() && !name.contains("..") && !name.contains(is_odd))
}

/// Returns the copy and the name in it that a text stands for, where a copy was made part of another file.
pub fn name_within(text: &str) -> Option<(&str, &str)> {
    text.starts_with(COPY).then(|| text.split_once(WITHIN))?
}

/// Tells whether a text is the whole id of a commit.
fn is_commit(text: &str) -> bool {
    // SHA-1 and SHA-256, the two formats of git.
    matches!(text.len(), 40 | 64) && text.bytes().all(crate::base::text::is_hex)
}

impl fmt::Display for CopiedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{COPY}{}/{}", self.repository, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_loop_has_an_owner_a_repository_and_a_path() {
        let name = SharedName::parse("octo/tools/.loops/tidy.yaml").unwrap();
        assert_eq!((name.repository(), name.path()), ("octo/tools", ".loops/tidy.yaml"));
        for bad in [
            "",
            "tidy",
            "octo/tools",
            "octo/tools/",
            "octo/tools/tidy",
            "octo//tidy.yaml",
            "../tools/tidy.yaml",
            "octo/tools/../tidy.yaml",
            "octo/tools/./tidy.yaml",
            "octo/tools//tidy.yaml",
            "octo/tools/.git/x.yaml",
            "octo/tools/.GIT/x.yaml",
            "octo/tools/a\nb.yaml",
            "octo/tools/a\u{202e}b.yaml",
            "octo/to ols/x.yaml",
            "octo/tools?/x.yaml",
            ".git/tools/x.yaml",
            "octo/tools/a\\b.yaml",
        ] {
            assert!(SharedName::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_copy_is_known_by_where_it_lies() {
        let of = |path: &str| CopiedFile::by_name(Path::new(path)).map(|copy| copy.to_string());
        assert_eq!(of("/p/.loops/vendor/o/r/a/b.yaml").as_deref(), Some("vendor:o/r/a/b.yaml"));
        // What is a copy in the other repository is a file of it here.
        let inner = "/p/.loops/vendor/o/r/.loops/vendor/x/y/z.yaml";
        assert_eq!(of(inner).as_deref(), Some("vendor:o/r/.loops/vendor/x/y/z.yaml"));
        for other in [
            "/p/.loops/a.yaml",
            "/p/vendor/o/r/a.yaml",
            "/p/.loops/vendor/o/a.yaml",
            "/p/.loops/x/vendor/o/r/a.yaml",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let copy = CopiedFile::by_name(Path::new("/p/.loops/vendor/o/r/a/b.yaml")).unwrap();
        assert_eq!(copy.file(), Path::new("/p/.loops/vendor/o/r/a/b.yaml"));
        assert_eq!(copy, CopiedFile::new(Path::new("/p/.loops"), "o/r", "a/b.yaml"));
    }

    #[test]
    fn a_name_in_a_copy_stays_in_it() {
        let copy = CopiedFile::new(Path::new("/p/.loops"), "o/r", ".loops/sub/tidy.yaml");
        let bare = |naming, name: &str| {
            let places = copy.places(naming, name)?;
            Ok::<_, String>(places.into_iter().step_by(3).collect::<Vec<_>>())
        };
        let expect = |expected: &[&str]| Ok(expected.iter().map(|path| (*path).to_owned()).collect());
        assert_eq!(bare(Naming::Library, "../lib.yaml"), expect(&[".loops/lib.yaml"]));
        assert_eq!(
            bare(Naming::Loop, "lint"),
            expect(&[
                ".loops/sub/.loops/lint",
                ".loops/.loops/lint",
                ".loops/lint",
                ".loops/sub/lint",
                "lint"
            ])
        );
        assert_eq!(bare(Naming::Text, "a.md"), expect(&[".loops/sub/a.md", "a.md"]));
        for (naming, name) in [
            (Naming::Library, "../../../lib.yaml"),
            (Naming::Parent, "/etc/passwd"),
            (Naming::Text, "../../../../x"),
            (Naming::Loop, "vendor:x/y/z.yaml"),
            (Naming::Parent, "github:x/y/z.yaml@v1"),
            (Naming::Parent, ""),
        ] {
            assert!(bare(naming, name).is_err(), "{name}");
        }
        assert!(copy.places(Naming::Parent, "lint").unwrap().contains(&".loops/lint.yml".to_owned()));
    }
}
