//! File commands: outputs and the step summary, appended to files that the runner reads after the step.

use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use uuid::Uuid;

use super::cut::cut;
use crate::files::read;
use crate::files::replace::replace;

/// The runner drops a summary above 1 MiB as a whole, and has been seen to lose one near it.
pub const MAX_SUMMARY: u64 = 900 * 1000;

const CUT: &str = "> The summary is longer than GitHub keeps; the rest is in the report of the run.";

/// Appends outputs to the file behind `GITHUB_OUTPUT`.
pub fn append_outputs(path: &Path, outputs: &[(&'static str, String)]) -> io::Result<()> {
    let text: String = outputs.iter().map(|(name, value)| output(name, value)).collect();
    append(path, &text)
}

/// Appends Markdown to the file behind `GITHUB_STEP_SUMMARY`, as much as the runner takes.
pub fn append_summary(path: &Path, markdown: &str) -> io::Result<()> {
    // Other commands of the same step may have written to it, and the limit holds for all of it.
    let there = match fs_err::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    match fitting(markdown, MAX_SUMMARY.saturating_sub(there)) {
        Some(text) => append(path, &text),
        None => Ok(()),
    }
}

/// Puts Markdown before what was appended to the summary since it was so long. What does not fit any more is cut at the end.
pub fn insert_in_summary(path: &Path, since: u64, markdown: &str) -> io::Result<()> {
    let there = match read::bytes(path, 4 * read::MIB) {
        Ok(there) => there,
        Err(read::Unread::Absent) => Vec::new(),
        Err(error) => return Err(io::Error::other(error.to_string())),
    };
    let at = usize::try_from(since).unwrap_or(usize::MAX).min(there.len());
    let (before, after) = there.split_at(at);
    let after = String::from_utf8_lossy(after);
    // Said once, and at the end.
    let cut_line = format!("{CUT}\n");
    let is_cut = after.contains(&cut_line);
    // Others may have left their last line open.
    let break_before = if before.last().is_some_and(|last| *last != b'\n') { "\n" } else { "" };
    let list = markdown.trim_end_matches('\n');
    let mut text = format!("{break_before}{list}\n\n{}", after.replace(&cut_line, ""));
    if is_cut {
        text = format!("{}\n\n{CUT}", text.trim_end_matches('\n'));
    }
    let Some(text) = fitting(&text, MAX_SUMMARY.saturating_sub(since)) else { return Ok(()) };
    replace(path, [before, text.as_bytes()].concat())
}

/// Returns the text, or its first lines where it does not fit, or nothing where not even they do.
fn fitting(markdown: &str, room: u64) -> Option<String> {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let text = cut(markdown.trim_end_matches('\n'), room.saturating_sub(1), CUT)?;
    Some(format!("{text}\n"))
}

/// Writes one output as a block between delimiters that no value can hold.
fn output(name: &str, value: &str) -> String {
    // From a fixed word, an action could end the block early and set outputs of its own.
    let delimiter = format!("ghadelimiter_{}", Uuid::new_v4());
    format!("{name}<<{delimiter}\n{value}\n{delimiter}\n")
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file = read::append(path)?;
    let length = file.metadata()?.len();
    // Another command of the step may have left its last line open, and ours would go on with it.
    let text = if ends_a_line(path, length) { text.to_owned() } else { format!("\n{text}") };
    // One write: a step that is killed leaves a whole block or none. Of half a block the runner makes an error.
    file.write_all(text.as_bytes()).inspect_err(|_| drop(file.set_len(length)))
}

/// Tells whether what stands in a file of this length ends with the end of a line, as far as it can be read.
fn ends_a_line(path: &Path, length: u64) -> bool {
    let Some(last) = length.checked_sub(1) else { return true };
    let mut byte = [b'\n'];
    let found =
        read::open(path).map_err(io::Error::from).and_then(|file| file.read_exact_at(&mut byte, last));
    found.is_err() || byte == [b'\n']
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_first_moves_the_rest_and_keeps_its_room() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("summary");
        std::fs::write(&path, "others\n").unwrap();
        append_summary(&path, "item 1\n").unwrap();
        insert_in_summary(&path, 7, "red: item 1\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "others\nred: item 1\n\nitem 1\n");

        std::fs::write(&path, "").unwrap();
        for _ in 0..3 {
            append_summary(&path, &"a line of an item\n".repeat(30_000)).unwrap();
        }
        insert_in_summary(&path, 0, "red: all\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.len() as u64 <= MAX_SUMMARY && text.starts_with("red: all\n"), "{}", text.len());
        assert_eq!((text.matches(CUT).count(), text.trim_end().ends_with(CUT)), (1, true));
    }

    /// What the runner reads, written from `FileCommandManager.cs`.
    fn read(text: &str) -> Vec<(String, String)> {
        let mut lines = text.lines();
        let mut read = Vec::new();
        while let Some(line) = lines.next() {
            let (name, delimiter) = line.split_once("<<").unwrap();
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != delimiter).collect();
            read.push((name.to_owned(), value.join("\n")));
        }
        read
    }

    #[test]
    fn outputs_read_back_whatever_they_hold() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let hostile = "a\nghadelimiter_0\nevil=1\nx<<EOF";
        append_outputs(file.path(), &[("outcome", "failure".into()), ("reason", hostile.into())]).unwrap();
        append_outputs(file.path(), &[("cost-usd", String::new())]).unwrap();
        let text = fs_err::read_to_string(file.path()).unwrap();
        let expected = [("outcome", "failure"), ("reason", hostile), ("cost-usd", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(read(&text), expected);
    }

    #[test]
    fn a_line_that_another_command_left_open_is_ended_first() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), "before=1").unwrap();
        append_outputs(file.path(), &[("outcome", "failure".into())]).unwrap();
        append_summary(file.path(), "# Title").unwrap();
        let text = fs_err::read_to_string(file.path()).unwrap();
        let (before, rest) = text.split_once('\n').unwrap();
        assert!(before == "before=1" && rest.starts_with("outcome<<ghadelimiter_"), "{text}");
        assert!(rest.ends_with("\n# Title\n") && !rest.contains("\n\n"), "{text}");
    }

    #[test]
    fn a_summary_never_grows_beyond_what_the_runner_takes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let markdown = format!("## Title\n\nSentence.\n\n```text\n{}\n```\n", "x".repeat(500_000));
        for _ in 0..9 {
            append_summary(file.path(), &markdown).unwrap();
        }
        let text = fs_err::read_to_string(file.path()).unwrap();
        assert!(text.len() as u64 <= MAX_SUMMARY);
        assert_eq!(text.matches("```").count(), 2);
        assert!(text.contains("Sentence.\n\n> The summary is longer"));
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        assert!(append_outputs(Path::new("/"), &[]).is_err());
        assert!(append_summary(Path::new("/nowhere/at/all"), "x").is_err());
    }
}
