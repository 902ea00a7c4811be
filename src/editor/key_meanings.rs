//! What the keys of a loop file mean, and which there are at a place: the JSON Schema, asked with a path.

use std::sync::LazyLock;

use serde_json::Value;

use crate::definition::json_schema::json_schema;

/// How deep references are followed.
const DEEPEST: usize = 8;

static OF_LOOPS: LazyLock<Value> = LazyLock::new(json_schema);

/// A key that may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownKey {
    pub(super) name: String,
    pub(super) meaning: Option<String>,
}

/// The keys and values of loop files, or of their tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyMeanings<'s>(&'s Value);

impl KeyMeanings<'static> {
    /// Returns those of loop files.
    pub(super) fn of_loops() -> Self {
        Self(&OF_LOOPS)
    }

    /// Returns those of another kind of file, by its schema.
    pub(super) fn of(schema: &'static Value) -> Self {
        Self(schema)
    }
}

impl<'s> KeyMeanings<'s> {
    /// Returns the parts of the schema that hold for the value under these keys; items of lists have no key. `kind` is what is
    /// written under `type` there, of which more keys depend.
    fn at(self, keys: &[&str], kind: Option<&str>) -> Vec<&'s Value> {
        let mut here = self.expanded([self.0].into_iter(), None);
        for (index, key) in keys.iter().enumerate() {
            let is_last = index + 1 == keys.len();
            let below: Vec<&Value> = here.iter().flat_map(|schema| below(schema, key)).collect();
            here = self.expanded(below.into_iter(), kind.filter(|_| is_last));
        }
        here
    }

    /// Follows references and alternatives.
    fn expanded(self, schemas: impl Iterator<Item = &'s Value>, kind: Option<&str>) -> Vec<&'s Value> {
        let mut open: Vec<(&Value, usize)> = schemas.map(|schema| (schema, 0)).collect();
        let mut all = Vec::new();
        while let Some((schema, depth)) = open.pop() {
            // The schema of today has no circles; one of tomorrow must not keep the server forever.
            if depth > DEEPEST {
                continue;
            }
            all.push(schema);
            let reference = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
            let mut next: Vec<&Value> = reference.map(|name| &self.0["$defs"][name]).into_iter().collect();
            for list in ["anyOf", "oneOf", "allOf"] {
                next.extend(schema[list].as_array().into_iter().flatten());
            }
            if schema["items"].is_object() {
                next.push(&schema["items"]);
            }
            let meant = schema["if"]["properties"]["type"]["const"].as_str();
            if meant.is_some() && meant == kind {
                next.push(&schema["then"]);
            }
            open.extend(next.into_iter().map(|schema| (schema, depth + 1)));
        }
        all
    }

    /// Returns what the last of these keys means, or what its value is.
    pub(super) fn meaning(self, keys: &[&str]) -> Option<&'s str> {
        let (last, around) = keys.split_last()?;
        let own = self.at(around, None).into_iter().flat_map(|schema| below(schema, last));
        let own: Vec<&Value> = own.collect();
        // What a key says of itself is nearer than what its type says.
        let first = own.iter().find_map(|schema| schema["description"].as_str());
        first.or_else(|| {
            self.expanded(own.into_iter(), None).into_iter().find_map(|schema| schema["description"].as_str())
        })
    }

    /// Returns what an evaluator does that a value of `type` names.
    pub(super) fn of_evaluator(self, kind: &str) -> Option<&'s str> {
        let cases = self.0["$defs"]["Evaluate"]["allOf"].as_array()?;
        let case = cases.iter().find(|case| case["if"]["properties"]["type"]["const"] == kind)?;
        case["then"]["description"].as_str()
    }

    /// Returns the keys that may stand below these, without those that have no effect.
    pub(super) fn keys(self, keys: &[&str], kind: Option<&str>) -> Vec<KnownKey> {
        let mut all: Vec<KnownKey> = Vec::new();
        for schema in self.at(keys, kind) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_known = all.iter().any(|known| known.name == *name);
                if !is_known && property["deprecated"] != true && *property != Value::Bool(false) {
                    let meaning = property["description"].as_str().map(str::to_owned);
                    all.push(KnownKey { name: name.clone(), meaning });
                }
            }
        }
        all
    }

    /// Returns the words that may stand under these keys.
    pub(super) fn words(self, keys: &[&str]) -> Vec<&'s str> {
        let mut words: Vec<&str> = Vec::new();
        for schema in self.at(keys, None) {
            let listed = schema["enum"].as_array().into_iter().flatten().chain(schema.get("const"));
            words.extend(listed.filter_map(Value::as_str));
            let types =
                schema["type"].as_array().map_or(std::slice::from_ref(&schema["type"]), Vec::as_slice);
            // Names may be numbers and truths as well, which nobody wants to be offered.
            let is_truth =
                types.iter().any(|kind| kind == "boolean") && types.iter().all(|kind| kind != "string");
            words.extend(["true", "false"].into_iter().filter(|_| is_truth));
        }
        // Alternatives may list the same word.
        let mut seen = std::collections::BTreeSet::new();
        words.retain(|word| seen.insert(*word));
        words
    }
}

