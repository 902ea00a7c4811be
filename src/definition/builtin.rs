//! The loop files that the program brings along, so that a loop can take over what every project has. They are found
//! where no file of the project has the name, and what they name themselves is found among them alone.

use std::path::{Component, Path, PathBuf};

use super::assembled_tree::{entries_mut, text};
use crate::base::node::Node;

/// Where the files seem to lie, for people and in what is stored of a run.
const PLACE: &str = "<built-in>";

const EXTENSIONS: [&str; 2] = ["", ".yaml"];

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(Builtin { path: $path, text: include_str!(concat!("../../catalog/", $path)) }),*]
    };
}

const FILES: &[Builtin] = files! {
    "lib/apo-base.yaml",
    "lib/apo-shape-a.yaml",
    "lib/benchmark.yaml",
    "lib/cli.yaml",
    "lib/common.yaml",
    "lib/composer.yaml",
    "lib/harness.yaml",
    "lib/policy-router.yaml",
    "lib/prompt-fragments.yaml",
    "lib/rubric-router.yaml",
    "lib/score-plan-quality.yaml",
};

/// The catalogue: loops that run as they are, and that a project can copy to make them its own.
const LOOPS: &[Builtin] = files! {
    "actions.yaml",
    "advisories.yaml",
    "bisect.yaml",
    "codegen-drift.yaml",
    "coverage-ratchet.yaml",
    "deps-update.yaml",
    "docs-commands.yaml",
    "dotnet-tidy.yaml",
    "file-hygiene.yaml",
    "fix-ci.yaml",
    "fix-issue.yaml",
    "flaky-hunt.yaml",
    "go-tidy.yaml",
    "java-tidy.yaml",
    "js-tidy.yaml",
    "links.yaml",
    "lockfile-drift.yaml",
    "markdown.yaml",
    "python-tidy.yaml",
    "review-fix.yaml",
    "rust-tidy.yaml",
    "shell.yaml",
    "snapshots.yaml",
    "typos.yaml",
    "upgrade.yaml",
};

macro_rules! tests {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../catalog/tests/", $name, ".test.yaml")))),*]
    };
}

/// The tests of the loops of the catalogue.
const TESTS: &[(&str, &str)] = tests! {
    "actions",
    "advisories",
    "bisect",
    "codegen-drift",
    "coverage-ratchet",
    "deps-update",
    "docs-commands",
    "dotnet-tidy",
    "file-hygiene",
    "fix-ci",
    "fix-issue",
    "flaky-hunt",
    "go-tidy",
    "java-tidy",
    "js-tidy",
    "links",
    "lockfile-drift",
    "markdown",
    "python-tidy",
    "review-fix",
    "rust-tidy",
    "shell",
    "snapshots",
    "typos",
    "upgrade",
};

/// A file in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    path: &'static str,
    text: &'static str,
}

impl Builtin {
    /// Finds a file by its name, with or without the extension.
    pub fn named(name: &str) -> Option<Self> {
        let is_meant = |path: &str| path.strip_prefix(name).is_some_and(|rest| EXTENSIONS.contains(&rest));
        all().find(|file| is_meant(file.path))
    }

    /// Returns the loops of the catalogue, in the order of their names.
    pub fn catalogue() -> impl Iterator<Item = Self> {
        LOOPS.iter().copied()
    }

    /// Finds a loop of the catalogue by its name.
    pub fn catalogued(name: &str) -> Option<Self> {
        Self::catalogue().find(|file| file.name() == name)
    }

    /// Returns its name: its path without the extension.
    pub fn name(self) -> &'static str {
        self.path.strip_suffix(".yaml").unwrap_or(self.path)
    }

    /// Finds a file by the place that [`Self::place`] tells.
    pub fn at(place: &Path) -> Option<Self> {
        Self::named(place.strip_prefix(PLACE).ok()?.to_str()?)
    }

    /// Finds a file that this one names: relative to it, or else by its name.
    pub fn beside(self, name: &str) -> Option<Self> {
        let directory = Path::new(self.path).parent().unwrap_or(Path::new(""));
        let whole = directory.join(name);
        let mut path: Vec<&str> = Vec::new();
        for part in whole.components() {
            match part {
                Component::Normal(part) => path.push(part.to_str()?),
                Component::ParentDir => drop(path.pop()?),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Self::named(&path.join("/")).or_else(|| Self::named(name))
    }

    /// Returns where the file seems to lie.
    pub fn place(self) -> PathBuf {
        Path::new(PLACE).join(self.path)
    }

    /// Returns what it holds.
    pub fn text(self) -> &'static str {
        self.text
    }

    /// Returns the tests of a loop of the catalogue.
    pub fn tests(self) -> Option<&'static str> {
        TESTS.iter().find(|(name, _)| *name == self.name()).map(|(_, text)| *text)
    }

    /// Makes the loops that its states run by name those of the program: a project has no say in what a file means
    /// that it did not write.
    pub(super) fn keep_names(self, tree: &mut Node) {
        rename_loops(tree, |name| Some(self.beside(name)?.place().to_string_lossy().into_owned()));
    }
}

