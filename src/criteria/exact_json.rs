//! JSON that goes out as it came in: a number keeps its text, whatever its size, and keys keep their order.

use std::fmt;

use indexmap::IndexMap;
use serde::de::Error as _;
use serde_json::Value;
use serde_json::value::RawValue;

/// How deep lists and objects may lie in each other. Deeper ones are not work of a person.
const DEPTH: usize = 128;

/// An object.
pub type Object = IndexMap<String, Json>;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// An object.
    Object(Object),
}

impl Json {
    /// Reads a document.
    pub fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        Self::of(serde_json::from_slice(bytes)?, DEPTH)
    }

    fn of(raw: &RawValue, depth: usize) -> serde_json::Result<Self> {
        let text = raw.get();
        // serde cuts a raw value out whatever its depth; reading it here takes a call of this function for each level.
        let below =
            || depth.checked_sub(1).ok_or_else(|| serde_json::Error::custom("it is nested too deeply"));
        Ok(match text.as_bytes().first() {
            Some(b'{') => {
                let depth = below()?;
                // Level by level, because a raw value alone keeps the text of a number.
                let entries: IndexMap<String, &RawValue> = serde_json::from_str(text)?;
                let read = |(key, raw)| Ok((key, Self::of(raw, depth)?));
                Self::Object(entries.into_iter().map(read).collect::<serde_json::Result<_>>()?)
            }
            Some(b'[') => {
                let depth = below()?;
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                Self::List(items.into_iter().map(|raw| Self::of(raw, depth)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Self::Text(serde_json::from_str(text)?),
            Some(b't' | b'f') => Self::Bool(serde_json::from_str(text)?),
            Some(b'n') => Self::Null,
            Some(_) | None => Self::Number(text.to_owned()),
        })
    }

    /// Returns the text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the entries, if it is a list.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) = self { Some(items) } else { None }
    }

    /// Returns the entries, if it is an object.
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(entries) = self { Some(entries) } else { None }
    }

    /// Returns the value of a key, if it is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// Returns it as a value of serde. A number that is too large for one becomes a text.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(is) => Value::Bool(*is),
            Self::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
            Self::Text(text) => Value::from(text.as_str()),
            Self::List(items) => items.iter().map(Self::to_value).collect(),
            Self::Object(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.clone(), value.to_value())).collect())
            }
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, indent| {
            if f.alternate() { write!(f, "\n{:indent$}", "") } else { Ok(()) }
        };
        let (inner, colon) = (indent + 2, if f.alternate() { ": " } else { ":" });
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(is) => write!(f, "{is}"),
            Self::Number(text) => f.write_str(text),
            Self::Text(text) => quoted(f, text),
            Self::List(items) if items.is_empty() => f.write_str("[]"),
            Self::Object(entries) if entries.is_empty() => f.write_str("{}"),
            Self::List(items) => {
                f.write_str("[")?;
                for (index, item) in items.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    line(f, inner)?;
                    item.write(f, inner)?;
                }
                line(f, indent)?;
                f.write_str("]")
            }
            Self::Object(entries) => {
                f.write_str("{")?;
                for (index, (key, value)) in entries.iter().enumerate() {
                    f.write_str(if index > 0 { "," } else { "" })?;
                    line(f, inner)?;
                    quoted(f, key)?;
                    f.write_str(colon)?;
                    value.write(f, inner)?;
                }
                line(f, indent)?;
                f.write_str("}")
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

/// Writes it on one line, and with `#` for people.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(*is),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Self::Object(entries.iter().map(|(key, value)| (key.clone(), Self::from(value))).collect())
            }
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_stays_as_it_is_written() {
        let text =
            r#"{"a":1e400,"b":1.0,"c":-0,"d":123456789012345678901234567890,"e":[1E+2,0.10],"f":{"g":5.50}}"#;
        assert_eq!(Json::read(text.as_bytes()).unwrap().to_string(), text);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in
            ["", "{", "01", "+1", ".5", "NaN", "[1,]", "{} {}", "\"\\ud800\"", "\"\u{1}\"", "nul", "tru", "-"]
        {
            assert!(Json::read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Json::read(b"\"\xff\"").is_err());
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::read(nested(DEPTH).as_bytes()).is_ok());
        let error = Json::read(nested(DEPTH + 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), "it is nested too deeply");
    }

    #[test]
    fn the_last_of_two_values_of_a_key_counts() {
        assert_eq!(Json::read(br#"{"a":1,"b":2,"a":3}"#).unwrap().to_string(), r#"{"a":3,"b":2}"#);
    }

    /// Any value, not very deep.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(|is| json!(is)),
            any::<f64>().prop_map(|number| json!(number)),
            any::<i64>().prop_map(|number| json!(number)),
            any::<String>().prop_map(|text| json!(text)),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|entries| Value::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_written_and_read_as_serde_does_it(value in value()) {
            let own = Json::from(&value);
            prop_assert_eq!(own.to_string(), value.to_string());
            prop_assert_eq!(format!("{own:#}"), format!("{value:#}"));
            prop_assert_eq!(Json::read(value.to_string().as_bytes()).unwrap(), own.clone());
            prop_assert_eq!(own.to_value().to_string(), value.to_string());
        }
    }
}
