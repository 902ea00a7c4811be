//! What a format of jobs is made of, and what all formats share.

use serde::Serialize;

use crate::fanout::item::LegKey;
use crate::fanout::plan::{Leg, Plan};

/// A form in which a CI system starts jobs.
pub trait Format: Sync {
    /// The name of the format, as `--matrix` takes it.
    fn name(&self) -> &'static str;

    /// Returns what the CI system reads.
    ///
    /// # Errors
    /// The CI system does not start that many jobs, or takes no text of that size.
    fn text(&self, fleet: &Fleet<'_>) -> Result<String, TooMuch>;
}

/// The jobs that are to be started.
pub struct Fleet<'p> {
    /// The plan that each of them reads.
    pub plan: &'p Plan,
    /// The jobs, all those of the plan or some.
    pub jobs: Vec<Job>,
    /// What the jobs find where they run.
    pub place: Place,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Job {
    /// Its leg.
    pub leg: LegKey,
    /// What people call it.
    pub title: String,
}

/// What jobs find where they run, for the formats that describe whole jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The image with this program.
    pub image: Option<String>,
    /// The volume claim with the checkout.
    pub repo_claim: Option<String>,
    /// The volume claim that keeps bundles when a pod is gone.
    pub claim: Option<String>,
}

/// More than a CI system takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found}, and at most {most} are possible")]
pub struct TooMuch {
    /// What there is too much of.
    pub what: &'static str,
    /// How much there is.
    pub found: usize,
    /// How much is possible.
    pub most: usize,
    /// What to do.
    pub advice: &'static str,
}

/// Leaves of a title what every system takes in the name of a job.
pub(super) fn plain(title: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '/' | '_' | '+' | '-');
    title.chars().filter(is_plain).collect()
}

impl<'p> Fleet<'p> {
    /// Takes the legs of a plan for which `is_wanted` holds.
    pub fn of(plan: &'p Plan, place: Place, is_wanted: impl Fn(&Leg) -> bool) -> Self {
        let legs = plan.legs.iter().filter(|leg| is_wanted(leg));
        let jobs = legs.map(|leg| Job { leg: leg.key.clone(), title: plan.title(leg) });
        Self { plan, jobs: jobs.collect(), place }
    }

    /// Checks that the CI system starts so many jobs.
    ///
    /// # Errors
    /// It does not.
    pub fn at_most(&self, most: usize, advice: &'static str) -> Result<(), TooMuch> {
        let found = self.jobs.len();
        if found > most { Err(TooMuch { what: "jobs", found, most, advice }) } else { Ok(()) }
    }
}
