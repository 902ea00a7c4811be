//! Finds a mock that lets a state be left in a given way: the evaluator of the state itself is asked which output it takes for
//! which verdict.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, Scope, Template};
use crate::evaluate::evaluator::Judging;
use crate::evaluate::form::AnswerForm;
use crate::evaluate::jq_question::Queried;
use crate::evaluate::observation::Observation;
use crate::evaluate::verdict::Verdict;
use crate::evaluate::{Evaluate, jq};
use crate::machine::routing::{ActionEnd, Departure};
use crate::machine::{Action, Routes, Step};

/// The exit codes that are tried, the usual first.
// 64, 69 and 75 are of sysexits.h, 101 is a panic of Rust, 125 to 127 are those of shells and containers, 137 is SIGKILL.
const CODES: [i32; 16] = [0, 1, 2, 3, 4, 5, 10, 42, 64, 69, 75, 101, 125, 126, 127, 137];

/// Numbers that are tried where one is compared.
const NUMBERS: [f64; 7] = [0.0, 1.0, 100.0, -1.0, 50.0, 60.0, 1e9];

/// A scope in which nothing has a value.
struct NoScope;

impl Scope for NoScope {
    fn get(&self, _: Namespace, _: &[Segment]) -> Result<Found<'_>, Missing> {
        Err(Missing::default())
    }
}

/// Returns the mock of a visit in which a state is left like this, if there is one.
pub fn mock(step: &Step, departure: &Departure) -> Option<Value> {
    let word = departure.verdict.as_str();
    if departure.ended == ActionEnd::Late {
        let is_person = matches!(step.action, Some(Action::Approval(_)));
        return Some(if is_person { json!({"unanswered": true}) } else { json!({"timed_out": true}) });
    }
    if matches!(step.routes, Routes::Always { .. }) {
        return always(step, departure.ended);
    }
    match &step.action {
        Some(Action::SubLoop(_)) => Some(json!({"outcome": word})),
        Some(Action::Board(_)) => None,
        Some(Action::Approval(_)) => match word {
            "yes" => Some(json!({"verdict": "approve"})),
            "no" => Some(json!({"verdict": "reject", "text": "not like this"})),
            "edit" => Some(json!({"verdict": "edit", "text": "like this"})),
            _ => None,
        },
        Some(Action::Learning(_)) => match word {
            "yes" | "blocked" => Some(json!({"verdict": word})),
            _ => None,
        },
        Some(Action::Tool(_)) => match word {
            "success" => Some(json!({"result": "ok"})),
            "tool_error" => Some(json!({"is_error": "it failed"})),
            "not_found" => Some(json!({"not_found": true})),
            _ => None,
        },
        Some(Action::Shell(_) | Action::Prompt(_)) | None => judged(step, departure),
    }
}

/// Returns the mock of a state whose way does not depend on a verdict.
fn always(step: &Step, ended: ActionEnd) -> Option<Value> {
    let fails = ended == ActionEnd::Badly;
    match &step.action {
        None => (!fails).then(|| json!(null)),
        Some(Action::Shell(_)) => Some(json!({"exit": i32::from(fails)})),
        Some(Action::Prompt(prompt)) => {
            let form = prompt.answer.as_ref().filter(|_| !fails);
            let answers = form.map(|form| example(form.schema(), &BTreeMap::new()));
            Some(match answers {
                Some(answers) => json!({"answers": answers}),
                None => json!({"says": "done", "exit": i32::from(fails)}),
            })
        }
        Some(Action::Tool(_)) if fails => Some(json!({"is_error": "it failed"})),
        Some(Action::Tool(_)) => Some(json!({"result": "ok"})),
        Some(Action::SubLoop(_)) => Some(json!({"outcome": if fails { "failure" } else { "success" }})),
        Some(Action::Approval(_)) => Some(json!({"verdict": if fails { "reject" } else { "approve" }})),
        Some(Action::Learning(_)) => Some(json!({"verdict": if fails { "blocked" } else { "yes" }})),
        Some(Action::Board(_)) => None,
    }
}

