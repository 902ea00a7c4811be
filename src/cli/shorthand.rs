//! `ll-loop NAME …` is `ll-loop run NAME …` where NAME is not a command: finds out whether a command line begins like that.

use std::ffi::OsString;
use std::path::Path;

use super::args::commands;
use super::predecessor;
use crate::base::diagnostic::nearest;
use crate::context::error::Error;
use crate::definition::load::{self, LoadError};

/// A word that is neither a command nor a loop.
pub(super) struct UnknownWord {
    pub(super) error: Error,
    /// Its place on the command line.
    pub(super) at: usize,
    /// Whether a command is probably meant.
    pub(super) is_command: bool,
}

/// Returns the command line with `run` before the name of a loop that stands where a command would.
pub(super) fn expanded(mut arguments: Vec<OsString>, cwd: &Path) -> Result<Vec<OsString>, UnknownWord> {
    let Some((at, word)) = first_word(&arguments) else { return Ok(arguments) };
    let commands = commands();
    if commands.iter().any(|command| command == word) {
        return Ok(arguments);
    }
    // What looks like a path means a file; that it is not there is said by `run`.
    let is_path = word.contains(['/', '\\', '.']);
    if let (Err(LoadError::UnknownName { nearest: near, .. }), false) = (load::find(word, cwd), is_path) {
        return Err(unknown(word, at, &commands, near.as_deref()));
    }
    arguments.insert(at, "run".into());
    Ok(arguments)
}

/// Returns the first word that is not an option, and its place; nothing, where an option of a command comes before it.
fn first_word(arguments: &[OsString]) -> Option<(usize, &str)> {
    let mut words = arguments.iter().enumerate();
    while let Some((at, word)) = words.next() {
        match word.to_str()? {
            // The only option that stands before a command and has a value.
            "--color" => drop(words.next()),
            word if word.starts_with("--color=") => {}
            // Such as `--help`, or a mistake that the parser explains.
            word if word.is_empty() || word.starts_with('-') => return None,
            word => return Some((at, word)),
        }
    }
    None
}

fn unknown(word: &str, at: usize, commands: &[String], near_loop: Option<&str>) -> UnknownWord {
    // Any short word is near to a command of two or three letters, but few have the same letters.
    let letters = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let is_likely = |command: &&str| match command.len() {
        4.. => true,
        3 => letters(command) == letters(word) || (word.len() > 3 && near_loop.is_none()),
        _ => false,
    };
    let near_command = nearest(word, commands.iter().map(String::as_str).filter(is_likely));
    // Before anything that is only near: who types such a word knows it from there.
    if let Some(here) = predecessor::command(word) {
        let error =
            Error::refused(format!("`{word}` is a command of little-loops, and none of this program"));
        return UnknownWord { error: error.with_hint(here), at, is_command: true };
    }
    let error = Error::refused(format!("`{word}` is neither a command nor a loop"));
    let hint = match (near_command, near_loop) {
        (Some(command), Some(name)) => format!("did you mean the command `{command}`, or the loop `{name}`?"),
        (Some(command), None) => format!("did you mean the command `{command}`?"),
        (None, Some(name)) => format!("did you mean the loop `{name}`?"),
        (None, None) => "`ll-loop help` names the commands, and `ll-loop list` the loops".to_owned(),
    };
    UnknownWord { error: error.with_hint(hint), at, is_command: near_command.is_some() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows what becomes of a command line where the loops are `tidy`, `list` and `web/tidy`.
    fn shown(line: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        for name in ["tidy", "list", "web/tidy"] {
            let path = directory.path().join(".loops").join(format!("{name}.yaml"));
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "").unwrap();
        }
        let arguments = line.split_whitespace().map(OsString::from).collect();
        match expanded(arguments, directory.path()) {
            Ok(words) => words.join(std::ffi::OsStr::new(" ")).into_string().unwrap(),
            Err(UnknownWord { error, .. }) => {
                format!("{}; {}", error.message(), error.hint().unwrap_or_default())
            }
        }
    }

    #[test]
    fn the_name_of_a_loop_is_run() {
        for (line, expected) in [
            ("tidy", "run tidy"),
            ("tidy --ci x", "run tidy --ci x"),
            ("--color never tidy", "--color never run tidy"),
            ("--color=never web/tidy", "--color=never run web/tidy"),
            ("tidy.yaml", "run tidy.yaml"),
            ("../tidy", "run ../tidy"),
            ("list", "list"),
            ("help", "help"),
            ("val tidy", "val tidy"),
            ("--strict tidy", "--strict tidy"),
            ("--help", "--help"),
            ("", ""),
            ("web/tydi", "run web/tydi"),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }

    #[test]
    fn a_mistake_may_be_meant_as_either() {
        for (line, expected) in [
            (
                "vlidate tidy",
                "`vlidate` is neither a command nor a loop; did you mean the command `validate`?",
            ),
            ("runn", "`runn` is neither a command nor a loop; did you mean the command `run`?"),
            ("rnu", "`rnu` is neither a command nor a loop; did you mean the command `run`?"),
            (
                "rub",
                "`rub` is neither a command nor a loop; `ll-loop help` names the commands, and `ll-loop list` the loops",
            ),
            ("tdiy", "`tdiy` is neither a command nor a loop; did you mean the loop `tidy`?"),
            (
                "lst",
                "`lst` is neither a command nor a loop; did you mean the command `list`, or the loop `list`?",
            ),
            (
                "zzz",
                "`zzz` is neither a command nor a loop; `ll-loop help` names the commands, and `ll-loop list` the loops",
            ),
        ] {
            assert_eq!(shown(line), expected, "{line}");
        }
    }
}
