//! Reads what the agent of a session that ends wrote down for the next one.

use std::path::Path;

use crate::files::file_time::FileTime;
use crate::files::read;

/// Where agents write it, relative to the directory of the run.
const FILE: &str = ".claude/ll-continue-prompt.md";

/// More than this is not a prompt.
const MOST: u64 = 256 * 1024;

/// What stood there at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundContinuation {
    text: Option<String>,
    at: Option<FileTime>,
}

/// Looks at what stands there.
pub(super) fn look(root: &Path) -> FoundContinuation {
    let at = root.join(FILE).symlink_metadata().ok().map(|metadata| FileTime::of(&metadata));
    FoundContinuation { text: read(root), at }
}

/// Returns the text, if it was written since: one that was there before is that of an earlier session.
pub(super) fn written_since(before: Option<&FoundContinuation>, root: &Path) -> Option<String> {
    let now = look(root);
    now.text.clone().filter(|_| before != Some(&now))
}

/// Returns the text, if there is one.
fn read(root: &Path) -> Option<String> {
    // A pipe or a device would hold up the run for ever.
    // The agent wrote it, so it is read as untrusted input.
    let text = read::head(&root.join(FILE), MOST).ok()?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_session_left_is_not_taken_for_what_this_one_wrote() {
        let root = tempfile::TempDir::with_prefix("ll-continue-").unwrap();
        let root = root.path();
        assert_eq!(written_since(Some(&look(root)), root), None);
        fs_err::create_dir(root.join(".claude")).unwrap();
        let before = look(root);
        fs_err::write(root.join(FILE), "item 7").unwrap();
        assert_eq!(written_since(Some(&before), root).as_deref(), Some("item 7"));
        let before = look(root);
        assert_eq!(written_since(Some(&before), root), None);
        // A run that goes on does not know what was there before.
        assert_eq!(written_since(None, root).as_deref(), Some("item 7"));
        fs_err::write(root.join(FILE), "item 8").unwrap();
        assert_eq!(written_since(Some(&before), root).as_deref(), Some("item 8"));
    }

    #[test]
    fn a_text_is_read_and_nothing_else() {
        let root = tempfile::TempDir::with_prefix("ll-continue-").unwrap();
        assert_eq!(read(root.path()), None);
        fs_err::create_dir(root.path().join(".claude")).unwrap();
        fs_err::write(root.path().join(FILE), " \n").unwrap();
        assert_eq!(read(root.path()), None);
        fs_err::write(root.path().join(FILE), "go on with item 7\n").unwrap();
        assert_eq!(read(root.path()).as_deref(), Some("go on with item 7"));
        fs_err::remove_file(root.path().join(FILE)).unwrap();
        fs_err::create_dir(root.path().join(FILE)).unwrap();
        assert_eq!(read(root.path()), None);
    }
}
