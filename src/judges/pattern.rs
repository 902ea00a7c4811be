//! Patterns of paths, with the rules of `.gitignore`, which everybody knows: without a slash in front of its last part
//! a pattern holds in every folder, and a folder stands for everything in it.

use std::fmt;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::Value;

use crate::base::decode::{Decode, Definitions, text, text_schema};
use crate::base::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::base::node::Node;
use crate::base::path::DocPath;

/// A pattern of paths.
#[derive(Clone)]
pub struct PathPattern {
    source: String,
    /// Matches the path itself.
    itself: GlobMatcher,
    /// Matches what is below it.
    below: GlobMatcher,
    is_directory: bool,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It names nothing.
    #[error("a pattern cannot be empty")]
    Empty,
    /// It leads out of the repository, or says what is none.
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
        let trimmed = source.strip_prefix("./").unwrap_or(source);
        let is_directory = trimmed.ends_with('/');
        let plain = trimmed.trim_end_matches('/');
        let anchored = plain.contains('/');
        let plain = plain.strip_prefix('/').unwrap_or(plain);
        if plain.is_empty() {
            return Err(PatternError::Empty);
        }
        if plain.split('/').any(|part| part == "..") {
            return Err(PatternError::Outside);
        }
        let glob = if anchored { plain.to_owned() } else { format!("**/{plain}") };
        let itself = matcher(&glob)?;
        let below = matcher(&format!("{glob}/**"))?;
        Ok(Self { source: source.to_owned(), itself, below, is_directory })
    }

    /// Tells whether a pattern means the file at a path, itself or by a folder that it is in.
    pub fn matches(&self, path: &str) -> bool {
        (!self.is_directory && self.itself.is_match(path)) || self.below.is_match(path)
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

fn matcher(glob: &str) -> Result<GlobMatcher, PatternError> {
    let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    match built {
        Ok(glob) => Ok(glob.compile_matcher()),
        Err(error) => Err(PatternError::Glob(error.kind().to_string())),
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

impl Decode for PathPattern {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let source = text(node, path, "a pattern of paths", out)?;
        match Self::parse(source) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let finding = Diagnostic::error("pattern", Place::Value(path.clone()), error.to_string());
                out.push(
                    finding.help(
                        "patterns are those of `.gitignore`: `tests/`, `*_test.go`, `/scripts/check.sh`",
                    ),
                );
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
            ("./scripts/check.sh", vec!["scripts/check.sh"], vec!["a/scripts/check.sh"]),
            ("*.snap", vec!["a.snap", "b/c.snap"], vec!["a.snap.txt"]),
            ("a/*.py", vec!["a/b.py"], vec!["a/b/c.py", "x/a/b.py"]),
            ("a/**/*.py", vec!["a/b.py", "a/b/c.py"], vec!["b.py"]),
        ] {
            let parsed = PathPattern::parse(pattern).unwrap();
            for path in yes {
                assert!(parsed.matches(path), "{pattern} {path}");
            }
            for path in no {
                assert!(!parsed.matches(path), "{pattern} {path}");
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
