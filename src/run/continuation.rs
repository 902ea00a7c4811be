//! Reads what the agent of a session that ends wrote down for the next one.

use std::path::Path;

use crate::files::read;

/// Where agents write it, relative to the directory of the run.
const FILE: &str = ".claude/ll-continue-prompt.md";

/// More than this is not a prompt.
const MOST: u64 = 256 * 1024;

/// Returns the text, if there is one.
pub(super) fn read(root: &Path) -> Option<String> {
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
