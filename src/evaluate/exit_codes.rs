//! Exit codes as a loop file lists them: numbers, ranges, both in a list, or all that a failing tool may choose.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, subject, wrong_type};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::explanation::Explanation;
use crate::base::node::{Node, NodeValue, Scalar};
use crate::base::path::DocPath;
use crate::base::text::one_line;

/// The word for every code by which a tool says that it failed. From 126 on, the shell says that it did not run.
pub const NONZERO: &str = "nonzero";

const EXPECTED: &str = "an exit code from 0 to 255, a range such as `3-9`, a list of them, or `nonzero`";

/// Exit codes; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitCodes(Vec<RangeInclusive<u8>>);

impl ExitCodes {
    /// Returns the codes by which a tool says that it failed: 1 to 125.
    pub fn nonzero() -> Self {
        Self(vec![1..=125])
    }

    /// Reads them from JSON.
    pub fn of(value: &Value) -> Result<Self, Explanation> {
        let one = |value: &Value| {
            let text = match value {
                Value::Number(number) => number.to_string(),
                Value::String(text) => text.clone(),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => String::new(),
            };
            let named = || one_line(&value.to_string(), 40);
            parse(&text).map_err(|fault| match fault {
                ExitCodeFault::Unreadable => Explanation::new(format!("`{}` is not {EXPECTED}", named())),
                ExitCodeFault::Reversed => Explanation::new(format!("the range {} is empty", named())),
            })
        };
        match value {
            Value::Array(items) if items.is_empty() => Err(Explanation::new("no exit code is listed")),
            Value::Array(items) => Ok(Self(items.iter().map(one).collect::<Result<_, _>>()?)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                Ok(Self(vec![one(value)?]))
            }
        }
    }

    /// Tells whether a code is one of them.
    pub fn contain(&self, code: i32) -> bool {
        u8::try_from(code).is_ok_and(|code| self.0.iter().any(|range| range.contains(&code)))
    }
}

/// What a text is that is not code and no range of them.
#[derive(Debug)]
enum ExitCodeFault {
    Unreadable,
    Reversed,
}

fn parse(text: &str) -> Result<RangeInclusive<u8>, ExitCodeFault> {
    let code = |text: &str| {
        let text = text.trim();
        // `parse` would take `+3` as well.
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u8>().ok().filter(|_| is_number).ok_or(ExitCodeFault::Unreadable)
    };
    let text = text.trim();
    let range = match text.split_once('-') {
        None if text == NONZERO => 1..=125,
        None => code(text).map(|code| code..=code)?,
        Some((first, last)) => code(first)?..=code(last)?,
    };
    if range.is_empty() { Err(ExitCodeFault::Reversed) } else { Ok(range) }
}

fn decode_one(
    scalar: &Scalar,
    node: &Node,
    path: &DocPath,
    out: &mut Diagnostics,
) -> Option<RangeInclusive<u8>> {
    match parse(&scalar.text) {
        Ok(range) => Some(range),
        Err(ExitCodeFault::Unreadable) => {
            wrong_type(node, path, EXPECTED, out);
            None
        }
        Err(ExitCodeFault::Reversed) => {
            let message = format!("the range `{}` is empty", one_line(&scalar.text, 40));
            let help = "write the smaller code first";
            out.push(Diagnostic::error("exit-codes", FindingPlace::Value(path.clone()), message).help(help));
            None
        }
    }
}

