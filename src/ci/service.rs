//! What a run asks of a CI system, and the row by which a system is found: a provider is a file that implements
//! [`CiService`] and exports one [`ProviderRow`].

use std::fmt::Debug;
use std::io::{self, Write};
use std::path::Path;

use super::chain::{ChainLink, NextRun};
use super::job::Job;
use super::reported::{ReportRequest, Reporter};
use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::report::annotations::{Checkout, annotations};
use crate::report::dialect::Dialect;
use crate::report::digest::Digest;

/// A provider, as the table of providers knows it.
pub(crate) struct ProviderRow {
    /// The names by which `--ci` asks for it.
    pub(super) names: &'static [&'static str],
    /// Returns the name of the provider whose environment this is.
    pub(super) detect: fn(Lookup<'_>) -> Option<&'static str>,
    /// Makes the provider of this name from what the environment says.
    pub(super) make: fn(&str, Lookup<'_>) -> Box<dyn CiService>,
    /// What variables begin with that no action sees: credentials of the system, and its side channels.
    pub(super) withheld: &'static [&'static str],
    /// The job's own token, under every name that it has, which an action sees when it is asked for.
    pub(super) tokens: &'static [&'static str],
}

/// Sets the status of a commit to an error in these words, or says why it cannot.
pub type LastWord = Box<dyn FnOnce(&str) -> Result<(), Explanation> + Send>;

/// What a provider can do.
pub trait CiService: Debug {
    /// Returns the name.
    fn name(&self) -> &'static str;

    /// Returns the language of its log.
    fn dialect(&self) -> Box<dyn Dialect>;

    /// Returns what it says about the job.
    fn job(&self) -> Job {
        Job::default()
    }

    /// Tells whether its log shows colours although it is not a terminal.
    fn shows_colours(&self) -> bool {
        false
    }

    /// Returns why nothing should run in this environment, if nothing should.
    fn refusal(&self, _env: Lookup<'_>) -> Option<String> {
        None
    }

    /// Gives the CI system outputs before the results of a run, in case it is killed before it can publish them, or
    /// after them, in their place.
    fn announce(&self, _outputs: &[(&'static str, String)]) -> io::Result<()> {
        Ok(())
    }

    /// Adds Markdown to what the CI system shows of the job, where it shows any.
    fn summarize(&self, _markdown: &str) -> io::Result<()> {
        Ok(())
    }

    /// Returns how long that is by now.
    fn summarized(&self) -> u64 {
        0
    }

    /// Adds Markdown before what was added since it was so long.
    fn summarize_before(&self, _since: u64, _markdown: &str) -> io::Result<()> {
        Ok(())
    }

    /// Tells whether ll-loop itself can store the files of a run here. Elsewhere the configuration of the job does that.
    fn stores_artifacts(&self) -> bool {
        false
    }

    /// Gives the results of a run to the CI system: annotations on its log, outputs and a summary in its files.
    /// Each failure is one error; the rest is published all the same.
    fn publish(&self, digest: &Digest, tree: &Checkout<'_>, log: &mut dyn Write) -> Vec<io::Error> {
        annotate(self.dialect().as_ref(), digest, tree, log).err().into_iter().collect()
    }

    /// Reports the start of a run where people look at its commit, and returns the reporter of its end, with warnings
    /// about reports that were asked for and are not possible.
    fn report(&self, request: ReportRequest<'_>) -> (Option<Box<dyn Reporter>>, Vec<String>) {
        let why = "this job has no GitHub to report the run to";
        (None, request.options.is_asked().then(|| why.to_owned()).into_iter().collect())
    }

    /// Prepares to set the status of a run's commit to an error, in a few words: for the process that is there when that
    /// of the run was killed.
    fn last_word(&self, _request: ReportRequest<'_>) -> Option<LastWord> {
        None
    }

    /// Ends the status of a run that waits for its delivery, if there is one, in a few words.
    ///
    /// # Errors
    /// The status is not known, or cannot be set.
    fn end_waiting(&self, _request: ReportRequest<'_>, _text: &str) -> Result<(), Explanation> {
        Ok(())
    }

    /// Starts the run that continues one that was handed off, and reports it where people look at its commit. Without
    /// a link, the files of the run were not uploaded, so nothing is started. Returns a warning as well, if the status
    /// could not be set.
    fn go_on(&self, _telling: ReportRequest<'_>, _link: Option<ChainLink>) -> (NextRun, Option<String>) {
        (NextRun::NotStarted("this job has no GitHub workflow to dispatch".to_owned()), None)
    }
}

/// Writes the annotations of a run to the log.
pub(super) fn annotate(
    dialect: &dyn Dialect,
    digest: &Digest,
    tree: &Checkout<'_>,
    log: &mut dyn Write,
) -> io::Result<()> {
    if digest.is_annotated_by_leg {
        return Ok(());
    }
    for annotation in annotations(digest, tree) {
        writeln!(log, "{}", dialect.annotation(&annotation))?;
    }
    log.flush()
}

/// Returns the absolute path of a report, for readers that run in another directory.
pub(super) fn absolute(job: &Job, tree: &Checkout<'_>, path: &str) -> String {
    let home = || Path::new(tree.roots.first().unwrap_or(&"")).join(tree.home);
    let workspace = job.workspace.clone().unwrap_or_else(home);
    workspace.join(path).to_string_lossy().into_owned()
}
