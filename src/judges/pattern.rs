//! Patterns of paths, with the rules of `.gitignore`, which everybody knows: without a slash in front of its last part
//! a pattern holds in every folder, and a folder stands for everything in it.

use std::collections::HashSet;
use std::fmt;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde_json::Value;

use crate::base::decode::{Decode, Definitions, text, text_schema};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;

/// A pattern of paths.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct PathPattern {
    source: String,
    shape: PatternShape,
}

/// What a pattern asks of a path. Nearly all that are written ask for a name, and hundreds of them are known: a regular expression
/// for each would take longer to make than most runs take to look at what changed.
#[derive(Clone)]
enum PatternShape {
    /// These parts follow each other in the path: `tests`, `**/.cargo/config`.
    Anywhere(String),
    /// The path begins with these parts: `/scripts/check.sh`.
    FromRoot(String),
    /// One part begins and ends so: `*_test.go`.
    Name { start: String, end: String },
    /// Anything else. A folder has a glob for all that is in it.
    Globs(Vec<Glob>),
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It names nothing.
    #[error("a pattern cannot be empty")]
    Empty,
    /// It leads out of the repository.
    #[error("a pattern cannot lead out of the repository")]
    Outside,
    /// It begins with `!`.
    #[error("a pattern cannot take away from others: `!` has no meaning here")]
    Negated,
    /// The rules of patterns say no.
    #[error("invalid pattern: {0}")]
    Glob(String),
}

impl PathPattern {
    /// Reads a pattern.
    pub fn parse(source: &str) -> Result<Self, PatternError> {
        if source.starts_with('!') {
            return Err(PatternError::Negated);
        }
        let (trimmed, is_local) = source.strip_prefix("./").map_or((source, false), |rest| (rest, true));
        let plain = trimmed.trim_end_matches('/');
        // As git has it: with a slash in front of its last part, a pattern holds from the root
        // alone.
        let is_anchored = is_local || plain.contains('/');
        let plain = plain.strip_prefix('/').unwrap_or(plain);
        if plain.is_empty() {
            return Err(PatternError::Empty);
        }
        if plain.split('/').any(|part| part == "..") {
            return Err(PatternError::Outside);
        }
        let shape = match PatternShape::plain(plain, is_anchored) {
            Some(shape) => shape,
            None => PatternShape::Globs(globs(plain, is_anchored, trimmed.ends_with('/'))?),
        };
        Ok(Self { source: source.to_owned(), shape })
    }
}

impl PatternShape {
    /// Reads a pattern that is compared without a regular expression.
    fn plain(pattern: &str, is_anchored: bool) -> Option<Self> {
        let (parts, is_anchored) =
            pattern.strip_prefix("**/").map_or((pattern, is_anchored), |rest| (rest, false));
        if parts.contains(SPECIAL) || parts.split('/').any(str::is_empty) {
            return None;
        }
        match parts.split_once('*') {
            None if is_anchored => Some(Self::FromRoot(parts.to_owned())),
            None => Some(Self::Anywhere(parts.to_owned())),
            Some((start, end)) if !is_anchored && !end.contains('*') && !parts.contains('/') => {
                Some(Self::Name { start: start.to_owned(), end: end.to_owned() })
            }
            Some(_) => None,
        }
    }
}

/// What has a meaning in a pattern, beside `*`.
const SPECIAL: [char; 7] = ['?', '[', ']', '{', '}', '\\', '!'];

fn globs(plain: &str, is_anchored: bool, is_folder: bool) -> Result<Vec<Glob>, PatternError> {
    let glob = if is_anchored { plain.to_owned() } else { format!("**/{plain}") };
    // A folder means all that is in it.
    let mut globs = vec![compiled(&format!("{glob}/**"))?];
    if !is_folder {
        globs.push(compiled(&glob)?);
    }
    Ok(globs)
}

fn compiled(glob: &str) -> Result<Glob, PatternError> {
    // Without this, `*` would match a slash as well.
    let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    built.map_err(|error| PatternError::Glob(error.kind().to_string()))
}

impl PathPattern {
    /// Returns it as it was written.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Tells whether it means all that is in a folder.
    pub(super) fn is_folder(&self) -> bool {
        self.source.ends_with('/')
    }
}

impl TryFrom<String> for PathPattern {
    type Error = PatternError;

    fn try_from(source: String) -> Result<Self, PatternError> {
        Self::parse(&source)
    }
}

impl PartialEq for PathPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl fmt::Debug for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathPattern({:?})", self.source)
    }
}

/// Many patterns, asked at once.
#[derive(Clone, Debug, Default)]
pub struct PathSet {
    /// By what they mean: everything, or folders alone.
    plain: [PlainSet; 2],
    globs: GlobSet,
}

/// Patterns that are compared without a regular expression.
#[derive(Clone, Debug, Default)]
struct PlainSet {
    names: HashSet<String>,
    /// Names of which only the start and the end are given.
    open_names: Vec<(String, String)>,
    /// Several parts, with a slash on either side.
    sequences: Vec<String>,
    /// Parts that a path begins with, with a slash on either side.
    from_root: Vec<String>,
}

