//! Reads what the agent of a session that ends wrote down for the next one.

use std::io::Read as _;
use std::path::Path;

/// Where agents write it, relative to the directory of the run.
const FILE: &str = ".claude/ll-continue-prompt.md";

/// More than this is no prompt.
const MOST: u64 = 256 * 1024;

/// Returns the text, if there is one.
pub(super) fn read(root: &Path) -> Option<String> {
    let mut text = Vec::new();
    let path = root.join(FILE);
    // A pipe or a device could hold up the run for ever.
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let file = fs_err::File::open(path).ok().filter(|_| is_file)?;
    file.take(MOST).read_to_end(&mut text).ok()?;
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
