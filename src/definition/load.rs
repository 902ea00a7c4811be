//! Finds loop files and reads them: the only input of this layer.
//!
//! A loop is known by its path below `.loops`, whatever `name` it gives itself, so that no two loops share anything. The
//! name is looked up in `.loops` of the working directory and of its parents up to the root of the repository, and
//! never beyond: without a repository, only the working directory counts, for what lies above it may be a stranger's.
//! What is found nowhere there may be in the program itself.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use sha2::{Digest as _, Sha256};

use super::builtin::{self, Builtin};
use super::fragments;
pub use super::listing::DIRECTORY;
use super::listing::{self, EXTENSIONS, without_extension};
use super::resolve::{self, Fetch, Fetched, Reference, ReferenceKind, Resolved};
use super::schema::Loop;
use super::source_text::Sources;
use super::vendored::{COPY, CopiedFile, Copies, CopyError, Naming, REMOTE, SharedName, name_within};
use super::yaml::{self, MAX_SIZE};
use crate::base::decode::Decode as _;
use crate::base::diagnostic::{Diagnostics, FindingPlace, nearest};
use crate::base::explanation::Explanation;
use crate::base::name::{LoopName, NameError, StateName};
use crate::base::node::{FileId, Node};
use crate::base::path::DocPath;
use crate::base::text;
use crate::files::place::{self, resolved};
use crate::files::read::Unread;
use crate::files::unsaved::UnsavedTexts;

/// A loop file that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// The file.
    pub path: PathBuf,
    /// What the loop is known by; a file elsewhere than in `.loops` names itself.
    pub name: Option<LoopName>,
    /// The directory where its actions run.
    pub root: PathBuf,
    /// The file as people know it: relative to the working directory where it lies below.
    pub shown: String,
    /// Where it may lie, and everything that it takes over.
    pub reach: Reach,
    /// Whether copies of loops from other repositories have to be what was added.
    pub copies: Copies,
    /// What stands above the files on disk.
    pub unsaved: UnsavedTexts,
}

/// Where the files of a loop may lie, with all links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In these directories.
    Within(Vec<PathBuf>),
    /// Anywhere: a person allowed it.
    Anywhere,
}

impl Reach {
    /// Returns where the files of a loop may lie that was found by the name of a file: in the repository of that,
    /// or in the one where its actions run. Where there is no repository, the directories themselves count.
    fn of(path: &Path, root: &Path) -> Self {
        let runs_in = place::repository(root).unwrap_or(root);
        let mut homes = vec![resolved(runs_in)];
        if !place::named(path).starts_with(place::named(runs_in)) {
            homes.push(place::home(path, DIRECTORY));
        }
        Self::Within(homes)
    }

    /// Tells whether a path may be read, whose links are followed already.
    fn holds(&self, resolved: &Path) -> bool {
        match self {
            Self::Within(homes) => homes.iter().any(|home| resolved.starts_with(home)),
            Self::Anywhere => true,
        }
    }
}

impl Located {
    /// Gives the file the reach of another one, or all of it. A copy from another repository keeps its own.
    #[must_use]
    pub fn reaching(self, reach: Reach) -> Self {
        if CopiedFile::at(&self.path).is_some() { self } else { Self { reach, ..self } }
    }

    /// Says whether copies of loops from other repositories have to be what was added.
    #[must_use]
    pub fn taking(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// Says what stands above the files on disk.
    #[must_use]
    pub fn beneath(self, unsaved: UnsavedTexts) -> Self {
        Self { unsaved, ..self }
    }
}

/// A file that was found in a directory of loops. It need not be a loop.
#[derive(Debug)]
pub struct Listed {
    /// Its path in that directory, without the extension.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// Where it is, or why no loop can be named like that.
    pub located: Result<Located, LoadError>,
    /// The file that is found by this name instead of this one.
    pub hidden_by: Option<PathBuf>,
}

/// A loop file that was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says.
    pub definition: Loop,
    /// The same with places.
    pub tree: Node,
    /// The texts, to draw findings.
    pub sources: Sources,
    /// SHA-256 of the bytes of the file, or of the digests of all files, in hexadecimal digits.
    pub digest: String,
    /// Warnings and notes.
    pub findings: Diagnostics,
}

impl Loaded {
    /// Returns the line of each state in the file, to which reports link.
    pub fn lines_of_states(&self) -> IndexMap<StateName, u32> {
        let states = DocPath::root().key("states");
        let line = |name: &StateName| {
            let span =
                self.sources.locate(&FindingPlace::Key(states.key(name.as_str())), Some(&self.tree))?;
            let line = self.sources.get(span.file)?.position(span.range.start).line;
            u32::try_from(line).ok()
        };
        self.definition.states.keys().filter_map(|name| Some((name.clone(), line(name)?))).collect()
    }
}

/// A loop file that cannot be used, with all that is wrong with it.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// Everything that was found; at least one error.
    pub findings: Diagnostics,
    /// The texts, to draw findings.
    pub sources: Sources,
    /// The tree, unless the file is not YAML.
    pub tree: Option<Node>,
    /// What could be read, without the parts that could not: enough to look for more problems, never to run.
    pub remains: Option<Loop>,
    /// Whether it is a loop at all, and not a library of fragments or a file of something else.
    pub is_loop: bool,
}

/// A library of fragments that was read and checked by itself.
#[derive(Clone, Debug)]
pub struct FragmentLibrary {
    /// What is wrong with it, and warnings.
    pub findings: Diagnostics,
    /// The text, to draw findings.
    pub sources: Sources,
    /// What it says with places.
    pub tree: Node,
}

/// Why a loop cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No loop can have this name.
    #[error("there is no loop named `{asked}`: {source}")]
    BadName {
        /// What was asked for.
        asked: String,
        /// Why not.
        source: NameError,
    },
    /// No loop has this name.
    #[error("there is no loop named `{name}`")]
    UnknownName {
        /// The name.
        name: String,
        /// The name that is probably meant.
        nearest: Option<String>,
        /// The names of all loops.
        known: Vec<String>,
        /// The directories that were searched.
        searched: Vec<PathBuf>,
    },
    /// The file is something else.
    #[error("`{}` is not a loop file, whose name ends in `.yaml` or `.yml`", path.display())]
    NotALoop {
        /// The file.
        path: PathBuf,
    },
    /// The file does not exist.
    #[error("there is no file `{}`", path.display())]
    NoFile {
        /// The file.
        path: PathBuf,
        /// A file beside it that is probably meant.
        nearest: Option<PathBuf>,
    },
    /// The file lies where no file of the loop may lie.
    #[error("`{}` lies outside of the repository", path.display())]
    Outside {
        /// The file.
        path: PathBuf,
    },
    /// The path leads to a directory, a pipe, a device or a socket.
    #[error("`{}` is {what}, not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is, as a noun with its article.
        what: &'static str,
    },
    /// It is, or would have to be, a copy of a loop from another repository.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The file is larger than [`MAX_SIZE`].
    #[error("`{}` is larger than 1 MiB", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("`{}` is not UTF-8: line {line}, byte {column} is wrong", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// The line of the first wrong byte.
        line: usize,
        /// Its place in the line.
        column: usize,
    },
    /// The file cannot be read.
    #[error("`{}` cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file has fragments for loops, and is not a loop itself.
    #[error("`{}` is a library of fragments, not a loop", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// The library.
        library: Box<FragmentLibrary>,
    },
    /// The file was read, and it is not a loop.
    #[error("`{}` is not a valid loop", path.display())]
    Rejected {
        /// The file.
        path: PathBuf,
        /// All that is wrong with it.
        rejected: Box<Rejected>,
    },
}

impl LoadError {
    /// Adds the names of the loops that there are, and the one that is probably meant.
    #[must_use]
    pub fn suggesting<N: AsRef<[String]>>(self, names: impl FnOnce() -> N) -> Self {
        let Self::UnknownName { name, searched, .. } = self else { return self };
        let known = names();
        let asked = without_extension(&name).unwrap_or(&name);
        let nearest = meant(asked, known.as_ref()).map(ToOwned::to_owned);
        Self::UnknownName { known: known.as_ref().to_vec(), nearest, name, searched }
    }