impl PathSet {
    /// Makes one of patterns. One that is too large for the matcher means nothing.
    pub fn of<'p>(patterns: impl IntoIterator<Item = &'p PathPattern>) -> Self {
        let mut builder = GlobSetBuilder::new();
        let mut set = Self::default();
        for pattern in patterns {
            let plain = &mut set.plain[usize::from(pattern.is_folder())];
            match &pattern.shape {
                PatternShape::Anywhere(parts) if parts.contains('/') => {
                    plain.sequences.push(format!("/{parts}/"));
                }
                PatternShape::Anywhere(name) => drop(plain.names.insert(name.clone())),
                PatternShape::FromRoot(parts) => plain.from_root.push(format!("/{parts}/")),
                PatternShape::Name { start, end } => plain.open_names.push((start.clone(), end.clone())),
                PatternShape::Globs(globs) => {
                    for glob in globs {
                        builder.add(glob.clone());
                    }
                }
            }
        }
        // Each pattern was compiled alone before, so only their sum can be too large.
        set.globs = builder.build().unwrap_or_else(|_| GlobSet::empty());
        set
    }

    /// Tells whether one of the patterns means the file at a path, itself or by a folder that it is in.
    pub fn matches(&self, path: &str) -> bool {
        let [all, folders] = &self.plain;
        let folder = path.rsplit_once('/').map(|(folder, _)| folder);
        all.means(path) || folder.is_some_and(|folder| folders.means(folder)) || self.globs.is_match(path)
    }
}

impl PlainSet {
    /// Tells whether a path, or a folder that it is in, is meant.
    fn means(&self, path: &str) -> bool {
        let is_open = |part: &str| {
            let fits =
                |start: &str, end: &str| part.strip_prefix(start).is_some_and(|rest| rest.ends_with(end));
            self.open_names.iter().any(|(start, end)| fits(start, end))
        };
        if path.split('/').any(|part| self.names.contains(part) || is_open(part)) {
            return true;
        }
        if self.sequences.is_empty() && self.from_root.is_empty() {
            return false;
        }
        let path = format!("/{path}/");
        let begins = |parts: &String| path.starts_with(parts);
        self.sequences.iter().any(|parts| path.contains(parts)) || self.from_root.iter().any(begins)
    }
}

impl Decode for PathPattern {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let source = text(node, path, "a pattern of paths", out)?;
        match Self::parse(source) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let finding =
                    Diagnostic::error("pattern", FindingPlace::Value(path.clone()), error.to_string());
                let help = "patterns are those of `.gitignore`: `tests/`, `*_test.go`, `/scripts/check.sh`";
                out.push(finding.help(help));
                None
            }
        }
    }

    fn schema(_: &mut Definitions) -> Value {
        text_schema()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_compared_plainly_is_what_its_globs_mean(
            pattern in r"(\./|/|\*\*/)?([ab*.]{1,3}/){0,2}[ab*.]{1,3}/?",
            // No path of git has a part `.` or `..`.
            paths in prop::collection::vec(r"(\.?[ab][ab.]{0,2}/){0,3}\.?[ab][ab.]{0,2}", 1..20),
        ) {
            let Ok(parsed) = PathPattern::parse(&pattern) else { return Ok(()) };
            let set = PathSet::of([&parsed]);
            let plain = pattern.strip_prefix("./").unwrap_or(&pattern).trim_end_matches('/');
            let is_anchored = pattern.starts_with("./") || plain.contains('/');
            let plain = plain.strip_prefix('/').unwrap_or(plain);
            let mut builder = GlobSetBuilder::new();
            for glob in globs(plain, is_anchored, pattern.ends_with('/')).unwrap() {
                builder.add(glob);
            }
            let globs = builder.build().unwrap();
            for path in &paths {
                prop_assert_eq!(set.matches(path), globs.is_match(path), "{} {}", pattern, path);
            }
        }
    }

    #[test]
    fn patterns_of_names_make_no_regular_expression() {
        for pattern in
            ["tests/", "tests", "/check.sh", "**/.cargo/config", "*_test.go", ".eslintrc*", "*.snap"]
        {
            assert!(
                !matches!(PathPattern::parse(pattern).unwrap().shape, PatternShape::Globs(_)),
                "{pattern}"
            );
        }
    }

    #[test]
    fn patterns_are_those_of_gitignore() {
        for (pattern, yes, no) in [
            ("tests/", vec!["tests/a.py", "a/tests/b/c"], vec!["tests", "testsuite/a"]),
            ("tests", vec!["tests", "tests/a", "a/tests/b"], vec!["my_tests/a"]),
            ("/check.sh", vec!["check.sh"], vec!["a/check.sh"]),
            ("./check.sh", vec!["check.sh"], vec!["a/check.sh"]),
            ("./scripts/check.sh", vec!["scripts/check.sh"], vec!["a/scripts/check.sh"]),
            ("*.snap", vec!["a.snap", "b/c.snap"], vec!["a.snap.txt"]),
            ("a/*.py", vec!["a/b.py"], vec!["a/b/c.py", "x/a/b.py"]),
            ("a/**/*.py", vec!["a/b.py", "a/b/c.py"], vec!["b.py"]),
        ] {
            let set = PathSet::of(&[PathPattern::parse(pattern).unwrap()]);
            for path in yes {
                assert!(set.matches(path), "{pattern} {path}");
            }
            for path in no {
                assert!(!set.matches(path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn what_is_no_pattern_is_said() {
        assert_eq!(PathPattern::parse("").unwrap_err(), PatternError::Empty);
        assert_eq!(PathPattern::parse("/").unwrap_err(), PatternError::Empty);
        assert_eq!(PathPattern::parse("../x").unwrap_err(), PatternError::Outside);
        assert_eq!(PathPattern::parse("!x").unwrap_err(), PatternError::Negated);
        assert!(matches!(PathPattern::parse("a[").unwrap_err(), PatternError::Glob(_)));
    }
}
