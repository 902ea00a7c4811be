//! What the words of a command say by themselves: which program reads what, what stands in front of it, which options name files, and
//! where a path leads.

use super::judge_catalog::CATALOG;
use super::known_values::FROM_ROOT;
use super::tree::extension;
use crate::base::gitpath;
use crate::base::text::{after_last, first_line, head};

/// How far the end of a subshell is looked for.
const LONGEST_SUBSHELL: usize = 64 * 1024;

/// Programs that run the program behind them.
const WRAPPERS: [Wrapper; 35] = [
    Wrapper::plain(&["env"], &["-u", "--unset", "-C", "--chdir"]),
    Wrapper::plain(&["sudo"], &["-u", "--user", "-g", "--group"]),
    Wrapper::plain(&["time"], &["-f", "--format", "-o", "--output"]),
    Wrapper::plain(&["nice"], &["-n", "--adjustment"]),
    Wrapper::plain(&["nohup"], &[]),
    Wrapper::plain(&["exec"], &[]),
    Wrapper::plain(&["command"], &[]),
    Wrapper::plain(&["builtin"], &[]),
    Wrapper::plain(&["eval"], &[]),
    Wrapper::plain(&["setsid"], &[]),
    Wrapper::plain(&["ionice"], &["-c", "-n"]),
    Wrapper::plain(&["unbuffer"], &[]),
    Wrapper::plain(&["chronic"], &[]),
    Wrapper::plain(&["stdbuf"], &["-o", "-e", "-i"]),
    Wrapper::plain(&["xvfb-run"], &["-s", "-n"]),
    Wrapper::plain(&["xargs"], &["-n", "-I", "-P", "-L", "-d"]),
    Wrapper::within(&["uv", "run"], &["--with", "--group", "--extra", "-p", "--python", "--package"], VENV),
    Wrapper::within(&["poetry", "run"], &[], VENV),
    Wrapper::within(&["pipenv", "run"], &[], VENV),
    Wrapper::within(&["pdm", "run"], &[], VENV),
    Wrapper::within(&["hatch", "run"], &[], VENV),
    Wrapper::within(&["rye", "run"], &[], VENV),
    Wrapper::within(&["pixi", "run"], &["-e"], ".pixi/envs/default/bin"),
    Wrapper::plain(&["bundle", "exec"], &[]),
    Wrapper::within(&["npx"], &["-p", "--package"], NODE_BIN),
    Wrapper::within(&["bunx"], &[], NODE_BIN),
    Wrapper::within(&["pnpm", "exec"], &[], NODE_BIN),
    Wrapper::plain(&["pnpm", "dlx"], &[]),
    Wrapper::within(&["npm", "exec"], &[], NODE_BIN),
    Wrapper::within(&["yarn", "exec"], &[], NODE_BIN),
    Wrapper::within(&["composer", "exec"], &[], COMPOSER_BIN),
    Wrapper::plain(&["mise", "exec"], &[]),
    // The directory whose settings hold stands in front of the program.
    Wrapper::plain(&["direnv", "exec", "."], &[]),
    Wrapper::plain(&["direnv", "exec"], &[]),
    Wrapper::plain(&["dotenv"], &["-e", "-f"]),
];

/// Where an environment of Python has its programs, and package managers of JavaScript and PHP have those of dependencies.
const VENV: &str = ".venv/bin";
pub(super) const NODE_BIN: &str = "node_modules/.bin";
pub(super) const COMPOSER_BIN: &str = "vendor/bin";

/// A program that runs the program behind it.
struct Wrapper {
    words: &'static [&'static str],
    /// Its options that take a word.
    valued: &'static [&'static str],
    /// The folder in which it looks for the program first, here and in the directories above.
    folder: Option<&'static str>,
}

