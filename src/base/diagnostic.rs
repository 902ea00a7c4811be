//! What is wrong with a file, as data: a code, a place, a sentence and an advice. Drawing it is another layer's work.

use super::node::Span;
use super::path::DocPath;

/// How bad a finding is.
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
pub enum Place {
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
    pub place: Place,
    /// A short remark at the place itself.
    pub label: Option<String>,
    /// Another place that explains this one, with a remark.
    pub related: Option<(Place, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Makes a finding that blocks.
    pub fn error(code: &'static str, place: Place, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, place, message)
    }

    /// Makes a finding that blocks under `--strict` only.
    pub fn warning(code: &'static str, place: Place, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, place, message)
    }

    /// Makes a finding that never blocks.
    pub fn note(code: &'static str, place: Place, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, place, message)
    }

    fn new(code: &'static str, severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self { code, severity, message: message.into(), place, label: None, related: None, help: None }
    }

    /// Adds a remark at the place itself.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds a second place that explains this one.
    #[must_use]
    pub fn related(mut self, place: Place, remark: impl Into<String>) -> Self {
        self.related = Some((place, remark.into()));
        self
    }

    /// Adds an advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// All findings about a file, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all findings of another collection.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns the findings.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// Returns how many findings are at least this bad.
    pub fn count(&self, severity: Severity) -> usize {
        self.0.iter().filter(|d| d.severity >= severity).count()
    }

    /// Tells whether the file cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Tells whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the candidate that is nearest to `name`, if one is near enough to be meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_could_be_meant() {
        assert_eq!(nearest("on_sucess", ["on_success", "on_failure", "next"]), Some("on_success"));
        assert_eq!(nearest("tset", ["test", "fix"]), Some("test"));
        assert_eq!(nearest("banana", ["test", "fix"]), None);
    }
}
