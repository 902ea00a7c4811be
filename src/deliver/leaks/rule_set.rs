//! The rules as they stand in `rules.toml`, and which of them are worth a look.

use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::match_proof::{MatchProof, is_mixed, is_plausible};

/// All rules.
pub(super) static RULES: LazyLock<RuleSet> =
    LazyLock::new(|| RuleSet::parse(include_str!("rules.toml")).expect("a test reads the same file"));

/// The form of one kind of credential.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeakRule {
    pub(super) id: String,
    pub(super) what: String,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is for readers of the file, and a test wants it there")
    )]
    pub(super) source: String,
    keywords: Vec<String>,
    pattern: String,
    #[serde(default)]
    pub(super) proof: MatchProof,
    beside: Option<String>,
    within: Option<usize>,
    #[serde(default)]
    pub(super) public: Vec<String>,
    #[serde(default = "yes", rename = "bounded")]
    pub(super) is_bounded: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) examples: Vec<Vec<String>>,
    #[serde(default)]
    #[cfg_attr(not(test), expect(dead_code, reason = "they are for tests"))]
    pub(super) others: Vec<Vec<String>>,
    /// Made when it is needed, which most rules never are.
    #[serde(skip)]
    compiled: OnceLock<Regex>,
    #[serde(skip)]
    compiled_beside: OnceLock<Regex>,
}

/// What has to stand near a match.
pub(super) struct NearbyPattern<'r> {
    regex: &'r Regex,
    within: usize,
}

/// The rules, and one search for the keywords of all of them.
pub(super) struct RuleSet {
    rules: Vec<LeakRule>,
    keywords: AhoCorasick,
    /// The rule of each keyword.
    owners: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<LeakRule>,
}

/// Why the file with the rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuleFileError {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("{0}")]
    Fields(#[from] serde_json::Error),
    #[error("{0}")]
    Keywords(#[from] aho_corasick::BuildError),
}

fn yes() -> bool {
    true
}

/// Returns what a value of the file is in JSON, from which fields are read. Neither dates nor floats are any of them.
fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Integer(number) => number.as_str().parse().map_or(Value::Null, |number: u64| number.into()),
        DeValue::Boolean(is) => Value::Bool(*is),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())));
            Value::Object(fields.collect())
        }
        DeValue::Float(_) | DeValue::Datetime(_) => Value::Null,
    }
}

fn compile(pattern: &str) -> Regex {
    // Bytes of any kind are searched, also those that are not UTF-8.
    RegexBuilder::new(pattern).unicode(false).build().expect("a test compiles each pattern of the file")
}

impl RuleSet {
    fn parse(text: &str) -> Result<Self, RuleFileError> {
        let file = json(&DeValue::Table(DeTable::parse(text)?.into_inner()));
        let rules = serde_json::from_value::<RuleFile>(file)?.rule;
        let owners = rules.iter().enumerate().flat_map(|(at, rule)| rule.keywords.iter().map(move |_| at));
        let owners = owners.collect();
        let keywords = rules.iter().flat_map(|rule| &rule.keywords);
        let keywords = AhoCorasick::builder().ascii_case_insensitive(true).build(keywords)?;
        Ok(Self { rules, keywords, owners })
    }

    /// Returns the rules one of whose keywords stands in these bytes.
    pub(super) fn with_a_keyword_in<'r>(&'r self, bytes: &[u8]) -> impl Iterator<Item = &'r LeakRule> {
        let mut wanted = vec![false; self.rules.len()];
        let mut left = self.rules.len();
        // Overlapping: a keyword may stand inside of another one, and both their rules have to be
        // tried.
        for found in self.keywords.find_overlapping_iter(bytes) {
            let is_wanted = &mut wanted[self.owners[found.pattern().as_usize()]];
            if !std::mem::replace(is_wanted, true) {
                left -= 1;
            }
            if left == 0 {
                break;
            }
        }
        self.rules.iter().zip(wanted).filter_map(|(rule, is_wanted)| is_wanted.then_some(rule))
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[LeakRule] {
        &self.rules
    }
}

impl LeakRule {
    pub(super) fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| compile(&self.pattern))
    }

    /// Returns what has to stand near a match, if anything has to.
    pub(super) fn beside(&self) -> Option<NearbyPattern<'_>> {
        let (pattern, within) = (self.beside.as_ref()?, self.within?);
        Some(NearbyPattern { regex: self.compiled_beside.get_or_init(|| compile(pattern)), within })
    }
}

impl NearbyPattern<'_> {
    /// Returns where it stands near a match.
    pub(super) fn near(&self, bytes: &[u8], whole: &Range<usize>) -> Option<Range<usize>> {
        let start = whole.start.saturating_sub(self.within);
        let end = whole.end.saturating_add(self.within).min(bytes.len());
        let mut found = self.regex.captures_iter(&bytes[start..end]).filter_map(|captures| {
            let value = captures.name("value")?;
            // So short is no secret but a fixed text, such as the version in an address of Azure,
            // and stands for itself.
            let is_fixed = value.len() < 20;
            let is_secret = is_fixed || (is_mixed(value.as_bytes()) && is_plausible(value.as_bytes()));
            let range = value.start() + start..value.end() + start;
            let overlaps = range.start < whole.end && whole.start < range.end;
            (is_secret && !overlaps).then_some(range)
        });
        found.next()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_rule_has_an_id_of_its_own_and_patterns_that_compile() {
        let mut ids = BTreeSet::new();
        for rule in RULES.all() {
            assert!(ids.insert(rule.id.as_str()), "{}", rule.id);
            assert!(!rule.regex().as_str().is_empty());
            assert_eq!(rule.beside().is_some(), rule.within.is_some(), "{}", rule.id);
            // What stands in every text anyway would be no reason to look.
            assert!(rule.keywords.iter().all(|keyword| keyword.len() >= 2), "{}", rule.id);
        }
    }
}
