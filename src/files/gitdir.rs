//! Finds the git directory of a working tree without git. What lies in there is out of the reach of `git clean`,
//! `git stash` and `git add`, whatever an action asks them for.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::{git_includes, place, read};

/// The largest `.git` or `commondir` file that is read, in bytes: each holds one path.
const MAX_LINK: u64 = 64 * 1024;

/// The git directory of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirectory {
    /// The root of the working tree.
    pub root: PathBuf,
    /// The directory of this working tree alone.
    pub own: PathBuf,
    /// The directory that it shares with the other working trees of the repository; mostly the same.
    pub shared: PathBuf,
}

/// What git reads in every working tree, and opens without a look at what it is.
const READ_IN_TREE: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".loops/.gitignore"];

/// The same in the git directory of a working tree, and in the one that it shares.
const READ_IN_GIT: [&str; 15] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "index",
    "packed-refs",
    "shallow",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
    "objects/pack/multi-pack-index",
];

/// Names a pipe or a device that stands in the place of a file which git reads in the working tree around a directory: it
/// would wait for who writes there.
pub fn waited_for(directory: &Path) -> Option<PathBuf> {
    let found = named(directory)?;
    let in_tree = READ_IN_TREE.map(|name| found.root.join(name));
    let in_git =
        [&found.own, &found.shared].into_iter().flat_map(|git| READ_IN_GIT.map(|name| git.join(name)));
    let fixed = in_tree.into_iter().chain(in_git).chain(branch(&found)).find(|path| is_waited_for(path));
    fixed.or_else(|| {
        let configs = [found.shared.join("config"), found.own.join("config.worktree")];
        // The usual way to say that there is no such file.
        let is_none = |path: &Path| path == Path::new("/dev/null");
        let opened = git_includes::opened_by(&configs, &found.root).into_iter();
        opened.filter(|path| !is_none(path)).find(|path| is_waited_for(path))
    })
}

/// Tells whether who opens a file there may have to wait.
fn is_waited_for(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_char_device()
    })
}

/// Returns the file of the branch that is checked out.
fn branch(git: &GitDirectory) -> Option<PathBuf> {
    let head = git.own.join("HEAD");
    // Another kind of file is found above.
    let text = head.is_file().then(|| read::text(&head, MAX_LINK).ok()).flatten()?;
    let name = text.strip_prefix("ref: ")?.trim();
    // `HEAD` is written by actions too; a name outside of `refs` would lead the look anywhere.
    name.starts_with("refs/").then(|| git.shared.join(name))
}

/// Finds the git directory of the working tree around a directory.
pub fn around(directory: &Path) -> Option<GitDirectory> {
    // A directory of this name need not be git's.
    named(directory).filter(|found| found.own.join("HEAD").is_file() && found.shared.join("objects").is_dir())
}

/// Returns the git directory that the working tree around a directory names, whether or not it is one of git.
pub fn named(directory: &Path) -> Option<GitDirectory> {
    let root = place::repository(directory)?;
    let link = root.join(".git");
    // In a worktree and a submodule, `.git` is a file that names the directory.
    let own = if link.is_dir() {
        link
    } else {
        root.join(read::text(&link, MAX_LINK).ok()?.strip_prefix("gitdir:")?.trim())
    };
    let shared = match read::text(&own.join("commondir"), MAX_LINK) {
        Ok(path) => own.join(path.trim()),
        Err(_) => own.clone(),
    };
    Some(GitDirectory { root: root.to_owned(), own, shared })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(directory: &Path, arguments: &[&str]) {
        let isolated = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
        let mut command = std::process::Command::new("git");
        command.arg("-C").arg(directory).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]);
        assert!(command.args(arguments).envs(isolated).output().unwrap().status.success(), "{arguments:?}");
    }

    #[test]
    fn a_working_tree_has_its_own_directory_and_the_shared_one() {
        let directory = tempfile::tempdir().unwrap();
        let (main, other) = (directory.path().join("main"), directory.path().join("other"));
        fs_err::create_dir_all(main.join("sub")).unwrap();
        assert_eq!(around(&main), None);
        fs_err::create_dir(main.join(".git")).unwrap();
        assert_eq!(around(&main), None, "a directory of this name is not a repository");
        git(&main, &["init", "-q"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "one"]);
        git(&main, &["worktree", "add", "-q", other.to_str().unwrap()]);
        let of_main = around(&main.join("sub")).unwrap();
        assert_eq!(
            (&of_main.root, &of_main.own, &of_main.shared),
            (&main, &main.join(".git"), &main.join(".git"))
        );
        let of_other = around(&other).unwrap();
        assert_eq!(of_other.root, other);
        assert!(of_other.own.ends_with("main/.git/worktrees/other"), "{of_other:?}");
        assert_eq!(of_other.shared.canonicalize().unwrap(), main.join(".git").canonicalize().unwrap());
        for pointer in ["", "gitdir: nowhere", "other", "gitdir:"] {
            fs_err::write(other.join(".git"), pointer).unwrap();
            assert_eq!(around(&other), None, "{pointer}");
        }
    }
}
