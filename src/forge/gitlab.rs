//! Merge requests of GitLab. A token of a person, a project or a group keeps them by the API. The token of a job may not
//! even read them, but a push with it may: GitLab opens and changes a merge request as the options of the push say.

use serde::Deserialize;
use serde_json::json;

use super::forge_trait::{ForgeError, ForgeErrorKind, NewPull, Pull, PullState, Pulls};
use super::git_remote::GitRemote;
use super::github::api::{Api, ApiError};
use super::github::gitea::{is_conflict, without_draft};
use super::github::github_server::GithubServer;
use super::github::http::{Token, Transport};
use super::names::BranchName;
use crate::base::explanation::Explanation;
use crate::base::lookup::Lookup;
use crate::base::object::ObjectId;
use crate::base::text::{head, is_line_end, one_line, percent_encoded};

/// What a title of a draft begins with.
const DRAFT: &str = "Draft:";

/// What titles of drafts begin with, in any case of letters.
const DRAFTS: [&str; 3] = [DRAFT, "[Draft]", "(Draft)"];

/// The longest title that GitLab takes, in characters.
const MAX_TITLE: usize = 255;

/// The most bytes of a description in an option of a push. One option is one packet of git, of less than 64 KiB, and
/// becomes a variable of the hooks' environment.
const MAX_DESCRIPTION: usize = 16 << 10;

/// Ends a description that was cut.
const CUT: &str = " …";

const NO_PROJECT: &str = "`CI_PROJECT_PATH` names no project";

/// What to do where the token may not.
const SCOPE: &str =
    "give `LL_TOKEN` a token of this project with the scope `api` and at least the role Developer";

/// Whose token a push is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHolder {
    /// The job.
    Job,
    /// A person, a project or a group.
    Other,
}

/// Returns how git reaches the project of this job.
///
/// # Errors
/// The environment names no project, or no server.
pub fn remote(env: Lookup<'_>, holder: TokenHolder, token: &str) -> Result<GitRemote, Explanation> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let site = set("CI_SERVER_URL").ok_or_else(|| Explanation::new("`CI_SERVER_URL` names no server"))?;
    let path = set("CI_PROJECT_PATH").ok_or_else(|| Explanation::new(NO_PROJECT))?;
    // `gitlab-ci-token` goes with the token of a job. For any other token GitLab takes any name, by
    // custom this one.
    let name = match holder {
        TokenHolder::Job => "gitlab-ci-token",
        TokenHolder::Other => "oauth2",
    };
    let header = format!("Authorization: {}", Token::new(token.to_owned()).basic(name));
    GitRemote::at(&site, &path, header)
        .ok_or_else(|| Explanation::new("`CI_SERVER_URL` is not the address of a server"))
}

/// Returns what a push says to have a merge request opened, or the open one of its branch changed. No option holds a line
/// end, which git does not take.
pub fn push_options(new: &NewPull) -> Vec<String> {
    let mut options = vec![
        "merge_request.create".to_owned(),
        format!("merge_request.target={}", new.base),
        format!("merge_request.title={}", one_line(&new.title, MAX_TITLE)),
        format!("merge_request.description={}", description_in_a_line(&new.body)),
    ];
    options.extend(new.is_draft.then(|| "merge_request.draft".to_owned()));
    options
}

/// Writes a text on one line: lines become breaks, and headings would swallow the rest.
fn description_in_a_line(body: &str) -> String {
    // One option of a push is one line.
    let lines = body.split(is_line_end).map(|line| line.trim_start_matches('#').trim());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let line: String = lines.join("<br>").chars().filter(|c| !c.is_control()).collect();
    let clean = calm(&line);
    if clean.len() <= MAX_DESCRIPTION {
        // Too long a description would have the push refused as a whole.
        return clean;
    }
    format!("{}{CUT}", head(&clean, MAX_DESCRIPTION - CUT.len()))
}

/// Takes the meaning from lines that GitLab would obey: those that begin with a slash.
fn calm(body: &str) -> String {
    let calmed = body.split_inclusive('\n').map(|line| {
        let start = line.len() - line.trim_start().len();
        match line.get(start..) {
            Some(rest) if rest.starts_with('/') => format!("{}\\{rest}", &line[..start]),
            _ => line.to_owned(),
        }
    });
    calmed.collect()
}

