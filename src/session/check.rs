//! Checks a loop file without running it.

use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::definition::load::{self, LoadError, Located};
use crate::definition::source::Sources;
use crate::machine::{check, compile};

use super::context::Session;
use super::error::Error;
use super::library::Library;
use super::prepared::{all_findings, refused};

/// A loop file and its findings.
pub struct Checked {
    /// The name of the file in messages.
    pub shown: String,
    /// Errors, warnings and notes.
    pub findings: Diagnostics,
    /// The files in which they were found.
    pub sources: Sources,
    /// The parsed files, for the places of findings; absent if they could not be parsed.
    pub tree: Option<Node>,
}

impl Session<'_> {
    /// Checks a loop and its sub-loops, or a library of fragments. With `deep`, explores every sequence of verdicts.
    ///
    /// # Errors
    /// The file cannot be read.
    #[expect(clippy::unused_self, reason = "whatever a caller does begins with a session")]
    pub fn check(&self, located: &Located, deep: bool) -> Result<Checked, Error> {
        let shown = located.shown.clone();
        let loaded = match load::load(located) {
            Ok(loaded) => loaded,
            Err(LoadError::Rejected { rejected, .. }) => {
                let findings = all_findings(&rejected);
                let rejected = *rejected;
                return Ok(Checked { shown, findings, sources: rejected.sources, tree: rejected.tree });
            }
            Err(LoadError::Library { library, .. }) => {
                let library = *library;
                let tree = Some(library.tree);
                return Ok(Checked { shown, findings: library.findings, sources: library.sources, tree });
            }
            Err(error) => return Err(refused(&error)),
        };
        let mut findings = loaded.findings;
        let (machine, problems) = compile::compile(&loaded.definition);
        findings.extend(problems);
        if let Some(machine) = machine {
            let check = if deep { check::check_deeply } else { check::check };
            findings.extend(check(&machine, &loaded.definition));
            findings.extend(Library::new(located).check(&machine));
        }
        Ok(Checked { shown, findings, sources: loaded.sources, tree: Some(loaded.tree) })
    }
}
