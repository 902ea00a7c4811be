//! The jobs as a child pipeline of GitLab. It is JSON, which every reader of YAML reads.
//!
//! The job of the parent pipeline that makes the plan is called `plan`, keeps `plan.json` as an artifact, and hands its
//! pipeline on as `PARENT_PIPELINE_ID`.

use serde_json::{Map, Value, json};

use super::format::{Fleet, Format, Job, TooMuch, plain};

/// The most jobs that GitLab starts at once of one kind.
const JOBS: usize = 200;

pub(super) struct Gitlab;

impl Format for Gitlab {
    fn name(&self) -> &'static str {
        "gitlab"
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<String, TooMuch> {
        fleet.at_most(JOBS, "plan fewer legs with `--legs`, each with more items")?;
        let mut pipeline = Map::new();
        pipeline.insert("stages".to_owned(), json!(["legs", "merge"]));
        let image = fleet.place.image.as_ref().map(|image| json!({ "image": image }));
        for job in &fleet.jobs {
            let name = format!("{} {}", job.leg, plain(&job.title));
            pipeline.insert(name.trim_end().to_owned(), leg(job));
        }
        pipeline.insert("merge".to_owned(), merge());
        if let Some(image) = image {
            pipeline.insert("default".to_owned(), image);
        }
        Ok(serde_json::to_string_pretty(&pipeline).unwrap_or_default())
    }
}

fn leg(job: &Job) -> Value {
    let key = &job.leg;
    json!({
        "stage": "legs",
        "needs": [{"pipeline": "$PARENT_PIPELINE_ID", "job": "plan"}],
        "script": [format!("ll-loop run --ci --plan plan.json --leg {key} --report-dir ll-loop/{key}")],
        // The reports of a leg that failed are those that are looked at.
        "artifacts": {"when": "always", "paths": ["ll-loop/", "plan.json"]},
    })
}

/// The job that always runs: it has the artifacts of all jobs of the stage before it.
fn merge() -> Value {
    json!({
        "stage": "merge",
        "when": "always",
        "script": ["ll-loop merge --ci --plan plan.json --report-dir ll-merged ll-loop"],
        "artifacts": {"when": "always", "paths": ["ll-merged/"], "reports": {"junit": "ll-merged/junit.xml"}},
    })
}
