//! `output_json`: a value inside printed JSON, compared with a target.

use serde_json::{Value, json};

use super::effort::PatternEffort;
use super::evaluator::{Evaluator, Judged, Judging, Oddity, Verdicts};
use super::field::{Field, FieldError};
use super::jq;
use super::jq_question::{LONGEST_VALUE, Query, too_long};
use super::judged_text::{JudgedText, excerpt, subject};
use super::operator::Operator;
use super::verdict::Verdict;
use crate::base::decode::record;
use crate::base::explanation::Explanation;
use crate::base::path::Segment;
use crate::base::template::{Template, walk};

record! {
    /// Compares a value inside printed JSON with a target.
    pub struct OutputJson {
        /// Where the value is: `.`, `.a.b`, `.a[0]`, `."odd key"`, or any jq expression that yields one value.
        path: Template,
        /// How they are compared.
        operator: Operator = Operator::Eq,
        /// The value to compare with.
        target: Field<Value>,
        /// The text to judge instead of what the action printed.
        source: Option<Template>,
    }
}

impl Evaluator for OutputJson {
    fn judge(&self, judging: Judging<'_>) -> Result<Judged, FieldError> {
        let text = match subject(self.source.as_ref(), judging)? {
            JudgedText::Text(text) => text,
            JudgedText::Crashed(judged) => return Ok(judged),
        };
        let path = self.path.render(judging.scope)?;
        let target = self.target.resolve(judging.scope)?;
        let selected = match (simple_path(&path), judging.queried) {
            (Some(segments), _) => select(&text, &path, &segments),
            (None, Some(queried)) => queried.result.clone().map(Selected::Value),
            (None, None) => Err(Explanation::new(format!("nobody asked for `{}`", excerpt(&path)))),
        };
        let value = match selected {
            // For jq, what is not there is null: a misspelt path would compare like a value.
            Ok(Selected::Value(Value::Null)) if !target.is_null() => {
                return Ok(Judged::error(format!(
                    "`{}` is null, and the target is not; compare it with null, or give a value in its place",
                    excerpt(&path)
                )));
            }
            Ok(Selected::Value(value)) => value,
            // To compare with null is to ask whether something is there, by a plain path as by jq.
            Ok(Selected::Nothing(_)) if target.is_null() => Value::Null,
            Ok(Selected::Nothing(why)) => return Ok(Judged::error(why)),
            Err(why) => return Ok(Judged::error(why)),
        };
        let word = self.operator.word();
        Ok(match self.operator.values(&value, &target) {
            Some(holds) => {
                let details = json!({ "value": value, "path": path, "target": target, "operator": word });
                Judged::new(Verdict::yes_if(holds), details)
            }
            None => Judged::error(format!(
                "`{}` and `{}` have no order for `{word}`",
                excerpt(&value.to_string()),
                excerpt(&target.to_string())
            )),
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn details(&self) -> Option<&'static [&'static str]> {
        Some(&["value", "path", "target", "operator"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let target = self.target.as_template().map(|target| ("target", target));
        let source = self.source.as_ref().map(|source| ("source", source));
        std::iter::once(("path", &self.path)).chain(target).chain(source).collect()
    }

    fn query(&self, judging: Judging<'_>) -> Option<Result<Query, FieldError>> {
        let query = || {
            let filter = self.path.render(judging.scope)?;
            // Walked in this process when it is judged: a query takes a process of its own.
            if simple_path(&filter).is_some() {
                return Ok(None);
            }
            Ok(match subject(self.source.as_ref(), judging)? {
                JudgedText::Text(text) => Some(Query { filter, text: text.into_owned() }),
                JudgedText::Crashed(_) => None,
            })
        };
        query().transpose()
    }

    fn check(&self, effort: &mut PatternEffort) -> Vec<Oddity> {
        let literal = self.path.as_literal().filter(|path| simple_path(path).is_none());
        let odd = literal
            .filter(|path| effort.spend(PatternEffort::QUERY + path.len()) && jq::check(path).is_err());
        odd.map(|path| {
            let message = format!("`{}` is neither a path nor a jq expression", excerpt(&path));
            Oddity::warning("path", message)
        })
        .into_iter()
        .collect()
    }
}

/// What is at a path.
enum Selected {
    Value(Value),
    /// Nothing, and what is near.
    Nothing(String),
}

/// Finds the one value that a path of keys names in the JSON document `text`.
fn select(text: &str, path: &str, segments: &[Segment]) -> Result<Selected, Explanation> {
    let document: Value = serde_json::from_str(text)
        .map_err(|error| Explanation::new(format!("`{}` is not JSON: {error}", excerpt(text))))?;
    let value = match walk("", &document, segments) {
        Ok(value) => value,
        Err(missing) => {
            let near = missing.nearest.filter(|near| !near.is_empty());
            let near = near.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
            return Ok(Selected::Nothing(format!("the output has nothing at `{path}`{near}")));
        }
    };
    let length = value.to_string().len();
    if length > LONGEST_VALUE {
        Err(Explanation::new(too_long(path, length)))
    } else {
        Ok(Selected::Value(value.clone()))
    }
}

/// Reads a path of keys and indices; none when it is more than that.
fn simple_path(path: &str) -> Option<Vec<Segment>> {
    let path = path.trim();
    if path == "." {
        return Some(Vec::new());
    }
    let mut segments = Vec::new();
    let dotted = if path.starts_with(['.', '[']) { path.to_owned() } else { format!(".{path}") };
    let mut rest = dotted.as_str();
    while !rest.is_empty() {
        let (segment, behind) =
            if let Some(after) = rest.strip_prefix(".\"").or_else(|| rest.strip_prefix("[\"")) {
                let (key, behind) = after.split_once('"')?;
                let behind = if rest.starts_with('[') { behind.strip_prefix(']')? } else { behind };
                (Segment::Key(key.to_owned()), behind)
            } else if let Some(after) = rest.strip_prefix(".[").or_else(|| rest.strip_prefix('[')) {
                let (index, behind) = after.split_once(']')?;
                (Segment::Index(index.parse().ok()?), behind)
            } else {
                let after = rest.strip_prefix('.')?;
                let end = after.find(['.', '[']).unwrap_or(after.len());
                let key = &after[..end];
                let is_plain =
                    !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
                // `.a.0` is an index, which jq would refuse.
                let segment = is_plain
                    .then(|| key.parse().map_or_else(|_| Segment::Key(key.to_owned()), Segment::Index))?;
                (segment, &after[end..])
            };
        segments.push(segment);
        rest = behind;
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{checked, judge, judge_with};

    const DOC: &str = r#"{"summary":{"failed":0,"rate":0.5,"name":"unit","ok":true,"none":null},
        "items":[{"n":1},{"n":2}],"odd key":3,"ключ":4}"#;

    fn check(keys: &str, expected: &str) {
        assert_eq!(judge(&format!("{{type: output_json, {keys}}}"), DOC, 0), expected, "{keys}");
    }

    #[test]
    fn paths_reach_every_value() {
        check("path: .summary.failed, target: 0", "yes");
        check("path: summary.failed, target: 1", "no");
        check("path: '.items[1].n', operator: ge, target: 2", "yes");
        check("path: .items.1.n, target: 2", "yes");
        check("path: '.\"odd key\"', target: 3", "yes");
        check("path: .ключ, target: 4", "yes");
        check("path: .summary.none, target: null", "yes");
        check("path: .summary.name, target: unit", "yes");
        check("path: .summary.ok, target: true", "yes");
        assert_eq!(judge("{type: output_json, path: ., target: 5}", "5", 0), "yes");
    }

    #[test]
    fn jq_expressions_yield_one_value() {
        check("path: '.items | length', target: 2", "yes");
        check("path: '[.items[].n] | add', operator: gt, target: 2", "yes");
        check("path: '.items[].n', target: 1", "error");
        check("path: '.items[', target: 1", "error");
    }

    #[test]
    fn a_missing_key_is_an_error_that_names_its_neighbour() {
        let (verdict, details) =
            judge_with("{type: output_json, path: .summary.faild, target: 0}", None, DOC, 0);
        assert_eq!(verdict, "error");
        assert_eq!(
            details,
            json!({"error": "the output has nothing at `.summary.faild`; the nearest is `.summary.failed`"})
        );
    }

    #[test]
    fn nothing_is_compared_with_nothing_alone() {
        for path in
            [".summary.none", ".summary.none | .", ".no.such | .", ".items[7].n", ".summary.none.deeper"]
        {
            for (operator, target) in [("eq", "0"), ("ne", "0"), ("ne", "''"), ("lt", "5"), ("eq", "false")] {
                check(&format!("path: '{path}', operator: {operator}, target: {target}"), "error");
            }
            check(&format!("path: '{path}', target: null"), "yes");
            check(&format!("path: '{path}', operator: ne, target: null"), "no");
        }
        check("path: .summary.failed, operator: ne, target: null", "yes");
        check("path: '.summary.failed | .', target: null", "no");
    }

    #[test]
    fn types_matter_and_only_numbers_have_an_order() {
        check("path: .summary.failed, target: '0'", "no");
        check("path: .summary.name, operator: lt, target: z", "error");
        check("path: .summary.failed, target: '${context.n}', operator: ne", "yes");
    }

    #[test]
    fn what_is_not_json_is_an_error() {
        let spec = "{type: output_json, path: ., target: 0}";
        assert_eq!(["", "log line\n{}", "{"].map(|out| judge(spec, out, 0)), ["error", "error", "error"]);
    }

    #[test]
    fn an_expression_is_read_before_the_run_and_executed_in_it() {
        for (path, is_odd) in [
            ("[range(1e12)]", false),
            ("def f: f; f", false),
            (".a | length", false),
            ("error", false),
            (".a |", true),
            ("no_such_function(1)", true),
            ("${context.word}", false),
            ("[[[", true),
        ] {
            let found = checked(&format!("{{type: output_json, path: '{path}', target: 1}}"));
            assert_eq!(found.len(), usize::from(is_odd), "{path}: {found:?}");
        }
    }

    #[test]
    fn an_expression_that_nobody_can_read_is_none() {
        for deep in [
            "[",
            "(",
            "-",
            "if ",
            "try ",
            "def f: ",
            "{a:",
            "\\(",
            "..|",
            "?//",
            ".[",
            "\"\\(",
            "reduce . as $x (",
            ". as [$a, ",
        ] {
            let filter = deep.repeat(4000 / deep.len());
            assert!(crate::evaluate::jq::check(&filter).is_err(), "{deep}");
        }
        let long = ".a|".repeat(1300) + ".";
        assert!(crate::evaluate::jq::check(&long).is_ok(), "long is not deep");
    }

    #[test]
    fn a_value_that_would_fill_the_journal_is_an_error() {
        let document = format!("{{\"a\": \"{}\"}}", "x".repeat(300_000));
        for path in [".a", ".", ".a | ."] {
            let verdict = judge(&format!("{{type: output_json, path: '{path}', target: 1}}"), &document, 0);
            assert_eq!(verdict, "error", "{path}");
        }
        assert_eq!(judge("{type: output_json, path: '.a | length', target: 300000}", &document, 0), "yes");
    }
}
