//! Collects the findings in all files, for every output format.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::diagnostic::{Diagnostics, Severity};
use crate::definition::render;
use crate::definition::source_text::Sources;
use crate::editor::checked_file::UnreadableFile;
use crate::report::reading_place::Reader;
use crate::session::prepare::loop_check::Checked;

/// The files that were checked, and errors about files that could not be read.
pub(super) struct Reports {
    pub(super) files: Vec<Checked>,
    /// How much was found in each of the files, shown or not.
    pub(super) counts: Vec<FindingCount>,
    pub(super) unread: Vec<UnreadableFile>,
    /// The root of the repository.
    pub(super) root: PathBuf,
    /// Where the paths of findings begin, from that root.
    pub(super) reader: Reader,
    /// Whether warnings fail, too.
    pub(super) is_strict: bool,
    /// Whether only errors are shown.
    pub(super) errors_only: bool,
}

/// How much was found in a file.
#[derive(Clone, Copy)]
pub(super) struct FindingCount {
    pub(super) errors: u64,
    pub(super) warnings: u64,
}

impl FindingCount {
    fn of(findings: &Diagnostics) -> Self {
        let errors = findings.count(Severity::Error);
        // `count` includes what is worse.
        Self { errors: errors as u64, warnings: (findings.count(Severity::Warning) - errors) as u64 }
    }
}

impl Reports {
    /// Adds a file. Of one without findings, nothing is kept to draw them.
    pub(super) fn add(&mut self, mut checked: Checked) {
        self.counts.push(FindingCount::of(&checked.findings));
        if self.errors_only {
            checked.findings = checked.findings.filtered(|finding| finding.severity == Severity::Error);
        }
        if checked.findings.total() == 0 {
            (checked.sources, checked.tree) = (Sources::default(), None);
        }
        self.files.push(checked);
    }

    /// Tells whether a file may be run.
    pub(super) fn is_valid(&self, checked: &Checked) -> bool {
        let bar = if self.is_strict { Severity::Warning } else { Severity::Error };
        checked.findings.count(bar) == 0
    }

    /// Tells whether all files may be run.
    pub(super) fn are_valid(&self) -> bool {
        self.unread.is_empty() && self.files.iter().all(|checked| self.is_valid(checked))
    }

    /// Returns the path of a file as code scanning and annotations look for it: from the root of the repository.
    pub(super) fn in_repository(&self, file: &str) -> String {
        let below = Path::new(file).strip_prefix(&self.root);
        below.map_or_else(|_| self.reader.in_repository(file), |file| file.to_string_lossy().into_owned())
    }
}

/// Returns one object for each finding, in the order of the file.
pub(super) fn objects(checked: &Checked) -> Vec<Value> {
    render::to_json(&checked.findings, &checked.sources, checked.tree.as_ref())
}

/// Returns a text of a finding's object.
pub(super) fn word<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.get(key)?.as_str()
}
