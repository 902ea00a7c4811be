//! A comment answers a run: it is read by its id in the job that goes on, and no input is believed beside it.

use base64::Engine as _;
use serde_json::{Value, json};
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, ResponseTemplate};

use super::questions::{ASKS, awaiting, code, of, project};
use super::steering::status;
use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};

const COMMENT: u64 = 501;
const AT: &str = "2026-06-01T00:00:00Z";

/// A pull request of grace, on which ada has written a comment.
struct Scene {
    github: Github,
    project: Project,
    comment: Value,
    pull: Value,
    permission: Value,
    edited: Value,
    /// The statuses of the head.
    statuses: Value,
    /// The loop file of the base branch.
    base: Option<String>,
    actor: u64,
    /// The system that the job is of.
    ci: &'static str,
}

impl Scene {
    /// A run that asks, and a comment that approves.
    fn of(text: &str) -> Self {
        let project = project(text);
        drop(project.run(&["run", "main", "--ci=plain", "--no-strict", "--on-change", "report"]).code(75));
        let github = Github::silent();
        let head = git(&project, &["rev-parse", "HEAD"]);
        let asked = awaiting(&project);
        let now = asked["asked_at"].as_str().unwrap()[..19].to_owned() + "Z";
        let side = |name: &str, sha: &str| json!({"sha": sha, "ref": name, "repo": {"full_name": "Octo/project", "default_branch": "main"}});
        Self {
            comment: json!({
                "id": COMMENT, "node_id": "IC_1", "body": format!("/ll-loop approve {}", code(&asked)),
                "user": {"id": 7, "login": "ada", "type": "User"},
                "created_at": now, "updated_at": now,
                "issue_url": "https://api.github.com/repos/octo/project/issues/3",
                "performed_via_github_app": null,
            }),
            pull: json!({
                "number": 3, "state": "open", "user": {"id": 8, "login": "grace", "type": "User"},
                "head": side("change", &head), "base": side("main", "1"),
            }),
            permission: json!({"permission": "write", "user": {"id": 7, "login": "ada", "type": "User"}}),
            edited: json!({"data": {"node": {"lastEditedAt": null}}}),
            statuses: json!([]),
            base: Some(text.to_owned()),
            actor: 9,
            ci: "plain",
            project,
            github,
        }
    }

