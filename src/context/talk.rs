//! What a session says to its caller: a terminal, a CI log, or a program that embeds ll-loop.

use std::path::Path;

use super::audience::Audience;
use crate::base::diagnostic::Diagnostics;
use crate::base::node::Node;
use crate::ci::Provider;
use crate::definition::load::Loaded;
use crate::definition::source_text::Sources;
use crate::report::Sink;
use crate::report::reading_place::Reader;

/// Receives notes, warnings and findings, and gives the sink of a run. The default methods do nothing.
pub trait Talk {
    /// Shows what is going on. The text has one line or more, and no line break at its end.
    fn note(&self, text: &str) {
        let _ = text;
    }

    /// Shows what something that takes its time printed last, in place of what was shown so before. An empty line takes it away.
    fn progress(&self, line: &str) {
        let _ = line;
    }

    /// Shows a problem that does not stop the run.
    fn warning(&self, text: &str) {
        let _ = text;
    }

    /// Shows the findings in a loop file.
    fn findings(&self, findings: &Findings<'_>) {
        let _ = findings;
    }

    /// Writes a complete line of the log that a CI system obeys, such as an annotation or a secret to mask, in the language
    /// of this one.
    fn ci_line(&self, line: &str, language: &Provider) {
        let _ = (line, language);
    }

    /// Shows the last line about a run, after everything else: where its reports are, and how to see more of it.
    fn closing(&self, text: &str, audience: &Audience) {
        let _ = (text, audience);
    }

    /// Returns the sink for a run that is about to begin or go on.
    fn watch(&self, run: &Watched<'_>) -> Option<Box<dyn Sink>> {
        let _ = run;
        None
    }
}

/// Says nothing, and shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence;

impl Talk for Silence {}

/// Findings, and the files in which they were found.
pub struct Findings<'a> {
    /// Errors, warnings and notes.
    pub found: &'a Diagnostics,
    /// The files.
    pub sources: &'a Sources,
    /// The parsed files, for the places of findings; absent if they could not be parsed.
    pub tree: Option<&'a Node>,
}

impl<'a> Findings<'a> {
    /// Makes them of findings in a loop that could be read.
    pub(crate) fn of(found: &'a Diagnostics, loaded: &'a Loaded) -> Self {
        Self { found, sources: &loaded.sources, tree: Some(&loaded.tree) }
    }
}

/// A run that is about to begin or go on.
pub struct Watched<'a> {
    /// Its id.
    pub instance: &'a str,
    /// The file with the output of its actions.
    pub log: &'a Path,
    /// The audience that it is shown to.
    pub audience: &'a Audience,
    /// Where it is read about.
    pub(crate) reader: &'a Reader,
}
