//! Patterns of paths, with the rules of `.gitignore`, which everybody knows: without a slash in front of its last part
//! a pattern holds in every folder, and a folder stands for everything in it.

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
    globs: Vec<Glob>,
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
        let glob = if is_anchored { plain.to_owned() } else { format!("**/{plain}") };
        // A folder means all that is in it.
        let mut globs = vec![compiled(&format!("{glob}/**"))?];
        if !trimmed.ends_with('/') {
            globs.push(compiled(&glob)?);
        }
        Ok(Self { source: source.to_owned(), globs })
    }
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
#[derive(Clone, Debug)]
pub struct PathSet(GlobSet);

impl PathSet {
    /// Makes one of patterns. One that is too large for the matcher means nothing.
    pub fn of<'p>(patterns: impl IntoIterator<Item = &'p PathPattern>) -> Self {
        let mut builder = GlobSetBuilder::new();
        for glob in patterns.into_iter().flat_map(|pattern| &pattern.globs) {
            builder.add(glob.clone());
        }
        // Each pattern was compiled alone before, so only their sum can be too large.
        Self(builder.build().unwrap_or_else(|_| GlobSet::empty()))
    }

    /// Tells whether one of the patterns means the file at a path, itself or by a folder that it is in.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
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
    use super::*;

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
