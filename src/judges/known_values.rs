//! Fills in what is known of a text of shell before it runs: the folder of a script where the script asks for it, as most do
//! that run others beside them, `$(dirname "$0")`; the directory in which it runs; the root of the repository; and variables that
//! are set to a plain word.

use std::sync::LazyLock;

use regex::{NoExpand, Regex};

/// What a path from the root of the repository begins with in a text, whatever directory the text is run in.
pub(super) const FROM_ROOT: char = '\u{2}';

/// The longest script into which anything is filled.
pub(super) const LONGEST: usize = 256 * 1024;

/// The longest path that is filled in.
const LONGEST_PATH: usize = 255;

/// How many variables are filled in, and how often they are set to each other.
const MOST_VARIABLES: usize = 20;
const DEEPEST: usize = 3;

/// The script itself by all its links: `$(realpath "$0")`.
static REAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"\$\(\s*(?:readlink\s+-f|realpath)\s+(?:--\s+)?"?(\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?)"?\s*\)"#,
    )
    .expect("it is a constant")
});

/// Its folder.
static FOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\$\(\s*dirname\s+(?:--\s+)?"?\$\{?(?:0|BASH_SOURCE(?:\[0\])?)\}?"?\s*\)|\$\{(?:0|BASH_SOURCE(?:\[0\])?)%/\*\}"#)
        .expect("it is a constant")
});

/// The same as a whole path: `$(cd "$(dirname "$0")" && pwd)`.
static WHOLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"\$\(\s*cd\s+(?:--\s+)?"?(\x02[^"\s;&)]*)"?\s*(?:&?>\s*/dev/null\s*(?:2>&1\s*)?)?&&\s*pwd(?:\s+-P)?\s*\)"#)
        .expect("it is a constant")
});

/// A variable that is set to such a path.
static SET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)^\s*(?:(?:export|readonly|local)\s+)?([A-Za-z_]\w*)="?(\x02[^"\s;&|$]*)"?\s*(?:;|&&|$)"#,
    )
    .expect("it is a constant")
});

/// The root of the repository, as texts ask for it.
static ROOT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"\$\(\s*git\s+rev-parse\s+--show-toplevel\s*\)|`\s*git\s+rev-parse\s+--show-toplevel\s*`|\$\{?(?:GITHUB_WORKSPACE|CI_PROJECT_DIR)\b\}?",
    )
    .expect("it is a constant")
});

/// The directory in which a text runs.
static HERE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\(\s*pwd\s*\)|`\s*pwd\s*`|\$\{PWD\}|\$PWD\b").expect("it is a constant"));

/// What makes it another one.
static MOVES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b(?:cd|pushd|popd)\b").expect("it is a constant"));

/// A variable that is set to a plain word, wherever a command may stand.
static PLAIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?m)(?:^|[;&|({]|\b(?:do|then|else))[ \t]*(?:(?:export|readonly|local)[ \t]+)?([A-Za-z_]\w*)=["']?([\x02\w./-]+)["']?[ \t]*(?:;|&&|$)"#,
    )
    .expect("it is a constant")
});

/// How make says where it runs and where its file lies, and functions that change nothing about a path.
static OF_MAKE: LazyLock<[(Regex, &str); 5]> = LazyLock::new(|| {
    [
        // The shell finds the files, too.
        (r"\$\((?:wildcard|sort|strip)\s+([^()$]*)\)", "${1}"),
        (r"\$[({](?:CURDIR|PWD)[)}]|\$\(shell\s+pwd\s*\)", HERE_SIGN),
        (r"\$\((?:lastword|firstword|word\s+1,)\s*\$[({]MAKEFILE_LIST[)}]\s*\)", "\u{1}/Makefile"),
        (r"\$\(dir\s+([^\s()$]*/)[^\s()$/]*\s*\)", "${1}"),
        (r"\$\((?:abspath|realpath|patsubst\s+%/,%,)\s*([^\s()$]*[^\s()$/])/*\s*\)", "${1}"),
    ]
    .map(|(pattern, value)| (Regex::new(pattern).expect("it is a constant"), value))
});
const HERE_SIGN: &str = "\u{1}";

