//! `output_json`: a value inside printed JSON, compared with a target.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use serde_json::{Value, json};

use crate::base::decode::record;
use crate::base::path::Segment;
use crate::base::template::{Template, walk};

use super::field::{Field, FieldError};
use super::operator::Operator;
use super::verdict::Verdict;
use super::{Evaluator, Judged, Judging, Subject, Verdicts, excerpt, subject};

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
            Subject::Text(text) => text,
            Subject::Crashed(judged) => return Ok(judged),
        };
        let path = self.path.render(judging.scope)?;
        let value = match select(&text, &path) {
            Ok(value) => value,
            Err(why) => return Ok(Judged::error(why)),
        };
        let target = self.target.resolve(judging.scope)?;
        let word = self.operator.word();
        Ok(match self.operator.values(&value, &target) {
            Some(holds) => {
                let details = json!({ "value": value, "path": path, "target": target, "operator": word });
                Judged::new(Verdict::yes_if(holds), details)
            }
            None => Judged::error(format!(
                "`{}` and `{target}` have no order for `{word}`",
                excerpt(&value.to_string())
            )),
        })
    }

    fn verdicts(&self) -> Verdicts<'_> {
        Verdicts::only(&["yes", "no"])
    }

    fn templates(&self) -> Vec<(&'static str, &Template)> {
        let target = self.target.as_template().map(|target| ("target", target));
        let source = self.source.as_ref().map(|source| ("source", source));
        std::iter::once(("path", &self.path)).chain(target).chain(source).collect()
    }

    fn oddities(&self) -> Vec<(&'static str, String)> {
        let literal = self.path.as_literal();
        let odd = literal
            .filter(|path| simple_path(path).is_none() && run_jq(path, "null").is_err_and(|e| e.is_syntax()));
        odd.map(|path| ("path", format!("`{path}` is neither a path nor a jq expression")))
            .into_iter()
            .collect()
    }
}

/// Finds the one value that `path` names in the JSON document `text`.
fn select(text: &str, path: &str) -> Result<Value, String> {
    let Some(segments) = simple_path(path) else {
        return run_jq(path, text).map_err(|error| error.to_string());
    };
    let document: Value =
        serde_json::from_str(text).map_err(|error| format!("`{}` is not JSON: {error}", excerpt(text)))?;
    // A path of keys says what has to be there, so unlike in jq a missing key is an error and no null.
    walk("", &document, &segments).cloned().map_err(|missing| {
        let near = missing.nearest.filter(|near| !near.is_empty());
        let near = near.map(|near| format!("; the nearest is `{near}`")).unwrap_or_default();
        format!("the output has nothing at `{path}`{near}")
    })
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
                let segment = is_plain
                    .then(|| key.parse().map_or_else(|_| Segment::Key(key.to_owned()), Segment::Index))?;
                (segment, &after[end..])
            };
        segments.push(segment);
        rest = behind;
    }
    Some(segments)
}

#[derive(Debug, thiserror::Error)]
enum JqError {
    #[error("`{0}` is no jq expression")]
    Syntax(String),
    #[error("`{text}` is not JSON: {why}")]
    Input { text: String, why: String },
    #[error("`{filter}` failed: {why}")]
    Run { filter: String, why: String },
    #[error("`{filter}` yields {count} values where one is needed")]
    Count { filter: String, count: &'static str },
}

impl JqError {
    fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax(_))
    }
}

fn run_jq(filter: &str, text: &str) -> Result<Value, JqError> {
    let named = || filter.to_owned();
    let definitions = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let functions = jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(&arena, File { code: filter, path: () })
        .map_err(|_| JqError::Syntax(named()))?;
    let compiled =
        Compiler::default().with_funs(functions).compile(modules).map_err(|_| JqError::Syntax(named()))?;
    let input = read::parse_single(text.as_bytes())
        .map_err(|error| JqError::Input { text: excerpt(text), why: error.to_string() })?;
    let context = Ctx::<data::JustLut<Val>>::new(&compiled.lut, Vars::new([]));
    let mut values = compiled.id.run((context, input)).map(unwrap_valr);
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => return Err(JqError::Run { filter: named(), why: error.to_string() }),
        None => return Err(JqError::Count { filter: named(), count: "no" }),
    };
    if values.next().is_some() {
        return Err(JqError::Count { filter: named(), count: "several" });
    }
    serde_json::from_str(&value.to_string())
        .map_err(|error| JqError::Run { filter: named(), why: format!("the result is not JSON: {error}") })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{judge, judge_with};

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
}
