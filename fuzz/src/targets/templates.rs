//! Templates: what is parsed is what was written, and what is inserted is never read again.
//!
//! An input is the template, and behind its first NUL the text of every value.

use std::borrow::Cow;

use ll_loop::internals::base::path::Segment;
use ll_loop::internals::base::template::{Found, Missing, Namespace, Scope, Template, shell_quote, walk};
use serde_json::Value;

use crate::{Target, note, repository};

/// See above.
pub const TARGET: Target = Target {
    name: "templates",
    run,
    seeds,
    words: &[
        "${context.a}",
        "${captured.a.output}",
        "${captured.a.output:shell}",
        "${prev.exit_code}",
        "${result.details.a}",
        "${state.name}",
        "${loop.name}",
        "${env.HOME}",
        "${param.a}",
        "${messages}",
        "${messages.last(3)}",
        "${messages[0]}",
        "${criteria.x}",
        "${board.x}",
        "$${",
        "${",
        "}",
        "$",
        ".",
        "[0]",
        "[-1]",
        ":default=",
        ":-",
        "?",
        ":shell",
        ":shell?",
        "${x%%.*}",
        "${arr[@]}",
        "${ context.a }",
        "${context.a:-${env.B}}",
        "${contxt.a}",
        "\0",
        "'",
        "\"",
        "\\",
        "\u{85}",
        "99999999999999999999",
        "${env.SECRET}",
        "{\"a\":[1,{\"b\":null}]}",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    let texts = repository::loops();
    let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| line.contains("${"));
    let mut all: Vec<Vec<u8>> =
        lines.map(|line| format!("{line}\0it's ${{env.SECRET}}").into_bytes()).collect();
    all.sort();
    all.dedup();
    all.push(b"${context.a.0.b:shell} ${context.a?} ${context.z:-none}\0{\"a\":[{\"b\":\"x y\"}]}".to_vec());
    all
}

/// Every value is this text, or below it where it is JSON.
struct Values<'v> {
    text: &'v str,
    json: Option<Value>,
}

impl Scope for Values<'_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        match (&self.json, namespace) {
            (Some(json), _) => {
                walk(namespace.word(), json, path).map(|value| Found::Json(Cow::Borrowed(value)))
            }
            (None, Namespace::Param) => Err(Missing::default()),
            (None, _) => Ok(Found::Text(Cow::Borrowed(self.text))),
        }
    }
}

fn run(data: &[u8]) {
    let whole = String::from_utf8_lossy(data);
    let (source, text) = whole.split_once('\0').unwrap_or((&whole, "a ${context.a} b"));
    let literal = Template::literal(source);
    let none = Values { text: "", json: Some(Value::Null) };
    assert_eq!(literal.render(&none).as_deref(), Ok(source), "a literal is what it is");
    let read = Template::parse(literal.source()).expect("a literal is a template");
    assert_eq!(read.render(&none).as_deref(), Ok(source), "a literal can be written down");
    let template = match Template::parse(source) {
        Ok(template) => template,
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(source.get(error.span.clone()).is_some(), "{error:?} is no place in {source:?}");
                assert!(!error.kind.to_string().is_empty() && !error.kind.help().is_empty());
                note(std::mem::discriminant(&error.kind));
            }
            return;
        }
    };
    assert_eq!(template.source(), source);
    for expression in template.expressions() {
        let written = source.get(expression.span.clone()).expect("an expression has a place");
        assert!(written.starts_with("${") && written.ends_with('}'), "{written:?}");
        note((expression.namespace, std::mem::discriminant(&expression.fallback), expression.shell_quoted));
    }
    for json in [None, serde_json::from_str(text).ok()] {
        inserted(&template, source, &Values { text, json });
    }
    let words = shlex::split(&shell_quote(text));
    assert_eq!(words, Some(vec![text.replace('\0', "")]), "a quoted text is one word");
}

/// The rest of the text stays, and a value is inserted as it is, and never read.
fn inserted(template: &Template, source: &str, values: &Values<'_>) {
    let Ok(rendered) = template.render(values) else {
        note("no value");
        return;
    };
    if template.as_literal().is_some() {
        assert_eq!(rendered, source.replace("$${", "${"));
    }
    let mut rest = rendered.as_str();
    let mut end = 0;
    for expression in template.expressions() {
        let before = source[end..expression.span.start].replace("$${", "${");
        rest = rest.strip_prefix(before.as_str()).expect("the text around stays");
        end = expression.span.end;
        let alone = Template::parse(&source[expression.span.clone()]).expect("it was a template");
        let value = alone.render(values).expect("it had a value");
        rest = rest.strip_prefix(value.as_str()).expect("each value in its place");
    }
    assert_eq!(rest, source[end..].replace("$${", "${"));
}
