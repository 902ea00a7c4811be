//! Reads the files that a key is made of as they lie in the working tree. Which files there are is for git to say; what is in
//! them is read by us, for an index can say of a file what is not so. Nothing but regular files and links is read, so that
//! neither a pipe nor a device holds us up.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::chosen_files::{ChosenFiles, ListedTree};
use super::ignored_sources::{IgnoredReads, IgnoredSource};
use super::input_patterns::{InputPatterns, is_within};
use super::key::{KeyFile, of_texts};
use super::no_key::NoKey;
use crate::base::file_mode::FileMode;
use crate::base::gitpath;
use crate::base::object::ObjectId;
use crate::base::own::is_own;
use crate::base::sum::Sum;
use crate::files::read;
use crate::git::call::Call;
use crate::git::error::GitError;
use crate::git::repository_paths::RepositoryPaths;
use crate::git::runner::Git;
use crate::git::tracked_files;

/// Files from which on it pays to read them in several threads.
const WORTH_THREADS: usize = 256;

/// The most threads that read files.
const MOST_THREADS: usize = 8;

/// The files of a key with their contents.
pub struct ReadFiles {
    /// The inputs that are there.
    pub inputs: BTreeMap<String, KeyFile>,
    /// The judges, there or not.
    pub judges: BTreeMap<String, Option<KeyFile>>,
}

/// Returns the top of the working tree that a directory is in, with all links followed.
///
/// # Errors
/// There is no repository, or git does not say.
pub fn top(git: &Git) -> Result<PathBuf, NoKey> {
    let printed = git.bytes(&RepositoryPaths::call(&[]), &[])?;
    let (RepositoryPaths { top, .. }, []) = RepositoryPaths::read(&printed)?;
    let unreadable = |why| NoKey::Unreadable { path: top.display().to_string(), why };
    top.canonicalize().map_err(unreadable)
}

/// Lists the files of the working tree that a key may be made of. `git` looks at its top. Ignored files are listed at these
/// paths alone.
///
/// # Errors
/// Git does not say.
pub fn listed<'l>(git: &Git, literals: impl Iterator<Item = &'l str>) -> Result<ListedTree, NoKey> {
    // One call for both, because each of them reads the whole index.
    let known =
        Call::new("ls-files").with(&["-t", "--stage", "--cached", "--others", "--exclude-standard", "-z"]);
    let literals: Vec<String> = literals.map(str::to_owned).collect();
    let ignored = Call::new("ls-files").with(&["--others", "--ignored", "--exclude-standard", "-z"]);
    let (known, named) = std::thread::scope(|scope| {
        let named = (!literals.is_empty())
            .then(|| scope.spawn(|| git.bytes(&ignored.paths(literals).literal(), &[])));
        let known = git.bytes(&known, &[]);
        (known, named.map(|thread| thread.join().expect("calling git does not panic")))
    });
    let mut tree = ListedTree::default();
    for entry in entries(&known?) {
        add(&mut tree, entry)?;
    }
    if let Some(named) = named {
        for path in entries(&named?) {
            match nested(path) {
                Some(repository) => tree.nested.insert(repository),
                None => tree.named.insert(gitpath::to_text(path)),
            };
        }
    }
    Ok(tree)
}

/// Adds what git lists: `? PATH`, or `H 100644 ID STAGE<tab>PATH`, where other letters stand for what the index says of a file. A path
/// becomes text by itself, for one that is not UTF-8 has quotes around it.
fn add(tree: &mut ListedTree, entry: &[u8]) -> Result<(), NoKey> {
    if let Some(path) = entry.strip_prefix(b"? ") {
        match nested(path) {
            Some(repository) => tree.nested.insert(repository),
            None => tree.untracked.insert(gitpath::to_text(path)),
        };
        return Ok(());
    }
    let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { return Ok(()) };
    let path = gitpath::to_text(&entry[tab + 1..]);
    let mut words = entry[..tab].split(|byte| *byte == b' ').skip(1);
    match (words.next(), words.next()) {
        (Some(b"160000"), Some(id)) => {
            let commit = ObjectId::parse(&String::from_utf8_lossy(id)).map_err(GitError::from)?;
            tree.submodules.insert(path, commit);
        }
        // A file in conflict is listed once for each stage, and is one file.
        (mode, _) => {
            if mode == Some(b"120000".as_slice()) {
                tree.links.insert(path.clone());
            }
            tree.tracked.insert(path);
        }
    }
    Ok(())
}

/// Returns the folder of another repository: git lists nothing else of it, with a slash at the end, ignored or not.
fn nested(path: &[u8]) -> Option<String> {
    path.strip_suffix(b"/").map(gitpath::to_text)
}

