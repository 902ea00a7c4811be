//! A small GitHub for the tests of this directory: it keeps refs, objects and pull requests, and goes wrong as it is
//! told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wiremock::matchers::any;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use super::super::api::Api;
use super::super::http::Transport;
use super::super::testing::{Pauses, TestServer};
use crate::base::text::{hex, percent_decoded};

/// Files of a tree: their modes and contents by their paths.
pub(super) type Files = BTreeMap<String, (String, Vec<u8>)>;

pub(super) const ZERO: &str = "0000000000000000000000000000000000000000";

/// When a request goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Before,
    After,
}

#[derive(Clone)]
pub(super) struct StoredCommit {
    pub(super) tree: String,
    pub(super) parents: Vec<String>,
    pub(super) message: String,
    pub(super) verified: bool,
}

#[allow(clippy::struct_excessive_bools, reason = "each is one odd thing that a server may do")]
pub(super) struct FakeRepository {
    pub(super) refs: BTreeMap<String, String>,
    pub(super) commits: BTreeMap<String, StoredCommit>,
    pub(super) trees: BTreeMap<String, Files>,
    pub(super) blobs: BTreeMap<String, Vec<u8>>,
    pub(super) pulls: Vec<Value>,
    /// What it answers to requests whose method, path and document hold a text, in place of doing them.
    pub(super) answers: Vec<(&'static str, ResponseTemplate)>,
    /// Requests from the first number on and before the second one have no answer.
    pub(super) trouble: Option<(usize, usize, When)>,
    /// The same for answers that are a limit.
    pub(super) limited: Option<(usize, ResponseTemplate)>,
    /// A ref that somebody else moves just before all refs are to be moved.
    pub(super) raced: Option<(String, Option<String>)>,
    /// Whether somebody else moves all refs to the same commit just before.
    pub(super) twin: bool,
    pub(super) signs: bool,
    /// Whether a commit on a branch gets a file that nobody asked for.
    pub(super) adds_to_commits: bool,
    /// Whether a tree does.
    pub(super) adds_to_trees: bool,
    pub(super) login: &'static str,
    pub(super) now: i64,
    pub(super) asked: usize,
}

#[derive(Clone)]
pub(super) struct Fake(Arc<Mutex<FakeRepository>>);

pub(super) fn id(what: &[u8]) -> String {
    hex(&Sha256::digest(what)[..20])
}

pub(super) fn tree_id(files: &Files) -> String {
    id(format!("{files:?}").as_bytes())
}

pub(super) fn files(files: &[(&str, &str, &str)]) -> Files {
    files
        .iter()
        .map(|(path, mode, text)| ((*path).into(), ((*mode).into(), text.as_bytes().to_vec())))
        .collect()
}

/// An error of GraphQL.
pub(super) fn wrong(kind: &str, message: &str) -> ResponseTemplate {
    let error = json!({"type": kind, "message": message});
    ResponseTemplate::new(200).set_body_json(json!({"data": {"x": null}, "errors": [error]}))
}

pub(super) fn said(status: u16, message: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"message": message}))
}

/// What is wrong with a value.
pub(super) fn unfit(errors: &Value) -> ResponseTemplate {
    ResponseTemplate::new(422).set_body_json(json!({"message": "Validation Failed", "errors": errors}))
}

impl Fake {
    /// A repository with one commit on `main`.
    pub(super) fn new(base: &Files) -> Self {
        let mut content = FakeRepository {
            refs: BTreeMap::new(),
            commits: BTreeMap::new(),
            trees: BTreeMap::new(),
            blobs: BTreeMap::new(),
            pulls: Vec::new(),
            answers: Vec::new(),
            trouble: None,
            limited: None,
            raced: None,
            twin: false,
            signs: true,
            adds_to_commits: false,
            adds_to_trees: false,
            login: "helper[bot]",
            now: 1_800_000_000,
            asked: 0,
        };
        let tree = content.tree(base.clone());
        let commit = content.commit(tree, vec![], "begin".to_owned());
        content.refs.insert("refs/heads/main".to_owned(), commit);
        Self(Arc::new(Mutex::new(content)))
    }

