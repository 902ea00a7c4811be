//! A model of GitHub, as far as a delivery meets it. It enforces GitHub's rules, not what our program does; objects and
//! refs are those of a real bare repository, which git reaches at the same address.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::{Value, json};

use crate::common::Project;
use crate::forge::git_server::{Access, Bare, Repositories};
use crate::forge::web::{Answer, Asked, Served, Serves, Web};

/// The repository that everything is about.
pub(super) const REPOSITORY: &str = "octo/project";

/// The token that jobs have.
pub(super) const TOKEN: &str = "ghs_0123456789";

/// What a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Read,
    Write,
}

/// Whose token it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The job's own.
    Actions,
    App,
    Person,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    owner: Owner,
    permissions: BTreeMap<String, Level>,
}

impl Token {
    /// Makes one that has what a delivery needs.
    pub(super) fn of(owner: Owner) -> Self {
        let permissions = BTreeMap::new();
        Self { owner, permissions }
            .may("contents", Some(Level::Write))
            .may("pull_requests", Some(Level::Write))
    }

    /// Gives it a permission, or takes it away.
    pub(super) fn may(mut self, permission: &str, level: Option<Level>) -> Self {
        match level {
            Some(level) => self.permissions.insert(permission.to_owned(), level),
            None => self.permissions.remove(permission),
        };
        self
    }

    pub(super) fn login(&self) -> &'static str {
        match self.owner {
            Owner::Actions => "github-actions[bot]",
            Owner::App => "helper[bot]",
            Owner::Person => "ann",
        }
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    pub(super) fn has(&self, permission: &str, level: Level) -> bool {
        self.permissions.get(permission).is_some_and(|has| *has >= level)
    }
}

/// A limit on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// So many an hour; the next hour is this many seconds away.
    Primary(u64),
    /// Too fast; it is over after this many seconds.
    Secondary(u64),
}

/// How a pull request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stands {
    Open,
    Closed,
    Merged,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a pull request has them")]
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) stands: Stands,
    /// Its head was once at its base: nobody can open it again.
    pub(super) is_dead: bool,
    pub(super) is_draft: bool,
    pub(super) is_locked: bool,
    pub(super) merges_itself: bool,
    pub(super) title: String,
    pub(super) body: String,
    /// The repository of its head.
    pub(super) from: String,
    pub(super) head: String,
    pub(super) base: String,
    /// The newest commit of its head.
    pub(super) sha: String,
    pub(super) by: String,
    pub(super) reviews: Vec<Value>,
    pub(super) comments: Vec<Value>,
}

/// What the model knows besides objects and refs, and what it allows.
#[derive(Debug)]
pub(super) struct State {
    tokens: BTreeMap<String, Token>,
    pub(super) pulls: Vec<Pull>,
    /// Whole names of refs that nobody may move, or what they begin with, and a star.
    pub(super) protected: BTreeSet<String>,
    /// "Allow GitHub Actions to create and approve pull requests".
    pub(super) actions_may_open: bool,
    pub(super) has_drafts: bool,
    /// Whether commits that the model makes are signed; a server of one's own may have no key.
    pub(super) signs: bool,
    pub(super) signed: BTreeSet<String>,
    /// Requests to the API from the first number on, before the second one, meet a limit.
    pub(super) limited: Option<(usize, usize, Limit)>,
    asked: usize,
}

pub(super) struct Core {
    pub(super) url: String,
    pub(super) repositories: Repositories,
    state: Mutex<State>,
}

/// A request in the hands of the model.
pub(super) struct Desk<'d> {
    pub(super) core: &'d Core,
    pub(super) bare: Bare,
    pub(super) state: MutexGuard<'d, State>,
    pub(super) token: Token,
}

/// The whole server.
pub(super) struct Hub {
    pub(super) web: Web,
    core: Arc<Core>,
}

pub(super) fn error(status: u16, message: &str) -> Answer {
    Answer::json(status, &json!({"message": message, "documentation_url": "https://docs.github.com/rest"}))
}

/// What GitHub answers to a token that may not.
pub(super) fn denied(permission: &str, level: Level) -> Answer {
    let level = if level == Level::Read { "read" } else { "write" };
    error(403, "Resource not accessible by integration")
        .with("x-accepted-github-permissions", &format!("{permission}={level}"))
}

const ZERO: &str = "0000000000000000000000000000000000000000";

