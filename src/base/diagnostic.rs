//! What is wrong with a file, as data: a code, a place, a sentence and an advice. Drawing it is another layer's work.

use super::node::Span;
use super::path::DocPath;

/// How bad a finding is, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; never blocks.
    Note,
    /// Probably a mistake; blocks under `--strict`.
    Warning,
    /// The file cannot be used.
    Error,
}

/// Which part of an entry a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingPlace {
    /// The value at a path.
    Value(DocPath),
    /// The key at a path, for instance an unknown one.
    Key(DocPath),
    /// A part of the text of a value, as a byte range of the decoded text; drawn on the whole value when the
    /// text was folded, quoted with escapes or otherwise not byte for byte in the file.
    Within(DocPath, std::ops::Range<usize>),
    /// A byte range of the file itself, for texts that are no YAML.
    Bytes(std::ops::Range<usize>),
    /// A place in any file of a definition, for what is not in the tree that came of them.
    At(Span),
    /// The file as a whole.
    File,
}

/// An edit of the text that takes a finding away, where there is one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Writes a part of what is marked in another way: the first that is `old`.
    Replace {
        /// The part as it is written.
        old: String,
        /// What is meant.
        new: String,
    },
    /// Writes all of what is marked in another way.
    Rewrite(String),
    /// Takes the entry of the marked key away.
    Remove,
    /// Adds an entry to the mapping of the marked key.
    Add {
        /// Its key.
        key: &'static str,
        /// Its value, as it is written.
        value: String,
    },
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable name for the kind of finding, explained in `docs/diagnostics.md`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What happened: a lower-case fragment with literals in backticks.
    pub message: String,
    /// Where.
    pub place: FindingPlace,
    /// A short remark at the place itself.
    pub label: Option<String>,
    /// Another place that explains this one, with a remark.
    pub related: Option<(FindingPlace, String)>,
    /// What to do.
    pub help: Option<String>,
    /// The edit that does it, where there is one answer.
    pub repair: Option<Repair>,
    /// Other edits that take it away: somebody has to choose.
    pub choices: Vec<Repair>,
    /// The name that the finding is about, where code has to know it.
    pub about: Option<String>,
}

impl Diagnostic {
    /// Makes a finding that blocks.
    pub fn error(code: &'static str, place: FindingPlace, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, place, message)
    }

    /// Makes a finding that blocks under `--strict` only.
    pub fn warning(code: &'static str, place: FindingPlace, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, place, message)
    }

    /// Makes a finding that never blocks.
    pub fn note(code: &'static str, place: FindingPlace, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, place, message)
    }

    fn new(code: &'static str, severity: Severity, place: FindingPlace, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            place,
            label: None,
            related: None,
            help: None,
            repair: None,
            choices: Vec::new(),
            about: None,
        }
    }

    /// Adds a remark at the place itself.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a second place that explains this one.
    #[must_use]
    pub fn related(mut self, place: FindingPlace, remark: impl Into<String>) -> Self {
        self.related = Some((place, remark.into()));
        self
    }

    /// Says which name it is about.
    #[must_use]
    pub fn about(mut self, name: impl Into<String>) -> Self {
        self.about = Some(name.into());
        self
    }

    /// Adds which name is probably meant by another one, and the edit that writes it.
    #[must_use]
    pub fn meant(self, old: &str, near: &str) -> Self {
        let repair = Repair::Replace { old: old.to_owned(), new: near.to_owned() };
        self.help(format!("did you mean `{near}`?")).repair(repair)
    }

    /// Adds the edit that takes the finding away.
    #[must_use]
    pub fn repair(mut self, repair: impl Into<Option<Repair>>) -> Self {
        self.repair = repair.into();
        self
    }

    /// Adds other edits that take the finding away.
    #[must_use]
    pub fn choices(mut self, choices: impl IntoIterator<Item = Repair>) -> Self {
        for choice in choices {
            // What repairs the finding by itself is not offered a second time.
            if self.choices.len() < MOST_CHOICES && self.repair.as_ref() != Some(&choice) {
                self.choices.push(choice);
            }
        }
        self
    }

    /// Adds the names that could be meant by another one, those first that are like it.
    #[must_use]
    pub fn or_meant<'n>(self, old: &str, names: impl IntoIterator<Item = &'n str>) -> Self {
        let wanted = old.to_lowercase();
        let mut names: Vec<(f64, &str)> = names
            .into_iter()
            .take(MAX_CANDIDATES)
            .filter(|name| name.len() <= MAX_NAME && old.len() <= MAX_NAME && *name != old)
            .map(|name| (likeness(&wanted, &name.to_lowercase()), name))
            .collect();
        names.sort_by(|one, other| other.0.total_cmp(&one.0));
        let write = |(_, new): (f64, &str)| Repair::Replace { old: old.to_owned(), new: new.to_owned() };
        self.choices(names.into_iter().map(write))
    }

    /// Adds an advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The most edits among which one can choose: more are not looked through.
