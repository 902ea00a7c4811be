//! Whom a session talks to: a terminal, a CI log, or the program around it.

use std::path::Path;

use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::definition::source::Sources;
use crate::report::Sink;

use super::audience::Audience;

/// What is said on the way to a run, and who sees its events. Methods that are left out say nothing.
pub trait Talk {
    /// Says what is going on. The text has one line or more, without the last line break.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Says what is odd, and no reason to stop.
    fn warning(&self, text: &str) {
        let _ = text;
    }

    /// Shows what is wrong with a loop file.
    fn findings(&self, findings: &Findings<'_>) {
        let _ = findings;
    }

    /// Writes a line of the log that a CI system obeys, such as an annotation or a secret to hide. It is whole.
    fn ci_line(&self, line: &str) {
        let _ = line;
    }

    /// Returns who is shown the events of a run that is about to begin or go on.
    fn watch(&self, run: &Watched<'_>) -> Option<Box<dyn Sink>> {
        let _ = run;
        None
    }
}

/// Says nothing, and shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence;

impl Talk for Silence {}

/// Findings, and the files that they are about.
pub struct Findings<'a> {
    /// What was found.
    pub found: &'a Diagnostics,
    /// The files.
    pub sources: &'a Sources,
    /// Where in them everything is, if they could be read so far.
    pub tree: Option<&'a Node>,
}

/// A run that is about to begin or go on.
pub struct Watched<'a> {
    /// Its id.
    pub instance: &'a str,
    /// Where what its actions print is kept.
    pub log: &'a Path,
    /// Whom it is shown to.
    pub audience: &'a Audience,
}
