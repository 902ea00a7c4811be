//! A real git server over HTTP: bare repositories behind `git http-backend`, with tokens, permissions, hooks and hidden
//! refs.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use tempfile::TempDir;

use crate::forge::web::{Answer, Asked, Serves, Web};

/// A file in a repository that is served in the first protocol only.
const OLD: &str = "old-protocol";

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The repositories, and who may do what: the part that another server may have as well.
pub(crate) struct Repositories {
    directory: TempDir,
    tokens: Mutex<BTreeMap<String, Access>>,
}

impl Repositories {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::with_prefix("ll-git-").unwrap(), tokens: Mutex::default() }
    }

    /// Makes an empty bare repository `owner/name`, which gives commits by their ids, as large servers do.
    pub(crate) fn create(&self, name: &str) -> Bare {
        let bare = self.bare(name);
        let made = Command::new("git").args(["init", "-q", "--bare", "-b", "main"]).arg(&bare.path).status();
        assert!(made.unwrap().success());
        for setting in [
            "http.receivepack=true",
            "receive.advertisePushOptions=true",
            "receive.denyDeleteCurrent=ignore",
            "uploadpack.allowFilter=true",
            "gc.auto=0",
            "receive.autogc=false",
        ] {
            let (key, value) = setting.split_once('=').unwrap();
            bare.git(&["config", key, value]);
        }
        bare.gives_by_id(true);
        bare
    }

    pub(crate) fn bare(&self, name: &str) -> Bare {
        Bare { path: self.directory.path().join(format!("{name}.git")) }
    }

    /// Lets a token in.
    pub(crate) fn admit(&self, token: &str, access: Access) {
        self.tokens.lock().unwrap().insert(token.to_owned(), access);
    }

    /// Answers a request for a repository; nothing where the path is of none.
    pub(crate) fn answer(&self, asked: &Asked) -> Option<Answer> {
        let (name, at) = asked.path.trim_start_matches('/').split_once(".git/")?;
        let Some(access) = self.access(asked) else {
            return Some(Answer::new(401, "").with("www-authenticate", "Basic realm=\"git\""));
        };
        if !self.bare(name).path.is_dir() {
            return Some(Answer::new(404, "Repository not found."));
        }
        let is_push = asked.query.contains("git-receive-pack") || at == "git-receive-pack";
        if is_push && access == Access::Read {
            return Some(Answer::new(403, format!("Permission to {name}.git denied.")));
        }
        let is_old = self.bare(name).path.join(OLD).exists();
        Some(self.cgi(asked, if is_old { "" } else { asked.header("git-protocol") }))
    }

    fn access(&self, asked: &Asked) -> Option<Access> {
        let basic = asked.header("authorization").split_once(' ')?;
        let words = base64::engine::general_purpose::STANDARD.decode(basic.1).ok()?;
        let words = String::from_utf8(words).ok()?;
        let (_, token) = words.split_once(':')?;
        basic.0.eq_ignore_ascii_case("basic").then_some(())?;
        self.tokens.lock().unwrap().get(token).copied()
    }

    fn cgi(&self, asked: &Asked, protocol: &str) -> Answer {
        let mut child = Command::new("git")
            .arg("http-backend")
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_PROJECT_ROOT", self.directory.path())
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REMOTE_USER", "job")
            .env("PATH_INFO", &asked.path)
            .env("QUERY_STRING", &asked.query)
            .env("REQUEST_METHOD", &asked.method)
            .env("CONTENT_TYPE", asked.header("content-type"))
            .env("HTTP_CONTENT_ENCODING", asked.header("content-encoding"))
            .env("GIT_PROTOCOL", protocol)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let bytes = asked.body.clone();
        let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
        let output = child.wait_with_output().unwrap().stdout;
        writer.join().unwrap();
        let Some(end) = output.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Answer::new(500, "");
        };
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let mut answer = Answer::new(200, &output[end + 4..]);
        for line in head.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            if name == "Status" {
                answer.status = value[..3].parse().unwrap();
            } else {
                answer = answer.with(name, value);
            }
        }
        answer
    }
}

/// A bare repository on the server.
#[derive(Clone, Debug)]
pub(crate) struct Bare {
    pub(crate) path: PathBuf,
}

impl Bare {
    /// Asks git in it.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.ask(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    }

