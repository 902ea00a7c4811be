//! Paths in a repository as text. Git's paths are bytes; those that are not UTF-8 are written with escapes in quotes, as
//! git itself shows them, so that no two paths become one text.

use std::fmt::Write as _;

/// Writes a path.
pub fn to_text(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        // A name that begins with a quote would be read back as one with escapes.
        Ok(text) if !text.starts_with('"') => text.to_owned(),
        Ok(_) | Err(_) => {
            let mut text = String::from("\"");
            for byte in path {
                match byte {
                    b'"' | b'\\' => {
                        text.push('\\');
                        text.push(char::from(*byte));
                    }
                    b' '..=b'~' => text.push(char::from(*byte)),
                    _ => {
                        let _ = write!(text, "\\{byte:03o}");
                    }
                }
            }
            text + "\""
        }
    }
}

/// Reads a path that [`to_text`] wrote.
pub fn to_bytes(text: &str) -> Vec<u8> {
    let Some(quoted) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return text.as_bytes().to_vec();
    };
    let mut path = Vec::new();
    let mut bytes = quoted.bytes();
    while let Some(byte) = bytes.next() {
        let escaped = if byte == b'\\' { bytes.next() } else { None };
        match escaped {
            None => path.push(byte),
            // Three octal digits, of which the first is at most 3, are one byte.
            Some(first @ b'0'..=b'3') => {
                let rest = [bytes.next(), bytes.next()].into_iter().flatten();
                let digits = [first].into_iter().chain(rest);
                path.push(digits.fold(0, |code: u8, digit| (code << 3) | (digit.wrapping_sub(b'0') & 7)));
            }
            Some(other) => path.push(other),
        }
    }
    path
}

/// Returns a path that is meant from a directory of the repository as one from its top; nothing where it leads out of there.
pub fn from_top(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') { None } else { folded(directory, path) }
}

/// Puts a path behind a directory and takes `.` and `..` out of it. One that leads above the top is refused, not clipped: clipping would
/// name another file.
pub fn folded(directory: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_is_no_text_is_escaped() {
        assert_eq!(to_text("src/ü \n.txt".as_bytes()), "src/ü \n.txt");
        assert_eq!(to_text(b"a\xff\"b"), "\"a\\377\\\"b\"");
        assert_eq!(to_text(b"\"a\""), "\"\\\"a\\\"\"");
    }

    #[test]
    fn a_path_is_meant_from_its_directory() {
        let seen = [("", "./a/b"), ("sub", "../a"), ("sub/x", ".loops//a.yaml"), ("", "../a"), ("sub", "/a")];
        let expected = [Some("a/b"), Some("a"), Some("sub/x/.loops/a.yaml"), None, None];
        for ((directory, path), expected) in seen.into_iter().zip(expected) {
            assert_eq!(from_top(directory, path).as_deref(), expected, "{directory} {path}");
        }
    }

    proptest! {
        #[test]
        fn a_path_is_read_as_it_was_written(path in prop::collection::vec(any::<u8>(), 0..20)) {
            prop_assert_eq!(to_bytes(&to_text(&path)), path);
        }
    }
}
