//! `ll-loop command`: a comment on a pull request steers runs, and no forgery does. A server in the place of GitHub's counts
//! what it was asked to do.

use base64::Engine as _;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, path_regex, query_param};
use wiremock::{Mock, ResponseTemplate};

use super::questions::ASKS;
use crate::ci::reported::Github;
use crate::common::{Project, Ran};

const COMMENT: u64 = 501;
const HEAD: &str = "1111111111111111111111111111111111111111";
const CODE: &str = "0123abcd";

/// A pull request of grace with the head [`HEAD`], whose runs have left statuses, and a comment of ada.
pub(super) struct Scene {
    pub(super) payload: Value,
    pub(super) comment: Value,
    pub(super) pull: Value,
    pub(super) permission: Value,
    pub(super) edited: Value,
    pub(super) statuses: Vec<Value>,
    pub(super) run: Value,
    pub(super) base: Option<String>,
    /// Further comments of the pull request.
    pub(super) others: Vec<Value>,
    /// What comes of a dispatch.
    pub(super) started: ResponseTemplate,
    /// What comes of a re-run.
    pub(super) repeated: ResponseTemplate,
    pub(super) arguments: Vec<&'static str>,
    /// Variables of the job.
    pub(super) env: Vec<(&'static str, &'static str)>,
}

/// The result of a comment.
pub(super) struct Steered {
    pub(super) ran: Ran,
    pub(super) project: Project,
    pub(super) github: Github,
}

/// A status of a run of the loop `deploy`.
pub(super) fn status(id: u64, name: &str, run: u64, instance: &str, mark: &str) -> Value {
    let state = mark.rsplit(':').next().unwrap();
    json!({
        "id": id, "context": format!("ll-loop/{name}"), "state": state, "description": "x",
        "created_at": "2026-01-01T00:00:00Z",
        "target_url": format!("https://github.com/octo/project/actions/runs/{run}#ll-loop:{instance}:1@job@commit{mark}"),
    })
}

pub(super) fn question(id: u64, name: &str, run: u64, code: &str) -> Value {
    let instance = format!("{name}-20251120T234847-{run}");
    status(id, name, run, &instance, &format!("@q-{code}.4000000000000.ask:pending"))
}

pub(super) fn failed(id: u64, name: &str, run: u64) -> Value {
    status(id, name, run, &format!("{name}-20251120T234847-{run}"), ":failure")
}

/// When ada wrote it.
const AT: &str = "2026-06-01T00:00:00Z";

impl Scene {
    /// Ada writes this.
    pub(super) fn of(body: &str) -> Self {
        let side = |name: &str, sha: &str| json!({"sha": sha, "ref": name, "repo": {"full_name": "Octo/project", "default_branch": "main"}});
        Self {
            payload: json!({"action": "created", "issue": {"number": 3, "pull_request": {}}, "comment": {"id": COMMENT, "body": body}}),
            comment: json!({
                "id": COMMENT, "node_id": "IC_1", "body": body,
                "user": {"id": 7, "login": "ada", "type": "User"}, "created_at": AT, "updated_at": AT,
                "issue_url": "https://api.github.com/repos/octo/project/issues/3",
                "performed_via_github_app": null,
            }),
            pull: json!({
                "number": 3, "state": "open", "user": {"id": 8, "login": "grace", "type": "User"},
                "head": side("change", HEAD), "base": side("main", "1"),
            }),
            permission: json!({"permission": "write", "user": {"id": 7, "login": "ada", "type": "User"}}),
            edited: json!({"data": {"node": {"lastEditedAt": null}}}),
            statuses: vec![question(9, "main", 70, CODE)],
            run: json!({
                "id": 70, "event": "pull_request", "path": ".github/workflows/deploy.yml", "head_sha": HEAD,
                "actor": {"id": 9}, "repository": {"id": 1}, "head_repository": {"id": 1},
            }),
            base: Some(ASKS.to_owned()),
            others: Vec::new(),
            started: ResponseTemplate::new(200).set_body_json(json!({
                "workflow_run_id": 80, "html_url": "https://github.com/octo/project/actions/runs/80",
            })),
            repeated: ResponseTemplate::new(201),
            arguments: vec!["command"],
            env: Vec::new(),
        }
    }