impl Hub {
    pub(super) fn start() -> Self {
        let listener = Web::listener();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let repositories = Repositories::new();
        let bare = repositories.create(REPOSITORY);
        // As GitHub does it: everybody sees them, and nobody pushes there.
        bare.git(&["config", "receive.hideRefs", "refs/pull"]);
        bare.hook(
            "pre-receive",
            "while read old new ref; do
               while read rule; do
                 case \"$ref\" in $rule) echo \"error: GH006: Protected branch update failed for $ref.\" >&2; exit 1;; esac
               done < \"$GIT_DIR/protected\"
             done",
        );
        std::fs::write(bare.path.join("protected"), "").unwrap();
        let state = State {
            tokens: BTreeMap::new(),
            pulls: Vec::new(),
            protected: BTreeSet::new(),
            actions_may_open: true,
            has_drafts: true,
            signs: true,
            signed: BTreeSet::new(),
            limited: None,
            asked: 0,
        };
        let core = Arc::new(Core { url, repositories, state: Mutex::new(state) });
        let hub = Self { web: Web::start(listener, Arc::clone(&core) as Arc<dyn Serves>), core };
        hub.admit(TOKEN, Token::of(Owner::App));
        hub
    }

    pub(super) fn bare(&self) -> Bare {
        self.core.repositories.bare(REPOSITORY)
    }

    /// Makes a repository of somebody else on the same server.
    pub(super) fn another(&self, name: &str) -> Bare {
        self.core.repositories.create(name)
    }

    pub(super) fn admit(&self, text: &str, token: Token) {
        let access = if token.has("contents", Level::Write) { Access::Write } else { Access::Read };
        self.core.repositories.admit(text, access);
        self.set(|state| drop(state.tokens.insert(text.to_owned(), token)));
    }

    /// Looks at the state, or changes it.
    pub(super) fn set<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.core.state.lock().unwrap());
        let rules: String =
            self.core.state.lock().unwrap().protected.iter().map(|rule| format!("{rule}\n")).collect();
        std::fs::write(self.bare().path.join("protected"), rules).unwrap();
        changed
    }

    /// Returns the pull requests, as they stand now.
    pub(super) fn pulls(&self) -> Vec<Pull> {
        let mut state = self.core.state.lock().unwrap();
        state.look(&self.bare());
        state.pulls.clone()
    }

    /// Forgets the requests and the limits there were.
    pub(super) fn begin(&self, planned: Option<crate::forge::web::Planned>) {
        self.web.begin(planned);
        let mut state = self.core.state.lock().unwrap();
        (state.asked, state.limited) = (0, None);
    }

    /// Returns the requests that were to change something.
    pub(super) fn writes(&self) -> Vec<String> {
        self.web.served().iter().filter(|served| is_write(served)).map(|served| served.line.clone()).collect()
    }

    /// Puts a project into a job of this server.
    pub(super) fn job(&self, project: Project) -> Project {
        project
            .in_github_job()
            .env("GITHUB_API_URL", format!("{}/api/v3", self.core.url))
            .env("GITHUB_GRAPHQL_URL", format!("{}/api/graphql", self.core.url))
            .env("GITHUB_SERVER_URL", self.core.url.clone())
            .env("GITHUB_REPOSITORY", REPOSITORY)
            .env("GITHUB_REPOSITORY_ID", "1")
            .env("GITHUB_EVENT_NAME", "schedule")
            .env("GITHUB_REF", "refs/heads/main")
            .env("GITHUB_REF_NAME", "main")
            .env("GITHUB_WORKFLOW_REF", "octo/project/.github/workflows/nightly.yml@refs/heads/main")
            .env("GITHUB_RUN_ID", "77")
            .env("GITHUB_RUN_ATTEMPT", "1")
            .env("LL_RETRY_WAIT", "1ms")
    }

    /// Squashes a pull request into its base, as a person does with the button.
    pub(super) fn merge(&self, number: u64) {
        let bare = self.bare();
        let mut state = self.core.state.lock().unwrap();
        state.look(&bare);
        let pull = state.pulls.iter_mut().find(|pull| pull.number == number).unwrap();
        assert_eq!(pull.stands, Stands::Open);
        let base = format!("refs/heads/{}", pull.base);
        let tree = bare.git(&["merge-tree", "--write-tree", &base, &pull.sha]);
        let id = bare.git(&["commit-tree", &tree, "-p", &base, "-m", &pull.title]);
        bare.git(&["update-ref", &base, &id]);
        pull.stands = Stands::Merged;
    }

    /// Opens a pull request from the branch of a fork, whose objects the repository then has.
    pub(super) fn of_fork(&self, fork: &Bare, from: &str, branch: &str) -> u64 {
        let bare = self.bare();
        let sha = fork.git(&["rev-parse", branch]);
        let number = self.set(|state| {
            let number = state.pulls.len() as u64 + 1;
            state.pulls.push(Pull {
                title: "from a fork".to_owned(),
                from: from.to_owned(),
                sha: sha.clone(),
                ..Pull::new(number, branch, "main", "stranger")
            });
            number
        });
        let path = fork.path.to_str().unwrap();
        bare.git(&["fetch", "-q", path, &format!("+refs/heads/{branch}:refs/pull/{number}/head")]);
        number
    }
}

