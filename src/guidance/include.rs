//! Files that a text names with `@`: those of the repository go with it, and no others.

use super::source::{COMMANDS, GuidanceFile, Texts};
use crate::base::gitpath;

/// How deep files name each other, and how many go with one.
const DEEPEST: usize = 5;
const MOST: usize = 30;

/// Returns a text and the files that it includes, each once. What is not there, or would be outside, stays a name.
pub(super) fn with_included(texts: &dyn Texts, path: &str, text: &str) -> Vec<GuidanceFile> {
    let mut found = vec![GuidanceFile { path: path.to_owned(), text: text.to_owned() }];
    let (mut open, mut depth) = (0..1, 0);
    while depth < DEEPEST && !open.is_empty() {
        let end = found.len();
        for at in open {
            let named: Vec<String> = named(&found[at].path, &found[at].text);
            for path in named {
                let is_known = found.iter().any(|known| known.path == path);
                let text = if is_known || found.len() > MOST { None } else { texts.text(&path) };
                found.extend(text.map(|text| GuidanceFile { path, text }));
            }
        }
        (open, depth) = (end..found.len(), depth + 1);
    }
    found
}

/// Returns the paths from the top that a text names with `@`, outside of code.
fn named(path: &str, text: &str) -> Vec<String> {
    // A command is about the repository; any other file about what lies beside it.
    let beside = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    let directory = path.split_once(COMMANDS).map_or(beside, |(above, _)| above);
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        // Every other piece stands between backticks.
        let words = line.split('`').step_by(2).flat_map(str::split_whitespace);
        let names = words.filter_map(|word| word.strip_prefix('@'));
        let names = names.map(|name| name.trim_end_matches(['.', ',', ';', ':', ')', '!', '?']));
        found.extend(names.filter_map(|name| inside(directory, name)));
    }
    found
}

/// Returns a path from the top for one that is named in a directory; none where it would leave the repository.
fn inside(directory: &str, name: &str) -> Option<String> {
    // The configuration of the repository may hold a token.
    let is_of_git = name.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
    if is_of_git || name.starts_with(['/', '~']) || name.contains(['\\', ':']) || name.is_empty() {
        return None;
    }
    gitpath::folded(directory, name).filter(|path| !path.is_empty())
}

/// Writes the text of a command with the files that go with it.
pub(super) fn joined(files: &[GuidanceFile]) -> String {
    let Some((first, others)) = files.split_first() else { return String::new() };
    let mut texts = vec![first.text.trim().to_owned()];
    texts.extend(others.iter().map(|file| shown(file).trim_end().to_owned()));
    texts.join("\n\n")
}

/// Writes a file so that an agent sees which one it is.
pub(super) fn shown(file: &GuidanceFile) -> String {
    format!("<file path=\"{}\">\n{}\n</file>\n\n", file.path.replace('"', "'"), file.text.trim())
}