    pub(super) fn changed(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn mounted(&self) -> Github {
        self.mounted_on(Github::silent())
    }

    /// Adds what the scene says to a server, after what that one knows.
    fn mounted_on(&self, github: Github) -> Github {
        // Of Gitea, a page that is not full need not be the last.
        let further = Mock::given(method("GET")).and(query_param("page", "2"));
        github.mount(further.respond_with(ResponseTemplate::new(200).set_body_json(json!([]))));
        let below = "/repos/octo/project";
        let get = |at: String, body: &Value| {
            let answer = ResponseTemplate::new(200).set_body_json(body);
            github.mount(Mock::given(method("GET")).and(path(at)).respond_with(answer));
        };
        get(format!("{below}/issues/comments/{COMMENT}"), &self.comment);
        get(format!("{below}/pulls/3"), &self.pull);
        get(format!("{below}/commits/{HEAD}/statuses"), &json!(self.statuses));
        let listed: Vec<Value> = self.others.iter().chain([&self.comment]).cloned().collect();
        get(format!("{below}/issues/3/comments"), &json!(listed));
        for other in &self.others {
            get(format!("{below}/issues/comments/{}", other["id"]), other);
        }
        let mine = Mock::given(method("GET")).and(path(format!("{below}/collaborators/ada/permission")));
        github.mount(mine.respond_with(ResponseTemplate::new(200).set_body_json(&self.permission)));
        let bob = json!({"permission": "write", "user": {"id": 17, "login": "bob", "type": "User"}});
        get(format!("{below}/collaborators/bob/permission"), &bob);
        if let Some(base) = &self.base {
            let content = base64::engine::general_purpose::STANDARD.encode(base);
            get(format!("{below}/contents/.loops/main.yaml"), &json!({ "content": content }));
        }
        let run = Mock::given(method("GET")).and(path_regex(r"/actions/runs/\d+$"));
        github.mount(run.respond_with(ResponseTemplate::new(200).set_body_json(&self.run)));
        let edited = ResponseTemplate::new(200).set_body_json(&self.edited);
        let post = |at: &str| Mock::given(method("POST")).and(path_regex(at));
        github.mount(post("/graphql$").respond_with(edited));
        github.mount(post("/dispatches$").respond_with(self.started.clone()));
        github.mount(post("/rerun-failed-jobs$").respond_with(self.repeated.clone()));
        github.mount(post("/cancel$").respond_with(ResponseTemplate::new(202).set_body_json(json!({}))));
        let fine = ResponseTemplate::new(201).set_body_json(json!({"id": 1}));
        github.mount(post(r"/(reactions|comments|statuses/\w+)$").respond_with(fine.clone()));
        github.mount(Mock::given(method("PATCH")).respond_with(fine));
        github
    }

    /// Lets the program follow the comment in a job that it set off.
    pub(super) fn steer(self) -> Steered {
        let github = self.mounted();
        self.steered_on(github)
    }

    fn steered_on(self, github: Github) -> Steered {
        let project = github.job(Project::new());
        let event = project.at("event.json").to_string_lossy().into_owned();
        let project = project
            .file("event.json", &self.payload.to_string())
            .env("GITHUB_EVENT_NAME", "issue_comment")
            .env("GITHUB_EVENT_PATH", event)
            .env("LL_TOKEN", "ghs_0123456789")
            .env("LL_RETRY_WAIT", "1ms");
        let project = self.env.iter().fold(project, |project, (name, value)| project.env(name, *value));
        let ran = project.run(&self.arguments);
        Steered { ran, project, github }
    }
}

impl Steered {
    /// Returns what the server was asked to do, beside reactions and the reply.
    pub(super) fn orders(&self) -> Vec<(String, Value)> {
        let is_order = |request: &str| {
            !request.ends_with("/reactions") && !request.contains("/comments") && request != "POST /graphql"
        };
        self.github.changes().into_iter().filter(|(request, _)| is_order(request)).collect()
    }

    fn reactions(&self) -> Vec<String> {
        let all = self.github.changes().into_iter().filter(|(request, _)| request.ends_with("/reactions"));
        all.map(|(_, body)| body["content"].as_str().unwrap().to_owned()).collect()
    }

    pub(super) fn reply(&self) -> Option<String> {
        let mut all = self.github.changes().into_iter();
        let (_, body) =
            all.find(|(request, body)| request.contains("/comments") && !body["body"].is_null())?;
        Some(body["body"].as_str().unwrap().to_owned())
    }

    /// Tells that the job is green, and says this.
    #[track_caller]
    fn says(&self, text: &str) -> &Self {
        let all = self.ran.all();
        assert_eq!(self.ran.code, Some(0), "{all}");
        assert!(all.contains(text) && !self.ran.stderr.contains("panicked"), "no {text:?} in {all}");
        self
    }

    /// Tells that one thing was done, and said.
    #[track_caller]
    fn does(self, request: &str, body: &Value) -> Self {
        self.says("");
        let orders = self.orders();
        assert_eq!(orders.len(), 1, "{orders:?} {}", self.ran.all());
        assert_eq!(orders[0].0, request);
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(&orders[0].1[name], value, "{name}");
        }
        assert_eq!(self.reactions(), ["eyes", "+1"]);
        assert!(self.reply().unwrap().contains('✅'));
        self
    }

    #[track_caller]
    pub(super) fn refuses(self, says: &str) -> Self {
        self.says("");
        assert_eq!(self.orders(), [], "{}", self.ran.all());
        assert!(self.ran.stdout.starts_with("refused: "), "{}", self.ran.all());
        assert!(self.ran.stdout.contains(says), "{says}: {}", self.ran.all());
        self
    }
}

