//! The values of a run, as far as they are known before it begins: what the templates of `reuse` may hold.

use std::borrow::Cow;

use serde_json::Value;

use super::no_key::NoKey;
use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, Scope, Template, walk};

/// The values of a run, each as it is to be inserted.
struct RunValues<'v> {
    context: &'v Value,
    insert: fn(&str) -> String,
}

/// Inserts the values of a run into templates, each as `insert` makes it.
///
/// # Errors
/// A value is missing.
pub(super) fn rendered(
    templates: &[Template],
    context: &Value,
    insert: fn(&str) -> String,
) -> Result<Vec<String>, NoKey> {
    let values = RunValues { context, insert };
    let render = |template: &Template| {
        let failed = |error| NoKey::Value { template: template.source().to_owned(), error };
        template.render(&values).map_err(failed)
    };
    templates.iter().map(render).collect()
}

/// Returns the commands by which tools are asked which ones they are. A value may hold several, one a line, or none.
///
/// # Errors
/// A value is missing.
pub fn tool_commands(tools: &[Template], context: &Value) -> Result<Vec<String>, NoKey> {
    let rendered = rendered(tools, context, str::to_owned)?;
    let lines = rendered.iter().flat_map(|text| text.lines()).map(str::trim);
    Ok(lines.filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

impl Scope for RunValues<'_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        match namespace {
            Namespace::Context | Namespace::Param => {
                // Parameters are part of the context.
                let found = walk(namespace.word(), self.context, path)?;
                let text = Found::Json(Cow::Borrowed(found)).into_text().into_owned();
                Ok(Found::Text(Cow::Owned((self.insert)(&text))))
            }
            Namespace::Captured
            | Namespace::Prev
            | Namespace::Result
            | Namespace::State
            | Namespace::Loop
            | Namespace::Env
            | Namespace::Messages
            | Namespace::Criteria
            | Namespace::Board => Err(Missing::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_holds_commands_one_a_line_or_none() {
        let tools = ["node --version", "${param.versions}"].map(|text| Template::parse(text).unwrap());
        let of = |versions: &str| tool_commands(&tools, &json!({"versions": versions})).ok().unwrap();
        assert_eq!(of("go version\n gofmt -V \n"), ["node --version", "go version", "gofmt -V"]);
        assert_eq!(of(""), ["node --version"]);
        assert!(matches!(tool_commands(&tools, &json!({})), Err(NoKey::Value { .. })));
    }
}