/// The merge requests of a project, by the API.
#[derive(Clone, Debug)]
pub struct MergeRequests {
    pub(super) api: Api,
    /// The path of the project in the API.
    pub(super) project: String,
}

impl MergeRequests {
    /// Makes a client for the project of this job. The token is one of a person, a project or a group.
    ///
    /// # Errors
    /// The environment names no project, or something about the network that cannot be.
    pub fn from_env(env: Lookup<'_>, token: &str) -> Result<Self, Explanation> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let path = set("CI_PROJECT_PATH").ok_or_else(|| Explanation::new(NO_PROJECT))?;
        let base = set("CI_API_V4_URL")
            .or_else(|| Some(format!("{}/api/v4", set("CI_SERVER_URL")?.trim_end_matches('/'))))
            .ok_or_else(|| Explanation::new("`CI_API_V4_URL` and `CI_SERVER_URL` name no server"))?;
        Ok(Self::new(&base, &path, token, Transport::from_env(env)?))
    }

    fn new(base: &str, path: &str, token: &str, transport: Transport) -> Self {
        let api = Api::new(base, Some(token.to_owned()), transport)
            .of(GithubServer::named("GitLab"))
            .with_headers(&[("Accept", "application/json")]);
        Self { api, project: format!("/projects/{}", percent_encoded(path)) }
    }

    /// Asks whether the token may read merge requests. Without it, a push has to do.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn are_readable(&self) -> Result<bool, ForgeError> {
        match self.api.list::<Vec<MergeRequest>>(&self.path(""), &[("state", "opened")]).next() {
            None | Some(Ok(_)) => Ok(true),
            Some(Err(
                // Some answer 404, so as not to say that a project exists.
                ApiError::Unauthorized { .. } | ApiError::Denied { .. } | ApiError::NotFound { .. },
            )) => Ok(false),
            Some(Err(error)) => Err(fault(error)),
        }
    }

    /// Asks whether the signature of a commit is good.
    ///
    /// # Errors
    /// The token may not ask, or the server does not answer.
    pub fn is_signed(&self, id: &ObjectId) -> Result<bool, ForgeError> {
        let path = format!("{}/repository/commits/{id}/signature", self.project);
        match self.api.get::<Signature>(&path, &[]) {
            Ok(signature) => Ok(signature.verification_status == "verified"),
            // A commit without one has none to be found.
            Err(ApiError::NotFound { .. }) => Ok(false),
            Err(error) => Err(fault(error)),
        }
    }

    fn path(&self, below: &str) -> String {
        format!("{}/merge_requests{below}", self.project)
    }
}

impl Pulls for MergeRequests {
    fn of_branch(&self, branch: &BranchName, base: &BranchName) -> Result<Vec<Pull>, ForgeError> {
        let query = [
            ("state", "all"),
            ("source_branch", branch.as_str()),
            ("target_branch", base.as_str()),
            ("order_by", "created_at"),
            ("sort", "desc"),
        ];
        let mut found: Vec<MergeRequest> = Vec::new();
        for request in self.api.list::<Vec<MergeRequest>>(&self.path(""), &query) {
            let request = request.map_err(fault)?;
            // A fork can have a branch of the same name.
            if request.is_of(branch, base) {
                found.push(request);
            }
        }
        found.sort_by_key(|request| std::cmp::Reverse(request.iid));
        found.dedup_by_key(|request| request.iid);
        Ok(found.into_iter().map(MergeRequest::known).collect())
    }

    fn open(&self, new: &NewPull) -> Result<Pull, ForgeError> {
        let wanted = json!({
            "source_branch": new.branch.as_str(),
            "target_branch": new.base.as_str(),
            "title": title(&new.title, new.is_draft),
            "description": calm(&new.body),
        });
        let made: Result<MergeRequest, ApiError> = self.api.post(&self.path(""), &wanted);
        let made = made.map_err(|error| {
            if is_conflict(&error) {
                let why =
                    format!("there is a merge request from `{}` into `{}` already", new.branch, new.base);
                return ForgeError::new(ForgeErrorKind::Raced, why);
            }
            fault(error)
        })?;
        Ok(made.known())
    }

    fn edit(&self, pull: &Pull, wanted: &NewPull, makes_ready: bool) -> Result<(), ForgeError> {
        let is_draft = pull.is_draft && (wanted.is_draft || !makes_ready);
        let change = json!({ "title": title(&wanted.title, is_draft), "description": calm(&wanted.body) });
        let changed: Result<MergeRequest, ApiError> =
            self.api.put(&self.path(&format!("/{}", pull.number)), &change);
        changed.map(drop).map_err(fault)
    }
}

