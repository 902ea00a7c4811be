//! The JSON Schema of loop files, made from the records that the loader reads with.

use serde_json::{Map, Value, json};

use super::paradigm;
use super::schema::{Composition, Loop, Shorthand};
use crate::base::decode::{Definitions, Record as _};

/// Where the schema is published.
pub const SCHEMA_ID: &str = "https://little-loops.github.io/ll-loop/loop.schema.json";

/// Returns the schema of a whole loop file.
pub fn json_schema() -> Value {
    let mut definitions = Definitions::new();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Loop of ll-loop",
    });
    let mut record = Loop::object_schema(&mut definitions);
    extend(&mut record, &Composition::object_schema(&mut definitions));
    let shorthand = Shorthand::object_schema(&mut definitions);
    if let Some(state) = definitions.get_mut("State") {
        extend(state, &shorthand);
    }
    let forms = forms(&mut record, &paradigm::schemas(&mut definitions));
    if let (Value::Object(schema), Value::Object(record), Value::Object(forms)) = (&mut schema, record, forms)
    {
        schema.extend(record);
        schema.extend(forms);
        schema.insert("$defs".into(), definitions.into());
    }
    schema
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
    // A parent can give everything, and states in a line each give the first one.
    let needs = |keys: &Value, more: &Value| json!({"anyOf": [{"required": ["from"]}, {"required": keys, "anyOf": more}]});
    let foreign: Map<String, Value> =
        forms.iter().flat_map(|(_, form)| own(form)).map(|(key, _)| (key, json!(false))).collect();
    let mut tree =
        needs(&json!(["name"]), &json!([{"required": ["initial", "states"]}, {"required": ["flow"]}]));
    tree["properties"] = foreign.clone().into();
    for (word, form) in forms {
        let mut then = needs(&form["required"], &form.get("anyOf").cloned().unwrap_or(json!([{}])));
        let mut properties = foreign.clone();
        properties.extend(own(form));
        then["properties"] = properties.into();
        let is_form = json!({"properties": {"paradigm": {"const": word}}, "required": ["paradigm"]});
        tree = json!({"if": is_form, "then": then, "else": tree});
    }
    if let Some(properties) = record["properties"].as_object_mut() {
        properties.extend(foreign.into_iter().map(|(key, _)| (key, json!({}))));
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
