//! The model itself is tested: a rule that it does not enforce is one that nobody keeps.

use serde_json::{Value, json};

use super::model::{Hub, Level, Limit, Owner, REPOSITORY, Stands, TOKEN, Token};
use crate::forge::git_server::Bare;
use crate::forge::web::{Fault, Planned, When};

/// Somebody who speaks to the model.
struct Client<'h> {
    hub: &'h Hub,
    bare: Bare,
    agent: ureq::Agent,
}

const ZERO: &str = "0000000000000000000000000000000000000000";

impl<'h> Client<'h> {
    /// Meets a repository with two commits on its base.
    fn of(hub: &'h Hub) -> (Self, String, String) {
        let bare = hub.bare();
        let first = bare.commits("main", &[("a.txt", Some("1\n2\n3\n")), ("gone", Some("x"))], "first");
        let second = bare.commits("main", &[("b.txt", Some("b\n"))], "second");
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        (Self { hub, bare, agent }, first, second)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value, String) {
        let url = format!("{}{path}", self.hub.web.url());
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(url)
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(if body.is_null() { String::new() } else { body.to_string() })
            .unwrap();
        let mut answer = self.agent.run(request).unwrap();
        let needs = answer.headers().get("x-accepted-github-permissions");
        let needs = needs.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default(), needs)
    }

    fn rest(&self, method: &str, at: &str, body: &Value) -> (u16, Value) {
        let (status, body, _) = self.call(method, &format!("/api/v3/repos/{REPOSITORY}{at}"), body);
        (status, body)
    }

    /// Returns the field, or the type of the error.
    fn graphql(&self, field: &str, input: &Value) -> Result<Value, String> {
        let query = format!("mutation($input: I!) {{ {field}(input: $input) {{ clientMutationId }} }}");
        let body = json!({"query": query, "variables": {"input": input}});
        let (status, answer, _) = self.call("POST", "/api/graphql", &body);
        assert_eq!(status, 200);
        match answer["errors"][0]["type"].as_str() {
            Some(kind) => Err(kind.to_owned()),
            None => Ok(answer["data"][field].clone()),
        }
    }

    fn commit(&self, branch: &str, expected: &str, changes: Value) -> Result<Value, String> {
        self.graphql(
            "createCommitOnBranch",
            &json!({
                "branch": {"repositoryNameWithOwner": REPOSITORY, "branchName": branch},
                "expectedHeadOid": expected, "message": {"headline": "h", "body": "b"}, "fileChanges": changes,
            }),
        )
    }

    fn update(&self, updates: &Value) -> Result<Value, String> {
        self.graphql("updateRefs", &json!({"repositoryId": "R_1", "refUpdates": updates}))
    }

    fn open(&self, head: &str) -> (u16, Value) {
        self.rest("POST", "/pulls", &json!({"title": "t", "head": head, "base": "main", "body": ""}))
    }
}

fn text(answer: &Value) -> String {
    answer["errors"][0]["message"].as_str().or(answer["message"].as_str()).unwrap_or_default().to_owned()
}

#[test]
fn a_commit_on_a_branch_is_made_only_where_the_branch_is_expected() {
    let hub = Hub::start();
    let (client, first, second) = Client::of(&hub);
    let addition = |path: &str| json!({"additions": [{"path": path, "contents": "aGk="}]});
    assert_eq!(client.commit("main", &first, addition("c")).unwrap_err(), "STALE_DATA");
    assert_eq!(client.commit("other", &first, addition("c")).unwrap_err(), "NOT_FOUND");
    for path in ["/c", "../c", "a/.git/c", ""] {
        assert_eq!(client.commit("main", &second, addition(path)).unwrap_err(), "UNPROCESSABLE", "{path}");
    }
    let missing = json!({"deletions": [{"path": "nothing"}]});
    assert_eq!(client.commit("main", &second, missing).unwrap_err(), "UNPROCESSABLE");
    assert_eq!(client.bare.git(&["rev-parse", "main"]), second);
    let script = client.bare.git(&["rev-parse", "main:a.txt"]);
    let tree = json!({"base_tree": second, "tree": [{"path": "run", "mode": "100755", "type": "blob", "sha": script}]});
    let tree = client.rest("POST", "/git/trees", &tree).1["sha"].clone();
    let made = json!({"message": "m", "tree": tree, "parents": [second]});
    let third = client.rest("POST", "/git/commits", &made).1["sha"].as_str().unwrap().to_owned();
    client.update(&json!([{"name": "refs/heads/main", "beforeOid": second, "afterOid": third}])).unwrap();
    let changes =
        json!({"additions": [{"path": "run", "contents": "aGk="}], "deletions": [{"path": "gone"}]});
    let done = client.commit("main", &third, changes).unwrap();
    let id = done["commit"]["oid"].as_str().unwrap();
    let listed = client.bare.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", id]);
    assert_eq!(listed, "100644 a.txt\n100644 b.txt\n100644 run", "there is but one mode");
    let (_, shown) = client.rest("GET", &format!("/git/commits/{id}"), &Value::Null);
    assert_eq!((&shown["verification"]["verified"], &shown["message"]), (&json!(true), &json!("h\n\nb")));
}

