//! What a CI system says about the job that a run is part of.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::base::lookup::Lookup;
use crate::base::run_key::RunKey;
use crate::base::time::Timestamp;

/// The runner needs some time after us, to upload what the job leaves.
const AFTERWARDS: Duration = Duration::from_mins(1);

/// What is known about the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The directory that paths in results are relative to.
    pub workspace: Option<PathBuf>,
    /// Which job it is.
    pub id: Option<JobId>,
    /// When the job is ended, whatever it does.
    pub(super) limit: Option<Timestamp>,
}

/// Which job it is, as far as the CI system says it to the job itself: the legs of a matrix have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobId {
    /// The name of the job.
    pub name: String,
    /// The number of the CI run, fit for the name of a file.
    run: String,
    /// The attempt, fit for the name of a file.
    attempt: String,
}

impl JobId {
    /// Returns the number of the CI run, fit for the name of a file.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// Returns the attempt at the CI run, fit for the name of a file.
    pub fn attempt(&self) -> &str {
        &self.attempt
    }

    /// Names what a run with this key leaves: `check-r77-a2`.
    pub fn name_for(&self, key: &RunKey) -> String {
        format!("{key}-r{}-a{}", self.run, self.attempt)
    }
}

/// Reads which attempt of its CI run this is, from 1, where the CI system counts them.
pub fn attempt(env: Lookup<'_>) -> Option<u32> {
    let number = |name: &str| env(name).and_then(|value| value.parse::<u32>().ok());
    let retries = number("BUILDKITE_RETRY_COUNT").map(|retries| retries.saturating_add(1));
    number("GITHUB_RUN_ATTEMPT")
        .or(retries)
        .or_else(|| number("SYSTEM_JOBATTEMPT"))
        .filter(|attempt| *attempt > 0)
}

/// As it stands in records: `check-r77-a2`.
impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-r{}-a{}", self.name, self.run, self.attempt)
    }
}

/// The variables in which a CI system says it; an empty name where it does not.
pub(super) struct Variables {
    pub(super) workspace: &'static str,
    pub(super) name: &'static str,
    pub(super) run: &'static str,
    pub(super) attempt: &'static str,
}

impl Job {
    /// Reads what the environment says.
    pub(super) fn read(env: Lookup<'_>, variables: &Variables) -> Self {
        let value = |name: &str| env(name).filter(|value| !value.is_empty());
        let id = value(variables.run).map(|run| JobId {
            name: value(variables.name).unwrap_or_else(|| "job".to_owned()),
            run: clean(&run),
            attempt: clean(&value(variables.attempt).unwrap_or_else(|| "1".to_owned())),
        });
        Self { workspace: value(variables.workspace).map(PathBuf::from), id, limit: None }
    }

    /// Returns how long a run that begins now may last, so that the job comes to its own end; nothing when the job's
    /// limit is not known.
    pub fn time_left(&self, now: Timestamp) -> Option<Duration> {
        // A limit that has passed was wrong: this job still runs.
        // The clock of the server that said it may also be another one than ours.
        let left = self.limit.map(|limit| limit.since(now)).filter(|left| !left.is_zero())?;
        // In a short job, the minute for uploads would be most of what is left.
        Some(left.saturating_sub(AFTERWARDS).max(left / 2))
    }
}

fn clean(text: &str) -> String {
    // A matrix puts any character into the name of a job.
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.chars().map(|c| if kept(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_before_its_job_does() {
        let at = |seconds: i64| Timestamp::from_millis(1_763_682_527_000 + seconds * 1000);
        let left = |limit: Option<i64>| Job { limit: limit.map(at), ..Job::default() }.time_left(at(0));
        assert_eq!(left(None), None);
        assert_eq!(left(Some(3600)), Some(Duration::from_mins(59)));
        assert_eq!(left(Some(80)), Some(Duration::from_secs(40)));
        assert_eq!(left(Some(0)), None);
        assert_eq!(left(Some(-5)), None);
    }
}
