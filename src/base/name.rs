//! Names that users choose, parsed once so that no later layer has to check them again.

use super::parsed::parsed;
use super::text::is_hex;

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name has no characters.
    #[error("a {what} cannot be empty")]
    Empty {
        /// The kind of name, for people.
        what: &'static str,
    },
    /// The name holds a character that would break a log line, a path or a template.
    #[error("a {what} cannot contain {character:?}")]
    Character {
        /// The kind of name, for people.
        what: &'static str,
        /// The first offending character.
        character: char,
    },
    /// The name is longer than [`MAX_LENGTH`] bytes.
    #[error("a {what} can have at most {MAX_LENGTH} bytes")]
    TooLong {
        /// The kind of name, for people.
        what: &'static str,
    },
    /// The name begins with a character that has a meaning of its own.
    #[error("a {what} cannot begin with `{character}`")]
    Beginning {
        /// The kind of name, for people.
        what: &'static str,
        /// The reserved first character.
        character: char,
    },
}

/// Names become parts of file names and log lines; longer ones serve nobody.
pub const MAX_LENGTH: usize = 120;

fn check(text: &str, what: &'static str, reserved: &[char]) -> Result<(), NameError> {
    let Some(first) = text.chars().next() else {
        return Err(NameError::Empty { what });
    };
    if reserved.contains(&first) {
        return Err(NameError::Beginning { what, character: first });
    }
    if text.len() > MAX_LENGTH {
        return Err(NameError::TooLong { what });
    }
    match text.chars().find(|c| c.is_control() || matches!(c, '/' | '\\' | '{' | '}')) {
        Some(character) => Err(NameError::Character { what, character }),
        None => Ok(()),
    }
}

parsed!(
    /// The `name` of a loop.
    LoopName, NameError, |text| check(text, "loop name", &['.', '-', '$'])
);
parsed!(
    /// A key of `states`.
    StateName, NameError, |text| check(text, "state name", &['$'])
);
parsed!(
    /// The name of a capture, a parameter or a context key.
    VarName, NameError, |text| check(text, "name", &['$'])
);

/// Why a text is not the id of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the id of a run, such as `main-20260101T000000-0123ab`")]
pub struct InstanceError;

parsed!(
    /// The id of a run: its loop as it stands in file names, when it began, and six digits. It is one plain file name.
    InstanceName, InstanceError, |text| if is_instance(text) { Ok(()) } else { Err(InstanceError) }
);

fn is_instance(text: &str) -> bool {
    let mut parts = text.rsplitn(3, '-');
    let (random, time, stem) = (parts.next(), parts.next(), parts.next());
    let (Some(random), Some(time), Some(stem)) = (random, time, stem) else { return false };
    let is_random = random.len() == 6 && random.bytes().all(is_hex);
    let is_time = time.len() == 15
        && time
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 8 { byte == b'T' } else { byte.is_ascii_digit() });
    let is_stem = stem.len() <= MAX_LENGTH
        && !stem.is_empty()
        && !stem.starts_with(['.', '-'])
        && stem.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    is_random && is_time && is_stem
}

impl LoopName {
    /// Returns the name with everything replaced that a file name or an instance id had better not hold.
    pub fn file_stem(&self) -> String {
        self.0
            .chars()
            .map(|c| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
            .collect()
    }
}

/// Returns the environment variable in which a later action finds a capture.
pub fn captured_variable(capture: &str) -> String {
    let upper = capture.to_uppercase();
    let word: String = upper.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("LL_CAPTURED_{word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_people_use_are_accepted() {
        for name in ["main", "prüfen", "1", "fix types", "a-b_c.d"] {
            assert_eq!(StateName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_break_paths_lines_or_templates_are_refused() {
        for name in ["", "a/b", "a\nb", "$current", "a}b", &"x".repeat(121)] {
            assert!(StateName::parse(name).is_err(), "{name:?}");
        }
        assert!(LoopName::parse("../x").is_err());
        assert!(LoopName::parse("-rf").is_err());
    }

    #[test]
    fn the_id_of_a_run_is_one_file_name() {
        for name in
            ["main-20260101T000000-0123ab", "prüfen-2-20260101T000000-ffffff", "a__b-20260101T000000-000000"]
        {
            assert_eq!(InstanceName::parse(name).unwrap().as_str(), name);
        }
        for name in [
            "",
            "main",
            "-20260101T000000-0123ab",
            "../x-20260101T000000-0123ab",
            ".x-20260101T000000-0123ab",
            "--output=x-20260101T000000-0123ab",
            "a b-20260101T000000-0123ab",
            "a/b-20260101T000000-0123ab",
            "main-20260101T000000-0123AB",
            "main-20260101T000000-0123abc",
            "main-20260101t000000-0123ab",
            "main-2026-0123ab",
            "main-20260101T000000-0123ab\n",
        ] {
            assert!(InstanceName::parse(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_file_stem_holds_no_blanks() {
        assert_eq!(LoopName::parse("my loop: 2").unwrap().file_stem(), "my-loop--2");
    }
}
