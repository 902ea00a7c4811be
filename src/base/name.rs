//! Names that users choose, parsed once so that no later layer has to check them again.

use super::parsed::parsed;
use super::sum::Sum;
use super::text::{head, is_hex};

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
    /// A part between two `/` is missing, or would lead somewhere else.
    #[error("a {what} cannot {problem}")]
    Part {
        /// The kind of name, for people.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Names become parts of file names and log lines; longer ones serve no purpose.
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

/// Checks the name of a loop part by part, so that it never leads out of the directory that it is looked up in.
fn check_loop(text: &str) -> Result<(), NameError> {
    let what = "loop name";
    let refused = |problem| Err(NameError::Part { what, problem });
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.starts_with('/') {
        return refused("begin with `/`");
    }
    if text.ends_with('/') {
        return refused("end with `/`");
    }
    // A `/` takes two bytes in file names.
    if text.len() + text.matches('/').count() > MAX_LENGTH {
        return Err(NameError::TooLong { what });
    }
    for part in text.split('/') {
        match part {
            "" => return refused("contain `//`"),
            // Alone, either is refused below for its first character.
            "." | ".." if part != text => return refused("contain `.` or `..` between two `/`"),
            _ => check(part, what, &['.', '-', '$'])?,
        }
    }
    Ok(())
}

parsed!(
    /// What a loop is known by: its path below `.loops` without the extension, such as `tidy` or `web/tidy`, or the
    /// `name` that a file elsewhere gives itself.
    LoopName, NameError, check_loop
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
    // From the end, because the name of a loop may have hyphens as well.
    let mut parts = text.rsplitn(3, '-');
    let (random, time, stem) = (parts.next(), parts.next(), parts.next());
    let (Some(random), Some(time), Some(stem)) = (random, time, stem) else { return false };
    let is_random = random.len() == 6 && random.bytes().all(is_hex);
    let is_time = time.len() == 15
        && time
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 8 { byte == b'T' } else { byte.is_ascii_digit() });
    // `file_stem` may have added a hyphen and digits.
    let is_stem = stem.len() <= MAX_LENGTH + 1 + DIGITS
        && !stem.is_empty()
        && !stem.starts_with(['.', '-'])
        && stem.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    is_random && is_time && is_stem
}

/// So many digits tell loops apart whose names would be one file name.
const DIGITS: usize = 6;

impl LoopName {
    /// Returns the name with everything replaced that a file name or an instance id had better not hold. `a/b` is
    /// `a__b`; a name that could then be taken for another one has a few digits at its end.
    pub fn file_stem(&self) -> String {
        let plain = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
        let stem = self.0.split('/').map(|part| part.chars().map(plain).collect::<String>());
        let stem = stem.collect::<Vec<_>>().join("__");
        if stem.contains("___") || stem.matches("__").count() > self.0.matches('/').count() {
            return format!("{stem}-{}", head(&Sum::of(self.0.as_bytes()).to_string(), DIGITS));
        }
        stem
    }

    /// Returns the first part: the directory below `.loops`, or the name itself.
    pub fn first_part(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }
}

/// Returns the environment variable in which a later action finds a capture.
pub fn captured_variable(capture: &str) -> String {
    let upper = capture.to_uppercase();
    // Shells have no variables with other characters in their names.
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
    fn a_loop_in_a_directory_is_named_by_its_path_and_no_name_leads_elsewhere() {
        for name in ["web/tidy", "a/b/c", "prüfen/zwei Dinge", "a__b"] {
            assert_eq!(LoopName::parse(name).unwrap().as_str(), name);
        }
        for (name, why) in [
            ("a/", "a loop name cannot end with `/`"),
            ("/a", "a loop name cannot begin with `/`"),
            ("a//b", "a loop name cannot contain `//`"),
            ("a/../b", "a loop name cannot contain `.` or `..` between two `/`"),
            ("../b", "a loop name cannot contain `.` or `..` between two `/`"),
            ("a/./b", "a loop name cannot contain `.` or `..` between two `/`"),
            ("..", "a loop name cannot begin with `.`"),
            ("a/.hidden", "a loop name cannot begin with `.`"),
            ("a/-rf", "a loop name cannot begin with `-`"),
            ("a\\b", "a loop name cannot contain '\\\\'"),
            ("a/b\u{7}", "a loop name cannot contain '\\u{7}'"),
        ] {
            assert_eq!(LoopName::parse(name).unwrap_err().to_string(), why, "{name:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_two_paths_are_one_file_name(one in "[a_]{1,4}(/[a_]{1,4}){0,3}", other in "[a_]{1,4}(/[a_]{1,4}){0,3}") {
            let stem = |name: &str| LoopName::parse(name).unwrap().file_stem();
            proptest::prop_assert_eq!(one == other, stem(&one) == stem(&other));
        }

        #[test]
        fn the_longest_name_makes_the_id_of_a_run(name in "[a_é]{1,4}(/[a_é]{1,4}){0,60}") {
            if let Ok(name) = LoopName::parse(&name) {
                let id = format!("{}-20260101T000000-0123ab", name.file_stem());
                proptest::prop_assert!(InstanceName::parse(&id).is_ok());
                proptest::prop_assert!(id.len() + ".events.jsonl.new".len() < 255);
            }
        }
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
        assert_eq!(LoopName::parse("web/my_loop").unwrap().file_stem(), "web__my_loop");
    }
}
