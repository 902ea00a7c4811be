//! Servers that are not GitHub, played in their own dialects: what they leave out, what they refuse, what they take from
//! git alone. The facts were measured on the real ones.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use crate::ci::ci_mode::outputs;
use crate::ci::reported::{Github, committed};
use crate::common::{Project, Ran, git, path_with_ll_loop, signal};

/// Saved before it begins to work, because no agent may be asked.
const HANDS_OFF: &str = "name: main
initial: a
states:
  a: {action: 'test -f ready || echo \"CONTEXT_HANDOFF: more\"', on_yes: done}
  done: {terminal: true}
";

/// A token of the runtime, for the run `RUN` and a job.
fn runtime(job: &str) -> String {
    use base64::Engine as _;
    let claims = json!({"scp": format!("Actions.Results:RUN:{job}"), "TaskID": 5}).to_string();
    format!("e30.{}.x", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
}

/// Which server is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Github,
    Enterprise,
    Gitea,
    Forgejo,
    Act,
}

#[derive(Default)]
struct State {
    /// Artifacts of the run by their names: their bytes, and the signed address under which each is.
    artifacts: BTreeMap<String, Vec<u8>>,
    /// What comes in blocks and is not yet an artifact.
    coming: BTreeMap<String, Vec<u8>>,
    /// Refs and tag objects that the API made.
    refs: BTreeMap<String, String>,
    tags: Vec<Value>,
    /// The event of the run that left the artifacts, and the ref of its workflow.
    event: (String, String),
    /// The pull request of the run.
    pull: Value,
    is_expired: bool,
    /// Statuses of commits, oldest first.
    statuses: Vec<Value>,
    /// Whether another job stores under the same name in the same moment, and is the last.
    has_racer: bool,
    /// Permissions that the token lacks.
    lacks: Vec<&'static str>,
}

/// A server of one kind.
#[derive(Clone)]
struct Played {
    kind: Kind,
    address: String,
    /// The bare repository that git reaches.
    remote: PathBuf,
    state: Arc<Mutex<State>>,
}

fn answer(status: u16, body: Value) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(body)
}

fn refused(status: u16) -> ResponseTemplate {
    answer(status, json!({"message": "no"}))
}

impl Respond for Played {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = request.url.path();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if let Some((_, method)) = path.split_once(".ArtifactService/") {
            return self.artifact_service(method, &body);
        }
        if let Some(name) = path.strip_prefix("/blob/") {
            return self.blob(request, name);
        }
        if let Some(at) = path.strip_prefix("/o/r.git") {
            return self.git(request, at);
        }
        match path.strip_prefix("/repos/o/r") {
            Some(at) => self.rest(request, at, &body),
            None => refused(404),
        }
    }
}

impl Played {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn imitates(&self) -> bool {
        matches!(self.kind, Kind::Gitea | Kind::Forgejo)
    }

    /// The service of the run. Only GitHub's refuses a name that is taken; the others take no field that they do not know.
    fn artifact_service(&self, method: &str, body: &Value) -> ResponseTemplate {
        let mut state = self.state();
        let name = body["name"].as_str().unwrap_or_default().to_owned();
        let url = format!("{}/blob/{name}?sig=c2VjcmV0", self.address);
        match method {
            "CreateArtifact" if self.kind == Kind::Github && state.artifacts.contains_key(&name) => {
                answer(409, json!({"code": "already_exists", "msg": "it exists"}))
            }
            "CreateArtifact" if self.kind != Kind::Github && body.get("mime_type").is_some() => refused(500),
            "CreateArtifact" => {
                state.coming.insert(name, Vec::new());
                answer(200, json!({"ok": true, "signedUploadUrl": url}))
            }
            "FinalizeArtifact" => {
                let mut bytes = state.coming.remove(&name).unwrap();
                if state.has_racer {
                    bytes = zip_of_another();
                }
                state.artifacts.insert(name, bytes);
                answer(200, json!({"ok": true, "artifactId": "5"}))
            }
            // It panics when it finds no directory, and hangs up.
            "ListArtifacts" if self.kind == Kind::Act && state.artifacts.is_empty() => refused(502),
            "ListArtifacts" => {
                let wanted = body["name_filter"].as_str();
                let named =
                    state.artifacts.iter().filter(|(name, _)| wanted.is_none_or(|wanted| wanted == **name));
                let rows = named.map(|(name, bytes)| {
                    json!({"workflowRunBackendId": "RUN", "workflowJobRunBackendId": "JOB", "databaseId": "5",
                           "name": name, "size": bytes.len().to_string()})
                });
                answer(200, json!({"artifacts": rows.collect::<Vec<_>>()}))
            }
            "GetSignedArtifactURL" => answer(200, json!({"name": name, "signedUrl": url})),
            _ => refused(404),
        }
    }

