//! Pull requests of Gitea and Forgejo. Their API speaks most of GitHub's, and differs where a delivery looks: lists know
//! no head, a draft is a word before the title, and who merges by itself is told by the history alone.

use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, ApiError};
use super::repository::RepositoryName;
use crate::base::object::ObjectId;
use crate::forge::forge_trait::{ForgeError, ForgeErrorKind, NewPull, Pull, PullState, Pulls};
use crate::forge::names::BranchName;

/// What a title of a draft begins with. A server may have other words, which its answer tells.
const DRAFT: &str = "WIP:";

/// What titles of drafts begin with, unless whoever runs the server has changed it.
const DRAFTS: [&str; 2] = [DRAFT, "[WIP]"];

/// What is needed to read pull requests, and to write them.
const READS: Need = Need { permission: "pull-requests: read", scope: "read:repository" };
const WRITES: Need = Need { permission: "pull-requests: write", scope: "write:repository" };
const READS_HISTORY: Need = Need { permission: "pull-requests: read", scope: "read:issue" };
const READS_CODE: Need = Need { permission: "contents: read", scope: "read:repository" };

/// The most pages of a history.
const MAX_PAGES: u32 = 100;

/// What a token has to be allowed: that of a job has permissions, that of a person has scopes.
#[derive(Clone, Copy)]
struct Need {
    permission: &'static str,
    scope: &'static str,
}

/// The pull requests of a repository.
#[derive(Clone, Debug)]
pub struct GiteaPulls {
    api: Api,
    repository: RepositoryName,
}

impl GiteaPulls {
    /// Makes a client of a repository's pull requests.
    pub fn new(api: Api, repository: RepositoryName) -> Self {
        Self { api, repository }
    }

    /// Asks whether a push with this token starts workflows. Nothing that the token of a job does starts any.
    ///
    /// # Errors
    /// The server does not know the token, or does not answer.
    pub fn starts_checks(&self) -> Result<bool, ForgeError> {
        match self.api.get::<GiteaUser>("/user", &[]) {
            // Users that the server itself plays have numbers below zero; this one runs the jobs.
            Ok(user) => Ok(user.id >= 0),
            // Tokens of people have scopes, that of a job has none.
            Err(ApiError::Denied { .. }) => Ok(true),
            Err(error) => Err(fault(error, READS_CODE)),
        }
    }

    /// Asks whether the signature of a commit is good.
    ///
    /// # Errors
    /// The server has no such commit, or does not answer.
    pub fn is_signed(&self, id: &ObjectId) -> Result<bool, ForgeError> {
        let path = self.repository.path(&format!("/git/commits/{id}"));
        let made: CommitReply = self.api.get(&path, &[]).map_err(|error| fault(error, READS_CODE))?;
        Ok(made.commit.verification.is_some_and(|verification| verification.verified))
    }

    /// Returns the API, and the repository.
    pub fn api(&self) -> (&Api, &RepositoryName) {
        (&self.api, &self.repository)
    }

    fn path(&self, number: u64) -> String {
        self.repository.path(&format!("/pulls/{number}"))
    }

    fn change(&self, number: u64, change: &Value) -> Result<GiteaPull, ForgeError> {
        self.api.patch(&self.path(number), change).map_err(|error| {
            if is_conflict(&error) {
                let why = format!("somebody else changed the pull request {number} at the same time");
                return ForgeError::new(ForgeErrorKind::Raced, why);
            }
            fault(error, WRITES)
        })
    }

    /// Tells whether the last word about merging by itself is that it shall.
    fn merges_itself(&self, number: u64) -> Result<bool, ForgeError> {
        let path = self.repository.path(&format!("/issues/{number}/timeline"));
        let mut is_scheduled = false;
        // The header with the number of entries counts those of the page.
        for page in 1..=MAX_PAGES {
            let query = [("limit", "50"), ("page", &page.to_string())];
            // A server answers `null` in the place of an empty list.
            let entries: Option<Vec<TimelineEntry>> =
                self.api.get(&path, &query).map_err(|error| fault(error, READS_HISTORY))?;
            let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { break };
            for entry in entries {
                match entry.kind.as_str() {
                    "pull_scheduled_merge" => is_scheduled = true,
                    "pull_cancel_scheduled_merge" => is_scheduled = false,
                    _ => {}
                }
            }
        }
        Ok(is_scheduled)
    }
}