impl Wrapper {
    const fn plain(words: &'static [&'static str], valued: &'static [&'static str]) -> Self {
        Self { words, valued, folder: None }
    }

    const fn within(
        words: &'static [&'static str],
        valued: &'static [&'static str],
        folder: &'static str,
    ) -> Self {
        Self { words, valued, folder: Some(folder) }
    }

    /// Tells whether words begin with it, also by its path in the system.
    fn begins(&self, words: &[&str]) -> bool {
        let (Some((program, rest)), Some((name, more))) = (words.split_first(), self.words.split_first())
        else {
            return false;
        };
        system_name(program) == *name && rest.starts_with(more)
    }
}

/// Returns the name of a program that is called by its path in the system: `/usr/bin/env` is `env`, while `./env` is a program of
/// the tree.
pub(super) fn system_name(program: &str) -> &str {
    if program.starts_with('/') { after_last(program, &['/']) } else { program }
}

/// Programs that read a file as a program.
pub(super) const INTERPRETERS: [&str; 24] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "python", "pypy", "node", "nodejs", "deno", "bun",
    "tsx", "ts-node", "ruby", "perl", "php", "lua", "Rscript", "julia", "pwsh", "elixir", "bats",
];

/// Of those, the ones whose programs are read here.
pub(super) const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];

/// Commands that a shell has of its own: no directory of `PATH` is looked into for them.
pub(super) const BUILTINS: [&str; 38] = [
    ".", ":", "[", "[[", "alias", "bg", "break", "case", "cd", "continue", "declare", "dirs", "do", "echo",
    "esac", "exit", "export", "false", "fg", "for", "getopts", "hash", "jobs", "let", "local", "popd",
    "printf", "pushd", "pwd", "read", "readonly", "return", "set", "shift", "source", "trap", "true",
    "unset",
];

/// Options that name a file whose content becomes variables or words.
pub(super) const OPTIONS_OF_WORDS: [&str; 7] = [
    "--env-file",
    "--env-file-if-exists",
    "--dotenv",
    "--dotenv-filename",
    "--dotenv-path",
    "--files-from",
    "--file-list",
];

/// Options that name a module, and programs that load it.
pub(super) const OPTIONS_OF_MODULES: [&str; 9] = [
    "-p",
    "-r",
    "--require",
    "--import",
    "--loader",
    "--load-plugins",
    "--plugin",
    "--plugins",
    "--reporter",
];
pub(super) const LOADERS: [&str; 25] = [
    "ava", "behave", "c8", "coverage", "cucumber", "flake8", "jest", "mocha", "mypy", "node", "nodejs",
    "nose2", "nyc", "py.test", "pylint", "pypy", "pytest", "python", "rake", "rspec", "ruby", "tap",
    "ts-node", "tsx", "vitest",
];

