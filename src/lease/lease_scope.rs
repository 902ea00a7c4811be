//! The scopes of a lease: paths as every machine sees them, so relative to the top of the repository; and their digest,
//! by which two machines that lock the same paths meet at the same ref.

use serde::{Deserialize, Serialize};

use crate::base::sum::Sum;
use crate::base::territory::{ScopePath, Territory};
use crate::base::text::head;

/// How many hexadecimal digits a scope hash has: 64 bits, which do not meet by chance.
const HASH_DIGITS: usize = 16;

/// Returns the digest of some scopes, whatever their order and their spelling: the first 16 hexadecimal digits of the
/// SHA-256 of the JSON list of all of them, sorted and each once. A scope is relative to the top of the repository, or
/// absolute where it lies outside of it: `src` and `./src/` are the same, `.` is the whole repository.
pub fn scope_hash<T: AsRef<str>>(scopes: &[T]) -> String {
    let scopes = Scopes::new(scopes.iter().map(AsRef::as_ref));
    let listed = serde_json::to_string(&scopes).expect("paths are texts, which are JSON");
    head(&Sum::of(listed.as_bytes()).to_string(), HASH_DIGITS).to_owned()
}

/// Paths that are locked together: sorted, each once, written in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Reads paths that are relative to the top of the repository, or absolute where they lie outside of it.
    pub fn new<'s>(scopes: impl IntoIterator<Item = &'s str>) -> Self {
        let mut all: Vec<String> = scopes.into_iter().map(plain).collect();
        all.sort();
        all.dedup();
        Self(all)
    }

    /// Reads what a run claims on this machine, where the top of the repository is `top`. A path that holds the whole
    /// repository also stands for it.
    pub fn of(territory: &Territory, top: &ScopePath) -> Self {
        let mut all = Vec::new();
        for path in &territory.paths {
            let seen = path.seen_from(top);
            // `/` or a parent of the repository is absolute, and would meet nobody who locks a path
            // inside.
            if seen.starts_with('/') && path.holds(top) {
                all.push(".".to_owned());
            }
            all.push(seen);
        }
        Self::new(all.iter().map(String::as_str))
    }

    /// Returns the paths.
    pub fn paths(&self) -> &[String] {
        &self.0
    }

    /// Tells whether there are none, so that nothing is locked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a path of these and one of the others that overlap: by whole components, as the scopes of runs on one
    /// machine do.
    pub fn meets<'s>(&'s self, other: &'s Self) -> Option<(&'s str, &'s str)> {
        let (ours, theirs) = (self.territory(), other.territory());
        let (our, their) = ours.meets(&theirs)?;
        let at = |all: &[ScopePath], one: &ScopePath| all.iter().position(|path| path == one);
        let (our, their) = (at(&ours.paths, our)?, at(&theirs.paths, their)?);
        Some((&self.0[our], &other.0[their]))
    }

    /// Returns the paths with the repository in a place of its own, so that no path outside of it lies in it.
    fn territory(&self) -> Territory {
        let tree = ScopePath::from(String::new());
        let place = |path: &String| match path.strip_prefix('/') {
            Some(outside) => ScopePath::from(format!("/outside/{outside}")),
            None => ScopePath::from(format!("/inside/{path}")),
        };
        Territory { paths: self.0.iter().map(place).collect(), tree }
    }
}

impl From<Vec<String>> for Scopes {
    fn from(paths: Vec<String>) -> Self {
        Self::new(paths.iter().map(String::as_str))
    }
}

impl From<Scopes> for Vec<String> {
    fn from(Scopes(paths): Scopes) -> Self {
        paths
    }
}

