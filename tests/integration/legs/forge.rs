//! GitHub as the jobs of one workflow see it: what one of them reports or stores, the others find, and what it is told to
//! refuse it refuses.

use std::fs;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use wiremock::matchers::any;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use crate::ci::reported::Github;
use crate::common::{Project, Ran, git};

/// The token of the runner for its artifacts, not signed.
const RUNTIME: &str = "e30.eyJzY3AiOiJBY3Rpb25zLlJlc3VsdHM6UlVOOkpPQiJ9.c2ln";

const SERVICE: &str = "/twirp/github.actions.results.api.v1.ArtifactService/";

/// The id of the repository, and of all code in it.
const REPOSITORY: u64 = 1;

#[derive(Default)]
struct Kept {
    statuses: Vec<Value>,
    checks: Vec<Value>,
    comments: Vec<Value>,
    /// How many comments were ever written.
    written: usize,
    artifacts: Vec<Artifact>,
    tags: Vec<Value>,
    refs: Vec<(String, String)>,
    /// Requests with this method and this in their path are answered with this status.
    refusals: Vec<(&'static str, &'static str, u16)>,
}

#[derive(Default)]
struct Artifact {
    name: String,
    blocks: Vec<(String, Vec<u8>)>,
    data: Vec<u8>,
    is_final: bool,
}

#[derive(Clone, Default)]
struct Keeper(Arc<Mutex<Kept>>);

/// A repository on GitHub, and the run 77 of its workflow.
pub(super) struct Forge {
    github: Github,
    keeper: Keeper,
    origin: Project,
    sha: String,
}

