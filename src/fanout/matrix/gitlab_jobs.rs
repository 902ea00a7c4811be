//! The jobs as a child pipeline of GitLab: a job for each leg, and one that merges what they leave, whatever became of
//! them.

use serde_json::{Map, Value, json};

use super::job_format::{Fleet, LEGS, MERGED, MatrixFormat, TooMuch, pretty};

/// The most jobs that `parallel` makes; a child pipeline of ours has no more either.
const JOBS: usize = 200;

/// The exit code of a run that was handed off.
const HANDED_OFF: u8 = 75;

pub(super) struct GitlabMatrix;

impl MatrixFormat for GitlabMatrix {
    fn name(&self) -> &'static str {
        "gitlab"
    }

    fn has_image(&self) -> bool {
        true
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch> {
        fleet.at_most(JOBS, "plan fewer legs with `--legs`, each with more items")?;
        let mut pipeline = Map::new();
        // Else a child pipeline of a merge request has no jobs.
        pipeline.insert("workflow".into(), json!({ "rules": [{ "when": "always" }] }));
        pipeline.insert("stages".into(), json!(["legs", "merge"]));
        if let Some(image) = &fleet.place.image {
            // The entrypoint of our image is this program, and GitLab wants a shell.
            pipeline.insert("default".into(), json!({ "image": { "name": image, "entrypoint": [""] } }));
        }
        if !fleet.jobs.is_empty() {
            pipeline.insert(".leg".into(), leg(fleet));
        }
        for job in &fleet.jobs {
            // Never a keyword, such as `stages`, and never hidden.
            let name = format!("leg {}: {}", job.leg, job.title);
            pipeline.insert(name, json!({ "extends": ".leg", "variables": { "LEG": job.leg } }));
        }
        pipeline.insert("merge".into(), merge(fleet));
        Ok(Some(pretty(&Value::Object(pipeline))))
    }
}

/// What the legs have in common.
fn leg(fleet: &Fleet<'_>) -> Value {
    let reports = fleet.at_top(&format!("{LEGS}/$LEG"));
    json!({
        "stage": "legs",
        "needs": [plan(fleet)],
        "script": [fleet.run("\"$LEG\"")],
        // What the merge says of it is the verdict.
        "allow_failure": { "exit_codes": [HANDED_OFF] },
        // By this a job that is retried finds what it had handed off. Its paths are not said to hold variables.
        "cache": {
            "key": "ll-loop-$CI_PIPELINE_ID-$LEG",
            "paths": [fleet.at_top(LEGS)],
            "when": "always",
        },
        "artifacts": { "when": "always", "paths": [&reports, fleet.at_top(&fleet.place.plan)] },
    })
}

/// The last stage takes the artifacts of all jobs before it. `needs` would, too, but of 50 jobs at most; and a job with
/// `needs` for the plan alone would wait for nobody. So the plan comes with what the legs leave.
fn merge(fleet: &Fleet<'_>) -> Value {
    let merged = fleet.at_top(MERGED);
    let mut merge = json!({
        "stage": "merge",
        "when": "always",
        "script": [fleet.merge()],
        "artifacts": {
            "when": "always",
            "paths": [&merged],
            "reports": { "junit": format!("{merged}/junit.xml") },
        },
    });
    if fleet.jobs.is_empty() {
        merge["needs"] = json!([plan(fleet)]);
    }
    merge
}

/// The job of the parent pipeline that has the plan.
fn plan(fleet: &Fleet<'_>) -> Value {
    json!({
        "pipeline": fleet.place.pipeline.as_deref().unwrap_or("$PARENT_PIPELINE_ID"),
        "job": fleet.place.planner.as_deref().unwrap_or("plan"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, fleet, plan_of, plan_of_legs};
    use super::*;

    #[track_caller]
    fn pipeline(fleet: &Fleet<'_>) -> Value {
        serde_json::from_str(&GitlabMatrix.text(fleet).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn every_leg_is_a_job_and_the_merge_always_runs() {
        let plan = plan_of_legs(60);
        let pipeline = pipeline(&fleet(&plan));
        let jobs = pipeline.as_object().unwrap();
        let legs: Vec<&Value> = jobs.values().filter(|job| job["extends"] == ".leg").collect();
        assert_eq!(legs.len(), 60);
        assert_eq!(legs[59]["variables"]["LEG"], "l60");
        assert_eq!(pipeline["merge"]["when"], "always");
        assert_eq!(pipeline["workflow"]["rules"][0]["when"], "always", "merge requests have legs, too");
        assert!(pipeline["merge"].get("needs").is_none(), "more than 50 would be refused");
    }

    #[test]
    fn at_most_two_hundred_legs() {
        assert!(GitlabMatrix.text(&fleet(&plan_of_legs(200))).is_ok());
        let error = GitlabMatrix.text(&fleet(&plan_of_legs(201))).unwrap_err();
        assert_eq!((error.found, error.most), (201, 200));
    }

    #[test]
    fn without_legs_the_merge_says_why() {
        let pipeline = pipeline(&fleet(&plan_of(&[])));
        assert_eq!(pipeline["merge"]["needs"][0]["job"], "plan");
        assert!(pipeline.get(".leg").is_none());
    }

    #[test]
    fn what_strangers_named_is_a_name_and_nothing_else() {
        let plan = plan_of(HOSTILE);
        let mut fleet = fleet(&plan);
        fleet.place.directory = "it's/$(here)/".to_owned();
        fleet.place.arguments = vec!["--context".to_owned(), "a=$(touch pwned)'".to_owned()];
        let pipeline = pipeline(&fleet);
        let script = pipeline[".leg"]["script"][0].as_str().unwrap();
        let words = shlex::split(script).unwrap();
        assert_eq!(words[..3], ["cd", "./it's/$(here)/", "&&"]);
        assert_eq!(words.last().unwrap(), "a=$(touch pwned)'");
        let commands = [script, pipeline["merge"]["script"][0].as_str().unwrap()];
        assert!(commands.iter().all(|text| !text.contains("packages")), "{commands:?}");
        for name in pipeline.as_object().unwrap().keys() {
            assert!(name.chars().count() <= 255 && !name.contains('\n'), "{name}");
        }
    }
}