/// Looks for a source that git ignores and that a check reads as one of the inputs. What ll-loop and this run write is none: `own`
/// names that by its paths.
///
/// # Errors
/// Git does not say what it ignores, or an ignored folder cannot be looked into.
pub fn ignored_source(
    git: &Git,
    top: &Path,
    reads: &IgnoredReads,
    inputs: &InputPatterns,
    own: &[String],
) -> Result<Option<IgnoredSource>, NoKey> {
    if reads.is_nothing() {
        return Ok(None);
    }
    let is_work = |path: &str| !is_own(path.as_bytes()) && !own.iter().any(|own| is_within(path, own));
    let mut left = paths(&git.bytes(&ignored_folders(), &[])?);
    while let Some(entry) = left.pop() {
        let Some(folder) = entry.strip_suffix('/') else {
            match reads.reader(&entry, inputs).filter(|_| is_work(&entry)) {
                Some(found) => return Ok(Some(found)),
                None => continue,
            }
        };
        if is_work(folder) && !reads.pass_over(folder) && inputs.may_reach(folder) {
            left.extend(inside(top, folder)?);
        }
    }
    Ok(None)
}

/// Asks for what git ignores. A folder that is ignored as a whole is one entry.
fn ignored_folders() -> Call {
    Call::new("ls-files").with(&["--others", "--ignored", "--exclude-standard", "--directory", "-z"])
}

/// Lists a folder that git does not, with a slash behind folders. Links are not followed.
fn inside(top: &Path, folder: &str) -> Result<Vec<String>, NoKey> {
    let unreadable = |why| NoKey::Unreadable { path: folder.to_owned(), why };
    let entry = |entry: io::Result<fs_err::DirEntry>| {
        let entry = entry?;
        let end = if entry.file_type()?.is_dir() { "/" } else { "" };
        Ok(format!("{folder}/{}{end}", gitpath::to_text(entry.file_name().as_bytes())))
    };
    let listed = fs_err::read_dir(place(top, folder)).map_err(unreadable)?.map(entry);
    listed.collect::<io::Result<_>>().map_err(unreadable)
}

fn paths(printed: &[u8]) -> Vec<String> {
    entries(printed).map(gitpath::to_text).collect()
}

fn entries(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty())
}

/// Reads files below the top of a working tree.
///
/// # Errors
/// One of them cannot be read, or a submodule is not what its commit says.
pub fn read_all(
    git: &Git,
    top: &Path,
    chosen: &ChosenFiles,
    patterns: &InputPatterns,
) -> Result<ReadFiles, NoKey> {
    let mut inputs: BTreeMap<String, KeyFile> =
        each(top, &chosen.inputs)?.into_iter().filter_map(|(path, file)| Some((path, file?))).collect();
    for path in chosen.submodules.keys() {
        if let Some(read) = submodule(git, top, path, patterns)? {
            inputs.insert(path.clone(), read);
        }
    }
    Ok(ReadFiles { inputs, judges: each(top, &chosen.judges)?.into_iter().collect() })
}

/// Reads a submodule by its commit; nothing where it is not checked out, for then there are no files.
fn submodule(git: &Git, top: &Path, path: &str, inputs: &InputPatterns) -> Result<Option<KeyFile>, NoKey> {
    let directory = place(top, path);
    if !is_checked_out(&directory, path)? {
        return Ok(None);
    }
    let mut absent = Vec::new();
    let commit = its_commit(&git.of(&directory), &directory, path, inputs, &mut absent)?;
    let content = of_texts(std::iter::once(commit.as_str()).chain(absent.iter().map(String::as_str)));
    Ok(Some(KeyFile { mode: FileMode::Repository, content }))
}

/// Tells whether there is a submodule in its place, where nothing else may be.
fn is_checked_out(directory: &Path, path: &str) -> Result<bool, NoKey> {
    let unreadable = |why| NoKey::Unreadable { path: path.to_owned(), why };
    match directory.symlink_metadata() {
        // A file or a link is what git lists nothing of.
        Ok(metadata) if !metadata.is_dir() => return Err(NoKey::DirtySubmodule(path.to_owned())),
        Ok(_) => {}
        Err(why) if is_absent(&why) => return Ok(false),
        Err(why) => return Err(unreadable(why)),
    }
    if directory.join(".git").symlink_metadata().is_ok() {
        return Ok(true);
    }
    match fs_err::read_dir(directory).map_err(unreadable)?.next() {
        None => Ok(false),
        Some(_) => Err(NoKey::DirtySubmodule(path.to_owned())),
    }
}

