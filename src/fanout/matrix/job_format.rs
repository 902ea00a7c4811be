//! What a form of jobs is, and what of a plan it has to say.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::base::text::head;
use crate::fanout::item::LegKey;
use crate::fanout::item_plan::{Leg, Plan};

/// Where the legs leave their reports, each in a directory of its own. The directory of runs is ignored by git.
pub(super) const LEGS: &str = ".loops/.running/legs";

/// Where the merge leaves its reports.
pub(super) const MERGED: &str = ".loops/.running/merged";

/// A form in which a CI system starts jobs.
pub trait MatrixFormat: Sync {
    /// The name of the format, as `--matrix` takes it.
    fn name(&self) -> &'static str;

    /// Whether the text says which image the jobs run in.
    fn has_image(&self) -> bool {
        false
    }

    /// Whether the text says which volumes the jobs have.
    fn has_volumes(&self) -> bool {
        false
    }

    /// Whether the text says what the jobs do, and not only which ones there are.
    fn has_commands(&self) -> bool {
        true
    }

    /// Returns what the CI system reads, or none if it has nothing to start.
    ///
    /// # Errors
    /// The CI system does not start that many jobs, or takes no text of that size.
    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch>;
}

/// The jobs that are to be started.
pub struct Fleet<'p> {
    /// The plan that each of them reads.
    pub plan: &'p Plan,
    /// The jobs, all those of the plan or some.
    pub jobs: Vec<MatrixJob>,
    /// What the jobs find where they run.
    pub place: JobSite,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MatrixJob {
    /// Its leg.
    pub leg: LegKey,
    /// What people call it.
    pub title: String,
}

/// What jobs find where they run, for the formats that describe whole jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobSite {
    /// The image with this program.
    pub image: Option<String>,
    /// The volume claim with the checkout.
    pub repo_claim: Option<String>,
    /// The volume claim that keeps bundles when a pod is gone.
    pub claim: Option<String>,
    /// The directory in which loops run, from the top of the repository: empty, or with a slash at its end.
    pub directory: String,
    /// The file with the plan, from that directory.
    pub plan: String,
    /// The CI run of the job that made the plan, where the environment says it.
    pub pipeline: Option<String>,
    /// The job that made the plan, where the environment says it.
    pub planner: Option<String>,
    /// More arguments of `ll-loop run`.
    pub arguments: Vec<String>,
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

impl<'p> Fleet<'p> {
    /// Takes the legs of a plan for which `is_wanted` holds.
    pub fn of(plan: &'p Plan, place: JobSite, is_wanted: impl Fn(&Leg) -> bool) -> Self {
        let legs = plan.legs.iter().filter(|leg| is_wanted(leg));
        let jobs = legs.map(|leg| MatrixJob { leg: leg.key.clone(), title: plan.title(leg) });
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

    /// Returns what tells this plan from others in a name: the first digits of its id.
    pub(super) fn id(&self) -> String {
        head(&self.plan.plan_id.to_string(), 12).to_owned()
    }

    /// Returns a path as it is seen from the top of the repository.
    pub(super) fn at_top(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}{path}", self.place.directory) }
    }

    /// Returns the command of a shell at the top of the repository that runs a leg. `leg` is a word of that shell.
    pub(super) fn run(&self, leg: &str) -> String {
        let plan = word(&self.place.plan);
        let more = self.place.arguments.iter().map(|argument| format!(" {}", word(argument)));
        let more = more.collect::<String>();
        self.here(&format!("ll-loop run --plan {plan} --leg {leg} --report-dir {LEGS}/{leg} --ci{more}"))
    }

    /// Returns the command of a shell at the top of the repository that merges what the legs have left.
    pub(super) fn merge(&self) -> String {
        let plan = word(&self.place.plan);
        // Where no leg has left anything, that is what the merge says.
        self.here(&format!(
            "mkdir -p {LEGS} && ll-loop merge --plan {plan} {LEGS} --report-dir {MERGED} --ci"
        ))
    }

    fn here(&self, command: &str) -> String {
        match self.place.directory.as_str() {
            "" => command.to_owned(),
            // After `./`, because `cd -` and an option of `cd` may be the name of a directory.
            directory => format!("cd {} && {command}", word(&format!("./{directory}"))),
        }
    }
}

/// Returns a word as a shell reads it.
pub(super) fn word(text: &str) -> Cow<'_, str> {
    // There are no zero bytes in arguments and paths.
    shlex::try_quote(text).unwrap_or_default()
}

/// Writes JSON for people too. YAML takes it as it is.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("a value is JSON")
}
