//! The JSON Schema of loop files, made from the records that the loader reads with.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::{Composition, Loop, Shorthand};
use super::{paradigm, promise_schema};
use crate::base::decode::{Definitions, Record, without_null};

/// Where the schema is published.
pub const SCHEMA_ID: &str = "https://little-loops.github.io/ll-loop/loop.schema.json";

/// Returns the schema of a whole loop file.
pub fn json_schema() -> Value {
    let mut definitions = Definitions::new();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Loop file",
    });
    let mut record = Loop::object_schema(&mut definitions);
    extend(&mut record, &Composition::object_schema(&mut definitions));
    let shorthand = Shorthand::object_schema(&mut definitions);
    if let Some(state) = definitions.get_mut("State") {
        extend(state, &shorthand);
        complete_routes(state);
    }
    let forms = forms(&mut record, &paradigm::schemas(&mut definitions));
    if let (Value::Object(schema), Value::Object(record), Value::Object(forms)) = (&mut schema, record, forms)
    {
        schema.extend(record);
        schema.extend(forms);
        schema.insert("$defs".into(), definitions.into());
    }
    promise_schema::refuse_nothing(&mut schema);
    // Last, because it moves `required` to where the steps before it would not find it.
    finish(&mut schema);
    schema
}

/// Returns the schema of a file that is one record.
pub fn published<T: Record>(id: &str, title: &str) -> Value {
    let mut definitions = Definitions::new();
    let record = T::object_schema(&mut definitions);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": id,
        "title": title,
    });
    if let (Value::Object(schema), Value::Object(record)) = (&mut schema, record) {
        schema.extend(record);
        schema.insert("$defs".into(), definitions.into());
    }
    finish(&mut schema);
    schema
}

/// Returns the schema of a policy, in which a key without a value is a mistake.
pub fn published_policy<T: Record>(id: &str, title: &str) -> Value {
    let mut schema = published::<T>(id, title);
    without_null(&mut schema);
    schema
}

/// The verdicts that editors offer as `on_<verdict>`, with where they come from.
const OFFERED: [(&str, &str); 19] = [
    ("yes", "passed: also `on_success`, `on_pass` and `on_met`"),
    ("no", "failed: also `on_failure`, `on_fail` and `on_unmet`"),
    ("success", "passed: the same as `on_yes`"),
    ("pass", "passed: the same as `on_yes`"),
    ("met", "passed: the same as `on_yes`"),
    ("failure", "failed: the same as `on_no`"),
    ("fail", "failed: the same as `on_no`"),
    ("unmet", "failed: the same as `on_no`"),
    ("error", "could not be done or judged"),
    ("timeout", "took too long"),
    ("blocked", "needs a person, or a model where none may be asked"),
    ("partial", "was done in part"),
    ("target", "reached the target (`convergence`)"),
    ("progress", "came nearer to the target (`convergence`)"),
    ("stall", "came no nearer to the target (`convergence`)"),
    ("tool_error", "was answered with an error (`mcp_result`)"),
    ("not_found", "found no such server or tool (`mcp_result`)"),
    ("done", "met every criterion (`criteria`)"),
    ("continue", "left criteria unmet (`criteria`)"),
];

/// Names the usual `on_<verdict>` as keys of a state, for editors, which complete no pattern.
fn complete_routes(state: &mut Value) {
    // What `prefix_pattern` writes for the prefix `on_`.
    const PATTERN: &str = "^on_(?!$|";
    // A key that is named must not match the pattern as well, or else both would describe it.
    let words = OFFERED.map(|(word, _)| format!("{word}$|")).concat();
    let Some(patterns) = state["patternProperties"].as_object_mut() else { return };
    let Some(pattern) = patterns.keys().find(|pattern| pattern.starts_with(PATTERN)).cloned() else { return };
    let Some(route) = patterns.remove(&pattern) else { return };
    patterns.insert(pattern.replacen(PATTERN, &format!("{PATTERN}{words}"), 1), route.clone());
    if let Some(properties) = state["properties"].as_object_mut() {
        for (word, when) in OFFERED {
            let mut route = route.clone();
            route["description"] = format!("Where it leads when the state {when}.").into();
            properties.entry(format!("on_{word}")).or_insert(route);
        }
    }
}