fn is_write(served: &Served) -> bool {
    let asked = &served.asked;
    if asked.path.ends_with("/git-receive-pack") {
        return true;
    }
    let is_query = asked.path.ends_with("/git-upload-pack")
        || asked.path.ends_with("/graphql")
            && !asked.json()["query"].as_str().unwrap_or_default().trim_start().starts_with("mutation");
    asked.method != "GET" && !is_query
}

impl Pull {
    pub(super) fn new(number: u64, head: &str, base: &str, by: &str) -> Self {
        Self {
            number,
            stands: Stands::Open,
            is_dead: false,
            is_draft: false,
            is_locked: false,
            merges_itself: false,
            title: String::new(),
            body: String::new(),
            from: REPOSITORY.to_owned(),
            head: head.to_owned(),
            base: base.to_owned(),
            sha: String::new(),
            by: by.to_owned(),
            reviews: Vec::new(),
            comments: Vec::new(),
        }
    }
}

impl State {
    /// Lets the pull requests follow their branches: merged where the base took the head in, closed for good where the
    /// head went to the base, closed where a branch is gone.
    fn look(&mut self, bare: &Bare) {
        let refs = bare.refs();
        let mut news = String::new();
        for pull in self.pulls.iter_mut().filter(|pull| pull.stands == Stands::Open) {
            let kept = format!("refs/pull/{}/head", pull.number);
            let head =
                if pull.from == REPOSITORY { format!("refs/heads/{}", pull.head) } else { kept.clone() };
            let base = format!("refs/heads/{}", pull.base);
            let (Some(head), Some(base)) = (refs.get(&head), refs.get(&base)) else {
                pull.stands = Stands::Closed;
                continue;
            };
            let is_in = |id: &str| bare.ask(&["merge-base", "--is-ancestor", id, base]).is_ok();
            if !is_in(head) {
                if pull.sha != *head {
                    news.push_str(&format!("update {kept} {head}\n"));
                }
                pull.sha.clone_from(head);
            } else if pull.sha == *head {
                pull.stands = Stands::Merged;
            } else {
                (pull.stands, pull.is_dead) = (Stands::Closed, true);
            }
        }
        if !news.is_empty() {
            bare.feed(&["update-ref", "--stdin"], &[], news.as_bytes()).unwrap();
        }
    }
}

impl Serves for Core {
    fn serve(&self, asked: &Asked) -> Answer {
        let bare = self.repositories.bare(REPOSITORY);
        if let Some(answer) = self.repositories.answer(asked) {
            if asked.path.ends_with("/git-receive-pack") {
                self.state.lock().unwrap().look(&bare);
            }
            return answer;
        }
        let mut state = self.state.lock().unwrap();
        let number = state.asked;
        state.asked += 1;
        if let Some((from, to, limit)) = state.limited
            && (from..to).contains(&number)
        {
            return limited(limit, asked.path.ends_with("/graphql"));
        }
        let words = asked.header("authorization");
        let known = words.split_once(' ').and_then(|(scheme, token)| {
            let is_known = ["bearer", "token"].contains(&scheme.to_ascii_lowercase().as_str());
            state.tokens.get(token).filter(|_| is_known).cloned()
        });
        let Some(token) = known else { return error(401, "Bad credentials") };
        if asked.header("user-agent").is_empty() {
            return error(403, "Request forbidden by administrative rules.");
        }
        state.look(&bare);
        let mut desk = Desk { core: self, bare, state, token };
        let answer = if asked.path.trim_start_matches("/api") == "/graphql" {
            desk.graphql(asked)
        } else {
            desk.rest(asked)
        };
        let Desk { mut state, bare, .. } = desk;
        state.look(&bare);
        answer
    }
}

