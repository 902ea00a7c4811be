//! Reads the two trees of a run for the rules that tell its judges, and puts the judges of the start in their places while
//! checks are made once more.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::ignored;
use super::installed_programs::is_known_to_a_package;
use super::look_error::LookError;
use super::run_moments::RunMoments;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::engine::changes::{FileMode, IgnoredFile, KeptFile, KnownStart, TreeIds};
use crate::engine::request::{ActionRequest, AsideRequest, JudgingRequest};
use crate::files::aside::{self, Placed};
use crate::files::file_time::FileTime;
use crate::files::read::MIB;
use crate::git::blobs::PrintedObject;
use crate::git::call::Call;
use crate::git::object_names::{is_named, listed};
use crate::git::runner::Git;
use crate::git::tree_list::ListedEntry;
use crate::journal::files::RunFiles;
use crate::judges::bytecode::is_bytecode;
use crate::judges::compare::{self, FollowedChecks, TreeComparison, look};
use crate::judges::found_judges::JudgesFound;
use crate::judges::instructions::{CheckCommand, LOADING_VARIABLES};
use crate::judges::tree::{At, FileAt, Tree};

/// The files of a tree by their paths.
type ListedFiles = BTreeMap<String, (FileMode, ObjectId)>;

/// How many bytes are read ahead of a tree, and of a file in it.
const MOST_AHEAD: u64 = 256 * MIB;
const LONGEST_AHEAD: u64 = MIB;

/// The longest file whose content is compared; of a longer one it is known only that it is another. A run may change gigabytes.
const LONGEST_COMPARED: u64 = 16 * MIB;

/// Where loops lie, from the directory of a run.
const LOOPS: &str = ".loops";

/// What no text begins with.
const NO_TEXT: u8 = 0xff;

/// A tree of git, whose files are read as they are asked for.
struct GitTree {
    git: Git,
    tree: ObjectId,
    /// Its files, listed when the first is asked for; none where they cannot be.
    files: OnceCell<Option<ListedFiles>>,
    read: RefCell<BTreeMap<String, At>>,
    /// The longest file whose content is read.
    longest: u64,
}

impl GitTree {
    fn new(git: &Git, tree: &ObjectId, longest: u64) -> Self {
        let (files, read) = (OnceCell::new(), RefCell::default());
        Self { git: git.clone(), tree: tree.clone(), files, read, longest }
    }

