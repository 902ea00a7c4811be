//! Shows the messages and events of a session on the terminal or in a CI log.

use super::background;
use super::output::Output;
use crate::ci::Provider;
use crate::context::audience::Audience;
use crate::context::talk::{Findings, Talk, Watched};
use crate::report::Sink;
use crate::report::console::Verbosity;

/// The output of a command that shows a run.
pub(super) struct Terminal<'a> {
    pub(super) output: &'a Output,
    pub(super) verbosity: Verbosity,
    pub(super) in_background: bool,
}

impl Talk for Terminal<'_> {
    fn note(&self, text: &str) {
        Talk::note(self.output, text);
    }

    fn warning(&self, text: &str) {
        Talk::warning(self.output, text);
    }

    fn findings(&self, findings: &Findings<'_>) {
        Talk::findings(self.output, findings);
    }

    fn ci_line(&self, line: &str, language: &Provider) {
        Talk::ci_line(self.output, line, language);
    }

    fn closing(&self, text: &str, audience: &Audience) {
        // Whoever asked for quiet gets the last words of the run, and no more; CI shows all of it anyway.
        let is_wanted = audience.is_ci() || self.verbosity > Verbosity::Quiet;
        if is_wanted && !self.in_background {
            self.output.closing(text, audience);
        }
    }

    fn watch(&self, run: &Watched<'_>) -> Option<Box<dyn Sink>> {
        if self.in_background {
            // A run in the background shows nothing; its log keeps the output of actions.
            return Some(Box::new(background::Announcement::new(run)));
        }
        Some(self.output.shown(run, self.verbosity))
    }
}
