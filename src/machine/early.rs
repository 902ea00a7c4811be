//! Works out targets and counts that are made of values: of the context, and of the parameters of a fragment.

use std::borrow::Cow;
use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::run_variables::StartScope;
use crate::base::name::VarName;
use crate::base::path::Segment;
use crate::base::template::{Found, Missing, Namespace, RenderError, Scope, Template, walk};
use crate::definition::early_values::Early;
use crate::definition::schema::Loop;
use crate::evaluate::field::{Field, FromText};

/// The environment may differ where a run goes on, so no target depends on it.
static NO_ENVIRONMENT: BTreeMap<String, String> = BTreeMap::new();

/// Which values are known while a loop is compiled.
#[derive(Clone, Copy, Debug)]
pub enum KnownValues<'v> {
    /// Those that the file gives.
    Written,
    /// The same, in whose place a run will be given others: what they do not fit is left open.
    Draft,
    /// The variables of a run.
    Run(&'v Map<String, Value>),
}

/// A value that is made of others, as far as these are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EarlyValue<T> {
    /// It is this.
    Known(T),
    /// It is known only when a run begins.
    Open,
    /// It has no value in this run.
    Missing(RenderError),
    /// It became this text, which is no such value.
    Unfit(String),
}

/// What targets and counts can be made of.
pub(super) struct EarlyValues<'v> {
    context: Value,
    known: KnownValues<'v>,
}

impl<'v> EarlyValues<'v> {
    pub(super) fn new(definition: &Loop, known: KnownValues<'v>) -> Self {
        let context = match known {
            KnownValues::Written | KnownValues::Draft => written(definition),
            KnownValues::Run(context) => context.clone(),
        };
        Self { context: Value::Object(context), known }
    }

    /// Tells whether what does not fit is left open.
    pub(super) fn are_draft(&self) -> bool {
        matches!(self.known, KnownValues::Draft)
    }

    pub(super) fn settle<T: FromText + Clone>(
        &self,
        value: &Early<T>,
        params: &IndexMap<VarName, Field<Value>>,
    ) -> EarlyValue<T> {
        let template = match value.field() {
            Field::Literal(value) => return EarlyValue::Known(value.clone()),
            Field::Template(template) => template,
        };
        let context = StartScope { context: &self.context, env: &NO_ENVIRONMENT };
        match template.render(&EarlyScope { context, params: Some(params) }) {
            // A value from a command line or from another loop may have a line end behind it.
            Ok(text) => match T::from_text(text.trim()) {
                Some(value) => EarlyValue::Known(value),
                None if self.are_draft() => EarlyValue::Open,
                None => EarlyValue::Unfit(text),
            },
            Err(error) => match self.known {
                KnownValues::Run(_) => EarlyValue::Missing(error),
                // What the file does not give may come with the run.
                KnownValues::Written | KnownValues::Draft => EarlyValue::Open,
            },
        }
    }
}

/// Returns the values that the file gives and that need no other. What is empty waits for a value.
fn written(definition: &Loop) -> Map<String, Value> {
    let defaults = definition.parameters.iter();
    let defaults = defaults.filter_map(|(name, parameter)| Some((name, parameter.default.as_ref()?)));
    // What comes later wins: `context` goes before the default of a parameter, as in a run.
    let all = defaults.chain(&definition.context);
    // An empty value is the usual sign for one that the command line has to give.
    let is_known = |value: &Value| !(value.is_null() || value == "" || needs_others(value));
    all.filter(|(_, value)| is_known(value)).map(|(name, value)| (name.to_string(), value.clone())).collect()
}

fn needs_others(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(needs_others),
        Value::Object(map) => map.values().any(needs_others),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The variables, and in a state with a fragment its parameters, which cannot refer to each other.
struct EarlyScope<'e> {
    context: StartScope<'e>,
    params: Option<&'e IndexMap<VarName, Field<Value>>>,
}

impl EarlyScope<'_> {
    fn param(&self, path: &[Segment]) -> Result<Found<'_>, Missing> {
        let (Some(params), Some((Segment::Key(name), rest))) = (self.params, path.split_first()) else {
            return Err(Missing::default());
        };
        let found = params.iter().find(|(known, _)| known.as_str() == name);
        match found.map(|(_, value)| value).ok_or_else(Missing::default)? {
            Field::Literal(value) => {
                walk(&format!("param.{name}"), value, rest).map(|value| Found::Json(Cow::Borrowed(value)))
            }
            Field::Template(template) => self.of_template(template),
        }
    }

    fn of_template(&self, template: &Template) -> Result<Found<'_>, Missing> {
        let text = template.render(&EarlyScope { params: None, ..*self });
        let missing = |error: RenderError| Missing { nearest: None, why: Some(error.to_string()) };
        text.map(|text| Found::Text(Cow::Owned(text))).map_err(missing)
    }
}

impl Scope for EarlyScope<'_> {
    fn get(&self, namespace: Namespace, path: &[Segment]) -> Result<Found<'_>, Missing> {
        if namespace == Namespace::Param { self.param(path) } else { self.context.get(namespace, path) }
    }
}