/// Returns the mock of a state that an evaluator judges.
fn judged(step: &Step, departure: &Departure) -> Option<Value> {
    let evaluate = step.evaluate.as_ref()?;
    let wanted = wanted(departure);
    if evaluate.asks() {
        return asked(step, evaluate, departure, &wanted);
    }
    if let Some(Action::Prompt(prompt)) = &step.action {
        let form = prompt.answer.as_ref();
        if departure.ended == ActionEnd::Badly {
            return Some(json!({"says": "it failed", "exit": 2}));
        }
        return answers(step, evaluate, form.map(AnswerForm::schema), &wanted);
    }
    step.action.as_ref()?;
    let texts = outputs(evaluate, &wanted);
    for code in CODES {
        for text in &texts {
            let seen = Observation::exited(code, text.clone());
            if says(evaluate, step, &seen) == Some(wanted.clone()) {
                let mut mock = Map::new();
                mock.insert("exit".to_owned(), code.into());
                if !text.is_empty() {
                    mock.insert("stdout".to_owned(), text.trim_end_matches('\n').into());
                }
                return Some(Value::Object(mock));
            }
        }
    }
    // No code or output is an error for some evaluators, but a command that cannot be started is one for all.
    (departure.ended == ActionEnd::Badly).then(|| json!({"not_started": "no such program"}))
}

/// Returns the verdict that is to be given: for any other word, one that no route names.
fn wanted(departure: &Departure) -> Verdict {
    match departure.verdict.as_str() {
        // The model check names all words without a route by this one; what a mock says has to be a single word.
        "any other word" => Verdict::new("another"),
        _ => departure.verdict.clone(),
    }
}

/// Returns what an evaluator makes of an observation by itself.
pub fn says(evaluate: &Evaluate, step: &Step, seen: &Observation) -> Option<Verdict> {
    let form = step.action.as_ref().and_then(Action::form);
    let mut judging = Judging { form, ..Judging::of_end(seen, &NoScope) };
    let queried = match evaluate.query(judging) {
        Some(Ok(query)) => Some(Queried { result: jq::run(&query.filter, &query.text), stop: None }),
        Some(Err(_)) => return None,
        None => None,
    };
    judging.queried = queried.as_ref();
    evaluate.judge(judging).ok().map(|judged| judged.verdict)
}

/// Returns outputs that are worth a try.
fn outputs(evaluate: &Evaluate, wanted: &Verdict) -> Vec<String> {
    let mut texts = vec![String::new(), format!("{wanted}\n")];
    let mut numbers: Vec<f64> = NUMBERS.to_vec();
    match evaluate {
        Evaluate::OutputNumeric(numeric) => {
            if let Some(target) = numeric.target.as_literal() {
                // In front: the first that fits is written, and the number of the loop says most to readers.
                numbers.splice(0..0, [*target, target + 1.0, target - 1.0]);
            }
            let key = numeric.key.as_ref().and_then(Template::as_literal);
            let line = |number: &f64| match &key {
                Some(key) => format!("{key}={number}\n"),
                None => format!("{number}\n"),
            };
            texts.extend(numbers.iter().map(line));
        }
        Evaluate::OutputJson(of_json) => {
            let target = of_json.target.as_literal().cloned().unwrap_or(Value::Null);
            let mut values =
                vec![target.clone(), json!("something else"), json!(true), json!(false), json!([])];
            if let Some(number) = target.as_f64() {
                values.extend([json!(number + 1.0), json!(number - 1.0)]);
            }
            let path = of_json.path.as_literal().unwrap_or_default().into_owned();
            texts.extend(values.iter().map(|value| format!("{}\n", nested(&path, value))));
            // An expression that counts.
            texts.extend(["[]\n", "{}\n", "[1]\n", "[1,2]\n", "0\n", "1\n"].map(str::to_owned));
        }
        Evaluate::OutputContains(contains) => {
            let pattern = contains.pattern.as_literal().unwrap_or_default();
            texts.extend(pattern.split('|').map(|part| format!("{}\n", plain(part))));
            texts.push(format!("{pattern}\n"));
            texts.push("nothing of it\n".to_owned());
        }
        Evaluate::Convergence(_) | Evaluate::HarborScorer(_) => {
            if let Evaluate::Convergence(convergence) = evaluate
                && let Some(target) = convergence.target.as_literal()
            {
                // Further away than one, which may lie within the tolerance.
                numbers.splice(0..0, [*target, target + 10.0, target - 10.0]);
            }
            texts.extend(numbers.iter().map(|number| format!("{number}\n")));
        }
        // The code decides, or a word, or several visits: no other output would help.
        Evaluate::ExitCode(_)
        | Evaluate::Classify(_)
        | Evaluate::DiffStall(_)
        | Evaluate::ScoreStall(_)
        | Evaluate::OpenQuestionStall(_)
        | Evaluate::ActionStall(_)
        | Evaluate::McpResult(_)
        | Evaluate::Criteria(_)
        | Evaluate::Answer(_)
        | Evaluate::Score(_)
        | Evaluate::LlmStructured(_) => {}
    }
    texts
}

