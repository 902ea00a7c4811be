//! Reads JSON of any shape from outside without taking more memory than it may cost: a digit and a comma are two bytes
//! in a file, and more than a hundred in memory.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// How many values a document may hold; an entry of an object counts as several. The longest one that a run writes of
/// itself, the details of an evaluation, holds at most 131,072 numbers.
const MOST: usize = 200_000;

/// What an entry of an object counts: its name, its place in the order, and its hash.
const ENTRY: usize = 4;

/// Reads an object, for `deserialize_with`.
pub fn map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match value(deserializer)? {
        Value::Object(fields) => Ok(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(D::Error::custom("expected an object"))
        }
    }
}

/// Reads an object or nothing, for `deserialize_with`.
pub fn optional_map<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    match value(deserializer)? {
        Value::Object(fields) => Ok(Some(fields)),
        Value::Null => Ok(None),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(D::Error::custom("expected an object"))
        }
    }
}

/// Reads a value or nothing, for `deserialize_with`.
pub fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    value(deserializer).map(|value| Some(value).filter(|value| !value.is_null()))
}

fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    CountedValue { left: &Cell::new(MOST) }.deserialize(deserializer)
}

/// Reads a value, and counts what is in it before it takes memory for it.
#[derive(Clone, Copy)]
struct CountedValue<'c> {
    left: &'c Cell<usize>,
}

impl CountedValue<'_> {
    fn take<E: Error>(self, count: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(count);
        self.left.set(left.ok_or_else(|| E::custom(format_args!("it holds more than {MOST} values")))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for CountedValue<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.take(1)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CountedValue<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            self.take(ENTRY)?;
            all.insert(key, entries.next_value_seed(self)?);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    struct SmallDocument {
        #[serde(deserialize_with = "map")]
        fields: Map<String, Value>,
        #[serde(deserialize_with = "optional", default)]
        memory: Option<Value>,
        #[serde(deserialize_with = "optional_map", default)]
        context: Option<Map<String, Value>>,
    }

    fn read(text: &str) -> serde_json::Result<SmallDocument> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_value_is_read_as_it_is() {
        let fields = json!({"a": [1, -2, 2.5, "x\n", null, true, {"b": {}}], "c": u64::MAX, "": "🦀"});
        let found = read(&json!({"fields": fields, "memory": 7, "context": {"a": 1}}).to_string()).unwrap();
        assert_eq!(Value::Object(found.fields), fields);
        assert_eq!((found.memory, found.context.map(|all| all.len())), (Some(json!(7)), Some(1)));
        let found = read(r#"{"fields": {}, "memory": null, "context": null}"#).unwrap();
        assert_eq!((found.memory, found.context), (None, None));
        assert!(read(r#"{"fields": []}"#).is_err());
    }

    #[test]
    fn what_holds_too_much_is_refused_whatever_holds_it() {
        let many = |one: &str| format!(r#"{{"fields": {{"x": [{}0]}}}}"#, one.repeat(MOST));
        for one in ["0,", "[],", "{},", "\"\",", "null,"] {
            let error = read(&many(one)).err().unwrap();
            assert!(error.to_string().contains("more than 200000 values"), "{one}");
        }
        let keys: Vec<String> = (0..MOST / ENTRY).map(|key| format!("\"{key}\":0,")).collect();
        let keys = keys.concat();
        assert!(read(&format!(r#"{{"fields": {{{keys}"z":0}}}}"#)).is_err());
        assert!(read(&format!(r#"{{"fields": {{"x": [{}0]}}}}"#, "0,".repeat(131_072))).is_ok());
    }
}
