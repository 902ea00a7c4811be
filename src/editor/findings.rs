//! The findings of `validate` as diagnostics of the language server protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ls_types::{
    CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    Range as LspRange, Uri,
};
use serde_json::{Value, json};

use super::fix;
use super::repair_edit::RepairEdit;
use super::text_document::{ColumnUnit, LineStarts};
use crate::base::node::{FileId, Span};
use crate::definition::builtin::is_builtin;
use crate::definition::render::{self, PlacedFinding};
use crate::definition::source_text::Sources;
use crate::session::prepare::loop_check::Checked;

/// What names this program in a list of diagnostics.
pub(super) const SOURCE: &str = "ll-loop";

/// Where the explanations of the codes are.
const EXPLANATIONS: &str = "https://github.com/little-loops/ll-loop/blob/main/docs/diagnostics.md";

/// The code of a file that cannot be read, which is no finding in a text.
const UNREADABLE: &str = "unreadable";

/// The diagnostics of each file.
pub(super) type FileDiagnostics = BTreeMap<PathBuf, Vec<Diagnostic>>;

/// A change that takes a finding away.
pub(super) struct OfferedRepair {
    pub(super) diagnostic: Diagnostic,
    pub(super) change: RepairEdit,
    /// Whether it is what the finding says, and not one of several answers.
    pub(super) is_answer: bool,
}

/// Collects the diagnostics of files that were checked from one directory.
pub(super) struct DiagnosticsBuilder<'c> {
    /// The directory that the names of files count from.
    cwd: &'c Path,
    unit: ColumnUnit,
    /// Whether what the schema says is left out in files that name it.
    mutes_schema: bool,
    /// Tells whether the text of a file begins with a byte order mark, which findings do not count.
    has_mark: &'c dyn Fn(&Path) -> bool,
    /// What was collected; a file without findings is there as well.
    pub(super) found: FileDiagnostics,
}

impl<'c> DiagnosticsBuilder<'c> {
    /// Begins with nothing.
    pub(super) fn new(
        cwd: &'c Path,
        unit: ColumnUnit,
        mutes_schema: bool,
        has_mark: &'c dyn Fn(&Path) -> bool,
    ) -> Self {
        Self { cwd, unit, mutes_schema, has_mark, found: FileDiagnostics::new() }
    }

    /// Adds what was found in a file, and in those that it takes over.
    pub(super) fn add(&mut self, path: &Path, checked: &Checked) {
        let texts = PlacedTexts::new(&checked.sources);
        self.found.entry(path.to_owned()).or_default();
        for finding in render::placed(&checked.findings, &checked.sources, checked.tree.as_ref()) {
            // What comes with the program cannot be mended here.
            let Some(file) = self.file(&checked.sources, finding.span.file, path) else { continue };
            if self.mutes_schema
                && is_of_schema(&finding)
                && names_schema(&checked.sources, finding.span.file)
            {
                continue;
            }
            let diagnostic = self.diagnostic(finding, &checked.sources, &texts, path);
            let all = self.found.entry(file).or_default();
            // Several loops may take over the file.
            if !all.contains(&diagnostic) {
                all.push(diagnostic);
            }
        }
    }

    /// Returns what can be done about the findings of a file, in the file itself.
    pub(super) fn with_repairs(&self, path: &Path, checked: &Checked) -> Vec<OfferedRepair> {
        let texts = PlacedTexts::new(&checked.sources);
        let mut offered = Vec::new();
        for finding in render::placed(&checked.findings, &checked.sources, checked.tree.as_ref()) {
            let (repair, choices) = (fix::change(&finding, checked), fix::choices(&finding, checked));
            if repair.is_none() && choices.is_empty() {
                continue;
            }
            let diagnostic = self.diagnostic(finding, &checked.sources, &texts, path);
            let offer =
                |change, is_answer| OfferedRepair { diagnostic: diagnostic.clone(), change, is_answer };
            offered.extend(repair.map(|change| offer(change, true)));
            offered.extend(choices.into_iter().map(|change| offer(change, false)));
        }
        offered
    }

