//! Paths that cannot leave the directory they are read in, and lines that cannot do anything but be read.

use super::parsed::parsed;
use super::text::{is_direction, is_line_end, one_line, up_to};

/// Why a text is not such a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is empty, or one of its components is, or is `.`.
    #[error("a path cannot have an empty component, or `.`")]
    Component,
    /// It begins at the root.
    #[error("a path from elsewhere cannot begin with `/`")]
    Absolute,
    /// It leads out of its directory.
    #[error("a path from elsewhere cannot lead upwards")]
    Upwards,
    /// It leads into a repository's own files.
    #[error("a path from elsewhere cannot lead into `.git`")]
    Git,
    /// It holds a character that file names cannot have everywhere.
    #[error("a path from elsewhere cannot contain {0:?}")]
    Character(char),
    /// It is longer than any system takes.
    #[error("a path can have at most {MAX_PATH} bytes, and each component {MAX_COMPONENT}")]
    TooLong,
}

/// The longest path.
// A little less than the 4,096 bytes that Linux takes.
pub const MAX_PATH: usize = 4000;

/// The longest name of a file.
// The limit of the usual file systems.
pub const MAX_COMPONENT: usize = 255;

parsed!(
    /// A path below the directory it is read in: plain names with `/` between them, and never into a `.git`.
    RelativePath, PathError, check
);

fn check(text: &str) -> Result<(), PathError> {
    if text.starts_with('/') {
        return Err(PathError::Absolute);
    }
    if text.len() > MAX_PATH {
        return Err(PathError::TooLong);
    }
    // A backslash parts names on Windows.
    if let Some(character) = text.chars().find(|c| c.is_control() || is_line_end(*c) || *c == '\\') {
        return Err(PathError::Character(character));
    }
    for part in text.split('/') {
        match part {
            "" | "." => return Err(PathError::Component),
            ".." => return Err(PathError::Upwards),
            _ if is_like(part.as_bytes(), ".git") => return Err(PathError::Git),
            _ if part.len() > MAX_COMPONENT => return Err(PathError::TooLong),
            _ => {}
        }
    }
    Ok(())
}

/// Tells whether some file system takes a name for another one that begins with a dot: by its case, by characters
/// that it does not count, or by the short name that it gives it.
pub fn is_like(name: &[u8], dotted: &str) -> bool {
    let plain = folded(&String::from_utf8_lossy(name));
    let short = dotted.trim_start_matches('.');
    // Windows makes a short name of the first six, as in `GITMOD~1`.
    let short = short.get(..6).unwrap_or(short);
    let is_short = || {
        let number = plain.strip_prefix(short).and_then(|rest| rest.strip_prefix('~'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    plain == dotted || is_short()
}

/// Returns what the most careless file system makes of a name: in small letters, without what it does not count or drops.
pub fn folded(name: &str) -> String {
    // Some letters, such as the long s, meet others in capitals only.
    let upper = name.chars().filter(|c| !is_ignored(*c)).flat_map(char::to_uppercase);
    let counted: String = upper.flat_map(char::to_lowercase).collect();
    // What follows a colon is a stream of the same file, and dots and blanks at the end are dropped.
    up_to(&counted, &[':']).trim_end_matches(['.', ' ']).to_owned()
}

/// Tells whether every system can hold a path: on Windows some signs and endings are none of a name, and some names are those of
/// devices, whatever stands behind a dot.
pub fn is_held_everywhere(path: &str) -> bool {
    path.split('/').all(|name| {
        let is_odd = name.contains(['<', '>', ':', '"', '|', '?', '*']) || name.ends_with(['.', ' ']);
        !is_odd && !is_device(up_to(name, &['.']).trim_end())
    })
}

fn is_device(stem: &str) -> bool {
    let stem = stem.to_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_number = |rest: &str| {
        matches!(rest, "\u{b9}" | "\u{b2}" | "\u{b3}")
            || (rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit())
    };
    matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
        || port.is_some_and(is_number)
}

/// What HFS+ does not count in a name.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Why a text is not such a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not one line of at most {MAX_LINE} characters without control characters")]
pub struct LineError;

/// The longest line.
pub const MAX_LINE: usize = 1000;

parsed!(
    /// A line that is only ever shown: nothing in it ends it, moves a cursor, or turns the direction of reading.
    Line, LineError, |text| {
        let is_unfit = |c: char| c.is_control() || is_line_end(c) || is_direction(c);
        let is_line = text.chars().count() <= MAX_LINE && !text.chars().any(is_unfit);
        if is_line { Ok(()) } else { Err(LineError) }
    }
);

impl Line {
    /// Makes a line of any text: what does not fit is left out.
    pub fn of(text: &str) -> Self {
        Self(one_line(text, MAX_LINE))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_stays_below_its_directory() {
        for path in
            ["a", ".loops/main.yaml", "a b/ü", "...", "..a", ".gitignore", ".github/x", "git", "-x", "a:b"]
        {
            assert_eq!(RelativePath::parse(path).unwrap().as_str(), path);
        }
        let long = "a/".repeat(3000);
        for path in [
            "",
            "/",
            "/etc/x",
            "..",
            "../x",
            "a/..",
            "a/../../b",
            ".",
            "./a",
            "a//b",
            "a/",
            "a\\b",
            "a\0b",
            "a\nb",
            "a\u{1b}[2J",
            "a\u{2028}b",
            ".git",
            ".git/config",
            "a/.GIT/hooks/x",
            ".g\u{200c}it/x",
            "GIT~1/x",
            ".git /x",
            ".git./x",
            ".git::$INDEX_ALLOCATION/x",
            long.as_str(),
            &"a".repeat(256),
        ] {
            assert!(RelativePath::parse(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn names_are_alike_where_some_file_system_takes_one_for_the_other() {
        for name in [".loops", ".LOOPS", ".Loops.", ".lo\u{200d}ops", "loops~1", ".loops:x"] {
            assert!(is_like(name.as_bytes(), ".loops"), "{name}");
        }
        for name in ["loops", ".loop", ".loopss", "loops~", "loops~a", ".loops-old", ""] {
            assert!(!is_like(name.as_bytes(), ".loops"), "{name}");
        }
        assert!(is_like(b".gitmodules", ".gitmodules") && is_like(b"GITMOD~1", ".gitmodules"));
    }

    #[test]
    fn names_that_some_system_cannot_hold_are_known() {
        for path in
            ["CON", "src/aux.txt", "a:b", "x.", "tr ", "com1", "a/LPT9.log/b", "a?", "nul .txt", "\"a\""]
        {
            assert!(!is_held_everywhere(path), "{path}");
        }
        for path in ["console", "src/auxiliary.rs", "com", "com10", "a b", ".gitignore", "ü", "src/[id].ts"]
        {
            assert!(is_held_everywhere(path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_a_path_has_only_plain_components(text in "[a-z./~\\\\ G\u{200c}\0-]{0,12}") {
            if let Ok(path) = RelativePath::parse(&text) {
                let parts: Vec<_> = std::path::Path::new(path.as_str()).components().collect();
                prop_assert!(parts.iter().all(|part| matches!(part, std::path::Component::Normal(_))));
                prop_assert_eq!(parts.len(), text.split('/').count());
            }
        }

        #[test]
        fn any_text_makes_a_line_that_is_one(text in any::<String>()) {
            let line = Line::of(&text);
            prop_assert_eq!(Line::parse(line.as_str()), Ok(line.clone()));
        }
    }
}
