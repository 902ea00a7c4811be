//! What a text puts into the variable `PATH`: the directories in which the programs are looked for that it calls.

use std::sync::LazyLock;

use regex::Regex;

use crate::base::text::head;

/// A place in which programs are looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SearchPlace {
    /// A directory outside of the tree.
    Outside(String),
    /// A directory of the tree, from its root.
    Inside(String),
    /// One for which a text of the check itself asks.
    Asked(String),
    /// Some directory of the tree whose path ends so: where it lies is not known before the run.
    Somewhere(String),
}

/// A directory that a text adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AddedPlace {
    /// Its path, as the text has it.
    Known(String),
    /// The end of its path: what stands in front of it is not known.
    Unknown(String),
}

/// The directories that a text adds, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AddedPlaces {
    /// In front of the others.
    pub(super) front: Vec<AddedPlace>,
    /// Behind the others.
    pub(super) behind: Vec<AddedPlace>,
}

/// The longest value that is read, and the most directories that a text adds.
const LONGEST: usize = 4096;
const MOST: usize = 20;

/// Where the variable is set, wherever a command may stand.
static SET: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?m)(?:^|[\s;&|({'"`])PATH\+?="#).expect("it is a constant"));

/// Where variables are set that say where interpreters look for modules.
static SET_LIBRARIES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)(?:^|[\s;&|({'"`])(?:PYTHONPATH|NODE_PATH|RUBYLIB|PERL5LIB)\+?="#)
        .expect("it is a constant")
});

/// Functions that add a directory, of direnv and fish.
static ADDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:PATH_add|path_add[ \t]+PATH|fish_add_path(?:[ \t]+-\S+)*)[ \t]+([^\s;&|)]+)")
        .expect("it is a constant")
});

/// The script with which a virtual environment of Python puts its programs in front.
static ACTIVATES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"([^\s;&|(`]+)/bin/activate\b").expect("it is a constant"));

/// How a task runner says what the variable is: `export PATH := …` of just, `PATH: …` of task.
static OF_TASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^[ \t]*(?:export[ \t]+PATH[ \t]*:=|PATH:)[ \t]*(.+)$").expect("it is a constant")
});

/// Where such a file lies, and what the variable was, in their words.
static OWN_FOLDER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:justfile_directory|invocation_directory|source_directory)\(\)|\{\{\s*\.(?:ROOT_DIR|TASKFILE_DIR|USER_WORKING_DIR)\s*\}\}",
    )
    .expect("it is a constant")
});
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:env_var_or_default|env_var|env)\(\s*["']PATH["'][^)]*\)|\{\{\s*\.PATH\s*\}\}"#)
        .expect("it is a constant")
});

/// How words begin that lead out of the tree.
const OUTSIDE: [&str; 20] = [
    "$HOME",
    "${HOME",
    "$(HOME",
    "$CARGO_HOME",
    "${CARGO_HOME",
    "$GOPATH",
    "${GOPATH",
    "$GOROOT",
    "$(go ",
    "$(brew ",
    "$JAVA_HOME",
    "${JAVA_HOME",
    "$PYENV_ROOT",
    "$NVM_DIR",
    "$RUNNER_TEMP",
    "$(gem ",
    "$(ruby ",
    "$(rustc ",
    "$(mktemp ",
    "$(xcrun ",
];

/// Words that ask a package manager where its programs are, and where that usually is.
const ASKED: [(&str, &str); 6] = [
    ("$(npm bin", "node_modules/.bin"),
    ("$(yarn bin", "node_modules/.bin"),
    ("$(pnpm bin", "node_modules/.bin"),
    ("$(poetry env", ".venv/bin"),
    ("$(pipenv --venv", ".venv/bin"),
    ("$(composer config", "vendor/bin"),
];