/// Where such a module lies, in the directory of a check, and how its file ends.
pub(super) const PLACES_OF_MODULES: [&str; 6] = ["", "src/", "lib/", "tests/", "test/", "spec/"];
pub(super) const ENDS_OF_MODULES: [&str; 9] =
    [".py", "/__init__.py", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.ts", ".rb"];

/// Programs that read a file of variables of this name without being told.
pub(super) const READERS_OF_VARIABLES: [&str; 8] =
    ["bun", "dotenv", "dotenvx", "env-cmd", "foreman", "heroku", "honcho", "pipenv"];

/// Where environments of Python usually have their programs.
pub(super) const USUAL: [&str; 2] = [VENV, "venv/bin"];

/// Programs that run scripts of a manifest by their names.
pub(super) const RUNNERS_OF_SCRIPTS: [&str; 9] = [
    "concurrently",
    "conc",
    "npm-run-all",
    "npm-run-all2",
    "nps",
    "run-p",
    "run-s",
    "start-server-and-test",
    "wireit",
];

/// Programs that run tasks of a project.
pub(super) const RUNNERS_OF_TASKS: [&str; 9] =
    ["make", "gmake", "npm", "pnpm", "yarn", "just", "task", "tox", "pre-commit"];

/// Programs whose words are names of programs, and run none of them.
pub(super) const INSTALLERS: [&str; 18] = [
    "apk", "apt", "apt-get", "brew", "conda", "dnf", "gem", "man", "nix-env", "pacman", "pip", "pipx",
    "type", "whereis", "which", "yum", "zypper", "git",
];

/// Programs that look at the files that they are given, or move them, and run none of them.
pub(super) const HANDLERS: [&str; 38] = [
    "addlicense",
    "bashate",
    "cat",
    "checkbashisms",
    "chgrp",
    "chmod",
    "chown",
    "cmp",
    "comm",
    "cp",
    "cut",
    "diff",
    "egrep",
    "fgrep",
    "file",
    "find",
    "grep",
    "head",
    "install",
    "ln",
    "md5sum",
    "mv",
    "od",
    "rg",
    "rm",
    "rsync",
    "sed",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "stat",
    "tail",
    "tar",
    "tee",
    "test",
    "touch",
    "wc",
];

/// How the file of a program of JavaScript ends that is named without its end.
pub(super) const ENDS_OF_PROGRAMS: [&str; 8] =
    ["", ".js", ".cjs", ".mjs", ".ts", "/index.js", "/index.cjs", "/index.ts"];

/// Options that name a file to be obeyed.
pub(super) const OPTIONS: [&str; 36] = [
    "-c",
    "-f",
    "-p",
    "-r",
    "-s",
    "--config",
    "--config-file",
    "--configFile",
    "--configuration",
    "--rcfile",
    "--rootdir",
    "--conf",
    "--cov-config",
    "--schema",
    "--expected",
    "--golden",
    "--reference",
    "--thresholds",
    "--settings",
    "--ini",
    "--file",
    "--makefile",
    "--justfile",
    "--taskfile",
    "--project",
    "--require",
    "--import",
    "--loader",
    "--runner",
    "--setupFiles",
    "--reporter",
    "--ignore-path",
    "--baseline",
    "--rules",
    "--style",
    "--bootstrap",
];

/// Words in the paths of what is there to check, and how such words begin or end: `runtests`, `checker`.
const OF_CHECKS: [&str; 30] = [
    "benchmark",
    "build",
    "ci",
    "compare",
    "count",
    "coverage",
    "dev",
    "e2e",
    "errors",
    "eval",
    "gate",
    "golden",
    "grade",
    "hack",
    "harness",
    "integration",
    "judge",
    "oracle",
    "quality",
    "reference",
    "report",
    "runner",
    "score",
    "script",
    "scripts",
    "smoke",
    "status",
    "suite",
    "tool",
    "tools",
];
const ROOTS_OF_CHECKS: [&str; 8] = ["assert", "audit", "check", "expect", "lint", "spec", "test", "verif"];

/// Tells whether a word names what ought to come out of something.
pub(super) fn is_expectation(word: &str) -> bool {
    const WORDS: [&str; 12] = [
        "baseline",
        "correct",
        "expect",
        "expected",
        "golden",
        "goldens",
        "oracle",
        "ref",
        "reference",
        "snapshot",
        "snapshots",
        "want",
    ];
    let mut words = word.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
    words.any(|word| WORDS.contains(&word.as_str()))
}

/// Tells whether a file is one that is loaded.
pub(super) fn is_code(path: &str) -> bool {
    const ENDS: [&str; 14] =
        ["cjs", "cts", "js", "json", "jsx", "mjs", "mts", "php", "py", "rb", "toml", "ts", "tsx", "yml"];
    extension(path).is_some_and(|end| ENDS.contains(&end))
}

/// Tells whether the first line of a script names a shell.
pub(super) fn is_shell_script(text: &str) -> bool {
    let is_of_shell = |word: &str| SHELLS.contains(&after_last(word, &['/']));
    first_line(text).strip_prefix("#!").is_some_and(|line| line.split_whitespace().any(is_of_shell))
}

/// Tells whether words start a shell that reads what it runs, or the names of it, from the command in front.
pub(super) fn is_shell_alone(words: &[&str]) -> bool {
    let (words, _) = behind_wrappers(words);
    let [program, options @ ..] = words else { return false };
    SHELLS.contains(&plain_name(program))
        && options.iter().all(|word| (word.starts_with('-') && !word.ends_with('c')) || *word == "{}")
}

/// Tells whether a path says that it is there to check, and not to be checked.
pub(super) fn is_named_as_a_check(path: &str) -> bool {
    let mut words = path.split(|sign: char| !sign.is_alphanumeric()).map(str::to_lowercase);
    let has_root =
        |word: &str| ROOTS_OF_CHECKS.iter().any(|root| word.starts_with(root) || word.ends_with(root));
    let is_of_checks = |word: String| {
        OF_CHECKS.contains(&word.as_str())
            || has_root(&word)
            || has_root(word.trim_end_matches('s'))
            || word.starts_with("valid")
    };
    words.any(is_of_checks) || CATALOG.file(path).is_some()
}

/// Returns the words behind programs that run others, and behind variables that are set for one; and the folders in which
/// those look first.
pub(super) fn behind_wrappers<'w>(words: &'w [&'w str]) -> (&'w [&'w str], Vec<&'static str>) {
    let mut words = words;
    let mut folders = Vec::new();
    loop {
        let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.begins(words));
        let Some(wrapper) = wrapper else {
            let Some(rest) = behind_timeout(words) else { return (words, folders) };
            words = rest;
            continue;
        };
        folders.extend(wrapper.folder);
        let mut at = wrapper.words.len();
        while let Some(word) = words.get(at) {
            let is_set = crate::shell::command::is_assignment(word);
            // An option of the wrapper, with the word that it takes, is not the program.
            match wrapper.valued.contains(word) {
                true => at += 2,
                false if word.starts_with('-') || is_set => at += 1,
                false => break,
            }
        }
        words = words.get(at..).unwrap_or_default();
    }
}

/// Returns the words behind `timeout` with its options and the time.
fn behind_timeout<'w>(words: &'w [&'w str]) -> Option<&'w [&'w str]> {
    let (program, rest) = words.split_first()?;
    if !matches!(system_name(program), "timeout" | "gtimeout") {
        return None;
    }
    let mut at = 0;
    while rest.get(at).is_some_and(|word| word.starts_with('-')) {
        at += if matches!(rest[at], "-k" | "-s" | "--kill-after" | "--signal") { 2 } else { 1 };
    }
    Some(rest.get(at + 1..).unwrap_or_default())
}

/// Tells whether a text reads files in, `. $NAME`, whose name a variable has.
pub(super) fn reads_in(text: &str, name: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_of_name = |word: &str| word.trim_matches(['"', ';', '$', '{', '}']) == name;
    words
        .windows(2)
        .any(|pair| matches!(pair[0], "." | "source") && pair[1].contains('$') && is_of_name(pair[1]))
}

/// Tells whether letters of options of `grep` end with the one that takes a file of words: `-vxFf`.
pub(super) fn list_of_words(name: &str, word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    matches!(name, "grep" | "egrep" | "fgrep" | "rg")
        && letters.ends_with('f')
        && letters.chars().all(|letter| letter.is_ascii_alphabetic())
}

/// Returns what a loop does whose head ends at a place of a text: what stands between its `do` and its `done`.
pub(super) fn loop_body(text: &str, head_end: usize) -> Option<&str> {
    let rest = head(text.get(head_end..)?, LONGEST_SUBSHELL);
    let (mut depth, mut begin, mut at) = (0_usize, 0, 0);
    for word in
        rest.split_inclusive(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | ')'))
    {
        let plain =
            word.trim_end_matches(|sign: char| sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | ')'));
        match plain {
            "do" => {
                begin = if depth == 0 { at + plain.len() } else { begin };
                depth += 1;
            }
            "done" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return rest.get(begin..at);
                }
            }
            _ => {}
        }
        at += word.len();
    }
    None
}

