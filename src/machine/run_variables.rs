//! Resolves the variables of a run: those of the file and of the command line, with the templates in their texts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use super::Machine;
use super::provided::Provided;
use crate::base::diagnostic::nearest;
use crate::base::explanation::Explanation;
use crate::base::name::VarName;
use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, RenderError, Room, Scope, Template, walk};
use crate::definition::schema::Parameter;

/// What was given to a run besides its file.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// The positional input.
    pub input: Option<String>,
    /// `--context` values.
    pub context: Vec<(String, String)>,
    /// Values for the declared parameters.
    pub params: Vec<(String, Value)>,
    /// Resolved values of a loop around this one, before which the file's own are defaults.
    pub inherited: Map<String, Value>,
    /// What the program provides.
    pub provided: Provided,
}

/// Why the variables of a run cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// A parameter that the loop does not declare.
    #[error("unknown parameter `{name}`{}", of_parameter(name, nearest.as_ref()))]
    UnknownParameter {
        /// Its name.
        name: String,
        /// The declared one that is probably meant.
        nearest: Option<String>,
    },
    /// A value that is not of the parameter's type.
    #[error("{0}")]
    Type(String),
    /// A required parameter or input without a value.
    #[error("the input `{0}` is required; give it with `--context {0}=…` or `--param {0}=…`")]
    Required(String),
    /// Values that need each other.
    #[error("the context values refer to each other in a circle: {0}")]
    Cycle(String),
    /// Values that need each other, one after the other, for too long.
    #[error("the context value `{0}` needs more than {DEEPEST} others, each for the next one")]
    Depth(String),
    /// A reference without a value, or with one that does not fit.
    #[error("in the context value `{name}`: {error}")]
    Render {
        /// The value's name.
        name: String,
        /// What is wrong with it.
        error: RenderError,
    },
    /// A template that cannot be read.
    #[error("in the context value `{name}`: {why}")]
    Template {
        /// The value's name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A namespace that does not exist before the run.
    #[error("the context value `{name}` refers to `{namespace}`, which does not exist before the run")]
    Namespace {
        /// The value's name.
        name: String,
        /// The namespace.
        namespace: &'static str,
    },
}

impl ContextError {
    /// Tells whether this is about the size of the whole, so that every value after it would have the same error.
    fn is_bound(&self) -> bool {
        matches!(self, Self::Depth(_) | Self::Render { error: RenderError::TooLong { .. }, .. })
    }
}

fn of_parameter(name: &str, nearest: Option<&String>) -> String {
    match nearest {
        Some(_) => hint(nearest),
        None => format!(
            "; the loop does not declare it under `parameters`, and `--context {name}=…` sets a variable"
        ),
    }
}

fn hint(nearest: Option<&String>) -> String {
    nearest.map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}

/// Makes the variables of a run, or returns all errors.
pub fn resolve(
    machine: &Machine,
    given: &Given,
    env: &BTreeMap<String, String>,
) -> Result<Map<String, Value>, Vec<ContextError>> {
    let mut errors = Vec::new();
    let mut raw: Map<String, Value> =
        machine.context.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    for (name, parameter) in &machine.parameters {
        if let Some(default) = &parameter.default {
            raw.entry(name.to_string()).or_insert_with(|| default.clone());
        }
    }
    let provided: Vec<_> = given.provided.values(machine, &raw).collect();
    let mut free: Vec<String> = provided.iter().map(|(name, _)| (*name).to_owned()).collect();
    raw.extend(provided.into_iter().map(|(name, value)| (name.to_owned(), value)));
    // Each replaces what came before: the file, what is provided, the loop around, the input, the
    // command line.
    raw.extend(given.inherited.clone());
    raw.extend(given.input.iter().map(|input| (machine.input_key.to_string(), json!(input))));
    raw.extend(given.context.iter().map(|(name, value)| (name.clone(), json!(value))));
    for (name, value) in &given.params {
        if let Some((known, parameter)) = machine.parameters.iter().find(|(known, _)| known.as_str() == name)
        {
            match convert(known, parameter, value) {
                Ok(value) => {
                    raw.insert(name.clone(), value);
                }
                Err(why) => errors.push(ContextError::Type(why.into())),
            }
        } else {
            let known = machine.parameters.keys().map(VarName::as_str);
            let nearest = nearest(name, known).map(str::to_owned);
            errors.push(ContextError::UnknownParameter { name: name.clone(), nearest });
        }
    }
    // Only now: the digest is that of the input that counts in the end.
    let input = raw.get(machine.input_key.as_str());
    if let Some((name, hash)) = given.provided.hash(input).filter(|(name, _)| !raw.contains_key(*name)) {
        free.push(name.to_owned());
        raw.insert(name.to_owned(), hash);
    }
    // What a user gave on the command line is data; only the file's own texts are templates.
    let names = given.context.iter().map(|(name, _)| name).chain(given.params.iter().map(|(name, _)| name));
    let literal: Vec<&String> = names.chain(given.inherited.keys()).chain(&free).collect();
    let is_literal = |name: &str| {
        literal.iter().any(|given| *given == name)
            || (given.input.is_some() && name == machine.input_key.as_str())
    };
    let mut resolver = ContextResolver {
        raw: &raw,
        env,
        is_literal: &is_literal,
        done: json!({}),
        open: Vec::new(),
        room: Room::new(),
    };
    for name in raw.keys() {
        if let Err(error) = resolver.value(name) {
            let is_bound = error.is_bound();
            errors.push(error);
            if is_bound {
                // Every further value would have the same error.
                break;
            }
        }
    }
    let context: Map<String, Value> =
        raw.keys().filter_map(|name| Some((name.clone(), resolver.done.get(name)?.clone()))).collect();
    errors.extend(missing_inputs(machine, &context));
    errors.dedup();
    if errors.is_empty() { Ok(context) } else { Err(errors) }
}

