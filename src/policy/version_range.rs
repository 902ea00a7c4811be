//! Which versions of ll-loop may be used: comparisons, all of which have to hold.

use serde_json::{Value, json};

use crate::base::decode::{Decode, Definitions, text};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace};
use crate::base::node::Node;
use crate::base::path::DocPath;
use crate::base::text::one_line;

/// The numbers of a version; those that are not written are zero.
type Numbers = [u64; 3];

/// Comparisons with versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRange {
    all: Vec<(VersionComparison, Numbers)>,
    written: String,
}

/// How a version is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionComparison {
    AtLeast,
    AtMost,
    Above,
    Below,
    Equal,
}

/// The signs of comparisons, the longer ones first.
const SIGNS: [(&str, VersionComparison); 5] = [
    (">=", VersionComparison::AtLeast),
    ("<=", VersionComparison::AtMost),
    (">", VersionComparison::Above),
    ("<", VersionComparison::Below),
    ("=", VersionComparison::Equal),
];

impl VersionRange {
    /// Reads comparisons with commas between them.
    pub fn parse(written: &str) -> Option<Self> {
        let all: Option<Vec<_>> = written.split(',').map(|one| comparison(one.trim())).collect();
        Some(Self { all: all?, written: written.to_owned() })
    }

    /// Tells whether a version is meant. What it says behind its numbers, such as `-rc.1`, comes before the version itself and
    /// is taken for it.
    pub fn allows(&self, version: &str) -> bool {
        let numbers = version.split(['-', '+']).next().and_then(numbers);
        numbers.is_some_and(|version| {
            self.all.iter().all(|(comparison, bound)| match comparison {
                VersionComparison::AtLeast => version >= *bound,
                VersionComparison::AtMost => version <= *bound,
                VersionComparison::Above => version > *bound,
                VersionComparison::Below => version < *bound,
                VersionComparison::Equal => version == *bound,
            })
        })
    }

    /// Returns it as it is written.
    pub fn word(&self) -> &str {
        &self.written
    }
}

fn comparison(text: &str) -> Option<(VersionComparison, Numbers)> {
    let (sign, comparison) = SIGNS.iter().find(|(sign, _)| text.starts_with(sign))?;
    Some((*comparison, numbers(text[sign.len()..].trim())?))
}

fn numbers(text: &str) -> Option<Numbers> {
    let mut numbers = Numbers::default();
    let mut parts = text.split('.');
    for (number, part) in numbers.iter_mut().zip(parts.by_ref()) {
        // `parse` takes a number with a `+` in front as well.
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(numbers)
}

impl Decode for VersionRange {
    fn decode(node: &Node, path: &DocPath, out: &mut Diagnostics) -> Option<Self> {
        let written = text(node, path, "versions", out)?;
        let range = Self::parse(written);
        if range.is_none() {
            let message = format!("`{}` names no versions", one_line(written, 80));
            let finding = Diagnostic::error("policy", FindingPlace::Value(path.clone()), message);
            out.push(finding.help("write comparisons, as in `>=1.2, <2`"));
        }
        range
    }

    fn schema(_: &mut Definitions) -> Value {
        let one = r"\s*(>=|<=|>|<|=)\s*\d+(\.\d+){0,2}\s*";
        json!({"type": "string", "pattern": format!("^{one}(,{one})*$"), "description": "Comparisons, as in `>=1.2, <2`."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_comparisons_have_to_hold() {
        for (range, version, is_allowed) in [
            (">=1.2, <2", "1.2.0", true),
            (">=1.2, <2", "1.10.3", true),
            (">=1.2, <2", "2.0.0", false),
            (">=1.2, <2", "1.1.9", false),
            ("=0.1.0", "0.1.0", true),
            (">0.1", "0.1.0", false),
            ("<= 0.1", "0.1.0-rc.1+abc", true),
            (">=0", "nothing", false),
        ] {
            assert_eq!(VersionRange::parse(range).unwrap().allows(version), is_allowed, "{range} {version}");
        }
        for none in ["", "1.2", ">=", ">=1.2.3.4", ">=1.x", ">=1,", "~1", ">=+1"] {
            assert_eq!(VersionRange::parse(none), None, "{none}");
        }
    }
}