/// Returns a title as the server has it.
fn title(title: &str, is_draft: bool) -> String {
    let title = if is_draft { format!("{DRAFT} {title}") } else { title.to_owned() };
    one_line(&title, MAX_TITLE)
}

fn fault(error: ApiError) -> ForgeError {
    let is_of_token =
        matches!(error, ApiError::Unauthorized { .. } | ApiError::Denied { .. } | ApiError::NotFound { .. });
    let is_away = matches!(error, ApiError::Unavailable { .. });
    let error = ForgeError::from(error);
    match (is_of_token, is_away) {
        (true, _) => error.with_help(SCOPE),
        // The help of the client names the page of GitHub.
        (false, true) => error.with_help("try again later"),
        (false, false) => error,
    }
}

#[derive(Deserialize)]
struct Signature {
    verification_status: String,
}

/// A merge request, as the server tells it.
#[derive(Deserialize)]
struct MergeRequest {
    iid: u64,
    web_url: String,
    title: String,
    description: Option<String>,
    state: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    merge_when_pipeline_succeeds: bool,
    source_branch: String,
    target_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
}

impl MergeRequest {
    /// Tells whether it is from one branch of this project into another.
    fn is_of(&self, branch: &BranchName, base: &BranchName) -> bool {
        self.source_project_id == Some(self.target_project_id)
            && self.source_branch == branch.as_str()
            && self.target_branch == base.as_str()
    }