fn missing_inputs(machine: &Machine, context: &Map<String, Value>) -> Vec<ContextError> {
    let required =
        machine.parameters.iter().filter(|(_, parameter)| parameter.required).map(|(name, _)| name);
    let is_empty = |name: &VarName| match context.get(name.as_str()) {
        None | Some(Value::Null) => true,
        Some(value) => value == "",
    };
    let names: IndexSet<_> = required.chain(&machine.required_inputs).filter(|name| is_empty(name)).collect();
    names.into_iter().map(|name| ContextError::Required(name.to_string())).collect()
}

/// Checks a value against a parameter's type and converts texts to it.
pub fn convert(name: &VarName, parameter: &Parameter, value: &Value) -> Result<Value, Explanation> {
    parameter.convert(name, value)
}

/// The longest chain of values that refer to each other.
// Each value in a chain takes several frames of the stack.
pub(super) const DEEPEST: usize = 256;

struct ContextResolver<'a> {
    raw: &'a Map<String, Value>,
    env: &'a BTreeMap<String, String>,
    is_literal: &'a dyn Fn(&str) -> bool,
    /// A map of what is resolved.
    done: Value,
    open: Vec<String>,
    /// All values have it together: one that is made of others may be the half of the next one.
    room: Room,
}

impl ContextResolver<'_> {
    /// Resolves a value and everything that it refers to.
    fn value(&mut self, name: &str) -> Result<(), ContextError> {
        if self.done.get(name).is_some() {
            return Ok(());
        }
        let Some(raw) = self.raw.get(name) else {
            // A value that is not there is reported when the text is rendered, with what is nearest to it.
            return Ok(());
        };
        if let Some(start) = self.open.iter().position(|open| open == name) {
            let circle: Vec<_> = self.open[start..].iter().map(String::as_str).chain([name]).collect();
            return Err(ContextError::Cycle(circle.join(" → ")));
        }
        let value = if (self.is_literal)(name) {
            raw.clone()
        } else {
            if let [first, others @ ..] = self.open.as_slice()
                && others.len() >= DEEPEST
            {
                return Err(ContextError::Depth(first.clone()));
            }
            self.open.push(name.to_owned());
            let value = self.tree(name, raw);
            self.open.pop();
            value?
        };
        self.done[name] = value;
        Ok(())
    }

    fn tree(&mut self, name: &str, raw: &Value) -> Result<Value, ContextError> {
        match raw {
            Value::String(text) if text.contains("${") => self.text(name, text).map(Value::String),
            Value::Array(items) => items.iter().map(|item| self.tree(name, item)).collect(),
            Value::Object(map) => {
                let entries = map.iter().map(|(key, item)| Ok((key.clone(), self.tree(name, item)?)));
                entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(raw.clone()),
        }
    }

    fn text(&mut self, name: &str, text: &str) -> Result<String, ContextError> {
        let template = Template::parse(text).map_err(|errors| ContextError::Template {
            name: name.to_owned(),
            why: errors.first().map_or_else(String::new, |error| error.kind.to_string()),
        })?;
        for expression in template.expressions() {
            match (expression.namespace, expression.path.first()) {
                (Namespace::Context, Some(Segment::Key(other))) => self.value(other)?,
                (Namespace::Env, _) => {}
                (namespace, _) => {
                    return Err(ContextError::Namespace {
                        name: name.to_owned(),
                        namespace: namespace.word(),
                    });
                }
            }
        }
        let scope = StartScope { context: &self.done, env: self.env };
        let text = template.render_within(&mut self.room, &scope);
        text.map_err(|error| ContextError::Render { name: name.to_owned(), error })
    }
}