    /// Returns what to do next, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::UnknownName { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Self::UnknownName { known, searched, .. } if known.is_empty() => {
                let places: Vec<_> = searched.iter().map(|path| format!("`{}`", path.display())).collect();
                Some(format!(
                    "no loops were found in {}; `ll-loop init` writes a first one",
                    places.join(", ")
                ))
            }
            Self::UnknownName { known, .. } => {
                // Hundreds of names would bury what the message says.
                let known: Vec<_> = known.iter().take(20).map(|name| format!("`{name}`")).collect();
                Some(format!("the loops are {}", known.join(", ")))
            }
            Self::NoFile { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{}`?", nearest.display()))
            }
            Self::NoFile { nearest: None, .. } => Some(String::from(
                "a loop in `.loops` goes by its name alone, and any other file by its path",
            )),
            Self::NotALoop { .. } => Some(String::from("`ll-loop list` names the loops that there are")),
            Self::Copy(error) => Some(error.help()),
            Self::NotUtf8 { .. } => Some(String::from("save the file as UTF-8")),
            Self::Library { .. } => Some(String::from("a loop takes it over with `import`")),
            Self::Outside { .. } => Some(String::from(
                "links are followed; move the file into the repository, or allow it with `--allow-outside`",
            )),
            Self::BadName { asked, .. } => {
                let plain = asked.trim_matches('/');
                let is_meant = plain != asked && LoopName::parse(plain).is_ok();
                Some(if is_meant {
                    format!("write `{plain}`")
                } else {
                    "the name of a loop is its path below `.loops`, such as `tidy` or `web/tidy`; any other file is named by \
                     its path with the extension"
                        .to_owned()
                })
            }
            Self::NotAFile { .. }
            | Self::TooLarge { .. }
            | Self::Unreadable { .. }
            | Self::Rejected { .. } => None,
        }
    }
}

/// Finds the loop file for what was asked: a path, a name, or the name of a file of the program.
pub fn find(asked: &str, cwd: &Path) -> Result<Located, LoadError> {
    let found = look_up(asked, cwd).or_else(|error| built_in_or(asked, cwd, error));
    found.map_err(|error| error.suggesting(|| names(cwd)))
}

/// Takes a file of the program where no other one has the name.
fn built_in_or(asked: &str, cwd: &Path, error: LoadError) -> Result<Located, LoadError> {
    match (&error, Builtin::named(asked)) {
        // Only where nothing was found: a file of the project that is broken must not be replaced by ours in silence.
        (LoadError::UnknownName { .. } | LoadError::NoFile { .. }, Some(file)) => Ok(built_in(file, cwd)),
        _ => Err(error),
    }
}

/// Makes a file of the program known like one of the project that the working directory is in.
fn built_in(file: Builtin, cwd: &Path) -> Located {
    let project = ancestors(cwd).into_iter().find(|root| root.join(DIRECTORY).is_dir());
    let root = project.unwrap_or_else(|| cwd.to_owned());
    let reach = Reach::of(&root, &root);
    let (shown, path) = (file.place().display().to_string(), file.place());
    let (copies, unsaved) = (Copies::default(), UnsavedTexts::default());
    Located { shown, path, name: None, root, reach, copies, unsaved }
}

/// Finds a file of a project, and leaves it to others which loop may be meant.
fn look_up(asked: &str, cwd: &Path) -> Result<Located, LoadError> {
    // States of a file of the program name loops by their places, which `keep_names` writes down.
    if let Some(file) = Builtin::at(Path::new(asked)) {
        return Ok(built_in(file, cwd));
    }
    if asked.starts_with(REMOTE) {
        return Err(CopyError::Remote(asked.to_owned()).into());
    }
    if asked.starts_with(COPY) {
        return Ok(by_copy(asked, cwd)?);
    }
    let path = cwd.join(asked);
    let name = without_extension(asked);
    // A bare word is the name of a loop, even where a file in the working directory is called the same.
    if is_path(asked) || (path.is_file() && (name.is_some() || asked.contains('/'))) {
        return at_path(asked, &path, cwd);
    }
    let name = match (LoopName::parse(name.unwrap_or(asked)), name) {
        // With its extension it can still be the path of a file, such as `-x.yaml`.
        (Err(_), Some(_)) => return at_path(asked, &path, cwd),
        (name, _) => name,
    };
    let name = name.map_err(|source| LoadError::BadName { asked: asked.to_owned(), source })?;
    let searched = ancestors(cwd);
    if let Some(located) = searched.iter().find_map(|root| by_name(&name, root, cwd)) {
        return Ok(located);
    }
    if asked.contains('/') && asked != name.as_str() {
        return at_path(asked, &path, cwd);
    }
    if asked.contains('.') && path.is_file() {
        return Err(LoadError::NotALoop { path: asked.into() });
    }
    Err(LoadError::UnknownName {
        name: asked.to_owned(),
        nearest: None,
        known: Vec::new(),
        searched: searched.iter().map(|root| root.join(DIRECTORY)).collect(),
    })
}

/// Finds the copy of a loop from another repository.
fn by_copy(asked: &str, cwd: &Path) -> Result<Located, CopyError> {
    let name = SharedName::parse(asked.strip_prefix(COPY).unwrap_or(asked))
        .map_err(|why| CopyError::BadName { name: asked.to_owned(), why })?;
    let copies = ancestors(cwd).into_iter().map(|root| {
        let copy = CopiedFile::new(&root.join(DIRECTORY), name.repository(), name.path());
        (root, copy.file())
    });
    // Not `is_file`: a pipe or a device in this place has to be refused as what it is, not passed over.
    let found = copies.into_iter().find(|(_, file)| file.exists() && !file.is_dir());
    let (root, file) = found.ok_or_else(|| CopyError::Absent(asked.to_owned()))?;
    let known = name_of(&file, &root).ok().flatten();
    Ok(located(file, known, root, cwd))
}

/// Finds the loop that a state of a copy runs: in the same copy, or else in the program.
fn find_in_copy(asked: &str, copy: &CopiedFile, root: &Path) -> Result<Located, LoadError> {
    if let Some(file) = Builtin::at(Path::new(asked)) {
        return Ok(built_in(file, root));
    }
    let absent = || {
        let (name, repository) = (asked.to_owned(), copy.repository().to_owned());
        LoadError::Copy(CopyError::NotInCopy { name, repository })
    };
    match copy.find(Naming::Loop, asked).map_err(|_| absent())? {
        Some(found) => {
            let file = found.file();
            let known = name_of(&file, root).ok().flatten();
            Ok(located(file, known, root.to_owned(), root))
        }
        None => Builtin::named(asked).map(|file| built_in(file, root)).ok_or_else(absent),
    }
}

/// Returns the names of all loops, and of what may be one.
pub fn names(cwd: &Path) -> Vec<String> {
    let below = ancestors(cwd).into_iter().flat_map(|root| listing::below(&root.join(DIRECTORY)));
    // The same name may stand in several of the directories.
    below.map(|(name, _)| name).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Finds the loop that a state of another one runs: as anybody finds it from `root`, or else beside the file of the
/// caller, or else in the program. What else could be meant is left to whoever asks.
pub fn find_beside(asked: &str, root: &Path, caller: &Path) -> Result<Located, LoadError> {
    // A file of a copy was merged into another loop, and the name was written down with the copy that it is from.
    if let Some((from, name)) = name_within(asked) {
        let from = by_copy(from, root)?;
        let copy = CopiedFile::at(&from.path).ok_or_else(|| CopyError::Absent(asked.to_owned()))?;
        return find_in_copy(name, &copy, root);
    }
    if let Some(copy) = CopiedFile::at(caller) {
        return find_in_copy(asked, &copy, root);
    }
    let named = look_up(asked, root);
    let (Err(LoadError::UnknownName { .. } | LoadError::NoFile { .. }), Some(directory)) =
        (&named, caller.parent())
    else {
        return named;
    };
    // A path such as `../x` would lead out of the directory of the caller, so only names are looked up there.
    if LoopName::parse(without_extension(asked).unwrap_or(asked)).is_err() {
        return named;
    }
    let beside = EXTENSIONS.iter().map(|extension| directory.join(format!("{asked}.{extension}")));
    let beside = std::iter::once(directory.join(asked)).chain(beside);
    let found = beside.into_iter().find(|path| path.is_file());
    let found = found.map_or(named, |path| at_path(asked, &path, root));
    found.or_else(|error| built_in_or(asked, root, error))
}

/// Returns the name that is probably meant by another one: the same in another directory, or the nearest of those that
/// have most of their beginning in common.
fn meant<'k>(name: &str, known: &'k [String]) -> Option<&'k str> {
    let last = |known: &'k str| known.rsplit('/').next().unwrap_or(known);
    let wanted = name.rsplit('/').next().unwrap_or(name);
    let elsewhere = known.iter().find(|known| last(known).eq_ignore_ascii_case(wanted));
    elsewhere.map(String::as_str).or_else(|| {
        let shared =
            |known: &&str| known.chars().zip(name.chars()).take_while(|(one, other)| one == other).count();
        let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
        // `nearest` compares the first two hundred only, so those that begin alike have to come first.
        known.sort_by_key(|known| std::cmp::Reverse(shared(known)));
        nearest(name, known)
    })
}

/// Tells whether a file lies, with its links followed, where the files of its project may lie.
pub fn is_within(path: &Path, cwd: &Path) -> bool {
    Reach::of(path, &root_of(path, cwd)).holds(&resolved(path))
}

/// Tells whether a text is a loop or a library: other YAML may lie in `.loops` as well. One that cannot be parsed counts as a loop, so
/// that its errors are not held back.
pub fn is_loop_or_library(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let tree = yaml::parse(text, FileId(0), &mut Diagnostics::default());
    tree.is_none_or(|tree| fragments::is_library(&tree) || is_loop(&tree))
}

fn is_loop(tree: &Node) -> bool {
    fragments::KEYS_OF_LOOPS.iter().any(|key| tree.get(key).is_some())
}

/// Tells whether the name of a file says that it is a loop file.
pub fn is_loop_file(path: &Path) -> bool {
    path.extension().is_some_and(|end| EXTENSIONS.iter().any(|extension| end == *extension))
}

/// Tells whether a text can only be a path.
fn is_path(asked: &str) -> bool {
    let begins =
        |with: &str| asked.strip_prefix(with).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    Path::new(asked).is_absolute() || begins(".") || begins("..") || asked.contains('\\')
}

/// Finds a loop in the `.loops` of a directory.
fn by_name(name: &LoopName, root: &Path, cwd: &Path) -> Option<Located> {
    let loops = root.join(DIRECTORY);
    // `.loops/runs.yaml` is a loop like any other; what is below the directory `runs` is not.
    let is_reserved = name.first_part() != name.as_str() && listing::is_reserved(name.first_part());
    // A run of a copy is known by this name, and told to be begun again by it.
    if is_reserved && CopiedFile::at(&loops.join(name.as_str())).is_none() {
        return None;
    }
    let files = EXTENSIONS.iter().map(|extension| loops.join(format!("{name}.{extension}")));
    let mut found = files.filter(|path| path.exists() && !path.is_dir() && is_spelled_so(path, &loops));
    Some(located(found.next()?, Some(name.clone()), root.to_owned(), cwd))
}

/// Tells whether a file that was found is written in these letters: where the file system takes upper for lower case, a
/// loop would otherwise have several names.
fn is_spelled_so(path: &Path, loops: &Path) -> bool {
    let below = |path: &Path, loops: &Path| Some(path.strip_prefix(loops).ok()?.to_str()?.to_owned());
    match (below(path, loops), below(&resolved(path), &resolved(loops))) {
        // Where more than the case differs, the file is a link with a target of another name, which is allowed.
        (Some(asked), Some(real)) => asked == real || asked.to_lowercase() != real.to_lowercase(),
        // It is a link, whose own name counts.
        _ => true,
    }
}

fn at_path(asked: &str, path: &Path, cwd: &Path) -> Result<Located, LoadError> {
    if let Err(source) = fs_err::metadata(path) {
        // A directory that may not be searched says nothing about whether the file is there.
        if source.kind() != io::ErrorKind::NotFound {
            return Err(LoadError::Unreadable { path: asked.into(), source });
        }
        return Err(LoadError::NoFile { path: asked.into(), nearest: neighbour(asked, path) });
    }
    unsaved(asked, path, cwd)
}

/// Finds the place of a file that need not have been saved yet.
///
/// # Errors
/// No loop can have its name.
pub fn unsaved(asked: &str, path: &Path, cwd: &Path) -> Result<Located, LoadError> {
    let root = root_of(path, cwd);
    let name =
        name_of(path, &root).map_err(|source| LoadError::BadName { asked: asked.to_owned(), source })?;
    Ok(located(path.to_owned(), name, root, cwd))
}

/// Returns the name of a file in the `.loops` of a directory.
fn name_of(path: &Path, root: &Path) -> Result<Option<LoopName>, NameError> {
    let loops = root.join(DIRECTORY);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Links on the way are followed and the last one is not: a link in `.loops` is a loop by its own name.
    let real = path.file_name().map(|name| resolved(parent).join(name));
    let named = place::named(path).strip_prefix(place::named(&loops)).map(Path::to_owned).ok();
    let below = named.or_else(|| Some(real?.strip_prefix(resolved(&loops)).ok()?.to_owned()));
    let Some(below) = below.as_deref().and_then(Path::to_str) else { return Ok(None) };
    // Its name means the other file.
    let is_hidden =
        path.extension().is_some_and(|found| found == "yml") && path.with_extension("yaml").is_file();
    if is_hidden { LoopName::parse(below).map(Some) } else { name_below(Path::new(below)) }
}

/// What the names of copies begin with.
const IN_COPIES: &str = "vendor/";

/// Returns the name of a file in `.loops` by its path from there.
pub fn name_below(below: &Path) -> Result<Option<LoopName>, NameError> {
    let Some(below) = below.to_str() else { return Ok(None) };
    let name = without_extension(below).unwrap_or(below);
    if !name.starts_with(IN_COPIES) {
        return LoopName::parse(name).map(Some);
    }
    // The authors of a copy name their directories as they like.
    let part = |part: &str| match part.strip_prefix(['.', '-', '$']) {
        Some(rest) => format!("_{rest}"),
        None => part.to_owned(),
    };
    LoopName::parse(&name.split('/').map(part).collect::<Vec<_>>().join("/")).map(Some)
}

/// Returns the loop file beside a missing one that has the most similar name.
fn neighbour(asked: &str, path: &Path) -> Option<PathBuf> {
    let files = listing::inside(path.parent()?);
    let near = nearest(path.file_stem()?.to_str()?, files.iter().map(|(name, _)| name.as_str()))?;
    let (_, file) = files.iter().find(|(name, _)| name == near)?;
    Some(Path::new(asked).with_file_name(file.file_name()?))
}

/// Returns the directory that a file in `.loops` belongs to, if the working directory lies in it.
fn root_of(path: &Path, cwd: &Path) -> PathBuf {
    let (path, here) = (resolved(path), resolved(cwd));
    path.ancestors()
        .filter(|directory| directory.file_name().is_some_and(|name| name == DIRECTORY))
        .filter_map(Path::parent)
        .find(|root| here.starts_with(root))
        .map_or_else(
            || cwd.to_owned(),
            |root| {
                if *root == here { cwd.to_owned() } else { root.to_owned() }
            },
        )
}

fn located(path: PathBuf, name: Option<LoopName>, root: PathBuf, cwd: &Path) -> Located {
    let shown = unmistakable(relative(&path, cwd).display().to_string());
    let reach = match CopiedFile::at(&path) {
        Some(copy) => Reach::Within(vec![resolved(&copy.root())]),
        None => Reach::of(&path, &root),
    };
    let (copies, unsaved) = (Copies::default(), UnsavedTexts::default());
    Located { path, name, root, shown, reach, copies, unsaved }
}

/// Returns a path as seen from the working directory, unless the way up is longer than the path itself is clear.
fn relative(path: &Path, cwd: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    let shared = |(up, above): (usize, &Path)| {
        let below = plain.strip_prefix(above).ok()?;
        Some(std::iter::repeat_n("..", up).collect::<PathBuf>().join(below))
    };
    // With up to three `..`; a longer way up says less to a reader than the whole path.
    cwd.ancestors().enumerate().take(4).find_map(shared).unwrap_or_else(|| plain.clone())
}

/// Returns the working directory and its parents up to the root of the repository it lies in: the places that may
/// have loops.
pub fn ancestors(cwd: &Path) -> Vec<PathBuf> {
    // A file as well as a directory: worktrees and submodules have a file of this name.
    match cwd.ancestors().position(|directory| directory.join(".git").exists()) {
        Some(root) => cwd.ancestors().take(root + 1).map(Path::to_owned).collect(),
        None => vec![cwd.to_owned()],
    }
}

/// Lists the files in the `.loops` of a directory and of those above it, in the order of their names. The nearest file
/// of a name comes first, and is found by it.
pub fn list(cwd: &Path) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    let mut first: HashMap<String, PathBuf> = HashMap::new();
    for root in ancestors(cwd) {
        for (name, path) in listing::below(&root.join(DIRECTORY)) {
            let found = match first.entry(name.clone()) {
                Entry::Occupied(found) => Some(found.get().clone()),
                Entry::Vacant(place) => {
                    place.insert(path.clone());
                    None
                }
            };
            let is_above = found.as_ref().is_some_and(|found| !found.starts_with(root.join(DIRECTORY)));
            if is_above {
                // A nearer directory has a loop of its own by this name.
                continue;
            }
            let hidden_by = found;
            all.push(listed(name, path, &root, cwd, hidden_by));
        }
    }
    // The sort is stable, so that of several files of one name the nearest stays the first.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Lists the files below a directory, wherever it is. One that has a `.loops` stands for the loops in that.
pub fn list_below(directory: &Path, cwd: &Path) -> Vec<Listed> {
    let loops = directory.join(DIRECTORY);
    let directory = if loops.is_dir() { &loops } else { directory };
    let files = listing::below(directory).into_iter();
    files
        .map(|(name, path)| {
            let root = root_of(&path, cwd);
            listed(name, path, &root, cwd, None)
        })
        .collect()
}

fn listed(name: String, path: PathBuf, root: &Path, cwd: &Path, hidden_by: Option<PathBuf>) -> Listed {
    let located = match name_of(&path, root) {
        Ok(known) => Ok(located(path.clone(), known, root.to_owned(), cwd)),
        Err(source) => Err(LoadError::BadName { asked: relative(&path, cwd).display().to_string(), source }),
    };
    Listed { name, path, located, hidden_by }
}

/// Reads a loop file and every file it takes over.
pub fn load(located: &Located) -> Result<Loaded, LoadError> {
    let (path, text) = match Builtin::at(&located.path) {
        Some(file) => (file.place(), file.text().to_owned()),
        None => file(located)?,
    };
    // First of all: decoded as a loop it would lack every key, which does not say what is wrong.
    if let Some(library) = library(&located.shown, &text) {
        return Err(LoadError::Library { path: located.shown.clone().into(), library: Box::new(library) });
    }
    let root = Sha256::digest(&text);
    // `shown` is relative to the directory of the command; what is taken over has to be shown from there, too.
    let here = located.path.ancestors().find(|above| above.join(&located.shown) == located.path);
    let here = here.unwrap_or(&located.root).to_owned();
    let mut fetch = |reference: &Reference<'_>| fetch(reference, located, &here);
    let mut loaded = decode_with(&located.shown, &text, &path, &mut fetch)
        .map_err(|rejected| LoadError::Rejected { path: located.path.clone(), rejected })?;
    loaded.digest = digest(&root, &loaded.sources);
    if let Some(name) = &located.name {
        loaded.definition.name = name.clone();
    }
    Ok(loaded)
}

/// Reads a library of fragments, if the file is one.
fn library(shown: &str, text: &str) -> Option<FragmentLibrary> {
    // Every loop comes here, and is parsed once more below: this keeps all but a few from it.
    if !text.contains("fragments") {
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sources = Sources::default();
    let file = sources.add(shown, text);
    let mut findings = Diagnostics::default();
    let tree = yaml::parse(text, file, &mut findings).filter(fragments::is_library)?;
    findings.extend(fragments::check_library(&tree, &sources));
    Some(FragmentLibrary { findings, sources, tree })
}

/// Reads the loop file itself, and returns where it is with all links followed.
fn file(located: &Located) -> Result<(PathBuf, String), LoadError> {
    if let Some(copy) = CopiedFile::at(&located.path) {
        return Ok((copy.file(), copied(&copy, located)?));
    }
    let path = resolved(&located.path);
    // Before it is opened: neither the content nor an error may tell what lies outside.
    if !located.reach.holds(&path) {
        return Err(LoadError::Outside { path: located.shown.clone().into() });
    }
    Ok((path, read(&located.path, &located.shown, &located.unsaved)?))
}

/// Returns the digest of a definition: of the bytes of its file, or of the digests of all its files in the order in
/// which they are asked for.
fn digest(root: &[u8], sources: &Sources) -> String {
    // The first source is the loop file, whose digest was made of all its bytes, a byte order mark included.
    let mut others = sources.iter().skip(1).peekable();
    if others.peek().is_none() {
        return text::hex(root);
    }
    let mut all = Sha256::new();
    all.update(root);
    others.for_each(|source| all.update(Sha256::digest(source.text())));
    text::hex(&all.finalize())
}

/// Reads a file that another one names: relative to that one, a loop also by its name, or else in the program. What
/// a file of the program names is looked up there alone.
fn fetch(reference: &Reference<'_>, located: &Located, cwd: &Path) -> Result<Fetched, Explanation> {
    let taken = |file: Builtin| Fetched {
        path: file.place(),
        shown: file.place().display().to_string(),
        text: file.text().to_owned(),
    };
    if let Some(file) = Builtin::at(reference.from) {
        return file
            .beside(reference.name)
            .map(taken)
            .ok_or_else(|| Explanation::new(format!("there is no `{}`", reference.name)));
    }
    let root = &located.root;
    if let Some(copy) = CopiedFile::at(reference.from) {
        return fetch_in_copy(reference, &copy, located, cwd).map(|file| match file {
            InCopy::Copied(fetched) => fetched,
            InCopy::OfProgram(file) => taken(file),
        });
    }
    if reference.name.starts_with(REMOTE) {
        return Err(Explanation::new(with_help(&CopyError::Remote(reference.name.to_owned()))));
    }
    if reference.name.contains("://") {
        return Err(Explanation::new(
            "it is an address, and a loop file names only what is here; copy the loop once with \
             `ll-loop add REPOSITORY//PATH.yaml@REF`, and name the copy: `vendor:OWNER/REPOSITORY/PATH.yaml`",
        ));
    }
    if reference.name.starts_with(COPY) && reference.kind != ReferenceKind::Text {
        let copy = by_copy(reference.name, root).map_err(|error| Explanation::new(with_help(&error)))?;
        let copy = CopiedFile::at(&copy.path)
            .ok_or_else(|| Explanation::new(format!("there is no `{}`", reference.name)))?;
        return fetched(&copy, located, cwd);
    }
    let name = Path::new(reference.name);
    let beside = reference.from.parent().unwrap_or(Path::new(".")).join(name);
    let named = ancestors(root).into_iter().map(|root| root.join(DIRECTORY).join(name));
    let places: Vec<PathBuf> = match reference.kind {
        // Joined to a directory, an empty name would be that directory.
        _ if name.as_os_str().is_empty() => Vec::new(),
        ReferenceKind::Parent => std::iter::once(beside).chain(named).collect(),
        ReferenceKind::Library => vec![beside],
        ReferenceKind::Text => vec![beside, root.join(name)],
    };
    let with = |place: &Path, extension: &str| PathBuf::from(format!("{}.{extension}", place.display()));
    let mut candidates = places.iter().flat_map(|place| {
        std::iter::once(place.clone()).chain(EXTENSIONS.map(|extension| with(place, extension)))
    });
    let found = candidates.find(|path| path.exists() && !path.is_dir());
    // What is missing is named by the place where it is looked for first.
    let Some(path) = found.as_ref().or(places.first()) else {
        return Err(Explanation::new("it has no name"));
    };
    if reference.kind == ReferenceKind::Parent
        && without_extension(reference.name).is_none()
        && !is_path(reference.name)
    {
        LoopName::parse(reference.name)?;
    }
    let real = resolved(path);
    // The message must not reveal whether the file exists.
    if !located.reach.holds(&real) {
        let path = shown(path, cwd);
        return Err(Explanation::new(format!(
            "`{path}` lies outside of the repository, which only `--allow-outside` allows"
        )));
    }
    if reference.kind == ReferenceKind::Parent && leads_out(reference, path, root) {
        return Err(Explanation::new(
            "a name never leads out of `.loops`; write the path of the file with its extension",
        ));
    }
    let Some(path) = found else {
        let file = Builtin::named(reference.name).filter(|_| reference.kind != ReferenceKind::Text);
        return file
            .map(taken)
            .ok_or_else(|| Explanation::new(format!("there is no `{}`", shown(path, cwd))));
    };
    // A path can lead to a copy as well as its name does, and must not get around the lock file.
    if let Some(copy) = CopiedFile::at(&path) {
        return fetched(&copy, located, cwd);
    }
    let shown = shown(&path, cwd);
    let text = read(&path, &shown, &located.unsaved)?;
    Ok(Fetched { shown, path: real, text })
}