const MOST_CHOICES: usize = 5;

/// The most findings of one severity that are kept; further ones are only counted.
pub const MAX_KEPT: usize = 1_000;

/// All findings about a file, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    /// How many there are of each severity, kept or not.
    counts: [usize; 3],
}

impl Diagnostics {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = &mut self.counts[diagnostic.severity as usize];
        *count += 1;
        if *count <= MAX_KEPT {
            self.kept.push(diagnostic);
        }
    }

    /// Adds a finding of which the making takes its time, as an advice does: it is made only if it is kept.
    pub fn push_with(&mut self, severity: Severity, make: impl FnOnce() -> Diagnostic) {
        if self.counts[severity as usize] < MAX_KEPT {
            self.push(make());
        } else {
            self.counts[severity as usize] += 1;
        }
    }

    /// Adds all findings of another collection.
    pub fn extend(&mut self, other: Self) {
        let more = other.left_out();
        other.kept.into_iter().for_each(|finding| self.push(finding));
        for (count, more) in self.counts.iter_mut().zip(more) {
            *count += more;
        }
    }

    /// Returns the findings that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.kept.iter()
    }

    /// Returns the same without some of those that are kept.
    #[must_use]
    pub fn filtered(mut self, mut is_wanted: impl FnMut(&Diagnostic) -> bool) -> Self {
        // Findings that were only counted cannot be looked at, and stay.
        let mut counts = self.left_out();
        self.kept.retain(|finding| {
            let is_wanted = is_wanted(finding);
            counts[finding.severity as usize] += usize::from(is_wanted);
            is_wanted
        });
        Self { counts, ..self }
    }

    /// Returns the same with all findings of one kind as errors.
    #[must_use]
    pub fn raised(self, code: &str) -> Self {
        let mut raised = Self { kept: Vec::new(), counts: self.left_out() };
        for finding in self.kept {
            let severity = if finding.code == code { Severity::Error } else { finding.severity };
            raised.counts[severity as usize] += 1;
            raised.kept.push(Diagnostic { severity, ..finding });
        }
        raised
    }

    /// Returns how many findings of each severity are not kept.
    fn left_out(&self) -> [usize; 3] {
        self.kept.iter().fold(self.counts, |mut counts, finding| {
            counts[finding.severity as usize] -= 1;
            counts
        })
    }

    /// Returns how many findings there are, kept or not.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Returns how many findings are at least this bad.
    pub fn count(&self, severity: Severity) -> usize {
        self.counts[severity as usize..].iter().sum()
    }

    /// Tells whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Tells whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

/// Longer names get no suggestion: they are not typing mistakes.
const MAX_NAME: usize = 100;

/// The most candidates that are compared.
const MAX_CANDIDATES: usize = 200;

/// The likeness of Jaro and Winkler from which on a name may be meant by another one.
const NEAR: f64 = 0.8;

/// How often each ASCII letter is in a name. Names with few letters in common are not near each other, which is
/// seen in a fraction of the time that their likeness takes.
struct Letters {
    counts: [u8; 128],
    /// How many letters it has, ASCII or not.
    length: usize,
}

impl Letters {
    fn of(lower: &str) -> Self {
        let mut counts = [0_u8; 128];
        for byte in lower.bytes().filter(u8::is_ascii) {
            // No letter comes 256 times, for names of more than a hundred bytes are not looked at.
            counts[usize::from(byte)] += 1;
        }
        Self { counts, length: lower.chars().count() }
    }