    /// Asks git in it, which may fail; then its words are the error.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        self.feed(arguments, &[], b"")
    }

    /// Asks git in it, with an input and with variables.
    pub(crate) fn feed(
        &self,
        arguments: &[&str],
        env: &[(&str, &str)],
        input: &[u8],
    ) -> Result<String, String> {
        let mut child = Command::new("git")
            .args(["-c", "user.name=server", "-c", "user.email=server@example.org"])
            .args(arguments)
            .current_dir(&self.path)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that needs no input may be over.
        let _unread = child.stdin.take().unwrap().write_all(input);
        let ended = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\n').to_owned();
        if ended.status.success() { Ok(text(&ended.stdout)) } else { Err(text(&ended.stderr)) }
    }

    /// Returns all refs and what they point at.
    pub(crate) fn refs(&self) -> BTreeMap<String, String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
    }

    /// Allows commits that no ref points at to be fetched by their ids, or not even those that one does.
    pub(crate) fn gives_by_id(&self, gives: bool) {
        let value = if gives { "true" } else { "false" };
        for key in ["uploadpack.allowAnySHA1InWant", "uploadpack.allowReachableSHA1InWant"] {
            self.git(&["config", key, value]);
        }
        // In the second protocol git gives whatever is named.
        let is_old = self.path.join(OLD);
        if gives {
            drop(std::fs::remove_file(is_old));
        } else {
            std::fs::write(is_old, "").unwrap();
        }
    }

    /// Keeps refs from everybody, as servers do with their own: they are not listed, and nobody pushes there.
    pub(crate) fn hides(&self, begin: &str) {
        self.git(&["config", "--add", "transfer.hideRefs", begin]);
    }

    /// Runs a script of the shell at each push: `pre-receive`, `update`, `post-receive`.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        // Written by another process: a file that is open for writing in any fork of ours cannot be started.
        let path = self.path.join("hooks").join(name);
        let write = "cat > \"$1\" && chmod +x \"$1\"";
        let mut child =
            Command::new("sh").args(["-c", write, "sh"]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
        write!(child.stdin.take().unwrap(), "#!/bin/sh\n{script}\n").unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// Commits a change of files on a branch, as a person does; `None` deletes one. Returns the commit.
    pub(crate) fn commits(&self, branch: &str, files: &[(&str, Option<&str>)], message: &str) -> String {
        let tip = format!("refs/heads/{branch}");
        let directory = TempDir::with_prefix("ll-index-").unwrap();
        let index = directory.path().join("index");
        let env = [("GIT_INDEX_FILE", index.to_str().unwrap())];
        let ask = |arguments: &[&str], input: &str| self.feed(arguments, &env, input.as_bytes()).unwrap();
        let parent = self.ask(&["rev-parse", "--verify", "-q", &tip]).ok();
        if let Some(parent) = &parent {
            ask(&["read-tree", parent], "");
        }
        for (path, text) in files {
            match text {
                Some(text) => {
                    let id = ask(&["hash-object", "-w", "--stdin"], text);
                    ask(&["update-index", "--add", "--cacheinfo", &format!("100644,{id},{path}")], "");
                }
                None => drop(ask(&["update-index", "--force-remove", "--", path], "")),
            }
        }
        let tree = ask(&["write-tree"], "");
        let mut arguments = vec!["commit-tree", &tree, "-m", message];
        if let Some(parent) = &parent {
            arguments.extend(["-p", parent]);
        }
        let id = ask(&arguments, "");
        self.git(&["update-ref", &tip, &id]);
        id
    }

    /// Returns a file of a branch or commit, where it is there.
    pub(crate) fn file(&self, at: &str, path: &str) -> Option<String> {
        self.ask(&["cat-file", "-p", &format!("{at}:{path}")]).ok()
    }
}

/// A server of nothing but git.
pub(crate) struct GitServer {
    pub(crate) web: Web,
    pub(crate) repositories: Arc<Repositories>,
}

struct Site(Arc<Repositories>);

impl Serves for Site {
    fn serve(&self, asked: &Asked) -> Answer {
        self.0.answer(asked).unwrap_or_else(|| Answer::new(404, ""))
    }
}

impl GitServer {
    pub(crate) fn start() -> Self {
        let repositories = Arc::new(Repositories::new());
        let web = Web::start(Web::listener(), Arc::new(Site(Arc::clone(&repositories))));
        Self { web, repositories }
    }

    /// Returns the address of a repository.
    pub(crate) fn url(&self, name: &str) -> String {
        format!("{}/{name}.git", self.web.url())
    }
}

/// Asks git in a directory as somebody who has a token.
fn asks(directory: &Path, token: &str, arguments: &[&str]) -> Result<String, String> {
    let words = base64::engine::general_purpose::STANDARD.encode(format!("x-access-token:{token}"));
    let ended = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "http.postBuffer=70000"])
        .args(["-c", &format!("http.extraHeader=Authorization: Basic {words}")])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if ended.status.success() { Ok(text(&ended.stdout)) } else { Err(text(&ended.stderr)) }
}

/// A server with the repository `octo/project`, which has one commit, and a clone of it.
fn scene() -> (GitServer, Bare, TempDir) {
    let server = GitServer::start();
    let bare = server.repositories.create("octo/project");
    server.repositories.admit("writes", Access::Write);
    server.repositories.admit("reads", Access::Read);
    bare.commits("main", &[("a.txt", Some("a\n"))], "first");
    let clone = TempDir::with_prefix("ll-clone-").unwrap();
    asks(clone.path(), "reads", &["clone", "-q", &server.url("octo/project"), "."]).unwrap();
    (server, bare, clone)
}