    fn listed(&self) -> Option<ListedFiles> {
        let file = |entry: &ListedEntry<'_>| {
            Some((gitpath::to_text(entry.path), (FileMode::parse(entry.mode)?, entry.id.clone())))
        };
        Some(listed(&self.git, &self.tree, file)?.into_iter().collect())
    }

    fn entry(&self, path: &str) -> Result<Option<(FileMode, ObjectId)>, ()> {
        let files = self.files.get_or_init(|| self.listed());
        files.as_ref().map(|files| files.get(path).cloned()).ok_or(())
    }

    /// Reads files ahead, in two calls of git for all of them. What cannot be read so is read when it is asked for.
    fn read_ahead(&self, paths: &BTreeSet<String>) {
        let entries = paths.iter().filter_map(|path| Some((path, self.entry(path).ok()??)));
        // A submodule has no blob.
        let entries: Vec<_> = entries.filter(|(_, (mode, _))| *mode != FileMode::Repository).collect();
        let ids = |entries: &[(&String, (FileMode, ObjectId))]| -> Vec<u8> {
            entries.iter().flat_map(|(_, (_, id))| format!("{id}\n").into_bytes()).collect()
        };
        let sizes = Call::new("cat-file").with(&["--batch-check=%(objectsize)"]);
        let Ok(printed) = self.git.bytes(&sizes, &ids(&entries)) else { return };
        let printed = String::from_utf8_lossy(&printed).into_owned();
        // What has no size is taken for too long, and read alone.
        let sizes = printed.lines().map(|line| line.parse().unwrap_or(u64::MAX));
        let mut left = MOST_AHEAD;
        let short: Vec<_> = entries
            .into_iter()
            .zip(sizes)
            .filter(|(_, size)| {
                let is_short = *size <= LONGEST_AHEAD && *size <= left;
                left -= if is_short { *size } else { 0 };
                is_short
            })
            .map(|(entry, _)| entry)
            .collect();
        let Ok(printed) = self.git.bytes(&Call::new("cat-file").with(&["--batch"]), &ids(&short)) else {
            return;
        };
        let mut rest = printed.as_slice();
        for (path, (mode, id)) in short {
            // An answer that is cut short leaves the rest to be read when it is asked for.
            let Some(object) = PrintedObject::first(rest) else { return };
            let at = if is_named(&id, "blob", object.content) {
                At::File(FileAt { mode, bytes: object.content.to_vec(), is_ignored: false })
            } else {
                At::Unreadable
            };
            self.read.borrow_mut().insert(path.clone(), at);
            rest = object.rest;
        }
    }

    fn reads(&self, path: &str) -> At {
        let (mode, id) = match self.entry(path) {
            Ok(Some(entry)) => entry,
            Ok(None) => return At::Nothing,
            Err(()) => return At::Unreadable,
        };
        let bytes = match mode {
            FileMode::Repository => Some(id.as_str().as_bytes().to_vec()),
            FileMode::File | FileMode::Executable | FileMode::Link if self.is_too_long(&id) => {
                Some([&[NO_TEXT][..], id.as_str().as_bytes()].concat())
            }
            FileMode::File | FileMode::Executable | FileMode::Link => {
                let bytes = self.git.bytes(&Call::new("cat-file").with(&["blob"]).id(&id), &[]);
                bytes.ok().filter(|bytes| is_named(&id, "blob", bytes))
            }
        };
        bytes.map_or(At::Unreadable, |bytes| At::File(FileAt { mode, bytes, is_ignored: false }))
    }

    /// Tells whether a file is longer than is read.
    fn is_too_long(&self, id: &ObjectId) -> bool {
        let size = || {
            let printed = self.git.bytes(&Call::new("cat-file").with(&["-s"]).id(id), &[]).ok()?;
            String::from_utf8_lossy(&printed).trim().parse::<u64>().ok()
        };
        self.longest < u64::MAX && size().is_some_and(|size| size > self.longest)
    }
}

impl Tree for GitTree {
    fn at(&self, path: &str) -> At {
        if let Some(known) = self.read.borrow().get(path) {
            return known.clone();
        }
        let at = self.reads(path);
        self.read.borrow_mut().insert(path.to_owned(), at.clone());
        at
    }

    fn seen(&self) -> Vec<String> {
        let files = self.files.get_or_init(|| self.listed());
        files.iter().flat_map(BTreeMap::keys).cloned().collect()
    }
}

/// The tree on which a run began, with what no tree of git has.
struct JudgedStart<'a> {
    git: GitTree,
    ignored: BTreeMap<&'a str, Option<&'a KeptFile>>,
    store: PathBuf,
}

impl<'a> JudgedStart<'a> {
    fn new(git: GitTree, ignored: &'a [IgnoredFile], files: &RunFiles) -> Self {
        let ignored = ignored.iter().map(|file| (file.path.as_str(), file.found.as_ref())).collect();
        Self { git, ignored, store: store(files) }
    }
}

impl Tree for JudgedStart<'_> {
    fn at(&self, path: &str) -> At {
        match self.ignored.get(path) {
            // Only what the tree does not have is looked for outside of it.
            _ if path.starts_with('/') => ignored::outside(path),
            Some(file) => ignored::at_start(*file, &self.store),
            None => self.git.at(path),
        }
    }

    fn seen(&self) -> Vec<String> {
        self.git.seen()
    }
}

/// The tree that there is now, with what no tree of git has.
struct JudgedEnd<'a> {
    git: GitTree,
    top: &'a Path,
    moments: RunMoments,
}

