//! What checks read and no key has: sources that git ignores. Most tools read them like any others, so that a run which has
//! some has no key, unless they are named by themselves.

use super::input_patterns::InputPatterns;
use crate::judges::pattern::{PathPattern, PathSet};
use crate::tools::{Tool, recognise};

/// What the tools that the checks of a loop call read of what git ignores.
pub struct IgnoredReads(Vec<ToolReads>);

struct ToolReads {
    tool: &'static Tool,
    sources: PathSet,
    /// The words of the command: a tool that heeds what is ignored reads what is named all the same.
    words: Vec<String>,
}

/// A source that git ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredSource {
    /// Its path from the top of the working tree.
    pub path: String,
    /// The tool that reads it.
    pub tool: &'static str,
}

impl IgnoredReads {
    /// Recognises the tools that commands call. What others read is unknown.
    pub fn of(commands: &[Vec<String>]) -> Self {
        let tools = commands.iter().filter_map(|words| Some((recognise(words)?.tool, words)));
        // Of `any` language every file could be meant, the products of other tools too.
        let known = tools.filter(|(tool, _)| tool.ecosystem != "any");
        let reads = known.map(|(tool, words)| {
            let patterns: Vec<PathPattern> =
                tool.inputs().filter_map(|glob| PathPattern::parse(glob).ok()).collect();
            // Paths as git lists them begin with no `./`.
            let words = words.iter().map(|word| word.trim_start_matches("./").to_owned()).collect();
            ToolReads { tool, sources: PathSet::of(&patterns), words }
        });
        Self(reads.collect())
    }

    /// Tells whether no tool reads anything that is ignored.
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether nothing in an ignored folder is read by anyone, so that nobody has to look into it.
    pub fn pass_over(&self, folder: &str) -> bool {
        self.0.iter().all(|reads| reads.is_stored(folder))
    }

    /// Tells which tool reads the ignored file at a path as one of the inputs, if one does and the path itself is no input.
    pub fn reader(&self, path: &str, inputs: &InputPatterns) -> Option<IgnoredSource> {
        let is_unnamed = inputs.hold(path) && !inputs.name(path);
        let reads = self.0.iter().find(|reads| is_unnamed && reads.read(path))?;
        Some(IgnoredSource { path: path.to_owned(), tool: &reads.tool.name })
    }
}

impl ToolReads {
    fn is_stored(&self, path: &str) -> bool {
        let stores = &self.tool.ecosystem().stores;
        path.split('/').any(|part| stores.iter().any(|store| store == part))
    }

    fn read(&self, path: &str) -> bool {
        let is_named =
            || self.words.iter().any(|word| path.strip_suffix(word.as_str()).is_some_and(ends_folder));
        self.sources.matches(path) && (is_named() || (!self.tool.heeds_ignores && !self.is_stored(path)))
    }
}

/// Tells whether what stands before a name leads to it: nothing, or folders.
fn ends_folder(before: &str) -> bool {
    before.is_empty() || before.ends_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(command: &str, path: &str, inputs: &[&str]) -> Option<&'static str> {
        let inputs: Vec<String> = inputs.iter().map(|input| (*input).to_owned()).collect();
        let inputs = InputPatterns::parse(&inputs).unwrap_or_else(|why| panic!("{why}"));
        let reads = IgnoredReads::of(&[shlex::split(command).unwrap()]);
        reads.reader(path, &inputs).map(|found| found.tool)
    }

    #[test]
    fn a_tool_reads_sources_that_git_ignores() {
        for (command, path) in [
            ("go test ./...", "gen/api.go"),
            ("go vet ./...", "vendor/x/x.go"),
            ("gofmt -l .", "gen/api.go"),
            ("cargo test", "src/generated.rs"),
            ("pytest -q", "src/pkg/_version.py"),
            ("npx eslint .", "src/api.generated.ts"),
            ("ruff check gen/api.py", "gen/api.py"),
        ] {
            assert!(reader(command, path, &["**"]).is_some(), "{command}: {path}");
        }
    }

    #[test]
    fn what_tools_keep_what_they_pass_over_and_what_is_named_is_no_such_source() {
        for (command, path) in [
            ("cargo test", "target/debug/build/x/out/bindings.rs"),
            ("pytest", ".venv/lib/python3.12/site-packages/x.py"),
            ("npx eslint .", "node_modules/x/index.js"),
            ("go test ./...", "cover.out"),
            ("ruff check .", "gen/api.py"),
            ("ruff check api.py", "gen/other_api.py"),
            ("sh check.sh", "gen/api.go"),
            ("hadolint Dockerfile", "gen/api.go"),
        ] {
            assert_eq!(reader(command, path, &["**"]), None, "{command}: {path}");
        }
        assert_eq!(reader("go test ./...", "gen/api.go", &["src/"]), None);
        assert_eq!(reader("go test ./...", "gen/api.go", &["**/*.go", "gen/api.go"]), None);
        assert_eq!(reader("go test ./...", "gen/api.go", &["*.go", "gen/"]), None);
    }

    #[test]
    fn a_folder_is_passed_over_where_all_tools_keep_things_there() {
        let commands = |all: &[&str]| {
            let words: Vec<_> = all.iter().map(|command| shlex::split(command).unwrap()).collect();
            IgnoredReads::of(&words)
        };
        assert!(commands(&["cargo test"]).pass_over("target"));
        assert!(!commands(&["cargo test", "go vet ./..."]).pass_over("target"));
        assert!(commands(&["make test"]).is_nothing());
    }
}