    pub(super) fn content(&self) -> MutexGuard<'_, FakeRepository> {
        self.0.lock().unwrap()
    }

    pub(super) fn serve(&self) -> (TestServer, Api, Pauses) {
        let (server, pauses) = (TestServer::start(), Pauses::default());
        server.mount(Mock::given(any()).respond_with(self.clone()));
        let transport = Transport::default().pause(pauses.pause());
        let api = Api::new(&server.address(), Some("ghs_geheim".to_owned()), transport);
        (server, api, pauses)
    }

    pub(super) fn head(&self, name: &str) -> String {
        self.content().refs[name].clone()
    }

    /// Returns the names of all refs.
    pub(super) fn names(&self) -> Vec<String> {
        self.content().refs.keys().cloned().collect()
    }
}

fn done(status: u16, body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(body)
}

impl FakeRepository {
    fn tree(&mut self, files: Files) -> String {
        let id = tree_id(&files);
        self.trees.insert(id.clone(), files);
        id
    }

    pub(super) fn commit(&mut self, tree: String, parents: Vec<String>, message: String) -> String {
        let id = id(format!("{tree} {parents:?} {message} {}", self.commits.len()).as_bytes());
        let stored = StoredCommit { tree, parents, message, verified: self.signs };
        self.commits.insert(id.clone(), stored);
        id
    }

    /// Tells whether a new ref would be a directory for another one, or the other way round.
    fn is_blocked(&self, name: &str) -> bool {
        let is_above = |above: &str, below: &str| below.starts_with(&format!("{above}/"));
        self.refs.keys().any(|other| is_above(other, name) || is_above(name, other))
    }

    fn shown(&self, name: &str) -> Value {
        json!({"ref": name, "object": {"sha": self.refs[name], "type": "commit"}})
    }

    fn rest(
        &mut self,
        method: &str,
        path: &str,
        query: &BTreeMap<String, String>,
        body: &Value,
    ) -> ResponseTemplate {
        let word = |name: &str| body[name].as_str().unwrap().to_owned();
        match (method, path) {
            ("GET", "") => done(200, &json!({"node_id": "R_1"})),
            ("POST", "/git/refs") => {
                let name = word("ref");
                // Nothing else is ever at the base, which would close its pull request.
                assert!(name.starts_with("refs/heads/ll-loop-tmp/"), "{name}");
                if self.refs.contains_key(&name) {
                    return said(422, "Reference already exists");
                }
                if self.is_blocked(&name) {
                    return said(422, "Reference update failed");
                }
                self.refs.insert(name.clone(), word("sha"));
                done(201, &self.shown(&name))
            }
            ("POST", "/git/blobs") => {
                assert_eq!(body["encoding"], "base64");
                let content = STANDARD.decode(word("content")).unwrap();
                let id = id(&content);
                self.blobs.insert(id.clone(), content);
                done(201, &json!({"sha": id}))
            }
            ("POST", "/git/trees") => {
                let mut files = self.trees[&word("base_tree")].clone();
                for entry in body["tree"].as_array().unwrap() {
                    let path = entry["path"].as_str().unwrap().to_owned();
                    assert_eq!(entry["type"], "blob");
                    let Some(id) = entry["sha"].as_str() else {
                        assert!(entry["sha"].is_null() && files.remove(&path).is_some(), "{path}");
                        continue;
                    };
                    let Some(content) = self.blobs.get(id) else {
                        return said(422, "tree.sha is not a valid blob");
                    };
                    files.insert(path, (entry["mode"].as_str().unwrap().to_owned(), content.clone()));
                }
                if self.adds_to_trees {
                    files.insert("more".into(), ("100644".into(), vec![]));
                }
                done(201, &json!({"sha": self.tree(files)}))
            }
            ("POST", "/git/commits") => {
                assert!(body.get("author").is_none() && body.get("committer").is_none());
                let parents = serde_json::from_value(body["parents"].clone()).unwrap();
                let id = self.commit(word("tree"), parents, word("message"));
                done(201, &json!({"sha": id}))
            }
            ("GET", "/pulls") => {
                let fits = |pull: &&Value| {
                    let owner = pull["head"]["repo"]["owner"].as_str().unwrap_or("o");
                    let head = format!("{owner}:{}", pull["head"]["ref"].as_str().unwrap());
                    query["head"] == head && query["base"] == pull["base"]["ref"] && query["state"] == "all"
                };
                let found: Vec<&Value> = self.pulls.iter().rev().filter(fits).collect();
                done(200, &json!(found))
            }
            ("POST", "/pulls") => {
                let is_there = |pull: &Value| pull["head"]["ref"] == body["head"] && pull["state"] == "open";
                if self.pulls.iter().any(is_there) {
                    let message = "A pull request already exists for o:b.";
                    return unfit(
                        &json!([{"resource": "PullRequest", "code": "custom", "message": message}]),
                    );
                }
                let number = self.pulls.len() as u64 + 1;
                let mut pull = pull(number, &word("head"), &word("base"));
                for key in ["title", "body", "draft"] {
                    pull[key] = body[key].clone();
                }
                self.pulls.push(pull.clone());
                done(201, &pull)
            }
            _ => self.named(method, path, body),
        }
    }

