//! The paths that a run claims for itself, and whether the claims of two runs meet. Paths come in absolute and are
//! compared by their components; nothing here looks at a file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An absolute path without `.`, `..`, empty components and a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct ScopePath(Vec<String>);

impl ScopePath {
    /// Reads a path as seen from this one: an absolute path stands for itself.
    #[must_use]
    pub fn join(&self, path: &str) -> Self {
        let mut components = if path.starts_with('/') { Vec::new() } else { self.0.clone() };
        for component in path.split('/') {
            match component {
                "" | "." => {}
                // Above the root is the root, as for the system.
                ".." => drop(components.pop()),
                name => components.push(name.to_owned()),
            }
        }
        Self(components)
    }

    /// Tells whether the other path is this one or lies below it.
    pub fn holds(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns how many components the path has.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.holds(other) || other.holds(self)
    }

    /// Returns the path as seen from `tree`: relative where it lies below.
    pub fn seen_from(&self, tree: &Self) -> String {
        match self.0.strip_prefix(tree.0.as_slice()) {
            Some([]) => ".".to_owned(),
            Some(below) => below.join("/"),
            None => self.to_string(),
        }
    }
}

impl From<String> for ScopePath {
    fn from(path: String) -> Self {
        Self(Vec::new()).join(&path)
    }
}

impl From<ScopePath> for String {
    fn from(path: ScopePath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for ScopePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.join("/"))
    }
}

/// The paths of one run, and the working tree it works in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Territory {
    /// The directory in which the run works.
    pub tree: ScopePath,
    /// What it claims.
    pub paths: Vec<ScopePath>,
}

impl Territory {
    /// Returns a path of this run and a path of the other one that overlap.
    ///
    /// A run in a git worktree of its own shares no file with the checkout, even where its directory lies inside; a
    /// path outside of both trees, such as a cache, is the same for both.
    pub fn meets<'t>(&'t self, other: &'t Self) -> Option<(&'t ScopePath, &'t ScopePath)> {
        let same_tree = self.tree == other.tree;
        let is_shared = |path: &ScopePath| !self.tree.holds(path) && !other.tree.holds(path);
        let pairs = self.paths.iter().flat_map(|ours| other.paths.iter().map(move |theirs| (ours, theirs)));
        let mut overlapping = pairs.filter(|(ours, theirs)| ours.overlaps(theirs));
        overlapping.find(|(ours, theirs)| same_tree || (is_shared(ours) && is_shared(theirs)))
    }

    /// Returns the paths as people write them.
    pub fn shown(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.seen_from(&self.tree)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn territory(tree: &str, paths: &[&str]) -> Territory {
        let tree = ScopePath::from(tree.to_owned());
        Territory { paths: paths.iter().map(|path| tree.join(path)).collect(), tree }
    }

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        let (one, other) = (territory("/r/p", &[one]), territory("/r/p", &[other]));
        assert_eq!(one.meets(&other).is_some(), expected, "{one:?} {other:?}");
        assert_eq!(other.meets(&one).is_some(), expected, "{other:?} {one:?}");
    }

    #[test]
    fn paths_overlap_by_components() {
        check("src", "src", true);
        check("src", "src/", true);
        check("src", "./src", true);
        check("src", "src/api", true);
        check("src/api", "src/api2", false);
        check("src", "tests", false);
        check("src", "srcfoo", false);
        check(".", "docs/", true);
        check("", "docs", true);
        check("./", ".", true);
        check("src//api/./v1", "src/api", true);
        check("docs/../src", "src", true);
        check("docs/../src", "docs", false);
        check("/r/p/src", "src", true);
        check("/r/p", "src", true);
        check("..", "src", true);
        check("../p/src", "src", true);
        check("../q", "src", false);
        check("../q", ".", false);
        check("/", "src", true);
        check("../../../../..", "/", true);
        check("Src", "src", false);
    }

    #[test]
    fn a_worktree_shares_only_what_lies_outside_of_both() {
        let main = territory("/r", &[".", "/cache/x"]);
        let inside = territory("/r/.loops/.worktrees/a", &["."]);
        assert_eq!(main.meets(&inside), None);
        assert_eq!(inside.meets(&main), None);
        let cached = territory("/r/.loops/.worktrees/b", &["src", "/cache"]);
        assert_eq!(main.meets(&cached).unwrap().1.to_string(), "/cache");
        assert_eq!(cached.meets(&main).unwrap().0.to_string(), "/cache");
    }

    #[test]
    fn paths_are_shown_as_people_write_them() {
        let all = territory("/r/p", &[".", "./src/", "../q", "/r/p/x", "/r/pp"]);
        assert_eq!(all.shown(), [".", "src", "/r/q", "x", "/r/pp"]);
    }

    #[test]
    fn a_path_is_written_as_one_text() {
        let written = serde_json::to_string(&territory("/r", &["src"])).unwrap();
        assert_eq!(written, r#"{"tree":"/r","paths":["/r/src"]}"#);
        assert_eq!(serde_json::from_str::<Territory>(&written).unwrap(), territory("/r", &["src"]));
    }

    fn path() -> impl Strategy<Value = String> {
        let component = prop::sample::select(vec!["a", "b", "ab", ".", "..", "", "a b"]);
        prop::collection::vec(component, 0..5).prop_map(|parts| parts.join("/"))
    }

    /// The same rule, written with texts: one path followed by a slash begins with the other one so followed.
    fn by_text(one: &str, other: &str) -> bool {
        let plain = |path: &str| {
            let mut out: Vec<&str> = vec!["r"];
            for part in path.trim_start_matches('/').split('/') {
                match part {
                    "" | "." => {}
                    ".." => drop(out.pop()),
                    part => out.push(part),
                }
            }
            out.push("");
            out.join("/")
        };
        let (one, other) = (plain(one), plain(other));
        one.starts_with(&other) || other.starts_with(&one)
    }

    proptest! {
        #[test]
        fn overlap_is_mutual_and_a_matter_of_prefixes(one in path(), other in path()) {
            let (one, other) = (one.trim_start_matches('/'), other.trim_start_matches('/'));
            let (a, b) = (territory("/r", &[one]), territory("/r", &[other]));
            prop_assert_eq!(a.meets(&b).is_some(), by_text(one, other));
            prop_assert_eq!(b.meets(&a).is_some(), by_text(one, other));
            prop_assert!(a.meets(&a).is_some());
        }

        #[test]
        fn a_path_read_twice_is_the_same(path in path()) {
            let once = ScopePath::from(path);
            prop_assert_eq!(ScopePath::from(once.to_string()), once);
        }
    }
}
