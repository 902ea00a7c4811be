//! Reports a command line that cannot be read where runs are reported, as far as it can be read.

use std::ffi::OsString;

use clap::Parser as _;

use super::args::{Args, Command};
use super::exit;
use super::flags::{self, RunFlags};
use crate::base::text::first_line;
use crate::context::Session;
use crate::context::error::Error;

/// Options with a value that say where a run is reported.
const WITH_VALUE: [&str; 3] = ["--report-dir", "--status-context", "--sha"];

/// Options without one.
const SWITCHES: [&str; 6] = ["--ci", "--no-ci", "--status", "--no-status", "--check", "--comment"];

/// Reports a command line that cannot be read, as far as it can be.
pub(super) fn tell(arguments: &[OsString], message: &clap::Error, session: &Session<'_>) {
    let words = readable_words(arguments);
    let is_command = |index: &usize| {
        // `--color` may stand in front of a command, and takes the next word.
        let is_value = *index > 0 && words[index - 1] == "--color";
        !is_value && !words[*index].starts_with('-')
    };
    let Some(command) = (0..words.len()).find(is_command) else { return };
    // Only for a run may a status, a report or a comment be waited for.
    if !matches!(words[command].as_str(), "run" | "r" | "resume" | "res") {
        return;
    }
    let words = &words[command + 1..];
    // Nothing would have been run, so nothing is missing anywhere.
    if words.iter().any(|word| word == "--dry-run") {
        return;
    }
    // Which words are values of options cannot be told here, so the first that names a loop is taken.
    let is_loop = |word: &&String| session.find(word, true).is_ok();
    let named = || words.first().filter(|word| !word.starts_with('-'));
    let name = words.iter().find(is_loop).or_else(named).map(String::as_str);
    let text = message.to_string();
    let text = first_line(text.trim_start_matches("error: "));
    let error =
        Error::refused(text).with_hint("`ll-loop help run` and `ll-loop help resume` name the options");
    session.report_unbegun(&error, exit::INVALID, name, &flags::told(&readable(words), session.env));
}

/// Reports that a loop cannot be run whose name stands where a command would, and is that of no loop.
pub(super) fn tell_unknown(arguments: &[OsString], error: &Error, session: &Session<'_>) {
    let words = readable_words(arguments);
    let Some((name, words)) = words.split_first() else { return };
    if words.iter().any(|word| word == "--dry-run") {
        return;
    }
    session.report_unbegun(error, exit::INVALID, Some(name), &flags::told(&readable(words), session.env));
}

fn readable_words(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the options about reports that can be read, each by itself.
fn readable(words: &[String]) -> RunFlags {
    // What every run needs: without it no option could be read alone.
    let mut kept: Vec<&str> = vec!["ll-loop", "run", "loop"];
    let mut flags = RunFlags::default();
    for (index, word) in words.iter().enumerate() {
        let word = word.as_str();
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        let mut option = vec![word];
        if WITH_VALUE.contains(&word) {
            option.extend(words.get(index + 1).map(String::as_str));
        } else if !WITH_VALUE.contains(&name) && !SWITCHES.contains(&name) {
            continue;
        }
        // One at a time: an option that cannot be read must not take the others with it.
        let line = [&kept[..], &option].concat();
        if let Ok(Args { command: Command::Run(args), .. }) = Args::try_parse_from(&line) {
            (kept, flags) = (line, args.run);
        }
    }
    flags
}