    fn blob(&self, request: &Request, name: &str) -> ResponseTemplate {
        let mut state = self.state();
        if request.method.as_str() == "GET" {
            return ResponseTemplate::new(200).set_body_bytes(state.artifacts[name].clone());
        }
        if request.url.query().unwrap().contains("comp=block&") {
            state.coming.get_mut(name).unwrap().extend(&request.body);
        }
        ResponseTemplate::new(201)
    }

    fn rest(&self, request: &Request, at: &str, body: &Value) -> ResponseTemplate {
        let mut state = self.state();
        let lacks = |needed: &str| state.lacks.contains(&needed);
        match (request.method.as_str(), at) {
            ("GET", "") => answer(200, json!({"id": 1})),
            ("GET", "/actions/runs/7/artifacts" | "/actions/artifacts") => {
                let parameter = if self.imitates() { "limit" } else { "per_page" };
                let size = request.url.query_pairs().find(|(key, _)| key == parameter);
                // What is asked for in another way gets pages of 30.
                assert!(size.is_some(), "{}", request.url);
                let mut run = json!({"id": 7, "repository_id": 1, "head_sha": "0"});
                if !self.imitates() {
                    run["head_repository_id"] = json!(1);
                }
                if lacks("actions: read") {
                    return refused(403);
                }
                let rows = state.artifacts.keys().zip(50..).filter(|(name, _)| name.contains("-r7-"));
                let rows = rows.map(|(name, id)| {
                    json!({"id": id, "name": name, "expired": state.is_expired, "workflow_run": run})
                });
                let rows: Vec<Value> = rows.collect();
                answer(200, json!({"total_count": rows.len(), "artifacts": rows}))
            }
            ("GET", at) if at.ends_with("/zip") => {
                let id: usize = at.split('/').nth_back(1).unwrap().parse().unwrap();
                let name = state.artifacts.keys().nth(id - 50).unwrap();
                let location = format!("{}/blob/{name}?sig=c2VjcmV0", self.address);
                ResponseTemplate::new(302).insert_header("location", location.as_str())
            }
            ("GET", "/actions/runs/7" | "/actions/runs/8" | "/actions/runs/9") => {
                let (event, git_ref) = &state.event;
                let mut run = json!({"id": 7, "event": event, "repository": {"id": 1}, "run_attempt": 1,
                                     "status": "in_progress", "path": ".github/workflows/fix.yml"});
                if self.imitates() {
                    run["path"] = json!(format!("fix.yml@{git_ref}"));
                    run["run_attempt"] = json!(0);
                }
                answer(200, run)
            }
            ("GET", "/pulls/2") => answer(200, state.pull.clone()),
            ("POST", "/actions/workflows/fix.yml/dispatches") => ResponseTemplate::new(204),
            ("POST", at) if at.starts_with("/statuses/") => {
                let needed = if self.imitates() { "contents: write" } else { "statuses: write" };
                if lacks(needed) {
                    return refused(403);
                }
                let mut status = body.clone();
                status["id"] = json!(state.statuses.len());
                state.statuses.push(status);
                answer(201, json!({}))
            }
            ("GET", at) if at.starts_with("/commits/") && at.ends_with("/statuses") => {
                answer(200, state.statuses.iter().rev().cloned().collect())
            }
            ("POST", "/git/tags") if !self.imitates() => {
                state.tags.push(body.clone());
                answer(201, json!({"sha": state.tags.len().to_string()}))
            }
            ("POST", "/git/refs") if !self.imitates() => {
                let (name, sha) = (body["ref"].as_str().unwrap(), body["sha"].as_str().unwrap());
                if state.refs.contains_key(name) {
                    return refused(422);
                }
                state.refs.insert(name.to_owned(), sha.to_owned());
                answer(201, json!({}))
            }
            ("GET", at) if at.starts_with("/git/ref/") => {
                let name = at.replace("/git/ref/", "refs/");
                answer(200, json!({"object": {"sha": state.refs[&name]}}))
            }
            ("GET", at) if at.starts_with("/git/tags/") => {
                let number: usize = at["/git/tags/".len()..].parse().unwrap();
                answer(200, json!({"message": state.tags[number - 1]["message"]}))
            }
            _ => refused(404),
        }
    }

