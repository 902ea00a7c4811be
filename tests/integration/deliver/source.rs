//! Which bundle a delivery takes: what a job says is the name of an artifact of its own run of the workflow.

use std::fs;

use serde_json::json;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, ResponseTemplate};

use super::model::TOKEN;
use super::scene::{self, BRANCH, Scene, wrong};
use crate::ci::reported::Github;
use crate::common::{Project, Ran};

/// Delivers in a job whose own token may read artifacts, with another one that may write.
fn deliver(what: &str, set: impl FnOnce(Project) -> Project) -> (Github, Ran) {
    let github = Github::silent();
    for run in [77, 78] {
        let list = Mock::given(method("GET"))
            .and(path(format!("/repos/octo/project/actions/runs/{run}/artifacts")))
            .and(header("authorization", "Bearer ghs_of_the_job"));
        let none = json!({"total_count": 0, "artifacts": []});
        github.mount(list.respond_with(ResponseTemplate::new(200).set_body_json(none)));
    }
    let project = github.job(Project::new()).env("GITHUB_REPOSITORY_ID", "1").env("LL_RETRY_WAIT", "20ms");
    let project = set(project.env("GITHUB_TOKEN", "ghs_of_the_job").env("LL_TOKEN", "ghs_of_an_app"));
    let ran = project.run(&["deliver", what, "--to", "patch"]);
    (github, ran)
}

fn requests(github: &Github) -> Vec<String> {
    github.received().into_iter().map(|(request, _)| request).collect()
}

#[test]
fn a_name_is_that_of_an_artifact_of_this_run_which_the_token_of_the_job_reads() {
    let (github, ran) = deliver("artifact:ll-loop-tidy-find-r12-a1", |project| project);
    ran.code(2).says("`ll-loop-tidy-find-r12-a1` in run 77");
    assert_eq!(requests(&github), ["GET /repos/octo/project/actions/runs/77/artifacts"]);
}

#[test]
fn a_bundle_that_is_not_there_is_told_in_the_summary_of_the_job() {
    for (what, why) in [("no.llz", "no.llz"), ("artifact:ll-loop-tidy", "`ll-loop-tidy` in run 77")] {
        let summary = tempfile::NamedTempFile::new().unwrap();
        let path = summary.path().display().to_string();
        let (_, ran) = deliver(what, |project| project.env("GITHUB_STEP_SUMMARY", path));
        ran.code(2).says(why);
        let told = fs::read_to_string(summary.path()).unwrap();
        assert!(told.starts_with("### Delivery failed") && told.contains(why), "{told}");
    }
}

#[test]
fn after_another_run_a_name_is_that_of_an_artifact_of_it() {
    let event = json!({"workflow_run": {"id": 78, "head_sha": "2".repeat(40), "html_url": "https://x/78"}});
    let (github, ran) = deliver("artifact:ll-loop-tidy", |project| {
        let path = project.at("event.json").to_string_lossy().into_owned();
        project
            .file("event.json", &event.to_string())
            .env("GITHUB_EVENT_NAME", "workflow_run")
            .env("GITHUB_EVENT_PATH", path)
    });
    ran.code(2).says("in run 78");
    assert_eq!(requests(&github), ["GET /repos/octo/project/actions/runs/78/artifacts"]);
}

#[test]
fn no_name_leads_to_another_run() {
    for what in ["artifact:run:latest", "artifact:run:5"] {
        let (github, ran) = deliver(what, |project| project);
        ran.code(2);
        assert_eq!(requests(&github), [""; 0], "{what}");
    }
}

#[test]
fn a_job_delivers_without_a_checkout() {
    let scene = Scene::new();
    let bundle = scene.night();
    let project = Project::new();
    std::fs::remove_dir(project.at(".loops")).unwrap();
    std::fs::write(project.at("fix.llz"), &bundle).unwrap();
    let job = scene.hub.job(project).env("LL_TOKEN", TOKEN);
    let made = scene::deliver(job, &[]).is(0, "created");
    scene.is_in_order(&made.ran.all());
    assert_eq!(scene.bare.file(BRANCH, "src/a.txt"), Some(wrong("right").trim_end().to_owned()));
    assert!(made.output("bundle-digest").starts_with("sha256:"), "{:?}", made.outputs);
}