/// Writes a path in the one way: `src` for `./src/`, `.` for the whole repository. `..` leads nowhere above the top, and
/// a NUL, which no real path holds, does not end one.
fn plain(path: &str) -> String {
    let absolute = ScopePath::from(path.replace('\0', "\u{fffd}"));
    if path.starts_with('/') {
        absolute.to_string()
    } else {
        absolute.seen_from(&ScopePath::from(String::new()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_same_paths_have_the_same_hash_however_they_are_written() {
        // Pinned: other tools and other versions compute it, too.
        assert_eq!(scope_hash(&["."]), "19a3f6872c351832");
        assert_eq!(scope_hash(&["src", "docs"]), "72ab3cadb3547b46");
        let same: [&[&str]; 5] = [
            &["docs", "src"],
            &["src", "docs", "src"],
            &["./src/", "docs//"],
            &["a/../src", "docs/."],
            &["src", "docs"],
        ];
        for scopes in same {
            assert_eq!(scope_hash(scopes), scope_hash(&["src", "docs"]), "{scopes:?}");
        }
        let others: [&[&str]; 6] =
            [&["src docs"], &["src/docs"], &["srcdocs"], &["src"], &["Src", "docs"], &["/src", "docs"]];
        for scopes in others {
            assert_ne!(scope_hash(scopes), scope_hash(&["src", "docs"]), "{scopes:?}");
        }
    }

    #[test]
    fn scopes_meet_by_whole_components() {
        for (one, other, expected) in [
            (&["."][..], &["src/a"][..], true),
            (&["src/a"], &["src/ab"], false),
            (&["src/a"], &["src/a/b"], true),
            (&["src", "docs"], &["docs"], true),
            (&[], &["."], false),
            (&["/cache/x"], &["."], false),
            (&["/cache/x"], &["cache/x"], false),
            (&["/cache/x"], &["/cache"], true),
            (&["/"], &["."], false),
        ] {
            let (a, b) = (Scopes::new(one.iter().copied()), Scopes::new(other.iter().copied()));
            assert_eq!(a.meets(&b).is_some(), expected, "{one:?} {other:?}");
            assert_eq!(b.meets(&a).is_some(), expected, "{other:?} {one:?}");
        }
        let (a, b) = (Scopes::new(["x", "src"]), Scopes::new(["src/a", "y"]));
        assert_eq!(a.meets(&b), Some(("src", "src/a")));
    }

    #[test]
    fn what_a_run_claims_is_seen_from_the_top_of_the_repository() {
        let path = |text: &str| ScopePath::from(text.to_owned());
        let tree = path("/home/me/repo/part");
        let paths = ["src", ".", "../other", "../..", "/cache"].map(|text| tree.join(text)).into();
        let scopes = Scopes::of(&Territory { tree, paths }, &path("/home/me/repo"));
        assert_eq!(scopes.paths(), [".", "/cache", "/home/me", "other", "part", "part/src"]);
    }

    fn any_scopes() -> impl Strategy<Value = Vec<String>> {
        let part = prop::sample::select(vec!["a", "b", "ab", ".", "..", "", "\0", "\u{202e}"]);
        let path = prop::collection::vec(part, 0..4).prop_map(|parts| parts.join("/"));
        prop::collection::vec(path, 0..4)
    }

    proptest! {
        #[test]
        fn the_hash_tells_sets_of_paths_apart(one in any_scopes(), other in any_scopes()) {
            let of = |all: &[String]| Scopes::new(all.iter().map(String::as_str));
            let (a, b) = (of(&one), of(&other));
            let hash = scope_hash(&one);
            prop_assert_eq!(hash == scope_hash(&other), a == b);
            prop_assert_eq!(&hash, &scope_hash(a.paths()));
            prop_assert!(hash.len() == HASH_DIGITS && hash.bytes().all(crate::base::text::is_hex));
            // Written and read again they are the same.
            let text = serde_json::to_string(&a).unwrap();
            prop_assert_eq!(serde_json::from_str::<Scopes>(&text).unwrap(), a);
        }

        #[test]
        fn overlap_is_mutual(one in any_scopes(), other in any_scopes()) {
            let of = |all: &[String]| Scopes::new(all.iter().map(String::as_str));
            let (a, b) = (of(&one), of(&other));
            prop_assert_eq!(a.meets(&b).is_some(), b.meets(&a).is_some());
            prop_assert_eq!(a.meets(&a).is_some(), !a.is_empty());
        }
    }
}