/// Returns what a schema says of the value under a key.
fn below<'s>(schema: &'s Value, key: &str) -> Vec<&'s Value> {
    if let Some(property) = schema["properties"].get(key) {
        return vec![property];
    }
    let verdict = key.strip_prefix("on_").filter(|verdict| !verdict.is_empty());
    let patterns = schema["patternProperties"].as_object().into_iter().flatten();
    let routes = patterns.filter(|(pattern, _)| verdict.is_some() && pattern.starts_with("^on_(?!"));
    let routes: Vec<&Value> = routes.map(|(_, route)| route).collect();
    if !routes.is_empty() {
        return routes;
    }
    Some(&schema["additionalProperties"]).filter(|any| any.is_object()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(keys: &[&str], kind: Option<&str>) -> Vec<String> {
        KeyMeanings::of_loops().keys(keys, kind).into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_place_has_its_keys() {
        assert!(names(&[], None).contains(&"max_iterations".to_owned()));
        let state = names(&["states", "check"], None);
        assert!(
            ["action", "on_yes", "evaluate", "fragment"]
                .iter()
                .all(|key| state.iter().any(|known| known == key))
        );
        assert!(!state.iter().any(|key| key == "throttle" || key == "initial"));
        assert!(names(&["states", "check", "action"], None).is_empty());
        let json = names(&["states", "check", "evaluate"], Some("output_json"));
        assert!(json.contains(&"path".to_owned()) && json.contains(&"type".to_owned()), "{json:?}");
        assert!(!names(&["states", "check", "evaluate"], Some("exit_code")).contains(&"path".to_owned()));
        assert!(names(&["parameters", "x"], None).contains(&"required".to_owned()));
    }

    #[test]
    fn a_key_is_explained_wherever_it_stands() {
        let meanings = KeyMeanings::of_loops();
        assert_eq!(meanings.meaning(&["initial"]), Some("The state where a run starts."));
        let capture = Some("The name under which the result is stored.");
        assert_eq!(meanings.meaning(&["states", "x", "capture"]), capture);
        assert_eq!(meanings.meaning(&["fragments", "x", "capture"]), capture);
        assert!(meanings.meaning(&["states", "x", "on_flaky"]).is_some());
        assert!(meanings.of_evaluator("output_numeric").is_some());
        assert_eq!(meanings.meaning(&["nonsense"]), None);
    }

    #[test]
    fn a_value_has_its_words() {
        let meanings = KeyMeanings::of_loops();
        assert!(meanings.words(&["states", "x", "action_type"]).contains(&"mcp_tool"));
        assert_eq!(meanings.words(&["states", "x", "terminal"]), ["true", "false"]);
        assert!(meanings.words(&["states", "x", "evaluate", "type"]).contains(&"output_json"));
        assert!(meanings.words(&["states", "x", "on_yes"]).contains(&"$current"));
    }
}