/// Returns the words behind the options of `coverage run`, as an interpreter of Python takes them.
pub(super) fn measured<'w>(words: &[&'w str]) -> Vec<&'w str> {
    const VALUED: [&str; 8] = [
        "--concurrency",
        "--context",
        "--data-file",
        "--debug",
        "--include",
        "--omit",
        "--rcfile",
        "--source",
    ];
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && **word != "-m") {
        at += if VALUED.contains(word) { 2 } else { 1 };
    }
    words.get(at..).unwrap_or_default().to_vec()
}

/// Returns where the subshell or the substitution ends of which a command is the first.
pub(super) fn subshell_end(text: &str, command: usize) -> Option<usize> {
    text.get(..command)?.trim_end().strip_suffix('(')?;
    let mut depth = 1_usize;
    let behind = head(text.get(command..)?, LONGEST_SUBSHELL).char_indices();
    behind.filter(|(_, sign)| matches!(sign, '(' | ')')).find_map(|(at, sign)| {
        depth = if sign == '(' { depth + 1 } else { depth - 1 };
        (depth == 0).then_some(command + at)
    })
}

/// Tells whether an interpreter is told to look at a program without running it: `bash -n x.sh`, `node --check x.js`.
pub(super) fn only_reads(name: &str, arguments: &[&str]) -> bool {
    let mut options = arguments.iter().take_while(|word| word.starts_with('-'));
    // Options of a letter may come together, as in `-wc`, but `-Iscripts` is a letter with its value.
    let has = |word: &str, letter: char, flags: &str| {
        let signs = word.strip_prefix('-').unwrap_or_default();
        signs.contains(letter) && signs.chars().all(|sign| flags.contains(sign))
    };
    options.any(|word| match name {
        "fish" => matches!(*word, "-n" | "--no-execute"),
        "node" | "nodejs" => matches!(*word, "-c" | "--check"),
        "perl" | "ruby" => has(word, 'c', "cvwTW"),
        "php" => matches!(*word, "-l" | "--syntax-check"),
        _ => SHELLS.contains(&name) && has(word, 'n', "abefhkmntuvxBCHP"),
    })
}