/// Returns a text of make with where it is run, which it asks for by functions and variables of its own.
pub(super) fn of_make(text: &str, directory: &str) -> String {
    if !text.contains('$') || text.len() > LONGEST {
        return text.to_owned();
    }
    let mut text = ROOT_OF_MAKE.replace_all(text, NoExpand(&from_root(""))).into_owned();
    for _ in 0..DEEPEST {
        for (pattern, value) in OF_MAKE.iter() {
            text = pattern.replace_all(&text, *value).into_owned();
        }
    }
    text.replace(HERE_SIGN, &from_root(directory))
}

/// The root of the repository, as files of make ask for it.
static ROOT_OF_MAKE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\(shell\s+git\s+rev-parse\s+--show-toplevel\s*\)").expect("it is a constant")
});

/// Returns how a directory is written from the root of the repository.
pub(super) fn from_root(directory: &str) -> String {
    if directory.is_empty() { format!("{FROM_ROOT}.") } else { format!("{FROM_ROOT}{directory}") }
}

/// Returns a text that is run in a directory with what is known of its values: where it runs, where the root is, and variables
/// that it sets once.
pub(super) fn with_known_values(text: &str, directory: &str) -> String {
    if !text.contains(['$', '`']) || text.len() > LONGEST {
        return text.to_owned();
    }
    let root = from_root("");
    let mut text = ROOT.replace_all(text, NoExpand(&root)).into_owned();
    if !MOVES.is_match(&text) {
        text = HERE.replace_all(&text, NoExpand(&from_root(directory))).into_owned();
    }
    for _ in 0..DEEPEST {
        let found = PLAIN.captures_iter(&text).filter(|found| found[2].len() <= LONGEST_PATH);
        let set: Vec<(String, String)> =
            found.take(MOST_VARIABLES).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
        // One that is set twice, read, or given by a loop has other values, too.
        let is_one = |name: &str| {
            set.iter().filter(|(other, _)| other == name).count() == 1 && is_set_once(&text, name)
        };
        let known: Vec<&(String, String)> = set.iter().filter(|(name, _)| is_one(name)).collect();
        let filled = known.iter().fold(text.clone(), |text, (name, value)| with_variable(&text, name, value));
        if filled == text {
            break;
        }
        text = filled;
    }
    text
}

/// Tells whether a text gives a variable a value in one place.
fn is_set_once(text: &str, name: &str) -> bool {
    let is_word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let places = text.match_indices(name).filter(|(at, _)| {
        let before = text[..*at].chars().next_back();
        let behind = &text[at + name.len()..];
        let is_whole = !before.is_some_and(|sign| is_word(sign) || matches!(sign, '$' | '{' | '-'))
            && !behind.starts_with(is_word);
        let is_given =
            ["for", "read", "select", "unset"].iter().any(|word| text[..*at].trim_end().ends_with(word));
        is_whole && (is_given || behind.starts_with('=') || behind.starts_with("+="))
    });
    places.count() == 1
}

/// Returns the text of a script with the folder that it lies in, by its path from the root of the repository.
pub(super) fn filled_in(text: &str, script: &str) -> String {
    let asks = ["$0", "${0", "BASH_SOURCE"].iter().any(|sign| text.contains(sign));
    if !asks || text.len() > LONGEST {
        return text.to_owned();
    }
    let folder = script.rsplit_once('/').map_or(".", |(folder, _)| folder);
    let folder = format!("{FROM_ROOT}{folder}");
    let text = REAL.replace_all(text, "${1}");
    let mut text = FOLDER.replace_all(&text, NoExpand(&folder)).into_owned();
    for _ in 0..DEEPEST {
        text = WHOLE.replace_all(&text, "${1}").into_owned();
        let found = SET.captures_iter(&text).filter(|found| found[2].len() <= LONGEST_PATH);
        let found = found.take(MOST_VARIABLES).map(|found| (found[1].to_owned(), found[2].to_owned()));
        let set: Vec<(String, String)> = found.collect();
        for (name, value) in set {
            text = with_variable(&text, &name, &value);
        }
    }
    text
}