/// Returns the commit of a submodule, and sees to it that it has what its commit has and nothing else that inputs name, and so have
/// those inside of it. What is not there although a commit has it is added to `absent`: git was told to leave it out.
fn its_commit(
    git: &Git,
    directory: &Path,
    path: &str,
    inputs: &InputPatterns,
    absent: &mut Vec<String>,
) -> Result<ObjectId, NoKey> {
    let printed = git.bytes(&RepositoryPaths::call(&["HEAD^{commit}"]), &[])?;
    let (RepositoryPaths { top, .. }, [commit]) = RepositoryPaths::read(&printed)?;
    // Where its `.git` is no repository, git answers for the one around it.
    let real =
        |place: &Path| place.canonicalize().map_err(|why| NoKey::Unreadable { path: path.to_owned(), why });
    let status =
        // Both are said, because configuration can have git pass over untracked files and over what
        // changed in submodules.
        Call::new("status").with(&["--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=none"]);
    if real(&top)? != real(directory)? || !git.bytes(&status, &[])?.is_empty() {
        return Err(NoKey::DirtySubmodule(path.to_owned()));
    }
    // An ignored file is an input where it is named, and its content is in no commit.
    let is_named = |below: &String| {
        let below = format!("{path}/{}", below.trim_end_matches('/'));
        inputs.name(&below) || inputs.literals().any(|literal| is_within(literal, &below))
    };
    if inputs.literals().any(|literal| is_within(literal, path) || is_within(path, literal)) {
        let ignored = paths(&git.bytes(&ignored_folders(), &[])?);
        if let Some(below) = ignored.into_iter().find(is_named) {
            return Err(NoKey::IgnoredInSubmodule { submodule: path.to_owned(), path: below });
        }
    }
    // The status says nothing of a file that the index tells git not to look at, and of a submodule that is not checked out.
    for file in tracked_files::read(&git.bytes(&tracked_files::call(), &[])?) {
        let below = gitpath::to_text(file.path);
        let there = place(directory, &below);
        let inner = format!("{path}/{below}");
        if !file.is_seen() && there.symlink_metadata().is_ok() {
            return Err(NoKey::UnseenInSubmodule { submodule: path.to_owned(), path: below });
        }
        if file.is_submodule() && is_checked_out(&there, &inner)? {
            its_commit(&git.of(&there), &there, &inner, inputs, absent)?;
        } else if file.is_submodule() || !file.is_seen() {
            absent.push(inner);
        }
    }
    Ok(commit)
}

/// Sees to it that no folder above these files is a link. Git lists files that it tracks there all the same, and nothing of what else
/// the link leads to.
///
/// # Errors
/// One is.
pub fn no_links_above<'p>(top: &Path, paths: impl Iterator<Item = &'p String>) -> Result<(), NoKey> {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for path in paths {
        let mut folder = path.as_str();
        while let Some((above, _)) = folder.rsplit_once('/') {
            folder = above;
            // What is above a folder that was looked at was, too.
            if !seen.insert(folder) {
                break;
            }
            if place(top, folder).is_symlink() {
                return Err(NoKey::LinkedFolder(folder.to_owned()));
            }
        }
    }
    Ok(())
}

type ReadFile = (String, Option<KeyFile>);

/// Reads files, several at a time where there are many.
fn each(top: &Path, paths: &BTreeSet<String>) -> Result<Vec<ReadFile>, NoKey> {
    let paths: Vec<&String> = paths.iter().collect();
    let several = std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST_THREADS));
    if paths.len() < WORTH_THREADS || several == 1 {
        return in_order(top, &paths);
    }
    let share = paths.len().div_ceil(several);
    std::thread::scope(|scope| {
        let begin = |some| scope.spawn(move || in_order(top, some));
        let threads: Vec<_> = paths.chunks(share).map(begin).collect();
        let mut all = Vec::with_capacity(paths.len());
        for thread in threads {
            all.extend(thread.join().expect("reading files does not panic")?);
        }
        Ok(all)
    })
}

/// Reads what stands in one place.
pub(super) fn read_one(top: &Path, path: &str) -> Result<Option<KeyFile>, NoKey> {
    Ok(in_order(top, &[&path.to_owned()])?.pop().and_then(|(_, file)| file))
}

fn in_order(top: &Path, paths: &[&String]) -> Result<Vec<ReadFile>, NoKey> {
    let mut buffer = vec![0; 64 * 1024];
    let read = |path: &&String| match look(&place(top, path), &mut buffer) {
        Ok(file) => Ok(((*path).clone(), file)),
        Err(why) => Err(NoKey::Unreadable { path: (*path).clone(), why }),
    };
    paths.iter().map(read).collect()
}

/// Returns where a file of the tree lies.
pub fn place(top: &Path, path: &str) -> PathBuf {
    top.join(OsStr::from_bytes(&gitpath::to_bytes(path)))
}