/// Puts a value where a path leads: `.a.b[0]`.
fn nested(path: &str, value: &Value) -> Value {
    let parts: Vec<&str> = path.split(['.', '[', ']', '"']).filter(|part| !part.is_empty()).collect();
    parts.into_iter().rev().fold(value.clone(), |inner, part| match part.parse::<usize>() {
        Ok(index) => {
            let mut items = vec![Value::Null; index];
            items.push(inner);
            Value::Array(items)
        }
        Err(_) => json!({ part: inner }),
    })
}

/// Returns a text that a simple pattern may match.
fn plain(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.trim_matches(['^', '$', '(', ')']).chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => out.push('1'),
                Some('s') => out.push(' '),
                Some('w') => out.push('a'),
                Some('b') | None => {}
                Some(other) => out.push(other),
            },
            '.' => out.push('a'),
            '*' | '+' | '?' | '^' | '$' | '(' | ')' => {}
            other => out.push(other),
        }
    }
    out
}

/// Returns the mock of a state that a judge judges.
fn asked(step: &Step, evaluate: &Evaluate, departure: &Departure, wanted: &Verdict) -> Option<Value> {
    let mut mock = Map::new();
    match &step.action {
        Some(Action::Prompt(_)) => drop(mock.insert("says".to_owned(), "done".into())),
        Some(Action::Shell(_)) => drop(mock.insert("exit".to_owned(), 0.into())),
        Some(_) | None => {}
    }
    if departure.ended == ActionEnd::Badly {
        return match &step.action {
            Some(Action::Prompt(_)) => Some(json!({"says": "it failed", "exit": 2})),
            Some(Action::Shell(_)) => Some(json!({"not_started": "no such program"})),
            Some(_) | None => None,
        };
    }
    let Evaluate::LlmStructured(judge) = evaluate else { return None };
    let word = wanted.as_str();
    let (word, is_unsure) = match wanted.certain() {
        Some(certain) => (certain.as_str().to_owned(), true),
        None => (word.to_owned(), false),
    };
    let schema = judge.answer_schema();
    let is_simple = schema["required"].as_array().is_none_or(|keys| {
        keys.iter().all(|key| matches!(key.as_str(), Some("verdict" | "reason" | "confidence")))
    });
    if is_simple {
        mock.insert("verdict".to_owned(), word.into());
        if is_unsure {
            mock.insert("confidence".to_owned(), json!(0.1));
        }
    } else {
        let mut fixed = BTreeMap::from([("verdict".to_owned(), json!(word))]);
        if is_unsure {
            fixed.insert("confidence".to_owned(), json!(0.1));
        }
        mock.insert("answers".to_owned(), example(&schema, &fixed));
    }
    Some(Value::Object(mock))
}

/// Returns the mock of a prompt whose answer in a form is the verdict.
fn answers(step: &Step, evaluate: &Evaluate, schema: Option<&Value>, wanted: &Verdict) -> Option<Value> {
    let none = json!({"type": "object"});
    let schema = schema.unwrap_or(&none);
    let mut tries: Vec<BTreeMap<String, Value>> = vec![BTreeMap::new()];
    if let Evaluate::Answer(answer) = evaluate {
        let field = answer.field.clone().unwrap_or_default();
        let of_words = answer.yes.iter().chain(&answer.no).map(String::as_str).chain([wanted.as_str()]);
        let words = enumerated(schema, &field).into_iter().chain(of_words.map(|word| json!(word)));
        tries.extend(words.map(|word| BTreeMap::from([(field.clone(), word)])));
    } else if let Evaluate::Score(_) = evaluate {
        tries.extend(
            [100.0, 60.0, 0.0, 30.0].map(|score| BTreeMap::from([("score".to_owned(), json!(score))])),
        );
        tries.extend([true, false].map(|yes| BTreeMap::from([("approved".to_owned(), json!(yes))])));
    }
    tries.into_iter().find_map(|fixed| {
        let answer = example(schema, &fixed);
        let seen = Observation::exited(0, answer.to_string());
        (says(evaluate, step, &seen).as_ref() == Some(wanted)).then(|| {
            if step.action.as_ref().and_then(Action::form).is_some() {
                json!({"answers": answer})
            } else {
                json!({"says": answer.to_string()})
            }
        })
    })
}

