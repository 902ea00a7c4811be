//! The jobs as steps for `buildkite-agent pipeline upload`, which reads JSON. It puts the values of variables in wherever
//! there is a `$`, so that one of ours is doubled.
//!
//! The step that makes the plan uploads it before: `buildkite-agent artifact upload plan.json`.

use serde_json::{Value, json};

use super::format::{Fleet, Format, Job, TooMuch};

/// The most jobs of an upload, the merge among them.
const JOBS: usize = 500;

pub(super) struct Buildkite;

impl Format for Buildkite {
    fn name(&self) -> &'static str {
        "buildkite"
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<String, TooMuch> {
        fleet.at_most(JOBS - 1, "plan fewer legs with `--legs`, each with more items")?;
        let mut steps: Vec<Value> = fleet.jobs.iter().map(leg).collect();
        let legs: Vec<String> = fleet.jobs.iter().map(key).collect();
        steps.push(json!({
            "label": "merge",
            "key": "ll-merge",
            "depends_on": legs,
            // It says what did not come back.
            "allow_dependency_failure": true,
            "command": [
                "buildkite-agent artifact download plan.json .",
                // Where no leg left anything, that is what the merge has to say.
                "mkdir -p ll-loop; buildkite-agent artifact download 'll-loop/**/*' . || true",
                "ll-loop merge --ci --plan plan.json --report-dir ll-merged ll-loop",
            ],
            "artifact_paths": ["ll-merged/**/*"],
        }));
        Ok(serde_json::to_string_pretty(&json!({ "steps": steps })).unwrap_or_default())
    }
}

fn key(job: &Job) -> String {
    format!("ll-{}", job.leg)
}

fn leg(job: &Job) -> Value {
    let name = &job.leg;
    json!({
        "label": format!("{name} {}", job.title.replace('$', "$$")),
        "key": key(job),
        "command": [
            "buildkite-agent artifact download plan.json .",
            format!("ll-loop run --ci --plan plan.json --leg {name} --report-dir ll-loop/{name}"),
        ],
        "artifact_paths": ["ll-loop/**/*"],
    })
}
