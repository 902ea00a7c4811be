//! What to write next where a command line lacks something, in the words of what is here: the loops, the runs, another option.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::definition::load;

/// The most loops that are named.
// A longer list would push the message itself out of sight.
const MOST: usize = 20;

/// Returns what may be written, where that is more than the parser says.
pub(super) fn advice(arguments: &[OsString], message: &clap::Error) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let command = *words.iter().find(|word| !word.starts_with('-'))?;
    let kind = message.kind();
    if kind == ErrorKind::MissingRequiredArgument {
        missing(&lacking(message))
    } else if kind == ErrorKind::UnknownArgument {
        unknown(command, &words, message)
    } else {
        None
    }
}

/// Returns what is missing, as the parser writes it: `<LOOP>`.
fn lacking(message: &clap::Error) -> Vec<String> {
    match message.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    }
}

fn missing(lacking: &[String]) -> Option<String> {
    let names = |part: &str| lacking.iter().any(|name| name.contains(part));
    match () {
        () if names("--to <N>") => {
            Some("`ll-loop history RUN` numbers the steps of a run; `--to 1` is where it began".to_owned())
        }
        () if names("RUN") || names("BUNDLE") => {
            Some("`ll-loop history` lists the runs; the name of a loop stands for its last one".to_owned())
        }
        () if names("LOOP") => Some(loops()),
        () if names("approve") => {
            Some("`ll-loop status` shows the question; answer with `approve`, `reject` or a text".to_owned())
        }
        () if names("NAME") => Some("`ll-loop catalog` lists the ready loops".to_owned()),
        () => None,
    }
}

/// Names the loops that are here.
fn loops() -> String {
    let names = std::env::current_dir().map(|cwd| load::names(&cwd)).unwrap_or_default();
    if names.is_empty() {
        return "no loops are here yet: `ll-loop init` writes a first one, and `ll-loop catalog` lists ready ones".to_owned();
    }
    let shown: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > MOST { "; `ll-loop list` names all of them" } else { "" };
    format!("the loops are {}{more}", shown.join(", "))
}

/// Options that people look for, and what there is.
const MEANT: [(&str, &str, &str); 5] = [
    (
        "run",
        "--timeout",
        "`timeout: 30m` in the loop file limits a run; `--deadline 30m` saves it then, and hands it off",
    ),
    (
        "run",
        "--jobs",
        "a run is one after the other; `ll-loop plan NAME --each P=VALUES` spreads items over jobs",
    ),
    (
        "run",
        "--try",
        "`--dry-run` shows what would be run; `ll-loop init --try` tries the checks of the repository",
    ),
    (
        "run",
        "--force",
        "nothing keeps a run from beginning but another one with the same scope: `--queue` waits for it",
    ),
    ("init", "--dry-run", "nothing that is there is overwritten; `--try` tries each check in a copy"),
];

fn unknown(command: &str, words: &[&str], message: &clap::Error) -> Option<String> {
    let ContextValue::String(given) = message.get(ContextKind::InvalidArg)? else { return None };
    let option = given.split(['=', ' ']).next().unwrap_or(given);
    // The short form has the same options.
    let command = if command == "r" { "run" } else { command };
    let meant = MEANT.iter().find(|(of, name, _)| *of == command && *name == option);
    if let Some((_, _, advice)) = meant {
        return Some((*advice).to_owned());
    }
    // A third word is most often the second one of an input without quotes.
    let is_text = command == "run" && !given.starts_with('-') && words.len() > 2;
    is_text.then(|| "an input of several words needs quotes: `ll-loop run NAME \"two words\"`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args;

    fn advised(words: &str) -> Option<String> {
        let arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        let message = args::parse(&arguments).unwrap_err();
        advice(&arguments, &message)
    }

    #[test]
    fn what_is_missing_is_told_with_where_it_is_found() {
        for (words, said) in [
            ("run", "loops"),
            ("resume", "`ll-loop history` lists the runs"),
            ("answer", "`ll-loop history` lists the runs"),
            ("answer main", "approve"),
            ("deliver", "`ll-loop history` lists the runs"),
            ("rewind", "numbers the steps"),
            ("catalog show", "`ll-loop catalog` lists"),
            ("run main --timeout 5m", "`timeout: 30m` in the loop file"),
            ("run main --jobs=3", "`ll-loop plan NAME"),
            ("run main two words", "needs quotes"),
        ] {
            let advice = advised(words).unwrap_or_default();
            assert!(advice.contains(said), "{words}: {advice}");
        }
        assert_eq!(advised("run main --worktre"), None);
    }
}
