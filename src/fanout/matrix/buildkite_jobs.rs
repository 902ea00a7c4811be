//! The jobs as steps for `buildkite-agent pipeline upload`: a group with a step for each leg, and one that merges what they
//! leave, whatever became of them.

use serde_json::json;

use super::job_format::{Fleet, LEGS, MERGED, MatrixFormat, MatrixJob, TooMuch, pretty, word};

/// The most steps of one upload, less the group and the merge.
const JOBS: usize = 498;

pub(super) struct BuildkiteMatrix;

impl MatrixFormat for BuildkiteMatrix {
    fn name(&self) -> &'static str {
        "buildkite"
    }

    fn text(&self, fleet: &Fleet<'_>) -> Result<Option<String>, TooMuch> {
        fleet.at_most(JOBS, "plan fewer legs with `--legs`, each with more items")?;
        let (name, id) = (fleet.plan.stem(), fleet.id());
        let group = format!("ll-loop-{id}-legs");
        let merged = fleet.at_top(MERGED);
        let mut merge = json!({
            "label": format!("{name}: merge"),
            "key": format!("ll-loop-{id}-merge"),
            "command": lines(&[get_plan(fleet), get_reports(&fleet.at_top(LEGS)), fleet.merge()]),
            "artifact_paths": format!("{merged}/**/*"),
        });
        let mut steps = Vec::new();
        if !fleet.jobs.is_empty() {
            // A group, because one name to wait for is enough, however many legs there are.
            merge["depends_on"] = json!([group]);
            merge["allow_dependency_failure"] = json!(true);
            let legs = fleet.jobs.iter().enumerate().map(|(index, job)| leg(fleet, &id, index, job));
            let legs: Vec<_> = legs.collect();
            steps.push(json!({ "group": format!("{name}: legs"), "key": group, "steps": legs }));
        }
        steps.push(merge);
        // The upload puts variables in for `$`.
        Ok(Some(pretty(&json!({ "steps": steps })).replace('$', "$$")))
    }
}

fn leg(fleet: &Fleet<'_>, id: &str, index: usize, job: &MatrixJob) -> serde_json::Value {
    let reports = fleet.at_top(&format!("{LEGS}/{}", job.leg));
    // By this a step that is retried finds what it had handed off.
    let earlier =
        format!("if [ \"${{BUILDKITE_RETRY_COUNT:-0}}\" != 0 ]; then {}; fi", get_reports(&reports));
    json!({
        "label": format!("{} {}", job.leg, job.title),
        // Keys have fewer characters than legs.
        "key": format!("ll-loop-{id}-leg-{}", index + 1),
        "command": lines(&[get_plan(fleet), earlier, fleet.run(&word(job.leg.as_str()))]),
        "artifact_paths": format!("{reports}/**/*"),
    })
}

fn get_plan(fleet: &Fleet<'_>) -> String {
    let plan = fleet.at_top(&fleet.place.plan);
    let from = fleet.place.planner.as_ref().map(|job| format!(" --step {}", word(job)));
    format!("buildkite-agent artifact download {} .{}", word(&plan), from.unwrap_or_default())
}

/// If there is nothing, that fails, and is not a failure of ours.
fn get_reports(below: &str) -> String {
    let pattern = format!("{below}/**/*");
    format!("buildkite-agent artifact download {} . --include-retried-jobs || true", word(&pattern))
}

fn lines(commands: &[String]) -> String {
    format!("set -e\n{}", commands.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::samples::{HOSTILE, fleet, plan_of, plan_of_legs};
    use super::*;

    /// Returns the steps as the agent reads them.
    #[track_caller]
    fn steps(fleet: &Fleet<'_>) -> Vec<Value> {
        let text = BuildkiteMatrix.text(fleet).unwrap().unwrap();
        assert!(!text.replace("$$", "").contains('$'), "{text}");
        let steps: Value = serde_json::from_str(&text.replace("$$", "$")).unwrap();
        steps["steps"].as_array().unwrap().clone()
    }

    #[test]
    fn the_merge_waits_for_all_legs_whatever_becomes_of_them() {
        let plan = plan_of_legs(3);
        let steps = steps(&fleet(&plan));
        let [group, merge] = steps.as_slice() else { panic!("{steps:?}") };
        assert_eq!(group["steps"].as_array().unwrap().len(), 3);
        assert_eq!(merge["depends_on"], json!([group["key"]]));
        assert_eq!(merge["allow_dependency_failure"], true);
    }

    #[test]
    fn at_most_five_hundred_steps_in_one_upload() {
        assert!(BuildkiteMatrix.text(&fleet(&plan_of_legs(498))).is_ok());
        assert_eq!(BuildkiteMatrix.text(&fleet(&plan_of_legs(499))).unwrap_err().found, 499);
    }

    #[test]
    fn without_legs_the_merge_says_why() {
        let steps = steps(&fleet(&plan_of(&[])));
        assert_eq!(steps.len(), 1);
        assert!(steps[0].get("depends_on").is_none());
    }

    #[test]
    fn what_strangers_named_is_a_label_and_nothing_else() {
        let plan = plan_of(HOSTILE);
        let mut fleet = fleet(&plan);
        fleet.place.planner = Some("x; touch pwned".to_owned());
        let steps = steps(&fleet);
        for leg in steps[0]["steps"].as_array().unwrap() {
            let command = leg["command"].as_str().unwrap();
            assert!(
                !command.contains("packages") && command.contains("--step 'x; touch pwned'"),
                "{command}"
            );
            let key = leg["key"].as_str().unwrap();
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{key}");
        }
    }
}