    /// What git itself says, to somebody with the token of the job.
    fn git(&self, request: &Request, at: &str) -> ResponseTemplate {
        let header = |name: &str| {
            request.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        // `x-access-token:ghs_geheim`
        if header("authorization") != "Basic eC1hY2Nlc3MtdG9rZW46Z2hzX2dlaGVpbQ==" {
            return ResponseTemplate::new(401);
        }
        let lacks = self.state().lacks.contains(&"contents: write");
        if lacks && request.url.as_str().contains("receive-pack") {
            return ResponseTemplate::new(403);
        }
        let mut child = Command::new("git")
            .arg("http-backend")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_PROJECT_ROOT", &self.remote)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REMOTE_USER", "job")
            .env("PATH_INFO", at)
            .env("QUERY_STRING", request.url.query().unwrap_or_default())
            .env("REQUEST_METHOD", request.method.as_str())
            .env("CONTENT_TYPE", header("content-type"))
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("GIT_PROTOCOL", header("git-protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = request.body.clone();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let output = child.wait_with_output().unwrap().stdout;
        writer.join().unwrap();
        let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let mut template = ResponseTemplate::new(200).set_body_bytes(&output[end + 4..]);
        for line in head.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            template = match name {
                "Status" => ResponseTemplate::new(value[..3].parse::<u16>().unwrap())
                    .set_body_bytes(&output[end + 4..]),
                _ => template.insert_header(name, value),
            };
        }
        template
    }
}

/// A project in jobs of a server of one kind, on two machines: the first leaves a run, the second goes on with it.
pub(crate) struct Scene {
    kind: Kind,
    github: Github,
    played: Played,
    one: Project,
    sha: String,
    _remote: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn of(kind: Kind) -> Self {
        Self::with_ids(kind, "sha1")
    }

    /// The same where the repositories have ids of this kind.
    fn with_ids(kind: Kind, ids: &str) -> Self {
        let github = Github::silent();
        let remote = tempfile::tempdir().unwrap();
        let format = format!("--object-format={ids}");
        let mut init = Command::new("git");
        let made = init.args(["init", "-q", "--bare", &format]).arg(remote.path()).status().unwrap();
        assert!(made.success());
        let state = State { event: ("push".to_owned(), "refs/heads/main".to_owned()), ..State::default() };
        let (address, remote_path) = (github.address(), remote.path().to_owned());
        let played = Played { kind, address, remote: remote_path, state: Arc::new(Mutex::new(state)) };
        github.mount(Mock::given(any()).respond_with(played.clone()));
        let one = Project::with_loop(HANDS_OFF);
        git(&one, &["init", "-q", "-b", "main", &format]);
        one.write(".git/info/exclude", "/out\n/summary\n/event.json\n/ready\n");
        git(&one, &["add", "-A"]);
        git(&one, &["commit", "-q", "-m", "first"]);
        let sha = git(&one, &["rev-parse", "HEAD"]).trim_end().to_owned();
        let mut scene = Self { kind, github, played, one: Project::new(), sha, _remote: remote };
        scene.one = scene.job(one, "7", "JOB");
        scene
    }

    /// Puts a project into a job, as the runner of this server does.
    pub(crate) fn job(&self, project: Project, run: &str, job: &str) -> Project {
        let server = match self.kind {
            Kind::Github | Kind::Act => "https://github.com".to_owned(),
            Kind::Enterprise => "https://ghes.example".to_owned(),
            Kind::Gitea | Kind::Forgejo => self.github.address(),
        };
        let project = project
            .in_github_job()
            .env("GITHUB_API_URL", self.github.address())
            .env("GITHUB_SERVER_URL", server)
            .env("GITHUB_REPOSITORY", "o/r")
            .env("GITHUB_EVENT_NAME", "push")
            .env("GITHUB_SHA", self.sha.clone())
            .env("GITHUB_REF", "refs/heads/main")
            .env("GITHUB_RUN_ID", run)
            .env("GITHUB_RUN_NUMBER", "3")
            .env("LL_TOKEN", "ghs_geheim")
            .env("LL_RETRY_WAIT", "1ms");
        let project = match self.kind {
            Kind::Github | Kind::Enterprise => project
                .env("GITHUB_REPOSITORY_ID", "1")
                .env("GITHUB_RUN_ATTEMPT", "1")
                .env("GITHUB_WORKFLOW_REF", "o/r/.github/workflows/fix.yml@refs/heads/main"),
            Kind::Act => project.env("ACT", "true").env("GITHUB_RUN_ATTEMPT", "1"),
            Kind::Gitea => project.env("GITEA_ACTIONS", "true").env("GITHUB_RUN_ATTEMPT", ""),
            Kind::Forgejo => project
                .env("GITEA_ACTIONS", "true")
                .env("FORGEJO_ACTIONS", "true")
                .env("GITHUB_RUN_ATTEMPT", ""),
        };
        match self.kind {
            // A `run:` step gets neither there.
            Kind::Github | Kind::Enterprise => project,
            Kind::Act | Kind::Gitea | Kind::Forgejo => project
                .env("ACTIONS_RUNTIME_TOKEN", runtime(job))
                .env("ACTIONS_RESULTS_URL", format!("{}/", self.github.address())),
        }
    }