/// Renders a text that is needed before the run begins: it sees the variables of the run and the environment.
pub fn render(
    template: &Template,
    context: &Map<String, Value>,
    env: &BTreeMap<String, String>,
) -> Result<String, RenderError> {
    template.render(&StartScope { context: &Value::Object(context.clone()), env })
}

/// What is there before a run: the resolved part of the context, and the environment.
#[derive(Clone, Copy)]
pub(super) struct StartScope<'a> {
    pub(super) context: &'a Value,
    pub(super) env: &'a BTreeMap<String, String>,
}

impl Scope for StartScope<'_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        match namespace {
            Namespace::Context => {
                walk("context", self.context, path).map(|value| Found::Json(Cow::Borrowed(value)))
            }
            Namespace::Env => env(self.env, path),
            Namespace::Captured
            | Namespace::Prev
            | Namespace::Result
            | Namespace::State
            | Namespace::Loop
            | Namespace::Param
            | Namespace::Messages
            | Namespace::Criteria
            | Namespace::Board => Err(Missing::default()),
        }
    }
}

/// Looks up `${env.NAME}`.
pub fn env<'e>(variables: &'e BTreeMap<String, String>, path: &[Segment]) -> Result<Found<'e>, Missing> {
    let name = match path {
        [Segment::Key(name)] => name.clone(),
        [Segment::Index(index)] => index.to_string(),
        _ => return Err(Missing::default()),
    };
    variables.get(&name).map(|value| Found::Text(Cow::Borrowed(value))).ok_or_else(|| Missing {
        nearest: nearest(&name, variables.keys().map(String::as_str)).map(|near| format!("env.{near}")),
        why: Some("the environment variable is not set".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;
    use crate::machine::compile::compile;

    /// Resolves the context of a loop whose values are these lines.
    fn resolved(values: &str) -> Result<Map<String, Value>, Vec<String>> {
        let text =
            format!("name: demo\ninitial: done\ncontext:\n{values}states:\n  done: {{terminal: true}}\n");
        let loaded = load::decode("demo.yaml", &text, String::new()).unwrap();
        let machine = compile(&loaded.definition).0.unwrap();
        let resolved = resolve(&machine, &Given::default(), &BTreeMap::new());
        resolved.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    /// Values `v0` to `vN`, each made of the one before it as often as this.
    fn chain(length: usize, times: usize) -> String {
        let next = |index: usize| format!("${{context.v{}}}", index - 1).repeat(times);
        let values = (1..length).map(|index| format!("  v{index}: '{}'\n", next(index)));
        std::iter::once("  v0: x\n".to_owned()).chain(values).collect()
    }

    #[test]
    fn an_input_that_is_asked_for_twice_is_missed_once() {
        let text = "name: demo\ninitial: done\nrequired_inputs: [a]\nparameters:
  a: {type: string, required: true}\n  b: {type: string, required: true}
states:\n  done: {terminal: true}\n";
        let loaded = load::decode("demo.yaml", text, String::new()).unwrap();
        let machine = compile(&loaded.definition).0.unwrap();
        let errors = resolve(&machine, &Given::default(), &BTreeMap::new()).unwrap_err();
        let required = |name: &str| ContextError::Required(name.to_owned());
        assert_eq!(errors, [required("a"), required("b")]);
    }

    #[test]
    fn values_that_double_each_other_end_at_a_bound() {
        assert_eq!(resolved(&chain(10, 2)).unwrap()["v9"], "x".repeat(512));
        let errors = resolved(&chain(60, 2)).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("in the context value `v2"), "{errors:?}");
        assert!(errors[0].contains("does not fit: the text would be longer than 8 MiB"), "{errors:?}");
    }

    #[test]
    fn values_that_are_long_together_end_at_a_bound() {
        let wide = (0..100).map(|index| format!("  w{index}: '${{context.v20}}'\n"));
        let errors = resolved(&(chain(21, 2) + &wide.collect::<String>())).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
    }

    #[test]
    fn a_chain_that_is_too_long_is_an_error() {
        assert!(resolved(&chain(200, 1)).is_ok());
        let backwards: Vec<String> = chain(5_000, 1).lines().rev().map(|line| format!("{line}\n")).collect();
        let errors = resolved(&backwards.concat()).unwrap_err();
        assert_eq!(errors, ["the context value `v4999` needs more than 256 others, each for the next one"]);
    }
}
