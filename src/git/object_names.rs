//! Holds objects to their names. Git believes what it finds under a name, and an action can write to the objects of a repository: a
//! forged one would make the judges of a fix those of the commit.

use std::collections::HashMap;

use super::blobs::PrintedObject;
use super::call::Call;
use super::runner::Git;
use super::tree_list::{ListedEntry, entries};
use crate::base::object::{ObjectId, id_of};

/// Tells whether an object has its name from what is in it.
pub(crate) fn is_named(id: &ObjectId, kind: &str, content: &[u8]) -> bool {
    id_of(kind, content, id.as_str().len()) == id.as_str()
}

/// Lists what is in a tree and all trees below it; nothing where git fails, prints something else, or a tree is not what its name
/// says.
pub(crate) fn listed<T>(
    git: &Git,
    tree: &ObjectId,
    take: impl Fn(&ListedEntry<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let list = Call::new("ls-tree").with(&["-r", "-t", "-z", "--full-tree"]).id(tree);
    let printed = git.bytes(&list, &[]).ok()?;
    let entries = entries(&printed).collect::<Option<Vec<_>>>()?;
    let unnamed = unnamed(tree, &entries);
    let files = entries.iter().filter(|entry| !entry.is_tree).map(take).collect::<Option<Vec<T>>>()?;
    (unnamed.is_empty() || are_named(git, &unnamed)).then_some(files)
}

/// Puts the trees of a list together again, and returns those that have other names then.
fn unnamed<'e>(top: &'e ObjectId, entries: &'e [ListedEntry<'_>]) -> Vec<&'e ObjectId> {
    let mut contents: HashMap<&[u8], Vec<u8>> = HashMap::from([(&b""[..], Vec::new())]);
    for entry in entries {
        let cut = entry.path.iter().rposition(|byte| *byte == b'/');
        let (folder, name) =
            cut.map_or((&b""[..], entry.path), |cut| (&entry.path[..cut], &entry.path[cut + 1..]));
        let content = contents.entry(folder).or_default();
        content.extend([entry.mode.trim_start_matches('0').as_bytes(), b" ", name, b"\0"].concat());
        content.extend(raw(&entry.id));
    }
    let trees = entries.iter().filter(|entry| entry.is_tree).map(|entry| (entry.path, &entry.id));
    let is_named =
        |path: &[u8], id: &ObjectId| is_named(id, "tree", contents.get(path).map_or(&[], Vec::as_slice));
    std::iter::once((&b""[..], top))
        .chain(trees)
        .filter(|(path, id)| !is_named(path, id))
        .map(|(_, id)| id)
        .collect()
}

/// Tells whether trees have the names of what git prints of them. Old repositories have modes in their trees that lists show
/// otherwise.
fn are_named(git: &Git, trees: &[&ObjectId]) -> bool {
    let asked: String = trees.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    let Ok(printed) = git.bytes(&Call::new("cat-file").with(&["--batch"]), asked.as_bytes()) else {
        return false;
    };
    let mut rest = printed.as_slice();
    trees.iter().all(|id| {
        let Some(object) = PrintedObject::first(rest) else { return false };
        rest = object.rest;
        is_named(id, "tree", object.content)
    })
}

/// Returns the bytes of a name.
fn raw(id: &ObjectId) -> Vec<u8> {
    let digit =
        |byte: u8| (byte as char).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    id.as_str()
        .as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, next| byte << 4 | digit(*next)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write as _;
    use std::path::Path;

    use super::*;

    fn git(top: &Path, arguments: &[&str]) -> String {
        let mut command = std::process::Command::new("git");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
        let output = command.current_dir(top).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Makes a repository, and returns its tree.
    fn repository(top: &Path, format: &str) -> ObjectId {
        git(top, &["init", "--quiet", &format!("--object-format={format}")]);
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        // A directory is sorted as if its name ended with a slash.
        for path in ["a.txt", "a/b/c", "a-b", "z"] {
            std::fs::write(top.join(path), path).unwrap();
        }
        git(top, &["add", "."]);
        ObjectId::parse(&git(top, &["write-tree"])).unwrap()
    }

    fn paths(top: &Path, tree: &ObjectId) -> Option<Vec<String>> {
        let env = [("PATH", "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin"), ("HOME", "/nonexistent")];
        let env: BTreeMap<_, _> = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let path = |entry: &ListedEntry<'_>| Some(String::from_utf8_lossy(entry.path).into_owned());
        listed(&Git::new(top, env), tree, path)
    }

    #[test]
    fn what_is_listed_has_its_name() {
        for format in ["sha1", "sha256"] {
            let place = tempfile::tempdir().unwrap();
            let tree = repository(place.path(), format);
            assert_eq!(paths(place.path(), &tree).unwrap(), ["a-b", "a.txt", "a/b/c", "z"], "{format}");
        }
    }

    #[test]
    fn a_tree_that_was_forged_is_not_listed() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path();
        let tree = repository(top, "sha1");
        let inner = git(top, &["rev-parse", &format!("{tree}:a")]);
        let other = git(top, &["rev-parse", &format!("{tree}:a/b")]);
        let at = |id: &str| top.join(".git/objects").join(&id[..2]).join(&id[2..]);
        // The tree below stands under the name of the one above.
        std::fs::remove_file(at(&inner)).unwrap();
        std::fs::copy(at(&other), at(&inner)).unwrap();
        assert_eq!(paths(top, &tree), None);
    }

    #[test]
    fn an_object_is_named_by_its_kind_and_its_content() {
        let place = tempfile::tempdir().unwrap();
        git(place.path(), &["init", "--quiet"]);
        let mut file = std::fs::File::create(place.path().join("f")).unwrap();
        file.write_all(b"content").unwrap();
        let id = ObjectId::parse(&git(place.path(), &["hash-object", "f"])).unwrap();
        assert!(is_named(&id, "blob", b"content"));
        assert!(!is_named(&id, "tree", b"content") && !is_named(&id, "blob", b"contents"));
    }
}