#[expect(clippy::disallowed_methods, reason = "a limit ends at a time")]
fn limited(limit: Limit, is_graphql: bool) -> Answer {
    match limit {
        Limit::Primary(seconds) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
            let message = "API rate limit exceeded for installation ID 1.";
            let answer = if is_graphql {
                let fault = json!({"type": "RATE_LIMITED", "message": message});
                Answer::json(200, &json!({"data": null, "errors": [fault]}))
            } else {
                error(403, message)
            };
            answer
                .with("x-ratelimit-limit", "5000")
                .with("x-ratelimit-remaining", "0")
                .with("x-ratelimit-reset", &(now + seconds).to_string())
        }
        Limit::Secondary(seconds) => {
            let message =
                "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            error(403, message).with("retry-after", &seconds.to_string())
        }
    }
}

/// A ref that is to be moved.
pub(super) struct Move {
    pub(super) name: String,
    /// Where it has to be before; zeros for nowhere.
    pub(super) before: Option<String>,
    /// Where it goes; zeros for nowhere.
    pub(super) after: String,
    pub(super) is_forced: bool,
}

impl Desk<'_> {
    pub(super) fn needs(&self, permission: &str, level: Level) -> Result<(), Answer> {
        if self.token.has(permission, level) { Ok(()) } else { Err(denied(permission, level)) }
    }

    /// Tells whether a rule forbids that a ref is touched.
    pub(super) fn is_protected(&self, name: &str) -> bool {
        self.state.protected.iter().any(|rule| match rule.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => rule == name,
        })
    }

    pub(super) fn tip(&self, name: &str) -> Option<String> {
        self.bare.ask(&["rev-parse", "--verify", "-q", "--end-of-options", name]).ok()
    }

    pub(super) fn is_commit(&self, id: &str) -> bool {
        self.bare.ask(&["cat-file", "-t", id]).is_ok_and(|kind| kind == "commit")
    }

    /// Moves refs, all or none.
    pub(super) fn moves(&self, moves: &[Move]) -> Result<(), String> {
        let mut lines = "start\n".to_owned();
        for Move { name, before, after, is_forced } in moves {
            if !name.starts_with("refs/") || name.split('/').count() < 3 || name.starts_with("refs/pull/") {
                return Err(format!("{name} is not a valid ref name."));
            }
            if self.bare.ask(&["check-ref-format", name]).is_err() {
                return Err(format!("{name} is not a valid ref name."));
            }
            if self.is_protected(name) {
                return Err(format!("Protected branch update failed for {name}."));
            }
            let is = self.tip(name);
            if let Some(before) = before
                && *before != is.clone().unwrap_or_else(|| ZERO.to_owned())
            {
                return Err(format!("Reference {name} is not at {before}."));
            }
            let old = is.clone().unwrap_or_else(|| ZERO.to_owned());
            if after == ZERO {
                if is.is_none() {
                    return Err("Reference does not exist".to_owned());
                }
                lines.push_str(&format!("delete {name} {old}\n"));
                continue;
            }
            if !self.is_commit(after) {
                return Err("Object does not exist".to_owned());
            }
            if let Some(is) = &is
                && !is_forced
                && self.bare.ask(&["merge-base", "--is-ancestor", is, after]).is_err()
            {
                return Err("Update is not a fast forward".to_owned());
            }
            lines.push_str(&format!("update {name} {after} {old}\n"));
        }
        lines.push_str("prepare\ncommit\n");
        self.bare.feed(&["update-ref", "--stdin"], &[], lines.as_bytes()).map(drop)
    }

    /// Makes a commit, whose author is the token's owner unless one is given.
    pub(super) fn commits(
        &mut self,
        tree: &str,
        parents: &[String],
        message: &str,
        author: Option<&Value>,
        signed: bool,
    ) -> String {
        let text = |name: &str, default: &str| {
            author.and_then(|author| author[name].as_str()).unwrap_or(default).to_owned()
        };
        let login = self.token.login();
        let (name, email) = (text("name", login), text("email", "1+bot@users.noreply.github.com"));
        let env = [
            ("GIT_AUTHOR_NAME", name.as_str()),
            ("GIT_AUTHOR_EMAIL", email.as_str()),
            ("GIT_COMMITTER_NAME", "GitHub"),
            ("GIT_COMMITTER_EMAIL", "noreply@github.com"),
        ];
        let mut arguments = vec!["commit-tree", tree];
        for parent in parents {
            arguments.extend(["-p", parent]);
        }
        let id = self.bare.feed(&arguments, &env, message.as_bytes()).unwrap();
        if signed && self.state.signs {
            self.state.signed.insert(id.clone());
        }
        id
    }
}