/// What a file of a copy names.
enum InCopy {
    Copied(Fetched),
    OfProgram(Builtin),
}

/// Reads a file that one of a copy names: another one of the same copy, or one of the program.
fn fetch_in_copy(
    reference: &Reference<'_>,
    copy: &CopiedFile,
    located: &Located,
    cwd: &Path,
) -> Result<InCopy, Explanation> {
    if let Some(found) = copy.find(naming(reference.kind), reference.name)? {
        return fetched(&found, located, cwd).map(InCopy::Copied);
    }
    let file = Builtin::named(reference.name).filter(|_| reference.kind != ReferenceKind::Text);
    file.map(InCopy::OfProgram).ok_or_else(|| {
        let (name, repository) = (reference.name.to_owned(), copy.repository().to_owned());
        CopyError::NotInCopy { name, repository }.into()
    })
}

/// Returns what a name of this kind is in a copy.
pub(crate) fn naming(kind: ReferenceKind) -> Naming {
    match kind {
        ReferenceKind::Parent => Naming::Parent,
        ReferenceKind::Library => Naming::Library,
        ReferenceKind::Text => Naming::Text,
    }
}

/// Reads a file of a copy for the file that names it.
fn fetched(copy: &CopiedFile, located: &Located, cwd: &Path) -> Result<Fetched, Explanation> {
    let text = copied(copy, located).map_err(|error| match error.help() {
        Some(help) => Explanation::new(format!("{error}; {help}")),
        None => error.into(),
    })?;
    let path = copy.file();
    Ok(Fetched { shown: shown(&path, cwd), path, text })
}

