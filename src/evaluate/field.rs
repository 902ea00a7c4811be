//! A field of an evaluator: a value that is known when the file is read, or a template for it.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, NamedNull, Null, Ranged};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::template::{RenderError, Scope, Template};
use crate::base::text::one_line;

/// A value, or a template that becomes one when the state is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<T> {
    /// The value itself.
    Literal(T),
    /// A text with `${` in it.
    Template(Template),
}

/// Why a field has no value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FieldError {
    /// The template needs something that is not there.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The rendered text is not a value of this type.
    #[error("`{}` is not {expected}", one_line(text, 60))]
    Unreadable {
        /// The text.
        text: String,
        /// What it should have been, as a noun with its article.
        expected: &'static str,
    },
}

/// A value that can be read from the text that a template became.
pub trait FromText: Sized {
    /// What the text has to be, as a noun with its article.
    const EXPECTED: &'static str;

    /// Reads the text.
    fn from_text(text: &str) -> Option<Self>;
}

impl FromText for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_text(text: &str) -> Option<Self> {
        // `parse` takes `inf` and `NaN` as well, which are neither targets nor bounds.
        text.trim().parse().ok().filter(|number: &Self| number.is_finite())
    }
}

impl<T: Ranged> FromText for T {
    const EXPECTED: &'static str = T::BOUNDS.expected;

    fn from_text(text: &str) -> Option<Self> {
        f64::from_text(text).filter(|number| T::BOUNDS.contain(*number)).map(T::of_number)
    }
}

impl FromText for String {
    const EXPECTED: &'static str = "a text";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }
}

impl FromText for Value {
    const EXPECTED: &'static str = "a value";

    /// Reads JSON, and takes everything else as a text.
    fn from_text(text: &str) -> Option<Self> {
        Some(serde_json::from_str(text).unwrap_or_else(|_| Self::String(text.to_owned())))
    }
}

impl<T> Field<T> {
    /// Returns the value if it is known without any other.
    pub fn as_literal(&self) -> Option<&T> {
        match self {
            Self::Literal(value) => Some(value),
            Self::Template(_) => None,
        }
    }

    /// Returns the template, if it is one.
    pub fn as_template(&self) -> Option<&Template> {
        match self {
            Self::Literal(_) => None,
            Self::Template(template) => Some(template),
        }
    }
}

impl<T: FromText + Clone> Field<T> {
    /// Returns the value, with everything inserted that its template names.
    pub fn resolve(&self, scope: &dyn Scope) -> Result<T, FieldError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Template(template) => {
                let text = template.render(scope)?;
                T::from_text(&text).ok_or(FieldError::Unreadable { text, expected: T::EXPECTED })
            }
        }
    }
}

impl<T: Decode> Decode for Field<T> {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        match node.as_scalar() {
            Some(scalar) if scalar.text.contains("${") => {
                Template::decode(node, path, out).map(Self::Template)
            }
            _ => T::decode(node, path, out).map(Self::Literal),
        }
    }

    const NULL: Null = T::NULL;

    fn named_null() -> NamedNull<Self> {
        match T::named_null() {
            NamedNull::Value(value) => NamedNull::Value(Self::Literal(value)),
            NamedNull::NotGiven => NamedNull::NotGiven,
            NamedNull::Wrong => NamedNull::Wrong,
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [T::schema(definitions), {"type": "string", "pattern": r"\$\{"}]})
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::base::path::Segment;
    use crate::base::template::{Found, Missing, Namespace};
    use crate::evaluate::number_bounds::{Confidence, VisitCount};

    struct Five;

    impl Scope for Five {
        fn get(&self, _: Namespace, _: &[Segment]) -> Result<Found<'_>, Missing> {
            Ok(Found::Text(Cow::Borrowed(" 5")))
        }
    }

    fn check<T: FromText + Clone>(template: &str) -> Result<T, FieldError> {
        Field::Template(Template::parse(template).unwrap()).resolve(&Five)
    }

    #[test]
    fn a_template_becomes_a_value_of_the_fields_type() {
        assert_eq!(check::<f64>("${context.x}"), Ok(5.0));
        assert_eq!(check::<VisitCount>("${context.x}").map(VisitCount::get), Ok(5));
        assert_eq!(
            check::<Confidence>("0${context.x}").unwrap_err().to_string(),
            "`0 5` is not a number from 0 to 1"
        );
        assert_eq!(
            check::<Confidence>("${context.x}").unwrap_err().to_string(),
            "`5` is not a number from 0 to 1"
        );
        assert_eq!(check::<String>("${context.x}"), Ok(" 5".to_owned()));
        assert_eq!(check::<Value>("${context.x}"), Ok(json!(5)));
        assert_eq!(check::<Value>("v${context.x}"), Ok(json!("v 5")));
    }

    #[test]
    fn a_text_that_is_no_such_value_is_shown() {
        let error = check::<f64>("${context.x} apples").unwrap_err();
        assert_eq!(error.to_string(), "`5 apples` is not a number");
    }
}