impl Tree for JudgedEnd<'_> {
    fn at(&self, path: &str) -> At {
        if path.starts_with('/') {
            return ignored::outside(path);
        }
        match self.git.at(path) {
            // Ignored by git, and there all the same.
            At::Nothing => ignored::at_end(path, self.top),
            known @ (At::File(_) | At::Unreadable) => known,
        }
    }

    fn was_made_at_last(&self, path: &str) -> bool {
        let changed = ignored::changed_at(path, self.top);
        // In the moment at which the action began, it may have been the one before: then it does not count.
        matches!((changed, self.moments.last_action), (Some(changed), Some(began)) if changed > began)
    }

    fn is_installed(&self, path: &str) -> bool {
        let came_later = |changed: Option<FileTime>| {
            changed.zip(self.moments.first_doubt).is_some_and(|(at, doubt)| at >= doubt)
        };
        // Without a check that has looked, there is nothing that a fix could have known to please.
        let was_there = !came_later(ignored::changed_at(path, self.top));
        // A link to an interpreter says nothing of one that was made outside of the tree since.
        let is_made_outside = || came_later(ignored::outside_changed_at(path, self.top));
        let vouch_for = |file: &Path| self.moments.vouch_for(file);
        was_there || (is_known_to_a_package(path, self.top, &vouch_for) && !is_made_outside())
    }

    fn seen(&self) -> Vec<String> {
        self.git.seen()
    }
}

/// The working tree as it is on disk, for who asks for single files alone.
struct DiskTree<'a>(&'a Path);

impl Tree for DiskTree<'_> {
    fn at(&self, path: &str) -> At {
        if path.starts_with('/') { ignored::outside(path) } else { ignored::at_end(path, self.0) }
    }

    fn seen(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Where the checks of a run are made.
pub(super) struct JudgingPlace<'a> {
    /// The top of the working tree.
    pub(super) top: &'a Path,
    /// The directory of the run, from there.
    pub(super) inside: &'a str,
    /// What actions inherit of the variables that say where programs and libraries are.
    pub(super) env: SearchVariables,
}

impl JudgingPlace<'_> {
    /// Returns a path of the run from the top of the tree.
    fn joined(&self, path: &str) -> String {
        // A path of a loop may begin with `./`; git's do not.
        let path = path.trim_start_matches("./").trim_end_matches('/');
        match (self.inside, path) {
            ("", "." | "") => String::new(),
            ("", path) => path.to_owned(),
            (inside, "" | ".") => inside.to_owned(),
            (inside, path) => format!("{inside}/{path}"),
        }
    }

    /// Returns the directories of a variable such as `PATH`, for a program that is started in a directory: those in the
    /// tree from its top, others as they are.
    fn directories(&self, list: &str, directory: &str) -> Vec<String> {
        let here = self.top.join(OsStr::from_bytes(&gitpath::to_bytes(directory)));
        let one = |entry: &str| {
            let path = here.join(entry);
            // A virtual environment may be reached through a link, and is inside all the same.
            let path = path.canonicalize().unwrap_or(path);
            match path.strip_prefix(self.top) {
                Ok(inside) => gitpath::to_text(inside.as_os_str().as_bytes()),
                Err(_) => path.to_string_lossy().into_owned(),
            }
        };
        list.split(':').map(one).collect()
    }

    fn placed(&self, cwd: Option<&str>, env: &[(String, String)]) -> PlacedCommand {
        let directory = self.joined(cwd.unwrap_or_default());
        let value = |wanted: &str| {
            // The last one wins, as in an environment.
            let set = env.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value);
            set.or_else(|| self.env.0.get(wanted)).cloned()
        };
        let search = self.directories(&value(PATH).unwrap_or_default(), &directory);
        let libraries = LIBRARY_PATHS.iter().filter_map(|name| value(name));
        let libraries = libraries.flat_map(|list| self.directories(&list, &directory));
        let libraries = libraries.filter(|place| !place.starts_with('/')).collect();
        let variables = LOADING_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), value(name)?)));
        PlacedCommand { directory, search, libraries, variables: variables.collect() }
    }
}

/// The variables that say where programs and libraries are looked for and what is loaded first, as far as they are set.
#[derive(Clone)]
pub(super) struct SearchVariables(BTreeMap<String, String>);

impl SearchVariables {
    /// Takes them from an environment.
    pub(super) fn of(env: &BTreeMap<String, String>) -> Self {
        let names = LIBRARY_PATHS.iter().chain(&LOADING_VARIABLES).chain([&PATH]);
        Self(names.filter_map(|name| Some(((*name).to_owned(), env.get(*name)?.clone()))).collect())
    }
}

const PATH: &str = "PATH";

/// Variables that name directories in which interpreters look for libraries.
const LIBRARY_PATHS: [&str; 4] = ["PYTHONPATH", "RUBYLIB", "PERL5LIB", "NODE_PATH"];