impl Pulls for GiteaPulls {
    fn of_branch(&self, branch: &BranchName, base: &BranchName) -> Result<Vec<Pull>, ForgeError> {
        let path = self.repository.path("/pulls");
        // Old servers do not know the second one, and none of them knows a head.
        let query = [("state", "all"), ("base_branch", base.as_str())];
        let mut found: Vec<GiteaPull> = Vec::new();
        for pull in self.api.list::<Vec<GiteaPull>>(&path, &query) {
            let pull = pull.map_err(|error| fault(error, READS))?;
            if pull.is_of(branch, base) {
                found.push(pull);
            }
        }
        found.sort_by_key(|pull| std::cmp::Reverse(pull.number));
        found.dedup_by_key(|pull| pull.number);
        found
            .into_iter()
            .map(|pull| {
                // Only open ones: the history is one request for each.
                let merges_itself = pull.state() == PullState::Open && self.merges_itself(pull.number)?;
                Ok(pull.known(merges_itself))
            })
            .collect()
    }

    fn open(&self, new: &NewPull) -> Result<Pull, ForgeError> {
        let wanted = json!({
            "head": new.branch.as_str(),
            "base": new.base.as_str(),
            "title": title(&new.title, new.is_draft),
            "body": new.body,
        });
        let made: Result<GiteaPull, ApiError> = self.api.post(&self.repository.path("/pulls"), &wanted);
        let made = made.map_err(|error| {
            if is_conflict(&error) {
                let why =
                    format!("there is a pull request from `{}` into `{}` already", new.branch, new.base);
                return ForgeError::new(ForgeErrorKind::Raced, why);
            }
            fault(error, WRITES)
        })?;
        // The words that make a draft are a setting of the server.
        if new.is_draft && !made.draft {
            // A pull request that can be merged must not stay.
            self.change(made.number, &json!({ "state": "closed" }))?;
            return Err(ForgeError::new(
                ForgeErrorKind::Declined,
                format!("{} makes no draft of a title that begins with `{DRAFT}`", self.api.server()),
            )
            .with_help(format!(
                "add `{DRAFT}` to `WORK_IN_PROGRESS_PREFIXES` in the settings of the server"
            )));
        }
        Ok(made.known(false))
    }

    fn edit(&self, pull: &Pull, wanted: &NewPull, makes_ready: bool) -> Result<(), ForgeError> {
        // A draft that a person made ready, or made, stays what the person wants.
        let is_draft = pull.is_draft && (wanted.is_draft || !makes_ready);
        let change = json!({ "title": title(&wanted.title, is_draft), "body": wanted.body });
        self.change(pull.number, &change).map(drop)
    }
}

/// Returns a title as the server has it.
fn title(title: &str, is_draft: bool) -> String {
    if is_draft { format!("{DRAFT} {title}") } else { title.to_owned() }
}

/// Returns the title of a draft without the word that makes it one, which may be any of these.
pub(crate) fn without_draft<'t>(title: &'t str, words: &[&str]) -> &'t str {
    let rest = |word: &&str| {
        let (begin, rest) = title.split_at_checked(word.len())?;
        begin.eq_ignore_ascii_case(word).then(|| rest.trim_start())
    };
    words.iter().find_map(rest).unwrap_or(title)
}

/// Tells whether something is in the way that somebody else has made.
pub(crate) fn is_conflict(error: &ApiError) -> bool {
    matches!(error, ApiError::Refused { status: 409, .. })
}

fn fault(error: ApiError, need: Need) -> ForgeError {
    let is_denied = matches!(error, ApiError::Denied { .. });
    let error = ForgeError::from(error);
    if !is_denied {
        return error;
    }
    error.with_help(format!(
        "give the job `permissions: {{ {} }}`, or a token of a person the scope `{}`",
        need.permission, need.scope
    ))
}

#[derive(Deserialize)]
struct GiteaUser {
    id: i64,
}

#[derive(Deserialize)]
struct CommitReply {
    commit: GiteaCommit,
}

#[derive(Deserialize)]
struct GiteaCommit {
    verification: Option<GiteaVerification>,
}

#[derive(Deserialize)]
struct GiteaVerification {
    verified: bool,
}

/// Something that happened to a pull request.
#[derive(Deserialize)]
struct TimelineEntry {
    #[serde(rename = "type", default)]
    kind: String,
}

/// A pull request, as the server tells it.
#[derive(Deserialize)]
struct GiteaPull {
    number: u64,
    html_url: String,
    title: String,
    #[serde(default)]
    body: String,
    state: String,
    #[serde(default)]
    merged: bool,
    #[serde(default)]
    draft: bool,
    base: GiteaBranch,
    head: GiteaBranch,
}

