//! The objects of a working tree on their way into a repository: the file is read by ourselves as far as it is not a
//! pack, the pack is first unpacked apart from the repository, and what it holds has to be what the manifest says.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::brought::{Protected, unfit};
use super::manifest::SavedTree;
use crate::base::object::ObjectId;
use crate::files::{read, transient};
use crate::git::call::{Call, alternate};
use crate::git::error::TreeError;
use crate::git::runner::Git;

/// What stands before the objects is a few lines.
const MOST_HEADER: u64 = 4096;

/// The refs in the file.
pub(super) const TREE: &str = "refs/ll-loop/tree";
pub(super) const INDEX: &str = "refs/ll-loop/index";

/// Writes what stands before the objects.
pub(super) fn header(base: &ObjectId, commit: &ObjectId, index: Option<&ObjectId>) -> String {
    // Version 2 of the format knows SHA-1 only; the length of an id tells which hash the repository
    // uses.
    let version = match base.as_str().len() {
        40 => "# v2 git bundle\n",
        _ => "# v3 git bundle\n@object-format=sha256\n",
    };
    let index = index.map_or_else(String::new, |index| format!("{index} {INDEX}\n"));
    format!("{version}-{base} where the run began\n{commit} {TREE}\n{index}\n")
}

/// Opens the file at its pack. Nothing else may stand before it than what the manifest says: no other commit, no ref,
/// and no capability.
fn pack(path: &Path, saved: &SavedTree) -> Result<File, TreeError> {
    let mut file = read::open(path).map_err(io::Error::from)?;
    let mut start = Vec::new();
    (&mut file).take(MOST_HEADER).read_to_end(&mut start)?;
    let expected = header(&saved.base, &saved.commit, saved.index.as_ref());
    let rest = start
        .strip_prefix(expected.as_bytes())
        .ok_or_else(|| TreeError::unfit("its objects are not the ones that its manifest names"))?;
    if !rest.starts_with(b"PACK") {
        return Err(TreeError::unfit("its objects are not a pack"));
    }
    file.seek(SeekFrom::Start(expected.len() as u64))?;
    Ok(file)
}

/// Why objects are not taken.
pub(super) enum ObjectsError {
    /// They are not what the manifest says, or cannot be read.
    Damaged(String),
    /// They would bring what no bundle may bring.
    Unfit(String),
}

impl<E: Into<TreeError>> From<E> for ObjectsError {
    fn from(error: E) -> Self {
        Self::Damaged(error.into().to_string())
    }
}

/// Looks at all objects without putting one into the repository.
pub(super) fn check(
    git: &Git,
    top: &Path,
    saved: &SavedTree,
    path: &Path,
    protected: &Protected,
) -> Result<(), ObjectsError> {
    let objects = top.join(git.line(&Call::new("rev-parse").with(&["--git-path", "objects"]))?);
    let place = transient::directory("ll-objects-")?;
    let apart = git
        .with("GIT_OBJECT_DIRECTORY", place.path())
        .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&objects.to_string_lossy()));
    // Strictly here, so that broken objects and links are found before anything reaches the
    // repository.
    unpack(&apart, saved, path, true)?;
    if apart.id(&Call::new("rev-parse").with(&["--verify", "--quiet"]).ids("", &saved.commit, "^{tree}"))?
        != saved.tree
    {
        return Err(ObjectsError::Damaged("its tree is not the one that its manifest names".to_owned()));
    }
    let ancestor = Call::new("merge-base").with(&["--is-ancestor"]).id(&saved.base).id(&saved.head);
    if saved.base != saved.head && apart.line(&ancestor).is_err() {
        // Without this, the pack could bring any history, and the branch of the run would become
        // it.
        return Err(ObjectsError::Damaged(
            "it does not go on from the commit where the run began".to_owned(),
        ));
    }
    for commit in std::iter::once(&saved.commit).chain(&saved.index) {
        let parents = Call::new("rev-list").with(&["--parents", "--max-count=1"]).id(commit);
        // A second parent could bring history that was not checked.
        if apart.line(&parents)? != format!("{commit} {}", saved.head) {
            return Err(ObjectsError::Damaged(
                "it does not go on from the commit where the run was left".to_owned(),
            ));
        }
    }
    // Only what a checkout of the base does not have yet can bring something.
    for tree in
        [&saved.commit, &saved.head].into_iter().chain(&saved.index).filter(|tree| **tree != saved.base)
    {
        if let Some(found) = unfit(&apart, &saved.base, tree, protected)?.first() {
            return Err(ObjectsError::Unfit(format!("`{}`: {}", found.change.shown(), found.why)));
        }
    }
    Ok(())
}

/// Puts all objects into the repository.
pub(super) fn unpack(git: &Git, saved: &SavedTree, path: &Path, strictly: bool) -> Result<(), TreeError> {
    let index = Call::new("index-pack").with(&["--stdin", "--fix-thin"]);
    let index = if strictly { index.with(&["--strict"]) } else { index };
    git.read_from(&index, pack(path, saved)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedTree {
        let id = |digit: &str| ObjectId::parse(&digit.repeat(40)).unwrap();
        SavedTree {
            base: id("1"),
            head: id("1"),
            commit: id("2"),
            tree: id("3"),
            index: Some(id("4")),
            changed: true,
            missing: None,
        }
    }

    #[test]
    fn nothing_stands_before_the_pack_but_what_the_manifest_says() {
        let good = header(&saved().base, &saved().commit, saved().index.as_ref());
        let opens = |text: String| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            pack(file.path(), &saved())
        };
        let mut rest = String::new();
        opens(format!("{good}PACK and more")).unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "PACK and more");
        for spoilt in [
            String::new(),
            good.clone(),
            format!("{good}no pack"),
            format!("{}PACK", good.replace("v2", "v3")),
            format!("{}PACK", good.replace("# v2 git bundle\n", "# v3 git bundle\n@filter=blob:none\n")),
            format!("{}PACK", good.replace(&"2".repeat(40), &"5".repeat(40))),
            format!("{}PACK", good.replace(&"1".repeat(40), "--output=x")),
            format!("{}PACK", good.replace("refs/ll-loop/tree", "refs/heads/main")),
            format!("{}PACK", good.replace("\n\n", &format!("\n{} refs/heads/main\n\n", "2".repeat(40)))),
        ] {
            assert!(opens(spoilt.clone()).is_err(), "{spoilt}");
        }
    }
}