impl AddedPlaces {
    fn take(&mut self, value: &str) {
        let mut is_behind = false;
        for part in parts(value) {
            if is_what_was_there(&part) {
                is_behind = true;
            } else if self.front.len() + self.behind.len() < MOST {
                let list = if is_behind { &mut self.behind } else { &mut self.front };
                list.extend(place(&part));
            }
        }
    }

    /// Reads the value of the variable.
    pub(super) fn of_value(value: &str) -> Self {
        let mut found = Self::default();
        found.take(head(value, LONGEST));
        found
    }

    /// Reads a text of shell.
    pub(super) fn of_text(text: &str) -> Self {
        let mut found = Self::default();
        if text.contains("PATH") || text.contains("fish_add_path") {
            for set in SET.find_iter(text).take(MOST) {
                found.take(first_value(&text[set.end()..]));
            }
            for added in ADDS.captures_iter(text).take(MOST) {
                found.front.extend(place(&plain(&added[1])));
            }
        }
        if text.contains("/bin/activate") {
            for named in ACTIVATES.captures_iter(text).take(MOST) {
                found.front.extend(place(&format!("{}/bin", plain(&named[1]))));
            }
        }
        found
    }

    /// Reads a file of `just` or `task`; a directory of its own is said with a sign for the root in front.
    pub(super) fn of_tasks(text: &str, own_folder: &str) -> Self {
        let mut found = Self::default();
        for set in OF_TASKS.captures_iter(text).take(MOST) {
            let value = OWN_FOLDER.replace_all(head(&set[1], LONGEST), regex::NoExpand(own_folder));
            let value = BEFORE.replace_all(&value, regex::NoExpand("$PATH"));
            // Texts of just are put together with a plus.
            found.take(&value.replace(" + ", "").replace(' ', ""));
        }
        found
    }
}

/// Returns the directories of modules that a text of shell adds, as far as they are known.
pub(super) fn added_libraries(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    // Most texts say nothing of them.
    if text.contains("PATH") || text.contains("LIB=") || text.contains("5LIB") {
        for set in SET_LIBRARIES.find_iter(text).take(MOST) {
            let places = parts(first_value(&text[set.end()..])).into_iter().filter_map(|part| place(&part));
            found.extend(places.filter_map(|place| match place {
                AddedPlace::Known(path) => Some(path),
                AddedPlace::Unknown(_) => None,
            }));
        }
    }
    found
}

/// Returns the value that a text begins with.
fn first_value(text: &str) -> &str {
    let text = head(text, LONGEST);
    let (mut quote, mut depth) = (None, 0_usize);
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            (_, '\n') => return &text[..at],
            (Some(open), _) if open == sign => quote = None,
            (None, '"' | '\'' | '`') => quote = Some(sign),
            (None, '(') => depth += 1,
            (None, ')') if depth > 0 => depth -= 1,
            (None, _) if depth == 0 && (sign.is_whitespace() || matches!(sign, ';' | '&' | '|' | ')')) => {
                return &text[..at];
            }
            (Some(_) | None, _) => {}
        }
    }
    text
}

fn plain(word: &str) -> String {
    word.replace(['"', '\'', '\\'], "")
}

/// Returns the parts of a value, which stand between colons. A colon within braces is none of them.
fn parts(value: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_usize;
    for sign in plain(value).chars() {
        match sign {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match found.last_mut() {
            Some(last) if sign != ':' || depth > 0 => last.push(sign),
            Some(_) | None => found.push(String::new()),
        }
    }
    found
}

/// Tells whether a part is what the variable was before: `$PATH`, `${PATH:+…}`, `$(PATH)`, `$$PATH`.
fn is_what_was_there(part: &str) -> bool {
    let name = part.trim_start_matches('$').trim_start_matches(['{', '(']);
    let is_read = part.starts_with('$') && name.len() < part.len();
    is_read
        && name.strip_prefix("PATH").is_some_and(|rest| {
            !rest.starts_with(|sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '/'))
        })
}

