//! The values that a parameter takes across the items of a plan: where `--each` says they come from, and what a file or a
//! command says they are.

use crate::base::name::{NameError, VarName};

/// Where the values of a parameter come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// The parameter.
    pub name: VarName,
    /// Its values.
    pub values: ValueSource,
}

/// Where values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// They are written down.
    Listed(Vec<String>),
    /// A file has them: lines, or a JSON list.
    File(String),
    /// A program prints them, a line each.
    Command(Vec<String>),
}

/// Why values cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EachError {
    /// It names no parameter.
    #[error("`{0}` does not say which parameter takes which values: write `NAME=VALUE,VALUE`")]
    Unnamed(String),
    /// The parameter has a name that none can have.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The command has no end of a quote, or no words.
    #[error("`{0}` is not a command: it is empty, or a quote has no end")]
    Command(String),
    /// It begins like a list, and is not one.
    #[error("a JSON list was expected: {0}")]
    Json(#[from] serde_json::Error),
    /// A value of the list has parts.
    #[error("the JSON list has a value that is not a text, a number, `true` or `false`: {0}")]
    Nested(String),
}

impl Each {
    /// Reads `NAME=VALUE,VALUE`, `NAME=@FILE` or `NAME=cmd:ARGV`. Quotes keep the words of a command together; no shell
    /// reads it.
    ///
    /// # Errors
    /// It names no parameter, or what follows `cmd:` is not a command.
    pub fn parse(text: &str) -> Result<Self, EachError> {
        let (name, from) = text.split_once('=').ok_or_else(|| EachError::Unnamed(text.to_owned()))?;
        let name = VarName::parse(name)?;
        let values = match (from.strip_prefix('@'), from.strip_prefix("cmd:")) {
            (Some(file), _) => ValueSource::File(file.to_owned()),
            (None, Some(command)) => ValueSource::Command(words(command)?),
            (None, None) => {
                // An empty value between commas is a slip; one that is meant can be written in a JSON list.
                let listed = from.split(',').map(str::trim).filter(|value| !value.is_empty());
                ValueSource::Listed(listed.map(str::to_owned).collect())
            }
        };
        Ok(Self { name, values })
    }
}

/// Splits a command at blanks, where no quotes keep words together. No shell reads it.
///
/// # Errors
/// It has no words, a quote is not closed, or a part of it would be taken for a comment.
pub fn words(command: &str) -> Result<Vec<String>, EachError> {
    let wrong = || EachError::Command(command.to_owned());
    // To the library, `#` begins a comment, as in a script; in one command, it is a character like any other.
    let mut lexer = shlex::Shlex::new(command);
    let words: Vec<String> = lexer.by_ref().collect();
    let is_cut = lexer.had_error || lexer.line_no > 1 || has_comment(command);
    if is_cut || words.is_empty() { Err(wrong()) } else { Ok(words) }
}

/// Tells whether a word begins with an unquoted `#`: what follows would be left out in silence.
fn has_comment(command: &str) -> bool {
    let (mut quote, mut escaped, mut between) = (None, false, true);
    for c in command.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (None, '#') if between => return true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(_) | None, _) => {}
        }
        between = quote.is_none() && !escaped && c.is_whitespace();
    }
    false
}

/// Reads the values of a file: a JSON list where it begins with `[`, or else its lines. Empty lines are not values.
///
/// # Errors
/// It begins like a list, and is not a list of plain values.
pub fn of_file(text: &str) -> Result<Vec<String>, EachError> {
    if !text.trim_start().starts_with('[') {
        return Ok(of_lines(text));
    }
    let values: Vec<serde_json::Value> = serde_json::from_str(text)?;
    let plain = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => Ok(text),
        serde_json::Value::Number(number) => Ok(number.to_string()),
        serde_json::Value::Bool(is_true) => Ok(is_true.to_string()),
        nested @ (serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_)) => {
            Err(EachError::Nested(nested.to_string()))
        }
    };
    values.into_iter().map(plain).collect()
}

/// Reads values of which each is a line.
pub fn of_lines(text: &str) -> Vec<String> {
    // `lines` keeps the carriage return of a last line that has no line feed.
    let lines = text.lines().map(|line| line.trim_end_matches('\r'));
    lines.filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(values: &[&str]) -> Vec<String> {
        values.iter().map(|value| (*value).to_owned()).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &ValueSource) {
        let each = Each::parse(text).unwrap();
        assert_eq!((each.name.as_str(), &each.values), ("p", expected), "{text}");
    }

    #[test]
    fn values_are_listed_in_a_file_or_printed() {
        check("p=a, b,,c=d", &ValueSource::Listed(listed(&["a", "b", "c=d"])));
        check("p=", &ValueSource::Listed(Vec::new()));
        check("p=@list.txt", &ValueSource::File("list.txt".to_owned()));
        check(
            "p=cmd:ls -d 'a b' \"c'd\" $(x) e#f",
            &ValueSource::Command(listed(&["ls", "-d", "a b", "c'd", "$(x)", "e#f"])),
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for text in [
            "",
            "p",
            "=a",
            "$p=a",
            "p/q=a",
            "p=cmd:",
            "p=cmd:  ",
            "p=cmd:ls 'a",
            "p=cmd:ls # all",
            "p=cmd:# x",
        ] {
            assert!(Each::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_quoted_hash_is_no_comment() {
        check("p=cmd:echo '#a' \"# b\" \\#c", &ValueSource::Command(listed(&["echo", "#a", "# b", "#c"])));
    }

    #[test]
    fn a_file_has_lines_or_a_list() {
        assert_eq!(of_file("a b\r\n\n  \nc,d\n").unwrap(), ["a b", "c,d"]);
        assert_eq!(of_file(" [\"a\\nb\", 1, 2.5, true, \"\"]\n").unwrap(), ["a\nb", "1", "2.5", "true", ""]);
        assert_eq!(of_file("").unwrap(), Vec::<String>::new());
        assert_eq!(of_file("{\"a\": 1}").unwrap(), ["{\"a\": 1}"]);
        for text in ["[", "[[1]]", "[null]", "[{}]", "[1] x"] {
            assert!(of_file(text).is_err(), "{text:?}");
        }
    }
}