const DISPATCH: &str = "POST /repos/octo/project/actions/workflows/deploy.yml/dispatches";

fn going_on(answer: &str) -> Value {
    json!({
        "ref": "refs/heads/change",
        "inputs": {"resume-from": "run:70", "answer": answer, "sha": HEAD},
    })
}

#[test]
fn an_answer_starts_the_workflow_of_the_run_in_at_most_twelve_requests() {
    for body in [
        "/ll-loop approve 0123abcd",
        "/ll-loop approve",
        "/ll-loop reject main",
        "/ll-loop approve 0123abcd 1111111\r\nplease",
        "/ll-loop answer with the flag $(touch pwned)",
    ] {
        let steered = Scene::of(body).steer().does(DISPATCH, &going_on("501"));
        let requests = steered.github.received();
        let dispatched = requests.iter().position(|(request, _)| request == DISPATCH).unwrap();
        assert!(dispatched < 12, "{requests:?}");
        let announced = steered.project.read("out");
        assert!(announced.contains("\ndone\n"), "{announced}");
        assert!(!steered.project.exists("pwned"));
    }
}

/// Gitea says of a run neither whose code it ran nor who answered: event and pull request tell the one, the times of the
/// comment the other.
fn on_gitea(body: &str, event: &str, git_ref: &str) -> Scene {
    Scene::of(body).changed(|scene| {
        scene.env.push(("GITEA_ACTIONS", "true"));
        scene.comment["issue_url"] = json!("");
        scene.comment["pull_request_url"] = json!("https://gitea.example/octo/project/pulls/3");
        scene.pull["head"]["repo"]["id"] = json!(1);
        scene.run["event"] = json!(event);
        scene.run["path"] = json!(format!("deploy.yml@{git_ref}"));
        scene.run.as_object_mut().unwrap().remove("head_repository");
    })
}

#[test]
fn where_a_run_names_no_head_repository_its_event_and_its_pull_request_tell_whose_code_it_ran() {
    let head = "refs/pull/3/head";
    for (event, git_ref) in [
        ("pull_request", head),
        ("pull_request_sync", head),
        ("push", "refs/heads/change"),
        ("schedule", "refs/heads/main"),
        ("workflow_dispatch", "refs/heads/change"),
    ] {
        let steered = on_gitea("/ll-loop approve 0123abcd", event, git_ref).steer();
        let steered = steered.does(DISPATCH, &going_on("501"));
        let requests = steered.github.received();
        let dispatched = requests.iter().position(|(request, _)| request == DISPATCH).unwrap();
        assert!(dispatched < 12, "{requests:?}");
    }
    let foreign = "not one of this repository's own code";
    for (event, git_ref) in [
        ("pull_request_target", "refs/heads/main"),
        ("issue_comment", "refs/heads/main"),
        ("pull_request", "refs/heads/main"),
        ("", head),
    ] {
        drop(on_gitea("/ll-loop approve 0123abcd", event, git_ref).steer().refuses(foreign));
    }
    // Another pull request, of a fork, has the same head.
    let other = on_gitea("/ll-loop approve 0123abcd", "pull_request", "refs/pull/4/head");
    let mut of_fork = other.pull.clone();
    of_fork["head"]["repo"]["id"] = json!(2);
    let github = other.mounted();
    let at = Mock::given(method("GET")).and(path("/repos/octo/project/pulls/4"));
    github.mount(at.respond_with(ResponseTemplate::new(200).set_body_json(of_fork)));
    drop(other.steered_on(github).refuses(foreign));
    let gone = on_gitea("/ll-loop approve 0123abcd", "push", "refs/heads/change");
    drop(gone.changed(|scene| scene.run["head_repository"] = Value::Null).steer().refuses(foreign));
    // GitHub always says it.
    let untold = Scene::of("/ll-loop approve 0123abcd")
        .changed(|scene| drop(scene.run.as_object_mut().unwrap().remove("head_repository")));
    drop(untold.steer().refuses(foreign));
}

#[test]
fn callers_that_lack_an_input_are_told_which() {
    let refused = json!({"message": "Unexpected inputs provided: [\"answer\"]"});
    let refused = ResponseTemplate::new(422).set_body_json(refused);
    let steered = Scene::of("/ll-loop approve").changed(|scene| scene.started = refused).steer();
    steered.says("with the inputs `resume-from`, `answer` and `sha`").says("deploy.yml");
    assert_eq!(steered.reactions(), ["eyes", "-1"]);
    assert!(steered.reply().unwrap().contains("Unexpected inputs"));
    for (body, needs) in [
        ("/ll-loop fix", "It needs `workflow_dispatch`\n"),
        ("/ll-loop fix tidy", "It needs `workflow_dispatch` with the input `loop`\n"),
    ] {
        let gone = Scene::of(body).changed(|scene| scene.started = ResponseTemplate::new(404));
        gone.steer().says(needs);
    }
}

