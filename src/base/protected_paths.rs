//! Paths that decide what runs, or who has a say: the one table of them. Whoever protects paths takes a column of it.
//!
//! Names are compared as the most careless file system does, because a checkout may land on any.

use super::relative::folded;

/// Where a path is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// At the root of the repository.
    Root,
    /// In every directory.
    Any,
    /// In these directories; the empty one is the root.
    In(&'static [&'static str]),
}

/// Whether a delivery may change a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deliverable {
    /// Like any other.
    Always,
    /// Where a person names it.
    ByName,
    /// Whatever anybody says.
    Never,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct ProtectedRow {
    /// What they are, for people.
    pub what: &'static str,
    /// Paths; each stands for everything below it, too. A name may have one `*`.
    pub paths: &'static [&'static str],
    /// Where.
    pub depth: Depth,
    /// Whether sandboxed states must not write them.
    pub is_sandboxed: bool,
    /// Whether a delivery may change them.
    pub delivery: Deliverable,
}

const fn row(
    what: &'static str,
    paths: &'static [&'static str],
    depth: Depth,
    is_sandboxed: bool,
    delivery: Deliverable,
) -> ProtectedRow {
    ProtectedRow { what, paths, depth, is_sandboxed, delivery }
}

/// The table.
pub const PROTECTED_PATHS: &[ProtectedRow] = &[
    // No path of a tree leads there, so a delivery does not ask.
    row(
        "git's own files that name programs",
        &[".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir", ".git/info/attributes"],
        Depth::Any,
        true,
        Deliverable::Always,
    ),
    row("workflows of GitHub", &[".github"], Depth::Root, true, Deliverable::Never),
    row("workflows of Gitea and Forgejo", &[".gitea", ".forgejo"], Depth::Root, false, Deliverable::Never),
    row("loops", &[".loops"], Depth::Any, true, Deliverable::Never),
    row("repositories inside", &[".gitmodules"], Depth::Any, true, Deliverable::ByName),
    row("pipelines of GitLab", &[".gitlab-ci*"], Depth::Root, true, Deliverable::ByName),
    row(
        "parts of pipelines of GitLab, and its agents",
        &[".gitlab/ci*", ".gitlab/agents"],
        Depth::Root,
        false,
        Deliverable::ByName,
    ),
    row(
        "Jenkins and Azure Pipelines",
        &["Jenkinsfile*", "*.jenkinsfile", "azure-pipelines*", ".azure-pipelines*"],
        Depth::Any,
        false,
        Deliverable::ByName,
    ),
    row(
        "other CI systems",
        &[
            ".circleci",
            ".buildkite",
            "buildkite.y*ml",
            "bitbucket-pipelines*",
            ".woodpecker*",
            ".drone*",
            ".travis*",
            "appveyor*",
            ".appveyor*",
            ".teamcity",
            ".cirrus*",
            ".semaphore",
            "codefresh*",
            ".codefresh",
            ".azuredevops",
            ".pipelines",
            ".vsts-ci*",
            ".jenkins",
            "jenkins-x*",
            ".builds",
            ".build.y*ml",
            "cloudbuild*",
            "buildspec*",
            ".tekton",
            ".harness",
            ".zuul*",
            "zuul*",
            ".taskcluster*",
            ".prow*",
            ".evergreen*",
            ".bazelci",
            "wercker.y*ml",
            "shippable.y*ml",
            "screwdriver.y*ml",
            "codemagic.y*ml",
            "bitrise.y*ml",
            ".onedev-buildspec*",
            ".space.kts",
            ".rultor.y*ml",
            ".mergify*",
            "bors.toml",
        ],
        Depth::Root,
        false,
        Deliverable::ByName,
    ),
    row(
        "who reviews what",
        &["CODEOWNERS"],
        Depth::In(&["", "docs", ".github", ".gitlab", ".gitea", ".forgejo"]),
        false,
        Deliverable::ByName,
    ),
    row(
        "instructions, settings and tools of agents",
        &[
            ".claude",
            ".claude.json",
            ".mcp.json",
            "CLAUDE.md",
            "CLAUDE.local.md",
            "AGENTS.md",
            "GEMINI.md",
            "QWEN.md",
            ".codex",
            ".gemini",
            ".qwen",
            ".cursor",
        ],
        Depth::Any,
        true,
        Deliverable::ByName,
    ),
    row(
        "what editors, shells, hooks and package managers run",
        &[
            ".vscode",
            ".devcontainer*",
            ".husky",
            ".envrc",
            ".npmrc",
            ".ripgreprc",
            ".cargo/config*",
            ".pre-commit-config.y*ml",
            "lefthook.y*ml",
            ".lefthook.y*ml",
        ],
        Depth::Any,
        true,
        Deliverable::ByName,
    ),
    row(
        "lock files",
        &[
            "*.lock",
            ".terraform.lock.hcl",
            "bun.lockb",
            "cabal.project.freeze",
            "cartfile.resolved",
            "conda-lock.yml",
            "dub.selections.json",
            "gems.locked",
            "go.sum",
            "go.work.sum",
            "gradle.lockfile",
            "buildscript-gradle.lockfile",
            "lake-manifest.json",
            "manifest.toml",
            "npm-shrinkwrap.json",
            "package-lock.json",
            "package.resolved",
            "packages.lock.json",
            "pnpm-lock.yaml",
            "pnpm-lock.yml",
            "project.lock.json",
            "pylock.toml",
            "vcpkg-lock.json",
            "verification-metadata.xml",
        ],
        Depth::Any,
        false,
        Deliverable::ByName,
    ),
];

