//! Keeps the files of runs out of what formatters and linters look at: many of them read the `.gitignore` at the top, and none
//! of those below it.

use std::path::Path;

use crate::base::own::OF_RUNS;
use crate::context::Session;
use crate::context::error::Error;
use crate::definition::load::DIRECTORY;
use crate::files::read;
use crate::files::replace::replace;

/// The file, at the top of a repository.
pub(super) const FILE: &str = ".gitignore";

/// What is said where nothing was to do.
pub(super) const UNCHANGED: &str = "unchanged";

/// The largest file that is extended, in bytes.
const LARGEST: u64 = 256 * 1024;

/// Adds the lines that are missing, below a comment for other tools that may be needed there, and returns what was done.
pub(super) fn ignore_runs(root: &Path, comment: &str, session: &Session<'_>) -> Result<&'static str, Error> {
    let path = root.join(FILE);
    let present = match fs_err::symlink_metadata(&path) {
        Err(_) => String::new(),
        Ok(_) => match read::text(&path, LARGEST) {
            // Writing replaces the file, and would cut a link off from what it leads to.
            Ok(text) if !path.is_symlink() => text,
            Ok(_) | Err(_) => {
                session.talk.warning(&format!(
                    "`{FILE}` is not a file that can be extended; add {}",
                    OF_RUNS.map(|directory| format!("`{DIRECTORY}/{directory}/`")).join(", ")
                ));
                return Ok(UNCHANGED);
            }
        },
    };
    let Some(text) = extended(&present, comment) else { return Ok(UNCHANGED) };
    replace(&path, text).map_err(|error| Error::failed(format!("cannot write `{FILE}`"), &error))?;
    Ok(if present.is_empty() { "written" } else { "extended" })
}

/// Returns the text with the lines that are missing; nothing where none is.
fn extended(present: &str, comment: &str) -> Option<String> {
    let is_there = |line: &&String| {
        let plain = line.trim_end_matches('/');
        present
            .lines()
            .map(str::trim)
            .any(|known| known.trim_start_matches('/').trim_end_matches('/') == plain)
    };
    let lines = OF_RUNS.map(|directory| format!("{DIRECTORY}/{directory}/"));
    let taken_out = taken_out(present).iter().map(|line| (*line).to_owned());
    let lines: Vec<String> = taken_out.chain(lines).collect();
    let missing: Vec<&String> = lines.iter().filter(|line| !is_there(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let end = if present.contains("\r\n") { "\r\n" } else { "\n" };
    let between = match present {
        "" => "",
        _ if present.ends_with('\n') => end,
        _ => &format!("{end}{end}"),
    };
    let missing: Vec<&str> = missing.into_iter().map(String::as_str).collect();
    let comment = comment.replace('\n', end);
    Some(format!("{present}{between}# Runs of ll-loop{end}{comment}{}{end}", missing.join(end)))
}

/// Returns the lines without which git would leave the loops out, because a pattern that is not about them ignores them: `/*`.
fn taken_out(present: &str) -> &'static [&'static str] {
    let mut found: &[&str] = &[];
    for line in present.lines().map(str::trim) {
        match line.trim_end_matches('/') {
            "/*" | ".*" | "/.*" => found = &["!/.loops/"],
            // It ignores what lies in a folder as well.
            "*" | "**" => found = &["!/.loops/", "!/.loops/**"],
            "!.loops" | "!/.loops" | "!/.loops/**" | "!.loops/**" => found = &[],
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_once_and_in_the_way_of_the_file() {
        let all =
            "# Runs of ll-loop\n.loops/.running/\n.loops/.history/\n.loops/.worktrees/\n.loops/.reuse/\n";
        assert_eq!(extended("", "").as_deref(), Some(all));
        assert_eq!(extended(all, ""), None);
        assert_eq!(extended("", "# x\n"), Some(all.replacen(".loops/", "# x\n.loops/", 1)));
        assert_eq!(extended("dist", "").unwrap(), format!("dist\n\n{all}"));
        for (present, taken_out) in [
            ("/*\n!/x\n", "!/.loops/\n"),
            ("*\n", "!/.loops/\n!/.loops/**\n"),
            (".*\n!.loops\n", ""),
            (".loops/x\n*.o\n", ""),
        ] {
            let expected = all.replacen(".loops/", &format!("{taken_out}.loops/"), 1);
            assert_eq!(extended(present, "").unwrap(), format!("{present}\n{expected}"), "{present}");
        }
        assert_eq!(
            extended("dist\r\n/.loops/.running\r\n.loops/.history\r\n", "").as_deref(),
            Some(
                "dist\r\n/.loops/.running\r\n.loops/.history\r\n\r\n# Runs of ll-loop\r\n.loops/.worktrees/\r\n.loops/.reuse/\r\n"
            )
        );
    }
}