    /// Adds that a file cannot be read.
    pub(super) fn add_unreadable(&mut self, path: &Path, message: &str) {
        let object = json!({"code": UNREADABLE, "severity": "error", "message": message});
        let diagnostic = Diagnostic { range: LspRange::default(), ..plain(UNREADABLE, message, &object) };
        self.found.entry(path.to_owned()).or_default().push(diagnostic);
    }

    /// Returns the path of a file of a definition; the first is the one that was asked for.
    fn file(&self, sources: &Sources, file: FileId, path: &Path) -> Option<PathBuf> {
        match sources.get(file) {
            Some(source) if file != FileId(0) => (!is_builtin(source.name()))
                .then(|| crate::files::place::named(&self.cwd.join(source.name()))),
            Some(_) | None => Some(path.to_owned()),
        }
    }

    fn diagnostic(
        &self,
        finding: PlacedFinding,
        sources: &Sources,
        texts: &PlacedTexts<'_>,
        path: &Path,
    ) -> Diagnostic {
        let related = finding.related.and_then(|(span, remark)| {
            let file = self.file(sources, span.file, path)?;
            let location =
                Location { uri: Uri::from_file_path(&file)?, range: self.range(texts, &span, Some(&file)) };
            Some(vec![DiagnosticRelatedInformation { location, message: remark }])
        });
        let file = self.file(sources, finding.span.file, path);
        Diagnostic {
            range: self.range(texts, &finding.span, file.as_deref()),
            related_information: related,
            ..plain(finding.code, &finding.message, &finding.object)
        }
    }

    /// Returns a place in the client's columns; a file that came with the program is none of its documents.
    fn range(&self, texts: &PlacedTexts<'_>, span: &Span, file: Option<&Path>) -> LspRange {
        let Some((text, lines)) = texts.0.get(usize::from(span.file.0)) else { return LspRange::default() };
        let mut range = lines.range(text, &span.range, self.unit);
        // A byte order mark counts in the client's document, and was taken off the text that was
        // checked.
        if file.is_some_and(|file| (self.has_mark)(file)) {
            let mark = if self.unit == ColumnUnit::Utf8 { 3 } else { 1 };
            for position in [&mut range.start, &mut range.end] {
                position.character += if position.line == 0 { mark } else { 0 };
            }
        }
        range
    }
}

/// What the JSON Schema of loop files finds as well.
const OF_SCHEMA: [&str; 4] = ["missing-key", "unknown-key", "unknown-word", "wrong-type"];

fn is_of_schema(finding: &PlacedFinding) -> bool {
    finding.object["code"].as_str().is_some_and(|code| OF_SCHEMA.contains(&code))
}

/// Tells whether a file names its schema for yaml-language-server.
fn names_schema(sources: &Sources, file: FileId) -> bool {
    let text = sources.get(file).map_or("", |source| source.text());
    let comments = text.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty());
    comments.into_iter().any(|line| line.contains("yaml-language-server:") && line.contains("$schema="))
}

/// The texts of a definition with their lines.
struct PlacedTexts<'s>(Vec<(&'s str, LineStarts)>);

impl<'s> PlacedTexts<'s> {
    fn new(sources: &'s Sources) -> Self {
        // Once for all findings, each of which would have to look through the whole text.
        Self(sources.iter().map(|source| (source.text(), LineStarts::of(source.text()))).collect())
    }
}

/// Makes a diagnostic without its place. The object stays with it, to the letter.
fn plain(code: &str, message: &str, object: &Value) -> Diagnostic {
    let word = |key: &str| object[key].as_str();
    let severity = match word("severity") {
        Some("error") => DiagnosticSeverity::ERROR,
        Some("warning") => DiagnosticSeverity::WARNING,
        _ => DiagnosticSeverity::INFORMATION,
    };
    let mut message = message.to_owned();
    if let Some(help) = word("help") {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    let explained = format!("{EXPLANATIONS}#{code}").parse().ok();
    Diagnostic {
        severity: Some(severity),
        code: Some(NumberOrString::String(code.to_owned())),
        code_description: explained.filter(|_| code != UNREADABLE).map(|href| CodeDescription { href }),
        source: Some(SOURCE.to_owned()),
        message,
        data: Some(object.clone()),
        ..Diagnostic::default()
    }
}
