//! A repository as it is looked at, and what is found in it.

use std::collections::BTreeMap;

use crate::judges::tree::extension;
use crate::tools::Purpose;

/// The files of a repository: each with its text, as far as somebody read it.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    // Sorted, because the first of several files counts, and must be the same one each time.
    files: BTreeMap<String, String>,
    default_branch: Option<String>,
}

impl Repository {
    /// Makes it from paths, with `/` between their parts, and texts.
    pub fn new(files: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { files: files.into_iter().collect(), default_branch: None }
    }

    /// Says which branch a clone of it checks out, as far as that is known.
    #[must_use]
    pub fn with_default_branch(self, default_branch: Option<String>) -> Self {
        Self { default_branch, ..self }
    }

    /// Returns the branch that a clone of it checks out, as far as that is known.
    pub fn default_branch(&self) -> Option<&str> {
        self.default_branch.as_deref()
    }

    /// Returns the text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Tells whether a file is there.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Tells whether a file or a directory is there; the empty path is the top.
    pub fn has_place(&self, path: &str) -> bool {
        let is_below = |file: &str| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        path.is_empty() || self.has(path) || self.paths().any(is_below)
    }

    /// Returns the first of these files that is there.
    pub fn first<'p>(&self, paths: &[&'p str]) -> Option<&'p str> {
        paths.iter().copied().find(|path| self.has(path))
    }

    /// Returns the paths of all files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns what is below a directory, as if that was the repository.
    #[must_use]
    pub fn below(&self, directory: &str) -> Self {
        let inner = |(path, text): (&String, &String)| {
            let path = path.strip_prefix(directory)?.strip_prefix('/')?;
            Some((path.to_owned(), text.clone()))
        };
        let files = self.files.iter().filter_map(inner).collect();
        Self { files, default_branch: self.default_branch.clone() }
    }
}

/// Where it was found that a repository uses a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The task, if it is one.
    pub task: Option<String>,
}

/// A command that a repository uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about; nothing for a fix of everything.
    pub purpose: Option<Purpose>,
    /// Whether it changes files instead of looking at them.
    pub is_fix: bool,
    /// The command.
    pub command: String,
    /// The directory in which it is called, relative to the repository; empty for its top.
    pub directory: String,
    /// Where it was found.
    pub evidence: Evidence,
}

/// Returns the line, from 1, on which a text begins that matches.
pub(super) fn line_of(text: &str, matches: impl Fn(&str) -> bool) -> usize {
    text.lines().position(matches).map_or(1, |at| at + 1)
}

/// Returns the place where a dependency of Python is declared, in the package itself.
pub(super) fn declared(repository: &Repository, package: &str) -> Option<(String, usize)> {
    let may_declare = |path: &&str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_list = extension(name) == Some("txt") && name.contains("requirements")
            || path.starts_with("requirements/") && matches!(extension(name), Some("txt" | "in"));
        path.matches('/').count() < 2
            && (is_list || matches!(name, "pyproject.toml" | "setup.py" | "setup.cfg" | "Pipfile"))
    };
    let names = |line: &str| {
        let word = line.trim_start().trim_start_matches(['"', '\'', '-', ' ']);
        let rest = word.strip_prefix(package);
        // `pytest-cov` is another package than `pytest`.
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || "-_".contains(c)))
    };
    let says = |line: &str| line.split([',', '[']).any(names);
    repository.paths().filter(may_declare).find_map(|path| {
        let text = repository.text(path)?;
        text.lines().any(says).then(|| (path.to_owned(), line_of(text, says)))
    })
}