impl ProtectedRow {
    /// Tells whether a path is one of these, or below one.
    pub fn holds(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').collect();
        let begins = (0..parts.len()).filter(|at| self.is_at(&parts[..*at]));
        let mut rests = begins.map(|at| &parts[at..]);
        rests.any(|rest| self.paths.iter().any(|known| begins_with(rest, known, self.are_files())))
    }

    /// Tells whether these can only be files: nothing is below them, and a directory of this name is another thing.
    fn are_files(&self) -> bool {
        self.what == "lock files"
    }

    fn is_at(&self, directories: &[&str]) -> bool {
        match self.depth {
            Depth::Any => true,
            Depth::Root => directories.is_empty(),
            Depth::In(known) => known.iter().any(|known| match directories {
                [] => known.is_empty(),
                [only] => is_name(only, known),
                [_, _, ..] => false,
            }),
        }
    }
}

/// Tells whether a path is one that sandboxed actions must not write, or below one.
pub fn is_sandboxed(path: &str) -> bool {
    PROTECTED_PATHS.iter().any(|row| row.is_sandboxed && row.holds(path))
}

/// Where a path is named in the table with a `*`, the names that tools look for.
const WILD: [(&str, &[&str]); 6] = [
    (".gitlab-ci*", &[".gitlab-ci.yml"]),
    (".devcontainer*", &[".devcontainer", ".devcontainer.json"]),
    (".cargo/config*", &[".cargo/config.toml", ".cargo/config"]),
    (".pre-commit-config.y*ml", &[".pre-commit-config.yaml", ".pre-commit-config.yml"]),
    ("lefthook.y*ml", &["lefthook.yml", "lefthook.yaml"]),
    (".lefthook.y*ml", &[".lefthook.yml", ".lefthook.yaml"]),
];

/// Returns the paths at the root of a working tree that sandboxed actions must not make either.
pub fn sandboxed_at_root() -> impl Iterator<Item = &'static str> {
    let paths =
        PROTECTED_PATHS.iter().filter(|row| row.is_sandboxed).flat_map(|row| row.paths.iter().copied());
    paths.flat_map(|path| match WILD.iter().find(|(wild, _)| *wild == path) {
        Some((_, names)) => names.to_vec(),
        // A pattern whose names are not listed gives nothing that could be kept from being made.
        None if path.contains('*') => Vec::new(),
        None => vec![path],
    })
}

/// Returns how much a delivery may change a path: what the strictest row says.
pub fn deliverable(path: &str) -> Deliverable {
    let rows = PROTECTED_PATHS.iter().filter(|row| row.delivery != Deliverable::Always && row.holds(path));
    // `Deliverable` is ordered by how strict its words are.
    rows.map(|row| row.delivery).max().unwrap_or(Deliverable::Always)
}

fn begins_with(parts: &[&str], known: &str, is_whole: bool) -> bool {
    let known: Vec<&str> = known.split('/').collect();
    let is_long = if is_whole { parts.len() == known.len() } else { parts.len() >= known.len() };
    is_long && parts.iter().zip(&known).all(|(part, known)| is_name(part, known))
}

/// Tells whether some file system takes a name for a known one, which may have one `*`: by its case, by characters that it
/// does not count, by what it drops at the end, or by the short name that it gives it.
pub fn is_name(name: &str, known: &str) -> bool {
    let (plain, known) = (folded(name), known.to_lowercase());
    let (begin, end) = known.split_once('*').unwrap_or((&known, ""));
    let is_wild = known.contains('*');
    // `*.lock` is not a name without anything before its dot.
    let shortest = begin.len() + end.len() + usize::from(begin.is_empty());
    let is_it = if is_wild {
        plain.len() >= shortest && plain.starts_with(begin) && plain.ends_with(end)
    } else {
        plain == known
    };
    is_it || is_short_name(&plain, &known)
}