#[test]
fn two_people_approve_where_two_have_to() {
    let two = ASKS.replace("states:", "approvers: {users: [ada, bob], min: 2}\nstates:");
    let with = |others: Vec<Value>| {
        let base = Some(two.clone());
        Scene::of("/ll-loop approve 0123abcd").changed(|scene| (scene.base, scene.others) = (base, others))
    };
    let alone = with(Vec::new()).steer();
    alone.says("1 of 2 people");
    assert_eq!(alone.orders(), []);
    let bobs = |body: &str, id: u64, name: &str| {
        let mut comment = Scene::of(body).comment;
        comment["id"] = json!(400);
        comment["user"] = json!({"id": id, "login": name, "type": "User"});
        comment
    };
    drop(
        with(vec![bobs("/ll-loop approve 0123abcd", 17, "bob")]).steer().does(DISPATCH, &going_on("501 400")),
    );
    for other in [
        bobs("/ll-loop approve 0123abcd", 7, "ada"),
        bobs("/ll-loop reject 0123abcd", 17, "bob"),
        bobs("/ll-loop approve 89abcdef", 17, "bob"),
        bobs("> /ll-loop approve 0123abcd", 17, "bob"),
        bobs("/ll-loop approve 0123abcd", 99, "bob"),
    ] {
        let steered = with(vec![other]).steer();
        assert_eq!(steered.orders(), [], "{}", steered.ran.all());
        steered.says("1 of 2 people");
    }
    let no = with(Vec::new()).changed(|scene| scene.comment["body"] = json!("/ll-loop reject 0123abcd"));
    drop(no.steer().does(DISPATCH, &going_on("501")));
}

/// A scene in which the loop lets a team answer, and what the server says of ada's membership.
fn of_team(answer: ResponseTemplate, token: Option<&'static str>) -> Steered {
    let base = ASKS.replace("states:", "approvers: {teams: [acme/Release]}\nstates:");
    let scene = Scene::of("/ll-loop approve 0123abcd").changed(|scene| {
        scene.base = Some(base);
        scene.env.extend(token.map(|token| ("LL_TEAM_TOKEN", token)));
    });
    let github = scene.mounted();
    let at = Mock::given(method("GET")).and(path("/orgs/acme/teams/release/memberships/ada"));
    let with = header("Authorization", "Bearer ghp_teams");
    github.mount(at.and(with).respond_with(answer));
    scene.steered_on(github)
}

#[test]
fn a_member_of_a_team_answers_where_a_token_tells_who_is_one() {
    let member =
        |state: &str| ResponseTemplate::new(200).set_body_json(json!({"state": state, "role": "member"}));
    let steered = of_team(member("active"), Some("ghp_teams")).does(DISPATCH, &going_on("501"));
    let requests = steered.github.received();
    assert!(requests.iter().position(|(request, _)| request == DISPATCH).unwrap() < 12, "{requests:?}");
    drop(of_team(member("pending"), Some("ghp_teams")).refuses("only `acme/Release` may answer"));
    drop(of_team(ResponseTemplate::new(404), Some("ghp_teams")).refuses("only `acme/Release` may answer"));
    drop(of_team(ResponseTemplate::new(403), Some("ghp_teams")).refuses("may not"));
    drop(of_team(member("active"), None).refuses("give one as `team-token`"));
}

#[test]
fn runs_are_repeated_resumed_stopped_delivered_and_fixed() {
    let red = |body: &str| Scene::of(body).changed(|scene| scene.statuses = vec![failed(9, "main", 70)]);
    let rerun = "POST /repos/octo/project/actions/runs/70/rerun-failed-jobs";
    drop(red("/ll-loop retry").steer().does(rerun, &json!({})));
    // The head has moved since, or the run is too old.
    let moved = red("/ll-loop retry main").changed(|scene| scene.run["head_sha"] = json!("2".repeat(40)));
    drop(moved.steer().does(DISPATCH, &json!({"ref": "refs/heads/change", "inputs": {}})));
    let old = red("/ll-loop retry").changed(|scene| scene.repeated = ResponseTemplate::new(403)).steer();
    assert_eq!(old.orders().last().unwrap().0, DISPATCH);
    let go_on = json!({"inputs": {"resume-from": "run:70", "sha": HEAD}});
    drop(red("/ll-loop resume 70").steer().does(DISPATCH, &go_on));
    drop(Scene::of("/ll-loop fix").steer().does(
        "POST /repos/octo/project/actions/workflows/fix.yml/dispatches",
        &json!({"ref": "refs/heads/change", "inputs": {}}),
    ));
    let other = Scene::of("/ll-loop fix tidy")
        .changed(|scene| scene.arguments.extend(["--fix-workflow", "mend.yml"]));
    drop(other.steer().does(
        "POST /repos/octo/project/actions/workflows/mend.yml/dispatches",
        &json!({"inputs": {"loop": "tidy"}}),
    ));
    let deliver = red("/ll-loop deliver").steer();
    assert_eq!(deliver.orders(), []);
    let out = deliver.project.read("out");
    assert!(out.contains("deliver-from<<") && out.contains("\n70\n") && out.contains("\nmain\n"), "{out}");
}

