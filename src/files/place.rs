//! Resolves paths with all symbolic links, for a name alone does not say where a file is.

use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns a path with all links followed; of a missing file, follows the links of the part that exists.
pub fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = path.ancestors().find_map(|above| Some((above, fs_err::canonicalize(above).ok()?)));
    match there {
        Some((above, real)) if above == path => real,
        Some((above, real)) => real.join(path.strip_prefix(above).unwrap_or(&path)),
        None => path,
    }
}

/// Returns the directory that a file belongs to by its name: the root of the repository around it, else the directory
/// that holds `marker`, else the one that it is in.
pub fn home(file: &Path, marker: &str) -> PathBuf {
    let file = named(file);
    let directory = file.parent().unwrap_or(&file);
    let has_the_name = |above: &&Path| above.file_name().is_some_and(|name| name == marker);
    let home =
        repository(directory).or_else(|| directory.ancestors().find(has_the_name).and_then(Path::parent));
    resolved(home.unwrap_or(directory))
}

/// Returns the root of the repository around a directory.
pub fn repository(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|above| above.join(".git").exists())
}

/// Refuses a file that belongs to a directory by its name, and lies elsewhere.
pub fn stays_at_home(file: &Path, marker: &str) -> io::Result<()> {
    if resolved(file).starts_with(home(file, marker)) {
        return Ok(());
    }
    let why = "a link on the way to it leads out of the repository";
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

/// Returns a path without `.` and `..`, and with its links as they are.
pub fn named(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.components().fold(PathBuf::new(), |mut clean, part| {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
        clean
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_belongs_to_what_its_name_says_whatever_links_there_are() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(directory.path()).unwrap();
        let at = |name: &str| root.join(name);
        for name in ["work/.git", "work/.loops/deep", "work/below", "plain/.loops", "plain/below", "outside"]
        {
            fs_err::create_dir_all(at(name)).unwrap();
        }
        fs_err::write(at("outside/file"), "").unwrap();
        symlink(at("outside/file"), at("work/.loops/link")).unwrap();
        symlink(at("outside"), at("work/way")).unwrap();
        symlink("deep/file", at("work/.loops/inside")).unwrap();
        let check = |name: &str, expected: &str, stays: bool| {
            assert_eq!(home(&at(name), ".loops"), at(expected), "{name}");
            assert_eq!(stays_at_home(&at(name), ".loops").is_ok(), stays, "{name}");
        };
        check("work/.loops/deep/a", "work", true);
        check("work/.loops/link", "work", false);
        check("work/way/file", "work", false);
        check("work/way/new", "work", false);
        check("work/.loops/inside", "work", true);
        check("work/below/../../outside/file", "outside", true);
        check("plain/.loops/a", "plain", true);
        check("plain/below/a", "plain/below", true);
    }
}
