//! Collects the findings in all files, for every output format.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::base::diagnostic::Severity;
use crate::definition::render;
use crate::report::reader::Reader;
use crate::session::check::Checked;
use crate::session::error::Error;

/// The files that were checked, and errors about files that could not be read.
pub(super) struct Reports {
    pub(super) files: Vec<Checked>,
    pub(super) unread: Vec<Error>,
    /// The root of the repository.
    pub(super) root: PathBuf,
    /// Where the paths of findings begin, from that root.
    pub(super) reader: Reader,
}

impl Reports {
    /// Returns the path of a file as code scanning and annotations look for it: from the root of the repository.
    pub(super) fn in_repository(&self, file: &str) -> String {
        let below = Path::new(file).strip_prefix(&self.root);
        below.map_or_else(|_| self.reader.in_repository(file), |file| file.to_string_lossy().into_owned())
    }
}

/// Counts errors and warnings.
pub(super) fn counts(checked: &Checked) -> (u64, u64) {
    let errors = checked.findings.count(Severity::Error);
    (errors as u64, (checked.findings.count(Severity::Warning) - errors) as u64)
}

/// Returns one object for each finding, in the order of the file.
pub(super) fn objects(checked: &Checked) -> Vec<Value> {
    render::to_json(&checked.findings, &checked.sources, checked.tree.as_ref())
}

/// Returns a text of a finding's object.
pub(super) fn word<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.get(key)?.as_str()
}
