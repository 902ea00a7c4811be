//! Values that a loop needs before it runs: where routes lead, and how often something is done. They may be made of
//! `${context.…}` and `${param.…}`, so that a machine is known before its first step.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, NamedNull};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::name::StateName;
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::template::{Namespace, Template};
use crate::evaluate::field::{Field, FromText};

/// A value that is known before the run: written as it is, or made of values that are.
#[derive(Clone, Debug, PartialEq)]
pub struct Early<T>(Field<T>);

impl<T> Early<T> {
    /// Makes a value that is known already.
    pub const fn of(value: T) -> Self {
        Self(Field::Literal(value))
    }

    /// Returns how it is made.
    pub fn field(&self) -> &Field<T> {
        &self.0
    }
}

impl<T: Decode + FromText> Decode for Early<T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let Some(scalar) = node.as_scalar().filter(|scalar| scalar.text.contains("${")) else {
            return T::decode(node, path, out).map(Self::of);
        };
        let template = Template::decode(node, path, out)?;
        let mut is_known = true;
        let mut refuse = |place: FindingPlace, what: &str, why: &str| {
            let message = format!("`{what}` cannot stand here: {why}");
            let help = "only `${context.…}` and `${param.…}` have a value before the run";
            out.push(Diagnostic::error("not-early", place, message).help(help));
            is_known = false;
        };
        // What is left are expansions of a shell, such as `${NAME}`, and escaped braces.
        if template.expressions().next().is_none() {
            refuse(FindingPlace::Value(path.clone()), &scalar.text, "no shell reads it");
        }
        for expression in template.expressions() {
            let place = FindingPlace::Within(path.clone(), expression.span.clone());
            let why = match expression.namespace {
                Namespace::Context | Namespace::Param => continue,
                Namespace::Env => "it may differ where the run goes on; put it into `context`, which is kept",
                Namespace::Captured
                | Namespace::Prev
                | Namespace::Result
                | Namespace::State
                | Namespace::Loop
                | Namespace::Messages
                | Namespace::Criteria
                | Namespace::Board => "it is known only while the loop runs, and this is needed before",
            };
            refuse(place, &format!("${{{expression}}}"), why);
        }
        is_known.then_some(Self(Field::Template(template)))
    }

    fn named_null() -> NamedNull<Self> {
        match T::named_null() {
            NamedNull::Value(value) => NamedNull::Value(Self::of(value)),
            NamedNull::NotGiven => NamedNull::NotGiven,
            NamedNull::Wrong => NamedNull::Wrong,
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let made = json!({"type": "string", "pattern": r"\$\{(context|param)[.]"});
        json!({"anyOf": [T::schema(definitions), made]})
    }
}

impl FromText for StateName {
    const EXPECTED: &'static str = "the name of a state";

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).ok()
    }
}
