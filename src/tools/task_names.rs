//! What the name of a task says, and what it does.

use super::table::{Purpose, TOOLS};

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskKind {
    /// What it is about; nothing for one that mends everything.
    pub purpose: Option<Purpose>,
    /// Whether it writes what a check would find.
    pub mends: bool,
    /// How many words its name has. The plainest of several says it all; `check` stands behind `lint`.
    pub parts: usize,
}

/// What in the body of a task shows that it only looks at the format.
const LOOKS: [&str; 9] = [
    "--check",
    "--diff",
    " -l",
    "-check",
    "--dry-run",
    "--verify",
    "--list-different",
    "check-format",
    "format-check",
];

/// What a name says of a task that looks where its body does not write: `format:ci` may write as well.
const WEAK_LOOKS: [&str; 3] = ["ci", "dry", "test"];

/// What does not end by itself, or says nothing.
const NO_CHECK: [&str; 4] = ["no test specified", "nodemon", " --ui", "watch-mode"];

/// Programs that start something again with each change, and words that make others do so.
const WATCHERS: [&str; 4] = ["watchexec", "bacon", "entr", "ptw"];
const WATCHES: [&str; 3] = ["--watch", ":watch", "cargo watch"];

/// Tells whether a command goes on until somebody ends it.
pub fn watches(body: &str) -> bool {
    WATCHES.iter().any(|sign| body.contains(sign))
        // As whole words: `entr` begins `entry`.
        || body.split_whitespace().any(|word| WATCHERS.contains(&word))
}

/// Programs to which `-w` says where they work: a package of a workspace, or a directory.
const PLACED: [&str; 5] = ["npm", "pnpm", "yarn", "docker", "podman"];

/// Tells whether one of the commands of a task writes what it could only look at.
pub fn writes(body: &str) -> bool {
    let commands = body.split(['\n', ';', '|', '&']);
    let is_written = |command: &str| {
        let program = command.trim_start_matches(['@', '-', ' ', '\t']).split_whitespace().next();
        command.contains(" -w ") && !program.is_some_and(|program| PLACED.contains(&program))
    };
    body.contains("--fix") || body.contains("--write") || commands.into_iter().any(is_written)
}

/// What stands between the words of a name.
const SIGNS: [char; 5] = [':', '-', '_', '.', '/'];

/// Returns a name in small letters, with a sign between its words where a capital begins one: of `checkLicense`, `check-license`.
fn spelt(name: &str) -> String {
    let mut spelt = String::new();
    let mut is_behind_small = false;
    for c in name.chars() {
        if is_behind_small && c.is_ascii_uppercase() {
            spelt.push('-');
        }
        is_behind_small = c.is_ascii_lowercase();
        spelt.push(c.to_ascii_lowercase());
    }
    spelt
}

/// Returns what a task is by its name and by what it does, as far as that is known; nothing for one that is neither a check nor mends.
pub fn task_kind(name: &str, body: &str) -> Option<TaskKind> {
    let names = &TOOLS.names;
    let lower = spelt(name);
    let words: Vec<&str> = lower.split(SIGNS).filter(|word| !word.is_empty()).collect();
    let is = |word: &str, known: &[String]| known.iter().any(|known| known == word);
    let has = |known: &[String]| words.iter().any(|word| is(word, known));
    if NO_CHECK.iter().any(|sign| body.contains(sign)) || watches(body) || has(&names.never) {
        return None;
    }
    let writes = writes(body);
    let (head, parts) = (words.first().copied()?, words.len());
    let (is_format, is_lint) = (has(&names.format), has(&names.lint));
    if has(&names.mends) {
        let purpose = match (is_format, is_lint) {
            (true, _) => Some(Purpose::Format),
            (false, true) => Some(Purpose::Lint),
            (false, false) if is(head, &names.mends) => None,
            // `docs:write` writes something else than what a check finds.
            (false, false) => return None,
        };
        return Some(TaskKind { purpose, mends: true, parts });
    }
    if is_format {
        // `gofmt -w -l` names what it has written.
        let by_name =
            words.iter().any(|word| is(word, &names.looks) && !(writes && WEAK_LOOKS.contains(word)));
        let looks = by_name || (!writes && LOOKS.iter().any(|sign| body.contains(sign)));
        return Some(TaskKind { purpose: Some(Purpose::Format), mends: !looks, parts });
    }
    // A `check` of something else, `check-tag`, is about that.
    let is_known = |word: &&str| {
        [&names.lint, &names.format, &names.test, &names.looks].iter().any(|known| is(word, known))
            || matches!(
                *word,
                "all"
                    | "ci"
                    | "code"
                    | "js"
                    | "ts"
                    | "css"
                    | "py"
                    | "python"
                    | "rust"
                    | "go"
                    | "yaml"
                    | "md"
                    | "markdown"
                    | "docs"
                    | "src"
            )
    };
    if matches!(head, "check" | "checks" | "verify" | "validate") && !words.iter().all(is_known) {
        return None;
    }
    let purpose = match () {
        () if is(head, &names.lint) => Purpose::Lint,
        () if is(head, &names.test) => Purpose::Test,
        // At the end: in `generate-test-data`, the word only says for what something is made.
        () if has(&names.test) && words.last().is_some_and(|last| is(last, &names.test)) => Purpose::Test,
        () if is_lint && words.last().is_some_and(|last| is(last, &names.lint)) => Purpose::Lint,
        () => return None,
    };
    let parts = parts + usize::from(head != "lint" && head != "test");
    Some(TaskKind { purpose: Some(purpose), mends: writes, parts })
}

