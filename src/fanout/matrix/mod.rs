//! The legs of a plan in the form in which a CI system starts jobs: one format a file, one line here each.

pub use format::{Fleet, Format, Place};

mod buildkite;
mod format;
mod github;
mod gitlab;
mod json;
mod k8s;

/// The formats.
pub const FORMATS: &[&dyn Format] =
    &[&github::Github, &gitlab::Gitlab, &buildkite::Buildkite, &k8s::Kubernetes, &json::Json];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::format::TooMuch;
    use super::*;
    use crate::fanout::plan::Plan;
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
