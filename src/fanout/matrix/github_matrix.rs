//! The jobs as a matrix of GitHub Actions. It carries keys and titles, and no data: the plan is an artifact.

use super::job_format::{Fleet, MatrixFormat, TooMuch};
use super::plain_json::JsonMatrix;

/// The most jobs that a matrix may have.
const JOBS: usize = 256;

/// The most bytes of an output of a job.
const BYTES: usize = 1_000_000;

pub(super) struct GithubMatrix;

impl MatrixFormat for GithubMatrix {
    fn name(&self) -> &'static str {
        "github"
    }

    fn has_commands(&self) -> bool {
        false
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch> {
        fleet.at_most(JOBS, "plan fewer legs with `--legs`, each with more items")?;
        let text = JsonMatrix.text(fleet)?;
        let found = text.as_deref().map_or(0, str::len);
        if found > BYTES {
            let what = "bytes of the matrix";
            return Err(TooMuch { what, found, most: BYTES, advice: "plan fewer legs with `--legs`" });
        }
        Ok(text)
    }
}