#[test]
fn a_day_has_a_budget_of_runs() {
    let fix = |max: &'static str| {
        let scene = Scene::of("/ll-loop fix").changed(|scene| scene.arguments.extend(["--max-day", max]));
        let github = scene.mounted();
        let started =
            ResponseTemplate::new(200).set_body_json(json!({"total_count": 5, "workflow_runs": []}));
        github.mount(
            Mock::given(method("GET")).and(path("/repos/octo/project/actions/runs")).respond_with(started),
        );
        scene.steered_on(github)
    };
    drop(fix("5").refuses("5 runs were started by a dispatch today"));
    drop(fix("6").does("POST /repos/octo/project/actions/workflows/fix.yml/dispatches", &json!({})));
}

#[test]
fn a_run_that_goes_on_is_cancelled_and_a_question_only_ends() {
    let on = status(9, "main", 70, "main-20251120T234847-70", ":pending");
    let steered = Scene::of("/ll-loop stop main").changed(|scene| scene.statuses = vec![on]).steer();
    let orders: Vec<String> = steered.orders().into_iter().map(|(request, _)| request).collect();
    let ended = format!("POST /repos/octo/project/statuses/{HEAD}");
    assert_eq!(orders, ["POST /repos/octo/project/actions/runs/70/cancel".to_owned(), ended.clone()]);
    // That it is over, the journal of a question says once a job has gone on with it, by this comment.
    for (body, started) in [
        ("/ll-loop stop 0123abcd", ResponseTemplate::new(200).set_body_json(json!({"workflow_run_id": 80}))),
        ("/ll-loop stop main", ResponseTemplate::new(422).set_body_json(json!({"message": "no such input"}))),
    ] {
        let is_started = body.contains("0123");
        let steered = Scene::of(body).changed(|scene| scene.started = started).steer();
        let orders = steered.orders();
        let mut requests: Vec<&str> = orders.iter().map(|(request, _)| request.as_str()).collect();
        // What is refused is asked once more, without what older servers do not know.
        requests.dedup();
        assert_eq!(requests, [ended.as_str(), DISPATCH]);
        let link = orders[0].1["target_url"].as_str().unwrap().to_owned();
        assert!(link.ends_with("@job@commit:error"), "{link}");
        assert_eq!(orders[1].1["inputs"], going_on("501")["inputs"]);
        let said = if is_started { "its journal ends as well" } else { "its journal does not say so" };
        assert!(steered.reply().unwrap().contains(said), "{:?}", steered.reply());
        assert_eq!(steered.reactions(), ["eyes", "+1"]);
    }
    // Code of nobody ends nothing, and its status does.
    let foreign = Scene::of("/ll-loop stop").changed(|scene| scene.run["head_repository"] = json!({"id": 2}));
    drop(foreign.steer().does(&ended, &json!({"state": "error"})));
}

#[test]
fn what_is_not_plain_is_asked_back() {
    let two = |body: &str| {
        Scene::of(body).changed(|scene| scene.statuses.push(question(8, "other", 71, "89abcdef")))
    };
    drop(two("/ll-loop approve").steer().refuses("name the code, `0123abcd` or `89abcdef`"));
    drop(two("/ll-loop approve nobody").steer().refuses("no question is open"));
    drop(two("/ll-loop stop").steer().refuses("more than one run is meant"));
    drop(two("/ll-loop approve main").steer().does(DISPATCH, &going_on("501")));
    let again = Scene::of("/ll-loop approve")
        .changed(|scene| scene.statuses.push(question(5, "main", 70, "89abcdef")));
    drop(again.steer().refuses("has asked more than once"));
    // It was answered, and the run goes on.
    let on = Scene::of("/ll-loop approve 0123abcd").changed(|scene| {
        scene.statuses.push(status(10, "main", 75, "main-20251120T234847-70", ":pending"));
    });
    drop(on.steer().refuses("no question with the code `0123abcd` is open"));
    drop(Scene::of("/ll-loop retry").steer().refuses("no run failed"));
    drop(Scene::of("/ll-loop resume").steer().refuses("no run failed or was handed off"));
}