    /// Tells whether the likeness of a name may reach [`NEAR`]. That of Jaro is at most a third of the parts of
    /// both that are in common, and one more third; a beginning in common takes away up to four tenths of what it
    /// lacks.
    fn may_be_near(&self, candidate: &str) -> bool {
        if self.length == 0 || candidate.is_empty() {
            return self.length == candidate.len();
        }
        let mut left = self.counts;
        let mut common = 0_u32;
        for byte in candidate.bytes() {
            // Of other letters it is not known how they are written in lower case.
            let Some(left) = left.get_mut(usize::from(byte.to_ascii_lowercase())) else { return true };
            common += u32::from(*left > 0);
            *left = left.saturating_sub(1);
        }
        let part = |length: usize| f64::from(common) / f64::from(u32::try_from(length).unwrap_or(u32::MAX));
        let jaro = (part(self.length) + part(candidate.len()) + 1.0) / 3.0;
        jaro + 0.4 * (1.0 - jaro) >= NEAR
    }
}

/// Tells whether a name is another one, or that with one slip: a letter too many, too few or wrong, or two in the wrong order.
pub fn is_slip(name: &str, meant: &str) -> bool {
    name.len() <= MAX_NAME && strsim::osa_distance(name, meant) <= 1
}

/// Returns the candidate that is nearest to `name`, if one is near enough to be meant. It takes its time, so only the
/// first candidates are looked at, and names that people write.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > MAX_NAME {
        return None;
    }
    let wanted = name.to_lowercase();
    let letters = Letters::of(&wanted);
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= MAX_NAME && letters.may_be_near(candidate))
        .map(|candidate| (likeness(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns how alike two names are, from 0 to 1. In a name of three letters, Jaro and Winkler see none that change places.
fn likeness(one: &str, other: &str) -> f64 {
    let is_turned = one.len() == other.len() && strsim::osa_distance(one, other) == 1 && {
        let letters = |name: &str| {
            let mut letters: Vec<char> = name.chars().collect();
            letters.sort_unstable();
            letters
        };
        letters(one) == letters(other)
    };
    if is_turned { TURNED } else { strsim::jaro_winkler(one, other) }
}

/// The likeness of two names of which one has two letters in each other's place.
const TURNED: f64 = 0.95;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_could_be_meant() {
        assert_eq!(nearest("on_sucess", ["on_success", "on_failure", "next"]), Some("on_success"));
        assert_eq!(nearest("tset", ["test", "fix"]), Some("test"));
        assert_eq!(nearest("tpo", ["top", "tidy"]), Some("top"));
        assert_eq!(nearest("banana", ["test", "fix"]), None);
        let long = "x".repeat(400_000);
        assert_eq!(nearest(&long, [long.as_str(), "x"]), None);
        assert_eq!(nearest("test", [long.as_str(), "tset"]), Some("tset"));
    }

    proptest! {
        #[test]
        fn no_name_is_left_out_that_is_near(one in "[a-cA-C_é]{0,9}", other in "[a-cA-C_é]{0,9}") {
            let likeness = likeness(&one.to_lowercase(), &other.to_lowercase());
            let found = nearest(&one, [other.as_str()]);
            prop_assert_eq!(found, Some(other.as_str()).filter(|_| likeness >= NEAR));
        }
    }

    #[test]
    fn a_finding_that_is_not_kept_is_counted_and_not_made() {
        let mut all = Diagnostics::default();
        let made = std::cell::Cell::new(0);
        for _ in 0..2 * MAX_KEPT {
            all.push_with(Severity::Note, || {
                made.set(made.get() + 1);
                Diagnostic::note("a", FindingPlace::File, "")
            });
        }
        assert_eq!((made.get(), all.iter().count(), all.total()), (MAX_KEPT, MAX_KEPT, 2 * MAX_KEPT));
    }

    #[test]
    fn the_first_findings_are_kept_and_all_are_counted() {
        let mut all = Diagnostics::default();
        for number in 0..2 * MAX_KEPT {
            all.push(Diagnostic::warning("a", FindingPlace::File, number.to_string()));
        }
        all.push(Diagnostic::error("b", FindingPlace::File, "an error"));
        assert_eq!((all.iter().count(), all.total()), (MAX_KEPT + 1, 2 * MAX_KEPT + 1));
        assert_eq!((all.count(Severity::Warning), all.count(Severity::Error)), (2 * MAX_KEPT + 1, 1));
        let mut twice = all.clone();
        twice.extend(all.clone());
        assert_eq!((twice.total(), twice.count(Severity::Error)), (4 * MAX_KEPT + 2, 2));
        assert_eq!(all.filtered(|finding| finding.code == "b").total(), MAX_KEPT + 1);
    }
}
