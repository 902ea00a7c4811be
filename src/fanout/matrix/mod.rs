//! The legs of a plan in the form in which a CI system starts jobs: one format a file, one line here each.

use serde::Serialize;

use super::item::LegKey;
use super::plan::{Leg, Plan};

mod buildkite;
mod github;
mod gitlab;
mod json;
mod k8s;

/// The formats.
pub const FORMATS: &[&dyn Format] =
    &[&github::Github, &gitlab::Gitlab, &buildkite::Buildkite, &k8s::Kubernetes, &json::Json];

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
fn plain(title: &str) -> String {
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fanout::testing::plan_of;

    fn text(format: &str, plan: &Plan) -> Result<Value, TooMuch> {
        let format = FORMATS.iter().find(|one| one.name() == format).unwrap();
        let text = format.text(&Fleet::of(plan, Place::default(), |_| true))?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    #[test]
    fn every_system_starts_a_job_for_each_leg() {
        let plan = plan_of(5, 3, 1);
        assert_eq!(text("json", &plan).unwrap()["include"].as_array().unwrap().len(), 3);
        assert_eq!(text("github", &plan).unwrap(), text("json", &plan).unwrap());
        let gitlab = text("gitlab", &plan).unwrap();
        let legs = gitlab.as_object().unwrap().values().filter(|job| job["stage"] == "legs");
        assert_eq!(legs.count(), 3);
        let steps = text("buildkite", &plan).unwrap()["steps"].as_array().unwrap().clone();
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[3]["depends_on"], serde_json::json!(["ll-l01", "ll-l02", "ll-l03"]));
        let job = text("k8s", &plan).unwrap()["items"][1].clone();
        assert_eq!(
            (job["spec"]["completions"].as_u64(), job["spec"]["parallelism"].as_u64()),
            (Some(3), Some(3))
        );
    }

    #[test]
    fn beyond_a_limit_the_number_and_the_advice_are_said() {
        let plan = plan_of(600, 600, 0);
        for (format, most) in [("github", 256), ("gitlab", 200), ("buildkite", 499)] {
            let refused = text(format, &plan).unwrap_err();
            assert_eq!((refused.found, refused.most), (600, most), "{format}");
            assert!(refused.to_string().contains("600") && !refused.advice.is_empty());
        }
        assert!(text("k8s", &plan).is_ok());
        let refused = text("k8s", &plan_of(6000, 20, 0)).unwrap_err();
        assert!(refused.to_string().contains("ConfigMap"), "{refused}");
    }
}