impl Decode for ExitCodes {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let items = match &node.value {
            NodeValue::Scalar(scalar) => {
                return decode_one(scalar, node, path, out).map(|range| Self(vec![range]));
            }
            NodeValue::List(items) => items,
            NodeValue::Map(_) => {
                wrong_type(node, path, EXPECTED, out);
                return None;
            }
        };
        if items.is_empty() {
            let message = format!("{} lists no exit code", subject(path));
            let help = "list the codes that are meant, or remove the key";
            out.push(Diagnostic::error("exit-codes", FindingPlace::Value(path.clone()), message).help(help));
            return None;
        }
        let one = |(index, item): (usize, &Node)| {
            let path = path.index(index);
            let Some(scalar) = item.as_scalar() else {
                wrong_type(item, &path, "an exit code from 0 to 255, or a range such as `3-9`", out);
                return None;
            };
            decode_one(scalar, item, &path, out)
        };
        let read: Vec<_> = items.iter().enumerate().map(one).collect();
        read.into_iter().collect::<Option<Vec<_>>>().map(Self)
    }

    fn schema(_: &mut Definitions) -> Value {
        let one = json!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 255},
            {"type": "string", "pattern": r"^\s*([0-9]+(\s*-\s*[0-9]+)?|nonzero)\s*$"},
        ]});
        json!({"anyOf": [one.clone(), {"type": "array", "items": one, "minItems": 1}]})
    }
}

impl fmt::Display for ExitCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            match (range.start(), range.end()) {
                (first, last) if first == last => write!(f, "{comma}{first}")?,
                (first, last) => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::explanation::Explanation;
    use crate::base::node::FileId;
    use crate::definition::yaml;

    fn read(text: &str) -> Result<String, Explanation> {
        let mut out = Diagnostics::default();
        let tree = yaml::parse(text, FileId(0), &mut out).unwrap();
        let read = ExitCodes::decode(tree.get("no").unwrap(), &DocPath::root().key("no"), &mut out);
        let messages: Vec<_> = out.iter().map(|finding| finding.message.clone()).collect();
        assert_eq!(read.is_none(), out.has_errors(), "{text}");
        read.map(|codes| codes.to_string()).ok_or_else(|| Explanation::new(messages.join("; ")))
    }

    #[test]
    fn codes_are_numbers_ranges_lists_of_both_and_one_word() {
        for (text, expected) in [
            ("no: 1", "1"),
            ("\"no\": [1, 101]", "1, 101"),
            ("no: 3-9", "3-9"),
            ("no: '3 - 9'", "3-9"),
            ("no: [1, 3-9, '7']", "1, 3-9, 7"),
            ("no: nonzero", "1-125"),
            ("no: [nonzero, 130]", "1-125, 130"),
            ("no: 0-255", "0-255"),
        ] {
            assert_eq!(read(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_same_is_read_from_json() {
        let read = |value: Value| ExitCodes::of(&value).map(|codes| codes.to_string());
        assert_eq!(read(json!([1, "3-9", "nonzero"])), Ok("1, 3-9, 1-125".to_owned()));
        assert_eq!(read(json!(7)), Ok("7".to_owned()));
        for (value, expected) in [
            (json!([]), "no exit code is listed"),
            (json!(300), "`300` is not an exit code"),
            (json!([[1]]), "`[1]` is not an exit code"),
            (json!("9-3"), "the range \"9-3\" is empty"),
            (json!(1.5), "`1.5` is not an exit code"),
        ] {
            let message = read(value).unwrap_err();
            assert!(message.to_string().contains(expected), "{message}");
        }
    }

    #[test]
    fn what_is_no_code_is_refused() {
        for (text, expected) in [
            ("no: []", "`no` lists no exit code"),
            ("no: 9-3", "the range `9-3` is empty"),
            ("no: [1, 9-3]", "the range `9-3` is empty"),
            ("no: 256", "`no` must be an exit code from 0 to 255"),
            ("no: -1", "`no` must be an exit code"),
            ("no: 1-256", "`no` must be an exit code"),
            ("no: 1.0", "`no` must be an exit code"),
            ("no: +1", "`no` must be an exit code"),
            ("no: 1-2-3", "`no` must be an exit code"),
            ("no: '-'", "`no` must be an exit code"),
            ("no: ''", "`no` must be an exit code"),
            ("no: 99999999999999999999", "`no` must be an exit code"),
            ("no: all", "`no` must be an exit code"),
            ("no: {a: 1}", "`no` must be an exit code"),
            ("no: [[1]]", "`no[0]` must be an exit code"),
            ("no: [true]", "`no[0]` must be an exit code"),
            ("no: [300, x]", "`no[1]` must be an exit code"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.as_str().contains(expected), "{text}: {message}");
        }
    }
}
