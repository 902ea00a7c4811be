//! What of a working tree a hermetic run hides from its actions: all that is neither an input nor a judge. A folder in which
//! nothing is declared is hidden as a whole.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::key::KeyParts;
use super::no_key::NoKey;
use crate::base::gitpath;

/// The most places that are hidden: each of them costs every action time.
pub const MOST_HIDDEN: usize = 1000;

/// What the files of a run are in, which its actions need.
const OF_RUNS: &str = ".loops/.running";

/// Finds what is to be hidden below the top of a working tree, each by its path from there.
///
/// # Errors
/// A folder cannot be read, or too much would have to be hidden.
pub fn undeclared(top: &Path, parts: &KeyParts) -> Result<Vec<String>, NoKey> {
    let judges = parts.judges.iter().filter_map(|(path, file)| file.as_ref().map(|_| path));
    let declared: BTreeSet<&str> = parts.inputs.keys().chain(judges).map(String::as_str).collect();
    let mut hidden = Vec::new();
    let mut left = vec![String::new()];
    while let Some(folder) = left.pop() {
        let unreadable = |why| NoKey::Unreadable { path: folder.clone(), why };
        let place = top.join(OsStr::from_bytes(&gitpath::to_bytes(&folder)));
        for entry in fs_err::read_dir(place).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = gitpath::to_text(entry.file_name().as_bytes());
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // What a link leads to is hidden by its own path, and must not be hidden by that of the link.
            let is_link = entry.file_type().map_err(unreadable)?.is_symlink();
            if is_link || declared.contains(path.as_str()) || path == OF_RUNS {
                continue;
            }
            let holds_some = holds(&declared, &path)
                || OF_RUNS.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/'));
            if holds_some {
                left.push(path);
                continue;
            }
            if hidden.len() == MOST_HIDDEN {
                return Err(NoKey::TooMuchHidden(MOST_HIDDEN));
            }
            hidden.push(path);
        }
    }
    hidden.sort();
    Ok(hidden)
}

/// Tells whether something below a folder is declared.
fn holds(declared: &BTreeSet<&str>, folder: &str) -> bool {
    let below = format!("{folder}/");
    // All paths below a folder stand side by side in the set, so the next one decides.
    declared.range(below.as_str()..).next().is_some_and(|path| path.starts_with(&below))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::key::{KeyFile, of_texts};
    use super::*;
    use crate::base::file_mode::FileMode;
    use crate::base::sum::Sum;

    #[test]
    fn everything_but_what_is_declared_is_hidden_folders_as_a_whole() {
        let top = tempfile::tempdir().unwrap();
        for path in [
            "src/a",
            "src/deep/b",
            "src.d/c",
            "docs/x",
            "docs/y",
            ".git/HEAD",
            ".loops/m.yaml",
            ".loops/.running/r",
        ] {
            let place = top.path().join(path);
            fs_err::create_dir_all(place.parent().unwrap()).unwrap();
            fs_err::write(place, "").unwrap();
        }
        std::os::unix::fs::symlink("src", top.path().join("latest")).unwrap();
        let file = KeyFile { mode: FileMode::File, content: Sum::of(b"") };
        let parts = KeyParts {
            definition: of_texts([]),
            values: of_texts([]),
            options: of_texts([]),
            inputs: [("src/a".to_owned(), file)].into(),
            judges: [("docs/x".to_owned(), Some(file)), ("docs/none".to_owned(), None)].into(),
            tools: BTreeMap::new(),
            env: BTreeMap::new(),
            platform: BTreeMap::new(),
            sandbox: of_texts([]),
        };
        let hidden = undeclared(top.path(), &parts).ok().unwrap();
        assert_eq!(hidden, [".git", ".loops/m.yaml", "docs/y", "src.d", "src/deep"]);
    }
}