/// Fills a variable in: `$NAME` and `${NAME}`.
pub(super) fn with_variable(text: &str, name: &str, value: &str) -> String {
    let text = text.replace(&format!("${{{name}}}"), value);
    let sign = format!("${name}");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(&sign) {
        let behind = &rest[at + sign.len()..];
        let is_longer = behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        out.push_str(&rest[..at]);
        out.push_str(if is_longer { &sign } else { value });
        rest = behind;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_knows_the_folder_that_it_lies_in() {
        for (text, expected) in [
            ("cd \"$(dirname \"$0\")/..\"", "cd \"^a/b/..\""),
            (". \"${BASH_SOURCE[0]%/*}/lib.sh\"", ". \"^a/b/lib.sh\""),
            ("cd $(dirname $(readlink -f $0))", "cd ^a/b"),
            ("\"$(dirname -- \"${BASH_SOURCE[0]}\")\"/x", "\"^a/b\"/x"),
            (
                "D=\"$(cd \"$(dirname \"$0\")\" &> /dev/null && pwd -P)\"\n$D/x $DIR ${D}",
                "D=\"^a/b\"\n^a/b/x $DIR ^a/b",
            ),
            ("A=$(dirname \"$0\")\nB=\"$A/..\"\n$B/x", "A=^a/b\nB=\"^a/b/..\"\n^a/b/../x"),
            ("echo $1 $HOME", "echo $1 $HOME"),
            ("echo $0", "echo $0"),
        ] {
            assert_eq!(filled_in(text, "a/b/check.sh").replace(FROM_ROOT, "^"), expected, "{text}");
        }
        assert_eq!(filled_in("$(dirname $0)/x", "check.sh").replace(FROM_ROOT, "^"), "^./x");
    }

    #[test]
    fn a_text_of_make_knows_where_it_is_run() {
        for (text, expected) in [
            ("$(CURDIR)/bin:$(PATH)", "^a/bin:$(PATH)"),
            ("${PWD}/x $(shell pwd)/y", "^a/x ^a/y"),
            ("$(shell git rev-parse --show-toplevel)/x", "^./x"),
            ("$(dir $(abspath $(lastword $(MAKEFILE_LIST))))bin", "^a/bin"),
            ("$(abspath x/)/y $(shell ls) $$PWD", "x/y $(shell ls) $$PWD"),
            ("$(sort $(wildcard t.d/*.sh))", "t.d/*.sh"),
        ] {
            assert_eq!(of_make(text, "a").replace(FROM_ROOT, "^"), expected, "{text}");
        }
    }

    #[test]
    fn a_text_knows_where_it_runs_and_what_it_sets() {
        for (text, expected) in [
            ("sh \"$PWD/x\" ${PWD}/y $(pwd)/z `pwd` $PWDS", "sh \"^a/x\" ^a/y ^a/z ^a $PWDS"),
            ("cd b; sh $PWD/x", "cd b; sh $PWD/x"),
            ("sh \"$(git rev-parse --show-toplevel)/x\"", "sh \"^./x\""),
            ("sh $GITHUB_WORKSPACE/x ${CI_PROJECT_DIR}/y", "sh ^./x ^./y"),
            ("S=scripts; sh $S/x", "S=scripts; sh scripts/x"),
            ("A=a\nB=$A/b\nsh ${B}/x", "A=a\nB=a/b\nsh a/b/x"),
            ("if x; then S=a; else S=b; fi; sh $S/x", "if x; then S=a; else S=b; fi; sh $S/x"),
            ("S=a; for S in b c; do sh $S; done", "S=a; for S in b c; do sh $S; done"),
            ("S=a sh $S", "S=a sh $S"),
        ] {
            assert_eq!(with_known_values(text, "a").replace(FROM_ROOT, "^"), expected, "{text}");
        }
    }
}