/// Returns the name of a program without its folder and version: `/usr/bin/python3.12` is `python`.
pub(super) fn plain_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    // Only interpreters carry their version in their names; `md5sum` and `7z` are names as they
    // stand.
    if matches!(plain, "python" | "pypy" | "ruby" | "php" | "perl" | "lua") { plain } else { name }
}

/// Returns how the path of a module in a directory of libraries begins, wherever it is asked for.
pub(super) fn in_library(folder: &str) -> String {
    match folder {
        "" => format!("{FROM_ROOT}./"),
        folder => format!("{FROM_ROOT}{folder}/"),
    }
}

pub(super) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Returns a path from the root of the repository, of one that is read in a directory; none for one that leads out of it, and
/// for the root itself, which is no file.
pub(super) fn resolved(directory: &str, path: &str) -> Option<String> {
    entered(directory, path).filter(|path| !path.is_empty())
}

/// Returns the directory to which a path leads from another one, from the root of the repository, which is empty; none for one
/// that leads out of it.
pub(super) fn entered(directory: &str, path: &str) -> Option<String> {
    let (directory, path) = path.strip_prefix(FROM_ROOT).map_or((directory, path), |path| ("", path));
    if path.starts_with(['/', '~', '-']) || path.is_empty() || path.contains(['\0', '$', '*']) {
        // What leads out of the repository is not the run's to change. With a variable in it,
        // it may lead anywhere.
        return None;
    }
    gitpath::folded(directory, path)
}
