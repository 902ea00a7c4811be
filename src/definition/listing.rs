//! Walks directories of loops, and names each file in them by its path without the extension. Nothing is read here.

use std::fs::FileType;
use std::path::{Path, PathBuf};

use crate::base::name::MAX_LENGTH;
use crate::files::place::resolved;

/// The directory that holds the loops of a project.
pub const DIRECTORY: &str = ".loops";

/// The extensions of loop files; a name is tried with each in turn.
pub(super) const EXTENSIONS: [&str; 2] = ["yaml", "yml"];

/// Directories of `.loops` that hold other files than loops of the project. Those of runs begin with a dot.
const RESERVED: [&str; 3] = ["runs", "tests", VENDOR];

/// The name of the file in `.loops` that says which checks are in quarantine, and is no loop.
const QUARANTINE: &str = "quarantine";

/// The directory in `.loops` that holds copies of loops from other repositories.
pub(super) const VENDOR: &str = "vendor";

/// Tells whether a directory in `.loops` holds other files than loops of the project.
pub(super) fn is_reserved(first: &str) -> bool {
    is_hidden(first) || RESERVED.contains(&first)
}

/// Returns a text without the extension of a loop file, if it has one.
pub(super) fn without_extension(text: &str) -> Option<&str> {
    EXTENSIONS.iter().find_map(|extension| text.strip_suffix(extension)?.strip_suffix('.'))
}

/// Returns the files below a directory that may be loops, with their names, in the order of the names. Of two files with
/// one name, the one that the name means comes first.
pub(super) fn below(directory: &Path) -> Vec<(String, PathBuf)> {
    let is_home = directory.file_name().is_some_and(|name| name == DIRECTORY);
    let mut walk = DirectoryWalk { home: resolved(directory), found: Vec::new() };
    walk.look(directory, "", false, if is_home { is_reserved } else { is_hidden });
    walk.found.retain(|(name, _)| !(is_home && name == QUARANTINE));
    // Paths count after names, and `a.yaml` sorts before `a.yml`, as a name is tried.
    walk.found.sort();
    walk.found
}

/// Returns the files in one directory that may be loops, with their names.
pub(super) fn inside(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
    let is_home = directory.file_name().is_some_and(|name| name == DIRECTORY);
    let mut found: Vec<_> = files
        .filter_map(|path| Some((without_extension(path.file_name()?.to_str()?)?.to_owned(), path)))
        .collect();
    found.retain(|(name, _)| !(is_home && name == QUARANTINE));
    found.sort();
    found
}

/// A walk through a directory; links that lead out of it or around are not followed.
struct DirectoryWalk {
    home: PathBuf,
    found: Vec<(String, PathBuf)>,
}

impl DirectoryWalk {
    /// Looks at everything in a directory whose name is not skipped; one that cannot be read has no loops.
    fn look(&mut self, directory: &Path, prefix: &str, is_linked: bool, skips: fn(&str) -> bool) {
        for entry in fs_err::read_dir(directory).into_iter().flatten().filter_map(Result::ok) {
            let (path, file_name) = (entry.path(), entry.file_name());
            let (Ok(kind), Some(file_name)) = (entry.file_type(), file_name.to_str()) else { continue };
            if path_is_directory(&path, kind) {
                // One link at most on the way: links between directories could go round for ever.
                let follows = !kind.is_symlink() || (!is_linked && self.leads_further(&path));
                // Any deeper, and the path would be too long for the name of a loop.
                if !skips(file_name) && follows && prefix.len() < MAX_LENGTH {
                    let prefix = format!("{prefix}{file_name}/");
                    self.look(&path, &prefix, is_linked || kind.is_symlink(), is_hidden);
                }
            } else if let Some(name) =
                without_extension(file_name).filter(|name| !is_hidden(name) && path.is_file())
            {
                self.found.push((format!("{prefix}{name}"), path));
            }
        }
    }

    /// Tells whether a link leads to another directory of the same tree, which is not around the link itself.
    fn leads_further(&self, link: &Path) -> bool {
        let (target, here) = (resolved(link), resolved(link.parent().unwrap_or(link)));
        target.starts_with(&self.home) && !here.starts_with(&target)
    }
}

fn path_is_directory(path: &Path, kind: FileType) -> bool {
    kind.is_dir() || (kind.is_symlink() && path.is_dir())
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn loops_are_named_by_their_paths_wherever_they_are_meant_to_lie() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(".loops").join(path);
        for path in [
            "a.yaml",
            "a.yml",
            "b.yml",
            "notes.txt",
            ".hidden.yaml",
            "dir/kid.yaml",
            "dir/deep/kid.yml",
            "dir/tests/t.yaml",
            "dir/.x/h.yaml",
            "tests/t.yaml",
            "runs/r.yaml",
            "vendor/o/v.yaml",
            ".running/r.yaml",
            ".history/h.yaml",
            "../outside/o.yaml",
            "c.yaml/in.yaml",
        ] {
            fs_err::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs_err::write(at(path), "").unwrap();
        }
        symlink("..", at("dir/around")).unwrap();
        symlink("../outside", at("out")).unwrap();
        symlink("dir/deep", at("inside")).unwrap();
        symlink("nowhere.yaml", at("dangling.yaml")).unwrap();
        let names: Vec<_> = below(&at("")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["a", "a", "b", "c.yaml/in", "dir/deep/kid", "dir/kid", "dir/tests/t", "inside/kid"]
        );
        assert_eq!(below(&at(""))[0].1, at("a.yaml"));
        let names: Vec<_> = below(&at("dir")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["deep/kid", "kid", "tests/t"]);
        assert!(below(&at("nowhere")).is_empty());
    }
}