    /// The same commit on another machine, in a job of the run 8.
    fn another(&self) -> Project {
        let project = Project::new();
        fs::remove_dir(project.at(".loops")).unwrap();
        let source = self.one.path().display().to_string();
        git(&project, &["clone", "-q", &source, "."]);
        let site = if matches!(self.kind, Kind::Gitea | Kind::Forgejo) {
            self.github.address()
        } else {
            "https://github.com".to_owned()
        };
        git(&project, &["remote", "set-url", "origin", &format!("{site}/o/r")]);
        project.write(".git/info/exclude", "/out\n/summary\n/event.json\n/ready\n");
        project.write("ready", "");
        self.job(project, "8", "JOB8")
    }

    fn stored(&self) -> Vec<String> {
        self.played.state().artifacts.keys().cloned().collect()
    }

    fn says(&self, event: &str, git_ref: &str, pull: Value) {
        let mut state = self.played.state();
        state.event = (event.to_owned(), git_ref.to_owned());
        state.pull = pull;
    }

    fn asked(&self, what: &str) -> usize {
        self.github.received().iter().filter(|(request, _)| request == what).count()
    }
}

/// Runs the action in a project, and returns its outputs with what it said.
fn action(project: &Project) -> (Ran, BTreeMap<String, String>) {
    project.write("out", "");
    let ran = project.run(&["action"]);
    (ran, outputs(&project.read("out")))
}

const NAME: &str = "ll-loop-main-check-r7-a1";

#[test]
fn reports_are_stored_by_the_step_where_the_runner_allows_it_and_left_to_the_next_one_elsewhere() {
    for kind in [Kind::Github, Kind::Enterprise, Kind::Gitea, Kind::Forgejo, Kind::Act] {
        let scene = Scene::of(kind);
        let project = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB").env("INPUT_LOOP", "main");
        let (ran, told) = action(&project);
        let ran = ran.code(75);
        let is_ours = matches!(kind, Kind::Gitea | Kind::Forgejo | Kind::Act);
        assert_eq!(scene.stored().len(), usize::from(is_ours), "{kind:?}: {}", ran.all());
        assert_eq!(told["artifact-name"], NAME, "{kind:?}");
        assert_eq!(told["resume-from"], format!("artifact:{NAME}"), "{kind:?}");
        let left = told.get("upload-name").map(String::as_str);
        assert_eq!(left, (!is_ours).then_some(NAME), "{kind:?}");
    }
}

#[test]
fn no_action_of_the_loop_sees_the_token_of_the_runtime() {
    let scene = Scene::of(Kind::Gitea);
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'env > seen', on_yes: done}\n  done: {terminal: true}\n";
    let project = scene.job(Project::with_loop(text), "7", "JOB").env("INPUT_LOOP", "main");
    action(&project).0.code(0);
    let seen = project.read("seen");
    assert!(
        !seen.contains("ACTIONS_") && !seen.contains(&runtime("JOB")) && !seen.contains("ghs_geheim"),
        "{seen}"
    );
    assert_eq!(scene.stored(), [NAME]);
}

#[test]
fn who_wants_no_upload_gets_none() {
    for kind in [Kind::Github, Kind::Gitea] {
        let scene = Scene::of(kind);
        let project = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB");
        let project = project.env("INPUT_LOOP", "main").env("INPUT_UPLOAD", "false");
        let (ran, told) = action(&project);
        let _ran = ran.code(75);
        assert_eq!((&*told["artifact-name"], told.get("upload-name")), ("", None));
        assert_eq!(scene.stored(), [""; 0]);
    }
}

/// What a second job comes to that has the name of the first one.
#[track_caller]
fn check_second(kind: Kind, job: &str, replaces: bool) {
    let scene = Scene::of(kind);
    let first = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB").env("INPUT_LOOP", "main");
    action(&first).0.code(75);
    let stored = scene.played.state().artifacts[NAME].clone();
    let second = scene.job(Project::with_loop(HANDS_OFF), "7", job).env("INPUT_LOOP", "main");
    let (ran, told) = action(&second);
    let is_same = scene.played.state().artifacts[NAME] == stored;
    assert_eq!(is_same, !replaces, "{kind:?}: {}", ran.all());
    if replaces {
        let _ran = ran.code(75);
        return;
    }
    let ran = ran.code(4);
    for said in
        ["::error title=main::the reports of the run are not stored", "they share this name", "pass `key`"]
    {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.all());
    }
    assert_eq!((&*told["artifact-name"], &*told["resume-from"], &*told["exit-code"]), ("", "", "4"));
    let last = scene.github.statuses().pop().unwrap();
    assert_eq!(last, "error: handed off, and nothing goes on: its files were not uploaded");
}

#[test]
fn a_name_that_another_job_took_is_refused_before_it_is_replaced() {
    check_second(Kind::Gitea, "ANOTHER", false);
    check_second(Kind::Forgejo, "ANOTHER", false);
    // All jobs are one to act.
    check_second(Kind::Act, "JOB", false);
    // A job that runs again on Gitea has the name that it had before.
    check_second(Kind::Gitea, "JOB", true);
}