#[test]
fn refs_are_moved_together_and_only_from_where_they_are_expected() {
    let hub = Hub::start();
    let (client, first, second) = Client::of(&hub);
    let update = |name: &str, before: &str, after: &str, force: bool| json!({"name": name, "beforeOid": before, "afterOid": after, "force": force});
    let (x, y) = ("refs/heads/x", "refs/ll-loop/delivered/a");
    client.update(&json!([update(x, ZERO, &second, false), update(y, ZERO, &second, false)])).unwrap();
    let before = client.bare.refs();
    for wrong in [
        json!([update(y, &second, &first, true), update(x, &first, &first, true)]),
        json!([update(y, &second, &first, true), update(x, ZERO, &first, true)]),
        json!([update(y, &second, &first, true), update("refs/heads/x/y", ZERO, &first, true)]),
        json!([update(y, &second, &first, true), update("refs/heads/n", ZERO, &"4".repeat(40), true)]),
        json!([update(y, &second, &first, false)]),
        json!([update("refs/pull/1/head", ZERO, &first, false)]),
        json!([update("refs/heads/../x", ZERO, &first, false)]),
    ] {
        assert_eq!(client.update(&wrong).unwrap_err(), "UNPROCESSABLE", "{wrong}");
        assert_eq!(client.bare.refs(), before, "{wrong}");
    }
    client.update(&json!([update(x, &second, ZERO, false), update(y, &second, &first, true)])).unwrap();
    assert_eq!(client.bare.refs().get(x), None);
    assert_eq!(client.bare.refs()[y], first);
    hub.set(|state| state.protected.insert("refs/heads/*".to_owned()));
    assert_eq!(client.update(&json!([update(x, ZERO, &first, true)])).unwrap_err(), "UNPROCESSABLE");
    let made = client.rest("POST", "/git/refs", &json!({"ref": x, "sha": first}));
    assert_eq!(made.0, 422);
}

#[test]
fn the_refs_of_the_other_api_have_the_same_rules() {
    let hub = Hub::start();
    let (client, first, second) = Client::of(&hub);
    let make = |name: &str, id: &str| client.rest("POST", "/git/refs", &json!({"ref": name, "sha": id}));
    assert_eq!(make("refs/heads/x", &second).0, 201);
    assert_eq!(text(&make("refs/heads/x", &second).1), "Reference already exists");
    assert_eq!(text(&make("refs/heads/n", &"4".repeat(40)).1), "Object does not exist");
    assert_eq!(make("heads/n", &second).0, 422);
    let back = client.rest("PATCH", "/git/refs/heads/x", &json!({"sha": first}));
    assert_eq!(text(&back.1), "Update is not a fast forward");
    assert_eq!(client.rest("PATCH", "/git/refs/heads/x", &json!({"sha": first, "force": true})).0, 200);
    assert_eq!(client.rest("GET", "/git/ref/heads/x", &Value::Null).1["object"]["sha"], first);
    assert_eq!(client.rest("GET", "/git/ref/heads", &Value::Null).0, 404);
    let matching = client.rest("GET", "/git/matching-refs/heads/", &Value::Null).1;
    assert_eq!(matching.as_array().unwrap().len(), 2);
    assert_eq!(client.rest("DELETE", "/git/refs/heads/x", &Value::Null).0, 204);
    assert_eq!(client.rest("DELETE", "/git/refs/heads/x", &Value::Null).0, 422);
    let bad =
        |entry: Value| client.rest("POST", "/git/trees", &json!({"base_tree": first, "tree": [entry]})).0;
    let blob = client.bare.git(&["rev-parse", "main:a.txt"]);
    assert_eq!(bad(json!({"path": "../x", "mode": "100644", "type": "blob", "sha": blob})), 422);
    assert_eq!(bad(json!({"path": "x", "mode": "100666", "type": "blob", "sha": blob})), 422);
    assert_eq!(bad(json!({"path": "nothing", "mode": "100644", "type": "blob", "sha": null})), 422);
    assert_eq!(bad(json!({"path": "x", "mode": "100644", "type": "blob", "sha": ZERO})), 422);
    assert_eq!(bad(json!({"path": "gone", "mode": "100644", "type": "blob", "sha": null})), 201);
}