#[test]
fn one_reply_is_kept_and_what_was_done_is_not_done_again() {
    let first = Scene::of("/ll-loop help").steer();
    let reply = first.reply().unwrap();
    assert!(reply.contains("`/ll-loop retry`"), "{reply}");
    let sticky = |text: &str, author: &str| {
        let mut comment = Scene::of(text).comment;
        comment["id"] = json!(300);
        comment["user"] = json!({"id": 41, "login": author, "type": "Bot"});
        comment
    };
    let bot = "github-actions[bot]";
    // The same job again.
    let replayed =
        Scene::of("/ll-loop help").changed(|scene| scene.others = vec![sticky(&reply, bot)]).steer();
    replayed.says("was heard already");
    assert_eq!(replayed.reply(), None);
    let done = Scene::of("/ll-loop approve").steer().reply().unwrap();
    let later = |body: &str, author: &str| {
        let others = vec![sticky(&done, author)];
        Scene::of(body).changed(|scene| {
            scene.others = others;
            for at in ["payload", "comment"] {
                let value = if at == "payload" { &mut scene.payload["comment"] } else { &mut scene.comment };
                value["id"] = json!(COMMENT);
            }
        })
    };
    let mut heard_before = later("/ll-loop approve", bot);
    heard_before.others[0]["body"] = json!(done.replace("501", "499"));
    let again = heard_before.steer().refuses("the last command said the same");
    let patched = again.github.changes().into_iter().find(|(request, _)| request.starts_with("PATCH"));
    assert_eq!(patched.unwrap().0, "PATCH /repos/octo/project/issues/comments/300");
    // Somebody else has copied it.
    let copied = later("/ll-loop approve", "mallory").steer().does(DISPATCH, &going_on("501"));
    assert!(copied.github.changes().iter().all(|(request, _)| !request.starts_with("PATCH")));
}

#[test]
fn on_the_pull_request_of_a_fork_little_is_followed() {
    let fork = |body: &str| {
        Scene::of(body).changed(|scene| {
            scene.pull["head"]["repo"] = json!({"full_name": "mallory/project"});
            scene.run["head_repository"] = json!({"id": 2});
            scene.statuses = vec![failed(9, "main", 70)];
        })
    };
    for body in ["approve 0123abcd", "reject", "answer 0123abcd x", "resume", "deliver", "fix"] {
        drop(fork(&format!("/ll-loop {body}")).steer().refuses("of a fork"));
    }
    let rerun = "POST /repos/octo/project/actions/runs/70/rerun-failed-jobs";
    drop(fork("/ll-loop retry").steer().does(rerun, &json!({})));
    let old = fork("/ll-loop retry").changed(|scene| scene.repeated = ResponseTemplate::new(403)).steer();
    assert!(old.orders().iter().all(|(request, _)| request == rerun), "{:?}", old.orders());
    let moved = fork("/ll-loop retry").changed(|scene| scene.run["head_sha"] = json!("2".repeat(40)));
    drop(moved.steer().refuses("not one of this repository's own code"));
    drop(fork("/ll-loop help").steer().ran.code(0).says("done"));
}