    /// Answers requests whose path names something.
    fn named(&mut self, method: &str, path: &str, body: &Value) -> ResponseTemplate {
        let below = |prefix: &str| path.strip_prefix(prefix).map(|name| format!("refs/{name}"));
        if let Some(name) = below("/git/ref/") {
            let is_there = self.refs.contains_key(&name);
            return if is_there { done(200, &self.shown(&name)) } else { said(404, "Not Found") };
        }
        if let Some(prefix) = below("/git/matching-refs/") {
            let found = self.refs.keys().filter(|name| name.starts_with(prefix.trim_end_matches('/')));
            let found: Vec<Value> = found.map(|name| self.shown(name)).collect();
            return done(200, &json!(found));
        }
        if let Some(name) = below("/git/refs/") {
            assert_eq!(method, "DELETE");
            return match self.refs.remove(&name) {
                Some(_) => ResponseTemplate::new(204),
                None => said(422, "Reference does not exist"),
            };
        }
        if let Some(id) = path.strip_prefix("/git/commits/") {
            let Some(found) = self.commits.get(id) else { return said(404, "Not Found") };
            let parents: Vec<Value> = found.parents.iter().map(|id| json!({"sha": id})).collect();
            return done(
                200,
                &json!({
                    "sha": id, "tree": {"sha": found.tree}, "parents": parents, "message": found.message,
                    "verification": {"verified": found.verified, "reason": "valid"},
                }),
            );
        }
        let number = path.strip_prefix("/pulls/").and_then(|number| number.parse::<usize>().ok());
        let Some(pull) = number.and_then(|number| self.pulls.get_mut(number - 1)) else {
            return said(404, "Not Found");
        };
        if method == "PATCH" {
            (pull["title"], pull["body"]) = (body["title"].clone(), body["body"].clone());
        }
        done(200, pull)
    }

