//! Names that users choose, parsed once so that no later layer has to check them again.

use std::fmt;

use serde::{Deserialize, Serialize};

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

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $reserved:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the text; the only way to make one.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                check(text, $what, $reserved)?;
                Ok(Self(text.to_owned()))
            }

            /// Returns the name as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

name!(
    /// The `name` of a loop.
    LoopName, "loop name", &['.', '-', '$']
);
name!(
    /// A key of `states`.
    StateName, "state name", &['$']
);
name!(
    /// The name of a capture, a parameter or a context key.
    VarName, "name", &['$']
);

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
    fn a_file_stem_holds_no_blanks() {
        assert_eq!(LoopName::parse("my loop: 2").unwrap().file_stem(), "my-loop--2");
    }
}
