//! The last part of a path as a text, for messages, records and comparisons with names that are known to be plain.

use std::path::Path;

/// Returns the last part of a path, with U+FFFD in the place of what is not UTF-8; empty for a path such as `/` or `..`, which has none.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn a_path_may_have_no_name_or_an_odd_one() {
        let odd = Path::new(OsStr::from_bytes(b"a/b\xffc"));
        for (path, name) in [(Path::new("a/b.yaml"), "b.yaml"), (Path::new("a/.."), ""), (odd, "b\u{fffd}c")]
        {
            assert_eq!(file_name(path), name);
        }
    }
}
