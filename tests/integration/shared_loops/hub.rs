//! A repository on a GitHub of our own: commits with files, branches and tags, and everything that `add` asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};
use wiremock::matchers::path_regex;
use wiremock::{Mock, Request, Respond, ResponseTemplate};

use crate::ci::reported::Github;
use crate::common::Project;

pub(super) const TOKEN: &str = "ghs_0123456789";

/// A file: its mode, and what it holds.
type Files = BTreeMap<String, (String, Vec<u8>)>;

#[derive(Clone)]
struct Commit {
    parent: Option<String>,
    files: Files,
}

#[derive(Default)]
struct State {
    name: String,
    default: String,
    commits: BTreeMap<String, Commit>,
    branches: BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    /// Answers in the place of its own, by what the path ends with.
    instead: BTreeMap<String, ResponseTemplate>,
    asked: Vec<(String, Option<String>)>,
}

/// The server.
pub(super) struct Hub {
    pub(super) github: Github,
    state: Arc<Mutex<State>>,
}

struct Answers(Arc<Mutex<State>>);

fn sha(text: impl AsRef<[u8]>) -> String {
    ll_loop::internals::base::text::hex(&Sha1::digest(text.as_ref()))
}

fn blob(bytes: &[u8]) -> String {
    sha([format!("blob {}\0", bytes.len()).as_bytes(), bytes].concat())
}

impl Hub {
    /// Makes `octo/tools` with one commit on `main`.
    pub(super) fn with(files: &[(&str, &str)]) -> Self {
        let github = Github::silent();
        let state = State { name: "octo/tools".into(), default: "main".into(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        github.mount(Mock::given(path_regex(".*")).respond_with(Answers(state.clone())));
        let hub = Self { github, state };
        hub.commit("main", files);
        hub
    }

    /// Makes a commit on a branch, with these files instead of those of the same names, and returns its id.
    pub(super) fn commit(&self, branch: &str, files: &[(&str, &str)]) -> String {
        let parent = self.state.lock().unwrap().branches.get(branch).cloned();
        let commit = self.loose(parent.as_deref(), files);
        self.state.lock().unwrap().branches.insert(branch.to_owned(), commit.clone());
        commit
    }

    /// Makes a commit that no branch leads to, as one of a fork.
    pub(super) fn loose(&self, parent: Option<&str>, files: &[(&str, &str)]) -> String {
        let mut state = self.state.lock().unwrap();
        let mut all = parent.map(|parent| state.commits[parent].files.clone()).unwrap_or_default();
        for (path, text) in files {
            let (mode, path) = path.split_once(' ').unwrap_or(("100644", path));
            all.insert(path.to_owned(), (mode.to_owned(), text.as_bytes().to_vec()));
        }
        let commit = sha(format!("{parent:?}{all:?}"));
        state.commits.insert(commit.clone(), Commit { parent: parent.map(str::to_owned), files: all });
        commit
    }

    pub(super) fn tag(&self, name: &str, commit: &str) {
        self.state.lock().unwrap().tags.insert(name.to_owned(), commit.to_owned());
    }

    pub(super) fn branch(&self, name: &str, commit: &str) {
        self.state.lock().unwrap().branches.insert(name.to_owned(), commit.to_owned());
    }

    pub(super) fn rename(&self, name: &str) {
        name.clone_into(&mut self.state.lock().unwrap().name);
    }

    pub(super) fn head(&self) -> String {
        self.state.lock().unwrap().branches["main"].clone()
    }

    /// Answers what ends like this with something else.
    pub(super) fn instead(&self, end: &str, answer: ResponseTemplate) {
        self.state.lock().unwrap().instead.insert(end.to_owned(), answer);
    }

    /// Forgets what there was instead.
    pub(super) fn as_usual(&self) {
        self.state.lock().unwrap().instead.clear();
    }

    /// Returns what was asked for: paths, and the token that came with each.
    pub(super) fn asked(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut self.state.lock().unwrap().asked)
    }

    /// Makes a project that knows this server.
    pub(super) fn project(&self) -> Project {
        self.at(Project::new())
    }

    pub(super) fn at(&self, project: Project) -> Project {
        project
            .env("GITHUB_API_URL", self.github.address())
            .env("GITHUB_SERVER_URL", "https://github.com")
            .env("GITHUB_TOKEN", TOKEN)
            .env("LL_RETRY_WAIT", "1ms")
    }

    /// Returns the id of the directory of a commit.
    pub(super) fn tree(commit: &str, directory: &str) -> String {
        sha(format!("{commit} {directory}"))
    }
}

impl Respond for Answers {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut state = self.0.lock().unwrap();
        let path = request.url.path().to_owned();
        let token = request.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        state.asked.push((path.clone(), token));
        if let Some((_, answer)) = state.instead.iter().find(|(end, _)| path.ends_with(end.as_str())) {
            return answer.clone();
        }
        match state.answer(&path) {
            Some(body) => ResponseTemplate::new(200).set_body_json(body),
            None => ResponseTemplate::new(404).set_body_json(json!({"message": "Not Found"})),
        }
    }
}

