//! On GitLab, a note on the merge request answers a run: the manual job that goes on reads it by its id.

use base64::Engine as _;
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path, query_param};
use wiremock::{Mock, ResponseTemplate};

use super::questions::{ASKS, awaiting, code, of, project};
use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};

const NOTE: u64 = 501;
const BELOW: &str = "/api/v4/projects/group%2Fproject";

/// A merge request of grace, whose pipeline asks, and a note of ada on it.
struct Scene {
    server: Github,
    project: Project,
    note: Value,
    request: Value,
    member: ResponseTemplate,
    user: Value,
    edited: Value,
    pipeline: Value,
    jobs: Value,
    /// The loop file of the target branch.
    base: Option<String>,
    env: Vec<(&'static str, &'static str)>,
}

fn ok(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

fn member(level: u32) -> ResponseTemplate {
    ok(&json!({"id": 7, "username": "ada", "state": "active", "access_level": level}))
}

impl Scene {
    fn of(text: &str) -> Self {
        let project = project(text);
        drop(project.run(&["run", "main", "--ci=plain", "--no-strict", "--on-change", "report"]).code(75));
        let head = git(&project, &["rev-parse", "HEAD"]).trim().to_owned();
        let asked = awaiting(&project);
        Self {
            server: Github::silent(),
            note: json!({
                "id": NOTE, "type": null, "body": format!("/ll-loop approve {}", code(&asked)),
                "author": {"id": 7, "username": "ada"}, "system": false,
                "created_at": asked["asked_at"], "updated_at": "2030-01-01T00:00:00.000Z",
                "noteable_type": "MergeRequest", "noteable_iid": 3, "project_id": 64,
            }),
            request: json!({
                "iid": 3, "state": "opened", "sha": head, "author": {"id": 8, "username": "grace"},
                "source_branch": "change", "target_branch": "main", "source_project_id": 64, "target_project_id": 64,
            }),
            member: member(30),
            user: json!({"id": 7, "username": "ada", "bot": false}),
            edited: json!({"data": {"note": {"lastEditedAt": null}}}),
            pipeline: json!({"id": 70, "sha": head, "user": {"id": 8, "username": "grace"}}),
            // Who starts the job that answers has not started the run.
            jobs: json!([{"name": "deploy", "user": {"id": 9}}, {"name": "answer", "user": {"id": 7}}]),
            base: Some(text.to_owned()),
            env: Vec::new(),
            project,
        }
    }

    fn changed(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Goes on with the run by the note, in a job of the pipeline of the merge request.
    fn resume(self) -> (Ran, Project, Github) {
        let Self { server, project, note, request, member, user, edited, pipeline, jobs, base, env } = self;
        let get = |at: &str, answer: ResponseTemplate| {
            let of_token = Mock::given(method("GET"))
                .and(path(at))
                .and(header("authorization", "Bearer glpat-0123456789"));
            server.mount(of_token.respond_with(answer));
        };
        get(&format!("{BELOW}/merge_requests/3/notes/{NOTE}"), ok(&note));
        get(&format!("{BELOW}/merge_requests/3"), ok(&request));
        get(BELOW, ok(&json!({"id": 64, "default_branch": "main"})));
        get(&format!("{BELOW}/members/all/7"), member);
        get("/api/v4/users/7", ok(&user));
        get(&format!("{BELOW}/pipelines/70"), ok(&pipeline));
        get(&format!("{BELOW}/pipelines/70/jobs"), ok(&jobs));
        if let Some(base) = base {
            let content = base64::engine::general_purpose::STANDARD.encode(base);
            let file =
                Mock::given(method("GET")).and(path(format!("{BELOW}/repository/files/.loops%2Fmain.yaml")));
            server.mount(file.and(query_param("ref", "main")).respond_with(ok(&json!({"content": content}))));
        }
        let asked = Mock::given(method("POST")).and(path("/api/graphql"));
        let variables = json!({"variables": {"id": format!("gid://gitlab/Note/{NOTE}")}});
        server.mount(asked.and(body_partial_json(variables)).respond_with(ok(&edited)));
        let project = project
            .env("GITLAB_CI", "true")
            .env("CI_API_V4_URL", format!("{}/api/v4", server.address()))
            .env("CI_PROJECT_PATH", "group/project")
            .env("CI_PIPELINE_ID", "70")
            .env("CI_JOB_NAME", "answer")
            .env("CI_MERGE_REQUEST_IID", "3")
            .env("LL_RETRY_WAIT", "1ms")
            .env("LL_TOKEN", "glpat-0123456789");
        let project = env.into_iter().fold(project, |project, (name, value)| project.env(name, value));
        let ran = project.run(&["resume", "main", "--ci", "--answer", &NOTE.to_string()]);
        (ran, project, server)
    }

    /// Tells that the note is refused, for this reason, and leaves nothing.
    #[track_caller]
    fn refused(self, says: &str) {
        let before = self.project.events().len();
        let (ran, project, _) = self.resume();
        assert!(matches!(ran.code, Some(2 | 69)), "{}", ran.all());
        drop(ran.says(says));
        assert_eq!(project.events().len(), before);
        assert!(!project.exists("came"));
    }
}

fn named(who: &str) -> String {
    ASKS.replace("states:", &format!("approvers: {{users: [{who}]}}\nstates:"))
}

#[test]
fn a_note_goes_on_with_the_run_it_answers() {
    let (ran, project, server) = Scene::of(ASKS).resume();
    drop(ran.code(0).says("approved by ada (comment 501)"));
    assert_eq!(project.read("came"), "|approve|");
    let approval = &of(&project, "approval")[0];
    assert_eq!((&approval["id"], &approval["by"]), (&json!(7), &json!("comment")));
    let requests = server.received();
    assert!(requests.len() <= 10, "{requests:?}");
    assert!(server.changes().iter().all(|(request, _)| request == "POST /api/graphql"), "{requests:?}");
}

#[test]
fn whom_the_loop_names_answers_and_needs_to_read_alone() {
    let (ran, ..) = Scene::of(&named("Ada")).changed(|scene| scene.member = member(20)).resume();
    drop(ran.code(0));
}

#[test]
fn a_note_that_stops_the_question_ends_the_run() {
    let (ran, project, _) =
        Scene::of(&named("grace")).changed(|scene| scene.note["body"] = json!("/ll-loop stop")).resume();
    drop(ran.code(3).says("stopped by ada (comment 501) before somebody answered"));
    assert!(!project.exists("came"));
}

/// One thing that is wrong with a note which is good otherwise, and what is said of it.
type Forgery = (&'static str, fn(&mut Scene));

const FORGERIES: &[Forgery] = &[
    ("was edited", |scene| scene.edited["data"]["note"]["lastEditedAt"] = json!("2026-01-01T00:00:00Z")),
    ("was edited", |scene| scene.edited["data"]["note"] = Value::Null),
    ("was edited", |scene| scene.note["type"] = json!("LegacyDiffNote")),
    ("no write access", |scene| scene.member = member(20)),
    ("no write access", |scene| scene.member = member(10)),
    ("no write access", |scene| scene.member = ResponseTemplate::new(404)),
    ("no write access", |scene| {
        scene.member = ok(&json!({"id": 7, "username": "ada", "state": "blocked", "access_level": 40}));
    }),
    ("no write access", |scene| {
        scene.member = ok(&json!({"id": 70, "username": "ada", "state": "active", "access_level": 40}));
    }),
    ("may not ask", |scene| scene.member = ResponseTemplate::new(403)),
    ("give `LL_TOKEN` one of this project", |scene| scene.member = ResponseTemplate::new(401)),
    ("a program wrote it", |scene| scene.user["bot"] = json!(true)),
    ("a program wrote it", |scene| drop(scene.user.as_object_mut().unwrap().remove("bot"))),
    ("a program wrote it", |scene| scene.note["system"] = json!(true)),
    ("older", |scene| scene.note["created_at"] = json!("2020-01-01T00:00:00.000Z")),
    ("closed", |scene| scene.request["state"] = json!("closed")),
    ("closed", |scene| scene.request["state"] = json!("merged")),
    ("of a fork", |scene| scene.request["source_project_id"] = json!(65)),
    ("of a fork", |scene| scene.request["source_project_id"] = Value::Null),
    ("not of the head", |scene| scene.request["sha"] = json!("3".repeat(40))),
    ("not of the head", |scene| scene.request["sha"] = Value::Null),
    ("not of the head", |scene| scene.pipeline["sha"] = json!("3".repeat(40))),
    ("another note", |scene| scene.note["id"] = json!(502)),
    ("another note", |scene| scene.note["noteable_iid"] = json!(4)),
    ("another note", |scene| scene.note["noteable_type"] = json!("Issue")),
    ("another one", |scene| scene.request["target_project_id"] = json!(63)),
    ("does not begin with", |scene| scene.note["body"] = json!("> /ll-loop approve 0123abcd")),
    ("it answers `0123abcd`", |scene| scene.note["body"] = json!("/ll-loop approve 0123abcd")),
    ("names no question", |scene| scene.note["body"] = json!("/ll-loop approve")),
    ("has no .loops/main.yaml", |scene| scene.base = None),
    ("only `grace` may answer", |scene| scene.base = Some(named("grace"))),
    ("pipelines of merge requests alone", |scene| scene.env.push(("CI_MERGE_REQUEST_IID", ""))),
    ("no token", |scene| scene.env.push(("LL_TOKEN", ""))),
];

#[test]
fn no_forged_note_is_taken() {
    for (says, forge) in FORGERIES {
        Scene::of(ASKS).changed(forge).refused(says);
    }
}

#[test]
fn neither_the_author_nor_who_started_the_pipeline_or_its_job_answers() {
    let own: [fn(&mut Scene); 3] = [
        |scene| scene.request["author"]["id"] = json!(7),
        |scene| scene.pipeline["user"]["id"] = json!(7),
        |scene| scene.jobs[0]["user"]["id"] = json!(7),
    ];
    for forge in own {
        Scene::of(&named("ada")).changed(forge).refused("may not answer");
    }
}