impl Forge {
    /// Makes a repository with these files.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let origin = files.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
        git(&origin, &["init", "-q", "-b", "main"]);
        git(&origin, &["add", "-A"]);
        git(&origin, &["commit", "-q", "-m", "first"]);
        let sha = git(&origin, &["rev-parse", "HEAD"]);
        let (github, keeper) = (Github::silent(), Keeper::default());
        github.mount(Mock::given(any()).respond_with(keeper.clone()));
        Self { github, keeper, origin, sha }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.keeper.0.lock().unwrap()
    }

    pub(super) fn address(&self) -> String {
        self.github.address()
    }

    pub(super) fn sha(&self) -> &str {
        &self.sha
    }

    /// Makes a clone of the repository, as somebody has it at home.
    pub(super) fn clone(&self) -> Project {
        let project = Project::new().env("LL_RETRY_WAIT", "1ms");
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["remote", "add", "origin", "https://github.com/octo/project"]);
        let origin = self.origin.path().display().to_string();
        git(&project, &["fetch", "-q", &origin, "main"]);
        git(&project, &["reset", "-q", "--hard", "FETCH_HEAD"]);
        // What the runner keeps elsewhere.
        project.write(".git/info/exclude", "/out\n/summary\n/temp\n/event.json\n");
        project
    }

    /// Makes a job of the run 77, with a machine of its own.
    pub(super) fn job(&self) -> Project {
        let project = self.github.job(self.clone());
        let temp = project.at("temp");
        fs::create_dir(&temp).unwrap();
        project
            .env("GITHUB_SHA", self.sha.clone())
            .env("GITHUB_REPOSITORY_ID", REPOSITORY.to_string())
            .env("RUNNER_TEMP", temp.display().to_string())
            .env("LL_TOKEN", "ghs_0123456789")
            .env("INPUT_LOOP", "main")
    }

    /// Makes a leg of a matrix: a job with the matrix as the action passes it on.
    pub(super) fn leg(&self, matrix: &str) -> Project {
        self.job().env("INPUT_KEY", matrix)
    }

    /// Lets requests with this method and this in their path fail.
    pub(super) fn refuse(&self, method: &'static str, path: &'static str, status: u16) {
        self.kept().refusals.push((method, path, status));
    }

    /// Sets many statuses of other tools.
    pub(super) fn crowd(&self, count: usize) {
        let other = json!({"state": "success", "context": "other", "description": "", "target_url": null});
        self.kept().statuses.extend(vec![other; count]);
    }

    /// Returns the last status of each context, as its state and description, in the order of the contexts.
    pub(super) fn statuses(&self) -> Vec<(String, String, String)> {
        let kept = self.kept();
        let text = |status: &Value, name: &str| status[name].as_str().unwrap().to_owned();
        let of =
            |status: &Value| (text(status, "context"), text(status, "state"), text(status, "description"));
        let mut last: Vec<(String, String, String)> = Vec::new();
        for status in kept.statuses.iter().rev().map(of) {
            if last.iter().all(|(context, ..)| *context != status.0) {
                last.push(status);
            }
        }
        last.sort();
        last
    }

    /// Returns the states that were set, the oldest first.
    pub(super) fn states(&self) -> Vec<String> {
        self.kept().statuses.iter().map(|status| status["state"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the conclusions of the check runs, each with its name.
    pub(super) fn checks(&self) -> Vec<(String, String)> {
        let kept = self.kept();
        let text = |check: &Value, name: &str| check[name].as_str().unwrap_or("none").to_owned();
        kept.checks.iter().map(|check| (text(check, "name"), text(check, "conclusion"))).collect()
    }

    pub(super) fn comments(&self) -> Vec<String> {
        self.kept().comments.iter().map(|comment| comment["body"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the names of the artifacts.
    pub(super) fn artifacts(&self) -> Vec<String> {
        let mut names: Vec<_> = self.kept().artifacts.iter().map(|artifact| artifact.name.clone()).collect();
        names.sort();
        names
    }

    /// Deletes an artifact as somebody does by hand.
    pub(super) fn delete(&self, name: &str) {
        self.kept().artifacts.retain(|artifact| artifact.name != name);
    }

    /// Stores the reports of a job, as the step of the action after the run does. Returns the name.
    pub(super) fn store(&self, job: &Project) -> String {
        let outputs = crate::ci::ci_mode::outputs(&job.read("out"));
        let (name, reports) = (&outputs["artifact-name"], &outputs["report-dir"]);
        let mut command = job.command(&["artifact", "upload", name, reports]);
        command.env("ACTIONS_RUNTIME_TOKEN", RUNTIME).env("ACTIONS_RESULTS_URL", self.address());
        let _stored = Ran::of(&command.output().unwrap()).code(0);
        name.clone()
    }

    /// Puts a job into a step that may store artifacts itself, as a container action may.
    pub(super) fn with_artifacts(&self, job: Project) -> Project {
        job.env("ACTIONS_RUNTIME_TOKEN", RUNTIME).env("ACTIONS_RESULTS_URL", self.address())
    }
}

impl Respond for Keeper {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut kept = self.0.lock().unwrap();
        let (method, path) = (request.method.as_str(), request.url.path().to_owned());
        let refused = kept.refusals.iter().find(|(with, on, _)| *with == method && path.contains(on));
        if let Some((.., status)) = refused {
            let body = json!({"message": "not today"});
            return ResponseTemplate::new(*status).set_body_json(body).insert_header("retry-after", "0");
        }
        if let Some(call) = path.strip_prefix(SERVICE) {
            let body = serde_json::from_slice(&request.body).unwrap();
            return kept.call(call, &body, request);
        }
        if let Some(id) = path.strip_prefix("/blob/") {
            return kept.blob(id.parse().unwrap(), request);
        }
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let path = path.strip_prefix("/repos/octo/project").unwrap_or(&path).to_owned();
        kept.rest(method, &path, body, request)
    }
}

fn answer(body: &Value) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(body)
}

/// Returns the part of a list that a page has.
fn page(all: &[Value], request: &Request) -> Vec<Value> {
    let number = |name: &str, otherwise: usize| {
        let found = request.url.query_pairs().find(|(key, _)| key == name);
        found.map_or(otherwise, |(_, value)| value.parse().unwrap())
    };
    let size = number("per_page", 30);
    all.iter().skip((number("page", 1) - 1) * size).take(size).cloned().collect()
}

impl Kept {
    fn rest(&mut self, method: &str, path: &str, mut body: Value, request: &Request) -> ResponseTemplate {
        let id = || path.rsplit('/').next().and_then(|id| id.parse::<usize>().ok()).unwrap();
        match (method, path) {
            ("GET", "") => answer(&json!({"id": REPOSITORY})),
            ("POST", path) if path.starts_with("/statuses/") => {
                assert!(body["description"].as_str().unwrap().chars().count() <= 140, "{body}");
                assert!(body["context"].as_str().unwrap().chars().count() <= 255, "{body}");
                self.statuses.push(body);
                ResponseTemplate::new(201).set_body_json(json!({}))
            }
            ("GET", path) if path.ends_with("/statuses") => {
                let newest_first: Vec<Value> = self.statuses.iter().rev().cloned().collect();
                answer(&json!(page(&newest_first, request)))
            }
            ("POST", "/check-runs") => {
                body["id"] = json!(self.checks.len());
                self.checks.push(body.clone());
                answer(&body)
            }
            ("GET", path) if path.ends_with("/check-runs") => {
                let named = request.url.query_pairs().find(|(key, _)| key == "check_name").unwrap().1;
                let found = self.checks.iter().rev().filter(|check| check["name"] == *named).cloned();
                answer(&json!({"check_runs": page(&found.collect::<Vec<_>>(), request)}))
            }
            ("PATCH", path) if path.starts_with("/check-runs/") => {
                let changed = body.as_object().unwrap().clone();
                self.checks[id()].as_object_mut().unwrap().extend(changed);
                answer(&json!({}))
            }
            ("POST", "/issues/7/comments") => {
                self.written += 1;
                body["id"] = json!(self.written);
                body["user"] = json!({"login": "github-actions[bot]"});
                self.comments.push(body.clone());
                answer(&body)
            }
            ("GET", "/issues/7/comments") => answer(&json!(page(&self.comments, request))),
            (_, path) if path.starts_with("/issues/comments/") => {
                let Some(at) = self.comments.iter().position(|comment| comment["id"] == id()) else {
                    return ResponseTemplate::new(404);
                };
                match method {
                    "PATCH" => self.comments[at]["body"] = body["body"].clone(),
                    "DELETE" => drop(self.comments.remove(at)),
                    _ => return answer(&self.comments[at]),
                }
                ResponseTemplate::new(200)
            }
            ("GET", "/actions/runs/77") => answer(&json!({
                "id": 77, "status": "in_progress", "run_attempt": 1, "event": "push",
                "head_repository": {"id": REPOSITORY}, "path": ".github/workflows/fix.yml",
            })),
            ("GET", "/actions/artifacts" | "/actions/runs/77/artifacts") => {
                let rows: Vec<Value> = self.rows().into_iter().rev().collect();
                answer(&json!({"artifacts": page(&rows, request)}))
            }
            ("GET", path) if path.ends_with("/zip") => {
                let id = path.split('/').nth(3).unwrap();
                let location =
                    format!("http://{}/blob/{id}?sig=x", request.headers["host"].to_str().unwrap());
                ResponseTemplate::new(302).insert_header("location", location)
            }
            ("POST", "/git/tags") => {
                self.tags.push(body);
                answer(&json!({"sha": self.tags.len().to_string()}))
            }
            ("GET", path) if path.starts_with("/git/tags/") => answer(&self.tags[id() - 1]),
            ("POST", "/git/refs") => {
                let text = |name: &str| body[name].as_str().unwrap().to_owned();
                if self.refs.iter().any(|(name, _)| *name == text("ref")) {
                    let there = json!({"message": "Reference already exists"});
                    return ResponseTemplate::new(422).set_body_json(there);
                }
                self.refs.push((text("ref"), text("sha")));
                answer(&json!({}))
            }
            ("GET", path) if path.starts_with("/git/ref/") => {
                let name = path.replacen("/git/ref/", "refs/", 1);
                match self.refs.iter().find(|(known, _)| *known == name) {
                    Some((_, sha)) => answer(&json!({"object": {"sha": sha}})),
                    None => ResponseTemplate::new(404),
                }
            }
            _ => ResponseTemplate::new(404).set_body_json(json!({"message": "Not Found"})),
        }
    }

    fn rows(&self) -> Vec<Value> {
        let stored = self.artifacts.iter().zip(1000_u64..).filter(|(artifact, _)| artifact.is_final);
        let row = |(artifact, id): (&Artifact, u64)| {
            let run = json!({"id": 77, "repository_id": REPOSITORY, "head_repository_id": REPOSITORY});
            json!({
                "id": id, "name": artifact.name, "expired": false, "digest": artifact.digest(),
                "size_in_bytes": artifact.data.len(), "workflow_run": run,
            })
        };
        stored.map(row).collect()
    }

    fn call(&mut self, method: &str, body: &Value, request: &Request) -> ResponseTemplate {
        let name = body["name"].as_str().unwrap_or_default();
        let known = self.artifacts.iter().position(|artifact| artifact.name == name);
        let host = request.headers["host"].to_str().unwrap();
        let address = |at: usize| format!("http://{host}/blob/{}?sig=x", at + 1000);
        match (method, known) {
            ("CreateArtifact", Some(_)) => {
                let there =
                    json!({"code": "already_exists", "msg": "an artifact with this name already exists"});
                ResponseTemplate::new(409).set_body_json(there)
            }
            ("CreateArtifact", None) => {
                self.artifacts.push(Artifact { name: name.to_owned(), ..Artifact::default() });
                answer(&json!({"ok": true, "signed_upload_url": address(self.artifacts.len() - 1)}))
            }
            ("FinalizeArtifact", Some(at)) => {
                let artifact = &mut self.artifacts[at];
                assert_eq!(body["hash"], artifact.digest());
                artifact.is_final = true;
                answer(&json!({"ok": true, "artifact_id": (at + 1000).to_string()}))
            }
            ("ListArtifacts", _) => {
                let filter = body["name_filter"].as_str();
                let rows =
                    self.rows().into_iter().filter(|row| filter.is_none_or(|name| row["name"] == name));
                let listed = rows.map(|row| {
                    json!({
                        "workflow_run_backend_id": "RUN", "workflow_job_run_backend_id": "JOB",
                        "database_id": row["id"].to_string(), "name": row["name"],
                        "size": row["size_in_bytes"].to_string(), "digest": row["digest"],
                    })
                });
                answer(&json!({"artifacts": listed.collect::<Vec<_>>()}))
            }
            ("GetSignedArtifactURL", Some(at)) => answer(&json!({"name": name, "signed_url": address(at)})),
            _ => ResponseTemplate::new(404)
                .set_body_json(json!({"code": "not_found", "msg": "no such artifact"})),
        }
    }

    fn blob(&mut self, id: usize, request: &Request) -> ResponseTemplate {
        let artifact = &mut self.artifacts[id - 1000];
        let query: Vec<(String, String)> = request.url.query_pairs().into_owned().collect();
        let parameter =
            |name: &str| query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (request.method.as_str(), parameter("comp")) {
            ("GET", _) => ResponseTemplate::new(200).set_body_bytes(artifact.data.clone()),
            ("PUT", Some("block")) => {
                artifact.blocks.push((parameter("blockid").unwrap().to_owned(), request.body.clone()));
                ResponseTemplate::new(201)
            }
            ("PUT", Some("blocklist")) => {
                let list = String::from_utf8(request.body.clone()).unwrap();
                let ids = list.split("<Latest>").skip(1).map(|part| part.split('<').next().unwrap());
                let block =
                    |id: &str| artifact.blocks.iter().find(|(known, _)| known == id).unwrap().1.clone();
                artifact.data = ids.flat_map(block).collect();
                ResponseTemplate::new(201)
            }
            _ => ResponseTemplate::new(400),
        }
    }
}

impl Artifact {
    fn digest(&self) -> String {
        let digits = Sha256::digest(&self.data);
        digits.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
    }
}
