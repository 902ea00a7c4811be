//! A document as a tree: every value with its place in the file, scalars both as they were written and as they
//! are read. It knows no syntax; whoever reads a file makes one.

use std::ops::Range;

use serde_json::Value;

use super::path::{DocPath, Segment};

/// Which file of a definition something stands in; the first is the loop file itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u16);

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// The bytes of it.
    pub range: Range<usize>,
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What is there.
    pub value: NodeValue,
    /// Where.
    pub span: Span,
}

/// What can be in a document.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeValue {
    /// A single value.
    Scalar(Scalar),
    /// Values one after the other.
    List(Vec<Node>),
    /// Values under keys, in the order of the file; no key stands twice.
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key as it was written.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// What it holds.
    pub value: Node,
}

/// A single value.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// The text, without quotes and with escapes resolved, but otherwise as it was written.
    pub text: String,
    /// What the text means.
    pub value: ScalarValue,
    /// How it was written.
    pub style: ScalarStyle,
}

/// How a single value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScalarStyle {
    /// Without any mark.
    Plain,
    /// In `'` or `"`.
    Quoted,
    /// Below a `|` or `>`.
    Block,
}

/// What the text of a single value means in the core schema of YAML 1.2.
#[derive(Clone, Debug, PartialEq)]
pub enum ScalarValue {
    /// Nothing, also when nothing was written.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A text.
    String,
}

impl Scalar {
    /// Reads a text that was written without any mark.
    pub fn plain(text: String) -> Self {
        Self { value: ScalarValue::of_plain(&text), text, style: ScalarStyle::Plain }
    }

    /// Makes a text that means nothing but itself.
    pub fn string(text: String, style: ScalarStyle) -> Self {
        Self { text, value: ScalarValue::String, style }
    }
}

impl ScalarValue {
    /// Returns what a text means that was written without any mark.
    ///
    /// A number with a leading zero is a text, as everywhere in the Rust world: whoever writes `007` means it.
    pub fn of_plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" => return Self::Bool(true),
            "false" | "False" | "FALSE" => return Self::Bool(false),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Self::Float(f64::INFINITY),
            "-.inf" | "-.Inf" | "-.INF" => return Self::Float(f64::NEG_INFINITY),
            ".nan" | ".NaN" | ".NAN" => return Self::Float(f64::NAN),
            _ => {}
        }
        // There is a first byte: a text without any was null above.
        let (negative, digits) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            b'0'..=b'9' | b'.' => (false, text),
            _ => return Self::String,
        };
        let starts_like_a_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let leading_zero =
            digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
        if !starts_like_a_number || leading_zero {
            return Self::String;
        }
        match (whole_number(negative, digits), digits.parse::<f64>()) {
            (Some(number), _) => Self::Int(number),
            // `1e999` would be infinite, so it is left a text and reported where a number is wanted.
            (None, Ok(number)) if number.is_finite() => Self::Float(if negative { -number } else { number }),
            (None, _) => Self::String,
        }
    }
}

/// Reads digits in any base, if the number fits a JSON number.
fn whole_number(negative: bool, digits: &str) -> Option<i128> {
    let (radix, digits) = match digits.get(..2) {
        Some("0x") => (16, &digits[2..]),
        Some("0o") => (8, &digits[2..]),
        Some("0b") => (2, &digits[2..]),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign of its own, as in `+-1` or `0x-1`.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    let number = if negative { -number } else { number };
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

impl Node {
    /// Returns the value at a path below this one.
    pub fn at(&self, path: &DocPath) -> Option<&Self> {
        self.walk(path.segments())
    }

    /// Returns where the key at a path stands.
    pub fn key_span(&self, path: &DocPath) -> Option<&Span> {
        let (last, before) = path.segments().split_last()?;
        let (Segment::Key(key), NodeValue::Map(entries)) = (last, &self.walk(before)?.value) else {
            return None;
        };
        entries.iter().find(|entry| entry.key == *key).map(|entry| &entry.key_span)
    }

    fn walk(&self, segments: &[Segment]) -> Option<&Self> {
        segments.iter().try_fold(self, |node, segment| match (&node.value, segment) {
            (NodeValue::Map(_), Segment::Key(key)) => node.get(key),
            (NodeValue::List(items), Segment::Index(index)) => items.get(*index),
            _ => None,
        })
    }

    /// Returns the value under a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            NodeValue::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            NodeValue::Scalar(_) | NodeValue::List(_) => None,
        }
    }

    /// Returns the single value, if it is one.
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.value {
            NodeValue::Scalar(scalar) => Some(scalar),
            NodeValue::List(_) | NodeValue::Map(_) => None,
        }
    }

    /// Tells whether there is nothing.
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(|scalar| scalar.value == ScalarValue::Null)
    }

    /// Returns the same as JSON; numbers that JSON does not know become null.
    pub fn to_json(&self) -> Value {
        match &self.value {
            NodeValue::Scalar(scalar) => scalar.to_json(),
            NodeValue::List(items) => items.iter().map(Self::to_json).collect(),
            NodeValue::Map(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
            }
        }
    }
}

impl Scalar {
    fn to_json(&self) -> Value {
        match &self.value {
            ScalarValue::Null => Value::Null,
            ScalarValue::Bool(bool) => Value::Bool(*bool),
            ScalarValue::Int(int) => match (u64::try_from(*int), i64::try_from(*int)) {
                (Ok(int), _) => int.into(),
                (_, Ok(int)) => int.into(),
                (Err(_), Err(_)) => Value::String(self.text.clone()),
            },
            ScalarValue::Float(float) => {
                serde_json::Number::from_f64(*float).map_or(Value::Null, Value::Number)
            }
            ScalarValue::String => Value::String(self.text.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &ScalarValue) {
        assert_eq!(ScalarValue::of_plain(text), *expected, "{text:?}");
    }

    #[test]
    fn only_the_core_schema_has_meaning() {
        check("", &ScalarValue::Null);
        check("~", &ScalarValue::Null);
        check("True", &ScalarValue::Bool(true));
        for text in [
            "yes", "no", "on", "off", "y", "tRUE", "1_000", "12:30", "0x", "-", "+", ".", "1.2.3", "007",
            "-007",
        ] {
            check(text, &ScalarValue::String);
        }
    }

    #[test]
    fn numbers_are_read_in_every_base() {
        check("0", &ScalarValue::Int(0));
        check("-12", &ScalarValue::Int(-12));
        check("+12", &ScalarValue::Int(12));
        check("0o14", &ScalarValue::Int(12));
        check("0xC", &ScalarValue::Int(12));
        check("-0xC", &ScalarValue::Int(-12));
        check("18446744073709551615", &ScalarValue::Int(i128::from(u64::MAX)));
        check("1e3", &ScalarValue::Float(1000.0));
        check(".5", &ScalarValue::Float(0.5));
        check("-1.5", &ScalarValue::Float(-1.5));
        check(".inf", &ScalarValue::Float(f64::INFINITY));
    }
}