/// Goes through every record: a key that is missing is not a further mistake beside one that is unknown, as for the
/// loader, and every key is described.
fn finish(schema: &mut Value) {
    match schema {
        Value::Object(record) => {
            if let Some(Value::Object(properties)) = record.get_mut("properties") {
                for (key, property) in properties.iter_mut().filter(|(_, property)| property.is_object()) {
                    if property.get("description").is_none() && matches!(key.as_str(), "type" | "parameters")
                    {
                        property["description"] = match key.as_str() {
                            "type" => "The evaluator.".into(),
                            _ => "The parameters, each with its type.".into(),
                        };
                    }
                }
            }
            if record.get("additionalProperties") == Some(&json!(false))
                && let Some(required) = record.remove("required")
            {
                let when = known(&Value::Object(record.clone()));
                record.insert("if".into(), when);
                record.insert("then".into(), json!({"required": required}));
            }
            record.values_mut().for_each(finish);
        }
        Value::Array(items) => items.iter_mut().for_each(finish),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schema of mappings in which a record knows every key.
fn known(record: &Value) -> Value {
    let keys = |of: &str| record[of].as_object().into_iter().flatten().map(|(key, _)| key.clone());
    let words: Vec<String> = keys("properties").collect();
    let patterns = keys("patternProperties").map(|pattern| json!({"pattern": pattern}));
    let all: Vec<Value> = std::iter::once(json!({"enum": words})).chain(patterns).collect();
    json!({"propertyNames": {"anyOf": all}})
}

/// Returns what a loop needs in each authoring form, and takes its own keys up in the record of all.
fn forms(record: &mut Value, forms: &[(&'static str, Value)]) -> Value {
    let keys = |form: &Value| {
        form["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let all: Vec<String> = keys(record);
    let own = |form: &Value| -> Map<String, Value> {
        let keys: Vec<String> = keys(form);
        keys.into_iter()
            .filter(|key| !all.contains(key))
            .map(|key| (key.clone(), form["properties"][&key].clone()))
            .collect()
    };
    let mut foreign: Map<String, Value> = Map::new();
    let mut described: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (word, form) in forms {
        for (key, property) in own(form) {
            let said = property["description"].as_str().unwrap_or("");
            described.entry(key.clone()).or_default().push(format!("With `paradigm: {word}`: {said}"));
            // A schema that nothing satisfies: with another form, the key is a mistake.
            foreign.insert(key, json!(false));
        }
    }
    if let Some(properties) = record["properties"].as_object_mut() {
        let any = described.into_iter().map(|(key, said)| (key, json!({"description": said.join(" ")})));
        properties.extend(any);
    }
    let known = known(record);
    // A parent can give everything. Beside a key that is misspelt, none is missing.
    let needs =
        |then: Value| json!({"if": {"allOf": [{"not": {"required": ["from"]}}, known]}, "then": then});
    // States in a line each give the first one.
    let states =
        json!({"if": {"required": ["flow"]}, "then": {}, "else": {"required": ["initial", "states"]}});
    let mut tree = needs(json!({"required": ["name"], "allOf": [states]}));
    tree["properties"] = foreign.clone().into();
    for (word, form) in forms {
        // A form that needs one of several keys says so with an `anyOf`.
        let more = form.get("anyOf").cloned().unwrap_or(json!([{}]));
        let mut then = needs(json!({"required": form["required"], "anyOf": more}));
        let mut properties = foreign.clone();
        properties.extend(own(form));
        then["properties"] = properties.into();
        let is_form = json!({"properties": {"paradigm": {"const": word}}, "required": ["paradigm"]});
        // One within the other, so that what holds without any form is the last branch.
        tree = json!({"if": is_form, "then": then, "else": tree});
    }
    if let Some(record) = record.as_object_mut() {
        record.remove("required");
    }
    tree
}

/// Adds the keys of a record to those of another.
fn extend(record: &mut Value, other: &Value) {
    if let (Some(properties), Some(more)) =
        (record["properties"].as_object_mut(), other["properties"].as_object())
    {
        properties.extend(more.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;

    /// What editors say about a file and what the loader says must be the same.
    #[track_caller]
    fn check(text: &str, good: bool) {
        let schema = jsonschema::validator_for(&json_schema()).unwrap();
        let value: Value = serde_yaml::from_str(text).unwrap();
        let loads = load::decode("f", text, String::new());
        assert_eq!(loads.is_ok(), good, "the loader and {text}: {loads:?}");
        let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
        assert_eq!(errors.is_empty(), good, "the schema and {text}: {errors:?}");
    }

    #[test]
    fn one_mistake_is_one_finding_for_both() {
        let schema = jsonschema::validator_for(&json_schema()).unwrap();
        let good = with("", "");
        for (text, expected) in [
            (
                good.replace("initial:", "initail:"),
                "Additional properties are not allowed ('initail' was unexpected)",
            ),
            (good.replace("name:", "nmae:"), "Additional properties are not allowed ('nmae' was unexpected)"),
            (
                good.replace("states:", "state:"),
                "Additional properties are not allowed ('state' was unexpected)",
            ),
            ("form: base\n".to_owned(), "Additional properties are not allowed ('form' was unexpected)"),
            (good.replace("name: main\n", ""), "\"name\" is a required property"),
            (good.replace("initial: a\n", ""), "\"initial\" is a required property"),
            (
                "paradigm: goal\ngaol: g\ntools: [a]\n".to_owned(),
                "Additional properties are not allowed ('gaol' was unexpected)",
            ),
            ("paradigm: goal\ngoal: g\n".to_owned(), "\"tools\" is a required property"),
            (
                with("", ", evaluate: {type: output_numeric, targt: 1}"),
                r#"{"type":"output_numeric","targt":1} is not valid under any of the schemas listed in the 'anyOf' keyword"#,
            ),
            (
                with("", ", on_yes: [done]"),
                "[\"done\"] is not valid under any of the schemas listed in the 'anyOf' keyword",
            ),
        ] {
            let value: Value = serde_yaml::from_str(&text).unwrap();
            let errors: Vec<_> = schema.iter_errors(&value).map(|error| error.to_string()).collect();
            assert_eq!(errors, [expected], "{text}");
            let rejected = load::decode("f", &text, String::new()).unwrap_err();
            assert_eq!(rejected.findings.total(), 1, "{text}: {:?}", rejected.findings);
        }
    }

    /// The keys without a description, each with the place of its record.
    fn undescribed(schema: &Value, place: &str, found: &mut Vec<String>) {
        let Some(record) = schema.as_object() else { return };
        for (key, property) in record.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if property.is_object() && property["description"].as_str().is_none_or(str::is_empty) {
                found.push(format!("{place} {key}"));
            }
        }
        for (key, inner) in record.iter().filter(|(key, _)| !matches!(key.as_str(), "if" | "enum" | "const"))
        {
            let inner = if let Value::Array(items) = inner { items.clone() } else { vec![inner.clone()] };
            for inner in &inner {
                undescribed(inner, &format!("{place}/{key}"), found);
            }
        }
    }

    #[test]
    fn every_key_is_described_and_the_usual_routes_are_offered() {
        let schema = json_schema();
        let mut found = Vec::new();
        undescribed(&schema, "", &mut found);
        // What a schema of the loop's own has in it is its own, and constants were described where they are chosen.
        found.retain(|key| !key.contains("/allOf/then/properties/schema"));
        assert_eq!(found, [""; 0]);
        assert_eq!(schema["title"], "Loop file");
        let state = &schema["$defs"]["State"]["properties"];
        for key in [
            "on_yes",
            "on_no",
            "on_error",
            "on_timeout",
            "on_blocked",
            "on_partial",
            "on_success",
            "on_failure",
        ] {
            assert!(state[key]["description"].is_string(), "{key}");
        }
    }

    fn with(top: &str, state: &str) -> String {
        format!(
            "name: main\ninitial: a\n{top}\nstates:\n  a: {{action: make{state}}}\n  done: {{terminal: true}}\n"
        )
    }

    #[test]
    fn the_schema_is_a_schema() {
        assert!(jsonschema::draft202012::meta::is_valid(&json_schema()));
    }

    #[test]
    fn a_promise_with_nothing_in_it_is_good_for_neither() {
        for text in [
            with("sandbox:", ""),
            with("broker: null", ""),
            with("judges: {files: [' ']}", ""),
            with("approvers: {users: [ada, null]}", ""),
            with("reuse: {inputs: [a], tools: null}", ""),
            with("", ", sandbox: null"),
            with("", ", sandbox: {mode: ~}"),
        ] {
            check(&text, false);
        }
        check(&with("sandbox: off\njudges: []\nreuse: {inputs: [a]}", ", sandbox: {net: [a.example]}"), true);
    }

    #[test]
    fn good_files_are_good_for_both() {
        check(&with("", ""), true);
        check(&with("timeout: 5m", ", timeout: 0.5, idle_timeout: 1h 30m"), true);
        check(&with("backoff: 0\nmaintain_delay: 0s", ""), true);
        check(&with("shell: [bash, -c]\nenv: {A: 1}\nlabels:", ", shell: sh"), true);
        check(
            &with(
                "singleton: true\nthrottle_ms: 1",
                ", x_ok: {a: b}, on_throttle_hard: 5, on_rate_limit_exhausted: x",
            ),
            true,
        );
        check(&with("", ", on_yes: done, on_flaky: $current, on_error: 1, next: null"), true);
        check(&with("", ", evaluate: {type: exit_code, target: 3}"), true);
        check(&with("timeout: '60'\nmax_steps: '9'\nbackoff: '0'", ", timeout: '20'"), true);
        check(&with("", ", evaluate: {type: output_numeric, target: '3', operator: null}"), true);
        check(&with("", ", evaluate: {type: output_numeric, target: 3, path: a, baseline_path: b}"), true);
        check(
            &with("description: null\nscope: null\nenv: {A: null}\ncontext: {a: null}\nllm: null", ""),
            true,
        );
        check(
            &with("", ", evaluate: null, timeout: null, on_yes: null, with: null, route: {'yes': null}"),
            true,
        );
        check(&with("parameters: {p: {type: string, required: null, default: null}}", ""), true);
        check(&with("artifact_mode: file\ntamper_guard: revert", ", model_hint: coding, type: task"), true);
        check(&with("", ", condition: {type: output_numeric, target: '${context.x}'}"), true);
        check(&with("", ", route: {'yes': done, _: $current}"), true);
        check(&with("parameters: {p: {type: enum, values: [a, 1]}}\ncontext: {a: [1, {b: c}]}", ""), true);
        check("paradigm: goal\ngoal: g\ntools: [a, {tool: b, timeout: 5}]\nmax_iterations: 5\n", true);
        check("paradigm: convergence\nname: n\ncheck: c\ntoward: 0\nusing: u\ntolerance: 1\n", true);
        check(
            "paradigm: invariants\nname: n\nmaintain: true\nconstraints: [{name: a, check: b, fix: c}]\n",
            true,
        );
        check("paradigm: imperative\nname: n\nsteps: [a]\ncondition: {type: exit_code, target: 0}\n", true);
        check("paradigm: imperative\nname: n\nsteps: [a]\nuntil: {check: b}\n", true);
        check("name: n\nflow: [a, 'b?c:a', c]\nstate_defs: {a: {action: x}, b: {action: y}}\n", true);
        check(
            &with(
                "fragments: {f: {action: x, parameters: {p: {type: string}}}}",
                ", fragment: f, with: {p: 1}",
            ),
            true,
        );
        check(
            &with(
                "",
                "}\n  b: {check_condition: {type: exit_code, source: a, target: 0}, on_met: done, on_unmet: a",
            ),
            true,
        );
        check(
            &with(
                "circuit: {repeated_failure: {window: 3}}",
                ", param: {x: '${context.input}'}, context: {k: v}",
            ),
            true,
        );
        check(&with("idle_timeout: 3\nparadigm: fsm\non_handoff: spawn\nmax_steps: 3", ""), true);
        check(
            &with(
                "budget: {cost_usd: 2.5, tokens: 9, unpriced: allow}\nsignals: [stop]\nmax_handoffs: 2",
                "",
            ),
            true,
        );
        check(&with("", ", action_type: prompt, agent: x, tools: [Read], model: m"), true);
        check(&with("", ", action_type: mcp_tool, params: {a: [1, {b: '${context.c}'}]}"), true);
        let schema = "{type: object, properties: {verdict: {enum: [a, b]}}}";
        check(&with("", &format!(", evaluate: {{type: llm_structured, schema: {schema}}}")), true);
    }

    #[test]
    fn a_route_is_one_whatever_its_verdict_ends_with() {
        for key in ["on_ok", "on_x_ok", "on__ok"] {
            check(&with("", &format!(", {key}: done")), true);
            check(&with("", &format!(", {key}: [done]")), false);
        }
        check(&with("", ", x_ok: [done], _ok: 1"), true);
        let state = &json_schema()["$defs"]["State"]["patternProperties"];
        let applies = |key: &str| {
            let patterns = state.as_object().unwrap().iter();
            let of_key = patterns
                .filter(|(pattern, _)| fancy_regex::Regex::new(pattern).unwrap().is_match(key).unwrap());
            of_key.map(|(_, schema)| schema["deprecated"] == true).collect::<Vec<_>>()
        };
        assert_eq!([applies("on_ok"), applies("on_x_ok"), applies("x_ok")], [[false], [false], [true]]);
    }

    #[test]
    fn bad_files_are_bad_for_both() {
        check("name: main\ninitial: a\n", false);
        check("a: b\n", false);
        check(&with("timeout: 0", ""), false);
        check(&with("timeout: soon", ""), false);
        check(&with("timeout: -1", ""), false);
        check(&with("backoff: -1", ""), false);
        check(&with("max_iterations: 0", ""), false);
        check(&with("max_iterations: '5.5'", ""), false);
        check(&with("max_iterations: '${env.n}'", ""), false);
        check(&with("max_handoffs: '${context.n}'", ""), false);
        check(&with("initial: null", "").replacen("initial: a\n", "", 1), false);
        for (of_loop, of_state) in [
            ("stall: {window: 1}", ""),
            ("budget: {cost_usd: 0}", ""),
            ("board: {abort_failed_ratio: 1.5}", ""),
            ("max_handoffs: 0", ""),
            ("", ", retryable_exit_codes: [0], max_retries: 1, on_retry_exhausted: done"),
            ("", ", max_retries: 0, on_retry_exhausted: done"),
            ("", ", evaluate: {type: exit_code, target: 300}"),
            ("", ", evaluate: {type: convergence, target: 1, tolerance: -1}"),
            ("", ", evaluate: {type: score_stall, epsilon: -0.5}"),
            ("", ", evaluate: {type: score_stall, max_stall: 0}"),
            ("", ", evaluate: {type: diff_stall, max_stall: 0}"),
            ("", ", evaluate: {type: open_question_stall, max_stall: -1}"),
            ("", ", evaluate: {type: action_stall, max_repeat: 0}"),
            ("", ", evaluate: {type: criteria, stuck_after: 0}"),
            ("", ", evaluate: {type: llm_structured, min_confidence: 7}"),
            ("", ", evaluate: {type: score, approve: 101}"),
            ("", ", scopes: [github]"),
            ("", ", evaluate: {type: comparator, baseline_path: x}"),
        ] {
            check(&with(of_loop, of_state), false);
        }
        check(&with("max_iterations: 2000000000", ""), false);
        check(&with("shell: zsh", ""), false);
        check(&with("shell: []", ""), false);
        check(&with("labels: x", ""), false);
        check(&with("import: x", ""), false);
        check(&with("paradigm: goal", ""), false);
        check(&with("tools: [a]", ""), false);
        check("paradigm: goal\ngoal: g\n", false);
        check("paradigm: goal\ngoal: g\ntools: [a]\ncheck: b\n", false);
        check("paradigm: convergence\ncheck: c\ntoward: 0\nusing: u\n", false);
        check("paradigm: convergence\nname: n\ncheck: c\ntoward: x\nusing: u\n", false);
        check("paradigm: invariants\nname: n\nconstraints: [{name: a, check: b}]\n", false);
        check("paradigm: imperative\nname: n\nsteps: [a]\n", false);
        check(&with("", ", with: [a]"), false);
        check(&with("on_handoff: explode", ""), false);
        check(&with("unheard_of: 1", ""), false);
        check(&with("", ", agent: [x]"), false);
        check(&with("", ", params: [x]"), false);
        check(&with("", ", evaluate: {type: llm_structured, schema: {type: object}}"), false);
        check(&with("", ", evaluate: {type: llm_structured, schema: [verdict]}"), false);
        check(&with("budget: {unpriced: maybe}", ""), false);
        check(&with("signals: [start]", ""), false);
        check(&with("", ", on_yes: [done]"), false);
        check(&with("", ", on_yes: a/b"), false);
        check(&with("", ", on_retry_exhausted: $current"), false);
        check(&with("", ", terminal: 'yes'"), false);
        check(&with("", ", evaluate: {type: exit_cod}"), false);
        check(&with("", ", evaluate: {target: 1}"), false);
        check(&with("", ", evaluate: {type: exit_code, x: 1}"), false);
        check(&with("", ", evaluate: {type: output_numeric}"), false);
        check(&with("", ", evaluate: {type: output_numeric, target: x}"), false);
        check(&with("parameters: {p: {type: colour}}", ""), false);
        check(&with("context: {'a/b': 1}", ""), false);
    }
}