/// A command, with what its environment says of the tree.
struct PlacedCommand {
    directory: String,
    search: Vec<String>,
    libraries: Vec<String>,
    variables: Vec<(String, String)>,
}

fn commands<'a>(request: &'a JudgingRequest, placed: &'a [PlacedCommand]) -> Vec<CheckCommand<'a>> {
    let both = request.commands.iter().zip(placed);
    let of = both.map(|(command, placed)| CheckCommand {
        state: command.state.as_str(),
        text: &command.text,
        directory: &placed.directory,
        search: &placed.search,
        libraries: &placed.libraries,
        variables: &placed.variables,
        shell: &command.shell,
    });
    of.collect()
}

fn placed_of(request: &JudgingRequest, place: &JudgingPlace<'_>) -> Vec<PlacedCommand> {
    request.commands.iter().map(|command| place.placed(command.cwd.as_deref(), &command.env)).collect()
}

/// Follows the commands of the checks of a loop in a working tree. `inside` is the directory of the run, from the top of the
/// tree, and `env` what actions inherit.
pub fn followed(
    request: &JudgingRequest,
    top: &Path,
    inside: &str,
    env: &BTreeMap<String, String>,
) -> FollowedChecks {
    followed_in(request, &JudgingPlace { top, inside, env: SearchVariables::of(env) })
}

fn followed_in(request: &JudgingRequest, place: &JudgingPlace<'_>) -> FollowedChecks {
    let placed = placed_of(request, place);
    compare::followed(&commands(request, &placed), &DiskTree(place.top))
}

/// Follows an action in the working tree, as what a check runs is followed.
pub(super) fn followed_action(request: &ActionRequest, place: &JudgingPlace<'_>) -> FollowedChecks {
    let placed = place.placed(request.setting.cwd.as_deref(), &request.setting.env);
    let command = CheckCommand {
        state: "",
        text: &request.text,
        directory: &placed.directory,
        search: &placed.search,
        libraries: &placed.libraries,
        variables: &placed.variables,
        shell: &request.shell,
    };
    compare::followed(&[command], &DiskTree(place.top))
}

/// Returns the paths of what checks run or obey, there or not.
pub(super) fn programs(request: &JudgingRequest, place: &JudgingPlace<'_>) -> Vec<String> {
    followed_in(request, place).obeyed
}

/// Where a run keeps what git does not track.
pub(super) fn store(files: &RunFiles) -> PathBuf {
    files.objects().join("ignored")
}

/// What a run did to its working tree, as far as its judges are asked for.
pub(super) struct JudgedChanges<'a> {
    /// The tree on which it began.
    pub(super) start: &'a KnownStart,
    /// The tree on which it ended.
    pub(super) end: &'a TreeIds,
    /// The paths in which they differ.
    pub(super) touched: Vec<String>,
    /// What git does not track now.
    pub(super) untracked: Vec<u8>,
    /// When it did what.
    pub(super) moments: RunMoments,
}