#[test]
fn who_signs_is_who_is_trusted() {
    let hub = Hub::start();
    let (client, _, second) = Client::of(&hub);
    let tree = client.bare.git(&["rev-parse", "main^{tree}"]);
    let plain = json!({"message": "m", "tree": tree, "parents": [second]});
    let mut authored = plain.clone();
    authored["author"] = json!({"name": "a", "email": "a@example.org"});
    let verified =
        |body: &Value| client.rest("POST", "/git/commits", body).1["verification"]["verified"].clone();
    assert_eq!((verified(&plain), verified(&authored)), (json!(true), json!(false)));
    hub.admit(TOKEN, Token::of(Owner::Person));
    assert_eq!(verified(&plain), false);
}

#[test]
fn a_pull_request_follows_its_branches() {
    let hub = Hub::start();
    let (client, first, second) = Client::of(&hub);
    let set = |id: &str| client.bare.git(&["update-ref", "refs/heads/x", id]);
    assert_eq!(client.open("x").1["errors"][0]["field"], "head");
    set(&first);
    assert_eq!(text(&client.open("x").1), "No commits between main and x");
    let fix = client.bare.commits("x", &[("a.txt", Some("fixed"))], "fix");
    assert_eq!(client.open("x").0, 201);
    assert_eq!(text(&client.open("x").1), "A pull request already exists for octo:x.");
    set(&second);
    set(&fix);
    assert_eq!(hub.pulls()[0].stands, Stands::Open, "nobody looked in between");
    client.rest("PATCH", "/git/refs/heads/x", &json!({"sha": second, "force": true}));
    assert_eq!((hub.pulls()[0].stands, hub.pulls()[0].is_dead), (Stands::Closed, true));
    client.rest("PATCH", "/git/refs/heads/x", &json!({"sha": fix, "force": true}));
    assert_eq!(client.rest("PATCH", "/pulls/1", &json!({"state": "open"})).0, 422);
    assert_eq!(client.open("x").0, 201);
    hub.merge(2);
    let all = client.rest("GET", "/pulls?state=all&head=octo:x&base=main", &Value::Null).1;
    assert_eq!((&all[0]["number"], &all[0]["state"]), (&json!(2), &json!("closed")));
    assert!(all[0]["merged_at"].is_string() && all[1]["merged_at"].is_null());
    client.bare.commits("x", &[("c", Some("c"))], "more");
    assert_eq!(client.open("x").0, 201);
    client.bare.git(&["update-ref", "-d", "refs/heads/x"]);
    assert_eq!(hub.pulls()[2].stands, Stands::Closed);
    let open = client.rest("GET", "/pulls", &Value::Null).1;
    assert_eq!(open, json!([]));
    client.bare.commits("y", &[("y", Some("y"))], "y");
    hub.set(|state| state.has_drafts = false);
    let draft = json!({"title": "t", "head": "y", "base": "main", "draft": true});
    assert_eq!(client.rest("POST", "/pulls", &draft).0, 422);
    hub.set(|state| state.has_drafts = true);
    assert_eq!(client.rest("POST", "/pulls", &draft).1["draft"], true);
    client.rest("PATCH", "/pulls/4", &json!({"draft": false, "title": "new"}));
    assert!(hub.pulls()[3].is_draft && hub.pulls()[3].title == "new");
    let ready = json!({"pullRequestId": "PR_4"});
    client.graphql("markPullRequestReadyForReview", &ready).unwrap();
    assert_eq!(client.graphql("markPullRequestReadyForReview", &ready).unwrap_err(), "UNPROCESSABLE");
    assert!(!hub.pulls()[3].is_draft);
}

