//! Any CI system of which nothing is known, and a laptop: lines of text, no protocol.

use std::borrow::Cow;
use std::io::{self, Write};

use super::service::{CiService, ProviderRow};
use crate::base::text::{is_direction, is_line_end, one_line, plain};
use crate::base::time::Timestamp;
use crate::report::annotations::{Annotation, AnnotationLevel, Checkout};
use crate::report::dialect::Dialect;
use crate::report::digest::Digest;

/// It matches every environment, so it comes last in the table.
pub(super) const PROVIDER: ProviderRow = ProviderRow {
    names: &["plain"],
    detect: |_| Some("plain"),
    make: |_, _| Box::new(Plain),
    withheld: &[],
    tokens: &[],
};

/// No CI system in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain;

impl CiService for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn dialect(&self) -> Box<dyn Dialect> {
        Box::new(Self)
    }

    fn publish(&self, _digest: &Digest, _tree: &Checkout<'_>, _log: &mut dyn Write) -> Vec<io::Error> {
        Vec::new()
    }
}

impl Dialect for Plain {
    fn group_start(&mut self, title: &str, _at: Timestamp) -> String {
        format!("==> {title}")
    }

    fn group_end(&mut self, _at: Timestamp) -> Option<String> {
        None
    }

    fn untrusted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        one_clean_line(text)
    }

    fn annotation(&self, annotation: &Annotation) -> String {
        let level = match annotation.level {
            AnnotationLevel::Error => "error",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Notice => "notice",
        };
        let mut place = String::new();
        if let Some(location) = &annotation.location {
            place.push_str(&location.file);
            for number in [location.line, location.column].into_iter().flatten() {
                place.push(':');
                place.push_str(&number.to_string());
            }
            place.push_str(": ");
        }
        let said = one_line(&annotation.message, 1000);
        // `error: error: …` would be read as two faults.
        // Compilers say themselves how bad it is.
        let level = if said.to_lowercase().starts_with(level) { String::new() } else { format!("{level}: ") };
        self.untrusted(&format!("{place}{level}{said}")).into_owned()
    }
}

/// Returns the text without escapes, control characters and turns of direction, its line ends as blanks.
pub(super) fn one_clean_line(text: &str) -> Cow<'_, str> {
    let clean = plain(text);
    if !clean.chars().any(|c| is_line_end(c) || is_direction(c)) {
        return clean;
    }
    // A line end becomes a blank, not nothing, so that words stay apart.
    let kept = clean.chars().filter(|c| !is_direction(*c));
    Cow::Owned(kept.map(|c| if is_line_end(c) { ' ' } else { c }).collect())
}