/// Reads what stands in a place; nothing where there is neither a file nor a link.
fn look(place: &Path, buffer: &mut [u8]) -> io::Result<Option<KeyFile>> {
    let metadata = match place.symlink_metadata() {
        Ok(metadata) => metadata,
        // A file may stand where git lists files of a folder.
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return linked(place, buffer).map(Some);
    }
    if metadata.is_dir() {
        // What is in it is listed by itself.
        return Ok(None);
    }
    // It may have become a link or a pipe since it was looked at.
    let content = content(read::unlinked(place)?, buffer)?;
    let mode = if is_executable(&metadata) { FileMode::Executable } else { FileMode::File };
    Ok(Some(KeyFile { mode, content }))
}

/// Reads a link: where it leads, and the file that it leads to, which is read as if it stood here. Of a folder, what is in it has to
/// count by itself.
fn linked(place: &Path, buffer: &mut [u8]) -> io::Result<KeyFile> {
    let target = gitpath::to_text(place.read_link()?.as_os_str().as_bytes());
    let behind = match place.metadata() {
        Ok(metadata) if metadata.is_dir() => "a folder".to_owned(),
        // A pipe would hold us up, and a device has no end.
        Ok(metadata) if !metadata.is_file() => "something else".to_owned(),
        Ok(metadata) => {
            let content = content(read::open(place).map_err(io::Error::from)?, buffer)?;
            let mode = if is_executable(&metadata) { FileMode::Executable } else { FileMode::File };
            format!("{} {content}", mode.word())
        }
        // It leads nowhere, in a circle, or to where nothing may be read.
        Err(_) => "nothing".to_owned(),
    };
    Ok(KeyFile { mode: FileMode::Link, content: of_texts([target.as_str(), behind.as_str()]) })
}

/// Returns the digest of a file.
fn content(mut file: impl io::Read, buffer: &mut [u8]) -> io::Result<Sum> {
    let mut digest = Sha256::new();
    loop {
        match file.read(buffer) {
            Ok(0) => return Ok(Sum::end(digest)),
            Ok(count) => digest.update(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Tells whether a file can be run, as git and the kernel have it: the owner is who runs it.
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    metadata.permissions().mode() & 0o100 != 0
}

/// Tells whether nothing stands in a place.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_utf8_is_listed_like_any_other() {
        let mut tree = ListedTree::default();
        let id = "a".repeat(40);
        let tracked = |mode: &str| format!("H {mode} {id} 0\tsrc/").into_bytes();
        for (head, name) in [
            (tracked("100644"), &b"caf\xe9"[..]),
            (tracked("120000"), &b"li\xe9n"[..]),
            (tracked("160000"), &b"m\xe9"[..]),
            (b"? src/".to_vec(), &b"n\xe9w"[..]),
            (b"? src/".to_vec(), &b"n\xe9sted/"[..]),
        ] {
            add(&mut tree, &[head.as_slice(), name].concat()).unwrap();
        }
        let named = |name: &[u8]| gitpath::to_text(&[&b"src/"[..], name].concat());
        assert_eq!(tree.tracked, BTreeSet::from([named(b"caf\xe9"), named(b"li\xe9n")]));
        assert_eq!(tree.links, BTreeSet::from([named(b"li\xe9n")]));
        assert_eq!(tree.submodules.into_keys().collect::<Vec<_>>(), [named(b"m\xe9")]);
        assert_eq!(tree.untracked, BTreeSet::from([named(b"n\xe9w")]));
        assert_eq!(tree.nested, BTreeSet::from([named(b"n\xe9sted")]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "git is found as this process was")]
    fn a_repository_in_an_ignored_folder_that_is_named_is_listed_as_one() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        let path = std::env::var("PATH").unwrap();
        let git = Git::new(top, BTreeMap::from([("PATH".to_owned(), path)]));
        for file in ["vendor/lib/x", "vendor/own", "other/lib/x", "other/own"] {
            fs_err::create_dir_all(top.join(file).parent().unwrap()).unwrap();
            fs_err::write(top.join(file), "x").unwrap();
        }
        fs_err::write(top.join(".gitignore"), "/vendor\n/other\n").unwrap();
        for repository in [".", "vendor/lib", "other/lib"] {
            git.bytes(&Call::new("init").with(&["-q"]).paths([repository.to_owned()]), &[]).unwrap();
        }
        let strings = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
        for named in ["vendor", "vendor/lib", "vendor/lib/x"] {
            let tree = listed(&git, [named].into_iter()).unwrap();
            assert_eq!(tree.nested, strings(&["vendor/lib"]), "{named}");
            let files = if named == "vendor" { strings(&["vendor/own"]) } else { BTreeSet::new() };
            assert_eq!(tree.named, files, "{named}");
        }
        assert_eq!(listed(&git, std::iter::empty()).unwrap().nested, BTreeSet::new());
    }
}