/// One of its branches.
#[derive(Deserialize)]
struct GiteaBranch {
    /// The name of the branch, also when the branch is gone.
    #[serde(default)]
    label: String,
    /// The name of the branch, or of the ref that stands for one that is gone.
    #[serde(rename = "ref", default)]
    name: String,
    #[serde(default)]
    repo_id: i64,
}

impl GiteaPull {
    /// Tells whether it is from one branch of this repository into another.
    fn is_of(&self, branch: &BranchName, base: &BranchName) -> bool {
        self.head.repo_id == self.base.repo_id
            // The label is the name of the branch even after the branch is gone.
            && self.head.label == branch.as_str()
            && self.base.name == base.as_str()
    }

    fn state(&self) -> PullState {
        match self.state.as_str() {
            _ if self.merged => PullState::Merged,
            "open" => PullState::Open,
            _ => PullState::Closed,
        }
    }

    fn known(self, merges_itself: bool) -> Pull {
        let state = self.state();
        let title = if self.draft { without_draft(&self.title, &DRAFTS) } else { &self.title };
        Pull {
            number: self.number,
            title: title.to_owned(),
            url: self.html_url,
            state,
            is_draft: self.draft,
            merges_itself,
            body: self.body,
        }
    }
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::super::github_server::GithubServer;
    use super::super::http::Transport;
    use super::super::testing::{Pauses, TestServer};
    use super::*;

    fn branch(name: &str) -> BranchName {
        BranchName::parse(name).unwrap()
    }

    fn pulls(server: &TestServer) -> GiteaPulls {
        let env = |name: &str| (name == "GITEA_ACTIONS").then(|| "true".to_owned());
        let api =
            Api::new(&server.address(), Some("t".into()), Transport::default().pause(Pauses::none().pause()));
        GiteaPulls::new(api.of(GithubServer::of(&env)), RepositoryName::parse("o/r").unwrap())
    }

    fn json(status: u16, body: &Value) -> ResponseTemplate {
        ResponseTemplate::new(status).set_body_json(body)
    }

    fn get(at: &str) -> wiremock::MockBuilder {
        Mock::given(method("GET")).and(path(format!("/repos/o/r{at}")))
    }

    /// A pull request in the words of Gitea 1.26.
    fn pull(number: u64, state: &str, title: &str) -> Value {
        let repository = json!({"id": 1, "full_name": "o/r"});
        json!({
            "id": number + 100,
            "number": number,
            "title": title,
            "body": "b",
            "state": if state == "open" { "open" } else { "closed" },
            "merged": state == "merged",
            "draft": title.starts_with("WIP:"),
            "html_url": format!("https://git.example/o/r/pulls/{number}"),
            "base": {"label": "main", "ref": "main", "sha": "", "repo_id": 1, "repo": repository},
            "head": {"label": "ll-loop/a/main", "ref": "ll-loop/a/main", "repo_id": 1, "repo": repository},
        })
    }

    fn new(title: &str, is_draft: bool) -> NewPull {
        let (branch, base) = (branch("ll-loop/a/main"), branch("main"));
        NewPull { branch, base, title: title.into(), body: "text".into(), is_draft }
    }

    fn no_history(server: &TestServer) {
        // What a history without entries is on the real server.
        server.mount(
            Mock::given(wiremock::matchers::path_regex("/timeline$")).respond_with(json(200, &Value::Null)),
        );
    }