/// Reads a file of a copy for a loop.
fn copied(copy: &CopiedFile, located: &Located) -> Result<String, LoadError> {
    let file = copy.file();
    let text = read(&file, &file.to_string_lossy(), &located.unsaved)?;
    // What is compared is the text that will be used, so nothing can be put in its place in between.
    copy.check(&text, located.copies)?;
    Ok(text)
}

/// Says why a copy cannot be used and what to do about it, where only one text is shown.
fn with_help(error: &CopyError) -> String {
    format!("{error}; {}", error.help())
}

/// Tells whether what a loop in `.loops` inherits from is named, and not given by its path, and yet lies elsewhere.
fn leads_out(reference: &Reference<'_>, path: &Path, root: &Path) -> bool {
    let loops = root.join(DIRECTORY);
    let is_below = |path: &Path| {
        // By its name or with its links followed, since `.loops` itself may be a link.
        place::named(path).starts_with(place::named(&loops)) || resolved(path).starts_with(resolved(&loops))
    };
    without_extension(reference.name).is_none() && is_below(reference.from) && !is_below(path)
}

fn shown(path: &Path, cwd: &Path) -> String {
    let relative_to = |path: &Path| relative(path, cwd).display().to_string();
    unmistakable(match path.strip_prefix(resolved(cwd)) {
        Ok(below) => below.display().to_string(),
        Err(_) => relative_to(path),
    })
}