/// Tells whether the name of a task says that it checks something, though not what of the code: `check-license`.
pub fn is_some_check(name: &str) -> bool {
    let lower = spelt(name);
    let mut words = lower.split(SIGNS).filter(|word| !word.is_empty());
    let looks = |word: &str| matches!(word, "check" | "verify" | "validate" | "confirm" | "ensure");
    let is_linter = words.clone().any(|word| word.ends_with("lint"));
    let begins = words.clone().next().is_some_and(looks);
    // `linkcheck` and `doccheck` are one word. By itself, `diffcheck` has nothing to compare.
    let is_joined =
        |word: &str| word.strip_suffix("check").is_some_and(|what| !matches!(what, "health" | "diff"));
    let ends = words.clone().next_back().is_some_and(|word| looks(word) || is_joined(word));
    (begins || ends || is_linter) && !words.any(is_other)
}

/// Tells whether the name of a task, or a word of it, says that it writes, does not end, or is about something else.
pub fn is_other(name: &str) -> bool {
    let is = |word: &str| {
        [&TOOLS.names.never, &TOOLS.names.mends].iter().any(|known| known.iter().any(|one| one == word))
    };
    name.to_ascii_lowercase().split([':', '-', '_', '.', '/']).any(is)
}

/// Tells whether the name of a task is that of a kind of tests, though it does not say `test`.
pub fn is_some_test(name: &str) -> bool {
    let lower = spelt(name);
    let mut words = lower.split(SIGNS).filter(|word| !word.is_empty());
    let kinds = [
        "acc",
        "testacc",
        "acceptance",
        "conformance",
        "e2e",
        "functional",
        "integration",
        "regression",
        "smoke",
    ];
    words.clone().any(|word| kinds.contains(&word)) && !words.any(is_other)
}

/// Tells whether the name of a task says that it builds the documents, and nothing else.
pub fn builds_documents(name: &str) -> bool {
    let lower = spelt(name);
    let words = lower.split(SIGNS).filter(|word| !word.is_empty());
    let is_document = |word: &str| matches!(word, "docs" | "doc" | "documentation");
    words.clone().any(is_document)
        && words.clone().all(|word| is_document(word) || matches!(word, "build" | "html"))
}

/// Returns the words of a task's name that say which part it is about: of `lint:css:fix`, `css`. A tool is one, too.
pub fn task_part(name: &str) -> Vec<String> {
    let names = &TOOLS.names;
    let plain =
        ["lint", "lints", "format", "fmt", "formatting", "check", "checks", "code", "style", "all", "verify"];
    let lower = spelt(name);
    let words = lower.split(SIGNS).filter(|word| !word.is_empty());
    let says_part = |word: &&str| !plain.contains(word) && !names.mends.iter().any(|known| known == word);
    words.filter(says_part).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_task_is() {
        for (name, body, expected) in [
            ("lint", "", Some((Some(Purpose::Lint), false))),
            ("lint:fix", "", Some((Some(Purpose::Lint), true))),
            ("fix", "", Some((None, true))),
            ("format", "", Some((Some(Purpose::Format), true))),
            ("format", "prettier --check .", Some((Some(Purpose::Format), false))),
            ("fmt", "gofumpt -w -l .", Some((Some(Purpose::Format), true))),
            ("fmt-check", "", Some((Some(Purpose::Format), false))),
            ("format:ci", "prettier --check .", Some((Some(Purpose::Format), false))),
            ("format:ci", "biome check --write . && prettier -w", Some((Some(Purpose::Format), true))),
            ("lint", "eslint --fix .", Some((Some(Purpose::Lint), true))),
            ("test", "npm run test -w a -w b", Some((Some(Purpose::Test), false))),
            ("test", "docker run -w /src go test ./...", Some((Some(Purpose::Test), false))),
            ("lint", "true && misspell -w docs", Some((Some(Purpose::Lint), true))),
            ("test", "", Some((Some(Purpose::Test), false))),
            ("unit-test", "", Some((Some(Purpose::Test), false))),
            ("testUnit", "", Some((Some(Purpose::Test), false))),
            ("lintJS", "", Some((Some(Purpose::Lint), false))),
            ("ESLint", "", Some((Some(Purpose::Lint), false))),
            ("testWatch", "", None),
            ("test:watch", "", None),
            ("check-tag", "", None),
            ("check:types", "", Some((Some(Purpose::Lint), false))),
            ("test", "echo \"Error: no test specified\" && exit 1", None),
            ("deploy", "", None),
            ("build", "", None),
            ("", "", None),
            ("::", "", None),
        ] {
            let found = task_kind(name, body).map(|kind| (kind.purpose, kind.mends));
            assert_eq!(found, expected, "{name}: {body}");
        }
    }

    #[test]
    fn a_name_may_say_that_something_is_looked_at() {
        for (name, is_one) in [
            ("linkcheck", true),
            ("check-license", true),
            ("healthcheck", false),
            ("diffcheck", false),
            ("checkout", false),
        ] {
            assert_eq!(is_some_check(name), is_one, "{name}");
        }
    }
}
