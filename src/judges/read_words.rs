//! Files whose content becomes words of a command, or variables of its environment: `export $(grep -v '#' .env)`,
//! `xargs pytest < list`. Whoever writes them says what a check does.

use std::sync::LazyLock;

use regex::Regex;

use super::compared::{around, last_of_pipeline, names_variable, variable};
use crate::base::text::after_last;
use crate::shell::command::{CommandOutput, SimpleCommand};
use crate::shell::token::ShellOperator;

/// The most files of a text.
const MOST: usize = 50;

/// A file that a substitution reads without a program.
static READ: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\(\s*<\s*([^\s)<>]+)\s*\)").expect("it is a constant"));

/// A file that a loop reads line by line.
static LOOP_INPUT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?m)\bdone[ \t]*<[ \t]*["']?([\x02\w./-]+)"#).expect("it is a constant"));

/// A file of variables that is named where a task runner is told to read one.
static OF_VARIABLES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\w./-]*\.env[\w.-]*").expect("it is a constant"));

/// Programs for which words are what is worked on, put somewhere or shown, and no part of what a check looks at.
const OF_WORK: [&str; 62] = [
    "apk",
    "apt",
    "apt-get",
    "ar",
    "awk",
    "brew",
    "c++",
    "cat",
    "cc",
    "chmod",
    "chown",
    "clang",
    "clang++",
    "cmp",
    "composer",
    "cp",
    "curl",
    "cut",
    "diff",
    "dnf",
    "docker",
    "echo",
    "egrep",
    "expr",
    "fgrep",
    "g++",
    "gcc",
    "gem",
    "ghc",
    "git",
    "grep",
    "head",
    "javac",
    "jq",
    "kill",
    "kotlinc",
    "ld",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mv",
    "pip",
    "pip3",
    "printf",
    "rg",
    "rm",
    "rustc",
    "sed",
    "sha256sum",
    "sort",
    "tail",
    "tar",
    "tee",
    "test",
    "touch",
    "tr",
    "wc",
    "wget",
    "yum",
    "[",
    "[[",
];

/// Programs that take words, or lines, from their input.
const TAKERS: [&str; 5] = ["mapfile", "parallel", "read", "readarray", "xargs"];

