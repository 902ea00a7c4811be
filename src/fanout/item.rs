//! What items and legs are called. Their names become parts of file and artifact names, so that only plain ones exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::name::VarName;
use crate::base::parsed::parsed;
use crate::base::slug::slug;
use crate::base::sum::Sum;
use crate::base::text::head;

/// The longest name.
// Names of files are made with it, with more in front and behind, and file systems take 255 bytes.
const MAX: usize = 100;

/// Why a text is not the name of an item or a leg.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a name in a plan has 1 to {MAX} letters, digits, `.`, `_`, `+` and `-`, and begins with a letter or a digit"
)]
pub struct PlainNameError;

fn check(text: &str) -> Result<(), PlainNameError> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '+' | '-');
    // A leading `-` would be an option to a program, and a leading `.` would hide the file.
    let begins = text.chars().next().is_some_and(char::is_alphanumeric);
    if begins && text.len() <= MAX && text.chars().all(is_plain) { Ok(()) } else { Err(PlainNameError) }
}

parsed!(
    /// What an item is called.
    ItemId, PlainNameError, check
);
parsed!(
    /// What a leg is called, such as `l03`.
    LegKey, PlainNameError, check
);

impl LegKey {
    /// Names the leg with this number, counted from 1, among so many.
    pub(super) fn nth(number: usize, of: usize) -> Self {
        // As wide as the largest number, so that names sort as numbers do.
        let width = of.to_string().len().max(2);
        Self::parse(&format!("l{number:0width$}")).expect("it begins with a letter and goes on with digits")
    }
}

/// Names items so that no two of them share a name, also where file systems know no case.
#[derive(Debug, Default)]
pub struct Namer {
    /// The names, in lower case.
    taken: BTreeSet<String>,
    /// What was named.
    named: BTreeSet<String>,
}

impl Namer {
    /// Names the item of a loop, given as it stands in file names, with these values. Returns none if it was named
    /// before.
    pub fn name(&mut self, stem: &str, params: &BTreeMap<VarName, String>) -> Option<ItemId> {
        let whole = serde_json::to_string(&(stem, params)).expect("texts are JSON");
        if !self.named.insert(whole.clone()) {
            return None;
        }
        let values: Vec<&str> = params.values().map(String::as_str).collect();
        // `a_b` beside `c` would be called as `a` beside `b_c` is.
        let is_ambiguous =
            values.len() > 1 && values.iter().any(|value| value.is_empty() || value.contains('_'));
        let readable = match values.as_slice() {
            [] => stem.to_owned(),
            values => format!("{stem}.{}", values.join("_")),
        };
        let name = slug(&readable, &whole, is_ambiguous);
        let name = if name.starts_with(char::is_alphanumeric) { name } else { format!("i{name}") };
        let name = if self.taken.insert(name.to_lowercase()) {
            name
        } else {
            let name = format!("{name}-{}", head(&Sum::of(whole.as_bytes()).to_string(), 8));
            self.taken.insert(name.to_lowercase());
            name
        };
        ItemId::parse(&name).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(values: &[(&str, &str)]) -> BTreeMap<VarName, String> {
        values.iter().map(|(name, value)| (VarName::parse(name).unwrap(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_item_is_called_by_its_loop_and_its_values() {
        let mut namer = Namer::default();
        let mut name =
            |stem: &str, values: &[(&str, &str)]| namer.name(stem, &params(values)).unwrap().to_string();
        assert_eq!(name("tidy", &[]), "tidy");
        assert_eq!(name("tidy", &[("p", "api")]), "tidy.api");
        assert_eq!(name("tidy", &[("p", "api"), ("os", "linux")]), "tidy.linux_api");
        assert!(name("tidy", &[("path", "packages/api")]).starts_with("tidy.packages-api-"));
        assert!(name("tidy", &[("p", "API")]).starts_with("tidy.API-"), "a file system may know no case");
        assert!(name("tidy", &[("p", "${{ x }}\n\"'")]).starts_with("tidy.----x"));
    }

    #[test]
    fn what_was_named_is_not_named_again() {
        let mut namer = Namer::default();
        assert!(namer.name("tidy", &params(&[("p", "a")])).is_some());
        assert_eq!(namer.name("tidy", &params(&[("p", "a")])), None);
        assert!(namer.name("tidy", &params(&[("q", "a")])).is_some());
        assert_eq!(namer.name("tidy", &params(&[("q", "a")])), None);
    }

    #[test]
    fn only_plain_names_are_names() {
        for text in ["", ".", "..", "-x", "a/b", "a b", "a\n", "${{ x }}", "a\\b"] {
            assert!(ItemId::parse(text).is_err(), "{text:?}");
        }
        assert!(ItemId::parse(&"a".repeat(101)).is_err());
        assert_eq!(LegKey::nth(3, 12).as_str(), "l03");
        assert_eq!(LegKey::nth(3, 120).as_str(), "l003");
    }

    proptest! {
        #[test]
        fn different_items_have_different_names(
            all in proptest::collection::btree_set(("[a-c]{1,2}", proptest::collection::btree_map("[pq]", "[aA_/é\\n]{0,3}", 0..3)), 0..30)
        ) {
            let mut namer = Namer::default();
            let mut names = BTreeSet::new();
            for (stem, values) in &all {
                let values = values.iter().map(|(name, value)| (VarName::parse(name).unwrap(), value.clone())).collect();
                let name = namer.name(stem, &values).unwrap();
                prop_assert!(names.insert(name.as_str().to_lowercase()), "{}", name);
            }
        }
    }
}