/// Returns the words that a form allows for a field.
fn enumerated(schema: &Value, field: &str) -> Vec<Value> {
    let property = field.split('.').fold(schema, |schema, key| &schema["properties"][key]);
    property["enum"].as_array().cloned().unwrap_or_default()
}

/// Makes a value that a simple schema takes, with these values at their paths.
fn example(schema: &Value, fixed: &BTreeMap<String, Value>) -> Value {
    let mut made = minimal(schema, 0);
    for (path, value) in fixed {
        if path.is_empty() {
            continue;
        }
        let pointer = format!("/{}", path.replace('.', "/"));
        if let Some(place) = made.pointer_mut(&pointer) {
            *place = value.clone();
        } else if let (Some(object), false) = (made.as_object_mut(), path.contains('.')) {
            object.insert(path.clone(), value.clone());
        }
    }
    made
}

/// How deep forms are followed.
// Below it a value is left empty. Where that does not fit the form, there is no mock, and the way is left open.
const DEEPEST: usize = 8;

fn minimal(schema: &Value, depth: usize) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            schema["type"].as_str()
        }
    };
    match kind {
        Some("string") => json!("text"),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => {
            // `minItems` is a number that an author writes: a huge one must not fill the memory.
            let least = schema["minItems"].as_u64().unwrap_or(0).min(3);
            let items = (0..least).map(|_| minimal(&schema["items"], depth + 1));
            Value::Array(items.collect())
        }
        Some("null") => Value::Null,
        _ if depth > DEEPEST => json!({}),
        _ => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let keys = required.iter().filter_map(Value::as_str);
            let of = |key: &str| (key.to_owned(), minimal(&schema["properties"][key], depth + 1));
            Value::Object(keys.map(of).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile::compile;
    use crate::machine::routing::departures;

    #[track_caller]
    fn check(state: &str, expected: &[(&str, Value)]) {
        let text = format!("name: demo\ninitial: a\nstates:\n  a: {state}\n  done: {{terminal: true}}\n");
        let loaded = load::decode("demo.yaml", &text, String::new()).unwrap_or_else(|_| panic!("{text}"));
        let machine = compile(&loaded.definition).0.unwrap();
        let (_, step) = machine.steps().next().unwrap();
        let found: Vec<(String, Value)> = departures(step)
            .iter()
            .filter_map(|departure| Some((departure.verdict.to_string(), mock(step, departure)?)))
            .collect();
        let expected: Vec<(String, Value)> =
            expected.iter().map(|(word, value)| ((*word).to_owned(), value.clone())).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_verdict_of_an_evaluator_has_a_mock() {
        check(
            "{action: x, on_yes: done, on_no: done}",
            &[("yes", json!({"exit": 0})), ("no", json!({"exit": 1})), ("error", json!({"exit": 2}))],
        );
        check(
            "{action: x, evaluate: {type: exit_code, 'no': nonzero}, on_yes: done, on_no: done}",
            &[("yes", json!({"exit": 0})), ("no", json!({"exit": 1})), ("error", json!({"exit": 126}))],
        );
        check(
            "{action: x, evaluate: {type: output_numeric, operator: ge, target: 80, key: cov}, on_yes: done, on_no: done}",
            &[
                ("yes", json!({"exit": 0, "stdout": "cov=80"})),
                ("no", json!({"exit": 0, "stdout": "cov=79"})),
                ("error", json!({"exit": 0})),
            ],
        );
        check(
            "{action: x, timeout: 3, evaluate: {type: output_contains, pattern: 'all (good|fine)$'}, on_yes: done, on_no: done}",
            &[
                ("yes", json!({"exit": 0, "stdout": "all good"})),
                ("no", json!({"exit": 0})),
                ("error", json!({"exit": 2})),
                ("timeout", json!({"timed_out": true})),
            ],
        );
        check(
            "{action: x, evaluate: {type: output_json, path: .a.b, target: 3}, on_yes: done, on_no: done}",
            &[
                ("yes", json!({"exit": 0, "stdout": "{\"a\":{\"b\":3}}"})),
                ("no", json!({"exit": 0, "stdout": "{\"a\":{\"b\":\"something else\"}}"})),
                ("error", json!({"exit": 0})),
            ],
        );
    }
}