#[test]
fn who_has_no_token_gets_nothing_and_who_may_only_read_pushes_nothing() {
    let (server, bare, clone) = scene();
    let fetched = asks(clone.path(), "none", &["fetch", "-q"]).unwrap_err();
    assert!(fetched.contains("Authentication failed") || fetched.contains("could not read"), "{fetched}");
    let push = ["push", "-q", "origin", "HEAD:refs/heads/new"];
    let refused = asks(clone.path(), "reads", &push).unwrap_err();
    assert!(refused.contains("403"), "{refused}");
    asks(clone.path(), "writes", &push).unwrap();
    assert_eq!(bare.refs().into_keys().collect::<Vec<_>>(), ["refs/heads/main", "refs/heads/new"]);
    let missing = asks(clone.path(), "reads", &["ls-remote", &server.url("octo/other")]).unwrap_err();
    assert!(missing.contains("not found"), "{missing}");
    let log = server.web.log();
    assert_eq!(log.iter().filter(|line| line.ends_with(" 401")).count(), 1, "{log:#?}");
    assert_eq!(log.iter().filter(|line| line.ends_with(" 403")).count(), 1, "{log:#?}");
}

#[test]
#[expect(
    clippy::cast_possible_truncation,
    clippy::format_collect,
    reason = "it is short and any bytes will do"
)]
fn large_packs_compressed_requests_and_atomic_pushes_go_through() {
    let (server, bare, clone) = scene();
    // Many refs make a fetch's request long enough to be compressed.
    let id = bare.git(&["rev-parse", "main"]);
    let refs: String = (0..400).map(|n| format!("create refs/heads/b{n} {id}\n")).collect();
    bare.feed(&["update-ref", "--stdin"], &[], refs.as_bytes()).unwrap();
    for n in 0..60 {
        bare.commits(&format!("b{n}"), &[("a.txt", Some(&n.to_string()))], "more");
    }
    asks(clone.path(), "reads", &["fetch", "-q"]).unwrap();
    let compressed = |served: &crate::forge::web::Served| {
        served.asked.header("content-encoding").eq_ignore_ascii_case("gzip")
    };
    assert!(server.web.served().iter().any(compressed), "{:#?}", server.web.log());
    // Bytes that cannot be compressed, more than the buffer holds: sent in chunks.
    let noise: Vec<u8> =
        (0..200_000_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 37) as u8).collect();
    std::fs::write(clone.path().join("noise"), noise).unwrap();
    asks(clone.path(), "writes", &["add", "noise"]).unwrap();
    asks(clone.path(), "writes", &["commit", "-q", "-m", "noise"]).unwrap();
    let wrong = "--force-with-lease=refs/heads/main:1111111111111111111111111111111111111111";
    let push = ["HEAD:refs/heads/x", "HEAD:refs/heads/main"];
    let before = bare.refs();
    asks(clone.path(), "writes", &[&["push", "-q", "--atomic", wrong, "origin"], &push[..]].concat())
        .unwrap_err();
    assert_eq!(bare.refs(), before);
    bare.hook("pre-receive", "echo \"$GIT_PUSH_OPTION_COUNT $GIT_PUSH_OPTION_0\" > \"$GIT_DIR/options\"");
    asks(
        clone.path(),
        "writes",
        &[&["push", "-q", "--atomic", "-o", "ci.skip", "origin"], &push[..]].concat(),
    )
    .unwrap();
    assert_eq!(bare.refs()["refs/heads/x"], bare.refs()["refs/heads/main"]);
    assert_eq!(std::fs::read_to_string(bare.path.join("options")).unwrap(), "1 ci.skip\n");
    bare.hook("pre-receive", "echo 'not today' >&2; exit 1");
    let refused = asks(clone.path(), "writes", &["push", "origin", "HEAD:refs/heads/y"]).unwrap_err();
    assert!(refused.contains("not today") && refused.contains("pre-receive hook declined"), "{refused}");
}

#[test]
fn commits_come_by_their_ids_where_that_is_allowed_and_hidden_refs_are_not_seen() {
    let (server, bare, clone) = scene();
    let lost = bare.commits("gone", &[("b.txt", Some("b\n"))], "lost");
    bare.git(&["update-ref", "refs/pull/1/head", &lost]);
    bare.git(&["update-ref", "-d", "refs/heads/gone"]);
    bare.hides("refs/pull");
    let url = server.url("octo/project");
    assert!(!asks(clone.path(), "reads", &["ls-remote", &url]).unwrap().contains("refs/pull"));
    let fetch = ["fetch", "-q", &url, &lost];
    bare.gives_by_id(false);
    asks(clone.path(), "reads", &fetch).unwrap_err();
    bare.gives_by_id(true);
    asks(clone.path(), "reads", &fetch).unwrap();
}