    fn changed(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Goes on with the run by the comment.
    fn resume(self) -> (Ran, Project, Github) {
        let Self { github, project, comment, pull, permission, edited, statuses, base, actor, ci } = self;
        let get = |at: &str, body: Value| {
            github.mount(
                Mock::given(method("GET"))
                    .and(path(at))
                    .respond_with(ResponseTemplate::new(200).set_body_json(body)),
            );
        };
        let below = "/repos/octo/project";
        get(&format!("{below}/issues/comments/{COMMENT}"), comment);
        get(&format!("{below}/commits/{}/statuses", pull["head"]["sha"].as_str().unwrap()), statuses);
        get(&format!("{below}/pulls/3"), pull);
        get(&format!("{below}/collaborators/ada/permission"), permission);
        get(&format!("{below}/actions/runs/70"), json!({"actor": {"id": actor, "login": "x"}}));
        if let Some(base) = base {
            let content = base64::engine::general_purpose::STANDARD.encode(base);
            get(&format!("{below}/contents/.loops/main.yaml"), json!({"content": content}));
        }
        let answer = ResponseTemplate::new(200).set_body_json(edited);
        github.mount(Mock::given(method("POST")).and(path("/graphql")).respond_with(answer));
        let project = project
            .env("GITHUB_API_URL", github.address())
            .env("GITHUB_REPOSITORY", "octo/project")
            .env("LL_TOKEN", "ghs_0123456789");
        let project = if ci == "github" { github.job(project) } else { project };
        let ran = project.run(&["resume", "main", &format!("--ci={ci}"), "--answer", &COMMENT.to_string()]);
        (ran, project, github)
    }

    /// Tells that the comment is refused, for this reason, and leaves nothing.
    #[track_caller]
    fn refused(self, says: &str) {
        let before = self.project.events().len();
        let (ran, project, _) = self.resume();
        drop(ran.code(2).says(says));
        assert_eq!(project.events().len(), before);
        assert_eq!(of(&project, "approval"), Vec::<Value>::new());
    }
}

#[test]
fn a_comment_goes_on_with_the_run_it_answers() {
    let (ran, project, github) = Scene::of(ASKS).resume();
    drop(ran.code(0).says("approved by ada (comment 501)"));
    assert_eq!(project.read("came"), "|approve|");
    let approval = &of(&project, "approval")[0];
    assert_eq!((&approval["id"], &approval["comment"]), (&json!(7), &json!(COMMENT)));
    assert_eq!(approval["by"], "comment");
    let requests = github.received();
    assert!(requests.len() <= 6, "{requests:?}");
    assert!(github.changes().iter().all(|(request, _)| request == "POST /graphql"), "{requests:?}");
}

/// Says that the run of the question has ended in its status, as `/ll-loop stop` does before the journal.
fn stopped(scene: &mut Scene) {
    let listed = scene.project.run(&["list", "--awaiting"]).code(0).stdout;
    let instance = listed.split_whitespace().next().unwrap().to_owned();
    scene.statuses = json!([status(9, "main", 70, &instance, ":error")]);
}

/// The run waits on, and its status says so.
#[test]
fn an_answer_that_is_refused_leaves_what_is_said_of_the_question() {
    let refused = |scene: &mut Scene| {
        scene.permission["permission"] = json!("read");
        scene.ci = "github";
    };
    let (ran, project, github) = Scene::of(ASKS).changed(refused).resume();
    drop(ran.code(2).says("no write access"));
    assert_eq!(github.statuses(), Vec::<String>::new());
    drop(project.run(&["answer", "main", "approve", "--code", "00000000", "--ci=github"]).code(2));
    assert_eq!(github.statuses(), Vec::<String>::new());
    // Of what else cannot begin, the status tells.
    drop(project.run(&["resume", "nothing-like-it", "--ci=github", "--status-context", "x"]).code(2));
    assert!(!github.statuses().is_empty(), "{:?}", github.received());
}

#[test]
fn a_comment_that_stops_the_question_ends_the_run_and_its_journal() {
    let only_grace = ASKS.replace("states:", "approvers: {users: [grace]}\nstates:");
    let (ran, project, _) = Scene::of(&only_grace)
        .changed(|scene| {
            stopped(scene);
            scene.comment["body"] = json!("/ll-loop stop");
            // What lies in the tree is of no concern: nothing goes on.
            scene.project.write("made", "something else");
        })
        .resume();
    drop(ran.code(3).says("stopped by ada (comment 501) before somebody answered in `ask`"));
    let end = of(&project, "loop_complete").pop().unwrap();
    assert_eq!((&end["outcome"], &end["exit_code"]), (&json!("cancelled"), &json!(3)));
    let approval = &of(&project, "approval")[0];
    assert_eq!((&approval["verdict"], &approval["comment"]), (&json!("stop"), &json!(COMMENT)));
    assert!(!project.exists("came"), "no route is taken");
    drop(project.run(&["list", "--awaiting"]).code(0).says("no run here waits"));
    drop(project.run(&["answer", "main", "approve", "--no-ci"]).code(2).says("does not wait for an answer"));
    let summary = project.run(&["report", "main", "--format", "summary"]).code(0).stdout;
    assert!(summary.contains("stopped by ada") && !summary.contains("### Question"), "{summary}");
    drop(project.run(&["status", "main"]).code(0).says("cancelled"));
}

#[test]
fn a_question_that_was_stopped_is_answered_no_more_and_stopped_by_writers_alone() {
    Scene::of(ASKS).changed(stopped).refused("not open any more");
    let stops = |scene: &mut Scene| scene.comment["body"] = json!("/ll-loop stop 89abcdef");
    Scene::of(ASKS).changed(stops).refused("it answers `89abcdef`");
    let reader = |scene: &mut Scene| {
        scene.comment["body"] = json!("/ll-loop stop");
        scene.permission["permission"] = json!("read");
    };
    let only_ada = ASKS.replace("states:", "approvers: {users: [ada]}\nstates:");
    Scene::of(&only_ada).changed(reader).refused("no write access");
}

#[test]
fn the_text_of_an_answer_reaches_no_shell() {
    let scene = Scene::of(ASKS).changed(|scene| {
        let body = scene.comment["body"].as_str().unwrap().replace("approve", "answer");
        scene.comment["body"] = json!(body + " $(touch pwned) `touch pwned`;'\"\n/ll-loop reject");
    });
    let (ran, project, _) = scene.resume();
    drop(ran.code(0));
    assert_eq!(project.read("came"), "$(touch pwned) `touch pwned`;'\"|edit|");
    assert!(!project.exists("pwned"));
}

#[test]
fn what_the_server_says_against_a_comment_counts() {
    let scene = || Scene::of(ASKS);
    scene()
        .changed(|scene| scene.edited = json!({"data": {"node": {"lastEditedAt": "2026-01-01T00:00:00Z"}}}))
        .refused("edited");
    scene().changed(|scene| scene.edited = json!({"data": {"node": null}})).refused("edited");
    scene().changed(|scene| scene.comment["updated_at"] = json!("2099-01-01T00:00:00Z")).refused("edited");
    scene().changed(|scene| scene.permission["permission"] = json!("read")).refused("no write access");
    scene()
        .changed(|scene| scene.permission["user"]["id"] = json!(70))
        .refused("is not the one that has its name");
    scene().changed(|scene| scene.pull["state"] = json!("closed")).refused("closed");
    scene().changed(|scene| scene.pull["head"]["sha"] = json!("3".repeat(40))).refused("another head");
    scene()
        .changed(|scene| scene.pull["head"]["repo"] = json!({"full_name": "mallory/project"}))
        .refused("of a fork");
    scene().changed(|scene| scene.comment["user"]["type"] = json!("Bot")).refused("a program wrote it");
    scene()
        .changed(|scene| scene.comment["performed_via_github_app"] = json!({"id": 1}))
        .refused("a program wrote it");
    scene().changed(|scene| scene.base = None).refused("has no .loops/main.yaml");
    // Gitea names the pull request in another place.
    let elsewhere = json!("https://gitea.example/octo/project/pulls/3");
    let (ran, ..) = scene()
        .changed(|scene| {
            scene.comment["issue_url"] = json!("");
            scene.comment["pull_request_url"] = elsewhere;
        })
        .resume();
    drop(ran.code(0));
    // A comment of another repository or another id is none.
    let elsewhere = json!("https://api.github.com/repos/octo/project2/issues/3");
    let (ran, ..) = scene().changed(|scene| scene.comment["issue_url"] = elsewhere).resume();
    drop(ran.code(69).says("not one of this repository"));
    let (ran, ..) = scene().changed(|scene| scene.comment["id"] = json!(502)).resume();
    drop(ran.code(69).says("another comment"));
}

/// Whoever began the chain has started the run, also where a program has started its last link.
#[test]
fn who_began_a_chain_may_not_answer() {
    let scene = |approvers: &str| {
        let asks = ASKS.replace("states:", &format!("approvers: {approvers}\nstates:"));
        Scene::of(&asks).changed(|scene| {
            let listed = scene.project.run(&["list", "--awaiting"]).code(0).stdout;
            let instance = listed.split_whitespace().next().unwrap();
            scene.statuses = json!([status(9, "main", 60, instance, ":pending")]);
        })
    };
    let of_ada = scene("{users: [ada]}");
    let first = Mock::given(method("GET")).and(path("/repos/octo/project/actions/runs/60"));
    let began = ResponseTemplate::new(200).set_body_json(json!({"actor": {"id": 7, "login": "ada"}}));
    of_ada.github.mount(first.respond_with(began));
    of_ada.refused("whoever started the run, may not answer");
    // She could have deleted the run that tells it.
    let (ran, ..) = scene("{users: [ada]}").resume();
    drop(ran.code(69).says("who started the run").says("does not know the run of a workflow 60 any more"));
    // Where it does not matter who did, nobody asks.
    let (ran, ..) = scene("{users: [ada], not_author: false}").resume();
    drop(ran.code(0));
}

/// A program has started the run, because ada asked for it by a comment.
#[test]
fn who_had_the_run_started_by_a_comment_may_not_answer() {
    let named = ASKS.replace("states:", "approvers: {users: [ada]}\nstates:");
    let comment = |id: u64, body: &str, (account, login): (u64, &str)| json!({"id": id, "body": body, "user": {"id": account, "login": login}, "created_at": AT, "updated_at": AT});
    let ada = (7, "ada");
    let scene = |run: Value, comments: Value| {
        let scene = Scene::of(&named).changed(|scene| {
            let listed = scene.project.run(&["list", "--awaiting"]).code(0).stdout;
            let instance = listed.split_whitespace().next().unwrap();
            scene.statuses = json!([status(9, "main", 60, instance, ":pending")]);
        });
        for (at, answer) in [
            ("/repos/octo/project/actions/runs/60", run),
            ("/repos/octo/project/issues/3/comments", comments),
            ("/user", json!({"login": "us"})),
        ] {
            let get = Mock::given(method("GET")).and(path(at));
            scene.github.mount(get.respond_with(ResponseTemplate::new(200).set_body_json(answer)));
        }
        scene
    };
    let bot = json!({"id": 41, "login": "github-actions[bot]"});
    let dispatched = json!({"event": "workflow_dispatch", "run_attempt": 1, "actor": bot});
    let again =
        json!({"event": "pull_request", "run_attempt": 2, "actor": {"id": 8}, "triggering_actor": bot});
    let asked = json!([comment(400, "/ll-loop retry", ada)]);
    for run in [&dispatched, &again] {
        scene(run.clone(), asked.clone()).refused("whoever started the run, may not answer");
    }
    // She has taken the comment away; the reply to it tells.
    let heard = json!({"heard": [{
        "comment": 400, "author": 7, "who": "ada", "said": "retry", "digest": "0".repeat(64), "sha": "1".repeat(40),
        "at": AT, "is_taken": true, "result": "it runs again",
    }], "replies": {}});
    let reply =
        |who| comment(401, &format!("<!-- ll-loop/commands -->\nx\n<!-- ll-loop:heard {heard} -->\n"), who);
    scene(dispatched.clone(), json!([reply((41, "us"))])).refused("whoever started the run, may not answer");
    // Nobody keeps others from answering by a copy of it, by words of theirs, or by what was asked for later.
    let fine = [
        (dispatched.clone(), json!([reply((12, "mallory"))])),
        (
            dispatched,
            json!([comment(400, "/ll-loop retry", (12, "mallory")), comment(502, "/ll-loop retry", ada)]),
        ),
        (json!({"event": "pull_request", "run_attempt": 1, "actor": {"id": 8}}), asked),
    ];
    for (run, comments) in fine {
        let (ran, ..) = scene(run, comments).resume();
        drop(ran.code(0));
    }
}

#[test]
fn the_base_says_who_may_answer_and_not_the_change() {
    let only = |who: &str| ASKS.replace("states:", &format!("approvers: {{users: [{who}]}}\nstates:"));
    // The change names somebody else, and the base does not.
    Scene::of(&only("ada"))
        .changed(|scene| scene.base = Some(only("grace")))
        .refused("only `grace` may answer");
    Scene::of(ASKS).changed(|scene| scene.base = Some(only("grace"))).refused("only `grace` may answer");
    Scene::of(&only("ada"))
        .changed(|scene| scene.pull["user"]["id"] = json!(7))
        .refused("the author of the change");
    // Whom the base names need not write, and has to be a collaborator.
    let reader = || Scene::of(&only("ada")).changed(|scene| scene.permission["permission"] = json!("read"));
    reader().refused("no write access");
    let named = reader();
    let is_one = Mock::given(method("GET")).and(path("/repos/octo/project/collaborators/ada"));
    named.github.mount(is_one.respond_with(ResponseTemplate::new(204)));
    let (ran, ..) = named.resume();
    drop(ran.code(0));
    let two = only("ada, grace").replace("grace]", "grace], min: 2");
    Scene::of(&two).refused("2 different people have to answer");
    let (ran, ..) = Scene::of(&only("Ada")).resume();
    drop(ran.code(0));
    // Another pull request of the same head may have another base: the default branch has to agree.
    let mut scene = Scene::of(ASKS);
    let content = base64::engine::general_purpose::STANDARD.encode(only("grace"));
    let of_default = ResponseTemplate::new(200).set_body_json(json!({"content": content}));
    let default = Mock::given(path("/repos/octo/project/contents/.loops/main.yaml"));
    scene.github.mount(default.and(query_param("ref", "main")).respond_with(of_default));
    scene.pull["base"]["ref"] = json!("mine");
    scene.refused("only `grace` may answer");
}