/// One thing that is wrong with a comment that is followed otherwise.
type Forgery = (&'static str, fn(&mut Scene));

const FORGERIES: &[Forgery] = &[
    ("edited", |scene| scene.edited = json!({"data": {"node": {"lastEditedAt": "2026-01-01T00:00:00Z"}}})),
    ("unknown to GraphQL", |scene| scene.edited = json!({"data": {"node": null}})),
    ("edited later", |scene| scene.comment["updated_at"] = json!("2099-01-01T00:00:00Z")),
    ("without a node", |scene| scene.comment["node_id"] = Value::Null),
    ("a reader", |scene| scene.permission["permission"] = json!("read")),
    ("nobody", |scene| scene.permission["permission"] = json!("none")),
    ("a triager", |scene| scene.permission["permission"] = json!("triage")),
    ("a role of one's own", |scene| scene.permission["permission"] = json!("Write")),
    ("renamed", |scene| scene.permission["user"]["id"] = json!(70)),
    ("an account that is gone", |scene| scene.permission["user"] = Value::Null),
    ("a freed name", |scene| scene.comment["user"]["id"] = json!(70)),
    ("a bot", |scene| scene.comment["user"]["type"] = json!("Bot")),
    ("an app", |scene| scene.comment["performed_via_github_app"] = json!({"id": 1})),
    ("closed", |scene| scene.pull["state"] = json!("closed")),
    ("merged", |scene| scene.pull["state"] = json!("merged")),
    ("a fork", |scene| scene.pull["head"]["repo"] = json!({"full_name": "mallory/project"})),
    ("a fork that is gone", |scene| scene.pull["head"]["repo"] = Value::Null),
    ("a look-alike repository", |scene| {
        scene.pull["head"]["repo"] = json!({"full_name": "octo/pr\u{43e}ject"});
    }),
    ("a longer repository", |scene| scene.pull["head"]["repo"] = json!({"full_name": "octo/project2"})),
    ("no status", |scene| scene.statuses.clear()),
    ("a status of another repository", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("octo/project", "octo/other");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    ("a status without a run", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("runs/70", "runs/../../x");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    ("another question", |scene| scene.statuses = vec![question(9, "main", 70, "89abcdef")]),
    ("answered", |scene| {
        scene.statuses.push(status(10, "main", 75, "main-20251120T234847-70", ":pending"));
    }),
    ("stopped", |scene| scene.statuses.push(status(10, "main", 70, "main-20251120T234847-70", ":error"))),
    ("over", |scene| {
        let url = scene.statuses[0]["target_url"].as_str().unwrap().replace("4000000000000", "1000");
        scene.statuses[0]["target_url"] = json!(url);
    }),
    ("code of a fork", |scene| scene.run["head_repository"] = json!({"id": 2})),
    ("code of nobody", |scene| scene.run["head_repository"] = Value::Null),
    ("no workflow", |scene| scene.run["path"] = json!("dynamic/pages")),
    ("a workflow elsewhere", |scene| scene.run["path"] = json!("../../x.yml")),
    ("not named", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {users: [grace]}\nstates:"));
    }),
    ("a look-alike name", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {users: ['ada2', 'xada']}\nstates:"));
    }),
    ("a team", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {teams: [acme/release]}\nstates:"));
    }),
    ("who started the run", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {users: [ada]}\nstates:"));
        scene.run["actor"] = json!({"id": 7});
    }),
    ("who had the run started by a comment", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {users: [ada]}\nstates:"));
        scene.run["event"] = json!("workflow_dispatch");
        let mut asked = scene.comment.clone();
        (asked["id"], asked["body"]) = (json!(400), json!("/ll-loop fix"));
        scene.others.push(asked);
    }),
    ("the author", |scene| {
        scene.base = Some(ASKS.replace("states:", "approvers: {users: [ada]}\nstates:"));
        scene.pull["user"]["id"] = json!(7);
    }),
    ("a base that asks nobody", |scene| {
        scene.base = Some(ASKS.replace("  ask:", "  asks:").replace("next: ask", "next: asks"));
    }),
    ("a base that is no loop", |scene| scene.base = Some("[".to_owned())),
    ("another issue", |scene| {
        scene.comment["issue_url"] = json!("https://api.github.com/repos/octo/project2/issues/3");
    }),
    ("another comment", |scene| scene.comment["id"] = json!(502)),
    ("text that changed on the way", |scene| scene.comment["body"] = json!("never mind")),
    ("other code than the payload's", |scene| scene.comment["body"] = json!("/ll-loop approve 77777777")),
    ("another SHA", |scene| scene.comment["body"] = json!(format!("/ll-loop approve {CODE} 2222222"))),
    ("pushed for review", |scene| {
        scene.pull["head"]["ref"] = json!("refs/pull/3/head");
        scene.pull["head"]["repo"]["id"] = json!(1);
    }),
    ("an association that is a lie", |scene| {
        scene.comment["author_association"] = json!("OWNER");
        scene.payload["comment"]["author_association"] = json!("OWNER");
        scene.permission["permission"] = json!("read");
    }),
    ("a writer in the payload", |scene| {
        scene.payload["sender"] = json!({"id": 1, "login": "owner", "type": "User"});
        scene.payload["comment"]["user"] = json!({"id": 1, "login": "owner", "type": "User"});
        scene.permission["permission"] = json!("read");
    }),
    ("a question that changed", |scene| {
        // The run asked again about another tree; the first code is not open any more.
        scene.statuses.push(question(10, "main", 70, "89abcdef"));
        scene.comment["body"] = json!("/ll-loop approve 0123abcd");
    }),
    ("an edit", |scene| scene.payload["action"] = json!("edited")),
    ("a deletion", |scene| scene.payload["action"] = json!("deleted")),
];

/// Tells that nothing was done, whatever was said.
#[track_caller]
fn nothing_done(name: &str, scene: Scene) {
    let steered = scene.steer();
    assert_eq!(steered.orders(), [], "{name}: {}", steered.ran.all());
    for line in steered.ran.stdout.lines() {
        assert!(!line.trim_start().starts_with("::"), "{name}: {line}");
    }
    assert!(!steered.project.exists("pwned"), "{name}");
    let out = if steered.project.exists("out") { steered.project.read("out") } else { String::new() };
    assert!(!out.contains("\ndone\n") && !out.contains("pwned"), "{name}: {out}");
    if let Some(reply) = steered.reply() {
        assert!(!reply.starts_with("/ll-loop"), "{name}");
        for hostile in ["<script", "@everyone", "](http", "<img"] {
            assert!(!reply.contains(hostile), "{name}: {reply}");
        }
    }
}

/// Each of them alone, with a code and without one.
#[test]
fn no_forgery_of_what_the_server_knows_is_followed() {
    for (name, forge) in FORGERIES {
        nothing_done(name, Scene::of("/ll-loop approve 0123abcd").changed(forge));
    }
}

#[test]
fn no_forgery_without_a_code_is_followed() {
    for (name, forge) in FORGERIES.iter().filter(|(name, _)| *name != "another question") {
        nothing_done(name, Scene::of("/ll-loop approve").changed(forge));
    }
}

