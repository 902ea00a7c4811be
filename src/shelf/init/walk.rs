//! Reads what a repository says about itself: names of files, and the texts of those that may say something.

use std::path::Path;

use crate::context::Session;
use crate::context::error::Error;
use crate::files::read;
use crate::git::call::Call;
use crate::judges::tree::extension;
use crate::repository;
use crate::shelf::upkeep::Repository;
use crate::shelf::upkeep::yaml_style::PRETTIER;

/// Directories that belong to others, or are made.
const PASSED_OVER: [&str; 12] = [
    ".git",
    ".loops",
    "node_modules",
    "target",
    "vendor",
    ".venv",
    "venv",
    "dist",
    "build",
    ".tox",
    ".nox",
    "__pycache__",
];

/// How deep it is looked, how many files are known by name, and how many are read.
const DEEPEST: usize = 12;
const MOST: usize = 50_000;
const MOST_READ: usize = 5_000;

/// The longest file that is read, and how much is read in all, in bytes.
const LONGEST: u64 = 256 * 1024;
const MOST_BYTES: usize = 64 << 20;

/// The files that may say something, by their names and by their ends, beside those of Prettier.
const NAMES: [&str; 17] = [
    "flake.nix",
    ".yamlfmt",
    ".editorconfig",
    ".gitignore",
    "BUILD",
    "BUILD.bazel",
    "build.zig",
    "dune",
    "Pipfile",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Justfile",
    ".justfile",
    "Rakefile",
    "rakefile",
];
const ENDS: [&str; 21] = [
    ".cabal", ".exs", ".json", ".json5", ".jsonc", ".toml", ".yml", ".yaml", ".ini", ".cfg", ".txt", ".in",
    ".py", ".gradle", ".kts", ".xml", ".mod", ".rs", ".csproj", ".fsproj", ".sh",
];

/// Directories of scripts, whose names may have no end.
const SCRIPTS: [&str; 6] = ["scripts/", "script/", "ci/", ".ci/", "bin/", "tools/"];

/// Tells whether a file is one of a repository's own scripts.
fn is_script(path: &str) -> bool {
    let has_no_end = !path.rsplit('/').next().unwrap_or(path).contains('.');
    SCRIPTS.iter().any(|directory| path.starts_with(directory))
        && (has_no_end || extension(path) == Some("sh"))
}

/// Files at the top that may say who looks at a change.
const AT_TOP: [&str; 4] = ["Jenkinsfile", "README", "README.md", "README.rst"];

/// Reads the repository at a root. What cannot be read says nothing.
pub(super) fn read(root: &Path, session: &Session<'_>) -> Result<Repository, Error> {
    let (mut files, mut texts, mut open) = (Vec::new(), 0, vec![(root.to_owned(), 0)]);
    let mut bytes = 0;
    // The top has to be readable: one that may not be read would look like one without checks.
    let entries = fs_err::read_dir(root);
    entries.map_err(|error| {
        Error::failed("cannot look into the repository", &error).of_kind(crate::context::error::Kind::Refused)
    })?;
    while let Some((directory, depth)) = open.pop() {
        let Ok(entries) = fs_err::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let (Ok(kind), Some(name)) = (entry.file_type(), name.to_str()) else { continue };
            if kind.is_dir() && depth < DEEPEST && !PASSED_OVER.contains(&name) {
                open.push((path, depth + 1));
                continue;
            }
            let Some(shown) = path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
            // Links are not followed: they could lead out of the repository, or into a circle.
            if !kind.is_file() || files.len() >= MOST {
                continue;
            }
            let says = NAMES.contains(&name)
                || PRETTIER.contains(&name)
                || is_script(shown)
                || AT_TOP.contains(&shown)
                || ENDS.iter().any(|end| name.ends_with(end));
            // Beyond these bounds a file still counts by its name.
            let text = if says && texts < MOST_READ && bytes < MOST_BYTES {
                texts += 1;
                // One that is too long, or not text, counts by its name as well.
                let text = read::text(&path, LONGEST).unwrap_or_default();
                bytes += text.len();
                text
            } else {
                String::new()
            };
            files.push((shown.replace('\\', "/"), text));
        }
    }
    if files.len() >= MOST {
        session.talk.warning(&format!("only the first {MOST} files were looked at"));
    }
    for (path, text) in &files {
        // What tests are made of may be broken on purpose.
        let is_of_tests = path
            .split('/')
            .any(|part| matches!(part, "test" | "tests" | "__tests__" | "fixtures" | "testdata"));
        let is_broken = !is_of_tests
            && path.rsplit('/').next() == Some("package.json")
            && serde_json::from_str::<serde_json::Value>(text).is_err();
        if is_broken {
            session.talk.warning(&format!("{path} is not valid JSON, and what it says is left out"));
        }
    }
    Ok(Repository::new(files).with_default_branch(default_branch(root, session)))
}

/// Returns the branch that its remote repository had checked out when this one was cloned.
fn default_branch(root: &Path, session: &Session<'_>) -> Option<String> {
    let call = Call::new("symbolic-ref").with(&["--quiet", "--short", "refs/remotes/origin/HEAD"]);
    let named = repository::at(root, session).line(&call).ok()?;
    named.strip_prefix("origin/").map(str::to_owned)
}