    fn graphql(&mut self, body: &Value) -> ResponseTemplate {
        let (query, input) = (body["query"].as_str().unwrap(), &body["variables"]["input"]);
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        if query.contains("viewer") {
            return done(200, &json!({"data": {"viewer": {"login": self.login}}}));
        }
        if query.contains("createCommitOnBranch") {
            let name = format!("refs/heads/{}", word(&input["branch"]["branchName"]));
            assert_eq!(input["branch"]["repositoryNameWithOwner"], "o/r");
            let parent = word(&input["expectedHeadOid"]);
            match self.refs.get(&name) {
                None => return wrong("NOT_FOUND", "No such branch"),
                Some(head) if *head != parent => {
                    return wrong("STALE_DATA", "Expected branch to point to \"x\" but it did not.");
                }
                Some(_) => {}
            }
            let mut files = self.trees[&self.commits[&parent].tree].clone();
            for addition in input["fileChanges"]["additions"].as_array().unwrap() {
                let content = STANDARD.decode(word(&addition["contents"])).unwrap();
                files.insert(word(&addition["path"]), ("100644".to_owned(), content));
            }
            for deletion in input["fileChanges"]["deletions"].as_array().unwrap() {
                assert!(files.remove(&word(&deletion["path"])).is_some());
            }
            if self.adds_to_commits {
                files.insert("more".into(), ("100644".into(), vec![]));
            }
            let tree = self.tree(files);
            let message = [word(&input["message"]["headline"]), word(&input["message"]["body"])].join("\n\n");
            let id = self.commit(tree, vec![parent], message);
            self.refs.insert(name, id.clone());
            return done(200, &json!({"data": {"createCommitOnBranch": {"commit": {"oid": id}}}}));
        }
        if query.contains("updateRefs") {
            assert_eq!(input["repositoryId"], "R_1");
            match self.raced.take() {
                Some((name, Some(to))) => drop(self.refs.insert(name, to)),
                Some((name, None)) => drop(self.refs.remove(&name)),
                None => {}
            }
            let updates = input["refUpdates"].as_array().unwrap();
            for update in updates.iter().filter(|update| self.twin && update["afterOid"] != ZERO) {
                self.refs.insert(word(&update["name"]), word(&update["afterOid"]));
            }
            let mut refs = self.refs.clone();
            for update in updates {
                let (name, after) = (word(&update["name"]), word(&update["afterOid"]));
                assert_eq!(update["force"], true);
                if *self.refs.get(&name).map_or(ZERO, String::as_str) != update["beforeOid"] {
                    return wrong("UNPROCESSABLE", "A ref is at another commit than was expected.");
                }
                if after == ZERO {
                    refs.remove(&name);
                } else if self.is_blocked(&name) {
                    return wrong("UNPROCESSABLE", "Ref cannot be created.");
                } else {
                    refs.insert(name, after);
                }
            }
            self.refs = refs;
            return done(200, &json!({"data": {"updateRefs": {"clientMutationId": null}}}));
        }
        assert!(query.contains("markPullRequestReadyForReview"), "{query}");
        let node = &input["pullRequestId"];
        let pull = self.pulls.iter_mut().find(|pull| pull["node_id"] == *node).unwrap();
        if pull["draft"] == false {
            return wrong("UNPROCESSABLE", "Pull request is not a draft");
        }
        pull["draft"] = json!(false);
        done(200, &json!({"data": {"markPullRequestReadyForReview": {"clientMutationId": null}}}))
    }
}

/// A pull request as the API shows it.
pub(super) fn pull(number: u64, head: &str, base: &str) -> Value {
    json!({
        "number": number, "node_id": format!("PR_{number}"), "html_url": format!("https://github.com/o/r/pull/{number}"),
        "state": "open", "title": "t", "body": null, "draft": false, "merged_at": null, "auto_merge": null,
        "head": {"ref": head, "repo": {"id": 1}}, "base": {"ref": base, "repo": {"id": 1}},
    })
}

impl Respond for Fake {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut content = self.content();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let (method, path) = (request.method.as_str(), percent_decoded(request.url.path()));
        let number = content.asked;
        content.asked += 1;
        let time = DateTime::from_timestamp(content.now, 0).unwrap().to_rfc2822();
        let name = format!("{method} {path} {}", body["query"]);
        if let Some((_, answer)) = content.answers.iter().find(|(on, _)| name.contains(on)) {
            return answer.clone();
        }
        if let Some((at, answer)) = &content.limited
            && *at == number
        {
            return answer.clone();
        }
        let trouble = content.trouble.filter(|(from, to, _)| (*from..*to).contains(&number));
        if let Some((_, _, When::Before)) = trouble {
            return ResponseTemplate::new(502);
        }
        let query = request.url.query_pairs().into_owned().collect();
        let answer = match path.strip_prefix("/repos/o/r") {
            Some(below) => content.rest(method, below, &query, &body),
            None => content.graphql(&body),
        };
        match trouble {
            Some(_) => ResponseTemplate::new(502),
            None => answer.insert_header("date", time.replace("+0000", "GMT").as_str()),
        }
    }
}
