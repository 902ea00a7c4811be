//! Follows links in paths, also in those of which only a part exists.

use std::path::{Component, Path, PathBuf};

/// Follows the links in a path as far as it exists.
pub fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = known.canonicalize() {
            return rest.into_iter().rev().fold(real, |path: PathBuf, part: Component<'_>| path.join(part));
        }
        let (Some(parent), Some(last)) = (known.parent(), known.components().next_back()) else {
            return path.to_owned();
        };
        rest.push(last);
        known = parent;
    }
}

/// Returns the root of the repository that a directory lies in; without a repository, that of the job's workspace, or
/// else the directory itself. All links are followed.
pub fn repository(directory: &Path, workspace: Option<&Path>) -> PathBuf {
    let directory = followed(directory);
    let root = directory.ancestors().find(|root| root.join(".git").exists()).map(Path::to_owned);
    let workspace = || workspace.map(followed).filter(|workspace| directory.starts_with(workspace));
    root.or_else(workspace).unwrap_or(directory)
}

/// Follows the links of a path as far as it exists.
pub fn followed(path: &Path) -> PathBuf {
    // A path that does not exist cannot be canonicalized, so what stands above it is.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    match there {
        Some((there, real)) => match absolute.strip_prefix(there) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => absolute,
        },
        None => absolute,
    }
}