/// Keeps the name of a file from looking like one of the program.
fn unmistakable(shown: String) -> String {
    if builtin::is_builtin(&shown) { format!("./{shown}") } else { shown }
}

/// Decodes the text of a loop file that takes over no other file; `shown` is its name in findings.
pub fn decode(shown: &str, text: &str, digest: String) -> Result<Loaded, Box<Rejected>> {
    let mut fetch = |_: &Reference<'_>| Err(Explanation::new("no other file can be read here"));
    let mut loaded = decode_with(shown, text, Path::new(shown), &mut fetch)?;
    loaded.digest = digest;
    Ok(loaded)
}

/// Decodes the text of a loop file; the files that it takes over are handed over by `fetch`.
pub(crate) fn decode_with(
    shown: &str,
    text: &str,
    path: &Path,
    fetch: &mut Fetch<'_>,
) -> Result<Loaded, Box<Rejected>> {
    // Editors on Windows write a byte order mark, which would become a part of the first key.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut sources = Sources::default();
    let file = sources.add(shown, text);
    let mut findings = Diagnostics::default();
    let tree = resolve::parse(text, file, path, &mut findings);
    let is_loop =
        // A file that cannot be parsed counts as a loop, so that its errors are not held back.
        tree.as_ref().is_none_or(is_loop);
    let resolved = tree.map(|tree| resolve::resolve(tree, path, &mut sources, fetch, &mut findings));
    let definition = resolved.as_ref().and_then(|resolved| decode_tree(resolved, &mut findings));
    // Only what comes from elsewhere can be met twice, and to compare findings their places have to be looked up.
    if let Some(resolved) = resolved.as_ref().filter(|resolved| resolved.composed) {
        findings = once_each(findings, &sources, &resolved.tree);
    }
    let tree = resolved.map(|resolved| resolved.tree);
    match (definition, tree) {
        (Some(definition), Some(tree)) if !findings.has_errors() => {
            Ok(Loaded { definition, tree, sources, digest: String::new(), findings })
        }
        (remains, tree) => Err(Box::new(Rejected { findings, sources, tree, remains, is_loop })),
    }
}

/// Decodes a loop. What an incomplete one lacks is not its fault; that it is incomplete was said already.
fn decode_tree(resolved: &Resolved, findings: &mut Diagnostics) -> Option<Loop> {
    if resolved.complete {
        return Loop::decode(&resolved.tree, &DocPath::root(), findings);
    }
    let mut found = Diagnostics::default();
    let remains = Loop::decode(&resolved.tree, &DocPath::root(), &mut found);
    findings.extend(
        found.filtered(|finding| finding.code != "missing-key" || finding.place != FindingPlace::File),
    );
    remains
}

/// What several states take over is wrong once, however many they are.
fn once_each(findings: Diagnostics, sources: &Sources, tree: &Node) -> Diagnostics {
    let mut seen = HashSet::new();
    findings.filtered(|finding| {
        let span = sources.locate(&finding.place, Some(tree));
        let span = span.map(|span| (span.file, span.range.start, span.range.end));
        seen.insert((finding.code, finding.message.clone(), span))
    })
}