/// Returns the directory that a part names, where it may lie in the tree.
fn place(part: &str) -> Option<AddedPlace> {
    if part.starts_with(['/', '~']) || OUTSIDE.iter().any(|begin| part.starts_with(begin)) {
        return None;
    }
    if let Some((_, folder)) = ASKED.iter().find(|(begin, _)| part.starts_with(begin)) {
        return Some(AddedPlace::Known((*folder).to_owned()));
    }
    let is_unknown = |text: &str| text.contains(['$', '`', '\0', '(', ')', '{', '}', ' ', '*']);
    if !is_unknown(part) {
        // Nothing between two colons is the directory in which a program is started.
        let path = if part.is_empty() { "." } else { part };
        return Some(AddedPlace::Known(path.to_owned()));
    }
    let known = part.rsplit('/').take_while(|name| !is_unknown(name));
    let mut known: Vec<&str> = known.filter(|name| !matches!(*name, "" | "." | "..")).collect();
    known.reverse();
    Some(AddedPlace::Unknown(known.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(found: &AddedPlaces) -> String {
        let one = |place: &AddedPlace| match place {
            AddedPlace::Known(path) => path.clone(),
            AddedPlace::Unknown(end) => format!("?{end}"),
        };
        let all = |places: &[AddedPlace]| places.iter().map(one).collect::<Vec<_>>().join(" ");
        format!("{} | {}", all(&found.front), all(&found.behind))
    }

    #[test]
    fn what_a_text_adds_is_read() {
        for (text, expected) in [
            ("PATH=.venv/bin:$PATH pytest -q", ".venv/bin | "),
            ("export PATH=\"bin:${PATH:+:$PATH}\"", "bin | "),
            ("env PATH='a:b':$PATH pytest; PATH=$PATH:c", "a b | c"),
            ("sh -c 'PATH=a:$PATH pytest'", "a | "),
            ("PATH=\"$X/sub/bin:$(f a/b)/bin:$1:$PATH\" x", "?sub/bin ?bin ? | "),
            ("PATH=/opt/bin:$HOME/bin:~/bin:$PATH x", " | "),
            ("PATH=$(npm bin):$PATH x", "node_modules/.bin | "),
            ("export PATH=:$PATH", ". | "),
            ("PATH_add tools; fish_add_path -g more", "tools more | "),
            (". .venv/bin/activate && pytest", ".venv/bin | "),
            ("source \"$DIR\"/.venv/bin/activate", "?.venv/bin | "),
            ("PYTHONPATH=src pytest; echo $PATH; MYPATH=x", " | "),
        ] {
            assert_eq!(shown(&AddedPlaces::of_text(text)), expected, "{text}");
        }
        let many = "PATH=a:b:c:$PATH x\n".repeat(10_000);
        assert!(AddedPlaces::of_text(&many).front.len() <= MOST);
    }

    #[test]
    fn where_modules_are_looked_for_is_read() {
        for (text, expected) in [
            ("PYTHONPATH=ci python3 -m look", "ci"),
            ("export NODE_PATH=\"a:b:$NODE_PATH\"; RUBYLIB=/usr/lib x", "a b"),
            ("PATH=bin:$PATH MYPYTHONPATH=x y", ""),
        ] {
            assert_eq!(added_libraries(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn what_a_task_runner_adds_is_read() {
        for (text, expected) in [
            ("export PATH := justfile_directory() + \"/bin:\" + env_var(\"PATH\")", "^./bin | "),
            ("env:\n  PATH: '{{.ROOT_DIR}}/bin:{{.PATH}}'\n", "^./bin | "),
            ("PATHS: a\nx := 'y'", " | "),
        ] {
            assert_eq!(shown(&AddedPlaces::of_tasks(text, "^.")), expected, "{text}");
        }
        assert_eq!(shown(&AddedPlaces::of_value("$(X)/bin:$(PATH)")), "?bin | ");
    }
}