    #[test]
    fn only_pull_requests_between_both_branches_of_the_repository_are_found() {
        let server = TestServer::start();
        no_history(&server);
        let mut all = vec![
            pull(1, "closed", "WIP: one"),
            pull(9, "open", "WIP: nine"),
            pull(3, "merged", "three"),
            pull(4, "open", "another head"),
            pull(5, "open", "another base"),
            pull(6, "open", "a fork's"),
            pull(7, "open", "pushed to refs/for/main"),
        ];
        // The branch of a merged one is gone, and its number is in the place of its name.
        all[2]["head"]["ref"] = json!("refs/pull/3/head");
        all[3]["head"]["label"] = json!("ll-loop/b/main");
        all[4]["base"]["ref"] = json!("release");
        all[5]["head"]["repo_id"] = json!(2);
        all[6]["head"]["label"] = json!("");
        let second = all.split_off(5);
        for (page, pulls) in [("1", all), ("2", second)] {
            let page = get("/pulls")
                .and(query_param("state", "all"))
                .and(query_param("base_branch", "main"))
                .and(query_param("page", page));
            server.mount(page.respond_with(json(200, &json!(pulls)).insert_header("x-total-count", "7")));
        }
        let found = pulls(&server).of_branch(&branch("ll-loop/a/main"), &branch("main")).unwrap();
        let found: Vec<_> =
            found.iter().map(|pull| (pull.number, pull.state, pull.is_draft, pull.title.as_str())).collect();
        let expected = [
            (9, PullState::Open, true, "nine"),
            (3, PullState::Merged, false, "three"),
            (1, PullState::Closed, true, "one"),
        ];
        assert_eq!(found, expected);
        // Only what is open can merge itself.
        let asked = server.received().iter().filter(|(request, _)| request.contains("timeline")).count();
        assert_eq!(asked, 1);
    }

    #[test]
    fn the_history_tells_whether_a_pull_request_merges_itself() {
        let check =
            |entries: &[&str], expect: bool| {
                let server = TestServer::start();
                server.mount(get("/pulls").respond_with(
                    json(200, &json!([pull(1, "open", "t")])).insert_header("x-total-count", "1"),
                ));
                for (page, entry) in (1..).zip(entries) {
                    let page = get("/issues/1/timeline").and(query_param("page", page.to_string()));
                    // The header tells of the page alone.
                    let entries = json!([{"id": 1, "type": "comment"}, {"id": 2, "type": entry}]);
                    server.mount(page.respond_with(json(200, &entries).insert_header("x-total-count", "2")));
                }
                server.mount(get("/issues/1/timeline").respond_with(json(200, &Value::Null)));
                let found = pulls(&server).of_branch(&branch("ll-loop/a/main"), &branch("main")).unwrap();
                assert_eq!(found[0].merges_itself, expect, "{entries:?}");
            };
        check(&[], false);
        check(&["pull_push", "pull_scheduled_merge", "pull_push"], true);
        check(&["pull_scheduled_merge", "pull_cancel_scheduled_merge"], false);
        check(&["pull_scheduled_merge", "pull_cancel_scheduled_merge", "pull_scheduled_merge"], true);
    }

    #[test]
    fn a_draft_has_a_word_before_its_title() {
        let server = TestServer::start();
        let post = || Mock::given(method("POST")).and(path("/repos/o/r/pulls"));
        server.mount(post().respond_with(json(201, &pull(1, "open", "WIP: t"))).up_to_n_times(1));
        server.mount(post().respond_with(json(201, &pull(2, "open", "t"))).up_to_n_times(1));
        server.mount(Mock::given(method("PATCH")).respond_with(json(201, &pull(1, "open", "t"))));
        let pulls = pulls(&server);
        let draft = pulls.open(&new("t", true)).unwrap();
        assert_eq!((draft.number, draft.is_draft, draft.title.as_str()), (1, true, "t"));
        let ready = pulls.open(&new("t", false)).unwrap();
        assert!(!ready.is_draft);
        for (pull, wanted, makes_ready) in [
            (&draft, new("t2", true), false),
            (&draft, new("t2", false), true),
            (&draft, new("t2", false), false),
            (&ready, new("t2", true), true),
        ] {
            pulls.edit(pull, &wanted, makes_ready).unwrap();
        }
        let titles: Vec<_> = server.changes().iter().map(|(_, body)| body["title"].clone()).collect();
        assert_eq!(titles, ["WIP: t", "t", "WIP: t2", "t2", "WIP: t2", "t2"]);
        let (request, body) = server.changes().remove(0);
        assert_eq!(request, "POST /repos/o/r/pulls");
        assert_eq!(
            body,
            json!({"head": "ll-loop/a/main", "base": "main", "title": "WIP: t", "body": "text"})
        );
        assert_eq!(server.changes()[2].0, "PATCH /repos/o/r/pulls/1");
    }

