//! What a run asks of a CI system, and the row by which a system is found: a provider is a file that implements
//! [`Service`] and exports one [`ProviderRow`].

use std::fmt::Debug;
use std::io::{self, Write};
use std::path::Path;

use super::github::dispatch::{ChainLink, NextRun};
use super::github::reporter::Reporter;
use super::job::{Job, Lookup};
use super::reported::ReportRequest;
use crate::report::annotations::{Checkout, annotations};
use crate::report::dialect::Dialect;
use crate::report::digest::{Digest, ReportPaths};

/// A provider, as the table of providers knows it.
pub(super) struct ProviderRow {
    /// The names by which `--ci` asks for it.
    pub(super) names: &'static [&'static str],
    /// Returns the name of the provider whose environment this is.
    pub(super) detect: fn(Lookup<'_>) -> Option<&'static str>,
    /// Makes the provider of this name from what the environment says.
    pub(super) make: fn(&str, Lookup<'_>) -> Box<dyn Service>,
    /// What variables begin with that no action sees: credentials of the system, and its side channels.
    pub(super) withheld: &'static [&'static str],
    /// The job's own token, under every name that it has, which an action sees when it is asked for.
    pub(super) tokens: &'static [&'static str],
}

/// What a provider can do.
pub trait Service: Debug {
    /// Returns the name.
    fn name(&self) -> &'static str;

    /// Returns how its log is spoken to.
    fn dialect(&self) -> Box<dyn Dialect>;

    /// Returns what it says about the job.
    fn job(&self) -> Job {
        Job::default()
    }

    /// Tells whether its log shows colours although it is no terminal.
    fn shows_colours(&self) -> bool {
        false
    }

    /// Returns why nothing should run in this environment, if nothing should.
    fn refusal(&self, _env: Lookup<'_>) -> Option<String> {
        None
    }

    /// Says where the results of a run that begins now will be, for the case that it is killed before it can publish
    /// them.
    fn announce(&self, _places: &ReportPaths) -> io::Result<()> {
        Ok(())
    }

    /// Gives the results of a run to the CI system: annotations on its log, outputs and a summary in its files.
    /// Each thing that fails is one error and keeps nothing else from being published.
    fn publish(&self, digest: &Digest, tree: &Checkout<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        annotate(self.dialect().as_ref(), digest, tree, log).err().into_iter().collect()
    }

    /// Says that a run has begun where people look at its commit, and returns who will say how it ended. With it come
    /// warnings about what was asked for and cannot be.
    fn report(&self, request: ReportRequest<'_>) -> (Option<Reporter>, Vec<String>) {
        let nobody = "there is no GitHub here that could be told about the run";
        (None, request.options.is_asked().then(|| nobody.to_owned()).into_iter().collect())
    }

    /// Starts the run that goes on with one that was handed off, and says so where people look at its commit. Without
    /// a link, its files are where no other run finds them, and nothing is started. A warning comes with it, where the
    /// status could not be set.
    fn go_on(&self, _telling: ReportRequest<'_>, _link: Option<ChainLink>) -> (NextRun, Option<String>) {
        (NextRun::NotStarted("there is no GitHub here whose workflow could be dispatched".to_owned()), None)
    }
}

/// Writes the annotations of a run to the log.
pub(super) fn annotate(
    dialect: &dyn Dialect,
    digest: &Digest,
    tree: &Checkout<'_>,
    log: &mut dyn Write,
) -> io::Result<()> {
    for annotation in annotations(digest, tree) {
        writeln!(log, "{}", dialect.annotation(&annotation))?;
    }
    log.flush()
}

/// Returns a path of the places of a run as one that is right wherever it is read.
pub(super) fn absolute(job: &Job, tree: &Checkout<'_>, path: &str) -> String {
    let workspace = job.workspace.as_deref().unwrap_or_else(|| Path::new(tree.root));
    workspace.join(path).to_string_lossy().into_owned()
}
