//! Checks a loop file without running it.

use super::guidance;
use super::library::Library;
use super::prepared::{all_findings, refused};
use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::context::binding;
use crate::context::error::Error;
use crate::definition::load::{self, LoadError, Located, Rejected};
use crate::definition::source_text::Sources;
use crate::machine::{check, compile};
use crate::policy::Policy;
use crate::reuse::loop_findings;

/// A loop file and its findings.
pub struct Checked {
    /// What the loop is known by, where that can be told.
    pub name: Option<String>,
    /// Whether it is a loop or a library of fragments, and not a file of something else.
    pub is_ours: bool,
    /// The name of the file in messages.
    pub shown: String,
    /// Errors, warnings and notes.
    pub findings: Diagnostics,
    /// The files in which they were found.
    pub sources: Sources,
    /// The parsed files, for the places of findings; absent if they could not be parsed.
    pub tree: Option<Node>,
}

/// Checks loops one after the other. Loops that several of them run are read once.
#[derive(Default)]
pub struct Checker {
    library: Option<Library>,
    policy: Policy,
}

impl Checker {
    /// Makes one that looks also at what a policy from above allows.
    pub(crate) fn bound_by(policy: Policy) -> Self {
        Self { library: None, policy }
    }

    /// Checks a loop and its sub-loops, or a library of fragments. With `deep`, explores every sequence of verdicts.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn check(&mut self, located: &Located, deep: bool) -> Result<Checked, Error> {
        let shown = located.shown.clone();
        let name = located.name.as_ref().map(ToString::to_string);
        let loaded = match load::load(located) {
            Ok(loaded) => loaded,
            Err(LoadError::Rejected { rejected, .. }) => {
                let findings = all_findings(&rejected);
                let Rejected { sources, tree, is_loop, .. } = *rejected;
                return Ok(Checked { name, is_ours: is_loop, shown, findings, sources, tree });
            }
            Err(LoadError::Library { library, .. }) => {
                let library = *library;
                let tree = Some(library.tree);
                let (findings, sources) = (library.findings, library.sources);
                return Ok(Checked { name, is_ours: true, shown, findings, sources, tree });
            }
            Err(error) => return Err(refused(&error)),
        };
        let mut findings = loaded.findings;
        let (machine, problems) = compile::compile(&loaded.definition);
        findings.extend(problems);
        if let Some(machine) = machine {
            let check = if deep { check::check_deeply } else { check::check };
            findings.extend(check(&machine, &loaded.definition));
            let mut library = Library::after(self.library.take(), located);
            findings.extend(library.check(&machine));
            findings.extend(guidance::findings(&machine, &guidance::of_tree(&located.root)));
            let scope = &loaded.definition.scope;
            findings.extend(loop_findings::find(&machine, scope, &located.root));
            findings.extend(binding::findings(&self.policy, &machine));
            self.library = Some(library);
        }
        let name = Some(loaded.definition.name.to_string());
        Ok(Checked { name, is_ours: true, shown, findings, sources: loaded.sources, tree: Some(loaded.tree) })
    }
}