/// Who may not answer may not steer either.
#[test]
fn no_forgery_of_another_command_is_followed() {
    let of_people = FORGERIES.iter().take_while(|(name, _)| *name != "a fork");
    for (name, forge) in of_people {
        for verb in ["stop", "fix"] {
            nothing_done(&format!("{verb}, {name}"), Scene::of(&format!("/ll-loop {verb}")).changed(forge));
        }
    }
}

/// As on Gitea, where the token of a job may not ask.
#[test]
fn who_nobody_can_ask_about_is_told_so() {
    let scene = Scene::of("/ll-loop approve 0123abcd");
    let github = Github::silent();
    let denied = Mock::given(path("/repos/octo/project/collaborators/ada/permission"));
    github.mount(denied.respond_with(ResponseTemplate::new(403)));
    let github = scene.mounted_on(github);
    let steered = scene.steered_on(github);
    let steered = steered.refuses("the token may not ask who may write");
    assert!(steered.reply().unwrap().contains("❌"));
}

/// A comment that was deleted before the job came to it, and the answer of another one to its id.
#[test]
fn a_comment_that_is_gone_is_not_followed() {
    let scene = Scene::of("/ll-loop approve 0123abcd");
    let github = Github::silent();
    let gone = Mock::given(path(format!("/repos/octo/project/issues/comments/{COMMENT}")));
    github.mount(gone.respond_with(ResponseTemplate::new(404)));
    let steered = scene.steered_on(github);
    steered.says("the comment is gone");
    assert_eq!((steered.orders(), steered.reply()), (Vec::new(), None));
}

/// Words that are no command, or one that nothing comes of.
#[test]
fn no_forged_words_are_followed() {
    let good = "/ll-loop approve 0123abcd";
    let mut bodies: Vec<String> = [
        " ",
        "\t",
        "    ",
        "> ",
        ">",
        "- ",
        "* ",
        "1. ",
        "`",
        "```\n",
        "~~~\n",
        "\n",
        "\r\n",
        "x ",
        "@bot ",
        "#",
        "\u{feff}",
        "\u{200b}",
        "\u{a0}",
        "\u{202e}",
        "\u{2028}",
        "\\",
        "<!-- ",
        "<p>",
        "<code>",
        "\"",
        "'",
        "(",
        "[",
        "//",
        ".",
        "LGTM\n",
        "Hello,\n\n",
        "On Monday, ada wrote:\n> ",
        "<details>\n",
        "| ",
        "> > ",
    ]
    .iter()
    .map(|before| format!("{before}{good}"))
    .collect();
    bodies.extend(
        [
            "/LL-loop",
            "/ll_loop",
            "/ll\u{2010}loop",
            "/II-loop",
            "\u{2215}ll-loop",
            "\u{ff0f}ll-loop",
            "/ll-l\u{3bf}op",
            "/ll-loop:",
            "/ll-loop/",
            "/ll-loopapprove",
            "/ll-loop\u{a0}",
            "/ll-loop\u{200b}",
            "ll-loop",
            "/ll loop",
        ]
        .iter()
        .map(|word| format!("{word} approve {CODE}")),
    );
    bodies.extend(
        [
            "Approve",
            "approved",
            "yes",
            "approve;reject",
            "$(approve)",
            "`approve`",
            "--approve",
            "merge",
            "run",
            "appro\u{2060}ve",
            "\u{430}pprove",
        ]
        .iter()
        .map(|verb| format!("/ll-loop {verb} {CODE}")),
    );
    bodies.extend(
        [
            "approve 0123abce",
            "approve 0123ABCD",
            "approve 0123abc",
            "approve $(touch pwned)",
            "approve `touch pwned`",
            "approve ;touch pwned",
            "approve 0123abcd 2222222",
            "approve 0123abcd 0123abcd extra",
            "approve -f",
            "approve <script>alert(1)</script>",
            "approve @everyone",
            "approve [x](http://evil)",
            "approve ::set-output",
            "approve 0123abcd\u{0}",
            "approve *",
            "approve ../../..",
            "answer",
            "answer 0123abcd",
            "answer 89abcdef yes",
            "approve 0123abcd; echo pwned=1 >>$GITHUB_OUTPUT",
            "fix ../../deploy.yml",
            "fix --fix-workflow",
            "fix a%0Ab",
            "retry $(touch pwned)",
            "stop *",
            "deliver ../x",
            "deliver",
            "resume main",
            "retry",
            "::error::x",
            "approve <img src=x onerror=alert(1)>",
            "approve %0A::add-mask::x",
        ]
        .iter()
        .map(|rest| format!("/ll-loop {rest}")),
    );
    bodies.push(format!("/ll-loop answer {CODE} {}", "x".repeat(10 << 20)));
    bodies.push(format!("{}\n{good}", "x".repeat(10 << 20)));
    bodies.push(String::new());
    assert!(bodies.len() + 2 * FORGERIES.len() + 30 >= 200, "only {} words", bodies.len());
    for body in bodies {
        let name: String = body.chars().take(60).collect();
        nothing_done(&name, Scene::of(&body));
    }
}