/// Tells whether a name is the short one that Windows gives to a known name: its first six signs, or two and four digits of a
/// hash, then `~` and a number, and three signs of its ending.
fn is_short_name(plain: &str, known: &str) -> bool {
    let Some((stem, rest)) = plain.split_once('~') else { return false };
    let (number, ending) = rest.split_once('.').unwrap_or((rest, ""));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    // A short name has no dot but the one in front of its ending.
    let undotted = known.trim_start_matches('.');
    let (known_stem, known_ending) = undotted.rsplit_once('.').unwrap_or((undotted, ""));
    let begins_as = |text: &str, known: &str, most: usize| {
        let cut: String = known.chars().filter(|c| *c != '.').take(most).collect();
        match cut.split_once('*') {
            Some((begin, _)) => text.starts_with(begin),
            None => text == cut,
        }
    };
    let is_hash = || {
        let (two, four) = stem.split_at_checked(2).unwrap_or((stem, ""));
        known_stem.starts_with(two) && four.len() == 4 && four.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    // A star at the end stands for an ending, too.
    let is_any = known_ending.is_empty() && known_stem.ends_with('*');
    let is_ending = is_any || begins_as(ending, known_ending, 3);
    is_ending && (begins_as(stem, known_stem, 6) || is_hash())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page 12.1 of the contract.
    #[test]
    fn a_sandbox_protects_what_it_says() {
        for path in [
            ".git/hooks",
            ".git/config",
            ".git/config.worktree",
            ".git/commondir",
            ".git/info/attributes",
            "module/.git/config",
            ".gitmodules",
            ".github",
            ".gitlab-ci.yml",
            ".loops",
            ".claude",
            ".claude.json",
            ".mcp.json",
            "CLAUDE.md",
            "CLAUDE.local.md",
            "AGENTS.md",
            "GEMINI.md",
            "QWEN.md",
            ".codex",
            ".gemini",
            ".qwen",
            ".cursor",
            ".vscode",
            ".devcontainer",
            ".husky",
            ".envrc",
            ".npmrc",
            ".ripgreprc",
            ".cargo/config.toml",
            ".pre-commit-config.yaml",
            "lefthook.yml",
        ] {
            assert!(PROTECTED_PATHS.iter().any(|row| row.is_sandboxed && row.holds(path)), "{path}");
        }
        for path in ["src/main.rs", ".git/index", "Cargo.lock", ".gitignore"] {
            assert!(!PROTECTED_PATHS.iter().any(|row| row.is_sandboxed && row.holds(path)), "{path}");
        }
    }

    #[test]
    fn no_path_is_named_twice() {
        let mut all: Vec<&str> = PROTECTED_PATHS.iter().flat_map(|row| row.paths.iter().copied()).collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|path| path.matches('*').count() <= 1 && !path.ends_with('/')));
    }

    #[test]
    fn a_name_with_a_star_says_what_tools_look_for() {
        let sandboxed = PROTECTED_PATHS.iter().filter(|row| row.is_sandboxed);
        let wild: Vec<&str> =
            sandboxed.flat_map(|row| row.paths.iter().copied()).filter(|path| path.contains('*')).collect();
        for path in &wild {
            assert!(WILD.iter().any(|(known, names)| known == path && !names.is_empty()), "{path}");
        }
        for (known, names) in WILD {
            assert!(wild.contains(&known), "{known}");
            assert!(
                names.iter().all(|name| begins_with(&[name], known, true) || name.contains('/')),
                "{known}"
            );
        }
        assert!(sandboxed_at_root().any(|path| path == ".lefthook.yml"));
        assert!(sandboxed_at_root().all(is_sandboxed));
    }

    #[test]
    fn names_are_compared_as_the_most_careless_file_system_does() {
        for (name, known) in [
            (".GitHub", ".github"),
            (".git\u{200c}hub", ".github"),
            (".github.", ".github"),
            (".github . .", ".github"),
            (".github::$INDEX_ALLOCATION", ".github"),
            ("GITHUB~1", ".github"),
            ("gi7eba~1", ".gitmodules"),
            ("jenkinsfile.release", "Jenkinsfile*"),
            ("JENKIN~2", "Jenkinsfile*"),
            ("Jenkin\u{17f}file", "Jenkinsfile*"),
            ("AZURE-~1.YML", "azure-pipelines*"),
            ("bitbucket-pipelines.yaml", "bitbucket-pipelines*"),
            ("WERCKE~1.YML", "wercker.y*ml"),
            ("wercker.yaml", "wercker.y*ml"),
            ("CARGO~1.LOC", "*.lock"),
            ("\u{212a}ey.lock", "key.lock"),
        ] {
            assert!(is_name(name, known), "{name} {known}");
        }
        for (name, known) in [
            ("github", ".github"),
            (".githubs", ".github"),
            ("github~", ".github"),
            ("lock", "*.lock"),
            (".lock", "*.lock"),
            ("wercker.ml", "wercker.y*ml"),
            ("photo~1.png", "*.lock"),
            ("read~1.me", "README.md"),
            ("a~b", "azure-pipelines*"),
        ] {
            assert!(!is_name(name, known), "{name} {known}");
        }
    }
}