/// Tells what a run did to its judges.
pub(super) fn judged(
    request: &JudgingRequest,
    changes: JudgedChanges<'_>,
    git: &Git,
    place: &JudgingPlace<'_>,
    files: &RunFiles,
) -> JudgesFound {
    // What Python compiles whenever it runs is a change to nothing.
    let is_made_of_its_source = |path: &str| is_bytecode(path) && !ignored::stands_alone(path, place.top);
    // Somebody may have committed what ll-loop itself writes, and it is never put back: the journal is written meanwhile.
    let is_work = |path: &String| !is_own(path.as_bytes()) && !is_made_of_its_source(path);
    let touched = changes.touched.into_iter().filter(is_work);
    let mut paths: BTreeSet<String> = touched.collect();
    let (ids, ignored) = (&changes.start.ids, changes.start.ignored.as_slice());
    let tree = |tree: &ObjectId| GitTree::new(git, tree, LONGEST_COMPARED);
    let start = JudgedStart::new(tree(&ids.tree), ignored, files);
    let end = JudgedEnd { git: tree(&changes.end.tree), top: place.top, moments: changes.moments };
    // What the scope holds is in the trees.
    let is_seen = |path: &String| {
        !paths.contains(path)
            && (matches!(start.git.entry(path), Ok(Some(_))) || matches!(end.git.entry(path), Ok(Some(_))))
    };
    let others = ignored::changed(ignored, &ignored::by_name(&changes.untracked, place.top), place.top);
    let others: Vec<String> = others.into_iter().filter(|path| !is_seen(path)).collect();
    paths.extend(others);
    if paths.is_empty() {
        // Most runs change no file outside of the tree, and then no process is started.
        return JudgesFound::unchanged();
    }
    start.git.read_ahead(&paths);
    end.git.read_ahead(&paths);
    let placed = placed_of(request, place);
    let loops = format!("{}/", place.joined(LOOPS));
    let may_be_chosen = |path: &&String| {
        let is_loop = [".yaml", ".yml"].iter().any(|end| path.ends_with(end));
        request.chooses_loops && is_loop && path.starts_with(&loops)
    };
    let chosen = paths.iter().filter(may_be_chosen).cloned();
    let loop_files: Vec<String> =
        request.loop_files.iter().map(|file| place.joined(file)).chain(chosen).collect();
    look(&TreeComparison {
        declared: &request.declared,
        commands: &commands(request, &placed),
        loop_files: &loop_files,
        changed: &paths.into_iter().collect::<Vec<_>>(),
        start: &start,
        end: &end,
    })
}

/// Puts the judges of the start in their places.
pub(super) fn set_aside(
    request: &AsideRequest,
    git: &Git,
    top: &Path,
    files: &RunFiles,
) -> Result<(), LookError> {
    let TreeIds { tree, .. } = &request.start;
    let start = JudgedStart::new(GitTree::new(git, tree, u64::MAX), &request.ignored, files);
    let mut all = Vec::new();
    for path in &request.put_back {
        let content = match start.at(path) {
            // A submodule is a repository, which is not put back file by file.
            At::File(file) if file.mode != FileMode::Repository => Some((file.mode, file.bytes)),
            At::Nothing => None,
            At::File(_) | At::Unreadable => {
                return Err(LookError::unfit(format!("`{path}` of the start cannot be read")));
            }
        };
        all.push(Placed { path: path.clone(), content });
    }
    for file in &request.in_part {
        // Only its judges are put back, so whether it can be executed stays as the run left it.
        let is_executable = match ignored::at_end(&file.path, top) {
            At::File(now) => now.mode == FileMode::Executable,
            At::Nothing | At::Unreadable => false,
        };
        let mode = if is_executable { FileMode::Executable } else { FileMode::File };
        all.push(Placed { path: file.path.clone(), content: Some((mode, file.text.clone().into_bytes())) });
    }
    // One that is put back is not hidden as well.
    let hidden = request.hide.iter().filter(|path| !request.put_back().any(|placed| placed == *path));
    all.extend(hidden.map(|path| Placed { path: path.clone(), content: None }));
    let directory = files.aside();
    // What an earlier try of the same pass has put aside comes first.
    let replaced = aside::replaced(&directory)?;
    let edited = aside::take_back(&directory)?;
    let edited: Vec<String> = replaced.into_iter().chain(edited).collect();
    if !edited.is_empty() {
        return Err(LookError::unfit(format!("`{}` was edited while checks were made once more", edited[0])));
    }
    Ok(aside::put_aside(&directory, top, &all)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_known_by_its_id_and_is_no_text() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "0123456789").unwrap();
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
            let output = command.current_dir(directory.path()).output().unwrap();
            assert!(output.status.success(), "{arguments:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["init", "-q"]);
        git(&["add", "a"]);
        let tree = ObjectId::parse(&git(&["write-tree"])).unwrap();
        let blob = git(&["rev-parse", ":a"]);
        let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let runner = Git::new(directory.path(), env.into());
        let bytes = |longest: u64| {
            let At::File(file) = GitTree::new(&runner, &tree, longest).at("a") else {
                panic!("it is not read")
            };
            file.bytes
        };
        assert_eq!(bytes(u64::MAX), b"0123456789");
        assert_eq!(bytes(10), b"0123456789");
        let known = bytes(9);
        assert!(std::str::from_utf8(&known).is_err() && known[1..] == *blob.as_bytes());
    }
}
