//! What the published schema says of [promises](super::promises): as for the loader, nothing in the place of one is an error.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::promises::is_promise;

/// The key of the records that others refer to.
const DEFINITIONS: &str = "$defs";

/// Takes `null` and blank texts out of what the schema allows below promises, and in the records that they refer to.
pub(super) fn refuse_nothing(schema: &mut Value) {
    let mut open = BTreeSet::new();
    promises(schema, &mut open);
    let mut done = BTreeSet::new();
    while let Some(name) = open.pop_first() {
        if let Some(record) = schema[DEFINITIONS].get_mut(&name)
            // Records may refer to each other in a circle.
            && done.insert(name)
        {
            narrow(record, &mut open);
        }
    }
}

/// Narrows the promises among the keys of every record, and notes the records that they refer to.
fn promises(schema: &mut Value, referred: &mut BTreeSet<String>) {
    match schema {
        Value::Object(record) => {
            if let Some(Value::Object(properties)) = record.get_mut("properties") {
                let found = properties.iter_mut().filter(|(key, _)| is_promise(key));
                found.for_each(|(_, property)| narrow(property, referred));
            }
            record.values_mut().for_each(|value| promises(value, referred));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| promises(item, referred)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn narrow(schema: &mut Value, referred: &mut BTreeSet<String>) {
    match schema {
        Value::Object(record) => {
            narrow_types(record);
            if let Some(Value::Array(forms)) = record.get_mut("anyOf") {
                forms.retain(|form| *form != json!({"type": "null"}));
            }
            let name = record.get("$ref").and_then(Value::as_str).and_then(|to| to.rsplit('/').next());
            referred.extend(name.map(str::to_owned));
            record.values_mut().for_each(|value| narrow(value, referred));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| narrow(item, referred)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn narrow_types(record: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = record.get_mut("type") {
        types.retain(|one| one != "null");
    }
    let takes_text = match record.get("type") {
        Some(Value::String(one)) => one == "string",
        Some(Value::Array(types)) => types.contains(&"string".into()),
        _ => false,
    };
    if takes_text && !record.contains_key("pattern") {
        record.insert("pattern".to_owned(), r"\S".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_and_its_records_take_nothing_empty() {
        let optional = json!({"type": ["string", "null"]});
        let mut schema = json!({
            "properties": {
                "sandbox": {"anyOf": [{"enum": ["off"]}, {"$ref": "#/$defs/Keys"}, {"type": "null"}]},
                "name": optional,
            },
            "$defs": {
                "Keys": {"properties": {"mode": optional, "hosts": {"items": {"$ref": "#/$defs/Host"}}}},
                "Host": {"type": "string"},
                "Other": {"properties": {"mode": optional}},
            },
        });
        refuse_nothing(&mut schema);
        let text = json!({"type": ["string"], "pattern": r"\S"});
        let expected = json!({
            "properties": {
                "sandbox": {"anyOf": [{"enum": ["off"]}, {"$ref": "#/$defs/Keys"}]},
                "name": optional,
            },
            "$defs": {
                "Keys": {"properties": {"mode": text, "hosts": {"items": {"$ref": "#/$defs/Host"}}}},
                "Host": {"type": "string", "pattern": r"\S"},
                "Other": {"properties": {"mode": optional}},
            },
        });
        assert_eq!(schema, expected);
    }
}