/// A function, and a list of words.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)(?:^|[;&|{(])[ \t]*(?:function[ \t]+)?([A-Za-z_][\w-]*)[ \t]*\(\)")
        .expect("it is a constant")
});
static ARRAY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)(?:^|[\s;&|])[A-Za-z_]\w*\+?=\(([^()`$]*)\)").expect("it is a constant")
});

/// The head of a text that a shell reads from the lines below.
static HERE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[\s;&|(/])(?:ba|da|z|k)?sh\b[^|;&]*<<-?[ \t]*["'\\]?(\w+)"#).expect("it is a constant")
});

/// Returns the texts that shells read from the lines of a text.
pub(super) fn here_scripts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next().filter(|_| found.len() < MOST) {
        // Most lines have no such sign, and are not looked at any closer.
        let begins = line.contains("<<").then(|| HERE.captures(line)).flatten();
        if let Some(begins) = begins {
            let body = lines.by_ref().take_while(|line| line.trim() != &begins[1]);
            found.push(body.collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

/// Returns the names of the functions of a text.
pub(super) fn functions(text: &str) -> Vec<String> {
    FUNCTION.captures_iter(text).map(|found| found[1].to_owned()).take(MOST).collect()
}

/// Returns the words of the lists that a text sets variables to.
pub(super) fn arrays(text: &str) -> Vec<&str> {
    let lists = ARRAY.captures_iter(text).filter_map(|found| found.get(1)).map(|found| found.as_str());
    lists.flat_map(str::split_whitespace).map(|word| word.trim_matches(['"', '\''])).take(MOST).collect()
}

/// Returns a text in which a file that a substitution reads is read by a program.
pub(super) fn with_readers(text: &str) -> String {
    if text.contains('<') { READ.replace_all(text, "$$(cat ${1})").into_owned() } else { text.to_owned() }
}

/// Returns the files that loops of a text read line by line.
pub(super) fn of_loops(text: &str) -> Vec<String> {
    let found = LOOP_INPUT.captures_iter(text).map(|found| found[1].to_owned());
    found.filter(|name| says_something(name)).take(MOST).collect()
}

/// Returns the files whose content one of the commands of a text makes words of another one.
pub(super) fn of_command(command: &SimpleCommand, all: &[SimpleCommand], text: &str) -> Vec<String> {
    let values = command.values();
    let mut found = Vec::new();
    if let Some(taken) = taken_by(&values) {
        // What it works on is read from a file that it is given.
        if !is_work(taken) {
            let inputs = command.inputs.iter().filter_map(|word| word.value.as_deref());
            found.extend(inputs.chain(named_lists(&values)));
        }
    } else if becomes_words(command, all, text) {
        let inputs = command.inputs.iter().filter_map(|word| word.value.as_deref());
        found.extend(read_files(&values).into_iter().flatten().chain(inputs));
    }
    found.into_iter().filter(|name| says_something(name)).take(MOST).map(str::to_owned).collect()
}

/// Returns the files of variables that a file of a task runner reads.
pub(super) fn of_tasks(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("dotenv")).take(MOST).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let named = lines.iter().flat_map(|line| OF_VARIABLES.find_iter(line)).map(|found| found.as_str());
    std::iter::once(".env").chain(named).map(str::to_owned).collect()
}

/// Tells whether what a command reads becomes words of another one that is no work.
fn becomes_words(command: &SimpleCommand, all: &[SimpleCommand], text: &str) -> bool {
    if !reads(&command.values()) {
        return false;
    }
    let Some(last) = last_of_pipeline(command, all) else { return false };
    if [command, last].iter().any(|one| is_count(&one.values())) {
        return false;
    }
    if command.after == Some(ShellOperator::Pipe)
        && let Some(taken) = taken_by(&last.values())
        && !is_work(taken)
    {
        return true;
    }
    if command.output != CommandOutput::Substituted {
        return false;
    }
    let is_program = |outer: &SimpleCommand| match outer.values().first() {
        Some(Some(program)) => !is_work(program),
        // What is read is the program itself.
        Some(None) => true,
        None => false,
    };
    match around(command, all) {
        Some(outer) => is_program(outer),
        None => variable(command, text).is_some_and(|name| {
            let asking = all.iter().filter(|other| other.range.start > command.range.end);
            let mut asking = asking
                .filter(|other| text.get(other.range.clone()).is_some_and(|text| names_variable(text, name)));
            asking.any(is_program)
        }),
    }
}

/// Returns the program that takes words from the input of a command; the command itself where it keeps them.
fn taken_by<'w>(values: &[Option<&'w str>]) -> Option<&'w str> {
    let program = (*values.first()?)?;
    let name = after_last(program, &['/']);
    if !TAKERS.contains(&name) {
        return None;
    }
    let mut words = values[1..].iter().flatten();
    let is_program =
        |word: &&&str| !word.starts_with('-') && word.contains(|sign: char| sign.is_ascii_alphabetic());
    let behind = match name {
        "xargs" | "parallel" => words.find(is_program).copied(),
        _ => None,
    };
    Some(behind.unwrap_or(name))
}

/// Returns the lists that `xargs` and `parallel` are told to read.
fn named_lists<'w>(values: &[Option<&'w str>]) -> Vec<&'w str> {
    let mut found = Vec::new();
    let mut words = values.iter().flatten();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some(("--arg-file", file)) => found.push(file),
            _ if matches!(*word, "-a" | "--arg-file" | "::::") => found.extend(words.next().copied()),
            _ => {}
        }
    }
    found
}

/// Tells whether a command says how much it reads, and not what.
fn is_count(values: &[Option<&str>]) -> bool {
    let is_flag = |word: &&str| {
        let signs = word.strip_prefix('-').filter(|signs| !signs.starts_with('-'));
        *word == "--count" || signs.is_some_and(|signs| signs.contains('c'))
    };
    match values.first() {
        Some(Some("wc")) => true,
        Some(Some("egrep" | "fgrep" | "grep" | "rg")) => values[1..].iter().flatten().any(is_flag),
        _ => false,
    }
}

/// Tells whether a command hands on what it reads.
fn reads(values: &[Option<&str>]) -> bool {
    read_files(values).is_some()
}

/// Returns the files that a command reads to hand on what they say; none where it does something else.
fn read_files<'w>(values: &[Option<&'w str>]) -> Option<Vec<&'w str>> {
    let program = after_last((*values.first()?)?, &['/']);
    let is_search = matches!(program, "egrep" | "fgrep" | "grep" | "rg");
    let first = match program {
        "cat" | "cut" | "envsubst" | "head" | "nl" | "paste" | "sort" | "tac" | "tail" | "tr" | "uniq" => 0,
        "awk" | "gawk" | "gsed" | "jq" | "mawk" | "sed" | "yq" => 1,
        _ if is_search => 1,
        _ => return None,
    };
    let words = || values[1..].iter().flatten();
    // Names of files that are found are not what they say.
    let names_files = |word: &&str| {
        let signs = word.strip_prefix('-').filter(|signs| !signs.starts_with('-')).unwrap_or_default();
        signs.contains(['l', 'L', 'q', 'r', 'R']) || word.starts_with("--files-")
    };
    if is_search && words().any(names_files) {
        return None;
    }
    let is_told = words().any(|word| matches!(*word, "-e" | "-f" | "--expression" | "--file" | "--regexp"));
    let named = values[1..].iter().filter(|word| word.is_none_or(|word| !word.starts_with('-')));
    Some(named.skip(if is_told { 0 } else { first }).flatten().copied().collect())
}

fn is_work(program: &str) -> bool {
    OF_WORK.contains(&after_last(program, &['/']))
}

/// Tells whether a word may be the name of a file with more in it than a version, which is the work.
fn says_something(name: &str) -> bool {
    let is_name = name.contains(|sign: char| sign.is_ascii_alphabetic())
        && !name.contains(|sign: char| {
            sign.is_whitespace() || matches!(sign, '{' | '}' | '(' | ')' | '|' | '^' | '\\')
        });
    is_name
        && !name.starts_with("/dev/")
        && !name.to_lowercase().contains("version")
        && after_last(name, &['/']) != ".nvmrc"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::command::commands;

    #[test]
    fn what_becomes_words_is_known() {
        for (text, expected) in [
            ("export $(grep -v '^#' .env | xargs)", ".env"),
            ("env $(cat .env 2>/dev/null) python3 -m pytest -q", ".env"),
            ("export A=\"$(< opts)\"", "opts"),
            ("pytest `cat ci/list.txt`", "ci/list.txt"),
            ("xargs python3 -m pytest -q < ci/list.txt", "ci/list.txt"),
            ("xargs -a ci/list.txt -n 1 pytest", "ci/list.txt"),
            ("cat ci/list.txt | xargs pytest", "ci/list.txt"),
            ("tr '\\n' ' ' < ci/list.txt | xargs pytest", "ci/list.txt"),
            ("eval \"$(sed 's/^/export /' .env)\"", ".env"),
            ("source <(grep = .env)", ".env"),
            ("mapfile -t all < list; pytest \"${all[@]}\"", "list"),
            ("X=$(cat list); pytest $X", "list"),
            ("for f in $(cat list); do pytest $f; done", "list"),
            ("$(cat ci/cmd)", "ci/cmd"),
            ("while read -r t; do pytest $t; done < list", "list"),
            // What is worked on.
            ("X=$(cat list); echo $X", ""),
            ("echo \"$(cat list)\"", ""),
            ("[ \"$(cat out.txt)\" = hello ]", ""),
            ("pip install $(cat packages.txt)", ""),
            ("xargs apt-get install < packages.txt", ""),
            ("cc -o app $(cat sources.txt)", ""),
            ("kill $(cat server.pid)", ""),
            ("./release $(cat VERSION)", ""),
            ("grep -rl foo src | xargs ruff check", ""),
            ("n=$(cat list | wc -l); sh run $n", ""),
            ("find . -name '*.py' | xargs ruff check", ""),
            ("cat list", ""),
        ] {
            let text = with_readers(text);
            let all = commands(&text);
            let mut found: Vec<String> =
                all.iter().flat_map(|command| of_command(command, &all, &text)).collect();
            found.extend(of_loops(&text));
            assert_eq!(found.join(" "), expected, "{text}");
        }
        assert_eq!(functions("run() { sh \"$1\"; }\nfunction a-b () {\n}\n$(f)"), ["run", "a-b"]);
        assert_eq!(arrays("T=(ci/one.sh 'ci/two.sh'); x"), ["ci/one.sh", "ci/two.sh"]);
        assert_eq!(of_tasks("set dotenv-load\nset dotenv-filename := 'ci.env'\n"), [".env", "ci.env"]);
        assert!(of_tasks("test:\n  pytest\n").is_empty());
    }
}