#[test]
fn one_comment_outside_of_the_hunks_rejects_the_whole_review() {
    let hub = Hub::start();
    let (client, ..) = Client::of(&hub);
    let long: String = (1..=30).map(|n| format!("{n}\n")).collect();
    client.bare.commits("main", &[("long", Some(&long))], "long");
    let main = client.bare.git(&["rev-parse", "main"]);
    client.bare.git(&["update-ref", "refs/heads/x", &main]);
    let changed = long.replacen("\n5\n", "\nfive\n", 1).replacen("\n25\n", "\n", 1);
    client.bare.commits("x", &[("long", Some(&changed))], "change");
    assert_eq!(client.open("x").0, 201);
    let comment = |line: u64, more: Value| {
        let mut one = json!({"path": "long", "line": line, "side": "RIGHT", "body": "b"});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    let review = |comments: Value| {
        client.rest(
            "POST",
            "/pulls/1/reviews",
            &json!({"event": "COMMENT", "body": "all", "comments": comments}),
        )
    };
    let good = comment(5, json!({}));
    for (bad, why) in [
        (comment(15, json!({})), "Line could not be resolved"),
        (comment(1, json!({})), "Line could not be resolved"),
        (comment(5, json!({"path": "b.txt"})), "Path could not be resolved"),
        (comment(5, json!({"start_line": 6})), "Start line must precede the end line."),
        (comment(25, json!({"start_line": 5})), "Start line must be part of the same hunk as the line."),
    ] {
        let (status, answer) = review(json!([good, bad]));
        assert_eq!((status, answer["errors"][0].as_str().unwrap()), (422, why));
    }
    assert!(hub.pulls()[0].reviews.is_empty());
    let fine = [
        good,
        comment(2, json!({})),
        comment(8, json!({"start_line": 5})),
        comment(25, json!({"side": "LEFT"})),
    ];
    assert_eq!(review(json!(fine)).0, 200);
    assert_eq!(client.rest("GET", "/pulls/1/reviews", &Value::Null).1[0]["state"], "COMMENTED");
    let files = client.rest("GET", "/pulls/1/files", &Value::Null).1;
    assert!(files[0]["patch"].as_str().unwrap().starts_with("@@ -2,7 +2,7 @@"), "{files}");
}

#[test]
fn a_token_may_only_what_it_was_given() {
    let hub = Hub::start();
    let (client, _, second) = Client::of(&hub);
    hub.admit(TOKEN, Token::of(Owner::Actions).may("contents", Some(Level::Read)).may("pull_requests", None));
    let at = |method: &str, path: &str, body: &Value| {
        client.call(method, &format!("/api/v3/repos/{REPOSITORY}{path}"), body)
    };
    assert_eq!(at("GET", "/git/ref/heads/main", &Value::Null).0, 200);
    let (status, _, needs) = at("POST", "/git/refs", &json!({"ref": "refs/heads/x", "sha": second}));
    assert_eq!((status, needs.as_str()), (403, "contents=write"));
    let (status, _, needs) = at("GET", "/pulls", &Value::Null);
    assert_eq!((status, needs.as_str()), (403, "pull_requests=read"));
    let changes = json!({"additions": [{"path": "c", "contents": "aGk="}]});
    assert_eq!(client.commit("main", &second, changes).unwrap_err(), "FORBIDDEN");
    hub.admit(TOKEN, Token::of(Owner::Actions));
    let workflow = json!({"additions": [{"path": ".github/workflows/a.yml", "contents": "aGk="}]});
    assert_eq!(client.commit("main", &second, workflow).unwrap_err(), "FORBIDDEN");
    hub.set(|state| state.actions_may_open = false);
    client.bare.commits("x", &[("c", Some("c"))], "c");
    let (status, answer) = client.open("x");
    assert_eq!(
        (status, text(&answer)),
        (403, "GitHub Actions is not permitted to create or approve pull requests.".to_owned())
    );
    hub.admit("ghs_other", Token::of(Owner::App));
    assert_eq!(client.call("GET", "/api/v3/user", &Value::Null).0, 403);
}

#[test]
fn limits_and_faults_meet_the_requests_they_are_planned_for() {
    let hub = Hub::start();
    let (client, _, second) = Client::of(&hub);
    let make = |name: &str| client.rest("POST", "/git/refs", &json!({"ref": name, "sha": second})).0;
    hub.begin(Some(Planned { at: 1, count: 1, fault: Fault::Error, when: When::Before }));
    assert_eq!([make("refs/heads/a"), make("refs/heads/b"), make("refs/heads/b")], [201, 500, 201]);
    hub.begin(Some(Planned { at: 0, count: 2, fault: Fault::Error, when: When::After }));
    assert_eq!([make("refs/heads/c"), make("refs/heads/d"), make("refs/heads/d")], [500, 500, 422]);
    hub.begin(Some(Planned { at: 0, count: 1, fault: Fault::Lost, when: When::After }));
    let url = format!("{}/api/v3/repos/{REPOSITORY}", hub.web.url());
    assert!(client.agent.get(&url).header("authorization", format!("Bearer {TOKEN}")).call().is_err());
    assert_eq!(hub.web.log(), [format!("GET /api/v3/repos/{REPOSITORY} lost")]);
    hub.begin(None);
    hub.set(|state| state.limited = Some((0, 2, Limit::Secondary(1))));
    assert_eq!([make("refs/heads/e"), make("refs/heads/e"), make("refs/heads/e")], [403, 403, 201]);
    assert_eq!(hub.writes().len(), 3);
}
