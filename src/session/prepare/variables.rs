//! Resolves the variables of a run before it begins, so that a missing one is reported at once.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::prepared::{Prepared, unusable};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::path::{DocPath, Segment};
use crate::base::template::{Namespace, TemplateFallback, walk};
use crate::context::Session;
use crate::context::error::Error;
use crate::context::mistakes::mistakes;
use crate::context::options::BeginOptions;
use crate::context::talk::Findings;
use crate::engine::event::Overrides;
use crate::journal::files::RunFiles;
use crate::machine::Machine;
use crate::machine::provided::Provided;
use crate::machine::run_variables::{self, ContextError, Given};

/// Resolves the variables of a run, and refuses a loop that needs one that was not given.
pub(crate) fn resolve(
    prepared: &Prepared,
    options: &BeginOptions,
    files: &RunFiles,
    session: &Session<'_>,
) -> Result<Map<String, Value>, Error> {
    let provided = prepared.provided(files).at_most(options.max_iterations);
    let params = options.params.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let given = Given {
        input: options.input.clone(),
        context: options.context.clone(),
        params,
        provided,
        ..Given::default()
    };
    let context = run_variables::resolve(&prepared.machine, &given, &session.env.for_templates()).map_err(
        |errors| {
            let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            let found = found(&errors, prepared);
            let found = Findings::of(&found, &prepared.loaded);
            Error::refused(text).with_mistakes(mistakes(&prepared.located, &found, &session.cwd))
        },
    )?;
    let missing = missing_context(&prepared.machine, &context);
    if missing.is_empty() {
        return Ok(context);
    }
    session.show(&missing, &prepared.loaded);
    Err(unusable(&prepared.located, &Findings::of(&missing, &prepared.loaded), &session.cwd))
}

/// Returns what a run was given when it began, with the variables of the command line that hold now.
pub(crate) fn given_again(
    overrides: &Overrides,
    context: &IndexMap<String, String>,
    input_key: &str,
    provided: Provided,
) -> Given {
    let params = overrides.param.iter().filter(|(name, _)| !context.contains_key(name.as_str()));
    Given {
        input: overrides.input.clone().filter(|_| !context.contains_key(input_key)),
        context: context.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        params: params.map(|(name, value)| (name.clone(), json!(value))).collect(),
        provided,
        ..Given::default()
    }
}

/// Returns the errors as findings, at the declaration of each variable where the file has one.
fn found(errors: &[ContextError], prepared: &Prepared) -> Diagnostics {
    let tree = &prepared.loaded.tree;
    let place = |error: &ContextError| {
        let name = match error {
            ContextError::Required(name)
            | ContextError::Depth(name)
            | ContextError::Render { name, .. }
            | ContextError::Template { name, .. }
            | ContextError::Namespace { name, .. } => Some(name.as_str()),
            ContextError::UnknownParameter { .. } | ContextError::Type(_) | ContextError::Cycle(_) => None,
        };
        let of = |key: &str| Some(DocPath::root().key(key).key(name?));
        let declared = ["parameters", "context"].iter().filter_map(|key| of(key));
        let declared = declared.chain(["parameters", "required_inputs"].map(|key| DocPath::root().key(key)));
        let mut declared = declared.filter(|path| tree.key_span(path).is_some());
        declared.next().map_or(FindingPlace::File, FindingPlace::Key)
    };
    let mut found = Diagnostics::default();
    for error in errors {
        found.push(Diagnostic::error("undefined-context", place(error), error.to_string()));
    }
    found
}

fn missing_context(machine: &Machine, context: &Map<String, Value>) -> Diagnostics {
    let values = Value::Object(context.clone());
    let mut missing = Diagnostics::default();
    for (state, key, template) in machine.templates() {
        let root =
            state.map_or_else(DocPath::root, |state| DocPath::root().key("states").key(state.as_str()));
        let path = key.split('.').fold(root, |path, key| path.key(key));
        for expression in template.expressions() {
            let needed = expression.namespace == Namespace::Context
                && expression.fallback == TemplateFallback::Required;
            let Some(Segment::Key(name)) = expression.path.first().filter(|_| needed) else { continue };
            if let Err(absent) = walk("context", &values, &expression.path) {
                let message = format!("`${{{expression}}}` has no value");
                let near =
                    absent.nearest.map_or_else(String::new, |near| format!("; the nearest is `{near}`"));
                let help = format!("give it with `--context {name}=…`, or add it to `context`{near}");
                let place = FindingPlace::Within(path.clone(), expression.span.clone());
                missing.push(Diagnostic::error("undefined-context", place, message).help(help));
            }
        }
    }
    missing
}