fn zip_of_another() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("x", zip::write::SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn of_two_jobs_that_store_in_the_same_moment_one_is_told() {
    for kind in [Kind::Gitea, Kind::Act] {
        let scene = Scene::of(kind);
        scene.played.state().has_racer = true;
        let project = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB").env("INPUT_LOOP", "main");
        let (ran, told) = action(&project);
        let ran = ran.code(4);
        assert!(ran.stdout.contains("they share this name"), "{kind:?}: {}", ran.all());
        assert_eq!(told["artifact-name"], "");
    }
}

#[test]
fn a_lost_report_of_a_run_that_is_over_is_a_warning() {
    let scene = Scene::of(Kind::Gitea);
    let text =
        "name: main\ninitial: a\nstates:\n  a: {action: 'true', on_yes: done}\n  done: {terminal: true}\n";
    let project = |job| scene.job(Project::with_loop(text), "7", job).env("INPUT_LOOP", "main");
    action(&project("JOB")).0.code(0);
    let (ran, told) = action(&project("ANOTHER"));
    let ran = ran.code(0);
    assert!(
        ran.stdout.contains("::warning title=main::the reports of the run are not stored"),
        "{}",
        ran.all()
    );
    assert_eq!((&*told["artifact-name"], &*told["exit-code"]), ("", "0"));
}

/// The chain: a run is handed off, the next run is started, and it goes on with what was left.
#[track_caller]
fn check_chain(kind: Kind) -> Scene {
    check_chain_of(Scene::of(kind))
}

fn check_chain_of(scene: Scene) -> Scene {
    let first = &scene.one;
    let mut command = first.command(&["action"]);
    command.env("INPUT_LOOP", "main").env("INPUT_ON_HANDOFF", "dispatch");
    let _ran = Ran::of(&command.output().unwrap()).code(75);
    let mut command = first.command(&["action", "continue"]);
    command.env("INPUT_RUN", "main").env("INPUT_UPLOAD_OUTCOME", "success");
    let _ran = Ran::of(&command.output().unwrap()).code(0).says("goes on in another run");
    let started = "POST /repos/o/r/actions/workflows/fix.yml/dispatches";
    let (_, body) = scene.github.received().into_iter().find(|(request, _)| request == started).unwrap();
    assert_eq!(body["inputs"]["resume-from"], "run:7");
    if scene.stored().is_empty() {
        // What the next step would have uploaded.
        let report = first.run_files(".report").pop().unwrap();
        scene.played.state().artifacts.insert(NAME.to_owned(), zipped(&report));
    }
    scene
}

fn zipped(directory: &Path) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        zip.start_file(entry.file_name().to_str().unwrap(), zip::write::SimpleFileOptions::default())
            .unwrap();
        zip.write_all(&fs::read(entry.path()).unwrap()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn goes_on(project: Project) -> (Ran, Project) {
    let project = project.env("INPUT_LOOP", "main").env("INPUT_RESUME_FROM", "run:7");
    (project.run(&["action"]), project)
}

#[test]
fn a_chain_goes_on_and_one_job_has_the_run() {
    for kind in [Kind::Github, Kind::Enterprise, Kind::Gitea, Kind::Forgejo] {
        let scene = check_chain(kind);
        let (ran, _next) = goes_on(scene.another());
        let ran = ran.code(0);
        assert!(ran.stderr.contains("took over main-"), "{kind:?}: {}", ran.all());
        assert!(!ran.all().contains("nothing keeps another job"), "{kind:?}: {}", ran.all());
        assert_eq!(
            scene.asked("POST /repos/o/r/git/tags"),
            usize::from(!scene.played.imitates()),
            "{kind:?}"
        );
        // The same run of the server is not over, so nobody else goes on.
        let other = scene.another().env("GITHUB_RUN_ID", "9");
        let (ran, _other) = goes_on(other);
        let ran = ran.code(73);
        let page = match kind {
            Kind::Github | Kind::Enterprise => "/o/r/actions/runs/8/attempts/1",
            Kind::Gitea => "/o/r/actions/runs/8",
            Kind::Forgejo | Kind::Act => "/o/r/actions/runs/3",
        };
        assert!(ran.stderr.contains("another job has taken the run main-"), "{kind:?}: {}", ran.all());
        assert!(ran.stderr.contains(&format!("{page}\n")), "{kind:?}: {}", ran.all());
    }
}

#[test]
fn one_job_has_the_run_of_a_repository_with_ids_of_sha256() {
    let scene = check_chain_of(Scene::with_ids(Kind::Gitea, "sha256"));
    let (ran, _next) = goes_on(scene.another());
    let ran = ran.code(0);
    assert!(ran.stderr.contains("took over main-"), "{}", ran.all());
    assert!(!ran.all().contains("nothing keeps another job"), "{}", ran.all());
    let (ran, _other) = goes_on(scene.another().env("GITHUB_RUN_ID", "9"));
    let ran = ran.code(73);
    assert!(ran.stderr.contains("another job has taken the run main-"), "{}", ran.all());
}

#[test]
fn a_failure_stands_until_the_same_job_says_otherwise() {
    const ASKED: &str = "name: main\ninitial: a\nstates:\n  a: {action: 'test $SAYS = yes', on_yes: done, on_no: failed}\n  failed: {terminal: true}\n  done: {terminal: true}\n";
    let scene = Scene::of(Kind::Github);
    let (mut project, _sha) = committed(scene.job(Project::with_loop(ASKED), "7", "JOB"));
    let (red, green, covered) = ("failure: ", "success: ", "until that job runs again");
    for (run, says, event, file, expected) in [
        ("7", "no", "schedule", "fix", red),
        // Another event, and another workflow, are other jobs.
        ("8", "yes", "push", "fix", covered),
        ("9", "yes", "schedule", "other", covered),
        ("10", "yes", "schedule", "fix", green),
        // It takes back what it said itself, and nothing else.
        ("11", "no", "push", "fix", red),
        ("12", "yes", "schedule", "fix", covered),
        ("13", "yes", "push", "fix", green),
    ] {
        let workflow = format!("o/r/.github/workflows/{file}.yml@refs/heads/main");
        project = project
            .env("GITHUB_RUN_ID", run)
            .env("SAYS", says)
            .env("GITHUB_EVENT_NAME", event)
            .env("GITHUB_WORKFLOW_REF", workflow);
        let _ended = project.run(&["run", "main", "--status"]);
        let said = scene.github.statuses().pop().unwrap();
        assert!(said.contains(expected), "run {run}: {said}");
        assert_eq!(said.starts_with(green), expected == green, "run {run}: {said}");
    }
}

#[test]
fn a_lease_that_the_token_may_not_take_costs_a_warning() {
    let scene = check_chain(Kind::Gitea);
    scene.played.state().lacks.push("contents: write");
    let (ran, _next) = goes_on(scene.another());
    let ran = ran.code(0);
    assert!(
        ran.stderr.contains("nothing keeps another job from going on with this run: `git push` failed"),
        "{}",
        ran.all()
    );
    assert!(ran.stderr.contains("permissions: { contents: write }"), "{}", ran.all());
    assert!(!ran.all().contains("ghs_geheim"), "{}", ran.all());
    // And what the status lacks is called as it is there.
    assert!(ran.stdout.contains("the commit status (`contents: write`)"), "{}", ran.stdout);
}

#[test]
fn what_a_stranger_left_on_gitea_is_not_gone_on_with() {
    let scene = check_chain(Kind::Gitea);
    let pull = |repo: Value| json!({"head": {"ref": "fix", "repo": repo}});
    let of_pull = ("pull_request", "refs/pull/2/head");
    let refusals = [
        (of_pull, pull(json!({"id": 9})), "made by code that is not that of `o/r`"),
        (of_pull, pull(Value::Null), "made by code that is not that of `o/r`"),
        (
            of_pull,
            json!({"head": {"ref": "refs/pull/2/head", "repo": {"id": 1}}}),
            "made by code that is not that",
        ),
        (("pull_request_target", "refs/heads/main"), Value::Null, "Gitea does not say whose code made"),
        (("issue_comment", "refs/heads/main"), Value::Null, "Gitea does not say whose code made"),
    ];
    for ((event, git_ref), pull, why) in refusals {
        scene.says(event, git_ref, pull);
        let (ran, _) = goes_on(scene.another());
        let _ran = ran.code(2).says(why);
        let last = scene.github.statuses().pop().unwrap();
        assert!(last.starts_with("error: invalid: "), "{last}");
    }
    let (ran, _) = goes_on(scene.another().env("INPUT_ALLOW_UNTRUSTED", "true"));
    let _ran = ran.code(0);
    let scene = check_chain(Kind::Gitea);
    scene.says("pull_request", "refs/pull/2/head", pull(json!({"id": 1})));
    let _ran = goes_on(scene.another()).0.code(0);
}

/// A way in which a run that was handed off cannot go on.
struct Hindered {
    why: &'static str,
    code: i32,
    by: fn(&Scene, &Project),
}

const HINDERED: [Hindered; 6] = [
    Hindered {
        why: "that begins with `ll-loop-main-` and has not expired",
        code: 1,
        by: |scene, _| scene.played.state().is_expired = true,
    },
    Hindered { why: "there is no artifact", code: 1, by: |scene, _| scene.played.state().artifacts.clear() },
    Hindered {
        why: "the token may not do GET",
        code: 4,
        by: |scene, _| scene.played.state().lacks.push("actions: read"),
    },
    Hindered {
        why: "cannot use the bundle",
        code: 2,
        by: |scene, _| drop(scene.played.state().artifacts.insert(NAME.to_owned(), b"PK no zip".to_vec())),
    },
    Hindered {
        why: "the run began at commit",
        code: 2,
        by: |_, project| {
            project.write("more", "");
            git(project, &["add", "more"]);
            git(project, &["commit", "-q", "-m", "second"]);
        },
    },
    Hindered {
        why: "`main` is not what it was",
        code: 2,
        by: |_, project| project.write(".loops/main.yaml", &HANDS_OFF.replace("more", "less")),
    },
];

#[test]
fn a_resumed_run_that_cannot_begin_ends_the_status_that_its_hand_off_left() {
    for kind in [Kind::Github, Kind::Gitea] {
        for Hindered { why, code, by } in HINDERED {
            let scene = check_chain(kind);
            assert!(scene.github.statuses().pop().unwrap().starts_with("pending: handed off"), "{why}");
            let next = scene
                .another()
                .env("GITHUB_EVENT_NAME", "workflow_dispatch")
                .env("INPUT_SHA", scene.sha.clone());
            by(&scene, &next);
            let (ran, _) = goes_on(next);
            let ran = ran.code(code);
            let (request, last) =
                scene.github.received().into_iter().rfind(|(_, body)| body.get("state").is_some()).unwrap();
            let words = last["description"].as_str().unwrap();
            assert!(ran.all().contains(why), "{why}: {}", ran.all());
            assert!(last["state"] == "error" && !words.contains("handed off"), "{kind:?} {why}: {last}");
            assert!(request.ends_with(&scene.sha) && last["context"] == "ll-loop/main", "{request} {last}");
        }
    }
}

#[test]
fn what_a_run_that_was_killed_left_is_stored_by_the_step_after_it() {
    let scene = Scene::of(Kind::Act);
    let text = "name: main\ninitial: a\nstates:\n  a: {action: 'touch begun; sleep 600', on_yes: done}\n  done: {terminal: true}\n";
    let project = scene.job(Project::with_loop(text), "7", "JOB").env("INPUT_LOOP", "main");
    let mut child = project.start_until(&["action"], "begun");
    signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    let early = outputs(&project.read("out"));
    assert_eq!((&*early["artifact-name"], early.get("upload-name")), ("", None), "nothing is stored yet");
    let project = project
        .env("INPUT_RUN", early["run-id"].clone())
        .env("INPUT_REPORT_DIR", early["report-dir"].clone());
    project.write("out", "");
    let _ran = project.run(&["action", "save"]).code(0);
    let told = outputs(&project.read("out"));
    assert_eq!((&*told["artifact-name"], &*told["resume-from"]), (NAME, &*format!("artifact:{NAME}")));
    assert_eq!((&*told["outcome"], &*told["exit-code"]), ("interrupted", "137"));
    let bundle = format!("{}.llz", early["run-id"]);
    let stored = scene.played.state().artifacts[NAME].clone();
    assert!(stored.windows(bundle.len()).any(|window| window == bundle.as_bytes()));
    // Once more does no harm: what is there is of this run.
    let _ran = project
        .env("INPUT_OUTCOME", "interrupted")
        .env("INPUT_UPLOAD_NAME", NAME)
        .run(&["action", "save"])
        .code(0);
}

#[test]
fn what_a_container_left_is_stored_from_outside() {
    let scene = Scene::of(Kind::Gitea);
    // Inside, there is no access to artifacts.
    let inside = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB").env("INPUT_LOOP", "main");
    let inside = inside.env("ACTIONS_RUNTIME_TOKEN", "");
    let (ran, told) = action(&inside);
    let _ran = ran.code(75);
    assert_eq!((&*told["upload-name"], scene.stored().len()), (NAME, 0));
    let outside = inside
        .env("ACTIONS_RUNTIME_TOKEN", runtime("JOB"))
        .env("INPUT_RUN", told["run-id"].clone())
        .env("INPUT_OUTCOME", told["outcome"].clone())
        .env("INPUT_UPLOAD_NAME", NAME)
        .env("INPUT_REPORT_DIR", told["report-dir"].clone());
    outside.write("out", "");
    let _ran = outside.run(&["action", "save"]).code(0);
    assert_eq!(outputs(&outside.read("out"))["stored"], "true");
    assert_eq!(scene.stored(), [NAME]);
    let taken = outside.env("ACTIONS_RUNTIME_TOKEN", runtime("ANOTHER")).env("INPUT_RUN", "main-another");
    let _ran = taken.run(&["action", "save"]).code(4).says("they share this name");
    // On GitHub, the next step does it.
    let github = Scene::of(Kind::Github).job(Project::new(), "7", "JOB").env("INPUT_OUTCOME", "success");
    let github = github.env("INPUT_RUN", "x").env("INPUT_REPORT_DIR", "x").env("INPUT_UPLOAD_NAME", NAME);
    let _ran = github.run(&["action", "save"]).code(0);
    assert_eq!(github.read("out"), "");
}

#[test]
fn an_upload_that_another_step_could_not_do_is_said() {
    let scene = Scene::of(Kind::Enterprise);
    let project = scene.job(Project::with_loop(HANDS_OFF), "7", "JOB").env("INPUT_LOOP", "main");
    action(&project).0.code(75);
    let project = project.env("INPUT_RUN", "main").env("INPUT_UPLOAD_NAME", NAME);
    project.write("out", "");
    let ran = project.run(&["action", "unstored"]).code(0);
    assert!(
        ran.stdout.starts_with("::warning title=ll-loop::the reports of the run are not stored"),
        "{}",
        ran.all()
    );
    assert!(ran.stdout.contains("pass `key`") && project.read("out").is_empty(), "{}", ran.all());
    let project = project.env("INPUT_HANDOFF", "true");
    let ran = project.run(&["action", "unstored"]).code(4);
    assert!(
        ran.stdout.starts_with("::error title=ll-loop::the reports of the run are not stored"),
        "{}",
        ran.all()
    );
    assert_eq!(outputs(&project.read("out"))["exit-code"], "4");
    let last = scene.github.statuses().pop().unwrap();
    assert_eq!(last, "error: handed off, and nothing goes on: its files were not uploaded");
}

/// The jobs of the page about servers: what a script says, and the exit codes that do not fail its job.
fn gitlab_jobs() -> BTreeMap<String, (Vec<String>, Vec<i64>)> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/servers.md")).unwrap();
    let (_, block) = page.split_once("## GitLab").unwrap();
    let block = block.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let jobs: BTreeMap<String, serde_yaml::Value> = serde_yaml::from_str(block).unwrap();
    let texts = |value: &serde_yaml::Value| -> Vec<String> {
        value.as_sequence().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    };
    let allowed = |job: &serde_yaml::Value| {
        let codes = job.get("allow_failure").and_then(|may| may.get("exit_codes")?.as_sequence().cloned());
        codes.unwrap_or_default().iter().filter_map(serde_yaml::Value::as_i64).collect()
    };
    jobs.into_iter().map(|(name, job)| (name, (texts(&job["script"]), allowed(&job)))).collect()
}

#[test]
fn of_the_two_jobs_on_gitlab_the_second_goes_on_with_the_first() {
    for is_handed_off in [true, false] {
        let jobs = gitlab_jobs();
        let text = HANDS_OFF.replace("name: main", "name: tidy");
        let job = |project: Project| {
            project
                .env("PATH", path_with_ll_loop())
                .env("CI", "true")
                .env("GITLAB_CI", "true")
                .env("CI_PIPELINE_ID", "7")
                .env("CI_JOB_NAME", "tidy")
        };
        let play = |project: &Project, name: &str, variables: &str| {
            let (script, allowed) = &jobs[name];
            let mut command = project.command(&[]);
            let mut shell = Command::new("bash");
            shell.args(["-e", "-c", &script.join("\n")]).current_dir(project.path()).env_clear();
            shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            for line in variables.lines() {
                let (name, value) = line.split_once('=').unwrap();
                shell.env(name, value);
            }
            let _unused = command.stdin(Stdio::null());
            let ran = Ran::of(&shell.output().unwrap());
            let code = ran.code.unwrap();
            assert!(code == 0 || allowed.contains(&i64::from(code)), "{name}: {}", ran.all());
            ran
        };
        let first = job(Project::new().file(".loops/tidy.yaml", &text));
        git(&first, &["init", "-q", "-b", "main"]);
        git(&first, &["add", "-A"]);
        git(&first, &["commit", "-q", "-m", "first"]);
        let second = Project::new();
        fs::remove_dir(second.at(".loops")).unwrap();
        git(&second, &["clone", "-q", &first.path().display().to_string(), "."]);
        let second = job(second);
        if !is_handed_off {
            first.write("ready", "");
        }
        let ran = play(&first, "tidy", "");
        assert_eq!(ran.code, Some(if is_handed_off { 75 } else { 0 }), "{}", ran.all());
        // The artifacts and the variables of the first job are there in the second.
        let variables = first.read("ll-loop-report/gitlab.env");
        fs::create_dir(second.at("ll-loop-report")).unwrap();
        for entry in fs::read_dir(first.at("ll-loop-report")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), second.at("ll-loop-report").join(entry.file_name())).unwrap();
        }
        second.write("ready", "");
        let ran = play(&second, "tidy-goes-on", &variables);
        assert_eq!(ran.code, Some(0), "{}", ran.all());
        assert_eq!(ran.stderr.contains("took over tidy-"), is_handed_off, "{}", ran.all());
        assert_eq!(second.exists("ll-loop-report-2/junit.xml"), is_handed_off);
    }
}
