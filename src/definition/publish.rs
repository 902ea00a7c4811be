//! The JSON Schema of loop files, made from the records that the loader reads with.

use serde_json::{Value, json};

use super::schema::Loop;
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
    let record = Loop::object_schema(&mut definitions);
    if let (Value::Object(schema), Value::Object(record)) = (&mut schema, record) {
        schema.extend(record);
        schema.insert("$defs".into(), definitions.into());
    }
    schema
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
        check(&with("", ", condition: {type: output_numeric, target: '${context.x}'}"), true);
        check(&with("", ", route: {'yes': done, _: $current}"), true);
        check(&with("parameters: {p: {type: enum, values: [a, 1]}}\ncontext: {a: [1, {b: c}]}", ""), true);
        check(&with("idle_timeout: 3\nparadigm: fsm\non_handoff: spawn\nmax_steps: 3", ""), true);
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
        check(&with("max_iterations: '5'", ""), false);
        check(&with("max_iterations: 2000000000", ""), false);
        check(&with("shell: zsh", ""), false);
        check(&with("shell: []", ""), false);
        check(&with("labels: x", ""), false);
        check(&with("import: [x]", ""), false);
        check(&with("paradigm: goal", ""), false);
        check(&with("on_handoff: explode", ""), false);
        check(&with("unheard_of: 1", ""), false);
        check(&with("", ", loop: x"), false);
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