    #[test]
    fn a_draft_that_became_none_does_not_stay() {
        let server = TestServer::start();
        let mut other = pull(7, "open", "t");
        other["title"] = json!("WIP: t");
        server.mount(Mock::given(method("POST")).respond_with(json(201, &other)));
        server.mount(Mock::given(method("PATCH")).respond_with(json(201, &other)));
        let error = pulls(&server).open(&new("t", true)).unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::Declined);
        assert_eq!(error.message, "Gitea makes no draft of a title that begins with `WIP:`");
        let changes = server.changes();
        assert_eq!(changes[1], ("PATCH /repos/o/r/pulls/7".to_owned(), json!({"state": "closed"})));
    }

    #[test]
    fn titles_of_drafts_are_known_without_their_word() {
        for (with, without) in [
            ("WIP: fix", "fix"),
            ("wip:fix", "fix"),
            ("[WIP] fix", "fix"),
            ("Draft: fix", "Draft: fix"),
            ("WI", "WI"),
            ("ééé", "ééé"),
            ("", ""),
        ] {
            assert_eq!(without_draft(with, &DRAFTS), without);
        }
    }

    /// What the real server says to a token, and what we say about it.
    #[track_caller]
    fn check_error(status: u16, message: &str, kind: ForgeErrorKind, expect: &str, help: Option<&str>) {
        let server = TestServer::start();
        let answer = json(status, &json!({"message": message, "url": "http://x/api/swagger"}));
        server.mount(Mock::given(method("POST")).respond_with(answer));
        let error = pulls(&server).open(&new("t", false)).unwrap_err();
        assert_eq!((error.kind, error.message.as_str(), error.help.as_deref()), (kind, expect, help));
    }

    #[test]
    fn errors_name_the_scope_and_the_permission() {
        check_error(
            409,
            "pull request already exists for these targets [id: 1, issue_id: 1]",
            ForgeErrorKind::Raced,
            "there is a pull request from `ll-loop/a/main` into `main` already",
            None,
        );
        let scopes = "token does not have at least one of required scope(s), required=[write:repository], \
                      token scope=read:repository";
        check_error(
            403,
            scopes,
            ForgeErrorKind::Failed,
            &format!("the token may not do POST /repos/o/r/pulls: {scopes}"),
            Some(
                "give the job `permissions: { pull-requests: write }`, or a token of a person the scope `write:repository`",
            ),
        );
        check_error(
            401,
            "invalid username, password or token",
            ForgeErrorKind::Failed,
            "Gitea does not accept the token for POST /repos/o/r/pulls: invalid username, password or token",
            Some("set `GITHUB_TOKEN` or `GH_TOKEN` to a token that is valid for this repository"),
        );
        let server = TestServer::start();
        server.mount(Mock::given(method("POST")).respond_with(ResponseTemplate::new(502)));
        let error = pulls(&server).open(&new("t", false)).unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::Unavailable);
        let server = TestServer::start();
        server.mount(Mock::given(method("PATCH")).respond_with(json(409, &json!({"message": "changed"}))));
        let pull = Pull {
            number: 4,
            url: String::new(),
            state: PullState::Open,
            is_draft: false,
            merges_itself: false,
            title: String::new(),
            body: String::new(),
        };
        let error = pulls(&server).edit(&pull, &new("t", false), false).unwrap_err();
        assert_eq!(error.kind, ForgeErrorKind::Raced);
    }

    #[test]
    fn whose_token_it_is_tells_whether_pushes_start_workflows() {
        let check = |answer: ResponseTemplate| {
            let server = TestServer::start();
            server.mount(Mock::given(path("/user")).respond_with(answer));
            pulls(&server).starts_checks().map_err(|error| error.message)
        };
        let user = |id: i64, login: &str| json(200, &json!({"id": id, "login": login}));
        assert_eq!(check(user(-2, "gitea-actions")), Ok(false));
        // Whoever may call himself that is not it.
        assert_eq!(check(user(2, "gitea-actions2")), Ok(true));
        let scopes = "token does not have at least one of required scope(s), required=[read:user]";
        assert_eq!(check(json(403, &json!({"message": scopes}))), Ok(true));
        assert!(check(json(401, &json!({"message": "no"}))).is_err());
    }

    #[test]
    fn a_commit_is_signed_when_the_server_says_so() {
        let id = ObjectId::parse(&"a".repeat(40)).unwrap();
        let check = |verification: Value, expect: bool| {
            let server = TestServer::start();
            let answer = json!({"sha": id.as_str(), "commit": {"verification": verification}});
            server.mount(get(&format!("/git/commits/{id}")).respond_with(json(200, &answer)));
            assert_eq!(pulls(&server).is_signed(&id), Ok(expect));
        };
        check(json!({"verified": false, "reason": "gpg.error.not_signed_commit", "signature": ""}), false);
        check(json!({"verified": true, "reason": "x", "signature": "s"}), true);
        check(Value::Null, false);
    }
}