/// Gives the loops that the states of a file run by name other names.
pub(super) fn rename_loops(tree: &mut Node, new: impl Fn(&str) -> Option<String>) {
    let groups = ["states", "state_defs", "fragments"];
    let groups = entries_mut(tree).iter_mut().filter(|entry| groups.contains(&entry.key.as_str()));
    for state in groups.flat_map(|group| entries_mut(&mut group.value)) {
        let keys = entries_mut(&mut state.value).iter_mut();
        for named in keys.filter(|entry| entry.key == "loop") {
            let name = named.value.as_scalar().map(|name| name.text.clone());
            if let Some(name) = name.as_deref().and_then(&new) {
                named.value = text(&named.value.span.clone(), name);
            }
        }
    }
}

/// Tells whether a name in messages means a file of the program, and not one of a project.
pub fn is_builtin(shown: &str) -> bool {
    Path::new(shown).starts_with(PLACE)
}

#[cfg(not(test))]
fn all() -> impl Iterator<Item = Builtin> {
    FILES.iter().chain(LOOPS).copied()
}

#[cfg(test)]
fn all() -> impl Iterator<Item = Builtin> {
    FILES.iter().chain(LOOPS).chain(tests::FILES).copied()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Files that only tests know.
    pub(super) const FILES: &[Builtin] = &[
        Builtin {
            path: "test/outer.yaml",
            text: "name: outer\ninitial: a\nimport: [../test-lib.yaml]\nstates:\n  a: {loop: inner, on_yes: b, on_no: b}\n  b: {fragment: f, next: done}\n  done: {terminal: true}\n",
        },
        Builtin {
            path: "test/inner.yaml",
            text: "name: inner\ninitial: a\nstates: {a: {action: 'true', next: done}, done: {terminal: true}}\n",
        },
        Builtin { path: "test-lib.yaml", text: "fragments: {f: {action: echo built-in}}\n" },
    ];

    fn named(name: &str) -> Option<&'static str> {
        Builtin::named(name).map(|file| file.path)
    }

    #[test]
    fn a_file_is_known_by_its_name_and_nothing_else() {
        assert_eq!(named("lib/apo-base"), Some("lib/apo-base.yaml"));
        assert_eq!(named("lib/apo-base.yaml"), Some("lib/apo-base.yaml"));
        for other in [
            "",
            "lib",
            "lib/",
            "lib/apo",
            "LIB/apo-base",
            "./lib/apo-base",
            "lib//apo-base",
            "lib/apo-base.yml",
            "/lib/apo-base",
            "lib/../lib/apo-base",
        ] {
            assert_eq!(named(other), None, "{other}");
        }
        for file in FILES {
            assert_eq!(Builtin::at(&file.place()), Some(*file));
        }
        assert_eq!(Builtin::at(Path::new("lib/apo-base.yaml")), None);
    }

    #[test]
    fn names_in_it_are_looked_up_from_its_directory_and_then_from_the_top() {
        let outer = Builtin::named("test/outer").unwrap();
        let beside = |name: &str| outer.beside(name).map(|file| file.path);
        assert_eq!(beside("inner"), Some("test/inner.yaml"));
        assert_eq!(beside("./inner.yaml"), Some("test/inner.yaml"));
        assert_eq!(beside("../test-lib.yaml"), Some("test-lib.yaml"));
        assert_eq!(beside("lib/apo-base"), Some("lib/apo-base.yaml"));
        for other in ["../../test-lib.yaml", "/test-lib.yaml", "nowhere", "${context.x}", ""] {
            assert_eq!(beside(other), None, "{other}");
        }
    }
}