impl State {
    fn answer(&self, path: &str) -> Option<Value> {
        let path = percent_encoding::percent_decode_str(path).decode_utf8().unwrap().into_owned();
        let mut parts = path.strip_prefix("/repos/")?.splitn(3, '/');
        let name = format!("{}/{}", parts.next()?, parts.next()?);
        if !name.eq_ignore_ascii_case(&self.name) && !name.eq_ignore_ascii_case("octo/tools") {
            return None;
        }
        let below = parts.next().unwrap_or_default();
        if below.is_empty() {
            return Some(json!({"full_name": self.name, "default_branch": self.default}));
        }
        let object = |kind: &str, sha: &str| json!({"type": kind, "sha": sha});
        if let Some(name) = below.strip_prefix("git/ref/heads/") {
            let commit = self.branches.get(name)?;
            return Some(json!({"ref": format!("refs/heads/{name}"), "object": object("commit", commit)}));
        }
        if let Some(name) = below.strip_prefix("git/ref/tags/") {
            // An annotated one.
            self.tags.get(name)?;
            return Some(json!({"ref": format!("refs/tags/{name}"), "object": object("tag", &sha(name))}));
        }
        if let Some(id) = below.strip_prefix("git/tags/") {
            let (_, commit) = self.tags.iter().find(|(name, _)| sha(name) == id)?;
            return Some(json!({"object": object("commit", commit)}));
        }
        let named = |all: &BTreeMap<String, String>| -> Value {
            all.iter().map(|(name, commit)| json!({"name": name, "commit": {"sha": commit}})).collect()
        };
        if below == "branches" {
            return Some(named(&self.branches));
        }
        if below == "tags" {
            return Some(named(&self.tags));
        }
        if let Some(two) = below.strip_prefix("compare/") {
            let (base, head) = two.split_once("...")?;
            let (of_base, of_head) = (self.history(base)?, self.history(head)?);
            let status = match () {
                () if base == head => "identical",
                () if of_base.contains(head) => "behind",
                () if of_head.contains(base) => "ahead",
                () if of_base.intersection(&of_head).next().is_some() => "diverged",
                () => return None,
            };
            return Some(json!({"status": status, "commits": [], "files": []}));
        }
        if let Some(id) = below.strip_prefix("git/commits/") {
            self.commits.get(id)?;
            return Some(json!({"sha": id, "tree": {"sha": Hub::tree(id, "")}}));
        }
        if let Some(id) = below.strip_prefix("git/blobs/") {
            let files = self.commits.values().flat_map(|commit| commit.files.values());
            let (_, bytes) = files.into_iter().find(|(_, bytes)| blob(bytes) == id)?;
            let text = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
            return Some(json!({"encoding": "base64", "content": format!("{text}\n")}));
        }
        let id = below.strip_prefix("git/trees/")?;
        self.commits.iter().find_map(|(commit, Commit { files, .. })| listed(commit, files, id))
    }

    fn history(&self, commit: &str) -> Option<BTreeSet<String>> {
        let mut all = BTreeSet::new();
        let mut at = Some(commit.to_owned());
        while let Some(commit) = at {
            let parent = self.commits.get(&commit)?.parent.clone();
            all.insert(commit);
            at = parent;
        }
        Some(all)
    }
}

/// Lists the directory with this id.
fn listed(commit: &str, files: &Files, id: &str) -> Option<Value> {
    let parents = |path: &str| -> Vec<String> {
        path.match_indices('/').map(|(at, _)| path[..at].to_owned()).collect()
    };
    let directories: BTreeSet<String> =
        files.keys().flat_map(|path| parents(path)).chain([String::new()]).collect();
    let directory = directories.iter().find(|directory| Hub::tree(commit, directory) == id)?;
    let inside = |path: &str| -> Option<String> {
        let rest = if directory.is_empty() { path } else { path.strip_prefix(&format!("{directory}/"))? };
        (!rest.is_empty() && !rest.contains('/')).then(|| rest.to_owned())
    };
    let of_files = files.iter().filter_map(|(path, (mode, bytes))| {
        Some(json!({"path": inside(path)?, "mode": mode, "type": "blob", "sha": blob(bytes), "size": bytes.len()}))
    });
    let below = directories.iter().filter_map(|path| {
        let sha = Hub::tree(commit, path);
        Some(json!({"path": inside(path)?, "mode": "040000", "type": "tree", "sha": sha}))
    });
    Some(json!({"sha": id, "tree": of_files.chain(below).collect::<Vec<_>>(), "truncated": false}))
}