/// Reads a regular file of bounded size, which people know by the name that is shown.
fn read(path: &Path, shown: &str, unsaved: &UnsavedTexts) -> Result<String, LoadError> {
    unsaved.text(path, MAX_SIZE as u64).map_err(|unread| {
        let path = PathBuf::from(shown);
        match unread {
            Unread::Absent => LoadError::NoFile { path, nearest: None },
            Unread::NotAFile(what) => LoadError::NotAFile { path, what },
            Unread::TooLarge { .. } => LoadError::TooLarge { path },
            Unread::NotUtf8 { line, column } => LoadError::NotUtf8 { path, line, column },
            Unread::Io(source) => LoadError::Unreadable { path, source },
        }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::base::diagnostic::Severity;
    use crate::base::name::StateName;
    use crate::definition::early_values::Early;
    use crate::definition::render;
    use crate::definition::schema::{Count, OnHandoff, Shell, Target};

    /// Loops as people write them, in both dialects.
    const GOOD: &[&str] = &[
        "paradigm: goal\ngoal: Tidy\ntools:\n  - make check\n  - {tool: make fix, timeout: 5}\nmax_iterations: 3\n",
        "paradigm: convergence\nname: c\ncheck: count\ntoward: 0\nusing: fix\ntolerance: 1.5\n",
        "paradigm: invariants\nname: i\nconstraints:\n  - name: tests-pass\n    check: pytest\n    fix: repair\n  - {name: lint, check: ruff, fix: ruff --fix}\nmaintain: true\n",
        "paradigm: imperative\nname: i\nsteps: [a, b]\ncondition: {type: exit_code, target: 0}\nbackoff: 2\n",
        "paradigm: imperative\nname: i\nsteps: [a, b]\nuntil: {check: c, evaluator: {type: output_contains, pattern: ok}}\n",
        "name: f\nfragments:\n  run:\n    action: echo ${param.what}\n    on_error: done\n    parameters: {what: {type: string, required: true}, n: {type: integer, default: 3}}\n\
         flow: [a, 'b?done:a', done]\nstate_defs:\n  a: {fragment: run, with: {what: '${context.x}'}}\n  b: {action: test}\ncontext: {x: 1}\ncircuit: {repeated_failure: {window: 3}}\n",
        "name: m\ninitial: measure\ncontext: {target: 0}\nstates:\n  measure: {action: m, on_target: done, on_progress: apply, on_stall: done}\n  apply: {action: a, next: judge}\n  judge: {check_condition: {type: exit_code, source: apply, target: 0}, on_met: measure, on_unmet: done}\n  done: {terminal: true}\n",
        "name: main\ninitial: a\nstates:\n  a: {action: 'touch ran', next: done}\n  done: {terminal: true}\n",
        "name: main\ndescription: d\ninitial: a\ncategory: code-quality\nlabels: [x, y]\nscope: [src/]\nmax_iterations: 5\n\
         backoff: 0.1\ntimeout: 100\ndefault_timeout: 20\nmaintain: false\non_handoff: pause\ncontext: {k: v}\n\
         commands:\n  - {cmd: 'll-loop run main', comment: run it}\n\
         config:\n  handoff_threshold: 40\n  automation: {max_continuations: 3}\n\
         llm: {model: m, max_tokens: 10, timeout: 5}\nstates:\n  a: {action: 'touch ran', next: done}\n  done: {terminal: true}\n",
        "# leading comment\n---\nname: main   # the name\ninitial: a\nstates:\n  # a state\n  a: {action: 'true', next: done}\n  done: {terminal: true}\n...\n",
        "name: main\ninitial: prüfen\nstates:\n  prüfen: {action: \"echo 'žluťoučký 🐎'\", capture: výstup, next: ukázat}\n  ukázat: {action: \"printf '%s' '${captured.výstup.output}'\", next: fertig}\n  fertig: {terminal: true}\n",
        "name: main\ninitial: a\nstates:\n  a:\n    action: |\n      # a comment line\n      for i in 1 2 3; do\n        echo \"line $i\"\n      done > out.txt\n\n      exit 1\n    on_yes: good\n    on_no: bad\n  good: {terminal: true}\n  bad: {terminal: true, outcome: failure}\n",
        "name: main\ninitial: \"1\"\nstates:\n  \"1\": {action: \"true\", next: \"2\"}\n  2: {action: true, next: done}\n  done: {terminal: true}\n",
        "name: main\nparadigm: fsm\ninitial: check\nstates:\n  check: {action: \"test -f flag\", on_fail: fix, on_pass: done}\n  fix: {action: \"touch flag\", next: check, max_retries: 3, on_retry_exhausted: done, retryable_exit_codes: [1, 75]}\n  done: {terminal: true}\n",
        "name: n\ninitial: below\nparameters: {p: {type: integer, required: true, description: d}, q: {type: enum, values: [a, b], default: a}}\nstates:\n  below:\n    action: echo 4\n    condition: {type: output_numeric, target: \"${context.limit}\"}\n    route: {true: good, false: $current, _: bad, _error: bad}\n  good: {terminal: true}\n  bad: {terminal: true, failure: true}\n",
        "name: n\ninitial: a\nshell: [bash, -euc]\nenv: {A: 1, B: \"${env.HOME:-x}\"}\nmaintain: true\nmaintain_delay: 0\nidle_timeout: 5m\nthrottle: 3\nstates:\n  a: &a\n    action: make\n    timeout: 1h30m\n    env: {C: c}\n    on_yes: done\n    on_timeout: done\n    on_flaky: $current\n  b:\n    <<: *a\n    shell: sh\n    cwd: sub\n    append_to_messages: \"${state.name}\"\n  done:\n    terminal: true\n    on_maintain: b\n",
    ];

    fn read(text: &str) -> Result<Loaded, Box<Rejected>> {
        decode("loop.yaml", text, String::new())
    }

    /// Shows every finding as `line:column code: message`.
    fn findings(text: &str) -> Vec<String> {
        let (findings, sources, tree) = match read(text) {
            Ok(loaded) => (loaded.findings, loaded.sources, Some(loaded.tree)),
            Err(rejected) => (rejected.findings, rejected.sources, rejected.tree),
        };
        let shown = |object: &serde_json::Value| {
            let word = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            format!("{}:{} {}: {}", object["line"], object["column"], word("code"), word("message"))
        };
        render::to_json(&findings, &sources, tree.as_ref()).iter().map(shown).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(findings(text), expected, "{text}");
    }

    /// A loop with one more line at the top and one more key in its state.
    fn with(top: &str, state: &str) -> String {
        format!(
            "name: main\ninitial: a\n{top}\nstates:\n  a: {{action: make, next: done{state}}}\n  done: {{terminal: true}}\n"
        )
    }

    #[test]
    fn good_files_load() {
        for text in GOOD.iter().copied() {
            let loaded = read(text).unwrap_or_else(|rejected| {
                panic!(
                    "{}",
                    render::to_text(&rejected.findings, &rejected.sources, rejected.tree.as_ref(), false)
                )
            });
            assert_eq!(loaded.findings.count(Severity::Warning), 0, "{text}");
        }
    }

    #[test]
    fn a_file_becomes_what_it_says() {
        let loaded = read(GOOD[GOOD.len() - 1]).unwrap();
        let definition = loaded.definition;
        assert_eq!(definition.shell, Shell::Argv(vec!["bash".into(), "-euc".into()]));
        assert_eq!(definition.default_idle_timeout, Some(Duration::from_mins(5)));
        assert_eq!(definition.max_iterations, Early::of(Count::of(50)));
        assert_eq!((definition.maintain, definition.on_handoff), (true, OnHandoff::Pause));
        let names: Vec<_> = definition.states.keys().map(StateName::as_str).collect();
        assert_eq!(names, ["a", "b", "done"]);
        let b = &definition.states[&StateName::parse("b").unwrap()];
        assert_eq!(b.action.as_ref().map(crate::base::template::Template::source), Some("make"));
        assert_eq!(b.shell, Some(Shell::Sh));
        assert_eq!(b.on["flaky"], Early::of(Target::Current));
        assert_eq!(b.on["yes"], Early::of(Target::State(StateName::parse("done").unwrap())));
    }

    #[test]
    fn values_that_cannot_be_meant_name_their_key() {
        check(&with("timeout: 0", ""), &["3:10 duration: `timeout` must be more than zero"]);
        check(&with("timeout: -5", ""), &["3:10 duration: `timeout` must be more than zero"]);
        check(
            &with("timeout: soon", ""),
            &[
                "3:10 duration: `timeout` must be a number of seconds or a duration such as `5m`, not the text `soon`",
            ],
        );
        check(
            &with("max_iterations: 0", ""),
            &["3:17 range: `max_iterations` must be a whole number from 1 to 1,000,000,000, not 0"],
        );
        check(
            &with("max_iterations: -3", ""),
            &["3:17 range: `max_iterations` must be a whole number from 1 to 1,000,000,000, not -3"],
        );
        check(
            &with("max_iterations: 2.5", ""),
            &["3:17 wrong-type: `max_iterations` must be a whole number from 1 to 1,000,000,000, not `2.5`"],
        );
        check(
            &with("max_iterations: many", ""),
            &[
                "3:17 wrong-type: `max_iterations` must be a whole number from 1 to 1,000,000,000, not the text `many`",
            ],
        );
        check(
            &with("max_steps: 1000000001", ""),
            &["3:12 range: `max_steps` must be a whole number from 1 to 1,000,000,000, not 1000000001"],
        );
        check(&with("on_handoff: explode", ""), &["3:13 unknown-word: `on_handoff` cannot be `explode`"]);
        check(
            &with("parameters: {p: {type: colour}}", ""),
            &["3:24 unknown-word: `type` cannot be `colour`"],
        );
        check(
            &with("maintain: yes", ""),
            &["3:11 wrong-type: `maintain` must be `true` or `false`, not the text `yes`"],
        );
        check(
            &with("shell: zsh", ""),
            &["3:8 wrong-type: `shell` must be `bash`, `sh` or a list of words, not the text `zsh`"],
        );
        check(&with("", ", timeout: 0"), &["5:42 duration: `timeout` must be more than zero"]);
    }

    #[test]
    fn keys_that_are_no_keys_are_told_apart() {
        check(&with("max_iteration: 3", ""), &["3:1 unknown-key: unknown key `max_iteration`"]);
        check(&with("budget: {cost: 3}", ""), &["3:10 unknown-key: unknown key `cost`"]);
        check(&with("", ", agnt: x"), &["5:33 unknown-key: unknown key `agnt`"]);
        check(
            &with("singleton: true", ", shared_ok: 1"),
            &[
                "3:1 no-effect: `singleton` has no effect here",
                "5:33 no-effect: `shared_ok` has no effect here",
            ],
        );
        check(
            &with("sandbox: null", ", sandbox: {mode: ~}"),
            &[
                "3:1 empty-promise: `sandbox` is empty, and protects nothing",
                "5:33 empty-promise: something in `sandbox` is empty, and protects nothing",
            ],
        );
        check(
            &with("idle_timeout: 1\ndefault_idle_timeout: 2", ""),
            &["4:1 duplicate-key: `idle_timeout` and `default_idle_timeout` mean the same"],
        );
        check(
            "name: m\ninitial: a\nstates: [a, b]\n",
            &["3:9 wrong-type: `states` must be a mapping, not a list"],
        );
        check("name: m\ninitial: a\n", &["1:1 missing-key: the key `states` is missing"]);
        check("paradigm: goal\ngoal: x\ntools: [a]\n", &[]);
        check("paradigm: agents\nname: a\ngoal: x\n", &[]);
        check("paradigm: gaol\ngoal: x\n", &["1:11 unknown-word: `paradigm` cannot be `gaol`"]);
    }

    #[test]
    fn an_evaluator_is_decoded_by_its_type() {
        check(&with("", ", evaluate: {type: exit_cod}"), &["5:50 unknown-word: `type` cannot be `exit_cod`"]);
        check(
            &with("", ", evaluate: {target: 1}"),
            &["5:33 missing-key: the key `type` is missing in `evaluate`"],
        );
        check(&with("", ", evaluate: {type: exit_code, x: 1}"), &["5:61 unknown-key: unknown key `x`"]);
        check(
            &with("", ", evaluate: {type: output_numeric}"),
            &["5:33 missing-key: the key `target` is missing in `evaluate`"],
        );
        check(
            &with("", ", evaluate: {type: output_numeric, target: x}"),
            &["5:74 wrong-type: `target` must be a number, not the text `x`"],
        );
        check(
            &with("", ", evaluate: {type: output_numeric, target: '${context.x'}"),
            &["5:75 template: `${` is not closed"],
        );
        check(&with("", ", on_yes:"), &["5:33 empty-value: `on_yes` has no value"]);
    }

    #[test]
    fn templates_are_marked_where_they_are_wrong() {
        let text = "name: main\ninitial: a\nstates:\n  a:\n    action: |\n      echo one\n      echo ${contxt.a} ${context.b}\n    next: done\n  done: {terminal: true}\n";
        check(text, &["7:12 template: unknown namespace `contxt`"]);
    }

    /// Every report must be about a place that exists.
    fn reports_are_within(text: &str) {
        let count = text.lines().count().max(1) as u64;
        let (findings, sources, tree) = match read(text) {
            Ok(loaded) => (loaded.findings, loaded.sources, Some(loaded.tree)),
            Err(rejected) => {
                assert!(rejected.findings.has_errors());
                (rejected.findings, rejected.sources, rejected.tree)
            }
        };
        for object in render::to_json(&findings, &sources, tree.as_ref()) {
            let line = object["line"].as_u64().unwrap();
            assert!((1..=count).contains(&line), "{object} in {text}");
            assert!(object["end_line"].as_u64().unwrap() <= count, "{object} in {text}");
        }
        drop(render::to_text(&findings, &sources, tree.as_ref(), true));
    }

    /// The lines of a text with one of them changed, cut out or doubled.
    fn damaged(text: &str, at: usize, change: impl Fn(&str) -> String) -> String {
        let lines = text.split_inclusive('\n').enumerate();
        lines.map(|(index, line)| if index == at { change(line) } else { line.to_owned() }).collect()
    }

    #[test]
    fn damage_is_reported_and_never_fatal() {
        for text in GOOD.iter().copied() {
            for at in 0..text.lines().count() {
                reports_are_within(&damaged(text, at, |_| String::new()));
                reports_are_within(&damaged(text, at, |line| line.repeat(2)));
                reports_are_within(&damaged(text, at, |line| line.replacen(':', "x:", 1)));
                reports_are_within(&damaged(text, at, |line| line.replacen(':', "", 1)));
                for value in [
                    "", "[1, 2]", "{a: b}", "-1", "1.5", "true", "~", "'text'", "|", "&x *x", "\"", "${x.y}",
                    "- a",
                ] {
                    let changed = |line: &str| match line.split_once(':') {
                        Some((key, _)) => format!("{key}: {value}\n"),
                        None => format!("{value}\n"),
                    };
                    reports_are_within(&damaged(text, at, changed));
                }
            }
            for (cut, _) in text.char_indices().step_by(3) {
                reports_are_within(&text[..cut]);
                reports_are_within(&text[cut..]);
            }
        }
    }

    proptest! {
        #[test]
        fn no_mixture_of_good_files_is_fatal(
            parts in prop::collection::vec((0..GOOD.len(), 0_usize..30, 1_usize..6), 1..6),
        ) {
            let mixed: String = parts
                .iter()
                .flat_map(|(file, from, count)| GOOD[*file].split_inclusive('\n').skip(*from).take(*count))
                .collect();
            reports_are_within(&mixed);
        }
    }

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        for path in [".git", ".loops/nested", ".loops/dir.yaml", "sub/deep", "sub/.loops", "outside"] {
            fs_err::create_dir_all(at(path)).unwrap();
        }
        for path in [
            ".loops/fix.yaml",
            ".loops/fix.yml",
            ".loops/check.yml",
            ".loops/nested/in.yaml",
            "sub/.loops/check.yaml",
            "one.yaml",
        ] {
            fs_err::write(at(path), GOOD[0]).unwrap();
        }
        directory
    }

    /// Shows what is found as `file, run in root`, or the error and its advice.
    fn found(directory: &Path, cwd: &str, asked: &str) -> String {
        let base = directory.display().to_string();
        let cwd = if cwd == "." { directory.to_owned() } else { directory.join(cwd) };
        match find(asked, &cwd) {
            Ok(located) => {
                let path =
                    located.path.strip_prefix(directory).unwrap_or(&located.path).display().to_string();
                let root = located.root.strip_prefix(directory).unwrap().display().to_string();
                format!("{path}, run in {root:?}, shown as {}", located.shown.replace(&base, "BASE"))
            }
            Err(error) => format!("{error}; {}", error.help().unwrap_or_default()).replace(&base, "BASE"),
        }
    }

    #[test]
    fn a_name_is_looked_up_to_the_root_of_the_repository() {
        let directory = directory();
        let check = |cwd: &str, asked: &str, expected: &str| {
            assert_eq!(found(directory.path(), cwd, asked), expected);
        };
        check(".", "fix", ".loops/fix.yaml, run in \"\", shown as .loops/fix.yaml");
        check(".", "fix.yaml", ".loops/fix.yaml, run in \"\", shown as .loops/fix.yaml");
        check("sub/deep", "fix", ".loops/fix.yaml, run in \"\", shown as ../../.loops/fix.yaml");
        check("sub/deep", "check", "sub/.loops/check.yaml, run in \"sub\", shown as ../.loops/check.yaml");
        check(".", "check", ".loops/check.yml, run in \"\", shown as .loops/check.yml");
        check(".", "fixx", "there is no loop named `fixx`; did you mean `fix`?");
        check(".", "zzz", "there is no loop named `zzz`; the loops are `check`, `fix`, `nested/in`");
        check(".", "dir", "there is no loop named `dir`; the loops are `check`, `fix`, `nested/in`");
        check(".", "FIX", "there is no loop named `FIX`; did you mean `fix`?");
        check(".", "in", "there is no loop named `in`; did you mean `nested/in`?");
        fs_err::remove_dir(directory.path().join(".git")).unwrap();
        check(
            "outside",
            "fix",
            "there is no loop named `fix`; no loops were found in `BASE/outside/.loops`; `ll-loop init` writes a first one",
        );
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        let directory = directory();
        let check = |cwd: &str, asked: &str, expected: &str| {
            assert_eq!(found(directory.path(), cwd, asked), expected);
        };
        check(".", "one.yaml", "one.yaml, run in \"\", shown as one.yaml");
        check(".", "./one.yaml", "one.yaml, run in \"\", shown as one.yaml");
        check(
            ".",
            ".loops/nested/in.yaml",
            ".loops/nested/in.yaml, run in \"\", shown as .loops/nested/in.yaml",
        );
        check("outside", "../one.yaml", "outside/../one.yaml, run in \"outside\", shown as ../one.yaml");
        check(
            ".",
            ".loops/fixx.yaml",
            "there is no file `.loops/fixx.yaml`; did you mean `.loops/fix.yaml`?",
        );
        check(
            ".",
            "sub/.loops/check.yaml",
            "sub/.loops/check.yaml, run in \"\", shown as sub/.loops/check.yaml",
        );
    }

    #[test]
    fn what_is_found_nowhere_comes_from_the_program() {
        let directory = directory();
        let shown = |asked: &str| find(asked, directory.path()).map(|located| located.shown);
        assert_eq!(shown("test/outer").unwrap(), "<built-in>/test/outer.yaml");
        assert_eq!(shown("<built-in>/test/outer").unwrap(), "<built-in>/test/outer.yaml");
        assert!(shown("<built-in>/nowhere").is_err());
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text).unwrap();
        };
        let state = |text: &str| {
            write("main.yaml", text);
            let loaded = load(&find("main.yaml", directory.path()).unwrap()).unwrap();
            let names: Vec<_> = loaded.sources.iter().map(|source| source.name().to_owned()).collect();
            (loaded.tree.to_json()["states"]["a"].clone(), names.join(" "))
        };
        let main = "name: main\ninitial: a\nimport: [test-lib.yaml]\nstates: {a: {fragment: f, next: done}, done: {terminal: true}}\n";
        let (a, sources) = state(main);
        assert_eq!(
            (a["action"].as_str().unwrap(), &*sources),
            ("echo built-in", "main.yaml <built-in>/test-lib.yaml")
        );
        write("test-lib.yaml", "fragments: {f: {action: echo mine}}");
        assert_eq!(state(main).0["action"], "echo mine", "a file of the project wins");
        // But not where the program names its own.
        let (a, sources) = state("name: main\nfrom: test/outer\n");
        assert_eq!(a["loop"], "<built-in>/test/inner.yaml");
        assert_eq!(sources, "main.yaml <built-in>/test/outer.yaml <built-in>/test-lib.yaml");
        write("<built-in>/test/outer.yaml", "name: theirs\n");
        assert_eq!(shown("<built-in>/test/outer.yaml").unwrap(), "<built-in>/test/outer.yaml");
        let located = find("./<built-in>/test/outer.yaml", directory.path()).unwrap();
        assert_eq!(located.shown, "./<built-in>/test/outer.yaml");
        assert!(load(&located).is_err(), "it is the file of the project, which is not a loop");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let directory = directory();
        let load_error = |asked: &str| {
            let located = find(asked, directory.path()).unwrap();
            load(&located).unwrap_err().to_string().replace("`./", "`")
        };
        fs_err::write(directory.path().join("latin.yaml"), b"name: x\ninitial: \xe9\n").unwrap();
        fs_err::write(directory.path().join("large.yaml"), " ".repeat(MAX_SIZE + 1)).unwrap();
        assert_eq!(load_error("./sub"), "`sub` is a directory, not a file");
        assert!(load_error("/dev/zero").ends_with("dev/zero` is a device, not a file"));
        assert_eq!(load_error("latin.yaml"), "`latin.yaml` is not UTF-8: line 2, byte 10 is wrong");
        assert_eq!(load_error("large.yaml"), "`large.yaml` is larger than 1 MiB");
    }

    #[test]
    fn loops_are_listed_once_and_the_nearest_wins() {
        let directory = directory();
        let shown: Vec<_> = list(&directory.path().join("sub"))
            .into_iter()
            .map(|listed| (listed.name, listed.located.unwrap().shown, listed.hidden_by.is_some()))
            .collect();
        let all = [
            ("check", ".loops/check.yaml", false),
            ("fix", "../.loops/fix.yaml", false),
            ("fix", "../.loops/fix.yml", true),
            ("nested/in", "../.loops/nested/in.yaml", false),
        ];
        assert_eq!(shown, all.map(|(name, shown, is_hidden)| (name.into(), shown.into(), is_hidden)));
    }

    #[test]
    fn a_loop_in_a_directory_is_known_by_its_path() {
        let directory = directory();
        let name = |cwd: &str, asked: &str| {
            let located = find(asked, &directory.path().join(cwd)).unwrap();
            (load(&located).unwrap().definition.name.to_string(), located.shown)
        };
        let in_nested = |shown: &str| ("nested/in".to_owned(), shown.to_owned());
        assert_eq!(name(".", "nested/in"), in_nested(".loops/nested/in.yaml"));
        assert_eq!(name(".", "nested/in.yaml"), in_nested(".loops/nested/in.yaml"));
        assert_eq!(name(".", ".loops/nested/in.yaml"), in_nested(".loops/nested/in.yaml"));
        assert_eq!(name("sub/deep", "nested/in"), in_nested("../../.loops/nested/in.yaml"));
        assert_eq!(name("sub/deep", "../../.loops/nested/in.yaml"), in_nested("../../.loops/nested/in.yaml"));
        assert_eq!(name(".loops/nested", "in.yaml"), in_nested("in.yaml"));
        assert_eq!(name(".", ".loops/fix.yml").0, "fix.yml");
        let written = load(&find("one.yaml", directory.path()).unwrap()).unwrap().definition.name;
        assert_eq!((name(".", "fix").0.as_str(), written.as_str()), ("fix", "goal-tidy"));
        assert_eq!(name(".", "sub/.loops/check.yaml").0, "goal-tidy");
    }

    #[test]
    fn a_name_never_leads_out_of_the_directory_of_loops() {
        let directory = directory();
        fs_err::create_dir_all(directory.path().join(".loops/vendor")).unwrap();
        fs_err::write(directory.path().join(".loops/vendor/v.yaml"), GOOD[0]).unwrap();
        let check = |asked: &str, expected: &str| assert_eq!(found(directory.path(), ".", asked), expected);
        let what = "the name of a loop is its path below `.loops`, such as `tidy` or `web/tidy`; any other file is named by \
                    its path with the extension";
        check("fix/", "there is no loop named `fix/`: a loop name cannot end with `/`; write `fix`");
        check(
            "nested//in",
            &format!("there is no loop named `nested//in`: a loop name cannot contain `//`; {what}"),
        );
        check(
            "nested/../../one",
            &format!(
                "there is no loop named `nested/../../one`: a loop name cannot contain `.` or `..` between two `/`; {what}"
            ),
        );
        check(
            "a\u{7}",
            &format!("there is no loop named `a\u{7}`: a loop name cannot contain '\\u{{7}}'; {what}"),
        );
        check("", &format!("there is no loop named ``: a loop name cannot be empty; {what}"));
        let by_path = "a loop in `.loops` goes by its name alone, and any other file by its path";
        check("../one", &format!("there is no file `../one`; {by_path}"));
        check("/one", &format!("there is no file `/one`; {by_path}"));
        check("vendor/v", "there is no loop named `vendor/v`; the loops are `check`, `fix`, `nested/in`");
    }

    #[test]
    fn a_sub_loop_is_found_from_the_directory_of_loops_or_else_beside_its_caller() {
        let directory = directory();
        for path in [".loops/nested/kid.yaml", ".loops/nested/fix.yaml", "outside/near.yaml"] {
            fs_err::write(directory.path().join(path), GOOD[0]).unwrap();
        }
        let found = |asked: &str, caller: &str| {
            let found = find_beside(asked, directory.path(), &directory.path().join(caller));
            found.map_or_else(|error| error.to_string(), |located| located.shown)
        };
        assert_eq!(found("kid", ".loops/nested/in.yaml"), ".loops/nested/kid.yaml");
        assert_eq!(found("fix", ".loops/nested/in.yaml"), ".loops/fix.yaml");
        assert_eq!(found("kid", ".loops/fix.yaml"), "there is no loop named `kid`");
        assert_eq!(found("near", "outside/main.yaml"), "outside/near.yaml");
        assert_eq!(found("near.yaml", "outside/main.yaml"), "outside/near.yaml");
        assert_eq!(found("../one", ".loops/fix.yaml"), "there is no file `../one`");
        assert_eq!(
            found("nested/../../one", ".loops/fix.yaml").split(':').next(),
            Some("there is no loop named `nested/../../one`")
        );
    }

    #[test]
    fn a_file_is_known_by_the_digest_of_its_bytes() {
        let directory = directory();
        let loaded = load(&find("fix", directory.path()).unwrap()).unwrap();
        assert_eq!(loaded.digest, text::hex(&Sha256::digest(GOOD[0])));
        assert_eq!(loaded.digest.len(), 64);
        fs_err::write(directory.path().join("bom.yaml"), format!("\u{feff}{}", GOOD[0])).unwrap();
        assert!(load(&find("bom.yaml", directory.path()).unwrap()).is_ok());
    }
}