    fn known(self) -> Pull {
        // One that is locked is being merged, and can no longer be changed.
        let is_being_merged = self.state == "locked";
        let state = match self.state.as_str() {
            "merged" => PullState::Merged,
            "closed" => PullState::Closed,
            _ => PullState::Open,
        };
        let title = if self.draft { without_draft(&self.title, &DRAFTS) } else { &self.title };
        Pull {
            number: self.iid,
            title: title.to_owned(),
            url: self.web_url,
            state,
            is_draft: self.draft,
            merges_itself: self.merge_when_pipeline_succeeds || is_being_merged,
            body: self.description.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use wiremock::matchers::{any, header, method, query_param};
    use wiremock::{Mock, ResponseTemplate};

    use super::*;
    use crate::forge::github::testing::{Pauses, TestServer};

    fn branch(name: &str) -> BranchName {
        BranchName::parse(name).unwrap()
    }

    fn new(title: &str, body: &str, is_draft: bool) -> NewPull {
        let (branch, base) = (branch("ll-loop/a/main"), branch("main"));
        NewPull { branch, base, title: title.into(), body: body.into(), is_draft }
    }

    fn requests(server: &TestServer) -> MergeRequests {
        let transport = Transport::default().pause(Pauses::none().pause());
        MergeRequests::new(&format!("{}/api/v4", server.address()), "group/sub/p", "t", transport)
    }

    fn json(status: u16, body: &Value) -> ResponseTemplate {
        ResponseTemplate::new(status).set_body_json(body)
    }

    /// A merge request in the words of GitLab's documentation.
    fn request(iid: u64, state: &str, title: &str) -> Value {
        json!({
            "id": iid + 100,
            "iid": iid,
            "web_url": format!("https://gitlab.example/group/sub/p/-/merge_requests/{iid}"),
            "title": title,
            "description": null,
            "state": state,
            "draft": title.starts_with("Draft:"),
            "merge_when_pipeline_succeeds": false,
            "source_branch": "ll-loop/a/main",
            "target_branch": "main",
            "source_project_id": 1,
            "target_project_id": 1,
        })
    }

    #[test]
    fn a_push_says_what_the_merge_request_is_to_be() {
        let body = "## Verified\n\n- by `cargo test`\r\n- twice\n<!-- mark -->\n";
        let options = push_options(&new("Fix\nmore", body, true));
        let expected = [
            "merge_request.create",
            "merge_request.target=main",
            "merge_request.title=Fix…",
            "merge_request.description=Verified<br>- by `cargo test`<br>- twice<br><!-- mark -->",
            "merge_request.draft",
        ];
        assert_eq!(options, expected);
        assert_eq!(push_options(&new("t", "b", false)).len(), 4);
    }

    proptest! {
        #[test]
        fn whatever_is_said_an_option_is_one_line_of_a_packet(title in "(?s).{0,400}", body in "(?s).{0,30}", times in 1usize..2000) {
            let options = push_options(&new(&title, &body.repeat(times), false));
            for option in options {
                prop_assert!(!option.contains(['\n', '\r', '\0', '\u{1b}']), "{option:?}");
                prop_assert!(option.len() < 65_000, "{}", option.len());
                prop_assert!(!option.contains("description=/"), "{option:?}");
            }
        }
    }

    #[test]
    fn no_line_is_an_order_to_gitlab() {
        assert_eq!(calm("a\n/merge\n  /close\nb/c\n"), "a\n\\/merge\n  \\/close\nb/c\n");
        assert_eq!(calm("/approve"), "\\/approve");
        let options = push_options(&new("t", "#/merge", false));
        assert_eq!(options[3], "merge_request.description=\\/merge");
    }

    #[test]
    fn only_merge_requests_between_both_branches_of_the_project_are_found() {
        let server = TestServer::start();
        let mut all = [
            request(9, "opened", "Draft: nine"),
            request(8, "opened", "a fork's"),
            request(7, "merged", "seven"),
            request(6, "closed", "six"),
            request(5, "locked", "five"),
            request(4, "opened", "another"),
        ];
        all[1]["source_project_id"] = json!(2);
        all[5]["source_branch"] = json!("x");
        all[0]["merge_when_pipeline_succeeds"] = json!(true);
        let list = Mock::given(method("GET"))
            .and(header("authorization", "Bearer t"))
            .and(header("accept", "application/json"))
            .and(query_param("state", "all"))
            .and(query_param("source_branch", "ll-loop/a/main"))
            .and(query_param("target_branch", "main"));
        server.mount(list.respond_with(json(200, &json!(all))));
        let found = requests(&server).of_branch(&branch("ll-loop/a/main"), &branch("main")).unwrap();
        let found: Vec<_> =
            found.iter().map(|pull| (pull.number, pull.state, pull.is_draft, pull.merges_itself)).collect();
        let expected = [
            (9, PullState::Open, true, true),
            (7, PullState::Merged, false, false),
            (6, PullState::Closed, false, false),
            (5, PullState::Open, false, true),
        ];
        assert_eq!(found, expected);
        let asked = server.received().remove(0).0;
        assert!(asked.starts_with("GET /api/v4/projects/group%2Fsub%2Fp/merge_requests?"), "{asked}");
    }

    #[test]
    fn a_draft_has_a_word_before_its_title() {
        let server = TestServer::start();
        server.mount(Mock::given(method("POST")).respond_with(json(201, &request(1, "opened", "Draft: t"))));
        server.mount(Mock::given(method("PUT")).respond_with(json(200, &request(1, "opened", "t"))));
        let requests = requests(&server);
        let draft = requests.open(&new("t", "a\n/merge", true)).unwrap();
        assert_eq!((draft.number, draft.is_draft, draft.title.as_str()), (1, true, "t"));
        requests.edit(&draft, &new("t2", "b", false), true).unwrap();
        requests.edit(&draft, &new("t2", "b", false), false).unwrap();
        let changes = server.changes();
        let project = "/api/v4/projects/group%2Fsub%2Fp";
        assert_eq!(changes[0].0, format!("POST {project}/merge_requests"));
        let sent = json!({"source_branch": "ll-loop/a/main", "target_branch": "main", "title": "Draft: t", "description": "a\n\\/merge"});
        assert_eq!(changes[0].1, sent);
        assert_eq!(changes[1].0, format!("PUT {project}/merge_requests/1"));
        assert_eq!(changes[1].1, json!({"title": "t2", "description": "b"}));
        assert_eq!(changes[2].1["title"], "Draft: t2");
    }

    #[track_caller]
    fn check_error(status: u16, body: &Value, kind: ForgeErrorKind, says: &str, help: Option<&str>) {
        let server = TestServer::start();
        server.mount(Mock::given(any()).respond_with(json(status, body)));
        let error = requests(&server).open(&new("t", "b", false)).unwrap_err();
        assert_eq!((error.kind, error.help.as_deref()), (kind, help));
        assert!(error.message.ends_with(says), "{}", error.message);
    }

    #[test]
    fn errors_say_which_token_helps() {
        let exists =
            json!({"message": ["Another open merge request already exists for this source branch: !12"]});
        let already = "there is a merge request from `ll-loop/a/main` into `main` already";
        check_error(409, &exists, ForgeErrorKind::Raced, already, None);
        let scope = json!({"error": "insufficient_scope", "error_description": "The request requires higher privileges."});
        check_error(403, &scope, ForgeErrorKind::Failed, "requires higher privileges.", Some(SCOPE));
        check_error(
            401,
            &json!({"message": "401 Unauthorized"}),
            ForgeErrorKind::Failed,
            "401 Unauthorized",
            Some(SCOPE),
        );
        check_error(
            404,
            &json!({"message": "404 Project Not Found"}),
            ForgeErrorKind::Failed,
            "404 Project Not Found",
            Some(SCOPE),
        );
        let taken = json!({"message": ["Title is too long", "Target branch is gone"]});
        check_error(
            400,
            &taken,
            ForgeErrorKind::Failed,
            "with 400: Title is too long; Target branch is gone",
            None,
        );
    }

    #[test]
    fn a_token_that_may_not_read_them_is_found_out() {
        let check = |answer: ResponseTemplate| {
            let server = TestServer::start();
            server.mount(Mock::given(any()).respond_with(answer));
            requests(&server).are_readable().map_err(|error| error.kind)
        };
        assert_eq!(check(json(200, &json!([]))), Ok(true));
        assert_eq!(check(json(200, &json!([request(1, "opened", "t")]))), Ok(true));
        for status in [401, 403, 404] {
            assert_eq!(check(json(status, &json!({"message": "no"}))), Ok(false));
        }
        assert_eq!(check(json(400, &json!({"message": "no"}))), Err(ForgeErrorKind::Failed));
    }

    #[test]
    fn a_commit_is_signed_when_the_server_says_so() {
        let id = ObjectId::parse(&"a".repeat(40)).unwrap();
        let check = |status: u16, body: Value, expect: bool| {
            let server = TestServer::start();
            server.mount(Mock::given(any()).respond_with(json(status, &body)));
            assert_eq!(requests(&server).is_signed(&id), Ok(expect));
        };
        check(200, json!({"signature_type": "PGP", "verification_status": "verified"}), true);
        check(200, json!({"signature_type": "SSH", "verification_status": "unverified"}), false);
        check(404, json!({"message": "404 Signature Not Found"}), false);
    }

    #[test]
    fn git_gets_in_under_the_name_that_gitlab_wants() {
        let env = |name: &str| match name {
            "CI_SERVER_URL" => Some("https://g.example:8443/git".to_owned()),
            "CI_PROJECT_PATH" => Some("a/b".to_owned()),
            _ => None,
        };
        let job = remote(&env, TokenHolder::Job, "t").unwrap();
        assert_eq!(job.url, "https://g.example:8443/git/a/b.git");
        // `gitlab-ci-token:t` and `oauth2:t`
        assert_eq!(job.header, "Authorization: Basic Z2l0bGFiLWNpLXRva2VuOnQ=");
        let other = remote(&env, TokenHolder::Other, "t").unwrap();
        assert_eq!(other.header, "Authorization: Basic b2F1dGgyOnQ=");
        assert!(remote(&|_| None, TokenHolder::Job, "t").is_err());
        let held = |name: &str| match name {
            "CI_SERVER_URL" => Some("https://u:p@g.example".to_owned()),
            name => env(name),
        };
        assert!(remote(&held, TokenHolder::Job, "t").is_err());
    }

    #[test]
    fn the_environment_names_the_project() {
        let env = |pairs: &'static [(&str, &str)]| {
            let set = move |name: &str| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            MergeRequests::from_env(&set, "geheim").map(|requests| format!("{requests:?}"))
        };
        let found = env(&[("CI_SERVER_URL", "https://g.example/git/"), ("CI_PROJECT_PATH", "a/b")]).unwrap();
        assert!(
            found.contains("https://g.example/git/api/v4") && found.contains("/projects/a%2Fb"),
            "{found}"
        );
        assert!(!found.contains("geheim"), "{found}");
        assert_eq!(
            env(&[("CI_SERVER_URL", "https://g")]),
            Err(Explanation::new("`CI_PROJECT_PATH` names no project"))
        );
        assert!(env(&[("CI_PROJECT_PATH", "a/b")]).unwrap_err().as_str().contains("CI_SERVER_URL"));
    }
}
